/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSlabReconstruction.h"

#include "chunkwiseError.h"
#include "chunkwiseReconstructionOperation.h"
#include "chunkwiseRoundUp.h"
#include "chunkwiseSlabForest.h"
#include "chunkwiseSlabPacking.h"
#include "chunkwiseSlabPasses.h"
#include "chunkwiseSpooledImage.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

namespace chunkwise
{

namespace
{

/** Voxels that one thread packs at a time. */
constexpr std::int64_t BlockVoxels = 1 << 17;
/** Where more of a plane's voxels than one of so many are raised, the whole slab is swept again. */
constexpr std::int64_t FewOfPlane = 64;
/** Work on a voxel in proportion: flooded, contracted and packed, finished. */
constexpr double FloodWork = 5;
constexpr double ContractWork = 2;
constexpr double FinishWork = 3;

/** Calls f(TKey{}) for voxels of a kind. */
template <typename TFunctor>
decltype(auto)
DispatchKey(PixelKind kind, TFunctor && f)
{
  switch (PixelSize(kind))
  {
    case 1:
      return f(std::uint8_t{});
    case 2:
      return f(std::uint16_t{});
    case 4:
      return f(std::uint32_t{});
    default:
      return f(std::uint64_t{});
  }
}

template <typename TKey>
ReconstructionCode<TKey>
MakeCode(PixelKind kind, bool erosion)
{
  const bool isSigned =
    kind == PixelKind::Int8 || kind == PixelKind::Int16 || kind == PixelKind::Int32 || kind == PixelKind::Int64;
  return ReconstructionCode<TKey>(IsFloatingPoint(kind), isSigned, erosion ? static_cast<TKey>(~TKey{ 0 }) : TKey{ 0 });
}

Box
SwapAxes(Box box, int a, int b)
{
  std::swap(box.lower[a], box.lower[b]);
  std::swap(box.upper[a], box.upper[b]);
  return box;
}

BufferView
SwapAxes(BufferView view, int a, int b)
{
  view.box = SwapAxes(view.box, a, b);
  std::swap(view.stride[a], view.stride[b]);
  return view;
}

/** Counts the seconds of its life. */
class Stopwatch
{
public:
  explicit Stopwatch(double & seconds)
    : m_Seconds(seconds)
    , m_Begin(std::chrono::steady_clock::now())
  {}
  ~Stopwatch() { m_Seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - m_Begin).count(); }

private:
  double &                                    m_Seconds;
  const std::chrono::steady_clock::time_point m_Begin;
};

/** How the image is cut, and what lies in memory. */
struct SlabPlan
{
  /** Volumes are cut, into slabs that share a plane; else each piece has whole volumes. */
  bool inSlabs{ false };
  /** The pieces' extent is whole along axes below this one, and one voxel along those above. */
  int          axis{ 0 };
  std::int64_t planes{ 1 };      ///< of a piece; in slabs beside the shared one
  std::int64_t planeVoxels{ 1 }; ///< along the axes below
  bool         ahead{ false };   ///< reads the next piece and writes the last one meanwhile
  bool         onDevices{ false };
  std::size_t  pixelBytes{ 1 };
  int          inputs{ 1 };

  std::size_t scratch{ 0 };
  std::size_t buffer{ 0 };
  std::size_t forest{ 0 };
  std::size_t plane{ 0 };
  std::size_t bytes{ 0 };

  std::int64_t
  GetPlanesOfPiece() const
  {
    return planes + (inSlabs ? 1 : 0);
  }
  int
  GetBuffers() const
  {
    return (ahead ? 2 * inputs + 2 : inputs + 1) + (onDevices && inSlabs ? 1 : 0);
  }
};

/** Decides what a request's slabs are. */
class SlabPlanner
{
public:
  SlabPlanner(const Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation,
              int concurrency)
    : m_Request(request)
    , m_Operation(operation)
    , m_Extent(request.sink->GetExtent())
    , m_Kind(request.sink->GetKind())
    , m_Concurrency(concurrency)
    , m_OnDevices(request.backend == BackendChoice::CUDA ||
                  (request.backend == BackendChoice::Auto && !manager.GetDevices().empty()))
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_LastAxis = m_Extent[a] > 1 ? a : m_LastAxis;
    }
    for (const ImageSource * source : request.sources)
    {
      m_Held += source->GetAccess().heldBytes;
      m_AnyOrder = m_AnyOrder && source->GetAccess().anyOrder;
    }
    m_Held += request.sink->GetAccess().heldBytes;
  }

  /** Throws BudgetError. */
  SlabPlan
  MakePlan() const
  {
    std::uint64_t least = UINT64_MAX;
    for (int axis = m_LastAxis; axis >= 0; --axis)
    {
      if (m_Extent[axis] == 1 && axis > 0)
      {
        continue;
      }
      const bool isSpatial = axis < m_Operation.spatialDimension;
      // Files in order have whole planes of the last axis only.
      if (axis != m_LastAxis && (!m_AnyOrder || !m_Request.sink->GetAccess().anyOrder))
      {
        break;
      }
      SlabPlan   plan;
      const bool isForced = isSpatial
                              ? m_Request.planesOfSlab > 0 && m_Request.planesOfSlab + 1 < m_Extent[axis]
                              : m_Request.planesOfSlab > 0 && m_AnyOrder && m_Request.sink->GetAccess().anyOrder;
      if (!isSpatial && !isForced &&
          Fit(plan, axis, false, 1, std::max<std::int64_t>(1, (m_Extent[axis] + 3) / 4), least))
      {
        return plan;
      }
      if (isSpatial)
      {
        if (!isForced && Fit(plan, axis, false, m_Extent[axis], m_Extent[axis], least))
        {
          return plan;
        }
        if (m_Extent[axis] > 2)
        {
          const std::int64_t most = GetMostPlanes(axis);
          if (Fit(plan,
                  axis,
                  true,
                  isForced ? m_Request.planesOfSlab : 1,
                  isForced ? m_Request.planesOfSlab : std::min(most, m_Extent[axis] - 2),
                  least))
          {
            return plan;
          }
        }
        break;
      }
    }
    throw BudgetError("reconstruction of " + ToString(m_Extent) + " voxels in slabs needs " + std::to_string(least) +
                        " bytes of host memory, more than the budget of " + std::to_string(m_Request.hostBytes) +
                        " bytes",
                      least,
                      m_Request.hostBytes);
  }

  std::uint64_t
  GetHeldBytes() const
  {
    return m_Held;
  }

private:
  /** What numbers of voxels have room for. */
  std::int64_t
  GetMostPlanes(int axis) const
  {
    constexpr std::int64_t most = INT64_C(1) << 31;
    const std::int64_t     plane = CountPlane(axis);
    if (plane > most / 4)
    {
      throw ParameterError("reconstruction: " + std::to_string(plane) +
                           " voxels in a plane of the image are more than slabs can have");
    }
    return std::max<std::int64_t>(most / plane - 2, 1);
  }

  std::int64_t
  CountPlane(int axis) const
  {
    std::int64_t voxels = 1;
    for (int a = 0; a < axis; ++a)
    {
      voxels *= m_Extent[a];
    }
    return voxels;
  }

  /** The most planes between two numbers that fit. */
  bool
  Fit(SlabPlan & plan, int axis, bool inSlabs, std::int64_t first, std::int64_t last, std::uint64_t & least) const
  {
    // Reading ahead is worth less than slabs of a few planes.
    const bool isAlone = !inSlabs && first == m_Extent[axis] && axis == m_LastAxis;
    for (const bool ahead : { true, false })
    {
      if (ahead && isAlone)
      {
        continue;
      }
      std::int64_t       low = first;
      std::int64_t       high = last;
      const std::int64_t wanted = ahead ? std::min(last, first + 3) : first;
      const auto         fits = [&](std::int64_t planes) {
        plan = Make(axis, inSlabs, planes, ahead);
        return m_Request.hostBytes == 0 || plan.bytes <= m_Request.hostBytes;
      };
      if (!fits(first))
      {
        least = std::min<std::uint64_t>(least, plan.bytes);
        continue;
      }
      while (low < high)
      {
        const std::int64_t middle = low + (high - low + 1) / 2;
        (fits(middle) ? low : high) = fits(middle) ? middle : middle - 1;
      }
      if (low >= wanted)
      {
        return fits(low);
      }
    }
    return false;
  }

  SlabPlan
  Make(int axis, bool inSlabs, std::int64_t planes, bool ahead) const
  {
    SlabPlan plan;
    plan.inSlabs = inSlabs;
    plan.axis = axis;
    plan.planes = planes;
    plan.planeVoxels = CountPlane(axis);
    plan.ahead = ahead;
    plan.onDevices = m_OnDevices;
    plan.pixelBytes = PixelSize(m_Kind);
    plan.inputs = m_Operation.GetNumberOfInputs();
    const auto voxels = static_cast<std::size_t>(plan.GetPlanesOfPiece() * plan.planeVoxels);
    plan.buffer = RoundUp(voxels * plan.pixelBytes);
    Box piece = Box::FromExtent(m_Extent);
    for (int a = axis; a < MaxDimension; ++a)
    {
      piece.upper[a] = a == axis ? std::min(plan.GetPlanesOfPiece(), m_Extent[a]) : 1;
    }
    plan.scratch = GetFloodScratch(piece);
    if (inSlabs)
    {
      DispatchKey(m_Kind, [&](auto key) {
        using Key = decltype(key);
        plan.forest = RoundUp(PlaneForest<Key>::GetBytes(plan.planeVoxels));
        plan.scratch = std::max({ plan.scratch,
                                  plan.buffer + RoundUp(PlaneForest<Key>::GetBytes(2 * plan.planeVoxels)),
                                  SlabContraction<Key>::GetBytes(plan.planeVoxels, 2),
                                  SlabFlood<Key>::GetLeastBytes() });
      });
      plan.plane = RoundUp(static_cast<std::size_t>(plan.planeVoxels) * plan.pixelBytes);
    }
    plan.scratch = RoundUp(plan.scratch);
    plan.bytes = static_cast<std::size_t>(plan.GetBuffers()) * plan.buffer + plan.scratch;
    // The manager's host has as much, should devices fail.
    plan.bytes += plan.onDevices ? plan.scratch : 0;
    if (inSlabs)
    {
      plan.bytes += 2 * plan.forest + RoundUp(ForestChildren::GetBytes(plan.planeVoxels)) + plan.plane;
      // What is known of each block of the spool.
      plan.bytes += RoundUp(static_cast<std::size_t>(Box::FromExtent(m_Extent).NumberOfVoxels() / BlockVoxels * 8 +
                                                     m_Extent[axis] / planes * 128 + 4096));
    }
    plan.bytes += m_Held;
    return plan;
  }

public:
  /** Slabs are thin: parts of the flood are cut across the longer of the last two axes. */
  static bool
  IsThin(const Box & piece)
  {
    return piece.Extent(2) > 1 && piece.Extent(2) < piece.Extent(1);
  }
  std::shared_ptr<ReconstructionOperation>
  MakeFlood(const Box & piece) const
  {
    auto flood = std::make_shared<ReconstructionOperation>(m_Operation);
    if (flood->partVoxels == 0)
    {
      std::int64_t voxels = 1;
      for (int a = 0; a < m_Operation.spatialDimension; ++a)
      {
        voxels *= piece.Extent(a);
      }
      flood->partVoxels = std::clamp<std::int64_t>(voxels / (8 * m_Concurrency), 1 << 16, 1 << 24);
    }
    return flood;
  }

private:
  std::size_t
  GetFloodScratch(const Box & piece) const
  {
    ChunkShape shape;
    const bool swaps = m_Operation.spatialDimension > 2 && IsThin(piece);
    shape.inputBox = shape.outputBox = swaps ? SwapAxes(piece, 1, 2) : piece;
    shape.image = Box::FromExtent(m_Extent);
    shape.image = swaps ? SwapAxes(shape.image, 1, 2) : shape.image;
    shape.numberOfInputs = 1;
    shape.inputKinds[0] = shape.outputKind = m_Kind;
    shape.concurrency = m_Concurrency;
    return GetHostKernels().Get("reconstruction", "slabs").scratchBytes(*MakeFlood(piece), shape);
  }

  const SlabRequest &             m_Request;
  const ReconstructionOperation & m_Operation;
  const Coordinates               m_Extent;
  const PixelKind                 m_Kind;
  const int                       m_Concurrency;
  const bool                      m_OnDevices;
  int                             m_LastAxis{ 0 };
  std::uint64_t                   m_Held{ 0 };
  bool                            m_AnyOrder{ true };
};

/** Memory that is aligned as kernels want it. */
class AlignedMemory
{
public:
  explicit AlignedMemory(std::size_t bytes)
    : m_Data(static_cast<char *>(::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t(256))))
  {}
  ~AlignedMemory() { ::operator delete(m_Data, std::align_val_t(256)); }
  AlignedMemory(const AlignedMemory &) = delete;
  AlignedMemory &
  operator=(const AlignedMemory &) = delete;
  char *
  Get() const
  {
    return m_Data;
  }

private:
  char * m_Data;
};

/** The run with its memory. Everything but the monitor is the business of one thread, and of those that read and write
 * for it. */
class SlabRun : private RunControl
{
public:
  SlabRun(Manager & manager, const SlabRequest & request, const ReconstructionOperation & operation,
          const SlabPlanner & planner, const SlabPlan & plan, Executor & executor, SlabReport & report)
    : m_Manager(manager)
    , m_Request(request)
    , m_Operation(operation)
    , m_Planner(planner)
    , m_Plan(plan)
    , m_Executor(executor)
    , m_Report(report)
    , m_Sources(request.sources)
    , m_Image(Box::FromExtent(request.sink->GetExtent()))
    , m_Kind(request.sink->GetKind())
    , m_Memory(plan.bytes - planner.GetHeldBytes() - (plan.onDevices ? plan.scratch : 0))
    , m_States(request.spoolFolder)
  {
    char *     at = m_Memory.Get();
    const auto take = [&at](std::size_t bytes) {
      char * const block = at;
      at += bytes;
      return block;
    };
    m_Scratch = take(plan.scratch);
    // Beside the scratch: until slabs are written it can be more of it.
    m_State[1] = plan.ahead ? take(plan.buffer) : nullptr;
    for (std::vector<char *> & slot : m_Slots)
    {
      for (int i = 0; i < plan.inputs && (&slot == &m_Slots[0] || plan.ahead); ++i)
      {
        slot.push_back(take(plan.buffer));
      }
    }
    m_State[0] = take(plan.buffer);
    m_State[1] = plan.ahead ? m_State[1] : m_State[0];
    m_Marker = plan.onDevices && plan.inSlabs ? take(plan.buffer) : nullptr;
    if (plan.inSlabs)
    {
      m_Forests[0] = take(plan.forest);
      m_Forests[1] = take(plan.forest);
      m_Children = take(RoundUp(ForestChildren::GetBytes(plan.planeVoxels)));
      m_PlaneState = take(plan.plane);
    }
    const double voxels = static_cast<double>(m_Image.NumberOfVoxels());
    m_AllWork = voxels * (FloodWork + (plan.inSlabs ? ContractWork + FinishWork : 0));
    m_ChecksFlat =
      operation.result == ReconstructionResult::Extrema && operation.marker == ReconstructionMarker::NextBelow;
  }
  ~SlabRun() override = default;

  void
  Go()
  {
    CopySourcesInOrder();
    m_Report.planesOfSlab = m_Plan.planes;
    m_Report.passes = m_Plan.inSlabs ? 2 : 1;
    if (m_Plan.inSlabs)
    {
      ForEachPosition([this](const Box & volume) { RunVolume(volume); });
    }
    else
    {
      RunPieces();
    }
    m_Report.spoolWritten += m_States.GetBytesWritten();
    m_Report.spoolRead += m_States.GetBytesRead();
    m_Report.bytesRead = m_BytesRead;
    m_Report.bytesWritten = m_BytesWritten;
    m_Report.peakHost = m_Plan.bytes;
  }

  void
  Stop()
  {
    m_Stop = true;
  }
  double
  GetFraction() const
  {
    const double work = m_Work.load() + FloodWork * static_cast<double>(m_Flooded.load());
    return std::min(work / std::max(m_AllWork, 1.0), 1.0);
  }

private:
  struct Piece
  {
    Box          box;
    std::int64_t planes;
  };
  struct Record
  {
    std::uint64_t              states{ 0 };
    std::vector<std::uint32_t> blocks;
    std::uint64_t              forest{ 0 };
    std::uint32_t              edges{ 0 };
  };

  bool
  ShouldStop() const override
  {
    return m_Stop;
  }
  void
  AddFinishedVoxels(std::int64_t voxels) override
  {
    m_Flooded += m_CountsFlood ? voxels : 0;
  }
  void
  CheckStop() const
  {
    if (m_Stop)
    {
      throw Aborted();
    }
  }
  void
  AddWork(double work)
  {
    m_Work = m_Work + work;
    CheckStop();
  }

  BufferView
  ViewOf(char * buffer, const Box & box) const
  {
    return DenseView(buffer, m_Kind, box);
  }
  std::size_t
  PlaneBytes() const
  {
    return static_cast<std::size_t>(m_Plan.planeVoxels) * m_Plan.pixelBytes;
  }

  template <typename TVisit>
  void
  ForEachPosition(TVisit && visit)
  {
    Box          volume = m_Image;
    std::int64_t positions = 1;
    for (int a = m_Plan.axis + 1; a < MaxDimension; ++a)
    {
      positions *= m_Image.Extent(a);
    }
    for (std::int64_t i = 0; i < positions; ++i)
    {
      std::int64_t rest = i;
      for (int a = m_Plan.axis + 1; a < MaxDimension; ++a)
      {
        volume.lower[a] = rest % m_Image.Extent(a);
        volume.upper[a] = volume.lower[a] + 1;
        rest /= m_Image.Extent(a);
      }
      visit(static_cast<const Box &>(volume));
    }
  }

  /** Two passes need sources that can begin again. */
  void
  CopySourcesInOrder()
  {
    if (!m_Plan.inSlabs)
    {
      return;
    }
    for (ImageSource *& source : m_Sources)
    {
      if (source->GetAccess().anyOrder)
      {
        continue;
      }
      m_Copies.push_back(std::make_unique<SpooledImage>(source->GetExtent(), source->GetKind(), m_Request.spoolFolder));
      CopyToSpool(*source, *m_Copies.back(), m_State[0], m_Plan.buffer, [this](const Box & box) {
        CheckStop();
        m_BytesRead += static_cast<std::uint64_t>(box.NumberOfVoxels()) * m_Plan.pixelBytes;
      });
      m_Report.spoolWritten += m_Copies.back()->GetSpool().GetBytesWritten();
      source = m_Copies.back().get();
    }
  }

  // Reading and writing.

  /** Begins to read inputs of a box. The plane that it shares with what another slot holds is copied. */
  void
  StartReading(std::size_t slot, const Box & box, std::size_t firstInput, const Box * known)
  {
    const Box  held = known ? *known : Box{};
    const bool hasKnown = known != nullptr;
    const auto read = [this, slot, box, firstInput, held, hasKnown] {
      const std::vector<char *> & to = m_Slots[slot];
      const std::vector<char *> & from = m_Slots[m_Plan.ahead ? 1 - slot : slot];
      const int                   axis = m_Plan.axis;
      for (std::size_t i = firstInput; i < to.size(); ++i)
      {
        Box fresh = box;
        if (hasKnown)
        {
          const bool         isAbove = held.lower[axis] < box.lower[axis];
          const std::int64_t shared = isAbove ? box.lower[axis] : held.lower[axis];
          std::memmove(to[i] + static_cast<std::size_t>(shared - box.lower[axis]) * PlaneBytes(),
                       from[i] + static_cast<std::size_t>(shared - held.lower[axis]) * PlaneBytes(),
                       PlaneBytes());
          (isAbove ? fresh.lower[axis] : fresh.upper[axis]) += isAbove ? 1 : -1;
        }
        m_Sources[i]->Read(fresh, ViewOf(to[i], box));
        m_BytesRead += static_cast<std::uint64_t>(fresh.NumberOfVoxels()) * m_Plan.pixelBytes;
      }
    };
    m_Reading = std::async(m_Plan.ahead ? std::launch::async : std::launch::deferred, read);
  }
  void
  FinishReading()
  {
    const Stopwatch watch(m_Report.waiting);
    m_Reading.get();
    CheckStop();
  }
  void
  StartWriting(const Box & box, char * buffer, const Box & held)
  {
    FinishWriting();
    m_Writing = std::async(m_Plan.ahead ? std::launch::async : std::launch::deferred, [this, box, buffer, held] {
      m_Request.sink->Write(box, ViewOf(buffer, held));
      m_BytesWritten += static_cast<std::uint64_t>(box.NumberOfVoxels()) * m_Plan.pixelBytes;
    });
    if (!m_Plan.ahead)
    {
      FinishWriting();
    }
  }
  void
  FinishWriting()
  {
    if (m_Writing.valid())
    {
      const Stopwatch watch(m_Report.waiting);
      m_Writing.get();
    }
  }

  // Kernels.

  void
  CallHost(const char * name, const Operation & operation, const std::vector<BufferView> & inputs,
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
    call.scratch = m_Scratch;
    call.scratchBytes = m_Plan.scratch;
    call.changedSides = &sides;
    call.executor = &m_Executor;
    call.control = this;
    call.kernels = &GetHostKernels();
    GetHostKernels().Get(name, "slabs").run(call);
    CheckStop();
  }
  std::vector<BufferView>
  InputsOf(std::size_t slot, const Box & box) const
  {
    std::vector<BufferView> views;
    for (char * const buffer : m_Slots[slot])
    {
      views.push_back(ViewOf(buffer, box));
    }
    return views;
  }

  class StepMonitor : public Monitor
  {
  public:
    StepMonitor(SlabRun & run, std::int64_t voxels)
      : m_Run(run)
      , m_Voxels(static_cast<double>(voxels))
    {}
    void
    UpdateProgress(double fraction) override
    {
      const auto now = static_cast<std::int64_t>(fraction * m_Voxels);
      m_Run.AddFinishedVoxels(now - m_Last);
      m_Last = now;
    }
    bool
    ShouldAbort() override
    {
      return m_Run.ShouldStop();
    }

  private:
    SlabRun &    m_Run;
    const double m_Voxels;
    std::int64_t m_Last{ 0 };
  };

  void
  Execute(std::shared_ptr<const Operation> operation, std::vector<BufferView> inputs, BufferView output)
  {
    const Box        box = Box::FromExtent(output.box.Extents());
    ExecutionRequest request;
    request.operation = std::move(operation);
    for (BufferView & input : inputs)
    {
      input.box = box;
    }
    output.box = box;
    request.inputs = std::move(inputs);
    request.output = output;
    request.image = request.region = box;
    request.backend = m_Request.backend;
    request.devices = m_Request.devices;
    request.budgets = m_Request.budgets;
    // What the CPU takes where devices fail is what the slab's scratch would be.
    request.budgets.host = m_Plan.scratch;
    request.executor = &m_Executor;
    StepMonitor           monitor(*this, box.NumberOfVoxels());
    const ExecutionReport report = m_Manager.Execute(request, &monitor);
    ExecutionReport &     sum = m_Report.execution;
    sum.backend = report.backend;
    sum.deviceNames = report.deviceNames;
    sum.plan = report.plan;
    sum.chunksPerDevice = report.chunksPerDevice;
    sum.chunksOnHost += report.chunksOnHost;
    sum.peakDevice = std::max(sum.peakDevice, report.peakDevice);
    sum.peakPinned = std::max(sum.peakPinned, report.peakPinned);
    sum.bytesToDevice += report.bytesToDevice;
    sum.bytesToHost += report.bytesToHost;
    sum.retries += report.retries;
    sum.revisits += report.revisits;
    sum.revisitedVoxels += report.revisitedVoxels;
    sum.settled = sum.settled || report.settled;
    for (const std::string & warning : report.warnings)
    {
      if (std::find(sum.warnings.begin(), sum.warnings.end(), warning) == sum.warnings.end())
      {
        sum.warnings.push_back(warning);
      }
    }
  }

  /** Brings a state to the fixed point that its box has without others. */
  void
  Flood(char * state, char * mask, const Box & box)
  {
    const Stopwatch watch(m_Report.flooding);
    if (m_Plan.onDevices)
    {
      auto flood = std::make_shared<ReconstructionOperation>(m_Operation);
      flood->marker = ReconstructionMarker::Image;
      flood->result = ReconstructionResult::Reconstruction;
      const BufferView output = ViewOf(state, box);
      std::memcpy(m_Marker, state, output.NumberOfBytes());
      Execute(flood, { ViewOf(m_Marker, box), ViewOf(mask, box) }, output);
    }
    else
    {
      const bool       swaps = m_Operation.spatialDimension > 2 && SlabPlanner::IsThin(box);
      const BufferView maskView = ViewOf(mask, box);
      const BufferView stateView = ViewOf(state, box);
      m_Report.execution.backend = "cpu";
      CallHost("reconstruction",
               *m_Planner.MakeFlood(box),
               { swaps ? SwapAxes(maskView, 1, 2) : maskView },
               swaps ? SwapAxes(stateView, 1, 2) : stateView,
               swaps ? SwapAxes(m_Image, 1, 2) : m_Image);
    }
  }

  // Whole volumes.

  void
  RunPieces()
  {
    std::vector<Box> pieces;
    ForEachPosition([&](Box box) {
      for (std::int64_t plane = 0; plane < m_Image.Extent(m_Plan.axis); plane += m_Plan.planes)
      {
        box.lower[m_Plan.axis] = plane;
        box.upper[m_Plan.axis] = std::min(plane + m_Plan.planes, m_Image.Extent(m_Plan.axis));
        pieces.push_back(box);
      }
    });
    m_Report.slabs = static_cast<std::int64_t>(pieces.size());
    StartReading(0, pieces[0], 0, nullptr);
    for (std::size_t i = 0; i < pieces.size(); ++i)
    {
      const std::size_t slot = m_Plan.ahead ? i % 2 : 0;
      FinishReading();
      if (m_Plan.ahead && i + 1 < pieces.size())
      {
        StartReading(1 - slot, pieces[i + 1], 0, nullptr);
      }
      const Box &                   box = pieces[i];
      char * const                  state = m_State[i % 2];
      const std::vector<BufferView> inputs = InputsOf(slot, box);
      const BufferView              output = ViewOf(state, box);
      m_CountsFlood = true;
      if (m_Plan.onDevices)
      {
        const Stopwatch watch(m_Report.flooding);
        Execute(std::make_shared<ReconstructionOperation>(m_Operation), inputs, output);
      }
      else
      {
        CallHost("reconstruction.begin", m_Operation, inputs, output, m_Image);
        Flood(state, m_Slots[slot].back(), box);
        const Stopwatch watch(m_Report.finishing);
        CallHost("reconstruction.finish", m_Operation, inputs, output, m_Image);
        CallHost("reconstruction.amend", m_Operation, inputs, output, m_Image);
      }
      EndFlood(static_cast<double>(box.NumberOfVoxels()));
      StartWriting(box, state, box);
      if (!m_Plan.ahead && i + 1 < pieces.size())
      {
        StartReading(0, pieces[i + 1], 0, nullptr);
      }
    }
    FinishWriting();
  }

  void
  EndFlood(double voxels)
  {
    m_CountsFlood = false;
    m_Flooded = 0;
    AddWork(FloodWork * voxels);
  }

  // Volumes in slabs.

  Box
  SlabOf(const Box & volume, std::int64_t slab) const
  {
    Box box = volume;
    box.lower[m_Plan.axis] = slab * m_Plan.planes;
    box.upper[m_Plan.axis] = std::min((slab + 1) * m_Plan.planes + 1, m_Image.Extent(m_Plan.axis));
    return box;
  }
  SlabGrid
  GridOf(std::int64_t planes) const
  {
    const int axis = m_Plan.axis;
    return SlabGrid(
      axis > 0 ? m_Image.Extent(0) : 1, axis > 1 ? m_Image.Extent(1) : 1, planes, m_Operation.fullyConnected);
  }
  StopFunction
  GetStopFunction() const
  {
    return [this] { return m_Stop.load(); };
  }

  void
  RunVolume(const Box & volume)
  {
    const std::int64_t steps = m_Image.Extent(m_Plan.axis) - 1;
    const std::int64_t slabs = (steps + m_Plan.planes - 1) / m_Plan.planes;
    m_Report.slabs += slabs;
    m_States.Rewind();
    m_Records.assign(static_cast<std::size_t>(slabs), Record());
    m_IsFlat = m_ChecksFlat;
    DispatchKey(m_Kind, [&](auto key) {
      using Key = decltype(key);
      Gather<Key>(volume, slabs);
      Finish<Key>(volume, slabs);
    });
  }

  /** From the last slab to the first: what is known without those before it. */
  template <typename TKey>
  void
  Gather(const Box & volume, std::int64_t slabs)
  {
    PlaneForest<TKey> forest(m_Forests[0], m_Plan.planeVoxels);
    PlaneForest<TKey> next(m_Forests[1], m_Plan.planeVoxels);
    ForestChildren    children(m_Children);
    forest.Clear();
    StartReading(0, SlabOf(volume, slabs - 1), 0, nullptr);
    for (std::int64_t slab = slabs; slab-- > 0;)
    {
      const Box         box = SlabOf(volume, slab);
      const std::size_t slot = m_Plan.ahead ? static_cast<std::size_t>(slabs - 1 - slab) % 2 : 0;
      const auto readNext = [&] { StartReading(m_Plan.ahead ? 1 - slot : 0, SlabOf(volume, slab - 1), 0, &box); };
      FinishReading();
      if (m_Plan.ahead && slab > 0)
      {
        readNext();
      }
      char * const           state = m_State[0];
      char * const           mask = m_Slots[slot].back();
      const SlabVoxels<TKey> voxels = VoxelsOf<TKey>(mask, state);
      const SlabGrid         grid = GridOf(box.Extent(m_Plan.axis));
      const std::int64_t     lastPlane = (grid.planes - 1) * grid.planeVoxels;
      CallHost("reconstruction.begin", m_Operation, InputsOf(slot, box), ViewOf(state, box), m_Image);
      if (slab + 1 < slabs)
      {
        const auto * const known = reinterpret_cast<const TKey *>(m_PlaneState);
        for (std::int64_t i = 0; i < m_Plan.planeVoxels; ++i)
        {
          TKey & voxel = voxels.state[lastPlane + i];
          voxel = voxels.code.FromBits(known[i]) > voxels.code.FromBits(voxel) ? known[i] : voxel;
        }
      }
      m_CountsFlood = true;
      Flood(state, mask, box);
      EndFlood(static_cast<double>(m_Plan.planes * m_Plan.planeVoxels));
      children.Find(forest);
      {
        const Stopwatch watch(m_Report.contracting);
        SlabFlood<TKey> flow(
          grid, voxels, forest, children, m_Scratch, SlabFlood<TKey>::GetEntries(m_Plan.scratch), GetStopFunction());
        flow.OfferForest();
        flow.Finish();
        CheckStop();
      }
      m_IsFlat = m_IsFlat && IsFlat(volume, slot, box);
      std::memcpy(m_PlaneState, state, PlaneBytes());
      PackSlab<TKey>(m_Records[static_cast<std::size_t>(slab)], voxels, grid, forest);
      if (slab > 0)
      {
        const Stopwatch watch(m_Report.contracting);
        Contract<TKey>(voxels, grid.planes, forest, next, children);
      }
      AddWork(ContractWork * static_cast<double>(m_Plan.planes * m_Plan.planeVoxels));
      if (!m_Plan.ahead && slab > 0)
      {
        readNext();
      }
    }
  }

  /** From the first slab to the last: with what comes from those before it. */
  template <typename TKey>
  void
  Finish(const Box & volume, std::int64_t slabs)
  {
    PlaneForest<TKey> forest(m_Forests[0], m_Plan.planeVoxels);
    ForestChildren    children(m_Children);
    const std::size_t onlyMask = static_cast<std::size_t>(m_Plan.inputs) - 1;
    StartReading(0, SlabOf(volume, 0), onlyMask, nullptr);
    for (std::int64_t slab = 0; slab < slabs; ++slab)
    {
      const Box         box = SlabOf(volume, slab);
      const std::size_t slot = m_Plan.ahead ? static_cast<std::size_t>(slab) % 2 : 0;
      const auto        readNext = [&] {
        StartReading(m_Plan.ahead ? 1 - slot : 0, SlabOf(volume, slab + 1), onlyMask, &box);
      };
      FinishReading();
      if (m_Plan.ahead && slab + 1 < slabs)
      {
        readNext();
      }
      char * const           state = m_State[slab % 2];
      char * const           mask = m_Slots[slot].back();
      const SlabVoxels<TKey> voxels = VoxelsOf<TKey>(mask, state);
      const SlabGrid         grid = GridOf(box.Extent(m_Plan.axis));
      UnpackSlab<TKey>(m_Records[static_cast<std::size_t>(slab)], voxels, grid, forest);
      if (slab > 0)
      {
        children.Find(forest);
        LetIn<TKey>(voxels, grid, forest, children, state, mask, box);
      }
      const Stopwatch watch(m_Report.finishing);
      std::memcpy(m_PlaneState, state + static_cast<std::size_t>(grid.planes - 1) * PlaneBytes(), PlaneBytes());
      const BufferView view = ViewOf(state, box);
      // Kernels look at the mask alone.
      const std::vector<BufferView> inputs(static_cast<std::size_t>(m_Plan.inputs), ViewOf(mask, box));
      CallHost("reconstruction.finish", m_Operation, inputs, view, m_Image);
      if (m_IsFlat)
      {
        CallHost("reconstruction.amend", m_Operation, inputs, view, m_Image);
      }
      Box written = box;
      written.upper[m_Plan.axis] -= slab + 1 < slabs ? 1 : 0;
      StartWriting(written, state, box);
      AddWork(FinishWork * static_cast<double>(m_Plan.planes * m_Plan.planeVoxels));
      if (!m_Plan.ahead && slab + 1 < slabs)
      {
        readNext();
      }
    }
    FinishWriting();
  }

  template <typename TKey>
  SlabVoxels<TKey>
  VoxelsOf(char * mask, char * state) const
  {
    return { reinterpret_cast<const TKey *>(mask),
             reinterpret_cast<TKey *>(state),
             MakeCode<TKey>(m_Kind, m_Operation.erosion) };
  }

  /** The forest of a slab's last plane becomes that of its first, some planes at a time. */
  template <typename TKey>
  void
  Contract(const SlabVoxels<TKey> & voxels, std::int64_t planes, PlaneForest<TKey> & forest, PlaneForest<TKey> & next,
           ForestChildren & children)
  {
    const std::size_t room = m_Plan.scratch + (m_Plan.ahead ? m_Plan.buffer : 0);
    for (std::int64_t last = planes - 1; last > 0;)
    {
      std::int64_t first = 0;
      while (SlabContraction<TKey>::GetBytes(m_Plan.planeVoxels, last - first + 1) > room ||
             (m_Request.planesAtOnce > 0 && last - first > m_Request.planesAtOnce))
      {
        ++first;
      }
      const SlabGrid grid = GridOf(last - first + 1);
      SlabContraction<TKey>(grid, voxels.From(first * m_Plan.planeVoxels), m_Scratch, GetStopFunction())
        .Run(m_Executor, forest, children, next);
      CheckStop();
      std::swap(forest, next);
      last = first;
      if (last > 0)
      {
        children.Find(forest);
      }
    }
  }

  /** Raises the first plane to what it has in the whole image, and all that this leads to. */
  template <typename TKey>
  void
  LetIn(const SlabVoxels<TKey> & voxels, const SlabGrid & grid, const PlaneForest<TKey> & forest,
        const ForestChildren & children, char * state, char * mask, const Box & box)
  {
    const auto * const known = reinterpret_cast<const TKey *>(m_PlaneState);
    std::int64_t       raised = 0;
    for (std::int64_t i = 0; i < grid.planeVoxels; ++i)
    {
      raised += voxels.code.FromBits(known[i]) > voxels.code.FromBits(voxels.state[i]) ? 1 : 0;
    }
    if (raised == 0)
    {
      return;
    }
    const bool sweeps = raised > grid.planeVoxels / FewOfPlane;
    if (sweeps)
    {
      std::memcpy(state, m_PlaneState, PlaneBytes());
      Flood(state, mask, box);
    }
    const Stopwatch watch(m_Report.finishing);
    SlabFlood<TKey> flow(
      grid, voxels, forest, children, m_Scratch, SlabFlood<TKey>::GetEntries(m_Plan.scratch), GetStopFunction());
    for (std::int64_t i = 0; i < grid.planeVoxels && !sweeps; ++i)
    {
      while (!flow.Offer(static_cast<std::uint32_t>(i), voxels.code.FromBits(known[i])) && !m_Stop)
      {
        flow.Drain();
      }
    }
    if (sweeps)
    {
      flow.OfferForest();
    }
    flow.Finish();
    CheckStop();
  }

  /** Whether the mask has one value up to here. */
  bool
  IsFlat(const Box & volume, std::size_t slot, const Box & box)
  {
    return DispatchPixelKind(m_Kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      const auto * const mask = reinterpret_cast<const Pixel *>(m_Slots[slot].back());
      if (box.upper[m_Plan.axis] == volume.upper[m_Plan.axis])
      {
        std::memcpy(m_FirstVoxel, mask, sizeof(Pixel));
      }
      Pixel first = 0;
      std::memcpy(&first, m_FirstVoxel, sizeof(Pixel));
      return std::all_of(mask, mask + box.NumberOfVoxels(), [first](Pixel voxel) { return voxel == first; });
    });
  }

  // The spool.

  template <typename TKey>
  void
  PackSlab(Record & record, const SlabVoxels<TKey> & voxels, const SlabGrid & grid, const PlaneForest<TKey> & forest)
  {
    const Stopwatch    watch(m_Report.packing);
    const std::int64_t all = grid.GetVoxels();
    const std::int64_t blocks = (all + BlockVoxels - 1) / BlockVoxels;
    record.blocks.resize(static_cast<std::size_t>(blocks));
    m_Executor.ParallelFor(blocks, [&](std::int64_t block, unsigned int) {
      const std::int64_t at = block * BlockVoxels;
      record.blocks[static_cast<std::size_t>(block)] =
        static_cast<std::uint32_t>(PackState(voxels.mask + at,
                                             voxels.state + at,
                                             std::min(BlockVoxels, all - at),
                                             reinterpret_cast<unsigned char *>(m_Scratch) + at * sizeof(TKey)));
    });
    std::size_t bytes = 0;
    for (std::int64_t block = 0; block < blocks; ++block)
    {
      std::memmove(m_Scratch + bytes,
                   m_Scratch + block * BlockVoxels * sizeof(TKey),
                   record.blocks[static_cast<std::size_t>(block)]);
      bytes += record.blocks[static_cast<std::size_t>(block)];
    }
    record.states = m_States.GetSize();
    m_States.Append(m_Scratch, bytes);
    // Nodes that have a parent, their parents, the capacities.
    auto * const  nodes = reinterpret_cast<std::uint32_t *>(m_Scratch);
    std::uint32_t edges = 0;
    for (std::int64_t i = 0; i < forest.size; ++i)
    {
      if (forest.parent[i] != PlaneForest<TKey>::None)
      {
        nodes[edges++] = static_cast<std::uint32_t>(i);
      }
    }
    auto * const parents = nodes + edges;
    auto * const capacities = reinterpret_cast<char *>(parents + edges);
    for (std::uint32_t i = 0; i < edges; ++i)
    {
      parents[i] = forest.parent[nodes[i]];
      std::memcpy(capacities + i * sizeof(TKey), &forest.capacity[nodes[i]], sizeof(TKey));
    }
    record.forest = m_States.GetSize();
    record.edges = edges;
    m_States.Append(m_Scratch, static_cast<std::size_t>(edges) * (2 * sizeof(std::uint32_t) + sizeof(TKey)));
  }

  template <typename TKey>
  void
  UnpackSlab(const Record & record, const SlabVoxels<TKey> & voxels, const SlabGrid & grid, PlaneForest<TKey> & forest)
  {
    const Stopwatch            watch(m_Report.packing);
    const std::int64_t         all = grid.GetVoxels();
    std::vector<std::uint64_t> offsets{ 0 };
    for (const std::uint32_t bytes : record.blocks)
    {
      offsets.push_back(offsets.back() + bytes);
    }
    m_States.Read(record.states, m_Scratch, offsets.back());
    m_Executor.ParallelFor(static_cast<std::int64_t>(record.blocks.size()), [&](std::int64_t block, unsigned int) {
      const std::int64_t at = block * BlockVoxels;
      UnpackState(voxels.mask + at,
                  reinterpret_cast<const unsigned char *>(m_Scratch) + offsets[static_cast<std::size_t>(block)],
                  record.blocks[static_cast<std::size_t>(block)],
                  std::min(BlockVoxels, all - at),
                  voxels.state + at);
    });
    m_States.Read(
      record.forest, m_Scratch, static_cast<std::size_t>(record.edges) * (2 * sizeof(std::uint32_t) + sizeof(TKey)));
    const auto * const nodes = reinterpret_cast<const std::uint32_t *>(m_Scratch);
    const auto * const parents = nodes + record.edges;
    const auto * const capacities = reinterpret_cast<const char *>(parents + record.edges);
    forest.Clear();
    for (std::uint32_t i = 0; i < record.edges; ++i)
    {
      forest.parent[nodes[i]] = parents[i];
      std::memcpy(&forest.capacity[nodes[i]], capacities + i * sizeof(TKey), sizeof(TKey));
    }
  }

  Manager &                       m_Manager;
  const SlabRequest &             m_Request;
  const ReconstructionOperation & m_Operation;
  const SlabPlanner &             m_Planner;
  const SlabPlan &                m_Plan;
  Executor &                      m_Executor;
  SlabReport &                    m_Report;
  std::vector<ImageSource *>      m_Sources;
  const Box                       m_Image;
  const PixelKind                 m_Kind;
  AlignedMemory                   m_Memory;
  Spool                           m_States;
  std::vector<Record>             m_Records;

  std::vector<std::unique_ptr<SpooledImage>> m_Copies;

  char *              m_Scratch{ nullptr };
  std::vector<char *> m_Slots[2]; ///< a piece of each input
  char *              m_State[2];
  char *              m_Marker{ nullptr };
  char *              m_Forests[2]{ nullptr, nullptr };
  char *              m_Children{ nullptr };
  char *              m_PlaneState{ nullptr }; ///< of the plane that the next slab shares with the last one
  unsigned char       m_FirstVoxel[8]{};
  bool                m_ChecksFlat{ false };
  bool                m_IsFlat{ false };

  double                     m_AllWork{ 1 };
  std::atomic<double>        m_Work{ 0 };
  std::atomic<std::int64_t>  m_Flooded{ 0 }; ///< voxels of the slab at hand
  std::atomic<bool>          m_CountsFlood{ false };
  std::atomic<bool>          m_Stop{ false };
  std::atomic<std::uint64_t> m_BytesRead{ 0 };
  std::atomic<std::uint64_t> m_BytesWritten{ 0 };
  // The last members: their threads use all others.
  std::future<void> m_Reading;
  std::future<void> m_Writing;
};

const ReconstructionOperation &
GetReconstruction(const SlabRequest & request)
{
  const auto * const operation = dynamic_cast<const ReconstructionOperation *>(request.operation.get());
  if (!operation)
  {
    throw ParameterError("operation " + (request.operation ? request.operation->GetName() : std::string("none")) +
                         " does not run in slabs");
  }
  return *operation;
}

bool
IsPasses(const SlabRequest & request)
{
  return request.operation && request.operation->GetSchedule() == Schedule::Passes;
}

void
CheckRequest(const SlabRequest & request)
{
  const ReconstructionOperation & operation = GetReconstruction(request);
  if (!request.sink)
  {
    throw ParameterError("a run in slabs needs a sink");
  }
  const Coordinates extent = request.sink->GetExtent();
  if (static_cast<int>(request.sources.size()) != operation.GetNumberOfInputs())
  {
    throw ParameterError("operation " + operation.GetName() + " takes " +
                         std::to_string(operation.GetNumberOfInputs()) + " inputs, not " +
                         std::to_string(request.sources.size()));
  }
  std::vector<PixelKind> kinds;
  for (const ImageSource * source : request.sources)
  {
    if (source->GetExtent() != extent)
    {
      throw ParameterError("an input has " + ToString(source->GetExtent()) + " voxels, the output " + ToString(extent));
    }
    kinds.push_back(source->GetKind());
  }
  operation.Validate(extent);
  operation.CheckKinds(kinds, request.sink->GetKind());
}

/** Runs work() on a thread of its own, serves the monitor from this one, and throws what ended the work. */
template <typename TRun>
void
Serve(TRun & run, Monitor * monitor)
{
  std::mutex              mutex;
  std::condition_variable changed;
  bool                    ended = false;
  std::exception_ptr      failure;
  std::thread             worker([&] {
    try
    {
      run.Go();
    }
    catch (...)
    {
      failure = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex);
    ended = true;
    changed.notify_all();
  });
  std::exception_ptr      callerFailure;
  double                  last = -1;
  bool                    aborted = false;
  for (bool goesOn = true; goesOn;)
  {
    if (monitor && !aborted && !callerFailure)
    {
      try
      {
        const double now = std::min(run.GetFraction(), 0.999);
        if (now > last)
        {
          last = now;
          monitor->UpdateProgress(now);
        }
        if (monitor->ShouldAbort())
        {
          aborted = true;
          run.Stop();
        }
      }
      catch (...)
      {
        callerFailure = std::current_exception();
        run.Stop();
      }
    }
    std::unique_lock<std::mutex> lock(mutex);
    goesOn = !changed.wait_for(lock, std::chrono::milliseconds(10), [&] { return ended; });
  }
  worker.join();
  if (callerFailure)
  {
    std::rethrow_exception(callerFailure);
  }
  if (failure)
  {
    std::rethrow_exception(failure);
  }
  if (monitor)
  {
    monitor->UpdateProgress(1.0);
  }
}

} // namespace

std::uint64_t
GetLeastHostBytes(Manager & manager, const SlabRequest & request)
{
  SlabRequest least = request;
  least.hostBytes = 1;
  try
  {
    if (IsPasses(least))
    {
      RunPassesInSlabs(manager, least, nullptr, false);
      return 1;
    }
    CheckRequest(least);
    const unsigned int threads =
      request.executor ? request.executor->GetConcurrency() : std::thread::hardware_concurrency();
    SlabPlanner(manager, least, GetReconstruction(least), static_cast<int>(std::max(threads, 1u))).MakePlan();
  }
  catch (const BudgetError & error)
  {
    return error.needed;
  }
  return 1;
}

SlabReport
ReconstructInSlabs(Manager & manager, const SlabRequest & request, Monitor * monitor)
{
  if (IsPasses(request))
  {
    return RunPassesInSlabs(manager, request, monitor);
  }
  CheckRequest(request);
  SlabReport report;
  if (Box::FromExtent(request.sink->GetExtent()).IsEmpty())
  {
    if (monitor)
    {
      monitor->UpdateProgress(1.0);
    }
    return report;
  }
  const std::unique_ptr<Executor> own = request.executor ? nullptr : MakeThreadExecutor();
  Executor &                      executor = request.executor ? *request.executor : *own;
  const SlabPlanner planner(manager, request, GetReconstruction(request), static_cast<int>(executor.GetConcurrency()));
  const SlabPlan    plan = planner.MakePlan();
  SlabRun           run(manager, request, GetReconstruction(request), planner, plan, executor, report);
  Serve(run, monitor);
  return report;
}

} // namespace chunkwise
