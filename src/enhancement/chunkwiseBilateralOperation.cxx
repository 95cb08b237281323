/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBilateralOperation.h"

#include "chunkwiseError.h"

#include <cmath>

namespace chunkwise
{

std::string
BilateralOperation::GetKey() const
{
  std::string key = GetName() + " " + ExactText(rangeSigma) + " " + BoundaryKey(boundary);
  for (const std::vector<double> & each : weights)
  {
    key += "|";
    for (const double weight : each)
    {
      key += ExactText(weight) + " ";
    }
  }
  return key;
}

Coordinates
BilateralOperation::GetRadius() const
{
  Coordinates radius{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = static_cast<std::int64_t>(weights[a].size()) / 2;
  }
  return radius;
}

void
BilateralOperation::Validate(const Coordinates &) const
{
  const double inverse = 0.5 / (rangeSigma * rangeSigma);
  if (!(rangeSigma > 0 && std::isfinite(static_cast<float>(inverse)) && inverse > 0))
  {
    throw ParameterError("RangeSigma: " + std::to_string(rangeSigma) +
                         "; it must be greater than 0, and neither its square nor the inverse of that infinite");
  }
  std::int64_t offsets = 1;
  int          axes = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto taps = static_cast<std::int64_t>(weights[a].size());
    axes += taps > 1 ? 1 : 0;
    // Neither factor has more than 31 bits.
    if (taps > MostOffsets || (taps > 0 && (offsets *= taps) > MostOffsets) || (taps > 0 && taps % 2 == 0))
    {
      throw ParameterError("Sigma: " + std::to_string(taps) + " weights along axis " + std::to_string(a) +
                           "; their number must be odd, and that of all offsets at most " +
                           std::to_string(MostOffsets));
    }
  }
  if (axes > MaxSpatialAxes)
  {
    throw ParameterError("Sigma: a window takes part in at most " + std::to_string(MaxSpatialAxes) + " axes");
  }
}

} // namespace chunkwise
