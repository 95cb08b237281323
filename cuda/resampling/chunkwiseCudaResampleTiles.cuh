/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaResampleTiles_cuh
#define chunkwiseCudaResampleTiles_cuh

#include "chunkwiseCudaResample.cuh"

#include <cuda_pipeline.h>

// Interpolation with 2 or 4 taps along each axis: a block computes a tile of the output from the box of the image
// around its points, which it puts in shared memory first. Beyond the image the box has what stands there, so that
// interpolation knows no edge.
namespace chunkwise
{

/** The extent of tiles. */
struct ResampleTile
{
  static constexpr int Threads = 256;
  /** Bytes of boxes: so many that several blocks share a processor. */
  static constexpr std::size_t  MostBytes = 64 * 1024;
  static constexpr std::int64_t Banks = 32;

  ResampleTile(const ResampleOperation & operation, const ResampleGrid & grid, std::size_t numberBytes)
  {
    // Along x, y and z; x and z are powers of 2, and threads divide by them.
    constexpr int volumes[][3] = { { 32, 16, 8 }, { 16, 16, 16 }, { 32, 8, 8 }, { 16, 16, 8 },
                                   { 16, 8, 8 },  { 8, 8, 8 },    { 8, 8, 4 },  { 4, 4, 4 } };
    constexpr int areas[][3] = { { 32, 32, 1 }, { 64, 16, 1 }, { 16, 16, 1 }, { 8, 8, 1 } };
    if (!IsForTiles(operation, grid))
    {
      return;
    }
    double stride[ResampleSpace::Axes];
    for (int i = 0; i < ResampleSpace::Axes; ++i)
    {
      stride[i] = 1;
      for (int a = 0; a < operation.axes[i]; ++a)
      {
        stride[i] *= static_cast<double>(operation.image[a]);
      }
    }
    double     best = 0;
    const auto consider = [&](const int(&candidate)[3]) {
      Coordinates tile = Coordinates::Filled(1);
      Coordinates box = Coordinates::Filled(1);
      double      offsets = 0;
      for (int o = 0; o < ResampleSpace::Axes; ++o)
      {
        tile[o] = std::min<std::int64_t>(candidate[o], operation.output[operation.axes[o]]);
      }
      for (int i = 0; i < ResampleSpace::Axes; ++i)
      {
        double steps = 0;
        for (int o = 0; o < ResampleSpace::Axes; ++o)
        {
          steps += std::abs(grid.matrix[i][o]) * static_cast<double>(tile[o] - 1);
        }
        // Rounding may add one.
        box[i] = static_cast<std::int64_t>(std::ceil(steps)) + grid.axes[i].taps + 1;
        offsets += static_cast<double>(box[i]) * stride[i];
      }
      const double worth = static_cast<double>(Box::FromExtent(tile).NumberOfVoxels()) /
                           static_cast<double>(Box::FromExtent(box).NumberOfVoxels());
      // Voxels of a warp lie in the banks of their x, whatever row they are of, and those of its second row in others.
      const std::int64_t ofRow = (box[0] + Banks - 1) / Banks * Banks;
      const std::int64_t ofPlane = ofRow * box[1] + (candidate[0] < Banks ? candidate[0] : 0);
      // Threads count in 32 bits.
      const bool fits = static_cast<std::size_t>(ofPlane * box[2]) * numberBytes <= MostBytes && offsets < 2147483648.0;
      if (fits && worth > best)
      {
        best = worth;
        pitch = static_cast<int>(ofRow);
        plane = static_cast<int>(ofPlane);
        numbers = ofPlane * box[2];
        std::copy(candidate, candidate + 3, extent);
      }
    };
    if (operation.output[operation.axes[2]] == 1)
    {
      std::for_each(std::begin(areas), std::end(areas), consider);
    }
    else
    {
      std::for_each(std::begin(volumes), std::end(volumes), consider);
    }
  }

  bool
  Fits() const
  {
    return numbers > 0;
  }

  int extent[3]{ 1, 1, 1 };
  /** Distances of the rows and planes of boxes, and the numbers of the largest one. */
  int          pitch{ 0 };
  int          plane{ 0 };
  std::int64_t numbers{ 0 };

private:
  static bool
  IsForTiles(const ResampleOperation & operation, const ResampleGrid & grid)
  {
    const std::int64_t taps = grid.axes[0].taps;
    bool               isForTiles = (taps == 2 || taps == 4) && !operation.HasOwnPoints();
    for (int i = 0; i < ResampleSpace::Axes; ++i)
    {
      const ResampleOperation::Axis & axis = grid.axes[i];
      isForTiles = isForTiles && (axis.taps == taps || (i == 2 && axis.taps == 1)) &&
                   (axis.taps != 4 || axis.kernel == TapKernel::Spline);
      // Points have 32-bit voxels.
      double reach = std::abs(grid.offset[i]) + static_cast<double>(axis.length);
      for (int o = 0; o < ResampleSpace::Axes; ++o)
      {
        reach += std::abs(grid.matrix[i][o]) * static_cast<double>(operation.output[operation.axes[o]]);
      }
      isForTiles = isForTiles && reach < 1e9;
    }
    return isForTiles;
  }
};

/** The box of a tile, and how its threads go through it. */
struct ResampleTileBox
{
  int  lower[3];
  int  extent[3];
  bool leaves[3];   ///< the voxels that the input has
  bool isMoved[3];  ///< points are beyond an edge
  bool hasValue[3]; ///< points have the value from beyond
};

/** The number of a point's voxel, and what the point is beyond it. Takes no conversion, of which there are few a cycle.
 */
__device__ __forceinline__ int
FloorOf(double point, double & part)
{
  // The unit of the last place is 1 there.
  constexpr double far = 6755399441055744.0;
  const double     moved = point + far;
  double           nearest = moved - far;
  int              voxel = __double2loint(moved);
  if (nearest > point)
  {
    nearest -= 1;
    --voxel;
  }
  part = point - nearest;
  return voxel;
}

/** The box of a tile along axis i. */
__device__ inline void
FindTileBox(const ResampleGrid & grid, const ResampleSpace & space, int i, const Coordinates & lower,
            const Coordinates & upper, ResampleTileBox & box)
{
  Coordinates first{};
  Coordinates last{};
  for (int o = 0; o < ResampleSpace::Axes; ++o)
  {
    const bool rises = grid.matrix[i][o] >= 0;
    first[o] = rises ? lower[o] : upper[o] - 1;
    last[o] = rises ? upper[o] - 1 : lower[o];
  }
  const double lowest = PointOf(grid, i, first);
  const double highest = PointOf(grid, i, last);
  const double from = grid.edges[i].Move(lowest);
  const double to = grid.edges[i].Move(highest);
  const auto   begin = FirstTap(grid.axes[i], from);
  const auto   end = FirstTap(grid.axes[i], to) + grid.axes[i].taps;
  box.lower[i] = static_cast<int>(begin);
  box.extent[i] = static_cast<int>(end - begin);
  box.leaves[i] = begin < space.inLower[i] || end > space.inUpper[i];
  box.isMoved[i] = from != lowest || to != highest;
  box.hasValue[i] = grid.edges[i].HasValue(lowest) || grid.edges[i].HasValue(highest);
}

/** The number of the tap at or below a point. */
constexpr int
BelowOf(int taps)
{
  return taps > 1 ? taps / 2 - 1 : 0;
}

/** The weights of a point along an axis: VTaps of them. */
template <typename TReal, int VTaps>
__device__ __forceinline__ void
FindWeights(double part, TReal (&weights)[VTaps])
{
  const auto t = static_cast<TReal>(part);
  if constexpr (VTaps == 2)
  {
    weights[0] = 1 - t;
    weights[1] = t;
  }
  else if constexpr (VTaps == 4)
  {
    SplineWeights(t, weights[0], weights[1], weights[2], weights[3]);
  }
}

/** The sum of taps whose number is known. */
template <typename TReal, int VTaps, typename TValue>
__device__ __forceinline__ TReal
SumOf(const TReal (&weights)[VTaps], TValue && value)
{
  if constexpr (VTaps == 1)
  {
    return value(0);
  }
  else
  {
    constexpr int below = BelowOf(VTaps);
    const TReal   base = value(below);
    TReal         sum = base;
#pragma unroll
    for (int k = 0; k < VTaps; ++k)
    {
      if (k != below)
      {
        sum += weights[k] * (value(k) - base);
      }
    }
    return sum;
  }
}

/** The box of the input that a tile of the output needs, along one axis. */
__device__ __forceinline__ void
FindBoxOfTile(const ResampleGrid & grid, const ResampleSpace & space, int axis, const std::int64_t (&lower)[3],
              const int (&extent)[3], ResampleTileBox & box)
{
  Coordinates first{};
  Coordinates last{};
  for (int o = 0; o < 3; ++o)
  {
    first[o] = space.outLower[o] + lower[o];
    const std::int64_t end = lower[o] + extent[o];
    last[o] = space.outLower[o] + (end < space.outExtent[o] ? end : space.outExtent[o]);
  }
  FindTileBox(grid, space, axis, first, last, box);
}

/** Stages the voxels of the input in `box`, rows `pitch` and planes `plane` apart. */
template <bool VNative, typename TReal>
__device__ __forceinline__ void
StageTile(const ResampleGrid & grid, const ResampleSpace & space, const ResampleSource<TReal> & source,
          const ResampleTileBox & box, std::int64_t inImage, int pitch, int plane, TReal * staged)
{
  const int  width = box.extent[0];
  const int  numbers = width * box.extent[1] * box.extent[2];
  const bool leaves = box.leaves[0] || box.leaves[1] || box.leaves[2];
  const int  rows = ResampleTile::Threads / width;
  const int  addX = ResampleTile::Threads - rows * width;
  const int  addZ = rows / box.extent[1];
  const int  addY = rows - addZ * box.extent[1];
  const int  row = static_cast<int>(threadIdx.x) / width;
  int        atX = static_cast<int>(threadIdx.x) - row * width;
  int        atZ = row / box.extent[1];
  int        atY = row - atZ * box.extent[1];
  const int  strideX = static_cast<int>(space.inStride[0]);
  const int  strideY = static_cast<int>(space.inStride[1]);
  const int  strideZ = static_cast<int>(space.inStride[2]);
  int        from = atX * strideX + atY * strideY + atZ * strideZ;
  int        to = atX + atY * pitch + atZ * plane;
  const auto forEach = [&](auto together, auto && stage) {
    const int addFrom = addX * strideX + addY * strideY + addZ * strideZ;
    const int addTo = addX + addY * pitch + addZ * plane;
#pragma unroll(decltype(together)::value)
    for (int i = static_cast<int>(threadIdx.x); i < numbers; i += ResampleTile::Threads)
    {
      stage(staged + to, from, atX, atY, atZ);
      from += addFrom;
      to += addTo;
      atX += addX;
      atY += addY;
      atZ += addZ;
      if (atX >= width)
      {
        atX -= width;
        ++atY;
        from += strideY - width * strideX;
        to += pitch - width;
      }
      if (atY >= box.extent[1])
      {
        atY -= box.extent[1];
        ++atZ;
        from += strideZ - box.extent[1] * strideY;
        to += plane - box.extent[1] * pitch;
      }
    }
  };
  const std::int64_t begin[3] = { box.lower[0], box.lower[1], box.lower[2] };
  const std::int64_t offset = inImage + space.OffsetOf(begin);
  if (!leaves && (VNative || source.kind == PixelTypeOf<TReal>()))
  {
    // The copies do not wait for each other, and take no registers.
    const TReal * const data = static_cast<const TReal *>(source.data) + offset;
    forEach(std::integral_constant<int, 4>{},
            [&](TReal * place, int at, int, int, int) { __pipeline_memcpy_async(place, data + at, sizeof(TReal)); });
    __pipeline_commit();
    __pipeline_wait_prior(0);
  }
  else if (!leaves)
  {
    forEach(std::integral_constant<int, 1>{}, [&](TReal * place, int at, int, int, int) {
      *place = LoadAs<TReal, false>(source.data, source.kind, offset + at);
    });
  }
  else
  {
    forEach(std::integral_constant<int, 1>{}, [&](TReal * place, int, int i, int j, int k) {
      std::int64_t at[3] = { box.lower[0] + i, box.lower[1] + j, box.lower[2] + k };
      *place = source.template LoadBeyond<VNative>(grid, space, at, inImage);
    });
  }
}

/** The value at a point, from the staged voxels, of which the first has the index `begin`. */
template <int VTaps, int VDepth, typename TReal>
__device__ __forceinline__ TReal
InterpolateStaged(const TReal * staged, const double (&point)[3], const int (&begin)[3], int pitch, int plane)
{
  double part[3];
  TReal  weightsX[VTaps];
  TReal  weightsY[VTaps];
  TReal  weightsZ[VDepth];
  int    at = FloorOf(point[0], part[0]) - begin[0];
  at += (FloorOf(point[1], part[1]) - begin[1]) * pitch;
  at += (FloorOf(VDepth == 1 ? point[2] + 0.5 : point[2], part[2]) - begin[2]) * plane;
  FindWeights<TReal, VTaps>(part[0], weightsX);
  FindWeights<TReal, VTaps>(part[1], weightsY);
  FindWeights<TReal, VDepth>(part[2], weightsZ);
  const TReal * const from = staged + at;
  return SumOf(weightsZ, [&](int c) {
    return SumOf(weightsY, [&](int b) {
      const TReal * const line = from + c * plane + b * pitch;
      return SumOf(weightsX, [&](int a) { return line[a]; });
    });
  });
}

/** VTaps: along the first two axes; VDepth: along the third, as many or 1. VNative: both images are of TReal. */
template <typename TReal, bool VNative, int VTaps, int VDepth>
__global__ void
__launch_bounds__(ResampleTile::Threads)
  ResampleTileKernel(const __grid_constant__ ResampleGrid grid, const __grid_constant__ ResampleSpace space,
                     ResampleSource<TReal> source, void * __restrict__ out, PixelType outKind, int logX, int tileY,
                     int logZ, int pitch, int plane)
{
  extern __shared__ unsigned char resampleStaged[];
  TReal * const                   staged = reinterpret_cast<TReal *>(resampleStaged);
  __shared__ ResampleTileBox      box;

  const auto tilesOf = [](std::int64_t n, int tile) { return static_cast<unsigned int>((n + tile - 1) / tile); };
  const int  tileX = 1 << logX;
  const int  tileZ = 1 << logZ;
  const auto tilesX = tilesOf(space.outExtent[0], tileX);
  const auto tilesY = tilesOf(space.outExtent[1], tileY);
  const auto tilesZ = tilesOf(space.outExtent[2], tileZ);
  const auto tiles = static_cast<std::int64_t>(tilesX) * tilesY * tilesZ * space.CountImages();
  const int  x = static_cast<int>(threadIdx.x) & (tileX - 1);
  const int  z = (static_cast<int>(threadIdx.x) >> logX) & (tileZ - 1);
  const int  firstY = static_cast<int>(threadIdx.x) >> (logX + logZ);
  const int  stepY = max(1, ResampleTile::Threads >> (logX + logZ));

  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x)
  {
    std::int64_t rest = Quotient(tile, tilesX);
    std::int64_t lower[3] = { (tile - rest * tilesX) * tileX, 0, 0 };
    std::int64_t planes = Quotient(rest, tilesY);
    lower[1] = (rest - planes * tilesY) * tileY;
    const std::int64_t image = Quotient(planes, tilesZ);
    lower[2] = (planes - image * tilesZ) * tileZ;
    std::int64_t inImage = 0;
    std::int64_t outImage = 0;
    space.FindImage(image, inImage, outImage);
    // The box of the tile before is not read any more.
    __syncthreads();
    if (threadIdx.x < 3)
    {
      const int extent[3] = { tileX, tileY, tileZ };
      FindBoxOfTile(grid, space, static_cast<int>(threadIdx.x), lower, extent, box);
    }
    __syncthreads();

    StageTile<VNative>(grid, space, source, box, inImage, pitch, plane, staged);
    __syncthreads();

    const std::int64_t endY = space.outExtent[1] - lower[1] < tileY ? space.outExtent[1] - lower[1] : tileY;
    if (lower[0] + x >= space.outExtent[0] || lower[2] + z >= space.outExtent[2])
    {
      continue;
    }
    const auto   voxelX = static_cast<double>(space.outLower[0] + lower[0] + x);
    const auto   voxelZ = static_cast<double>(space.outLower[2] + lower[2] + z);
    auto         voxelY = static_cast<double>(space.outLower[1] + lower[1] + firstY);
    std::int64_t to = outImage + (lower[0] + x) * space.outStride[0] + (lower[1] + firstY) * space.outStride[1] +
                      (lower[2] + z) * space.outStride[2];
    double ofX[3];
    double ofZ[3];
    int    begin[3];
    for (int i = 0; i < 3; ++i)
    {
      ofX[i] = grid.matrix[i][0] * voxelX;
      ofZ[i] = grid.matrix[i][2] * voxelZ + grid.offset[i];
      begin[i] = box.lower[i] + BelowOf(i < 2 ? VTaps : VDepth);
    }
    const auto interpolate = [&](auto hasEdges) {
      constexpr bool HasEdges = decltype(hasEdges)::value;
      for (int y = firstY; y < endY; y += stepY)
      {
        double point[3];
        bool   hasValue = false;
        for (int i = 0; i < 3; ++i)
        {
          point[i] = ofX[i] + (grid.matrix[i][1] * voxelY + ofZ[i]);
          if (HasEdges)
          {
            hasValue = hasValue || grid.edges[i].HasValue(point[i]);
            point[i] = grid.edges[i].Move(point[i]);
          }
        }
        TReal result = InterpolateStaged<VTaps, VDepth>(staged, point, begin, pitch, plane);
        if (HasEdges && hasValue)
        {
          result = source.value;
        }
        StoreAs<TReal, VNative>(out, outKind, to, result);
        voxelY += stepY;
        to += stepY * space.outStride[1];
      }
    };
    const bool hasEdges =
      box.isMoved[0] || box.isMoved[1] || box.isMoved[2] || box.hasValue[0] || box.hasValue[1] || box.hasValue[2];
    hasEdges ? interpolate(std::true_type{}) : interpolate(std::false_type{});
  }
}

template <typename TReal, bool VNative, int VTaps, int VDepth>
void
LaunchTilesOf(const KernelCall & call, const ResampleGrid & grid, const ResampleSpace & space,
              const ResampleSource<TReal> & source, const ResampleTile & tile)
{
  std::int64_t tiles = space.CountImages();
  const auto   log = [](int n) {
    int result = 0;
    while (1 << result < n)
    {
      ++result;
    }
    return result;
  };
  for (int i = 0; i < 3; ++i)
  {
    tiles *= (space.outExtent[i] + tile.extent[i] - 1) / tile.extent[i];
  }
  const auto        kernel = ResampleTileKernel<TReal, VNative, VTaps, VDepth>;
  const std::size_t bytes = static_cast<std::size_t>(tile.numbers) * sizeof(TReal);
  AllowSharedMemory(kernel, bytes);
  kernel<<<BlocksFor(tiles, 1), ResampleTile::Threads, bytes, StreamOf(call)>>>(grid,
                                                                                space,
                                                                                source,
                                                                                call.output.data,
                                                                                call.output.kind,
                                                                                log(tile.extent[0]),
                                                                                tile.extent[1],
                                                                                log(tile.extent[2]),
                                                                                tile.pitch,
                                                                                tile.plane);
  CheckLaunch("ResampleTileKernel");
}

template <typename TReal>
void
LaunchTiles(const KernelCall & call, const ResampleGrid & grid, const ResampleSpace & space,
            const ResampleSource<TReal> & source, const ResampleTile & tile)
{
  const auto launch = [&](auto native) {
    constexpr bool isNative = decltype(native)::value;
    const bool     isFlat = grid.axes[2].taps == 1;
    if (grid.axes[0].taps == 2)
    {
      isFlat ? LaunchTilesOf<TReal, isNative, 2, 1>(call, grid, space, source, tile)
             : LaunchTilesOf<TReal, isNative, 2, 2>(call, grid, space, source, tile);
    }
    else
    {
      isFlat ? LaunchTilesOf<TReal, isNative, 4, 1>(call, grid, space, source, tile)
             : LaunchTilesOf<TReal, isNative, 4, 4>(call, grid, space, source, tile);
    }
  };
  const bool isNative = source.kind == PixelTypeOf<TReal>() && call.output.kind == PixelTypeOf<TReal>();
  isNative ? launch(std::true_type{}) : launch(std::false_type{});
}

} // namespace chunkwise

#endif
