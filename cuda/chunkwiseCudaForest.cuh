/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaForest_cuh
#define chunkwiseCudaForest_cuh

#include "chunkwiseCudaChunkBorder.cuh"

#include <cooperative_groups.h>

// Morphological reconstruction by a spanning forest, in a few rounds whatever way the values have to go.
//
// A voxel's result is the largest capacity of a path to a source, where an edge between neighbours has the smaller of
// their masks as its capacity and one from a voxel to the source the voxel's state.
//
// Basins. A voxel leads to the largest mask around it, of equal ones the last in the image, until none is larger: to
// the top of its basin. The masks rise all the way, so that its capacity is the voxel's own mask, and the voxel's
// result is the smaller one of its mask and of the result of the top. What is left is a graph of the basins, some
// hundred times smaller where the image is smooth.
//
// Rounds. Every component of basins joins the one that its best edge leads to (Boruvka), of equal capacities the one
// with the largest name, so that there is no cycle but of two that are each other's best. What leaves a component can
// be no better than what is within it, so that a basin's capacity is the smallest on its way along these edges.
// Components that the source is in are done; the others at least halve in number.
namespace chunkwise
{

constexpr int ForestThreads = 256;

/** What a voxel of the image has been found to belong to: the voxel that it leads to, or the number of its basin. */
struct ForestLabel
{
  static constexpr std::uint32_t Basin = 0x80000000u;
  /** Of voxels with the lowest mask, which nothing raises. */
  static constexpr std::uint32_t None = 0xFFFFFFFFu;
};

/** A component, named by one of its basins, and the capacity of the way there: halves of one word, which is read and
 * written as one. */
struct ForestLink
{
  /** The component that the source is in; larger than any other's name. */
  static constexpr std::uint32_t Source = 0xFFFFFFFFu;

  __device__ static std::uint64_t
  Make(std::uint32_t component, std::uint32_t capacity)
  {
    return (static_cast<std::uint64_t>(component) << 32) | capacity;
  }
  __device__ static std::uint32_t
  Component(std::uint64_t link)
  {
    return static_cast<std::uint32_t>(link >> 32);
  }
  __device__ static std::uint32_t
  Capacity(std::uint64_t link)
  {
    return static_cast<std::uint32_t>(link);
  }
};

/** An edge as a component that it leaves sees it: the best is the largest. */
struct ForestExit
{
  __device__ static std::uint64_t
  Make(std::uint32_t capacity, std::uint32_t to)
  {
    return (static_cast<std::uint64_t>(capacity) << 32) | to;
  }
  __device__ static std::uint32_t
  Capacity(std::uint64_t exit)
  {
    return static_cast<std::uint32_t>(exit >> 32);
  }
  __device__ static std::uint32_t
  To(std::uint64_t exit)
  {
    return static_cast<std::uint32_t>(exit);
  }
};

struct ForestCounts
{
  unsigned long long edges;
  std::uint32_t      basins;
  /** Whether a phase of the rounds has left something to do, in turn. */
  std::uint32_t open[3];
};

template <typename TKey>
struct ForestImage
{
  WavefrontImage<TKey> image;
  std::uint32_t        extent[3];
  std::uint32_t        volumeVoxels;
  /** Whether the chunk holds voxels that are not its own. */
  bool            hasBeyond;
  std::uint32_t   labelTiles[3];
  std::uint32_t   edgeTiles[3];
  std::uint32_t   numberOfLabelTiles;
  std::uint32_t   numberOfEdgeTiles;
  ForestCounts *  counts;
  std::uint32_t * labels;
  /** Basins and their edges. */
  char *        pool;
  std::uint64_t poolBytes;
};

/** Whether a chunk can be a forest: labels have 31 bits, and of single voxels each would be a basin. */
inline bool
ForestFits(const WavefrontShape & shape, std::int64_t voxels)
{
  return shape.extent[0] * shape.extent[1] * shape.extent[2] > 1 &&
         voxels < static_cast<std::int64_t>(ForestLabel::Basin) - 1;
}

/** The basins and edges of an image in memory of a size that does not depend on what is in it: what the basins leave of
 * it is for edges. */
struct ForestGraph
{
  static constexpr std::size_t BytesOfBasin = 2 * sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t);
  static constexpr std::size_t BytesOfEdge = 3 * sizeof(std::uint32_t);

  std::uint64_t * links;
  std::uint64_t * exits; ///< the best one, 0: none yet
  uint2 *         ends;  ///< of edges
  std::uint32_t * capacities;
  std::uint32_t * sources; ///< the capacity of the edge to the source, at the end the basin's result
  std::uint32_t * alive;   ///< components that are not done
  std::uint64_t   mostEdges;

  __device__
  ForestGraph(char * pool, std::uint64_t bytes, std::uint32_t basins)
    : links(reinterpret_cast<std::uint64_t *>(pool))
    , exits(links + basins)
    , ends(reinterpret_cast<uint2 *>(exits + basins))
    , mostEdges((bytes - BytesOfBasin * basins) / BytesOfEdge)
  {
    capacities = reinterpret_cast<std::uint32_t *>(ends + mostEdges);
    sources = capacities + mostEdges;
    alive = sources + basins;
  }
};

/** No two tops touch, so that of volumes of more than one voxel at most two thirds of the voxels are basins, for which
 * this is enough. Where there are no more than in white noise it is enough for their edges too. */
constexpr std::size_t ForestPoolBytesOfVoxel = 16;

inline std::size_t
ForestLabelBytes(std::int64_t voxels)
{
  return (sizeof(std::uint32_t) * static_cast<std::size_t>(voxels) + 255) / 256 * 256;
}

inline std::size_t
ForestScratchBytes(std::int64_t voxels)
{
  return 256 + ForestLabelBytes(voxels) + ForestPoolBytesOfVoxel * static_cast<std::size_t>(voxels);
}

/** Tiles of labels, and of edges, which have tables of their own in shared memory. */
__host__ __device__ constexpr TileShape
LabelTileOf(bool planar)
{
  return planar ? TileShape{ 64, 64, 1, ForestThreads } : TileShape{ 32, 16, 8, ForestThreads };
}
__host__ __device__ constexpr TileShape
EdgeTileOf(bool planar)
{
  return planar ? TileShape{ 32, 32, 1, ForestThreads } : TileShape{ 32, 8, 4, ForestThreads };
}

/** Where a tile of the forest lies. */
template <typename TKey>
struct ForestPlace
{
  const ForestImage<TKey> & forest;
  std::uint32_t             lower[3];
  std::uint32_t             firstVoxel; ///< of the tile's volume
  const TKey *              mask;       ///< of the volume's first voxel
  TKey *                    state;

  __device__
  ForestPlace(const ForestImage<TKey> & theForest, const std::uint32_t (&tiles)[3], const TileShape & shape,
              std::uint32_t tile)
    : forest(theForest)
    , mask(theForest.image.mask)
    , state(theForest.image.state)
  {
    lower[0] = tile % tiles[0] * static_cast<std::uint32_t>(shape.x);
    tile /= tiles[0];
    lower[1] = tile % tiles[1] * static_cast<std::uint32_t>(shape.y);
    tile /= tiles[1];
    lower[2] = tile % tiles[2] * static_cast<std::uint32_t>(shape.z);
    tile /= tiles[2];
    firstVoxel = tile * forest.volumeVoxels;
    MoveToVolume(forest.image, tile, mask, state);
  }
  /** Of a voxel of the tile or beside it. */
  __device__ bool
  IsInside(int x, int y, int z) const
  {
    // Below 0 is far above.
    return lower[0] + static_cast<std::uint32_t>(x) < forest.extent[0] &&
           lower[1] + static_cast<std::uint32_t>(y) < forest.extent[1] &&
           lower[2] + static_cast<std::uint32_t>(z) < forest.extent[2];
  }
  __device__ std::uint32_t
             Voxel(int x, int y, int z) const
  {
    return firstVoxel + (lower[0] + static_cast<std::uint32_t>(x)) +
           forest.extent[0] * ((lower[1] + static_cast<std::uint32_t>(y)) +
                               forest.extent[1] * (lower[2] + static_cast<std::uint32_t>(z)));
  }
  __device__ std::int64_t
             Offset(const std::int64_t (&stride)[3], int x, int y, int z) const
  {
    return static_cast<std::int64_t>(lower[0]) + x + (static_cast<std::int64_t>(lower[1]) + y) * stride[1] +
           (static_cast<std::int64_t>(lower[2]) + z) * stride[2];
  }
  __device__ TKey
  Mask(const ReconstructionCode<TKey> & code, int x, int y, int z) const
  {
    return code.FromBits(__ldg(mask + Offset(forest.image.maskStride, x, y, z)));
  }
};

/** Finds the top of each voxel's basin as far as it is in the voxel's tile, and numbers the tops. */
template <typename TKey, bool VPlanar, bool VFull>
__global__ void
__launch_bounds__(ForestThreads) LabelBasins(ForestImage<TKey> forest, ReconstructionCode<TKey> code)
{
  constexpr TileShape     shape = LabelTileOf(VPlanar);
  constexpr int           frameZ = VPlanar ? 0 : 1;
  constexpr int           pitch = shape.x + 2;
  constexpr int           plane = pitch * (shape.y + 2);
  constexpr int           held = plane * (shape.z + 2 * frameZ);
  constexpr int           rounds = shape.x * shape.y * shape.z / ForestThreads;
  constexpr std::uint16_t outside = 0xFFFF;
  constexpr std::uint16_t none = 0xFFFE;
  static_assert(held < none, "slots are numbered in 16 bits");
  __shared__ TKey keys[held];
  __shared__ std::uint16_t ahead[held];
  __shared__ std::uint16_t tops[held];
  __shared__ std::uint32_t found;
  __shared__ std::uint32_t firstBasin;

  const int  thread = static_cast<int>(threadIdx.x);
  const auto slotOf = [](int x, int y, int z) { return (z + frameZ) * plane + (y + 1) * pitch + x + 1; };
  const auto slotOfRound = [&](int round) {
    const int i = round * ForestThreads + thread;
    return slotOf(i % shape.x, i / shape.x % shape.y, i / (shape.x * shape.y));
  };
  const auto forEach = [&](auto && body) {
#pragma unroll(VPlanar ? 4 : 2)
    for (int round = 0; round < rounds; ++round)
    {
      const int i = round * ForestThreads + thread;
      const int x = i % shape.x;
      const int y = i / shape.x % shape.y;
      const int z = i / (shape.x * shape.y);
      body(x, y, z, slotOf(x, y, z));
    }
  };
  for (std::uint32_t tile = blockIdx.x; tile < forest.numberOfLabelTiles; tile += gridDim.x)
  {
    const ForestPlace<TKey> place(forest, forest.labelTiles, shape, tile);
    __syncthreads();
    for (int slot = thread; slot < held; slot += ForestThreads)
    {
      const int x = slot % pitch - 1;
      const int y = slot / pitch % (shape.y + 2) - 1;
      const int z = slot / plane - frameZ;
      keys[slot] = place.IsInside(x, y, z) ? place.Mask(code, x, y, z) : TKey{ 0 };
      ahead[slot] = static_cast<std::uint16_t>(slot);
      tops[slot] = outside;
    }
    if (thread == 0)
    {
      found = 0;
    }
    __syncthreads();

    forEach([&](int, int, int, int slot) {
      TKey best = keys[slot];
      int  to = slot;
      // The order of the image, so that a later voxel takes precedence over an equal one.
#pragma unroll
      for (int dz = -frameZ; dz <= frameZ; ++dz)
      {
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy)
        {
#pragma unroll
          for (int dx = -1; dx <= 1; ++dx)
          {
            const int moved = (dx != 0) + (dy != 0) + (dz != 0);
            if (moved == 1 || (moved > 1 && VFull))
            {
              const int  step = dz * plane + dy * pitch + dx;
              const TKey key = keys[slot + step];
              if (step > 0 ? key >= best : key > best)
              {
                best = key;
                to = slot + step;
              }
            }
          }
        }
      }
      // The lowest keys lead nowhere, and those that are not there have it too.
      if (best > 0)
      {
        ahead[slot] = static_cast<std::uint16_t>(to);
      }
    });
    __syncthreads();

    for (bool more = true; more;)
    {
      std::uint16_t next[rounds];
      more = false;
      // All is read before anything is written.
#pragma unroll
      for (int round = 0; round < rounds; ++round)
      {
        std::uint16_t to = ahead[slotOfRound(round)];
        for (int hop = 0; hop < 8; ++hop)
        {
          const std::uint16_t further = ahead[to];
          if (further == to)
          {
            break;
          }
          to = further;
        }
        next[round] = to;
        more = more || ahead[to] != to;
      }
      __syncthreads();
#pragma unroll
      for (int round = 0; round < rounds; ++round)
      {
        ahead[slotOfRound(round)] = next[round];
      }
      more = __syncthreads_or(more);
    }

    forEach([&](int, int, int, int slot) {
      const bool          isTop = ahead[slot] == slot && keys[slot] > 0;
      const std::uint32_t inWarp = __ballot_sync(0xFFFFFFFFu, isTop);
      std::uint32_t       before = 0;
      if (inWarp && thread % 32 == 0)
      {
        before = atomicAdd(&found, static_cast<std::uint32_t>(__popc(inWarp)));
      }
      before = __shfl_sync(0xFFFFFFFFu, before, 0);
      tops[slot] = isTop            ? static_cast<std::uint16_t>(before + __popc(inWarp & ((1u << thread % 32) - 1)))
                   : keys[slot] > 0 ? outside
                                    : none;
    });
    __syncthreads();
    if (thread == 0)
    {
      firstBasin = atomicAdd(&forest.counts->basins, found);
    }
    __syncthreads();
    forEach([&](int x, int y, int z, int slot) {
      if (!place.IsInside(x, y, z))
      {
        return;
      }
      const int           to = ahead[slot];
      const std::uint16_t top = tops[to];
      std::uint32_t       label = ForestLabel::None;
      if (top == outside)
      {
        label = place.Voxel(to % pitch - 1, to / pitch % (shape.y + 2) - 1, to / plane - frameZ);
      }
      else if (top != none)
      {
        label = ForestLabel::Basin | (firstBasin + top);
      }
      forest.labels[place.Voxel(x, y, z)] = label;
    });
  }
}

/** A voxel's label leads further along the labels. True if there may be more. */
__device__ inline bool
FollowLabel(std::uint32_t * labels, std::uint32_t voxel)
{
  const std::uint32_t label = __ldcg(labels + voxel);
  std::uint32_t       to = label;
  for (int hop = 0; hop < 8 && !(to & ForestLabel::Basin); ++hop)
  {
    to = __ldcg(labels + to);
  }
  if (to != label)
  {
    __stcg(labels + voxel, to);
  }
  return !(to & ForestLabel::Basin);
}

/** A component's link leads further along the links. True if there may be more. */
__device__ inline bool
FollowLink(std::uint64_t * links, std::uint32_t at)
{
  const std::uint64_t link = __ldcg(links + at);
  bool                more = false;
  std::uint32_t       component = ForestLink::Component(link);
  std::uint32_t       capacity = ForestLink::Capacity(link);
  if (component == at)
  {
    return false;
  }
  for (int hop = 0; hop < 8 && component != ForestLink::Source; ++hop)
  {
    const std::uint64_t next = __ldcg(links + component);
    const std::uint32_t further = ForestLink::Component(next);
    if (further == component)
    {
      more = false;
      break;
    }
    capacity = min(capacity, ForestLink::Capacity(next));
    component = further;
    more = component != ForestLink::Source;
  }
  const std::uint64_t followed = ForestLink::Make(component, capacity);
  if (followed != link)
  {
    __stcg(links + at, followed);
  }
  return more;
}

__device__ inline void
RaiseSource(const ForestGraph & graph, std::uint32_t component, std::uint32_t capacity)
{
  // Most have nothing better than what is there.
  if (capacity > __ldcg(graph.sources + component))
  {
    atomicMax(graph.sources + component, capacity);
  }
}

__device__ inline void
OfferExit(const ForestGraph & graph, std::uint32_t from, std::uint32_t to, std::uint32_t capacity)
{
  const std::uint64_t exit = ForestExit::Make(capacity, to);
  if (exit > __ldcg(graph.exits + from))
  {
    atomicMax(reinterpret_cast<unsigned long long *>(graph.exits + from), static_cast<unsigned long long>(exit));
  }
}

/** To both ends, of which the second may be the source. */
__device__ inline void
OfferEdge(const ForestGraph & graph, std::uint32_t first, std::uint32_t second, std::uint32_t capacity)
{
  if (second == ForestLink::Source)
  {
    RaiseSource(graph, first, capacity);
    return;
  }
  OfferExit(graph, first, second, capacity);
  OfferExit(graph, second, first, capacity);
}

/** The best way out of a component, to the source if that is as good. */
__device__ inline std::uint64_t
BestExit(const ForestGraph & graph, std::uint32_t component)
{
  const std::uint64_t exit = __ldcg(graph.exits + component);
  const std::uint64_t toSource = ForestExit::Make(__ldcg(graph.sources + component), ForestLink::Source);
  return exit > toSource ? exit : toSource;
}

/** A component joins the one that its best exit leads to. */
__device__ inline void
JoinComponent(const ForestGraph & graph, std::uint32_t component)
{
  const std::uint64_t exit = BestExit(graph, component);
  const std::uint32_t to = ForestExit::To(exit);
  if (to != ForestLink::Source && component < to && ForestExit::To(BestExit(graph, to)) == component)
  {
    return; // each is the other's best: one of them stays
  }
  __stcg(graph.links + component, ForestLink::Make(to, ForestExit::Capacity(exit)));
}

/** Calls body(item) for `count` items that the block reads from `load(i)` and keeps those that it returns true for, by
 * `store(i, item)` at the begin. Returns their number. */
template <typename TLoad, typename TStore, typename TBody>
__device__ std::uint64_t
           KeepInBlock(std::uint64_t count, unsigned long long & kept, TLoad && load, TStore && store, TBody && body)
{
  constexpr int batch = 4;
  __syncthreads();
  if (threadIdx.x == 0)
  {
    kept = 0;
  }
  for (std::uint64_t first = 0; first < count; first += batch * ForestThreads)
  {
    decltype(load(first)) items[batch];
    bool                  keeps[batch];
#pragma unroll
    for (int k = 0; k < batch; ++k)
    {
      const std::uint64_t i = first + static_cast<std::uint64_t>(k) * ForestThreads + threadIdx.x;
      keeps[k] = i < count;
      if (keeps[k])
      {
        items[k] = load(i);
      }
    }
#pragma unroll
    for (int k = 0; k < batch; ++k)
    {
      keeps[k] = keeps[k] && body(items[k]);
    }
    // What is written from here on lies before what is read after it.
    __syncthreads();
#pragma unroll
    for (int k = 0; k < batch; ++k)
    {
      const std::uint32_t inWarp = __ballot_sync(0xFFFFFFFFu, keeps[k]);
      unsigned long long  at = 0;
      if (inWarp && threadIdx.x % 32 == 0)
      {
        at = atomicAdd(&kept, static_cast<unsigned long long>(__popc(inWarp)));
      }
      at = __shfl_sync(0xFFFFFFFFu, at, 0);
      if (keeps[k])
      {
        store(at + static_cast<unsigned long long>(__popc(inWarp & ((1u << threadIdx.x % 32) - 1))), items[k]);
      }
    }
  }
  __syncthreads();
  return kept;
}

struct ForestEdge
{
  std::uint32_t first;
  std::uint32_t second;
  std::uint32_t capacity;
};

/** A block's table of the best edges between components, so that few of those between voxels become edges. */
struct ForestTable
{
  static constexpr int                Size = 1024;
  static constexpr unsigned long long Empty = ~0ull;

  unsigned long long pairs[Size];
  std::uint32_t      capacities[Size];
  std::uint32_t      listed;
  unsigned long long firstEdge;

  /** False if there is no room near its place. */
  __device__ bool
  Insert(const ForestEdge & edge)
  {
    const unsigned long long pair = (static_cast<unsigned long long>(edge.first) << 32) | edge.second;
    std::uint32_t            slot = (edge.first * 0x9E3779B1u ^ edge.second * 0x85EBCA6Bu) >> 22;
    for (int probe = 0; probe < 8; ++probe)
    {
      const unsigned long long there = atomicCAS(pairs + slot, Empty, pair);
      if (there == Empty || there == pair)
      {
        atomicMax(capacities + slot, edge.capacity);
        return true;
      }
      slot = (slot + 1) % Size;
    }
    return false;
  }
};

template <typename TKey, bool VPlanar>
struct ForestEdgeTile
{
  static constexpr TileShape Shape = EdgeTileOf(VPlanar);
  static constexpr int       LowY = VPlanar ? 0 : 1;
  static constexpr int       HighZ = VPlanar ? 0 : 1;
  static constexpr int       Pitch = Shape.x + 2;
  static constexpr int       Plane = Pitch * (Shape.y + 1 + LowY);
  static constexpr int       Held = Plane * (Shape.z + HighZ);

  std::uint32_t components[Held];
  TKey          keys[Held];
};

/** The edges between the voxels of different components, each but once or a few times. In the first pass also what the
 * voxels have from the source. `lists`: to the list, as far as there is room, or else offered to the components. */
template <typename TKey, bool VPlanar, bool VFull>
__device__ void
FindEdges(const ForestImage<TKey> & forest, const ReconstructionCode<TKey> & code, const ForestGraph & graph,
          ForestEdgeTile<TKey, VPlanar> & held, ForestTable & table, bool isFirst, bool lists)
{
  using Tile = ForestEdgeTile<TKey, VPlanar>;
  constexpr TileShape     shape = Tile::Shape;
  constexpr std::uint32_t none = ForestLink::Source - 1;
  const int               thread = static_cast<int>(threadIdx.x);
  const auto              list = [&](unsigned long long at, const ForestEdge & edge) {
    if (at < graph.mostEdges)
    {
      graph.ends[at] = make_uint2(edge.first, edge.second);
      graph.capacities[at] = edge.capacity;
    }
  };
  const auto isListed = [&](const ForestEdge & edge) { return lists && edge.second != ForestLink::Source; };
  for (std::uint32_t tile = blockIdx.x; tile < forest.numberOfEdgeTiles; tile += gridDim.x)
  {
    const ForestPlace<TKey> place(forest, forest.edgeTiles, shape, tile);
    __syncthreads();
    for (int slot = thread; slot < Tile::Held; slot += ForestThreads)
    {
      const int     x = slot % Tile::Pitch - 1;
      const int     y = slot / Tile::Pitch % (shape.y + 1 + Tile::LowY) - Tile::LowY;
      const int     z = slot / Tile::Plane;
      std::uint32_t component = none;
      TKey          key = 0;
      if (place.IsInside(x, y, z))
      {
        key = place.Mask(code, x, y, z);
        std::uint32_t label = __ldcg(forest.labels + place.Voxel(x, y, z));
        if (!(label & ForestLabel::Basin))
        {
          label = __ldcg(forest.labels + label);
        }
        if (label != ForestLabel::None)
        {
          component = label & ~ForestLabel::Basin;
          while (!isFirst && component != ForestLink::Source)
          {
            const std::uint32_t further = ForestLink::Component(__ldcg(graph.links + component));
            if (further == component)
            {
              break;
            }
            component = further;
          }
        }
      }
      held.components[slot] = component;
      held.keys[slot] = key;
    }
    for (int slot = thread; slot < ForestTable::Size; slot += ForestThreads)
    {
      table.pairs[slot] = ForestTable::Empty;
      table.capacities[slot] = 0;
    }
    if (thread == 0)
    {
      table.listed = 0;
    }
    __syncthreads();

    for (int i = thread; i < shape.x * shape.y * shape.z; i += ForestThreads)
    {
      const int           x = i % shape.x;
      const int           y = i / shape.x % shape.y;
      const int           z = i / (shape.x * shape.y);
      const int           slot = z * Tile::Plane + (y + Tile::LowY) * Tile::Pitch + x + 1;
      const std::uint32_t component = held.components[slot];
      if (component == none)
      {
        continue;
      }
      if (isFirst)
      {
        const TKey * const mask = place.mask + place.Offset(forest.image.maskStride, x, y, z);
        TKey * const       state = place.state + place.Offset(forest.image.stateStride, x, y, z);
        TKey               source = 0;
        if (forest.hasBeyond)
        {
          const std::int64_t at[3] = { place.lower[0] + x, place.lower[1] + y, place.lower[2] + z };
          source = StateFromBeyond(forest.image, code, VFull, at, mask, state);
        }
        else
        {
          source = code.FromBits(*state);
        }
        RaiseSource(graph, component, source);
      }
      std::uint32_t last = component;
      TKey          lastCapacity = 0;
#pragma unroll
      for (int dz = 0; dz <= Tile::HighZ; ++dz)
      {
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy)
        {
#pragma unroll
          for (int dx = -1; dx <= 1; ++dx)
          {
            const int  moved = (dx != 0) + (dy != 0) + (dz != 0);
            const bool isLater = dz > 0 || (dz == 0 && (dy > 0 || (dy == 0 && dx > 0)));
            if (!isLater || (moved > 1 && !VFull))
            {
              continue;
            }
            const int           other = slot + dz * Tile::Plane + dy * Tile::Pitch + dx;
            const std::uint32_t beyond = held.components[other];
            if (beyond == component || beyond == none)
            {
              continue;
            }
            const TKey capacity = min(held.keys[slot], held.keys[other]);
            if (beyond == last && capacity <= lastCapacity)
            {
              continue;
            }
            last = beyond;
            lastCapacity = capacity;
            const ForestEdge edge{ min(component, beyond), max(component, beyond), capacity };
            if (!table.Insert(edge))
            {
              isListed(edge) ? list(atomicAdd(&forest.counts->edges, 1ull), edge)
                             : OfferEdge(graph, edge.first, edge.second, edge.capacity);
            }
          }
        }
      }
    }
    __syncthreads();

    constexpr int rounds = ForestTable::Size / ForestThreads;
    ForestEdge    edges[rounds];
    std::uint32_t at[rounds];
    bool          listed[rounds];
#pragma unroll
    for (int round = 0; round < rounds; ++round)
    {
      const int                slot = round * ForestThreads + thread;
      const unsigned long long pair = table.pairs[slot];
      edges[round] = { static_cast<std::uint32_t>(pair >> 32),
                       static_cast<std::uint32_t>(pair),
                       table.capacities[slot] };
      listed[round] = pair != ForestTable::Empty && isListed(edges[round]);
      if (pair != ForestTable::Empty && !listed[round])
      {
        OfferEdge(graph, edges[round].first, edges[round].second, edges[round].capacity);
      }
      const std::uint32_t inWarp = __ballot_sync(0xFFFFFFFFu, listed[round]);
      at[round] = 0;
      if (inWarp && thread % 32 == 0)
      {
        at[round] = atomicAdd(&table.listed, static_cast<std::uint32_t>(__popc(inWarp)));
      }
      at[round] =
        __shfl_sync(0xFFFFFFFFu, at[round], 0) + static_cast<std::uint32_t>(__popc(inWarp & ((1u << thread % 32) - 1)));
    }
    __syncthreads();
    if (thread == 0 && table.listed > 0)
    {
      table.firstEdge = atomicAdd(&forest.counts->edges, static_cast<unsigned long long>(table.listed));
    }
    __syncthreads();
#pragma unroll
    for (int round = 0; round < rounds; ++round)
    {
      if (listed[round])
      {
        list(table.firstEdge + at[round], edges[round]);
      }
    }
  }
}

template <typename TKey, bool VPlanar, bool VFull>
__global__ void
__launch_bounds__(ForestThreads, 4) SpanBasins(ForestImage<TKey> forest, ReconstructionCode<TKey> code)
{
  __shared__ ForestEdgeTile<TKey, VPlanar> held;
  __shared__ ForestTable                   table;
  __shared__ unsigned long long            kept;

  const auto grid = cooperative_groups::this_grid();
  // Counters of phases in turn, each cleared two phases before it is used.
  int        phase = 0;
  const auto anyInGrid = [&](bool any) {
    if (__syncthreads_or(any) && threadIdx.x == 0)
    {
      atomicOr(forest.counts->open + phase % 3, 1u);
    }
    if (grid.thread_rank() == 0)
    {
      forest.counts->open[(phase + 1) % 3] = 0;
    }
    grid.sync();
    const bool result = __ldcg(forest.counts->open + phase % 3) != 0;
    ++phase;
    return result;
  };
  const std::uint32_t basins = __ldcg(&forest.counts->basins);
  const ForestGraph   graph(forest.pool, forest.poolBytes, basins);
  // A block's own part of the components, and later of the edges.
  const auto partOf = [](std::uint64_t all, std::uint32_t block) { return all * block / gridDim.x; };
  const auto firstAlive = static_cast<std::uint32_t>(partOf(basins, blockIdx.x));
  auto       alive = static_cast<std::uint32_t>(partOf(basins, blockIdx.x + 1)) - firstAlive;
  const auto forEachAlive = [&](auto && body) {
    for (std::uint32_t i = threadIdx.x; i < alive; i += ForestThreads)
    {
      body(graph.alive[firstAlive + i]);
    }
  };
  for (std::uint32_t i = threadIdx.x; i < alive; i += ForestThreads)
  {
    const std::uint32_t basin = firstAlive + i;
    graph.links[basin] = ForestLink::Make(basin, 0xFFFFFFFFu);
    graph.exits[basin] = 0;
    graph.sources[basin] = 0;
    graph.alive[basin] = basin;
  }

  // What leaves its tile leads to voxels at the borders of others: when these know their basins, so do all.
  constexpr TileShape shape = LabelTileOf(VPlanar);
  for (bool more = true; more;)
  {
    more = false;
    for (std::uint32_t tile = blockIdx.x; tile < forest.numberOfLabelTiles; tile += gridDim.x)
    {
      const ForestPlace<TKey> place(forest, forest.labelTiles, shape, tile);
      const auto              follow = [&](int x, int y, int z) {
        if (place.IsInside(x, y, z))
        {
          more |= FollowLabel(forest.labels, place.Voxel(x, y, z));
        }
      };
      // Both ends of each axis in turn.
      for (int i = static_cast<int>(threadIdx.x); i < 2 * shape.y * shape.z; i += ForestThreads)
      {
        follow(i % 2 * (shape.x - 1), i / 2 % shape.y, i / (2 * shape.y));
      }
      for (int i = static_cast<int>(threadIdx.x); i < 2 * shape.x * shape.z; i += ForestThreads)
      {
        follow(i % shape.x, i / shape.x % 2 * (shape.y - 1), i / (2 * shape.x));
      }
      for (int i = static_cast<int>(threadIdx.x); !VPlanar && i < 2 * shape.x * shape.y; i += ForestThreads)
      {
        follow(i % shape.x, i / shape.x % shape.y, i / (shape.x * shape.y) * (shape.z - 1));
      }
    }
    more = anyInGrid(more);
  }

  bool          isListed = false;
  std::uint64_t firstEdge = 0;
  std::uint64_t edges = 0;
  bool          open = basins > 0;
  for (bool isFirst = true; open; isFirst = false)
  {
    if (!isListed)
    {
      // Where the list has no room for all edges the rounds go over the voxels until there are fewer.
      FindEdges<TKey, VPlanar, VFull>(forest, code, graph, held, table, isFirst, true);
      grid.sync();
      const std::uint64_t all = __ldcg(&forest.counts->edges);
      isListed = all <= graph.mostEdges;
      if (isListed)
      {
        firstEdge = partOf(all, blockIdx.x);
        edges = partOf(all, blockIdx.x + 1) - firstEdge;
        for (std::uint64_t i = threadIdx.x; i < edges; i += ForestThreads)
        {
          const uint2 ends = graph.ends[firstEdge + i];
          OfferEdge(graph, ends.x, ends.y, graph.capacities[firstEdge + i]);
        }
      }
      else
      {
        FindEdges<TKey, VPlanar, VFull>(forest, code, graph, held, table, false, false);
      }
      grid.sync();
    }
    if (grid.thread_rank() == 0)
    {
      forest.counts->edges = 0;
    }
    forEachAlive([&](std::uint32_t component) { JoinComponent(graph, component); });
    grid.sync();
    forEachAlive([&](std::uint32_t component) { graph.exits[component] = 0; });
    for (bool more = true; more;)
    {
      more = false;
      forEachAlive([&](std::uint32_t component) { more |= FollowLink(graph.links, component); });
      more = anyInGrid(more);
    }
    alive = static_cast<std::uint32_t>(KeepInBlock(
      alive,
      kept,
      [&](std::uint64_t i) { return graph.alive[firstAlive + i]; },
      [&](std::uint64_t i, std::uint32_t component) { graph.alive[firstAlive + i] = component; },
      [&](std::uint32_t component) {
        const std::uint32_t to = ForestLink::Component(__ldcg(graph.links + component));
        if (to != component && to != ForestLink::Source)
        {
          RaiseSource(graph, to, __ldcg(graph.sources + component));
        }
        return to == component;
      }));
    edges = KeepInBlock(
      edges,
      kept,
      [&](std::uint64_t i) {
        const uint2 ends = graph.ends[firstEdge + i];
        return ForestEdge{ ends.x, ends.y, graph.capacities[firstEdge + i] };
      },
      [&](std::uint64_t i, const ForestEdge & edge) {
        graph.ends[firstEdge + i] = make_uint2(edge.first, edge.second);
        graph.capacities[firstEdge + i] = edge.capacity;
      },
      [&](ForestEdge & edge) {
        const std::uint32_t first = ForestLink::Component(__ldcg(graph.links + edge.first));
        const std::uint32_t second = ForestLink::Component(__ldcg(graph.links + edge.second));
        edge.first = min(first, second);
        edge.second = max(first, second);
        if (first != second)
        {
          OfferEdge(graph, edge.first, edge.second, edge.capacity);
        }
        return first != second && edge.second != ForestLink::Source;
      });
    open = anyInGrid(alive > 0);
  }

  // The links of each round lead to components of that round: on to the source.
  for (std::uint32_t basin = blockIdx.x * ForestThreads + threadIdx.x; basin < basins;
       basin += gridDim.x * ForestThreads)
  {
    std::uint32_t result = 0xFFFFFFFFu;
    for (std::uint32_t at = basin; at != ForestLink::Source;)
    {
      const std::uint64_t link = __ldcg(graph.links + at);
      result = min(result, ForestLink::Capacity(link));
      at = ForestLink::Component(link);
    }
    graph.sources[basin] = result;
  }
}

template <typename TKey, bool VPlanar, bool VFull>
__global__ void
__launch_bounds__(ForestThreads) StoreBasins(ForestImage<TKey> forest, ReconstructionCode<TKey> code)
{
  constexpr TileShape shape = LabelTileOf(VPlanar);
  const ForestGraph   graph(forest.pool, forest.poolBytes, forest.counts->basins);
  for (std::uint32_t tile = blockIdx.x; tile < forest.numberOfLabelTiles; tile += gridDim.x)
  {
    const ForestPlace<TKey> place(forest, forest.labelTiles, shape, tile);
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < shape.x * shape.y * shape.z; i += ForestThreads)
    {
      const int x = i % shape.x;
      const int y = i / shape.x % shape.y;
      const int z = i / (shape.x * shape.y);
      if (!place.IsInside(x, y, z))
      {
        continue;
      }
      std::uint32_t label = forest.labels[place.Voxel(x, y, z)];
      if (!(label & ForestLabel::Basin))
      {
        label = forest.labels[label];
      }
      const TKey * const mask = place.mask + place.Offset(forest.image.maskStride, x, y, z);
      TKey * const       state = place.state + place.Offset(forest.image.stateStride, x, y, z);
      // Of the lowest mask there is no basin, and no result but itself.
      const TKey limit = code.FromBits(__ldg(mask));
      const TKey key =
        label == ForestLabel::None ? limit : min(limit, static_cast<TKey>(graph.sources[label & ~ForestLabel::Basin]));
      if (forest.hasBeyond)
      {
        const std::int64_t at[3] = { place.lower[0] + x, place.lower[1] + y, place.lower[2] + z };
        StoreAndTell(forest.image, code, VFull, at, mask, state, key);
      }
      else
      {
        *state = code.ToBits(key);
      }
    }
  }
}

template <typename TKey, bool VPlanar, bool VFull>
void
LaunchForest(const ForestImage<TKey> & forest, const ReconstructionCode<TKey> & code, cudaStream_t stream)
{
  const auto tileBlocks = std::min(forest.numberOfLabelTiles, 1u << 16);
  CheckCuda(cudaMemsetAsync(forest.counts, 0, sizeof(ForestCounts), stream), "cudaMemsetAsync");
  LabelBasins<TKey, VPlanar, VFull><<<tileBlocks, ForestThreads, 0, stream>>>(forest, code);
  CheckLaunch("reconstruction");
  LaunchTogether(SpanBasins<TKey, VPlanar, VFull>, ForestThreads, 0, forest.numberOfEdgeTiles, stream, forest, code);
  StoreBasins<TKey, VPlanar, VFull><<<tileBlocks, ForestThreads, 0, stream>>>(forest, code);
  CheckLaunch("reconstruction");
}

template <typename TKey>
ForestImage<TKey>
MakeForestImage(const WavefrontImage<TKey> & image, const WavefrontShape & shape, void * scratch)
{
  ForestImage<TKey> forest{};
  forest.image = image;
  const TileShape labelTile = LabelTileOf(shape.planar);
  const TileShape edgeTile = EdgeTileOf(shape.planar);
  const int       labelExtent[3] = { labelTile.x, labelTile.y, labelTile.z };
  const int       edgeExtent[3] = { edgeTile.x, edgeTile.y, edgeTile.z };
  std::int64_t    volumes = 1;
  for (const std::int64_t positions : shape.positions)
  {
    volumes *= positions;
  }
  forest.numberOfLabelTiles = forest.numberOfEdgeTiles = static_cast<std::uint32_t>(volumes);
  forest.volumeVoxels = 1;
  for (int a = 0; a < 3; ++a)
  {
    const auto extent = static_cast<std::uint32_t>(shape.extent[a]);
    forest.extent[a] = extent;
    forest.volumeVoxels *= extent;
    forest.labelTiles[a] = (extent - 1) / static_cast<std::uint32_t>(labelExtent[a]) + 1;
    forest.edgeTiles[a] = (extent - 1) / static_cast<std::uint32_t>(edgeExtent[a]) + 1;
    forest.numberOfLabelTiles *= forest.labelTiles[a];
    forest.numberOfEdgeTiles *= forest.edgeTiles[a];
    forest.hasBeyond = forest.hasBeyond || image.before[a] || image.after[a];
  }
  const std::int64_t voxels = forest.volumeVoxels * volumes;
  forest.counts = static_cast<ForestCounts *>(scratch);
  forest.labels = reinterpret_cast<std::uint32_t *>(static_cast<char *>(scratch) + 256);
  forest.pool = static_cast<char *>(scratch) + 256 + ForestLabelBytes(voxels);
  forest.poolBytes = ForestPoolBytesOfVoxel * static_cast<std::size_t>(voxels);
  return forest;
}

/** `scratch` has ForestScratchBytes. */
template <typename TKey>
void
RunForest(const WavefrontImage<TKey> & image, const WavefrontShape & shape, const ReconstructionOperation & operation,
          const ReconstructionCode<TKey> & code, void * scratch, cudaStream_t stream)
{
  const ForestImage<TKey> forest = MakeForestImage(image, shape, scratch);
  if (shape.planar)
  {
    operation.fullyConnected ? LaunchForest<TKey, true, true>(forest, code, stream)
                             : LaunchForest<TKey, true, false>(forest, code, stream);
  }
  else
  {
    operation.fullyConnected ? LaunchForest<TKey, false, true>(forest, code, stream)
                             : LaunchForest<TKey, false, false>(forest, code, stream);
  }
}

} // namespace chunkwise

#endif
