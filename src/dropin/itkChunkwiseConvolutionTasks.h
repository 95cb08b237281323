/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseConvolutionTasks_h
#define itkChunkwiseConvolutionTasks_h
#include "itkChunkwiseKernelStack.h"
#include "itkChunkwiseStandInFilter.h"
#include "itkConstantBoundaryCondition.h"
#include "itkConvolutionImageFilter.h"
#include "itkFFTConvolutionImageFilter.h"
#include "itkPeriodicBoundaryCondition.h"

#include <algorithm>
#include <cmath>

namespace itk
{

/** A convolution with an image. If the output is VALID, its region keeps windows inside. */
template <typename TInput, typename TKernel, typename TOutput>
void
DescribeConvolution(const ConvolutionImageFilterBase<TInput, TKernel, TOutput> & filter, ChunkwiseStandInTask & task)
{
  task.filter = "convolve-image";
  task.exact = false;
  task.spreads = true;
  const TKernel * const kernel = filter.GetKernelImage();
  if (!kernel)
  {
    task.Refuse("no kernel");
    return;
  }
  // Before the pipeline has run there are no voxels.
  std::vector<double> voxels = ChunkwiseHasAllVoxels(kernel) ? ChunkwiseReadVoxels(kernel) : std::vector<double>();
  if (!std::all_of(voxels.begin(), voxels.end(), [](double voxel) { return std::isfinite(voxel); }))
  {
    task.Refuse("a kernel with NaN or infinity");
  }
  task.parameters.Set("KernelImage",
                      MakeChunkwiseKernelStack(kernel->GetLargestPossibleRegion().GetSize(), std::move(voxels)));
  task.parameters.Set("Normalize", filter.GetNormalize());

  const auto * const boundary = filter.GetBoundaryCondition();
  if (dynamic_cast<const ZeroFluxNeumannBoundaryCondition<TInput> *>(boundary))
  {
    task.parameters.Set("BoundaryCondition", "zero-flux");
  }
  else if (dynamic_cast<const PeriodicBoundaryCondition<TInput> *>(boundary))
  {
    task.parameters.Set("BoundaryCondition", "periodic");
  }
  else if (const auto * const constant = dynamic_cast<const ConstantBoundaryCondition<TInput> *>(boundary))
  {
    task.parameters.Set("BoundaryCondition", "constant");
    task.parameters.Set("Constant", chunkwise::PixelValue(constant->GetConstant()));
  }
  else
  {
    task.Refuse("a boundary condition that is neither zero flux nor periodic nor constant");
  }
}

template <typename TInput, typename TKernel, typename TOutput>
void
DescribeChunkwiseTask(const ConvolutionImageFilter<TInput, TKernel, TOutput> & filter, ChunkwiseStandInTask & task)
{
  DescribeConvolution<TInput, TKernel, TOutput>(filter, task);
}

template <typename TInput, typename TKernel, typename TOutput, typename TReal>
void
DescribeChunkwiseTask(const FFTConvolutionImageFilter<TInput, TKernel, TOutput, TReal> & filter,
                      ChunkwiseStandInTask &                                             task)
{
  DescribeConvolution<TInput, TKernel, TOutput>(filter, task);
}

#if ITK_VERSION_MAJOR == 5 && ITK_VERSION_MINOR < 3
/** ITK's own transforms here are VNL's, which know lengths of the factors 2, 3 and 5; later ones are the program's. */
template <typename TInput, typename TKernel, typename TOutput, typename TReal>
void
PrepareItk(FFTConvolutionImageFilter<TInput, TKernel, TOutput, TReal> & filter)
{
  constexpr SizeValueType most = 5;
  if (filter.GetSizeGreatestPrimeFactor() > most || filter.GetSizeGreatestPrimeFactor() < 2)
  {
    filter.SetSizeGreatestPrimeFactor(most);
  }
}
#endif

} // namespace itk

#endif
