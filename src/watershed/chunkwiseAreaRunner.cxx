/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAreaBlock.h"
#include "chunkwiseAreaMarkers.h"
#include "chunkwiseConvertVoxels.h"
#include "chunkwiseError.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseRunnerRun.h"
#include "chunkwiseSpool.h"

#include <chrono>
#include <cstring>

// Area openings and closings of images in memory and in files, in blocks along the slowest axis, see AreaOperation.
namespace chunkwise
{

namespace
{

/** One part in so many of the memory is for the tree of a plane. */
constexpr std::uint64_t PartForTree = 4;
/** It has room for at least so many nodes for each voxel. */
constexpr std::uint64_t NodesOfVoxel = 4;
/** A node of the tree of a plane: itself, a vertex of the join and what becomes of it. */
std::uint64_t
BytesOfNode(const AreaOperation & operation)
{
  return 2 * sizeof(AreaNode) + 64 + (operation.HasMarks() ? 3 * sizeof(AreaMark) : 0);
}

/** Codes, and then results, of the voxels where blocks meet: in a spool, or in memory where there is no folder for one.
 */
class AreaNotes
{
public:
  explicit AreaNotes(const std::string & folder)
    : m_IsInMemory(folder.empty())
    , m_Spool(folder)
  {}
  void
  Write(std::uint64_t place, const void * data, std::size_t bytes)
  {
    if (!m_IsInMemory)
    {
      const std::uint64_t end = place + bytes;
      m_Spool.Reserve(static_cast<std::size_t>(end > m_Spool.GetSize() ? end - m_Spool.GetSize() : 0));
      m_Spool.WriteAt(place, data, bytes);
      return;
    }
    m_Memory.resize(std::max(m_Memory.size(), static_cast<std::size_t>(place) + bytes));
    std::memcpy(m_Memory.data() + place, data, bytes);
  }
  void
  Read(std::uint64_t place, void * data, std::size_t bytes)
  {
    m_IsInMemory ? static_cast<void>(std::memcpy(data, m_Memory.data() + place, bytes))
                 : m_Spool.Read(place, data, bytes);
  }
  /** Before the first Write. */
  void
  Reserve(std::uint64_t bytes)
  {
    m_Memory.reserve(m_IsInMemory ? static_cast<std::size_t>(bytes) : 0);
  }
  std::uint64_t
  GetBytesWritten() const
  {
    return m_Spool.GetBytesWritten();
  }

private:
  const bool                 m_IsInMemory;
  std::vector<unsigned char> m_Memory;
  Spool                      m_Spool;
};

class AreaRun
{
public:
  AreaRun(const OutOfCoreRequest & request, Monitor * monitor)
    : m_Request(request)
    , m_Operation(dynamic_cast<const AreaOperation &>(*request.operation))
    , m_Monitor(monitor)
    , m_OwnExecutor(request.executor ? nullptr : MakeThreadExecutor())
    , m_Executor(request.executor ? *request.executor : *m_OwnExecutor)
  {
    while (m_Axis > 0 && m_Operation.image[m_Axis] <= 1)
    {
      --m_Axis;
    }
    m_All = m_Operation.image[m_Axis];
    m_Plane = Box::FromExtent(m_Operation.image).NumberOfVoxels() / m_All;
    m_Planes = std::min(m_All, std::max<std::int64_t>(1, m_Operation.blockVoxels / m_Plane));
    const auto & axes = m_Operation.axes;
    m_BlocksMeet = m_All > 1 && std::find(axes.begin(), axes.end(), m_Axis) != axes.end();
    m_Unit = std::max<std::int64_t>(1, request.sink->GetAccess().unit[m_Axis]);
    m_Held = request.sink->GetAccess().heldBytes;
    for (const std::shared_ptr<ImageSource> & source : request.sources)
    {
      m_Held += source->GetAccess().heldBytes;
    }
  }

  /** The bytes for blocks of so many planes, without the trees of planes. */
  std::uint64_t
  BytesOfBlock(std::int64_t planes) const
  {
    const auto          plane = static_cast<std::uint64_t>(m_Plane);
    const std::uint64_t converted =
      m_Operation.outputKind == m_Operation.inputKind ? 0 : PixelSize(m_Operation.outputKind);
    // Numbers of nodes, codes and results of the voxels where blocks meet.
    const std::uint64_t met = planes < m_All && m_BlocksMeet ? 2 * 4 + 2 * sizeof(AreaBlock::Code) + 5 * 8 : 0;
    const auto          places = static_cast<std::uint64_t>((m_All + planes - 1) / planes - 1);
    const std::uint64_t notes = met > 0 && m_Request.spoolFolder.empty() ? places * 2 * sizeof(AreaBlock::Code) : 0;
    const std::uint64_t masks =
      m_Operation.hasMask ? static_cast<std::uint64_t>(std::min(planes, this->GetPlanesAtOnce(this->GetMask()))) *
                              PixelSize(this->GetMask().GetKind())
                          : 0;
    return m_Held + AreaBlock::GetMostBytes(m_Operation, m_Axis, planes, m_Executor.GetConcurrency()) +
           plane * (converted + masks + (m_Operation.findsMarkers ? 0 : met + notes));
  }
  /** The most nodes of the tree of a plane: components below the size have a level for each of their voxels, and no
   * more than the pixel type has values. */
  std::uint64_t
  GetMostNodes() const
  {
    const auto          plane = static_cast<std::uint64_t>(m_Plane);
    const std::uint64_t all = plane * static_cast<std::uint64_t>(m_All);
    const std::size_t   bits = 8 * PixelSize(m_Operation.inputKind);
    std::uint64_t       size = m_Operation.size;
    if (m_Operation.attribute == AreaAttribute::Extent)
    {
      size = 1;
      for (const std::uint64_t extent : m_Operation.extents)
      {
        size = size > all / extent ? all : size * extent;
      }
    }
    else if (m_Operation.attribute != AreaAttribute::Area && IsFloatingPoint(m_Operation.inputKind))
    {
      // A step to the next value may be no volume, and next to no height.
      size = all;
    }
    const std::uint64_t levels = bits > 16 ? size : std::min(size, std::uint64_t{ 1 } << bits);
    return levels > all / plane ? all : plane * levels;
  }
  /** The bytes for blocks of so many planes, with room for the trees of planes. */
  std::uint64_t
  BytesOf(std::int64_t planes) const
  {
    const std::uint64_t block = this->BytesOfBlock(planes);
    const std::uint64_t nodes = std::min(this->GetMostNodes(), NodesOfVoxel * static_cast<std::uint64_t>(m_Plane));
    return planes >= m_All || !m_BlocksMeet
             ? block
             : block + std::max(block / (PartForTree - 1) + 1, nodes * BytesOfNode(m_Operation));
  }
  /** Before ChoosePlanes: with these one block is the image, or there are as few of them as can be. */
  std::uint64_t
  GetBytesOfLargestBlocks() const
  {
    return this->BytesOf(m_Planes);
  }
  std::uint64_t
  GetLeastBytes() const
  {
    std::uint64_t least = this->BytesOf(m_Planes);
    for (std::int64_t planes = m_Planes; planes > 0; planes = FewerPlanes(planes))
    {
      least = std::min(least, this->BytesOf(planes));
    }
    return least;
  }

  void
  FindMarkers(AreaMarkers & markers)
  {
    this->ChoosePlanes();
    AreaBlock          block(m_Operation, m_Axis, m_Executor.GetConcurrency());
    AreaPlane          before;
    const std::int64_t blocks = (m_All + m_Planes - 1) / m_Planes;
    m_Steps = static_cast<double>(blocks);
    for (std::int64_t i = 0; i < blocks; ++i)
    {
      const bool last = m_BlocksMeet && i + 1 < blocks;
      this->Load(block, i);
      block.Join(m_BlocksMeet && i > 0 ? &before : nullptr, false, last, m_Loop);
      markers.Add(block.GetMarkers());
      if (last)
      {
        before = block.TakeLastPlane();
        this->CheckTree(before);
      }
      ++m_Step;
    }
  }

  OutOfCoreReport
  Run()
  {
    const auto start = Clock::now();
    this->ChoosePlanes();
    AreaBlock          block(m_Operation, m_Axis, m_Executor.GetConcurrency());
    AreaNotes          notes(m_Request.spoolFolder);
    const std::int64_t blocks = (m_All + m_Planes - 1) / m_Planes;
    const bool         isJoined = m_BlocksMeet && blocks > 1;
    m_Steps = static_cast<double>(isJoined ? 2 * blocks : blocks);
    OutOfCoreReport report;
    if (isJoined)
    {
      this->FindResultsOfPlanes(block, notes, blocks);
      report.steps.emplace_back("joining blocks", SecondsSince(start) - m_Reading);
    }
    const auto                 second = Clock::now();
    const double               before = m_Reading;
    std::vector<std::uint64_t> border;
    for (std::int64_t i = 0; i < blocks; ++i)
    {
      const bool first = isJoined && i > 0;
      const bool last = isJoined && i + 1 < blocks;
      this->Load(block, i);
      border.assign(isJoined ? 2 * static_cast<std::size_t>(m_Plane) : 0, 0);
      this->ReadResults(notes, i, true, first, border.data());
      this->ReadResults(notes, i + 1, false, last, border.data() + (isJoined ? m_Plane : 0));
      block.Join(nullptr, first, last, m_Loop);
      block.Finish(border, m_Loop);
      this->Store(i);
      ++m_Step;
    }
    report.steps.emplace_back("computing results", SecondsSince(second) - (m_Reading - before) - m_Writing);
    report.reading = m_Reading;
    report.writing = m_Writing;
    report.waiting = m_Reading + m_Writing;
    report.spoolWritten = notes.GetBytesWritten();
    report.execution.backend = "cpu";
    report.execution.peakHost =
      static_cast<std::size_t>(AreaBlock::GetMostBytes(m_Operation, m_Axis, m_Planes, m_Executor.GetConcurrency()));
    if (m_Monitor)
    {
      m_Monitor->UpdateProgress(1.0);
    }
    return report;
  }

private:
  using Clock = std::chrono::steady_clock;

  void
  ChoosePlanes()
  {
    const std::uint64_t memory = m_Request.hostBytes;
    if (memory == 0)
    {
      return;
    }
    if (this->GetLeastBytes() > memory)
    {
      throw BudgetError(m_Operation.GetName() + " needs " + std::to_string(this->GetLeastBytes()) +
                          " bytes of host memory, more than the budget of " + std::to_string(memory) + " bytes",
                        this->GetLeastBytes(),
                        memory);
    }
    while (this->BytesOf(m_Planes) > memory)
    {
      m_Planes = FewerPlanes(m_Planes);
    }
    if (m_Planes < m_All && m_Planes > m_Unit && this->BytesOf(m_Planes / m_Unit * m_Unit) <= memory)
    {
      m_Planes = m_Planes / m_Unit * m_Unit;
    }
  }
  static std::int64_t
  FewerPlanes(std::int64_t planes)
  {
    return planes - (planes + 7) / 8;
  }

  void
  CheckAbort() const
  {
    if (m_Monitor && m_Monitor->ShouldAbort())
    {
      throw Aborted();
    }
  }
  static double
  SecondsSince(Clock::time_point start)
  {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }
  /** Planes that are read together: whole units of a file, some 64 MiB. */
  std::int64_t
  GetPlanesAtOnce(const ImageSource & source) const
  {
    constexpr std::int64_t bytes = std::int64_t{ 1 } << 26;
    const ImageAccess      access = source.GetAccess();
    const std::int64_t     unit = std::max<std::int64_t>(1, access.unit[m_Axis]);
    const std::int64_t     planes = bytes / (m_Plane * static_cast<std::int64_t>(PixelSize(source.GetKind())));
    return access.wholeBoxes ? m_All : std::max<std::int64_t>(1, planes / unit) * unit;
  }

  Box
  BoxOf(std::int64_t number) const
  {
    Box box = Box::FromExtent(m_Operation.image);
    box.lower[m_Axis] = number * m_Planes;
    box.upper[m_Axis] = std::min(m_All, (number + 1) * m_Planes);
    return box;
  }

  ImageSource &
  GetMask() const
  {
    return *m_Request.sources.back();
  }
  /** Calls f(part) for the parts of a block that are read at once. */
  template <typename TFunctor>
  void
  ForParts(const Box & block, const ImageSource & source, TFunctor && f) const
  {
    const std::int64_t step = this->GetPlanesAtOnce(source);
    Box                part = block;
    for (; part.lower[m_Axis] < block.upper[m_Axis]; part.lower[m_Axis] = part.upper[m_Axis])
    {
      this->CheckAbort();
      part.upper[m_Axis] = std::min(block.upper[m_Axis], (part.lower[m_Axis] / step + 1) * step);
      f(part);
    }
  }

  /** Reads a block and builds its trees. */
  void
  Load(AreaBlock & block, std::int64_t number)
  {
    m_Loop = [this](std::int64_t count, const std::function<void(std::int64_t, unsigned int)> & body) {
      const std::int64_t atOnce = 32 * static_cast<std::int64_t>(m_Executor.GetConcurrency());
      for (std::int64_t begin = 0; begin < count; begin += atOnce)
      {
        this->CheckAbort();
        m_Executor.ParallelFor(std::min(atOnce, count - begin),
                               [&](std::int64_t i, unsigned int worker) { body(begin + i, worker); });
      }
    };
    if (m_Monitor)
    {
      m_Monitor->UpdateProgress(m_Step / m_Steps);
    }
    m_View = block.Begin(this->BoxOf(number));
    const auto start = Clock::now();
    this->ForParts(m_View.box, *m_Request.sources.front(), [&](const Box & part) {
      BufferView to = m_View;
      to.box = part;
      to.data = static_cast<char *>(m_View.data) +
                m_View.Offset(part.lower) * static_cast<std::int64_t>(PixelSize(m_View.kind));
      m_Request.sources.front()->Read(part, to);
    });
    if (m_Operation.hasMask)
    {
      std::vector<unsigned char> voxels;
      this->ForParts(m_View.box, this->GetMask(), [&](const Box & part) {
        const PixelType kind = this->GetMask().GetKind();
        voxels.resize(static_cast<std::size_t>(part.NumberOfVoxels()) * PixelSize(kind));
        const BufferView mask = DenseView(voxels.data(), kind, part);
        this->GetMask().Read(part, mask);
        block.LeaveOut(part, mask);
      });
    }
    m_Reading += SecondsSince(start);
    block.Build(m_Loop);
  }

  void
  Store(std::int64_t number)
  {
    const Box  box = this->BoxOf(number);
    const auto start = Clock::now();
    if (m_Operation.outputKind == m_Operation.inputKind)
    {
      m_Request.sink->Write(box, m_View);
      m_Writing += SecondsSince(start);
      return;
    }
    std::vector<unsigned char> converted(static_cast<std::size_t>(m_Plane) * PixelSize(m_Operation.outputKind));
    for (Box plane = box; plane.lower[m_Axis] < box.upper[m_Axis]; ++plane.lower[m_Axis])
    {
      plane.upper[m_Axis] = plane.lower[m_Axis] + 1;
      const auto offset = static_cast<std::size_t>(m_View.Offset(plane.lower)) * PixelSize(m_Operation.inputKind);
      ConvertVoxels(static_cast<const unsigned char *>(m_View.data) + offset,
                    m_Operation.inputKind,
                    converted.data(),
                    m_Operation.outputKind,
                    m_Plane);
      m_Request.sink->Write(plane, DenseView(converted.data(), m_Operation.outputKind, plane));
    }
    m_Writing += SecondsSince(start);
  }

  /** The place in the notes of the last plane of the block before, and the first plane of the block. */
  std::uint64_t
  PlaceOf(std::int64_t number) const
  {
    return static_cast<std::uint64_t>(number - 1) * 2 * static_cast<std::uint64_t>(m_Plane) * sizeof(AreaBlock::Code);
  }
  void
  ReadResults(AreaNotes & notes, std::int64_t number, bool second, bool isThere, std::uint64_t * results) const
  {
    if (isThere)
    {
      const std::size_t bytes = static_cast<std::size_t>(m_Plane) * sizeof(*results);
      notes.Read(this->PlaceOf(number) + (second ? bytes : 0), results, bytes);
    }
  }

  /** The first pass: the notes get the keys of the results of all voxels where blocks meet. */
  void
  FindResultsOfPlanes(AreaBlock & block, AreaNotes & notes, std::int64_t blocks)
  {
    const auto                   plane = static_cast<std::size_t>(m_Plane);
    AreaPlane                    before;
    std::vector<AreaBlock::Code> codes(2 * plane);
    notes.Reserve(this->PlaceOf(blocks));
    for (std::int64_t i = 0; i < blocks; ++i)
    {
      this->Load(block, i);
      block.Join(i > 0 ? &before : nullptr, false, i + 1 < blocks, m_Loop);
      for (std::int64_t voxel = 0; voxel < m_Plane && i > 0; ++voxel)
      {
        codes[static_cast<std::size_t>(voxel)] = block.CodeOf(block.VertexBefore(voxel));
        codes[plane + static_cast<std::size_t>(voxel)] = block.CodeOf(block.VertexOf(false, voxel));
      }
      if (i > 0)
      {
        notes.Write(this->PlaceOf(i), codes.data(), codes.size() * sizeof(codes.front()));
      }
      if (i + 1 < blocks)
      {
        before = block.TakeLastPlane();
        this->CheckTree(before);
      }
      ++m_Step;
    }
    std::vector<std::uint64_t> last;
    std::vector<std::uint64_t> results(2 * plane);
    for (std::int64_t i = blocks - 1; i > 0; --i)
    {
      notes.Read(this->PlaceOf(i), codes.data(), codes.size() * sizeof(codes.front()));
      std::transform(codes.begin(), codes.end(), results.begin(), [&](const AreaBlock::Code & code) {
        return code.border == AreaBlock::NoBorder ? code.key : std::min(code.key, last[code.border - plane]);
      });
      notes.Write(this->PlaceOf(i), results.data(), results.size() * sizeof(results.front()));
      last.assign(results.begin(), results.begin() + m_Plane);
    }
  }

  /** For any image: one block, or blocks and the largest tree of a plane. */
  std::uint64_t
  GetEnoughBytes() const
  {
    const std::uint64_t blocks =
      (this->GetLeastBytes() + this->GetMostNodes() * BytesOfNode(m_Operation)) * PartForTree;
    return m_Operation.blockVoxels / m_Plane >= m_All ? std::min(blocks, this->BytesOf(m_All)) : blocks;
  }
  void
  CheckTree(const AreaPlane & tree) const
  {
    const std::uint64_t needed = tree.nodes.size() * BytesOfNode(m_Operation);
    if (m_Request.hostBytes > 0 && this->BytesOfBlock(m_Planes) + needed > m_Request.hostBytes)
    {
      throw BudgetError("components where blocks of the image meet need " + std::to_string(needed) +
                          " bytes of host memory, " +
                          std::to_string(m_Request.hostBytes - this->BytesOfBlock(m_Planes)) + " are there for them; " +
                          std::to_string(this->GetEnoughBytes()) + " bytes are enough for any image of this size",
                        this->GetEnoughBytes(),
                        m_Request.hostBytes);
    }
  }

  const OutOfCoreRequest &        m_Request;
  const AreaOperation &           m_Operation;
  Monitor * const                 m_Monitor;
  const std::unique_ptr<Executor> m_OwnExecutor;
  Executor &                      m_Executor;
  AreaLoop                        m_Loop;
  int                             m_Axis{ MaxDimension - 1 };
  std::int64_t                    m_All{ 1 };    ///< planes of the image
  std::int64_t                    m_Plane{ 1 };  ///< voxels
  std::int64_t                    m_Planes{ 1 }; ///< of a block; the most until ChoosePlanes
  std::int64_t                    m_Unit{ 1 };
  std::uint64_t                   m_Held{ 0 };
  bool                            m_BlocksMeet{ false };
  BufferView                      m_View{};
  double                          m_Steps{ 1 };
  double                          m_Step{ 0 };
  double                          m_Reading{ 0 }; ///< seconds
  double                          m_Writing{ 0 };
};

void
CheckRequest(const Manager & manager, const OutOfCoreRequest & request)
{
  if (request.backend != BackendChoice::CPU)
  {
    CheckDevices(manager, request.devices);
  }
}

class AreaRunner : public OutOfCoreRunner
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
    CheckRequest(manager, request);
    return AreaRun(request, nullptr).GetLeastBytes();
  }
  std::uint64_t
  GetBytesInMemory(const OutOfCoreRequest & request) const override
  {
    return AreaRun(request, nullptr).GetBytesOfLargestBlocks();
  }
  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    CheckRequest(manager, request);
    CheckBackend(request.backend, *request.operation);
    return AreaRun(request, monitor).Run();
  }
};

} // namespace

std::uint64_t
GetLeastBytesOfMarkers(const OutOfCoreRequest & request)
{
  return AreaRun(request, nullptr).GetLeastBytes();
}

std::uint64_t
GetBytesOfMarkersInMemory(const OutOfCoreRequest & request)
{
  return AreaRun(request, nullptr).GetBytesOfLargestBlocks();
}

void
FindAreaMarkers(const OutOfCoreRequest & request, AreaMarkers & markers, Monitor * monitor)
{
  AreaRun(request, monitor).FindMarkers(markers);
}

const OutOfCoreRunner *
AreaOperation::GetOutOfCoreRunner() const
{
  static const AreaRunner runner;
  return &runner;
}

} // namespace chunkwise
