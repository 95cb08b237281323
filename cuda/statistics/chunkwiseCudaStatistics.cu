/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaDenseVoxels.cuh"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseStatisticsSummary.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

constexpr int          Threads = 256;
constexpr unsigned int AllLanes = 0xFFFFFFFF;
constexpr int          Words = sizeof(StatisticsSummary) / sizeof(std::uint64_t);
static_assert(Words <= Threads, "a thread for each word of a summary");

using Word = unsigned long long;

/** Adds up over a warp; the result is lane 0's. */
__device__ Int128
SumOfWarp(Int128 value)
{
  for (int step = 16; step > 0; step /= 2)
  {
    const auto    bits = static_cast<UInt128>(value);
    const Word    low = __shfl_down_sync(AllLanes, static_cast<Word>(bits), step);
    const Word    high = __shfl_down_sync(AllLanes, static_cast<Word>(bits >> 64), step);
    const UInt128 other = static_cast<UInt128>(high) << 64 | low;
    value = static_cast<Int128>(bits + other);
  }
  return value;
}

/** The destination of VoxelStatistics' sums: the block's summary in shared memory. */
struct SharedDigits
{
  StatisticsSummary & summary;

  __host__ __device__ void
  AddToSum(int i, std::int64_t part)
  {
    AddTo(summary.sum[i], part);
  }
  __host__ __device__ void
  AddToSquares(int i, std::int64_t part)
  {
    AddTo(summary.squares[i], part);
  }
  __host__ __device__ void
  AddAllToSum(int first, Int128 value)
  {
    AddAllTo(summary.sum, first, value);
  }
  __host__ __device__ void
  AddAllToSquares(int first, Int128 value)
  {
    AddAllTo(summary.squares, first, value);
  }

private:
  __host__ __device__ static void
  AddTo(std::int64_t & digit, std::int64_t part)
  {
#if defined(__CUDA_ARCH__)
    atomicAdd(reinterpret_cast<Word *>(&digit), static_cast<Word>(part));
#endif
  }
  /** By all threads of a block: those of a warp mostly have the same window, and one of them adds for all. They have
   * 2^31 numbers among them, see RunStatistics. */
  __host__ __device__ static void
  AddAllTo(std::int64_t * digits, int first, Int128 value)
  {
#if defined(__CUDA_ARCH__)
    const unsigned int some = __ballot_sync(AllLanes, value != 0);
    if (some == 0)
    {
      return;
    }
    const int  begin = __shfl_sync(AllLanes, first, __ffs(static_cast<int>(some)) - 1);
    const bool isSame = __all_sync(AllLanes, value == 0 || first == begin) != 0;
    if (isSame)
    {
      value = SumOfWarp(value);
      first = begin;
      if (threadIdx.x % 32 != 0)
      {
        return;
      }
    }
    AddParts(first, value, [digits](int i, std::int64_t part) { AddTo(digits[i], part); });
#endif
  }
};

/** Each block adds the summary of its voxels to that of all, which is 0 at first and therefore has the complement of
 * the minimum. Integers: the order does not matter. */
template <typename TPixel>
__global__ void
__launch_bounds__(Threads)
  StatisticsKernel(const TPixel * __restrict__ voxels, std::int64_t n, StatisticsSummary * __restrict__ all)
{
  __shared__ StatisticsSummary total;
  if (threadIdx.x < Words)
  {
    reinterpret_cast<Word *>(&total)[threadIdx.x] = 0;
  }
  __syncthreads();
  SharedDigits            digits{ total };
  VoxelStatistics<TPixel> mine;
  ForEachVoxel(voxels, n, [&](TPixel value) { mine.Add(value, digits); });
  __syncwarp();
  mine.End(digits);
  const auto count = [](std::int64_t & of, std::int64_t own) {
    const auto sum = static_cast<Word>(SumOfWarp(own));
    if (threadIdx.x % 32 == 0 && sum != 0)
    {
      atomicAdd(reinterpret_cast<Word *>(&of), sum);
    }
  };
  count(total.finite, mine.finite);
  count(total.nans, mine.nans);
  count(total.positiveInfinities, mine.positiveInfinities);
  count(total.negativeInfinities, mine.negativeInfinities);
  if (mine.finite > 0)
  {
    atomicMax(reinterpret_cast<Word *>(&total.minimum), static_cast<Word>(~mine.GetMinimum()));
    atomicMax(reinterpret_cast<Word *>(&total.maximum), static_cast<Word>(mine.GetMaximum()));
  }
  __syncthreads();
  if (threadIdx.x == 0)
  {
    Carry(total.sum, StatisticsSummary::SumDigits);
  }
  else if (threadIdx.x == 32)
  {
    Carry(total.squares, StatisticsSummary::SquareDigits);
  }
  __syncthreads();
  if (threadIdx.x < Words)
  {
    Word * const of = reinterpret_cast<Word *>(&total) + threadIdx.x;
    Word * const to = reinterpret_cast<Word *>(all) + threadIdx.x;
    if (of == reinterpret_cast<Word *>(&total.minimum) || of == reinterpret_cast<Word *>(&total.maximum))
    {
      atomicMax(to, *of);
    }
    else if (*of != 0)
    {
      atomicAdd(to, *of);
    }
  }
}

/** One block: as the CPU leaves it. */
__global__ void
__launch_bounds__(Threads) FinishSummaryKernel(StatisticsSummary * all)
{
  __shared__ StatisticsSummary total;
  const auto                   w = static_cast<int>(threadIdx.x);
  if (w < Words)
  {
    reinterpret_cast<Word *>(&total)[w] = reinterpret_cast<const Word *>(all)[w];
  }
  __syncthreads();
  if (w == 0)
  {
    Carry(total.sum, StatisticsSummary::SumDigits);
    total.minimum = total.finite > 0 ? ~total.minimum : 0;
  }
  else if (w == 32)
  {
    Carry(total.squares, StatisticsSummary::SquareDigits);
  }
  __syncthreads();
  if (w < Words)
  {
    reinterpret_cast<Word *>(all)[w] = reinterpret_cast<const Word *>(&total)[w];
  }
}

/** Enough to fill a device; and no block has more than 2^29 voxels, so that its digits do not overflow, nor a warp's
 * sums: its threads, of which there are 8 times 32 in the block, have 2^26 among them. */
int
CountBlocks(const Box & box)
{
  const std::int64_t n = box.NumberOfVoxels();
  return static_cast<int>(
    std::max({ std::int64_t{ 1 }, std::min<std::int64_t>(n / (64 * Threads), 1024), (n >> 29) + (n > 0 ? 1 : 0) }));
}

/** The scratch is the stage's. The summarised image is dense: the chunk's input, which has no halo, or the stage's
 * output.
 */
void
RunStatistics(const KernelCall & call)
{
  const int    blocks = CountBlocks(call.writable);
  auto * const summary = static_cast<StatisticsSummary *>(call.sideOut);
  CheckCuda(cudaMemsetAsync(summary, 0, sizeof(*summary), StreamOf(call)), "cudaMemsetAsync");
  const BufferView values = RunStatisticsStage(call);
  DispatchPixelType(values.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    StatisticsKernel<<<blocks, Threads, 0, StreamOf(call)>>>(
      static_cast<const Pixel *>(values.data), values.box.NumberOfVoxels(), summary);
    CheckLaunch("StatisticsKernel");
  });
  FinishSummaryKernel<<<1, Threads, 0, StreamOf(call)>>>(summary);
  CheckLaunch("FinishSummaryKernel");
}

} // namespace

void
RegisterCudaStatistics(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.summarize = { RunStatistics, StatisticsStageBytes, StatisticsCost };
  registry.Register("statistics", kernels);
}

} // namespace chunkwise
