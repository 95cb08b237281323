/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuStridedRow.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseReconstructionKey.h"
#include "chunkwiseTileForest.h"

#include <cmath>

// Kernel "reconstruction.solveGlobally": reconstruction on the borders of tiles, whatever way the values have to go.
// Each tile is reduced to a forest on its border, the graph of all forests is flooded from the largest state down, and
// the states of the borders become what the whole reconstruction has there. The remaining work lies within tiles.
namespace chunkwise
{

namespace
{

/** The tiles of a region, and numbers for the voxels of their borders: those with neighbours in another tile. */
class TileGrid
{
public:
  TileGrid(const ReconstructionOperation & operation, const Box & region)
    : m_Region(region)
    , m_FullyConnected(operation.fullyConnected)
  {
    int axes = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_HasNeighbours[a] = a < operation.spatialDimension && region.Extent(a) > 1;
      axes += m_HasNeighbours[a] ? 1 : 0;
    }
    // Volumes have more of a border.
    const double wanted = operation.partVoxels ? static_cast<double>(operation.partVoxels)
                          : axes < 3           ? 1 << 20
                                               : 1 << 22;
    const auto   extent = std::max<std::int64_t>(std::llround(std::pow(wanted, 1.0 / std::max(axes, 1))), 1);
    m_Tiles = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      m_Extent[a] = m_HasNeighbours[a] ? std::min(extent, region.Extent(a)) : 1;
      m_Count[a] = (region.Extent(a) + m_Extent[a] - 1) / m_Extent[a];
      m_Tiles *= m_Count[a];
    }
  }

  std::int64_t
  GetTiles() const
  {
    return m_Tiles;
  }
  bool
  IsFullyConnected() const
  {
    return m_FullyConnected;
  }
  bool
  HasNeighbours(int a) const
  {
    return m_HasNeighbours[a];
  }
  const Box &
  GetRegion() const
  {
    return m_Region;
  }
  Box
  GetTile(std::int64_t tile) const
  {
    Box box{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      box.lower[a] = m_Region.lower[a] + tile % m_Count[a] * m_Extent[a];
      box.upper[a] = std::min(box.lower[a] + m_Extent[a], m_Region.upper[a]);
      tile /= m_Count[a];
    }
    return box;
  }
  std::int64_t
  FindTile(const Coordinates & index) const
  {
    std::int64_t tile = 0;
    for (int a = MaxDimension; a-- > 0;)
    {
      tile = tile * m_Count[a] + (index[a] - m_Region.lower[a]) / m_Extent[a];
    }
    return tile;
  }
  /** The voxels of a tile that are not of the border. */
  Box
  GetInner(const Box & tile) const
  {
    Box inner = tile;
    for (int a = 0; a < MaxDimension; ++a)
    {
      inner.lower[a] += tile.lower[a] > m_Region.lower[a] && m_HasNeighbours[a] ? 1 : 0;
      inner.upper[a] -= tile.upper[a] < m_Region.upper[a] && m_HasNeighbours[a] ? 1 : 0;
      inner.upper[a] = std::max(inner.upper[a], inner.lower[a]);
    }
    return inner;
  }
  std::int64_t
  CountBorder(std::int64_t tile) const
  {
    const Box box = GetTile(tile);
    return box.NumberOfVoxels() - GetInner(box).NumberOfVoxels();
  }
  /** The number of a voxel of the border among those of its tile, in the order of memory. */
  std::int64_t
  RankOf(const Box & tile, const Coordinates & index) const
  {
    const Box    inner = GetInner(tile);
    std::int64_t before = 0;
    std::int64_t innerBefore = 0;
    std::int64_t volume = 1;
    std::int64_t innerVolume = 1;
    bool         isInner = true;
    // From the slowest axis down: all that lies below the index along it, where those above agree.
    for (int a = 0; a < MaxDimension; ++a)
    {
      volume *= tile.Extent(a);
      innerVolume *= inner.Extent(a);
    }
    for (int a = MaxDimension; a-- > 0;)
    {
      volume /= tile.Extent(a);
      before += (index[a] - tile.lower[a]) * volume;
      if (isInner && innerVolume > 0)
      {
        innerVolume /= inner.Extent(a);
        innerBefore += std::clamp<std::int64_t>(index[a] - inner.lower[a], 0, inner.Extent(a)) * innerVolume;
        isInner = index[a] >= inner.lower[a] && index[a] < inner.upper[a];
      }
    }
    return before - innerBefore;
  }
  FloodGrid
  MakeGrid(const Box & tile) const
  {
    const std::int64_t extent[3] = { tile.Extent(0), tile.Extent(1), tile.Extent(2) };
    const bool         neighbours[3] = { m_HasNeighbours[0], m_HasNeighbours[1], m_HasNeighbours[2] };
    return FloodGrid(extent, neighbours, m_FullyConnected);
  }
  /** Calls visit(index) for each neighbour in the region of a voxel that lies in another tile. */
  template <typename TVisit>
  void
  ForEachBeyond(const Box & tile, const Coordinates & index, TVisit && visit) const
  {
    for (int step = 0; step < 27; ++step)
    {
      const int   d[3] = { step % 3 - 1, step / 3 % 3 - 1, step / 9 - 1 };
      const int   moved = (d[0] != 0) + (d[1] != 0) + (d[2] != 0);
      Coordinates other = index;
      bool        there = moved == 1 || (moved > 1 && m_FullyConnected);
      bool        beyond = false;
      for (int a = 0; a < 3; ++a)
      {
        other[a] += d[a];
        there =
          there && (d[a] == 0 || m_HasNeighbours[a]) && other[a] >= m_Region.lower[a] && other[a] < m_Region.upper[a];
        beyond = beyond || other[a] < tile.lower[a] || other[a] >= tile.upper[a];
      }
      if (there && beyond)
      {
        visit(static_cast<const Coordinates &>(other));
      }
    }
  }

private:
  Box          m_Region;
  bool         m_FullyConnected;
  bool         m_HasNeighbours[MaxDimension];
  Coordinates  m_Extent{};
  Coordinates  m_Count{};
  std::int64_t m_Tiles;
};

/** The places of all arrays in the scratch. */
template <typename TKey>
struct SettleLayout
{
  std::int64_t threads;
  std::int64_t framedVoxels; ///< of the largest tile
  std::int64_t numbers{ 0 };
  std::int64_t pushes;
  std::size_t  forest;
  std::size_t  bases;
  std::size_t  positions;
  std::size_t  states;
  std::size_t  edges;
  std::size_t  begins;
  std::size_t  ends;
  std::size_t  queue;
  std::size_t  bytes{ 0 };

  SettleLayout(const TileGrid & grid, int concurrency)
    : threads(concurrency)
    , framedVoxels(grid.MakeGrid(grid.GetTile(0)).voxels)
  {
    for (std::int64_t tile = 0; tile < grid.GetTiles(); ++tile)
    {
      numbers += grid.CountBorder(tile);
    }
    // Every number once, once more from beyond its tile, and from both ends of its edges.
    pushes = 4 * numbers;
    const auto take = [this](std::size_t size) {
      const std::size_t at = bytes;
      bytes += (size + 63) / 64 * 64;
      return at;
    };
    const auto n = static_cast<std::size_t>(numbers);
    forest = take(static_cast<std::size_t>(threads) * GetForestBytes());
    bases = take((static_cast<std::size_t>(grid.GetTiles()) + 1) * sizeof(std::uint32_t));
    positions = take(n * sizeof(std::int64_t));
    states = take(n * sizeof(TKey));
    edges = take(n * sizeof(ForestEdge<TKey>));
    begins = take((n + 1) * sizeof(std::uint32_t));
    ends = take(2 * n * sizeof(std::uint32_t));
    queue = take(DescendingQueue<TKey>::GetBytes(pushes));
  }

  std::size_t
  GetForestBytes() const
  {
    return (TileForest<TKey>::GetBytes(framedVoxels) + 63) / 64 * 64;
  }
};

template <typename TPixel>
class Settlement
{
public:
  using KeyOf = ReconstructionKey<TPixel>;
  using Key = typename KeyOf::Type;

  explicit Settlement(const KernelCall & call)
    : m_Call(call)
    , m_Flip(ReconstructionRule<TPixel>(static_cast<const ReconstructionOperation &>(*call.operation), call.image).flip)
    , m_Grid(static_cast<const ReconstructionOperation &>(*call.operation), call.writable)
    , m_Layout(m_Grid, static_cast<int>(call.executor->GetConcurrency()))
  {
    char * const memory = static_cast<char *>(call.scratch);
    m_Bases = reinterpret_cast<std::uint32_t *>(memory + m_Layout.bases);
    m_Positions = reinterpret_cast<std::int64_t *>(memory + m_Layout.positions);
    m_States = reinterpret_cast<Key *>(memory + m_Layout.states);
    m_Edges = reinterpret_cast<ForestEdge<Key> *>(memory + m_Layout.edges);
    m_Begins = reinterpret_cast<std::uint32_t *>(memory + m_Layout.begins);
    m_Ends = reinterpret_cast<std::uint32_t *>(memory + m_Layout.ends);
  }

  void
  Run()
  {
    if (m_Layout.numbers >= std::int64_t{ UINT32_MAX } / 4)
    {
      return; // more than numbers have room for: the state may stay as it is
    }
    m_Bases[0] = 0;
    for (std::int64_t tile = 0; tile < m_Grid.GetTiles(); ++tile)
    {
      m_Bases[tile + 1] = m_Bases[tile] + static_cast<std::uint32_t>(m_Grid.CountBorder(tile));
    }
    m_Call.executor->ParallelFor(m_Grid.GetTiles(), [&](std::int64_t tile, unsigned int worker) {
      if (!ShouldStop())
      {
        Reduce(tile, worker);
      }
    });
    if (ShouldStop())
    {
      return;
    }
    LinkEdges();
    if (Flood())
    {
      Store();
    }
  }

private:
  bool
  ShouldStop() const
  {
    return m_Call.control && m_Call.control->ShouldStop();
  }

  const BufferView &
  GetMask() const
  {
    return m_Call.inputs[m_Call.numberOfInputs - 1];
  }
  static TPixel *
  VoxelAt(const BufferView & view, const Coordinates & index)
  {
    return static_cast<TPixel *>(view.data) + view.Offset(index);
  }
  Coordinates
  IndexOf(std::int64_t position) const
  {
    Coordinates index = m_Grid.GetRegion().lower;
    for (int a = 0; a < MaxDimension; ++a)
    {
      index[a] += position % m_Grid.GetRegion().Extent(a);
      position /= m_Grid.GetRegion().Extent(a);
    }
    return index;
  }

  void
  Reduce(std::int64_t tile, unsigned int worker)
  {
    const Box       box = m_Grid.GetTile(tile);
    const Box       inner = m_Grid.GetInner(box);
    const FloodGrid grid = m_Grid.MakeGrid(box);
    const auto      strides = DenseStrides(m_Grid.GetRegion().Extents());
    TileForest<Key> forest(grid,
                           static_cast<char *>(m_Call.scratch) + m_Layout.forest + worker * m_Layout.GetForestBytes());
    std::uint32_t   number = m_Bases[tile];
    for (std::int64_t z = 0; z < box.Extent(2); ++z)
    {
      for (std::int64_t y = 0; y < box.Extent(1); ++y)
      {
        const std::int64_t at = grid.Offset(0, y, z);
        Coordinates        index = box.lower;
        index[1] += y;
        index[2] += z;
        const StridedRow<const TPixel> mask(GetMask(), index);
        const StridedRow<const TPixel> state(m_Call.output, index);
        bool                           rowIsInner = true;
        std::int64_t                   position = 0;
        for (int a = 0; a < MaxDimension; ++a)
        {
          rowIsInner = rowIsInner && (a == 0 || (index[a] >= inner.lower[a] && index[a] < inner.upper[a]));
          position += (index[a] - m_Grid.GetRegion().lower[a]) * strides[a];
        }
        for (std::int64_t x = 0; x < box.Extent(0); ++x)
        {
          const bool isInner = rowIsInner && index[0] + x >= inner.lower[0] && index[0] + x < inner.upper[0];
          forest.GetMask()[at + x] = KeyOf::From(mask[x], m_Flip);
          forest.GetState()[at + x] = KeyOf::From(state[x], m_Flip);
          forest.GetTerminals()[at + x] = isInner ? TileForest<Key>::None : number;
          if (!isInner)
          {
            m_States[number] = 0;
            m_Positions[number] = position + x;
            ++number;
          }
        }
      }
    }
    ForestEdge<Key> * const edges = m_Edges + m_Bases[tile];
    const std::uint32_t     count = forest.Build(m_States, edges);
    // A tile without a border has no edges either.
    for (std::uint32_t i = count; i < m_Bases[tile + 1] - m_Bases[tile]; ++i)
    {
      edges[i] = { 0, 0, 0 };
    }
  }

  /** The ends of edges, by the number that they have in common: m_Ends[m_Begins[n]] to m_Ends[m_Begins[n + 1] - 1]. */
  void
  LinkEdges()
  {
    const auto numbers = static_cast<std::uint32_t>(m_Layout.numbers);
    std::fill(m_Begins, m_Begins + numbers + 1, 0u);
    for (std::uint32_t i = 0; i < numbers; ++i)
    {
      if (m_Edges[i].capacity != 0)
      {
        ++m_Begins[m_Edges[i].first];
        ++m_Begins[m_Edges[i].second];
      }
    }
    std::uint32_t sum = 0;
    for (std::uint32_t i = 0; i <= numbers; ++i)
    {
      sum += m_Begins[i];
      m_Begins[i] = sum;
    }
    for (std::uint32_t i = 0; i < numbers; ++i)
    {
      if (m_Edges[i].capacity != 0)
      {
        m_Ends[--m_Begins[m_Edges[i].first]] = i;
        m_Ends[--m_Begins[m_Edges[i].second]] = i;
      }
    }
  }

  /** From the largest state down. False if it was stopped. */
  bool
  Flood()
  {
    DescendingQueue<Key> queue;
    queue.Initialize(static_cast<char *>(m_Call.scratch) + m_Layout.queue, m_Layout.pushes);
    const auto numbers = static_cast<std::uint32_t>(m_Layout.numbers);
    for (std::uint32_t i = 0; i < numbers; ++i)
    {
      if (m_States[i] != 0)
      {
        queue.Push(i, m_States[i]);
      }
    }
    std::uint32_t number = 0;
    std::uint32_t popped = 0;
    while (queue.Pop(number, [this](std::uint32_t n) { return m_States[n]; }))
    {
      if ((++popped & 0xFFFF) == 0 && ShouldStop())
      {
        return false;
      }
      const Key key = m_States[number];
      if (key != queue.GetLevel())
      {
        continue; // it was raised since, and has been here
      }
      const auto raise = [&](std::uint32_t other, Key through) {
        if (through > m_States[other])
        {
          m_States[other] = through;
          queue.Push(other, through);
        }
      };
      for (std::uint32_t i = m_Begins[number]; i < m_Begins[number + 1]; ++i)
      {
        const ForestEdge<Key> & edge = m_Edges[m_Ends[i]];
        raise(edge.first == number ? edge.second : edge.first, std::min(key, edge.capacity));
      }
      const Coordinates index = IndexOf(m_Positions[number]);
      m_Grid.ForEachBeyond(m_Grid.GetTile(m_Grid.FindTile(index)), index, [&](const Coordinates & other) {
        const std::int64_t tile = m_Grid.FindTile(other);
        raise(m_Bases[tile] + static_cast<std::uint32_t>(m_Grid.RankOf(m_Grid.GetTile(tile), other)),
              std::min(key, KeyOf::From(*VoxelAt(GetMask(), other), m_Flip)));
      });
    }
    return true;
  }

  void
  Store()
  {
    constexpr std::int64_t numbersOfTask = 1 << 14;
    m_Call.executor->ParallelFor((m_Layout.numbers + numbersOfTask - 1) / numbersOfTask,
                                 [&](std::int64_t task, unsigned int) {
                                   const std::int64_t end = std::min(m_Layout.numbers, (task + 1) * numbersOfTask);
                                   for (std::int64_t i = task * numbersOfTask; i < end; ++i)
                                   {
                                     *VoxelAt(m_Call.output, IndexOf(m_Positions[i])) = KeyOf::To(m_States[i], m_Flip);
                                   }
                                 });
  }

  const KernelCall &      m_Call;
  const Key               m_Flip;
  const TileGrid          m_Grid;
  const SettleLayout<Key> m_Layout;
  std::uint32_t *         m_Bases; ///< of tiles: their first number
  std::int64_t *          m_Positions;
  Key *                   m_States;
  ForestEdge<Key> *       m_Edges; ///< a tile's begin where its numbers do; those without capacity are none
  std::uint32_t *         m_Begins;
  std::uint32_t *         m_Ends;
};

} // namespace

Kernel
MakeHostGlobalSolution()
{
  Kernel kernel;
  kernel.run = [](const KernelCall & call) {
    DispatchPixelType(call.output.kind, [&](auto pixel) { Settlement<decltype(pixel)>(call).Run(); });
  };
  kernel.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return DispatchPixelType(shape.outputKind, [&](auto pixel) {
      using Key = typename ReconstructionKey<decltype(pixel)>::Type;
      return SettleLayout<Key>(TileGrid(static_cast<const ReconstructionOperation &>(operation), shape.outputBox),
                               shape.concurrency)
        .bytes;
    });
  };
  return kernel;
}

} // namespace chunkwise
