/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseDeconvolutionSteps_h
#define chunkwiseDeconvolutionSteps_h

#include "chunkwiseDeconvolutionRules.h"
#include "chunkwisePixelValue.h"
#include "chunkwiseStatisticsOperation.h"

#include <string>

// The steps of a deconvolution between its convolutions, as separate operations: for images that stay on a device.
namespace chunkwise
{

enum class DeconvolutionStep
{
  Ratio,      ///< inputs: H y; the measured image, NaN where its weight is 0; its weights, if they are not all 0 or 1
  Update,     ///< inputs: the correction, y, H^T w; the output is the next estimate
  Difference, ///< inputs: the next estimate, y; the output is the step between them
  Point       ///< inputs: the estimate and the last one; the output is the next y
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

  std::string
  GetKey() const
  {
    std::string key = isRatio ? " ratio" : " difference";
    key += isProjected ? " projected" : "";
    key += mayBeNegative ? " signed" : "";
    for (const double number : { background, least, leastSeen, relaxation, acceleration })
    {
      key += " " + PixelValue(number).ToText();
    }
    return key;
  }
};

/** Kernel "deconvolution.step": voxel by voxel, all images of one kind, float or double. */
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
  CheckKinds(const std::vector<PixelKind> &, PixelKind) const override
  {}
  void
  Validate(const Coordinates &) const override
  {}
};

/** Sums over the inputs of a step: of the rows' sums (RowSum) without rounding. Kernel `summarize` of
 * "deconvolution.sums". After Ratio: the divergence and the misfit. After Difference, whose third input is the step
 * before or missing: the squares of the change and of the estimate, the product of both steps and the square of the one
 * before. */
class DeconvolutionSumsOperation : public SummaryOperation
{
public:
  DeconvolutionStep       step{ DeconvolutionStep::Ratio };
  int                     inputs{ 2 };
  DeconvolutionParameters parameters;

  static constexpr int Most = 4;

  struct Summary
  {
    std::int64_t digits[Most][StatisticsSummary::SumDigits];
    double       special[Most];
  };

  static int
  CountSums(DeconvolutionStep step)
  {
    return step == DeconvolutionStep::Ratio ? 2 : 4;
  }
  std::string
  GetName() const override
  {
    return "deconvolution.sums";
  }
  std::string
  GetKey() const override
  {
    return GetName() + " " + std::to_string(static_cast<int>(step)) + " " + std::to_string(inputs) +
           parameters.GetKey();
  }
  int
  GetNumberOfInputs() const override
  {
    return inputs;
  }
  void
  Validate(const Coordinates &) const override
  {}
  std::size_t
  GetSummaryBytes(const Box &, const std::vector<PixelKind> &, PixelKind) const override
  {
    return sizeof(Summary);
  }
  void
  MergeSummary(SideData & total, const SideData & summary) const override
  {
    Summary a;
    Summary b;
    memcpy(&a, total.data(), sizeof(a));
    memcpy(&b, summary.data(), sizeof(b));
    for (int s = 0; s < Most; ++s)
    {
      for (int i = 0; i < StatisticsSummary::SumDigits; ++i)
      {
        a.digits[s][i] += b.digits[s][i];
      }
      Carry(a.digits[s], StatisticsSummary::SumDigits);
      a.special[s] += b.special[s];
    }
    memcpy(total.data(), &a, sizeof(a));
  }
};

/** The terms that one voxel adds to the sums of a step. */
struct DeconvolutionTerms
{
  double value[DeconvolutionSumsOperation::Most]{};

  template <typename T>
  CHUNKWISE_HOST_DEVICE static DeconvolutionTerms
  OfMisfit(const DeconvolutionParameters & p, T blurred, T measured, T weight)
  {
    DeconvolutionTerms terms;
    if (measured == measured && weight > 0)
    {
      const DeconvolutionMisfit misfit(p.isRatio, blurred, measured, weight, static_cast<T>(p.background));
      terms.value[0] = misfit.divergence;
      terms.value[1] = misfit.misfit;
    }
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
    default:
      return DeconvolutionPoint(p.mayBeNegative, first, second, static_cast<T>(p.acceleration));
  }
}

} // namespace chunkwise

#endif
