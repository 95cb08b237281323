/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaMarch.cuh"
#include "chunkwiseCudaPlanes.cuh"
#include "chunkwiseCudaWideMeans.cuh"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseOperations.h"
#include "chunkwiseWindow.h"

#include <type_traits>
#include <vector>

namespace chunkwise
{

namespace
{

/** The taps of windows that have all along a line. Sums of 32 bits are divided by a product with the inverse, which is
 * the quotient or one less: that takes fewer instructions than a division. */
struct WholeTaps
{
  std::int32_t  count;
  std::uint32_t inverse;

  __device__ explicit WholeTaps(std::int32_t taps)
    : count(taps)
    , inverse(0xFFFFFFFFU / static_cast<std::uint32_t>(taps))
  {}
  /** The mean, to nearest, ties to even. */
  template <typename TOut>
  __device__ __forceinline__ TOut
  MeanOf(std::int32_t sum) const
  {
    const auto          taps = static_cast<std::uint32_t>(count);
    const auto          positive = static_cast<std::uint32_t>(abs(sum));
    std::uint32_t       quotient = __umulhi(positive, inverse);
    const std::uint32_t twice = 2 * (positive - quotient * taps);
    // A quotient that is one less has a rest of less than one and a half; an odd one goes up from the middle, too.
    quotient += twice + (quotient & 1) > taps ? 1 : 0;
    const auto mean = static_cast<std::int32_t>(quotient);
    return ClampInteger<TOut>(sum < 0 ? -mean : mean);
  }
};

template <typename TAcc>
__device__ __forceinline__ void
NoteOverflow(WideFlags * flags, TAcc sum)
{
  if constexpr (std::is_same<TAcc, float>::value)
  {
    if (!IsFiniteFloat(sum))
    {
      flags->overflows = 1;
    }
  }
}

/** Divides sums by the number of taps and stores the output voxel. Lines run along `axis`. */
template <typename TOut, typename TAcc>
struct FinishMean
{
  TOut *       out;
  WideFlags *  flags; ///< of sums of floats
  Coordinates  radius;
  Coordinates  n;
  std::int64_t all;
  bool         renormalized;
  bool         truncates;
  Box          box;
  int          axis;

  struct Line
  {
    TOut *       out;
    WideFlags *  flags;
    std::int64_t lower; ///< windows at [lower, upper) have all taps along the line's axis
    std::int64_t upper;
    std::int64_t radius;
    std::int64_t n;
    std::int32_t others; ///< taps of the other axes
    WholeTaps    all;
    bool         truncates;

    __device__ __forceinline__ void
    operator()(std::int64_t offset, std::int64_t at, TAcc sum) const
    {
      if constexpr (std::is_same<TAcc, std::int32_t>::value && std::is_integral<TOut>::value)
      {
        if (at >= lower && at < upper && !truncates)
        {
          out[offset] = all.MeanOf<TOut>(sum);
          return;
        }
      }
      NoteOverflow(flags, sum);
      out[offset] =
        MeanOf<TOut>(sum, at >= lower && at < upper ? all.count : others * TapsOfWindow(at, radius, n), truncates);
    }
  };
  /** For kernels that count the taps inside the image themselves. */
  __device__ __forceinline__ void
  Store(std::int64_t offset, std::int32_t taps, TAcc sum) const
  {
    const std::int32_t count = renormalized ? taps : static_cast<std::int32_t>(all);
    NoteOverflow(flags, sum);
    if constexpr (std::is_integral<TOut>::value && sizeof(TOut) == 1)
    {
      // For bytes both numbers are below 2^24: a quotient in float rounds to the same integer.
      out[offset] = RoundedMean<TOut>(static_cast<float>(sum) / static_cast<float>(count), truncates);
    }
    else
    {
      out[offset] = MeanOf<TOut>(sum, count, truncates);
    }
  }

  __device__ Line
  BeginLine(std::int64_t outerIndex, std::int64_t innerIndex) const
  {
    Line line{ out, flags, INT64_MIN, INT64_MAX, 0, 0, 1, WholeTaps(static_cast<std::int32_t>(all)), truncates };
    if (!renormalized)
    {
      return line;
    }
#pragma unroll
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (a == axis)
      {
        line.radius = radius.axis[a];
        line.n = n.axis[a];
        continue;
      }
      const std::int64_t rest = a < axis ? innerIndex : outerIndex;
      const std::int64_t extent = box.Extent(a);
      const std::int64_t i = rest % extent;
      innerIndex = a < axis ? rest / extent : innerIndex;
      outerIndex = a < axis ? outerIndex : rest / extent;
      if (radius.axis[a] > 0)
      {
        line.others *= TapsOfWindow(box.lower.axis[a] + i, radius.axis[a], n.axis[a]);
      }
    }
    line.lower = line.radius;
    line.upper = line.n - line.radius;
    line.all = WholeTaps(line.others * static_cast<std::int32_t>(2 * line.radius + 1));
    return line;
  }
};

/** The values beyond the edge of the later axes: the constant added up tap by tap. */
template <typename TAcc>
TAcc
SumOfConstant(TAcc constant, std::int64_t k)
{
  TAcc sum = 0;
  for (std::int64_t t = 0; t < k; ++t)
  {
    sum += constant;
  }
  return sum;
}

/** The longest windows whose passes are made at once. */
constexpr int LongestMarch = 7;

WideMean
WideMeanOf(const KernelCall & call)
{
  const auto & operation = static_cast<const MeanOperation &>(*call.operation);
  WideMean     mean;
  mean.in = call.inputs[0];
  mean.extent = call.image.Extents();
  for (int a = 0; a < MaxDimension; ++a)
  {
    mean.radius[a] = operation.EffectiveRadius(a, call.image.Extent(a));
  }
  mean.mode = operation.boundary.mode;
  mean.constant = ConstantPixel<float>(operation.boundary.constant);
  return mean;
}

/** The passes of a chunk; `accumulatorBytes` decide whether planes fit. */
PassPlan
PlanOf(const MeanOperation & operation, const ChunkShape & shape, std::size_t accumulatorBytes,
       std::int64_t (&radius)[MaxDimension])
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = operation.EffectiveRadius(a, shape.image.Extent(a));
  }
  PassPlan plan(shape.inputBox, shape.outputBox, radius);
  plan.FusePlanes(PlaneLayout::Make(radius[0], radius[1], accumulatorBytes, false).fits);
  plan.FuseVolumes(IsMarchedKind(shape.inputKinds[0], shape.outputKind) && accumulatorBytes == 4, radius, LongestMarch);
  return plan;
}

template <typename TIn, typename TAcc, typename TOut, bool VIsMarched>
void
RunPassesOfMean(const KernelCall & call, const PassPlan & plan, const std::int64_t (&radius)[MaxDimension],
                WideFlags * flags)
{
  const auto &           operation = static_cast<const MeanOperation &>(*call.operation);
  FinishMean<TOut, TAcc> finish{};
  finish.out = static_cast<TOut *>(call.output.data);
  finish.flags = flags;
  finish.all = 1;
  finish.renormalized = operation.boundary.mode == BoundaryMode::Renormalized && !operation.sums;
  finish.truncates = operation.truncates;
  finish.box = call.output.box;
  finish.axis = plan.count > (plan.fused ? 2 : 1) ? plan.axes[plan.count - 1] : 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    finish.n[a] = call.image.Extent(a);
    finish.radius[a] = radius[a];
    finish.all *= operation.sums ? 1 : 2 * radius[a] + 1;
  }
  std::vector<Pass<TAcc>> passes;
  auto                    constant = static_cast<TAcc>(ConstantPixel<TIn>(operation.boundary.constant));
  for (int i = 0; i < plan.count; ++i)
  {
    passes.push_back(plan.MakePass<TAcc>(i, call.image, radius[plan.axes[i]], operation.boundary.mode));
    passes.back().constant = constant;
    constant = SumOfConstant(constant, 2 * radius[plan.axes[i]] + 1);
  }
  if constexpr (VIsMarched)
  {
    if (plan.marched)
    {
      return RunMarch<PlainSums, 3, 5, LongestMarch>(
        passes,
        static_cast<const TIn *>(call.inputs[0].data),
        finish,
        StreamOf(call),
        [](int, int) { return TAcc(0); },
        StepOf(call.inputs[0]));
    }
  }
  RunSumPasses<PlainSums, TIn>(call, plan, passes, TAcc{}, finish);
}

template <typename TIn, typename TAcc, typename TOut>
void
Run(const KernelCall & call)
{
  constexpr bool isMarched = IsMarchedKind(PixelTypeOf<TIn>(), PixelTypeOf<TOut>()) && sizeof(TAcc) == 4;
  std::int64_t   radius[MaxDimension];
  const PassPlan plan =
    PlanOf(static_cast<const MeanOperation &>(*call.operation), ShapeOf(call), sizeof(TAcc), radius);
  if constexpr (std::is_same<TAcc, float>::value)
  {
    auto * const flags =
      reinterpret_cast<WideFlags *>(static_cast<char *>(call.scratch) + plan.ScratchBytes(sizeof(TAcc)));
    CheckCuda(cudaMemsetAsync(flags, 0, sizeof(*flags), StreamOf(call)), "cudaMemsetAsync");
    RunPassesOfMean<TIn, TAcc, TOut, isMarched>(call, plan, radius, flags);
    if (!static_cast<const MeanOperation &>(*call.operation).sums)
    {
      const WideMean mean = WideMeanOf(call);
      ReplaceOverflows<TOut>(call, flags, mean, mean);
    }
  }
  else
  {
    RunPassesOfMean<TIn, TAcc, TOut, isMarched>(call, plan, radius, nullptr);
  }
}

/** Bytes of the accumulator: 4 and 8 for integers by the largest possible sum, as the rules of MeanOperation say. */
std::size_t
AccumulatorBytes(const MeanOperation & operation, const Box & image, PixelType kind)
{
  if (IsFloatingPoint(kind))
  {
    return PixelSize(kind);
  }
  if (PixelSize(kind) >= 4)
  {
    return 2 * PixelSize(kind);
  }
  double largest = PixelSize(kind) == 1 ? 255.0 : 65535.0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    largest *= 2.0 * static_cast<double>(operation.EffectiveRadius(a, image.Extent(a))) + 1;
  }
  return largest < 2147483648.0 ? 4 : 8;
}

template <typename TIn, typename TAcc>
void
RunTo(const KernelCall & call)
{
  DispatchExactOutput<TIn>(call.output.kind, [&](auto out) { Run<TIn, TAcc, decltype(out)>(call); });
}

void
RunMean(const KernelCall & call)
{
  const auto &      operation = static_cast<const MeanOperation &>(*call.operation);
  const std::size_t bytes = AccumulatorBytes(operation, call.image, call.inputs[0].kind);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (std::is_floating_point<Pixel>::value)
    {
      RunTo<Pixel, Pixel>(call);
    }
    else if constexpr (sizeof(Pixel) == 8)
    {
      RunTo<Pixel, Int128>(call);
    }
    else if constexpr (sizeof(Pixel) == 4)
    {
      RunTo<Pixel, std::int64_t>(call);
    }
    else if (bytes == 4)
    {
      RunTo<Pixel, std::int32_t>(call);
    }
    else
    {
      RunTo<Pixel, std::int64_t>(call);
    }
  });
}

KernelChoice
ChooseMean(const Operation & operation, const ChunkShape & shape)
{
  const auto &      mean = static_cast<const MeanOperation &>(operation);
  const std::size_t bytes = AccumulatorBytes(mean, shape.image, shape.inputKinds[0]);
  const std::size_t flags = shape.inputKinds[0] == PixelType::Float32 ? RoundUp(sizeof(WideFlags)) : 0;
  std::int64_t      radius[MaxDimension];
  const PassPlan    plan = PlanOf(mean, shape, bytes, radius);
  return {
    plan.GetName(), RunMean, plan.ScratchBytes(bytes) + flags, plan.AccumulatorsMoved() * static_cast<double>(bytes)
  };
}

bool
MeanSupportsInterleaved(const Operation & operation, const ChunkShape & shape)
{
  const auto &      mean = static_cast<const MeanOperation &>(operation);
  const std::size_t bytes = AccumulatorBytes(mean, shape.image, shape.inputKinds[0]);
  std::int64_t      radius[MaxDimension];
  return SupportsInterleaved(PlanOf(mean, shape, bytes, radius), shape);
}

} // namespace

void
RegisterCudaMean(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute = MakeChoosingKernel<ChooseMean>(true);
  kernels.supportsInterleaved = MeanSupportsInterleaved;
  registry.Register("mean", kernels);
}

} // namespace chunkwise
