/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseResampleOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseResampleField.h"
#include "chunkwiseResamplePoints.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace chunkwise
{

namespace
{

/** Voxels of the output that are larger by less than this have the image's size: rotations are rounded. */
constexpr double SameSize = 1e-6;
/** Times that a voxel of the output can be as large: the kernel has so many taps along each axis, which are a box if
 * axes depend on each other. */
constexpr double LargestScale = 4096;
constexpr double LargestScaleOfBoxes = 64;
/** Taps of all axes, multiplied for labels, added for others: each thread of a device needs memory for them. */
constexpr std::int64_t LargestBoxOfDevices = 512;
constexpr std::int64_t LargestSumOfDevices = 256;

std::string
HexNumber(double number)
{
  char text[40];
  std::snprintf(text, sizeof(text), " %a", number);
  return text;
}

bool
IsWhole(double number)
{
  return std::nearbyint(number) == number;
}

} // namespace

bool
ResampleOperation::UsesDoubles(PixelType input, PixelType output)
{
  return UsesDouble(input) || output == PixelType::Float64;
}

ResampleOperation::Axis
ResampleOperation::GetAxis(int i) const
{
  Axis axis;
  axis.length = image[axes[i]];
  bool   isOnVoxels = IsWhole(offset[i]) && (!this->HasOwnPoints() || !areThere[i]);
  double square = 0;
  for (int o = 0; o < Axes; ++o)
  {
    isOnVoxels = isOnVoxels && IsWhole(matrix[i][o]);
    square += matrix[i][o] * matrix[i][o];
  }
  const double size = std::sqrt(square);
  axis.scale = antialias && size > 1 + SameSize ? size : 1;
  const bool areValues = interpolation != Interpolation::Cubic || prefilter || !areThere[i];
  const bool keepsVoxels = isOnVoxels && axis.scale == 1 && areValues;
  if (interpolation == Interpolation::Nearest || keepsVoxels)
  {
    axis.scale = 1;
    return axis;
  }
  double radius = 1;
  axis.kernel = TapKernel::Linear;
  if (interpolation == Interpolation::Cubic)
  {
    radius = 2;
    axis.kernel = axis.scale > 1 ? TapKernel::Keys : TapKernel::Spline;
    axis.isFiltered = prefilter && axis.kernel == TapKernel::Spline;
  }
  else if (interpolation == Interpolation::Lanczos)
  {
    radius = 3;
    axis.kernel = TapKernel::Lanczos;
  }
  const auto half = static_cast<std::int64_t>(std::ceil(radius * std::min(axis.scale, LargestScale)));
  axis.taps = 2 * half;
  axis.below = half - 1;
  return axis;
}

bool
ResampleOperation::IsOnVoxels() const
{
  return this->GetAxis(0).taps == 1 && this->GetAxis(1).taps == 1 && this->GetAxis(2).taps == 1;
}

bool
ResampleOperation::IsDiagonal() const
{
  if (this->HasOwnPoints())
  {
    return false;
  }
  for (int i = 0; i < Axes; ++i)
  {
    for (int o = 0; o < Axes; ++o)
    {
      if (i != o && matrix[i][o] != 0)
      {
        return false;
      }
    }
  }
  return true;
}

std::string
ResampleOperation::GetKey() const
{
  std::string key = "resample " + ToString(image) + " to " + ToString(output);
  for (int i = 0; i < Axes; ++i)
  {
    key += " axis " + std::to_string(axes[i]);
    for (int o = 0; o < Axes; ++o)
    {
      key += HexNumber(matrix[i][o]);
    }
    key += HexNumber(offset[i]) + (areThere[i] ? "" : " -");
  }
  return key + " " + std::to_string(static_cast<int>(interpolation)) + " " + std::to_string(static_cast<int>(outside)) +
         " " + value.ToText() + (antialias ? " a" : "") + (prefilter ? " p" : "") + (field ? field->GetKey() : "") +
         (points[0] ? " points " + std::to_string(reinterpret_cast<std::uintptr_t>(points[0])) : "");
}

void
ResampleOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType kind) const
{
  const bool copies = interpolation == Interpolation::Nearest || interpolation == Interpolation::Label;
  if (kind != inputs.at(0) && (copies || !IsFloatingPoint(kind)))
  {
    const std::string input = PixelTypeName(inputs.at(0));
    throw ParameterError("resampling of " + input + " gives " + input +
                         (copies ? " voxels, not " : ", float32 or float64 voxels, not ") + PixelTypeName(kind));
  }
}

void
ResampleOperation::Validate(const Coordinates & extent) const
{
  if (extent != image)
  {
    throw ParameterError("the grid is for an image of " + ToString(image) + " voxels, not of " + ToString(extent));
  }
  double voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const bool isFree = a == axes[0] || a == axes[1] || a == axes[2];
    if (output[a] < std::min<std::int64_t>(image[a], 1) || (!isFree && output[a] != image[a]) ||
        (a > 0 && points[0] && output[a] != 1))
    {
      throw ParameterError("Size", ToString(output), "at least one voxel along each axis");
    }
    voxels *= static_cast<double>(output[a]);
  }
  if (voxels > 9e18)
  {
    throw ParameterError("Size", ToString(output), "at most 2^63 voxels");
  }
  for (int i = 0; i < Axes; ++i)
  {
    double reach = std::abs(offset[i]);
    for (int o = 0; o < Axes; ++o)
    {
      reach += std::abs(matrix[i][o]) * static_cast<double>(output[axes[o]]);
    }
    // NaN is refused too.
    if (!(reach < FarthestPoint))
    {
      throw ParameterError("the output's voxels lie more than 2^52 of the image's voxels away from it along axis " +
                           std::to_string(axes[i]));
    }
    const Axis   axis = this->GetAxis(i);
    const double largest =
      this->IsDiagonal() && interpolation != Interpolation::Label ? LargestScale : LargestScaleOfBoxes;
    if (axis.scale > largest)
    {
      throw ParameterError("a voxel of the output is larger than " + std::to_string(static_cast<int>(largest)) +
                           " voxels of the image along axis " + std::to_string(axes[i]) +
                           "; resample in two steps, or without antialiasing");
    }
    if (axis.isFiltered && (outside == ResampleOutside::GridConstant || outside == ResampleOutside::Nearest))
    {
      throw ParameterError("Outside", "grid-constant or nearest", "another mode for cubic interpolation, or padding");
    }
  }
}

Coordinates
ResampleOperation::GetExtent(const Coordinates &) const
{
  return output;
}

std::string
ResampleOperation::GetObjectionToDevices() const
{
  if (points[0])
  {
    return "devices have no kernels for points that follow from no grid";
  }
  std::int64_t box = 1;
  std::int64_t sum = 0;
  for (int i = 0; i < Axes; ++i)
  {
    box *= this->GetAxis(i).taps;
    sum += this->GetAxis(i).taps;
  }
  const bool isTooLarge = interpolation == Interpolation::Label ? box > LargestBoxOfDevices
                                                                : !this->IsDiagonal() && sum > LargestSumOfDevices;
  return isTooLarge ? "devices have no kernels for voxels that are so much larger than the image's" : "";
}

std::int64_t
ResampleOperation::CountBeside(const Axis & axis)
{
  // Along the axes of splines three voxels more: then reflections lie inside, and no box ends before an earlier one.
  return axis.isFiltered ? SplineRadius + 3 : axis.kernel == TapKernel::Spline ? 3 : 0;
}

Coordinates
ResampleOperation::GetMostInput(const Coordinates & box, const Coordinates &) const
{
  if (points[0])
  {
    return image;
  }
  Coordinates input = box;
  double      least[Axes]{};
  double      most[Axes]{};
  if (field)
  {
    field->GetBounds(least, most);
  }
  for (int i = 0; i < Axes; ++i)
  {
    const Axis axis = this->GetAxis(i);
    double     length = most[i] - least[i] + static_cast<double>(2 * CountBeside(axis) + axis.taps) + 2;
    for (int o = 0; o < Axes; ++o)
    {
      length += std::abs(matrix[i][o]) * static_cast<double>(box[axes[o]]);
    }
    // With these modes a box that leaves the image is the whole axis.
    const bool wraps = outside > ResampleOutside::Constant;
    input[axes[i]] =
      !wraps && length < static_cast<double>(axis.length) ? static_cast<std::int64_t>(std::ceil(length)) : axis.length;
  }
  return input;
}

Box
ResampleOperation::GetInputBox(const Box & box, const Coordinates &) const
{
  if (points[0])
  {
    return Box::FromExtent(image);
  }
  Box    input = box;
  double least[Axes]{};
  double most[Axes]{};
  if (field)
  {
    Coordinates lower{};
    Coordinates upper{};
    for (int o = 0; o < Axes; ++o)
    {
      lower[o] = box.lower[axes[o]];
      upper[o] = box.upper[axes[o]];
    }
    field->GetBounds(lower, upper, least, most);
  }
  for (int i = 0; i < Axes; ++i)
  {
    const Axis  axis = this->GetAxis(i);
    Coordinates first{};
    Coordinates last{};
    const int   a = axes[i];
    for (int o = 0; o < Axes; ++o)
    {
      const bool rises = matrix[i][o] >= 0;
      first[o] = rises ? box.lower[axes[o]] : box.upper[axes[o]] - 1;
      last[o] = rises ? box.upper[axes[o]] - 1 : box.lower[axes[o]];
    }
    // Rounding is monotonic: the points of all voxels lie between these.
    const ResampleEdge edge(axis, outside);
    const double       lowest = edge.Move(PointOf(*this, i, first) + (field ? least[i] : 0));
    const double       highest = edge.Move(PointOf(*this, i, last) + (field ? most[i] : 0));
    const std::int64_t more = CountBeside(axis);
    input.lower[a] = FirstTap(axis, lowest) - more;
    input.upper[a] = FirstTap(axis, highest) + axis.taps + more;
    const bool leaves = input.lower[a] < 0 || input.upper[a] > axis.length;
    if (leaves && outside > ResampleOutside::Constant)
    {
      input.lower[a] = 0;
      input.upper[a] = axis.length;
    }
    input.lower[a] = std::min(std::max<std::int64_t>(input.lower[a], 0), axis.length - 1);
    input.upper[a] = std::max(std::min(input.upper[a], axis.length), input.lower[a] + 1);
  }
  return input;
}

} // namespace chunkwise
