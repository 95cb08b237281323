/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaPlanes_cuh
#define chunkwiseCudaPlanes_cuh

#include "chunkwiseCudaBlockSums.cuh"

#include <vector>

// The passes along x and y in one kernel: a block marches down a strip of a plane, filters rows as they come, and keeps
// the filtered rows of one window in shared memory. The image is read once and the result of both passes written once.
namespace chunkwise
{

/** Windows up to this many taps are summed tap by tap, see MeanOperation. */
constexpr std::int64_t LongestDirectSum = 9;

/** Threads of a block of PlaneKernel, and columns of its strip. */
constexpr int StripWidth = 128;

/** The shared memory of a block of PlaneKernel, in accumulators. */
struct PlaneLayout
{
  bool        fits{ false };
  bool        blockX{ false };
  bool        blockY{ false };
  int         stagedWidth{ 0 };
  int         stagedStride{ 0 };
  int         stagedBuffers{ 1 }; ///< the values; with blocks along x their prefix and suffix sums too
  int         mostBlocks{ 0 };    ///< of k positions that a staged row may touch
  int         slots{ 0 };         ///< rows of the ring in units of Together
  int         weightsX{ 0 };
  int         weightsY{ 0 };
  std::size_t bytes{ 0 };

  static PlaneLayout
  Make(std::int64_t radiusX, std::int64_t radiusY, std::size_t accumulatorBytes, bool weighted)
  {
    PlaneLayout layout;
    // Far more than shared memory holds; what follows cannot overflow.
    if (radiusX > 65536 || radiusY > 65536)
    {
      return layout;
    }
    const auto kx = static_cast<int>(2 * radiusX + 1);
    const auto ky = static_cast<int>(2 * radiusY + 1);
    layout.blockX = !weighted && kx > LongestDirectSum;
    layout.blockY = !weighted && ky > LongestDirectSum;
    layout.stagedWidth = StripWidth + kx - 1;
    layout.mostBlocks = (layout.stagedWidth + 2 * kx - 2) / kx;
    // The lanes of a warp are on different banks: with blocks they are k apart, from row to row too; else Together,
    // plus one for a gap.
    int stride =
      layout.blockX ? layout.stagedWidth : (layout.stagedWidth + Together) / Together * (Together + 1) + Together;
    const int wanted = layout.blockX ? layout.mostBlocks * kx : StripWidth / Together * (Together + 1);
    while (stride % 32 != wanted % 32)
    {
      ++stride;
    }
    layout.stagedStride = stride;
    layout.stagedBuffers = layout.blockX ? 3 : 1;
    layout.slots = layout.blockY ? 1 : (ky - 1 + Together - 1) / Together + 1;
    layout.weightsX = weighted ? static_cast<int>(PaddedTaps(kx)) : 0;
    layout.weightsY = weighted ? static_cast<int>(PaddedTaps(ky)) : 0;
    const int ringRows = layout.slots * Together + (layout.blockY ? ky : 0);
    layout.bytes = (static_cast<std::size_t>(layout.weightsX + layout.weightsY) +
                    static_cast<std::size_t>(stride) * Together * static_cast<std::size_t>(layout.stagedBuffers) +
                    static_cast<std::size_t>(ringRows) * StripWidth) *
                   accumulatorBytes;
    layout.fits = layout.bytes <= LargestSharedMemory;
    return layout;
  }
};

/** The place of column x in a row of the ring: lanes that write every Together-th column use different banks. */
__device__ inline int
RingColumn(int x)
{
  return x ^ ((x >> 5) & 7);
}

/** One strip of a plane: the outputs in columns [column, column + StripWidth), cut at the plane, and rows [begin, end).
 * The extents along x and y fit 32 bits. */
template <typename TRule, typename TIn, typename TAcc>
class PlaneStrip
{
public:
  __device__
  PlaneStrip(const Pass<TAcc> & xPass, const Pass<TAcc> & yPass, const PlaneLayout & l, TAcc * shared)
    : x(xPass)
    , y(yPass)
    , layout(l)
    , thread(static_cast<int>(threadIdx.x))
    , weightsX(shared)
    , weightsY(weightsX + l.weightsX)
    , staged(weightsY + l.weightsY)
    , ring(staged + l.stagedStride * Together * l.stagedBuffers)
  {}

  __device__ void
  LoadWeightsToShared() const
  {
    for (int t = thread; t < layout.weightsX; t += StripWidth)
    {
      weightsX[t] = x.weights[t];
    }
    for (int t = thread; t < layout.weightsY; t += StripWidth)
    {
      weightsY[t] = y.weights[t];
    }
  }

  __device__ void
  Run(const TIn * __restrict__ plane, TAcc * __restrict__ out, int column, int begin, int end)
  {
    // The first row and column that a window needs, in the buffer: outside of it beyond the edge.
    const int firstColumn = static_cast<int>(x.outLower - x.inLower - x.radius) + column;
    const int firstRow = static_cast<int>(y.outLower - y.inLower - y.radius) + begin;
    const int ahead = static_cast<int>(2 * y.radius);
    const int needed = end - begin + ahead;
    const int chunks =
      layout.blockY ? (needed + Together - 1) / Together : (end - begin + Together - 1) / Together + layout.slots - 1;
    const auto width = static_cast<std::int64_t>(x.outCount);
    const bool stores = column + thread < x.outCount;
    TAcc *     to = out + begin * width + column + thread;
    int        slot = 0;
    TAcc       prefix = x.absent;
    int position = layout.blockY ? static_cast<int>(PositionInBlock(y.outLower - y.radius + begin, ahead + 1)) : 0;
    const int offset =
      layout.blockX ? static_cast<int>(PositionInBlock(x.outLower - x.radius + column, 2 * x.radius + 1)) : 0;
    for (int chunk = 0; chunk < chunks; ++chunk)
    {
      const unsigned int present =
        Stage(plane, column, firstColumn, firstRow + chunk * Together, needed - chunk * Together);
      __syncthreads();
      TAcc * const rows = ring + slot * Together * StripWidth;
      if (layout.blockX)
      {
        SumRowsByBlocks(rows, offset, present);
      }
      else
      {
        SumRows(rows, column, present);
      }
      __syncthreads();
      if (layout.blockY)
      {
        const int count = needed - chunk * Together < Together ? needed - chunk * Together : Together;
        SumColumnByBlocks(to, stores, width, chunk * Together, count, prefix, position);
        continue;
      }
      slot = slot + 1 == layout.slots ? 0 : slot + 1;
      if (chunk >= layout.slots - 1)
      {
        const int o = begin + (chunk - (layout.slots - 1)) * Together;
        SumColumn(to, stores, width, slot, o, end - o);
        to += Together * width;
      }
    }
  }

private:
  /** Reads Together rows from `row` of the buffer on, of which `needed` are. Returns which of them are in the image. */
  __device__ unsigned int
  Stage(const TIn * __restrict__ plane, int column, int firstColumn, int row, int needed) const
  {
    const auto width = static_cast<int>(x.inCount);
    const int  outputs = x.outCount - column < StripWidth ? static_cast<int>(x.outCount) - column : StripWidth;
    const int  useful = outputs + static_cast<int>(2 * x.radius);
    if (row >= 0 && row + Together <= y.inCount)
    {
      const TIn * const first = plane + static_cast<std::int64_t>(row) * width;
      for (int i = thread; i < layout.stagedWidth; i += StripWidth)
      {
        const int   at = firstColumn + i;
        TAcc *      to = staged + StagedColumn(i);
        const TIn * from = first + at;
        if (at >= 0 && at < width)
        {
          TAcc values[Together];
#pragma unroll
          for (int s = 0; s < Together; ++s)
          {
            values[s] = TRule::Load(x, *from);
            from += width;
          }
#pragma unroll
          for (int s = 0; s < Together; ++s)
          {
            *to = values[s];
            to += layout.stagedStride;
          }
        }
        else
        {
#pragma unroll 1
          for (int s = 0; s < Together; ++s)
          {
            *to =
              i < useful ? Fetch<TRule>(x, first + s * static_cast<std::int64_t>(width), 1, x.inLower + at) : x.absent;
            to += layout.stagedStride;
          }
        }
      }
      return (1u << Together) - 1;
    }
    unsigned int present = 0;
#pragma unroll 1
    for (int s = 0; s < Together; ++s)
    {
      std::int64_t at = y.inLower + row + s;
      bool         there = s < needed;
      if (there && (row + s < 0 || row + s >= y.inCount))
      {
        at = MapTap(at, y.inLower, y.inLower + y.inCount, y.n, y.mode);
        there = at >= y.inLower && at < y.inLower + y.inCount;
      }
      present |= there ? 1u << s : 0u;
      const TIn * const line = plane + (there ? at - y.inLower : 0) * width;
#pragma unroll 1
      for (int i = thread; i < layout.stagedWidth; i += StripWidth)
      {
        const int from = firstColumn + i;
        TAcc      value = x.absent;
        if (there && i < useful)
        {
          value = from >= 0 && from < width ? TRule::Load(x, line[from]) : Fetch<TRule>(x, line, 1, x.inLower + from);
        }
        staged[s * layout.stagedStride + StagedColumn(i)] = value;
      }
    }
    return present;
  }

  __device__ __forceinline__ int
  StagedColumn(int i) const
  {
    return layout.blockX ? i : i + i / Together;
  }

  /** The value that a row beyond the edge has after the pass along x. */
  __device__ TAcc
  Absent() const
  {
    return y.mode == BoundaryMode::Constant ? y.constant : y.absent;
  }

  /** Along x, a thread Together outputs of a row. */
  __device__ __forceinline__ void
  SumRows(TAcc * rows, int column, unsigned int present) const
  {
    constexpr int      perRow = StripWidth / Together;
    const int          row = thread / perRow;
    const int          lane = thread % perRow;
    const TAcc * const own = staged + row * layout.stagedStride + lane * (Together + 1);
    TAcc               sums[Together];
    AccumulateOutputs<TRule>(sums, x.absent, weightsX, static_cast<int>(2 * x.radius + 1), [&](int block, int s) {
      return own[block * (Together + 1) + s];
    });
    NormalizeTogether(x, x.outLower + column + lane * Together, x.outCount - column - lane * Together, sums);
    if ((present >> row & 1u) == 0)
    {
#pragma unroll
      for (int u = 0; u < Together; ++u)
      {
        sums[u] = Absent();
      }
    }
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      rows[row * StripWidth + RingColumn(lane * Together + u)] = sums[u];
    }
  }

  /** Along x by prefix and suffix sums of blocks of k positions: block b is at staged positions [b k - offset,
   * (b + 1) k - offset). */
  __device__ __forceinline__ void
  SumRowsByBlocks(TAcc * rows, int offset, unsigned int present) const
  {
    const auto k = static_cast<int>(2 * x.radius + 1);
    const int  stride = layout.stagedStride;
    TAcc * const __restrict__ prefixes = staged + stride * Together;
    TAcc * const __restrict__ suffixes = prefixes + stride * Together;
    const int half = Together * layout.mostBlocks;
#pragma unroll 1
    for (int work = thread; work < 2 * half; work += StripWidth)
    {
      const bool forwards = work < half;
      const int  row = (forwards ? work : work - half) / layout.mostBlocks;
      const int  b = (forwards ? work : work - half) - row * layout.mostBlocks;
      const int  lower = b * k - offset > 0 ? b * k - offset : 0;
      const int  blockEnd = (b + 1) * k - offset;
      const int  upper = blockEnd < layout.stagedWidth ? blockEnd : layout.stagedWidth;
      // No window that begins in a block that goes on after the last tap ends in the next.
      if (lower >= upper || (!forwards && blockEnd > layout.stagedWidth))
      {
        continue;
      }
      const int first = row * stride + (forwards ? lower : upper - 1);
      const int step = forwards ? 1 : -1;
      const TAcc * __restrict__ const from = staged + first;
      TAcc * __restrict__ const to = (forwards ? prefixes : suffixes) + first;
      TAcc sum = forwards ? x.absent : from[0];
      if (!forwards)
      {
        to[0] = sum;
      }
#pragma unroll 4
      for (int i = forwards ? 0 : 1; i < upper - lower; ++i)
      {
        sum = TRule::Join(sum, from[i * step]);
        to[i * step] = sum;
      }
    }
    __syncthreads();
    const bool whole = (offset + thread) % k == 0;
#pragma unroll
    for (int row = 0; row < Together; ++row)
    {
      const TAcc prefix = prefixes[row * stride + thread + k - 1];
      const TAcc value = whole ? prefix : TRule::Join(suffixes[row * stride + thread], prefix);
      rows[row * StripWidth + RingColumn(thread)] = (present >> row & 1u) != 0 ? value : Absent();
    }
  }

  /** Along y, a thread Together outputs of its column from output row `o` on, of which `count` are there; the oldest
   * rows are in `slot`. */
  __device__ __forceinline__ void
  SumColumn(TAcc * to, bool stores, std::int64_t width, int slot, int o, int count) const
  {
    const TAcc * const own = ring + RingColumn(thread);
    TAcc               sums[Together];
    AccumulateOutputs<TRule>(sums, y.absent, weightsY, static_cast<int>(2 * y.radius + 1), [&](int block, int s) {
      const int at = slot + block < layout.slots ? slot + block : slot + block - layout.slots;
      return own[at * (Together * StripWidth) + s * StripWidth];
    });
    NormalizeTogether(y, y.outLower + o, count, sums);
    if (stores)
    {
#pragma unroll
      for (int u = 0; u < Together; ++u)
      {
        if (u < count)
        {
          *to = sums[u];
        }
        to += width;
      }
    }
  }

  /** Along y by blocks: the ring's first Together rows are new, `count` of them needed; the others are the thread's
   * slots, which hold the values of the block that is being read and, ahead of them, the suffix sums of the block
   * before. `read` counts the rows before; `to` moves on. */
  __device__ __forceinline__ void
  SumColumnByBlocks(TAcc *& to, bool stores, std::int64_t width, int read, int count, TAcc & prefix,
                    int & position) const
  {
    const TAcc * const own = ring + RingColumn(thread);
    TAcc * const       slots = ring + Together * StripWidth + thread;
    const auto         k = static_cast<int>(2 * y.radius + 1);
#pragma unroll 1
    for (int s = 0; s < count; ++s)
    {
      const TAcc value = own[s * StripWidth];
      prefix = TRule::Join(prefix, value);
      if (read + s >= k - 1)
      {
        if (stores)
        {
          *to = position == k - 1 ? prefix : TRule::Join(slots[(position + 1) * StripWidth], prefix);
        }
        to += width;
      }
      slots[position * StripWidth] = value;
      if (++position == k)
      {
        SuffixSums<TRule>(slots, StripWidth, k, read + s < k - 1 ? k - 1 - (read + s) : 0);
        position = 0;
        prefix = x.absent;
      }
    }
  }

  const Pass<TAcc> &  x;
  const Pass<TAcc> &  y;
  const PlaneLayout & layout;
  const int           thread;
  TAcc * const        weightsX;
  TAcc * const        weightsY;
  TAcc * const        staged;
  TAcc * const        ring;
};

template <typename TRule, typename TIn, typename TAcc>
__global__ void
__launch_bounds__(StripWidth, sizeof(TAcc) == 4 ? 8 : 4)
  PlaneKernel(const __grid_constant__ Pass<TAcc> x, const __grid_constant__ Pass<TAcc> y, const TIn * __restrict__ in,
              TAcc * __restrict__ out, const __grid_constant__ PlaneLayout layout, int segment)
{
  extern __shared__ __align__(16) unsigned char memory[];
  PlaneStrip<TRule, TIn, TAcc>                  strip(x, y, layout, reinterpret_cast<TAcc *>(memory));
  strip.LoadWeightsToShared();
  const auto columns = static_cast<int>((x.outCount + StripWidth - 1) / StripWidth);
  const auto segments = static_cast<int>((y.outCount + segment - 1) / segment);
  const auto strips = static_cast<std::int64_t>(columns) * segments;
  for (std::int64_t tile = blockIdx.x; tile < strips * y.outer; tile += gridDim.x)
  {
    const std::int64_t plane = tile / strips;
    const auto         rest = tile - plane * strips;
    const auto         begin = static_cast<int>(rest / columns) * segment;
    const int          end = begin + segment < y.outCount ? begin + segment : static_cast<int>(y.outCount);
    strip.Run(in + plane * y.inCount * x.inCount,
              out + plane * y.outCount * x.outCount,
              static_cast<int>(rest % columns) * StripWidth,
              begin,
              end);
    __syncthreads();
  }
}

/** Rows of a strip, for several waves of a large device; but a strip reads ahead before its first output. */
inline std::int64_t
PlaneSegment(std::int64_t strips, std::int64_t rows, std::int64_t radius)
{
  const std::int64_t wanted = std::max<std::int64_t>(1, 8192 / std::max<std::int64_t>(1, strips));
  const std::int64_t shortest = std::max<std::int64_t>(64, 12 * radius);
  const std::int64_t segments = std::min<std::int64_t>(wanted, std::max<std::int64_t>(1, rows / shortest));
  return ((rows + segments - 1) / segments + Together - 1) / Together * Together;
}

/** Both passes, where the layout fits. */
template <typename TRule, typename TIn, typename TAcc>
void
LaunchPlanes(const Pass<TAcc> & x, const Pass<TAcc> & y, const TIn * in, TAcc * out, cudaStream_t stream)
{
  const PlaneLayout  layout = PlaneLayout::Make(x.radius, y.radius, sizeof(TAcc), TRule::Weighted);
  const std::int64_t columns = (x.outCount + StripWidth - 1) / StripWidth;
  const std::int64_t segment = PlaneSegment(columns * y.outer, y.outCount, y.radius);
  const std::int64_t tiles = columns * ((y.outCount + segment - 1) / segment) * y.outer;
  const auto         kernel = PlaneKernel<TRule, TIn, TAcc>;
  AllowSharedMemory(kernel, layout.bytes);
  kernel<<<BlocksFor(tiles, 1), StripWidth, layout.bytes, stream>>>(x, y, in, out, layout, static_cast<int>(segment));
  CheckLaunch("PlaneKernel");
}

/** One pass along x, tap by tap or by blocks. */
template <typename TRule, typename TIn, typename TAcc>
void
LaunchSumRows(const Pass<TAcc> & pass, const TIn * in, TAcc * out, cudaStream_t stream)
{
  TapsOf<TRule>(pass) > LongestDirectSum ? LaunchBlockRows<TRule>(pass, in, out, stream)
                                         : LaunchRows<TRule>(pass, in, out, stream);
}
/** The same along another axis. */
template <typename TRule, typename TIn, typename TAcc, typename TStore>
void
LaunchSumColumns(const Pass<TAcc> & pass, const TIn * in, const TStore & store, cudaStream_t stream)
{
  TapsOf<TRule>(pass) > LongestDirectSum ? LaunchBlockColumns<TRule>(pass, in, store, stream)
                                         : LaunchColumns<TRule>(pass, in, store, stream);
}

/** RunPasses of a rule without weights. */
template <typename TRule, typename TIn, typename TAcc, typename TFinish>
void
RunSumPasses(const KernelCall & call, const PassPlan & plan, const std::vector<Pass<TAcc>> & passes, TAcc flip,
             const TFinish & finish)
{
  const cudaStream_t stream = StreamOf(call);
  RunPasses<TRule, TIn, TAcc>(
    call,
    plan,
    flip,
    finish,
    [&](const TIn * in, TAcc * out) { LaunchPlanes<TRule>(passes[0], passes[1], in, out, stream); },
    [&](int i, const TIn * in, TAcc * out) {
      plan.axes[i] == 0 ? LaunchSumRows<TRule>(passes[i], in, out, stream)
                        : LaunchSumColumns<TRule>(passes[i], in, StoreAccumulator<TAcc>{ out }, stream);
    },
    [&](int i, const TAcc * in, const auto & store) { LaunchSumColumns<TRule>(passes[i], in, store, stream); });
}

} // namespace chunkwise

#endif
