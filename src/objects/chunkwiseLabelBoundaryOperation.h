/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelBoundaryOperation_h
#define chunkwiseLabelBoundaryOperation_h

#include "chunkwiseOperation.h"

#include <vector>

namespace chunkwise
{

/** Which side of a boundary is marked. */
enum class LabelBoundaryMode : std::int32_t
{
  Thick, ///< every voxel with a neighbor of another value
  Inner, ///< of these the voxels of objects
  Outer  ///< of these the voxels of the background, and of objects where two of them touch
};

/** 1 at the boundaries of objects, which have values other than 0; 0 elsewhere. Kernel "labelboundary".
 *
 * Neighbors share a face (connectivity 1), also an edge (2), also a corner (3), along up to three axes; beyond the
 * image's edge there are none. In the mode Outer two objects touch at a voxel of one where any of the 26 voxels around
 * it belongs to another. NaN differs from everything. As skimage.segmentation.find_boundaries. */
class Chunkwise_EXPORT LabelBoundaryOperation : public Operation
{
public:
  LabelBoundaryMode mode{ LabelBoundaryMode::Thick };
  int               connectivity{ 1 };
  std::vector<int>  axes{ 0, 1, 2 };

  std::string
  GetName() const override
  {
    return "labelboundary";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;
};

} // namespace chunkwise

#endif
