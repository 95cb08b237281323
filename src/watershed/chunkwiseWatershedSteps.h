/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedSteps_h
#define chunkwiseWatershedSteps_h

#include "chunkwiseReconstructionKey.h"
#include "chunkwiseWatershedSummary.h"

#include <algorithm>
#include <atomic>
#include <cstring>

// The watershed of a chunk as steps for devices. A step is a function of one voxel, tree or row; it is called for all
// of them by many threads in any order. Between two steps all threads wait (chunkwiseWatershedStepRun.h). Tests run the
// same functions on the host.
namespace chunkwise
{

// Entries that threads read and write at once. An order of accesses to different entries is nowhere needed.

template <typename T>
CHUNKWISE_HOST_DEVICE inline T
LoadRelaxed(const T & entry)
{
#if defined(__CUDA_ARCH__)
  return __ldcg(&entry);
#else
  return reinterpret_cast<const std::atomic<T> &>(entry).load(std::memory_order_relaxed);
#endif
}
template <typename T>
CHUNKWISE_HOST_DEVICE inline void
StoreRelaxed(T & entry, T value)
{
#if defined(__CUDA_ARCH__)
  __stcg(&entry, value);
#else
  reinterpret_cast<std::atomic<T> &>(entry).store(value, std::memory_order_relaxed);
#endif
}
/** Puts `value` in the place of `expected`; if another value is there, that becomes `expected`. */
template <typename T>
CHUNKWISE_HOST_DEVICE inline bool
ReplaceRelaxed(T & entry, T & expected, T value)
{
#if defined(__CUDA_ARCH__)
  using Atomic = std::conditional_t<sizeof(T) == 4, unsigned int, unsigned long long>;
  const T found = static_cast<T>(
    atomicCAS(reinterpret_cast<Atomic *>(&entry), static_cast<Atomic>(expected), static_cast<Atomic>(value)));
  const bool isReplaced = found == expected;
  expected = found;
  return isReplaced;
#else
  return reinterpret_cast<std::atomic<T> &>(entry).compare_exchange_strong(
    expected, value, std::memory_order_relaxed, std::memory_order_relaxed);
#endif
}
CHUNKWISE_HOST_DEVICE inline void
SetBitsRelaxed(std::uint32_t & entry, std::uint32_t bits)
{
#if defined(__CUDA_ARCH__)
  atomicOr(&entry, bits);
#else
  reinterpret_cast<std::atomic<std::uint32_t> &>(entry).fetch_or(bits, std::memory_order_relaxed);
#endif
}
/** Adds 1 and returns what was there. All threads that come here at once have the same counter. */
CHUNKWISE_HOST_DEVICE inline std::uint64_t
CountRelaxed(std::uint64_t & counter)
{
#if defined(__CUDA_ARCH__)
  // One access for the threads of a warp.
  const unsigned int active = __activemask();
  const int          lane = static_cast<int>(threadIdx.x % 32);
  const int          leader = __ffs(static_cast<int>(active)) - 1;
  unsigned long long first = 0;
  if (lane == leader)
  {
    first = atomicAdd(reinterpret_cast<unsigned long long *>(&counter), __popc(active));
  }
  first = __shfl_sync(active, first, leader);
  return first + __popc(active & ((1u << lane) - 1));
#else
  return reinterpret_cast<std::atomic<std::uint64_t> &>(counter).fetch_add(1, std::memory_order_relaxed);
#endif
}

CHUNKWISE_HOST_DEVICE inline int
CountBits(std::uint32_t bits)
{
#if defined(__CUDA_ARCH__)
  return __popc(bits);
#else
  int count = 0;
  for (; bits != 0; bits &= bits - 1)
  {
    ++count;
  }
  return count;
#endif
}

constexpr CHUNKWISE_HOST_DEVICE bool
IsSignedKind(PixelType kind)
{
  return kind == PixelType::Int8 || kind == PixelType::Int16 || kind == PixelType::Int32 || kind == PixelType::Int64;
}
/** The bits of a pixel, those of smaller ones in the lowest places. */
CHUNKWISE_HOST_DEVICE inline std::uint64_t
LoadBits(const void * data, PixelType kind, std::int64_t at)
{
  switch (PixelSize(kind))
  {
    case 1:
      return static_cast<const std::uint8_t *>(data)[at];
    case 2:
      return static_cast<const std::uint16_t *>(data)[at];
    case 4:
      return static_cast<const std::uint32_t *>(data)[at];
    default:
      return static_cast<const std::uint64_t *>(data)[at];
  }
}
/** A pixel of an image of integers; negative ones in two's complement. */
CHUNKWISE_HOST_DEVICE inline std::uint64_t
LoadInteger(const void * data, PixelType kind, std::int64_t at)
{
  const std::uint64_t bits = LoadBits(data, kind, at);
  const std::uint64_t sign = IsSignedKind(kind) ? std::uint64_t{ 1 } << (8 * PixelSize(kind) - 1) : 0;
  return (bits ^ sign) - sign;
}
CHUNKWISE_HOST_DEVICE inline void
StoreLabel(void * data, PixelType kind, std::int64_t at, std::uint64_t label)
{
  if (kind == PixelType::Float32)
  {
    static_cast<float *>(data)[at] = static_cast<float>(label);
    return;
  }
  if (kind == PixelType::Float64)
  {
    static_cast<double *>(data)[at] = static_cast<double>(label);
    return;
  }
  switch (PixelSize(kind))
  {
    case 1:
      static_cast<std::uint8_t *>(data)[at] = static_cast<std::uint8_t>(label);
      break;
    case 2:
      static_cast<std::uint16_t *>(data)[at] = static_cast<std::uint16_t>(label);
      break;
    case 4:
      static_cast<std::uint32_t *>(data)[at] = static_cast<std::uint32_t>(label);
      break;
    default:
      static_cast<std::uint64_t *>(data)[at] = label;
  }
}

/** Adds to a number. */
CHUNKWISE_HOST_DEVICE inline void
AddRelaxed(std::uint64_t & sum, std::uint64_t value)
{
#if defined(__CUDA_ARCH__)
  // One access for the threads of a warp that add to the same number.
  const unsigned int peers = __match_any_sync(__activemask(), reinterpret_cast<unsigned long long>(&sum));
  unsigned long long all = 0;
  for (unsigned int rest = peers; rest != 0; rest &= rest - 1)
  {
    all += __shfl_sync(peers, static_cast<unsigned long long>(value), __ffs(static_cast<int>(rest)) - 1);
  }
  if (static_cast<int>(threadIdx.x % 32) == __ffs(static_cast<int>(peers)) - 1)
  {
    atomicAdd(reinterpret_cast<unsigned long long *>(&sum), all);
  }
#else
  reinterpret_cast<std::atomic<std::uint64_t> &>(sum).fetch_add(value, std::memory_order_relaxed);
#endif
}

/** An edge of the forest between the basins of two minima, which are numbered in raster order. Values are keys. Edges
 * are ordered by `high`, `low` and `place`, as WatershedBlockEdge. */
struct WatershedBasinEdge
{
  std::uint64_t high;
  std::uint64_t low;
  std::uint64_t place;
  std::uint64_t a;
  std::uint64_t b;

  bool
  operator<(const WatershedBasinEdge & other) const
  {
    return high != other.high ? high < other.high : low != other.low ? low < other.low : place < other.place;
  }
};

/** Numbers that steps tell the host. */
struct WatershedCounters
{
  std::uint64_t trees;
  std::uint64_t open;       ///< trees that stay open in a round
  std::uint64_t unfinished; ///< not 0: an entry has not come to its root
  std::uint64_t edges;
  std::uint64_t wrongMarker; ///< a voxel with a label that the output does not have; all ones: there is none
};

/** A chunk and its arrays. `TId`: 32 bits, or 64 for chunks of nearly 2^31 voxels and more. `TKey`: pixels as unsigned
 * integers of the same order.
 *
 * Voxels are numbered in raster order. The parent of a voxel is another voxel, or itself if it is a root, or, with the
 * highest bit, a tree: first come the trees of voxels of the border, then all that have neither a marker nor a minimum
 * so far. `finals` says for each tree to which root or tree it belongs now; a tree is open if that is itself.
 *
 * A step is a member that is not const, with one parameter: a voxel, tree, row or word. It changes arrays alone. */
template <typename TId>
struct WatershedChunk
{
  static constexpr TId           Flag = static_cast<TId>(TId{ 1 } << (8 * sizeof(TId) - 1));
  static constexpr TId           Outside = static_cast<TId>(~TId{ 0 });
  static constexpr TId           Free = static_cast<TId>(Outside - 1);
  static constexpr std::uint64_t NoEdge = ~std::uint64_t{ 0 };
  static constexpr int           EdgeBits = 5;
  static constexpr std::uint8_t  NoNeighbor = 255;
  static constexpr int           MostNeighbors = 26;
  /** Entries that a thread follows before it leaves the rest to another call. */
  static constexpr int MostHops = 8;
  static constexpr int WordBits = 32;

  /** The values that the order of edges compares, from the first to the last. */
  template <typename TKey>
  struct EdgeRank
  {
    TKey high;
    TKey low;
    TId  first;
    TId  second;

    CHUNKWISE_HOST_DEVICE bool
    IsLess(const EdgeRank & other) const
    {
      return high != other.high     ? high < other.high
             : low != other.low     ? low < other.low
             : first != other.first ? first < other.first
                                    : second < other.second;
    }
  };
  struct Neighbor
  {
    TId          delta; ///< modulo the size of the type
    std::uint8_t faces; ///< voxels on these faces of the chunk do not have it, see FacesOf
  };

  WatershedChunk(const WatershedOperation & operation, const Box & theBox)
    : box(theBox)
    , image(operation.image)
    , border(operation, theBox)
    , inputKind(operation.inputKind)
  {
    const WatershedDepth<int> depth(operation.height);
    depthOfReals = depth.real;
    depthOfIntegers = depth.whole;
    const Coordinates dense = DenseStrides(box.Extents());
    std::copy(dense.axis, dense.axis + MaxDimension, stride);
    std::int64_t below = 1;
    for (const int axis : operation.axes)
    {
      extentOf[numberOfAxes] = static_cast<TId>(box.Extent(axis));
      skipOf[numberOfAxes++] = static_cast<TId>(stride[axis] / below);
      below = stride[axis] * box.Extent(axis);
    }
    for (const Coordinates & offset : operation.GetOffsets())
    {
      Neighbor & neighbor = neighbors[numberOfNeighbors++];
      neighbor = Neighbor{ 0, 0 };
      for (std::size_t i = 0; i < operation.axes.size(); ++i)
      {
        const std::int64_t step = offset[operation.axes[i]];
        neighbor.delta = static_cast<TId>(neighbor.delta + static_cast<TId>(step * stride[operation.axes[i]]));
        neighbor.faces = static_cast<std::uint8_t>(neighbor.faces | (step < 0 ? 1 : step > 0 ? 2 : 0) << 2 * i);
      }
    }
  }

  // The chunk. Its images are dense.
  Box             box;
  Coordinates     image;
  WatershedBorder border;
  std::int64_t    stride[MaxDimension];
  Neighbor        neighbors[MostNeighbors];
  int             numberOfNeighbors{ 0 };
  /** The axes along which voxels have neighbors, and the product of extents of axes between one and the one before it.
   */
  TId           extentOf[MaxSpatialAxes];
  TId           skipOf[MaxSpatialAxes];
  int           numberOfAxes{ 0 };
  const void *  input{ nullptr };
  PixelType     inputKind;
  const void *  markers{ nullptr }; ///< nullptr: minima are markers
  PixelType     markerKind{ PixelType::UInt8 };
  const void *  mask{ nullptr }; ///< nullptr: there is none
  PixelType     maskKind{ PixelType::UInt8 };
  std::uint64_t largestLabel{ 0 };
  double        depthOfReals{ 0 };
  std::uint64_t depthOfIntegers{ 0 };
  bool          drawsLines{ false };
  bool          isBlock{ false };
  std::uint64_t minimaBeforeBlock{ 0 };
  void *        output{ nullptr };
  PixelType     outputKind{ PixelType::UInt8 };

  // Arrays in scratch.
  WatershedCounters * counters{ nullptr };
  TId *               parents{ nullptr };
  std::uint8_t *      leads{ nullptr }; ///< of voxels of open trees: the least neighbor in another tree
  /** The least edge out of each open tree: a voxel and, in the lowest bits, its neighbor. */
  std::uint64_t * best{ nullptr };
  TId *           finals{ nullptr };
  TId *           nexts{ nullptr };        ///< of open trees: where their least edges lead
  TId *           lows{ nullptr };         ///< without markers: the first of the least voxels of each tree
  std::uint32_t * minima{ nullptr };       ///< without markers: a bit for each voxel
  TId *           minimaBefore{ nullptr }; ///< of each word of `minima`

  // The present round. Trees from `begin` on can be open.
  TId  begin{ 0 };
  bool isFirst{ false };
  bool keepsEdges{ false };

  // A summary.
  WatershedNode *      nodes{ nullptr };
  WatershedEdge *      edges{ nullptr };
  WatershedBasinEdge * basinEdges{ nullptr }; ///< in place of these: trees are the basins of minima
  WatershedBlockArrays arrays{};              ///< of a block, in place of these
  std::uint32_t * counts{ nullptr }; ///< without markers: the minima of each row; of a block, one number of 64 bits

  // A solution; nullptr where there is none.
  const std::uint64_t * labels{ nullptr };
  const unsigned char * lines{ nullptr };
  const std::uint64_t * offsets{ nullptr };
  const std::int64_t *  starts{ nullptr };

  // Functions that steps share, first for entries of `parents` and `finals`.

  CHUNKWISE_HOST_DEVICE static bool
  IsTree(TId entry)
  {
    return (entry & Flag) != 0 && entry != Outside;
  }
  CHUNKWISE_HOST_DEVICE static TId
  TreeOf(TId entry)
  {
    return static_cast<TId>(entry & ~Flag);
  }
  CHUNKWISE_HOST_DEVICE bool
  IsOpen(TId tree) const
  {
    return finals[tree] == (Flag | tree);
  }
  /** The root or tree that a voxel belongs to, when its parent is a root or a tree. */
  CHUNKWISE_HOST_DEVICE TId
  CodeOf(TId v) const
  {
    const TId parent = parents[v];
    return IsTree(parent) ? finals[TreeOf(parent)] : parent;
  }

  // Voxels.

  template <typename TKey>
  CHUNKWISE_HOST_DEVICE TKey
  ValueOf(TId v) const
  {
    return ReconstructionCode<TKey>(IsFloatingPoint(inputKind), IsSignedKind(inputKind), 0)
      .FromBits(static_cast<const TKey *>(input)[v]);
  }
  /** The same for any size. NaN is 0, and no number is. */
  CHUNKWISE_HOST_DEVICE std::uint64_t
                        KeyOf(TId v) const
  {
    return KeyOfBits(inputKind, BitsOf(v));
  }
  CHUNKWISE_HOST_DEVICE static std::uint64_t
  KeyOfBits(PixelType kind, std::uint64_t bits)
  {
    switch (kind)
    {
      case PixelType::Float32:
        return ReconstructionCode<std::uint32_t>(true, true, 0).FromBits(static_cast<std::uint32_t>(bits));
      case PixelType::Float64:
        return ReconstructionCode<std::uint64_t>(true, true, 0).FromBits(bits);
      default:
        return IsSignedKind(kind) ? bits ^ std::uint64_t{ 1 } << (8 * PixelSize(kind) - 1) : bits;
    }
  }
  CHUNKWISE_HOST_DEVICE std::uint64_t
                        BitsOf(TId v) const
  {
    return LoadBits(input, inputKind, static_cast<std::int64_t>(v));
  }
  CHUNKWISE_HOST_DEVICE bool
  IsMaskedOut(TId v) const
  {
    return mask && LoadInteger(mask, maskKind, static_cast<std::int64_t>(v)) == 0;
  }
  /** Has a smaller value, or the same and a smaller number. */
  CHUNKWISE_HOST_DEVICE bool
  IsBefore(TId a, TId b) const
  {
    const std::uint64_t first = KeyOf(a);
    const std::uint64_t second = KeyOf(b);
    return first < second || (first == second && a < b);
  }
  /** The faces of the chunk that a voxel lies on, of the axes along which there are neighbors: two bits for each. */
  CHUNKWISE_HOST_DEVICE unsigned int
  FacesOf(TId v) const
  {
    unsigned int faces = 0;
    for (int i = 0; i < numberOfAxes; ++i)
    {
      const TId extent = extentOf[i];
      const TId rest = static_cast<TId>(skipOf[i] == 1 ? v : v / skipOf[i]);
      v = static_cast<TId>(rest / extent);
      const TId at = static_cast<TId>(rest - v * extent);
      // No index within a shift: with UndefinedBehaviorSanitizer GCC 12 reads it before it is there.
      faces |= (at == 0 ? 1u : 0u) << 2 * i | (at + 1 == extent ? 2u : 0u) << 2 * i;
    }
    return faces;
  }
  CHUNKWISE_HOST_DEVICE TId
  VoxelOfBorder(std::int64_t i) const
  {
    int slab = border.count - 1;
    while (border.begins[slab] > i)
    {
      --slab;
    }
    std::int64_t rest = i - border.begins[slab];
    std::int64_t v = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t extent = border.slabs[slab].Extent(a);
      v += (border.slabs[slab].lower[a] - box.lower[a] + rest % extent) * stride[a];
      rest /= extent;
    }
    return static_cast<TId>(v);
  }
  /** The index in the raster order of the image. */
  CHUNKWISE_HOST_DEVICE std::int64_t
                        RasterOf(TId v) const
  {
    std::int64_t raster = 0;
    std::int64_t rest = static_cast<std::int64_t>(v);
    std::int64_t ofImage = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      raster += (box.lower[a] + rest % box.Extent(a)) * ofImage;
      rest /= box.Extent(a);
      ofImage *= image[a];
    }
    return raster;
  }
  /** The voxel with this index in the raster order of the image. */
  CHUNKWISE_HOST_DEVICE TId
  VoxelAt(std::int64_t raster) const
  {
    std::int64_t v = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      v += (raster % image[a] - box.lower[a]) * stride[a];
      raster /= image[a];
    }
    return static_cast<TId>(v);
  }
  CHUNKWISE_HOST_DEVICE double
  RealOf(std::uint64_t key) const
  {
    if (inputKind == PixelType::Float32)
    {
      const std::uint32_t bits =
        ReconstructionCode<std::uint32_t>(true, true, 0).ToBits(static_cast<std::uint32_t>(key));
      float value = 0;
      memcpy(&value, &bits, sizeof(value));
      return static_cast<double>(value);
    }
    const std::uint64_t bits = ReconstructionCode<std::uint64_t>(true, true, 0).ToBits(key);
    double              value = 0;
    memcpy(&value, &bits, sizeof(value));
    return value;
  }
  /** As WatershedDepth. */
  CHUNKWISE_HOST_DEVICE bool
  IsDeep(std::uint64_t high, std::uint64_t low) const
  {
    return low < high &&
           (IsFloatingPoint(inputKind) ? RealOf(high) - RealOf(low) >= depthOfReals : high - low >= depthOfIntegers);
  }

  /** A tree has a voxel that may be its least one. */
  CHUNKWISE_HOST_DEVICE void
  Lower(TId tree, TId v) const
  {
    TId low = LoadRelaxed(lows[tree]);
    while (IsBefore(v, low) && !ReplaceRelaxed(lows[tree], low, v))
    {
    }
  }

  // The first steps, of voxels: each one is joined to its least neighbor.

  CHUNKWISE_HOST_DEVICE void
  Classify(std::int64_t i)
  {
    const TId v = static_cast<TId>(i);
    TId       parent = Free;
    if (IsMaskedOut(v) || (IsFloatingPoint(inputKind) && KeyOf(v) == 0))
    {
      parent = Outside;
    }
    else if (markers)
    {
      const std::uint64_t label = LoadInteger(markers, markerKind, static_cast<std::int64_t>(v));
      parent = label != 0 ? v : parent;
      const bool isNegative = markerKind != PixelType::UInt64 && static_cast<std::int64_t>(label) < 0;
      if (isNegative || label > largestLabel)
      {
        StoreRelaxed(counters->wrongMarker, static_cast<std::uint64_t>(i));
      }
    }
    parents[v] = parent;
  }
  CHUNKWISE_HOST_DEVICE void
  BeginBorder(std::int64_t i)
  {
    const TId tree = static_cast<TId>(i);
    const TId v = VoxelOfBorder(i);
    finals[tree] = Outside;
    if (parents[v] != Outside)
    {
      finals[tree] = parents[v] = Flag | tree;
    }
    if (lows)
    {
      lows[tree] = v;
    }
  }
  template <typename TKey>
  CHUNKWISE_HOST_DEVICE void
  JoinVoxel(std::int64_t i)
  {
    const TId v = static_cast<TId>(i);
    if (parents[v] != Free)
    {
      return;
    }
    bool               isFound = false;
    TId                which = v;
    TKey               least = 0;
    const unsigned int faces = FacesOf(v);
    for (int k = 0; k < numberOfNeighbors; ++k)
    {
      if ((neighbors[k].faces & faces) != 0)
      {
        continue;
      }
      const TId  q = static_cast<TId>(v + neighbors[k].delta);
      const TKey value = ValueOf<TKey>(q);
      if ((!isFound || value < least) && !IsMaskedOut(q) && !(IsFloatingPoint(inputKind) && value == 0))
      {
        isFound = true;
        which = q;
        least = value;
      }
    }
    if (!isFound || (!markers && IsDeep(least, KeyOf(v))))
    {
      which = markers ? Outside : v;
    }
    StoreRelaxed(parents[v], which);
  }
  /** Two voxels that are each other's least neighbor begin a tree: the first of them gives it a number. */
  CHUNKWISE_HOST_DEVICE void
  NumberTree(std::int64_t i)
  {
    const TId v = static_cast<TId>(i);
    const TId u = parents[v];
    if ((u & Flag) == 0 && u != v && LoadRelaxed(parents[u]) == v && IsBefore(v, u))
    {
      const TId tree = static_cast<TId>(border.voxels + static_cast<std::int64_t>(CountRelaxed(counters->trees)));
      finals[tree] = Flag | tree;
      if (lows)
      {
        lows[tree] = v;
      }
      StoreRelaxed(parents[v], static_cast<TId>(Flag | tree));
    }
  }
  /** Brings the parent of a voxel nearer to its root or tree. */
  CHUNKWISE_HOST_DEVICE void
  Flatten(std::int64_t i)
  {
    const TId v = static_cast<TId>(i);
    const TId first = parents[v];
    TId       parent = first;
    bool      isRoot = (parent & Flag) != 0 || parent == v;
    for (int hop = 0; hop < MostHops && !isRoot; ++hop)
    {
      const TId next = LoadRelaxed(parents[parent]);
      isRoot = (next & Flag) != 0 || next == parent;
      parent = next;
    }
    if (parent != first)
    {
      StoreRelaxed(parents[v], parent);
    }
    if (!isRoot)
    {
      StoreRelaxed(counters->unfinished, std::uint64_t{ 1 });
    }
  }
  /** Gives the tree of a voxel of the border its least voxel. */
  CHUNKWISE_HOST_DEVICE void
  LowerBorder(std::int64_t i)
  {
    const TId parent = parents[i];
    if (IsTree(parent) && static_cast<std::int64_t>(TreeOf(parent)) < border.voxels)
    {
      Lower(TreeOf(parent), static_cast<TId>(i));
    }
  }

  // Rounds of Boruvka's algorithm. Steps of open trees begin at `begin`.

  /** The least of a voxel's edges that leads to another tree than its own. */
  template <typename TKey>
  CHUNKWISE_HOST_DEVICE std::uint8_t
                        FindLead(TId v, TId own) const
  {
    std::uint8_t       lead = NoNeighbor;
    TKey               least = 0;
    const unsigned int faces = FacesOf(v);
    for (int k = 0; k < numberOfNeighbors; ++k)
    {
      if ((neighbors[k].faces & faces) != 0)
      {
        continue;
      }
      const TId  q = static_cast<TId>(v + neighbors[k].delta);
      const TId  other = CodeOf(q);
      const TKey value = ValueOf<TKey>(q);
      if (other != own && other != Outside && (lead == NoNeighbor || value < least))
      {
        lead = static_cast<std::uint8_t>(k);
        least = value;
      }
    }
    return lead;
  }
  CHUNKWISE_HOST_DEVICE TId
  FarEnd(std::uint64_t edge) const
  {
    return static_cast<TId>(static_cast<TId>(edge >> EdgeBits) + neighbors[edge & ((1u << EdgeBits) - 1)].delta);
  }
  template <typename TKey>
  CHUNKWISE_HOST_DEVICE EdgeRank<TKey>
                        RankOf(std::uint64_t edge) const
  {
    const TId  v = static_cast<TId>(edge >> EdgeBits);
    const TId  q = FarEnd(edge);
    const TKey one = ValueOf<TKey>(v);
    const TKey other = ValueOf<TKey>(q);
    return { one < other ? other : one, one < other ? one : other, v < q ? v : q, v < q ? q : v };
  }
  /** Offers a voxel's least edge to its tree. Voxels within a tree are left out of all further rounds. */
  template <typename TKey>
  CHUNKWISE_HOST_DEVICE void
  FindEdge(std::int64_t i)
  {
    const TId    v = static_cast<TId>(i);
    std::uint8_t lead = isFirst ? NoNeighbor : leads[v];
    if (!isFirst && lead == NoNeighbor)
    {
      return;
    }
    const TId  own = CodeOf(v);
    const bool isActive = IsTree(own) && TreeOf(own) >= begin;
    if (!isActive)
    {
      leads[v] = NoNeighbor;
      return;
    }
    if (isFirst || CodeOf(static_cast<TId>(v + neighbors[lead].delta)) == own)
    {
      lead = FindLead<TKey>(v, own);
      leads[v] = lead;
    }
    if (lead != NoNeighbor)
    {
      const std::uint64_t  edge = std::uint64_t{ v } << EdgeBits | lead;
      const EdgeRank<TKey> rank = RankOf<TKey>(edge);
      std::uint64_t &      entry = best[TreeOf(own)];
      std::uint64_t        old = LoadRelaxed(entry);
      while ((old == NoEdge || rank.IsLess(RankOf<TKey>(old))) && !ReplaceRelaxed(entry, old, edge))
      {
      }
    }
  }
  CHUNKWISE_HOST_DEVICE void
  BeginRound(std::int64_t i)
  {
    best[begin + static_cast<TId>(i)] = NoEdge;
  }
  CHUNKWISE_HOST_DEVICE void
  FindNext(std::int64_t i)
  {
    const TId tree = begin + static_cast<TId>(i);
    if (IsOpen(tree))
    {
      nexts[tree] = NextOf(tree);
    }
  }
  /** The root or tree to which an open tree's least edge leads; a separate root, or itself, if none does. */
  CHUNKWISE_HOST_DEVICE TId
  NextOf(TId tree) const
  {
    const std::uint64_t edge = best[tree];
    if (edge == NoEdge)
    {
      return keepsEdges ? Flag | tree : markers ? Outside : lows[tree];
    }
    const TId q = FarEnd(edge);
    if (!markers && !basinEdges)
    {
      const std::uint64_t one = KeyOf(static_cast<TId>(edge >> EdgeBits));
      const std::uint64_t other = KeyOf(q);
      if (IsDeep(one < other ? other : one, KeyOf(lows[tree])))
      {
        return lows[tree];
      }
    }
    return CodeOf(q);
  }
  /** Gives an open tree to where its edge leads. One of two trees that lead to each other stays. */
  CHUNKWISE_HOST_DEVICE void
  Hook(std::int64_t i)
  {
    const TId tree = begin + static_cast<TId>(i);
    if (!IsOpen(tree))
    {
      return;
    }
    const TId next = nexts[tree];
    if (next == (Flag | tree))
    {
      return;
    }
    if (IsTree(next) && TreeOf(next) > tree && nexts[TreeOf(next)] == (Flag | tree))
    {
      CountRelaxed(counters->open);
      return;
    }
    StoreRelaxed(finals[tree], next);
    if (keepsEdges && (markers || next != lows[tree]))
    {
      KeepEdge(static_cast<std::int64_t>(CountRelaxed(counters->edges)), best[tree]);
    }
  }
  /** Brings the entry of a tree nearer to its root or tree. */
  CHUNKWISE_HOST_DEVICE void
  FlattenTree(std::int64_t i)
  {
    FlattenEntry(finals, static_cast<TId>(i), *counters);
  }
  CHUNKWISE_HOST_DEVICE static void
  FlattenEntry(TId * entries, TId tree, WatershedCounters & counts)
  {
    const TId first = entries[tree];
    TId       at = tree;
    TId       final = first;
    for (int hop = 0; hop < MostHops && IsTree(final) && TreeOf(final) != at; ++hop)
    {
      at = TreeOf(final);
      final = LoadRelaxed(entries[at]);
    }
    if (final != first)
    {
      StoreRelaxed(entries[tree], final);
    }
    if (IsTree(final) && TreeOf(final) != at)
    {
      StoreRelaxed(counts.unfinished, std::uint64_t{ 1 });
    }
  }

  /** Gives the tree that a tree now belongs to its least voxel. */
  CHUNKWISE_HOST_DEVICE void
  LowerTree(std::int64_t i)
  {
    const TId final = finals[i];
    if (IsTree(final) && static_cast<std::int64_t>(TreeOf(final)) != i)
    {
      Lower(TreeOf(final), LoadRelaxed(lows[i]));
    }
  }
  /** Makes the root or tree of a voxel its parent. */
  CHUNKWISE_HOST_DEVICE void
  Settle(std::int64_t i)
  {
    parents[i] = CodeOf(static_cast<TId>(i));
  }

  // Steps of summaries.

  CHUNKWISE_HOST_DEVICE void
  WriteNode(std::int64_t i)
  {
    const TId     tree = static_cast<TId>(i);
    const TId     v = VoxelOfBorder(i);
    WatershedNode node{ BitsOf(v), 0, -1, 0 };
    if (finals[tree] != Outside && markers)
    {
      node.low = 0;
      node.label = LoadInteger(markers, markerKind, static_cast<std::int64_t>(v));
      finals[tree] = node.label != 0 ? v : static_cast<TId>(Flag | tree);
    }
    else if (finals[tree] != Outside)
    {
      node.low = RasterOf(lows[tree]);
      node.label = RankOfMinimum(lows[tree]);
      node.lowValue = BitsOf(lows[tree]);
    }
    if (isBlock)
    {
      arrays.StoreNode(i, node);
    }
    else
    {
      nodes[i] = node;
    }
  }
  CHUNKWISE_HOST_DEVICE void
  KeepEdge(std::int64_t i, std::uint64_t number) const
  {
    const int lead = static_cast<int>(number & ((1u << EdgeBits) - 1));
    if (basinEdges)
    {
      basinEdges[i] = MakeBasinEdge(number, lead);
      return;
    }
    const WatershedEdge edge = MakeEdge(number);
    if (isBlock)
    {
      arrays.StoreEdge(i, edge, WatershedNeighborBehind(lead, numberOfNeighbors), markers ? edge.label : edge.rank);
    }
    else
    {
      edges[i] = edge;
    }
  }
  CHUNKWISE_HOST_DEVICE WatershedEdge
  MakeEdge(std::uint64_t edge) const
  {
    const TId     v = static_cast<TId>(edge >> EdgeBits);
    const TId     q = FarEnd(edge);
    const TId     first = v < q ? v : q;
    const TId     second = v < q ? q : v;
    const TId     other = parents[q];
    WatershedEdge result{};
    result.first = RasterOf(first);
    result.second = RasterOf(second);
    result.firstValue = BitsOf(first);
    result.secondValue = BitsOf(second);
    result.a = static_cast<std::int64_t>(TreeOf(parents[v]));
    result.b = IsTree(other) ? static_cast<std::int64_t>(TreeOf(other)) : -1;
    if (result.b < 0 && markers)
    {
      result.label = LoadInteger(markers, markerKind, static_cast<std::int64_t>(other));
    }
    else if (result.b < 0)
    {
      result.label = static_cast<std::uint64_t>(RasterOf(other));
      result.rank = RankOfMinimum(other);
    }
    return result;
  }

  CHUNKWISE_HOST_DEVICE WatershedBasinEdge
  MakeBasinEdge(std::uint64_t edge, int lead) const
  {
    using Block = WatershedBlockEdge<std::uint64_t>;
    const TId           v = static_cast<TId>(edge >> EdgeBits);
    const TId           q = FarEnd(edge);
    const std::uint64_t one = KeyOf(v);
    const std::uint64_t other = KeyOf(q);
    const std::uint64_t neighbor = static_cast<unsigned int>(WatershedNeighborBehind(lead, numberOfNeighbors));
    return { one < other ? other : one,
             one < other ? one : other,
             static_cast<std::uint64_t>(v < q ? v : q) << Block::NeighborBits | neighbor,
             TreeOf(parents[v]),
             TreeOf(parents[q]) };
  }
  /** After Settle and the steps that number minima: the parent of a voxel becomes the tree of its minimum. */
  CHUNKWISE_HOST_DEVICE void
  BeginBasin(std::int64_t i)
  {
    const TId v = static_cast<TId>(i);
    const TId root = parents[v];
    if (root == Outside)
    {
      return;
    }
    const TId basin = MinimaBefore(root);
    if (root == v)
    {
      finals[basin] = Flag | basin;
      lows[basin] = v;
    }
    parents[v] = Flag | basin;
  }
  /** Edges between basins have joined them: each is a separate tree again. */
  CHUNKWISE_HOST_DEVICE void
  SeparateBasin(std::int64_t i)
  {
    finals[i] = Flag | static_cast<TId>(i);
  }

  CHUNKWISE_HOST_DEVICE void
  CountRow(std::int64_t i)
  {
    const TId nx = static_cast<TId>(box.Extent(0));
    const TId first = static_cast<TId>(i) * nx;
    counts[i] = static_cast<std::uint32_t>(MinimaBefore(first + nx) - MinimaBefore(first));
  }
  /** The minima of a block, in the place of those of rows. */
  CHUNKWISE_HOST_DEVICE void
  CountAll(std::int64_t i)
  {
    reinterpret_cast<std::uint64_t *>(counts)[i] = MinimaBefore(static_cast<TId>(box.NumberOfVoxels()));
  }
  /** How many minima precede one in its row; of a block, in the block. */
  CHUNKWISE_HOST_DEVICE TId
  RankOfMinimum(TId v) const
  {
    return isBlock ? MinimaBefore(v) : MinimaBeforeInRow(v);
  }
  // Minima in raster order, and steps that find them.

  CHUNKWISE_HOST_DEVICE void
  MarkMinimum(std::int64_t i)
  {
    if (CodeOf(static_cast<TId>(i)) == static_cast<TId>(i))
    {
      SetBitsRelaxed(minima[i / WordBits], std::uint32_t{ 1 } << i % WordBits);
    }
  }
  CHUNKWISE_HOST_DEVICE void
  MarkFurtherMinimum(std::int64_t i)
  {
    const TId v = VoxelAt(starts[i]);
    SetBitsRelaxed(minima[v / WordBits], std::uint32_t{ 1 } << v % WordBits);
  }
  CHUNKWISE_HOST_DEVICE void
  CountMinima(std::int64_t i)
  {
    minimaBefore[i] = static_cast<TId>(CountBits(minima[i]));
  }
  CHUNKWISE_HOST_DEVICE TId
  MinimaBefore(TId v) const
  {
    const std::uint32_t before = (std::uint32_t{ 1 } << v % WordBits) - 1;
    return static_cast<TId>(minimaBefore[v / WordBits] + static_cast<TId>(CountBits(minima[v / WordBits] & before)));
  }
  CHUNKWISE_HOST_DEVICE TId
  MinimaBeforeInRow(TId v) const
  {
    return MinimaBefore(v) - MinimaBefore(static_cast<TId>(v - v % static_cast<TId>(box.Extent(0))));
  }

  // Labels, the last steps.

  CHUNKWISE_HOST_DEVICE std::uint64_t
                        LabelOf(TId entry) const
  {
    if (entry == Outside)
    {
      return 0;
    }
    if ((entry & Flag) != 0)
    {
      return labels[TreeOf(entry)];
    }
    return markers   ? LoadInteger(markers, markerKind, static_cast<std::int64_t>(entry))
           : offsets ? offsets[entry / static_cast<TId>(box.Extent(0))] + MinimaBeforeInRow(entry) + 1
                     : minimaBeforeBlock + MinimaBefore(entry) + 1;
  }
  CHUNKWISE_HOST_DEVICE void
  WriteLabel(std::int64_t i)
  {
    const TId     v = static_cast<TId>(i);
    const TId     own = CodeOf(v);
    std::uint64_t label = LabelOf(own);
    if (drawsLines && label != 0)
    {
      bool               isLine = false;
      const unsigned int faces = FacesOf(v);
      for (int k = 0; k < numberOfNeighbors && !isLine; ++k)
      {
        if ((neighbors[k].faces & faces) == 0)
        {
          const TId           other = CodeOf(static_cast<TId>(v + neighbors[k].delta));
          const std::uint64_t beside = other != own ? LabelOf(other) : 0;
          isLine = beside != 0 && beside < label;
        }
      }
      label = isLine ? 0 : label;
    }
    StoreLabel(output, outputKind, static_cast<std::int64_t>(v), label);
  }
  CHUNKWISE_HOST_DEVICE void
  DrawLineOfBorder(std::int64_t i)
  {
    if (lines[i] != 0)
    {
      StoreLabel(output, outputKind, static_cast<std::int64_t>(VoxelOfBorder(i)), 0);
    }
  }
};

} // namespace chunkwise

#endif
