/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaMedianNetworks.cuh"
#include "chunkwiseCudaPasses.cuh"

// Medians of small windows of which there are all voxels, by networks of minima and maxima. A thread moves along a line
// of outputs and sorts each plane of a window once; of three planes, five, or one alone it finds the median. Keys of 8
// and 16 bits go two in a register: a thread has the outputs of two neighbouring lines.
namespace chunkwise
{

namespace
{

/** Calls take(t, keys) for the taps of a plane, as they are in memory, row after row. */
template <int VRadius, typename TKeys, typename TTake>
__device__ __forceinline__ void
LoadPlane(const typename TKeys::Key * __restrict__ center, std::int64_t along, std::int64_t across, TTake && take)
{
  constexpr int               Side = 2 * VRadius + 1;
  const typename TKeys::Key * row = center - VRadius * across - VRadius * along;
#pragma unroll
  for (int q = 0; q < Side; ++q)
  {
    typename TKeys::Word last = row[0];
#pragma unroll
    for (int p = 0; p < Side; ++p)
    {
      typename TKeys::Word next = last;
      if (TKeys::Lines > 1 || p + 1 < Side)
      {
        next = row[(p + 1) * along];
      }
      take(q * Side + p, TKeys::From(last, next));
      last = next;
    }
    row += across;
  }
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
  // The seventh of 8 and 5: some of the eight and the rest of the five.
  T result = ends[6];
#pragma unroll
  for (int i = 0; i < 5; ++i)
  {
    result = Least(result, Greatest(ends[5 - i], middle[i]));
  }
  return result;
}

/** The key with number `rank` of three lists, of one of a thread's outputs. */
template <typename TKey>
__device__ TKey
SelectByBits(const MedianKeys<TKey> (&lists)[3][9], int line, int rank)
{
  TKey found = 0;
#pragma unroll 1
  for (int bit = 8 * sizeof(TKey) - 1; bit >= 0; --bit)
  {
    const auto limit = static_cast<TKey>(found | static_cast<TKey>(TKey{ 1 } << bit));
    int        below = 0;
#pragma unroll
    for (int t = 0; t < 27; ++t)
    {
      below += lists[t / 9][t % 9].Get(line) < limit ? 1 : 0;
    }
    found = below <= rank ? limit : found;
  }
  return found;
}

/** Loads a plane of 3 x 3 voxels and sorts it; NaN become 0. How many these are. */
template <typename TKey>
__device__ __forceinline__ int
LoadSortedPlaneOf9(MedianKeys<TKey> (&list)[9], const TKey * __restrict__ center, std::int64_t beside,
                   std::int64_t across, KeyForm form)
{
  using Keys = MedianKeys<TKey>;
  Keys taps[9];
  LoadPlane<1, Keys>(center, beside, across, [&](int t, Keys raw) { taps[t] = ToOrdered<TKey>(raw, form); });
  int  lost = 0;
  bool again = false;
  do
  {
    FindKeys<SortingNetwork<9>, 0>(list, [&](int wire) { return taps[wire]; });
    again = form == KeyForm::Real && lost == 0 && (IsNaN(list[0].Get(0)) || IsNaN(list[8].Get(0)));
    if (again)
    {
#pragma unroll
      for (int t = 0; t < 9; ++t)
      {
        const bool isNaN = IsNaN(list[t].Get(0));
        taps[t].bits = isNaN ? 0 : list[t].bits;
        lost += isNaN ? 1 : 0;
      }
    }
  } while (again);
  return lost;
}

/** Medians of 3 x 3 x 3 voxels. */
template <typename TKey>
__global__ void __launch_bounds__(128)
  MedianOf27Kernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out)
{
  using Keys = MedianKeys<TKey>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t beside = g.inStride.axis[g.planeAxes[0]];
  const std::int64_t across = g.inStride.axis[g.planeAxes[1]];
  const std::int64_t along = g.inStride.axis[g.lineAxis];
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine line(g, number, Keys::Lines);
    const TKey *   plane = in + RankLine::Offset(line.index, g.in, g.inStride) - along;
    std::int64_t   to = RankLine::Offset(line.index, g.outBuffer, g.outStride);
    Keys           lists[3][9];
    int            lost[3];
    int            left = static_cast<int>(line.end - line.begin);
    for (int i = 0; i < 2; ++i)
    {
      lost[i] = LoadSortedPlaneOf9<TKey>(lists[i], plane, beside, across, g.form);
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
          lost[newest] = LoadSortedPlaneOf9<TKey>(lists[newest], plane, beside, across, g.form);
          plane += along;
          const Keys medians = MedianOf27(lists[0], lists[1], lists[2]);
#pragma unroll
          for (int l = 0; l < Keys::Lines; ++l)
          {
            TKey median = medians.Get(l);
            int  absent = lost[0] + lost[1] + lost[2];
            if (g.counts != nullptr)
            {
              Coordinates index = line.index;
              index.axis[g.planeAxes[0]] += l;
              absent = AbsentIn(g, index, line.end - left, 27, absent);
            }
            // With nothing but NaN it is that already; where nothing is seen it is any number.
            if (absent > 0 && absent < 27)
            {
              median = SelectByBits<TKey>(lists, l, static_cast<int>(RankIn(27, absent, 0.5)));
            }
            StoreKey(median, g, out, to + l * g.outStride.axis[g.planeAxes[0]]);
          }
          to += g.outStride.axis[g.lineAxis];
          --left;
        }
      }
    }
  }
}

/** The key of an output's window, of which some voxels are NaN or not seen, bit by bit. */
template <typename TKey>
__device__ __noinline__ TKey
SelectBitByBit(const RankGeometry & g, const TKey * __restrict__ in, const Coordinates & index)
{
  const int          p = g.planeAxes[0];
  const int          q = g.planeAxes[1];
  const int          m = g.lineAxis;
  const TKey * const center = in + RankLine::Offset(index, g.in, g.inStride);
  const auto         count = [&](auto && isCounted) {
    int sum = 0;
    for (int dm = -g.lineRadius; dm <= g.lineRadius; ++dm)
    {
      for (int dq = -g.planeRadii[1]; dq <= g.planeRadii[1]; ++dq)
      {
        const TKey * const row = center + dm * g.inStride.axis[m] + dq * g.inStride.axis[q];
        for (int dp = -g.planeRadii[0]; dp <= g.planeRadii[0]; ++dp)
        {
          sum += isCounted(ToKey(row[dp * g.inStride.axis[p]], g.form)) ? 1 : 0;
        }
      }
    }
    return sum;
  };
  const int  taps = (2 * g.planeRadii[0] + 1) * (2 * g.planeRadii[1] + 1) * (2 * g.lineRadius + 1);
  const int  lost = g.form == KeyForm::Real ? count([](TKey key) { return key == 0; }) : 0;
  const auto rank = static_cast<int>(RankIn(taps, AbsentIn(g, index, index.axis[m], taps, lost), g.fraction));
  TKey       found = 0;
  for (int bit = 8 * sizeof(TKey) - 1; bit >= 0; --bit)
  {
    const auto limit = static_cast<TKey>(found | static_cast<TKey>(TKey{ 1 } << bit));
    found = count([limit](TKey key) { return key < limit; }) <= rank ? limit : found;
  }
  return found;
}

/** Sorts a plane of 5 x 5 voxels. Whether it has a NaN. */
template <typename TKeys>
__device__ __forceinline__ bool
SortPlaneOf25(const typename TKeys::Key * __restrict__ center, std::int64_t beside, std::int64_t across, KeyForm form,
              TKeys (&keys)[25])
{
  TKeys    taps[25];
  NaNWatch nans;
  LoadPlane<2, TKeys>(center, beside, across, [&](int t, TKeys raw) {
    nans.See(raw, form);
    taps[t] = ToOrdered(raw, form);
  });
  FindKeys<SortingNetwork<25>, 0>(keys, [&](int wire) { return taps[wire]; });
  return nans.IsIn(taps);
}

/** The choice of MedianOf125 if windows have all voxels. */
struct AtMedian
{
  template <typename TKeys>
  __device__ __forceinline__ TKeys
  operator()(TKeys, TKeys at) const
  {
    return at;
  }
};

/** Stores a thread's outputs; windows with a NaN are searched bit by bit. */
template <typename TKeys>
__device__ __forceinline__ void
StoreMedians(const RankGeometry & g, const typename TKeys::Key * __restrict__ in, void * out, Coordinates index,
             TKeys keys, bool hasNaN)
{
#pragma unroll
  for (int line = 0; line < TKeys::Lines; ++line)
  {
    const typename TKeys::Key key = hasNaN ? SelectBitByBit<typename TKeys::Key>(g, in, index) : keys.Get(line);
    StoreKey(key, g, out, RankLine::Offset(index, g.outBuffer, g.outStride));
    ++index.axis[g.planeAxes[0]];
  }
}

/** Medians of 5 x 5 x 5 voxels. Four of the planes of a window are two pairs, each of which is merged once for the two
 * windows that have it. */
template <typename TKeys>
__global__ void
__launch_bounds__(MedianThreads, 3)
  MedianOf125Kernel(const __grid_constant__ RankGeometry g, const typename TKeys::Key * __restrict__ in,
                    void * __restrict__ out)
{
  extern __shared__ std::uint32_t kept[];
  std::uint32_t * const           mine = kept + threadIdx.x / 32 * (KeptKeys * 32) + threadIdx.x % 32;
  const auto                      listAt = [mine](int key) { return KeptList<TKeys>{ mine + key * 32 }; };
  const std::int64_t              step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t              across = g.inStride.axis[g.planeAxes[1]];
  const std::int64_t              beside = g.inStride.axis[g.planeAxes[0]];
  const std::int64_t              along = g.inStride.axis[g.lineAxis];
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine              line(g, number, TKeys::Lines);
    Coordinates                 index = line.index;
    const typename TKeys::Key * plane = in + RankLine::Offset(index, g.in, g.inStride) - 2 * along;
    // Bit 0 is that of the newest plane.
    unsigned int nans = 0;
    const auto   sortNext = [&](TKeys(&keys)[25]) {
      nans = nans << 1 | (SortPlaneOf25<TKeys>(plane, beside, across, g.form, keys) ? 1 : 0);
      plane += along;
    };
    KeptList<TKeys> before = listAt(0);
    KeptList<TKeys> middle = listAt(50);
    KeptList<TKeys> oldest = listAt(100);
    KeptList<TKeys> older = listAt(125);
    TKeys           even[25];
    TKeys           odd[25];
#pragma unroll 1
    for (int pair = 0; pair < 2; ++pair)
    {
      sortNext(even);
      sortNext(odd);
      Keep<TKeys>(odd, pair == 0 ? oldest : older);
      MergePlanes<TKeys>(even, odd, pair == 0 ? before : middle);
    }
    std::int64_t & at = index.axis[g.lineAxis];
    while (true)
    {
      sortNext(even);
      StoreMedians(g, in, out, index, MedianOf125<TKeys>(before, middle, even, AtMedian()), (nans & 31) != 0);
      if (++at >= line.end)
      {
        break;
      }
      sortNext(odd);
      MergePlanes<TKeys>(even, odd, before);
      StoreMedians(g, in, out, index, MedianOf125<TKeys>(middle, before, oldest, AtMedian()), (nans & 31) != 0);
      // Nothing needs the oldest any more.
      Keep<TKeys>(odd, oldest);
      if (++at >= line.end)
      {
        break;
      }
      const KeptList<TKeys> pair = before;
      before = middle;
      middle = pair;
      const KeptList<TKeys> newest = oldest;
      oldest = older;
      older = newest;
    }
  }
}

/** Medians of windows of a plane. */
template <typename TKeys, int VRadius>
__global__ void __launch_bounds__(128)
  MedianOfPlaneKernel(const __grid_constant__ RankGeometry g, const typename TKeys::Key * __restrict__ in,
                      void * __restrict__ out)
{
  constexpr int      Taps = (2 * VRadius + 1) * (2 * VRadius + 1);
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t beside = g.inStride.axis[g.planeAxes[0]];
  const std::int64_t across = g.inStride.axis[g.planeAxes[1]];
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine line(g, number, TKeys::Lines);
    for (Coordinates index = line.index; index.axis[g.lineAxis] < line.end; ++index.axis[g.lineAxis])
    {
      TKeys    taps[Taps];
      TKeys    median[1];
      NaNWatch nans;
      LoadPlane<VRadius, TKeys>(in + RankLine::Offset(index, g.in, g.inStride), beside, across, [&](int t, TKeys raw) {
        nans.See(raw, g.form);
        taps[t] = ToOrdered(raw, g.form);
      });
      FindKeys<SelectionNetwork<Taps, Taps / 2, Taps / 2>, Taps / 2>(median, [&](int wire) { return taps[wire]; });
      StoreMedians(g, in, out, index, median[0], nans.IsIn(taps));
    }
  }
}

/** The kernel of a window; its threads and their shared memory. */
template <typename TKeys>
void
LaunchNetworks(const RankGeometry & g, const void * in, void * out, cudaStream_t stream)
{
  using Key = typename TKeys::Key;
  const auto launch = [&](auto kernel, int threads, std::size_t bytes) {
    AllowSharedMemory(kernel, bytes);
    kernel<<<BlocksFor(g.lines, threads), threads, bytes, stream>>>(g, static_cast<const Key *>(in), out);
    CheckLaunch("median kernel");
  };
  if constexpr (sizeof(Key) <= 4)
  {
    if (g.lineRadius == 2)
    {
      const int threads = ThreadsOfKeptLists();
      return launch(MedianOf125Kernel<TKeys>, threads, KeptBytes(threads));
    }
    if (g.planeRadii[0] == 3)
    {
      return launch(MedianOfPlaneKernel<TKeys, 3>, 128, 0);
    }
  }
  g.planeRadii[0] == 1 ? launch(MedianOfPlaneKernel<TKeys, 1>, 128, 0) : launch(MedianOfPlaneKernel<TKeys, 2>, 128, 0);
}

} // namespace

bool
RankMediansTake(const RankGeometry & g, std::size_t keyBytes, bool isCounted)
{
  const int  plane = g.planeRadii[0];
  const bool isMedianOfSquares = g.fraction == 0.5 && plane == g.planeRadii[1] && g.out.Extent(g.planeAxes[0]) >= 2;
  // Windows of which only a part is seen are better searched with sorted lists, but for small ones.
  const bool hasNetwork = plane == 1 && g.lineRadius == 1   ? true
                          : isCounted                       ? false
                          : plane == 2 && g.lineRadius == 2 ? keyBytes <= 4
                          : g.lineRadius == 0               ? plane == 1 || plane == 2 || (plane == 3 && keyBytes <= 4)
                                                            : false;
  return isMedianOfSquares && hasNetwork;
}

template <typename TKey>
void
LaunchRankMedians(const RankGeometry & whole, const void * in, void * out, cudaStream_t stream)
{
  RankGeometry g = whole;
  DivideLines(g, MedianKeys<TKey>::Lines);
  if (g.lineRadius == 1)
  {
    MedianOf27Kernel<TKey><<<BlocksFor(g.lines, 128), 128, 0, stream>>>(g, static_cast<const TKey *>(in), out);
    CheckLaunch("MedianOf27Kernel");
    return;
  }
  if constexpr (sizeof(TKey) == 4)
  {
    if (g.form == KeyForm::Real)
    {
      return LaunchNetworks<RealKeys>(g, in, out, stream);
    }
  }
  LaunchNetworks<MedianKeys<TKey>>(g, in, out, stream);
}

template void
LaunchRankMedians<std::uint8_t>(const RankGeometry &, const void *, void *, cudaStream_t);
template void
LaunchRankMedians<std::uint16_t>(const RankGeometry &, const void *, void *, cudaStream_t);
template void
LaunchRankMedians<std::uint32_t>(const RankGeometry &, const void *, void *, cudaStream_t);
template void
LaunchRankMedians<std::uint64_t>(const RankGeometry &, const void *, void *, cudaStream_t);

} // namespace chunkwise
