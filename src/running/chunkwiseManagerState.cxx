/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseManagerState.h"

#include "chunkwiseBoundedGrid.h"
#include "chunkwiseDeviceCarries.h"
#include "chunkwiseError.h"
#include "chunkwiseHostMemory.h"
#include "chunkwiseInterleaved.h"
#include "chunkwiseRegions.h"
#include "chunkwiseResidentRun.h"
#include "chunkwiseRoundUp.h"
#include "chunkwiseSerialExecutor.h"
#include "chunkwiseSharedMemory.h"
#include "chunkwiseSharedTurns.h"
#include "chunkwiseStagedOperation.h"
#include "chunkwiseStagingRing.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace chunkwise
{

namespace
{

constexpr std::size_t DefaultPinnedBudget = std::size_t{ 256 } << 20;
/** If no budget says more or less, runs may spill this part of the memory that the host has left. */
constexpr std::size_t PartToSpill = 4;
/** Bytes of memory traffic in whose time a core of the host does the arithmetic that kernels count as so many, where
 * its caches are no help, as in a network's first layers; and how often as fast a device may be that gains by that. */
constexpr double CoreRate = 1.9e9;
constexpr double MostHelped = 12;
/** The time that the system takes to pin a byte of memory. */
constexpr double SecondsToPinByte = 0.37e-9;
/** Room for what the arena rounds up: carries, summaries, solutions, flags. */
constexpr std::size_t ChunkStatePadding = 2048;
/** Scratch of the host, where no budget says more or less, for an operation without an output. */
constexpr std::size_t SummaryScratch = std::size_t{ 256 } << 20;
/** One more device takes part where it saves this, in launches: it is asked for its memory, and its threads and handles
 * are made for the run. Two H100: identity of 256^3 float32 takes 5.1 ms on one and 5.4 on both, of 512^3 less on both.
 */
constexpr double LaunchesToTakePart = 100;
/** The time of a visit to where chunks of a Fixpoint meet. */
constexpr double SecondsOfVisit = 3e-3;
/** Rates of the host, for what one cut costs in terms of another: bytes of images that a kernel goes through in a
 * second, and what a chunk takes whatever its size. */
constexpr double HostRate = 1e9;
constexpr double SecondsOfHostChunk = 50e-6;
constexpr double SecondsOfHostVisit = 0.5e-3;

/** A sweep's chunk also takes the kernel that makes the next carry, in the same scratch. */
void
AddAdvance(PlannerRequest & p, const std::shared_ptr<const Operation> & operation, const Kernel & advance)
{
  if (advance.scratchBytes)
  {
    p.scratchBytes = [operation, advance, others = p.scratchBytes](const ChunkShape & shape) {
      return std::max(advance.scratchBytes(*operation, shape), others ? others(shape) : 0);
    };
  }
  std::size_t inputBytes = 0;
  for (int i = 0; i < p.numberOfInputs; ++i)
  {
    inputBytes += PixelSize(p.inputKinds[i]);
  }
  const auto pass = [inputBytes](const ChunkShape & shape) {
    return static_cast<double>(shape.inputBox.NumberOfVoxels()) * static_cast<double>(inputBytes);
  };
  p.cost = [operation, advance, pass, own = p.cost](const ChunkShape & shape) {
    const double output =
      static_cast<double>(shape.outputBox.NumberOfVoxels()) * static_cast<double>(PixelSize(shape.outputKind));
    return (own ? own(shape) : pass(shape) + output) + (advance.cost ? advance.cost(*operation, shape) : pass(shape));
  };
}

/** The tighter of two budgets, of which 0 says nothing. */
std::size_t
TightestOf(std::size_t a, std::size_t b)
{
  return a && b ? std::min(a, b) : std::max(a, b);
}

/** "[x0, x1) x [y0, y1)", of as many axes as the image has. */
std::string
Text(const Box & box, const Box & image)
{
  int axes = MaxDimension;
  while (axes > 1 && image.Extent(axes - 1) == 1 && box.lower[axes - 1] == 0 && box.upper[axes - 1] == 1)
  {
    --axes;
  }
  std::string text;
  for (int a = 0; a < axes; ++a)
  {
    text += (a ? " x [" : "[") + std::to_string(box.lower[a]) + ", " + std::to_string(box.upper[a]) + ")";
  }
  return text;
}

/** The kernel without which a device cannot run the operation. */
KernelRole
MainRoleOf(const Operation & operation)
{
  return operation.HasOutput() ? &KernelSet::compute : &KernelSet::summarize;
}

/** The box that the host must hold of an input. */
Box
NeededInput(const ExecutionRequest & request, const PlannerRequest & plannerRequest)
{
  Box box = InputBoxOf(request.region, plannerRequest);
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (box.lower[a] < request.image.lower[a] || box.upper[a] > request.image.upper[a])
    {
      box.lower[a] = request.image.lower[a];
      box.upper[a] = request.image.upper[a];
    }
  }
  return box;
}

/** Memory of lookup tables that all chunks share, for all kernels of an operation. */
std::size_t
TableBytes(const Operation & operation, const ChunkShape & shape, const KernelRegistry & kernels)
{
  std::size_t                   bytes = 0;
  const StagedOperation * const staged = operation.AsStaged();
  // The stages of passes are separate runs.
  if (staged && operation.GetSchedule() != Schedule::Passes)
  {
    for (const Stage & stage : staged->GetStages())
    {
      bytes += stage.operation ? TableBytes(*stage.operation, shape, kernels) : 0;
    }
  }
  const KernelSet * const set = kernels.FindSet(operation.GetName());
  return bytes + (set && set->tableBytes ? set->tableBytes(operation, shape) : 0);
}

/** Adds the libraries whose transforms the operation's kernels take, or those of its stages. */
void
AddProviders(const Operation & operation, const KernelRegistry & kernels, const std::string & whyNoDevice,
             std::set<std::string> & providers)
{
  if (const StagedOperation * const staged = operation.AsStaged())
  {
    for (const Stage & stage : staged->GetStages())
    {
      if (stage.operation)
      {
        AddProviders(*stage.operation, kernels, whyNoDevice, providers);
      }
    }
    return;
  }
  const Kernel * const kernel = kernels.Find(operation.GetName());
  if (kernel && kernel->provider)
  {
    providers.insert(kernel->provider(operation, whyNoDevice));
  }
}

/** The boxes of the input that boxes of another grid need. */
void
SetOutputGrid(PlannerRequest & p, const ExecutionRequest & request)
{
  p.inputBox = [operation = request.operation, image = request.image](const Box & output) {
    return GetInputBox(*operation, output, image);
  };
  if (GetBoundedGrid(*request.operation))
  {
    p.mostInput = [operation = request.operation, image = request.image](const Coordinates & output) {
      return GetBoundedGrid(*operation)->GetMostInput(output, image.Extents());
    };
  }
}

std::vector<PixelType>
InputKindsOf(const PlannerRequest & p)
{
  return { p.inputKinds, p.inputKinds + p.numberOfInputs };
}

/** The summaries and solutions of all chunks (TwoPass). */
std::size_t
CountSummaryBytes(const PlannerRequest & p, const Operation & operation)
{
  return 2 * operation.GetSummaryBytes(p.region, InputKindsOf(p), p.outputKind);
}

/** The memory that a device needs whatever the chunks. */
std::size_t
CountFixedBytes(const PlannerRequest & p, const Operation & operation, const KernelRegistry * kernels)
{
  std::size_t                  bytes = 0;
  const std::vector<PixelType> kinds = InputKindsOf(p);
  switch (operation.GetSchedule())
  {
    case Schedule::Sweep:
      bytes = 2 * p.carryBytes;
      break;
    case Schedule::TwoPass:
      // A region in one chunk has none, see SetScratch.
      bytes = (p.wholeIfItFits ? 0 : CountSummaryBytes(p, operation)) + ChunkStatePadding;
      break;
    case Schedule::Fixpoint:
      bytes = ChunkStatePadding;
      break;
    default:
      break;
  }
  if (kernels && p.hasOutput)
  {
    ChunkShape shape;
    shape.image = p.image;
    std::copy(kinds.begin(), kinds.end(), shape.inputKinds);
    bytes += TableBytes(operation, shape, *kernels);
  }
  return bytes;
}

/** The scratch of a chunk. */
void
SetScratch(PlannerRequest & p, const std::shared_ptr<const Operation> & operation, const Halo & halo,
           const KernelRegistry * kernels, const Kernel * kernel, bool onHost)
{
  if (operation->GetSchedule() == Schedule::Fixpoint)
  {
    // A later visit holds inputs and state with their halo, on the host where they lie; the first one has more buffers,
    // with layers on one side.
    std::size_t voxelBytes = 0;
    if (!onHost)
    {
      voxelBytes = PixelSize(p.outputKind);
      for (int i = 0; i < p.numberOfInputs; ++i)
      {
        voxelBytes += PixelSize(p.inputKinds[i]);
      }
    }
    p.scratchBytes = [operation, kernel, kernels, voxelBytes, halo](ChunkShape shape) {
      shape.kernels = kernels;
      const auto more =
        PadAndCrop(shape.outputBox, halo, shape.image).NumberOfVoxels() - shape.outputBox.NumberOfVoxels();
      return 2 * static_cast<std::size_t>(more) * voxelBytes +
             (kernel && kernel->scratchBytes ? kernel->scratchBytes(*operation, shape) : 0);
    };
  }
  else if (p.wholeIfItFits)
  {
    const Kernel * const alone = kernels ? kernels->Find(operation->GetName(), &KernelSet::alone) : nullptr;
    const std::size_t    ofParts = CountSummaryBytes(p, *operation);
    p.scratchBytes = [operation, alone, kernel, kernels, ofParts, whole = p.region](ChunkShape shape) {
      shape.kernels = kernels;
      const bool           isWhole = alone && shape.outputBox == whole;
      const Kernel * const ofShape = isWhole ? alone : kernel;
      return (isWhole ? 0 : ofParts) +
             (ofShape && ofShape->scratchBytes ? RoundUp(ofShape->scratchBytes(*operation, shape)) : 0);
    };
  }
  else if (kernel && kernel->scratchBytes)
  {
    p.scratchBytes = [operation, kernel, kernels](ChunkShape shape) {
      shape.kernels = kernels;
      return kernel->scratchBytes(*operation, shape);
    };
  }
}

} // namespace

SharedTurns *&
SharedTurns::Current()
{
  thread_local SharedTurns * current = nullptr;
  return current;
}

SharedTurns::~SharedTurns()
{
  for (DeviceState * const state : m_Taken)
  {
    state->EndTurn();
  }
}

bool
SharedTurns::Take(DeviceState & state, const std::function<bool()> & stop)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  if (std::find(m_Taken.begin(), m_Taken.end(), &state) == m_Taken.end())
  {
    if (!state.TakeTurn(stop))
    {
      return false;
    }
    m_Taken.push_back(&state);
  }
  return true;
}

DeviceTurn::DeviceTurn(DeviceState & state, Monitor * monitor)
  : m_State(state)
  , m_IsShared(SharedTurns::Get() != nullptr)
{
  const auto stop = [monitor] { return monitor && monitor->ShouldAbort(); };
  if (!(m_IsShared ? SharedTurns::Get()->Take(state, stop) : state.TakeTurn(stop)))
  {
    throw Aborted();
  }
}

Executor &
ManagerState::GetExecutor(const ExecutionRequest & request)
{
  if (request.executor)
  {
    return *request.executor;
  }
  if (request.isShort)
  {
    static SerialExecutor alone;
    return alone;
  }
  const std::lock_guard<std::mutex> lock(mutex);
  if (!executor)
  {
    executor = MakeThreadExecutor();
  }
  return *executor;
}

std::size_t
ManagerState::DeviceLimit(std::size_t index, const ExecutionRequest & request)
{
  const std::lock_guard<std::mutex> lock(mutex);
  std::size_t                       limit = budgets.device;
  if (limit == 0)
  {
    if (defaultDeviceBudgets[index] == 0)
    {
      defaultDeviceBudgets[index] = devices[index]->device->GetFreeMemory() / 10 * 8;
    }
    limit = defaultDeviceBudgets[index];
  }
  return request.budgets.device ? std::min(limit, request.budgets.device) : limit;
}

Budgets
ManagerState::GetOwnBudgets() const
{
  const std::lock_guard<std::mutex> lock(mutex);
  return budgets;
}

std::size_t
ManagerState::PinnedBudget() const
{
  const std::lock_guard<std::mutex> lock(mutex);
  return budgets.pinned ? budgets.pinned : DefaultPinnedBudget;
}

std::size_t
ManagerState::PinnedLimit(const ExecutionRequest & request, std::size_t spilledBytes)
{
  const std::size_t limit = PinnedBudget();
  const std::size_t tightest = request.budgets.pinned ? std::min(limit, request.budgets.pinned) : limit;
  const std::size_t said = TightestOf(GetOwnBudgets().pinned, request.budgets.pinned);
  return said ? std::min(tightest, said - std::min(said - 1, spilledBytes)) : tightest;
}

std::size_t
ManagerState::SpillLimit(const ExecutionRequest & request, const std::vector<std::size_t> & used)
{
  const Budgets own = GetOwnBudgets();
  // A budget for all runs may be what others are using, and so may be the memory that the CPU's chunks count on.
  if (own.host || (request.budgets.host && request.hostTakesChunks))
  {
    return 0;
  }
  const std::size_t host = TightestOf(request.budgets.host, own.pinned ? 0 : GetAvailableHostMemory() / PartToSpill);
  std::size_t       limit = host ? host / used.size() : std::numeric_limits<std::size_t>::max();
  if (const std::size_t pinned = TightestOf(own.pinned, request.budgets.pinned); pinned)
  {
    std::size_t staging = 0;
    for (const std::size_t index : used)
    {
      const StagingThreads threads = StagingRing::ThreadsOf(request, *devices[index]->device, used.size());
      staging = std::max(staging, StagingRing::Fit(threads, std::size_t{ 1 } << 40, 1, 0).GetBytes());
    }
    limit = std::min(limit, std::max(pinned / 2, pinned - std::min(pinned, staging)));
  }
  // The system may not tell the memory that is left.
  return limit == std::numeric_limits<std::size_t>::max() ? 0 : limit;
}

std::size_t
ManagerState::HostLimit(const ExecutionRequest & request)
{
  const std::lock_guard<std::mutex> lock(mutex);
  if (budgets.host && request.budgets.host)
  {
    return std::min(budgets.host, request.budgets.host);
  }
  return std::max(budgets.host, request.budgets.host);
}

void
ManagerState::DropKeptSpill()
{
  for (const auto & state : devices)
  {
    state->keptSpill.Drop();
  }
}

std::vector<std::size_t>
ManagerState::SelectDevices(const ExecutionRequest & request, std::string & reason)
{
  std::vector<std::size_t> selected;
  if (request.backend == BackendChoice::CPU)
  {
    return selected;
  }
  reason = whyNone;
  const std::string name = request.operation->GetName();
  const KernelRole  role = MainRoleOf(*request.operation);
  for (const int index : request.devices)
  {
    if (index < 0 || static_cast<std::size_t>(index) >= devices.size())
    {
      throw ParameterError("Devices: there is no device " + std::to_string(index) + ", there are " +
                           std::to_string(devices.size()) + (whyNone.empty() ? "" : " (" + whyNone + ")"));
    }
  }
  for (std::size_t i = 0; i < devices.size(); ++i)
  {
    const bool wanted =
      request.devices.empty() ||
      std::find(request.devices.begin(), request.devices.end(), static_cast<int>(i)) != request.devices.end();
    if (!wanted)
    {
      continue;
    }
    if (devices[i]->lost)
    {
      reason = devices[i]->device->GetDescription().name + " was lost earlier; restart the process to use it again";
    }
    else if (!devices[i]->device->GetKernels().Find(name, role))
    {
      reason = devices[i]->device->GetDescription().name + " has no kernel " + KernelRegistry::Describe(name, role);
    }
    else
    {
      selected.push_back(i);
    }
  }
  if (request.operation->GetSchedule() == Schedule::Sweep && selected.size() > 1)
  {
    const bool canShare = std::all_of(selected.begin(), selected.end(), [&](std::size_t i) {
      return devices[i]->device->GetKernels().Find(name, &KernelSet::advance) != nullptr;
    });
    selected.resize(canShare ? selected.size() : 1);
  }
  std::string objection = selected.empty() ? std::string() : request.operation->GetObjectionToDevices();
  if (!selected.empty() && objection.empty() && request.operation->GetOutputGrid() &&
      !GetBoundedGrid(*request.operation))
  {
    objection = "devices do not compute images with such a grid";
  }
  if (!objection.empty())
  {
    reason = objection;
    selected.clear();
  }
  return selected;
}

std::set<std::string>
ManagerState::GetTransforms(const ExecutionRequest & request, const Device * device)
{
  std::set<std::string> providers;
  AddProviders(
    *request.operation, device ? device->GetKernels() : *hostKernels, device ? std::string() : whyNone, providers);
  return providers;
}

void
ManagerState::CheckRequest(const ExecutionRequest & request, const PlannerRequest & plannerRequest)
{
  if (!request.operation)
  {
    throw ParameterError("the request has no operation");
  }
  if (static_cast<int>(request.inputs.size()) != request.operation->GetNumberOfInputs())
  {
    throw ParameterError("operation " + request.operation->GetName() + " takes " +
                         std::to_string(request.operation->GetNumberOfInputs()) + " inputs, not " +
                         std::to_string(request.inputs.size()));
  }
  const Box whole = GetOutputBox(*request.operation, request.image);
  if (!whole.Contains(request.region))
  {
    throw ParameterError("the region " + Text(request.region, whole) + " is not inside the image " +
                         Text(whole, whole));
  }
  if (request.operation->GetSchedule() == Schedule::Fixpoint)
  {
    const Halo halo = request.operation->GetHalo(request.image.Extents());
    for (int a = 0; a < MaxDimension; ++a)
    {
      const bool depends = halo.lower[a] > 0 || halo.upper[a] > 0;
      if (depends && !request.region.IsEmpty() && request.region.Extent(a) != request.image.Extent(a))
      {
        throw ParameterError("the result of " + request.operation->GetName() + " depends on the whole of axis " +
                             std::to_string(a) + ", but the region is " + Text(request.region, request.image) + " of " +
                             Text(request.image, request.image));
      }
    }
  }
  const Box needed = NeededInput(request, plannerRequest);
  for (const auto & input : request.inputs)
  {
    if (!input.box.Contains(needed))
    {
      throw ParameterError("the input holds " + Text(input.box, request.image) + ", but " +
                           Text(needed, request.image) + " is needed");
    }
  }
  const bool hasOutput = request.operation->HasOutput();
  if (hasOutput && !request.output.box.Contains(request.region))
  {
    throw ParameterError("the output holds " + Text(request.output.box, request.image) + ", but " +
                         Text(request.region, request.image) + " is needed");
  }
  for (std::size_t i = 0; hasOutput && i < request.inputs.size(); ++i)
  {
    if (!request.region.IsEmpty() &&
        ShareMemory(SubView(request.inputs[i], needed), SubView(request.output, request.region)))
    {
      throw ParameterError("the output lies in the memory of input " + std::to_string(i) +
                           ": voxels would be read after they were overwritten; give the output memory of its own");
    }
  }
}

PlannerRequest
ManagerState::MakePlannerRequest(const ExecutionRequest & request, const KernelRegistry * kernels)
{
  PlannerRequest p;
  p.image = request.image;
  p.region = request.region;
  const Halo halo =
    request.operation->GetOutputGrid() ? Halo::None() : request.operation->GetHalo(request.image.Extents());
  if (request.operation->GetOutputGrid())
  {
    SetOutputGrid(p, request);
  }
  // Chunks of Fixpoint come to separate fixed points first.
  p.halo = request.operation->GetSchedule() == Schedule::Fixpoint ? Halo::None() : halo;
  p.tile = request.operation->GetTile(request.image.Extents());
  p.wraps = request.operation->WrapsAround();
  p.numberOfInputs = static_cast<int>(std::min<std::size_t>(request.inputs.size(), MaxInputs));
  for (int i = 0; i < p.numberOfInputs; ++i)
  {
    p.inputKinds[i] = request.inputs[static_cast<std::size_t>(i)].kind;
  }
  p.outputKind = request.output.kind;
  p.hasOutput = request.operation->HasOutput();
  const std::shared_ptr<const Operation> operation = request.operation;
  p.roundChunk = [operation](const Coordinates & extent) { return operation->RoundChunk(extent); };
  if (operation->GetSchedule() == Schedule::Sweep)
  {
    p.sweepAxis = operation->GetSweepAxis(request.image.Extents());
  }
  p.carryHalo = operation->GetSchedule() == Schedule::Independent;
  p.keepsComponents = std::all_of(request.inputs.begin(), request.inputs.end(), [&request](const BufferView & input) {
    return CountInterleaved(input, request.region) > 1;
  });
  p.oneAtATime = operation->GetSchedule() == Schedule::Fixpoint;
  p.visitSeconds = operation->GetSchedule() == Schedule::Fixpoint ? SecondsOfVisit : 0;
  p.wholeIfItFits = operation->GetSchedule() == Schedule::TwoPass && p.hasOutput &&
                    operation->RunsAlone(request.region, request.output.kind);
  if (operation->GetSchedule() == Schedule::Sweep)
  {
    const std::vector<PixelType> kinds(p.inputKinds, p.inputKinds + p.numberOfInputs);
    p.carryBytes = operation->GetCarryBytes(request.region, kinds, request.output.kind);
  }
  p.fixedBytes = CountFixedBytes(p, *operation, kernels);
  const std::string name = operation->GetName();
  const Kernel *    kernel = kernels ? kernels->Find(name, MainRoleOf(*operation)) : nullptr;
  SetScratch(p, operation, halo, kernels, kernel, kernels == hostKernels);
  if (kernel && kernel->cost)
  {
    p.cost = [operation, kernel, kernels](ChunkShape shape) {
      shape.kernels = kernels;
      return kernel->cost(*operation, shape);
    };
  }
  const Kernel * const advance =
    operation->GetSchedule() == Schedule::Sweep && kernels ? kernels->Find(name, &KernelSet::advance) : nullptr;
  if (advance)
  {
    AddAdvance(p, operation, *advance);
  }
  return p;
}

Plan
ManagerState::MakeHostPlan(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                           std::vector<std::string> & warnings)
{
  DropKeptSpill();
  plannerRequest = MakeHostPlannerRequest(request);
  const bool hasLimit = HostLimit(request) != 0;
  if (!hasLimit && !request.operation->HasOutput() && !request.region.IsEmpty())
  {
    // Who reads an image only does not expect that another one of its size is made on the way.
    try
    {
      plannerRequest.devices.front().memory = SummaryScratch;
      return MakePlan(plannerRequest);
    }
    catch (const BudgetError &)
    {
      plannerRequest.devices.front().memory = static_cast<std::size_t>(-1);
    }
  }
  if (!hasLimit && !request.region.IsEmpty())
  {
    // Nothing is won by cutting.
    Plan plan;
    plan.chunks.push_back({ request.region, InputBoxOf(request.region, plannerRequest) });
    plan.chunkExtent = request.region.Extents();
    plan.sweepAxis = std::max(plannerRequest.sweepAxis, 0);
    return plan;
  }
  return MakeReasonablePlan(plannerRequest, warnings);
}

PlannerRequest
ManagerState::MakeHostPlannerRequest(const ExecutionRequest & request)
{
  PlannerDevice     device;
  const std::size_t limit = HostLimit(request);
  device.memory = limit ? limit : static_cast<std::size_t>(-1);
  device.toDeviceRate = device.toHostRate = std::numeric_limits<double>::infinity();
  device.memoryRate = HostRate;
  device.launchSeconds = SecondsOfHostChunk;
  PlannerRequest p = MakePlannerRequest(request, hostKernels);
  p.memoryName = "host";
  p.inPlace = true;
  p.oneAtATime = true;
  p.pieceSeconds = 0;
  p.concurrency = static_cast<int>(GetExecutor(request).GetConcurrency());
  p.devices.assign(1, device);
  if (request.operation->GetSchedule() == Schedule::Fixpoint)
  {
    p.fixedBytes = 0;
    p.visitSeconds = SecondsOfHostVisit;
  }
  return p;
}

std::size_t
ManagerState::GetRoom(DeviceState & state, std::size_t taken)
{
  const std::size_t held = state.memory.GetBytesHeld();
  return state.device->GetFreeMemory() + held - std::min(held, taken);
}

PlannerDevice
ManagerState::MakePlannerDevice(std::size_t index, const ExecutionRequest & request, bool dropTables)
{
  DeviceState &             state = *devices[index];
  const DeviceDescription & description = state.device->GetDescription();
  PlannerDevice             device;
  const std::size_t         limit = DeviceLimit(index, request);
  // Tables that earlier runs left behind would shrink the chunks of this one.
  if (dropTables || state.tables.GetBytes() > limit / 16)
  {
    state.tables.Clear();
    state.memory.Trim();
  }
  // Whose images lie on the device has its turn: all that is in use is the run's own, tables, or images that stay.
  const std::size_t taken =
    request.imageDevice >= 0 ? state.memory.GetBytesInUse() : state.tables.GetBytes() + state.imageBytes;
  device.memory = limit - std::min(limit, taken);
  if (request.imageDevice < 0)
  {
    device.memory = std::min(device.memory, GetRoom(state, taken));
  }
  device.toDeviceRate = description.toDeviceRate;
  device.toHostRate = description.toHostRate;
  device.memoryRate = description.memoryRate;
  device.launchSeconds = description.launchSeconds;
  return device;
}

void
ManagerState::DescribeDevices(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                              std::vector<std::size_t> & used, bool dropTables, std::vector<std::string> & warnings)
{
  plannerRequest.devices.clear();
  std::vector<std::size_t> answering;
  std::exception_ptr       failure;
  for (const std::size_t index : used)
  {
    try
    {
      plannerRequest.devices.push_back(MakePlannerDevice(index, request, dropTables));
      answering.push_back(index);
    }
    catch (const DeviceError & error)
    {
      failure = std::current_exception();
      devices[index]->NoteFailure(error);
      warnings.push_back(devices[index]->device->GetDescription().name + " dropped: " + error.what());
    }
  }
  if (answering.empty())
  {
    std::rethrow_exception(failure);
  }
  used.swap(answering);
  if (request.operation->GetSchedule() == Schedule::Sweep)
  {
    plannerRequest.fixedBytes = DeviceCarries::DeviceBytes(plannerRequest.carryBytes, used.size() > 1);
  }
}

Plan
ManagerState::MakeSpillingPlan(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                               const std::vector<std::size_t> & used, std::vector<std::string> & warnings,
                               SpilledBytes & spilled)
{
  spilled = SpilledBytes();
  const Operation &      operation = *request.operation;
  const KernelRegistry & kernels = devices[used[0]]->device->GetKernels();
  const SpillingKernel   spilling(kernels, operation);
  const std::size_t      limit = spilling && spilling.set->supportsSpilling(operation) ? SpillLimit(request, used) : 0;
  if (limit == 0)
  {
    return MakeReasonablePlan(plannerRequest, warnings);
  }
  const double             weight = spilling.set->spilledWeight(operation);
  Plan                     plan;
  std::vector<std::string> remarks;
  std::exception_ptr       failure;
  std::size_t              needed = 0;
  try
  {
    plan = MakeReasonablePlan(plannerRequest, remarks);
  }
  catch (const BudgetError & error)
  {
    failure = std::current_exception();
    needed = error.needed;
  }
  // A plan of one chunk needs no spilling.
  if (failure || plan.chunks.size() > 1 || weight == 0)
  {
    try
    {
      std::vector<std::string> others;
      std::size_t              taken = 0;
      for (const std::size_t index : used)
      {
        taken = std::max<std::size_t>(taken, devices[index]->spilledBytes);
      }
      const PlannerRequest spills =
        WithSpilling(plannerRequest, request.operation, kernels, limit - std::min(limit, taken));
      Plan              other = MakeReasonablePlan(spills, others);
      const std::size_t bytes = GetSpilledBytes(other, spills, operation, kernels);
      const double      seconds = other.seconds + SecondsToPinByte * static_cast<double>(bytes);
      if (bytes > 0 && (failure || weight * seconds < plan.seconds))
      {
        plannerRequest = spills;
        spilled = { bytes, limit };
        other.spilledBytes = bytes;
        warnings.insert(warnings.end(), others.begin(), others.end());
        return other;
      }
    }
    catch (const BudgetError & error)
    {
      // The error that asks for less counts.
      failure = failure && error.needed < needed ? std::current_exception() : failure;
    }
  }
  if (failure)
  {
    std::rethrow_exception(failure);
  }
  warnings.insert(warnings.end(), remarks.begin(), remarks.end());
  return plan;
}

void
ManagerState::ConsiderPiping(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                             const std::vector<std::size_t> & used, Plan & plan, SpilledBytes & spilled)
{
  const KernelRegistry & kernels = devices[used[0]]->device->GetKernels();
  const Kernel * const   head = hostKernels->Find(request.operation->GetName(), &KernelSet::head);
  // The CPU is busy with other chunks, or its scratch has no room beside that of other runs.
  if (!head || !SpillingKernel(kernels, *request.operation, &KernelSet::piped) || request.hostTakesChunks ||
      HostLimit(request) || request.region.IsEmpty())
  {
    return;
  }
  const auto variants = request.operation->GetPipedVariants();
  const bool isAskedFor = variants.size() == 1 && variants[0]->GetKey() == request.operation->GetKey();
  const auto threads = GetExecutor(request).GetConcurrency();
  double     memoryRate = 0;
  for (const PlannerDevice & device : plannerRequest.devices)
  {
    memoryRate += device.memoryRate;
  }
  const double      ratio = memoryRate / (CoreRate * threads);
  const std::size_t limit = SpillLimit(request, used);
  if (limit == 0 || (!isAskedFor && ratio > MostHelped))
  {
    return;
  }
  const PlannerRequest without = MakePlannerRequest(request, &kernels);
  double               best = isAskedFor ? std::numeric_limits<double>::infinity() : plan.seconds / 1.03;
  for (const auto & operation : variants)
  {
    PlannerRequest piped = WithSpilling(without, operation, kernels, limit, &KernelSet::piped);
    piped.devices = plannerRequest.devices;
    const KernelSet * const ofDevice = kernels.FindSet(operation->GetName());
    piped.cost =
      [operation, head, ofDevice, ratio, threads, host = hostKernels, ofTail = piped.cost](ChunkShape shape) {
        const double tail = ofTail(shape);
        shape.kernels = host;
        shape.concurrency = static_cast<int>(threads);
        const double ofHead = ratio * head->cost(*operation, shape);
        // The first part of the head, or the last one of the tail, has nothing beside it.
        return std::max(tail, ofHead) + std::min(tail, ofHead) / ofDevice->pipedParts(*operation, shape);
      };
    try
    {
      const Plan        other = MakePlan(piped);
      const std::size_t bytes = GetSpilledBytes(other, piped, *operation, kernels, &KernelSet::piped);
      const double      seconds = other.seconds + SecondsToPinByte * static_cast<double>(bytes);
      if (seconds < best)
      {
        best = seconds;
        plan = other;
        plan.spilledBytes = bytes;
        plan.piped = operation;
        plannerRequest = piped;
        spilled = { bytes, limit, operation };
      }
    }
    catch (const BudgetError &)
    {
      // Another part of the operation may do.
    }
  }
}

bool
ManagerState::LeaveOutIdlers(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                             std::vector<std::size_t> & used)
{
  const DeviceDescription & description = devices[used[0]]->device->GetDescription();
  const double              toSave = LaunchesToTakePart * description.launchSeconds;
  // To ask the others takes as long as a small run, and to plan twice long where kernels take long to say what they
  // cost. In a sweep they may wait for each other however large it is.
  std::size_t pixel = PixelSize(request.output.kind);
  for (const BufferView & input : request.inputs)
  {
    pixel = std::max(pixel, PixelSize(input.kind));
  }
  const double bytes = static_cast<double>(request.region.NumberOfVoxels()) * static_cast<double>(pixel);
  if (request.operation->GetSchedule() != Schedule::Sweep && bytes / description.toDeviceRate > 2 * toSave)
  {
    return false;
  }
  const auto secondsOf = [&](std::vector<std::size_t> some) {
    std::vector<std::string> warnings;
    DescribeDevices(request, plannerRequest, some, false, warnings);
    // One that does not answer is reported where the run is planned.
    return warnings.empty() ? MakePlan(plannerRequest).seconds : 0.0;
  };
  try
  {
    const double         one = secondsOf({ used[0] });
    const PlannerRequest ofOne = plannerRequest;
    // However many share the work.
    const double saved = one * (1 - 1 / static_cast<double>(used.size()));
    if (one > 0 && (saved <= toSave || one <= secondsOf(used) + toSave))
    {
      plannerRequest = ofOne;
      used.resize(1);
      return true;
    }
  }
  catch (const Error &)
  {
    // It has no room, or does not answer, which the run's own plan reports.
  }
  return false;
}

Plan
ManagerState::MakeDevicePlan(const ExecutionRequest & request, PlannerRequest & plannerRequest,
                             std::vector<std::size_t> & used, std::vector<std::string> & warnings, bool isResident,
                             SpilledBytes * spilled)
{
  const auto make = [&] {
    if (!isResident)
    {
      if (!spilled)
      {
        return MakeReasonablePlan(plannerRequest, warnings);
      }
      Plan plan = MakeSpillingPlan(request, plannerRequest, used, warnings, *spilled);
      ConsiderPiping(request, plannerRequest, used, plan, *spilled);
      return plan;
    }
    // To ask a device for its free memory takes longer than a small run: only who needs more than is kept does.
    const PlannerRequest     asked = plannerRequest;
    std::vector<std::string> remarks;
    Plan                     plan = MakeResidentPlan(request, plannerRequest, remarks);
    DeviceState &            state = *devices[used[0]];
    const std::size_t        taken = state.memory.GetBytesInUse();
    if (plan.deviceBytes > state.memory.GetBytesHeld() - taken)
    {
      const std::size_t room = GetRoom(state, taken);
      if (plan.deviceBytes > room)
      {
        plannerRequest = asked;
        plannerRequest.devices[0].memory = room;
        remarks.clear();
        plan = MakeResidentPlan(request, plannerRequest, remarks);
      }
    }
    warnings.insert(warnings.end(), remarks.begin(), remarks.end());
    return plan;
  };
  const bool mayLeaveOut =
    used.size() > 1 && spilled && !request.region.IsEmpty() && request.division != ImageDivision::Always;
  if (!mayLeaveOut || !LeaveOutIdlers(request, plannerRequest, used))
  {
    DescribeDevices(request, plannerRequest, used, false, warnings);
  }
  const bool keepsTables =
    std::any_of(used.begin(), used.end(), [this](std::size_t i) { return devices[i]->tables.GetBytes() > 0; });
  if (keepsTables)
  {
    try
    {
      return make();
    }
    catch (const BudgetError &)
    {
      DescribeDevices(request, plannerRequest, used, true, warnings);
    }
  }
  return make();
}

BudgetCost
ManagerState::GetBudgetCost(const ExecutionRequest & request, std::string & memory)
{
  std::string              reason;
  std::vector<std::string> warnings;
  auto                     used = SelectDevices(request, reason);
  PlannerRequest           plannerRequest;
  if (used.empty())
  {
    plannerRequest = MakeHostPlannerRequest(request);
  }
  else
  {
    plannerRequest = MakePlannerRequest(request, &devices[used[0]]->device->GetKernels());
    DescribeDevices(request, plannerRequest, used, false, warnings);
  }
  memory = plannerRequest.memoryName;
  BudgetCost cost = FindBudgetCost(plannerRequest);
  if (!used.empty() && cost.factor > 1 && !request.region.IsEmpty())
  {
    SpilledBytes   spilled;
    PlannerRequest unlimited = plannerRequest;
    for (PlannerDevice & device : unlimited.devices)
    {
      device.memory = std::numeric_limits<std::size_t>::max();
    }
    try
    {
      const double seconds = MakeSpillingPlan(request, plannerRequest, used, warnings, spilled).seconds;
      cost.factor = spilled.bytes > 0 ? seconds / MakePlan(unlimited).seconds : cost.factor;
    }
    catch (const BudgetError &)
    {
      // No plan, and an infinite factor.
    }
  }
  return cost;
}

} // namespace chunkwise
