/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaBlockSums_cuh
#define chunkwiseCudaBlockSums_cuh

#include "chunkwiseCudaPasses.cuh"

// Sums of k taps, see TapsOf, at a cost that does not grow with k: prefix and suffix sums of blocks of k positions
// that are aligned to the image, see MeanOperation. The sums do not depend on where a chunk begins.
namespace chunkwise
{

__device__ inline std::int64_t
PositionInBlock(std::int64_t i, std::int64_t k)
{
  const std::int64_t p = i % k;
  return p < 0 ? p + k : p;
}

/** Turns the k values of a block into the sums from each of them to the block's end, down to slot `lowest`. */
template <typename TRule, typename TAcc>
__device__ __forceinline__ void
SuffixSums(TAcc * slots, int stride, int k, int lowest)
{
  TAcc suffix = slots[(k - 1) * stride];
  int  t = k - 2;
  // Four loads in flight.
  for (; t - 3 >= lowest; t -= 4)
  {
    TAcc values[4];
#pragma unroll
    for (int s = 0; s < 4; ++s)
    {
      values[s] = slots[(t - s) * stride];
    }
#pragma unroll
    for (int s = 0; s < 4; ++s)
    {
      suffix = TRule::Join(values[s], suffix);
      slots[(t - s) * stride] = suffix;
    }
  }
  for (; t >= lowest; --t)
  {
    suffix = TRule::Join(slots[t * stride], suffix);
    slots[t * stride] = suffix;
  }
}

/** Along a strided axis: a thread per line with k slots in shared memory, which hold the values of the block that is
 * being read and, ahead of them, the suffix sums of the block before. Each value is read once. */
template <typename TRule, typename TIn, typename TAcc, typename TStore>
__global__ void
BlockColumnKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TStore store, std::int64_t segment)
{
  extern __shared__ __align__(16) unsigned char memory[];
  TAcc * const                                  slots = reinterpret_cast<TAcc *>(memory) + threadIdx.x;
  const int                                     threads = static_cast<int>(blockDim.x);
  const int                                     k = static_cast<int>(TapsOf<TRule>(pass));
  const std::int64_t                            lines = pass.outer * pass.inner;
  const std::int64_t                            step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t q = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; q < lines; q += step)
  {
    const std::int64_t outerIndex = q / pass.inner;
    const std::int64_t innerIndex = q - outerIndex * pass.inner;
    const TIn * const  line = in + outerIndex * pass.inCount * pass.inner + innerIndex;
    const auto         storeLine = store.BeginLine(outerIndex, innerIndex);
    const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * segment;
    const std::int64_t end = begin + segment < pass.outCount ? begin + segment : pass.outCount;
    const std::int64_t count = end - begin + k - 1;
    const std::int64_t first = pass.outLower + begin - pass.radius;
    std::int64_t       offset = (outerIndex * pass.outCount + begin) * pass.inner + innerIndex;
    int                p = static_cast<int>(PositionInBlock(first, k));
    TAcc               prefix = pass.absent;
    TAcc               values[Together];
    bool               held = HoldsTogether(pass, first);
    if (held)
    {
      LoadTogether<TRule>(values, pass, line, first);
    }
    for (std::int64_t n = 0; n < count;)
    {
      // At most to the end of the block.
      int now = k - p < Together ? k - p : Together;
      now = count - n < now ? static_cast<int>(count - n) : now;
      TAcc * const own = slots + p * threads;
      // The sums of the windows that end here, as far as the block before has a part in them.
      TAcc before[Together];
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
        before[s] = s < now && n + s >= k - 1 && p + s < k - 1 ? own[(s + 1) * threads] : TAcc(0);
      }
      if (held)
      {
#pragma unroll
        for (int s = 0; s < Together; ++s)
        {
          if (s < now)
          {
            own[s * threads] = values[s];
          }
        }
      }
      else
      {
#pragma unroll 1
        for (int s = 0; s < now; ++s)
        {
          own[s * threads] = Fetch<TRule>(pass, line, pass.inner, first + n + s);
        }
#pragma unroll
        for (int s = 0; s < Together; ++s)
        {
          values[s] = s < now ? own[s * threads] : TAcc(0);
        }
      }
      TAcc sums[Together];
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
        prefix = s < now ? TRule::Join(prefix, values[s]) : prefix;
        sums[s] = p + s == k - 1 ? prefix : TRule::Join(before[s], prefix);
      }
      const std::int64_t o = begin + n - (k - 1);
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
        if (s < now && n + s >= k - 1)
        {
          storeLine(offset, pass.outLower + o + s, sums[s]);
          offset += pass.inner;
        }
      }
      // On their way while the suffix sums are made.
      held = n + now < count && HoldsTogether(pass, first + n + now);
      if (held)
      {
        LoadTogether<TRule>(values, pass, line, first + n + now);
      }
      p += now;
      n += now;
      if (p == k)
      {
        SuffixSums<TRule>(slots, threads, k, n < k ? k - static_cast<int>(n) : 0);
        p = 0;
        prefix = pass.absent;
      }
    }
  }
}

/** Along x: a block of threads stages pieces of rows; a thread does one block of k positions of one row. k is odd, so
 * lanes k apart use different banks. */
template <typename TRule, typename TIn, typename TAcc>
__global__ void
BlockRowKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TAcc * __restrict__ out, int width, int rowsPerBlock)
{
  extern __shared__ __align__(16) unsigned char memory[];
  const int                                     k = static_cast<int>(TapsOf<TRule>(pass));
  const int                                     staged = width + k - 1;
  TAcc * const                                  values = reinterpret_cast<TAcc *>(memory);
  TAcc * const                                  suffixes = values + rowsPerBlock * staged;
  TAcc * const                                  results = suffixes + rowsPerBlock * staged;
  const std::int64_t                            tilesPerRow = (pass.outCount + width - 1) / width;
  const std::int64_t                            rowGroups = (pass.outer + rowsPerBlock - 1) / rowsPerBlock;
  for (std::int64_t tile = blockIdx.x; tile < tilesPerRow * rowGroups; tile += gridDim.x)
  {
    const std::int64_t group = tile / tilesPerRow;
    const std::int64_t o = (tile - group * tilesPerRow) * width;
    const std::int64_t firstRow = group * rowsPerBlock;
    const int rows = static_cast<int>(pass.outer - firstRow < rowsPerBlock ? pass.outer - firstRow : rowsPerBlock);
    const int outputs = static_cast<int>(pass.outCount - o < width ? pass.outCount - o : width);
    const int needed = outputs + k - 1;
    const std::int64_t first = pass.outLower + o - pass.radius;
    for (int i = threadIdx.x; i < rows * needed; i += blockDim.x)
    {
      const int          row = i / needed;
      const int          x = i - row * needed;
      const TIn * const  line = in + (firstRow + row) * pass.inCount;
      const std::int64_t at = first + x - pass.inLower;
      values[row * staged + x] =
        at >= 0 && at < pass.inCount ? TRule::Load(pass, line[at]) : Fetch<TRule>(pass, line, 1, first + x);
    }
    __syncthreads();
    // Block b of a row is at staged positions [b k - offset, (b + 1) k - offset).
    const int offset = static_cast<int>(PositionInBlock(first, k));
    const int blocks = (needed + offset + k - 1) / k;
    for (int work = threadIdx.x; work < rows * blocks; work += blockDim.x)
    {
      const int row = work / blocks;
      const int b = work - row * blocks;
      const int lower = b * k - offset > 0 ? b * k - offset : 0;
      const int upper = (b + 1) * k - offset;
      if (upper <= needed)
      {
        TAcc suffix = values[row * staged + upper - 1];
        suffixes[row * staged + upper - 1] = suffix;
        for (int x = upper - 2; x >= lower; --x)
        {
          suffix = TRule::Join(values[row * staged + x], suffix);
          suffixes[row * staged + x] = suffix;
        }
      }
    }
    __syncthreads();
    for (int work = threadIdx.x; work < rows * blocks; work += blockDim.x)
    {
      const int row = work / blocks;
      const int b = work - row * blocks;
      const int lower = b * k - offset;
      const int upper = (b + 1) * k - offset < needed ? (b + 1) * k - offset : needed;
      if (lower < 0)
      {
        continue; // no window ends in a block that begins before the first tap
      }
      TAcc prefix = pass.absent;
      for (int x = lower; x < upper; ++x)
      {
        prefix = TRule::Join(prefix, values[row * staged + x]);
        if (x >= k - 1)
        {
          results[row * width + x - (k - 1)] =
            x - lower == k - 1 ? prefix : TRule::Join(suffixes[row * staged + x - (k - 1)], prefix);
        }
      }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < rows * outputs; i += blockDim.x)
    {
      const int row = i / outputs;
      const int x = i - row * outputs;
      out[(firstRow + row) * pass.outCount + o + x] = results[row * width + x];
    }
    __syncthreads();
  }
}

/** The same sums, an output a thread, straight from memory: for windows too large for shared memory. */
template <typename TRule, typename TIn, typename TAcc, typename TStore>
__global__ void
DirectBlockKernel(Pass<TAcc> pass, const TIn * __restrict__ in, TStore store)
{
  const std::int64_t k = TapsOf<TRule>(pass);
  const std::int64_t count = pass.outer * pass.outCount * pass.inner;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const std::int64_t innerIndex = i % pass.inner;
    const std::int64_t o = i / pass.inner % pass.outCount;
    const std::int64_t outerIndex = i / pass.inner / pass.outCount;
    const TIn * const  line = in + outerIndex * pass.inCount * pass.inner + innerIndex;
    const std::int64_t first = pass.outLower + o - pass.radius;
    const std::int64_t p = PositionInBlock(first, k);
    // The window's part in the block where it begins, and the rest in the next one.
    const std::int64_t border = p == 0 ? first : first + k - p;
    TAcc               prefix = pass.absent;
    for (std::int64_t j = border; j < first + k; ++j)
    {
      prefix = TRule::Join(prefix, Fetch<TRule>(pass, line, pass.inner, j));
    }
    TAcc sum = prefix;
    if (p != 0)
    {
      TAcc suffix = Fetch<TRule>(pass, line, pass.inner, border - 1);
      for (std::int64_t j = border - 2; j >= first; --j)
      {
        suffix = TRule::Join(Fetch<TRule>(pass, line, pass.inner, j), suffix);
      }
      sum = TRule::Join(suffix, prefix);
    }
    store.BeginLine(outerIndex, innerIndex)(i, pass.outLower + o, sum);
  }
}

template <typename TRule, typename TIn, typename TAcc, typename TStore>
void
LaunchBlockColumns(const Pass<TAcc> & pass, const TIn * in, const TStore & store, cudaStream_t stream)
{
  const std::int64_t k = TapsOf<TRule>(pass);
  int                threads = 128;
  while (threads > 32 && k * threads * static_cast<std::int64_t>(sizeof(TAcc)) > 24 * 1024)
  {
    threads /= 2;
  }
  const std::int64_t bytes = k * threads * static_cast<std::int64_t>(sizeof(TAcc));
  if (bytes > SharedMemoryOfDevice())
  {
    DirectBlockKernel<TRule>
      <<<BlocksFor(pass.outer * pass.outCount * pass.inner, 128), 128, 0, stream>>>(pass, in, store);
    CheckLaunch("DirectBlockKernel");
    return;
  }
  const auto kernel = BlockColumnKernel<TRule, TIn, TAcc, TStore>;
  AllowSharedMemory(kernel, static_cast<std::size_t>(bytes));
  const LineGrid grid(pass, threads, k);
  kernel<<<grid.blocks, threads, static_cast<std::size_t>(bytes), stream>>>(pass, in, store, grid.segment);
  CheckLaunch("BlockColumnKernel");
}

template <typename TRule, typename TIn, typename TAcc>
void
LaunchBlockRows(const Pass<TAcc> & pass, const TIn * in, TAcc * out, cudaStream_t stream)
{
  const std::int64_t k = TapsOf<TRule>(pass);
  const std::int64_t width = std::min<std::int64_t>(pass.outCount, std::max<std::int64_t>(512, 4 * k));
  const std::int64_t rowBytes = (2 * (width + k - 1) + width) * static_cast<std::int64_t>(sizeof(TAcc));
  if (rowBytes > SharedMemoryOfDevice())
  {
    DirectBlockKernel<TRule>
      <<<BlocksFor(pass.outer * pass.outCount, 128), 128, 0, stream>>>(pass, in, StoreAccumulator<TAcc>{ out });
    CheckLaunch("DirectBlockKernel");
    return;
  }
  const auto rows = std::max<std::int64_t>(
    1, std::min<std::int64_t>(pass.outer, static_cast<std::int64_t>(LargestSharedMemory) / rowBytes));
  const auto kernel = BlockRowKernel<TRule, TIn, TAcc>;
  AllowSharedMemory(kernel, static_cast<std::size_t>(rowBytes * rows));
  const std::int64_t tiles = (pass.outCount + width - 1) / width * ((pass.outer + rows - 1) / rows);
  kernel<<<BlocksFor(tiles, 1), 256, static_cast<std::size_t>(rowBytes * rows), stream>>>(
    pass, in, out, static_cast<int>(width), static_cast<int>(rows));
  CheckLaunch("BlockRowKernel");
}

} // namespace chunkwise

#endif
