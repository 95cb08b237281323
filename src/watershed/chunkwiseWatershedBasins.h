/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWatershedBasins_h
#define chunkwiseWatershedBasins_h

#include "chunkwiseWatershedSteps.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

// The watershed of minima by the size of their basins on devices. The device finds the basins of all minima and the
// forest between them. The host makes the tree of their components: nodes are the basins, and the components that
// basins form at the levels where they meet. The device counts the voxels of each node; so the host knows which
// components are large. The device finds the voxels of the least large ones by halving ranges of levels.
namespace chunkwise
{

/** Components of basins. The nodes are first the basins, then, in ascending order of levels, what they form; basins
 * that meet at a level are joined at once. */
struct WatershedBasinTree
{
  static constexpr std::uint64_t None = ~std::uint64_t{ 0 };

  /** `all`: a key above those of all voxels. */
  WatershedBasinTree(std::uint64_t theBasins, std::vector<WatershedBasinEdge> && theEdges, std::uint64_t all)
    : basins(theBasins)
    , edges(std::move(theEdges))
  {
    std::sort(edges.begin(), edges.end());
    above.assign(basins, None);
    spills.assign(basins, all);
    levels.assign(basins, 0);
    std::vector<std::uint64_t> roots(basins);
    std::iota(roots.begin(), roots.end(), std::uint64_t{ 0 });
    std::vector<std::uint64_t>                           tops = roots;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> joined; // a root and its node before
    for (auto edge = edges.begin(); edge != edges.end();)
    {
      const std::uint64_t level = edge->high;
      const std::uint64_t before = above.size();
      const auto          end = std::find_if(edge, edges.end(), [&](const auto & each) { return each.high != level; });
      joined.clear();
      for (auto each = edge; each != end; ++each)
      {
        for (const std::uint64_t basin : { each->a, each->b })
        {
          const std::uint64_t root = Find(roots, basin);
          joined.emplace_back(root, tops[root]);
        }
      }
      for (; edge != end; ++edge)
      {
        roots[Find(roots, edge->a)] = Find(roots, edge->b);
      }
      for (const auto & each : joined)
      {
        const std::uint64_t root = Find(roots, each.first);
        if (tops[root] < before)
        {
          tops[root] = above.size();
          above.push_back(None);
          spills.push_back(all);
          levels.push_back(level);
        }
        above[each.second] = tops[root];
        spills[each.second] = level;
      }
    }
    this->MakeJumps();
  }

  /** A jump leads so far that the way from a node to any node above it takes few jumps and single steps, in proportion
   * to the logarithm of its length: a component that takes in others one by one has as many nodes as these. As E. W.
   * Myers, "An applicative random-access stack", Information Processing Letters 17, 1983. */
  void
  MakeJumps()
  {
    jumps.resize(above.size());
    std::vector<std::uint64_t> depths(above.size());
    for (std::uint64_t node = above.size(); node-- > 0;)
    {
      const std::uint64_t next = above[node];
      if (next == None)
      {
        jumps[node] = node;
        continue;
      }
      const std::uint64_t far = jumps[next];
      depths[node] = depths[next] + 1;
      jumps[node] = depths[next] - depths[far] == depths[far] - depths[jumps[far]] ? jumps[far] : next;
    }
  }
  static std::uint64_t
  Find(std::vector<std::uint64_t> & roots, std::uint64_t basin)
  {
    while (roots[basin] != basin)
    {
      basin = roots[basin] = roots[roots[basin]];
    }
    return basin;
  }
  /** Gives basins without a label that of a basin to which the forest joins them. */
  void
  JoinLabels(std::vector<std::uint64_t> & labels) const
  {
    std::vector<std::uint64_t> roots(basins);
    std::iota(roots.begin(), roots.end(), std::uint64_t{ 0 });
    for (const WatershedBasinEdge & edge : edges)
    {
      const std::uint64_t a = Find(roots, edge.a);
      const std::uint64_t b = Find(roots, edge.b);
      if (labels[a] == 0 || labels[b] == 0)
      {
        labels[b] = std::max(labels[a], labels[b]);
        roots[a] = b;
      }
    }
    for (std::uint64_t basin = 0; basin < basins; ++basin)
    {
      labels[basin] = labels[Find(roots, basin)];
    }
  }

  /** Bytes for each basin, with all that WatershedBasinRun keeps on the host. */
  static constexpr std::uint64_t BytesOfBasin = 320;

  std::uint64_t                   basins;
  std::vector<WatershedBasinEdge> edges;  ///< in order
  std::vector<std::uint64_t>      above;  ///< the node that a node is a part of
  std::vector<std::uint64_t>      spills; ///< the level of that
  std::vector<std::uint64_t>      levels; ///< of the node; 0: it is a basin
  std::vector<std::uint64_t>      jumps;  ///< a node above, or, from one that has none, the node itself
};

/** The voxels of nodes. A voxel belongs to the least node with its basin that spills over above the voxel's value. */
template <typename TId>
struct WatershedBasinChunk : public WatershedChunk<TId>
{
  using Chunk = WatershedChunk<TId>;

  explicit WatershedBasinChunk(const Chunk & chunk)
    : Chunk(chunk)
  {}

  bool          byVolume{ false };
  std::uint64_t size{ 1 };
  double        scale{ 1 };
  // Arrays of nodes; Outside: there is none.
  std::uint64_t * spills{ nullptr };
  TId *           above{ nullptr };
  TId *           jumps{ nullptr };
  TId *           slots{ nullptr };
  // Arrays of slots, for which voxels below a key count.
  std::uint64_t * probes{ nullptr };
  std::uint64_t * voxelsBelow{ nullptr };
  std::uint64_t * lowSums{ nullptr }; ///< of how far they lie below the key, the lower 32 bits of each
  std::uint64_t * highSums{ nullptr };
  TId *           firsts{ nullptr };

  /** As AreaRise. */
  CHUNKWISE_HOST_DEVICE std::uint64_t
                        UnitsOf(std::uint64_t key) const
  {
    if (!IsFloatingPoint(this->inputKind))
    {
      return key;
    }
    constexpr double most = 4611686018427387904.0;
    const double     units = floor(this->RealOf(key) * scale);
    // Nothing depends on the units of a key that no number has.
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(units >= most ? most : units > -most ? units : -most));
  }
  /** Whether a voxel with this key belongs to a node above this one. */
  CHUNKWISE_HOST_DEVICE bool
  SpillsBelow(TId node, std::uint64_t key) const
  {
    return spills[node] <= key && above[node] != Chunk::Outside;
  }
  /** The slot of a voxel that counts, or Outside. */
  CHUNKWISE_HOST_DEVICE TId
  SlotOf(TId v, std::uint64_t key) const
  {
    const TId basin = this->parents[v];
    if (basin == Chunk::Outside)
    {
      return basin;
    }
    TId node = Chunk::TreeOf(basin);
    while (SpillsBelow(node, key))
    {
      const TId far = jumps[node];
      node = SpillsBelow(far, key) ? far : above[node];
    }
    const TId slot = slots[node];
    // No voxel has this key but the largest one of 64 bits.
    const bool isBelow = slot != Chunk::Outside && (key < probes[slot] || probes[slot] == ~std::uint64_t{ 0 });
    return isBelow ? slot : Chunk::Outside;
  }
  CHUNKWISE_HOST_DEVICE void
  CountVoxel(std::int64_t i)
  {
    const std::uint64_t key = this->KeyOf(static_cast<TId>(i));
    const TId           slot = SlotOf(static_cast<TId>(i), key);
    if (slot == Chunk::Outside)
    {
      return;
    }
    AddRelaxed(voxelsBelow[slot], 1);
    if (byVolume)
    {
      const std::uint64_t below = UnitsOf(probes[slot]) - UnitsOf(key);
      const std::uint64_t counted = below < size ? below : size;
      AddRelaxed(lowSums[slot], counted & 0xFFFFFFFFu);
      AddRelaxed(highSums[slot], counted >> 32);
    }
  }
  CHUNKWISE_HOST_DEVICE void
  FindFirst(std::int64_t i)
  {
    const TId v = static_cast<TId>(i);
    const TId slot = SlotOf(v, this->KeyOf(v));
    if (slot != Chunk::Outside)
    {
      TId first = LoadRelaxed(firsts[slot]);
      while (v < first && !ReplaceRelaxed(firsts[slot], first, v))
      {
      }
    }
  }
};

/** Finds the labels of basins. `TRunner`: see chunkwiseWatershedStepRun.h. */
template <typename TId, typename TRunner>
class WatershedBasinRun
{
public:
  using Chunk = WatershedBasinChunk<TId>;
  using Numbers = std::vector<std::uint64_t>;

  /** The device's memory for the nodes of so many basins. */
  static std::size_t
  BytesOf(std::int64_t basins)
  {
    return static_cast<std::size_t>(2 * basins) * (5 * sizeof(std::uint64_t) + 4 * sizeof(TId));
  }

  /** `room`: BytesOf the device's memory. */
  WatershedBasinRun(TRunner & runner, const WatershedChunk<TId> & chunk, const WatershedSizes & sizes,
                    std::uint64_t basins, std::vector<WatershedBasinEdge> && edges, void * room)
    : m_Runner(runner)
    , m_Chunk(chunk)
    , m_Voxels(chunk.box.NumberOfVoxels())
    , m_Tree(basins, std::move(edges), AboveAll(chunk.inputKind))
    , m_Nodes(m_Tree.above.size())
  {
    m_Chunk.byVolume = sizes.byVolume;
    m_Chunk.size = sizes.size;
    m_Chunk.scale = 1 / sizes.unit;
    auto * const numbers = static_cast<std::uint64_t *>(room);
    m_Chunk.spills = numbers;
    m_Chunk.probes = numbers + m_Nodes;
    m_Chunk.voxelsBelow = numbers + 2 * m_Nodes;
    m_Chunk.lowSums = numbers + 3 * m_Nodes;
    m_Chunk.highSums = numbers + 4 * m_Nodes;
    m_Chunk.above = reinterpret_cast<TId *>(numbers + 5 * m_Nodes);
    m_Chunk.jumps = m_Chunk.above + m_Nodes;
    m_Chunk.slots = m_Chunk.jumps + m_Nodes;
    m_Chunk.firsts = m_Chunk.slots + m_Nodes;
    this->Copy(m_Chunk.spills, m_Tree.spills);
    this->CopyIds(m_Chunk.above, m_Tree.above);
    this->CopyIds(m_Chunk.jumps, m_Tree.jumps);
  }

  /** The label of each basin, and the number of labels. Empty: `stop` says so. */
  template <typename TStop>
  Numbers
  FindLabels(std::uint64_t & count, TStop && stop)
  {
    const Numbers markers = this->FindMarkers();
    Numbers       slots(m_Nodes, WatershedBasinTree::None);
    for (std::uint64_t slot = 0; slot < markers.size(); ++slot)
    {
      slots[markers[slot]] = slot;
    }
    for (std::uint64_t node = m_Nodes; node-- > 0;)
    {
      const std::uint64_t above = m_Tree.above[node];
      slots[node] =
        above != WatershedBasinTree::None && slots[above] != WatershedBasinTree::None ? slots[above] : slots[node];
    }
    this->CopyIds(m_Chunk.slots, slots);
    Numbers numbers(markers.size());
    count = markers.size();
    if (!this->FindFirsts(markers, numbers, stop))
    {
      return Numbers();
    }
    // The basins are the first nodes.
    slots.resize(m_Tree.basins);
    for (std::uint64_t & slot : slots)
    {
      slot = slot == WatershedBasinTree::None ? 0 : numbers[slot];
    }
    m_Tree.JoinLabels(slots);
    return slots;
  }

private:
  /** Keys below all numbers, and above them. NaN has none between. */
  static std::uint64_t
  BelowAll(PixelType kind)
  {
    return !IsFloatingPoint(kind) ? 0 : WatershedChunk<TId>::KeyOfBits(kind, InfinityOf(kind, true));
  }
  static std::uint64_t
  AboveAll(PixelType kind)
  {
    return IsFloatingPoint(kind)  ? WatershedChunk<TId>::KeyOfBits(kind, InfinityOf(kind, false)) + 1
           : PixelSize(kind) == 8 ? ~std::uint64_t{ 0 }
                                  : std::uint64_t{ 1 } << 8 * PixelSize(kind);
  }
  static std::uint64_t
  InfinityOf(PixelType kind, bool isNegative)
  {
    const std::uint64_t sign = std::uint64_t{ isNegative } << (8 * PixelSize(kind) - 1);
    return sign | (kind == PixelType::Float32 ? std::uint64_t{ 0x7F800000 } : std::uint64_t{ 0x7FF0000000000000 });
  }

  void
  Copy(std::uint64_t * to, const Numbers & from)
  {
    m_Runner.CopyToDevice(to, from.data(), from.size() * sizeof(*to));
  }
  /** None becomes Outside. */
  void
  CopyIds(TId * to, const Numbers & from)
  {
    std::vector<TId> ids(from.size());
    std::transform(from.begin(), from.end(), ids.begin(), [](std::uint64_t each) { return static_cast<TId>(each); });
    m_Runner.CopyToDevice(to, ids.data(), ids.size() * sizeof(*to));
  }
  Numbers
  Load(const std::uint64_t * from, std::uint64_t count)
  {
    Numbers to(count);
    m_Runner.CopyToHost(to.data(), from, count * sizeof(*from));
    return to;
  }

  /** The voxels of slots below their probes, and their volumes. Sizes above `size` are at least that. */
  struct Sizes
  {
    Numbers voxels;
    Numbers volumes;
  };
  Sizes
  Count(const Numbers & probes)
  {
    const std::uint64_t slots = probes.size();
    const std::size_t   bytes = slots * sizeof(std::uint64_t);
    this->Copy(m_Chunk.probes, probes);
    m_Runner.Fill(m_Chunk.voxelsBelow, 0, bytes);
    m_Runner.Fill(m_Chunk.lowSums, 0, bytes);
    m_Runner.Fill(m_Chunk.highSums, 0, bytes);
    m_Runner.template ForEach<&Chunk::CountVoxel>(m_Chunk, m_Voxels);
    Sizes sizes;
    sizes.voxels = this->Load(m_Chunk.voxelsBelow, slots);
    if (m_Chunk.byVolume)
    {
      sizes.volumes = this->Load(m_Chunk.lowSums, slots);
      const Numbers highs = this->Load(m_Chunk.highSums, slots);
      for (std::uint64_t slot = 0; slot < slots; ++slot)
      {
        std::uint64_t &     low = sizes.volumes[slot];
        const std::uint64_t high = highs[slot] + (low >> 32);
        low = high >> 31 != 0 ? m_Chunk.size : std::min(m_Chunk.size, high << 32 | (low & 0xFFFFFFFFu));
      }
    }
    return sizes;
  }
  std::uint64_t
  Add(std::uint64_t a, std::uint64_t b) const
  {
    return b < m_Chunk.size - std::min(m_Chunk.size, a) ? a + b : m_Chunk.size;
  }
  std::uint64_t
  Multiply(std::uint64_t a, std::uint64_t b) const
  {
    return b > 0 && a > (m_Chunk.size - 1) / b ? m_Chunk.size : a * b;
  }

  /** The least large components. */
  Numbers
  FindMarkers()
  {
    Numbers each(m_Nodes);
    std::iota(each.begin(), each.end(), std::uint64_t{ 0 });
    this->CopyIds(m_Chunk.slots, each);
    Sizes                      own = this->Count(m_Tree.spills);
    Numbers                    parts(m_Nodes);                          // voxels of the nodes within a node
    Numbers                    volumes(m_Chunk.byVolume ? m_Nodes : 0); // and their volume, up to its level
    std::vector<unsigned char> isMarked(m_Nodes);                       // a part of it is large
    Numbers                    markers;
    for (std::uint64_t node = 0; node < m_Nodes; ++node)
    {
      const std::uint64_t above = m_Tree.above[node];
      const bool          isWhole = above == WatershedBasinTree::None;
      const std::uint64_t voxels = parts[node] + own.voxels[node];
      std::uint64_t       volume = 0;
      if (m_Chunk.byVolume && !isWhole)
      {
        const std::uint64_t rise =
          parts[node] > 0 ? m_Chunk.UnitsOf(m_Tree.spills[node]) - m_Chunk.UnitsOf(m_Tree.levels[node]) : 0;
        volume = this->Add(this->Add(volumes[node], own.volumes[node]), this->Multiply(parts[node], rise));
        volumes[above] = this->Add(volumes[above], volume);
      }
      const bool isLarge = isWhole || (m_Chunk.byVolume ? volume : voxels) >= m_Chunk.size;
      if (isLarge && !isMarked[node])
      {
        markers.push_back(node);
      }
      if (!isWhole)
      {
        parts[above] += voxels;
        isMarked[above] = isMarked[above] || isLarge ? 1 : 0;
      }
    }
    return markers;
  }

  /** Numbers markers in the raster order of their first voxels. */
  template <typename TStop>
  bool
  FindFirsts(const Numbers & markers, Numbers & numbers, TStop && stop)
  {
    // Below the key `high` a component is large, below `low` it is not, or not there.
    Numbers low(markers.size());
    Numbers high(markers.size());
    for (std::uint64_t slot = 0; slot < markers.size(); ++slot)
    {
      const std::uint64_t node = markers[slot];
      low[slot] = std::max(m_Tree.levels[node], BelowAll(m_Chunk.inputKind));
      high[slot] = m_Tree.spills[node];
    }
    Numbers probes(markers.size());
    for (bool isFound = false; !isFound;)
    {
      if (stop())
      {
        return false;
      }
      isFound = true;
      for (std::uint64_t slot = 0; slot < markers.size(); ++slot)
      {
        isFound = isFound && high[slot] - low[slot] <= 1;
        probes[slot] = low[slot] + (high[slot] - low[slot]) / 2;
      }
      const Sizes sizes = isFound ? Sizes() : this->Count(probes);
      for (std::uint64_t slot = 0; slot < markers.size() && !isFound; ++slot)
      {
        const bool isLarge = (m_Chunk.byVolume ? sizes.volumes : sizes.voxels)[slot] >= m_Chunk.size;
        if (high[slot] - low[slot] > 1)
        {
          (isLarge ? high : low)[slot] = probes[slot];
        }
      }
    }
    this->Copy(m_Chunk.probes, high);
    m_Runner.Fill(m_Chunk.firsts, 0xFF, markers.size() * sizeof(TId));
    m_Runner.template ForEach<&Chunk::FindFirst>(m_Chunk, m_Voxels);
    std::vector<TId> firsts(markers.size());
    m_Runner.CopyToHost(firsts.data(), m_Chunk.firsts, firsts.size() * sizeof(TId));
    Numbers order(markers.size());
    std::iota(order.begin(), order.end(), std::uint64_t{ 0 });
    std::sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) { return firsts[a] < firsts[b]; });
    for (std::uint64_t i = 0; i < order.size(); ++i)
    {
      numbers[order[i]] = i + 1;
    }
    return true;
  }

  TRunner &           m_Runner;
  Chunk               m_Chunk;
  const std::int64_t  m_Voxels;
  WatershedBasinTree  m_Tree;
  const std::uint64_t m_Nodes;
};

} // namespace chunkwise

#endif
