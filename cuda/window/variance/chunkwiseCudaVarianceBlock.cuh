/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVarianceBlock_cuh
#define chunkwiseCudaVarianceBlock_cuh

#include "chunkwiseCudaMarchGrid.cuh"
#include "chunkwiseCudaWindow.cuh"

#include <optional>

// The common code of the kernels of small windows, in which a block of threads takes a tile in x and y and moves along
// z.
namespace chunkwise
{

/** The part of the output of a block: a tile that begins at x0, y0, and a segment of the planes. */
struct MarchingBlock
{
  std::int64_t x0;
  std::int64_t y0;
  std::int64_t z0;
  std::int64_t zEnd;
  /** The position along the axes beyond z. */
  std::int64_t c;
  std::int64_t w;

  __device__ __forceinline__
  MarchingBlock(const Box & box, std::int64_t segment, int tileX, int tileY)
  {
    const std::int64_t segments = (box.Extent(2) + segment - 1) / segment;
    std::int64_t       rest = blockIdx.z;
    z0 = box.lower.axis[2] + rest % segments * segment;
    rest /= segments;
    zEnd = z0 + segment < box.upper.axis[2] ? z0 + segment : box.upper.axis[2];
    c = box.lower.axis[3] + rest % box.Extent(3);
    w = box.lower.axis[4] + rest / box.Extent(3);
    x0 = box.lower.axis[0] + static_cast<std::int64_t>(blockIdx.x) * tileX;
    y0 = box.lower.axis[1] + static_cast<std::int64_t>(blockIdx.y) * tileY;
  }
};

/** Those of the `count` rows or columns from `first` on, which a block stages, that there are. */
struct StagedRange
{
  int low;
  int high;

  __device__ __forceinline__
  StagedRange(const Box & box, int axis, std::int64_t first, int count)
    : low(Clip(box.lower.axis[axis] - first, count))
    , high(Clip(box.upper.axis[axis] - first, count))
  {}

private:
  __device__ __forceinline__ static int
  Clip(std::int64_t value, int most)
  {
    return static_cast<int>(min(max(value, std::int64_t{ 0 }), std::int64_t{ most }));
  }
};

/** The tile of a block of which each thread has four outputs, next to each other along y. */
template <int VRadius>
struct ColumnTile
{
  static constexpr int TileX = 64;
  static constexpr int Threads = 256;
  static constexpr int Outputs = 4;
  static constexpr int ThreadRows = Threads / TileX;
  static constexpr int TileY = ThreadRows * Outputs;
  static constexpr int K = 2 * VRadius + 1;
  static constexpr int Rows = TileY + 2 * VRadius;
  static constexpr int Width = TileX + 2 * VRadius;
  static constexpr int RowLoads = (Rows + ThreadRows - 1) / ThreadRows;
  static_assert(2 * VRadius * Rows <= Threads, "one load a thread for the columns beside the tile");
};

/** The pixels of a plane that a thread stages: whole rows of threads, then the columns beside the tile. Pixels that are
 * missing are 0 if `VAreZero`, else any. They are staged less `VMiddle`. */
template <int VRadius, typename TPixel, typename TStaged, bool VAreZero, int VMiddle = 0>
class ColumnLoads
{
  using Tile = ColumnTile<VRadius>;

public:
  __device__ __forceinline__
  ColumnLoads(const Voxels<const TPixel> & pixels, const MarchingBlock & block, const StagedRange & rangeX,
              const StagedRange & rangeY)
  {
#pragma unroll
    for (int i = 0; i <= Tile::RowLoads; ++i)
    {
      const int row = min(max(Row(i), rangeY.low), rangeY.high - 1);
      const int column = min(max(Column(i), rangeX.low), rangeX.high - 1);
      // From a plane's first pixel.
      const std::int64_t y = block.y0 - VRadius - pixels.box.lower.axis[1] + row;
      const std::int64_t x = block.x0 - VRadius - pixels.box.lower.axis[0] + column;
      m_Offsets[i] = static_cast<std::uint32_t>(y * pixels.stride.axis[1] + x);
      m_Flags |= row == Row(i) && column == Column(i) ? 1 << i : 0;
      m_Loaded[i] = TStaged(0);
    }
  }
  __device__ __forceinline__ void
  Load(const TPixel * plane)
  {
#pragma unroll
    for (int i = 0; i <= Tile::RowLoads; ++i)
    {
      if (!VAreZero || (m_Flags & 1 << i) != 0)
      {
        m_Loaded[i] = static_cast<TStaged>(plane[m_Offsets[i]] - VMiddle);
      }
    }
  }
  __device__ __forceinline__ void
  Stage(TStaged (&to)[Tile::Rows][Tile::Width]) const
  {
#pragma unroll
    for (int i = 0; i <= Tile::RowLoads; ++i)
    {
      if ((i < Tile::RowLoads && Tile::Rows % Tile::ThreadRows == 0) || Row(i) < Tile::Rows)
      {
        to[Row(i)][Column(i)] = m_Loaded[i];
      }
    }
  }

private:
  __device__ __forceinline__ static int
  Row(int i)
  {
    const int thread = static_cast<int>(threadIdx.x);
    return i == Tile::RowLoads ? thread / (2 * VRadius) : thread / Tile::TileX + i * Tile::ThreadRows;
  }
  __device__ __forceinline__ static int
  Column(int i)
  {
    const int thread = static_cast<int>(threadIdx.x);
    return i == Tile::RowLoads ? Tile::TileX + thread % (2 * VRadius) : thread % Tile::TileX;
  }

  std::uint32_t m_Offsets[Tile::RowLoads + 1];
  TStaged       m_Loaded[Tile::RowLoads + 1];
  int           m_Flags{ 0 };
};

/** The outputs of a thread of a ColumnTile. */
struct ColumnOfThread
{
  int          tx;
  int          top; ///< its first row in the tile
  int          outputs;
  std::int64_t x; ///< a column of the output, also where the thread has none

  template <typename TTile>
  __device__ __forceinline__
  ColumnOfThread(TTile, const MarchingBlock & block, const Box & out)
    : tx(static_cast<int>(threadIdx.x) % TTile::TileX)
    , top(static_cast<int>(threadIdx.x) / TTile::TileX * TTile::Outputs)
    , outputs(block.x0 + tx < out.upper.axis[0]
                ? static_cast<int>(
                    min(max(out.upper.axis[1] - (block.y0 + top), std::int64_t{ 0 }), std::int64_t{ TTile::Outputs }))
                : 0)
    , x(min(block.x0 + tx, out.upper.axis[0] - 1))
  {}
};

/** The blocks for tiles and segments, unless these are too many for a launch. */
inline std::optional<dim3>
GridOfBlocks(const Box & box, std::int64_t segment, int tileX, int tileY)
{
  const std::int64_t tilesX = (box.Extent(0) + tileX - 1) / tileX;
  const std::int64_t tilesY = (box.Extent(1) + tileY - 1) / tileY;
  const std::int64_t blocksZ = (box.Extent(2) + segment - 1) / segment * box.Extent(3) * box.Extent(4);
  if (tilesX > 1000000 || tilesY > 65535 || blocksZ > 65535)
  {
    return std::nullopt;
  }
  return dim3(static_cast<unsigned int>(tilesX), static_cast<unsigned int>(tilesY), static_cast<unsigned int>(blocksZ));
}

/** The blocks of a kernel of so many threads and bytes of shared memory, and the planes of each: they fill the device
 * in few turns. None where they are too many for a launch. */
struct MarchingGrid
{
  std::int64_t        segment;
  std::optional<dim3> blocks;

  template <typename TKernel>
  MarchingGrid(TKernel kernel, int threads, std::size_t bytes, const Box & box, int tileX, int tileY,
               std::int64_t radius)
  {
    const std::int64_t tiles =
      (box.Extent(0) + tileX - 1) / tileX * ((box.Extent(1) + tileY - 1) / tileY) * box.Extent(3) * box.Extent(4);
    segment =
      MarchSegment(tiles, box.Extent(2), radius, BlocksAtOnce(reinterpret_cast<const void *>(kernel), threads, bytes));
    blocks = GridOfBlocks(box, segment, tileX, tileY);
  }
};

} // namespace chunkwise

#endif
