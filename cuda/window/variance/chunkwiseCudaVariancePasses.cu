/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseMoments.h"

#include <cstring>
#include <type_traits>

// VarianceOperation pass by pass, for windows of any size. A thread has several outputs next to each other along the
// pass' axis, so that what it loads serves them all.
namespace chunkwise
{

namespace
{

/** Taps of a window along one axis: those of [i - radius, i + upper] that there are. */
struct TapRange
{
  std::int64_t lower;
  std::int64_t upper;

  __device__
  TapRange(std::int64_t i, std::int64_t radius, std::int64_t reach, const Box & box, int a)
    : lower(i - radius > box.lower.axis[a] ? i - radius : box.lower.axis[a])
    , upper(i + reach < box.upper.axis[a] - 1 ? i + reach + 1 : box.upper.axis[a])
  {}
  __device__ std::int64_t
             Count() const
  {
    return upper - lower;
  }
};

/** The most voxels of windows whose sums of 8- and 16-bit integers are kept in fewer bits: twice as many fit. */
constexpr std::int64_t NarrowTaps = 16384;

/** The numbers that passes hand on. The bits of results are those of MomentTypes. */
template <typename TPixel, bool VNarrow>
struct PassTypes
{
  using Types = MomentTypes<TPixel>;
  static constexpr bool IsNarrow = VNarrow && Types::IsExact && sizeof(TPixel) <= 2;
  using First = std::conditional_t<IsNarrow, std::int32_t, typename Types::First>;
  using Second = std::conditional_t<IsNarrow && sizeof(TPixel) == 1, std::int32_t, typename Types::Second>;
};

/** Elements of a row of what passes hand on: results that lie next to each other are stored together. */
std::int64_t
PaddedRow(std::int64_t extent)
{
  return (extent + 7) / 8 * 8;
}

template <typename T>
Voxels<T>
PaddedVoxels(T * data, const Box & box)
{
  Voxels<T> voxels{ data, box, {} };
  voxels.stride[0] = 1;
  voxels.stride[1] = PaddedRow(box.Extent(0));
  for (int a = 2; a < MaxDimension; ++a)
  {
    voxels.stride[a] = voxels.stride[a - 1] * box.Extent(a - 1);
  }
  return voxels;
}

std::int64_t
PaddedCount(const Box & box)
{
  return box.IsEmpty() ? 0 : box.NumberOfVoxels() / box.Extent(0) * PaddedRow(box.Extent(0));
}

template <typename TPixel, typename TFirst, typename TSecond>
struct VariancePass
{
  Voxels<const TPixel> pixels;
  /** The results of the pass before; second has the same box and strides. */
  Voxels<const TFirst> first;
  const TSecond *      second;
  /** The same of the box after. */
  Voxels<TFirst> firstOut;
  TSecond *      secondOut;
  Voxels<char>   out; ///< pixels of `kind`
  PixelType      kind;
  Box            after;
  Coordinates    radius; ///< how far windows reach to the lower side
  Coordinates    upper;
  int            axis;
  bool           takesRoot;
};

/** The first of a thread's outputs: number `i` of the box with its `axis` in pieces of VOutputs, x fastest. */
template <int VOutputs>
__device__ __forceinline__ Coordinates
FirstOutput(const Box & box, int axis, std::int64_t i, bool isSmall)
{
  Coordinates index = box.lower;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t length = a == axis ? VOutputs : 1;
    const std::int64_t extent = (box.Extent(a) + length - 1) / length;
    if (extent > 1)
    {
      const std::int64_t quotient =
        isSmall ? static_cast<std::uint32_t>(i) / static_cast<std::uint32_t>(extent) : i / extent;
      index.axis[a] += (i - quotient * extent) * length;
      i = quotient;
    }
  }
  return index;
}

/** Stores what lies next to each other in a padded row. */
template <int VOutputs, typename T>
__device__ __forceinline__ void
StoreRun(T * to, const T (&values)[VOutputs])
{
  if constexpr (VOutputs * sizeof(T) % sizeof(uint4) == 0)
  {
    constexpr int words = VOutputs * sizeof(T) / sizeof(uint4);
    uint4         all[words];
    memcpy(all, values, sizeof(all));
#pragma unroll
    for (int w = 0; w < words; ++w)
    {
      reinterpret_cast<uint4 *>(to)[w] = all[w];
    }
  }
  else
  {
#pragma unroll
    for (int u = 0; u < VOutputs; ++u)
    {
      to[u] = values[u];
    }
  }
}

/** The places of the taps of a thread's windows, and their range: they lie next to each other along the pass' axis. */
template <typename TPixel, typename TFirst, typename TSecond>
struct PassTaps
{
  const TPixel *  pixel;
  const TFirst *  first;
  const TSecond * second;
  std::int64_t    pixelStep;
  std::int64_t    momentStep;
  std::int64_t    radius;
  int             taps; ///< of a window
  int             lower;
  int             upper;

  __device__ __forceinline__ bool
  Has(int j) const
  {
    return j >= lower && j < upper;
  }
  /** How many taps window `u` has. */
  __device__ __forceinline__ int
  Count(int u) const
  {
    return min(upper, taps + u) - max(lower, u);
  }
  __device__ __forceinline__ void
  Next()
  {
    pixel += pixelStep;
    first += momentStep;
    second += momentStep;
  }
};

template <bool VFirst, int VOutputs, typename TPixel, typename TFirst, typename TSecond>
__device__ __forceinline__ PassTaps<TPixel, TFirst, TSecond>
                           TapsOfPass(const VariancePass<TPixel, TFirst, TSecond> & g, const Coordinates & index)
{
  PassTaps<TPixel, TFirst, TSecond> taps;
  Coordinates                       at = index;
  taps.radius = g.radius.axis[g.axis];
  taps.taps = static_cast<int>(taps.radius + 1 + g.upper.axis[g.axis]);
  taps.pixelStep = g.pixels.stride.axis[g.axis];
  taps.momentStep = VFirst ? 0 : g.first.stride.axis[g.axis];
  at.axis[g.axis] -= taps.radius;
  const std::int64_t momentOffset = VFirst ? 0 : g.first.Offset(at);
  taps.pixel = g.pixels.data + g.pixels.Offset(at);
  taps.first = VFirst ? nullptr : g.first.data + momentOffset;
  taps.second = VFirst ? nullptr : g.second + momentOffset;
  const Box &        before = VFirst ? g.pixels.box : g.first.box;
  const std::int64_t wanted = taps.taps + VOutputs - 1;
  taps.lower = static_cast<int>(max(std::int64_t{ 0 }, before.lower.axis[g.axis] - at.axis[g.axis]));
  taps.upper = static_cast<int>(min(wanted, before.upper.axis[g.axis] - at.axis[g.axis]));
  return taps;
}

/** Integers: the sum of all taps up to one, minus what is before the window. Windows have at least VOutputs taps. */
template <bool VFirst, int VOutputs, typename TPixel, typename TFirst, typename TSecond>
__device__ __forceinline__ void
SumTaps(PassTaps<TPixel, TFirst, TSecond> taps, TFirst (&firsts)[VOutputs], TSecond (&seconds)[VOutputs])
{
  TFirst     sum = 0;
  TSecond    squares = 0;
  const auto add = [&](int j) {
    if (taps.Has(j))
    {
      if constexpr (VFirst)
      {
        const auto value = static_cast<TFirst>(*taps.pixel);
        sum += value;
        squares += static_cast<TSecond>(value) * value;
      }
      else
      {
        sum += *taps.first;
        squares += *taps.second;
      }
    }
    taps.Next();
  };
#pragma unroll
  for (int u = 0; u < VOutputs; ++u)
  {
    firsts[u] = sum;
    seconds[u] = squares;
    if (u + 1 < VOutputs)
    {
      add(u);
    }
  }
  for (int j = VOutputs - 1; j < taps.taps - 1; ++j)
  {
    add(j);
  }
#pragma unroll
  for (int u = 0; u < VOutputs; ++u)
  {
    add(taps.taps - 1 + u);
    firsts[u] = sum - firsts[u];
    seconds[u] = squares - seconds[u];
  }
}

/** Merges moments that are floating-point numbers. */
template <bool VFirst, int VOutputs, typename TPixel, typename TReal>
__device__ __forceinline__ void
MergeTaps(PassTaps<TPixel, TReal, TReal> taps, TReal (&firsts)[VOutputs], TReal (&seconds)[VOutputs])
{
  TPixel               centers[VOutputs];
  MergedMoments<TReal> moments[VOutputs];
#pragma unroll
  for (int u = 0; u < VOutputs; ++u)
  {
    const std::int64_t tap = taps.radius + u;
    centers[u] = tap < taps.upper ? taps.pixel[tap * taps.pixelStep] : TPixel(0);
  }
  // Adds to the outputs from `from` on, and before `until`.
  const auto add = [&](int j, int from, int until) {
    if (taps.Has(j))
    {
      const TPixel x = *taps.pixel;
#pragma unroll
      for (int u = 0; u < VOutputs; ++u)
      {
        if (u >= from && u < until)
        {
          if constexpr (VFirst)
          {
            // Variances of single voxels are 0 and stay 0.
            const TReal difference = Difference<TReal>(x, centers[u]);
            moments[u].sum += difference;
            moments[u].squares += difference * difference;
          }
          else
          {
            moments[u].Add(Difference<TReal>(x, centers[u]) + *taps.first, *taps.second);
          }
        }
      }
    }
    taps.Next();
  };
#pragma unroll
  for (int j = 0; j + 1 < VOutputs; ++j)
  {
    add(j, 0, j + 1);
  }
  for (int j = VOutputs - 1; j < taps.taps; ++j)
  {
    add(j, 0, VOutputs);
  }
#pragma unroll
  for (int j = 1; j < VOutputs; ++j)
  {
    add(taps.taps - 1 + j, j, VOutputs);
  }
  const TReal ofWhole = TReal(1) / static_cast<TReal>(taps.taps);
#pragma unroll
  for (int u = 0; u < VOutputs; ++u)
  {
    const int   n = taps.Count(u);
    const TReal inverse = n == taps.taps ? ofWhole : TReal(1) / static_cast<TReal>(n);
    firsts[u] = moments[u].Mean(inverse);
    seconds[u] = moments[u].Variance(inverse);
  }
}

/** Stores the results of the last pass; `left`: as many outputs as there are. */
template <int VOutputs, typename TPixel, typename TFirst, typename TSecond>
__device__ __forceinline__ void
StoreVariances(const VariancePass<TPixel, TFirst, TSecond> & g, const PassTaps<TPixel, TFirst, TSecond> & taps,
               const Coordinates & index, std::int64_t left, const TFirst (&firsts)[VOutputs],
               const TSecond (&seconds)[VOutputs])
{
  using Types = MomentTypes<TPixel>;
  using Real = std::conditional_t<Types::IsExact, double, TFirst>;
  std::int64_t others = 1;
  for (int a = 0; Types::IsExact && a < MaxDimension; ++a)
  {
    others *= a == g.axis ? 1 : TapRange(index.axis[a], g.radius.axis[a], g.upper.axis[a], g.pixels.box, a).Count();
  }
  // One after the other, as they were summed: all at once take more registers than the sums.
  const std::int64_t at = g.out.Offset(index);
  const std::int64_t step = g.out.stride.axis[g.axis];
#pragma unroll
  for (int u = 0; u < VOutputs; ++u)
  {
    if (u < left)
    {
      Real variance[1];
      if constexpr (Types::IsExact)
      {
        variance[0] = VarianceOfSums(static_cast<std::int64_t>(firsts[u]),
                                     static_cast<typename Types::Second>(seconds[u]),
                                     others * taps.Count(u));
      }
      else
      {
        variance[0] = seconds[u];
      }
      variance[0] = FinishVariance<Real>(variance[0], g.takesRoot);
      StoreResults<TPixel>(g.out.data, g.kind, at + u * step, 0, 1, variance);
    }
  }
}

/** Stores what other passes hand on. */
template <int VOutputs, typename TPixel, typename TFirst, typename TSecond>
__device__ __forceinline__ void
HandOn(const VariancePass<TPixel, TFirst, TSecond> & g, const Coordinates & index, std::int64_t left,
       const TFirst (&firsts)[VOutputs], const TSecond (&seconds)[VOutputs])
{
  const std::int64_t offset = g.firstOut.Offset(index);
  if (g.axis == 0)
  {
    StoreRun(g.firstOut.data + offset, firsts);
    StoreRun(g.secondOut + offset, seconds);
    return;
  }
  const std::int64_t step = g.firstOut.stride.axis[g.axis];
#pragma unroll
  for (int u = 0; u < VOutputs; ++u)
  {
    if (u < left)
    {
      g.firstOut.data[offset + u * step] = firsts[u];
      g.secondOut[offset + u * step] = seconds[u];
    }
  }
}

template <bool VFirst, bool VLast, int VOutputs, typename TPixel, typename TFirst, typename TSecond>
__global__ void __launch_bounds__(128)
  VariancePassKernel(const __grid_constant__ VariancePass<TPixel, TFirst, TSecond> g)
{
  const std::int64_t extent = g.after.Extent(g.axis);
  const std::int64_t count = g.after.NumberOfVoxels() / extent * ((extent + VOutputs - 1) / VOutputs);
  const bool         isSmall = count < std::int64_t{ 1 } << 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const Coordinates index = FirstOutput<VOutputs>(g.after, g.axis, i, isSmall);
    const auto        taps = TapsOfPass<VFirst, VOutputs>(g, index);
    TFirst            firsts[VOutputs];
    TSecond           seconds[VOutputs];
    if constexpr (MomentTypes<TPixel>::IsExact)
    {
      SumTaps<VFirst>(taps, firsts, seconds);
    }
    else
    {
      MergeTaps<VFirst>(taps, firsts, seconds);
    }
    const std::int64_t left = g.after.upper.axis[g.axis] - index.axis[g.axis];
    if constexpr (VLast)
    {
      StoreVariances(g, taps, index, left, firsts, seconds);
    }
    else
    {
      HandOn(g, index, left, firsts, seconds);
    }
  }
}

/** Whether sums of 8- and 16-bit integers are kept in fewer bits. */
bool
CountsNarrow(const SidedBoxes & boxes)
{
  std::int64_t voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= boxes.Taps(a);
  }
  return voxels <= NarrowTaps;
}

/** Bytes of what a pass hands on: both arrays. */
template <typename TPixel>
std::size_t
VariancePassBytes(const SidedBoxes & boxes, int pass)
{
  const auto n = static_cast<std::size_t>(pass + 1 < boxes.count ? PaddedCount(boxes.after[pass]) : 0);
  const auto bytesOf = [n](auto types) {
    using Types = decltype(types);
    return RoundUp(n * sizeof(typename Types::First)) + RoundUp(n * sizeof(typename Types::Second));
  };
  return CountsNarrow(boxes) ? bytesOf(PassTypes<TPixel, true>()) : bytesOf(PassTypes<TPixel, false>());
}

/** The type that passes after the first have for TPixel. For integers they read sums alone, so that types of one size,
 * and with wide sums those of 8 and 16 bits, share their kernels. */
template <typename TPixel, bool VNarrow>
struct LaterPixel
{
  static constexpr bool IsExact = MomentTypes<TPixel>::IsExact;
  using Small = std::conditional_t<sizeof(TPixel) == 1 && VNarrow, std::uint8_t, std::uint16_t>;
  using Type = std::conditional_t<!IsExact, TPixel, std::conditional_t<sizeof(TPixel) == 4, std::uint32_t, Small>>;
};

template <bool VNarrow, int VOutputs, typename TPixel>
void
LaunchVariancePass(const SidedBoxes & boxes, int pass, const Voxels<const TPixel> & pixels, char * const (&buffers)[2],
                   const BufferView & output, bool takesRoot, cudaStream_t stream)
{
  using First = typename PassTypes<TPixel, VNarrow>::First;
  using Second = typename PassTypes<TPixel, VNarrow>::Second;
  const Box &        after = boxes.after[pass];
  const int          axis = boxes.axes[pass];
  const std::int64_t extent = after.Extent(axis);
  const std::int64_t threads = after.NumberOfVoxels() / extent * ((extent + VOutputs - 1) / VOutputs);
  const auto         secondsOf = [&](int of) {
    const auto n = static_cast<std::size_t>(PaddedCount(boxes.after[of]));
    return reinterpret_cast<Second *>(buffers[of % 2] + RoundUp(n * sizeof(First)));
  };
  const auto launch = [&](auto isFirst, auto isLast) {
    constexpr bool first = decltype(isFirst)::value;
    constexpr bool last = decltype(isLast)::value;
    using Pixel = std::conditional_t<first, TPixel, typename LaterPixel<TPixel, VNarrow>::Type>;
    VariancePass<Pixel, First, Second> g{};
    g.pixels = { reinterpret_cast<const Pixel *>(pixels.data), pixels.box, pixels.stride };
    if constexpr (!first)
    {
      g.first = PaddedVoxels(reinterpret_cast<const First *>(buffers[(pass + 1) % 2]), boxes.Before(pass));
      g.second = secondsOf(pass - 1);
    }
    if constexpr (last)
    {
      g.out = VoxelsOf<char>(output);
      g.kind = output.kind;
    }
    else
    {
      g.firstOut = PaddedVoxels(reinterpret_cast<First *>(buffers[pass % 2]), after);
      g.secondOut = secondsOf(pass);
    }
    g.after = after;
    g.radius = boxes.radius;
    g.upper = boxes.upper;
    g.axis = axis;
    g.takesRoot = takesRoot;
    VariancePassKernel<first, last, VOutputs, Pixel, First, Second><<<BlocksFor(threads, 128), 128, 0, stream>>>(g);
    CheckLaunch("VariancePassKernel");
  };
  const bool isLast = pass + 1 == boxes.count;
  if (pass == 0)
  {
    isLast ? launch(std::true_type(), std::true_type()) : launch(std::true_type(), std::false_type());
  }
  else
  {
    isLast ? launch(std::false_type(), std::true_type()) : launch(std::false_type(), std::false_type());
  }
}

template <typename TPixel>
void
RunPassesOf(const SidedBoxes & boxes, const Voxels<const TPixel> & pixels, const BufferView & output, bool takesRoot,
            char * scratch, cudaStream_t stream)
{
  char * const buffers[2] = { scratch, scratch + VariancePassBytes<TPixel>(boxes, 0) };
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    const auto launch = [&](auto isNarrow, auto outputs) {
      LaunchVariancePass<decltype(isNarrow)::value, decltype(outputs)::value, TPixel>(
        boxes, pass, pixels, buffers, output, takesRoot, stream);
    };
    const std::int64_t taps = boxes.Taps(boxes.axes[pass]);
    // Wide accumulators fill the registers.
    constexpr int most = sizeof(TPixel) <= 2 || std::is_same<TPixel, float>::value ? 8 : 4;
    const auto    launchFor = [&](auto isNarrow) {
      taps >= most ? launch(isNarrow, std::integral_constant<int, most>())
      : taps >= 4  ? launch(isNarrow, std::integral_constant<int, 4>())
                   : launch(isNarrow, std::integral_constant<int, 1>());
    };
    if constexpr (PassTypes<TPixel, true>::IsNarrow)
    {
      CountsNarrow(boxes) ? launchFor(std::true_type()) : launchFor(std::false_type());
    }
    else
    {
      launchFor(std::false_type());
    }
  }
}

} // namespace

void
RunVariancePasses(PixelType kind, const SidedBoxes & boxes, const Voxels<const char> & pixels,
                  const BufferView & output, bool takesRoot, char * scratch, cudaStream_t stream)
{
  DispatchPixelType(kind, [&](auto pixel) {
    RunPassesOf(boxes, CastVoxels<const decltype(pixel)>(pixels), output, takesRoot, scratch, stream);
  });
}

std::size_t
VariancePassesBytes(PixelType kind, const SidedBoxes & boxes)
{
  return DispatchPixelType(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    return VariancePassBytes<Pixel>(boxes, 0) + VariancePassBytes<Pixel>(boxes, 1);
  });
}

} // namespace chunkwise
