/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseConvolutionKernel_h
#define itkChunkwiseConvolutionKernel_h

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseError.h"
#include "itkChunkwiseGeometry.h"
#include "itkImageRegionConstIterator.h"

#include <memory>
#include <utility>
#include <vector>

namespace itk
{

/** The engine's kernel of an image, its center at half the size, rounded down. Without weights if the image's voxels
 * are not to be read: before its pipeline has run. Throws chunkwise::ParameterError. */
template <typename TKernelImage>
std::shared_ptr<const chunkwise::ConvolutionKernel>
MakeChunkwiseConvolutionKernel(const TKernelImage * image, bool readVoxels, bool normalize)
{
  const auto             region = image->GetLargestPossibleRegion();
  const auto             extent = ChunkwiseBoxFromRegion(region, region.GetIndex()).Extents();
  chunkwise::Coordinates center{};
  for (int axis = 0; axis < chunkwise::MaxDimension; ++axis)
  {
    center[axis] = extent[axis] / 2;
  }
  std::vector<double> weights;
  if (readVoxels)
  {
    weights.reserve(region.GetNumberOfPixels());
    double                                 sum = 0.0;
    ImageRegionConstIterator<TKernelImage> it(image, region);
    for (; !it.IsAtEnd(); ++it)
    {
      weights.push_back(static_cast<double>(it.Get()));
      sum += weights.back();
    }
    if (normalize)
    {
      if (sum == 0.0)
      {
        throw chunkwise::ParameterError("Normalize: the kernel's voxels sum to 0");
      }
      for (double & weight : weights)
      {
        weight /= sum;
      }
    }
  }
  return std::make_shared<const chunkwise::ConvolutionKernel>(extent, center, std::move(weights));
}

} // namespace itk

#endif
