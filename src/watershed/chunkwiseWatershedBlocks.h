/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedBlocks_h
#define chunkwiseWatershedBlocks_h

#include "chunkwiseExecutor.h"
#include "chunkwiseSpool.h"
#include "chunkwiseWatershedSummary.h"

namespace chunkwise
{

/** Joins the blocks of an image, whole planes of its slowest axis, which come in ascending order.
 *
 * After each block it keeps the forest of all blocks so far, reduced to the block's last plane: the least edges that
 * join the trees of this plane's voxels, as a summary has them. The voxels of both planes where two blocks meet have a
 * tree, a marker or a minimum by then; the spool keeps it. After the last block the labels follow, from the last block
 * to the first. */
class WatershedBlocks
{
public:
  /** `axis`: the slowest one. `mostMinima`: how many hidden minima are kept, which are least voxels of trees that reach
   * a face; 0: all. */
  WatershedBlocks(const WatershedOperation & operation, int axis, std::vector<Box> blocks, std::uint64_t mostMinima,
                  const std::string & spoolFolder);

  /** The bytes of host memory at a time, with two summaries of a block, for any division into blocks. */
  static std::uint64_t
  GetBytes(const WatershedOperation & operation, int axis);

  /** Adds the next block. The summary is that of an operation with `isBlock`. */
  void
  Add(SideData && summary, Executor & executor);
  /** Without markers: the hidden minima so far. */
  std::uint64_t
  GetNumberOfHidden() const
  {
    return m_NumberOfHidden;
  }
  /** After all blocks, with at most `mostMinima` hidden minima: finds the labels of all voxels where blocks meet.
   * Throws Error if there are more minima than the output's kind has labels. */
  void
  Solve();
  std::shared_ptr<const WatershedOutside>
  GetOutside(std::size_t block) const;
  std::uint64_t
  GetBytesWritten() const
  {
    return m_Spool.GetBytesWritten();
  }

private:
  using Index = std::size_t;

  /** The tree of a voxel where two blocks meet. */
  struct Code
  {
    /** The voxel of the block's last plane whose tree it is, the marker's label, or the minimum's first voxel in the
     * raster order of the image. */
    std::uint64_t value;
    /** OfPlane: a voxel of the last plane; without markers: NoTree, or how many minima precede the minimum, without the
     * hidden ones. */
    std::uint64_t own;
  };
  static constexpr std::uint64_t OfPlane = ~std::uint64_t{ 0 };
  static constexpr std::uint64_t NoTree = OfPlane - 1;

  /** An edge of the step: an edge of the forest so far, of the block, or between both. Ordered by `a`, which is the
   * larger value, and the smaller one if both have room, then by `b`, the first voxel, then by all else. With markers
   * `a` and `b` become the trees that the edge can join (OpenTrees) when all are in order. */
  struct Entry
  {
    std::uint64_t a;
    std::uint64_t b;
    std::uint64_t edge;
  };
  /** A forest of the voxels of a plane. Values are ordinals. */
  struct Forest
  {
    std::vector<WatershedNode> nodes;
    std::vector<WatershedEdge> edges;
  };

  class Step;
  friend class Step;

  /** The place in the spool of the last plane of the block before, and the first plane of the block. */
  std::uint64_t
  PlaceOf(std::size_t block) const
  {
    return (block - 1) * 2 * static_cast<std::uint64_t>(m_Plane) * sizeof(Code);
  }
  std::uint64_t
  LabelOf(const Code & code, const std::vector<std::uint64_t> & plane) const;
  void
  SolvePlanes(std::size_t block, std::vector<std::uint64_t> & last);
  /** Notes a hidden minimum. */
  void
  AddHidden(std::int64_t raster);
  /** Calls f(voxel of the last plane of a block, voxel of the first plane of the next one, number of the edge) for all
   * neighbors of voxels of the last plane from `begin` to `end`, in the order of edges of the same values. */
  template <typename TFunctor>
  void
  ForPairs(std::int64_t begin, std::int64_t end, TFunctor && f) const;

  const WatershedOperation   m_Operation;
  const int                  m_Axis;
  const std::vector<Box>     m_Blocks;
  const std::uint64_t        m_MostMinima;
  std::int64_t               m_Plane{ 0 }; ///< voxels of a plane; 0: they have no neighbors in other planes
  std::vector<Coordinates>   m_Offsets;    ///< of the neighbors in the next plane, and the same within the plane
  std::vector<std::int64_t>  m_Deltas;
  mutable Spool              m_Spool;
  Forest                     m_Forest;
  std::vector<std::uint64_t> m_Before{ 0 }; ///< minima before each block, without hidden ones
  std::vector<std::int64_t>  m_Hidden;      ///< after Solve ascending
  std::uint64_t              m_NumberOfHidden{ 0 };
};

} // namespace chunkwise

#endif
