/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRunSums_h
#define chunkwiseRunSums_h

#include "chunkwiseTypes.h"

#include <cstdint>

// The windows of DerivativeOperation that end where a voxel is NaN. No operation is contracted, so both backends give
// the same bits.
namespace chunkwise
{

/** The window of order 0 or 1 over the run of numbers around a voxel that is one: tap(t) gives the value t voxels after
 * it, for t from `first` to `last`, and weight(t) the smoothing weight there. `result` is that of all these taps, which
 * stays if none is NaN.
 *
 * In double, taps ascending, with d = S_t - S_0: the sums of g, g t, g t^2, g d, g t d. Order 0: S_0 + (sum of g d) /
 * (sum of g). Order 1: the slope of the line that fits best, (sum of g t d - m * sum of g d) / (sum of g t^2 - m * sum
 * of g t) with m = (sum of g t) / (sum of g), times `factor`; 0 of a single voxel. */
template <typename TAcc, typename TTap, typename TWeight>
CHUNKWISE_HOST_DEVICE TAcc
RunSum(TAcc result, int order, double factor, std::int64_t first, std::int64_t last, TTap && tap, TWeight && weight)
{
  const TAcc center = tap(0);
  if (center != center)
  {
    return center;
  }
  std::int64_t begin = 0;
  std::int64_t end = 0;
  while (begin > first && tap(begin - 1) == tap(begin - 1))
  {
    --begin;
  }
  while (end < last && tap(end + 1) == tap(end + 1))
  {
    ++end;
  }
  if (begin == first && end == last)
  {
    return result;
  }
  double sum = 0;
  double firsts = 0;
  double squares = 0;
  double values = 0;
  double products = 0;
  for (std::int64_t t = begin; t <= end; ++t)
  {
    const double g = static_cast<double>(weight(t));
    const double gt = g * static_cast<double>(t);
    const double d = static_cast<double>(tap(t)) - static_cast<double>(center);
    sum = sum + g;
    firsts = firsts + gt;
    squares = squares + gt * static_cast<double>(t);
    values = values + g * d;
    products = products + gt * d;
  }
  if (order == 0)
  {
    return static_cast<TAcc>(static_cast<double>(center) + values / sum);
  }
  if (begin == end)
  {
    return TAcc(0);
  }
  const double mean = firsts / sum;
  return static_cast<TAcc>((products - mean * values) / (squares - mean * firsts) * factor);
}

} // namespace chunkwise

#endif
