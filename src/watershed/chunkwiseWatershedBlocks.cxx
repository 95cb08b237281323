/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseWatershedBlocks.h"

#include "chunkwiseError.h"
#include "chunkwiseOpenTrees.h"
#include "chunkwiseOrdinal.h"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <tuple>

namespace chunkwise
{

namespace
{

/** Entries of the spool that are read, or written, at once. */
constexpr std::size_t WatershedCodesAtOnce = 8192;

template <typename TPixel>
std::uint64_t
WatershedOrdinal(std::uint64_t packed)
{
  const auto value = UnpackWatershedValue<TPixel>(packed);
  // -0 equals 0.
  return OrdinalOf(value == TPixel(0) ? TPixel(0) : value);
}

} // namespace

/** Kruskal's algorithm on the voxels of the last plane of the block before, and of the first and the last plane of the
 * new block. Each voxel of the new block's last plane is a separate root. With markers the same forest is found by
 * several threads (OpenTrees): of minima the order in which trees are joined counts.
 *
 * Nodes: first the voxels of the plane before, then those of the block's border. */
class WatershedBlocks::Step
{
public:
  Step(WatershedBlocks & blocks, std::size_t block, SideData & summary, Executor & executor)
    : m_Blocks(blocks)
    , m_Executor(executor)
    , m_Operation(blocks.m_Operation)
    , m_Block(block)
    , m_Layout(blocks.m_Operation, blocks.m_Blocks[block])
    , m_Nodes(reinterpret_cast<WatershedNode *>(summary.data() + m_Layout.nodes))
    , m_Edges(reinterpret_cast<WatershedEdge *>(summary.data() + m_Layout.edges))
    , m_Before(static_cast<std::int64_t>(blocks.m_Forest.nodes.size()))
    , m_All(m_Before + m_Layout.border.voxels)
    , m_DepthOfFloats(m_Operation.height)
    , m_DepthOfDoubles(m_Operation.height)
    , m_DepthOfIntegers(m_Operation.height)
    , m_FirstRoot(block + 1 < blocks.m_Blocks.size() ? m_All - blocks.m_Plane : m_All)
  {
    std::int64_t numberOfEdges = 0;
    std::memcpy(&numberOfEdges, summary.data(), sizeof(numberOfEdges));
    m_NumberOfEdges = Index(numberOfEdges);
    this->SetOrdinals();
    m_Kept.reserve(Index(m_All - m_FirstRoot));
  }

  void
  Join()
  {
    this->SortEdges();
    m_Operation.hasMarkers ? this->JoinMarkers() : this->JoinMinima();
    m_Entries.reset();
  }

  /** Puts the trees of both planes where the blocks meet into the spool. */
  void
  WriteCodes()
  {
    std::vector<Code> codes;
    const auto        flush = [&] {
      m_Blocks.m_Spool.Append(codes.data(), codes.size() * sizeof(Code));
      codes.clear();
    };
    for (std::int64_t node = 0; node < m_Before + m_Blocks.m_Plane && m_Before > 0; ++node)
    {
      codes.push_back(this->CodeOf(node));
      if (codes.size() == WatershedCodesAtOnce)
      {
        flush();
      }
    }
    flush();
  }

  /** Without markers: notes the minima that no block has counted. */
  void
  FindHidden()
  {
    for (std::int64_t node = 0; node < m_All; ++node)
    {
      const Tree & tree = m_Trees[Index(node)];
      if (tree.parent == node && tree.root < 0 && !IsClosed(tree.mark) && this->NodeOf(node).low >= 0)
      {
        m_Blocks.AddHidden(this->LowOf(tree.mark).low);
      }
    }
  }

  Forest
  MakeForest()
  {
    Forest forest;
    forest.nodes.assign(m_Nodes + (m_FirstRoot - m_Before), m_Nodes + (m_All - m_Before));
    for (std::int64_t node = m_FirstRoot; node < m_All && !m_Operation.hasMarkers; ++node)
    {
      const WatershedNode & low = this->LowOf(m_Trees[Index(this->Find(node))].mark);
      WatershedNode &       kept = forest.nodes[Index(node - m_FirstRoot)];
      if (kept.low >= 0)
      {
        kept.low = low.low;
        kept.lowValue = low.lowValue;
        kept.label = low.label;
      }
    }
    forest.edges = std::move(m_Kept);
    return forest;
  }

private:
  /** A node's tree of minima. A tree's root, as a number from 0, or -1, and its mark: a node whose `low` is the tree's
   * least voxel, or Closed. */
  struct Tree
  {
    std::int64_t  parent;
    std::int64_t  root;
    std::uint64_t mark;
  };
  /** Edges whose trees are fetched at once. */
  static constexpr Index EdgesAtOnce = 64;
  /** A thread lists, or sorts, at least so many edges at a time. */
  static constexpr Index LeastOfPart = 1 << 12;
  /** Edges of each kind for each part by which parts are found. */
  static constexpr Index SamplesOfPart = 32;
  /** An edge of the forest of roots, beside its number. */
  static constexpr std::uint64_t IsKept = std::uint64_t{ 1 } << 63;

  /** The mark of a tree with a minimum that an edge leads to: this, plus the number of the edge. */
  static constexpr std::uint64_t Closed = std::uint64_t{ 1 } << 63;

  static bool
  IsClosed(std::uint64_t mark)
  {
    return (mark & Closed) != 0;
  }
  WatershedNode &
  NodeOf(std::int64_t node) const
  {
    return node < m_Before ? m_Blocks.m_Forest.nodes[Index(node)] : m_Nodes[node - m_Before];
  }
  const WatershedNode &
  LowOf(std::uint64_t mark) const
  {
    return this->NodeOf(static_cast<std::int64_t>(mark));
  }
  /** The group of a root. */
  std::int64_t
  FindGroup(std::int64_t root)
  {
    while (m_Groups[Index(root)] != root)
    {
      m_Groups[Index(root)] = m_Groups[Index(m_Groups[Index(root)])];
      root = m_Groups[Index(root)];
    }
    return root;
  }
  std::int64_t
  Find(std::int64_t node)
  {
    while (m_Trees[Index(node)].parent != node)
    {
      Tree & tree = m_Trees[Index(node)];
      tree.parent = m_Trees[Index(tree.parent)].parent;
      node = tree.parent;
    }
    return node;
  }

  /** Turns the values of the block's summary into ordinals, and ranks in the block into ranks in all blocks so far. */
  void
  SetOrdinals()
  {
    const std::uint64_t before = m_Blocks.m_Before[m_Block];
    DispatchPixelKind(m_Operation.inputKind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      OpenTrees::ForEach(m_Executor, Index(m_Layout.border.voxels), [&](Index i) {
        WatershedNode & node = m_Nodes[i];
        node.value = node.low >= 0 ? WatershedOrdinal<Pixel>(node.value) : 0;
        node.lowValue = WatershedOrdinal<Pixel>(node.lowValue);
        node.label += m_Operation.hasMarkers ? 0 : before;
      });
      OpenTrees::ForEach(m_Executor, m_NumberOfEdges, [&](Index i) {
        WatershedEdge & edge = m_Edges[i];
        edge.firstValue = WatershedOrdinal<Pixel>(edge.firstValue);
        edge.secondValue = WatershedOrdinal<Pixel>(edge.secondValue);
        edge.rank += before;
        edge.a += m_Before;
        edge.b += edge.b < 0 ? 0 : m_Before;
      });
    });
  }

  /** Joins trees along edges that follow each other. Trees lie anywhere in memory: those of all these edges are fetched
   * before the first is joined. */
  void
  JoinSome(const std::uint64_t * numbers, Index count)
  {
    std::array<std::pair<std::int64_t, std::int64_t>, EdgesAtOnce> ends;
    for (Index i = 0; i < count; ++i)
    {
      ends[i] = this->EndsOf(numbers[i]);
      __builtin_prefetch(&m_Trees[Index(ends[i].first)]);
      __builtin_prefetch(&m_Trees[Index(ends[i].second)]);
    }
    for (Index i = 0; i < count; ++i)
    {
      __builtin_prefetch(&m_Trees[Index(m_Trees[Index(ends[i].first)].parent)]);
      __builtin_prefetch(&m_Trees[Index(m_Trees[Index(ends[i].second)].parent)]);
    }
    for (Index i = 0; i < count; ++i)
    {
      const bool isJoined = ends[i].first != ends[i].second && this->Find(ends[i].first) == this->Find(ends[i].second);
      if (isJoined)
      {
        continue;
      }
      this->JoinMinima(this->EdgeOf(numbers[i]), numbers[i]);
    }
  }
  /** An edge of the forest so far, or of the block; nullptr: another one. */
  const WatershedEdge *
  FindListed(std::uint64_t number) const
  {
    const std::vector<WatershedEdge> & before = m_Blocks.m_Forest.edges;
    return number < before.size()         ? &before[number]
           : number < this->CountListed() ? m_Edges + (number - before.size())
                                          : nullptr;
  }
  /** The nodes of an edge; twice the same one if it leads to a marker or minimum. */
  std::pair<std::int64_t, std::int64_t>
  EndsOf(std::uint64_t number) const
  {
    if (const WatershedEdge * const edge = this->FindListed(number))
    {
      return { edge->a, edge->b < 0 ? edge->a : edge->b };
    }
    number -= this->CountListed();
    const std::uint64_t count = m_Blocks.m_Offsets.size();
    const auto          a = static_cast<std::int64_t>(number / count);
    return { a, m_Before + a + m_Blocks.m_Deltas[number % count] };
  }
  /** The last plane of the block before, in the raster order of the image. */
  std::int64_t
  FirstOfPlaneBefore() const
  {
    return (m_Blocks.m_Blocks[m_Block].lower[m_Blocks.m_Axis] - 1) * m_Blocks.m_Plane;
  }
  std::uint64_t
  CountListed() const
  {
    return m_Blocks.m_Forest.edges.size() + m_NumberOfEdges;
  }
  /** Edges are numbered: those of the forest so far, those of the block, those between both. */
  WatershedEdge
  EdgeOf(std::uint64_t number) const
  {
    if (const WatershedEdge * const listed = this->FindListed(number))
    {
      return *listed;
    }
    WatershedEdge edge{};
    std::tie(edge.a, edge.b) = this->EndsOf(number);
    edge.firstValue = this->NodeOf(edge.a).value;
    edge.secondValue = this->NodeOf(edge.b).value;
    edge.first = this->FirstOfPlaneBefore() + edge.a;
    edge.second = this->FirstOfPlaneBefore() + m_Blocks.m_Plane + edge.b - m_Before;
    return edge;
  }
  /** Whether an entry tells both values. */
  bool
  HasRoomForBoth() const
  {
    return PixelSize(m_Operation.inputKind) <= 4;
  }
  std::uint64_t
  KeyOf(std::uint64_t first, std::uint64_t second) const
  {
    const std::uint64_t high = std::max(first, second);
    return this->HasRoomForBoth() ? high << 32 | std::min(first, second) : high;
  }
  /** Calls f(entry) for one of so many parts of all edges. */
  template <typename TFunctor>
  void
  ForPart(Index part, Index parts, TFunctor && f) const
  {
    const auto beginOf = [parts](Index count, Index i) { return count / parts * i + count % parts * i / parts; };
    const std::vector<WatershedEdge> & before = m_Blocks.m_Forest.edges;
    for (Index i = beginOf(before.size(), part); i < beginOf(before.size(), part + 1); ++i)
    {
      f(this->EntryOf(before[i], i));
    }
    for (Index i = beginOf(m_NumberOfEdges, part); i < beginOf(m_NumberOfEdges, part + 1); ++i)
    {
      f(this->EntryOf(m_Edges[i], before.size() + i));
    }
    if (m_Before > 0)
    {
      const Index plane = Index(m_Blocks.m_Plane);
      this->ForPairs(beginOf(plane, part), beginOf(plane, part + 1), f);
    }
  }
  /** Calls f(entry) for the edges between the block before and voxels of this block. */
  template <typename TFunctor>
  void
  ForPairs(Index begin, Index end, TFunctor && f) const
  {
    const auto          firstOfPlane = static_cast<std::uint64_t>(this->FirstOfPlaneBefore());
    const std::uint64_t listed = this->CountListed();
    m_Blocks.ForPairs(static_cast<std::int64_t>(begin),
                      static_cast<std::int64_t>(end),
                      [&](std::int64_t last, std::int64_t first, std::uint64_t number) {
                        const WatershedNode & a = this->NodeOf(last);
                        const WatershedNode & b = this->NodeOf(m_Before + first);
                        if (a.low >= 0 && b.low >= 0)
                        {
                          f(Entry{ this->KeyOf(a.value, b.value), firstOfPlane + Index(last), listed + number });
                        }
                      });
  }
  /** The order of edges as far as their entries tell it. */
  bool
  HasLowerKey(const Entry & x, const Entry & y) const
  {
    // The smaller value comes before the first voxel.
    return x.a != y.a ? x.a < y.a : this->HasRoomForBoth() && x.b < y.b;
  }
  /** Entries that divide all edges into so many parts of about the same size. */
  std::vector<Entry>
  FindBounds(Index parts) const
  {
    const std::vector<WatershedEdge> & before = m_Blocks.m_Forest.edges;
    std::vector<Entry>                 samples;
    const Index                        count = parts * SamplesOfPart;
    for (Index i = 0; i < count; ++i)
    {
      if (i < before.size())
      {
        const Index at = before.size() / std::min(count, before.size()) * i;
        samples.push_back(this->EntryOf(before[at], at));
      }
      if (i < m_NumberOfEdges)
      {
        const Index at = m_NumberOfEdges / std::min(count, m_NumberOfEdges) * i;
        samples.push_back(this->EntryOf(m_Edges[at], before.size() + at));
      }
      if (m_Before > 0 && i < Index(m_Blocks.m_Plane))
      {
        const Index at = Index(m_Blocks.m_Plane) / std::min(count, Index(m_Blocks.m_Plane)) * i;
        this->ForPairs(at, at + 1, [&](const Entry & entry) { samples.push_back(entry); });
      }
    }
    std::sort(
      samples.begin(), samples.end(), [this](const Entry & x, const Entry & y) { return this->HasLowerKey(x, y); });
    std::vector<Entry> bounds;
    for (Index part = 1; part < parts && !samples.empty(); ++part)
    {
      bounds.push_back(samples[samples.size() * part / parts]);
    }
    return bounds;
  }
  /** Lists all edges in order: threads list them by parts of the order, and sort these. */
  void
  SortEdges()
  {
    const Index              most = this->CountListed() + m_Blocks.m_Offsets.size() * Index(m_Before);
    const Index              parts = std::min<Index>(4 * m_Executor.GetConcurrency(), 1 + most / LeastOfPart);
    const std::vector<Entry> bounds = this->FindBounds(parts);
    const auto               isBefore = [this](const Entry & x, const Entry & y) { return this->HasLowerKey(x, y); };
    const auto               partOf = [&](const Entry & entry) {
      return Index(std::upper_bound(bounds.begin(), bounds.end(), entry, isBefore) - bounds.begin());
    };
    // By part of the order and part of the edges: their number, then where the next one goes.
    std::vector<Index> places(parts * parts);
    m_Executor.ParallelFor(static_cast<std::int64_t>(parts), [&](std::int64_t i, unsigned int) {
      std::vector<Index> counts(parts);
      this->ForPart(Index(i), parts, [&](const Entry & entry) { ++counts[partOf(entry)]; });
      for (Index part = 0; part < parts; ++part)
      {
        places[part * parts + Index(i)] = counts[part];
      }
    });
    m_NumberOfEntries = 0;
    for (Index & place : places)
    {
      m_NumberOfEntries += std::exchange(place, m_NumberOfEntries);
    }
    m_Entries.reset(new Entry[m_NumberOfEntries]);
    m_Executor.ParallelFor(static_cast<std::int64_t>(parts), [&](std::int64_t i, unsigned int) {
      std::vector<Index> next(parts);
      for (Index part = 0; part < parts; ++part)
      {
        next[part] = places[part * parts + Index(i)];
      }
      this->ForPart(Index(i), parts, [&](const Entry & entry) { m_Entries[next[partOf(entry)]++] = entry; });
    });
    m_Executor.ParallelFor(static_cast<std::int64_t>(parts), [&](std::int64_t i, unsigned int) {
      const Index end = Index(i) + 1 < parts ? places[(Index(i) + 1) * parts] : m_NumberOfEntries;
      std::sort(m_Entries.get() + places[Index(i) * parts],
                m_Entries.get() + end,
                [this](const Entry & x, const Entry & y) { return this->IsBefore(x, y); });
    });
  }
  Entry
  EntryOf(const WatershedEdge & edge, std::uint64_t number) const
  {
    return { this->KeyOf(edge.firstValue, edge.secondValue), Index(edge.first), number };
  }
  /** The order of edges. */
  bool
  IsBefore(const Entry & x, const Entry & y) const
  {
    if (x.a != y.a || (this->HasRoomForBoth() && x.b != y.b))
    {
      return this->HasLowerKey(x, y);
    }
    const WatershedEdge a = this->EdgeOf(x.edge);
    const WatershedEdge b = this->EdgeOf(y.edge);
    const std::uint64_t lowA = std::min(a.firstValue, a.secondValue);
    const std::uint64_t lowB = std::min(b.firstValue, b.secondValue);
    return lowA != lowB ? lowA < lowB : a.first != b.first ? a.first < b.first : a.second < b.second;
  }

  /** Keeps an edge of the forest of roots: from one to another, or to a marker or minimum (`b` is -1). */
  void
  Keep(WatershedEdge edge, std::int64_t a, std::int64_t b, std::uint64_t label, std::uint64_t rank)
  {
    edge.a = a;
    edge.b = b;
    edge.label = label;
    edge.rank = rank;
    m_Kept.push_back(edge);
  }

  /** The root of a tree, as a number from 0; None: it has a marker. */
  std::uint64_t
  RootOfTree(std::uint64_t tree) const
  {
    return tree != OpenTrees::None && tree >= Index(m_FirstRoot) ? tree - Index(m_FirstRoot) : OpenTrees::None;
  }
  /** Joins trees until each has a marker or a root, then the trees of roots. */
  void
  JoinMarkers()
  {
    Entry * const entries = m_Entries.get();
    m_MarkerTrees = std::make_unique<OpenTrees>(Index(m_All), m_Executor);
    m_Labels.reset(new std::uint64_t[Index(m_All)]);
    OpenTrees::ForEach(m_Executor, Index(m_All), [&](Index node) {
      m_Labels[node] = this->NodeOf(static_cast<std::int64_t>(node)).label;
      if (m_Labels[node] != 0 || node >= Index(m_FirstRoot))
      {
        m_MarkerTrees->Close(node);
      }
    });
    OpenTrees::ForEach(m_Executor, m_NumberOfEntries, [&](Index i) {
      const auto ends = this->EndsOf(entries[i].edge);
      entries[i].a = Index(ends.first);
      entries[i].b = ends.first == ends.second ? OpenTrees::None : Index(ends.second);
    });
    m_MarkerTrees->Join(entries, m_NumberOfEntries, [&](Index i, Index tree) {
      if (entries[i].b == OpenTrees::None)
      {
        m_Labels[tree] = this->FindListed(entries[i].edge)->label;
      }
    });
    if (m_FirstRoot < m_All)
    {
      this->JoinRoots();
    }
  }
  void
  JoinRoots()
  {
    Entry * const entries = m_Entries.get();
    OpenTrees     groups(Index(m_All - m_FirstRoot), m_Executor);
    OpenTrees::ForEach(m_Executor, Index(m_All - m_FirstRoot), [&](Index root) {
      if (this->NodeOf(m_FirstRoot + static_cast<std::int64_t>(root)).label != 0)
      {
        groups.Close(root);
      }
    });
    OpenTrees::ForEach(m_Executor, m_NumberOfEntries, [&](Index i) {
      Entry &             entry = entries[i];
      const std::uint64_t a = this->RootOfTree(entry.a);
      const std::uint64_t b = this->RootOfTree(entry.b);
      // Those within a tree have the same ends.
      entry.a = a == OpenTrees::None ? b : a;
      entry.b = a == OpenTrees::None ? OpenTrees::None : b;
    });
    groups.Join(entries, m_NumberOfEntries, [&](Index i, Index) { entries[i].edge |= IsKept; });
    Index kept = 0;
    for (Index i = 0; i < m_NumberOfEntries; ++i)
    {
      if ((entries[i].edge & IsKept) != 0)
      {
        entries[kept++].edge = entries[i].edge & ~IsKept;
      }
    }
    m_Kept.resize(kept);
    OpenTrees::ForEach(m_Executor, kept, [&](Index i) { m_Kept[i] = this->EdgeOfRoots(entries[i].edge); });
  }
  /** An edge from a root to another one, or to a marker. */
  WatershedEdge
  EdgeOfRoots(std::uint64_t number) const
  {
    WatershedEdge       edge = this->EdgeOf(number);
    const std::uint64_t treeA = m_MarkerTrees->RootOf(Index(edge.a));
    const std::uint64_t treeB = edge.b < 0 ? OpenTrees::None : m_MarkerTrees->RootOf(Index(edge.b));
    const std::uint64_t rootA = this->RootOfTree(treeA);
    const std::uint64_t rootB = this->RootOfTree(treeB);
    const bool          areBoth = rootA != OpenTrees::None && rootB != OpenTrees::None;
    edge.label = areBoth ? 0 : edge.b < 0 ? edge.label : m_Labels[rootA == OpenTrees::None ? treeA : treeB];
    edge.rank = 0;
    edge.a = static_cast<std::int64_t>(rootA == OpenTrees::None ? rootB : rootA);
    edge.b = areBoth ? static_cast<std::int64_t>(rootB) : -1;
    return edge;
  }

  /** Whether a tree, or group of trees, with this mark keeps a separate minimum at an edge of this weight. */
  bool
  IsDeep(std::uint64_t mark, std::uint64_t high) const
  {
    if (IsClosed(mark))
    {
      return true;
    }
    const std::uint64_t low = this->LowOf(mark).lowValue;
    return m_Operation.inputKind == PixelKind::Float32
             ? m_DepthOfFloats.IsDeep(FromOrdinal<float>(high), FromOrdinal<float>(low))
           : m_Operation.inputKind == PixelKind::Float64
             ? m_DepthOfDoubles.IsDeep(FromOrdinal<double>(high), FromOrdinal<double>(low))
             : m_DepthOfIntegers.IsDeep(high, low);
  }
  /** The mark of two trees together. */
  std::uint64_t
  LowerOf(std::uint64_t a, std::uint64_t b) const
  {
    if (IsClosed(a) || IsClosed(b))
    {
      return IsClosed(a) ? a : b;
    }
    const WatershedNode & lowA = this->LowOf(a);
    const WatershedNode & lowB = this->LowOf(b);
    return lowA.lowValue < lowB.lowValue || (lowA.lowValue == lowB.lowValue && lowA.low < lowB.low) ? a : b;
  }
  void
  JoinMinima()
  {
    m_Trees.resize(Index(m_All));
    m_Groups.resize(Index(m_All - m_FirstRoot));
    m_MarksOfGroups.resize(m_Groups.size());
    std::iota(m_Groups.begin(), m_Groups.end(), 0);
    for (std::int64_t node = 0; node < m_All; ++node)
    {
      m_Trees[Index(node)] = { node, -1, Index(node) };
    }
    for (std::int64_t node = m_FirstRoot; node < m_All; ++node)
    {
      m_Trees[Index(node)].root = node - m_FirstRoot;
      m_MarksOfGroups[Index(node - m_FirstRoot)] = Index(node);
    }
    std::array<std::uint64_t, EdgesAtOnce> numbers{};
    Index                                  count = 0;
    for (Index i = 0; i < m_NumberOfEntries; ++i)
    {
      if (const WatershedEdge * const edge = this->FindListed(m_Entries[i].edge))
      {
        __builtin_prefetch(edge);
      }
      numbers[count++] = m_Entries[i].edge;
      if (count == numbers.size())
      {
        this->JoinSome(numbers.data(), std::exchange(count, 0));
      }
    }
    this->JoinSome(numbers.data(), count);
  }
  void
  JoinMinima(const WatershedEdge & edge, std::uint64_t number)
  {
    const std::uint64_t high = std::max(edge.firstValue, edge.secondValue);
    const std::int64_t  a = this->Find(edge.a);
    if (edge.b < 0)
    {
      if (m_Trees[Index(a)].root >= 0)
      {
        this->CloseGroup(edge, m_Trees[Index(a)].root, Closed | number, high);
      }
      else if (!this->IsDeep(m_Trees[Index(a)].mark, high))
      {
        m_Trees[Index(a)].mark = Closed | number;
      }
      return;
    }
    const std::int64_t b = this->Find(edge.b);
    if (a == b)
    {
      return;
    }
    const std::int64_t  rootA = m_Trees[Index(a)].root;
    const std::int64_t  rootB = m_Trees[Index(b)].root;
    const std::uint64_t markA = m_Trees[Index(a)].mark;
    const std::uint64_t markB = m_Trees[Index(b)].mark;
    if (rootA >= 0 && rootB >= 0)
    {
      const Index         groupA = Index(this->FindGroup(rootA));
      const Index         groupB = Index(this->FindGroup(rootB));
      const std::uint64_t markOfA = m_MarksOfGroups[groupA];
      const std::uint64_t markOfB = m_MarksOfGroups[groupB];
      if (groupA != groupB && !(this->IsDeep(markOfA, high) && this->IsDeep(markOfB, high)))
      {
        m_Groups[groupA] = static_cast<std::int64_t>(groupB);
        m_MarksOfGroups[groupB] = this->LowerOf(markOfA, markOfB);
        this->Keep(edge, rootA, rootB, 0, 0);
      }
      return;
    }
    const bool isDeepA = rootA >= 0 || this->IsDeep(markA, high);
    const bool isDeepB = rootB >= 0 || this->IsDeep(markB, high);
    if (!isDeepA || !isDeepB)
    {
      m_Trees[Index(a)].parent = b;
      m_Trees[Index(b)].mark = this->LowerOf(markA, markB);
      m_Trees[Index(b)].root = std::max(rootA, rootB);
      if (m_Trees[Index(b)].root >= 0)
      {
        std::uint64_t & mark = m_MarksOfGroups[Index(this->FindGroup(m_Trees[Index(b)].root))];
        mark = this->LowerOf(mark, m_Trees[Index(b)].mark);
      }
    }
    else if (rootA >= 0 || rootB >= 0)
    {
      this->CloseGroup(edge, std::max(rootA, rootB), rootA >= 0 ? markB : markA, high);
    }
  }
  /** Gives a group of trees the minimum with this mark, unless it keeps its own. */
  void
  CloseGroup(const WatershedEdge & edge, std::int64_t root, std::uint64_t minimum, std::uint64_t high)
  {
    std::uint64_t & mark = m_MarksOfGroups[Index(this->FindGroup(root))];
    if (!this->IsDeep(mark, high))
    {
      mark = Closed;
      const Code code = this->CodeOfMark(minimum);
      this->Keep(edge, root, -1, code.value, code.own);
    }
  }

  Code
  CodeOfMark(std::uint64_t mark) const
  {
    if (IsClosed(mark))
    {
      const WatershedEdge edge = this->EdgeOf(mark & ~Closed);
      return { edge.label, edge.rank };
    }
    const WatershedNode & low = this->LowOf(mark);
    return { static_cast<std::uint64_t>(low.low), low.low >= 0 ? low.label : NoTree };
  }
  Code
  CodeOf(std::int64_t node)
  {
    if (m_Operation.hasMarkers)
    {
      const std::uint64_t tree = m_MarkerTrees->RootOf(Index(node));
      const std::uint64_t root = this->RootOfTree(tree);
      return root != OpenTrees::None ? Code{ root, OfPlane } : Code{ m_Labels[tree], 0 };
    }
    const Index at = Index(this->Find(node));
    return m_Trees[at].root >= 0 ? Code{ static_cast<std::uint64_t>(m_Trees[at].root), OfPlane }
                                 : this->CodeOfMark(m_Trees[at].mark);
  }

  WatershedBlocks &                   m_Blocks;
  Executor &                          m_Executor;
  const WatershedOperation &          m_Operation;
  const std::size_t                   m_Block;
  const WatershedLayout               m_Layout;
  WatershedNode * const               m_Nodes;
  WatershedEdge * const               m_Edges;
  Index                               m_NumberOfEdges{ 0 };
  const std::int64_t                  m_Before; ///< nodes of the plane before
  const std::int64_t                  m_All;
  const WatershedDepth<float>         m_DepthOfFloats;
  const WatershedDepth<double>        m_DepthOfDoubles;
  const WatershedDepth<std::uint64_t> m_DepthOfIntegers; ///< of ordinals, whose differences are those of integers
  const std::int64_t                  m_FirstRoot;
  std::unique_ptr<Entry[]>            m_Entries;
  Index                               m_NumberOfEntries{ 0 };
  std::vector<WatershedEdge>          m_Kept;
  // With markers: the label of each tree without a root, or 0.
  std::unique_ptr<OpenTrees>       m_MarkerTrees;
  std::unique_ptr<std::uint64_t[]> m_Labels;
  // Without markers: trees, and the same for trees whose nodes are roots.
  std::vector<Tree>          m_Trees;
  std::vector<std::int64_t>  m_Groups;
  std::vector<std::uint64_t> m_MarksOfGroups;
};

WatershedBlocks::WatershedBlocks(const WatershedOperation & operation, int axis, std::vector<Box> blocks,
                                 std::uint64_t mostMinima, const std::string & spoolFolder)
  : m_Operation(operation)
  , m_Axis(axis)
  , m_Blocks(std::move(blocks))
  , m_MostMinima(mostMinima)
  , m_Spool(spoolFolder)
{
  Coordinates extent = operation.image;
  extent[axis] = 1;
  const Coordinates stride = DenseStrides(extent);
  for (const Coordinates & offset : operation.GetOffsets())
  {
    if (offset[axis] == 1)
    {
      std::int64_t delta = 0;
      for (int a = 0; a < MaxDimension; ++a)
      {
        delta += a == axis ? 0 : offset[a] * stride[a];
      }
      m_Offsets.push_back(offset);
      m_Deltas.push_back(delta);
    }
  }
  m_Plane = m_Offsets.empty() ? 0 : Box::FromExtent(extent).NumberOfVoxels();
}

std::uint64_t
WatershedBlocks::GetBytes(const WatershedOperation & operation, int axis)
{
  Coordinates extent = operation.image;
  extent[axis] = 1;
  std::uint64_t offsets = 0;
  for (const Coordinates & offset : operation.GetOffsets())
  {
    offsets += offset[axis] == 1 ? 1 : 0;
  }
  constexpr std::uint64_t ofForest = sizeof(WatershedNode) + sizeof(WatershedEdge);
  // The forests before and after a step, the block's two planes, entries of edges, three planes of trees, groups.
  const std::uint64_t ofStep = 4 * ofForest + (3 + offsets) * sizeof(Entry) + 3 * 25 + 17;
  // Two summaries while a block is summarized.
  const std::uint64_t ofSummary = 5 * ofForest;
  return offsets == 0
           ? 0
           : static_cast<std::uint64_t>(Box::FromExtent(extent).NumberOfVoxels()) * std::max(ofStep, ofSummary) +
               4 * WatershedCodesAtOnce * sizeof(Code) +
               static_cast<std::uint64_t>(operation.image[axis]) * (sizeof(Box) + sizeof(std::uint64_t));
}

template <typename TFunctor>
void
WatershedBlocks::ForPairs(std::int64_t begin, std::int64_t end, TFunctor && f) const
{
  Coordinates  at{};
  std::int64_t rest = begin;
  for (int a = 0; a < m_Axis; ++a)
  {
    at[a] = rest % m_Operation.image[a];
    rest /= m_Operation.image[a];
  }
  std::uint64_t number = Index(begin) * m_Offsets.size();
  for (std::int64_t last = begin; last < end; ++last)
  {
    for (Index o = 0; o < m_Offsets.size(); ++o, ++number)
    {
      bool isInside = true;
      for (int a = 0; a < MaxDimension; ++a)
      {
        const std::int64_t beside = at[a] + m_Offsets[o][a];
        isInside = isInside && (a == m_Axis || (beside >= 0 && beside < m_Operation.image[a]));
      }
      if (isInside)
      {
        f(last, last + m_Deltas[o], number);
      }
    }
    for (int a = 0; a < m_Axis && ++at[a] == m_Operation.image[a]; ++a)
    {
      at[a] = 0;
    }
  }
}

void
WatershedBlocks::AddHidden(std::int64_t raster)
{
  ++m_NumberOfHidden;
  if (m_MostMinima == 0 || m_NumberOfHidden <= m_MostMinima)
  {
    if (m_Hidden.empty())
    {
      m_Hidden.reserve(m_MostMinima);
    }
    m_Hidden.push_back(raster);
  }
}

void
WatershedBlocks::Add(SideData && summary, Executor & executor)
{
  const std::size_t block = m_Before.size() - 1;
  SideData          own = std::move(summary);
  std::uint64_t     minima = 0;
  if (!m_Operation.hasMarkers)
  {
    std::memcpy(&minima, own.data() + WatershedLayout(m_Operation, m_Blocks[block]).counts, sizeof(minima));
  }
  if (m_Plane > 0 && m_Blocks.size() > 1)
  {
    Step step(*this, block, own, executor);
    step.Join();
    step.WriteCodes();
    if (!m_Operation.hasMarkers)
    {
      step.FindHidden();
    }
    m_Forest = step.MakeForest();
  }
  m_Before.push_back(m_Before.back() + minima);
}

std::uint64_t
WatershedBlocks::LabelOf(const Code & code, const std::vector<std::uint64_t> & plane) const
{
  if (code.own == OfPlane)
  {
    return plane[code.value];
  }
  if (m_Operation.hasMarkers || code.own == NoTree)
  {
    return code.own == NoTree ? 0 : code.value;
  }
  const auto hidden = std::lower_bound(m_Hidden.begin(), m_Hidden.end(), static_cast<std::int64_t>(code.value));
  return code.own + static_cast<std::uint64_t>(hidden - m_Hidden.begin()) + 1;
}

void
WatershedBlocks::Solve()
{
  m_Forest = Forest();
  std::sort(m_Hidden.begin(), m_Hidden.end());
  if (!m_Operation.hasMarkers)
  {
    CheckNumberOfBasins(m_Before.back() + m_NumberOfHidden, m_Operation.outputKind);
  }
  std::vector<std::uint64_t> last;
  for (std::size_t block = m_Blocks.size() - 1; block > 0 && m_Plane > 0; --block)
  {
    this->SolvePlanes(block, last);
  }
}

void
WatershedBlocks::SolvePlanes(std::size_t block, std::vector<std::uint64_t> & last)
{
  const Index                plane = Index(m_Plane);
  std::vector<std::uint64_t> labels(2 * plane);
  std::vector<Code>          codes;
  const std::uint64_t        place = this->PlaceOf(block);
  for (Index begin = 0; begin < labels.size(); begin += codes.size())
  {
    codes.resize(std::min(labels.size() - begin, WatershedCodesAtOnce));
    m_Spool.Read(place + begin * sizeof(Code), codes.data(), codes.size() * sizeof(Code));
    std::transform(codes.begin(),
                   codes.end(),
                   labels.begin() + static_cast<std::ptrdiff_t>(begin),
                   [&](const Code & code) { return this->LabelOf(code, last); });
  }
  m_Spool.WriteAt(place, labels.data(), labels.size() * sizeof(labels.front()));
  if (m_Operation.lines)
  {
    std::vector<unsigned char> lines(labels.size());
    this->ForPairs(0, m_Plane, [&](std::int64_t before, std::int64_t after, std::uint64_t) {
      const std::uint64_t a = labels[Index(before)];
      const std::uint64_t b = labels[plane + Index(after)];
      if (a != b && a != 0 && b != 0)
      {
        lines[a > b ? Index(before) : plane + Index(after)] = 1;
      }
    });
    m_Spool.WriteAt(place + labels.size() * sizeof(labels.front()), lines.data(), lines.size());
  }
  labels.resize(plane);
  last.swap(labels);
}

std::shared_ptr<const WatershedOutside>
WatershedBlocks::GetOutside(std::size_t block) const
{
  auto        outside = std::make_shared<WatershedOutside>();
  const Index plane = Index(m_Plane);
  const auto  add = [&](std::size_t of, Index begin) {
    const std::size_t at = outside->labels.size();
    outside->labels.resize(at + plane);
    m_Spool.Read(
      this->PlaceOf(of) + begin * sizeof(std::uint64_t), &outside->labels[at], plane * sizeof(std::uint64_t));
    if (m_Operation.lines)
    {
      outside->lines.resize(at + plane);
      m_Spool.Read(this->PlaceOf(of) + 2 * plane * sizeof(std::uint64_t) + begin, &outside->lines[at], plane);
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
  const Index borderVoxels = Index(WatershedLayout(m_Operation, m_Blocks[block]).border.voxels);
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
  const Box & box = m_Blocks[block];
  const auto  first = std::lower_bound(m_Hidden.begin(), m_Hidden.end(), m_Operation.RasterIndex(box.lower));
  const auto  end = std::lower_bound(first, m_Hidden.end(), m_Operation.RasterIndex(box.lower) + box.NumberOfVoxels());
  outside->before = m_Before[block] + static_cast<std::uint64_t>(first - m_Hidden.begin());
  outside->starts.assign(first, end);
  return outside;
}

} // namespace chunkwise
