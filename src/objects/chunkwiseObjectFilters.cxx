/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of what finds objects.
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseLabelBoundaryOperation.h"
#include "chunkwiseLabelOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** From the parameter Structure: as many zeros and ones as a cube of three voxels along each axis has, x fastest. */
std::uint32_t
StructureOf(const CheckedParameters & p, int dimension)
{
  if (!p.Has("Structure"))
  {
    return LabelOperation::MakeStructure(static_cast<int>(p.Integer("Connectivity")), dimension);
  }
  const std::vector<std::int64_t> & numbers = p.Integers("Structure");
  const std::size_t                 size = dimension == 1 ? 3 : dimension == 2 ? 9 : 27;
  if (numbers.size() != size)
  {
    throw ParameterError("Structure", std::to_string(numbers.size()) + " numbers", std::to_string(size), " are not ");
  }
  // A structure of one or two axes lies in the middle of the cube.
  const std::size_t first = dimension == 1 ? 12 : dimension == 2 ? 9 : 0;
  std::uint32_t     structure = 0;
  for (std::size_t i = 0; i < size; ++i)
  {
    structure |= numbers[i] != 0 ? std::uint32_t{ 1 } << (first + i) : 0;
  }
  if (!LabelOperation::IsStructure(structure, dimension))
  {
    throw ParameterError("Structure", "this one", "symmetric about its center");
  }
  return structure;
}

std::shared_ptr<const Operation>
MakeLabel(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<LabelOperation>();
  operation->image = image.extent;
  operation->inputKind = image.inputKind;
  operation->outputKind = image.outputKind;
  operation->axes = p.SpatialAxes();
  std::sort(operation->axes.begin(), operation->axes.end());
  operation->structure = StructureOf(p, static_cast<int>(operation->axes.size()));
  const std::string & rule = p.Choice("Rule");
  operation->rule = rule == "equal" ? LabelRule::Equal : rule == "within" ? LabelRule::Within : LabelRule::Foreground;
  operation->tolerance = p.Value("Tolerance");
  operation->background = p.Value("Background");
  operation->labelsBackground = p.Flag("LabelBackground");
  if (p.Has("PeriodicAxes"))
  {
    for (const std::int64_t axis : p.Integers("PeriodicAxes"))
    {
      if (axis < 0 || axis >= image.dimension || !p.IsSpatial(static_cast<int>(axis)))
      {
        throw ParameterError("PeriodicAxes", std::to_string(axis), "an axis along which voxels have neighbors");
      }
      operation->periodic[axis] = true;
    }
  }
  return operation;
}

std::shared_ptr<const Operation>
MakeBoundaries(const CheckedParameters & p, const FilterImage &)
{
  const std::string & mode = p.Choice("BoundaryMode");
  auto                operation = std::make_shared<LabelBoundaryOperation>();
  operation->mode = mode == "inner"   ? LabelBoundaryMode::Inner
                    : mode == "outer" ? LabelBoundaryMode::Outer
                                      : LabelBoundaryMode::Thick;
  operation->connectivity = static_cast<int>(p.Integer("Connectivity"));
  operation->axes = p.SpatialAxes();
  std::sort(operation->axes.begin(), operation->axes.end());
  return operation;
}

FilterDescription
BoundariesRow(const ParameterDescription & connectivity)
{
  FilterDescription row;
  row.name = "boundaries";
  row.group = "Objects";
  row.title = "Mark the voxels at the boundaries of labelled objects";
  row.output = DefaultOutput::Class;
  row.canBeStage = false;
  row.givesClasses = [](const FilterParameters &) { return true; };
  ParameterDescription mode = MakeChoice(
    "BoundaryMode",
    "mode",
    "All voxels with a neighbor of another value, those inside of objects, or those outside and where objects "
    "touch",
    { "thick", "inner", "outer" });
  row.parameters = { mode, connectivity, SpatialAxesParameter() };
  row.make = MakeBoundaries;
  return row;
}

} // namespace

void
AddObjectFilters(std::vector<FilterDescription> & filters)
{
  FilterDescription row;
  row.name = "label";
  row.group = "Objects";
  row.title = "Number connected components 1, 2, ... in the raster order of their first voxels";
  row.output = DefaultOutput::Label;
  row.canBeStage = false;
  row.takesComponents = false;
  row.givesClasses = [](const FilterParameters &) { return true; };

  ParameterDescription connectivity =
    MakeParameter("Connectivity",
                  "connectivity",
                  ParameterType::Integer,
                  "Neighbors share a face (1), a face or an edge (2), or also a corner (3)",
                  "1");
  connectivity.minimum = 1;
  connectivity.maximum = 3;
  ParameterDescription structure;
  structure.name = "Structure";
  structure.option = "structure";
  structure.type = ParameterType::Integers;
  structure.count = ParameterCount::Any;
  structure.help = "Neighbors as ones in a cube of 3 voxels along each axis, x fastest, in place of the connectivity";
  ParameterDescription rule =
    MakeChoice("Rule",
               "rule",
               "Which neighbors are of one component: all, those of equal values, or those within a tolerance",
               { "foreground", "equal", "within" });
  ParameterDescription tolerance = OnlyWith(
    MakeParameter(
      "Tolerance", "tolerance", ParameterType::PixelValue, "By how much values of neighbors differ at most", "0"),
    "Rule",
    "within");
  tolerance.minimum = 0;
  ParameterDescription background =
    MakeParameter("Background", "background", ParameterType::PixelValue, "The value of voxels that are no object", "0");
  ParameterDescription labelBackground =
    MakeParameter("LabelBackground", "label-background", ParameterType::Flag, "Give every voxel a label");
  ParameterDescription periodic;
  periodic.name = "PeriodicAxes";
  periodic.option = "periodic";
  periodic.type = ParameterType::Integers;
  periodic.count = ParameterCount::Any;
  periodic.help = "Axes along which the first voxel and the last are neighbors";
  row.parameters = { connectivity, structure,       rule,     tolerance,
                     background,   labelBackground, periodic, SpatialAxesParameter() };
  row.make = MakeLabel;
  filters.push_back(row);
  filters.push_back(BoundariesRow(connectivity));
}

} // namespace chunkwise
