/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostCopy.h"
#include "chunkwiseTaskLoop.h"

namespace chunkwise
{

namespace
{

/** The state starts as a copy of an input. */
void
CopyInitialState(const RunContext & context)
{
  const std::string name = context.request.operation->GetName();
  const auto &      input =
    context.request.inputs[static_cast<std::size_t>(context.request.operation->GetInitialStateInput())];
  if (input.kind != context.request.output.kind)
  {
    throw ParameterError("operation " + name + " starts from its input, whose kind " + PixelKindName(input.kind) +
                         " must be the output's, " + PixelKindName(context.request.output.kind));
  }
  const DenseSequence from(input, context.request.region, context.request.image);
  const DenseSequence to(context.request.output, context.request.region, context.request.image);
  std::vector<char>   block(std::min<std::size_t>(from.GetNumberOfBytes(), std::size_t{ 1 } << 20));
  for (std::size_t at = 0; at < from.GetNumberOfBytes(); at += block.size())
  {
    const std::size_t end = std::min(at + block.size(), from.GetNumberOfBytes());
    from.Gather(at, end, block.data());
    to.Scatter(at, end, block.data());
  }
}

} // namespace

/** Dirty chunks until there is none. Chunks whose halos meet never run at the same time, so that the state a chunk
 * reads is whole. */
void
RunFixpoint(RunContext & context, const Plan & plan, TaskLoop & loop, Executor & executor)
{
  const std::string    name = context.request.operation->GetName();
  const auto           count = plan.chunks.size();
  const Kernel * const begin = context.hostKernels.Find(name + ".begin");
  const Kernel * const finish = context.hostKernels.Find(name + ".finish");
  // Neighbours by the side of the first chunk that they touch: what a changed border layer may reach.
  std::vector<std::vector<std::pair<std::size_t, std::uint32_t>>> neighbours(count);
  for (std::size_t i = 0; i < count; ++i)
  {
    for (std::size_t j = 0; j < count; ++j)
    {
      if (i == j || Intersect(plan.chunks[j].inputBox, plan.chunks[i].outputBox).IsEmpty())
      {
        continue;
      }
      std::uint32_t sides = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        sides |= plan.chunks[j].outputBox.upper[a] <= plan.chunks[i].outputBox.lower[a] ? 1u << (2 * a) : 0u;
        sides |= plan.chunks[j].outputBox.lower[a] >= plan.chunks[i].outputBox.upper[a] ? 2u << (2 * a) : 0u;
      }
      neighbours[i].emplace_back(j, sides);
    }
  }
  const auto isAlone = [&](std::size_t i) { return begin && neighbours[i].empty(); };
  HostTables tables;
  const auto onHost = [&](const Kernel & kernel) {
    for (std::size_t i = 0; i < count; ++i)
    {
      if (!isAlone(i))
      {
        KernelCall call = context.MakeHostCall(plan.chunks[i], executor, tables);
        call.control = nullptr;
        kernel.run(call);
      }
    }
  };
  if (begin)
  {
    onHost(*begin);
  }
  else
  {
    CopyInitialState(context);
  }
  std::vector<bool>        dirty(count, true);
  std::vector<bool>        running(count, false);
  std::vector<bool>        counted(count, false);
  std::vector<std::size_t> touched(count, 1); ///< changes since the chunk ran: the most changed goes first
  std::size_t              open = count;
  struct Task
  {
    std::size_t   chunk{ 0 };
    std::uint32_t sides{ 0 };
  };
  loop.Loop<std::shared_ptr<Task>>(
    [&](std::shared_ptr<Task> & task) {
      std::size_t best = count;
      for (std::size_t i = 0; i < count; ++i)
      {
        const bool blocked = running[i] || std::any_of(neighbours[i].begin(), neighbours[i].end(), [&](const auto & n) {
                               return running[n.first];
                             });
        if (dirty[i] && !blocked && (best == count || touched[i] > touched[best]))
        {
          best = i;
        }
      }
      if (best == count)
      {
        return false;
      }
      dirty[best] = false;
      running[best] = true;
      touched[best] = 0;
      task = std::make_shared<Task>();
      task->chunk = best;
      return true;
    },
    [&](ChunkRunner & runner, const std::shared_ptr<Task> & task) {
      runner.Run({ name, plan.chunks[task->chunk], nullptr, nullptr, true, &task->sides, isAlone(task->chunk) });
    },
    [&](const std::shared_ptr<Task> & task) {
      running[task->chunk] = false;
      --open;
      for (const auto & neighbour : neighbours[task->chunk])
      {
        if ((neighbour.second & task->sides) != neighbour.second)
        {
          continue;
        }
        ++touched[neighbour.first];
        if (!dirty[neighbour.first])
        {
          dirty[neighbour.first] = true;
          ++open;
        }
      }
      if (!counted[task->chunk])
      {
        counted[task->chunk] = true;
        context.AddFinishedVoxels(plan.chunks[task->chunk].outputBox.NumberOfVoxels());
      }
    },
    [&](const std::shared_ptr<Task> & task) {
      running[task->chunk] = false;
      dirty[task->chunk] = true;
    },
    [&] { return open == 0; });
  if (finish)
  {
    onHost(*finish);
  }
}

} // namespace chunkwise
