/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseTaskLoop.h"

namespace chunkwise
{

/** Chunks in order; each begins when the carry of the one before it is known, and its carry is computed first, so that
 * the next chunk need not wait for its output. */
void
RunSweep(RunContext & context, const Plan & plan, TaskLoop & loop)
{
  const Operation &        operation = *context.request.operation;
  const PixelKind          output = context.request.output.kind;
  const std::string        name = operation.GetName();
  std::vector<SideData>    carries(plan.chunks.size() + 1);
  std::vector<bool>        known(plan.chunks.size() + 1, false);
  std::vector<std::size_t> again;
  std::size_t              next = 0;
  std::size_t              finished = 0;
  std::mutex               mutex;
  const auto               carryBytes = [&](std::size_t i) {
    return operation.GetCarryBytes(plan.chunks[i].outputBox, context.inputKinds, output);
  };
  if (!plan.chunks.empty())
  {
    carries[0] = operation.GetInitialCarry(plan.chunks[0].outputBox, context.inputKinds, output);
    known[0] = true;
  }
  const auto isKnown = [&](std::size_t i) -> bool {
    const std::lock_guard<std::mutex> lock(mutex);
    return known[i];
  };
  loop.Loop<std::size_t>(
    [&](std::size_t & task) {
      // It has begun before, so that its carry is known.
      if (!again.empty())
      {
        task = again.back();
        again.pop_back();
        return true;
      }
      if (next < plan.chunks.size() && isKnown(next))
      {
        task = next++;
        return true;
      }
      return false;
    },
    [&](ChunkRunner & runner, std::size_t task) {
      const Chunk & chunk = plan.chunks[task];
      if (task + 1 < plan.chunks.size() && !isKnown(task + 1))
      {
        SideData          carry(carryBytes(task + 1));
        ChunkRunner::Step advance{ name + ".advance", chunk, &carries[task], &carry, false, nullptr };
        runner.Run(advance);
        const std::lock_guard<std::mutex> lock(mutex);
        carries[task + 1] = std::move(carry);
        known[task + 1] = true;
      }
      runner.Run({ name, chunk, &carries[task], nullptr, true, nullptr });
    },
    [&](std::size_t task) {
      ++finished;
      context.AddFinishedVoxels(plan.chunks[task].outputBox.NumberOfVoxels());
    },
    [&](std::size_t task) { again.push_back(task); },
    [&] { return finished == plan.chunks.size(); });
}

} // namespace chunkwise
