/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseWatershedSummary.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <string>
#include <utility>

// Boruvka's algorithm. A first step joins every voxel along its least edge, which leads to the neighbor of the least
// value, the first in raster order among several. Trees that have no marker then are joined along their least edges, in
// rounds, until none is left. All threads work on the whole chunk: which edges are least does not depend on them.
namespace chunkwise
{

namespace
{

/** Rows that a task takes: about so many voxels. */
constexpr std::int64_t WatershedTaskVoxels = std::int64_t{ 1 } << 15;
/** Trees that a task takes. */
constexpr std::int64_t WatershedTaskTrees = std::int64_t{ 1 } << 12;
constexpr int          WatershedMostNeighbors = 26;

std::int64_t
WatershedRowsOfTask(const Box & box)
{
  return std::max<std::int64_t>(1, WatershedTaskVoxels / std::max<std::int64_t>(1, box.Extent(0)));
}

/** Offsets of a chunk's arrays in scratch. */
struct WatershedScratch
{
  WatershedScratch(const WatershedOperation & operation, const Box & box)
    : layout(operation, box)
  {
    const std::int64_t voxels = box.NumberOfVoxels();
    const std::size_t  idBytes = IsWideWatershed(box) ? 8 : 4;
    const auto         take = [this](std::int64_t count, std::size_t size) {
      const std::size_t at = bytes;
      bytes += (static_cast<std::size_t>(count) * size + 63) / 64 * 64;
      return at;
    };
    // A tree that the first step leaves without a root has two voxels or more.
    const std::int64_t trees = layout.border.voxels + voxels / 2 + 1;
    parents = take(voxels, idBytes);
    list = take(voxels, idBytes);
    leads = take(voxels, 1);
    best = take(trees, sizeof(std::uint64_t));
    finals = take(trees, idBytes);
    nexts = take(trees, idBytes);
    open = take(trees, idBytes);
    lows = take(operation.hasMarkers ? 0 : trees, idBytes);
    offsets = take(operation.hasMarkers ? 0 : layout.rows, sizeof(std::uint64_t));
    const std::int64_t rowsOfTask = WatershedRowsOfTask(box);
    tasks = (layout.rows + rowsOfTask - 1) / rowsOfTask;
    counts = take(tasks + 1, sizeof(std::int64_t));
  }

  WatershedLayout layout;
  std::size_t     bytes{ 0 };
  std::size_t     parents;
  std::size_t     list;
  std::size_t     leads;
  std::size_t     best;
  std::size_t     finals;
  std::size_t     nexts;
  std::size_t     open;
  std::size_t     lows;
  std::size_t     offsets;
  std::int64_t    tasks;
  std::size_t     counts;
};

// Rows of masks, markers and labels: code for each of their types, once for all types of images.

template <typename TId>
void
LeaveOutsideOfWatershed(const BufferView & mask, const Coordinates & index, std::int64_t n, TId outside, TId * parents)
{
  const std::int64_t begin = mask.Offset(index);
  DispatchPixelType(mask.kind, [&](auto pixel) {
    const auto * const voxels = static_cast<const decltype(pixel) *>(mask.data) + begin;
    for (std::int64_t x = 0; x < n; ++x)
    {
      parents[x] = voxels[x * mask.stride[0]] == 0 ? outside : parents[x];
    }
  });
}

/** Makes voxels with a marker roots, the first of the row with the number `first`. */
template <typename TId>
void
TakeWatershedMarkers(const BufferView & markers, const Coordinates & index, std::int64_t n, TId first, TId outside,
                     PixelType kind, TId * parents)
{
  const std::int64_t  begin = markers.Offset(index);
  const std::uint64_t largest = GetLargestLabel(kind);
  DispatchPixelType(markers.kind, [&](auto pixel) {
    const auto * const voxels = static_cast<const decltype(pixel) *>(markers.data) + begin;
    for (std::int64_t x = 0; x < n; ++x)
    {
      const auto label = voxels[x * markers.stride[0]];
      if (label != 0 && parents[x] != outside)
      {
        parents[x] = first + static_cast<TId>(x);
        if (!(label > 0) || static_cast<std::uint64_t>(label) > largest)
        {
          ThrowWrongMarker(std::to_string(label), kind);
        }
      }
    }
  });
}

/** The marker at a voxel, a positive label. */
std::uint64_t
WatershedMarkerAt(const BufferView & markers, const Coordinates & index)
{
  const std::int64_t offset = markers.Offset(index);
  return DispatchPixelType(markers.kind, [&](auto pixel) {
    return static_cast<std::uint64_t>(static_cast<const decltype(pixel) *>(markers.data)[offset]);
  });
}

void
StoreWatershedLabels(const BufferView & output, const Coordinates & index, std::int64_t begin, std::int64_t end,
                     const std::uint64_t * labels)
{
  const std::int64_t first = output.Offset(index);
  DispatchPixelType(output.kind, [&](auto pixel) {
    auto * const voxels = static_cast<decltype(pixel) *>(output.data) + first;
    for (std::int64_t x = begin; x < end; ++x)
    {
      voxels[x * output.stride[0]] = static_cast<decltype(pixel)>(labels[x - begin]);
    }
  });
}

/** The forest of a chunk. `TId`: 32 bits, or 64 for chunks of nearly 2^31 voxels and more.
 *
 * Voxels are numbered in raster order. The parent of a voxel is another voxel, or itself if it is a root, or, with the
 * highest bit, a tree: first come those of voxels of the border, then those without a root. `finals` says for each tree
 * which root or tree it belongs to now. */
template <typename TPixel, typename TId>
class WatershedForest
{
public:
  explicit WatershedForest(const KernelCall & call)
    : m_Call(call)
    , m_Operation(static_cast<const WatershedOperation &>(*call.operation))
    , m_Box(call.writable)
    , m_Scratch(m_Operation, m_Box)
    , m_HasBorder(m_Scratch.layout.border.voxels > 0)
    , m_Input(call.inputs[0])
    , m_Depth(m_Operation.height)
    , m_Parents(this->Array<TId>(m_Scratch.parents))
    , m_List(this->Array<TId>(m_Scratch.list))
    , m_Leads(this->Array<std::uint8_t>(m_Scratch.leads))
    , m_Best(this->Array<std::uint64_t>(m_Scratch.best))
    , m_Finals(this->Array<TId>(m_Scratch.finals))
    , m_Nexts(this->Array<TId>(m_Scratch.nexts))
    , m_Open(this->Array<TId>(m_Scratch.open))
    , m_Lows(this->Array<TId>(m_Scratch.lows))
    , m_Offsets(this->Array<std::uint64_t>(m_Scratch.offsets))
    , m_Counts(this->Array<std::int64_t>(m_Scratch.counts))
    , m_Nx(m_Box.Extent(0))
    , m_Rows(m_Scratch.layout.rows)
    , m_Stride(DenseStrides(m_Box.Extents()))
    , m_IsDense(m_Input.stride == m_Stride && m_Input.box == m_Box)
  {
    for (const Coordinates & offset : m_Operation.GetOffsets())
    {
      Neighbor & neighbor = m_Neighbors[m_NumberOfNeighbors++];
      neighbor.offset = offset;
      for (int a = 0; a < MaxDimension; ++a)
      {
        neighbor.delta += offset[a] * m_Stride[a];
        neighbor.inputDelta += offset[a] * m_Input.stride[a];
      }
    }
  }

  /** Treats the chunk as a separate image, which has no border. */
  void
  IgnoreBorder()
  {
    m_HasBorder = false;
  }

  /** Gives each voxel its root, or the tree of the voxel of the border that is its root. False: the run is to stop. */
  bool
  FindRoots()
  {
    this->ForRows([this](const Row & row, std::int64_t) { this->Classify(row); });
    m_IsFast = m_Input.stride[0] == 1 && !m_HasOutside.load(std::memory_order_relaxed);
    this->ForRows([this](const Row & row, std::int64_t) { this->JoinVoxels(row); });
    if (this->ShouldStop())
    {
      return false;
    }
    this->NumberTrees();
    this->ForRows([this](const Row & row, std::int64_t) { this->Flatten(row); });
    const TId border = this->BorderTrees();
    if (!m_Operation.hasMarkers && border > 0)
    {
      this->ForRows([this, border](const Row & row, std::int64_t) {
        for (TId v = row.first; v < row.first + static_cast<TId>(m_Nx); ++v)
        {
          const TId code = m_Parents[v];
          if ((code & Flag) != 0 && (code & ~Flag) < border)
          {
            this->Lower(code & ~Flag, v);
          }
        }
      });
    }
    for (TId tree = border; tree < m_Trees; ++tree)
    {
      m_Open[m_NumberOfOpen++] = tree;
    }
    this->JoinTrees(border, m_Trees);
    this->ForRows([this](const Row & row, std::int64_t) {
      for (TId v = row.first; v < row.first + static_cast<TId>(m_Nx); ++v)
      {
        m_Parents[v] = this->CodeOf(m_Parents[v]);
      }
    });
    return !this->ShouldStop();
  }

  void
  WriteSummary()
  {
    const WatershedLayout & layout = m_Scratch.layout;
    auto * const            summary = static_cast<unsigned char *>(m_Call.sideOut);
    m_Nodes = reinterpret_cast<WatershedNode *>(summary + layout.nodes);
    m_Edges = reinterpret_cast<WatershedEdge *>(summary + layout.edges);
    if (m_Operation.isBlock)
    {
      m_Arrays = MakeWatershedBlockArrays(m_Operation, layout, summary);
    }
    this->ForRows([this](const Row & row, std::int64_t) {
      this->ForBorderOf(row, [&](std::int64_t x, std::int64_t border) { this->WriteNode(row, x, border); });
    });
    const TId border = this->BorderTrees();
    for (TId tree = 0; tree < border; ++tree)
    {
      if (m_Finals[tree] == (Flag | tree))
      {
        m_Open[m_NumberOfOpen++] = tree;
      }
    }
    m_KeepsEdges = true;
    this->JoinTrees(0, border);
    std::memcpy(summary, &m_NumberOfEdges, sizeof(m_NumberOfEdges));
    if (!m_Operation.hasMarkers)
    {
      this->CountMinima(nullptr, nullptr);
      m_Operation.isBlock ? this->RankBlock(summary) : this->RankChunk(summary);
    }
  }

  /** Writes the labels of a chunk. */
  void
  WriteLabels(const unsigned char * solution, std::size_t bytes)
  {
    const WatershedLayout & layout = m_Scratch.layout;
    if (!m_Operation.hasMarkers)
    {
      const auto * const starts = reinterpret_cast<const std::int64_t *>(solution + layout.starts);
      this->CountMinima(starts, starts + (bytes - layout.starts) / sizeof(*starts));
      std::memcpy(m_Offsets, solution + layout.offsets, static_cast<std::size_t>(m_Rows) * sizeof(*m_Offsets));
    }
    this->WriteLabelsWith(reinterpret_cast<const std::uint64_t *>(solution + layout.labels),
                          m_Operation.lines ? solution + layout.lines : nullptr);
  }
  /** Writes the labels of a block; `outside` is nullptr for a chunk that is a separate image. */
  void
  WriteLabels(const WatershedOutside * outside)
  {
    if (!m_Operation.hasMarkers)
    {
      const std::int64_t * const starts = outside ? outside->starts.data() : nullptr;
      this->CountMinima(starts, outside ? starts + outside->starts.size() : nullptr);
      CheckNumberOfBasins(this->AddUpRows(outside ? outside->before : 0), m_Call.output.kind);
    }
    this->WriteLabelsWith(outside ? outside->labels.data() : nullptr,
                          outside && m_Operation.lines ? outside->lines.data() : nullptr);
  }

private:
  struct Row;

  void
  WriteNode(const Row & row, std::int64_t x, std::int64_t border)
  {
    const TId     v = row.first + static_cast<TId>(x);
    const TId     tree = static_cast<TId>(border);
    WatershedNode node{ PackWatershedValue(this->Value(v)), 0, -1, 0 };
    if (m_Finals[tree] != Outside && m_Operation.hasMarkers)
    {
      Coordinates index = row.index;
      index[0] += x;
      node.low = 0;
      node.label = this->MarkerAt(index);
      m_Finals[tree] = node.label != 0 ? v : Flag | tree;
    }
    else if (m_Finals[tree] != Outside)
    {
      // The number of the voxel in the chunk, until minima have been counted.
      node.low = static_cast<std::int64_t>(m_Lows[tree]);
      node.lowValue = PackWatershedValue(this->Value(m_Lows[tree]));
    }
    if (m_Operation.isBlock)
    {
      m_Arrays.StoreNode(border, node);
    }
    else
    {
      m_Nodes[border] = node;
    }
  }
  std::int64_t
  RasterOf(std::int64_t v) const
  {
    return m_Operation.RasterIndex(this->IndexOf(static_cast<TId>(v)));
  }
  /** Gives nodes and edges that name a minimum how many precede it in its row. */
  void
  RankChunk(unsigned char * summary)
  {
    auto * const counts = reinterpret_cast<std::uint32_t *>(summary + m_Scratch.layout.counts);
    std::transform(
      m_Offsets, m_Offsets + m_Rows, counts, [](std::uint64_t count) { return static_cast<std::uint32_t>(count); });
    for (WatershedNode * node = m_Nodes; node != m_Nodes + m_Scratch.layout.border.voxels; ++node)
    {
      node->label = node->low >= 0 ? m_List[node->low] : 0;
      node->low = node->low >= 0 ? this->RasterOf(node->low) : -1;
    }
    for (WatershedEdge * edge = m_Edges; edge != m_Edges + m_NumberOfEdges; ++edge)
    {
      if (edge->b < 0)
      {
        edge->rank = m_List[edge->label];
        edge->label = static_cast<std::uint64_t>(this->RasterOf(static_cast<std::int64_t>(edge->label)));
      }
    }
  }
  /** The same of a block, and in the block. */
  void
  RankBlock(unsigned char * summary)
  {
    const std::uint64_t count = this->AddUpRows(0);
    std::memcpy(summary + m_Scratch.layout.counts, &count, sizeof(count));
    const auto rankOf = [this](std::uint64_t v) { return m_List[v] + m_Offsets[v / static_cast<std::uint64_t>(m_Nx)]; };
    for (std::int64_t i = 0; i < m_Scratch.layout.border.voxels; ++i)
    {
      std::int64_t & low = m_Arrays.lows[i];
      if (low >= 0)
      {
        m_Arrays.Store(m_Arrays.labels, i, rankOf(static_cast<std::uint64_t>(low)));
        low = this->RasterOf(low);
      }
    }
    const auto rankEdges = [&](auto number) {
      using Edge = WatershedBlockEdge<decltype(number)>;
      std::for_each_n(static_cast<Edge *>(m_Arrays.edges), m_NumberOfEdges, [&](Edge & edge) {
        edge.b = (edge.place & Edge::Closes) != 0 ? static_cast<decltype(number)>(rankOf(edge.b)) : edge.b;
      });
    };
    m_Arrays.isSmall ? rankEdges(std::uint32_t{}) : rankEdges(std::uint64_t{});
  }

  /** Turns the minima of each row into those before it. Returns those of all rows. */
  std::uint64_t
  AddUpRows(std::uint64_t before)
  {
    for (std::int64_t row = 0; row < m_Rows; ++row)
    {
      before += std::exchange(m_Offsets[row], before);
    }
    return before;
  }

  void
  WriteLabelsWith(const std::uint64_t * labels, const unsigned char * lines)
  {
    this->ForRows([&](const Row & row, std::int64_t) {
      std::uint64_t found[Span];
      for (std::int64_t begin = 0; begin < m_Nx; begin += Span)
      {
        const std::int64_t end = std::min(m_Nx, begin + Span);
        TId                last = Outside;
        std::uint64_t      label = 0;
        for (std::int64_t x = begin; x < end; ++x)
        {
          const TId code = m_Parents[row.first + static_cast<TId>(x)];
          if (code != last)
          {
            label = this->LabelOf(code, labels);
            last = code;
          }
          found[x - begin] =
            label != 0 && m_Operation.lines && this->IsLine(row, x, code, label, labels, lines) ? 0 : label;
        }
        StoreWatershedLabels(m_Call.output, row.index, begin, end, found);
      }
    });
  }

  static constexpr TId           Flag = TId{ 1 } << (8 * sizeof(TId) - 1);
  static constexpr TId           Outside = ~TId{ 0 };
  static constexpr TId           Free = Outside - 1;
  static constexpr std::uint64_t NoEdge = ~std::uint64_t{ 0 };
  static constexpr int           EdgeBits = 5;
  static constexpr std::int64_t  Span = 512;

  struct Neighbor
  {
    Coordinates  offset{};
    std::int64_t delta{ 0 };
    std::int64_t inputDelta{ 0 };
  };

  /** A row of voxels, and its neighbors within the chunk. */
  struct Row
  {
    std::int64_t row;
    TId          first;
    Coordinates  index;
    std::int64_t input; ///< the offset of its first voxel
    int          count{ 0 };
    std::uint8_t neighbors[WatershedMostNeighbors];
  };

  template <typename T>
  T *
  Array(std::size_t at) const
  {
    return reinterpret_cast<T *>(static_cast<char *>(m_Call.scratch) + at);
  }

  template <typename T>
  static T
  Load(const T & entry)
  {
    return reinterpret_cast<const std::atomic<T> &>(entry).load(std::memory_order_relaxed);
  }
  template <typename T>
  static void
  Store(T & entry, T value)
  {
    reinterpret_cast<std::atomic<T> &>(entry).store(value, std::memory_order_relaxed);
  }
  template <typename T>
  static bool
  Exchange(T & entry, T & expected, T value)
  {
    return reinterpret_cast<std::atomic<T> &>(entry).compare_exchange_weak(
      expected, value, std::memory_order_relaxed, std::memory_order_relaxed);
  }

  bool
  ShouldStop() const
  {
    return m_Call.control && m_Call.control->ShouldStop();
  }
  TId
  BorderTrees() const
  {
    return m_HasBorder ? static_cast<TId>(m_Scratch.layout.border.voxels) : 0;
  }

  Row
  MakeRow(std::int64_t number) const
  {
    Row row;
    row.row = number;
    row.first = static_cast<TId>(number * m_Nx);
    row.index = m_Box.lower;
    std::int64_t rest = number;
    for (int a = 1; a < MaxDimension; ++a)
    {
      row.index[a] += rest % m_Box.Extent(a);
      rest /= m_Box.Extent(a);
    }
    row.input = m_Input.Offset(row.index);
    for (int k = 0; k < m_NumberOfNeighbors; ++k)
    {
      bool isInside = true;
      for (int a = 1; a < MaxDimension; ++a)
      {
        const std::int64_t beside = row.index[a] + m_Neighbors[k].offset[a];
        isInside = isInside && beside >= m_Box.lower[a] && beside < m_Box.upper[a];
      }
      if (isInside)
      {
        row.neighbors[row.count++] = static_cast<std::uint8_t>(k);
      }
    }
    return row;
  }
  /** Calls f(row, task) for all rows, those of a task one after the other. */
  template <typename TFunctor>
  void
  ForRows(TFunctor && f) const
  {
    const std::int64_t rowsOfTask = WatershedRowsOfTask(m_Box);
    m_Call.executor->ParallelFor(m_Scratch.tasks, [&](std::int64_t task, unsigned int) {
      const std::int64_t end = std::min(m_Rows, (task + 1) * rowsOfTask);
      for (std::int64_t row = task * rowsOfTask; row < end && !this->ShouldStop(); ++row)
      {
        f(this->MakeRow(row), task);
      }
    });
  }
  /** Calls f(i) for all i below `count`. */
  template <typename TFunctor>
  void
  ForTrees(std::int64_t count, TFunctor && f) const
  {
    const std::int64_t tasks = (count + WatershedTaskTrees - 1) / WatershedTaskTrees;
    m_Call.executor->ParallelFor(tasks, [&](std::int64_t task, unsigned int) {
      const std::int64_t end = std::min(count, (task + 1) * WatershedTaskTrees);
      for (std::int64_t i = task * WatershedTaskTrees; i < end; ++i)
      {
        f(i);
      }
    });
  }
  Coordinates
  IndexOf(TId v) const
  {
    Coordinates  index = m_Box.lower;
    std::int64_t rest = static_cast<std::int64_t>(v);
    for (int a = 0; a < MaxDimension; ++a)
    {
      index[a] += rest % m_Box.Extent(a);
      rest /= m_Box.Extent(a);
    }
    return index;
  }
  TPixel
  Value(TId v) const
  {
    const auto * const voxels = static_cast<const TPixel *>(m_Input.data);
    return voxels[m_IsDense ? static_cast<std::int64_t>(v) : m_Input.Offset(this->IndexOf(v))];
  }
  /** Whether voxel `a` comes before `b`: has a smaller value, or the same and a smaller number. */
  bool
  IsBefore(TId a, TId b) const
  {
    const TPixel first = this->Value(a);
    const TPixel second = this->Value(b);
    return first < second || (first == second && a < b);
  }

  std::uint64_t
  MarkerAt(const Coordinates & index) const
  {
    return WatershedMarkerAt(m_Call.inputs[1], index);
  }

  /** Finds the voxels of a row that are outside the mask, those of the border and markers. */
  void
  Classify(const Row & row)
  {
    TId * const parents = m_Parents + row.first;
    bool        hasOutside = false;
    std::fill_n(parents, m_Nx, Free);
    if (m_Operation.hasMask)
    {
      LeaveOutsideOfWatershed(m_Call.inputs[m_Call.numberOfInputs - 1], row.index, m_Nx, Outside, parents);
      hasOutside = std::find(parents, parents + m_Nx, Outside) != parents + m_Nx;
    }
    if constexpr (WatershedDepth<TPixel>::IsReal)
    {
      const TPixel * const voxels = static_cast<const TPixel *>(m_Input.data) + row.input;
      for (std::int64_t x = 0; x < m_Nx; ++x)
      {
        const TPixel value = voxels[x * m_Input.stride[0]];
        if (value != value)
        {
          parents[x] = Outside;
          hasOutside = true;
        }
      }
    }
    if (m_Operation.hasMarkers)
    {
      TakeWatershedMarkers(m_Call.inputs[1], row.index, m_Nx, row.first, Outside, m_Operation.outputKind, parents);
    }
    if (m_HasBorder)
    {
      this->ForBorderOf(row, [&](std::int64_t x, std::int64_t border) {
        const TId tree = static_cast<TId>(border);
        if (parents[x] != Outside)
        {
          parents[x] = Flag | tree;
          m_Finals[tree] = Flag | tree;
          if (!m_Operation.hasMarkers)
          {
            m_Lows[tree] = row.first + static_cast<TId>(x);
          }
        }
        else
        {
          m_Finals[tree] = Outside;
        }
      });
    }
    if (hasOutside)
    {
      m_HasOutside.store(true, std::memory_order_relaxed);
    }
  }
  /** Calls f(x, number) for the voxels of the border in a row. */
  template <typename TFunctor>
  void
  ForBorderOf(const Row & row, TFunctor && f) const
  {
    const WatershedBorder & border = m_Scratch.layout.border;
    Coordinates             index = row.index;
    ++index[0];
    const std::int64_t middle = m_Nx > 2 ? border.IndexOf(index) : -1;
    for (std::int64_t x = 0; x < m_Nx; x += middle >= 0 || x == m_Nx - 1 ? 1 : m_Nx - 1)
    {
      index[0] = row.index[0] + x;
      const std::int64_t found = border.IndexOf(index);
      if (found >= 0)
      {
        f(x, found);
      }
    }
  }

  /** Joins each voxel of a row to its least neighbor. */
  void
  JoinVoxels(const Row & row)
  {
    TPixel       least[Span];
    std::uint8_t which[Span];
    for (std::int64_t begin = 0; begin < m_Nx; begin += Span)
    {
      const std::int64_t end = std::min(m_Nx, begin + Span);
      if (m_IsFast)
      {
        this->FindLeastFast(row, begin, end, least, which);
      }
      else
      {
        this->FindLeast(row, begin, end, least, which);
      }
      const TPixel * const voxels = static_cast<const TPixel *>(m_Input.data) + row.input;
      for (std::int64_t x = begin; x < end; ++x)
      {
        const TId v = row.first + static_cast<TId>(x);
        if (m_Parents[v] != Free)
        {
          continue;
        }
        const int  k = which[x - begin];
        const TId  alone = m_Operation.hasMarkers ? Outside : v;
        const bool isRoot = k == NoNeighbor || (!m_Operation.hasMarkers &&
                                                m_Depth.IsDeep(least[x - begin], voxels[x * m_Input.stride[0]]));
        Store(m_Parents[v], isRoot ? alone : static_cast<TId>(v + static_cast<TId>(m_Neighbors[k].delta)));
      }
    }
  }
  static constexpr std::uint8_t NoNeighbor = 255;

  /** Calls f(k, x - begin of the first voxel, and of the last) for all neighbors of the voxels that have the same
   * neighbors, which are the voxels not at the ends of a row; g(x) for the others. */
  template <typename TFunctor, typename TEnds>
  void
  ForSpan(const Row & row, std::int64_t begin, std::int64_t end, TFunctor && f, TEnds && g) const
  {
    const std::int64_t first = std::max<std::int64_t>(begin, 1);
    const std::int64_t last = std::min(end, m_Nx - 1);
    for (int i = 0; i < row.count; ++i)
    {
      f(row.neighbors[i], first - begin, last - begin);
    }
    if (begin == 0)
    {
      g(0);
    }
    if (end == m_Nx && m_Nx > 1)
    {
      g(m_Nx - 1);
    }
  }
  void
  FindLeastFast(const Row & row, std::int64_t begin, std::int64_t end, TPixel * least, std::uint8_t * which) const
  {
    std::fill_n(which, end - begin, NoNeighbor);
    bool isFirst = true;
    this->ForSpan(
      row,
      begin,
      end,
      [&](std::uint8_t k, std::int64_t first, std::int64_t last) {
        const TPixel * const voxels =
          static_cast<const TPixel *>(m_Input.data) + row.input + m_Neighbors[k].inputDelta + begin;
        for (std::int64_t x = first; x < last && isFirst; ++x)
        {
          least[x] = voxels[x];
          which[x] = k;
        }
        for (std::int64_t x = first; x < last; ++x)
        {
          const bool isLess = voxels[x] < least[x];
          least[x] = isLess ? voxels[x] : least[x];
          which[x] = isLess ? k : which[x];
        }
        isFirst = false;
      },
      [&](std::int64_t x) { this->FindLeast(row, x, x + 1, least + x - begin, which + x - begin); });
  }
  void
  FindLeast(const Row & row, std::int64_t begin, std::int64_t end, TPixel * least, std::uint8_t * which) const
  {
    for (std::int64_t x = begin; x < end; ++x)
    {
      const std::int64_t at = x - begin;
      which[at] = NoNeighbor;
      this->ForNeighbors(row, x, [&](int k, TId q, std::int64_t offset) {
        if (Load(m_Parents[q]) == Outside)
        {
          return;
        }
        const TPixel value = static_cast<const TPixel *>(m_Input.data)[offset];
        if (which[at] == NoNeighbor || value < least[at])
        {
          least[at] = value;
          which[at] = static_cast<std::uint8_t>(k);
        }
      });
    }
  }
  /** Calls f(k, voxel, its offset in the input) for the neighbors of voxel x of a row. */
  template <typename TFunctor>
  void
  ForNeighbors(const Row & row, std::int64_t x, TFunctor && f) const
  {
    const TId          v = row.first + static_cast<TId>(x);
    const std::int64_t offset = row.input + x * m_Input.stride[0];
    for (int i = 0; i < row.count; ++i)
    {
      const int        k = row.neighbors[i];
      const Neighbor & neighbor = m_Neighbors[k];
      const auto       beside = static_cast<std::uint64_t>(x + neighbor.offset[0]);
      if (beside < static_cast<std::uint64_t>(m_Nx))
      {
        f(k, v + static_cast<TId>(neighbor.delta), offset + neighbor.inputDelta);
      }
    }
  }

  /** Two voxels that are each other's least neighbor begin a tree without a root: numbers these trees. */
  void
  NumberTrees()
  {
    const auto ofRow = [this](const Row & row, auto && f) {
      for (std::int64_t x = 0; x < m_Nx; ++x)
      {
        const TId v = row.first + static_cast<TId>(x);
        const TId u = Load(m_Parents[v]);
        if ((u & Flag) == 0 && u != v && Load(m_Parents[u]) == v && this->IsBefore(v, u))
        {
          f(v);
        }
      }
    };
    std::fill_n(m_Counts, m_Scratch.tasks + 1, 0);
    this->ForRows([&](const Row & row, std::int64_t task) { ofRow(row, [&](TId) { ++m_Counts[task + 1]; }); });
    m_Counts[0] = static_cast<std::int64_t>(this->BorderTrees());
    for (std::int64_t task = 0; task < m_Scratch.tasks; ++task)
    {
      m_Counts[task + 1] += m_Counts[task];
    }
    m_Trees = static_cast<TId>(m_Counts[m_Scratch.tasks]);
    this->ForRows([&](const Row & row, std::int64_t task) {
      ofRow(row, [&](TId v) {
        const TId tree = static_cast<TId>(m_Counts[task]++);
        m_Finals[tree] = Flag | tree;
        if (!m_Operation.hasMarkers)
        {
          m_Lows[tree] = v;
        }
        Store(m_Parents[v], static_cast<TId>(Flag | tree));
      });
    });
  }

  /** Gives the voxels of a row, and those on the way, their roots or trees. */
  void
  Flatten(const Row & row)
  {
    for (std::int64_t x = 0; x < m_Nx; ++x)
    {
      const TId v = row.first + static_cast<TId>(x);
      TId       root = v;
      TId       code = Load(m_Parents[root]);
      while ((code & Flag) == 0 && code != root)
      {
        root = code;
        code = Load(m_Parents[root]);
      }
      for (TId at = v; at != root;)
      {
        const TId next = Load(m_Parents[at]);
        Store(m_Parents[at], code);
        if ((next & Flag) != 0 || next == at)
        {
          break;
        }
        at = next;
      }
    }
  }

  /** The tree of a voxel with this parent. */
  TId
  CodeOf(TId parent) const
  {
    return (parent & Flag) != 0 && parent != Outside ? Load(m_Finals[parent & ~Flag]) : parent;
  }
  /** The first of a tree's least voxels. */
  void
  Lower(TId tree, TId v)
  {
    TId low = Load(m_Lows[tree]);
    while (this->IsBefore(v, low) && !Exchange(m_Lows[tree], low, v))
    {
    }
  }

  TId
  FarEnd(std::uint64_t edge) const
  {
    return static_cast<TId>(edge >> EdgeBits) + static_cast<TId>(m_Neighbors[edge & ((1 << EdgeBits) - 1)].delta);
  }
  bool
  IsLess(std::uint64_t a, std::uint64_t b) const
  {
    const TId    va = static_cast<TId>(a >> EdgeBits);
    const TId    qa = this->FarEnd(a);
    const TId    vb = static_cast<TId>(b >> EdgeBits);
    const TId    qb = this->FarEnd(b);
    const TPixel values[4] = { this->Value(va), this->Value(qa), this->Value(vb), this->Value(qb) };
    const TPixel highA = std::max(values[0], values[1]);
    const TPixel highB = std::max(values[2], values[3]);
    if (highA != highB)
    {
      return highA < highB;
    }
    const TPixel lowA = std::min(values[0], values[1]);
    const TPixel lowB = std::min(values[2], values[3]);
    if (lowA != lowB)
    {
      return lowA < lowB;
    }
    return std::min(va, qa) != std::min(vb, qb) ? std::min(va, qa) < std::min(vb, qb)
                                                : std::max(va, qa) < std::max(vb, qb);
  }

  /** The least of a voxel's edges that leads to another tree; NoNeighbor: none does. */
  std::uint8_t
  FindLead(const Row & row, std::int64_t x, TId code) const
  {
    std::uint8_t lead = NoNeighbor;
    TPixel       least{};
    this->ForNeighbors(row, x, [&](int k, TId q, std::int64_t offset) {
      const TId other = this->CodeOf(m_Parents[q]);
      if (other != code && other != Outside)
      {
        const TPixel value = static_cast<const TPixel *>(m_Input.data)[offset];
        if (lead == NoNeighbor || value < least)
        {
          lead = static_cast<std::uint8_t>(k);
          least = value;
        }
      }
    });
    return lead;
  }
  /** The same for voxels of which each has its tree as its parent. */
  void
  FindLeads(const Row & row, std::int64_t begin, std::int64_t end, std::uint8_t * leads) const
  {
    TPixel least[Span];
    std::fill_n(leads, end - begin, NoNeighbor);
    const TId * const own = m_Parents + row.first + begin;
    this->ForSpan(
      row,
      begin,
      end,
      [&](std::uint8_t k, std::int64_t first, std::int64_t last) {
        const TId * const    others = own + m_Neighbors[k].delta;
        const TPixel * const voxels =
          static_cast<const TPixel *>(m_Input.data) + row.input + m_Neighbors[k].inputDelta + begin;
        for (std::int64_t x = first; x < last; ++x)
        {
          const bool isLess = (others[x] != own[x]) & ((voxels[x] < least[x]) | (leads[x] == NoNeighbor));
          least[x] = isLess ? voxels[x] : least[x];
          leads[x] = isLess ? k : leads[x];
        }
      },
      [&](std::int64_t x) { leads[x - begin] = this->FindLead(row, x, own[x - begin]); });
  }
  /** Whether an edge and its place in the order fit a number: its values, its first voxel, and which of the neighbors
   * behind that the second one is. */
  static constexpr bool IsPacked = sizeof(TPixel) == 1 && sizeof(TId) == 4;
  static constexpr int  FirstBits = 31;

  std::uint64_t
  PackEdge(TId v, std::uint8_t lead) const
  {
    const TId    q = v + static_cast<TId>(m_Neighbors[lead].delta);
    const TPixel a = this->Value(v);
    const TPixel b = this->Value(q);
    const auto   keyOf = [](TPixel value) {
      return static_cast<std::uint64_t>(static_cast<std::int64_t>(value) -
                                        static_cast<std::int64_t>(std::numeric_limits<TPixel>::lowest()));
    };
    const std::uint64_t values = keyOf(std::max(a, b)) << 8 | keyOf(std::min(a, b));
    return (values << FirstBits | std::min(v, q)) << EdgeBits |
           static_cast<std::uint64_t>(WatershedNeighborBehind(lead, m_NumberOfNeighbors));
  }
  /** The edge of an open tree as a voxel of the tree and, in the lowest bits, its neighbor. */
  std::uint64_t
  UnpackEdge(std::uint64_t packed, TId tree) const
  {
    const TId  first = static_cast<TId>(packed >> EdgeBits) & ((TId{ 1 } << FirstBits) - 1);
    const int  lead = m_NumberOfNeighbors / 2 + static_cast<int>(packed & ((1 << EdgeBits) - 1));
    const bool isOwn = this->CodeOf(m_Parents[first]) == (Flag | tree);
    const TId  v = isOwn ? first : first + static_cast<TId>(m_Neighbors[lead].delta);
    return std::uint64_t{ v } << EdgeBits | static_cast<std::uint64_t>(isOwn ? lead : m_NumberOfNeighbors - 1 - lead);
  }
  void
  OfferEdge(TId v, std::uint8_t lead, TId code)
  {
    std::uint64_t & entry = m_Best[code & ~Flag];
    std::uint64_t   old = Load(entry);
    if constexpr (IsPacked)
    {
      const std::uint64_t edge = this->PackEdge(v, lead);
      while (edge < old && !Exchange(entry, old, edge))
      {
      }
      return;
    }
    const std::uint64_t edge = std::uint64_t{ v } << EdgeBits | lead;
    while ((old == NoEdge || this->IsLess(edge, old)) && !Exchange(entry, old, edge))
    {
    }
  }

  /** Offers all trees their least edges. Voxels within trees, and of trees that are not open, leave the list. */
  void
  FindEdges(bool isFirst, TId begin)
  {
    const auto isActive = [begin](TId code) {
      return (code & Flag) != 0 && code != Outside && (code & ~Flag) >= begin;
    };
    const std::int64_t rowsOfTask = WatershedRowsOfTask(m_Box);
    m_Call.executor->ParallelFor(m_Scratch.tasks, [&](std::int64_t task, unsigned int) {
      const std::int64_t   at = task * rowsOfTask * m_Nx;
      TId * const          list = m_List + at;
      std::uint8_t * const leads = m_Leads + at;
      std::int64_t         kept = 0;
      const auto           keep = [&](TId v, std::uint8_t lead, TId code) {
        if (lead != NoNeighbor)
        {
          this->OfferEdge(v, lead, code);
          list[kept] = v;
          leads[kept++] = lead;
        }
      };
      if (isFirst)
      {
        const std::int64_t end = std::min(m_Rows, (task + 1) * rowsOfTask);
        for (std::int64_t number = task * rowsOfTask; number < end && !this->ShouldStop(); ++number)
        {
          this->ListRow(this->MakeRow(number), isActive, keep);
        }
      }
      Row row = this->MakeRow(task * rowsOfTask);
      for (std::int64_t i = 0; i < m_Counts[task] && !isFirst && !this->ShouldStop(); ++i)
      {
        const TId v = list[i];
        const TId code = this->CodeOf(m_Parents[v]);
        if (!isActive(code))
        {
          continue;
        }
        std::uint8_t lead = leads[i];
        if (this->CodeOf(m_Parents[v + static_cast<TId>(m_Neighbors[lead].delta)]) == code)
        {
          if (v - row.first >= static_cast<TId>(m_Nx))
          {
            row = this->MakeRow(static_cast<std::int64_t>(v) / m_Nx);
          }
          lead = this->FindLead(row, static_cast<std::int64_t>(v - row.first), code);
        }
        keep(v, lead, code);
      }
      m_Counts[task] = kept;
    });
  }
  /** Calls keep(voxel, lead, tree) for the voxels of a row that belong to open trees, each of which is its voxels'
   * parent.
   */
  template <typename TIsOpen, typename TKeep>
  void
  ListRow(const Row & row, TIsOpen && isActive, TKeep && keep)
  {
    const TId * const parents = m_Parents + row.first;
    std::uint8_t      leads[Span];
    for (std::int64_t begin = 0; begin < m_Nx; begin += Span)
    {
      const std::int64_t end = std::min(m_Nx, begin + Span);
      const bool         isFast = m_IsFast && 2 * std::count_if(parents + begin, parents + end, isActive) > end - begin;
      if (isFast)
      {
        this->FindLeads(row, begin, end, leads);
      }
      for (std::int64_t x = begin; x < end; ++x)
      {
        const TId code = parents[x];
        if (isActive(code))
        {
          keep(row.first + static_cast<TId>(x), isFast ? leads[x - begin] : this->FindLead(row, x, code), code);
        }
      }
    }
  }

  /** Joins open trees, of which none has a number below `begin`, along their least edges until none has one. */
  void
  JoinTrees(TId begin, TId end)
  {
    // Trees that are not open are offered edges, too, in the first round.
    this->ForTrees(static_cast<std::int64_t>(end - begin),
                   [this, begin](std::int64_t i) { m_Best[begin + i] = NoEdge; });
    for (bool isFirst = true; m_NumberOfOpen > 0 && !this->ShouldStop(); isFirst = false)
    {
      this->ForTrees(m_NumberOfOpen, [this](std::int64_t i) { m_Best[m_Open[i]] = NoEdge; });
      this->FindEdges(isFirst, begin);
      this->ForTrees(m_NumberOfOpen, [this](std::int64_t i) { m_Nexts[m_Open[i]] = this->NextOf(m_Open[i]); });
      this->ForTrees(m_NumberOfOpen, [this](std::int64_t i) {
        const TId tree = m_Open[i];
        m_Finals[tree] = this->StaysOpen(tree) ? Flag | tree : m_Nexts[tree];
      });
      if (!m_Operation.hasMarkers)
      {
        this->ForTrees(m_NumberOfOpen, [this](std::int64_t i) {
          const TId tree = m_Open[i];
          const TId code = this->FinalOf(tree);
          if ((code & Flag) != 0 && code != (Flag | tree))
          {
            this->Lower(code & ~Flag, Load(m_Lows[tree]));
          }
        });
      }
      std::int64_t stillOpen = 0;
      for (std::int64_t i = 0; i < m_NumberOfOpen; ++i)
      {
        const TId tree = m_Open[i];
        if (this->StaysOpen(tree))
        {
          m_Open[stillOpen++] = tree;
        }
        else if (m_KeepsEdges && m_Nexts[tree] != (Flag | tree) &&
                 (m_Operation.hasMarkers || m_Nexts[tree] != m_Lows[tree]))
        {
          this->KeepEdge(m_Best[tree]);
        }
      }
      m_NumberOfOpen = stillOpen;
      this->ForTrees(static_cast<std::int64_t>(end),
                     [this](std::int64_t i) { Store(m_Finals[i], this->FinalOf(static_cast<TId>(i))); });
    }
  }
  /** The root or tree to which an open tree's least edge leads; a separate root, or itself, if none does. */
  TId
  NextOf(TId tree)
  {
    if (IsPacked && m_Best[tree] != NoEdge)
    {
      m_Best[tree] = this->UnpackEdge(m_Best[tree], tree);
    }
    const std::uint64_t edge = m_Best[tree];
    const TId           alone = m_KeepsEdges ? Flag | tree : m_Operation.hasMarkers ? Outside : m_Lows[tree];
    if (edge == NoEdge)
    {
      return alone;
    }
    const TId q = this->FarEnd(edge);
    if (!m_Operation.hasMarkers)
    {
      const TPixel high = std::max(this->Value(static_cast<TId>(edge >> EdgeBits)), this->Value(q));
      if (m_Depth.IsDeep(high, this->Value(m_Lows[tree])))
      {
        return m_Lows[tree];
      }
    }
    return this->CodeOf(m_Parents[q]);
  }
  /** One of two trees that lead to each other stays. */
  bool
  StaysOpen(TId tree) const
  {
    const TId next = m_Nexts[tree];
    if ((next & Flag) == 0 || next == Outside || (next & ~Flag) <= tree)
    {
      return false;
    }
    return m_Nexts[next & ~Flag] == (Flag | tree);
  }
  TId
  FinalOf(TId tree) const
  {
    TId code = Load(m_Finals[tree]);
    while ((code & Flag) != 0 && code != Outside && code != (Flag | tree))
    {
      tree = code & ~Flag;
      code = Load(m_Finals[tree]);
    }
    return code;
  }
  void
  KeepEdge(std::uint64_t number)
  {
    const WatershedEdge edge = this->MakeEdge(number);
    if (m_Operation.isBlock)
    {
      const int lead = static_cast<int>(number & ((1 << EdgeBits) - 1));
      m_Arrays.StoreEdge(m_NumberOfEdges++, edge, WatershedNeighborBehind(lead, m_NumberOfNeighbors), edge.label);
    }
    else
    {
      m_Edges[m_NumberOfEdges++] = edge;
    }
  }
  WatershedEdge
  MakeEdge(std::uint64_t edge) const
  {
    const TId     v = static_cast<TId>(edge >> EdgeBits);
    const TId     q = this->FarEnd(edge);
    const TId     first = std::min(v, q);
    const TId     second = std::max(v, q);
    const TId     other = m_Parents[q];
    WatershedEdge result{};
    result.first = m_Operation.RasterIndex(this->IndexOf(first));
    result.second = m_Operation.RasterIndex(this->IndexOf(second));
    result.firstValue = PackWatershedValue(this->Value(first));
    result.secondValue = PackWatershedValue(this->Value(second));
    result.a = static_cast<std::int64_t>(m_Parents[v] & ~Flag);
    result.b = -1;
    if ((other & Flag) != 0)
    {
      result.b = static_cast<std::int64_t>(other & ~Flag);
    }
    else
    {
      // The number of the voxel in the chunk, without markers, until minima have been counted.
      result.label = m_Operation.hasMarkers ? this->MarkerAt(this->IndexOf(other)) : std::uint64_t{ other };
    }
    return result;
  }

  /** Counts minima: in m_List the minima that precede each voxel in its row, in m_Offsets the minima of each row.
   * `starts`: further minima, ascending, as indices in the raster order of the image. */
  void
  CountMinima(const std::int64_t * starts, const std::int64_t * startsEnd)
  {
    this->ForRows([&](const Row & row, std::int64_t) {
      const std::int64_t   first = m_Operation.RasterIndex(row.index);
      const std::int64_t * next = std::lower_bound(starts, startsEnd, first);
      TId                  count = 0;
      for (std::int64_t x = 0; x < m_Nx; ++x)
      {
        const TId v = row.first + static_cast<TId>(x);
        m_List[v] = count;
        const bool isFurther = next != startsEnd && *next == first + x;
        next += isFurther ? 1 : 0;
        count += isFurther || m_Parents[v] == v ? 1 : 0;
      }
      m_Offsets[row.row] = count;
    });
  }

  std::uint64_t
  LabelOf(TId code, const std::uint64_t * labels) const
  {
    if (code == Outside)
    {
      return 0;
    }
    if ((code & Flag) != 0)
    {
      return labels[code & ~Flag];
    }
    return m_Operation.hasMarkers ? this->MarkerAt(this->IndexOf(code))
                                  : m_Offsets[static_cast<std::int64_t>(code) / m_Nx] + m_List[code] + 1;
  }
  /** Whether a voxel with a label has a neighbor with a smaller one. */
  bool
  IsLine(const Row & row, std::int64_t x, TId code, std::uint64_t label, const std::uint64_t * labels,
         const unsigned char * lines) const
  {
    if (lines)
    {
      Coordinates index = row.index;
      index[0] += x;
      const std::int64_t border = m_Scratch.layout.border.IndexOf(index);
      if (border >= 0 && lines[border] != 0)
      {
        return true;
      }
    }
    bool isLine = false;
    this->ForNeighbors(row, x, [&](int, TId q, std::int64_t) {
      const TId other = m_Parents[q];
      if (other != code && other != Outside && !isLine)
      {
        const std::uint64_t beside = this->LabelOf(other, labels);
        isLine = beside != 0 && beside < label;
      }
    });
    return isLine;
  }

  const KernelCall &           m_Call;
  const WatershedOperation &   m_Operation;
  const Box                    m_Box;
  const WatershedScratch       m_Scratch;
  bool                         m_HasBorder;
  const BufferView             m_Input;
  const WatershedDepth<TPixel> m_Depth;
  TId * const                  m_Parents;
  TId * const                  m_List;
  std::uint8_t * const         m_Leads;
  std::uint64_t * const        m_Best;
  TId * const                  m_Finals;
  TId * const                  m_Nexts;
  TId * const                  m_Open;
  TId * const                  m_Lows;
  std::uint64_t * const        m_Offsets;
  std::int64_t * const         m_Counts;
  const std::int64_t           m_Nx;
  const std::int64_t           m_Rows;
  const Coordinates            m_Stride;
  const bool                   m_IsDense;
  Neighbor                     m_Neighbors[WatershedMostNeighbors];
  int                          m_NumberOfNeighbors{ 0 };
  std::atomic<bool>            m_HasOutside{ false };
  bool                         m_IsFast{ false };
  TId                          m_Trees{ 0 };
  std::int64_t                 m_NumberOfOpen{ 0 };
  // The parts of a summary; a block's has arrays.
  bool                 m_KeepsEdges{ false };
  std::int64_t         m_NumberOfEdges{ 0 };
  WatershedNode *      m_Nodes{ nullptr };
  WatershedEdge *      m_Edges{ nullptr };
  WatershedBlockArrays m_Arrays;
};

/** The results that kernels make of forests. */
enum class WatershedRole
{
  Summarize,
  Compute,
  Alone
};

template <typename TPixel, typename TId>
void
RunWatershedForest(const KernelCall & call, WatershedRole role)
{
  const auto &                 operation = static_cast<const WatershedOperation &>(*call.operation);
  WatershedForest<TPixel, TId> forest(call);
  if (operation.sizes)
  {
    throw Error("sizes of basins are not found by this kernel");
  }
  if (role == WatershedRole::Alone && !operation.isBlock)
  {
    forest.IgnoreBorder();
  }
  if (!forest.FindRoots())
  {
    return;
  }
  switch (role)
  {
    case WatershedRole::Summarize:
      return forest.WriteSummary();
    case WatershedRole::Compute:
      return forest.WriteLabels(static_cast<const unsigned char *>(call.sideIn), call.sideInBytes);
    case WatershedRole::Alone:
      return forest.WriteLabels(operation.outside.get());
  }
}

template <WatershedRole VRole>
void
RunWatershed(const KernelCall & call)
{
  if (call.writable.IsEmpty())
  {
    return;
  }
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    IsWideWatershed(call.writable) ? RunWatershedForest<Pixel, std::uint64_t>(call, VRole)
                                   : RunWatershedForest<Pixel, std::uint32_t>(call, VRole);
  });
}

/** The bytes to join all chunks of an image, beside their scratch: at most so many for each voxel on a border
 * between chunks, of which a plan counts those beyond what it has for the process. `chunk`: the first one of the image,
 * as in plans, has the extent of all others but the last ones, which may be thinner. These count as half of the image.
 */
std::size_t
BytesToJoinChunks(const Box & image, const Box & chunk)
{
  constexpr double BytesOfBorderVoxel = 450;
  constexpr double BytesOfProcess = 8 << 20;
  double           borders = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const bool         isLast = chunk.lower[a] > image.lower[a] && chunk.upper[a] == image.upper[a];
    const std::int64_t chunks =
      isLast ? 2 : (image.Extent(a) + chunk.Extent(a) - 1) / std::max<std::int64_t>(chunk.Extent(a), 1);
    borders += 2.0 * static_cast<double>(chunks - 1) * static_cast<double>(image.NumberOfVoxels()) /
               static_cast<double>(std::max<std::int64_t>(image.Extent(a), 1));
  }
  borders = std::min(borders, static_cast<double>(image.NumberOfVoxels()));
  return static_cast<std::size_t>(std::max(0.0, BytesOfBorderVoxel * borders - BytesOfProcess));
}

std::size_t
WatershedScratchBytes(const Operation & operation, const ChunkShape & shape)
{
  WatershedOperation watershed = static_cast<const WatershedOperation &>(operation);
  const Box          box = SurroundWatershedChunk(watershed, shape.outputBox);
  return WatershedScratch(watershed, box).bytes +
         (watershed.isBlock ? 0 : BytesToJoinChunks(shape.image, shape.outputBox));
}

/** The cost in bytes of memory traffic: each voxel looks at its neighbors a few times. */
double
WatershedCost(const Operation & operation, const ChunkShape & shape)
{
  const double voxels = static_cast<double>(shape.outputBox.NumberOfVoxels());
  const int    connectivity = static_cast<const WatershedOperation &>(operation).connectivity;
  return voxels * (static_cast<double>(PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind)) +
                   (connectivity == 1 ? 200.0 : 500.0));
}

} // namespace

void
RegisterHostWatershed(KernelRegistry & registry)
{
  KernelSet kernels;
  Kernel    kernel;
  kernel.scratchBytes = WatershedScratchBytes;
  kernel.cost = WatershedCost;
  kernel.run = RunWatershed<WatershedRole::Summarize>;
  kernels.summarize = kernel;
  kernel.run = RunWatershed<WatershedRole::Alone>;
  kernels.alone = kernel;
  kernel.run = RunWatershed<WatershedRole::Compute>;
  kernels.compute = kernel;
  registry.Register("watershed", kernels);
}

} // namespace chunkwise
