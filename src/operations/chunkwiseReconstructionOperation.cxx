/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseReconstructionOperation.h"

#include "chunkwiseError.h"

namespace chunkwise
{

std::string
ReconstructionOperation::GetKey() const
{
  return GetName() + (erosion ? " erosion" : " dilation") + (fullyConnected ? " full " : " face ") +
         std::to_string(spatialDimension) + " marker " + std::to_string(static_cast<int>(marker)) + " method " +
         std::to_string(static_cast<int>(method)) + " height " + height.ToText() + " result " +
         std::to_string(static_cast<int>(result)) + " " + extremum.ToText() + " " + elsewhere.ToText() +
         " heaps " + std::to_string(heaps) + " of " + std::to_string(nodeItems);
}

Halo
ReconstructionOperation::GetHalo(const Coordinates & image) const
{
  Halo halo = Halo::None();
  for (int a = 0; a < spatialDimension && a < MaxSpatialAxes; ++a)
  {
    halo.lower[a] = halo.upper[a] = image[a] > 1 ? 1 : 0;
  }
  return halo;
}

void
ReconstructionOperation::CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const
{
  for (const PixelKind kind : inputs)
  {
    if (kind != output)
    {
      throw ParameterError(std::string("reconstruction: marker, mask and output are of one kind, not ") +
                           PixelKindName(kind) + " and " + PixelKindName(output));
    }
  }
}

void
ReconstructionOperation::Validate(const Coordinates & image) const
{
  Operation::Validate(image);
  if (spatialDimension < 1 || spatialDimension > MaxSpatialAxes)
  {
    throw ParameterError("SpatialDimension: " + std::to_string(spatialDimension) + " is not 1 to " +
                         std::to_string(MaxSpatialAxes));
  }
  if (heaps < 0)
  {
    throw ParameterError("NumberOfHeaps: " + std::to_string(heaps) + " is not at least 0");
  }
  if (nodeItems < 0 || nodeItems > MaxNodeItems)
  {
    throw ParameterError("HeapNodeSize: " + std::to_string(nodeItems) + " is not 0 to " + std::to_string(MaxNodeItems));
  }
  if (marker == ReconstructionMarker::Shifted && (height.IsNegative() || !height.IsFinite()))
  {
    throw ParameterError("Height: " + height.ToText() + " is not a finite number of at least 0");
  }
}

} // namespace chunkwise
