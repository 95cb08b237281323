/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSequenceOperation.h"

namespace chunkwise
{

std::vector<Stage>
SequenceOperation::GetStages() const
{
  std::vector<Stage> all;
  for (const auto & operation : stages)
  {
    all.push_back({ operation, { all.empty() ? Stage::Input() : static_cast<int>(all.size()) - 1 } });
  }
  return all;
}

std::string
SequenceOperation::GetObjection(const Operation & stage) const
{
  return stage.GetNumberOfInputs() == 1
           ? CompositeOperation::GetObjection(stage)
           : "has " + std::to_string(stage.GetNumberOfInputs()) + " inputs; it must have one";
}

} // namespace chunkwise
