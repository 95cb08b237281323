/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLabelOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseLabelSummary.h"

#include <algorithm>
#include <cstring>

namespace chunkwise
{

namespace
{

constexpr int CenterBit = 13;


/** Calls f(bit, offset along the three axes) for all offsets. */
template <typename TFunctor>
void
ForEachOffset(TFunctor && f)
{
  for (int bit = 0; bit < 27; ++bit)
  {
    f(bit, bit % 3 - 1, bit / 3 % 3 - 1, bit / 9 - 1);
  }
}

} // namespace

std::uint32_t
LabelOperation::MakeStructure(int connectivity, int dimension)
{
  std::uint32_t structure = 0;
  ForEachOffset([&](int bit, int d0, int d1, int d2) {
    const bool isInside = (dimension > 1 || d1 == 0) && (dimension > 2 || d2 == 0) && (dimension > 0 || d0 == 0);
    const int  distance = std::abs(d0) + std::abs(d1) + std::abs(d2);
    if (isInside && distance <= connectivity)
    {
      structure |= std::uint32_t{ 1 } << bit;
    }
  });
  return structure;
}

bool
LabelOperation::IsStructure(std::uint32_t structure, int dimension)
{
  bool isSymmetric = true;
  for (int bit = 0; bit < 27; ++bit)
  {
    isSymmetric = isSymmetric && (structure >> bit & 1) == (structure >> (26 - bit) & 1);
  }
  return isSymmetric && (structure & ~MakeStructure(3, dimension)) == 0;
}

LabelNeighbors
LabelOperation::GetNeighbors() const
{
  const auto has = [this](const int * offset) {
    int bit = 0;
    int factor = 1;
    int inAxes = 0;
    for (std::size_t i = 0; i < axes.size(); ++i)
    {
      bit += (offset[axes[i]] + 1) * factor;
      inAxes += offset[axes[i]] != 0 ? 1 : 0;
      factor *= 3;
    }
    for (; factor < 27; factor *= 3)
    {
      bit += factor;
    }
    int all = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      all += offset[a] != 0 ? 1 : 0;
    }
    return all == inAxes && (bit == CenterBit || (structure >> bit & 1) != 0);
  };
  LabelNeighbors result{};
  result.center = -1;
  int link[MaxDimension]{ -1 };
  result.links = has(link);
  bool isPeriodic = false;
  for (int a = 0; a < MaxDimension; ++a)
  {
    isPeriodic = isPeriodic || periodic[a];
  }
  // All offsets along axes 1 and up whose slowest step goes back.
  for (int code = 0; code < 81; ++code)
  {
    int offset[MaxDimension]{ 0, code % 3 - 1, code / 3 % 3 - 1, code / 9 % 3 - 1, code / 27 - 1 };
    int slowest = MaxDimension - 1;
    while (slowest > 0 && offset[slowest] == 0)
    {
      --slowest;
    }
    if (slowest == 0 || offset[slowest] > 0)
    {
      continue;
    }
    LabelRow row{};
    for (int a = 1; a < MaxDimension; ++a)
    {
      row.offset[a] = static_cast<std::int8_t>(offset[a]);
    }
    for (int d = -1; d <= 1; ++d)
    {
      offset[0] = d;
      row.shifts = static_cast<std::uint8_t>(row.shifts | (has(offset) ? 1 << (d + 1) : 0));
    }
    if (row.shifts != 0)
    {
      result.rows[result.count++] = row;
    }
  }
  if (rule == LabelRule::Within || isPeriodic)
  {
    // Two voxels within the tolerance of a third need not be within that of each other; and around a periodic image
    // each voxel may be implied by the next.
    return result;
  }
  const int slowest = axes.empty() ? 0 : axes.back();
  for (int r = 0; r < result.count; ++r)
  {
    int steps = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      steps += result.rows[r].offset[a] != 0 ? 1 : 0;
    }
    if (steps == 1 && result.rows[r].offset[slowest] == -1 && (result.rows[r].shifts & 2) != 0)
    {
      result.center = r;
    }
  }
  for (int r = 0; r < result.count && result.center >= 0; ++r)
  {
    bool isAround = r != result.center;
    for (int d = -1; d <= 1; ++d)
    {
      int offset[MaxDimension]{ d };
      for (int a = 1; a < MaxDimension; ++a)
      {
        offset[a] = result.rows[r].offset[a] - result.rows[result.center].offset[a];
      }
      const bool isThere = (result.rows[r].shifts >> (d + 1) & 1) != 0;
      const bool isStep = std::all_of(offset, offset + MaxDimension, [](int step) { return step >= -1 && step <= 1; });
      isAround = isAround && (!isThere || (isStep && has(offset)));
    }
    result.aroundCenter |= isAround ? std::uint32_t{ 1 } << r : 0;
  }
  return result;
}

std::vector<Coordinates>
LabelOperation::GetOffsets() const
{
  const LabelNeighbors     neighbors = this->GetNeighbors();
  std::vector<Coordinates> offsets;
  if (neighbors.links)
  {
    offsets.push_back({ { -1, 0, 0, 0, 0 } });
  }
  for (int r = 0; r < neighbors.count; ++r)
  {
    for (int d = -1; d <= 1; ++d)
    {
      if ((neighbors.rows[r].shifts >> (d + 1) & 1) != 0)
      {
        offsets.push_back({ { d, 0, 0, 0, 0 } });
        for (int a = 1; a < MaxDimension; ++a)
        {
          offsets.back()[a] = neighbors.rows[r].offset[a];
        }
      }
    }
  }
  return offsets;
}

bool
LabelOperation::AreAlike(const void * a, const void * b) const
{
  if (rule == LabelRule::Foreground)
  {
    return true;
  }
  return DispatchPixelType(inputKind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    Pixel values[2];
    std::memcpy(&values[0], a, sizeof(Pixel));
    std::memcpy(&values[1], b, sizeof(Pixel));
    return rule == LabelRule::Equal ? LabelIsEqual<Pixel>()(values[0], values[1])
                                    : MakeLabelIsWithin<Pixel>(tolerance)(values[0], values[1]);
  });
}

bool
LabelOperation::IsWide() const
{
  const std::uint64_t largest =
    largestNumber != 0 ? largestNumber : static_cast<std::uint64_t>(Box::FromExtent(image).NumberOfVoxels());
  return largest >= std::uint64_t{ 1 } << 31;
}

std::uint64_t
LabelOperation::MostLabels(PixelType kind)
{
  switch (kind)
  {
    case PixelType::Float32:
      return std::uint64_t{ 1 } << 24;
    case PixelType::Float64:
      return std::uint64_t{ 1 } << 53;
    default:
      return DispatchPixelType(
        kind, [](auto pixel) { return static_cast<std::uint64_t>(std::numeric_limits<decltype(pixel)>::max()); });
  }
}

void
CheckNumberOfLabels(std::uint64_t count, PixelType kind)
{
  if (count > LabelOperation::MostLabels(kind))
  {
    const PixelType larger[] = { PixelType::UInt16, PixelType::UInt32, PixelType::UInt64 };
    const auto      enough = std::find_if(std::begin(larger), std::end(larger) - 1, [count](PixelType each) {
      return count <= LabelOperation::MostLabels(each);
    });
    throw Error("the image has " + std::to_string(count) + " components; " + PixelTypeName(kind) +
                " has labels up to " + std::to_string(LabelOperation::MostLabels(kind)) + ": the output type " +
                PixelTypeName(*enough) + " has all");
  }
}

std::string
LabelOperation::GetKey() const
{
  std::string key = "label of " + ToString(image) + " " + PixelTypeName(inputKind) + " to " +
                    PixelTypeName(outputKind) + " structure " + std::to_string(structure) + " rule " +
                    std::to_string(static_cast<int>(rule)) + " within " + tolerance.ToText() +
                    (labelsBackground ? "" : " but " + background.ToText()) + " along";
  for (const int axis : axes)
  {
    key += " " + std::to_string(axis) + (periodic[axis] ? " periodic" : "");
  }
  return key + (largestNumber != 0 ? " up to " + std::to_string(largestNumber) : "") +
         (numbering ? " numbered " + numbering->key : "");
}

void
LabelOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  if (inputs.at(0) != inputKind || output != outputKind)
  {
    throw ParameterError(std::string("labels were set up from ") + PixelTypeName(inputKind) + " to " +
                         PixelTypeName(outputKind) + ", not from " + PixelTypeName(inputs.at(0)) + " to " +
                         PixelTypeName(output));
  }
}

void
LabelOperation::Validate(const Coordinates & extent) const
{
  if (extent != image)
  {
    throw ParameterError("labels were set up for an image of " + ToString(image) + " voxels, not of " +
                         ToString(extent));
  }
  if (axes.size() > MaxSpatialAxes || !std::is_sorted(axes.begin(), axes.end()))
  {
    throw ParameterError("SpatialAxes: labels have neighbors along 1 to 3 axes");
  }
  if (!IsStructure(structure, static_cast<int>(axes.size())))
  {
    throw ParameterError("Structure: a structure of neighbors must be symmetric");
  }
  if (rule == LabelRule::Within && !(tolerance.ToDouble() >= 0))
  {
    throw ParameterError("Tolerance", tolerance.ToText(), "0 or more");
  }
}

std::size_t
LabelOperation::GetSummaryBytes(const Box & box, const std::vector<PixelType> &, PixelType) const
{
  return LabelSummaryLayout(*this, box).bytes;
}

LabelSummaryLayout::LabelSummaryLayout(const LabelOperation & operation, const Box & box)
  : rows(CountRows(box))
  , labelBytes(operation.IsWide() ? 8 : 4)
  , faces{}
  , numberOfFaces(0)
{
  const auto take = [this](std::size_t count, std::size_t size) {
    const std::size_t at = bytes;
    bytes += (count * size + 7) / 8 * 8;
    return at;
  };
  bytes = 0;
  take(static_cast<std::size_t>(rows), sizeof(std::uint32_t));
  for (const int axis : operation.axes)
  {
    for (const bool isUpper : { false, true })
    {
      if (operation.faceAxis >= 0 && operation.faceAxis != axis)
      {
        continue;
      }
      LabelFace & face = faces[numberOfFaces++];
      face.axis = axis;
      face.isUpper = isUpper;
      face.voxels = box.NumberOfVoxels() / box.Extent(axis);
      const auto count = static_cast<std::size_t>(face.voxels);
      face.labels = take(count, labelBytes);
      face.values = operation.rule == LabelRule::Foreground ? 0 : take(count, PixelSize(operation.inputKind));
    }
  }
}

} // namespace chunkwise
