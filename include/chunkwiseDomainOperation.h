/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDomainOperation_h
#define chunkwiseDomainOperation_h

#include "chunkwiseCompositeOperation.h"

#include <limits>

namespace chunkwise
{

class WienerOperation;

/** How it is decided which voxels are inside. */
enum class DomainKind
{
  All,    ///< nothing does, but perhaps NaN
  Mask,   ///< a further image of integers: where it is not 0
  Weights ///< a further image of float or double: how much each voxel counts, 0 and more
};

/** A windowed statistic of a part of the image: windows see only the voxels inside a mask, or each as much as its
 * weight. Kernel "domain".
 *
 * With x the image, w the weights (of a mask 0 or 1), and sums over the window of `window`, whose taps have the factors
 * k (1 for boxes):
 * - mean: sum(w x) / sum(w); sum: sum(w x); variance: sum(w (x - m)^2) / sum(w) with m the mean.
 * - Gaussian and convolution: K sum(k w x) / sum(k w), K the sum of all k. No k may be negative.
 *
 * - Varying convolution: the same at each voxel with the kernel that is there, K too. Not with WeightThenConvolve,
 * whose results are no averages: a mask is an image of zeros there.
 * - High pass: x minus its Gaussian; Wiener: the rule of WienerOperation with the mean and the variance. Both take the
 *   voxel x itself as it is, inside or not.
 * - maximum, minimum, range: of the voxels inside the mask; opening and closing: one after the other, the second of the
 *   results at voxels inside. They take no weights.
 * - median and percentile: of the n voxels of the window inside the mask number floor(fraction (n - 1)), in ascending
 *   order from 0 on, as where the image's edge cuts a window. NaN is outside, with `ignoresNan` or without. Entropy: of
 *   the histogram of the voxels inside. They take no weights.
 * - non-local means: NonLocalMeansOperation says what weights are to it.
 *
 * The boundary condition continues x and w alike; beyond the edge of Constant lies the constant with weight 1. A voxel
 * of weight 0 counts as if it were not there, whatever its value: NaN too. With `ignoresNan` NaN is outside. If sum(k
 * w) is not above 0, the window is empty and the result is `emptyValue`; for a sum it is 0. The result at a voxel
 * that is outside is computed as that of any other.
 *
 * Arithmetic, the same on every backend so that results are bit-identical: `window` computes numerators and
 * denominators, each by its own rules; what is outside is the number 0.
 * - A mask of nothing but ones gives the bits of `window` without a mask.
 * - Mean: sums of integers are exact, converted to double (float where all sums are below 2^24) and divided as doubles.
 *   Integer results of sums that double does not hold are refused. float and double are divided in their own precision.
 * - Products with weights are rounded once, in double; of float images in float.
 * - Variance: of 8- and 16-bit integers in a mask from exact sums, as VarianceOperation. Else from sums in double of x
 *   and x^2, (Q - S (S / n)) / n, 0 where that is negative: where the square of the mean is 10^12 times the variance,
 *   little of the variance is left. Windows wholly inside a mask have VarianceOperation's result, which has no such
 *   limit.
 * - Statistics of boxes from tables: sums by BoxStatisticOperation, quotients and variances as above; integers of up to
 *   32 bits in windows wholly inside a mask have its own variance. Whether a window is empty says the number of its
 *   voxels of weight above 0, since sums of weights are differences of a table's entries.
 * - Gaussian and convolution, directly: in the accumulator of `window`, K n / d. A denominator that lies between the
 *   least and the largest that weights of 1 give anywhere in the image (a few units in the last place around K) is K.
 * - Median and percentile: exact. Entropy: as EntropyOperation, with n voxels inside.
 * - Through transforms: in double; a denominator no further than 1e-12 K from K is K, one below 1e-6 K is no more than
 *   rounding may leave, and its window empty.
 * - ImageConvolutionOperation, directly: numerators in its accumulator, denominators and quotients in double; a
 *   denominator no further than (1e-12 + 2^-52 taps) K from K is K.
 *
 * Negative, infinite or NaN weights are an error when they are met. */
class Chunkwise_EXPORT DomainOperation : public CompositeOperation
{
public:
  /** Through transforms: how much of the whole a denominator may be off by rounding, and below which it is 0. */
  static constexpr double TransformRounding = 1e-12;
  static constexpr double TransformNoise = 1e-6;

  /** The operation that is computed without a mask: MeanOperation, VarianceOperation, BoxStatisticOperation,
   * WienerOperation, SeparableOperation, HighPassOperation, ConvolutionOperation, ImageConvolutionOperation, also
   * through transforms one after the other, VaryingConvolutionOperation, RangeOperation, RankOperation,
   * EntropyOperation, FootprintOperation without heights, NonLocalMeansOperation, or maxima and minima, also one after
   * the other. The mask or weights come after its inputs. */
  std::shared_ptr<const Operation> window;
  DomainKind                       domain{ DomainKind::Mask };
  bool                             ignoresNan{ false };
  /** The image's kind, on which the stages depend. */
  PixelType imageKind{ PixelType::UInt8 };
  /** Variances are NaN at the voxels that are outside, for statistics of what is inside. */
  bool insideAlone{ false };
  /** The result is 1 where the window is not empty and 0 where it is, in the place of the statistic. Not of varying
   * convolutions and non-local means. */
  bool marksSeen{ false };
  /** NaN, as an integer: 0. */
  PixelValue emptyValue{ std::numeric_limits<double>::quiet_NaN() };

  std::string
  GetName() const override
  {
    return "domain";
  }
  std::string
  GetKey() const override;
  int
  GetNumberOfInputs() const override
  {
    return window->GetNumberOfInputs() + (domain == DomainKind::All ? 0 : 1);
  }
  std::vector<Stage>
  GetStages() const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;

  bool
  HasWeights() const
  {
    return domain == DomainKind::Weights;
  }

  /** Ranks and entropies: windows of which voxels are counted, and so have no weights. */
  bool
  IsCounted() const;
  /** Whether NaN is outside: always where ranks are taken. */
  bool
  LeavesOutNan() const;

  /** The constants for dividing a numerator by a denominator. */
  struct Quotient
  {
    /** Denominators from `least` to `most` are `whole`; none if least > most. */
    double least{ 1 };
    double most{ 0 };
    double whole{ 1 };
    /** Denominators up to this are 0. */
    double nothing{ 0 };
    /** Float numerators and denominators are divided as doubles. */
    bool inDouble{ false };
    bool truncates{ false };
  };
  Quotient
  GetQuotient(const Coordinates & image) const;
  /** The window whose quotient is taken: the mean of variances, the Gaussian of a high pass. */
  std::shared_ptr<const Operation>
  GetAverage() const;
  /** Whether a variance is computed, and whether its root is the result. */
  bool
  TakesVariance() const;
  bool
  TakesRoot() const;
  /** Whether variances come from exact sums. */
  bool
  IsExact() const;

private:
  /** The stages of ranks, entropies and non-local means, which have no quotient; empty for other windows. */
  std::vector<Stage>
  GetStagesWithoutQuotient() const;
  class StageList;

  /** The kind that sums of a box are kept in. */
  PixelType
  SumKind() const;
  /** The window with another constant beyond the edge; of a box the sum, of voxels of a kind. */
  std::shared_ptr<const Operation>
  WindowOf(const PixelValue & constant, PixelType kind) const;
  /** The constant beyond the edge as a voxel of the image, and its square. */
  PixelValue
  GetConstant(bool squared) const;
};

/** The operation itself, or the window of a domain, if that is a Wiener filter; else nullptr. */
Chunkwise_EXPORT const WienerOperation *
FindWiener(const Operation & operation);
class EntropyOperation;
/** The entropy that an operation is, or sees a part of the image of; nullptr if it is none. */
Chunkwise_EXPORT const EntropyOperation *
FindEntropy(const Operation & operation);

} // namespace chunkwise

#endif
