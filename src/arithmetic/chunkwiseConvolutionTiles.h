/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseConvolutionTiles_h
#define chunkwiseConvolutionTiles_h

#include "chunkwiseImageConvolutionOperation.h"

#include <utility>
#include <vector>

namespace chunkwise
{

/** The tiles in which a convolution through transforms is computed: by the extents of image and kernel alone, so that
 * bits do not depend on chunks. They are those of ImageConvolutionOperation::GetTile, which both sorts of tiles make
 * up: ConvolutionBlock::Tile, the CPU's, on a grid that begins at the image's origin; and a device's, on grids that
 * begin with each shared tile. */
class Chunkwise_EXPORT ConvolutionTiles
{
public:
  ConvolutionTiles(const ImageConvolutionOperation & operation, const Coordinates & image);

  /** Whether tiles of planes share a block, too: the device transforms rows alone, or pairs of which no tile cuts one.
   */
  void
  SharePlanes(bool shares)
  {
    m_SharesPlanes = shares;
  }

  const Coordinates &
  GetShared() const
  {
    return m_Shared;
  }
  const Coordinates &
  GetDevice() const
  {
    return m_Device;
  }
  /** The blocks in which a device computes a part of the image: whole tiles, except along axes that are not
   * transformed. Along the last of three transformed axes tiles share a block; of two, if SharePlanes says so. */
  std::vector<Box>
  Cut(const Box & part) const;
  /** At least the extent of every such block of a part of this extent, wherever it lies. */
  Coordinates
  GetLargest(const Box & part) const;

  /** Lines that devices transform fast end at this length; others must fit shared memory. */
  static constexpr std::int64_t LongestFastLine = 1024;
  static constexpr std::int64_t LongestLine = 4096;
  /** The memory that a device needs at once for a tile in float, about: for kernels of up to some 80 voxels along each
   * axis, if lines of 600 points and more save little; and else, if it can be. */
  static constexpr double UsualDeviceBytes = 765.0 * 1024 * 1024;
  static constexpr double MostDeviceBytes = 1800.0 * 1024 * 1024;

private:
  void
  Choose(int role, const Coordinates & host, std::int64_t limit);
  std::vector<std::pair<std::int64_t, std::int64_t>>
  CutAxis(int role, std::int64_t lower, std::int64_t upper) const;
  /** Whether tiles along the axis share a block. */
  bool
  IsTogether(int role) const
  {
    return role > 0 && role + 1 == m_Transformed && (role == 2 || m_SharesPlanes);
  }

  Coordinates            m_Image;
  bool                   m_SharesPlanes{ false };
  const ConvolutionBlock m_Roles;
  int                    m_Transformed{ 0 };
  Coordinates            m_Shared;
  Coordinates            m_Device;
};

} // namespace chunkwise

#endif
