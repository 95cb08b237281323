/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRangeOperation.h"

#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseExtremumOperation.h"

namespace chunkwise
{

std::vector<Stage>
RangeOperation::GetStages() const
{
  const auto maximum = MakeBoxOperation<ExtremumOperation>();
  const auto minimum = MakeBoxOperation<ExtremumOperation>();
  minimum->minimum = true;
  return WithWindows({ { maximum, { Stage::Input() }, StageKind::Input },
                       { minimum, { Stage::Input() }, StageKind::Input },
                       { std::make_shared<DifferenceOperation>(), { 0, 1 } } });
}

void
RangeOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  CheckExactOutput(GetName(), inputs.at(0), output);
}

} // namespace chunkwise
