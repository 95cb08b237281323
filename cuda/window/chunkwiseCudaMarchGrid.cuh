/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMarchGrid_cuh
#define chunkwiseCudaMarchGrid_cuh

#include "chunkwiseGeometry.h"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cuda_runtime.h>

// What blocks of threads have that take a tile in x and y and march along z.
namespace chunkwise
{

/** Shared memory that a block may ask for on every device that there is. */
inline std::size_t
SharedMemoryOfDevices()
{
  static const int least = [] {
    int devices = 0;
    int bytes = INT_MAX;
    (void)cudaGetDeviceCount(&devices);
    for (int device = 0; device < devices; ++device)
    {
      int of = 0;
      (void)cudaDeviceGetAttribute(&of, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
      bytes = std::min(bytes, of);
    }
    return bytes;
  }();
  return static_cast<std::size_t>(least);
}

/** The tiles of all volumes, each in segments along z. */
struct MarchTiles
{
  std::int64_t width; ///< columns of a tile, and so on
  std::int64_t height;
  std::int64_t segment;
  std::int64_t columns; ///< tiles along x, and so on
  std::int64_t rows;
  std::int64_t segments;
  std::int64_t count;

  __host__ __device__
  MarchTiles(const Coordinates & extent, std::int64_t volumes, std::int64_t tileWidth, std::int64_t tileHeight,
             std::int64_t planes)
    : width(tileWidth)
    , height(tileHeight)
    , segment(planes)
    , columns((extent.axis[0] + tileWidth - 1) / tileWidth)
    , rows((extent.axis[1] + tileHeight - 1) / tileHeight)
    , segments((extent.axis[2] + planes - 1) / planes)
    , count(columns * rows * segments * volumes)
  {}
  /** Where a tile begins along x, y and z, and the number of its volume. */
  __device__ Coordinates
  First(std::int64_t tile) const
  {
    Coordinates first{};
    first.axis[0] = tile % columns * width;
    first.axis[1] = tile / columns % rows * height;
    first.axis[2] = tile / (columns * rows) % segments * segment;
    first.axis[3] = tile / (columns * rows * segments);
    return first;
  }
};

/** Planes a block, so that the blocks fill the device in few turns and yet read few planes twice. */
inline std::int64_t
MarchSegment(std::int64_t tiles, std::int64_t planes, std::int64_t radius, std::int64_t blocksAtOnce)
{
  std::int64_t best = planes;
  std::int64_t least = INT64_MAX;
  for (std::int64_t segments = 1; segments <= std::min<std::int64_t>(planes, 64); ++segments)
  {
    const std::int64_t segment = (planes + segments - 1) / segments;
    const std::int64_t turns = (tiles * segments + blocksAtOnce - 1) / blocksAtOnce;
    const std::int64_t cost = turns * (segment + 2 * radius);
    if (cost < least)
    {
      least = cost;
      best = segment;
    }
  }
  return best;
}

/** The blocks of a march: `width` x `height` columns of outputs each, and so many planes that the device, of which a
 * multiprocessor has room for `atOnce` blocks, is busy. */
struct MarchGrid
{
  std::int64_t segment;
  unsigned int blocks;

  MarchGrid(const Coordinates & extent, std::int64_t volumes, std::int64_t width, std::int64_t height,
            std::int64_t radius, std::int64_t atOnce)
  {
    int device = 0;
    int multiprocessors = 1;
    (void)cudaGetDevice(&device);
    (void)cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    const std::int64_t tiles = MarchTiles(extent, volumes, width, height, extent[2]).count;
    segment = MarchSegment(tiles, extent[2], radius, multiprocessors * atOnce);
    constexpr std::int64_t most = std::int64_t{ 1 } << 24; // kernels loop over the rest
    blocks = static_cast<unsigned int>(
      std::max<std::int64_t>(1, std::min(most, MarchTiles(extent, volumes, width, height, segment).count)));
  }
};

} // namespace chunkwise

#endif
