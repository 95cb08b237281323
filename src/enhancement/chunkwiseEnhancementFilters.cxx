/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of filters that sharpen, flatten or smooth an image between its edges.
#include "chunkwiseDiffusionRows.h"
#include "chunkwiseEnhancementOperations.h"
#include "chunkwiseFilterRows.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

ParameterDescription
NonNegativeParameter(const std::string & name, const std::string & option, const std::string & help,
                     const std::string & standard)
{
  ParameterDescription number;
  number.name = name;
  number.option = option;
  number.type = ParameterType::Real;
  number.help = help;
  number.defaultText = standard;
  number.minimum = 0;
  return number;
}

FilterDescription
EnhancementRow(const std::string & name, const std::string & title, std::vector<ParameterDescription> parameters)
{
  FilterDescription row;
  row.name = name;
  row.group = "Enhancement";
  row.title = title;
  row.parameters = Join(std::move(parameters), BoundaryParameters());
  return row;
}

template <bool VBlack>
std::shared_ptr<const Operation>
MakeTopHat(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<TopHatOperation>();
  operation->black = VBlack;
  operation->first = MakeExtremum(p, image, p.Boundary(), !VBlack);
  operation->second = MakeExtremum(p, image, p.Boundary(), VBlack, true);
  return operation;
}

FilterDescription
TopHatRow(bool black)
{
  ParameterDescription radius = RadiusParameter();
  radius.required = false;
  radius.defaultText = "1";
  FilterDescription row =
    EnhancementRow(black ? "black-tophat" : "white-tophat",
                   black ? "Closing minus the image: dark structures smaller than the element"
                         : "The image minus its opening: bright structures smaller than the element",
                   Join({ radius }, ElementParameters()));
  row.group = "Flat morphology";
  row.output = DefaultOutput::InputUnlessSigned;
  row.givesIntegers = [](const FilterParameters &, const std::vector<std::string> &) { return true; };
  row.make = black ? MakeTopHat<true> : MakeTopHat<false>;
  return row;
}

FilterDescription
UnsharpRow()
{
  std::vector<ParameterDescription> gaussian = GaussianParameters();
  gaussian.front().required = true;
  ParameterDescription reach = RadiusParameter();
  reach.name = "KernelRadius";
  reach.option.clear();
  reach.help = "Voxels of the Gaussian to either side, instead of Cutoff";
  reach.required = false;
  FilterDescription row = EnhancementRow(
    "unsharp",
    "The image plus its difference from its Gaussian (unsharp mask)",
    Join(gaussian,
         { NonNegativeParameter("Amount", "amount", "The factor of the difference", "0.5"),
           NonNegativeParameter(
             "Threshold", "threshold", "Differences up to this one do not count, others by so much less", "0"),
           reach }));
  row.output = DefaultOutput::Real;
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    auto smoothing = std::make_shared<SeparableOperation>();
    for (const int axis : p.SpatialAxes())
    {
      constexpr double largest = 65535;
      const double     sigma = p.RealsOverAxes("Sigma")[static_cast<std::size_t>(axis)] / UnitOf(p, image, axis);
      if (sigma > 0)
      {
        smoothing->weights[axis] = SampledGaussianWeights(sigma, SampledRadius(p, image, axis, sigma, 0.0, largest));
      }
    }
    smoothing->boundary = p.Boundary();
    auto operation = std::make_shared<UnsharpOperation>();
    operation->smoothing = smoothing;
    operation->amount = p.Real("Amount");
    operation->threshold = p.Real("Threshold");
    return operation;
  };
  return row;
}

FilterDescription
LocalNormalizationRow()
{
  FilterDescription row =
    EnhancementRow("normalize",
                   "Deviation from the mean over a box, in units of the standard deviation there",
                   { RadiusParameter(),
                     NonNegativeParameter(
                       "LeastDeviation", "least-deviation", "Smaller standard deviations count as this one", "0") });
  row.output = DefaultOutput::Real;
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    auto operation = std::make_shared<LocalNormalizationOperation>();
    operation->radius = WindowRadius(p, image);
    operation->boundary = p.Boundary();
    operation->least = p.Real("LeastDeviation");
    return operation;
  };
  return row;
}

} // namespace

void
AddEnhancementFilters(std::vector<FilterDescription> & filters)
{
  filters.push_back(TopHatRow(false));
  filters.push_back(TopHatRow(true));
  filters.push_back(UnsharpRow());
  filters.push_back(LocalNormalizationRow());
  AddDiffusionFilters(filters);
}

} // namespace chunkwise
