/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseTaskLoop.h"

namespace chunkwise
{

namespace
{

/** One pass over all chunks in any order: work(runner, chunk) by the runners, then finish(chunk) one at a time. */
template <typename TWork, typename TFinish>
void
Pass(const Plan & plan, TaskLoop & loop, TWork && work, TFinish && finish)
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
      finish(task);
    },
    [&](std::size_t task) { open.push_back(task); },
    [&] { return finished == plan.chunks.size(); });
}

/** The first pass alone, of an operation without an output: summaries are added up as they come. */
void
RunSummarise(RunContext & context, const Plan & plan, TaskLoop & loop)
{
  const Operation & operation = *context.request.operation;
  const std::size_t bytes = operation.GetSummaryBytes(context.request.region, context.inputKinds, PixelType::UInt8);
  std::vector<ChunkState> summaries(plan.chunks.size());
  if (plan.chunks.size() > 1 && !operation.SummariesMerge())
  {
    throw Error("operation " + operation.GetName() + " summarizes no parts of a region");
  }
  const bool isTotal = plan.chunks.size() <= 1 && operation.SummaryIsTotal();
  context.total = isTotal ? operation.TakeSummaryMemory() : ChunkState();
  context.total.assign(bytes, 0);
  Pass(
    plan,
    loop,
    [&](ChunkRunner & runner, std::size_t task) {
      ChunkState & summary = isTotal ? context.total : summaries[task];
      summary.resize(bytes);
      ChunkRunner::Step step;
      step.role = &KernelSet::summarize;
      step.chunk = plan.chunks[task];
      step.sideOut = &summary;
      step.writesOutput = false;
      step.reportsVoxels = true;
      runner.Run(step);
    },
    [&](std::size_t task) {
      if (!isTotal)
      {
        operation.MergeSummary(context.total, summaries[task]);
        summaries[task] = ChunkState();
      }
    });
}

} // namespace

void
RunTwoPass(RunContext & context, const Plan & plan, TaskLoop & loop)
{
  const Operation & operation = *context.request.operation;
  if (!operation.HasOutput())
  {
    RunSummarise(context, plan, loop);
    return;
  }
  const auto addFinishedVoxels = [&](std::size_t task) {
    context.AddFinishedVoxels(plan.chunks[task].outputBox.NumberOfVoxels());
  };
  if (plan.chunks.size() == 1 && operation.RunsAlone(context.request.region, context.request.output.kind))
  {
    Pass(
      plan,
      loop,
      [&](ChunkRunner & runner, std::size_t task) {
        runner.Run({ &KernelSet::alone, plan.chunks[task], nullptr, nullptr, true, nullptr });
      },
      [&](std::size_t task) {
        addFinishedVoxels(task);
        addFinishedVoxels(task);
      });
    return;
  }
  std::vector<ChunkState> summaries(plan.chunks.size());
  std::vector<Box>        boxes;
  for (std::size_t i = 0; i < plan.chunks.size(); ++i)
  {
    boxes.push_back(plan.chunks[i].outputBox);
    summaries[i].resize(operation.GetSummaryBytes(boxes[i], context.inputKinds, context.request.output.kind));
  }
  Pass(
    plan,
    loop,
    [&](ChunkRunner & runner, std::size_t task) {
      runner.Run({ &KernelSet::summarize, plan.chunks[task], nullptr, &summaries[task], false, nullptr });
    },
    addFinishedVoxels);
  const std::vector<ChunkState> solutions = operation.Solve(boxes, summaries);
  if (solutions.size() != plan.chunks.size())
  {
    throw Error("operation " + operation.GetName() + " solved " + std::to_string(solutions.size()) + " of " +
                std::to_string(plan.chunks.size()) + " chunks");
  }
  Pass(
    plan,
    loop,
    [&](ChunkRunner & runner, std::size_t task) {
      runner.Run({ &KernelSet::compute, plan.chunks[task], &solutions[task], nullptr, true, nullptr });
    },
    addFinishedVoxels);
}

} // namespace chunkwise
