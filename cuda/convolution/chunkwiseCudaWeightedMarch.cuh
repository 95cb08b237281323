/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaWeightedMarch_cuh
#define chunkwiseCudaWeightedMarch_cuh

#include "chunkwiseCudaMarch.cuh"
#include "chunkwiseCudaFloat4TileLoader.cuh"

// The three passes of weighted sums in one kernel, as chunkwiseCudaMarch.cuh has them, for windows whose arithmetic is
// what bounds them. A block is alone on its multiprocessor, and its threads have so many outputs that a value read from
// shared memory takes part in many sums. It passes the next plane along x while it passes this one along y and z, so
// that it waits once a plane.
namespace chunkwise
{

/** The tile of a block of so many warps. */
template <int VTaps, int VWarps>
struct WeightedTile
{
  static constexpr int Radius = VTaps / 2;
  static constexpr int Warps = VWarps;
  static constexpr int Threads = 32 * Warps;
  static constexpr int Width = 32;
  static constexpr int Outputs = 64 / Warps; ///< of a thread in a plane, along y
  static constexpr int Groups = Threads / Width;
  static constexpr int Height = Groups * Outputs;
  static constexpr int StagedRows = Height + 2 * Radius;
  static constexpr int StagedWidth = Width + 2 * Radius;
  static constexpr int Padding = (Radius + 3) / 4 * 4; ///< columns that are staged before the first output, whole fours
  static constexpr int Float4TileLoader = (Width + 2 * Padding) / 4;
  static constexpr int MainLoads = (StagedRows + Groups - 1) / Groups;
  static constexpr int HaloLoads = (2 * Radius * StagedRows + Threads - 1) / Threads;
  // Four values are read at a time: eight rows that begin an odd number of fours apart are on different banks.
  static constexpr int StagedStride = (Float4TileLoader | 1) * 4;
  static constexpr int PassedStride = (Width / 4 | 1) * 4;
  static_assert(2 * Radius <= 16, "four warps pass the rows beyond the first along x, four outputs a thread");
};

/** The shared memory of a block: planes that are being passed, and planes that are being written; of the copied planes
 * two are on their way. */
template <typename TTile, int VBuffers>
struct WeightedStage
{
  using Tile = TTile;
  alignas(16) float staged[VBuffers][Tile::StagedRows * Tile::StagedStride];
  alignas(16) float passed[2][Tile::StagedRows * Tile::PassedStride];
  int positions[Tile::StagedWidth + Tile::StagedRows];
  /// The norms of the columns and rows of outputs, where the image's edge cuts windows.
  alignas(16) float norms[Tile::Width + Tile::Height];
};

/** The planes of a tile, one after the other. */
template <typename TIn, int VTaps>
class WeightedPlanes
{
public:
  using Passes = MarchPasses<float, VTaps>;

  __device__ __forceinline__
  WeightedPlanes(const Passes & passes, const TIn * image)
    : m_Passes(passes)
    , m_Image(image)
  {}
  /** From image index `z` on, which may be beyond the edge. */
  __device__ __forceinline__ void
  Begin(std::int64_t z)
  {
    m_Next = static_cast<int>(z - m_Passes.axis[2].inLower);
  }
  /** The address of the next one; nullptr beyond the edge. */
  __device__ __forceinline__ const TIn *
  Next()
  {
    const Pass<float>(&axis)[3] = m_Passes.axis;
    int plane = m_Next++;
    if (plane < 0 || plane >= static_cast<int>(axis[2].inCount))
    {
      plane = PositionOfTap(axis[2], axis[2].inLower + plane);
    }
    const auto size = static_cast<int>(axis[0].inCount * axis[1].inCount) * m_Passes.step;
    return plane < 0 ? nullptr : InRegister(m_Image + static_cast<std::int64_t>(plane) * size);
  }
  /** The value of voxels beyond the edge. */
  __device__ __forceinline__ float
  Beyond() const
  {
    return m_Passes.axis[0].mode == BoundaryMode::Constant ? m_Passes.axis[0].constant : 0.0F;
  }

private:
  const Passes &    m_Passes;
  const TIn * const m_Image;
  int               m_Next{ 0 };
};

/** Stages planes by way of registers. Blocks of eight warps: two of few taps share a multiprocessor. */
template <typename TIn, int VTaps>
class WeightedVoxels
{
public:
  static constexpr int Buffers = 2;
  static constexpr int BlocksAtOnce = VTaps <= 7 ? 2 : 1;
  using Tile = WeightedTile<VTaps, 8>;
  using Stage = WeightedStage<Tile, Buffers>;
  using Passes = MarchPasses<float, VTaps>;

  /** (x, y) is the tile's first output. All threads of a block at once. */
  __device__ __forceinline__
  WeightedVoxels(const Passes & passes, Stage & stage, const TIn * image, int x, int y)
    : m_Planes(passes, image)
    , m_Stage(stage)
    , m_Lane(static_cast<int>(threadIdx.x) % 32)
    , m_Warp(static_cast<int>(threadIdx.x) / 32)
  {
    PutPositions<Tile>(passes.axis, x, y, stage.positions);
    __syncthreads();
    const float beyond = m_Planes.Beyond();
    ForStaged<Tile>(m_Lane, m_Warp, [&](int i, int row, int column) {
      const int  atX = stage.positions[column];
      const int  atY = stage.positions[Tile::StagedWidth + row];
      const bool isThere = atX >= 0 && atY >= 0;
      m_From[i] = static_cast<std::uint32_t>(
        InRegister(isThere ? (atY * static_cast<int>(passes.axis[0].inCount) + atX) * passes.step : 0));
      if (!isThere)
      {
        m_Beyond |= 1U << i;
        Put(0, row, column, beyond);
        Put(1, row, column, beyond);
      }
    });
#pragma unroll
    for (TIn & value : m_Loaded)
    {
      value = TIn(0);
    }
  }
  __device__ __forceinline__ void
  Begin(std::int64_t z)
  {
    m_Planes.Begin(z);
    Load(0);
  }
  /** Reads the thread's values of the next plane. */
  __device__ __forceinline__ void
  Load(int)
  {
    const TIn * const from = m_Planes.Next();
    m_IsThere = from != nullptr;
    if (m_IsThere)
    {
      ForStaged<Tile>(m_Lane, m_Warp, [&](int i, int, int) { m_Loaded[i] = __ldg(from + m_From[i]); });
    }
  }
  /** Stages them. Values beyond the edge in a plane stay unchanged. */
  __device__ __forceinline__ void
  Put(int buffer) const
  {
    if (m_Beyond == 0 && m_IsThere)
    {
      ForStaged<Tile>(
        m_Lane, m_Warp, [&](int i, int row, int column) { Put(buffer, row, column, static_cast<float>(m_Loaded[i])); });
    }
    else if (m_IsThere)
    {
      ForStaged<Tile>(m_Lane, m_Warp, [&](int i, int row, int column) {
        if ((m_Beyond & 1U << i) == 0)
        {
          Put(buffer, row, column, static_cast<float>(m_Loaded[i]));
        }
      });
    }
    else
    {
      const float beyond = m_Planes.Beyond();
      ForStaged<Tile>(m_Lane, m_Warp, [&](int, int row, int column) { Put(buffer, row, column, beyond); });
    }
  }
  /** At the end of a turn. */
  __device__ __forceinline__ static void
  Wait()
  {}

private:
  __device__ __forceinline__ void
  Put(int buffer, int row, int column, float value) const
  {
    m_Stage.staged[buffer][row * Tile::StagedStride + Tile::Padding - Tile::Radius + column] = value;
  }

  WeightedPlanes<TIn, VTaps> m_Planes;
  Stage &                    m_Stage;
  const int                  m_Lane;
  const int                  m_Warp;
  bool                       m_IsThere{ false };
  std::uint32_t              m_From[Tile::MainLoads + Tile::HaloLoads]; ///< in a plane; 0 for what is beyond the edge
  std::uint32_t              m_Beyond{ 0 };                             ///< a bit of each
  TIn                        m_Loaded[Tile::MainLoads + Tile::HaloLoads];
};

/** Lets planes be copied; a turn later they are there. As that takes few registers, blocks have 16 warps. */
template <int VTaps>
class WeightedCopies
{
public:
  static constexpr int Buffers = 4;
  static constexpr int BlocksAtOnce = 1;
  using Tile = WeightedTile<VTaps, 16>;
  using Stage = WeightedStage<Tile, Buffers>;
  using Passes = MarchPasses<float, VTaps>;

  __device__ __forceinline__
  WeightedCopies(const Passes & passes, Stage & stage, const float * image, int x, int y)
    : m_Planes(passes, image)
    , m_Stage(stage)
    , m_Fours(static_cast<int>(passes.axis[0].outLower - passes.axis[0].inLower) + x - Tile::Padding,
              static_cast<int>(passes.axis[1].outLower - passes.axis[1].inLower) + y - Tile::Radius,
              static_cast<int>(passes.axis[0].inCount), static_cast<int>(passes.axis[1].inCount), stage.staged,
              m_Planes.Beyond())
  {}
  __device__ __forceinline__ void
  Begin(std::int64_t z)
  {
    m_Planes.Begin(z);
    Load(0);
    __pipeline_commit();
  }
  __device__ __forceinline__ void
  Load(int buffer)
  {
    if (!m_Fours.IsCopying())
    {
      return;
    }
    const float * const from = m_Planes.Next();
    if (from != nullptr)
    {
      m_Fours.Copy(m_Stage.staged[buffer], from);
    }
    else
    {
      m_Fours.Put(m_Stage.staged[buffer], m_Planes.Beyond());
    }
  }
  __device__ __forceinline__ static void
  Put(int)
  {}
  /** At the end of a turn, for the plane before the one that was loaded in it. */
  __device__ __forceinline__ static void
  Wait()
  {
    __pipeline_commit();
    __pipeline_wait_prior(1);
  }

private:
  WeightedPlanes<float, VTaps> m_Planes;
  Stage &                      m_Stage;
  const Float4TileLoader<Tile> m_Fours;
};

/** One thread's share of a tile. */
template <typename TSource, int VTaps>
class WeightedMarcher
{
public:
  using Tile = typename TSource::Tile;
  using Passes = MarchPasses<float, VTaps>;
  using Stage = typename TSource::Stage;

  /** (x, y) is the tile's first output. All threads of a block at once. */
  __device__ __forceinline__
  WeightedMarcher(const Passes & passes, Stage & stage, int x, int y)
    : m_Passes(passes)
    , m_Stage(stage)
    , m_X(x)
    , m_Y(y)
    , m_Lane(static_cast<int>(threadIdx.x) % 32)
    , m_Warp(static_cast<int>(threadIdx.x) / 32)
  {
    for (int i = static_cast<int>(threadIdx.x); i < Tile::Width + Tile::Height; i += Tile::Threads)
    {
      const int           output = i < Tile::Width ? x + i : y + i - Tile::Width;
      const Pass<float> & pass = Along(i < Tile::Width ? 0 : 1);
      stage.norms[i] = output < pass.outCount ? Normalized(pass, pass.outLower + output, 1.0F) : 1.0F;
    }
    m_IsCutX = Along(0).norms && !AreInside(Along(0), Along(0).outLower + x, Tile::Width);
    m_IsCutY = Along(1).norms && !AreInside(Along(1), Along(1).outLower + y + m_Warp * Tile::Outputs, Tile::Outputs);
  }

  /** Eight lanes are on as many rows. Eight warps have eight outputs a thread of the first rows, four warps four of the
   * others. With 16 warps, the warps that pass eight outputs do so in two parts, one before they pass along y and z and
   * one, `VLate`, afterwards, so that some read shared memory while others multiply. */
  template <bool VLate>
  __device__ __forceinline__ void
  PassX(int source, int buffer) const
  {
    constexpr bool hasParts = Tile::Warps == 16;
    if (hasParts ? m_Warp / 4 == (VLate ? 1 : 0) : !VLate)
    {
      PassRow<8>(source, buffer, m_Warp * 8 + m_Lane % 8, m_Lane / 8 * 8);
    }
    const int row = Tile::Height + m_Warp % 2 * 8 + m_Lane % 8;
    if (!VLate && m_Warp / 4 == (hasParts ? 3 : 0) && row < Tile::StagedRows)
    {
      PassRow<4>(source, buffer, row, m_Warp % 4 / 2 * 16 + m_Lane / 8 * 4);
    }
  }

  /** A thread has the outputs of a column: `results` of the windows along z that end with this plane. */
  __device__ __forceinline__ void
  PassYAndZ(int buffer, float (&results)[Tile::Outputs])
  {
    const float * const from = m_Stage.passed[buffer] + m_Warp * Tile::Outputs * Tile::PassedStride + m_Lane;
    float               sums[Tile::Outputs];
    AccumulateMarch<WeightedSums>(sums, 0.0F, m_Passes.weights[1], [&](int s) { return from[s * Tile::PassedStride]; });
    if (m_IsCutY)
    {
      Normalize(sums, m_Stage.norms + Tile::Width + m_Warp * Tile::Outputs);
    }
    const float(&w)[VTaps] = m_Passes.weights[2];
#pragma unroll
    for (int u = 0; u < Tile::Outputs; ++u)
    {
      results[u] = MultiplyAdd(w[VTaps - 1], sums[u], m_Windows[u][0]);
      // The window that began last is the last; each moves on by one plane.
#pragma unroll
      for (int t = 0; t < VTaps - 2; ++t)
      {
        m_Windows[u][t] = MultiplyAdd(w[VTaps - 2 - t], sums[u], m_Windows[u][t + 1]);
      }
      m_Windows[u][VTaps - 2] = MultiplyAdd(w[0], sums[u], 0.0F);
    }
  }

  /** Column and first row of the thread's outputs. */
  __device__ __forceinline__ int
  X() const
  {
    return m_X + m_Lane;
  }
  __device__ __forceinline__ int
  Y() const
  {
    return m_Y + m_Warp * Tile::Outputs;
  }

private:
  __device__ __forceinline__ const Pass<float> &
                                   Along(int axis) const
  {
    return m_Passes.axis[axis];
  }

  template <int VCount>
  __device__ __forceinline__ void
  PassRow(int source, int buffer, int row, int column) const
  {
    constexpr int        shift = Tile::Padding - Tile::Radius;
    constexpr int        fours = (VCount + 2 * Tile::Radius + shift + 3) / 4;
    const float4 * const from =
      reinterpret_cast<const float4 *>(m_Stage.staged[source] + row * Tile::StagedStride + column);
    float values[4 * fours];
#pragma unroll
    for (int i = 0; i < fours; ++i)
    {
      const float4 four = from[i];
      values[4 * i] = four.x, values[4 * i + 1] = four.y, values[4 * i + 2] = four.z, values[4 * i + 3] = four.w;
    }
    float sums[VCount];
    AccumulateMarch<WeightedSums>(sums, 0.0F, m_Passes.weights[0], [&](int s) { return values[shift + s]; });
    if (m_IsCutX)
    {
      Normalize(sums, m_Stage.norms + column);
    }
    float4 * const to = reinterpret_cast<float4 *>(m_Stage.passed[buffer] + row * Tile::PassedStride + column);
#pragma unroll
    for (int i = 0; i < VCount / 4; ++i)
    {
      to[i] = make_float4(sums[4 * i], sums[4 * i + 1], sums[4 * i + 2], sums[4 * i + 3]);
    }
  }

  /** Multiplies sums by their norms. */
  template <int VCount>
  __device__ __forceinline__ void
  Normalize(float (&sums)[VCount], const float * norms) const
  {
#pragma unroll
    for (int u = 0; u < VCount; u += 4)
    {
      const float4 four = *reinterpret_cast<const float4 *>(norms + u);
      sums[u] *= four.x, sums[u + 1] *= four.y, sums[u + 2] *= four.z, sums[u + 3] *= four.w;
    }
  }

  const Passes & m_Passes;
  Stage &        m_Stage;
  const int      m_X;
  const int      m_Y;
  const int      m_Lane;
  const int      m_Warp;
  bool           m_IsCutX; ///< the image's edge cuts windows along x, which have norms
  bool           m_IsCutY; ///< and windows along y, of the thread's outputs
  float          m_Windows[Tile::Outputs][VTaps - 1];
};

/** `segment` planes of outputs a block. */
template <typename TSource, typename TIn, int VTaps, typename TFinish>
__global__ void
__launch_bounds__(TSource::Tile::Threads, TSource::BlocksAtOnce)
  WeightedMarchKernel(const __grid_constant__ MarchPasses<float, VTaps> passes, const TIn * __restrict__ in,
                      const __grid_constant__ TFinish finish, int segment)
{
  using Tile = typename TSource::Tile;
  constexpr int     buffers = TSource::Buffers;
  extern __shared__ __align__(16) unsigned char memory[];
  auto &                                        stage = *reinterpret_cast<typename TSource::Stage *>(memory);
  const Pass<float> &                           x = passes.axis[0];
  const Pass<float> &                           y = passes.axis[1];
  const Pass<float> &                           z = passes.axis[2];
  const std::int64_t                            plane = x.outCount * y.outCount * passes.step;
  const MarchTiles<Tile>                        tiles(x.outCount, y.outCount, z.outCount, segment);
  for (std::int64_t tile = blockIdx.x; tile < tiles.Count(z.outer); tile += gridDim.x)
  {
    const MarchPlace   place(tiles, tile, passes.step);
    const std::int64_t begin = place.segment * segment;
    const int          planes = static_cast<int>(min(z.outCount - begin, static_cast<std::int64_t>(segment)));
    TSource            source(passes, stage, in + place.Offset(z.inCount * y.inCount * x.inCount), place.x, place.y);
    WeightedMarcher<TSource, VTaps> marcher(passes, stage, place.x, place.y);
    __syncthreads();
    const std::int64_t first = z.outLower + begin - Tile::Radius;
    const int          outputs =
      marcher.X() < x.outCount ? static_cast<int>(min(y.outCount - marcher.Y(), std::int64_t{ Tile::Outputs })) : 0;
    const int    rowStep = static_cast<int>(x.outCount) * passes.step;
    std::int64_t offset = place.Offset(z.outCount * y.outCount * x.outCount) + (begin - 2 * Tile::Radius - 2) * plane +
                          static_cast<std::int64_t>(marcher.Y()) * rowStep +
                          static_cast<std::int64_t>(marcher.X()) * passes.step;
    // Outputs of these planes have whole windows along z.
    const int wholeBegin =
      z.norms ? static_cast<int>(max(z.radius - first, std::int64_t{ 0 })) + Tile::Radius : INT_MIN;
    const int wholeEnd =
      z.norms ? static_cast<int>(min(z.n - z.radius - first + Tile::Radius, std::int64_t{ INT_MAX })) : INT_MAX;
    // In turn p plane p + 2 is staged, p + 1 passed along x, and p along y and z. The first two turns pass no plane;
    // their result is in no window that is stored.
    source.Begin(first);
#pragma unroll 1
    for (int p = -2; p < planes + 2 * Tile::Radius; ++p, offset += plane)
    {
      source.Put(p + 2 & buffers - 1);
      if (p + 3 < planes + 2 * Tile::Radius)
      {
        source.Load(p + 3 & buffers - 1);
      }
      marcher.template PassX<false>(p + 1 & buffers - 1, p + 1 & 1);
      float results[Tile::Outputs];
      marcher.PassYAndZ(p & 1, results);
      if (p >= 2 * Tile::Radius)
      {
        const float norm = p >= wholeBegin && p < wholeEnd ? 1.0F : NormAt(z, first + p - Tile::Radius);
        if (outputs == Tile::Outputs)
        {
#pragma unroll
          for (int u = 0; u < Tile::Outputs; ++u)
          {
            finish.Store(offset + u * rowStep, 0, results[u] * norm);
          }
        }
        else
        {
#pragma unroll
          for (int u = 0; u < Tile::Outputs; ++u)
          {
            if (u < outputs)
            {
              finish.Store(offset + u * rowStep, 0, results[u] * norm);
            }
          }
        }
      }
      marcher.template PassX<true>(p + 1 & buffers - 1, p + 1 & 1);
      source.Wait();
      __syncthreads();
    }
  }
}

template <typename TSource, int VTaps, typename TIn, typename TFinish>
void
LaunchWeightedMarch(const MarchPasses<float, VTaps> & passes, const TIn * in, const TFinish & finish,
                    cudaStream_t stream)
{
  using Tile = typename TSource::Tile;
  const Pass<float>(&axis)[3] = passes.axis;
  const MarchGrid<Tile> grid(
    axis[0].outCount, axis[1].outCount, axis[2].outCount, axis[2].outer, TSource::BlocksAtOnce);
  const auto kernel = WeightedMarchKernel<TSource, TIn, VTaps, TFinish>;
  AllowSharedMemory(kernel, sizeof(typename TSource::Stage));
  kernel<<<grid.blocks, Tile::Threads, sizeof(typename TSource::Stage), stream>>>(
    passes, in, finish, static_cast<int>(grid.segment));
  CheckLaunch("WeightedMarchKernel");
}

/** Runs a plan that is marched. */
template <int... VTaps, typename TIn, typename TFinish, typename TWeight>
void
RunWeightedMarch(const std::vector<Pass<float>> & passes, const TIn * in, const TFinish & finish, cudaStream_t stream,
                 TWeight && weight, int step)
{
  DispatchMarch<VTaps...>(passes, step, weight, [&](const auto & all) {
    constexpr auto taps = static_cast<int>(std::extent<decltype(all.weights), 1>::value);
    LaunchWeightedMarch<WeightedVoxels<TIn, taps>>(all, in, finish, stream);
  });
}

/** The same of float whose rows lie so that planes can be copied. Returns whether they do. */
template <int... VTaps, typename TIn, typename TFinish, typename TWeight>
bool
RunCopiedMarch(const std::vector<Pass<float>> & passes, const TIn * in, const TFinish & finish, cudaStream_t stream,
               TWeight && weight, int step)
{
  if constexpr (std::is_same<TIn, float>::value)
  {
    const Pass<float> & x = passes[0];
    const bool          hasConstants = x.mode == BoundaryMode::Renormalized || x.mode == BoundaryMode::Constant;
    if (hasConstants && step == 1 && AreFours(in, x.outLower - x.inLower, x.inCount))
    {
      DispatchMarch<VTaps...>(passes, step, weight, [&](const auto & all) {
        constexpr auto taps = static_cast<int>(std::extent<decltype(all.weights), 1>::value);
        LaunchWeightedMarch<WeightedCopies<taps>>(all, in, finish, stream);
      });
      return true;
    }
  }
  return false;
}

} // namespace chunkwise

#endif
