/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMaskedRows_h
#define chunkwiseCpuMaskedRows_h

#include "chunkwiseCpuRowSight.h"

// Work on rows that windows in a mask need beside what windows do.

namespace chunkwise
{

/** Work of NonLocalMeansOperation on rows in a mask, whose voxels outside are NaN and those inside are not: the same as
 * PatchFunctions with weights of 0 and 1. */
template <typename TReal>
struct MaskedPatchFunctions
{
  /** As PatchFunctions, but a pair with a voxel outside adds 0. */
  void (*squares)(TReal * out, const TReal * a, const TReal * b, std::int64_t stride, std::int64_t taps,
                  std::int64_t n);
  /** out[i] = a[i] b[i] + a[i + stride] b[i + stride] + ... of bytes that are 0 or 1: up to 255 pairs. */
  void (*countPairs)(std::uint8_t * out, const std::uint8_t * a, const std::uint8_t * b, std::int64_t stride,
                     std::int64_t taps, std::int64_t n);
  /** out[i] = in[i] + in[i + stride] + ... */
  void (*addCounts)(std::uint8_t * out, const std::uint8_t * in, std::int64_t stride, std::int64_t taps,
                    std::int64_t n);
  /** out[i] = PatchWeight with the inverse of counts[i] + counts[i + 1] + ... as the share; 0 where that is 0. These
   * numbers are left in pairs[]. */
  void (*weigh)(TReal * out, const TReal * in, const std::uint8_t * counts, TReal * pairs, std::int64_t taps,
                TReal twiceNoise, TReal inverse, std::int64_t n);
  /** As PatchFunctions; voxels outside have the weight 0. */
  void (*add)(TReal * weighted, TReal * weights, const TReal * const * w, const TReal * const * voxels, int count,
              std::int64_t n);
};

/** Work of medians on rows of keys in a mask. */
template <typename TKey>
struct MaskedKeyFunctions
{
  /** Bytes of the mask become 0 and 1, and 0 where the key has the bits of a NaN if keys are those `ofReals`; keys
   * outside become `hidden`. */
  void (*hide)(TKey * keys, std::uint8_t * mask, TKey hidden, bool ofReals, std::int64_t n);
  /** raises[i]: half of how many of `taps` voxels a window that sees seen[i] of them lacks; 0 if it sees none. Returns
   * whether any is not 0; `empties`: whether some window sees none. */
  bool (*raise)(TKey * raises, const std::uint8_t * seen, std::int64_t taps, std::int64_t n, bool & empties);
};

/** The functions compiled for one instruction set. All sets give the same bits. */
struct MaskedRowLevel
{
  MaskedPatchFunctions<float>       patch32;
  MaskedPatchFunctions<double>      patch64;
  MaskedKeyFunctions<std::uint8_t>  keys8;
  MaskedKeyFunctions<std::uint16_t> keys16;
  MaskedKeyFunctions<std::uint32_t> keys32;
  MaskedKeyFunctions<std::uint64_t> keys64;
  PairFunctions<float>              pairs;
  /** values[i] = 0 where the mask is 0 */
  void (*hide)(float * values, const std::uint8_t * mask, std::int64_t n);
  /** out[i] = sums[i] / counts[i], `empty` where the count is 0. Returns whether all sums are finite. */
  bool (*mean)(float * out, const float * sums, const std::uint8_t * counts, float empty, std::int64_t n);
  /** Whether all numbers are finite. */
  bool (*areFinite)(const float * numbers, std::int64_t n);
  /** out[i] = `empty` where d is not above `nothing`, n where it is from `least` to `most`, else n / d * whole. Returns
   * how many are empty. */
  std::int64_t (*divide)(float * out, const float * n, const float * d, float least, float most, float whole,
                         float nothing, float empty, std::int64_t count);
};

template <typename TKey>
const MaskedKeyFunctions<TKey> &
MaskedKeyFunctionsOf(const MaskedRowLevel & level)
{
  if constexpr (sizeof(TKey) == 1)
  {
    return level.keys8;
  }
  else if constexpr (sizeof(TKey) == 2)
  {
    return level.keys16;
  }
  else if constexpr (sizeof(TKey) == 4)
  {
    return level.keys32;
  }
  else
  {
    return level.keys64;
  }
}

/** For the level that GetCpuLevel() names. */
const MaskedRowLevel &
GetMaskedRowLevel();

} // namespace chunkwise

#endif
