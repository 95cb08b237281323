/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaVarianceColumns.cuh"
#include "chunkwiseCudaVariancePass.cuh"
#include "chunkwiseVarianceOperation.h"

#include <type_traits>

namespace chunkwise
{

namespace
{

/** The largest radius of the kernel below. */
constexpr int LargestTileRadius = 2;
constexpr int TileX = 64;
constexpr int TileY = 8;

/** Accumulators for windows of at most 5 x 5 x 5 voxels: smaller than those of any window, with the same bits. */
template <typename TPixel>
struct TileTypes
{
  using Types = MomentTypes<TPixel>;
  using First = std::conditional_t<Types::IsExact && sizeof(TPixel) <= 2, std::int32_t, typename Types::First>;
  using Second = std::conditional_t<Types::IsExact && sizeof(TPixel) == 1, std::int32_t, typename Types::Second>;
};

/** All passes at once. A block takes a tile in x and y and moves along z: of each plane the pixels of the tile and
 * around it are staged in shared memory and passed along x, then each thread passes its column along y and keeps the
 * planes of its window along z in registers. */
template <int VRadiusZ, typename TPixel, typename TOut>
__global__ void
__launch_bounds__(TileX * TileY, sizeof(TPixel) <= 4 ? 2 : 1)
  VarianceTileKernel(Voxels<const TPixel> pixels, Voxels<TOut> out, int radiusX, int radiusY, std::int64_t segment,
                     bool takesRoot)
{
  using Types = MomentTypes<TPixel>;
  using First = typename TileTypes<TPixel>::First;
  using Second = typename TileTypes<TPixel>::Second;
  constexpr int     K = 2 * VRadiusZ + 1;
  constexpr int     Rows = TileY + 2 * LargestTileRadius;
  constexpr int     Width = TileX + 2 * LargestTileRadius;
  __shared__ Second seconds[Rows][TileX];
  __shared__ First  firsts[Rows][TileX];
  __shared__ TPixel staged[Rows][Width];

  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % TileX;
  const int ty = thread / TileX;
  // The planes of axes beyond z, and the segments of z.
  const std::int64_t segments = (out.box.Extent(2) + segment - 1) / segment;
  std::int64_t       rest = blockIdx.z;
  const std::int64_t z0 = out.box.lower.axis[2] + rest % segments * segment;
  rest /= segments;
  const std::int64_t zEnd = z0 + segment < out.box.upper.axis[2] ? z0 + segment : out.box.upper.axis[2];
  const std::int64_t c = out.box.lower.axis[3] + rest % out.box.Extent(3);
  const std::int64_t w = out.box.lower.axis[4] + rest / out.box.Extent(3);
  const std::int64_t x0 = out.box.lower.axis[0] + static_cast<std::int64_t>(blockIdx.x) * TileX;
  const std::int64_t y0 = out.box.lower.axis[1] + static_cast<std::int64_t>(blockIdx.y) * TileY;
  const bool         active = x0 + tx < out.box.upper.axis[0] && y0 + ty < out.box.upper.axis[1];
  // What of the staged rows and columns there is.
  const auto clip = [](std::int64_t value, int most) {
    return static_cast<int>(value < 0 ? 0 : value > most ? most : value);
  };
  const int width = TileX + 2 * radiusX;
  const int rows = TileY + 2 * radiusY;
  const int lowX = clip(pixels.box.lower.axis[0] - (x0 - radiusX), width);
  const int highX = clip(pixels.box.upper.axis[0] - (x0 - radiusX), width);
  const int lowY = clip(pixels.box.lower.axis[1] - (y0 - radiusY), rows);
  const int highY = clip(pixels.box.upper.axis[1] - (y0 - radiusY), rows);
  const int tapX0 = tx > lowX ? tx : lowX;
  const int tapX1 = tx + 2 * radiusX + 1 < highX ? tx + 2 * radiusX + 1 : highX;
  const int tapY0 = ty > lowY ? ty : lowY;
  const int tapY1 = ty + 2 * radiusY + 1 < highY ? ty + 2 * radiusY + 1 : highY;
  // Most blocks see whole windows, of the same radius along every axis: their loops are known when this is compiled.
  const bool         wholeX = radiusX == VRadiusZ && lowX == 0 && highX == width;
  const bool         wholeY = radiusY == VRadiusZ && lowY == 0 && highY == rows;
  const std::int64_t lowerZ = pixels.box.lower.axis[2];
  const std::int64_t upperZ = pixels.box.upper.axis[2];

  TPixel ringPixels[K];
  First  ringFirsts[K];
  Second ringSeconds[K];
#pragma unroll
  for (int t = 0; t < K; ++t)
  {
    ringPixels[t] = TPixel(0);
    ringFirsts[t] = First(0);
    ringSeconds[t] = Second(0);
  }
  for (std::int64_t z = z0 - VRadiusZ; z < zEnd + VRadiusZ; ++z)
  {
#pragma unroll
    for (int t = 0; t + 1 < K; ++t)
    {
      ringPixels[t] = ringPixels[t + 1];
      ringFirsts[t] = ringFirsts[t + 1];
      ringSeconds[t] = ringSeconds[t + 1];
    }
    if (z >= lowerZ && z < upperZ)
    {
      const TPixel * const plane = &pixels[Coordinates{ { x0 - radiusX + lowX, y0 - radiusY + lowY, z, c, w } }];
      const int            columns = highX - lowX;
      // Whole rows of threads, so that no thread divides.
      for (int y = lowY + ty; y < highY; y += TileY)
      {
        const TPixel * const row = plane + (y - lowY) * pixels.stride.axis[1];
        for (int x = tx; x < columns; x += TileX)
        {
          staged[y][lowX + x] = row[x];
        }
      }
      __syncthreads();
      for (int y = lowY + ty; y < highY; y += TileY)
      {
        if constexpr (Types::IsExact)
        {
          First  sum = 0;
          Second squares = 0;
          for (int x = tapX0; x < tapX1; ++x)
          {
            const auto value = static_cast<First>(staged[y][x]);
            sum += value;
            squares += static_cast<Second>(value) * value;
          }
          firsts[y][tx] = sum;
          seconds[y][tx] = squares;
        }
        else
        {
          const TPixel         center = staged[y][tx + radiusX];
          MergedMoments<First> moments;
          First                inverse = First(1) / First(K);
          if (wholeX)
          {
#pragma unroll
            for (int t = 0; t < K; ++t)
            {
              moments.Add(Difference<First>(staged[y][tx + t], center), First(0));
            }
          }
          else
          {
            for (int x = tapX0; x < tapX1; ++x)
            {
              moments.Add(Difference<First>(staged[y][x], center), First(0));
            }
            inverse = First(1) / static_cast<First>(tapX1 - tapX0);
          }
          firsts[y][tx] = moments.Mean(inverse);
          seconds[y][tx] = moments.Variance(inverse);
        }
      }
      __syncthreads();
      if (active)
      {
        const TPixel center = staged[ty + radiusY][tx + radiusX];
        ringPixels[K - 1] = center;
        if constexpr (Types::IsExact)
        {
          First  sum = 0;
          Second squares = 0;
          for (int y = tapY0; y < tapY1; ++y)
          {
            sum += firsts[y][tx];
            squares += seconds[y][tx];
          }
          ringFirsts[K - 1] = sum;
          ringSeconds[K - 1] = squares;
        }
        else if (radiusY == 0)
        {
          ringFirsts[K - 1] = firsts[ty][tx];
          ringSeconds[K - 1] = seconds[ty][tx];
        }
        else
        {
          MergedMoments<First> moments;
          First                inverse = First(1) / First(K);
          if (wholeY)
          {
#pragma unroll
            for (int t = 0; t < K; ++t)
            {
              moments.Add(Difference<First>(staged[ty + t][tx + radiusX], center) + firsts[ty + t][tx],
                          seconds[ty + t][tx]);
            }
          }
          else
          {
            for (int y = tapY0; y < tapY1; ++y)
            {
              moments.Add(Difference<First>(staged[y][tx + radiusX], center) + firsts[y][tx], seconds[y][tx]);
            }
            inverse = First(1) / static_cast<First>(tapY1 - tapY0);
          }
          ringFirsts[K - 1] = moments.Mean(inverse);
          ringSeconds[K - 1] = moments.Variance(inverse);
        }
      }
      __syncthreads();
    }
    const std::int64_t center = z - VRadiusZ;
    if (!active || center < z0)
    {
      continue;
    }
    const int from = static_cast<int>(lowerZ - (center - VRadiusZ) > 0 ? lowerZ - (center - VRadiusZ) : 0);
    const int until = static_cast<int>(upperZ - (center - VRadiusZ) < K ? upperZ - (center - VRadiusZ) : K);
    TOut &    to = out[Coordinates{ { x0 + tx, y0 + ty, center, c, w } }];
    if constexpr (Types::IsExact)
    {
      First  sum = 0;
      Second squares = 0;
#pragma unroll
      for (int t = 0; t < K; ++t)
      {
        if (t >= from && t < until)
        {
          sum += ringFirsts[t];
          squares += ringSeconds[t];
        }
      }
      to = FinishVariance<TOut>(
        VarianceOfSums(static_cast<std::int64_t>(sum),
                       static_cast<typename Types::Second>(squares),
                       static_cast<std::int64_t>(until - from) * (tapX1 - tapX0) * (tapY1 - tapY0)),
        takesRoot);
    }
    else if constexpr (VRadiusZ == 0)
    {
      to = FinishVariance<TOut>(ringSeconds[0], takesRoot);
    }
    else
    {
      MergedMoments<First> moments;
      First                inverse = First(1) / First(K);
      if (until - from == K)
      {
#pragma unroll
        for (int t = 0; t < K; ++t)
        {
          moments.Add(Difference<First>(ringPixels[t], ringPixels[VRadiusZ]) + ringFirsts[t], ringSeconds[t]);
        }
      }
      else
      {
#pragma unroll
        for (int t = 0; t < K; ++t)
        {
          if (t >= from && t < until)
          {
            moments.Add(Difference<First>(ringPixels[t], ringPixels[VRadiusZ]) + ringFirsts[t], ringSeconds[t]);
          }
        }
        inverse = First(1) / static_cast<First>(until - from);
      }
      to = FinishVariance<TOut>(moments.Variance(inverse), takesRoot);
    }
  }
}

template <typename TPixel, typename TOut>
bool
RunAsTiles(const KernelCall & call, const Voxels<const TPixel> & pixels, const Coordinates & radius, bool takesRoot)
{
  const Box & box = call.output.box;
  const bool  fits = radius[0] <= LargestTileRadius && radius[1] <= LargestTileRadius &&
                    radius[2] <= LargestTileRadius && radius[3] == 0 && radius[4] == 0 && pixels.stride[0] == 1;
  const std::int64_t tilesX = (box.Extent(0) + TileX - 1) / TileX;
  const std::int64_t tilesY = (box.Extent(1) + TileY - 1) / TileY;
  const std::int64_t planes = box.Extent(3) * box.Extent(4);
  // Enough blocks for a large device, but no segment so short that its halo is most of it.
  const std::int64_t wanted = std::max<std::int64_t>(1, 2000 / std::max<std::int64_t>(1, tilesX * tilesY * planes));
  const std::int64_t segments =
    std::max<std::int64_t>(1, std::min(wanted, box.Extent(2) / std::max<std::int64_t>(16, 8 * radius[2])));
  const std::int64_t segment = (box.Extent(2) + segments - 1) / segments;
  const std::int64_t blocksZ = (box.Extent(2) + segment - 1) / segment * planes;
  if (!fits || tilesX > 1000000 || tilesY > 65535 || blocksZ > 65535)
  {
    return false;
  }
  const dim3 blocks(
    static_cast<unsigned int>(tilesX), static_cast<unsigned int>(tilesY), static_cast<unsigned int>(blocksZ));
  const auto launch = [&](auto radiusZ) {
    VarianceTileKernel<decltype(radiusZ)::value, TPixel, TOut>
      <<<blocks, TileX * TileY, 0, StreamOf(call)>>>(pixels,
                                                     VoxelsOf<TOut>(call.output),
                                                     static_cast<int>(radius[0]),
                                                     static_cast<int>(radius[1]),
                                                     segment,
                                                     takesRoot);
  };
  switch (radius[2])
  {
    case 0:
      launch(std::integral_constant<int, 0>());
      break;
    case 1:
      launch(std::integral_constant<int, 1>());
      break;
    default:
      launch(std::integral_constant<int, 2>());
  }
  CheckLaunch("VarianceTileKernel");
  return true;
}

template <typename TPixel, typename TOut>
void
Run(const KernelCall & call)
{
  const auto &      operation = static_cast<const VarianceOperation &>(*call.operation);
  const Coordinates radius = operation.EffectiveRadius(call.image.Extents());
  const WindowBoxes boxes(call.output.box, call.image, radius, operation.boundary.mode);
  char *            scratch = static_cast<char *>(call.scratch);
  const auto        pixels = ContinueImage<TPixel>(call, boxes, operation.boundary, scratch);
  if constexpr (std::is_same<TPixel, float>::value)
  {
    if (RunVarianceColumns(pixels, VoxelsOf<TOut>(call.output), radius, operation.takesRoot, StreamOf(call)))
    {
      return;
    }
  }
  if (!RunAsTiles<TPixel, TOut>(call, pixels, radius, operation.takesRoot))
  {
    LaunchVariancePasses<TPixel, TOut>(boxes, pixels, call.output, operation.takesRoot, scratch, StreamOf(call));
  }
}

void
RunVariance(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { Run<Pixel, decltype(out)>(call); });
  });
}

WindowBoxes
BoxesOf(const Operation & operation, const ChunkShape & shape)
{
  const auto & variance = static_cast<const VarianceOperation &>(operation);
  return WindowBoxes(
    shape.outputBox, shape.image, variance.EffectiveRadius(shape.image.Extents()), variance.boundary.mode);
}

std::size_t
ScratchOfVariance(const Operation & operation, const ChunkShape & shape)
{
  const WindowBoxes boxes = BoxesOf(operation, shape);
  const auto        mode = static_cast<const VarianceOperation &>(operation).boundary.mode;
  return DispatchPixelKind(shape.inputKinds[0], [&](auto pixel) {
    using Pixel = decltype(pixel);
    return ContinuedBytes(boxes, mode, sizeof(Pixel)) + VariancePassBytes<Pixel>(boxes, 0) +
           VariancePassBytes<Pixel>(boxes, 1);
  });
}

/** In bytes that take as long (measured on an H200): 25 a voxel of a pass, and 3 for each step of its radius. */
double
CostOfVariance(const Operation & operation, const ChunkShape & shape)
{
  const WindowBoxes boxes = BoxesOf(operation, shape);
  double            bytes =
    static_cast<double>(PixelSize(shape.outputKind)) * static_cast<double>(shape.outputBox.NumberOfVoxels());
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    bytes += static_cast<double>(25 + 3 * boxes.radius[boxes.axes[pass]]) *
             static_cast<double>(boxes.Before(pass).NumberOfVoxels());
  }
  return bytes;
}

} // namespace

void
RegisterCudaVariance(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunVariance;
  kernel.scratchBytes = ScratchOfVariance;
  kernel.cost = CostOfVariance;
  registry.Register("variance", kernel);
}

} // namespace chunkwise
