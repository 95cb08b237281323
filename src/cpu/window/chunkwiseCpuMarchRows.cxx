/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMarchRows.h"
#include "chunkwiseCpuPatchImplementation.h"
#include "chunkwiseCpuTogetherImplementation.h"

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** a - b of voxels; of 64-bit integers, which have the place of real numbers, exact before it is converted. */
template <typename TPixel, typename TReal>
CHUNKWISE_ALWAYS_INLINE VectorOf<TReal>
                        DifferenceOf(const TReal * a, const TReal * b)
{
  if constexpr (std::is_same<TPixel, TReal>::value)
  {
    return RealVector<TReal>::Load(a) - RealVector<TReal>::Load(b);
  }
  else
  {
    VectorOf<TReal> difference{};
    for (int i = 0; i < RealVector<TReal>::Width; ++i)
    {
      TPixel of[2];
      __builtin_memcpy(of, a + i, sizeof(TPixel));
      __builtin_memcpy(of + 1, b + i, sizeof(TPixel));
      difference[i] = static_cast<TReal>(static_cast<Int128>(of[0]) - static_cast<Int128>(of[1]));
    }
    return difference;
  }
}

template <typename TPixel, typename TReal, int VCount, int VVectors, bool VFirst, bool VLast>
CHUNKWISE_ALWAYS_INLINE void
MergeMomentBlock(const MomentStep<TReal> & step, std::int64_t i)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  struct Taken
  {
    const TReal * voxels;
    Vector        difference[VVectors];
    Vector        variance[VVectors];
  };
  const std::int64_t gap = step.gap;
  Vector             sums[VCount][VVectors]{};
  Vector             squares[VCount][VVectors]{};
  Vector             variances[VCount][VVectors]{};
  ForEachTap<VCount>(
    step.taps,
    [&](std::int64_t j) {
      Taken tap{ step.rows[j] + i, {}, {} };
#pragma GCC unroll 8
      for (int v = 0; !VFirst && v < VVectors; ++v)
      {
        tap.difference[v] = V::Load(tap.voxels + gap + v * V::Width);
        tap.variance[v] = V::Load(tap.voxels + 2 * gap + v * V::Width);
      }
      return tap;
    },
    [&](const Taken & tap, std::int64_t, int k) {
#pragma GCC unroll 8
      for (int v = 0; v < VVectors; ++v)
      {
        const std::int64_t at = v * V::Width;
        Vector             e = DifferenceOf<TPixel, TReal>(tap.voxels + at, step.centers[k] + i + at);
        if constexpr (!VFirst)
        {
          e = e + tap.difference[v];
          variances[k][v] = variances[k][v] + tap.variance[v];
        }
        sums[k][v] = sums[k][v] + e;
        squares[k][v] = squares[k][v] + e * e;
      }
    });
  const Vector inverse = step.inverse - Vector{};
#pragma GCC unroll 8
  for (int k = 0; k < VCount; ++k)
  {
#pragma GCC unroll 8
    for (int v = 0; v < VVectors; ++v)
    {
      const Vector  mean = sums[k][v] * inverse;
      const Vector  rest = squares[k][v] - sums[k][v] * mean;
      const Vector  between = rest < TReal(0) ? Vector{} : rest;
      const Vector  variance = (variances[k][v] + between) * inverse;
      TReal * const result = step.results[k] + i + v * V::Width;
      if constexpr (VLast)
      {
        V::Store(result, step.takesRoot ? Root<TReal>(variance) : variance);
      }
      else
      {
        V::Store(result, V::Load(step.centers[k] + i + v * V::Width));
        V::Store(result + step.resultGap, mean);
        V::Store(result + 2 * step.resultGap, variance);
      }
    }
  }
}

template <typename TPixel, typename TReal, int VCount, int VVectors, bool VFirst, bool VLast>
void
MergeMoments(const MomentStep<TReal> & step)
{
  constexpr std::int64_t width = RealVector<TReal>::Width;
  std::int64_t           i = 0;
  for (; i + (VVectors - 1) * width < step.n; i += VVectors * width)
  {
    MergeMomentBlock<TPixel, TReal, VCount, VVectors, VFirst, VLast>(step, i);
  }
  for (; i < step.n; i += width)
  {
    MergeMomentBlock<TPixel, TReal, VCount, 1, VFirst, VLast>(step, i);
  }
}

template <typename TReal, int VCount, int VVectors, bool VFirst, bool VLast>
CHUNKWISE_ALWAYS_INLINE void
MergeLaplacianBlock(const LaplacianStep<TReal> & step, std::int64_t i)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  struct Taken
  {
    Vector s[VVectors];
    Vector l[VVectors];
  };
  Vector s[VCount][VVectors]{};
  Vector l[VCount][VVectors]{};
  Vector centers[VCount][VVectors];
#pragma GCC unroll 8
  for (int k = 0; k < VCount; ++k)
  {
#pragma GCC unroll 8
    for (int v = 0; v < VVectors; ++v)
    {
      centers[k][v] = V::Load(step.centers[k] + i + v * V::Width);
    }
  }
  ForEachTap<VCount>(
    step.taps,
    [&](std::int64_t j) {
      const TReal * const row = step.rows[j] + i;
      Taken               taken{};
#pragma GCC unroll 8
      for (int v = 0; v < VVectors; ++v)
      {
        taken.s[v] = V::Load(row + v * V::Width);
        if constexpr (!VFirst)
        {
          taken.l[v] = V::Load(row + step.gap + v * V::Width);
        }
      }
      return taken;
    },
    [&](const Taken & tap, std::int64_t t, int k) {
      const Vector g = step.g[k][t] - Vector{};
      const Vector h = step.h[k][t] - Vector{};
#pragma GCC unroll 8
      for (int v = 0; v < VVectors; ++v)
      {
        if constexpr (!VLast)
        {
          s[k][v] = Fuse<TReal>(g, tap.s[v], s[k][v]);
        }
        if constexpr (!VFirst)
        {
          l[k][v] = Fuse<TReal>(g, tap.l[v], l[k][v]);
        }
        l[k][v] = Fuse<TReal>(h, tap.s[v] - centers[k][v], l[k][v]);
      }
    });
#pragma GCC unroll 8
  for (int k = 0; k < VCount; ++k)
  {
#pragma GCC unroll 8
    for (int v = 0; v < VVectors; ++v)
    {
      TReal * const result = step.results[k] + i + v * V::Width;
      if constexpr (VLast)
      {
        V::Store(result, l[k][v]);
      }
      else
      {
        V::Store(result, s[k][v]);
        V::Store(result + step.resultGap, l[k][v]);
      }
    }
  }
}

template <typename TReal, int VCount, int VVectors, bool VFirst, bool VLast>
void
MergeLaplacians(const LaplacianStep<TReal> & step)
{
  constexpr std::int64_t width = RealVector<TReal>::Width;
  std::int64_t           i = 0;
  for (; i + (VVectors - 1) * width < step.n; i += VVectors * width)
  {
    MergeLaplacianBlock<TReal, VCount, VVectors, VFirst, VLast>(step, i);
  }
  for (; i < step.n; i += width)
  {
    MergeLaplacianBlock<TReal, VCount, 1, VFirst, VLast>(step, i);
  }
}

template <typename TReal>
void
MergeCutLaplacians(const LaplacianStep<TReal> & step)
{
  using V = RealVector<TReal>;
  using Vector = VectorOf<TReal>;
  constexpr std::int64_t width = MarchLine / static_cast<std::int64_t>(sizeof(TReal));
  for (std::int64_t i = 0; i < step.n; i += V::Width)
  {
    const Vector center = V::Load(step.centers[0] + i);
    Vector       s{};
    Vector       l{};
    for (std::int64_t t = 0; t < step.taps; ++t)
    {
      const Vector g = V::Load(step.g[0] + t * width + i);
      const Vector h = V::Load(step.h[0] + t * width + i);
      const Vector x = V::Load(step.rows[t] + i);
      s = g == g ? Fuse<TReal>(g, x, s) : s;
      l = g == g ? Fuse<TReal>(h, x - center, l) : l;
    }
    V::Store(step.results[0] + i, step.isLast ? l : s);
    if (!step.isLast)
    {
      V::Store(step.results[0] + step.resultGap + i, l);
    }
  }
}

/** Calls f with constants: whether it is the first pass, and the last. */
template <typename TStep, typename TFunctor>
CHUNKWISE_ALWAYS_INLINE void
WithEnds(const TStep & step, TFunctor && f)
{
  if (step.isFirst)
  {
    step.isLast ? f(std::true_type{}, std::true_type{}) : f(std::true_type{}, std::false_type{});
  }
  else
  {
    step.isLast ? f(std::false_type{}, std::true_type{}) : f(std::false_type{}, std::false_type{});
  }
}

template <typename TReal>
void
MergeMomentRows(const MomentStep<TReal> & step)
{
  WithEnds(step, [&](auto first, auto last) {
    constexpr bool isFirst = decltype(first)::value;
    constexpr bool isLast = decltype(last)::value;
    step.count == 1 ? MergeMoments<TReal, TReal, 1, 2, isFirst, isLast>(step)
                    : MergeMoments<TReal, TReal, MarchTogether, 1, isFirst, isLast>(step);
  });
}

/** The same of 64-bit integers, one row after the other: most of the time goes into their differences. */
template <typename TPixel>
void
MergeIntegerRows(const MomentStep<double> & step)
{
  MomentStep<double> one = step;
  for (int k = 0; k < step.count; ++k)
  {
    one.rows = step.rows + k;
    one.centers[0] = step.centers[k];
    one.results[0] = step.results[k];
    WithEnds(step, [&](auto first, auto last) {
      MergeMoments<TPixel, double, 1, 1, decltype(first)::value, decltype(last)::value>(one);
    });
  }
}

template <typename TReal>
void
MergeLaplacianRows(const LaplacianStep<TReal> & step)
{
  WithEnds(step, [&](auto first, auto last) {
    step.count == 1 ? MergeLaplacians<TReal, 1, 4, decltype(first)::value, decltype(last)::value>(step)
                    : MergeLaplacians<TReal, MarchTogether, 2, decltype(first)::value, decltype(last)::value>(step);
  });
}

template <typename TReal>
MarchFunctions<TReal>
MarchRows()
{
  return { MergeMomentRows<TReal>, MergeLaplacianRows<TReal>, MergeCutLaplacians<TReal> };
}

MarchLevel
MakeMarchLevel()
{
  return { MarchRows<float>(), MarchRows<double>(), MergeIntegerRows<std::int64_t>, MergeIntegerRows<std::uint64_t> };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
