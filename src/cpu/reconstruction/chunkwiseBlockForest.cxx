/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBlockForest.h"

#include "chunkwiseError.h"
#include "chunkwiseReconstructionKey.h"
#include "chunkwiseTileForest.h"

#include <memory>
#include <queue>

namespace chunkwise
{

namespace
{

/** A block in its image: which of its voxels are of the border, in the order of memory. */
struct Block
{
  Box  box;
  Box  inner; ///< of voxels without neighbors in another block
  bool hasNeighbors[MaxDimension];

  Block(const ReconstructionOperation & operation, const Box & theBox, const Box & image)
    : box(theBox)
    , inner(theBox)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      hasNeighbors[a] = a < operation.spatialDimension && a < 3 && image.Extent(a) > 1;
      if (box.lower[a] < image.lower[a] || box.upper[a] > image.upper[a] || box.Extent(a) < 1 ||
          (a >= 3 && box.Extent(a) > 1))
      {
        throw ParameterError("block: it is empty, not within the image, or of more than three dimensions");
      }
      inner.lower[a] += hasNeighbors[a] && box.lower[a] > image.lower[a] ? 1 : 0;
      inner.upper[a] -= hasNeighbors[a] && box.upper[a] < image.upper[a] ? 1 : 0;
    }
  }

  bool
  IsInner(std::int64_t x, std::int64_t y, std::int64_t z) const
  {
    const std::int64_t at[3] = { x, y, z };
    for (int a = 0; a < 3; ++a)
    {
      if (at[a] < inner.lower[a] || at[a] >= inner.upper[a])
      {
        return false;
      }
    }
    return true;
  }

  /** visit(index) for each voxel of the border. */
  template <typename TVisit>
  void
  ForEachOfBorder(TVisit && visit) const
  {
    Coordinates index = box.lower;
    for (index[2] = box.lower[2]; index[2] < box.upper[2]; ++index[2])
    {
      for (index[1] = box.lower[1]; index[1] < box.upper[1]; ++index[1])
      {
        for (index[0] = box.lower[0]; index[0] < box.upper[0]; ++index[0])
        {
          if (!IsInner(index[0], index[1], index[2]))
          {
            visit(static_cast<const Coordinates &>(index));
          }
          else
          {
            index[0] = inner.upper[0] - 1;
          }
        }
      }
    }
  }

  std::int64_t
  CountBorder() const
  {
    std::int64_t innerVoxels = 1;
    for (int a = 0; a < 3; ++a)
    {
      innerVoxels *= std::max<std::int64_t>(inner.Extent(a), 0);
    }
    return box.NumberOfVoxels() - innerVoxels;
  }

  /** The place of a voxel of the border among them. */
  std::int64_t
  RankOf(const Coordinates & index) const
  {
    const std::int64_t width = box.Extent(0);
    const std::int64_t innerWidth = std::max<std::int64_t>(inner.Extent(0), 0);
    const std::int64_t innerHeight = std::max<std::int64_t>(inner.Extent(1), 0);
    const auto         before = [](std::int64_t at, std::int64_t lower, std::int64_t upper) {
      return std::clamp<std::int64_t>(at - lower, 0, std::max<std::int64_t>(upper - lower, 0));
    };
    const bool   planeHasInner = index[2] >= inner.lower[2] && index[2] < inner.upper[2];
    const bool   rowHasInner = planeHasInner && index[1] >= inner.lower[1] && index[1] < inner.upper[1];
    std::int64_t hidden = before(index[2], inner.lower[2], inner.upper[2]) * innerHeight * innerWidth;
    hidden += planeHasInner ? before(index[1], inner.lower[1], inner.upper[1]) * innerWidth : 0;
    hidden += rowHasInner ? before(index[0], inner.lower[0], inner.upper[0]) : 0;
    return ((index[2] - box.lower[2]) * box.Extent(1) + index[1] - box.lower[1]) * width + index[0] - box.lower[0] -
           hidden;
  }
};

template <typename TPixel>
TPixel &
VoxelAt(const BufferView & view, const Coordinates & index)
{
  return static_cast<TPixel *>(view.data)[view.Offset(index)];
}

/** Border and edges as bytes: both counts, states, masks, edges. */
template <typename TKey>
struct Contraction
{
  std::vector<TKey>             states;
  std::vector<TKey>             masks;
  std::vector<ForestEdge<TKey>> edges;

  ChunkState
  ToBytes() const
  {
    const std::uint64_t counts[2] = { states.size(), edges.size() };
    ChunkState          bytes(sizeof(counts) + states.size() * 2 * sizeof(TKey) + edges.size() * EdgeBytes);
    unsigned char *     at = bytes.data();
    const auto          put = [&at](const void * from, std::size_t size) {
      if (size > 0)
      {
        std::memcpy(at, from, size);
      }
      at += size;
    };
    put(counts, sizeof(counts));
    put(states.data(), states.size() * sizeof(TKey));
    put(masks.data(), masks.size() * sizeof(TKey));
    for (const ForestEdge<TKey> & edge : edges)
    {
      put(&edge.first, sizeof(edge.first));
      put(&edge.second, sizeof(edge.second));
      put(&edge.capacity, sizeof(edge.capacity));
    }
    return bytes;
  }

  /** `border`: how many voxels the border has. */
  static Contraction
  FromBytes(const ChunkState & bytes, std::int64_t border)
  {
    std::uint64_t counts[2] = {};
    if (bytes.size() >= sizeof(counts))
    {
      std::memcpy(counts, bytes.data(), sizeof(counts));
    }
    const auto voxels = static_cast<std::uint64_t>(border);
    if (bytes.size() < sizeof(counts) || counts[0] != voxels || counts[1] > voxels ||
        bytes.size() != sizeof(counts) + counts[0] * 2 * sizeof(TKey) + counts[1] * EdgeBytes)
    {
      throw ParameterError("contraction: it is not that of this block, or of another kind of voxels");
    }
    Contraction           made;
    const unsigned char * at = bytes.data() + sizeof(counts);
    const auto            take = [&at](void * to, std::size_t size) {
      if (size > 0)
      {
        std::memcpy(to, at, size);
      }
      at += size;
    };
    made.states.resize(voxels);
    made.masks.resize(voxels);
    made.edges.resize(counts[1]);
    take(made.states.data(), voxels * sizeof(TKey));
    take(made.masks.data(), voxels * sizeof(TKey));
    for (ForestEdge<TKey> & edge : made.edges)
    {
      take(&edge.first, sizeof(edge.first));
      take(&edge.second, sizeof(edge.second));
      take(&edge.capacity, sizeof(edge.capacity));
      if (edge.first >= voxels || edge.second >= voxels)
      {
        throw ParameterError("contraction: an edge leads out of the block");
      }
    }
    return made;
  }

private:
  static constexpr std::size_t EdgeBytes = 2 * sizeof(std::uint32_t) + sizeof(TKey);
};

template <typename TPixel>
typename ReconstructionKey<TPixel>::Type
FlipOf(const ReconstructionOperation & operation)
{
  using Key = typename ReconstructionKey<TPixel>::Type;
  return operation.erosion ? static_cast<Key>(~Key{ 0 }) : Key{ 0 };
}

template <typename TPixel>
ChunkState
Contract(const ReconstructionOperation & operation, const BufferView & state, const BufferView & mask,
         const Box & image)
{
  using KeyOf = ReconstructionKey<TPixel>;
  using Key = typename KeyOf::Type;
  const Block        block(operation, state.box, image);
  const Key          flip = FlipOf<TPixel>(operation);
  const std::int64_t extent[3] = { block.box.Extent(0), block.box.Extent(1), block.box.Extent(2) };
  const bool         neighbors[3] = { block.hasNeighbors[0], block.hasNeighbors[1], block.hasNeighbors[2] };
  const FloodGrid    grid(extent, neighbors, operation.fullyConnected);
  if (grid.voxels >= std::int64_t{ UINT32_MAX } - 1)
  {
    throw ParameterError("block: it has " + std::to_string(block.box.NumberOfVoxels()) +
                         " voxels; less than 2^32 are possible");
  }
  // Not touched before it is used, and aligned for all.
  const std::size_t                      bytes = TileForest<Key>::GetBytes(grid.voxels);
  const std::unique_ptr<std::uint64_t[]> memory(new std::uint64_t[bytes / sizeof(std::uint64_t) + 1]);
  TileForest<Key>                        forest(grid, memory.get());
  Contraction<Key>                       found;
  Coordinates                            index = block.box.lower;
  for (index[2] = block.box.lower[2]; index[2] < block.box.upper[2]; ++index[2])
  {
    for (index[1] = block.box.lower[1]; index[1] < block.box.upper[1]; ++index[1])
    {
      for (index[0] = block.box.lower[0]; index[0] < block.box.upper[0]; ++index[0])
      {
        const std::int64_t at =
          grid.Offset(index[0] - block.box.lower[0], index[1] - block.box.lower[1], index[2] - block.box.lower[2]);
        const Key maskKey = KeyOf::From(VoxelAt<TPixel>(mask, index), flip);
        const Key stateKey = std::min(KeyOf::From(VoxelAt<TPixel>(state, index), flip), maskKey);
        forest.GetMask()[at] = maskKey;
        forest.GetState()[at] = stateKey;
        forest.GetTerminals()[at] = TileForest<Key>::None;
        if (!block.IsInner(index[0], index[1], index[2]))
        {
          forest.GetTerminals()[at] = static_cast<std::uint32_t>(found.states.size());
          found.states.push_back(stateKey);
          found.masks.push_back(maskKey);
        }
      }
    }
  }
  found.edges.resize(found.states.size());
  const std::uint32_t count = forest.Build(found.states.data(), found.edges.data());
  found.edges.resize(count);
  // Both ends have as much as the edge lets through, or more: it has nothing to bring.
  const auto isIdle = [&](const ForestEdge<Key> & edge) {
    return edge.capacity <= std::min(found.states[edge.first], found.states[edge.second]);
  };
  found.edges.erase(std::remove_if(found.edges.begin(), found.edges.end(), isIdle), found.edges.end());
  return found.ToBytes();
}

/** The blocks of an image, and numbers for all voxels of their borders. */
template <typename TPixel>
class Joint
{
public:
  using KeyOf = ReconstructionKey<TPixel>;
  using Key = typename KeyOf::Type;

  Joint(const ReconstructionOperation & operation, const BlockCuts & cuts, const std::vector<ChunkState> & contractions)
    : m_Cuts(cuts)
    , m_FullyConnected(operation.fullyConnected)
  {
    std::size_t expected = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::vector<std::int64_t> & along = cuts.cuts[a];
      if (along.size() < 2 || !std::is_sorted(along.begin(), along.end()))
      {
        throw ParameterError("cuts: an axis has not two or more in ascending order");
      }
      m_Image.lower[a] = along.front();
      m_Image.upper[a] = along.back();
      expected *= along.size() - 1;
    }
    if (contractions.size() != expected)
    {
      throw ParameterError("contractions: " + std::to_string(contractions.size()) + " for " + std::to_string(expected) +
                           " blocks");
    }
    for (std::size_t i = 0; i < expected; ++i)
    {
      m_Blocks.emplace_back(operation, GetBox(i), m_Image);
      m_Parts.push_back(Contraction<Key>::FromBytes(contractions[i], m_Blocks.back().CountBorder()));
    }
  }

  std::vector<ChunkState>
  Run()
  {
    m_Raised.assign(m_Parts.size(), false);
    LinkEdges();
    for (std::size_t i = 0; i < m_Parts.size(); ++i)
    {
      std::size_t rank = 0;
      m_Blocks[i].ForEachOfBorder([&](const Coordinates & index) {
        if (m_Parts[i].states[rank] != 0)
        {
          Spread(i, rank, index);
        }
        ++rank;
      });
    }
    while (!m_Queue.empty())
    {
      const Entry entry = m_Queue.top();
      m_Queue.pop();
      // It was raised since, and has been here.
      if (m_Parts[entry.block].states[entry.rank] == entry.key)
      {
        Spread(entry.block, entry.rank, IndexOf(entry.block, entry.rank));
      }
    }
    std::vector<ChunkState> borders;
    for (std::size_t i = 0; i < m_Parts.size(); ++i)
    {
      const std::vector<Key> & states = m_Parts[i].states;
      borders.emplace_back(m_Raised[i] ? states.size() * sizeof(Key) : 0);
      if (m_Raised[i])
      {
        std::memcpy(borders.back().data(), states.data(), borders.back().size());
      }
    }
    return borders;
  }

private:
  struct Entry
  {
    Key           key;
    std::uint32_t block;
    std::uint32_t rank;

    bool
    operator<(const Entry & other) const
    {
      return key < other.key;
    }
  };

  Box
  GetBox(std::size_t block) const
  {
    Box box;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const std::size_t count = m_Cuts.cuts[a].size() - 1;
      box.lower[a] = m_Cuts.cuts[a][block % count];
      box.upper[a] = m_Cuts.cuts[a][block % count + 1];
      block /= count;
    }
    return box;
  }

  std::size_t
  FindBlock(const Coordinates & index) const
  {
    std::size_t block = 0;
    for (int a = MaxDimension; a-- > 0;)
    {
      const std::vector<std::int64_t> & along = m_Cuts.cuts[a];
      const auto                        after = std::upper_bound(along.begin(), along.end(), index[a]);
      block = block * (along.size() - 1) + static_cast<std::size_t>(after - along.begin()) - 1;
    }
    return block;
  }

  /** Lists each block's edges at a voxel: m_Ends[m_Begins[rank]] to m_Ends[m_Begins[rank + 1] - 1]. */
  void
  LinkEdges()
  {
    for (const Contraction<Key> & part : m_Parts)
    {
      std::vector<std::uint32_t> begins(part.edges.empty() ? 0 : part.states.size() + 1, 0);
      std::vector<std::uint32_t> ends(2 * part.edges.size());
      for (const ForestEdge<Key> & edge : part.edges)
      {
        ++begins[edge.first];
        ++begins[edge.second];
      }
      std::uint32_t sum = 0;
      for (std::uint32_t & begin : begins)
      {
        sum += begin;
        begin = sum;
      }
      for (std::uint32_t i = 0; i < part.edges.size(); ++i)
      {
        ends[--begins[part.edges[i].first]] = i;
        ends[--begins[part.edges[i].second]] = i;
      }
      m_Begins.push_back(std::move(begins));
      m_Ends.push_back(std::move(ends));
    }
  }

  /** To all neighbors of a voxel in other blocks, and along the forest. */
  void
  Spread(std::size_t block, std::size_t rank, const Coordinates & index)
  {
    const Key key = m_Parts[block].states[rank];
    if (!m_Begins[block].empty())
    {
      for (std::uint32_t i = m_Begins[block][rank]; i < m_Begins[block][rank + 1]; ++i)
      {
        const ForestEdge<Key> & edge = m_Parts[block].edges[m_Ends[block][i]];
        const std::size_t       other = edge.first == rank ? edge.second : edge.first;
        Raise(block, other, std::min(key, edge.capacity));
      }
    }
    const Block & here = m_Blocks[block];
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
          there && (d[a] == 0 || here.hasNeighbors[a]) && other[a] >= m_Image.lower[a] && other[a] < m_Image.upper[a];
        beyond = beyond || other[a] < here.box.lower[a] || other[a] >= here.box.upper[a];
      }
      if (there && beyond)
      {
        const std::size_t to = FindBlock(other);
        const auto        at = static_cast<std::size_t>(m_Blocks[to].RankOf(other));
        Raise(to, at, std::min(key, m_Parts[to].masks[at]));
      }
    }
  }

  void
  Raise(std::size_t block, std::size_t rank, Key through)
  {
    if (through > m_Parts[block].states[rank])
    {
      m_Parts[block].states[rank] = through;
      m_Raised[block] = true;
      m_Queue.push({ through, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(rank) });
    }
  }

  /** The index of a voxel of a border: the last one whose rank is not larger, plane by plane and row by row. */
  Coordinates
  IndexOf(std::size_t i, std::size_t rank) const
  {
    const Block & block = m_Blocks[i];
    const auto    wanted = static_cast<std::int64_t>(rank);
    Coordinates   index = block.box.lower;
    for (int a = 2; a >= 0; --a)
    {
      // The first voxel of a row or plane may be an inner one; its rank is that of the next one of the border.
      std::int64_t low = block.box.lower[a];
      std::int64_t high = block.box.upper[a];
      while (high - low > 1)
      {
        index[a] = (low + high) / 2;
        (block.RankOf(index) <= wanted ? low : high) = index[a];
      }
      index[a] = low;
    }
    return index;
  }

  const BlockCuts                         m_Cuts;
  const bool                              m_FullyConnected;
  Box                                     m_Image{};
  std::vector<Block>                      m_Blocks;
  std::vector<Contraction<Key>>           m_Parts;
  std::vector<std::vector<std::uint32_t>> m_Begins;
  std::vector<std::vector<std::uint32_t>> m_Ends;
  std::vector<bool>                       m_Raised; ///< of blocks
  std::priority_queue<Entry>              m_Queue;
};

} // namespace

ChunkState
ContractBlock(const ReconstructionOperation & operation, const BufferView & state, const BufferView & mask,
              const Box & image)
{
  if (state.kind != mask.kind || !(state.box == mask.box))
  {
    throw ParameterError("mask: it has not the state's kind and place");
  }
  return DispatchPixelType(state.kind,
                           [&](auto pixel) { return Contract<decltype(pixel)>(operation, state, mask, image); });
}

std::vector<ChunkState>
JoinBlocks(const ReconstructionOperation & operation, PixelType kind, const BlockCuts & cuts,
           const std::vector<ChunkState> & contractions)
{
  return DispatchPixelType(kind,
                           [&](auto pixel) { return Joint<decltype(pixel)>(operation, cuts, contractions).Run(); });
}

void
RaiseBorder(const ReconstructionOperation & operation, const ChunkState & border, const BufferView & state,
            const Box & image)
{
  DispatchPixelType(state.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using KeyOf = ReconstructionKey<Pixel>;
    using Key = typename KeyOf::Type;
    const Block block(operation, state.box, image);
    if (border.size() != static_cast<std::size_t>(block.CountBorder()) * sizeof(Key))
    {
      throw ParameterError("border: it is not that of this block, or of another kind of voxels");
    }
    const unsigned char * at = border.data();
    block.ForEachOfBorder([&](const Coordinates & index) {
      Key key = 0;
      std::memcpy(&key, at, sizeof(key));
      at += sizeof(key);
      VoxelAt<Pixel>(state, index) = KeyOf::To(key, FlipOf<Pixel>(operation));
    });
  });
}

} // namespace chunkwise
