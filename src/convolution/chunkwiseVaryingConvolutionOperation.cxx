/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseVaryingConvolutionOperation.h"

#include "chunkwiseError.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace chunkwise
{

std::string
VaryingConvolutionOperation::GetKey() const
{
  std::string key = GetName() + (order == VaryingOrder::ConvolveThenWeight ? " filter " : " spread ") +
                    BoundaryModeName(boundary.mode) + " " + ToString(nodes);
  char text[128];
  for (int a = 0; a < MaxDimension; ++a)
  {
    std::snprintf(text, sizeof(text), " %a %a", first[a], spacing[a]);
    key += text;
  }
  key += " " + ExactText(boundary.constant);
  for (const auto & kernel : kernels)
  {
    key += " " + kernel->GetKey();
  }
  return key;
}

Halo
VaryingConvolutionOperation::GetHalo(const Coordinates & image) const
{
  return GetNodeOperation(0).GetHalo(image);
}

bool
VaryingConvolutionOperation::HasPlanesAsTiles(const Coordinates & image) const
{
  int    axes = 0;
  double voxels = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (kernels[0]->GetExtent()[a] > 1)
    {
      ++axes;
      voxels *= static_cast<double>(image[a]);
    }
  }
  return axes == 2 && voxels <= static_cast<double>(MostVoxelsOfPlane);
}

Coordinates
VaryingConvolutionOperation::GetTile(const Coordinates & image) const
{
  // Larger than what most nodes reach, so that few of them meet two tiles.
  const ConvolutionBlock roles = ConvolutionBlock::Largest(GetNodeOperation(0), Coordinates::Filled(1), image);
  const bool             hasPlanes = HasPlanesAsTiles(image);
  Coordinates            tile = Coordinates::Filled(1);
  for (int r = 0; r < MaxDimension; ++r)
  {
    const ConvolutionBlock::Axis & axis = roles.role[r];
    const std::int64_t             n = image[axis.axis];
    const std::int64_t             most = hasPlanes ? n : std::max(ConvolutionBlock::LongestTile, 8 * axis.kernel);
    const std::int64_t             count = (n + most - 1) / most;
    tile[axis.axis] = axis.transformed ? (n + count - 1) / count
                      : r == 1         ? std::min(n, ConvolutionBlock::RowsOfTile)
                                       : 1;
    // Two planes may share a transform.
    tile[axis.axis] =
      r == 2 && !axis.transformed && roles.role[1].transformed ? std::min<std::int64_t>(n, 2) : tile[axis.axis];
  }
  return tile;
}

void
VaryingConvolutionOperation::Validate(const Coordinates & image) const
{
  std::int64_t count = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::string axis = " along axis " + std::to_string(a);
    if (nodes[a] < 1)
    {
      throw ParameterError("the grid has " + std::to_string(nodes[a]) + " nodes" + axis + "; it must have one or more");
    }
    if (!std::isfinite(first[a]) || !(spacing[a] > 0.0) || !std::isfinite(spacing[a]))
    {
      throw ParameterError("the grid begins at " + std::to_string(first[a]) + " with a spacing of " +
                           std::to_string(spacing[a]) + axis + "; the spacing must be above 0, and both finite");
    }
    count *= nodes[a];
  }
  if (static_cast<std::int64_t>(kernels.size()) != count)
  {
    throw ParameterError("the grid has " + std::to_string(count) + " nodes, but there are " +
                         std::to_string(kernels.size()) + " kernels");
  }
  if (order == VaryingOrder::WeightThenConvolve && boundary.mode != BoundaryMode::Renormalized &&
      !(boundary.mode == BoundaryMode::Constant && boundary.constant.ToDouble() == 0.0))
  {
    throw ParameterError(std::string("the boundary is ") + BoundaryModeName(boundary.mode) +
                         "; weighting before convolving has renormalized, and constant with the value 0");
  }
  for (std::int64_t node = 0; node < count; ++node)
  {
    const auto & kernel = *kernels[static_cast<std::size_t>(node)];
    if (kernel.GetExtent() != kernels[0]->GetExtent() || kernel.GetCenter() != kernels[0]->GetCenter())
    {
      throw ParameterError("the kernel of node " + std::to_string(node) + " has the extent " +
                           ToString(kernel.GetExtent()) + " and the center " + ToString(kernel.GetCenter()) +
                           ", the first one " + ToString(kernels[0]->GetExtent()) + " and " +
                           ToString(kernels[0]->GetCenter()));
    }
    // Only the factors of the other order are those of flipped kernels, and to flip many takes long.
    const bool flips = order == VaryingOrder::WeightThenConvolve && boundary.mode == BoundaryMode::Renormalized;
    GetNodeOperation(node, flips).Validate(image);
  }
}

ImageConvolutionOperation
VaryingConvolutionOperation::GetNodeOperation(std::int64_t node, bool flipped) const
{
  ImageConvolutionOperation operation;
  operation.kernel = kernels[static_cast<std::size_t>(node)];
  if (flipped)
  {
    operation.kernel = operation.kernel->Flipped();
  }
  operation.boundary = boundary;
  operation.method = ConvolutionMethod::FFT;
  return operation;
}

Coordinates
VaryingConvolutionOperation::GetNodePosition(std::int64_t node) const
{
  Coordinates position{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    position[a] = node % nodes[a];
    node /= nodes[a];
  }
  return position;
}

double
VaryingConvolutionOperation::GetWeight(int a, std::int64_t node, std::int64_t i) const
{
  double at = (static_cast<double>(i) - first[a]) / spacing[a];
  at = std::min(std::max(at, 0.0), static_cast<double>(nodes[a] - 1));
  return std::max(0.0, 1.0 - std::abs(at - static_cast<double>(node)));
}

Box
VaryingConvolutionOperation::GetSupport(const Coordinates & position, const Coordinates & image) const
{
  Box support = Box::FromExtent(image);
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto clamp = [&](double i) {
      return static_cast<std::int64_t>(std::min(std::max(i, 0.0), static_cast<double>(image[a])));
    };
    const auto node = static_cast<double>(position[a]);
    if (position[a] > 0)
    {
      support.lower[a] = clamp(std::floor(first[a] + (node - 1) * spacing[a]) + 1);
    }
    if (position[a] + 1 < nodes[a])
    {
      support.upper[a] = clamp(std::ceil(first[a] + (node + 1) * spacing[a]));
    }
  }
  return support;
}

Box
VaryingConvolutionOperation::GetReach(const Box & support, const Box & output) const
{
  Box reach = support;
  if (order == VaryingOrder::WeightThenConvolve)
  {
    const ImageConvolutionOperation node = GetNodeOperation(0);
    for (int a = 0; a < MaxDimension; ++a)
    {
      reach.lower[a] -= node.Above(a);
      reach.upper[a] += node.Below(a);
    }
  }
  return Intersect(reach, output);
}

Coordinates
VaryingConvolutionOperation::GetLargestReach(const Box & output, const Coordinates & image) const
{
  Coordinates extent = Coordinates::Filled(1);
  for (int a = 0; a < MaxDimension; ++a)
  {
    for (std::int64_t node = 0; node < nodes[a]; ++node)
    {
      Coordinates position{};
      position[a] = node;
      extent[a] = std::max(extent[a], GetSupport(position, image).Extent(a));
    }
    extent[a] += order == VaryingOrder::WeightThenConvolve ? kernels[0]->GetExtent()[a] - 1 : 0;
    extent[a] = std::min(extent[a], output.Extent(a));
  }
  return extent;
}

} // namespace chunkwise
