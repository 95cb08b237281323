/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuDeconvolutionRows_h
#define chunkwiseCpuDeconvolutionRows_h

#include "ChunkwiseExport.h"

#include <cstdint>

namespace chunkwise
{

/** Steps of a deconvolution on rows of n voxels, with the arithmetic of chunkwiseDeconvolutionRules.h. Sums are those
 * of RowSum: voxel i adds to lane `first` + i. */
template <typename T>
struct DeconvolutionRowFunctions
{
  /** Measured voxels that count for nothing become 0, and so do their weights; isKnown: all others weigh 1. */
  void (*hide)(T * measured, T * weights, bool isKnown, double saturation, std::int64_t n);
  /** The sums of the weights, and of the weights times measured - background. */
  void (*mean)(const T * measured, const T * weights, T background, std::int64_t first, double * size, double * light,
               std::int64_t n);
  /** DeconvolutionRatio, in place, and the sums of DeconvolutionMisfit. */
  void (*ratio)(bool isRatio, T * blurred, const T * measured, const T * weights, T background, T least,
                std::int64_t first, double * divergence, double * misfit, std::int64_t n);
  /** RichardsonLucyUpdate with the divisor `seen`, and 0 where that is at most leastSeen. `after` may be `before`. */
  void (*update)(T * after, const T * before, const T * correction, const T * seen, double leastSeen, std::int64_t n);
  /** The sums of the squares of after - before, and of after. */
  void (*change)(const T * after, const T * before, std::int64_t first, double * change, double * size, std::int64_t n);
  /** step = after - before, and the sums of its product with the step before and of the square of that, unless they are
   * nullptr. */
  void (*step)(T * step, const T * after, const T * before, std::int64_t first, double * steps, double * oldStep,
               std::int64_t n);
};

/** The functions compiled for one instruction set. All sets give the same bits. */
struct DeconvolutionRowLevel
{
  DeconvolutionRowFunctions<float>  float32;
  DeconvolutionRowFunctions<double> float64;
};

/** For the level that GetCpuLevel() names. */
Chunkwise_EXPORT const DeconvolutionRowLevel &
GetDeconvolutionRowLevel();

template <typename T>
const DeconvolutionRowFunctions<T> &
GetDeconvolutionRowFunctions()
{
  if constexpr (sizeof(T) == 4)
  {
    return GetDeconvolutionRowLevel().float32;
  }
  else
  {
    return GetDeconvolutionRowLevel().float64;
  }
}

} // namespace chunkwise

#endif
