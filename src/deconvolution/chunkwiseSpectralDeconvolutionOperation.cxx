/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSpectralDeconvolutionOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>

namespace chunkwise
{

namespace
{

/** The first axis is always transformed, so that there is one. */
bool
IsTransformed(const SpectralDeconvolutionOperation & operation, const Coordinates & image, int axis)
{
  return axis == 0 || (operation.isSpatial[axis] && (image[axis] > 1 || operation.kernel->GetExtent()[axis] > 1));
}

std::int64_t
PaddedLength(std::int64_t least)
{
  for (std::int64_t length = least;; ++length)
  {
    std::int64_t rest = length;
    for (const int prime : { 2, 3, 5 })
    {
      while (rest % prime == 0)
      {
        rest /= prime;
      }
    }
    if (rest == 1)
    {
      return length;
    }
  }
}

} // namespace

std::string
SpectralDeconvolutionOperation::GetKey() const
{
  std::string key = GetName() + " " + std::to_string(static_cast<int>(rule)) + " " + kernel->GetKey();
  for (const double number : { noiseVariance, regularization, leastMagnitude })
  {
    key += " " + PixelValue(number).ToText();
  }
  for (const bool spatial : isSpatial)
  {
    key += spatial ? " 1" : " 0";
  }
  return key;
}

Halo
SpectralDeconvolutionOperation::GetHalo(const Coordinates & image) const
{
  Halo halo = Halo::None();
  for (int a = 0; a < MaxDimension; ++a)
  {
    halo.lower[a] = halo.upper[a] = IsTransformed(*this, image, a) && image[a] > 1 ? WholeAxis : 0;
  }
  return halo;
}

Coordinates
SpectralDeconvolutionOperation::GetTile(const Coordinates & image) const
{
  Coordinates tile = Coordinates::Filled(1);
  int         count = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const bool transformed = IsTransformed(*this, image, a);
    tile[a] = transformed ? image[a] : 1;
    count += transformed ? 1 : 0;
  }
  // Lines along one axis are transformed in pairs.
  tile[1] = count == 1 ? std::min(image[1], ConvolutionBlock::RowsOfTile) : tile[1];
  return tile;
}

void
SpectralDeconvolutionOperation::Validate(const Coordinates & image) const
{
  const auto require = [](const char * name, double value) {
    if (!std::isfinite(value) || value < 0)
    {
      throw ParameterError(name, PixelValue(value).ToText(), "a number from 0");
    }
  };
  require("NoiseVariance", noiseVariance);
  require("RegularizationConstant", regularization);
  require("KernelZeroMagnitudeThreshold", leastMagnitude);
  ImageConvolutionOperation::Validate(image);
  int axes = 0;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const bool transformed = IsTransformed(*this, image, a);
    axes += transformed ? 1 : 0;
    if (!transformed && kernel->GetExtent()[a] > 1)
    {
      throw ParameterError("KernelImage", ToString(kernel->GetExtent()), "of extent 1 along axes that are not spatial");
    }
  }
  if (axes > MaxSpatialAxes)
  {
    throw ParameterError("Axes", std::to_string(axes), "at most " + std::to_string(MaxSpatialAxes) + " axes");
  }
  if (!kernel->GetWeights().empty() && kernel->GetSumOfMagnitudes() == 0)
  {
    throw ParameterError("KernelImage", "0", "a sum of weights above 0");
  }
}

ConvolutionBlock
SpectralDeconvolutionOperation::MakeBlock(const Coordinates & image, const Box & output) const
{
  ConvolutionBlock block(*this, output, image);
  int              next = 0;
  for (const bool transformed : { true, false })
  {
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (IsTransformed(*this, image, a) != transformed)
      {
        continue;
      }
      ConvolutionBlock::Axis & axis = block.role[next++];
      axis.axis = a;
      axis.transformed = transformed;
      axis.output = output.Extent(a);
      axis.kernel = kernel->GetExtent()[a];
      axis.length = transformed ? PaddedLength(image[a] + axis.kernel) : axis.output;
      axis.input = axis.length;
      const std::int64_t before = std::max((axis.length - axis.output) / 2, kernel->GetCenter()[a]);
      axis.lower = output.lower[a] - before;
      // The kernel lies at its begin, not at its center, so that the result lies so much earlier.
      axis.crop = before - kernel->GetCenter()[a];
    }
  }
  return block;
}

} // namespace chunkwise
