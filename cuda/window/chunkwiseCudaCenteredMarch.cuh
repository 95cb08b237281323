/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaCenteredMarch_cuh
#define chunkwiseCudaCenteredMarch_cuh

#include "chunkwiseCudaMarchGrid.cuh"
#include "chunkwiseCudaWindow.cuh"

#include <cuda_pipeline.h>

// All three passes of windows whose taps are compared with the window's center, in one kernel. A block of threads has a
// tile in x and y and marches along z. It passes each row of a plane along x once, and hands the result on in shared
// memory. A thread passes four columns along y, then along z: it has begun the windows of the last planes, in
// registers, and keeps the values that those planes handed on in a private ring in shared memory, since a window meets
// its first taps only when it knows its center. The image is read once and written once. Taps reach each window in the
// order of the passes one by one, so the bits are theirs.
//
// A rule says what is summed. `Fields` are the values that a pass hands on of a voxel, of which the first is what
// windows are centered on. `Sums<VFirst>` is a window's, in the first pass or a later one:
// - Fill(shared): a block keeps `Shared`, what cut windows need;
// - Whole(axis, t): what tap t is weighted with in windows that have all taps;
// - Cut(shared, axis, begin, end)[t]: and in windows that have the taps from `begin` to before `end` alone;
// - Add<VFirst>(sums, weight, tap, center, t, isThere): `tap` are its fields, t its number, -1 where some may be
//   missing. One that is missing leaves the sums as they are, without a branch, which would have others wait;
// - HandOn<VFirst>(shared, sums, center, count, fields): what the next pass gets of a window of `count` taps;
// - Result(shared, sums, count): what comes of the last pass.
namespace chunkwise
{

/** The tile of a block. */
template <int VRadius>
struct CenteredTile
{
  static constexpr int Radius = VRadius;
  static constexpr int Taps = 2 * Radius + 1;
  static constexpr int Threads = 512;
  static constexpr int Width = 32;
  static constexpr int Outputs = 4; ///< of a thread in a plane, along y
  static constexpr int Height = Threads / Width * Outputs;
  static constexpr int StagedRows = Height + 2 * Radius;
  static constexpr int StagedWidth = Width + 2 * Radius;
  // Four values are read or written at a time: eight rows that begin an odd number of fours apart are on different
  // banks.
  static constexpr int StagedStride = ((StagedWidth + 3) / 4 | 1) * 4;
  static constexpr int PassedStride = (Width / 4 | 1) * 4;
  static constexpr int PairStride = (2 * Width / 4 | 1) * 4;
  // A warp stages 16 columns of two rows at a time, and passes eight columns of 16 rows along x.
  static constexpr int RowLoads = (StagedRows + Threads / 16 - 1) / (Threads / 16);
  static constexpr int ColumnLoads = (StagedWidth + 15) / 16;
  static_assert(2 * Radius <= 16 && Threads / 32 * 16 * 8 == Width * Height,
                "a warp passes rows along x twice at most");
};

/** A plane that was passed along x: the last two fields of a voxel lie next to each other, the one before them, if
 * there are three, apart. */
template <int VRadius, int VFields>
struct CenteredPlane
{
  using Tile = CenteredTile<VRadius>;
  static_assert(VFields == 2 || VFields == 3, "fields are a pair, or one and a pair");
  alignas(16) float pairs[Tile::StagedRows * Tile::PairStride];
  alignas(16) float singles[VFields == 3 ? Tile::StagedRows * Tile::PassedStride : 4];

  __device__ __forceinline__ void
  Fetch(int row, int column, float (&fields)[VFields]) const
  {
    const float2 pair = *reinterpret_cast<const float2 *>(pairs + row * Tile::PairStride + 2 * column);
    fields[VFields - 2] = pair.x, fields[VFields - 1] = pair.y;
    if constexpr (VFields == 3)
    {
      fields[0] = singles[row * Tile::PassedStride + column];
    }
  }
  __device__ __forceinline__ float
  Center(int row, int column) const
  {
    return VFields == 3 ? singles[row * Tile::PassedStride + column] : pairs[row * Tile::PairStride + 2 * column];
  }
  __device__ __forceinline__ void
  Put(int row, int column, const float (&fields)[VFields])
  {
    *reinterpret_cast<float2 *>(pairs + row * Tile::PairStride + 2 * column) =
      make_float2(fields[VFields - 2], fields[VFields - 1]);
    if constexpr (VFields == 3)
    {
      singles[row * Tile::PassedStride + column] = fields[0];
    }
  }
  __device__ __forceinline__ void
  PutFour(int row, int column, const float (&fields)[4][VFields])
  {
    float4 * const to = reinterpret_cast<float4 *>(pairs + row * Tile::PairStride + 2 * column);
#pragma unroll
    for (int u = 0; u < 4; u += 2)
    {
      to[u / 2] = make_float4(
        fields[u][VFields - 2], fields[u][VFields - 1], fields[u + 1][VFields - 2], fields[u + 1][VFields - 1]);
    }
    if constexpr (VFields == 3)
    {
      *reinterpret_cast<float4 *>(singles + row * Tile::PassedStride + column) =
        make_float4(fields[0][0], fields[1][0], fields[2][0], fields[3][0]);
    }
  }
};

/** The shared memory of a block: planes that are being passed, and planes that are being written. */
template <typename TRule>
struct CenteredStage
{
  using Tile = CenteredTile<TRule::Radius>;
  alignas(16) float staged[2][Tile::StagedRows * Tile::StagedStride];
  CenteredPlane<TRule::Radius, TRule::Fields> passed[2];
  float4                                      ring[TRule::Radius][TRule::Fields][Tile::Threads];
  typename TRule::Shared                      shared;
};

/** Along an axis, counted from a tile's first output: the image's range, and the tile's last output. */
struct CenteredRange
{
  int low;
  int high;
  int last;

  /** `count`: outputs of a tile. */
  __device__ __forceinline__
  CenteredRange(const Box & in, const Box & out, int axis, std::int64_t first, int count, int radius)
    : low(InRegister(static_cast<int>(max(in.lower.axis[axis] - first, static_cast<std::int64_t>(-radius)))))
    , high(InRegister(static_cast<int>(min(in.upper.axis[axis] - first, static_cast<std::int64_t>(count + radius)))))
    , last(InRegister(static_cast<int>(min(out.upper.axis[axis] - first, static_cast<std::int64_t>(count))) - 1))
  {}
  /** Whether the windows from `begin` to `end` that are stored have all their taps. */
  __device__ __forceinline__ bool
  AreWhole(int begin, int end, int radius) const
  {
    return begin - radius >= low && min(end, last) + radius < high;
  }
  /** The range of a window's taps that exist. */
  __device__ __forceinline__ int
  Begin(int output, int radius) const
  {
    return max(low - (output - radius), 0);
  }
  __device__ __forceinline__ int
  End(int output, int radius) const
  {
    return min(high - (output - radius), 2 * radius + 1);
  }
};

/** One thread's share of a tile. */
template <typename TRule>
class CenteredMarcher
{
public:
  static constexpr int Radius = TRule::Radius;
  static constexpr int Fields = TRule::Fields;
  using Tile = CenteredTile<Radius>;
  using Plane = CenteredPlane<Radius, Fields>;
  using Stage = CenteredStage<TRule>;
  static constexpr int Outputs = Tile::Outputs;
  using Sums = typename TRule::template Sums<false>;

  /** `first` is the tile's first output; `planes` along z. All threads of a block at once. */
  __device__ __forceinline__
  CenteredMarcher(const TRule & rule, Stage & stage, const Voxels<const float> & in, const Box & out,
                  const Coordinates & first, int planes)
    : m_Rule(rule)
    , m_Stage(stage)
    , m_First(first)
    , m_X(in.box, out, 0, first.axis[0], Tile::Width, Radius)
    , m_Y(in.box, out, 1, first.axis[1], Tile::Height, Radius)
    , m_Z(in.box, out, 2, first.axis[2], planes, Radius)
    , m_Lane(static_cast<int>(threadIdx.x) % 32)
    , m_Warp(static_cast<int>(threadIdx.x) / 32)
    , m_PlaneStep(in.stride.axis[2])
  {
    // Positions beyond the edge are no taps: the nearest voxel takes their place.
    const Coordinates corner{
      { first.axis[0] + m_X.low, first.axis[1], first.axis[2] + m_Z.low, first.axis[3], first.axis[4] }
    };
    const float * const plane = in.data + in.Offset(corner);
#pragma unroll
    for (int i = 0; i < Tile::RowLoads; ++i)
    {
      const int row = static_cast<int>(threadIdx.x) / 16 + i * (Tile::Threads / 16) - Radius;
      m_Rows[i] = InRegister(plane + max(min(row, m_Y.high - 1), m_Y.low) * in.stride.axis[1]);
    }
#pragma unroll
    for (int i = 0; i < Tile::ColumnLoads; ++i)
    {
      const int column = static_cast<int>(threadIdx.x) % 16 + i * 16 - Radius;
      m_Columns[i] = InRegister(max(min(column, m_X.high - 1), m_X.low) - m_X.low);
    }
  }

  /** Calls store(o, results) for the outputs of each plane. */
  template <typename TStore>
  __device__ __forceinline__ void
  March(TStore && store)
  {
    // In turn q plane q + 2 is on its way, q + 1 passed along x, and q along y and z. The first two turns pass no
    // plane, and their results are not used.
    const int first = m_Z.low;
#pragma unroll 1
    for (int q = first - 2; q <= m_Z.last + Radius; ++q)
    {
      if (q + 2 < m_Z.high)
      {
        Load(q - first & 1);
      }
      PassX(q - first + 1 & 1);
      if (q >= first)
      {
        float now[Outputs][Fields] = {};
        float results[Outputs];
        if (q < m_Z.high)
        {
          PassY(m_Stage.passed[q - first & 1], now);
        }
        if (m_Z.AreWhole(max(q - Radius, 0), q, Radius))
        {
          PassZ<true>(q, now, results);
        }
        else
        {
          PassZ<false>(q, now, results);
        }
        if (q >= Radius)
        {
          store(q - Radius, results);
        }
      }
      __pipeline_wait_prior(0);
      __syncthreads();
    }
  }

  /** Column and first row of the thread's outputs in the tile. */
  __device__ __forceinline__ int
  X() const
  {
    return m_Lane;
  }
  __device__ __forceinline__ int
  Y() const
  {
    return m_Warp * Outputs;
  }
  __device__ __forceinline__ int
  NumberOfOutputs() const
  {
    return m_Lane > m_X.last ? 0 : min(max(m_Y.last + 1 - Y(), 0), Outputs);
  }

private:
  /** Stages the thread's voxels of the next plane, which arrive later. */
  __device__ __forceinline__ void
  Load(int buffer)
  {
#pragma unroll
    for (int i = 0; i < Tile::RowLoads; ++i)
    {
#pragma unroll
      for (int j = 0; j < Tile::ColumnLoads; ++j)
      {
        const int row = static_cast<int>(threadIdx.x) / 16 + i * (Tile::Threads / 16);
        const int column = static_cast<int>(threadIdx.x) % 16 + j * 16;
        if (((i + 1) * (Tile::Threads / 16) <= Tile::StagedRows || row < Tile::StagedRows) &&
            ((j + 1) * 16 <= Tile::StagedWidth || column < Tile::StagedWidth))
        {
          __pipeline_memcpy_async(&m_Stage.staged[buffer][row * Tile::StagedStride + column],
                                  m_Rows[i] + static_cast<std::uint32_t>(m_Columns[j]),
                                  sizeof(float));
        }
      }
      m_Rows[i] += m_PlaneStep;
    }
    __pipeline_commit();
  }

  /** A warp has eight columns of 16 rows, a thread four windows. There are more such parts than warps. Those at the
   * image's edge take longest, and so come first: warps that have them have no second part, nor the first or last rows
   * along y, which the edge may cut too. */
  __device__ __forceinline__ void
  PassX(int buffer) const
  {
    constexpr int warps = Tile::Threads / 32;
    constexpr int rows = (Tile::StagedRows + 15) / 16;
    constexpr int seconds = 4 * rows - warps;
    static_assert(seconds <= 4 && rows + seconds <= 3 * warps / 4, "one of each part of the multiprocessor");
    const int number = (m_Warp + 3 * warps / 4) % warps;
#pragma unroll 1
    for (int part = number; part < 4 * rows; part += warps - rows)
    {
      const int columns = part / rows;
      const int row = part % rows * 16 + m_Lane % 16;
      const int column = (m_X.low > -Radius ? columns : 3 - columns) * 8 + m_Lane / 16 * 4;
      if (row < Tile::StagedRows)
      {
        PassRow(m_Stage.staged[buffer] + row * Tile::StagedStride + column,
                m_Stage.passed[buffer],
                row,
                column,
                m_X.AreWhole(column, column + 3, Radius));
      }
      if (part >= warps || number < rows || number >= rows + seconds)
      {
        break;
      }
    }
  }
  __device__ __forceinline__ void
  PassRow(const float * from, Plane & to, int row, int column, bool areWhole) const
  {
    constexpr int fours = (4 + 2 * Radius + 3) / 4;
    float         values[4 * fours];
#pragma unroll
    for (int i = 0; i < fours; ++i)
    {
      const float4 four = reinterpret_cast<const float4 *>(from)[i];
      values[4 * i] = four.x, values[4 * i + 1] = four.y, values[4 * i + 2] = four.z, values[4 * i + 3] = four.w;
    }
    const float centers[4] = { values[Radius], values[Radius + 1], values[Radius + 2], values[Radius + 3] };
    float       passed[4][Fields];
    Pass<true>(0, m_X, column, areWhole, centers, passed, [&](int s, float(&tap)[Fields]) { tap[0] = values[s]; });
    to.PutFour(row, column, passed);
  }

  /** A thread has the windows of its column, of which the taps are what the pass along x handed on. */
  __device__ __forceinline__ void
  PassY(const Plane & from, float (&passed)[Outputs][Fields]) const
  {
    float centers[Outputs];
#pragma unroll
    for (int u = 0; u < Outputs; ++u)
    {
      centers[u] = from.Center(Y() + u + Radius, m_Lane);
    }
    const bool areWhole = m_Y.AreWhole(Y(), Y() + Outputs - 1, Radius);
    Pass<false>(
      1, m_Y, Y(), areWhole, centers, passed, [&](int s, float(&tap)[Fields]) { from.Fetch(Y() + s, m_Lane, tap); });
  }

  /** Four windows next to each other, from `output` on, and what they hand on. fetch(s, tap) gives the tap that lies s
   * voxels after the first of the first window. */
  template <bool VFirst, typename TFetch>
  __device__ __forceinline__ void
  Pass(int axis, const CenteredRange & range, int output, bool areWhole, const float (&centers)[Outputs],
       float (&passed)[Outputs][Fields], TFetch && fetch) const
  {
    typename TRule::template Sums<VFirst> sums[Outputs];
    if (areWhole)
    {
      Accumulate<VFirst>(
        sums,
        centers,
        fetch,
        [](int) { return true; },
        [&](int, int t) { return m_Rule.Whole(axis, t); },
        [](int t) { return t; });
#pragma unroll
      for (int u = 0; u < Outputs; ++u)
      {
        m_Rule.template HandOn<VFirst>(m_Stage.shared, sums[u], centers[u], Tile::Taps, passed[u]);
      }
      return;
    }
    typename TRule::Row rows[Outputs];
#pragma unroll
    for (int u = 0; u < Outputs; ++u)
    {
      rows[u] = m_Rule.Cut(m_Stage.shared, axis, range.Begin(output + u, Radius), range.End(output + u, Radius));
    }
    Accumulate<VFirst>(
      sums,
      centers,
      fetch,
      [&](int s) { return output - Radius + s >= range.low && output - Radius + s < range.high; },
      [&](int u, int t) { return rows[u][t]; },
      [](int) { return -1; });
#pragma unroll
    for (int u = 0; u < Outputs; ++u)
    {
      const int count = range.End(output + u, Radius) - range.Begin(output + u, Radius);
      m_Rule.template HandOn<VFirst>(m_Stage.shared, sums[u], centers[u], count, passed[u]);
    }
  }
  template <bool VFirst, typename TSums, typename TFetch, typename TIsThere, typename TWeight, typename TNumber>
  __device__ __forceinline__ void
  Accumulate(TSums (&sums)[Outputs], const float (&centers)[Outputs], TFetch && fetch, TIsThere && isThere,
             TWeight && weight, TNumber && number) const
  {
#pragma unroll
    for (int s = 0; s < Tile::Taps + Outputs - 1; ++s)
    {
      const bool there = isThere(s);
      float      tap[Fields];
      fetch(s, tap);
#pragma unroll
      for (int u = 0; u < Outputs; ++u)
      {
        if (s >= u && s - u < Tile::Taps)
        {
          m_Rule.template Add<VFirst>(sums[u], weight(u, s - u), tap, centers[u], number(s - u), there);
        }
      }
    }
  }

  /** Plane q is a tap of the outputs before it, and those planes are taps of plane q. `results` are those of the
   * windows that end with it. */
  template <bool VWhole>
  __device__ __forceinline__ void
  PassZ(int q, const float (&now)[Outputs][Fields], float (&results)[Outputs])
  {
    // Tap t of the output of a plane.
    const auto isThere = [&](int output, int t) {
      return VWhole || (output - Radius + t >= m_Z.low && output - Radius + t < m_Z.high);
    };
    const auto weightOf = [&](int output, int t) {
      if constexpr (VWhole)
      {
        return m_Rule.Whole(2, t);
      }
      else
      {
        return m_Rule.Cut(m_Stage.shared, 2, m_Z.Begin(output, Radius), m_Z.End(output, Radius))[t];
      }
    };
    const auto add = [&](Sums & sums, const auto & weight, int t, const float(&tap)[Fields], float center) {
      m_Rule.template Add<false>(sums, weight, tap, center, VWhole ? t : -1, true);
    };
    float4(*const ring)[Fields][Tile::Threads] = m_Stage.ring;
    Sums begun[Outputs];
    int  slot = m_Slot;
#pragma unroll
    for (int j = Radius - 1; j >= 0; --j)
    {
      float old[Outputs][Fields];
#pragma unroll
      for (int f = 0; f < Fields; ++f)
      {
        const float4 four = ring[slot][f][threadIdx.x];
        old[0][f] = four.x, old[1][f] = four.y, old[2][f] = four.z, old[3][f] = four.w;
      }
      slot = slot + 1 == Radius ? 0 : slot + 1;
      if (isThere(q - 1 - j, Radius + 1 + j))
      {
        const auto weight = weightOf(q - 1 - j, Radius + 1 + j);
#pragma unroll
        for (int u = 0; u < Outputs; ++u)
        {
          add(m_Pending[j][u], weight, Radius + 1 + j, now[u], old[u][0]);
        }
      }
      if (isThere(q, Radius - 1 - j))
      {
        const auto weight = weightOf(q, Radius - 1 - j);
#pragma unroll
        for (int u = 0; u < Outputs; ++u)
        {
          add(begun[u], weight, Radius - 1 - j, old[u], now[u][0]);
        }
      }
    }
    const int output = q - Radius;
    const int count = VWhole ? Tile::Taps : m_Z.End(output, Radius) - m_Z.Begin(output, Radius);
#pragma unroll
    for (int u = 0; u < Outputs; ++u)
    {
      if (isThere(q, Radius))
      {
        add(begun[u], weightOf(q, Radius), Radius, now[u], now[u][0]);
      }
      results[u] = m_Rule.Result(m_Stage.shared, m_Pending[Radius - 1][u], count);
#pragma unroll
      for (int j = Radius - 1; j > 0; --j)
      {
        m_Pending[j][u] = m_Pending[j - 1][u];
      }
      m_Pending[0][u] = begun[u];
    }
#pragma unroll
    for (int f = 0; f < Fields; ++f)
    {
      ring[m_Slot][f][threadIdx.x] = make_float4(now[0][f], now[1][f], now[2][f], now[3][f]);
    }
    m_Slot = m_Slot + 1 == Radius ? 0 : m_Slot + 1;
  }

  const TRule &       m_Rule;
  Stage &             m_Stage;
  const Coordinates & m_First;
  const CenteredRange m_X;
  const CenteredRange m_Y;
  const CenteredRange m_Z;
  const int           m_Lane;
  const int           m_Warp;
  const float *       m_Rows[Tile::RowLoads]; ///< of the plane that is staged next
  const std::int64_t  m_PlaneStep;
  int                 m_Columns[Tile::ColumnLoads];
  int                 m_Slot{ 0 };                ///< of the oldest plane in the ring
  Sums                m_Pending[Radius][Outputs]; ///< number j is of the output j + 1 planes before
};

/** `segment` planes of outputs a block. */
template <typename TRule, typename TOut>
__global__ void
__launch_bounds__(CenteredTile<TRule::Radius>::Threads, 1)
  CenteredMarchKernel(const __grid_constant__ TRule rule, const __grid_constant__ Voxels<const float> in,
                      const __grid_constant__ Voxels<TOut> out, int segment)
{
  using Marcher = CenteredMarcher<TRule>;
  using Tile = typename Marcher::Tile;
  extern __shared__ __align__(16) unsigned char memory[];
  auto &                                        stage = *reinterpret_cast<typename Marcher::Stage *>(memory);
  const Box &                                   box = out.box;
  rule.Fill(stage.shared);
  __syncthreads();
  const MarchTiles<Tile> tiles(box.Extent(0), box.Extent(1), box.Extent(2), segment);
  for (std::int64_t tile = blockIdx.x; tile < tiles.Count(box.Extent(3) * box.Extent(4)); tile += gridDim.x)
  {
    const Coordinates first{ { box.lower.axis[0] + tiles.X(tile),
                               box.lower.axis[1] + tiles.Y(tile),
                               box.lower.axis[2] + tiles.Segment(tile) * segment,
                               box.lower.axis[3] + tiles.Volume(tile) % box.Extent(3),
                               box.lower.axis[4] + tiles.Volume(tile) / box.Extent(3) } };
    const int planes = static_cast<int>(min(box.upper.axis[2] - first.axis[2], static_cast<std::int64_t>(segment)));
    Marcher   marcher(rule, stage, in, box, first, planes);
    const int outputs = marcher.NumberOfOutputs();
    const std::int64_t row = out.stride.axis[1];
    const std::int64_t plane = out.stride.axis[2];
    TOut *             to = out.data + out.Offset(first) + marcher.Y() * row + marcher.X();
    marcher.March([&](int, const float(&results)[Tile::Outputs]) {
#pragma unroll
      for (int u = 0; u < Tile::Outputs; ++u)
      {
        if (u < outputs)
        {
          to[u * row] = ConvertResult<TOut>(results[u]);
        }
      }
      to += plane;
    });
  }
}

/** Whether every device has the shared memory that a march takes. */
template <typename TRule>
bool
CanMarchCentered()
{
  return sizeof(CenteredStage<TRule>) <= SharedMemoryOfDevices();
}

template <typename TRule, typename TOut>
void
LaunchCenteredMarch(const TRule & rule, const Voxels<const float> & in, const Voxels<TOut> & out, cudaStream_t stream)
{
  using Tile = CenteredTile<TRule::Radius>;
  constexpr std::size_t bytes = sizeof(CenteredStage<TRule>);
  const Box &           box = out.box;
  const MarchGrid<Tile> grid(box.Extent(0), box.Extent(1), box.Extent(2), box.Extent(3) * box.Extent(4), 1);
  const auto            kernel = CenteredMarchKernel<TRule, TOut>;
  AllowSharedMemory(kernel, bytes);
  kernel<<<grid.blocks, Tile::Threads, bytes, stream>>>(rule, in, out, static_cast<int>(grid.segment));
  CheckLaunch("CenteredMarchKernel");
}

} // namespace chunkwise

#endif
