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
constexpr int LargestTileWindow =
  (2 * LargestTileRadius + 1) * (2 * LargestTileRadius + 1) * (2 * LargestTileRadius + 1);
constexpr int VarianceTileX = 64;
constexpr int VarianceTileY = 8;
struct VarianceTileSize
{
  static constexpr int Width = VarianceTileX;
  static constexpr int Height = VarianceTileY;
};

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
  TPixel                             pixels[Rows * Width];
};

/** One thread's share of a tile. It passes its column along y, and keeps the planes of its window along z in registers.
 * Planes count from the first that the block takes, VRadiusZ before its segment. */
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
               const MarchingBlock & block)
    : m_Stage(stage)
    , m_RadiusX(radiusX)
    , m_RadiusY(radiusY)
    , m_Tx(static_cast<int>(threadIdx.x) % VarianceTileX)
    , m_Ty(static_cast<int>(threadIdx.x) / VarianceTileX)
    , m_X(pixels.box, 0, block.x0 - radiusX, VarianceTileX + 2 * radiusX)
    , m_Y(pixels.box, 1, block.y0 - radiusY, VarianceTileY + 2 * radiusY)
    , m_From(&pixels[Coordinates{ { block.x0 - radiusX + m_X.low + m_Tx,
                                    block.y0 - radiusY + m_Y.low + m_Ty,
                                    block.z0 - VRadiusZ,
                                    block.c,
                                    block.w } }])
    , m_NextRows(VarianceTileY * pixels.stride.axis[1])
    , m_NextPlane(pixels.stride.axis[2])
    , m_To(InRegister((m_Y.low + m_Ty) * Stage::Width + m_X.low + m_Tx))
    , m_Taps(InRegister((TapEnd(m_Tx, radiusX, m_X) - TapBegin(m_Tx, m_X)) *
                        (TapEnd(m_Ty, radiusY, m_Y) - TapBegin(m_Ty, m_Y))))
  {
    const StagedRange planes(
      pixels.box, 2, block.z0 - VRadiusZ, static_cast<int>(block.zEnd - block.z0) + 2 * VRadiusZ);
    m_FirstPlane = InRegister(planes.low);
    m_EndPlane = InRegister(planes.high);
    const bool isActive = block.x0 + m_Tx < output.upper.axis[0] && block.y0 + m_Ty < output.upper.axis[1];
    const bool isWholeX = radiusX == VRadiusZ && m_X.low == 0 && m_X.high == VarianceTileX + 2 * radiusX;
    const bool isWholeY = radiusY == VRadiusZ && m_Y.low == 0 && m_Y.high == VarianceTileY + 2 * radiusY;
    int        flags = (isActive ? Active : 0) | (isWholeX ? WholeX : 0) | (isWholeY ? WholeY : 0);
#pragma unroll
    for (int i = 0; i < LoadRows * LoadColumns; ++i)
    {
      const int x = m_X.low + m_Tx + i % LoadColumns * VarianceTileX;
      const int y = m_Y.low + m_Ty + i / LoadColumns * VarianceTileY;
      flags |= x < m_X.high && y < m_Y.high ? Loads << i : 0;
    }
    m_Flags = InRegister(flags);
#pragma unroll
    for (int t = 0; t < K; ++t)
    {
      m_RingPixels[t] = TPixel(0);
      m_RingFirsts[t] = First(0);
      m_RingSeconds[t] = Second(0);
    }
    if constexpr (Types::IsExact)
    {
      // Places without pixels keep zeros, which change no sum.
#pragma unroll 1
      for (int i = static_cast<int>(threadIdx.x); i < Stage::Rows * Stage::Width; i += VarianceTileX * VarianceTileY)
      {
        stage.pixels[i] = TPixel(0);
      }
      __syncthreads();
    }
    if constexpr (IsAhead)
    {
      Load(0);
    }
  }

  __device__ __forceinline__ bool
  IsActive() const
  {
    return (m_Flags & Active) != 0;
  }

  /** Passes a plane along x and y, if there is one, and makes it the ring's last. All threads of the block, plane by
   * plane. */
  __device__ __forceinline__ void
  Take(int plane)
  {
#pragma unroll
    for (int t = 0; t + 1 < K; ++t)
    {
      m_RingPixels[t] = m_RingPixels[t + 1];
      m_RingFirsts[t] = m_RingFirsts[t + 1];
      m_RingSeconds[t] = m_RingSeconds[t + 1];
    }
    const bool isThere = IsThere(plane);
    if constexpr (!IsAhead)
    {
      Load(plane);
    }
    if (isThere)
    {
      Put();
      __syncthreads();
    }
    if constexpr (IsAhead)
    {
      Load(plane + 1);
    }
    if (isThere)
    {
      PassX();
      __syncthreads();
      // Threads without a voxel have sums too, of which nothing comes.
      if (Types::IsExact || IsActive())
      {
        PassY();
      }
      __syncthreads();
    }
    else if constexpr (Types::IsExact)
    {
      m_RingFirsts[K - 1] = First(0);
      m_RingSeconds[K - 1] = Second(0);
    }
  }

  /** The result of the window that ends with this plane, the last one taken. */
  __device__ __forceinline__ Real
  PassZ(int plane) const
  {
    const int begin = plane - 2 * VRadiusZ;
    const int from = max(m_FirstPlane - begin, 0);
    const int until = min(m_EndPlane - begin, K);
    if constexpr (Types::IsExact)
    {
      First  sum = 0;
      Second squares = 0;
#pragma unroll
      for (int t = 0; t < K; ++t)
      {
        sum += m_RingFirsts[t];
        squares += m_RingSeconds[t];
      }
      const int count = (until - from) * m_Taps;
      __builtin_assume(count >= 0 && count <= LargestTileWindow);
      return VarianceOfSums(
        static_cast<std::int64_t>(sum), static_cast<typename Types::Second>(squares), std::int64_t{ count });
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
  static constexpr int LoadRows = (Stage::Rows + VarianceTileY - 1) / VarianceTileY;
  static constexpr int LoadColumns = (Stage::Width + VarianceTileX - 1) / VarianceTileX;

  /** Whether a plane's pixels are on their way while the one before is passed: sums of small integers leave registers
   * for that. */
  static constexpr bool IsAhead = Types::IsExact && sizeof(TPixel) <= 2;

  enum Flags
  {
    Active = 1, ///< it has a voxel
    WholeX = 2,
    WholeY = 4,
    Loads = 8 ///< and further bits: a pixel of the plane
  };

  __device__ __forceinline__ static int
  TapBegin(int i, const StagedRange & there)
  {
    return max(i, there.low);
  }
  __device__ __forceinline__ static int
  TapEnd(int i, int radius, const StagedRange & there)
  {
    return min(i + 2 * radius + 1, there.high);
  }

  __device__ __forceinline__ bool
  IsThere(int plane) const
  {
    return plane >= m_FirstPlane && plane < m_EndPlane;
  }

  /** Reads the thread's pixels of a plane, if there is one: whole rows of threads, so that no thread divides. Called
   * for all planes, one after the other. */
  __device__ __forceinline__ void
  Load(int plane)
  {
    if (IsThere(plane))
    {
#pragma unroll
      for (int i = 0; i < LoadRows * LoadColumns; ++i)
      {
        if (m_Flags & Loads << i)
        {
          m_Loaded[i] = m_From[i / LoadColumns * m_NextRows + i % LoadColumns * VarianceTileX];
        }
      }
    }
    m_From += m_NextPlane;
  }
  /** Stages them. */
  __device__ __forceinline__ void
  Put() const
  {
#pragma unroll
    for (int i = 0; i < LoadRows * LoadColumns; ++i)
    {
      if (m_Flags & Loads << i)
      {
        const int at = m_To + i / LoadColumns * VarianceTileY * Stage::Width + i % LoadColumns * VarianceTileX;
        m_Stage.pixels[at] = m_Loaded[i];
      }
    }
  }

  /** Calls add(first), and so on for all taps of a window of integers, whose missing taps are zero. */
  template <typename TAdd>
  __device__ __forceinline__ static void
  ForTaps(int radius, int first, TAdd && add)
  {
#pragma unroll
    for (int r = 0; r <= LargestTileRadius; ++r)
    {
      if (r == radius)
      {
#pragma unroll
        for (int t = 0; t <= 2 * r; ++t)
        {
          add(first + t);
        }
      }
    }
  }

  __device__ __forceinline__ void
  PassX() const
  {
    if constexpr (Types::IsExact)
    {
      // Rows that are not there are zero as well.
      for (int y = m_Ty; y < VarianceTileY + 2 * m_RadiusY; y += VarianceTileY)
      {
        const TPixel * const row = m_Stage.pixels + y * Stage::Width;
        First                sum = 0;
        Second               squares = 0;
        ForTaps(m_RadiusX, m_Tx, [&](int x) {
          const auto value = static_cast<First>(row[x]);
          sum += value;
          squares += static_cast<Second>(value) * value;
        });
        m_Stage.firsts[y][m_Tx] = sum;
        m_Stage.seconds[y][m_Tx] = squares;
      }
    }
    else
    {
      for (int y = m_Y.low + m_Ty; y < m_Y.high; y += VarianceTileY)
      {
        const TPixel * const row = m_Stage.pixels + y * Stage::Width;
        const TPixel         center = row[m_Tx + m_RadiusX];
        const auto           merged =
          Merge((m_Flags & WholeX) != 0, m_Tx, m_RadiusX, m_X, [&](MergedMoments<First> & moments, int x) {
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
    const TPixel center = m_Stage.pixels[(m_Ty + m_RadiusY) * Stage::Width + m_Tx + m_RadiusX];
    m_RingPixels[K - 1] = center;
    if constexpr (Types::IsExact)
    {
      First  sum = 0;
      Second squares = 0;
      ForTaps(m_RadiusY, m_Ty, [&](int y) {
        sum += m_Stage.firsts[y][m_Tx];
        squares += m_Stage.seconds[y][m_Tx];
      });
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
      const auto merged =
        Merge((m_Flags & WholeY) != 0, m_Ty, m_RadiusY, m_Y, [&](MergedMoments<First> & moments, int y) {
          moments.Add(Difference<First>(m_Stage.pixels[y * Stage::Width + m_Tx + m_RadiusX], center) +
                        m_Stage.firsts[y][m_Tx],
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
  /** Merges the taps from `first` on that are there, or all K of them: most blocks see whole windows, of the same
   * radius along every axis, whose loops are known when this is compiled. */
  template <typename TAdd>
  __device__ __forceinline__ static Merged
  Merge(bool isWhole, int first, int radius, const StagedRange & there, TAdd && add)
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
      const int lower = TapBegin(first, there);
      const int upper = TapEnd(first, radius, there);
      for (int t = lower; t < upper; ++t)
      {
        add(moments, t);
      }
      inverse = First(1) / static_cast<First>(upper - lower);
    }
    return { moments.Mean(inverse), moments.Variance(inverse) };
  }

  Stage &   m_Stage;
  const int m_RadiusX;
  const int m_RadiusY;
  const int m_Tx;
  const int m_Ty;
  /** Those of the staged columns and rows that there are. */
  const StagedRange m_X;
  const StagedRange m_Y;
  /** The place of its first load of the next plane, the distances from there to more rows and to the plane after, and
   * the destination. */
  const TPixel *     m_From;
  const std::int64_t m_NextRows;
  const std::int64_t m_NextPlane;
  const int          m_To;
  const int          m_Taps; ///< of its window in a plane
  /** The planes that there are. */
  int    m_FirstPlane;
  int    m_EndPlane;
  int    m_Flags;
  TPixel m_Loaded[LoadRows * LoadColumns];
  /** Rings of the planes of the window along z. */
  TPixel m_RingPixels[K];
  First  m_RingFirsts[K];
  Second m_RingSeconds[K];
};

/** In the place of the output's type: a kind that is known at run time. */
struct AnyVarianceOutput
{};

template <int VRadiusZ, typename TPixel, typename TOut>
__global__ void
__launch_bounds__(VarianceTileX * VarianceTileY, sizeof(TPixel) <= 4 ? 2 : 1)
  VarianceTileKernel(const __grid_constant__ Voxels<const TPixel> pixels, const __grid_constant__ Voxels<char> out,
                     PixelType kind, int radiusX, int radiusY, std::int64_t segment, bool takesRoot)
{
  using Tile = VarianceTile<VRadiusZ, TPixel>;
  using Real = typename Tile::Real;
  __shared__ typename Tile::Stage stage;
  const MarchingBlock             block(VarianceTileSize(), out.box, segment);
  Tile                            tile(pixels, out.box, stage, radiusX, radiusY, block);
  // No memory has room for as many planes as an int cannot count.
  const int    planes = InRegister(static_cast<int>(block.zEnd - block.z0) + 2 * VRadiusZ);
  const int    thread = static_cast<int>(threadIdx.x);
  std::int64_t at = out.Offset(Coordinates{
    { block.x0 + thread % VarianceTileX, block.y0 + thread / VarianceTileX, block.z0, block.c, block.w } });
  for (int plane = 0; plane < planes; ++plane)
  {
    tile.Take(plane);
    if (plane < 2 * VRadiusZ)
    {
      continue;
    }
    if (tile.IsActive())
    {
      const Real variance = tile.PassZ(plane);
      if constexpr (std::is_same<TOut, AnyVarianceOutput>::value)
      {
        const Real result[1] = { FinishVariance<Real>(variance, takesRoot) };
        StoreResults<TPixel>(out.data, kind, at, 1, 1, result);
      }
      else
      {
        reinterpret_cast<TOut *>(out.data)[at] = FinishVariance<TOut>(variance, takesRoot);
      }
    }
    at += out.stride.axis[2];
  }
}

template <typename TPixel>
void
RunTiles(const Voxels<const TPixel> & pixels, const BufferView & output, const Coordinates & radius, bool takesRoot,
         cudaStream_t stream)
{
  const Box &        box = output.box;
  const std::int64_t tiles = CountBlocks<VarianceTileSize>(box, box.Extent(2));
  // Enough blocks for a large device, but no segment so short that its halo is most of it.
  const std::int64_t wanted = std::max<std::int64_t>(1, 2000 / std::max<std::int64_t>(1, tiles));
  const std::int64_t segments =
    std::max<std::int64_t>(1, std::min(wanted, box.Extent(2) / std::max<std::int64_t>(16, 8 * radius[2])));
  const std::int64_t segment = (box.Extent(2) + segments - 1) / segments;
  const auto         blocks = static_cast<unsigned int>(CountBlocks<VarianceTileSize>(box, segment));
  const auto         launch = [&](auto radiusZ, auto out) {
    VarianceTileKernel<decltype(radiusZ)::value, TPixel, decltype(out)>
      <<<blocks, VarianceTileX * VarianceTileY, 0, stream>>>(pixels,
                                                             VoxelsOf<char>(output),
                                                             output.kind,
                                                             static_cast<int>(radius[0]),
                                                             static_cast<int>(radius[1]),
                                                             segment,
                                                             takesRoot);
  };
  const auto launchFor = [&](auto out) {
    switch (radius[2])
    {
      case 0:
        return launch(std::integral_constant<int, 0>(), out);
      case 1:
        return launch(std::integral_constant<int, 1>(), out);
      default:
        return launch(std::integral_constant<int, 2>(), out);
    }
  };
  // If sums are quick, a choice of the output at run time takes long beside them.
  constexpr bool isCommon = std::is_same<TPixel, std::uint8_t>::value || std::is_same<TPixel, std::uint16_t>::value ||
                            std::is_same<TPixel, std::int16_t>::value;
  if constexpr (isCommon)
  {
    if (output.kind == PixelTypeOf<TPixel>() || output.kind == PixelType::Float32)
    {
      output.kind == PixelType::Float32 ? launchFor(float{}) : launchFor(TPixel{});
      CheckLaunch("VarianceTileKernel");
      return;
    }
  }
  launchFor(AnyVarianceOutput{});
  CheckLaunch("VarianceTileKernel");
}

} // namespace

bool
SupportsVarianceTiles(const VarianceShape & shape)
{
  const Coordinates & radius = shape.radius;
  return radius[0] <= LargestTileRadius && radius[1] <= LargestTileRadius && radius[2] <= LargestTileRadius &&
         radius[3] == 0 && radius[4] == 0 && AreFewBlocks<VarianceTileSize>(shape.output);
}

void
RunVarianceTiles(PixelType kind, const Voxels<const char> & pixels, const BufferView & output,
                 const Coordinates & radius, bool takesRoot, cudaStream_t stream)
{
  DispatchPixelType(
    kind, [&](auto pixel) { RunTiles(CastVoxels<const decltype(pixel)>(pixels), output, radius, takesRoot, stream); });
}

} // namespace chunkwise
