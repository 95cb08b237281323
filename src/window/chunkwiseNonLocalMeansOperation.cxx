/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNonLocalMeansOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

std::string
NonLocalMeansOperation::GetKey() const
{
  return GetName() + " " + ToString(search) + " " + ToString(patch) + " " + ExactText(strength) + " " +
         ExactText(noise) + " " + BoundaryKey(boundary) + (isWeighed ? " weighed " + ExactText(emptyValue) : "");
}

Coordinates
NonLocalMeansOperation::Cut(Coordinates radius, const Coordinates & image) const
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (boundary.mode == BoundaryMode::Renormalized)
    {
      radius[a] = std::min(radius[a], std::max<std::int64_t>(image[a] - 1, 0));
    }
  }
  return radius;
}

Coordinates
NonLocalMeansOperation::Reach(const Coordinates & image) const
{
  Coordinates reach = Cut(search, image);
  const auto  more = Cut(patch, image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    reach[a] += more[a];
  }
  return reach;
}

Halo
NonLocalMeansOperation::GetHalo(const Coordinates & image) const
{
  return { Reach(image), Reach(image) };
}

void
NonLocalMeansOperation::Validate(const Coordinates & image) const
{
  std::int64_t pairs = 1;
  int          axes = 0;
  for (const auto & [name, radius] : { std::make_pair("Radius", search), std::make_pair("PatchRadius", patch) })
  {
    const Coordinates cut = Cut(radius, image);
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::string text = std::string(name) + ": " + ToString(radius) + " along axis " + std::to_string(a);
      if (cut[a] < 0)
      {
        throw ParameterError(text + " is negative");
      }
      // Neither factor has more than 31 bits.
      if (cut[a] > MostPairs / 2 - 1 || (pairs *= 2 * cut[a] + 1) > MostPairs)
      {
        throw ParameterError(text + " makes more than " + std::to_string(MostPairs) + " pairs of voxels for a result");
      }
    }
  }
  const Coordinates reach = Reach(image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    axes += reach[a] > 0 ? 1 : 0;
  }
  if (axes > MaxSpatialAxes)
  {
    throw ParameterError("Radius: " + ToString(search) + " and PatchRadius " + ToString(patch) + " have " +
                         std::to_string(axes) + " axes; a window takes part in at most " +
                         std::to_string(MaxSpatialAxes));
  }
  const double inverse = 1 / (strength * strength);
  if (!(strength > 0 && std::isfinite(static_cast<float>(inverse)) && inverse > 0))
  {
    throw ParameterError("Strength: " + std::to_string(strength) +
                         "; it must be greater than 0, and neither its square nor the inverse of that infinite");
  }
  if (!(noise >= 0 && std::isfinite(noise)))
  {
    throw ParameterError("NoiseVariance: " + std::to_string(noise) + "; it must be finite and not negative");
  }
}

} // namespace chunkwise
