/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// The rows of area openings and closings.
#include "chunkwiseAreaOperation.h"
#include "chunkwiseFilterRows.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

template <bool VClosing>
std::shared_ptr<const Operation>
MakeArea(const CheckedParameters & p, const FilterImage & image)
{
  auto operation = std::make_shared<AreaOperation>();
  operation->image = image.extent;
  operation->inputKind = image.inputKind;
  operation->outputKind = image.outputKind;
  operation->axes = p.SpatialAxes();
  std::sort(operation->axes.begin(), operation->axes.end());
  operation->connectivity = static_cast<int>(p.Integer("Connectivity"));
  operation->closing = VClosing;
  const std::string & attribute = p.Choice("Attribute");
  const double        size = p.Real("Size");
  double              ofVoxel = 1;
  for (std::size_t i = 0; i < operation->axes.size(); ++i)
  {
    const double side = UnitOf(p, image, operation->axes[i]);
    operation->extents[i] = std::max<std::uint64_t>(1, PartsOfSize(size, side));
    ofVoxel *= side;
  }
  if (attribute == "volume")
  {
    operation->attribute = AreaAttribute::Volume;
    operation->size = UnitsOfVolume(size, ofVoxel, image.inputKind, operation->unit);
    return operation;
  }
  operation->attribute = attribute == "extent"   ? AreaAttribute::Extent
                         : attribute == "height" ? AreaAttribute::Height
                                                 : AreaAttribute::Area;
  operation->height = size;
  operation->size =
    std::max<std::uint64_t>(1, PartsOfSize(size, operation->attribute == AreaAttribute::Height ? 1 : ofVoxel));
  return operation;
}

} // namespace

void
AddAreaFilters(std::vector<FilterDescription> & filters)
{
  FilterDescription row;
  row.name = "area-opening";
  row.group = "Reconstruction";
  row.title = "Lower bright components that are smaller than a size";
  row.canBeStage = false;
  row.takesComponents = false;

  ParameterDescription size;
  size.name = "Size";
  size.option = "size";
  size.type = ParameterType::Real;
  size.help = "Components of this size, or larger ones, stay: in the image's physical unit, heights in that of values, "
              "volumes in both";
  size.required = true;
  size.exampleText = "64";
  size.minimum = 0;
  const ParameterDescription attribute = MakeChoice(
    "Attribute",
    "attribute",
    "The size of a component is its area, in 3-D its volume in space; the longest side of its bounding box; its "
    "height, the difference between its extreme value and the nearest value beside it; or the sum of these "
    "differences over its voxels",
    { "area", "extent", "height", "volume" });
  ParameterDescription spacing;
  spacing.name = "UseImageSpacing";
  spacing.option = "voxels";
  spacing.help = "The size is of voxels of size 1, not in the image's physical unit";
  spacing.defaultText = "on";
  ParameterDescription connectivity;
  connectivity.name = "Connectivity";
  connectivity.option = "connectivity";
  connectivity.type = ParameterType::Integer;
  connectivity.help = "Neighbors share a face (1), a face or an edge (2), or also a corner (3)";
  connectivity.defaultText = "1";
  connectivity.minimum = 1;
  connectivity.maximum = 3;
  row.parameters = { size, attribute, spacing, connectivity, SpatialAxesParameter() };
  row.make = MakeArea<false>;
  filters.push_back(row);

  row.name = "area-closing";
  row.title = "Raise dark components that are smaller than a size";
  row.make = MakeArea<true>;
  filters.push_back(row);
}

} // namespace chunkwise
