/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"

namespace chunkwise
{

namespace
{

template <typename TIn, typename TOut>
__global__ void
ConvertKernel(const TIn * __restrict__ in, TOut * __restrict__ out, std::int64_t n)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    out[i] = static_cast<TOut>(in[i]);
  }
}

template <typename TIn, typename TOut>
void
LaunchConvert(const KernelCall & call)
{
  const std::int64_t n = call.output.box.NumberOfVoxels();
  ConvertKernel<TIn, TOut><<<BlocksFor(n, 256), 256, 0, StreamOf(call)>>>(
    static_cast<const TIn *>(call.inputs[0].data), static_cast<TOut *>(call.output.data), n);
  CheckLaunch("ConvertKernel");
}

/** Without a halo, input and output have the same box. */
void
RunIdentity(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    switch (call.output.kind)
    {
      case PixelType::Float32:
        return LaunchConvert<Pixel, float>(call);
      case PixelType::Float64:
        return LaunchConvert<Pixel, double>(call);
      default:
        return LaunchConvert<Pixel, Pixel>(call);
    }
  });
}

} // namespace

void
RegisterCudaIdentity(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunIdentity;
  registry.Register("identity", { kernel });
}

} // namespace chunkwise
