/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Compiled once for each instruction set, see chunkwiseCpuLevelFunctions.cxx.
#include "chunkwiseCpuResampleRows.h"
#include "chunkwiseSplineSums.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#if defined(__SSE2__)
#  include <immintrin.h>
#endif

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** Numbers that are summed together, so that sums stay in registers. */
template <typename TReal>
constexpr std::int64_t ResampleBlock = 128 / static_cast<std::int64_t>(sizeof(TReal));

/** Calls f(first, count) for blocks of n numbers; whole ones have a constant count. */
template <typename TReal, typename TFunctor>
inline void
ForResampleBlocks(std::int64_t n, TFunctor && f)
{
  constexpr std::int64_t block = ResampleBlock<TReal>;
  std::int64_t           first = 0;
  for (; first + block <= n; first += block)
  {
    f(first, std::integral_constant<std::int64_t, block>{});
  }
  for (; first < n; ++first)
  {
    f(first, std::integral_constant<std::int64_t, 1>{});
  }
}

/** Sums of differences are those of SplineSums::Sum. Short loops over arrays take half the time of one over Sum. */
template <typename TReal>
void
FilterSpline(TReal * out, const TReal * row, std::int64_t stride, const SplineSums<TReal> & sums, std::int64_t n)
{
  constexpr int           numberOfFours = sizeof(TReal) == sizeof(float) ? 4 : 7;
  const SplineSums<TReal> own = sums;
  ForResampleBlocks<TReal>(n, [&](std::int64_t first, auto count) {
    constexpr std::int64_t block = decltype(count)::value;
    TReal                  ofSides[2][block];
    for (int side = 0; side < 2; ++side)
    {
      const std::int64_t step = side == 0 ? -stride : stride;
      TReal              fours[numberOfFours][block];
      for (int k = 0; k < numberOfFours; ++k)
      {
        const TReal * const a = row + first + 4 * k * step;
        const TReal * const b = a + step;
        const TReal * const c = b + step;
        const TReal * const d = c + step;
        const TReal * const e = d + step;
        for (std::int64_t j = 0; j < block; ++j)
        {
          fours[k][j] = ((b[j] - a[j]) + own.powers[0] * (c[j] - b[j])) +
                        own.powers[1] * ((d[j] - c[j]) + own.powers[0] * (e[j] - d[j]));
        }
      }
      const auto eight = [&](int k, std::int64_t j) { return fours[k][j] + own.powers[2] * fours[k + 1][j]; };
      for (std::int64_t j = 0; j < block; ++j)
      {
        ofSides[side][j] = eight(0, j) + own.powers[3] * eight(2, j);
        if constexpr (numberOfFours == 7)
        {
          ofSides[side][j] += own.powers[4] * (eight(4, j) + own.powers[3] * fours[6][j]);
        }
      }
    }
    // Differences behind the voxels have the other sign here.
    for (std::int64_t j = 0; j < block; ++j)
    {
      out[first + j] = (row[first + j] + own.factor * ofSides[0][j]) + own.factor * ofSides[1][j];
    }
  });
}

template <typename TReal>
void
ResampleAcross(TReal * out, const TReal * const * rows, const TReal * weights, std::int64_t taps, std::int64_t below,
               std::int64_t n)
{
  const TReal * const base = rows[below];
  ForResampleBlocks<TReal>(n, [&](std::int64_t first, auto count) {
    constexpr std::int64_t block = decltype(count)::value;
    TReal                  center[block];
    TReal                  sum[block];
    for (std::int64_t j = 0; j < block; ++j)
    {
      sum[j] = center[j] = base[first + j];
    }
    for (std::int64_t k = 0; k < taps; ++k)
    {
      if (k != below)
      {
        const TReal         weight = weights[k];
        const TReal * const row = rows[k] + first;
        for (std::int64_t j = 0; j < block; ++j)
        {
          sum[j] += weight * (row[j] - center[j]);
        }
      }
    }
    for (std::int64_t j = 0; j < block; ++j)
    {
      out[first + j] = sum[j];
    }
  });
}

/** Numbers in a register, taken from places that lie apart. */
template <typename TReal>
struct ResampleLanes;

#if defined(__AVX512F__)
template <>
struct ResampleLanes<float>
{
  typedef float                 Type __attribute__((vector_size(64)));
  static constexpr std::int64_t Width = 16;
  static Type
  Gather(const float * from, const std::int32_t * index)
  {
    return _mm512_i32gather_ps(_mm512_loadu_si512(index), from, 4);
  }
};
template <>
struct ResampleLanes<double>
{
  typedef double                Type __attribute__((vector_size(64)));
  static constexpr std::int64_t Width = 8;
  static Type
  Gather(const double * from, const std::int32_t * index)
  {
    return _mm512_i32gather_pd(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(index)), from, 8);
  }
};
#elif defined(__AVX2__)
template <>
struct ResampleLanes<float>
{
  typedef float                 Type __attribute__((vector_size(32)));
  static constexpr std::int64_t Width = 8;
  static Type
  Gather(const float * from, const std::int32_t * index)
  {
    return _mm256_i32gather_ps(from, _mm256_loadu_si256(reinterpret_cast<const __m256i *>(index)), 4);
  }
};
template <>
struct ResampleLanes<double>
{
  typedef double                Type __attribute__((vector_size(32)));
  static constexpr std::int64_t Width = 4;
  static Type
  Gather(const double * from, const std::int32_t * index)
  {
    return _mm256_i32gather_pd(from, _mm_loadu_si128(reinterpret_cast<const __m128i *>(index)), 8);
  }
};
#else
template <>
struct ResampleLanes<float>
{
  typedef float                 Type __attribute__((vector_size(16)));
  static constexpr std::int64_t Width = 4;
  static Type
  Gather(const float * from, const std::int32_t * index)
  {
    return Type{ from[index[0]], from[index[1]], from[index[2]], from[index[3]] };
  }
};
template <>
struct ResampleLanes<double>
{
  typedef double                Type __attribute__((vector_size(16)));
  static constexpr std::int64_t Width = 2;
  static Type
  Gather(const double * from, const std::int32_t * index)
  {
    return Type{ from[index[0]], from[index[1]] };
  }
};
#endif

template <typename TReal>
inline typename ResampleLanes<TReal>::Type
LoadLanes(const TReal * from)
{
  typename ResampleLanes<TReal>::Type lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

/** VTaps: their number, 0 if it is not known. */
template <typename TReal, int VTaps>
inline void
ResampleAlongTaps(TReal * out, const TReal * in, const std::int32_t * first, const TReal * weights, std::int64_t stride,
                  std::int64_t taps, std::int64_t below, std::int64_t n)
{
  using Lanes = ResampleLanes<TReal>;
  taps = VTaps > 0 ? VTaps : taps;
  below = VTaps > 0 ? VTaps / 2 - 1 : below;
  std::int64_t j = 0;
  for (; j + Lanes::Width <= n; j += Lanes::Width)
  {
    const auto center = Lanes::Gather(in + below, first + j);
    auto       sum = center;
    for (std::int64_t k = 0; k < taps; ++k)
    {
      if (k != below)
      {
        sum += LoadLanes(weights + k * stride + j) * (Lanes::Gather(in + k, first + j) - center);
      }
    }
    std::memcpy(out + j, &sum, sizeof(sum));
  }
  for (; j < n; ++j)
  {
    const TReal * const from = in + first[j];
    const TReal         center = from[below];
    TReal               sum = center;
    for (std::int64_t k = 0; k < taps; ++k)
    {
      if (k != below)
      {
        sum += weights[k * stride + j] * (from[k] - center);
      }
    }
    out[j] = sum;
  }
}

template <typename TReal>
void
ResampleAlong(TReal * out, const TReal * in, const std::int32_t * first, const TReal * weights, std::int64_t stride,
              std::int64_t taps, std::int64_t below, std::int64_t n)
{
  switch (taps)
  {
    case 2:
      return ResampleAlongTaps<TReal, 2>(out, in, first, weights, stride, taps, below, n);
    case 4:
      return ResampleAlongTaps<TReal, 4>(out, in, first, weights, stride, taps, below, n);
    default:
      return ResampleAlongTaps<TReal, 0>(out, in, first, weights, stride, taps, below, n);
  }
}

template <typename TReal>
void
FindResampleTaps(const ResampleLine<TReal> & line, std::int32_t * index, std::int64_t n)
{
  TReal parts[ResampleRow];
  for (std::int64_t j = 0; line.points && j < n; ++j)
  {
    double point = line.points[j];
    point = point < line.lowest ? line.lowest : point;
    point = point > line.highest ? line.highest : point;
    const double below = std::floor(point);
    // False for NaN.
    const bool isThere = below >= static_cast<double>(line.from + line.below) &&
                         below <= static_cast<double>(line.to + line.below) && line.points[j] >= line.valueBelow &&
                         line.points[j] < line.valueFrom;
    const double place = isThere ? below - static_cast<double>(line.tile + line.below) : 0;
    index[j] += static_cast<std::int32_t>(place) * static_cast<std::int32_t>(line.stride);
    line.isAlone[j] |= isThere ? 0 : 1;
    parts[j] = static_cast<TReal>(point - below);
  }
  for (std::int64_t j = 0; !line.points && j < n; ++j)
  {
    double point = line.slope * static_cast<double>(line.begin + j) + line.base;
    point = point < line.lowest ? line.lowest : point;
    point = point > line.highest ? line.highest : point;
    const double below = std::floor(point);
    // Differences of numbers that a double has exactly.
    const auto voxel =
      static_cast<std::int32_t>(below - static_cast<double>(line.tile)) - static_cast<std::int32_t>(line.below);
    index[j] += voxel * static_cast<std::int32_t>(line.stride);
    parts[j] = static_cast<TReal>(point - below);
  }
  if (line.taps == 2)
  {
    for (std::int64_t j = 0; j < n; ++j)
    {
      line.weights[j] = 1 - parts[j];
      line.weights[ResampleRow + j] = parts[j];
    }
    return;
  }
  const TReal sixth = static_cast<TReal>(1.0 / 6.0);
  for (std::int64_t j = 0; j < n; ++j)
  {
    const TReal t = parts[j];
    const TReal s = 1 - t;
    const TReal square = t * t;
    const TReal w0 = s * s * s * sixth;
    const TReal w1 = static_cast<TReal>(2.0 / 3.0) - square + square * t * static_cast<TReal>(0.5);
    const TReal w3 = square * t * sixth;
    line.weights[j] = w0;
    line.weights[ResampleRow + j] = w1;
    line.weights[2 * ResampleRow + j] = 1 - w0 - w1 - w3;
    line.weights[3 * ResampleRow + j] = w3;
  }
}

/** The voxels at places from `from` on, and those beside them along x. */
template <typename TReal>
inline void
GatherPairs(const TReal * from, const std::int32_t * index, typename ResampleLanes<TReal>::Type & first,
            typename ResampleLanes<TReal>::Type & second)
{
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (sizeof(TReal) == sizeof(float))
  {
    // A pair is one number of 64 bits.
    const auto pairs = [&](int k) {
      const __m128i places = _mm_loadu_si128(reinterpret_cast<const __m128i *>(index + 4 * k));
      return _mm256_castpd_ps(_mm256_i32gather_pd(reinterpret_cast<const double *>(from), places, 4));
    };
    const __m256 low = pairs(0);
    const __m256 high = pairs(1);
    const auto   inOrder = [](__m256 mixed) {
      return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xD8));
    };
    first = inOrder(_mm256_shuffle_ps(low, high, 0x88));
    second = inOrder(_mm256_shuffle_ps(low, high, 0xDD));
    return;
  }
#endif
  first = ResampleLanes<TReal>::Gather(from, index);
  second = ResampleLanes<TReal>::Gather(from + 1, index);
}

/** VTaps: of each axis, 0 if they are not known; VDepth: of the third one. */
template <typename TReal, int VTaps, int VDepth>
inline void
GatherTaps(TReal * out, const TReal * in, const std::int32_t * index, const ResampleLine<TReal> * lines, std::int64_t n)
{
  using Lanes = ResampleLanes<TReal>;
  const std::int64_t taps[3] = { VTaps > 0 ? VTaps : lines[0].taps,
                                 VTaps > 0 ? VTaps : lines[1].taps,
                                 VTaps > 0 ? VDepth : lines[2].taps };
  const std::int64_t below[3] = { VTaps > 0 ? VTaps / 2 - 1 : lines[0].below,
                                  VTaps > 0 ? VTaps / 2 - 1 : lines[1].below,
                                  VTaps > 0 ? (VDepth > 1 ? VDepth / 2 - 1 : 0) : lines[2].below };
  // Rows have room for whole registers.
  for (std::int64_t j = 0; j < n; j += Lanes::Width)
  {
    const auto weigh = [&](int axis, std::int64_t k) { return LoadLanes(lines[axis].weights + k * ResampleRow + j); };
    const auto row = [&](std::int64_t y, std::int64_t z) {
      const TReal * const voxels = in + y * lines[1].stride + z * lines[2].stride;
      if constexpr (VTaps == 2)
      {
        typename Lanes::Type first;
        typename Lanes::Type second;
        GatherPairs<TReal>(voxels, index + j, first, second);
        return first + weigh(0, 1) * (second - first);
      }
      const auto center = Lanes::Gather(voxels + below[0], index + j);
      auto       sum = center;
      for (std::int64_t k = 0; k < taps[0]; ++k)
      {
        if (k != below[0])
        {
          sum += weigh(0, k) * (Lanes::Gather(voxels + k, index + j) - center);
        }
      }
      return sum;
    };
    const auto plane = [&](std::int64_t z) {
      const auto center = row(below[1], z);
      auto       sum = center;
      for (std::int64_t k = 0; k < taps[1]; ++k)
      {
        if (k != below[1])
        {
          sum += weigh(1, k) * (row(k, z) - center);
        }
      }
      return sum;
    };
    const auto center = plane(below[2]);
    auto       sum = center;
    for (std::int64_t k = 0; k < taps[2]; ++k)
    {
      if (k != below[2])
      {
        sum += weigh(2, k) * (plane(k) - center);
      }
    }
    std::memcpy(out + j, &sum, sizeof(sum));
  }
}

template <typename TReal>
void
GatherRow(TReal * out, const TReal * in, const std::int32_t * index, const ResampleLine<TReal> * lines, std::int64_t n)
{
  const std::int64_t taps = lines[0].taps;
  const std::int64_t depth = lines[2].taps;
  if (taps == 2 && lines[1].taps == 2 && depth == 2)
  {
    return GatherTaps<TReal, 2, 2>(out, in, index, lines, n);
  }
  if (taps == 2 && lines[1].taps == 2 && depth == 1)
  {
    return GatherTaps<TReal, 2, 1>(out, in, index, lines, n);
  }
  if (taps == 4 && lines[1].taps == 4 && depth == 4)
  {
    return GatherTaps<TReal, 4, 4>(out, in, index, lines, n);
  }
  if (taps == 4 && lines[1].taps == 4 && depth == 1)
  {
    return GatherTaps<TReal, 4, 1>(out, in, index, lines, n);
  }
  GatherTaps<TReal, 0, 0>(out, in, index, lines, n);
}

template <typename TReal>
ResampleFunctions<TReal>
MakeResampleFunctions()
{
  return {
    FilterSpline<TReal>, ResampleAcross<TReal>, ResampleAlong<TReal>, FindResampleTaps<TReal>, GatherRow<TReal>
  };
}

ResampleLevel
MakeResampleLevel()
{
  return { MakeResampleFunctions<float>(), MakeResampleFunctions<double>() };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
