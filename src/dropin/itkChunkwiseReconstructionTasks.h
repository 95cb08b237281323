/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseReconstructionTasks_h
#define itkChunkwiseReconstructionTasks_h
#include "itkChunkwiseStandInFilter.h"
#include "itkReconstructionByDilationImageFilter.h"
#include "itkReconstructionByErosionImageFilter.h"
#include "itkRegionalMaximaImageFilter.h"
#include "itkRegionalMinimaImageFilter.h"

namespace itk
{

template <typename TFilter>
void
DescribeReconstruction(const TFilter & filter, bool byErosion, ChunkwiseStandInTask & task)
{
  task.filter = "reconstruct";
  task.hasMarker = true;
  task.byErosion = byErosion;
  task.parameters.Set("Erosion", byErosion);
  task.parameters.Set("FullyConnected", filter.GetFullyConnected());
}

template <typename TFilter>
void
DescribeExtrema(const TFilter & filter, ChunkwiseStandInTask & task)
{
  task.parameters.Set("FullyConnected", filter.GetFullyConnected());
  task.parameters.Set("ForegroundValue", chunkwise::PixelValue(filter.GetForegroundValue()));
  task.parameters.Set("BackgroundValue", chunkwise::PixelValue(filter.GetBackgroundValue()));
}

template <typename TImage>
void
DescribeChunkwiseTask(const ReconstructionByDilationImageFilter<TImage, TImage> & filter, ChunkwiseStandInTask & task)
{
  DescribeReconstruction(filter, false, task);
}

template <typename TImage>
void
DescribeChunkwiseTask(const ReconstructionByErosionImageFilter<TImage, TImage> & filter, ChunkwiseStandInTask & task)
{
  DescribeReconstruction(filter, true, task);
}

template <typename TImage>
void
DescribeChunkwiseTask(const RegionalMaximaImageFilter<TImage, TImage> & filter, ChunkwiseStandInTask & task)
{
  task.filter = "regional-maxima";
  task.parameters.Set("FlatIsMaxima", filter.GetFlatIsMaxima());
  DescribeExtrema(filter, task);
}

template <typename TImage>
void
DescribeChunkwiseTask(const RegionalMinimaImageFilter<TImage, TImage> & filter, ChunkwiseStandInTask & task)
{
  task.filter = "regional-minima";
  task.parameters.Set("FlatIsMinima", filter.GetFlatIsMinima());
  DescribeExtrema(filter, task);
}

} // namespace itk

#endif
