/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPlanes.cuh"
#include "chunkwiseCudaWeightedMarch.cuh"
#include "chunkwiseCudaWidePasses.cuh"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseOperations.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRoundUp.h"

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

namespace chunkwise
{

namespace
{

/** Rounds and stores the output voxel. */
template <typename TOut, typename TAcc>
struct FinishWeighted
{
  TOut * out;

  struct Line
  {
    TOut * out;
    __device__ void
    operator()(std::int64_t offset, std::int64_t, TAcc value) const
    {
      if constexpr (std::is_floating_point<TOut>::value)
      {
        out[offset] = static_cast<TOut>(value);
      }
      else
      {
        out[offset] = RoundAndClamp<TOut>(value);
      }
    }
  };
  __device__ Line
  BeginLine(std::int64_t, std::int64_t) const
  {
    return { out };
  }
  __device__ __forceinline__ void
  Store(std::int64_t offset, std::int32_t, TAcc value) const
  {
    Line{ out }(offset, 0, value);
  }
};

template <typename TAcc>
std::vector<Pass<TAcc>>
MakePasses(const KernelCall & call, const PassPlan & plan)
{
  const auto &            operation = static_cast<const SeparableOperation &>(*call.operation);
  const std::string       key = operation.GetKey() + (sizeof(TAcc) == 4 ? " f32 " : " f64 ");
  std::vector<Pass<TAcc>> passes;
  auto                    constant = static_cast<TAcc>(operation.boundary.constant);
  for (int i = 0; i < plan.count; ++i)
  {
    const int               a = plan.axes[i];
    Pass<TAcc>              pass = plan.MakePass<TAcc>(i, call.image, operation.Radius(a), operation.boundary.mode);
    const std::vector<TAcc> weights(operation.weights[a].begin(), operation.weights[a].end());
    std::vector<TAcc>       padded = weights;
    const std::string       axis = std::to_string(a);
    padded.resize(static_cast<std::size_t>(PaddedTaps(static_cast<std::int64_t>(weights.size()))));
    pass.weights =
      static_cast<const TAcc *>(call.tables->Get(key + "weights " + axis, padded.data(), padded.size() * sizeof(TAcc)));
    if (operation.boundary.mode == BoundaryMode::Renormalized)
    {
      const std::vector<double> exact = operation.GetNorms(a, call.image.Extent(a));
      const std::vector<TAcc>   norms(exact.begin(), exact.end());
      pass.norms = static_cast<const TAcc *>(call.tables->Get(
        key + "norms " + axis + " " + std::to_string(norms.size()), norms.data(), norms.size() * sizeof(TAcc)));
    }
    pass.constant = constant;
    // Values beyond the edge of the later axes have been passed along this one.
    TAcc sum = 0;
    for (const TAcc weight : weights)
    {
      sum = std::fma(weight, constant, sum);
    }
    constant = sum;
    passes.push_back(pass);
  }
  return passes;
}

/** The shortest and the longest windows whose passes are made at once. */
constexpr int ShortestMarch = 5;
constexpr int LongestMarch = 17;

std::size_t
AccumulatorBytes(const ChunkShape & shape)
{
  return UsesDouble(shape.inputKinds[0]) ? 8 : 4;
}

PassPlan
PlanOf(const Operation & operation, const ChunkShape & shape)
{
  const bool        isMarched = IsMarchedKind(shape.inputKinds[0], shape.outputKind);
  const std::size_t accumulatorBytes = AccumulatorBytes(shape);
  std::int64_t      radius[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = static_cast<const SeparableOperation &>(operation).Radius(a);
  }
  PassPlan   plan(shape.inputBox, shape.outputBox, radius);
  const bool areWide = accumulatorBytes == sizeof(float) && HasWideRows(radius[0]) && HasWideColumns(radius[1]);
  plan.FusePlanes(!areWide && PlaneLayout::Make(radius[0], radius[1], accumulatorBytes, true).fits);
  plan.FuseVolumes(isMarched && 2 * radius[0] + 1 >= ShortestMarch, radius, LongestMarch);
  return plan;
}

template <typename TIn, typename TAcc>
void
RunRows(const Pass<TAcc> & pass, const TIn * in, TAcc * out, cudaStream_t stream)
{
  if constexpr (std::is_same<TAcc, float>::value)
  {
    if (HasWideRows(pass.radius))
    {
      return LaunchWideRows(pass, in, out, stream);
    }
  }
  LaunchRows<WeightedSums>(pass, in, out, stream);
}

template <typename TIn, typename TAcc, typename TStore>
void
RunColumns(const Pass<TAcc> & pass, const TIn * in, const TStore & store, cudaStream_t stream)
{
  if constexpr (std::is_same<TIn, float>::value && std::is_same<TAcc, float>::value)
  {
    if (HasWideColumns(pass.radius))
    {
      return LaunchWideColumns(pass, in, store, stream);
    }
  }
  LaunchColumns<WeightedSums>(pass, in, store, stream);
}

template <typename TIn, typename TAcc, typename TOut>
void
Run(const KernelCall & call)
{
  constexpr bool                   isMarched = IsMarchedKind(PixelTypeOf<TIn>(), PixelTypeOf<TOut>());
  const auto &                     operation = static_cast<const SeparableOperation &>(*call.operation);
  const PassPlan                   plan = PlanOf(operation, ShapeOf(call));
  const std::vector<Pass<TAcc>>    passes = MakePasses<TAcc>(call, plan);
  const FinishWeighted<TOut, TAcc> finish{ static_cast<TOut *>(call.output.data) };
  if constexpr (isMarched)
  {
    if (plan.marched)
    {
      const auto * const in = static_cast<const TIn *>(call.inputs[0].data);
      const auto         weight = [&](int a, int t) {
        return static_cast<TAcc>(operation.weights[a][static_cast<std::size_t>(t)]);
      };
      const int step = StepOf(call.inputs[0]);
      if (!RunCopiedMarch<ShortestMarch, 7, 9, 11, 13, 15, LongestMarch>(
            passes, in, finish, StreamOf(call), weight, step))
      {
        // With 9 taps RunMarch is faster: two blocks of RunWeightedMarch would spill registers, and one alone waits.
        RunMarch<WeightedSums, 9>(passes, in, finish, StreamOf(call), weight, step);
        RunWeightedMarch<ShortestMarch, 7, 11, 13, 15, LongestMarch>(passes, in, finish, StreamOf(call), weight, step);
      }
      return;
    }
  }
  RunPasses<WeightedSums, TIn, TAcc>(
    call,
    plan,
    TAcc{},
    finish,
    [&](const TIn * in, TAcc * out) { LaunchPlanes<WeightedSums>(passes[0], passes[1], in, out, StreamOf(call)); },
    [&](int i, const TIn * in, TAcc * out) {
      if (plan.axes[i] == 0)
      {
        RunRows(passes[i], in, out, StreamOf(call));
      }
      else
      {
        RunColumns(passes[i], in, StoreAccumulator<TAcc>{ out }, StreamOf(call));
      }
    },
    [&](int i, const TAcc * in, const auto & store) { RunColumns(passes[i], in, store, StreamOf(call)); });
}

void
RunSeparable(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Acc = RealOf<Pixel>;
    switch (call.output.kind)
    {
      case PixelType::Float32:
        return Run<Pixel, Acc, float>(call);
      case PixelType::Float64:
        return Run<Pixel, Acc, double>(call);
      default:
        return Run<Pixel, Acc, Pixel>(call);
    }
  });
}

/** The bytes of weights and norms, which are the same for all chunks. */
std::size_t
BytesOfTables(const Operation & operation, const ChunkShape & shape)
{
  const auto &      separable = static_cast<const SeparableOperation &>(operation);
  const std::size_t number = AccumulatorBytes(shape);
  std::size_t       bytes = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto taps = static_cast<std::int64_t>(separable.weights[a].size());
    bytes += taps > 0 ? RoundUp(static_cast<std::size_t>(PaddedTaps(taps)) * number) : 0;
    if (taps > 0 && separable.boundary.mode == BoundaryMode::Renormalized)
    {
      bytes += RoundUp(static_cast<std::size_t>(std::min(shape.image.Extent(a), taps)) * number);
    }
  }
  return bytes;
}

/** Each pass reads and writes its buffers; five taps take as long as two bytes (81 taps on an H200: 1.3 to 2.2). */
KernelChoice
ChooseSeparable(const Operation & operation, const ChunkShape & shape)
{
  const auto &      separable = static_cast<const SeparableOperation &>(operation);
  const std::size_t bytes = AccumulatorBytes(shape);
  const PassPlan    plan = PlanOf(separable, shape);
  double            cost = plan.AccumulatorsMoved() * static_cast<double>(bytes);
  for (int i = 0; i < plan.count; ++i)
  {
    cost += 0.4 * static_cast<double>(separable.weights[plan.axes[i]].size()) *
            static_cast<double>(plan.after[i].NumberOfVoxels());
  }
  return { plan.GetName(), RunSeparable, plan.ScratchBytes(bytes), cost };
}

bool
SeparableSupportsInterleaved(const Operation & operation, const ChunkShape & shape)
{
  return SupportsInterleaved(PlanOf(operation, shape), shape);
}

} // namespace

void
RegisterCudaSeparable(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.compute = MakeChoosingKernel<ChooseSeparable>(true);
  kernels.supportsInterleaved = SeparableSupportsInterleaved;
  kernels.tableBytes = BytesOfTables;
  registry.Register("separable", kernels);
}

} // namespace chunkwise
