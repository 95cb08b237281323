/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNonLocalMeansOperation_h
#define chunkwiseNonLocalMeansOperation_h

#include "chunkwiseOperations.h"

#include <cstring>

namespace chunkwise
{

/** Non-local means: a voxel becomes the mean of the voxels around it, weighted by how much their surroundings resemble
 * its own. Kernel "nonlocalmeans".
 *
 * For a voxel p and each q in the box of the search radius around it, D is the mean of (f(p + o) - f(q + o))^2 over the
 * offsets o in the box of the patch radius. q has the weight exp(-max(D - 2 noise, 0) / strength^2). p itself has the
 * weight 1, unless its patch has a NaN or an infinity, whose difference from itself is NaN. The result is the weighted
 * mean of the f(q). In Renormalized mode q, p + o and q + o are those inside the image: patches are compared over what
 * both have. In every other mode the image is first continued beyond its edge.
 *
 * Arithmetic, the same on every backend so that results are bit-identical: in float for float, 8- and 16-bit integers,
 * in double for the others; squares are added in the order of their offsets, x fastest, weighted voxels and weights in
 * that of q; D is the sum over the number, which is subtracted from, then multiplied by 1 / strength^2; the weight is
 * NonLocalWeight of that as float. No two operations are fused. Integer results are rounded to nearest, ties to even,
 * and clamped. */
class Chunkwise_EXPORT NonLocalMeansOperation : public WindowedOperation
{
public:
  /** Pairs of voxels that a result may take. */
  static constexpr std::int64_t MostPairs = std::int64_t{ 1 } << 31;

  Coordinates search{};
  Coordinates patch{};
  double      strength{ 1 };
  double      noise{ 0 }; ///< the variance of the noise

  std::string
  GetName() const override
  {
    return "nonlocalmeans";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;

  /** Search and patch radius together, cut as a renormalized window is. */
  Coordinates
  Reach(const Coordinates & image) const;
  /** Either radius, cut as a renormalized window is. */
  Coordinates
  Cut(Coordinates radius, const Coordinates & image) const;
};

/** exp(-t) for t >= 0, within 3e-7 of it; 0 below 2^-126, NaN of NaN. */
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE float
NonLocalWeight(float t)
{
  const float exponent = t * -1.44269504f;
  // The sum has no bits after the point: rounded to nearest.
  const float bounded = exponent > -126.0f ? exponent : -126.0f;
  const float whole = (bounded + 12582912.0f) - 12582912.0f;
  const float part = bounded - whole;
  float       power = 0.000154035304f;
  power = power * part + 0.00133335581f;
  power = power * part + 0.00961812911f;
  power = power * part + 0.0555041087f;
  power = power * part + 0.240226507f;
  power = power * part + 0.693147181f;
  power = power * part + 1.0f;
  const std::int32_t bits = (static_cast<std::int32_t>(whole) + 127) << 23;
  float              scale = 0;
  memcpy(&scale, &bits, sizeof(scale));
  return exponent > -126.0f ? power * scale : exponent != exponent ? exponent : 0.0f;
}

/** The weight of a voxel whose patch's squares sum to `squares`, of `count` offsets. */
template <typename TReal>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TReal
PatchWeight(TReal squares, TReal count, TReal twiceNoise, TReal inverse)
{
  const TReal excess = squares / count - twiceNoise;
  return static_cast<TReal>(NonLocalWeight(static_cast<float>((excess < TReal(0) ? TReal(0) : excess) * inverse)));
}

} // namespace chunkwise

#endif
