/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseLabelSummary.h"

#include <algorithm>
#include <cub/device/device_scan.cuh>

// Labels of a chunk by union-find over runs of voxels within words of 32 bits. A run's parent is the run itself or an
// earlier one; only roots are given to others, so that parents may be replaced by theirs at any time (J. Jaiganesh, M.
// Burtscher, "A high-performance connected components implementation for GPUs", HPDC 2018).
namespace chunkwise
{

namespace
{

constexpr int Threads = 256;
constexpr int WordBits = 32;
/** log2 of the runs that a tile may have: their arrays fit 64 KB of shared memory. */
constexpr int TileBits = 13;

using Word = std::uint32_t;

template <typename TId>
struct AtomicOf
{
  using Type = unsigned int;
};
template <>
struct AtomicOf<std::uint64_t>
{
  using Type = unsigned long long;
};

/** A quotient of numbers that are not negative: in 32 bits where they allow it, which is far faster. */
__device__ std::int64_t
           Quotient(std::int64_t number, std::int64_t by)
{
  return ((number | by) >> 32) == 0 ? static_cast<std::uint32_t>(number) / static_cast<std::uint32_t>(by) : number / by;
}

/** The position of a row along axes 1 and up. */
struct RowPlace
{
  std::int64_t at[MaxDimension];
};

/** A chunk and its arrays in scratch, see the kernels below. */
template <typename TId>
struct LabelChunk
{
  /** Marks the entry of a root that holds a label in place of a parent. */
  static constexpr TId IsLabel = TId{ 1 } << (8 * sizeof(TId) - 1);

  std::int64_t   extent[MaxDimension];
  std::int64_t   words; ///< of a row
  std::int64_t   rows;
  bool           wraps[MaxDimension];
  LabelNeighbors neighbors;
  Word *         foreground;
  Word *         links; ///< voxels that are linked to the one before
  TId *          firstRuns;
  TId *          parents;
  TId *          rootsBefore; ///< of each word

  __device__ std::int64_t
             CountWords() const
  {
    return words * rows;
  }
  /** The first voxels of runs, which lie within a word. */
  __device__ Word
  StartsOf(std::int64_t at) const
  {
    return foreground[at] & ~(links[at] & ~Word{ 1 });
  }
  __device__ TId
  RunOf(std::int64_t at, int i) const
  {
    const Word upTo = ~Word{ 0 } >> (WordBits - 1 - i);
    return firstRuns[at] + static_cast<TId>(__popc(StartsOf(at) & upTo) - 1);
  }
  __device__ bool
  IsForeground(std::int64_t row, std::int64_t x) const
  {
    return (foreground[row * words + x / WordBits] >> (x % WordBits) & 1) != 0;
  }
  __device__ TId
  RunAt(std::int64_t row, std::int64_t x) const
  {
    return RunOf(row * words + x / WordBits, static_cast<int>(x % WordBits));
  }
  __device__ RowPlace
  PlaceOf(std::int64_t row) const
  {
    RowPlace place{};
    for (int a = 1; a < MaxDimension; ++a)
    {
      const std::int64_t rest = Quotient(row, extent[a]);
      place.at[a] = row - rest * extent[a];
      row = rest;
    }
    return place;
  }
  /** The number of a row beside another one; -1: there is none. */
  __device__ std::int64_t
             RowBeside(const RowPlace & place, const LabelRow & neighbor) const
  {
    std::int64_t other = 0;
    std::int64_t stride = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      std::int64_t at = place.at[a] + neighbor.offset[a];
      if (at < 0 || at >= extent[a])
      {
        if (!wraps[a])
        {
          return -1;
        }
        at = at < 0 ? at + extent[a] : at - extent[a];
      }
      other += at * stride;
      stride *= extent[a];
    }
    return other;
  }

  /** The root of a run; runs on the way are brought nearer to it. Other threads join roots meanwhile. */
  __device__ TId
  Find(TId run) const
  {
    TId parent = __ldcg(parents + run);
    if (parent != run)
    {
      TId before = run;
      for (TId next = __ldcg(parents + parent); next < parent; next = __ldcg(parents + parent))
      {
        __stcg(parents + before, next);
        before = parent;
        parent = next;
      }
    }
    return parent;
  }
  /** The root of a run while no roots are joined. Only entries of non-roots may change meanwhile, and only to their
   * root. */
  __device__ TId
  FindRoot(TId run) const
  {
    TId root = run;
    for (TId next = __ldcg(parents + root); next != root; next = __ldcg(parents + root))
    {
      root = next;
    }
    return root;
  }
  __device__ void
  Join(TId a, TId b) const
  {
    using Atomic = typename AtomicOf<TId>::Type;
    a = Find(a);
    b = Find(b);
    while (a != b)
    {
      const TId large = a > b ? a : b;
      const TId small = a > b ? b : a;
      const TId found = static_cast<TId>(
        atomicCAS(reinterpret_cast<Atomic *>(parents + large), static_cast<Atomic>(large), static_cast<Atomic>(small)));
      if (found == large)
      {
        return;
      }
      a = Find(found);
      b = Find(small);
    }
  }
  /** The label of a run, when roots have theirs. */
  __device__ TId
  LabelOf(TId run) const
  {
    const TId parent = parents[run];
    return ((parent & IsLabel) != 0 ? parent : parents[parent]) & ~IsLabel;
  }
};

/** Calls f with a pixel of the kind, or, of integers, with an unsigned one of the same bits: whose values are told
 * apart and copied alike, for half of the code. */
template <typename TFunctor>
void
DispatchBits(PixelType kind, TFunctor && f)
{
  DispatchPixelType(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (std::is_signed<Pixel>::value && std::is_integral<Pixel>::value)
    {
      f(static_cast<std::make_unsigned_t<Pixel>>(pixel));
    }
    else
    {
      f(pixel);
    }
  });
}

__device__ std::int64_t
           ThreadNumber()
{
  return static_cast<std::int64_t>(blockIdx.x) * Threads + threadIdx.x;
}

/** The rule Foreground: all neighbors in the foreground are of one component. */
struct AllAlike
{
  template <typename TPixel>
  __device__ bool
  operator()(TPixel, TPixel) const
  {
    return true;
  }
};

/** The words of the foreground and of links, and how many runs begin in each: a thread for a word. `isAligned`: rows
 * begin at multiples of 16 bytes. */
template <typename TPixel, typename TId, typename TAlike>
__global__ void
__launch_bounds__(Threads) MakeWordsKernel(LabelChunk<TId> chunk, const TPixel * __restrict__ voxels, bool isAligned,
                                           TPixel background, bool all, TAlike alike)
{
  const std::int64_t at = ThreadNumber();
  if (at >= chunk.CountWords())
  {
    if (at == chunk.CountWords())
    {
      chunk.firstRuns[at] = 0;
    }
    return;
  }
  const std::int64_t   row = Quotient(at, chunk.words);
  const std::int64_t   x = (at - row * chunk.words) * WordBits;
  const TPixel * const first = voxels + row * chunk.extent[0] + x;
  const int            count = static_cast<int>(min(chunk.extent[0] - x, static_cast<std::int64_t>(WordBits)));
  Word                 word = 0;
  Word                 links = 0;
  TPixel               before = chunk.neighbors.links && x > 0 ? first[-1] : background;
  bool                 isAfterForeground = x > 0 && (all || before != background);
  const auto           take = [&](TPixel value, int i) {
    const bool isForeground = all || value != background;
    word |= static_cast<Word>(isForeground) << i;
    if constexpr (!std::is_same<TAlike, AllAlike>::value)
    {
      links |= static_cast<Word>(isForeground && isAfterForeground && alike(value, before)) << i;
      isAfterForeground = isForeground;
      before = value;
    }
  };
  if (isAligned && count == WordBits)
  {
    constexpr int Loaded = static_cast<int>(sizeof(uint4) / sizeof(TPixel));
#pragma unroll
    for (int i = 0; i < WordBits; i += Loaded)
    {
      const uint4 bytes = __ldg(reinterpret_cast<const uint4 *>(first + i));
      TPixel      values[Loaded];
      memcpy(values, &bytes, sizeof(bytes));
#pragma unroll
      for (int k = 0; k < Loaded; ++k)
      {
        take(values[k], i + k);
      }
    }
  }
  else
  {
    for (int i = 0; i < count; ++i)
    {
      take(first[i], i);
    }
  }
  if constexpr (std::is_same<TAlike, AllAlike>::value)
  {
    links = word & (word << 1 | static_cast<Word>(isAfterForeground));
  }
  links = chunk.neighbors.links ? links : 0;
  chunk.foreground[at] = word;
  chunk.links[at] = links;
  chunk.firstRuns[at] = static_cast<TId>(__popc(word & ~(links & ~Word{ 1 })));
}

/** The pairs of a word with voxels of another row at these shifts. */
template <typename TPixel, typename TId, typename TAlike>
__device__ LabelPairs<Word>
PairsOf(const LabelChunk<TId> & chunk, const TPixel * __restrict__ voxels, std::int64_t row, std::int64_t otherRow,
        std::int64_t w, unsigned int shifts, const TAlike & alike)
{
  const std::int64_t at = otherRow * chunk.words + w;
  const Word         own = chunk.foreground[row * chunk.words + w];
  const Word         other = chunk.foreground[at];
  LabelPairs<Word>   pairs{ 0, 0, 0 };
  if ((shifts & 1) != 0)
  {
    pairs.before = own & ShiftedFromBefore(other, w > 0 ? chunk.foreground[at - 1] : Word{ 0 });
  }
  if ((shifts & 2) != 0)
  {
    pairs.same = own & other;
  }
  if ((shifts & 4) != 0)
  {
    pairs.after = own & ShiftedFromAfter(other, w + 1 < chunk.words ? chunk.foreground[at + 1] : Word{ 0 });
  }
  if constexpr (!std::is_same<TAlike, AllAlike>::value)
  {
    const TPixel * const values = voxels + row * chunk.extent[0] + w * WordBits;
    const TPixel * const others = voxels + otherRow * chunk.extent[0] + w * WordBits;
    const auto           keep = [&](Word & bits, int shift) {
      for (Word rest = bits; rest != 0; rest &= rest - 1)
      {
        const int i = __ffs(static_cast<int>(rest)) - 1;
        if (!alike(values[i], others[i + shift]))
        {
          bits &= ~(Word{ 1 } << i);
        }
      }
    };
    keep(pairs.before, -1);
    keep(pairs.same, 0);
    keep(pairs.after, 1);
  }
  return pairs;
}

/** Blocks of threads join the runs of tiles of as many words in shared memory; most pairs lie within a tile. Words of a
 * tile are numbered in raster order. */
struct LabelTiles
{
  int          shift[3]; ///< log2 of words along x, and of rows along axes 1 and 2
  std::int64_t counts[3];

  /** `bits`: log2 of the words of a tile. */
  template <typename TId>
  static LabelTiles
  Make(const LabelChunk<TId> & chunk, int bits)
  {
    const std::int64_t extent[3] = { chunk.words, chunk.extent[1], chunk.extent[2] };
    LabelTiles         tiles{};
    int                left = bits;
    for (int a = 2; a >= 0; --a)
    {
      const int most = a == 2 ? 4 : left - (bits - 8);
      while (a > 0 && tiles.shift[a] < most && std::int64_t{ 1 } << tiles.shift[a] < extent[a])
      {
        ++tiles.shift[a];
      }
      tiles.shift[a] = a == 0 ? left : tiles.shift[a];
      left -= tiles.shift[a];
      tiles.counts[a] = (extent[a] + (std::int64_t{ 1 } << tiles.shift[a]) - 1) >> tiles.shift[a];
    }
    return tiles;
  }
  unsigned int
  CountWords() const
  {
    return 1U << (shift[0] + shift[1] + shift[2]);
  }
  template <typename TId>
  std::int64_t
  Count(const LabelChunk<TId> & chunk) const
  {
    return chunk.rows / (chunk.extent[1] * chunk.extent[2]) * counts[0] * counts[1] * counts[2];
  }

  /** Whether a row beside another one, as far as there is one, lies in its tile. */
  template <typename TId>
  __device__ bool
  HaveBoth(const LabelChunk<TId> & chunk, const RowPlace & place, const LabelRow & neighbor) const
  {
    bool both = true;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const std::int64_t other = place.at[a] + neighbor.offset[a];
      const int          bits = a < 3 ? shift[a] : 0;
      both = both && other >> bits == place.at[a] >> bits && other < chunk.extent[a];
    }
    return both;
  }
  __device__ bool
  IsFirstAlongX(std::int64_t w) const
  {
    return (w & ((1 << shift[0]) - 1)) == 0;
  }
  __device__ bool
  IsLastAlongX(std::int64_t w) const
  {
    return IsFirstAlongX(w + 1);
  }
  /** From a word of a tile to the one at the same x of a row beside it. */
  __device__ int
  StepTo(const LabelRow & neighbor) const
  {
    return (neighbor.offset[2] * (1 << shift[1]) + neighbor.offset[1]) * (1 << shift[0]);
  }
};

/** Calls join(neighbor, other word's number, i, j) for pairs of the bit i of a word with the bit j, -1 to 32, of a word
 * of another row that `wanted(neighbor)` leaves. */
template <typename TPixel, typename TId, typename TAlike, typename TWanted, typename TJoin>
__device__ void
JoinRows(const LabelChunk<TId> & chunk, const TPixel * __restrict__ voxels, const RowPlace & place, std::int64_t row,
         std::int64_t w, const TAlike & alike, TWanted && wanted, TJoin && join)
{
  const LabelNeighbors & neighbors = chunk.neighbors;
  const Word             links = chunk.links[row * chunk.words + w];
  Word                   joinedByCenter = 0;
  bool                   isCenterKnown = neighbors.center < 0;
  for (int r = 0; r < neighbors.count; ++r)
  {
    const LabelRow &       neighbor = neighbors.rows[r];
    const LabelPairs<Word> mask = wanted(neighbor);
    if (((neighbor.shifts & 1) != 0 ? mask.before : Word{ 0 }) == 0 &&
        ((neighbor.shifts & 2) != 0 ? mask.same : Word{ 0 }) == 0 &&
        ((neighbor.shifts & 4) != 0 ? mask.after : Word{ 0 }) == 0)
    {
      continue;
    }
    const std::int64_t other = chunk.RowBeside(place, neighbor);
    if (other < 0)
    {
      continue;
    }
    if (!isCenterKnown)
    {
      const std::int64_t center = chunk.RowBeside(place, neighbors.rows[neighbors.center]);
      joinedByCenter = center >= 0 ? PairsOf<TPixel>(chunk, voxels, row, center, w, 2, alike).same : 0;
      isCenterKnown = true;
    }
    LabelPairs<Word>   pairs = PairsOf<TPixel>(chunk, voxels, row, other, w, neighbor.shifts, alike);
    const std::int64_t otherAt = other * chunk.words + w;
    RemoveImpliedPairs(pairs, links, chunk.links[otherAt]);
    const Word left = (neighbors.aroundCenter >> r & 1) != 0 ? ~joinedByCenter : ~Word{ 0 };
    const auto joinAll = [&](Word bits, int shift) {
      for (; bits != 0; bits &= bits - 1)
      {
        const int i = __ffs(static_cast<int>(bits)) - 1;
        join(neighbor, otherAt, i, i + shift);
      }
    };
    joinAll(pairs.same & left & mask.same, 0);
    joinAll(pairs.before & left & mask.before, -1);
    joinAll(pairs.after & left & mask.after, 1);
  }
}

/** The runs of a tile, of at most VMostRuns a word, in shared memory: the run k of the word t has the number
 * VMostRuns t + k. Roots are joined in rounds. While pairs are visited, `roots` is only read, and `parents` is changed
 * by atomics alone; then each thread sets the roots of its runs. Two rounds at least halve the roots that have
 * pairs. */
template <typename TId, int VMostRuns>
struct TileOfRuns
{
  static constexpr int Words = (1 << TileBits) / VMostRuns;

  unsigned int  parents[Words * VMostRuns];
  std::uint16_t roots[Words * VMostRuns];
  Word          starts[Words];
  TId           firstRuns[Words];

  /** The place of a run's entry: threads do not meet in banks of memory. */
  __device__ static int
  EntryOf(unsigned int run)
  {
    return run % VMostRuns * Words + run / VMostRuns;
  }
  __device__ unsigned int
  RootAt(int word, int i) const
  {
    const int k = __popc(starts[word] & ~Word{ 0 } >> (WordBits - 1 - i)) - 1;
    return roots[k * Words + word];
  }
  __device__ void
  Begin(int t, Word startsOfWord, TId firstRun)
  {
    starts[t] = startsOfWord;
    firstRuns[t] = firstRun;
    for (int k = 0; k < __popc(startsOfWord); ++k)
    {
      parents[k * Words + t] = t * VMostRuns + k;
      roots[k * Words + t] = static_cast<std::uint16_t>(t * VMostRuns + k);
    }
  }
  __device__ void
  SetRoots(int t)
  {
    for (int k = 0; k < __popc(starts[t]); ++k)
    {
      unsigned int root = roots[k * Words + t];
      for (unsigned int next = parents[EntryOf(root)]; next != root; next = parents[EntryOf(root)])
      {
        root = next;
      }
      roots[k * Words + t] = static_cast<std::uint16_t>(root);
    }
  }
};

/** Runs get a parent: the first run of the part of their component that is connected within the tile. */
template <int VMostRuns, typename TPixel, typename TId, typename TAlike>
__global__ void __launch_bounds__((1 << TileBits) / VMostRuns)
  JoinInTilesKernel(LabelChunk<TId> chunk, LabelTiles tiles, const TPixel * __restrict__ voxels, TAlike alike)
{
  extern __shared__ std::uint64_t memory[];
  using Runs = TileOfRuns<TId, VMostRuns>;
  auto & runs = *reinterpret_cast<Runs *>(memory);

  const int    t = static_cast<int>(threadIdx.x);
  RowPlace     place{};
  std::int64_t further = blockIdx.x;
  int          inTile = t;
  const auto   take = [&](int a) {
    const std::int64_t rest = Quotient(further, tiles.counts[a]);
    const std::int64_t at =
      ((further - rest * tiles.counts[a]) << tiles.shift[a]) + (inTile & ((1 << tiles.shift[a]) - 1));
    further = rest;
    inTile >>= tiles.shift[a];
    return at;
  };
  const std::int64_t w = take(0);
  place.at[1] = take(1);
  place.at[2] = take(2);
  const bool         isInside = w < chunk.words && place.at[1] < chunk.extent[1] && place.at[2] < chunk.extent[2];
  const std::int64_t row = (further * chunk.extent[2] + place.at[2]) * chunk.extent[1] + place.at[1];
  const std::int64_t at = row * chunk.words + w;
  for (int a = 3; a < MaxDimension; ++a)
  {
    const std::int64_t rest = Quotient(further, chunk.extent[a]);
    place.at[a] = further - rest * chunk.extent[a];
    further = rest;
  }
  runs.Begin(t, isInside ? chunk.StartsOf(at) : 0, isInside ? chunk.firstRuns[at] : 0);

  bool mayJoin = isInside && chunk.foreground[at] != 0;
  while (__syncthreads_or(mayJoin))
  {
    if (mayJoin)
    {
      mayJoin = false;
      const auto join = [&](unsigned int a, unsigned int b) {
        if (a != b)
        {
          atomicMin(&runs.parents[runs.EntryOf(max(a, b))], min(a, b));
          mayJoin = true;
        }
      };
      if ((chunk.links[at] & 1) != 0 && !tiles.IsFirstAlongX(w))
      {
        join(runs.RootAt(t, 0), runs.RootAt(t - 1, WordBits - 1));
      }
      JoinRows(
        chunk,
        voxels,
        place,
        row,
        w,
        alike,
        [&](const LabelRow & neighbor) {
          const Word all = tiles.HaveBoth(chunk, place, neighbor) ? ~Word{ 0 } : Word{ 0 };
          return LabelPairs<Word>{ tiles.IsFirstAlongX(w) ? all & ~Word{ 1 } : all,
                                   all,
                                   tiles.IsLastAlongX(w) ? all >> 1 : all };
        },
        [&](const LabelRow & neighbor, std::int64_t, int i, int j) {
          const int word = t + tiles.StepTo(neighbor) + (j < 0 ? -1 : j / WordBits);
          join(runs.RootAt(t, i), runs.RootAt(word, j & (WordBits - 1)));
        });
    }
    __syncthreads();
    runs.SetRoots(t);
  }

  for (int k = 0; k < __popc(runs.starts[t]); ++k)
  {
    const unsigned int root = runs.roots[k * Runs::Words + t];
    chunk.parents[runs.firstRuns[t] + k] = runs.firstRuns[root / VMostRuns] + root % VMostRuns;
  }
}

/** Joins the runs of a word with those of its neighbors that lie in other tiles. */
template <typename TPixel, typename TId, typename TAlike>
__global__ void
__launch_bounds__(Threads)
  JoinKernel(LabelChunk<TId> chunk, LabelTiles tiles, const TPixel * __restrict__ voxels, TAlike alike)
{
  const std::int64_t at = ThreadNumber();
  if (at >= chunk.CountWords())
  {
    return;
  }
  const std::int64_t     row = Quotient(at, chunk.words);
  const std::int64_t     w = at - row * chunk.words;
  const RowPlace         place = chunk.PlaceOf(row);
  const LabelNeighbors & neighbors = chunk.neighbors;
  if (w == 0 && chunk.wraps[0])
  {
    const std::int64_t last = chunk.extent[0] - 1;
    const auto         joinVoxels = [&](std::int64_t x, std::int64_t otherRow, std::int64_t otherX) {
      bool areAlike = chunk.IsForeground(row, x) && chunk.IsForeground(otherRow, otherX);
      if constexpr (!std::is_same<TAlike, AllAlike>::value)
      {
        areAlike = areAlike && alike(voxels[row * chunk.extent[0] + x], voxels[otherRow * chunk.extent[0] + otherX]);
      }
      if (areAlike)
      {
        chunk.Join(chunk.RunAt(row, x), chunk.RunAt(otherRow, otherX));
      }
    };
    if (neighbors.links)
    {
      joinVoxels(0, row, last);
    }
    for (int r = 0; r < neighbors.count; ++r)
    {
      const std::int64_t other = chunk.RowBeside(place, neighbors.rows[r]);
      if (other >= 0 && (neighbors.rows[r].shifts & 1) != 0)
      {
        joinVoxels(0, other, last);
      }
      if (other >= 0 && (neighbors.rows[r].shifts & 4) != 0)
      {
        joinVoxels(last, other, 0);
      }
    }
  }
  if (chunk.foreground[at] == 0)
  {
    return;
  }
  if ((chunk.links[at] & 1) != 0 && tiles.IsFirstAlongX(w))
  {
    chunk.Join(chunk.RunOf(at, 0), chunk.RunOf(at - 1, WordBits - 1));
  }
  JoinRows(
    chunk,
    voxels,
    place,
    row,
    w,
    alike,
    [&](const LabelRow & neighbor) {
      const Word others = tiles.HaveBoth(chunk, place, neighbor) ? Word{ 0 } : ~Word{ 0 };
      return LabelPairs<Word>{ tiles.IsFirstAlongX(w) ? others | 1 : others,
                               others,
                               tiles.IsLastAlongX(w) ? others | Word{ 1 } << (WordBits - 1) : others };
    },
    [&](const LabelRow &, std::int64_t otherAt, int i, int j) {
      chunk.Join(chunk.RunOf(at, i),
                 chunk.RunOf(j < 0 ? otherAt - 1 : (j < WordBits ? otherAt : otherAt + 1), j & (WordBits - 1)));
    });
}

/** Each run gets its root, each word the number of its roots. A thread writes only the entries of its runs: Find would
 * write others', and could put an older parent in place of a root that is already there. */
template <typename TId>
__global__ void
__launch_bounds__(Threads) FindRootsKernel(LabelChunk<TId> chunk)
{
  const std::int64_t at = ThreadNumber();
  if (at > chunk.CountWords())
  {
    return;
  }
  TId roots = 0;
  if (at < chunk.CountWords())
  {
    for (TId run = chunk.firstRuns[at]; run < chunk.firstRuns[at + 1]; ++run)
    {
      const TId root = chunk.FindRoot(run);
      if (root == run)
      {
        ++roots;
      }
      else
      {
        __stcg(chunk.parents + run, root);
      }
    }
  }
  chunk.rootsBefore[at] = roots;
}

/** Keeps the labels that components have in their chunk. */
struct OwnLabels
{
  __device__ std::uint64_t
             GetLabel(std::int64_t, std::uint64_t inPart) const
  {
    return inPart;
  }
};

template <typename TId, typename TLabels>
__global__ void
__launch_bounds__(Threads) NumberRootsKernel(LabelChunk<TId> chunk, TLabels labels)
{
  const std::int64_t at = ThreadNumber();
  if (at >= chunk.CountWords())
  {
    return;
  }
  TId label = chunk.rootsBefore[at];
  for (TId run = chunk.firstRuns[at]; run < chunk.firstRuns[at + 1]; ++run)
  {
    if (chunk.parents[run] == run)
    {
      ++label;
      chunk.parents[run] = static_cast<TId>(labels.GetLabel(at / chunk.words, label)) | LabelChunk<TId>::IsLabel;
    }
  }
}

/** Each run gets its label: entries of runs then depend on no others. */
template <typename TId>
__global__ void
__launch_bounds__(Threads) LabelRunsKernel(LabelChunk<TId> chunk)
{
  const std::int64_t at = ThreadNumber();
  if (at >= chunk.CountWords())
  {
    return;
  }
  for (TId run = chunk.firstRuns[at]; run < chunk.firstRuns[at + 1]; ++run)
  {
    const TId parent = chunk.parents[run];
    if ((parent & LabelChunk<TId>::IsLabel) == 0)
    {
      // A root's entry stays as it is.
      chunk.parents[run] = chunk.parents[parent];
    }
  }
}

/** Copies the entries of the runs of some words. */
template <typename TId>
__global__ void
__launch_bounds__(Threads)
  CopyRunsKernel(LabelChunk<TId> chunk, std::int64_t begin, std::int64_t end, TId * __restrict__ labels)
{
  const TId          first = chunk.firstRuns[begin];
  const std::int64_t count = static_cast<std::int64_t>(chunk.firstRuns[end] - first);
  for (std::int64_t i = ThreadNumber(); i < count; i += static_cast<std::int64_t>(gridDim.x) * Threads)
  {
    labels[i] = chunk.parents[first + i];
  }
}

/** Words whose labels are written: from `begin` to `end`. `labels`: copies of the entries of their runs; nullptr: the
 * entries themselves count. */
template <typename TId>
struct WrittenWords
{
  std::int64_t begin;
  std::int64_t end;
  const TId *  labels;
};

/** A thread writes the labels of four voxels, at once if rows begin at multiples of four. */
template <typename TPixel, typename TId>
__global__ void
__launch_bounds__(Threads)
  WriteLabelsKernel(LabelChunk<TId> chunk, TPixel * __restrict__ output, bool isAligned, WrittenWords<TId> written)
{
  constexpr int Written = 4;
  constexpr int Parts = WordBits / Written;
  struct alignas(std::min<std::size_t>(Written * sizeof(TPixel), 16)) Labels
  {
    TPixel of[Written];
  };
  const std::int64_t at = written.begin + ThreadNumber() / Parts;
  const int          i = static_cast<int>(threadIdx.x % Parts) * Written;
  if (at >= written.end)
  {
    return;
  }
  Labels     labels{};
  const Word foreground = chunk.foreground[at] >> i & ((1 << Written) - 1);
  if (foreground != 0)
  {
    const Word starts = chunk.StartsOf(at);
    TId        run = chunk.firstRuns[at] + static_cast<TId>(__popc(starts & ((Word{ 1 } << i) - 1))) - 1;
    TId        label = 0;
    bool       isKnown = false;
#pragma unroll
    for (int k = 0; k < Written; ++k)
    {
      if ((starts >> (i + k) & 1) != 0)
      {
        ++run;
        isKnown = false;
      }
      if ((foreground >> k & 1) != 0)
      {
        label = isKnown          ? label
                : written.labels ? written.labels[run - chunk.firstRuns[written.begin]] & ~LabelChunk<TId>::IsLabel
                                 : chunk.LabelOf(run);
        isKnown = true;
        labels.of[k] = static_cast<TPixel>(label);
      }
    }
  }
  const std::int64_t row = Quotient(at, chunk.words);
  const std::int64_t x = (at - row * chunk.words) * WordBits + i;
  TPixel * const     out = output + row * chunk.extent[0] + x;
  if (isAligned)
  {
    if (x < chunk.extent[0])
    {
      *reinterpret_cast<Labels *>(out) = labels;
    }
    return;
  }
  for (int k = 0; k < Written && x + k < chunk.extent[0]; ++k)
  {
    out[k] = labels.of[k];
  }
}

template <typename TId>
__global__ void
__launch_bounds__(Threads) CountRowsKernel(LabelChunk<TId> chunk, std::uint32_t * __restrict__ counts)
{
  const std::int64_t row = ThreadNumber();
  if (row < chunk.rows)
  {
    counts[row] =
      static_cast<std::uint32_t>(chunk.rootsBefore[(row + 1) * chunk.words] - chunk.rootsBefore[row * chunk.words]);
  }
}

/** The labels of a face, and its values where `values` is no nullptr. */
template <typename TPixel, typename TId>
__global__ void
__launch_bounds__(Threads)
  WriteFaceKernel(LabelChunk<TId> chunk, const TPixel * __restrict__ voxels, int axis, bool isUpper, std::int64_t count,
                  TId * __restrict__ labels, TPixel * __restrict__ values)
{
  const std::int64_t i = ThreadNumber();
  if (i >= count)
  {
    return;
  }
  std::int64_t rest = i;
  std::int64_t row = 0;
  std::int64_t stride = 1;
  std::int64_t x = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t at = a == axis ? (isUpper ? chunk.extent[a] - 1 : 0) : rest % chunk.extent[a];
    rest = a == axis ? rest : rest / chunk.extent[a];
    x = a == 0 ? at : x;
    row += a == 0 ? 0 : at * stride;
    stride *= a == 0 ? 1 : chunk.extent[a];
  }
  labels[i] = chunk.IsForeground(row, x) ? chunk.LabelOf(chunk.RunAt(row, x)) : 0;
  if (values)
  {
    values[i] = voxels[row * chunk.extent[0] + x];
  }
}

unsigned int
BlocksOf(std::int64_t threads)
{
  return static_cast<unsigned int>((threads + Threads - 1) / Threads);
}

/** Words whose labels are written at once where entries of runs lie in the output. */
constexpr std::int64_t WordsAtOnce = std::int64_t{ 1 } << 21;

/** Arrays in scratch. `isWhole`: the chunk is the whole region, whose labels no other chunk knows. */
template <typename TId>
struct LabelScratch
{
  LabelScratch(const LabelOperation & operation, const Box & box, bool isWhole)
    : words((box.Extent(0) + WordBits - 1) / WordBits)
    , rows(CountRows(box))
  {
    const auto take = [this](std::int64_t count, std::size_t size) {
      const std::size_t at = bytes;
      bytes += RoundUp(static_cast<std::size_t>(count) * size);
      return at;
    };
    const bool merges = operation.GetNeighbors().links && operation.rule == LabelRule::Foreground;
    foreground = take(words * rows, sizeof(Word));
    links = take(words * rows, sizeof(Word));
    firstRuns = take(words * rows + 1, sizeof(TId));
    rootsBefore = take(words * rows + 1, sizeof(TId));
    // Every second voxel begins a run at most, where neighbors are one.
    // Entries of large images lie where their labels will: those of the runs before a word end before its labels begin.
    const auto ofLabels = static_cast<std::size_t>(box.Extent(0)) * PixelSize(operation.outputKind);
    isInOutput = isWhole && operation.IsWide() && merges &&
                 static_cast<std::size_t>((box.Extent(0) + 1) / 2) * sizeof(TId) <= ofLabels;
    parents = take(isInOutput ? std::min(words * rows, WordsAtOnce) * (WordBits / 2)
                              : rows * (merges ? words * WordBits / 2 : box.Extent(0)),
                   sizeof(TId));
    scan = take(static_cast<std::int64_t>(ScanBytes()), 1);
  }
  std::size_t
  ScanBytes() const
  {
    std::size_t needed = 0;
    CheckCuda(cub::DeviceScan::ExclusiveSum(
                nullptr, needed, static_cast<TId *>(nullptr), static_cast<TId *>(nullptr), words * rows + 1),
              "cub::DeviceScan::ExclusiveSum");
    return needed;
  }

  std::int64_t words;
  std::int64_t rows;
  std::size_t  bytes{ 0 };
  std::size_t  foreground;
  std::size_t  links;
  std::size_t  firstRuns;
  std::size_t  rootsBefore;
  std::size_t  parents; ///< or, if these lie in the output, copies of some
  std::size_t  scan;
  bool         isInOutput;
};

/** One call of a kernel. */
template <typename TId>
class ChunkLabeler
{
public:
  ChunkLabeler(const KernelCall & call, bool isWhole)
    : m_Call(call)
    , m_Operation(static_cast<const LabelOperation &>(*call.operation))
    , m_Box(call.writable)
    , m_Scratch(m_Operation, m_Box, isWhole)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Chunk.extent[a] = m_Box.Extent(a);
      m_Chunk.wraps[a] = m_Operation.periodic[a] && m_Box.Extent(a) == call.image.Extent(a) &&
                         std::find(m_Operation.axes.begin(), m_Operation.axes.end(), a) != m_Operation.axes.end();
    }
    m_Chunk.words = m_Scratch.words;
    m_Chunk.rows = m_Scratch.rows;
    m_Chunk.neighbors = m_Operation.GetNeighbors();
    m_Chunk.foreground = this->At<Word>(m_Scratch.foreground);
    m_Chunk.links = this->At<Word>(m_Scratch.links);
    m_Chunk.firstRuns = this->At<TId>(m_Scratch.firstRuns);
    m_Chunk.rootsBefore = this->At<TId>(m_Scratch.rootsBefore);
    m_Chunk.parents = m_Scratch.isInOutput ? static_cast<TId *>(call.output.data) : this->At<TId>(m_Scratch.parents);
  }

  void
  FindRoots()
  {
    const PixelType kind = m_Call.inputs[0].kind;
    if (m_Operation.rule == LabelRule::Within)
    {
      DispatchPixelType(kind, [this](auto pixel) {
        using Pixel = decltype(pixel);
        this->FindRootsOf<Pixel>(MakeLabelIsWithin<Pixel>(m_Operation.tolerance));
      });
      return;
    }
    DispatchBits(kind, [this](auto pixel) {
      using Pixel = decltype(pixel);
      if (m_Operation.rule == LabelRule::Equal)
      {
        this->FindRootsOf<Pixel>(LabelIsEqual<Pixel>());
      }
      else
      {
        this->FindRootsOf<Pixel>(AllAlike());
      }
    });
  }

  template <typename TLabels>
  void
  NumberRoots(const TLabels & labels)
  {
    NumberRootsKernel<<<BlocksOf(this->CountWords()), Threads, 0, StreamOf(m_Call)>>>(m_Chunk, labels);
    CheckLaunch("NumberRootsKernel");
  }

  void
  WriteSummary()
  {
    const LabelSummaryLayout layout(m_Operation, m_Box);
    auto * const             bytes = static_cast<unsigned char *>(m_Call.sideOut);
    CheckCuda(cudaMemsetAsync(bytes, 0, layout.bytes, StreamOf(m_Call)), "cudaMemsetAsync");
    CountRowsKernel<<<BlocksOf(m_Chunk.rows), Threads, 0, StreamOf(m_Call)>>>(m_Chunk,
                                                                              reinterpret_cast<std::uint32_t *>(bytes));
    CheckLaunch("CountRowsKernel");
    for (int f = 0; f < layout.numberOfFaces; ++f)
    {
      const LabelFace & face = layout.faces[f];
      DispatchBits(m_Call.inputs[0].kind, [&](auto pixel) {
        using Pixel = decltype(pixel);
        auto * const values =
          m_Operation.rule == LabelRule::Foreground ? nullptr : reinterpret_cast<Pixel *>(bytes + face.values);
        WriteFaceKernel<<<BlocksOf(face.voxels), Threads, 0, StreamOf(m_Call)>>>(
          m_Chunk,
          static_cast<const Pixel *>(m_Call.inputs[0].data),
          face.axis,
          face.isUpper,
          face.voxels,
          reinterpret_cast<TId *>(bytes + face.labels),
          values);
        CheckLaunch("WriteFaceKernel");
      });
    }
  }

  /** Throws Error if the output has not so many labels. */
  void
  CheckCount()
  {
    if (m_Operation.MayHaveTooMany(m_Box))
    {
      TId count = 0;
      CheckCuda(
        cudaMemcpyAsync(
          &count, m_Chunk.rootsBefore + this->CountWords(), sizeof(count), cudaMemcpyDeviceToHost, StreamOf(m_Call)),
        "cudaMemcpyAsync");
      CheckCuda(cudaStreamSynchronize(StreamOf(m_Call)), "cudaStreamSynchronize");
      CheckNumberOfLabels(count, m_Operation.outputKind);
    }
  }

  void
  WriteLabels()
  {
    if (!m_Scratch.isInOutput)
    {
      this->WriteLabelsOf({ 0, this->CountWords(), nullptr });
      return;
    }
    LabelRunsKernel<<<BlocksOf(this->CountWords()), Threads, 0, StreamOf(m_Call)>>>(m_Chunk);
    CheckLaunch("LabelRunsKernel");
    auto * const labels = this->At<TId>(m_Scratch.parents);
    for (std::int64_t end = this->CountWords(); end > 0; end -= std::min(end, WordsAtOnce))
    {
      const std::int64_t begin = end - std::min(end, WordsAtOnce);
      CopyRunsKernel<<<BlocksOf(end - begin), Threads, 0, StreamOf(m_Call)>>>(m_Chunk, begin, end, labels);
      CheckLaunch("CopyRunsKernel");
      this->WriteLabelsOf({ begin, end, labels });
    }
  }

private:
  void
  WriteLabelsOf(const WrittenWords<TId> & written)
  {
    DispatchBits(m_Call.output.kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      auto * const output = static_cast<Pixel *>(m_Call.output.data);
      WriteLabelsKernel<<<BlocksOf((written.end - written.begin) * (WordBits / 4)), Threads, 0, StreamOf(m_Call)>>>(
        m_Chunk, output, this->RowsBeginAtMultiplesOf(4 * sizeof(Pixel), output), written);
      CheckLaunch("WriteLabelsKernel");
    });
  }

  template <typename T>
  T *
  At(std::size_t offset) const
  {
    return reinterpret_cast<T *>(static_cast<char *>(m_Call.scratch) + offset);
  }
  std::int64_t
  CountWords() const
  {
    return m_Scratch.words * m_Scratch.rows;
  }
  template <typename TPixel>
  bool
  RowsBeginAtMultiplesOf(std::size_t bytes, const TPixel * voxels) const
  {
    return reinterpret_cast<std::uintptr_t>(voxels) % bytes == 0 &&
           static_cast<std::size_t>(m_Box.Extent(0)) * sizeof(TPixel) % bytes == 0;
  }

  void
  Scan(TId * counts)
  {
    std::size_t bytes = m_Scratch.ScanBytes();
    CheckCuda(cub::DeviceScan::ExclusiveSum(
                this->At<void>(m_Scratch.scan), bytes, counts, counts, this->CountWords() + 1, StreamOf(m_Call)),
              "cub::DeviceScan::ExclusiveSum");
  }

  /** The background value of the input's pixel type, as a TPixel of the same bits. */
  template <typename TPixel>
  TPixel
  BackgroundOf() const
  {
    return DispatchPixelType(m_Call.inputs[0].kind, [this](auto pixel) {
      return static_cast<TPixel>(m_Operation.background.template As<decltype(pixel)>());
    });
  }

  template <typename TPixel, typename TAlike>
  void
  FindRootsOf(const TAlike & alike)
  {
    const auto *       voxels = static_cast<const TPixel *>(m_Call.inputs[0].data);
    const unsigned int blocks = BlocksOf(this->CountWords() + 1);
    MakeWordsKernel<<<blocks, Threads, 0, StreamOf(m_Call)>>>(m_Chunk,
                                                              voxels,
                                                              this->RowsBeginAtMultiplesOf(sizeof(uint4), voxels),
                                                              BackgroundOf<TPixel>(),
                                                              m_Operation.labelsBackground,
                                                              alike);
    CheckLaunch("MakeWordsKernel");
    this->Scan(m_Chunk.firstRuns);
    // Words say all of the foreground.
    using Read = std::conditional_t<std::is_same<TAlike, AllAlike>::value, unsigned char, TPixel>;
    const auto * const read = reinterpret_cast<const Read *>(voxels);
    // At most every second voxel begins a run if all neighbors along x are linked.
    const bool       isHalf = std::is_same<TAlike, AllAlike>::value && m_Chunk.neighbors.links;
    const LabelTiles tiles = LabelTiles::Make(m_Chunk, TileBits - (isHalf ? 4 : 5));
    const auto       joinInTiles = [&](auto kernel, std::size_t bytes) {
      CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
                "cudaFuncSetAttribute");
      kernel<<<static_cast<unsigned int>(tiles.Count(m_Chunk)), tiles.CountWords(), bytes, StreamOf(m_Call)>>>(
        m_Chunk, tiles, read, alike);
      CheckLaunch("JoinInTilesKernel");
    };
    if (isHalf)
    {
      joinInTiles(JoinInTilesKernel<WordBits / 2, Read, TId, TAlike>, sizeof(TileOfRuns<TId, WordBits / 2>));
    }
    else
    {
      joinInTiles(JoinInTilesKernel<WordBits, Read, TId, TAlike>, sizeof(TileOfRuns<TId, WordBits>));
    }
    JoinKernel<<<blocks, Threads, 0, StreamOf(m_Call)>>>(m_Chunk, tiles, read, alike);
    CheckLaunch("JoinKernel");
    FindRootsKernel<<<blocks, Threads, 0, StreamOf(m_Call)>>>(m_Chunk);
    CheckLaunch("FindRootsKernel");
    this->Scan(m_Chunk.rootsBefore);
  }

  const KernelCall &      m_Call;
  const LabelOperation &  m_Operation;
  const Box               m_Box;
  const LabelScratch<TId> m_Scratch;
  LabelChunk<TId>         m_Chunk{};
};

/** Calls f(labeler) with the roots of all runs found. */
template <typename TFunctor>
void
LabelOneChunk(const KernelCall & call, bool isWhole, TFunctor && f)
{
  if (call.writable.IsEmpty())
  {
    return;
  }
  const auto label = [&](auto labeler) {
    labeler.FindRoots();
    f(labeler);
  };
  if (static_cast<const LabelOperation &>(*call.operation).IsWide())
  {
    label(ChunkLabeler<std::uint64_t>(call, isWhole));
  }
  else
  {
    label(ChunkLabeler<std::uint32_t>(call, isWhole));
  }
}

void
RunSummary(const KernelCall & call)
{
  LabelOneChunk(call, false, [](auto & labeler) {
    labeler.NumberRoots(OwnLabels());
    labeler.WriteSummary();
  });
}

void
RunAlone(const KernelCall & call)
{
  LabelOneChunk(call, true, [&](auto & labeler) {
    const auto * const numbering = static_cast<const LabelOperation &>(*call.operation).numbering.get();
    if (numbering)
    {
      const auto * const parts =
        numbering->parts.empty()
          ? nullptr
          : static_cast<const LabelOfPart *>(call.tables->Get(
              "labels " + numbering->key, numbering->parts.data(), numbering->parts.size() * sizeof(LabelOfPart)));
      labeler.NumberRoots(LabelSolution(*numbering, parts));
    }
    else
    {
      labeler.NumberRoots(OwnLabels());
    }
    labeler.CheckCount();
    labeler.WriteLabels();
  });
}

void
RunSolved(const KernelCall & call)
{
  LabelOneChunk(call, false, [&](auto & labeler) {
    labeler.NumberRoots(LabelSolution(call.sideIn, call.sideInBytes, CountRows(call.writable)));
    labeler.WriteLabels();
  });
}

template <bool VIsWhole>
std::size_t
ScratchOfLabels(const Operation & operation, const ChunkShape & shape)
{
  const auto & label = static_cast<const LabelOperation &>(operation);
  return label.IsWide() ? LabelScratch<std::uint64_t>(label, shape.outputBox, VIsWhole).bytes
                        : LabelScratch<std::uint32_t>(label, shape.outputBox, VIsWhole).bytes;
}

/** Voxels are read and labels written once, words and runs some times. */
double
CostOfLabels(const Operation & operation, const ChunkShape & shape)
{
  const auto   voxels = static_cast<double>(shape.outputBox.NumberOfVoxels());
  const bool   readsValues = static_cast<const LabelOperation &>(operation).rule != LabelRule::Foreground;
  const double perVoxel = static_cast<double>(PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind));
  return voxels * (perVoxel + (readsValues ? 64.0 : 8.0));
}

} // namespace

void
RegisterCudaLabel(KernelRegistry & registry)
{
  KernelSet kernels;
  Kernel    kernel;
  kernel.scratchBytes = ScratchOfLabels<false>;
  kernel.cost = CostOfLabels;
  kernel.run = RunSummary;
  kernels.summarize = kernel;
  kernel.run = RunSolved;
  kernels.compute = kernel;
  kernel.scratchBytes = ScratchOfLabels<true>;
  kernel.run = RunAlone;
  kernels.alone = kernel;
  registry.Register("label", kernels);
}

// Runs of images that do not fit a memory are the library's; this module has its own copy of the operation.
const OutOfCoreRunner *
LabelOperation::GetOutOfCoreRunner() const
{
  return nullptr;
}

} // namespace chunkwise
