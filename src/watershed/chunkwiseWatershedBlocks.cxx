/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseWatershedBlocks.h"

#include "chunkwiseDeviceMemory.h"
#include "chunkwiseError.h"
#include "chunkwiseWatershedJoin.h"
#include "chunkwiseWatershedStep.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace chunkwise
{

namespace
{

/** Codes that are read from the spool, or written, at once. */
constexpr std::size_t WatershedCodesAtOnce = 16384;
/** The fewest edges that are sorted at once. */
constexpr std::uint64_t LeastEdgesAtOnce = 4096;
/** The parts of the order that tasks sort take so many bytes for counts and samples. */
constexpr std::uint64_t BytesOfParts = std::uint64_t{ 1 } << 18;

template <typename TNumber>
class WatershedBlocksOf : public WatershedBlocks
{
public:
  WatershedBlocksOf(const WatershedOperation & operation, int axis, std::vector<Box> blocks, const Memory & memory,
                    const std::string & spoolFolder)
    : m_Operation(operation)
    , m_Blocks(std::move(blocks))
    , m_Planes(operation, axis)
    , m_Hidden(memory.minima)
    , m_EdgesAtOnce(std::max(memory.edges, LeastEdgesAtOf(m_Planes.voxels)))
    , m_Spool(spoolFolder)
  {}
  static std::uint64_t
  LeastEdgesAtOf(std::int64_t planeVoxels)
  {
    return std::max(LeastEdgesAtOnce, static_cast<std::uint64_t>(planeVoxels) / 2);
  }

  void
  Add(ChunkState && summary, Executor & executor) override
  {
    const std::size_t block = m_Before.size() - 1;
    ChunkState        own = std::move(summary);
    std::uint64_t     minima = 0;
    if (!m_Operation.hasMarkers)
    {
      std::memcpy(&minima, own.data() + WatershedLayout(m_Operation, m_Blocks[block]).counts, sizeof(minima));
    }
    if (m_Planes.voxels > 0 && m_Blocks.size() > 1)
    {
      WatershedStep<TNumber> step(m_Operation,
                                  m_Planes,
                                  m_Blocks[block],
                                  block + 1 == m_Blocks.size(),
                                  m_Forest,
                                  m_Before.back(),
                                  own,
                                  m_Hidden,
                                  executor);
      step.Join(m_EdgesAtOnce);
      step.FindHidden();
      this->WriteCodes(step);
      m_Forest = step.MakeForest();
    }
    m_Before.push_back(m_Before.back() + minima);
  }
  std::uint64_t
  GetNumberOfHidden() const override
  {
    return m_Hidden.count;
  }
  void
  Solve() override
  {
    m_Forest = WatershedPlaneForest<TNumber>();
    if (!m_Operation.hasMarkers)
    {
      CheckNumberOfBasins(m_Before.back() + m_Hidden.count, m_Operation.outputKind);
    }
    m_Hidden.Sort();
    std::vector<TNumber> last;
    for (std::size_t block = m_Blocks.size() - 1; block > 0 && m_Planes.voxels > 0; --block)
    {
      this->SolvePlanes(block, last);
    }
  }
  std::shared_ptr<const WatershedOutside>
  GetOutside(std::size_t block) const override;
  std::uint64_t
  GetBytesWritten() const override
  {
    return m_Spool.GetBytesWritten();
  }

private:
  using Index = std::size_t;

  Index
  PlaneVoxels() const
  {
    return static_cast<Index>(m_Planes.voxels);
  }
  /** The place in the spool of the codes of the last plane of the block before, and of the first plane of the block:
   * numbers, and behind these bytes, WatershedCode::Kind. */
  std::uint64_t
  PlaceOf(std::size_t block) const
  {
    return (block - 1) * 2 * this->PlaneVoxels() * (sizeof(TNumber) + 1);
  }
  std::uint64_t
  PlaceOfKinds(std::size_t block) const
  {
    return this->PlaceOf(block) + 2 * this->PlaneVoxels() * sizeof(TNumber);
  }

  void
  WriteCodes(WatershedStep<TNumber> & step)
  {
    const std::size_t block = m_Before.size() - 1;
    if (block == 0)
    {
      return;
    }
    m_Spool.Reserve(2 * this->PlaneVoxels() * (sizeof(TNumber) + 1));
    std::vector<TNumber>       numbers;
    std::vector<unsigned char> kinds;
    const Index                count = 2 * this->PlaneVoxels();
    for (Index begin = 0; begin < count; begin += numbers.size())
    {
      numbers.resize(std::min(count - begin, WatershedCodesAtOnce));
      kinds.resize(numbers.size());
      for (Index i = 0; i < numbers.size(); ++i)
      {
        const WatershedCode<TNumber> code = step.CodeOf(begin + i);
        numbers[i] = code.number;
        kinds[i] = static_cast<unsigned char>(code.kind);
      }
      m_Spool.WriteAt(this->PlaceOf(block) + begin * sizeof(TNumber), numbers.data(), numbers.size() * sizeof(TNumber));
      m_Spool.WriteAt(this->PlaceOfKinds(block) + begin, kinds.data(), kinds.size());
    }
  }

  TNumber
  LabelOf(const WatershedCode<TNumber> & code, const std::vector<TNumber> & plane) const
  {
    using Kind = typename WatershedCode<TNumber>::Kind;
    switch (code.kind)
    {
      case Kind::OfPlane:
        return plane[code.number];
      case Kind::Closed:
        return m_Operation.hasMarkers ? code.number
                                      : static_cast<TNumber>(code.number + m_Hidden.CountBefore(code.number) + 1);
      case Kind::Hidden:
        return m_Hidden.LabelOf(code.number);
      default:
        return 0;
    }
  }

  void
  SolvePlanes(std::size_t block, std::vector<TNumber> & last)
  {
    const Index                plane = this->PlaneVoxels();
    std::vector<TNumber>       labels(2 * plane);
    std::vector<unsigned char> kinds(labels.size());
    m_Spool.Read(this->PlaceOf(block), labels.data(), labels.size() * sizeof(TNumber));
    m_Spool.Read(this->PlaceOfKinds(block), kinds.data(), kinds.size());
    for (Index i = 0; i < labels.size(); ++i)
    {
      labels[i] = this->LabelOf({ labels[i], static_cast<typename WatershedCode<TNumber>::Kind>(kinds[i]) }, last);
    }
    m_Spool.WriteAt(this->PlaceOf(block), labels.data(), labels.size() * sizeof(TNumber));
    if (m_Operation.lines)
    {
      std::fill(kinds.begin(), kinds.end(), static_cast<unsigned char>(0));
      m_Planes.ForPairs(0, m_Planes.voxels, [&](std::int64_t before, std::int64_t after, int) {
        const TNumber a = labels[static_cast<Index>(before)];
        const TNumber b = labels[plane + static_cast<Index>(after)];
        if (a != b && a != 0 && b != 0)
        {
          kinds[a > b ? static_cast<Index>(before) : plane + static_cast<Index>(after)] = 1;
        }
      });
      m_Spool.WriteAt(this->PlaceOfKinds(block), kinds.data(), kinds.size());
    }
    labels.resize(plane);
    last.swap(labels);
  }

  const WatershedOperation      m_Operation;
  const std::vector<Box>        m_Blocks;
  const WatershedPlanes         m_Planes;
  WatershedHidden<TNumber>      m_Hidden;
  const std::uint64_t           m_EdgesAtOnce;
  mutable Spool                 m_Spool;
  WatershedPlaneForest<TNumber> m_Forest;
  std::vector<std::uint64_t>    m_Before{ 0 }; ///< minima before each block, without hidden ones
};

template <typename TNumber>
std::shared_ptr<const WatershedOutside>
WatershedBlocksOf<TNumber>::GetOutside(std::size_t block) const
{
  auto        outside = std::make_shared<WatershedOutside>();
  const Index plane = this->PlaneVoxels();
  const auto  add = [&](std::size_t of, Index begin) {
    const std::size_t    at = outside->labels.size();
    std::vector<TNumber> labels(plane);
    m_Spool.Read(this->PlaceOf(of) + begin * sizeof(TNumber), labels.data(), plane * sizeof(TNumber));
    outside->labels.resize(at + plane);
    std::copy(labels.begin(), labels.end(), outside->labels.begin() + static_cast<std::ptrdiff_t>(at));
    if (m_Operation.lines)
    {
      outside->lines.resize(at + plane);
      m_Spool.Read(this->PlaceOfKinds(of) + begin, &outside->lines[at], plane);
    }
  };
  if (plane > 0 && block > 0)
  {
    add(block, plane);
  }
  if (plane > 0 && block + 1 < m_Blocks.size())
  {
    add(block + 1, 0);
  }
  const Box & box = m_Blocks[block];
  const Index borderVoxels = static_cast<Index>(WatershedLayout(m_Operation, box).border.voxels);
  if (outside->labels.size() > borderVoxels)
  {
    // A block of one plane: both faces are its voxels.
    for (Index i = 0; i < outside->lines.size() / 2; ++i)
    {
      outside->lines[i] |= outside->lines[plane + i];
    }
    outside->labels.resize(borderVoxels);
    outside->lines.resize(m_Operation.lines ? borderVoxels : 0);
  }
  const std::int64_t first = m_Operation.RasterIndex(box.lower);
  outside->starts = m_Hidden.FindBetween(first, first + box.NumberOfVoxels());
  outside->before = m_Before[block] + m_Hidden.CountBelow(first);
  return outside;
}

std::shared_ptr<WatershedJoinOperation>
MakeWatershedJoin(const WatershedOperation & operation, const WatershedPlanes & planes, std::vector<Box> blocks)
{
  auto join = std::make_shared<WatershedJoinOperation>(operation);
  join->blocks = std::move(blocks);
  join->axis = planes.axis;
  join->planeVoxels = planes.voxels;
  join->offsets = planes.offsets;
  join->numbers = planes.numbers;
  return join;
}

class WatershedBlocksOnDevice : public WatershedBlocks
{
public:
  WatershedBlocksOnDevice(Manager & manager, int device, const Budgets & budgets, const WatershedOperation & operation,
                          int axis, std::vector<Box> blocks)
    : m_Manager(manager)
    , m_Device(device)
    , m_Budgets(budgets)
    , m_Planes(operation, axis)
    , m_Join(MakeWatershedJoin(operation, m_Planes, std::move(blocks)))
    , m_Nodes(m_Join->CountNodes())
  {
    if (m_Nodes > 0)
    {
      m_Summaries = manager.AllocateOnDevice(device, m_Join->CountBytes(), budgets.device);
      m_Join->summaries = m_Summaries->Get();
    }
  }

  void
  Add(ChunkState && summary, Executor &) override
  {
    const ChunkState own = std::move(summary);
    if (m_Nodes > 0)
    {
      const Box bytes = LineOf(static_cast<std::int64_t>(own.size()));
      m_Manager.CopyToDevice(*m_Summaries,
                             m_Taken,
                             DenseView(const_cast<unsigned char *>(own.data()), PixelType::UInt8, bytes),
                             bytes,
                             bytes,
                             m_Budgets);
    }
    m_Taken += own.size();
  }
  std::uint64_t
  GetNumberOfHidden() const override
  {
    return 0;
  }
  void
  Solve() override
  {
    if (m_Nodes == 0)
    {
      return;
    }
    m_Labels =
      m_Manager.AllocateOnDevice(m_Device, static_cast<std::size_t>(m_Nodes) * sizeof(std::uint32_t), m_Budgets.device);
    ExecutionRequest request;
    request.operation = m_Join;
    request.image = request.region = LineOf(m_Nodes);
    request.inputs = { DenseView(m_Summaries->Get(), PixelType::UInt8, request.region) };
    request.output = DenseView(m_Labels->Get(), PixelType::UInt32, request.region);
    request.budgets = m_Budgets;
    m_Manager.ExecuteOnDevice(request, m_Device, nullptr);
    m_Summaries.reset();
  }
  std::shared_ptr<const WatershedOutside>
  GetOutside(std::size_t block) const override
  {
    auto               outside = std::make_shared<WatershedOutside>();
    const std::int64_t first = this->CountBefore(block);
    const std::int64_t count = this->CountBefore(block + 1) - first;
    this->Read(first, count, outside->labels);
    if (m_Join->watershed.lines && count > 0)
    {
      outside->lines.resize(outside->labels.size());
      const auto                 lastPlane = outside->labels.size() - static_cast<std::size_t>(m_Planes.voxels);
      std::vector<std::uint64_t> beside;
      if (block > 0)
      {
        this->Read(first - m_Planes.voxels, m_Planes.voxels, beside);
        this->MarkLines(beside, *outside, 0, false);
      }
      if (block + 1 < m_Join->blocks.size())
      {
        this->Read(first + count, m_Planes.voxels, beside);
        this->MarkLines(beside, *outside, lastPlane, true);
      }
    }
    return outside;
  }
  std::uint64_t
  GetBytesWritten() const override
  {
    return 0;
  }

private:
  static Box
  LineOf(std::int64_t count)
  {
    return Box::FromExtent({ { count, 1, 1, 1, 1 } });
  }
  std::int64_t
  CountBefore(std::size_t block) const
  {
    std::int64_t nodes = 0;
    for (std::size_t i = 0; i < block; ++i)
    {
      nodes += WatershedBorder(m_Join->watershed, m_Join->blocks[i]).voxels;
    }
    return nodes;
  }
  void
  Read(std::int64_t first, std::int64_t count, std::vector<std::uint64_t> & labels) const
  {
    labels.clear();
    if (count == 0)
    {
      return;
    }
    std::vector<std::uint32_t> found(static_cast<std::size_t>(count));
    m_Manager.CopyToHost(DenseView(found.data(), PixelType::UInt32, LineOf(count)),
                         *m_Labels,
                         static_cast<std::size_t>(first) * sizeof(found[0]),
                         LineOf(count),
                         LineOf(count),
                         m_Budgets);
    labels.assign(found.begin(), found.end());
  }
  /** Marks the voxels of a plane of the block, whose first label is `plane`, that have a neighbor of a smaller label in
   * the plane `beside` of another block. */
  void
  MarkLines(const std::vector<std::uint64_t> & beside, WatershedOutside & outside, std::size_t plane,
            bool isBefore) const
  {
    m_Planes.ForPairs(0, m_Planes.voxels, [&](std::int64_t before, std::int64_t after, int) {
      const std::size_t   own = plane + static_cast<std::size_t>(isBefore ? before : after);
      const std::uint64_t other = beside[static_cast<std::size_t>(isBefore ? after : before)];
      if (other != 0 && outside.labels[own] > other)
      {
        outside.lines[own] = 1;
      }
    });
  }

  Manager &                                     m_Manager;
  const int                                     m_Device;
  const Budgets                                 m_Budgets;
  const WatershedPlanes                         m_Planes;
  const std::shared_ptr<WatershedJoinOperation> m_Join;
  const std::int64_t                            m_Nodes;
  std::size_t                                   m_Taken{ 0 };
  std::shared_ptr<DeviceMemory>                 m_Summaries;
  std::shared_ptr<DeviceMemory>                 m_Labels;
};

} // namespace

WatershedBlocks::~WatershedBlocks() = default;

std::shared_ptr<WatershedBlocks>
WatershedBlocks::Create(const WatershedOperation & operation, int axis, std::vector<Box> blocks, const Memory & memory,
                        const std::string & spoolFolder)
{
  if (operation.isSmallBlock)
  {
    return std::make_shared<WatershedBlocksOf<std::uint32_t>>(operation, axis, std::move(blocks), memory, spoolFolder);
  }
  return std::make_shared<WatershedBlocksOf<std::uint64_t>>(operation, axis, std::move(blocks), memory, spoolFolder);
}

std::shared_ptr<WatershedBlocks>
WatershedBlocks::CreateOnDevice(Manager & manager, int device, const Budgets & budgets,
                                const WatershedOperation & operation, int axis, std::vector<Box> blocks)
{
  return std::make_shared<WatershedBlocksOnDevice>(manager, device, budgets, operation, axis, std::move(blocks));
}

WatershedBlocks::BytesOnDevice
WatershedBlocks::GetBytesOnDevice(const WatershedOperation & operation, int axis, std::int64_t planes)
{
  std::vector<Box> blocks;
  for (std::int64_t first = 0; first < operation.image[axis]; first += planes)
  {
    blocks.push_back(Box::FromExtent(operation.image));
    blocks.back().lower[axis] = first;
    blocks.back().upper[axis] = std::min(operation.image[axis], first + planes);
  }
  const auto join = MakeWatershedJoin(operation, WatershedPlanes(operation, axis), std::move(blocks));
  const auto nodes = static_cast<std::uint64_t>(join->CountNodes());
  if (nodes >= std::uint64_t{ 1 } << 31)
  {
    return { UINT64_MAX, UINT64_MAX };
  }
  // Allocations are rounded up.
  constexpr std::uint64_t Rounding = std::uint64_t{ 1 } << 16;
  const std::uint64_t     held = join->CountBytes() + Rounding;
  return { held, held + nodes * sizeof(std::uint32_t) + WatershedJoinScratch(*join).bytes + Rounding };
}

std::uint64_t
WatershedBlocks::GetBytesBesideDevice(const WatershedOperation & operation, int axis)
{
  Box        block = Box::FromExtent(operation.image);
  const auto planes = block.Extent(axis);
  block.lower[axis] = std::min<std::int64_t>(1, planes - 1);
  block.upper[axis] = std::max(block.lower[axis] + 1, planes - 1);
  return WatershedLayout(operation, block).summaryBytes;
}

bool
WatershedBlocks::AreSmall(const WatershedOperation & operation, int axis, const Box & block)
{
  return PixelSize(operation.inputKind) <= 4 && PixelSize(operation.outputKind) <= 4 && !IsWideWatershed(block) &&
         4 * WatershedPlanes(operation, axis).voxels < std::numeric_limits<std::uint32_t>::max();
}

std::uint64_t
WatershedBlocks::GetBytes(const WatershedOperation & operation, int axis, bool areThin, std::uint64_t edgesAtOnce)
{
  const WatershedPlanes planes(operation, axis);
  const auto            voxels = static_cast<std::uint64_t>(planes.voxels);
  const bool            isSmall = operation.isSmallBlock;
  const std::uint64_t   number = isSmall ? 4 : 8;
  const std::uint64_t   ofEdge =
    isSmall ? sizeof(WatershedBlockEdge<std::uint32_t>) : sizeof(WatershedBlockEdge<std::uint64_t>);
  const std::uint64_t ofNode = operation.hasMarkers ? 2 * number + 1 : 3 * number + sizeof(std::int64_t);
  // The forest before, the block's faces, the edges of the forest after: its nodes take the place of sorted edges.
  const std::uint64_t faces = areThin ? 1 : 2;
  const std::uint64_t ofForests = (1 + faces) * (ofNode + ofEdge) + ofEdge;
  // Trees, and those of roots.
  const std::uint64_t ofTrees =
    operation.hasMarkers ? (1 + faces) * (3 * number + 1) + 2 * number + 1 : (1 + faces) * 3 * number + 2 * number;
  edgesAtOnce = std::max(edgesAtOnce, WatershedBlocksOf<std::uint32_t>::LeastEdgesAtOf(planes.voxels));
  const std::uint64_t ofEntry = ofEdge + (operation.hasMarkers ? 2 * number : 0);
  return voxels == 0 ? 0
                     : voxels * (ofForests + ofTrees) + edgesAtOnce * ofEntry + BytesOfParts +
                         static_cast<std::uint64_t>(operation.image[axis]) * (sizeof(Box) + sizeof(std::uint64_t));
}

} // namespace chunkwise
