/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionSteps_h
#define chunkwiseDeconvolutionSteps_h

#include "chunkwiseDeconvolutionOperation.h"
#include "chunkwiseDeconvolutionRules.h"
#include "chunkwisePixelValue.h"

#include <string>

// The steps of a deconvolution between its convolutions, as separate operations: for images that stay on a device.
namespace chunkwise
{

enum class DeconvolutionStep
{
  Ratio,      ///< inputs: H y; the measured image, NaN where its weight is 0; its weights, if they are not all 0 or 1
  Update,     ///< inputs: the correction, y, H^T w; the output is the next estimate
  Difference, ///< inputs: the next estimate, y, and for sums the step before; the output is the step between them
  Point,      ///< inputs: the estimate and the last one; the output is the next y
  Known,      ///< inputs: the measured image and its weights as of Ratio; the output are weights that are 0 there
  Start       ///< input: H^T w; the output is parameters.start where enough is seen
};

struct DeconvolutionParameters
{
  bool   isRatio{ true };
  bool   isProjected{ false };
  bool   mayBeNegative{ false };
  double background{ 0 };
  double least{ 0 };
  double leastSeen{ 0 }; ///< H^T w of voxels that are seen is above it
  double relaxation{ 1 };
  double acceleration{ 0 };
  double start{ 0 };

  static DeconvolutionParameters
  Of(const DeconvolutionOperation & operation)
  {
    DeconvolutionParameters parameters;
    parameters.isRatio = operation.method == DeconvolutionMethod::RichardsonLucy;
    parameters.isProjected = operation.method == DeconvolutionMethod::ProjectedLandweber;
    parameters.mayBeNegative = operation.method == DeconvolutionMethod::Landweber;
    parameters.background = operation.background;
    parameters.least = operation.leastExpected;
    parameters.leastSeen = operation.GetLeastSeen();
    parameters.relaxation = operation.relaxation;
    return parameters;
  }
  std::string
  GetKey() const
  {
    std::string key = isRatio ? " ratio" : " difference";
    key += isProjected ? " projected" : "";
    key += mayBeNegative ? " signed" : "";
    for (const double number : { background, least, leastSeen, relaxation, acceleration, start })
    {
      key += " " + PixelValue(number).ToText();
    }
    return key;
  }
};

/** The sums of steps: of the rows' sums (RowSum), without rounding. After Ratio: the divergence and the misfit. After
 * Update, whose second input is the point before: the squares of the change and of the estimate. After Difference,
 * whose third input is the step before: these, the product of both steps and the square of the one before. */
struct DeconvolutionSums
{
  static constexpr int Most = 4;

  std::int64_t digits[Most][StatisticsSummary::SumDigits];
  double       special[Most];

  static constexpr int
  Count(DeconvolutionStep step)
  {
    return step == DeconvolutionStep::Difference ? 4 : 2;
  }
  void
  Merge(const DeconvolutionSums & other)
  {
    for (int s = 0; s < Most; ++s)
    {
      for (int i = 0; i < StatisticsSummary::SumDigits; ++i)
      {
        digits[s][i] += other.digits[s][i];
      }
      Carry(digits[s], StatisticsSummary::SumDigits);
      special[s] += other.special[s];
    }
  }
};

/** Kernel "deconvolution.step": voxel by voxel, all images of one kind, float or double. The output may be one of the
 * inputs. If KernelCall::sideOut is there, the kernel adds the step's sums to it, DeconvolutionSums; then the output
 * has whole rows. */
class DeconvolutionStepOperation : public Operation
{
public:
  DeconvolutionStep       step{ DeconvolutionStep::Ratio };
  int                     inputs{ 2 };
  DeconvolutionParameters parameters;

  std::string
  GetName() const override
  {
    return "deconvolution.step";
  }
  std::string
  GetKey() const override
  {
    return GetName() + " " + std::to_string(static_cast<int>(step)) + " " + std::to_string(inputs) +
           parameters.GetKey();
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  int
  GetNumberOfInputs() const override
  {
    return inputs;
  }
  void
  CheckKinds(const std::vector<PixelType> &, PixelType) const override
  {}
  void
  Validate(const Coordinates &) const override
  {}
};

/** The terms that one voxel adds to the sums of a step. */
struct DeconvolutionTerms
{
  double value[DeconvolutionSums::Most]{};

  template <typename T>
  CHUNKWISE_HOST_DEVICE static DeconvolutionTerms
  OfMisfit(const DeconvolutionParameters & p, T blurred, T measured, T weight)
  {
    DeconvolutionTerms        terms;
    const bool                counts = measured == measured && weight > 0;
    const DeconvolutionMisfit misfit(p.isRatio, blurred, measured, weight, static_cast<T>(p.background));
    terms.value[0] = counts ? misfit.divergence : 0.0;
    terms.value[1] = counts ? misfit.misfit : 0.0;
    return terms;
  }
  /** `last` is 0 where there was no step before. */
  template <typename T>
  CHUNKWISE_HOST_DEVICE static DeconvolutionTerms
  OfChange(T after, T before, T last)
  {
    DeconvolutionTerms terms;
    const double       change = static_cast<double>(after) - static_cast<double>(before);
    terms.value[0] = change * change;
    terms.value[1] = static_cast<double>(after) * static_cast<double>(after);
    const T now = after - before;
    terms.value[2] = static_cast<double>(now) * static_cast<double>(last);
    terms.value[3] = static_cast<double>(last) * static_cast<double>(last);
    return terms;
  }
};

/** The terms of a step at one voxel, from its inputs and its output. */
template <typename T>
CHUNKWISE_HOST_DEVICE DeconvolutionTerms
DeconvolutionTermsOf(DeconvolutionStep step, const DeconvolutionParameters & p, T first, T second, T third, T output)
{
  return step == DeconvolutionStep::Ratio    ? DeconvolutionTerms::OfMisfit(p, first, second, third)
         : step == DeconvolutionStep::Update ? DeconvolutionTerms::OfChange(output, second, T(0))
                                             : DeconvolutionTerms::OfChange(first, second, third);
}

/** The result of a step at one voxel. */
template <typename T>
CHUNKWISE_HOST_DEVICE T
DeconvolutionVoxel(DeconvolutionStep step, const DeconvolutionParameters & p, T first, T second, T third)
{
  switch (step)
  {
    case DeconvolutionStep::Ratio:
      return second == second
               ? DeconvolutionRatio(
                   p.isRatio, first, second, third, static_cast<T>(p.background), static_cast<T>(p.least))
               : T(0);
    case DeconvolutionStep::Update:
      if (!p.isRatio)
      {
        return LandweberUpdate(p.isProjected, second, first, static_cast<T>(p.relaxation));
      }
      return static_cast<double>(third) > p.leastSeen ? RichardsonLucyUpdate(second, first, third) : T(0);
    case DeconvolutionStep::Difference:
      return first - second;
    case DeconvolutionStep::Known:
      return first == first ? second : T(0);
    case DeconvolutionStep::Start:
      return !p.isRatio || static_cast<double>(first) > p.leastSeen ? static_cast<T>(p.start) : T(0);
    default:
      return DeconvolutionPoint(p.mayBeNegative, first, second, static_cast<T>(p.acceleration));
  }
}

} // namespace chunkwise

#endif
