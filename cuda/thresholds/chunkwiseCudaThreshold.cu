/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseThresholdOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** The bounds of one launch, a parameter of the kernel: 2 KB of the 4 KB that it may have. */
template <typename TPixel>
struct Bounds
{
  static constexpr int Most = ThresholdOperation::MostClasses - 1;
  TPixel               bounds[Most];
  int                  count;
  bool                 isRange;
};

template <typename TPixel, typename TOut>
__global__ void
ThresholdKernel(const TPixel * __restrict__ voxels, TOut * __restrict__ out, std::int64_t n, Bounds<TPixel> bounds)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    const TPixel voxel = voxels[i];
    int          above = 0;
    for (int b = 0; b < bounds.count; ++b)
    {
      above += voxel >= bounds.bounds[b] ? 1 : 0;
    }
    out[i] = static_cast<TOut>(bounds.isRange && above > 1 ? 0 : above);
  }
}

/** 0 where the mask is. */
template <typename TMask, typename TOut>
__global__ void
OutsideKernel(const TMask * __restrict__ mask, TOut * __restrict__ out, std::int64_t n)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    if (mask[i] == TMask(0))
    {
      out[i] = TOut(0);
    }
  }
}

/** Without a halo, inputs and output have the same box and are dense. */
void
RunThreshold(const KernelCall & call)
{
  const auto &       operation = static_cast<const ThresholdOperation &>(*call.operation);
  const std::int64_t n = call.output.box.NumberOfVoxels();
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::vector<Pixel> bounds = operation.MakeBounds<Pixel>();
    Bounds<Pixel>            ofLaunch{};
    ofLaunch.count = static_cast<int>(bounds.size());
    ofLaunch.isRange = operation.IsRange();
    std::copy(bounds.begin(), bounds.end(), ofLaunch.bounds);
    DispatchPixelKind(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      ThresholdKernel<<<BlocksFor(n, 256), 256, 0, StreamOf(call)>>>(
        static_cast<const Pixel *>(call.inputs[0].data), static_cast<Out *>(call.output.data), n, ofLaunch);
      CheckLaunch("ThresholdKernel");
    });
  });
  if (!operation.masked)
  {
    return;
  }
  DispatchSize(call.inputs[1].kind, [&](auto mask) {
    DispatchSize(call.output.kind, [&](auto out) {
      OutsideKernel<<<BlocksFor(n, 256), 256, 0, StreamOf(call)>>>(
        static_cast<const decltype(mask) *>(call.inputs[1].data), static_cast<decltype(out) *>(call.output.data), n);
      CheckLaunch("OutsideKernel");
    });
  });
}

} // namespace

void
RegisterCudaThreshold(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunThreshold;
  registry.Register("threshold", { kernel });
}

} // namespace chunkwise
