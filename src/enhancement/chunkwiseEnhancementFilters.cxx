/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of filters that sharpen, flatten or smooth an image between its edges.
#include "chunkwiseBilateralOperation.h"
#include "chunkwiseEnhancementOperations.h"
#include "chunkwiseEnhancementRows.h"
#include "chunkwiseNonFlatExtremumOperation.h"
#include "chunkwiseFilterRows.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

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
                   Join({ radius }, WindowElementParameters()));
  row.group = "Flat morphology";
  row.output = DefaultOutput::InputUnlessSigned;
  row.givesIntegers = [](const FilterParameters &, const std::vector<std::string> &) { return true; };
  row.make = black ? MakeTopHat<true> : MakeTopHat<false>;
  return row;
}

/** Voxels of a Gaussian, for peers whose Gaussians end elsewhere. */
ParameterDescription
KernelRadiusParameter()
{
  ParameterDescription reach = RadiusParameter();
  reach.name = "KernelRadius";
  reach.option.clear();
  reach.help = "Voxels of the Gaussian to either side, instead of Cutoff";
  reach.required = false;
  return reach;
}

/** The weights of the Gaussian along each axis. */
void
SetGaussians(const CheckedParameters & p, const FilterImage & image, std::vector<double> (&weights)[MaxDimension])
{
  for (const int axis : p.SpatialAxes())
  {
    constexpr double largest = 65535;
    const double     sigma = p.RealsOverAxes("Sigma")[static_cast<std::size_t>(axis)] / UnitOf(p, image, axis);
    if (sigma > 0)
    {
      weights[axis] = SampledGaussianWeights(sigma, SampledRadius(p, image, axis, sigma, 0.0, largest));
    }
  }
}

FilterDescription
UnsharpRow()
{
  std::vector<ParameterDescription> gaussian = GaussianParameters();
  gaussian.front().required = true;
  FilterDescription row = EnhancementRow(
    "unsharp",
    "The image plus its difference from its Gaussian (unsharp mask)",
    Join(gaussian,
         { MakeNonNegative("Amount", "amount", "The factor of the difference", "0.5"),
           MakeNonNegative(
             "Threshold", "threshold", "Differences up to this one do not count, others by so much less", "0"),
           KernelRadiusParameter() }));
  row.output = DefaultOutput::Real;
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    auto smoothing = std::make_shared<SeparableOperation>();
    SetGaussians(p, image, smoothing->weights);
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
  FilterDescription row = EnhancementRow(
    "normalize",
    "Deviation from the mean over a box, in units of the standard deviation there",
    { RadiusParameter(),
      UpperRadiusParameter(),
      MakeNonNegative("LeastDeviation", "least-deviation", "Smaller standard deviations count as this one", "0") });
  row.output = DefaultOutput::Real;
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    auto operation = std::make_shared<LocalNormalizationOperation>();
    operation->radius = WindowRadius(p, image);
    operation->boundary = p.Boundary();
    operation->least = p.Real("LeastDeviation");
    return OverSides(p, image, operation);
  };
  return row;
}

FilterDescription
BilateralRow()
{
  std::vector<ParameterDescription> gaussian = GaussianParameters();
  gaussian.front().required = true;
  gaussian.back().defaultText = "3";
  ParameterDescription range = MakeNonNegative(
    "RangeSigma", "range-sigma", "The standard deviation of the Gaussian that weighs differences of values");
  range.required = true;
  range.aboveMinimum = true;
  range.exampleText = "20";
  gaussian.insert(gaussian.begin() + 1, range);
  gaussian.push_back(KernelRadiusParameter());
  FilterDescription row = EnhancementRow(
    "bilateral", "Mean of the voxels around that are near in space and in value: smooths, and keeps edges", gaussian);
  row.output = DefaultOutput::Real;
  AddSmoothingMask(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> std::shared_ptr<const Operation> {
    auto operation = std::make_shared<BilateralOperation>();
    SetGaussians(p, image, operation->weights);
    operation->rangeSigma = p.Real("RangeSigma");
    operation->boundary = p.Boundary();
    return InsideMask(p, image, operation);
  };
  return row;
}

FilterDescription
RollingBallRow()
{
  ParameterDescription radius =
    MakeNonNegative("Radius", "radius", "Radius in voxels, one number or one for each spatial axis");
  radius.type = ParameterType::Reals;
  radius.required = true;
  radius.exampleText = "50";
  ParameterDescription height = MakeNonNegative(
    "Height", "height", "The ball's semi-axis in units of the image's values; by default the first radius", "");
  height.exampleText = "50";
  ParameterDescription subtract =
    MakeParameter("SubtractBackground", "subtract", ParameterType::Flag, "The image minus its background");
  FilterDescription row;
  row.name = "rolling-ball";
  row.group = "Enhancement";
  row.title = "The background of an image, under which a ball or a paraboloid rolls";
  row.parameters = {
    radius,
    height,
    MakeChoice("Shape", "shape", "Ball, or the paraboloid with its curvature, which is fast", { "ball", "paraboloid" }),
    MakeChoice("Background",
               "background",
               "The opening, or the erosion alone, which lies lower and is scikit-image's",
               { "opening", "erosion" }),
    subtract,
    SpatialAxesParameter()
  };
  row.make = [](const CheckedParameters & p, const FilterImage &) -> std::shared_ptr<const Operation> {
    auto operation = std::make_shared<RollingBallOperation>();
    for (const int axis : p.SpatialAxes())
    {
      operation->extremum.semiAxes[axis] = p.RealsOverAxes("Radius")[static_cast<std::size_t>(axis)];
    }
    operation->extremum.height = p.Has("Height") ? p.Real("Height") : p.Reals("Radius").front();
    operation->extremum.shape = p.Choice("Shape") == "ball" ? StructuringShape::Ball : StructuringShape::Paraboloid;
    operation->erodesAlone = p.Choice("Background") == "erosion";
    operation->subtracts = p.Flag("SubtractBackground");
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
  filters.push_back(BilateralRow());
  filters.push_back(RollingBallRow());
  AddDiffusionFilters(filters);
  AddAdaptiveEqualizationFilter(filters);
}

} // namespace chunkwise
