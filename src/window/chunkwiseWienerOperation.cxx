/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseWienerOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseVarianceOperation.h"

#include <cmath>

namespace chunkwise
{

std::vector<Stage>
WienerOperation::GetStages() const
{
  return WithWindows({ { MakeBoxOperation<MeanOperation>(), { Stage::Input() }, StageKind::Real },
                       { MakeBoxOperation<VarianceOperation>(), { Stage::Input() }, StageKind::Real },
                       { nullptr, { Stage::Input(), 0, 1 }, StageKind::Output, "wiener.voxels" } });
}

void
WienerOperation::Validate(const Coordinates & image) const
{
  BoxCompositeOperation::Validate(image);
  if (!(std::isfinite(noise) && noise >= 0))
  {
    throw ParameterError("NoiseVariance: " + std::to_string(noise) + "; it must be finite and not negative");
  }
}

} // namespace chunkwise
