/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseEntropyOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

void
EntropyOperation::Validate(const Coordinates & image) const
{
  BoxOperation::Validate(image);
  CheckNumberOfAxes(image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    // An image without voxels has no radius.
    if (shorter[a] < 0 || shorter[a] > std::clamp<std::int64_t>(EffectiveRadius(a, image[a]), 0, 1))
    {
      throw ParameterError("Radius: " + ToString(radius) + " of an entropy's box, which lacks " + ToString(shorter) +
                           " of its voxels");
    }
  }
  if (bins < 2 || bins > LargestBins + (leavesOutLast ? 1 : 0))
  {
    throw ParameterError("NumberOfBins: " + std::to_string(bins) + "; it must be from 2 to " +
                         std::to_string(LargestBins));
  }
  if (!(std::isfinite(lower) && std::isfinite(upper) && lower < upper && std::isfinite(bins / (upper - lower))))
  {
    throw ParameterError("Range: from " + std::to_string(lower) + " to " + std::to_string(upper) +
                         "; both must be finite, the first below the second");
  }
  if (GetTaps(image) > LargestWindow)
  {
    throw ParameterError("Radius: " + ToString(radius) + " makes a window of " + std::to_string(GetTaps(image)) +
                         " voxels; an entropy takes at most " + std::to_string(LargestWindow));
  }
}

std::int64_t
EntropyOperation::GetTaps(const Coordinates & image) const
{
  std::int64_t taps = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    // Up to 2^31 of them, see BoxOperation.
    taps *= 2 * EffectiveRadius(a, image[a]) + 1 - shorter[a];
  }
  return taps;
}

std::vector<std::int32_t>
EntropyOperation::GetSteps(std::int64_t taps)
{
  std::vector<std::int32_t> steps;
  std::int64_t              before = 0;
  for (std::int64_t c = 1; c <= taps; ++c)
  {
    const auto         count = static_cast<double>(c);
    const std::int64_t now = std::llround(count * std::log2(count) * 16777216.0);
    steps.push_back(static_cast<std::int32_t>(now - before));
    before = now;
  }
  return steps;
}

std::vector<std::int64_t>
EntropyOperation::GetTotals(std::int64_t taps)
{
  std::vector<std::int64_t> totals(1, 0);
  for (const std::int32_t step : GetSteps(taps))
  {
    totals.push_back(totals.back() + step);
  }
  return totals;
}

std::vector<double>
EntropyOperation::GetLogarithms(std::int64_t taps)
{
  std::vector<double> logarithms(1, 0.0);
  for (std::int64_t n = 1; n <= taps; ++n)
  {
    logarithms.push_back(std::log2(static_cast<double>(n)));
  }
  return logarithms;
}

} // namespace chunkwise
