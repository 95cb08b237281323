/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaFftLines_cuh
#define chunkwiseCudaFftLines_cuh

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseReducer.h"

#include <cuda_runtime.h>

// The places of the lines of a convolution's transforms: rows of images, rows and columns of spectra.
namespace chunkwise
{

/** Columns of a block are contiguous and aligned: rows are padded to this many frequencies. */
constexpr std::int64_t RowUnit = 16;

/** The kind and lines of an image, in roles. */
struct RowSource
{
  const void * data;
  PixelType    kind;
  BoundaryMode mode;
  double       constant;            ///< is subtracted
  std::int64_t lower[MaxDimension]; ///< image index of the first position
  std::int64_t count[MaxDimension];
  std::int64_t boxLower[MaxDimension];
  std::int64_t boxUpper[MaxDimension];
  std::int64_t stride[MaxDimension];
  std::int64_t n[MaxDimension];
  int          lacking; ///< 1: the first row is the second of a pair, whose first one is 0
  /** Each position of a row is multiplied by its weight; nullptr: 1. For fixed rows. */
  const float * weights;
};

struct RowTarget
{
  void *       data;
  PixelType    kind;
  double       scale;
  double       constant; ///< is added
  std::int64_t count[MaxDimension];
  std::int64_t lower[MaxDimension]; ///< image index of the first position
  std::int64_t stride[MaxDimension];
  std::int64_t n[MaxDimension];
  std::int64_t kernel[MaxDimension];
  std::int64_t below[MaxDimension];
  const void * factors; ///< nullptr: none
  std::int64_t factorStride[MaxDimension];
  std::int64_t crop;
  std::int64_t keptFrom; ///< rows of role 1 that are stored; others are the second of a pair
  std::int64_t keptTo;
  /** Adds to the target, of floats, what each position of a row has, times its weight; nullptr: 1. For fixed rows
   * without factors. */
  bool          adds;
  const float * weights;
};

/** The array of half spectra. */
struct Spectrum
{
  std::int64_t half;
  std::int64_t pitch;
  std::int64_t rows;
  std::int64_t planes;
};

/** Planes [first, first + count) of all batches' planes together. */
struct PlaneRange
{
  std::int64_t first;
  std::int64_t count;
};

/** Columns of an array: `columns` side by side, a multiple of RowUnit, points `pointStride` apart. */
struct ColumnSet
{
  std::int64_t columns;
  std::int64_t pointStride;
  std::int64_t outerStride; ///< from one set of columns to the next
  std::int64_t live;        ///< points of the input
  std::int64_t from;        ///< points kept of an inverse transform
  std::int64_t to;
};

/** The tiles of columns, which are transformed one after the other. Positions of input and output are those of the
 * block; the input lies `pad` points behind the output, so that no tile overwrites what the next one reads. */
struct ColumnTiles
{
  int tile;   ///< outputs of a tile
  int output; ///< of the block
  int input;
  int before; ///< inputs before the first output
  int below;  ///< taps below an output, and above it
  int above;
  int pad;
  int keptFrom; ///< outputs that are written, from the array's first point on
  int keptTo;

  struct Part
  {
    int in; ///< point of the array
    int live;
    int from; ///< points kept of the transform
    int to;
    int out; ///< point of the array
  };
  __host__ __device__ Part
  At(int first) const
  {
    const int end = first + tile < output ? first + tile : output;
    const int begin = first + before > below ? first + before - below : 0;
    const int last = end + before + above < input ? end + before + above : input;
    const int from = first > keptFrom ? first : keptFrom;
    const int to = end < keptTo ? end : keptTo;
    const int crop = first + before - begin + above;
    return { begin + pad, last - begin, crop + from - first, crop + to - first, from - keptFrom };
  }
};

/** Row `r` of the planes' rows, of which each plane has count[1]: its place in the roles. */
__device__ inline void
PlaceOfRow(std::int64_t r, const std::int64_t * count, const PlaneRange & range, std::int64_t * at)
{
  const std::int64_t planes = range.first + r / count[1];
  const std::int64_t batch = planes / count[2];
  at[0] = 0;
  at[1] = r % count[1];
  at[2] = planes % count[2];
  at[3] = batch % count[3];
  at[4] = batch / count[3];
}

/** The first position of the row in the spectrum. */
__device__ inline std::int64_t
SpectrumRow(const Spectrum & spectrum, const std::int64_t * at, const std::int64_t * count)
{
  const std::int64_t batch = at[4] * count[3] + at[3];
  return ((batch * spectrum.planes + at[2]) * spectrum.rows + at[1]) * spectrum.pitch;
}

/** The places of a row of the image and of its half spectrum; -1 if there are not so many rows. */
__device__ inline void
FindSource(const RowSource & source, const Spectrum & spectrum, const PlaneRange & range, std::int64_t r,
           long long & from, long long & to)
{
  from = -1;
  to = -1;
  if (r < range.count * source.count[1])
  {
    std::int64_t at[MaxDimension];
    PlaceOfRow(r, source.count, range, at);
    from = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      const std::int64_t mapped =
        MapTap(source.lower[a] + at[a], source.boxLower[a], source.boxUpper[a], source.n[a], source.mode);
      from += (mapped - source.boxLower[a]) * source.stride[a];
    }
    to = SpectrumRow(spectrum, at, source.count);
  }
}

/** The places of a row's half spectrum, its pixels and its factors; -1 if there are not so many rows. */
__device__ inline void
FindTarget(const RowTarget & target, const Spectrum & spectrum, const PlaneRange & range, std::int64_t r,
           long long & from, long long & to, long long & factor)
{
  from = -1;
  to = -1;
  factor = 0;
  if (r < range.count * target.count[1])
  {
    std::int64_t at[MaxDimension];
    PlaceOfRow(r, target.count, range, at);
    to = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      to += at[a] * target.stride[a];
      factor += target.factorStride[a] *
                ConvolutionFactors::State(target.lower[a] + at[a], target.n[a], target.kernel[a], target.below[a]);
    }
    from = SpectrumRow(spectrum, at, target.count);
    to = at[1] < target.keptFrom || at[1] >= target.keptTo ? -1 : to;
  }
}

/** Row `r` of rows that are counted so that each plane has an even number of them, `lacking` before its first one: one
 * that there is not is beyond. */
__device__ inline std::int64_t
RowOfPair(std::int64_t r, std::int64_t rows, int lacking, PlaneRange & plane)
{
  const std::int64_t even = (rows + lacking + 1) / 2 * 2;
  const std::int64_t place = r / even;
  const std::int64_t row = r - place * even - lacking;
  const bool         exists = place < plane.count && row >= 0 && row < rows;
  plane = { plane.first + place, 1 };
  return exists ? row : rows;
}

/** ConvolutionFactors::State along a row in 32 bits: farther from an edge than the kernel is long, the distance does
 * not matter. */
struct RowStates
{
  int position;
  int below;
  int beyond;

  /** `x`: image index of position 0; -2^30 or more. */
  __device__
  RowStates(std::int64_t x, std::int64_t n, std::int64_t kernel, std::int64_t below64)
  {
    constexpr std::int64_t far = std::int64_t{ 1 } << 30;
    const bool             fits = n > kernel;
    position = static_cast<int>(x < far ? x : far);
    below = fits ? static_cast<int>(below64) : static_cast<int>(far);
    beyond = fits ? static_cast<int>(kernel) - static_cast<int>(n - x < far ? n - x : far) : -static_cast<int>(far);
  }
  __device__ int
  At(int i) const
  {
    return max(min(position + i, below), beyond + i);
  }
};

/** The first point of line 0 of this block. */
__device__ inline std::int64_t
ColumnBegin(const ColumnSet & set, int lines, std::int64_t & column)
{
  const std::int64_t perSet = set.columns / lines;
  const std::int64_t outer = blockIdx.x / perSet;
  column = (blockIdx.x - outer * perSet) * lines;
  return outer * set.outerStride + column;
}

} // namespace chunkwise

#endif
