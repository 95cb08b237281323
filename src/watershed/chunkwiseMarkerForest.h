/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMarkerForest_h
#define chunkwiseMarkerForest_h

#include "chunkwiseAreaForest.h"
#include "chunkwiseOrdinal.h"
#include "chunkwiseTypes.h"

#include <cmath>

namespace chunkwise
{

/** The rest of what a forest that finds markers must know of a component, beside its key and its number of voxels. */
struct AreaMark
{
  std::uint64_t first;  ///< of its voxels, in the raster order of the image
  std::uint64_t volume; ///< between its voxels' values and its key; the size or more: it is not exact
};

/** The difference between the values of two keys: exact for integers; floating-point numbers are rounded down to
 * multiples of a unit. */
class AreaRise
{
public:
  /** Keys are ordinals of values, with the bits of `mask` reversed. */
  AreaRise(PixelType kind, std::uint64_t mask, double unit)
    : m_Kind(kind)
    , m_Mask(mask)
    , m_Scale(1 / unit)
  {}
  std::uint64_t
  operator()(std::uint64_t key, std::uint64_t lower) const
  {
    return IsFloatingPoint(m_Kind) ? this->UnitsOf(lower) - this->UnitsOf(key) : key - lower;
  }

private:
  std::uint64_t
  UnitsOf(std::uint64_t key) const
  {
    constexpr double most = 4611686018427387904.0;
    const double     value = m_Kind == PixelType::Float32 ? static_cast<double>(FromOrdinal<float>(key ^ m_Mask))
                                                          : FromOrdinal<double>(key ^ m_Mask);
    return static_cast<std::uint64_t>(
      static_cast<std::int64_t>(std::min(std::max(std::floor(value * m_Scale), -most), most)));
  }

  PixelType     m_Kind;
  std::uint64_t m_Mask;
  double        m_Scale;
};

/** As AreaForest, but it finds the first voxels of the least components that are large enough.
 *
 * A component is compared with the size when a vertex of a lower key comes to it: all vertices of its key are in it
 * then. If it is large enough, and no component within it was, its first voxel is a marker. Components of whole images,
 * which meet no such vertex, are large enough. Components with vertices of the border are nodes; other images find
 * their markers.
 *
 * `TKey`: the type of the vertices' keys. */
template <typename TKey>
class MarkerForest
{
public:
  using Forest = AreaForest<true>;
  /** In place of the number of voxels: there is a marker within the component. */
  static constexpr std::uint64_t Marked = ~std::uint64_t{ 0 };

  /** Arrays have an element for each vertex; `nodeMarks` gets one for each of `nodes`. */
  MarkerForest(std::uint32_t * links, const TKey * keys, std::uint64_t * areas, AreaMark * marks, std::uint64_t size,
               bool byVolume, const AreaRise & rise, std::vector<AreaNode> & nodes, std::vector<AreaMark> & nodeMarks,
               std::vector<std::uint64_t> & markers)
    : m_Links(links)
    , m_Keys(keys)
    , m_Areas(areas)
    , m_Marks(marks)
    , m_Size(size)
    , m_ByVolume(byVolume)
    , m_Rise(rise)
    , m_Forest(links, areas, size, nodes)
    , m_Nodes(nodes)
    , m_NodeMarks(nodeMarks)
    , m_Markers(markers)
  {}

  std::uint32_t
  Find(std::uint32_t vertex)
  {
    return m_Forest.Find(vertex);
  }

  /** Adds a vertex with its mark; then Meet for each of its neighbors that has been added, then End. */
  void
  Begin(std::uint32_t vertex, std::uint64_t key, std::uint64_t area)
  {
    m_Vertex = vertex;
    m_Key = key;
    m_Whole = { area, m_Marks[vertex] };
    m_Node = AreaNode::None;
    m_Links[vertex] = Forest::Open;
  }
  void
  Meet(std::uint32_t neighbor)
  {
    const std::uint32_t root = m_Forest.Find(neighbor);
    const std::uint32_t link = m_Links[root];
    if (root == m_Vertex)
    {
      return;
    }
    if ((link & Forest::Tag) == Forest::Attached)
    {
      this->MeetNode(link & ~Forest::Tag);
      return;
    }
    const Part part = this->Grown({ m_Areas[root], m_Marks[root] }, m_Keys[root]);
    if ((link & Forest::Tag) == Forest::Open && !this->IsComplete(part, m_Keys[root]))
    {
      m_Links[root] = m_Vertex;
      this->Add(m_Whole, part);
      return;
    }
    if ((link & Forest::Tag) == Forest::Open)
    {
      m_Markers.push_back(part.mark.first);
      m_Links[root] = Forest::Closed;
    }
    m_Whole.area = Marked;
  }
  /** `border`: the number of a voxel of the border that the vertex has, or None. */
  void
  End(std::uint32_t border)
  {
    const bool hasNode = m_Node != AreaNode::None;
    if (!hasNode && border == AreaNode::None)
    {
      m_Links[m_Vertex] = m_Whole.area == Marked ? Forest::Closed : Forest::Open;
      m_Areas[m_Vertex] = m_Whole.area;
      m_Marks[m_Vertex] = m_Whole.mark;
      return;
    }
    if (hasNode)
    {
      this->Add(m_Whole, this->PartOf(m_Node));
    }
    if (!hasNode || m_Nodes[m_Node].key != m_Key)
    {
      m_Node = this->AddNode(hasNode ? m_Nodes[m_Node].border : border, m_Node);
    }
    this->Set(m_Node, m_Whole);
    m_Links[m_Vertex] = Forest::Attached | m_Node;
  }
  /** After all vertices: the marker of a component that has met no vertex of a lower key. */
  void
  Close(std::uint32_t vertex)
  {
    if ((m_Links[vertex] & Forest::Tag) == Forest::Open)
    {
      m_Markers.push_back(m_Marks[vertex].first);
    }
  }

private:
  struct Part
  {
    std::uint64_t area;
    AreaMark      mark;
  };

  /** A component of a key, before the vertex with the key m_Key is added to it. */
  Part
  Grown(Part part, std::uint64_t key) const
  {
    if (m_ByVolume && part.area != Marked && key != m_Key && part.mark.volume < m_Size)
    {
      const std::uint64_t rise = m_Rise(key, m_Key);
      const std::uint64_t room = m_Size - part.mark.volume;
      part.mark.volume = rise > 0 && part.area > (room - 1) / rise ? m_Size : part.mark.volume + part.area * rise;
    }
    return part;
  }
  Part
  PartOf(std::uint32_t node) const
  {
    return this->Grown({ m_Nodes[node].area, m_NodeMarks[node] }, m_Nodes[node].key);
  }
  /** Whether a component of a key has its marker now that the vertex with the key m_Key comes. */
  bool
  IsComplete(const Part & part, std::uint64_t key) const
  {
    return part.area == Marked || (key != m_Key && (m_ByVolume ? part.mark.volume : part.area) >= m_Size);
  }
  void
  Add(Part & whole, const Part & part) const
  {
    whole.area = whole.area == Marked || part.area == Marked ? Marked : whole.area + part.area;
    whole.mark.first = std::min(whole.mark.first, part.mark.first);
    whole.mark.volume =
      part.mark.volume < m_Size - std::min(m_Size, whole.mark.volume) ? whole.mark.volume + part.mark.volume : m_Size;
  }
  void
  Set(std::uint32_t node, const Part & part)
  {
    m_Nodes[node].area = part.area;
    m_NodeMarks[node] = part.mark;
  }
  std::uint32_t
  AddNode(std::uint32_t border, std::uint32_t part)
  {
    const auto node = static_cast<std::uint32_t>(m_Nodes.size());
    m_Nodes.push_back({ m_Key, 0, AreaNode::None, node, border });
    m_NodeMarks.push_back({});
    this->Attach(part, node);
    return node;
  }
  void
  Attach(std::uint32_t part, std::uint32_t node)
  {
    if (part != AreaNode::None)
    {
      m_Nodes[part].parent = m_Nodes[part].up = node;
    }
  }
  void
  MeetNode(std::uint32_t node)
  {
    node = m_Forest.TopOf(node);
    if (node == m_Node)
    {
      return;
    }
    const Part part = this->PartOf(node);
    if (this->IsComplete(part, m_Nodes[node].key))
    {
      m_Whole.area = Marked;
      return;
    }
    if (m_Node == AreaNode::None)
    {
      m_Node = node;
      return;
    }
    Part whole = this->PartOf(m_Node);
    this->Add(whole, part);
    if (m_Nodes[node].key == m_Key)
    {
      std::swap(node, m_Node);
    }
    if (m_Nodes[m_Node].key != m_Key)
    {
      m_Node = this->AddNode(m_Nodes[node].border, m_Node);
    }
    this->Attach(node, m_Node);
    this->Set(m_Node, whole);
  }

  std::uint32_t * const        m_Links;
  const TKey * const           m_Keys;
  std::uint64_t * const        m_Areas;
  AreaMark * const             m_Marks;
  const std::uint64_t          m_Size;
  const bool                   m_ByVolume;
  const AreaRise               m_Rise;
  Forest                       m_Forest;
  std::vector<AreaNode> &      m_Nodes;
  std::vector<AreaMark> &      m_NodeMarks;
  std::vector<std::uint64_t> & m_Markers;
  // The vertex that is being added: its component so far, without the node `m_Node`.
  std::uint32_t m_Vertex{ 0 };
  std::uint64_t m_Key{ 0 };
  Part          m_Whole{};
  std::uint32_t m_Node{ AreaNode::None };
};

} // namespace chunkwise

#endif
