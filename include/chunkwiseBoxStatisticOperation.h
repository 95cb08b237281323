/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBoxStatisticOperation_h
#define chunkwiseBoxStatisticOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

enum class BoxStatistic
{
  Sum,
  Mean,
  Variance,
  StandardDeviation
};

Chunkwise_EXPORT const char *
BoxStatisticName(BoxStatistic statistic);

/** Whether sums are taken in integers: of squares too if `squares`. */
constexpr bool
SumsAreExact(PixelType kind, bool squares)
{
  return !IsFloatingPoint(kind) && !(squares && PixelSize(kind) == 8);
}

/** A statistic of the box around each voxel, cut at the image's edge, from summed-area tables: the time does not depend
 * on the box, whose radius may differ from voxel to voxel. Kernel "boxstatistic".
 *
 * With `variable` a second image of the same extent, of any integer kind, has the radius: the box of a voxel whose
 * value there is r has the radius min(max(r, 0), radius[a]) along axis a. So an axis with radius 0 takes no part, and
 * `radius` bounds what a voxel reads.
 *
 * The tables are made chunk by chunk in scratch memory and never leave the device. They begin anew at the borders of
 * blocks of BlockLength voxels, at least as long as a box, so that a box meets at most two blocks along an axis. Since
 * what a table holds is then no more than a block, numbers stay small, and a NaN poisons no more than a block; and
 * where blocks are anchored to the image, the sums of floating-point numbers do not depend on chunks.
 *
 * Arithmetic, the same on every backend so that results are bit-identical:
 * - Sums of integers are exact, modulo 2^32, 2^64 or 2^128, whichever holds the box's sum: so it matters neither where
 *   tables begin nor in which order they are added. Means, and variances of up to 32 bits, are those of MeanOperation
 *   and VarianceOperation, bit for bit.
 * - float and double are summed in double, as are 64-bit integers for variances, each rounded to double first.
 *   Variances also sum the squares, computed in double. Blocks begin at multiples of BlockLength from the image's first
 *   voxel.
 *   - x, if it takes part: within the block, of segments of SegmentColumns columns, of groups of two columns a, b. The
 *     groups' sums t = a + b are scanned in a segment: for d = 1, 2, 4, ... below the number of groups, all at once,
 *     t[g] = t[g - d] + t[g] where g >= d. C is the sum of the segments before, from +0 by C' = C + t[last]. Column a
 *     has X = (C + t[g - 1]) + a, column b has X = (C + t[g - 1]) + (a + b), where t[-1] is +0. Columns beyond the
 * image count as +0. If x takes no part, X is the voxel.
 *   - Then each further axis that takes part, in ascending order, as a running sum over the block.
 *   - The box's sum, from the table's entries or what the next axis gives, axis by axis, the first the outermost:
 *     (E - P) + L, where L is at the box's last position, P at the one before its first, unless that is in another
 *     block, and E at the last of the block of its first position, unless that is also the last position's. A missing
 *     term is +0.
 * - From sums S and Q in double of n voxels: the mean is S / n, the variance (Q - S (S / n)) / n, 0 where that is
 *   negative. An entry is off by a few half units in the last place of the sum of the block's magnitudes, or squares,
 *   and by no more than about 12 plus the lengths of the block along the further axes. So an offset of all voxels
 *   shows in the variance: where the square of the mean is 10^12 times the variance, little of the variance is left.
 *   VarianceOperation has no such limit.
 * - Results are converted as in MeanOperation and VarianceOperation. */
class Chunkwise_EXPORT BoxStatisticOperation : public BoxOperation
{
public:
  static constexpr int SegmentColumns = 64;
  static constexpr int LeastBlockColumns = 256;
  static constexpr int LeastBlockLength = 64;
  static constexpr int LeastThirdLength = 32;

  BoxStatistic statistic{ BoxStatistic::Mean };
  bool         variable{ false };
  /** Blocks begin at multiples of BlockLength from the image's first voxel: without that a chunk needs no more than the
   * radius around it, but only exact sums are then the same in every chunk. */
  bool anchored{ true };

  std::string
  GetName() const override
  {
    return "boxstatistic";
  }
  std::string
  GetKey() const override;
  int
  GetNumberOfInputs() const override
  {
    return variable ? 2 : 1;
  }
  /** The radius; anchored tables reach back to the begin of a block. */
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;

  bool
  TakesSquares() const
  {
    return statistic == BoxStatistic::Variance || statistic == BoxStatistic::StandardDeviation;
  }
  /** The length of blocks along axis `a`: the smallest power of two that is at least the longest box, and
   * LeastBlockColumns along x, LeastBlockLength along others, LeastThirdLength along the last of three axes that take
   * part, where chunks are cut: most boxes meet one block. */
  std::int64_t
  BlockLength(int a, const Coordinates & image) const;
  /** Voxels of the largest box. */
  std::int64_t
  LargestBox(const Coordinates & image) const;
};

} // namespace chunkwise

#endif
