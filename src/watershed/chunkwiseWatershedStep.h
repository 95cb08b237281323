/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedStep_h
#define chunkwiseWatershedStep_h

#include "chunkwiseExecutor.h"
#include "chunkwiseOpenTrees.h"
#include "chunkwiseOrdinal.h"
#include "chunkwiseWatershedSummary.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

// A block of an image joins the forest of all blocks before it.
namespace chunkwise
{

/** The planes of an image's slowest axis, and the neighbors between two of them. */
struct WatershedPlanes
{
  WatershedPlanes(const WatershedOperation & operation, int theAxis)
    : axis(theAxis)
    , image(operation.image)
  {
    Coordinates extent = image;
    extent[axis] = 1;
    const Coordinates              stride = DenseStrides(extent);
    const std::vector<Coordinates> all = operation.GetOffsets();
    for (std::size_t k = all.size() / 2; k < all.size(); ++k)
    {
      // Axes behind the slowest one have one voxel.
      const bool isBeside =
        std::all_of(all[k].axis + axis + 1, all[k].axis + MaxDimension, [](std::int64_t step) { return step == 0; });
      if (all[k][axis] == 1 && isBeside)
      {
        std::int64_t delta = 0;
        for (int a = 0; a < MaxDimension; ++a)
        {
          delta += a == axis ? 0 : all[k][a] * stride[a];
        }
        offsets.push_back(all[k]);
        deltas.push_back(delta);
        numbers.push_back(static_cast<int>(k - all.size() / 2));
      }
    }
    voxels = offsets.empty() ? 0 : Box::FromExtent(extent).NumberOfVoxels();
  }

  /** Calls f(voxel of the last plane of a block, voxel of the first plane of the next one, which of the neighbors
   * behind the first voxel the second one is) for all neighbors of voxels of the last plane from `begin` to `end`. */
  template <typename TFunctor>
  void
  ForPairs(std::int64_t begin, std::int64_t end, TFunctor && f) const
  {
    Coordinates  at{};
    std::int64_t rest = begin;
    for (int a = 0; a < axis; ++a)
    {
      at[a] = rest % image[a];
      rest /= image[a];
    }
    for (std::int64_t last = begin; last < end; ++last)
    {
      for (std::size_t o = 0; o < offsets.size(); ++o)
      {
        bool isInside = true;
        for (int a = 0; a < axis; ++a)
        {
          const std::int64_t beside = at[a] + offsets[o][a];
          isInside = isInside && beside >= 0 && beside < image[a];
        }
        if (isInside)
        {
          f(last, last + deltas[o], numbers[o]);
        }
      }
      for (int a = 0; a < axis && ++at[a] == image[a]; ++a)
      {
        at[a] = 0;
      }
    }
  }

  int                       axis;
  Coordinates               image;
  std::int64_t              voxels{ 0 }; ///< of a plane; 0: they have no neighbors in other planes
  std::vector<Coordinates>  offsets;     ///< of the neighbors in the next plane, and the same within the plane
  std::vector<std::int64_t> deltas;
  std::vector<int>          numbers; ///< which of the neighbors behind a voxel
};

/** Minima that the faces of blocks hide: least voxels of trees that reach a face. They get numbers as they are found.
 */
template <typename TNumber>
class WatershedHidden
{
public:
  explicit WatershedHidden(std::uint64_t most)
    : m_Most(most)
  {
    // Memory that nothing is written to takes none.
    m_Minima.reserve(most);
  }

  /** `rank`: how many other minima precede this one, hidden ones left out. Returns its number. */
  TNumber
  Add(std::int64_t raster, TNumber rank)
  {
    if (m_Most == 0 || count < m_Most)
    {
      m_Minima.push_back({ raster, rank, static_cast<TNumber>(count) });
    }
    return static_cast<TNumber>(count++);
  }
  /** After the last one: into the raster order of the image. */
  void
  Sort()
  {
    std::sort(
      m_Minima.begin(), m_Minima.end(), [](const Minimum & a, const Minimum & b) { return a.raster < b.raster; });
    m_Places.resize(m_Minima.size());
    for (std::size_t i = 0; i < m_Minima.size(); ++i)
    {
      m_Places[m_Minima[i].number] = static_cast<TNumber>(i);
    }
  }
  TNumber
  LabelOf(TNumber number) const
  {
    const TNumber place = m_Places[number];
    return static_cast<TNumber>(m_Minima[place].rank + place + 1);
  }
  /** How many precede the minimum that `rank` other ones, hidden ones left out, precede. */
  std::uint64_t
  CountBefore(TNumber rank) const
  {
    return static_cast<std::uint64_t>(
      std::upper_bound(m_Minima.begin(),
                       m_Minima.end(),
                       rank,
                       [](TNumber value, const Minimum & minimum) { return value < minimum.rank; }) -
      m_Minima.begin());
  }
  /** How many have an index in the raster order of the image below this one. */
  std::uint64_t
  CountBelow(std::int64_t raster) const
  {
    return static_cast<std::uint64_t>(
      std::lower_bound(m_Minima.begin(),
                       m_Minima.end(),
                       raster,
                       [](const Minimum & minimum, std::int64_t value) { return minimum.raster < value; }) -
      m_Minima.begin());
  }
  std::vector<std::int64_t>
  FindBetween(std::int64_t first, std::int64_t end) const
  {
    std::vector<std::int64_t> found;
    for (std::uint64_t i = this->CountBelow(first); i < m_Minima.size() && m_Minima[i].raster < end; ++i)
    {
      found.push_back(m_Minima[i].raster);
    }
    return found;
  }

  std::uint64_t count{ 0 };

private:
  struct Minimum
  {
    std::int64_t raster;
    TNumber      rank;
    TNumber      number;
  };

  std::uint64_t        m_Most;
  std::vector<Minimum> m_Minima;
  std::vector<TNumber> m_Places;
};

/** The tree of a voxel where two blocks meet. */
template <typename TNumber>
struct WatershedCode
{
  enum class Kind : unsigned char
  {
    None,
    OfPlane, ///< that of a voxel of the last plane: its number
    Closed,  ///< a marker's label; or, without markers, how many minima precede the minimum, without hidden ones
    Hidden   ///< the number of a hidden minimum
  };

  TNumber number;
  Kind    kind;
};

/** A forest of the voxels of a plane: nodes as in WatershedBlockArrays, and edges in order. Values are ordinals. */
template <typename TNumber>
struct WatershedPlaneForest
{
  std::vector<TNumber>                     values;
  std::vector<TNumber>                     labels;
  std::vector<TNumber>                     lowValues;
  std::vector<std::int64_t>                lows;
  std::vector<unsigned char>               isThere;
  std::vector<WatershedBlockEdge<TNumber>> edges;
};

/** Kruskal's algorithm on the voxels of the last plane of the block before, and of the first and the last plane of the
 * new block. Each voxel of the new block's last plane is a separate root. Edges are sorted and joined in groups, one
 * after the other, which are parts of their order. With markers the same forest is found by several threads
 * (OpenTrees): of minima the order in which trees are joined counts.
 *
 * Nodes: first the voxels of the plane before, then those of the block's border. */
template <typename TNumber>
class WatershedStep
{
public:
  using Edge = WatershedBlockEdge<TNumber>;
  using Code = WatershedCode<TNumber>;
  using Index = std::size_t;

  /** `before`: how many minima precede the block, without hidden ones. */
  WatershedStep(const WatershedOperation & operation, const WatershedPlanes & planes, const Box & block, bool isLast,
                WatershedPlaneForest<TNumber> & forest, std::uint64_t before, ChunkState & summary,
                WatershedHidden<TNumber> & hidden, Executor & executor)
    : m_Operation(operation)
    , m_Planes(planes)
    , m_Block(block)
    , m_Forest(forest)
    , m_Hidden(hidden)
    , m_Executor(executor)
    , m_Before(forest.values.size())
    , m_DepthOfFloats(operation.height)
    , m_DepthOfDoubles(operation.height)
    , m_DepthOfIntegers(operation.height)
  {
    const WatershedLayout layout(operation, block);
    m_All = m_Before + static_cast<Index>(layout.border.voxels);
    m_FirstRoot = isLast ? m_All : m_All - static_cast<Index>(planes.voxels);
    const WatershedBlockArrays arrays = MakeWatershedBlockArrays(operation, layout, summary.data());
    m_Own = { static_cast<TNumber *>(arrays.values),
              static_cast<TNumber *>(arrays.labels),
              static_cast<TNumber *>(arrays.lowValues),
              arrays.lows,
              arrays.isThere };
    m_Earlier = {
      forest.values.data(), forest.labels.data(), forest.lowValues.data(), forest.lows.data(), forest.isThere.data()
    };
    m_Edges = static_cast<Edge *>(arrays.edges);
    std::int64_t numberOfEdges = 0;
    std::memcpy(&numberOfEdges, summary.data(), sizeof(numberOfEdges));
    m_NumberOfEdges = static_cast<Index>(numberOfEdges);
    this->SetOrdinals(before);
  }

  void
  Join(std::uint64_t edgesAtOnce)
  {
    m_Most = edgesAtOnce;
    m_Kept.reserve(m_All - m_FirstRoot);
    m_Operation.hasMarkers ? this->BeginMarkers() : this->BeginMinima();
    const Index count =
      m_Forest.edges.size() + m_NumberOfEdges + (m_Before > 0 ? m_Before * m_Planes.offsets.size() : 0);
    m_Tasks = std::min<Index>({ MostTasks, 4 * m_Executor.GetConcurrency(), 1 + count / LeastOfPart });
    // Each task finds its edges of the block in order, as it does those of the forest.
    this->ForTasks([this](Index task) {
      std::sort(m_Edges + BeginOfTask(m_NumberOfEdges, task, m_Tasks),
                m_Edges + BeginOfTask(m_NumberOfEdges, task + 1, m_Tasks),
                IsBefore);
    });
    m_Sorted.reserve(std::min(m_Most, count));
    m_Ends.reserve(m_Operation.hasMarkers ? std::min(m_Most, count) : 0);
    this->JoinBetween(nullptr, nullptr, count);
    m_Sorted = std::vector<Edge>();
    m_Ends = std::vector<Ends>();
    m_Groups.reset();
  }

  /** Without markers: gives the minima that no block has counted their numbers. */
  void
  FindHidden()
  {
    for (Index node = 0; node < m_All && !m_Operation.hasMarkers; ++node)
    {
      Tree & tree = m_Trees[node];
      if (tree.parent == node && tree.root == NoRoot && tree.state == State::Open && this->IsThere(node))
      {
        this->Hide(tree);
      }
    }
  }

  /** The trees of the voxels of the plane before, then those of the block's first plane. */
  Code
  CodeOf(Index node)
  {
    using Kind = typename Code::Kind;
    if (m_Operation.hasMarkers)
    {
      const TNumber tree = m_MarkerTrees->RootOf(static_cast<TNumber>(node));
      const TNumber root = this->RootOfTree(tree);
      return root != None         ? Code{ root, Kind::OfPlane }
             : m_Labels[tree] > 0 ? Code{ m_Labels[tree], Kind::Closed }
                                  : Code{ 0, Kind::None };
    }
    const Tree & tree = m_Trees[this->Find(static_cast<TNumber>(node))];
    return tree.root != NoRoot            ? Code{ static_cast<TNumber>(tree.root), Kind::OfPlane }
           : tree.state == State::Counted ? Code{ tree.mark, Kind::Closed }
           : tree.state == State::Hidden  ? Code{ tree.mark, Kind::Hidden }
                                          : Code{ 0, Kind::None };
  }

  WatershedPlaneForest<TNumber>
  MakeForest()
  {
    WatershedPlaneForest<TNumber> forest;
    const Index                   begin = m_FirstRoot - m_Before;
    const Index                   end = m_All - m_Before;
    forest.edges = std::move(m_Kept);
    m_Forest.edges = std::vector<Edge>();
    forest.values.assign(m_Own.values + begin, m_Own.values + end);
    forest.labels.assign(m_Own.labels + begin, m_Own.labels + end);
    if (m_Operation.hasMarkers)
    {
      forest.isThere.assign(m_Own.isThere + begin, m_Own.isThere + end);
      return forest;
    }
    forest.lows.assign(m_Own.lows + begin, m_Own.lows + end);
    forest.lowValues.assign(m_Own.lowValues + begin, m_Own.lowValues + end);
    for (Index node = m_FirstRoot; node < m_All; ++node)
    {
      const Index   kept = node - m_FirstRoot;
      const TNumber low = m_Trees[this->Find(static_cast<TNumber>(node))].mark;
      if (forest.lows[kept] >= 0)
      {
        forest.lows[kept] = this->Of(low).lows[this->At(low)];
        forest.lowValues[kept] = this->Of(low).lowValues[this->At(low)];
        forest.labels[kept] = this->Of(low).labels[this->At(low)];
      }
    }
    return forest;
  }

private:
  static constexpr TNumber None = OpenTrees<TNumber>::None;
  static constexpr int     NumberBits = 8 * sizeof(TNumber);
  /** A tree of minima has no root. Planes have fewer voxels. */
  static constexpr TNumber NoRoot = None >> 2;

  struct Nodes
  {
    TNumber *       values;
    TNumber *       labels;
    TNumber *       lowValues;
    std::int64_t *  lows;
    unsigned char * isThere;
  };
  /** Trees that an edge can join; `b` is None if it leads to a marker. */
  struct Ends
  {
    TNumber a;
    TNumber b;
  };
  enum class State : TNumber
  {
    Open,
    Counted,
    Hidden
  };
  /** A node's tree of minima: its root, as a number from 0, or NoRoot, and its mark: a node whose `low` is the tree's
   * least voxel; or, of a tree that an edge has given a minimum, the minimum, as WatershedBlockEdge has it. */
  struct Tree
  {
    TNumber parent;
    TNumber mark;
    TNumber root : NumberBits - 2;
    State   state : 2;
  };
  /** The same of roots. */
  struct Group
  {
    TNumber mark;
    TNumber parent : NumberBits - 2;
    State   state : 2;
  };

  /** Edges whose trees are fetched at once. */
  static constexpr Index EdgesAtOnce = 64;
  /** A thread lists, or sorts, at least so many edges at a time. */
  static constexpr Index LeastOfPart = 1 << 12;
  static constexpr Index SamplesOfPart = 16;
  static constexpr Index MostTasks = 32;

  Nodes
  Of(TNumber node) const
  {
    return node < m_Before ? m_Earlier : m_Own;
  }
  Index
  At(TNumber node) const
  {
    return node < m_Before ? node : node - m_Before;
  }
  bool
  IsThere(Index node) const
  {
    const Nodes nodes = this->Of(static_cast<TNumber>(node));
    const Index at = this->At(static_cast<TNumber>(node));
    return m_Operation.hasMarkers ? nodes.isThere[at] != 0 : nodes.lows[at] >= 0;
  }
  static bool
  IsBefore(const Edge & x, const Edge & y)
  {
    return x.high != y.high ? x.high < y.high : x.low != y.low ? x.low < y.low : x.place < y.place;
  }

  /** Turns the values of the block's summary into ordinals, and ranks in the block into ranks in all blocks so far. */
  void
  SetOrdinals(std::uint64_t before)
  {
    const std::uint64_t added = m_Operation.hasMarkers ? 0 : before;
    DispatchPixelType(m_Operation.inputKind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      const auto ordinalOf = [](TNumber packed) {
        const auto value = UnpackWatershedValue<Pixel>(packed);
        // -0 equals 0.
        return static_cast<TNumber>(OrdinalOf(value == Pixel(0) ? Pixel(0) : value));
      };
      ForEachNumber(m_Executor, m_All - m_Before, [&](Index i) {
        m_Own.values[i] = ordinalOf(m_Own.values[i]);
        if (!m_Operation.hasMarkers)
        {
          m_Own.lowValues[i] = ordinalOf(m_Own.lowValues[i]);
          m_Own.labels[i] = static_cast<TNumber>(m_Own.labels[i] + added);
        }
      });
      ForEachNumber(m_Executor, m_NumberOfEdges, [&](Index i) {
        Edge &        edge = m_Edges[i];
        const TNumber first = ordinalOf(edge.high);
        const TNumber second = ordinalOf(edge.low);
        edge.high = std::max(first, second);
        edge.low = std::min(first, second);
        edge.a = static_cast<TNumber>(edge.a + m_Before);
        edge.b = static_cast<TNumber>(edge.b + ((edge.place & Edge::Closes) != 0 ? added : m_Before));
      });
    });
  }

  static Index
  BeginOfTask(Index count, Index task, Index tasks)
  {
    return count / tasks * task + count % tasks * task / tasks;
  }
  /** Calls f(edge) for the edges of a task from `lower` on, before `upper`; nullptr: all. */
  template <typename TFunctor>
  void
  ForTaskBetween(const Edge * lower, const Edge * upper, Index task, TFunctor && f) const
  {
    const auto forSorted = [&](const Edge * edges, Index count) {
      const Edge * const begin = edges + BeginOfTask(count, task, m_Tasks);
      const Edge * const end = edges + BeginOfTask(count, task + 1, m_Tasks);
      std::for_each(lower ? std::lower_bound(begin, end, *lower, IsBefore) : begin,
                    upper ? std::lower_bound(begin, end, *upper, IsBefore) : end,
                    f);
    };
    forSorted(m_Forest.edges.data(), m_Forest.edges.size());
    forSorted(m_Edges, m_NumberOfEdges);
    if (m_Before > 0)
    {
      this->ForPairs(task, [&](const Edge & edge) {
        if ((!lower || !IsBefore(edge, *lower)) && (!upper || IsBefore(edge, *upper)))
        {
          f(edge);
        }
      });
    }
  }
  /** The same for all edges between both blocks. */
  template <typename TFunctor>
  void
  ForPairs(Index task, TFunctor && f) const
  {
    const Index        plane = static_cast<Index>(m_Planes.voxels);
    const std::int64_t firstOfPlane = (m_Block.lower[m_Planes.axis] - 1) * m_Planes.voxels;
    m_Planes.ForPairs(static_cast<std::int64_t>(BeginOfTask(plane, task, m_Tasks)),
                      static_cast<std::int64_t>(BeginOfTask(plane, task + 1, m_Tasks)),
                      [&](std::int64_t last, std::int64_t first, int number) {
                        const Index a = static_cast<Index>(last);
                        const Index b = static_cast<Index>(first);
                        const bool  areThere = m_Operation.hasMarkers ? (m_Earlier.isThere[a] & m_Own.isThere[b]) != 0
                                                                      : m_Earlier.lows[a] >= 0 && m_Own.lows[b] >= 0;
                        if (areThere)
                        {
                          const std::uint64_t place = static_cast<std::uint64_t>(firstOfPlane + last)
                                                        << Edge::NeighborBits |
                                                      static_cast<std::uint64_t>(number);
                          f(Edge{ std::max(m_Earlier.values[a], m_Own.values[b]),
                                  std::min(m_Earlier.values[a], m_Own.values[b]),
                                  place << Edge::FlagBits,
                                  static_cast<TNumber>(a),
                                  static_cast<TNumber>(m_Before + b) });
                        }
                      });
  }
  /** Calls f(task) for all tasks. */
  template <typename TFunctor>
  void
  ForTasks(TFunctor && f) const
  {
    m_Executor.ParallelFor(static_cast<std::int64_t>(m_Tasks),
                           [&](std::int64_t task, unsigned int) { f(static_cast<Index>(task)); });
  }
  /** Finds the parts of the order that edges belong to; fast for edges that follow each other in order. */
  class PartFinder
  {
  public:
    PartFinder(const Edge * bounds, Index count)
      : m_Bounds(bounds)
      , m_Count(count)
    {}
    Index
    operator()(const Edge & edge)
    {
      const bool isIn = (m_Last == 0 || !IsBefore(edge, m_Bounds[m_Last - 1])) &&
                        (m_Last == m_Count || IsBefore(edge, m_Bounds[m_Last]));
      m_Last =
        isIn ? m_Last : static_cast<Index>(std::upper_bound(m_Bounds, m_Bounds + m_Count, edge, IsBefore) - m_Bounds);
      return m_Last;
    }

  private:
    const Edge * m_Bounds;
    Index        m_Count;
    Index        m_Last{ 0 };
  };

  /** Joins along the edges from `lower` on, before `upper`, about `count` ones: divides their order into parts that
   * fit, sorts the edges of some parts at a time, and joins along them. */
  void
  JoinBetween(const Edge * lower, const Edge * upper, Index count)
  {
    const Index tasks = m_Tasks;
    const Index parts = count <= m_Most && tasks == 1 ? 1 : (count / m_Most + 1) * std::max<Index>(4, tasks);
    const std::vector<Edge> bounds = this->FindBounds(lower, upper, count, parts);
    // By part of the order and task: the number of edges.
    std::vector<Index> counts((bounds.size() + 1) * tasks);
    this->ForTasks([&](Index task) {
      PartFinder         partOf(bounds.data(), bounds.size());
      std::vector<Index> found(bounds.size() + 1);
      this->ForTaskBetween(lower, upper, task, [&](const Edge & edge) { ++found[partOf(edge)]; });
      for (Index part = 0; part < found.size(); ++part)
      {
        counts[part * tasks + task] = found[part];
      }
    });
    const auto sizeOf = [&](Index part) {
      return std::accumulate(counts.begin() + static_cast<std::ptrdiff_t>(part * tasks),
                             counts.begin() + static_cast<std::ptrdiff_t>((part + 1) * tasks),
                             Index{ 0 });
    };
    for (Index begin = 0, end = 0; begin <= bounds.size(); begin = end)
    {
      Index size = 0;
      for (end = begin; end <= bounds.size() && size + sizeOf(end) <= m_Most; ++end)
      {
        size += sizeOf(end);
      }
      const Edge * const from = begin == 0 ? lower : &bounds[begin - 1];
      if (end == begin)
      {
        const Edge * const to = begin == bounds.size() ? upper : &bounds[begin];
        this->JoinBetween(from, to, sizeOf(begin));
        ++end;
        continue;
      }
      this->Sort(from, end > bounds.size() ? upper : &bounds[end - 1], bounds, begin, end, counts, size);
      m_Operation.hasMarkers ? this->JoinMarkers() : this->JoinMinima();
    }
  }
  /** Edges that divide others into so many parts of about the same size. */
  std::vector<Edge>
  FindBounds(const Edge * lower, const Edge * upper, Index count, Index parts) const
  {
    if (parts == 1)
    {
      return {};
    }
    const Index                    stride = std::max<Index>(1, count / (parts * SamplesOfPart));
    std::vector<std::vector<Edge>> samplesOf(m_Tasks);
    this->ForTasks([&](Index task) {
      Index next = 0;
      this->ForTaskBetween(lower, upper, task, [&](const Edge & edge) {
        if (next-- == 0)
        {
          samplesOf[task].push_back(edge);
          next = stride - 1;
        }
      });
    });
    std::vector<Edge> samples;
    for (const std::vector<Edge> & some : samplesOf)
    {
      samples.insert(samples.end(), some.begin(), some.end());
    }
    std::sort(samples.begin(), samples.end(), IsBefore);
    std::vector<Edge> bounds;
    for (Index part = 1; part < parts; ++part)
    {
      // The first sample would leave nothing before it.
      const Index at = samples.size() * part / parts;
      if (at > 0 && (bounds.empty() || IsBefore(bounds.back(), samples[at])))
      {
        bounds.push_back(samples[at]);
      }
    }
    return bounds;
  }
  /** Lists the edges of the parts from `begin` to `end`, in order. */
  void
  Sort(const Edge * lower, const Edge * upper, const std::vector<Edge> & bounds, Index begin, Index end,
       const std::vector<Index> & counts, Index size)
  {
    m_Sorted.resize(size);
    std::vector<Index> firsts;
    Index              before = 0;
    for (Index i = begin * m_Tasks; i < end * m_Tasks; ++i)
    {
      firsts.push_back(before);
      before += counts[i];
    }
    this->ForTasks([&](Index task) {
      PartFinder         partOf(bounds.data() + begin, std::min(end, bounds.size()) - begin);
      std::vector<Index> next;
      for (Index part = 0; part < end - begin; ++part)
      {
        next.push_back(firsts[part * m_Tasks + task]);
      }
      this->ForTaskBetween(lower, upper, task, [&](const Edge & edge) { m_Sorted[next[partOf(edge)]++] = edge; });
    });
    m_Executor.ParallelFor(static_cast<std::int64_t>(end - begin), [&](std::int64_t part, unsigned int) {
      const Index from = firsts[static_cast<Index>(part) * m_Tasks];
      const Index next = static_cast<Index>(part) + 1;
      const Index to = next < end - begin ? firsts[next * m_Tasks] : size;
      std::sort(m_Sorted.begin() + static_cast<std::ptrdiff_t>(from),
                m_Sorted.begin() + static_cast<std::ptrdiff_t>(to),
                IsBefore);
    });
  }

  // Markers.

  void
  BeginMarkers()
  {
    m_MarkerTrees = std::make_unique<OpenTrees<TNumber>>(static_cast<TNumber>(m_All), m_Executor);
    m_Labels.resize(m_All);
    ForEachNumber(m_Executor, m_All, [&](Index node) {
      const TNumber number = static_cast<TNumber>(node);
      m_Labels[node] = this->Of(number).labels[this->At(number)];
      if (m_Labels[node] != 0 || node >= m_FirstRoot)
      {
        m_MarkerTrees->Close(number);
      }
    });
    if (m_FirstRoot < m_All)
    {
      m_Groups = std::make_unique<OpenTrees<TNumber>>(static_cast<TNumber>(m_All - m_FirstRoot), m_Executor);
      ForEachNumber(m_Executor, m_All - m_FirstRoot, [&](Index root) {
        if (m_Labels[m_FirstRoot + root] != 0)
        {
          m_Groups->Close(static_cast<TNumber>(root));
        }
      });
    }
  }
  /** The root of a tree, as a number from 0; None: it has a marker. */
  TNumber
  RootOfTree(TNumber tree) const
  {
    return tree != None && tree >= m_FirstRoot ? static_cast<TNumber>(tree - m_FirstRoot) : None;
  }
  /** Joins trees along the sorted edges, and then those of roots: of the edges that have joined none, both ends belong
   * to trees that have a marker or a root, which stay as they are. */
  void
  JoinMarkers()
  {
    const auto count = static_cast<TNumber>(m_Sorted.size());
    m_Ends.resize(count);
    ForEachNumber(m_Executor, count, [&](Index i) {
      m_Ends[i] = { m_Sorted[i].a, (m_Sorted[i].place & Edge::Closes) != 0 ? None : m_Sorted[i].b };
    });
    m_MarkerTrees->Join(m_Ends.data(), count, [&](TNumber i, TNumber tree) {
      if ((m_Sorted[i].place & Edge::Closes) != 0)
      {
        m_Labels[tree] = m_Sorted[i].b;
      }
    });
    if (!m_Groups)
    {
      return;
    }
    ForEachNumber(m_Executor, count, [&](Index i) {
      this->NameRoots(m_Sorted[i], m_Ends[i]);
      m_Ends[i] = { m_Sorted[i].a, (m_Sorted[i].place & Edge::Closes) != 0 ? None : m_Sorted[i].b };
    });
    m_Groups->Join(m_Ends.data(), count, [&](TNumber i, TNumber) { m_Sorted[i].place |= Edge::IsKept; });
    for (Edge & edge : m_Sorted)
    {
      if ((edge.place & Edge::IsKept) != 0)
      {
        edge.place &= ~Edge::IsKept;
        m_Kept.push_back(edge);
      }
    }
  }
  /** Makes an edge between two trees one from a root to another one, or to a marker; or one from the first root to
   * itself, which joins nothing. */
  void
  NameRoots(Edge & edge, const Ends & trees) const
  {
    const bool    closes = (edge.place & Edge::Closes) != 0;
    const TNumber treeA = trees.a;
    const TNumber treeB = closes ? None : trees.b;
    const TNumber rootA = this->RootOfTree(treeA);
    const TNumber rootB = this->RootOfTree(treeB);
    if (treeA == treeB || (rootA == None && rootB == None))
    {
      edge.a = edge.b = 0;
      edge.place &= ~Edge::Closes;
    }
    else if (rootA != None && rootB != None)
    {
      edge.a = rootA;
      edge.b = rootB;
    }
    else
    {
      edge.b = closes ? edge.b : m_Labels[rootA == None ? treeA : treeB];
      edge.a = rootA == None ? rootB : rootA;
      edge.place |= Edge::Closes;
    }
  }

  // Minima.

  void
  BeginMinima()
  {
    m_Trees.resize(m_All);
    m_GroupTrees.resize(m_All - m_FirstRoot);
    for (Index node = 0; node < m_All; ++node)
    {
      const TNumber number = static_cast<TNumber>(node);
      m_Trees[node].parent = number;
      m_Trees[node].mark = number;
      m_Trees[node].root = NoRoot;
      m_Trees[node].state = State::Open;
    }
    for (Index root = 0; root < m_GroupTrees.size(); ++root)
    {
      m_Trees[m_FirstRoot + root].root = static_cast<TNumber>(root) & NoRoot;
      m_GroupTrees[root].mark = static_cast<TNumber>(m_FirstRoot + root);
      m_GroupTrees[root].parent = static_cast<TNumber>(root) & NoRoot;
      m_GroupTrees[root].state = State::Open;
    }
  }
  TNumber
  Find(TNumber node)
  {
    while (m_Trees[node].parent != node)
    {
      Tree & tree = m_Trees[node];
      tree.parent = m_Trees[tree.parent].parent;
      node = tree.parent;
    }
    return node;
  }
  /** The group of a root. */
  TNumber
  FindGroup(TNumber root)
  {
    while (m_GroupTrees[root].parent != root)
    {
      Group & group = m_GroupTrees[root];
      group.parent = m_GroupTrees[group.parent].parent;
      root = group.parent;
    }
    return root;
  }
  /** Trees lie anywhere in memory: those of some edges are fetched before the first is joined. */
  void
  JoinMinima()
  {
    for (Index begin = 0; begin < m_Sorted.size(); begin += EdgesAtOnce)
    {
      const Index end = std::min(m_Sorted.size(), begin + EdgesAtOnce);
      for (Index i = begin; i < end; ++i)
      {
        __builtin_prefetch(&m_Trees[m_Sorted[i].a]);
        __builtin_prefetch(&m_Trees[this->OtherOf(m_Sorted[i])]);
      }
      for (Index i = begin; i < end; ++i)
      {
        __builtin_prefetch(&m_Trees[m_Trees[m_Sorted[i].a].parent]);
        __builtin_prefetch(&m_Trees[m_Trees[this->OtherOf(m_Sorted[i])].parent]);
      }
      for (Index i = begin; i < end; ++i)
      {
        this->JoinMinima(m_Sorted[i]);
      }
    }
  }
  /** The other node of an edge; the same one if it leads to a minimum. */
  static TNumber
  OtherOf(const Edge & edge)
  {
    return (edge.place & Edge::Closes) != 0 ? edge.a : edge.b;
  }
  /** Whether a tree, or group of trees, with this mark keeps a separate minimum at an edge of this weight. */
  bool
  IsDeep(State state, TNumber mark, TNumber high) const
  {
    if (state != State::Open)
    {
      return true;
    }
    const TNumber low = this->Of(mark).lowValues[this->At(mark)];
    return m_Operation.inputKind == PixelType::Float32
             ? m_DepthOfFloats.IsDeep(FromOrdinal<float>(high), FromOrdinal<float>(low))
           : m_Operation.inputKind == PixelType::Float64
             ? m_DepthOfDoubles.IsDeep(FromOrdinal<double>(high), FromOrdinal<double>(low))
             : m_DepthOfIntegers.IsDeep(high, low);
  }
  /** Two trees become one, the second one: it takes the lower one of both marks. */
  template <typename TFrom, typename TTo>
  void
  Lower(const TFrom & from, TTo & to) const
  {
    if (to.state != State::Open)
    {
      return;
    }
    const Index atFrom = from.state == State::Open ? this->At(from.mark) : 0;
    const Index atTo = this->At(to.mark);
    const Nodes nodesTo = this->Of(to.mark);
    if (from.state != State::Open || this->Of(from.mark).lowValues[atFrom] < nodesTo.lowValues[atTo] ||
        (this->Of(from.mark).lowValues[atFrom] == nodesTo.lowValues[atTo] &&
         this->Of(from.mark).lows[atFrom] < nodesTo.lows[atTo]))
    {
      to.mark = from.mark;
      to.state = from.state;
    }
  }
  /** The minimum of a tree that no block has counted gets a number. */
  void
  Hide(Tree & tree)
  {
    const Nodes nodes = this->Of(tree.mark);
    const Index at = this->At(tree.mark);
    tree.mark = m_Hidden.Add(nodes.lows[at], nodes.labels[at]);
    tree.state = State::Hidden;
  }
  static State
  StateOf(const Edge & edge)
  {
    return (edge.place & Edge::IsHidden) != 0 ? State::Hidden : State::Counted;
  }
  void
  JoinMinima(const Edge & edge)
  {
    Tree & a = m_Trees[this->Find(edge.a)];
    if ((edge.place & Edge::Closes) != 0)
    {
      if (a.root != NoRoot)
      {
        this->CloseGroup(edge, a.root, edge.b, StateOf(edge));
      }
      else if (!this->IsDeep(a.state, a.mark, edge.high))
      {
        a.mark = edge.b;
        a.state = StateOf(edge);
      }
      return;
    }
    Tree & b = m_Trees[this->Find(edge.b)];
    if (&a == &b)
    {
      return;
    }
    if (a.root != NoRoot && b.root != NoRoot)
    {
      this->JoinGroups(edge, a.root, b.root);
      return;
    }
    const bool isDeepA = a.root != NoRoot || this->IsDeep(a.state, a.mark, edge.high);
    const bool isDeepB = b.root != NoRoot || this->IsDeep(b.state, b.mark, edge.high);
    if (!isDeepA || !isDeepB)
    {
      a.parent = b.parent;
      this->Lower(a, b);
      b.root = b.root == NoRoot ? a.root : b.root;
      if (b.root != NoRoot)
      {
        this->Lower(b, m_GroupTrees[this->FindGroup(b.root)]);
      }
    }
    else if (a.root != NoRoot || b.root != NoRoot)
    {
      Tree & other = a.root != NoRoot ? b : a;
      if (!this->IsDeepGroup(a.root != NoRoot ? a.root : b.root, edge.high))
      {
        if (other.state == State::Open)
        {
          this->Hide(other);
        }
        this->CloseGroup(edge, a.root != NoRoot ? a.root : b.root, other.mark, other.state);
      }
    }
  }
  bool
  IsDeepGroup(TNumber root, TNumber high)
  {
    const Group & group = m_GroupTrees[this->FindGroup(root)];
    return this->IsDeep(group.state, group.mark, high);
  }
  void
  JoinGroups(const Edge & edge, TNumber rootA, TNumber rootB)
  {
    Group & a = m_GroupTrees[this->FindGroup(rootA)];
    Group & b = m_GroupTrees[this->FindGroup(rootB)];
    if (&a != &b && !(this->IsDeep(a.state, a.mark, edge.high) && this->IsDeep(b.state, b.mark, edge.high)))
    {
      a.parent = b.parent;
      this->Lower(a, b);
      Edge kept = edge;
      kept.a = rootA;
      kept.b = rootB;
      m_Kept.push_back(kept);
    }
  }
  /** Gives a group of trees a minimum, unless it keeps its own. */
  void
  CloseGroup(const Edge & edge, TNumber root, TNumber minimum, State state)
  {
    if (!this->IsDeepGroup(root, edge.high))
    {
      m_GroupTrees[this->FindGroup(root)].state = State::Counted;
      Edge kept = edge;
      kept.a = root;
      kept.b = minimum;
      kept.place =
        (edge.place & ~(Edge::Closes | Edge::IsHidden)) | Edge::Closes | (state == State::Hidden ? Edge::IsHidden : 0);
      m_Kept.push_back(kept);
    }
  }

  const WatershedOperation &          m_Operation;
  const WatershedPlanes &             m_Planes;
  const Box                           m_Block;
  WatershedPlaneForest<TNumber> &     m_Forest;
  WatershedHidden<TNumber> &          m_Hidden;
  Executor &                          m_Executor;
  const Index                         m_Before; ///< nodes of the plane before
  const WatershedDepth<float>         m_DepthOfFloats;
  const WatershedDepth<double>        m_DepthOfDoubles;
  const WatershedDepth<std::uint64_t> m_DepthOfIntegers; ///< of ordinals, whose differences are those of integers
  Index                               m_All{ 0 };
  Index                               m_FirstRoot{ 0 };
  Nodes                               m_Own{};
  Nodes                               m_Earlier{};
  Edge *                              m_Edges{ nullptr };
  Index                               m_NumberOfEdges{ 0 };
  Index                               m_Most{ 0 };
  Index                               m_Tasks{ 1 }; ///< that list edges, each always the same ones
  std::vector<Edge>                   m_Sorted;
  std::vector<Ends>                   m_Ends;
  std::vector<Edge>                   m_Kept;
  // With markers: the label of each tree without a root, or 0; trees of roots.
  std::unique_ptr<OpenTrees<TNumber>> m_MarkerTrees;
  std::unique_ptr<OpenTrees<TNumber>> m_Groups;
  std::vector<TNumber>                m_Labels;
  // Without markers.
  std::vector<Tree>  m_Trees;
  std::vector<Group> m_GroupTrees;
};

} // namespace chunkwise

#endif
