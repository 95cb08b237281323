/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuEnhancementRows_h
#define chunkwiseCpuEnhancementRows_h

#include <cstdint>

// Work of equalization, rolling balls and bilateral filters on rows, which are read and written up to the next multiple
// of 64 bytes.

namespace chunkwise
{

/** A row, its taps along one axis, at distances of -radius, ..., radius times `stride`, and their weights. */
template <typename TReal>
struct BilateralStep
{
  const TReal * here{ nullptr };
  /** The tap at the distance 0. */
  const TReal * taps{ nullptr };
  std::int64_t  stride{ 1 };
  std::int64_t  radius{ 0 };
  const TReal * weights{ nullptr };
  TReal         weightOfRow{ 1 };
  /** 1 / (2 rangeSigma^2). */
  TReal        inverse{ 0 };
  TReal *      deviations{ nullptr };
  TReal *      sums{ nullptr };
  std::int64_t n{ 0 };
};

/** Functions that depend on the numbers in which voxels are computed. */
template <typename TReal>
struct EnhancementFunctions
{
  /** The bins of voxels, see LevelOf and BinOf. */
  void (*findBins)(std::uint16_t * bins, const TReal * row, TReal lower, TReal scale, TReal inverse, std::int64_t n);
  /** least = the minimum of it and of the taps at distances t = -radius, ..., radius times `stride`, plus heights[|t|].
   */
  void (*lower)(TReal * least, const TReal * taps, std::int64_t stride, const TReal * heights, std::int64_t radius,
                std::int64_t n);
  /** Adds weights, and deviations times weights. */
  void (*weigh)(const BilateralStep<TReal> & step);
};

/** The functions compiled for one instruction set. All sets give the same bits. */
struct EnhancementLevel
{
  EnhancementFunctions<float>  float32;
  EnhancementFunctions<double> float64;
  /** MixOf each number. */
  void (*mix)(float * out, const float * before, const float * after, float part, std::int64_t n);
};

/** For the level that GetCpuLevel() names. */
const EnhancementLevel &
GetEnhancementLevel();

/** Those for a type of numbers. */
template <typename TReal>
const EnhancementFunctions<TReal> &
GetEnhancementFunctions()
{
  if constexpr (sizeof(TReal) == 4)
  {
    return GetEnhancementLevel().float32;
  }
  else
  {
    return GetEnhancementLevel().float64;
  }
}

} // namespace chunkwise

#endif
