/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaRank.cuh"

// Large windows. A block takes a tile of outputs and sorts the voxels of all its windows. Then it goes through them in
// ascending order, a few hundred at a time: a voxel is in the windows of a box of outputs, so that it counts for them
// by what it adds at the corners of that box, summed along each axis. So the work of a voxel does not depend on how
// many windows it is in. An output whose count passes its rank is found; which voxel it is, is looked up at the end.
namespace chunkwise
{

namespace
{

constexpr int TileSide = 16; ///< outputs along each of the three axes
constexpr int TileThreads = TileSide * TileSide;
constexpr int TileWarps = TileThreads / 32;
constexpr int TileOutputs = TileSide * TileThreads;
/** The most voxels of a tile along an axis: places have 7 bits there. */
constexpr int LargestTile = 128;
/** The most voxels of a tile: an output's number and that of a voxel share a word. */
constexpr std::int64_t MostVoxels = 1 << 20;
/** Voxels that are counted in one byte; a word counts four times as many together. */
constexpr int BatchBits = 7;
constexpr int Batch = 1 << BatchBits;
constexpr int BatchesOfWord = 4;
/** Counts of outputs in shared memory, so that columns along every axis lie on different banks. */
constexpr int RowPitch = TileSide + 1;
constexpr int PlanePitch = TileSide * RowPitch;
/** Blocks at a time: what an H200 runs at once, and what it runs on each of its multiprocessors. */
constexpr std::int64_t MostBlocks = 528;
constexpr std::int64_t FewestBlocks = 132;
/** Bytes of scratch above which there are fewer blocks. */
constexpr std::int64_t WantedBytes = 256 << 20;

/** The item that a tile sorts: the place of a voxel, and the digits of its key that are not sorted yet. */
template <typename TKey>
struct TileItem
{
  static constexpr int Passes = sizeof(TKey);
  static constexpr int Buffers = Passes > 1 ? 2 : 1;
  struct Wide
  {
    std::uint64_t key;
    std::uint64_t place;
  };
  using Type =
    std::conditional_t<sizeof(TKey) <= 2, std::uint32_t, std::conditional_t<sizeof(TKey) == 4, std::uint64_t, Wide>>;

  __device__ static Type
  From(TKey key, std::uint32_t place)
  {
    if constexpr (sizeof(TKey) <= 2)
    {
      return place | static_cast<std::uint32_t>(key) >> 8 << 24;
    }
    else if constexpr (sizeof(TKey) == 4)
    {
      return std::uint64_t{ key } << 32 | place;
    }
    else
    {
      return { key, place };
    }
  }
  /** The digit of a pass after the first. */
  __device__ static int
  Digit(const Type & item, int pass)
  {
    if constexpr (sizeof(TKey) <= 2)
    {
      return static_cast<int>(item >> 24);
    }
    else if constexpr (sizeof(TKey) == 4)
    {
      return static_cast<int>(item >> (32 + 8 * pass) & 255);
    }
    else
    {
      return static_cast<int>(item.key >> 8 * pass & 255);
    }
  }
  __device__ static std::uint32_t
  Place(const Type & item)
  {
    if constexpr (sizeof(TKey) <= 4)
    {
      return static_cast<std::uint32_t>(item);
    }
    else
    {
      return static_cast<std::uint32_t>(item.place);
    }
  }
};

/** Items that a block moves together: long enough that those of the same digit are stored side by side. */
template <typename TItem>
constexpr int ItemsOfThread = sizeof(TItem) <= 8 ? 8 : 4;
template <typename TItem>
constexpr int Chunk = ItemsOfThread<TItem> * TileThreads;

/** A block's shared memory: sorting and counting take turns. */
template <typename TItem>
union TileMemory
{
  struct
  {
    int          counts[TileWarps][256];
    int          totals[TileWarps];
    int          offsets[256];
    TItem        items[Chunk<TItem>];
    std::uint8_t digits[Chunk<TItem>];
  } sort;
  std::uint32_t words[TileSide * PlanePitch];
  struct
  {
    std::uint32_t entries[TileOutputs];
    std::uint32_t found[TileOutputs];
    int           counts[256];
    int           totals[TileWarps];
    int           least;
    int           most;
  } look;
};

/** The sum of the values of the threads before. Between two calls there must be a barrier. */
__device__ __forceinline__ int
SumBefore(int value, int (&totals)[TileWarps])
{
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int       sum = value;
#pragma unroll
  for (int step = 1; step < 32; step *= 2)
  {
    const int other = __shfl_up_sync(~0u, sum, step);
    sum += lane >= step ? other : 0;
  }
  if (lane == 31)
  {
    totals[warp] = sum;
  }
  __syncthreads();
  sum -= value;
  for (int w = 0; w < warp; ++w)
  {
    sum += totals[w];
  }
  return sum;
}

/** Moves n items to where the order of one digit puts them; items of the same digit keep their order. load(i, digit)
 * gives an item and its digit, store(position, item) takes it; `histogram`: how many items have each digit. */
template <typename TItem, typename TLoad, typename TStore>
__device__ void
SortByDigit(TileMemory<TItem> & memory, const int (&histogram)[256], int n, TLoad && load, TStore && store)
{
  auto &    sort = memory.sort;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  // The place of the next item of the digit that has this thread's number.
  int next = SumBefore(histogram[thread], sort.totals);
  for (int first = 0; first < n; first += Chunk<TItem>)
  {
    const int count = min(Chunk<TItem>, n - first);
#pragma unroll
    for (int w = 0; w < TileWarps; ++w)
    {
      sort.counts[w][thread] = 0;
    }
    __syncthreads();
    // A warp has a contiguous part. An item's number among those of its digit there is kept above the digit.
    TItem items[ItemsOfThread<TItem>];
    int   codes[ItemsOfThread<TItem>];
#pragma unroll
    for (int u = 0; u < ItemsOfThread<TItem>; ++u)
    {
      const int i = (warp * ItemsOfThread<TItem> + u) * 32 + lane;
      codes[u] = -1;
      if (i < count)
      {
        items[u] = load(first + i, codes[u]);
      }
    }
#pragma unroll
    for (int u = 0; u < ItemsOfThread<TItem>; ++u)
    {
      const unsigned int alike = __match_any_sync(~0u, codes[u]);
      const int          before = __popc(alike & ((1u << lane) - 1));
      const int          digit = codes[u];
      int                number = 0;
      if (digit >= 0)
      {
        number = sort.counts[warp][digit] + before;
        codes[u] |= number << 8;
      }
      __syncwarp();
      if (digit >= 0 && before == 0)
      {
        sort.counts[warp][digit] = number + __popc(alike);
      }
      __syncwarp();
    }
    __syncthreads();
    int before[TileWarps];
    int total = 0;
#pragma unroll
    for (int w = 0; w < TileWarps; ++w)
    {
      before[w] = total;
      total += sort.counts[w][thread];
    }
    const int start = SumBefore(total, sort.totals);
#pragma unroll
    for (int w = 0; w < TileWarps; ++w)
    {
      sort.counts[w][thread] = start + before[w];
    }
    sort.offsets[thread] = next - start;
    next += total;
    __syncthreads();
#pragma unroll
    for (int u = 0; u < ItemsOfThread<TItem>; ++u)
    {
      if (codes[u] >= 0)
      {
        const int digit = codes[u] & 255;
        const int position = sort.counts[warp][digit] + (codes[u] >> 8);
        sort.items[position] = items[u];
        sort.digits[position] = static_cast<std::uint8_t>(digit);
      }
    }
    __syncthreads();
    for (int i = thread; i < count; i += TileThreads)
    {
      store(sort.offsets[sort.digits[i]] + i, sort.items[i]);
    }
  }
  __syncthreads();
}

/** How far windows reach along an axis. */
struct WindowReach
{
  int lower;
  int upper;
};

/** The outputs along an axis whose windows have a voxel, as those of a tile: from `begin` on, up to `end`. */
struct OutputRange
{
  int begin;
  int end;

  __device__
  OutputRange(int position, int shift, const WindowReach & reach)
    : begin(max(0, position + shift - reach.upper))
    , end(min(TileSide, position + shift + reach.lower + 1))
  {}
};

/** Adds `one` for all outputs of a box, at its corners. */
__device__ __forceinline__ void
AddBox(std::uint32_t * words, const OutputRange & p, const OutputRange & q, const OutputRange & m, std::uint32_t one)
{
  const auto addRow = [&](std::uint32_t * row, std::uint32_t value) {
    atomicAdd(row + p.begin, value);
    if (p.end < TileSide)
    {
      atomicAdd(row + p.end, 0u - value);
    }
  };
  const auto addPlane = [&](std::uint32_t * plane, std::uint32_t value) {
    addRow(plane + q.begin * RowPitch, value);
    if (q.end < TileSide)
    {
      addRow(plane + q.end * RowPitch, 0u - value);
    }
  };
  addPlane(words + m.begin * PlanePitch, one);
  if (m.end < TileSide)
  {
    addPlane(words + m.end * PlanePitch, 0u - one);
  }
}

/** Replaces values `step` apart by their sums up to each. */
__device__ __forceinline__ void
SumUp(std::uint32_t * words, int step)
{
  std::uint32_t sum[TileSide];
#pragma unroll
  for (int i = 0; i < TileSide; ++i)
  {
    sum[i] = words[i * step];
  }
#pragma unroll
  for (int i = 1; i < TileSide; ++i)
  {
    sum[i] += sum[i - 1];
    words[i * step] = sum[i];
  }
}

/** Outputs that wait for their voxel have, in `states`, how many of their window are before it and not counted yet; the
 * others the complement of its batch and of how many of the window are before it there. */
template <bool VCounts>
__device__ void
Sweep(std::uint32_t * words, const std::uint32_t * places, int n, const int (&shifts)[3],
      const WindowReach (&reaches)[3], int (&states)[TileSide])
{
  const int thread = static_cast<int>(threadIdx.x);
  const int low = thread % TileSide;
  const int high = thread / TileSide;
  int       waits = 1;
  for (int first = 0; first < n && waits != 0; first += BatchesOfWord * Batch)
  {
    const int end = min(n, first + BatchesOfWord * Batch);
    for (int i = first + thread; i < end; i += TileThreads)
    {
      const std::uint32_t place = places[i];
      AddBox(words,
             OutputRange(place & 127, shifts[0], reaches[0]),
             OutputRange(place >> 8 & 127, shifts[1], reaches[1]),
             OutputRange(place >> 16 & 127, shifts[2], reaches[2]),
             1u << 8 * ((i - first) >> BatchBits));
    }
    __syncthreads();
    SumUp(words + high * PlanePitch + low * RowPitch, 1);
    __syncthreads();
    SumUp(words + high * PlanePitch + low, RowPitch);
    __syncthreads();
    std::uint32_t sum = 0;
    bool          waitsHere = false;
#pragma unroll
    for (int i = 0; i < TileSide; ++i)
    {
      std::uint32_t & word = words[i * PlanePitch + high * RowPitch + low];
      sum += word;
      word = 0;
      const int some = static_cast<int>(__dp4a(sum, 0x01010101u, 0u));
      if constexpr (VCounts)
      {
        states[i] += some;
      }
      else if (states[i] >= some)
      {
        states[i] -= some;
        waitsHere = true;
      }
      else if (states[i] >= 0)
      {
        int           left = states[i];
        int           batch = first >> BatchBits;
        std::uint32_t rest = sum;
#pragma unroll
        for (int b = 0; b + 1 < BatchesOfWord; ++b)
        {
          const int  count = static_cast<int>(rest & 255u);
          const bool isLater = left >= count;
          left -= isLater ? count : 0;
          batch += isLater ? 1 : 0;
          rest = isLater ? rest >> 8 : 255u;
        }
        states[i] = ~(batch << BatchBits | left);
      }
    }
    waits = __syncthreads_or(VCounts || waitsHere);
  }
}

/** The parts of the windows of a tile's outputs that there are, along each axis: the positions of the first and, 8 bits
 * above, of the last voxel. */
using WindowTable = std::uint32_t[3][TileSide];

/** A guard survives where a place is not before the window's first, nor after its last. */
constexpr std::uint32_t PlaceGuards = 0x808080u;

/** The place of the voxel of a window that is number `left` of those from `at` on. */
__device__ __forceinline__ std::uint32_t
                           LookUp(const uint4 * at, int left, std::uint32_t first, std::uint32_t last)
{
  const auto isIn = [=](std::uint32_t place) {
    return (((place | PlaceGuards) - first) & (last - place) & PlaceGuards) == PlaceGuards ? 1 : 0;
  };
  while (true)
  {
    const uint4 four = *at++;
    const int   is[4] = { isIn(four.x), isIn(four.y), isIn(four.z), isIn(four.w) };
    const int   some = is[0] + is[1] + is[2] + is[3];
    if (left < some)
    {
      return left < is[0] ? four.x : left < is[0] + is[1] ? four.y : left < some - is[3] ? four.z : four.w;
    }
    left -= some;
  }
}

/** Looks up the voxels of all outputs, of which a thread has those numbered i TileThreads + its own number: `states`
 * says where to begin. Threads of a warp take outputs that begin near each other, so that they read the same places. */
template <typename TItem>
__device__ void
LookUpAll(TileMemory<TItem> & memory, const std::uint32_t * places, const WindowTable & windows,
          const int (&states)[TileSide], int outputs)
{
  auto &    look = memory.look;
  const int thread = static_cast<int>(threadIdx.x);
  look.counts[thread] = 0;
  if (thread == 0)
  {
    look.least = ~(1 << 31);
    look.most = 0;
  }
  __syncthreads();
  int least = ~(1 << 31);
  int most = 0;
#pragma unroll
  for (int i = 0; i < TileSide; ++i)
  {
    least = i < outputs ? min(least, ~states[i]) : least;
    most = i < outputs ? max(most, ~states[i]) : most;
  }
  atomicMin(&look.least, least);
  atomicMax(&look.most, most);
  __syncthreads();
  least = look.least;
  // Bins of equal width.
  const int shift = max(0, 24 - __clz(look.most - least));
#pragma unroll
  for (int i = 0; i < TileSide; ++i)
  {
    if (i < outputs)
    {
      atomicAdd(&look.counts[(~states[i] - least) >> shift], 1);
    }
  }
  __syncthreads();
  const int count = look.counts[thread];
  const int begin = SumBefore(count, look.totals);
  look.counts[thread] = begin;
  if (thread == TileThreads - 1)
  {
    look.most = begin + count;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < TileSide; ++i)
  {
    if (i < outputs)
    {
      const int state = ~states[i];
      const int position = atomicAdd(&look.counts[(state - least) >> shift], 1);
      look.entries[position] = static_cast<std::uint32_t>(state) << 12 | (i * TileThreads + thread);
    }
  }
  __syncthreads();
  const int all = look.most;
  for (int i = thread; i < all; i += TileThreads)
  {
    const std::uint32_t entry = look.entries[i];
    const std::uint32_t p = windows[0][entry % TileSide];
    const std::uint32_t q = windows[1][entry / TileSide % TileSide];
    const std::uint32_t m = windows[2][entry / TileThreads % TileSide];
    const std::uint32_t first = (p & 127) | (q & 127) << 8 | (m & 127) << 16;
    const std::uint32_t last = (p >> 8 | q >> 8 << 8 | m >> 8 << 16) + PlaceGuards;
    const int           state = static_cast<int>(entry >> 12);
    look.found[entry % TileOutputs] =
      LookUp(reinterpret_cast<const uint4 *>(places + (state & ~(Batch - 1))), state & (Batch - 1), first, last);
  }
  __syncthreads();
}

/** The first output of a tile. */
__device__ __forceinline__ Coordinates
CornerOf(const RankGeometry & g, const int (&axes)[3], std::int64_t number)
{
  Coordinates corner = g.out.lower;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const int          side = a == axes[0] || a == axes[1] || a == axes[2] ? TileSide : 1;
    const std::int64_t tiles = (g.out.Extent(a) + side - 1) / side;
    const std::int64_t quotient = number / tiles;
    corner.axis[a] += (number - quotient * tiles) * side;
    number = quotient;
  }
  return corner;
}

/** The first and the last place in the window of output i along axis k; `origin` is the first voxel of all windows. */
__device__ __forceinline__ std::uint32_t
WindowOf(const RankGeometry & g, const int (&axes)[3], const WindowReach (&reaches)[3], const Coordinates & corner,
         const Coordinates & origin, int k, int i)
{
  const int          a = axes[k];
  const std::int64_t center = corner.axis[a] + i;
  const auto         first = max(center - reaches[k].lower, g.in.lower.axis[a]) - origin.axis[a];
  const auto         last = min(center + reaches[k].upper, g.in.upper.axis[a] - 1) - origin.axis[a];
  return static_cast<std::uint32_t>(first | last << 8);
}

/** The voxels of a tile's windows, numbered along the first axis first. */
template <typename TKey>
struct RankVoxels
{
  std::int64_t strides[3];
  int          sides[3];
  int          shifts[3]; ///< from the first output to the first voxel
  int          count;
  /** Dividing by multiplying is exact for numbers below 2^21 and divisors of up to 2^7. */
  std::uint32_t inverses[2];

  /** Moves `origin` from the first output to the first voxel. */
  __device__ __forceinline__
  RankVoxels(const RankGeometry & g, const int (&axes)[3], const WindowReach (&reaches)[3], const Coordinates & corner,
             Coordinates & origin)
  {
#pragma unroll
    for (int k = 0; k < 3; ++k)
    {
      const int          a = axes[k];
      const std::int64_t upper = min(g.out.upper.axis[a], corner.axis[a] + TileSide);
      origin.axis[a] = max(corner.axis[a] - reaches[k].lower, g.in.lower.axis[a]);
      sides[k] = static_cast<int>(min(upper + reaches[k].upper, g.in.upper.axis[a]) - origin.axis[a]);
      shifts[k] = static_cast<int>(origin.axis[a] - corner.axis[a]);
      strides[k] = g.inStride.axis[a];
    }
    count = sides[0] * sides[1] * sides[2];
    inverses[0] = 0xFFFFFFFFu / sides[0] + 1;
    inverses[1] = 0xFFFFFFFFu / sides[1] + 1;
  }

  /** The place of voxel number i: 8 bits for each axis. */
  __device__ __forceinline__ std::uint32_t
                             PlaceOf(int i) const
  {
    const std::uint32_t row = sides[0] == 1 ? i : __umulhi(i, inverses[0]);
    const std::uint32_t plane = sides[1] == 1 ? row : __umulhi(row, inverses[1]);
    return (i - row * sides[0]) | (row - plane * sides[1]) << 8 | plane << 16;
  }
  /** `base` is the first voxel. */
  __device__ __forceinline__ TKey
  KeyAt(const TKey * __restrict__ base, std::uint32_t place, KeyForm form) const
  {
    return ToKey(base[(place & 127) * strides[0] + (place >> 8 & 127) * strides[1] + (place >> 16 & 127) * strides[2]],
                 form);
  }
};

/** Counts the voxels that have each digit, for all passes, and the lost voxels. */
template <typename TKey, typename TKeyOf>
__device__ __forceinline__ void
CountDigits(int n, TKeyOf && keyOf, int (&histograms)[TileItem<TKey>::Passes][256], bool isReal, int & lost)
{
  int lostHere = 0;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += TileThreads)
  {
    const TKey key = keyOf(i);
    lostHere += key == 0 ? 1 : 0;
#pragma unroll
    for (int d = 0; d < TileItem<TKey>::Passes; ++d)
    {
      atomicAdd(&histograms[d][key >> 8 * d & 255], 1);
    }
  }
  if (isReal && lostHere > 0)
  {
    atomicAdd(&lost, lostHere);
  }
}

/** Sorts a tile's voxels by their keys; `load(i, digit)` gives the item of voxel i and its first digit. The last pass
 * stores places alone. */
template <typename TKey, typename TItem, typename TLoad>
__device__ __forceinline__ void
SortTile(TileMemory<TItem> & memory, const int (&histograms)[TileItem<TKey>::Passes][256], int n, TLoad && load,
         TItem * const (&buffers)[2], std::uint32_t * places)
{
  using Item = TileItem<TKey>;
  const auto storeTo = [&](TItem * to, bool isLast) {
    return [=](int position, const TItem & item) {
      if (isLast)
      {
        places[position] = Item::Place(item);
      }
      else
      {
        to[position] = item;
      }
    };
  };
  SortByDigit(memory, histograms[0], n, load, storeTo(buffers[0], Item::Passes == 1));
  for (int pass = 1; pass < Item::Passes; ++pass)
  {
    const TItem * const from = buffers[(pass + 1) % 2];
    SortByDigit(
      memory,
      histograms[pass],
      n,
      [&](int i, int & digit) {
        const TItem item = from[i];
        digit = Item::Digit(item, pass);
        return item;
      },
      storeTo(buffers[pass % 2], pass + 1 == Item::Passes));
  }
  // Places are looked up four at a time.
  if (threadIdx.x < 3)
  {
    places[n + threadIdx.x] = 0;
  }
}

/** Finds the states in which LookUpAll looks up the outputs of a thread. */
template <typename TKey, typename TAbsent>
__device__ __forceinline__ void
FindRanks(std::uint32_t * words, const std::uint32_t * places, const WindowReach (&reaches)[3],
          const RankVoxels<TKey> & voxels, const WindowTable & windows, int lost, int outputs, double fraction,
          TAbsent && absentIn, int (&states)[TileSide])
{
  const int  thread = static_cast<int>(threadIdx.x);
  const auto countOf = [&](int k, int i) {
    const std::uint32_t window = windows[k][i];
    return static_cast<int>((window >> 8) - (window & 127)) + 1;
  };
  const int tapsOfPlane = countOf(0, thread % TileSide) * countOf(1, thread / TileSide);
  if (lost > 0)
  {
    Sweep<true>(words, places, lost, voxels.shifts, reaches, states);
  }
#pragma unroll
  for (int i = 0; i < TileSide; ++i)
  {
    if (i < outputs)
    {
      const int taps = tapsOfPlane * countOf(2, i);
      states[i] = static_cast<int>(RankIn(taps, absentIn(i, taps, states[i]), fraction));
    }
    else
    {
      states[i] = -1;
    }
  }
  Sweep<false>(words, places, voxels.count, voxels.shifts, reaches, states);
}

template <typename TKey>
__global__ void
__launch_bounds__(TileThreads, 4)
  RankTileKernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out,
                 typename TileItem<TKey>::Type * scratch, std::int64_t capacity)
{
  using Item = TileItem<TKey>;
  using ItemType = typename Item::Type;
  __shared__ TileMemory<ItemType> memory;
  __shared__ int                  histograms[Item::Passes][256];
  __shared__ WindowTable          windows;
  __shared__ int                  lost;
  const int                       thread = static_cast<int>(threadIdx.x);
  const int                       axes[3] = { g.planeAxes[0], g.planeAxes[1], g.lineAxis };
  const WindowReach               reaches[3] = { { g.planeRadii[0], g.planeUppers[0] },
                                                 { g.planeRadii[1], g.planeUppers[1] },
                                                 { g.lineRadius, g.lineUpper } };
  ItemType * const                buffers[2] = { scratch + blockIdx.x * Item::Buffers * capacity,
                                                 scratch + ((blockIdx.x + 1) * Item::Buffers - 1) * capacity };
  auto * const                    places = reinterpret_cast<std::uint32_t *>(buffers[(Item::Passes - 1) % 2]);
  for (std::int64_t number = blockIdx.x; number < g.lines; number += gridDim.x)
  {
    const Coordinates      corner = CornerOf(g, axes, number);
    Coordinates            origin = corner;
    const RankVoxels<TKey> voxels(g, axes, reaches, corner, origin);
    const TKey * const     base = in + RankLine::Offset(origin, g.in, g.inStride);
    if (thread == 0)
    {
      lost = 0;
    }
    if (thread < 3 * TileSide)
    {
      windows[thread / TileSide][thread % TileSide] =
        WindowOf(g, axes, reaches, corner, origin, thread / TileSide, thread % TileSide);
    }
#pragma unroll
    for (int d = 0; d < Item::Passes; ++d)
    {
      histograms[d][thread] = 0;
    }
    __syncthreads();
    CountDigits<TKey>(
      voxels.count,
      [&](int i) { return voxels.KeyAt(base, voxels.PlaceOf(i), g.form); },
      histograms,
      g.form == KeyForm::Real,
      lost);
    __syncthreads();
    SortTile<TKey>(
      memory,
      histograms,
      voxels.count,
      [&](int i, int & digit) {
        const std::uint32_t place = voxels.PlaceOf(i);
        const TKey          key = voxels.KeyAt(base, place, g.form);
        digit = static_cast<int>(key & 255);
        return Item::From(key, place);
      },
      buffers,
      places);
    for (int i = thread; i < TileSide * PlanePitch; i += TileThreads)
    {
      memory.words[i] = 0;
    }
    __syncthreads();
    // A thread's outputs.
    Coordinates index = corner;
    index.axis[axes[0]] += thread % TileSide;
    index.axis[axes[1]] += thread / TileSide;
    const bool active =
      index.axis[axes[0]] < g.out.upper.axis[axes[0]] && index.axis[axes[1]] < g.out.upper.axis[axes[1]];
    const int outputs =
      active ? static_cast<int>(min(std::int64_t{ TileSide }, g.out.upper.axis[axes[2]] - index.axis[axes[2]])) : 0;
    int        states[TileSide] = {};
    const auto absentIn = [&](int i, int taps, int lostHere) {
      return AbsentIn(g, index, index.axis[axes[2]] + i, taps, lostHere);
    };
    FindRanks(memory.words, places, reaches, voxels, windows, lost, outputs, g.fraction, absentIn, states);
    LookUpAll(memory, places, windows, states, outputs);
    std::int64_t       to = RankLine::Offset(index, g.outBuffer, g.outStride);
    const std::int64_t along = g.outStride.axis[axes[2]];
    for (int i = 0; i < outputs; ++i, to += along)
    {
      StoreKey(voxels.KeyAt(base, memory.look.found[i * TileThreads + thread], g.form), g, out, to);
    }
    __syncthreads();
  }
}

/** Tiles of the outputs. */
std::int64_t
TilesOf(const RankGeometry & g)
{
  std::int64_t tiles = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const bool isWide = a == g.planeAxes[0] || a == g.planeAxes[1] || a == g.lineAxis;
    tiles *= isWide ? (g.out.Extent(a) + TileSide - 1) / TileSide : g.out.Extent(a);
  }
  return tiles;
}

/** Room for the items of one buffer, in whole cache lines. */
std::int64_t
CapacityOf(const RankGeometry & g)
{
  std::int64_t n = 1;
  const auto multiply = [&](int axis, int reach) { n *= std::min<std::int64_t>(TileSide, g.out.Extent(axis)) + reach; };
  multiply(g.planeAxes[0], g.planeRadii[0] + g.planeUppers[0]);
  multiply(g.planeAxes[1], g.planeRadii[1] + g.planeUppers[1]);
  multiply(g.lineAxis, g.lineRadius + g.lineUpper);
  return (n + 3 + 31) / 32 * 32;
}

template <typename TKey>
std::int64_t
BytesOfBlock(const RankGeometry & g)
{
  using Item = TileItem<TKey>;
  return CapacityOf(g) * Item::Buffers * static_cast<std::int64_t>(sizeof(typename Item::Type));
}

} // namespace

bool
RankTilesTake(const RankGeometry & g)
{
  const std::int64_t sides[] = { g.planeRadii[0] + g.planeUppers[0] + TileSide,
                                 g.planeRadii[1] + g.planeUppers[1] + TileSide,
                                 g.lineRadius + g.lineUpper + TileSide };
  return std::max({ sides[0], sides[1], sides[2] }) <= LargestTile && sides[0] * sides[1] * sides[2] <= MostVoxels;
}

template <typename TKey>
std::size_t
RankTilesBytes(const RankGeometry & g)
{
  const std::int64_t block = BytesOfBlock<TKey>(g);
  const std::int64_t most = std::max(FewestBlocks * block, std::min(MostBlocks * block, WantedBytes));
  return static_cast<std::size_t>(std::min(TilesOf(g) * block, most));
}

template <typename TKey>
void
LaunchRankTiles(RankGeometry g, const void * in, void * out, void * scratch, cudaStream_t stream)
{
  g.lines = TilesOf(g);
  const auto blocks = static_cast<std::int64_t>(RankTilesBytes<TKey>(g)) / BytesOfBlock<TKey>(g);
  RankTileKernel<TKey><<<static_cast<unsigned int>(blocks), TileThreads, 0, stream>>>(
    g, static_cast<const TKey *>(in), out, static_cast<typename TileItem<TKey>::Type *>(scratch), CapacityOf(g));
  CheckLaunch("RankTileKernel");
}

template std::size_t
RankTilesBytes<std::uint8_t>(const RankGeometry &);
template void
LaunchRankTiles<std::uint8_t>(RankGeometry, const void *, void *, void *, cudaStream_t);
template std::size_t
RankTilesBytes<std::uint16_t>(const RankGeometry &);
template void
LaunchRankTiles<std::uint16_t>(RankGeometry, const void *, void *, void *, cudaStream_t);
template std::size_t
RankTilesBytes<std::uint32_t>(const RankGeometry &);
template void
LaunchRankTiles<std::uint32_t>(RankGeometry, const void *, void *, void *, cudaStream_t);
template std::size_t
RankTilesBytes<std::uint64_t>(const RankGeometry &);
template void
LaunchRankTiles<std::uint64_t>(RankGeometry, const void *, void *, void *, cudaStream_t);

} // namespace chunkwise
