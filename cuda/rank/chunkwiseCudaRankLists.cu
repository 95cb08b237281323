/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaRank.cuh"
#include "chunkwiseSelectionNetwork.h"

// A thread moves along a line of outputs. It sorts the part of each plane across the line that is in its windows and
// keeps the sorted lists of one window, one for each plane; a result is found by taking from the lists the keys that
// are surely below it.
namespace chunkwise
{

namespace
{

template <int N, typename TKey>
__device__ __forceinline__ void
Sort(TKey (&keys)[N])
{
  if constexpr (N > 1)
  {
    using Sorting = SortingNetwork<N>;
    TKey wires[N];
    RunNetwork<Sorting>(
      wires,
      [&](int wire) { return keys[wire]; },
      [](TKey a, TKey b) { return a < b ? a : b; },
      [](TKey a, TKey b) { return a < b ? b : a; },
      ComparatorsOf<Sorting>{});
    TakeRanks<Sorting, 0>(wires, keys, std::make_integer_sequence<int, N>{});
  }
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

/** Which taps of a plane there are: the same along a line. */
struct PlaneTaps
{
  std::uint64_t there; ///< a bit for each
  int           count;
};

template <int VRadius>
__device__ __forceinline__ PlaneTaps
TapsOfPlane(const RankGeometry & g, const RankLine & line)
{
  constexpr int Side = 2 * VRadius + 1;
  const int     p = g.planeAxes[0];
  const int     q = g.planeAxes[1];
  PlaneTaps     taps{ 0, 0 };
#pragma unroll
  for (int t = 0; t < Side * Side; ++t)
  {
    const int          dp = t % Side - VRadius;
    const int          dq = t / Side - VRadius;
    const std::int64_t atP = line.index.axis[p] + dp;
    const std::int64_t atQ = line.index.axis[q] + dq;
    const bool         is = abs(dp) <= g.planeRadii[0] && abs(dq) <= g.planeRadii[1] && atP >= g.in.lower.axis[p] &&
                    atP < g.in.upper.axis[p] && atQ >= g.in.lower.axis[q] && atQ < g.in.upper.axis[q];
    taps.there |= is ? std::uint64_t{ 1 } << t : 0;
    taps.count += is ? 1 : 0;
  }
  return taps;
}

/** Loads the keys of a plane and sorts them; without a plane all are beyond everything. How many are of NaNs. */
template <int VRadius, typename TKey, int VLength>
__device__ __forceinline__ int
LoadSortedPlane(SortedKey<TKey> (&keys)[VLength], const TKey * plane, const std::int64_t (&across)[2],
                const PlaneTaps & taps, bool isThere, KeyForm form)
{
  constexpr TKey Beyond = static_cast<TKey>(~TKey{ 0 });
  int            absent = 0;
  const bool     isWhole = isThere && taps.count == VLength;
  if (isWhole)
  {
    LoadPlane<VRadius, TKey>(keys, plane, across, form);
  }
  else
  {
    ForEachTap<VRadius>(plane, across, [&](int t, const TKey * tap) {
      keys[t] = Beyond;
      if (isThere && (taps.there >> t & 1) != 0)
      {
        keys[t] = ToKey(*tap, form);
        absent += form == KeyForm::Real && keys[t] == 0 ? 1 : 0;
      }
    });
  }
  // A voxel beyond has a key like a NaN's.
  return absent + SortPlane<VLength, TKey>(keys, isWhole ? form : KeyForm::Unsigned);
}

/** The key of which `below` keys of all lists are before it. A list has VLength keys and one beyond everything,
 * VThreads apart, with which it goes on. */
template <int VLists, int VLength, int VThreads, typename TKey>
__device__ __forceinline__ SortedKey<TKey>
                           SelectFromLists(const TKey * lists, int below)
{
  int taken[VLists];
#pragma unroll
  for (int l = 0; l < VLists; ++l)
  {
    taken[l] = 0;
  }
  const auto keyAt = [&](int l, int t) -> SortedKey<TKey> {
    return lists[(l * (VLength + 1) + Least(t, VLength)) * VThreads];
  };
  // Each of VLists lists has `some` next keys: those of the list whose last is the least are among the first
  // VLists (some - 1) + 1 of all that are left.
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
  SortedKey<TKey> result = static_cast<TKey>(~TKey{ 0 });
#pragma unroll
  for (int l = 0; l < VLists; ++l)
  {
    result = Least(result, keyAt(l, taken[l]));
  }
  return result;
}

/** Windows of a plane radius up to VRadius, and of up to VLists planes. */
template <typename TKey, int VRadius, int VLists, int VThreads>
__global__ void
__launch_bounds__(VThreads, VRadius == 1   ? 8
                            : VRadius == 2 ? 4
                                           : 1)
  RankListKernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out)
{
  constexpr int     Length = (2 * VRadius + 1) * (2 * VRadius + 1);
  extern __shared__ __align__(16) unsigned char memory[];
  TKey * const                                  lists = reinterpret_cast<TKey *>(memory) + threadIdx.x;
  const std::int64_t                            step = static_cast<std::int64_t>(gridDim.x) * VThreads;
  const int                                     m = g.lineAxis;
  const int                                     planes = 2 * g.lineRadius + 1;
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * VThreads + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine     line(g, number);
    const TKey *       plane = in + RankLine::Offset(line.index, g.in, g.inStride);
    std::int64_t       to = RankLine::Offset(line.index, g.outBuffer, g.outStride);
    const std::int64_t across[2] = { g.inStride.axis[g.planeAxes[0]], g.inStride.axis[g.planeAxes[1]] };
    const std::int64_t along = g.inStride.axis[m];
    const PlaneTaps    tapsOfPlane = TapsOfPlane<VRadius>(g, line);
    int                absent[VLists];
#pragma unroll
    for (int l = 0; l < VLists; ++l)
    {
      absent[l] = 0;
#pragma unroll 5
      for (int t = 0; t <= Length; ++t)
      {
        lists[(l * (Length + 1) + t) * VThreads] = static_cast<TKey>(~TKey{ 0 });
      }
    }
    int slot = 0;
    plane -= g.lineRadius * along;
    for (std::int64_t at = line.begin - g.lineRadius; at < line.end + g.lineRadius; ++at)
    {
      SortedKey<TKey> keys[Length];
      const bool      isThere = at >= g.in.lower.axis[m] && at < g.in.upper.axis[m];
      const int       absentHere = LoadSortedPlane<VRadius, TKey>(keys, plane, across, tapsOfPlane, isThere, g.form);
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
      const int taps = tapsOfPlane.count * TapsIn(g.in, m, at - g.lineRadius, g.lineRadius, g.lineUpper);
      const int lost = AbsentIn(g, line.index, at - g.lineRadius, taps, absentInWindow);
      const int below = static_cast<int>(RankIn(taps, lost, g.fraction));
      StoreKey(static_cast<TKey>(SelectFromLists<VLists, Length, VThreads>(lists, below)), g, out, to);
      to += g.outStride.axis[m];
    }
  }
}

template <typename TKey, int VRadius, int VLists>
void
LaunchLists(RankGeometry g, const void * in, void * out, cudaStream_t stream)
{
  constexpr std::size_t bytes = std::size_t{ VLists } * ((2 * VRadius + 1) * (2 * VRadius + 1) + 1) * sizeof(TKey);
  constexpr int threads = bytes * 128 <= LargestSharedMemory ? 128 : bytes * 64 <= LargestSharedMemory ? 64 : 32;
  static_assert(bytes * threads <= LargestSharedMemory, "a warp's lists fit");
  DivideLines(g);
  const auto kernel = RankListKernel<TKey, VRadius, VLists, threads>;
  AllowSharedMemory(kernel, bytes * threads);
  kernel<<<BlocksFor(g.lines, threads), threads, bytes * threads, stream>>>(g, static_cast<const TKey *>(in), out);
  CheckLaunch("RankListKernel");
}

} // namespace

template <typename TKey>
void
LaunchRankLists(const RankGeometry & g, const void * in, void * out, cudaStream_t stream)
{
  const int plane = std::max(g.planeRadii[0], g.planeRadii[1]);
  const int line = g.lineRadius;
  if (plane <= 1 && line <= 2)
  {
    line == 0   ? LaunchLists<TKey, 1, 1>(g, in, out, stream)
    : line == 1 ? LaunchLists<TKey, 1, 3>(g, in, out, stream)
                : LaunchLists<TKey, 1, 5>(g, in, out, stream);
  }
  else if (plane <= 2 && line <= 2)
  {
    line == 0   ? LaunchLists<TKey, 2, 1>(g, in, out, stream)
    : line == 1 ? LaunchLists<TKey, 2, 3>(g, in, out, stream)
                : LaunchLists<TKey, 2, 5>(g, in, out, stream);
  }
  else
  {
    LaunchLists<TKey, 3, 1>(g, in, out, stream);
  }
}

template void
LaunchRankLists<std::uint8_t>(const RankGeometry &, const void *, void *, cudaStream_t);
template void
LaunchRankLists<std::uint16_t>(const RankGeometry &, const void *, void *, cudaStream_t);
template void
LaunchRankLists<std::uint32_t>(const RankGeometry &, const void *, void *, cudaStream_t);
template void
LaunchRankLists<std::uint64_t>(const RankGeometry &, const void *, void *, cudaStream_t);

} // namespace chunkwise
