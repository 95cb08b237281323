/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseElementOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseFootprintOperation.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

std::string
ElementOperation::GetKey() const
{
  std::string key = GetName() + " " + ToString(radius) + " " + BoundaryKey(boundary);
  for (const Run & run : GetRuns())
  {
    for (const std::int32_t offset : run.first)
    {
      key += " " + std::to_string(offset);
    }
    key += "+" + std::to_string(run.length);
  }
  return key;
}

std::vector<ElementOperation::Run>
ElementOperation::GetRuns() const
{
  std::vector<Run>   runs;
  const std::int64_t width = 2 * radius.axis[0] + 1;
  const auto         rows = static_cast<std::int64_t>(element.size()) / width;
  for (std::int64_t row = 0; row < rows; ++row)
  {
    const unsigned char * const taps = element.data() + row * width;
    for (std::int64_t x = 0; x < width; ++x)
    {
      if (!taps[x])
      {
        continue;
      }
      Run          run{};
      std::int64_t rest = row;
      run.first[0] = static_cast<std::int32_t>(x - radius.axis[0]);
      for (int a = 1; a < MaxDimension; ++a)
      {
        const std::int64_t side = 2 * radius.axis[a] + 1;
        run.first[a] = static_cast<std::int32_t>(rest % side - radius.axis[a]);
        rest /= side;
      }
      while (x < width && taps[x])
      {
        ++run.length;
        ++x;
      }
      runs.push_back(run);
    }
  }
  return runs;
}

void
ElementOperation::Validate(const Coordinates &) const
{
  std::int64_t taps = 1;
  int          axes = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (radius.axis[a] < 0 || radius.axis[a] > LargestElement)
    {
      throw ParameterError("Radius: " + ToString(radius) + " of the structuring element: along axis " +
                           std::to_string(a) + " it must be from 0 to " + std::to_string(LargestElement));
    }
    taps *= 2 * radius.axis[a] + 1;
    axes += radius.axis[a] > 0 ? 1 : 0;
    if (taps > LargestElement)
    {
      throw ParameterError("Radius: " + ToString(radius) + " of the structuring element makes a box of more than " +
                           std::to_string(LargestElement) + " voxels");
    }
  }
  if (axes > MaxSpatialAxes)
  {
    throw ParameterError("Radius: " + ToString(radius) + " has " + std::to_string(axes) +
                         " axes; a window takes part in at most " + std::to_string(MaxSpatialAxes));
  }
  if (static_cast<std::int64_t>(element.size()) != taps)
  {
    throw ParameterError("Kernel: the structuring element has " + std::to_string(element.size()) +
                         " voxels; its radius " + ToString(radius) + " makes " + std::to_string(taps));
  }
  if (std::all_of(element.begin(), element.end(), [](unsigned char tap) { return tap == 0; }))
  {
    throw ParameterError("Kernel: the structuring element is empty");
  }
}

std::string
FootprintOperation::GetKey() const
{
  std::string key = ElementOperation::GetKey() + " " + std::to_string(static_cast<int>(statistic)) +
                    (truncates ? " truncates " : " ") + ExactText(fraction) + (isCounted ? " counted" : "");
  for (const double rise : this->GetRises(PixelType::Float64))
  {
    key += " " + ExactText(rise);
  }
  return key;
}

std::vector<double>
FootprintOperation::GetRises(PixelType kind) const
{
  std::vector<double> rises;
  for (std::size_t i = 0; i < heights.size() && i < element.size(); ++i)
  {
    if (element[i])
    {
      rises.push_back(kind == PixelType::Float32 ? static_cast<double>(static_cast<float>(heights[i])) : heights[i]);
    }
  }
  return rises;
}

Coordinates
FootprintOperation::Sides::Farthest() const
{
  Coordinates farthest = lower;
  for (int a = 0; a < MaxDimension; ++a)
  {
    farthest[a] = std::max(lower[a], upper[a]);
  }
  return farthest;
}

std::optional<FootprintOperation::Sides>
FootprintOperation::GetSides(const Coordinates & image) const
{
  const std::vector<Run> runs = this->GetRuns();
  // A box that has its voxel begins with a run at its lower corner, and ends with a run at its upper one.
  Sides        sides;
  std::int64_t rows = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    sides.lower[a] = -std::int64_t{ runs.front().first[a] };
    sides.upper[a] = runs.back().first[a] + (a == 0 ? runs.back().length - 1 : 0);
    if (sides.lower[a] < 0 || sides.upper[a] < 0)
    {
      return std::nullopt;
    }
    rows *= a == 0 ? 1 : sides.Taps(a);
  }
  const auto isWhole = [&](const Run & run) {
    bool is = run.first[0] == -sides.lower[0] && run.length == sides.Taps(0);
    for (int a = 1; a < MaxDimension; ++a)
    {
      is = is && run.first[a] >= -sides.lower[a] && run.first[a] <= sides.upper[a];
    }
    return is;
  };
  if (static_cast<std::int64_t>(runs.size()) != rows || !std::all_of(runs.begin(), runs.end(), isWhole))
  {
    return std::nullopt;
  }
  for (int a = 0; a < MaxDimension && boundary.mode == BoundaryMode::Renormalized; ++a)
  {
    const std::int64_t most = std::max<std::int64_t>(image[a] - 1, 0);
    sides.lower[a] = std::min(sides.lower[a], most);
    sides.upper[a] = std::min(sides.upper[a], most);
  }
  return sides;
}

void
FootprintOperation::Validate(const Coordinates & image) const
{
  ElementOperation::Validate(image);
  if (heights.size() != (this->HasHeights() ? element.size() : 0))
  {
    throw ParameterError("Heights: there are " + std::to_string(heights.size()) + "; the element's box has " +
                         std::to_string(element.size()) + " voxels");
  }
  for (const double rise : this->GetRises(PixelType::Float64))
  {
    if (!std::isfinite(rise))
    {
      throw ParameterError("Heights: " + PixelValue(rise).ToText() + " is not finite");
    }
  }
}

void
FootprintOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  static const char * const titles[] = {
    "mean", "sum", "variance", "standard deviation", "rank", "erosion", "dilation"
  };
  const bool isSum = statistic == FootprintStatistic::Mean || statistic == FootprintStatistic::Sum;
  (isSum ? CheckExactOutput : CheckSameOrFloatingOutput)(titles[static_cast<int>(statistic)], inputs.at(0), output);
}

} // namespace chunkwise
