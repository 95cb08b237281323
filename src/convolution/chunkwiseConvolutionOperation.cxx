/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

std::int64_t
NumberOfTaps(const Coordinates & radius)
{
  std::int64_t taps = 1;
  for (int a = 0; a < MaxDimension && taps <= ConvolutionOperation::LargestKernel; ++a)
  {
    taps *= 2 * std::min<std::int64_t>(radius[a], ConvolutionOperation::LargestKernel) + 1;
  }
  return taps;
}

} // namespace

std::string
ConvolutionOperation::GetKey() const
{
  std::string key = GetName() + " " + BoundaryKey(boundary) + " " + ToString(radius) + ":";
  for (const double weight : weights)
  {
    key += ExactText(weight) + ",";
  }
  return key;
}

bool
ConvolutionOperation::IsZeroSum() const
{
  double sum = 0;
  double absolute = 0;
  for (const double weight : weights)
  {
    sum += weight;
    absolute += std::abs(weight);
  }
  return std::abs(sum) <= 1e-9 * absolute;
}

std::int64_t
ConvolutionOperation::GetNormRows(int a, std::int64_t n) const
{
  return std::min(n, 2 * radius[a] + 1);
}

std::vector<double>
ConvolutionOperation::GetNorms(const Coordinates & image) const
{
  double all = 0;
  for (const double weight : weights)
  {
    all += weight;
  }
  Coordinates rows{};
  std::size_t count = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    rows[a] = GetNormRows(a, image[a]);
    count *= static_cast<std::size_t>(rows[a]);
  }
  std::vector<double> norms(count, 1.0);
  for (std::size_t entry = 0; entry < count; ++entry)
  {
    // The offsets of the taps inside, for a position that has this entry.
    auto         rest = static_cast<std::int64_t>(entry);
    std::int64_t lower[MaxDimension];
    std::int64_t upper[MaxDimension];
    bool         cut = false;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::int64_t row = rest % rows[a];
      rest /= rows[a];
      const std::int64_t i = rows[a] == image[a] || row <= radius[a] ? row : image[a] - (rows[a] - row);
      lower[a] = std::max(-radius[a], -i);
      upper[a] = std::min(radius[a], image[a] - 1 - i);
      cut = cut || lower[a] > -radius[a] || upper[a] < radius[a];
    }
    if (!cut)
    {
      continue;
    }
    double inside = 0;
    for (std::size_t tap = 0; tap < weights.size(); ++tap)
    {
      auto at = static_cast<std::int64_t>(tap);
      bool isInside = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t offset = at % (2 * radius[a] + 1) - radius[a];
        at /= 2 * radius[a] + 1;
        isInside = isInside && offset >= lower[a] && offset <= upper[a];
      }
      inside += isInside ? weights[tap] : 0.0;
    }
    norms[entry] = all / inside;
  }
  return norms;
}

void
ConvolutionOperation::Validate(const Coordinates & image) const
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (radius[a] < 0)
    {
      throw ParameterError("Radius: " + std::to_string(radius[a]) + " along axis " + std::to_string(a) +
                           " is negative");
    }
  }
  const std::int64_t taps = NumberOfTaps(radius);
  if (taps > LargestKernel)
  {
    throw ParameterError("Radius: " + ToString(radius) + " makes a kernel of more than " +
                         std::to_string(LargestKernel) + " weights");
  }
  if (static_cast<std::int64_t>(weights.size()) != taps)
  {
    throw ParameterError("Kernel: it has " + std::to_string(weights.size()) + " weights; radius " + ToString(radius) +
                         " needs " + std::to_string(taps));
  }
  for (const double weight : weights)
  {
    if (!std::isfinite(weight))
    {
      throw ParameterError("Kernel: a weight is " + std::to_string(weight) + "; it must be finite");
    }
  }
  if (boundary.mode == BoundaryMode::Renormalized && !IsZeroSum())
  {
    for (const double norm : GetNorms(image))
    {
      if (!std::isfinite(norm))
      {
        throw ParameterError(
          "Kernel: its weights inside the image sum to zero at the edge, so it cannot be renormalized");
      }
    }
  }
}

} // namespace chunkwise
