/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSchedules.h"

#include "chunkwiseTaskLoop.h"

namespace chunkwise
{

ChunkRunner::~ChunkRunner() = default;

std::vector<std::int64_t>
RunSchedule(RunContext & context, const Plan & plan, std::vector<std::unique_ptr<ChunkRunner>> & runners,
            std::vector<std::string> & warnings, ChunkRunner & host)
{
  TaskLoop loop(context, runners, warnings);
  switch (context.request.operation->GetSchedule())
  {
    case Schedule::TwoPass:
      RunTwoPass(context, plan, loop);
      break;
    case Schedule::Fixpoint:
      RunFixpoint(context, plan, loop, host);
      break;
    case Schedule::Independent:
    case Schedule::Sweep:
    case Schedule::Passes:
      throw Error("independent chunks and those of a sweep run through the pipeline, and passes one by one");
  }
  return loop.GetFinished();
}

} // namespace chunkwise
