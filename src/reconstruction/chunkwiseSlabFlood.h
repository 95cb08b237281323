/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabFlood_h
#define chunkwiseSlabFlood_h

#include "chunkwiseDescendingQueue.h"
#include "chunkwiseSlabForest.h"

namespace chunkwise
{

/** Raises the state of a slab from single voxels on, the last plane's also along a forest's edges. */
template <typename TKey>
class SlabFlood
{
public:
  /** How many raised voxels `bytes` of memory hold at a time; the fewest that it may be made for. */
  static std::int64_t
  GetEntries(std::size_t bytes)
  {
    constexpr std::int64_t blockBytes = 128;
    constexpr std::int64_t entriesOfBlock = DescendingQueue<TKey>::EntriesOfBlock;
    return (static_cast<std::int64_t>(bytes) / blockBytes - 256 * std::int64_t{ sizeof(TKey) } - 2) * entriesOfBlock;
  }
  static std::size_t
  GetLeastBytes()
  {
    return DescendingQueue<TKey>::GetBytes(1 << 10);
  }

  /** `entries`: see GetEntries; `memory` is aligned for int. */
  SlabFlood(const SlabGrid & grid, const SlabVoxels<TKey> & voxels, const PlaneForest<TKey> & forest,
            const ForestChildren & children, void * memory, std::int64_t entries, StopFunction shouldStop)
    : m_Grid(grid)
    , m_Voxels(voxels)
    , m_Forest(forest)
    , m_Children(children)
    , m_LastPlane(static_cast<std::uint32_t>((grid.planes - 1) * grid.planeVoxels))
    , m_Entries(entries)
    , m_ShouldStop(std::move(shouldStop))
  {
    m_Queue.Initialize(memory, entries);
  }

  /** A key arrives at a voxel from outside. False if there was no room to let it flow on: Drain, then go on. */
  bool
  Offer(std::uint32_t voxel, TKey key)
  {
    const TKey through = std::min(key, m_Voxels.GetMask(voxel));
    if (through <= m_Voxels.GetState(voxel))
    {
      return true;
    }
    if (m_Waiting == m_Entries)
    {
      return false;
    }
    m_Voxels.state[voxel] = m_Voxels.code.ToBits(through);
    m_Queue.Push(voxel, through);
    ++m_Waiting;
    return true;
  }

  /** The values of the last plane's voxels go along the forest's edges. */
  void
  OfferForest()
  {
    for (std::uint32_t i = 0; i < m_Forest.size && !m_Stopped; ++i)
    {
      if (m_Forest.parent[i] == PlaneForest<TKey>::None)
      {
        continue;
      }
      const std::uint32_t ends[2] = { m_LastPlane + i, m_LastPlane + m_Forest.parent[i] };
      for (int e = 0; e < 2; ++e)
      {
        while (!Offer(ends[1 - e], std::min(m_Voxels.GetState(ends[e]), m_Forest.capacity[i])) && !m_Stopped)
        {
          Drain();
        }
      }
    }
  }

  /** Until nothing can be raised by what was offered. False if it was stopped. */
  bool
  Finish()
  {
    Drain();
    // Values that found no room did not flow on.
    while (m_Lost && !m_Stopped)
    {
      m_Lost = false;
      OfferForest();
      const auto voxels = static_cast<std::uint32_t>(m_Grid.GetVoxels());
      for (std::uint32_t voxel = 0; voxel < voxels && !m_Stopped; ++voxel)
      {
        if (m_Voxels.IsOpen(voxel))
        {
          TKey largest = 0;
          m_Grid.ForEachNeighbor(voxel,
                                 [&](std::uint32_t other) { largest = std::max(largest, m_Voxels.GetState(other)); });
          while (!Offer(voxel, largest) && !m_Stopped)
          {
            Drain();
          }
        }
      }
      Drain();
    }
    return !m_Stopped;
  }

  void
  Drain()
  {
    std::uint32_t voxel = 0;
    while (m_Queue.Pop(voxel, [this](std::uint32_t v) { return m_Voxels.GetState(v); }))
    {
      --m_Waiting;
      if ((++m_Popped & 0xFFFF) == 0 && m_ShouldStop())
      {
        m_Stopped = true;
        return;
      }
      const TKey key = m_Voxels.GetState(voxel);
      if (key != m_Queue.GetLevel())
      {
        continue; // it was raised since, and has been here
      }
      const auto raise = [&](std::uint32_t to, TKey arrives) { m_Lost = !Offer(to, arrives) || m_Lost; };
      m_Grid.ForEachNeighbor(voxel, [&](std::uint32_t other) { raise(other, key); });
      if (voxel >= m_LastPlane)
      {
        const std::uint32_t number = voxel - m_LastPlane;
        if (m_Forest.parent[number] != PlaneForest<TKey>::None)
        {
          raise(m_LastPlane + m_Forest.parent[number], std::min(key, m_Forest.capacity[number]));
        }
        m_Children.ForEach(
          number, [&](std::uint32_t child) { raise(m_LastPlane + child, std::min(key, m_Forest.capacity[child])); });
      }
    }
    // An entry that was pushed to a place where it had no use any more was dropped.
    m_Waiting = 0;
    m_Queue.Restart();
  }

private:
  const SlabGrid &          m_Grid;
  const SlabVoxels<TKey>    m_Voxels;
  const PlaneForest<TKey> & m_Forest;
  const ForestChildren &    m_Children;
  const std::uint32_t       m_LastPlane;
  const std::int64_t        m_Entries;
  const StopFunction        m_ShouldStop;
  DescendingQueue<TKey>     m_Queue;
  std::int64_t              m_Waiting{ 0 };
  std::uint64_t             m_Popped{ 0 };
  bool                      m_Lost{ false };
  bool                      m_Stopped{ false };
};

} // namespace chunkwise

#endif
