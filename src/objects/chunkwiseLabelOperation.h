/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLabelOperation_h
#define chunkwiseLabelOperation_h

#include "chunkwiseLabelNeighbors.h"
#include "chunkwiseOperation.h"
#include "chunkwisePixelValue.h"

#include <vector>

namespace chunkwise
{

/** Which voxels side by side belong to one component. Voxels of the background belong to none. */
enum class LabelRule
{
  Foreground, ///< all
  Equal,      ///< those of equal values
  Within      ///< those whose values differ by no more than a tolerance
};

/** A part of a component that begins elsewhere, by its label in a chunk or block, and its label. */
struct LabelOfPart
{
  std::uint64_t inPart;
  std::uint64_t label;
};

/** The labels of a block of an image that others hold the rest of. */
struct LabelNumbering
{
  /** Labels of components that begin before the block. */
  std::uint64_t before{ 0 };
  /** By the block's own labels, ascending. */
  std::vector<LabelOfPart> parts;
  /** Another one for each numbering of the process. */
  std::string key;
};

/** Connected components: an image of labels 1, 2, ..., N in the raster order of each component's first voxel, x
 * fastest; the background is 0. So the result is unique, and has the same bits on every backend and for every division
 * into chunks. A region is labelled as a separate image.
 *
 * Two passes over chunks. The first labels each chunk by itself and keeps what lies on its faces, and how many
 * components begin in each row. Solve joins components across faces and numbers them. The second labels each chunk
 * again, and writes the numbers. A region of one chunk takes one pass ("label.alone").
 *
 * Source: union-find over runs of voxels (L. He, Y. Chao, K. Suzuki, "A run-based two-scan labeling algorithm", IEEE
 * Trans. Image Processing 17(5), 2008), with a parent that is always the smaller number. */
class Chunkwise_EXPORT LabelOperation : public Operation
{
public:
  /** The extent and the kinds of the images, and the axes along which voxels have neighbors: up to three, in ascending
   * order. */
  Coordinates      image{};
  PixelType        inputKind{ PixelType::UInt8 };
  PixelType        outputKind{ PixelType::UInt32 };
  std::vector<int> axes{ 0, 1, 2 };
  /** The offsets of neighbors: bit (d0 + 1) + 3 (d1 + 1) + 9 (d2 + 1) for an offset of d0, d1, d2 along these axes. A
   * neighbor's neighbor is the voxel: the structure is symmetric. */
  std::uint32_t structure{ 0 };
  LabelRule     rule{ LabelRule::Foreground };
  /** The largest difference that the rule Within allows, 0 or more. */
  PixelValue tolerance{ 0 };
  /** The value of voxels without a label; NaN is no such voxel, whatever its value is. */
  PixelValue background{ 0 };
  /** There is no background: every voxel has a label. */
  bool labelsBackground{ false };
  /** Axes along which the first voxel and the last are neighbors. */
  bool periodic[MaxDimension]{};

  /** The final labels, if the region is a block of a larger image; else nullptr. */
  std::shared_ptr<const LabelNumbering> numbering;
  /** No region has more voxels, and no component a larger label. 0: as many as the image has voxels. */
  std::uint64_t largestNumber{ 0 };
  /** Summaries have the faces along this axis alone. -1: along all axes with neighbors. */
  int faceAxis{ -1 };

  /** The structure of neighbors that share a face (connectivity 1), also an edge (2), also a corner (3), along
   * `dimension` axes. */
  static std::uint32_t
  MakeStructure(int connectivity, int dimension);
  /** Whether the structure is symmetric, and has no neighbors beyond `dimension` axes. */
  static bool
  IsStructure(std::uint32_t structure, int dimension);

  /** The neighbors in the order of kernels. */
  LabelNeighbors
  GetNeighbors() const;
  /** The offsets of the neighbors that precede a voxel in raster order: half of all. */
  std::vector<Coordinates>
  GetOffsets() const;
  /** Whether the rule joins neighbors in the foreground whose values lie at `a` and `b`, at any address. */
  bool
  AreAlike(const void * a, const void * b) const;
  /** Positions and labels take 64 bits: there may be 2^31 of them or more. */
  bool
  IsWide() const;
  /** The largest label that a kind has; of floating-point kinds the last that has all before it. */
  static std::uint64_t
  MostLabels(PixelType kind);

  std::string
  GetName() const override
  {
    return "label";
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
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & extent) const override;
  bool
  RunsAlone(const Box &, PixelType) const override
  {
    return true;
  }
  /** Whether a region may have more components than the output's kind has labels: who finds them counts them. Who made
   * a numbering knows their number. */
  bool
  MayHaveTooMany(const Box & region) const
  {
    return !numbering && static_cast<std::uint64_t>(region.NumberOfVoxels()) > MostLabels(outputKind);
  }
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> & inputs, PixelType output) const override;
  /** Throws Error if there are more components than the output's kind has labels. */
  std::vector<ChunkState>
  Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const override;
  /** The same, and how many components there are. */
  std::vector<ChunkState>
  SolveAndCount(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries,
                std::uint64_t & count) const;
  const OutOfCoreRunner *
  GetOutOfCoreRunner() const override;
};

/** Throws Error that names the number and the kind if the labels 1 to `count` are too many for it. */
void
CheckNumberOfLabels(std::uint64_t count, PixelType kind);

} // namespace chunkwise

#endif
