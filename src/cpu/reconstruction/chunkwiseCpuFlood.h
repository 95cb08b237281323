/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuFlood_h
#define chunkwiseCpuFlood_h

#include "chunkwiseDescendingQueue.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseFloodProgress.h"

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

namespace chunkwise
{

/** The voxels of a flood with a frame of one voxel around them: rows of x, planes of y, along up to three axes. Axes
 * without neighbours have no frame, but x has one always. */
struct FloodGrid
{
  std::int64_t extent[3]; ///< without the frame
  int          frame[3];
  bool         fullyConnected;
  std::int64_t stride[3];
  std::int64_t voxels; ///< with the frame
  /** The slowest axis along which there are neighbours: parts are slabs across it. */
  int axis;

  FloodGrid(const std::int64_t (&theExtent)[3], const bool (&neighbours)[3], bool theFullyConnected)
    : fullyConnected(theFullyConnected)
    , axis(0)
  {
    std::int64_t step = 1;
    for (int a = 0; a < 3; ++a)
    {
      extent[a] = theExtent[a];
      frame[a] = a == 0 || neighbours[a] ? 1 : 0;
      stride[a] = step;
      step *= extent[a] + 2 * frame[a];
      axis = frame[a] ? a : axis;
    }
    voxels = step;
  }

  std::int64_t
  Offset(std::int64_t x, std::int64_t y, std::int64_t z) const
  {
    return (x + frame[0]) * stride[0] + (y + frame[1]) * stride[1] + (z + frame[2]) * stride[2];
  }
  std::int64_t
  GetLayers() const
  {
    return extent[axis];
  }
  /** From a voxel to its neighbours. */
  std::vector<std::int64_t>
  GetNeighbours() const
  {
    std::vector<std::int64_t> offsets;
    for (int z = -frame[2]; z <= frame[2]; ++z)
    {
      for (int y = -frame[1]; y <= frame[1]; ++y)
      {
        for (int x = -1; x <= 1; ++x)
        {
          const int moved = (x != 0) + (y != 0) + (z != 0);
          if (moved == 1 || (moved > 1 && fullyConnected))
          {
            offsets.push_back(x + y * stride[1] + z * stride[2]);
          }
        }
      }
    }
    return offsets;
  }
  /** To the rows before a row, in the order of memory, that touch it. */
  std::vector<std::int64_t>
  GetRowsBefore() const
  {
    std::vector<std::int64_t> offsets;
    for (int z = -frame[2]; z <= 0; ++z)
    {
      for (int y = -frame[1]; y <= frame[1]; ++y)
      {
        const bool before = z < 0 || y < 0;
        if (before && (fullyConnected || y == 0 || z == 0))
        {
          offsets.push_back(y * stride[1] + z * stride[2]);
        }
      }
    }
    return offsets;
  }
};

/** Morphological reconstruction of keys by threads that each have a part of the voxels at a time.
 *
 * A part is swept forth and back (Vincent 1993) and then flooded from what the sweeps left, largest keys first, so that
 * a voxel is raised once. Values that reach a part's border layers are handed to the part beyond. Parts beside each
 * other never run at the same time. The state only grows, towards the one fixed point: the order has no influence on
 * it. */
template <typename TKey>
class Flood
{
public:
  /** The layout of the voxels in memory that the owner gives. */
  struct Layout
  {
    std::int64_t parts;
    std::int64_t layersOfPart; ///< of all but the last
    std::size_t  keyBytes;     ///< of the state, and again of the mask
    std::size_t  queueBytes;   ///< of a thread
    std::size_t  boxBytes;     ///< of all lists of changed border voxels
    std::int64_t queueEntries;
    std::int64_t layerVoxels;
    int          threads;

    Layout(const FloodGrid & grid, int concurrency, std::int64_t partVoxels)
    {
      layerVoxels = grid.stride[grid.axis];
      std::int64_t wanted = partVoxels;
      if (!wanted)
      {
        // A queue has room for twice as many entries as the part has voxels.
        wanted =
          concurrency > 1 ? std::clamp<std::int64_t>(grid.voxels / (2 * concurrency + 4), 1 << 14, 1 << 24) : 1 << 25;
      }
      layersOfPart =
        grid.axis == 0 ? grid.GetLayers() : std::clamp<std::int64_t>(wanted / layerVoxels, 1, grid.GetLayers());
      parts = (grid.GetLayers() + layersOfPart - 1) / layersOfPart;
      const std::int64_t partSize = grid.axis == 0 ? grid.voxels : layersOfPart * layerVoxels;
      if (partSize > INT32_MAX)
      {
        throw ParameterError("reconstruction: " + std::to_string(partSize) +
                             " voxels in a layer of the image are more than the CPU can process");
      }
      // Seeds and raised voxels, and what comes in from both sides.
      queueEntries = 2 * partSize + 2 * layerVoxels;
      threads = static_cast<int>(std::min<std::int64_t>(concurrency, parts));
      keyBytes = RoundUp(static_cast<std::size_t>(grid.voxels) * sizeof(TKey));
      queueBytes = RoundUp(DescendingQueue<TKey>::GetBytes(queueEntries) + static_cast<std::size_t>(grid.extent[0]));
      boxBytes = RoundUp(static_cast<std::size_t>(2 * parts * layerVoxels) * sizeof(std::uint32_t));
    }

    std::size_t
    GetBytes() const
    {
      return 2 * keyBytes + static_cast<std::size_t>(threads) * queueBytes + boxBytes;
    }

  private:
    static std::size_t
    RoundUp(std::size_t bytes)
    {
      return (bytes + 63) / 64 * 64;
    }
  };

  Flood(const FloodGrid & grid, const Layout & layout, void * memory)
    : m_Grid(grid)
    , m_Layout(layout)
    , m_Neighbours(grid.GetNeighbours())
    , m_RowsBefore(grid.GetRowsBefore())
    , m_Beyond{ GetNeighboursBeyond(0), GetNeighboursBeyond(1) }
    , m_Parts(static_cast<std::size_t>(layout.parts))
  {
    char * at = static_cast<char *>(memory);
    m_State = reinterpret_cast<TKey *>(at);
    at += layout.keyBytes;
    m_Mask = reinterpret_cast<TKey *>(at);
    at += layout.keyBytes;
    m_Queues = at;
    at += static_cast<std::size_t>(layout.threads) * layout.queueBytes;
    for (std::size_t i = 0; i < m_Parts.size(); ++i)
    {
      Part &             part = m_Parts[i];
      const std::int64_t first = static_cast<std::int64_t>(i) * layout.layersOfPart;
      const std::int64_t last = std::min(first + layout.layersOfPart, grid.GetLayers());
      part.firstLayer = first;
      part.lastLayer = last;
      part.begin = grid.axis == 0 ? 0 : (first + 1) * layout.layerVoxels;
      part.end = grid.axis == 0 ? grid.voxels : (last + 1) * layout.layerVoxels;
      for (Box & box : part.boxes)
      {
        box.changed = reinterpret_cast<std::uint32_t *>(at);
        at += static_cast<std::size_t>(layout.layerVoxels) * sizeof(std::uint32_t);
      }
    }
  }

  /** Keys with the frame around them, as the grid says. The mask's frame is 0, the state's is what lies beyond. The
   * state never exceeds the mask but in the frame. */
  TKey *
  GetState()
  {
    return m_State;
  }
  TKey *
  GetMask()
  {
    return m_Mask;
  }

  /** load(y, z) fills a row of state and mask, frame included, y and z from -1 where they have a frame. False if it was
   * stopped. */
  template <typename TLoad>
  bool
  Run(Executor & executor, RunControl * control, TLoad && load)
  {
    FloodProgress progress(control, m_Grid.extent[0] * m_Grid.extent[1] * m_Grid.extent[2]);
    m_Progress = &progress;
    executor.ParallelFor(static_cast<std::int64_t>(m_Parts.size()),
                         [&](std::int64_t i, unsigned int) { LoadPart(m_Parts[static_cast<std::size_t>(i)], load); });
    m_Stopped = false;
    executor.ParallelFor(m_Layout.threads, [&](std::int64_t t, unsigned int) { Serve(static_cast<int>(t)); });
    if (!m_Stopped)
    {
      progress.Complete();
    }
    return !m_Stopped;
  }

private:
  /** Voxels of a border layer that changed since the part beyond looked. */
  struct Box
  {
    std::uint32_t * changed{ nullptr };
    std::int64_t    count{ 0 };
    bool            all{ false };
    TKey            largest{ 0 };

    bool
    IsEmpty() const
    {
      return count == 0 && !all;
    }
    void
    Clear()
    {
      count = 0;
      all = false;
      largest = 0;
    }
  };

  struct Part
  {
    std::int64_t firstLayer;
    std::int64_t lastLayer;
    std::int64_t begin;
    std::int64_t end;
    Box          boxes[2]; ///< of its first and of its last layer
    bool         swept{ false };
    bool         running{ false };
  };

  struct Worker
  {
    DescendingQueue<TKey> queue;
    unsigned char *       flags;
    std::int64_t          popped{ 0 }; ///< not reported yet
  };

  bool
  ShouldStop() const
  {
    return m_Progress->ShouldStop();
  }

  template <typename TLoad>
  void
  LoadPart(const Part & part, TLoad && load)
  {
    const int  axis = m_Grid.axis;
    const bool isFirst = part.firstLayer == 0;
    const bool isLast = part.lastLayer == m_Grid.GetLayers();
    const auto first = [&](int a) {
      return a == axis ? part.firstLayer - (isFirst ? m_Grid.frame[a] : 0) : -std::int64_t{ m_Grid.frame[a] };
    };
    const auto last = [&](int a) {
      return a == axis ? part.lastLayer + (isLast ? m_Grid.frame[a] : 0) : m_Grid.extent[a] + m_Grid.frame[a];
    };
    std::int64_t loaded = 0;
    for (std::int64_t z = first(2); z < last(2); ++z)
    {
      for (std::int64_t y = first(1); y < last(1); ++y)
      {
        load(y, z);
        loaded += m_Grid.extent[0];
        if (loaded >= FloodProgress::Step)
        {
          m_Progress->AddLoaded(loaded);
          loaded = 0;
          if (ShouldStop())
          {
            return;
          }
        }
      }
    }
    m_Progress->AddLoaded(loaded);
  }

  void
  Serve(int t)
  {
    Worker       worker;
    char * const memory = m_Queues + static_cast<std::size_t>(t) * m_Layout.queueBytes;
    worker.queue.Initialize(memory, m_Layout.queueEntries);
    worker.flags = reinterpret_cast<unsigned char *>(memory + DescendingQueue<TKey>::GetBytes(m_Layout.queueEntries));
    std::unique_lock<std::mutex> lock(m_Mutex);
    for (;;)
    {
      if (m_Stopped || ShouldStop())
      {
        m_Stopped = true;
        m_Changed.notify_all();
        return;
      }
      bool               more = false;
      const std::int64_t chosen = Choose(more);
      if (chosen < 0)
      {
        if (m_Running == 0)
        {
          m_Changed.notify_all();
          return;
        }
        m_Changed.wait(lock);
        continue;
      }
      m_Parts[static_cast<std::size_t>(chosen)].running = true;
      ++m_Running;
      // Wakes another one only if there is something for it: what winds through the parts stays with one thread.
      if (more)
      {
        m_Changed.notify_one();
      }
      lock.unlock();
      try
      {
        Visit(static_cast<std::size_t>(chosen), worker);
      }
      catch (...)
      {
        lock.lock();
        m_Stopped = true;
        m_Changed.notify_all();
        throw;
      }
      lock.lock();
      m_Parts[static_cast<std::size_t>(chosen)].running = false;
      --m_Running;
    }
  }

  /** A part that has work and no neighbour at work: the first that was not swept yet, else the one with the largest key
   * to come in. -1: none. `more`: there may be another one to run beside it. */
  std::int64_t
  Choose(bool & more) const
  {
    std::int64_t best = -1;
    std::int64_t candidates = 0;
    TKey         largest = 0;
    const auto   count = static_cast<std::int64_t>(m_Parts.size());
    for (std::int64_t i = 0; i < count; ++i)
    {
      const Part & part = m_Parts[static_cast<std::size_t>(i)];
      if (part.running || (i > 0 && m_Parts[static_cast<std::size_t>(i - 1)].running) ||
          (i + 1 < count && m_Parts[static_cast<std::size_t>(i + 1)].running))
      {
        continue;
      }
      if (!part.swept)
      {
        more = true;
        return i;
      }
      bool hasWork = false;
      for (int side = 0; side < 2; ++side)
      {
        const Box * const box = Beyond(static_cast<std::size_t>(i), side);
        if (box && !box->IsEmpty())
        {
          hasWork = true;
          if (best < 0 || box->largest > largest)
          {
            best = i;
            largest = box->largest;
          }
        }
      }
      candidates += hasWork ? 1 : 0;
    }
    more = candidates > 1;
    return best;
  }

  /** The box that the part beyond a side hands over; nullptr if there is none. */
  const Box *
  Beyond(std::size_t i, int side) const
  {
    const std::size_t neighbour = side == 0 ? i - 1 : i + 1;
    return neighbour < m_Parts.size() ? &m_Parts[neighbour].boxes[1 - side] : nullptr;
  }

  void
  Visit(std::size_t i, Worker & worker)
  {
    Part &     part = m_Parts[i];
    const bool first = !part.swept;
    worker.queue.Restart();
    if (first)
    {
      Sweep(part, worker);
      part.swept = true;
      for (int side = 0; side < 2; ++side)
      {
        part.boxes[side].Clear();
        part.boxes[side].all = true;
        part.boxes[side].largest = static_cast<TKey>(~TKey{ 0 });
      }
    }
    for (int side = 0; side < 2; ++side)
    {
      // A neighbour that was not swept yet will hand all of its layer over.
      Box * const box = const_cast<Box *>(Beyond(i, side));
      // Beyond the first and the last part lies the frame, which never changes.
      if (m_Grid.axis == 0 || (box ? box->IsEmpty() : !first))
      {
        continue;
      }
      if (!box || box->all)
      {
        TakeLayer(part, side, worker);
      }
      else
      {
        TakeChanged(part, side, *box, worker);
      }
      if (box)
      {
        box->Clear();
      }
    }
    Drain(part, worker);
  }

  /** Offset from a voxel of the border layer to the voxel beyond it. */
  std::int64_t
  StepBeyond(int side) const
  {
    return side == 0 ? -m_Layout.layerVoxels : m_Layout.layerVoxels;
  }

  void
  Raise(Part & part, std::int64_t at, TKey key, Worker & worker)
  {
    m_State[at] = key;
    worker.queue.Push(static_cast<std::uint32_t>(at - part.begin), key);
    if (at < part.begin + m_Layout.layerVoxels)
    {
      Note(part.boxes[0], at - part.begin, key);
    }
    if (at >= part.end - m_Layout.layerVoxels)
    {
      Note(part.boxes[1], at - (part.end - m_Layout.layerVoxels), key);
    }
  }

  void
  Note(Box & box, std::int64_t at, TKey key)
  {
    if (box.count == m_Layout.layerVoxels)
    {
      box.all = true;
    }
    else
    {
      box.changed[box.count++] = static_cast<std::uint32_t>(at);
    }
    box.largest = std::max(box.largest, key);
  }

  /** From a voxel of a border layer to its neighbours beyond. */
  std::vector<std::int64_t>
  GetNeighboursBeyond(int side) const
  {
    const std::int64_t        reach = 1 + (m_Grid.axis == 2 ? m_Grid.frame[1] * m_Grid.stride[1] : 0);
    std::vector<std::int64_t> offsets;
    for (const std::int64_t offset : m_Neighbours)
    {
      const std::int64_t inLayer = offset - StepBeyond(side);
      if (inLayer >= -reach && inLayer <= reach)
      {
        offsets.push_back(offset);
      }
    }
    return offsets;
  }

  /** Raises a voxel of a border layer by what lies beyond. */
  void
  TakeVoxel(Part & part, int side, std::int64_t at, Worker & worker)
  {
    if (m_State[at] < m_Mask[at])
    {
      TKey largest = 0;
      for (const std::int64_t offset : m_Beyond[side])
      {
        largest = std::max(largest, m_State[at + offset]);
      }
      Relax(part, largest, at, worker);
    }
  }

  void
  TakeLayer(Part & part, int side, Worker & worker)
  {
    const std::int64_t begin = side == 0 ? part.begin : part.end - m_Layout.layerVoxels;
    // The corners of the frame have no neighbours beyond, and no mask.
    for (std::int64_t at = begin; at < begin + m_Layout.layerVoxels; ++at)
    {
      TakeVoxel(part, side, at, worker);
    }
  }

  void
  TakeChanged(Part & part, int side, const Box & box, Worker & worker)
  {
    const std::int64_t begin = side == 0 ? part.begin : part.end - m_Layout.layerVoxels;
    for (std::int64_t i = 0; i < box.count; ++i)
    {
      // It takes all that lies beyond at once, so that it is raised, and queued, once.
      for (const std::int64_t offset : m_Beyond[1 - side])
      {
        TakeVoxel(part, side, begin + StepBeyond(side) + box.changed[i] + offset, worker);
      }
    }
  }

  void
  Relax(Part & part, TKey key, std::int64_t to, Worker & worker)
  {
    const TKey through = std::min(key, m_Mask[to]);
    if (through > m_State[to])
    {
      Raise(part, to, through, worker);
    }
  }

  void
  Drain(Part & part, Worker & worker)
  {
    const TKey * const state = m_State + part.begin;
    const auto         size = static_cast<std::uint64_t>(part.end - part.begin);
    const auto         keyOf = [state](std::uint32_t number) { return state[number]; };
    std::uint32_t      number = 0;
    while (worker.queue.Pop(number, keyOf))
    {
      if (++worker.popped == FloodProgress::Step)
      {
        m_Progress->AddPopped(worker.popped);
        worker.popped = 0;
        if (ShouldStop())
        {
          return;
        }
      }
      const TKey key = state[number];
      if (key != worker.queue.GetLevel())
      {
        continue; // it was raised since, and has been here
      }
      for (const std::int64_t offset : m_Neighbours)
      {
        const std::int64_t to = number + offset;
        if (static_cast<std::uint64_t>(to) < size)
        {
          Relax(part, key, part.begin + to, worker);
        }
      }
    }
  }

  /** Raises a row by what the rows at `before` and its own voxels to the left or right let through. */
  template <int VDirection>
  void
  SweepRow(TKey * __restrict state, const TKey * __restrict mask, const Part & part) const
  {
    const std::int64_t n = m_Grid.extent[0];
    const std::int64_t at = state - m_State;
    for (const std::int64_t offset : m_RowsBefore)
    {
      const std::int64_t from = at + VDirection * offset;
      if (from < part.begin || from >= part.end)
      {
        continue;
      }
      const TKey * __restrict row = m_State + from;
      if (m_Grid.fullyConnected)
      {
        for (std::int64_t x = 0; x < n; ++x)
        {
          const TKey largest = std::max(row[x], std::max(row[x - 1], row[x + 1]));
          state[x] = std::max(state[x], std::min(largest, mask[x]));
        }
      }
      else
      {
        for (std::int64_t x = 0; x < n; ++x)
        {
          state[x] = std::max(state[x], std::min(row[x], mask[x]));
        }
      }
    }
    TKey carry = VDirection > 0 ? state[-1] : state[n];
    for (std::int64_t i = 0; i < n; ++i)
    {
      const std::int64_t x = VDirection > 0 ? i : n - 1 - i;
      carry = std::min(mask[x], std::max(state[x], carry));
      state[x] = carry;
    }
  }

  /** Seeds: voxels of a row that can still raise one that the backward sweep had passed before them. */
  void
  FindSeeds(const Part & part, std::int64_t at, Worker & worker)
  {
    const std::int64_t n = m_Grid.extent[0];
    const TKey * const state = m_State + at;
    unsigned char * __restrict flags = worker.flags;
    {
      const TKey * const mask = m_Mask + at;
      for (std::int64_t x = 0; x < n; ++x)
      {
        flags[x] = std::min(state[x], mask[x + 1]) > state[x + 1];
      }
    }
    for (const std::int64_t offset : m_RowsBefore)
    {
      const std::int64_t to = at - offset;
      if (to < part.begin || to >= part.end)
      {
        continue;
      }
      const TKey * const other = m_State + to;
      const TKey * const mask = m_Mask + to;
      for (int side = m_Grid.fullyConnected ? -1 : 0; side <= (m_Grid.fullyConnected ? 1 : 0); ++side)
      {
        for (std::int64_t x = 0; x < n; ++x)
        {
          flags[x] |= std::min(state[x], mask[x + side]) > other[x + side];
        }
      }
    }
    for (std::int64_t x = 0; x < n; ++x)
    {
      if (x + 8 <= n)
      {
        std::uint64_t eight = 0;
        std::memcpy(&eight, flags + x, sizeof(eight));
        if (eight == 0)
        {
          x += 7;
          continue;
        }
      }
      if (flags[x])
      {
        worker.queue.Push(static_cast<std::uint32_t>(at + x - part.begin), state[x]);
      }
    }
  }

  void
  Sweep(Part & part, Worker & worker)
  {
    const int          axis = m_Grid.axis;
    const std::int64_t firstY = axis == 1 ? part.firstLayer : 0;
    const std::int64_t lastY = axis == 1 ? part.lastLayer : m_Grid.extent[1];
    const std::int64_t firstZ = axis == 2 ? part.firstLayer : 0;
    const std::int64_t lastZ = axis == 2 ? part.lastLayer : m_Grid.extent[2];
    std::int64_t       swept = 0;
    // Says what was swept, now and then; false once it is to stop.
    const auto goesOn = [&] {
      swept += m_Grid.extent[0];
      if (swept < FloodProgress::Step)
      {
        return true;
      }
      m_Progress->AddSwept(swept);
      swept = 0;
      return !ShouldStop();
    };
    for (std::int64_t z = firstZ; z < lastZ; ++z)
    {
      for (std::int64_t y = firstY; y < lastY; ++y)
      {
        const std::int64_t at = m_Grid.Offset(0, y, z);
        SweepRow<1>(m_State + at, m_Mask + at, part);
        if (!goesOn())
        {
          return;
        }
      }
    }
    for (std::int64_t z = lastZ; z-- > firstZ;)
    {
      for (std::int64_t y = lastY; y-- > firstY;)
      {
        const std::int64_t at = m_Grid.Offset(0, y, z);
        SweepRow<-1>(m_State + at, m_Mask + at, part);
        FindSeeds(part, at, worker);
        if (!goesOn())
        {
          return;
        }
      }
    }
    m_Progress->AddSwept(swept);
  }

  const FloodGrid                 m_Grid;
  const Layout                    m_Layout;
  const std::vector<std::int64_t> m_Neighbours;
  const std::vector<std::int64_t> m_RowsBefore;
  const std::vector<std::int64_t> m_Beyond[2];
  std::vector<Part>               m_Parts;
  TKey *                          m_State;
  TKey *                          m_Mask;
  char *                          m_Queues;
  FloodProgress *                 m_Progress{ nullptr }; ///< while it runs
  std::mutex                      m_Mutex;
  std::condition_variable         m_Changed;
  int                             m_Running{ 0 };
  bool                            m_Stopped{ false };
};

} // namespace chunkwise

#endif
