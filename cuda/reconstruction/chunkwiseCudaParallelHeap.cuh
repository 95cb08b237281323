/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaParallelHeap_cuh
#define chunkwiseCudaParallelHeap_cuh

#include <cstdint>
#include <cuda_runtime.h>

// A priority queue of a block of threads: a binary tree of nodes with several items each, in descending order, where no
// item of a node is less than one of its children's (N. Deo, S. Prasad, "Parallel heap: an optimal parallel priority
// queue", J. Supercomputing 6, 1992; on GPUs X. He, D. Agarwal, S. K. Prasad, 2012). Here the largest go first.
//
// Work is done in cycles. One takes the largest items of root and buffer away, fills the root again, and sends what is
// too much on its way to a new node. Below the root, what is in progress moves on by two levels in each cycle: warps
// work at the odd levels, then at the even ones, so that no two of them have a node in common.
//  - An insertion carries the items of a new last node down the path to it; each node on the way keeps the largest.
//  - A deletion mends a node that has got lesser items: of it and its children the largest stay, the next go to the
//    child whose least item is the lesser one, and the least to the other child, where it goes on.
namespace chunkwise
{

/** A value above, what it belongs to below; 0: none. */
using HeapItem = std::uint64_t;

constexpr int HeapThreads = 128;
constexpr int HeapWarps = HeapThreads / 32;
/** The most levels of a heap's tree; the root's is 1. */
constexpr int HeapLevels = 20;

/** The state of a block's heap, for all its threads; in shared memory. */
struct HeapState
{
  std::uint32_t nodes; ///< the root is always one of them; all but the root are full
  std::uint32_t rootItems;
  std::uint32_t buffered;
  std::uint32_t fresh;
  /** By level: the node where an insertion ends, and that where a deletion is. */
  std::uint32_t insertions[32];
  std::uint32_t deletions[32];
};

/** The numbers of items in the steps of a cycle. */
struct HeapCycle
{
  int           total;
  int           fromRoot;
  int           fromLast; ///< of the last node, where root and buffer have too few
  int           fromBuffer;
  int           fresh;
  int           taken;
  int           toRoot;
  int           inserted;
  int           kept;    ///< in the buffer
  std::uint32_t nodes;   ///< afterwards
  bool          hasRoom; ///< new items may come
};

/** How many items in descending order go before `item`; also those equal to it, if they are `first`. */
__device__ inline int
CountBefore(const HeapItem * items, int length, HeapItem item, bool first)
{
  int begin = 0;
  int end = length;
  while (begin < end)
  {
    const int      middle = (begin + end) / 2;
    const HeapItem other = items[middle];
    if (other > item || (first && other == item))
    {
      begin = middle + 1;
    }
    else
    {
      end = middle;
    }
  }
  return begin;
}

/** The items of a warp's lanes in descending order. */
__device__ inline HeapItem
SortInWarp(HeapItem item, int lane)
{
#pragma unroll
  for (int size = 2; size <= 32; size *= 2)
  {
#pragma unroll
    for (int step = size / 2; step > 0; step /= 2)
    {
      const HeapItem other = __shfl_xor_sync(0xFFFFFFFFu, item, step);
      const bool     wantsLarge = ((lane & step) == 0) == ((lane & size) == 0);
      item = (other > item) == wantsLarge ? other : item;
    }
  }
  return item;
}

/** New items that a cycle can take. */
__host__ __device__ constexpr int
HeapFreshItems(int nodeItems)
{
  return nodeItems > HeapThreads / 2 ? 4 * nodeItems : 2 * HeapThreads;
}

__host__ __device__ constexpr int
HeapBufferItems(int nodeItems)
{
  return 2 * HeapFreshItems(nodeItems);
}

/** Bytes of a block's shared memory. */
inline std::size_t
HeapSharedBytes(int nodeItems)
{
  const int items =
    HeapFreshItems(nodeItems) + 2 * HeapBufferItems(nodeItems) + 3 * nodeItems + 3 * nodeItems * HeapWarps;
  return static_cast<std::size_t>(items) * sizeof(HeapItem);
}

class ParallelHeap
{
public:
  /** `shared` has HeapSharedBytes, `carried` a node for each level. */
  __device__
  ParallelHeap(HeapState & state, HeapItem * shared, HeapItem * carried, HeapItem * nodes, std::uint32_t mostNodes,
               int nodeItems)
    : m_State(state)
    , m_Carried(carried)
    , m_Nodes(nodes)
    , m_MostNodes(mostNodes)
    , m_NodeItems(nodeItems)
    , m_Thread(static_cast<int>(threadIdx.x))
    , m_Warp(static_cast<int>(threadIdx.x) / 32)
    , m_Lane(static_cast<int>(threadIdx.x) % 32)
    , m_Fresh(shared)
    , m_Buffer(m_Fresh + HeapFreshItems(nodeItems))
    , m_NextBuffer(m_Buffer + HeapBufferItems(nodeItems))
    , m_Root(m_NextBuffer + HeapBufferItems(nodeItems))
    , m_Last(m_Root + nodeItems)
    , m_Taken(m_Last + nodeItems)
    , m_Staging(m_Taken + nodeItems + 3 * nodeItems * m_Warp)
  {}

  /** By all threads; others may look at it after they have met. */
  __device__ void
  Clear()
  {
    if (m_Thread < 32)
    {
      m_State.insertions[m_Thread] = m_State.deletions[m_Thread] = 0;
    }
    if (m_Thread == 0)
    {
      m_State.nodes = 1;
      m_State.rootItems = m_State.buffered = m_State.fresh = 0;
    }
  }

  /** The same for all threads. `mayTake`: whether items are wanted. */
  __device__ HeapCycle
  Plan(bool mayTake) const
  {
    const int most = HeapFreshItems(m_NodeItems);
    HeapCycle cycle;
    cycle.fromRoot = static_cast<int>(m_State.rootItems);
    cycle.fromBuffer = static_cast<int>(m_State.buffered);
    cycle.fresh = min(static_cast<int>(m_State.fresh), most);
    const int there = cycle.fromRoot + cycle.fromBuffer + cycle.fresh;
    cycle.taken = mayTake ? min(m_NodeItems, there) : 0;
    cycle.fromLast = m_State.nodes > 1 && there - cycle.taken < m_NodeItems ? m_NodeItems : 0;
    cycle.nodes = m_State.nodes - (cycle.fromLast ? 1 : 0);
    cycle.total = there + cycle.fromLast;
    const bool canInsert = cycle.nodes < m_MostNodes;
    Divide(cycle, canInsert);
    if (cycle.kept > most && canInsert)
    {
      // First the buffer has to become shorter.
      cycle.taken = 0;
      Divide(cycle, canInsert);
    }
    cycle.hasRoom = cycle.kept <= most || !canInsert;
    cycle.kept = min(cycle.kept, canInsert ? HeapBufferItems(m_NodeItems) : most);
    cycle.nodes += cycle.inserted ? 1 : 0;
    return cycle;
  }

  __device__ bool
  IsFull() const
  {
    return m_State.nodes >= m_MostNodes;
  }

  /** Merges root, buffer and new items, and takes the largest of them. By all threads; drop(item) gets the items that
   * have no room. */
  template <typename TDrop>
  __device__ void
  Merge(const HeapCycle & cycle, TDrop && drop)
  {
    for (int i = m_Thread; i < cycle.fromRoot; i += HeapThreads)
    {
      m_Root[i] = Node(1)[i];
    }
    // The last node's items may still be on their way to it.
    std::uint32_t pending = 0;
    if (cycle.fromLast)
    {
      pending = __ballot_sync(0xFFFFFFFFu, m_State.insertions[m_Lane] == m_State.nodes);
      const HeapItem * const from = pending ? Carried(__ffs(static_cast<int>(pending)) - 1) : Node(m_State.nodes);
      for (int i = m_Thread; i < cycle.fromLast; i += HeapThreads)
      {
        m_Last[i] = from[i];
      }
    }
    for (int first = 32 * m_Warp; first < cycle.fresh; first += HeapThreads)
    {
      const int      i = first + m_Lane;
      const HeapItem item = SortInWarp(i < cycle.fresh ? m_Fresh[i] : 0, m_Lane);
      if (i < cycle.fresh)
      {
        m_Fresh[i] = item;
      }
    }
    __syncthreads();
    for (int i = m_Thread; i < cycle.total; i += HeapThreads)
    {
      Place(cycle, i, drop);
    }
    if (cycle.inserted)
    {
      // Until its items arrive it counts as empty.
      for (int i = m_Thread; i < m_NodeItems; i += HeapThreads)
      {
        Node(cycle.nodes)[i] = 0;
      }
    }
    if (m_Thread == 0)
    {
      m_State.nodes = cycle.nodes;
      m_State.rootItems = static_cast<std::uint32_t>(cycle.toRoot);
      m_State.buffered = static_cast<std::uint32_t>(cycle.kept);
      m_State.fresh = 0;
      if (pending)
      {
        m_State.insertions[__ffs(static_cast<int>(pending)) - 1] = 0;
      }
      if (cycle.inserted)
      {
        // It is in order with the root.
        m_State.insertions[2] = cycle.nodes;
      }
      if (cycle.taken)
      {
        m_State.deletions[1] = 1;
      }
    }
    HeapItem * const buffer = m_Buffer;
    m_Buffer = m_NextBuffer;
    m_NextBuffer = buffer;
    __syncthreads();
  }

  /** The items that the last merge has taken. */
  __device__ const HeapItem *
  GetTaken() const
  {
    return m_Taken;
  }

  /** Adds a new item; false if there is no room. Only if the cycle's plan says that there may be. */
  __device__ bool
  Add(HeapItem item)
  {
    const std::uint32_t i = atomicAdd(&m_State.fresh, 1u);
    if (i >= static_cast<std::uint32_t>(HeapFreshItems(m_NodeItems)))
    {
      return false;
    }
    m_Fresh[i] = item;
    return true;
  }

  /** Insertions and deletions at the levels of a parity, 1 or 2 its first; the warps share them. */
  __device__ void
  MoveOn(int parity)
  {
    const int last = LevelOf(m_State.nodes);
    for (int level = parity + 2 * m_Warp; level <= last; level += 2 * HeapWarps)
    {
      Insert(level);
      Delete(level);
    }
  }

private:
  __device__ HeapItem *
  Node(std::uint32_t node) const
  {
    return m_Nodes + static_cast<std::size_t>(node - 1) * static_cast<std::size_t>(m_NodeItems);
  }
  __device__ HeapItem *
  Carried(int level) const
  {
    return m_Carried + level * m_NodeItems;
  }
  __device__ static int
  LevelOf(std::uint32_t node)
  {
    return 32 - __clz(static_cast<int>(node));
  }

  __device__ void
  Divide(HeapCycle & cycle, bool canInsert) const
  {
    const int rest = cycle.total - cycle.taken;
    cycle.toRoot = min(rest, m_NodeItems);
    cycle.inserted = canInsert && rest - cycle.toRoot >= m_NodeItems ? m_NodeItems : 0;
    cycle.kept = rest - cycle.toRoot - cycle.inserted;
  }

  /** Item `i` of the root's, the last node's, the buffer's and the new ones to where its rank belongs. */
  template <typename TDrop>
  __device__ void
  Place(const HeapCycle & cycle, int i, TDrop && drop)
  {
    const HeapItem * const runs[3] = { m_Root, m_Last, m_Buffer };
    const int              lengths[3] = { cycle.fromRoot, cycle.fromLast, cycle.fromBuffer };
    int                    own = 0;
    int                    rank = i;
#pragma unroll
    for (int k = 0; k < 3; ++k)
    {
      if (own == k && rank >= lengths[k])
      {
        rank -= lengths[k];
        ++own;
      }
    }
    // New items are in order by 32.
    const int      ownPiece = own == 3 ? rank / 32 : -1;
    const HeapItem item = own == 0 ? m_Root[rank] : own == 1 ? m_Last[rank] : own == 2 ? m_Buffer[rank] : m_Fresh[rank];
    rank -= own == 3 ? 32 * ownPiece : 0;
#pragma unroll
    for (int k = 0; k < 3; ++k)
    {
      if (k != own)
      {
        rank += CountBefore(runs[k], lengths[k], item, k < own);
      }
    }
    for (int piece = 0; 32 * piece < cycle.fresh; ++piece)
    {
      if (piece != ownPiece)
      {
        rank += CountBefore(m_Fresh + 32 * piece, min(32, cycle.fresh - 32 * piece), item, piece < ownPiece);
      }
    }
    if (rank < cycle.taken)
    {
      m_Taken[rank] = item;
      return;
    }
    rank -= cycle.taken;
    if (rank < cycle.toRoot)
    {
      Node(1)[rank] = item;
      return;
    }
    rank -= cycle.toRoot;
    if (rank < cycle.inserted)
    {
      Carried(2)[rank] = item;
      return;
    }
    rank -= cycle.inserted;
    if (rank < cycle.kept)
    {
      m_NextBuffer[rank] = item;
      return;
    }
    drop(item);
  }

  /** A warp copies a node's items. */
  __device__ void
  Copy(HeapItem * to, const HeapItem * from) const
  {
    for (int i = m_Lane; i < m_NodeItems; i += 32)
    {
      to[i] = from[i];
    }
  }

  __device__ void
  Insert(int level)
  {
    const std::uint32_t node = m_State.insertions[level];
    if (node == 0)
    {
      return;
    }
    const int r = m_NodeItems;
    const int further = LevelOf(node) - level;
    __syncwarp();
    if (further == 0)
    {
      Copy(Node(node), Carried(level));
    }
    else
    {
      HeapItem * const here = Node(node >> further);
      Copy(m_Staging, here);
      Copy(m_Staging + r, Carried(level));
      __syncwarp();
      for (int i = m_Lane; i < 2 * r; i += 32)
      {
        const HeapItem item = m_Staging[i];
        const int      rank =
          i < r ? i + CountBefore(m_Staging + r, r, item, false) : i - r + CountBefore(m_Staging, r, item, true);
        (rank < r ? here + rank : Carried(level + 1) + rank - r)[0] = item;
      }
    }
    if (m_Lane == 0)
    {
      m_State.insertions[level] = 0;
      if (further != 0)
      {
        m_State.insertions[level + 1] = node;
      }
    }
    __syncwarp();
  }

  __device__ void
  Delete(int level)
  {
    const std::uint32_t node = m_State.deletions[level];
    if (node == 0)
    {
      return;
    }
    __syncwarp();
    const int           r = m_NodeItems;
    const std::uint32_t children = 2 * node;
    std::uint32_t       next = 0;
    if (children <= m_State.nodes)
    {
      const bool       hasSecond = children + 1 <= m_State.nodes;
      HeapItem * const first = m_Staging + r;
      HeapItem * const second = first + r;
      Copy(m_Staging, Node(node));
      Copy(first, Node(children));
      if (hasSecond)
      {
        Copy(second, Node(children + 1));
      }
      __syncwarp();
      // A child whose items are still on their way to it is empty.
      const int  ofFirst = first[0] ? r : 0;
      const int  ofSecond = hasSecond && second[0] ? r : 0;
      const bool inOrder = (!ofFirst || first[0] <= m_Staging[r - 1]) && (!ofSecond || second[0] <= m_Staging[r - 1]);
      if (!inOrder)
      {
        const bool          firstGoesOn = ofFirst && (!ofSecond || first[r - 1] >= second[r - 1]);
        const std::uint32_t goesOn = firstGoesOn ? children : children + 1;
        const std::uint32_t other = firstGoesOn ? children + 1 : children;
        const bool          both = ofFirst && ofSecond;
        for (int i = m_Lane; i < 3 * r; i += 32)
        {
          const int own = i / r;
          if ((own == 1 && !ofFirst) || (own == 2 && !ofSecond))
          {
            continue;
          }
          const HeapItem item = m_Staging[i];
          int            rank = i - own * r;
          rank += own == 0 ? 0 : CountBefore(m_Staging, r, item, true);
          rank += own == 1 ? 0 : CountBefore(first, ofFirst, item, own > 1);
          rank += own == 2 ? 0 : CountBefore(second, ofSecond, item, false);
          const std::uint32_t to = rank < r ? node : rank < 2 * r && both ? other : goesOn;
          Node(to)[rank % r] = item;
        }
        next = goesOn;
      }
    }
    if (m_Lane == 0)
    {
      m_State.deletions[level] = 0;
      if (next)
      {
        m_State.deletions[level + 1] = next;
      }
    }
    __syncwarp();
  }

  HeapState &         m_State;
  HeapItem * const    m_Carried;
  HeapItem * const    m_Nodes;
  const std::uint32_t m_MostNodes;
  const int           m_NodeItems;
  const int           m_Thread;
  const int           m_Warp;
  const int           m_Lane;
  HeapItem * const    m_Fresh;
  HeapItem *          m_Buffer;
  HeapItem *          m_NextBuffer;
  HeapItem * const    m_Root;
  HeapItem * const    m_Last;
  HeapItem * const    m_Taken;
  HeapItem * const    m_Staging;
};

} // namespace chunkwise

#endif
