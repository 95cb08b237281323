/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of thresholds.
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseLocalThresholdOperation.h"
#include "chunkwisePassesOperation.h"
#include "chunkwiseReconstructionRows.h"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseThresholdEstimate.h"
#include "chunkwiseThresholdOperation.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace chunkwise
{

namespace
{

bool
HasMask(const FilterImage & image)
{
  return std::find(image.additionalInputs.begin(), image.additionalInputs.end(), "MaskImage") !=
         image.additionalInputs.end();
}

std::shared_ptr<const Operation>
MakeThreshold(const CheckedParameters & p, const FilterImage & image)
{
  auto         operation = std::make_shared<ThresholdOperation>();
  const auto & names = GetThresholdMethodNames();
  operation->method =
    static_cast<ThresholdMethod>(std::find(names.begin(), names.end(), p.Choice("Method")) - names.begin());
  operation->classes = static_cast<int>(p.Integer("NumberOfClasses"));
  operation->bins = p.Has("NumberOfBins") ? static_cast<int>(p.Integer("NumberOfBins")) : 0;
  operation->masked = HasMask(image);
  if (operation->IsRange())
  {
    operation->hasLower = p.Has("Lower");
    operation->hasUpper = p.Has("Upper");
    for (const char * const name : { "Lower", "Upper" })
    {
      if (p.Has(name) && !p.Value(name).IsFinite())
      {
        ThrowParameterError(name, p.Value(name).ToText() + " is not a finite number");
      }
    }
    if (operation->hasLower && operation->hasUpper && p.Value("Lower").ToDouble() > p.Value("Upper").ToDouble())
    {
      ThrowParameterError("Lower", p.Value("Lower").ToText() + " is more than Upper, " + p.Value("Upper").ToText());
    }
    operation->lower = operation->hasLower ? p.Value("Lower") : PixelValue();
    operation->upper = operation->hasUpper ? p.Value("Upper") : PixelValue();
  }
  else if (p.Has("Thresholds"))
  {
    operation->thresholds = p.Reals("Thresholds");
  }
  return operation;
}

/** In the order of LocalThresholdMethod. */
constexpr const char * LocalMethods[] = { "mean", "median", "gaussian", "niblack", "sauvola", "phansalkar", "bernsen" };
/** Beyond it windows are refused that do not end at the image's edge. */
constexpr std::int64_t LargestGaussianReach = 65535;

/** Half of the range of a type's values; of floating-point numbers 1, as if they were from -1 to 1. */
double
HalfRangeOf(PixelType kind)
{
  return IsFloatingPoint(kind) ? 1.0 : (std::ldexp(1.0, 8 * static_cast<int>(PixelSize(kind))) - 1) / 2;
}

/** From which middle on the windows of little range are above, where the caller names none. */
double
MiddleOf(PixelType kind)
{
  const bool isSigned = !IsFloatingPoint(kind) && (static_cast<int>(kind) & 1) != 0;
  return IsFloatingPoint(kind) ? 0.5 : isSigned ? 0.0 : HalfRangeOf(kind) + 0.5;
}

std::shared_ptr<const Operation>
MakeLocalThreshold(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<LocalThresholdOperation>();
  operation->method = static_cast<LocalThresholdMethod>(
    std::find(std::begin(LocalMethods), std::end(LocalMethods), p.Choice("Method")) - std::begin(LocalMethods));
  operation->radius = WindowRadius(p, image);
  operation->boundary = p.Boundary();
  operation->masked = HasMask(image);
  operation->imageKind = image.inputKind;
  operation->givesThresholds = p.Choice("Result") == "threshold";
  const bool isPhansalkar = operation->method == LocalThresholdMethod::Phansalkar;
  const auto valueOr = [&](const char * name, double otherwise) { return p.Has(name) ? p.Real(name) : otherwise; };
  operation->k = valueOr("K", isPhansalkar ? 0.25 : 0.2);
  operation->r = valueOr("R", isPhansalkar && IsFloatingPoint(image.inputKind) ? 0.5 : HalfRangeOf(image.inputKind));
  operation->offset = p.Real("Offset");
  operation->p = p.Real("P");
  operation->q = p.Real("Q");
  operation->contrast = p.Real("Contrast");
  operation->level = valueOr("Level", MiddleOf(image.inputKind));
  if (operation->method == LocalThresholdMethod::Gaussian)
  {
    if (p.Has("UpperRadius"))
    {
      ThrowParameterError("UpperRadius", "it has no effect on Gaussians, which reach as far to both sides");
    }
    const Coordinates radius = p.OverAxes("Radius");
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (radius[a] > 0)
      {
        const double sigma = static_cast<double>(radius[a]) / 3;
        const double reach = 4 * sigma + 0.5;
        if (!(reach <= static_cast<double>(LargestGaussianReach)))
        {
          ThrowParameterError("Radius",
                              std::to_string(radius[a]) + CheckedParameters::Along(a) + "; a Gaussian's is at most " +
                                std::to_string(LargestGaussianReach * 3 / 4));
        }
        operation->weights[a] = SampledGaussianWeights(sigma, static_cast<std::int64_t>(reach));
      }
    }
  }
  return OverSides(p, image, operation);
}

ParameterDescription
NumberOfMethods(const std::string & name, const std::string & option, const std::string & help,
                const std::string & defaultText, const std::string & methods)
{
  return OnlyWith(MakeParameter(name, option, ParameterType::Real, help, defaultText), "Method", methods);
}

std::vector<ParameterDescription>
LocalThresholdParameters()
{
  ParameterDescription method =
    MakeParameter("Method", "method", ParameterType::Choice, "How the threshold follows from the window", "mean");
  method.choices.assign(std::begin(LocalMethods), std::end(LocalMethods));
  ParameterDescription result =
    MakeChoice("Result",
               "result",
               "The classes, 1 above the threshold and 0 elsewhere, or the thresholds, for an output type of floats",
               { "class", "threshold" });
  ParameterDescription r =
    NumberOfMethods("R",
                    "r",
                    "The standard deviation with which k has no effect; without it half of the pixel type's range, of "
                    "floats 1, by phansalkar 0.5",
                    "",
                    "sauvola|phansalkar");
  r.minimum = 0;
  r.aboveMinimum = true;
  ParameterDescription contrast = NumberOfMethods(
    "Contrast", "contrast", "The least range of values in a window that has both classes", "15", "bernsen");
  contrast.minimum = 0;
  return { method,
           result,
           NumberOfMethods("K",
                           "k",
                           "How much the standard deviation counts; without it 0.2, by phansalkar 0.25",
                           "",
                           "niblack|sauvola|phansalkar"),
           r,
           NumberOfMethods(
             "Offset", "offset", "How far the threshold is below the window's statistic", "0", "mean|median|gaussian"),
           NumberOfMethods("P", "p", "How much the threshold rises in dark windows", "2", "phansalkar"),
           NumberOfMethods("Q", "q", "How fast that ends where windows are brighter", "10", "phansalkar"),
           contrast,
           NumberOfMethods("Level",
                           "level",
                           "Windows with a smaller range than contrast are 1 if their middle is at least this; without "
                           "it the middle of the pixel type's range, of floats 0.5",
                           "",
                           "bernsen") };
}

FilterDescription
LocalThresholdRow()
{
  FilterDescription row;
  row.name = "local-threshold";
  row.group = "Thresholds";
  row.title = "Voxels above a threshold that the window around each gives";
  row.output = DefaultOutput::Class;
  row.canBeStage = false;
  row.givesClasses = [](const FilterParameters & parameters) {
    const auto result = parameters.GetValues().find("Result");
    return result == parameters.GetValues().end() || std::get<std::string>(result->second) != "threshold";
  };
  row.additionalInputs.push_back(
    { "MaskImage",
      "mask",
      "Windows see the voxels alone where this image of integers is not 0, and others are 0; "
      "of IN's size",
      false,
      false,
      true });
  row.parameters =
    Join(Join({ RadiusParameter(), UpperRadiusParameter() }, LocalThresholdParameters()), BoundaryParameters());
  row.make = MakeLocalThreshold;
  return row;
}

/** The voxels above the high threshold, reconstructed under those above the low one. */
std::shared_ptr<const Operation>
MakeHysteresis(const CheckedParameters & p, const FilterImage &)
{
  const double low = p.Real("Low");
  const double high = p.Real("High");
  if (low > high)
  {
    ThrowParameterError("Low", PixelValue(low).ToText() + " is more than High, " + PixelValue(high).ToText());
  }
  const auto above = [](double threshold) {
    auto classes = std::make_shared<ThresholdOperation>();
    classes->thresholds = { threshold };
    return classes;
  };
  const auto flood = MakeReconstruction(p, false, ReconstructionMarker::Image);
  if (low == high)
  {
    return above(low);
  }
  auto operation = std::make_shared<PassesOperation>();
  operation->name = "hysteresis";
  operation->stages = { { above(high) }, { above(low) }, { flood, { 0, 1 } } };
  return operation;
}

FilterDescription
HysteresisRow()
{
  FilterDescription row;
  row.name = "hysteresis";
  row.group = "Thresholds";
  row.title = "Voxels above a low threshold that are connected to one above a high threshold";
  row.output = DefaultOutput::Class;
  row.canBeStage = false;
  row.givesClasses = [](const FilterParameters &) { return true; };
  ParameterDescription low =
    MakeParameter("Low", "low", ParameterType::Real, "The threshold that all voxels of the result are above");
  low.required = true;
  low.exampleText = "50";
  ParameterDescription high = low;
  high.name = "High";
  high.option = "high";
  high.help = "The threshold that at least one voxel of each connected part is above";
  high.exampleText = "100";
  row.parameters = Join({ low, high }, ReconstructionParameters());
  row.make = MakeHysteresis;
  return row;
}

} // namespace

void
AddThresholdFilters(std::vector<FilterDescription> & filters)
{
  FilterDescription row;
  row.name = "threshold";
  row.group = "Thresholds";
  row.title = "Voxels above a threshold of the whole image, or in a range of values";
  row.output = DefaultOutput::Class;
  row.canBeStage = false;
  row.takesComponents = false;
  row.givesClasses = [](const FilterParameters &) { return true; };
  row.additionalInputs.push_back(
    { "MaskImage",
      "mask",
      "Thresholds are taken of the voxels alone where this image of integers is not 0, and "
      "others are 0; of IN's size",
      false,
      false,
      true });

  ParameterDescription method =
    MakeParameter("Method",
                  "method",
                  ParameterType::Choice,
                  "How thresholds follow from the histogram of the whole image; or fixed, a range of values",
                  "otsu");
  method.choices = GetThresholdMethodNames();
  std::string found;
  for (const std::string & name : method.choices)
  {
    found += name == "fixed" ? "" : (found.empty() ? "" : "|") + name;
  }
  ParameterDescription thresholds;
  thresholds.name = "Thresholds";
  thresholds.option = "thresholds";
  thresholds.type = ParameterType::Reals;
  thresholds.count = ParameterCount::Any;
  thresholds.help =
    "Thresholds, ascending; the result is the number of thresholds below the voxel; auto: found by the method";
  thresholds.defaultText = "auto";
  thresholds.provisionalText = "0";
  thresholds.estimate = GetThresholdEstimate();
  thresholds.onlyWithName = method.name;
  thresholds.onlyWithValue = found;
  ParameterDescription classes =
    MakeParameter("NumberOfClasses", "classes", ParameterType::Integer, "Classes of voxels, numbered from 0 on", "3");
  classes.minimum = 2;
  classes.maximum = ThresholdOperation::MostClasses;
  classes.onlyWithName = method.name;
  classes.onlyWithValue = "multi-otsu";
  ParameterDescription bins =
    MakeParameter("NumberOfBins",
                  "bins",
                  ParameterType::Integer,
                  "Bins of the histogram between the least value and the largest; without it one for each value of "
                  "integers, where these are up to 65536, else 256");
  bins.minimum = 2;
  bins.maximum = HistogramOperation::LargestBins;
  bins.onlyWithName = method.name;
  bins.onlyWithValue = found;
  ParameterDescription lower = OnlyWith(
    MakeParameter("Lower", "lower", ParameterType::PixelValue, "The least value inside"), method.name, "fixed");
  ParameterDescription upper = lower;
  upper.name = "Upper";
  upper.option = "upper";
  upper.help = "The largest value inside";
  row.parameters = { method, thresholds, classes, bins, lower, upper };
  row.make = MakeThreshold;
  filters.push_back(row);
  filters.push_back(HysteresisRow());
  filters.push_back(LocalThresholdRow());
}

} // namespace chunkwise
