/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseManager.h"

#include "chunkwiseBoundedGrid.h"
#include "chunkwiseDeviceHandles.h"
#include "chunkwiseDeviceMemoryState.h"
#include "chunkwiseDividedRun.h"
#include "chunkwiseDividedSteps.h"
#include "chunkwiseDivisionMonitor.h"
#include "chunkwiseError.h"
#include "chunkwiseFork.h"
#include "chunkwiseImageTransfer.h"
#include "chunkwiseManagerState.h"
#include "chunkwiseMappedMemory.h"
#include "chunkwisePassesRun.h"
#include "chunkwiseRegions.h"
#include "chunkwiseResidentRun.h"
#include "chunkwiseRunnerRun.h"
#include "chunkwiseRun.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace chunkwise
{

Monitor::~Monitor() = default;

namespace
{

void
AdviseLargePagesFor(const BufferView & view)
{
  std::int64_t pixels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    pixels += (view.box.Extent(a) - 1) * view.stride[a];
  }
  AdviseLargePages(view.data, static_cast<std::size_t>(pixels) * PixelSize(view.kind));
}

/** Waits for a turn unless the caller wants to stop. */
template <typename TLock>
void
Await(TLock & lock, Monitor * monitor)
{
  while (!lock.try_lock_for(std::chrono::milliseconds(5)))
  {
    if (monitor && monitor->ShouldAbort())
    {
      throw Aborted();
    }
  }
}

bool
IsMadeOfPasses(const ExecutionRequest & request)
{
  if (!request.operation)
  {
    throw ParameterError("the request has no operation");
  }
  return request.operation->GetSchedule() == Schedule::Passes;
}

} // namespace

/** How a run is to go: by devices, or where none is left by the CPU. */
struct RunPlan
{
  std::vector<std::size_t>         used;
  PlannerRequest                   plannerRequest;
  std::unique_ptr<SpilledMemory>   spilled;
  std::shared_ptr<const Operation> piped; ///< what runs in place of the request's; nullptr: nothing

  std::size_t
  GetSpilledBytes() const
  {
    return spilled ? spilled->GetBytes() : 0;
  }
};

struct WorkingState : ManagerState
{
  Manager * manager{ nullptr };

  /** Throws unless there is such a device, and it can be used. */
  const std::shared_ptr<DeviceState> &
  FindDevice(int device) const;

  /** The result of an operation without an output goes to `total`, which is nullptr for other operations. */
  ExecutionReport
  Execute(const ExecutionRequest & request, Monitor * monitor, ChunkState * total,
          const Residence * residence = nullptr);
  ExecutionReport
  ExecuteOnDevice(ExecutionRequest request, Monitor * monitor, ChunkState * total);
  Plan
  MakePlanFor(const ExecutionRequest & request);
  /** The plan of a run over images that are yet to be put into a device's memory, dense, in the room that is left. */
  Plan
  MakePlanOnDevice(ExecutionRequest request);

private:
  /** The same for a request whose images lie in the device's memory, once it has the device's turn. */
  ExecutionReport
  ExecuteResident(const ExecutionRequest & request, Monitor * monitor, ChunkState * total);
  /** Selects devices and plans the run; throws what can be wrong with a request. The plan goes to the report. */
  RunPlan
  PlanRun(const ExecutionRequest & request, const Residence * residence, ExecutionReport & report);
  /** Plans for the devices of `run`, with memory for what they spill. */
  void
  PlanForDevices(const ExecutionRequest & request, const Residence * residence, RunPlan & run,
                 ExecutionReport & report);
  /** A budget's error, with the images that its devices hold beside. */
  BudgetError
  DescribeFullDevice(const BudgetError & error, const Residence * residence, const RunPlan & run) const;
  /** Writes the counts of the run into the report. */
  void
  FillReport(const RunContext & context, const ExecutionRequest & request, const std::vector<std::size_t> & used,
             ExecutionReport & report);
  /** Throws what a run would throw before its work starts. */
  void
  CheckBeforeCopies(ExecutionRequest request);
  /** Throws unless the request's images lie in the device's memory, and its kernels alone can do the work. */
  void
  CheckResidence(const ExecutionRequest & request, const DeviceState & state) const;
  /** Memory for what each device spills; nullptr if there is none. */
  std::unique_ptr<SpilledMemory>
  Spill(const std::vector<std::size_t> & used, const SpilledBytes & toSpill);
  /** A run with images in the order that its kernels can follow, which the device copies from and to the request's. */
  ExecutionReport
  ExecuteReordered(ExecutionRequest request, Monitor * monitor, const Residence & residence);
};

namespace
{

/** The bytes from the first to the last voxel of a view. */
std::pair<const char *, std::size_t>
RangeOf(const BufferView & view)
{
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t reach = (view.box.Extent(a) - 1) * view.stride[a];
    (reach < 0 ? lowest : highest) += reach;
  }
  const auto pixel = static_cast<std::int64_t>(PixelSize(view.kind));
  return { static_cast<const char *>(view.data) + lowest * pixel,
           static_cast<std::size_t>((highest - lowest + 1) * pixel) };
}

/** Strides of axes with one voxel mean nothing. */
void
NormalizeStrides(BufferView & view)
{
  const Coordinates dense = DenseStrides(view.box.Extents());
  for (int a = 0; a < MaxDimension; ++a)
  {
    view.stride[a] = view.box.Extent(a) == 1 ? dense[a] : view.stride[a];
  }
}

} // namespace

struct Manager::Impl
{
  /** In a forked child, threads and locks of the parent's state are of no use, nor are its devices: the child has a
   * separate state. */
  WorkingState &
  Get()
  {
    const SpinLock lock(m_Lock);
    if (m_Forks != GetForkCount())
    {
      // Its destructor would wait for what is not here.
      const WorkingState & left = *m_State.release();
      m_State = std::make_unique<WorkingState>();
      m_State->manager = left.manager;
      m_State->hostKernels = left.hostKernels;
      m_State->budgets = left.budgets;
      m_State->host.SetBudget(left.budgets.host);
      m_State->whyNone = !left.devices.empty()
                           ? "this process was forked from one that had opened the devices, which a fork cannot use; "
                             "start processes anew (in Python: multiprocessing.get_context(\"spawn\"))"
                           : left.whyNone;
      m_Forks = GetForkCount();
    }
    return *m_State;
  }
  ~Impl()
  {
    if (m_Forks != GetForkCount())
    {
      (void)m_State.release();
    }
  }

private:
  SpinFlag                      m_Lock;
  unsigned int                  m_Forks{ GetForkCount() };
  std::unique_ptr<WorkingState> m_State{ std::make_unique<WorkingState>() };
};

Manager::Manager(std::vector<std::shared_ptr<Device>> devices, std::string whyNone, const KernelRegistry * hostKernels)
  : m_Impl(new Impl)
{
  WorkingState & state = m_Impl->Get();
  state.manager = this;
  state.hostKernels = hostKernels ? hostKernels : &GetHostKernels();
  for (auto & device : devices)
  {
    state.devices.push_back(std::make_shared<DeviceState>(std::move(device)));
  }
  state.whyNone = state.devices.empty() ? (whyNone.empty() ? "the manager has no devices" : whyNone) : std::string();
  state.defaultDeviceBudgets.assign(state.devices.size(), 0);
  SetBudgets(Budgets());
}

Manager::~Manager() = default;

Manager &
Manager::GetGlobal()
{
  // Never destroyed: drivers may be gone by the time static destructors run.
  static Manager * const manager = [] {
    std::string                          reason;
    std::vector<std::shared_ptr<Device>> devices;
    const std::shared_ptr<Backend>       cuda = GetCudaBackend(&reason);
    if (cuda)
    {
      devices = cuda->GetDevices();
    }
    return new Manager(devices, reason);
  }();
  return *manager;
}

std::vector<std::shared_ptr<Device>>
Manager::GetDevices() const
{
  std::vector<std::shared_ptr<Device>> devices;
  for (const auto & state : m_Impl->Get().devices)
  {
    devices.push_back(state->device);
  }
  return devices;
}

std::string
Manager::GetReasonForNoDevices() const
{
  return m_Impl->Get().whyNone;
}

void
Manager::SetBudgets(const Budgets & budgets)
{
  {
    const std::lock_guard<std::mutex> lock(m_Impl->Get().mutex);
    m_Impl->Get().budgets = budgets;
  }
  m_Impl->Get().host.SetBudget(budgets.host);
  for (const auto & state : m_Impl->Get().devices)
  {
    if (budgets.device && state->memory.GetBytesHeld() > budgets.device)
    {
      state->tables.Clear();
    }
    state->memory.SetBudget(budgets.device);
    state->keptSpill.Drop();
    state->pinned.SetBudget(m_Impl->Get().PinnedBudget());
  }
}

Budgets
Manager::GetBudgets() const
{
  return m_Impl->Get().GetOwnBudgets();
}

namespace
{

/** Throws ParameterError if an operation's own runner cannot run over these images. */
void
CheckRunner(WorkingState & state, const ExecutionRequest & request)
{
  if (request.imageDevice >= 0)
  {
    const std::string objection = request.operation->GetObjectionToDevices();
    throw ParameterError(request.operation->GetName() + " does not run on images of a device: " +
                         (objection.empty() ? "it takes those of the host" : objection));
  }
  state.CheckRequest(request, state.MakePlannerRequest(request, nullptr));
}

} // namespace

ExecutionReport
Manager::Execute(const ExecutionRequest & request, Monitor * monitor)
{
  const bool inPasses = IsMadeOfPasses(request);
  if (request.operation->IsRunByRunner())
  {
    CheckRunner(m_Impl->Get(), request);
    return ExecuteByRunner(*this, request, m_Impl->Get().HostLimit(request), monitor);
  }
  if (request.imageDevice >= 0)
  {
    return m_Impl->Get().ExecuteOnDevice(request, monitor, nullptr);
  }
  std::shared_lock<std::shared_timed_mutex> beside(m_Impl->Get().hostTurn, std::defer_lock);
  std::unique_lock<std::shared_timed_mutex> alone(m_Impl->Get().hostTurn, std::defer_lock);
  if (GetBudgets().host)
  {
    inPasses ? Await(alone, monitor) : Await(beside, monitor);
  }
  if (!inPasses)
  {
    return m_Impl->Get().Execute(request, monitor, nullptr);
  }
  return PassesRun(m_Impl->Get(), request)
    .Execute([this](const auto & stage, Monitor * ofStage) { return m_Impl->Get().Execute(stage, ofStage, nullptr); },
             monitor);
}

ExecutionReport
Manager::ExecuteOnDevice(ExecutionRequest request, int device, StreamHandle stream, Monitor * monitor)
{
  request.imageDevice = device;
  request.stream = stream;
  if (request.operation && request.operation->IsRunByRunner())
  {
    CheckRunner(m_Impl->Get(), request);
  }
  return m_Impl->Get().ExecuteOnDevice(request, monitor, nullptr);
}

std::shared_ptr<DeviceMemory>
Manager::AllocateOnDevice(int device, std::size_t bytes, std::size_t budget, Monitor * monitor)
{
  WorkingState &   manager = m_Impl->Get();
  const auto       state = manager.FindDevice(device);
  ExecutionRequest request;
  request.budgets.device = budget;
  const DeviceTurn turn(*state, monitor);
  try
  {
    return std::make_shared<DeviceMemory>(std::make_unique<DeviceMemory::Impl>(
      state, device, state->HoldImage(bytes, manager.DeviceLimit(static_cast<std::size_t>(device), request))));
  }
  catch (const DeviceError & error)
  {
    state->NoteFailure(error);
    throw;
  }
}

std::size_t
Manager::GetRoomOnDevice(int device, const Budgets & budgets)
{
  WorkingState &   manager = m_Impl->Get();
  const auto       state = manager.FindDevice(device);
  ExecutionRequest request;
  request.budgets = budgets;
  const std::size_t limit = manager.DeviceLimit(static_cast<std::size_t>(device), request);
  const std::size_t taken = state->memory.GetBytesInUse();
  return std::min(limit - std::min(limit, taken), manager.GetRoom(*state, taken));
}

template <typename TBody>
void
Manager::CopyImage(const DeviceMemory & memory, std::size_t begin, const BufferView & host, const Box & box,
                   const Box & image, const Budgets & budgets, Monitor * monitor, TBody && body)
{
  WorkingState &    manager = m_Impl->Get();
  const auto        state = manager.FindDevice(memory.GetDevice());
  const std::size_t bytes = box.IsEmpty() ? 0 : DenseView(nullptr, host.kind, box).NumberOfBytes();
  if (!image.Contains(box) || !host.box.Contains(box) || box.IsEmpty() || begin > memory.GetBytes() ||
      bytes > memory.GetBytes() - begin)
  {
    throw ParameterError("the image is of " + std::to_string(bytes) + " bytes, its memory on the device of " +
                         std::to_string(memory.GetBytes()));
  }
  ExecutionRequest request;
  request.image = image;
  request.budgets = budgets;
  const DeviceTurn turn(*state, monitor);
  try
  {
    ImageTransfer transfer(manager, static_cast<std::size_t>(memory.GetDevice()), request, monitor);
    body(transfer, static_cast<char *>(memory.Get()) + begin);
  }
  catch (const DeviceError & error)
  {
    state->NoteFailure(error);
    throw;
  }
}

void
Manager::CopyToHost(const BufferView & to, const DeviceMemory & from, const Box & image, const Budgets & budgets,
                    Monitor * monitor)
{
  if (!to.box.IsEmpty() && to.NumberOfBytes() != from.GetBytes())
  {
    throw ParameterError("the image is of " + std::to_string(to.NumberOfBytes()) +
                         " bytes, its memory on the device of " + std::to_string(from.GetBytes()));
  }
  this->CopyToHost(to, from, 0, to.box, image, budgets, monitor);
}

void
Manager::CopyToHost(const BufferView & to, const DeviceMemory & from, std::size_t begin, const Box & box,
                    const Box & image, const Budgets & budgets, Monitor * monitor)
{
  this->CopyImage(from, begin, to, box, image, budgets, monitor, [&](ImageTransfer & transfer, const char * memory) {
    transfer.ToHost(to, memory, box);
  });
}

void
Manager::CopyToDevice(const DeviceMemory & to, std::size_t begin, const BufferView & from, const Box & box,
                      const Box & image, const Budgets & budgets, Monitor * monitor)
{
  this->CopyImage(to, begin, from, box, image, budgets, monitor, [&](ImageTransfer & transfer, char * memory) {
    transfer.ToDevice(memory, from, box);
  });
}

ExecutionReport
Manager::ExecuteOnDevices(DividedImages & images, const std::shared_ptr<const Operation> & operation,
                          const std::vector<std::size_t> & inputs, std::size_t output, bool keepsInputs,
                          Monitor * monitor)
{
  if (!operation || static_cast<int>(inputs.size()) != operation->GetNumberOfInputs() || inputs.empty())
  {
    throw ParameterError("an operation over images of several devices has at least one input, and as many as it takes");
  }
  std::vector<PixelType> kinds;
  for (const std::size_t input : inputs)
  {
    kinds.push_back(images.GetKind(input));
  }
  operation->CheckKinds(kinds, images.GetKind(output));
  operation->Validate(images.GetGrid().Extents());
  DividedSteps steps(*this, m_Impl->Get(), operation, kinds, images.GetKind(output));
  if (steps.Get().empty())
  {
    throw ParameterError(operation->GetName() + " does not run on images that several devices hold together");
  }
  for (const DividedImages::Part & part : images.GetParts())
  {
    for (const auto & step : steps.Get())
    {
      if (!part.around.Contains(GetInputBox(*step, part.planes, images.GetGrid())))
      {
        throw ParameterError("the images were divided for operations that reach less far than " + step->GetName());
      }
    }
  }
  const std::vector<std::size_t> held(images.GetParts().size(), 0);
  if (steps.EstimateSeconds(images, held, keepsInputs) == DividedSteps::Never)
  {
    throw Error(operation->GetName() + ": a device has not the room for it beside its images, or no kernel");
  }
  RisingMonitor rising(monitor);
  steps.Compute(images, inputs, output, keepsInputs, &rising);
  rising.UpdateProgress(1.0);
  ExecutionReport report;
  report.plan = steps.MakePlan(images, 0);
  steps.Fill(images, report);
  return report;
}

Plan
Manager::MakePlanFor(const ExecutionRequest & request)
{
  if (request.imageDevice >= 0)
  {
    const auto isThere = [](const BufferView & view) { return view.data != nullptr; };
    if (IsMadeOfPasses(request) || request.operation->IsRunByRunner() || isThere(request.output) ||
        std::any_of(request.inputs.begin(), request.inputs.end(), isThere))
    {
      throw ParameterError("a plan for images on a device depends on where they lie: the run's report has it");
    }
    return m_Impl->Get().MakePlanOnDevice(request);
  }
  if (!IsMadeOfPasses(request))
  {
    return request.operation->IsRunByRunner() ? MakePlanOfRunner(*this, request, m_Impl->Get().HostLimit(request))
                                              : m_Impl->Get().MakePlanFor(request);
  }
  const PassesRun passes(m_Impl->Get(), request);
  Plan            largest;
  for (std::size_t i = 0; i < passes.GetNumberOfStages() && !request.region.IsEmpty(); ++i)
  {
    Plan plan = m_Impl->Get().MakePlanFor(passes.MakeRequest(i));
    if (i == 0 || plan.deviceBytes >= largest.deviceBytes)
    {
      largest = std::move(plan);
    }
  }
  return largest;
}

ChunkState
Manager::Summarise(const ExecutionRequest & request, Monitor * monitor, ExecutionReport * report)
{
  if (!request.operation)
  {
    throw ParameterError("the request has no operation");
  }
  const bool                                isResident = request.imageDevice >= 0;
  std::shared_lock<std::shared_timed_mutex> beside(m_Impl->Get().hostTurn, std::defer_lock);
  if (GetBudgets().host && !isResident)
  {
    Await(beside, monitor);
  }
  ChunkState      total;
  ExecutionReport ofRun = isResident ? m_Impl->Get().ExecuteOnDevice(request, monitor, &total)
                                     : m_Impl->Get().Execute(request, monitor, &total);
  if (report)
  {
    *report = std::move(ofRun);
  }
  return total;
}

void
WorkingState::CheckResidence(const ExecutionRequest & request, const DeviceState & state) const
{
  const std::string & name = state.device->GetDescription().name;
  const std::string   operation = request.operation->GetName();
  if (request.operation->GetOutputGrid() && !GetBoundedGrid(*request.operation))
  {
    throw ParameterError(operation + " gives other voxels than the input's, which " + name +
                         " does not compute; run it on memory of the host");
  }
  const auto check = [&](const BufferView & view, const std::string & what) {
    const auto range = RangeOf(view);
    if (!view.box.IsEmpty() && (!view.data || !state.device->Owns(range.first, range.second)))
    {
      throw ParameterError(what + " of " + operation + " does not lie in the memory of " + name);
    }
  };
  for (std::size_t i = 0; i < request.inputs.size(); ++i)
  {
    check(request.inputs[i], "input " + std::to_string(i));
  }
  if (request.operation->HasOutput())
  {
    check(request.output, "the output");
  }
  if (hostKernels->Find(operation, &KernelSet::finalizeRegion) &&
      !state.device->GetKernels().Find(operation, &KernelSet::finalizeRegion))
  {
    throw ParameterError(operation + " needs a look at the whole result that " + name +
                         " has no kernel for; run it on memory of the host");
  }
}

const std::shared_ptr<DeviceState> &
WorkingState::FindDevice(int device) const
{
  if (device < 0 || static_cast<std::size_t>(device) >= devices.size())
  {
    throw ParameterError("the images lie on device " + std::to_string(device) + ", but there are " +
                         std::to_string(devices.size()) + (whyNone.empty() ? "" : " (" + whyNone + ")"));
  }
  const auto & state = devices[static_cast<std::size_t>(device)];
  if (state->lost)
  {
    throw Error(state->device->GetDescription().name + " was lost earlier; restart the process to use it again");
  }
  return state;
}

void
WorkingState::CheckBeforeCopies(ExecutionRequest request)
{
  if (IsMadeOfPasses(request))
  {
    const auto index = static_cast<std::size_t>(request.imageDevice);
    (void)PassesRun(*this, request, &index);
    return;
  }
  CheckRequest(request, MakePlannerRequest(request, nullptr));
}

ExecutionReport
WorkingState::ExecuteOnDevice(ExecutionRequest request, Monitor * monitor, ChunkState * total)
{
  const int     device = request.imageDevice;
  DeviceState & state = *FindDevice(device);
  const auto    index = static_cast<std::size_t>(device);
  (void)IsMadeOfPasses(request);
  request.backend = BackendChoice::CUDA;
  request.devices.assign(1, device);
  request.hostTakesChunks = false;
  std::for_each(request.inputs.begin(), request.inputs.end(), NormalizeStrides);
  NormalizeStrides(request.output);
  const bool copies = request.copiesHostImages && !request.region.IsEmpty();
  if (copies)
  {
    CheckBeforeCopies(request);
  }
  else if (!request.region.IsEmpty())
  {
    CheckResidence(request, state);
  }
  const DeviceTurn turn(state, monitor);
  try
  {
    if (!copies)
    {
      return ExecuteResident(request, monitor, total);
    }
    StagedImages images(*this, index, request, monitor);
    CheckResidence(request, state);
    images.Load();
    ExecutionReport report = ExecuteResident(request, monitor, total);
    images.Store(report);
    return report;
  }
  catch (const DeviceError & error)
  {
    state.NoteFailure(error);
    throw;
  }
}

ExecutionReport
WorkingState::ExecuteResident(const ExecutionRequest & request, Monitor * monitor, ChunkState * total)
{
  const auto      index = static_cast<std::size_t>(request.imageDevice);
  const KeptEvent ready(*devices[index]);
  devices[index]->device->Record(ready.Get(), request.stream);
  const Residence residence{ index, ready.Get() };
  if (IsMadeOfPasses(request))
  {
    return PassesRun(*this, request, &index)
      .Execute([&](const auto & stage, Monitor * ofStage) { return ExecuteReordered(stage, ofStage, residence); },
               monitor);
  }
  return total ? Execute(request, monitor, total, &residence) : ExecuteReordered(request, monitor, residence);
}

ExecutionReport
WorkingState::ExecuteReordered(ExecutionRequest request, Monitor * monitor, const Residence & residence)
{
  const auto isOdd = [](const BufferView & view) { return view.stride[0] != 1; };
  if (request.operation->GetSchedule() != Schedule::Fixpoint || request.region.IsEmpty() ||
      !(isOdd(request.output) || std::any_of(request.inputs.begin(), request.inputs.end(), isOdd)))
  {
    return Execute(request, monitor, nullptr, &residence);
  }
  // Before anything is copied.
  CheckRequest(request, MakePlannerRequest(request, nullptr));
  DeviceState &           state = *devices[residence.device];
  Device &                device = *state.device;
  const std::size_t       limit = DeviceLimit(residence.device, request);
  const BufferView        output = request.output;
  std::vector<ArenaBlock> blocks;
  const auto              reorder = [&](BufferView & view) {
    const BufferView dense = DenseView(nullptr, view.kind, view.box);
    blocks.emplace_back(state.memory, dense.NumberOfBytes(), limit);
    view.stride = dense.stride;
    view.data = blocks.back().Get();
  };
  const DeviceStream stream(device);
  device.Wait(stream.Get(), residence.ready);
  for (BufferView & input : request.inputs)
  {
    const BufferView from = input;
    if (isOdd(input))
    {
      reorder(input);
      device.CopyVoxels(input, from, request.image, stream.Get());
    }
  }
  if (isOdd(output))
  {
    request.output.box = request.region;
    reorder(request.output);
  }
  device.Synchronize(stream.Get());
  const ExecutionReport report = Execute(request, monitor, nullptr, &residence);
  if (isOdd(output))
  {
    device.CopyVoxels(SubView(output, request.region), request.output, request.image, stream.Get());
    device.Synchronize(stream.Get());
  }
  return report;
}

std::unique_ptr<SpilledMemory>
WorkingState::Spill(const std::vector<std::size_t> & used, const SpilledBytes & toSpill)
{
  std::vector<std::shared_ptr<DeviceState>> states;
  for (const std::size_t index : used)
  {
    states.push_back(devices[index]);
  }
  try
  {
    return std::make_unique<SpilledMemory>(states, toSpill);
  }
  catch (const BudgetError &)
  {
    return nullptr;
  }
  catch (const DeviceError &)
  {
    // A device that is lost says so again in this run, and no later one asks it.
    return nullptr;
  }
}

BudgetError
WorkingState::DescribeFullDevice(const BudgetError & error, const Residence * residence, const RunPlan & run) const
{
  const std::size_t held = residence          ? devices[residence->device]->memory.GetBytesInUse()
                           : run.used.empty() ? 0
                                              : devices[run.used[0]]->imageBytes.load();
  std::string       message = error.what();
  if (held > 0)
  {
    message += ", beside " + std::to_string(held) +
               (residence ? " that the run and images that stay there have taken" : " of images that stay there");
  }
  return BudgetError(message, error.needed + held, error.budget + held);
}

void
WorkingState::PlanForDevices(const ExecutionRequest & request, const Residence * residence, RunPlan & run,
                             ExecutionReport & report)
{
  SpilledBytes toSpill;
  report.plan = MakeDevicePlan(
    request, run.plannerRequest, run.used, report.warnings, residence != nullptr, residence ? nullptr : &toSpill);
  if (toSpill.bytes == 0)
  {
    return;
  }
  run.spilled = Spill(run.used, toSpill);
  if (run.spilled)
  {
    run.piped = toSpill.piped;
    return;
  }
  run.plannerRequest = MakePlannerRequest(request, &devices[run.used[0]]->device->GetKernels());
  report.plan = MakeDevicePlan(request, run.plannerRequest, run.used, report.warnings, false, nullptr);
}

RunPlan
WorkingState::PlanRun(const ExecutionRequest & request, const Residence * residence, ExecutionReport & report)
{
  std::string reason;
  RunPlan     run;
  run.used = SelectDevices(request, reason);
  const Device * const first = run.used.empty() ? nullptr : devices[run.used[0]]->device.get();
  run.plannerRequest = MakePlannerRequest(request, first ? &first->GetKernels() : nullptr);
  CheckRequest(request, run.plannerRequest);
  std::vector<PixelType> kinds;
  for (const auto & input : request.inputs)
  {
    kinds.push_back(input.kind);
  }
  request.operation->CheckKinds(kinds, request.output.kind);
  request.operation->Validate(request.image.Extents());
  const bool mustBeDevice = request.backend == BackendChoice::CUDA;
  if (mustBeDevice && !first)
  {
    throw Error("Backend: CUDA is asked for, but no device can be used: " + reason);
  }
  (void)GetTransforms(request, first);
  if (request.hostTakesChunks)
  {
    (void)GetTransforms(request, nullptr);
  }
  const auto takeOver = [&](const Error & error) {
    report.warnings.push_back(std::string("the CPU takes over: ") + error.what());
    run.used.clear();
    run.spilled.reset();
    run.piped.reset();
  };
  try
  {
    if (first)
    {
      PlanForDevices(request, residence, run, report);
    }
  }
  catch (const BudgetError & error)
  {
    const BudgetError full = DescribeFullDevice(error, residence, run);
    if (mustBeDevice)
    {
      throw full;
    }
    takeOver(full);
  }
  catch (const Error & error)
  {
    if (mustBeDevice || dynamic_cast<const ParameterError *>(&error))
    {
      throw;
    }
    takeOver(error);
  }
  if (run.used.empty())
  {
    report.plan = MakeHostPlan(request, run.plannerRequest, report.warnings);
  }
  else if (HostLimit(request))
  {
    // The run has taken the memory that it spills; the kept rest is dropped.
    DropKeptSpill();
  }
  return run;
}

void
WorkingState::FillReport(const RunContext & context, const ExecutionRequest & request,
                         const std::vector<std::size_t> & used, ExecutionReport & report)
{
  report.peakHost = context.host.meter.GetPeak();
  report.bytesToDevice = static_cast<double>(context.counts.bytesToDevice);
  report.bytesToHost = static_cast<double>(context.counts.bytesToHost);
  report.retries = context.counts.retries;
  report.revisits = context.counts.revisits;
  report.revisitedVoxels = context.counts.revisitedVoxels;
  report.solvedGlobally = context.counts.solvedGlobally > 0;
  const bool devicesWorked = std::any_of(
    report.chunksPerDevice.begin(), report.chunksPerDevice.end(), [](std::int64_t chunks) { return chunks > 0; });
  std::set<std::string> transforms;
  if (devicesWorked)
  {
    transforms = GetTransforms(request, devices[used[0]]->device.get());
  }
  if (!devicesWorked || report.chunksOnHost)
  {
    transforms.merge(GetTransforms(request, nullptr));
  }
  for (const std::string & name : transforms)
  {
    report.transforms += (report.transforms.empty() ? "" : "+") + name;
  }
  report.backend = "cpu";
  if (devicesWorked)
  {
    report.backend = devices[used[0]]->device->GetDescription().backend + (report.chunksOnHost ? "+cpu" : "");
  }
}

ExecutionReport
WorkingState::Execute(const ExecutionRequest & request, Monitor * monitor, ChunkState * total,
                      const Residence * residence)
{
  const Operation & operation = *request.operation;
  if (operation.HasOutput() == (total != nullptr))
  {
    throw ParameterError("operation " + operation.GetName() +
                         (total ? " has an output: it is executed" : " has no output: it is summarised"));
  }
  ExecutionReport report;
  RunPlan         run = PlanRun(request, residence, report);
  RisingMonitor   rising(monitor);
  const Plan      ofChunks = report.plan;
  if (!residence && PlanDivided(*manager, *this, request, run.used, report.plan))
  {
    if (ExecuteDivided(*manager, *this, request, run.used, &rising, report))
    {
      return report;
    }
    report.plan = ofChunks;
  }
  const std::size_t spilledBytes = run.GetSpilledBytes();
  ExecutionRequest  pipedRequest;
  if (run.piped)
  {
    pipedRequest = request;
    pipedRequest.operation = run.piped;
  }
  RunContext context(run.piped ? pipedRequest : request,
                     run.plannerRequest,
                     residence ? devices[residence->device]->device->GetKernels() : *hostKernels);
  context.residence = residence;
  context.host.meter.Add(spilledBytes * run.used.size());
  context.spilled = std::move(run.spilled);
  if (run.piped)
  {
    context.host.head = hostKernels->Find(run.piped->GetName(), &KernelSet::head);
    context.host.executor = &GetExecutor(request);
    context.host.memory = &host;
  }
  context.counts.voxels = request.region.IsEmpty() ? 0 : request.region.NumberOfVoxels();
  if (operation.GetSchedule() == Schedule::TwoPass && operation.HasOutput())
  {
    context.counts.voxels *= 2;
  }
  else if (operation.GetSchedule() == Schedule::Fixpoint && report.plan.chunks.size() > 1)
  {
    context.fixpoint.visitShare = context.counts.voxels / 2;
    context.counts.voxels += context.fixpoint.visitShare;
  }
  for (const std::size_t index : run.used)
  {
    report.deviceNames.push_back(devices[index]->device->GetDescription().name);
  }
  if (!residence && !request.region.IsEmpty() && operation.HasOutput())
  {
    AdviseLargePagesFor(request.output);
  }
  ExecutePlan(*this, context, report.plan, run.used, monitor ? &rising : nullptr, report);
  if (total)
  {
    *total = std::move(context.total);
  }
  FillReport(context, request, run.used, report);
  report.peakPinned += spilledBytes;
  return report;
}

Plan
WorkingState::MakePlanFor(const ExecutionRequest & request)
{
  std::string    reason;
  auto           used = SelectDevices(request, reason);
  PlannerRequest plannerRequest =
    MakePlannerRequest(request, used.empty() ? nullptr : &devices[used[0]]->device->GetKernels());
  request.operation->Validate(request.image.Extents());
  (void)GetTransforms(request, used.empty() ? nullptr : devices[used[0]]->device.get());
  std::vector<std::string> warnings;
  if (used.empty())
  {
    return MakeHostPlan(request, plannerRequest, warnings);
  }
  SpilledBytes toSpill;
  Plan         plan = MakeDevicePlan(request, plannerRequest, used, warnings, false, &toSpill);
  (void)PlanDivided(*manager, *this, request, used, plan);
  if (HostLimit(request) && plan.spilledBytes == 0)
  {
    // Who asks may take memory for images before the run.
    DropKeptSpill();
  }
  return plan;
}

Plan
WorkingState::MakePlanOnDevice(ExecutionRequest request)
{
  const DeviceState & state = *FindDevice(request.imageDevice);
  request.backend = BackendChoice::CUDA;
  request.devices.assign(1, request.imageDevice);
  std::string                    reason;
  const std::vector<std::size_t> used = SelectDevices(request, reason);
  if (used.empty())
  {
    throw Error(reason);
  }
  request.operation->Validate(request.image.Extents());
  PlannerRequest plannerRequest = MakePlannerRequest(request, &state.device->GetKernels());
  plannerRequest.devices.assign(1, MakePlannerDevice(used.front(), request, false));
  std::size_t images = Arena::SizeOfBlock(request.output.NumberOfBytes());
  for (const BufferView & input : request.inputs)
  {
    images += Arena::SizeOfBlock(input.NumberOfBytes());
  }
  const std::size_t room = manager->GetRoomOnDevice(request.imageDevice, request.budgets);
  if (images >= room)
  {
    throw BudgetError("the images need " + std::to_string(images) + " bytes of the device's memory, " +
                        std::to_string(room) + " are there",
                      images,
                      room);
  }
  plannerRequest.devices.front().memory = room - images;
  std::vector<std::string> warnings;
  return MakeResidentPlan(request, plannerRequest, warnings);
}

RequestCost
Manager::GetCostOfBudget(const ExecutionRequest & request)
{
  if (!request.operation)
  {
    throw ParameterError("the request has no operation");
  }
  if (request.imageDevice >= 0)
  {
    throw ParameterError("what a budget costs is told for images of the host");
  }
  request.operation->Validate(request.image.Extents());
  RequestCost cost;
  if (request.operation->IsRunByRunner())
  {
    cost.memory = "host";
    return cost;
  }
  cost.budget = m_Impl->Get().GetBudgetCost(request, cost.memory);
  return cost;
}

Budgets
Manager::GetHeldMemory() const
{
  Budgets held;
  for (const auto & state : m_Impl->Get().devices)
  {
    held.device = std::max(held.device, state->memory.GetBytesHeld());
    held.pinned =
      std::max(held.pinned, state->pinned.GetBytesHeld() + state->spilledBytes + state->keptSpill.GetBytes());
  }
  held.host = m_Impl->Get().host.memory.GetBytesHeld();
  return held;
}

void
Manager::ReleaseMemory()
{
  for (const auto & state : m_Impl->Get().devices)
  {
    state->tables.Clear();
    state->memory.Trim();
    state->pinned.Trim();
    state->DropHandles();
  }
  m_Impl->Get().DropKeptSpill();
  m_Impl->Get().host.tables.Clear();
  m_Impl->Get().host.memory.Trim();
}

} // namespace chunkwise
