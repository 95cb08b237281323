/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseWatershedSummary.h"

#include <algorithm>
#include <numeric>

// Kruskal's algorithm on the voxels of all borders: with the edges that each chunk has kept, and those between chunks.
namespace chunkwise
{

namespace
{

/** An edge between nodes of all chunks; `b` is -1 if it leads to a marker or minimum within the chunk of `a`. */
template <typename TPixel>
struct JoinedEdge
{
  TPixel                high;
  TPixel                low;
  std::int64_t          first;
  std::int64_t          second;
  std::int64_t          a;
  std::int64_t          b;
  const WatershedEdge * inChunk;

  friend bool
  operator<(const JoinedEdge & x, const JoinedEdge & y)
  {
    return x.high != y.high     ? x.high < y.high
           : x.low != y.low     ? x.low < y.low
           : x.first != y.first ? x.first < y.first
                                : x.second < y.second;
  }
};

template <typename TPixel>
class WatershedJoin
{
public:
  WatershedJoin(const WatershedOperation & operation, const std::vector<Box> & chunks,
                const std::vector<ChunkState> & summaries)
    : m_Operation(operation)
    , m_Chunks(chunks)
    , m_Depth(operation.height)
  {
    std::int64_t nodes = 0;
    for (std::size_t c = 0; c < chunks.size(); ++c)
    {
      m_Layouts.emplace_back(operation, chunks[c]);
      m_Begins.push_back(nodes);
      nodes += m_Layouts.back().border.voxels;
      m_Summaries.push_back(summaries[c].data());
    }
    m_Begins.push_back(nodes);
    m_Parents.resize(static_cast<std::size_t>(nodes));
    std::iota(m_Parents.begin(), m_Parents.end(), 0);
    m_Labels.resize(m_Parents.size());
    if (!operation.hasMarkers)
    {
      m_Lows = m_Parents;
      m_Minima.resize(m_Parents.size(), nullptr);
    }
    std::vector<Coordinates> offsets = operation.GetOffsets();
    m_Preceding.assign(offsets.begin(), offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2));
  }

  std::vector<ChunkState>
  Solve()
  {
    this->Join();
    std::vector<ChunkState> solutions;
    for (const WatershedLayout & layout : m_Layouts)
    {
      solutions.emplace_back(layout.solutionBytes);
    }
    if (!m_Operation.hasMarkers)
    {
      this->NumberMinima(solutions);
    }
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      auto * const labels = reinterpret_cast<std::uint64_t *>(solutions[c].data() + m_Layouts[c].labels);
      for (std::int64_t i = m_Begins[c]; i < m_Begins[c + 1]; ++i)
      {
        labels[i - m_Begins[c]] = m_Labels[this->Find(i)];
      }
    }
    if (m_Operation.lines)
    {
      this->FindLines(solutions);
    }
    return solutions;
  }

private:
  using Index = std::size_t;

  const WatershedNode &
  NodeOf(std::int64_t node, std::size_t chunk) const
  {
    return reinterpret_cast<const WatershedNode *>(m_Summaries[chunk] + m_Layouts[chunk].nodes)[node - m_Begins[chunk]];
  }
  std::size_t
  ChunkOf(std::int64_t node) const
  {
    return static_cast<std::size_t>(std::upper_bound(m_Begins.begin(), m_Begins.end(), node) - m_Begins.begin()) - 1;
  }
  const WatershedNode &
  NodeOf(std::int64_t node) const
  {
    return this->NodeOf(node, this->ChunkOf(node));
  }
  std::int64_t
  Find(std::int64_t node)
  {
    while (m_Parents[Index(node)] != node)
    {
      m_Parents[Index(node)] = m_Parents[Index(m_Parents[Index(node)])];
      node = m_Parents[Index(node)];
    }
    return node;
  }

  /** Calls f(node, its chunk, its index, other node, ...) for all neighbors in two chunks, the later one first. */
  template <typename TFunctor>
  void
  ForPairs(TFunctor && f) const
  {
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      const Box &              box = m_Chunks[c];
      std::vector<std::size_t> beside;
      for (std::size_t d = 0; d < m_Chunks.size(); ++d)
      {
        bool touches = d != c;
        for (int a = 0; a < MaxDimension; ++a)
        {
          touches = touches && m_Chunks[d].lower[a] <= box.upper[a] && m_Chunks[d].upper[a] >= box.lower[a];
        }
        if (touches)
        {
          beside.push_back(d);
        }
      }
      std::int64_t node = m_Begins[c];
      for (int i = 0; i < m_Layouts[c].border.count; ++i)
      {
        const Box & slab = m_Layouts[c].border.slabs[i];
        Coordinates index = slab.lower;
        for (std::int64_t k = slab.NumberOfVoxels(); k > 0; --k, ++node)
        {
          this->ForPairsOf(node, c, index, beside, f);
          for (int a = 0; a < MaxDimension && ++index[a] == slab.upper[a]; ++a)
          {
            index[a] = slab.lower[a];
          }
        }
      }
    }
  }
  template <typename TFunctor>
  void
  ForPairsOf(std::int64_t node, std::size_t chunk, const Coordinates & index, const std::vector<std::size_t> & beside,
             TFunctor && f) const
  {
    for (const Coordinates & offset : m_Preceding)
    {
      Coordinates other = index;
      for (int a = 0; a < MaxDimension; ++a)
      {
        other[a] += offset[a];
      }
      if (Holds(m_Chunks[chunk], other))
      {
        continue;
      }
      for (const std::size_t d : beside)
      {
        if (Holds(m_Chunks[d], other))
        {
          f(node, chunk, index, m_Begins[d] + m_Layouts[d].border.IndexOf(other), d, other);
          break;
        }
      }
    }
  }
  static bool
  Holds(const Box & box, const Coordinates & index)
  {
    bool holds = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      holds = holds && index[a] >= box.lower[a] && index[a] < box.upper[a];
    }
    return holds;
  }

  static void
  SetValues(JoinedEdge<TPixel> & edge, std::uint64_t first, std::uint64_t second)
  {
    const auto a = UnpackWatershedValue<TPixel>(first);
    const auto b = UnpackWatershedValue<TPixel>(second);
    edge.high = std::max(a, b);
    edge.low = std::min(a, b);
  }

  void
  Join()
  {
    std::vector<JoinedEdge<TPixel>> edges;
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      std::int64_t count = 0;
      std::memcpy(&count, m_Summaries[c], sizeof(count));
      const auto * const inChunk = reinterpret_cast<const WatershedEdge *>(m_Summaries[c] + m_Layouts[c].edges);
      for (std::int64_t i = 0; i < count; ++i)
      {
        JoinedEdge<TPixel> edge{};
        SetValues(edge, inChunk[i].firstValue, inChunk[i].secondValue);
        edge.first = inChunk[i].first;
        edge.second = inChunk[i].second;
        edge.a = m_Begins[c] + inChunk[i].a;
        edge.b = inChunk[i].b < 0 ? -1 : m_Begins[c] + inChunk[i].b;
        edge.inChunk = inChunk + i;
        edges.push_back(edge);
      }
      for (std::int64_t i = m_Begins[c]; i < m_Begins[c + 1] && m_Operation.hasMarkers; ++i)
      {
        m_Labels[Index(i)] = this->NodeOf(i, c).label;
      }
    }
    this->ForPairs([&](std::int64_t        a,
                       std::size_t         c,
                       const Coordinates & atA,
                       std::int64_t        b,
                       std::size_t         d,
                       const Coordinates & atB) {
      const WatershedNode & nodeA = this->NodeOf(a, c);
      const WatershedNode & nodeB = this->NodeOf(b, d);
      if (nodeA.low >= 0 && nodeB.low >= 0)
      {
        JoinedEdge<TPixel> edge{};
        SetValues(edge, nodeB.value, nodeA.value);
        edge.first = m_Operation.RasterIndex(atB);
        edge.second = m_Operation.RasterIndex(atA);
        edge.a = a;
        edge.b = b;
        edges.push_back(edge);
      }
    });
    std::sort(edges.begin(), edges.end());
    for (const JoinedEdge<TPixel> & edge : edges)
    {
      if (m_Operation.hasMarkers)
      {
        this->JoinMarkers(edge);
      }
      else
      {
        this->JoinMinima(edge);
      }
    }
  }
  void
  JoinMarkers(const JoinedEdge<TPixel> & edge)
  {
    const std::int64_t a = this->Find(edge.a);
    if (edge.b < 0)
    {
      m_Labels[Index(a)] = m_Labels[Index(a)] == 0 ? edge.inChunk->label : m_Labels[Index(a)];
      return;
    }
    const std::int64_t b = this->Find(edge.b);
    if (a != b && (m_Labels[Index(a)] == 0 || m_Labels[Index(b)] == 0))
    {
      m_Labels[Index(b)] = std::max(m_Labels[Index(a)], m_Labels[Index(b)]);
      m_Parents[Index(a)] = b;
    }
  }
  /** Whether a tree keeps a separate minimum at an edge of this weight. */
  bool
  IsDeep(std::int64_t root, TPixel high) const
  {
    return m_Minima[Index(root)] != nullptr ||
           m_Depth.IsDeep(high, UnpackWatershedValue<TPixel>(this->NodeOf(m_Lows[Index(root)]).lowValue));
  }
  void
  JoinMinima(const JoinedEdge<TPixel> & edge)
  {
    const std::int64_t a = this->Find(edge.a);
    if (edge.b < 0)
    {
      if (!this->IsDeep(a, edge.high))
      {
        m_Minima[Index(a)] = edge.inChunk;
        m_Lows[Index(a)] = edge.a;
      }
      return;
    }
    const std::int64_t b = this->Find(edge.b);
    if (a == b || (this->IsDeep(a, edge.high) && this->IsDeep(b, edge.high)))
    {
      return;
    }
    const WatershedNode & lowA = this->NodeOf(m_Lows[Index(a)]);
    const WatershedNode & lowB = this->NodeOf(m_Lows[Index(b)]);
    const auto            valueA = UnpackWatershedValue<TPixel>(lowA.lowValue);
    const auto            valueB = UnpackWatershedValue<TPixel>(lowB.lowValue);
    const bool            isFirst = m_Minima[Index(a)]   ? true
                                    : m_Minima[Index(b)] ? false
                                                         : valueA < valueB || (valueA == valueB && lowA.low < lowB.low);
    if (isFirst)
    {
      m_Lows[Index(b)] = m_Lows[Index(a)];
      m_Minima[Index(b)] = m_Minima[Index(a)];
    }
    m_Parents[Index(a)] = b;
  }

  /** A minimum: the chunk that has it, its row there, where it is in the image, and what precedes it in its row. */
  struct Minimum
  {
    std::int64_t  node;
    std::size_t   chunk;
    std::int64_t  row;
    std::int64_t  raster;
    std::uint64_t rank;
    bool          isFurther;
  };

  std::int64_t
  RowOf(std::size_t chunk, std::int64_t raster) const
  {
    Coordinates index{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      index[a] = raster % m_Operation.image[a];
      raster /= m_Operation.image[a];
    }
    std::int64_t row = 0;
    for (int a = MaxDimension - 1; a >= 1; --a)
    {
      row = row * m_Chunks[chunk].Extent(a) + index[a] - m_Chunks[chunk].lower[a];
    }
    return row;
  }
  /** The places in the image at which rows of a chunk begin, in ascending order. */
  std::vector<std::int64_t>
  RowsOf(std::size_t chunk) const
  {
    const Box &               box = m_Chunks[chunk];
    std::vector<std::int64_t> rows;
    Coordinates               index = box.lower;
    for (std::int64_t row = 0; row < m_Layouts[chunk].rows; ++row)
    {
      rows.push_back(m_Operation.RasterIndex(index));
      for (int a = 1; a < MaxDimension && ++index[a] == box.upper[a]; ++a)
      {
        index[a] = box.lower[a];
      }
    }
    return rows;
  }

  void
  NumberMinima(std::vector<ChunkState> & solutions)
  {
    // The minima of trees of nodes; minima that no tree of a chunk has are further ones of the chunk.
    std::vector<Minimum> minima;
    for (std::int64_t node = 0; node < m_Begins.back(); ++node)
    {
      if (this->Find(node) != node || this->NodeOf(node).low < 0)
      {
        continue;
      }
      const std::int64_t          lowNode = m_Lows[Index(node)];
      const std::size_t           chunk = this->ChunkOf(lowNode);
      const WatershedEdge * const edge = m_Minima[Index(node)];
      const WatershedNode &       low = this->NodeOf(lowNode, chunk);
      const std::int64_t          raster = edge ? static_cast<std::int64_t>(edge->label) : low.low;
      minima.push_back({ node, chunk, this->RowOf(chunk, raster), raster, edge ? edge->rank : low.label, !edge });
    }
    std::sort(minima.begin(), minima.end(), [](const Minimum & a, const Minimum & b) {
      return a.chunk != b.chunk ? a.chunk < b.chunk : a.raster < b.raster;
    });
    // How many further minima precede each in its row, and how many each row has.
    struct RowOfChunk
    {
      std::int64_t  raster;
      std::size_t   chunk;
      std::int64_t  row;
      std::uint64_t count;
    };
    std::vector<RowOfChunk> rows;
    auto                    minimum = minima.begin();
    for (std::size_t c = 0; c < m_Chunks.size(); ++c)
    {
      const std::vector<std::int64_t> begins = this->RowsOf(c);
      const auto * const counts = reinterpret_cast<const std::uint32_t *>(m_Summaries[c] + m_Layouts[c].counts);
      for (std::int64_t row = 0; row < m_Layouts[c].rows; ++row)
      {
        std::uint64_t further = 0;
        for (; minimum != minima.end() && minimum->chunk == c && minimum->row == row; ++minimum)
        {
          minimum->rank += further;
          if (minimum->isFurther)
          {
            ++further;
            const std::size_t at = solutions[c].size();
            solutions[c].resize(at + sizeof(minimum->raster));
            std::memcpy(&solutions[c][at], &minimum->raster, sizeof(minimum->raster));
          }
        }
        rows.push_back({ begins[Index(row)], c, row, counts[row] + further });
      }
    }
    std::sort(rows.begin(), rows.end(), [](const RowOfChunk & a, const RowOfChunk & b) { return a.raster < b.raster; });
    std::uint64_t sum = 0;
    for (const RowOfChunk & row : rows)
    {
      reinterpret_cast<std::uint64_t *>(solutions[row.chunk].data() + m_Layouts[row.chunk].offsets)[row.row] = sum;
      sum += row.count;
    }
    CheckNumberOfBasins(sum, m_Operation.outputKind);
    for (const Minimum & each : minima)
    {
      const auto * const offsets =
        reinterpret_cast<const std::uint64_t *>(solutions[each.chunk].data() + m_Layouts[each.chunk].offsets);
      m_Labels[Index(each.node)] = offsets[each.row] + each.rank + 1;
    }
  }

  void
  FindLines(std::vector<ChunkState> & solutions)
  {
    this->ForPairs(
      [&](std::int64_t a, std::size_t c, const Coordinates &, std::int64_t b, std::size_t d, const Coordinates &) {
        const std::uint64_t labelA = m_Labels[Index(this->Find(a))];
        const std::uint64_t labelB = m_Labels[Index(this->Find(b))];
        if (labelA != labelB && labelA != 0 && labelB != 0)
        {
          const std::size_t  chunk = labelA > labelB ? c : d;
          const std::int64_t node = (labelA > labelB ? a : b) - m_Begins[chunk];
          solutions[chunk][m_Layouts[chunk].lines + Index(node)] = 1;
        }
      });
  }

  const WatershedOperation &         m_Operation;
  const std::vector<Box> &           m_Chunks;
  const WatershedDepth<TPixel>       m_Depth;
  std::vector<WatershedLayout>       m_Layouts;
  std::vector<std::int64_t>          m_Begins;
  std::vector<const unsigned char *> m_Summaries;
  std::vector<Coordinates>           m_Preceding;
  std::vector<std::int64_t>          m_Parents;
  std::vector<std::uint64_t>         m_Labels;
  std::vector<std::int64_t>          m_Lows;
  std::vector<const WatershedEdge *> m_Minima;
};

} // namespace

std::vector<ChunkState>
WatershedOperation::Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const
{
  return DispatchPixelType(
    inputKind, [&](auto pixel) { return WatershedJoin<decltype(pixel)>(*this, chunks, summaries).Solve(); });
}

} // namespace chunkwise
