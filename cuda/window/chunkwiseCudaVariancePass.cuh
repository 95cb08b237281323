/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVariancePass_cuh
#define chunkwiseCudaVariancePass_cuh

#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseMoments.h"

#include <cstring>
#include <type_traits>

// VarianceOperation pass by pass, for windows of any size. A thread has several outputs next to each other along the
// pass' axis, so that what it loads serves them all.
namespace chunkwise
{

/** Taps of a window along one axis: those of [i - radius, i + radius] that there are. */
struct TapRange
{
  std::int64_t lower;
  std::int64_t upper;

  __device__
  TapRange(std::int64_t i, std::int64_t radius, const Box & box, int a)
    : lower(i - radius > box.lower.axis[a] ? i - radius : box.lower.axis[a])
    , upper(i + radius < box.upper.axis[a] - 1 ? i + radius + 1 : box.upper.axis[a])
  {}
  __device__ std::int64_t
             Count() const
  {
    return upper - lower;
  }
};

/** The most voxels of windows whose sums of 8- and 16-bit integers are kept in fewer bits: twice as many fit. */
constexpr std::int64_t NarrowTaps = 16384;

/** What passes hand on. The bits of results are those of MomentTypes. */
template <typename TPixel, bool VNarrow>
struct PassTypes
{
  using Types = MomentTypes<TPixel>;
  static constexpr bool IsNarrow = VNarrow && Types::IsExact && sizeof(TPixel) <= 2;
  using First = std::conditional_t<IsNarrow, std::int32_t, typename Types::First>;
  using Second = std::conditional_t<IsNarrow && sizeof(TPixel) == 1, std::int32_t, typename Types::Second>;
};

/** Elements of a row of what passes hand on: results that lie next to each other are stored together. */
inline std::int64_t
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

inline std::int64_t
PaddedCount(const Box & box)
{
  return box.IsEmpty() ? 0 : box.NumberOfVoxels() / box.Extent(0) * PaddedRow(box.Extent(0));
}

template <typename TPixel, typename TOut, typename TFirst, typename TSecond>
struct VariancePass
{
  Voxels<const TPixel> pixels;
  /** Of the box before; second has the same box and strides. */
  Voxels<const TFirst> first;
  const TSecond *      second;
  /** The same of the box after. */
  Voxels<TFirst> firstOut;
  TSecond *      secondOut;
  Voxels<TOut>   out;
  Box            after;
  Coordinates    radius;
  int            axis;
  bool           takesRoot;
};

/** Where a thread's outputs begin: number `i` of the box with its `axis` in pieces of VOutputs, x fastest. */
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

/** One pass. Windows have at least VOutputs taps along its axis. */
template <bool VFirst, bool VLast, bool VNarrow, int VOutputs, typename TPixel, typename TOut>
__global__ void __launch_bounds__(128)
  VariancePassKernel(const __grid_constant__ VariancePass<TPixel, TOut, typename PassTypes<TPixel, VNarrow>::First,
                                                          typename PassTypes<TPixel, VNarrow>::Second>
                                             g)
{
  using Types = MomentTypes<TPixel>;
  using First = typename PassTypes<TPixel, VNarrow>::First;
  using Second = typename PassTypes<TPixel, VNarrow>::Second;
  const int          axis = g.axis;
  const std::int64_t extent = g.after.Extent(axis);
  const std::int64_t count = g.after.NumberOfVoxels() / extent * ((extent + VOutputs - 1) / VOutputs);
  const bool         isSmall = count < std::int64_t{ 1 } << 32;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t radius = g.radius.axis[axis];
  const int          taps = static_cast<int>(2 * radius + 1);
  const Box &        before = VFirst ? g.pixels.box : g.first.box;
  const std::int64_t pixelStep = g.pixels.stride.axis[axis];
  const std::int64_t momentStep = VFirst ? 0 : g.first.stride.axis[axis];
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
  {
    const Coordinates index = FirstOutput<VOutputs>(g.after, axis, i, isSmall);
    Coordinates       at = index;
    at.axis[axis] -= radius;
    const TPixel *     pixel = g.pixels.data + g.pixels.Offset(at);
    const std::int64_t momentOffset = VFirst ? 0 : g.first.Offset(at);
    const First *      d = VFirst ? nullptr : g.first.data + momentOffset;
    const Second *     v = VFirst ? nullptr : g.second + momentOffset;
    // Which of the taps of all outputs there are.
    const std::int64_t wanted = taps + VOutputs - 1;
    const int          lower = static_cast<int>(max(std::int64_t{ 0 }, before.lower.axis[axis] - at.axis[axis]));
    const int          upper = static_cast<int>(min(wanted, before.upper.axis[axis] - at.axis[axis]));
    First              firsts[VOutputs];
    Second             seconds[VOutputs];
    const auto         tapsOf = [&](int u) { return min(upper, taps + u) - max(lower, u); };
    if constexpr (Types::IsExact)
    {
      // The sum of all taps up to one, minus what is before the window.
      First      sum = 0;
      Second     squares = 0;
      const auto add = [&](int j) {
        if (j >= lower && j < upper)
        {
          if constexpr (VFirst)
          {
            const auto value = static_cast<First>(*pixel);
            sum += value;
            squares += static_cast<Second>(value) * value;
          }
          else
          {
            sum += *d;
            squares += *v;
          }
        }
        pixel += pixelStep;
        d += momentStep;
        v += momentStep;
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
      for (int j = VOutputs - 1; j < taps - 1; ++j)
      {
        add(j);
      }
#pragma unroll
      for (int u = 0; u < VOutputs; ++u)
      {
        add(taps - 1 + u);
        firsts[u] = sum - firsts[u];
        seconds[u] = squares - seconds[u];
      }
    }
    else
    {
      TPixel               centers[VOutputs];
      MergedMoments<First> moments[VOutputs];
#pragma unroll
      for (int u = 0; u < VOutputs; ++u)
      {
        const std::int64_t tap = radius + u;
        centers[u] = tap < upper ? pixel[tap * pixelStep] : TPixel(0);
      }
      // Of outputs from `from` on, and before `until`.
      const auto add = [&](int j, int from, int until) {
        if (j >= lower && j < upper)
        {
          const TPixel x = *pixel;
#pragma unroll
          for (int u = 0; u < VOutputs; ++u)
          {
            if (u >= from && u < until)
            {
              if constexpr (VFirst)
              {
                // Variances of single voxels are 0 and stay 0.
                const First difference = Difference<First>(x, centers[u]);
                moments[u].sum += difference;
                moments[u].squares += difference * difference;
              }
              else
              {
                moments[u].Add(Difference<First>(x, centers[u]) + *d, *v);
              }
            }
          }
        }
        pixel += pixelStep;
        d += momentStep;
        v += momentStep;
      };
#pragma unroll
      for (int j = 0; j + 1 < VOutputs; ++j)
      {
        add(j, 0, j + 1);
      }
      for (int j = VOutputs - 1; j < taps; ++j)
      {
        add(j, 0, VOutputs);
      }
#pragma unroll
      for (int j = 1; j < VOutputs; ++j)
      {
        add(taps - 1 + j, j, VOutputs);
      }
      const First ofWhole = First(1) / static_cast<First>(taps);
#pragma unroll
      for (int u = 0; u < VOutputs; ++u)
      {
        const int   n = tapsOf(u);
        const First inverse = n == taps ? ofWhole : First(1) / static_cast<First>(n);
        firsts[u] = moments[u].Mean(inverse);
        seconds[u] = moments[u].Variance(inverse);
      }
    }
    const std::int64_t left = g.after.upper.axis[axis] - index.axis[axis];
    if constexpr (VLast)
    {
      std::int64_t others = 1;
      for (int a = 0; Types::IsExact && a < MaxDimension; ++a)
      {
        others *= a == axis ? 1 : TapRange(index.axis[a], g.radius.axis[a], g.pixels.box, a).Count();
      }
      TOut * const       to = g.out.data + g.out.Offset(index);
      const std::int64_t toStep = g.out.stride.axis[axis];
#pragma unroll
      for (int u = 0; u < VOutputs; ++u)
      {
        if (u < left)
        {
          if constexpr (Types::IsExact)
          {
            to[u * toStep] = FinishVariance<TOut>(VarianceOfSums(static_cast<std::int64_t>(firsts[u]),
                                                                 static_cast<typename Types::Second>(seconds[u]),
                                                                 others * tapsOf(u)),
                                                  g.takesRoot);
          }
          else
          {
            to[u * toStep] = FinishVariance<TOut>(seconds[u], g.takesRoot);
          }
        }
      }
    }
    else
    {
      const std::int64_t offset = g.firstOut.Offset(index);
      if (axis == 0)
      {
        StoreRun(g.firstOut.data + offset, firsts);
        StoreRun(g.secondOut + offset, seconds);
      }
      else
      {
        const std::int64_t toStep = g.firstOut.stride.axis[axis];
#pragma unroll
        for (int u = 0; u < VOutputs; ++u)
        {
          if (u < left)
          {
            g.firstOut.data[offset + u * toStep] = firsts[u];
            g.secondOut[offset + u * toStep] = seconds[u];
          }
        }
      }
    }
  }
}

/** Whether sums of 8- and 16-bit integers are kept in fewer bits. */
inline bool
CountsNarrow(const WindowBoxes & boxes)
{
  std::int64_t voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= 2 * boxes.radius[a] + 1;
  }
  return voxels <= NarrowTaps;
}

/** Bytes of what a pass hands on: both arrays. */
template <typename TPixel>
std::size_t
VariancePassBytes(const WindowBoxes & boxes, int pass)
{
  const auto n = static_cast<std::size_t>(pass + 1 < boxes.count ? PaddedCount(boxes.after[pass]) : 0);
  const auto bytesOf = [n](auto types) {
    using Types = decltype(types);
    return RoundUp(n * sizeof(typename Types::First)) + RoundUp(n * sizeof(typename Types::Second));
  };
  return CountsNarrow(boxes) ? bytesOf(PassTypes<TPixel, true>()) : bytesOf(PassTypes<TPixel, false>());
}

template <bool VNarrow, int VOutputs, typename TPixel, typename TOut>
void
LaunchVariancePass(const WindowBoxes & boxes, int pass, const Voxels<const TPixel> & pixels, char * const (&buffers)[2],
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
    // What is not the last does not depend on the output.
    using Out = std::conditional_t<last, TOut, float>;
    VariancePass<TPixel, Out, First, Second> g{};
    g.pixels = pixels;
    if constexpr (!first)
    {
      g.first = PaddedVoxels(reinterpret_cast<const First *>(buffers[(pass + 1) % 2]), boxes.Before(pass));
      g.second = secondsOf(pass - 1);
    }
    if constexpr (last)
    {
      g.out = VoxelsOf<Out>(output);
    }
    else
    {
      g.firstOut = PaddedVoxels(reinterpret_cast<First *>(buffers[pass % 2]), after);
      g.secondOut = secondsOf(pass);
    }
    g.after = after;
    g.radius = boxes.radius;
    g.axis = axis;
    g.takesRoot = takesRoot;
    VariancePassKernel<first, last, VNarrow, VOutputs, TPixel, Out><<<BlocksFor(threads, 128), 128, 0, stream>>>(g);
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

/** All passes. `scratch` has the bytes of the first two. */
template <typename TPixel, typename TOut>
void
LaunchVariancePasses(const WindowBoxes & boxes, const Voxels<const TPixel> & pixels, const BufferView & output,
                     bool takesRoot, char * scratch, cudaStream_t stream)
{
  char * const buffers[2] = { scratch, scratch + VariancePassBytes<TPixel>(boxes, 0) };
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    const auto launch = [&](auto isNarrow, auto outputs) {
      LaunchVariancePass<decltype(isNarrow)::value, decltype(outputs)::value, TPixel, TOut>(
        boxes, pass, pixels, buffers, output, takesRoot, stream);
    };
    const std::int64_t taps = 2 * boxes.radius[boxes.axes[pass]] + 1;
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

} // namespace chunkwise

#endif
