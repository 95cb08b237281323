/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaSidedSums.cuh"

#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPlanes.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseSidedBoxes.h"

#include <algorithm>
#include <type_traits>

// Sums over boxes that may reach farther to one side, by the passes of centered windows: the image as it goes on beyond
// its edge, as the numbers that are summed, goes through one pass an axis. Sums of real numbers have the order that
// MeanOperation says.
namespace chunkwise
{

namespace
{

/** Windows of an even number of taps. */
struct EvenSums : PlainSums
{
  static constexpr int Extra = 1;
};

/** Divides sums and stores voxels, line by line along x. */
template <typename TOut, typename TAcc>
struct FinishSums
{
  TOut *                    out;
  Box                       box;
  FootprintOperation::Sides sides;
  Coordinates               extent; ///< of the image
  std::int64_t              count;  ///< what sums are divided by, unless it is counted
  bool                      counts;
  bool                      truncates;

  struct Line
  {
    const FinishSums & finish;
    std::int64_t       others; ///< taps of the other axes

    __device__ __forceinline__ void
    operator()(std::int64_t offset, std::int64_t at, TAcc sum) const
    {
      using Count = std::conditional_t<sizeof(TAcc) == 4, std::int32_t, std::int64_t>;
      const std::int64_t taps = others * (finish.counts ? finish.TapsAt(0, at) : 1);
      finish.out[offset] = MeanOf<TOut>(sum, static_cast<Count>(taps), finish.truncates);
    }
  };
  __device__ __forceinline__ Line
  BeginLine(std::int64_t row, std::int64_t) const
  {
    const Coordinates at = IndexIn(box, row * box.Extent(0));
    std::int64_t      others = count;
    for (int a = 1; counts && a < MaxDimension; ++a)
    {
      others *= TapsAt(a, at.axis[a]);
    }
    return { *this, others };
  }

private:
  __device__ __forceinline__ std::int64_t
                             TapsAt(int a, std::int64_t i) const
  {
    const std::int64_t last = min(i + sides.upper.axis[a], extent.axis[a] - 1);
    return last - max(i - sides.lower.axis[a], std::int64_t{ 0 }) + 1;
  }
};

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

/** The passes, and the scratch of what goes into the first one and of its result, which later passes take in turn. */
struct SumPlan
{
  SidedBoxes  boxes;
  PassPlan    passes;
  std::size_t buffers[2];

  SumPlan(const FootprintOperation & operation, const FootprintOperation::Sides & sides, const Box & output,
          const Box & image, PixelType kind)
    : boxes(output, image, sides, operation.boundary.mode)
    , passes(boxes.padded, output, sides.Farthest().axis)
  {
    const bool        isReal = IsFloatingPoint(kind);
    const std::size_t bytesOfSum = AreShort(sides, kind) ? 4 : isReal || PixelSize(kind) <= 4 ? 8 : 16;
    const auto        bytesOf = [&](const Box & box) {
      return RoundUp(static_cast<std::size_t>(box.NumberOfVoxels()) * bytesOfSum);
    };
    buffers[0] = bytesOf(boxes.padded);
    buffers[1] = bytesOf(passes.after[0]);
  }
};

template <typename TRule, typename TAcc>
void
RunSumPass(const SumPlan & plan, int i, const Box & image, const TAcc * in, TAcc * out, cudaStream_t stream)
{
  const int  axis = plan.passes.axes[i];
  Pass<TAcc> pass = plan.passes.MakePass<TAcc>(i, image, (plan.boxes.Taps(axis) - 1) / 2, BoundaryMode::Renormalized);
  // A pass' windows begin `radius` voxels before their outputs.
  pass.outLower += pass.radius - plan.boxes.radius[axis];
  axis == 0 ? LaunchSumRows<TRule>(pass, in, out, stream)
            : LaunchSumColumns<TRule>(pass, in, StoreAccumulator<TAcc>{ out }, stream);
}

template <typename TPixel, typename TAcc>
void
RunSums(const KernelCall & call, const FootprintOperation::Sides & sides, const SumPlan & plan)
{
  const auto &       operation = static_cast<const FootprintOperation &>(*call.operation);
  const cudaStream_t stream = StreamOf(call);
  const Box &        box = call.output.box;
  auto *             current = static_cast<TAcc *>(call.scratch);
  auto *             other = reinterpret_cast<TAcc *>(static_cast<char *>(call.scratch) + plan.buffers[0]);
  ContinueKernel<TPixel, TAcc><<<BlocksOfRows(plan.boxes.padded), ThreadsOfRows(), 0, stream>>>(
    VoxelsOf<const TPixel>(call.inputs[0]),
    call.image,
    operation.boundary.mode,
    static_cast<TAcc>(ConstantPixel<TPixel>(operation.boundary.constant)),
    DenseVoxels(current, plan.boxes.padded));
  CheckLaunch("ContinueKernel");
  for (int i = 0; i < plan.passes.count; ++i)
  {
    const bool isEven = plan.boxes.Taps(plan.passes.axes[i]) % 2 == 0;
    isEven ? RunSumPass<EvenSums>(plan, i, call.image, current, other, stream)
           : RunSumPass<PlainSums>(plan, i, call.image, current, other, stream);
    std::swap(current, other);
  }
  std::int64_t taps = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps *= sides.Taps(a);
  }
  const bool isMean = operation.statistic == FootprintStatistic::Mean;
  const bool counts = isMean && operation.boundary.mode == BoundaryMode::Renormalized;
  DispatchExactOutput<TPixel>(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    const FinishSums<Out, TAcc> finish{ static_cast<Out *>(call.output.data),
                                        box,
                                        sides,
                                        call.image.Extents(),
                                        counts || !isMean ? 1 : taps,
                                        counts,
                                        operation.truncates };
    const std::int64_t          rows = box.NumberOfVoxels() / box.Extent(0);
    FinishKernel<<<BlocksFor(rows, 8), 256, 0, stream>>>(
      static_cast<const TAcc *>(current), rows, box.Extent(0), box.lower[0], finish);
    CheckLaunch("FinishKernel");
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
      RunSums<Pixel, double>(call, sides, plan);
    }
    else if constexpr (sizeof(Pixel) == 8)
    {
      RunSums<Pixel, Int128>(call, sides, plan);
    }
    else if constexpr (sizeof(Pixel) == 4)
    {
      RunSums<Pixel, std::int64_t>(call, sides, plan);
    }
    else
    {
      AreShort(sides, kind) ? RunSums<Pixel, std::int32_t>(call, sides, plan)
                            : RunSums<Pixel, std::int64_t>(call, sides, plan);
    }
  });
}

std::size_t
ScratchOfSidedSums(const Operation & operation, const ChunkShape & shape)
{
  const auto &  footprint = static_cast<const FootprintOperation &>(operation);
  const auto    sides = *footprint.GetSides(shape.image.Extents());
  const SumPlan plan(footprint, sides, shape.outputBox, shape.image, shape.inputKinds[0]);
  return plan.buffers[0] + plan.buffers[1];
}

} // namespace chunkwise
