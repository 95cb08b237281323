/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLocalThresholdOperation_h
#define chunkwiseLocalThresholdOperation_h

#include "chunkwiseCompositeOperation.h"

namespace chunkwise
{

enum class LocalThresholdMethod : std::int32_t
{
  Mean,
  Median,
  Gaussian,
  Niblack,
  Sauvola,
  Phansalkar,
  Bernsen
};

/** The numbers in the formulas of local thresholds, see LocalThresholdOperation. */
struct LocalThresholdNumbers
{
  LocalThresholdMethod method{ LocalThresholdMethod::Mean };
  double               k{ 0.2 };
  double               r{ 127.5 };
  double               offset{ 0 };
  double               p{ 2 };
  double               q{ 10 };
  double               contrast{ 15 };
  double               level{ 128 };
};

/** 1 where a voxel is above a threshold that its window gives, 0 elsewhere; or that threshold. Kernel "localthreshold",
 * which ends with "localthreshold.levels.voxels", the thresholds, and "localthreshold.voxels", the comparison; or
 * MomentThresholdOperation does both, if the threshold follows from the mean and the standard deviation, there is no
 * mask, and the image has float or 8- or 16-bit integers.
 *
 * Statistics of windows are kept as float for float, 8- and 16-bit integers, as double for the others, and each
 * operation is rounded to that type. With the mean m and the standard deviation s of the window, thresholds are
 * - Mean, Median, Gaussian: that of the window, minus `offset`. The Gaussian has `weights`.
 * - Niblack: m - k s. W. Niblack, An Introduction to Digital Image Processing, 1986.
 * - Sauvola: m (1 + k (s / r - 1)). J. Sauvola, M. Pietikainen, "Adaptive document image binarization", Pattern
 *   Recognition 33(2), 2000.
 * - Phansalkar: m (1 + p exp(-q m / (2 r)) + k (s / r - 1)); the exponential is NonLocalWeight's, 1 where m is
 *   negative. N. Phansalkar, S. More, A. Sabale, M. Joshi, "Adaptive local thresholding for detection of nuclei in
 *   diversity stained cytology images", International Conference on Communications and Signal Processing, 2011.
 * - Bernsen: the middle between the window's least value and its largest, which is itself above; where they differ by
 *   less than `contrast`, -infinity if that middle is at least `level`, else infinity. J. Bernsen, "Dynamic
 *   thresholding of gray-level images", International Conference on Pattern Recognition, 1986.
 *
 * NaN is 0, as are voxels whose threshold is NaN. With a mask windows see only the voxels inside it, by the rules of
 * DomainOperation, and the result is 0 outside; thresholds are those of the window everywhere. */
class Chunkwise_EXPORT LocalThresholdOperation
  : public BoxCompositeOperation
  , public LocalThresholdNumbers
{
public:
  /** The weights of the Gaussian: see SeparableOperation. */
  std::vector<double> weights[MaxDimension];
  /** The second input is an image of integers: voxels are outside where it is 0. */
  bool masked{ false };
  /** The image's kind, on which the stages in a mask depend. */
  PixelType imageKind{ PixelType::UInt8 };
  /** The output has the thresholds. */
  bool givesThresholds{ false };

  std::string
  GetName() const override
  {
    return "localthreshold";
  }
  std::string
  GetKey() const override;
  int
  GetNumberOfInputs() const override
  {
    return masked ? 2 : 1;
  }
  std::vector<Stage>
  GetStages() const override;
  /** The stages with one for each statistic of a window. */
  std::vector<Stage>
  GetStagesOfStatistics() const;
  /** Any output. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;

private:
  std::shared_ptr<const Operation>
  InMask(std::shared_ptr<const Operation> window) const;
};

/** A stage of LocalThresholdOperation: thresholds of Niblack, Sauvola or Phansalkar, or the classes by them, from the
 * sums of windows in one go. Kernel "momentthreshold".
 *
 * Images of float and of 8- and 16-bit integers. The sums S of a window's voxels and Q of their squares are those of
 * MeanOperation over images of double; the squares are exact. With its divisor n, rounded in double after each
 * operation: i = 1 / n, m = S i, v = Q i - m m, and 0 in place of a v of at most 2^-44 m m, which rounding alone may
 * make. The rules of LocalThresholdOperation get m and the root of v in float. */
class Chunkwise_EXPORT MomentThresholdOperation
  : public BoxOperation
  , public LocalThresholdNumbers
{
public:
  bool givesThresholds{ false };

  std::string
  GetName() const override
  {
    return "momentthreshold";
  }
  std::string
  GetKey() const override;
  /** Any output. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

} // namespace chunkwise

#endif
