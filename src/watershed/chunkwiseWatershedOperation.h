/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedOperation_h
#define chunkwiseWatershedOperation_h

#include "chunkwiseOperation.h"
#include "chunkwisePixelValue.h"

#include <memory>
#include <vector>

namespace chunkwise
{

/** Results of other blocks for a block of whole planes of the slowest axis. */
struct WatershedOutside
{
  /** The label of each voxel on the block's faces to other blocks (WatershedBorder). */
  std::vector<std::uint64_t> labels;
  /** With `lines`: 1 for voxels of these that have a neighbor of a smaller label in another block. */
  std::vector<unsigned char> lines;
  /** Without markers: the number of minima in the blocks before, and the minima of this block that its faces hide, as
   * ascending indices in the raster order of the image. */
  std::uint64_t             before{ 0 };
  std::vector<std::int64_t> starts;
};

/** Minima count whose basins have a size, see SizedWatershedOperation. For the kernel of a device, which has the whole
 * image. */
struct WatershedSizes
{
  std::uint64_t size{ 1 };
  bool          byVolume{ false };
  double        unit{ 1 };
  /** The kernel computes nothing if there are more regional minima than this, or than its scratch has room for. */
  std::uint64_t mostMinima{ ~std::uint64_t{ 0 } };
  bool          hasTooManyMinima{ false }; ///< the kernel's answer
};

/** Watershed: every voxel gets the label of the marker, or of the minimum, to which a minimum spanning forest joins it.
 *
 * Voxels that are neighbors are joined by an edge. Edges are ordered by the larger value of both voxels, then by the
 * smaller value, then by the voxel that comes first in raster order, then by the second voxel. No two edges are equal,
 * so there is one forest of least edges in which each tree has the voxels of one marker, and any algorithm that finds
 * it gives the same labels: for every division into chunks, every number of threads and every backend. A region is
 * processed as a separate image.
 *
 * Without markers there is one for each regional minimum, numbered 1, 2, ... in the raster order of the minima's first
 * voxels. With a height h, minima from which a path leads to a lower one without rising by h are none.
 *
 * Voxels outside the mask, and NaN, have no edges and the label 0; so has what no path joins to a marker. -0 is 0.
 *
 * Two passes over chunks. The first finds the forest of each chunk, in which every voxel on a face to another chunk is
 * a separate root, and keeps the edges that join these roots. Solve adds the edges between chunks, and finds the
 * labels of the roots. The second pass finds the chunk's forest again, and writes the labels of the roots. A region of
 * one chunk takes one pass.
 *
 * Source: J. Cousty, G. Bertrand, L. Najman, M. Couprie, "Watershed cuts: minimum spanning forests and the drop of
 * water principle", IEEE Trans. Pattern Analysis and Machine Intelligence 31(8), 2009. */
class Chunkwise_EXPORT WatershedOperation : public Operation
{
public:
  /** The extent and the kinds of the images, and the axes along which voxels have neighbors: up to three, in ascending
   * order. */
  Coordinates      image{};
  PixelType        inputKind{ PixelType::UInt8 };
  PixelType        outputKind{ PixelType::UInt32 };
  std::vector<int> axes{ 0, 1, 2 };
  /** Neighbors share a face (1), also an edge (2), also a corner (3). */
  int connectivity{ 1 };
  /** The second input has the markers: integers, 0 where there is none. Without it minima are the markers. */
  bool hasMarkers{ false };
  /** The last input is 0 outside the mask. */
  bool hasMask{ false };
  /** A voxel with a neighbor of a smaller label, other than 0, becomes 0. */
  bool lines{ false };
  /** Without markers: by how much a minimum must lie below every path to a lower one; 0: by any difference. */
  PixelValue height{ 0 };
  /** The region is a block of whole planes of the slowest axis, in one chunk, whose faces lead to other blocks. */
  bool isBlock{ false };
  /** The numbers of a block's summary have 32 bits: pixels and labels have no more, nor has the block more voxels. */
  bool isSmallBlock{ false };
  /** A block whose labels are computed gets the results of other blocks. */
  std::shared_ptr<const WatershedOutside> outside;
  /** Without markers and height, for devices: the region is the image, in one chunk. */
  std::shared_ptr<WatershedSizes> sizes;

  /** The offsets of neighbors, in raster order. */
  std::vector<Coordinates>
  GetOffsets() const;
  /** An index in the raster order of the image. */
  std::int64_t
  RasterIndex(const Coordinates & index) const;

  std::string
  GetName() const override
  {
    return "watershed";
  }
  std::string
  GetKey() const override;
  Schedule
  GetSchedule() const override
  {
    return Schedule::TwoPass;
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  int
  GetNumberOfInputs() const override
  {
    return 1 + (hasMarkers ? 1 : 0) + (hasMask ? 1 : 0);
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & extent) const override;
  bool
  RunsAlone(const Box &, PixelType) const override
  {
    return true;
  }
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  /** Throws Error if there are more minima than the output's kind has labels. */
  std::vector<ChunkState>
  Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const override;
  /** From file to file, for images that do not fit the memory. */
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override;
};

/** Labels from 1 to this one have a pixel of the kind. */
Chunkwise_EXPORT std::uint64_t
                 GetLargestLabel(PixelType kind);

/** Throws Error: the kind has no such label. */
[[noreturn]] Chunkwise_EXPORT void
ThrowWrongMarker(const std::string & label, PixelType kind);

/** Throws Error that names the number and the kind if the labels 1 to `count` are too many for it. */
Chunkwise_EXPORT void
CheckNumberOfBasins(std::uint64_t count, PixelType kind);

} // namespace chunkwise

#endif
