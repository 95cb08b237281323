/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuFft_h
#define chunkwiseCpuFft_h

#include "ChunkwiseExport.h"
#include "chunkwiseTransformProvider.h"

#include <cstdint>

namespace chunkwise
{

/** Numbers that are transformed side by side. A cell is that many real parts, then as many imaginary parts: 128 bytes,
 * aligned to 64. */
template <typename T>
constexpr std::int64_t FftLanes = 64 / static_cast<std::int64_t>(sizeof(T));
template <typename T>
constexpr std::int64_t FftCell = 2 * FftLanes<T>;

/** The passes of a transform of one length; made by MakeFftPlan. */
template <typename T>
struct FftPlan
{
  std::int64_t length;
  const int *  radices;
  int          passes;
  const T *    twiddles;
  const void * ofFftw[2]; ///< FFTW's plans there and back, if it transforms
};

/** Positions of a line of cells, `stride` cells apart. */
template <typename T>
struct FftLine
{
  T *          cells;
  std::int64_t stride;
};

/** The functions compiled for one instruction set. */
template <typename T>
struct FftFunctions
{
  /** Transforms [0, live) of `in`, followed by zeros, and stores the frequencies (or positions) [from, to) to `out`,
   * the first at its begin. Nothing is scaled. `in` and `out` may be the same; `work` has twice the length in cells. */
  void (*transform)(const FftPlan<T> & plan, FftLine<T> in, std::int64_t live, FftLine<T> out, std::int64_t from,
                    std::int64_t to, bool inverse, T * work);
  /** cells[i] *= factors[i * factorStride]: complex products. */
  void (*multiply)(T * cells, const T * factors, std::int64_t factorStride, std::int64_t n);
  /** Lane l of `part` (0: real, 1: imaginary) of cell x becomes rows[l][x], for x in [0, n). nullptr: 0. */
  void (*spread)(T * cells, int part, const T * const * rows, std::int64_t n);
  /** The inverse of spread; n positions. Rows that are nullptr are not wanted. */
  void (*collect)(const T * cells, int part, T * const * rows, std::int64_t n);
  /** Splits the transform of a + i b, a and b real rows in lanes, into twice the half spectra of a and b, and stores
   * them with the frequencies in lanes: rowsA[l] + cell for frequencies cell * lanes ... Unused frequencies are 0.
   * `work`: a cell for each lane. */
  void (*separate)(const T * cells, std::int64_t length, T * const * rowsA, T * const * rowsB);
  /** The inverse, without the factor of two: half spectra of a and b to the spectrum of a + i b. */
  void (*combine)(T * cells, std::int64_t length, const T * const * rowsA, const T * const * rowsB);
};

/** For the level that GetCpuLevel() names; with transforms by FFTW, whose module must be there, if that is asked for.
 */
template <typename T>
Chunkwise_EXPORT const FftFunctions<T> &
                       GetFftFunctions(TransformProvider provider = TransformProvider::Own);

/** For the functions of the same provider. FFTW has plans for any length, the other provider for products of 2, 3, 5
 * and 7. Valid for the process' lifetime. Thread-safe. */
template <typename T>
Chunkwise_EXPORT const FftPlan<T> &
                       GetFftPlan(std::int64_t length, TransformProvider provider = TransformProvider::Own);

} // namespace chunkwise

#endif
