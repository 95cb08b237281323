/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseAreaOperation_h
#define chunkwiseAreaOperation_h

#include "chunkwiseOperation.h"

#include <array>
#include <vector>

namespace chunkwise
{

/** The size of a component of the voxels from a level on. It never falls with the level. */
enum class AreaAttribute
{
  Area,   ///< the number of its voxels
  Extent, ///< the sides of its bounding box
  Height, ///< from its largest value down to the largest value beside it
  Volume  ///< the sum over its voxels of the same differences
};

/** Area opening: bright components that are smaller than a size are lowered. Area closing: dark ones are raised.
 *
 * The opening at a voxel is the highest level t, at most the voxel's value, at which the component of voxels from t on
 * that has the voxel is as large as `size` or larger; the least value that paths from the voxel reach if there is none.
 * Levels are values of the image. The closing is the same with the order of values reversed. NaN has no neighbors and
 * stays. Results are values of the input, so every division and every number of threads gives the same bits.
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
  int           connectivity{ 1 };
  AreaAttribute attribute{ AreaAttribute::Area };
  /** In voxels; of a height of integers, in their unit; of a volume in units. */
  std::uint64_t size{ 1 };
  /** The height of floating-point numbers. */
  double height{ 0 };
  /** A component is large by its extent if it has so many voxels along the first, the second or the third of `axes`.
   */
  std::array<std::uint64_t, MaxSpatialAxes> extents{ { 1, 1, 1 } };
  /** Volumes of floating-point numbers are counted in units, values rounded down to these. */
  double unit{ 1 };
  bool   closing{ false };
  /** Finds, in place of results, the first voxels of the least components that are large enough, each in the raster
   * order of the image (FindAreaMarkers); with a mask they are those of the voxels where the last input is not 0. -0
   * equals 0. */
  bool findsMarkers{ false };
  bool hasMask{ false };
  /** Voxels of a tile, about, and of a block at most; tests set them. */
  std::int64_t tileVoxels{ std::int64_t{ 1 } << 16 };
  std::int64_t blockVoxels{ std::int64_t{ 1 } << 31 };

  /** Components have marks beside their number of voxels (AreaMark). */
  bool
  HasMarks() const
  {
    return findsMarkers || attribute != AreaAttribute::Area;
  }

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

/** Images have fewer voxels along an axis if components are measured by their extent. */
constexpr std::int64_t MostVoxelsOfExtent = std::int64_t{ 1 } << 21;

/** The least number of parts, all as large as `ofPart`, that together have a size. */
std::uint64_t
PartsOfSize(double size, double ofPart);

/** A volume of voxels of a size: the number of its units, and the unit, in which it has 2^39 or more of
 * floating-point numbers; a voxel's value is rounded by less than so small a part of the volume. */
std::uint64_t
UnitsOfVolume(double volume, double ofVoxel, PixelType kind, double & unit);

} // namespace chunkwise

#endif
