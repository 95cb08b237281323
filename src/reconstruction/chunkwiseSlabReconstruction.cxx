/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSlabReconstruction.h"

#include "chunkwiseError.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseSlabPasses.h"
#include "chunkwiseSlabRun.h"
#include "chunkwiseThreads.h"

#include <condition_variable>
#include <mutex>

namespace chunkwise
{

namespace
{

const ReconstructionOperation &
GetReconstruction(const SlabRequest & request)
{
  const auto * const operation = dynamic_cast<const ReconstructionOperation *>(request.operation.get());
  if (!operation)
  {
    throw ParameterError("operation " + (request.operation ? request.operation->GetName() : std::string("none")) +
                         " does not run in slabs");
  }
  return *operation;
}

bool
IsPasses(const SlabRequest & request)
{
  return request.operation && request.operation->GetSchedule() == Schedule::Passes;
}

void
CheckRequest(const SlabRequest & request)
{
  const ReconstructionOperation & operation = GetReconstruction(request);
  if (!request.sink)
  {
    throw ParameterError("a run in slabs needs a sink");
  }
  const Coordinates extent = request.sink->GetExtent();
  if (static_cast<int>(request.sources.size()) != operation.GetNumberOfInputs())
  {
    throw ParameterError("operation " + operation.GetName() + " takes " +
                         std::to_string(operation.GetNumberOfInputs()) + " inputs, not " +
                         std::to_string(request.sources.size()));
  }
  std::vector<PixelType> kinds;
  for (const auto & source : request.sources)
  {
    if (source->GetExtent() != extent)
    {
      throw ParameterError("an input has " + ToString(source->GetExtent()) + " voxels, the output " + ToString(extent));
    }
    kinds.push_back(source->GetKind());
  }
  operation.Validate(extent);
  operation.CheckKinds(kinds, request.sink->GetKind());
}

/** A run in a separate thread, if the system starts one. */
class RunningSlabs
{
public:
  explicit RunningSlabs(SlabRun & run)
    : m_Run(run)
    , m_IsStarted(m_Thread.Start([this] { Work(); }))
  {}

  bool
  IsStarted() const
  {
    return m_IsStarted;
  }

  /** Waits for a while. False if the run has not ended. */
  bool
  Wait(std::chrono::milliseconds time)
  {
    std::unique_lock<std::mutex> lock(m_Mutex);
    return m_Changed.wait_for(lock, time, [this] { return m_Ended; });
  }
  /** The exception that ended the run. */
  std::exception_ptr
  GetFailure()
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    return m_Failure;
  }

  void
  Work()
  {
    std::exception_ptr failure;
    try
    {
      m_Run.Go();
    }
    catch (...)
    {
      failure = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Failure = failure;
    m_Ended = true;
    m_Changed.notify_all();
  }

private:
  SlabRun &               m_Run;
  std::mutex              m_Mutex;
  std::condition_variable m_Changed;
  bool                    m_Ended{ false };
  std::exception_ptr      m_Failure;
  JoinedThreads           m_Thread;
  const bool              m_IsStarted;
};

/** Serves the monitor from this thread while the run works on another, or here, and throws what ended it. */
void
Serve(SlabRun & run, Monitor * monitor)
{
  RunningSlabs       running(run);
  std::exception_ptr callerFailure;
  double             last = -1;
  bool               asks = monitor != nullptr;
  const auto         look = [&] {
    try
    {
      const double now = std::min(run.GetFraction(), 0.999);
      if (asks && now > last)
      {
        last = now;
        monitor->UpdateProgress(now);
      }
      asks = asks && !monitor->ShouldAbort();
    }
    catch (...)
    {
      callerFailure = std::current_exception();
      asks = false;
    }
    if (monitor && !asks)
    {
      run.Stop();
    }
  };
  constexpr std::chrono::milliseconds betweenLooks{ 10 };
  look();
  if (running.IsStarted())
  {
    while (!running.Wait(betweenLooks))
    {
      look();
    }
  }
  else
  {
    auto next = std::chrono::steady_clock::now() + betweenLooks;
    run.SetPoll([&] {
      if (std::chrono::steady_clock::now() >= next)
      {
        look();
        next = std::chrono::steady_clock::now() + betweenLooks;
      }
    });
    running.Work();
    run.SetPoll(nullptr);
  }
  for (const std::exception_ptr & failure : { callerFailure, running.GetFailure() })
  {
    if (failure)
    {
      std::rethrow_exception(failure);
    }
  }
  if (monitor)
  {
    monitor->UpdateProgress(1.0);
  }
}

} // namespace

std::uint64_t
GetLeastHostBytes(Manager & manager, const SlabRequest & request)
{
  SlabRequest least = request;
  least.hostBytes = 1;
  try
  {
    if (IsPasses(least))
    {
      RunPassesInSlabs(manager, least, nullptr, false);
      return 1;
    }
    CheckRequest(least);
    const unsigned int threads = request.executor ? request.executor->GetConcurrency() : GetNumberOfProcessors();
    SlabPlanner(manager, least, GetReconstruction(least), static_cast<int>(std::max(threads, 1u))).MakePlan();
  }
  catch (const BudgetError & error)
  {
    return error.needed;
  }
  return 1;
}

SlabReport
ReconstructInSlabs(Manager & manager, const SlabRequest & request, Monitor * monitor)
{
  if (IsPasses(request))
  {
    return RunPassesInSlabs(manager, request, monitor);
  }
  CheckRequest(request);
  SlabReport report;
  if (Box::FromExtent(request.sink->GetExtent()).IsEmpty())
  {
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    return report;
  }
  const std::unique_ptr<Executor> own = request.executor ? nullptr : MakeThreadExecutor();
  Executor &                      executor = request.executor ? *request.executor : *own;
  const SlabPlanner planner(manager, request, GetReconstruction(request), static_cast<int>(executor.GetConcurrency()));
  const SlabPlan    plan = planner.MakePlan();
  CheckDevices(manager, request, GetReconstruction(request));
  SlabRun run(manager, request, GetReconstruction(request), planner, plan, executor, report);
  Serve(run, monitor);
  return report;
}

namespace
{

SlabRequest
MakeSlabRequest(const OutOfCoreRequest & request)
{
  SlabRequest slabs;
  static_cast<OutOfCoreRequest &>(slabs) = request;
  return slabs;
}

class SlabRunner : public OutOfCoreRunner
{
public:
  int
  GetNumberOfPasses() const override
  {
    return 2;
  }
  std::uint64_t
  GetLeastHostBytes(Manager & manager, const OutOfCoreRequest & request) const override
  {
    return chunkwise::GetLeastHostBytes(manager, MakeSlabRequest(request));
  }
  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    const SlabReport run = ReconstructInSlabs(manager, MakeSlabRequest(request), monitor);
    OutOfCoreReport  report;
    report.execution = run.execution;
    report.spoolWritten = run.spoolWritten;
    report.waiting = run.waiting;
    report.reading = run.reading;
    report.writing = run.writing;
    report.steps = { { "flooding", run.flooding },
                     { "letting in", run.flowing },
                     { "contracting", run.contracting },
                     { "packing", run.packing },
                     { "finishing", run.finishing } };
    return report;
  }
};

} // namespace

const OutOfCoreRunner *
ReconstructionOperation::GetOutOfCoreRunner() const
{
  static const SlabRunner runner;
  return &runner;
}

} // namespace chunkwise
