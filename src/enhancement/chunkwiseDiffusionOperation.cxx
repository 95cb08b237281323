/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDiffusionOperation.h"

#include "chunkwiseError.h"

#include <cmath>

namespace chunkwise
{

std::string
DiffusionOperation::GetKey() const
{
  std::string key = GetName() + " " + std::to_string(static_cast<int>(method)) + " " + std::to_string(iterations) +
                    " " + ExactText(timeStep) + " " + ExactText(contrast) + " " + ExactText(weight) +
                    (skipsNan ? " skips" : "");
  for (const double each : scale)
  {
    key += " " + ExactText(each);
  }
  return key;
}

std::vector<int>
DiffusionOperation::GetAxes() const
{
  std::vector<int> axes;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (scale[a] > 0)
    {
      axes.push_back(a);
    }
  }
  return axes;
}

Halo
DiffusionOperation::GetHalo(const Coordinates &) const
{
  Coordinates reach{};
  for (const int axis : this->GetAxes())
  {
    reach[axis] = iterations;
  }
  return { reach, reach };
}

void
DiffusionOperation::Validate(const Coordinates &) const
{
  if (iterations < 1 || iterations > MostIterations)
  {
    throw ParameterError("there are " + std::to_string(iterations) + " iterations; the number must be from 1 to " +
                         std::to_string(MostIterations));
  }
  if (!(timeStep >= 0 && std::isfinite(timeStep) && contrast >= 0 && std::isfinite(contrast) && weight >= 0 &&
        std::isfinite(weight)))
  {
    throw ParameterError("the time step is " + std::to_string(timeStep) + ", the contrast " + std::to_string(contrast) +
                         " and the weight " + std::to_string(weight) + "; they must be finite and at least 0");
  }
  for (const double each : scale)
  {
    if (!(each >= 0 && std::isfinite(each)))
    {
      throw ParameterError("the scale of an axis is " + std::to_string(each) + "; it must be finite and at least 0");
    }
  }
}

} // namespace chunkwise
