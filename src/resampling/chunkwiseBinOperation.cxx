/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBinOperation.h"

#include "chunkwiseError.h"
#include "chunkwiseOperations.h"

#include <algorithm>

namespace chunkwise
{

std::string
BinOperation::GetKey() const
{
  return "bin " + ToString(image) + " by " + ToString(factor) + " " + std::to_string(static_cast<int>(method));
}

Box
BinOperation::GetBlocks(const Box & output) const
{
  Box blocks{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    blocks.lower[a] = output.lower[a] * factor[a];
    blocks.upper[a] = std::min(output.upper[a] * factor[a], image[a]);
  }
  return blocks;
}

Coordinates
BinOperation::GetReach() const
{
  Coordinates reach{};
  for (int a = 0; a < MaxDimension && method == BinMethod::Gaussian; ++a)
  {
    reach[a] = factor[a] - 1;
  }
  return reach;
}

Box
BinOperation::GetWindows(const Box & output) const
{
  Box               windows = this->GetBlocks(output);
  const Coordinates reach = this->GetReach();
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows.lower[a] = std::max<std::int64_t>(windows.lower[a] - reach[a], 0);
    windows.upper[a] = std::min(windows.upper[a] + reach[a], image[a]);
  }
  return windows;
}

std::int64_t
BinOperation::CountVoxels() const
{
  return Box::FromExtent(factor).NumberOfVoxels();
}

void
BinOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  method <= BinMethod::Sum || method == BinMethod::Gaussian ? CheckExactOutput("bin", inputs.at(0), output)
                                                            : CheckSameOrFloatingOutput("bin", inputs.at(0), output);
}

void
BinOperation::Validate(const Coordinates & extent) const
{
  if (extent != image)
  {
    throw ParameterError("the blocks are those of an image of " + ToString(image) + " voxels, not of " +
                         ToString(extent));
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (factor[a] < 1 || factor[a] > std::max<std::int64_t>(image[a], 1))
    {
      throw ParameterError("Factor", ToString(factor), "from 1 to the number of voxels along each axis");
    }
    if (method == BinMethod::Gaussian && factor[a] > LargestGaussianFactor)
    {
      throw ParameterError("Factor",
                           ToString(factor),
                           "from 1 to " + std::to_string(LargestGaussianFactor) +
                             " along each axis with Gaussian means");
    }
  }
}

Coordinates
BinOperation::GetExtent(const Coordinates & extent) const
{
  Coordinates bins{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    bins[a] = extent[a] / factor[a] + (extent[a] % factor[a] != 0 ? 1 : 0);
  }
  return bins;
}

Box
BinOperation::GetInputBox(const Box & box, const Coordinates &) const
{
  return this->GetWindows(box);
}

Coordinates
BinOperation::GetMostInput(const Coordinates & box, const Coordinates &) const
{
  Coordinates       most = this->GetBlocks(Box::FromExtent(box)).upper;
  const Coordinates reach = this->GetReach();
  for (int a = 0; a < MaxDimension; ++a)
  {
    most[a] = std::min(most[a] + 2 * reach[a], image[a]);
  }
  return most;
}

} // namespace chunkwise
