/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseAdaptiveEqualizationOperation_h
#define chunkwiseAdaptiveEqualizationOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** Contrast-limited adaptive histogram equalization (S. Pizer et al., "Adaptive histogram equalization and its
 * variations", Computer Vision, Graphics, and Image Processing 39, 1987; K. Zuiderveld, Graphics Gems IV, 1994).
 * Kernel "adaptiveequalization".
 *
 * The image is cut into tiles on a grid that begins at index 0. A tile that the image's edge cuts is filled up by
 * reflection: voxel n - 1 + i is n - 1 - i. A voxel x has the level round((x - lower) * 16383 / (upper - lower)), from
 * 0 to 16383, ties to even, NaN 0, and lies in bin level / (1 + 16384 / bins), rounded down twice. The histogram of a
 * tile of T voxels is clipped at the limit max(floor(clip * T), 1), or at T if clip is 0, and the voxels above it are
 * given to the other bins (ClipHistogram). The mapping of a bin is 16383 / T times the number of voxels in it and in
 * the bins below, rounded down, but 16383 at most.
 *
 * Along an axis with tiles of s voxels position i lies between tiles j - 1 and j, j = (i + s / 2) / s rounded down, at
 * the part t = ((i + s / 2) mod s) / s of the way; the nearest tile stands for a tile that is not there. A voxel's
 * mapping is interpolated between those tiles along one axis after the other, the slowest first: a + (b - a) t, in
 * float. The result is lower + mapping * ((upper - lower) / 16383).
 *
 * Levels and results are computed in float for float, 8- and 16-bit integers, in double for the others; each operation
 * is rounded. Integer results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT AdaptiveEqualizationOperation : public Operation
{
public:
  static constexpr int          MostBins = 4096;
  static constexpr std::int64_t LargestTile = std::int64_t{ 1 } << 30;

  /** The extent of tiles; 0 along an axis whose positions are equalized apart. */
  Coordinates tile{};
  double      clip{ 0.01 };
  int         bins{ 256 };
  double      lower{ 0 };
  double      upper{ 1 };

  std::string
  GetName() const override
  {
    return "adaptiveequalization";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
  /** Voxels of a tile. */
  std::int64_t
  GetTileVoxels() const;
  /** The most tiles along each axis that a part of this extent lies between. */
  Coordinates
  GetTiles(const Box & output, const Box & image) const;
  /** The most voxels of a bin, see above. */
  std::int64_t
  GetLimit() const;
};

} // namespace chunkwise

#endif
