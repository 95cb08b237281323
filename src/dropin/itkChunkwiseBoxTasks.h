/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseBoxTasks_h
#define itkChunkwiseBoxTasks_h
#include "itkBoxMeanImageFilter.h"
#include "itkBoxSigmaImageFilter.h"
#include "itkChunkwiseStandInFilter.h"
#include "itkMeanImageFilter.h"
#include "itkNoiseImageFilter.h"

#include <cmath>

namespace itk
{

/** A mean over a box; ITK truncates the quotient of a sum in double. */
template <typename TInput, typename TOutput, typename TFilter>
void
DescribeMean(const TFilter & filter, double voxelsOfSum, ChunkwiseStandInTask & task)
{
  using PixelType = typename TInput::PixelType;
  task.filter = "mean";
  task.parameters.Set("Radius", ChunkwiseSizes(filter.GetRadius()));
  if (std::is_integral<typename TOutput::PixelType>::value)
  {
    task.parameters.Set("Rounding", "toward-zero");
  }
  // Sums that a double has are those of integers.
  constexpr double exactly = 9007199254740992.0;
  task.exact = std::is_integral<PixelType>::value && std::pow(2.0, 8 * sizeof(PixelType)) * voxelsOfSum < exactly;
}

inline double
VoxelsOf(const std::vector<std::int64_t> & radius)
{
  double voxels = 1;
  for (const std::int64_t r : radius)
  {
    voxels *= 2.0 * static_cast<double>(r) + 1.0;
  }
  return voxels;
}

template <typename TFilter>
void
DescribeDeviation(const TFilter & filter, ChunkwiseStandInTask & task)
{
  const auto radius = ChunkwiseSizes(filter.GetRadius());
  task.filter = "std";
  task.exact = false;
  task.divisorIsLessOne = true;
  task.parameters.Set("Radius", radius);
  double least = 1;
  for (std::size_t a = 0; a < radius.size(); ++a)
  {
    task.radius[static_cast<int>(a)] = radius[a];
    const auto & size = filter.GetInput()->GetLargestPossibleRegion().GetSize();
    least *= static_cast<double>(std::min<std::int64_t>(radius[a] + 1, static_cast<std::int64_t>(size[a])));
  }
  if (least < 2)
  {
    task.Refuse("windows of one voxel");
  }
}

template <typename TInput, typename TOutput>
void
DescribeChunkwiseTask(const MeanImageFilter<TInput, TOutput> & filter, ChunkwiseStandInTask & task)
{
  DescribeMean<TInput, TOutput>(filter, VoxelsOf(ChunkwiseSizes(filter.GetRadius())), task);
  task.parameters.Set("BoundaryCondition", "zero-flux");
}

template <typename TInput, typename TOutput>
void
DescribeChunkwiseTask(const BoxMeanImageFilter<TInput, TOutput> & filter, ChunkwiseStandInTask & task)
{
  // ITK's sums are those of a thread's whole region.
  const auto voxels = filter.GetInput() ? filter.GetInput()->GetLargestPossibleRegion().GetNumberOfPixels() : 0;
  DescribeMean<TInput, TOutput>(filter, static_cast<double>(voxels), task);
}

template <typename TImage>
void
DescribeChunkwiseTask(const BoxSigmaImageFilter<TImage, TImage> & filter, ChunkwiseStandInTask & task)
{
  DescribeDeviation(filter, task);
}

template <typename TImage>
void
DescribeChunkwiseTask(const NoiseImageFilter<TImage, TImage> & filter, ChunkwiseStandInTask & task)
{
  DescribeDeviation(filter, task);
  task.parameters.Set("BoundaryCondition", "zero-flux");
}

} // namespace itk

#endif
