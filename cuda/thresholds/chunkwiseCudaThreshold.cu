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

/** Voxels of the larger type in 16 bytes. */
template <typename TPixel, typename TOut>
constexpr int VoxelsOfPack = 16 / (sizeof(TPixel) > sizeof(TOut) ? sizeof(TPixel) : sizeof(TOut));

template <typename T, int VVoxels>
struct alignas(sizeof(T) * VVoxels) Pack
{
  T voxels[VVoxels];
};

/** The first `packs` packs, and the voxels behind them one by one: a load and a store of a voxel alone take as long. */
template <typename TPixel, typename TOut>
__global__ void
ThresholdKernel(const TPixel * __restrict__ voxels, TOut * __restrict__ out, std::int64_t packs, std::int64_t n,
                Bounds<TPixel> bounds)
{
  constexpr int Voxels = VoxelsOfPack<TPixel, TOut>;
  using In = Pack<TPixel, Voxels>;
  using Out = Pack<TOut, Voxels>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t thread = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto         classOf = [&](int above) { return static_cast<TOut>(bounds.isRange && above > 1 ? 0 : above); };
  for (std::int64_t p = thread; p < packs; p += step)
  {
    const In in = reinterpret_cast<const In *>(voxels)[p];
    int      above[Voxels] = {};
    for (int b = 0; b < bounds.count; ++b)
    {
      const TPixel bound = bounds.bounds[b];
#pragma unroll
      for (int i = 0; i < Voxels; ++i)
      {
        above[i] += in.voxels[i] >= bound ? 1 : 0;
      }
    }
    Out classes;
#pragma unroll
    for (int i = 0; i < Voxels; ++i)
    {
      classes.voxels[i] = classOf(above[i]);
    }
    reinterpret_cast<Out *>(out)[p] = classes;
  }
  for (std::int64_t i = packs * Voxels + thread; i < n; i += step)
  {
    int above = 0;
    for (int b = 0; b < bounds.count; ++b)
    {
      above += voxels[i] >= bounds.bounds[b] ? 1 : 0;
    }
    out[i] = classOf(above);
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
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::vector<Pixel> bounds = operation.MakeBounds<Pixel>();
    Bounds<Pixel>            ofLaunch{};
    ofLaunch.count = static_cast<int>(bounds.size());
    ofLaunch.isRange = operation.IsRange();
    std::copy(bounds.begin(), bounds.end(), ofLaunch.bounds);
    DispatchPixelType(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      const auto * const voxels = static_cast<const Pixel *>(call.inputs[0].data);
      auto * const       classes = static_cast<Out *>(call.output.data);
      constexpr int      Voxels = VoxelsOfPack<Pixel, Out>;
      const auto         isAligned = [](const auto * address) {
        return reinterpret_cast<std::uintptr_t>(address) % (sizeof(*address) * Voxels) == 0;
      };
      const std::int64_t packs = isAligned(voxels) && isAligned(classes) ? n / Voxels : 0;
      ThresholdKernel<<<BlocksFor(n - packs * (Voxels - 1), 256), 256, 0, StreamOf(call)>>>(
        voxels, classes, packs, n, ofLaunch);
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
