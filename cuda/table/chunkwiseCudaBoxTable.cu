/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaBoxStatistic.cuh"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"

#include <cstring>

// A table is made by warps that each own the columns of a block along x, or of a part of it, and march down the block:
// what the rows above sum to stays in registers, what the planes before sum to is read back from the table, which the
// L2 cache still has. So a chunk's input is read once and its table written once.
namespace chunkwise
{

namespace
{

constexpr int          WarpsPerBlock = 4;
constexpr int          Segments = 4; ///< that a warp has in registers
constexpr unsigned int AllLanes = 0xFFFFFFFFU;

static_assert(BoxStatisticOperation::SegmentColumns == 64, "two columns a lane");
static_assert(BoxStatisticOperation::LeastBlockColumns == 64 * Segments, "a short block is in registers");

template <typename T>
struct alignas(2 * sizeof(T) < 16 ? 2 * sizeof(T) : 16) Pair
{
  T a;
  T b;
};

template <typename TMove, typename T>
__device__ T
MoveWords(const T & value, TMove && move)
{
  constexpr int words = sizeof(T) / 4;
  union Words
  {
    T             value;
    std::uint32_t word[words];
    __device__
    Words()
    {}
  };
  Words in;
  Words out;
  in.value = value;
#pragma unroll
  for (int i = 0; i < words; ++i)
  {
    out.word[i] = move(in.word[i]);
  }
  return out.value;
}

template <typename T>
__device__ T
FromLaneBefore(const T & value, int distance)
{
  return MoveWords(value, [&](std::uint32_t word) { return __shfl_up_sync(AllLanes, word, distance); });
}

template <typename T>
__device__ T
FromLastLane(const T & value)
{
  return MoveWords(value, [](std::uint32_t word) { return __shfl_sync(AllLanes, word, 31); });
}

/** How the rows of a chunk are dealt to warps. */
struct Deal
{
  /** The axes that a warp marches along, the first the inner one; -1: none. */
  int inner;
  int outer;
  /** Along each axis, the positions that a warp has, and how many warps that makes. */
  Coordinates step;
  Coordinates count;
  /** Pixels and entries from one row, and from one plane, to the next. */
  std::int64_t inRow;
  std::int64_t inPlane;
  std::int64_t toRow;
  std::int64_t toPlane;

  __host__ __device__ std::int64_t
                      Tasks() const
  {
    std::int64_t tasks = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      tasks *= count.axis[a];
    }
    return tasks;
  }
};

/** The columns of one row that a warp works on: Segments segments, a pair of columns a lane of each. Small pixels stay
 * as they were loaded until they are needed: to take them apart would be to wait for them. */
template <typename TPixel>
struct RowPixels
{
  using Raw = std::conditional_t<sizeof(TPixel) == 1, std::uint16_t,
                                 std::conditional_t<sizeof(TPixel) == 2, std::uint32_t, Pair<TPixel>>>;
  static_assert(sizeof(Raw) == sizeof(Pair<TPixel>), "two pixels");

  Raw raw[Segments];

  /** `columns`: the number of columns from here on. */
  __device__ void
  Load(const TPixel * __restrict__ row, std::int64_t stride, std::int64_t columns)
  {
    const int  lane = static_cast<int>(threadIdx.x % 32);
    const bool isAligned = reinterpret_cast<std::uintptr_t>(row) % sizeof(Raw) == 0;
    if (stride == 1 && isAligned && columns >= 64 * Segments)
    {
#pragma unroll
      for (int s = 0; s < Segments; ++s)
      {
        raw[s] = *reinterpret_cast<const Raw *>(row + 64 * s + 2 * lane);
      }
      return;
    }
#pragma unroll
    for (int s = 0; s < Segments; ++s)
    {
      const int          column = 64 * s + 2 * lane;
      const Pair<TPixel> pair{ column < columns ? row[column * stride] : TPixel(0),
                               column + 1 < columns ? row[(column + 1) * stride] : TPixel(0) };
      raw[s] = Reinterpret<Raw>(pair);
    }
  }
  __device__ Pair<TPixel>
             Get(int segment) const
  {
    return Reinterpret<Pair<TPixel>>(raw[segment]);
  }

private:
  template <typename TTo, typename TFrom>
  __device__ static TTo
  Reinterpret(const TFrom & from)
  {
    TTo to;
    memcpy(&to, &from, sizeof(to));
    return to;
  }
};

/** The sums that a row's columns add to the table, see BoxStatisticOperation. `before` is the sum of the segments
 * before, and then also of these. */
template <bool VScans, typename TPixel, typename TEntry>
__device__ void
ScanPixels(const RowPixels<TPixel> & pixels, TEntry & before, Pair<TEntry> (&sums)[Segments])
{
  const int lane = static_cast<int>(threadIdx.x % 32);
#pragma unroll
  for (int s = 0; s < Segments; ++s)
  {
    const Pair<TPixel> pair = pixels.Get(s);
    const auto         a = BoxEntryOf<TEntry>(pair.a);
    const auto         b = BoxEntryOf<TEntry>(pair.b);
    if constexpr (!VScans)
    {
      sums[s] = { TEntry{} + a, TEntry{} + b };
      continue;
    }
    const TEntry both = a + b;
    TEntry       total = both;
#pragma unroll
    for (int d = 1; d < 32; d *= 2)
    {
      const TEntry other = FromLaneBefore(total, d);
      total = lane >= d ? other + total : total;
    }
    const TEntry other = FromLaneBefore(total, 1);
    const TEntry left = before + (lane > 0 ? other : TEntry{});
    sums[s] = { left + a, left + both };
    before = before + FromLastLane(total);
  }
}

template <bool VScans, typename TPixel, typename TEntry>
__global__ void __launch_bounds__(32 * WarpsPerBlock)
  TableKernel(Voxels<const TPixel> in, BoxTable table, Deal deal, TEntry * __restrict__ entries)
{
  const std::int64_t task = static_cast<std::int64_t>(blockIdx.x) * WarpsPerBlock + threadIdx.x / 32;
  if (task >= deal.Tasks())
  {
    return;
  }
  const int    lane = static_cast<int>(threadIdx.x % 32);
  Coordinates  at{};
  std::int64_t rest = task;
  std::int64_t rows = 1;
  std::int64_t planes = 1;
#pragma unroll
  for (int a = 0; a < MaxDimension; ++a)
  {
    at.axis[a] = table.box.lower.axis[a] + rest % deal.count.axis[a] * deal.step.axis[a];
    rest /= deal.count.axis[a];
    const std::int64_t positions = min(deal.step.axis[a], table.box.upper.axis[a] - at.axis[a]);
    rows = a == deal.inner ? positions : rows;
    planes = a == deal.outer ? positions : planes;
  }
  const TPixel * const from = in.data + in.Offset(at);
  TEntry * const       to = entries + table.Offset(at);
  const std::int64_t   columns = table.box.upper.axis[0] - at.axis[0];
  const std::int64_t   padded = table.axes[1].stride - (at.axis[0] - table.box.lower.axis[0]);
  const std::int64_t   width = min(deal.step.axis[0], columns);

  // Blocks that are wider than what a warp has at once are dealt without rows to march along.
  TEntry before{};
  for (std::int64_t first = 0; first < width; first += 64 * Segments)
  {
    TEntry            total{};
    Pair<TEntry>      rowsBefore[Segments];
    RowPixels<TPixel> pixels;
    pixels.Load(from + first * in.stride.axis[0], in.stride.axis[0], columns - first);
    for (std::int64_t plane = 0; plane < planes; ++plane)
    {
      for (std::int64_t row = 0; row < rows; ++row)
      {
        const RowPixels<TPixel> now = pixels;
        const bool              endsPlane = row + 1 == rows;
        if (!endsPlane || plane + 1 < planes)
        {
          const std::int64_t next =
            endsPlane ? (plane + 1) * deal.inPlane : plane * deal.inPlane + (row + 1) * deal.inRow;
          pixels.Load(from + next + first * in.stride.axis[0], in.stride.axis[0], columns - first);
        }
        TEntry * const line = to + plane * deal.toPlane + row * deal.toRow + first;
        Pair<TEntry>   planesBefore[Segments];
        if (plane > 0)
        {
#pragma unroll
          for (int s = 0; s < Segments; ++s)
          {
            const int column = 64 * s + 2 * lane;
            if (column < padded - first)
            {
              planesBefore[s] = *reinterpret_cast<const Pair<TEntry> *>(line - deal.toPlane + column);
            }
          }
        }
        Pair<TEntry> sums[Segments];
        total = before;
        ScanPixels<VScans>(now, total, sums);
#pragma unroll
        for (int s = 0; s < Segments; ++s)
        {
          if (row > 0)
          {
            sums[s] = { rowsBefore[s].a + sums[s].a, rowsBefore[s].b + sums[s].b };
          }
          rowsBefore[s] = sums[s];
          if (plane > 0)
          {
            sums[s] = { planesBefore[s].a + sums[s].a, planesBefore[s].b + sums[s].b };
          }
          const int column = 64 * s + 2 * lane;
          if (column < padded - first)
          {
            *reinterpret_cast<Pair<TEntry> *>(line + column) = sums[s];
          }
        }
      }
    }
    before = total;
  }
}

/** Running sums over blocks of an axis, in place: [outer][axis][inner], a thread for a column of a block. */
template <typename TEntry>
__global__ void
MarchKernel(TEntry * __restrict__ entries, std::int64_t inner, std::int64_t positions, std::int64_t length,
            std::int64_t blocks, std::int64_t outer)
{
  constexpr int      ahead = 8;
  const std::int64_t count = inner * blocks * outer;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const std::int64_t rest = i / inner;
    const std::int64_t block = rest % blocks;
    const std::int64_t n = min(length, positions - block * length);
    TEntry *           line = entries + (rest / blocks * positions + block * length) * inner + (i - rest * inner);
    TEntry             sum = *line;
    for (std::int64_t k = 1; k < n; k += ahead)
    {
      TEntry values[ahead];
#pragma unroll
      for (int j = 0; j < ahead; ++j)
      {
        if (k + j < n)
        {
          values[j] = line[(k + j) * inner];
        }
      }
#pragma unroll
      for (int j = 0; j < ahead; ++j)
      {
        if (k + j < n)
        {
          sum = sum + values[j];
          line[(k + j) * inner] = sum;
        }
      }
    }
  }
}

/** Fewer than this many warps do not fill a GPU. */
constexpr std::int64_t EnoughWarps = 1024;

template <typename TPixel, typename TEntry>
void
MakeTable(const KernelCall & call, const BoxTable & table, TEntry * entries)
{
  const BufferView & in = call.inputs[0];
  Deal               deal{ -1, -1, Coordinates::Filled(1), table.box.Extents(), 0, 0, 0, 0 };
  deal.step[0] = table.axes[0].TakesPart() ? table.axes[0].length : 64 * Segments;
  deal.count[0] = (table.box.Extent(0) + deal.step[0] - 1) / deal.step[0];
  bool marched[MaxDimension]{};
  for (int a = 1; a < MaxDimension && deal.step[0] == 64 * Segments && deal.outer < 0; ++a)
  {
    const BoxAxis<std::int64_t> & axis = table.axes[a];
    if (!axis.TakesPart())
    {
      continue;
    }
    Deal       more = deal;
    const bool isInner = deal.inner < 0;
    (isInner ? more.inner : more.outer) = a;
    (isInner ? more.inRow : more.inPlane) = in.stride[a];
    (isInner ? more.toRow : more.toPlane) = axis.stride;
    more.step[a] = axis.length;
    more.count[a] = (table.box.Extent(a) + axis.length - 1) / axis.length;
    if (more.Tasks() < EnoughWarps)
    {
      break;
    }
    deal = more;
    marched[a] = true;
  }
  const auto stream = StreamOf(call);
  const auto blocks = static_cast<unsigned int>((deal.Tasks() + WarpsPerBlock - 1) / WarpsPerBlock);
  if (table.axes[0].TakesPart())
  {
    TableKernel<true><<<blocks, 32 * WarpsPerBlock, 0, stream>>>(VoxelsOf<const TPixel>(in), table, deal, entries);
  }
  else
  {
    TableKernel<false><<<blocks, 32 * WarpsPerBlock, 0, stream>>>(VoxelsOf<const TPixel>(in), table, deal, entries);
  }
  CheckLaunch("TableKernel");
  for (int a = 1; a < MaxDimension; ++a)
  {
    const BoxAxis<std::int64_t> & axis = table.axes[a];
    if (axis.TakesPart() && !marched[a])
    {
      const std::int64_t positions = table.box.Extent(a);
      const std::int64_t blocksOfAxis = (positions + axis.length - 1) / axis.length;
      std::int64_t       outer = 1;
      for (int b = a + 1; b < MaxDimension; ++b)
      {
        outer *= table.box.Extent(b);
      }
      MarchKernel<<<BlocksFor(axis.stride * blocksOfAxis * outer, 256), 256, 0, stream>>>(
        entries, axis.stride, positions, axis.length, blocksOfAxis, outer);
      CheckLaunch("MarchKernel");
    }
  }
}

} // namespace

void
MakeBoxEntries(const KernelCall & call, const BoxTable & table)
{
  DispatchBoxTypes(call, [&](auto pixel, auto entry) {
    MakeTable<decltype(pixel)>(call, table, static_cast<decltype(entry) *>(call.scratch));
  });
}

} // namespace chunkwise
