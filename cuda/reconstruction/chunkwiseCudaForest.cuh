/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaForest_cuh
#define chunkwiseCudaForest_cuh

#include "chunkwiseCudaChunkBorder.cuh"
#include "chunkwiseRoundUp.h"

#include <cooperative_groups.h>

// Morphological reconstruction by a spanning forest, in a few rounds whatever way the values have to go.
//
// A voxel's result is the largest capacity of a path to a source, where an edge between neighbours has the smaller of
// their masks as its capacity and one from a voxel to the source the voxel's state.
//
// Basins. A voxel leads to the largest mask around it, of equal ones the last in the image, until none is larger: to
// the top of its basin. The masks rise all the way, so that its capacity is the voxel's own mask, and the voxel's
// result is the smaller one of its mask and of the result of the top. The rest is a graph of the basins, some hundred
// times smaller if the image is smooth.
//
// Rounds. Every component of basins joins the one that its best edge leads to (Boruvka), of equal capacities the one
// with the largest name, so that there is no cycle but of two that are each other's best. Edges that leave a component
// can be no better than those within it, so that a basin's capacity is the smallest on its way along these edges.
// Components that the source is in are done; the others at least halve in number.
namespace chunkwise
{

constexpr int ForestThreads = 256;

/** The finding about a voxel of the image: the voxel that it leads to, or the number of its basin. */
struct ForestLabel
{
  static constexpr std::uint32_t Basin = 0x80000000u;
  /** The label of voxels with the lowest mask, which nothing raises. */
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
  /** Counts of the votes on labels and on components. */
  std::uint32_t open[6];
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

/** Labels have 31 bits. */
constexpr std::int64_t MostVoxelsOfForest = static_cast<std::int64_t>(ForestLabel::Basin) - 2;

/** Whether a chunk can be a forest: of single voxels each would be a basin. */
inline bool
ForestFits(const WavefrontShape & shape, std::int64_t voxels)
{
  return shape.extent[0] * shape.extent[1] * shape.extent[2] > 1 && voxels <= MostVoxelsOfForest;
}

/** Whether a chunk has room for a forest. By Auto only one that holds the image whole has: the parts of a larger one
 * would be much smaller with it, and are solved again and again from little that changed at their borders. */
inline bool
HasRoomForForest(const ReconstructionOperation & operation, const Box & own, const Box & image, std::size_t keyBytes)
{
  bool whole = true;
  for (int a = 0; a < operation.spatialDimension; ++a)
  {
    whole = whole && own.Extent(a) == image.Extent(a);
  }
  return keyBytes <= 4 && (operation.method == ReconstructionMethod::SpanningForest ||
                           (operation.method == ReconstructionMethod::Auto && whole));
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
 * this is enough. If basins are no more than in white noise, it is enough for their edges too. */
constexpr std::size_t ForestPoolBytesOfVoxel = 16;

inline std::size_t
ForestLabelBytes(std::int64_t voxels)
{
  return RoundUp(sizeof(std::uint32_t) * static_cast<std::size_t>(voxels));
}

inline std::size_t
ForestScratchBytes(std::int64_t voxels)
{
  return 256 + ForestLabelBytes(voxels) + ForestPoolBytesOfVoxel * static_cast<std::size_t>(voxels);
}

/** The scratch of a chunk for a forest. If volumes are too large for forests, none has any. One of several volumes
 * that is too large must not take less than a smaller one. */
inline std::size_t
ForestScratchBytes(const ReconstructionOperation & operation, const Box & own, const Box & image, std::size_t keyBytes)
{
  std::int64_t volume = 1;
  for (int a = 0; a < operation.spatialDimension; ++a)
  {
    volume *= own.Extent(a);
  }
  const bool isWanted = HasRoomForForest(operation, own, image, keyBytes);
  const bool ofPart = operation.method == ReconstructionMethod::SpanningForest;
  return isWanted && (ofPart || volume <= MostVoxelsOfForest)
           ? ForestScratchBytes(std::min(own.NumberOfVoxels(), MostVoxelsOfForest))
           : 0;
}

/** Tiles of labels. A thread has ForestRows voxels of it, one below the next. */
constexpr int ForestRows = 16;
__host__ __device__ constexpr TileShape
LabelTileOf(bool planar)
{
  return planar ? TileShape{ 64, 64, 1, ForestThreads } : TileShape{ 32, 16, 8, ForestThreads };
}
/** Tiles of edges. A warp has 31 columns, as it needs one more, and goes along ForestRows rows, or planes. */
constexpr int ForestColumns = 31;
__host__ __device__ constexpr TileShape
EdgeTileOf(bool planar)
{
  return planar ? TileShape{ 4 * ForestColumns, 2 * ForestRows, 1, ForestThreads }
                : TileShape{ ForestColumns, ForestThreads / 32, ForestRows, ForestThreads };
}

/** The place of a tile of the forest. */
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
  /** Whether a voxel of the tile, or beside it, is in the image. */
  __device__ bool
  IsInside(int x, int y, int z) const
  {
    // Below 0 is far above.
    return lower[0] + static_cast<std::uint32_t>(x) < forest.extent[0] &&
           lower[1] + static_cast<std::uint32_t>(y) < forest.extent[1] &&
           lower[2] + static_cast<std::uint32_t>(z) < forest.extent[2];
  }
  /** Rows from a voxel of the tile on that are in the image. */
  __device__ int
  RowsInside(int x, int y, int z) const
  {
    return IsInside(x, y, z) ? static_cast<int>(min(forest.extent[1] - (lower[1] + static_cast<std::uint32_t>(y)),
                                                    static_cast<std::uint32_t>(ForestRows)))
                             : 0;
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

/** Adds the number of lanes, and gives each of them a separate number from there. All lanes take part. */
template <typename TCount>
__device__ TCount
AddInWarp(TCount * count, std::uint32_t lanes)
{
  const std::uint32_t lane = threadIdx.x % 32;
  TCount              before = 0;
  if (lane == 0 && lanes)
  {
    before = atomicAdd(count, static_cast<TCount>(__popc(lanes)));
  }
  return __shfl_sync(0xFFFFFFFFu, before, 0) + static_cast<TCount>(__popc(lanes & ((1u << lane) - 1)));
}

/** A tile of voxels to label, with the layer around it, in shared memory. A thread has ForestRows voxels, each in the
 * row after that of the one before. */
template <typename TKey, bool VPlanar>
struct LabelTile
{
  static constexpr TileShape     Shape = LabelTileOf(VPlanar);
  static constexpr int           FrameZ = VPlanar ? 0 : 1;
  static constexpr int           Pitch = Shape.x + 2;
  static constexpr int           Plane = Pitch * (Shape.y + 2);
  static constexpr int           Held = Plane * (Shape.z + 2 * FrameZ);
  static constexpr std::uint16_t Outside = 0xFFFF;
  static constexpr std::uint16_t None = 0xFFFE;
  static_assert(Shape.x * Shape.y * Shape.z == ForestThreads * ForestRows && ForestThreads % Shape.x == 0, "lines");
  static_assert(Held < None, "slots are numbered in 16 bits");

  TKey          keys[Held];
  std::uint16_t ahead[Held]; ///< where each slot leads
  std::uint16_t tops[Held];  ///< the number of a top, or one of the two above
  std::uint32_t found;
  std::uint32_t firstBasin;

  /** A slot's key and its number in one: the largest of some is that of the largest key, of equal ones the last. */
  using Place = std::conditional_t<(sizeof(TKey) <= 2), std::uint32_t, std::uint64_t>;
  __device__ __forceinline__ Place
  PlaceAt(int slot) const
  {
    return (Place{ keys[slot] } << 16) | static_cast<std::uint32_t>(slot);
  }
  /** The largest beside a slot in its row, and in the rows beside that in the planes before and after. */
  __device__ __forceinline__ Place
  LargestOfRow(int slot) const
  {
    Place largest = 0;
#pragma unroll
    for (int dz = -FrameZ; dz <= FrameZ; ++dz)
    {
#pragma unroll
      for (int dx = -1; dx <= 1; ++dx)
      {
        largest = max(largest, PlaceAt(slot + dz * Plane + dx));
      }
    }
    return largest;
  }
};

template <bool VPlanar, typename TKey>
__device__ __forceinline__ void
LoadLabelTile(LabelTile<TKey, VPlanar> & tile, const ForestPlace<TKey> & place, const ReconstructionCode<TKey> & code)
{
  using Tile = LabelTile<TKey, VPlanar>;
  constexpr TileShape shape = Tile::Shape;
  constexpr int       rows = Tile::Held / Tile::Pitch;
  const int           thread = static_cast<int>(threadIdx.x);
  const auto          load = [&](int x, int row) {
    const int y = row % (shape.y + 2) - 1;
    const int z = row / (shape.y + 2) - Tile::FrameZ;
    const int slot = row * Tile::Pitch + x + 1;
    tile.keys[slot] = place.IsInside(x, y, z) ? place.Mask(code, x, y, z) : TKey{ 0 };
    tile.ahead[slot] = static_cast<std::uint16_t>(slot);
    tile.tops[slot] = Tile::Outside;
  };
#pragma unroll 4
  for (int row = thread / shape.x; row < rows; row += ForestThreads / shape.x)
  {
    load(thread % shape.x, row);
  }
  for (int i = thread; i < 2 * rows; i += ForestThreads)
  {
    load(i % 2 ? shape.x : -1, i / 2);
  }
  if (thread == 0)
  {
    tile.found = 0;
  }
}

/** Each voxel leads to the largest around it. */
template <bool VFull, bool VPlanar, typename TKey>
__device__ __forceinline__ void
LeadToLargest(LabelTile<TKey, VPlanar> & tile, int firstSlot)
{
  using Tile = LabelTile<TKey, VPlanar>;
  using Place = typename Tile::Place;
  const auto largestOf = [&](int slot) { return VFull ? tile.LargestOfRow(slot) : tile.PlaceAt(slot); };
  Place      above = largestOf(firstSlot - Tile::Pitch);
  Place      own = largestOf(firstSlot);
#pragma unroll 4
  for (int row = 0; row < ForestRows; ++row)
  {
    const int   slot = firstSlot + row * Tile::Pitch;
    const Place below = largestOf(slot + Tile::Pitch);
    Place       largest = max(max(above, own), below);
    if constexpr (!VFull)
    {
      largest = max(largest, max(tile.PlaceAt(slot - 1), tile.PlaceAt(slot + 1)));
      if constexpr (!VPlanar)
      {
        largest = max(largest, max(tile.PlaceAt(slot - Tile::Plane), tile.PlaceAt(slot + Tile::Plane)));
      }
    }
    // The lowest keys lead nowhere, and missing voxels have them too.
    if (tile.keys[slot] > 0)
    {
      tile.ahead[slot] = static_cast<std::uint16_t>(largest);
    }
    above = own;
    own = below;
  }
}

/** Then each voxel leads to its top. All threads of the block. */
template <bool VPlanar, typename TKey>
__device__ __forceinline__ void
LeadToTops(LabelTile<TKey, VPlanar> & tile, int firstSlot)
{
  constexpr int pitch = LabelTile<TKey, VPlanar>::Pitch;
  for (bool more = true; more;)
  {
    std::uint16_t next[ForestRows];
    more = false;
    // All is read before anything is written.
#pragma unroll
    for (int row = 0; row < ForestRows; ++row)
    {
      std::uint16_t to = tile.ahead[firstSlot + row * pitch];
      for (int hop = 0; hop < 8; ++hop)
      {
        const std::uint16_t further = tile.ahead[to];
        if (further == to)
        {
          break;
        }
        to = further;
      }
      next[row] = to;
      more = more || tile.ahead[to] != to;
    }
    __syncthreads();
#pragma unroll
    for (int row = 0; row < ForestRows; ++row)
    {
      tile.ahead[firstSlot + row * pitch] = next[row];
    }
    more = __syncthreads_or(more);
  }
}

/** Numbers the tops in the tile. */
template <bool VPlanar, typename TKey>
__device__ __forceinline__ void
NumberTops(LabelTile<TKey, VPlanar> & tile, int firstSlot)
{
  using Tile = LabelTile<TKey, VPlanar>;
#pragma unroll 4
  for (int row = 0; row < ForestRows; ++row)
  {
    const int           slot = firstSlot + row * Tile::Pitch;
    const bool          isTop = tile.ahead[slot] == slot && tile.keys[slot] > 0;
    const std::uint32_t inWarp = __ballot_sync(0xFFFFFFFFu, isTop);
    if (inWarp)
    {
      const std::uint32_t before = AddInWarp(&tile.found, inWarp);
      tile.tops[slot] = isTop ? static_cast<std::uint16_t>(before) : tile.tops[slot];
    }
    if (tile.keys[slot] == 0)
    {
      tile.tops[slot] = Tile::None;
    }
  }
}

/** The label of a voxel that leads to slot `to`. */
template <bool VPlanar, typename TKey>
__device__ __forceinline__ std::uint32_t
                           LabelOf(const LabelTile<TKey, VPlanar> & tile, const ForestPlace<TKey> & place, int to)
{
  using Tile = LabelTile<TKey, VPlanar>;
  const std::uint16_t top = tile.tops[to];
  if (top == Tile::Outside)
  {
    return place.Voxel(
      to % Tile::Pitch - 1, to / Tile::Pitch % (Tile::Shape.y + 2) - 1, to / Tile::Plane - Tile::FrameZ);
  }
  return top != Tile::None ? ForestLabel::Basin | (tile.firstBasin + top) : ForestLabel::None;
}

/** Finds the top of each voxel's basin as far as it is in the voxel's tile, and numbers the tops. */
template <typename TKey, bool VPlanar, bool VFull>
__global__ void
__launch_bounds__(ForestThreads) LabelBasins(ForestImage<TKey> forest, ReconstructionCode<TKey> code)
{
  using Tile = LabelTile<TKey, VPlanar>;
  constexpr TileShape shape = Tile::Shape;
  __shared__ Tile     tile;

  const int thread = static_cast<int>(threadIdx.x);
  const int lineX = thread % shape.x;
  const int lineY = VPlanar ? thread / shape.x * ForestRows : 0;
  const int lineZ = VPlanar ? 0 : thread / shape.x;
  const int firstSlot = (lineZ + Tile::FrameZ) * Tile::Plane + (lineY + 1) * Tile::Pitch + lineX + 1;
  for (std::uint32_t number = blockIdx.x; number < forest.numberOfLabelTiles; number += gridDim.x)
  {
    const ForestPlace<TKey> place(forest, forest.labelTiles, shape, number);
    __syncthreads();
    LoadLabelTile(tile, place, code);
    __syncthreads();
    LeadToLargest<VFull>(tile, firstSlot);
    __syncthreads();
    LeadToTops(tile, firstSlot);
    NumberTops(tile, firstSlot);
    __syncthreads();
    if (thread == 0)
    {
      tile.firstBasin = atomicAdd(&forest.counts->basins, tile.found);
    }
    __syncthreads();
    const int       inside = place.RowsInside(lineX, lineY, lineZ);
    std::uint32_t * labels = forest.labels + place.Voxel(lineX, lineY, lineZ);
#pragma unroll 4
    for (int row = 0; row < ForestRows; ++row)
    {
      const std::uint32_t label = LabelOf(tile, place, tile.ahead[firstSlot + row * Tile::Pitch]);
      if (row < inside)
      {
        *labels = label;
      }
      labels += forest.extent[0];
    }
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

/** Calls body(item) for `count` items that the block reads from `load(i)` and keeps the items for which it returns
 * true, by `store(i, item)` at the begin. Returns their number. */
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
    // Stores from here on go to places before the items that are read after it.
    __syncthreads();
#pragma unroll
    for (int k = 0; k < batch; ++k)
    {
      const std::uint32_t inWarp = __ballot_sync(0xFFFFFFFFu, keeps[k]);
      const auto          at = AddInWarp(&kept, inWarp);
      if (keeps[k])
      {
        store(at, items[k]);
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
  static constexpr int                Size = 2048;
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
    std::uint32_t            slot = (edge.first * 0x9E3779B1u ^ edge.second * 0x85EBCA6Bu) >> 21;
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

/** A voxel's component and mask. */
template <typename TKey>
struct ForestCell
{
  /** The component of what is not there, or has the lowest mask. */
  static constexpr std::uint32_t None = ForestLink::Source - 1;

  std::uint32_t component;
  TKey          key;

  __device__ ForestCell
  OfNextLane() const
  {
    return { __shfl_down_sync(0xFFFFFFFFu, component, 1), static_cast<TKey>(__shfl_down_sync(0xFFFFFFFFu, key, 1)) };
  }
};

/** Takes edges of a tile to its table, or, where that has no room, to the list or to the components. */
struct ForestEdgeSink
{
  const ForestGraph &  graph;
  ForestTable &        table;
  unsigned long long * count; ///< of listed edges
  bool                 lists;
  ForestEdge           last; ///< what this thread has put into the table

  __device__ bool
  IsListed(const ForestEdge & edge) const
  {
    return lists && edge.second != ForestLink::Source;
  }
  __device__ void
  List(unsigned long long at, const ForestEdge & edge) const
  {
    if (at < graph.mostEdges)
    {
      graph.ends[at] = make_uint2(edge.first, edge.second);
      graph.capacities[at] = edge.capacity;
    }
  }
  template <typename TKey>
  __device__ void
  Take(const ForestCell<TKey> & a, const ForestCell<TKey> & b)
  {
    const ForestEdge edge{ min(a.component, b.component),
                           max(a.component, b.component),
                           static_cast<std::uint32_t>(min(a.key, b.key)) };
    if (a.component == b.component || a.component == ForestCell<TKey>::None || b.component == ForestCell<TKey>::None ||
        (edge.first == last.first && edge.second == last.second && edge.capacity <= last.capacity))
    {
      return;
    }
    if (table.Insert(edge))
    {
      last = edge;
    }
    else if (IsListed(edge))
    {
      List(atomicAdd(count, 1ull), edge);
    }
    else
    {
      OfferEdge(graph, edge.first, edge.second, edge.capacity);
    }
  }
};

/** The edges of voxels that are all neighbours of each other. All lanes take part, those with none too. */
template <typename TKey, int VCells>
__device__ void
TakeAll(ForestEdgeSink & sink, const ForestCell<TKey> (&cells)[VCells], bool hasNext)
{
  constexpr std::uint32_t none = ForestCell<TKey>::None;
  // The components with the largest mask that each has.
  ForestCell<TKey> found[3] = { { none, 0 }, { none, 0 }, { none, 0 } };
  bool             hasMore = false;
#pragma unroll
  for (int c = 0; c < VCells; ++c)
  {
    bool isPlaced = cells[c].component == none;
#pragma unroll
    for (int f = 0; f < 3; ++f)
    {
      const bool isHere = !isPlaced && (found[f].component == none || found[f].component == cells[c].component);
      found[f].component = isHere ? cells[c].component : found[f].component;
      found[f].key = isHere && cells[c].key > found[f].key ? cells[c].key : found[f].key;
      isPlaced = isPlaced || isHere;
    }
    hasMore = hasMore || !isPlaced;
  }
  // Along a border between two components it is enough to take the largest of neighbouring lanes.
  const bool          hasTwo = found[1].component != none && found[2].component == none;
  const ForestEdge    edge{ min(found[0].component, found[1].component),
                         max(found[0].component, found[1].component),
                         hasTwo ? static_cast<std::uint32_t>(min(found[0].key, found[1].key)) : 0u };
  const std::uint32_t nextFirst = __shfl_down_sync(0xFFFFFFFFu, edge.first, 1);
  const std::uint32_t nextSecond = __shfl_down_sync(0xFFFFFFFFu, edge.second, 1);
  const std::uint32_t nextCapacity = __shfl_down_sync(0xFFFFFFFFu, edge.capacity, 1);
  const bool isLess = hasNext && nextFirst == edge.first && nextSecond == edge.second && nextCapacity >= edge.capacity;
  // One after the other, from one place in the code.
  ForestCell<TKey> all[VCells];
  int              turns = hasTwo && !isLess ? 1 : 0;
  if (hasMore)
  {
    turns = VCells * VCells;
#pragma unroll
    for (int c = 0; c < VCells; ++c)
    {
      all[c] = cells[c];
    }
  }
  else if (found[2].component != none)
  {
    turns = 3;
  }
#pragma unroll 1
  for (int turn = 0; turn < turns; ++turn)
  {
    ForestCell<TKey> a = turn == 2 ? found[1] : found[0];
    ForestCell<TKey> b = turn == 0 ? found[1] : found[2];
    if (hasMore)
    {
      a = all[turn / VCells];
      b = all[turn % VCells];
    }
    sink.Take(a, b);
  }
}

__device__ __forceinline__ void
ClearTable(ForestTable & table)
{
  for (int slot = static_cast<int>(threadIdx.x); slot < ForestTable::Size; slot += ForestThreads)
  {
    table.pairs[slot] = ForestTable::Empty;
    table.capacities[slot] = 0;
  }
  if (threadIdx.x == 0)
  {
    table.listed = 0;
  }
}

/** Reads the cells of some steps of a thread, from step `first` on, each with its component: of a plane along y, of a
 * volume along z, there with the row before. In the first pass components are the labels' own. */
template <bool VPlanar, bool VFirst, typename TKey, int VSteps, int VLines>
__device__ __forceinline__ void
ReadCells(const ForestImage<TKey> & forest, const ReconstructionCode<TKey> & code, const ForestGraph & graph,
          const ForestPlace<TKey> & place, int x, int y, int first, ForestCell<TKey> (&cells)[VSteps][VLines])
{
  using Cell = ForestCell<TKey>;
  std::uint32_t labels[VSteps][VLines];
#pragma unroll
  for (int k = 0; k < VSteps; ++k)
  {
#pragma unroll
    for (int line = 0; line < VLines; ++line)
    {
      const int  step = first + k;
      const int  atY = VPlanar ? y + step : y - line;
      const int  atZ = VPlanar ? 0 : step;
      const bool isInside = step < ForestRows && place.IsInside(x, atY, atZ);
      labels[k][line] = isInside ? __ldcg(forest.labels + place.Voxel(x, atY, atZ)) : ForestLabel::None;
      cells[k][line].key = isInside ? place.Mask(code, x, atY, atZ) : TKey{ 0 };
    }
  }
#pragma unroll
  for (int k = 0; k < VSteps; ++k)
  {
#pragma unroll
    for (int line = 0; line < VLines; ++line)
    {
      std::uint32_t label = labels[k][line];
      if (!(label & ForestLabel::Basin))
      {
        label = __ldcg(forest.labels + label);
      }
      std::uint32_t component = label == ForestLabel::None ? Cell::None : label & ~ForestLabel::Basin;
      while (!VFirst && component < Cell::None)
      {
        const std::uint32_t further = ForestLink::Component(__ldcg(graph.links + component));
        if (further == component)
        {
          break;
        }
        component = further;
      }
      cells[k][line].component = component;
    }
  }
}

/** Empties a block's table: its edges go to the list or are offered to the components. All threads of the block. */
template <typename TSink, typename TCount>
__device__ __forceinline__ void
EmptyTable(const ForestGraph & graph, ForestTable & table, TSink & sink, TCount * edges)
{
  constexpr int rounds = ForestTable::Size / ForestThreads;
  const int     thread = static_cast<int>(threadIdx.x);
  std::uint32_t listed = 0;
#pragma unroll
  for (int round = 0; round < rounds; ++round)
  {
    const int                slot = round * ForestThreads + thread;
    const unsigned long long pair = table.pairs[slot];
    const ForestEdge         edge{ static_cast<std::uint32_t>(pair >> 32),
                           static_cast<std::uint32_t>(pair),
                           table.capacities[slot] };
    if (pair != ForestTable::Empty && !sink.IsListed(edge))
    {
      OfferEdge(graph, edge.first, edge.second, edge.capacity);
    }
    listed |= pair != ForestTable::Empty && sink.IsListed(edge) ? 1u << round : 0u;
  }
  const std::uint32_t own = static_cast<std::uint32_t>(__popc(listed));
  std::uint32_t       at = own > 0 ? atomicAdd(&table.listed, own) : 0;
  __syncthreads();
  if (thread == 0 && table.listed > 0)
  {
    table.firstEdge = atomicAdd(edges, static_cast<TCount>(table.listed));
  }
  __syncthreads();
  for (; listed; listed &= listed - 1)
  {
    const int                slot = (__ffs(static_cast<int>(listed)) - 1) * ForestThreads + thread;
    const unsigned long long pair = table.pairs[slot];
    sink.List(table.firstEdge + at++,
              { static_cast<std::uint32_t>(pair >> 32), static_cast<std::uint32_t>(pair), table.capacities[slot] });
  }
}

/** The value that a voxel has from the source. */
template <typename TKey>
__device__ __forceinline__ TKey
SourceOf(const ForestImage<TKey> & forest, const ReconstructionCode<TKey> & code, const ForestPlace<TKey> & place,
         bool isFull, int x, int y, int z)
{
  const TKey * const mask = place.mask + place.Offset(forest.image.maskStride, x, y, z);
  TKey * const       state = place.state + place.Offset(forest.image.stateStride, x, y, z);
  const std::int64_t at[3] = { place.lower[0] + x, place.lower[1] + y, place.lower[2] + z };
  return forest.hasBeyond ? StateFromBeyond(forest.image, code, isFull, at, mask, state) : code.FromBits(*state);
}

/** Takes the edges of a voxel to all voxels around it. */
template <typename TSink, typename TCell, int VLines>
__device__ __forceinline__ void
TakeAround(TSink & sink, const TCell (&own)[VLines], const TCell (&next)[VLines], const TCell (&before)[VLines],
           const TCell (&beforeNext)[VLines], bool isOwn, bool hasNext)
{
  TCell around[4 * VLines];
#pragma unroll
  for (int line = 0; line < VLines; ++line)
  {
    around[4 * line] = own[line];
    around[4 * line + 1] = next[line];
    around[4 * line + 2] = before[line];
    around[4 * line + 3] = beforeNext[line];
#pragma unroll
    for (int c = 0; c < 4; ++c)
    {
      around[4 * line + c].component = isOwn ? around[4 * line + c].component : TCell::None;
    }
  }
  TakeAll(sink, around, hasNext);
}

/** The edges between the voxels of different components, each but once or a few times. In the first pass also what the
 * voxels have from the source. `lists`: to the list, as far as there is room, or else offered to the components. */
template <typename TKey, bool VPlanar, bool VFull, bool VFirst>
__device__ void
FindEdges(const ForestImage<TKey> & forest, const ReconstructionCode<TKey> & code, const ForestGraph & graph,
          ForestTable & table, bool lists)
{
  using Cell = ForestCell<TKey>;
  constexpr TileShape shape = EdgeTileOf(VPlanar);
  // In a volume the row before goes along, so that the planes' edges are found on the way too.
  constexpr int lines = VPlanar ? 1 : 2;
  constexpr int batch = 4 / lines;
  const int     thread = static_cast<int>(threadIdx.x);
  const int     lane = thread % 32;
  const int     warp = thread / 32;
  const int     x = VPlanar ? warp % 4 * ForestColumns + lane : lane;
  const int     y = VPlanar ? warp / 4 * ForestRows : warp;
  for (std::uint32_t tile = blockIdx.x; tile < forest.numberOfEdgeTiles; tile += gridDim.x)
  {
    const ForestPlace<TKey> place(forest, forest.edgeTiles, shape, tile);
    __syncthreads();
    ClearTable(table);
    __syncthreads();

    ForestEdgeSink sink{ graph, table, &forest.counts->edges, lists, { 0, 0, 0 } };
    std::uint32_t  raised = Cell::None;
    TKey           raisedTo = 0;
    Cell           before[lines];
    Cell           beforeNext[lines];
#pragma unroll
    for (int line = 0; line < lines; ++line)
    {
      before[line] = beforeNext[line] = { Cell::None, 0 };
    }
    // The first step only fetches the row, or plane, before.
    for (int first = -1; first < ForestRows; first += batch)
    {
      Cell cells[batch][lines];
      ReadCells<VPlanar, VFirst>(forest, code, graph, place, x, y, first, cells);
#pragma unroll
      for (int k = 0; k < batch; ++k)
      {
        const int step = first + k;
        if (step >= ForestRows)
        {
          break;
        }
        Cell next[lines];
#pragma unroll
        for (int line = 0; line < lines; ++line)
        {
          next[line] = cells[k][line].OfNextLane();
        }
        const Cell & own = cells[k][0];
        // Lane 31 is the next warp's lane 0.
        const bool isOwn = step >= 0 && lane < ForestColumns;
        if (VFirst && isOwn && own.component != Cell::None)
        {
          const TKey source = SourceOf(forest, code, place, VFull, x, VPlanar ? y + step : y, VPlanar ? 0 : step);
          if (own.component != raised || source > raisedTo)
          {
            RaiseSource(graph, own.component, source);
            raised = own.component;
            raisedTo = source;
          }
        }
        if constexpr (VFull)
        {
          TakeAround(sink, cells[k], next, before, beforeNext, isOwn, lane + 1 < ForestColumns);
        }
        else if (isOwn)
        {
#pragma unroll 1
          for (int side = 0; side < (VPlanar ? 2 : 3); ++side)
          {
            sink.Take(own, side == 0 ? next[0] : side == 1 ? before[0] : cells[k][lines - 1]);
          }
        }
#pragma unroll
        for (int line = 0; line < lines; ++line)
        {
          before[line] = cells[k][line];
          beforeNext[line] = next[line];
        }
      }
    }
    __syncthreads();
    EmptyTable(graph, table, sink, &forest.counts->edges);
  }
}

/** Tells in which phases of a grid whether anything in it has something left to do. */
class ForestVote
{
public:
  __device__ explicit ForestVote(std::uint32_t * counters)
    : m_Counters(counters)
  {}
  /** All threads of the grid take part, and meet. */
  __device__ bool
  Any(bool own)
  {
    const auto grid = cooperative_groups::this_grid();
    // Counters of phases in turn, each cleared two phases before it is used.
    if (__syncthreads_or(own) && threadIdx.x == 0)
    {
      atomicOr(m_Counters + m_Phase % 3, 1u);
    }
    if (grid.thread_rank() == 0)
    {
      m_Counters[(m_Phase + 1) % 3] = 0;
    }
    grid.sync();
    const bool result = __ldcg(m_Counters + m_Phase % 3) != 0;
    ++m_Phase;
    return result;
  }

private:
  std::uint32_t * m_Counters;
  int             m_Phase{ 0 };
};

/** Makes the graph's components, and brings labels to their basins where these are in other tiles. */
template <typename TKey, bool VPlanar>
__global__ void
__launch_bounds__(ForestThreads) SettleLabels(ForestImage<TKey> forest)
{
  const std::uint32_t basins = __ldcg(&forest.counts->basins);
  const ForestGraph   graph(forest.pool, forest.poolBytes, basins);
  for (std::uint32_t basin = blockIdx.x * ForestThreads + threadIdx.x; basin < basins;
       basin += gridDim.x * ForestThreads)
  {
    graph.links[basin] = ForestLink::Make(basin, 0xFFFFFFFFu);
    graph.exits[basin] = 0;
    graph.sources[basin] = 0;
    graph.alive[basin] = basin;
  }
  ForestVote vote(forest.counts->open);
  // Paths that leave their tile lead to voxels at the borders of others: when these know their basins, so do all.
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
    more = vote.Any(more);
  }
}

/** The edges between basins, and what they have from the source. */
template <typename TKey, bool VPlanar, bool VFull>
__global__ void
__launch_bounds__(ForestThreads) ListEdges(ForestImage<TKey> forest, ReconstructionCode<TKey> code)
{
  __shared__ ForestTable table;
  const ForestGraph      graph(forest.pool, forest.poolBytes, forest.counts->basins);
  FindEdges<TKey, VPlanar, VFull, true>(forest, code, graph, table, true);
}

/** Gives a block's edges their new components and offers them to these; keeps edges between two, and gives their
 * number.
 */
__device__ __forceinline__ std::uint64_t
KeepEdges(const ForestGraph & graph, std::uint64_t firstEdge, std::uint64_t edges, unsigned long long & kept)
{
  return KeepInBlock(
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
}

/** The links of each round lead to components of that round: on to the source. */
__device__ __forceinline__ void
FollowToSource(const ForestGraph & graph, std::uint32_t basins)
{
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
__launch_bounds__(ForestThreads, 4) SpanBasins(ForestImage<TKey> forest, ReconstructionCode<TKey> code)
{
  __shared__ ForestTable        table;
  __shared__ unsigned long long kept;

  const auto          grid = cooperative_groups::this_grid();
  ForestVote          vote(forest.counts->open + 3);
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
  bool          isListed = false;
  std::uint64_t firstEdge = 0;
  std::uint64_t edges = 0;
  bool          open = basins > 0;
  for (bool isFirst = true; open; isFirst = false)
  {
    if (!isListed)
    {
      // If the list has no room for all edges, the rounds go over the voxels until there are fewer.
      for (bool lists = true; lists || !isListed; lists = false)
      {
        if (!isFirst || !lists)
        {
          FindEdges<TKey, VPlanar, VFull, false>(forest, code, graph, table, lists);
          grid.sync();
        }
        const std::uint64_t all = __ldcg(&forest.counts->edges);
        isListed = lists && all <= graph.mostEdges;
        if (isListed)
        {
          firstEdge = partOf(all, blockIdx.x);
          edges = partOf(all, blockIdx.x + 1) - firstEdge;
          for (std::uint64_t i = threadIdx.x; i < edges; i += ForestThreads)
          {
            const uint2 ends = graph.ends[firstEdge + i];
            OfferEdge(graph, ends.x, ends.y, graph.capacities[firstEdge + i]);
          }
          grid.sync();
        }
        else if (!lists)
        {
          break;
        }
      }
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
      more = vote.Any(more);
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
    edges = KeepEdges(graph, firstEdge, edges, kept);
    open = vote.Any(alive > 0);
  }

  FollowToSource(graph, basins);
}

template <typename TKey, bool VPlanar, bool VFull>
__global__ void
__launch_bounds__(ForestThreads) StoreBasins(ForestImage<TKey> forest, ReconstructionCode<TKey> code)
{
  constexpr TileShape shape = LabelTileOf(VPlanar);
  const ForestGraph   graph(forest.pool, forest.poolBytes, forest.counts->basins);
  const int           lineX = static_cast<int>(threadIdx.x) % shape.x;
  const int           lineY = VPlanar ? static_cast<int>(threadIdx.x) / shape.x * ForestRows : 0;
  const int           lineZ = VPlanar ? 0 : static_cast<int>(threadIdx.x) / shape.x;
  for (std::uint32_t tile = blockIdx.x; tile < forest.numberOfLabelTiles; tile += gridDim.x)
  {
    const ForestPlace<TKey> place(forest, forest.labelTiles, shape, tile);
    const int               inside = place.RowsInside(lineX, lineY, lineZ);
    const TKey *            mask = place.mask + place.Offset(forest.image.maskStride, lineX, lineY, lineZ);
    TKey *                  state = place.state + place.Offset(forest.image.stateStride, lineX, lineY, lineZ);
    const std::uint32_t     voxel = place.Voxel(lineX, lineY, lineZ);
#pragma unroll 4
    for (int row = 0; row < ForestRows; ++row)
    {
      if (row < inside)
      {
        std::uint32_t label = forest.labels[voxel + static_cast<std::uint32_t>(row) * forest.extent[0]];
        if (!(label & ForestLabel::Basin))
        {
          label = forest.labels[label];
        }
        // The lowest mask has no basin, and no result but itself.
        const TKey limit = code.FromBits(__ldg(mask));
        const TKey key = label == ForestLabel::None
                           ? limit
                           : min(limit, static_cast<TKey>(__ldg(graph.sources + (label & ~ForestLabel::Basin))));
        if (forest.hasBeyond)
        {
          const std::int64_t at[3] = { place.lower[0] + lineX, place.lower[1] + lineY + row, place.lower[2] + lineZ };
          StoreAndTell(forest.image, code, VFull, at, mask, state, key);
        }
        else
        {
          *state = code.ToBits(key);
        }
      }
      mask += forest.image.maskStride[1];
      state += forest.image.stateStride[1];
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
  LaunchTogether(SettleLabels<TKey, VPlanar>, ForestThreads, 0, forest.numberOfLabelTiles, stream, forest);
  ListEdges<TKey, VPlanar, VFull>
    <<<std::min(forest.numberOfEdgeTiles, 1u << 20), ForestThreads, 0, stream>>>(forest, code);
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
