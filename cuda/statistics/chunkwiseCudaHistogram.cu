/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaDenseVoxels.cuh"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseOrdinal.h"
#include "chunkwiseRoundUp.h"
#include "chunkwiseStatisticsOperation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <type_traits>
#include <utility>

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
  /** Whether each bin has one integer, from `first` on: then BinOf needs no floating-point numbers. */
  bool hasIntegers;
  int  first;

  explicit BinRule(const HistogramOperation & operation)
    : lower(operation.lower)
    , scale(operation.GetScale())
    , bins(operation.bins)
    , hasIntegers(scale == 1 && std::abs(lower) <= 65536 && lower == std::floor(lower))
    , first(hasIntegers ? static_cast<int>(lower) : 0)
  {}

  template <typename TPixel>
  __device__ int
  operator()(TPixel value) const
  {
    if constexpr (std::is_integral<TPixel>::value && sizeof(TPixel) <= 2)
    {
      if (hasIntegers)
      {
        return min(max(static_cast<int>(value) - first, 0), bins - 1);
      }
    }
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

/** Two counters of 16 bits in a word: that of a number, and that of the number `words` further. */
constexpr unsigned int HalfBits = 16;
/** A counter that reaches it is emptied into the one that all blocks share. */
constexpr unsigned int FullHalf = 0x8000;
constexpr int          ThreadsOfHalves = 1024;
/** Images of fewer voxels take less time than the counters of all blocks do. */
constexpr std::int64_t LeastForHalves = std::int64_t{ 1 } << 22;
/** From so many voxels on blocks leave their counters in scratch memory, which one kernel adds up: as many atomic
 * additions as all blocks have counters take longer. */
constexpr std::int64_t LeastForStored = std::int64_t{ 1 } << 24;

std::int64_t
BytesOfHalves(int counters)
{
  return (static_cast<std::int64_t>(counters) + 1) / 2 * static_cast<std::int64_t>(sizeof(unsigned int));
}

/** The most blocks that leave their counters, on any device. */
std::int64_t
MostStoredBlocks()
{
  static const std::int64_t most = [] {
    int devices = 0;
    int largest = 1;
    (void)cudaGetDeviceCount(&devices);
    for (int device = 0; device < devices; ++device)
    {
      int processors = 0;
      (void)cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
      largest = std::max(largest, processors);
    }
    return std::int64_t{ 2 } * largest;
  }();
  return most;
}

/** The scratch memory for counters of blocks, 0 where they leave none. */
std::size_t
StoredBytes(std::int64_t voxels, PixelType kind, std::size_t counters)
{
  return voxels < LeastForStored || PixelSize(kind) == 1 || counters <= MostSharedCounters
           ? 0
           : static_cast<std::size_t>(MostStoredBlocks() * BytesOfHalves(static_cast<int>(counters)));
}

constexpr int
RoundsOfHalves(int voxelsOfPack)
{
  const int most = (static_cast<int>(FullHalf) - 1) / (ThreadsOfHalves * voxelsOfPack);
  return most < 3 ? most : 3;
}

/** The counters of a block, in shared memory. */
struct HalfCounters
{
  unsigned int * own;
  int            words;
  Counter *      counts; ///< of all blocks

  __device__ void
  Add(int counter, unsigned int alike) const
  {
    const unsigned int   shift = counter < words ? 0 : HalfBits;
    unsigned int * const word = own + (counter < words ? counter : counter - words);
    const unsigned int   before = atomicAdd(word, alike << shift) >> shift & ((1U << HalfBits) - 1);
    if (before < FullHalf && before + alike >= FullHalf)
    {
      atomicSub(word, FullHalf << shift);
      atomicAdd(&counts[counter], static_cast<Counter>(FullHalf));
    }
  }
  /** Adds all to those of all blocks. Blocks begin at different counters. */
  __device__ void
  AddToAll() const
  {
    const auto addUp = [this](int counter, unsigned int count) {
      if (count != 0)
      {
        atomicAdd(&counts[counter], static_cast<Counter>(count));
      }
    };
    const auto begin = static_cast<int>(static_cast<std::int64_t>(blockIdx.x) * words / gridDim.x);
    for (int i = static_cast<int>(threadIdx.x); i < words; i += ThreadsOfHalves)
    {
      const int at = i + begin < words ? i + begin : i + begin - words;
      addUp(at, own[at] & ((1U << HalfBits) - 1));
      addUp(at + words, own[at] >> HalfBits);
    }
  }
};

/** Counts voxels in as many counters as a block has shared memory for if each has 16 bits. `stored`: memory for those
 * of each block, or nullptr. Between two barriers a block counts less than FullHalf voxels, and who makes a counter
 * reach that empties it before the next barrier: so a counter is below FullHalf at every barrier, and never overflows.
 */
template <typename TPixel, typename TRule>
__global__ void
__launch_bounds__(ThreadsOfHalves)
  CountInHalvesKernel(const TPixel * __restrict__ voxels, std::int64_t n, TRule rule, int counters,
                      Counter * __restrict__ counts, unsigned int * __restrict__ stored)
{
  constexpr int PackBytes = 16;
  constexpr int VoxelsOfPack = PackBytes / sizeof(TPixel);
  constexpr int Rounds = RoundsOfHalves(VoxelsOfPack);
  struct alignas(PackBytes) Pack
  {
    TPixel voxels[VoxelsOfPack];
  };
  extern __shared__ unsigned int own[];
  const int                      words = (counters + 1) / 2;
  for (int i = static_cast<int>(threadIdx.x); i < words; i += ThreadsOfHalves)
  {
    own[i] = 0;
  }
  const HalfCounters all{ own, words, counts };
  const auto         beyond = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(voxels) % PackBytes);
  const std::int64_t before = (PackBytes - beyond) % PackBytes / static_cast<std::int64_t>(sizeof(TPixel));
  const std::int64_t head = before < n ? before : n;
  const std::int64_t packs = (n - head) / VoxelsOfPack;
  const auto * const whole = reinterpret_cast<const Pack *>(voxels + head);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * (Rounds * ThreadsOfHalves);
  Pack               next[Rounds];
  const auto         load = [&](std::int64_t first) {
#pragma unroll
    for (int r = 0; r < Rounds; ++r)
    {
      const std::int64_t p = first + r * ThreadsOfHalves + threadIdx.x;
      if (p < packs)
      {
        next[r] = whole[p];
      }
    }
  };
  std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * (Rounds * ThreadsOfHalves);
  load(first);
  __syncthreads();
  for (; first < packs; first += step)
  {
    Pack pack[Rounds];
#pragma unroll
    for (int r = 0; r < Rounds; ++r)
    {
      pack[r] = next[r];
    }
    load(first + step);
    int          counter = -1;
    unsigned int alike = 0;
#pragma unroll
    for (int r = 0; r < Rounds; ++r)
    {
      if (first + r * ThreadsOfHalves + threadIdx.x < packs)
      {
#pragma unroll
        for (int i = 0; i < VoxelsOfPack; ++i)
        {
          const int at = rule(pack[r].voxels[i]);
          if (at != counter)
          {
            if (counter >= 0)
            {
              all.Add(counter, alike);
            }
            counter = at;
            alike = 0;
          }
          ++alike;
        }
      }
    }
    if (counter >= 0)
    {
      all.Add(counter, alike);
    }
    __syncthreads();
  }
  // Less than two packs are left, before and behind.
  if (blockIdx.x == 0 && threadIdx.x < n - packs * VoxelsOfPack)
  {
    const std::int64_t i = threadIdx.x;
    const int          at = rule(voxels[i < head ? i : i + packs * VoxelsOfPack]);
    if (at >= 0)
    {
      atomicAdd(&counts[at], Counter{ 1 });
    }
  }
  if (!stored)
  {
    all.AddToAll();
    return;
  }
  for (int i = static_cast<int>(threadIdx.x); i < words; i += ThreadsOfHalves)
  {
    stored[static_cast<std::int64_t>(blockIdx.x) * words + i] = own[i];
  }
}

/** Adds up what blocks have left; a thread has a word of each. */
__global__ void
__launch_bounds__(Threads)
  AddHalvesKernel(const unsigned int * __restrict__ stored, int blocks, int counters, Counter * __restrict__ counts)
{
  const int words = (counters + 1) / 2;
  const int i = static_cast<int>(blockIdx.x) * Threads + static_cast<int>(threadIdx.x);
  if (i >= words)
  {
    return;
  }
  // Fewer than 2^16 blocks have less than FullHalf each.
  unsigned int low = 0;
  unsigned int high = 0;
#pragma unroll 8
  for (int block = 0; block < blocks; ++block)
  {
    const unsigned int word = stored[static_cast<std::int64_t>(block) * words + i];
    low += word & ((1U << HalfBits) - 1);
    high += word >> HalfBits;
  }
  counts[i] += low;
  if (i + words < counters)
  {
    counts[i + words] += high;
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

/** False if blocks have no shared memory for so many counters, or the image has few voxels. */
template <typename TPixel, typename TRule>
bool
LaunchInHalves(const TPixel * voxels, std::int64_t n, const TRule & rule, int counters, Counter * counts,
               unsigned int * stored, cudaStream_t stream)
{
  const std::int64_t bytes = BytesOfHalves(counters);
  if (n < LeastForHalves || bytes > SharedMemoryOfDevice())
  {
    return false;
  }
  const auto kernel = CountInHalvesKernel<TPixel, TRule>;
  const auto shared = static_cast<std::size_t>(bytes);
  // Asked for once on a device: the answers take longer than the kernel.
  static std::mutex                                       mutex;
  static std::map<std::pair<int, std::int64_t>, unsigned> known;
  int                                                     device = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  unsigned int blocks = 0;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    unsigned int &                    found = known[{ device, bytes }];
    if (found == 0)
    {
      CheckCuda(cudaFuncSetAttribute(
                  kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(SharedMemoryOfDevice())),
                "cudaFuncSetAttribute");
      found = static_cast<unsigned int>(
        std::min(BlocksAtOnce(reinterpret_cast<const void *>(kernel), ThreadsOfHalves, shared), MostStoredBlocks()));
    }
    blocks = found;
  }
  kernel<<<blocks, ThreadsOfHalves, shared, stream>>>(voxels, n, rule, counters, counts, stored);
  CheckLaunch("CountInHalvesKernel");
  if (stored)
  {
    const int words = (counters + 1) / 2;
    AddHalvesKernel<<<static_cast<unsigned int>((words + Threads - 1) / Threads), Threads, 0, stream>>>(
      stored, static_cast<int>(blocks), counters, counts);
    CheckLaunch("AddHalvesKernel");
  }
  return true;
}

/** `values` is dense: the chunk's input, which has no halo, or what a stage made. `stored`: StoredBytes, or nullptr. */
template <typename TRule>
void
LaunchCount(const KernelCall & call, const BufferView & values, const TRule & rule, unsigned int * stored)
{
  const std::int64_t n = values.box.NumberOfVoxels();
  const auto         counters = static_cast<int>(call.sideOutBytes / sizeof(Counter));
  // Blocks have less than 2^32 voxels.
  const auto blocks = static_cast<unsigned int>(
    std::max<std::int64_t>(std::min<std::int64_t>((n + 16 * Threads - 1) / (16 * Threads), 2048), (n >> 31) + 1));
  CheckCuda(cudaMemsetAsync(call.sideOut, 0, call.sideOutBytes, StreamOf(call)), "cudaMemsetAsync");
  DispatchPixelType(values.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const auto * const voxels = static_cast<const Pixel *>(values.data);
    auto * const       counts = static_cast<Counter *>(call.sideOut);
    const int          shared = IsByte<Pixel> ? NumberOfBytes : counters;
    if (shared > MostSharedCounters)
    {
      if constexpr (!IsByte<Pixel>)
      {
        if (LaunchInHalves(voxels, n, rule, counters, counts, stored, StreamOf(call)))
        {
          return;
        }
      }
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

std::size_t
StoredBytesOf(const HistogramOperation & operation, PixelType kind, const Box & box)
{
  return StoredBytes(box.NumberOfVoxels(), kind, static_cast<std::size_t>(operation.bins) + 1);
}

void
RunHistogram(const KernelCall & call)
{
  const auto &     operation = static_cast<const HistogramOperation &>(*call.operation);
  const BufferView values = RunStatisticsStage(call);
  ChunkShape       shape = ShapeOf(call);
  shape.outputBox = call.writable;
  char * const stored = static_cast<char *>(call.scratch) + RoundUp(StatisticsStageBytes(operation, shape));
  const bool   stores = StoredBytesOf(operation, values.kind, call.writable) > 0;
  LaunchCount(call, values, BinRule(operation), stores ? reinterpret_cast<unsigned int *>(stored) : nullptr);
}

std::size_t
HistogramBytes(const Operation & operation, const ChunkShape & shape)
{
  const auto &    histogram = static_cast<const HistogramOperation &>(operation);
  const PixelType kind = histogram.stage ? histogram.stageKind : shape.inputKinds[0];
  return RoundUp(StatisticsStageBytes(operation, shape)) + StoredBytesOf(histogram, kind, shape.outputBox);
}

void
RunOrdinals(const KernelCall & call)
{
  const auto & operation = static_cast<const OrdinalsOperation &>(*call.operation);
  OrdinalRule  rule{ operation.bits, operation.shift, static_cast<int>(operation.prefixes.size()), {} };
  std::copy(operation.prefixes.begin(), operation.prefixes.end(), rule.prefixes);
  LaunchCount(call, call.inputs[0], rule, nullptr);
}

} // namespace

void
RegisterCudaHistogram(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.summarize = { RunHistogram, HistogramBytes, StatisticsCost };
  registry.Register("histogram", kernels);
  kernels.summarize = {};
  kernels.summarize.run = RunOrdinals;
  registry.Register("ordinals", kernels);
}

} // namespace chunkwise
