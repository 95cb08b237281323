/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseMaskedOperation.h"

#include "chunkwiseError.h"

namespace chunkwise
{

std::vector<Stage>
MaskedOperation::GetStages() const
{
  return { { nullptr, { Stage::Input(0), Stage::Input(1) }, StageKind::Real, "masked.inside.voxels" },
           { inside, { 0 }, StageKind::Real },
           { nullptr, { 1, Stage::Input(1), Stage::Input(0) }, StageKind::Output, "masked.kept.voxels" } };
}

void
MaskedOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  if (IsFloatingPoint(inputs.at(1)))
  {
    throw ParameterError(std::string("MaskImage: its voxels are ") + PixelTypeName(inputs[1]) +
                         "; a mask has integers");
  }
  CheckSameOrFloatingOutput(inside->GetName(), inputs[0], output);
}

} // namespace chunkwise
