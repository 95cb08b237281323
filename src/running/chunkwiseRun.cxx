/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRun.h"

#include "chunkwiseChunkQueue.h"
#include "chunkwiseError.h"
#include "chunkwiseHostWorker.h"
#include "chunkwisePipeline.h"
#include "chunkwiseResidentRun.h"
#include "chunkwiseSchedules.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <chrono>

namespace chunkwise
{

namespace
{

/** Maximum number of times a chunk is halved before the device is dropped. */
constexpr int MostSplits = 12;
/** Visits of Fixpoint that a device makes at a time: most are small, and wait for one thing after the other. */
constexpr int VisitsOfDevice = 6;

/** One run with its threads. */
class Run
{
public:
  Run(ManagerState & manager, RunContext & context, const Plan & plan, const std::vector<std::size_t> & devices,
      ExecutionReport & report)
    : m_Manager(manager)
    , m_Context(context)
    , m_Plan(plan)
    , m_Devices(devices)
    , m_Report(report)
    , m_HostTakesChunks(devices.empty() || (context.request.hostTakesChunks &&
                                            context.request.operation->GetSchedule() == Schedule::Independent))
    , m_Queue(plan.chunks, devices.size() + 1, m_HostTakesChunks ? devices.size() + 1 : devices.size(),
              context.plannerRequest.sweepAxis)
  {
    if (context.request.operation->GetSchedule() == Schedule::Sweep)
    {
      m_Chain = std::make_unique<CarryChain>(context, devices.size() > 1);
    }
    m_Report.chunksPerDevice.assign(devices.size(), 0);
    m_Dropped.assign(devices.size(), false);
  }

  /** Starts the workers, serves the monitor from this thread until they end, and throws what ended the run early. */
  void
  Go(Monitor * monitor)
  {
    double             last = -1.0;
    std::exception_ptr callerFailure;
    const auto         report = [&](double fraction) {
      if (monitor && fraction > last)
      {
        last = fraction;
        monitor->UpdateProgress(fraction);
      }
    };
    // Short work may end before the second look.
    const auto look = [&](double fraction) {
      try
      {
        report(fraction);
        m_Context.stop = m_Context.stop || (monitor && monitor->ShouldAbort());
      }
      catch (...)
      {
        callerFailure = std::current_exception();
        m_Context.stop = true;
      }
    };
    const auto getFraction = [this] {
      const auto total = static_cast<double>(std::max<std::int64_t>(m_Context.counts.voxels, 1));
      return std::min(static_cast<double>(m_Context.counts.finishedVoxels) / total, 0.999);
    };
    std::thread workers;
    if (m_Devices.empty() && m_Context.request.isShort)
    {
      look(0.0);
      if (!m_Context.stop)
      {
        WorkAndEnd();
      }
    }
    else if (IsDrivenByOneThread() || !StartThread(workers, [this] { WorkAndEnd(); }))
    {
      look(0.0);
      auto next = std::chrono::steady_clock::now() + BetweenLooks;
      m_Context.SetPoll([&] {
        if (!callerFailure && std::chrono::steady_clock::now() >= next)
        {
          look(getFraction());
          next = std::chrono::steady_clock::now() + BetweenLooks;
        }
      });
      WorkAndEnd();
      m_Context.SetPoll(nullptr);
    }
    else
    {
      const auto lookAndClose = [&](double fraction) {
        look(fraction);
        if (m_Context.stop)
        {
          m_Queue.Close();
        }
      };
      lookAndClose(0.0);
      std::unique_lock<std::mutex> lock(m_Mutex);
      while (!m_Ended && !callerFailure)
      {
        m_Changed.wait_for(lock, BetweenLooks);
        lock.unlock();
        lookAndClose(getFraction());
        lock.lock();
      }
      lock.unlock();
      workers.join();
    }
    if (callerFailure)
    {
      std::rethrow_exception(callerFailure);
    }
    if (m_Failure)
    {
      std::rethrow_exception(m_Failure);
    }
    if (m_Context.ShouldStop())
    {
      throw Aborted();
    }
    report(1.0);
  }

private:
  static constexpr std::chrono::milliseconds BetweenLooks{ 10 };

  /** The device computes, and one thread can look after it and the monitor: it is the caller's. */
  bool
  IsDrivenByOneThread() const
  {
    const Schedule schedule = m_Context.request.operation->GetSchedule();
    return m_Context.residence && (schedule == Schedule::Independent || schedule == Schedule::Sweep);
  }

  void
  WorkAndEnd()
  {
    try
    {
      Work();
    }
    catch (...)
    {
      SetFailure(std::current_exception());
    }
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Ended = true;
    m_Changed.notify_all();
  }

  void
  Stop()
  {
    m_Context.stop = true;
    m_Queue.Close();
  }

  void
  SetFailure(std::exception_ptr failure)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (!m_Failure)
    {
      m_Failure = std::move(failure);
    }
  }

  void
  Warn(const std::string & text)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_Report.warnings.push_back(text);
  }

  bool
  HasEnded() const
  {
    return m_Context.ShouldStop() || m_Queue.IsFinished();
  }

  void
  Work()
  {
    const Schedule schedule = m_Context.request.operation->GetSchedule();
    if (schedule == Schedule::TwoPass)
    {
      WorkInPasses(m_Devices);
      return;
    }
    WorkInAnyOrder();
    const std::vector<Box> parts = m_Context.fixpoint.GetParts();
    const bool             alone =
      std::all_of(parts.begin(), parts.end(), [this](const Box & part) { return m_Context.StandsAlone(part); });
    if (schedule != Schedule::Fixpoint || m_Failure || m_Context.ShouldStop())
    {
      return;
    }
    if (!alone)
    {
      std::vector<std::size_t> devices;
      for (std::size_t d = 0; d < m_Devices.size(); ++d)
      {
        if (!m_Dropped[d])
        {
          devices.push_back(m_Devices[d]);
        }
      }
      WorkInPasses(devices);
    }
    FinalizeRegion();
  }

  /** The runner for the host's part of a schedule: the host, or the device where the images are. */
  std::unique_ptr<ChunkRunner>
  MakeHostsRunner()
  {
    if (m_Context.residence)
    {
      const std::size_t device = m_Context.residence->device;
      return MakeResidentRunner(
        m_Context, *m_Manager.devices[device], m_Manager.DeviceLimit(device, m_Context.request));
    }
    return MakeHostRunner(
      m_Context, m_Manager.GetExecutor(m_Context.request), m_Manager.host, m_Manager.HostLimit(m_Context.request));
  }

  /** Who made a run whose images are on a device has taken its turn. */
  bool
  TakeTurn(DeviceState & state, const std::function<bool()> & stop)
  {
    return m_Context.residence || state.TakeTurn(stop);
  }
  void
  EndTurn(DeviceState & state)
  {
    if (!m_Context.residence)
    {
      state.EndTurn();
    }
  }

  /** Fixpoint: lets the host see to what only a look at the whole region can tell. */
  void
  FinalizeRegion()
  {
    const Box & region = m_Context.request.region;
    const bool  finalizes = m_Context.FindKernel(m_Context.host.kernels, &KernelSet::finalizeRegion) != nullptr;
    if (finalizes && !region.IsEmpty() && !m_Context.ShouldStop())
    {
      MakeHostsRunner()->Run({ &KernelSet::finalizeRegion, { region, region } });
    }
  }

  /** Chunks that do not depend on each other. */
  void
  WorkInAnyOrder()
  {
    const bool               isAlone = m_Devices.size() == 1 && !m_HostTakesChunks;
    JoinedThreads            threads;
    std::vector<std::size_t> left;
    for (std::size_t d = 0; d < m_Devices.size(); ++d)
    {
      if (isAlone)
      {
        left.push_back(d);
      }
      else if (!threads.Start([this, d] { ServeDevice(d); }))
      {
        // Nobody is to wait for its first chunks.
        m_Queue.Leave(d);
        left.push_back(d);
      }
    }
    if (m_HostTakesChunks)
    {
      ServeHost();
    }
    for (const std::size_t d : left)
    {
      ServeDevice(d);
    }
    threads.Join();
    if (m_Failure || HasEnded())
    {
      return;
    }
    // Chunks are left and no device is.
    if (m_Context.request.backend == BackendChoice::CUDA || m_HostTakesChunks)
    {
      SetFailure(m_LastDeviceFailure ? m_LastDeviceFailure
                                     : std::make_exception_ptr(Error("no worker took the last chunks")));
      return;
    }
    Warn("the CPU takes over: no device is left");
    if (m_Context.spilled)
    {
      // The CPU needs the memory for itself.
      m_Context.host.meter.Remove(m_Context.spilled->GetBytes() * m_Devices.size());
      m_Context.spilled.reset();
      for (const std::size_t index : m_Devices)
      {
        m_Manager.devices[index]->keptSpill.Drop();
      }
    }
    ServeHost();
  }

  void
  ServeHost()
  {
    try
    {
      // A sweep has two carries at a time: what enters a chunk, and what leaves it.
      const MeteredBytes carries(m_Context.host.meter, m_Chain ? 2 * m_Chain->GetBytes() : 0);
      std::size_t        limit = m_Manager.HostLimit(m_Context.request);
      limit -= limit ? std::min(limit - 1, m_Chain ? 2 * m_Chain->GetBytes() : 0) : 0;
      HostWorker worker(m_Context, m_Manager.GetExecutor(m_Context.request), m_Manager.host, limit, m_Chain.get());
      Chunk      chunk;
      while (m_Queue.Claim(m_Devices.size(), chunk, [this] { return m_Context.ShouldStop(); }))
      {
        worker.Run(chunk);
        ++m_Report.chunksOnHost;
        m_Queue.Finish(m_Devices.size());
      }
    }
    catch (...)
    {
      SetFailure(std::current_exception());
      Stop();
    }
  }

  void
  ServeDevice(std::size_t d)
  {
    DeviceState & state = *m_Manager.devices[m_Devices[d]];
    try
    {
      if (TakeTurn(state, [this] { return HasEnded(); }))
      {
        struct Turn
        {
          Run &         run;
          DeviceState & state;
          ~Turn() { run.EndTurn(state); }
        } const turn{ *this, state };
        RunChunks(d, state);
      }
    }
    catch (const Aborted &)
    {
      // The run was stopped: who stopped it knows.
    }
    catch (...)
    {
      SetFailure(std::current_exception());
      Stop();
    }
    m_Queue.Leave(d);
  }

  /** Runs the pipeline until the queue is empty, with smaller chunks when memory fails and again when calls fail. */
  void
  RunChunks(std::size_t d, DeviceState & state)
  {
    const std::size_t memoryLimit = m_Manager.DeviceLimit(m_Devices[d], m_Context.request);
    const std::size_t pinnedLimit =
      m_Manager.PinnedLimit(m_Context.request, m_Context.spilled ? m_Context.spilled->GetBytes() : 0);
    state.memory.ResetPeak();
    state.pinned.ResetPeak();
    if (!m_Context.spilled)
    {
      // The budget may count on it.
      state.keptSpill.Drop();
    }
    int  splits = 0;
    int  failures = 0;
    bool isTrimmed = false;
    while (!HasEnded())
    {
      std::exception_ptr failure;
      std::string        why;
      bool               memoryFailed = false;
      bool               again = true;
      try
      {
        const std::int64_t finished =
          m_Context.residence
            ? RunResidentChunks(state, m_Context, m_Plan, m_Queue, m_Chain.get(), d, splits, memoryLimit)
            : Pipeline(state, m_Context, m_Plan, m_Queue, m_Chain.get(), d, splits, memoryLimit, pinnedLimit).Run();
        const std::lock_guard<std::mutex> lock(m_Mutex);
        m_Report.chunksPerDevice[d] += finished;
      }
      catch (const DeviceError & error)
      {
        failure = std::current_exception();
        why = error.what();
        memoryFailed = IsOutOfMemory(error);
        state.NoteFailure(error);
        again = !state.lost;
      }
      catch (const BudgetError & error)
      {
        failure = std::current_exception();
        why = error.what();
        memoryFailed = true;
      }
      {
        const std::lock_guard<std::mutex> lock(m_Mutex);
        m_Report.peakDevice = std::max(m_Report.peakDevice, state.memory.GetPeak());
        m_Report.peakPinned = std::max(m_Report.peakPinned, state.pinned.GetPeak());
      }
      if (!failure)
      {
        continue;
      }
      if (memoryFailed)
      {
        state.tables.Clear();
        state.memory.Trim();
        again = splits < MostSplits && Pipeline::CanSplit(m_Plan, splits, m_Context.plannerRequest);
        splits += again ? 1 : 0;
        // Blocks that were kept may be larger than what was planned: without them the smallest chunk may do.
        again = again || !isTrimmed;
        isTrimmed = true;
      }
      else if (++failures >= MostFailures)
      {
        again = false;
      }
      if (!again)
      {
        Warn(state.device->GetDescription().name + " dropped: " + why);
        const std::lock_guard<std::mutex> lock(m_Mutex);
        m_Dropped[d] = true;
        m_LastDeviceFailure = failure;
        return;
      }
      ++m_Context.counts.retries;
    }
  }

  /** The number of visits of Fixpoint that a device makes at a time, and so the voxels that one may have. */
  int
  ShareForVisits(std::size_t limit)
  {
    const std::size_t chunkBytes = m_Plan.inputBytes + m_Plan.outputBytes + m_Plan.scratchBytes;
    // Blocks of an arena may be a quarter larger than what was asked for.
    const double chunks =
      static_cast<double>(limit) / (1.25 * static_cast<double>(std::max<std::size_t>(chunkBytes, 1)));
    if (chunks < 1)
    {
      return 1;
    }
    const double voxels =
      chunks / VisitsOfDevice * static_cast<double>(Box::FromExtent(m_Plan.chunkExtent).NumberOfVoxels());
    m_Context.fixpoint.mostVoxelsOfVisit =
      std::min<std::int64_t>(m_Context.fixpoint.mostVoxelsOfVisit, static_cast<std::int64_t>(std::min(voxels, 9e18)));
    return VisitsOfDevice;
  }

  /** Runners of a device, as many as there is room for; at least one, or throws what the last try to make it did. */
  std::vector<std::unique_ptr<ChunkRunner>>
  MakeRunners(std::size_t index)
  {
    DeviceState &     state = *m_Manager.devices[index];
    const std::size_t limit = m_Manager.DeviceLimit(index, m_Context.request);
    const std::size_t pinned = m_Manager.PinnedLimit(m_Context.request);
    const bool        isFixpoint = m_Context.request.operation->GetSchedule() == Schedule::Fixpoint;
    const int         share = isFixpoint ? ShareForVisits(limit) : 1;
    // Nothing is transferred meanwhile.
    const int                                 most = m_Context.residence ? 1 : share;
    std::vector<std::unique_ptr<ChunkRunner>> runners;
    for (int failures = 0; runners.size() < static_cast<std::size_t>(most);)
    {
      try
      {
        runners.push_back(m_Context.residence ? MakeResidentRunner(m_Context, state, limit)
                                              : MakeDeviceRunner(m_Context, state, limit, pinned, most));
      }
      catch (const Error & error)
      {
        const auto * const ofDevice = dynamic_cast<const DeviceError *>(&error);
        if (ofDevice)
        {
          state.NoteFailure(*ofDevice);
        }
        if (ofDevice && ofDevice->kind == DeviceError::Kind::Failed && ++failures < MostFailures)
        {
          ++m_Context.counts.retries;
          continue;
        }
        if (runners.empty())
        {
          throw;
        }
        // With fewer no more than time is lost.
        break;
      }
    }
    return runners;
  }

  /** The state of a run in passes: runners, where each runs, and devices whose turn it is. */
  struct Passes
  {
    std::unique_ptr<ChunkRunner>              host;
    std::vector<std::unique_ptr<ChunkRunner>> runners;
    std::vector<std::size_t>                  served; ///< the device of each runner
    std::vector<DeviceState *>                turns;
    Run &                                     run;
    bool                                      isFixpoint;

    Passes(Run & ofRun, bool fixpoint)
      : run(ofRun)
      , isFixpoint(fixpoint)
    {}
    Passes(const Passes &) = delete;
    Passes &
    operator=(const Passes &) = delete;
    ~Passes() { this->EndTurns(); }

    void
    EndTurns()
    {
      runners.clear();
      host.reset();
      for (DeviceState * state : turns)
      {
        run.EndTurn(*state);
      }
      turns.clear();
    }
  };

  /** Runs TwoPass, and Fixpoint's visits to where chunks meet. A device, or the CPU where there is none, runs one step
   * at a time; of Fixpoint's visits a device runs some at a time if its memory has room, so that transfers overlap. */
  void
  WorkInPasses(const std::vector<std::size_t> & devices)
  {
    if (devices.empty() && m_Context.residence)
    {
      std::rethrow_exception(m_LastDeviceFailure);
    }
    Passes passes(*this, m_Context.request.operation->GetSchedule() == Schedule::Fixpoint);
    if (devices.empty())
    {
      this->PassOnHost(passes);
      return;
    }
    try
    {
      if (!this->TakeTurns(devices, passes))
      {
        return;
      }
      this->PassOnDevices(passes);
    }
    catch (const Error & error)
    {
      passes.EndTurns();
      const bool mayFallBack =
        dynamic_cast<const DeviceError *>(&error) != nullptr || dynamic_cast<const BudgetError *>(&error) != nullptr;
      if (!mayFallBack || m_Context.request.backend == BackendChoice::CUDA)
      {
        throw;
      }
      Warn(std::string("the CPU takes over: ") + error.what());
      m_Context.counts.finishedVoxels = passes.isFixpoint ? m_Context.counts.finishedVoxels.load() : 0;
      this->PassOnHost(passes);
      return;
    }
    for (const DeviceState * state : passes.turns)
    {
      m_Report.peakDevice = std::max(m_Report.peakDevice, state->memory.GetPeak());
      m_Report.peakPinned = std::max(m_Report.peakPinned, state->pinned.GetPeak());
    }
  }

  /** Takes the turn of each device and makes its runners; a device that cannot have any is dropped. Whether the run
   * goes on: not if it was to stop while it waited. */
  bool
  TakeTurns(const std::vector<std::size_t> & devices, Passes & passes)
  {
    std::exception_ptr failure;
    // In ascending order, so that two runs never wait for each other.
    for (const std::size_t index : devices)
    {
      DeviceState & state = *m_Manager.devices[index];
      if (!TakeTurn(state, [this] { return m_Context.ShouldStop(); }))
      {
        return false;
      }
      passes.turns.push_back(&state);
      state.memory.ResetPeak();
      state.pinned.ResetPeak();
      try
      {
        for (auto & runner : MakeRunners(index))
        {
          passes.runners.push_back(std::move(runner));
          passes.served.push_back(index);
        }
      }
      catch (const Error & error)
      {
        failure = std::current_exception();
        Warn(state.device->GetDescription().name + " dropped: " + error.what());
      }
    }
    if (passes.runners.empty())
    {
      std::rethrow_exception(failure);
    }
    return true;
  }

  void
  PassOnDevices(Passes & passes)
  {
    passes.host = MakeHostsRunner();
    if (passes.isFixpoint)
    {
      RunSchedule(m_Context, m_Plan, passes.runners, m_Report.warnings, *passes.host);
      return;
    }
    const std::vector<std::int64_t> finished = RunInSmallerChunks(passes.runners, passes.turns, *passes.host);
    for (std::size_t d = 0; d < m_Devices.size(); ++d)
    {
      const auto found = std::find(passes.served.begin(), passes.served.end(), m_Devices[d]);
      m_Report.chunksPerDevice[d] =
        found == passes.served.end() ? 0 : finished[static_cast<std::size_t>(found - passes.served.begin())];
    }
  }

  void
  PassOnHost(Passes & passes)
  {
    passes.runners.clear();
    passes.runners.push_back(MakeHostRunner(
      m_Context, m_Manager.GetExecutor(m_Context.request), m_Manager.host, m_Manager.HostLimit(m_Context.request)));
    passes.host = MakeHostsRunner();
    if (passes.isFixpoint)
    {
      RunSchedule(m_Context, m_Plan, passes.runners, m_Report.warnings, *passes.host);
    }
    else
    {
      m_Report.chunksOnHost = RunInSmallerChunks(passes.runners, passes.turns, *passes.host)[0];
    }
  }

  /** Runs the schedule, again with halved chunks as long as memory fails: what its chunks hold of each other belongs to
   * one way of cutting. The number of chunks that each runner finished. */
  std::vector<std::int64_t>
  RunInSmallerChunks(std::vector<std::unique_ptr<ChunkRunner>> & runners, const std::vector<DeviceState *> & states,
                     ChunkRunner & host)
  {
    const bool mayCut = m_Context.request.operation->SummariesMerge();
    Plan       plan = m_Plan;
    for (int splits = 0;; ++splits)
    {
      std::vector<Chunk> smaller = HalveChunks(plan.chunks, plan.sweepAxis, m_Context.plannerRequest);
      m_Context.chunksCanShrink = splits < MostSplits && smaller.size() > plan.chunks.size() && mayCut;
      try
      {
        return RunSchedule(m_Context, plan, runners, m_Report.warnings, host);
      }
      catch (const Error & error)
      {
        if (!IsOutOfMemory(error) || !m_Context.chunksCanShrink)
        {
          throw;
        }
        plan.chunks.swap(smaller);
      }
      for (DeviceState * state : states)
      {
        state->tables.Clear();
        state->memory.Trim();
      }
      m_Context.counts.finishedVoxels = 0;
      ++m_Context.counts.retries;
    }
  }

  ManagerState &                   m_Manager;
  RunContext &                     m_Context;
  const Plan &                     m_Plan;
  const std::vector<std::size_t> & m_Devices;
  ExecutionReport &                m_Report;
  const bool                       m_HostTakesChunks;
  ChunkQueue                       m_Queue;
  std::unique_ptr<CarryChain>      m_Chain; ///< of a sweep
  std::mutex                       m_Mutex;
  std::condition_variable          m_Changed;
  bool                             m_Ended{ false };
  std::exception_ptr               m_Failure;
  std::exception_ptr               m_LastDeviceFailure;
  std::vector<bool>                m_Dropped; ///< of m_Devices
};

} // namespace

void
ExecutePlan(ManagerState & manager, RunContext & context, const Plan & plan, const std::vector<std::size_t> & devices,
            Monitor * monitor, ExecutionReport & report)
{
  Run run(manager, context, plan, devices, report);
  run.Go(monitor);
}

} // namespace chunkwise
