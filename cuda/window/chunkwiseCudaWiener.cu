/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCompositeOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDomainOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWienerOperation.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace chunkwise
{

namespace
{

template <typename TPixel, typename TReal, typename TOut>
__global__ void
WienerKernel(Voxels<const TPixel> in, const TReal * __restrict__ mean, const TReal * __restrict__ variance,
             TOut * __restrict__ out, Box box, TReal noise)
{
  const auto width = static_cast<std::uint32_t>(box.Extent(0));
  const auto count = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    const TPixel * const line = &in[IndexIn(box, row * width)];
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t i = row * width + x;
      out[i] = ConvertResult<TOut>(WienerOf(static_cast<TReal>(line[x]), mean[i], variance[i], noise));
    }
  }
}

void
RunWienerVoxels(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      const Box & box = call.output.box;
      WienerKernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(
        VoxelsOf<const Pixel>(call.inputs[0]),
        static_cast<const Real *>(call.inputs[1].data),
        static_cast<const Real *>(call.inputs[2].data),
        static_cast<decltype(out) *>(call.output.data),
        box,
        static_cast<Real>(FindWiener(*call.operation)->noise));
      CheckLaunch("WienerKernel");
    });
  });
}

/** Windows of float with a small radius: variances become results where they are computed, and are in no memory. The
 * means lie in the scratch, ahead of what their kernel, and then the windows, take. */
struct FusedWiener
{
  std::shared_ptr<const Operation> mean;
  ChunkShape                       ofMeans;
  WindowBoxes                      boxes;
  std::size_t                      bytesOfMeans;

  FusedWiener(const WienerOperation & operation, const ChunkShape & shape)
    : FusedWiener(operation, shape, operation.GetStages())
  {}

  bool
  Supports(const WienerOperation & operation, const ChunkShape & shape) const
  {
    const std::int64_t rowStride =
      std::max({ boxes.padded.Extent(0), shape.inputBox.Extent(0), shape.image.Extent(0) });
    return operation.windows.empty() && shape.outputKind == PixelType::Float32 && boxes.radius[0] <= 2 &&
           SupportsVarianceColumns(
             { shape.inputKinds[0], shape.outputKind, false, boxes.radius, boxes.padded, shape.outputBox, rowStride });
  }
  const Kernel &
  GetKernelOfMeans() const
  {
    return ofMeans.kernels->Get(mean->GetName(), "wiener");
  }

private:
  FusedWiener(const WienerOperation & operation, const ChunkShape & shape, const std::vector<Stage> & stages)
    : mean(stages[0].operation)
    , ofMeans(shape)
    , boxes(shape.outputBox, shape.image, RadiusOf(*stages[1].operation, shape.image), operation.boundary.mode)
    , bytesOfMeans(RoundUp(static_cast<std::size_t>(shape.outputBox.NumberOfVoxels()) * sizeof(float)))
  {
    ofMeans.outputKind = PixelType::Float32;
  }
  static Coordinates
  RadiusOf(const Operation & variance, const Box & image)
  {
    const auto * const box = dynamic_cast<const VarianceOperation *>(&variance);
    return box ? box->EffectiveRadius(image.Extents()) : Coordinates{};
  }
};

void
RunFused(const KernelCall & call)
{
  const auto &      operation = static_cast<const WienerOperation &>(*call.operation);
  const FusedWiener fused(operation, ShapeOf(call));
  const BufferView  means = DenseView(call.scratch, PixelType::Float32, call.output.box);
  char *            scratch = static_cast<char *>(call.scratch) + fused.bytesOfMeans;
  KernelCall        ofMeans = call;
  ofMeans.operation = fused.mean.get();
  ofMeans.output = means;
  ofMeans.writable = means.box;
  ofMeans.scratch = scratch;
  ofMeans.scratchBytes = call.scratchBytes - fused.bytesOfMeans;
  fused.GetKernelOfMeans().run(ofMeans);
  const auto pixels = PadImage<float>(call, fused.boxes, operation.boundary, scratch);
  if (!RunWienerColumns(pixels,
                        VoxelsOf<const float>(means),
                        call.output,
                        fused.boxes.radius,
                        static_cast<float>(operation.noise),
                        StreamOf(call)))
  {
    throw Error("wiener: windows that have no fused kernel");
  }
}

KernelChoice
ChooseWiener(const Operation & operation, const ChunkShape & shape)
{
  const auto &      wiener = static_cast<const WienerOperation &>(operation);
  const Kernel      stages = MakeCompositeKernel();
  const double      cost = stages.cost(operation, shape);
  const FusedWiener fused(wiener, shape);
  if (!fused.Supports(wiener, shape))
  {
    return { "stages", stages.run, stages.scratchBytes(operation, shape), cost };
  }
  const std::size_t ofMeans = fused.GetKernelOfMeans().scratchBytes(*fused.mean, fused.ofMeans);
  const std::size_t ofWindows = ContinuedBytes(fused.boxes, wiener.boundary.mode, sizeof(float));
  return { "fused", RunFused, fused.bytesOfMeans + std::max(ofMeans, ofWindows), cost };
}

} // namespace

void
RegisterCudaWiener(KernelRegistry & registry)
{
  registry.Register("wiener", { MakeChoosingKernel<ChooseWiener>(true) });
  Kernel kernel;
  kernel.run = RunWienerVoxels;
  registry.Register("wiener.voxels", { kernel });
}

} // namespace chunkwise
