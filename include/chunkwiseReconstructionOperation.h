/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseReconstructionOperation_h
#define chunkwiseReconstructionOperation_h

#include "chunkwiseOperation.h"
#include "chunkwisePixelValue.h"

#include <optional>

namespace chunkwise
{

/** The source of a reconstruction's marker. A marker that follows from the mask alone is made on the device that has
 * the mask, so that only the mask travels. For a reconstruction by erosion "below" means above. */
enum class ReconstructionMarker
{
  Image,     ///< the first input; the mask is the second
  Shifted,   ///< the mask less a height, as far as its kind reaches
  Border,    ///< the mask at the image's edge, nothing elsewhere; a voxel without neighbors is at the edge
  NextBelow, ///< the next number below the mask that its kind has
  Agreeing   ///< the mask, the third input, where the first equals the second, and nothing elsewhere
};

/** The result of a reconstruction. */
enum class ReconstructionResult
{
  Reconstruction,
  Residue, ///< what the mask has beyond the reconstruction, at least 0, as far as its kind reaches
  Extrema  ///< one value where the mask is beyond the reconstruction, another elsewhere
};

/** How a device finds a reconstruction; the result is the same. */
enum class ReconstructionMethod
{
  Auto,           ///< a forest where the image fits the device whole with one, or else a wavefront
  TileWavefront,  ///< tiles swept in shared memory, first the tiles that the largest values can enter
  SpanningForest, ///< the basins of the mask, then edges of greatest capacity between them, in a few rounds wherever
                  ///< they lead; 64-bit voxels go by wavefront
  ParallelHeapCluster ///< heaps of raised voxels, each with separate tiles, that let the largest values flow first
};

/** Morphological reconstruction by dilation, or erosion, of a marker under, or over, a mask. Kernel "reconstruction".
 *
 * By dilation, a voxel gets the largest value that a path of neighbors brings from the marker; each voxel of the path
 * lets through no more than the mask has there. The result is unique and each value is one of the voxels', so that it
 * has the same bits on every backend and for every division into chunks. By erosion the order is reversed.
 *
 * Numbers are compared as they are, without tolerance; -0 counts, and is given, as +0. A marker beyond the mask is cut
 * there. A NaN in the mask lets nothing through and stays NaN; a NaN in the marker is no marker, and where nothing else
 * arrives the result is NaN. The image's edge lets nothing through.
 *
 * Source: L. Vincent, "Morphological grayscale reconstruction in image analysis", IEEE Trans. Image Processing 2(2),
 * 1993. */
class Chunkwise_EXPORT ReconstructionOperation : public Operation
{
public:
  bool erosion{ false };
  /** Neighbors share a face, or else a face, an edge or a corner. */
  bool fullyConnected{ false };
  /** Voxels have neighbors along this many axes, from the first on; the other axes are independent. */
  int                  spatialDimension{ MaxSpatialAxes };
  ReconstructionMarker marker{ ReconstructionMarker::Image };
  /** The height of a Shifted marker, converted to the mask's kind. */
  PixelValue           height{ 0 };
  ReconstructionMethod method{ ReconstructionMethod::Auto };
  ReconstructionResult result{ ReconstructionResult::Reconstruction };
  /** The result Extrema: values inside and elsewhere, converted to the mask's kind. */
  PixelValue extremum{ 1 };
  PixelValue elsewhere{ 0 };
  /** Extrema of a NextBelow marker: whether an image of one value is an extremum, or each of several volumes. */
  bool flatIsExtremum{ true };
  /** ParallelHeapCluster: heaps, at most as many as the device runs blocks of threads at once, and voxels of a
   * heap's node, up to MaxNodeItems; 0: chosen. For tests and tuning; the result is the same. */
  std::int64_t                  heaps{ 0 };
  std::int64_t                  nodeItems{ 0 };
  static constexpr std::int64_t MaxNodeItems = 256;
  /** Voxels of the parts that the CPU's threads take, 0: chosen. For tests and tuning; the result is the same. */
  std::int64_t partVoxels{ 0 };
  /** An image in chunks: how long visits to where chunks meet may take before the host brings values over long ways,
   * in the time that the host takes for it. For tests and tuning; the result is the same. */
  double patience{ 1 };

  std::string
  GetName() const override
  {
    return "reconstruction";
  }
  std::string
  GetKey() const override;
  Schedule
  GetSchedule() const override
  {
    return Schedule::Fixpoint;
  }
  double
  GetPatience() const override
  {
    return patience;
  }
  Halo
  GetHalo(const Coordinates & image) const override;
  int
  GetNumberOfInputs() const override
  {
    return marker == ReconstructionMarker::Image ? 2 : marker == ReconstructionMarker::Agreeing ? 3 : 1;
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;
  /** A forest first, then wavefronts from where parts meet. None for Extrema, which need a look at the whole image. */
  std::vector<std::shared_ptr<const Operation>>
  AsSteps(PixelType input, PixelType output) const override;
  /** Reconstruction in slabs. */
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override;
};

/** A voxel of the marker that lies beyond the mask, and the values there. */
struct MarkerBeyondMask
{
  Coordinates index;
  std::string marker;
  std::string mask;
};

/** The first voxel of `region` whose marker is above the mask, by erosion below it; none where all are within. Both
 * views are of one kind. */
Chunkwise_EXPORT std::optional<MarkerBeyondMask>
FindMarkerBeyondMask(bool erosion, const BufferView & marker, const BufferView & mask, const Box & region);

} // namespace chunkwise

#endif
