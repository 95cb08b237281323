/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSidedWindows_h
#define chunkwiseSidedWindows_h

#include "chunkwiseOperations.h"

#include <vector>

namespace chunkwise
{

/** A box that reaches `lower` voxels to the lower side of its voxel and `upper` voxels to the upper side. */
struct WindowSides
{
  Coordinates lower{};
  Coordinates upper{};

  bool
  IsCentered() const
  {
    return lower == upper;
  }
};

/** The box as voxels of the box of 2 radius + 1 voxels an axis, x fastest: 1 for its own voxels. */
Chunkwise_EXPORT std::vector<unsigned char>
                 MakeSidedElement(const WindowSides & sides, Coordinates & radius);

/** The same statistic over other windows. `window` is a MeanOperation, VarianceOperation, RankOperation,
 * EntropyOperation or ExtremumOperation, one of them in a DomainOperation, or a RangeOperation, WienerOperation,
 * LocalNormalizationOperation or LocalThresholdOperation; its own radius is not used. `kind`: of the image.
 *
 * A box of an odd number of voxels along each axis is the box around another voxel: the statistic is that of the
 * operation itself, by its arithmetic, over the image with a frame (FramedOperation). The frame is 0 in a mask
 * if windows end at the image's edge; without a mask ranks and entropies are then those in a mask of ones
 * (DomainOperation). Extrema over even numbers are the extrema of two boxes each. Means, variances and ranks over even
 * numbers of voxels, and means and variances of windows that end at the image's edge, are those of FootprintOperation,
 * which takes boxes along one axis after the other. */
Chunkwise_EXPORT std::shared_ptr<const Operation>
                 MakeSided(const std::shared_ptr<const Operation> & window, const WindowSides & sides, PixelType kind);

} // namespace chunkwise

#endif
