/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLocalThreshold_h
#define chunkwiseLocalThreshold_h

#include "chunkwiseEqualKinds.h"
#include "chunkwiseLocalThresholdOperation.h"
#include "chunkwisePatchWeight.h"

#include <cmath>
#include <cstdint>
#include <limits>

namespace chunkwise
{

/** The threshold of LocalThresholdOperation for a voxel, for every backend. `a` and `b` are the mean and the standard
 * deviation of its window, by Bernsen's method the maximum and the minimum; the other methods have one statistic,
 * `a`. */
template <typename TReal>
struct LocalThresholdRule
{
  LocalThresholdMethod method;
  TReal                k;
  TReal                r;
  TReal                offset;
  TReal                p;
  TReal                q;
  TReal                contrast;
  TReal                level;

  explicit LocalThresholdRule(const LocalThresholdNumbers & numbers)
    : method(numbers.method)
    , k(static_cast<TReal>(numbers.k))
    , r(static_cast<TReal>(numbers.r))
    , offset(static_cast<TReal>(numbers.offset))
    , p(static_cast<TReal>(numbers.p))
    , q(static_cast<TReal>(numbers.q))
    , contrast(static_cast<TReal>(numbers.contrast))
    , level(static_cast<TReal>(numbers.level))
  {}

  CHUNKWISE_HOST_DEVICE TReal
  operator()(TReal a, TReal b) const
  {
    if (method == LocalThresholdMethod::Bernsen)
    {
      const TReal     middle = a / 2 + b / 2;
      constexpr TReal infinity = std::numeric_limits<TReal>::infinity();
      return !(a - b < contrast) ? middle : middle >= level ? -infinity : infinity;
    }
    if (method == LocalThresholdMethod::Niblack)
    {
      return a - k * b;
    }
    if (method == LocalThresholdMethod::Sauvola)
    {
      return a * (1 + k * (b / r - 1));
    }
    if (method == LocalThresholdMethod::Phansalkar)
    {
      const TReal dark = q * (a / (2 * r));
      const auto  weight = static_cast<TReal>(NonLocalWeight(static_cast<float>(dark > 0 ? dark : TReal(0))));
      return a * (1 + p * weight + k * (b / r - 1));
    }
    return a - offset;
  }

  /** Whether a voxel is in the class above its threshold. */
  CHUNKWISE_HOST_DEVICE bool
  IsAbove(TReal voxel, TReal threshold) const
  {
    return method == LocalThresholdMethod::Bernsen ? voxel >= threshold : voxel > threshold;
  }
};

/** The threshold of a window from the sums of its voxels and of their squares, see MomentThresholdOperation. */
CHUNKWISE_HOST_DEVICE inline float
ThresholdOfSums(const LocalThresholdRule<float> & rule, double sum, double squares, double inverse)
{
  constexpr double ofRounding = 1.0 / (std::int64_t{ 1 } << 44);
  const double     mean = sum * inverse;
  const double     ofMean = mean * mean;
  const double     variance = squares * inverse - ofMean;
  return rule(static_cast<float>(mean),
              std::sqrt(static_cast<float>(variance <= ofMean * ofRounding ? 0.0 : variance)));
}

} // namespace chunkwise

#endif
