/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMarch_cuh
#define chunkwiseCudaMarch_cuh

#include "chunkwiseCudaMarchGrid.cuh"
#include "chunkwiseCudaPasses.cuh"

#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

// All three passes of a short window in one kernel: a block marches along z with a tile of columns. Each plane of the
// tile is staged in shared memory, passed along x and y, and joined to the windows along z that it is in, which live in
// registers. The image is read once and written once. Taps reach each window in the order of the passes one by one, so
// the bits are theirs.
namespace chunkwise
{

/** The tile of a block: Width x Height columns of outputs, and what their windows need around them. */
template <int VTaps, int VThreads = 256>
struct MarchTile
{
  static constexpr int Radius = VTaps / 2;
  static constexpr int Threads = VThreads;
  static constexpr int Width = 64;
  static constexpr int InRow = Width / (Threads / 32); ///< outputs of a lane along x
  static constexpr int Groups = Threads / Width;
  static constexpr int Outputs = (32 - 2 * Radius) / Groups; ///< of a thread in a plane, along y
  static constexpr int Height = Outputs * Groups;
  static constexpr int StagedRows = Height + 2 * Radius; ///< at most the lanes of a warp
  static constexpr int StagedWidth = Width + 2 * Radius;
  static constexpr int MainLoads = (StagedRows + Groups - 1) / Groups;
  static constexpr int HaloLoads = (2 * Radius * StagedRows + Threads - 1) / Threads;
  // Odd distances of rows: lanes that are on different rows are on different banks.
  static constexpr int StagedStride = StagedWidth + 1;
  static constexpr int PassedStride = Width + 1;
};

/** Accumulators of several real numbers fill the registers of a thread with few outputs. */
template <typename TAcc, int VTaps>
using MarchTileOf = MarchTile<VTaps, (sizeof(TAcc) > 16 ? 512 : 256)>;

/** The passes along x, y and z, and the weights where the rule has some. */
template <typename TAcc, int VTaps>
struct MarchPasses
{
  Pass<TAcc> axis[3];
  TAcc       weights[3][VTaps];
  /** Numbers from a voxel to the next, of pixels whose components lie side by side: as many as components. These are
   * the last volumes, and tiles of theirs at one place follow each other, so that they find their pixels in the cache.
   */
  int step;
};

/** An image, and beside it a byte for each voxel, which is 0 where the voxel is outside. */
template <typename TIn>
struct MaskedImage
{
  const TIn *          voxels;
  const std::uint8_t * inside;

  __device__ __forceinline__ MaskedImage
  operator+(std::int64_t offset) const
  {
    return { voxels + offset, inside + offset };
  }
};
template <typename TIn>
struct MaskedVoxel
{
  TIn          voxel;
  std::uint8_t inside;
};

/** The value that a march reads at a position of an image, or of an image and its mask. */
template <typename TIn>
__device__ __forceinline__ TIn
LoadAt(const TIn * image, int at)
{
  return __ldg(image + at);
}
template <typename TIn>
__device__ __forceinline__ MaskedVoxel<TIn>
                           LoadAt(const MaskedImage<TIn> & image, int at)
{
  return { __ldg(image.voxels + at), __ldg(image.inside + at) };
}
template <typename TIn>
__device__ __forceinline__ MaskedImage<TIn>
                           InRegister(const MaskedImage<TIn> & image)
{
  return { InRegister(image.voxels), InRegister(image.inside) };
}

/** The position in the buffer of the tap at image index `i`; -1: beyond the edge, or for outputs that are not
 * stored. */
template <typename TAcc>
__device__ __forceinline__ int
PositionOfTap(const Pass<TAcc> & pass, std::int64_t i)
{
  const std::int64_t at = MapTap(i, pass.inLower, pass.inLower + pass.inCount, pass.n, pass.mode) - pass.inLower;
  return at >= 0 && at < pass.inCount ? static_cast<int>(at) : -1;
}

/** Those of the staged columns of the tile whose first output is (x, y), then those of its rows. All threads of a block
 * at once. */
template <typename TTile, typename TAcc>
__device__ __forceinline__ void
PutPositions(const Pass<TAcc> (&axes)[3], int x, int y, int * positions)
{
  for (int i = static_cast<int>(threadIdx.x); i < TTile::StagedWidth + TTile::StagedRows; i += TTile::Threads)
  {
    const int axis = i < TTile::StagedWidth ? 0 : 1;
    const int tap = (axis == 0 ? x + i : y + i - TTile::StagedWidth) - TTile::Radius;
    positions[i] = PositionOfTap(axes[axis], axes[axis].outLower + tap);
  }
}

/** Calls use(i, row, column) for what thread (tx, ty) stages: whole rows of threads, then what is to the right of them.
 */
template <typename TTile, typename TUse>
__device__ __forceinline__ void
ForStaged(int tx, int ty, TUse && use)
{
  constexpr int halo = 2 * TTile::Radius;
#pragma unroll
  for (int i = 0; i < TTile::MainLoads; ++i)
  {
    const int row = ty + i * TTile::Groups;
    if ((i + 1) * TTile::Groups <= TTile::StagedRows || row < TTile::StagedRows)
    {
      use(i, row, tx);
    }
  }
#pragma unroll
  for (int i = 0; i < TTile::HaloLoads; ++i)
  {
    const int at = static_cast<int>(threadIdx.x) + i * TTile::Threads;
    if ((i + 1) * TTile::Threads <= halo * TTile::StagedRows || at < halo * TTile::StagedRows)
    {
      use(TTile::MainLoads + i, at / halo, TTile::Width + at % halo);
    }
  }
}

/** Consecutive windows, the first of which begins with fetch(0). */
template <typename TRule, int VCount, int VTaps, typename TAcc, typename TFetch>
__device__ __forceinline__ void
AccumulateMarch(TAcc (&sums)[VCount], TAcc absent, const TAcc (&w)[VTaps], TFetch && fetch)
{
#pragma unroll
  for (int u = 0; u < VCount; ++u)
  {
    sums[u] = absent;
  }
#pragma unroll
  for (int s = 0; s < VTaps + VCount - 1; ++s)
  {
    const TAcc value = fetch(s);
#pragma unroll
    for (int u = 0; u < VCount; ++u)
    {
      if (s >= u && s - u < VTaps)
      {
        sums[u] = TRule::Add(sums[u], w[s - u], value);
      }
    }
  }
}

/** The shared memory of a block. */
template <typename TAcc, int VTaps>
struct MarchStage
{
  using Tile = MarchTileOf<TAcc, VTaps>;
  TAcc staged[Tile::StagedRows * Tile::StagedStride];
  TAcc passed[Tile::StagedRows * Tile::PassedStride];

  /** Bytes that a launch has to ask for: what all blocks have is 48 KB. */
  static constexpr std::size_t
  AskedBytes()
  {
    return sizeof(MarchStage) > 48 * 1024 ? sizeof(MarchStage) : 0;
  }
};

/** The stage of the block. */
template <typename TStage>
__device__ __forceinline__ TStage &
StageOfBlock()
{
  if constexpr (TStage::AskedBytes() > 0)
  {
    extern __shared__ __align__(16) unsigned char asked[];
    return *reinterpret_cast<TStage *>(asked);
  }
  else
  {
    __shared__ TStage stage;
    return stage;
  }
}

/** One thread's share of a tile. TImage: a pointer to voxels, or MaskedImage. */
template <typename TRule, typename TImage, typename TAcc, int VTaps>
class Marcher
{
public:
  using Tile = MarchTileOf<TAcc, VTaps>;
  using Passes = MarchPasses<TAcc, VTaps>;
  using Stage = MarchStage<TAcc, VTaps>;
  using Voxel = decltype(LoadAt(std::declval<TImage>(), 0));

  /** `image` is that of the tile's planes; (x, y) its first output. All threads of a block at once. */
  __device__ __forceinline__
  Marcher(const Passes & passes, Stage & stage, const TImage & image, int x, int y)
    : m_Passes(passes)
    , m_Stage(stage)
    , m_Image(image)
    , m_X(x)
    , m_Y(y)
    , m_Tx(static_cast<int>(threadIdx.x) % Tile::Width)
    , m_Ty(static_cast<int>(threadIdx.x) / Tile::Width)
  {
    // The positions of the staged columns and rows in the buffer, in memory that is not in use yet.
    int * const positions = reinterpret_cast<int *>(stage.passed);
    PutPositions<Tile>(m_Passes.axis, x, y, positions);
    __syncthreads();
    m_IsWhole = true;
    ForStaged<Tile>(m_Tx, m_Ty, [&](int i, int row, int column) {
      const int atX = positions[column];
      const int atY = positions[Tile::StagedWidth + row];
      m_From[i] =
        InRegister(atX >= 0 && atY >= 0 ? (atY * static_cast<int>(Along(0).inCount) + atX) * m_Passes.step : -1);
      m_IsWhole = m_IsWhole && m_From[i] >= 0;
    });
#pragma unroll
    for (int u = 0; u < Tile::Outputs; ++u)
    {
#pragma unroll
      for (int t = 0; t < VTaps - 1; ++t)
      {
        m_Windows[u][t] = Along(2).absent;
      }
    }
#pragma unroll
    for (Voxel & value : m_Loaded)
    {
      value = Voxel();
    }
  }

  /** Reads the thread's values of a plane at image index `z`, which may be beyond the edge. */
  __device__ __forceinline__ void
  Load(std::int64_t z)
  {
    const int plane = PositionOfTap(Along(2), z);
    m_IsThere = plane >= 0;
    if (!m_IsThere)
    {
      return;
    }
    const TImage from = InRegister(m_Image + plane * (Along(0).inCount * Along(1).inCount * m_Passes.step));
    if (m_IsWhole)
    {
      ForStaged<Tile>(m_Tx, m_Ty, [&](int i, int, int) { m_Loaded[i] = LoadAt(from, m_From[i]); });
      return;
    }
    ForStaged<Tile>(m_Tx, m_Ty, [&](int i, int, int) {
      if (m_From[i] >= 0)
      {
        m_Loaded[i] = LoadAt(from, m_From[i]);
      }
    });
  }

  /** Stages them. */
  __device__ __forceinline__ void
  Put() const
  {
    const auto put = [&](int row, int column, TAcc value) {
      m_Stage.staged[row * Tile::StagedStride + column] = value;
    };
    if (m_IsWhole && m_IsThere)
    {
      ForStaged<Tile>(
        m_Tx, m_Ty, [&](int i, int row, int column) { put(row, column, TRule::Load(Along(0), m_Loaded[i])); });
      return;
    }
    const TAcc beyond = Along(0).mode == BoundaryMode::Constant ? Along(0).constant : Along(0).absent;
    ForStaged<Tile>(m_Tx, m_Ty, [&](int i, int row, int column) {
      put(row, column, m_IsThere && m_From[i] >= 0 ? TRule::Load(Along(0), m_Loaded[i]) : beyond);
    });
  }

  /** A lane has a row, a warp InRow columns. */
  __device__ __forceinline__ void
  PassX() const
  {
    const int row = static_cast<int>(threadIdx.x) % 32;
    const int column = static_cast<int>(threadIdx.x) / 32 * Tile::InRow;
    if (row >= Tile::StagedRows)
    {
      return;
    }
    const TAcc * const from = m_Stage.staged + row * Tile::StagedStride + column;
    TAcc               sums[Tile::InRow];
    AccumulateMarch<TRule>(sums, Along(0).absent, m_Passes.weights[0], [&](int s) { return from[s]; });
    Normalize(sums, Along(0), m_X + column);
    TAcc * const to = m_Stage.passed + row * Tile::PassedStride + column;
#pragma unroll
    for (int u = 0; u < Tile::InRow; ++u)
    {
      to[u] = sums[u];
    }
  }

  /** A thread has the outputs of a column; calls store(u, sum) for the windows along z that end with this plane. */
  template <typename TStore>
  __device__ __forceinline__ void
  PassYAndZ(TStore && store)
  {
    const TAcc * const from = m_Stage.passed + m_Ty * Tile::Outputs * Tile::PassedStride + m_Tx;
    TAcc               sums[Tile::Outputs];
    AccumulateMarch<TRule>(
      sums, Along(1).absent, m_Passes.weights[1], [&](int s) { return from[s * Tile::PassedStride]; });
    Normalize(sums, Along(1), m_Y + m_Ty * Tile::Outputs);
    const TAcc(&w)[VTaps] = m_Passes.weights[2];
#pragma unroll
    for (int u = 0; u < Tile::Outputs; ++u)
    {
      store(u, TRule::Add(m_Windows[u][0], w[VTaps - 1], sums[u]));
      // The window that began last is the last; each moves on by one plane.
#pragma unroll
      for (int t = 0; t < VTaps - 2; ++t)
      {
        m_Windows[u][t] = TRule::Add(m_Windows[u][t + 1], w[VTaps - 2 - t], sums[u]);
      }
      m_Windows[u][VTaps - 2] = TRule::Add(Along(2).absent, w[0], sums[u]);
    }
  }

  /** Column and first row of the thread's outputs. */
  __device__ __forceinline__ int
  X() const
  {
    return m_X + m_Tx;
  }
  __device__ __forceinline__ int
  Y() const
  {
    return m_Y + m_Ty * Tile::Outputs;
  }

private:
  __device__ __forceinline__ const Pass<TAcc> &
                                   Along(int axis) const
  {
    return m_Passes.axis[axis];
  }

  /** Multiplies sums, the first of output `first`, by their norms. */
  template <int VCount>
  __device__ __forceinline__ static void
  Normalize(TAcc (&sums)[VCount], const Pass<TAcc> & pass, int first)
  {
    if constexpr (TRule::Weighted)
    {
      const std::int64_t at = pass.outLower + first;
      if (pass.norms && !AreInside(pass, at, VCount))
      {
#pragma unroll
        for (int u = 0; u < VCount; ++u)
        {
          if (first + u < pass.outCount)
          {
            sums[u] *= NormAt(pass, at + u);
          }
        }
      }
    }
  }

  const Passes & m_Passes;
  Stage &        m_Stage;
  const TImage   m_Image;
  const int      m_X;
  const int      m_Y;
  const int      m_Tx;
  const int      m_Ty;
  bool           m_IsWhole; ///< nothing that the thread loads of a plane is beyond the edge
  bool           m_IsThere{ false };
  int            m_From[Tile::MainLoads + Tile::HaloLoads]; ///< in a plane; -1: beyond the edge
  Voxel          m_Loaded[Tile::MainLoads + Tile::HaloLoads];
  TAcc           m_Windows[Tile::Outputs][VTaps - 1];
};

/** Blocks that share a multiprocessor, as measured: with a third one sums of five real numbers would spill registers,
 * while integers gain by it. */
template <typename TAcc, int VTaps>
constexpr int MarchBlocks = sizeof(TAcc) > 16                                        ? 1
                            : std::is_class<TAcc>::value                             ? 2
                            : sizeof(TAcc) > 4                                       ? 1
                            : VTaps <= (std::is_floating_point<TAcc>::value ? 3 : 5) ? 3
                                                                                     : 2;

/** `segment` planes of outputs a block. */
template <typename TRule, typename TImage, typename TAcc, int VTaps, typename TFinish>
__global__ void
__launch_bounds__(MarchTileOf<TAcc, VTaps>::Threads, MarchBlocks<TAcc, VTaps>)
  MarchKernel(const __grid_constant__ MarchPasses<TAcc, VTaps> passes, const TImage in,
              const __grid_constant__ TFinish finish, int segment)
{
  using Tile = MarchTileOf<TAcc, VTaps>;
  MarchStage<TAcc, VTaps> & stage = StageOfBlock<MarchStage<TAcc, VTaps>>();
  const Pass<TAcc> &        x = passes.axis[0];
  const Pass<TAcc> &        y = passes.axis[1];
  const Pass<TAcc> &        z = passes.axis[2];
  const std::int64_t        plane = x.outCount * y.outCount * passes.step;
  const MarchTiles<Tile>    tiles(x.outCount, y.outCount, z.outCount, segment);
  for (std::int64_t tile = blockIdx.x; tile < tiles.Count(z.outer); tile += gridDim.x)
  {
    const MarchPlace   place(tiles, tile, passes.step);
    const std::int64_t begin = place.segment * segment;
    const int          planes = static_cast<int>(min(z.outCount - begin, static_cast<std::int64_t>(segment)));
    Marcher<TRule, TImage, TAcc, VTaps> marcher(
      passes, stage, in + place.Offset(z.inCount * y.inCount * x.inCount), place.x, place.y);
    const std::int64_t first = z.outLower + begin - Tile::Radius;
    const std::int64_t corner = static_cast<std::int64_t>(marcher.Y()) * x.outCount + marcher.X();
    const int          outputs =
      marcher.X() < x.outCount ? static_cast<int>(min(y.outCount - marcher.Y(), std::int64_t{ Tile::Outputs })) : 0;
    const int    rowStep = static_cast<int>(x.outCount) * passes.step;
    std::int64_t offset =
      place.Offset(z.outCount * x.outCount * y.outCount) + (begin - 2 * Tile::Radius) * plane + corner * passes.step;
    // Taps inside the image, for each window of the thread's columns.
    std::int32_t taps[Tile::Outputs];
#pragma unroll
    for (int u = 0; u < Tile::Outputs; ++u)
    {
      taps[u] = TapsOfWindow(x.outLower + marcher.X(), Tile::Radius, x.n) *
                TapsOfWindow(y.outLower + marcher.Y() + u, Tile::Radius, y.n);
    }
    marcher.Load(first);
    for (int p = 0; p < planes + 2 * Tile::Radius; ++p, offset += plane)
    {
      marcher.Put();
      __syncthreads();
      if (p + 1 < planes + 2 * Tile::Radius)
      {
        marcher.Load(first + p + 1);
      }
      marcher.PassX();
      __syncthreads();
      const bool         stores = p >= 2 * Tile::Radius;
      const std::int64_t at = first + p - Tile::Radius;
      const std::int32_t tapsZ = TapsOfWindow(at, Tile::Radius, z.n);
      const auto         store = [&](int u, TAcc sum) {
        if (stores && u < outputs)
        {
          finish.Store(offset + u * rowStep, taps[u] * tapsZ, sum);
        }
      };
      if constexpr (TRule::Weighted)
      {
        const TAcc norm = stores ? Normalized(z, at, TAcc(1)) : TAcc(1);
        marcher.PassYAndZ([&](int u, TAcc sum) { store(u, sum * norm); });
      }
      else
      {
        marcher.PassYAndZ(store);
      }
    }
    __syncthreads();
  }
}

/** A mean of integers, or a sum, as a voxel. */
template <typename TOut>
__device__ __forceinline__ TOut
RoundedMean(float quotient, bool truncates)
{
  constexpr auto most = static_cast<std::int32_t>(std::numeric_limits<TOut>::max());
  const int      mean = truncates ? __float2int_rz(quotient) : __float2int_rn(quotient);
  return static_cast<TOut>(max(static_cast<std::int32_t>(std::numeric_limits<TOut>::min()), min(mean, most)));
}

/** The kinds that have a kernel: the common ones, to their own kind, or to real numbers. */
constexpr bool
IsMarchedKind(PixelType in, PixelType out)
{
  return (in == PixelType::UInt8 || in == PixelType::UInt16 || in == PixelType::Int16 || in == PixelType::Float32) &&
         (out == in || out == PixelType::Float32);
}

/** Numbers from a voxel to the next: as many as components where these lie side by side. */
inline int
StepOf(const BufferView & view)
{
  return static_cast<int>(view.stride[0]);
}

/** Whether a plan takes pixels whose components lie side by side: otherwise they have to be taken apart. */
inline bool
SupportsInterleaved(const PassPlan & plan, const ChunkShape & shape)
{
  const Box &        box = shape.inputBox;
  const std::int64_t plane = box.Extent(0) * box.Extent(1);
  const std::int64_t most = (std::int64_t{ 1 } << 31) / box.Extent(MaxDimension - 1);
  return plan.marched && plane < most;
}

/** Calls launch(MarchPasses) for windows of VTaps, the ones that have a kernel. `weight(a, t)` is that of tap t along
 * axis a, of rules that have weights. */
template <int... VTaps, typename TAcc, typename TWeight, typename TLaunch>
void
DispatchMarch(const std::vector<Pass<TAcc>> & passes, int step, TWeight && weight, TLaunch && launch)
{
  const auto run = [&](auto taps) {
    constexpr int            count = decltype(taps)::value;
    MarchPasses<TAcc, count> all{};
    all.step = step;
    for (int a = 0; a < 3; ++a)
    {
      all.axis[a] = passes[static_cast<std::size_t>(a)];
      for (int t = 0; t < count; ++t)
      {
        all.weights[a][t] = weight(a, t);
      }
    }
    launch(all);
  };
  const std::int64_t taps = 2 * passes[0].radius + 1;
  ((taps == VTaps ? run(std::integral_constant<int, VTaps>()) : void()), ...);
}

template <typename TRule, int VTaps, typename TImage, typename TAcc, typename TFinish>
void
LaunchMarch(const MarchPasses<TAcc, VTaps> & passes, const TImage & in, const TFinish & finish, cudaStream_t stream)
{
  using Tile = MarchTileOf<TAcc, VTaps>;
  const Pass<TAcc>(&axis)[3] = passes.axis;
  const MarchGrid<Tile> grid(
    axis[0].outCount, axis[1].outCount, axis[2].outCount, axis[2].outer, MarchBlocks<TAcc, VTaps>);
  constexpr std::size_t bytes = MarchStage<TAcc, VTaps>::AskedBytes();
  AllowSharedMemory(MarchKernel<TRule, TImage, TAcc, VTaps, TFinish>, bytes);
  MarchKernel<TRule, TImage, TAcc, VTaps>
    <<<grid.blocks, Tile::Threads, bytes, stream>>>(passes, in, finish, static_cast<int>(grid.segment));
  CheckLaunch("MarchKernel");
}

/** Runs a plan that is marched. */
template <typename TRule, int... VTaps, typename TImage, typename TAcc, typename TFinish, typename TWeight>
void
RunMarch(const std::vector<Pass<TAcc>> & passes, const TImage & in, const TFinish & finish, cudaStream_t stream,
         TWeight && weight, int step)
{
  DispatchMarch<VTaps...>(passes, step, weight, [&](const auto & all) { LaunchMarch<TRule>(all, in, finish, stream); });
}

} // namespace chunkwise

#endif
