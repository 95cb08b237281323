/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseFixpointWork.h"
#include "chunkwiseTaskLoop.h"

namespace chunkwise
{

namespace
{

/** Whether a step failed for want of memory. */
bool
IsOutOfMemory(const std::exception_ptr & failure)
{
  try
  {
    std::rethrow_exception(failure);
  }
  catch (const BudgetError &)
  {
    return true;
  }
  catch (const DeviceError & error)
  {
    return error.kind == DeviceError::Kind::OutOfMemory;
  }
  catch (...)
  {
    return false;
  }
}

} // namespace

void
RunFixpoint(RunContext & context, const Plan & plan, TaskLoop & loop, Executor & executor)
{
  const ExecutionRequest & request = context.request;
  const std::string        name = request.operation->GetName();
  const Halo               halo = request.operation->GetHalo(request.image.Extents());
  const std::vector<Box>   parts = context.GetParts();
  FixpointWork             work(request.region, request.image, halo, parts, plan.sweepAxis);
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
  loop.Loop<std::shared_ptr<Task>>(
    [&](std::shared_ptr<Task> & task) {
      task = std::make_shared<Task>();
      if ((oneAtATime && !running.empty()) || !work.Take(task->visit))
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
        runner.Run({ name, { box, PadAndCrop(box, halo, request.image) }, nullptr, nullptr, true, &task->visit.sides });
      }
      catch (const Error &)
      {
        task->failed = IsOutOfMemory(std::current_exception()) && (task->overlapped || work.CanShorten(task->visit));
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
          work.Shorten(task->visit);
        }
        work.PutBack(task->visit);
        ++context.retries;
        return;
      }
      work.Finish(task->visit);
    },
    [&](const std::shared_ptr<Task> & task) {
      forget(task);
      context.stateIsTorn = true;
      work.PutBack(task->visit);
    },
    [&] { return work.IsDone(); });
  context.revisits += work.GetVisits();
  context.revisitedVoxels += work.GetVisitedVoxels();

  if (const Kernel * const finish = context.hostKernels.Find(name + ".finish"))
  {
    HostTables tables;
    for (const Box & part : parts)
    {
      if (!context.StandsAlone(part))
      {
        KernelCall call = context.MakeHostCall({ part, part }, executor, tables);
        call.control = nullptr;
        finish->run(call);
      }
    }
  }
}

} // namespace chunkwise
