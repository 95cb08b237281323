/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaBoxQuery.cuh"
#include "chunkwiseCudaKernels.h"

#include <cstring>
#include <limits>

// Statistics of boxes of one size from their table. The places where boxes along an axis begin, end and meet blocks are
// the same for a whole row, and rows have terms in common: a block of threads has a tile of columns and goes down it
// row by row. It sums the terms of the axis beyond (z) as it reads them, keeps the rows that it needs again in shared
// memory, joins those (y), and then what lies in a row (x).
namespace chunkwise
{

namespace
{

/** Neighbors in a row of a table, which a thread moves at once. */
template <typename TEntry>
struct alignas(16) BoxColumns
{
  static constexpr int Count = sizeof(TEntry) < 16 ? 16 / sizeof(TEntry) : 1;
  TEntry               entry[Count];

  __device__ static BoxColumns
  Zero()
  {
    BoxColumns columns;
#pragma unroll
    for (int i = 0; i < Count; ++i)
    {
      columns.entry[i] = TEntry{};
    }
    return columns;
  }
};

/** BoxColumns on their way from memory: as they were before if there are none to read. A load of which the compiler
 * would make a choice of values would be waited for at once. */
template <typename TEntry>
class BoxColumnsRead
{
public:
  __device__ void
  Load(const TEntry * from, bool isThere)
  {
#pragma unroll
    for (int i = 0; i < Words; ++i)
    {
      asm volatile("{\n"
                   ".reg .pred isThere;\n"
                   "setp.ne.s32 isThere, %5, 0;\n"
                   "@isThere ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                   "}"
                   : "+r"(m_Words[i].x), "+r"(m_Words[i].y), "+r"(m_Words[i].z), "+r"(m_Words[i].w)
                   : "l"(reinterpret_cast<const uint4 *>(from) + i), "r"(static_cast<int>(isThere)));
    }
  }
  __device__ BoxColumns<TEntry>
             Get() const
  {
    BoxColumns<TEntry> columns;
    memcpy(&columns, m_Words, sizeof(columns));
    return columns;
  }

private:
  static constexpr int Words = sizeof(BoxColumns<TEntry>) / 16;

  uint4 m_Words[Words]{};
};

/** (E - P) + L. Missing terms are zero, which changes no bit: entries are never -0. */
template <typename TEntry>
__device__ BoxColumns<TEntry>
JoinBoxColumns(const BoxColumns<TEntry> & end, const BoxColumns<TEntry> & before, const BoxColumns<TEntry> & last)
{
  BoxColumns<TEntry> sum;
#pragma unroll
  for (int i = 0; i < BoxColumns<TEntry>::Count; ++i)
  {
    sum.entry[i] = (end.entry[i] - before.entry[i]) + last.entry[i];
  }
  return sum;
}

struct RowsQuery
{
  QueryAxis<std::int32_t> x;
  QueryAxis<std::int32_t> march; ///< its positions are rows, its stride 1
  QueryAxis<std::int64_t> last;  ///< axis -1: none
  std::int64_t            rowStride;
  /** In the table, along axes that take no part. */
  Coordinates  stride;
  std::int32_t width;   ///< of a row of the table
  std::int32_t columns; ///< of the output that a block of threads has
  std::int32_t rows;
  std::int32_t keptRows;

  __host__ __device__ std::int64_t
                      TilesAlong(const Box & output, int a) const
  {
    const std::int64_t extent = output.Extent(a);
    const std::int64_t tile = TileAlong(a);
    return (extent + tile - 1) / tile;
  }
  __host__ __device__ std::int64_t
                      TileAlong(int a) const
  {
    return a == 0 ? columns : a == march.axis ? rows : 1;
  }
};

/** The terms beyond a row, of the columns of a thread, read one row ahead. Missing terms stay zero. */
template <typename TEntry>
class BoxRow
{
  using Columns = BoxColumnsRead<TEntry>;

public:
  __device__
  BoxRow(const TEntry * row, const BoxTerms<std::int64_t> & terms, bool isThere)
    : m_LastAt(row + terms.last)
    , m_BeforeAt(row + terms.before)
    , m_EndAt(row + terms.end)
    , m_HasLast(isThere)
    , m_HasBefore(isThere && terms.hasBefore)
    , m_HasEnd(isThere && terms.hasEnd)
  {
    Load();
  }
  __device__ BoxColumns<TEntry>
             Sum() const
  {
    return JoinBoxColumns(m_End.Get(), m_Before.Get(), m_Last.Get());
  }
  __device__ void
  Advance(std::int64_t stride)
  {
    m_LastAt += stride;
    m_BeforeAt += stride;
    m_EndAt += stride;
    Load();
  }

private:
  __device__ void
  Load()
  {
    m_Last.Load(m_LastAt, m_HasLast);
    m_Before.Load(m_BeforeAt, m_HasBefore);
    m_End.Load(m_EndAt, m_HasEnd);
  }

  const TEntry * m_LastAt;
  const TEntry * m_BeforeAt;
  const TEntry * m_EndAt;
  bool           m_HasLast;
  bool           m_HasBefore;
  bool           m_HasEnd;
  Columns        m_Last;
  Columns        m_Before;
  Columns        m_End;
};

/** The rows of the table that a row of boxes needs: the number of the last one, and the places of those before its
 * first and at the end of a block. */
struct alignas(16) BoxRowPlan
{
  int last;
  int before;
  int end;
  int rows; ///< of the box
};

/** BoxVoxels of as many boxes as have `count`, with the same quotients. */
struct ManyBoxVoxels
{
  std::int64_t count;
  double       divisor;
  double       inverse;

  ManyBoxVoxels() = default;
  __device__ explicit ManyBoxVoxels(std::int64_t voxels)
    : count(voxels)
    , divisor(static_cast<double>(voxels))
    , inverse(1.0 / divisor)
  {}
  /** Markstein's division: of a quotient that is off by less than a unit in the last place, the remainder is exact, and
   * its quotient, added, gives the correctly rounded one. The product with the inverse may be off by more, so it is
   * corrected once before. If a remainder might leave the range of normal numbers, the ordinary division is used. */
  __device__ double
  Divide(double sum) const
  {
    constexpr unsigned int one = 1U << 20; // in the place of the exponent
    const unsigned int     exponent = static_cast<unsigned int>(__double2hiint(sum)) & 0x7FF00000U;
    if (exponent - 100 * one >= 1900 * one)
    {
      return sum / divisor;
    }
    double quotient = sum * inverse;
    quotient = __fma_rn(__fma_rn(-quotient, divisor, sum), inverse, quotient);
    return __fma_rn(__fma_rn(-quotient, divisor, sum), inverse, quotient);
  }
};

/** Along x, what a thread does of each row: a voxel in each of so many parts of the tile. Positions are those of sums
 * in shared memory; `none` is that of a zero. */
template <int VCount>
struct BoxesInRow
{
  int  last[VCount];
  int  before[VCount];
  int  end[VCount];
  int  voxels[VCount];
  bool isThere[VCount];
  bool meetsTwo[VCount]; ///< any box of the warp

  /** `columns` boxes from position `first` on; `left` is the position of the first sum. */
  __device__ __forceinline__
  BoxesInRow(const QueryAxis<std::int32_t> & x, int first, int columns, int left, int none)
  {
#pragma unroll
    for (int k = 0; k < VCount; ++k)
    {
      const int offset = static_cast<int>(threadIdx.x) + k * static_cast<int>(blockDim.x);
      isThere[k] = offset < columns;
      voxels[k] = 1;
      const BoxTerms<std::int32_t> terms =
        x.TermsOf(first + (isThere[k] ? offset : 0), std::numeric_limits<std::int32_t>::max(), voxels[k]);
      last[k] = InRegister(terms.last - left);
      before[k] = InRegister(terms.hasBefore ? terms.before - left : none);
      end[k] = InRegister(terms.hasEnd ? terms.end - left : none);
      voxels[k] = InRegister(voxels[k]);
      meetsTwo[k] = __any_sync(0xFFFFFFFFU, terms.hasEnd);
    }
  }
};

constexpr int MostRowThreads = 512;
constexpr int MostRows = 128;

/** Goes down the rows of a tile, from row `begin` of the table to row `end`, and keeps the rows that are needed again
 * in `ring`, with a row of zeros behind them. `next` reads row `begin`. Calls finish(sum, rows of the box) for each
 * row.
 */
template <typename TEntry, typename TFinish>
__device__ __forceinline__ void
MarchKeepingRows(const RowsQuery & query, BoxRow<TEntry> next, BoxColumns<TEntry> * ring, const BoxRowPlan * plan,
                 int rows, int begin, int end, TFinish && finish)
{
  using Columns = BoxColumns<TEntry>;
  const int threads = static_cast<int>(blockDim.x);
  ring[query.keptRows * threads + threadIdx.x] = Columns::Zero();
  __syncthreads();
  Columns * const column = ring + threadIdx.x;
  Columns         last = Columns::Zero();
  int             slot = 0;
  int             read = begin;
  for (int row = 0; row < rows; ++row)
  {
    const BoxRowPlan now = plan[row];
#pragma unroll 1
    while (read <= now.last)
    {
      last = next.Sum();
      column[slot] = last;
      slot = slot + threads == query.keptRows * threads ? 0 : slot + threads;
      ++read;
      if (read <= end)
      {
        next.Advance(query.rowStride);
      }
    }
    finish(JoinBoxColumns(column[now.end], column[now.before], last), now.rows);
  }
}

/** The same where rows are read again, each one row ahead. */
template <typename TEntry, typename TFinish>
__device__ __forceinline__ void
MarchReadingRows(const RowsQuery & query, const TEntry * entries, bool isThere, const BoxRowPlan * plan, int rows,
                 TFinish && finish)
{
  __syncthreads();
  const auto load = [&](int row) {
    BoxColumnsRead<TEntry> read;
    read.Load(entries + row * query.rowStride, isThere && row >= 0);
    return read;
  };
  BoxRowPlan now = plan[0];
  auto       last = load(now.last);
  auto       before = load(now.before);
  auto       atEnd = load(now.end);
  for (int row = 0; row < rows; ++row)
  {
    const BoxColumns<TEntry> sum = JoinBoxColumns(atEnd.Get(), before.Get(), last.Get());
    const int                inRows = now.rows;
    if (row + 1 < rows)
    {
      now = plan[row + 1];
      last = load(now.last);
      before = load(now.before);
      atEnd = load(now.end);
    }
    finish(sum, inRows);
  }
}

/** Plans which rows the boxes around each of a block's `rows` need, from `firstRow` on. `begin`: the first that any
 * needs. */
template <bool VKeepsRows>
__device__ __forceinline__ void
PlanRows(const RowsQuery & query, BoxRowPlan * plan, int rows, int firstRow, int begin)
{
  constexpr auto anyRadius = std::numeric_limits<std::int32_t>::max();
  const int      threads = static_cast<int>(blockDim.x);
  const auto     place = [&](int row, bool isThere) {
    return VKeepsRows ? (isThere ? (row - begin) % query.keptRows : query.keptRows) * threads : isThere ? row : -1;
  };
  for (int row = static_cast<int>(threadIdx.x); row < rows; row += threads)
  {
    int                          inRows = 1;
    const BoxTerms<std::int32_t> terms = query.march.TermsOf(firstRow + row, anyRadius, inRows);
    plan[row] = { terms.last, place(terms.before, terms.hasBefore), place(terms.end, terms.hasEnd), inRows };
  }
}

template <int VCount>
__device__ __forceinline__ void
SetBoxVoxels(std::int64_t perColumn, const int (&columns)[VCount], ManyBoxVoxels (&voxels)[VCount])
{
#pragma unroll
  for (int k = 0; k < VCount; ++k)
  {
    voxels[k] = ManyBoxVoxels(perColumn * columns[k]);
  }
}

/** With VKeepsRows the rows that are needed again are kept in shared memory. Without it they are read again; then no
 * third axis takes part. */
template <bool VKeepsRows, typename TOut, typename TEntry>
__global__ void
__launch_bounds__(MostRowThreads) RowsKernel(RowsQuery query, const TEntry * __restrict__ entries, Voxels<char> out,
                                             PixelType kind, BoxStatistic statistic)
{
  using Columns = BoxColumns<TEntry>;
  constexpr int           count = Columns::Count;
  constexpr auto          anyRadius = std::numeric_limits<std::int32_t>::max();
  extern __shared__ uint4 shared[];
  const int               threads = static_cast<int>(blockDim.x);
  const int               thread = static_cast<int>(threadIdx.x);

  // Neighbors along the last axes, which read the same rows, are at work at the same time.
  Coordinates   at{};
  std::uint32_t rest = blockIdx.x;
#pragma unroll
  for (int a = MaxDimension - 1; a >= 0; --a)
  {
    const auto tiles = static_cast<std::uint32_t>(query.TilesAlong(out.box, a));
    const auto next = rest / tiles;
    at.axis[a] = (rest - next * tiles) * query.TileAlong(a);
    rest = next;
    entries += at.axis[a] * query.stride.axis[a];
    out.data += at.axis[a] * out.stride.axis[a];
  }
  std::int64_t                 inLast = 1;
  const BoxTerms<std::int64_t> lastTerms = query.last.TermsOf(
    query.last.first + Pick<std::int64_t>(at, query.last.axis), std::numeric_limits<std::int64_t>::max(), inLast);

  // The memory: kept rows and one of zeros, two rows of sums, of which one is written while the other is read and each
  // has a zero behind it, and the plan.
  Columns * const ring = reinterpret_cast<Columns *>(shared);
  const int       kept = VKeepsRows ? (query.keptRows + 1) * threads : 0;
  const int       none = threads * count;
  const int       rowOfSums = none + count;
  TEntry * const  sums = reinterpret_cast<TEntry *>(ring + kept);
  BoxRowPlan *    plan = reinterpret_cast<BoxRowPlan *>(sums + 2 * rowOfSums);
  if (thread < 2)
  {
    sums[thread * rowOfSums + none] = TEntry{};
  }

  const std::int64_t allRows =
    Pick<std::int64_t>(out.box.upper, query.march.axis) - Pick<std::int64_t>(out.box.lower, query.march.axis);
  const auto firstInOut = Pick<std::int64_t>(at, query.march.axis);
  const int  rows = static_cast<int>(min(std::int64_t{ query.rows }, allRows - firstInOut));
  const int  firstRow = query.march.first + static_cast<int>(firstInOut);
  int        ignored = 1;
  const int  begin = max(query.march.TermsOf(firstRow, anyRadius, ignored).before, 0);
  const int  end = query.march.TermsOf(firstRow + rows - 1, anyRadius, ignored).last;
  PlanRows<VKeepsRows>(query, plan, rows, firstRow, begin);

  const int               firstOfTile = query.x.first + static_cast<int>(at.axis[0]);
  const int               columns = min(query.columns, static_cast<int>(out.box.Extent(0) - at.axis[0]));
  const int               left = max(firstOfTile - query.x.radius - 1, 0) / count * count;
  const BoxesInRow<count> boxes(query.x, firstOfTile, columns, left, none);
  const int               column = left + thread * count;
  const bool              isThere = column < min(query.width, firstOfTile + columns + query.x.radius);
  entries += column;
  const std::int64_t outStride = Pick<std::int64_t>(out.stride, query.march.axis);
  char *             to[count];
#pragma unroll
  for (int k = 0; k < count; ++k)
  {
    to[k] = out.data + (thread + k * threads) * out.stride.axis[0];
  }

  ManyBoxVoxels voxels[count];
  int           voxelsOf = 0; // rows
  int           sumsAt = 0;
  const auto    finish = [&](const Columns & sum, int inRows) {
    TEntry * const sumsOfRow = sums + sumsAt;
    sumsAt = rowOfSums - sumsAt;
    reinterpret_cast<Columns *>(sumsOfRow)[thread] = sum;
    if (inRows != voxelsOf)
    {
      voxelsOf = inRows;
      SetBoxVoxels(inLast * inRows, boxes.voxels, voxels);
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < count; ++k)
    {
      if (boxes.isThere[k])
      {
        const TEntry last = sumsOfRow[boxes.last[k]];
        const TEntry before = sumsOfRow[boxes.before[k]];
        const TEntry inBox = boxes.meetsTwo[k] ? (sumsOfRow[boxes.end[k]] - before) + last : last - before;
        StoreBox<TOut>(to[k], inBox, voxels[k], kind, statistic);
      }
      to[k] += outStride;
    }
  };
  if constexpr (VKeepsRows)
  {
    const BoxRow<TEntry> first(entries + begin * query.rowStride, lastTerms, isThere);
    MarchKeepingRows(query, first, ring, plan, rows, begin, end, finish);
  }
  else
  {
    MarchReadingRows(query, entries, isThere, plan, rows, finish);
  }
}

/** How many threads a block has, and what memory. */
struct RowsLaunch
{
  int         threads{ 0 };
  std::size_t shared{ 0 };
};

/** Deals columns and rows to blocks. No threads: too much of what they would read is beyond their tile, or it takes too
 * much memory. */
template <typename TEntry>
RowsLaunch
DealRows(RowsQuery & query, const Box & output, bool keepsRows)
{
  // The least part of the columns that a block reads that it has boxes of.
  constexpr double   leastUse = 0.75;
  constexpr int      count = BoxColumns<TEntry>::Count;
  const std::int64_t over = 2 * std::int64_t{ query.x.radius } + count;
  const std::int64_t kept = 2 * std::int64_t{ query.march.radius } + 2;
  RowsLaunch         best;
  double             leastCost = 0;
  for (int threads = 64; threads <= MostRowThreads; threads += 32)
  {
    const std::int64_t columns = threads * count - over;
    const std::int64_t held = (keepsRows ? kept + 1 : 0) * threads + 2 * (threads + 1);
    const auto shared = static_cast<std::size_t>(held) * sizeof(BoxColumns<TEntry>) + MostRows * sizeof(BoxRowPlan);
    if (static_cast<double>(columns) < leastUse * threads * count || shared > LargestSharedMemory)
    {
      continue;
    }
    // Small blocks wait less for each other.
    const std::int64_t tiles = (output.Extent(0) + columns - 1) / columns;
    const double       cost = static_cast<double>(tiles * threads) * (1 + threads / 1536.0);
    if (best.threads == 0 || cost < leastCost)
    {
      leastCost = cost;
      best = { threads, shared };
      query.columns = static_cast<std::int32_t>((output.Extent(0) + tiles - 1) / tiles);
    }
  }
  query.keptRows = static_cast<std::int32_t>(keepsRows ? kept : 0);
  // So many that those before a block's first, which it reads too, are not much beside them.
  const std::int64_t rows = output.Extent(query.march.axis);
  const std::int64_t most = std::min<std::int64_t>(MostRows, std::max<std::int64_t>(64, 8 * kept));
  const std::int64_t parts = (rows + most - 1) / most;
  query.rows = static_cast<std::int32_t>((rows + parts - 1) / parts);
  return best;
}

template <bool VKeepsRows, typename TOut, typename TEntry>
void
LaunchRows(const KernelCall & call, const RowsQuery & query, const RowsLaunch & launch, const TEntry * entries)
{
  std::int64_t blocks = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    blocks *= query.TilesAlong(call.output.box, a);
  }
  const auto kernel = RowsKernel<VKeepsRows, TOut, TEntry>;
  AllowSharedMemory(kernel, launch.shared);
  kernel<<<static_cast<unsigned int>(blocks),
           static_cast<unsigned int>(launch.threads),
           launch.shared,
           StreamOf(call)>>>(query, entries, BoxBytesOf(call.output), call.output.kind, StatisticOf(call));
  CheckLaunch("RowsKernel");
}

/** A query of boxes of one size, and the blocks that it is dealt to. */
struct DealtRows
{
  RowsQuery  query{};
  RowsLaunch launch{}; ///< no threads: there is none
  bool       keepsRows{ false };
};

template <typename TEntry>
DealtRows
MakeRows(const BoxTable & table, const Box & output)
{
  int others[MaxSpatialAxes]{ 1, -1, -1 };
  int count = 0;
  for (int part = 0; part < table.count; ++part)
  {
    if (table.parts[part] > 0)
    {
      others[count++] = table.parts[part];
    }
  }
  DealtRows              dealt;
  RowsQuery &            query = dealt.query;
  const int              march = others[0];
  constexpr std::int64_t limit = std::int64_t{ 1 } << 30;
  if (count > 2 || table.axes[0].extent >= limit || table.axes[march].extent >= limit)
  {
    return dealt;
  }
  query.x = MakeQueryAxis<std::int32_t>(table, output, 0);
  query.march = MakeQueryAxis<std::int32_t>(table, output, march);
  query.march.stride = 1;
  query.last.axis = -1;
  query.last.length = 1;
  if (count == 2)
  {
    query.last = MakeQueryAxis<std::int64_t>(table, output, others[1]);
  }
  query.rowStride = table.axes[march].stride;
  for (int a = 1; a < MaxDimension; ++a)
  {
    query.stride[a] = a == march || a == query.last.axis ? 0 : table.axes[a].stride;
  }
  query.width = static_cast<std::int32_t>(table.axes[1].stride);
  // The rows of two axes alone are still in the L2 cache when they are read again.
  dealt.keepsRows = count == 2;
  dealt.launch = DealRows<TEntry>(query, output, dealt.keepsRows);
  return dealt;
}

} // namespace

bool
SupportsBoxRows(const BoxStatisticOperation & operation, const BoxTable & table, const Box & output, const Box & image,
                PixelType input)
{
  bool supports = false;
  DispatchBoxTypes(operation, image.Extents(), input, [&](auto, auto entry) {
    supports = !operation.variable && MakeRows<decltype(entry)>(table, output).launch.threads > 0;
  });
  return supports;
}

void
QueryBoxRows(const KernelCall & call, const BoxTable & table)
{
  DispatchBoxTypes(call, [&](auto, auto entry) {
    using Entry = decltype(entry);
    const DealtRows     dealt = MakeRows<Entry>(table, call.output.box);
    const Entry * const entries = static_cast<const Entry *>(call.scratch);
    DispatchBoxOutput<Entry>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      dealt.keepsRows ? LaunchRows<true, Out>(call, dealt.query, dealt.launch, entries)
                      : LaunchRows<false, Out>(call, dealt.query, dealt.launch, entries);
    });
  });
}

} // namespace chunkwise
