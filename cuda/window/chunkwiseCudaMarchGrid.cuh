/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMarchGrid_cuh
#define chunkwiseCudaMarchGrid_cuh

#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseGeometry.h"

#include <algorithm>
#include <climits>

// The grid of blocks of threads that take a tile in x and y and march along z.
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
template <typename TTile>
struct MarchTiles
{
  std::int64_t columns; ///< tiles along x, and so on
  std::int64_t rows;
  std::int64_t segments;

  __host__ __device__
  MarchTiles(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t segment)
    : columns((x + TTile::Width - 1) / TTile::Width)
    , rows((y + TTile::Height - 1) / TTile::Height)
    , segments((z + segment - 1) / segment)
  {}
  __host__ __device__ std::int64_t
                      Count(std::int64_t volumes) const
  {
    return columns * rows * segments * volumes;
  }
  /** The first position of a tile. */
  __device__ __forceinline__ int
  X(std::int64_t tile) const
  {
    return static_cast<int>(tile % columns) * TTile::Width;
  }
  __device__ __forceinline__ int
  Y(std::int64_t tile) const
  {
    return static_cast<int>(tile / columns % rows) * TTile::Height;
  }
  __device__ __forceinline__ std::int64_t
                             Segment(std::int64_t tile) const
  {
    return tile / (columns * rows) % segments;
  }
  __device__ __forceinline__ std::int64_t
                             Volume(std::int64_t tile) const
  {
    return tile / (columns * rows * segments);
  }
};

/** The place of a tile, for pixels of `step` components, which are volumes side by side. */
struct MarchPlace
{
  std::int64_t segment;
  int          x;
  int          y;

  template <typename TTile>
  __device__ __forceinline__
  MarchPlace(const MarchTiles<TTile> & tiles, std::int64_t tile, int step)
    : m_Step(step)
  {
    const std::int64_t pixels = step == 1 ? tile : tile / step;
    segment = tiles.Segment(pixels);
    x = tiles.X(pixels);
    y = tiles.Y(pixels);
    m_Volume = tiles.Volume(pixels);
    m_Component = tile - pixels * step;
  }
  /** The offset of the tile's volume, or component, of so many voxels each, in numbers. */
  __device__ __forceinline__ std::int64_t
                             Offset(std::int64_t voxels) const
  {
    return m_Volume * voxels * m_Step + m_Component;
  }

private:
  std::int64_t m_Volume;
  std::int64_t m_Component;
  const int    m_Step;
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

/** The blocks of a march, with so many planes that the device, of which a multiprocessor has room for `atOnce` blocks,
 * is busy. */
template <typename TTile>
struct MarchGrid
{
  std::int64_t segment;
  unsigned int blocks;

  MarchGrid(std::int64_t x, std::int64_t y, std::int64_t z, std::int64_t volumes, std::int64_t atOnce)
  {
    int device = 0;
    int multiprocessors = 1;
    (void)cudaGetDevice(&device);
    (void)cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    segment = MarchSegment(MarchTiles<TTile>(x, y, z, z).Count(volumes), z, TTile::Radius, multiprocessors * atOnce);
    blocks = BlocksFor(MarchTiles<TTile>(x, y, z, segment).Count(volumes), 1);
  }
};

} // namespace chunkwise

#endif
