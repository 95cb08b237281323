/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNonLocalMeansOperation_h
#define chunkwiseNonLocalMeansOperation_h

#include "chunkwiseOperations.h"

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
 * in double for the others. The squares are added along the slowest axis, these sums along the next, and so on to x,
 * each in ascending order of the offset; what is not inside is not added. D is the sum times the rounded inverse of the
 * number of offsets. It is the same for (p, q) as for (q, p), so that backends may compute it once for both. 2 noise is
 * subtracted, and the rest multiplied by 1 / strength^2; the weight is exp(-t) of that as float, computed within 3e-7
 * as src/arithmetic/chunkwisePatchWeight.h says. Weighted voxels and weights are added in this order: p itself; then
 * for each shift after 0 in the order of voxels, x fastest, p + shift and p - shift. No two operations are fused.
 * Integer results are rounded to nearest, ties to even, and clamped.
 *
 * With `isWeighed` a second input, of the arithmetic's precision, gives each voxel a weight w of 0 or more (beyond the
 * edge of Constant 1), and D is the sum of w(p + o) w(q + o) (f(p + o) - f(q + o))^2 over the sum C of
 * w(p + o) w(q + o): patches are compared where both have voxels that count. The weight of q is multiplied by w(q),
 * that of p by w(p); it is 0 where C is 0. Voxels of weight 0 are not seen, whatever their value. If all weights are 0,
 * the result is `emptyValue`. The product of the weights is multiplied by the square, the sums of both are made
 * alike, and the inverse of C, where that is finite, is that of their number. With weights of 1 all bits are those
 * without. */
class Chunkwise_EXPORT NonLocalMeansOperation : public WindowedOperation
{
public:
  /** Pairs of voxels that a result may take. */
  static constexpr std::int64_t MostPairs = std::int64_t{ 1 } << 31;

  Coordinates search{};
  Coordinates patch{};
  double      strength{ 1 };
  double      noise{ 0 }; ///< the variance of the noise
  bool        isWeighed{ false };
  PixelValue  emptyValue{ 0.0 };

  std::string
  GetName() const override
  {
    return "nonlocalmeans";
  }
  std::string
  GetKey() const override;
  int
  GetNumberOfInputs() const override
  {
    return isWeighed ? 2 : 1;
  }
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

} // namespace chunkwise

#endif
