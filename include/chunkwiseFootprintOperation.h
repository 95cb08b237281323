/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFootprintOperation_h
#define chunkwiseFootprintOperation_h

#include "chunkwiseElementOperation.h"

namespace chunkwise
{

enum class FootprintStatistic
{
  Mean,
  Sum,
  Variance,
  StandardDeviation,
  Rank
};

/** A statistic over any set of offsets: windows that reach farther to one side, and footprints. Kernel "footprint".
 *
 * The time is that of all taps. Boxes around their voxel have faster kernels (MeanOperation, VarianceOperation,
 * RankOperation). Arithmetic, the same on every backend so that results are bit-identical:
 * - Taps are those of the element, x fastest, in ascending order.
 * - Sums of integers are exact, those of floats are in double, from +0 in that order; means by MeanOf.
 * - The variance of 8- to 32-bit integers is that of VarianceOperation. Others are converted to double: m = S / n, v =
 * V / n with V the sum of (x - m)^2 over the taps.
 * - Ranks are those of RankOperation.
 * - In Renormalized mode a window without a voxel gives NaN, of integers 0; its sum is 0. */
class Chunkwise_EXPORT FootprintOperation : public ElementOperation
{
public:
  FootprintStatistic statistic{ FootprintStatistic::Mean };
  /** Integer means of integers are rounded toward zero. */
  bool truncates{ false };
  /** The rank: from 0, the minimum, to 1, the maximum. */
  double fraction{ 0.5 };

  std::string
  GetName() const override
  {
    return "footprint";
  }
  std::string
  GetKey() const override
  {
    return ElementOperation::GetKey() + " " + std::to_string(static_cast<int>(statistic)) +
           (truncates ? " truncates " : " ") + ExactText(fraction);
  }
  void
  CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const override;
};

} // namespace chunkwise

#endif
