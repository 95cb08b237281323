/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaWeightedMarch_cuh
#define chunkwiseCudaWeightedMarch_cuh

#include "chunkwiseCudaMarch.cuh"

// The three passes of weighted sums in one kernel, as chunkwiseCudaMarch.cuh has them, for windows whose arithmetic is
// what bounds them. A block is alone on its multiprocessor, and its threads have so many outputs that a value read from
// shared memory takes part in many sums. It passes the next plane along x while it passes this one along y and z, so
// that it waits once a plane.
namespace chunkwise
{

/** The tile of a block. */
template <int VTaps>
struct WeightedTile
{
  static constexpr int Radius = VTaps / 2;
  static constexpr int Threads = 256;
  static constexpr int Width = 32;
  static constexpr int Outputs = 8; ///< of a thread in a plane, along y
  static constexpr int Groups = Threads / Width;
  static constexpr int Height = Groups * Outputs;
  static constexpr int StagedRows = Height + 2 * Radius;
  static constexpr int StagedWidth = Width + 2 * Radius;
  static constexpr int MainLoads = (StagedRows + Groups - 1) / Groups;
  static constexpr int HaloLoads = (2 * Radius * StagedRows + Threads - 1) / Threads;
  // Four values are read at a time: eight rows that begin an odd number of fours apart are on different banks.
  static constexpr int StagedStride = ((StagedWidth + 3) / 4 | 1) * 4;
  static constexpr int PassedStride = (Width / 4 | 1) * 4;
  static_assert(2 * Radius <= 16, "half of the threads pass the rows beyond the first along x, four outputs each");
};

/** What a block holds in shared memory: planes that are being passed, and those that are being written. */
template <int VTaps>
struct WeightedStage
{
  using Tile = WeightedTile<VTaps>;
  alignas(16) float staged[2][Tile::StagedRows * Tile::StagedStride];
  alignas(16) float passed[2][Tile::StagedRows * Tile::PassedStride];
  int   positions[Tile::StagedWidth + Tile::StagedRows];
  float norms[Tile::Width + Tile::Height]; ///< of the columns and rows of outputs, where the image's edge cuts windows
};

/** One thread's share of a tile. */
template <typename TIn, int VTaps>
class WeightedMarcher
{
public:
  using Tile = WeightedTile<VTaps>;
  using Passes = MarchPasses<float, VTaps>;
  using Stage = WeightedStage<VTaps>;

  /** `image` is that of the tile's planes; (x, y) its first output. All threads of a block at once. */
  __device__ __forceinline__
  WeightedMarcher(const Passes & passes, Stage & stage, const TIn * image, int x, int y)
    : m_Passes(passes)
    , m_Stage(stage)
    , m_Image(image)
    , m_X(x)
    , m_Y(y)
    , m_Lane(static_cast<int>(threadIdx.x) % 32)
    , m_Warp(static_cast<int>(threadIdx.x) / 32)
  {
    PutPositions<Tile>(m_Passes.axis, x, y, stage.positions);
    for (int i = static_cast<int>(threadIdx.x); i < Tile::Width + Tile::Height; i += Tile::Threads)
    {
      const int           output = i < Tile::Width ? x + i : y + i - Tile::Width;
      const Pass<float> & pass = Along(i < Tile::Width ? 0 : 1);
      stage.norms[i] = output < pass.outCount ? Normalized(pass, pass.outLower + output, 1.0F) : 1.0F;
    }
    m_IsCut = Along(0).norms && !(AreInside(Along(0), Along(0).outLower + x, Tile::Width) &&
                                  AreInside(Along(1), Along(1).outLower + y, Tile::Height));
    __syncthreads();
    ForStaged<Tile>(m_Lane, m_Warp, [&](int i, int row, int column) {
      const int  atX = stage.positions[column];
      const int  atY = stage.positions[Tile::StagedWidth + row];
      const bool isThere = atX >= 0 && atY >= 0;
      m_From[i] = static_cast<std::uint32_t>(
        InRegister(isThere ? (atY * static_cast<int>(Along(0).inCount) + atX) * m_Passes.step : 0));
      m_Beyond |= isThere ? 0 : 1U << i;
    });
#pragma unroll
    for (TIn & value : m_Loaded)
    {
      value = TIn(0);
    }
  }

  /** Reads the thread's values of the next plane, from image index `z` on, which may be beyond the edge. */
  __device__ __forceinline__ void
  Begin(std::int64_t z)
  {
    m_Next = static_cast<int>(z - Along(2).inLower);
    Load();
  }
  __device__ __forceinline__ void
  Load()
  {
    int plane = m_Next++;
    if (plane < 0 || plane >= static_cast<int>(Along(2).inCount))
    {
      plane = PositionOfTap(Along(2), Along(2).inLower + plane);
    }
    m_IsThere = plane >= 0;
    if (m_IsThere)
    {
      const auto        size = static_cast<int>(Along(0).inCount * Along(1).inCount) * m_Passes.step;
      const TIn * const from = InRegister(m_Image + static_cast<std::int64_t>(plane) * size);
      ForStaged<Tile>(m_Lane, m_Warp, [&](int i, int, int) { m_Loaded[i] = __ldg(from + m_From[i]); });
    }
  }

  /** Stages them. */
  __device__ __forceinline__ void
  Put(int buffer) const
  {
    const auto put = [&](int row, int column, float value) {
      m_Stage.staged[buffer][row * Tile::StagedStride + column] = value;
    };
    if (m_Beyond == 0 && m_IsThere)
    {
      ForStaged<Tile>(
        m_Lane, m_Warp, [&](int i, int row, int column) { put(row, column, static_cast<float>(m_Loaded[i])); });
      return;
    }
    const float beyond = Along(0).mode == BoundaryMode::Constant ? Along(0).constant : 0.0F;
    ForStaged<Tile>(m_Lane, m_Warp, [&](int i, int row, int column) {
      put(row, column, m_IsThere && (m_Beyond >> i & 1) == 0 ? static_cast<float>(m_Loaded[i]) : beyond);
    });
  }

  /** Eight lanes are on as many rows. Threads have eight outputs each of the first rows, and half of them four of the
   * others. */
  __device__ __forceinline__ void
  PassX(int buffer) const
  {
    PassRow<8>(buffer, m_Warp * 8 + m_Lane % 8, m_Lane / 8 * 8);
    const int row = Tile::Height + m_Warp % 2 * 8 + m_Lane % 8;
    if (m_Warp < 4 && row < Tile::StagedRows)
    {
      PassRow<4>(buffer, row, m_Warp / 2 * 16 + m_Lane / 8 * 4);
    }
  }

  /** A thread has the outputs of a column: `results` of the windows along z that end with this plane. */
  __device__ __forceinline__ void
  PassYAndZ(int buffer, float (&results)[Tile::Outputs])
  {
    const float * const from = m_Stage.passed[buffer] + m_Warp * Tile::Outputs * Tile::PassedStride + m_Lane;
    float               sums[Tile::Outputs];
    AccumulateMarch<WeightedSums>(sums, 0.0F, m_Passes.weights[1], [&](int s) { return from[s * Tile::PassedStride]; });
    Normalize(sums, m_Stage.norms + Tile::Width + m_Warp * Tile::Outputs);
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
  PassRow(int buffer, int row, int column) const
  {
    constexpr int        fours = (VCount + 2 * Tile::Radius + 3) / 4;
    const float4 * const from =
      reinterpret_cast<const float4 *>(m_Stage.staged[buffer] + row * Tile::StagedStride + column);
    float values[4 * fours];
#pragma unroll
    for (int i = 0; i < fours; ++i)
    {
      const float4 four = from[i];
      values[4 * i] = four.x, values[4 * i + 1] = four.y, values[4 * i + 2] = four.z, values[4 * i + 3] = four.w;
    }
    float sums[VCount];
    AccumulateMarch<WeightedSums>(sums, 0.0F, m_Passes.weights[0], [&](int s) { return values[s]; });
    Normalize(sums, m_Stage.norms + column);
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
    if (m_IsCut)
    {
#pragma unroll
      for (int u = 0; u < VCount; ++u)
      {
        sums[u] *= norms[u];
      }
    }
  }

  const Passes &    m_Passes;
  Stage &           m_Stage;
  const TIn * const m_Image;
  const int         m_X;
  const int         m_Y;
  const int         m_Lane;
  const int         m_Warp;
  bool              m_IsCut;     ///< the image's edge cuts windows along x or y, which have norms
  int               m_Next{ 0 }; ///< the plane that is read next
  bool              m_IsThere{ false };
  std::uint32_t     m_From[Tile::MainLoads + Tile::HaloLoads]; ///< in a plane; 0 for what is beyond the edge
  std::uint32_t     m_Beyond{ 0 };                             ///< a bit of each
  TIn               m_Loaded[Tile::MainLoads + Tile::HaloLoads];
  float             m_Windows[Tile::Outputs][VTaps - 1];
};

/** Blocks that share a multiprocessor. */
template <int VTaps>
constexpr int WeightedMarchBlocks = VTaps <= 7 ? 2 : 1;

/** `segment` planes of outputs a block. */
template <typename TIn, int VTaps, typename TFinish>
__global__ void
__launch_bounds__(WeightedTile<VTaps>::Threads, WeightedMarchBlocks<VTaps>)
  WeightedMarchKernel(const __grid_constant__ MarchPasses<float, VTaps> passes, const TIn * __restrict__ in,
                      const __grid_constant__ TFinish finish, int segment)
{
  using Tile = WeightedTile<VTaps>;
  extern __shared__ __align__(16) unsigned char memory[];
  auto &                                        stage = *reinterpret_cast<WeightedStage<VTaps> *>(memory);
  const Pass<float> &                           x = passes.axis[0];
  const Pass<float> &                           y = passes.axis[1];
  const Pass<float> &                           z = passes.axis[2];
  const std::int64_t                            plane = x.outCount * y.outCount * passes.step;
  const MarchTiles<Tile>                        tiles(x.outCount, y.outCount, z.outCount, segment);
  for (std::int64_t tile = blockIdx.x; tile < tiles.Count(z.outer); tile += gridDim.x)
  {
    const MarchPlace            place(tiles, tile, passes.step);
    const std::int64_t          begin = place.segment * segment;
    const int                   planes = static_cast<int>(min(z.outCount - begin, static_cast<std::int64_t>(segment)));
    WeightedMarcher<TIn, VTaps> marcher(
      passes, stage, in + place.Offset(z.inCount * y.inCount * x.inCount), place.x, place.y);
    const std::int64_t first = z.outLower + begin - Tile::Radius;
    const int          outputs =
      marcher.X() < x.outCount ? static_cast<int>(min(y.outCount - marcher.Y(), std::int64_t{ Tile::Outputs })) : 0;
    const int    rowStep = static_cast<int>(x.outCount) * passes.step;
    std::int64_t offset = place.Offset(z.outCount * y.outCount * x.outCount) + (begin - 2 * Tile::Radius - 2) * plane +
                          static_cast<std::int64_t>(marcher.Y()) * rowStep +
                          static_cast<std::int64_t>(marcher.X()) * passes.step;
    // In turn p plane p + 2 is staged, p + 1 passed along x, and p along y and z. What the first two turns pass is of
    // no plane; it is in no window that is stored.
    marcher.Begin(first);
#pragma unroll 1
    for (int p = -2; p < planes + 2 * Tile::Radius; ++p, offset += plane)
    {
      marcher.Put(p & 1);
      if (p + 3 < planes + 2 * Tile::Radius)
      {
        marcher.Load();
      }
      marcher.PassX(p + 1 & 1);
      float results[Tile::Outputs];
      marcher.PassYAndZ(p & 1, results);
      if (p >= 2 * Tile::Radius)
      {
        const float norm = Normalized(z, first + p - Tile::Radius, 1.0F);
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
      __syncthreads();
    }
  }
}

template <int VTaps, typename TIn, typename TFinish>
void
LaunchWeightedMarch(const MarchPasses<float, VTaps> & passes, const TIn * in, const TFinish & finish,
                    cudaStream_t stream)
{
  using Tile = WeightedTile<VTaps>;
  const Pass<float>(&axis)[3] = passes.axis;
  const MarchGrid<Tile> grid(
    axis[0].outCount, axis[1].outCount, axis[2].outCount, axis[2].outer, WeightedMarchBlocks<VTaps>);
  const auto kernel = WeightedMarchKernel<TIn, VTaps, TFinish>;
  AllowSharedMemory(kernel, sizeof(WeightedStage<VTaps>));
  kernel<<<grid.blocks, Tile::Threads, sizeof(WeightedStage<VTaps>), stream>>>(
    passes, in, finish, static_cast<int>(grid.segment));
  CheckLaunch("WeightedMarchKernel");
}

/** Runs a plan that is marched. */
template <int... VTaps, typename TIn, typename TFinish, typename TWeight>
void
RunWeightedMarch(const std::vector<Pass<float>> & passes, const TIn * in, const TFinish & finish, cudaStream_t stream,
                 TWeight && weight, int step)
{
  DispatchMarch<VTaps...>(
    passes, step, weight, [&](const auto & all) { LaunchWeightedMarch(all, in, finish, stream); });
}

} // namespace chunkwise

#endif
