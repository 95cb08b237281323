/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvertVoxels.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuDeconvolutionRows.h"
#include "chunkwiseDeconvolutionInWindows.h"
#include "chunkwiseDeconvolutionOnDevices.h"
#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseDeconvolutionState.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwisePartMonitor.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRegions.h"
#include "chunkwiseRunnerRun.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>

// Devices that have the room hold all images: those of the host go there, and the result comes back, in slabs along the
// slowest axis. Else each iteration has two passes over the estimate's grid, in slabs: H and the ratio, then H^T and
// the next estimate; or, for what a device's memory has room for windows of, both in one pass. If all images fit the
// memory there is one slab; else they lie in spools, and slabs are as thick as the memory allows. Convolutions are runs
// of the manager; all else goes voxel by voxel, by the rows of a slab. All convolutions are either the CPU's or those
// of devices, whose transforms have other last bits.
namespace chunkwise
{

namespace
{

/** Bytes of the measured image, and of its weights, that are read at a time: the least, and where there is room. */
constexpr std::size_t LeastRead = std::size_t{ 4 } << 20;
constexpr std::size_t FastRead = std::size_t{ 32 } << 20;
/** Bytes of a slab that goes to devices. */
constexpr std::size_t FastSlab = std::size_t{ 64 } << 20;
/** Bytes of the planes of spooled images that are updated at a time. */
constexpr std::size_t FastPiece = std::size_t{ 16 } << 20;
/** A thread that reads or writes beside others does at least so many bytes. */
constexpr std::size_t LeastOfThread = std::size_t{ 256 } << 10;

int
SlowestAxisOf(const Coordinates & extent)
{
  int axis = MaxDimension - 1;
  while (axis > 0 && extent[axis] <= 1)
  {
    --axis;
  }
  return axis;
}

/** How much of the grid is in memory, and the bytes that this takes. */
struct DeconvolutionPlan
{
  bool          isHeld{ false }; ///< by devices
  bool          isInMemory{ true };
  std::int64_t  planes{ 1 }; ///< of a slab
  std::size_t   read{ LeastRead };
  std::uint64_t bytes{ 0 };
  std::size_t   scratch{ 0 }; ///< of convolutions, of `bytes`
};

template <typename T>
class DeconvolutionRun
{
public:
  DeconvolutionRun(Manager & manager, const OutOfCoreRequest & request, bool usesDevices, Monitor * monitor)
    : m_UsesDevices(usesDevices)
    , m_Manager(manager)
    , m_Request(request)
    , m_Operation(dynamic_cast<const DeconvolutionOperation &>(*request.operation))
    , m_Monitor(monitor)
    , m_Grid(Box::FromExtent(m_Operation.GetEstimateExtent()))
    , m_Measured(m_Operation.GetMeasuredBox())
    , m_Axis(SlowestAxisOf(m_Grid.Extents()))
    , m_Forward(m_Operation.MakeForward())
    , m_Backward(m_Operation.MakeBackward())
    , m_OwnExecutor(request.executor ? nullptr : MakeThreadExecutor())
    , m_Executor(request.executor ? *request.executor : *m_OwnExecutor)
  {}

  /** The plan for so much memory; 0: without limit. Throws BudgetError. */
  DeconvolutionPlan
  MakePlan(std::uint64_t memory, bool mayHold = true) const
  {
    if (!mayHold || !this->CanHold())
    {
      return this->MakePlanOnHost(memory);
    }
    DeconvolutionPlan plan;
    for (const std::size_t part : { 1, 4, 16, 0 })
    {
      plan = this->MakePlanOfHeld(part);
      if (memory == 0 || plan.bytes <= memory)
      {
        return plan;
      }
    }
    try
    {
      return this->MakePlanOnHost(memory);
    }
    catch (const BudgetError & error)
    {
      // The last plan takes the least.
      throw BudgetError("deconvolution needs " + std::to_string(std::min<std::size_t>(plan.bytes, error.needed)) +
                          " bytes of host memory, more than the budget of " + std::to_string(memory) + " bytes",
                        std::min<std::size_t>(plan.bytes, error.needed),
                        memory);
    }
  }

private:
  /** Whether devices are expected to have room for all images. */
  bool
  CanHold() const
  {
    return m_UsesDevices && m_Operation.totalVariation == 0 &&
           DeconvolutionOnDevices::HasRoom(
             m_Manager, this->ListDevices(), m_Request.budgets, m_Operation, Kind, m_Operation.hasWeights);
  }

  /** Slabs and reads are as large as is fast, divided by `part`; 0: as small as they can be. */
  DeconvolutionPlan
  MakePlanOfHeld(std::size_t part) const
  {
    const std::int64_t all = m_Grid.Extent(m_Axis);
    const std::size_t  slab = part == 0 ? 0 : FastSlab / part;
    DeconvolutionPlan  plan;
    plan.isHeld = true;
    plan.isInMemory = false;
    plan.planes = std::max<std::int64_t>(1, std::min(all, static_cast<std::int64_t>(slab / BytesOf(Planes(0, 1)))));
    plan.read = part == 0 ? LeastRead : std::max(LeastRead, FastRead / part);
    plan.bytes = this->CountMeasured(plan) + RoomsOfHeld * BytesOf(Planes(0, plan.planes));
    return plan;
  }

  DeconvolutionPlan
  MakePlanOnHost(std::uint64_t memory) const
  {
    DeconvolutionPlan plan;
    plan.planes = m_Grid.Extent(m_Axis);
    this->Count(plan);
    if (memory == 0 || plan.bytes <= memory)
    {
      return plan;
    }
    if (m_Request.spoolFolder.empty())
    {
      throw BudgetError("deconvolution needs " + std::to_string(plan.bytes) +
                          " bytes of host memory for its images, more than the budget of " + std::to_string(memory) +
                          " bytes",
                        plan.bytes,
                        memory);
    }
    plan.isInMemory = false;
    const std::int64_t step = this->GetStep();
    plan.planes = std::min(step, m_Grid.Extent(m_Axis));
    this->Count(plan);
    if (plan.bytes > memory)
    {
      throw BudgetError("deconvolution needs " + std::to_string(plan.bytes) +
                          " bytes of host memory for the thinnest slabs, more than the budget of " +
                          std::to_string(memory) + " bytes",
                        plan.bytes,
                        memory);
    }
    for (DeconvolutionPlan larger = plan; larger.planes < m_Grid.Extent(m_Axis);)
    {
      larger.planes = std::min(larger.planes + step, m_Grid.Extent(m_Axis));
      this->Count(larger);
      if (larger.bytes > memory)
      {
        break;
      }
      plan = larger;
    }
    return plan;
  }

public:
  OutOfCoreReport
  Run()
  {
    m_Plan = this->MakePlan(m_Request.hostBytes);
    if (m_Plan.isHeld && !this->Hold())
    {
      m_Plan = this->MakePlan(m_Request.hostBytes, false);
    }
    this->CheckDeviceBudget();
    this->MakeImages();
    const std::int64_t done = this->TakeState();
    m_OnDevices ? this->BeginOnDevices(done > 0) : this->Begin(done > 0);
    if (done < m_Operation.iterations)
    {
      this->OpenWindows();
    }
    if (done == m_Operation.iterations)
    {
      this->ReturnToEstimate();
    }
    for (std::int64_t i = done; i < m_Operation.iterations; ++i)
    {
      m_Sums = Sums();
      this->Blur(i);
      // Devices hand sums over later, so that they need not wait for the host.
      const bool isFirst = !m_OnDevices || m_Operation.discrepancy > 0;
      if (isFirst && this->ReportMisfit(i, false))
      {
        this->ReturnToEstimate();
        break;
      }
      this->Correct(i);
      if (!isFirst)
      {
        (void)this->ReportMisfit(i, true);
      }
      if (m_Operation.accelerates)
      {
        const double length = m_Sums.oldStep.Round();
        const double both = m_Sums.steps.Round();
        m_Acceleration = i > 0 && length > 0 ? std::min(std::max(both / length, 0.0), 1.0) : 0.0;
      }
      const double change = m_Sums.change.Round();
      const double size = m_Sums.size.Round();
      if (m_Operation.relativeChange > 0)
      {
        const double part = size > 0 ? std::sqrt(change / size) : 0;
        m_Report.execution.figures.emplace_back("relative change " + std::to_string(i + 1), part);
        if (part <= m_Operation.relativeChange)
        {
          break;
        }
      }
      if (i + 1 < m_Operation.iterations)
      {
        if (m_Operation.accelerates)
        {
          this->Extrapolate();
        }
        this->KeepState(i + 1);
      }
    }
    this->WriteResult();
    for (const DeconvolutionImage * const image :
         { m_Point.get(), m_Next.get(), m_Last.get(), m_Step.get(), m_Ratio.get(), m_Norm.get() })
    {
      m_Report.spoolWritten += image ? image->GetBytesSpooled() : 0;
    }
    m_Report.execution.backend = m_UsesDevices ? "cuda" : "cpu";
    m_Report.execution.peakHost = std::max<std::size_t>(m_Report.execution.peakHost, m_Plan.bytes);
    if (m_Monitor)
    {
      m_Monitor->UpdateProgress(1.0);
    }
    return std::move(m_Report);
  }

private:
  static constexpr PixelType Kind = sizeof(T) == 4 ? PixelType::Float32 : PixelType::Float64;
  using Image = std::unique_ptr<DeconvolutionImage>;
  static constexpr int RoomsOfHeld = 4; ///< two slabs of two images

  template <typename TSum>
  struct SumsOf
  {
    TSum divergence;
    TSum misfit;
    TSum change;
    TSum size;
    TSum steps;
    TSum oldStep;

    /** Calls body(sum, other's sum) for each of them. */
    template <typename TOther, typename TBody>
    void
    ForEach(SumsOf<TOther> & other, TBody && body)
    {
      body(divergence, other.divergence);
      body(misfit, other.misfit);
      body(change, other.change);
      body(size, other.size);
      body(steps, other.steps);
      body(oldStep, other.oldStep);
    }
  };
  using Sums = SumsOf<ExactSum>;
  using RowSums = SumsOf<RowSum>;

  /** Whether the next estimate is an image beside the point that it is made from. */
  bool
  HasNext() const
  {
    return m_Operation.accelerates || m_Operation.totalVariation > 0;
  }
  bool
  IsRichardsonLucy() const
  {
    return m_Operation.method == DeconvolutionMethod::RichardsonLucy;
  }

  std::int64_t
  GetStep() const
  {
    const std::int64_t forward = m_Forward->GetTile(m_Grid.Extents())[m_Axis];
    const std::int64_t backward = m_Backward->GetTile(m_Grid.Extents())[m_Axis];
    return std::max({ forward, backward, std::int64_t{ 16 } });
  }

  Box
  Planes(std::int64_t lower, std::int64_t upper) const
  {
    Box box = m_Grid;
    box.lower[m_Axis] = lower;
    box.upper[m_Axis] = upper;
    return box;
  }
  std::size_t
  BytesOf(const Box & box) const
  {
    return static_cast<std::size_t>(box.NumberOfVoxels()) * sizeof(T);
  }
  /** The planes that a box of planes needs of another image. */
  Box
  InputOf(const Operation & operation, const Box & planes) const
  {
    Box       input = m_Grid;
    const Box needed = GetInputBox(operation, planes, m_Grid);
    input.lower[m_Axis] = needed.lower[m_Axis];
    input.upper[m_Axis] = needed.upper[m_Axis];
    return input;
  }
  Box
  WithNeighbors(const Box & planes) const
  {
    Halo halo = Halo::None();
    halo.lower[m_Axis] = halo.upper[m_Axis] = 1;
    return PadAndCrop(planes, halo, m_Grid);
  }

  ExecutionRequest
  MakeRequest(const std::shared_ptr<const Operation> & operation, const BufferView & input, const BufferView & output,
              const Box & region, std::size_t scratch) const
  {
    ExecutionRequest request;
    request.operation = operation;
    request.inputs = { input };
    request.output = output;
    request.image = m_Grid;
    request.region = region;
    request.backend = m_UsesDevices ? BackendChoice::CUDA : BackendChoice::CPU;
    request.devices = m_Request.devices;
    request.budgets = m_Request.budgets;
    request.budgets.host = scratch;
    request.executor = &m_Executor;
    return request;
  }

  std::size_t
  ScratchOf(const std::shared_ptr<const Operation> & operation, const Box & region) const
  {
    if (m_UsesDevices)
    {
      return 0;
    }
    // Without any limit a plan does not count what it takes.
    constexpr std::size_t  most = std::size_t{ 1 } << 60;
    const Box              input = InputOf(*operation, region);
    const ExecutionRequest request =
      MakeRequest(operation, DenseView(nullptr, Kind, input), DenseView(nullptr, Kind, region), region, most);
    return m_Manager.MakePlanFor(request).deviceBytes;
  }

  /** Throws BudgetError with the bytes of a device that are enough for all convolutions of the run. */
  void
  CheckDeviceBudget() const
  {
    if (!m_UsesDevices || m_OnDevices)
    {
      return;
    }
    const Box                    slab = Planes(0, std::min(m_Plan.planes, m_Grid.Extent(m_Axis)));
    std::unique_ptr<BudgetError> worst;
    for (const auto & operation : { m_Backward, m_Forward })
    {
      const Box region = operation == m_Forward ? Intersect(slab, m_Measured) : slab;
      if (region.IsEmpty())
      {
        continue;
      }
      const BufferView output = DenseView(nullptr, Kind, region);
      const BufferView input = DenseView(nullptr, Kind, InputOf(*operation, region));
      try
      {
        (void)m_Manager.MakePlanFor(MakeRequest(operation, input, output, region, 0));
      }
      catch (const BudgetError & error)
      {
        if (!worst || error.needed > worst->needed)
        {
          worst = std::make_unique<BudgetError>(error);
        }
      }
    }
    if (worst)
    {
      throw *worst;
    }
  }

  void
  Count(DeconvolutionPlan & plan) const
  {
    // A slab in the middle of the grid.
    const std::int64_t all = m_Grid.Extent(m_Axis);
    const std::int64_t step = this->GetStep();
    const std::int64_t lower =
      plan.planes >= all ? 0 : std::min((all - plan.planes) / 2 / step * step, all - plan.planes);
    const Box slab = Planes(lower, lower + plan.planes);
    const Box region = Intersect(slab, m_Measured);
    plan.scratch =
      std::max(this->ScratchOf(m_Backward, slab), region.IsEmpty() ? 0 : this->ScratchOf(m_Forward, region));
    plan.bytes = plan.scratch + this->CountMeasured(plan);
    if (plan.isInMemory)
    {
      const std::uint64_t images = 4 + (m_Operation.accelerates ? 3 : m_Operation.totalVariation > 0 ? 1 : 0);
      plan.bytes += images * BytesOf(m_Grid);
      return;
    }
    const std::uint64_t piece = this->BytesOfPiece(plan);
    plan.bytes +=
      BytesOf(slab) + this->CountPieces() * piece +
      std::max<std::uint64_t>({ BytesOf(InputOf(*m_Backward, slab)), BytesOf(InputOf(*m_Forward, slab)), piece });
  }

  /** Bytes of what is read of the measured image and its weights at a time, and of what has no size of the image's. */
  std::uint64_t
  CountMeasured(const DeconvolutionPlan & plan) const
  {
    // Threads, tables of transforms and spectra of kernels beside the scratch.
    constexpr std::uint64_t others = std::uint64_t{ 16 } << 20;
    return 2 * plan.read + 2 * this->MeasuredPlane() * sizeof(double) + others;
  }
  std::int64_t
  CountPlanesRead() const
  {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(m_Plan.read / (MeasuredPlane() * sizeof(double))));
  }

  std::size_t
  MeasuredPlane() const
  {
    return static_cast<std::size_t>(m_Measured.NumberOfVoxels() / std::max<std::int64_t>(m_Measured.Extent(m_Axis), 1));
  }

  /** Planes of spooled images that are updated at a time, for which there is room in the convolutions' input, too. */
  std::int64_t
  CountPlanesOfPiece(const DeconvolutionPlan & plan) const
  {
    const auto fast = static_cast<std::int64_t>(FastPiece / BytesOf(Planes(0, 1)));
    // Little beside the slab; total variation reads a plane more on each side.
    const std::int64_t least = std::min<std::int64_t>(m_Operation.totalVariation > 0 ? 8 : 1, plan.planes);
    return std::max(least, std::min(fast, plan.planes / 8));
  }
  std::size_t
  BytesOfPiece(const DeconvolutionPlan & plan) const
  {
    return BytesOf(Planes(0, std::min(CountPlanesOfPiece(plan) + 2, m_Grid.Extent(m_Axis))));
  }
  /** Rooms for pieces: one is for the next estimate, one for the last step. */
  std::size_t
  CountPieces() const
  {
    return m_Operation.accelerates ? 4 : HasNext() ? 3 : 2;
  }

  Image
  MakeImage() const
  {
    return std::make_unique<DeconvolutionImage>(
      m_Grid, Kind, m_Plan.isInMemory, m_Request.spoolFolder, [this](const Box & box, const auto & body) {
        this->InThreads(box, m_Request.fileThreads, body);
      });
  }

  void
  MakeImages()
  {
    if (m_OnDevices)
    {
      for (int i = 0; i < RoomsOfHeld; ++i)
      {
        m_Rooms[i].Take(BytesOf(Planes(0, m_Plan.planes)));
      }
      return;
    }
    m_Point = MakeImage();
    m_Ratio = MakeImage();
    m_Norm = MakeImage();
    m_Next = HasNext() ? MakeImage() : nullptr;
    if (m_Operation.accelerates)
    {
      m_Last = MakeImage();
      m_Step = MakeImage();
    }
    if (m_Plan.isInMemory)
    {
      m_Rooms[0].Take(BytesOf(m_Grid));
      return;
    }
    m_Rooms[0].Take(BytesOf(Planes(0, std::min(m_Plan.planes, m_Grid.Extent(m_Axis)))));
    for (std::size_t i = 1; i <= this->CountPieces(); ++i)
    {
      m_Rooms[i].Take(this->BytesOfPiece(m_Plan));
    }
  }

  /** Room for planes that convolutions read. */
  void *
  WideRoom(const Box & planes)
  {
    if (!m_Plan.isInMemory && m_Wide.GetSize() < BytesOf(planes))
    {
      m_Wide.Take(BytesOf(planes));
    }
    return m_Wide.Get();
  }

  /** Calls body(slab) for the slabs of the grid, in ascending order. */
  template <typename TBody>
  void
  ForEachSlab(double begin, double end, TBody && body)
  {
    const std::int64_t all = m_Grid.Extent(m_Axis);
    for (std::int64_t lower = 0; lower < all; lower += m_Plan.planes)
    {
      const auto part = [&](std::int64_t at) {
        return begin + (end - begin) * static_cast<double>(at) / static_cast<double>(all);
      };
      const std::int64_t upper = std::min(lower + m_Plan.planes, all);
      PartMonitor        monitor(m_Monitor, part(lower), part(upper));
      m_Part = &monitor;
      if (monitor.ShouldAbort())
      {
        throw Aborted();
      }
      body(Planes(lower, upper));
    }
  }

  /** Calls body(piece) for the planes of a slab: all of them where images are in memory. */
  template <typename TBody>
  void
  ForEachPiece(const Box & slab, TBody && body)
  {
    const std::int64_t planes = m_Plan.isInMemory ? slab.Extent(m_Axis) : this->CountPlanesOfPiece(m_Plan);
    for (std::int64_t lower = slab.lower[m_Axis]; lower < slab.upper[m_Axis]; lower += planes)
    {
      body(Planes(lower, std::min(lower + planes, slab.upper[m_Axis])));
    }
  }

  void
  Convolve(const std::shared_ptr<const Operation> & operation, const DeconvolutionImage & from, const BufferView & to,
           const Box & region)
  {
    const Box input = InputOf(*operation, region);
    // Spectra of kernels are kept in what the plan leaves of the memory.
    const std::size_t      limit = m_Request.hostBytes && !m_UsesDevices
                                     ? m_Plan.scratch + static_cast<std::size_t>(m_Request.hostBytes - m_Plan.bytes)
                                     : 0;
    const ExecutionRequest request = MakeRequest(operation, from.Read(input, WideRoom(input)), to, region, limit);
    this->AddReport(m_Manager.Execute(request, m_Part));
  }

  void
  AddReport(const ExecutionReport & report)
  {
    ExecutionReport & all = m_Report.execution;
    all.transforms = report.transforms.empty() ? all.transforms : report.transforms;
    all.deviceNames = report.deviceNames;
    all.chunksPerDevice.resize(report.chunksPerDevice.size());
    for (std::size_t i = 0; i < report.chunksPerDevice.size(); ++i)
    {
      all.chunksPerDevice[i] += report.chunksPerDevice[i];
    }
    all.peakDevice = std::max(all.peakDevice, report.peakDevice);
    all.peakPinned = std::max(all.peakPinned, report.peakPinned);
    all.bytesToDevice += report.bytesToDevice;
    all.bytesToHost += report.bytesToHost;
    all.retries += report.retries;
    for (const std::string & warning : report.warnings)
    {
      if (std::find(all.warnings.begin(), all.warnings.end(), warning) == all.warnings.end())
      {
        all.warnings.push_back(warning);
      }
    }
  }

  /** Calls body(at, n, sums) for the rows along x of a box, by all threads: `at` is where a row begins. */
  template <typename TBody>
  void
  ForEachRow(const Box & box, TBody && body)
  {
    const std::int64_t n = box.Extent(0);
    const std::int64_t rows = n > 0 ? box.NumberOfVoxels() / n : 0;
    const std::int64_t perTask = std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(n, 1));
    std::mutex         mutex;
    m_Executor.ParallelFor((rows + perTask - 1) / perTask, [&](std::int64_t task, unsigned int) {
      Sums    sums;
      RowSums ofRow;
      for (std::int64_t row = task * perTask; row < std::min(rows, (task + 1) * perTask); ++row)
      {
        Coordinates  at = box.lower;
        std::int64_t rest = row;
        for (int a = 1; a < MaxDimension; ++a)
        {
          at[a] += rest % box.Extent(a);
          rest /= box.Extent(a);
        }
        body(at, n, ofRow);
        sums.ForEach(ofRow, [](ExactSum & sum, RowSum & row) { sum.Add(row.Take()); });
      }
      const std::lock_guard<std::mutex> lock(mutex);
      m_Sums.ForEach(sums, [](ExactSum & all, ExactSum & some) { all.Merge(some); });
    });
  }

  static T *
  RowOf(const BufferView & view, const Coordinates & at)
  {
    return static_cast<T *>(view.data) + view.Offset(at);
  }

  /** Calls body(at, n, d, w, sums) for the rows of the measured image within a slab, at positions of the grid: d are
   * its voxels, and w the weights, 0 where d counts for nothing. Both are in order of rows. */
  template <typename TBody>
  void
  ForEachMeasuredRow(const Box & slab, TBody && body)
  {
    const Box          all = Intersect(slab, m_Measured);
    const std::int64_t planes = this->CountPlanesRead();
    for (std::int64_t lower = all.lower[m_Axis]; lower < all.upper[m_Axis]; lower += planes)
    {
      Box box = all;
      box.lower[m_Axis] = lower;
      box.upper[m_Axis] = std::min(lower + planes, all.upper[m_Axis]);
      this->ReadMeasured(0, box, m_Values, m_Raw);
      if (m_Operation.hasWeights)
      {
        this->ReadMeasured(1, box, m_Weights, m_Raw);
      }
      else
      {
        m_Weights.resize(m_Values.size());
      }
      const BufferView view = DenseView(nullptr, Kind, box);
      this->ForEachRow(box, [&](const Coordinates & at, std::int64_t n, RowSums & sums) {
        const auto offset = static_cast<std::size_t>(view.Offset(at));
        T * const  d = m_Values.data() + offset;
        T * const  w = m_Weights.data() + offset;
        m_Rows.hide(d, w, !m_Operation.hasWeights, m_Operation.saturation, n);
        body(at, n, d, w, sums);
      });
    }
  }

  /** Voxels of input `i`, of a box of the grid. */
  void
  ReadMeasured(std::size_t i, Box box, std::vector<T> & values, std::vector<unsigned char> & raw)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      box.lower[a] -= m_Measured.lower[a];
      box.upper[a] -= m_Measured.lower[a];
    }
    ImageSource &     source = *m_Request.sources.at(i);
    const PixelType   kind = source.GetKind();
    const std::size_t count = static_cast<std::size_t>(box.NumberOfVoxels());
    values.resize(count);
    if (kind != Kind)
    {
      raw.resize(count * PixelSize(kind));
    }
    const BufferView converted = DenseView(values.data(), Kind, box);
    const BufferView view = kind == Kind ? converted : DenseView(raw.data(), kind, box);
    this->InThreads(box, this->CountThreads(source.GetAccess()), [&](const Box & part) {
      source.Read(part, view);
      if (kind != Kind)
      {
        const auto begin = static_cast<std::size_t>(view.Offset(part.lower));
        ConvertVoxels(raw.data() + begin * PixelSize(kind), kind, values.data() + begin, Kind, part.NumberOfVoxels());
      }
    });
  }

  /** Threads that read, or write, an image at once. */
  unsigned int
  CountThreads(const ImageAccess & access) const
  {
    const bool isDivided = access.anyOrder && access.inPieces && !access.wholeBoxes && access.heldBytes == 0 &&
                           access.unit == Coordinates::Filled(1);
    return !isDivided ? 1 : m_Request.inMemory ? m_Executor.GetConcurrency() : m_Request.fileThreads;
  }

  /** Calls body(part) for parts of a box, by at most so many threads at once. Each is dense where the box is. */
  template <typename TBody>
  void
  InThreads(const Box & box, unsigned int threads, TBody && body) const
  {
    const int          axis = SlowestAxisOf(box.Extents());
    const std::int64_t extent = box.Extent(axis);
    const auto         most = static_cast<std::int64_t>(this->BytesOf(box) / LeastOfThread);
    const std::int64_t parts =
      std::max<std::int64_t>(1, std::min({ extent, most, static_cast<std::int64_t>(threads) }));
    if (parts == 1)
    {
      body(box);
      return;
    }
    m_Executor.ParallelFor(parts, [&](std::int64_t i, unsigned int) {
      Box part = box;
      part.lower[axis] = box.lower[axis] + extent * i / parts;
      part.upper[axis] = box.lower[axis] + extent * (i + 1) / parts;
      body(part);
    });
  }

  /** With acceleration the point lies beyond the estimate, which is the result. */
  void
  ReturnToEstimate()
  {
    if (m_Operation.accelerates)
    {
      std::swap(m_Point, m_Last);
      m_Result = DeconvolutionOnDevices::Last;
    }
  }

  // States for runs that go on later: the images that an iteration takes from the one before, then the figures of the
  // iterations so far.

  /** All that a state depends on: not the number of iterations, so that a run may go on with more. */
  std::map<std::string, std::string>
  DescribeStates() const
  {
    DeconvolutionOperation operation(m_Operation);
    operation.iterations = 1;
    // Transforms of other devices, or of other instruction sets, may have other last bits.
    std::string place = m_UsesDevices ? "cuda" : std::string("cpu ") + GetCpuLevel().name;
    if (m_UsesDevices)
    {
      for (const int device : this->ListDevices())
      {
        const std::string name = m_Manager.GetDevices().at(static_cast<std::size_t>(device))->GetDescription().name;
        place += place.find(name) == std::string::npos ? ", " + name : std::string();
      }
    }
    // Keys may be long, and no text.
    return { { "the filter or its parameters",
               operation.GetName() + " " + std::to_string(std::hash<std::string>()(operation.GetKey())) },
             { "the backend", place } };
  }
  /** An image of the host, or of devices. */
  struct StateImage
  {
    DeconvolutionImage *          onHost;
    DeconvolutionOnDevices::Image onDevices;
  };
  std::vector<StateImage>
  ListImagesOfState() const
  {
    std::vector<StateImage> images = { { m_Point.get(), DeconvolutionOnDevices::Point } };
    if (m_Operation.accelerates)
    {
      images.push_back({ m_Last.get(), DeconvolutionOnDevices::Last });
      images.push_back({ m_Step.get(), DeconvolutionOnDevices::Step });
    }
    return images;
  }
  /** The names of an iteration's figures, without its number. */
  std::vector<std::string>
  ListFigures() const
  {
    std::vector<std::string> names = { "divergence ", "discrepancy " };
    if (m_Operation.relativeChange > 0)
    {
      names.emplace_back("relative change ");
    }
    return names;
  }
  /** Takes the state that an earlier run has left. Returns the number of its iterations. */
  std::int64_t
  TakeState()
  {
    if (!m_Request.states)
    {
      return 0;
    }
    StateStore &                   states = *m_Request.states;
    const std::vector<std::string> names = this->ListFigures();
    const std::uint64_t            figures = static_cast<std::uint64_t>(m_Operation.iterations) * names.size();
    const std::uint64_t bytes = this->ListImagesOfState().size() * this->BytesOf(m_Grid) + figures * sizeof(double);
    const std::int64_t  done = states.Open(this->DescribeStates(), bytes);
    if (done == 0)
    {
      return 0;
    }
    if (done > m_Operation.iterations)
    {
      throw ParameterError("NumberOfIterations",
                           std::to_string(m_Operation.iterations),
                           std::to_string(done) + " or more, which an earlier run has done");
    }
    for (const StateImage & image : this->ListImagesOfState())
    {
      this->ForEachSlab(0, 0, [&](const Box & slab) {
        const BufferView view = m_OnDevices ? this->RoomOf(0, slab) : image.onHost->Place(slab, m_Rooms[0].Get());
        states.Read(view.data, this->BytesOf(slab));
        m_OnDevices ? m_OnDevices->LoadPlanes(image.onDevices, view) : image.onHost->Write(view);
      });
    }
    for (std::int64_t i = 0; i < done; ++i)
    {
      for (const std::string & name : names)
      {
        double value = 0;
        states.Read(&value, sizeof(value));
        m_Report.execution.figures.emplace_back(name + std::to_string(i + 1), value);
      }
    }
    states.EndReading();
    return done;
  }
  /** Keeps the state after `done` iterations if it is time for that. */
  void
  KeepState(std::int64_t done)
  {
    if (!m_Request.states || !m_Request.states->IsDue())
    {
      return;
    }
    StateStore & states = *m_Request.states;
    for (const StateImage & image : this->ListImagesOfState())
    {
      this->ForEachSlab(0, 0, [&](const Box & slab) {
        const BufferView view =
          m_OnDevices ? this->StoreOfDevices(image.onDevices, slab) : image.onHost->Read(slab, m_Rooms[0].Get());
        states.Write(view.data, this->BytesOf(slab));
      });
    }
    for (const auto & figure : m_Report.execution.figures)
    {
      states.Write(&figure.second, sizeof(figure.second));
    }
    states.Keep(done);
  }

  BufferView
  RoomOf(int number, const Box & planes)
  {
    return DenseView(m_Rooms[number].Get(), Kind, planes);
  }
  /** Planes of an image that devices hold. */
  BufferView
  StoreOfDevices(DeconvolutionOnDevices::Image image, const Box & planes, int room = 0)
  {
    const BufferView view = this->RoomOf(room, planes);
    m_OnDevices->StorePlanes(view, image);
    return view;
  }

  /** The sums that the first estimate needs of a slab; and its weights, 0 beyond the measured image, and that image,
   * NaN where it counts for nothing: into those of these views that are there. */
  void
  ReadWeights(const Box & slab, const BufferView * weights, const BufferView * measured)
  {
    constexpr T nothing = std::numeric_limits<T>::quiet_NaN();
    const T     background = static_cast<T>(m_Operation.background);
    this->ForEachRow(slab, [&](const Coordinates & at, std::int64_t n, RowSums &) {
      if (weights)
      {
        std::fill_n(RowOf(*weights, at), n, T(0));
      }
      if (measured)
      {
        std::fill_n(RowOf(*measured, at), n, nothing);
      }
    });
    this->ForEachMeasuredRow(slab,
                             [&](const Coordinates & at, std::int64_t n, const T * d, const T * w, RowSums & sums) {
                               m_Rows.mean(d, w, background, at[0], sums.size.GetLanes(), sums.change.GetLanes(), n);
                               if (weights)
                               {
                                 std::copy_n(w, n, RowOf(*weights, at));
                               }
                               T * const known = measured ? RowOf(*measured, at) : nullptr;
                               for (std::int64_t i = 0; i < n && known; ++i)
                               {
                                 known[i] = w[i] > 0 ? d[i] : nothing;
                               }
                             });
  }
  /** The mean of the first estimate, once all weights were read. */
  T
  TakeMean()
  {
    m_WeightSum = m_Sums.size.Round();
    const double mean = m_WeightSum > 0 ? std::max(m_Sums.change.Round() / m_WeightSum, 0.0) : 0.0;
    m_WeightSum = m_WeightSum > 0 ? m_WeightSum : 1;
    return static_cast<T>(mean);
  }
  /** The first estimate, 0 where too little is seen. */
  void
  MakeStart(const Box & slab, const BufferView & norm, const BufferView & point, T mean)
  {
    this->FillStart(slab, point, mean);
    this->ForEachRow(slab, [&](const Coordinates & at, std::int64_t n, RowSums &) {
      const T * const seen = RowOf(norm, at);
      T * const       u = RowOf(point, at);
      for (std::int64_t i = 0; i < n; ++i)
      {
        u[i] = IsRichardsonLucy() && !this->IsSeen(seen[i]) ? T(0) : u[i];
      }
    });
  }

  /** H^T w, and the first estimate, unless there is a later one. */
  void
  Begin(bool hasEstimate)
  {
    m_Sums = Sums();
    this->ForEachSlab(0, 0, [&](const Box & slab) {
      const BufferView ratio = m_Ratio->Place(slab, m_Rooms[0].Get());
      this->ReadWeights(slab, &ratio, nullptr);
      m_Ratio->Write(ratio);
    });
    const T      mean = this->TakeMean();
    const double share = 1.0 / static_cast<double>(2 * m_Operation.iterations + 1);
    this->ForEachSlab(0, share, [&](const Box & slab) {
      const BufferView norm = m_Norm->Place(slab, m_Rooms[0].Get());
      this->Convolve(m_Backward, *m_Ratio, norm, slab);
      m_Norm->Write(norm);
      if (hasEstimate)
      {
        return;
      }
      this->ForEachPiece(slab, [&](const Box & piece) {
        const BufferView point = m_Point->Place(piece, m_Rooms[1].Get());
        this->MakeStart(piece, norm, point, mean);
        m_Point->Write(point);
        if (m_Operation.accelerates)
        {
          const BufferView last = m_Last->Place(piece, m_Rooms[2].Get());
          this->Copy(piece, point, last);
          m_Last->Write(last);
        }
      });
    });
  }

  void
  FillStart(const Box & slab, const BufferView & point, T mean)
  {
    if (!m_Operation.hasStart)
    {
      this->ForEachRow(
        slab, [&](const Coordinates & at, std::int64_t n, RowSums &) { std::fill_n(RowOf(point, at), n, mean); });
      return;
    }
    const std::size_t number = m_Operation.hasWeights ? 2 : 1;
    for (std::int64_t plane = slab.lower[m_Axis]; plane < slab.upper[m_Axis]; ++plane)
    {
      Box box = m_Measured;
      box.lower[m_Axis] = std::min(std::max(plane, m_Measured.lower[m_Axis]), m_Measured.upper[m_Axis] - 1);
      box.upper[m_Axis] = box.lower[m_Axis] + 1;
      this->ReadMeasured(number, box, m_Values, m_Raw);
      const BufferView view = DenseView(m_Values.data(), Kind, box);
      this->ForEachRow(Planes(plane, plane + 1), [&](const Coordinates & at, std::int64_t n, RowSums &) {
        Coordinates from = at;
        for (int a = 0; a < MaxDimension; ++a)
        {
          from[a] = std::min(std::max(at[a], box.lower[a]), box.upper[a] - 1);
        }
        const T * const row = RowOf(view, from);
        T * const       out = RowOf(point, at);
        for (std::int64_t i = 0; i < n; ++i)
        {
          const std::int64_t x = std::min(std::max(at[0] + i, box.lower[0]), box.upper[0] - 1) - from[0];
          out[i] = std::isfinite(row[x]) && (row[x] > 0 || m_Operation.method == DeconvolutionMethod::Landweber)
                     ? row[x]
                     : T(0);
        }
      });
    }
  }

  void
  Copy(const Box & box, const BufferView & from, const BufferView & to)
  {
    this->ForEachRow(
      box, [&](const Coordinates & at, std::int64_t n, RowSums &) { std::copy_n(RowOf(from, at), n, RowOf(to, at)); });
  }

  bool
  IsSeen(T norm) const
  {
    return static_cast<double>(norm) > m_Operation.GetLeastSeen();
  }

  double
  Part(std::int64_t iteration, int pass) const
  {
    return static_cast<double>(2 * iteration + pass + 1) / static_cast<double>(2 * m_Operation.iterations + 1);
  }

  std::vector<int>
  ListDevices() const
  {
    std::vector<int> devices = m_Request.devices;
    if (devices.empty())
    {
      devices.resize(m_Manager.GetDevices().size());
      std::iota(devices.begin(), devices.end(), 0);
    }
    return devices;
  }

  /** Whether all weights are 0 and 1, so that NaN can say which. */
  bool
  IsMask()
  {
    std::atomic<bool> isMask{ true };
    for (std::int64_t lower = 0; m_Operation.hasWeights && isMask && lower < m_Measured.Extent(m_Axis);)
    {
      const std::int64_t upper = std::min(lower + this->CountPlanesRead(), m_Measured.Extent(m_Axis));
      Box                box = m_Measured;
      box.lower[m_Axis] = m_Measured.lower[m_Axis] + lower;
      box.upper[m_Axis] = m_Measured.lower[m_Axis] + upper;
      this->ReadMeasured(1, box, m_Weights, m_Raw);
      const BufferView view = DenseView(m_Weights.data(), Kind, box);
      this->ForEachRow(box, [&](const Coordinates & at, std::int64_t n, RowSums &) {
        const T * const w = RowOf(view, at);
        // NaN and negative weights count for nothing.
        if (std::any_of(w, w + n, [](T weight) { return weight > 0 && weight != 1; }))
        {
          isMask = false;
        }
      });
      lower = upper;
    }
    return isMask;
  }

  /** Takes room for all images on devices. False if they have it no more. */
  bool
  Hold()
  {
    m_OnDevices = DeconvolutionOnDevices::Make(m_Manager,
                                               this->ListDevices(),
                                               m_Request.budgets,
                                               m_Operation,
                                               Kind,
                                               !this->IsMask(),
                                               [this](const ExecutionReport & report) { this->AddReport(report); });
    return m_OnDevices != nullptr;
  }

  /** Reads the measured image and its weights in slabs; each goes to the devices while the next one is read. */
  void
  LoadMeasured()
  {
    std::vector<Box> slabs;
    this->ForEachSlab(0, 0, [&](const Box & slab) { slabs.push_back(slab); });
    // A slab's voxels are in one room, and its weights, if there are others than 0 and 1, in the next.
    const auto room = [](std::size_t i) { return static_cast<int>(i % 2 * 2); };
    const auto load = [&](std::size_t i) {
      m_OnDevices->LoadPlanes(DeconvolutionOnDevices::Measured, this->RoomOf(room(i), slabs[i]));
      if (m_OnDevices->HasWeights())
      {
        m_OnDevices->LoadPlanes(DeconvolutionOnDevices::Weights, this->RoomOf(room(i) + 1, slabs[i]));
      }
    };
    const auto read = [&](std::size_t i) {
      const BufferView measured = this->RoomOf(room(i), slabs[i]);
      const BufferView weights = this->RoomOf(room(i) + 1, slabs[i]);
      this->ReadWeights(slabs[i], m_OnDevices->HasWeights() ? &weights : nullptr, &measured);
    };
    this->Overlap(slabs.size(), read, load);
  }

  /** Calls one(i), and then other(i), for so many numbers: other(i) beside one(i + 1). */
  template <typename TOne, typename TOther>
  void
  Overlap(std::size_t count, TOne && one, TOther && other) const
  {
    for (std::size_t i = 0; i <= count; ++i)
    {
      if (m_Monitor && m_Monitor->ShouldAbort())
      {
        throw Aborted();
      }
      RunTogether(2, [&](std::size_t task) {
        if (task == 0 && i < count)
        {
          one(i);
        }
        if (task == 1 && i > 0)
        {
          other(i - 1);
        }
      });
    }
  }

  void
  BeginOnDevices(bool hasEstimate)
  {
    m_Sums = Sums();
    this->LoadMeasured();
    const T     mean = this->TakeMean();
    PartMonitor monitor(m_Monitor, 0, 1.0 / static_cast<double>(2 * m_Operation.iterations + 1));
    m_OnDevices->Weigh(&monitor);
    if (hasEstimate)
    {
      return;
    }
    if (m_Operation.hasStart)
    {
      this->ForEachSlab(0, 0, [&](const Box & slab) {
        const BufferView start = this->RoomOf(0, slab);
        this->FillStart(slab, start, mean);
        m_OnDevices->LoadPlanes(DeconvolutionOnDevices::Blurred, start);
      });
    }
    m_OnDevices->Start(m_Operation.hasStart, static_cast<double>(mean));
  }

  /** Iterations in which windows of planes go through a device's memory, if one has the room for that. From then on
   * m_Ratio is the measured image, NaN where it counts for nothing. */
  void
  OpenWindows()
  {
    if (!m_UsesDevices || m_OnDevices || HasNext() || m_Operation.discrepancy > 0 || !this->IsMask())
    {
      return;
    }
    m_Windows = DeconvolutionInWindows::Make(
      m_Manager, this->ListDevices(), m_Request.budgets, m_Operation, Kind, [this](const ExecutionReport & report) {
        this->AddReport(report);
      });
    if (!m_Windows)
    {
      return;
    }
    const std::vector<Box> slabs = m_Windows->GetSlabs();
    std::vector<char>      repeats(slabs.size(), 0);
    if (m_Plan.isInMemory)
    {
      m_Executor.ParallelFor(static_cast<std::int64_t>(slabs.size()), [&](std::int64_t i, unsigned int) {
        const auto k = static_cast<std::size_t>(i);
        repeats[k] = i > 0 && slabs[k].Extents() == slabs[k - 1].Extents() &&
                     std::memcmp(RowOf(m_Norm->Read(slabs[k], nullptr), slabs[k].lower),
                                 RowOf(m_Norm->Read(slabs[k - 1], nullptr), slabs[k - 1].lower),
                                 this->BytesOf(slabs[k])) == 0;
      });
    }
    m_Windows->SetRepeats(std::move(repeats));
    // The sums of these rows are known.
    const Sums sums = std::exchange(m_Sums, Sums());
    this->ForEachPiece(m_Grid, [&](const Box & piece) {
      const BufferView measured = m_Ratio->Place(piece, m_Rooms[1].Get());
      this->ReadWeights(piece, nullptr, &measured);
      m_Ratio->Write(measured);
    });
    m_Sums = sums;
  }

  /** Adds the figures of the iteration's point to the report. Whether the discrepancy ends the run there. */
  bool
  ReportMisfit(std::int64_t iteration, bool isAfterCorrect)
  {
    if (m_OnDevices)
    {
      const DeconvolutionSums sums = m_OnDevices->TakeBlurSums(isAfterCorrect);
      m_Sums.divergence.Set(sums.digits[0], sums.special[0]);
      m_Sums.misfit.Set(sums.digits[1], sums.special[1]);
    }
    const std::string number = std::to_string(iteration + 1);
    m_Report.execution.figures.emplace_back("divergence " + number, m_Sums.divergence.Round());
    const double misfit = m_Sums.misfit.Round() / m_WeightSum;
    m_Report.execution.figures.emplace_back("discrepancy " + number, misfit);
    return iteration > 0 && m_Operation.discrepancy > 0 && misfit <= m_Operation.discrepancy;
  }

  /** Both passes of an iteration in windows. */
  void
  IterateInWindows(std::int64_t iteration)
  {
    PartMonitor                  monitor(m_Monitor, Part(iteration, 0), Part(iteration, 2));
    DeconvolutionInWindows::Host host;
    host.planes = m_Plan.isInMemory ? m_Grid.Extent(m_Axis) : this->CountPlanesOfPiece(m_Plan);
    host.read = [this](DeconvolutionInWindows::Image image, const Box & planes) {
      return (image == DeconvolutionInWindows::Point      ? m_Point
              : image == DeconvolutionInWindows::Measured ? m_Ratio
                                                          : m_Norm)
        ->Read(planes, m_Rooms[1].Get());
    };
    host.place = [this](const Box & planes) { return m_Point->Place(planes, m_Rooms[2].Get()); };
    host.write = [this](const BufferView & planes) { m_Point->Write(planes); };
    const DeconvolutionInWindows::Sums sums = m_Windows->Iterate(host, m_Operation.relativeChange > 0, monitor);
    m_Sums.divergence.Set(sums.blur.digits[0], sums.blur.special[0]);
    m_Sums.misfit.Set(sums.blur.digits[1], sums.blur.special[1]);
    m_Sums.change.Set(sums.change.digits[0], sums.change.special[0]);
    m_Sums.size.Set(sums.change.digits[1], sums.change.special[1]);
  }

  /** H y, and of it the ratio, or the difference, of the measured image. */
  void
  Blur(std::int64_t iteration)
  {
    if (m_Windows)
    {
      this->IterateInWindows(iteration);
      return;
    }
    if (m_OnDevices)
    {
      PartMonitor monitor(m_Monitor, Part(iteration, 0), Part(iteration, 1));
      m_OnDevices->Blur(&monitor);
      return;
    }
    const T    background = static_cast<T>(m_Operation.background);
    const T    least = static_cast<T>(m_Operation.leastExpected);
    const bool isRatio = IsRichardsonLucy();
    this->ForEachSlab(Part(iteration, 0), Part(iteration, 1), [&](const Box & slab) {
      const Box region = Intersect(slab, m_Measured);
      if (region.IsEmpty())
      {
        return;
      }
      const BufferView ratio = m_Ratio->Place(slab, m_Rooms[0].Get());
      if (!m_Plan.isInMemory)
      {
        std::memset(ratio.data, 0, this->BytesOf(slab));
      }
      this->Convolve(m_Forward, *m_Point, ratio, region);
      this->ForEachMeasuredRow(slab,
                               [&](const Coordinates & at, std::int64_t n, const T * d, const T * w, RowSums & sums) {
                                 m_Rows.ratio(isRatio,
                                              RowOf(ratio, at),
                                              d,
                                              w,
                                              background,
                                              least,
                                              at[0],
                                              sums.divergence.GetLanes(),
                                              sums.misfit.GetLanes(),
                                              n);
                               });
      m_Ratio->Write(ratio);
    });
  }

  /** H^T, and the next estimate. */
  void
  Correct(std::int64_t iteration)
  {
    if (m_Windows)
    {
      return;
    }
    if (m_OnDevices)
    {
      PartMonitor monitor(m_Monitor, Part(iteration, 1), Part(iteration, 2));
      const auto  sums = m_OnDevices->Correct(iteration == 0, m_Operation.relativeChange > 0, &monitor);
      m_Sums.change.Set(sums.digits[0], sums.special[0]);
      m_Sums.size.Set(sums.digits[1], sums.special[1]);
      m_Sums.steps.Set(sums.digits[2], sums.special[2]);
      m_Sums.oldStep.Set(sums.digits[3], sums.special[3]);
      return;
    }
    this->ForEachSlab(Part(iteration, 1), Part(iteration, 2), [&](const Box & slab) {
      const BufferView correction = DenseView(m_Rooms[0].Get(), Kind, slab);
      this->Convolve(m_Backward, *m_Ratio, correction, slab);
      this->ForEachPiece(slab, [&](const Box & piece) { this->Update(iteration, piece, correction); });
    });
    if (m_Next)
    {
      // The estimate is the point from now on; with acceleration Extrapolate moves it.
      std::swap(m_Next, m_Point);
    }
  }

  /** The next estimate from a correction that contains the planes. */
  void
  Update(std::int64_t iteration, const Box & piece, const BufferView & correction)
  {
    const double     lambda = m_Operation.totalVariation;
    const T          relaxation = static_cast<T>(m_Operation.relaxation);
    const bool       isProjected = m_Operation.method == DeconvolutionMethod::ProjectedLandweber;
    const Box        around = lambda > 0 ? WithNeighbors(piece) : piece;
    const BufferView point = m_Point->Read(around, lambda > 0 ? WideRoom(around) : m_Rooms[1].Get());
    const BufferView norm = m_Norm->Read(piece, m_Rooms[2].Get());
    const BufferView next = m_Next ? m_Next->Place(piece, m_Rooms[3].Get()) : point;
    const BufferView step = !m_Step          ? BufferView()
                            : iteration == 0 ? m_Step->Place(piece, m_Rooms[4].Get())
                                             : m_Step->Read(piece, m_Rooms[4].Get());
    this->ForEachRow(piece, [&](const Coordinates & at, std::int64_t n, RowSums & sums) {
      const T * const c = RowOf(correction, at);
      const T * const y = RowOf(point, at);
      const T * const seen = RowOf(norm, at);
      T * const       u = RowOf(next, at);
      const bool      sumsUp = m_Operation.relativeChange > 0;
      std::vector<T>  kept;
      const T *       before = y;
      if (sumsUp && u == y)
      {
        kept.assign(y, y + n);
        before = kept.data();
      }
      if (IsRichardsonLucy() && lambda == 0)
      {
        m_Rows.update(u, y, c, seen, m_Operation.GetLeastSeen(), n);
      }
      for (std::int64_t i = 0; i < n && !IsRichardsonLucy(); ++i)
      {
        u[i] = LandweberUpdate(isProjected, y[i], c[i], relaxation);
      }
      for (std::int64_t i = 0; i < n && lambda > 0; ++i)
      {
        T after = 0;
        if (this->IsSeen(seen[i]))
        {
          Coordinates voxel = at;
          voxel[0] += i;
          const T curvature = static_cast<T>(lambda * this->CurvatureOf(point, voxel));
          after = RichardsonLucyUpdate(y[i], c[i], seen[i] - curvature);
        }
        u[i] = after;
      }
      if (sumsUp)
      {
        m_Rows.change(u, before, at[0], sums.change.GetLanes(), sums.size.GetLanes(), n);
      }
      if (m_Step)
      {
        const bool hasLast = iteration > 0;
        m_Rows.step(RowOf(step, at),
                    u,
                    y,
                    at[0],
                    hasLast ? sums.steps.GetLanes() : nullptr,
                    hasLast ? sums.oldStep.GetLanes() : nullptr,
                    n);
      }
    });
    (m_Next ? m_Next : m_Point)->Write(next);
    if (m_Step)
    {
      m_Step->Write(step);
    }
  }

  /** div(grad y / |grad y|) by forward differences of y, backward ones of its directions; there is no flux through the
   * grid's faces. */
  double
  CurvatureOf(const BufferView & y, const Coordinates & voxel) const
  {
    constexpr double least = 1e-12;
    const auto       value = [&](const Coordinates & at) { return static_cast<double>(*RowOf(y, at)); };
    // The flux along axis `a` from `at` to the next voxel.
    const auto flux = [&](Coordinates at, int a) {
      double here = value(at);
      double square = least;
      double along = 0;
      for (int b = 0; b < MaxDimension; ++b)
      {
        if (m_Grid.Extent(b) < 2 || at[b] + 1 >= m_Grid.upper[b])
        {
          continue;
        }
        Coordinates next = at;
        ++next[b];
        const double difference = value(next) - here;
        square += difference * difference;
        along = b == a ? difference : along;
      }
      return along / std::sqrt(square);
    };
    double sum = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (m_Grid.Extent(a) < 2)
      {
        continue;
      }
      sum += flux(voxel, a);
      if (voxel[a] > 0)
      {
        Coordinates before = voxel;
        --before[a];
        sum -= flux(before, a);
      }
    }
    return sum;
  }

  /** y = u + a (u - last u), and the last u becomes u. */
  void
  Extrapolate()
  {
    if (m_OnDevices)
    {
      m_OnDevices->Extrapolate(static_cast<double>(static_cast<T>(m_Acceleration)));
      return;
    }
    const T acceleration = static_cast<T>(m_Acceleration);
    this->ForEachPiece(m_Grid, [&](const Box & piece) {
      const BufferView estimate = m_Point->Read(piece, m_Rooms[1].Get());
      const BufferView last = m_Last->Read(piece, m_Rooms[2].Get());
      this->ForEachRow(piece, [&](const Coordinates & at, std::int64_t n, RowSums &) {
        T * const u = RowOf(estimate, at);
        T * const before = RowOf(last, at);
        for (std::int64_t i = 0; i < n; ++i)
        {
          const T now = u[i];
          u[i] = DeconvolutionPoint(m_Operation.method == DeconvolutionMethod::Landweber, now, before[i], acceleration);
          before[i] = now;
        }
      });
      m_Point->Write(estimate);
      m_Last->Write(last);
    });
  }

  void
  WriteResult()
  {
    ImageSink &                sink = *m_Request.sink;
    const PixelType            kind = sink.GetKind();
    std::vector<unsigned char> converted;
    const std::int64_t planes = m_OnDevices ? std::min(this->CountPlanesRead(), m_Plan.planes) : CountPlanesRead();
    std::vector<Box>   boxes;
    for (std::int64_t lower = m_Measured.lower[m_Axis]; lower < m_Measured.upper[m_Axis]; lower += planes)
    {
      Box box = m_Measured;
      box.lower[m_Axis] = lower;
      box.upper[m_Axis] = std::min(lower + planes, m_Measured.upper[m_Axis]);
      boxes.push_back(box);
    }
    BufferView estimates[2];
    const auto read = [&](std::size_t i) {
      const Box around = Planes(boxes[i].lower[m_Axis], boxes[i].upper[m_Axis]);
      estimates[i % 2] = m_OnDevices ? this->StoreOfDevices(m_Result, around, static_cast<int>(i % 2))
                                     : m_Point->Read(around, m_Plan.isInMemory ? nullptr : WideRoom(around));
    };
    const auto write = [&](std::size_t i) {
      const Box & box = boxes[i];
      Box         target = box;
      for (int a = 0; a < MaxDimension; ++a)
      {
        target.lower[a] -= m_Measured.lower[a];
        target.upper[a] -= m_Measured.lower[a];
      }
      converted.resize(static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind));
      const BufferView view = DenseView(converted.data(), kind, target);
      this->ForEachRow(box, [&](const Coordinates & at, std::int64_t n, RowSums &) {
        Coordinates to = at;
        for (int a = 0; a < MaxDimension; ++a)
        {
          to[a] -= m_Measured.lower[a];
        }
        ConvertVoxels(RowOf(estimates[i % 2], at),
                      Kind,
                      converted.data() + view.Offset(to) * static_cast<std::int64_t>(PixelSize(kind)),
                      kind,
                      n);
      });
      this->InThreads(target, this->CountThreads(sink.GetAccess()), [&](const Box & part) { sink.Write(part, view); });
    };
    if (m_OnDevices)
    {
      this->Overlap(boxes.size(), read, write);
      return;
    }
    for (std::size_t i = 0; i < boxes.size(); ++i)
    {
      read(i);
      write(i);
    }
  }

  const bool                             m_UsesDevices;
  Manager &                              m_Manager;
  const OutOfCoreRequest &               m_Request;
  const DeconvolutionOperation &         m_Operation;
  Monitor * const                        m_Monitor;
  Monitor *                              m_Part{ nullptr };
  const Box                              m_Grid;     ///< of the estimate
  const Box                              m_Measured; ///< the measured image in it
  const int                              m_Axis;     ///< along which slabs follow each other
  const std::shared_ptr<const Operation> m_Forward;
  const std::shared_ptr<const Operation> m_Backward;
  const std::unique_ptr<Executor>        m_OwnExecutor;
  Executor &                             m_Executor;
  const DeconvolutionRowFunctions<T> &   m_Rows{ GetDeconvolutionRowFunctions<T>() };
  DeconvolutionPlan                      m_Plan;
  /** The point y; the next estimate; the last one; the last step; w d / (H y + b); H^T w. */
  Image                      m_Point;
  Image                      m_Next;
  Image                      m_Last;
  Image                      m_Step;
  Image                      m_Ratio;
  Image                      m_Norm;
  DeconvolutionRoom          m_Rooms[5];
  DeconvolutionRoom          m_Wide;
  std::vector<unsigned char> m_Raw;
  std::vector<T>             m_Values;
  std::vector<T>             m_Weights;
  Sums                       m_Sums;
  /** Has all images; nullptr: the host has them. */
  std::unique_ptr<DeconvolutionOnDevices> m_OnDevices;
  DeconvolutionOnDevices::Image           m_Result{ DeconvolutionOnDevices::Point };
  /** Has windows of them; nullptr: devices convolve alone. */
  std::unique_ptr<DeconvolutionInWindows> m_Windows;
  double                                  m_WeightSum{ 1 };
  double                                  m_Acceleration{ 0 };
  OutOfCoreReport                         m_Report;
};

/** body(run), with the numbers that the operation computes in. */
template <typename TBody>
auto
WithDeconvolutionRun(Manager & manager, const OutOfCoreRequest & request, bool usesDevices, Monitor * monitor,
                     TBody && body)
{
  if (UsesDouble(dynamic_cast<const DeconvolutionOperation &>(*request.operation).inputKind))
  {
    DeconvolutionRun<double> run(manager, request, usesDevices, monitor);
    return body(run);
  }
  DeconvolutionRun<float> run(manager, request, usesDevices, monitor);
  return body(run);
}

/** Whether devices are to convolve. With BackendChoice::Auto they do if they can hold what they need. */
bool
UsesDevices(Manager & manager, const OutOfCoreRequest & request)
{
  if (request.backend != BackendChoice::CPU)
  {
    CheckDevices(manager, request.devices);
  }
  const std::string objection = request.operation->GetObjectionToDevices();
  if (request.backend != BackendChoice::Auto)
  {
    return request.backend == BackendChoice::CUDA;
  }
  if (!objection.empty() || manager.GetDevices().empty())
  {
    return false;
  }
  try
  {
    WithDeconvolutionRun(manager, request, true, nullptr, [&](auto & run) { return run.MakePlan(request.hostBytes); });
  }
  catch (const Error &)
  {
    return false;
  }
  return true;
}

class DeconvolutionRunner : public OutOfCoreRunner
{
public:
  int
  GetNumberOfPasses() const override
  {
    return 2;
  }
  bool
  KeepsStates() const override
  {
    return true;
  }
  std::uint64_t
  GetLeastHostBytes(Manager & manager, const OutOfCoreRequest & request) const override
  {
    const bool usesDevices = UsesDevices(manager, request);
    try
    {
      return WithDeconvolutionRun(
        manager, request, usesDevices, nullptr, [](auto & run) { return run.MakePlan(1).bytes; });
    }
    catch (const BudgetError & error)
    {
      return error.needed;
    }
  }
  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    const auto run = [&](bool usesDevices) {
      return WithDeconvolutionRun(manager, request, usesDevices, monitor, [](auto & one) { return one.Run(); });
    };
    const bool usesDevices = UsesDevices(manager, request);
    if (!usesDevices || request.backend == BackendChoice::CUDA)
    {
      return run(usesDevices);
    }
    try
    {
      return run(true);
    }
    catch (const DeviceError & error)
    {
      // From the start: iterations of one run are all computed in one place.
      // States that were kept are of devices: a later run may go on with them.
      OutOfCoreRequest again = request;
      again.states = nullptr;
      OutOfCoreReport report =
        WithDeconvolutionRun(manager, again, false, monitor, [](auto & one) { return one.Run(); });
      report.execution.warnings.push_back(std::string("the CPU computes, because a device failed: ") + error.what());
      return report;
    }
  }
};

} // namespace

const OutOfCoreRunner *
DeconvolutionOperation::GetOutOfCoreRunner() const
{
  static const DeconvolutionRunner runner;
  return &runner;
}

} // namespace chunkwise
