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

/** An edge of the forest between two trees of a block, in numbers of 32 or 64 bits. Edges are ordered by `high`, `low`
 * and `place`. */
template <typename TNumber>
struct WatershedBlockEdge
{
  /** The lowest bits of `place`. Closes: `b` is the label of a marker, or how many minima of the block precede the
   * minimum that the edge leads to. IsHidden: `b` is the number of a minimum that the faces of blocks hide. IsKept: a
   * mark for whoever sorts edges out. */
  static constexpr std::uint64_t Closes = 1;
  static constexpr std::uint64_t IsHidden = 2;
  static constexpr std::uint64_t IsKept = 4;
  static constexpr int           FlagBits = 3;
  static constexpr int           NeighborBits = 4;

  /** Both values: first those of both voxels in their order, and, when ordinals have taken their place, the larger one
   * first. */
  TNumber high;
  TNumber low;
  /** The first voxel, as an index in the raster order of the image, which of the neighbors behind it the second voxel
   * is, and flags. */
  std::uint64_t place;
  TNumber       a;
  TNumber       b;
};

/** The arrays of a block's summary: the numbers of WatershedNode and WatershedEdge in no more bits than the block
 * needs.
 */
struct WatershedBlockArrays
{
  bool            isSmall{ false }; ///< numbers have 32 bits
  void *          values{ nullptr };
  void *          labels{ nullptr };
  void *          lowValues{ nullptr }; ///< without markers
  std::int64_t *  lows{ nullptr };      ///< without markers; -1: the voxel is outside the mask
  unsigned char * isThere{ nullptr };   ///< with markers
  void *          edges{ nullptr };

  CHUNKWISE_HOST_DEVICE void
  Store(void * array, std::int64_t i, std::uint64_t number) const
  {
    if (isSmall)
    {
      static_cast<std::uint32_t *>(array)[i] = static_cast<std::uint32_t>(number);
    }
    else
    {
      static_cast<std::uint64_t *>(array)[i] = number;
    }
  }
  CHUNKWISE_HOST_DEVICE void
  StoreNode(std::int64_t i, const WatershedNode & node) const
  {
    this->Store(values, i, node.value);
    this->Store(labels, i, node.label);
    if (isThere)
    {
      isThere[i] = node.low >= 0 ? 1 : 0;
    }
    else
    {
      this->Store(lowValues, i, node.lowValue);
      lows[i] = node.low;
    }
  }
  /** `neighbor`: which of the neighbors behind the first voxel the second one is. If `b` is -1 the edge leads to
   * `label`. */
  CHUNKWISE_HOST_DEVICE void
  StoreEdge(std::int64_t i, const WatershedEdge & edge, int neighbor, std::uint64_t label) const
  {
    isSmall ? this->StoreEdgeOf<std::uint32_t>(i, edge, neighbor, label)
            : this->StoreEdgeOf<std::uint64_t>(i, edge, neighbor, label);
  }

private:
  template <typename TNumber>
  CHUNKWISE_HOST_DEVICE void
  StoreEdgeOf(std::int64_t i, const WatershedEdge & edge, int neighbor, std::uint64_t label) const
  {
    using Edge = WatershedBlockEdge<TNumber>;
    const std::uint64_t place = static_cast<std::uint64_t>(edge.first) << Edge::NeighborBits |
                                static_cast<std::uint64_t>(static_cast<unsigned int>(neighbor));
    static_cast<Edge *>(edges)[i] = { static_cast<TNumber>(edge.firstValue),
                                      static_cast<TNumber>(edge.secondValue),
                                      place << Edge::FlagBits | (edge.b < 0 ? Edge::Closes : 0),
                                      static_cast<TNumber>(edge.a),
                                      static_cast<TNumber>(edge.b < 0 ? label : static_cast<std::uint64_t>(edge.b)) };
  }
};

/** Which of the neighbors behind the first voxel of an edge the second one is: the edge leads from one of its voxels to
 * the neighbor `lead` of `count`, in raster order. */
CHUNKWISE_HOST_DEVICE inline int
WatershedNeighborBehind(int lead, int count)
{
  return lead >= count / 2 ? lead - count / 2 : count / 2 - 1 - lead;
}

/** The places of the parts of a chunk's summary and of its solution.
 *
 * The summary of a chunk: the number of edges (64 bits), nodes, edges, and, without markers, the number of minima in
 * each row that belong to no tree of a node (32 bits each). A block has the number of edges, that of such minima (64
 * bits), and the arrays of nodes and edges. The solution: the label of
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
  std::size_t     values{ 0 }; ///< from here on of a block
  std::size_t     nodeLabels{ 0 };
  std::size_t     lowValues{ 0 };
  std::size_t     lows{ 0 };
  std::size_t     isThere{ 0 };
  std::size_t     solutionBytes{ 0 }; ///< without the further minima
  std::size_t     labels;
  std::size_t     lines;
  std::size_t     offsets;
  std::size_t     starts;
};

/** The arrays of a block's summary. */
inline WatershedBlockArrays
MakeWatershedBlockArrays(const WatershedOperation & operation, const WatershedLayout & layout, unsigned char * summary)
{
  WatershedBlockArrays arrays;
  arrays.isSmall = operation.isSmallBlock;
  arrays.values = summary + layout.values;
  arrays.labels = summary + layout.nodeLabels;
  arrays.edges = summary + layout.edges;
  if (operation.hasMarkers)
  {
    arrays.isThere = summary + layout.isThere;
  }
  else
  {
    arrays.lowValues = summary + layout.lowValues;
    arrays.lows = reinterpret_cast<std::int64_t *>(summary + layout.lows);
  }
  return arrays;
}

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
