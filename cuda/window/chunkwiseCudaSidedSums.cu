/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaSidedSums.cuh"

#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseFootprintSums.h"
#include "chunkwiseSidedBoxes.h"

#include <type_traits>

// Sums over boxes that reach farther to one side, along one axis after the other. Sums of integers are exact, so that
// they slide along the axes but x; those of real numbers have the order that MeanOperation says.
namespace chunkwise
{

namespace
{

/** Windows of real numbers of more taps go by blocks. */
constexpr std::int64_t MostDirectTaps = 9;
/** Sums of more taps along x slide, too. */
constexpr std::int64_t MostTapsAlongX = 64;
/** Outputs of a thread whose sums slide. */
constexpr std::int64_t SlidingRun = 64;

/** Stores the sums that a pass hands on. */
template <typename TAcc>
struct KeepSums
{
  Voxels<TAcc> out;

  __device__ __forceinline__ void
  operator()(std::int64_t offset, const Coordinates &, TAcc sum) const
  {
    out.data[offset] = sum;
  }
};

/** Results of the last pass. */
template <typename TOut, typename TAcc>
struct FinishSums
{
  Voxels<TOut>              out;
  FootprintOperation::Sides sides;
  Coordinates               extent; ///< of the image
  std::int64_t              count;  ///< what sums are divided by, unless it is counted
  bool                      counts;
  bool                      truncates;

  __device__ __forceinline__ void
  operator()(std::int64_t offset, const Coordinates & index, TAcc sum) const
  {
    using Count = std::conditional_t<sizeof(TAcc) == 4, std::int32_t, std::int64_t>;
    std::int64_t taps = count;
    for (int a = 0; counts && a < MaxDimension; ++a)
    {
      const std::int64_t i = index.axis[a];
      const std::int64_t last = min(i + sides.upper.axis[a], extent.axis[a] - 1);
      taps = (a == 0 ? 1 : taps) * (last - max(i - sides.lower.axis[a], std::int64_t{ 0 }) + 1);
    }
    out.data[offset] = MeanOf<TOut>(sum, static_cast<Count>(taps), truncates);
  }
};

/** A pass along one axis: at each voxel of the output of `store` the sum of `taps` voxels, the first of them `lower`
 * voxels below. */
template <typename TIn, typename TAcc, typename TStore>
struct SumPass
{
  Voxels<const TIn> in;
  TStore            store;
  TAcc *            suffixes; ///< of the voxels that are read, dense
  int               axis;
  std::int64_t      taps;
  std::int64_t      lower;
};

/** The first voxel of run number `i`, where runs lie along an axis of a box and begin at multiples of `length` from
 * `origin` on, x fastest. */
__device__ __forceinline__ Coordinates
FirstOfRun(const Box & box, int axis, std::int64_t origin, std::int64_t length, std::int64_t runs, std::int64_t i)
{
  Coordinates index = box.lower;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t extent = a == axis ? runs : box.Extent(a);
    if (extent > 1)
    {
      const std::int64_t quotient = Quotient(i, extent);
      index.axis[a] += a == axis ? 0 : i - quotient * extent;
      index.axis[a] = a == axis ? origin + (i - quotient * extent) * length : index.axis[a];
      i = quotient;
    }
    else if (a == axis)
    {
      index.axis[a] = origin;
    }
  }
  return index;
}

/** The voxels along a line that may be read. */
template <typename TIn, typename TAcc>
struct SumLine
{
  const TIn *  voxels; ///< of position 0
  std::int64_t step;
  std::int64_t begin;
  std::int64_t end;

  template <typename TStore>
  __device__ __forceinline__
  SumLine(const SumPass<TIn, TAcc, TStore> & g, Coordinates index)
    : step(g.in.stride.axis[g.axis])
    , begin(g.in.box.lower.axis[g.axis])
    , end(g.in.box.upper.axis[g.axis])
  {
    index.axis[g.axis] = 0;
    voxels = g.in.data + g.in.Offset(index);
  }
  __device__ __forceinline__ TAcc
  operator[](std::int64_t i) const
  {
    return i >= begin && i < end ? static_cast<TAcc>(voxels[i * step]) : TAcc(0);
  }
};

/** Each tap is loaded once for VOutputs next to each other, and added to each in ascending order. */
template <int VOutputs, typename TIn, typename TAcc, typename TStore>
__global__ void __launch_bounds__(128)
  DirectSumKernel(const __grid_constant__ SumPass<TIn, TAcc, TStore> g, std::int64_t runs, std::int64_t count)
{
  const auto &       out = g.store.out;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const int          taps = static_cast<int>(g.taps);
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    Coordinates              index = FirstOfRun(out.box, g.axis, out.box.lower.axis[g.axis], VOutputs, runs, i);
    const SumLine<TIn, TAcc> line(g, index);
    const std::int64_t       first = index.axis[g.axis] - g.lower;
    TAcc                     sums[VOutputs];
#pragma unroll
    for (int u = 0; u < VOutputs; ++u)
    {
      sums[u] = 0;
    }
    for (int t = 0; t < taps + VOutputs - 1; ++t)
    {
      const TAcc value = line[first + t];
#pragma unroll
      for (int u = 0; u < VOutputs; ++u)
      {
        sums[u] = t >= u && t - u < taps ? sums[u] + value : sums[u];
      }
    }
    std::int64_t offset = out.Offset(index);
#pragma unroll
    for (int u = 0; u < VOutputs; ++u)
    {
      if (index.axis[g.axis] < out.box.upper.axis[g.axis])
      {
        g.store(offset, index, sums[u]);
      }
      ++index.axis[g.axis];
      offset += out.stride.axis[g.axis];
    }
  }
}

/** Sums of integers slide along a run of outputs. */
template <typename TIn, typename TAcc, typename TStore>
__global__ void __launch_bounds__(128)
  SlidingSumKernel(const __grid_constant__ SumPass<TIn, TAcc, TStore> g, std::int64_t runs, std::int64_t count)
{
  const auto &       out = g.store.out;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    Coordinates              index = FirstOfRun(out.box, g.axis, out.box.lower.axis[g.axis], SlidingRun, runs, i);
    const SumLine<TIn, TAcc> line(g, index);
    const std::int64_t       last = min(index.axis[g.axis] + SlidingRun, out.box.upper.axis[g.axis]);
    std::int64_t             first = index.axis[g.axis] - g.lower;
    TAcc                     sum = 0;
#pragma unroll 4
    for (std::int64_t t = 0; t < g.taps - 1; ++t)
    {
      sum += line[first + t];
    }
    std::int64_t offset = out.Offset(index);
#pragma unroll 4
    for (; index.axis[g.axis] < last; ++index.axis[g.axis], ++first)
    {
      sum += line[first + g.taps - 1];
      g.store(offset, index, sum);
      offset += out.stride.axis[g.axis];
      sum -= line[first];
    }
  }
}

/** The block of `taps` positions that begins at a multiple of their number, see MeanOperation. */
__device__ __forceinline__ std::int64_t
                           FirstOfBlock(std::int64_t i, std::int64_t taps)
{
  return i - (i % taps < 0 ? i % taps + taps : i % taps);
}

/** The sums from each voxel to the end of its block. */
template <typename TIn, typename TAcc, typename TStore>
__global__ void __launch_bounds__(128)
  SuffixSumKernel(const __grid_constant__ SumPass<TIn, TAcc, TStore> g, std::int64_t runs, std::int64_t count)
{
  const Voxels<TAcc> suffixes{ g.suffixes, g.in.box, {} };
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t       dense = 1;
  for (int a = 0; a < g.axis; ++a)
  {
    dense *= g.in.box.Extent(a);
  }
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const Coordinates index =
      FirstOfRun(g.in.box, g.axis, FirstOfBlock(g.in.box.lower.axis[g.axis], g.taps), g.taps, runs, i);
    const SumLine<TIn, TAcc> line(g, index);
    const std::int64_t       begin = max(index.axis[g.axis], line.begin);
    std::int64_t             at = min(index.axis[g.axis] + g.taps, line.end) - 1;
    std::int64_t             offset = 0;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      offset = offset * g.in.box.Extent(a) + (a == g.axis ? at : index.axis[a]) - g.in.box.lower.axis[a];
    }
    TAcc suffix = line[at];
    suffixes.data[offset] = suffix;
    for (--at; at >= begin; --at)
    {
      offset -= dense;
      suffix = line[at] + suffix;
      suffixes.data[offset] = suffix;
    }
  }
}

/** A thread has the windows that end in a block: the end of the block before and the begin of this one. */
template <typename TIn, typename TAcc, typename TStore>
__global__ void __launch_bounds__(128)
  BlockSumKernel(const __grid_constant__ SumPass<TIn, TAcc, TStore> g, std::int64_t runs, std::int64_t count)
{
  const auto &       out = g.store.out;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t reach = g.taps - 1 - g.lower;
  std::int64_t       dense = 1;
  for (int a = 0; a < g.axis; ++a)
  {
    dense *= g.in.box.Extent(a);
  }
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    Coordinates index =
      FirstOfRun(out.box, g.axis, FirstOfBlock(out.box.lower.axis[g.axis] + reach, g.taps), g.taps, runs, i);
    const SumLine<TIn, TAcc> line(g, index);
    const std::int64_t       begin = index.axis[g.axis];
    const std::int64_t       end = min(begin + g.taps, out.box.upper.axis[g.axis] + reach);
    std::int64_t             place = 0; ///< of position 0 of the line
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      place = place * g.in.box.Extent(a) + (a == g.axis ? 0 : index.axis[a]) - g.in.box.lower.axis[a];
    }
    index.axis[g.axis] = 0;
    const std::int64_t origin = out.Offset(index);
    TAcc               prefix = 0;
    for (std::int64_t at = begin; at < end; ++at)
    {
      prefix += line[at];
      index.axis[g.axis] = at - reach;
      if (index.axis[g.axis] < out.box.lower.axis[g.axis])
      {
        continue;
      }
      TAcc sum = prefix;
      if (at + 1 < begin + g.taps)
      {
        const std::int64_t first = max(at - (g.taps - 1), line.begin);
        sum = (first < begin && first < line.end ? g.suffixes[place + first * dense] : TAcc(0)) + prefix;
      }
      g.store(origin + index.axis[g.axis] * out.stride.axis[g.axis], index, sum);
    }
  }
}

template <typename TIn, typename TAcc, typename TStore>
void
LaunchSums(const SumPass<TIn, TAcc, TStore> & g, cudaStream_t stream)
{
  const Box &        box = g.store.out.box;
  const std::int64_t lines = box.NumberOfVoxels() / box.Extent(g.axis);
  const auto         launch = [&](auto kernel, const char * name, std::int64_t ofLines, std::int64_t runs) {
    kernel<<<BlocksFor(ofLines * runs, 128), 128, 0, stream>>>(g, runs, ofLines * runs);
    CheckLaunch(name);
  };
  const auto runsOf = [&](std::int64_t length) { return (box.Extent(g.axis) + length - 1) / length; };
  if constexpr (std::is_same<TAcc, double>::value)
  {
    if (g.taps > MostDirectTaps)
    {
      const auto blocks = [&](std::int64_t begin, std::int64_t end) {
        const std::int64_t first = begin - (begin % g.taps < 0 ? begin % g.taps + g.taps : begin % g.taps);
        return (end - first + g.taps - 1) / g.taps;
      };
      const Box &        in = g.in.box;
      const std::int64_t reach = g.taps - 1 - g.lower;
      launch(SuffixSumKernel<TIn, TAcc, TStore>,
             "SuffixSumKernel",
             in.NumberOfVoxels() / in.Extent(g.axis),
             blocks(in.lower[g.axis], in.upper[g.axis]));
      launch(BlockSumKernel<TIn, TAcc, TStore>,
             "BlockSumKernel",
             lines,
             blocks(box.lower[g.axis] + reach, box.upper[g.axis] + reach));
      return;
    }
  }
  else if (g.taps > (g.axis == 0 ? MostTapsAlongX : 2))
  {
    launch(SlidingSumKernel<TIn, TAcc, TStore>, "SlidingSumKernel", lines, runsOf(SlidingRun));
    return;
  }
  g.axis == 0 ? launch(DirectSumKernel<1, TIn, TAcc, TStore>, "DirectSumKernel", lines, runsOf(1))
              : launch(DirectSumKernel<4, TIn, TAcc, TStore>, "DirectSumKernel", lines, runsOf(4));
}

/** Sums of 8- and 16-bit integers have 32 bits where all fit. */
bool
AreShort(const FootprintOperation::Sides & sides, PixelType kind)
{
  double largest = PixelSize(kind) == 1 ? 255.0 : 65535.0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    largest *= static_cast<double>(sides.Taps(a));
  }
  return !IsFloatingPoint(kind) && PixelSize(kind) <= 2 && largest < 2147483648.0;
}

/** The boxes of the passes, and the scratch that they take after the continued image. The first pass is not the last:
 * of one axis alone it converts. */
struct SumPlan
{
  SidedBoxes   boxes;
  bool         converts;
  std::int64_t bytesOfSum;
  std::size_t  buffers[2]{};
  std::size_t  suffixes{ 0 };

  SumPlan(const FootprintOperation & operation, const FootprintOperation::Sides & sides, const Box & output,
          const Box & image, PixelType kind)
    : boxes(output, image, sides, operation.boundary.mode)
    , converts(boxes.count == 1)
  {
    const bool isReal = IsFloatingPoint(kind);
    bytesOfSum = AreShort(sides, kind) ? 4 : isReal || PixelSize(kind) <= 4 ? 8 : 16;
    const auto bytesOf = [this](const Box & box) {
      return RoundUp(static_cast<std::size_t>(box.NumberOfVoxels() * bytesOfSum));
    };
    buffers[0] = bytesOf(converts ? boxes.padded : boxes.after[0]);
    buffers[1] = boxes.count > 2 ? bytesOf(boxes.after[1]) : 0;
    for (int pass = 0; pass < boxes.count; ++pass)
    {
      const bool isBlocks = isReal && boxes.Taps(boxes.axes[pass]) > MostDirectTaps;
      suffixes = isBlocks ? std::max(suffixes, bytesOf(boxes.Before(pass))) : suffixes;
    }
  }
};

/** One pass of the plan, from voxels or what the pass before it left. */
template <typename TAcc, typename TIn, typename TStore>
void
RunSumPass(const SumPlan & plan, int pass, const Voxels<const TIn> & in, const TStore & store, TAcc * suffixes,
           cudaStream_t stream)
{
  const int                  axis = pass < 0 ? 0 : plan.boxes.axes[pass];
  SumPass<TIn, TAcc, TStore> g{ in, store, suffixes, axis, 1, 0 };
  if (pass >= 0)
  {
    g.taps = plan.boxes.Taps(axis);
    g.lower = plan.boxes.radius[axis];
  }
  LaunchSums(g, stream);
}

template <typename TPixel, typename TAcc>
void
RunSums(const KernelCall & call, const SumPlan & plan)
{
  const auto &       operation = static_cast<const FootprintOperation &>(*call.operation);
  const auto         sides = *operation.GetSides(call.image.Extents());
  const cudaStream_t stream = StreamOf(call);
  char *             scratch = static_cast<char *>(call.scratch);
  const auto         pixels = PadImage<TPixel>(call, plan.boxes, operation.boundary, scratch);
  TAcc * const buffers[2] = { reinterpret_cast<TAcc *>(scratch), reinterpret_cast<TAcc *>(scratch + plan.buffers[0]) };
  auto * const suffixes = reinterpret_cast<TAcc *>(scratch + plan.buffers[0] + plan.buffers[1]);
  const SidedBoxes & boxes = plan.boxes;
  const auto         kept = [&](int number, const Box & box) {
    return KeepSums<TAcc>{ DenseVoxels(buffers[number % 2], box) };
  };
  const int first = plan.converts ? -1 : 0;
  auto      before = kept(0, plan.converts ? boxes.padded : boxes.after[0]);
  RunSumPass<TAcc>(plan, first, pixels, before, suffixes, stream);
  const auto read = [&] { return Voxels<const TAcc>{ before.out.data, before.out.box, before.out.stride }; };
  for (int pass = first + 1; pass + 1 < boxes.count; ++pass)
  {
    const auto store = kept(pass, boxes.after[pass]);
    RunSumPass<TAcc>(plan, pass, read(), store, suffixes, stream);
    before = store;
  }
  DispatchExactOutput<TPixel>(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    FinishSums<Out, TAcc> finish{
      VoxelsOf<Out>(call.output), sides, call.image.Extents(), 1, false, operation.truncates
    };
    for (int a = 0; a < MaxDimension && operation.statistic == FootprintStatistic::Mean; ++a)
    {
      finish.count *= sides.Taps(a);
      finish.counts = operation.boundary.mode == BoundaryMode::Renormalized;
    }
    RunSumPass<TAcc>(plan, boxes.count - 1, read(), finish, suffixes, stream);
  });
}

} // namespace

void
RunSidedSums(const KernelCall & call)
{
  const auto &    operation = static_cast<const FootprintOperation &>(*call.operation);
  const PixelType kind = call.inputs[0].kind;
  const auto      sides = *operation.GetSides(call.image.Extents());
  const SumPlan   plan(operation, sides, call.output.box, call.image, kind);
  DispatchPixelType(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (std::is_floating_point<Pixel>::value)
    {
      RunSums<Pixel, double>(call, plan);
    }
    else if constexpr (sizeof(Pixel) == 8)
    {
      RunSums<Pixel, Int128>(call, plan);
    }
    else if constexpr (sizeof(Pixel) == 4)
    {
      RunSums<Pixel, std::int64_t>(call, plan);
    }
    else
    {
      AreShort(sides, kind) ? RunSums<Pixel, std::int32_t>(call, plan) : RunSums<Pixel, std::int64_t>(call, plan);
    }
  });
}

std::size_t
ScratchOfSidedSums(const Operation & operation, const ChunkShape & shape)
{
  const auto &  footprint = static_cast<const FootprintOperation &>(operation);
  const auto    sides = *footprint.GetSides(shape.image.Extents());
  const SumPlan plan(footprint, sides, shape.outputBox, shape.image, shape.inputKinds[0]);
  return ContinuedBytes(plan.boxes, footprint.boundary.mode, PixelSize(shape.inputKinds[0])) + plan.buffers[0] +
         plan.buffers[1] + plan.suffixes;
}

} // namespace chunkwise
