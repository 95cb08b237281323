/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of summed-area tables and of what is computed from them.
#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseError.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <algorithm>

namespace chunkwise
{

void
AddTableFilters(std::vector<FilterDescription> & filters)
{
  using Pointer = std::shared_ptr<const Operation>;
  const std::string group = "Summed-area tables";

  ParameterDescription statistic;
  statistic.name = "Statistic";
  statistic.option = "statistic";
  statistic.type = ParameterType::Choice;
  statistic.help = "Statistic of the box";
  statistic.defaultText = "mean";
  statistic.choices = { "sum", "mean", "variance", "std" };
  FilterDescription row;
  row.name = "box";
  row.group = group;
  row.title = "A statistic over boxes that may have a radius for each voxel";
  // Tables hold nothing beyond the edge.
  ParameterDescription boundary = BoundaryParameters().front();
  boundary.option.clear();
  boundary.choices = { "renormalized" };
  ParameterDescription constant = BoundaryParameters().at(1);
  constant.option.clear();
  row.parameters = { RadiusParameter(), statistic, boundary, constant, SpatialAxesParameter() };
  row.output = DefaultOutput::Real;
  row.furtherInputs = { { "RadiusImage",
                          "radius-image",
                          "The radius of each voxel's box, an image of integers of IN's size; no more than the radius",
                          false,
                          false,
                          true } };
  // Means in a mask are quotients of doubles.
  row.givesIntegers = [](const FilterParameters & parameters, const std::vector<std::string> & inputs) {
    const auto has = [&](const char * name) { return std::find(inputs.begin(), inputs.end(), name) != inputs.end(); };
    const auto statistic = parameters.GetValues().find("Statistic");
    const bool sums = statistic != parameters.GetValues().end() && std::get<std::string>(statistic->second) == "sum";
    return !has("WeightImage") && (sums || !has("MaskImage"));
  };
  AddDomain(row);
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> Pointer {
    auto operation = std::make_shared<BoxStatisticOperation>();
    operation->radius = WindowRadius(p, image);
    operation->boundary = p.Boundary();
    const std::string & name = p.Choice("Statistic");
    operation->statistic = name == "sum"        ? BoxStatistic::Sum
                           : name == "mean"     ? BoxStatistic::Mean
                           : name == "variance" ? BoxStatistic::Variance
                                                : BoxStatistic::StandardDeviation;
    operation->variable =
      std::find(image.furtherInputs.begin(), image.furtherInputs.end(), "RadiusImage") != image.furtherInputs.end();
    operation->anchored = !SumsAreExact(image.inputKind, operation->TakesSquares());
    if (operation->statistic == BoxStatistic::Sum && p.Has("EmptyValue"))
    {
      ThrowParameterError("EmptyValue",
                          p.Value("EmptyValue").ToText() + " has no effect on a sum, which is 0 where a box is empty");
    }
    return InDomain(p, image, operation);
  };
  filters.push_back(row);

  ParameterDescription axes;
  axes.name = "SummedAxes";
  axes.option = "summed-axes";
  axes.type = ParameterType::Integer;
  axes.help = "How many of the first axes are summed (3, in 2-D 2)";
  axes.minimum = 2;
  axes.maximum = 3;
  ParameterDescription squares;
  squares.name = "Squares";
  squares.option = "squares";
  squares.help = "Sum the squares of the voxels";
  ParameterDescription modular;
  modular.name = "Modular";
  modular.option = "modular";
  modular.help = "Let integer sums wrap around";
  ParameterDescription method;
  method.name = "Method";
  method.type = ParameterType::Choice;
  method.help = "How a CUDA device does it: in one pass, or by blocks";
  method.defaultText = "single-pass";
  method.choices = { "single-pass", "blocks" };
  row = FilterDescription();
  row.name = "sat";
  row.group = group;
  row.title = "Summed-area table, by default of 64-bit integers or doubles";
  row.parameters = { axes, squares, modular, method };
  row.output = DefaultOutput::Sum;
  row.canBeStage = false;
  row.make = [](const CheckedParameters & p, const FilterImage & image) -> Pointer {
    auto operation = std::make_shared<SummedAreaTableOperation>();
    operation->image = image.extent;
    operation->summedAxes =
      p.Has("SummedAxes") ? static_cast<int>(p.Integer("SummedAxes")) : std::min(image.dimension, 3);
    if (operation->summedAxes > image.dimension)
    {
      ThrowParameterError("SummedAxes",
                          std::to_string(operation->summedAxes) + " is more than the image's dimension, " +
                            std::to_string(image.dimension));
    }
    operation->squares = p.Flag("Squares");
    operation->modular = p.Flag("Modular");
    operation->method = p.Choice("Method") == "blocks" ? TableMethod::Blocks : TableMethod::SinglePass;
    return operation;
  };
  filters.push_back(row);
}

} // namespace chunkwise
