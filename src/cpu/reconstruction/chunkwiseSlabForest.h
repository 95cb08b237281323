/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabForest_h
#define chunkwiseSlabForest_h

#include "chunkwiseDescendingQueue.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseReconstructionKey.h"

#include <algorithm>
#include <functional>
#include <vector>

// What a reconstruction in slabs needs besides the flood of each slab.
//
// A slab's state is a fixed point: no voxel can be raised by its neighbors. A voxel is open if its state is below its
// mask. Two open neighbors have the same state, and no voxel beside an open one has a larger state. So what raises an
// open plateau from outside comes through voxels of it that lie on a border plane, and what leads through the slab from
// one border voxel to another, and matters, leads through one open plateau. Everything else is final.
namespace chunkwise
{

/** Planes of voxels that follow each other in memory. Voxels are numbered in the order of memory. */
struct SlabGrid
{
  struct Step
  {
    int          x;
    int          y;
    int          plane;
    std::int64_t offset;
  };

  std::int64_t      width; ///< of a plane
  std::int64_t      height;
  std::int64_t      planes;
  std::int64_t      planeVoxels;
  std::vector<Step> steps; ///< those within a plane first
  std::size_t       stepsInPlane{ 0 };

  SlabGrid(std::int64_t theWidth, std::int64_t theHeight, std::int64_t thePlanes, bool fullyConnected)
    : width(theWidth)
    , height(theHeight)
    , planes(thePlanes)
    , planeVoxels(theWidth * theHeight)
  {
    for (const int plane : { 0, -1, 1 })
    {
      for (int i = 0; i < 9; ++i)
      {
        const int x = i % 3 - 1;
        const int y = i / 3 - 1;
        const int moved = (x != 0) + (y != 0) + (plane != 0);
        if (moved == 1 || (moved > 1 && fullyConnected))
        {
          steps.push_back({ x, y, plane, x + y * width + plane * planeVoxels });
        }
      }
      stepsInPlane = plane == 0 ? steps.size() : stepsInPlane;
    }
  }

  std::int64_t
  GetVoxels() const
  {
    return planes * planeVoxels;
  }

  /** Calls visit(neighbor) for each neighbor of a voxel, by the steps [first, last). */
  template <typename TVisit>
  CHUNKWISE_ALWAYS_INLINE void
  ForEachNeighbor(std::uint32_t voxel, std::size_t first, std::size_t last, TVisit && visit) const
  {
    const auto         inPlane = static_cast<std::uint32_t>(planeVoxels);
    const auto         row = static_cast<std::uint32_t>(width);
    const std::int64_t plane = voxel / inPlane;
    const std::int64_t y = voxel % inPlane / row;
    const std::int64_t x = voxel % inPlane % row;
    const bool         inner = x > 0 && x + 1 < width && y > 0 && y + 1 < height && plane > 0 && plane + 1 < planes;
    for (std::size_t i = first; i < last; ++i)
    {
      const Step & step = steps[i];
      if (inner || (IsIn(x + step.x, width) && IsIn(y + step.y, height) && IsIn(plane + step.plane, planes)))
      {
        visit(static_cast<std::uint32_t>(voxel + step.offset));
      }
    }
  }
  template <typename TVisit>
  CHUNKWISE_ALWAYS_INLINE void
  ForEachNeighbor(std::uint32_t voxel, TVisit && visit) const
  {
    ForEachNeighbor(voxel, 0, steps.size(), visit);
  }

private:
  static bool
  IsIn(std::int64_t i, std::int64_t n)
  {
    return i >= 0 && i < n;
  }
};

/** Mask and state of a slab, as their voxels' bits. */
template <typename TKey>
struct SlabVoxels
{
  const TKey *             mask;
  TKey *                   state;
  ReconstructionCode<TKey> code;

  TKey
  GetMask(std::uint32_t voxel) const
  {
    return code.FromBits(mask[voxel]);
  }
  TKey
  GetState(std::uint32_t voxel) const
  {
    return code.FromBits(state[voxel]);
  }
  bool
  IsOpen(std::uint32_t voxel) const
  {
    return GetState(voxel) < GetMask(voxel);
  }
  SlabVoxels
  From(std::int64_t voxel) const
  {
    return { mask + voxel, state + voxel, code };
  }
};

/** What lies beyond a plane, contracted to the voxels of the plane: a forest of their numbers. An edge says the largest
 * key that gets from one end to the other. Ways within the plane are not told. Memory is the owner's. */
template <typename TKey>
struct PlaneForest
{
  static constexpr std::uint32_t None = UINT32_MAX;

  std::uint32_t * parent{ nullptr };
  TKey *          capacity{ nullptr }; ///< of the edge to the parent
  std::int64_t    size{ 0 };

  static std::size_t
  GetBytes(std::int64_t planeVoxels)
  {
    return static_cast<std::size_t>(planeVoxels) * (sizeof(std::uint32_t) + sizeof(TKey));
  }
  /** `memory` has GetBytes(planeVoxels) and is aligned for a key. */
  PlaneForest(void * memory, std::int64_t planeVoxels)
    : parent(static_cast<std::uint32_t *>(memory))
    , size(planeVoxels)
  {
    // 64-bit keys come first, so that both are aligned.
    if (sizeof(TKey) > sizeof(std::uint32_t))
    {
      capacity = static_cast<TKey *>(memory);
      parent = reinterpret_cast<std::uint32_t *>(capacity + planeVoxels);
    }
    else
    {
      capacity = reinterpret_cast<TKey *>(parent + planeVoxels);
    }
  }
  void
  Clear()
  {
    std::fill_n(parent, size, None);
  }
};

/** The other direction of a forest's edges: from a voxel to those whose parent it is. */
class ForestChildren
{
public:
  static constexpr std::uint32_t None = UINT32_MAX;

  static std::size_t
  GetBytes(std::int64_t planeVoxels)
  {
    return static_cast<std::size_t>(planeVoxels) * 2 * sizeof(std::uint32_t);
  }
  explicit ForestChildren(void * memory)
    : m_First(static_cast<std::uint32_t *>(memory))
  {}
  template <typename TKey>
  void
  Find(const PlaneForest<TKey> & forest)
  {
    m_Next = m_First + forest.size;
    std::fill_n(m_First, forest.size, None);
    for (std::int64_t i = 0; i < forest.size; ++i)
    {
      if (forest.parent[i] != None)
      {
        m_Next[i] = m_First[forest.parent[i]];
        m_First[forest.parent[i]] = static_cast<std::uint32_t>(i);
      }
    }
  }
  template <typename TVisit>
  void
  ForEach(std::uint32_t number, TVisit && visit) const
  {
    for (std::uint32_t child = m_First[number]; child != None; child = m_Next[child])
    {
      visit(child);
    }
  }

private:
  std::uint32_t * m_First;
  std::uint32_t * m_Next{ nullptr };
};

/** Asked now and then whether to stop. */
using StopFunction = std::function<bool()>;

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

  /** What the last plane's voxels have goes along the forest's edges. */
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
    // What found no room did not flow on.
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

/** Contracts planes, and what lies beyond the last of them, to the first one.
 *
 * Each open plateau that the first plane has voxels of is a job of its own. Its voxels are taken in descending order of
 * the mask and joined with those of their neighbors that were taken before (Kruskal), and so are the ends of the given
 * forest's edges. Where two components meet that each have a voxel of the first plane, the forest gets an edge. Of
 * equal keys those within the first plane come first, and are no edges of the forest: the slab before this one holds
 * the plane too. */
template <typename TKey>
class SlabContraction
{
public:
  static std::size_t
  GetBytes(std::int64_t planeVoxels, std::int64_t planes)
  {
    return static_cast<std::size_t>(planeVoxels) * sizeof(std::uint32_t) * static_cast<std::size_t>(3 * planes + 2);
  }

  /** `memory` has GetBytes(grid.planeVoxels, grid.planes) and is aligned for int. */
  SlabContraction(const SlabGrid & grid, const SlabVoxels<TKey> & voxels, void * memory, StopFunction shouldStop)
    : m_Grid(grid)
    , m_Voxels(voxels)
    , m_ShouldStop(std::move(shouldStop))
    , m_Count(static_cast<std::uint32_t>(grid.GetVoxels()))
    , m_PlaneVoxels(static_cast<std::uint32_t>(grid.planeVoxels))
    , m_LastPlane(m_Count - m_PlaneVoxels)
    , m_Parent(static_cast<std::uint32_t *>(memory))
    , m_Order(m_Parent + m_Count)
    , m_Other(m_Order + m_Count + m_PlaneVoxels)
  {}

  /** `beyond` is of the last plane, and `children` its. The result is unfinished if it was stopped. */
  void
  Run(Executor & executor, const PlaneForest<TKey> & beyond, const ForestChildren & children,
      PlaneForest<TKey> & forest)
  {
    forest.Clear();
    std::fill_n(m_Parent, m_Count, None);
    m_Found = 0;
    std::vector<Plateau> plateaus;
    std::uint32_t        waiting = 0;
    const auto           join = [&] {
      executor.ParallelFor(static_cast<std::int64_t>(plateaus.size()), [&](std::int64_t i, unsigned int) {
        const Plateau & plateau = plateaus[static_cast<std::size_t>(i)];
        Join(beyond, Sort(beyond, plateau), plateau.end - plateau.begin, forest);
      });
      plateaus.clear();
      waiting = 0;
    };
    for (std::uint32_t i = 0; i < m_PlaneVoxels && !m_ShouldStop(); ++i)
    {
      if (m_Parent[i] != None || !m_Voxels.IsOpen(i))
      {
        continue;
      }
      Plateau plateau = { m_Found, 0 };
      // Of a plateau with one voxel of the plane there is nothing to tell.
      if (Find(i, beyond, children) < 2)
      {
        m_Found = plateau.begin;
        continue;
      }
      plateau.end = m_Found;
      waiting += plateau.end - plateau.begin;
      plateaus.push_back(plateau);
      if (waiting >= VoxelsAtOnce || plateaus.size() == PlateausAtOnce)
      {
        join();
      }
    }
    join();
  }

private:
  static constexpr std::uint32_t None = UINT32_MAX;
  /** Of a plateau that was found, and not taken yet. */
  static constexpr std::uint32_t Waiting = UINT32_MAX - 1;
  static constexpr std::uint32_t VoxelsAtOnce = 1 << 18;
  static constexpr std::size_t   PlateausAtOnce = 1 << 12;
  /** Up to so many items there are cheaper ways to sort than by digits. */
  static constexpr std::uint32_t Few = 64 * sizeof(TKey);

  /** Where its items are in m_Order: voxels, then edges of the forest beyond. */
  struct Plateau
  {
    std::uint32_t begin;
    std::uint32_t end;
  };

  /** Returns how many voxels of the first plane the plateau has. */
  std::uint32_t
  Find(std::uint32_t seed, const PlaneForest<TKey> & beyond, const ForestChildren & children)
  {
    const std::uint32_t begin = m_Found;
    std::uint32_t       ofPlane = 0;
    const auto          reach = [&](std::uint32_t voxel) {
      if (m_Parent[voxel] == None && m_Voxels.IsOpen(voxel))
      {
        m_Parent[voxel] = Waiting;
        m_Order[m_Found++] = voxel;
        ofPlane += voxel < m_PlaneVoxels ? 1 : 0;
      }
    };
    const TKey key = m_Voxels.GetState(seed);
    bool       hasLast = false;
    reach(seed);
    for (std::uint32_t i = begin; i < m_Found; ++i)
    {
      const std::uint32_t voxel = m_Order[i];
      m_Grid.ForEachNeighbor(voxel, reach);
      if (voxel >= m_LastPlane)
      {
        hasLast = true;
        const std::uint32_t number = voxel - m_LastPlane;
        if (beyond.parent[number] != None && beyond.capacity[number] > key)
        {
          reach(m_LastPlane + beyond.parent[number]);
        }
        children.ForEach(number, [&](std::uint32_t child) {
          if (beyond.capacity[child] > key)
          {
            reach(m_LastPlane + child);
          }
        });
      }
      if ((i & 0xFFFF) == 0 && m_ShouldStop())
      {
        return 0;
      }
    }
    const std::uint32_t end = m_Found;
    for (std::uint32_t i = begin; i < end && hasLast; ++i)
    {
      const std::uint32_t voxel = m_Order[i];
      if (voxel >= m_LastPlane && beyond.parent[voxel - m_LastPlane] != None &&
          beyond.capacity[voxel - m_LastPlane] > key)
      {
        m_Order[m_Found++] = m_Count + voxel - m_LastPlane;
      }
    }
    return ofPlane;
  }

  TKey
  KeyOf(const PlaneForest<TKey> & beyond, std::uint32_t item) const
  {
    return item < m_Count ? m_Voxels.GetMask(item) : beyond.capacity[item - m_Count];
  }

  /** Items in descending order of their keys; of equal ones the first plane's voxels, other voxels, edges. */
  const std::uint32_t *
  Sort(const PlaneForest<TKey> & beyond, const Plateau & plateau)
  {
    std::uint32_t *     order = m_Order + plateau.begin;
    std::uint32_t *     other = m_Other + plateau.begin;
    const std::uint32_t count = plateau.end - plateau.begin;
    if (count <= Few)
    {
      // By their numbers they are in that order.
      std::sort(order, order + count, [&](std::uint32_t a, std::uint32_t b) {
        const TKey keys[2] = { KeyOf(beyond, a), KeyOf(beyond, b) };
        return keys[0] != keys[1] ? keys[0] > keys[1] : a < b;
      });
      return order;
    }
    std::uint32_t ofPlane = 0;
    for (std::uint32_t i = 0; i < count; ++i)
    {
      ofPlane += order[i] < m_PlaneVoxels ? 1 : 0;
    }
    for (std::uint32_t i = 0, first = 0, second = ofPlane; i < count; ++i)
    {
      other[order[i] < m_PlaneVoxels ? first++ : second++] = order[i];
    }
    std::swap(order, other);
    for (std::size_t digit = 0; digit < sizeof(TKey); ++digit)
    {
      const auto digitOf = [&](std::uint32_t item) {
        return 255 - (static_cast<unsigned int>(KeyOf(beyond, item) >> (8 * digit)) & 255u);
      };
      std::uint32_t begins[257] = {};
      for (std::uint32_t i = 0; i < count; ++i)
      {
        ++begins[digitOf(order[i]) + 1];
      }
      for (int d = 0; d < 256; ++d)
      {
        begins[d + 1] += begins[d];
      }
      for (std::uint32_t i = 0; i < count; ++i)
      {
        other[begins[digitOf(order[i])]++] = order[i];
      }
      std::swap(order, other);
    }
    return order;
  }

  bool
  IsTaken(std::uint32_t voxel) const
  {
    return m_Parent[voxel] < Waiting;
  }

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

  /** A component with voxels of the first plane has one of them as its root. */
  void
  Unite(std::uint32_t a, std::uint32_t b, TKey key, PlaneForest<TKey> * forest)
  {
    a = FindRoot(a);
    b = FindRoot(b);
    if (a == b)
    {
      return;
    }
    if (a < m_PlaneVoxels && b < m_PlaneVoxels && forest)
    {
      forest->parent[a] = b;
      forest->capacity[a] = key;
    }
    if (a < m_PlaneVoxels && b >= m_PlaneVoxels)
    {
      std::swap(a, b);
    }
    m_Parent[a] = b;
  }

  void
  Join(const PlaneForest<TKey> & beyond, const std::uint32_t * items, std::uint32_t count, PlaneForest<TKey> & forest)
  {
    const std::size_t inPlane = m_Grid.stepsInPlane;
    const std::size_t all = m_Grid.steps.size();
    for (std::uint32_t begin = 0; begin < count;)
    {
      const TKey    key = KeyOf(beyond, items[begin]);
      std::uint32_t end = begin;
      for (; end < count && items[end] < m_PlaneVoxels && KeyOf(beyond, items[end]) == key; ++end)
      {
        const std::uint32_t voxel = items[end];
        m_Parent[voxel] = voxel;
        m_Grid.ForEachNeighbor(voxel, 0, inPlane, [&](std::uint32_t other) {
          if (IsTaken(other))
          {
            Unite(voxel, other, key, nullptr);
          }
        });
      }
      for (end = begin; end < count && KeyOf(beyond, items[end]) == key; ++end)
      {
        const std::uint32_t item = items[end];
        if (item >= m_Count)
        {
          Unite(m_LastPlane + item - m_Count, m_LastPlane + beyond.parent[item - m_Count], key, &forest);
          continue;
        }
        const bool isFirst = item < m_PlaneVoxels;
        if (!isFirst)
        {
          m_Parent[item] = item;
        }
        m_Grid.ForEachNeighbor(item, isFirst ? inPlane : 0, all, [&](std::uint32_t other) {
          if (IsTaken(other))
          {
            Unite(item, other, key, &forest);
          }
        });
        if ((end & 0xFFFF) == 0 && m_ShouldStop())
        {
          return;
        }
      }
      begin = end;
    }
  }

  const SlabGrid &       m_Grid;
  const SlabVoxels<TKey> m_Voxels;
  const StopFunction     m_ShouldStop;
  const std::uint32_t    m_Count;
  const std::uint32_t    m_PlaneVoxels;
  const std::uint32_t    m_LastPlane;
  std::uint32_t *        m_Parent; ///< of a voxel that was taken; None and Waiting of others
  std::uint32_t *        m_Order;
  std::uint32_t *        m_Other;
  std::uint32_t          m_Found{ 0 };
};

} // namespace chunkwise

#endif
