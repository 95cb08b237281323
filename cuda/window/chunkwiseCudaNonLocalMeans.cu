/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaRealOutput.cuh"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseNonLocalMeansOperation.h"
#include "chunkwisePatchWeight.h"
#include "chunkwiseRealOf.h"

#include <algorithm>
#include <limits>

namespace chunkwise
{

namespace
{

/** The windows' axes: up to three, in the order in which voxels lie; and the others. */
template <typename TReal>
struct PatchGeometry
{
  Box   out;
  int   axes[3];
  int   others[MaxDimension - 3];
  int   search[3];
  int   patch[3];
  TReal twiceNoise;
  TReal inverse;
};

/** The result where all weights are 0, of each kind that results have. */
template <typename TPixel>
struct PatchEmpty
{
  TPixel pixel;
  float  ofFloats;
  double ofDoubles;

  explicit PatchEmpty(const PixelValue & value)
    : pixel(EmptyPixel<TPixel>(value))
    , ofFloats(EmptyPixel<float>(value))
    , ofDoubles(EmptyPixel<double>(value))
  {}

  __device__ void
  Store(const RealOutput & out, std::int64_t offset) const
  {
    switch (out.kind)
    {
      case PixelType::Float32:
        reinterpret_cast<float *>(out.voxels.data)[offset] = ofFloats;
        break;
      case PixelType::Float64:
        reinterpret_cast<double *>(out.voxels.data)[offset] = ofDoubles;
        break;
      default:
        reinterpret_cast<TPixel *>(out.voxels.data)[offset] = pixel;
    }
  }
};

/** Calls body(s) for 0 and for each shift after it and its opposite, in the order in which they are added. */
template <typename TBody>
__device__ __forceinline__ void
ForEachShift(const int (&search)[3], TBody && body)
{
  int s[3] = { 0, 0, 0 };
  while (s[2] <= search[2])
  {
    const bool isZero = s[0] == 0 && s[1] == 0 && s[2] == 0;
    for (int direction = 1; direction >= (isZero ? 1 : -1); direction -= 2)
    {
      const int shift[3] = { direction * s[0], direction * s[1], direction * s[2] };
      body(shift);
    }
    if (++s[0] > search[0])
    {
      s[0] = -search[0];
      if (++s[1] > search[1])
      {
        s[1] = -search[1];
        ++s[2];
      }
    }
  }
}

/** How far voxels go on from an origin along an axis, as far as it matters. */
struct PatchReach
{
  int before;
  int after;

  __device__
  PatchReach(const Box & box, int a, std::int64_t origin)
    : before(static_cast<int>(min(std::int64_t{ 1 } << 29, origin - box.lower.axis[a])))
    , after(static_cast<int>(min(std::int64_t{ 1 } << 29, box.upper.axis[a] - 1 - origin)))
  {}

  /** Whether p and p + shift are there. */
  __device__ __forceinline__ bool
  Has(int p, int shift) const
  {
    return p + min(shift, 0) >= -before && p + max(shift, 0) <= after;
  }
  /** The first and the last offset of a patch that p and p + shift both have. */
  __device__ __forceinline__ int
  First(int p, int shift, int radius) const
  {
    return max(-radius, -before - p - min(shift, 0));
  }
  __device__ __forceinline__ int
  Last(int p, int shift, int radius) const
  {
    return min(radius, after - p - max(shift, 0));
  }
};

/** Any radius: a block a row of outputs, a thread an output at a time; neighbours read what is in the first cache.
 * `given`: the voxels' weights if `VIsWeighed`. */
template <bool VIsWeighed, typename TPixel, typename TReal>
__global__ void __launch_bounds__(128)
  NonLocalMeansKernel(const __grid_constant__ Voxels<const TPixel> in,
                      const __grid_constant__ Voxels<const TReal> given, const __grid_constant__ RealOutput out,
                      const __grid_constant__ PatchGeometry<TReal> g, PatchEmpty<TPixel> empty)
{
  const std::int64_t width = g.out.Extent(0);
  const std::int64_t rows = g.out.NumberOfVoxels() / width;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x)
  {
    Coordinates at = IndexIn(g.out, row * width);
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      at.axis[0] = g.out.lower.axis[0] + x;
      const TPixel * const center = &in[at];
      const TReal * const  centerGiven = VIsWeighed ? &given[at] : nullptr;
      const PatchReach     reach[3] = { { in.box, g.axes[0], at.axis[g.axes[0]] },
                                        { in.box, g.axes[1], at.axis[g.axes[1]] },
                                        { in.box, g.axes[2], at.axis[g.axes[2]] } };
      const auto           offsetOf = [&](const auto & view, const int(&s)[3]) {
        return s[0] * view.stride.axis[g.axes[0]] + s[1] * view.stride.axis[g.axes[1]] +
               s[2] * view.stride.axis[g.axes[2]];
      };
      TReal weighted = 0;
      TReal weights = 0;
      ForEachShift(g.search, [&](const int(&s)[3]) {
        int first[3];
        int last[3];
        int cut = 1;
#pragma unroll
        for (int i = 0; i < 3; ++i)
        {
          if (!reach[i].Has(0, s[i]))
          {
            return;
          }
          first[i] = reach[i].First(0, s[i], g.patch[i]);
          last[i] = reach[i].Last(0, s[i], g.patch[i]);
          cut *= last[i] - first[i] + 1;
        }
        const TPixel * const other = center + offsetOf(in, s);
        const TReal * const  otherGiven = VIsWeighed ? centerGiven + offsetOf(given, s) : nullptr;
        const TReal          weightOfOther = VIsWeighed ? *otherGiven : TReal(1);
        if (weightOfOther == TReal(0))
        {
          return; // it adds 0
        }
        TReal squares = 0;
        TReal count = VIsWeighed ? TReal(0) : static_cast<TReal>(cut);
        for (int u = first[0]; u <= last[0]; ++u)
        {
          TReal planeSquares = 0;
          TReal planeCount = 0;
          for (int v = first[1]; v <= last[1]; ++v)
          {
            TReal lineSquares = 0;
            TReal lineCount = 0;
            for (int w = first[2]; w <= last[2]; ++w)
            {
              const int          offset[3] = { u, v, w };
              const std::int64_t tap = offsetOf(in, offset);
              const TReal        difference = static_cast<TReal>(center[tap]) - static_cast<TReal>(other[tap]);
              const TReal        square = difference * difference;
              if constexpr (VIsWeighed)
              {
                const std::int64_t givenTap = offsetOf(given, offset);
                const TReal        both = centerGiven[givenTap] * otherGiven[givenTap];
                lineSquares = both != TReal(0) ? lineSquares + both * square : lineSquares;
                lineCount += both;
              }
              else
              {
                lineSquares += square;
              }
            }
            planeSquares += lineSquares;
            planeCount += lineCount;
          }
          squares += planeSquares;
          count += planeCount;
        }
        const TReal share = TReal(1) / count;
        const TReal weight = share <= std::numeric_limits<TReal>::max()
                               ? PatchWeight(squares, share, g.twiceNoise, g.inverse) * weightOfOther
                               : TReal(0);
        weighted += weight * static_cast<TReal>(*other);
        weights += weight;
      });
      const std::int64_t to = out.voxels.Offset(at);
      if (VIsWeighed && weights == TReal(0))
      {
        empty.Store(out, to);
      }
      else
      {
        out.Store<TPixel>(to, weighted / weights);
      }
    }
  }
}

/** Outputs of a tile along the first two of the windows' axes. */
constexpr int PatchWidth = 32;
constexpr int PatchHeight = 8;

/** Sums of a tile in shared memory, of these numbers a depth: along the third axis, and along the second too. Twice as
 * many where voxels have weights, whose products are summed likewise. */
template <typename TReal>
std::size_t
PatchTileBytes(const PatchGeometry<TReal> & g, int depth, bool isWeighed)
{
  const std::size_t width = PatchWidth + 2 * static_cast<std::size_t>(g.patch[0]);
  const std::size_t height = PatchHeight + 2 * static_cast<std::size_t>(g.patch[1]);
  return sizeof(TReal) * static_cast<std::size_t>(depth) * width * (height + PatchHeight) * (isWeighed ? 2 : 1);
}

/** Adds number `j` of the values of a line to the sums of `VSums` windows of 2 radius + 1 that have it, each in
 * ascending order. */
template <int VSums, typename TReal>
__device__ __forceinline__ void
AddToWindows(TReal (&sums)[VSums], int j, int radius, TReal value)
{
#pragma unroll
  for (int k = 0; k < VSums; ++k)
  {
    if (j >= k && j - k <= 2 * radius)
    {
      sums[k] += value;
    }
  }
}

/** The weights that a tile sees. */
enum class PatchSight
{
  Whole, ///< the weight of each is 1, or there are no weights
  Nothing,
  Weights
};

/** The sight of the block's tile, of which `given` is the weight of the voxel at its origin. */
template <typename TReal>
__device__ PatchSight
SightOf(const TReal * given, const Coordinates & strides, const int (&axes)[3], const PatchReach (&reach)[3],
        const int (&around)[3], const int (&outputs)[3])
{
  int          first[3];
  int          extent[3];
  std::int64_t stride[3];
  for (int i = 0; i < 3; ++i)
  {
    first[i] = max(-around[i], -reach[i].before);
    extent[i] = min(outputs[i] - 1 + around[i], reach[i].after) - first[i] + 1;
    stride[i] = strides.axis[axes[i]];
  }
  bool areOnes = true;
  bool areZeros = true;
  for (int i = static_cast<int>(threadIdx.x); i < extent[0] * extent[1] * extent[2]; i += PatchWidth * PatchHeight)
  {
    const int   row = i / extent[0];
    const TReal weight = given[(first[0] + i - row * extent[0]) * stride[0] + (first[1] + row % extent[1]) * stride[1] +
                               (first[2] + row / extent[1]) * stride[2]];
    areOnes = areOnes && weight == TReal(1);
    areZeros = areZeros && weight == TReal(0);
  }
  const bool isWhole = __syncthreads_and(areOnes) != 0;
  const bool isEmpty = __syncthreads_and(areZeros) != 0;
  return isWhole ? PatchSight::Whole : isEmpty ? PatchSight::Nothing : PatchSight::Weights;
}

/** The sums of a tile's outputs. */
template <typename TReal, int VDepth>
struct PatchSums
{
  TReal weighted[VDepth];
  TReal weights[VDepth];
};

/** The position of a tile, and its place in shared memory. */
template <typename TReal>
struct PatchTile
{
  PatchReach   reach[3];
  int          outputs[3];
  bool         isWhole;
  std::int64_t stride[3];
  std::int64_t givenStride[3];
  TReal *      memory;
};

/** Squares of the differences of a column's voxels and those at a shift, summed along the third of the windows' axes;
 * and products of weights likewise. */
template <bool VIsWeighed, int VDepth, typename TPixel, typename TReal>
__device__ __forceinline__ void
AddColumn(const TPixel * center, const TReal * given, const PatchTile<TReal> & tile, const int (&s)[3], int p0, int p1,
          int r2, std::int64_t away, std::int64_t givenAway, TReal (&squares)[VDepth], TReal (&counts)[VDepth])
{
  const auto &   stride = tile.stride;
  const TPixel * a = center + p0 * stride[0] + p1 * stride[1] - r2 * stride[2];
  const TReal *  w = given + p0 * tile.givenStride[0] + p1 * tile.givenStride[1] - r2 * tile.givenStride[2];
#pragma unroll
  for (int j = 0; j < VDepth + 2 * r2; ++j)
  {
    TReal square = 0;
    TReal both = 0;
    if (tile.isWhole || tile.reach[2].Has(j - r2, s[2]))
    {
      const TReal difference = static_cast<TReal>(a[0]) - static_cast<TReal>(a[away]);
      square = difference * difference;
      if constexpr (VIsWeighed)
      {
        both = w[0] * w[givenAway];
        square = both != TReal(0) ? both * square : TReal(0);
      }
    }
    AddToWindows(squares, j, r2, square);
    a += stride[2];
    if constexpr (VIsWeighed)
    {
      AddToWindows(counts, j, r2, both);
      w += tile.givenStride[2];
    }
  }
}

template <bool VIsWeighed, int VDepth, typename TReal>
__device__ __forceinline__ void
StoreColumn(const TReal (&squares)[VDepth], const TReal (&counts)[VDepth], int plane, TReal * lines, TReal * lineCounts)
{
#pragma unroll
  for (int k = 0; k < VDepth; ++k)
  {
    lines[k * plane] = squares[k];
    if constexpr (VIsWeighed)
    {
      lineCounts[k * plane] = counts[k];
    }
  }
}

/** Sums of a column of `lines` along the second of the windows' axes. */
template <typename TReal>
__device__ __forceinline__ void
AddLines(const TReal * from, TReal * to, int column, int width, int height, int r1)
{
  const int     k = column / width;
  const int     x = column - k * width;
  const TReal * line = from + k * height * width + x;
  TReal         windows[PatchHeight] = {};
#pragma unroll
  for (int j = 0; j < PatchHeight + 2 * r1; ++j)
  {
    AddToWindows(windows, j, r1, *line);
    line += width;
  }
#pragma unroll
  for (int i = 0; i < PatchHeight; ++i)
  {
    to[(k * PatchHeight + i) * width + x] = windows[i];
  }
}

/** One over the voxels of a patch and of the patch at a shift that both lie in the image. */
template <typename TReal>
__device__ __forceinline__ TReal
ShareOfCut(const PatchReach (&reach)[3], const int (&s)[3], int tx, int ty, int k, int r0, int r1, int r2)
{
  const int count = (reach[0].Last(tx, s[0], r0) - reach[0].First(tx, s[0], r0) + 1) *
                    (reach[1].Last(ty, s[1], r1) - reach[1].First(ty, s[1], r1) + 1) *
                    (reach[2].Last(k, s[2], r2) - reach[2].First(k, s[2], r2) + 1);
  return TReal(1) / static_cast<TReal>(count);
}

/** The column that a thread sums up as number `unit`. Each warp has a row of a staged tile, but for the last columns:
 * lanes are on different banks. */
template <bool VIsStaged>
__device__ __forceinline__ void
FindPatchColumn(int unit, int width, int height, int r0, int & row, int & x)
{
  const bool isRest = VIsStaged && unit >= height * PatchWidth;
  const int  rest = unit - height * PatchWidth;
  row = !VIsStaged ? unit / width : isRest ? rest / (2 * r0) : unit / PatchWidth;
  x = !VIsStaged ? unit - row * width : isRest ? PatchWidth + rest % (2 * r0) : unit % PatchWidth;
}

/** Sums along the first of the windows' axes. */
template <bool VIsWeighed, typename TReal>
__device__ __forceinline__ void
AddRow(const TReal * planes, const TReal * planeCounts, int r0, TReal & squares, TReal & counts)
{
#pragma unroll
  for (int t = 0; t <= 2 * r0; ++t)
  {
    squares += planes[t];
    if constexpr (VIsWeighed)
    {
      counts += planeCounts[t];
    }
  }
}

/** Sums of one tile, for one shift after the other: squares summed along the third of the windows' axes, these sums
 * along the second, those along the first; and products of weights likewise. */
template <typename TPixel, typename TReal, int VRadius, int VDepth, bool VIsWeighed, bool VIsStaged = false>
__device__ __forceinline__ void
AddShifts(const TPixel * center, const TReal * given, const PatchTile<TReal> & tile, const PatchGeometry<TReal> & g,
          PatchSums<TReal, VDepth> & sums)
{
  constexpr int threads = PatchWidth * PatchHeight;
  const int     r0 = VRadius < 0 ? g.patch[0] : VRadius;
  const int     r1 = VRadius < 0 ? g.patch[1] : VRadius;
  const int     r2 = VRadius < 0 ? g.patch[2] : VRadius;
  const int     width = PatchWidth + 2 * r0;
  const int     height = PatchHeight + 2 * r1;
  const int     tx = static_cast<int>(threadIdx.x) % PatchWidth;
  const int     ty = static_cast<int>(threadIdx.x) / PatchWidth;
  const TReal   wholeShare = TReal(1) / static_cast<TReal>((2 * r0 + 1) * (2 * r1 + 1) * (2 * r2 + 1));
  TReal * const lines = tile.memory;
  TReal * const planes = lines + VDepth * height * width;
  // Sums of products lie behind all sums of squares.
  TReal * const lineCounts = planes + VDepth * PatchHeight * width;
  TReal * const planeCounts = lineCounts + VDepth * height * width;
  const auto &  reach = tile.reach;
  const auto &  stride = tile.stride;
  const bool    isWhole = tile.isWhole;
  ForEachShift(g.search, [&](const int(&s)[3]) {
    const std::int64_t away = s[0] * stride[0] + s[1] * stride[1] + s[2] * stride[2];
    const std::int64_t givenAway = s[0] * tile.givenStride[0] + s[1] * tile.givenStride[1] + s[2] * tile.givenStride[2];
    for (int unit = static_cast<int>(threadIdx.x);
         unit < (VIsStaged ? (height + (2 * r0 * height + 31) / 32) * 32 : width * height);
         unit += threads)
    {
      int row = 0;
      int x = 0;
      FindPatchColumn<VIsStaged>(unit, width, height, r0, row, x);
      if (VIsStaged && row >= height)
      {
        continue;
      }
      const int column = row * width + x;
      const int p0 = x - r0;
      const int p1 = row - r1;
      TReal     squares[VDepth] = {};
      TReal     counts[VDepth] = {};
      if (isWhole || (reach[0].Has(p0, s[0]) && reach[1].Has(p1, s[1])))
      {
        AddColumn<VIsWeighed>(center, given, tile, s, p0, p1, r2, away, givenAway, squares, counts);
      }
      StoreColumn<VIsWeighed>(squares, counts, height * width, lines + column, lineCounts + column);
    }
    __syncthreads();
    for (int column = static_cast<int>(threadIdx.x); column < width * VDepth; column += threads)
    {
      AddLines(lines, planes, column, width, height, r1);
      if constexpr (VIsWeighed)
      {
        AddLines(lineCounts, planeCounts, column, width, height, r1);
      }
    }
    // No thread writes lines again before all have read them, nor planes before all have passed the wait above.
    __syncthreads();
    const bool isThere =
      tx < tile.outputs[0] && ty < tile.outputs[1] && (isWhole || (reach[0].Has(tx, s[0]) && reach[1].Has(ty, s[1])));
    if (!isThere)
    {
      return;
    }
    const TPixel * voxel = center + tx * stride[0] + ty * stride[1] + away;
    const TReal *  other = given + tx * tile.givenStride[0] + ty * tile.givenStride[1] + givenAway;
#pragma unroll
    for (int k = 0; k < VDepth; ++k)
    {
      if (k < tile.outputs[2] && (isWhole || reach[2].Has(k, s[2])))
      {
        const int place = (k * PatchHeight + ty) * width + tx;
        TReal     squares = 0;
        TReal     counts = 0;
        AddRow<VIsWeighed>(planes + place, planeCounts + place, r0, squares, counts);
        TReal weightOfOther = 1;
        TReal share = wholeShare;
        if constexpr (VIsWeighed)
        {
          weightOfOther = *other;
          share = TReal(1) / counts;
        }
        else if (!isWhole)
        {
          share = ShareOfCut<TReal>(reach, s, tx, ty, k, r0, r1, r2);
        }
        // A voxel without weight adds nothing, whatever its value; nor does a patch that has nothing in common.
        if (!VIsWeighed || (weightOfOther != TReal(0) && share <= std::numeric_limits<TReal>::max()))
        {
          const TReal weight = PatchWeight(squares, share, g.twiceNoise, g.inverse) * weightOfOther;
          sums.weighted[k] += weight * static_cast<TReal>(*voxel);
          sums.weights[k] += weight;
        }
      }
      voxel += stride[2];
      other += tile.givenStride[2];
    }
  });
}

/** A tile's voxels and those around it in shared memory: patches of known radius, and as far as `Search`. */
template <typename TReal, int VRadius, int VDepth>
struct StagedPatches
{
  static constexpr int Search = 2;
  static constexpr int Around = Search + VRadius;
  static constexpr int Width = PatchWidth + 2 * Around;
  static constexpr int Height = PatchHeight + 2 * Around;
  static constexpr int Depth = VDepth + 2 * Around;

  TReal voxels[Depth][Height][Width];

  /** All threads of a block call it at once; missing values are 0. */
  template <typename TPixel>
  __device__ __forceinline__ void
  Fill(const TPixel * center, const PatchTile<TReal> & tile)
  {
    for (int row = static_cast<int>(threadIdx.x) / PatchWidth; row < Height * Depth; row += PatchHeight)
    {
      const int  y = row % Height - Around;
      const int  z = row / Height - Around;
      const bool isThere = tile.reach[1].Has(y, 0) && tile.reach[2].Has(z, 0);
      for (int column = static_cast<int>(threadIdx.x) % PatchWidth; column < Width; column += PatchWidth)
      {
        const int x = column - Around;
        voxels[z + Around][y + Around][column] =
          isThere && tile.reach[0].Has(x, 0)
            ? static_cast<TReal>(center[x * tile.stride[0] + y * tile.stride[1] + z * tile.stride[2]])
            : TReal(0);
      }
    }
  }
};

template <typename TReal>
CHUNKWISE_HOST_DEVICE std::int64_t
                      CountPatchTiles(const PatchGeometry<TReal> & g, const int (&extent)[3])
{
  std::int64_t tiles = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    tiles *= g.out.Extent(a);
  }
  for (int i = 0; i < 3; ++i)
  {
    const std::int64_t n = g.out.Extent(g.axes[i]);
    tiles = tiles / n * ((n + extent[i] - 1) / extent[i]);
  }
  return tiles;
}

/** The first voxel of a tile. */
template <typename TReal>
__device__ __forceinline__ Coordinates
FindPatchTile(const PatchGeometry<TReal> & g, const int (&extent)[3], std::int64_t number)
{
  Coordinates  at = g.out.lower;
  std::int64_t rest = number;
  for (int i = 0; i < 3; ++i)
  {
    const std::int64_t n = (g.out.Extent(g.axes[i]) + extent[i] - 1) / extent[i];
    at.axis[g.axes[i]] += rest % n * extent[i];
    rest /= n;
  }
  for (int i = 0; i < MaxDimension - 3; ++i)
  {
    const std::int64_t n = g.out.Extent(g.others[i]);
    at.axis[g.others[i]] += rest % n;
    rest /= n;
  }
  return at;
}

/** Stores a thread's outputs of a tile that begins at `at`. */
template <typename TPixel, typename TReal, int VDepth, bool VIsWeighed>
__device__ __forceinline__ void
StorePatches(const PatchSums<TReal, VDepth> & sums, const PatchGeometry<TReal> & g, const Coordinates & at, int tx,
             int ty, int outputs, const RealOutput & out, const PatchEmpty<TPixel> & empty)
{
  Coordinates to = at;
  to.axis[g.axes[0]] += tx;
  to.axis[g.axes[1]] += ty;
  std::int64_t offset = out.voxels.Offset(to);
#pragma unroll
  for (int k = 0; k < VDepth; ++k)
  {
    if (k < outputs)
    {
      if (VIsWeighed && sums.weights[k] == TReal(0))
      {
        empty.Store(out, offset);
      }
      else
      {
        out.Store<TPixel>(offset, sums.weighted[k] / sums.weights[k]);
      }
    }
    offset += out.voxels.stride.axis[g.axes[2]];
  }
}

/** A block a tile of outputs, whose voxels have weights if `VIsWeighed`. `VRadius`: the patch's along each of the
 * windows' axes; -1: any. */
template <typename TPixel, typename TReal, int VRadius, int VDepth, bool VIsWeighed, bool VIsStaged = false>
__global__ void
__launch_bounds__(PatchWidth * PatchHeight, VIsStaged    ? 4
                                            : VIsWeighed ? 2
                                                         : 3)
  TiledMeansKernel(const __grid_constant__ Voxels<const TPixel> in, const __grid_constant__ Voxels<const TReal> given,
                   const __grid_constant__ RealOutput out, const __grid_constant__ PatchGeometry<TReal> g,
                   PatchEmpty<TPixel> empty)
{
  extern __shared__ __align__(16) unsigned char memory[];
  constexpr int                                 extent[3] = { PatchWidth, PatchHeight, VDepth };
  const int                                     tx = static_cast<int>(threadIdx.x) % PatchWidth;
  const int                                     ty = static_cast<int>(threadIdx.x) / PatchWidth;
  const std::int64_t                            tiles = CountPatchTiles(g, extent);
  for (std::int64_t number = blockIdx.x; number < tiles; number += gridDim.x)
  {
    const Coordinates    at = FindPatchTile(g, extent, number);
    const TPixel * const center = &in[at];
    const TReal * const  weightOfCenter = VIsWeighed ? &given[at] : nullptr;
    PatchTile<TReal>     tile{ { { in.box, g.axes[0], at.axis[g.axes[0]] },
                                 { in.box, g.axes[1], at.axis[g.axes[1]] },
                                 { in.box, g.axes[2], at.axis[g.axes[2]] } },
                               {},
                           true,
                               {},
                               {},
                           reinterpret_cast<TReal *>(memory) };
    int                  around[3];
#pragma unroll
    for (int i = 0; i < 3; ++i)
    {
      around[i] = g.search[i] + (VRadius < 0 ? g.patch[i] : VRadius);
      tile.stride[i] = in.stride.axis[g.axes[i]];
      tile.givenStride[i] = VIsWeighed ? given.stride.axis[g.axes[i]] : 0;
      tile.outputs[i] =
        static_cast<int>(min(static_cast<std::int64_t>(extent[i]), g.out.upper.axis[g.axes[i]] - at.axis[g.axes[i]]));
      tile.isWhole =
        tile.isWhole && tile.reach[i].before >= around[i] && tile.reach[i].after >= extent[i] - 1 + around[i];
    }
    PatchSums<TReal, VDepth> sums;
#pragma unroll
    for (int k = 0; k < VDepth; ++k)
    {
      sums.weighted[k] = 0;
      sums.weights[k] = 0;
    }
    PatchSight sight = PatchSight::Whole;
    if constexpr (VIsWeighed)
    {
      sight = SightOf(weightOfCenter, given.stride, g.axes, tile.reach, around, tile.outputs);
    }
    if constexpr (VIsStaged)
    {
      using Staged = StagedPatches<TReal, VRadius, VDepth>;
      auto & staged = *reinterpret_cast<Staged *>(memory);
      // No thread is still at the tile before.
      __syncthreads();
      staged.Fill(center, tile);
      __syncthreads();
      tile.memory = reinterpret_cast<TReal *>(memory + sizeof(Staged));
      tile.stride[0] = 1;
      tile.stride[1] = Staged::Width;
      tile.stride[2] = Staged::Width * Staged::Height;
      AddShifts<TReal, TReal, VRadius, VDepth, false, true>(
        &staged.voxels[Staged::Around][Staged::Around][Staged::Around], nullptr, tile, g, sums);
    }
    else if (sight == PatchSight::Whole)
    {
      AddShifts<TPixel, TReal, VRadius, VDepth, false>(center, nullptr, tile, g, sums);
    }
    if constexpr (VIsWeighed)
    {
      if (sight == PatchSight::Weights)
      {
        AddShifts<TPixel, TReal, VRadius, VDepth, true>(center, weightOfCenter, tile, g, sums);
      }
    }
    if (tx < tile.outputs[0] && ty < tile.outputs[1])
    {
      StorePatches<TPixel, TReal, VDepth, VIsWeighed>(sums, g, at, tx, ty, tile.outputs[2], out, empty);
    }
  }
}

WindowBoxes
BoxesOf(const NonLocalMeansOperation & operation, const Box & output, const Box & image)
{
  return WindowBoxes(output, image, operation.Reach(image.Extents()), operation.boundary.mode);
}

template <typename TReal>
PatchGeometry<TReal>
GeometryOf(const NonLocalMeansOperation & operation, const Coordinates & image, const Box & output)
{
  const Coordinates    reach = operation.Reach(image);
  const Coordinates    search = operation.Cut(operation.search, image);
  const Coordinates    patch = operation.Cut(operation.patch, image);
  PatchGeometry<TReal> geometry{};
  geometry.out = output;
  int found = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    // Axes without a window fill up to three.
    const bool needed = reach[a] > 0;
    int        rest = 0;
    for (int b = a + 1; b < MaxDimension; ++b)
    {
      rest += reach[b] > 0 ? 1 : 0;
    }
    if (found < 3 && (needed || found + rest < 3))
    {
      geometry.axes[found] = a;
      geometry.search[found] = static_cast<int>(search[a]);
      geometry.patch[found++] = static_cast<int>(patch[a]);
    }
    else
    {
      geometry.others[a - found] = a;
    }
  }
  geometry.twiceNoise = static_cast<TReal>(2 * operation.noise);
  geometry.inverse = static_cast<TReal>(1 / (operation.strength * operation.strength));
  return geometry;
}

/** How a chunk is computed. */
enum class PatchWay
{
  Staged,     ///< tiles whose voxels lie in shared memory, patches of radius 1
  RadiusOne,  ///< deep tiles, patches of radius 1 along all three axes
  RadiusTwo,  ///< the same of radius 2
  DeepTiles,  ///< deep tiles, patches of any radius
  FlatTiles,  ///< tiles of one plane
  EveryVoxel, ///< each voxel for itself
};

/** The outputs of a tile along the third axis. */
template <PatchWay VWay>
constexpr int PatchDepth = VWay == PatchWay::Staged      ? 7
                           : VWay == PatchWay::FlatTiles ? 1
                                                         : 8;

template <typename TReal>
using StagedTile = StagedPatches<TReal, 1, PatchDepth<PatchWay::Staged>>;

template <typename TReal>
PatchWay
FindPatchWay(const PatchGeometry<TReal> & g, bool isWeighed)
{
  // The shared memory that every device has without asking.
  constexpr std::size_t mostShared = 48 << 10;
  constexpr bool        isFloat = sizeof(TReal) == 4;
  constexpr int         depth = PatchDepth<PatchWay::DeepTiles>;
  const auto isRadius = [&](int r) { return isFloat && g.patch[0] == r && g.patch[1] == r && g.patch[2] == r; };
  // The weights that a tile sees are counted in 32 bits.
  const int tile[3] = { PatchWidth, PatchHeight, depth };
  double    seen = 1;
  for (int i = 0; i < 3; ++i)
  {
    seen *= tile[i] + 2.0 * (g.search[i] + g.patch[i]);
  }
  if (g.out.Extent(g.axes[2]) >= 4 && PatchTileBytes(g, depth, isWeighed) <= mostShared &&
      (!isWeighed || seen < (1 << 30)))
  {
    const bool isNear = std::max({ g.search[0], g.search[1], g.search[2] }) <= StagedTile<TReal>::Search;
    if (isRadius(1))
    {
      return isNear && !isWeighed ? PatchWay::Staged : PatchWay::RadiusOne;
    }
    return isRadius(2) && !isWeighed ? PatchWay::RadiusTwo : PatchWay::DeepTiles;
  }
  return !isWeighed && PatchTileBytes(g, 1, false) <= mostShared ? PatchWay::FlatTiles : PatchWay::EveryVoxel;
}

PatchWay
PatchWayOf(const NonLocalMeansOperation & operation, const ChunkShape & shape)
{
  const Coordinates image = shape.image.Extents();
  return UsesDouble(shape.inputKinds[0])
           ? FindPatchWay(GeometryOf<double>(operation, image, shape.outputBox), operation.isWeighed)
           : FindPatchWay(GeometryOf<float>(operation, image, shape.outputBox), operation.isWeighed);
}

/** Whether FindPatchWay gives this way for such numbers. */
template <PatchWay VWay, typename TReal, bool VIsWeighed>
constexpr bool
IsPatchWay()
{
  switch (VWay)
  {
    case PatchWay::Staged:
    case PatchWay::RadiusTwo:
      return sizeof(TReal) == 4 && !VIsWeighed;
    case PatchWay::RadiusOne:
      return sizeof(TReal) == 4;
    case PatchWay::FlatTiles:
      return !VIsWeighed;
    default:
      return true;
  }
}

/** `given`: the voxels' weights if `VIsWeighed`. */
template <PatchWay VWay, bool VIsWeighed, typename TPixel, typename TReal>
void
LaunchMeans(const KernelCall & call, const Voxels<const TPixel> & in, const Voxels<const TReal> & given,
            const RealOutput & out, const PatchGeometry<TReal> & g, const PatchEmpty<TPixel> & empty)
{
  if constexpr (VWay == PatchWay::EveryVoxel)
  {
    const unsigned int blocks = BlocksFor(call.output.box.NumberOfVoxels() / call.output.box.Extent(0), 1);
    NonLocalMeansKernel<VIsWeighed><<<blocks, 128, 0, StreamOf(call)>>>(in, given, out, g, empty);
    CheckLaunch("NonLocalMeansKernel");
  }
  else if constexpr (IsPatchWay<VWay, TReal, VIsWeighed>())
  {
    constexpr int     depth = PatchDepth<VWay>;
    constexpr bool    isStaged = VWay == PatchWay::Staged;
    constexpr int     radius = isStaged || VWay == PatchWay::RadiusOne ? 1 : VWay == PatchWay::RadiusTwo ? 2 : -1;
    const auto        kernel = TiledMeansKernel<TPixel, TReal, radius, depth, VIsWeighed, isStaged>;
    const std::size_t shared = PatchTileBytes(g, depth, VIsWeighed) + (isStaged ? sizeof(StagedTile<TReal>) : 0);
    AllowSharedMemory(kernel, shared);
    kernel<<<BlocksFor(CountPatchTiles(g, { PatchWidth, PatchHeight, depth }), 1),
             PatchWidth * PatchHeight,
             shared,
             StreamOf(call)>>>(in, given, out, g, empty);
    CheckLaunch("TiledMeansKernel");
  }
}

template <PatchWay VWay>
void
RunNonLocalMeans(const KernelCall & call)
{
  const auto &      operation = static_cast<const NonLocalMeansOperation &>(*call.operation);
  const WindowBoxes boxes = BoxesOf(operation, call.output.box, call.image);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Real = RealOf<Pixel>;
    char *                  scratch = static_cast<char *>(call.scratch);
    const auto              pixels = PadImage<Pixel>(call, boxes, operation.boundary, scratch);
    const RealOutput        out{ VoxelsOf<char>(call.output), call.output.kind };
    const auto              geometry = GeometryOf<Real>(operation, call.image.Extents(), call.output.box);
    const PatchEmpty<Pixel> empty(operation.emptyValue);
    if (operation.isWeighed)
    {
      KernelCall ofWeights = call;
      ofWeights.inputs[0] = call.inputs[1];
      WindowBoundary boundary = operation.boundary;
      boundary.constant = 1.0;
      const auto given = PadImage<Real>(ofWeights, boxes, boundary, scratch);
      LaunchMeans<VWay, true>(call, pixels, given, out, geometry, empty);
    }
    else
    {
      LaunchMeans<VWay, false>(call, pixels, Voxels<const Real>{}, out, geometry, empty);
    }
  });
}

std::size_t
ScratchOfNonLocalMeans(const Operation & operation, const ChunkShape & shape)
{
  const auto &      means = static_cast<const NonLocalMeansOperation &>(operation);
  const WindowBoxes boxes = BoxesOf(means, shape.outputBox, shape.image);
  const auto bytesOf = [&](PixelType kind) { return ContinuedBytes(boxes, means.boundary.mode, PixelSize(kind)); };
  return bytesOf(shape.inputKinds[0]) + (means.isWeighed ? bytesOf(shape.inputKinds[1]) : 0);
}

/** A pair of voxels costs about as much as eight bytes, and one more for each voxel of the patch's sides. */
double
CostOfNonLocalMeans(const Operation & operation, const ChunkShape & shape)
{
  const auto &      means = static_cast<const NonLocalMeansOperation &>(operation);
  const Coordinates search = means.Cut(means.search, shape.image.Extents());
  const Coordinates patch = means.Cut(means.patch, shape.image.Extents());
  double            pairs = 1;
  double            sides = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    pairs *= static_cast<double>(2 * search[a] + 1);
    sides += static_cast<double>(2 * patch[a] + 1);
  }
  return (8 + sides) * pairs * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

KernelChoice
ChooseNonLocalMeans(const Operation & operation, const ChunkShape & shape)
{
  const std::size_t scratch = ScratchOfNonLocalMeans(operation, shape);
  const double      cost = CostOfNonLocalMeans(operation, shape);
  switch (PatchWayOf(static_cast<const NonLocalMeansOperation &>(operation), shape))
  {
    case PatchWay::Staged:
      return { "staged tiles", RunNonLocalMeans<PatchWay::Staged>, scratch, cost };
    case PatchWay::RadiusOne:
      return { "tiles of radius 1", RunNonLocalMeans<PatchWay::RadiusOne>, scratch, cost };
    case PatchWay::RadiusTwo:
      return { "tiles of radius 2", RunNonLocalMeans<PatchWay::RadiusTwo>, scratch, cost };
    case PatchWay::DeepTiles:
      return { "deep tiles", RunNonLocalMeans<PatchWay::DeepTiles>, scratch, cost };
    case PatchWay::FlatTiles:
      return { "flat tiles", RunNonLocalMeans<PatchWay::FlatTiles>, scratch, cost };
    default:
      return { "voxels", RunNonLocalMeans<PatchWay::EveryVoxel>, scratch, cost };
  }
}

} // namespace

void
RegisterCudaNonLocalMeans(KernelRegistry & registry)
{
  registry.Register("nonlocalmeans", { MakeChoosingKernel<ChooseNonLocalMeans>(true) });
}

} // namespace chunkwise
