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
using Table = BoxTable<std::int64_t>;

/** A tile and its table stay in the caches while the surroundings are not much of the table. */
Coordinates
TableTile(const BoxStatisticOperation & operation, const Box & output, const Coordinates & image)
{
  Coordinates tile{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t r = operation.EffectiveRadius(a, image[a]);
    const std::int64_t wanted = a == 0  ? std::max<std::int64_t>(1024, 4 * r)
                                : r > 0 ? std::max<std::int64_t>(64, 4 * r)
                                        : 1;
    tile[a] = std::min(output.Extent(a), wanted);
  }
  return tile;
}

/** What a worker has: the table, a row of zeros and one of sums, each with as many entries as the table's rows. */
template <typename TEntry>
struct WorkerBytes
{
  std::int64_t table;
  std::int64_t row;

  WorkerBytes(const BoxStatisticOperation & operation, const Coordinates & tile, const Coordinates & image)
  {
    table = RoundToLine(MostBoxEntries(operation, tile, image) * static_cast<std::int64_t>(sizeof(TEntry)));
    Coordinates line = Coordinates::Filled(1);
    line[0] = tile[0] + operation.GetHalo(image).lower[0] + operation.GetHalo(image).upper[0];
    row = RoundToLine(line[0] * static_cast<std::int64_t>(sizeof(TEntry)));
  }
  std::int64_t
  Sum() const
  {
    return table + 2 * row;
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

/** The table's entries along the axes up to `axis`, for the voxel `at` of the axes beyond it. */
template <typename TPixel, typename TEntry>
void
FillTable(const BufferView & input, const Table & table, int axis, Coordinates at, TEntry * to)
{
  if (axis == 0)
  {
    ScanRow(static_cast<const TPixel *>(input.data) + input.Offset(at), input.stride[0], table, to);
    return;
  }
  const Axis &       along = table.axes[axis];
  const std::int64_t slab = along.stride;
  for (std::int64_t i = table.box.lower[axis]; i < table.box.upper[axis]; ++i, to += slab)
  {
    at[axis] = i;
    FillTable<TPixel>(input, table, axis - 1, at, to);
    if (along.TakesPart() && i != along.BlockBegin(i))
    {
      const TEntry * const before = to - slab;
      for (std::int64_t k = 0; k < slab; ++k)
      {
        to[k] = before[k] + to[k];
      }
    }
  }
}

/** The boxes around a row of voxels, all of one size but for the image's edge. */
template <typename TEntry>
class RowOfBoxes
{
public:
  RowOfBoxes(const Table & table, const TEntry * entries, TEntry * zeros, TEntry * sums)
    : m_Table(table)
    , m_Entries(entries)
    , m_Zeros(zeros)
    , m_Sums(sums)
  {
    std::fill(zeros, zeros + table.box.Extent(0), TEntry{});
  }

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
  TEntry *       m_Zeros;
  TEntry *       m_Sums;
  std::int64_t   m_Voxels{ 1 };
};

/** The sum over the box of radius `r`, or of the table's radius where that is smaller, around a voxel. */
template <typename TEntry>
TEntry
SumAround(const Table & table, const TEntry * entries, const Coordinates & at, std::int64_t r, std::int64_t & voxels)
{
  const BoxAround<std::int64_t> box(table, at, r);
  voxels = box.voxels;
  const auto sum = [&](auto meetsTwo) {
    constexpr bool two = decltype(meetsTwo)::value;
    switch (table.count)
    {
      case 0:
        return entries[box.offset];
      case 1:
        return SumOfBox<1, two>(entries, box.terms, box.offset);
      case 2:
        return SumOfBox<2, two>(entries, box.terms, box.offset);
      default:
        return SumOfBox<3, two>(entries, box.terms, box.offset);
    }
  };
  return box.meetsTwo ? sum(std::true_type{}) : sum(std::false_type{});
}

template <typename TPixel, typename TEntry, typename TOut>
void
RunTiles(const KernelCall & call)
{
  const auto &              operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  const BufferView &        input = call.inputs[0];
  const Coordinates         image = call.image.Extents();
  const Coordinates         tileExtent = TableTile(operation, call.output.box, image);
  const WorkerBytes<TEntry> bytes(operation, tileExtent, image);
  ForEachTileOf(tileExtent, call, [&](const Box & tile, unsigned int worker) {
    char * const scratch = static_cast<char *>(call.scratch) + worker * bytes.Sum();
    auto * const entries = reinterpret_cast<TEntry *>(scratch);
    auto * const zeros = reinterpret_cast<TEntry *>(scratch + bytes.table);
    auto * const sums = reinterpret_cast<TEntry *>(scratch + bytes.table + bytes.row);
    const Table  table = MakeBoxTable(operation, tile, call.image);
    FillTable<TPixel>(input, table, MaxDimension - 1, table.box.lower, entries);
    const auto finish = [&](const TEntry & sum, std::int64_t voxels) {
      return FinishBox<TOut>(sum, voxels, operation.statistic);
    };
    const int others = table.count - (table.axes[0].TakesPart() ? 1 : 0);
    if (!operation.variable && others <= 2)
    {
      RowOfBoxes<TEntry> row(table, entries, zeros, sums);
      ForEachRow(tile, [&](const Coordinates & at) {
        row.Begin(at);
        TOut * const       to = static_cast<TOut *>(call.output.data) + call.output.Offset(at);
        const std::int64_t stride = call.output.stride[0];
        row.ForEach(at[0], tile.upper[0], [&](std::int64_t x, const TEntry & sum, std::int64_t voxels) {
          to[(x - at[0]) * stride] = finish(sum, voxels);
        });
      });
      return;
    }
    const auto store = [&](auto && radiusAt) {
      ForEachRow(tile, [&](const Coordinates & begin) {
        Coordinates at = begin;
        StoreRow<TOut>(call.output, begin, tile.Extent(0), [&](std::int64_t x) {
          at[0] = begin[0] + x;
          std::int64_t voxels = 0;
          const TEntry sum = SumAround(table, entries, at, radiusAt(at), voxels);
          return finish(sum, voxels);
        });
      });
    };
    if (!operation.variable)
    {
      store([](const Coordinates &) { return INT64_MAX; });
      return;
    }
    const BufferView & radii = call.inputs[1];
    DispatchPixelKind(radii.kind, [&](auto kind) {
      using Radius = decltype(kind);
      if constexpr (!IsFloatingPoint(PixelKindOf<Radius>()))
      {
        store([&](const Coordinates & at) {
          return CutRadius<std::int64_t>(static_cast<const Radius *>(radii.data)[radii.Offset(at)], INT64_MAX);
        });
      }
    });
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
  const auto & operation = static_cast<const BoxStatisticOperation &>(*call.operation);
  DispatchTypes(operation, call.image.Extents(), call.inputs[0].kind, [&](auto pixel, auto entry) {
    using Pixel = decltype(pixel);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { RunTiles<Pixel, decltype(entry), decltype(out)>(call); });
  });
}

std::size_t
BoxStatisticScratch(const Operation & anyOperation, const ChunkShape & shape)
{
  const auto &      operation = static_cast<const BoxStatisticOperation &>(anyOperation);
  const Coordinates image = shape.image.Extents();
  std::size_t       bytes = 0;
  DispatchTypes(operation, image, shape.inputKinds[0], [&](auto, auto entry) {
    const WorkerBytes<decltype(entry)> worker(operation, TableTile(operation, shape.outputBox, image), image);
    bytes = static_cast<std::size_t>(worker.Sum() * shape.concurrency);
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
