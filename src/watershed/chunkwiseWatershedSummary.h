/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedSummary_h
#define chunkwiseWatershedSummary_h

#include "chunkwiseWatershedOperation.h"

#include <cstring>
#include <type_traits>

namespace chunkwise
{

/** The voxels of a chunk that have neighbors in other chunks: those on faces which are not the image's. They are
 * numbered slab by slab, the faces of the slowest axis first, and in raster order within a slab. */
struct Chunkwise_EXPORT WatershedBorder
{
  WatershedBorder(const WatershedOperation & operation, const Box & box);

  /** -1: the voxel is none of them. */
  std::int64_t
  IndexOf(const Coordinates & index) const;

  Box          slabs[2 * MaxSpatialAxes]{};
  std::int64_t begins[2 * MaxSpatialAxes]{};
  int          count{ 0 };
  std::int64_t voxels{ 0 };
};

/** A value of any kind in 64 bits. */
template <typename TPixel>
std::uint64_t
PackWatershedValue(TPixel value)
{
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(value));
  return bits;
}
template <typename TPixel>
TPixel
UnpackWatershedValue(std::uint64_t bits)
{
  TPixel value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

/** A voxel of the border, as the root of a tree of the chunk's forest. */
struct WatershedNode
{
  std::uint64_t value;
  /** The label of the marker at the voxel; 0: none. Without markers: how many minima of the chunk precede `low` in its
   * row of the chunk; of a block, in the block. */
  std::uint64_t label;
  /** Without markers: the first of the tree's voxels with its least value, as an index in the raster order of the
   * image, and that value. In any case -1 if the voxel is outside the mask. */
  std::int64_t  low;
  std::uint64_t lowValue;
};

/** An edge of the forest between two trees. */
struct WatershedEdge
{
  /** Its voxels, as indices in the raster order of the image, the first one first, and their values. */
  std::int64_t  first;
  std::int64_t  second;
  std::uint64_t firstValue;
  std::uint64_t secondValue;
  /** Nodes of the border; `b` is -1 if the other tree has a marker or a minimum of the chunk. */
  std::int64_t a;
  std::int64_t b;
  /** The marker's label; or, without markers, the minimum: its first voxel, in the raster order of the image. */
  std::uint64_t label;
  /** Without markers: how many minima of the chunk precede that one in its row of the chunk; of a block, in the block.
   */
  std::uint64_t rank;
};

/** The places of the parts of a chunk's summary and of its solution.
 *
 * The summary: the number of edges (64 bits), nodes, edges, and, without markers, the number of minima in each row that
 * belong to no tree of a node (32 bits each; of a block, their number in all in 64 bits). The solution: the label of
 * each node (64 bits), with `lines` whether the node is a line because of another chunk (8 bits), without markers the
 * labels that precede those of each row (64 bits) and then, as far as the bytes go, further minima of the chunk: trees
 * of nodes, as ascending indices in the raster order of the image. */
struct Chunkwise_EXPORT WatershedLayout
{
  WatershedLayout(const WatershedOperation & operation, const Box & box);

  WatershedBorder border;
  std::int64_t    rows;
  std::size_t     summaryBytes{ 0 };
  std::size_t     nodes;
  std::size_t     edges;
  std::size_t     counts;
  std::size_t     solutionBytes{ 0 }; ///< without the further minima
  std::size_t     labels;
  std::size_t     lines;
  std::size_t     offsets;
  std::size_t     starts;
};

/** Whether positions and numbers of trees, and a bit beside, take 64 bits. */
inline bool
IsWideWatershed(const Box & box)
{
  return box.NumberOfVoxels() >= (std::int64_t{ 1 } << 31) - 8;
}

/** A box of the extent of `box` that has other chunks on both sides along each axis where a chunk can have them, in the
 * image of `operation`, which grows: a kernel's scratch is the same for all chunks of an extent, wherever they lie. */
inline Box
SurroundWatershedChunk(WatershedOperation & operation, Box box)
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t shift = box.Extent(a) < operation.image[a] ? 1 : 0;
    box.lower[a] += shift;
    box.upper[a] += shift;
    operation.image[a] += 2 * shift;
  }
  return box;
}

/** Whether a tree whose least value is `low` is a separate tree at an edge of weight `high`, so that the edge joins it
 * to no other such tree. */
template <typename TPixel>
struct WatershedDepth
{
  static constexpr bool IsReal = static_cast<TPixel>(0.5) != static_cast<TPixel>(0);

  explicit WatershedDepth(const PixelValue & height)
    : real(height.ToDouble())
    , whole(height.As<std::uint64_t>())
  {
    // Integers differ by whole numbers.
    whole += !height.IsInteger() && whole < UINT64_MAX && static_cast<double>(whole) < real ? 1 : 0;
  }

  bool
  IsDeep(TPixel high, TPixel low) const
  {
    if (!(low < high))
    {
      return false;
    }
    if constexpr (IsReal)
    {
      return static_cast<double>(high) - static_cast<double>(low) >= real;
    }
    else
    {
      return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) >= whole;
    }
  }

  double        real;
  std::uint64_t whole;
};

} // namespace chunkwise

#endif
