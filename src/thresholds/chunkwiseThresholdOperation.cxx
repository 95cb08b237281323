/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseThresholdOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseOperations.h"
#include "chunkwiseThresholds.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{

namespace
{

/** The least number of a kind that is above a threshold; false if there is none. */
template <typename TPixel>
bool
FirstAbove(double threshold, TPixel & bound)
{
  using Limits = std::numeric_limits<TPixel>;
  if constexpr (Limits::is_integer)
  {
    if (threshold < static_cast<double>(Limits::min()))
    {
      bound = Limits::min();
      return true;
    }
    // A power of two, which a double has.
    const double beyond = std::ldexp(1.0, Limits::digits);
    if (std::floor(threshold) >= beyond - 1 && (std::floor(threshold) >= beyond || Limits::digits < 53))
    {
      return false;
    }
    bound = static_cast<TPixel>(static_cast<TPixel>(std::floor(threshold)) + 1);
    return true;
  }
  else
  {
    bound = static_cast<TPixel>(threshold);
    if (!(static_cast<double>(bound) > threshold))
    {
      bound = std::nextafter(bound, Limits::infinity());
    }
    return static_cast<double>(bound) > threshold;
  }
}

/** The next number of a pixel type above `value`; false if there is none. */
template <typename TPixel>
bool
NextAbove(TPixel value, TPixel & bound)
{
  using Limits = std::numeric_limits<TPixel>;
  if constexpr (Limits::is_integer)
  {
    bound = value == Limits::max() ? value : static_cast<TPixel>(value + 1);
    return bound != value;
  }
  else
  {
    bound = std::nextafter(value, Limits::infinity());
    return value != Limits::infinity();
  }
}

/** The least number of a kind that is no less than a value; false if there is none. */
template <typename TPixel>
bool
FirstFrom(const PixelValue & value, TPixel & bound)
{
  if (value.IsOf(PixelTypeOf<TPixel>()) && value.IsInteger() == std::numeric_limits<TPixel>::is_integer)
  {
    bound = value.As<TPixel>();
    return true;
  }
  const double number = value.ToDouble();
  return FirstAbove(std::nextafter(number, -std::numeric_limits<double>::infinity()), bound);
}

/** The least number of a kind that is above a value. */
template <typename TPixel>
bool
FirstBeyond(const PixelValue & value, TPixel & bound)
{
  if (value.IsOf(PixelTypeOf<TPixel>()) && value.IsInteger() == std::numeric_limits<TPixel>::is_integer)
  {
    return NextAbove(value.As<TPixel>(), bound);
  }
  return FirstAbove(value.ToDouble(), bound);
}

} // namespace

bool
ThresholdOperation::IsRange() const
{
  return method == ThresholdMethod::Fixed;
}

std::string
ThresholdOperation::GetKey() const
{
  std::string key = GetName() + " " + std::to_string(static_cast<int>(method)) + " " + std::to_string(classes) + " " +
                    std::to_string(bins) + (masked ? " mask" : "");
  for (const double threshold : thresholds)
  {
    key += " " + ExactText(threshold);
  }
  key += hasLower ? " from " + lower.ToText() : "";
  key += hasUpper ? " to " + upper.ToText() : "";
  return key;
}

void
ThresholdOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType) const
{
  if (masked && IsFloatingPoint(inputs.at(1)))
  {
    throw ParameterError(std::string("MaskImage: its voxels are ") + PixelTypeName(inputs[1]) +
                         "; a mask is an image of integers");
  }
  if (!IsRange() && thresholds.empty())
  {
    throw ParameterError("Thresholds: they are not known; \"auto\" takes them from the whole image");
  }
}

void
ThresholdOperation::Validate(const Coordinates &) const
{
  for (std::size_t i = 1; i < thresholds.size(); ++i)
  {
    if (!(thresholds[i - 1] < thresholds[i]))
    {
      throw ParameterError("Thresholds: " + PixelValue(thresholds[i]).ToText() + " comes after " +
                           PixelValue(thresholds[i - 1]).ToText() + "; each must be larger than the one before");
    }
  }
  if (thresholds.size() >= static_cast<std::size_t>(MostClasses))
  {
    throw ParameterError("Thresholds: there are " + std::to_string(thresholds.size()) + "; there may be " +
                         std::to_string(MostClasses - 1));
  }
}

template <typename TPixel>
std::vector<TPixel>
ThresholdOperation::MakeBounds() const
{
  using Limits = std::numeric_limits<TPixel>;
  std::vector<TPixel> bounds;
  TPixel              bound{};
  if (!IsRange())
  {
    for (const double threshold : thresholds)
    {
      if (FirstAbove(threshold, bound))
      {
        bounds.push_back(bound);
      }
    }
    return bounds;
  }
  // Below the first bound is NaN too.
  bounds.push_back(Limits::is_integer ? Limits::min() : -Limits::infinity());
  if (hasLower && !FirstFrom(lower, bounds.front()))
  {
    bounds.clear();
    return bounds;
  }
  if (hasUpper && FirstBeyond(upper, bound))
  {
    bounds.push_back(bound);
    // An empty range has no voxel within.
    if (bound <= bounds.front())
    {
      bounds.clear();
    }
  }
  return bounds;
}

template Chunkwise_EXPORT std::vector<std::int8_t>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<std::uint8_t>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<std::int16_t>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<std::uint16_t>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<std::int32_t>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<std::uint32_t>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<std::int64_t>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<std::uint64_t>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<float>
                          ThresholdOperation::MakeBounds() const;
template Chunkwise_EXPORT std::vector<double>
                          ThresholdOperation::MakeBounds() const;

} // namespace chunkwise
