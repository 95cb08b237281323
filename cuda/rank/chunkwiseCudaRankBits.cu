/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaRank.cuh"

// Any window is searched bit by bit: with the highest bits of the result known, the next is 1 if no more voxels of the
// window than the rank are below the number that it would make.
namespace chunkwise
{

namespace
{

/** Outputs of a thread of RankBitKernel. */
constexpr int BitOutputs = 4;

template <typename T>
__device__ __forceinline__ void
FillOutputs(T (&values)[BitOutputs], T value)
{
#pragma unroll
  for (int u = 0; u < BitOutputs; ++u)
  {
    values[u] = value;
  }
}

/** Counts the voxels of a row that are below the limits of the outputs. */
template <typename TKey>
__device__ __forceinline__ void
CountInRow(const TKey * __restrict__ row, std::int64_t stride, int first, int last, KeyForm form,
           const SortedKey<TKey> (&limit)[BitOutputs], int (&counts)[BitOutputs])
{
#pragma unroll 4
  for (int dp = first; dp <= last; ++dp)
  {
    const SortedKey<TKey> key = ToKey(row[dp * stride], form);
#pragma unroll
    for (int u = 0; u < BitOutputs; ++u)
    {
      counts[u] += key < limit[u] ? 1 : 0;
    }
  }
}

/** Windows of any size. */
template <typename TKey>
__global__ void __launch_bounds__(256)
  RankBitKernel(const __grid_constant__ RankGeometry g, const TKey * __restrict__ in, void * __restrict__ out)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const int          p = g.planeAxes[0];
  const int          q = g.planeAxes[1];
  const int          m = g.lineAxis;
  for (std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; number < g.lines;
       number += step)
  {
    const RankLine     line(g, number);
    const TKey * const center = in + RankLine::Offset(line.index, g.in, g.inStride);
    const auto         first = [&](int axis, std::int64_t i, int radius) {
      return i - radius > g.in.lower.axis[axis] ? -radius : static_cast<int>(g.in.lower.axis[axis] - i);
    };
    const auto last = [&](int axis, std::int64_t i, int upper) {
      return i + upper < g.in.upper.axis[axis] ? upper : static_cast<int>(g.in.upper.axis[axis] - 1 - i);
    };
    const int  outputs = static_cast<int>(line.end - line.begin);
    const int  firstP = first(p, line.index.axis[p], g.planeRadii[0]);
    const int  lastP = last(p, line.index.axis[p], g.planeUppers[0]);
    const int  firstQ = first(q, line.index.axis[q], g.planeRadii[1]);
    const int  lastQ = last(q, line.index.axis[q], g.planeUppers[1]);
    const int  firstM = first(m, line.begin, g.lineRadius);
    const int  lastM = outputs - 1 + last(m, line.end - 1, g.lineUpper);
    const auto countBelow = [&](int(&counts)[BitOutputs], const TKey(&limits)[BitOutputs]) {
      FillOutputs(counts, 0);
#pragma unroll 1
      for (int dm = firstM; dm <= lastM; ++dm)
      {
        // 0 for an output whose window this plane is not in: nothing is below that.
        SortedKey<TKey> limit[BitOutputs];
#pragma unroll
        for (int u = 0; u < BitOutputs; ++u)
        {
          limit[u] = dm - u >= -g.lineRadius && dm - u <= g.lineUpper ? limits[u] : TKey{ 0 };
        }
#pragma unroll 1
        for (int dq = firstQ; dq <= lastQ; ++dq)
        {
          const TKey * const row = center + dm * g.inStride.axis[m] + dq * g.inStride.axis[q];
          const std::int64_t stride = g.inStride.axis[p];
          CountInRow(row, stride, firstP, lastP, g.form, limit, counts);
        }
      }
    };
    int  ranks[BitOutputs];
    int  counts[BitOutputs] = {};
    TKey limits[BitOutputs];
    TKey found[BitOutputs];
    if (g.form == KeyForm::Real)
    {
      FillOutputs(limits, TKey{ 1 });
      countBelow(counts, limits);
    }
    const int tapsOfPlane = (lastP - firstP + 1) * (lastQ - firstQ + 1);
#pragma unroll
    for (int u = 0; u < BitOutputs; ++u)
    {
      found[u] = 0;
      ranks[u] = 0;
      if (u < outputs)
      {
        const int taps = tapsOfPlane * TapsIn(g.in, m, line.begin + u, g.lineRadius, g.lineUpper);
        ranks[u] = static_cast<int>(RankIn(taps, AbsentIn(g, line.index, line.begin + u, taps, counts[u]), g.fraction));
      }
    }
#pragma unroll 1
    for (int bit = 8 * sizeof(TKey) - 1; bit >= 0; --bit)
    {
#pragma unroll
      for (int u = 0; u < BitOutputs; ++u)
      {
        limits[u] = static_cast<TKey>(found[u] | static_cast<TKey>(TKey{ 1 } << bit));
      }
      countBelow(counts, limits);
#pragma unroll
      for (int u = 0; u < BitOutputs; ++u)
      {
        found[u] = counts[u] <= ranks[u] ? limits[u] : found[u];
      }
    }
    const std::int64_t to = RankLine::Offset(line.index, g.outBuffer, g.outStride);
#pragma unroll
    for (int u = 0; u < BitOutputs; ++u)
    {
      if (u < outputs)
      {
        StoreKey(found[u], g, out, to + u * g.outStride.axis[m]);
      }
    }
  }
}

} // namespace

template <typename TKey>
void
LaunchRankBits(RankGeometry g, const void * in, void * out, cudaStream_t stream)
{
  const std::int64_t extent = g.out.Extent(g.lineAxis);
  g.segment = BitOutputs;
  g.lines = g.out.NumberOfVoxels() / extent * ((extent + BitOutputs - 1) / BitOutputs);
  RankBitKernel<TKey><<<BlocksFor(g.lines, 256), 256, 0, stream>>>(g, static_cast<const TKey *>(in), out);
  CheckLaunch("RankBitKernel");
}

template void
LaunchRankBits<std::uint8_t>(RankGeometry, const void *, void *, cudaStream_t);
template void
LaunchRankBits<std::uint16_t>(RankGeometry, const void *, void *, cudaStream_t);
template void
LaunchRankBits<std::uint32_t>(RankGeometry, const void *, void *, cudaStream_t);
template void
LaunchRankBits<std::uint64_t>(RankGeometry, const void *, void *, cudaStream_t);

} // namespace chunkwise
