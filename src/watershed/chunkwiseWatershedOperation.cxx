/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseWatershedOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseNeighborOffsets.h"
#include "chunkwiseWatershedSummary.h"

#include <algorithm>
#include <limits>

namespace chunkwise
{

std::vector<Coordinates>
WatershedOperation::GetOffsets() const
{
  return GetNeighborOffsets(axes, connectivity);
}

std::int64_t
WatershedOperation::RasterIndex(const Coordinates & index) const
{
  std::int64_t raster = 0;
  for (int a = MaxDimension - 1; a >= 0; --a)
  {
    raster = raster * image[a] + index[a];
  }
  return raster;
}

std::string
WatershedOperation::GetKey() const
{
  std::string key = "watershed of " + ToString(image) + " " + PixelTypeName(inputKind) + " to " +
                    PixelTypeName(outputKind) + " connectivity " + std::to_string(connectivity) +
                    (hasMarkers ? " markers" : " height " + height.ToText()) + (hasMask ? " mask" : "") +
                    (lines ? " lines" : "") + " along";
  for (const int axis : axes)
  {
    key += " " + std::to_string(axis);
  }
  if (sizes)
  {
    key += (sizes->byVolume ? " volume " : " area ") + std::to_string(sizes->size) + " of " +
           PixelValue(sizes->unit).ToText();
  }
  return key;
}

void
WatershedOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  if (inputs.size() != static_cast<std::size_t>(this->GetNumberOfInputs()))
  {
    throw ParameterError("this watershed takes " + std::to_string(this->GetNumberOfInputs()) + " images, not " +
                         std::to_string(inputs.size()));
  }
  if (inputs.front() != inputKind || output != outputKind)
  {
    throw ParameterError(std::string("a watershed was set up from ") + PixelTypeName(inputKind) + " to " +
                         PixelTypeName(outputKind) + ", not from " + PixelTypeName(inputs.front()) + " to " +
                         PixelTypeName(output));
  }
  if (hasMarkers && IsFloatingPoint(inputs[1]))
  {
    throw ParameterError("MarkerImage", PixelTypeName(inputs[1]), "an image of integers");
  }
  if (hasMask && IsFloatingPoint(inputs.back()))
  {
    throw ParameterError("MaskImage", PixelTypeName(inputs.back()), "an image of integers");
  }
}

void
WatershedOperation::Validate(const Coordinates & extent) const
{
  if (extent != image)
  {
    throw ParameterError("a watershed was set up for an image of " + ToString(image) + " voxels, not of " +
                         ToString(extent));
  }
  if (axes.empty() || axes.size() > MaxSpatialAxes || !std::is_sorted(axes.begin(), axes.end()))
  {
    throw ParameterError("SpatialAxes: a watershed has neighbors along 1 to 3 axes");
  }
  if (!(height.ToDouble() >= 0))
  {
    throw ParameterError("Height", height.ToText(), "0 or more");
  }
}

std::size_t
WatershedOperation::GetSummaryBytes(const Box & box, const std::vector<PixelType> &, PixelType) const
{
  return WatershedLayout(*this, box).summaryBytes;
}

std::uint64_t
GetLargestLabel(PixelType kind)
{
  return kind == PixelType::Float32 ? std::uint64_t{ 1 } << 24
         : kind == PixelType::Float64
           ? std::uint64_t{ 1 } << 53
           : DispatchPixelType(kind, [](auto pixel) {
               return static_cast<std::uint64_t>(std::numeric_limits<decltype(pixel)>::max());
             });
}

void
ThrowWrongMarker(const std::string & label, PixelType kind)
{
  throw Error("MarkerImage: the label " + label + " is not one of " + PixelTypeName(kind) + ", 1 to " +
              std::to_string(GetLargestLabel(kind)));
}

void
CheckNumberOfBasins(std::uint64_t count, PixelType kind)
{
  if (count > GetLargestLabel(kind))
  {
    const PixelType larger[] = { PixelType::UInt16, PixelType::UInt32, PixelType::UInt64 };
    const auto      enough = std::find_if(
      std::begin(larger), std::end(larger) - 1, [&](PixelType each) { return count <= GetLargestLabel(each); });
    throw Error("the image has " + std::to_string(count) + " minima; " + PixelTypeName(kind) + " has labels up to " +
                std::to_string(GetLargestLabel(kind)) + ": the output type " + PixelTypeName(*enough) + " has all");
  }
}

WatershedBorder::WatershedBorder(const WatershedOperation & operation, const Box & box)
{
  Box rest = box;
  for (auto axis = operation.axes.rbegin(); axis != operation.axes.rend(); ++axis)
  {
    for (const bool isUpper : { false, true })
    {
      if ((isUpper ? box.upper[*axis] >= operation.image[*axis] : box.lower[*axis] <= 0) || rest.IsEmpty())
      {
        continue;
      }
      Box & slab = slabs[count];
      slab = rest;
      (isUpper ? slab.lower[*axis] : slab.upper[*axis]) = isUpper ? rest.upper[*axis] - 1 : rest.lower[*axis] + 1;
      (isUpper ? rest.upper[*axis] : rest.lower[*axis]) = isUpper ? slab.lower[*axis] : slab.upper[*axis];
      begins[count++] = voxels;
      voxels += slab.NumberOfVoxels();
    }
  }
}

std::int64_t
WatershedBorder::IndexOf(const Coordinates & index) const
{
  for (int i = 0; i < count; ++i)
  {
    const Box & slab = slabs[i];
    bool        isInside = true;
    for (int a = 0; a < MaxDimension; ++a)
    {
      isInside = isInside && index[a] >= slab.lower[a] && index[a] < slab.upper[a];
    }
    if (isInside)
    {
      std::int64_t offset = 0;
      for (int a = MaxDimension - 1; a >= 0; --a)
      {
        offset = offset * slab.Extent(a) + index[a] - slab.lower[a];
      }
      return begins[i] + offset;
    }
  }
  return -1;
}

WatershedLayout::WatershedLayout(const WatershedOperation & operation, const Box & box)
  : border(operation, box)
  , rows(box.NumberOfVoxels() / std::max<std::int64_t>(1, box.Extent(0)))
{
  const auto take = [](std::size_t & bytes, std::int64_t number, std::size_t size) {
    const std::size_t at = bytes;
    bytes += (static_cast<std::size_t>(number) * size + 7) / 8 * 8;
    return at;
  };
  const std::int64_t rowsOfMinima = operation.hasMarkers ? 0 : rows;
  take(summaryBytes, 1, sizeof(std::int64_t));
  if (operation.isBlock)
  {
    const std::size_t number = operation.isSmallBlock ? sizeof(std::uint32_t) : sizeof(std::uint64_t);
    counts = take(summaryBytes, 1, sizeof(std::uint64_t));
    lows = take(summaryBytes, operation.hasMarkers ? 0 : border.voxels, sizeof(std::int64_t));
    nodes = edges = take(summaryBytes,
                         border.voxels,
                         operation.isSmallBlock ? sizeof(WatershedBlockEdge<std::uint32_t>)
                                                : sizeof(WatershedBlockEdge<std::uint64_t>));
    values = take(summaryBytes, border.voxels, number);
    nodeLabels = take(summaryBytes, border.voxels, number);
    lowValues = take(summaryBytes, operation.hasMarkers ? 0 : border.voxels, number);
    isThere = take(summaryBytes, operation.hasMarkers ? border.voxels : 0, 1);
  }
  else
  {
    nodes = take(summaryBytes, border.voxels, sizeof(WatershedNode));
    edges = take(summaryBytes, border.voxels, sizeof(WatershedEdge));
    counts = take(summaryBytes, rowsOfMinima, sizeof(std::uint32_t));
  }

  labels = take(solutionBytes, border.voxels, sizeof(std::uint64_t));
  lines = take(solutionBytes, operation.lines ? border.voxels : 0, 1);
  offsets = take(solutionBytes, rowsOfMinima, sizeof(std::uint64_t));
  starts = solutionBytes;
}

} // namespace chunkwise
