/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMarkerForest_h
#define chunkwiseMarkerForest_h

#include "chunkwiseAreaForest.h"
#include "chunkwiseAreaOperation.h"
#include "chunkwiseOrdinal.h"

#include <cmath>

namespace chunkwise
{

/** A component as its size is measured, beside its key and its number of voxels. */
struct AreaMark
{
  /** The least coordinates of its voxels along the axes of neighbors, if extents count; else the first of its voxels,
   * in the raster order of the image. */
  std::uint64_t first;
  /** For extents the largest coordinates; for heights the key of the voxel with the largest key; for volumes that
   * between its voxels' values and its key, which is not exact from the size on. */
  std::uint64_t size;
};

/** Measures components of an AreaOperation. Keys are ordinals of values, with the bits of `mask` reversed. */
class AreaMeasure
{
public:
  AreaMeasure(const AreaOperation & operation, std::uint64_t mask)
    : m_Operation(operation)
    , m_Mask(mask)
    , m_Scale(1 / operation.unit)
  {}

  /** The mark of a voxel with an index in the image, of which `raster` is the place in raster order. */
  AreaMark
  MarkOf(std::uint64_t key, const Coordinates & at, std::uint64_t raster) const
  {
    switch (m_Operation.attribute)
    {
      case AreaAttribute::Extent:
      {
        std::uint64_t packed = 0;
        for (std::size_t i = 0; i < m_Operation.axes.size(); ++i)
        {
          packed |= static_cast<std::uint64_t>(at[m_Operation.axes[i]]) << BitsOfCoordinate * i;
        }
        return { packed, packed };
      }
      case AreaAttribute::Height:
        return { raster, key };
      default:
        return { raster, 0 };
    }
  }
  void
  Add(AreaMark & whole, const AreaMark & part) const
  {
    switch (m_Operation.attribute)
    {
      case AreaAttribute::Extent:
        for (std::size_t i = 0; i < m_Operation.axes.size(); ++i)
        {
          const std::uint64_t field = FieldOf(i);
          whole.first = (whole.first & ~field) | std::min(whole.first & field, part.first & field);
          whole.size = (whole.size & ~field) | std::max(whole.size & field, part.size & field);
        }
        return;
      case AreaAttribute::Height:
        whole.size = std::max(whole.size, part.size);
        break;
      case AreaAttribute::Volume:
        whole.size = part.size < m_Operation.size - std::min(m_Operation.size, whole.size) ? whole.size + part.size
                                                                                           : m_Operation.size;
        break;
      case AreaAttribute::Area:
        break;
    }
    whole.first = std::min(whole.first, part.first);
  }
  /** The key of a component of so many voxels falls. */
  void
  Grow(AreaMark & mark, std::uint64_t voxels, std::uint64_t key, std::uint64_t lower) const
  {
    if (m_Operation.attribute == AreaAttribute::Volume && key != lower && mark.size < m_Operation.size)
    {
      const std::uint64_t rise = this->RiseOf(key, lower);
      const std::uint64_t room = m_Operation.size - mark.size;
      mark.size = rise > 0 && voxels > (room - 1) / rise ? m_Operation.size : mark.size + voxels * rise;
    }
  }
  /** Takes a part of a component from its mark, as far as that adds up. */
  void
  Subtract(AreaMark & whole, const AreaMark & part, std::uint64_t voxels, std::uint64_t key, std::uint64_t lower) const
  {
    if (m_Operation.attribute == AreaAttribute::Volume)
    {
      whole.size -= part.size + voxels * this->RiseOf(key, lower);
    }
  }
  /** Whether a component is large beside a voxel of a lower key, to which it has grown. */
  bool
  IsLarge(std::uint64_t voxels, const AreaMark & mark, std::uint64_t lower) const
  {
    switch (m_Operation.attribute)
    {
      case AreaAttribute::Extent:
      {
        bool isLarge = false;
        for (std::size_t i = 0; i < m_Operation.axes.size(); ++i)
        {
          const std::uint64_t side = ((mark.size & FieldOf(i)) - (mark.first & FieldOf(i))) >> BitsOfCoordinate * i;
          isLarge = isLarge || side + 1 >= m_Operation.extents[i];
        }
        return isLarge;
      }
      case AreaAttribute::Height:
        return IsFloatingPoint(m_Operation.inputKind)
                 ? std::abs(this->RealOf(mark.size) - this->RealOf(lower)) >= m_Operation.height
                 : mark.size - lower >= m_Operation.size;
      case AreaAttribute::Volume:
        return mark.size >= m_Operation.size;
      case AreaAttribute::Area:
        return voxels >= m_Operation.size;
    }
    return false;
  }

private:
  static constexpr std::size_t BitsOfCoordinate = 21;

  static std::uint64_t
  FieldOf(std::size_t axis)
  {
    return ((std::uint64_t{ 1 } << BitsOfCoordinate) - 1) << BitsOfCoordinate * axis;
  }
  double
  RealOf(std::uint64_t key) const
  {
    return m_Operation.inputKind == PixelType::Float32 ? static_cast<double>(FromOrdinal<float>(key ^ m_Mask))
                                                       : FromOrdinal<double>(key ^ m_Mask);
  }
  std::uint64_t
  UnitsOf(std::uint64_t key) const
  {
    constexpr double most = 4611686018427387904.0;
    return static_cast<std::uint64_t>(
      static_cast<std::int64_t>(std::min(std::max(std::floor(this->RealOf(key) * m_Scale), -most), most)));
  }
  /** The difference between the values of two keys: exact for integers; floating-point numbers are rounded down to
   * multiples of a unit. */
  std::uint64_t
  RiseOf(std::uint64_t key, std::uint64_t lower) const
  {
    // Values fall with keys in openings, and rise in closings.
    return !IsFloatingPoint(m_Operation.inputKind) ? key - lower
           : m_Operation.closing                   ? this->UnitsOf(lower) - this->UnitsOf(key)
                                                   : this->UnitsOf(key) - this->UnitsOf(lower);
  }

  const AreaOperation & m_Operation;
  std::uint64_t         m_Mask;
  double                m_Scale;
};

/** As AreaForest for components of any measure, of which it finds the first voxels of the least ones that are large
 * enough.
 *
 * A component is compared with the size when a vertex of a lower key comes to it: all vertices of its key are in it
 * then. If it is large enough, and no component within it was, it is closed, and its first voxel is a marker.
 * Components of whole images,
 * which meet no such vertex, are large enough. Components with vertices of the border are nodes; other images find
 * their markers.
 *
 * `TKey`: the type of the vertices' keys. */
template <typename TKey>
class MarkerForest
{
public:
  using Forest = AreaForest<true>;
  /** In place of the number of voxels: there is a large component within the component. */
  static constexpr std::uint64_t Marked = ~std::uint64_t{ 0 };

  /** Arrays have an element for each vertex; `nodeMarks` gets one for each of `nodes`. */
  MarkerForest(std::uint32_t * links, const TKey * keys, std::uint64_t * areas, AreaMark * marks,
               const AreaMeasure & measure, std::vector<AreaNode> & nodes, std::vector<AreaMark> & nodeMarks,
               std::vector<std::uint64_t> & markers)
    : m_Links(links)
    , m_Keys(keys)
    , m_Areas(areas)
    , m_Marks(marks)
    , m_Measure(measure)
    , m_Forest(links, areas, 0, nodes)
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
    if (part.area != Marked)
    {
      m_Measure.Grow(part.mark, part.area, key, m_Key);
    }
    return part;
  }
  Part
  PartOf(std::uint32_t node) const
  {
    return this->Grown({ m_Nodes[node].area, m_NodeMarks[node] }, m_Nodes[node].key);
  }
  /** Whether a component of a key is closed now that the vertex with the key m_Key comes. */
  bool
  IsComplete(const Part & part, std::uint64_t key) const
  {
    return part.area == Marked || (key != m_Key && m_Measure.IsLarge(part.area, part.mark, m_Key));
  }
  void
  Add(Part & whole, const Part & part) const
  {
    whole.area = whole.area == Marked || part.area == Marked ? Marked : whole.area + part.area;
    m_Measure.Add(whole.mark, part.mark);
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
  const AreaMeasure            m_Measure;
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
