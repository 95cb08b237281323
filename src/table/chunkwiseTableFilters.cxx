/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of summed-area tables and of what is computed from them.
#include "chunkwiseBoxStatisticOperation.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseError.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

using Pointer = std::shared_ptr<const Operation>;

FilterDescription
TableRow(const std::string & name, const std::string & title)
{
  FilterDescription row;
  row.name = name;
  row.group = "Summed-area tables";
  row.title = title;
  return row;
}

Pointer
MakeBoxStatistic(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<BoxStatisticOperation>();
  operation->radius = WindowRadius(p, image);
  operation->boundary = p.Boundary();
  const std::string & name = p.Choice("Statistic");
  operation->statistic = name == "sum"        ? BoxStatistic::Sum
                         : name == "mean"     ? BoxStatistic::Mean
                         : name == "variance" ? BoxStatistic::Variance
                                              : BoxStatistic::StandardDeviation;
  operation->variable = std::find(image.additionalInputs.begin(), image.additionalInputs.end(), "RadiusImage") !=
                        image.additionalInputs.end();
  operation->anchored = !SumsAreExact(image.inputKind, operation->TakesSquares());
  if (operation->statistic == BoxStatistic::Sum && p.Has("EmptyValue"))
  {
    ThrowParameterError("EmptyValue",
                        p.Value("EmptyValue").ToText() + " has no effect on a sum, which is 0 where a box is empty");
  }
  return InDomain(p, image, operation);
}

FilterDescription
BoxStatisticRow()
{
  FilterDescription row = TableRow("box", "A statistic over boxes that may have a radius for each voxel");
  // Tables hold nothing beyond the edge.
  ParameterDescription boundary = BoundaryParameters().front();
  boundary.option.clear();
  boundary.choices = { "renormalized" };
  boundary.choicePerAxis = false;
  ParameterDescription constant = BoundaryParameters().at(1);
  constant.option.clear();
  row.parameters = { RadiusParameter(),
                     MakeChoice(
                       "Statistic", "statistic", "Statistic of the box", { "sum", "mean", "variance", "std" }, "mean"),
                     boundary,
                     constant,
                     SpatialAxesParameter() };
  row.output = DefaultOutput::Real;
  row.additionalInputs = {
    { "RadiusImage",
      "radius-image",
      "The radius of each voxel's box, an image of integers of IN's size; no more than the radius",
      false,
      false,
      true }
  };
  // Means in a mask are quotients of doubles.
  row.givesIntegers = [](const FilterParameters & parameters, const std::vector<std::string> & inputs) {
    const auto has = [&](const char * name) { return std::find(inputs.begin(), inputs.end(), name) != inputs.end(); };
    const auto statistic = parameters.GetValues().find("Statistic");
    const bool sums = statistic != parameters.GetValues().end() && std::get<std::string>(statistic->second) == "sum";
    return !has("WeightImage") && (sums || !has("MaskImage"));
  };
  AddDomain(row);
  row.make = MakeBoxStatistic;
  return row;
}

Pointer
MakeSummedAreaTable(const CheckedParameters & p, const FilterImage & image)
{
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
}

FilterDescription
SummedAreaTableRow()
{
  FilterDescription    row = TableRow("sat", "Summed-area table, by default of 64-bit integers or doubles");
  ParameterDescription axes = MakeParameter(
    "SummedAxes", "summed-axes", ParameterType::Integer, "How many of the first axes are summed (3, in 2-D 2)");
  axes.minimum = 2;
  axes.maximum = 3;
  row.parameters = {
    axes,
    MakeParameter("Squares", "squares", ParameterType::Flag, "Sum the squares of the voxels"),
    MakeParameter("Modular", "modular", ParameterType::Flag, "Let integer sums wrap around"),
    MakeChoice("Method", "", "How a CUDA device does it: in one pass, or by blocks", { "single-pass", "blocks" })
  };
  row.output = DefaultOutput::Sum;
  row.canBeStage = false;
  row.make = MakeSummedAreaTable;
  return row;
}

} // namespace

void
AddTableFilters(std::vector<FilterDescription> & filters)
{
  filters.push_back(BoxStatisticRow());
  filters.push_back(SummedAreaTableRow());
}

} // namespace chunkwise
