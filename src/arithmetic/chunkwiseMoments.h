/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMoments_h
#define chunkwiseMoments_h

#include "chunkwiseInt128.h"
#include "chunkwiseWindow.h"

#include <cmath>
#include <type_traits>

// The arithmetic of VarianceOperation, one source for every backend.
namespace chunkwise
{

/** The numbers that one pass hands to the next: the sum and the sum of squares of integers, or a difference of means
 * and a variance. */
template <typename TPixel>
struct MomentTypes
{
  static constexpr bool IsExact = std::is_integral<TPixel>::value && sizeof(TPixel) <= 4;
  using Real = std::conditional_t<std::is_same<TPixel, float>::value, float, double>;
  using First = std::conditional_t<IsExact, std::int64_t, Real>;
  using Second = std::conditional_t<IsExact, std::conditional_t<sizeof(TPixel) == 4, Int128, std::int64_t>, Real>;
};

/** a - b, exact for integers before it is converted. */
template <typename TReal, typename TPixel>
CHUNKWISE_HOST_DEVICE TReal
Difference(TPixel a, TPixel b)
{
  if constexpr (static_cast<TPixel>(0.5) != static_cast<TPixel>(0))
  {
    return static_cast<TReal>(a) - static_cast<TReal>(b);
  }
  else
  {
    return static_cast<TReal>(static_cast<Int128>(a) - static_cast<Int128>(b));
  }
}

/** Merges windows that all have the same number of voxels: each with the difference of its mean from a value common to
 * all, and its variance. */
template <typename TReal>
struct MergedMoments
{
  TReal sum{ 0 };
  TReal squares{ 0 };
  TReal variances{ 0 };

  CHUNKWISE_HOST_DEVICE void
  Add(TReal difference, TReal variance)
  {
    sum += difference;
    squares += difference * difference;
    variances += variance;
  }
  /** `inverse`: 1 over the number of windows. */
  CHUNKWISE_HOST_DEVICE TReal
  Mean(TReal inverse) const
  {
    return sum * inverse;
  }
  /** The variance between the windows is not negative but for rounding; NaN stays. */
  CHUNKWISE_HOST_DEVICE TReal
  Between(TReal inverse) const
  {
    const TReal between = squares - sum * (sum * inverse);
    return between < TReal(0) ? TReal(0) : between;
  }
  /** Between the windows and within them. */
  CHUNKWISE_HOST_DEVICE TReal
  Variance(TReal inverse) const
  {
    return (variances + Between(inverse)) * inverse;
  }
};

/** The variance of integers from their exact sums. */
template <typename TSquares>
CHUNKWISE_HOST_DEVICE double
VarianceOfSums(std::int64_t sum, TSquares squares, std::int64_t count)
{
  const double divisor = static_cast<double>(count) * static_cast<double>(count);
  if constexpr (sizeof(TSquares) <= 8)
  {
    // With 16-bit integers and so many taps, all of this fits 64 bits.
    if (count <= 32768)
    {
      return static_cast<double>(count * static_cast<std::int64_t>(squares) - sum * sum) / divisor;
    }
  }
  const Int128 numerator = static_cast<Int128>(count) * static_cast<Int128>(squares) - static_cast<Int128>(sum) * sum;
  return static_cast<double>(numerator) / divisor;
}

template <typename TOutput, typename TReal>
CHUNKWISE_HOST_DEVICE TOutput
FinishVariance(TReal variance, bool takesRoot)
{
  return ConvertResult<TOutput>(takesRoot ? std::sqrt(variance) : variance);
}

} // namespace chunkwise

#endif
