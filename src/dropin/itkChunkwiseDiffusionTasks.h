/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDiffusionTasks_h
#define itkChunkwiseDiffusionTasks_h
#include "itkChunkwiseStandInFilter.h"
#include "itkCurvatureAnisotropicDiffusionImageFilter.h"
#include "itkGradientAnisotropicDiffusionImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TFilter>
void
DescribeChunkwiseDiffusion(const TFilter & filter, const char * method, ChunkwiseStandInTask & task)
{
  // ITK has no getter of it.
  struct Access : TFilter
  {
    using TFilter::m_GradientMagnitudeIsFixed;
  };
  task.filter = "diffusion";
  task.exact = false;
  task.mustBeFinite = true;
  task.isPartWrong = true;
  task.iterations = filter.GetNumberOfIterations();
  task.parameters.Set("Method", method);
  task.parameters.SetInteger("Iterations", task.iterations);
  task.parameters.SetReal("TimeStep", filter.GetTimeStep());
  task.parameters.SetReal("Conductance", filter.GetConductanceParameter());
  task.parameters.SetReal("GradientMagnitude", filter.GetFixedAverageGradientMagnitude());
  task.parameters.Set("UseImageSpacing", filter.GetUseImageSpacing());
  if (!(filter.*(&Access::m_GradientMagnitudeIsFixed)))
  {
    task.iterationsOfGradient = std::max<std::int64_t>(1, filter.GetConductanceScalingUpdateInterval());
  }
  if (filter.GetMaximumRMSError() > 0)
  {
    task.Refuse("an end by the change of an iteration");
  }
  if (filter.GetManualReinitialization())
  {
    task.Refuse("manual reinitialization");
  }
}

template <typename TInput, typename TOutput>
void
DescribeChunkwiseTask(const GradientAnisotropicDiffusionImageFilter<TInput, TOutput> & filter,
                      ChunkwiseStandInTask &                                           task)
{
  DescribeChunkwiseDiffusion(filter, "gradient", task);
}

template <typename TInput, typename TOutput>
void
DescribeChunkwiseTask(const CurvatureAnisotropicDiffusionImageFilter<TInput, TOutput> & filter,
                      ChunkwiseStandInTask &                                            task)
{
  DescribeChunkwiseDiffusion(filter, "curvature", task);
}

} // namespace itk

#endif
