/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDeconvolutionTasks_h
#define itkChunkwiseDeconvolutionTasks_h
#include "itkChunkwiseConvolutionTasks.h"
#include "itkRichardsonLucyDeconvolutionImageFilter.h"

namespace itk
{

/** The image is grown as ITK grows it, and convolved as if it were periodic. */
template <typename TInput, typename TKernel, typename TOutput, typename TReal>
void
DescribeChunkwiseTask(const RichardsonLucyDeconvolutionImageFilter<TInput, TKernel, TOutput, TReal> & filter,
                      ChunkwiseStandInTask &                                                          task)
{
  using FilterType = RichardsonLucyDeconvolutionImageFilter<TInput, TKernel, TOutput, TReal>;
  struct Access : FilterType
  {
    using FilterType::GetPadLowerBound;
    using FilterType::GetPadSize;
  };
  DescribeConvolution<TInput, TKernel, TOutput>(filter, task);
  if (!dynamic_cast<const ZeroFluxNeumannBoundaryCondition<TInput> *>(filter.GetBoundaryCondition()))
  {
    task.Refuse("a boundary condition that is not zero flux");
  }
  if (filter.HasObserver(IterationEvent()))
  {
    task.Refuse("an observer of iterations");
  }
  if (filter.GetStopIteration())
  {
    task.Refuse("iterations were stopped");
  }
  task.parameters.Set("BoundaryCondition", "periodic");
  task.deconvolves = true;
  task.servesSmall = true;
  task.mustBeFinite = true;
  task.isPartWrong = true;
  task.iterations = const_cast<FilterType &>(filter).GetNumberOfIterations(); // ITK 5.2 has no constant getter
  if (!filter.GetInput() || !filter.GetKernelImage())
  {
    return;
  }
  const auto size = (filter.*(&Access::GetPadSize))();
  const auto lower = (filter.*(&Access::GetPadLowerBound))();
  task.grown = chunkwise::Coordinates::Filled(1);
  for (unsigned int a = 0; a < TInput::ImageDimension; ++a)
  {
    task.grown[static_cast<int>(a)] = static_cast<std::int64_t>(size[a]);
    task.grownBelow[static_cast<int>(a)] = static_cast<std::int64_t>(lower[a]);
  }
}

#if ITK_VERSION_MAJOR == 5 && ITK_VERSION_MINOR < 3
/** A stand-in has VNL's transforms; the result depends on the lengths that the program's have. */
template <typename TInput, typename TKernel, typename TOutput, typename TReal>
void
InitializeStandIn(RichardsonLucyDeconvolutionImageFilter<TInput, TKernel, TOutput, TReal> & filter)
{
#  if defined(CHUNKWISE_ITK_HAS_FFTWD)
  constexpr SizeValueType mostOfFftw = 13;
  filter.SetSizeGreatestPrimeFactor(mostOfFftw);
#  else
  static_cast<void>(filter);
#  endif
}
#endif

} // namespace itk

#endif
