/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandElement_h
#define commandElement_h

#include "commandArguments.h"

#include "itkNeighborhood.h"

#include <algorithm>

namespace command
{

/** One value for each axis of the image from one value for all, or one for each spatial axis. */
template <typename TValue>
std::vector<TValue>
SpreadOverAxes(const std::vector<TValue> & values, const std::vector<unsigned int> & axes, unsigned int dimension,
               const std::string & option)
{
  if (values.size() != 1 && values.size() != axes.size())
  {
    throw ArgumentError(option + ": " + std::to_string(values.size()) + " values for " + std::to_string(axes.size()) +
                        " spatial axes");
  }
  std::vector<TValue> spread(dimension, TValue{ 0 });
  for (std::size_t i = 0; i < axes.size(); ++i)
  {
    spread[axes[i]] = values[values.size() == 1 ? 0 : i];
  }
  return spread;
}

/** The structuring element that the arguments name, where it is not a box, for a filter that has its radius. */
template <typename TFilter>
void
SetElement(TFilter & filter, const Arguments & arguments)
{
  constexpr unsigned int dimension = TFilter::InputImageType::ImageDimension;
  if (arguments.element == "box")
  {
    return;
  }
  itk::Neighborhood<bool, dimension> kernel;
  kernel.SetRadius(filter.GetRadius());
  for (unsigned int i = 0; i < kernel.Size(); ++i)
  {
    // The ball has the voxels whose centers are in the ellipsoid that ends where the box does.
    double       distance = 0;
    unsigned int axes = 0;
    for (unsigned int a = 0; a < dimension; ++a)
    {
      const auto   offset = static_cast<double>(kernel.GetOffset(i)[a]);
      const double half = static_cast<double>(filter.GetRadius()[a]) + 0.5;
      distance += offset * offset / (half * half);
      axes += offset != 0 ? 1 : 0;
    }
    kernel[i] = arguments.element == "ball" ? distance <= 1 : axes <= 1;
  }
  filter.SetKernel(kernel);
}

} // namespace command

#endif
