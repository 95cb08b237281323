/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBoxTable.h"
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
  // Of independent axes so much that small planes, or rows, keep the threads busy.
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

/** The scratch memory: the table, a row of zeros, and a row of sums for each worker. */
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
    return table + (workers + 1) * row;
  }
};

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
    if constexpr (SumsAreExact(PixelKindOf<TPixel>(), IsSumAndSquares<TEntry>::value))
    {
      for (std::int64_t x = block; x < blockEnd; ++x)
      {
        before = before + BoxEntryOf<TEntry>(pixels[x * step]);
        to[x] = before;
      }
      continue;
    }
    constexpr int groups = BoxStatisticOperation::SegmentColumns / 2;
    for (std::int64_t begin = block; begin < blockEnd; begin += 2 * groups)
    {
      TEntry    entries[2 * groups]{};
      const int columns = static_cast<int>(std::min<std::int64_t>(2 * groups, blockEnd - begin));
      for (int i = 0; i < columns; ++i)
      {
        entries[i] = BoxEntryOf<TEntry>(pixels[(begin + i) * step]);
      }
      TEntry totals[groups];
      TEntry scanned[groups];
      for (int g = 0; g < groups; ++g)
      {
        totals[g] = entries[2 * g] + entries[2 * g + 1];
      }
      for (int d = 1; d < groups; d *= 2)
      {
        std::copy(totals, totals + d, scanned);
        for (int g = d; g < groups; ++g)
        {
          scanned[g] = totals[g - d] + totals[g];
        }
        std::copy(scanned, scanned + groups, totals);
      }
      for (int i = 0; i < columns; ++i)
      {
        const TEntry left = before + (i < 2 ? TEntry{} : totals[i / 2 - 1]);
        to[begin + i] = left + (i % 2 ? entries[i - 1] + entries[i] : entries[i]);
      }
      before = before + totals[groups - 1];
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

/** The boxes around a row of voxels, all of one size but for the image's edge. */
template <typename TEntry>
class RowOfBoxes
{
public:
  RowOfBoxes(const Table & table, const TEntry * entries, const TEntry * zeros, TEntry * sums)
    : m_Table(table)
    , m_Entries(entries)
    , m_Zeros(zeros)
    , m_Sums(sums)
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
    // Rows that are not there are zeros, so that the loop below has no cases.
    const TEntry * rows[9];
    for (int i = 0; i < 9; ++i)
    {
      const auto part = [](const Terms & t, int which) {
        return which == 0   ? std::make_pair(t.end, t.hasEnd)
               : which == 1 ? std::make_pair(t.before, t.hasBefore)
                            : std::make_pair(t.last, true);
      };
      const auto outer = part(terms[0], i / 3);
      const auto inner = part(terms[1], i % 3);
      rows[i] = outer.second && inner.second ? m_Entries + row + outer.first + inner.first : m_Zeros;
    }
    const std::int64_t n = m_Table.box.Extent(0);
    for (std::int64_t x = 0; x < n; ++x)
    {
      const TEntry end = (rows[0][x] - rows[1][x]) + rows[2][x];
      const TEntry before = (rows[3][x] - rows[4][x]) + rows[5][x];
      m_Sums[x] = (end - before) + ((rows[6][x] - rows[7][x]) + rows[8][x]);
    }
  }
  /** Calls store(x, sum, voxels) for the row's voxels from `x` to `end`. */
  template <typename TStore>
  void
  ForEach(std::int64_t x, std::int64_t end, TStore && store) const
  {
    const Axis &       axis = m_Table.axes[0];
    const std::int64_t r = axis.radius;
    const TEntry *     sums = m_Sums - axis.lower;
    if (r == 0)
    {
      for (; x < end; ++x)
      {
        store(x, sums[x], m_Voxels);
      }
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
      const std::int64_t voxels = m_Voxels * (last - first + 1);
      if (!isInside || !terms.hasBefore)
      {
        store(x, (start - (terms.hasBefore ? m_Sums[terms.before] : TEntry{})) + m_Sums[terms.last], voxels);
        ++x;
        continue;
      }
      const std::int64_t block = axis.BlockBegin(last);
      const std::int64_t until = std::min({ end, axis.extent - r, terms.hasEnd ? block + r : block + axis.length - r });
      if (terms.hasEnd)
      {
        for (; x < until; ++x)
        {
          store(x, (start - sums[x - r - 1]) + sums[x + r], voxels);
        }
      }
      else
      {
        for (; x < until; ++x)
        {
          store(x, sums[x + r] - sums[x - r - 1], voxels);
        }
      }
    }
  }

private:
  const Table &  m_Table;
  const TEntry * m_Entries;
  const TEntry * m_Zeros;
  TEntry *       m_Sums;
  std::int64_t   m_Voxels{ 1 };
};

/** (E - P) + L along the first of VParts axes, of what the others give. What is not there is not looked for: adding
 * zero changes no bit, since entries are never -0. */
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

/** Calls store(x, sum, voxels) for the n voxels from `begin` along x, whose boxes have the radius radiusAt(x), or the
 * table's where that is smaller. VParts axes take part. */
template <int VParts, typename TEntry, typename TRadiusAt, typename TStore>
void
ForEachBox(const Table & table, const TEntry * entries, const Coordinates & begin, std::int64_t n,
           TRadiusAt && radiusAt, TStore && store)
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
    const std::int64_t r = radiusAt(x);
    Terms              terms[VParts + 1];
    std::int64_t       voxels = 1;
    for (int part = 0; part < VParts; ++part)
    {
      const Axis &       axis = axes[part];
      const std::int64_t reach = std::min(r, axis.radius);
      const std::int64_t position = positions[part] + x * steps[part];
      const std::int64_t first = axis.First(position, reach);
      const std::int64_t last = axis.Last(position, reach);
      voxels *= last - first + 1;
      terms[part] = axis.TermsOf(first, last);
    }
    store(x, SumOfTerms<VParts>(entries + x * step, terms), voxels);
  }
}

template <typename TPixel, typename TEntry, typename TOut>
void
RunSlab(const KernelCall & call, const Box & slab, const Scratch<TEntry> & bytes)
{
  const auto &      operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  const Table       table = MakeBoxTable(operation, slab, call.image);
  char * const      scratch = static_cast<char *>(call.scratch);
  auto * const      entries = reinterpret_cast<TEntry *>(scratch);
  auto * const      zeros = reinterpret_cast<TEntry *>(scratch + bytes.table);
  const auto        stops = [&call] { return call.control && call.control->ShouldStop(); };
  const Coordinates rows = { { slab.Extent(0), 16, 1, 1, 1 } };

  Coordinates block = Coordinates::Filled(1);
  block[0] = table.box.Extent(0);
  for (int a = 1; a < MaxDimension; ++a)
  {
    block[a] = table.axes[a].length;
  }
  // Where axes take no part, their rows are dealt in bundles.
  block[1] = table.axes[1].TakesPart() ? block[1] : rows[1];
  call.executor->ParallelFor(CountTiles(table.box, block), [&](std::int64_t task, unsigned int) {
    if (!stops())
    {
      const Box part = TileNumber(table.box, block, task);
      FillTable<TPixel>(call.inputs[0], table, part, MaxDimension - 1, part.lower, entries + table.Offset(part.lower));
    }
  });
  std::fill(zeros, zeros + table.box.Extent(0), TEntry{});

  const auto finish = [&](const TEntry & sum, std::int64_t voxels) {
    return FinishBox<TOut>(sum, voxels, operation.statistic);
  };
  const int others = table.count - (table.axes[0].TakesPart() ? 1 : 0);
  if (!operation.variable && others <= 2)
  {
    ForEachTileOf(rows, call, slab, [&](const Box & tile, unsigned int worker) {
      auto * const       sums = reinterpret_cast<TEntry *>(scratch + bytes.table + (worker + 1) * bytes.row);
      RowOfBoxes<TEntry> row(table, entries, zeros, sums);
      ForEachRow(tile, [&](const Coordinates & at) {
        row.Begin(at);
        TOut * const       to = static_cast<TOut *>(call.output.data) + call.output.Offset(at);
        const std::int64_t stride = call.output.stride[0];
        row.ForEach(at[0], tile.upper[0], [&](std::int64_t x, const TEntry & sum, std::int64_t voxels) {
          to[(x - at[0]) * stride] = finish(sum, voxels);
        });
      });
    });
    return;
  }
  // `radii` gives the function radiusAt of a row.
  const auto query = [&](auto && radii) {
    ForEachTileOf(rows, call, slab, [&](const Box & tile, unsigned int) {
      ForEachRow(tile, [&](const Coordinates & at) {
        TOut * const       to = static_cast<TOut *>(call.output.data) + call.output.Offset(at);
        const std::int64_t stride = call.output.stride[0];
        const auto         store = [&](std::int64_t x, const TEntry & sum, std::int64_t voxels) {
          to[x * stride] = finish(sum, voxels);
        };
        switch (table.count)
        {
          case 0:
            return ForEachBox<0>(table, entries, at, tile.Extent(0), radii(at), store);
          case 1:
            return ForEachBox<1>(table, entries, at, tile.Extent(0), radii(at), store);
          case 2:
            return ForEachBox<2>(table, entries, at, tile.Extent(0), radii(at), store);
          default:
            return ForEachBox<3>(table, entries, at, tile.Extent(0), radii(at), store);
        }
      });
    });
  };
  if (!operation.variable)
  {
    query([](const Coordinates &) { return [](std::int64_t) { return INT64_MAX; }; });
    return;
  }
  const BufferView & radii = call.inputs[1];
  DispatchPixelKind(radii.kind, [&](auto kind) {
    using Radius = decltype(kind);
    if constexpr (!IsFloatingPoint(PixelKindOf<Radius>()))
    {
      query([&](const Coordinates & at) {
        const Radius * const row = static_cast<const Radius *>(radii.data) + radii.Offset(at);
        return
          [row, step = radii.stride[0]](std::int64_t x) { return CutRadius<std::int64_t>(row[x * step], INT64_MAX); };
      });
    }
  });
}

template <typename TFunctor>
void
DispatchTypes(const BoxStatisticOperation & operation, const Coordinates & image, PixelKind input, TFunctor && f)
{
  DispatchPixelKind(input, [&](auto pixel) {
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
    const Scratch<decltype(entry)> bytes(operation, extent, image);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      for (std::int64_t slab = 0; slab < CountTiles(output, extent); ++slab)
      {
        RunSlab<Pixel, decltype(entry), decltype(out)>(call, TileNumber(output, extent, slab), bytes);
      }
    });
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
  registry.Register("boxstatistic", kernel);
}

} // namespace chunkwise
