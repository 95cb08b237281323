/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaRankChoice.h"
#include "chunkwiseCudaSidedSums.cuh"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseFootprintSums.h"
#include "chunkwiseRankOperation.h"

namespace chunkwise
{

namespace
{

using Run = ElementOperation::Run;

/** The window of an output: rows of taps that the input has. */
template <typename TPixel>
struct FootprintWindow
{
  const Voxels<const TPixel> & in;
  const Run *                  runs;
  int                          count;
  Coordinates                  at;
  std::int64_t                 place; ///< of the voxel at `at`

  /** visit(voxel, number) for each tap, in ascending order. */
  template <typename TVisit>
  __device__ __forceinline__ void
  ForEachTap(TVisit && visit) const
  {
    const std::int64_t lowest = in.box.lower.axis[0] - at.axis[0];
    const std::int64_t end = in.box.upper.axis[0] - at.axis[0];
    std::int64_t       before = 0;
    for (int r = 0; r < count; ++r)
    {
      const Run & run = runs[r];
      const auto  number = before - run.first[0];
      before += run.length;
      std::int64_t from = place;
      bool         there = true;
      for (int a = 1; a < MaxDimension; ++a)
      {
        const std::int64_t i = at.axis[a] + run.first[a];
        there = there && i >= in.box.lower.axis[a] && i < in.box.upper.axis[a];
        from += run.first[a] * in.stride.axis[a];
      }
      if (!there)
      {
        continue;
      }
      const auto first = static_cast<int>(lowest > run.first[0] ? lowest : run.first[0]);
      const auto last = static_cast<int>(end < run.first[0] + run.length ? end : run.first[0] + run.length);
      for (int t = first; t < last; ++t)
      {
        visit(in.data[from + t * in.stride.axis[0]], number + t);
      }
    }
  }
};

/** How many voxels each window sees; no data: all of them but NaN. */
struct SeenCounts
{
  Voxels<const char> view{};
  bool               areDouble{ false };

  /** Voxels of the window at `at` that are not seen, of n of which `lost` are NaN. */
  __device__ __forceinline__ std::int64_t
                             AbsentAt(const Coordinates & at, std::int64_t n, std::int64_t lost) const
  {
    if (!view.data)
    {
      return lost;
    }
    const std::int64_t place = view.Offset(at);
    return n - static_cast<std::int64_t>(areDouble ? reinterpret_cast<const double *>(view.data)[place]
                                                   : reinterpret_cast<const float *>(view.data)[place]);
  }
};

template <typename TPixel, typename TOut>
__device__ TOut
RankOf(const FootprintWindow<TPixel> & window, double fraction, const SeenCounts & seen)
{
  using KeyOf = RankKey<TPixel>;
  using Key = typename KeyOf::Type;
  std::int64_t count = 0;
  std::int64_t absent = 0;
  window.ForEachTap([&](TPixel voxel, std::int64_t) {
    ++count;
    absent += KeyOf::IsReal && KeyOf::From(voxel) == 0 ? 1 : 0;
  });
  if (count == 0)
  {
    return EmptyFootprint<TOut>();
  }
  const std::int64_t rank = RankIn(count, seen.AbsentAt(window.at, count, absent), fraction);
  // The largest key that at most `rank` keys are below, bit by bit.
  Key found = 0;
  for (int bit = 8 * static_cast<int>(sizeof(Key)) - 1; bit >= 0; --bit)
  {
    const Key    wanted = static_cast<Key>(found | static_cast<Key>(Key{ 1 } << bit));
    std::int64_t below = 0;
    window.ForEachTap([&](TPixel voxel, std::int64_t) { below += KeyOf::From(voxel) < wanted ? 1 : 0; });
    found = below <= rank ? wanted : found;
  }
  return static_cast<TOut>(KeyOf::To(found));
}

template <typename TPixel, typename TOut>
__device__ TOut
SumsOf(const FootprintWindow<TPixel> & window, FootprintStatistic statistic, bool truncates)
{
  using Types = FootprintTypes<TPixel>;
  const bool             isVariance = statistic != FootprintStatistic::Mean && statistic != FootprintStatistic::Sum;
  typename Types::Sum    sum = 0;
  typename Types::Second second = 0;
  std::int64_t           count = 0;
  window.ForEachTap([&](TPixel voxel, std::int64_t) {
    sum += static_cast<typename Types::Sum>(voxel);
    ++count;
  });
  if (isVariance)
  {
    if constexpr (Types::IsExact)
    {
      window.ForEachTap([&](TPixel voxel, std::int64_t) {
        const auto number = static_cast<typename Types::Second>(voxel);
        second += number * number;
      });
    }
    else
    {
      const double mean = static_cast<double>(sum) / static_cast<double>(count);
      window.ForEachTap([&](TPixel voxel, std::int64_t) { second += SquaredDeviation(voxel, mean); });
    }
  }
  return FinishFootprint<TOut, TPixel>(statistic, truncates, sum, second, count);
}

template <typename TPixel, typename TOut>
__device__ TOut
RiseOf(const FootprintWindow<TPixel> & window, bool erodes, const double * __restrict__ rises)
{
  const double sign = erodes ? -1 : 1;
  double       largest = __builtin_nan("");
  window.ForEachTap([&](TPixel voxel, std::int64_t tap) {
    largest = LargerRise(largest, sign * static_cast<double>(voxel) + rises[tap]);
  });
  return ConvertResult<TOut>(sign * largest);
}

/** A thread an output, a block a row of them. `rises`: of taps with heights. */
template <typename TPixel, typename TOut>
__global__ void __launch_bounds__(128)
  FootprintKernel(const __grid_constant__ Voxels<const TPixel> in, const __grid_constant__ Voxels<TOut> out,
                  const Run * __restrict__ runs, int count, FootprintStatistic statistic, bool truncates,
                  double fraction, const __grid_constant__ SeenCounts seen, const double * __restrict__ rises)
{
  const std::int64_t width = out.box.Extent(0);
  const std::int64_t rows = out.box.NumberOfVoxels() / width;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x)
  {
    Coordinates  at = IndexIn(out.box, row * width);
    TOut * const to = &out[at];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      Coordinates here = at;
      here.axis[0] += x;
      const FootprintWindow<TPixel> window{ in, runs, count, here, in.Offset(here) };
      if (rises)
      {
        to[x * out.stride.axis[0]] = RiseOf<TPixel, TOut>(window, statistic == FootprintStatistic::Erosion, rises);
        continue;
      }
      to[x * out.stride.axis[0]] = statistic == FootprintStatistic::Rank
                                     ? RankOf<TPixel, TOut>(window, fraction, seen)
                                     : SumsOf<TPixel, TOut>(window, statistic, truncates);
    }
  }
}

void
RunFootprint(const KernelCall & call)
{
  const auto &           operation = static_cast<const FootprintOperation &>(*call.operation);
  const std::vector<Run> runs = operation.GetRuns();
  const auto * const     table =
    static_cast<const Run *>(call.tables->Get(operation.GetKey(), runs.data(), runs.size() * sizeof(Run)));
  const std::vector<double> heights = operation.GetRises(call.inputs[0].kind);
  const auto * const        rises =
    heights.empty() ? nullptr
                           : static_cast<const double *>(
                        call.tables->Get(operation.GetKey() + " " + PixelTypeName(call.inputs[0].kind) + " heights",
                                         heights.data(),
                                         heights.size() * sizeof(double)));
  const WindowBoxes boxes(call.output.box, call.image, operation.radius, operation.boundary.mode);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    char *     scratch = static_cast<char *>(call.scratch);
    const auto pixels = PadImage<Pixel>(call, boxes, operation.boundary, scratch);
    SeenCounts seen;
    if (operation.isCounted)
    {
      seen.view = VoxelsOf<const char>(call.inputs[1]);
      seen.areDouble = call.inputs[1].kind == PixelType::Float64;
    }
    DispatchExactOutput<Pixel>(call.output.kind, [&](auto out) {
      FootprintKernel<Pixel, decltype(out)>
        <<<BlocksFor(call.output.box.NumberOfVoxels() / call.output.box.Extent(0), 1), 128, 0, StreamOf(call)>>>(
          pixels,
          VoxelsOf<decltype(out)>(call.output),
          table,
          static_cast<int>(runs.size()),
          operation.statistic,
          operation.truncates,
          operation.fraction,
          seen,
          rises);
    });
    CheckLaunch("FootprintKernel");
  });
}

std::size_t
ScratchOfFootprint(const Operation & operation, const ChunkShape & shape)
{
  const auto &      footprint = static_cast<const FootprintOperation &>(operation);
  const WindowBoxes boxes(shape.outputBox, shape.image, footprint.radius, footprint.boundary.mode);
  return ContinuedBytes(boxes, footprint.boundary.mode, PixelSize(shape.inputKinds[0]));
}

/** A tap that is looked at costs about as much as eight bytes. */
double
CostOfTaps(const FootprintOperation & footprint, const ChunkShape & shape)
{
  double taps = 0;
  for (const Run & run : footprint.GetRuns())
  {
    taps += run.length;
  }
  const bool   isRank = footprint.statistic == FootprintStatistic::Rank;
  const double looks = isRank ? 1.0 + 8.0 * static_cast<double>(PixelSize(shape.inputKinds[0])) : 2.0;
  return 8 * looks * taps * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

SidedBoxes
SidedBoxesOf(const FootprintOperation & footprint, const Box & output, const Box & image)
{
  return { output, image, *footprint.GetSides(image.Extents()), footprint.boundary.mode };
}

void
RunSidedVariances(const KernelCall & call)
{
  const auto &     footprint = static_cast<const FootprintOperation &>(*call.operation);
  const SidedBoxes boxes = SidedBoxesOf(footprint, call.output.box, call.image);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    char *     scratch = static_cast<char *>(call.scratch);
    const auto pixels = PadImage<decltype(pixel)>(call, boxes, footprint.boundary, scratch);
    const bool takesRoot = footprint.statistic == FootprintStatistic::StandardDeviation;
    RunVariancePasses(
      call.inputs[0].kind, boxes, CastVoxels<const char>(pixels), call.output, takesRoot, scratch, StreamOf(call));
  });
}

/** Passes move about 32 bytes a voxel. */
KernelChoice
ChooseFootprint(const Operation & operation, const ChunkShape & shape)
{
  const auto & footprint = static_cast<const FootprintOperation &>(operation);
  if (footprint.HasHeights() || !footprint.GetSides(shape.image.Extents()))
  {
    return { "taps", RunFootprint, ScratchOfFootprint(operation, shape), CostOfTaps(footprint, shape) };
  }
  if (footprint.statistic == FootprintStatistic::Rank)
  {
    return ChooseRank(operation, shape);
  }
  const SidedBoxes boxes = SidedBoxesOf(footprint, shape.outputBox, shape.image);
  const double     cost = 32 * boxes.count * static_cast<double>(shape.outputBox.NumberOfVoxels());
  if (!footprint.TakesVariance())
  {
    return { "sums", RunSidedSums, ScratchOfSidedSums(operation, shape), cost };
  }
  const std::size_t scratch = ContinuedBytes(boxes, footprint.boundary.mode, PixelSize(shape.inputKinds[0])) +
                              VariancePassesBytes(shape.inputKinds[0], boxes);
  return { "variances", RunSidedVariances, scratch, 2 * cost };
}

} // namespace

void
RegisterCudaFootprint(KernelRegistry & registry)
{
  registry.Register("footprint", { MakeChoosingKernel<ChooseFootprint>(true) });
}

} // namespace chunkwise
