/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseEnhancementOperations_h
#define chunkwiseEnhancementOperations_h

#include "chunkwiseCompositeOperation.h"

namespace chunkwise
{

/** Top-hats: the image minus its opening, or its closing minus the image. Kernel "tophat".
 *
 * The difference is that of DifferenceOperation: exact for integers, clamped if the output cannot hold it. */
class Chunkwise_EXPORT TopHatOperation : public CompositeOperation
{
public:
  /** The two extrema, in their order. */
  std::shared_ptr<const Operation> first;
  std::shared_ptr<const Operation> second;
  /** Closing minus image. */
  bool black{ false };

  std::string
  GetName() const override
  {
    return "tophat";
  }
  std::string
  GetKey() const override
  {
    return CompositeOperation::GetKey() + (black ? " black" : " white");
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckExactOutput(GetName(), inputs.at(0), output);
  }
  std::vector<Stage>
  GetStages() const override;
};

/** The image plus its difference from itself smoothed. Kernel "unsharp", which ends with "unsharp.voxels" (voxel,
 * smoothed voxel -> output).
 *
 * The smoothed value s has the bits that the separable operation gives in its accumulator's kind, to which the voxel x
 * and both parameters are converted: with d = x - s the result is x + e * amount, each operation rounded; e is d -
 * threshold above the threshold, d + threshold below -threshold, and 0 between. Integer results are rounded to nearest,
 * ties to even, and clamped. */
class Chunkwise_EXPORT UnsharpOperation : public CompositeOperation
{
public:
  std::shared_ptr<const SeparableOperation> smoothing;
  double                                    amount{ 0.5 };
  double                                    threshold{ 0 };

  std::string
  GetName() const override
  {
    return "unsharp";
  }
  std::string
  GetKey() const override
  {
    return CompositeOperation::GetKey() + " " + ExactText(amount) + " " + ExactText(threshold);
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
  std::vector<Stage>
  GetStages() const override;
};

/** Deviations from the mean over a box, in units of the standard deviation there. Kernel "localnormalization", which
 * ends with "localnormalization.voxels" (voxel, mean, standard deviation -> output).
 *
 * Mean m and standard deviation s are those of MeanOperation and VarianceOperation in float for float, 8- and 16-bit
 * integers, in double for the others, to which the voxel x and `least` are converted: (x - m) / max(s, least), and 0
 * times x - m if that is 0. */
class Chunkwise_EXPORT LocalNormalizationOperation : public BoxCompositeOperation
{
public:
  /** Smaller standard deviations count as this one. */
  double least{ 0 };

  std::string
  GetName() const override
  {
    return "localnormalization";
  }
  std::string
  GetKey() const override
  {
    return BoxCompositeOperation::GetKey() + " " + ExactText(least);
  }
  std::vector<Stage>
  GetStages() const override;
};

/** The rules for a voxel. */
template <typename TReal>
CHUNKWISE_HOST_DEVICE TReal
UnsharpOf(TReal voxel, TReal smoothed, TReal amount, TReal threshold)
{
  const TReal difference = voxel - smoothed;
  const bool  isSmall = difference <= threshold && -difference <= threshold;
  const TReal beyond = difference > 0 ? difference - threshold : difference + threshold;
  return voxel + (isSmall ? TReal{ 0 } : beyond) * amount;
}

template <typename TReal>
CHUNKWISE_HOST_DEVICE TReal
LocallyNormalized(TReal voxel, TReal mean, TReal deviation, TReal least)
{
  const TReal unit = deviation > least ? deviation : least;
  return unit > 0 ? (voxel - mean) / unit : (voxel - mean) * TReal{ 0 };
}

} // namespace chunkwise

#endif
