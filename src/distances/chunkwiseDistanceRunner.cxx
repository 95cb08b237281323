/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDevice.h"
#include "chunkwiseDistanceOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseSpooledImage.h"
#include "chunkwiseStagedOperation.h"
#include "chunkwiseStreamedRun.h"

#include <algorithm>
#include <atomic>
#include <chrono>

// Distances in images that no memory holds, in blocks along the slowest axis. A first pass notes the first feature of
// each column in each block, and the last one. A second pass computes the blocks in ascending order, each with the
// nearest features before and after it. Openings and closings are two such runs, with an image in a spool between them.
namespace chunkwise
{

namespace
{

/** Planes of features are in memory so often: those around two blocks, a summary, and two that are merged. */
constexpr std::uint64_t SidesInMemory = 8;

/** The nearest features after each block, and the last ones in it, in a spool. */
class FeaturesOfBlocks
{
public:
  FeaturesOfBlocks(const DistancePlanes & planes, const std::string & folder)
    : m_Planes(planes)
    , m_Spool(folder)
  {}
  /** Adds a block's first and last features: its summary. */
  void
  Add(const ChunkState & summary)
  {
    m_Spool.Append(summary.data(), 2 * m_Planes.SideBytes());
    ++m_Blocks;
  }
  /** When all blocks have come: each gets those after it in place of its first ones. */
  void
  Finish()
  {
    const std::size_t bytes = m_Planes.SideBytes();
    ChunkState        known(bytes, 0xff);
    ChunkState        first(bytes);
    for (std::uint64_t block = m_Blocks; block-- > 0;)
    {
      m_Spool.Read(2 * block * bytes, first.data(), bytes);
      m_Spool.WriteAt(2 * block * bytes, known.data(), bytes);
      ReplaceFeatures(known.data(), first.data(), m_Planes);
    }
  }
  void
  ReadAfter(std::uint64_t block, unsigned char * side) const
  {
    m_Spool.Read(2 * block * m_Planes.SideBytes(), side, m_Planes.SideBytes());
  }
  void
  ReadLast(std::uint64_t block, unsigned char * side) const
  {
    m_Spool.Read((2 * block + 1) * m_Planes.SideBytes(), side, m_Planes.SideBytes());
  }
  const DistancePlanes &
  GetPlanes() const
  {
    return m_Planes;
  }
  std::uint64_t
  GetBytesWritten() const
  {
    return m_Spool.GetBytesWritten();
  }

private:
  const DistancePlanes m_Planes;
  mutable Spool        m_Spool;
  std::uint64_t        m_Blocks{ 0 };
};

/** The summary of a block by the host's kernel. `memory`: for scratch, which further blocks reuse. */
ChunkState
SummarizeBlock(const DistanceOperation & operation, const BufferView & input, const Box & box, Executor & executor,
               const KernelRegistry & kernels, std::vector<unsigned char> & memory)
{
  const Kernel & kernel = kernels.Get(operation.GetName(), operation.GetName(), &KernelSet::summarize);
  ChunkShape     shape;
  shape.inputBox = input.box;
  shape.outputBox = box;
  shape.image = Box::FromExtent(operation.image);
  shape.inputKinds[0] = input.kind;
  shape.numberOfInputs = 1;
  shape.outputKind = operation.outputKind;
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  const std::size_t bytes = kernel.scratchBytes(operation, shape);
  memory.resize(std::max(memory.size(), bytes + 256));
  ChunkState summary(2 * operation.GetPlanes(box).SideBytes());
  KernelCall call;
  call.operation = &operation;
  call.inputs[0] = input;
  call.numberOfInputs = 1;
  call.output.kind = operation.outputKind;
  call.writable = box;
  call.image = shape.image;
  call.scratch = memory.data() + (256 - reinterpret_cast<std::uintptr_t>(memory.data()) % 256) % 256;
  call.scratchBytes = bytes;
  call.sideOut = summary.data();
  call.sideOutBytes = summary.size();
  call.executor = &executor;
  kernel.run(call);
  return summary;
}

/** Computes the blocks of a stream, one after the other. */
class DistanceBlocks : public DistanceOperation
{
public:
  /** Blocks along an axis along which no distances are taken. */
  explicit DistanceBlocks(const DistanceOperation & operation)
    : DistanceOperation(operation)
  {}
  DistanceBlocks(const DistanceOperation & operation, std::shared_ptr<const FeaturesOfBlocks> features,
                 std::uint64_t block, const unsigned char * before)
    : DistanceOperation(operation)
    , m_Features(std::move(features))
    , m_Block(block)
  {
    static std::atomic<std::uint64_t> keys{ 0 };
    const std::size_t                 bytes = m_Features->GetPlanes().SideBytes();
    const auto                        sides = std::make_shared<ChunkState>(2 * bytes, 0xff);
    if (before)
    {
      std::copy_n(before, bytes, sides->begin());
    }
    m_Features->ReadAfter(block, sides->data() + bytes);
    outside = sides;
    outsideKey = std::to_string(++keys);
  }
  bool
  HandsOnState() const override
  {
    return true;
  }
  std::shared_ptr<const Operation>
  MakeForNextBlock(const FinishedBlock &) const override
  {
    if (!m_Features)
    {
      return nullptr;
    }
    const std::size_t bytes = m_Features->GetPlanes().SideBytes();
    ChunkState        before(outside->begin(), outside->begin() + static_cast<std::ptrdiff_t>(bytes));
    ChunkState        last(bytes);
    m_Features->ReadLast(m_Block, last.data());
    ReplaceFeatures(before.data(), last.data(), m_Features->GetPlanes());
    return std::make_shared<DistanceBlocks>(*this, m_Features, m_Block + 1, before.data());
  }

private:
  std::shared_ptr<const FeaturesOfBlocks> m_Features;
  std::uint64_t                           m_Block{ 0 };
};

/** A part of the progress. */
class DistancePassMonitor : public Monitor
{
public:
  DistancePassMonitor(Monitor * whole, double begin, double share)
    : m_Whole(whole)
    , m_Begin(begin)
    , m_Share(share)
  {}
  void
  UpdateProgress(double progress) override
  {
    if (m_Whole)
    {
      m_Whole->UpdateProgress(m_Begin + progress * m_Share);
    }
  }
  bool
  ShouldAbort() override
  {
    return m_Whole && m_Whole->ShouldAbort();
  }

private:
  Monitor * const m_Whole;
  const double    m_Begin;
  const double    m_Share;
};

std::vector<const DistanceOperation *>
StagesOf(const Operation & operation)
{
  std::vector<const DistanceOperation *> stages;
  if (const StagedOperation * const staged = operation.AsStaged())
  {
    for (const Stage & stage : staged->GetStages())
    {
      // The operation, which holds its stages, outlives the run.
      stages.push_back(&dynamic_cast<const DistanceOperation &>(*stage.operation));
    }
  }
  else
  {
    stages.push_back(&dynamic_cast<const DistanceOperation &>(operation));
  }
  return stages;
}

StreamedRequest
MakeDistancePass(const OutOfCoreRequest & request, const DistanceOperation & operation,
                 const std::shared_ptr<ImageSource> & source, const ImageAccess & sink)
{
  StreamedRequest pass;
  pass.inputs = { { source, operation.inputKind } };
  pass.region = Box::FromExtent(operation.image);
  pass.computedKind = operation.outputKind;
  pass.writtenKind = operation.outputKind;
  pass.sinkAccess = sink;
  pass.operation = std::make_shared<DistanceBlocks>(operation);
  pass.backend = request.backend;
  pass.devices = request.devices;
  pass.budgets = request.budgets;
  pass.executor = request.executor;
  pass.fileThreads = request.fileThreads;
  pass.fewestDivisions = true; // each leaves two planes of features
  return pass;
}

std::uint64_t
BytesOfSides(const DistanceOperation & operation)
{
  int slowest = MaxDimension - 1;
  while (slowest > 0 && operation.image[slowest] <= 1)
  {
    --slowest;
  }
  // Blocks along another axis know nothing of each other.
  return slowest != operation.GetScanAxis()
           ? 0
           : SidesInMemory * operation.GetPlanes(Box::FromExtent(operation.image)).SideBytes();
}

class DistanceRunner : public OutOfCoreRunner
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
    std::uint64_t most = 1;
    for (const DistanceOperation * const operation : StagesOf(*request.operation))
    {
      // A later stage reads a spool, in any order.
      StreamedRequest pass = MakeDistancePass(request, *operation, request.sources.at(0), request.sink->GetAccess());
      pass.inputs.front().kind = operation->inputKind;
      pass.memory = 1;
      std::uint64_t least = 1;
      try
      {
        MakeStreamedPlan(manager, pass);
      }
      catch (const DivisionsError & error)
      {
        least = error.needed;
      }
      most = std::max(most, least + BytesOfSides(*operation) + 1);
    }
    return most;
  }

  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    const std::vector<const DistanceOperation *> stages = StagesOf(*request.operation);
    OutOfCoreReport                              report;
    std::shared_ptr<ImageSource>                 source = request.sources.at(0);
    const double                                 share = 1.0 / static_cast<double>(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i)
    {
      std::shared_ptr<SpooledImage> between;
      if (i + 1 < stages.size())
      {
        between = std::make_shared<SpooledImage>(stages[i]->image, stages[i]->outputKind, request.spoolFolder);
      }
      const std::shared_ptr<ImageSink> sink = between ? std::shared_ptr<ImageSink>(between) : request.sink;
      DistancePassMonitor              ofStage(monitor, static_cast<double>(i) * share, share);
      this->RunStage(manager, request, *stages[i], source, sink, &ofStage, report);
      if (between)
      {
        between->Finish();
        report.spoolWritten += between->GetSpool().GetBytesWritten();
        source = between;
      }
    }
    return report;
  }

private:
  void
  RunStage(Manager & manager, const OutOfCoreRequest & request, const DistanceOperation & operation,
           const std::shared_ptr<ImageSource> & source, const std::shared_ptr<ImageSink> & sink, Monitor * monitor,
           OutOfCoreReport & report) const
  {
    using Clock = std::chrono::steady_clock;
    StreamedRequest pass = MakeDistancePass(request, operation, source, sink->GetAccess());
    if (request.hostBytes)
    {
      const std::uint64_t others = BytesOfSides(operation);
      pass.memory = request.hostBytes > others ? request.hostBytes - others : 1;
    }
    const StreamedPlan plan = MakeStreamedPlan(manager, pass);
    const bool         isAlong = plan.axis == operation.GetScanAxis();
    if (isAlong)
    {
      const auto features = std::make_shared<FeaturesOfBlocks>(operation.GetPlanes(pass.region), request.spoolFolder);
      DistancePassMonitor             firstPass(monitor, 0, 0.5);
      const auto                      start = Clock::now();
      const std::unique_ptr<Executor> own = request.executor ? nullptr : MakeThreadExecutor();
      Executor &                      executor = request.executor ? *request.executor : *own;
      std::vector<unsigned char>      scratch;
      report.reading +=
        ReadStreamed(manager, pass, plan, &firstPass, [&](const ExecutionRequest & division, Monitor *) {
          features->Add(
            SummarizeBlock(operation, division.inputs.front(), division.region, executor, GetHostKernels(), scratch));
        });
      std::vector<unsigned char>().swap(scratch);
      features->Finish();
      report.spoolWritten += features->GetBytesWritten();
      pass.operation = std::make_shared<DistanceBlocks>(operation, features, 0, nullptr);
      report.steps.emplace_back("finding features", std::chrono::duration<double>(Clock::now() - start).count());
    }
    DistancePassMonitor  secondPass(monitor, isAlong ? 0.5 : 0, isAlong ? 0.5 : 1);
    const StreamedReport second = ExecuteStreamed(manager, pass, plan, sink, &secondPass);
    report.execution = second.execution;
    report.reading += second.reading;
    report.writing += second.writing;
    report.steps.emplace_back("computing distances", second.computing);
  }
};

} // namespace

const OutOfCoreRunner *
DistanceOperation::GetOutOfCoreRunner() const
{
  static const DistanceRunner runner;
  return &runner;
}

} // namespace chunkwise
