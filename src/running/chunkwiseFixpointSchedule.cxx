/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFixpointWork.h"
#include "chunkwiseTaskLoop.h"

namespace chunkwise
{

namespace
{

/** Voxels that visits go over while the host settles one, and voxels settled in the time that a visit takes whatever
 * its size (an H200 and 16 cores: 0.15 ns, 2.5 ns and 0.3 ms). */
constexpr double VisitedForSettled = 16;
constexpr double VoxelsOfVisit = 1 << 17;

} // namespace

void
RunFixpoint(RunContext & context, const Plan & plan, TaskLoop & loop, ChunkRunner & host)
{
  const ExecutionRequest & request = context.request;
  const std::string        name = request.operation->GetName();
  const Halo               halo = request.operation->GetHalo(request.image.Extents());
  const std::vector<Box>   parts = context.GetParts();
  const bool               knowsOpen = context.hostKernels.Find(name + ".isopen") != nullptr;
  const auto               isOpen = [&](const Box & layer, const Box & held) {
    std::uint32_t open = knowsOpen ? 0 : 1;
    if (knowsOpen)
    {
      host.Run({ name + ".isopen", { layer, held }, nullptr, nullptr, true, &open });
    }
    return open != 0;
  };
  FixpointWork work(request.region, halo, parts, plan.sweepAxis, context.mostVoxelsOfVisit, isOpen);
  if (context.stateIsTorn)
  {
    work.MarkAll();
  }
  struct Task
  {
    FixpointWork::Visit visit;
    /** Another visit was under way at some time of this one, perhaps in the same memory. */
    std::atomic<bool> overlapped{ false };
    bool              failed{ false };
  };
  std::vector<std::shared_ptr<Task>> running;
  bool                               oneAtATime = false;
  const auto                         forget = [&running](const std::shared_ptr<Task> & task) {
    running.erase(std::find(running.begin(), running.end(), task));
  };
  double     patience = context.hostKernels.Find(name + ".settle") ? request.operation->GetPatience() : -1;
  const auto isOutOfPatience = [&] {
    const double cost = static_cast<double>(work.GetVisitedVoxels()) / VisitedForSettled +
                        static_cast<double>(work.GetVisits()) * VoxelsOfVisit;
    return patience >= 0 && cost > patience * static_cast<double>(request.region.NumberOfVoxels());
  };
  // Nobody knows how many visits there will be: their share of the progress is approached.
  ShareControl progress(&context, context.visitShare, context.visitShare);
  std::int64_t reported = 0;
  const auto   report = [&] {
    const auto visited = static_cast<double>(work.GetVisitedVoxels());
    const auto all = static_cast<double>(request.region.NumberOfVoxels());
    const auto now = static_cast<std::int64_t>(static_cast<double>(context.visitShare) * visited / (visited + all));
    progress.AddFinishedVoxels(now - reported);
    reported = now;
  };
  const auto visit = [&] {
    loop.Loop<std::shared_ptr<Task>>(
      [&](std::shared_ptr<Task> & task) {
        task = std::make_shared<Task>();
        if (isOutOfPatience() || (oneAtATime && !running.empty()) || !work.Take(task->visit))
        {
          return false;
        }
        for (const auto & other : running)
        {
          other->overlapped = task->overlapped = true;
        }
        running.push_back(task);
        return true;
      },
      [&](ChunkRunner & runner, const std::shared_ptr<Task> & task) {
        const Box & box = task->visit.box;
        try
        {
          runner.Run(
            { name, { box, PadAndCrop(box, halo, request.image) }, nullptr, nullptr, true, &task->visit.sides });
        }
        catch (const Error & error)
        {
          task->failed = IsOutOfMemory(error) && (task->overlapped || FixpointWork::CanShrink(task->visit));
          if (!task->failed)
          {
            throw;
          }
        }
      },
      [&](const std::shared_ptr<Task> & task) {
        forget(task);
        if (task->failed)
        {
          if (task->overlapped)
          {
            oneAtATime = true;
          }
          else
          {
            work.Shrink(task->visit);
          }
          work.PutBack(task->visit);
          ++context.retries;
          return;
        }
        work.Finish(task->visit);
        report();
      },
      [&](const std::shared_ptr<Task> & task) {
        forget(task);
        context.stateIsTorn = true;
        work.PutBack(task->visit);
      },
      [&] { return work.IsDone() || (isOutOfPatience() && running.empty()); });
  };
  visit();
  if (!work.IsDone())
  {
    patience = -1;
    try
    {
      std::uint32_t sides = 0;
      host.Run({ name + ".settle", { request.region, request.region }, nullptr, nullptr, true, &sides });
      work.MarkAll();
      ++context.settled;
    }
    catch (const BudgetError &)
    {
      // The host has not the memory for it: visits go on.
    }
    visit();
  }
  progress.Complete();
  context.revisits += work.GetVisits();
  context.revisitedVoxels += work.GetVisitedVoxels();

  if (context.hostKernels.Find(name + ".finish"))
  {
    for (const Box & part : parts)
    {
      if (!context.StandsAlone(part))
      {
        host.Run({ name + ".finish", { part, part } });
      }
    }
  }
}

} // namespace chunkwise
