/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaPasses_cuh
#define chunkwiseCudaPasses_cuh

#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseInt128.h"
#include "chunkwiseOperation.h"
#include "chunkwiseReducer.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <cuda_runtime.h>
#include <type_traits>

// Separable windows as passes along one axis of a dense buffer, seen as [outer][axis][inner] with inner the product of
// the extents below the axis. Each pass crops its axis to the chunk's output.
namespace chunkwise
{

/** Shared memory that a block may ask for on every device that the module is built for. */
constexpr std::size_t LargestSharedMemory = 64 * 1024;

/** The shared memory that a block may ask for on the current device. */
inline std::int64_t
SharedMemoryOfDevice()
{
  int        device = 0;
  int        bytes = 0;
  const bool known = cudaGetDevice(&device) == cudaSuccess &&
                     cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device) == cudaSuccess;
  return known ? bytes : static_cast<std::int64_t>(LargestSharedMemory);
}

inline cudaStream_t
StreamOf(const KernelCall & call)
{
  return static_cast<cudaStream_t>(call.stream);
}

/** Keeps a value in a register. Without it the compiler computes what a block knows of its tile anew with every plane,
 * or row, which can take longer than the plane. */
__device__ __forceinline__ int
InRegister(int value)
{
  asm volatile("" : "+r"(value));
  return value;
}
template <typename T>
__device__ __forceinline__ T *
InRegister(T * value)
{
  asm volatile("" : "+l"(value));
  return value;
}

/** Blocks for n items, few enough for any grid; kernels loop over the rest. */
inline unsigned int
BlocksFor(std::int64_t n, std::int64_t perBlock)
{
  return static_cast<unsigned int>(
    std::max<std::int64_t>(1, std::min<std::int64_t>((n + perBlock - 1) / perBlock, std::int64_t{ 1 } << 24)));
}

/** Taps inside the image of n voxels, of a window at i; fits 32 bits, as all taps of a window together do. */
__device__ inline std::int32_t
TapsOfWindow(std::int64_t i, std::int64_t radius, std::int64_t n)
{
  const std::int64_t lower = i - radius > 0 ? i - radius : 0;
  const std::int64_t upper = i + radius < n - 1 ? i + radius : n - 1;
  return static_cast<std::int32_t>(upper - lower + 1);
}

/** How the taps of a window become its value. A rule's Load gives a voxel as an accumulator, Join combines the values
 * of two parts of a window, Add joins one tap, with its weight if the rule has weights. Windows have 2 radius + 1 taps,
 * and Extra more at the upper side. */
struct PlainSums
{
  static constexpr bool Weighted = false;
  static constexpr int  Extra = 0;

  template <typename TPass, typename TIn>
  __device__ static auto
  Load(const TPass & pass, TIn value)
  {
    return static_cast<decltype(pass.constant)>(value);
  }
  template <typename TAcc>
  __device__ static TAcc
  Join(TAcc a, TAcc b)
  {
    return a + b;
  }
  template <typename TAcc>
  __device__ static TAcc
  Add(TAcc sum, TAcc, TAcc value)
  {
    return sum + value;
  }
};

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

struct WeightedSums : PlainSums
{
  static constexpr bool Weighted = true;

  template <typename TAcc>
  __device__ static TAcc
  Add(TAcc sum, TAcc weight, TAcc value)
  {
    return MultiplyAdd(weight, value, sum);
  }
};

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
  TAcc         absent;  ///< of a tap that does not take part: joining it changes nothing
  TAcc         flip;    ///< OrderedKey's, where the input is voxels
  const TAcc * weights; ///< PaddedTaps of them; nullptr: a sum
  const TAcc * norms;   ///< by NormRow; nullptr: none
};

/** The taps of a rule's windows. */
template <typename TRule, typename TAcc>
__host__ __device__ __forceinline__ std::int64_t
                                    TapsOf(const Pass<TAcc> & pass)
{
  return 2 * pass.radius + 1 + TRule::Extra;
}

/** The value at image index `i` of a line whose position 0 is `line`, positions `stride` apart. */
template <typename TRule, typename TAcc, typename TIn>
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
    return pass.absent;
  }
  return TRule::Load(pass, line[(at - pass.inLower) * stride]);
}

/** The norm of the output at image index `at`. */
template <typename TAcc>
__device__ __forceinline__ TAcc
NormAt(const Pass<TAcc> & pass, std::int64_t at)
{
  return pass.norms[NormRow(at, pass.n, pass.radius)];
}

/** `sum` times the norm of the output at image index `at`; 1 where the window is inside. */
template <typename TAcc>
__device__ __forceinline__ TAcc
Normalized(const Pass<TAcc> & pass, std::int64_t at, TAcc sum)
{
  return pass.norms && (at < pass.radius || at + pass.radius >= pass.n) ? sum * NormAt(pass, at) : sum;
}

/** Consecutive outputs that a thread computes together: one tap that is read takes part in as many sums. */
constexpr int Together = 8;

/** Weights as tables hold them: zeros up to a multiple of Together, so that they can be read Together at a time. */
constexpr std::int64_t
PaddedTaps(std::int64_t taps)
{
  return (taps + Together - 1) / Together * Together;
}

/** The weights at `from`, which is aligned to 16 bytes. */
__device__ __forceinline__ void
LoadWeights(float (&w)[Together], const float * from)
{
  const float4 a = reinterpret_cast<const float4 *>(from)[0];
  const float4 b = reinterpret_cast<const float4 *>(from)[1];
  w[0] = a.x, w[1] = a.y, w[2] = a.z, w[3] = a.w;
  w[4] = b.x, w[5] = b.y, w[6] = b.z, w[7] = b.w;
}
__device__ __forceinline__ void
LoadWeights(double (&w)[Together], const double * from)
{
#pragma unroll
  for (int i = 0; i < Together / 2; ++i)
  {
    const double2 pair = reinterpret_cast<const double2 *>(from)[i];
    w[2 * i] = pair.x, w[2 * i + 1] = pair.y;
  }
}
template <typename TAcc>
__device__ __forceinline__ void
LoadWeights(TAcc (&)[Together], const TAcc *)
{}

/** One output's part of AccumulateOutputs where the window is shorter than Together taps. */
template <typename TRule, int VTaps, typename TAcc, typename TFetch>
__device__ __forceinline__ void
AccumulateFewTaps(TAcc (&sums)[Together], const TAcc * weights, TFetch && fetch)
{
  TAcc w[Together];
  if constexpr (TRule::Weighted)
  {
    LoadWeights(w, weights);
  }
#pragma unroll
  for (int s = 0; s < VTaps + Together - 1; ++s)
  {
    const TAcc value = fetch(s / Together, s % Together);
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      if (s >= u && s - u < VTaps)
      {
        sums[u] = TRule::Add(sums[u], TRule::Weighted ? w[s - u] : TAcc(0), value);
      }
    }
  }
}

/** Together taps that are in the windows of all outputs; `before` are the weights ahead of them. */
template <typename TRule, typename TAcc, typename TFetch>
__device__ __forceinline__ void
AccumulateWholeBlock(TAcc (&sums)[Together], const TAcc (&before)[Together], TAcc (&w)[Together], const TAcc * weights,
                     int block, TFetch && fetch)
{
  if constexpr (TRule::Weighted)
  {
    LoadWeights(w, weights + block * Together);
  }
#pragma unroll
  for (int s = 0; s < Together; ++s)
  {
    const TAcc value = fetch(block, s);
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      sums[u] = TRule::Add(sums[u], TRule::Weighted ? (s >= u ? w[s - u] : before[Together + s - u]) : TAcc(0), value);
    }
  }
}

/** The VRest taps of all outputs that make no whole block, and the taps that only later outputs have. */
template <typename TRule, int VRest, typename TAcc, typename TFetch>
__device__ __forceinline__ void
AccumulateLastTaps(TAcc (&sums)[Together], const TAcc (&before)[Together], const TAcc * weights, int block,
                   TFetch && fetch)
{
  TAcc w[Together];
  if constexpr (TRule::Weighted)
  {
    LoadWeights(w, weights + block * Together);
  }
#pragma unroll
  for (int s = 0; s < VRest + Together - 1; ++s)
  {
    const TAcc value = fetch(block + s / Together, s % Together);
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      if (s - u < VRest)
      {
        sums[u] =
          TRule::Add(sums[u], TRule::Weighted ? (s >= u ? w[s - u] : before[Together + s - u]) : TAcc(0), value);
      }
    }
  }
}

/** Together outputs of windows, the first of which begins with the tap fetch(0, 0); tap Together b + s is fetch(b, s).
 * `taps` is odd, plus the rule's Extra. Taps reach each output in ascending order; each tap is fetched once, and a
 * weight moves through the registers from output to output. A tap outside of a window does not take part, not even with
 * a weight of 0, since it may be infinite. */
template <typename TRule, typename TAcc, typename TFetch>
__device__ __forceinline__ void
AccumulateOutputs(TAcc (&sums)[Together], TAcc absent, const TAcc * weights, int taps, TFetch && fetch)
{
  constexpr int R = Together;
#pragma unroll
  for (int u = 0; u < R; ++u)
  {
    sums[u] = absent;
  }
  switch (taps)
  {
    case 1 + TRule::Extra:
      return AccumulateFewTaps<TRule, 1 + TRule::Extra>(sums, weights, fetch);
    case 3 + TRule::Extra:
      return AccumulateFewTaps<TRule, 3 + TRule::Extra>(sums, weights, fetch);
    case 5 + TRule::Extra:
      return AccumulateFewTaps<TRule, 5 + TRule::Extra>(sums, weights, fetch);
    case 7 + TRule::Extra:
      return AccumulateFewTaps<TRule, 7 + TRule::Extra>(sums, weights, fetch);
    default:
      break;
  }
  // The first taps: the later an output, the fewer of them are its own.
  TAcc w[R];
  TAcc next[R];
#pragma unroll
  for (int u = 0; u < R; ++u)
  {
    w[u] = next[u] = TAcc(0);
  }
  if constexpr (TRule::Weighted)
  {
    LoadWeights(w, weights);
  }
#pragma unroll
  for (int s = 0; s < R; ++s)
  {
    const TAcc value = fetch(0, s);
#pragma unroll
    for (int u = 0; u <= s; ++u)
    {
      sums[u] = TRule::Add(sums[u], w[s - u], value);
    }
  }
  // Taps of all outputs; two blocks a turn, so that no weight moves from register to register.
  const int blocks = taps / R;
  int       block = 1;
#pragma unroll 1
  for (; block + 1 < blocks; block += 2)
  {
    AccumulateWholeBlock<TRule>(sums, w, next, weights, block, fetch);
    AccumulateWholeBlock<TRule>(sums, next, w, weights, block + 1, fetch);
  }
  if (block < blocks)
  {
    AccumulateWholeBlock<TRule>(sums, w, next, weights, block, fetch);
#pragma unroll
    for (int s = 0; s < R; ++s)
    {
      w[s] = next[s];
    }
  }
  switch (taps - blocks * R)
  {
    case 1 - TRule::Extra:
      return AccumulateLastTaps<TRule, 1 - TRule::Extra>(sums, w, weights, blocks, fetch);
    case 3 - TRule::Extra:
      return AccumulateLastTaps<TRule, 3 - TRule::Extra>(sums, w, weights, blocks, fetch);
    case 5 - TRule::Extra:
      return AccumulateLastTaps<TRule, 5 - TRule::Extra>(sums, w, weights, blocks, fetch);
    default:
      return AccumulateLastTaps<TRule, 7 - TRule::Extra>(sums, w, weights, blocks, fetch);
  }
}

/** Whether the buffer holds Together consecutive values from image index `i` on. */
template <typename TAcc>
__device__ __forceinline__ bool
HoldsTogether(const Pass<TAcc> & pass, std::int64_t i)
{
  return i >= pass.inLower && i + Together <= pass.inLower + pass.inCount;
}

/** Loads them; `line` is as for Fetch. */
template <typename TRule, typename TIn, typename TAcc>
__device__ __forceinline__ void
LoadTogether(TAcc (&values)[Together], const Pass<TAcc> & pass, const TIn * __restrict__ line, std::int64_t i)
{
  const TIn * from = line + (i - pass.inLower) * pass.inner;
#pragma unroll
  for (int s = 0; s < Together; ++s)
  {
    values[s] = TRule::Load(pass, *from);
    from += pass.inner;
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

/** Whether `count` windows from image index `at` on lie inside the image. */
template <typename TAcc>
__device__ __forceinline__ bool
AreInside(const Pass<TAcc> & pass, std::int64_t at, int count)
{
  return at >= pass.radius && at + count + pass.radius <= pass.n;
}

/** Multiplies Together sums, the first at image index `at`, of which `count` are outputs, by their norms. */
template <typename TAcc>
__device__ __forceinline__ void
NormalizeTogether(const Pass<TAcc> & pass, std::int64_t at, std::int64_t count, TAcc (&sums)[Together])
{
  if (pass.norms && !AreInside(pass, at, Together))
  {
#pragma unroll
    for (int u = 0; u < Together; ++u)
    {
      if (u < count)
      {
        sums[u] *= NormAt(pass, at + u);
      }
    }
  }
}

/** Stores Together outputs of a line, of which `count` are there. */
template <typename TLine, typename TAcc>
__device__ __forceinline__ void
StoreTogether(const TLine & line, std::int64_t offset, std::int64_t stride, std::int64_t at, std::int64_t count,
              TAcc (&sums)[Together])
{
#pragma unroll
  for (int u = 0; u < Together; ++u)
  {
    if (u < count)
    {
      line(offset, at + u, sums[u]);
    }
    offset += stride;
  }
}

/** Windows along a strided axis: a thread marches along its line and keeps the values of a window in a private ring in
 * shared memory, so that each value is read from memory once. `slots` is the ring's length in units of Together
 * rows. */
template <typename TRule, typename TIn, typename TAcc, typename TStore>
__global__ void
RingColumnKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TStore store, std::int64_t segment, int slots)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     threads = static_cast<int>(blockDim.x);
  const int                                     taps = static_cast<int>(TapsOf<TRule>(pass));
  TAcc * const                                  weights = reinterpret_cast<TAcc *>(memory);
  const int padded = TRule::Weighted ? (taps + Together - 1) / Together * Together : 0;
  // A ring for each warp, so that the distance of its rows is known here.
  TAcc * const ring = weights + padded + threadIdx.x / 32 * (slots * Together * 32) + threadIdx.x % 32;
  for (int t = threadIdx.x; t < padded; t += threads)
  {
    weights[t] = pass.weights[t];
  }
  __syncthreads();
  const std::int64_t lines = pass.outer * pass.inner;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * threads;
  for (std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; q < lines; q += step)
  {
    const std::int64_t outerIndex = q / pass.inner;
    const std::int64_t innerIndex = q - outerIndex * pass.inner;
    const TIn * const  line = in + outerIndex * pass.inCount * pass.inner + innerIndex;
    const auto         storeLine = store.BeginLine(outerIndex, innerIndex);
    const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * segment;
    const std::int64_t end = begin + segment < pass.outCount ? begin + segment : pass.outCount;
    const std::int64_t first = pass.outLower + begin - pass.radius;
    const std::int64_t count = end - begin + 2 * pass.radius + TRule::Extra;
    const std::int64_t rows = ((end - begin + Together - 1) / Together + slots - 1) * Together;
    std::int64_t       offset = (outerIndex * pass.outCount + begin) * pass.inner + innerIndex;
    TAcc               values[Together];
    bool               held = HoldsTogether(pass, first);
    if (held)
    {
      LoadTogether<TRule>(values, pass, line, first);
    }
    int slot = 0;
    int filled = 0;
    for (std::int64_t j = 0; j < rows; j += Together)
    {
      TAcc * const newest = ring + slot * (Together * 32);
      if (held)
      {
#pragma unroll
        for (int s = 0; s < Together; ++s)
        {
          newest[s * 32] = values[s];
        }
      }
      else
      {
#pragma unroll 1
        for (int s = 0; s < Together; ++s)
        {
          newest[s * 32] = j + s < count ? Fetch<TRule>(pass, line, pass.inner, first + j + s) : pass.absent;
        }
      }
      slot = slot + 1 == slots ? 0 : slot + 1;
      // On their way while the sums are made.
      held = j + Together < rows && HoldsTogether(pass, first + j + Together);
      if (held)
      {
        LoadTogether<TRule>(values, pass, line, first + j + Together);
      }
      if (++filled < slots)
      {
        continue;
      }
      // `slot` is the oldest.
      TAcc sums[Together];
      AccumulateOutputs<TRule>(sums, pass.absent, weights, taps, [&](int block, int s) {
        const int at = slot + block < slots ? slot + block : slot + block - slots;
        return ring[at * (Together * 32) + s * 32];
      });
      const std::int64_t o = begin + j - static_cast<std::int64_t>(slots - 1) * Together;
      NormalizeTogether(pass, pass.outLower + o, end - o, sums);
      StoreTogether(storeLine, offset, pass.inner, pass.outLower + o, end - o, sums);
      offset += Together * pass.inner;
    }
  }
}

/** Windows along x: a block stages pieces of several rows in shared memory; a thread computes Together consecutive
 * outputs. A gap after every Together values keeps the lanes of a warp on different banks. */
template <typename TRule, typename TIn, typename TAcc>
__global__ void
RowKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TAcc * __restrict__ out, int threadsPerRow)
{
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int                                 R = Together;
  const auto                                    padding = [](int i) { return i + i / R; };
  const int                                     taps = static_cast<int>(TapsOf<TRule>(pass));
  const int                                     width = threadsPerRow * R;
  const int                                     staged = width + taps - 1 + R;
  const int                                     rowStride = padding(staged) + 1;
  const int                                     rowsPerBlock = static_cast<int>(blockDim.x) / threadsPerRow;
  const int                                     row = static_cast<int>(threadIdx.x) / threadsPerRow;
  const int                                     lane = static_cast<int>(threadIdx.x) - row * threadsPerRow;
  const std::int64_t                            tilesPerRow = (pass.outCount + width - 1) / width;
  const std::int64_t                            rowGroups = (pass.outer + rowsPerBlock - 1) / rowsPerBlock;
  TAcc * const                                  weights = reinterpret_cast<TAcc *>(memory);
  const int    paddedTaps = TRule::Weighted ? (taps + Together - 1) / Together * Together : 0;
  TAcc * const own = weights + paddedTaps + row * rowStride;
  for (int t = threadIdx.x; t < paddedTaps; t += static_cast<int>(blockDim.x))
  {
    weights[t] = pass.weights[t];
  }
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
      const std::int64_t last =
        pass.outLower + (o + width < pass.outCount ? o + width : pass.outCount) + pass.radius + TRule::Extra;
      for (int i = lane; i < staged; i += threadsPerRow)
      {
        const std::int64_t at = first + i - pass.inLower;
        own[padding(i)] = at >= 0 && at < pass.inCount ? TRule::Load(pass, line[at])
                          : first + i < last           ? Fetch<TRule>(pass, line, 1, first + i)
                                                       : pass.absent;
      }
    }
    __syncthreads();
    TAcc sums[R];
    if (active)
    {
      AccumulateOutputs<TRule>(
        sums, pass.absent, weights, taps, [&](int block, int s) { return own[(lane + block) * (R + 1) + s]; });
    }
    __syncthreads();
    if (active)
    {
#pragma unroll
      for (int u = 0; u < R; ++u)
      {
        own[lane * (R + 1) + u] = sums[u];
      }
    }
    __syncthreads();
    if (active)
    {
      TAcc * const to = out + r * pass.outCount + o;
      for (int i = lane; i < width && o + i < pass.outCount; i += threadsPerRow)
      {
        to[i] = Normalized(pass, pass.outLower + o + i, own[padding(i)]);
      }
    }
    __syncthreads();
  }
}

/** As the two above, an output a thread, straight from memory: for windows that no shared memory holds. */
template <typename TRule, typename TIn, typename TAcc, typename TStore>
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
    TAcc               sum = pass.absent;
    for (std::int64_t t = 0; t <= 2 * pass.radius + TRule::Extra; ++t)
    {
      sum = TRule::Add(sum,
                       TRule::Weighted ? pass.weights[t] : TAcc(0),
                       Fetch<TRule>(pass, line, pass.inner, pass.outLower + o - pass.radius + t));
    }
    const std::int64_t at = pass.outLower + o;
    store.BeginLine(outerIndex, innerIndex)(i, at, Normalized(pass, at, sum));
  }
}

/** Finishes accumulators voxel by voxel, a warp a row. */
template <typename TAcc, typename TStore>
__global__ void
FinishKernel(const TAcc * __restrict__ in, std::int64_t outer, std::int64_t n, std::int64_t lower, TStore store)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x / 32;
  for (std::int64_t row = (static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / 32; row < outer;
       row += step)
  {
    const auto storeLine = store.BeginLine(row, 0);
#pragma unroll 8
    for (std::int64_t i = threadIdx.x % 32; i < n; i += 32)
    {
      storeLine(row * n + i, lower + i, in[row * n + i]);
    }
  }
}

template <typename TRule, typename TIn, typename TAcc>
__global__ void
ToAccumulatorKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TAcc * __restrict__ out, std::int64_t n)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    out[i] = TRule::Load(pass, in[i]);
  }
}

/** Lets a kernel have the shared memory that it needs; if it cannot, its launch fails and says so. */
template <typename TKernel>
void
AllowSharedMemory(TKernel kernel, std::size_t bytes)
{
  if (bytes > 48 * 1024)
  {
    (void)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  }
}

/** Threads and segments for a kernel with a thread per line. */
struct LineGrid
{
  dim3         blocks;
  std::int64_t segment;

  /** `warmUp`: positions that a segment reads ahead of its first output. */
  template <typename TAcc>
  LineGrid(const Pass<TAcc> & pass, std::int64_t threads, std::int64_t warmUp)
  {
    const std::int64_t lines = pass.outer * pass.inner;
    // About two full waves of a large device, but none of the segments is so short that reading ahead is all it does.
    const std::int64_t shortest = std::max<std::int64_t>(16, (lines >= 65536 ? 4 : 1) * warmUp);
    const std::int64_t wanted = std::max<std::int64_t>(1, 540000 / std::max<std::int64_t>(lines, 1));
    const std::int64_t most = std::max<std::int64_t>(1, pass.outCount / shortest);
    const std::int64_t segments = std::min<std::int64_t>({ wanted, most, 65535 });
    segment = (pass.outCount + segments - 1) / segments;
    segment = (segment + 7) / 8 * 8;
    blocks = dim3(BlocksFor(lines, threads), static_cast<unsigned int>((pass.outCount + segment - 1) / segment), 1);
  }
};

/** One pass along an axis other than x. */
template <typename TRule, typename TIn, typename TAcc, typename TStore>
void
LaunchColumns(const Pass<TAcc> & pass, const TIn * in, const TStore & store, cudaStream_t stream)
{
  const std::int64_t taps = TapsOf<TRule>(pass);
  const std::int64_t slots = (taps - 1 + Together - 1) / Together + 1;
  const auto         bytes = [&](int threads) {
    return (slots * Together * threads + (TRule::Weighted ? PaddedTaps(taps) : 0)) *
           static_cast<std::int64_t>(sizeof(TAcc));
  };
  int threads = 128;
  while (threads > 32 && bytes(threads) > 40 * 1024)
  {
    threads /= 2;
  }
  if (bytes(threads) > SharedMemoryOfDevice())
  {
    DirectKernel<TRule><<<BlocksFor(pass.outer * pass.outCount * pass.inner, 128), 128, 0, stream>>>(pass, in, store);
    CheckLaunch("DirectKernel");
    return;
  }
  const LineGrid grid(pass, threads, taps - 1);
  const auto     kernel = RingColumnKernel<TRule, TIn, TAcc, TStore>;
  AllowSharedMemory(kernel, static_cast<std::size_t>(bytes(threads)));
  kernel<<<grid.blocks, threads, static_cast<std::size_t>(bytes(threads)), stream>>>(
    pass, in, store, grid.segment, static_cast<int>(slots));
  CheckLaunch("RingColumnKernel");
}

/** One pass along x. */
template <typename TRule, typename TIn, typename TAcc>
void
LaunchRows(const Pass<TAcc> & pass, const TIn * in, TAcc * out, cudaStream_t stream)
{
  constexpr int threads = 256;
  const int     threadsPerRow = static_cast<int>(
    std::min<std::int64_t>(threads, std::max<std::int64_t>(1, (pass.outCount + Together - 1) / Together)));
  const int          rowsPerBlock = threads / threadsPerRow;
  const std::int64_t staged = static_cast<std::int64_t>(threadsPerRow) * Together + TapsOf<TRule>(pass) - 1 + Together;
  const std::int64_t bytes =
    ((staged + staged / Together + 1) * rowsPerBlock + (TRule::Weighted ? PaddedTaps(TapsOf<TRule>(pass)) : 0)) *
    static_cast<std::int64_t>(sizeof(TAcc));
  if (bytes > static_cast<std::int64_t>(LargestSharedMemory))
  {
    DirectKernel<TRule>
      <<<BlocksFor(pass.outer * pass.outCount, 128), 128, 0, stream>>>(pass, in, StoreAccumulator<TAcc>{ out });
    CheckLaunch("DirectKernel");
    return;
  }
  const std::int64_t tiles = (pass.outCount + threadsPerRow * Together - 1) / (threadsPerRow * Together) *
                             ((pass.outer + rowsPerBlock - 1) / rowsPerBlock);
  const auto kernel = RowKernel<TRule, TIn, TAcc>;
  AllowSharedMemory(kernel, static_cast<std::size_t>(bytes));
  kernel<<<BlocksFor(tiles, 1), threads, static_cast<std::size_t>(bytes), stream>>>(pass, in, out, threadsPerRow);
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

  /** Makes one kernel of the passes along x and y, which then needs no buffer between them. */
  void
  FusePlanes(bool planesFit)
  {
    constexpr std::int64_t longest = std::int64_t{ 1 } << 30;
    fused = planesFit && count >= 2 && axes[0] == 0 && axes[1] == 1 && before[0].Extent(0) < longest &&
            before[0].Extent(1) < longest;
  }

  /** Makes one kernel of all passes, which then needs no buffers, where windows are of one radius along x, y and z, and
   * have at most `longest` taps. */
  void
  FuseVolumes(bool isServed, const std::int64_t (&radius)[MaxDimension], std::int64_t longest)
  {
    constexpr std::int64_t most = std::int64_t{ 1 } << 31;
    marched = isServed && count == 3 && axes[2] == 2 && radius[0] == radius[1] && radius[0] == radius[2] &&
              2 * radius[0] + 1 <= longest && before[0].Extent(0) * before[0].Extent(1) < most &&
              before[0].Extent(2) < most;
  }

  /** Accumulators that the first and the second intermediate buffer hold. */
  std::int64_t
  FirstBuffer() const
  {
    return marched ? 0 : after[fused ? 1 : 0].NumberOfVoxels();
  }
  std::int64_t
  SecondBuffer() const
  {
    const int second = fused ? 2 : 1;
    return count > second + 1 && !marched ? after[second].NumberOfVoxels() : 0;
  }
  std::size_t
  ScratchBytes(std::size_t accumulatorBytes) const
  {
    const auto round = [&](std::int64_t n) { return RoundUp(static_cast<std::size_t>(n) * accumulatorBytes); };
    return round(FirstBuffer()) + round(SecondBuffer());
  }
  /** Accumulators read and written, the input and the output counted as such. */
  double
  AccumulatorsMoved() const
  {
    if (marched)
    {
      return static_cast<double>(before[0].NumberOfVoxels()) + static_cast<double>(after[2].NumberOfVoxels());
    }
    double voxels = count > (fused ? 2 : 1) ? 0 : 2 * static_cast<double>(FirstBuffer());
    for (int i = 0; i < count; ++i)
    {
      voxels += fused && i == 1 ? 0.0 : static_cast<double>(before[i].NumberOfVoxels());
      voxels += fused && i == 0 ? 0.0 : static_cast<double>(after[i].NumberOfVoxels());
    }
    return voxels;
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

  /** The plan's name in a KernelChoice. */
  const char *
  GetName() const
  {
    return marched ? "march" : fused ? "planes" : "passes";
  }

  int  count{ 0 };
  bool fused{ false };
  bool marched{ false };
  int  axes[MaxDimension]{};
  Box  before[MaxDimension]{};
  Box  after[MaxDimension]{};
};

/** Runs all passes: planes(in, out) does the first two where they are fused; first(pass, in, out) with the input's
 * type, next(pass, in, store) with accumulators; the last stores through `finish`. `flip` is for a rule that has it. */
template <typename TRule, typename TIn, typename TAcc, typename TFinish, typename TPlanes, typename TFirst,
          typename TNext>
void
RunPasses(const KernelCall & call, const PassPlan & plan, TAcc flip, const TFinish & finish, TPlanes && planes,
          TFirst && first, TNext && next)
{
  const auto * const in = static_cast<const TIn *>(call.inputs[0].data);
  auto *             current = static_cast<TAcc *>(call.scratch);
  auto *             other = reinterpret_cast<TAcc *>(static_cast<char *>(call.scratch) +
                                          RoundUp(static_cast<std::size_t>(plan.FirstBuffer()) * sizeof(TAcc)));
  if (plan.count == 0)
  {
    const std::int64_t n = call.output.box.NumberOfVoxels();
    Pass<TAcc>         none{};
    none.flip = flip;
    ToAccumulatorKernel<TRule><<<BlocksFor(n, 256), 256, 0, StreamOf(call)>>>(none, in, current, n);
    CheckLaunch("ToAccumulatorKernel");
  }
  else if (plan.fused)
  {
    planes(in, current);
  }
  else
  {
    first(0, in, current);
  }
  for (int i = plan.fused ? 2 : 1; i + 1 < plan.count; ++i)
  {
    next(i, current, StoreAccumulator<TAcc>{ other });
    std::swap(current, other);
  }
  if (plan.count > (plan.fused ? 2 : 1))
  {
    next(plan.count - 1, current, finish);
    return;
  }
  const std::int64_t n = call.output.box.Extent(0);
  const std::int64_t outer = call.output.box.NumberOfVoxels() / n;
  FinishKernel<<<BlocksFor(outer, 8), 256, 0, StreamOf(call)>>>(
    static_cast<const TAcc *>(current), outer, n, call.output.box.lower[0], finish);
  CheckLaunch("FinishKernel");
}

} // namespace chunkwise

#endif
