/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseReconstructionOperation.h"

#include "chunkwiseError.h"

#include <cmath>

namespace chunkwise
{

std::string
ReconstructionOperation::GetKey() const
{
  return GetName() + (erosion ? " erosion" : " dilation") + (fullyConnected ? " full " : " face ") +
         std::to_string(spatialDimension) + " marker " + std::to_string(static_cast<int>(marker)) + " method " +
         std::to_string(static_cast<int>(method)) + " height " + std::to_string(height) + " result " +
         std::to_string(static_cast<int>(result)) + " " + std::to_string(extremum) + " " + std::to_string(elsewhere);
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
  if (marker == ReconstructionMarker::Shifted && !(height >= 0 && std::isfinite(height)))
  {
    throw ParameterError("Height: " + std::to_string(height) + " is not a finite number of at least 0");
  }
}

} // namespace chunkwise
