/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaEnhancement.h"

#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseEnhancementOperations.h"
#include "chunkwiseNonFlatExtremumOperation.h"
#include "chunkwiseRealOf.h"

namespace chunkwise
{

namespace
{

template <typename TReal>
struct UnsharpRule
{
  TReal amount;
  TReal threshold;

  explicit UnsharpRule(const UnsharpOperation & operation)
    : amount(static_cast<TReal>(operation.amount))
    , threshold(static_cast<TReal>(operation.threshold))
  {}
  __device__ TReal
  operator()(TReal voxel, TReal smoothed, TReal) const
  {
    return UnsharpOf<TReal>(voxel, smoothed, amount, threshold);
  }
};

template <typename TReal>
struct NormalizationRule
{
  TReal least;

  explicit NormalizationRule(const LocalNormalizationOperation & operation)
    : least(static_cast<TReal>(operation.least))
  {}
  __device__ TReal
  operator()(TReal voxel, TReal mean, TReal deviation) const
  {
    return LocallyNormalized<TReal>(voxel, mean, deviation, least);
  }
};

template <typename TReal>
struct BackgroundRule
{
  explicit BackgroundRule(const RollingBallOperation &) {}
  __device__ TReal
  operator()(TReal voxel, TReal background, TReal) const
  {
    return voxel - background;
  }
};

/** The results of stages are dense, and so is the output. */
template <typename TPixel, typename TReal, typename TOut, typename TRule>
__global__ void
VoxelRuleKernel(Voxels<const TPixel> in, const TReal * __restrict__ first, const TReal * __restrict__ second,
                TOut * __restrict__ out, Box box, TRule rule)
{
  const std::int64_t width = box.Extent(0);
  const std::int64_t rows = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    const TPixel * const line = &in[IndexIn(box, row * width)];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t i = row * width + x;
      out[i] = ConvertResult<TOut>(rule(static_cast<TReal>(line[x]), first[i], second[i]));
    }
  }
}

template <template <typename> class TRule, typename TOperation>
void
RunVoxelRule(const KernelCall & call)
{
  const Box & box = call.output.box;
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      const auto kernel = VoxelRuleKernel<Pixel, Real, decltype(out), TRule<Real>>;
      kernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(
        VoxelsOf<const Pixel>(call.inputs[0]),
        static_cast<const Real *>(call.inputs[1].data),
        static_cast<const Real *>(call.inputs[call.numberOfInputs - 1].data),
        static_cast<decltype(out) *>(call.output.data),
        box,
        TRule<Real>(static_cast<const TOperation &>(*call.operation)));
      CheckLaunch("VoxelRuleKernel");
    });
  });
}

} // namespace

void
RegisterCudaEnhancement(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunVoxelRule<UnsharpRule, UnsharpOperation>;
  registry.Register("unsharp.voxels", { kernel });
  kernel.run = RunVoxelRule<NormalizationRule, LocalNormalizationOperation>;
  registry.Register("localnormalization.voxels", { kernel });
  kernel.run = RunVoxelRule<BackgroundRule, RollingBallOperation>;
  registry.Register("rollingball.voxels", { kernel });
  RegisterCudaAdaptiveEqualization(registry);
  RegisterCudaMaskedVoxels(registry);
  RegisterCudaNeighbors(registry);
  RegisterCudaDiffusion(registry);
}

} // namespace chunkwise
