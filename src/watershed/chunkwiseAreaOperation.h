/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseAreaOperation_h
#define chunkwiseAreaOperation_h

#include "chunkwiseOperation.h"

#include <vector>

namespace chunkwise
{

/** Area opening: bright components that are smaller than a size are lowered. Area closing: dark ones are raised.
 *
 * The opening at a voxel is the highest level t, at most the voxel's value, at which the component of voxels from t on
 * that has the voxel has `size` voxels or more; the least value that paths from the voxel reach if there is none. The
 * closing is the same with the order of values reversed. NaN has no neighbors and stays. Results are values of the
 * input, so every division and every number of threads gives the same bits.
 *
 * A runner computes it in blocks along the slowest axis and in tiles of these (chunkwiseAreaForest.h). A tile reduces
 * its components with voxels on its border to a tree; the trees of a block and of the last plane before it are joined,
 * and reduced to a tree of the block's last plane. After the last block the results of all voxels where blocks meet
 * follow, from the last block to the first. Each block is then computed a second time, with these.
 *
 * Source: L. Vincent, "Morphological area openings and closings for grey-scale images", Shape in Picture, 1992; by
 * union-find as in A. Meijster, M. H. F. Wilkinson, "A comparison of algorithms for connected set openings and
 * closings", IEEE Trans. Pattern Analysis and Machine Intelligence 24(4), 2002. */
class Chunkwise_EXPORT AreaOperation : public Operation
{
public:
  /** The extent and the kinds of the images, and the axes along which voxels have neighbors: up to three, ascending. */
  Coordinates      image{};
  PixelType        inputKind{ PixelType::UInt8 };
  PixelType        outputKind{ PixelType::UInt8 };
  std::vector<int> axes{ 0, 1, 2 };
  /** Neighbors share a face (1), also an edge (2), also a corner (3). */
  int connectivity{ 1 };
  /** In voxels. */
  std::uint64_t size{ 1 };
  bool          closing{ false };
  /** Finds, in place of results, the first voxels of the least components that are large enough, each in the raster
   * order of the image (FindAreaMarkers); with a mask they are those of the voxels where the last input is not 0. -0
   * equals 0. */
  bool findsMarkers{ false };
  bool hasMask{ false };
  /** The size of markers is a volume: the sum of the differences between a component's values and the next
   * level at which it grows. Those of floating-point numbers are counted in units, values rounded down to these. */
  bool   byVolume{ false };
  double unit{ 1 };
  /** Voxels of a tile, about, and of a block at most; tests set them. */
  std::int64_t tileVoxels{ std::int64_t{ 1 } << 16 };
  std::int64_t blockVoxels{ std::int64_t{ 1 } << 31 };

  std::string
  GetName() const override
  {
    return closing ? "area closing" : "area opening";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & extent) const override;
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override;
  bool
  IsRunByRunner() const override
  {
    return true;
  }
  std::string
  GetObjectionToDevices() const override
  {
    return "area openings and closings have no kernels for devices";
  }
};

/** The least number of parts, all as large as `ofPart`, that together have a size. */
std::uint64_t
PartsOfSize(double size, double ofPart);

} // namespace chunkwise

#endif
