/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseKernelStack_h
#define itkChunkwiseKernelStack_h

#include "chunkwiseFilters.h"
#include "itkChunkwiseGeometry.h"
#include "itkImageRegionConstIterator.h"
#include "itkNeighborhood.h"

#include <memory>
#include <utility>
#include <vector>

namespace itk
{

/** One kernel as the engine takes it, its voxels x fastest.
 * \ingroup Chunkwise */
template <unsigned int VDimension>
std::shared_ptr<const chunkwise::KernelStack>
MakeChunkwiseKernelStack(const Size<VDimension> & size, std::vector<double> voxels)
{
  auto stack = std::make_shared<chunkwise::KernelStack>();
  for (unsigned int axis = 0; axis < VDimension; ++axis)
  {
    stack->extent[static_cast<int>(axis)] = static_cast<std::int64_t>(size[axis]);
  }
  stack->kernels.push_back(std::move(voxels));
  return stack;
}

/** A structuring element of a radius; an empty `element` is the box.
 * \ingroup Chunkwise */
template <unsigned int VDimension>
Neighborhood<bool, VDimension>
MakeChunkwiseElementKernel(const Size<VDimension> & radius, const std::vector<unsigned char> & element)
{
  double voxels = 1;
  for (unsigned int a = 0; a < VDimension; ++a)
  {
    voxels *= 2.0 * static_cast<double>(radius[a]) + 1.0;
  }
  constexpr double most = 1 << 30;
  if (voxels > most)
  {
    itkGenericExceptionMacro("Kernel: a box of radius " << radius << " has " << voxels << " voxels, more than " << most
                                                        << " that can be given as a structuring element");
  }
  Neighborhood<bool, VDimension> kernel;
  kernel.SetRadius(radius);
  for (SizeValueType i = 0; i < kernel.Size(); ++i)
  {
    kernel[static_cast<unsigned int>(i)] = element.empty() || element[i] != 0;
  }
  return kernel;
}

/** Whether an image has the voxels of all of its largest possible region.
 * \ingroup Chunkwise */
template <typename TImage>
bool
ChunkwiseHasAllVoxels(const TImage * image)
{
  const auto & buffered = image->GetBufferedRegion();
  const auto & largest = image->GetLargestPossibleRegion();
  return largest.GetNumberOfPixels() > 0 && buffered.IsInside(largest) &&
         image->GetPixelContainer()->Size() >= buffered.GetNumberOfPixels();
}

/** The voxels of an image's largest possible region, x fastest.
 * \ingroup Chunkwise */
template <typename TImage>
std::vector<double>
ChunkwiseReadVoxels(const TImage * image)
{
  const auto          region = image->GetLargestPossibleRegion();
  std::vector<double> voxels;
  voxels.reserve(region.GetNumberOfPixels());
  for (ImageRegionConstIterator<TImage> it(image, region); !it.IsAtEnd(); ++it)
  {
    voxels.push_back(static_cast<double>(it.Get()));
  }
  return voxels;
}

} // namespace itk

#endif
