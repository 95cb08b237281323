/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The row of the watershed.
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseWatershedOperation.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

std::shared_ptr<const Operation>
MakeWatershed(const CheckedParameters & p, const FilterImage & image)
{
  const auto isGiven = [&](const char * name) {
    return std::find(image.furtherInputs.begin(), image.furtherInputs.end(), name) != image.furtherInputs.end();
  };
  auto operation = std::make_shared<WatershedOperation>();
  operation->image = image.extent;
  operation->inputKind = image.inputKind;
  operation->outputKind = image.outputKind;
  operation->axes = p.SpatialAxes();
  std::sort(operation->axes.begin(), operation->axes.end());
  operation->connectivity = static_cast<int>(p.Integer("Connectivity"));
  operation->hasMarkers = isGiven("MarkerImage");
  operation->hasMask = isGiven("MaskImage");
  operation->lines = p.Flag("Lines");
  operation->height = p.Value("Height");
  if (operation->hasMarkers && operation->height.ToDouble() > 0)
  {
    ThrowParameterError("Height", operation->height.ToText() + " has no effect on given markers, only on minima");
  }
  return operation;
}

} // namespace

void
AddWatershedFilters(std::vector<FilterDescription> & filters)
{
  FilterDescription row;
  row.name = "watershed";
  row.group = "Objects";
  row.title = "Give each voxel the label of the marker, or of the minimum, to which a minimum spanning forest joins it";
  row.output = DefaultOutput::Label;
  row.canBeStage = false;
  row.takesComponents = false;
  row.givesClasses = [](const FilterParameters &) { return true; };
  row.furtherInputs.push_back(
    { "MarkerImage",
      "markers",
      "Labels of the markers, 0 elsewhere: an image of integers of IN's size; without it each "
      "minimum is a marker",
      false,
      false,
      true });
  row.furtherInputs.push_back({ "MaskImage",
                                "mask",
                                "Voxels have a label only where this image of integers is not 0; of IN's size",
                                false,
                                false,
                                true });

  ParameterDescription connectivity;
  connectivity.name = "Connectivity";
  connectivity.option = "connectivity";
  connectivity.type = ParameterType::Integer;
  connectivity.help = "Neighbors share a face (1), a face or an edge (2), or also a corner (3)";
  connectivity.defaultText = "1";
  connectivity.minimum = 1;
  connectivity.maximum = 3;
  ParameterDescription height;
  height.name = "Height";
  height.option = "height";
  height.type = ParameterType::PixelValue;
  height.help = "Without markers: by how much the way from a minimum to a lower one must rise";
  height.defaultText = "0";
  height.minimum = 0;
  ParameterDescription lines;
  lines.name = "Lines";
  lines.option = "lines";
  lines.help = "Voxels with a neighbor of a smaller label become 0";
  row.parameters = { connectivity, height, lines, SpatialAxesParameter() };
  row.make = MakeWatershed;
  filters.push_back(row);
}

} // namespace chunkwise
