/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSizedWatershed_h
#define chunkwiseSizedWatershed_h

#include "chunkwiseAreaOperation.h"
#include "chunkwiseWatershedOperation.h"

namespace chunkwise
{

/** Watershed of the minima whose basins have a size: a minimum counts if its basin has so many voxels, or such a
 * volume, before it spills over into another one that does.
 *
 * For each level the voxels up to it form components. The least components that have the size are markers: those with
 * no such component within them. Their labels are 1, 2, ... in the raster order of their first voxels. A component's
 * volume is the sum of the differences between its values and the least value beside it. A component of the whole image
 * is large enough, whatever it has. The rest is the watershed of these markers (WatershedOperation).
 *
 * A device that has room for the image computes all of it (chunkwiseWatershedBasins.h). Elsewhere a runner finds the
 * markers in blocks (chunkwiseMarkerForest.h), and then runs the watershed; one voxel stands for a marker, because the
 * forest joins all of its voxels before any other. */
class Chunkwise_EXPORT SizedWatershedOperation : public Operation
{
public:
  /** Without markers and height. */
  WatershedOperation watershed;
  /** In voxels, or in the number of differences of values; see AreaOperation. */
  std::uint64_t size{ 2 };
  bool          byVolume{ false };
  double        unit{ 1 };
  /** Voxels of a tile, about, and of a block at most; tests set them. */
  std::int64_t tileVoxels{ AreaOperation().tileVoxels };
  std::int64_t blockVoxels{ AreaOperation().blockVoxels };

  /** Markers of this image and mask. */
  std::shared_ptr<AreaOperation>
  MakeMarkerOperation() const;

  std::string
  GetName() const override
  {
    return "watershed by size";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & extent) const override;
  int
  GetNumberOfInputs() const override
  {
    return watershed.GetNumberOfInputs();
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    watershed.CheckKinds(inputs, output);
  }
  void
  Validate(const Coordinates & extent) const override;
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override;
  bool
  IsRunByRunner() const override
  {
    return true;
  }
};

} // namespace chunkwise

#endif
