/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionInWindows_h
#define chunkwiseDeconvolutionInWindows_h

#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseDeconvolutionStepper.h"
#include "chunkwiseError.h"
#include "chunkwiseManager.h"
#include "chunkwiseRegions.h"
#include "chunkwiseSharedTurns.h"
#include "chunkwiseThreads.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace chunkwise
{

/** Planes of an image that move through a device's memory in ascending order. */
class RollingPlanes
{
public:
  RollingPlanes(Manager & manager, int device, const Budgets & budgets, const Box & grid, int axis, PixelType kind,
                std::int64_t planes)
    : m_Grid(grid)
    , m_Axis(axis)
    , m_Kind(kind)
    , m_Box(grid)
    , m_Memory(manager.AllocateOnDevice(device, BytesOf(planes), budgets.device))
  {
    m_Box.upper[axis] = m_Box.lower[axis];
  }

  /** Goes on to these planes: keeps planes that are there already, and returns the others. */
  Box
  Move(Device & device, StreamHandle stream, std::int64_t lower, std::int64_t upper)
  {
    const std::int64_t kept = std::max<std::int64_t>(m_Box.upper[m_Axis] - std::max(lower, m_Box.lower[m_Axis]), 0);
    const std::int64_t shift = lower - m_Box.lower[m_Axis];
    // Parts that do not overlap their place.
    for (std::int64_t done = 0; kept > 0 && shift > 0 && done < kept; done += shift)
    {
      device.CopyOnDevice(At(done), At(done + shift), this->BytesOf(std::min(shift, kept - done)), stream);
    }
    device.Synchronize(stream);
    m_Box.lower[m_Axis] = lower;
    m_Box.upper[m_Axis] = upper;
    return this->Planes(lower + kept, upper);
  }
  /** Is to be filled with these planes. */
  void
  Set(const Box & planes)
  {
    m_Box = planes;
  }
  BufferView
  View() const
  {
    return DenseView(m_Memory->Get(), m_Kind, m_Box);
  }
  const DeviceMemory &
  GetMemory() const
  {
    return *m_Memory;
  }
  /** The begin of the planes of a box, in bytes. */
  std::size_t
  BeginOf(const Box & planes) const
  {
    return this->BytesOf(planes.lower[m_Axis] - m_Box.lower[m_Axis]);
  }
  void
  Empty()
  {
    m_Box = this->Planes(m_Grid.lower[m_Axis], m_Grid.lower[m_Axis]);
  }

private:
  Box
  Planes(std::int64_t lower, std::int64_t upper) const
  {
    Box box = m_Grid;
    box.lower[m_Axis] = lower;
    box.upper[m_Axis] = upper;
    return box;
  }
  std::size_t
  BytesOf(std::int64_t planes) const
  {
    return static_cast<std::size_t>(planes) *
           (DenseView(nullptr, m_Kind, m_Grid).NumberOfBytes() / static_cast<std::size_t>(m_Grid.Extent(m_Axis)));
  }
  char *
  At(std::int64_t planes) const
  {
    return static_cast<char *>(m_Memory->Get()) + this->BytesOf(planes);
  }

  const Box                     m_Grid;
  const int                     m_Axis;
  const PixelType               m_Kind;
  Box                           m_Box;
  std::shared_ptr<DeviceMemory> m_Memory;
};

/** Iterations on a device that has not the room for all images: windows of planes go through its memory. H y and the
 * ratio are computed for the planes that H^T needs for a slab, then H^T, and the next estimate of the slab. So an
 * iteration moves the point, the measured image and H^T w there, and the next point back, once each. Without
 * acceleration and total variation, for weights of 0 and 1. */
class DeconvolutionInWindows
{
public:
  using Reporter = std::function<void(const ExecutionReport & report)>;
  enum Image
  {
    Point,
    Measured, ///< NaN where its weight is 0
    Norm
  };
  /** The images of the host, on the grid of the estimate. One thread reads planes while another writes others. */
  struct Host
  {
    /** At most so many planes at a time. */
    std::int64_t                                               planes{ 1 };
    std::function<BufferView(Image image, const Box & planes)> read;
    /** Place for planes of the next point; and called when they are there. */
    std::function<BufferView(const Box & planes)>  place;
    std::function<void(const BufferView & planes)> write;
  };
  struct Sums
  {
    DeconvolutionSums blur{};   ///< of the ratio
    DeconvolutionSums change{}; ///< of the update
  };

  /** nullptr if no device has the room, or a kernel. */
  static std::unique_ptr<DeconvolutionInWindows>
  Make(Manager & manager, const std::vector<int> & devices, const Budgets & budgets,
       const DeconvolutionOperation & operation, PixelType kind, const Reporter & report)
  {
    for (const int device : devices)
    {
      if (!manager.GetDevices().at(static_cast<std::size_t>(device))->GetKernels().Find("deconvolution.step"))
      {
        continue;
      }
      try
      {
        std::unique_ptr<DeconvolutionInWindows> made(
          new DeconvolutionInWindows(manager, device, budgets, operation, kind, report));
        if (made->TakeMemory())
        {
          return made;
        }
      }
      catch (const Error &)
      {
        // Others have taken the memory meanwhile, or the device was lost.
      }
    }
    return nullptr;
  }

  /** The planes of each slab, in ascending order. */
  std::vector<Box>
  GetSlabs() const
  {
    std::vector<Box> slabs;
    for (const Slab & slab : m_Slabs)
    {
      slabs.push_back(slab.planes);
    }
    return slabs;
  }
  /** Says of each slab whether its planes of H^T w are, bit for bit, those of the slab before it. */
  void
  SetRepeats(std::vector<char> repeats)
  {
    m_Repeats = std::move(repeats);
  }

  /** An iteration of the host's images: the next point takes the place of the point. */
  Sums
  Iterate(const Host & host, bool sumsChange, Monitor & monitor)
  {
    SharedTurns               turns;
    const SharedTurns::Member member(turns);
    m_Stepper->Clear(DeconvolutionStepper::OfBlur);
    m_Stepper->Clear(DeconvolutionStepper::OfChange);
    m_Point->Empty();
    m_Ratio->Empty();
    const std::size_t count = m_Slabs.size();
    if (m_IsDouble)
    {
      this->Load(host, 0, this->MovePoint(0, 0));
    }
    for (std::size_t i = 0; i < count; ++i)
    {
      if (monitor.ShouldAbort())
      {
        throw Aborted();
      }
      std::vector<std::function<void()>> tasks;
      if (m_IsDouble)
      {
        tasks.emplace_back([&, i] { this->Compute(host, i, sumsChange); });
      }
      const std::size_t next = m_IsDouble ? i + 1 : i;
      if (next < count)
      {
        // Planes move before others use them.
        const Box fresh = this->MovePoint(i, next);
        tasks.emplace_back([&, next, fresh] { this->Load(host, next, fresh); });
      }
      if (i > 0)
      {
        tasks.emplace_back([&, i] { this->Store(host, i - 1); });
      }
      Together(turns, tasks);
      if (!m_IsDouble)
      {
        this->Compute(host, i, sumsChange);
      }
      monitor.UpdateProgress(static_cast<double>(i + 1) / static_cast<double>(count));
    }
    this->Store(host, count - 1);
    m_Report(this->TakeReport());
    Sums sums;
    sums.blur = m_Stepper->Take(DeconvolutionStepper::OfBlur);
    sums.change = m_Stepper->Take(DeconvolutionStepper::OfChange);
    return sums;
  }

private:
  struct Slab
  {
    Box planes{};
    /** The first plane and the one behind the last of the windows. */
    std::pair<std::int64_t, std::int64_t> point{};
    std::pair<std::int64_t, std::int64_t> ratio{};
  };
  /** Bytes of a slab from which on thicker ones save nothing. */
  static constexpr std::size_t FastSlab = std::size_t{ 128 } << 20;

  DeconvolutionInWindows(Manager & manager, int device, const Budgets & budgets,
                         const DeconvolutionOperation & operation, PixelType kind, Reporter report)
    : m_Manager(manager)
    , m_Number(device)
    , m_Device(*manager.GetDevices()[static_cast<std::size_t>(device)])
    , m_Budgets(budgets)
    , m_Grid(Box::FromExtent(operation.GetEstimateExtent()))
    , m_Kind(kind)
    , m_Report(std::move(report))
    , m_Forward(operation.MakeForward())
    , m_Backward(operation.MakeBackward())
    , m_Parameters(DeconvolutionParameters::Of(operation))
  {
    while (m_Axis > 0 && m_Grid.Extent(m_Axis) <= 1)
    {
      --m_Axis;
    }
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
  BytesOf(std::int64_t planes) const
  {
    return DenseView(nullptr, m_Kind, this->Planes(0, planes)).NumberOfBytes();
  }
  std::pair<std::int64_t, std::int64_t>
  InputOf(const Operation & operation, const Box & planes) const
  {
    const Box input = Intersect(GetInputBox(operation, planes, m_Grid), m_Grid);
    return { input.lower[m_Axis], input.upper[m_Axis] };
  }

  /** Slabs of so many planes, and their windows, which only go up. */
  void
  Cut(std::int64_t thickness)
  {
    m_Slabs.clear();
    const std::int64_t all = m_Grid.Extent(m_Axis);
    std::int64_t       made = 0;
    for (std::int64_t lower = 0; lower < all; lower += thickness)
    {
      Slab slab;
      slab.planes = this->Planes(lower, std::min(lower + thickness, all));
      slab.ratio = this->InputOf(*m_Backward, slab.planes);
      slab.ratio.second = std::max(slab.ratio.second, made);
      slab.point = { lower, slab.planes.upper[m_Axis] };
      const std::int64_t begin = std::max(made, slab.ratio.first);
      if (begin < slab.ratio.second)
      {
        const auto input = this->InputOf(*m_Forward, this->Planes(begin, slab.ratio.second));
        slab.point = { std::min(slab.point.first, input.first), std::max(slab.point.second, input.second) };
      }
      made = slab.ratio.second;
      if (!m_Slabs.empty())
      {
        slab.point.second = std::max(slab.point.second, m_Slabs.back().point.second);
      }
      m_Slabs.push_back(slab);
    }
    for (std::size_t i = m_Slabs.size() - 1; i-- > 0;)
    {
      m_Slabs[i].point.first = std::min(m_Slabs[i].point.first, m_Slabs[i + 1].point.first);
      m_Slabs[i].ratio.first = std::min(m_Slabs[i].ratio.first, m_Slabs[i + 1].ratio.first);
    }
  }

  /** The most planes of windows: the point's, the ratio's, a slab's, and those of the ratio that a slab adds. */
  struct Most
  {
    std::int64_t point{ 0 };
    std::int64_t twoPoints{ 0 }; ///< of the point, for a slab and the next one
    std::int64_t ratio{ 0 };
    std::int64_t slab{ 0 };
    std::int64_t added{ 0 };
  };
  Most
  FindMost() const
  {
    Most         most;
    std::int64_t made = 0;
    for (std::size_t i = 0; i < m_Slabs.size(); ++i)
    {
      const Slab & slab = m_Slabs[i];
      const Slab & next = m_Slabs[std::min(i + 1, m_Slabs.size() - 1)];
      most.twoPoints = std::max(most.twoPoints, next.point.second - slab.point.first);
      most.point = std::max(most.point, slab.point.second - slab.point.first);
      most.ratio = std::max(most.ratio, slab.ratio.second - slab.ratio.first);
      most.slab = std::max(most.slab, slab.planes.Extent(m_Axis));
      most.added = std::max(most.added, slab.ratio.second - std::max(made, slab.ratio.first));
      made = slab.ratio.second;
    }
    return most;
  }

  /** The bytes that convolutions take beside the windows. */
  std::size_t
  FindScratch() const
  {
    const KernelRegistry & kernels = m_Device.GetKernels();
    std::size_t            most = 0;
    std::int64_t           made = 0;
    const auto             look = [&](const Operation & operation, const Box & output) {
      const Kernel * const kernel = kernels.Find(operation.GetName());
      if (output.IsEmpty() || !kernel || !kernel->scratchBytes)
      {
        return;
      }
      ChunkShape shape;
      shape.image = m_Grid;
      shape.inputBox = Intersect(GetInputBox(operation, output, m_Grid), m_Grid);
      shape.outputBox = output;
      shape.inputKinds[0] = shape.outputKind = m_Kind;
      shape.numberOfInputs = 1;
      shape.kernels = &kernels;
      std::size_t bytes = kernel->scratchBytes(operation, shape);
      if (BytesOf(1) % 16 != 0)
      {
        // Kernels get copies of images that begin elsewhere.
        bytes += BytesOf(shape.inputBox.Extent(m_Axis)) + BytesOf(output.Extent(m_Axis));
      }
      most = std::max(most, bytes);
    };
    for (const Slab & slab : m_Slabs)
    {
      look(*m_Forward, this->Planes(std::min(std::max(made, slab.ratio.first), slab.ratio.second), slab.ratio.second));
      look(*m_Backward, slab.planes);
      made = slab.ratio.second;
    }
    return most;
  }

  bool
  TakeMemory()
  {
    const Coordinates  extent = m_Grid.Extents();
    const std::int64_t all = extent[m_Axis];
    const std::int64_t step =
      std::max({ m_Forward->GetTile(extent)[m_Axis], m_Backward->GetTile(extent)[m_Axis], std::int64_t{ 16 } });
    const std::size_t room = m_Manager.GetRoomOnDevice(m_Number, m_Budgets);
    // `piece`: planes of the measured image at a time.
    const auto needs = [&](std::int64_t thickness, std::int64_t piece) {
      this->Cut(thickness);
      const Most        most = this->FindMost();
      const std::size_t buffers = m_IsDouble ? 2 : 1;
      const std::size_t bytes =
        this->FindScratch() + BytesOf(m_IsDouble ? most.twoPoints : most.point) + BytesOf(most.ratio) +
        buffers * (BytesOf(2 * most.slab) + BytesOf(m_IsDouble ? most.added : std::min(piece, most.added)));
      // Arenas round up, and a sixteenth is for tables.
      return bytes + bytes / 16 + (std::size_t{ 1 } << 12);
    };
    // Slabs are loaded while others are computed, if there is room for that.
    std::int64_t thickness = 0;
    for (const bool isDouble : { true, false })
    {
      m_IsDouble = isDouble;
      for (std::int64_t next = step; thickness < all && needs(next, 1) <= room; next *= 2)
      {
        thickness = std::min(next, all);
        if (BytesOf(thickness) >= FastSlab)
        {
          break;
        }
      }
      if (thickness > 0)
      {
        break;
      }
    }
    if (thickness == 0)
    {
      return false;
    }
    this->Cut(thickness);
    const Most most = this->FindMost();
    m_Piece = m_IsDouble ? most.added : 1;
    while (m_Piece < most.added && needs(thickness, 2 * m_Piece) <= room)
    {
      m_Piece *= 2;
    }
    m_Piece = std::min(m_Piece, most.added);
    const auto make = [&](std::int64_t planes) {
      return std::make_unique<RollingPlanes>(m_Manager, m_Number, m_Budgets, m_Grid, m_Axis, m_Kind, planes);
    };
    m_Point = make(m_IsDouble ? most.twoPoints : most.point);
    m_Ratio = make(most.ratio);
    for (std::size_t buffer = 0; buffer < (m_IsDouble ? 2U : 1U); ++buffer)
    {
      m_Next[buffer] = make(most.slab);
      m_Norm[buffer] = make(most.slab);
      m_Measured[buffer] = make(m_Piece);
    }
    m_Stepper = std::make_unique<DeconvolutionStepper>(m_Manager, m_Number, m_Budgets, m_Grid);
    return true;
  }

  bool
  IsSame(std::size_t one, std::size_t other) const
  {
    for (std::size_t i = one + 1; i <= other; ++i)
    {
      if (i >= m_Repeats.size() || !m_Repeats[i])
      {
        return false;
      }
    }
    return one <= other;
  }

  /** Calls body(part) for parts of so many planes. */
  template <typename TBody>
  void
  InPieces(const Box & planes, std::int64_t most, TBody && body) const
  {
    for (std::int64_t lower = planes.lower[m_Axis]; lower < planes.upper[m_Axis]; lower += most)
    {
      body(this->Planes(lower, std::min(lower + most, planes.upper[m_Axis])));
    }
  }
  void
  LoadImage(const Host & host, Image image, const RollingPlanes & to, const Box & planes)
  {
    this->InPieces(planes, host.planes, [&](const Box & part) {
      m_Manager.CopyToDevice(to.GetMemory(), to.BeginOf(part), host.read(image, part), part, m_Grid, m_Budgets);
    });
    m_ToDevice += planes.NumberOfVoxels() * static_cast<std::int64_t>(PixelSize(m_Kind));
  }
  /** The buffer of a slab, where there are two. */
  std::size_t
  BufferOf(std::size_t slab) const
  {
    return m_IsDouble ? slab % 2 : 0;
  }
  /** The planes of the ratio that a slab adds. */
  Box
  AddedBy(std::size_t slab) const
  {
    const std::int64_t lower = m_Slabs[slab].ratio.first;
    const std::int64_t upper = m_Slabs[slab].ratio.second;
    return this->Planes(slab > 0 ? std::min(std::max(lower, m_Slabs[slab - 1].ratio.second), upper) : lower, upper);
  }
  /** The point's planes go on to those of two slabs; returns what is to be loaded. */
  Box
  MovePoint(std::size_t first, std::size_t last)
  {
    return m_Point->Move(m_Device, m_Stepper->GetStream(), m_Slabs[first].point.first, m_Slabs[last].point.second);
  }
  /** Everything that a slab needs, with these planes of the point. */
  void
  Load(const Host & host, std::size_t slab, const Box & fresh)
  {
    this->LoadImage(host, Point, *m_Point, fresh);
    if (m_HasNormOf >= m_Slabs.size() || !this->IsSame(m_HasNormOf, slab))
    {
      m_NormBuffer = m_IsDouble ? 1 - m_NormBuffer : 0;
      m_Norm[m_NormBuffer]->Set(m_Slabs[slab].planes);
      this->LoadImage(host, Norm, *m_Norm[m_NormBuffer], m_Slabs[slab].planes);
    }
    m_HasNormOf = slab;
    m_NormOf[slab % 2] = m_NormBuffer;
    Box piece = this->AddedBy(slab);
    piece.upper[m_Axis] = std::min(piece.upper[m_Axis], piece.lower[m_Axis] + m_Piece);
    this->LoadMeasured(host, slab, piece);
  }
  void
  LoadMeasured(const Host & host, std::size_t slab, const Box & planes)
  {
    RollingPlanes & measured = *m_Measured[this->BufferOf(slab)];
    measured.Set(planes);
    this->LoadImage(host, Measured, measured, planes);
  }
  void
  Store(const Host & host, std::size_t slab)
  {
    const RollingPlanes & next = *m_Next[this->BufferOf(slab)];
    this->InPieces(m_Slabs[slab].planes, host.planes, [&](const Box & part) {
      const BufferView view = host.place(part);
      m_Manager.CopyToHost(view, next.GetMemory(), next.BeginOf(part), part, m_Grid, m_Budgets);
      host.write(view);
    });
    m_ToHost += m_Slabs[slab].planes.NumberOfVoxels() * static_cast<std::int64_t>(PixelSize(m_Kind));
  }
  /** Calls all of them at once, the first one in the caller's thread. */
  static void
  Together(SharedTurns & turns, const std::vector<std::function<void()>> & tasks)
  {
    RunTogether(tasks.size(), [&](std::size_t task) {
      const SharedTurns::Member member(turns);
      tasks[task]();
    });
  }

  void
  Convolve(const std::shared_ptr<const Operation> & operation, const RollingPlanes & input,
           const RollingPlanes & output, const Box & region)
  {
    ExecutionRequest request;
    request.operation = operation;
    request.inputs = { input.View() };
    request.output = output.View();
    request.image = m_Grid;
    request.region = region;
    request.budgets = m_Budgets;
    m_Last = m_Manager.ExecuteOnDevice(request, m_Number, m_Stepper->GetStream());
    m_Report(m_Last);
  }
  /** The report of copies, beside those of convolutions. */
  ExecutionReport
  TakeReport()
  {
    ExecutionReport report;
    report.deviceNames = m_Last.deviceNames;
    report.chunksPerDevice.assign(m_Last.chunksPerDevice.size(), 0);
    report.bytesToDevice = static_cast<double>(m_ToDevice.exchange(0));
    report.bytesToHost = static_cast<double>(m_ToHost.exchange(0));
    return report;
  }
  /** The next point of a slab whose planes are there. */
  void
  Compute(const Host & host, std::size_t slab, bool sumsChange)
  {
    const Box & planes = m_Slabs[slab].planes;
    const Box   added =
      m_Ratio->Move(m_Device, m_Stepper->GetStream(), m_Slabs[slab].ratio.first, m_Slabs[slab].ratio.second);
    if (!added.IsEmpty())
    {
      this->Convolve(m_Forward, *m_Point, *m_Ratio, added);
    }
    const RollingPlanes & measured = *m_Measured[this->BufferOf(slab)];
    this->InPieces(added, m_Piece, [&](const Box & piece) {
      if (piece.lower[m_Axis] > added.lower[m_Axis])
      {
        m_Stepper->Synchronize();
        this->LoadMeasured(host, slab, piece);
      }
      m_Stepper->Run(DeconvolutionStep::Ratio,
                     m_Parameters,
                     { m_Ratio->View(), measured.View() },
                     m_Ratio->View(),
                     piece,
                     DeconvolutionStepper::OfBlur);
    });
    RollingPlanes & next = *m_Next[this->BufferOf(slab)];
    next.Set(planes);
    this->Convolve(m_Backward, *m_Ratio, next, planes);
    // It may be that of a slab before, whose planes are the same.
    const BufferView norm = DenseView(m_Norm[m_NormOf[slab % 2]]->GetMemory().Get(), m_Kind, planes);
    m_Stepper->Run(DeconvolutionStep::Update,
                   m_Parameters,
                   { next.View(), m_Point->View(), norm },
                   next.View(),
                   planes,
                   sumsChange ? DeconvolutionStepper::OfChange : DeconvolutionStepper::None);
    m_Stepper->Synchronize();
  }

  Manager &                              m_Manager;
  const int                              m_Number; ///< of the device
  Device &                               m_Device; ///< the manager has it for as long as it lives
  const Budgets                          m_Budgets;
  const Box                              m_Grid;
  int                                    m_Axis{ MaxDimension - 1 };
  const PixelType                        m_Kind;
  const Reporter                         m_Report;
  const std::shared_ptr<const Operation> m_Forward;
  const std::shared_ptr<const Operation> m_Backward;
  const DeconvolutionParameters          m_Parameters;
  std::vector<Slab>                      m_Slabs;
  std::vector<char>                      m_Repeats;
  std::size_t                            m_HasNormOf{ static_cast<std::size_t>(-1) };
  std::int64_t                           m_Piece{ 1 }; ///< planes of the measured image at a time
  std::unique_ptr<RollingPlanes>         m_Point;
  std::unique_ptr<RollingPlanes>         m_Ratio;
  /** Whether there is room for buffers of the next slab, too. */
  bool                                          m_IsDouble{ false };
  std::array<std::unique_ptr<RollingPlanes>, 2> m_Next;
  std::array<std::unique_ptr<RollingPlanes>, 2> m_Norm;
  std::array<std::unique_ptr<RollingPlanes>, 2> m_Measured;
  std::size_t                                   m_NormBuffer{ 0 }; ///< the one that was loaded last
  std::array<std::size_t, 2>                    m_NormOf{};        ///< the buffers of slabs of even and odd numbers
  std::unique_ptr<DeconvolutionStepper>         m_Stepper;         ///< ends before the images go
  /** Bytes of an iteration. */
  std::atomic<std::int64_t> m_ToDevice{ 0 };
  std::atomic<std::int64_t> m_ToHost{ 0 };
  ExecutionReport           m_Last;
};

} // namespace chunkwise

#endif
