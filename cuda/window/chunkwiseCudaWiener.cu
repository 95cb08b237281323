/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCompositeOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDomainOperation.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWienerOperation.h"

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

/** Windows of float with a small radius: variances become results where they are computed, and are in no memory. */
bool
RunFused(const KernelCall & call)
{
  const auto & operation = static_cast<const WienerOperation &>(*call.operation);
  if (!operation.windows.empty())
  {
    return false;
  }
  const std::vector<Stage> stages = operation.GetStages();
  const Operation &        mean = *stages[0].operation;
  const Coordinates        radius =
    static_cast<const VarianceOperation &>(*stages[1].operation).EffectiveRadius(call.image.Extents());
  const bool isCube =
    radius[0] == radius[1] && radius[0] == radius[2] && radius[3] == 0 && radius[4] == 0 && radius[0] > 0;
  if (call.inputs[0].kind != PixelType::Float32 || call.output.kind != PixelType::Float32 || !isCube || radius[0] > 2)
  {
    return false;
  }
  const BufferView means = DenseView(call.scratch, PixelType::Float32, call.output.box);
  const auto       bytes = RoundUp(static_cast<std::size_t>(means.box.NumberOfVoxels()) * sizeof(float));
  // The scratch was sized for the stages one by one, which need one more image.
  char *            scratch = static_cast<char *>(call.scratch) + bytes;
  const WindowBoxes boxes(call.output.box, call.image, radius, operation.boundary.mode);
  KernelCall        ofMeans = call;
  ofMeans.operation = &mean;
  ofMeans.output = means;
  ofMeans.writable = means.box;
  ofMeans.scratch = scratch;
  ofMeans.scratchBytes = call.scratchBytes - bytes;
  call.kernels->Get(mean.GetName(), operation.GetName()).run(ofMeans);
  const auto pixels = PadImage<float>(call, boxes, operation.boundary, scratch);
  return RunWienerColumns(
    pixels, VoxelsOf<const float>(means), call.output, radius, static_cast<float>(operation.noise), StreamOf(call));
}

void
RunWiener(const KernelCall & call)
{
  if (!RunFused(call))
  {
    MakeCompositeKernel().run(call);
  }
}

} // namespace

void
RegisterCudaWiener(KernelRegistry & registry)
{
  Kernel whole = MakeCompositeKernel();
  whole.run = RunWiener;
  registry.Register("wiener", { whole });
  Kernel kernel;
  kernel.run = RunWienerVoxels;
  registry.Register("wiener.voxels", { kernel });
}

} // namespace chunkwise
