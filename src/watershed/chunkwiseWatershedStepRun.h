/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedStepRun_h
#define chunkwiseWatershedStepRun_h

#include "chunkwiseError.h"
#include "chunkwiseRoundUp.h"
#include "chunkwiseWatershedBasins.h"

#include <vector>

// The watershed of a chunk by steps that a runner takes on a device. A runner, made for a call, has
//   ForEach<VStep>(chunk, count): calls (chunk.*VStep)(i), a step, for all i below `count`;
//   Fill(to, byte, bytes) and CopyOnDevice(to, from, bytes);
//   CopyToDevice(to, from, bytes) and CopyToHost(to, from, bytes): the host's memory is the caller's again afterwards;
//   AddUp(counts, count, scratch): gives each number the sum of those before it;
//   BytesToAddUp<TId>(count): the scratch for it;
//   IsWide(box): whether voxels and trees of a chunk take numbers of 64 bits. These two are static.
namespace chunkwise
{

/** Offsets of a chunk's arrays in scratch. */
template <typename TId, typename TRunner>
struct WatershedStepScratch
{
  static constexpr std::int64_t MostBasinsOfFewVoxels = 64;

  WatershedStepScratch(const WatershedOperation & operation, const Box & box)
    : layout(operation, box)
    , voxels(box.NumberOfVoxels())
    , words(voxels / 32 + 1)
    // A tree without a root has two voxels or more.
    , trees(layout.border.voxels + voxels / 2 + (operation.sizes ? MostBasinsOfFewVoxels : 1))
    // Beside a minimum there are others but where the mask, or an axis without neighbors, parts voxels.
    , basins(operation.sizes ? std::min(voxels / 4 + MostBasinsOfFewVoxels, trees) : 0)
  {
    const std::int64_t wordsOfMinima = operation.hasMarkers ? 0 : words;
    counters = Take(1, sizeof(WatershedCounters));
    parents = Take(voxels, sizeof(TId));
    leads = Take(voxels, 1);
    best = Take(trees, sizeof(std::uint64_t));
    finals = Take(trees, sizeof(TId));
    nexts = Take(trees, sizeof(TId));
    lows = Take(operation.hasMarkers ? 0 : trees, sizeof(TId));
    minima = Take(wordsOfMinima, sizeof(std::uint32_t));
    minimaBefore = Take(wordsOfMinima, sizeof(TId));
    bytesToAddUp = operation.hasMarkers ? 0 : TRunner::template BytesToAddUp<TId>(words);
    toAddUp = Take(static_cast<std::int64_t>(bytesToAddUp), 1);
    // First the edges between them, then nodes.
    ofBasins = Take(static_cast<std::int64_t>(std::max(static_cast<std::size_t>(basins) * sizeof(WatershedBasinEdge),
                                                       WatershedBasinRun<TId, TRunner>::BytesOf(basins))),
                    1);
  }
  std::size_t
  Take(std::int64_t count, std::size_t size)
  {
    const std::size_t at = bytes;
    bytes += RoundUp(static_cast<std::size_t>(count) * size);
    return at;
  }

  WatershedLayout layout;
  std::int64_t    voxels;
  std::int64_t    words;
  std::int64_t    trees;  ///< at most
  std::int64_t    basins; ///< at most, if minima count by their sizes
  std::size_t     bytes{ 0 };
  std::size_t     counters;
  std::size_t     parents;
  std::size_t     leads;
  std::size_t     best;
  std::size_t     finals;
  std::size_t     nexts;
  std::size_t     lows;
  std::size_t     minima;
  std::size_t     minimaBefore;
  std::size_t     bytesToAddUp;
  std::size_t     toAddUp;
  std::size_t     ofBasins;
};

/** The results that kernels make of forests. */
enum class WatershedRole
{
  Summarize,
  Compute,
  Alone
};

template <typename TId, typename TRunner>
class WatershedStepRun
{
public:
  using Chunk = WatershedChunk<TId>;

  WatershedStepRun(const KernelCall & call, TRunner & runner, WatershedRole role)
    : m_Call(call)
    , m_Runner(runner)
    , m_Operation(static_cast<const WatershedOperation &>(*call.operation))
    , m_Scratch(m_Operation, call.writable)
    , m_Chunk(m_Operation, call.writable)
  {
    m_Chunk.isBlock = m_Operation.isBlock;
    if (role == WatershedRole::Alone && !m_Operation.isBlock)
    {
      // The chunk is a separate image.
      m_Chunk.border.count = 0;
      m_Chunk.border.voxels = 0;
    }
    m_Chunk.input = call.inputs[0].data;
    if (m_Operation.hasMarkers)
    {
      m_Chunk.markers = call.inputs[1].data;
      m_Chunk.markerKind = call.inputs[1].kind;
    }
    if (m_Operation.hasMask)
    {
      m_Chunk.mask = call.inputs[call.numberOfInputs - 1].data;
      m_Chunk.maskKind = call.inputs[call.numberOfInputs - 1].kind;
    }
    m_Chunk.drawsLines = m_Operation.lines;
    m_Chunk.output = call.output.data;
    m_Chunk.outputKind = call.output.kind;
    m_Chunk.largestLabel = GetLargestLabel(m_Operation.outputKind);
    m_Chunk.counters = this->At<WatershedCounters>(m_Scratch.counters);
    m_Chunk.parents = this->At<TId>(m_Scratch.parents);
    m_Chunk.leads = this->At<std::uint8_t>(m_Scratch.leads);
    m_Chunk.best = this->At<std::uint64_t>(m_Scratch.best);
    m_Chunk.finals = this->At<TId>(m_Scratch.finals);
    m_Chunk.nexts = this->At<TId>(m_Scratch.nexts);
    if (!m_Operation.hasMarkers)
    {
      m_Chunk.lows = this->At<TId>(m_Scratch.lows);
      m_Chunk.minima = this->At<std::uint32_t>(m_Scratch.minima);
      m_Chunk.minimaBefore = this->At<TId>(m_Scratch.minimaBefore);
    }
  }

  /** Gives each voxel its root, or the tree of the voxel of the border that is its root. False: the run is to stop. */
  bool
  FindRoots()
  {
    const std::int64_t voxels = m_Scratch.voxels;
    const std::int64_t border = m_Chunk.border.voxels;
    m_Runner.Fill(m_Chunk.counters, 0, sizeof(WatershedCounters));
    m_Runner.Fill(&m_Chunk.counters->wrongMarker, 0xFF, sizeof(std::uint64_t));
    this->template ForEach<&Chunk::Classify>(voxels);
    this->template ForEach<&Chunk::BeginBorder>(border);
    DispatchSize(m_Chunk.inputKind,
                 [&](auto key) { this->template ForEach<&Chunk::template JoinVoxel<decltype(key)>>(voxels); });
    this->template ForEach<&Chunk::NumberTree>(voxels);
    const WatershedCounters counters = this->ReadCounters();
    if (counters.wrongMarker != ~std::uint64_t{ 0 })
    {
      this->ThrowMarker(static_cast<std::int64_t>(counters.wrongMarker));
    }
    const std::int64_t trees = border + static_cast<std::int64_t>(counters.trees);
    if (!this->template Repeat<&Chunk::Flatten>(voxels))
    {
      return false;
    }
    if (!m_Operation.hasMarkers && border > 0)
    {
      this->template ForEach<&Chunk::LowerBorder>(voxels);
    }
    return this->JoinTrees(border, trees);
  }

  void
  WriteSummary()
  {
    const WatershedLayout & layout = m_Scratch.layout;
    auto * const            summary = static_cast<unsigned char *>(m_Call.sideOut);
    m_Runner.Fill(summary, 0, layout.summaryBytes);
    m_Chunk.nodes = reinterpret_cast<WatershedNode *>(summary + layout.nodes);
    m_Chunk.edges = reinterpret_cast<WatershedEdge *>(summary + layout.edges);
    m_Chunk.counts = reinterpret_cast<std::uint32_t *>(summary + layout.counts);
    if (m_Operation.isBlock)
    {
      m_Chunk.arrays = MakeWatershedBlockArrays(m_Operation, layout, summary);
    }
    // Edges name the trees of the border that these rounds join.
    this->template ForEach<&Chunk::Settle>(m_Scratch.voxels);
    if (!m_Operation.hasMarkers)
    {
      this->FindMinima(0);
    }
    this->template ForEach<&Chunk::WriteNode>(m_Chunk.border.voxels);
    m_Chunk.keepsEdges = true;
    if (!this->JoinTrees(0, m_Chunk.border.voxels))
    {
      return;
    }
    const auto edges = static_cast<std::int64_t>(this->ReadCounters().edges);
    m_Runner.CopyOnDevice(summary, &m_Chunk.counters->edges, sizeof(edges));
    if (!m_Operation.hasMarkers)
    {
      m_Operation.isBlock ? this->template ForEach<&Chunk::CountAll>(1)
                          : this->template ForEach<&Chunk::CountRow>(layout.rows);
    }
  }

  void
  WriteSolvedLabels()
  {
    const WatershedLayout & layout = m_Scratch.layout;
    const auto * const      solution = static_cast<const unsigned char *>(m_Call.sideIn);
    m_Chunk.labels = reinterpret_cast<const std::uint64_t *>(solution + layout.labels);
    if (!m_Operation.hasMarkers)
    {
      m_Chunk.offsets = reinterpret_cast<const std::uint64_t *>(solution + layout.offsets);
      m_Chunk.starts = reinterpret_cast<const std::int64_t *>(solution + layout.starts);
      this->FindMinima(static_cast<std::int64_t>((m_Call.sideInBytes - layout.starts) / sizeof(*m_Chunk.starts)));
    }
    this->template ForEach<&Chunk::WriteLabel>(m_Scratch.voxels);
    if (m_Operation.lines)
    {
      m_Chunk.lines = solution + layout.lines;
      this->template ForEach<&Chunk::DrawLineOfBorder>(m_Chunk.border.voxels);
    }
  }

  /** The chunk is a separate image, or a block, for which the operation has the results of other blocks. */
  void
  WriteOwnLabels()
  {
    const WatershedOutside * const outside = m_Operation.outside.get();
    if (!m_Operation.hasMarkers)
    {
      this->FindMinima(0);
      if (outside)
      {
        this->AddFurtherMinima(outside->starts);
        m_Chunk.minimaBeforeBlock = outside->before;
      }
      CheckNumberOfBasins(m_Chunk.minimaBeforeBlock + this->ReadNumberOfMinima(), m_Call.output.kind);
    }
    // No round follows: the arrays of edges and of where they lead are free.
    if (outside)
    {
      m_Runner.CopyToDevice(m_Chunk.best, outside->labels.data(), outside->labels.size() * sizeof(*m_Chunk.best));
      m_Chunk.labels = m_Chunk.best;
    }
    this->template ForEach<&Chunk::WriteLabel>(m_Scratch.voxels);
    if (outside && m_Operation.lines)
    {
      m_Runner.CopyToDevice(m_Chunk.nexts, outside->lines.data(), outside->lines.size());
      m_Chunk.lines = reinterpret_cast<const unsigned char *>(m_Chunk.nexts);
      this->template ForEach<&Chunk::DrawLineOfBorder>(m_Chunk.border.voxels);
    }
  }

  /** The chunk is a separate image, whose minima count by the sizes of their basins. */
  void
  WriteSizedLabels()
  {
    WatershedSizes & sizes = *m_Operation.sizes;
    this->template ForEach<&Chunk::Settle>(m_Scratch.voxels);
    this->FindMinima(0);
    const std::uint64_t basins = this->ReadNumberOfMinima();
    sizes.hasTooManyMinima = basins > std::min(static_cast<std::uint64_t>(m_Scratch.basins), sizes.mostMinima);
    if (sizes.hasTooManyMinima)
    {
      return;
    }
    this->template ForEach<&Chunk::BeginBasin>(m_Scratch.voxels);
    m_Chunk.keepsEdges = true;
    m_Chunk.basinEdges = this->At<WatershedBasinEdge>(m_Scratch.ofBasins);
    if (!this->JoinTrees(0, static_cast<std::int64_t>(basins)))
    {
      return;
    }
    std::vector<WatershedBasinEdge> edges(this->ReadCounters().edges);
    m_Runner.CopyToHost(edges.data(), m_Chunk.basinEdges, edges.size() * sizeof(edges[0]));
    WatershedBasinRun<TId, TRunner> run(
      m_Runner, m_Chunk, sizes, basins, std::move(edges), this->At<void>(m_Scratch.ofBasins));
    std::uint64_t                    count = 0;
    const std::vector<std::uint64_t> labels = run.FindLabels(count, [this] { return this->ShouldStop(); });
    CheckNumberOfBasins(count, m_Call.output.kind);
    if (labels.size() < basins)
    {
      return;
    }
    m_Runner.CopyToDevice(m_Chunk.best, labels.data(), labels.size() * sizeof(labels[0]));
    m_Chunk.labels = m_Chunk.best;
    this->template ForEach<&Chunk::SeparateBasin>(static_cast<std::int64_t>(basins));
    this->template ForEach<&Chunk::WriteLabel>(m_Scratch.voxels);
  }

private:
  /** More than any chunk needs: rounds at least halve trees, calls of a step at least double the ways they cover. */
  static constexpr int MostRounds = 80;

  template <typename T>
  T *
  At(std::size_t offset) const
  {
    return reinterpret_cast<T *>(static_cast<char *>(m_Call.scratch) + offset);
  }
  template <auto VStep>
  void
  ForEach(std::int64_t count)
  {
    if (count > 0)
    {
      m_Runner.template ForEach<VStep>(m_Chunk, count);
    }
  }
  bool
  ShouldStop() const
  {
    return m_Call.control && m_Call.control->ShouldStop();
  }
  WatershedCounters
  ReadCounters()
  {
    WatershedCounters counters{};
    m_Runner.CopyToHost(&counters, m_Chunk.counters, sizeof(counters));
    return counters;
  }
  [[noreturn]] static void
  ThrowEndless()
  {
    throw Error("the watershed's trees do not end");
  }

  /** Takes a step until all entries have come to their roots. Returns false if the run is to stop. */
  template <auto VStep>
  bool
  Repeat(std::int64_t count, WatershedCounters * last = nullptr)
  {
    for (int round = 0; round < MostRounds; ++round)
    {
      if (this->ShouldStop())
      {
        return false;
      }
      m_Runner.Fill(&m_Chunk.counters->unfinished, 0, sizeof(std::uint64_t));
      this->template ForEach<VStep>(count);
      const WatershedCounters counters = this->ReadCounters();
      if (counters.unfinished == 0)
      {
        if (last)
        {
          *last = counters;
        }
        return true;
      }
    }
    ThrowEndless();
  }

  /** Joins open trees, of which none has a number below `begin`, along their least edges until none has one. Returns
   * false if the run is to stop. */
  bool
  JoinTrees(std::int64_t begin, std::int64_t end)
  {
    m_Chunk.begin = static_cast<TId>(begin);
    m_Chunk.isFirst = true;
    WatershedCounters counters{};
    counters.open = static_cast<std::uint64_t>(end - begin);
    for (int round = 0; counters.open > 0; ++round)
    {
      if (round == MostRounds)
      {
        ThrowEndless();
      }
      this->template ForEach<&Chunk::BeginRound>(end - begin);
      DispatchSize(m_Chunk.inputKind, [&](auto key) {
        this->template ForEach<&Chunk::template FindEdge<decltype(key)>>(m_Scratch.voxels);
      });
      this->template ForEach<&Chunk::FindNext>(end - begin);
      m_Runner.Fill(&m_Chunk.counters->open, 0, sizeof(std::uint64_t));
      this->template ForEach<&Chunk::Hook>(end - begin);
      if (!this->template Repeat<&Chunk::FlattenTree>(end, &counters))
      {
        return false;
      }
      if (!m_Operation.hasMarkers)
      {
        this->template ForEach<&Chunk::LowerTree>(end);
      }
      m_Chunk.isFirst = false;
    }
    return true;
  }

  /** Adds minima to the ones of FindMinima, part by part through the array of edges. */
  void
  AddFurtherMinima(const std::vector<std::int64_t> & starts)
  {
    const std::size_t most = static_cast<std::size_t>(m_Scratch.trees);
    for (std::size_t first = 0; first < starts.size(); first += most)
    {
      const std::size_t count = std::min(most, starts.size() - first);
      m_Runner.CopyToDevice(m_Chunk.best, starts.data() + first, count * sizeof(starts[0]));
      m_Chunk.starts = reinterpret_cast<const std::int64_t *>(m_Chunk.best);
      this->template ForEach<&Chunk::MarkFurtherMinimum>(static_cast<std::int64_t>(count));
    }
    if (!starts.empty())
    {
      this->NumberMinima();
    }
  }
  /** After FindMinima. */
  std::uint64_t
  ReadNumberOfMinima()
  {
    // The last word has a bit that belongs to no voxel.
    TId count = 0;
    m_Runner.CopyToHost(&count, m_Chunk.minimaBefore + m_Scratch.words - 1, sizeof(count));
    std::uint32_t last = 0;
    m_Runner.CopyToHost(&last, m_Chunk.minima + m_Scratch.words - 1, sizeof(last));
    return count + static_cast<std::uint64_t>(CountBits(last));
  }
  void
  NumberMinima()
  {
    this->template ForEach<&Chunk::CountMinima>(m_Scratch.words);
    m_Runner.AddUp(m_Chunk.minimaBefore, m_Scratch.words, this->At<void>(m_Scratch.toAddUp), m_Scratch.bytesToAddUp);
  }
  /** Numbers the minima of the chunk; so many more are in the solution. */
  void
  FindMinima(std::int64_t further)
  {
    m_Runner.Fill(m_Chunk.minima, 0, static_cast<std::size_t>(m_Scratch.words) * sizeof(*m_Chunk.minima));
    this->template ForEach<&Chunk::MarkMinimum>(m_Scratch.voxels);
    this->template ForEach<&Chunk::MarkFurtherMinimum>(further);
    this->NumberMinima();
  }

  [[noreturn]] void
  ThrowMarker(std::int64_t v)
  {
    DispatchPixelType(m_Chunk.markerKind, [&](auto pixel) {
      m_Runner.CopyToHost(&pixel, static_cast<const decltype(pixel) *>(m_Chunk.markers) + v, sizeof(pixel));
      ThrowWrongMarker(std::to_string(pixel), m_Operation.outputKind);
    });
    throw Error("a kind of markers that is none");
  }

  const KernelCall &                       m_Call;
  TRunner &                                m_Runner;
  const WatershedOperation &               m_Operation;
  const WatershedStepScratch<TId, TRunner> m_Scratch;
  WatershedChunk<TId>                      m_Chunk;
};

template <WatershedRole VRole, typename TRunner>
void
RunWatershedSteps(const KernelCall & call)
{
  if (call.writable.IsEmpty())
  {
    return;
  }
  const auto run = [&](auto id) {
    TRunner                                 runner(call);
    WatershedStepRun<decltype(id), TRunner> steps(call, runner, VRole);
    if (!steps.FindRoots())
    {
      return;
    }
    const bool isSized = static_cast<const WatershedOperation &>(*call.operation).sizes != nullptr;
    if (isSized && VRole != WatershedRole::Alone)
    {
      throw Error("sizes of basins are not found in chunks");
    }
    if constexpr (VRole == WatershedRole::Summarize)
    {
      steps.WriteSummary();
    }
    else if constexpr (VRole == WatershedRole::Compute)
    {
      steps.WriteSolvedLabels();
    }
    else
    {
      isSized ? steps.WriteSizedLabels() : steps.WriteOwnLabels();
    }
  };
  TRunner::IsWide(call.writable) ? run(std::uint64_t{}) : run(std::uint32_t{});
}

template <typename TRunner>
std::size_t
ScratchOfWatershedSteps(const Operation & operation, const ChunkShape & shape)
{
  WatershedOperation watershed = static_cast<const WatershedOperation &>(operation);
  const Box          box = SurroundWatershedChunk(watershed, shape.outputBox);
  return TRunner::IsWide(box) ? WatershedStepScratch<std::uint64_t, TRunner>(watershed, box).bytes
                              : WatershedStepScratch<std::uint32_t, TRunner>(watershed, box).bytes;
}

template <typename TRunner>
KernelSet
MakeWatershedStepKernels(double (*cost)(const Operation & operation, const ChunkShape & shape))
{
  KernelSet kernels;
  Kernel    kernel;
  kernel.scratchBytes = ScratchOfWatershedSteps<TRunner>;
  kernel.cost = cost;
  kernel.run = RunWatershedSteps<WatershedRole::Summarize, TRunner>;
  kernels.summarize = kernel;
  kernel.run = RunWatershedSteps<WatershedRole::Alone, TRunner>;
  kernels.alone = kernel;
  kernel.run = RunWatershedSteps<WatershedRole::Compute, TRunner>;
  kernels.compute = kernel;
  return kernels;
}

} // namespace chunkwise

#endif
