/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRearrangeOperation.h"

#include "chunkwiseError.h"

#include <algorithm>

namespace chunkwise
{

std::int64_t
RearrangeOperation::MapVoxel(int a, std::int64_t o, const Box & held) const
{
  const int s = source[a];
  return MapBeyond(flips[a] ? offset[a] - o : offset[a] + o, image[s], outside[a], held.lower[s], held.upper[s]);
}

std::string
RearrangeOperation::GetKey() const
{
  std::string key = "rearrange " + ToString(image) + " to " + ToString(output);
  for (int a = 0; a < MaxDimension; ++a)
  {
    key += " " + std::to_string(source[a]) + (flips[a] ? "-" : "+") + std::to_string(offset[a]) + " " +
           std::to_string(static_cast<int>(outside[a]));
  }
  return key + " " + value.ToText();
}

void
RearrangeOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType kind) const
{
  if (kind != inputs.at(0))
  {
    const std::string name = PixelTypeName(inputs.at(0));
    throw ParameterError("copies of " + name + " voxels are " + name + " voxels, not " + PixelTypeName(kind));
  }
}

void
RearrangeOperation::Validate(const Coordinates & extent) const
{
  if (extent != image)
  {
    throw ParameterError("the grid is for an image of " + ToString(image) + " voxels, not of " + ToString(extent));
  }
  double voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    voxels *= static_cast<double>(output[a]);
  }
  if (!(voxels < 9e18))
  {
    throw ParameterError("the output would have " + ToString(output) + " voxels; it can have 2^63");
  }
}

Coordinates
RearrangeOperation::GetExtent(const Coordinates &) const
{
  return output;
}

void
RearrangeOperation::CountBeyond(int a, std::int64_t & below, std::int64_t & above) const
{
  const std::int64_t first = flips[a] ? offset[a] - (output[a] - 1) : offset[a];
  below = std::max<std::int64_t>(-first, 0);
  above = std::max<std::int64_t>(first + output[a] - image[source[a]], 0);
}

Box
RearrangeOperation::GetInputBox(const Box & box, const Coordinates &) const
{
  Box input{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t n = image[source[a]];
    const std::int64_t first = flips[a] ? offset[a] - (box.upper[a] - 1) : offset[a] + box.lower[a];
    const std::int64_t end = first + box.Extent(a);
    std::int64_t &     lower = input.lower[source[a]];
    std::int64_t &     upper = input.upper[source[a]];
    lower = std::min(std::max<std::int64_t>(first, 0), n - 1);
    upper = std::max(std::min(end, n), lower + 1);
    std::int64_t below = 0;
    std::int64_t above = 0;
    this->CountBeyond(a, below, above);
    if (outside[a] == RearrangeOutside::Wrap && (first < 0 || end > n))
    {
      lower = 0;
      upper = n;
    }
    else if (outside[a] == RearrangeOutside::Reflect || outside[a] == RearrangeOutside::Mirror)
    {
      // The voxels that any voxel beyond an end repeats belong to all boxes there, so that boxes move in one direction.
      upper = below > 0 ? std::max(upper, std::min(below + 1, n)) : upper;
      lower = above > 0 ? std::min(lower, std::max<std::int64_t>(n - (above + 1), 0)) : lower;
    }
  }
  return input;
}

Coordinates
RearrangeOperation::GetMostInput(const Coordinates & box, const Coordinates &) const
{
  Coordinates most{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t n = image[source[a]];
    std::int64_t       below = 0;
    std::int64_t       above = 0;
    this->CountBeyond(a, below, above);
    const std::int64_t beyond = std::max(below, above);
    std::int64_t       extent = box[a];
    if (beyond > 0 && outside[a] >= RearrangeOutside::Reflect)
    {
      extent = outside[a] == RearrangeOutside::Wrap ? n : std::max(extent, beyond + 1);
    }
    most[source[a]] = std::max<std::int64_t>(std::min(extent, n), 1);
  }
  return most;
}

} // namespace chunkwise
