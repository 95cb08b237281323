/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseLabelSummary.h"
#include "chunkwiseOutOfCoreRunner.h"
#include "chunkwiseStreamedRun.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <utility>

// Labels of images that no memory holds, in blocks along the slowest axis. A first pass labels each block by itself and
// keeps, of the planes where two blocks meet, which of their labels are of one component. A second pass labels each
// block again, and writes the numbers.
namespace chunkwise
{

namespace
{

using Clock = std::chrono::steady_clock;

/** The numberings of blocks, one after the other. */
class Numberings
{
public:
  virtual ~Numberings() = default;
  virtual std::shared_ptr<const LabelNumbering>
  Make(std::size_t block) const = 0;
};

/** A key that no other numbering of the process has, of whatever type: tables of a device are found by it. */
std::string
MakeNumberingKey()
{
  static std::atomic<std::uint64_t> keys{ 0 };
  return std::to_string(++keys);
}

/** Labels the blocks of a stream as parts of an image. */
class LabelBlocks : public LabelOperation
{
public:
  explicit LabelBlocks(const LabelOperation & operation)
    : LabelOperation(operation)
  {}
  /** `mostNumbers`: as LabelOperation::largestNumber. */
  LabelBlocks(const LabelOperation & operation, std::shared_ptr<const Numberings> numberings, std::size_t block,
              std::uint64_t mostNumbers)
    : LabelOperation(operation)
    , m_Numberings(std::move(numberings))
    , m_Block(block)
  {
    numbering = m_Numberings->Make(block);
    largestNumber = mostNumbers;
  }
  bool
  HandsOnState() const override
  {
    return true;
  }
  std::shared_ptr<const Operation>
  MakeForNextBlock(const FinishedBlock &) const override
  {
    return std::make_shared<LabelBlocks>(*this, m_Numberings, m_Block + 1, largestNumber);
  }

private:
  std::shared_ptr<const Numberings> m_Numberings;
  std::size_t                       m_Block{ 0 };
};

int
SlowestAxis(const Coordinates & image)
{
  int axis = MaxDimension - 1;
  while (axis > 0 && image[axis] <= 1)
  {
    --axis;
  }
  return axis;
}

/** Labels a block in one chunk, for its faces and the number of its components. */
class LabelSummaryOfBlock : public LabelBlocks
{
public:
  /** `memory`: see TakeSummaryMemory. */
  LabelSummaryOfBlock(const LabelOperation & operation, const Box & block, ChunkState memory = ChunkState())
    : LabelBlocks(operation)
    , m_Memory(std::move(memory))
  {
    largestNumber = static_cast<std::uint64_t>(block.NumberOfVoxels());
    faceAxis = SlowestAxis(operation.image);
  }
  bool
  HasOutput() const override
  {
    return false;
  }
  Coordinates
  RoundChunk(const Coordinates &) const override
  {
    return image;
  }
  bool
  SummariesMerge() const override
  {
    return false;
  }
  ChunkState
  TakeSummaryMemory() const override
  {
    return std::move(m_Memory);
  }

private:
  mutable ChunkState m_Memory;
};

/** A plane of a block, in memory of a summary: labels, and values where the rule asks for them. */
struct BlockPlane
{
  const unsigned char * labels{ nullptr };
  const unsigned char * values{ nullptr };
  std::int64_t          voxels{ 0 };
  bool                  isWide{ false };

  std::uint64_t
  LabelAt(std::int64_t i) const
  {
    return isWide ? reinterpret_cast<const std::uint64_t *>(labels)[i]
                  : reinterpret_cast<const std::uint32_t *>(labels)[i];
  }
};

/** Joins components across the planes where blocks meet. Blocks come in ascending order, and the components of all are
 * numbered one after the other. Only components that belong to one with a smaller number are kept, with that number.
 * `TNumber`: 32 bits, or 64 for images of 2^31 voxels and more. */
template <typename TNumber>
class BlockJoiner : public Numberings
{
public:
  /** `mostBytes`: of memory that components in several blocks may take; 0: no limit. */
  BlockJoiner(const LabelOperation & operation, int axis, std::int64_t blocks, std::uint64_t mostBytes)
    : m_Operation(operation)
    , m_Axis(axis)
    , m_WrapsAround(operation.periodic[axis] && operation.image[axis] > 1)
    , m_MostBytes(mostBytes)
    , m_Begins(1, 0)
    , m_Parts(static_cast<std::size_t>(blocks))
  {
    // Neighbors in the plane before: offsets along the other axes.
    for (const Coordinates & offset : operation.GetOffsets())
    {
      if (offset[axis] == -1)
      {
        m_Offsets.push_back(offset);
        m_Offsets.back()[axis] = 0;
      }
    }
  }

  /** Adds a block by its summary, by `operation`. Returns memory for the next one. */
  ChunkState
  Add(const LabelOperation & operation, const Box & box, ChunkState summary, Executor & executor)
  {
    const std::size_t        block = m_Begins.size() - 1;
    const LabelSummaryLayout layout(operation, box);
    std::uint64_t            components = 0;
    for (std::int64_t row = 0; row < layout.rows; ++row)
    {
      std::uint32_t count = 0;
      std::memcpy(&count, summary.data() + static_cast<std::size_t>(row) * sizeof(count), sizeof(count));
      components += count;
    }
    m_Begins.push_back(m_Begins.back() + components);
    const BlockPlane first = this->PlaneOf(layout, summary, false);
    if (block > 0)
    {
      this->Join(block - 1, m_Last, block, first, executor);
    }
    if (block == 0 && m_WrapsAround)
    {
      m_First = this->Keep(first);
    }
    m_Last = this->PlaneOf(layout, summary, true);
    if (block + 1 == m_Parts.size() && m_WrapsAround)
    {
      this->Join(block, m_Last, 0, m_First, executor);
    }
    m_LastSummary.swap(summary);
    return summary;
  }

  /** When all blocks have come: gives the parts their labels. */
  void
  Number()
  {
    for (std::vector<Part> & parts : m_Parts)
    {
      for (Part & part : parts)
      {
        part.number = static_cast<TNumber>(this->Find(part.number));
      }
      m_PartsBefore.push_back(m_PartsBefore.back() + parts.size());
    }
    for (std::vector<Part> & parts : m_Parts)
    {
      for (Part & part : parts)
      {
        const std::size_t   block = this->BlockOf(part.number);
        const std::uint64_t inBlock = part.number - m_Begins[block];
        const auto          earlier = this->FindPart(block, inBlock) - m_Parts[block].begin();
        part.number -= static_cast<TNumber>(m_PartsBefore[block] + static_cast<std::uint64_t>(earlier));
      }
    }
    CheckNumberOfLabels(this->CountLabels(), m_Operation.outputKind);
  }

  /** After Number. */
  std::uint64_t
  CountLabels() const
  {
    return m_Begins.back() - m_PartsBefore.back();
  }

  std::shared_ptr<const LabelNumbering>
  Make(std::size_t block) const override
  {
    auto numbering = std::make_shared<LabelNumbering>();
    numbering->before = m_Begins[block] - m_PartsBefore[block];
    numbering->key = MakeNumberingKey();
    numbering->parts.reserve(m_Parts[block].size());
    for (const Part & part : m_Parts[block])
    {
      numbering->parts.push_back({ part.inBlock, part.number });
    }
    return numbering;
  }

private:
  /** Labels of two blocks that meet, which belong to one component; or their numbers. */
  using Pair = std::pair<TNumber, TNumber>;
  /** A component of a block, by its label there, that belongs to one with a smaller number. */
  struct Part
  {
    TNumber inBlock;
    TNumber number;
  };

  std::size_t
  BlockOf(std::uint64_t number) const
  {
    return static_cast<std::size_t>(std::lower_bound(m_Begins.begin(), m_Begins.end(), number) - m_Begins.begin()) - 1;
  }
  /** The part with the label, or where it would be. */
  typename std::vector<Part>::iterator
  FindPart(std::size_t block, std::uint64_t inBlock)
  {
    return std::lower_bound(m_Parts[block].begin(),
                            m_Parts[block].end(),
                            inBlock,
                            [](const Part & part, std::uint64_t label) { return part.inBlock < label; });
  }
  /** The part of this number; nullptr: it belongs to no other one so far. */
  Part *
  PartOf(std::uint64_t number)
  {
    const std::size_t   block = this->BlockOf(number);
    const std::uint64_t inBlock = number - m_Begins[block];
    const auto          found = this->FindPart(block, inBlock);
    return found != m_Parts[block].end() && found->inBlock == inBlock ? &*found : nullptr;
  }
  /** The smallest number of the component, so far. */
  std::uint64_t
  Find(std::uint64_t number)
  {
    std::uint64_t root = number;
    while (const Part * const part = this->PartOf(root))
    {
      root = part->number;
    }
    for (Part * part = this->PartOf(number); part; part = this->PartOf(number))
    {
      number = part->number;
      part->number = static_cast<TNumber>(root);
    }
    return root;
  }

  /** The plane at a face of the slowest axis; empty: it has no neighbors in other blocks. */
  BlockPlane
  PlaneOf(const LabelSummaryLayout & layout, const ChunkState & summary, bool isUpper) const
  {
    BlockPlane         plane;
    const auto * const end = layout.faces + layout.numberOfFaces;
    const auto * const face = std::find_if(
      layout.faces, end, [&](const LabelFace & each) { return each.axis == m_Axis && each.isUpper == isUpper; });
    if (face != end)
    {
      plane.labels = summary.data() + face->labels;
      plane.values = m_Operation.rule == LabelRule::Foreground ? nullptr : summary.data() + face->values;
      plane.voxels = face->voxels;
      plane.isWide = layout.labelBytes == sizeof(std::uint64_t);
    }
    return plane;
  }

  /** The same plane in memory that stays. */
  BlockPlane
  Keep(BlockPlane plane)
  {
    const auto        voxels = static_cast<std::size_t>(plane.voxels);
    const std::size_t bytes = voxels * (plane.isWide ? sizeof(std::uint64_t) : sizeof(std::uint32_t));
    m_FirstMemory.assign(plane.labels, plane.labels + bytes);
    if (plane.values)
    {
      m_FirstMemory.insert(m_FirstMemory.end(), plane.values, plane.values + voxels * PixelSize(m_Operation.inputKind));
      plane.values = m_FirstMemory.data() + bytes;
    }
    plane.labels = m_FirstMemory.data();
    return plane;
  }

  /** The value of a voxel in a plane, for rules that ask for values. */
  const void *
  ValueAt(const BlockPlane & plane, std::int64_t i) const
  {
    return plane.values ? plane.values + static_cast<std::size_t>(i) * PixelSize(m_Operation.inputKind) : nullptr;
  }

  static void
  SortAndRemoveDuplicates(std::vector<Pair> & pairs)
  {
    std::sort(pairs.begin(), pairs.end());
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  }

  /** Keeps which labels of the plane before belong to those of the plane after. */
  void
  Join(std::size_t blockBefore, const BlockPlane & before, std::size_t blockAfter, const BlockPlane & after,
       Executor & executor)
  {
    Coordinates extent = m_Operation.image;
    extent[m_Axis] = 1;
    const auto         rows = after.voxels / extent[0];
    const std::int64_t tasks = std::min<std::int64_t>(rows, executor.GetConcurrency());
    // Each task takes rows that follow each other.
    std::vector<std::vector<Pair>> found(static_cast<std::size_t>(tasks));
    executor.ParallelFor(tasks, [&](std::int64_t task, unsigned int) {
      std::vector<Pair> & pairs = found[static_cast<std::size_t>(task)];
      const std::int64_t  begin = rows * task / tasks;
      const std::int64_t  end = rows * (task + 1) / tasks;
      const auto          most = static_cast<std::size_t>((end - begin) * extent[0]);
      std::size_t         limit = most;
      pairs.reserve(most + m_Offsets.size() * static_cast<std::size_t>(extent[0]));
      for (std::int64_t row = begin; row < end; ++row)
      {
        this->FindPairs(before, after, extent, row, pairs);
        if (pairs.size() > limit)
        {
          SortAndRemoveDuplicates(pairs);
          limit = std::max(most, 2 * pairs.size());
        }
      }
      SortAndRemoveDuplicates(pairs);
    });
    std::vector<Pair> all;
    all.reserve(std::accumulate(found.begin(), found.end(), std::size_t{ 0 }, [](std::size_t sum, const auto & pairs) {
      return sum + pairs.size();
    }));
    for (std::vector<Pair> & pairs : found)
    {
      all.insert(all.end(), pairs.begin(), pairs.end());
      std::vector<Pair>().swap(pairs);
    }
    SortAndRemoveDuplicates(all);
    this->JoinNumbers(blockBefore, blockAfter, all);
  }

  /** The pairs of labels of a row of the plane after with those before, some of them several times. */
  void
  FindPairs(const BlockPlane & before, const BlockPlane & after, const Coordinates & extent, std::int64_t row,
            std::vector<Pair> & pairs) const
  {
    const std::int64_t width = extent[0];
    Coordinates        at{};
    for (std::int64_t a = 1, rest = row; a < MaxDimension; ++a)
    {
      at[static_cast<int>(a)] = rest % extent[static_cast<int>(a)];
      rest /= extent[static_cast<int>(a)];
    }
    for (const Coordinates & offset : m_Offsets)
    {
      std::int64_t other = 0;
      std::int64_t stride = 1;
      bool         isInside = true;
      for (int a = 1; a < MaxDimension; ++a)
      {
        std::int64_t beside = at[a] + offset[a];
        beside = m_Operation.periodic[a] ? (beside + extent[a]) % extent[a] : beside;
        isInside = isInside && beside >= 0 && beside < extent[a];
        other += beside * stride;
        stride *= extent[a];
      }
      if (!isInside)
      {
        continue;
      }
      Pair       last(0, 0);
      const auto add = [&](std::int64_t x, std::int64_t otherX) {
        const std::int64_t i = row * width + x;
        const std::int64_t j = other * width + otherX;
        const Pair         pair(static_cast<TNumber>(before.LabelAt(j)), static_cast<TNumber>(after.LabelAt(i)));
        if (pair.first != 0 && pair.second != 0 && pair != last &&
            m_Operation.AreAlike(this->ValueAt(before, j), this->ValueAt(after, i)))
        {
          pairs.push_back(pair);
          last = pair;
        }
      };
      const std::int64_t d = offset[0];
      for (std::int64_t x = std::max<std::int64_t>(0, -d); x < std::min(width, width - d); ++x)
      {
        add(x, x + d);
      }
      if (d != 0 && m_Operation.periodic[0])
      {
        d < 0 ? add(0, width - 1) : add(width - 1, 0);
      }
    }
  }

  /** Joins the components of pairs of labels. */
  void
  JoinNumbers(std::size_t blockBefore, std::size_t blockAfter, std::vector<Pair> & pairs)
  {
    std::vector<TNumber> numbers;
    numbers.reserve(2 * pairs.size());
    for (Pair & pair : pairs)
    {
      pair.first = static_cast<TNumber>(this->Find(m_Begins[blockBefore] + pair.first));
      pair.second = static_cast<TNumber>(this->Find(m_Begins[blockAfter] + pair.second));
      numbers.push_back(pair.first);
      numbers.push_back(pair.second);
    }
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    const auto indexOf = [&](std::uint64_t number) {
      return static_cast<std::size_t>(std::lower_bound(numbers.begin(), numbers.end(), number) - numbers.begin());
    };
    LabelSets sets(numbers.size());
    for (const Pair & pair : pairs)
    {
      sets.Join(indexOf(pair.first), indexOf(pair.second));
    }
    std::vector<Part> found;
    for (std::size_t i = 0; i < numbers.size();)
    {
      const std::size_t block = this->BlockOf(numbers[i]);
      found.clear();
      for (; i < numbers.size() && numbers[i] <= m_Begins[block + 1]; ++i)
      {
        const std::size_t root = sets.Find(i);
        if (root != i)
        {
          found.push_back({ static_cast<TNumber>(numbers[i] - m_Begins[block]), static_cast<TNumber>(numbers[root]) });
        }
      }
      this->AddParts(block, found);
    }
  }

  /** `found`: in ascending order, and none that is a part already. */
  void
  AddParts(std::size_t block, const std::vector<Part> & found)
  {
    if (found.empty())
    {
      return;
    }
    std::vector<Part> all(m_Parts[block].size() + found.size());
    std::merge(m_Parts[block].begin(),
               m_Parts[block].end(),
               found.begin(),
               found.end(),
               all.begin(),
               [](const Part & a, const Part & b) { return a.inBlock < b.inBlock; });
    m_Parts[block].swap(all);
    m_Bytes += found.size() * sizeof(Part);
    // The second pass has what two blocks need at a time.
    m_BytesOfBlock = std::max(m_BytesOfBlock, std::uint64_t{ 2 * sizeof(LabelOfPart) } * m_Parts[block].size());
    const std::uint64_t bytes = m_Bytes + m_BytesOfBlock;
    if (m_MostBytes && bytes > m_MostBytes)
    {
      throw BudgetError("components that lie in several blocks take more than the " + std::to_string(m_MostBytes) +
                          " bytes of the host's memory that are there for them",
                        static_cast<std::size_t>(bytes),
                        static_cast<std::size_t>(m_MostBytes));
    }
  }

  const LabelOperation &   m_Operation;
  const int                m_Axis;
  const bool               m_WrapsAround;
  const std::uint64_t      m_MostBytes;
  std::uint64_t            m_Bytes{ 0 };
  std::uint64_t            m_BytesOfBlock{ 0 };
  std::vector<Coordinates> m_Offsets;
  /** Numbers before those of each block, and of all. */
  std::vector<std::uint64_t> m_Begins;
  /** For each block, ascending. */
  std::vector<std::vector<Part>> m_Parts;
  /** Parts in the blocks before each block, and in all. */
  std::vector<std::uint64_t> m_PartsBefore{ 0 };
  BlockPlane                 m_First;
  ChunkState                 m_FirstMemory;
  BlockPlane                 m_Last;
  ChunkState                 m_LastSummary;
};

const LabelOperation &
GetLabel(const OutOfCoreRequest & request)
{
  return dynamic_cast<const LabelOperation &>(*request.operation);
}

/** Memory of planes beside that of blocks: those of two summaries, the first one if the axis is periodic, and the pairs
 * of labels of two planes. */
std::uint64_t
BytesOfPlanes(const LabelOperation & operation, int axis)
{
  const auto          voxels = static_cast<std::uint64_t>(Box::FromExtent(operation.image).NumberOfVoxels() /
                                                 std::max<std::int64_t>(1, operation.image[axis]));
  const std::uint64_t bytes = operation.IsWide() ? 8 : 4;
  const std::uint64_t values = operation.rule == LabelRule::Foreground ? 0 : PixelSize(operation.inputKind);
  // As many pairs as voxels, the numbers in them, and the sets of these. A block has labels of 32 bits.
  return voxels *
         ((operation.periodic[axis] ? 5 : 4) * (sizeof(std::uint32_t) + values) + 4 * bytes + 2 * sizeof(std::size_t));
}

/** One part in so many of the memory is for components that lie in several blocks. */
constexpr std::uint64_t PartForComponents = 4;

/** The request of the second pass, planned with the first one. */
StreamedRequest
MakePass(const OutOfCoreRequest & request)
{
  const LabelOperation & operation = GetLabel(request);
  StreamedRequest        pass;
  pass.inputs = { { request.sources.at(0), operation.inputKind } };
  pass.region = Box::FromExtent(operation.image);
  pass.computedKind = operation.outputKind;
  pass.writtenKind = operation.outputKind;
  pass.sinkAccess = request.sink->GetAccess();
  pass.operation = std::make_shared<LabelBlocks>(operation);
  pass.firstPass = [operation](ExecutionRequest division) {
    division.operation = std::make_shared<LabelSummaryOfBlock>(operation, division.region);
    return division;
  };
  // Planes between blocks are what the passes cost beside reading and writing.
  pass.fewestDivisions = true;
  pass.backend = request.backend;
  pass.devices = request.devices;
  pass.budgets = request.budgets;
  pass.executor = request.executor;
  pass.fileThreads = request.fileThreads;
  return pass;
}

/** Half of the progress. */
class PassMonitor : public Monitor
{
public:
  PassMonitor(Monitor * whole, double begin)
    : m_Whole(whole)
    , m_Begin(begin)
  {}
  void
  UpdateProgress(double progress) override
  {
    if (m_Whole)
    {
      m_Whole->UpdateProgress(m_Begin + progress / 2);
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
};

class LabelRunner : public OutOfCoreRunner
{
public:
  int
  GetNumberOfPasses() const override
  {
    return 2;
  }
  bool
  NeedsSpool() const override
  {
    return false;
  }

  std::uint64_t
  GetLeastHostBytes(Manager & manager, const OutOfCoreRequest & request) const override
  {
    const LabelOperation & operation = GetLabel(request);
    StreamedRequest        pass = MakePass(request);
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
    least += BytesOfPlanes(operation, SlowestAxis(operation.image));
    return least + least / (PartForComponents - 1) + 1;
  }

  OutOfCoreReport
  Run(Manager & manager, const OutOfCoreRequest & request, Monitor * monitor) const override
  {
    const LabelOperation & operation = GetLabel(request);
    StreamedRequest        pass = MakePass(request);
    const std::uint64_t    forComponents = request.hostBytes / PartForComponents;
    if (request.hostBytes)
    {
      const std::uint64_t others = forComponents + BytesOfPlanes(operation, SlowestAxis(operation.image));
      pass.memory = request.hostBytes > others ? request.hostBytes - others : 1;
    }
    const StreamedPlan plan = MakeStreamedPlan(manager, pass);
    return operation.IsWide() ? this->RunPasses<std::uint64_t>(manager, request, pass, plan, forComponents, monitor)
                              : this->RunPasses<std::uint32_t>(manager, request, pass, plan, forComponents, monitor);
  }

private:
  template <typename TNumber>
  OutOfCoreReport
  RunPasses(Manager & manager, const OutOfCoreRequest & request, StreamedRequest & pass, const StreamedPlan & plan,
            std::uint64_t forComponents, Monitor * monitor) const
  {
    const LabelOperation &          operation = GetLabel(request);
    OutOfCoreReport                 report;
    const std::unique_ptr<Executor> own = request.executor ? nullptr : MakeThreadExecutor();
    Executor &                      executor = request.executor ? *request.executor : *own;
    const auto joiner = std::make_shared<BlockJoiner<TNumber>>(operation, plan.axis, plan.divisions, forComponents);
    {
      PassMonitor firstPass(monitor, 0);
      ChunkState  spare;
      const auto  start = Clock::now();
      report.reading =
        ReadStreamed(manager, pass, plan, &firstPass, [&](const ExecutionRequest & division, Monitor * ofDivision) {
          ExecutionReport ofRun;
          const auto      summary = std::make_shared<LabelSummaryOfBlock>(operation, division.region, std::move(spare));
          ExecutionRequest run = division;
          run.operation = summary;
          spare = joiner->Add(*summary, run.region, manager.Summarise(run, ofDivision, &ofRun), executor);
          AddReport(report.execution, ofRun);
        });
      report.steps.emplace_back("finding components in blocks",
                                std::chrono::duration<double>(Clock::now() - start).count());
    }
    joiner->Number();
    PassMonitor         secondPass(monitor, 0.5);
    const std::uint64_t mostVoxels = static_cast<std::uint64_t>(GetDivision(pass.region, plan, 0).NumberOfVoxels());
    pass.operation = std::make_shared<LabelBlocks>(operation, joiner, 0, std::max(joiner->CountLabels(), mostVoxels));
    pass.firstPass = nullptr;
    const StreamedReport  second = ExecuteStreamed(manager, pass, plan, request.sink, &secondPass);
    const ExecutionReport first = std::exchange(report.execution, second.execution);
    AddReport(report.execution, first);
    report.reading += second.reading;
    report.writing = second.writing;
    report.steps.emplace_back("writing labels", second.computing);
    return report;
  }
};

} // namespace

const OutOfCoreRunner *
LabelOperation::GetOutOfCoreRunner() const
{
  static const LabelRunner runner;
  return &runner;
}

} // namespace chunkwise
