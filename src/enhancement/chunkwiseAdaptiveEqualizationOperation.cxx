/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAdaptiveEqualizationOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

std::string
AdaptiveEqualizationOperation::GetKey() const
{
  return GetName() + " " + ToString(tile) + " " + std::to_string(bins) + " " + ExactText(clip) + " " +
         ExactText(lower) + " " + ExactText(upper);
}

Halo
AdaptiveEqualizationOperation::GetHalo(const Coordinates &) const
{
  Halo halo = Halo::None();
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (tile[a] > 0)
    {
      halo.lower[a] = tile[a] + (tile[a] - tile[a] / 2) - 1;
      halo.upper[a] = tile[a] + tile[a] / 2 - 1;
    }
  }
  return halo;
}

void
AdaptiveEqualizationOperation::Validate(const Coordinates &) const
{
  std::int64_t voxels = 1;
  int          axes = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    axes += tile[a] > 0 ? 1 : 0;
    // Neither factor has more than 31 bits.
    if (tile[a] < 0 || tile[a] > LargestTile || (voxels *= std::max<std::int64_t>(tile[a], 1)) > LargestTile)
    {
      throw ParameterError("TileSize: " + ToString(tile) + " is not from 1 to " + std::to_string(LargestTile) +
                           " voxels");
    }
  }
  if (axes > MaxSpatialAxes)
  {
    throw ParameterError("TileSize: tiles take part in at most " + std::to_string(MaxSpatialAxes) + " axes");
  }
  if (bins < 2 || bins > MostBins)
  {
    throw ParameterError("NumberOfBins: " + std::to_string(bins) + " is not from 2 to " + std::to_string(MostBins));
  }
  if (!(clip >= 0 && std::isfinite(clip)))
  {
    throw ParameterError("ClipLimit: " + std::to_string(clip) + "; it must be finite and at least 0");
  }
  if (!(lower <= upper && std::isfinite(upper - lower)))
  {
    throw ParameterError("Range: from " + PixelValue(lower).ToText() + " to " + PixelValue(upper).ToText() +
                         " is no finite range");
  }
}

std::int64_t
AdaptiveEqualizationOperation::GetTileVoxels() const
{
  std::int64_t voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= std::max<std::int64_t>(tile[a], 1);
  }
  return voxels;
}

Coordinates
AdaptiveEqualizationOperation::GetTiles(const Box & output, const Box & image) const
{
  Coordinates tiles = output.Extents();
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (tile[a] > 0)
    {
      tiles[a] = std::min((tiles[a] + tile[a] - 2) / tile[a] + 2, (image.Extent(a) - 1) / tile[a] + 1);
    }
  }
  return tiles;
}

std::int64_t
AdaptiveEqualizationOperation::GetLimit() const
{
  const std::int64_t voxels = this->GetTileVoxels();
  const double       limit = clip * static_cast<double>(voxels);
  return clip > 0 && limit < static_cast<double>(voxels) ? std::max<std::int64_t>(static_cast<std::int64_t>(limit), 1)
                                                         : voxels;
}

} // namespace chunkwise
