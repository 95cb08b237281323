/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDividedSteps.h"

#include "chunkwiseDivisionMonitor.h"
#include "chunkwiseError.h"
#include "chunkwiseRegions.h"
#include "chunkwiseResidentRun.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace chunkwise
{

namespace
{

/** The time of a step beside its kernels, in launches of a chunk: its run, and planes that are handed on. */
constexpr double LaunchesOfStep = 5;
/** Less than this part of the scratch is too little: halos would be computed again and again. */
constexpr std::size_t LeastOfScratch = 2;
/** Values that have not come to rest after so many visits to all parts go a long way: chunks are better then. */
constexpr int MostRounds = 100;

} // namespace

/** A part's run of one operation with the schedule Fixpoint. */
class FixpointOfPart
{
public:
  FixpointOfPart(ManagerState & state, const ExecutionRequest & request)
    : m_Request(request)
    , m_State(*state.devices[static_cast<std::size_t>(request.imageDevice)])
    , m_PlannerRequest(state.MakePlannerRequest(request, &m_State.device->GetKernels()))
    , m_Ready(m_State)
    , m_Residence{ static_cast<std::size_t>(request.imageDevice), m_Ready.Get() }
    , m_Context(m_Request, m_PlannerRequest, m_State.device->GetKernels())
  {
    m_State.device->Record(m_Ready.Get(), nullptr);
    m_Context.residence = &m_Residence;
    m_Runner =
      MakeResidentRunner(m_Context, m_State, state.DeviceLimit(static_cast<std::size_t>(request.imageDevice), request));
  }

  RunContext &
  GetContext()
  {
    return m_Context;
  }
  bool
  Has(KernelRole role) const
  {
    return m_Context.FindKernel(m_State.device->GetKernels(), role) != nullptr;
  }
  void
  Run(KernelRole role, const Chunk & chunk, std::uint32_t * changedSides = nullptr)
  {
    m_Runner->Run({ role, chunk, nullptr, nullptr, true, changedSides });
    if (m_Context.ShouldStop())
    {
      throw Aborted();
    }
  }

private:
  const ExecutionRequest       m_Request;
  DeviceState &                m_State;
  const PlannerRequest         m_PlannerRequest;
  const KeptEvent              m_Ready;
  const Residence              m_Residence;
  RunContext                   m_Context;
  std::unique_ptr<ChunkRunner> m_Runner;
};

DividedSteps::DividedSteps(Manager & manager, ManagerState & state, std::shared_ptr<const Operation> operation,
                           std::vector<PixelType> inputKinds, PixelType outputKind)
  : m_Manager(manager)
  , m_State(state)
  , m_Operation(std::move(operation))
  , m_InputKinds(std::move(inputKinds))
  , m_OutputKind(outputKind)
  , m_Steps(FindSteps(m_Operation, m_InputKinds.at(0), outputKind))
{}

ChunkShape
DividedSteps::GetShape(const DividedImages & images, std::size_t part, std::size_t step) const
{
  ChunkShape shape;
  shape.image = images.GetGrid();
  shape.outputBox = images.GetParts()[part].planes;
  shape.inputBox = GetInputBox(*m_Steps[step], shape.outputBox, shape.image);
  shape.numberOfInputs = static_cast<int>(m_InputKinds.size());
  std::copy(m_InputKinds.begin(), m_InputKinds.end(), shape.inputKinds);
  shape.inputKinds[0] = GetInputKind(step);
  shape.outputKind = m_OutputKind;
  shape.kernels = &GetDevice(images, part).GetKernels();
  return shape;
}

bool
DividedSteps::FindScratch(const DividedImages & images, std::size_t part, std::size_t & scratch) const
{
  const KernelRegistry & kernels = GetDevice(images, part).GetKernels();
  scratch = 0;
  for (std::size_t step = 0; step < m_Steps.size(); ++step)
  {
    if (!IsNew(step))
    {
      continue;
    }
    const Kernel * const kernel = kernels.Find(m_Steps[step]->GetName());
    if (!kernel)
    {
      return false;
    }
    if (kernel->scratchBytes)
    {
      scratch = std::max(scratch, kernel->scratchBytes(*m_Steps[step], GetShape(images, part, step)));
    }
  }
  return true;
}

bool
DividedSteps::HasRoom(const DividedImages & images, std::size_t number, std::size_t held, bool keepsInputs) const
{
  const DividedImages::Part & part = images.GetParts()[number];
  std::size_t                 scratch = 0;
  if (!FindScratch(images, number, scratch))
  {
    return false;
  }
  const std::size_t other = NeedsOther(keepsInputs) ? DividedImages::CountBytes(part, m_OutputKind, true) : 0;
  // Runs of steps cut parts where scratch has not the room for a whole one.
  const std::size_t needed = held + other + (IsFixpoint() ? scratch : scratch / LeastOfScratch);
  return needed + needed / 16 < m_Manager.GetRoomOnDevice(part.device, images.GetBudgets());
}

double
DividedSteps::GetSeconds(const DividedImages & images, std::size_t number) const
{
  const DividedImages::Part & part = images.GetParts()[number];
  const DeviceDescription &   device = GetDevice(images, number).GetDescription();
  const auto                  own = static_cast<double>(DividedImages::CountBytes(part, m_OutputKind, false));
  const auto                  all = static_cast<double>(DividedImages::CountBytes(part, m_OutputKind, true));
  const double                handOn = (all - own) / std::max(device.peerRate, device.toDeviceRate);
  const double                ofStep = handOn + LaunchesOfStep * device.launchSeconds;
  double                      seconds = 0;
  double                      ofKernel = 0;
  for (std::size_t step = 0; step < m_Steps.size(); ++step)
  {
    if (IsNew(step))
    {
      const ChunkShape     shape = GetShape(images, number, step);
      const Kernel * const kernel = shape.kernels->Find(m_Steps[step]->GetName());
      const auto           input = DenseView(nullptr, shape.inputKinds[0], shape.inputBox).NumberOfBytes();
      const double traffic = kernel->cost ? kernel->cost(*m_Steps[step], shape) : static_cast<double>(input) + own;
      ofKernel = traffic / device.memoryRate;
    }
    seconds += ofKernel + ofStep;
  }
  return seconds;
}

double
DividedSteps::EstimateSeconds(const DividedImages & images, const std::vector<std::size_t> & held, bool keepsInputs)
{
  const auto estimate = [&] {
    double seconds = 0;
    for (std::size_t part = 0; part < images.GetParts().size() && seconds < Never; ++part)
    {
      seconds = std::max(seconds, HasRoom(images, part, held[part], keepsInputs) ? GetSeconds(images, part) : Never);
    }
    return seconds;
  };
  double seconds = estimate();
  if (seconds == Never && IsFixpoint())
  {
    // Visits may take less memory than what is the fastest for the parts by themselves.
    m_Steps.front() = m_Steps.back();
    seconds = estimate();
  }
  return seconds;
}

void
DividedSteps::Compute(DividedImages & images, const std::vector<Image> & inputs, Image output, bool keepsInputs,
                      Monitor * monitor)
{
  if (IsFixpoint())
  {
    ComeToRest(images, inputs, output, monitor);
  }
  else
  {
    TakeSteps(images, inputs.front(), output, keepsInputs, monitor);
  }
}

void
DividedSteps::TakeSteps(DividedImages & images, Image input, Image output, bool keepsInputs, Monitor * monitor)
{
  // Goes if a step fails, too.
  struct Temporary
  {
    DividedImages & images;
    const bool      isThere;
    ~Temporary()
    {
      if (isThere)
      {
        images.RemoveLast();
      }
    }
  };
  const bool      needsOther = NeedsOther(keepsInputs);
  Image           to = output;
  Image           other = needsOther ? images.Add(m_OutputKind, true) : input;
  Image           from = input;
  const Temporary temporary{ images, needsOther };
  for (std::size_t i = 0; i < m_Steps.size(); ++i)
  {
    DivisionMonitor ofStep(monitor, static_cast<std::int64_t>(i), static_cast<std::int64_t>(m_Steps.size()));
    images.ForEachPart([&](std::size_t part) {
      const ExecutionReport report = m_Manager.ExecuteOnDevice(images.MakeRequest(part, m_Steps[i], { from }, to),
                                                               images.GetParts()[part].device,
                                                               nullptr,
                                                               part == 0 ? &ofStep : nullptr);
      const std::lock_guard<std::mutex> lock(m_Mutex);
      m_PeakDevice = std::max(m_PeakDevice, report.peakDevice);
    });
    if (i + 1 < m_Steps.size())
    {
      images.HandOn(to);
    }
    from = to;
    std::swap(to, other);
  }
  if (from != output)
  {
    images.Swap(from, output);
  }
}

std::unique_ptr<FixpointOfPart>
DividedSteps::MakeFixpoint(const DividedImages & images, std::size_t part,
                           const std::shared_ptr<const Operation> & operation, const std::vector<Image> & inputs,
                           Image output) const
{
  ExecutionRequest request = images.MakeRequest(part, operation, inputs, output);
  // A visit's chunk is cut there; its own planes are all that it changes.
  request.region = request.image;
  request.imageDevice = images.GetParts()[part].device;
  return std::make_unique<FixpointOfPart>(m_State, request);
}

void
DividedSteps::ComeToRest(DividedImages & images, const std::vector<Image> & inputs, Image output, Monitor * monitor)
{
  const std::vector<DividedImages::Part> &     parts = images.GetParts();
  std::vector<std::unique_ptr<DeviceTurn>>     turns;
  std::vector<std::unique_ptr<FixpointOfPart>> runs(parts.size());
  std::set<int>                                devices;
  for (const DividedImages::Part & part : parts)
  {
    devices.insert(part.device);
  }
  // In ascending order, so that two runs never wait for each other.
  for (const int device : devices)
  {
    turns.push_back(std::make_unique<DeviceTurn>(*m_State.devices[static_cast<std::size_t>(device)], monitor));
  }
  const auto make = [&](const std::shared_ptr<const Operation> & operation) {
    for (std::size_t part = 0; part < parts.size(); ++part)
    {
      runs[part].reset();
      runs[part] = MakeFixpoint(images, part, operation, inputs, output);
    }
    // The first part runs in this thread, which alone may ask the monitor.
    runs.front()->GetContext().SetPoll([&runs, monitor] {
      const bool stops = monitor && monitor->ShouldAbort();
      for (std::size_t part = 0; part < runs.size() && stops; ++part)
      {
        runs[part]->GetContext().stop = true;
      }
    });
  };
  make(m_Steps.front());
  images.ForEachPart([&](std::size_t part) {
    const Chunk own{ parts[part].planes, parts[part].planes };
    if (runs[part]->Has(&KernelSet::begin))
    {
      runs[part]->Run(&KernelSet::begin, own);
    }
    runs[part]->Run(&KernelSet::compute, own);
  });
  if (monitor)
  {
    monitor->UpdateProgress(0.5);
  }
  make(m_Steps.back());
  std::vector<char> isVisited(parts.size(), 1);
  for (int round = 0; std::count(isVisited.begin(), isVisited.end(), 1) > 0; ++round)
  {
    if (round == MostRounds)
    {
      throw Error("values go on from part to part of the image");
    }
    Visit(images, runs, output, isVisited);
  }
  images.ForEachPart([&](std::size_t part) {
    if (runs[part]->Has(&KernelSet::finish))
    {
      runs[part]->Run(&KernelSet::finish, { parts[part].planes, parts[part].planes });
    }
  });
  for (const int device : devices)
  {
    m_PeakDevice = std::max(m_PeakDevice, m_State.devices[static_cast<std::size_t>(device)]->memory.GetPeak());
  }
  if (monitor)
  {
    monitor->UpdateProgress(1.0);
  }
}

void
DividedSteps::Visit(DividedImages & images, const std::vector<std::unique_ptr<FixpointOfPart>> & runs, Image output,
                    std::vector<char> & isVisited)
{
  const std::vector<DividedImages::Part> & parts = images.GetParts();
  std::vector<std::uint32_t>               changed(parts.size(), 0);
  images.HandOn(output);
  images.ForEachPart([&](std::size_t part) {
    if (isVisited[part])
    {
      runs[part]->Run(&KernelSet::compute, { parts[part].planes, parts[part].around }, &changed[part]);
    }
  });
  for (std::size_t part = 0; part < parts.size(); ++part)
  {
    m_Revisits += isVisited[part];
    m_RevisitedVoxels += isVisited[part] ? parts[part].planes.NumberOfVoxels() : 0;
  }
  const std::uint32_t lower = std::uint32_t{ 1 } << (2 * images.GetAxis());
  for (std::size_t part = 0; part < parts.size(); ++part)
  {
    isVisited[part] =
      (part > 0 && (changed[part - 1] & (lower << 1))) || (part + 1 < parts.size() && (changed[part + 1] & lower));
  }
}

Plan
DividedSteps::MakePlan(const DividedImages & images, double seconds) const
{
  Plan plan;
  plan.divided = true;
  plan.seconds = seconds;
  plan.sweepAxis = images.GetAxis();
  for (std::size_t number = 0; number < images.GetParts().size(); ++number)
  {
    const DividedImages::Part & part = images.GetParts()[number];
    std::size_t                 inputs = 0;
    for (const PixelType kind : m_InputKinds)
    {
      inputs += DividedImages::CountBytes(part, kind, true);
    }
    std::size_t scratch = 0;
    (void)FindScratch(images, number, scratch);
    plan.inputBytes = std::max(plan.inputBytes, inputs);
    plan.outputBytes = std::max(plan.outputBytes, DividedImages::CountBytes(part, m_OutputKind, true));
    plan.scratchBytes = std::max(plan.scratchBytes, scratch);
    plan.deviceBytes = plan.inputBytes + plan.outputBytes + plan.scratchBytes;
    plan.chunks.push_back({ part.planes, part.around });
    for (int a = 0; a < MaxDimension; ++a)
    {
      plan.chunkExtent[a] = std::max(plan.chunkExtent[a], part.planes.Extent(a));
    }
  }
  return plan;
}

void
DividedSteps::Fill(const DividedImages & images, ExecutionReport & report) const
{
  const Device & first = GetDevice(images, 0);
  report.backend = first.GetDescription().backend;
  report.deviceNames.clear();
  for (std::size_t part = 0; part < images.GetParts().size(); ++part)
  {
    report.deviceNames.push_back(GetDevice(images, part).GetDescription().name);
  }
  report.chunksPerDevice.assign(images.GetParts().size(), 1);
  report.peakDevice = m_PeakDevice;
  report.revisits = m_Revisits;
  report.revisitedVoxels = m_RevisitedVoxels;
  ExecutionRequest request;
  request.operation = m_Operation;
  for (const std::string & name : m_State.GetTransforms(request, &first))
  {
    report.transforms += (report.transforms.empty() ? "" : "+") + name;
  }
}

} // namespace chunkwise
