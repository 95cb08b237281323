/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDistanceOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>

namespace chunkwise
{

namespace
{

std::string
HexText(double value)
{
  char text[40];
  std::snprintf(text, sizeof(text), " %a", value);
  return text;
}

/** The planes of one side, in the bytes of a summary or a solution. */
template <typename TByte>
struct DistanceSide
{
  DistanceSide(TByte * bytes, const DistancePlanes & planes, int side)
    : begin(bytes + static_cast<std::size_t>(side) * planes.SideBytes())
    , values(begin + planes.ValuesOffset())
  {}
  std::int32_t
  PositionAt(std::int64_t i) const
  {
    std::int32_t position;
    std::memcpy(&position, begin + static_cast<std::size_t>(i) * sizeof(position), sizeof(position));
    return position;
  }

  TByte * begin;
  TByte * values;
};

} // namespace

void
ReplaceFeatures(unsigned char * known, const unsigned char * from, const DistancePlanes & planes)
{
  const DistanceSide<const unsigned char> source(from, planes, 0);
  const DistanceSide<unsigned char>       target(known, planes, 0);
  for (std::int64_t i = 0; i < planes.columns; ++i)
  {
    if (source.PositionAt(i) >= 0)
    {
      const auto at = static_cast<std::size_t>(i);
      std::memcpy(
        target.begin + at * sizeof(std::int32_t), source.begin + at * sizeof(std::int32_t), sizeof(std::int32_t));
      if (planes.hasValues)
      {
        std::memcpy(target.values + at * sizeof(std::uint64_t),
                    source.values + at * sizeof(std::uint64_t),
                    sizeof(std::uint64_t));
      }
    }
  }
}

int
DistanceOperation::GetScanAxis() const
{
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis)
  {
    if (image[*axis] > 1)
    {
      return *axis;
    }
  }
  return axes.empty() ? 0 : axes.front();
}

int
DistanceOperation::GetSliceAxis(int number) const
{
  for (const int axis : axes)
  {
    if (axis != this->GetScanAxis() && number-- == 0)
    {
      return axis;
    }
  }
  return -1;
}

bool
DistanceOperation::IsAlong(int axis) const
{
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

double
DistanceOperation::GetUnit() const
{
  return spacing[this->GetScanAxis()];
}

std::int64_t
DistanceOperation::GetLargestSquare() const
{
  std::int64_t square = 0;
  for (const int axis : axes)
  {
    square += (image[axis] - 1) * (image[axis] - 1);
  }
  return square;
}

DistanceNumber
DistanceOperation::GetNumber() const
{
  for (const int axis : axes)
  {
    if (image[axis] > 1 && spacing[axis] != this->GetUnit())
    {
      return DistanceNumber::Double;
    }
  }
  return this->GetLargestSquare() < None32 - 1 ? DistanceNumber::Int32 : DistanceNumber::Int64;
}

std::int64_t
DistanceOperation::GetBeyond() const
{
  const DistanceNumber number = this->GetNumber();
  const std::int64_t   none = number == DistanceNumber::Int32 ? std::int64_t{ None32 } : None64;
  const double         square = this->GetUnit() * this->GetUnit();
  const double         most = limit * limit;
  // The first number whose length is beyond the limit: lengths ascend.
  std::int64_t low = 0;
  std::int64_t high = this->GetLargestSquare() + 1;
  if (!(static_cast<double>(high - 1) * square > most))
  {
    return none;
  }
  while (low < high)
  {
    const std::int64_t middle = low + (high - low) / 2;
    const bool         isBeyond = static_cast<double>(middle) * square > most;
    low = isBeyond ? low : middle + 1;
    high = isBeyond ? middle : high;
  }
  return low;
}

double
DistanceOperation::GetBeyondAsDouble() const
{
  return std::nextafter(limit * limit, std::numeric_limits<double>::infinity());
}

DistancePlanes
DistanceOperation::GetPlanes(const Box & box) const
{
  DistancePlanes planes;
  planes.hasValues = result == DistanceResult::Label;
  planes.columns = 1;
  for (int axis = 0; axis < MaxDimension; ++axis)
  {
    // Chunks that are cut along other axes than they should know whole columns all the same.
    planes.columns *= axis == this->GetScanAxis() ? 1 : this->IsAlong(axis) ? image[axis] : box.Extent(axis);
  }
  return planes;
}

std::string
DistanceOperation::GetKey() const
{
  std::string key = "distance of " + ToString(image) + " " + PixelTypeName(inputKind) + " to " +
                    PixelTypeName(outputKind) + " features " + std::to_string(static_cast<int>(to)) + " result " +
                    std::to_string(static_cast<int>(result)) + " background " + background.ToText() + " foreground " +
                    foreground.ToText() + (insideIsPositive ? " inside" : "") + " limit" + HexText(limit) + " along";
  for (const int axis : axes)
  {
    key += " " + std::to_string(axis) + HexText(spacing[axis]);
  }
  return key + (outside ? " in " + outsideKey : "");
}

Halo
DistanceOperation::GetHalo(const Coordinates &) const
{
  Halo halo = Halo::None();
  for (const int axis : axes)
  {
    halo.lower[axis] = halo.upper[axis] = WholeAxis;
  }
  // Whether a voxel is a feature depends on the voxels beside it.
  halo.lower[this->GetScanAxis()] = to == DistanceTo::Contour || to == DistanceTo::Others ? 1 : 0;
  halo.upper[this->GetScanAxis()] = to == DistanceTo::Contour ? 1 : 0;
  return halo;
}

void
DistanceOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  if (inputs.at(0) != inputKind || output != outputKind)
  {
    throw ParameterError(std::string("distances were set up from ") + PixelTypeName(inputKind) + " to " +
                         PixelTypeName(outputKind) + ", not from " + PixelTypeName(inputs.at(0)) + " to " +
                         PixelTypeName(output));
  }
  const bool   isSmall = PixelSize(output) < 4;
  const double most = result == DistanceResult::Index ? static_cast<double>(Box::FromExtent(image).NumberOfVoxels())
                                                      : static_cast<double>(this->GetLargestSquare()) + 1;
  const double largest = DispatchPixelType(
    output, [](auto pixel) { return static_cast<double>(std::numeric_limits<decltype(pixel)>::max()); });
  switch (result)
  {
    case DistanceResult::Root:
      if (!IsFloatingPoint(output))
      {
        throw ParameterError("Output: distances are fractions, which " + std::string(PixelTypeName(output)) +
                             " does not have: the output's kind must be float32 or float64");
      }
      break;
    case DistanceResult::Squared:
      if (!IsFloatingPoint(output) &&
          (isSmall || this->GetNumber() == DistanceNumber::Double || this->GetUnit() != 1 || most > largest ||
           !(limit >= std::sqrt(static_cast<double>(this->GetLargestSquare())) || std::floor(limit) == limit)))
      {
        throw ParameterError("Output: " + std::string(PixelTypeName(output)) +
                             " does not have all squared distances: the output's kind must be float32 or float64, or, "
                             "of distances in voxels, an integer of 32 or 64 bits that has the image's diagonal");
      }
      if (to == DistanceTo::Contour && !IsFloatingPoint(output) &&
          DispatchPixelType(output, [](auto pixel) { return static_cast<decltype(pixel)>(-1) > 0; }))
      {
        throw ParameterError("Output: distances with a sign may be negative, which " +
                             std::string(PixelTypeName(output)) + " does not have");
      }
      break;
    case DistanceResult::Index:
      if (isSmall || (output == PixelType::Float32 && most > 0x1p24) || most > largest ||
          (output == PixelType::Float64 && most > 0x1p53))
      {
        throw ParameterError(
          "Output: " + std::string(PixelTypeName(output)) + " does not have all indices of " +
          std::to_string(static_cast<std::int64_t>(most)) +
          " voxels: the output's kind must be an integer of 32 or 64 bits, or a floating-point type, that has");
      }
      break;
    case DistanceResult::Label:
      if (output != inputKind)
      {
        throw ParameterError("Output: labels are " + std::string(PixelTypeName(inputKind)) +
                             " as those of the input, not " + PixelTypeName(output));
      }
      break;
    default:
      if (!foreground.IsOf(output))
      {
        throw ParameterError("ForegroundValue",
                             foreground.ToText(),
                             std::string("a value of the output's pixel type, ") + PixelTypeName(output));
      }
  }
}

void
DistanceOperation::Validate(const Coordinates & extent) const
{
  if (extent != image)
  {
    throw ParameterError("distances were set up for an image of " + ToString(image) + " voxels, not of " +
                         ToString(extent));
  }
  if (axes.empty() || axes.size() > MaxSpatialAxes || !std::is_sorted(axes.begin(), axes.end()))
  {
    throw ParameterError("SpatialAxes: distances are taken along 1 to 3 axes");
  }
  for (const int axis : axes)
  {
    if (image[axis] > LongestAxis)
    {
      throw ParameterError("Image",
                           std::to_string(image[axis]) + " voxels along axis " + std::to_string(axis),
                           "at most " + std::to_string(LongestAxis));
    }
    if (!(spacing[axis] > 0) || !std::isfinite(spacing[axis]) || !std::isfinite(spacing[axis] * spacing[axis]) ||
        spacing[axis] * spacing[axis] < std::numeric_limits<double>::min())
    {
      throw ParameterError("UseImageSpacing: the input's spacing along axis " + std::to_string(axis) + " is " +
                           PixelValue(spacing[axis]).ToText());
    }
  }
  if (!(limit >= 0))
  {
    throw ParameterError("MaximumDistance", PixelValue(limit).ToText(), "0 or more");
  }
}

Coordinates
DistanceOperation::RoundChunk(const Coordinates & extent) const
{
  Coordinates rounded = extent;
  for (const int axis : axes)
  {
    rounded[axis] =
      axis == this->GetScanAxis() ? std::max(extent[axis], std::min(image[axis], LeastSlices)) : image[axis];
  }
  for (int axis = 0; axis < MaxDimension && outside; ++axis)
  {
    // All voxels outside of a region are known at once.
    rounded[axis] = this->IsAlong(axis) ? rounded[axis] : image[axis];
  }
  return rounded;
}

bool
DistanceOperation::RunsAlone(const Box & region, PixelType) const
{
  const int scan = this->GetScanAxis();
  return outside || (region.lower[scan] == 0 && region.upper[scan] == image[scan]);
}

std::size_t
DistanceOperation::GetSummaryBytes(const Box & box, const std::vector<PixelType> &, PixelType) const
{
  // Beside the planes of the box itself those of all chunks that it can be cut into, so that plans know them.
  const auto chunks = static_cast<std::size_t>((box.Extent(this->GetScanAxis()) + LeastSlices - 1) / LeastSlices);
  return 2 * this->GetPlanes(box).SideBytes() * std::max<std::size_t>(1, chunks);
}

std::vector<ChunkState>
DistanceOperation::Solve(const std::vector<Box> & chunks, const std::vector<ChunkState> & summaries) const
{
  const int scan = this->GetScanAxis();
  // Chunks that follow each other along the scan axis, by where they lie along the axes that are not spatial. Those
  // with the same slices have the same summary.
  std::map<std::vector<std::int64_t>, std::map<std::int64_t, std::vector<std::size_t>>> rows;
  for (std::size_t c = 0; c < chunks.size(); ++c)
  {
    std::vector<std::int64_t> place;
    for (int axis = 0; axis < MaxDimension; ++axis)
    {
      if (!this->IsAlong(axis))
      {
        place.push_back(chunks[c].lower[axis]);
      }
    }
    rows[place][chunks[c].lower[scan]].push_back(c);
  }
  std::vector<ChunkState> solutions(chunks.size());
  for (const auto & row : rows)
  {
    const DistancePlanes planes = this->GetPlanes(chunks[row.second.begin()->second.front()]);
    const std::size_t    bytes = planes.SideBytes();
    if (outside && outside->size() != 2 * bytes)
    {
      throw Error("distances know other columns outside of the region than its chunks have");
    }
    std::int64_t end = outside ? row.second.begin()->first : 0;
    for (const auto & slices : row.second)
    {
      if (slices.first != end)
      {
        throw ParameterError("Region: distances need the whole image along axis " + std::to_string(scan));
      }
      end = chunks[slices.second.front()].upper[scan];
    }
    if (!outside && end != image[scan])
    {
      throw ParameterError("Region: distances need the whole image along axis " + std::to_string(scan));
    }
    ChunkState known(bytes, 0xff);
    if (outside)
    {
      std::copy_n(outside->begin(), bytes, known.begin());
    }
    for (const auto & slices : row.second)
    {
      for (const std::size_t c : slices.second)
      {
        solutions[c].resize(2 * bytes);
        std::copy(known.begin(), known.end(), solutions[c].begin());
      }
      ReplaceFeatures(known.data(), summaries[slices.second.front()].data() + bytes, planes);
    }
    std::fill(known.begin(), known.end(), static_cast<unsigned char>(0xff));
    if (outside)
    {
      std::copy_n(outside->begin() + static_cast<std::ptrdiff_t>(bytes), bytes, known.begin());
    }
    for (auto slices = row.second.rbegin(); slices != row.second.rend(); ++slices)
    {
      for (const std::size_t c : slices->second)
      {
        std::copy(known.begin(), known.end(), solutions[c].begin() + static_cast<std::ptrdiff_t>(bytes));
      }
      ReplaceFeatures(known.data(), summaries[slices->second.front()].data(), planes);
    }
  }
  return solutions;
}

} // namespace chunkwise
