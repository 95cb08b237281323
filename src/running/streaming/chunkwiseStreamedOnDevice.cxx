/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStreamedOnDevice.h"

#include "chunkwiseDevice.h"
#include "chunkwiseDividedImages.h"
#include "chunkwiseError.h"
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
  CheckKinds(const std::vector<PixelType> &, PixelType) const override
  {}
};

bool
HasKernels(const Device & device, const std::string & operation)
{
  const KernelRegistry & kernels = device.GetKernels();
  const bool             finalizes = GetHostKernels().Find(operation, &KernelSet::finalizeRegion) != nullptr;
  return kernels.Find(operation) && (!finalizes || kernels.Find(operation, &KernelSet::finalizeRegion));
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
MakeMoves(const StreamedRequest & request, std::vector<int> devices)
{
  StreamedRequest moves = request;
  moves.operation = std::make_shared<MoveOperation>();
  moves.devices = std::move(devices);
  moves.readsBeforeWriting = true;
  return moves;
}

/** The seconds that the slowest of loading, computing and storing takes, as in plans of divisions. The plan's budgets
 * become those of the run. */
double
PlanRun(Manager & manager, const StreamedRequest & request, int device, StreamedPlan & plan)
{
  ExecutionRequest whole = MakeDivisionRequest(request, plan, request.region);
  whole.budgets = request.budgets;
  whole.budgets.host = 0;
  whole.imageDevice = device;
  plan.budgets = whole.budgets;
  const Plan ofRun = manager.MakePlanFor(whole);
  if (request.operation->GetSchedule() == Schedule::TwoPass && ofRun.chunks.size() > 1)
  {
    return std::numeric_limits<double>::infinity();
  }
  const auto   devices = manager.GetDevices();
  const auto & description = devices[static_cast<std::size_t>(device)]->GetDescription();
  double       loading = 0;
  for (const BufferView & input : whole.inputs)
  {
    loading += static_cast<double>(input.NumberOfBytes()) / description.toDeviceRate;
  }
  return std::max(
    { ofRun.seconds, loading, static_cast<double>(whole.output.NumberOfBytes()) / description.toHostRate });
}

/** The same for devices that hold the image together. */
double
PlanRunTogether(Manager & manager, const StreamedRequest & request, const std::vector<int> & devices,
                StreamedPlan & plan)
{
  ExecutionRequest whole = MakeDivisionRequest(request, plan, request.region);
  whole.devices = devices;
  whole.division = ImageDivision::Always;
  whole.budgets.host = 0;
  whole.budgets.device = request.budgets.device;
  plan.budgets = whole.budgets;
  const Plan ofRun = manager.MakePlanFor(whole);
  return ofRun.divided ? ofRun.seconds : std::numeric_limits<double>::infinity();
}

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

HeldImages::HeldImages(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan, Monitor * monitor)
  : m_Manager(manager)
  , m_Request(request)
  , m_Moves(MakeMoves(request, plan.GetHoldingDevices()))
  , m_Plan(plan)
  , m_Monitor(monitor)
  , m_Images(manager, request.budgets, request.region)
{
  const bool isTogether = !plan.heldOnOthers.empty();
  const auto steps = isTogether ? FindSteps(request.operation, request.inputs.front().kind, request.computedKind)
                                : std::vector<std::shared_ptr<const Operation>>();
  if (!m_Images.Divide(plan.GetHoldingDevices(), steps))
  {
    throw Error("the image has not enough planes for all devices");
  }
  for (const StreamedInput & input : request.inputs)
  {
    m_Inputs.push_back(m_Images.Add(input.kind, isTogether, monitor));
  }
  m_Output =
    request.operation->HasOutput() ? m_Images.Add(request.computedKind, isTogether, monitor) : m_Inputs.front();
}

double
HeldImages::Load()
{
  DivisionMonitor ofPart(m_Monitor, 0, PartsOfHeldRun);
  return ReadStreamed(m_Manager, m_Moves, m_Plan, &ofPart, [this](const ExecutionRequest & division, Monitor *) {
    for (std::size_t i = 0; i < m_Inputs.size(); ++i)
    {
      m_Images.LoadPlanes(m_Inputs[i], division.inputs[i], division.region);
    }
  });
}

ExecutionRequest
HeldImages::MakeRequest() const
{
  ExecutionRequest request = m_Images.MakeRequest(0, m_Request.operation, m_Inputs, m_Output);
  request.image = GetImageBox(m_Request);
  if (!m_Request.operation->HasOutput())
  {
    request.output = DenseView(nullptr, m_Request.computedKind, m_Request.region);
  }
  return request;
}

ExecutionReport
HeldImages::Compute()
{
  DivisionMonitor ofPart(m_Monitor, 1, PartsOfHeldRun);
  ExecutionReport report =
    m_Plan.heldOnOthers.empty()
      ? m_Manager.ExecuteOnDevice(this->MakeRequest(), m_Plan.heldOnDevice, nullptr, &ofPart)
      : m_Manager.ExecuteOnDevices(m_Images, m_Request.operation, m_Inputs, m_Output, false, &ofPart);
  for (std::size_t part = 0; part < m_Images.GetParts().size(); ++part)
  {
    for (const DividedImages::Image input : m_Inputs)
    {
      report.bytesToDevice += static_cast<double>(m_Images.GetView(part, input).NumberOfBytes());
    }
    report.bytesToHost += static_cast<double>(m_Images.GetPlanes(part, m_Output).NumberOfBytes());
  }
  return report;
}

ChunkState
HeldImages::Summarise(ExecutionReport & report)
{
  DivisionMonitor  ofPart(m_Monitor, 1, PartsOfHeldRun);
  ExecutionRequest request = this->MakeRequest();
  request.imageDevice = m_Plan.heldOnDevice;
  return m_Manager.Summarise(request, &ofPart, &report);
}

StreamedReport
HeldImages::Store(const std::shared_ptr<ImageSink> & sink)
{
  DivisionMonitor ofPart(m_Monitor, 2, PartsOfHeldRun);
  return WriteStreamed(m_Manager, m_Moves, m_Plan, sink, &ofPart, [this](const BufferView & view) {
    m_Images.StorePlanes(view, m_Output, view.box);
    m_MayBeWritten = true;
  });
}

std::vector<int>
FindHoldingDevices(Manager & manager, const StreamedRequest & request)
{
  std::vector<int> wanted;
  const auto       devices = manager.GetDevices();
  for (std::size_t i = 0; i < devices.size() && request.backend != BackendChoice::CPU; ++i)
  {
    const int  device = static_cast<int>(i);
    const bool isWanted =
      request.devices.empty() || std::count(request.devices.begin(), request.devices.end(), device) > 0;
    if (isWanted && HasKernels(*devices[i], request.operation->GetName()))
    {
      wanted.push_back(device);
    }
  }
  return wanted;
}

bool
PlanPartOnDevice(Manager & manager, const StreamedRequest & request, int device, StreamedPlan & plan)
{
  try
  {
    plan = MakePlanWithoutHolding(manager, MakeMoves(request, { device }));
    plan.heldOnDevice = device;
    return PlanRun(manager, request, device, plan) < std::numeric_limits<double>::infinity();
  }
  catch (const Error &)
  {
    // Too little memory of the host or of the device, or a device that was lost.
    return false;
  }
}

std::uint64_t
GetLeastBytesOfMoves(Manager & manager, StreamedRequest request)
{
  request.memory = 1;
  try
  {
    MakePlanWithoutHolding(manager, MakeMoves(request, request.devices));
  }
  catch (const DivisionsError & error)
  {
    return error.needed;
  }
  return 1;
}

bool
PlanOnDevice(Manager & manager, const StreamedRequest & request, double mostSeconds, StreamedPlan & plan)
{
  if (request.backend == BackendChoice::CPU || !CanBeHeld(request))
  {
    return false;
  }
  const std::vector<int> wanted = FindHoldingDevices(manager, request);
  const auto             take = [&](const std::vector<int> & some) {
    try
    {
      plan = MakePlanWithoutHolding(manager, MakeMoves(request, some));
      plan.heldOnDevice = some.front();
      plan.heldOnOthers.assign(some.begin() + 1, some.end());
      return (some.size() == 1 ? PlanRun(manager, request, some.front(), plan)
                                           : PlanRunTogether(manager, request, some, plan)) < mostSeconds;
    }
    catch (const Error &)
    {
      // Too little memory of the host or of a device, or a device that was lost.
      return false;
    }
  };
  return std::any_of(wanted.begin(), wanted.end(), [&](int device) { return take({ device }); }) ||
         (wanted.size() > 1 && take(wanted));
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
