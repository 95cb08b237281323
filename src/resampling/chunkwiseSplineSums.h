/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSplineSums_h
#define chunkwiseSplineSums_h

#include "chunkwiseTypes.h"

#include <cmath>

namespace chunkwise
{

/** The recursive filter of splines, its response cut off, as a sum of differences g of neighbors in both directions:
 * out[k] = (in[k] - factor S(in[k] - in[k - 1], in[k - 1] - in[k - 2], ...)) + factor S(in[k + 1] - in[k], ...), where
 * S(g) is the sum over j < SplineRadiusOf of pole^j g[j]. Constants stay constants. Both sums are added up of those of
 * 1, 2, 4, 8 and 16 differences, which neighboring voxels share. */
template <typename TReal>
struct SplineSums
{
  SplineSums()
  {
    const double pole = std::sqrt(3.0) - 2;
    factor = static_cast<TReal>(pole / (1 + pole));
    double power = pole;
    for (TReal & one : powers)
    {
      one = static_cast<TReal>(power);
      power *= power;
    }
  }

  /** S, of a function that gives g[j]. */
  template <typename TDifference>
  CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TReal
  Sum(TDifference && g) const
  {
    const auto four = [&](int j) {
      return (g(j) + powers[0] * g(j + 1)) + powers[1] * (g(j + 2) + powers[0] * g(j + 3));
    };
    const auto  eight = [&](int j) { return four(j) + powers[2] * four(j + 4); };
    const TReal sixteen = eight(0) + powers[3] * eight(8);
    if constexpr (sizeof(TReal) == sizeof(float))
    {
      return sixteen;
    }
    else
    {
      return sixteen + powers[4] * (eight(16) + powers[3] * four(24));
    }
  }

  TReal factor;
  TReal powers[5]; ///< pole^1, pole^2, pole^4, ...
};

} // namespace chunkwise

#endif
