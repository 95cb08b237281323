/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxTable.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseHostKernelList.h"

#include <cstring>

namespace chunkwise
{

namespace
{

using Axis = BoxAxis<std::int64_t>;
using Terms = BoxTerms<std::int64_t>;
using Table = BoxTable;

/** The output is cut into slabs along the last axis that takes part, which all threads work on: they share a table. */
Coordinates
SlabExtent(const BoxStatisticOperation & operation, const Box & output, const Coordinates & image)
{
  int parts = 0;
  int last = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const bool takesPart = operation.EffectiveRadius(a, image[a]) > 0;
    parts += takesPart ? 1 : 0;
    last = takesPart ? a : last;
  }
  Coordinates extent = output.Extents();
  // So thick that its surroundings, which the next slab sums once more, are not most of it.
  const std::int64_t thickness = parts == 3 ? 128 : 1024;
  if (last > 0)
  {
    extent[last] = std::min(extent[last], std::max(thickness, 4 * operation.EffectiveRadius(last, image[last])));
  }
  // Independent axes are taken so far that small planes, or rows, keep the threads busy.
  std::int64_t others = parts == 3 ? 1 : parts == 2 ? 8 : 256;
  for (int a = 1; a < MaxDimension; ++a)
  {
    if (operation.EffectiveRadius(a, image[a]) == 0)
    {
      extent[a] = std::min(extent[a], others);
      others = 1;
    }
  }
  return extent;
}

/** The scratch memory: the table, a row of zeros, and for each worker a row of sums and one of boxes. */
template <typename TEntry>
struct Scratch
{
  std::int64_t table;
  std::int64_t row;

  Scratch(const BoxStatisticOperation & operation, const Coordinates & slab, const Coordinates & image)
  {
    table = RoundToLine(MostBoxEntries(operation, slab, image) * static_cast<std::int64_t>(sizeof(TEntry)));
    const Halo         halo = operation.GetHalo(image);
    const std::int64_t columns = std::min(image[0], slab[0] + halo.lower[0] + halo.upper[0]);
    row = RoundToLine(columns * static_cast<std::int64_t>(sizeof(TEntry)));
  }
  std::int64_t
  Sum(int workers) const
  {
    return table + (2 * workers + 1) * row;
  }
};

/** A step of the scan of VGroups totals, before which there are zeros. */
template <int VDistance, int VGroups, typename TEntry>
void
ScanStep(const TEntry * __restrict__ from, TEntry * __restrict__ to)
{
  for (int g = 0; g < VGroups; ++g)
  {
    to[g] = from[g - VDistance] + from[g];
  }
}

/** A segment of a row of floating-point numbers, see BoxStatisticOperation. Gives the sum up to its end. Adding +0
 * where nothing is to be added changes no bit of the results, which begin with +0. */
template <typename TPixel, typename TEntry>
TEntry
ScanSegment(const TPixel * pixels, std::int64_t step, std::int64_t columns, const TEntry & before, TEntry * to)
{
  constexpr int groups = BoxStatisticOperation::SegmentColumns / 2;
  constexpr int zeros = groups / 2;
  const bool    isWhole = columns == 2 * groups;
  TPixel        padded[2 * groups];
  TEntry        part[2 * groups];
  if (step != 1 || !isWhole)
  {
    for (int i = 0; i < 2 * groups; ++i)
    {
      padded[i] = i < columns ? pixels[i * step] : TPixel{ 0 };
    }
    pixels = padded;
  }
  TEntry scanned[2][zeros + groups];
  for (TEntry * const row : { scanned[0], scanned[1] })
  {
    std::fill(row, row + zeros, TEntry{});
  }
  for (int g = 0; g < groups; ++g)
  {
    scanned[0][zeros + g] = BoxEntryOf<TEntry>(pixels[2 * g]) + BoxEntryOf<TEntry>(pixels[2 * g + 1]);
  }
  ScanStep<1, groups>(scanned[0] + zeros, scanned[1] + zeros);
  ScanStep<2, groups>(scanned[1] + zeros, scanned[0] + zeros);
  ScanStep<4, groups>(scanned[0] + zeros, scanned[1] + zeros);
  ScanStep<8, groups>(scanned[1] + zeros, scanned[0] + zeros);
  ScanStep<16, groups>(scanned[0] + zeros, scanned[1] + zeros);
  static_assert(groups == 32, "so many steps");
  const TEntry * const left = scanned[1] + zeros - 1;
  TEntry * const       out = isWhole ? to : part;
  for (int g = 0; g < groups; ++g)
  {
    const TEntry sum = before + left[g];
    const TEntry a = BoxEntryOf<TEntry>(pixels[2 * g]);
    out[2 * g] = sum + a;
    out[2 * g + 1] = sum + (a + BoxEntryOf<TEntry>(pixels[2 * g + 1]));
  }
  if (!isWhole)
  {
    std::copy(part, part + columns, to);
  }
  return before + left[groups];
}

/** One row of the table from the image's, see BoxStatisticOperation. */
template <typename TPixel, typename TEntry>
void
ScanRow(const TPixel * pixels, std::int64_t step, const Table & table, TEntry * to)
{
  const std::int64_t n = table.box.Extent(0);
  if (!table.axes[0].TakesPart())
  {
    for (std::int64_t x = 0; x < n; ++x)
    {
      to[x] = TEntry{} + BoxEntryOf<TEntry>(pixels[x * step]);
    }
    return;
  }
  for (std::int64_t block = 0; block < n; block += table.axes[0].length)
  {
    const std::int64_t blockEnd = std::min(n, block + table.axes[0].length);
    TEntry             before{};
    if constexpr (SumsAreExact(PixelTypeOf<TPixel>(), IsSumAndSquares<TEntry>::value))
    {
      for (std::int64_t x = block; x < blockEnd; ++x)
      {
        before = before + BoxEntryOf<TEntry>(pixels[x * step]);
        to[x] = before;
      }
      continue;
    }
    for (std::int64_t begin = block; begin < blockEnd; begin += BoxStatisticOperation::SegmentColumns)
    {
      before = ScanSegment(pixels + begin * step,
                           step,
                           std::min<std::int64_t>(BoxStatisticOperation::SegmentColumns, blockEnd - begin),
                           before,
                           to + begin);
    }
  }
}

/** Adds the entries one step before along an axis to those of `part` along the axes up to `axis`, at `to`. */
template <typename TEntry>
void
AddBefore(const Table & table, const Box & part, int axis, std::int64_t step, TEntry * to)
{
  if (axis == 0)
  {
    const TEntry * const before = to - step;
    for (std::int64_t x = 0; x < part.Extent(0); ++x)
    {
      to[x] = before[x] + to[x];
    }
    return;
  }
  for (std::int64_t i = 0; i < part.Extent(axis); ++i)
  {
    AddBefore(table, part, axis - 1, step, to + i * table.axes[axis].stride);
  }
}

/** The table's entries of `part`, which ends where blocks do, along the axes up to `axis`, for the voxel `at` of the
 * axes beyond it. */
template <typename TPixel, typename TEntry>
void
FillTable(const BufferView & input, const Table & table, const Box & part, int axis, Coordinates at, TEntry * to)
{
  if (axis == 0)
  {
    ScanRow(static_cast<const TPixel *>(input.data) + input.Offset(at), input.stride[0], table, to);
    return;
  }
  const Axis & along = table.axes[axis];
  for (std::int64_t i = part.lower[axis]; i < part.upper[axis]; ++i, to += along.stride)
  {
    at[axis] = i;
    FillTable<TPixel>(input, table, part, axis - 1, at, to);
    if (along.TakesPart() && i != along.BlockBegin(i))
    {
      AddBefore(table, part, axis - 1, along.stride, to);
    }
  }
}

/** (E - P) + L of rows, of which there are the last ones. */
template <int VRows, typename TEntry>
TEntry
JoinTerms(const TEntry * const * rows, std::int64_t x)
{
  if constexpr (VRows == 3)
  {
    return (rows[0][x] - rows[1][x]) + rows[2][x];
  }
  else
  {
    return rows[1][x] - rows[0][x];
  }
}

/** The boxes around a row of voxels, all of one size but for the image's edge. */
template <typename TEntry>
class RowOfBoxes
{
public:
  /** `sums` and `boxes`: rows of the table's width. */
  RowOfBoxes(const Table & table, const TEntry * entries, const TEntry * zeros, TEntry * sums, TEntry * boxes)
    : m_Table(table)
    , m_Entries(entries)
    , m_Zeros(zeros)
    , m_Sums(sums)
    , m_Boxes(boxes)
  {}

  /** For the row of `at`. */
  void
  Begin(const Coordinates & at)
  {
    m_Voxels = 1;
    std::int64_t row = 0;
    Terms        terms[2]{};
    int          count = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const Axis & axis = m_Table.axes[a];
      if (!axis.TakesPart())
      {
        row += (at[a] - axis.lower) * axis.stride;
        continue;
      }
      const std::int64_t first = axis.First(at[a], axis.radius);
      const std::int64_t last = axis.Last(at[a], axis.radius);
      m_Voxels *= last - first + 1;
      terms[count++] = axis.TermsOf(first, last);
    }
    const TEntry * const entries = m_Entries + row;
    if (terms[0].hasEnd)
    {
      terms[1].hasEnd ? Join<3, 3>(entries, terms) : Join<3, 2>(entries, terms);
    }
    else
    {
      terms[1].hasEnd ? Join<2, 3>(entries, terms) : Join<2, 2>(entries, terms);
    }
  }
  /** Calls finish(x, n, boxes, voxels) for runs of n of the row's voxels from `x` to `end`, of which all boxes have as
   * many voxels. */
  template <typename TFinish>
  void
  ForEach(std::int64_t x, std::int64_t end, TFinish && finish) const
  {
    const Axis &       axis = m_Table.axes[0];
    const std::int64_t r = axis.radius;
    const TEntry *     sums = m_Sums - axis.lower;
    if (r == 0)
    {
      finish(x, end - x, sums + x, m_Voxels);
      return;
    }
    // Runs of voxels whose boxes have the same terms.
    while (x < end)
    {
      const std::int64_t first = axis.First(x, r);
      const std::int64_t last = axis.Last(x, r);
      const Terms        terms = axis.TermsOf(first, last);
      const TEntry       start = terms.hasEnd ? m_Sums[terms.end] : TEntry{};
      const bool         isInside = x >= r && x + r < axis.extent;
      const std::int64_t block = axis.BlockBegin(last);
      const std::int64_t until =
        isInside && terms.hasBefore
          ? std::min({ end, axis.extent - r, terms.hasEnd ? block + r : block + axis.length - r })
          : x + 1;
      const std::int64_t n = until - x;
      const TEntry *     after = m_Sums + terms.last;
      const TEntry *     before = terms.hasBefore ? m_Sums + terms.before : m_Zeros;
      for (std::int64_t i = 0; i < n; ++i)
      {
        m_Boxes[i] = terms.hasEnd ? (start - before[i]) + after[i] : after[i] - before[i];
      }
      finish(x, n, m_Boxes, m_Voxels * (last - first + 1));
      x = until;
    }
  }

private:
  /** The sums of the row's terms along the axes beyond x, of which the first has VOuter and the second VInner. Rows
   * that are not there are zeros. */
  template <int VOuter, int VInner>
  void
  Join(const TEntry * entries, const Terms (&terms)[2]) const
  {
    const auto place = [](const Terms & t, int which) {
      return which == 0   ? std::make_pair(t.last, true)
             : which == 1 ? std::make_pair(t.before, t.hasBefore)
                          : std::make_pair(t.end, t.hasEnd);
    };
    const TEntry * rows[VOuter][VInner];
    for (int i = 0; i < VOuter; ++i)
    {
      for (int k = 0; k < VInner; ++k)
      {
        const auto outer = place(terms[0], VOuter - 1 - i);
        const auto inner = place(terms[1], VInner - 1 - k);
        rows[i][k] = outer.second && inner.second ? entries + outer.first + inner.first : m_Zeros;
      }
    }
    const std::int64_t n = m_Table.box.Extent(0);
    TEntry * const     sums = m_Sums;
    for (std::int64_t x = 0; x < n; ++x)
    {
      const TEntry before = JoinTerms<VInner>(rows[VOuter - 2], x);
      const TEntry last = JoinTerms<VInner>(rows[VOuter - 1], x);
      if constexpr (VOuter == 3)
      {
        sums[x] = (JoinTerms<VInner>(rows[0], x) - before) + last;
      }
      else
      {
        sums[x] = last - before;
      }
    }
  }

  const Table &  m_Table;
  const TEntry * m_Entries;
  const TEntry * m_Zeros;
  TEntry *       m_Sums;
  TEntry *       m_Boxes;
  std::int64_t   m_Voxels{ 1 };
};

/** The results of n boxes of as many voxels, one after the other. */
template <typename TOut, typename TEntry>
void
FinishBoxes(const TEntry * boxes, std::int64_t n, std::int64_t voxels, BoxStatistic statistic, TOut * to)
{
  if constexpr (IsSumAndSquares<TEntry>::value)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      to[i] = FinishBox<TOut>(boxes[i], BoxVoxels{ voxels }, statistic);
    }
  }
  else
  {
    constexpr Accumulator accumulator = std::is_same<TEntry, double>::value ? Accumulator::Float64
                                        : sizeof(TEntry) == 4               ? Accumulator::Int32
                                        : sizeof(TEntry) == 8               ? Accumulator::Int64
                                                                            : Accumulator::Int128;
    const auto finish = GetCpuLevel().finishMean[static_cast<int>(accumulator)][static_cast<int>(PixelTypeOf<TOut>())];
    finish(to, boxes, statistic == BoxStatistic::Sum ? 1 : voxels, n, false);
  }
}

/** (E - P) + L along the first of VParts axes, of what the others give. Missing terms are skipped: adding zero changes
 * no bit, since entries are never -0. */
template <int VParts, typename TEntry>
TEntry
SumOfTerms(const TEntry * entries, const Terms * terms)
{
  if constexpr (VParts == 0)
  {
    return *entries;
  }
  else
  {
    TEntry sum{};
    if (terms->hasEnd)
    {
      sum = SumOfTerms<VParts - 1>(entries + terms->end, terms + 1);
    }
    if (terms->hasBefore)
    {
      sum = sum - SumOfTerms<VParts - 1>(entries + terms->before, terms + 1);
    }
    return sum + SumOfTerms<VParts - 1>(entries + terms->last, terms + 1);
  }
}

/** Boxes of as many voxels along x are summed one after the other. */
constexpr std::int64_t BoxesAtOnce = 128;

/** The sums of the boxes around the n voxels from `begin` along x, and how many voxels they have. A box has the voxel's
 * radius, or the table's where that is smaller. VParts axes take part. */
template <int VParts, typename TEntry>
void
SumBoxes(const Table & table, const TEntry * entries, const Coordinates & begin, std::int64_t n,
         const std::int64_t * radii, TEntry * sums, std::int64_t * voxels)
{
  // One more than is needed, since there are no arrays of none.
  Axis         axes[VParts + 1];
  std::int64_t positions[VParts + 1];
  std::int64_t steps[VParts + 1];
  std::int64_t step = 1;
  entries += table.Offset(begin);
  for (int part = 0; part < VParts; ++part)
  {
    const int a = table.parts[part];
    axes[part] = table.axes[a];
    positions[part] = begin[a];
    steps[part] = a == 0 ? 1 : 0;
    step = a == 0 ? 0 : step;
    entries -= (begin[a] - axes[part].lower) * axes[part].stride;
  }
  for (std::int64_t x = 0; x < n; ++x)
  {
    Terms        terms[VParts + 1];
    std::int64_t count = 1;
    for (int part = 0; part < VParts; ++part)
    {
      const Axis &       axis = axes[part];
      const std::int64_t reach = std::min(radii[x], axis.radius);
      const std::int64_t position = positions[part] + x * steps[part];
      const std::int64_t first = axis.First(position, reach);
      const std::int64_t last = axis.Last(position, reach);
      count *= last - first + 1;
      terms[part] = axis.TermsOf(first, last);
    }
    sums[x] = SumOfTerms<VParts>(entries + x * step, terms);
    voxels[x] = count;
  }
}

/** The radii of the n voxels from `begin` along x: one conversion for all kinds of radii, so that what uses them is
 * compiled once. */
void
ReadRadii(const BufferView & radii, const Coordinates & begin, std::int64_t n, std::int64_t * to)
{
  DispatchPixelType(radii.kind, [&](auto kind) {
    using Radius = decltype(kind);
    if constexpr (!IsFloatingPoint(PixelTypeOf<Radius>()))
    {
      const Radius * const row = static_cast<const Radius *>(radii.data) + radii.Offset(begin);
      for (std::int64_t x = 0; x < n; ++x)
      {
        to[x] = CutRadius<std::int64_t>(row[x * radii.stride[0]], INT64_MAX);
      }
    }
  });
}

/** The part of a call that is computed at a time: a slab of the output, its table, and the scratch memory. */
template <typename TEntry>
class SlabOfBoxes
{
public:
  SlabOfBoxes(const KernelCall & call, const Box & slab, const Scratch<TEntry> & bytes)
    : m_Call(call)
    , m_Operation(static_cast<const BoxStatisticOperation &>(*call.operation))
    , m_Slab(slab)
    , m_Table(MakeBoxTable(m_Operation, slab, call.image))
    , m_Entries(static_cast<TEntry *>(call.scratch))
    , m_Zeros(reinterpret_cast<TEntry *>(static_cast<char *>(call.scratch) + bytes.table))
    , m_Row(bytes.row)
  {}

  template <typename TPixel>
  void
  MakeTable() const
  {
    Coordinates block = Coordinates::Filled(1);
    block[0] = m_Table.box.Extent(0);
    for (int a = 1; a < MaxDimension; ++a)
    {
      block[a] = m_Table.axes[a].length;
    }
    // The rows of axes that take no part are dealt in bundles.
    block[1] = m_Table.axes[1].TakesPart() ? block[1] : RowsOfTile;
    m_Call.executor->ParallelFor(CountTiles(m_Table.box, block), [&](std::int64_t task, unsigned int) {
      if (!(m_Call.control && m_Call.control->ShouldStop()))
      {
        const Box part = TileNumber(m_Table.box, block, task);
        TEntry *  to = m_Entries + m_Table.Offset(part.lower);
        FillTable<TPixel>(m_Call.inputs[0], m_Table, part, MaxDimension - 1, part.lower, to);
      }
    });
    std::fill(m_Zeros, m_Zeros + m_Table.box.Extent(0), TEntry{});
  }

  template <typename TOut>
  void
  Query() const
  {
    const int others = m_Table.count - (m_Table.axes[0].TakesPart() ? 1 : 0);
    if (!m_Operation.variable && others <= 2)
    {
      QueryRows<TOut>();
    }
    else
    {
      QueryVoxels<TOut>();
    }
  }

private:
  static constexpr std::int64_t RowsOfTile = 16;

  /** Calls f(at, columns, worker) for each row of the slab. */
  template <typename TFunctor>
  void
  ForEachRowOfSlab(TFunctor && f) const
  {
    const Coordinates rows = { { m_Slab.Extent(0), RowsOfTile, 1, 1, 1 } };
    ForEachTileOf(rows, m_Call, m_Slab, [&](const Box & tile, unsigned int worker) {
      ForEachRow(tile, [&](const Coordinates & at) { f(at, tile.Extent(0), worker); });
    });
  }

  /** Queries boxes of one size, row by row. */
  template <typename TOut>
  void
  QueryRows() const
  {
    ForEachRowOfSlab([&](const Coordinates & at, std::int64_t columns, unsigned int worker) {
      char * const       memory = reinterpret_cast<char *>(m_Zeros) + (2 * worker + 1) * m_Row;
      auto * const       sums = reinterpret_cast<TEntry *>(memory);
      RowOfBoxes<TEntry> row(m_Table, m_Entries, m_Zeros, sums, reinterpret_cast<TEntry *>(memory + m_Row));
      row.Begin(at);
      TOut * const       to = static_cast<TOut *>(m_Call.output.data) + m_Call.output.Offset(at);
      const std::int64_t stride = m_Call.output.stride[0];
      row.ForEach(
        at[0], at[0] + columns, [&](std::int64_t x, std::int64_t n, const TEntry * boxes, std::int64_t voxels) {
          if (stride == 1)
          {
            FinishBoxes(boxes, n, voxels, m_Operation.statistic, to + (x - at[0]));
            return;
          }
          for (std::int64_t i = 0; i < n; ++i)
          {
            to[(x - at[0] + i) * stride] = FinishBox<TOut>(boxes[i], BoxVoxels{ voxels }, m_Operation.statistic);
          }
        });
    });
  }

  /** Voxel by voxel. */
  template <typename TOut>
  void
  QueryVoxels() const
  {
    ForEachRowOfSlab([&](Coordinates at, std::int64_t columns, unsigned int) {
      TOut *             to = static_cast<TOut *>(m_Call.output.data) + m_Call.output.Offset(at);
      const std::int64_t stride = m_Call.output.stride[0];
      TEntry             sums[BoxesAtOnce];
      std::int64_t       voxels[BoxesAtOnce];
      for (std::int64_t rest = columns; rest > 0; rest -= BoxesAtOnce)
      {
        const std::int64_t n = std::min(rest, BoxesAtOnce);
        SumsOf(at, n, sums, voxels);
        for (std::int64_t x = 0; x < n; ++x)
        {
          to[x * stride] = FinishBox<TOut>(sums[x], BoxVoxels{ voxels[x] }, m_Operation.statistic);
        }
        at[0] += n;
        to += n * stride;
      }
    });
  }
  void
  SumsOf(const Coordinates & at, std::int64_t n, TEntry * sums, std::int64_t * voxels) const
  {
    std::int64_t radii[BoxesAtOnce];
    if (m_Operation.variable)
    {
      ReadRadii(m_Call.inputs[1], at, n, radii);
    }
    else
    {
      std::fill(radii, radii + n, INT64_MAX);
    }
    switch (m_Table.count)
    {
      case 0:
        return SumBoxes<0>(m_Table, m_Entries, at, n, radii, sums, voxels);
      case 1:
        return SumBoxes<1>(m_Table, m_Entries, at, n, radii, sums, voxels);
      case 2:
        return SumBoxes<2>(m_Table, m_Entries, at, n, radii, sums, voxels);
      default:
        return SumBoxes<3>(m_Table, m_Entries, at, n, radii, sums, voxels);
    }
  }

  const KernelCall &            m_Call;
  const BoxStatisticOperation & m_Operation;
  const Box                     m_Slab;
  const Table                   m_Table;
  TEntry * const                m_Entries;
  TEntry * const                m_Zeros; ///< a row, followed by each worker's rows
  const std::int64_t            m_Row;   ///< bytes
};

template <typename TFunctor>
void
DispatchTypes(const BoxStatisticOperation & operation, const Coordinates & image, PixelType input, TFunctor && f)
{
  DispatchPixelType(input, [&](auto pixel) {
    DispatchBoxEntry<decltype(pixel)>(operation, image, [&](auto entry) { f(pixel, entry); });
  });
}

void
RunBoxStatistic(const KernelCall & call)
{
  const auto &      operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  const Box &       output = call.output.box;
  const Coordinates image = call.image.Extents();
  const Coordinates extent = SlabExtent(operation, output, image);
  DispatchTypes(operation, image, call.inputs[0].kind, [&](auto pixel, auto entry) {
    using Pixel = decltype(pixel);
    using Entry = decltype(entry);
    const Scratch<Entry> bytes(operation, extent, image);
    for (std::int64_t number = 0; number < CountTiles(output, extent); ++number)
    {
      const SlabOfBoxes<Entry> slab(call, TileNumber(output, extent, number), bytes);
      slab.template MakeTable<Pixel>();
      DispatchExactOutput<Pixel>(call.output.kind, [&](auto out) { slab.template Query<decltype(out)>(); });
    }
  });
}

std::size_t
BoxStatisticScratch(const Operation & anyOperation, const ChunkShape & shape)
{
  const auto &      operation = static_cast<const BoxStatisticOperation &>(anyOperation);
  const Coordinates image = shape.image.Extents();
  std::size_t       bytes = 0;
  DispatchTypes(operation, image, shape.inputKinds[0], [&](auto, auto entry) {
    const Scratch<decltype(entry)> scratch(operation, SlabExtent(operation, shape.outputBox, image), image);
    bytes = static_cast<std::size_t>(scratch.Sum(shape.concurrency));
  });
  return bytes;
}

} // namespace

void
RegisterHostBoxStatistic(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunBoxStatistic;
  kernel.scratchBytes = BoxStatisticScratch;
  registry.Register("boxstatistic", { kernel });
}

} // namespace chunkwise
