/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseAreaOperation.h"

#include "chunkwiseError.h"
#include "chunkwisePixelValue.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

std::uint64_t
PartsOfSize(double size, double ofPart)
{
  constexpr double most = 9e18;
  const double     parts = std::ceil(size / ofPart);
  if (!(parts < most))
  {
    return static_cast<std::uint64_t>(most);
  }
  const auto count = static_cast<std::uint64_t>(parts);
  // The quotient is rounded.
  return count > 0 && static_cast<double>(count - 1) * ofPart >= size ? count - 1
         : static_cast<double>(count) * ofPart < size                 ? count + 1
                                                                      : count;
}

std::uint64_t
UnitsOfVolume(double volume, double ofVoxel, PixelType kind, double & unit)
{
  unit = 1;
  if (!IsFloatingPoint(kind))
  {
    return std::max<std::uint64_t>(1, PartsOfSize(volume, ofVoxel));
  }
  constexpr int bits = 40;
  int           exponent = 0;
  volume = std::min(volume / ofVoxel, 1e300);
  std::frexp(volume, &exponent);
  unit = std::ldexp(1.0, std::max(exponent - bits, -1000));
  return std::max<std::uint64_t>(1, PartsOfSize(volume, unit));
}

std::string
AreaOperation::GetKey() const
{
  std::string key = this->GetName() + " of " + ToString(image) + " " + PixelTypeName(inputKind) + " to " +
                    PixelTypeName(outputKind) + " attribute " + std::to_string(static_cast<int>(attribute)) + " size " +
                    std::to_string(size) + " of " + PixelValue(unit).ToText() + " height " +
                    PixelValue(height).ToText() + " extents " + std::to_string(extents[0]) + " " +
                    std::to_string(extents[1]) + " " + std::to_string(extents[2]) + " connectivity " +
                    std::to_string(connectivity) + " along";
  for (const int axis : axes)
  {
    key += " " + std::to_string(axis);
  }
  return key;
}

Halo
AreaOperation::GetHalo(const Coordinates &) const
{
  Halo halo = Halo::None();
  for (int a = 0; a < MaxDimension; ++a)
  {
    halo.lower[a] = halo.upper[a] = image[a] > 1 ? WholeAxis : 0;
  }
  return halo;
}

void
AreaOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  if (inputs.size() != (hasMask ? 2U : 1U) || inputs.front() != inputKind || output != outputKind)
  {
    throw ParameterError(std::string("the operation was made for ") + PixelTypeName(inputKind) + " and " +
                         PixelTypeName(outputKind) + ", but the images are of " +
                         (inputs.empty() ? "no kind" : PixelTypeName(inputs.front())) + " and " +
                         PixelTypeName(output));
  }
}

void
AreaOperation::Validate(const Coordinates & extent) const
{
  if (extent != image)
  {
    throw ParameterError("the operation was made for an image of " + ToString(image) + ", but this one has " +
                         ToString(extent));
  }
  // Voxels of the first and the last plane of a block have numbers of 32 bits.
  std::int64_t plane = 1;
  for (int a = MaxDimension - 1, found = 0; a >= 0; --a)
  {
    plane *= found ? std::max<std::int64_t>(image[a], 1) : 1;
    found += image[a] > 1 ? 1 : 0;
  }
  if (plane >= std::int64_t{ 1 } << 31)
  {
    throw ParameterError("the image has planes of " + std::to_string(plane) +
                         " voxels; areas are found in planes of fewer than 2147483648");
  }
  if (axes.empty() || axes.size() > MaxSpatialAxes || !std::is_sorted(axes.begin(), axes.end()))
  {
    throw ParameterError("SpatialAxes: voxels have neighbors along 1 to 3 axes");
  }
  for (int a = 0; a < MaxDimension && attribute == AreaAttribute::Extent; ++a)
  {
    if (image[a] >= MostVoxelsOfExtent)
    {
      throw ParameterError("the image has " + std::to_string(image[a]) + " voxels along axis " + std::to_string(a) +
                           "; extents are found in images of fewer than " + std::to_string(MostVoxelsOfExtent));
    }
  }
  if (connectivity < 1 || connectivity > MaxSpatialAxes)
  {
    throw ParameterError("Connectivity", std::to_string(connectivity), "1, 2 or 3");
  }
}

} // namespace chunkwise
