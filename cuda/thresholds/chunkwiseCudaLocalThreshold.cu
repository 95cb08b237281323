/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseLocalThreshold.h"
#include "chunkwiseRealOf.h"

namespace chunkwise
{

namespace
{

/** Results of stages are dense, and so is the output. */
template <typename TReal, typename TOut>
__global__ void
LocalLevelKernel(const TReal * __restrict__ a, const TReal * __restrict__ b, TOut * __restrict__ out, std::int64_t n,
                 LocalThresholdRule<TReal> rule)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    out[i] = ConvertResult<TOut>(rule(a[i], b[i]));
  }
}

template <typename TReal>
void
RunLevels(const KernelCall & call)
{
  const LocalThresholdRule<TReal> rule(static_cast<const LocalThresholdOperation &>(*call.operation));
  const std::int64_t              n = call.output.box.NumberOfVoxels();
  DispatchPixelType(call.output.kind, [&](auto out) {
    LocalLevelKernel<<<BlocksFor(n, 256), 256, 0, StreamOf(call)>>>(
      static_cast<const TReal *>(call.inputs[0].data),
      static_cast<const TReal *>(call.inputs[call.numberOfInputs - 1].data),
      static_cast<decltype(out) *>(call.output.data),
      n,
      rule);
    CheckLaunch("LocalLevelKernel");
  });
}

void
RunLocalThresholdLevels(const KernelCall & call)
{
  call.inputs[0].kind == PixelType::Float32 ? RunLevels<float>(call) : RunLevels<double>(call);
}

template <typename TPixel, typename TReal, typename TOut>
__global__ void
LocalThresholdKernel(Voxels<const TPixel> in, const TReal * __restrict__ thresholds, TOut * __restrict__ out, Box box,
                     LocalThresholdRule<TReal> rule)
{
  const auto width = static_cast<std::uint32_t>(box.Extent(0));
  const auto count = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    const TPixel * const line = &in[IndexIn(box, row * width)];
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t i = row * width + x;
      out[i] = static_cast<TOut>(rule.IsAbove(static_cast<TReal>(line[x]), thresholds[i]) ? 1 : 0);
    }
  }
}

/** 0 where the mask is 0. */
template <typename TMask, typename TOut>
__global__ void
LocalOutsideKernel(Voxels<const TMask> mask, TOut * __restrict__ out, Box box)
{
  const auto width = static_cast<std::uint32_t>(box.Extent(0));
  const auto count = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    const TMask * const line = &mask[IndexIn(box, row * width)];
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      if (line[x] == TMask(0))
      {
        out[row * width + x] = TOut(0);
      }
    }
  }
}

void
RunLocalThresholdVoxels(const KernelCall & call)
{
  const auto & operation = static_cast<const LocalThresholdOperation &>(*call.operation);
  const Box &  box = call.output.box;
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    DispatchEqual(call.output.kind, [&](auto out) {
      LocalThresholdKernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(
        VoxelsOf<const Pixel>(call.inputs[0]),
        static_cast<const Real *>(call.inputs[1].data),
        static_cast<decltype(out) *>(call.output.data),
        box,
        LocalThresholdRule<Real>(operation));
      CheckLaunch("LocalThresholdKernel");
    });
  });
  if (!operation.masked)
  {
    return;
  }
  DispatchEqual(call.inputs[2].kind, [&](auto mask) {
    DispatchEqual(call.output.kind, [&](auto out) {
      LocalOutsideKernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(
        VoxelsOf<const decltype(mask)>(call.inputs[2]), static_cast<decltype(out) *>(call.output.data), box);
      CheckLaunch("LocalOutsideKernel");
    });
  });
}

} // namespace

void
RegisterCudaLocalThreshold(KernelRegistry & registry)
{
  Kernel levels;
  levels.run = RunLocalThresholdLevels;
  registry.Register("localthreshold.levels.voxels", { levels });
  Kernel voxels;
  voxels.run = RunLocalThresholdVoxels;
  registry.Register("localthreshold.voxels", { voxels });
}

} // namespace chunkwise
