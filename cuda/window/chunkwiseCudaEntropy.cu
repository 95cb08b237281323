/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaMarchGrid.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseKernelChoice.h"

#include <string>
#include <type_traits>
#include <vector>

namespace chunkwise
{

namespace
{

constexpr int Threads = 128;

/** Voxels that enter or leave together. Their steps' sum has 32 bits: a step is at most 2^24 (log2(65535) + 1.5). */
constexpr int TapsTogether = 5;

/** The bins, and one for each voxel that is missing among voxels that come together. */
__host__ __device__ constexpr int
CountedBins(int bins)
{
  return bins + TapsTogether;
}

/** Bytes of the bins of so many voxels, and of some that are read behind the last. */
template <typename TBin>
std::size_t
BinBytes(std::int64_t voxels)
{
  return RoundUp(static_cast<std::size_t>(voxels + TapsTogether) * sizeof(TBin));
}

/** The bins of the voxels in and around the chunk, continued beyond the edge of the image. */
template <typename TPixel, typename TBin>
__global__ void
BinKernel(Voxels<const TPixel> in, Box image, BoundaryMode mode, TPixel constant, double lower, double scale, int bins,
          TBin * __restrict__ out, Box box)
{
  const auto width = static_cast<std::uint32_t>(box.Extent(0));
  const auto rows = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    Coordinates at = IndexIn(box, row * width);
    bool        there = true;
    for (int a = 1; a < MaxDimension; ++a)
    {
      at.axis[a] = MapTap(at.axis[a], in.box.lower.axis[a], in.box.upper.axis[a], image.Extent(a), mode);
      there = there && !(mode == BoundaryMode::Constant && at.axis[a] < 0);
    }
    const auto put = [&](std::uint32_t x, TPixel value) {
      out[row * width + x] = static_cast<TBin>(BinOf(value, lower, scale, bins));
    };
    // Columns that the buffer has need no search.
    const TPixel * const line =
      in.data + in.Offset(Coordinates{ { in.box.lower.axis[0], at.axis[1], at.axis[2], at.axis[3], at.axis[4] } });
    const std::int64_t first = box.lower.axis[0] - in.box.lower.axis[0];
    if (there && first >= 0 && first + width <= in.box.Extent(0) && in.stride.axis[0] == 1)
    {
#pragma unroll 4
      for (std::uint32_t x = threadIdx.x; x < width; x += 32)
      {
        put(x, line[first + x]);
      }
      continue;
    }
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      at.axis[0] = MapTap(box.lower.axis[0] + x, in.box.lower.axis[0], in.box.upper.axis[0], image.Extent(0), mode);
      const bool here = there && !(mode == BoundaryMode::Constant && at.axis[0] < 0);
      put(x, here ? in[at] : constant);
    }
  }
}

/** Counts of one byte in shared memory. The threads of a warp have theirs in words of different banks; a word has those
 * of four warps. */
struct SharedCounts
{
  unsigned char * bytes; ///< of this thread

  static constexpr bool IsShared = true;

  __device__ void
  Clear(int bins)
  {
    for (int bin = 0; bin < bins; ++bin)
    {
      bytes[bin * Threads] = 0;
    }
  }
  __device__ int
  Get(int bin) const
  {
    return bytes[bin * Threads];
  }
  __device__ __forceinline__ void
  Set(int bin, int count) const
  {
    bytes[bin * Threads] = static_cast<unsigned char>(count);
  }
};

/** Counts of two bytes in device memory: for windows and histograms that are too large for other counters. */
struct GlobalCounts
{
  std::uint16_t * counts; ///< of this thread
  std::int64_t    threads;

  static constexpr bool IsShared = false;

  __device__ void
  Clear(int bins)
  {
    for (int bin = 0; bin < bins; ++bin)
    {
      counts[bin * threads] = 0;
    }
  }
  __device__ int
  Get(int bin) const
  {
    return counts[bin * threads];
  }
  __device__ void
  Set(int bin, int count) const
  {
    counts[bin * threads] = static_cast<std::uint16_t>(count);
  }
};

/** The parameters that all threads share. */
struct EntropyWindow
{
  Box                  padded;
  Box                  output;
  Coordinates          radius;
  Coordinates          shorter; ///< by how much a window reaches less far to the upper side
  Coordinates          stride;  ///< of the bins
  int                  axis;    ///< along which windows slide
  int                  bins;
  std::int64_t         segment; ///< outputs that a thread slides over
  const std::int32_t * steps;
  const std::int64_t * totals; ///< nullptr: all bins are counted
  const double *       logarithms;
  int                  taps;
};


/** Lets voxels enter (VChange 1) or leave (-1), and returns the sum of the first `some` steps: the others are in bins
 * that nothing counts. All counts are read before one is written: that of a voxel in the bin of one before it is taken
 * as that one leaves it, and the last is written last. */
template <int VChange, typename TCounts, typename TStep>
__device__ __forceinline__ std::int32_t
ChangeTogether(const TCounts & counts, const int (&bins)[TapsTogether], int some, const TStep & stepOf)
{
  int before[TapsTogether];
#pragma unroll
  for (int k = 0; k < TapsTogether; ++k)
  {
    before[k] = counts.Get(bins[k]);
  }
#pragma unroll
  for (int k = 1; k < TapsTogether; ++k)
  {
#pragma unroll
    for (int j = 0; j < k; ++j)
    {
      before[k] += bins[j] == bins[k] ? VChange : 0;
    }
  }
  std::int32_t sum = 0;
#pragma unroll
  for (int k = 0; k < TapsTogether; ++k)
  {
    counts.Set(bins[k], before[k] + VChange);
    // The first step is 0.
    const int step = VChange > 0 ? before[k] : before[k] - 1;
    sum += stepOf(k < some ? step : 0);
  }
  return sum;
}

/** A plane of the window: along two axes at the most. */
struct EntropyPlane
{
  int          extents[2];
  std::int64_t strides[2];
};

/** ChangeTogether for all voxels of a plane. The bins of the next ones are on their way meanwhile, and those of a few
 * beyond a row's end, which lie in the next row or behind the last. `nowhere`: the first bin that nothing counts. */
template <int VChange, bool VIsDense, typename TBin, typename TCounts, typename TStep>
__device__ __forceinline__ std::int64_t
ChangePlane(const TCounts & counts, const TBin * __restrict__ row, const EntropyPlane & plane, int nowhere,
            const TStep & stepOf)
{
  const int    width = plane.extents[0];
  std::int64_t sum = 0;
  int          next[TapsTogether];
  const auto   load = [&](const TBin * from, int first) {
#pragma unroll
    for (int k = 0; k < TapsTogether; ++k)
    {
      next[k] = VIsDense ? (from + first)[k] : from[min(first + k, width - 1) * plane.strides[0]];
    }
  };
  load(row, 0);
  for (int v = 1; v <= plane.extents[1]; ++v)
  {
    const TBin * const nextRow = row + plane.strides[1];
    for (int u = 0; u < width; u += TapsTogether)
    {
      const int some = width - u;
      int       bins[TapsTogether];
#pragma unroll
      for (int k = 0; k < TapsTogether; ++k)
      {
        bins[k] = k < some ? next[k] : nowhere + k;
      }
      const bool isRowsEnd = some <= TapsTogether;
      if (!isRowsEnd || v < plane.extents[1])
      {
        load(isRowsEnd ? nextRow : row, isRowsEnd ? 0 : u + TapsTogether);
      }
      sum += ChangeTogether<VChange>(counts, bins, some, stepOf);
    }
    row = nextRow;
  }
  return sum;
}

/** The place of a line that begins at `at`. */
struct EntropyLine
{
  __device__ __forceinline__
  EntropyLine(const EntropyWindow & window, const Coordinates & at)
  {
    const int axis = window.axis;
    bool      hasFirst = false;
    origin = (0 - window.padded.lower.axis[axis]) * window.stride.axis[axis];
    outOffset = 0;
    std::int64_t outStride = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      outOffset += (at.axis[a] - window.output.lower.axis[a]) * outStride;
      outStride *= window.output.Extent(a);
      if (a == axis)
      {
        continue;
      }
      const std::int64_t r = window.radius.axis[a];
      const std::int64_t from =
        at.axis[a] - r > window.padded.lower.axis[a] ? at.axis[a] - r : window.padded.lower.axis[a];
      const std::int64_t end = at.axis[a] + r + 1 - window.shorter.axis[a];
      const std::int64_t to = end < window.padded.upper.axis[a] ? end : window.padded.upper.axis[a];
      origin += (from - window.padded.lower.axis[a]) * window.stride.axis[a];
      if (r > 0)
      {
        // No index that is known only when it runs: that would put it into memory.
        (hasFirst ? across.extents[1] : across.extents[0]) = static_cast<int>(to - from);
        (hasFirst ? across.strides[1] : across.strides[0]) = window.stride.axis[a];
        hasFirst = true;
      }
    }
  }

  /** The plane of the window: at most two axes have an extent. */
  EntropyPlane across{ { 1, 1 }, { 0, 0 } };
  std::int64_t origin;    ///< of the input, for index 0 along the axis
  std::int64_t outOffset; ///< of the line's first output
};

/** A thread slides its window along an axis: a plane of voxels enters the histogram and one leaves it for each output.
 */
template <typename TCounts, typename TBin, typename TOut>
__global__ void
__launch_bounds__(Threads, 6)
  EntropyKernel(EntropyWindow window, const TBin * __restrict__ bins, TOut * __restrict__ out, std::uint16_t * memory)
{
  extern __shared__ __align__(16) unsigned char shared[];
  TCounts                                       counts;
  auto * const copy = reinterpret_cast<std::int32_t *>(shared + CountedBins(window.bins) * Threads);
  if constexpr (TCounts::IsShared)
  {
    counts.bytes = shared + threadIdx.x % 32 * 4 + threadIdx.x / 32;
    for (int c = threadIdx.x; c < 2 * window.taps; c += Threads)
    {
      copy[c] = window.steps[c];
    }
    __syncthreads();
  }
  else
  {
    counts.counts = memory + static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x;
    counts.threads = static_cast<std::int64_t>(gridDim.x) * Threads;
  }
  const auto stepOf = [&](int count) {
    if constexpr (TCounts::IsShared)
    {
      return copy[count];
    }
    else
    {
      return window.steps[count];
    }
  };
  const int axis = window.axis;
  // Lines of the output along the axis, cut into segments: x fastest, so that a warp reads neighbors.
  Box                lines = window.output;
  const std::int64_t length = window.output.Extent(axis);
  lines.lower.axis[axis] = 0;
  lines.upper.axis[axis] = (length + window.segment - 1) / window.segment;
  const std::int64_t count = lines.NumberOfVoxels();
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * Threads;
  const std::int64_t step = window.stride.axis[axis];
  std::int64_t       outStep = 1;
  for (int a = 0; a < axis; ++a)
  {
    outStep *= window.output.Extent(a);
  }
  for (std::int64_t line = static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x; line < count; line += threads)
  {
    Coordinates        at = IndexIn(lines, line);
    const std::int64_t begin = window.output.lower.axis[axis] + at.axis[axis] * window.segment;
    const std::int64_t end =
      begin + window.segment < window.output.upper.axis[axis] ? begin + window.segment : window.output.upper.axis[axis];
    at.axis[axis] = begin;
    const EntropyLine    place(window, at);
    const EntropyPlane & across = place.across;
    const int            plane = across.extents[0] * across.extents[1];
    const std::int64_t   r = window.radius.axis[axis];
    const std::int64_t   last = r - window.shorter.axis[axis];
    const std::int64_t   lower = window.padded.lower.axis[axis];
    const std::int64_t   upper = window.padded.upper.axis[axis];
    std::int64_t         sum = 0;
    int                  n = 0;
    const auto           change = [&](std::int64_t i, auto by) {
      const TBin * const row = bins + place.origin + i * step;
      return across.strides[0] == 1 ? ChangePlane<decltype(by)::value, true>(counts, row, across, window.bins, stepOf)
                                              : ChangePlane<decltype(by)::value, false>(counts, row, across, window.bins, stepOf);
    };
    const auto enter = [&](std::int64_t i) {
      sum += change(i, std::integral_constant<int, 1>{});
      n += plane;
    };
    counts.Clear(CountedBins(window.bins));
    for (std::int64_t i = begin - r > lower ? begin - r : lower; i < begin + last && i < upper; ++i)
    {
      enter(i);
    }
    for (std::int64_t i = begin; i < end; ++i)
    {
      if (i > begin && i - r - 1 >= lower)
      {
        sum -= change(i - r - 1, std::integral_constant<int, -1>{});
        n -= plane;
      }
      if (i + last < upper)
      {
        enter(i + last);
      }
      std::int64_t sumSeen = sum;
      int          seen = n;
      if (window.totals)
      {
        const int absent = counts.Get(window.bins - 1);
        sumSeen -= window.totals[absent];
        seen -= absent;
      }
      out[place.outOffset + (i - begin) * outStep] =
        ConvertResult<TOut>(EntropyOf(sumSeen, seen, window.logarithms[seen]));
    }
  }
}

bool
UsesShared(const EntropyOperation & operation, const Coordinates & image)
{
  return operation.bins <= 256 + (operation.leavesOutLast ? 1 : 0) && operation.GetTaps(image) <= 255;
}

int
AxisToSlide(const Coordinates & radius)
{
  int axis = MaxDimension - 1;
  while (axis > 0 && radius[axis] == 0)
  {
    --axis;
  }
  return axis;
}

/** Outputs that a thread slides over: what it does before the first one takes about as long as one for each plane of
 * the radius. */
std::int64_t
SegmentOf(std::int64_t lines, std::int64_t length, std::int64_t radius, std::int64_t blocksAtOnce)
{
  // Many lines fill the device in few turns; few are cut so that there are enough threads.
  if (lines >= 32768)
  {
    return MarchSegment((lines + Threads - 1) / Threads, length, (radius + 1) / 2, blocksAtOnce);
  }
  const std::int64_t segments = std::min(400000 / lines, length / std::max<std::int64_t>(32, 8 * radius));
  return segments <= 1 ? length : (length + segments - 1) / segments;
}

/** Blocks whose histograms are in device memory. */
std::int64_t
BlocksWithGlobalCounts(const Box & output, int axis, int bins)
{
  const std::int64_t lines = output.NumberOfVoxels() / std::max<std::int64_t>(output.Extent(axis), 1);
  const std::int64_t most = std::max<std::int64_t>(1, (std::int64_t{ 128 } << 20) / (2 * CountedBins(bins) * Threads));
  return std::min((lines + Threads - 1) / Threads, most);
}

/** `inShared`: the histograms are in shared memory. */
template <typename TPixel, typename TBin>
void
Run(const KernelCall & call, const WindowBoxes & boxes, const EntropyOperation & operation, bool inShared)
{
  const Coordinates  image = call.image.Extents();
  const std::int64_t taps = operation.GetTaps(image);
  auto * const       bins = static_cast<TBin *>(call.scratch);
  const auto         binBytes = BinBytes<TBin>(boxes.padded.NumberOfVoxels());
  BinKernel<<<BlocksOfRows(boxes.padded), ThreadsOfRows(), 0, StreamOf(call)>>>(
    VoxelsOf<const TPixel>(call.inputs[0]),
    call.image,
    operation.boundary.mode,
    ConstantPixel<TPixel>(operation.boundary.constant),
    operation.lower,
    operation.bins / (operation.upper - operation.lower),
    operation.bins,
    bins,
    boxes.padded);
  CheckLaunch("BinKernel");
  // Read behind the last voxel, and counted nowhere.
  CheckCuda(cudaMemsetAsync(bins + boxes.padded.NumberOfVoxels(), 0, TapsTogether * sizeof(TBin), StreamOf(call)),
            "cudaMemsetAsync");

  const std::vector<std::int32_t> steps = EntropyOperation::GetSteps(2 * taps);
  const std::vector<double>       logarithms = EntropyOperation::GetLogarithms(taps);
  EntropyWindow                   window{};
  window.padded = boxes.padded;
  window.output = call.output.box;
  window.radius = boxes.radius;
  window.shorter = operation.shorter;
  window.stride = StridesOf(boxes.padded);
  window.axis = AxisToSlide(boxes.radius);
  window.bins = operation.bins;
  window.taps = static_cast<int>(taps);
  window.steps = static_cast<const std::int32_t *>(
    call.tables->Get("entropy steps " + std::to_string(taps), steps.data(), steps.size() * sizeof(steps[0])));
  window.logarithms = static_cast<const double *>(call.tables->Get(
    "entropy logarithms " + std::to_string(taps), logarithms.data(), logarithms.size() * sizeof(logarithms[0])));
  const std::vector<std::int64_t> totals = EntropyOperation::GetTotals(operation.leavesOutLast ? taps : 0);
  window.totals = operation.leavesOutLast
                    ? static_cast<const std::int64_t *>(call.tables->Get(
                        "entropy totals " + std::to_string(taps), totals.data(), totals.size() * sizeof(totals[0])))
                    : nullptr;
  const std::int64_t length = call.output.box.Extent(window.axis);
  const std::int64_t lines = call.output.box.NumberOfVoxels() / length;
  DispatchOutput<TPixel>(call.output.kind, [&](auto outPixel) {
    using Out = decltype(outPixel);
    auto * const out = static_cast<Out *>(call.output.data);
    if (inShared)
    {
      const auto bytes = static_cast<std::size_t>(CountedBins(operation.bins) * Threads + 8 * taps);
      const auto kernel = EntropyKernel<SharedCounts, TBin, Out>;
      AllowSharedMemory(kernel, bytes);
      window.segment = SegmentOf(
        lines, length, boxes.radius[window.axis], BlocksAtOnce(reinterpret_cast<const void *>(kernel), Threads, bytes));
      const std::int64_t segments = (length + window.segment - 1) / window.segment;
      kernel<<<BlocksFor(lines * segments, Threads), Threads, bytes, StreamOf(call)>>>(window, bins, out, nullptr);
    }
    else
    {
      window.segment = length;
      const auto blocks = BlocksWithGlobalCounts(call.output.box, window.axis, operation.bins);
      EntropyKernel<GlobalCounts, TBin, Out><<<static_cast<unsigned int>(blocks), Threads, 0, StreamOf(call)>>>(
        window, bins, out, reinterpret_cast<std::uint16_t *>(static_cast<char *>(call.scratch) + binBytes));
    }
    CheckLaunch("EntropyKernel");
  });
}

template <bool VInShared>
void
RunEntropy(const KernelCall & call)
{
  const auto &      operation = static_cast<const EntropyOperation &>(*call.operation);
  const WindowBoxes boxes(
    call.output.box, call.image, operation.EffectiveRadius(call.image.Extents()), operation.boundary.mode);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    operation.bins <= 256 ? Run<Pixel, std::uint8_t>(call, boxes, operation, VInShared)
                          : Run<Pixel, std::uint16_t>(call, boxes, operation, VInShared);
  });
}

/** A tap that enters or leaves the histogram costs about 20 bytes. */
KernelChoice
ChooseEntropy(const Operation & operation, const ChunkShape & shape)
{
  const auto &      entropy = static_cast<const EntropyOperation &>(operation);
  const Coordinates image = shape.image.Extents();
  const WindowBoxes boxes(shape.outputBox, shape.image, entropy.EffectiveRadius(image), entropy.boundary.mode);
  const int         axis = AxisToSlide(boxes.radius);
  const auto        voxels = boxes.padded.NumberOfVoxels();
  const std::size_t bins = entropy.bins <= 256 ? BinBytes<std::uint8_t>(voxels) : BinBytes<std::uint16_t>(voxels);
  const auto        taps = static_cast<double>(entropy.GetTaps(image));
  const double      cost = static_cast<double>(shape.outputBox.NumberOfVoxels()) *
                      (8 + 40 * taps / static_cast<double>(2 * boxes.radius[axis] + 1));
  if (UsesShared(entropy, image))
  {
    return { "shared", RunEntropy<true>, bins, cost };
  }
  const auto threads = static_cast<std::size_t>(BlocksWithGlobalCounts(shape.outputBox, axis, entropy.bins) * Threads);
  return {
    "global", RunEntropy<false>, bins + threads * 2 * static_cast<std::size_t>(CountedBins(entropy.bins)), cost
  };
}

} // namespace

void
RegisterCudaEntropy(KernelRegistry & registry)
{
  registry.Register("entropy", { MakeChoosingKernel<ChooseEntropy>(true) });
}

} // namespace chunkwise
