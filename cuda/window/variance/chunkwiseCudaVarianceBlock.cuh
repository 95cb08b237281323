/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVarianceBlock_cuh
#define chunkwiseCudaVarianceBlock_cuh

#include "chunkwiseCudaMarchGrid.cuh"
#include "chunkwiseCudaWindow.cuh"

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

  template <typename TTile>
  __device__ __forceinline__
  MarchingBlock(TTile, const Box & box, std::int64_t segment)
  {
    std::uint32_t rest = blockIdx.x;
    const auto    take = [&rest](std::int64_t count) {
      const auto          n = static_cast<std::uint32_t>(count);
      const std::uint32_t quotient = rest / n;
      const std::uint32_t i = rest - quotient * n;
      rest = quotient;
      return static_cast<std::int64_t>(i);
    };
    x0 = box.lower.axis[0] + take((box.Extent(0) + TTile::Width - 1) / TTile::Width) * TTile::Width;
    y0 = box.lower.axis[1] + take((box.Extent(1) + TTile::Height - 1) / TTile::Height) * TTile::Height;
    z0 = box.lower.axis[2] + take((box.Extent(2) + segment - 1) / segment) * segment;
    zEnd = z0 + segment < box.upper.axis[2] ? z0 + segment : box.upper.axis[2];
    c = box.lower.axis[3] + take(box.Extent(3));
    w = box.lower.axis[4] + rest;
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
  static constexpr int Radius = VRadius;
  static constexpr int Width = 64;
  static constexpr int Threads = 256;
  static constexpr int Outputs = 4;
  static constexpr int ThreadRows = Threads / Width;
  static constexpr int Height = ThreadRows * Outputs;
  static constexpr int K = 2 * VRadius + 1;
  static constexpr int StagedRows = Height + 2 * VRadius;
  static constexpr int StagedWidth = Width + 2 * VRadius;
  static constexpr int RowLoads = (StagedRows + ThreadRows - 1) / ThreadRows;
  static_assert(2 * VRadius * StagedRows <= Threads, "one load a thread for the columns beside the tile");
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
  Stage(TStaged (&to)[Tile::StagedRows][Tile::StagedWidth]) const
  {
#pragma unroll
    for (int i = 0; i <= Tile::RowLoads; ++i)
    {
      if ((i < Tile::RowLoads && Tile::StagedRows % Tile::ThreadRows == 0) || Row(i) < Tile::StagedRows)
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
    return i == Tile::RowLoads ? thread / (2 * VRadius) : thread / Tile::Width + i * Tile::ThreadRows;
  }
  __device__ __forceinline__ static int
  Column(int i)
  {
    const int thread = static_cast<int>(threadIdx.x);
    return i == Tile::RowLoads ? Tile::Width + thread % (2 * VRadius) : thread % Tile::Width;
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
    : tx(static_cast<int>(threadIdx.x) % TTile::Width)
    , top(static_cast<int>(threadIdx.x) / TTile::Width * TTile::Outputs)
    , outputs(block.x0 + tx < out.upper.axis[0]
                ? static_cast<int>(
                    min(max(out.upper.axis[1] - (block.y0 + top), std::int64_t{ 0 }), std::int64_t{ TTile::Outputs }))
                : 0)
    , x(min(block.x0 + tx, out.upper.axis[0] - 1))
  {}
};

template <typename TTile>
std::int64_t
CountBlocks(const Box & box, std::int64_t segment)
{
  return MarchTiles<TTile>(box.Extent(0), box.Extent(1), box.Extent(2), segment).Count(box.Extent(3) * box.Extent(4));
}

/** Whether a launch has room for all blocks of an output, however short their segments. */
template <typename TTile>
bool
AreFewBlocks(const Box & box)
{
  return CountBlocks<TTile>(box, 1) <= INT32_MAX;
}

/** The blocks of a kernel of so many bytes of shared memory, and the planes of each: they fill the device in few turns.
 */
struct MarchingGrid
{
  std::int64_t segment;
  unsigned int blocks;

  template <typename TTile, typename TKernel>
  MarchingGrid(TTile, TKernel kernel, std::size_t bytes, const Box & box)
    : segment(MarchSegment(CountBlocks<TTile>(box, box.Extent(2)), box.Extent(2), TTile::Radius,
                           BlocksAtOnce(reinterpret_cast<const void *>(kernel), TTile::Threads, bytes)))
    , blocks(static_cast<unsigned int>(CountBlocks<TTile>(box, segment)))
  {}
};

} // namespace chunkwise

#endif
