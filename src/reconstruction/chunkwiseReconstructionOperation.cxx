/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseReconstructionOperation.h"

#include "chunkwiseError.h"

#include <sstream>

namespace chunkwise
{

namespace
{

template <typename TPixel>
std::string
TextOf(TPixel value)
{
  std::ostringstream text;
  text << +value;
  return text.str();
}

} // namespace

std::string
ReconstructionOperation::GetKey() const
{
  return GetName() + (erosion ? " erosion" : " dilation") + (fullyConnected ? " full " : " face ") +
         std::to_string(spatialDimension) + " marker " + std::to_string(static_cast<int>(marker)) + " method " +
         std::to_string(static_cast<int>(method)) + " height " + height.ToText() + " result " +
         std::to_string(static_cast<int>(result)) + (flatIsExtremum ? " flat " : " ") + extremum.ToText() + " " +
         elsewhere.ToText() + " heaps " + std::to_string(heaps) + " of " + std::to_string(nodeItems);
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

std::vector<std::shared_ptr<const Operation>>
ReconstructionOperation::AsSteps(PixelType, PixelType output) const
{
  if (result == ReconstructionResult::Extrema)
  {
    return {};
  }
  const auto visits = std::make_shared<ReconstructionOperation>(*this);
  if (method != ReconstructionMethod::Auto || PixelSize(output) > sizeof(std::uint32_t))
  {
    return { visits, visits };
  }
  const auto first = std::make_shared<ReconstructionOperation>(*this);
  first->method = ReconstructionMethod::SpanningForest;
  visits->method = ReconstructionMethod::TileWavefront;
  return { first, visits };
}

void
ReconstructionOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  for (const PixelType kind : inputs)
  {
    if (kind != output)
    {
      throw ParameterError(std::string("reconstruction: marker, mask and output are of one kind, not ") +
                           PixelTypeName(kind) + " and " + PixelTypeName(output));
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

std::optional<MarkerBeyondMask>
FindMarkerBeyondMask(bool erosion, const BufferView & marker, const BufferView & mask, const Box & region)
{
  if (marker.kind != mask.kind)
  {
    throw ParameterError(std::string("the marker is of ") + PixelTypeName(marker.kind) + ", the mask of " +
                         PixelTypeName(mask.kind));
  }
  std::optional<MarkerBeyondMask> found;
  DispatchPixelType(marker.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::int64_t n = region.Extent(0);
    const std::int64_t rows = region.IsEmpty() ? 0 : region.NumberOfVoxels() / n;
    for (std::int64_t row = 0; row < rows && !found; ++row)
    {
      Coordinates  index = region.lower;
      std::int64_t rest = row;
      for (int a = 1; a < MaxDimension; ++a)
      {
        index[a] += rest % region.Extent(a);
        rest /= region.Extent(a);
      }
      const Pixel * const a = static_cast<const Pixel *>(marker.data) + marker.Offset(index);
      const Pixel * const b = static_cast<const Pixel *>(mask.data) + mask.Offset(index);
      for (std::int64_t x = 0; x < n; ++x)
      {
        const Pixel from = a[x * marker.stride[0]];
        const Pixel limit = b[x * mask.stride[0]];
        if (erosion ? from < limit : from > limit)
        {
          index[0] += x;
          found = MarkerBeyondMask{ index, TextOf(from), TextOf(limit) };
          break;
        }
      }
    }
  });
  return found;
}

} // namespace chunkwise
