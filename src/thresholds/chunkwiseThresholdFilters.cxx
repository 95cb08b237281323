/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of thresholds.
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseThresholdEstimate.h"
#include "chunkwiseThresholdOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

std::shared_ptr<const Operation>
MakeThreshold(const CheckedParameters & p, const FilterImage & image)
{
  auto         operation = std::make_shared<ThresholdOperation>();
  const auto & names = GetThresholdMethodNames();
  operation->method =
    static_cast<ThresholdMethod>(std::find(names.begin(), names.end(), p.Choice("Method")) - names.begin());
  operation->classes = static_cast<int>(p.Integer("NumberOfClasses"));
  operation->bins = p.Has("NumberOfBins") ? static_cast<int>(p.Integer("NumberOfBins")) : 0;
  operation->masked =
    std::find(image.furtherInputs.begin(), image.furtherInputs.end(), "MaskImage") != image.furtherInputs.end();
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
  row.furtherInputs.push_back({ "MaskImage",
                                "mask",
                                "Thresholds are taken of the voxels alone where this image of integers is not 0, and "
                                "others are 0; of IN's size",
                                false,
                                false,
                                true });

  ParameterDescription method;
  method.name = "Method";
  method.option = "method";
  method.type = ParameterType::Choice;
  method.help = "How thresholds follow from the histogram of the whole image; or fixed, a range of values";
  method.defaultText = "otsu";
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
  thresholds.help = "The thresholds, ascending; a voxel is as many as it is above; auto: those that the method finds";
  thresholds.defaultText = "auto";
  thresholds.provisionalText = "0";
  thresholds.estimate = GetThresholdEstimate();
  thresholds.onlyWithName = method.name;
  thresholds.onlyWithValue = found;
  ParameterDescription classes;
  classes.name = "NumberOfClasses";
  classes.option = "classes";
  classes.type = ParameterType::Integer;
  classes.help = "Classes of voxels, numbered from 0 on";
  classes.defaultText = "3";
  classes.minimum = 2;
  classes.maximum = ThresholdOperation::MostClasses;
  classes.onlyWithName = method.name;
  classes.onlyWithValue = "multi-otsu";
  ParameterDescription bins;
  bins.name = "NumberOfBins";
  bins.option = "bins";
  bins.type = ParameterType::Integer;
  bins.help = "Bins of the histogram between the least value and the largest; without it one for each value of "
              "integers, where these are up to 65536, else 256";
  bins.minimum = 2;
  bins.maximum = HistogramOperation::LargestBins;
  bins.onlyWithName = method.name;
  bins.onlyWithValue = found;
  ParameterDescription lower;
  lower.name = "Lower";
  lower.option = "lower";
  lower.type = ParameterType::PixelValue;
  lower.help = "The least value inside";
  lower.onlyWithName = method.name;
  lower.onlyWithValue = "fixed";
  ParameterDescription upper = lower;
  upper.name = "Upper";
  upper.option = "upper";
  upper.help = "The largest value inside";
  row.parameters = { method, thresholds, classes, bins, lower, upper };
  row.make = MakeThreshold;
  filters.push_back(row);
}

} // namespace chunkwise
