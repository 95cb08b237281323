/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseAreaForest_h
#define chunkwiseAreaForest_h

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace chunkwise
{

/** A component of the voxels from a level on that has voxels on the border, and fewer voxels than the size; or such a
 * component as it reaches the size, and later voxels of the border next to it. */
struct AreaNode
{
  static constexpr std::uint32_t None = ~std::uint32_t{ 0 };

  std::uint64_t key;    ///< the level
  std::uint64_t area;   ///< its voxels; the size or more: it is closed
  std::uint32_t parent; ///< the component that it is a part of at the next lower level, or None
  std::uint32_t up;     ///< a lower component that it is a part of; itself: there is none yet
  std::uint32_t border; ///< the number of one of its border's voxels
};

/** Sorts `order` by descending keys; equal keys keep their order. `spare` has the same size. Returns the array that has
 * the result. */
template <typename TKey>
std::uint32_t *
SortDescending(const TKey * keys, std::uint32_t * order, std::uint32_t * spare, std::size_t count)
{
  constexpr int            digits = sizeof(TKey);
  std::vector<std::size_t> counts(digits * 256);
  for (std::size_t i = 0; i < count; ++i)
  {
    const TKey key = keys[order[i]];
    for (int d = 0; d < digits; ++d)
    {
      ++counts[static_cast<std::size_t>(d) * 256 + (static_cast<std::uint64_t>(key) >> 8 * d & 255)];
    }
  }
  for (int d = 0; d < digits; ++d)
  {
    std::size_t * const of = &counts[static_cast<std::size_t>(d) * 256];
    if (*std::max_element(of, of + 256) == count)
    {
      continue;
    }
    std::size_t sum = 0;
    for (int digit = 255; digit >= 0; --digit)
    {
      const std::size_t next = sum + of[digit];
      of[digit] = sum;
      sum = next;
    }
    for (std::size_t i = 0; i < count; ++i)
    {
      spare[of[static_cast<std::uint64_t>(keys[order[i]]) >> 8 * d & 255]++] = order[i];
    }
    std::swap(order, spare);
  }
  return order;
}

/** Components of vertices that come by descending keys, as far as their number of voxels is below a size.
 *
 * A component that reaches the size, or meets one that has, is closed at that key: this is the result for its vertices.
 * Vertices that come later next to it get their own keys. Components with vertices of the border are nodes, which other
 * images may enlarge: a node for each key at which the component has grown.
 *
 * The link of a vertex is another vertex of its component, or tells what has become of the component. `TWide`: numbers
 * of voxels are beside the links, and may have 64 bits; else they are in the links. */
template <bool TWide>
class AreaForest
{
public:
  static constexpr std::uint32_t Tag = 3U << 30;
  static constexpr std::uint32_t Open = 1U << 30;     ///< the root of a component below the size
  static constexpr std::uint32_t Closed = 2U << 30;   ///< the root of a component that was closed when the root came
  static constexpr std::uint32_t Attached = 3U << 30; ///< with the number of a node
  static constexpr std::uint32_t Unseen = ~std::uint32_t{ 0 };
  static constexpr std::uint32_t UnseenOfBorder = Unseen - 1;
  /** Numbers of vertices and nodes are below this. */
  static constexpr std::uint32_t Limit = Open - 2;

  AreaForest(std::uint32_t * links, std::uint64_t * areas, std::uint64_t size, std::vector<AreaNode> & nodes)
    : m_Links(links)
    , m_Areas(areas)
    , m_Size(size)
    , m_Nodes(nodes)
  {}

  static bool
  IsSeen(std::uint32_t link)
  {
    return link < UnseenOfBorder;
  }
  std::uint32_t
  Find(std::uint32_t vertex)
  {
    std::uint32_t root = vertex;
    while ((m_Links[root] & Tag) == 0)
    {
      root = m_Links[root];
    }
    while ((m_Links[vertex] & Tag) == 0 && m_Links[vertex] != root)
    {
      const std::uint32_t next = m_Links[vertex];
      m_Links[vertex] = root;
      vertex = next;
    }
    return root;
  }

  /** Adds a vertex; then Meet for each of its neighbors that has been added, then End. */
  void
  Begin(std::uint32_t vertex, std::uint64_t key, std::uint64_t area)
  {
    m_Vertex = vertex;
    m_Key = key;
    m_Area = area;
    m_IsClosed = false;
    m_Node = AreaNode::None;
    m_Links[vertex] = Open;
  }
  void
  Meet(std::uint32_t neighbor)
  {
    const std::uint32_t root = this->Find(neighbor);
    const std::uint32_t link = m_Links[root];
    if (root == m_Vertex || (link & Tag) == Closed)
    {
      m_IsClosed = m_IsClosed || root != m_Vertex;
    }
    else if ((link & Tag) == Open)
    {
      m_Area += TWide ? m_Areas[root] : link & ~Tag;
      m_Links[root] = m_Vertex;
    }
    else
    {
      this->MeetNode(link & ~Tag);
    }
  }
  /** `border`: the number of a voxel of the border that the vertex has, or None. */
  void
  End(std::uint32_t border)
  {
    const bool          hasNode = m_Node != AreaNode::None;
    const std::uint64_t area = m_Area + (hasNode ? m_Nodes[m_Node].area : 0);
    const bool          isClosed = m_IsClosed || area >= m_Size;
    if (!hasNode && border == AreaNode::None)
    {
      m_Links[m_Vertex] = isClosed ? Closed : TWide ? Open : Open | static_cast<std::uint32_t>(area);
      if (TWide)
      {
        m_Areas[m_Vertex] = area;
      }
      return;
    }
    if (!hasNode || m_Nodes[m_Node].key != m_Key)
    {
      m_Node = this->AddNode(hasNode ? m_Nodes[m_Node].border : border, m_Node, AreaNode::None);
    }
    m_Nodes[m_Node].area = isClosed ? m_Size : area;
    m_Links[m_Vertex] = Attached | m_Node;
  }

  /** The largest component so far that a node is a part of. */
  std::uint32_t
  TopOf(std::uint32_t node)
  {
    while (m_Nodes[node].up != node)
    {
      node = m_Nodes[node].up = m_Nodes[m_Nodes[node].up].up;
    }
    return node;
  }

private:
  std::uint32_t
  AddNode(std::uint32_t border, std::uint32_t a, std::uint32_t b)
  {
    const auto node = static_cast<std::uint32_t>(m_Nodes.size());
    m_Nodes.push_back({ m_Key, 0, AreaNode::None, node, border });
    for (const std::uint32_t part : { a, b })
    {
      if (part != AreaNode::None)
      {
        m_Nodes[node].area += m_Nodes[part].area;
        m_Nodes[part].parent = m_Nodes[part].up = node;
      }
    }
    return node;
  }
  void
  MeetNode(std::uint32_t node)
  {
    node = this->TopOf(node);
    if (m_Nodes[node].area >= m_Size)
    {
      m_IsClosed = true;
    }
    else if (m_Node == AreaNode::None || m_Node == node)
    {
      m_Node = node;
    }
    else if (m_Nodes[node].key == m_Key || m_Nodes[m_Node].key == m_Key)
    {
      if (m_Nodes[m_Node].key != m_Key)
      {
        std::swap(node, m_Node);
      }
      m_Nodes[m_Node].area += m_Nodes[node].area;
      m_Nodes[node].parent = m_Nodes[node].up = m_Node;
    }
    else
    {
      m_Node = this->AddNode(m_Nodes[node].border, node, m_Node);
    }
  }

  std::uint32_t * const   m_Links;
  std::uint64_t * const   m_Areas;
  const std::uint64_t     m_Size;
  std::vector<AreaNode> & m_Nodes;
  // The vertex that is being added: its component so far, without the node `m_Node`.
  std::uint32_t m_Vertex{ 0 };
  std::uint64_t m_Key{ 0 };
  std::uint64_t m_Area{ 0 };
  bool          m_IsClosed{ false };
  std::uint32_t m_Node{ AreaNode::None };
};

} // namespace chunkwise

#endif
