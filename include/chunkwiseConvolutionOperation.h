/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseConvolutionOperation_h
#define chunkwiseConvolutionOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The sum of a window's voxels times its weights (a correlation: weights are not mirrored). Kernel "convolution".
 *
 * Arithmetic, the same on every backend so that results are bit-identical:
 * - Accumulator: float for float, 8- and 16-bit integers; double for the others. Weights are given in double and
 * converted to it. sum = +0, then sum = fma(weight, voxel, sum) for the taps in the order of the weights, x fastest.
 * - In Renormalized mode taps beyond the edge are 0, and the sum is multiplied by W / W', W the sum of all
 * weights and W' that of the taps inside, both in double in the order of the weights, the quotient converted; not where
 * all taps are inside. A kernel that keeps constants inside the image so keeps them at its edge. A window with W' = 0
 * is refused by Validate.
 * - A kernel with W = 0 (|W| at most 1e-9 of the sum of its absolute weights: a derivative) cannot be scaled. In every
 *   mode it is applied to the differences from the voxel in its center, sum = fma(weight, voxel - center, sum), so that
 *   in Renormalized mode taps outside count as if they had the center's value. A constant gives 0 up to the edge.
 * - In every other mode the image is first continued beyond its edge.
 * - Integer results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT ConvolutionOperation : public WindowedOperation
{
public:
  static constexpr std::int64_t LargestKernel = 4096;

  Coordinates         radius{};
  std::vector<double> weights; ///< of the box of 2 radius + 1 voxels an axis, x fastest

  std::string
  GetName() const override
  {
    return "convolution";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override
  {
    return { radius, radius };
  }
  void
  Validate(const Coordinates & image) const override;

  /** Whether the kernel sums to 0, as the class comment says. */
  bool
  IsZeroSum() const;
  /** Factors for the positions near edges: one for each combination of NormRow of the axes, x fastest; 1 where all taps
   * are inside. */
  std::vector<double>
  GetNorms(const Coordinates & image) const;
  /** Rows of the table of norms along an axis. */
  std::int64_t
  GetNormRows(int a, std::int64_t n) const;
};

/** The row of the table of norms for position `i` along an axis. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
NormRow(std::int64_t i, std::int64_t n, std::int64_t radius)
{
  if (n <= 2 * radius + 1)
  {
    return i;
  }
  return i < radius ? i : i >= n - radius ? 2 * radius + 1 - (n - i) : radius;
}

} // namespace chunkwise

#endif
