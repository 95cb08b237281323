/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseTaskLoop.h"

namespace chunkwise
{

namespace
{

/** One pass over all chunks in any order. */
template <typename TWork>
void
Pass(RunContext & context, const Plan & plan, TaskLoop & loop, TWork && work)
{
  std::vector<std::size_t> open;
  for (std::size_t i = plan.chunks.size(); i-- > 0;)
  {
    open.push_back(i);
  }
  std::size_t finished = 0;
  loop.Loop<std::size_t>(
    [&](std::size_t & task) {
      if (open.empty())
      {
        return false;
      }
      task = open.back();
      open.pop_back();
      return true;
    },
    work,
    [&](std::size_t task) {
      ++finished;
      context.AddFinishedVoxels(plan.chunks[task].outputBox.NumberOfVoxels());
    },
    [&](std::size_t task) { open.push_back(task); },
    [&] { return finished == plan.chunks.size(); });
}

} // namespace

void
RunTwoPass(RunContext & context, const Plan & plan, TaskLoop & loop)
{
  const Operation &     operation = *context.request.operation;
  const std::string     name = operation.GetName();
  std::vector<SideData> summaries(plan.chunks.size());
  std::vector<Box>      boxes;
  for (std::size_t i = 0; i < plan.chunks.size(); ++i)
  {
    boxes.push_back(plan.chunks[i].outputBox);
    summaries[i].resize(operation.GetSummaryBytes(boxes[i], context.inputKinds, context.request.output.kind));
  }
  Pass(context, plan, loop, [&](ChunkRunner & runner, std::size_t task) {
    runner.Run({ name + ".summarise", plan.chunks[task], nullptr, &summaries[task], false, nullptr });
  });
  const std::vector<SideData> solutions = operation.Solve(boxes, summaries);
  if (solutions.size() != plan.chunks.size())
  {
    throw Error("operation " + name + " solved " + std::to_string(solutions.size()) + " of " +
                std::to_string(plan.chunks.size()) + " chunks");
  }
  Pass(context, plan, loop, [&](ChunkRunner & runner, std::size_t task) {
    runner.Run({ name, plan.chunks[task], &solutions[task], nullptr, true, nullptr });
  });
}

} // namespace chunkwise
