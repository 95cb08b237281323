/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaWavefront_cuh
#define chunkwiseCudaWavefront_cuh

#include "chunkwiseCudaKernels.h"
#include "chunkwiseError.h"
#include "chunkwiseReconstructionKey.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <cuda_runtime.h>

// Morphological reconstruction by a wavefront of tiles. A block alone writes its tile: it reads the tile with the layer
// around it, sweeps it to a local fixed point in shared memory, stores it, and tells the tiles beyond which value can
// enter them. Each block takes the dirty tile with the largest such value among its tiles. Reads may be stale, as the
// state only grows towards the one fixed point; what must not be lost is a notice: the writer stores the tile, fences,
// and raises the neighbour's entry; the reader clears its entry, fences, and then reads the layer around.
// Either the reader sees the stored voxels, or the entry is raised again after it was cleared.
namespace chunkwise
{

/** Extents of a tile; planes where images have one plane. */
struct TileShape
{
  int x;
  int y;
  int z;
  int threads;
};

__host__ __device__ constexpr TileShape
TileShapeOf(bool planar, std::size_t keyBytes)
{
  return planar ? TileShape{ 64, keyBytes == 8 ? 32 : 64, 1, 128 } : TileShape{ 32, 8, keyBytes <= 2 ? 16 : 8, 128 };
}

/** The images of a wavefront: volumes of up to three axes with neighbours, at positions along the others. */
template <typename TKey>
struct WavefrontImage
{
  const TKey * mask;  ///< of the first own voxel
  TKey *       state; ///< likewise
  std::int64_t maskStride[3];
  std::int64_t stateStride[3];
  std::int64_t extent[3];
  /** Voxels beyond the own ones that mask and state hold, 0 or 1. */
  int          before[3];
  int          after[3];
  std::int64_t positions[MaxDimension];
  std::int64_t maskStep[MaxDimension];
  std::int64_t stateStep[MaxDimension];
  std::int64_t tiles[3];
  std::int64_t numberOfTiles;

  /** Entries of tiles: 0, or the largest key that can enter, cut to 32 bits. Those of a block's tiles lie together, as
   * it looks through all of them for each tile that it chooses. */
  std::uint32_t * entries;
  std::uint32_t   blocks;
  std::uint32_t * open; ///< tiles whose entry is not 0 or that are at work
  /** After how many nanoseconds, and a tile, a block makes all give up; 0: never. Given up: not 0. */
  std::uint64_t   patience;
  std::uint32_t * givenUp;
  std::uint32_t * changedSides;

  /** Tiles go to the blocks in turn. */
  __host__ __device__ std::uint32_t
                      TilesOfBlock(std::uint32_t block) const
  {
    return (static_cast<std::uint32_t>(numberOfTiles) - block + blocks - 1) / blocks;
  }
  __host__ __device__ std::uint32_t *
                      EntriesOfBlock(std::uint32_t block) const
  {
    const auto          tiles = static_cast<std::uint32_t>(numberOfTiles);
    const std::uint32_t more = tiles % blocks;
    return entries + (tiles / blocks * block + (block < more ? block : more));
  }
  __host__ __device__ std::uint32_t *
                      EntryAt(std::int64_t tile) const
  {
    const auto number = static_cast<std::uint32_t>(tile);
    return EntriesOfBlock(number % blocks) + number / blocks;
  }
};

/** The axes of a chunk that have neighbours; positions along the others are separate volumes. */
struct WavefrontShape
{
  std::int64_t extent[3];
  std::int64_t positions[MaxDimension];
  bool         spatial[MaxDimension];
  bool         planar;
  std::int64_t tiles[3];
  std::int64_t numberOfTiles;

  WavefrontShape(const ReconstructionOperation & operation, const Box & own, const Box & image, std::size_t keyBytes)
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      // A row is a volume even where it has no neighbours.
      spatial[a] = a == 0 || a < operation.spatialDimension;
      positions[a] = spatial[a] ? 1 : own.Extent(a);
      if (a < 3)
      {
        extent[a] = spatial[a] ? own.Extent(a) : 1;
      }
    }
    // A chunk of one plane may have neighbours beyond it.
    planar = !spatial[2] || image.Extent(2) == 1;
    const TileShape tile = TileShapeOf(planar, keyBytes);
    const int       tileExtent[3] = { tile.x, tile.y, tile.z };
    numberOfTiles = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      numberOfTiles *= positions[a];
      if (a < 3)
      {
        tiles[a] = (extent[a] + tileExtent[a] - 1) / tileExtent[a];
        numberOfTiles *= tiles[a];
      }
    }
  }
};

inline std::size_t
WavefrontScratchBytes(const ReconstructionOperation & operation, const Box & own, const Box & image,
                      std::size_t keyBytes)
{
  const WavefrontShape shape(operation, own, image, keyBytes);
  return 256 + RoundUp(static_cast<std::size_t>(shape.numberOfTiles) * sizeof(std::uint32_t));
}

template <typename TKey, bool VPlanar>
struct WavefrontTile
{
  static constexpr TileShape Shape = TileShapeOf(VPlanar, sizeof(TKey));
  static constexpr int       FrameZ = VPlanar ? 0 : 1;
  /** Rows that begin in different banks. */
  static constexpr int Pitch = Shape.x + 2 + (sizeof(TKey) >= 4 ? 1 : 0);
  static constexpr int Plane = Pitch * (Shape.y + 2);
  static constexpr int Voxels = Plane * (Shape.z + 2 * FrameZ);

  __device__ static int
  Slot(int x, int y, int z)
  {
    return (z + FrameZ) * Plane + (y + 1) * Pitch + x + 1;
  }
};

/** The place of a tile: its number along each axis with neighbours, and the first own voxels of its volume. */
template <typename TKey>
struct TilePlace
{
  std::int64_t at[3];
  const TKey * mask;
  TKey *       state;

  __device__
  TilePlace(const WavefrontImage<TKey> & image, std::int64_t tile)
    : mask(image.mask)
    , state(image.state)
  {
    for (int a = 0; a < 3; ++a)
    {
      at[a] = tile % image.tiles[a];
      tile /= image.tiles[a];
    }
    for (int a = 0; a < MaxDimension; ++a)
    {
      mask += tile % image.positions[a] * image.maskStep[a];
      state += tile % image.positions[a] * image.stateStep[a];
      tile /= image.positions[a];
    }
  }
};

template <typename TKey>
__device__ inline TKey
LoadFromOthers(const TKey * at)
{
  return *const_cast<const volatile TKey *>(at);
}

__device__ inline std::uint64_t
NowInNanoseconds()
{
  std::uint64_t now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

template <typename TKey>
__device__ inline std::uint32_t
EntryOf(TKey key)
{
  return sizeof(TKey) == 8 ? static_cast<std::uint32_t>(static_cast<std::uint64_t>(key) >> 32) | 1u
                           : static_cast<std::uint32_t>(key);
}

/** Some steps of a sweep: a voxel lets through what comes along the line and what it has itself. Loads go before the
 * steps that wait for each other. */
template <int VSteps, typename TKey>
__device__ inline bool
SweepSteps(TKey * __restrict__ state, const TKey * __restrict__ mask, int at, int step, TKey & carry)
{
  TKey before[VSteps];
  TKey limit[VSteps];
#pragma unroll
  for (int i = 0; i < VSteps; ++i)
  {
    before[i] = state[at + i * step];
    limit[i] = mask[at + i * step];
  }
  bool changed = false;
#pragma unroll
  for (int i = 0; i < VSteps; ++i)
  {
    carry = min(max(before[i], carry), limit[i]);
    if (carry > before[i])
    {
      state[at + i * step] = carry;
      changed = true;
    }
  }
  return changed;
}

/** The sweeps of a line of the tile, forth and back. */
template <int VLength, typename TKey>
__device__ inline bool
SweepLine(TKey * state, const TKey * mask, int first, int step)
{
  constexpr int steps = VLength < 16 ? VLength : 16;
  bool          changed = false;
  TKey          carry = state[first - step];
  for (int i = 0; i < VLength; i += steps)
  {
    changed |= SweepSteps<steps>(state, mask, first + i * step, step, carry);
  }
  carry = state[first + VLength * step];
  for (int i = VLength - 1; i >= 0; i -= steps)
  {
    changed |= SweepSteps<steps>(state, mask, first + i * step, -step, carry);
  }
  return changed;
}

/** The steps of a tile that go across an edge or a corner. They lead to another row, so that rows of one parity, and in
 * volumes planes, only read the others. */
template <typename TKey, bool VPlanar>
__device__ inline bool
RelaxDiagonals(TKey * state, const TKey * mask, int thread)
{
  using Tile = WavefrontTile<TKey, VPlanar>;
  constexpr TileShape shape = Tile::Shape;
  constexpr int       halfZ = VPlanar ? 1 : shape.z / 2;
  bool                changed = false;
  for (int parity = 0; parity < (VPlanar ? 2 : 4); ++parity)
  {
    for (int i = thread; i < shape.x * (shape.y / 2) * halfZ; i += shape.threads)
    {
      const int x = i % shape.x;
      const int y = 2 * (i / shape.x % (shape.y / 2)) + (parity & 1);
      const int z = VPlanar ? 0 : 2 * (i / (shape.x * (shape.y / 2))) + (parity >> 1);
      const int at = Tile::Slot(x, y, z);
      TKey      largest = 0;
#pragma unroll
      for (int dz = -Tile::FrameZ; dz <= Tile::FrameZ; ++dz)
      {
#pragma unroll
        for (int dy = -1; dy <= 1; ++dy)
        {
          const int row = at + dz * Tile::Plane + dy * Tile::Pitch;
          if (dy != 0 && dz != 0)
          {
            largest = max(largest, state[row]);
          }
          if (dy != 0 || dz != 0)
          {
            largest = max(largest, max(state[row - 1], state[row + 1]));
          }
        }
      }
      const TKey before = state[at];
      const TKey through = min(largest, mask[at]);
      if (through > before)
      {
        state[at] = through;
        changed = true;
      }
    }
    __syncthreads();
  }
  return changed;
}

/** The data that the threads of a block share to choose a tile. */
struct TileChoice
{
  unsigned long long chosen;
  bool               ended;
};

/** Chooses the tile to work at: the tile of this block with the largest entry. The lower half of the
 * result is the complement of the tile's number among them; 0: none has an entry now. After the deadline, if it is not
 * 0, all blocks give up. All threads of the block. */
template <int VThreads, typename TKey>
__device__ __forceinline__ unsigned long long
ChooseTile(const WavefrontImage<TKey> & image, TileChoice & shared, std::uint64_t deadline)
{
  const int thread = static_cast<int>(threadIdx.x);
  if (thread == 0)
  {
    shared.chosen = 0;
  }
  __syncthreads();
  unsigned long long          best = 0;
  const std::uint32_t         own = image.TilesOfBlock(blockIdx.x);
  const std::uint32_t * const entries = image.EntriesOfBlock(blockIdx.x);
#pragma unroll 4
  for (std::uint32_t i = static_cast<std::uint32_t>(thread); i < own; i += VThreads)
  {
    const std::uint32_t entry = LoadFromOthers(entries + i);
    const auto          candidate = (static_cast<unsigned long long>(entry) << 32) | ~i;
    if (entry && candidate > best)
    {
      best = candidate;
    }
  }
  if (best)
  {
    atomicMax(&shared.chosen, best);
  }
  __syncthreads();
  const unsigned long long choice = shared.chosen;
  if (thread == 0)
  {
    if (deadline && NowInNanoseconds() > deadline)
    {
      *const_cast<volatile std::uint32_t *>(image.givenUp) = 1;
    }
    shared.ended = LoadFromOthers(image.givenUp) != 0 || (choice == 0 && LoadFromOthers(image.open) == 0);
  }
  __syncthreads();
  return choice;
}

/** The work of a block at one tile. */
template <typename TKey, bool VPlanar, bool VFull>
class WavefrontWork
{
  using Image = WavefrontImage<TKey>;
  using Code = ReconstructionCode<TKey>;
  using Tile = WavefrontTile<TKey, VPlanar>;
  static constexpr TileShape shape = Tile::Shape;
  /** A warp has whole rows, some at a time, so that their loads are on the way together. */
  static constexpr int Warps = shape.threads / 32;
  static constexpr int RowsAtOnce = 4;

public:
  /** `place` is the tile's. Its parts are members, and not itself, as the compiler finds out too late that an array in
   * an object can be in registers. */
  __device__ __forceinline__
  WavefrontWork(const Image & image, const Code & code, std::int64_t tile, const TilePlace<TKey> & place, TKey * state,
                TKey * mask, std::uint32_t * notices)
    : m_Image(image)
    , m_Code(code)
    , m_Number(tile)
    , m_State(state)
    , m_Mask(mask)
    , m_Notices(notices)
    , m_MaskOfPlace(place.mask)
    , m_StateOfPlace(place.state)
    , m_AtX(place.at[0])
    , m_AtY(place.at[1])
    , m_AtZ(place.at[2])
    , m_LowerX(m_AtX * shape.x)
    , m_LowerY(m_AtY * shape.y)
    , m_LowerZ(m_AtZ * shape.z)
    , m_Thread(static_cast<int>(threadIdx.x))
    , m_Warp(m_Thread / 32)
    , m_Lane(m_Thread % 32)
  {}

  /** Reads the tile and the layer around it. The layer's mask tells what can enter the tiles beyond. */
  __device__ __forceinline__ void
  Load() const
  {
    constexpr int pieces = (shape.x + 2 + 31) / 32;
    constexpr int rows = (shape.y + 2) * (shape.z + 2 * Tile::FrameZ);
    bool          inRow[pieces];
#pragma unroll
    for (int p = 0; p < pieces; ++p)
    {
      const std::int64_t gx = m_LowerX + m_Lane + 32 * p - 1;
      inRow[p] = m_Lane + 32 * p < shape.x + 2 && gx >= -m_Image.before[0] && gx < m_Image.extent[0] + m_Image.after[0];
    }
    for (int first = m_Warp; first < rows; first += RowsAtOnce * Warps)
    {
      TKey stateBits[RowsAtOnce][pieces];
      TKey maskBits[RowsAtOnce][pieces];
      bool held[RowsAtOnce];
#pragma unroll
      for (int k = 0; k < RowsAtOnce; ++k)
      {
        const int          row = first + k * Warps;
        const std::int64_t gy = m_LowerY + row % (shape.y + 2) - 1;
        const std::int64_t gz = m_LowerZ + row / (shape.y + 2) - Tile::FrameZ;
        held[k] = row < rows && gy >= -m_Image.before[1] && gy < m_Image.extent[1] + m_Image.after[1] &&
                  gz >= -m_Image.before[2] && gz < m_Image.extent[2] + m_Image.after[2];
        const TKey * const fromState =
          m_StateOfPlace + (m_LowerX + m_Lane - 1 + gy * m_Image.stateStride[1] + gz * m_Image.stateStride[2]);
        const TKey * const fromMask =
          m_MaskOfPlace + (m_LowerX + m_Lane - 1 + gy * m_Image.maskStride[1] + gz * m_Image.maskStride[2]);
#pragma unroll
        for (int p = 0; p < pieces; ++p)
        {
          // From the second-level cache, where other blocks have stored it.
          stateBits[k][p] = held[k] && inRow[p] ? __ldcg(fromState + 32 * p) : TKey{ 0 };
          maskBits[k][p] = held[k] && inRow[p] ? __ldg(fromMask + 32 * p) : TKey{ 0 };
        }
      }
#pragma unroll
      for (int k = 0; k < RowsAtOnce; ++k)
      {
        const int row = first + k * Warps;
#pragma unroll
        for (int p = 0; p < pieces; ++p)
        {
          if (row < rows && m_Lane + 32 * p < shape.x + 2)
          {
            const int slot =
              Tile::Slot(m_Lane + 32 * p - 1, row % (shape.y + 2) - 1, row / (shape.y + 2) - Tile::FrameZ);
            const bool there = held[k] && inRow[p];
            m_State[slot] = there ? m_Code.FromBits(stateBits[k][p]) : TKey{ 0 };
            m_Mask[slot] = there ? m_Code.FromBits(maskBits[k][p]) : TKey{ 0 };
          }
        }
      }
    }
  }

  /** Sweeps along the axes in turn, until none has changed anything since it was last made. Whether any has. */
  __device__ __forceinline__ bool
  Sweep() const
  {
    constexpr int sweeps = (VPlanar ? 2 : 3) + (VFull ? 1 : 0);
    bool          any = false;
    for (int sweep = 0, unchanged = 0; unchanged < sweeps; sweep = sweep + 1 == sweeps ? 0 : sweep + 1)
    {
      bool changed = false;
      if (sweep == 0)
      {
        for (int line = m_Thread; line < shape.y * shape.z; line += shape.threads)
        {
          changed |= SweepLine<shape.x>(m_State, m_Mask, Tile::Slot(0, line % shape.y, line / shape.y), 1);
        }
      }
      else if (sweep == 1)
      {
        for (int line = m_Thread; line < shape.x * shape.z; line += shape.threads)
        {
          changed |= SweepLine<shape.y>(m_State, m_Mask, Tile::Slot(line % shape.x, 0, line / shape.x), Tile::Pitch);
        }
      }
      else if (!VPlanar && sweep == 2)
      {
        for (int line = m_Thread; line < shape.x * shape.y; line += shape.threads)
        {
          changed |= SweepLine<shape.z>(m_State, m_Mask, Tile::Slot(line % shape.x, line / shape.x, 0), Tile::Plane);
        }
      }
      else
      {
        changed = RelaxDiagonals<TKey, VPlanar>(m_State, m_Mask, m_Thread);
      }
      changed = __syncthreads_or(changed);
      any = any || changed;
      // A line that was swept forth and back is done with; diagonals may want more steps.
      unchanged = !changed ? unchanged + 1 : sweep == sweeps - 1 && VFull ? 0 : 1;
    }
    return any;
  }

  /** Stores what has grown, and notes what can now enter the tiles around. */
  __device__ __forceinline__ void
  Store() const
  {
    constexpr int pieces = shape.x / 32;
    constexpr int rows = shape.y * shape.z;
    static_assert(shape.x % 32 == 0 && rows % (RowsAtOnce * Warps) == 0, "whole batches of rows");
    for (int first = m_Warp; first < rows; first += RowsAtOnce * Warps)
    {
      TKey   bits[RowsAtOnce][pieces];
      TKey * to[RowsAtOnce];
      bool   held[RowsAtOnce][pieces];
#pragma unroll
      for (int k = 0; k < RowsAtOnce; ++k)
      {
        const int          row = first + k * Warps;
        const std::int64_t gy = m_LowerY + row % shape.y;
        const std::int64_t gz = m_LowerZ + row / shape.y;
        to[k] = m_StateOfPlace + (m_LowerX + m_Lane + gy * m_Image.stateStride[1] + gz * m_Image.stateStride[2]);
#pragma unroll
        for (int p = 0; p < pieces; ++p)
        {
          held[k][p] = m_LowerX + m_Lane + 32 * p < m_Image.extent[0] + m_Image.after[0] &&
                       gy < m_Image.extent[1] + m_Image.after[1] && gz < m_Image.extent[2] + m_Image.after[2];
          bits[k][p] = held[k][p] ? __ldcg(to[k] + 32 * p) : TKey{ 0 };
        }
      }
#pragma unroll
      for (int k = 0; k < RowsAtOnce; ++k)
      {
        const int row = first + k * Warps;
#pragma unroll
        for (int p = 0; p < pieces; ++p)
        {
          if (held[k][p])
          {
            StoreVoxel(m_Lane + 32 * p, row % shape.y, row / shape.y, to[k] + 32 * p, bits[k][p]);
          }
        }
      }
    }
  }

  /** Raises the entries of the tiles around to what was noted. */
  __device__ __forceinline__ void
  TellNeighbors() const
  {
    if (m_Thread >= 27 || !m_Notices[m_Thread])
    {
      return;
    }
    const int          dx = m_Thread % 3 - 1;
    const int          dy = m_Thread / 3 % 3 - 1;
    const int          dz = m_Thread / 9 - 1;
    const std::int64_t nx = m_AtX + dx;
    const std::int64_t ny = m_AtY + dy;
    const std::int64_t nz = m_AtZ + dz;
    if (nx < 0 || nx >= m_Image.tiles[0] || ny < 0 || ny >= m_Image.tiles[1] || nz < 0 || nz >= m_Image.tiles[2])
    {
      const std::uint32_t sides = (nx < 0 ? 1u : 0u) | (nx >= m_Image.tiles[0] ? 2u : 0u) | (ny < 0 ? 4u : 0u) |
                                  (ny >= m_Image.tiles[1] ? 8u : 0u) | (nz < 0 ? 16u : 0u) |
                                  (nz >= m_Image.tiles[2] ? 32u : 0u);
      atomicOr(m_Image.changedSides, sides);
    }
    else
    {
      const std::int64_t neighbour = m_Number + dx + m_Image.tiles[0] * (dy + m_Image.tiles[1] * dz);
      // Counted before it is seen, so that the count is not 0 while there is work.
      atomicAdd(m_Image.open, 1u);
      if (atomicMax(m_Image.EntryAt(neighbour), m_Notices[m_Thread]) != 0)
      {
        atomicSub(m_Image.open, 1u);
      }
    }
  }

private:
  /** Stores a voxel, of which the image has `bits`. */
  __device__ __forceinline__ void
  StoreVoxel(int x, int y, int z, TKey * to, TKey bits) const
  {
    const std::int64_t gx = m_LowerX + x;
    const std::int64_t gy = m_LowerY + y;
    const std::int64_t gz = m_LowerZ + z;
    const TKey         key = m_State[Tile::Slot(x, y, z)];
    if (m_Code.FromBits(bits) == key)
    {
      return;
    }
    if (gx >= m_Image.extent[0] || gy >= m_Image.extent[1] || gz >= m_Image.extent[2])
    {
      // A voxel of the chunk beyond that lies in this tile is not ours to raise, but that chunk must know.
      atomicOr(m_Image.changedSides,
               (gx >= m_Image.extent[0] ? 2u : 0u) | (gy >= m_Image.extent[1] ? 8u : 0u) |
                 (gz >= m_Image.extent[2] ? 32u : 0u));
      return;
    }
    *const_cast<volatile TKey *>(to) = m_Code.ToBits(key);
    Note(x, y, z, key);
  }

  /** Notes what a voxel that has grown to `key` lets enter the tiles around. */
  __device__ __forceinline__ void
  Note(int x, int y, int z, TKey key) const
  {
    const int lowX = x == 0 ? -1 : 0;
    const int highX = x == shape.x - 1 ? 1 : 0;
    const int lowY = y == 0 ? -1 : 0;
    const int highY = y == shape.y - 1 ? 1 : 0;
    const int lowZ = VPlanar || z != 0 ? 0 : -1;
    const int highZ = !VPlanar && z == shape.z - 1 ? 1 : 0;
    if (!(lowX | highX | lowY | highY | lowZ | highZ))
    {
      return;
    }
    for (int dz = VPlanar ? 0 : -1; dz <= (VPlanar ? 0 : 1); ++dz)
    {
      for (int dy = -1; dy <= 1; ++dy)
      {
        for (int dx = -1; dx <= 1; ++dx)
        {
          const int moved = (dx != 0) + (dy != 0) + (dz != 0);
          if (moved == 0 || (!VFull && moved > 1))
          {
            continue;
          }
          // The sides that the step leaves the tile by.
          const int outX = dx < 0 ? lowX : dx > 0 ? highX : 0;
          const int outY = dy < 0 ? lowY : dy > 0 ? highY : 0;
          const int outZ = dz < 0 ? lowZ : dz > 0 ? highZ : 0;
          if (!(outX | outY | outZ))
          {
            continue;
          }
          const int  other = Tile::Slot(x + dx, y + dy, z + dz);
          const TKey enters = min(key, m_Mask[other]);
          if (enters > m_State[other])
          {
            atomicMax(m_Notices + (outZ + 1) * 9 + (outY + 1) * 3 + outX + 1, EntryOf(enters));
          }
        }
      }
    }
  }

  const Image &         m_Image;
  const Code &          m_Code;
  const std::int64_t    m_Number;
  TKey * const          m_State; ///< of the tile and the layer around it, in shared memory
  TKey * const          m_Mask;  ///< likewise
  std::uint32_t * const m_Notices;
  /** Those of the tile's place. */
  const TKey * const m_MaskOfPlace;
  TKey * const       m_StateOfPlace;
  const std::int64_t m_AtX;
  const std::int64_t m_AtY;
  const std::int64_t m_AtZ;
  const std::int64_t m_LowerX;
  const std::int64_t m_LowerY;
  const std::int64_t m_LowerZ;
  const int          m_Thread;
  const int          m_Warp;
  const int          m_Lane;
};

template <typename TKey, bool VPlanar, bool VFull>
__global__ void
__launch_bounds__(TileShapeOf(VPlanar, sizeof(TKey)).threads)
  WavefrontKernel(WavefrontImage<TKey> image, ReconstructionCode<TKey> code)
{
  using Tile = WavefrontTile<TKey, VPlanar>;
  extern __shared__ __align__(16) unsigned char memory[];
  TKey * const                                  state = reinterpret_cast<TKey *>(memory);
  __shared__ TileChoice                         choiceOfBlock;
  __shared__ std::uint32_t notices[27]; // for the tiles around

  const int           thread = static_cast<int>(threadIdx.x);
  const std::uint64_t began = NowInNanoseconds();
  // Nobody gives up before a tile is done: however often all begin again, they come to an end.
  for (std::uint64_t deadline = 0;; deadline = image.patience ? began + image.patience : 0)
  {
    unsigned long long choice = ChooseTile<Tile::Shape.threads>(image, choiceOfBlock, deadline);
    while (choice == 0 && !choiceOfBlock.ended)
    {
      __nanosleep(200);
      choice = ChooseTile<Tile::Shape.threads>(image, choiceOfBlock, deadline);
    }
    if (choiceOfBlock.ended)
    {
      return;
    }
    const std::uint32_t number = ~static_cast<std::uint32_t>(choice);
    const std::int64_t  tile = blockIdx.x + static_cast<std::int64_t>(number) * gridDim.x;
    if (thread == 0)
    {
      atomicExch(image.EntriesOfBlock(blockIdx.x) + number, 0u);
      __threadfence();
    }
    if (thread < 27)
    {
      notices[thread] = 0;
    }
    __syncthreads();

    const WavefrontWork<TKey, VPlanar, VFull> work(
      image, code, tile, TilePlace<TKey>(image, tile), state, state + Tile::Voxels, notices);
    work.Load();
    __syncthreads();
    if (work.Sweep())
    {
      work.Store();
      __threadfence();
      __syncthreads();
      work.TellNeighbors();
    }
    __threadfence();
    __syncthreads();
    if (thread == 0)
    {
      atomicSub(image.open, 1u);
    }
  }
}

/** Opens the tiles that have a voxel which a neighbour can raise: to the others nobody needs to go. A block for each
 * tile in turn, which looks no further where it has found one. */
template <typename TKey, bool VPlanar, bool VFull>
__global__ void
__launch_bounds__(TileShapeOf(VPlanar, sizeof(TKey)).threads)
  OpenTiles(WavefrontImage<TKey> image, ReconstructionCode<TKey> code)
{
  constexpr TileShape shape = TileShapeOf(VPlanar, sizeof(TKey));
  constexpr int       warps = shape.threads / 32;
  const int           thread = static_cast<int>(threadIdx.x);
  for (std::int64_t tile = blockIdx.x; tile < image.numberOfTiles; tile += gridDim.x)
  {
    const TilePlace<TKey> place(image, tile);
    bool                  isActive = false;
    for (int first = 0; first < shape.y * shape.z && !isActive; first += warps)
    {
      const int          row = first + thread / 32;
      const std::int64_t y = place.at[1] * shape.y + row % shape.y;
      const std::int64_t z = place.at[2] * shape.z + row / shape.y;
      bool               rises = false;
      if (y < image.extent[1] && z < image.extent[2])
      {
        const TKey * const stateRow = place.state + y * image.stateStride[1] + z * image.stateStride[2];
        const TKey * const maskRow = place.mask + y * image.maskStride[1] + z * image.maskStride[2];
        // The first and the last voxel of an axis may have no neighbour held.
        const int firstY = y > 0 || image.before[1] ? -1 : 0;
        const int lastY = y + 1 < image.extent[1] || image.after[1] ? 1 : 0;
        const int firstZ = !VPlanar && (z > 0 || image.before[2]) ? -1 : 0;
        const int lastZ = !VPlanar && (z + 1 < image.extent[2] || image.after[2]) ? 1 : 0;
        for (int column = thread % 32; column < shape.x && !rises; column += 32)
        {
          const std::int64_t x = place.at[0] * shape.x + column;
          if (x >= image.extent[0])
          {
            break;
          }
          const TKey own = code.FromBits(stateRow[x]);
          if (own >= code.FromBits(maskRow[x]))
          {
            continue;
          }
          const int firstX = x > 0 || image.before[0] ? -1 : 0;
          const int lastX = x + 1 < image.extent[0] || image.after[0] ? 1 : 0;
          for (int dz = firstZ; dz <= lastZ; ++dz)
          {
            for (int dy = firstY; dy <= lastY; ++dy)
            {
              const TKey * const other = stateRow + x + dy * image.stateStride[1] + dz * image.stateStride[2];
              // A larger value is let through to some degree if the voxel is below its mask.
              rises |= (VFull || dy == 0 || dz == 0) && code.FromBits(other[0]) > own;
              if (VFull || (dy == 0 && dz == 0))
              {
                rises |= (firstX && code.FromBits(other[-1]) > own) || (lastX && code.FromBits(other[1]) > own);
              }
            }
          }
        }
      }
      isActive = __syncthreads_or(rises);
    }
    if (thread == 0)
    {
      *image.EntryAt(tile) = isActive ? 0xFFFFFFFFu : 0u;
      if (isActive)
      {
        atomicAdd(image.open, 1u);
      }
    }
  }
}

/** As many blocks as can be on the device at once, but no more than `mostBlocks`. */
template <typename... TArguments>
unsigned int
CountBlocksTogether(void (*kernel)(TArguments...), int threads, std::size_t shared, std::int64_t mostBlocks)
{
  CheckCuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
            "cudaFuncSetAttribute");
  return static_cast<unsigned int>(
    std::min(BlocksAtOnce(reinterpret_cast<const void *>(kernel), threads, shared), mostBlocks));
}

/** Launches that many blocks: they wait for each other, which a cooperative launch lets them do. */
template <typename... TArguments>
void
LaunchTogether(void (*kernel)(TArguments...), int threads, std::size_t shared, std::int64_t mostBlocks,
               cudaStream_t stream, TArguments... values)
{
  const unsigned int grid = CountBlocksTogether(kernel, threads, shared, mostBlocks);
  void *             arguments[] = { &values... };
  CheckCuda(cudaLaunchCooperativeKernel(reinterpret_cast<const void *>(kernel),
                                        dim3(grid),
                                        dim3(static_cast<unsigned int>(threads)),
                                        arguments,
                                        shared,
                                        stream),
            "cudaLaunchCooperativeKernel");
}

/** Begins the work, or goes on with what was given up: entries and state are then as the last blocks left them. */
template <typename TKey, bool VPlanar, bool VFull>
void
LaunchWavefront(WavefrontImage<TKey> image, const ReconstructionCode<TKey> & code, bool begins, cudaStream_t stream)
{
  constexpr int  threads = TileShapeOf(VPlanar, sizeof(TKey)).threads;
  constexpr auto shared = 2 * sizeof(TKey) * static_cast<std::size_t>(WavefrontTile<TKey, VPlanar>::Voxels);
  const auto     kernel = WavefrontKernel<TKey, VPlanar, VFull>;
  image.blocks = CountBlocksTogether(kernel, threads, shared, image.numberOfTiles);
  CheckCuda(cudaMemsetAsync(image.givenUp, 0, sizeof(std::uint32_t), stream), "cudaMemsetAsync");
  if (begins)
  {
    CheckCuda(cudaMemsetAsync(image.open, 0, sizeof(std::uint32_t), stream), "cudaMemsetAsync");
    OpenTiles<TKey, VPlanar, VFull><<<static_cast<unsigned int>(std::min<std::int64_t>(image.numberOfTiles, 1 << 16)),
                                      static_cast<unsigned int>(threads),
                                      0,
                                      stream>>>(image, code);
    CheckLaunch("reconstruction");
  }
  LaunchTogether(kernel, threads, shared, image.numberOfTiles, stream, image, code);
}

/** The images of a call; `scratch` has WavefrontScratchBytes. */
template <typename TKey>
WavefrontImage<TKey>
MakeWavefrontImage(const KernelCall & call, const ReconstructionOperation & operation, const WavefrontShape & shape)
{
  const Box &        own = call.writable;
  const BufferView & mask = call.inputs[call.numberOfInputs - 1];
  if (call.output.stride[0] != 1 || mask.stride[0] != 1)
  {
    throw ParameterError("reconstruction: voxels must be contiguous along x");
  }
  if (shape.numberOfTiles >= std::int64_t{ 0x7FFFFFFF })
  {
    throw ParameterError("reconstruction: a chunk has too many tiles");
  }
  WavefrontImage<TKey> image{};
  image.mask = static_cast<const TKey *>(mask.data) + mask.Offset(own.lower);
  image.state = static_cast<TKey *>(call.output.data) + call.output.Offset(own.lower);
  for (int a = 0; a < MaxDimension; ++a)
  {
    image.positions[a] = shape.positions[a];
    image.maskStep[a] = mask.stride[a];
    image.stateStep[a] = call.output.stride[a];
    if (a < 3)
    {
      image.extent[a] = shape.extent[a];
      image.tiles[a] = shape.tiles[a];
      image.maskStride[a] = mask.stride[a];
      image.stateStride[a] = call.output.stride[a];
      const bool neighbours = a < operation.spatialDimension;
      image.before[a] = neighbours && call.output.box.lower[a] < own.lower[a] ? 1 : 0;
      image.after[a] = neighbours && call.output.box.upper[a] > own.upper[a] ? 1 : 0;
    }
  }
  image.numberOfTiles = shape.numberOfTiles;
  image.open = static_cast<std::uint32_t *>(call.scratch);
  image.givenUp = image.open + 16;
  image.entries = image.open + 64;
  image.changedSides = call.changedSides;
  return image;
}

/** Runs until nothing changes any more, or `shouldStop`, which is asked before each launch: a wavefront with patience
 * gives up again and again. Returns the number of launches. */
template <typename TKey, typename TStop>
std::int64_t
RunWavefront(const WavefrontImage<TKey> & image, const WavefrontShape & shape,
             const ReconstructionOperation & operation, const ReconstructionCode<TKey> & code, cudaStream_t stream,
             TStop && shouldStop)
{
  const auto    launch = operation.fullyConnected
                           ? (shape.planar ? LaunchWavefront<TKey, true, true> : LaunchWavefront<TKey, false, true>)
                           : (shape.planar ? LaunchWavefront<TKey, true, false> : LaunchWavefront<TKey, false, false>);
  std::int64_t  launches = 0;
  std::uint32_t givenUp = 1;
  for (; givenUp && !shouldStop(); ++launches)
  {
    launch(image, code, launches == 0, stream);
    // Who runs a step of Fixpoint waits for it anyway.
    CheckCuda(cudaMemcpyAsync(&givenUp, image.givenUp, sizeof(givenUp), cudaMemcpyDeviceToHost, stream),
              "cudaMemcpyAsync");
    CheckCuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }
  return launches;
}

} // namespace chunkwise

#endif
