/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseStreamedOnDevice.h"
#include "chunkwiseStreamedRun.h"
#include "chunkwiseWatershedBlocks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

// Watersheds of images that no memory holds, in blocks along the slowest axis. A first pass reduces each block to a
// forest of the voxels of its faces, and joins these forests. A second pass finds each block's forest again, and writes
// the labels.
namespace chunkwise
{

namespace
{

/** One part in so many of the memory is for minima that faces of blocks hide. */
constexpr std::uint64_t PartForHiddenMinima = 16;
/** The same for edges that are sorted at once, of at most so many bytes. */
constexpr std::uint64_t PartForEdges = 16;
constexpr std::uint64_t BytesOfEdge = 56;
constexpr std::size_t   BytesOfSides = std::size_t{ 1 } << 16;

/** The watershed of a block, in one chunk. */
class WatershedOfBlock : public WatershedOperation
{
public:
  explicit WatershedOfBlock(const WatershedOperation & operation)
    : WatershedOperation(operation)
  {
    isBlock = true;
  }
  WatershedOfBlock(const WatershedOperation & operation, std::shared_ptr<const WatershedBlocks> blocks,
                   std::size_t block)
    : WatershedOfBlock(operation)
  {
    static std::atomic<std::uint64_t> keys{ 0 };
    m_Blocks = std::move(blocks);
    m_Block = block;
    m_Key = ++keys;
    outside = m_Blocks->GetOutside(block);
  }
  std::string
  GetKey() const override
  {
    return WatershedOperation::GetKey() + " block " + std::to_string(m_Key);
  }
  Coordinates
  RoundChunk(const Coordinates &) const override
  {
    return image;
  }
  /** GetLeastHostBytes counts summaries. */
  std::size_t
  GetSummaryBytes(const Box &, const std::vector<PixelKind> &, PixelKind) const override
  {
    return 0;
  }
  bool
  HandsOnState() const override
  {
    return true;
  }
  std::shared_ptr<const Operation>
  MakeForNextBlock(const FinishedBlock &) const override
  {
    return std::make_shared<WatershedOfBlock>(*this, m_Blocks, m_Block + 1);
  }

private:
  std::shared_ptr<const WatershedBlocks> m_Blocks;
  std::size_t                            m_Block{ 0 };
  std::uint64_t                          m_Key{ 0 };
};

/** The forest of a block's faces. */
class WatershedSummaryOfBlock : public WatershedOfBlock
{
public:
  using WatershedOfBlock::WatershedOfBlock;
  bool
  HasOutput() const override
  {
    return false;
  }
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelKind> &, PixelKind) const override
  {
    return WatershedLayout(*this, box).summaryBytes;
  }
  void
  MergeSummary(SideData & total, const SideData & summary) const override
  {
    total = summary;
  }
};

const WatershedOperation &
GetWatershed(const OutOfCoreRequest & request)
{
  return dynamic_cast<const WatershedOperation &>(*request.operation);
}

int
SlowestAxisOf(const WatershedOperation & operation)
{
  int axis = MaxDimension - 1;
  while (axis > 0 && operation.image[axis] <= 1)
  {
    --axis;
  }
  return axis;
}

StreamedRequest
MakeWatershedPass(const OutOfCoreRequest & request)
{
  const WatershedOperation & operation = GetWatershed(request);
  StreamedRequest            pass;
  for (const std::shared_ptr<ImageSource> & source : request.sources)
  {
    pass.inputs.push_back({ source, source->GetKind() });
  }
  pass.region = Box::FromExtent(operation.image);
  pass.computedKind = operation.outputKind;
  pass.writtenKind = operation.outputKind;
  pass.sinkAccess = request.sink->GetAccess();
  pass.operation = std::make_shared<WatershedOfBlock>(operation);
  pass.backend = request.backend;
  pass.devices = request.devices;
  pass.budgets = request.budgets;
  pass.executor = request.executor;
  pass.fileThreads = request.fileThreads;
  pass.fewestDivisions = true; // each is joined with those before
  return pass;
}

/** Blocks that fit a device where one can be used, even if the host has room for larger ones. */
StreamedPlan
PlanWatershedPass(Manager & manager, const StreamedRequest & pass)
{
  if (pass.backend == BackendChoice::Auto && !manager.GetDevices().empty())
  {
    StreamedRequest onDevices = pass;
    onDevices.backend = BackendChoice::CUDA;
    try
    {
      return MakeStreamedPlan(manager, onDevices);
    }
    catch (const Error &)
    {
      // No device has the kernels, or the memory for a block of one plane.
    }
  }
  return MakeStreamedPlan(manager, pass);
}

/** How a run divides the image and the memory. */
struct WatershedDivision
{
  /** With isSmallBlock. */
  WatershedOperation      operation;
  StreamedPlan            plan;
  WatershedBlocks::Memory memory;
};

/** Sets whether numbers have 32 bits, for blocks as large as this one. */
void
SetSizeOfNumbers(WatershedOperation & operation, int axis, const Box & block)
{
  operation.isBlock = true;
  operation.isSmallBlock = WatershedBlocks::AreSmall(operation, axis, block);
}

/** A block of one plane. */
Box
FirstPlane(const WatershedOperation & operation, int axis)
{
  Box plane = Box::FromExtent(operation.image);
  plane.upper[axis] = std::min<std::int64_t>(plane.upper[axis], 1);
  return plane;
}

class WatershedRunner : public OutOfCoreRunner
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
    WatershedOperation operation = GetWatershed(request);
    const int          axis = SlowestAxisOf(operation);
    StreamedRequest    pass = MakeWatershedPass(request);
    pass.memory = 1;
    std::uint64_t least = 1;
    bool          areThin = false;
    try
    {
      MakeStreamedPlan(manager, pass);
    }
    catch (const DivisionsError & error)
    {
      least = error.needed;
      areThin = error.divisions == operation.image[axis];
    }
    SetSizeOfNumbers(operation, axis, FirstPlane(operation, axis));
    least += WatershedBlocks::GetBytes(operation, axis, areThin, 0);
    return least + (operation.hasMarkers ? 0 : least / (PartForHiddenMinima - 1) + 1);
  }

  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    using Clock = std::chrono::steady_clock;
    StreamedRequest         pass = MakeWatershedPass(request);
    const WatershedDivision divided = Divide(manager, request, pass);
    const StreamedPlan &    plan = divided.plan;
    std::vector<Box>        divisions;
    for (std::int64_t i = 0; i < plan.divisions; ++i)
    {
      divisions.push_back(GetDivision(pass.region, plan, i));
    }
    const auto blocks =
      WatershedBlocks::Create(divided.operation, plan.axis, divisions, divided.memory, request.spoolFolder);
    const WatershedOperation & operation = divided.operation;

    OutOfCoreReport                 report;
    const auto                      start = Clock::now();
    const std::unique_ptr<Executor> own = request.executor ? nullptr : MakeThreadExecutor();
    Executor &                      executor = request.executor ? *request.executor : *own;
    {
      DivisionMonitor firstPass(monitor, 0, 2);
      const auto      summary = std::make_shared<WatershedSummaryOfBlock>(operation);
      report.reading =
        ReadStreamed(manager, pass, plan, &firstPass, [&](const ExecutionRequest & division, Monitor * ofDivision) {
          ExecutionRequest run = division;
          run.operation = summary;
          // Its bytes are counted beside those of the plan.
          run.budgets.host +=
            run.budgets.host ? 2 * WatershedLayout(*summary, run.region).summaryBytes + BytesOfSides : 0;
          ExecutionReport ofRun;
          blocks->Add(manager.Summarise(run, ofDivision, &ofRun), executor);
          AddReport(report.execution, ofRun);
        });
    }
    CheckHidden(*blocks, divided.memory, request.hostBytes);
    blocks->Solve();
    report.spoolWritten = blocks->GetBytesWritten();
    report.steps.emplace_back("joining blocks", std::chrono::duration<double>(Clock::now() - start).count());

    DivisionMonitor secondPass(monitor, 1, 2);
    pass.operation = std::make_shared<WatershedOfBlock>(operation, blocks, 0);
    const StreamedReport  second = ExecuteStreamed(manager, pass, plan, request.sink, &secondPass);
    const ExecutionReport first = std::exchange(report.execution, second.execution);
    AddReport(report.execution, first);
    report.reading += second.reading;
    report.writing = second.writing;
    report.steps.emplace_back("writing labels", second.computing);
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    return report;
  }

private:
  static void
  CheckHidden(const WatershedBlocks & blocks, const WatershedBlocks::Memory & memory, std::uint64_t hostBytes)
  {
    const std::uint64_t hidden = blocks.GetNumberOfHidden() * WatershedBlocks::BytesOfHidden;
    if (memory.minima > 0 && blocks.GetNumberOfHidden() > memory.minima)
    {
      throw BudgetError("minima where blocks of the image meet need " + std::to_string(hidden) +
                          " bytes of the host's memory, " +
                          std::to_string(memory.minima * WatershedBlocks::BytesOfHidden) + " are there for them",
                        hidden * PartForHiddenMinima + PartForHiddenMinima,
                        hostBytes);
    }
  }

  /** Takes thick blocks where they fit, else those of one plane, of which less is kept. */
  static WatershedDivision
  Divide(Manager & manager, const OutOfCoreRequest & request, StreamedRequest & pass)
  {
    WatershedDivision result{ GetWatershed(request), {}, {} };
    const int         axis = SlowestAxisOf(result.operation);
    SetSizeOfNumbers(result.operation, axis, FirstPlane(result.operation, axis));
    const std::uint64_t forMinima = result.operation.hasMarkers ? 0 : request.hostBytes / PartForHiddenMinima;
    result.memory.minima = forMinima / WatershedBlocks::BytesOfHidden;
    result.memory.edges = request.hostBytes ? request.hostBytes / PartForEdges / BytesOfEdge : UINT64_MAX;
    if (!request.hostBytes)
    {
      result.plan = PlanWatershedPass(manager, pass);
      SetSizeOfNumbers(result.operation, axis, GetDivision(pass.region, result.plan, 0));
      return result;
    }
    const auto plan = [&](bool areThin) {
      const std::uint64_t others =
        forMinima + WatershedBlocks::GetBytes(result.operation, axis, areThin, result.memory.edges);
      pass.memory = request.hostBytes > others ? request.hostBytes - others : 1;
      pass.divisions = areThin ? pass.region.Extent(axis) : 0;
      result.plan = PlanWatershedPass(manager, pass);
    };
    try
    {
      plan(false);
      const bool wasSmall = result.operation.isSmallBlock;
      SetSizeOfNumbers(result.operation, axis, GetDivision(pass.region, result.plan, 0));
      if (wasSmall && !result.operation.isSmallBlock)
      {
        plan(false);
      }
    }
    catch (const BudgetError &)
    {
      if (std::min(pass.sinkAccess.unit[axis], pass.region.Extent(axis)) > 1)
      {
        throw;
      }
      result.memory.edges = 0;
      SetSizeOfNumbers(result.operation, axis, FirstPlane(result.operation, axis));
      plan(true);
    }
    return result;
  }
};

} // namespace

const OutOfCoreRunner *
WatershedOperation::GetOutOfCoreRunner() const
{
  static const WatershedRunner runner;
  return &runner;
}

} // namespace chunkwise
