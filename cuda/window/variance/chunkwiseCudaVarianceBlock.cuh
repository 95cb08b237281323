/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVarianceBlock_cuh
#define chunkwiseCudaVarianceBlock_cuh

#include "chunkwiseCudaMarchGrid.cuh"
#include "chunkwiseCudaWindow.cuh"

#include <optional>

// The common code of the kernels of small windows, in which a block of threads takes a tile in x and y and moves along
// z.
namespace chunkwise
{

/** The part of the output of a block: a tile that begins at x0, y0, and a segment of the planes. */
struct MarchingBlock
{
  std::int64_t x0;
  std::int64_t y0;
  std::int64_t z0;
  std::int64_t zEnd;
  /** The position along the axes beyond z. */
  std::int64_t c;
  std::int64_t w;

  __device__ __forceinline__
  MarchingBlock(const Box & box, std::int64_t segment, int tileX, int tileY)
  {
    const std::int64_t segments = (box.Extent(2) + segment - 1) / segment;
    std::int64_t       rest = blockIdx.z;
    z0 = box.lower.axis[2] + rest % segments * segment;
    rest /= segments;
    zEnd = z0 + segment < box.upper.axis[2] ? z0 + segment : box.upper.axis[2];
    c = box.lower.axis[3] + rest % box.Extent(3);
    w = box.lower.axis[4] + rest / box.Extent(3);
    x0 = box.lower.axis[0] + static_cast<std::int64_t>(blockIdx.x) * tileX;
    y0 = box.lower.axis[1] + static_cast<std::int64_t>(blockIdx.y) * tileY;
  }
};

/** Those of the `count` rows or columns from `first` on, which a block stages, that there are. */
struct StagedRange
{
  int low;
  int high;

  __device__ __forceinline__
  StagedRange(const Box & box, int axis, std::int64_t first, int count)
    : low(Clip(box.lower.axis[axis] - first, count))
    , high(Clip(box.upper.axis[axis] - first, count))
  {}

private:
  __device__ __forceinline__ static int
  Clip(std::int64_t value, int most)
  {
    return static_cast<int>(min(max(value, std::int64_t{ 0 }), std::int64_t{ most }));
  }
};

/** The blocks for tiles and segments, unless these are too many for a launch. */
inline std::optional<dim3>
GridOfBlocks(const Box & box, std::int64_t segment, int tileX, int tileY)
{
  const std::int64_t tilesX = (box.Extent(0) + tileX - 1) / tileX;
  const std::int64_t tilesY = (box.Extent(1) + tileY - 1) / tileY;
  const std::int64_t blocksZ = (box.Extent(2) + segment - 1) / segment * box.Extent(3) * box.Extent(4);
  if (tilesX > 1000000 || tilesY > 65535 || blocksZ > 65535)
  {
    return std::nullopt;
  }
  return dim3(static_cast<unsigned int>(tilesX), static_cast<unsigned int>(tilesY), static_cast<unsigned int>(blocksZ));
}

/** The blocks of a kernel of so many threads and bytes of shared memory, and the planes of each: they fill the device
 * in few turns. None where they are too many for a launch. */
struct MarchingGrid
{
  std::int64_t        segment;
  std::optional<dim3> blocks;

  template <typename TKernel>
  MarchingGrid(TKernel kernel, int threads, std::size_t bytes, const Box & box, int tileX, int tileY,
               std::int64_t radius)
  {
    const std::int64_t tiles =
      (box.Extent(0) + tileX - 1) / tileX * ((box.Extent(1) + tileY - 1) / tileY) * box.Extent(3) * box.Extent(4);
    segment =
      MarchSegment(tiles, box.Extent(2), radius, BlocksAtOnce(reinterpret_cast<const void *>(kernel), threads, bytes));
    blocks = GridOfBlocks(box, segment, tileX, tileY);
  }
};

} // namespace chunkwise

#endif
