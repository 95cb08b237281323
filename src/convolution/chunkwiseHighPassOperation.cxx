/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHighPassOperation.h"

namespace chunkwise
{

std::vector<Stage>
HighPassOperation::GetStages() const
{
  return { { smoothing, { Stage::Input() }, StageKind::Real },
           { nullptr, { Stage::Input(), 0 }, StageKind::Output, "highpass.voxels" } };
}

} // namespace chunkwise
