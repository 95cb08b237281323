/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaDenseVoxels.cuh"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseOrdinal.h"
#include "chunkwiseStatisticsOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

constexpr int          Threads = 256;
constexpr unsigned int AllLanes = 0xFFFFFFFF;
/** Counters of 32 bits that a block keeps in shared memory. */
constexpr int MostSharedCounters = 8192;
/** Sets of them, see CountInBlockKernel. */
constexpr int MostCopies = 8;

using Counter = unsigned long long;

/** The counter of a voxel, -1 where it is not counted: HistogramOperation. */
struct BinRule
{
  double lower;
  double scale;
  int    bins;

  template <typename TPixel>
  __device__ int
  operator()(TPixel value) const
  {
    return value == value ? BinOf(value, lower, scale, bins) : bins;
  }
};

/** OrdinalsOperation. */
struct OrdinalRule
{
  int           bits;
  int           shift;
  int           count;
  std::uint64_t prefixes[OrdinalsOperation::MostPrefixes];

  template <typename TPixel>
  __device__ int
  operator()(TPixel value) const
  {
    const std::uint64_t head = OrdinalOf(value) >> shift;
    const std::uint64_t prefix = head >> bits;
    int                 found = -1;
    for (int i = 0; i < OrdinalsOperation::MostPrefixes; ++i)
    {
      found = i < count && prefixes[i] == prefix ? i : found;
    }
    const int digit = static_cast<int>(head & ((std::uint64_t{ 1 } << bits) - 1));
    return found >= 0 && value == value ? (found << bits) + digit : -1;
  }
};

/** Voxels of bytes are counted by value; the rule is applied in the end. */
constexpr int NumberOfBytes = 256;

template <typename TPixel>
constexpr bool IsByte = sizeof(TPixel) == 1;

/** Counts voxels in `copies` sets of counters in shared memory, a power of two. Lanes that add to one counter do so one
 * after the other: those of different copies do not, and of voxels that are alike a thread adds once for all that
 * follow each other. */
template <typename TPixel, typename TRule>
__global__ void
__launch_bounds__(Threads) CountInBlockKernel(const TPixel * __restrict__ voxels, std::int64_t n, TRule rule,
                                              int counters, int copies, Counter * __restrict__ counts)
{
  extern __shared__ unsigned int own[];
  for (int i = static_cast<int>(threadIdx.x); i < counters * copies; i += Threads)
  {
    own[i] = 0;
  }
  __syncthreads();
  unsigned int * const mine = own + (threadIdx.x & static_cast<unsigned int>(copies - 1));
  int                  counter = -1;
  unsigned int         alike = 0;
  const auto           addAlike = [&] {
    if (counter >= 0)
    {
      atomicAdd(mine + counter * copies, alike);
    }
  };
  ForEachVoxel(voxels, n, [&](TPixel value) {
    int at = 0;
    if constexpr (IsByte<TPixel>)
    {
      at = static_cast<std::uint8_t>(value);
    }
    else
    {
      at = rule(value);
    }
    if (at != counter)
    {
      addAlike();
      counter = at;
      alike = 0;
    }
    ++alike;
  });
  addAlike();
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < counters; i += Threads)
  {
    Counter sum = 0;
    for (int c = 0; c < copies; ++c)
    {
      sum += own[i * copies + c];
    }
    int at = i;
    if constexpr (IsByte<TPixel>)
    {
      at = rule(static_cast<TPixel>(i));
    }
    if (sum != 0 && at >= 0)
    {
      atomicAdd(&counts[at], sum);
    }
  }
}

/** Counts voxels in memory that all blocks share. Neighbours are mostly alike: lanes with the same counter add to it
 * once. */
template <typename TPixel, typename TRule>
__global__ void
__launch_bounds__(Threads)
  CountKernel(const TPixel * __restrict__ voxels, std::int64_t n, TRule rule, Counter * __restrict__ counts)
{
  const auto         lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * Threads;
  // The same number of rounds for all lanes of a warp.
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * Threads + (threadIdx.x - lane); first < n;
       first += step)
  {
    const int          at = first + lane < n ? rule(voxels[first + lane]) : -1;
    const unsigned int alike = __match_any_sync(AllLanes, at);
    if (at >= 0 && lane == __ffs(static_cast<int>(alike)) - 1)
    {
      atomicAdd(&counts[at], static_cast<Counter>(__popc(alike)));
    }
  }
}

/** `values` is dense: the chunk's input, which has no halo, or what a stage made. */
template <typename TRule>
void
LaunchCount(const KernelCall & call, const BufferView & values, const TRule & rule)
{
  const std::int64_t n = values.box.NumberOfVoxels();
  const auto         counters = static_cast<int>(call.sideOutBytes / sizeof(Counter));
  // Blocks have less than 2^32 voxels.
  const auto blocks = static_cast<unsigned int>(
    std::max<std::int64_t>(std::min<std::int64_t>((n + 16 * Threads - 1) / (16 * Threads), 2048), (n >> 31) + 1));
  CheckCuda(cudaMemsetAsync(call.sideOut, 0, call.sideOutBytes, StreamOf(call)), "cudaMemsetAsync");
  DispatchPixelKind(values.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const auto * const voxels = static_cast<const Pixel *>(values.data);
    auto * const       counts = static_cast<Counter *>(call.sideOut);
    const int          shared = IsByte<Pixel> ? NumberOfBytes : counters;
    if (shared > MostSharedCounters)
    {
      CountKernel<<<blocks, Threads, 0, StreamOf(call)>>>(voxels, n, rule, counts);
      CheckLaunch("CountKernel");
      return;
    }
    int copies = MostCopies;
    while (shared * copies > MostSharedCounters)
    {
      copies /= 2;
    }
    CountInBlockKernel<<<blocks,
                         Threads,
                         static_cast<std::size_t>(shared) * static_cast<std::size_t>(copies) * sizeof(unsigned int),
                         StreamOf(call)>>>(voxels, n, rule, shared, copies, counts);
    CheckLaunch("CountInBlockKernel");
  });
}

void
RunHistogram(const KernelCall & call)
{
  const auto & operation = static_cast<const HistogramOperation &>(*call.operation);
  LaunchCount(call, RunStatisticsStage(call), BinRule{ operation.lower, operation.GetScale(), operation.bins });
}

void
RunOrdinals(const KernelCall & call)
{
  const auto & operation = static_cast<const OrdinalsOperation &>(*call.operation);
  OrdinalRule  rule{ operation.bits, operation.shift, static_cast<int>(operation.prefixes.size()), {} };
  std::copy(operation.prefixes.begin(), operation.prefixes.end(), rule.prefixes);
  LaunchCount(call, call.inputs[0], rule);
}

} // namespace

void
RegisterCudaHistogram(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.summarize = { RunHistogram, StatisticsStageBytes, StatisticsCost };
  registry.Register("histogram", kernels);
  kernels.summarize = {};
  kernels.summarize.run = RunOrdinals;
  registry.Register("ordinals", kernels);
}

} // namespace chunkwise
