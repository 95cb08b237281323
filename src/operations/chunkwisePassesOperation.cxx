/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwisePassesOperation.h"

namespace chunkwise
{

std::string
PassesOperation::GetObjection(const Operation & stage) const
{
  return stage.GetSchedule() == Schedule::Passes ? "is itself made of passes" : "";
}

const OutOfCoreRunner *
PassesOperation::GetOutOfCoreRunner() const
{
  return stages.empty() || !stages.back().operation ? nullptr : stages.back().operation->GetOutOfCoreRunner();
}

std::shared_ptr<PassesOperation>
MakeReconstructionOfExtremum(std::shared_ptr<const Operation> extremum, const ReconstructionOperation & reconstruction,
                             bool preservesIntensities)
{
  const auto flood = std::make_shared<ReconstructionOperation>(reconstruction);
  flood->marker = ReconstructionMarker::Image;
  flood->result = ReconstructionResult::Reconstruction;
  const auto operation = std::make_shared<PassesOperation>();
  operation->name = reconstruction.erosion ? "closing by reconstruction" : "opening by reconstruction";
  operation->stages = { { std::move(extremum) }, { flood, { 0, Stage::Input() } } };
  if (preservesIntensities)
  {
    const auto again = std::make_shared<ReconstructionOperation>(*flood);
    again->marker = ReconstructionMarker::Agreeing;
    operation->stages.push_back({ again, { 0, 1, Stage::Input() } });
  }
  return operation;
}

} // namespace chunkwise
