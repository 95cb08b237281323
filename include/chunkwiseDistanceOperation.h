/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDistanceOperation_h
#define chunkwiseDistanceOperation_h

#include "chunkwiseOperation.h"
#include "chunkwisePixelValue.h"

#include <limits>
#include <vector>

namespace chunkwise
{

/** The voxels that distances lead to: the features. */
enum class DistanceTo
{
  Background, ///< voxels that have the background's value
  Objects,    ///< all others; NaN is an object
  Contour,    ///< objects that share a face, an edge or a corner with the background: distances have a sign
  Others      ///< voxels of another value than the voxel's own; voxels of the background have the distance 0
};

/** The result written for a voxel. */
enum class DistanceResult
{
  Root,    ///< the distance
  Squared, ///< its square
  Within,  ///< `foreground` if it is no larger than the limit, else 0
  Beyond,  ///< `foreground` if it is larger than the limit, else 0
  Index,   ///< the raster index of the nearest feature in the image
  Label    ///< the nearest feature's value if the distance is no larger than the limit, else the background
};

/** In which numbers squared distances are computed; all give the same results where they can. */
enum class DistanceNumber
{
  Int32, ///< squares of voxels, where those of the image's diagonal fit
  Int64, ///< squares of voxels
  Double ///< squares of lengths, where spacings differ
};

/** The layout of one side of what chunks know of each other: for each position of the axes that are not spatial, and
 * each column along the scan axis, the position of a feature along that axis, or -1; behind these, for labels, the
 * bits of the features' values. */
struct DistancePlanes
{
  std::int64_t columns{ 0 }; ///< positions of the other axes: those of one volume, x fastest, times volumes
  bool         hasValues{ false };

  std::size_t
  SideBytes() const
  {
    const auto n = static_cast<std::size_t>(columns);
    return (n * sizeof(std::int32_t) + 7) / 8 * 8 + (hasValues ? n * sizeof(std::uint64_t) : 0);
  }
  std::size_t
  ValuesOffset() const
  {
    return (static_cast<std::size_t>(columns) * sizeof(std::int32_t) + 7) / 8 * 8;
  }
};

/** Features of the side `from` replace those of the side `known`. */
void
ReplaceFeatures(unsigned char * known, const unsigned char * from, const DistancePlanes & planes);

/** Exact Euclidean distances to the nearest feature, along up to three axes.
 *
 * The squared distance is the minimum over all features of (dz sz)^2 + (dy sy)^2 + (dx sx)^2, where z is the slowest of
 * the axes. If all spacings are equal it is a whole number of squared voxels, times the squared spacing; else it is
 * summed in double in this order, each product and sum rounded. Roots are rounded correctly. Rounding is monotonic, so
 * the minimum is the same in whatever order features are compared, and results have the same bits for all chunks,
 * threads and backends. If several features have the same distance, the one with the lowest raster index counts as the
 * nearest. Without a feature distances are infinite (the largest number of an integer type), and the index is -1 (the
 * largest number of an unsigned type).
 *
 * Two passes over chunks, which hold all axes whole but the slowest. A chunk's summary has the first and the last
 * feature of each column along that axis. Solve finds for each chunk the nearest features before and after it. Then
 * distances along the slowest axis are known in every chunk, and the rest lies inside slices.
 *
 * Source: minima of parabolas along one axis after the other (T. Saito, J. Toriwaki, "New algorithms for Euclidean
 * distance transformation of an n-dimensional digitized picture", Pattern Recognition 27(11), 1994; P. Felzenszwalb, D.
 * Huttenlocher, "Distance transforms of sampled functions", Theory of Computing 8, 2012). */
class Chunkwise_EXPORT DistanceOperation : public Operation
{
public:
  /** The extent and the kinds of the images, and the axes along which distances are taken: up to three, ascending. */
  Coordinates      image{};
  PixelType        inputKind{ PixelType::UInt8 };
  PixelType        outputKind{ PixelType::Float32 };
  std::vector<int> axes{ 0, 1, 2 };
  /** Lengths of voxels along each axis of the image, above 0. */
  double         spacing[MaxDimension]{ 1, 1, 1, 1, 1 };
  DistanceTo     to{ DistanceTo::Background };
  DistanceResult result{ DistanceResult::Root };
  /** The value of voxels that are no object. */
  PixelValue background{ 0 };
  /** The largest distance: voxels beyond it have this one, or are as DistanceResult says. */
  double limit{ std::numeric_limits<double>::infinity() };
  /** DistanceTo::Contour: the sign inside of objects. */
  bool insideIsPositive{ false };
  /** For Within and Beyond. */
  PixelValue foreground{ 1 };
  /** The nearest features before and after the region, if it is a part of the image along the scan axis: the two sides
   * of a solution; nullptr: there is nothing beyond the region. */
  std::shared_ptr<const ChunkState> outside;
  /** Another text for each `outside`. */
  std::string outsideKey;

  /** Fewest slices of a chunk along the scan axis, so that summaries of all chunks are small beside the image. */
  static constexpr std::int64_t LeastSlices = 16;
  /** Squares of longer axes would not fit 64 bits. */
  static constexpr std::int64_t LongestAxis = std::int64_t{ 1 } << 29;
  /** Squared distances of Int32 and Int64 are below these, which stand for none. */
  static constexpr std::int32_t None32 = std::int32_t{ 1 } << 30;
  static constexpr std::int64_t None64 = std::int64_t{ 1 } << 62;

  /** The slowest of the axes with more than one voxel. */
  int
  GetScanAxis() const;
  /** The other axes, the fastest first; -1: there is none. */
  int
  GetSliceAxis(int number) const;
  /** Whether distances are taken along it. */
  bool
  IsAlong(int axis) const;
  DistanceNumber
  GetNumber() const;
  /** The length of a voxel, the same along all axes (Int32 and Int64). */
  double
  GetUnit() const;
  /** The largest squared distance within the image, in units of squared voxels. */
  std::int64_t
  GetLargestSquare() const;
  /** Squared distances of this number and more are beyond the limit, or of no feature: in squared voxels, or as
   * doubles. */
  std::int64_t
  GetBeyond() const;
  double
  GetBeyondAsDouble() const;
  /** The knowledge of each other that chunks of these boxes need. */
  DistancePlanes
  GetPlanes(const Box & box) const;
  /** Whether the nearest feature is kept, not its distance alone. */
  bool
  KeepsNearest() const
  {
    return result == DistanceResult::Index || result == DistanceResult::Label;
  }

  std::string
  GetName() const override
  {
    return "distance";
  }
  std::string
  GetKey() const override;
  Schedule
  GetSchedule() const override
  {
    return Schedule::TwoPass;
  }
  Halo
  GetHalo(const Coordinates &) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & extent) const override;
  Coordinates
  RoundChunk(const Coordinates & extent) const override;
  bool
  RunsAlone(const Box & region, PixelType output) const override;
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  std::vector<ChunkState>
  Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const override;
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override;
};

} // namespace chunkwise

#endif
