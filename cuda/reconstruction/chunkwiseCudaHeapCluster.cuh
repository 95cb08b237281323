/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaHeapCluster_cuh
#define chunkwiseCudaHeapCluster_cuh

#include "chunkwiseCudaChunkBorder.cuh"
#include "chunkwiseCudaParallelHeap.cuh"
#include "chunkwiseRoundUp.h"

// Morphological reconstruction by a cluster of parallel heaps (X. He, Y. Wu, Z. Di, J. Chen: MR_GPU, in Chinese).
//
// Each heap has a block of threads and separate tiles. In a cycle the heap's largest voxels raise their neighbours;
// the thread that has raised one adds it to the heap, or sends it to the heap that owns its tile. Heaps know nothing
// of each other's values: a voxel may be raised several times, but every state only grows towards the one fixed point.
//
// A voxel that was raised and has not yet raised its neighbours must not be lost. If there is no room for it, in a heap
// or on its way to one, its tile is marked instead, and the owner looks through the whole tile for voxels that can
// raise others. This is also how all begins. Who sends something has raised the voxel before and then fences;
// who receives it fences and then reads.
//
// To know the end, heaps have tokens: one goes with each voxel sent and with each mark set, and a heap that has nothing
// to do gives all its tokens back. When none is out, nobody has anything to do.
namespace chunkwise
{

/** A voxel's state and mask, so that both come in one access. */
template <typename TKey>
struct HeapVoxel
{
  TKey state;
  TKey mask;
};

/** Voxels where several blocks raise them: in a word with the state above the mask, or in two words. */
template <typename TKey>
struct HeapCells
{
  using Word = std::conditional_t<(sizeof(TKey) <= 2), unsigned int, unsigned long long>;
  static constexpr bool        IsPair = sizeof(TKey) == 8;
  static constexpr int         Shift = IsPair ? 0 : 4 * static_cast<int>(sizeof(Word));
  static constexpr std::size_t Bytes = sizeof(Word) * (IsPair ? 2 : 1);

  Word * words;

  __device__ void
  Store(std::size_t i, TKey state, TKey mask) const
  {
    if constexpr (IsPair)
    {
      words[2 * i] = state;
      words[2 * i + 1] = mask;
    }
    else
    {
      words[i] = static_cast<Word>(state) << Shift | mask;
    }
  }
  __device__ HeapVoxel<TKey>
             Load(std::size_t i) const
  {
    if constexpr (IsPair)
    {
      const ulonglong2 both = __ldcg(reinterpret_cast<const ulonglong2 *>(words) + i);
      return { static_cast<TKey>(both.x), static_cast<TKey>(both.y) };
    }
    else
    {
      const Word both = __ldcg(words + i);
      return { static_cast<TKey>(both >> Shift), static_cast<TKey>(both) };
    }
  }
  /** True if the state was less than `key`. */
  __device__ bool
  Raise(std::size_t i, TKey key, TKey mask) const
  {
    if constexpr (IsPair)
    {
      return atomicMax(words + 2 * i, static_cast<Word>(key)) < key;
    }
    else
    {
      return static_cast<TKey>(atomicMax(words + i, static_cast<Word>(key) << Shift | mask) >> Shift) < key;
    }
  }
};

/** How a chunk is cut into tiles, whose extents are powers of two, and what the heaps have of memory. */
struct HeapLayout
{
  std::int64_t tiles[3];
  int          shift[3];
  int          tileShift; ///< of a tile's voxels
  std::int64_t numberOfTiles;
  std::int64_t heaps; ///< at most
  int          nodeItems;
  int          slots; ///< of a heap for what others send
  std::size_t  entryBytes;
  std::size_t  cellBytes;
  std::size_t  heapItems; ///< of all heaps together

  HeapLayout(const ReconstructionOperation & operation, const WavefrontShape & shape, std::size_t keyBytes)
    : tileShift(0)
    , numberOfTiles(1)
    , nodeItems(operation.nodeItems > 0 ? static_cast<int>(operation.nodeItems) : DefaultNodeItems)
    , slots(16)
  {
    const int largest[3] = { shape.planar ? 6 : 4, shape.planar ? 6 : 4, shape.planar ? 0 : 4 };
    for (int a = 0; a < 3; ++a)
    {
      shift[a] = 0;
      while (shift[a] < largest[a] && (std::int64_t{ 1 } << shift[a]) < shape.extent[a])
      {
        ++shift[a];
      }
      tiles[a] = (shape.extent[a] + (std::int64_t{ 1 } << shift[a]) - 1) >> shift[a];
      tileShift += shift[a];
      numberOfTiles *= tiles[a];
    }
    for (const std::int64_t n : shape.positions)
    {
      numberOfTiles *= n;
    }
    // A heap numbers the voxels of its tiles by 32 bits.
    const std::int64_t least = ((numberOfTiles << tileShift) >> 31) + 1;
    heaps =
      std::min(numberOfTiles, std::max<std::int64_t>(least, operation.heaps > 0 ? operation.heaps : DefaultHeaps));
    while (slots < 4 * nodeItems && slots < 512)
    {
      slots *= 2;
    }
    const auto voxels = static_cast<std::size_t>(numberOfTiles) << tileShift;
    entryBytes = RoundUp(static_cast<std::size_t>(numberOfTiles) * sizeof(std::uint32_t));
    cellBytes = RoundUp(voxels * (keyBytes <= 2 ? 4 : 2 * keyBytes));
    // Every second voxel may wait in a heap.
    heapItems = voxels / 2 + static_cast<std::size_t>(heaps) * (FixedItems() + 4 * static_cast<std::size_t>(nodeItems));
  }

  /** Items of a heap for what others have sent, and for what is carried at each level. */
  CHUNKWISE_HOST_DEVICE std::size_t
                        FixedItems() const
  {
    return static_cast<std::size_t>(slots + (HeapLevels + 1) * nodeItems) + 1;
  }
  std::size_t
  Bytes() const
  {
    return 256 + entryBytes + cellBytes + heapItems * sizeof(HeapItem);
  }

private:
  static constexpr int DefaultHeaps = 1056;
  static constexpr int DefaultNodeItems = 32;
};

template <typename TKey>
struct HeapCluster
{
  WavefrontImage<TKey> image;
  HeapLayout           layout;
  bool                 planar;
  bool                 fullyConnected;
  HeapCells<TKey>      cells;
  /** Marks of tiles: not 0 where the owner has to look through them. */
  std::uint32_t *      marks;
  unsigned long long * tokens; ///< that are out
  HeapItem *           items;
};

/** Calls body(cell, at, mask, state) for each own voxel. Cells of tiles reach beyond the last ones. */
template <typename TKey, typename TBody, typename TOutside>
__device__ void
ForEachCell(const HeapCluster<TKey> & cluster, TBody && body, TOutside && outside)
{
  const HeapLayout &           layout = cluster.layout;
  const WavefrontImage<TKey> & image = cluster.image;
  const std::int64_t           cells = layout.numberOfTiles << layout.tileShift;
  for (std::int64_t cell = blockIdx.x * std::int64_t{ 256 } + threadIdx.x; cell < cells;
       cell += gridDim.x * std::int64_t{ 256 })
  {
    auto         rest = static_cast<std::uint32_t>(cell >> layout.tileShift);
    auto         inTile = static_cast<int>(cell & ((std::int64_t{ 1 } << layout.tileShift) - 1));
    std::int64_t at[3];
    bool         isOwn = true;
    for (int a = 0; a < 3; ++a)
    {
      const auto n = static_cast<std::uint32_t>(layout.tiles[a]);
      at[a] = (static_cast<std::int64_t>(rest % n) << layout.shift[a]) + (inTile & ((1 << layout.shift[a]) - 1));
      inTile >>= layout.shift[a];
      rest /= n;
      isOwn = isOwn && at[a] < image.extent[a];
    }
    if (!isOwn)
    {
      outside(cell);
      continue;
    }
    const TKey * mask = image.mask + at[0] + at[1] * image.maskStride[1] + at[2] * image.maskStride[2];
    TKey *       state = image.state + at[0] + at[1] * image.stateStride[1] + at[2] * image.stateStride[2];
    MoveToVolume(image, rest, mask, state);
    body(cell, at, mask, state);
  }
}

template <typename TKey>
__global__ void
BeginHeapCluster(HeapCluster<TKey> cluster, ReconstructionCode<TKey> code)
{
  ForEachCell(
    cluster,
    [&](std::int64_t cell, const std::int64_t(&at)[3], const TKey * mask, TKey * state) {
      cluster.cells.Store(static_cast<std::size_t>(cell),
                          StateFromBeyond(cluster.image, code, cluster.fullyConnected, at, mask, state),
                          code.FromBits(*mask));
    },
    [&](std::int64_t cell) { cluster.cells.Store(static_cast<std::size_t>(cell), TKey{ 0 }, TKey{ 0 }); });
  const auto thread = static_cast<std::size_t>(blockIdx.x) * 256 + threadIdx.x;
  const auto threads = static_cast<std::size_t>(gridDim.x) * 256;
  for (std::size_t tile = thread; tile < static_cast<std::size_t>(cluster.layout.numberOfTiles); tile += threads)
  {
    cluster.marks[tile] = 1;
  }
  for (std::size_t i = thread; i < cluster.layout.heapItems; i += threads)
  {
    cluster.items[i] = 0;
  }
  if (thread == 0)
  {
    *cluster.tokens = static_cast<unsigned long long>(cluster.layout.numberOfTiles);
  }
}

template <typename TKey>
__global__ void
EndHeapCluster(HeapCluster<TKey> cluster, ReconstructionCode<TKey> code)
{
  ForEachCell(
    cluster,
    [&](std::int64_t cell, const std::int64_t(&at)[3], const TKey * mask, TKey * state) {
      StoreAndTell(cluster.image,
                   code,
                   cluster.fullyConnected,
                   at,
                   mask,
                   state,
                   cluster.cells.Load(static_cast<std::size_t>(cell)).state);
    },
    [](std::int64_t) {});
}

/** The data that threads of a block share besides their heap's state. */
struct HeapShared
{
  HeapState          heap;
  unsigned long long tokens;
  std::uint32_t      chosen;
  std::uint32_t      ended;
};

template <typename TKey>
class HeapBlock
{
public:
  __device__
  HeapBlock(const HeapCluster<TKey> & cluster, HeapShared & shared, HeapItem * memory)
    : m_Cluster(cluster)
    , m_Layout(cluster.layout)
    , m_Shared(shared)
    , m_PerHeap(cluster.layout.heapItems / gridDim.x)
    , m_Slots(SlotsOf(blockIdx.x))
    , m_Heap(shared.heap, memory, m_Slots + m_Layout.slots,
             m_Slots + m_Layout.slots + (HeapLevels + 1) * m_Layout.nodeItems, MostNodes(), m_Layout.nodeItems)
    , m_Thread(static_cast<int>(threadIdx.x))
    , m_Neighbours(cluster.planar ? (cluster.fullyConnected ? 8 : 4) : (cluster.fullyConnected ? 26 : 6))
    , m_OwnTiles((static_cast<std::uint32_t>(m_Layout.numberOfTiles) - blockIdx.x + gridDim.x - 1) / gridDim.x)
  {}

  __device__ void
  Run()
  {
    m_Heap.Clear();
    if (m_Thread == 0)
    {
      m_Shared.tokens = 0;
    }
    __syncthreads();
    for (;;)
    {
      if (m_IsLooking && m_Tile == None)
      {
        TakeMarkedTile();
      }
      const HeapCycle cycle = m_Heap.Plan(!m_IsLooking);
      if (cycle.total == 0 && !m_IsLooking)
      {
        if (!WaitForWork())
        {
          return;
        }
        continue;
      }
      m_Heap.Merge(cycle, [&](HeapItem item) { Mark(TileOf(item)); });
      m_Heap.MoveOn(1);
      RaiseNeighbours(cycle.taken);
      __syncthreads();
      m_Heap.MoveOn(2);
      if (cycle.hasRoom)
      {
        Receive();
      }
      __syncthreads();
      if (m_IsLooking && cycle.hasRoom)
      {
        LookThroughTile();
      }
    }
  }

private:
  static constexpr std::uint32_t None = 0xFFFFFFFFu;
  /** More than any heap gives away before it has nothing to do, and few enough for all heaps together. */
  static constexpr unsigned long long Stock = 1ull << 48;

  /** A voxel by its tile and where it lies there. */
  struct Place
  {
    std::uint32_t tile;
    std::uint32_t inTile;
  };

  __device__ HeapItem *
  SlotsOf(std::uint32_t heap) const
  {
    return m_Cluster.items + m_PerHeap * heap;
  }
  __device__ std::uint32_t
             MostNodes() const
  {
    const std::size_t nodes = (m_PerHeap - m_Layout.FixedItems()) / static_cast<std::size_t>(m_Layout.nodeItems);
    return static_cast<std::uint32_t>(min(nodes, (std::size_t{ 1 } << HeapLevels) - 1));
  }
  __device__ std::size_t
             CellOf(const Place & place) const
  {
    return (static_cast<std::size_t>(place.tile) << m_Layout.tileShift) + place.inTile;
  }
  __device__ std::uint32_t
             TileOf(HeapItem item) const
  {
    return (static_cast<std::uint32_t>(item) >> m_Layout.tileShift) * gridDim.x + blockIdx.x;
  }
  __device__ Place
  PlaceOf(HeapItem item) const
  {
    return { TileOf(item), static_cast<std::uint32_t>(item) & ((1u << m_Layout.tileShift) - 1) };
  }
  __device__ HeapItem
  MakeItem(TKey key, const Place & place) const
  {
    return static_cast<HeapItem>(EntryOf(key)) << 32 | (place.tile / gridDim.x << m_Layout.tileShift | place.inTile);
  }

  /** The neighbour that a step leads to; false if there is none in the tiles. */
  __device__ bool
  Step(const Place & from, int step, Place & to) const
  {
    int d[3] = { 0, 0, 0 };
    if (m_Cluster.fullyConnected)
    {
      const int i = step < m_Neighbours / 2 ? step : step + 1;
      d[0] = i % 3 - 1;
      d[1] = i / 3 % 3 - 1;
      d[2] = m_Cluster.planar ? 0 : i / 9 - 1;
    }
    else
    {
      const int sign = step & 1 ? 1 : -1;
      d[0] = step < 2 ? sign : 0;
      d[1] = step >> 1 == 1 ? sign : 0;
      d[2] = step >> 1 == 2 ? sign : 0;
    }
    int           inTile = static_cast<int>(from.inTile);
    int           before = 0; // of the bits of an axis
    std::uint32_t tiles = 1;
    to = { from.tile, 0 };
#pragma unroll
    for (int a = 0; a < 3; ++a)
    {
      const int extent = 1 << m_Layout.shift[a];
      const int i = (inTile & (extent - 1)) + d[a];
      const int out = i < 0 ? -1 : i >= extent ? 1 : 0;
      to.inTile |= static_cast<std::uint32_t>(i & (extent - 1)) << before;
      inTile >>= m_Layout.shift[a];
      before += m_Layout.shift[a];
      if (out)
      {
        // Only where it leaves the tile does it matter which that is.
        std::uint32_t index = from.tile;
        for (int b = 0; b < a; ++b)
        {
          index /= static_cast<std::uint32_t>(m_Layout.tiles[b]);
        }
        index %= static_cast<std::uint32_t>(m_Layout.tiles[a]);
        if (index + static_cast<std::uint32_t>(out) >= static_cast<std::uint32_t>(m_Layout.tiles[a]))
        {
          return false;
        }
        to.tile += static_cast<std::uint32_t>(out) * tiles;
      }
      tiles *= static_cast<std::uint32_t>(m_Layout.tiles[a]);
    }
    return true;
  }

  /** The owner of the tile will look through it. Voxels that were raised there are visible to it. */
  __device__ void
  Mark(std::uint32_t tile)
  {
    __threadfence();
    if (atomicExch(m_Cluster.marks + tile, 1u) == 0)
    {
      atomicAdd(&m_Shared.tokens, 0ull - 1);
    }
  }

  /** A voxel that was just raised goes to the heap that owns it. */
  __device__ void
  Announce(TKey key, const Place & place)
  {
    const HeapItem item = MakeItem(key, place);
    const auto     heap = place.tile % gridDim.x;
    if (heap == blockIdx.x)
    {
      if (!m_Heap.Add(item))
      {
        Mark(place.tile);
      }
      return;
    }
    __threadfence();
    unsigned long long * const slots = reinterpret_cast<unsigned long long *>(SlotsOf(heap));
    // Voxels side by side go to slots side by side.
    const std::uint32_t first = place.inTile + static_cast<std::uint32_t>(item >> 32) * 7;
    for (std::uint32_t i = 0; i < 4; ++i)
    {
      if (atomicCAS(slots + ((first + 5 * i) & static_cast<std::uint32_t>(m_Layout.slots - 1)), 0ull, item) == 0)
      {
        atomicAdd(&m_Shared.tokens, 0ull - 1);
        return;
      }
    }
    Mark(place.tile);
  }

  /** Takes the items that other heaps have sent, as far as there is room; returns whether there were any. */
  __device__ bool
  Receive()
  {
    bool any = false;
    for (int i = m_Thread; i < m_Layout.slots; i += HeapThreads)
    {
      auto * const   slot = reinterpret_cast<unsigned long long *>(m_Slots + i);
      const HeapItem item = __ldcg(slot);
      if (item && m_Heap.Add(item))
      {
        atomicExch(slot, 0ull);
        atomicAdd(&m_Shared.tokens, 1ull);
        any = true;
      }
    }
    if (any)
    {
      __threadfence();
    }
    return any;
  }

  /** All neighbours of the voxels that the heap has given; some of them at a time, so that accesses overlap. */
  __device__ void
  RaiseNeighbours(int taken)
  {
    constexpr int          batch = 4;
    const HeapItem * const items = m_Heap.GetTaken();
    for (int first = m_Thread; first < taken * m_Neighbours; first += batch * HeapThreads)
    {
      HeapVoxel<TKey> from[batch];
      HeapVoxel<TKey> to[batch];
      Place           place[batch];
#pragma unroll
      for (int k = 0; k < batch; ++k)
      {
        const int i = first + k * HeapThreads;
        from[k] = to[k] = { 0, 0 };
        if (i < taken * m_Neighbours)
        {
          const HeapItem item = items[i / m_Neighbours];
          const Place    at = PlaceOf(item);
          if (Step(at, i % m_Neighbours, place[k]))
          {
            from[k] = m_Cluster.cells.Load(CellOf(at));
            to[k] = m_Cluster.cells.Load(CellOf(place[k]));
            // Raised since, it is in a heap once more.
            if (EntryOf(from[k].state) > static_cast<std::uint32_t>(item >> 32))
            {
              from[k].state = 0;
            }
          }
        }
      }
#pragma unroll
      for (int k = 0; k < batch; ++k)
      {
        const TKey through = min(from[k].state, to[k].mask);
        if (through > to[k].state && m_Cluster.cells.Raise(CellOf(place[k]), through, to[k].mask))
        {
          Announce(through, place[k]);
        }
      }
    }
  }

  /** The next of the own tiles that are marked, if any. */
  __device__ void
  TakeMarkedTile()
  {
    __syncthreads();
    if (m_Thread == 0)
    {
      m_Shared.chosen = None;
    }
    __syncthreads();
    for (std::uint32_t i = static_cast<std::uint32_t>(m_Thread); i < m_OwnTiles; i += HeapThreads)
    {
      if (IsMarked(i))
      {
        atomicMin(&m_Shared.chosen, i);
        break;
      }
    }
    __syncthreads();
    m_IsLooking = m_Shared.chosen != None;
    if (m_IsLooking)
    {
      m_Tile = m_Shared.chosen * gridDim.x + blockIdx.x;
      m_Looked = 0;
      if (m_Thread == 0)
      {
        atomicExch(m_Cluster.marks + m_Tile, 0u);
        atomicAdd(&m_Shared.tokens, 1ull);
        __threadfence();
      }
    }
    __syncthreads();
  }
  __device__ bool
  IsMarked(std::uint32_t ownTile) const
  {
    return __ldcg(m_Cluster.marks + ownTile * gridDim.x + blockIdx.x) != 0;
  }

  /** Adds the tile's voxels that can raise others, as far as there is room. */
  __device__ void
  LookThroughTile()
  {
    const int voxels = 1 << m_Layout.tileShift;
    while (m_Looked < voxels)
    {
      const bool hasRoom =
        m_Shared.heap.fresh + HeapThreads <= static_cast<std::uint32_t>(HeapFreshItems(m_Layout.nodeItems));
      __syncthreads();
      if (!hasRoom)
      {
        break;
      }
      if (m_Looked + m_Thread < voxels)
      {
        LookAt({ m_Tile, static_cast<std::uint32_t>(m_Looked + m_Thread) });
      }
      m_Looked += HeapThreads;
      __syncthreads();
    }
    if (m_Looked >= voxels)
    {
      m_Tile = None;
    }
    if (m_Heap.IsFull())
    {
      // The rest waits until the heap has become smaller.
      if (m_Tile != None && m_Thread == 0)
      {
        Mark(m_Tile);
      }
      m_Tile = None;
      m_IsLooking = false;
    }
  }
  __device__ void
  LookAt(const Place & place)
  {
    const HeapVoxel<TKey> from = m_Cluster.cells.Load(CellOf(place));
    bool                  canRaise = false;
    for (int step = 0; step < m_Neighbours && from.state != 0 && !canRaise; ++step)
    {
      Place to;
      if (Step(place, step, to))
      {
        const HeapVoxel<TKey> other = m_Cluster.cells.Load(CellOf(to));
        canRaise = min(from.state, other.mask) > other.state;
      }
    }
    if (canRaise)
    {
      // There is room for a voxel of each thread.
      m_Heap.Add(MakeItem(from.state, place));
    }
  }

  /** Until somebody sends something or marks a tile; false: all is done. */
  __device__ bool
  WaitForWork()
  {
    __syncthreads();
    if (m_Thread == 0)
    {
      atomicAdd(m_Cluster.tokens, 0ull - m_Shared.tokens);
      m_Shared.tokens = 0;
    }
    for (;;)
    {
      __syncthreads();
      bool isMarked = false;
      for (std::uint32_t i = static_cast<std::uint32_t>(m_Thread); i < m_OwnTiles && !isMarked; i += HeapThreads)
      {
        isMarked = IsMarked(i);
      }
      if (m_Thread == 0)
      {
        m_Shared.ended = LoadFromOthers(m_Cluster.tokens) == 0;
      }
      const bool received = __syncthreads_or(Receive());
      m_IsLooking = __syncthreads_or(isMarked);
      if (received || m_IsLooking)
      {
        break;
      }
      if (m_Shared.ended)
      {
        return false;
      }
      __nanosleep(500);
    }
    if (m_Thread == 0)
    {
      // It has a token, or the mark has one.
      atomicAdd(m_Cluster.tokens, Stock);
      atomicAdd(&m_Shared.tokens, Stock);
    }
    __syncthreads();
    return true;
  }

  const HeapCluster<TKey> & m_Cluster;
  const HeapLayout &        m_Layout;
  HeapShared &              m_Shared;
  const std::size_t         m_PerHeap;
  HeapItem * const          m_Slots;
  ParallelHeap              m_Heap;
  const int                 m_Thread;
  const int                 m_Neighbours;
  const std::uint32_t       m_OwnTiles;
  /** The tile to look through, and how far it is done. */
  bool          m_IsLooking{ false };
  std::uint32_t m_Tile{ None };
  int           m_Looked{ 0 };
};

template <typename TKey>
__global__ void
__launch_bounds__(HeapThreads) HeapClusterKernel(HeapCluster<TKey> cluster, int sharedItems)
{
  extern __shared__ __align__(16) unsigned char memory[];
  HeapItem * const                              items = reinterpret_cast<HeapItem *>(memory);
  HeapShared &                                  shared = *reinterpret_cast<HeapShared *>(items + sharedItems);
  HeapBlock<TKey>(cluster, shared, items).Run();
}

template <typename TKey>
void
LaunchHeapCluster(const HeapCluster<TKey> & cluster, cudaStream_t stream)
{
  const std::size_t items = HeapSharedBytes(cluster.layout.nodeItems);
  LaunchTogether(HeapClusterKernel<TKey>,
                 HeapThreads,
                 items + sizeof(HeapShared),
                 cluster.layout.heaps,
                 stream,
                 cluster,
                 static_cast<int>(items / sizeof(HeapItem)));
}

inline std::size_t
HeapClusterScratchBytes(const ReconstructionOperation & operation, const Box & own, const Box & image,
                        std::size_t keyBytes)
{
  return HeapLayout(operation, WavefrontShape(operation, own, image, keyBytes), keyBytes).Bytes();
}

/** `scratch` has HeapClusterScratchBytes. */
template <typename TKey>
void
RunHeapCluster(const WavefrontImage<TKey> & image, const WavefrontShape & shape,
               const ReconstructionOperation & operation, const ReconstructionCode<TKey> & code, void * scratch,
               cudaStream_t stream)
{
  const HeapLayout  layout(operation, shape, sizeof(TKey));
  char * const      memory = static_cast<char *>(scratch);
  char * const      cells = memory + 256 + layout.entryBytes;
  HeapCluster<TKey> cluster{ image,
                             layout,
                             shape.planar,
                             operation.fullyConnected,
                             { reinterpret_cast<typename HeapCells<TKey>::Word *>(cells) },
                             reinterpret_cast<std::uint32_t *>(memory + 256),
                             reinterpret_cast<unsigned long long *>(memory),
                             reinterpret_cast<HeapItem *>(cells + layout.cellBytes) };
  if (layout.numberOfTiles >= std::int64_t{ 0x7FFFFFFF })
  {
    throw ParameterError("reconstruction: a chunk has too many tiles");
  }
  const auto blocks = static_cast<unsigned int>(
    std::min<std::int64_t>(((layout.numberOfTiles << layout.tileShift) + 255) / 256, 1 << 16));
  BeginHeapCluster<<<blocks, 256, 0, stream>>>(cluster, code);
  CheckLaunch("reconstruction");
  LaunchHeapCluster(cluster, stream);
  EndHeapCluster<<<blocks, 256, 0, stream>>>(cluster, code);
  CheckLaunch("reconstruction");
}

} // namespace chunkwise

#endif
