/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwisePartOfSink.h"
#include "chunkwiseStreamedOnDevice.h"
#include "chunkwiseStreamedRun.h"
#include "chunkwiseWatershedBlocks.h"
#include "chunkwiseWatershedJoin.h"

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

/** The part of the memory for minima that faces of blocks hide, or as much as they can take: each has a neighbor
 * that is none. In noise one voxel in 7 is one, if all planes are faces. */
constexpr std::uint64_t FifthsForHiddenMinima = 3;
constexpr std::uint64_t VoxelsOfHiddenMinimum = 2;
/** One part in so many is for edges that are sorted at once, of at most so many bytes. */
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
  GetSummaryBytes(const Box &, const std::vector<PixelType> &, PixelType) const override
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
  SummariesMerge() const override
  {
    return false;
  }
  bool
  HasOutput() const override
  {
    return false;
  }
  std::size_t
  GetSummaryBytes(const Box & box, const std::vector<PixelType> &, PixelType) const override
  {
    return WatershedLayout(*this, box).summaryBytes;
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
  /** The device that holds a block at a time, while the host holds thin parts of it; -1: the host holds blocks. */
  int              device{ -1 };
  bool             joinsOnDevice{ false };
  std::vector<Box> blocks;
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

/** The most bytes for hidden minima, whatever the memory. */
std::uint64_t
MostForHiddenMinima(const WatershedOperation & operation)
{
  const auto voxels = static_cast<std::uint64_t>(Box::FromExtent(operation.image).NumberOfVoxels());
  return operation.hasMarkers ? 0 : WatershedBlocks::GetBytesOfHidden(operation) * (voxels / VoxelsOfHiddenMinimum + 1);
}

/** As many as the memory is for. 0: all. */
std::uint64_t
CountHiddenMinima(const WatershedOperation & operation, std::uint64_t hostBytes)
{
  return std::min(hostBytes / 5 * FifthsForHiddenMinima, MostForHiddenMinima(operation)) /
         WatershedBlocks::GetBytesOfHidden(operation);
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
    pass.operation = std::make_shared<WatershedSummaryOfBlock>(operation);
    for (const int device : FindHoldingDevices(manager, pass))
    {
      StreamedRequest part = pass;
      part.region.upper[axis] =
        std::min(part.region.upper[axis], std::max<std::int64_t>(1, pass.sinkAccess.unit[axis]));
      part.memory = GetLeastBytesOfMoves(manager, pass);
      StreamedPlan plan;
      if (PlanPartOnDevice(manager, part, device, plan))
      {
        least = std::min(least, part.memory + WatershedBlocks::GetBytes(operation, axis, false, 0));
        StreamedRequest   whole = MakeWatershedPass(request);
        OutOfCoreRequest  less = request;
        WatershedDivision division;
        less.hostBytes = part.memory + GetBytesBeside(operation, axis);
        if (less.hostBytes < least && FindHeldPlanes(manager, less, whole, true, division) > 0)
        {
          least = less.hostBytes;
        }
      }
    }
    const std::uint64_t forMinima = (least * FifthsForHiddenMinima) / (5 - FifthsForHiddenMinima) + 5;
    return least + std::min(forMinima, MostForHiddenMinima(operation));
  }

  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    StreamedRequest   pass = MakeWatershedPass(request);
    WatershedDivision division = Divide(manager, request, pass);
    OutOfCoreReport   report;
    if (division.device >= 0)
    {
      const std::string failure = RunHeld(manager, request, pass, division, monitor, report);
      if (failure.empty())
      {
        return report;
      }
      pass = MakeWatershedPass(request);
      division = DivideOnHost(manager, request, pass);
      report = OutOfCoreReport();
      RunInBlocks(manager, request, pass, division, monitor, report);
      report.execution.warnings.insert(report.execution.warnings.begin(), "blocks go through the host: " + failure);
      return report;
    }
    RunInBlocks(manager, request, pass, division, monitor, report);
    return report;
  }

private:
  using Clock = std::chrono::steady_clock;

  static double
  Since(Clock::time_point start)
  {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  /** Blocks lie in the memory of the host. */
  static void
  RunInBlocks(Manager & manager, const OutOfCoreRequest & request, StreamedRequest & pass,
              const WatershedDivision & divided, Monitor * monitor, OutOfCoreReport & report)
  {
    const StreamedPlan &       plan = divided.plan;
    const WatershedOperation & operation = divided.operation;
    const auto                 blocks =
      WatershedBlocks::Create(operation, plan.axis, divided.blocks, divided.memory, request.spoolFolder);
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
    CheckHidden(*blocks, divided, request.hostBytes);
    blocks->Solve();
    report.spoolWritten = blocks->GetBytesWritten();
    report.steps.emplace_back("joining blocks", Since(start));

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
  }

  /** Each block lies in the memory of a device. Empty, or why blocks have to go through the host instead. */
  static std::string
  RunHeld(Manager & manager, const OutOfCoreRequest & request, const StreamedRequest & pass,
          const WatershedDivision & divided, Monitor * monitor, OutOfCoreReport & report)
  {
    const auto                       count = static_cast<std::int64_t>(divided.blocks.size());
    std::shared_ptr<WatershedBlocks> blocks;
    try
    {
      blocks = divided.joinsOnDevice
                 ? WatershedBlocks::CreateOnDevice(
                     manager, divided.device, request.budgets, divided.operation, divided.plan.axis, divided.blocks)
                 : WatershedBlocks::Create(
                     divided.operation, divided.plan.axis, divided.blocks, divided.memory, request.spoolFolder);
    }
    catch (const BudgetError & error)
    {
      return error.what();
    }
    catch (const DeviceError & error)
    {
      return error.what();
    }
    const std::unique_ptr<Executor> own = request.executor ? nullptr : MakeThreadExecutor();
    Executor &                      executor = request.executor ? *request.executor : *own;
    const auto                      summary = std::make_shared<WatershedSummaryOfBlock>(divided.operation);
    double                          joining = 0;
    double                          computing = 0;
    bool                            mayBeWritten = false;
    const auto forBlock = [&](std::int64_t i, std::shared_ptr<const Operation> operation, auto && f) {
      DivisionMonitor ofBlock(monitor, operation->HasOutput() ? count + i : i, 2 * count);
      StreamedRequest part = pass;
      part.operation = std::move(operation);
      part.region = divided.blocks[static_cast<std::size_t>(i)];
      StreamedPlan plan;
      if (!PlanPartOnDevice(manager, part, divided.device, plan))
      {
        throw DeviceError(DeviceError::Kind::OutOfMemory,
                          "room for a block of the watershed",
                          manager.GetDevices()[static_cast<std::size_t>(divided.device)]->GetDescription().name,
                          0,
                          "taken meanwhile");
      }
      HeldImages images(manager, part, plan, &ofBlock);
      report.reading += images.Load();
      const auto start = Clock::now();
      f(images);
      computing += Since(start);
    };
    try
    {
      for (std::int64_t i = 0; i < count; ++i)
      {
        ChunkState found;
        forBlock(i, summary, [&](HeldImages & images) {
          ExecutionReport ofRun;
          found = images.Summarise(ofRun);
          AddReport(report.execution, ofRun);
        });
        const auto start = Clock::now();
        blocks->Add(std::move(found), executor);
        joining += Since(start);
      }
      CheckHidden(*blocks, divided, request.hostBytes);
      const auto start = Clock::now();
      blocks->Solve();
      joining += Since(start);
      report.spoolWritten = blocks->GetBytesWritten();
      for (std::int64_t i = 0; i < count; ++i)
      {
        const auto operation =
          std::make_shared<WatershedOfBlock>(divided.operation, blocks, static_cast<std::size_t>(i));
        forBlock(i, operation, [&](HeldImages & images) {
          ExecutionReport ofRun = images.Compute();
          AddReport(ofRun, report.execution);
          report.execution = std::move(ofRun);
          const int axis = divided.plan.axis;
          Box       rest{ {}, request.sink->GetExtent() };
          rest.lower[axis] = divided.blocks[static_cast<std::size_t>(i)].lower[axis];
          mayBeWritten = true;
          report.writing += images.Store(std::make_shared<PartOfSink>(request.sink, rest, false)).writing;
        });
      }
    }
    catch (const DeviceError & error)
    {
      if (mayBeWritten)
      {
        throw;
      }
      return error.what();
    }
    report.steps.emplace_back("blocks on the device", computing - report.writing);
    report.steps.emplace_back(divided.joinsOnDevice ? "joining blocks on the device" : "joining blocks", joining);
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    return std::string();
  }

  static void
  CheckHidden(const WatershedBlocks & blocks, const WatershedDivision & divided, std::uint64_t hostBytes)
  {
    const std::uint64_t bytes = WatershedBlocks::GetBytesOfHidden(divided.operation);
    const std::uint64_t hidden = blocks.GetNumberOfHidden() * bytes;
    const std::uint64_t there = divided.memory.minima * bytes;
    if (there > 0 && hidden > there)
    {
      throw BudgetError("minima where blocks of the image meet need " + std::to_string(hidden) +
                          " bytes of the host's memory, " + std::to_string(there) + " are there for them",
                        (hidden / FifthsForHiddenMinima + 2) * 5,
                        hostBytes);
    }
  }

  /** Takes blocks that a device holds if they are thicker than the blocks that fit the host. */
  static WatershedDivision
  Divide(Manager & manager, const OutOfCoreRequest & request, StreamedRequest & pass)
  {
    WatershedDivision  held;
    const std::int64_t joined = FindHeldPlanes(manager, request, pass, true, held);
    const std::int64_t planes = joined > 0 ? joined : FindHeldPlanes(manager, request, pass, false, held);
    if (planes == 0)
    {
      return DivideOnHost(manager, request, pass);
    }
    try
    {
      StreamedRequest   ofHost = pass;
      WatershedDivision onHost = DivideOnHost(manager, request, ofHost);
      if (onHost.blocks.front().Extent(onHost.plan.axis) >= planes)
      {
        pass = ofHost;
        return onHost;
      }
    }
    catch (const BudgetError &)
    {
      // The host has no room for a block.
    }
    return held;
  }

  static WatershedDivision
  BeginDivision(const OutOfCoreRequest & request)
  {
    WatershedDivision result;
    result.operation = GetWatershed(request);
    result.plan.axis = SlowestAxisOf(result.operation);
    SetSizeOfNumbers(result.operation, result.plan.axis, FirstPlane(result.operation, result.plan.axis));
    result.memory.minima = CountHiddenMinima(result.operation, request.hostBytes);
    result.memory.edges = request.hostBytes ? request.hostBytes / PartForEdges / BytesOfEdge : UINT64_MAX;
    return result;
  }
  /** Whether a device that holds the blocks of an image can join them, too. */
  static bool
  CanJoinOnDevice(Manager & manager, const WatershedOperation & operation, int device)
  {
    const auto        devices = manager.GetDevices();
    const std::string name = WatershedJoinOperation(operation).GetName();
    return operation.hasMarkers && operation.isSmallBlock &&
           devices[static_cast<std::size_t>(device)]->GetKernels().Find(name) != nullptr;
  }
  static std::uint64_t
  GetBytesBeside(const WatershedOperation & operation, int axis)
  {
    return WatershedBlocks::GetBytesBesideDevice(operation, axis) + BytesOfSides;
  }
  /** The host's memory that joining leaves; at least 1. */
  static std::uint64_t
  GetRest(const OutOfCoreRequest & request, const WatershedDivision & division, bool areThin)
  {
    const std::uint64_t others =
      division.joinsOnDevice
        ? GetBytesBeside(division.operation, division.plan.axis)
        : division.memory.minima * WatershedBlocks::GetBytesOfHidden(division.operation) +
            WatershedBlocks::GetBytes(division.operation, division.plan.axis, areThin, division.memory.edges);
    return request.hostBytes > others ? request.hostBytes - others : 1;
  }

  /** The planes of a block that a device has room for; 0: none has. */
  static std::int64_t
  FindHeldPlanes(Manager & manager, const OutOfCoreRequest & request, StreamedRequest & pass, bool joinsOnDevice,
                 WatershedDivision & held)
  {
    if (request.hostBytes == 0)
    {
      return 0;
    }
    held = BeginDivision(request);
    held.joinsOnDevice = joinsOnDevice;
    const int          axis = held.plan.axis;
    const std::int64_t all = pass.region.Extent(axis);
    const std::int64_t unit = std::min(std::max<std::int64_t>(1, pass.sinkAccess.unit[axis]), all);
    pass.operation = std::make_shared<WatershedSummaryOfBlock>(held.operation);
    if (GetRest(request, held, false) == 1)
    {
      held.memory.edges = 0;
    }
    StreamedRequest part = pass;
    part.memory = GetRest(request, held, false);
    const auto fits = [&](int device, std::int64_t planes, bool besideSummaries) {
      part.region = pass.region;
      // A block in the middle has two faces.
      part.region.lower[axis] += std::min(unit, all - std::min(all, planes));
      part.region.upper[axis] = part.region.lower[axis] + std::min(all, planes);
      const bool isAsSmall =
        !held.operation.isSmallBlock || WatershedBlocks::AreSmall(held.operation, axis, part.region);
      part.budgets = pass.budgets;
      if (besideSummaries)
      {
        const auto        bytes = WatershedBlocks::GetBytesOnDevice(held.operation, axis, planes);
        const std::size_t room = manager.GetRoomOnDevice(device, request.budgets);
        if (bytes.held >= room || bytes.joining > room)
        {
          return false;
        }
        part.budgets.device = room - bytes.held;
      }
      StreamedPlan plan;
      return isAsSmall && PlanPartOnDevice(manager, part, device, plan);
    };
    std::int64_t most = 0;
    for (const int device : FindHoldingDevices(manager, pass))
    {
      if (joinsOnDevice && !CanJoinOnDevice(manager, held.operation, device))
      {
        continue;
      }
      std::int64_t low = 0;
      std::int64_t high = (all + unit - 1) / unit;
      while (low < high)
      {
        const std::int64_t middle = (low + high + 1) / 2;
        const bool         isEnough = fits(device, middle * unit, false);
        (isEnough ? low : high) = isEnough ? middle : middle - 1;
      }
      // Thinner blocks leave more room for summaries, and have more of them.
      while (joinsOnDevice && low > 0 && !fits(device, low * unit, true))
      {
        low = low * 7 / 8;
      }
      if (low * unit > most)
      {
        most = low * unit;
        held.device = device;
      }
    }
    if (most > 0)
    {
      const std::int64_t count = (all + most - 1) / most;
      most = ((all + count - 1) / count + unit - 1) / unit * unit;
      for (std::int64_t first = 0; first < all; first += most)
      {
        held.blocks.push_back(pass.region);
        held.blocks.back().lower[axis] = pass.region.lower[axis] + first;
        held.blocks.back().upper[axis] = pass.region.lower[axis] + std::min(all, first + most);
      }
      pass.memory = part.memory;
    }
    return most;
  }

  /** Takes thick blocks where they fit, else those of one plane, of which less is kept. */
  static WatershedDivision
  DivideOnHost(Manager & manager, const OutOfCoreRequest & request, StreamedRequest & pass)
  {
    WatershedDivision result = BeginDivision(request);
    const int         axis = result.plan.axis;
    pass.operation = std::make_shared<WatershedOfBlock>(result.operation);
    const auto plan = [&](bool areThin) {
      pass.memory = request.hostBytes ? GetRest(request, result, areThin) : 0;
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
        result.memory.minima = CountHiddenMinima(result.operation, request.hostBytes);
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
    for (std::int64_t i = 0; i < result.plan.divisions; ++i)
    {
      result.blocks.push_back(GetDivision(pass.region, result.plan, i));
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
