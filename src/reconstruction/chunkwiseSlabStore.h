/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSlabStore_h
#define chunkwiseSlabStore_h

#include "chunkwiseExecutor.h"
#include "chunkwiseSlabForest.h"
#include "chunkwiseSlabPacking.h"
#include "chunkwiseSpool.h"

#include <numeric>

// The records of slabs in a spool, which the first pass writes and the second reads.
namespace chunkwise
{

/** Voxels that one thread packs at a time. */
constexpr std::int64_t SlabBlockVoxels = 1 << 17;

/** The places in the spool of a slab's packed state, and of the forest of its last plane. */
struct SlabRecord
{
  std::uint64_t              states{ 0 };
  std::vector<std::uint32_t> blocks; ///< bytes of each
  std::uint64_t              forest{ 0 };
  std::uint32_t              edges{ 0 };

  std::uint64_t
  GetBytes() const
  {
    return sizeof(*this) + blocks.capacity() * sizeof(std::uint32_t);
  }
  /** The first positions of all blocks, and the end of the last one. */
  std::vector<std::uint64_t>
  GetOffsets() const
  {
    std::vector<std::uint64_t> offsets(blocks.size() + 1, states);
    for (std::size_t i = 0; i < blocks.size(); ++i)
    {
      offsets[i + 1] = offsets[i] + blocks[i];
    }
    return offsets;
  }
};

/** At most, of all slabs together. */
inline std::uint64_t
GetRecordBytes(std::int64_t voxels, std::int64_t slabs)
{
  return static_cast<std::uint64_t>(voxels / SlabBlockVoxels * 8 + slabs * 128 + 4096);
}

/** `scratch` has room for the state, and for the edges. */
template <typename TKey>
void
PutSlab(Spool & spool, SlabRecord & record, const SlabVoxels<TKey> & voxels, std::int64_t all,
        const PlaneForest<TKey> & forest, char * scratch, Executor & executor)
{
  const std::int64_t blocks = (all + SlabBlockVoxels - 1) / SlabBlockVoxels;
  record.blocks.assign(static_cast<std::size_t>(blocks), 0);
  executor.ParallelFor(blocks, [&](std::int64_t block, unsigned int) {
    const std::int64_t at = block * SlabBlockVoxels;
    record.blocks[static_cast<std::size_t>(block)] =
      static_cast<std::uint32_t>(PackState(voxels.mask + at,
                                           voxels.state + at,
                                           std::min(SlabBlockVoxels, all - at),
                                           reinterpret_cast<unsigned char *>(scratch) + at * sizeof(TKey)));
  });
  record.states = spool.Reserve(std::accumulate(record.blocks.begin(), record.blocks.end(), std::size_t{ 0 }));
  const std::vector<std::uint64_t> offsets = record.GetOffsets();
  executor.ParallelFor(blocks, [&](std::int64_t block, unsigned int) {
    const auto i = static_cast<std::size_t>(block);
    spool.WriteAt(
      offsets[i], scratch + static_cast<std::size_t>(block * SlabBlockVoxels) * sizeof(TKey), record.blocks[i]);
  });
  // Nodes that have a parent, their parents, the capacities.
  auto * const  nodes = reinterpret_cast<std::uint32_t *>(scratch);
  std::uint32_t edges = 0;
  for (std::int64_t i = 0; i < forest.size; ++i)
  {
    if (forest.parent[i] != PlaneForest<TKey>::None)
    {
      nodes[edges++] = static_cast<std::uint32_t>(i);
    }
  }
  auto * const parents = nodes + edges;
  auto * const capacities = reinterpret_cast<char *>(parents + edges);
  for (std::uint32_t i = 0; i < edges; ++i)
  {
    parents[i] = forest.parent[nodes[i]];
    std::memcpy(capacities + i * sizeof(TKey), &forest.capacity[nodes[i]], sizeof(TKey));
  }
  record.forest = spool.GetSize();
  record.edges = edges;
  spool.Append(scratch, static_cast<std::size_t>(edges) * (2 * sizeof(std::uint32_t) + sizeof(TKey)));
}

/** The inverse, where the mask is there. */
template <typename TKey>
void
GetSlab(Spool & spool, const SlabRecord & record, const SlabVoxels<TKey> & voxels, std::int64_t all,
        PlaneForest<TKey> & forest, char * scratch, Executor & executor)
{
  const std::vector<std::uint64_t> offsets = record.GetOffsets();
  executor.ParallelFor(static_cast<std::int64_t>(record.blocks.size()), [&](std::int64_t block, unsigned int) {
    const auto         i = static_cast<std::size_t>(block);
    const std::int64_t at = block * SlabBlockVoxels;
    char * const       packed = scratch + static_cast<std::size_t>(at) * sizeof(TKey);
    spool.Read(offsets[i], packed, record.blocks[i]);
    UnpackState(voxels.mask + at,
                reinterpret_cast<const unsigned char *>(packed),
                record.blocks[i],
                std::min(SlabBlockVoxels, all - at),
                voxels.state + at);
  });
  spool.Read(
    record.forest, scratch, static_cast<std::size_t>(record.edges) * (2 * sizeof(std::uint32_t) + sizeof(TKey)));
  const auto * const nodes = reinterpret_cast<const std::uint32_t *>(scratch);
  const auto * const parents = nodes + record.edges;
  const auto * const capacities = reinterpret_cast<const char *>(parents + record.edges);
  forest.Clear();
  for (std::uint32_t i = 0; i < record.edges; ++i)
  {
    forest.parent[nodes[i]] = parents[i];
    std::memcpy(&forest.capacity[nodes[i]], capacities + i * sizeof(TKey), sizeof(TKey));
  }
}

} // namespace chunkwise

#endif
