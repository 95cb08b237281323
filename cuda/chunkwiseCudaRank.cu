/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseRankOperation.h"

#include <cmath>
#include <cstdint>
#include <cub/block/block_radix_sort.cuh>

// A thread moves along a line of outputs. Of each plane across the line it sorts the part that is in its windows and
// keeps the sorted lists of one window, as many as that has planes; a result is found by taking from the lists what is
// surely below it. Larger windows slide a histogram over a tile whose voxels have been sorted; still larger ones are
// searched bit by bit.
namespace chunkwise
{

namespace
{

/** How voxels become keys: see RankKey, of which this is the part that is known when a kernel runs. */
enum class KeyForm : int
{
  Unsigned,
  Signed,
  Real
};

/** The geometry of a call: windows lie on a plane of two axes and along a third one, that of the lines. */
struct RankGeometry
{
  Box          in;
  Coordinates  inStride;
  Box          out; ///< what is computed
  Box          outBuffer;
  Coordinates  outStride;
  int          planeAxes[2];
  int          lineAxis;
  int          planeRadii[2];
  int          lineRadius;
  std::int64_t lines;
  std::int64_t segment; ///< outputs of a thread
  double       fraction;
  KeyForm      form;
  PixelKind    inputKind;
  PixelKind    outputKind;
};

template <typename TKey>
constexpr TKey SignBit = static_cast<TKey>(TKey{ 1 } << (8 * sizeof(TKey) - 1));

/** The key of plus infinity; that of minus infinity has the opposite bits. NaN are beyond them. */
template <typename TKey>
constexpr TKey Infinity = static_cast<TKey>(~TKey{ 0 });
template <>
constexpr std::uint32_t Infinity<std::uint32_t> = 0xFF800000u;
template <>
constexpr std::uint64_t Infinity<std::uint64_t> = 0xFFF0000000000000u;

/** The key, but for NaN. */
template <typename TKey>
__device__ __forceinline__ TKey
ToOrdered(TKey raw, KeyForm form)
{
  if (form == KeyForm::Real)
  {
    using Signed = std::make_signed_t<TKey>;
    return raw ^
           static_cast<TKey>(static_cast<TKey>(static_cast<Signed>(raw) >> (8 * sizeof(TKey) - 1)) | SignBit<TKey>);
  }
  return form == KeyForm::Signed ? static_cast<TKey>(raw ^ SignBit<TKey>) : raw;
}

template <typename TKey>
__device__ __forceinline__ bool
IsNaN(TKey ordered)
{
  if constexpr (sizeof(TKey) >= 4)
  {
    return ordered > Infinity<TKey> || ordered < static_cast<TKey>(~Infinity<TKey>);
  }
  else
  {
    return false;
  }
}

template <typename TKey>
__device__ __forceinline__ TKey
ToKey(TKey raw, KeyForm form)
{
  const TKey ordered = ToOrdered(raw, form);
  return form == KeyForm::Real && IsNaN(ordered) ? TKey{ 0 } : ordered;
}

/** Stores the voxel of a key, once per voxel: the kinds are the same for all threads. */
template <typename TPixel, typename TKey>
__device__ __forceinline__ void
StoreAs(TKey key, PixelKind outputKind, void * out, std::int64_t offset)
{
  if constexpr (sizeof(TPixel) == sizeof(TKey))
  {
    const TPixel pixel = RankKey<TPixel>::To(key);
    switch (outputKind)
    {
      case PixelKind::Float32:
        static_cast<float *>(out)[offset] = static_cast<float>(pixel);
        return;
      case PixelKind::Float64:
        static_cast<double *>(out)[offset] = static_cast<double>(pixel);
        return;
      default:
        static_cast<TPixel *>(out)[offset] = pixel;
    }
  }
}

template <typename TKey>
__device__ __forceinline__ void
StoreKey(TKey key, const RankGeometry & g, void * out, std::int64_t offset)
{
  if (g.inputKind == g.outputKind)
  {
    TKey raw = g.form == KeyForm::Unsigned ? key : static_cast<TKey>(key ^ SignBit<TKey>);
    if (g.form == KeyForm::Real)
    {
      // 0 becomes a NaN: all bits are set.
      raw = (key & SignBit<TKey>) != 0 ? raw : static_cast<TKey>(~key);
    }
    static_cast<TKey *>(out)[offset] = raw;
    return;
  }
  switch (g.inputKind)
  {
    case PixelKind::UInt8:
      return StoreAs<std::uint8_t>(key, g.outputKind, out, offset);
    case PixelKind::Int8:
      return StoreAs<std::int8_t>(key, g.outputKind, out, offset);
    case PixelKind::UInt16:
      return StoreAs<std::uint16_t>(key, g.outputKind, out, offset);
    case PixelKind::Int16:
      return StoreAs<std::int16_t>(key, g.outputKind, out, offset);
    case PixelKind::UInt32:
      return StoreAs<std::uint32_t>(key, g.outputKind, out, offset);
    case PixelKind::Int32:
      return StoreAs<std::int32_t>(key, g.outputKind, out, offset);
    case PixelKind::UInt64:
      return StoreAs<std::uint64_t>(key, g.outputKind, out, offset);
    case PixelKind::Int64:
      return StoreAs<std::int64_t>(key, g.outputKind, out, offset);
    case PixelKind::Float32:
      return StoreAs<float>(key, g.outputKind, out, offset);
    default:
      return StoreAs<double>(key, g.outputKind, out, offset);
  }
}

/** The pairs of a sorting network: merge exchange, Knuth's Algorithm 5.2.2M, for any number of values. */
template <int N>
struct Network
{
  int a[N * N]{};
  int b[N * N]{};
  int count{ 0 };

  constexpr Network()
  {
    int top = 1;
    while (2 * top < N)
    {
      top *= 2;
    }
    for (int p = top; p > 0; p /= 2)
    {
      int q = top;
      int r = 0;
      int d = p;
      while (true)
      {
        for (int i = 0; i < N - d; ++i)
        {
          if ((i & p) == r)
          {
            a[count] = i;
            b[count++] = i + d;
          }
        }
        if (q == p)
        {
          break;
        }
        d = q - p;
        q /= 2;
        r = p;
      }
    }
  }
};

template <int N, int VBegin, int VEnd, typename TKey>
__device__ __forceinline__ void
Exchange(TKey (&keys)[N])
{
  constexpr Network<N> network;
  if constexpr (VEnd - VBegin == 1)
  {
    constexpr int a = network.a[VBegin];
    constexpr int b = network.b[VBegin];
    const TKey    low = keys[a] < keys[b] ? keys[a] : keys[b];
    keys[b] = keys[a] < keys[b] ? keys[b] : keys[a];
    keys[a] = low;
  }
  else if constexpr (VEnd > VBegin)
  {
    constexpr int middle = (VBegin + VEnd) / 2;
    Exchange<N, VBegin, middle>(keys);
    Exchange<N, middle, VEnd>(keys);
  }
}

template <int N, typename TKey>
__device__ __forceinline__ void
Sort(TKey (&keys)[N])
{
  if constexpr (N > 1)
  {
    constexpr int count = Network<N>().count;
    Exchange<N, 0, count>(keys);
  }
}

/** Registers have 32 bits: smaller keys are sorted as such. */
template <typename TKey>
using SortedKey = std::conditional_t<(sizeof(TKey) < 4), std::uint32_t, TKey>;

/** Where a thread is: its line, and which outputs of it are its own. */
struct RankLine
{
  Coordinates  index;
  std::int64_t begin;
  std::int64_t end;

  __device__
  RankLine(const RankGeometry & g, std::int64_t number)
  {
    const std::int64_t segments = (g.out.Extent(g.lineAxis) + g.segment - 1) / g.segment;
    std::int64_t       rest = number;
    index = g.out.lower;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t extent = a == g.lineAxis ? segments : g.out.Extent(a);
      const std::int64_t quotient = rest / extent;
      index.axis[a] += (rest - quotient * extent) * (a == g.lineAxis ? g.segment : 1);
      rest = quotient;
    }
    begin = index.axis[g.lineAxis];
    end = begin + g.segment < g.out.upper.axis[g.lineAxis] ? begin + g.segment : g.out.upper.axis[g.lineAxis];
  }
  __device__ static std::int64_t
  Offset(const Coordinates & index, const Box & box, const Coordinates & stride)
  {
    std::int64_t offset = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      offset += (index.axis[a] - box.lower.axis[a]) * stride.axis[a];
    }
    return offset;
  }
};

/** Positions of [i - radius, i + radius] that a box has along an axis. */
__device__ inline int
TapsIn(const Box & box, int axis, std::int64_t i, int radius)
{
  const std::int64_t first = i - radius > box.lower.axis[axis] ? i - radius : box.lower.axis[axis];
  const std::int64_t last = i + radius < box.upper.axis[axis] ? i + radius : box.upper.axis[axis] - 1;
  return static_cast<int>(last - first + 1);
}

/** Sorts the keys of a plane of which there are all taps; NaN become 0. Returns how many these are. */
template <int N, typename TKey, typename TSorted>
__device__ __forceinline__ int
SortPlane(TSorted (&keys)[N], KeyForm form)
{
  int  absent = 0;
  bool again = false;
  do
  {
    Sort(keys);
    again = form == KeyForm::Real && absent == 0 &&
            (IsNaN(static_cast<TKey>(keys[0])) || IsNaN(static_cast<TKey>(keys[N - 1])));
    if (again)
    {
#pragma unroll
      for (int t = 0; t < N; ++t)
      {
        const bool isNaN = IsNaN(static_cast<TKey>(keys[t]));
        keys[t] = isNaN ? 0 : keys[t];
        absent += isNaN ? 1 : 0;
      }
    }
  } while (again);
  return absent;
}

/** Calls tap(t, pointer) for the taps of a plane. Pointers move from tap to tap: their distances, all at once, would
 * take the registers that sorting needs. */
template <int VRadius, typename TKey, typename TTap>
__device__ __forceinline__ void
ForEachTap(const TKey * __restrict__ center, const std::int64_t (&across)[2], TTap && tap)
{
  constexpr int Side = 2 * VRadius + 1;
  const TKey *  row = center - VRadius * across[1] - VRadius * across[0];
#pragma unroll
  for (int dq = 0; dq < Side; ++dq)
  {
    const TKey * at = row;
#pragma unroll
    for (int dp = 0; dp < Side; ++dp)
    {
      tap(dq * Side + dp, at);
      at += across[0];
    }
    row += across[1];
  }
}

/** Loads a plane of which there are all taps, as ordered bits. */
template <int VRadius, typename TKey, typename TSorted>
__device__ __forceinline__ void
LoadPlane(TSorted (&keys)[(2 * VRadius + 1) * (2 * VRadius + 1)], const TKey * __restrict__ center,
          const std::int64_t (&across)[2], KeyForm form)
{
  const auto load = [&keys](int t, const TKey * at) { keys[t] = *at; };
  if (across[0] == 1)
  {
    const std::int64_t dense[2] = { 1, across[1] };
    ForEachTap<VRadius>(center, dense, load);
  }
  else
  {
    ForEachTap<VRadius>(center, across, load);
  }
#pragma unroll
  for (int t = 0; t < (2 * VRadius + 1) * (2 * VRadius + 1); ++t)
  {
    keys[t] = ToOrdered(static_cast<TKey>(keys[t]), form);
  }
}

template <typename T>
__device__ __forceinline__ T
Least(T a, T b)
{
  return a < b ? a : b;
}
template <typename T>
__device__ __forceinline__ T
Greatest(T a, T b)
{
  return a < b ? b : a;
}

/** The median of three sorted lists of nine. Put side by side and their rows sorted, 7 keys are surely below and 7
 * above; the 13 others form three sorted chains. */
template <typename T>
__device__ __forceinline__ T
MedianOf27(const T (&a)[9], const T (&b)[9], const T (&c)[9])
{
  // The least of rows 5 to 8 and the greatest of rows 0 to 3, each in ascending order; merged they are 8.
  T ends[8];
#pragma unroll
  for (int i = 0; i < 4; ++i)
  {
    ends[i] = Least(Least(a[i + 5], b[i + 5]), c[i + 5]);
    ends[i + 4] = Greatest(Greatest(a[i], b[i]), c[i]);
  }
  T middle[5];
#pragma unroll
  for (int i = 0; i < 5; ++i)
  {
    const T low = Least(a[i + 2], b[i + 2]);
    const T high = Greatest(a[i + 2], b[i + 2]);
    middle[i] = Greatest(low, Least(high, c[i + 2]));
  }
  const auto exchange = [&ends](int i, int j) {
    const T low = Least(ends[i], ends[j]);
    ends[j] = Greatest(ends[i], ends[j]);
    ends[i] = low;
  };
#pragma unroll
  for (int i = 0; i < 4; ++i)
  {
    exchange(i, i + 4);
  }
  exchange(2, 4);
  exchange(3, 5);
  exchange(1, 2);
  exchange(3, 4);
  exchange(5, 6);
  // The seventh of 8 and 5: some of the one and the rest of the other.
  T result = ends[6];
#pragma unroll
  for (int i = 0; i < 5; ++i)
  {
    result = Least(result, Greatest(ends[5 - i], middle[i]));
  }
  return result;
}

/** The key with number `rank` of three lists. */
template <typename TKey, typename T>
__device__ T
SelectByBits(const T (&lists)[3][9], int rank)
{
  T found = 0;
#pragma unroll 1
  for (int bit = 8 * sizeof(TKey) - 1; bit >= 0; --bit)
  {
    const T limit = found | (T{ 1 } << bit);
    int     below = 0;
#pragma unroll
    for (int t = 0; t < 27; ++t)
    {
      below += lists[t / 9][t % 9] < limit ? 1 : 0;
    }
    found = below <= rank ? limit : found;
  }
  return found;
}

/** The median of 3 x 3 x 3 voxels, where there are all of them. */
template <typename TKey>
__global__ void __launch_bounds__(128)
  MedianOf27Kernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t across[2] = { g.inStride.axis[g.planeAxes[0]], g.inStride.axis[g.planeAxes[1]] };
  const std::int64_t along = g.inStride.axis[g.lineAxis];
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine  line(g, number);
    const TKey *    plane = in + RankLine::Offset(line.index, g.in, g.inStride) - along;
    std::int64_t    to = RankLine::Offset(line.index, g.outBuffer, g.outStride);
    SortedKey<TKey> lists[3][9];
    int             absent[3];
    int             left = static_cast<int>(line.end - line.begin);
    for (int i = 0; i < 2; ++i)
    {
      LoadPlane<1, TKey>(lists[i], plane, across, g.form);
      absent[i] = SortPlane<9, TKey>(lists[i], g.form);
      plane += along;
    }
    while (left > 0)
    {
      // The lists are in no order: the newest takes the place of the oldest.
#pragma unroll
      for (int i = 0; i < 3; ++i)
      {
        const int newest = (i + 2) % 3;
        if (left > 0)
        {
          LoadPlane<1, TKey>(lists[newest], plane, across, g.form);
          absent[newest] = SortPlane<9, TKey>(lists[newest], g.form);
          plane += along;
          const int       lost = absent[0] + absent[1] + absent[2];
          SortedKey<TKey> result = MedianOf27(lists[0], lists[1], lists[2]);
          if (lost > 0)
          {
            result = SelectByBits<TKey>(lists, static_cast<int>(RankIn(27, lost, 0.5)));
          }
          StoreKey(static_cast<TKey>(result), g, out, to);
          to += g.outStride.axis[g.lineAxis];
          --left;
        }
      }
    }
  }
}

/** Windows of a plane radius up to VRadius, and of up to VLists planes. */
template <typename TKey, int VRadius, int VLists, int VThreads>
__global__ void
__launch_bounds__(VThreads, VRadius == 1   ? 8
                            : VRadius == 2 ? 4
                                           : 1)
  RankListKernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out)
{
  constexpr int     Side = 2 * VRadius + 1;
  constexpr int     Length = Side * Side;
  constexpr TKey    Beyond = static_cast<TKey>(~TKey{ 0 });
  extern __shared__ __align__(16) unsigned char memory[];
  TKey * const                                  lists = reinterpret_cast<TKey *>(memory) + threadIdx.x;
  const std::int64_t                            step = static_cast<std::int64_t>(gridDim.x) * VThreads;
  const int                                     p = g.planeAxes[0];
  const int                                     q = g.planeAxes[1];
  const int                                     m = g.lineAxis;
  const int                                     planes = 2 * g.lineRadius + 1;
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * VThreads + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine     line(g, number);
    const TKey *       plane = in + RankLine::Offset(line.index, g.in, g.inStride);
    std::int64_t       to = RankLine::Offset(line.index, g.outBuffer, g.outStride);
    const std::int64_t across[2] = { g.inStride.axis[p], g.inStride.axis[q] };
    const std::int64_t along = g.inStride.axis[m];
    // Which taps of a plane there are: the same along the line.
    std::uint64_t there = 0;
    int           tapsOfPlane = 0;
#pragma unroll
    for (int t = 0; t < Length; ++t)
    {
      const int          dp = t % Side - VRadius;
      const int          dq = t / Side - VRadius;
      const std::int64_t atP = line.index.axis[p] + dp;
      const std::int64_t atQ = line.index.axis[q] + dq;
      const bool         is = abs(dp) <= g.planeRadii[0] && abs(dq) <= g.planeRadii[1] && atP >= g.in.lower.axis[p] &&
                      atP < g.in.upper.axis[p] && atQ >= g.in.lower.axis[q] && atQ < g.in.upper.axis[q];
      there |= is ? std::uint64_t{ 1 } << t : 0;
      tapsOfPlane += is ? 1 : 0;
    }
    int absent[VLists];
#pragma unroll
    for (int l = 0; l < VLists; ++l)
    {
      absent[l] = 0;
#pragma unroll 5
      for (int t = 0; t <= Length; ++t)
      {
        lists[(l * (Length + 1) + t) * VThreads] = Beyond;
      }
    }
    int slot = 0;
    plane -= g.lineRadius * along;
    for (std::int64_t at = line.begin - g.lineRadius; at < line.end + g.lineRadius; ++at)
    {
      SortedKey<TKey> keys[Length];
      int             absentHere = 0;
      const bool      isThere = at >= g.in.lower.axis[m] && at < g.in.upper.axis[m];
      const bool      isWhole = isThere && tapsOfPlane == Length;
      if (isWhole)
      {
        LoadPlane<VRadius, TKey>(keys, plane, across, g.form);
      }
      else
      {
        ForEachTap<VRadius>(plane, across, [&](int t, const TKey * tap) {
          keys[t] = Beyond;
          if (isThere && (there >> t & 1) != 0)
          {
            keys[t] = ToKey(*tap, g.form);
            absentHere += g.form == KeyForm::Real && keys[t] == 0 ? 1 : 0;
          }
        });
      }
      // What is beyond has a key like a NaN's.
      absentHere += SortPlane<Length, TKey>(keys, isWhole ? g.form : KeyForm::Unsigned);
      plane += along;
#pragma unroll
      for (int t = 0; t < Length; ++t)
      {
        lists[(slot * (Length + 1) + t) * VThreads] = static_cast<TKey>(keys[t]);
      }
      int absentInWindow = 0;
#pragma unroll
      for (int l = 0; l < VLists; ++l)
      {
        absent[l] = l == slot ? absentHere : absent[l];
        absentInWindow += absent[l];
      }
      slot = slot + 1 == planes ? 0 : slot + 1;
      if (at < line.begin + g.lineRadius)
      {
        continue;
      }
      const int taps = tapsOfPlane * TapsIn(g.in, m, at - g.lineRadius, g.lineRadius);
      int       below = static_cast<int>(RankIn(taps, absentInWindow, g.fraction));
      int       taken[VLists];
#pragma unroll
      for (int l = 0; l < VLists; ++l)
      {
        taken[l] = 0;
      }
      // Lists go on with what is beyond everything. Of VLists lists' next `some` keys, those of the list whose last is
      // the least are among the first VLists (some - 1) + 1 of all that are left.
      const auto keyAt = [&](int l, int t) -> SortedKey<TKey> {
        return lists[(l * (Length + 1) + Least(t, Length)) * VThreads];
      };
      while (below > 0)
      {
        const int some = (below - 1) / VLists + 1;
        int       which = 0;
        if constexpr (sizeof(TKey) <= 2)
        {
          // The list's number takes part in the comparison.
          std::uint32_t least = keyAt(0, taken[0] + some - 1) * 8;
#pragma unroll
          for (int l = 1; l < VLists; ++l)
          {
            least = Least<std::uint32_t>(least, keyAt(l, taken[l] + some - 1) * 8 + l);
          }
          which = static_cast<int>(least & 7);
        }
        else
        {
          SortedKey<TKey> least = keyAt(0, taken[0] + some - 1);
#pragma unroll
          for (int l = 1; l < VLists; ++l)
          {
            const SortedKey<TKey> key = keyAt(l, taken[l] + some - 1);
            which = key < least ? l : which;
            least = Least(least, key);
          }
        }
#pragma unroll
        for (int l = 0; l < VLists; ++l)
        {
          taken[l] += l == which ? some : 0;
        }
        below -= some;
      }
      SortedKey<TKey> result = Beyond;
#pragma unroll
      for (int l = 0; l < VLists; ++l)
      {
        result = Least(result, keyAt(l, taken[l]));
      }
      StoreKey(static_cast<TKey>(result), g, out, to);
      to += g.outStride.axis[m];
    }
  }
}

/** Outputs of a thread of RankBitKernel. */
constexpr int BitOutputs = 4;

/** Windows of any size. */
template <typename TKey>
__global__ void __launch_bounds__(256)
  RankBitKernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const int          p = g.planeAxes[0];
  const int          q = g.planeAxes[1];
  const int          m = g.lineAxis;
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine     line(g, number);
    const TKey * const center = in + RankLine::Offset(line.index, g.in, g.inStride);
    const auto         first = [&](int axis, std::int64_t i, int radius) {
      return i - radius > g.in.lower.axis[axis] ? -radius : static_cast<int>(g.in.lower.axis[axis] - i);
    };
    const auto last = [&](int axis, std::int64_t i, int radius) {
      return i + radius < g.in.upper.axis[axis] ? radius : static_cast<int>(g.in.upper.axis[axis] - 1 - i);
    };
    const int  outputs = static_cast<int>(line.end - line.begin);
    const int  firstP = first(p, line.index.axis[p], g.planeRadii[0]);
    const int  lastP = last(p, line.index.axis[p], g.planeRadii[0]);
    const int  firstQ = first(q, line.index.axis[q], g.planeRadii[1]);
    const int  lastQ = last(q, line.index.axis[q], g.planeRadii[1]);
    const int  firstM = first(m, line.begin, g.lineRadius);
    const int  lastM = outputs - 1 + last(m, line.end - 1, g.lineRadius);
    const auto countBelow = [&](int(&counts)[BitOutputs], const TKey(&limits)[BitOutputs]) {
#pragma unroll
      for (int u = 0; u < BitOutputs; ++u)
      {
        counts[u] = 0;
      }
#pragma unroll 1
      for (int dm = firstM; dm <= lastM; ++dm)
      {
        // 0 for an output whose window this plane is not in: nothing is below that.
        SortedKey<TKey> limit[BitOutputs];
#pragma unroll
        for (int u = 0; u < BitOutputs; ++u)
        {
          limit[u] = dm - u >= -g.lineRadius && dm - u <= g.lineRadius ? limits[u] : TKey{ 0 };
        }
#pragma unroll 1
        for (int dq = firstQ; dq <= lastQ; ++dq)
        {
          const TKey * const row = center + dm * g.inStride.axis[m] + dq * g.inStride.axis[q];
          const std::int64_t stride = g.inStride.axis[p];
#pragma unroll 4
          for (int dp = firstP; dp <= lastP; ++dp)
          {
            const SortedKey<TKey> key = ToKey(row[dp * stride], g.form);
#pragma unroll
            for (int u = 0; u < BitOutputs; ++u)
            {
              counts[u] += key < limit[u] ? 1 : 0;
            }
          }
        }
      }
    };
    int  ranks[BitOutputs];
    int  counts[BitOutputs] = {};
    TKey limits[BitOutputs];
    TKey found[BitOutputs];
    if (g.form == KeyForm::Real)
    {
#pragma unroll
      for (int u = 0; u < BitOutputs; ++u)
      {
        limits[u] = 1;
      }
      countBelow(counts, limits);
    }
    const int tapsOfPlane = (lastP - firstP + 1) * (lastQ - firstQ + 1);
#pragma unroll
    for (int u = 0; u < BitOutputs; ++u)
    {
      found[u] = 0;
      ranks[u] =
        u < outputs
          ? static_cast<int>(RankIn(tapsOfPlane * TapsIn(g.in, m, line.begin + u, g.lineRadius), counts[u], g.fraction))
          : 0;
    }
#pragma unroll 1
    for (int bit = 8 * sizeof(TKey) - 1; bit >= 0; --bit)
    {
#pragma unroll
      for (int u = 0; u < BitOutputs; ++u)
      {
        limits[u] = static_cast<TKey>(found[u] | static_cast<TKey>(TKey{ 1 } << bit));
      }
      countBelow(counts, limits);
#pragma unroll
      for (int u = 0; u < BitOutputs; ++u)
      {
        found[u] = counts[u] <= ranks[u] ? limits[u] : found[u];
      }
    }
    const std::int64_t to = RankLine::Offset(line.index, g.outBuffer, g.outStride);
#pragma unroll
    for (int u = 0; u < BitOutputs; ++u)
    {
      if (u < outputs)
      {
        StoreKey(found[u], g, out, to + u * g.outStride.axis[m]);
      }
    }
  }
}

/** Windows of a radius of up to 5 along each axis, in tiles of 16 outputs an axis. A block sorts the voxels of its tile
 * and around it: a voxel's number in that order takes the place of its key. A thread moves along a line of 8 outputs
 * and keeps a histogram of the numbers in the window, in bins of 128: what comes and goes are two planes. The voxel
 * itself is found among the 128 of its bin. */
template <typename TKey>
struct RankTile
{
  static constexpr int Outputs = 16; ///< of a side
  static constexpr int LargestRadius = 5;
  static constexpr int LargestSide = Outputs + 2 * LargestRadius;
  static constexpr int Threads = 512;
  static constexpr int OutputsOfThread = Outputs * Outputs * Outputs / Threads;
  static constexpr int Items = (LargestSide * LargestSide * LargestSide + Threads - 1) / Threads;
  static constexpr int BinBits = 7;
  static constexpr int Words = (Items * Threads / (1 << BinBits) + 3) / 4; ///< of four bins
  using Sort = cub::BlockRadixSort<TKey, Threads, Items, std::uint16_t>;
  /** A place has 6 bits an axis, of which the highest is free: for comparisons of all at once. */
  static constexpr std::uint32_t Guards = 32u | 32u << 6 | 32u << 12;
  static constexpr std::size_t   HistogramBytes = sizeof(std::uint32_t) * Words * Threads;
  static constexpr std::size_t   SharedBytes =
    (sizeof(typename Sort::TempStorage) > HistogramBytes ? sizeof(typename Sort::TempStorage) + 15 : HistogramBytes) /
      16 * 16 +
    (sizeof(std::uint16_t) + sizeof(std::uint32_t)) * Items * Threads;
  /** The number of what is not there. */
  static constexpr std::uint16_t Nowhere = 0xFFFF;

  __device__ static std::uint32_t
  Place(int p, int q, int m)
  {
    return static_cast<std::uint32_t>(p | q << 6 | m << 12);
  }
};

/** The part of a tile's axis that a window has: positions from `first` on, counted from where the tile's surroundings
 * begin. */
struct TileRange
{
  int first;
  int count;

  __device__
  TileRange(const Box & in, int axis, std::int64_t center, int radius, std::int64_t origin)
  {
    const std::int64_t low = max(center - radius, in.lower.axis[axis]);
    const std::int64_t high = min(center + radius, in.upper.axis[axis] - 1);
    first = static_cast<int>(low - origin);
    count = static_cast<int>(high - low + 1);
  }
};

template <typename TKey>
__global__ void
__launch_bounds__(RankTile<TKey>::Threads, 1)
  RankTileKernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out)
{
  using Tile = RankTile<TKey>;
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ int                                lost;
  auto * const numbers = reinterpret_cast<std::uint16_t *>(memory + Tile::SharedBytes) - Tile::Items * Tile::Threads;
  auto * const sorted = reinterpret_cast<std::uint32_t *>(numbers) - Tile::Items * Tile::Threads;
  const int    thread = static_cast<int>(threadIdx.x);
  std::uint32_t * const histogram = reinterpret_cast<std::uint32_t *>(memory) + thread;
  const int             axes[3] = { g.planeAxes[0], g.planeAxes[1], g.lineAxis };
  const int             radii[3] = { g.planeRadii[0], g.planeRadii[1], g.lineRadius };
  for (std::int64_t number = blockIdx.x; number < g.lines; number += gridDim.x)
  {
    Coordinates  corner = g.out.lower;
    std::int64_t rest = number;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const int          side = a == axes[0] || a == axes[1] || a == axes[2] ? Tile::Outputs : 1;
      const std::int64_t tiles = (g.out.Extent(a) + side - 1) / side;
      const std::int64_t quotient = rest / tiles;
      corner.axis[a] += (rest - quotient * tiles) * side;
      rest = quotient;
    }
    std::int64_t origin[3];
    int          sides[3];
#pragma unroll
    for (int i = 0; i < 3; ++i)
    {
      origin[i] = corner.axis[axes[i]] - radii[i];
      sides[i] = Tile::Outputs + 2 * radii[i];
    }
    const std::int64_t base = RankLine::Offset(corner, g.in, g.inStride);
    const auto         offsetOf = [&](int p, int q, int m) {
      return base + (p - radii[0]) * g.inStride.axis[axes[0]] + (q - radii[1]) * g.inStride.axis[axes[1]] +
             (m - radii[2]) * g.inStride.axis[axes[2]];
    };
    // Sorts the voxels, each with its place.
    TKey          keys[Tile::Items];
    std::uint16_t codes[Tile::Items];
#pragma unroll
    for (int i = 0; i < Tile::Items; ++i)
    {
      const int n = thread + i * Tile::Threads;
      const int p = n % sides[0];
      const int q = n / sides[0] % sides[1];
      const int m = n / sides[0] / sides[1];
      bool      is = m < sides[2];
      const int at[3] = { p, q, m };
#pragma unroll
      for (int k = 0; k < 3; ++k)
      {
        is = is && origin[k] + at[k] >= g.in.lower.axis[axes[k]] && origin[k] + at[k] < g.in.upper.axis[axes[k]];
      }
      keys[i] = is ? ToKey(in[offsetOf(p, q, m)], g.form) : static_cast<TKey>(~TKey{ 0 });
      codes[i] = is ? static_cast<std::uint16_t>(n) : Tile::Nowhere;
    }
    if (thread == 0)
    {
      lost = 0;
    }
    __syncthreads();
    typename Tile::Sort(*reinterpret_cast<typename Tile::Sort::TempStorage *>(memory)).Sort(keys, codes);
    int lostHere = 0;
#pragma unroll
    for (int i = 0; i < Tile::Items; ++i)
    {
      const int n = thread * Tile::Items + i;
      const int code = codes[i];
      // What is not there is in no window: all bits are set.
      sorted[n] = ~0u;
      if (code != Tile::Nowhere)
      {
        sorted[n] = Tile::Place(code % sides[0], code / sides[0] % sides[1], code / sides[0] / sides[1]);
        numbers[code] = static_cast<std::uint16_t>(n);
        lostHere += g.form == KeyForm::Real && keys[i] == 0 ? 1 : 0;
      }
    }
    if (lostHere > 0)
    {
      atomicAdd(&lost, lostHere);
    }
    __syncthreads();
    const int lostInTile = lost;
    for (int w = 0; w < Tile::Words; ++w)
    {
      histogram[w * Tile::Threads] = 0;
    }
    // A thread's outputs.
    const int   column = thread % (Tile::Outputs * Tile::Outputs);
    const int   firstLine = thread / (Tile::Outputs * Tile::Outputs) * Tile::OutputsOfThread;
    Coordinates index = corner;
    index.axis[axes[0]] += column % Tile::Outputs;
    index.axis[axes[1]] += column / Tile::Outputs;
    index.axis[axes[2]] += firstLine;
    const bool active =
      index.axis[axes[0]] < g.out.upper.axis[axes[0]] && index.axis[axes[1]] < g.out.upper.axis[axes[1]];
    const TileRange rangeP(g.in, axes[0], index.axis[axes[0]], radii[0], origin[0]);
    const TileRange rangeQ(g.in, axes[1], index.axis[axes[1]], radii[1], origin[1]);
    int             lostInWindow = 0;
    const auto      addPlane = [&](int m, std::uint32_t sign) {
      for (int q = rangeQ.first; q < rangeQ.first + rangeQ.count; ++q)
      {
        const std::uint16_t * const row = numbers + (m * sides[1] + q) * sides[0] + rangeP.first;
#pragma unroll 4
        for (int p = 0; p < rangeP.count; ++p)
        {
          const std::uint32_t n = row[p];
          histogram[(n >> (Tile::BinBits + 2)) * Tile::Threads] += sign << (n >> (Tile::BinBits - 3) & 24u);
        }
        for (int p = 0; lostInTile > 0 && p < rangeP.count; ++p)
        {
          lostInWindow += row[p] < lostInTile ? static_cast<int>(sign) : 0;
        }
      }
    };
    int begin = 0;
    int end = 0;
    for (int o = 0; active && o < Tile::OutputsOfThread && index.axis[axes[2]] < g.out.upper.axis[axes[2]]; ++o)
    {
      const TileRange rangeM(g.in, axes[2], index.axis[axes[2]], radii[2], origin[2]);
      if (o == 0)
      {
        begin = end = rangeM.first;
      }
      for (; end < rangeM.first + rangeM.count; ++end)
      {
        addPlane(end, 1u);
      }
      for (; begin < rangeM.first; ++begin)
      {
        addPlane(begin, ~0u);
      }
      int below = static_cast<int>(RankIn(rangeP.count * rangeQ.count * rangeM.count, lostInWindow, g.fraction));
      int word = 0;
      std::uint32_t bins = histogram[0];
      for (int some = __dp4a(bins, 0x01010101u, 0u); below >= some; some = __dp4a(bins, 0x01010101u, 0u))
      {
        below -= some;
        bins = histogram[++word * Tile::Threads];
      }
      int bin = 0;
      while (below >= static_cast<int>(bins >> 8 * bin & 255u))
      {
        below -= static_cast<int>(bins >> 8 * bin & 255u);
        ++bin;
      }
      // A guard survives where a place is not before the window's first, nor after its last.
      const std::uint32_t first = Tile::Place(rangeP.first, rangeQ.first, rangeM.first);
      const std::uint32_t last =
        first + Tile::Place(rangeP.count - 1, rangeQ.count - 1, rangeM.count - 1) + Tile::Guards;
      std::uint32_t place = 0;
      for (int n = (4 * word + bin) << Tile::BinBits;; ++n)
      {
        place = sorted[n];
        if ((((place | Tile::Guards) - first) & (last - place) & Tile::Guards) == Tile::Guards && place != ~0u &&
            below-- == 0)
        {
          break;
        }
      }
      StoreKey(ToKey(in[offsetOf(place & 31, place >> 6 & 31, place >> 12)], g.form),
               g,
               out,
               RankLine::Offset(index, g.outBuffer, g.outStride));
      ++index.axis[axes[2]];
    }
    __syncthreads();
  }
}

template <typename TKey>
bool
LaunchTiles(RankGeometry g, const void * in, void * out, cudaStream_t stream)
{
  if constexpr (sizeof(TKey) > 4)
  {
    return false;
  }
  else
  {
    using Tile = RankTile<TKey>;
    if (std::max({ g.planeRadii[0], g.planeRadii[1], g.lineRadius }) > Tile::LargestRadius ||
        static_cast<std::int64_t>(Tile::SharedBytes + 1024) > SharedMemoryOfDevice())
    {
      return false;
    }
    g.lines = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool isWide = a == g.planeAxes[0] || a == g.planeAxes[1] || a == g.lineAxis;
      g.lines *= isWide ? (g.out.Extent(a) + Tile::Outputs - 1) / Tile::Outputs : g.out.Extent(a);
    }
    const auto kernel = RankTileKernel<TKey>;
    AllowSharedMemory(kernel, Tile::SharedBytes);
    kernel<<<BlocksFor(g.lines, 1), Tile::Threads, Tile::SharedBytes, stream>>>(g, static_cast<const TKey *>(in), out);
    CheckLaunch("RankTileKernel");
    return true;
  }
}

/** Divides lines into the work of threads: enough for a large device, but a thread reads ahead before its first
 * output. */
void
DivideLines(RankGeometry & g)
{
  const std::int64_t extent = g.out.Extent(g.lineAxis);
  const std::int64_t lines = g.out.NumberOfVoxels() / extent;
  const std::int64_t wanted = std::max<std::int64_t>(1, 540000 / lines);
  const std::int64_t most = std::max<std::int64_t>(1, extent / std::max(8, 16 * g.lineRadius));
  const std::int64_t segments = std::min(wanted, most);
  g.segment = (extent + segments - 1) / segments;
  g.lines = lines * ((extent + g.segment - 1) / g.segment);
}

template <typename TKey, int VRadius, int VLists>
bool
LaunchLists(RankGeometry g, const void * in, void * out, cudaStream_t stream)
{
  constexpr std::size_t bytes = std::size_t{ VLists } * ((2 * VRadius + 1) * (2 * VRadius + 1) + 1) * sizeof(TKey);
  constexpr int threads = bytes * 128 <= LargestSharedMemory ? 128 : bytes * 64 <= LargestSharedMemory ? 64 : 32;
  if constexpr (bytes * threads > LargestSharedMemory)
  {
    return false;
  }
  else
  {
    DivideLines(g);
    const auto kernel = RankListKernel<TKey, VRadius, VLists, threads>;
    AllowSharedMemory(kernel, bytes * threads);
    kernel<<<BlocksFor(g.lines, threads), threads, bytes * threads, stream>>>(g, static_cast<const TKey *>(in), out);
    CheckLaunch("RankListKernel");
    return true;
  }
}

template <typename TKey>
void
LaunchBits(RankGeometry g, const void * in, void * out, cudaStream_t stream)
{
  const std::int64_t extent = g.out.Extent(g.lineAxis);
  g.segment = BitOutputs;
  g.lines = g.out.NumberOfVoxels() / extent * ((extent + BitOutputs - 1) / BitOutputs);
  RankBitKernel<TKey><<<BlocksFor(g.lines, 256), 256, 0, stream>>>(g, static_cast<const TKey *>(in), out);
  CheckLaunch("RankBitKernel");
}

/** Computes the voxels whose windows are whole, and calls rest(part) for parts of the output that have the others. */
template <typename TKey, typename TRest>
void
LaunchMedianOf27(RankGeometry g, const void * in, void * out, cudaStream_t stream, TRest && rest)
{
  Box left = g.out;
  for (const int a : { g.lineAxis, g.planeAxes[1], g.planeAxes[0] })
  {
    RankGeometry part = g;
    part.out = left;
    part.out.upper[a] = std::min(left.upper[a], std::max(left.lower[a], g.in.lower[a] + 1));
    left.lower[a] = part.out.upper[a];
    if (!part.out.IsEmpty())
    {
      rest(part);
    }
    part.out = left;
    part.out.lower[a] = std::max(left.lower[a], std::min(left.upper[a], g.in.upper[a] - 1));
    left.upper[a] = part.out.lower[a];
    if (!part.out.IsEmpty())
    {
      rest(part);
    }
  }
  if (!left.IsEmpty())
  {
    g.out = left;
    DivideLines(g);
    MedianOf27Kernel<TKey><<<BlocksFor(g.lines, 128), 128, 0, stream>>>(g, static_cast<const TKey *>(in), out);
    CheckLaunch("MedianOf27Kernel");
  }
}

template <typename TKey>
void
Launch(const RankGeometry & g, const void * in, void * out, cudaStream_t stream)
{
  if (g.fraction == 0.5 && g.planeRadii[0] == 1 && g.planeRadii[1] == 1 && g.lineRadius == 1)
  {
    LaunchMedianOf27<TKey>(
      g, in, out, stream, [&](const RankGeometry & part) { (void)LaunchLists<TKey, 1, 3>(part, in, out, stream); });
    return;
  }
  const int plane = std::max(g.planeRadii[0], g.planeRadii[1]);
  const int line = g.lineRadius;
  bool      done = false;
  if (plane <= 1 && line <= 2)
  {
    done = line == 0   ? LaunchLists<TKey, 1, 1>(g, in, out, stream)
           : line == 1 ? LaunchLists<TKey, 1, 3>(g, in, out, stream)
                       : LaunchLists<TKey, 1, 5>(g, in, out, stream);
  }
  else if (plane <= 2 && line <= 2)
  {
    done = line == 0   ? LaunchLists<TKey, 2, 1>(g, in, out, stream)
           : line == 1 ? LaunchLists<TKey, 2, 3>(g, in, out, stream)
                       : LaunchLists<TKey, 2, 5>(g, in, out, stream);
  }
  else if (plane <= 3 && line <= 3)
  {
    done = line == 0 ? LaunchLists<TKey, 3, 1>(g, in, out, stream) : LaunchLists<TKey, 3, 7>(g, in, out, stream);
  }
  if (!done && !LaunchTiles<TKey>(g, in, out, stream))
  {
    LaunchBits<TKey>(g, in, out, stream);
  }
}

/** The axes of windows, those without a radius last; the line is never along x, on which neighbouring threads lie. */
void
ChooseAxes(RankGeometry & g, const Coordinates & radius)
{
  g.lineAxis = MaxDimension - 1;
  while (g.lineAxis > 1 && radius[g.lineAxis] == 0)
  {
    --g.lineAxis;
  }
  g.lineRadius = static_cast<int>(radius[g.lineAxis]);
  int found = 0;
  for (const bool wide : { true, false })
  {
    for (int a = 0; a < MaxDimension && found < 2; ++a)
    {
      if (a != g.lineAxis && (radius[a] > 0) == wide)
      {
        g.planeAxes[found] = a;
        g.planeRadii[found++] = static_cast<int>(radius[a]);
      }
    }
  }
}

template <typename TPixel>
void
Run(const KernelCall & call)
{
  const auto &      operation = static_cast<const RankOperation &>(*call.operation);
  const Coordinates radius = operation.EffectiveRadius(call.image.Extents());
  const WindowBoxes boxes(call.output.box, call.image, radius, operation.boundary.mode);
  char *            scratch = static_cast<char *>(call.scratch);
  const auto        pixels = ContinueImage<TPixel>(call, boxes, operation.boundary, scratch);
  RankGeometry      g{};
  g.in = pixels.box;
  g.inStride = pixels.stride;
  g.out = g.outBuffer = call.output.box;
  g.outStride = call.output.stride;
  ChooseAxes(g, radius);
  g.fraction = operation.fraction;
  g.form = RankKey<TPixel>::IsReal                            ? KeyForm::Real
           : static_cast<TPixel>(-1) < static_cast<TPixel>(0) ? KeyForm::Signed
                                                              : KeyForm::Unsigned;
  g.inputKind = call.inputs[0].kind;
  g.outputKind = call.output.kind;
  Launch<typename RankKey<TPixel>::Type>(g, pixels.data, call.output.data, StreamOf(call));
}

void
RunRank(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) { Run<decltype(pixel)>(call); });
}

WindowBoxes
BoxesOf(const Operation & operation, const ChunkShape & shape)
{
  const auto & rank = static_cast<const RankOperation &>(operation);
  return WindowBoxes(shape.outputBox, shape.image, rank.EffectiveRadius(shape.image.Extents()), rank.boundary.mode);
}

std::size_t
ScratchOfRank(const Operation & operation, const ChunkShape & shape)
{
  return ContinuedBytes(BoxesOf(operation, shape),
                        static_cast<const RankOperation &>(operation).boundary.mode,
                        PixelSize(shape.inputKinds[0]));
}

/** In bytes that take as long (measured on an H200): 3 a tap from lists, 17 a voxel of the planes that come and go in
 * tiles, 11 a tap and byte of a voxel bit by bit. */
double
CostOfRank(const Operation & operation, const ChunkShape & shape)
{
  const WindowBoxes boxes = BoxesOf(operation, shape);
  double            taps = 1;
  std::int64_t      largest = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    taps *= static_cast<double>(2 * boxes.radius[a] + 1);
    largest = std::max(largest, boxes.radius[a]);
  }
  const std::size_t pixel = PixelSize(shape.inputKinds[0]);
  const double      bytes = largest <= 3                 ? 3 * taps
                            : largest <= 5 && pixel <= 4 ? 17 * std::pow(taps, 2.0 / 3)
                                                         : 11 * taps * static_cast<double>(pixel);
  return bytes * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

} // namespace

void
RegisterCudaRank(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunRank;
  kernel.scratchBytes = ScratchOfRank;
  kernel.cost = CostOfRank;
  registry.Register("rank", kernel);
}

} // namespace chunkwise
