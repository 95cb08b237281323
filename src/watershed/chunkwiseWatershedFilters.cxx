/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The row of the watershed.
#include "chunkwiseError.h"
#include "chunkwiseFilterRows.h"
#include "chunkwiseSizedWatershed.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

/** The watershed of minima whose basins have an area, or a volume. */
std::shared_ptr<const Operation>
MakeSizedWatershed(const CheckedParameters & p, const FilterImage & image, const WatershedOperation & watershed)
{
  auto operation = std::make_shared<SizedWatershedOperation>();
  operation->watershed = watershed;
  operation->byVolume = p.Real("Volume") > 0;
  double ofVoxel = 1;
  for (const int axis : watershed.axes)
  {
    ofVoxel *= UnitOf(p, image, axis);
  }
  if (operation->byVolume)
  {
    operation->size = UnitsOfVolume(p.Real("Volume"), ofVoxel, watershed.inputKind, operation->unit);
  }
  else
  {
    operation->size = std::max<std::uint64_t>(1, PartsOfSize(p.Real("Area"), ofVoxel));
  }
  return operation;
}

std::shared_ptr<const Operation>
MakeWatershed(const CheckedParameters & p, const FilterImage & image)
{
  const auto isGiven = [&](const char * name) {
    return std::find(image.additionalInputs.begin(), image.additionalInputs.end(), name) !=
           image.additionalInputs.end();
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
  const char * sizes = nullptr;
  for (const char * name : { "Height", "Area", "Volume" })
  {
    const PixelValue value = name == std::string("Height") ? p.Value(name) : PixelValue(p.Real(name));
    if (!(value.ToDouble() > 0))
    {
      continue;
    }
    if (operation->hasMarkers)
    {
      ThrowParameterError(name, value.ToText() + " has no effect on given markers, only on minima");
    }
    if (sizes)
    {
      ThrowParameterError(
        name, std::string("minima are chosen by one of Height, Area and Volume, and ") + sizes + " is given");
    }
    sizes = name;
  }
  const bool isSized = sizes && sizes != std::string("Height");
  return isSized ? MakeSizedWatershed(p, image, *operation) : operation;
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
  row.additionalInputs.push_back(
    { "MarkerImage",
      "markers",
      "Labels of the markers, 0 elsewhere: an image of integers of IN's size; without it each "
      "minimum is a marker",
      false,
      false,
      true });
  row.additionalInputs.push_back({ "MaskImage",
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
  ParameterDescription area;
  area.name = "Area";
  area.option = "area";
  area.type = ParameterType::Real;
  area.help = "Without markers: the least area, in 3-D the volume, of a minimum's basin before it spills over into "
              "another such one, in the image's physical unit; 0: any";
  area.defaultText = "0";
  area.minimum = 0;
  ParameterDescription volume = area;
  volume.name = "Volume";
  volume.option = "volume";
  volume.help =
    "As the area, but of the sum of how far the basin's voxels lie below the level at which it spills over, "
    "times the size of a voxel";
  ParameterDescription spacing;
  spacing.name = "UseImageSpacing";
  spacing.option = "voxels";
  spacing.help = "Area and volume are of voxels of size 1, not in the image's physical unit";
  spacing.defaultText = "on";
  ParameterDescription lines;
  lines.name = "Lines";
  lines.option = "lines";
  lines.help = "Voxels with a neighbor of a smaller label become 0";
  row.parameters = { connectivity, height, area, volume, spacing, lines, SpatialAxesParameter() };
  row.make = MakeWatershed;
  filters.push_back(row);
}

} // namespace chunkwise
