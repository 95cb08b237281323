/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseVarianceOperation_h
#define chunkwiseVarianceOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The variance, or its square root, over a box: the mean square deviation from the window's mean, divided by the
 * number of its voxels. Kernel "variance".
 *
 * Arithmetic, the same on every backend so that results are bit-identical (chunkwiseMoments.h):
 * - 8- to 32-bit integers: the sums S of the n voxels and Q of their squares are exact; the variance is the exact
 * integer n Q - S^2, converted to double, over (double)n (double)n.
 * - float, and in double: double and 64-bit integers. Along the axes in ascending order, taps ascending. A position p
 * of a pass has the difference d_p of its window's mean from the voxel x_p in its center, and the window's variance
 * v_p; both are 0 before the first pass. With e_t = (x_t - x_p) + d_t over the n taps t of the pass, S = sum e_t, Q =
 * sum e_t e_t, V = sum v_t, all from +0: m = 1 / n, d = S m, v = (V + max(Q - S d, 0)) m, which is the mean of the
 * variances plus the variance of the means. Since only differences are summed, an offset common to all voxels does not
 * show. Differences of 64-bit integers are exact before they are converted.
 * - In Renormalized mode the taps are those inside the image. In every other mode the image is first continued beyond
 *   its edge, which gives the taps there their values.
 * - Integer results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT VarianceOperation : public BoxOperation
{
public:
  bool takesRoot{ false };

  std::string
  GetName() const override
  {
    return "variance";
  }
  std::string
  GetKey() const override
  {
    return BoxOperation::GetKey() + (takesRoot ? " root" : "");
  }
};

} // namespace chunkwise

#endif
