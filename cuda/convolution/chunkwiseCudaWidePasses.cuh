/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaWidePasses_cuh
#define chunkwiseCudaWidePasses_cuh

#include "chunkwiseCudaPasses.cuh"

#include <cuda_pipeline.h>

// Weighted sums in float along one axis, for windows of so many taps that multiply-adds are what bounds them. A thread
// has so many outputs that few instructions are anything else: taps are taken Together at a time, whose weights and
// values are in registers. Taps reach each window in their order, so that the bits are those of the other passes.
namespace chunkwise
{

constexpr int WideThreads = 128;
constexpr int WideWarps = WideThreads / 32;

/** Adds Together taps to VOutputs windows of VColumns columns. Row s of the values is turned by `VTurn` parts of
 * Together. */
template <int VTurn, int VParts, int VColumns>
__device__ __forceinline__ void
AddTaps(float (&sums)[VParts * Together][VColumns], const float * weights,
        const float (&values)[VParts + 1][Together][VColumns])
{
  float w[Together];
  LoadWeights(w, weights);
#pragma unroll
  for (int t = 0; t < Together; ++t)
  {
#pragma unroll
    for (int u = 0; u < VParts * Together; ++u)
    {
#pragma unroll
      for (int c = 0; c < VColumns; ++c)
      {
        const int part = ((t + u) / Together + VTurn) % (VParts + 1);
        sums[u][c] = MultiplyAdd(w[t], values[part][(t + u) % Together][c], sums[u][c]);
      }
    }
  }
}

/** Windows of `taps` that begin one row after the other. fetch(part, rows) gives Together rows of values, from row
 * Together * part of the first window on; fetchRow(part, s, row) gives one of them. */
template <int VParts, int VColumns, typename TFetch, typename TFetchRow>
__device__ __forceinline__ void
AccumulateWide(float (&sums)[VParts * Together][VColumns], const float * weights, int taps, TFetch && fetch,
               TFetchRow && fetchRow)
{
  float values[VParts + 1][Together][VColumns];
#pragma unroll
  for (int u = 0; u < VParts * Together; ++u)
  {
#pragma unroll
    for (int c = 0; c < VColumns; ++c)
    {
      sums[u][c] = 0.0F;
    }
  }
#pragma unroll
  for (int part = 0; part < VParts; ++part)
  {
    fetch(part, values[part]);
  }
  const int blocks = taps / Together;
  int       block = 0;
  // The oldest values make room for the newest, without a move from register to register.
#pragma unroll 1
  for (; block + VParts < blocks; block += VParts + 1)
  {
    const float * const w = weights + block * Together;
    fetch(block + VParts, values[VParts]);
    AddTaps<0, VParts, VColumns>(sums, w, values);
    fetch(block + VParts + 1, values[0]);
    AddTaps<1, VParts, VColumns>(sums, w + Together, values);
    if constexpr (VParts == 2)
    {
      fetch(block + VParts + 2, values[1]);
      AddTaps<2, VParts, VColumns>(sums, w + 2 * Together, values);
    }
  }
#pragma unroll 1
  for (; block < blocks; ++block)
  {
    fetch(block + VParts, values[VParts]);
    AddTaps<0, VParts, VColumns>(sums, weights + block * Together, values);
#pragma unroll
    for (int part = 0; part < VParts; ++part)
    {
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
#pragma unroll
        for (int c = 0; c < VColumns; ++c)
        {
          values[part][s][c] = values[part + 1][s][c];
        }
      }
    }
  }
  const int rest = taps - blocks * Together;
#pragma unroll
  for (int t = 0; t < Together - 1; ++t)
  {
    if (t < rest)
    {
      if (t > 0)
      {
        fetchRow(blocks + VParts, t - 1, values[VParts][t > 0 ? t - 1 : 0]);
      }
      const float w = weights[blocks * Together + t];
#pragma unroll
      for (int u = 0; u < VParts * Together; ++u)
      {
#pragma unroll
        for (int c = 0; c < VColumns; ++c)
        {
          sums[u][c] = MultiplyAdd(w, values[(t + u) / Together][(t + u) % Together][c], sums[u][c]);
        }
      }
    }
  }
}

/** Columns of a block of WideColumnKernel; a thread has two. */
constexpr int WideColumns = 64;

/** Shared memory of a block of WideColumnKernel. */
constexpr std::int64_t
WideColumnBytes(std::int64_t radius)
{
  const std::int64_t lead = (2 * radius + Together - 1) / Together;
  return (PaddedTaps(2 * radius + 1) + (lead + 2 * WideWarps) * Together * WideColumns) *
         static_cast<std::int64_t>(sizeof(float));
}

/** One block's part of a pass along y or z: columns next to each other, along which it marches. The rows that windows
 * need are in a ring of slots in shared memory, Together rows each: `lead` slots before those of a turn, of which each
 * warp has one; the next turn's are on their way. */
template <typename TStore>
class WideColumnMarcher
{
public:
  /** `arePairs`: rows begin at even places in memory. */
  __device__ __forceinline__
  WideColumnMarcher(const Pass<float> & pass, const TStore & store, float * shared, int lead, bool arePairs)
    : m_Pass(pass)
    , m_Store(store)
    , m_Taps(static_cast<int>(2 * pass.radius + 1))
    , m_Lead(lead)
    , m_Slots(lead + 2 * WideWarps)
    , m_ArePairs(arePairs)
    , m_Lane(static_cast<int>(threadIdx.x) % 32)
    , m_Warp(static_cast<int>(threadIdx.x) / 32)
    , m_Weights(shared)
    , m_Ring(shared + (m_Taps + Together - 1) / Together * Together)
  {
    for (float * to = m_Weights + threadIdx.x; to < m_Ring; to += WideThreads)
    {
      *to = pass.weights[to - m_Weights];
    }
  }

  /** `plane` is number `outer`. All threads of a block at once. */
  __device__ __forceinline__ void
  March(const float * plane, std::int64_t outer, std::int64_t column)
  {
    constexpr int rows = WideWarps * Together; // a turn
    const auto    extent = static_cast<int>(m_Pass.outCount);
    m_Plane = plane;
    m_Column = column;
    for (int i = m_Warp; i < m_Lead + WideWarps; i += WideWarps)
    {
      Stage(i, i);
    }
    int slot = 0;
#pragma unroll 1
    for (int begin = 0; begin < extent; begin += rows)
    {
      __pipeline_wait_prior(0);
      __syncthreads();
      if (begin + rows < extent)
      {
        const int ahead = m_Lead + WideWarps + m_Warp;
        Stage(begin / Together + ahead, Wrapped(slot + ahead));
      }
      if (begin + m_Warp * Together < extent)
      {
        Finish(outer, begin + m_Warp * Together, slot + m_Warp);
      }
      slot = Wrapped(slot + WideWarps);
    }
    __syncthreads();
  }

private:
  __device__ __forceinline__ int
  Wrapped(int slot) const
  {
    return slot < m_Slots ? slot : slot - m_Slots;
  }

  /** Begins to copy slot `number` of the column to the ring's `slot`; lanes have columns next to each other. */
  __device__ __forceinline__ void
  Stage(int number, int slot) const
  {
    float * const      to = m_Ring + slot * (Together * WideColumns) + 2 * m_Lane;
    const std::int64_t row = m_Pass.outLower - m_Pass.radius + static_cast<std::int64_t>(number) * Together;
    // Columns that are not there are not stored.
    const std::int64_t x = min(m_Column + 2 * m_Lane, m_Pass.inner - (m_ArePairs ? 2 : 1));
    const int          next = x + 1 < m_Pass.inner ? 1 : 0;
    if (HoldsTogether(m_Pass, row))
    {
      const float * from = m_Plane + (row - m_Pass.inLower) * m_Pass.inner + x;
#pragma unroll
      for (int s = 0; s < Together; ++s, from += m_Pass.inner)
      {
        CopyPair(to + s * WideColumns, from, next);
      }
    }
    else
    {
#pragma unroll 1
      for (int s = 0; s < Together; ++s)
      {
        const std::int64_t end = m_Pass.inLower + m_Pass.inCount;
        const std::int64_t at = MapTap(row + s, m_Pass.inLower, end, m_Pass.n, m_Pass.mode);
        if (at >= m_Pass.inLower && at < end)
        {
          CopyPair(to + s * WideColumns, m_Plane + (at - m_Pass.inLower) * m_Pass.inner + x, next);
        }
        else
        {
          const float value = at < 0 && m_Pass.mode == BoundaryMode::Constant ? m_Pass.constant : m_Pass.absent;
          to[s * WideColumns] = to[s * WideColumns + 1] = value;
        }
      }
    }
    __pipeline_commit();
  }
  __device__ __forceinline__ void
  CopyPair(float * to, const float * from, int next) const
  {
    if (m_ArePairs)
    {
      __pipeline_memcpy_async(to, from, 2 * sizeof(float));
    }
    else
    {
      __pipeline_memcpy_async(to, from, sizeof(float));
      __pipeline_memcpy_async(to + 1, from + next, sizeof(float));
    }
  }

  /** The outputs of the thread's columns from row `first` on; the windows of the first begin with the ring's `slot`. */
  __device__ __forceinline__ void
  Finish(std::int64_t outer, int first, int slot) const
  {
    float      sums[Together][2];
    const auto fetchRow = [&](int part, int s, float(&row)[2]) {
      const float2 pair = *reinterpret_cast<const float2 *>(m_Ring + Wrapped(slot + part) * (Together * WideColumns) +
                                                            s * WideColumns + 2 * m_Lane);
      row[0] = pair.x, row[1] = pair.y;
    };
    const auto fetch = [&](int part, float(&rows)[Together][2]) {
#pragma unroll
      for (int s = 0; s < Together; ++s)
      {
        fetchRow(part, s, rows[s]);
      }
    };
    AccumulateWide<1, 2>(sums, m_Weights, m_Taps, fetch, fetchRow);
    const std::int64_t at = m_Pass.outLower + first;
    const auto         count = static_cast<int>(min(m_Pass.outCount - first, static_cast<std::int64_t>(Together)));
    if (m_Pass.norms && !AreInside(m_Pass, at, Together))
    {
#pragma unroll
      for (int u = 0; u < Together; ++u)
      {
        const float norm = u < count ? NormAt(m_Pass, at + u) : 1.0F;
        sums[u][0] *= norm;
        sums[u][1] *= norm;
      }
    }
    const std::int64_t x = m_Column + 2 * m_Lane;
    const auto         line = m_Store.BeginLine(outer, x);
    std::int64_t       offset = (outer * m_Pass.outCount + first) * m_Pass.inner + x;
    if constexpr (std::is_same<decltype(line.out), float *>::value)
    {
      if (m_ArePairs && count == Together)
      {
        if (x < m_Pass.inner)
        {
#pragma unroll
          for (int u = 0; u < Together; ++u, offset += m_Pass.inner)
          {
            *reinterpret_cast<float2 *>(line.out + offset) = make_float2(sums[u][0], sums[u][1]);
          }
        }
        return;
      }
    }
#pragma unroll
    for (int u = 0; u < Together; ++u, offset += m_Pass.inner)
    {
#pragma unroll
      for (int c = 0; c < 2; ++c)
      {
        if (x + c < m_Pass.inner && u < count)
        {
          line(offset + c, at + u, sums[u][c]);
        }
      }
    }
  }

  const Pass<float> & m_Pass;
  const TStore &      m_Store;
  const int           m_Taps;
  const int           m_Lead;
  const int           m_Slots;
  const bool          m_ArePairs;
  const int           m_Lane;
  const int           m_Warp;
  float * const       m_Weights;
  float * const       m_Ring;
  const float *       m_Plane{ nullptr };
  std::int64_t        m_Column{ 0 };
};

template <typename TStore>
__global__ void
__launch_bounds__(WideThreads, 5)
  WideColumnKernel(const __grid_constant__ Pass<float> pass, const float * __restrict__ in,
                   const __grid_constant__ TStore store, int lead, bool arePairs)
{
  extern __shared__ __align__(16) unsigned char memory[];
  WideColumnMarcher<TStore>                     marcher(pass, store, reinterpret_cast<float *>(memory), lead, arePairs);
  const std::int64_t                            tiles = (pass.inner + WideColumns - 1) / WideColumns;
  for (std::int64_t tile = blockIdx.x; tile < tiles * pass.outer; tile += gridDim.x)
  {
    const std::int64_t outer = tile / tiles;
    marcher.March(in + outer * pass.inCount * pass.inner, outer, (tile - outer * tiles) * WideColumns);
  }
}

/** Along y or z. */
template <typename TStore>
void
LaunchWideColumns(const Pass<float> & pass, const float * in, const TStore & store, cudaStream_t stream)
{
  const auto bytes = static_cast<std::size_t>(WideColumnBytes(pass.radius));
  const auto kernel = WideColumnKernel<TStore>;
  // Chunks' outputs and scratch begin at multiples of far more bytes.
  const bool arePairs = pass.inner % 2 == 0 && reinterpret_cast<std::uintptr_t>(in) % 8 == 0 &&
                        reinterpret_cast<std::uintptr_t>(store.out) % 8 == 0;
  AllowSharedMemory(kernel, bytes);
  kernel<<<BlocksFor((pass.inner + WideColumns - 1) / WideColumns * pass.outer, 1), WideThreads, bytes, stream>>>(
    pass, in, store, static_cast<int>((2 * pass.radius + Together - 1) / Together), arePairs);
  CheckLaunch("WideColumnKernel");
}

/** Rows that a block of WideRowKernel has: those of a quarter of a warp, which reads four values at a time, are on
 * different banks. */
constexpr int WideRows = 8;
/** Outputs of a thread in parts of Together, those of a warp, and of a block's row. */
constexpr int WideParts = 2;
constexpr int WideWarpWidth = 4 * WideParts * Together;
constexpr int WideWidth = WideWarps * WideWarpWidth;

/** Values of a staged row: a multiple of four, the next row of which begins on other banks. */
__host__ __device__ constexpr int
WideRowStride(int taps)
{
  return ((WideWidth + (taps + Together - 1) / Together * Together) / 4 | 1) * 4;
}

/** Shared memory of a block of WideRowKernel. */
constexpr std::int64_t
WideRowBytes(std::int64_t radius)
{
  return (PaddedTaps(2 * radius + 1) + WideRows * WideRowStride(static_cast<int>(2 * radius + 1))) *
         static_cast<std::int64_t>(sizeof(float));
}

/** Stages `count` values of two rows from position `first` of the buffer on, which may be beyond its ends. A warp does;
 * several loads are on their way at once. */
template <typename TIn>
__device__ __forceinline__ void
StageWideRows(const Pass<float> & pass, const TIn * const (&lines)[2], float * const (&to)[2], int first, int count)
{
  constexpr int loads = 4;
  const int     lane = static_cast<int>(threadIdx.x) % 32;
  const auto    end = static_cast<unsigned int>(pass.inCount);
  const float   beyond = pass.mode == BoundaryMode::Constant ? pass.constant : pass.absent;
#pragma unroll 1
  for (int begin = lane; begin < count; begin += 32 * loads)
  {
    float values[2][loads];
#pragma unroll
    for (int i = 0; i < loads; ++i)
    {
      const bool isThere = static_cast<unsigned int>(first + begin + 32 * i) < end;
#pragma unroll
      for (int row = 0; row < 2; ++row)
      {
        values[row][i] = isThere ? static_cast<float>(__ldg(lines[row] + first + begin + 32 * i)) : beyond;
      }
    }
#pragma unroll
    for (int i = 0; i < loads; ++i)
    {
#pragma unroll
      for (int row = 0; row < 2; ++row)
      {
        if (begin + 32 * i < count)
        {
          to[row][begin + 32 * i] = values[row][i];
        }
      }
    }
  }
  if (pass.mode == BoundaryMode::Constant || pass.mode == BoundaryMode::Renormalized)
  {
    return;
  }
  const auto fetch = [&](int from, int upTo) {
  // Each lane writes again what it wrote above, so that no two lanes write one value.
#pragma unroll 1
    for (int x = from / 32 * 32 + lane; x < upTo; x += 32)
    {
      for (int row = 0; row < 2 && x >= from; ++row)
      {
        to[row][x] = Fetch<WeightedSums>(pass, lines[row], 1, pass.inLower + first + x);
      }
    }
  };
  fetch(0, min(-first, count));
  fetch(max(static_cast<int>(pass.inCount) - first, 0), count);
}

/** Along x. */
template <typename TIn>
__global__ void
__launch_bounds__(WideThreads, 6)
  WideRowKernel(const __grid_constant__ Pass<float> pass, const TIn * __restrict__ in, float * __restrict__ out)
{
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int                                 outputs = WideParts * Together;
  const int                                     taps = static_cast<int>(2 * pass.radius + 1);
  const int                                     padded = (taps + Together - 1) / Together * Together;
  const int                                     stride = WideRowStride(taps);
  const int                                     lane = static_cast<int>(threadIdx.x) % 32;
  const int                                     warp = static_cast<int>(threadIdx.x) / 32;
  float * const                                 weights = reinterpret_cast<float *>(memory);
  float * const                                 staged = weights + padded;
  for (int t = static_cast<int>(threadIdx.x); t < padded; t += WideThreads)
  {
    weights[t] = pass.weights[t];
  }
  const std::int64_t tilesOfRow = (pass.outCount + WideWidth - 1) / WideWidth;
  const std::int64_t groups = (pass.outer + WideRows - 1) / WideRows;
  for (std::int64_t tile = blockIdx.x; tile < tilesOfRow * groups; tile += gridDim.x)
  {
    const std::int64_t firstRow = tile / tilesOfRow * WideRows;
    const auto         begin = static_cast<int>(tile % tilesOfRow) * WideWidth;
    const int          count = min(static_cast<int>(pass.outCount) - begin, WideWidth);
    const int          rows = static_cast<int>(min(pass.outer - firstRow, static_cast<std::int64_t>(WideRows)));
    static_assert(WideRows == 2 * WideWarps, "a warp stages two rows");
    const TIn * const lines[2] = { in + (firstRow + min(2 * warp, rows - 1)) * pass.inCount,
                                   in + (firstRow + min(2 * warp + 1, rows - 1)) * pass.inCount };
    float * const     to[2] = { staged + 2 * warp * stride, staged + (2 * warp + 1) * stride };
    StageWideRows(
      pass, lines, to, static_cast<int>(pass.outLower - pass.inLower - pass.radius) + begin, count + taps - 1);
    __syncthreads();
    const int     column = warp * WideWarpWidth + lane / 8 * outputs;
    float * const own = staged + lane % 8 * stride + column;
    float         sums[outputs][1];
    const auto    fetch = [&](int part, float(&values)[Together][1]) {
#pragma unroll
      for (int s = 0; s < Together; s += 4)
      {
        const float4 four = *reinterpret_cast<const float4 *>(own + part * Together + s);
        values[s][0] = four.x, values[s + 1][0] = four.y, values[s + 2][0] = four.z, values[s + 3][0] = four.w;
      }
    };
    AccumulateWide<WideParts, 1>(
      sums, weights, taps, fetch, [&](int part, int s, float(&value)[1]) { value[0] = own[part * Together + s]; });
    const std::int64_t at = pass.outLower + begin + column;
    if (pass.norms && !AreInside(pass, at, outputs))
    {
#pragma unroll
      for (int u = 0; u < outputs; ++u)
      {
        sums[u][0] *= column + u < count ? NormAt(pass, at + u) : 1.0F;
      }
    }
    // By way of shared memory, so that rows are written in their order.
    __syncthreads();
#pragma unroll
    for (int u = 0; u < outputs; u += 4)
    {
      *reinterpret_cast<float4 *>(own + u) = make_float4(sums[u][0], sums[u + 1][0], sums[u + 2][0], sums[u + 3][0]);
    }
    __syncwarp();
    const int     x = warp * WideWarpWidth + lane;
    float *       toRow = out + firstRow * pass.outCount + begin + x;
    const float * fromRow = staged + x;
#pragma unroll
    for (int row = 0; row < WideRows; ++row, toRow += pass.outCount, fromRow += stride)
    {
#pragma unroll
      for (int i = 0; i < WideWarpWidth; i += 32)
      {
        if (row < rows && x + i < count)
        {
          toRow[i] = fromRow[i];
        }
      }
    }
    __syncthreads();
  }
}

template <typename TIn>
void
LaunchWideRows(const Pass<float> & pass, const TIn * in, float * out, cudaStream_t stream)
{
  const auto         bytes = static_cast<std::size_t>(WideRowBytes(pass.radius));
  const auto         kernel = WideRowKernel<TIn>;
  const std::int64_t tiles = (pass.outCount + WideWidth - 1) / WideWidth * ((pass.outer + WideRows - 1) / WideRows);
  AllowSharedMemory(kernel, bytes);
  kernel<<<BlocksFor(tiles, 1), WideThreads, bytes, stream>>>(pass, in, out);
  CheckLaunch("WideRowKernel");
}

/** Whether windows of a radius are wide, and these kernels have room for them. */
constexpr std::int64_t LeastWideRadius = 9;
inline bool
HasWideRows(std::int64_t radius)
{
  return radius >= LeastWideRadius && radius <= 4096 &&
         WideRowBytes(radius) <= static_cast<std::int64_t>(LargestSharedMemory);
}
inline bool
HasWideColumns(std::int64_t radius)
{
  return radius >= LeastWideRadius && radius <= 4096 &&
         WideColumnBytes(radius) <= static_cast<std::int64_t>(LargestSharedMemory);
}

} // namespace chunkwise

#endif
