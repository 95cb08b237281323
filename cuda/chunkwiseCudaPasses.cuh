/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaPasses_cuh
#define chunkwiseCudaPasses_cuh

#include "chunkwiseCudaKernels.h"
#include "chunkwiseOperation.h"
#include "chunkwiseReducer.h"

#include <algorithm>
#include <cuda_runtime.h>
#include <type_traits>

// Separable windows as passes along one axis of a dense buffer, seen as [outer][axis][inner] with inner the product of
// the extents below the axis. Each pass crops its axis to the chunk's output.
namespace chunkwise
{

__extension__ using Int128 = __int128;

/** Shared memory that a block may ask for on every device that the module is built for. */
constexpr std::size_t LargestSharedMemory = 64 * 1024;

inline cudaStream_t
StreamOf(const KernelCall & call)
{
  return static_cast<cudaStream_t>(call.stream);
}

/** Blocks for n items, few enough for any grid; kernels loop over the rest. */
inline unsigned int
BlocksFor(std::int64_t n, std::int64_t perBlock)
{
  return static_cast<unsigned int>(
    std::max<std::int64_t>(1, std::min<std::int64_t>((n + perBlock - 1) / perBlock, std::int64_t{ 1 } << 24)));
}

template <typename TAcc>
struct Pass
{
  std::int64_t outer;
  std::int64_t inner;
  std::int64_t inCount;  ///< positions of the input along the axis
  std::int64_t outCount; ///< and of the output
  std::int64_t inLower;  ///< image index of the input's first position
  std::int64_t outLower;
  std::int64_t n; ///< the image's extent along the axis
  std::int64_t radius;
  BoundaryMode mode;
  TAcc         constant;
  const TAcc * weights; ///< nullptr: a sum
  const TAcc * norms;   ///< by image index; nullptr: none
};

/** The value at image index `i` of a line whose position 0 is `line`, positions `stride` apart. */
template <typename TAcc, typename TIn>
__device__ TAcc
Fetch(const Pass<TAcc> & pass, const TIn * __restrict__ line, std::int64_t stride, std::int64_t i)
{
  const std::int64_t at = MapTap(i, pass.inLower, pass.inLower + pass.inCount, pass.n, pass.mode);
  if (at < 0 && pass.mode == BoundaryMode::Constant)
  {
    return pass.constant;
  }
  // Absent in Renormalized mode; or a tap of an output that is computed with its neighbours but not stored.
  if (at < pass.inLower || at >= pass.inLower + pass.inCount)
  {
    return TAcc(0);
  }
  return static_cast<TAcc>(line[(at - pass.inLower) * stride]);
}

__device__ inline float
MultiplyAdd(float w, float x, float sum)
{
  return __fmaf_rn(w, x, sum);
}
__device__ inline double
MultiplyAdd(double w, double x, double sum)
{
  return __fma_rn(w, x, sum);
}

template <bool VWeighted, typename TAcc>
__device__ void
Accumulate(TAcc & sum, TAcc weight, TAcc value)
{
  if constexpr (VWeighted)
  {
    sum = MultiplyAdd(weight, value, sum);
  }
  else
  {
    sum += value;
  }
}

/** The R consecutive outputs whose first window begins with the tap fetch(0), for R m + M taps. Taps reach each output
 * in ascending order; each tap is fetched once, and a weight moves through the registers from output to output. Which
 * taps belong to which output is known when this is compiled: a tap outside of a window must not take part, not even
 * with a weight of 0, since it may be infinite. */
template <bool VWeighted, int R, int M, typename TAcc, typename TFetch>
__device__ __forceinline__ void
AccumulateOutputs(TAcc (&sums)[R], const TAcc * __restrict__ weights, int taps, TFetch && fetch)
{
  TAcc w[R];
#pragma unroll
  for (int u = 0; u < R; ++u)
  {
    sums[u] = TAcc(0);
    w[u] = TAcc(0);
  }
  const int blocks = taps / R;
  for (int block = 0; block < blocks; ++block)
  {
    const int base = block * R;
    TAcc      values[R];
#pragma unroll
    for (int s = 0; s < R; ++s)
    {
      values[s] = fetch(base + s);
    }
    if (block == 0)
    {
#pragma unroll
      for (int s = 0; s < R; ++s)
      {
        w[s] = VWeighted ? weights[s] : TAcc(0);
#pragma unroll
        for (int u = 0; u <= s; ++u)
        {
          Accumulate<VWeighted>(sums[u], w[s - u], values[s]);
        }
      }
      continue;
    }
#pragma unroll
    for (int s = 0; s < R; ++s)
    {
      w[s] = VWeighted ? weights[base + s] : TAcc(0);
#pragma unroll
      for (int u = 0; u < R; ++u)
      {
        Accumulate<VWeighted>(sums[u], w[(s - u + R) % R], values[s]);
      }
    }
  }
  const int base = blocks * R;
#pragma unroll
  for (int s = 0; s < M + R - 1; ++s)
  {
    const TAcc value = fetch(base + s);
    if (s < M)
    {
      w[s % R] = VWeighted ? weights[base + s] : TAcc(0);
    }
#pragma unroll
    for (int u = 0; u < R; ++u)
    {
      if (s - u < M && (s >= u || blocks > 0))
      {
        Accumulate<VWeighted>(sums[u], w[(s - u + R) % R], value);
      }
    }
  }
}

/** Stores the result of a pass that is not the last. */
template <typename TAcc>
struct StoreAccumulator
{
  TAcc * out;

  struct Line
  {
    TAcc * out;
    __device__ void
    operator()(std::int64_t offset, std::int64_t, TAcc value) const
    {
      out[offset] = value;
    }
  };
  __device__ Line
  BeginLine(std::int64_t, std::int64_t) const
  {
    return { out };
  }
};

/** Windows along a strided axis: a thread per line, R outputs at a time. */
template <bool VWeighted, int R, int M, typename TIn, typename TAcc, typename TStore>
__global__ void
ColumnKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TStore store, std::int64_t segment)
{
  const std::int64_t lines = pass.outer * pass.inner;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const int          taps = static_cast<int>(2 * pass.radius + 1);
  for (std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; q < lines; q += step)
  {
    const std::int64_t outerIndex = q / pass.inner;
    const std::int64_t innerIndex = q - outerIndex * pass.inner;
    const TIn * const  line = in + outerIndex * pass.inCount * pass.inner + innerIndex;
    const std::int64_t outOffset = outerIndex * pass.outCount * pass.inner + innerIndex;
    const auto         storeLine = store.BeginLine(outerIndex, innerIndex);
    const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * segment;
    const std::int64_t end = begin + segment < pass.outCount ? begin + segment : pass.outCount;
    for (std::int64_t o = begin; o < end; o += R)
    {
      const std::int64_t first = pass.outLower + o - pass.radius;
      TAcc               sums[R];
      if (first >= pass.inLower && first + taps + R - 1 <= pass.inLower + pass.inCount)
      {
        const TIn * const from = line + (first - pass.inLower) * pass.inner;
        AccumulateOutputs<VWeighted, R, M>(
          sums, pass.weights, taps, [&](int j) { return static_cast<TAcc>(from[j * pass.inner]); });
      }
      else
      {
        AccumulateOutputs<VWeighted, R, M>(
          sums, pass.weights, taps, [&](int j) { return Fetch(pass, line, pass.inner, first + j); });
      }
#pragma unroll
      for (int u = 0; u < R; ++u)
      {
        if (o + u < end)
        {
          const std::int64_t at = pass.outLower + o + u;
          const TAcc         value = pass.norms ? sums[u] * pass.norms[at] : sums[u];
          storeLine(outOffset + (o + u) * pass.inner, at, value);
        }
      }
    }
  }
}

/** Where element i of a row lies in shared memory: lanes that are R apart use different banks. */
template <int R>
__device__ int
PaddedIndex(int i)
{
  return i + i / R;
}

/** Windows along x: a block stages pieces of several rows in shared memory; a thread computes R consecutive outputs. */
template <bool VWeighted, int R, int M, typename TIn, typename TAcc>
__global__ void
RowKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TAcc * __restrict__ out, int threadsPerRow)
{
  extern __shared__ __align__(16) unsigned char memory[];
  TAcc * const                                  shared = reinterpret_cast<TAcc *>(memory);
  const int                                     taps = static_cast<int>(2 * pass.radius + 1);
  const int                                     width = threadsPerRow * R;
  const int                                     staged = width + taps - 1;
  const int                                     rowStride = PaddedIndex<R>(staged + R) + 1;
  const int                                     rowsPerBlock = static_cast<int>(blockDim.x) / threadsPerRow;
  const int                                     row = static_cast<int>(threadIdx.x) / threadsPerRow;
  const int                                     lane = static_cast<int>(threadIdx.x) - row * threadsPerRow;
  const std::int64_t                            tilesPerRow = (pass.outCount + width - 1) / width;
  const std::int64_t                            rowGroups = (pass.outer + rowsPerBlock - 1) / rowsPerBlock;
  TAcc * const                                  own = shared + static_cast<std::int64_t>(row) * rowStride;
  for (std::int64_t tile = blockIdx.x; tile < tilesPerRow * rowGroups; tile += gridDim.x)
  {
    const std::int64_t group = tile / tilesPerRow;
    const std::int64_t o = (tile - group * tilesPerRow) * width;
    const std::int64_t r = group * rowsPerBlock + row;
    const bool         active = row < rowsPerBlock && r < pass.outer;
    const std::int64_t first = pass.outLower + o - pass.radius;
    const TIn * const  line = in + r * pass.inCount;
    if (active)
    {
      const std::int64_t last = pass.outLower + (o + width < pass.outCount ? o + width : pass.outCount) + pass.radius;
      for (int i = lane; i < staged; i += threadsPerRow)
      {
        const std::int64_t at = first + i - pass.inLower;
        own[PaddedIndex<R>(i)] = at >= 0 && at < pass.inCount ? static_cast<TAcc>(line[at])
                                 : first + i < last           ? Fetch(pass, line, 1, first + i)
                                                              : TAcc(0);
      }
    }
    __syncthreads();
    TAcc sums[R];
    if (active)
    {
      AccumulateOutputs<VWeighted, R, M>(
        sums, pass.weights, taps, [&](int j) { return own[PaddedIndex<R>(lane * R + j)]; });
    }
    __syncthreads();
    if (active)
    {
#pragma unroll
      for (int u = 0; u < R; ++u)
      {
        own[PaddedIndex<R>(lane * R + u)] = sums[u];
      }
    }
    __syncthreads();
    if (active)
    {
      TAcc * const to = out + r * pass.outCount + o;
      for (int i = lane; i < width && o + i < pass.outCount; i += threadsPerRow)
      {
        const TAcc value = own[PaddedIndex<R>(i)];
        to[i] = pass.norms ? value * pass.norms[pass.outLower + o + i] : value;
      }
    }
    __syncthreads();
  }
}

/** As the two above, an output a thread, straight from memory: for windows too large for them. */
template <bool VWeighted, typename TIn, typename TAcc, typename TStore>
__global__ void
DirectKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TStore store)
{
  const std::int64_t count = pass.outer * pass.outCount * pass.inner;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const std::int64_t innerIndex = i % pass.inner;
    const std::int64_t o = i / pass.inner % pass.outCount;
    const std::int64_t outerIndex = i / pass.inner / pass.outCount;
    const TIn * const  line = in + outerIndex * pass.inCount * pass.inner + innerIndex;
    TAcc               sum = TAcc(0);
    for (std::int64_t t = 0; t <= 2 * pass.radius; ++t)
    {
      Accumulate<VWeighted>(
        sum, VWeighted ? pass.weights[t] : TAcc(0), Fetch(pass, line, pass.inner, pass.outLower + o - pass.radius + t));
    }
    const std::int64_t at = pass.outLower + o;
    store.BeginLine(outerIndex, innerIndex)(i, at, pass.norms ? sum * pass.norms[at] : sum);
  }
}

/** Finishes accumulators voxel by voxel. */
template <typename TAcc, typename TStore>
__global__ void
FinishKernel(const TAcc * __restrict__ in, std::int64_t outer, std::int64_t n, std::int64_t lower, TStore store)
{
  const std::int64_t count = outer * n;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    store.BeginLine(i / n, 0)(i, lower + i % n, in[i]);
  }
}

template <typename TIn, typename TAcc>
__global__ void
ToAccumulatorKernel(const TIn * __restrict__ in, TAcc * __restrict__ out, std::int64_t n)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    out[i] = static_cast<TAcc>(in[i]);
  }
}

/** Threads and segments for a kernel with a thread per line. */
struct LineGrid
{
  dim3         blocks;
  std::int64_t segment;

  template <typename TAcc>
  LineGrid(const Pass<TAcc> & pass, std::int64_t threads, std::int64_t shortestSegment)
  {
    const std::int64_t lines = pass.outer * pass.inner;
    // About two full waves of a large device; a segment pays for its halo, so none is very short.
    const std::int64_t wanted = std::max<std::int64_t>(1, 540000 / std::max<std::int64_t>(lines, 1));
    const std::int64_t most = std::max<std::int64_t>(1, pass.outCount / shortestSegment);
    const std::int64_t segments = std::min<std::int64_t>({ wanted, most, 65535 });
    segment = (pass.outCount + segments - 1) / segments;
    segment = (segment + 7) / 8 * 8;
    blocks = dim3(BlocksFor(lines, threads), static_cast<unsigned int>((pass.outCount + segment - 1) / segment), 1);
  }
};

/** Calls f with the remainder of an odd number of taps by 8 as a type. */
template <typename TFunctor>
void
DispatchRemainder(std::int64_t remainder, TFunctor && f)
{
  switch (remainder)
  {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 5:
      return f(std::integral_constant<int, 5>());
    default:
      return f(std::integral_constant<int, 7>());
  }
}

/** One pass along an axis other than x. */
template <bool VWeighted, typename TIn, typename TAcc, typename TStore>
void
LaunchColumns(const Pass<TAcc> & pass, const TIn * in, const TStore & store, cudaStream_t stream)
{
  constexpr int R = 8;
  if (pass.radius > (1 << 28))
  {
    DirectKernel<VWeighted>
      <<<BlocksFor(pass.outer * pass.outCount * pass.inner, 128), 128, 0, stream>>>(pass, in, store);
    CheckLaunch("DirectKernel");
    return;
  }
  const LineGrid grid(pass, 128, std::max<std::int64_t>(16, pass.radius));
  DispatchRemainder((2 * pass.radius + 1) % R, [&](auto remainder) {
    ColumnKernel<VWeighted, R, decltype(remainder)::value>
      <<<grid.blocks, 128, 0, stream>>>(pass, in, store, grid.segment);
  });
  CheckLaunch("ColumnKernel");
}

/** One pass along x. */
template <bool VWeighted, typename TIn, typename TAcc>
void
LaunchRows(const Pass<TAcc> & pass, const TIn * in, TAcc * out, cudaStream_t stream)
{
  constexpr int R = 8;
  constexpr int threads = 256;
  const int     threadsPerRow =
    static_cast<int>(std::min<std::int64_t>(threads, std::max<std::int64_t>(1, (pass.outCount + R - 1) / R)));
  const int          rowsPerBlock = threads / threadsPerRow;
  const std::int64_t staged = static_cast<std::int64_t>(threadsPerRow) * R + 2 * pass.radius + R;
  const std::int64_t bytes = (staged + staged / R + 2) * rowsPerBlock * static_cast<std::int64_t>(sizeof(TAcc));
  if (bytes > static_cast<std::int64_t>(LargestSharedMemory))
  {
    DirectKernel<VWeighted>
      <<<BlocksFor(pass.outer * pass.outCount, 128), 128, 0, stream>>>(pass, in, StoreAccumulator<TAcc>{ out });
    CheckLaunch("DirectKernel");
    return;
  }
  const std::int64_t tiles =
    (pass.outCount + threadsPerRow * R - 1) / (threadsPerRow * R) * ((pass.outer + rowsPerBlock - 1) / rowsPerBlock);
  DispatchRemainder((2 * pass.radius + 1) % R, [&](auto remainder) {
    const auto kernel = RowKernel<VWeighted, R, decltype(remainder)::value, TIn, TAcc>;
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, LargestSharedMemory);
    kernel<<<BlocksFor(tiles, 1), threads, static_cast<std::size_t>(bytes), stream>>>(pass, in, out, threadsPerRow);
  });
  CheckLaunch("RowKernel");
}

/** The passes of a chunk: which axes, and what each reads and writes. */
class PassPlan
{
public:
  PassPlan(const Box & input, const Box & output, const std::int64_t (&radius)[MaxDimension])
  {
    Box box = input;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (radius[a] > 0)
      {
        axes[count] = a;
        before[count] = box;
        box.lower[a] = output.lower[a];
        box.upper[a] = output.upper[a];
        after[count++] = box;
      }
    }
    if (count == 0)
    {
      after[0] = output;
    }
  }

  /** Accumulators that the first and the second intermediate buffer hold. */
  std::int64_t
  FirstBuffer() const
  {
    return after[0].NumberOfVoxels();
  }
  std::int64_t
  SecondBuffer() const
  {
    return count > 2 ? after[1].NumberOfVoxels() : 0;
  }
  std::size_t
  ScratchBytes(std::size_t accumulatorBytes) const
  {
    const auto round = [&](std::int64_t n) {
      return (static_cast<std::size_t>(n) * accumulatorBytes + 255) / 256 * 256;
    };
    return round(FirstBuffer()) + round(SecondBuffer());
  }

  template <typename TAcc>
  Pass<TAcc>
  MakePass(int i, const Box & image, std::int64_t radius, BoundaryMode mode) const
  {
    const int  a = axes[i];
    Pass<TAcc> pass{};
    pass.outer = pass.inner = 1;
    for (int b = 0; b < MaxDimension; ++b)
    {
      (b < a ? pass.inner : pass.outer) *= b == a ? 1 : before[i].Extent(b);
    }
    pass.inCount = before[i].Extent(a);
    pass.outCount = after[i].Extent(a);
    pass.inLower = before[i].lower[a];
    pass.outLower = after[i].lower[a];
    pass.n = image.Extent(a);
    pass.radius = radius;
    pass.mode = mode;
    return pass;
  }

  int count{ 0 };
  int axes[MaxDimension]{};
  Box before[MaxDimension]{};
  Box after[MaxDimension]{};
};

/** Runs all passes: first(pass, axis, in, out) with the input's type, next(pass, axis, in, store) with accumulators;
 * the last stores through `finish`, whose lines are along `finishAxis`. */
template <typename TIn, typename TAcc, typename TFinish, typename TFirst, typename TNext>
void
RunPasses(const KernelCall & call, const PassPlan & plan, const TFinish & finish, TFirst && first, TNext && next)
{
  const auto * const in = static_cast<const TIn *>(call.inputs[0].data);
  auto *             current = static_cast<TAcc *>(call.scratch);
  auto *             other =
    reinterpret_cast<TAcc *>(static_cast<char *>(call.scratch) +
                             (static_cast<std::size_t>(plan.FirstBuffer()) * sizeof(TAcc) + 255) / 256 * 256);
  if (plan.count == 0)
  {
    const std::int64_t n = call.output.box.NumberOfVoxels();
    ToAccumulatorKernel<<<BlocksFor(n, 256), 256, 0, StreamOf(call)>>>(in, current, n);
    CheckLaunch("ToAccumulatorKernel");
  }
  else
  {
    first(0, in, current);
  }
  for (int i = 1; i + 1 < plan.count; ++i)
  {
    next(i, current, StoreAccumulator<TAcc>{ other });
    std::swap(current, other);
  }
  if (plan.count > 1)
  {
    next(plan.count - 1, current, finish);
    return;
  }
  const std::int64_t n = call.output.box.Extent(0);
  const std::int64_t outer = call.output.box.NumberOfVoxels() / n;
  FinishKernel<<<BlocksFor(outer * n, 256), 256, 0, StreamOf(call)>>>(
    static_cast<const TAcc *>(current), outer, n, call.output.box.lower[0], finish);
  CheckLaunch("FinishKernel");
}

} // namespace chunkwise

#endif
