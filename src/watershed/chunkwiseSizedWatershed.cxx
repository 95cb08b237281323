/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSizedWatershed.h"

namespace chunkwise
{

std::shared_ptr<AreaOperation>
SizedWatershedOperation::MakeMarkerOperation() const
{
  auto operation = std::make_shared<AreaOperation>();
  operation->image = watershed.image;
  operation->inputKind = operation->outputKind = watershed.inputKind;
  operation->axes = watershed.axes;
  operation->connectivity = watershed.connectivity;
  operation->size = size;
  operation->closing = true;
  operation->findsMarkers = true;
  operation->hasMask = watershed.hasMask;
  operation->attribute = byVolume ? AreaAttribute::Volume : AreaAttribute::Area;
  operation->unit = unit;
  operation->tileVoxels = tileVoxels;
  operation->blockVoxels = blockVoxels;
  return operation;
}

std::string
SizedWatershedOperation::GetKey() const
{
  return watershed.GetKey() + (byVolume ? " volume " : " area ") + std::to_string(size) + " of " +
         PixelValue(unit).ToText();
}

Halo
SizedWatershedOperation::GetHalo(const Coordinates & extent) const
{
  return this->MakeMarkerOperation()->GetHalo(extent);
}

void
SizedWatershedOperation::Validate(const Coordinates & extent) const
{
  watershed.Validate(extent);
  this->MakeMarkerOperation()->Validate(extent);
}

} // namespace chunkwise
