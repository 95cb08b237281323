/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaPixels.cuh"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseCudaVarianceBlock.cuh"
#include "chunkwiseMoments.h"

#include <algorithm>
#include <type_traits>

// VarianceOperation with small radii, pixels of any kind: all three passes at once.
namespace chunkwise
{

namespace
{

constexpr int LargestTileRadius = 2;
constexpr int VarianceTileX = 64;
constexpr int VarianceTileY = 8;

/** Accumulators for windows of at most 5 x 5 x 5 voxels: smaller than those of any window, with the same bits. */
template <typename TPixel>
struct TileTypes
{
  using Types = MomentTypes<TPixel>;
  using First = std::conditional_t<Types::IsExact && sizeof(TPixel) <= 2, std::int32_t, typename Types::First>;
  using Second = std::conditional_t<Types::IsExact && sizeof(TPixel) == 1, std::int32_t, typename Types::Second>;
};

/** A plane in shared memory: pixels of the tile and around it, and what they were passed to along x. */
template <typename TPixel>
struct VarianceTileStage
{
  static constexpr int Rows = VarianceTileY + 2 * LargestTileRadius;
  static constexpr int Width = VarianceTileX + 2 * LargestTileRadius;

  typename TileTypes<TPixel>::Second seconds[Rows][VarianceTileX];
  typename TileTypes<TPixel>::First  firsts[Rows][VarianceTileX];
  TPixel                             pixels[Rows][Width];
};

/** One thread's share of a tile. It passes its column along y, and keeps the planes of its window along z in registers.
 */
template <int VRadiusZ, typename TPixel>
class VarianceTile
{
public:
  using Types = MomentTypes<TPixel>;
  using First = typename TileTypes<TPixel>::First;
  using Second = typename TileTypes<TPixel>::Second;
  using Real = std::conditional_t<Types::IsExact, double, First>;
  using Stage = VarianceTileStage<TPixel>;
  static constexpr int K = 2 * VRadiusZ + 1;

  __device__ __forceinline__
  VarianceTile(const Voxels<const TPixel> & pixels, const Box & output, Stage & stage, int radiusX, int radiusY,
               std::int64_t segment)
    : m_Pixels(pixels)
    , m_Stage(stage)
    , m_Block(output, segment, VarianceTileX, VarianceTileY)
    , m_RadiusX(radiusX)
    , m_RadiusY(radiusY)
    , m_Tx(static_cast<int>(threadIdx.x) % VarianceTileX)
    , m_Ty(static_cast<int>(threadIdx.x) / VarianceTileX)
    , m_IsActive(m_Block.x0 + m_Tx < output.upper.axis[0] && m_Block.y0 + m_Ty < output.upper.axis[1])
    , m_X(pixels.box, 0, m_Block.x0 - radiusX, VarianceTileX + 2 * radiusX)
    , m_Y(pixels.box, 1, m_Block.y0 - radiusY, VarianceTileY + 2 * radiusY)
    , m_TapX0(max(m_Tx, m_X.low))
    , m_TapX1(min(m_Tx + 2 * radiusX + 1, m_X.high))
    , m_TapY0(max(m_Ty, m_Y.low))
    , m_TapY1(min(m_Ty + 2 * radiusY + 1, m_Y.high))
    , m_WholeX(radiusX == VRadiusZ && m_X.low == 0 && m_X.high == VarianceTileX + 2 * radiusX)
    , m_WholeY(radiusY == VRadiusZ && m_Y.low == 0 && m_Y.high == VarianceTileY + 2 * radiusY)
  {
#pragma unroll
    for (int t = 0; t < K; ++t)
    {
      m_RingPixels[t] = TPixel(0);
      m_RingFirsts[t] = First(0);
      m_RingSeconds[t] = Second(0);
    }
  }

  __device__ __forceinline__ const MarchingBlock &
  Block() const
  {
    return m_Block;
  }
  __device__ __forceinline__ bool
  IsActive() const
  {
    return m_IsActive;
  }
  /** The thread's voxel in plane z. */
  __device__ __forceinline__ Coordinates
  At(std::int64_t z) const
  {
    return { { m_Block.x0 + m_Tx, m_Block.y0 + m_Ty, z, m_Block.c, m_Block.w } };
  }

  /** Passes plane z along x and y, if there is one, and makes it the ring's last. All threads of the block. */
  __device__ __forceinline__ void
  Take(std::int64_t z)
  {
#pragma unroll
    for (int t = 0; t + 1 < K; ++t)
    {
      m_RingPixels[t] = m_RingPixels[t + 1];
      m_RingFirsts[t] = m_RingFirsts[t + 1];
      m_RingSeconds[t] = m_RingSeconds[t + 1];
    }
    if (z >= m_Pixels.box.lower.axis[2] && z < m_Pixels.box.upper.axis[2])
    {
      Load(z);
      __syncthreads();
      PassX();
      __syncthreads();
      if (m_IsActive)
      {
        PassY();
      }
      __syncthreads();
    }
  }

  /** Of the window around the ring's middle plane, number z. */
  __device__ __forceinline__ Real
  PassZ(std::int64_t z) const
  {
    const std::int64_t lower = m_Pixels.box.lower.axis[2] - (z - VRadiusZ);
    const std::int64_t upper = m_Pixels.box.upper.axis[2] - (z - VRadiusZ);
    const int          from = static_cast<int>(lower > 0 ? lower : 0);
    const int          until = static_cast<int>(upper < K ? upper : K);
    if constexpr (Types::IsExact)
    {
      First  sum = 0;
      Second squares = 0;
#pragma unroll
      for (int t = 0; t < K; ++t)
      {
        if (t >= from && t < until)
        {
          sum += m_RingFirsts[t];
          squares += m_RingSeconds[t];
        }
      }
      return VarianceOfSums(static_cast<std::int64_t>(sum),
                            static_cast<typename Types::Second>(squares),
                            static_cast<std::int64_t>(until - from) * (m_TapX1 - m_TapX0) * (m_TapY1 - m_TapY0));
    }
    else if constexpr (VRadiusZ == 0)
    {
      return m_RingSeconds[0];
    }
    else
    {
      MergedMoments<First> moments;
      First                inverse = First(1) / First(K);
      const auto           add = [&](int t) {
        moments.Add(Difference<First>(m_RingPixels[t], m_RingPixels[VRadiusZ]) + m_RingFirsts[t], m_RingSeconds[t]);
      };
      if (until - from == K)
      {
#pragma unroll
        for (int t = 0; t < K; ++t)
        {
          add(t);
        }
      }
      else
      {
#pragma unroll
        for (int t = 0; t < K; ++t)
        {
          if (t >= from && t < until)
          {
            add(t);
          }
        }
        inverse = First(1) / static_cast<First>(until - from);
      }
      return moments.Variance(inverse);
    }
  }

private:
  /** Whole rows of threads, so that no thread divides. */
  __device__ __forceinline__ void
  Load(std::int64_t z) const
  {
    const TPixel * const plane = &m_Pixels[Coordinates{
      { m_Block.x0 - m_RadiusX + m_X.low, m_Block.y0 - m_RadiusY + m_Y.low, z, m_Block.c, m_Block.w } }];
    const int            columns = m_X.high - m_X.low;
    for (int y = m_Y.low + m_Ty; y < m_Y.high; y += VarianceTileY)
    {
      const TPixel * const row = plane + (y - m_Y.low) * m_Pixels.stride.axis[1];
      for (int x = m_Tx; x < columns; x += VarianceTileX)
      {
        m_Stage.pixels[y][m_X.low + x] = row[x];
      }
    }
  }

  __device__ __forceinline__ void
  PassX() const
  {
    for (int y = m_Y.low + m_Ty; y < m_Y.high; y += VarianceTileY)
    {
      const TPixel * const row = m_Stage.pixels[y];
      if constexpr (Types::IsExact)
      {
        First  sum = 0;
        Second squares = 0;
        for (int x = m_TapX0; x < m_TapX1; ++x)
        {
          const auto value = static_cast<First>(row[x]);
          sum += value;
          squares += static_cast<Second>(value) * value;
        }
        m_Stage.firsts[y][m_Tx] = sum;
        m_Stage.seconds[y][m_Tx] = squares;
      }
      else
      {
        const TPixel center = row[m_Tx + m_RadiusX];
        const auto   merged = Merge(m_WholeX, m_Tx, m_TapX0, m_TapX1, [&](MergedMoments<First> & moments, int x) {
          moments.Add(Difference<First>(row[x], center), First(0));
        });
        m_Stage.firsts[y][m_Tx] = merged.mean;
        m_Stage.seconds[y][m_Tx] = merged.variance;
      }
    }
  }

  __device__ __forceinline__ void
  PassY()
  {
    const TPixel center = m_Stage.pixels[m_Ty + m_RadiusY][m_Tx + m_RadiusX];
    m_RingPixels[K - 1] = center;
    if constexpr (Types::IsExact)
    {
      First  sum = 0;
      Second squares = 0;
      for (int y = m_TapY0; y < m_TapY1; ++y)
      {
        sum += m_Stage.firsts[y][m_Tx];
        squares += m_Stage.seconds[y][m_Tx];
      }
      m_RingFirsts[K - 1] = sum;
      m_RingSeconds[K - 1] = squares;
    }
    else if (m_RadiusY == 0)
    {
      m_RingFirsts[K - 1] = m_Stage.firsts[m_Ty][m_Tx];
      m_RingSeconds[K - 1] = m_Stage.seconds[m_Ty][m_Tx];
    }
    else
    {
      const auto merged = Merge(m_WholeY, m_Ty, m_TapY0, m_TapY1, [&](MergedMoments<First> & moments, int y) {
        moments.Add(Difference<First>(m_Stage.pixels[y][m_Tx + m_RadiusX], center) + m_Stage.firsts[y][m_Tx],
                    m_Stage.seconds[y][m_Tx]);
      });
      m_RingFirsts[K - 1] = merged.mean;
      m_RingSeconds[K - 1] = merged.variance;
    }
  }

  struct Merged
  {
    First mean;
    First variance;
  };
  /** Of taps [lower, upper), or of the K from `first` on: most blocks see whole windows, of the same radius along every
   * axis, whose loops are known when this is compiled. */
  template <typename TAdd>
  __device__ __forceinline__ static Merged
  Merge(bool isWhole, int first, int lower, int upper, TAdd && add)
  {
    MergedMoments<First> moments;
    First                inverse = First(1) / First(K);
    if (isWhole)
    {
#pragma unroll
      for (int t = 0; t < K; ++t)
      {
        add(moments, first + t);
      }
    }
    else
    {
      for (int t = lower; t < upper; ++t)
      {
        add(moments, t);
      }
      inverse = First(1) / static_cast<First>(upper - lower);
    }
    return { moments.Mean(inverse), moments.Variance(inverse) };
  }

  const Voxels<const TPixel> & m_Pixels;
  Stage &                      m_Stage;
  const MarchingBlock          m_Block;
  const int                    m_RadiusX;
  const int                    m_RadiusY;
  const int                    m_Tx;
  const int                    m_Ty;
  const bool                   m_IsActive;
  /** Of the staged columns and rows, those that there are; then of the thread's taps. */
  const StagedRange m_X;
  const StagedRange m_Y;
  const int         m_TapX0;
  const int         m_TapX1;
  const int         m_TapY0;
  const int         m_TapY1;
  const bool        m_WholeX;
  const bool        m_WholeY;
  /** Of the planes of the window along z. */
  TPixel m_RingPixels[K];
  First  m_RingFirsts[K];
  Second m_RingSeconds[K];
};

template <int VRadiusZ, typename TPixel>
__global__ void
__launch_bounds__(VarianceTileX * VarianceTileY, sizeof(TPixel) <= 4 ? 2 : 1)
  VarianceTileKernel(const __grid_constant__ Voxels<const TPixel> pixels, const __grid_constant__ Voxels<char> out,
                     PixelKind kind, int radiusX, int radiusY, std::int64_t segment, bool takesRoot)
{
  using Tile = VarianceTile<VRadiusZ, TPixel>;
  using Real = typename Tile::Real;
  __shared__ typename Tile::Stage stage;
  Tile                            tile(pixels, out.box, stage, radiusX, radiusY, segment);
  const MarchingBlock             block = tile.Block();
  for (std::int64_t z = block.z0 - VRadiusZ; z < block.zEnd + VRadiusZ; ++z)
  {
    tile.Take(z);
    const std::int64_t center = z - VRadiusZ;
    if (tile.IsActive() && center >= block.z0)
    {
      const Real variance[1] = { FinishVariance<Real>(tile.PassZ(center), takesRoot) };
      StoreResults<TPixel>(out.data, kind, out.Offset(tile.At(center)), 1, 1, variance);
    }
  }
}

} // namespace

template <typename TPixel>
bool
RunVarianceTiles(const Voxels<const TPixel> & pixels, const BufferView & output, const Coordinates & radius,
                 bool takesRoot, cudaStream_t stream)
{
  const Box & box = output.box;
  const bool  fits = radius[0] <= LargestTileRadius && radius[1] <= LargestTileRadius &&
                    radius[2] <= LargestTileRadius && radius[3] == 0 && radius[4] == 0 && pixels.stride[0] == 1;
  const std::int64_t tiles = (box.Extent(0) + VarianceTileX - 1) / VarianceTileX *
                             ((box.Extent(1) + VarianceTileY - 1) / VarianceTileY) * box.Extent(3) * box.Extent(4);
  // Enough blocks for a large device, but no segment so short that its halo is most of it.
  const std::int64_t wanted = std::max<std::int64_t>(1, 2000 / std::max<std::int64_t>(1, tiles));
  const std::int64_t segments =
    std::max<std::int64_t>(1, std::min(wanted, box.Extent(2) / std::max<std::int64_t>(16, 8 * radius[2])));
  const std::int64_t segment = (box.Extent(2) + segments - 1) / segments;
  const auto         blocks = GridOfBlocks(box, segment, VarianceTileX, VarianceTileY);
  if (!fits || !blocks)
  {
    return false;
  }
  const auto launch = [&](auto radiusZ) {
    VarianceTileKernel<decltype(radiusZ)::value, TPixel>
      <<<*blocks, VarianceTileX * VarianceTileY, 0, stream>>>(pixels,
                                                              VoxelsOf<char>(output),
                                                              output.kind,
                                                              static_cast<int>(radius[0]),
                                                              static_cast<int>(radius[1]),
                                                              segment,
                                                              takesRoot);
  };
  switch (radius[2])
  {
    case 0:
      launch(std::integral_constant<int, 0>());
      break;
    case 1:
      launch(std::integral_constant<int, 1>());
      break;
    default:
      launch(std::integral_constant<int, 2>());
  }
  CheckLaunch("VarianceTileKernel");
  return true;
}

template bool
RunVarianceTiles(const Voxels<const std::uint8_t> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const std::int8_t> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const std::uint16_t> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const std::int16_t> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const std::uint32_t> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const std::int32_t> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const std::uint64_t> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const std::int64_t> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const float> &, const BufferView &, const Coordinates &, bool, cudaStream_t);
template bool
RunVarianceTiles(const Voxels<const double> &, const BufferView &, const Coordinates &, bool, cudaStream_t);

} // namespace chunkwise
