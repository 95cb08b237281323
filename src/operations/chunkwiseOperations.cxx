/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOperations.h"

#include "chunkwiseError.h"
#include "chunkwiseVarianceOperation.h"
#include "chunkwiseWindow.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace chunkwise
{

namespace
{

/** Beyond this a boundary mode that maps taps walks too far outside of the image to be meant. */
constexpr std::int64_t LargestMappedRadius = 65535;

/** The name of an operation in a message: some operations are several filters. */
std::string
TitleOf(const WindowedOperation & operation)
{
  const auto * const mean = dynamic_cast<const MeanOperation *>(&operation);
  const auto * const variance = dynamic_cast<const VarianceOperation *>(&operation);
  return mean && mean->sums ? "sum" : variance && variance->takesRoot ? "standard deviation" : operation.GetName();
}

} // namespace

std::string
ExactText(double value)
{
  char text[64];
  std::snprintf(text, sizeof(text), "%a", value);
  return text;
}

std::string
ExactText(const PixelValue & value)
{
  // A number that a double has is spelled in one way, however it was given.
  return value.IsOf(PixelType::Float64) ? ExactText(value.ToDouble()) : value.ToText();
}

std::string
BoundaryKey(const WindowBoundary & boundary)
{
  return std::string(BoundaryModeName(boundary.mode)) +
         (boundary.mode == BoundaryMode::Constant ? " " + ExactText(boundary.constant) : std::string());
}

void
CheckSameOrFloatingOutput(const std::string & operation, PixelType input, PixelType output)
{
  if (output != input && !IsFloatingPoint(output))
  {
    // Without what tells the kernels of a filter apart.
    const std::string title = operation.substr(0, operation.find('.'));
    const std::string allowed =
      (IsFloatingPoint(input) ? "" : PixelTypeName(input) + std::string(", ")) + "float32 or float64";
    ParameterError error("Output: " + title + " of " + PixelTypeName(input) + " cannot give " + PixelTypeName(output) +
                         "; it must be " + allowed);
    error.value = PixelTypeName(output);
    error.allowed = allowed;
    throw error;
  }
}

void
CheckExactOutput(const std::string & operation, PixelType input, PixelType output)
{
  const PixelType wide =
    DispatchPixelType(input, [](auto pixel) { return PixelTypeOf<WideResultOf<decltype(pixel)>>(); });
  if (output != wide)
  {
    CheckSameOrFloatingOutput(operation, input, output);
  }
}

std::string
IdentityOperation::GetKey() const
{
  return "identity";
}

Halo
IdentityOperation::GetHalo(const Coordinates &) const
{
  return Halo::None();
}

void
IdentityOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  CheckSameOrFloatingOutput("identity", inputs.at(0), output);
}

std::string
BoxOperation::GetKey() const
{
  return GetName() + " " + ToString(radius) + " " + BoundaryKey(boundary);
}

Halo
BoxOperation::GetHalo(const Coordinates & image) const
{
  const Coordinates reach = EffectiveRadius(image);
  return { reach, reach };
}

void
BoxOperation::CheckNumberOfAxes(const Coordinates & image) const
{
  int axes = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    axes += EffectiveRadius(a, image[a]) > 0 ? 1 : 0;
  }
  if (axes > MaxSpatialAxes)
  {
    throw ParameterError("Radius: " + ToString(radius) + " has " + std::to_string(axes) +
                         " axes; a window takes part in at most " + std::to_string(MaxSpatialAxes));
  }
}

Coordinates
BoxOperation::EffectiveRadius(const Coordinates & image) const
{
  Coordinates effective{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    effective[a] = EffectiveRadius(a, image[a]);
  }
  return effective;
}

void
WindowedOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  CheckSameOrFloatingOutput(TitleOf(*this), inputs.at(0), output);
}

void
MeanOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  CheckExactOutput(TitleOf(*this), inputs.at(0), output);
}

void
BoxOperation::Validate(const Coordinates & image) const
{
  double taps = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (radius[a] < 0)
    {
      throw ParameterError("Radius: " + std::to_string(radius[a]) + " along axis " + std::to_string(a) +
                           " is negative");
    }
    if (boundary.mode != BoundaryMode::Renormalized && radius[a] > LargestMappedRadius)
    {
      throw ParameterError("Radius: " + std::to_string(radius[a]) + " along axis " + std::to_string(a) +
                           " is larger than " + std::to_string(LargestMappedRadius) +
                           ", the largest with this boundary condition");
    }
    taps *= 2.0 * static_cast<double>(EffectiveRadius(a, image[a])) + 1;
  }
  // Sums of 32-bit pixels over this many taps fit 64 bits.
  if (taps >= 2147483648.0)
  {
    throw ParameterError("Radius: " + ToString(radius) + " makes a window of " + std::to_string(taps) +
                         " voxels; it must have fewer than 2^31");
  }
}

std::string
SeparableOperation::GetKey() const
{
  std::string key = GetName() + " " + BoundaryKey(boundary);
  for (const auto & axis : weights)
  {
    key += "|";
    for (const double weight : axis)
    {
      key += ExactText(weight) + ",";
    }
  }
  return key;
}

Halo
SeparableOperation::GetHalo(const Coordinates &) const
{
  Halo halo = Halo::None();
  for (int a = 0; a < MaxDimension; ++a)
  {
    halo.lower[a] = halo.upper[a] = Radius(a);
  }
  return halo;
}

void
SeparableOperation::Validate(const Coordinates & image) const
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::string axis = "along axis " + std::to_string(a);
    if (weights[a].empty())
    {
      continue;
    }
    if (weights[a].size() % 2 == 0)
    {
      throw ParameterError("the kernel has " + std::to_string(weights[a].size()) + " weights " + axis +
                           "; the number must be odd");
    }
    if (weights[a].size() == 1 && weights[a][0] != 1.0)
    {
      throw ParameterError("the kernel's only weight " + axis + " is " + std::to_string(weights[a][0]) +
                           "; a kernel of one weight must be 1");
    }
    if (boundary.mode != BoundaryMode::Renormalized && Radius(a) > LargestMappedRadius)
    {
      throw ParameterError("the kernel's radius is " + std::to_string(Radius(a)) + " " + axis +
                           "; with this boundary mode it must not exceed " + std::to_string(LargestMappedRadius));
    }
    for (const double weight : weights[a])
    {
      if (!std::isfinite(weight))
      {
        throw ParameterError("a kernel weight " + axis + " is " + std::to_string(weight) + "; it must be finite");
      }
    }
    if (boundary.mode == BoundaryMode::Renormalized)
    {
      for (const double norm : GetNorms(a, image[a]))
      {
        if (!std::isfinite(norm))
        {
          throw ParameterError("the kernel's weights inside the image sum to zero " + axis +
                               ", so it cannot be renormalized");
        }
      }
    }
  }
}

std::vector<double>
SeparableOperation::GetNorms(int a, std::int64_t n) const
{
  const std::int64_t radius = Radius(a);
  n = std::min(n, 2 * radius + 1); // a longer axis has no other norms
  std::vector<double> norms(static_cast<std::size_t>(n), 1.0);
  if (weights[a].empty())
  {
    return norms;
  }
  for (std::int64_t i = 0; i < n; ++i)
  {
    if (i == radius && i + radius < n)
    {
      continue; // the whole window is inside
    }
    double sum = 0;
    for (std::int64_t t = std::max<std::int64_t>(0, radius - i); t <= std::min(2 * radius, n - 1 - i + radius); ++t)
    {
      sum += weights[a][static_cast<std::size_t>(t)];
    }
    norms[static_cast<std::size_t>(i)] = 1.0 / sum;
  }
  return norms;
}

} // namespace chunkwise
