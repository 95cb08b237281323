/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuMaskedRows_h
#define chunkwiseCpuMaskedRows_h

#include <cstdint>

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

/** The functions compiled for one instruction set. All sets give the same bits. */
struct MaskedRowLevel
{
  MaskedPatchFunctions<float>  patch32;
  MaskedPatchFunctions<double> patch64;
  /** pairs[2 i] = voxels[i] and pairs[2 i + 1] = 1 where the mask is not 0, else both 0. */
  void (*pair)(float * pairs, const float * voxels, const std::uint8_t * mask, std::int64_t n);
  /** out[i] = n where d is from `least` to `most`, else n / d * whole, of n numerators and denominators side by side.
   * Returns how many denominators are not above `nothing`. */
  std::int64_t (*divide)(float * out, const float * pairs, float least, float most, float whole, float nothing,
                         std::int64_t n);
};

/** For the level that GetCpuLevel() names. */
const MaskedRowLevel &
GetMaskedRowLevel();

} // namespace chunkwise

#endif
