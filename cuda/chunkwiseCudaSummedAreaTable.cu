/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseSummedAreaTableOperation.h"

#include <cmath>

namespace chunkwise
{

namespace
{

constexpr int SectionRows = SummedAreaTableOperation::SectionRows;
constexpr int Tile = SummedAreaTableOperation::BlockRows;
constexpr int Sections = Tile / SectionRows;
constexpr int Group = SummedAreaTableOperation::GroupColumns;
constexpr int TileThreads = Sections * 32;
static_assert(SummedAreaTableOperation::BlockColumns == Tile && Group * 32 == Tile, "a warp has a row of a tile");

/** The planes that three summed axes need at a time should stay in the second-level cache. */
constexpr std::size_t  PlanesBytes = std::size_t{ 32 } << 20;
constexpr std::int64_t MostSlices = 64;

/** Sums of integers wrap around, so all are unsigned here. */
template <typename TIn>
using AccumulatorOf = std::conditional_t<std::is_floating_point<TIn>::value, double, std::uint64_t>;

template <typename TAcc, typename TIn>
__device__ __forceinline__ TAcc
Term(TIn value, bool squares)
{
  const auto wide = static_cast<TAcc>(value);
  return squares ? wide * wide : wide;
}

/** What a tile has published: nothing, its own sums, or those of all tiles up to it. */
enum : unsigned int
{
  Nothing,
  Own,
  UpTo
};

/** One kernel call on planes that are independent of each other. */
template <typename TIn, typename TOut, typename TAcc>
struct Table
{
  const TIn *  in; ///< rows [firstRow, lastRow) of all columns
  TOut *       out;
  Box          store; ///< of the output: columns and rows; x and y alone count
  std::int64_t columns;
  std::int64_t firstRow;
  std::int64_t lastRow;
  std::int64_t planes;
  std::int64_t tileColumns;
  std::int64_t tileRows; ///< those that [firstRow, lastRow) touches
  bool         aligned;  ///< rows of input and output are whole and begin where a group of pixels may be read at once
  bool         squares;
  const TAcc * carry; ///< C, S and l before the first row; nullptr: 0
  // A row or a column of each tile.
  TAcc *               ownColumns;
  TAcc *               columnsUpTo;
  TAcc *               ownRows;
  TAcc *               rowsUpTo;
  unsigned int *       columnStates;
  unsigned int *       rowStates;
  unsigned long long * ticket;
};

__device__ __forceinline__ unsigned int
Acquire(const unsigned int * state)
{
  unsigned int value;
  asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(state) : "memory");
  return value;
}

__device__ __forceinline__ void
Release(unsigned int * state, unsigned int value)
{
  asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(state), "r"(value) : "memory");
}

/** By a whole warp: the nearest tile before number `at` of a line of tiles `stride` apart that has published UpTo, -1
 * if there is none and all before have published their own. Waits for those in between. */
__device__ std::int64_t
           NearestUpTo(const unsigned int * states, std::int64_t stride, std::int64_t at)
{
  const int    lane = static_cast<int>(threadIdx.x % 32);
  std::int64_t end = at;
  while (end > 0)
  {
    const std::int64_t mine = end - 1 - lane;
    unsigned int       state = Own;
    unsigned int       absent;
    unsigned int       complete;
    do
    {
      state = mine >= 0 ? Acquire(states + mine * stride) : static_cast<unsigned int>(Own);
      absent = __ballot_sync(~0u, state == Nothing);
      complete = __ballot_sync(~0u, state == UpTo);
      // What lies beyond the nearest complete one does not matter.
      absent &= complete ? (complete & (0u - complete)) - 1 : ~0u;
    } while (absent);
    if (complete)
    {
      return end - __ffs(static_cast<int>(complete));
    }
    end -= 32;
  }
  return -1;
}

/** Publishes this tile's own sums of a row or column (one for each of the first Tile threads), adds those before it in
 * order, publishes the sum up to here, and gives what is before. All threads of the block call it. */
template <typename TAcc>
__device__ TAcc
LookBack(TAcc own, TAcc first, TAcc * ownSums, TAcc * upTo, unsigned int * states, std::int64_t tile,
         std::int64_t stride, std::int64_t at, std::int64_t & shared)
{
  const int  thread = static_cast<int>(threadIdx.x);
  const auto line = tile - at * stride;
  if (at > 0)
  {
    if (thread < Tile)
    {
      __stcg(ownSums + tile * Tile + thread, own);
    }
    __threadfence();
    __syncthreads();
    if (thread == 0)
    {
      Release(states + tile, Own);
    }
    if (thread < 32)
    {
      const std::int64_t nearest = NearestUpTo(states + line, stride, at);
      if (thread == 0)
      {
        shared = nearest;
      }
      __threadfence();
    }
    __syncthreads();
  }
  TAcc before = first;
  if (thread < Tile)
  {
    if (at > 0)
    {
      const std::int64_t nearest = shared;
      if (nearest >= 0)
      {
        before = __ldcg(upTo + (line + nearest * stride) * Tile + thread);
      }
      for (std::int64_t i = nearest + 1; i < at; ++i)
      {
        before = before + __ldcg(ownSums + (line + i * stride) * Tile + thread);
      }
    }
    __stcg(upTo + tile * Tile + thread, before + own);
  }
  __threadfence();
  __syncthreads();
  if (thread == 0)
  {
    Release(states + tile, UpTo);
  }
  return before;
}

/** Tile number `ticket` in the order of antidiagonals: those to the left and above come before. */
__device__ void
TileOf(std::int64_t ticket, std::int64_t rows, std::int64_t columns, std::int64_t & row, std::int64_t & column)
{
  const std::int64_t shorter = rows < columns ? rows : columns;
  const std::int64_t longer = rows < columns ? columns : rows;
  const std::int64_t triangle = shorter * (shorter - 1) / 2;
  const std::int64_t middle = shorter * (longer - shorter + 1);
  const auto         diagonalOf = [](std::int64_t n) {
    auto d = static_cast<std::int64_t>((sqrt(8.0 * static_cast<double>(n) + 1.0) - 1.0) / 2.0);
    while (d * (d + 1) / 2 > n)
    {
      --d;
    }
    while ((d + 1) * (d + 2) / 2 <= n)
    {
      ++d;
    }
    return d;
  };
  if (ticket < triangle)
  {
    const std::int64_t d = diagonalOf(ticket);
    row = ticket - d * (d + 1) / 2;
    column = d - row;
    return;
  }
  if (ticket < triangle + middle)
  {
    const std::int64_t d = shorter - 1 + (ticket - triangle) / shorter;
    const std::int64_t i = (ticket - triangle) % shorter;
    row = rows <= columns ? i : d - (columns - 1) + i;
    column = d - row;
    return;
  }
  const std::int64_t fromEnd = rows * columns - 1 - ticket;
  const std::int64_t d = diagonalOf(fromEnd);
  row = rows - 1 - (fromEnd - d * (d + 1) / 2);
  column = rows + columns - 2 - d - row;
}

template <typename T>
struct alignas(sizeof(T) * Group > 16 ? 16 : sizeof(T) * Group) FourOf
{
  T value[Group];
};

/** Each tile is read once and written once. A warp has a section of the tile's rows, a lane a group of its columns. */
template <typename TIn, typename TOut, typename TAcc>
__global__ void
__launch_bounds__(TileThreads, sizeof(TIn) <= 4 ? 2 : 1) TableKernel(const Table<TIn, TOut, TAcc> table)
{
  __shared__ TAcc sections[Sections][Tile];
  __shared__ TAcc left[SectionRows][TileThreads];
  __shared__ TAcc columnsBefore[Tile];
  __shared__ TAcc rowTotals[Tile];
  __shared__ TAcc rowsBefore[Tile];
  __shared__ std::int64_t shared;
  const int               thread = static_cast<int>(threadIdx.x);
  const int               lane = thread % 32;
  const int               warp = thread / 32;

  if (thread == 0)
  {
    shared = static_cast<std::int64_t>(atomicAdd(table.ticket, 1ull));
  }
  __syncthreads();
  const std::int64_t tilesOfPlane = table.tileRows * table.tileColumns;
  const std::int64_t plane = shared / tilesOfPlane;
  std::int64_t       tileRow;
  std::int64_t       tileColumn;
  TileOf(shared % tilesOfPlane, table.tileRows, table.tileColumns, tileRow, tileColumn);
  const std::int64_t tile = plane * tilesOfPlane + tileRow * table.tileColumns + tileColumn;

  const std::int64_t x = tileColumn * Tile + lane * Group;
  const std::int64_t y = (table.firstRow / Tile + tileRow) * Tile + warp * SectionRows;
  const TIn * const in = table.in + (plane * (table.lastRow - table.firstRow) + y - table.firstRow) * table.columns + x;
  unsigned int      words[SectionRows][sizeof(FourOf<TIn>) / sizeof(unsigned int)];
#pragma unroll
  for (int r = 0; r < SectionRows; ++r)
  {
    const bool  there = y + r >= table.firstRow && y + r < table.lastRow;
    FourOf<TIn> pixels{};
    if (table.aligned)
    {
      if (there && x < table.columns)
      {
        pixels = *reinterpret_cast<const FourOf<TIn> *>(in + r * table.columns);
      }
    }
    else
    {
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        pixels.value[i] = there && x + i < table.columns ? in[r * table.columns + i] : TIn{ 0 };
      }
    }
    __builtin_memcpy(words[r], &pixels, sizeof(pixels));
  }
  // The compiler must not keep the terms from one use to the next: they take more registers than the words.
  const auto pixelsOf = [&](int r) {
    FourOf<TIn> pixels;
#pragma unroll
    for (unsigned int & word : words[r])
    {
      asm volatile("" : "+r"(word));
    }
    __builtin_memcpy(&pixels, words[r], sizeof(pixels));
    return pixels;
  };

  const bool isFirst = tileRow == 0 && table.carry;
  // The rows of the section that are not in this call.
  const auto startOf = [&](int i) {
    return isFirst && y < table.firstRow && y + SectionRows > table.firstRow && x + i < table.columns
             ? table.carry[2 * table.columns + x + i]
             : TAcc(0);
  };
  TAcc local[Group];
#pragma unroll
  for (int i = 0; i < Group; ++i)
  {
    local[i] = startOf(i);
  }
#pragma unroll
  for (int r = 0; r < SectionRows; ++r)
  {
    const FourOf<TIn> pixels = pixelsOf(r);
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      local[i] = local[i] + Term<TAcc>(pixels.value[i], table.squares);
    }
  }
#pragma unroll
  for (int i = 0; i < Group; ++i)
  {
    sections[warp][lane * Group + i] = local[i];
  }
  __syncthreads();

  TAcc own = TAcc(0);
  TAcc first = TAcc(0);
  if (thread < Tile)
  {
    const std::int64_t column = tileColumn * Tile + thread;
    if (isFirst && column < table.columns)
    {
      first = table.carry[column];
      own = table.carry[table.columns + column];
    }
    for (int s = 0; s < Sections; ++s)
    {
      const TAcc total = sections[s][thread];
      sections[s][thread] = own;
      own = own + total;
    }
  }
  const TAcc above = LookBack(
    own, first, table.ownColumns, table.columnsUpTo, table.columnStates, tile, table.tileColumns, tileRow, shared);
  if (thread < Tile)
  {
    columnsBefore[thread] = above;
  }
  __syncthreads();

  TAcc block[Group];
  TAcc section[Group];
#pragma unroll
  for (int i = 0; i < Group; ++i)
  {
    block[i] = columnsBefore[lane * Group + i];
    section[i] = sections[warp][lane * Group + i];
    local[i] = startOf(i);
  }
  // The sums of a row's group up to each of its columns.
  const auto groupOfRow = [&](int r, TAcc(&sums)[Group]) {
    const FourOf<TIn> pixels = pixelsOf(r);
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      local[i] = local[i] + Term<TAcc>(pixels.value[i], table.squares);
      sums[i] = block[i] + (section[i] + local[i]);
      // Columns beyond the image have no sums.
      sums[i] = x + i < table.columns ? sums[i] : TAcc(0);
      if (i > 0)
      {
        sums[i] = sums[i - 1] + sums[i];
      }
    }
  };
#pragma unroll
  for (int r = 0; r < SectionRows; ++r)
  {
    TAcc sums[Group];
    groupOfRow(r, sums);
    TAcc total = sums[Group - 1];
#pragma unroll
    for (int d = 1; d < 32; d *= 2)
    {
      const TAcc other = __shfl_up_sync(~0u, total, d);
      total = lane >= d ? other + total : total;
    }
    const TAcc other = __shfl_up_sync(~0u, total, 1);
    left[r][thread] = lane == 0 ? TAcc(0) : other;
    if (lane == 31)
    {
      rowTotals[warp * SectionRows + r] = total;
    }
  }
  __syncthreads();
  const TAcc leftOfTile = LookBack(thread < Tile ? rowTotals[thread] : TAcc(0),
                                   TAcc(0),
                                   table.ownRows,
                                   table.rowsUpTo,
                                   table.rowStates,
                                   tile,
                                   1,
                                   tileColumn,
                                   shared);
  if (thread < Tile)
  {
    rowsBefore[thread] = leftOfTile;
  }
  __syncthreads();

  const std::int64_t outColumns = table.store.Extent(0);
  TOut * const out = table.out + (plane * table.store.Extent(1) + y - table.store.lower.axis[1]) * outColumns + x -
                     table.store.lower.axis[0];
#pragma unroll
  for (int i = 0; i < Group; ++i)
  {
    local[i] = startOf(i);
  }
#pragma unroll
  for (int r = 0; r < SectionRows; ++r)
  {
    TAcc sums[Group];
    groupOfRow(r, sums);
    if (y + r < table.store.lower.axis[1] || y + r >= table.store.upper.axis[1])
    {
      continue;
    }
    const TAcc   before = rowsBefore[warp * SectionRows + r];
    FourOf<TOut> results;
#pragma unroll
    for (int i = 0; i < Group; ++i)
    {
      const TAcc sum = before + (left[r][thread] + sums[i]);
      if constexpr (std::is_floating_point<TOut>::value && !std::is_floating_point<TIn>::value &&
                    static_cast<TIn>(-1) < static_cast<TIn>(0))
      {
        results.value[i] = static_cast<TOut>(static_cast<std::int64_t>(sum));
      }
      else
      {
        results.value[i] = static_cast<TOut>(sum);
      }
    }
    if (table.aligned)
    {
      if (x < table.columns)
      {
        *reinterpret_cast<FourOf<TOut> *>(out + r * outColumns) = results;
      }
    }
    else
    {
#pragma unroll
      for (int i = 0; i < Group; ++i)
      {
        if (x + i >= table.store.lower.axis[0] && x + i < table.store.upper.axis[0])
        {
          out[r * outColumns + i] = results.value[i];
        }
      }
    }
  }
}

/** P of a few slices: a thread goes along z. `before`: P of the slice before, nullptr: 0. */
template <typename TIn, typename TAcc>
__global__ void
PlanesKernel(const TIn * in, std::int64_t plane, std::int64_t slices, const TAcc * before, TAcc * planes, bool squares)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < plane; i += step)
  {
    TAcc sum = before ? before[i] : TAcc(0);
    for (std::int64_t z = 0; z < slices; ++z)
    {
      sum = sum + Term<TAcc>(in[z * plane + i], squares);
      planes[z * plane + i] = sum;
    }
  }
}

/** The plane P behind a slab. */
template <typename TIn, typename TAcc>
__global__ void
AdvancePlaneKernel(const TIn * __restrict__ in, std::int64_t plane, std::int64_t      slices,
                   const TAcc * __restrict__ before, TAcc * __restrict__ behind, bool squares)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < plane; i += step)
  {
    TAcc sum = before[i];
#pragma unroll 8
    for (std::int64_t z = 0; z < slices; ++z)
    {
      sum = sum + Term<TAcc>(in[z * plane + i], squares);
    }
    behind[i] = sum;
  }
}

/** The rows C, S and l behind rows [first, last). */
template <typename TIn, typename TAcc>
__global__ void
AdvanceRowsKernel(const TIn * __restrict__ in, std::int64_t columns, std::int64_t first, std::int64_t last,
                  const TAcc * __restrict__ before, TAcc * __restrict__ behind, bool squares)
{
  const std::int64_t x = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (x >= columns)
  {
    return;
  }
  TAcc blocks = before[x];
  TAcc sections = before[columns + x];
  TAcc local = before[2 * columns + x];
  for (std::int64_t y = first; y < last;)
  {
    const std::int64_t end = (y / SectionRows + 1) * SectionRows;
    const std::int64_t stop = end < last ? end : last;
#pragma unroll 16
    for (; y < stop; ++y)
    {
      local = local + Term<TAcc>(in[(y - first) * columns + x], squares);
    }
    if (stop == end)
    {
      sections = sections + local;
      local = TAcc(0);
      if (end % Tile == 0)
      {
        blocks = blocks + sections;
        sections = TAcc(0);
      }
    }
  }
  behind[x] = blocks;
  behind[columns + x] = sections;
  behind[2 * columns + x] = local;
}

/** The tiles of a call of the table's kernel, and where its scratch is. */
struct Tiling
{
  std::int64_t columns;
  std::int64_t rows;
  std::int64_t tiles;

  Tiling(std::int64_t columnCount, std::int64_t firstRow, std::int64_t lastRow, std::int64_t planes)
    : columns((columnCount + Tile - 1) / Tile)
    , rows((lastRow + Tile - 1) / Tile - firstRow / Tile)
    , tiles(columns * rows * planes)
  {}
  std::size_t
  StateBytes() const
  {
    return sizeof(unsigned long long) + static_cast<std::size_t>(tiles) * 2 * sizeof(unsigned int);
  }
  std::size_t
  Bytes() const
  {
    return static_cast<std::size_t>(tiles) * 4 * Tile * sizeof(std::uint64_t) + StateBytes();
  }
};

/** How many slices with three summed axes are worked on together. */
std::int64_t
SlicesAtOnce(std::int64_t plane, std::int64_t slices)
{
  const auto fit = static_cast<std::int64_t>(PlanesBytes / sizeof(std::uint64_t)) / std::max<std::int64_t>(plane, 1);
  return std::max<std::int64_t>(1, std::min({ slices, fit, MostSlices }));
}

template <typename TIn, typename TOut, typename TAcc>
void
LaunchTable(const KernelCall & call, const TIn * in, TOut * out, void * scratch, std::int64_t columns,
            std::int64_t firstRow, std::int64_t lastRow, std::int64_t planes, const void * carry, bool squares)
{
  const Tiling           tiling(columns, firstRow, lastRow, planes);
  Table<TIn, TOut, TAcc> table{};
  table.in = in;
  table.out = out;
  table.store = call.output.box;
  table.columns = columns;
  table.firstRow = firstRow;
  table.lastRow = lastRow;
  table.planes = planes;
  table.tileColumns = tiling.columns;
  table.tileRows = tiling.rows;
  table.carry = static_cast<const TAcc *>(carry);
  const std::int64_t sums = tiling.tiles * Tile;
  table.ownColumns = static_cast<TAcc *>(scratch);
  table.columnsUpTo = table.ownColumns + sums;
  table.ownRows = table.columnsUpTo + sums;
  table.rowsUpTo = table.ownRows + sums;
  table.ticket = reinterpret_cast<unsigned long long *>(table.rowsUpTo + sums);
  table.columnStates = reinterpret_cast<unsigned int *>(table.ticket + 1);
  table.rowStates = table.columnStates + tiling.tiles;
  if (cudaMemsetAsync(table.ticket, 0, tiling.StateBytes(), StreamOf(call)) != cudaSuccess)
  {
    CheckLaunch("cudaMemsetAsync");
  }
  const auto blocks = static_cast<unsigned int>(tiling.tiles);
  // Buffers begin at multiples of 256 bytes, so that whole rows of a multiple of Group columns are aligned.
  table.aligned = columns % Group == 0 && table.store.lower.axis[0] == 0 && table.store.upper.axis[0] == columns;
  table.squares = squares;
  TableKernel<TIn, TOut, TAcc><<<blocks, TileThreads, 0, StreamOf(call)>>>(table);
  CheckLaunch("TableKernel");
}

template <typename TIn, typename TOut, typename TAcc>
void
RunTyped(const KernelCall & call)
{
  const auto &       operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  const Box &        box = call.writable;
  const std::int64_t columns = box.upper[0];
  const auto * const in = static_cast<const TIn *>(call.inputs[0].data);
  auto * const       out = static_cast<TOut *>(call.output.data);
  std::int64_t       outer = 1;
  for (int a = operation.summedAxes; a < MaxDimension; ++a)
  {
    outer *= box.Extent(a);
  }
  if (operation.summedAxes == 2)
  {
    LaunchTable<TIn, TOut, TAcc>(call,
                                 in,
                                 out,
                                 call.scratch,
                                 columns,
                                 operation.FirstIndex(box),
                                 box.upper[1],
                                 outer,
                                 call.sideIn,
                                 operation.squares);
    return;
  }
  const std::int64_t rows = box.upper[1];
  const std::int64_t plane = columns * rows;
  const std::int64_t first = operation.FirstIndex(box);
  const std::int64_t slices = box.upper[2] - first;
  const std::int64_t atOnce = SlicesAtOnce(plane, slices);
  const std::int64_t outPlane = box.Extent(0) * box.Extent(1);
  auto * const       planes = static_cast<TAcc *>(call.scratch);
  // Sums of signed voxels are signed where they are converted.
  using Plane = std::conditional_t<std::is_integral<TIn>::value && std::is_signed<TIn>::value, std::int64_t, TAcc>;
  void * const tiles = planes + plane * atOnce;
  for (std::int64_t volume = 0; volume < outer; ++volume)
  {
    const TAcc * before = static_cast<const TAcc *>(call.sideIn);
    for (std::int64_t z = 0; z < slices; z += atOnce)
    {
      const std::int64_t count = std::min(atOnce, slices - z);
      PlanesKernel<TIn, TAcc><<<BlocksFor(plane, 256), 256, 0, StreamOf(call)>>>(
        in + (volume * slices + z) * plane, plane, count, before, planes, operation.squares);
      CheckLaunch("PlanesKernel");
      before = planes + (count - 1) * plane;
      const std::int64_t skipped = std::min(count, std::max<std::int64_t>(0, box.lower[2] - first - z));
      if (skipped < count)
      {
        LaunchTable<Plane, TOut, TAcc>(call,
                                       reinterpret_cast<const Plane *>(planes) + skipped * plane,
                                       out + (volume * box.Extent(2) + first + z + skipped - box.lower[2]) * outPlane,
                                       tiles,
                                       columns,
                                       0,
                                       rows,
                                       count - skipped,
                                       nullptr,
                                       false);
      }
    }
  }
}

void
RunTable(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using In = decltype(pixel);
    using Acc = AccumulatorOf<In>;
    constexpr bool isFloat = std::is_floating_point<In>::value;
    switch (call.output.kind)
    {
      case PixelKind::Float32:
        return RunTyped<In, float, Acc>(call);
      case PixelKind::Float64:
        return RunTyped<In, double, Acc>(call);
      default:
        if constexpr (!isFloat)
        {
          // Modulo their size, signed and unsigned integers have the same bits.
          PixelSize(call.output.kind) == 4 ? RunTyped<In, std::uint32_t, Acc>(call)
                                           : RunTyped<In, std::uint64_t, Acc>(call);
        }
    }
  });
}

void
RunAdvance(const KernelCall & call)
{
  const auto & operation = static_cast<const SummedAreaTableOperation &>(*call.operation);
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using In = decltype(pixel);
    using Acc = AccumulatorOf<In>;
    const Box &        box = call.writable;
    const auto * const in = static_cast<const In *>(call.inputs[0].data);
    const auto * const before = static_cast<const Acc *>(call.sideIn);
    auto * const       behind = static_cast<Acc *>(call.sideOut);
    if (operation.summedAxes == 2)
    {
      AdvanceRowsKernel<In, Acc><<<BlocksFor(box.upper[0], 64), 64, 0, StreamOf(call)>>>(
        in, box.upper[0], box.lower[1], box.upper[1], before, behind, operation.squares);
    }
    else
    {
      const std::int64_t plane = box.upper[0] * box.upper[1];
      AdvancePlaneKernel<In, Acc><<<BlocksFor(plane, 256), 256, 0, StreamOf(call)>>>(
        in, plane, box.Extent(2), before, behind, operation.squares);
    }
    CheckLaunch("advance of a summed-area table");
  });
}

std::size_t
ScratchOfTable(const Operation & operation, const ChunkShape & shape)
{
  const auto & table = static_cast<const SummedAreaTableOperation &>(operation);
  const Box &  box = shape.outputBox;
  std::int64_t outer = 1;
  for (int a = table.summedAxes; a < MaxDimension; ++a)
  {
    outer *= box.Extent(a);
  }
  if (table.summedAxes == 2)
  {
    // A chunk that begins inside of a tile touches one more than its rows need.
    const Tiling tiling(box.upper[0], 0, box.upper[1] - table.FirstIndex(box) + Tile - 1, outer);
    return tiling.Bytes();
  }
  const std::int64_t plane = box.upper[0] * box.upper[1];
  const std::int64_t slices = box.upper[2] - table.FirstIndex(box);
  // As if each slice had its place until the cache is full: what a chunk needs does not shrink when it grows.
  const auto   most = std::max<std::int64_t>(plane, PlanesBytes / sizeof(std::uint64_t));
  const auto   entries = std::min(plane * slices, most);
  const Tiling one(box.upper[0], 0, box.upper[1], 1);
  const auto   count = std::min(slices, MostSlices);
  return static_cast<std::size_t>(entries) * sizeof(std::uint64_t) + static_cast<std::size_t>(count) * one.Bytes();
}

double
CostOfTable(const Operation & operation, const ChunkShape & shape)
{
  const auto & table = static_cast<const SummedAreaTableOperation &>(operation);
  const double between = table.summedAxes == 3 ? 2.0 * sizeof(std::uint64_t) : 0.0;
  return static_cast<double>(shape.inputBox.NumberOfVoxels()) *
         (static_cast<double>(PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind)) + between);
}

} // namespace

void
RegisterCudaSummedAreaTable(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunTable;
  kernel.scratchBytes = ScratchOfTable;
  kernel.cost = CostOfTable;
  registry.Register("sat", kernel);
  Kernel advance;
  advance.run = RunAdvance;
  registry.Register("sat.advance", advance);
}

} // namespace chunkwise
