/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDiffusionRules_h
#define chunkwiseDiffusionRules_h

#include "chunkwiseHessianMeasure.h"

// The arithmetic of DiffusionOperation for a voxel, or for vectors of voxels. No operation is contracted, so both give
// the same bits.
namespace chunkwise
{

/** exp(-t) of floats for t >= 0, within 2e-7 of it relatively; 0 beyond 87. `TBits` are unsigned 32-bit integers. */
template <typename TVector, typename TBits>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
FloatDecayOf(TVector t)
{
  const TVector bounded = t > 87.0F ? TVector{} + 87.0F : t;
  // The sum has no bits after the point: rounded to nearest, and an integer in its lowest bits.
  const TVector shifted = bounded * -1.44269504F + 12582912.0F;
  const TVector n = shifted - 12582912.0F;
  const TVector x = (-bounded - n * 0.693359375F) - n * -2.12194440e-4F;
  TVector       power = x * (1.0F / 720) + 1.0F / 120;
  power = power * x + 1.0F / 24;
  power = power * x + 1.0F / 6;
  power = power * x + 0.5F;
  power = power * x + 1.0F;
  power = power * x + 1.0F;
  TBits bits{};
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 127) << 23;
  TVector scale{};
  memcpy(&scale, &bits, sizeof(scale));
  return t > 87.0F ? TVector{} : power * scale;
}

/** The part of the squared upwind gradient along an axis: towards the side from which the level set comes. */
template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
UpwindSquareOf(TVector forward, TVector backward, TVector speed)
{
  const TVector zero{};
  const TVector rising = speed > zero ? forward : backward;
  const TVector falling = speed > zero ? backward : forward;
  const TVector high = rising > zero ? rising : zero;
  const TVector low = falling < zero ? falling : zero;
  return high * high + low * low;
}

/** The flux of coherence-enhancing diffusion, times the scale, of sums over both voxels. */
template <typename TVector, typename TReal>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
CoherenceFluxOf(TVector direct, TVector mixed, TReal scale)
{
  return (direct + mixed) * (scale * TReal(0.5));
}

/** The factor that brings a dual vector of this length back to `weight`. */
template <typename TVector, typename TReal>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
DualFactorOf(TVector length, TReal weight)
{
  return length > weight ? weight / length : TVector{} + TReal(1);
}

/** The next u of total variation; `share` is 1 / (1 + step). */
template <typename TVector, typename TReal>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
NextPrimalOf(TVector old, TVector divergence, TVector image, TReal step, TReal share)
{
  return (old + (divergence + image) * step) * share;
}

} // namespace chunkwise

#endif
