/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaVarianceColumns_cuh
#define chunkwiseCudaVarianceColumns_cuh

#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseMoments.h"

#include <cstdint>
#include <limits>

// VarianceOperation of float with a small radius, the same along x, y and z: all three passes at once, in registers.
namespace chunkwise
{

/** The largest radius; the registers of a thread hold no more. */
constexpr int LargestColumnRadius = 3;
constexpr int ColumnTileX = 64;
constexpr int ColumnThreads = 256;
/** Outputs of a thread, next to each other along y. */
constexpr int ColumnOutputs = 4;
constexpr int ColumnTileY = ColumnThreads / ColumnTileX * ColumnOutputs;

/** Moments after their first tap. That begins at e, not at 0 + e, which can differ in the sign of a zero only: of a
 * sum, where it does not reach any result. */
template <typename TReal>
__device__ __forceinline__ MergedMoments<TReal>
                           BeginMoments(TReal difference, TReal variance)
{
  return { difference, difference * difference, variance };
}

/** A block takes a tile in x and y and moves along z. Planes are staged in shared memory, the next while this one is
 * computed. A thread passes the rows around its outputs along x (those of neighbouring threads are computed twice:
 * cheaper than handing them over) and its outputs along y; along z it keeps what the planes before handed on, and the
 * moments of outputs that still lack planes.
 *
 * The tap in a window's centre differs from itself by 0, or by NaN if it is not finite; then the other taps have made
 * the variance NaN already, so that its difference need not be computed. Windows must have another tap along x. */
template <int VRadius, typename TOut>
__global__ void
__launch_bounds__(ColumnThreads, (VRadius <= 2 ? 512 : 256) / ColumnThreads)
  VarianceColumnsKernel(Voxels<const float> pixels, Voxels<TOut> out, std::int64_t segment, bool takesRoot)
{
  constexpr int   K = 2 * VRadius + 1;
  constexpr int   Rows = ColumnTileY + 2 * VRadius;
  constexpr int   Width = ColumnTileX + 2 * VRadius;
  constexpr int   ThreadRows = ColumnThreads / ColumnTileX;
  constexpr int   RowLoads = (Rows + ThreadRows - 1) / ThreadRows;
  constexpr float Inverse = 1.0F / static_cast<float>(K);
  using Moments = MergedMoments<float>;
  __shared__ float staged[2][Rows][Width];
  static_assert(2 * VRadius * Rows <= ColumnThreads, "one load a thread for the columns beside the tile");

  const int thread = static_cast<int>(threadIdx.x);
  const int tx = thread % ColumnTileX;
  const int ty = thread / ColumnTileX;
  const int top = ty * ColumnOutputs;
  // The planes of axes beyond z, and the segments of z.
  const std::int64_t segments = (out.box.Extent(2) + segment - 1) / segment;
  std::int64_t       rest = blockIdx.z;
  const std::int64_t z0 = out.box.lower.axis[2] + rest % segments * segment;
  rest /= segments;
  const std::int64_t zEnd = min(z0 + segment, out.box.upper.axis[2]);
  const std::int64_t c = out.box.lower.axis[3] + rest % out.box.Extent(3);
  const std::int64_t w = out.box.lower.axis[4] + rest / out.box.Extent(3);
  const std::int64_t x0 = out.box.lower.axis[0] + static_cast<std::int64_t>(blockIdx.x) * ColumnTileX;
  const std::int64_t y0 = out.box.lower.axis[1] + static_cast<std::int64_t>(blockIdx.y) * ColumnTileY;
  const std::int64_t lowerZ = pixels.box.lower.axis[2];
  const std::int64_t upperZ = pixels.box.upper.axis[2];
  // Of the staged rows and columns, those that there are; as taps of this thread too.
  const auto clip = [](std::int64_t value, int most) {
    return static_cast<int>(min(max(value, std::int64_t{ 0 }), std::int64_t{ most }));
  };
  const int  lowX = clip(pixels.box.lower.axis[0] - (x0 - VRadius), Width);
  const int  highX = clip(pixels.box.upper.axis[0] - (x0 - VRadius), Width);
  const int  lowY = clip(pixels.box.lower.axis[1] - (y0 - VRadius), Rows);
  const int  highY = clip(pixels.box.upper.axis[1] - (y0 - VRadius), Rows);
  const int  tapX0 = max(tx, lowX);
  const int  tapX1 = min(tx + K, highX);
  const bool isWholeHere = x0 + tx >= out.box.upper.axis[0] || tapX1 - tapX0 == K;
  const bool isWhole =
    __all_sync(0xFFFFFFFFU, isWholeHere) && lowY <= top && top + ColumnOutputs + 2 * VRadius <= highY;

  // Where the pixels that this thread stages are, from a plane's first. What there is not is never a tap.
  const auto offsetOf = [&](int row, int column) {
    const std::int64_t y = y0 - VRadius - pixels.box.lower.axis[1] + min(max(row, lowY), highY - 1);
    const std::int64_t x = x0 - VRadius - pixels.box.lower.axis[0] + min(max(column, lowX), highX - 1);
    return static_cast<std::uint32_t>(y * pixels.stride.axis[1] + x);
  };
  const int     sideRow = thread / (2 * VRadius);
  const int     sideColumn = ColumnTileX + thread % (2 * VRadius);
  std::uint32_t offsets[RowLoads + 1];
#pragma unroll
  for (int i = 0; i < RowLoads; ++i)
  {
    offsets[i] = offsetOf(ty + i * ThreadRows, tx);
  }
  offsets[RowLoads] = offsetOf(sideRow, sideColumn);
  float      loaded[RowLoads + 1];
  const auto load = [&](const float * plane) {
#pragma unroll
    for (int i = 0; i <= RowLoads; ++i)
    {
      loaded[i] = plane[offsets[i]];
    }
  };
  const auto stage = [&](float(&to)[Rows][Width]) {
#pragma unroll
    for (int i = 0; i < RowLoads; ++i)
    {
      if (Rows % ThreadRows == 0 || ty + i * ThreadRows < Rows)
      {
        to[ty + i * ThreadRows][tx] = loaded[i];
      }
    }
    if (sideRow < Rows)
    {
      to[sideRow][sideColumn] = loaded[RowLoads];
    }
  };

  // Number 0 is of the plane before this one, number 1 of that before it.
  float   centers[VRadius][ColumnOutputs] = {};
  float   differences[VRadius][ColumnOutputs] = {};
  float   variances[VRadius][ColumnOutputs] = {};
  Moments pending[VRadius][ColumnOutputs] = {};

  std::int64_t       z = max(lowerZ, z0 - VRadius);
  const float *      plane = &pixels[Coordinates{ { pixels.box.lower.axis[0], pixels.box.lower.axis[1], z, c, w } }];
  const std::int64_t xOut = min(x0 + tx, out.box.upper.axis[0] - 1);
  const int          outputs =
    x0 + tx < out.box.upper.axis[0]
               ? static_cast<int>(min(max(out.box.upper.axis[1] - (y0 + top), std::int64_t{ 0 }), std::int64_t{ ColumnOutputs }))
               : 0;
  TOut * to = out.data + out.Offset(Coordinates{ { xOut, y0 + top, z - VRadius, c, w } });
  load(plane);
  stage(staged[0]);
  for (int buffer = 0; z < zEnd + VRadius; ++z, buffer ^= 1, to += out.stride.axis[2])
  {
    float   center[ColumnOutputs];
    Moments moments[ColumnOutputs];
    float   difference[ColumnOutputs] = {};
    float   variance[ColumnOutputs] = {};
    if (z < upperZ)
    {
      __syncthreads();
      const bool more = z + 1 < upperZ && z + 1 < zEnd + VRadius;
      if (more)
      {
        plane += pixels.stride.axis[2];
        load(plane);
      }
      const float(*const rows)[Width] = &staged[buffer][top];
#pragma unroll
      for (int u = 0; u < ColumnOutputs; ++u)
      {
        center[u] = rows[u + VRadius][tx + VRadius];
      }
      if (isWhole)
      {
#pragma unroll
        for (int row = 0; row < ColumnOutputs + 2 * VRadius; ++row)
        {
          const float x = rows[row][tx + VRadius];
          Moments     ofRow = BeginMoments(rows[row][tx] - x, 0.0F);
#pragma unroll
          for (int t = 1; t < K; ++t)
          {
            if (t != VRadius)
            {
              ofRow.Add(rows[row][tx + t] - x, 0.0F);
            }
          }
          const float d = ofRow.Mean(Inverse);
          const float v = ofRow.Between(Inverse) * Inverse;
#pragma unroll
          for (int u = 0; u < ColumnOutputs; ++u)
          {
            if (row == u)
            {
              moments[u] = BeginMoments((x - center[u]) + d, v);
            }
            else if (row > u && row < u + K)
            {
              moments[u].Add(row == u + VRadius ? d : (x - center[u]) + d, v);
            }
          }
        }
#pragma unroll
        for (int u = 0; u < ColumnOutputs; ++u)
        {
          difference[u] = moments[u].Mean(Inverse);
          variance[u] = moments[u].Variance(Inverse);
        }
      }
      else
      {
        const float inverseX = 1.0F / static_cast<float>(tapX1 - tapX0);
#pragma unroll
        for (int u = 0; u < ColumnOutputs; ++u)
        {
          moments[u] = Moments();
        }
#pragma unroll
        for (int row = 0; row < ColumnOutputs + 2 * VRadius; ++row)
        {
          if (top + row >= lowY && top + row < highY)
          {
            const float x = rows[row][tx + VRadius];
            Moments     ofRow;
#pragma unroll
            for (int t = 0; t < K; ++t)
            {
              if (t != VRadius && tx + t >= tapX0 && tx + t < tapX1)
              {
                ofRow.Add(rows[row][tx + t] - x, 0.0F);
              }
            }
            const float d = ofRow.Mean(inverseX);
            const float v = ofRow.Variance(inverseX);
#pragma unroll
            for (int u = 0; u < ColumnOutputs; ++u)
            {
              if (row >= u && row < u + K)
              {
                moments[u].Add((x - center[u]) + d, v);
              }
            }
          }
        }
#pragma unroll
        for (int u = 0; u < ColumnOutputs; ++u)
        {
          const int   taps = min(top + u + K, highY) - max(top + u, lowY);
          const float inverse = 1.0F / static_cast<float>(taps);
          difference[u] = moments[u].Mean(inverse);
          variance[u] = moments[u].Variance(inverse);
        }
      }
      if (more)
      {
        stage(staged[buffer ^ 1]);
      }
      // The plane's tap of outputs before it.
#pragma unroll
      for (int j = VRadius - 1; j >= 0; --j)
      {
#pragma unroll
        for (int u = 0; u < ColumnOutputs; ++u)
        {
          pending[j][u].Add((center[u] - centers[j][u]) + difference[u], variance[u]);
        }
      }
    }
    const std::int64_t at = z - VRadius;
    if (at >= z0)
    {
      const auto  taps = static_cast<int>(min(z + 1, upperZ) - max(at - VRadius, lowerZ));
      const float inverse = taps == K ? Inverse : 1.0F / static_cast<float>(taps);
#pragma unroll
      for (int u = 0; u < ColumnOutputs; ++u)
      {
        if (u < outputs)
        {
          to[u * out.stride.axis[1]] = FinishVariance<TOut>(pending[VRadius - 1][u].Variance(inverse), takesRoot);
        }
      }
    }
    // The plane's own outputs: the planes before it and itself.
    const bool isDeep = z - VRadius >= lowerZ;
#pragma unroll
    for (int u = 0; u < ColumnOutputs; ++u)
    {
      moments[u] = Moments();
      if (isDeep)
      {
        moments[u] =
          BeginMoments((centers[VRadius - 1][u] - center[u]) + differences[VRadius - 1][u], variances[VRadius - 1][u]);
      }
#pragma unroll
      for (int j = VRadius - 2; j >= 0; --j)
      {
        if (isDeep || z - 1 - j >= lowerZ)
        {
          moments[u].Add((centers[j][u] - center[u]) + differences[j][u], variances[j][u]);
        }
      }
      moments[u].Add(difference[u], variance[u]);
#pragma unroll
      for (int j = VRadius - 1; j > 0; --j)
      {
        pending[j][u] = pending[j - 1][u];
        centers[j][u] = centers[j - 1][u];
        differences[j][u] = differences[j - 1][u];
        variances[j][u] = variances[j - 1][u];
      }
      pending[0][u] = moments[u];
      centers[0][u] = center[u];
      differences[0][u] = difference[u];
      variances[0][u] = variance[u];
    }
  }
}

/** Planes along z that a block takes, so that the device's blocks together end soonest: each reads `halo` planes more.
 */
inline std::int64_t
PlanesOfColumns(std::int64_t columns, std::int64_t planes, std::int64_t halo, std::int64_t blocksAtOnce)
{
  std::int64_t best = planes;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::int64_t segments = 1; segments <= 64 && segments <= planes; ++segments)
  {
    const std::int64_t segment = (planes + segments - 1) / segments;
    const std::int64_t rounds = (columns * segments + blocksAtOnce - 1) / blocksAtOnce;
    if (rounds * (segment + halo) < least)
    {
      least = rounds * (segment + halo);
      best = segment;
    }
  }
  return best;
}

template <int VRadius, typename TOut>
bool
LaunchVarianceColumns(const Voxels<const float> & pixels, const Voxels<TOut> & out, bool takesRoot, cudaStream_t stream)
{
  const Box &        box = out.box;
  const std::int64_t tilesX = (box.Extent(0) + ColumnTileX - 1) / ColumnTileX;
  const std::int64_t tilesY = (box.Extent(1) + ColumnTileY - 1) / ColumnTileY;
  const std::int64_t volumes = box.Extent(3) * box.Extent(4);
  const auto         kernel = VarianceColumnsKernel<VRadius, TOut>;
  const std::int64_t segment = PlanesOfColumns(tilesX * tilesY * volumes,
                                               box.Extent(2),
                                               2 * VRadius,
                                               BlocksAtOnce(reinterpret_cast<const void *>(kernel), ColumnThreads, 0));
  const std::int64_t blocksZ = (box.Extent(2) + segment - 1) / segment * volumes;
  if (tilesX > 1000000 || tilesY > 65535 || blocksZ > 65535)
  {
    return false;
  }
  kernel<<<dim3(
             static_cast<unsigned int>(tilesX), static_cast<unsigned int>(tilesY), static_cast<unsigned int>(blocksZ)),
           ColumnThreads,
           0,
           stream>>>(pixels, out, segment, takesRoot);
  CheckLaunch("VarianceColumnsKernel");
  return true;
}

/** Runs the operation if it is one for these kernels. */
template <typename TOut>
bool
RunVarianceColumns(const Voxels<const float> & pixels, const Voxels<TOut> & out, const Coordinates & radius,
                   bool takesRoot, cudaStream_t stream)
{
  // Offsets in a plane have 32 bits.
  if (radius[1] != radius[0] || radius[2] != radius[0] || radius[3] != 0 || radius[4] != 0 || pixels.stride[0] != 1 ||
      pixels.box.Extent(0) < 2 || pixels.stride[1] > (std::int64_t{ 1 } << 31) / pixels.box.Extent(1))
  {
    return false;
  }
  switch (radius[0])
  {
    case 1:
      return LaunchVarianceColumns<1>(pixels, out, takesRoot, stream);
    case 2:
      return LaunchVarianceColumns<2>(pixels, out, takesRoot, stream);
    case 3:
      return LaunchVarianceColumns<3>(pixels, out, takesRoot, stream);
    default:
      return false;
  }
}

} // namespace chunkwise

#endif
