/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaRank.cuh"

// A thread moves along a line of outputs. Of each plane across the line it sorts the part that is in its windows and
// keeps the sorted lists of one window, as many as that has planes; a result is found by taking from the lists what is
// surely below it.
namespace chunkwise
{

namespace
{

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
          const int       lost = AbsentIn(g, line.index, line.end - left, 27, absent[0] + absent[1] + absent[2]);
          SortedKey<TKey> result = MedianOf27(lists[0], lists[1], lists[2]);
          // Of nothing but NaN it is that already, and where nothing is seen any number.
          if (lost > 0 && lost < 27)
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
  // What is beyond has a key like a NaN's.
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
  // Of VLists lists' next `some` keys, those of the list whose last is the least are among the first
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
      const int taps = tapsOfPlane.count * TapsIn(g.in, m, at - g.lineRadius, g.lineRadius);
      const int lost = AbsentIn(g, line.index, at - g.lineRadius, taps, absentInWindow);
      const int below = static_cast<int>(RankIn(taps, lost, g.fraction));
      StoreKey(static_cast<TKey>(SelectFromLists<VLists, Length, VThreads>(lists, below)), g, out, to);
      to += g.outStride.axis[m];
    }
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

} // namespace

template <typename TKey>
void
LaunchRankLists(const RankGeometry & g, const void * in, void * out, cudaStream_t stream)
{
  if (g.fraction == 0.5 && g.planeRadii[0] == 1 && g.planeRadii[1] == 1 && g.lineRadius == 1)
  {
    LaunchMedianOf27<TKey>(
      g, in, out, stream, [&](const RankGeometry & part) { LaunchLists<TKey, 1, 3>(part, in, out, stream); });
    return;
  }
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
