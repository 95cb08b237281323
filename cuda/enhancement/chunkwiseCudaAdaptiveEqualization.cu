/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAdaptiveEqualizationOperation.h"
#include "chunkwiseCudaEnhancement.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaRealOutput.cuh"
#include "chunkwiseRealOf.h"
#include "chunkwiseTileMappings.h"

namespace chunkwise
{

namespace
{

template <typename TReal>
struct EqualizationSetup
{
  Box          image;
  Box          tiles; ///< whose mappings are made
  Coordinates  size;
  int          bins;
  std::int64_t limit;
  double       unit;
  TReal        lower;
  TReal        scale;
  TReal        step;
  TReal        inverse;

  __device__ int
  Bin(TReal voxel) const
  {
    return static_cast<int>(BinOf(LevelOf(voxel, lower, scale), inverse));
  }
  __device__ TilePlace
  Place(int axis, std::int64_t i) const
  {
    return TilePlace(i, size.axis[axis], image.Extent(axis));
  }
};

/** A block a tile. */
template <typename TPixel, typename TReal>
__global__ void
TileMappingKernel(const __grid_constant__ Voxels<const TPixel> in, const __grid_constant__ EqualizationSetup<TReal> g,
                  float * __restrict__ mappings)
{
  extern __shared__ std::uint32_t counts[];
  const std::int64_t              tiles = g.tiles.NumberOfVoxels();
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
  {
    for (int b = static_cast<int>(threadIdx.x); b < g.bins; b += static_cast<int>(blockDim.x))
    {
      counts[b] = 0;
    }
    __syncthreads();
    Box voxels{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t size = g.size.axis[a] > 0 ? g.size.axis[a] : 1;
      voxels.lower.axis[a] = IndexIn(g.tiles, tile).axis[a] * size;
      voxels.upper.axis[a] = voxels.lower.axis[a] + size;
    }
    const std::int64_t n = voxels.NumberOfVoxels();
    for (std::int64_t i = threadIdx.x; i < n; i += blockDim.x)
    {
      Coordinates at = IndexIn(voxels, i);
      for (int a = 0; a < MaxDimension; ++a)
      {
        at.axis[a] = ReflectAtEnd(at.axis[a], g.image.Extent(a));
      }
      atomicAdd(&counts[g.Bin(static_cast<TReal>(in[at]))], 1U);
    }
    __syncthreads();
    if (threadIdx.x == 0)
    {
      ClipHistogram(counts, g.bins, g.limit);
      std::int64_t sum = 0;
      for (int b = 0; b < g.bins; ++b)
      {
        sum += counts[b];
        mappings[tile * g.bins + b] = MappingOf(sum, g.unit);
      }
    }
    __syncthreads();
  }
}

template <typename TPixel, typename TReal>
__global__ void
EqualizeKernel(const __grid_constant__ Voxels<const TPixel> in, const __grid_constant__ RealOutput out,
               const __grid_constant__ EqualizationSetup<TReal> g, const float * __restrict__ mappings)
{
  const Box &        box = out.voxels.box;
  const std::int64_t width = box.Extent(0);
  const std::int64_t rows = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < rows; row += RowStep())
  {
    Coordinates at = IndexIn(box, row * width);
    // The mappings of x's first tile at the corners of up to two slower axes with tiles, the slowest last.
    std::int64_t corners[4] = { 0, 0, 0, 0 };
    float        parts[2] = { 0, 0 };
    int          slower = 0;
    std::int64_t step = g.bins * g.tiles.Extent(0);
    for (int a = 1; a < MaxDimension; ++a)
    {
      const TilePlace place = g.Place(a, at.axis[a]);
      const bool      isMixed = g.size.axis[a] > 0 && slower < 2;
      for (int c = 0; c < 4; ++c)
      {
        const bool isAfter = isMixed && ((c >> slower) & 1) != 0;
        corners[c] += ((isAfter ? place.after : place.before) - g.tiles.lower.axis[a]) * step;
      }
      if (isMixed)
      {
        parts[slower++] = place.part;
      }
      step *= g.tiles.Extent(a);
    }
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      at.axis[0] = box.lower.axis[0] + x;
      const TilePlace    place = g.Place(0, at.axis[0]);
      const std::int64_t bin = g.Bin(static_cast<TReal>(in[at]));
      const auto         mix = [&](std::int64_t tile) {
        const float * const from = mappings + (tile - g.tiles.lower.axis[0]) * g.bins + bin;
        const float         first = MixOf(from[corners[0]], from[corners[2]], parts[1]);
        const float         second = MixOf(from[corners[1]], from[corners[3]], parts[1]);
        return MixOf(first, second, parts[0]);
      };
      const float mapping = MixOf(mix(place.before), mix(place.after), place.part);
      out.Store<TPixel>(out.voxels.Offset(at), g.lower + static_cast<TReal>(mapping) * g.step);
    }
  }
}

std::size_t
ScratchOfEqualization(const Operation & operation, const ChunkShape & shape)
{
  const auto &      equalization = static_cast<const AdaptiveEqualizationOperation &>(operation);
  const Coordinates tiles = equalization.GetTiles(shape.outputBox, shape.image);
  return static_cast<std::size_t>(Box::FromExtent(tiles).NumberOfVoxels() * equalization.bins) * sizeof(float);
}

void
RunEqualization(const KernelCall & call)
{
  const auto & operation = static_cast<const AdaptiveEqualizationOperation &>(*call.operation);
  const double span = operation.upper - operation.lower;
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    EqualizationSetup<Real> setup;
    setup.image = call.image;
    setup.size = operation.tile;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const auto place = [&](std::int64_t i) { return TilePlace(i, operation.tile[a], call.image.Extent(a)); };
      setup.tiles.lower[a] = place(call.output.box.lower[a]).before;
      setup.tiles.upper[a] = place(call.output.box.upper[a] - 1).after + 1;
    }
    setup.bins = operation.bins;
    setup.limit = operation.GetLimit();
    setup.unit = LargestLevel / static_cast<double>(operation.GetTileVoxels());
    setup.lower = static_cast<Real>(operation.lower);
    setup.scale = static_cast<Real>(span > 0 ? LargestLevel / span : 0.0);
    setup.step = static_cast<Real>(span / LargestLevel);
    setup.inverse = Real(1) / static_cast<Real>(LevelsOfBin(operation.bins));
    float * const    mappings = static_cast<float *>(call.scratch);
    const auto       in = VoxelsOf<const Pixel>(call.inputs[0]);
    const RealOutput out{ VoxelsOf<char>(call.output), call.output.kind };
    // Compilers load four counts at once where they use fewer.
    TileMappingKernel<Pixel, Real><<<BlocksFor(setup.tiles.NumberOfVoxels(), 1),
                                     512,
                                     static_cast<std::size_t>(operation.bins + 3) / 4 * 4 * sizeof(std::uint32_t),
                                     StreamOf(call)>>>(in, setup, mappings);
    CheckLaunch("TileMappingKernel");
    EqualizeKernel<Pixel, Real>
      <<<BlocksOfRows(call.output.box), ThreadsOfRows(), 0, StreamOf(call)>>>(in, out, setup, mappings);
    CheckLaunch("EqualizeKernel");
  });
}

} // namespace

void
RegisterCudaAdaptiveEqualization(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunEqualization;
  kernel.scratchBytes = ScratchOfEqualization;
  registry.Register("adaptiveequalization", { kernel });
}

} // namespace chunkwise
