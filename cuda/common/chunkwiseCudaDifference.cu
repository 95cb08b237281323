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

/** The same if inputs have more voxels than the output, as stages have for the sake of other stages. */
template <typename TPixel, typename TOut>
__global__ void
DifferenceOfRowsKernel(Voxels<const TPixel> a, Voxels<const TPixel> b, TOut * __restrict__ out, Box box)
{
  const std::int64_t width = box.Extent(0);
  const std::int64_t rows = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    const Coordinates    first = IndexIn(box, row * width);
    const TPixel * const fromA = &a[first];
    const TPixel * const fromB = &b[first];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      out[row * width + x] = DifferenceOf<TOut>(fromA[x * a.stride.axis[0]], fromB[x * b.stride.axis[0]]);
    }
  }
}

void
RunDifference(const KernelCall & call)
{
  const Box & box = call.output.box;
  const bool  haveOneBox = call.inputs[0].box == box && call.inputs[1].box == box;
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    DispatchExactOutput<Pixel>(call.output.kind, [&](auto out) {
      if (!haveOneBox)
      {
        DifferenceOfRowsKernel<<<BlocksOfRows(box), ThreadsOfRows(), 0, StreamOf(call)>>>(
          VoxelsOf<const Pixel>(call.inputs[0]),
          VoxelsOf<const Pixel>(call.inputs[1]),
          static_cast<decltype(out) *>(call.output.data),
          box);
        CheckLaunch("DifferenceOfRowsKernel");
        return;
      }
      const std::int64_t n = box.NumberOfVoxels();
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
