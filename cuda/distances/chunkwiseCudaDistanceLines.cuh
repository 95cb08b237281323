/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaDistanceLines_cuh
#define chunkwiseCudaDistanceLines_cuh

#include "chunkwiseCudaPasses.cuh"

#include <cstdint>
#include <limits>

// Squared distances along an axis, given those along the axes before it: for each voxel p of a line the lowest of f(i)
// + (p - i)^2 over the voxels i of the line. The voxels where it is the lowest ascend with p. So a warp finds the first
// and the last of them for every 32nd voxel, the anchors, by halves: each anchor looks no further than those beside it.
// The voxels between two anchors then compare what lies between the first of one and the last of the next: over a
// line that is little more than its length, whatever the image. If f(p) is small, voxels
// farther from p than its root need no look: neighbors are compared one after the other.
namespace chunkwise
{

/** The share of a number of voxels in squared distances, as on the CPU. */
template <typename T>
struct DistanceWeight
{
  double spacing;

  template <typename TCount>
  __device__ __forceinline__ T
  operator()(TCount k) const
  {
    if constexpr (std::is_same<T, double>::value)
    {
      const double length = __dmul_rn(static_cast<double>(k), spacing);
      return __dmul_rn(length, length);
    }
    else
    {
      // Beyond a line, where it has no meaning, it may overflow.
      using Unsigned = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<Unsigned>(k) * static_cast<Unsigned>(k));
    }
  }
};

template <typename T>
__device__ T
AddDistances(T a, T b)
{
  if constexpr (static_cast<T>(0.5) != T{ 0 })
  {
    return __dadd_rn(a, b);
  }
  else
  {
    return a + b;
  }
}

/** The number that stands for no feature: a sum with it must not overflow. Sums are uint32_t in the place of int32_t.
 */
template <typename TNumber>
constexpr TNumber NoNumber = std::is_floating_point<TNumber>::value     ? std::numeric_limits<TNumber>::infinity()
                             : sizeof(TNumber) == sizeof(std::uint32_t) ? static_cast<TNumber>(0x7FFFFFFF)
                                                                        : static_cast<TNumber>(std::int64_t{ 1 } << 62);

template <typename TNumber>
__device__ __forceinline__ TNumber
SumOf(TNumber value, std::int32_t apart, const DistanceWeight<TNumber> & weight)
{
  if constexpr (std::is_same<TNumber, double>::value)
  {
    return __dadd_rn(value, weight(apart));
  }
  else
  {
    return value + weight(apart);
  }
}

/** The lower one of `best` and value + more, which Hopper's instructions do at once. */
template <typename TNumber>
__device__ __forceinline__ TNumber
LowerOfSum(TNumber value, TNumber more, TNumber best)
{
  if constexpr (std::is_same<TNumber, std::uint32_t>::value)
  {
    return __viaddmin_u32(value, more, best);
  }
  else
  {
    const TNumber sum = AddDistances(value, more);
    return sum < best ? sum : best;
  }
}

constexpr int DistanceWarp = 32;

template <typename T>
__device__ __forceinline__ T
LowestOfWarp(T value)
{
  for (int step = DistanceWarp / 2; step > 0; step /= 2)
  {
    const T other = __shfl_xor_sync(0xFFFFFFFFu, value, step);
    value = other < value ? other : value;
  }
  return value;
}
__device__ __forceinline__ std::uint32_t
                           LowestOfWarp(std::uint32_t value)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(0xFFFFFFFFu, value);
#else
  return LowestOfWarp<std::uint32_t>(value);
#endif
}

template <typename T>
__device__ __forceinline__ T
HighestOfWarp(T value)
{
  for (int step = DistanceWarp / 2; step > 0; step /= 2)
  {
    const T other = __shfl_xor_sync(0xFFFFFFFFu, value, step);
    value = value < other ? other : value;
  }
  return value;
}
__device__ __forceinline__ std::uint32_t
                           HighestOfWarp(std::uint32_t value)
{
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(0xFFFFFFFFu, value);
#else
  return HighestOfWarp<std::uint32_t>(value);
#endif
}

/** Neighbors up to here are compared one after the other, if none farther away can be lower. */
constexpr std::int32_t DistanceOfNeighbors = DistanceWarp;

/** The lowest number of the voxel of each thread of a warp, which has `best` by itself; `highest` is the highest of
 * these. `VIsAtEnd`: neighbors may lie beyond the line. A voxel at its end in their place is nearer than it seems, so
 * that no number becomes too low. */
template <bool VIsAtEnd, typename TNumber>
__device__ __forceinline__ TNumber
LowestOfNeighbors(const TNumber * line, const DistanceWeight<TNumber> & weight, std::int32_t length, std::int32_t place,
                  TNumber best, TNumber highest)
{
  constexpr int together = 4;
  static_assert(DistanceOfNeighbors % together == 0, "neighbors lie within the line");
  for (std::int32_t k = 1; weight(k) < highest; k += together)
  {
#pragma unroll
    for (std::int32_t apart = k; apart < k + together; ++apart)
    {
      const std::int32_t before = VIsAtEnd ? max(place - apart, 0) : place - apart;
      const std::int32_t behind = VIsAtEnd ? min(place + apart, length - 1) : place + apart;
      best = LowerOfSum(line[before], weight(apart), best);
      best = LowerOfSum(line[behind], weight(apart), best);
    }
    highest = HighestOfWarp(best);
  }
  return best;
}

/** LowestOfNeighbors for numbers whose voxels are asked for: of equal ones that whose feature has the lowest index
 * counts. `source` is the voxel of the lowest number, at first `place`; numbers from `beyond` on do not count. False
 * if voxels farther away than neighbors can be lower. */
template <typename TNumber, typename TIndex>
__device__ __forceinline__ bool
FindNearestNeighbor(const TNumber * line, const DistanceWeight<TNumber> & weight, std::int32_t length,
                    std::int64_t stride, std::int32_t place, const TIndex * nearest, TNumber beyond, TNumber & best,
                    std::int32_t & source)
{
  constexpr int together = 4;
  const auto    findHighest = [&best, beyond] { return HighestOfWarp(min(best, beyond - 1)); };
  const auto    compare = [&](std::int32_t at, TNumber more) {
    // A voxel at the end of the line in the place of one beyond it is nearer than it seems, and was compared before.
    const TNumber sum = line[at] + more;
    const bool    isLower =
      sum < best || (sum == best && sum < beyond && place < length && nearest[at * stride] < nearest[source * stride]);
    source = isLower ? at : source;
    best = isLower ? sum : best;
  };
  TNumber highest = findHighest();
  if (highest > weight(DistanceOfNeighbors - together))
  {
    return false;
  }
  const TNumber before = line[min(max(place - DistanceOfNeighbors, 0), length - 1)];
  const TNumber behind = line[min(place + DistanceOfNeighbors, length - 1)];
  const TNumber own = place < length ? best : NoNumber<TNumber>;
  if (!__any_sync(0xFFFFFFFFu, min(own, min(before, behind)) < beyond))
  {
    return true;
  }
  for (std::int32_t k = 1; weight(k) <= highest; k += together)
  {
#pragma unroll
    for (std::int32_t apart = k; apart < k + together; ++apart)
    {
      compare(min(max(place - apart, 0), length - 1), weight(apart));
      compare(min(place + apart, length - 1), weight(apart));
    }
    highest = findHighest();
  }
  return true;
}

/** The lines of an image that a launch computes, and how a block keeps some of them in shared memory. */
struct DistanceLines
{
  std::int64_t groups;  ///< of lines side by side: slices, or 1
  std::int64_t lines;   ///< of a group
  std::int64_t ofGroup; ///< the distance of two groups in voxels
  std::int64_t ofLine;  ///< of two lines
  std::int64_t stride;  ///< of two voxels of a line
  std::int32_t length;
  std::int32_t pitch;    ///< numbers from a line to the next one in shared memory; a multiple of 4
  std::int32_t together; ///< lines of a block: a power of two
  std::int32_t logTogether;
  std::int32_t anchors;

  /** Anchors are at every 32nd voxel, and at the last one. */
  __host__ __device__ std::int32_t
                      Anchor(std::int32_t j) const
  {
    return j + 1 < anchors ? j * DistanceWarp : length - 1;
  }
  std::size_t
  SharedBytes(std::size_t size, int warps, bool hasNearest) const
  {
    const auto numbers = static_cast<std::size_t>(together) * static_cast<std::size_t>(pitch);
    const bool keepsResults = stride != 1;
    return numbers * (size * (keepsResults ? 2 : 1) + (keepsResults && hasNearest ? 4 : 0)) +
           static_cast<std::size_t>(warps) * static_cast<std::size_t>(anchors) * 8;
  }
};

/** Finds the first and the last voxel from `lo` to `hi` that are lowest at voxel `a`, within what rounding may hide. */
template <typename TNumber>
__device__ void
FindLowest(const TNumber * line, const DistanceWeight<TNumber> & weight, std::int32_t length, std::int32_t a,
           std::int32_t lo, std::int32_t hi, std::int32_t & first, std::int32_t & last)
{
  const auto lane = static_cast<std::int32_t>(threadIdx.x % DistanceWarp);
  TNumber    best = NoNumber<TNumber>;
  first = length;
  last = -1;
  for (std::int32_t i = lo + lane; i <= hi; i += DistanceWarp)
  {
    const TNumber sum = SumOf(line[i], a - i, weight);
    first = sum < best ? i : first;
    last = sum <= best ? i : last;
    best = sum < best ? sum : best;
  }
  const TNumber lowest = LowestOfWarp(best);
  if constexpr (std::is_same<TNumber, double>::value)
  {
    // Sums are rounded. A voxel that is higher here by more than this is no lower further on.
    const TNumber most = lowest + 0x1p-47 * (lowest + weight(length));
    first = length;
    last = -1;
    for (std::int32_t i = lo + lane; i <= hi; i += DistanceWarp)
    {
      if (SumOf(line[i], a - i, weight) <= most)
      {
        first = first < i ? first : i;
        last = i;
      }
    }
  }
  else if (best != lowest)
  {
    first = length;
    last = -1;
  }
  first = static_cast<std::int32_t>(LowestOfWarp(static_cast<std::uint32_t>(first)));
  last = length - static_cast<std::int32_t>(LowestOfWarp(static_cast<std::uint32_t>(length - last)));
  if (lowest >= NoNumber<TNumber>)
  {
    first = lo;
    last = lo;
  }
}

/** The voxels that may be lowest at each anchor: ranges[2 j] to ranges[2 j + 1]. */
template <typename TNumber>
__device__ void
FindRanges(const TNumber * line, const DistanceWeight<TNumber> & weight, const DistanceLines & lines,
           std::int32_t * ranges)
{
  const std::int32_t end = lines.anchors - 1;
  const auto         find = [&](std::int32_t j, std::int32_t lo, std::int32_t hi) {
    std::int32_t first = 0;
    std::int32_t last = 0;
    FindLowest(line, weight, lines.length, lines.Anchor(j), lo, hi, first, last);
    if (threadIdx.x % DistanceWarp == 0)
    {
      ranges[2 * j] = first;
      ranges[2 * j + 1] = last;
    }
    __syncwarp();
  };
  find(0, 0, lines.length - 1);
  if (end == 0)
  {
    return;
  }
  find(end, ranges[0], lines.length - 1);
  std::int32_t step = 1;
  while (2 * step < end)
  {
    step *= 2;
  }
  for (; step > 0; step /= 2)
  {
    for (std::int32_t j = step; j < end; j += 2 * step)
    {
      find(j, ranges[2 * (j - step)], ranges[2 * (j + step < end ? j + step : end) + 1]);
    }
  }
}

/** Calls f(line, place) for all voxels of a tile of `count` lines; threads go along what lies side by side in memory.
 */
template <typename TBody>
__device__ __forceinline__ void
ForEachInTile(const DistanceLines & lines, std::int32_t count, TBody && f)
{
  if (lines.stride != 1)
  {
    const auto         line = static_cast<std::int32_t>(threadIdx.x) & (lines.together - 1);
    const std::int32_t step = static_cast<std::int32_t>(blockDim.x) >> lines.logTogether;
    for (std::int32_t at = static_cast<std::int32_t>(threadIdx.x) >> lines.logTogether;
         line < count && at < lines.length;
         at += step)
    {
      f(line, at);
    }
    return;
  }
  for (std::int32_t line = static_cast<std::int32_t>(threadIdx.x / DistanceWarp); line < count;
       line += static_cast<std::int32_t>(blockDim.x / DistanceWarp))
  {
    for (std::int32_t at = static_cast<std::int32_t>(threadIdx.x % DistanceWarp); at < lines.length; at += DistanceWarp)
    {
      f(line, at);
    }
  }
}

template <typename TNumber>
struct alignas(16) DistanceVector
{
  static constexpr int Width = 16 / sizeof(TNumber);
  TNumber              at[Width];
};

/** The least sum at a place of a line over the numbers from `begin` to `end`, and the number that it is of: of equal
 * ones that whose feature has the lowest index. */
template <bool VHasNearest, typename TNumber, typename TIndex>
__device__ __forceinline__ void
FindLeastSum(const TNumber * numbers, std::int32_t begin, std::int32_t end, std::int32_t place,
             const DistanceWeight<TNumber> & weight, const DistanceLines & lines, const TIndex * nearest,
             TNumber & best, std::int32_t & source)
{
  using Vector = DistanceVector<TNumber>;
  constexpr int Width = Vector::Width;
  for (std::int32_t i = begin / Width * Width; i <= end; i += Width)
  {
    const Vector vector = *reinterpret_cast<const Vector *>(numbers + i);
#pragma unroll
    for (int k = 0; k < Width; ++k)
    {
      const TNumber sum = SumOf(vector.at[k], place - i - k, weight);
      if constexpr (VHasNearest)
      {
        const bool isLower =
          sum < best || (sum == best && source >= 0 && sum < NoNumber<TNumber> && place < lines.length &&
                         nearest[(i + k) * lines.stride] < nearest[source * lines.stride]);
        source = isLower ? i + k : source;
        best = isLower ? sum : best;
      }
      else
      {
        best = sum < best ? sum : best;
      }
    }
  }
}

/** The lowest number at the voxel of each thread of a warp, of the 32 voxels of a line from 32 `block` on, and the
 * voxel that it is of. `ranges` are found for the line when they are needed first. */
template <bool VHasNearest, typename TNumber, typename TIndex>
__device__ __forceinline__ void
FindLowestOfBlock(const DistanceLines & lines, const DistanceWeight<TNumber> & weight, const TNumber * line,
                  const TIndex * nearest, std::int32_t * ranges, bool & hasRanges, std::int32_t block, TNumber beyond,
                  TNumber & best, std::int32_t & source)
{
  const std::int32_t begin = block * DistanceWarp;
  const auto         place = begin + static_cast<std::int32_t>(threadIdx.x % DistanceWarp);
  const TNumber      own = place < lines.length ? line[place] : TNumber{ 0 };
  if (__all_sync(0xFFFFFFFFu, own == TNumber{ 0 }))
  {
    // All are features, or among them.
    best = own;
    source = place;
    return;
  }
  if constexpr (!VHasNearest)
  {
    const TNumber highest = HighestOfWarp(own);
    if (highest <= weight(DistanceOfNeighbors))
    {
      const bool isAtEnd = begin < DistanceOfNeighbors || begin + DistanceWarp + DistanceOfNeighbors > lines.length;
      best = isAtEnd ? LowestOfNeighbors<true>(line, weight, lines.length, place, own, highest)
                     : LowestOfNeighbors<false>(line, weight, lines.length, place, own, highest);
      return;
    }
  }
  if constexpr (VHasNearest && std::is_same<TNumber, std::uint32_t>::value)
  {
    best = own;
    source = place < lines.length ? place : lines.length - 1;
    if (FindNearestNeighbor(line, weight, lines.length, lines.stride, place, nearest, beyond, best, source))
    {
      return;
    }
    best = NoNumber<TNumber>;
    source = -1;
  }
  if (!hasRanges)
  {
    hasRanges = true;
    FindRanges(line, weight, lines, ranges);
  }
  const std::int32_t end = ranges[2 * (block + 1 < lines.anchors ? block + 1 : block) + 1];
  FindLeastSum<VHasNearest>(line, ranges[2 * block], end, place, weight, lines, nearest, best, source);
}

/** Voxels that the threads of a warp compute together, four side by side each. */
constexpr std::int32_t DistanceGroup = 4 * DistanceWarp;

/** The lowest numbers at the voxels of a group from `begin` on, if none farther away than neighbors can be lower, and
 * the line goes on as far on both sides; else false. Four voxels load what each of them compares once. */
__device__ __forceinline__ bool
FindLowestOfGroup(const DistanceWeight<std::uint32_t> & weight, const std::uint32_t * line, std::int32_t length,
                  std::int32_t begin, DistanceVector<std::uint32_t> & best)
{
  using Vector = DistanceVector<std::uint32_t>;
  static_assert(Vector::Width == 4 && DistanceOfNeighbors % 4 == 0, "a group lies within the line");
  if (begin < DistanceOfNeighbors || begin + DistanceGroup + DistanceOfNeighbors > length)
  {
    return false;
  }
  const std::int32_t place = begin + 4 * static_cast<std::int32_t>(threadIdx.x % DistanceWarp);
  const auto         load = [line](std::int32_t at) { return *reinterpret_cast<const Vector *>(line + at); };
  const auto         findHighest = [&best] {
    return HighestOfWarp(max(max(best.at[0], best.at[1]), max(best.at[2], best.at[3])));
  };
  best = load(place);
  std::uint32_t highest = findHighest();
  if (highest > weight(DistanceOfNeighbors))
  {
    return false;
  }
  // The farthest four of the voxels that are up to k away before and behind.
  Vector before = best;
  Vector behind = best;
  for (std::int32_t k = 0; weight(k + 1) < highest; k += 4)
  {
    const Vector nextBefore = load(place - k - 4);
    const Vector nextBehind = load(place + k + 4);
#pragma unroll
    for (int apart = 1; apart <= 4; ++apart)
    {
      const std::uint32_t more = weight(k + apart);
#pragma unroll
      for (int i = 0; i < 4; ++i)
      {
        const Vector & from = i >= apart ? before : nextBefore;
        const Vector & to = i + apart < 4 ? behind : nextBehind;
        best.at[i] = LowerOfSum(from.at[(i - apart) & 3], more, best.at[i]);
        best.at[i] = LowerOfSum(to.at[(i + apart) & 3], more, best.at[i]);
      }
    }
    before = nextBefore;
    behind = nextBehind;
    highest = findHighest();
  }
  return true;
}

/** Fills the numbers of a tile. */
template <typename T, typename TNumber>
__device__ __forceinline__ void
LoadDistances(const DistanceLines & lines, std::int64_t base, std::int32_t count, T beyond, const T * __restrict__ in,
              TNumber * numbers)
{
  constexpr int Width = DistanceVector<TNumber>::Width;
  ForEachInTile(lines, count, [&](std::int32_t line, std::int32_t at) {
    const T value = in[base + line * lines.ofLine + at * lines.stride];
    numbers[line * lines.pitch + at] = value < beyond ? static_cast<TNumber>(value) : NoNumber<TNumber>;
  });
  for (auto i = static_cast<std::int32_t>(threadIdx.x); i < count * Width; i += static_cast<std::int32_t>(blockDim.x))
  {
    // Vectors end here.
    numbers[i / Width * lines.pitch + lines.length + i % Width] = NoNumber<TNumber>;
  }
}

/** Stores the results of a voxel of lines that do not lie side by side. */
template <bool VHasNearest, typename T, typename TNumber, typename TIndex>
__device__ __forceinline__ void
StoreStrided(const DistanceLines & lines, std::int64_t ofLine, std::int32_t at, TNumber best, std::int32_t source,
             T beyond, T * out, const TIndex * nearestIn, TIndex * nearestOut)
{
  out[ofLine + at * lines.stride] = best < static_cast<TNumber>(beyond) ? static_cast<T>(best) : beyond;
  if constexpr (VHasNearest)
  {
    // Nobody reads that of a voxel without a feature near.
    if (source >= 0)
    {
      nearestOut[ofLine + at * lines.stride] = nearestIn[ofLine + source * lines.stride];
    }
  }
}

/** The place of roots that the last lines of an image store instead of their numbers, which a float holds all; nullptr:
 * there is none. */
struct DistanceRoots
{
  float * to{ nullptr };
  float   none{ 0 }; ///< of voxels without a feature near
};
/** The same for labels, which lie at the indices of features and go to the places of numbers; of 1, 2, 4 or 8 bytes. */
struct DistanceLabels
{
  const void *  from{ nullptr };
  void *        to{ nullptr };
  int           bytes{ 0 };
  std::uint64_t none{ 0 };

  template <typename TIndex>
  __device__ __forceinline__ void
  Store(std::int64_t at, bool isNear, TIndex nearest) const
  {
    switch (bytes)
    {
      case 1:
        return this->StoreAs<std::uint8_t>(at, isNear, nearest);
      case 2:
        return this->StoreAs<std::uint16_t>(at, isNear, nearest);
      case 4:
        return this->StoreAs<std::uint32_t>(at, isNear, nearest);
      default:
        return this->StoreAs<std::uint64_t>(at, isNear, nearest);
    }
  }

private:
  template <typename TBits, typename TIndex>
  __device__ __forceinline__ void
  StoreAs(std::int64_t at, bool isNear, TIndex nearest) const
  {
    static_cast<TBits *>(to)[at] = isNear ? static_cast<const TBits *>(from)[nearest] : static_cast<TBits>(none);
  }
};

/** Whether groups of a line can be stored, to vectors in shared memory or where the line begins. */
__device__ __forceinline__ bool
StoresVectors(bool isStrided, const void * out, const void * roots)
{
  return isStrided || reinterpret_cast<std::uintptr_t>(roots ? roots : out) % 16 == 0;
}
/** Stores the numbers of a thread's voxels of a group: to `results` if lines are strided, else as roots, of which the
 * voxels have the numbers from `first` on, or to `out`. */
__device__ __forceinline__ void
StoreGroup(bool isStrided, const DistanceVector<std::uint32_t> & group, std::int32_t beyond, std::uint32_t * results,
           std::int32_t * out, const DistanceRoots & roots, std::int64_t first)
{
  if (isStrided)
  {
    *reinterpret_cast<DistanceVector<std::uint32_t> *>(results) = group;
    return;
  }
  DistanceVector<float>        stored;
  DistanceVector<std::int32_t> squares;
#pragma unroll
  for (int i = 0; i < 4; ++i)
  {
    const bool isNear = group.at[i] < static_cast<std::uint32_t>(beyond);
    stored.at[i] = isNear ? __fsqrt_rn(static_cast<float>(group.at[i])) : roots.none;
    squares.at[i] = isNear ? static_cast<std::int32_t>(group.at[i]) : beyond;
  }
  if (roots.to)
  {
    *reinterpret_cast<DistanceVector<float> *>(roots.to + first) = stored;
  }
  else
  {
    *reinterpret_cast<DistanceVector<std::int32_t> *>(out) = squares;
  }
}

/** Stores the results of `count` lines whose voxels do not lie side by side; the first one begins at `base`. */
template <bool VHasNearest, typename T, typename TNumber, typename TIndex>
__device__ __forceinline__ void
StoreTile(const DistanceLines & lines, std::int64_t base, std::int32_t count, const TNumber * results,
          const std::int32_t * sources, T beyond, T * __restrict__ out, const TIndex * __restrict__ nearestIn,
          TIndex * __restrict__ nearestOut)
{
  ForEachInTile(lines, count, [&](std::int32_t line, std::int32_t at) {
    const std::int32_t number = line * lines.pitch + at;
    StoreStrided<VHasNearest>(lines,
                              base + line * lines.ofLine,
                              at,
                              results[number],
                              VHasNearest ? sources[number] : 0,
                              beyond,
                              out,
                              nearestIn,
                              nearestOut);
  });
}

/** Stores the results of a voxel of lines that lie side by side. `source`: the voxel that its number is of. */
template <bool VHasNearest, typename T, typename TNumber, typename TIndex>
__device__ __forceinline__ void
StoreVoxel(std::int64_t at, std::int64_t source, TNumber best, bool isNear, T beyond, T * __restrict__ out,
           const TIndex * __restrict__ nearestIn, TIndex * __restrict__ nearestOut, const DistanceRoots & roots,
           const DistanceLabels & labels)
{
  if constexpr (VHasNearest)
  {
    if (labels.to)
    {
      labels.Store(at, isNear, isNear ? nearestIn[source] : TIndex{ 0 });
      return;
    }
    if (isNear)
    {
      nearestOut[at] = nearestIn[source];
    }
  }
  else if constexpr (std::is_same<T, std::int32_t>::value)
  {
    if (roots.to)
    {
      roots.to[at] = isNear ? __fsqrt_rn(static_cast<float>(best)) : roots.none;
      return;
    }
  }
  out[at] = isNear ? static_cast<T>(best) : beyond;
}

/** A warp computes a line at a time. `nearestIn` and `nearestOut` are the indices of the nearest features, or nullptr:
 * of those with the same distance the lowest index counts. */
template <typename T, typename TNumber, bool VHasNearest, typename TIndex>
__global__ void
DistanceLinesKernel(DistanceLines lines, DistanceWeight<TNumber> weight, T beyond, const T * __restrict__ in,
                    const TIndex * __restrict__ nearestIn, T * __restrict__ out, TIndex * __restrict__ nearestOut,
                    DistanceRoots roots, DistanceLabels labels)
{
  extern __shared__ __align__(16) unsigned char shared[];
  auto * const                                  numbers = reinterpret_cast<TNumber *>(shared);
  const std::int32_t                            kept = lines.together * lines.pitch;
  const bool                                    isStrided = lines.stride != 1;
  auto * const                                  results = isStrided ? numbers + kept : numbers;
  auto * const                                  sources = reinterpret_cast<std::int32_t *>(results + kept);
  const auto                                    warp = static_cast<std::int32_t>(threadIdx.x / DistanceWarp);
  const auto                                    lane = static_cast<std::int32_t>(threadIdx.x % DistanceWarp);
  const auto                                    warps = static_cast<std::int32_t>(blockDim.x / DistanceWarp);
  std::int32_t * const                          ranges =
    sources + (isStrided && VHasNearest ? kept : 0) + static_cast<std::int64_t>(warp) * 2 * lines.anchors;
  const std::int64_t tilesOfGroup = (lines.lines + lines.together - 1) / lines.together;
  for (std::int64_t tile = blockIdx.x; tile < tilesOfGroup * lines.groups; tile += gridDim.x)
  {
    const std::int64_t group = tile / tilesOfGroup;
    const std::int64_t firstLine = (tile - group * tilesOfGroup) * lines.together;
    const std::int64_t base = group * lines.ofGroup + firstLine * lines.ofLine;
    const auto         count =
      static_cast<std::int32_t>(lines.lines - firstLine < lines.together ? lines.lines - firstLine : lines.together);
    LoadDistances(lines, base, count, beyond, in, numbers);
    __syncthreads();
    for (std::int32_t line = warp; line < count; line += warps)
    {
      const TNumber * const numbersOfLine = numbers + line * lines.pitch;
      const std::int64_t    ofLine = base + line * lines.ofLine;
      bool                  hasRanges = false;
      for (std::int32_t j = 0; j * DistanceWarp < lines.length; ++j)
      {
        if constexpr (std::is_same<TNumber, std::uint32_t>::value && !VHasNearest)
        {
          DistanceVector<std::uint32_t> four;
          if (StoresVectors(isStrided, out + ofLine, roots.to ? roots.to + ofLine : nullptr) &&
              FindLowestOfGroup(weight, numbersOfLine, lines.length, j * DistanceWarp, four))
          {
            const std::int32_t first = j * DistanceWarp + 4 * lane;
            StoreGroup(isStrided,
                       four,
                       beyond,
                       results + line * lines.pitch + first,
                       out + ofLine + first,
                       roots,
                       ofLine + first);
            j += DistanceGroup / DistanceWarp - 1;
            continue;
          }
        }
        const std::int32_t place = j * DistanceWarp + lane;
        TNumber            best = NoNumber<TNumber>;
        std::int32_t       source = -1;
        const TIndex *     nearest = VHasNearest ? nearestIn + ofLine : nullptr;
        FindLowestOfBlock<VHasNearest>(
          lines, weight, numbersOfLine, nearest, ranges, hasRanges, j, static_cast<TNumber>(beyond), best, source);
        if (place >= lines.length)
        {
          continue;
        }
        const bool isNear = best < static_cast<TNumber>(beyond);
        if (isStrided)
        {
          results[line * lines.pitch + place] = best;
          if constexpr (VHasNearest)
          {
            sources[line * lines.pitch + place] = isNear ? source : -1;
          }
          continue;
        }
        StoreVoxel<VHasNearest>(
          ofLine + place, ofLine + source, best, isNear, beyond, out, nearestIn, nearestOut, roots, labels);
      }
      __syncwarp();
    }
    __syncthreads();
    if (isStrided)
    {
      StoreTile<VHasNearest>(lines, base, count, results, sources, beyond, out, nearestIn, nearestOut);
    }
  }
}

/** Launches the kernel; false if not even one line fits the memory of a block. `roots`: of lines whose voxels lie side
 * by side, without indices; `labels`: with indices. */
template <typename T, typename TIndex>
bool
LaunchDistanceLines(cudaStream_t stream, DistanceLines lines, double spacing, T beyond, const T * in,
                    const TIndex * nearestIn, T * out, TIndex * nearestOut, const DistanceRoots & roots,
                    const DistanceLabels & labels)
{
  constexpr int threads = 256;
  // The distance of lines in shared memory spreads them over its banks.
  std::int64_t pitch = (lines.length + 3) / 4 * 4 + 4;
  const auto   size = static_cast<std::int64_t>(sizeof(T));
  while (pitch * size / 4 % 32 != 4)
  {
    pitch += 16 / size;
  }
  const std::int64_t room = SharedMemoryOfDevice() - 2048;
  if (lines.length > (1 << 24) || pitch * size * 3 > room)
  {
    return false;
  }
  lines.pitch = static_cast<std::int32_t>(pitch);
  lines.anchors = lines.length == 1 ? 1 : (lines.length - 2) / DistanceWarp + 2;
  const auto bytes = [&] { return lines.SharedBytes(sizeof(T), threads / DistanceWarp, nearestIn != nullptr); };
  // Two blocks or more share a multiprocessor where lines are no longer than that.
  const auto limit = static_cast<std::size_t>(std::min<std::int64_t>(room, 72 * 1024));
  lines.together = 16;
  while (lines.together > 4 && bytes() > limit)
  {
    lines.together /= 2;
  }
  while (lines.together > 1 && bytes() > static_cast<std::size_t>(room))
  {
    lines.together /= 2;
  }
  if (bytes() > static_cast<std::size_t>(room))
  {
    return false;
  }
  for (lines.logTogether = 0; 1 << lines.logTogether < lines.together;)
  {
    ++lines.logTogether;
  }
  const auto launch = [&](auto * kernel, auto weight) {
    CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes())),
              "cudaFuncSetAttribute");
    const std::int64_t tiles = (lines.lines + lines.together - 1) / lines.together * lines.groups;
    kernel<<<BlocksFor(tiles, 1), threads, bytes(), stream>>>(
      lines, weight, beyond, in, nearestIn, out, nearestOut, roots, labels);
    CheckLaunch("DistanceLinesKernel");
  };
  using Number = std::conditional_t<std::is_same<T, std::int32_t>::value, std::uint32_t, T>;
  const DistanceWeight<Number> weight{ spacing };
  nearestIn ? launch(DistanceLinesKernel<T, Number, true, TIndex>, weight)
            : launch(DistanceLinesKernel<T, Number, false, TIndex>, weight);
  return true;
}

} // namespace chunkwise

#endif
