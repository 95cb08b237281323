/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDeconvolutionTasks_h
#define itkChunkwiseDeconvolutionTasks_h
#include "itkChunkwiseConvolutionTasks.h"
#include "itkRichardsonLucyDeconvolutionImageFilter.h"

namespace itk
{

/** Sets the task's grid: the image grown as ITK grows it, for the kernel and to a length that its transforms know. */
template <typename TFilter>
void
GrowLikeItk(TFilter & filter, ChunkwiseStandInTask & task)
{
#if ITK_VERSION_MAJOR == 5 && ITK_VERSION_MINOR < 3
  struct Access : TFilter
  {
    using TFilter::GetPadLowerBound;
    using TFilter::GetPadSize;
  };
  const auto grown = (filter.*(&Access::GetPadSize))();
  const auto below = (filter.*(&Access::GetPadLowerBound))();
#else
  const auto          image = filter.GetInput()->GetLargestPossibleRegion().GetSize();
  const auto          kernel = filter.GetKernelImage()->GetLargestPossibleRegion().GetSize();
  const SizeValueType mostFactor = filter.GetSizeGreatestPrimeFactor();
  auto                grown = image;
  auto                below = image;
  for (unsigned int a = 0; a < TFilter::ImageDimension; ++a)
  {
    const SizeValueType radius = kernel[a] / 2;
    const SizeValueType least = image[a] + 2 * radius;
    grown[a] = least;
    while (mostFactor == 1 ? grown[a] % 2 != 0 : mostFactor > 1 && Math::GreatestPrimeFactor(grown[a]) > mostFactor)
    {
      ++grown[a];
    }
    below[a] = radius + (grown[a] - least) / 2;
  }
#endif
  task.grown = chunkwise::Coordinates::Filled(1);
  for (unsigned int a = 0; a < TFilter::ImageDimension; ++a)
  {
    task.grown[static_cast<int>(a)] = static_cast<std::int64_t>(grown[a]);
    task.grownBelow[static_cast<int>(a)] = static_cast<std::int64_t>(below[a]);
  }
}

/** The image is grown, and convolved as if it were periodic. */
template <typename TInput, typename TKernel, typename TOutput, typename TReal>
void
DescribeChunkwiseTask(const RichardsonLucyDeconvolutionImageFilter<TInput, TKernel, TOutput, TReal> & filter,
                      ChunkwiseStandInTask &                                                          task)
{
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
  // Getters that change nothing are not constant in ITK 5.2.
  auto & getters = const_cast<RichardsonLucyDeconvolutionImageFilter<TInput, TKernel, TOutput, TReal> &>(filter);
  task.iterations = getters.GetNumberOfIterations();
  if (filter.GetInput() && filter.GetKernelImage())
  {
    GrowLikeItk(getters, task);
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
