/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedJoin_h
#define chunkwiseWatershedJoin_h

#include "chunkwiseError.h"
#include "chunkwiseRoundUp.h"
#include "chunkwiseWatershedSteps.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// A device joins the blocks of an image with markers: Boruvka's algorithm on the voxels of all faces, which are a
// graph, by steps as those of a chunk (chunkwiseWatershedSteps.h).
namespace chunkwise
{

/** The labels of the voxels on the faces of all blocks, in the order of blocks and, in each, of WatershedBorder, as one
 * line of voxels. The image is as long, and is not read. */
class WatershedJoinOperation : public Operation
{
public:
  explicit WatershedJoinOperation(const WatershedOperation & operation)
    : watershed(operation)
  {}

  /** Its summaries have numbers of 32 bits. */
  WatershedOperation watershed;
  /** Whole planes of the slowest axis, in ascending order. */
  std::vector<Box> blocks;
  /** The device's memory with the summaries of all blocks, in their order, each from a multiple of 8 bytes on. */
  const void * summaries{ nullptr };
  /** The slowest axis, the voxels of one of its planes, and the neighbors of a voxel in the next plane: their offsets,
   * and which of the neighbors behind the voxel they are. */
  int                      axis{ 0 };
  std::int64_t             planeVoxels{ 0 };
  std::vector<Coordinates> offsets;
  std::vector<int>         numbers;

  std::string
  GetName() const override
  {
    return "watershed join";
  }
  std::string
  GetKey() const override
  {
    return watershed.GetKey() + " join of " + std::to_string(blocks.size());
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  void
  CheckKinds(const std::vector<PixelType> &, PixelType) const override
  {}
  Coordinates
  RoundChunk(const Coordinates &) const override
  {
    return Coordinates{ { this->CountNodes(), 1, 1, 1, 1 } };
  }

  std::int64_t
  CountNodes() const
  {
    std::int64_t nodes = 0;
    for (const Box & block : blocks)
    {
      nodes += WatershedBorder(watershed, block).voxels;
    }
    return nodes;
  }
  std::size_t
  CountBytes() const
  {
    std::size_t bytes = 0;
    for (const Box & block : blocks)
    {
      bytes += WatershedLayout(watershed, block).summaryBytes;
    }
    return bytes;
  }
};

/** The graph and its arrays. The trees of nodes are numbered as nodes are. `finals` says for each tree to which other
 * one it belongs now: with the highest bit to an open one, else to one with a label. */
struct WatershedJoinGraph
{
  using TId = std::uint32_t;
  using Trees = WatershedChunk<TId>;
  using Edge = WatershedBlockEdge<std::uint32_t>;

  static constexpr TId           Flag = Trees::Flag;
  static constexpr TId           Outside = Trees::Outside;
  static constexpr std::uint64_t NoEdge = Trees::NoEdge;
  static constexpr int           MostOffsets = 9;

  /** A block: the arrays of its summary, and its nodes. */
  struct Block
  {
    const std::int64_t *  numberOfEdges;
    const Edge *          edges;
    const std::uint32_t * values;
    const std::uint32_t * labels;
    const unsigned char * isThere;
    TId                   firstNode;
    TId                   lastPlane; ///< the first node of its last plane
    std::int64_t          raster;    ///< of the first voxel of that plane, in the image
  };
  /** The order of edges compares these, from the first to the last. */
  struct EdgeRank
  {
    std::uint32_t high;
    std::uint32_t low;
    std::uint64_t place;

    CHUNKWISE_HOST_DEVICE bool
    IsLess(const EdgeRank & other) const
    {
      return high != other.high ? high < other.high : low != other.low ? low < other.low : place < other.place;
    }
  };
  /** `b` is Outside if the edge leads to a marker with this label. */
  struct EdgeEnds
  {
    TId           a;
    TId           b;
    std::uint32_t label;
  };

  PixelType     inputKind{ PixelType::UInt8 };
  std::int64_t  nodes{ 0 };
  std::int64_t  nodesOfFirst{ 0 };
  std::int64_t  nodesOfOthers{ 1 }; ///< of all but the last block
  std::int64_t  numberOfBlocks{ 0 };
  std::int64_t  planeVoxels{ 0 };
  int           numberOfAxes{ 0 };
  std::int64_t  extent[MaxDimension]{};
  int           numberOfOffsets{ 0 };
  std::int64_t  deltas[MostOffsets]{};
  std::int8_t   steps[MostOffsets][MaxDimension]{};
  std::uint8_t  numbers[MostOffsets]{};
  const Block * blocks{ nullptr };

  WatershedCounters * counters{ nullptr };
  TId *               finals{ nullptr };
  std::uint64_t *     best{ nullptr }; ///< the least edge out of each open tree
  TId *               nexts{ nullptr };
  std::uint32_t *     labels{ nullptr };
  void *              output{ nullptr };
  PixelType           outputKind{ PixelType::UInt32 };

  CHUNKWISE_HOST_DEVICE bool
  IsOpen(TId tree) const
  {
    return finals[tree] == (Flag | tree);
  }
  CHUNKWISE_HOST_DEVICE const Block &
  BlockOf(std::int64_t node) const
  {
    const std::int64_t block = node < nodesOfFirst ? 0 : 1 + (node - nodesOfFirst) / nodesOfOthers;
    return blocks[block < numberOfBlocks ? block : numberOfBlocks - 1];
  }
  CHUNKWISE_HOST_DEVICE std::uint32_t
                        KeyOf(std::uint32_t bits) const
  {
    return static_cast<std::uint32_t>(Trees::KeyOfBits(inputKind, bits));
  }
  CHUNKWISE_HOST_DEVICE std::uint32_t
                        KeyOfNode(const Block & block, TId node) const
  {
    return KeyOf(block.values[node - block.firstNode]);
  }

  // Edges: first one for each node, as far as its block has kept so many; then the edges between two blocks.

  CHUNKWISE_HOST_DEVICE const Edge &
  EdgeOfBlock(std::int64_t edge) const
  {
    const Block & block = BlockOf(edge);
    return block.edges[edge - block.firstNode];
  }
  /** An edge between two blocks: the one before, the voxel of its last plane, and the neighbor. */
  struct Pair
  {
    std::int64_t block;
    std::int64_t voxel;
    int          offset;
  };
  CHUNKWISE_HOST_DEVICE Pair
  PairOf(std::int64_t edge) const
  {
    const std::int64_t i = edge - nodes;
    const std::int64_t voxel = i / numberOfOffsets;
    return { voxel / planeVoxels, voxel % planeVoxels, static_cast<int>(i % numberOfOffsets) };
  }
  CHUNKWISE_HOST_DEVICE bool
  IsInside(const Pair & pair) const
  {
    std::int64_t rest = pair.voxel;
    bool         isInside = true;
    for (int a = 0; a < numberOfAxes; ++a)
    {
      const std::int64_t beside = rest % extent[a] + steps[pair.offset][a];
      isInside = isInside && beside >= 0 && beside < extent[a];
      rest /= extent[a];
    }
    return isInside;
  }
  CHUNKWISE_HOST_DEVICE EdgeEnds
  EndsOf(std::int64_t edge) const
  {
    if (edge < nodes)
    {
      const Block & block = BlockOf(edge);
      const Edge &  own = block.edges[edge - block.firstNode];
      const bool    closes = (own.place & Edge::Closes) != 0;
      return { block.firstNode + own.a, closes ? Outside : block.firstNode + own.b, closes ? own.b : 0 };
    }
    const Pair pair = PairOf(edge);
    return { static_cast<TId>(blocks[pair.block].lastPlane + pair.voxel),
             static_cast<TId>(blocks[pair.block + 1].firstNode + pair.voxel + deltas[pair.offset]),
             0 };
  }
  CHUNKWISE_HOST_DEVICE EdgeRank
  RankOf(std::int64_t edge) const
  {
    std::uint32_t one = 0;
    std::uint32_t other = 0;
    std::uint64_t place = 0;
    if (edge < nodes)
    {
      const Edge & own = EdgeOfBlock(edge);
      one = KeyOf(own.high);
      other = KeyOf(own.low);
      place = own.place >> Edge::FlagBits;
    }
    else
    {
      const Pair     pair = PairOf(edge);
      const EdgeEnds ends = EndsOf(edge);
      one = KeyOfNode(blocks[pair.block], ends.a);
      other = KeyOfNode(blocks[pair.block + 1], ends.b);
      place =
        static_cast<std::uint64_t>(blocks[pair.block].raster + pair.voxel) << Edge::NeighborBits | numbers[pair.offset];
    }
    return { one < other ? other : one, one < other ? one : other, place };
  }

  // Steps.

  CHUNKWISE_HOST_DEVICE void
  Begin(std::int64_t i)
  {
    const TId     node = static_cast<TId>(i);
    const Block & block = BlockOf(i);
    labels[node] = block.labels[node - block.firstNode];
    finals[node] = block.isThere[node - block.firstNode] == 0 ? Outside : labels[node] != 0 ? node : Flag | node;
  }
  CHUNKWISE_HOST_DEVICE void
  BeginRound(std::int64_t i)
  {
    best[i] = NoEdge;
  }
  CHUNKWISE_HOST_DEVICE void
  OfferEdge(std::int64_t edge)
  {
    const EdgeEnds ends = EndsOf(edge);
    const TId      a = finals[ends.a];
    const TId      b = ends.b == Outside ? Flag - 1 : finals[ends.b];
    const bool     isOpenA = Trees::IsTree(a);
    const bool     isOpenB = Trees::IsTree(b);
    if (a == b || a == Outside || b == Outside || (!isOpenA && !isOpenB))
    {
      return;
    }
    const EdgeRank rank = RankOf(edge);
    for (const TId code : { a, b })
    {
      if (!Trees::IsTree(code))
      {
        continue;
      }
      std::uint64_t & entry = best[Trees::TreeOf(code)];
      std::uint64_t   old = LoadRelaxed(entry);
      while ((old == NoEdge || rank.IsLess(RankOf(static_cast<std::int64_t>(old)))) &&
             !ReplaceRelaxed(entry, old, static_cast<std::uint64_t>(edge)))
      {
      }
    }
  }
  CHUNKWISE_HOST_DEVICE void
  FindEdge(std::int64_t i)
  {
    const Block & block = BlockOf(i);
    if (i - block.firstNode < *block.numberOfEdges)
    {
      OfferEdge(i);
    }
  }
  CHUNKWISE_HOST_DEVICE void
  FindPair(std::int64_t i)
  {
    if (IsInside(PairOf(nodes + i)))
    {
      OfferEdge(nodes + i);
    }
  }
  /** The tree to which an open tree's least edge leads: itself, if that is a marker; Outside if there is none. */
  CHUNKWISE_HOST_DEVICE void
  FindNext(std::int64_t i)
  {
    const TId tree = static_cast<TId>(i);
    if (!IsOpen(tree))
    {
      return;
    }
    if (best[tree] == NoEdge)
    {
      nexts[tree] = Outside;
      return;
    }
    const EdgeEnds ends = EndsOf(static_cast<std::int64_t>(best[tree]));
    if (ends.b == Outside)
    {
      labels[tree] = ends.label;
      nexts[tree] = tree;
      return;
    }
    const TId a = finals[ends.a];
    nexts[tree] = a == (Flag | tree) ? finals[ends.b] : a;
  }
  /** One of two trees that lead to each other stays. */
  CHUNKWISE_HOST_DEVICE void
  Hook(std::int64_t i)
  {
    const TId tree = static_cast<TId>(i);
    if (!IsOpen(tree))
    {
      return;
    }
    const TId next = nexts[tree];
    if (Trees::IsTree(next) && Trees::TreeOf(next) > tree && nexts[Trees::TreeOf(next)] == (Flag | tree))
    {
      CountRelaxed(counters->open);
      return;
    }
    StoreRelaxed(finals[tree], next);
  }
  /** Brings the entry of a tree nearer to the tree that it belongs to. */
  CHUNKWISE_HOST_DEVICE void
  Flatten(std::int64_t i)
  {
    Trees::FlattenEntry(finals, static_cast<TId>(i), *counters);
  }
  CHUNKWISE_HOST_DEVICE void
  WriteLabel(std::int64_t i)
  {
    const TId code = finals[i];
    StoreLabel(output, outputKind, i, (code & Flag) != 0 ? 0 : labels[code]);
  }
};

/** The graph's arrays in scratch. */
struct WatershedJoinScratch
{
  explicit WatershedJoinScratch(const WatershedJoinOperation & operation)
    : nodes(operation.CountNodes())
  {
    const auto take = [this](std::int64_t count, std::size_t size) {
      const std::size_t at = bytes;
      bytes += RoundUp(static_cast<std::size_t>(count) * size);
      return at;
    };
    counters = take(1, sizeof(WatershedCounters));
    blocks = take(static_cast<std::int64_t>(operation.blocks.size()), sizeof(WatershedJoinGraph::Block));
    finals = take(nodes, sizeof(std::uint32_t));
    best = take(nodes, sizeof(std::uint64_t));
    nexts = take(nodes, sizeof(std::uint32_t));
    labels = take(nodes, sizeof(std::uint32_t));
  }

  std::int64_t nodes;
  std::size_t  bytes{ 0 };
  std::size_t  counters;
  std::size_t  blocks;
  std::size_t  finals;
  std::size_t  best;
  std::size_t  nexts;
  std::size_t  labels;
};

/** `TRunner`: see chunkwiseWatershedStepRun.h. */
template <typename TRunner>
class WatershedJoinRun
{
public:
  using Graph = WatershedJoinGraph;

  explicit WatershedJoinRun(const KernelCall & call)
    : m_Call(call)
    , m_Runner(call)
    , m_Operation(static_cast<const WatershedJoinOperation &>(*call.operation))
    , m_Scratch(m_Operation)
  {
    m_Graph.inputKind = m_Operation.watershed.inputKind;
    m_Graph.nodes = m_Scratch.nodes;
    m_Graph.numberOfBlocks = static_cast<std::int64_t>(m_Operation.blocks.size());
    m_Graph.planeVoxels = m_Operation.planeVoxels;
    m_Graph.numberOfAxes = m_Operation.axis;
    Coordinates planes = m_Operation.watershed.image;
    std::copy(planes.axis, planes.axis + MaxDimension, m_Graph.extent);
    planes[m_Operation.axis] = 1;
    const Coordinates stride = DenseStrides(planes);
    for (std::size_t k = 0; k < m_Operation.offsets.size(); ++k)
    {
      for (int a = 0; a < m_Operation.axis; ++a)
      {
        m_Graph.steps[k][a] = static_cast<std::int8_t>(m_Operation.offsets[k][a]);
        m_Graph.deltas[k] += m_Operation.offsets[k][a] * stride[a];
      }
      m_Graph.numbers[k] = static_cast<std::uint8_t>(m_Operation.numbers[k]);
      ++m_Graph.numberOfOffsets;
    }
    m_Graph.counters = this->At<WatershedCounters>(m_Scratch.counters);
    m_Graph.finals = this->At<std::uint32_t>(m_Scratch.finals);
    m_Graph.best = this->At<std::uint64_t>(m_Scratch.best);
    m_Graph.nexts = this->At<std::uint32_t>(m_Scratch.nexts);
    m_Graph.labels = this->At<std::uint32_t>(m_Scratch.labels);
    m_Graph.output = call.output.data;
    m_Graph.outputKind = call.output.kind;
    this->PutBlocks();
  }

  void
  Run()
  {
    this->template ForEach<&Graph::Begin>(m_Graph.nodes);
    WatershedCounters counters{};
    counters.open = 1;
    for (int round = 0; counters.open > 0; ++round)
    {
      Check(round);
      if (m_Call.control && m_Call.control->ShouldStop())
      {
        return;
      }
      this->template ForEach<&Graph::BeginRound>(m_Graph.nodes);
      this->template ForEach<&Graph::FindEdge>(m_Graph.nodes);
      this->template ForEach<&Graph::FindPair>((m_Graph.numberOfBlocks - 1) * m_Graph.planeVoxels *
                                               m_Graph.numberOfOffsets);
      this->template ForEach<&Graph::FindNext>(m_Graph.nodes);
      m_Runner.Fill(m_Graph.counters, 0, sizeof(counters));
      this->template ForEach<&Graph::Hook>(m_Graph.nodes);
      counters.unfinished = 1;
      for (int call = 0; counters.unfinished != 0; ++call)
      {
        Check(call);
        m_Runner.Fill(&m_Graph.counters->unfinished, 0, sizeof(counters.unfinished));
        this->template ForEach<&Graph::Flatten>(m_Graph.nodes);
        m_Runner.CopyToHost(&counters, m_Graph.counters, sizeof(counters));
      }
    }
    this->template ForEach<&Graph::WriteLabel>(m_Graph.nodes);
  }

private:
  /** More than any graph needs, as for a chunk. */
  static constexpr int MostRounds = 80;

  template <typename T>
  T *
  At(std::size_t offset) const
  {
    return reinterpret_cast<T *>(static_cast<char *>(m_Call.scratch) + offset);
  }
  static void
  Check(int round)
  {
    if (round == MostRounds)
    {
      throw Error("the trees of a watershed's blocks do not end");
    }
  }
  template <auto VStep>
  void
  ForEach(std::int64_t count)
  {
    if (count > 0)
    {
      m_Runner.template ForEach<VStep>(m_Graph, count);
    }
  }
  void
  PutBlocks()
  {
    std::vector<Graph::Block> blocks;
    std::int64_t              nodes = 0;
    const auto *              summary = static_cast<const unsigned char *>(m_Operation.summaries);
    for (const Box & box : m_Operation.blocks)
    {
      const WatershedLayout layout(m_Operation.watershed, box);
      Graph::Block          block{};
      block.numberOfEdges = reinterpret_cast<const std::int64_t *>(summary);
      block.edges = reinterpret_cast<const Graph::Edge *>(summary + layout.edges);
      block.values = reinterpret_cast<const std::uint32_t *>(summary + layout.values);
      block.labels = reinterpret_cast<const std::uint32_t *>(summary + layout.nodeLabels);
      block.isThere = summary + layout.isThere;
      block.firstNode = static_cast<std::uint32_t>(nodes);
      nodes += layout.border.voxels;
      // If a block has one plane, that is both its first and its last one.
      block.lastPlane = static_cast<std::uint32_t>(nodes - m_Operation.planeVoxels);
      block.raster = (box.upper[m_Operation.axis] - 1) * m_Operation.planeVoxels;
      (blocks.empty() ? m_Graph.nodesOfFirst : m_Graph.nodesOfOthers) =
        blocks.size() < 2 ? layout.border.voxels : m_Graph.nodesOfOthers;
      blocks.push_back(block);
      summary += layout.summaryBytes;
    }
    auto * const there = this->At<Graph::Block>(m_Scratch.blocks);
    m_Runner.CopyToDevice(there, blocks.data(), blocks.size() * sizeof(blocks[0]));
    m_Graph.blocks = there;
  }

  const KernelCall &             m_Call;
  TRunner                        m_Runner;
  const WatershedJoinOperation & m_Operation;
  const WatershedJoinScratch     m_Scratch;
  Graph                          m_Graph;
};

template <typename TRunner>
KernelSet
MakeWatershedJoinKernels()
{
  KernelSet kernels;
  kernels.compute.scratchBytes = [](const Operation & operation, const ChunkShape &) {
    return WatershedJoinScratch(static_cast<const WatershedJoinOperation &>(operation)).bytes;
  };
  kernels.compute.run = [](const KernelCall & call) {
    if (!call.writable.IsEmpty())
    {
      WatershedJoinRun<TRunner>(call).Run();
    }
  };
  return kernels;
}

} // namespace chunkwise

#endif
