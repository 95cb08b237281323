/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaFixedFft_h
#define chunkwiseCudaFixedFft_h

#include "chunkwiseCudaFftLines.cuh"

#include <string>
#include <vector>

// Transforms of lengths that are known at compile time, in float: two passes in registers with one exchange through
// shared memory between them.
namespace chunkwise
{

/** The factors of a transform: A points at a time, then B. Twiddles are [k][t], k below A and t below B:
 * exp(-2 pi i (t k + ofPoint t + ofFrequency k) / (A B)). */
struct FixedTwiddles
{
  int    a;
  int    b;
  double ofPoint;
  double ofFrequency;

  std::string
  GetKey() const;
  std::vector<float2>
  Make() const;
};

struct FixedColumns
{
  std::int64_t  length;
  FixedTwiddles there;
  FixedTwiddles back;

  void (*forward)(cudaStream_t stream, std::int64_t sets, const ColumnSet & set, float2 * data, const float2 * there);
  void (*inverse)(cudaStream_t stream, std::int64_t sets, const ColumnSet & set, float2 * data, const float2 * back);
  /** There, times the kernel, and back, tile by tile. The kernel's columns are those of its transform along the axes
   * before. */
  void (*product)(cudaStream_t stream, std::int64_t sets, const ColumnSet & set, const ColumnTiles & tiles,
                  float2 * data, const float2 * there, const float2 * back, const float2 * kernel, int kernelLive);
};

/** Rows of `length` real numbers, as half as many complex numbers x[n] - i x[n + length / 2] times exp(-pi i n /
 * length): their transform has the frequencies k + 1/4 of the row, k in [0, length / 2), of a row that repeats with the
 * opposite sign. All are complex numbers like any other, one for two voxels. Positions that a convolution wraps around
 * to are not kept. */
struct FixedRows
{
  std::int64_t  length;
  FixedTwiddles there;
  FixedTwiddles back;

  void (*forward)(cudaStream_t stream, const RowSource & source, const Spectrum & spectrum, const PlaneRange & range,
                  float2 * out, const float2 * there);
  void (*inverse)(cudaStream_t stream, const RowTarget & target, const Spectrum & spectrum, const PlaneRange & range,
                  const float2 * in, const float2 * back);
};

/** The shortest of at least `length` points, or nullptr. */
const FixedColumns *
FindFixedColumns(std::int64_t length);
const FixedRows *
FindFixedRows(std::int64_t length);

} // namespace chunkwise

#endif
