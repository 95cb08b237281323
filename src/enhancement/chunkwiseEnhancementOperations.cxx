/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseEnhancementOperations.h"

#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseVarianceOperation.h"

namespace chunkwise
{

std::vector<Stage>
TopHatOperation::GetStages() const
{
  const auto difference = std::make_shared<DifferenceOperation>();
  return { { first, { Stage::Input() }, StageKind::Input },
           { second, { 0 }, StageKind::Input },
           { difference, black ? std::vector<int>{ 1, Stage::Input() } : std::vector<int>{ Stage::Input(), 1 } } };
}

std::vector<Stage>
UnsharpOperation::GetStages() const
{
  return { { smoothing, { Stage::Input() }, StageKind::Real },
           { nullptr, { Stage::Input(), 0 }, StageKind::Output, "unsharp.voxels" } };
}

std::vector<Stage>
LocalNormalizationOperation::GetStages() const
{
  const auto deviation = MakeBoxOperation<VarianceOperation>();
  deviation->takesRoot = true;
  return WithWindows({ { MakeBoxOperation<MeanOperation>(), { Stage::Input() }, StageKind::Real },
                       { deviation, { Stage::Input() }, StageKind::Real },
                       { nullptr, { Stage::Input(), 0, 1 }, StageKind::Output, "localnormalization.voxels" } });
}

} // namespace chunkwise
