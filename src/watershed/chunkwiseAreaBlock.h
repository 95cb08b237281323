/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseAreaBlock_h
#define chunkwiseAreaBlock_h

#include "chunkwiseAreaForest.h"
#include "chunkwiseAreaOperation.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseMarkerForest.h"

#include <functional>
#include <utility>

namespace chunkwise
{

/** Calls a function for each index, by all threads, with progress between; see Executor. */
using AreaLoop = std::function<void(std::int64_t count, const std::function<void(std::int64_t, unsigned int)> & body)>;

/** A forest of the voxels of a plane, where blocks meet. */
struct AreaPlane
{
  std::vector<AreaNode>      nodes; ///< their `border` is a voxel of the plane
  std::vector<AreaMark>      marks; ///< of nodes, if they have marks
  std::vector<std::uint32_t> ofVoxels;
};

/** A block of an image, whole planes of its slowest axis, in tiles. Keys are ordinals of voxels, for closings those of
 * the reversed order. */
class AreaBlock
{
public:
  /** The room for blocks of an image; `axis`: the slowest one. */
  AreaBlock(const AreaOperation & operation, int axis, unsigned int concurrency);

  /** The most bytes of host memory for a block of so many planes, without trees of planes before it. */
  static std::uint64_t
  GetMostBytes(const AreaOperation & operation, int axis, std::int64_t planes, unsigned int concurrency);

  /** Begins with another block. Returns the room for its voxels. */
  BufferView
  Begin(const Box & box);
  /** Before Build: leaves out the voxels of a part of the block where a mask is 0. */
  void
  LeaveOut(const Box & part, const BufferView & mask);
  /** Builds the trees of all tiles. */
  void
  Build(const AreaLoop & loop);
  /** Joins them with the tree of the last plane before, if there is one (`before`). Voxels of the first, and of the
   * last plane may have other neighbors beyond the block: they are the border of the tree that Join makes. */
  void
  Join(const AreaPlane * before, bool first, bool last, const AreaLoop & loop);

  /** The knowledge about a vertex after Join: the key of its result, or of the result at most, which is then the result
   * of a voxel of the border if that is less. */
  struct Code
  {
    std::uint64_t key;
    std::uint64_t border; ///< the voxel of the first plane, or the voxel of the last one plus the voxels of a plane
  };
  static constexpr std::uint64_t NoBorder = ~std::uint64_t{ 0 };
  Code
  CodeOf(std::uint32_t vertex);
  /** The vertex of a voxel of the first or last plane, or of that before. None: NaN. */
  std::uint32_t
  VertexOf(bool last, std::int64_t voxel) const;
  std::uint32_t
  VertexBefore(std::int64_t voxel) const
  {
    return m_Before->ofVoxels[static_cast<std::size_t>(voxel)];
  }
  /** After Join: the markers of all components that do not reach the last plane. */
  const std::vector<std::uint64_t> &
  GetMarkers() const
  {
    return m_Markers;
  }
  /** The tree of the last plane, after Join. */
  AreaPlane
  TakeLastPlane();

  /** Turns the block's voxels into results. `border`: keys of the results of the first plane's voxels, then of the last
   * one's. */
  void
  Finish(const std::vector<std::uint64_t> & border, const AreaLoop & loop);

private:
  using Index = std::size_t;
  /** Entries of m_NodesOf for voxels that have their result, as keys, or stay as they are. */
  static constexpr std::uint32_t Done = ~std::uint32_t{ 0 };
  static constexpr std::uint32_t Raw = Done - 1;

  struct Scratch
  {
    std::vector<std::uint32_t>                           links;
    std::vector<std::uint32_t>                           order;
    std::vector<std::uint32_t>                           spare;
    std::vector<unsigned char>                           keys;
    std::vector<AreaNode>                                nodes;
    std::vector<std::uint64_t>                           areas;
    std::vector<AreaMark>                                marks;
    std::vector<AreaMark>                                nodeMarks;
    std::vector<std::uint64_t>                           markers;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
  };
  struct Tile;
  struct Edges;

  template <typename TKey>
  void
  BuildTile(Index tile, Scratch & scratch);
  /** Fills keys, links and the first places of the order; gives their number. */
  template <typename TKey>
  Index
  LoadTile(const Tile & tile, Scratch & scratch) const;
  template <typename TKey>
  void
  MarkTile(const Tile & tile, Scratch & scratch) const;
  template <typename TKey, typename TForest>
  void
  StoreTile(const Tile & tile, const Scratch & scratch, TForest & forest);

  void
  FindPairs(Index tile, Scratch & scratch);
  void
  AddVertices(const std::vector<AreaNode> & nodes, const std::vector<AreaMark> & marks, Index base);
  template <typename TBody>
  void
  ForEdges(TBody && body) const;
  std::vector<std::uint32_t>
  FindBorders(bool first, bool last) const;
  void
  GrowJoined(const Edges & edges, const std::vector<std::uint32_t> & borders);
  template <typename TBody>
  void
  ForRows(const Box & box, TBody && body) const;
  Box
  BoxOf(Index tile) const;
  Index
  TileOf(const Coordinates & at) const;
  std::int64_t
  OffsetOf(const Coordinates & at) const;
  std::uint32_t
  VertexAt(std::int64_t offset, Index tile) const
  {
    const std::uint32_t node = m_NodesOf[Index(offset)];
    return node >= Raw ? AreaNode::None : m_Bases[tile] + node;
  }

  const AreaOperation &    m_Operation;
  const int                m_Axis;
  std::vector<Coordinates> m_Preceding; ///< offsets of neighbors that come before in raster order
  std::uint64_t            m_Mask;      ///< turns ordinals into keys
  std::uint64_t            m_Closed;    ///< numbers of voxels from this on: the component is closed
  std::int64_t             m_Plane;     ///< voxels
  Coordinates              m_Stride{};
  Coordinates              m_TileExtent{};
  Coordinates              m_Tiles{}; ///< along each axis
  Box                      m_Box{};
  Index                    m_NumberOfTiles{ 0 };

  std::vector<unsigned char>                                        m_Voxels;
  std::vector<std::uint32_t>                                        m_NodesOf;
  std::vector<Scratch>                                              m_Scratch;
  std::vector<std::vector<AreaNode>>                                m_Trees;
  std::vector<std::vector<AreaMark>>                                m_TreeMarks;
  std::vector<std::vector<std::uint64_t>>                           m_TileMarkers;
  std::vector<std::uint32_t>                                        m_Bases;
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>> m_Pairs;
  // The join: vertices are the nodes before, then those of all tiles.
  const AreaPlane *          m_Before{ nullptr };
  std::vector<std::uint64_t> m_Keys;
  std::vector<std::uint64_t> m_Areas;
  std::vector<std::uint32_t> m_Links;
  std::vector<AreaNode>      m_Nodes;
  std::vector<AreaMark>      m_Marks;
  std::vector<AreaMark>      m_NodeMarks;
  std::vector<std::uint64_t> m_Markers;
};

} // namespace chunkwise

#endif
