/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuDerivativeRows_h
#define chunkwiseCpuDerivativeRows_h

#include "chunkwiseCurvature.h"
#include "chunkwiseTensorMeasure.h"

#include <cstdint>

// Work of DerivativeOperation on rows, which are read and written up to the next multiple of MarchLine bytes.

namespace chunkwise
{

/** The derivatives of a field that a pass can make together: those of order 0, of an odd order, and of order 2. */
constexpr int DerivativesTogether = 3;

/** Whole windows: row `radius` of `rows` has the voxels, the others their taps. */
template <typename TReal>
struct WholeDerivatives
{
  const TReal * const * rows{ nullptr };
  std::int64_t          radius{ 0 };
  std::int64_t          n{ 0 };
  /** 2 radius + 1 weights of each, and where it goes; nullptr: not asked for. */
  const TReal * weights[DerivativesTogether]{};
  TReal *       results[DerivativesTogether]{};
};

/** Windows that the image's edge cuts: the taps there are. */
template <typename TReal>
struct CutDerivative
{
  const TReal * const * rows{ nullptr };
  std::int64_t          taps{ 0 };
  const TReal *         centers{ nullptr };
  std::int64_t          n{ 0 };
  /** The weight of each tap; or of each voxel of a line, tap t of voxel i has weights[t * width + i]. */
  const TReal * weights{ nullptr };
  bool          isLine{ false };
  /** Whether taps count by their difference from the voxel. */
  bool    differs{ false };
  TReal * result{ nullptr };
};

template <typename TReal>
struct DerivativeFunctions
{
  void (*whole)(const WholeDerivatives<TReal> & step);
  void (*cut)(const CutDerivative<TReal> & step);
  /** out[i]: the root of the sum of squares of `count` rows, `gap` apart; out may be the first of them. */
  void (*magnitude)(const TReal * rows, std::int64_t gap, int count, std::int64_t n, TReal * out);
  /** out[i]: the sum of the rows, in the same way. */
  void (*sum)(const TReal * rows, std::int64_t gap, int count, std::int64_t n, TReal * out);
  /** The eigenvalues of matrices of `size` rows, of which `rows` have the upper triangles: ascending, or by magnitude;
   * out may be the first of the rows, `gap` apart too. */
  void (*eigenvalues)(const TReal * rows, std::int64_t gap, int size, bool byMagnitude, std::int64_t n, TReal * out);
  /** The direction, all eigenvectors, coherence, cornerness or diffusivity. */
  void (*tensor)(const TReal * rows, std::int64_t gap, int size, DerivativeResult result,
                 const TensorParameters & parameters, std::int64_t n, TReal * out);
  /** rows c = 0, 1, ... become the products of the last `size` of `size` (size + 1) / 2 rows, which are `gap` apart. */
  void (*products)(TReal * rows, std::int64_t gap, int size, std::int64_t n);
  /** A measure of the eigenvalues. */
  void (*measure)(const TReal * rows, std::int64_t gap, int size, const HessianMeasureParameters & parameters,
                  std::int64_t n, TReal * out);
  /** A curvature, in `size` dimensions; rows have the gradient and the upper triangle of the Hessian. */
  void (*curvature)(const TReal * rows, std::int64_t gap, int size, const CurvatureParameters & parameters,
                    std::int64_t n, TReal * out);
};

/** The functions compiled for one instruction set. All sets give the same bits. */
struct DerivativeLevel
{
  DerivativeFunctions<float>  float32;
  DerivativeFunctions<double> float64;
};

/** For the level that GetCpuLevel() names. */
const DerivativeLevel &
GetDerivativeLevel();

} // namespace chunkwise

#endif
