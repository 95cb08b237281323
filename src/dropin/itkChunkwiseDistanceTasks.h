/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDistanceTasks_h
#define itkChunkwiseDistanceTasks_h
#include "itkChunkwiseStandInFilter.h"
#include "itkSignedMaurerDistanceMapImageFilter.h"

namespace itk
{

template <typename TInput, typename TOutput>
void
DescribeChunkwiseTask(const SignedMaurerDistanceMapImageFilter<TInput, TOutput> & filter, ChunkwiseStandInTask & task)
{
  task.filter = "distance";
  task.exact = false;
  task.mustBeFinite = true;
  task.isPartWrong = true;
  task.parameters.Set("Features", "contour");
  task.parameters.Set("Background", chunkwise::PixelValue(filter.GetBackgroundValue()));
  task.parameters.Set("SquaredDistance", filter.GetSquaredDistance());
  task.parameters.Set("InsideIsPositive", filter.GetInsideIsPositive());
  task.parameters.Set("UseImageSpacing", filter.GetUseImageSpacing());
}

} // namespace itk

#endif
