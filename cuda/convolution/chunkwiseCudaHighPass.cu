/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseRealOf.h"

namespace chunkwise
{

namespace
{

template <typename TPixel, typename TReal, typename TOut>
__global__ void
SubtractKernel(Voxels<const TPixel> in, const TReal * __restrict__ smooth, TOut * __restrict__ out, Box box)
{
  const auto width = static_cast<std::uint32_t>(box.Extent(0));
  const auto count = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    const TPixel * const line = &in[IndexIn(box, row * width)];
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t i = row * width + x;
      out[i] = ConvertResult<TOut>(static_cast<TReal>(line[x]) - smooth[i]);
    }
  }
}

void
RunHighPassVoxels(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      const Box & box = call.output.box;
      SubtractKernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(
        VoxelsOf<const Pixel>(call.inputs[0]),
        static_cast<const Real *>(call.inputs[1].data),
        static_cast<decltype(out) *>(call.output.data),
        box);
      CheckLaunch("SubtractKernel");
    });
  });
}

} // namespace

void
RegisterCudaHighPass(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunHighPassVoxels;
  registry.Register("highpass.voxels", { kernel });
}

} // namespace chunkwise
