/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseMorphologyTasks_h
#define itkChunkwiseMorphologyTasks_h

#include "itkChunkwiseStandInFilter.h"
#include "itkBinaryBallStructuringElement.h"
#include "itkFlatStructuringElement.h"
#include "itkGrayscaleDilateImageFilter.h"
#include "itkGrayscaleErodeImageFilter.h"
#include "itkGrayscaleMorphologicalOpeningImageFilter.h"
#include "itkGrayscaleMorphologicalClosingImageFilter.h"
#include "itkMorphologicalGradientImageFilter.h"

#include <algorithm>

// The code that stand-ins for filters with a structuring element share.

namespace itk
{

/** Names a filter's structuring element. Returns whether that is a whole box. */
template <typename TKernel>
bool
DescribeChunkwiseKernel(const TKernel & kernel, ChunkwiseStandInTask & task)
{
  auto stack = std::make_shared<chunkwise::KernelStack>();
  stack->kernels.emplace_back();
  for (auto it = kernel.Begin(); it != kernel.End(); ++it)
  {
    stack->kernels.back().push_back(*it ? 1.0 : 0.0);
  }
  for (unsigned int a = 0; a < TKernel::NeighborhoodDimension; ++a)
  {
    stack->extent[static_cast<int>(a)] = static_cast<std::int64_t>(kernel.GetSize(a));
  }
  const std::vector<double> & taps = stack->kernels.back();
  if (std::find(taps.begin(), taps.end(), 0.0) == taps.end())
  {
    task.parameters.Set("Radius", ChunkwiseSizes(kernel.GetRadius()));
    return true;
  }
  task.parameters.Set("Kernel", std::shared_ptr<const chunkwise::KernelStack>(stack));
  return false;
}

/** ITK decomposes some elements into lines, which near the image's edge is another thing than the element itself; of
 * flat boxes it makes lines of no length, and its result is undefined. */
template <typename TFilter>
void
RefuseLines(const TFilter & filter, bool isBox, ChunkwiseStandInTask & task)
{
  using Algorithm = typename TFilter::AlgorithmEnum;
  task.isThinWrong = true;
  const auto radius = ChunkwiseSizes(filter.GetKernel().GetRadius());
  const bool isFlat = std::find(radius.begin(), radius.end(), 0) != radius.end();
  if ((!isBox || isFlat) && (filter.GetAlgorithm() == Algorithm::ANCHOR || filter.GetAlgorithm() == Algorithm::VHGW))
  {
    task.Refuse("a structuring element in lines");
  }
}

/** A dilation or erosion, `lowest` what ITK has beyond the edge unless it is told otherwise. */
template <typename TFilter, typename TPixel>
void
DescribeChunkwiseExtremum(const TFilter & filter, const char * row, TPixel lowest, ChunkwiseStandInTask & task)
{
  task.filter = row;
  const bool isBox = DescribeChunkwiseKernel(filter.GetKernel(), task);
  RefuseLines(filter, isBox, task);
  if (!isBox || filter.GetBoundary() != lowest)
  {
    task.parameters.Set("BoundaryCondition", "constant");
    task.parameters.Set("Constant", chunkwise::PixelValue(filter.GetBoundary()));
  }
}

/** An opening or closing, which ITK computes on an image padded by `beyond`. */
template <typename TFilter, typename TPixel>
void
DescribeChunkwiseTwoExtrema(const TFilter & filter, const char * row, TPixel beyond, ChunkwiseStandInTask & task)
{
  task.filter = row;
  const auto & kernel = filter.GetKernel();
  const bool   isBox = DescribeChunkwiseKernel(kernel, task);
  RefuseLines(filter, isBox, task);
  task.isPartWrong = filter.GetAlgorithm() == TFilter::AlgorithmEnum::ANCHOR;
  // ITK does not reflect the element between its two steps.
  const auto taps = kernel.Size();
  for (unsigned int i = 0; i < taps; ++i)
  {
    if (static_cast<bool>(kernel[i]) != static_cast<bool>(kernel[taps - 1 - i]))
    {
      task.Refuse("a structuring element that is not symmetric");
    }
  }
  if (!kernel[taps / 2])
  {
    task.Refuse("a structuring element without its center");
  }
  if (filter.GetSafeBorder())
  {
    const auto radius = ChunkwiseSizes(kernel.GetRadius());
    for (std::size_t a = 0; a < radius.size(); ++a)
    {
      task.padding[static_cast<int>(a)] = radius[a];
    }
    task.paddingValue = chunkwise::PixelValue(beyond);
  }
}

template <typename TImage, typename TKernel>
void
DescribeChunkwiseTask(const GrayscaleDilateImageFilter<TImage, TImage, TKernel> & filter, ChunkwiseStandInTask & task)
{
  DescribeChunkwiseExtremum(filter, "maximum", NumericTraits<typename TImage::PixelType>::NonpositiveMin(), task);
}

template <typename TImage, typename TKernel>
void
DescribeChunkwiseTask(const GrayscaleErodeImageFilter<TImage, TImage, TKernel> & filter, ChunkwiseStandInTask & task)
{
  DescribeChunkwiseExtremum(filter, "minimum", NumericTraits<typename TImage::PixelType>::max(), task);
}

template <typename TImage, typename TKernel>
void
DescribeChunkwiseTask(const GrayscaleMorphologicalOpeningImageFilter<TImage, TImage, TKernel> & filter,
                      ChunkwiseStandInTask &                                                    task)
{
  DescribeChunkwiseTwoExtrema(filter, "opening", NumericTraits<typename TImage::PixelType>::max(), task);
}

template <typename TImage, typename TKernel>
void
DescribeChunkwiseTask(const GrayscaleMorphologicalClosingImageFilter<TImage, TImage, TKernel> & filter,
                      ChunkwiseStandInTask &                                                    task)
{
  DescribeChunkwiseTwoExtrema(filter, "closing", NumericTraits<typename TImage::PixelType>::NonpositiveMin(), task);
}

template <typename TImage, typename TKernel>
void
DescribeChunkwiseTask(const MorphologicalGradientImageFilter<TImage, TImage, TKernel> & filter,
                      ChunkwiseStandInTask &                                            task)
{
  task.filter = "range";
  const bool isBox = DescribeChunkwiseKernel(filter.GetKernel(), task);
  if (!isBox)
  {
    task.Refuse("a structuring element other than a box");
  }
  RefuseLines(filter, isBox, task);
  // Differences of signed integers overflow in ITK.
  task.overflowsAtMaximum =
    std::is_integral<typename TImage::PixelType>::value && std::is_signed<typename TImage::PixelType>::value;
}

} // namespace itk

#endif
