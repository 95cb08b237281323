/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaMarch.cuh"
#include "chunkwiseCudaPlanes.cuh"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseOrderedKey.h"
#include "chunkwiseWindow.h"

namespace chunkwise
{

namespace
{

/** The largest key. */
struct Maxima
{
  static constexpr bool Weighted = false;
  static constexpr int  Extra = 0;

  template <typename TPass, typename TIn>
  __device__ static auto
  Load(const TPass & pass, TIn value)
  {
    // A key is a signed integer, which is its own key, and stays unchanged if the pass does not flip.
    return OrderedKey<TIn>::From(value, static_cast<typename OrderedKey<TIn>::Type>(pass.flip));
  }
  template <typename TKey>
  __device__ static TKey
  Join(TKey a, TKey b)
  {
    return a > b ? a : b;
  }
  template <typename TKey>
  __device__ static TKey
  Add(TKey largest, TKey, TKey value)
  {
    return Join(largest, value);
  }
};

template <typename TIn, typename TOut>
struct FinishExtremum
{
  using Key = typename OrderedKey<TIn>::Type;
  TOut * out;
  Key    flip;

  struct Line
  {
    TOut * out;
    Key    flip;
    __device__ void
    operator()(std::int64_t offset, std::int64_t, Key key) const
    {
      out[offset] = static_cast<TOut>(OrderedKey<TIn>::To(key, flip));
    }
  };
  __device__ Line
  BeginLine(std::int64_t, std::int64_t) const
  {
    return { out, flip };
  }
  __device__ __forceinline__ void
  Store(std::int64_t offset, std::int32_t, Key key) const
  {
    Line{ out, flip }(offset, 0, key);
  }
};

/** The longest windows whose passes are made at once. */
constexpr int LongestMarch = 7;

PassPlan
PlanOf(const Operation & operation, const ChunkShape & shape, std::int64_t (&radius)[MaxDimension])
{
  const PixelType kind = shape.inputKinds[0];
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = static_cast<const ExtremumOperation &>(operation).EffectiveRadius(a, shape.image.Extent(a));
  }
  PassPlan plan(shape.inputBox, shape.outputBox, radius);
  plan.FusePlanes(PlaneLayout::Make(radius[0], radius[1], PixelSize(kind) <= 4 ? 4 : 8, false).fits);
  plan.FuseVolumes(shape.outputKind == kind && IsMarchedKind(kind, kind), radius, LongestMarch);
  return plan;
}

template <typename TIn, typename TOut>
void
Run(const KernelCall & call)
{
  using Key = typename OrderedKey<TIn>::Type;
  const auto &           operation = static_cast<const ExtremumOperation &>(*call.operation);
  const Key              flip = operation.minimum ? -1 : 0;
  std::int64_t           radius[MaxDimension];
  const PassPlan         plan = PlanOf(operation, ShapeOf(call), radius);
  const Key              constant = OrderedKey<TIn>::From(ConstantPixel<TIn>(operation.boundary.constant), flip);
  std::vector<Pass<Key>> passes;
  for (int i = 0; i < plan.count; ++i)
  {
    passes.push_back(plan.MakePass<Key>(i, call.image, radius[plan.axes[i]], operation.boundary.mode));
    passes.back().constant = constant;
    passes.back().absent = OrderedKey<TIn>::Lowest;
    passes.back().flip = i == 0 ? flip : 0;
  }
  const FinishExtremum<TIn, TOut> finish{ static_cast<TOut *>(call.output.data), flip };
  if constexpr (std::is_same<TIn, TOut>::value && IsMarchedKind(PixelTypeOf<TIn>(), PixelTypeOf<TIn>()))
  {
    if (plan.marched)
    {
      return RunMarch<Maxima, 3, 5, LongestMarch>(
        passes,
        static_cast<const TIn *>(call.inputs[0].data),
        finish,
        StreamOf(call),
        [](int, int) { return Key(0); },
        StepOf(call.inputs[0]));
    }
  }
  RunSumPasses<Maxima, TIn>(call, plan, passes, flip, finish);
}

void
RunExtremum(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    switch (call.output.kind)
    {
      case PixelType::Float32:
        return Run<Pixel, float>(call);
      case PixelType::Float64:
        return Run<Pixel, double>(call);
      default:
        return Run<Pixel, Pixel>(call);
    }
  });
}

KernelChoice
ChooseExtremum(const Operation & operation, const ChunkShape & shape)
{
  const std::size_t key = PixelSize(shape.inputKinds[0]) <= 4 ? 4 : 8;
  std::int64_t      radius[MaxDimension];
  const PassPlan    plan = PlanOf(operation, shape, radius);
  return { plan.GetName(), RunExtremum, plan.ScratchBytes(key), plan.AccumulatorsMoved() * static_cast<double>(key) };
}

bool
ExtremumSupportsInterleaved(const Operation & operation, const ChunkShape & shape)
{
  std::int64_t radius[MaxDimension];
  return SupportsInterleaved(PlanOf(operation, shape, radius), shape);
}

} // namespace

void
RegisterCudaExtremum(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute = MakeChoosingKernel<ChooseExtremum>(true);
  kernels.supportsInterleaved = ExtremumSupportsInterleaved;
  registry.Register("extremum", kernels);
}

} // namespace chunkwise
