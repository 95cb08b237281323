/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAreaBlock.h"

#include "chunkwiseError.h"
#include "chunkwiseNeighborOffsets.h"
#include "chunkwiseOrdinal.h"

#include <numeric>

namespace chunkwise
{

namespace
{

/** Voxels that a task turns into keys. */
constexpr std::int64_t AreaTaskVoxels = std::int64_t{ 1 } << 17;

/** Turns voxels into keys, with `oneZero` 0 and -0 into one. NaN stays as it is, and its entry of `nodes` becomes
 * `raw`. */
void
TurnIntoKeys(PixelType kind, std::uint64_t mask, bool oneZero, void * voxels, std::uint32_t * nodes, std::uint32_t raw,
             std::int64_t count)
{
  DispatchPixelType(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    auto * const values = static_cast<Pixel *>(voxels);
    for (std::int64_t i = 0; i < count; ++i)
    {
      if (values[i] == values[i])
      {
        const std::uint64_t key = OrdinalOf(oneZero && values[i] == 0 ? Pixel(0) : values[i]) ^ mask;
        std::memcpy(values + i, &key, sizeof(Pixel));
      }
      else
      {
        nodes[i] = raw;
      }
    }
  });
}
void
TurnIntoVoxels(PixelType kind, std::uint64_t mask, void * keys, const std::uint32_t * nodes, std::uint32_t raw,
               std::int64_t count)
{
  DispatchPixelType(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    auto * const values = static_cast<Pixel *>(keys);
    for (std::int64_t i = 0; i < count; ++i)
    {
      if (nodes[i] != raw)
      {
        std::uint64_t key = 0;
        std::memcpy(&key, values + i, sizeof(Pixel));
        values[i] = FromOrdinal<Pixel>(key ^ mask);
      }
    }
  });
}

/** The extent of tiles of about so many voxels, which is a power of 2 along each axis but where it is the block's. */
Coordinates
ExtentOfTiles(const Coordinates & block, std::int64_t voxels)
{
  Coordinates extent = Coordinates::Filled(1);
  for (std::int64_t count = 1; count < voxels;)
  {
    int shortest = -1;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      // Rows are twice as long as tiles are wide.
      const auto length = [&](int axis) { return axis == 0 ? extent[axis] / 2 : extent[axis]; };
      shortest = extent[a] < block[a] && (shortest < 0 || length(a) <= length(shortest)) ? a : shortest;
    }
    if (shortest < 0)
    {
      break;
    }
    extent[shortest] *= 2;
    count *= 2;
  }
  return extent;
}

bool
IsAlong(const AreaOperation & operation, int axis)
{
  return operation.image[axis] > 1 &&
         std::find(operation.axes.begin(), operation.axes.end(), axis) != operation.axes.end();
}

std::int64_t
PlaneOf(const AreaOperation & operation, int axis)
{
  return Box::FromExtent(operation.image).NumberOfVoxels() / std::max<std::int64_t>(1, operation.image[axis]);
}

} // namespace

AreaBlock::AreaBlock(const AreaOperation & operation, int axis, unsigned int concurrency)
  : m_Operation(operation)
  , m_Axis(axis)
  , m_Preceding(GetNeighborOffsets(operation.axes, operation.connectivity))
  , m_Mask(!operation.closing ? 0 : ~std::uint64_t{ 0 } >> (64 - 8 * PixelSize(operation.inputKind)))
  , m_Closed(operation.HasMarks() ? ~std::uint64_t{ 0 } : operation.size)
  , m_Plane(PlaneOf(operation, axis))
  , m_Scratch(concurrency)
{
  m_Preceding.resize(m_Preceding.size() / 2);
}

std::uint64_t
AreaBlock::GetMostBytes(const AreaOperation & operation, int axis, std::int64_t planes, unsigned int concurrency)
{
  Coordinates block = operation.image;
  block[axis] = std::min(planes, block[axis]);
  const Coordinates tile = ExtentOfTiles(block, operation.tileVoxels);
  const auto        voxels = static_cast<std::uint64_t>(Box::FromExtent(block).NumberOfVoxels());
  std::uint64_t     ofTile = 1;
  std::uint64_t     padded = 1;
  double            border = 0;
  bool              isJoined = false;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t extent = std::min(tile[a], block[a]);
    const bool         isAlong = IsAlong(operation, a);
    ofTile *= static_cast<std::uint64_t>(extent);
    padded *= static_cast<std::uint64_t>(extent + (isAlong ? 2 : 0));
    border += isAlong && extent < operation.image[a] ? 2.0 / static_cast<double>(extent) : 0.0;
    isJoined = isJoined || extent < operation.image[a];
  }
  // Pairs of a voxel with voxels of other tiles.
  const double neighbors =
    static_cast<double>(GetNeighborOffsets(operation.axes, operation.connectivity).size()) / 2 * std::min(border, 1.0);
  const auto          pairs = static_cast<std::uint64_t>(neighbors * 1024) + 1;
  const std::uint64_t pixel = PixelSize(operation.inputKind);
  const std::uint64_t ofWorker =
    padded * (4 + pixel) + ofTile * (8 + sizeof(AreaNode)) + (isJoined ? ofTile * 16 * pairs / 1024 : 0) +
    (operation.HasMarks() ? padded * (8 + sizeof(AreaMark)) + ofTile * (8 + sizeof(AreaMark)) : 0);
  // A node of a tile; a vertex with its key, area, link, two places in the order, border voxel, first edge, edge to its
  // parent, and result; a node of the join.
  const std::uint64_t ofNode =
    2 * sizeof(AreaNode) + 8 + 8 + 4 + 8 + 4 + 8 + 4 + 8 + (operation.HasMarks() ? 3 * sizeof(AreaMark) : 0);
  // A marker has a voxel for itself.
  return (operation.findsMarkers ? voxels * 2 * 8 : 0) + voxels * (pixel + 4 + (isJoined ? ofNode : 0)) +
         (isJoined ? voxels * 12 * pairs / 1024 : 0) + concurrency * ofWorker;
}

BufferView
AreaBlock::Begin(const Box & box)
{
  m_Box = box;
  m_Stride = DenseStrides(box.Extents());
  m_TileExtent = ExtentOfTiles(box.Extents(), m_Operation.tileVoxels);
  m_NumberOfTiles = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    m_Tiles[a] = (box.Extent(a) + m_TileExtent[a] - 1) / m_TileExtent[a];
    m_NumberOfTiles *= Index(m_Tiles[a]);
  }
  const auto voxels = Index(box.NumberOfVoxels());
  m_Voxels.resize(voxels * PixelSize(m_Operation.inputKind));
  m_NodesOf.assign(voxels, Done);
  m_Trees.assign(m_NumberOfTiles, {});
  m_TreeMarks.assign(m_NumberOfTiles, {});
  m_TileMarkers.assign(m_NumberOfTiles, {});
  m_Pairs.assign(m_NumberOfTiles, {});
  m_Bases.clear();
  m_Keys.clear();
  m_Areas.clear();
  m_Links.clear();
  m_Nodes.clear();
  m_NodeMarks.clear();
  m_Markers.clear();
  m_Before = nullptr;
  return DenseView(m_Voxels.data(), m_Operation.inputKind, box);
}

template <typename TBody>
void
AreaBlock::ForRows(const Box & box, TBody && body) const
{
  Coordinates at = box.lower;
  for (std::int64_t row = box.NumberOfVoxels() / box.Extent(0); row > 0; --row)
  {
    body(at);
    for (int a = 1; a < MaxDimension && ++at[a] == box.upper[a]; ++a)
    {
      at[a] = box.lower[a];
    }
  }
}

Box
AreaBlock::BoxOf(Index tile) const
{
  Box  box{};
  auto rest = static_cast<std::int64_t>(tile);
  for (int a = 0; a < MaxDimension; ++a)
  {
    box.lower[a] = m_Box.lower[a] + rest % m_Tiles[a] * m_TileExtent[a];
    box.upper[a] = std::min(box.lower[a] + m_TileExtent[a], m_Box.upper[a]);
    rest /= m_Tiles[a];
  }
  return box;
}

AreaBlock::Index
AreaBlock::TileOf(const Coordinates & at) const
{
  std::int64_t tile = 0;
  for (int a = MaxDimension - 1; a >= 0; --a)
  {
    tile = m_Tiles[a] == 1 ? tile : tile * m_Tiles[a] + (at[a] - m_Box.lower[a]) / m_TileExtent[a];
  }
  return Index(tile);
}

std::int64_t
AreaBlock::OffsetOf(const Coordinates & at) const
{
  std::int64_t offset = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    offset += (at[a] - m_Box.lower[a]) * m_Stride[a];
  }
  return offset;
}

void
AreaBlock::LeaveOut(const Box & part, const BufferView & mask)
{
  this->ForRows(part, [&](const Coordinates & at) {
    std::uint32_t * const nodes = m_NodesOf.data() + this->OffsetOf(at);
    DispatchPixelType(mask.kind, [&](auto pixel) {
      const auto * const voxels = static_cast<const decltype(pixel) *>(mask.data) + mask.Offset(at);
      for (std::int64_t x = 0; x < part.Extent(0); ++x)
      {
        nodes[x] = voxels[x * mask.stride[0]] == 0 ? Raw : nodes[x];
      }
    });
  });
}

void
AreaBlock::Build(const AreaLoop & loop)
{
  const std::int64_t voxels = m_Box.NumberOfVoxels();
  loop((voxels + AreaTaskVoxels - 1) / AreaTaskVoxels, [&](std::int64_t task, unsigned int) {
    const std::int64_t begin = task * AreaTaskVoxels;
    TurnIntoKeys(m_Operation.inputKind,
                 m_Mask,
                 m_Operation.findsMarkers,
                 m_Voxels.data() + Index(begin) * PixelSize(m_Operation.inputKind),
                 m_NodesOf.data() + begin,
                 Raw,
                 std::min(AreaTaskVoxels, voxels - begin));
  });
  loop(static_cast<std::int64_t>(m_NumberOfTiles), [&](std::int64_t tile, unsigned int worker) {
    DispatchSize(m_Operation.inputKind,
                 [&](auto key) { this->BuildTile<decltype(key)>(Index(tile), m_Scratch[worker]); });
  });
}

/** A tile, whose voxels have numbers in a grid with a layer more on either side of each axis of neighbors. */
struct AreaBlock::Tile
{
  Tile(const AreaOperation & operation, const Box & tile)
    : box(tile)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool isAlong = IsAlong(operation, a);
      stride[a] = size;
      first += isAlong ? size : 0;
      size *= static_cast<std::uint32_t>(box.Extent(a) + (isAlong ? 2 : 0));
      leads[a][0] = isAlong && box.lower[a] > 0;
      leads[a][1] = isAlong && box.upper[a] < operation.image[a];
    }
  }

  bool
  IsOnFace(const Coordinates & at, int a) const
  {
    return (leads[a][0] && at[a] == box.lower[a]) || (leads[a][1] && at[a] == box.upper[a] - 1);
  }
  std::uint32_t
  NumberOf(const Coordinates & at) const
  {
    std::uint32_t number = first;
    for (int a = 0; a < MaxDimension; ++a)
    {
      number += static_cast<std::uint32_t>((at[a] - box.lower[a]) * stride[a]);
    }
    return number;
  }

  const Box     box;
  Coordinates   stride{};
  std::uint32_t size{ 1 };
  std::uint32_t first{ 0 };
  bool          leads[MaxDimension][2]; ///< whether voxels follow beyond a face
};

template <typename TKey>
AreaBlock::Index
AreaBlock::LoadTile(const Tile & tile, Scratch & scratch) const
{
  using Forest = AreaForest<false>;
  const Box & box = tile.box;
  scratch.links.assign(tile.size, Forest::Unseen);
  scratch.keys.resize(tile.size * sizeof(TKey));
  scratch.order.resize(Index(box.NumberOfVoxels()));
  scratch.spare.resize(scratch.order.size());
  auto * const          keys = reinterpret_cast<TKey *>(scratch.keys.data());
  std::uint32_t * const links = scratch.links.data();
  Index                 count = 0;
  this->ForRows(box, [&](const Coordinates & at) {
    const auto * const          from = reinterpret_cast<const TKey *>(m_Voxels.data()) + this->OffsetOf(at);
    const std::uint32_t * const nodes = m_NodesOf.data() + this->OffsetOf(at);
    const std::uint32_t         local = tile.NumberOf(at);
    bool                        isBorder = false;
    for (int a = 1; a < MaxDimension; ++a)
    {
      isBorder = isBorder || tile.IsOnFace(at, a);
    }
    for (std::uint32_t x = 0; x < static_cast<std::uint32_t>(box.Extent(0)); ++x)
    {
      keys[local + x] = from[x];
      scratch.order[count] = local + x;
      count += nodes[x] != Raw ? 1 : 0;
      links[local + x] = isBorder ? Forest::UnseenOfBorder : Forest::Unseen;
    }
    const std::uint32_t last = local + static_cast<std::uint32_t>(box.Extent(0)) - 1;
    links[local] = tile.leads[0][0] ? Forest::UnseenOfBorder : links[local];
    links[last] = tile.leads[0][1] ? Forest::UnseenOfBorder : links[last];
  });
  return count;
}

template <typename TKey>
void
AreaBlock::MarkTile(const Tile & tile, Scratch & scratch) const
{
  const AreaMeasure  measure(m_Operation, m_Mask);
  const auto * const keys = reinterpret_cast<const TKey *>(scratch.keys.data());
  scratch.areas.resize(tile.size);
  scratch.marks.resize(tile.size);
  scratch.nodeMarks.clear();
  scratch.nodeMarks.reserve(scratch.order.size());
  scratch.markers.clear();
  this->ForRows(tile.box, [&](Coordinates at) {
    std::uint64_t raster = 0;
    for (int a = MaxDimension - 1; a >= 0; --a)
    {
      raster = raster * static_cast<std::uint64_t>(m_Operation.image[a]) + static_cast<std::uint64_t>(at[a]);
    }
    const std::uint32_t local = tile.NumberOf(at);
    for (std::uint32_t x = 0; x < static_cast<std::uint32_t>(tile.box.Extent(0)); ++x, ++at[0])
    {
      scratch.marks[local + x] = measure.MarkOf(keys[local + x], at, raster + x);
    }
  });
}

template <typename TKey, typename TForest>
void
AreaBlock::StoreTile(const Tile & tile, const Scratch & scratch, TForest & forest)
{
  const auto * const          keys = reinterpret_cast<const TKey *>(scratch.keys.data());
  const std::uint32_t * const links = scratch.links.data();
  this->ForRows(tile.box, [&](const Coordinates & at) {
    auto * const          to = reinterpret_cast<TKey *>(m_Voxels.data()) + this->OffsetOf(at);
    std::uint32_t * const nodes = m_NodesOf.data() + this->OffsetOf(at);
    const std::uint32_t   local = tile.NumberOf(at);
    for (std::uint32_t x = 0; x < static_cast<std::uint32_t>(tile.box.Extent(0)); ++x)
    {
      if (nodes[x] != Raw)
      {
        const std::uint32_t root = forest.Find(local + x);
        const bool          isKnown = (links[root] & TForest::Tag) != TForest::Attached;
        to[x] = keys[root];
        nodes[x] = isKnown ? Done : links[root] & ~TForest::Tag;
      }
    }
  });
}

template <typename TKey>
void
AreaBlock::BuildTile(Index index, Scratch & scratch)
{
  using Forest = AreaForest<false>;
  const Tile  tile(m_Operation, this->BoxOf(index));
  const Index count = this->LoadTile<TKey>(tile, scratch);
  scratch.nodes.clear();
  scratch.nodes.reserve(scratch.order.size());
  auto * const                keys = reinterpret_cast<TKey *>(scratch.keys.data());
  std::uint32_t * const       links = scratch.links.data();
  const std::uint32_t * const order = SortDescending(keys, scratch.order.data(), scratch.spare.data(), count);

  std::uint32_t deltas[2 * 13]{};
  int           neighbors = 0;
  for (const Coordinates & offset : m_Preceding)
  {
    std::int64_t delta = 0;
    bool         isInside = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      delta += offset[a] * tile.stride[a];
      isInside = isInside && (offset[a] == 0 || m_Operation.image[a] > 1);
    }
    if (isInside)
    {
      deltas[neighbors++] = static_cast<std::uint32_t>(delta);
      deltas[neighbors++] = static_cast<std::uint32_t>(-delta);
    }
  }
  Forest     forest(links, nullptr, m_Operation.size, scratch.nodes);
  const auto grow = [&](auto & of) {
    for (Index i = 0; i < count; ++i)
    {
      const std::uint32_t voxel = order[i];
      const std::uint32_t border = links[voxel] == Forest::UnseenOfBorder ? 0 : AreaNode::None;
      of.Begin(voxel, keys[voxel], 1);
      for (int n = 0; n < neighbors; ++n)
      {
        if (Forest::IsSeen(links[voxel + deltas[n]]))
        {
          of.Meet(voxel + deltas[n]);
        }
      }
      of.End(border);
    }
  };
  if (m_Operation.HasMarks())
  {
    this->MarkTile<TKey>(tile, scratch);
    MarkerForest<TKey> ofMarkers(links,
                                 keys,
                                 scratch.areas.data(),
                                 scratch.marks.data(),
                                 AreaMeasure(m_Operation, m_Mask),
                                 scratch.nodes,
                                 scratch.nodeMarks,
                                 scratch.markers);
    grow(ofMarkers);
    m_TreeMarks[index] = scratch.nodeMarks;
    if (m_Operation.findsMarkers)
    {
      std::for_each(order, order + count, [&](std::uint32_t voxel) { ofMarkers.Close(voxel); });
      m_TileMarkers[index] = scratch.markers;
    }
  }
  else
  {
    grow(forest);
  }
  m_Trees[index] = scratch.nodes;
  this->StoreTile<TKey>(tile, scratch, forest);
}

std::uint32_t
AreaBlock::VertexOf(bool last, std::int64_t voxel) const
{
  Coordinates  at = m_Box.lower;
  std::int64_t rest = voxel;
  for (int a = 0; a < m_Axis; ++a)
  {
    at[a] = rest % m_Operation.image[a];
    rest /= m_Operation.image[a];
  }
  at[m_Axis] = last ? m_Box.upper[m_Axis] - 1 : m_Box.lower[m_Axis];
  return this->VertexAt(this->OffsetOf(at), this->TileOf(at));
}

void
AreaBlock::FindPairs(Index tile, Scratch & scratch)
{
  const Box  box = this->BoxOf(tile);
  const auto beside = [&](const Coordinates & at) {
    for (const Coordinates & offset : m_Preceding)
    {
      Coordinates other = at;
      bool        isInTile = true;
      bool        isInImage = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        other[a] += offset[a];
        isInTile = isInTile && other[a] >= box.lower[a] && other[a] < box.upper[a];
        isInImage = isInImage && other[a] >= 0 && other[a] < m_Operation.image[a];
      }
      if (isInTile || !isInImage)
      {
        continue;
      }
      std::uint32_t there = AreaNode::None;
      if (other[m_Axis] < m_Box.lower[m_Axis])
      {
        other[m_Axis] = m_Box.lower[m_Axis];
        there = m_Before ? this->VertexBefore(this->OffsetOf(other)) : AreaNode::None;
      }
      else
      {
        there = this->VertexAt(this->OffsetOf(other), this->TileOf(other));
      }
      const std::uint32_t here = this->VertexAt(this->OffsetOf(at), tile);
      if (here != AreaNode::None && there != AreaNode::None && (m_Areas[here] < m_Closed || m_Areas[there] < m_Closed))
      {
        scratch.pairs.emplace_back(here, there);
      }
    }
  };
  scratch.pairs.clear();
  this->ForRows(box, [&](Coordinates at) {
    bool isOnFace = false;
    for (int a = 1; a < MaxDimension; ++a)
    {
      isOnFace = isOnFace || (IsAlong(m_Operation, a) && (at[a] == box.lower[a] || at[a] == box.upper[a] - 1));
    }
    const std::int64_t step = isOnFace ? 1 : std::max<std::int64_t>(1, box.Extent(0) - 1);
    for (; at[0] < box.upper[0]; at[0] += step)
    {
      beside(at);
    }
  });
  m_Pairs[tile] = scratch.pairs;
}

/** The edges of each vertex to vertices that come before it. */
struct AreaBlock::Edges
{
  std::vector<std::uint64_t> begins;
  std::vector<std::uint32_t> earlier;
};

void
AreaBlock::AddVertices(const std::vector<AreaNode> & nodes, const std::vector<AreaMark> & marks, Index base)
{
  const AreaMeasure measure(m_Operation, m_Mask);
  std::copy(marks.begin(), marks.end(), m_Marks.begin() + static_cast<std::ptrdiff_t>(marks.empty() ? 0 : base));
  for (Index i = 0; i < nodes.size(); ++i)
  {
    m_Keys[base + i] = nodes[i].key;
    m_Areas[base + i] = nodes[i].area;
  }
  // The voxels, and the volume, of a component that its parts do not have.
  for (Index i = 0; i < nodes.size(); ++i)
  {
    const AreaNode & node = nodes[i];
    if (node.parent == AreaNode::None || nodes[node.parent].area >= m_Closed)
    {
      continue;
    }
    m_Areas[base + node.parent] -= node.area;
    if (m_Operation.HasMarks() && marks[node.parent].size < m_Operation.size)
    {
      measure.Subtract(m_Marks[base + node.parent], marks[i], node.area, node.key, nodes[node.parent].key);
    }
  }
}

/** Calls body(later vertex, earlier vertex). */
template <typename TBody>
void
AreaBlock::ForEdges(TBody && body) const
{
  const auto edge = [&](std::uint32_t a, std::uint32_t b) {
    const bool isFirst = m_Keys[a] > m_Keys[b] || (m_Keys[a] == m_Keys[b] && a < b);
    isFirst ? body(b, a) : body(a, b);
  };
  const auto ofTree = [&](const std::vector<AreaNode> & nodes, std::uint32_t base) {
    for (std::uint32_t i = 0; i < nodes.size(); ++i)
    {
      if (nodes[i].parent != AreaNode::None)
      {
        edge(base + i, base + nodes[i].parent);
      }
    }
  };
  if (m_Before)
  {
    ofTree(m_Before->nodes, 0);
  }
  for (Index tile = 0; tile < m_NumberOfTiles; ++tile)
  {
    ofTree(m_Trees[tile], m_Bases[tile]);
    for (const auto & pair : m_Pairs[tile])
    {
      edge(pair.first, pair.second);
    }
  }
}

/** For each vertex a voxel of the block's border that it has. */
std::vector<std::uint32_t>
AreaBlock::FindBorders(bool first, bool last) const
{
  std::vector<std::uint32_t> borders(m_Keys.size(), AreaNode::None);
  for (const bool isLast : { true, false })
  {
    for (std::int64_t voxel = 0; voxel < m_Plane && (isLast ? last : first); ++voxel)
    {
      const std::uint32_t vertex = this->VertexOf(isLast, voxel);
      if (vertex != AreaNode::None)
      {
        borders[vertex] = static_cast<std::uint32_t>(isLast ? m_Plane + voxel : voxel);
      }
    }
  }
  return borders;
}

void
AreaBlock::GrowJoined(const Edges & edges, const std::vector<std::uint32_t> & borders)
{
  using Forest = AreaForest<true>;
  const Index all = m_Keys.size();
  m_Links.assign(all, Forest::Unseen);
  std::vector<std::uint32_t> order(all);
  std::vector<std::uint32_t> spare(all);
  std::iota(order.begin(), order.end(), 0U);
  const std::uint32_t * const sorted = SortDescending(m_Keys.data(), order.data(), spare.data(), all);
  m_Nodes.reserve(all);
  const auto grow = [&](auto && forest) {
    for (Index i = 0; i < all; ++i)
    {
      const std::uint32_t vertex = sorted[i];
      forest.Begin(vertex, m_Keys[vertex], m_Areas[vertex]);
      for (std::uint64_t edge = edges.begins[vertex]; edge < edges.begins[vertex + Index(1)]; ++edge)
      {
        forest.Meet(edges.earlier[edge]);
      }
      forest.End(borders[vertex]);
    }
  };
  if (!m_Operation.HasMarks())
  {
    grow(Forest(m_Links.data(), m_Areas.data(), m_Operation.size, m_Nodes));
    return;
  }
  m_NodeMarks.reserve(all);
  for (const std::vector<std::uint64_t> & markers : m_TileMarkers)
  {
    m_Markers.insert(m_Markers.end(), markers.begin(), markers.end());
  }
  m_TileMarkers.assign(m_NumberOfTiles, {});
  MarkerForest<std::uint64_t> forest(m_Links.data(),
                                     m_Keys.data(),
                                     m_Areas.data(),
                                     m_Marks.data(),
                                     AreaMeasure(m_Operation, m_Mask),
                                     m_Nodes,
                                     m_NodeMarks,
                                     m_Markers);
  grow(forest);
  for (Index i = 0; i < all && m_Operation.findsMarkers; ++i)
  {
    forest.Close(static_cast<std::uint32_t>(i));
  }
}

void
AreaBlock::Join(const AreaPlane * before, bool first, bool last, const AreaLoop & loop)
{
  using Forest = AreaForest<true>;
  m_Before = before;
  const Index   nodesBefore = before ? before->nodes.size() : 0;
  std::uint64_t all = nodesBefore;
  for (const std::vector<AreaNode> & tree : m_Trees)
  {
    m_Bases.push_back(static_cast<std::uint32_t>(all));
    all += tree.size();
  }
  if (all >= Forest::Limit)
  {
    throw Error("components on faces of tiles are " + std::to_string(all) + ", more than " +
                std::to_string(Forest::Limit) +
                " at a time; with a limit of memory the image is cut into smaller blocks");
  }
  m_Keys.resize(all);
  m_Areas.resize(all);
  m_Marks.resize(m_Operation.HasMarks() ? all : 0);
  if (before)
  {
    this->AddVertices(before->nodes, before->marks, 0);
  }
  loop(static_cast<std::int64_t>(m_NumberOfTiles), [&](std::int64_t tile, unsigned int) {
    this->AddVertices(m_Trees[Index(tile)], m_TreeMarks[Index(tile)], m_Bases[Index(tile)]);
  });
  loop(static_cast<std::int64_t>(m_NumberOfTiles),
       [&](std::int64_t tile, unsigned int worker) { this->FindPairs(Index(tile), m_Scratch[worker]); });

  Edges edges;
  edges.begins.resize(all + 2);
  this->ForEdges([&](std::uint32_t later, std::uint32_t) { ++edges.begins[later + Index(2)]; });
  std::partial_sum(edges.begins.begin(), edges.begins.end(), edges.begins.begin());
  edges.earlier.resize(edges.begins.back());
  this->ForEdges(
    [&](std::uint32_t later, std::uint32_t earlier) { edges.earlier[edges.begins[later + Index(1)]++] = earlier; });
  m_Trees.assign(m_NumberOfTiles, {});
  m_Pairs.assign(m_NumberOfTiles, {});
  this->GrowJoined(edges, this->FindBorders(first, last));
}

AreaBlock::Code
AreaBlock::CodeOf(std::uint32_t vertex)
{
  using Forest = AreaForest<true>;
  if (vertex == AreaNode::None)
  {
    return { 0, NoBorder };
  }
  const std::uint32_t root = Forest(m_Links.data(), m_Areas.data(), m_Operation.size, m_Nodes).Find(vertex);
  if ((m_Links[root] & Forest::Tag) != Forest::Attached)
  {
    return { m_Keys[root], NoBorder };
  }
  const AreaNode & node = m_Nodes[m_Links[root] & ~Forest::Tag];
  return { node.key, node.area >= m_Closed ? NoBorder : node.border };
}

AreaPlane
AreaBlock::TakeLastPlane()
{
  using Forest = AreaForest<true>;
  AreaPlane plane;
  plane.ofVoxels.resize(Index(m_Plane));
  for (std::int64_t voxel = 0; voxel < m_Plane; ++voxel)
  {
    const std::uint32_t vertex = this->VertexOf(true, voxel);
    plane.ofVoxels[Index(voxel)] = vertex == AreaNode::None ? vertex : m_Links[vertex] & ~Forest::Tag;
  }
  plane.nodes = std::move(m_Nodes);
  plane.marks = std::move(m_NodeMarks);
  for (AreaNode & node : plane.nodes)
  {
    node.border -= static_cast<std::uint32_t>(m_Plane);
  }
  m_Nodes.clear();
  m_NodeMarks.clear();
  return plane;
}

void
AreaBlock::Finish(const std::vector<std::uint64_t> & border, const AreaLoop & loop)
{
  std::vector<std::uint64_t> results(m_Links.size());
  for (Index i = 0; i < results.size(); ++i)
  {
    const Code code = this->CodeOf(static_cast<std::uint32_t>(i));
    results[i] = code.border == NoBorder ? code.key : std::min(code.key, border[code.border]);
  }
  const Index size = PixelSize(m_Operation.inputKind);
  loop(static_cast<std::int64_t>(m_NumberOfTiles), [&](std::int64_t tile, unsigned int) {
    const Box box = this->BoxOf(Index(tile));
    this->ForRows(box, [&](const Coordinates & at) {
      const std::uint32_t * const nodes = m_NodesOf.data() + this->OffsetOf(at);
      unsigned char * const       voxels = m_Voxels.data() + Index(this->OffsetOf(at)) * size;
      for (std::int64_t x = 0; x < box.Extent(0); ++x)
      {
        if (nodes[x] < Raw)
        {
          std::memcpy(voxels + Index(x) * size, &results[m_Bases[Index(tile)] + nodes[x]], size);
        }
      }
      TurnIntoVoxels(m_Operation.inputKind, m_Mask, voxels, nodes, Raw, box.Extent(0));
    });
  });
}

} // namespace chunkwise
