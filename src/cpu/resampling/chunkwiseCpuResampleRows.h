/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuResampleRows_h
#define chunkwiseCpuResampleRows_h

#include <cstdint>

namespace chunkwise
{

template <typename TReal>
struct SplineSums;

/** Points of a row of the output along one axis of the image, and their weights. */
template <typename TReal>
struct ResampleLine
{
  /** Not nullptr: the points themselves, of which any may lie where voxels are missing. */
  const double * points{ nullptr };
  /** Points from the one to the other are within the edges. */
  double valueBelow{ 0 };
  double valueFrom{ 0 };
  /** The first taps of which all are there. */
  std::int64_t from{ 0 };
  std::int64_t to{ 0 };
  /** Set to 1 for points whose taps are not all there; their index counts from 0 along the axis. */
  unsigned char * isAlone{ nullptr };
  /** The point of voxel x is slope * x + base, moved to [lowest, highest]. */
  double       slope;
  double       base;
  std::int64_t begin; ///< the first x
  double       lowest;
  double       highest;
  /** The first voxel of the tile along the axis, and the distance of its voxels. */
  std::int64_t tile;
  std::int64_t stride;
  /** [k * VRow + j]: the weights of voxel j; the taps, and the tap whose value is the base of the sum. */
  TReal *      weights;
  std::int64_t taps;
  std::int64_t below;
};

/** Voxels that are made together, and the most taps that are found by the functions below. */
constexpr std::int64_t ResampleRow = 64;

/** Work of resampling on rows, compiled for one instruction set. Sums have the order that ResampleOperation says. */
template <typename TReal>
struct ResampleFunctions
{
  /** Coefficients of splines (SplineSums) of n voxels, whose neighbors along the axis are `stride` numbers away. */
  void (*filter)(TReal * out, const TReal * row, std::int64_t stride, const SplineSums<TReal> & sums, std::int64_t n);
  /** out[j] = rows[below][j] + sum over other k of weights[k] (rows[k][j] - rows[below][j]) */
  void (*across)(TReal * out, const TReal * const * rows, const TReal * weights, std::int64_t taps, std::int64_t below,
                 std::int64_t n);
  /** The same along x: the taps of out[j] are in[first[j] + k], their weights are weights[k * stride + j]. */
  void (*along)(TReal * out, const TReal * in, const std::int32_t * first, const TReal * weights, std::int64_t stride,
                std::int64_t taps, std::int64_t below, std::int64_t n);
  /** Adds the offset of the first of 2, or 4 of the spline, to index[j], for n <= ResampleRow voxels. */
  void (*findTaps)(const ResampleLine<TReal> & line, std::int32_t * index, std::int64_t n);
  /** n <= ResampleRow voxels from their taps along three axes: in[index[j] + ...]. */
  void (*gather)(TReal * out, const TReal * in, const std::int32_t * index, const ResampleLine<TReal> * lines,
                 std::int64_t n);
};

struct ResampleLevel
{
  ResampleFunctions<float>  float32;
  ResampleFunctions<double> float64;
};

} // namespace chunkwise

#endif
