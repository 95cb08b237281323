/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSlabPasses.h"

#include "chunkwiseConvertedImage.h"
#include "chunkwiseError.h"
#include "chunkwisePassesOperation.h"
#include "chunkwiseSlabKernels.h"

#include <algorithm>
#include <atomic>
#include <thread>

namespace chunkwise
{

namespace
{

bool
IsWindow(const Stage & stage)
{
  return stage.operation && stage.operation->GetSchedule() == Schedule::Independent;
}

/** The memory has so many parts: one for each stage of windows, and two for the reconstruction that reads these. */
std::uint64_t
CountPartsOfMemory(const std::vector<Stage> & stages)
{
  return 2 + static_cast<std::uint64_t>(std::count_if(stages.begin(), stages.end(), IsWindow));
}

/** The result of an operation without links between chunks on another source, some planes at a time. */
class StageSource : public ImageSource
{
public:
  /** Holds its part of the request's memory: half for what it reads, half for its run. Throws BudgetError with the
   * bytes of the whole request that are enough, where `others` are for all else. */
  StageSource(Manager & manager, const SlabRequest & request, std::shared_ptr<const Operation> operation,
              std::shared_ptr<ImageSource> from, PixelType kind, std::uint64_t partsOfMemory, std::uint64_t others,
              std::shared_ptr<Executor> executor, std::shared_ptr<const std::atomic<bool>> stop)
    : m_Manager(manager)
    , m_From(std::move(from))
    , m_Image(Box::FromExtent(m_From->GetExtent()))
    , m_Kind(kind)
    , m_Bytes(request.hostBytes ? std::max<std::uint64_t>(request.hostBytes / partsOfMemory, 1) : 0)
    , m_Halo(operation->GetHalo(m_Image.Extents()))
    , m_Executor(std::move(executor))
    , m_Stop(std::move(stop))
  {
    m_Request.operation = std::move(operation);
    m_Request.image = m_Image;
    m_Request.backend = request.backend;
    m_Request.devices = request.devices;
    m_Request.budgets = request.budgets;
    m_Request.executor = m_Executor.get();
    if (m_Bytes > 0)
    {
      m_Request.budgets.host = std::max<std::size_t>(m_Bytes / 2, 1);
    }
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Axis = m_Image.Extent(a) > 1 ? a : m_Axis;
    }
    std::uint64_t needed = std::max<std::uint64_t>(CountBytes(GetPlanes(1)) * 2 * partsOfMemory, others);
    try
    {
      const Box        piece = GetPlanes(CountPlanes());
      ExecutionRequest trial = m_Request;
      trial.inputs = { DenseView(nullptr, m_From->GetKind(), PadAndCrop(piece, m_Halo, m_Image)) };
      trial.output = DenseView(nullptr, m_Kind, piece);
      trial.region = piece;
      m_Manager.MakePlanFor(trial);
    }
    catch (const BudgetError & error)
    {
      if (m_Bytes == 0 || error.budget != m_Request.budgets.host)
      {
        throw;
      }
      needed = std::max<std::uint64_t>(needed, error.needed * 2 * partsOfMemory);
    }
    if (m_Bytes > 0 && needed > request.hostBytes)
    {
      throw BudgetError(m_Request.operation->GetName() + " of the image's planes and its reconstruction need " +
                          std::to_string(needed) + " bytes of host memory, more than the budget of " +
                          std::to_string(request.hostBytes) + " bytes",
                        needed,
                        request.hostBytes);
    }
  }
  Coordinates
  GetExtent() const override
  {
    return m_Image.Extents();
  }
  PixelType
  GetKind() const override
  {
    return m_Kind;
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.heldBytes = m_Bytes;
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    const std::int64_t planes = CountPlanes();
    for (std::int64_t first = box.lower[m_Axis]; first < box.upper[m_Axis]; first += planes)
    {
      Box piece = box;
      piece.lower[m_Axis] = first;
      piece.upper[m_Axis] = std::min(first + planes, box.upper[m_Axis]);
      const Box         needed = PadAndCrop(piece, m_Halo, m_Image);
      std::vector<char> voxels(CountBytes(needed));
      ExecutionRequest  request = m_Request;
      request.inputs = { DenseView(voxels.data(), m_From->GetKind(), needed) };
      request.output = view;
      request.region = piece;
      m_From->Read(needed, request.inputs[0]);
      if (*m_Stop)
      {
        throw Aborted();
      }
      StopMonitor monitor(*m_Stop);
      m_Manager.Execute(request, &monitor);
    }
  }

private:
  /** In the middle of the image, where the halo is whole. */
  Box
  GetPlanes(std::int64_t planes) const
  {
    Box box = m_Image;
    planes = std::min(planes, m_Image.Extent(m_Axis));
    box.lower[m_Axis] = (m_Image.Extent(m_Axis) - planes) / 2;
    box.upper[m_Axis] = box.lower[m_Axis] + planes;
    return box;
  }
  /** Bytes that must be read for a box. */
  std::size_t
  CountBytes(const Box & box) const
  {
    return static_cast<std::size_t>(PadAndCrop(box, m_Halo, m_Image).NumberOfVoxels()) * PixelSize(m_From->GetKind());
  }
  std::int64_t
  CountPlanes() const
  {
    std::int64_t low = 1;
    std::int64_t high = m_Image.Extent(m_Axis);
    while (low < high && m_Bytes > 0)
    {
      const std::int64_t middle = low + (high - low + 1) / 2;
      const bool         fits = CountBytes(GetPlanes(middle)) <= m_Bytes / 2;
      (fits ? low : high) = fits ? middle : middle - 1;
    }
    return m_Bytes > 0 ? low : high;
  }

  Manager &                                      m_Manager;
  const std::shared_ptr<ImageSource>             m_From;
  const Box                                      m_Image;
  const PixelType                                m_Kind;
  const std::uint64_t                            m_Bytes;
  const Halo                                     m_Halo;
  const std::shared_ptr<Executor>                m_Executor;
  const std::shared_ptr<const std::atomic<bool>> m_Stop;
  ExecutionRequest                               m_Request;
  int                                            m_Axis{ 0 };
};

/** A part of the whole progress; remembers that the caller wants to stop. */
class StoppingPartMonitor : public Monitor
{
public:
  StoppingPartMonitor(Monitor * whole, double begin, double end, std::atomic<bool> & stop)
    : m_Whole(whole)
    , m_Begin(begin)
    , m_End(end)
    , m_Stop(stop)
  {}
  void
  UpdateProgress(double fraction) override
  {
    const double now = fraction >= 1 ? m_End : m_Begin + fraction * (m_End - m_Begin);
    if (m_Whole && (fraction > 0 || m_Begin == 0))
    {
      m_Whole->UpdateProgress(now);
    }
  }
  bool
  ShouldAbort() override
  {
    m_Stop = m_Stop || (m_Whole && m_Whole->ShouldAbort());
    return m_Stop;
  }

private:
  Monitor * const     m_Whole;
  const double        m_Begin;
  const double        m_End;
  std::atomic<bool> & m_Stop;
};

void
Add(SlabReport & sum, const SlabReport & part)
{
  sum.execution = part.execution;
  sum.planesOfSlab = part.planesOfSlab;
  sum.slabs += part.slabs;
  sum.passes = std::max(sum.passes, part.passes);
  sum.bytesRead += part.bytesRead;
  sum.bytesWritten = part.bytesWritten;
  sum.spoolWritten += part.spoolWritten;
  sum.spoolRead += part.spoolRead;
  sum.flooding += part.flooding;
  sum.flowing += part.flowing;
  sum.contracting += part.contracting;
  sum.packing += part.packing;
  sum.finishing += part.finishing;
  sum.waiting += part.waiting;
  sum.reading += part.reading;
  sum.writing += part.writing;
  sum.peakHost = std::max(sum.peakHost, part.peakHost);
}

/** Throws ParameterError. Returns the kinds of the stages. */
std::vector<PixelType>
CheckPasses(const SlabRequest & request, const PassesOperation & operation, const std::vector<Stage> & stages)
{
  const std::string name = operation.GetName();
  if (!request.sink || static_cast<int>(request.sources.size()) != operation.GetNumberOfInputs())
  {
    throw ParameterError("operation " + name + " takes " + std::to_string(operation.GetNumberOfInputs()) +
                         " inputs, not " + std::to_string(request.sources.size()));
  }
  const Coordinates      extent = request.sink->GetExtent();
  std::vector<PixelType> inputKinds;
  for (const auto & source : request.sources)
  {
    if (source->GetExtent() != extent)
    {
      throw ParameterError("an input has " + ToString(source->GetExtent()) + " voxels, the output " + ToString(extent));
    }
    inputKinds.push_back(source->GetKind());
  }
  operation.Validate(extent);
  operation.CheckKinds(inputKinds, request.sink->GetKind());
  for (std::size_t i = 0; i < stages.size(); ++i)
  {
    const bool isFlood = stages[i].operation && stages[i].operation->GetSchedule() == Schedule::Fixpoint;
    const bool isWindow = stages[i].operation && stages[i].operation->GetSchedule() == Schedule::Independent &&
                          !stages[i].operation->WrapsAround() && stages[i].inputs.size() == 1;
    if (!isFlood && (!isWindow || i + 1 == stages.size()))
    {
      throw ParameterError("operation " + name + " does not run in slabs");
    }
  }
  return operation.GetStageKinds(inputKinds[0], request.sink->GetKind());
}

/** The runs that an operation is made of, and what lies between them. */
class PassesInSlabs
{
public:
  /** Throws what keeps it from running. */
  PassesInSlabs(Manager & manager, const SlabRequest & request, const std::vector<Stage> & stages)
    : m_Manager(manager)
    , m_Request(request)
    , m_PartsOfMemory(CountPartsOfMemory(stages))
    , m_Extent(request.sink->GetExtent())
    // Windows are computed while the caller's threads flood.
    , m_Executor(MakeThreadExecutor(request.executor ? request.executor->GetConcurrency() : 0))
    , m_Stop(std::make_shared<std::atomic<bool>>(false))
    , m_Inputs(request.sources)
  {
    // Stages read the inputs again and again.
    for (std::shared_ptr<ImageSource> & source : m_Inputs)
    {
      if (!source->GetAccess().anyOrder)
      {
        m_Copies.emplace_back(source, AddSpooled(source->GetKind()));
        source = m_Copies.back().second;
      }
    }
  }

  void
  AddStages(const std::vector<Stage> & stages, const std::vector<PixelType> & kinds)
  {
    const std::uint64_t                       others = GetBytesOfOthers(stages, kinds);
    std::vector<std::shared_ptr<ImageSource>> results(stages.size());
    for (std::size_t i = 0; i < stages.size(); ++i)
    {
      std::vector<std::shared_ptr<ImageSource>> from;
      for (const int input : stages[i].inputs)
      {
        from.push_back(input < 0 ? m_Inputs[static_cast<std::size_t>(Stage::Input(input))]
                                 : results[static_cast<std::size_t>(input)]);
      }
      if (stages[i].operation->GetSchedule() == Schedule::Independent)
      {
        results[i] = std::make_shared<StageSource>(
          m_Manager, m_Request, stages[i].operation, from[0], kinds[i], m_PartsOfMemory, others, m_Executor, m_Stop);
        continue;
      }
      m_Parts.push_back(m_Request);
      m_Parts.back().operation = stages[i].operation;
      m_Parts.back().sources = from;
      // Windows compute with separate threads while they are read, and spools are written in order.
      m_Parts.back().fileThreads = 1;
      if (i + 1 < stages.size())
      {
        const auto spooled = AddSpooled(kinds[i]);
        m_Parts.back().sink = spooled;
        results[i] = spooled;
      }
    }
  }

  SlabReport
  Run(Monitor * monitor)
  {
    // The last stage is a reconstruction.
    CheckDevices(m_Manager, m_Parts[0], static_cast<const ReconstructionOperation &>(*m_Parts[0].operation));
    SlabReport report;
    for (const auto & copy : m_Copies)
    {
      StoppingPartMonitor part(monitor, 0, 0, *m_Stop);
      const std::size_t   most = static_cast<std::size_t>(m_Request.hostBytes ? m_Request.hostBytes / m_PartsOfMemory
                                                                            : std::uint64_t{ 1 } << 28);
      report.bytesRead += SpoolCopier::Copy(copy.first, copy.second, most, &part);
    }
    const auto count = static_cast<double>(m_Parts.size());
    for (std::size_t i = 0; i < m_Parts.size(); ++i)
    {
      StoppingPartMonitor part(monitor, static_cast<double>(i) / count, static_cast<double>(i + 1) / count, *m_Stop);
      Add(report, ReconstructInSlabs(m_Manager, m_Parts[i], &part));
    }
    for (const auto & image : m_Spooled)
    {
      report.spoolWritten += image->GetSpool().GetBytesWritten();
      report.spoolRead += image->GetSpool().GetBytesRead();
    }
    return report;
  }

private:
  std::shared_ptr<SpooledImage>
  AddSpooled(PixelType kind)
  {
    m_Spooled.push_back(std::make_shared<SpooledImage>(m_Extent, kind, m_Request.spoolFolder));
    return m_Spooled.back();
  }
  /** The memory that the source of a window does not use is enough for the run that reads it. */
  std::uint64_t
  GetBytesOfOthers(const std::vector<Stage> & stages, const std::vector<PixelType> & kinds) const
  {
    std::uint64_t others = 0;
    for (std::size_t i = 0; i < stages.size(); ++i)
    {
      const Stage & stage = stages[i];
      if (m_Request.hostBytes > 0 && stage.operation->GetSchedule() == Schedule::Fixpoint)
      {
        // A reconstruction reads what has the kind of its result.
        std::shared_ptr<ImageSource> source = m_Inputs[0];
        if (source->GetKind() != kinds[i])
        {
          source = std::make_shared<ConvertedSource>(source, kinds[i]);
        }
        SlabRequest part = m_Request;
        part.fileThreads = 1;
        part.operation = stage.operation;
        part.sources.assign(stage.inputs.size(), source);
        const std::uint64_t least = GetLeastHostBytes(m_Manager, part);
        others = std::max(others, least + least * (m_PartsOfMemory - 2) / 2 + m_PartsOfMemory);
      }
    }
    return others;
  }

  Manager &                                                                           m_Manager;
  const SlabRequest &                                                                 m_Request;
  const std::uint64_t                                                                 m_PartsOfMemory;
  const Coordinates                                                                   m_Extent;
  const std::shared_ptr<Executor>                                                     m_Executor;
  const std::shared_ptr<std::atomic<bool>>                                            m_Stop;
  std::vector<std::shared_ptr<ImageSource>>                                           m_Inputs;
  std::vector<std::shared_ptr<SpooledImage>>                                          m_Spooled;
  std::vector<SlabRequest>                                                            m_Parts;
  std::vector<std::pair<std::shared_ptr<ImageSource>, std::shared_ptr<SpooledImage>>> m_Copies;
};

} // namespace

SlabReport
RunPassesInSlabs(Manager & manager, const SlabRequest & request, Monitor * monitor, bool runs)
{
  const auto &                 operation = static_cast<const PassesOperation &>(*request.operation);
  const std::vector<Stage>     stages = operation.GetStages();
  const std::vector<PixelType> kinds = CheckPasses(request, operation, stages);
  if (Box::FromExtent(request.sink->GetExtent()).IsEmpty())
  {
    return SlabReport();
  }
  PassesInSlabs passes(manager, request, stages);
  passes.AddStages(stages, kinds);
  return runs ? passes.Run(monitor) : SlabReport();
}

} // namespace chunkwise
