/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDividedRun.h"

#include "chunkwiseDividedImages.h"
#include "chunkwiseDivisionMonitor.h"
#include "chunkwiseError.h"
#include "chunkwiseRegions.h"
#include "chunkwiseResidentRun.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <string>

namespace chunkwise
{

namespace
{

using Steps = std::vector<std::shared_ptr<const Operation>>;

/** What a step takes beside its kernels, as launches of a chunk: its run, and planes that are handed on. */
constexpr double LaunchesOfStep = 5;
/** Values that have not come to rest after so many visits to all parts go a long way: chunks are better then. */
constexpr int MostRounds = 100;
/** Loading, computing, storing. */
constexpr std::int64_t PartsOfProgress = 3;

bool
IsFixpoint(const ExecutionRequest & request)
{
  return request.operation->GetSchedule() == Schedule::Fixpoint;
}

/** A part's run with the schedule Fixpoint of one operation. */
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

class DividedRun
{
public:
  DividedRun(Manager & manager, ManagerState & state, const ExecutionRequest & request,
             const std::vector<std::size_t> & used)
    : m_Manager(manager)
    , m_State(state)
    , m_Request(request)
    , m_Used(used)
    , m_Images(manager, request.budgets, request.image)
  {}

  /** Divides the images. Returns the seconds that the run is expected to take; infinity (Never): it cannot be done. */
  double
  MakePlan()
  {
    if (!(m_Request.region == m_Request.image) || m_Request.hostTakesChunks || m_Request.output.stride[0] != 1)
    {
      return Never;
    }
    m_Steps = m_Request.operation->AsSteps(m_Request.inputs.at(0).kind, m_Request.output.kind);
    const bool isPossible =
      !m_Steps.empty() && (IsFixpoint(m_Request) || m_Request.inputs.size() == 1) &&
      std::none_of(m_Steps.begin(), m_Steps.end(), [](const auto & step) { return step->WrapsAround(); });
    std::int64_t tile = 1;
    if (!isPossible || !FindTile(tile))
    {
      return Never;
    }
    std::vector<int> devices(m_Used.begin(), m_Used.end());
    const bool       isDivided = m_Images.Divide(devices, tile, [&](const Box & planes) {
      Box around = planes;
      for (const auto & step : m_Steps)
      {
        const Box needed = GetInputBox(*step, planes, m_Request.image);
        for (int a = 0; a < MaxDimension; ++a)
        {
          around.lower[a] = std::min(around.lower[a], needed.lower[a]);
          around.upper[a] = std::max(around.upper[a], needed.upper[a]);
        }
      }
      return around;
    });
    if (!isDivided)
    {
      return Never;
    }
    m_Seconds = EstimateSeconds();
    if (m_Seconds == Never && IsFixpoint(m_Request))
    {
      // Visits may take less memory than what is the fastest for the parts by themselves.
      m_Steps.front() = m_Steps.back();
      m_Seconds = EstimateSeconds();
    }
    return m_Seconds;
  }

  void
  Run(Monitor * monitor)
  {
    std::vector<DividedImages::Image> inputs;
    for (const BufferView & input : m_Request.inputs)
    {
      inputs.push_back(m_Images.Add(input.kind, true));
    }
    DividedImages::Image result = m_Images.Add(m_Request.output.kind, true);
    DivisionMonitor      loading(monitor, 0, PartsOfProgress);
    for (std::size_t i = 0; i < inputs.size(); ++i)
    {
      m_Images.Load(inputs[i], m_Request.inputs[i], &loading);
    }
    DivisionMonitor computing(monitor, 1, PartsOfProgress);
    if (IsFixpoint(m_Request))
    {
      ComeToRest(inputs, result, computing);
    }
    else
    {
      result = TakeSteps(inputs.front(), result, computing);
    }
    DivisionMonitor storing(monitor, 2, PartsOfProgress);
    m_Images.Store(m_Request.output, result, &storing);
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
  }

  /** Says in the report what was done. */
  void
  Fill(ExecutionReport & report) const
  {
    const DeviceState & first = *m_State.devices[m_Used.front()];
    report.backend = first.device->GetDescription().backend;
    report.deviceNames.clear();
    report.plan = Plan();
    report.plan.seconds = m_Seconds;
    report.plan.sweepAxis = m_Images.GetAxis();
    for (const DividedImages::Part & part : m_Images.GetParts())
    {
      report.plan.chunks.push_back({ part.planes, part.around });
      report.deviceNames.push_back(
        m_State.devices[static_cast<std::size_t>(part.device)]->device->GetDescription().name);
      for (int a = 0; a < MaxDimension; ++a)
      {
        report.plan.chunkExtent[a] = std::max(report.plan.chunkExtent[a], part.planes.Extent(a));
      }
      for (const BufferView & input : m_Request.inputs)
      {
        report.bytesToDevice += static_cast<double>(DividedImages::CountBytes(part, input.kind, true));
      }
      report.bytesToHost += static_cast<double>(DividedImages::CountBytes(part, m_Request.output.kind, false));
    }
    report.plan.bytesToDevice = report.bytesToDevice;
    report.plan.bytesToHost = report.bytesToHost;
    report.chunksPerDevice.assign(m_Images.GetParts().size(), 1);
    report.peakDevice = m_PeakDevice;
    report.revisits = m_Revisits;
    report.revisitedVoxels = m_RevisitedVoxels;
    for (const std::string & name : m_State.GetTransforms(m_Request, first.device.get()))
    {
      report.transforms += (report.transforms.empty() ? "" : "+") + name;
    }
  }

private:
  static constexpr double Never = std::numeric_limits<double>::infinity();

  /** The seconds that the run takes; Never: a device has not the room, or not all kernels. */
  double
  EstimateSeconds()
  {
    double seconds = 0;
    for (std::size_t part = 0; part < m_Images.GetParts().size() && seconds < Never; ++part)
    {
      seconds = std::max(seconds, HasRoom(part) ? GetSeconds(part) : Never);
    }
    return seconds;
  }

  /** The planes of the tiles of all steps; false if these are not the same. */
  bool
  FindTile(std::int64_t & tile) const
  {
    for (const auto & step : m_Steps)
    {
      const std::int64_t ofStep = step->GetTile(m_Request.image.Extents())[m_Images.GetAxis()];
      if (tile > 1 && ofStep > 1 && tile != ofStep)
      {
        return false;
      }
      tile = std::max(tile, ofStep);
    }
    return true;
  }

  PixelKind
  GetInputKind(std::size_t step) const
  {
    return step == 0 ? m_Request.inputs.front().kind : m_Request.output.kind;
  }

  ChunkShape
  GetShape(std::size_t number, std::size_t step, const KernelRegistry & kernels) const
  {
    const DividedImages::Part & part = m_Images.GetParts()[number];
    ChunkShape                  shape;
    shape.image = m_Request.image;
    shape.outputBox = part.planes;
    shape.inputBox = GetInputBox(*m_Steps[step], part.planes, m_Request.image);
    shape.numberOfInputs = static_cast<int>(m_Request.inputs.size());
    for (std::size_t i = 0; i < m_Request.inputs.size(); ++i)
    {
      shape.inputKinds[i] = m_Request.inputs[i].kind;
    }
    shape.inputKinds[0] = GetInputKind(step);
    shape.outputKind = m_Request.output.kind;
    shape.kernels = &kernels;
    return shape;
  }

  const KernelRegistry &
  GetKernels(std::size_t part) const
  {
    return m_State.devices[m_Used[part]]->device->GetKernels();
  }

  /** Whether a step is another one than the step before it, or has other kinds. */
  bool
  IsNew(std::size_t step) const
  {
    return step < 2 || m_Steps[step] != m_Steps[step - 1];
  }

  bool
  HasRoom(std::size_t number)
  {
    const DividedImages::Part & part = m_Images.GetParts()[number];
    const KernelRegistry &      kernels = GetKernels(number);
    std::size_t                 needed = 0;
    for (std::size_t step = 0; step < m_Steps.size(); ++step)
    {
      const Kernel * const kernel = IsNew(step) ? kernels.Find(m_Steps[step]->GetName()) : nullptr;
      if (IsNew(step) && !kernel)
      {
        return false;
      }
      if (kernel && kernel->scratchBytes)
      {
        needed = std::max(needed, kernel->scratchBytes(*m_Steps[step], GetShape(number, step, kernels)));
      }
    }
    for (const BufferView & input : m_Request.inputs)
    {
      needed += DividedImages::CountBytes(part, input.kind, true);
    }
    needed += DividedImages::CountBytes(part, m_Request.output.kind, true) * (NeedsThird() ? 2 : 1);
    return needed + needed / 16 < m_Manager.GetRoomOnDevice(part.device, m_Request.budgets);
  }

  /** Steps go to and fro between two images; one of another kind than the result is none of them. */
  bool
  NeedsThird() const
  {
    return !IsFixpoint(m_Request) && m_Steps.size() > 1 && m_Request.inputs.front().kind != m_Request.output.kind;
  }

  double
  GetSeconds(std::size_t number) const
  {
    const DividedImages::Part & part = m_Images.GetParts()[number];
    const DeviceDescription &   device = m_State.devices[m_Used[number]]->device->GetDescription();
    double                      seconds = 0;
    for (const BufferView & input : m_Request.inputs)
    {
      seconds += static_cast<double>(DividedImages::CountBytes(part, input.kind, true)) / device.toDeviceRate;
    }
    const PixelKind kind = m_Request.output.kind;
    const auto      own = static_cast<double>(DividedImages::CountBytes(part, kind, false));
    seconds += own / device.toHostRate;
    const double ofStep =
      (static_cast<double>(DividedImages::CountBytes(part, kind, true)) - own) / device.toDeviceRate +
      LaunchesOfStep * device.launchSeconds;
    double ofKernel = 0;
    for (std::size_t step = 0; step < m_Steps.size(); ++step)
    {
      if (IsNew(step))
      {
        const KernelRegistry & kernels = GetKernels(number);
        const Kernel * const   kernel = kernels.Find(m_Steps[step]->GetName());
        const ChunkShape       shape = GetShape(number, step, kernels);
        const auto             input = DenseView(nullptr, shape.inputKinds[0], shape.inputBox).NumberOfBytes();
        const double traffic = kernel->cost ? kernel->cost(*m_Steps[step], shape) : static_cast<double>(input) + own;
        ofKernel = traffic / device.memoryRate;
      }
      seconds += ofKernel + ofStep;
    }
    return seconds;
  }

  void
  NoteReport(const ExecutionReport & report)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    m_PeakDevice = std::max(m_PeakDevice, report.peakDevice);
  }

  /** Returns the image with the result. */
  DividedImages::Image
  TakeSteps(DividedImages::Image from, DividedImages::Image to, Monitor & monitor)
  {
    DividedImages::Image other = NeedsThird() ? m_Images.Add(m_Request.output.kind, true) : from;
    for (std::size_t i = 0; i < m_Steps.size(); ++i)
    {
      DivisionMonitor ofStep(&monitor, static_cast<std::int64_t>(i), static_cast<std::int64_t>(m_Steps.size()));
      m_Images.ForEachPart([&](std::size_t part) {
        NoteReport(m_Manager.ExecuteOnDevice(m_Images.MakeRequest(part, m_Steps[i], { from }, to),
                                             m_Images.GetParts()[part].device,
                                             nullptr,
                                             part == 0 ? &ofStep : nullptr));
      });
      if (i + 1 < m_Steps.size())
      {
        m_Images.HandOn(to);
      }
      from = to;
      std::swap(to, other);
    }
    return from;
  }

  std::unique_ptr<FixpointOfPart>
  MakeFixpoint(std::size_t part, const std::shared_ptr<const Operation> & operation,
               const std::vector<DividedImages::Image> & inputs, DividedImages::Image result) const
  {
    ExecutionRequest request = m_Images.MakeRequest(part, operation, inputs, result);
    // A visit's chunk is cut there; its own planes are all that it changes.
    request.region = m_Request.region;
    request.imageDevice = m_Images.GetParts()[part].device;
    return std::make_unique<FixpointOfPart>(m_State, request);
  }

  /** Each part by itself, then visits to parts whose neighbors have changed where they meet. */
  void
  ComeToRest(const std::vector<DividedImages::Image> & inputs, DividedImages::Image result, Monitor & monitor)
  {
    const std::vector<DividedImages::Part> &     parts = m_Images.GetParts();
    std::vector<std::unique_ptr<DeviceTurn>>     turns;
    std::vector<std::unique_ptr<FixpointOfPart>> runs(parts.size());
    std::vector<std::size_t>                     inOrder = m_Used;
    // In ascending order, so that two runs never wait for each other.
    std::sort(inOrder.begin(), inOrder.end());
    for (const std::size_t device : inOrder)
    {
      turns.push_back(std::make_unique<DeviceTurn>(*m_State.devices[device], &monitor));
    }
    // The first part runs in this thread, which alone may ask the monitor.
    const auto watch = [&] {
      runs.front()->GetContext().SetPoll([&] {
        if (monitor.ShouldAbort())
        {
          for (const auto & run : runs)
          {
            run->GetContext().stop = true;
          }
        }
      });
    };
    for (std::size_t part = 0; part < parts.size(); ++part)
    {
      runs[part] = MakeFixpoint(part, m_Steps.front(), inputs, result);
    }
    watch();
    m_Images.ForEachPart([&](std::size_t part) {
      const Chunk own{ parts[part].planes, parts[part].planes };
      if (runs[part]->Has(&KernelSet::begin))
      {
        runs[part]->Run(&KernelSet::begin, own);
      }
      runs[part]->Run(&KernelSet::compute, own);
    });
    monitor.UpdateProgress(0.5);
    for (std::size_t part = 0; part < parts.size(); ++part)
    {
      runs[part].reset();
      runs[part] = MakeFixpoint(part, m_Steps.back(), inputs, result);
    }
    watch();
    std::vector<char> isVisited(parts.size(), 1);
    for (int round = 0; std::count(isVisited.begin(), isVisited.end(), 1) > 0; ++round)
    {
      if (round == MostRounds)
      {
        throw Error("values go on from part to part of the image");
      }
      Visit(runs, result, isVisited);
    }
    m_Images.ForEachPart([&](std::size_t part) {
      if (runs[part]->Has(&KernelSet::finish))
      {
        runs[part]->Run(&KernelSet::finish, { parts[part].planes, parts[part].planes });
      }
    });
    monitor.UpdateProgress(1.0);
  }

  /** A round of visits; afterwards `isVisited` says whom the next one visits. */
  void
  Visit(std::vector<std::unique_ptr<FixpointOfPart>> & runs, DividedImages::Image result, std::vector<char> & isVisited)
  {
    const std::vector<DividedImages::Part> & parts = m_Images.GetParts();
    std::vector<std::uint32_t>               changed(parts.size(), 0);
    m_Images.HandOn(result);
    m_Images.ForEachPart([&](std::size_t part) {
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
    const int           axis = m_Images.GetAxis();
    const std::uint32_t lower = std::uint32_t{ 1 } << (2 * axis);
    for (std::size_t part = 0; part < parts.size(); ++part)
    {
      isVisited[part] =
        (part > 0 && (changed[part - 1] & (lower << 1))) || (part + 1 < parts.size() && (changed[part + 1] & lower));
    }
  }

  Manager &                        m_Manager;
  ManagerState &                   m_State;
  const ExecutionRequest &         m_Request;
  const std::vector<std::size_t> & m_Used;
  DividedImages                    m_Images;
  Steps                            m_Steps;
  double                           m_Seconds{ 0 };
  std::mutex                       m_Mutex;
  std::size_t                      m_PeakDevice{ 0 };
  std::int64_t                     m_Revisits{ 0 };
  std::int64_t                     m_RevisitedVoxels{ 0 };
};

} // namespace

bool
ExecuteDivided(Manager & manager, ManagerState & state, const ExecutionRequest & request,
               const std::vector<std::size_t> & used, double mostSeconds, Monitor * monitor, ExecutionReport & report)
{
  if (used.size() < 2 || request.region.IsEmpty())
  {
    return false;
  }
  try
  {
    DividedRun   run(manager, state, request, used);
    const double most =
      request.division == ImageDivision::Always ? std::numeric_limits<double>::infinity() : mostSeconds;
    if (!(run.MakePlan() < most))
    {
      return false;
    }
    run.Run(monitor);
    run.Fill(report);
    return true;
  }
  catch (const Aborted &)
  {
    throw;
  }
  catch (const Error & error)
  {
    report.warnings.push_back(std::string("the image is cut into chunks: ") + error.what());
    return false;
  }
}

} // namespace chunkwise
