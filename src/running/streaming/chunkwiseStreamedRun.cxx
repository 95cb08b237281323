/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStreamedRun.h"

#include "chunkwiseConvertVoxels.h"
#include "chunkwiseConvertedImage.h"
#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseBackgroundThread.h"
#include "chunkwiseStreamedOnDevice.h"
#include "chunkwiseStreamedOutOfCore.h"
#include "chunkwiseStreamedWindow.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace chunkwise
{

namespace
{

using Clock = std::chrono::steady_clock;

/** Both views have their voxels contiguous along x. */
void
CopyRows(const Box & box, const BufferView & from, const BufferView & to)
{
  const auto  size = static_cast<std::int64_t>(PixelSize(from.kind));
  const auto  bytes = static_cast<std::size_t>(box.Extent(0) * size);
  Coordinates index = box.lower;
  for (;;)
  {
    std::memcpy(static_cast<unsigned char *>(to.data) + to.Offset(index) * size,
                static_cast<const unsigned char *>(from.data) + from.Offset(index) * size,
                bytes);
    int a = 1;
    for (; a < MaxDimension && ++index[a] == box.upper[a]; ++a)
    {
      index[a] = box.lower[a];
    }
    if (a == MaxDimension)
    {
      return;
    }
  }
}

double
Since(Clock::time_point start)
{
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/** Host memory of divisions: pinned where devices compute. */
std::shared_ptr<Device>
GetPinningDevice(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan)
{
  if (request.backend == BackendChoice::CPU || !request.operation || plan.copies)
  {
    return nullptr;
  }
  const auto devices = manager.GetDevices();
  return devices.empty() ? nullptr : devices.front();
}

/** Reads the inputs of the divisions. */
class ReadingThread : public BackgroundThread
{
public:
  ReadingThread(const StreamedRequest & request, const StreamedPlan & plan, const std::shared_ptr<Device> & device)
    : BackgroundThread(plan.divisions, plan.buffers, true, GetFileThreads(request))
    , m_Inputs(request.inputs)
    , m_Axis(plan.axis)
    , m_Components(GetComponents(request))
    , m_Views(m_Slots, std::vector<BufferView>(request.inputs.size()))
    , m_Memory(m_Slots)
  {
    std::vector<std::size_t> largest(m_Inputs.size(), 1);
    for (std::int64_t i = 0; i < plan.divisions; ++i)
    {
      m_Needed.push_back(MakeDivisionRequest(request, plan, GetDivision(request.region, plan, i)).inputs.front().box);
      m_Boxes.emplace_back();
      for (std::size_t input = 0; input < m_Inputs.size(); ++input)
      {
        const Box box = GetReadBox(request, plan, m_Inputs[input], m_Needed.back());
        m_Boxes.back().push_back(this->GetFileBox(box, input));
        largest[input] = std::max(largest[input], BytesOf(m_Boxes.back().back(), m_Inputs[input].kind));
      }
    }
    for (auto & memory : m_Memory)
    {
      for (const std::size_t bytes : largest)
      {
        memory.emplace_back(bytes, device);
      }
    }
  }
  /** The views of division `i`, which was waited for and not released. */
  std::vector<BufferView>
  GetViews(std::int64_t i) const
  {
    std::vector<BufferView> views = m_Views[SlotOf(i)];
    for (std::size_t input = 0; input < views.size(); ++input)
    {
      BufferView & view = views[input];
      view = FromFileAxes(view, this->HasComponents(input));
      view.box.upper[m_Axis] = m_Needed[static_cast<std::size_t>(i)].upper[m_Axis];
      if (m_Components > 1 && !this->HasComponents(input))
      {
        // One value for all.
        view.box.upper[MaxDimension - 1] = m_Components;
        view.stride[MaxDimension - 1] = 0;
      }
    }
    return views;
  }

protected:
  void
  Step(std::int64_t i) override
  {
    for (std::size_t input = 0; input < m_Inputs.size(); ++input)
    {
      const Box &      box = m_Boxes[static_cast<std::size_t>(i)][input];
      const int        axis = m_Axis + (this->HasComponents(input) ? 1 : 0);
      const PixelType  kind = m_Inputs[input].kind;
      const BufferView view = DenseView(m_Memory[SlotOf(i)][input].Get(), kind, box);
      Box              missing = box;
      if (i > 0)
      {
        // Planes that the division before has too. Its memory is only read while it is computed.
        const BufferView & before = m_Views[SlotOf(i - 1)][input];
        Box                common = box;
        common.upper[axis] = std::min(before.box.upper[axis], box.upper[axis]);
        if (IsSameBeside(box, before.box, axis) && box.lower[axis] >= before.box.lower[axis] && !common.IsEmpty())
        {
          CopyPieces(before, view, common, axis, m_Threads);
          missing.lower[axis] = common.upper[axis];
        }
      }
      m_Views[SlotOf(i)][input] = view;
      ReadPieces(*m_Inputs[input].source, missing, view, axis, m_Threads);
    }
  }

private:
  bool
  HasComponents(std::size_t input) const
  {
    return m_Inputs[input].components > 1;
  }
  /** The box of an input's file for a box of the engine's. */
  Box
  GetFileBox(Box box, std::size_t input) const
  {
    if (m_Components > 1)
    {
      box.upper[MaxDimension - 1] = m_Inputs[input].components;
    }
    return ToFileAxes(box, this->HasComponents(input));
  }
  static bool
  IsSameBeside(const Box & a, const Box & b, int divided)
  {
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      if (axis != divided && (a.lower[axis] != b.lower[axis] || a.upper[axis] != b.upper[axis]))
      {
        return false;
      }
    }
    return true;
  }

  std::vector<StreamedInput>               m_Inputs;
  int                                      m_Axis; ///< of the engine
  std::int64_t                             m_Components;
  std::vector<Box>                         m_Needed; ///< by each division, in the engine's coordinates
  std::vector<std::vector<Box>>            m_Boxes;  ///< that are read for it, in the coordinates of the files
  std::vector<std::vector<BufferView>>     m_Views;
  std::vector<std::vector<StreamedMemory>> m_Memory;
};

/** Writes the results of the divisions. */
class WritingThread : public BackgroundThread
{
public:
  WritingThread(const StreamedRequest & request, const StreamedPlan & plan, std::shared_ptr<ImageSink> sink,
                const std::shared_ptr<Device> & device)
    : BackgroundThread(plan.divisions, plan.buffers, false, GetFileThreads(request))
    , m_Sink(std::move(sink))
    , m_HasComponents(GetComponents(request) > 1)
    , m_Axis(plan.axis + (m_HasComponents ? 1 : 0))
    , m_CountsLimits(request.countsLimits)
    , m_Written(ToFileAxes(GetWrittenBox(request), m_HasComponents))
    , m_Views(m_Slots)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Offset[a] = -m_Written.lower[a];
    }
    const Box largest = GetDivision(request.region, plan, 0);
    for (std::size_t slot = 0; slot < m_Slots && !plan.copies; ++slot)
    {
      m_Memory.emplace_back(
        std::max<std::size_t>(1, static_cast<std::size_t>(largest.NumberOfVoxels()) * PixelSize(request.computedKind)),
        device);
    }
  }
  /** The place for the result of division `i`, before Admit. The slot must be free: i - slots steps are done. */
  BufferView
  GetView(std::int64_t i, PixelType kind, const Box & division)
  {
    m_Views[SlotOf(i)] = DenseView(m_Memory[SlotOf(i)].Get(), kind, ToFileAxes(division, m_HasComponents));
    return FromFileAxes(m_Views[SlotOf(i)], m_HasComponents);
  }
  /** The result of division `i`, before Admit. It lies in memory of `m_Owner`, and must stay until step `i` is done. */
  void
  SetView(std::int64_t i, const BufferView & view)
  {
    m_Views[SlotOf(i)] = ToFileAxes(view, m_HasComponents);
  }
  /** Keeps the owner of views as long as the thread, which may outlive its caller. */
  void
  SetOwner(std::shared_ptr<const void> owner)
  {
    m_Owner = std::move(owner);
  }
  std::int64_t cut{ 0 };
  std::int64_t atLimits{ 0 };

protected:
  void
  Step(std::int64_t i) override
  {
    BufferView                 view = m_Views[SlotOf(i)];
    const Box                  part = Intersect(view.box, m_Written);
    std::vector<unsigned char> packed;
    if (part.IsEmpty())
    {
      return;
    }
    if (!(part == view.box))
    {
      packed.resize(static_cast<std::size_t>(part.NumberOfVoxels()) * PixelSize(view.kind));
      const BufferView target = DenseView(packed.data(), view.kind, part);
      CopyRows(part, view, target);
      view = target;
    }
    if (m_CountsLimits)
    {
      atLimits += CountVoxelsAtLimits(view.data, view.kind, view.box.NumberOfVoxels());
    }
    cut += WritePieces(*m_Sink, view, m_Offset, m_Axis, m_Threads);
  }

private:
  std::shared_ptr<ImageSink>  m_Sink;
  bool                        m_HasComponents;
  int                         m_Axis; ///< of the file
  bool                        m_CountsLimits;
  Box                         m_Written;
  Coordinates                 m_Offset{};
  std::vector<BufferView>     m_Views;
  std::vector<StreamedMemory> m_Memory;
  std::shared_ptr<const void> m_Owner;
};

/** ReadStreamed with a reader. */
double
ReadDivisions(const std::shared_ptr<ReadingThread> & reader, const StreamedRequest & request, const StreamedPlan & plan,
              Monitor * monitor, const std::function<void(const ExecutionRequest &, Monitor *)> & compute)
{
  const Running running(reader);
  for (std::int64_t i = 0; i < plan.divisions; ++i)
  {
    DivisionMonitor ofDivision(monitor, i, plan.divisions);
    reader->WaitFor(i + 1, monitor);
    ExecutionRequest division = MakeDivisionRequest(request, plan, GetDivision(request.region, plan, i));
    division.inputs = reader->GetViews(i);
    compute(division, &ofDivision);
    // The memory of the division before was needed for the planes that both have: slot i % slots is next.
    reader->Admit();
  }
  return reader->GetSeconds();
}

StreamedReport
ExecuteOutOfCore(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan,
                 const std::shared_ptr<ImageSink> & sink, Monitor * monitor)
{
  OutOfCoreRequest outOfCore = MakeOutOfCoreRequest(request, plan);
  const auto       converted = std::make_shared<ConvertedSink>(
    sink, request.region.Extents(), request.writtenKind, request.computedKind, sink->GetAccess(), request.countsLimits);
  outOfCore.sink = converted;
  outOfCore.hostBytes = plan.bytesAtOnce;
  const auto            start = Clock::now();
  const OutOfCoreReport run = request.operation->GetOutOfCoreRunner()->Run(manager, outOfCore, monitor);
  StreamedReport        report;
  report.execution = run.execution;
  report.cut = converted->cut;
  report.atLimits = converted->atLimits;
  report.reading = run.reading;
  report.writing = run.writing;
  // Reading and writing overlap with computing, which is what is left of the time.
  report.computing = std::max(0.0, Since(start) - run.waiting);
  report.spooled = run.spoolWritten;
  report.steps = run.steps;
  report.steps.emplace_back("waiting for files", run.waiting);
  return report;
}

/** Writes divisions as they were read; the next one is read meanwhile. */
StreamedReport
CopyStreamed(const StreamedRequest & request, const StreamedPlan & plan, const std::shared_ptr<ImageSink> & sink,
             Monitor * monitor)
{
  StreamedReport report;
  const auto     reader = std::make_shared<ReadingThread>(request, plan, nullptr);
  const auto     writer = std::make_shared<WritingThread>(request, plan, sink, nullptr);
  writer->SetOwner(reader);
  const Running running(writer);
  std::int64_t  i = 0;
  report.reading =
    ReadDivisions(reader, request, plan, monitor, [&](const ExecutionRequest & division, Monitor * ofDivision) {
      writer->SetView(i, division.inputs.front());
      writer->Admit();
      writer->WaitFor(++i, monitor);
      ofDivision->UpdateProgress(1.0);
    });
  report.execution.backend = "cpu";
  report.writing = writer->GetSeconds();
  report.cut = writer->cut;
  report.atLimits = writer->atLimits;
  return report;
}

} // namespace

void
ReadConverted(ImageSource & source, const BufferView & view)
{
  StreamedThreads threads(1);
  ReadPieces(source, view.box, view, MaxDimension - 1, threads);
}

double
ReadStreamed(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan, Monitor * monitor,
             const std::function<void(const ExecutionRequest &, Monitor *)> & compute)
{
  return ReadDivisions(std::make_shared<ReadingThread>(request, plan, GetPinningDevice(manager, request, plan)),
                       request,
                       plan,
                       monitor,
                       compute);
}

StreamedReport
WriteStreamed(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan,
              const std::shared_ptr<ImageSink> & sink, Monitor * monitor,
              const std::function<void(const BufferView & view)> & fill)
{
  const auto    writer = std::make_shared<WritingThread>(request, plan, sink, GetPinningDevice(manager, request, plan));
  const Running running(writer);
  for (std::int64_t i = 0; i < plan.divisions; ++i)
  {
    DivisionMonitor ofDivision(monitor, i, plan.divisions);
    writer->WaitFor(i + 1 - plan.buffers, monitor);
    fill(writer->GetView(i, request.computedKind, GetDivision(request.region, plan, i)));
    writer->Admit();
    ofDivision.UpdateProgress(1.0);
  }
  writer->WaitFor(plan.divisions, monitor);
  StreamedReport report;
  report.writing = writer->GetSeconds();
  report.cut = writer->cut;
  report.atLimits = writer->atLimits;
  return report;
}

StreamedReport
ExecuteStreamed(Manager & manager, const StreamedRequest & request, const StreamedPlan & plan,
                const std::shared_ptr<ImageSink> & sink, Monitor * monitor)
{
  if (plan.heldOnDevice >= 0)
  {
    StreamedReport    held;
    const std::string failure = ExecuteHeld(manager, request, plan, sink, monitor, held);
    if (!failure.empty())
    {
      DivisionMonitor    rest(monitor, PartsOfHeldRun - 1, PartsOfHeldRun);
      const StreamedPlan instead = MakePlanWithoutHolding(manager, request);
      held = ExecuteStreamed(manager, request, instead, sink, &rest);
      held.execution.warnings.insert(held.execution.warnings.begin(),
                                     "the image goes in " + std::string(instead.inSlabs ? "slabs: " : "divisions: ") +
                                       failure);
    }
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    return held;
  }
  if (plan.inSlabs)
  {
    return ExecuteOutOfCore(manager, request, plan, sink, monitor);
  }
  StreamedReport report;
  if (plan.copies)
  {
    report = CopyStreamed(request, plan, sink, monitor);
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    return report;
  }
  const auto    writer = std::make_shared<WritingThread>(request, plan, sink, GetPinningDevice(manager, request, plan));
  const Running running(writer);
  std::shared_ptr<const Operation> operation = request.operation;
  std::unique_ptr<Executor>        own;
  std::int64_t                     i = 0;
  report.reading =
    ReadStreamed(manager, request, plan, monitor, [&](const ExecutionRequest & division, Monitor * ofDivision) {
      writer->WaitFor(i + 1 - plan.buffers, monitor);
      ExecutionRequest run = division;
      run.operation = operation;
      run.output = writer->GetView(i, request.computedKind, division.region);
      const auto      start = Clock::now();
      ExecutionReport ofRun = manager.Execute(run, ofDivision);
      AddReport(ofRun, report.execution);
      report.execution = std::move(ofRun);
      if (operation->HandsOnState() && i + 1 < plan.divisions)
      {
        if (!request.executor && !own)
        {
          own = MakeThreadExecutor();
        }
        FinishedBlock block;
        block.inputs = run.inputs.data();
        block.numberOfInputs = static_cast<int>(run.inputs.size());
        block.outputKind = request.computedKind;
        block.box = division.region;
        block.image = run.image;
        block.axis = plan.axis;
        block.executor = request.executor ? request.executor : own.get();
        block.kernels = &GetHostKernels();
        if (auto next = operation->MakeForNextBlock(block))
        {
          operation = std::move(next);
        }
      }
      report.computing += Since(start);
      writer->Admit();
      ++i;
    });
  writer->WaitFor(plan.divisions, monitor);
  report.writing = writer->GetSeconds();
  report.cut = writer->cut;
  report.atLimits = writer->atLimits;
  if (monitor)
  {
    monitor->UpdateProgress(1.0);
  }
  return report;
}

} // namespace chunkwise
