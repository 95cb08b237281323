/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseMoments_h
#define chunkwiseMoments_h

#include "chunkwiseWindow.h"

#include <cmath>

// The arithmetic of VarianceOperation, one source for every backend.
namespace chunkwise
{

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
    __extension__ using Wide = __int128;
    return static_cast<TReal>(static_cast<Wide>(a) - static_cast<Wide>(b));
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
  CHUNKWISE_HOST_DEVICE TReal
  Mean(TReal count) const
  {
    return sum / count;
  }
  /** Between the windows and within them. What lies between is not negative but for rounding; NaN stays. */
  CHUNKWISE_HOST_DEVICE TReal
  Variance(TReal count) const
  {
    const TReal between = squares - sum * (sum / count);
    return (variances + (between < TReal(0) ? TReal(0) : between)) / count;
  }
};

/** The variance of integers from their exact sums. */
template <typename TSquares>
CHUNKWISE_HOST_DEVICE double
VarianceOfSums(std::int64_t sum, TSquares squares, std::int64_t count)
{
  __extension__ using Wide = __int128;
  const Wide numerator = static_cast<Wide>(count) * static_cast<Wide>(squares) - static_cast<Wide>(sum) * sum;
  return static_cast<double>(numerator) / (static_cast<double>(count) * static_cast<double>(count));
}

template <typename TOutput, typename TReal>
CHUNKWISE_HOST_DEVICE TOutput
FinishVariance(TReal variance, bool takesRoot)
{
  return ConvertResult<TOutput>(takesRoot ? std::sqrt(variance) : variance);
}

} // namespace chunkwise

#endif
