/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwiseRealOf.h"

#include <type_traits>

namespace chunkwise
{

namespace
{

/** The windows' axes: up to three, in the order in which voxels lie. */
template <typename TReal>
struct PatchGeometry
{
  Box   out;
  int   axes[3];
  int   search[3];
  int   patch[3];
  TReal twiceNoise;
  TReal inverse;
};

/** A block a row of outputs, a thread an output at a time; neighbours read what is in the first cache. */
template <typename TPixel, typename TReal, typename TOut>
__global__ void __launch_bounds__(128)
  NonLocalMeansKernel(const __grid_constant__ Voxels<const TPixel> in, const __grid_constant__ Voxels<TOut> out,
                      const __grid_constant__ PatchGeometry<TReal> g)
{
  const std::int64_t width = g.out.Extent(0);
  const std::int64_t rows = g.out.NumberOfVoxels() / width;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x)
  {
    Coordinates at = IndexIn(g.out, row * width);
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      at.axis[0] = g.out.lower.axis[0] + x;
      const TPixel * const center = &in[at];
      // How far the image goes on before and after the voxel, as far as it matters.
      int          before[3];
      int          after[3];
      std::int64_t stride[3];
#pragma unroll
      for (int i = 0; i < 3; ++i)
      {
        const int          a = g.axes[i];
        const std::int64_t reach = g.search[i] + g.patch[i];
        before[i] = static_cast<int>(min(reach, at.axis[a] - in.box.lower.axis[a]));
        after[i] = static_cast<int>(min(reach, in.box.upper.axis[a] - 1 - at.axis[a]));
        stride[i] = in.stride.axis[a];
      }
      TReal weighted = 0;
      TReal weights = 0;
      for (int z = -min(g.search[2], before[2]); z <= min(g.search[2], after[2]); ++z)
      {
        for (int y = -min(g.search[1], before[1]); y <= min(g.search[1], after[1]); ++y)
        {
          for (int s = -min(g.search[0], before[0]); s <= min(g.search[0], after[0]); ++s)
          {
            const TPixel * const other = center + z * stride[2] + y * stride[1] + s * stride[0];
            const int            offset[3] = { s, y, z };
            int                  first[3];
            int                  last[3];
#pragma unroll
            for (int i = 0; i < 3; ++i)
            {
              first[i] = -min(g.patch[i], before[i] + min(offset[i], 0));
              last[i] = min(g.patch[i], after[i] - max(offset[i], 0));
            }
            TReal squares = 0;
            for (int w = first[2]; w <= last[2]; ++w)
            {
              for (int v = first[1]; v <= last[1]; ++v)
              {
                const std::int64_t line = w * stride[2] + v * stride[1];
#pragma unroll 3
                for (int u = first[0]; u <= last[0]; ++u)
                {
                  const std::int64_t tap = line + u * stride[0];
                  const TReal        difference = static_cast<TReal>(center[tap]) - static_cast<TReal>(other[tap]);
                  squares += difference * difference;
                }
              }
            }
            const auto count =
              static_cast<TReal>((last[0] - first[0] + 1) * (last[1] - first[1] + 1) * (last[2] - first[2] + 1));
            const TReal weight = PatchWeight(squares, count, g.twiceNoise, g.inverse);
            weighted += weight * static_cast<TReal>(*other);
            weights += weight;
          }
        }
      }
      out[at] = ConvertResult<TOut>(weighted / weights);
    }
  }
}

WindowBoxes
BoxesOf(const NonLocalMeansOperation & operation, const Box & output, const Box & image)
{
  return WindowBoxes(output, image, operation.Reach(image.Extents()), operation.boundary.mode);
}

void
RunNonLocalMeans(const KernelCall & call)
{
  const auto &      operation = static_cast<const NonLocalMeansOperation &>(*call.operation);
  const Coordinates image = call.image.Extents();
  const Coordinates reach = operation.Reach(image);
  const Coordinates search = operation.Cut(operation.search, image);
  const Coordinates patch = operation.Cut(operation.patch, image);
  const WindowBoxes boxes = BoxesOf(operation, call.output.box, call.image);
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    char *              scratch = static_cast<char *>(call.scratch);
    const auto          pixels = ContinueImage<Pixel>(call, boxes, operation.boundary, scratch);
    PatchGeometry<Real> geometry{};
    geometry.out = call.output.box;
    int found = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      // Axes without a window fill up to three.
      const bool needed = reach[a] > 0;
      int        rest = 0;
      for (int b = a + 1; b < MaxDimension; ++b)
      {
        rest += reach[b] > 0 ? 1 : 0;
      }
      if (found < 3 && (needed || found + rest < 3))
      {
        geometry.axes[found] = a;
        geometry.search[found] = static_cast<int>(search[a]);
        geometry.patch[found++] = static_cast<int>(patch[a]);
      }
    }
    geometry.twiceNoise = static_cast<Real>(2 * operation.noise);
    geometry.inverse = static_cast<Real>(1 / (operation.strength * operation.strength));
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      NonLocalMeansKernel<Pixel, Real, Out>
        <<<BlocksFor(call.output.box.NumberOfVoxels() / call.output.box.Extent(0), 1), 128, 0, StreamOf(call)>>>(
          pixels, VoxelsOf<Out>(call.output), geometry);
    });
    CheckLaunch("NonLocalMeansKernel");
  });
}

std::size_t
ScratchOfNonLocalMeans(const Operation & operation, const ChunkShape & shape)
{
  const auto & means = static_cast<const NonLocalMeansOperation &>(operation);
  return ContinuedBytes(
    BoxesOf(means, shape.outputBox, shape.image), means.boundary.mode, PixelSize(shape.inputKinds[0]));
}

/** A pair of voxels costs about as much as ten bytes. */
double
CostOfNonLocalMeans(const Operation & operation, const ChunkShape & shape)
{
  const auto & means = static_cast<const NonLocalMeansOperation &>(operation);
  double       pairs = 1;
  for (const Coordinates & radius :
       { means.Cut(means.search, shape.image.Extents()), means.Cut(means.patch, shape.image.Extents()) })
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      pairs *= static_cast<double>(2 * radius[a] + 1);
    }
  }
  return 10 * pairs * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

} // namespace

void
RegisterCudaNonLocalMeans(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunNonLocalMeans;
  kernel.scratchBytes = ScratchOfNonLocalMeans;
  kernel.cost = CostOfNonLocalMeans;
  registry.Register("nonlocalmeans", kernel);
}

} // namespace chunkwise
