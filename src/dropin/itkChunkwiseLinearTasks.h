/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseLinearTasks_h
#define itkChunkwiseLinearTasks_h
#include "itkChunkwiseStandInFilter.h"
#include "itkDiscreteGaussianImageFilter.h"
#include "itkGradientMagnitudeImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInput, typename TOutput>
void
DescribeChunkwiseTask(const DiscreteGaussianImageFilter<TInput, TOutput> & filter, ChunkwiseStandInTask & task)
{
  using Filter = DiscreteGaussianImageFilter<TInput, TOutput>;
  task.filter = "gaussian";
  task.exact = false;
  const unsigned int        axes = std::min<unsigned int>(filter.GetFilterDimensionality(), TInput::ImageDimension);
  std::vector<double>       variances;
  std::vector<double>       errors;
  std::vector<std::int64_t> spatial;
  for (unsigned int a = 0; a < axes; ++a)
  {
    variances.push_back(filter.GetVariance()[a]);
    errors.push_back(filter.GetMaximumError()[a]);
    spatial.push_back(a);
  }
  if (axes == 0)
  {
    task.Refuse("no axes");
  }
  task.parameters.Set("Kernel", "discrete");
  task.parameters.Set("Variance", variances);
  task.parameters.Set("MaximumError", errors);
  task.parameters.SetInteger("MaximumKernelWidth", static_cast<std::int64_t>(filter.GetMaximumKernelWidth()));
  task.parameters.Set("UseImageSpacing", filter.GetUseImageSpacing());
  task.parameters.Set("SpatialAxes", spatial);
  task.parameters.Set("BoundaryCondition", "zero-flux");
  if (!dynamic_cast<const typename Filter::InputDefaultBoundaryConditionType *>(filter.GetInputBoundaryCondition()) ||
      !dynamic_cast<const typename Filter::RealDefaultBoundaryConditionType *>(filter.GetRealBoundaryCondition()))
  {
    task.Refuse("a boundary condition other than zero flux");
  }
}

template <typename TInput, typename TOutput>
void
DescribeChunkwiseTask(const GradientMagnitudeImageFilter<TInput, TOutput> & filter, ChunkwiseStandInTask & task)
{
  task.filter = "gradient";
  task.exact = false;
  // ITK sees neighbors along the axes alone, so NaN goes to other voxels there.
  task.mustBeFinite = true;
  task.parameters.Set("Operator", "central");
  task.parameters.Set("UseImageSpacing", filter.GetUseImageSpacing());
  task.parameters.Set("BoundaryCondition", "zero-flux");
}

} // namespace itk

#endif
