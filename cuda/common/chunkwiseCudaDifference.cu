/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDifferenceOperation.h"

namespace chunkwise
{

namespace
{

template <typename TPixel, typename TOut>
__global__ void
DifferenceKernel(const TPixel * __restrict__ a, const TPixel * __restrict__ b, TOut * __restrict__ out, std::int64_t n)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    out[i] = DifferenceOf<TOut>(a[i], b[i]);
  }
}

/** Without a halo, inputs and output have the same box. */
void
RunDifference(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    DispatchExactOutput<Pixel>(call.output.kind, [&](auto out) {
      const std::int64_t n = call.output.box.NumberOfVoxels();
      DifferenceKernel<<<BlocksFor(n, 256), 256, 0, StreamOf(call)>>>(static_cast<const Pixel *>(call.inputs[0].data),
                                                                      static_cast<const Pixel *>(call.inputs[1].data),
                                                                      static_cast<decltype(out) *>(call.output.data),
                                                                      n);
      CheckLaunch("DifferenceKernel");
    });
  });
}

} // namespace

void
RegisterCudaDifference(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunDifference;
  registry.Register("difference", { kernel });
}

} // namespace chunkwise
