/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseNonFlatExtremumOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

std::string
NonFlatExtremumOperation::GetKey() const
{
  std::string key = GetName() + (shape == StructuringShape::Ball ? " ball" : " paraboloid") +
                    (dilates ? " dilates " : " ") + ExactText(height);
  for (const double each : semiAxes)
  {
    key += " " + ExactText(each);
  }
  return key;
}

Coordinates
NonFlatExtremumOperation::GetRadius(const Coordinates & image) const
{
  Coordinates radius{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto most = std::max<std::int64_t>(image[a] - 1, 0);
    radius[a] = semiAxes[a] < static_cast<double>(most) ? static_cast<std::int64_t>(semiAxes[a]) : most;
  }
  return radius;
}

void
NonFlatExtremumOperation::Validate(const Coordinates & image) const
{
  if (!(height >= 0 && std::isfinite(height)))
  {
    throw ParameterError("Height: " + std::to_string(height) + "; it must be finite and at least 0");
  }
  std::int64_t offsets = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (!(semiAxes[a] >= 0 && std::isfinite(semiAxes[a])))
    {
      throw ParameterError("Radius: " + std::to_string(semiAxes[a]) + "; it must be finite and at least 0");
    }
    const std::int64_t side = 2 * this->GetRadius(image)[a] + 1;
    // Neither factor has more than 31 bits.
    if (side > MostOffsets || (offsets *= side) > MostOffsets)
    {
      throw ParameterError("Radius: " + std::to_string(semiAxes[a]) + " makes more than " +
                           std::to_string(MostOffsets) + " offsets");
    }
  }
}

std::vector<Stage>
RollingBallOperation::GetStages() const
{
  std::vector<Stage> stages;
  int                last = Stage::Input();
  for (const bool dilates : { false, true })
  {
    for (int a = 0; a < MaxDimension && !(dilates && erodesAlone); ++a)
    {
      const bool isBall = extremum.shape == StructuringShape::Ball;
      if (isBall ? a > 0 : a > 0 && !(extremum.semiAxes[a] > 0))
      {
        continue;
      }
      auto stage = std::make_shared<NonFlatExtremumOperation>(extremum);
      stage->dilates = dilates;
      for (int other = 0; other < MaxDimension && !isBall; ++other)
      {
        stage->semiAxes[other] = other == a ? extremum.semiAxes[a] : 0.0;
      }
      stages.push_back({ stage, { last }, StageKind::Real });
      last = static_cast<int>(stages.size()) - 1;
    }
  }
  stages.back().kind = subtracts ? StageKind::Real : StageKind::Output;
  if (subtracts)
  {
    stages.push_back({ nullptr, { Stage::Input(), last }, StageKind::Output, "rollingball.voxels" });
  }
  return stages;
}

} // namespace chunkwise
