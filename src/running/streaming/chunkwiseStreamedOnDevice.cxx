/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStreamedOnDevice.h"

#include "chunkwiseDevice.h"
#include "chunkwiseDeviceMemory.h"
#include "chunkwiseRoundUp.h"
#include "chunkwiseStreamedOutOfCore.h"
#include "chunkwiseStreamedWindow.h"
#include "chunkwiseThreads.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <limits>

namespace chunkwise
{

namespace
{

/** An operation that moves images: it gives what it is given, by the kernel that every backend has for that. */
class MoveOperation : public Operation
{
public:
  std::string
  GetName() const override
  {
    return "identity";
  }
  std::string
  GetKey() const override
  {
    return GetName();
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  void
  CheckKinds(const std::vector<PixelKind> &, PixelKind) const override
  {}
};

bool
HasKernels(const Device & device, const std::string & operation)
{
  const KernelRegistry & kernels = device.GetKernels();
  const bool             amends = GetHostKernels().Find(operation, &KernelSet::amend) != nullptr;
  return kernels.Find(operation) && (!amends || kernels.Find(operation, &KernelSet::amend));
}

/** Whether a run on a device needs nothing of the host that grows with the image. */
bool
CanBeHeld(const StreamedRequest & request)
{
  switch (request.operation->GetSchedule())
  {
    case Schedule::Fixpoint:
    case Schedule::Independent:
      return true;
    case Schedule::TwoPass:
      // In one chunk.
      return request.operation->HasOutput() && request.operation->RunsAlone(request.region, request.computedKind);
    default:
      return false;
  }
}

/** The request of moving the image, by which reading and writing are divided. */
StreamedRequest
MakeMoves(const StreamedRequest & request, int device)
{
  StreamedRequest moves = request;
  moves.operation = std::make_shared<MoveOperation>();
  moves.devices.assign(1, device);
  return moves;
}

/** The seconds that computing takes; infinity: there is no room. The plan's budgets become those of the run. */
double
PlanRun(Manager & manager, const StreamedRequest & request, int device, StreamedPlan & plan)
{
  const std::size_t room = manager.GetRoomOnDevice(device, request.budgets);
  // A division lies there once more on its way.
  std::size_t needed = RoundUp(BytesOf(GetDivision(request.region, plan, 0), PixelKind::Float64));
  for (const StreamedInput & input : request.inputs)
  {
    needed += RoundUp(BytesOf(request.region, input.kind));
  }
  needed += RoundUp(BytesOf(request.region, request.computedKind));
  if (needed >= room)
  {
    return std::numeric_limits<double>::infinity();
  }
  ExecutionRequest whole = MakeDivisionRequest(request, plan, request.region);
  whole.devices.assign(1, device);
  whole.budgets.host = 0;
  // A run that brings its images along takes more than one whose images are there.
  whole.budgets.device = room - needed;
  plan.budgets = whole.budgets;
  const Plan ofRun = manager.MakePlanFor(whole);
  return request.operation->GetSchedule() == Schedule::TwoPass && ofRun.chunks.size() > 1
           ? std::numeric_limits<double>::infinity()
           : ofRun.seconds;
}

/** The images of a run in a device's memory. */
class HeldImages
{
public:
  HeldImages(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan, Monitor * monitor)
    : m_Manager(manager)
    , m_Request(request)
    , m_Moves(MakeMoves(request, plan.heldOnDevice))
    , m_Plan(plan)
    , m_Monitor(monitor)
  {
    for (const StreamedInput & input : request.inputs)
    {
      m_Inputs.push_back(this->Hold(input.kind));
    }
    m_Output = this->Hold(request.computedKind);
  }

  /** Returns the seconds that reading took. */
  double
  Load()
  {
    DivisionMonitor ofPart(m_Monitor, 0, PartsOfHeldRun);
    return ReadStreamed(m_Manager, m_Moves, m_Plan, &ofPart, [this](const ExecutionRequest & division, Monitor *) {
      for (std::size_t i = 0; i < m_Inputs.size(); ++i)
      {
        this->Move(division.inputs[i], m_Inputs[i], division.region);
      }
    });
  }

  ExecutionReport
  Compute()
  {
    DivisionMonitor  ofPart(m_Monitor, 1, PartsOfHeldRun);
    ExecutionRequest run = this->MakeRequest(m_Request.operation, m_Request.region);
    run.inputs = m_Inputs;
    run.output = m_Output;
    ExecutionReport report = m_Manager.ExecuteOnDevice(run, m_Plan.heldOnDevice, nullptr, &ofPart);
    for (const BufferView & input : m_Inputs)
    {
      report.bytesToDevice += static_cast<double>(input.NumberOfBytes());
    }
    report.bytesToHost += static_cast<double>(m_Output.NumberOfBytes());
    return report;
  }

  StreamedReport
  Store(const std::shared_ptr<ImageSink> & sink)
  {
    DivisionMonitor ofPart(m_Monitor, 2, PartsOfHeldRun);
    return WriteStreamed(m_Manager, m_Moves, m_Plan, sink, &ofPart, [this](const BufferView & view) {
      this->Move(m_Output, view, view.box);
      m_MayBeWritten = true;
    });
  }
  /** A part of the result is on the host, where it is written. */
  bool
  MayBeWritten() const
  {
    return m_MayBeWritten;
  }

private:
  BufferView
  Hold(PixelKind kind)
  {
    BufferView view = DenseView(nullptr, kind, m_Request.region);
    m_Memory.push_back(
      m_Manager.AllocateOnDevice(m_Plan.heldOnDevice, view.NumberOfBytes(), m_Request.budgets.device, m_Monitor));
    view.data = m_Memory.back()->Get();
    return view;
  }

  ExecutionRequest
  MakeRequest(const std::shared_ptr<const Operation> & operation, const Box & region) const
  {
    ExecutionRequest request;
    request.operation = operation;
    request.image = m_Request.region;
    request.region = region;
    request.budgets = m_Request.budgets;
    return request;
  }

  /** To the device's memory or from it. */
  void
  Move(const BufferView & from, const BufferView & to, const Box & box)
  {
    ExecutionRequest move = this->MakeRequest(m_Moves.operation, box);
    move.inputs.push_back(from);
    move.output = to;
    move.copiesHostImages = true;
    m_Manager.ExecuteOnDevice(move, m_Plan.heldOnDevice, nullptr);
  }

  Manager &                                  m_Manager;
  const StreamedRequest &                    m_Request;
  const StreamedRequest                      m_Moves;
  const StreamedPlan &                       m_Plan;
  Monitor * const                            m_Monitor;
  std::vector<std::shared_ptr<DeviceMemory>> m_Memory;
  std::vector<BufferView>                    m_Inputs;
  BufferView                                 m_Output;
  bool                                       m_MayBeWritten{ false };
};

/** Lets a sink take its room while nothing is written yet; without a thread it takes it with what is written. */
class RoomAhead
{
public:
  explicit RoomAhead(const std::shared_ptr<ImageSink> & sink)
  {
    StartThread(m_Thread, [this, sink] { Take(*sink); });
  }
  ~RoomAhead() { this->Stop(); }
  RoomAhead(const RoomAhead &) = delete;
  RoomAhead &
  operator=(const RoomAhead &) = delete;

  /** Before anything is written. Throws what the sink threw. */
  void
  End()
  {
    this->Stop();
    if (m_Failure)
    {
      std::rethrow_exception(m_Failure);
    }
  }

private:
  void
  Stop()
  {
    m_Stop = true;
    if (m_Thread.joinable())
    {
      m_Thread.join();
    }
  }
  void
  Take(ImageSink & sink)
  {
    try
    {
      while (!m_Stop && sink.TakeRoom())
      {
      }
    }
    catch (...)
    {
      m_Failure = std::current_exception();
    }
  }

  std::atomic<bool>  m_Stop{ false };
  std::exception_ptr m_Failure;
  std::thread        m_Thread;
};

bool
CanReadAgain(const StreamedRequest & request)
{
  return std::all_of(request.inputs.begin(), request.inputs.end(), [](const StreamedInput & input) {
    return input.source->GetAccess().anyOrder;
  });
}

} // namespace

bool
PlanOnDevice(Manager & manager, const StreamedRequest & request, double mostSeconds, StreamedPlan & plan)
{
  if (request.backend == BackendChoice::CPU || !CanBeHeld(request))
  {
    return false;
  }
  const auto devices = manager.GetDevices();
  for (std::size_t i = 0; i < devices.size(); ++i)
  {
    const int  device = static_cast<int>(i);
    const bool isWanted =
      request.devices.empty() || std::count(request.devices.begin(), request.devices.end(), device) > 0;
    if (!isWanted || !HasKernels(*devices[i], request.operation->GetName()))
    {
      continue;
    }
    try
    {
      plan = MakeStreamedPlan(manager, MakeMoves(request, device));
      plan.heldOnDevice = device;
      if (PlanRun(manager, request, device, plan) < mostSeconds)
      {
        return true;
      }
    }
    catch (const Error &)
    {
      // Too little memory of the host or of the device, or a device that was lost.
    }
  }
  return false;
}

std::string
ExecuteHeld(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan,
            const std::shared_ptr<ImageSink> & sink, Monitor * monitor, StreamedReport & report)
{
  std::unique_ptr<HeldImages> images;
  const auto                  canGoOn = [&] { return !images || (!images->MayBeWritten() && CanReadAgain(request)); };
  try
  {
    images = std::make_unique<HeldImages>(manager, request, plan, monitor);
    RoomAhead    ahead(sink);
    const double reading = images->Load();
    const auto   start = std::chrono::steady_clock::now();
    const auto   execution = images->Compute();
    const auto   end = std::chrono::steady_clock::now();
    ahead.End();
    report = images->Store(sink);
    report.execution = execution;
    report.reading = reading;
    report.computing = std::chrono::duration<double>(end - start).count();
    return std::string();
  }
  catch (const BudgetError & error)
  {
    if (canGoOn())
    {
      return error.what();
    }
    throw;
  }
  catch (const DeviceError & error)
  {
    if (canGoOn())
    {
      return error.what();
    }
    throw;
  }
}

} // namespace chunkwise
