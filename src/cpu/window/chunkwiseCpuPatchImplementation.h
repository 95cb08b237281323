/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Included by chunkwiseCpuLevelFunctions.cxx, see there. Rows of NonLocalMeansOperation.
#include "chunkwiseCpuVectors.h"
#include "chunkwisePatchWeight.h"

#include <type_traits>

namespace chunkwise
{
namespace CHUNKWISE_CPU_LEVEL
{

/** Calls body(number of taps) with a constant where there are few. */
template <typename TBody>
CHUNKWISE_ALWAYS_INLINE void
WithTaps(std::int64_t taps, TBody && body)
{
  switch (taps)
  {
    case 1:
      return body(std::integral_constant<std::int64_t, 1>{});
    case 3:
      return body(std::integral_constant<std::int64_t, 3>{});
    case 5:
      return body(std::integral_constant<std::int64_t, 5>{});
    default:
      body(taps);
  }
}

template <typename TReal>
void
SumSquares(TReal * out, const TReal * a, const TReal * b, std::int64_t stride, std::int64_t taps, std::int64_t n)
{
  using V = RealVector<TReal>;
  WithTaps(taps, [&](auto count) {
    for (std::int64_t i = 0; i < n; i += V::Width)
    {
      typename V::Type sum{};
      for (std::int64_t t = 0; t < count; ++t)
      {
        const typename V::Type difference = V::Load(a + t * stride + i) - V::Load(b + t * stride + i);
        sum += difference * difference;
      }
      V::Store(out + i, sum);
    }
  });
}

template <typename TReal>
CHUNKWISE_ALWAYS_INLINE typename RealVector<TReal>::Type
SumOf(const TReal * in, std::int64_t stride, std::int64_t count)
{
  typename RealVector<TReal>::Type sum{};
  for (std::int64_t t = 0; t < count; ++t)
  {
    sum += RealVector<TReal>::Load(in + t * stride);
  }
  return sum;
}

template <typename TReal>
void
SumRows(TReal * out, const TReal * in, std::int64_t stride, std::int64_t taps, std::int64_t n)
{
  WithTaps(taps, [&](auto count) {
    for (std::int64_t i = 0; i < n; i += RealVector<TReal>::Width)
    {
      RealVector<TReal>::Store(out + i, SumOf(in + i, stride, count));
    }
  });
}

/** PatchWeight of vectors. */
template <typename TReal>
void
WeighPatches(TReal * out, const TReal * in, std::int64_t taps, const TReal * shares, TReal twiceNoise, TReal inverse,
             std::int64_t n)
{
  using V = RealVector<TReal>;
  WithTaps(taps, [&](auto count) {
    for (std::int64_t i = 0; i < n; i += V::Width)
    {
      const typename V::Type excess = SumOf(in + i, 1, count) * V::Load(shares + i) - twiceNoise;
      const typename V::Type t = (excess < TReal(0) ? typename V::Type{} : excess) * inverse;
      const auto             weight =
        NonLocalWeight<typename V::Float, typename V::Bits>(__builtin_convertvector(t, typename V::Float));
      V::Store(out + i, __builtin_convertvector(weight, typename V::Type));
    }
  });
}

template <typename TReal>
void
AddWeighted(TReal * weighted, TReal * weights, const TReal * const * w, const TReal * const * voxels, int count,
            std::int64_t n)
{
  using V = RealVector<TReal>;
  for (std::int64_t i = 0; i < n; i += V::Width)
  {
    typename V::Type sum = V::Load(weighted + i);
    typename V::Type all = V::Load(weights + i);
    for (int k = 0; k < count; ++k)
    {
      const typename V::Type weight = V::Load(w[k] + i);
      sum += weight * V::Load(voxels[k] + i);
      all += weight;
    }
    V::Store(weighted + i, sum);
    V::Store(weights + i, all);
  }
}

template <typename TReal>
PatchFunctions<TReal>
PatchRows()
{
  return { SumSquares<TReal>, SumRows<TReal>, WeighPatches<TReal>, AddWeighted<TReal> };
}

} // namespace CHUNKWISE_CPU_LEVEL
} // namespace chunkwise
