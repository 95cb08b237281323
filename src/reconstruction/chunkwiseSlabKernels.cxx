/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSlabKernels.h"

#include "chunkwiseAxes.h"
#include "chunkwiseError.h"

#include <cstring>

namespace chunkwise
{

namespace
{

/** A thread copies so many bytes at a time. */
constexpr std::size_t BytesOfCopy = std::size_t{ 4 } << 20;

/** Tells the run's progress what the manager tells. */
class FloodMonitor : public Monitor
{
public:
  FloodMonitor(SlabProgress & progress, std::int64_t voxels)
    : m_Progress(progress)
    , m_Voxels(static_cast<double>(voxels))
  {}
  void
  UpdateProgress(double fraction) override
  {
    const auto now = static_cast<std::int64_t>(fraction * m_Voxels);
    m_Progress.AddFinishedVoxels(now - m_Last);
    m_Last = now;
  }
  bool
  ShouldAbort() override
  {
    return m_Progress.ShouldStop();
  }

private:
  SlabProgress & m_Progress;
  const double   m_Voxels;
  std::int64_t   m_Last{ 0 };
};

void
Add(ExecutionReport & sum, const ExecutionReport & report)
{
  sum.backend = report.backend;
  sum.deviceNames = report.deviceNames;
  sum.plan = report.plan;
  sum.chunksPerDevice = report.chunksPerDevice;
  sum.chunksOnHost += report.chunksOnHost;
  sum.peakDevice = std::max(sum.peakDevice, report.peakDevice);
  sum.peakPinned = std::max(sum.peakPinned, report.peakPinned);
  sum.peakHost = std::max(sum.peakHost, report.peakHost);
  sum.bytesToDevice += report.bytesToDevice;
  sum.bytesToHost += report.bytesToHost;
  sum.retries += report.retries;
  sum.revisits += report.revisits;
  sum.revisitedVoxels += report.revisitedVoxels;
  sum.solvedGlobally = sum.solvedGlobally || report.solvedGlobally;
  for (const std::string & warning : report.warnings)
  {
    if (std::find(sum.warnings.begin(), sum.warnings.end(), warning) == sum.warnings.end())
    {
      sum.warnings.push_back(warning);
    }
  }
}

/** The request of the manager's run on a part of the image. */
ExecutionRequest
MakeRequest(const SlabRequest & request, std::shared_ptr<const Operation> operation, std::vector<BufferView> inputs,
            BufferView output)
{
  const Box box = Box::FromExtent(output.box.Extents());
  for (BufferView & input : inputs)
  {
    input.box = box;
  }
  output.box = box;
  ExecutionRequest part;
  part.operation = std::move(operation);
  part.inputs = std::move(inputs);
  part.output = output;
  part.image = part.region = box;
  part.backend = request.backend;
  part.devices = request.devices;
  part.budgets = request.budgets;
  return part;
}

std::shared_ptr<ReconstructionOperation>
MakeFloodOnDevices(const ReconstructionOperation & operation)
{
  auto flood = std::make_shared<ReconstructionOperation>(operation);
  flood->marker = ReconstructionMarker::Image;
  flood->result = ReconstructionResult::Reconstruction;
  return flood;
}

} // namespace

bool
SlabProgress::ShouldStop() const
{
  if (m_Poll && std::this_thread::get_id() == m_Poller)
  {
    m_Poll();
  }
  return m_Stop;
}

void
SlabProgress::SetPoll(std::function<void()> poll)
{
  m_Poller = std::this_thread::get_id();
  m_Poll = std::move(poll);
}

void
SlabProgress::CheckStop() const
{
  if (this->ShouldStop())
  {
    throw Aborted();
  }
}

double
SlabProgress::GetFraction() const
{
  const double work = m_Work.load() + SlabFloodWork * static_cast<double>(m_Flooded.load());
  return std::min(work / m_AllWork, 1.0);
}

void
SlabProgress::AddWork(double work)
{
  m_Work = m_Work + work;
  CheckStop();
}

void
SlabProgress::EndFlood(double voxels)
{
  m_CountsFlood = false;
  m_Flooded = 0;
  AddWork(SlabFloodWork * voxels);
}

SlabKernels::SlabKernels(Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation,
                         const SlabPlanner & planner, const SlabPlan & plan, Executor & executor, SlabMemory & memory,
                         SlabProgress & progress, SlabReport & report)
  : m_Manager(manager)
  , m_Request(request)
  , m_Operation(operation)
  , m_Planner(planner)
  , m_Plan(plan)
  , m_Executor(executor)
  , m_Memory(memory)
  , m_Progress(progress)
  , m_Report(report)
  , m_Image(Box::FromExtent(request.sink->GetExtent()))
  , m_Kind(request.sink->GetKind())
{}

void
SlabKernels::CallOf(KernelRole role, const Operation & operation, const std::vector<BufferView> & inputs,
                    const BufferView & state, const Box & image)
{
  KernelCall    call;
  std::uint32_t sides = 0;
  call.operation = &operation;
  call.numberOfInputs = static_cast<int>(inputs.size());
  std::copy(inputs.begin(), inputs.end(), call.inputs);
  call.output = state;
  call.writable = state.box;
  call.image = image;
  call.scratch = m_Memory.scratch;
  call.scratchBytes = m_Plan.scratch;
  call.changedSides = &sides;
  call.executor = &m_Executor;
  call.control = &m_Progress;
  call.kernels = &GetHostKernels();
  GetHostKernels().Get(operation.GetName(), "slabs", role).run(call);
  m_Progress.CheckStop();
}

void
SlabKernels::Execute(std::shared_ptr<const Operation> operation, std::vector<BufferView> inputs, BufferView output)
{
  ExecutionRequest request = MakeRequest(m_Request, std::move(operation), std::move(inputs), output);
  // If devices fail, the CPU gets as much memory as the slab's scratch.
  request.budgets.host = m_Plan.scratch;
  request.executor = &m_Executor;
  FloodMonitor monitor(m_Progress, request.region.NumberOfVoxels());
  Add(m_Report.execution, m_Manager.Execute(request, &monitor));
}

void
SlabKernels::Copy(char * to, const char * from, std::size_t bytes)
{
  const auto pieces = static_cast<std::int64_t>((bytes + BytesOfCopy - 1) / BytesOfCopy);
  m_Executor.ParallelFor(pieces, [&](std::int64_t piece, unsigned int) {
    const std::size_t at = static_cast<std::size_t>(piece) * BytesOfCopy;
    std::memcpy(to + at, from + at, std::min(BytesOfCopy, bytes - at));
  });
}

void
SlabKernels::Flood(char * state, char * mask, const Box & box)
{
  const Stopwatch  watch(m_Report.flooding);
  const BufferView maskView = ViewOf(mask, box);
  const BufferView stateView = ViewOf(state, box);
  if (m_Plan.onDevices)
  {
    Copy(m_Memory.marker, state, stateView.NumberOfBytes());
    Execute(MakeFloodOnDevices(m_Operation), { ViewOf(m_Memory.marker, box), maskView }, stateView);
    return;
  }
  const bool swaps = m_Operation.spatialDimension > 2 && SlabPlanner::IsThin(box);
  m_Report.execution.backend = "cpu";
  CallOf(&KernelSet::compute,
         *m_Planner.MakeFlood(box),
         { swaps ? SwapAxes(maskView, 1, 2) : maskView },
         swaps ? SwapAxes(stateView, 1, 2) : stateView,
         swaps ? SwapAxes(m_Image, 1, 2) : m_Image);
}

void
SlabKernels::Compute(const std::vector<BufferView> & inputs, const BufferView & output)
{
  m_Progress.BeginFlood();
  if (m_Plan.onDevices)
  {
    const Stopwatch watch(m_Report.flooding);
    Execute(std::make_shared<ReconstructionOperation>(m_Operation), inputs, output);
  }
  else
  {
    Call(&KernelSet::begin, inputs, output);
    Flood(static_cast<char *>(output.data), static_cast<char *>(inputs.back().data), output.box);
    const Stopwatch watch(m_Report.finishing);
    Call(&KernelSet::finish, inputs, output);
    Call(&KernelSet::finalizeRegion, inputs, output);
  }
  m_Progress.EndFlood(static_cast<double>(output.box.NumberOfVoxels()));
}

void
CheckDevices(Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation)
{
  if (request.backend != BackendChoice::CUDA)
  {
    return;
  }
  // One voxel fails as every slab would.
  const PixelType  kind = request.sink->GetKind();
  const Box        box = Box::FromExtent({ { 1, 1, 1, 1, 1 } });
  std::uint64_t    voxels[3] = { 0, 0, 0 };
  ExecutionRequest trial = MakeRequest(request,
                                       MakeFloodOnDevices(operation),
                                       { DenseView(&voxels[0], kind, box), DenseView(&voxels[1], kind, box) },
                                       DenseView(&voxels[2], kind, box));
  manager.Execute(trial);
}

} // namespace chunkwise
