/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseTileForest_h
#define chunkwiseTileForest_h

#include "chunkwiseCpuFlood.h"

namespace chunkwise
{

/** An edge between two numbered voxels of a tile's border and the largest key that it lets through. */
template <typename TKey>
struct ForestEdge
{
  std::uint32_t first;
  std::uint32_t second;
  TKey          capacity;
};

/** A tile reduced to a forest on the voxels of its border, for morphological reconstruction of keys.
 *
 * Voxels are taken in descending order of the mask and joined with those of their neighbours that were taken before
 * (Kruskal). If two components meet that each have a voxel of the border, the forest gets an edge of the mask's key;
 * the best state within a component becomes the state of its voxel of the border. A value that reaches one voxel of the
 * border from another through the tile is equally large through the forest: the way through a tree of greatest
 * capacities is a best one, and of the components that it passes each counts as its voxel of the border, to which
 * nothing less leads.
 */
template <typename TKey>
class TileForest
{
public:
  static std::size_t
  GetBytes(std::int64_t framedVoxels)
  {
    return static_cast<std::size_t>(framedVoxels) * (2 * sizeof(TKey) + 4 * sizeof(std::uint32_t)) + 256;
  }

  /** `memory` has GetBytes(grid.voxels). */
  TileForest(const FloodGrid & grid, void * memory)
    : m_Grid(grid)
    , m_Neighbours(grid.GetNeighbours())
  {
    char *     at = static_cast<char *>(memory);
    const auto take = [&](auto *& pointer) {
      pointer = reinterpret_cast<std::remove_reference_t<decltype(pointer)>>(at);
      at += (static_cast<std::size_t>(grid.voxels) * sizeof(*pointer) + 7) / 8 * 8;
    };
    take(m_Mask);
    take(m_State);
    take(m_Order);
    take(m_Other);
    take(m_Parent);
    take(m_Terminal);
  }

  /** Keys with the frame around them, as the grid says. To be filled but for the frame. The state is lost. */
  TKey *
  GetMask()
  {
    return m_Mask;
  }
  TKey *
  GetState()
  {
    return m_State;
  }
  static constexpr std::uint32_t None = UINT32_MAX;
  /** For each voxel, with a frame around: its number if it is of the border, else None. To be filled but for the frame.
   */
  std::uint32_t *
  GetTerminals()
  {
    return m_Terminal;
  }

  /** Raises states[number] to the best that the tile's own states bring there, and writes the forest, which has fewer
   * edges than there are numbers. Returns the number of edges. */
  std::uint32_t
  Build(TKey * states, ForestEdge<TKey> * edges)
  {
    Sort();
    std::fill(m_Parent, m_Parent + m_Grid.voxels, None);
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < m_Voxels; ++i)
    {
      const std::uint32_t voxel = m_Order[i];
      const TKey          key = m_Mask[voxel];
      if (key == 0)
      {
        break; // nothing goes through it and all that follow
      }
      std::uint32_t root = voxel;
      m_Parent[voxel] = voxel;
      if (m_Terminal[voxel] != None)
      {
        states[m_Terminal[voxel]] = std::max(states[m_Terminal[voxel]], m_State[voxel]);
      }
      for (const std::int64_t offset : m_Neighbours)
      {
        const auto neighbour = static_cast<std::uint32_t>(voxel + offset);
        if (m_Parent[neighbour] == None)
        {
          continue;
        }
        const std::uint32_t other = FindRoot(neighbour);
        if (other == root)
        {
          continue;
        }
        const std::uint32_t mine = m_Terminal[root];
        const std::uint32_t its = m_Terminal[other];
        if (mine != None && its != None)
        {
          edges[count++] = { mine, its, key };
        }
        else if (mine != None)
        {
          states[mine] = std::max(states[mine], std::min(m_State[other], key));
        }
        else if (its != None)
        {
          states[its] = std::max(states[its], std::min(m_State[root], key));
        }
        // The component that was there stays, so that ways to its root do not grow.
        m_Parent[root] = other;
        m_Terminal[other] = its != None ? its : mine;
        m_State[other] = std::max(m_State[other], m_State[root]);
        root = other;
      }
    }
    return count;
  }

private:
  std::uint32_t
  FindRoot(std::uint32_t voxel)
  {
    while (m_Parent[voxel] != voxel)
    {
      m_Parent[voxel] = m_Parent[m_Parent[voxel]];
      voxel = m_Parent[voxel];
    }
    return voxel;
  }

  /** Voxels in descending order of the mask, digit by digit. */
  void
  Sort()
  {
    m_Voxels = 0;
    for (std::int64_t z = 0; z < m_Grid.extent[2]; ++z)
    {
      for (std::int64_t y = 0; y < m_Grid.extent[1]; ++y)
      {
        const auto at = static_cast<std::uint32_t>(m_Grid.Offset(0, y, z));
        for (std::uint32_t x = 0; x < static_cast<std::uint32_t>(m_Grid.extent[0]); ++x)
        {
          m_Order[m_Voxels++] = at + x;
        }
      }
    }
    for (std::size_t digit = 0; digit < sizeof(TKey); ++digit)
    {
      const auto digitOf = [&](std::uint32_t voxel) {
        return 255 - (static_cast<unsigned int>(m_Mask[voxel] >> (8 * digit)) & 255u);
      };
      std::uint32_t begins[257] = {};
      for (std::uint32_t i = 0; i < m_Voxels; ++i)
      {
        ++begins[digitOf(m_Order[i]) + 1];
      }
      for (int d = 0; d < 256; ++d)
      {
        begins[d + 1] += begins[d];
      }
      for (std::uint32_t i = 0; i < m_Voxels; ++i)
      {
        m_Other[begins[digitOf(m_Order[i])]++] = m_Order[i];
      }
      std::swap(m_Order, m_Other);
    }
  }

  const FloodGrid                 m_Grid;
  const std::vector<std::int64_t> m_Neighbours;
  TKey *                          m_Mask;
  TKey *                          m_State; ///< of a component without a voxel of the border, at its root: its best
  std::uint32_t *                 m_Order;
  std::uint32_t *                 m_Other;
  std::uint32_t *                 m_Parent;
  std::uint32_t *                 m_Terminal; ///< of a component, at its root
  std::uint32_t                   m_Voxels{ 0 };
};

} // namespace chunkwise

#endif
