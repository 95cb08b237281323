/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePatchWeight_h
#define chunkwisePatchWeight_h

#include "chunkwiseTypes.h"

#include <cstdint>
#include <cstring>

// The weights of NonLocalMeansOperation.
namespace chunkwise
{

/** exp(-t) for t >= 0, within 3e-7 of it; 0 below 2^-126, NaN of NaN. Also of vectors of floats, with integers of the
 * same size. */
template <typename TFloat = float, typename TBits = std::uint32_t>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TFloat
NonLocalWeight(TFloat t)
{
  const TFloat exponent = t * -1.44269504f;
  const TFloat bounded = exponent <= -126.0f ? TFloat{} - 126.0f : exponent;
  // The sum has no bits after the point: rounded to nearest, and an integer in its lowest bits.
  const TFloat shifted = bounded + 12582912.0f;
  const TFloat part = bounded - (shifted - 12582912.0f);
  TFloat       power = part * 0.000154035304f + 0.00133335581f;
  power = power * part + 0.00961812911f;
  power = power * part + 0.0555041087f;
  power = power * part + 0.240226507f;
  power = power * part + 0.693147181f;
  power = power * part + 1.0f;
  TBits bits{};
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127u) << 23;
  TFloat scale{};
  memcpy(&scale, &bits, sizeof(scale));
  return exponent <= -126.0f ? TFloat{} : power * scale;
}

/** The weight of a voxel whose patch's squares sum to `squares`; `share` is the inverse of their number. */
template <typename TReal>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TReal
PatchWeight(TReal squares, TReal share, TReal twiceNoise, TReal inverse)
{
  const TReal excess = squares * share - twiceNoise;
  return static_cast<TReal>(NonLocalWeight(static_cast<float>((excess < TReal(0) ? TReal(0) : excess) * inverse)));
}

} // namespace chunkwise

#endif
