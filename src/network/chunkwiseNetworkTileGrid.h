/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkTileGrid_h
#define chunkwiseNetworkTileGrid_h

#include "chunkwiseNetworkVoxels.h"

#include <algorithm>

// The places of the tiles of a transformed convolution in its input and its output, for both backends.

namespace chunkwise
{
namespace network
{

/** The tiles of a convolution: for every grid of dilation-th voxels the tiles that cover it, x fastest. */
struct TileGrid
{
  std::int64_t grids[MaxSpatialAxes]; ///< that are not empty
  std::int64_t tiles[MaxSpatialAxes]; ///< of each
  std::int64_t kept[MaxSpatialAxes];  ///< results of a tile

  TileGrid(const Step & step, int tile)
  {
    for (int a = 0; a < MaxSpatialAxes; ++a)
    {
      kept[a] = tile - step.kernel[a] + 1;
      grids[a] = std::min(step.dilation[a], step.out.extent[a]);
      const std::int64_t length = (step.out.extent[a] + step.dilation[a] - 1) / step.dilation[a];
      tiles[a] = (length + kept[a] - 1) / kept[a];
    }
  }
  std::int64_t
  Count() const
  {
    return grids[0] * grids[1] * grids[2] * tiles[0] * tiles[1] * tiles[2];
  }
};

/** The positions of a tile's voxels along an axis: number j at base + j * step, for j in [begin, end). */
struct TileAxis
{
  std::int64_t base;
  std::int64_t step;
  int          begin;
  int          end;
};

CHUNKWISE_HOST_DEVICE inline std::int64_t
FloorDivide(std::int64_t a, std::int64_t b)
{
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

/** In memory: from voxel to voxel of a fragment, and from a fragment to the next one. */
CHUNKWISE_HOST_DEVICE inline void
FindStrides(const Tensor & tensor, int a, std::int64_t & voxel, std::int64_t & fragment)
{
  voxel = 1;
  fragment = tensor.FragmentLength();
  for (int b = 0; b < a; ++b)
  {
    voxel *= tensor.FragmentExtent(b);
    fragment *= tensor.fragments[b];
  }
}

/** Number j is index first + j * dilation of the tensor, from its `lower` on. */
CHUNKWISE_HOST_DEVICE inline TileAxis
FindAxis(const Tensor & tensor, int a, std::int64_t first, std::int64_t dilation)
{
  std::int64_t voxel;
  std::int64_t fragment;
  FindStrides(tensor, a, voxel, fragment);
  TileAxis axis;
  if (tensor.fragments[a] > 1)
  {
    const std::int64_t begin = FloorDivide(first, dilation);
    axis.base = (first - begin * dilation) * fragment + begin * voxel;
    axis.step = voxel;
  }
  else
  {
    axis.base = first * voxel;
    axis.step = dilation * voxel;
  }
  axis.begin = static_cast<int>(first < 0 ? (-first + dilation - 1) / dilation : 0);
  const std::int64_t rest = tensor.extent[a] - first;
  const std::int64_t end = rest <= 0 ? 0 : (rest + dilation - 1) / dilation;
  axis.end = static_cast<int>(end < 1024 ? end : 1024);
  return axis;
}

/** Axis `a` of tile `number`: its voxels in the output, or in the input, of which it wants no more than its results
 * need. */
CHUNKWISE_HOST_DEVICE inline TileAxis
FindTileAxis(const Step & step, const TileGrid & grid, std::int64_t number, int a, bool isInput)
{
  for (int b = 0; b < a; ++b)
  {
    number /= grid.tiles[b];
  }
  const std::int64_t at = number % grid.tiles[a];
  number /= grid.tiles[a];
  for (int b = a + 1; b < MaxSpatialAxes; ++b)
  {
    number /= grid.tiles[b];
  }
  for (int b = 0; b < a; ++b)
  {
    number /= grid.grids[b];
  }
  const std::int64_t first = number % grid.grids[a] + at * grid.kept[a] * step.dilation[a];
  TileAxis           out = FindAxis(step.out, a, first, step.dilation[a]);
  out.end = static_cast<int>(out.end < grid.kept[a] ? out.end : grid.kept[a]);
  if (!isInput)
  {
    return out;
  }
  TileAxis in =
    FindAxis(step.in[0], a, first + step.out.lower[a] - step.padLower[a] - step.in[0].lower[a], step.dilation[a]);
  const int wanted = out.end > 0 ? out.end + static_cast<int>(step.kernel[a]) - 1 : 0;
  in.end = in.end < wanted ? in.end : wanted;
  return in;
}

CHUNKWISE_HOST_DEVICE inline bool
IsWithin(const TileAxis & axis, int j)
{
  return j >= axis.begin && j < axis.end;
}

} // namespace network
} // namespace chunkwise

#endif
