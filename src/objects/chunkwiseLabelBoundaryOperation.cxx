/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLabelBoundaryOperation.h"

#include "chunkwiseError.h"

#include <algorithm>

namespace chunkwise
{

std::string
LabelBoundaryOperation::GetKey() const
{
  std::string key = GetName() + " " + std::to_string(static_cast<int>(mode)) + " " + std::to_string(connectivity);
  for (const int axis : axes)
  {
    key += " " + std::to_string(axis);
  }
  return key;
}

Halo
LabelBoundaryOperation::GetHalo(const Coordinates &) const
{
  Halo halo = Halo::None();
  for (const int axis : axes)
  {
    halo.lower[axis] = halo.upper[axis] = 1;
  }
  return halo;
}

void
LabelBoundaryOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType) const
{
  if (inputs.size() != 1)
  {
    throw ParameterError("boundaries take one image, not " + std::to_string(inputs.size()));
  }
}

void
LabelBoundaryOperation::Validate(const Coordinates &) const
{
  if (connectivity < 1 || connectivity > 3)
  {
    throw ParameterError("Connectivity", std::to_string(connectivity), "from 1 to 3");
  }
  std::vector<int> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty() || sorted.size() > static_cast<std::size_t>(MaxSpatialAxes) || sorted.front() < 0 ||
      sorted.back() >= MaxDimension || std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
  {
    throw ParameterError("SpatialAxes: boundaries lie along one to three different axes");
  }
}

} // namespace chunkwise
