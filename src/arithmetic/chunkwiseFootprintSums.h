/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFootprintSums_h
#define chunkwiseFootprintSums_h

#include "chunkwiseFootprintOperation.h"
#include "chunkwiseMoments.h"

#include <limits>

namespace chunkwise
{

/** The numbers that sums over footprints are added up in, see FootprintOperation. */
template <typename TPixel>
struct FootprintTypes
{
  static constexpr bool IsReal = static_cast<TPixel>(0.5) != static_cast<TPixel>(0);
  /** Whether the variance follows from exact sums. */
  static constexpr bool IsExact = MomentTypes<TPixel>::IsExact;
  using Sum = std::conditional_t<IsReal, double, std::conditional_t<sizeof(TPixel) == 8, Int128, std::int64_t>>;
  /** The type of sums of exact squares, or of squares of deviations. */
  using Second = std::conditional_t<IsExact, typename MomentTypes<TPixel>::Second, double>;
};

/** The deviation from the mean, squared. */
template <typename TPixel>
CHUNKWISE_HOST_DEVICE double
SquaredDeviation(TPixel pixel, double mean)
{
  const double deviation = static_cast<double>(pixel) - mean;
  return deviation * deviation;
}

/** The larger sum of a voxel, or a negated one, and its height; a NaN is not seen. */
CHUNKWISE_HOST_DEVICE inline double
LargerRise(double largest, double sum)
{
  return sum > largest || largest != largest ? sum : largest;
}

/** The result of a window that has no tap inside the image. */
template <typename TOut>
CHUNKWISE_HOST_DEVICE TOut
EmptyFootprint()
{
  return FootprintTypes<TOut>::IsReal ? std::numeric_limits<TOut>::quiet_NaN() : TOut(0);
}

/** A voxel of the result from the sums over its window of `count` taps. */
template <typename TOut, typename TPixel>
CHUNKWISE_HOST_DEVICE TOut
FinishFootprint(FootprintStatistic statistic, bool truncates, typename FootprintTypes<TPixel>::Sum sum,
                typename FootprintTypes<TPixel>::Second second, std::int64_t count)
{
  if (count == 0 && statistic != FootprintStatistic::Sum)
  {
    return EmptyFootprint<TOut>();
  }
  switch (statistic)
  {
    case FootprintStatistic::Mean:
    case FootprintStatistic::Sum:
    {
      const std::int64_t divisor = statistic == FootprintStatistic::Sum ? 1 : count;
      if constexpr (FootprintTypes<TPixel>::IsReal)
      {
        return static_cast<TOut>(sum / static_cast<double>(divisor));
      }
      else
      {
        return MeanOf<TOut>(sum, divisor, truncates);
      }
    }
    default:
      break;
  }
  double variance = 0;
  if constexpr (FootprintTypes<TPixel>::IsExact)
  {
    variance = VarianceOfSums(sum, second, count);
  }
  else
  {
    variance = second / static_cast<double>(count);
  }
  return FinishVariance<TOut>(variance, statistic == FootprintStatistic::StandardDeviation);
}

} // namespace chunkwise

#endif
