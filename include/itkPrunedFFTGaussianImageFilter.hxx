/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkPrunedFFTGaussianImageFilter_hxx
#define itkPrunedFFTGaussianImageFilter_hxx

#include "chunkwiseImageConvolutionOperation.h"
#include "chunkwiseSequenceOperation.h"
#include "itkPrunedFFTGaussianImageFilter.h"

#include <type_traits>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
void
PrunedFFTGaussianImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (!std::is_floating_point<typename TOutputImage::PixelType>::value)
  {
    itkExceptionMacro("the output's pixels are integers, but this filter gives float or double");
  }
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
PrunedFFTGaussianImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates & imageExtent) const
{
  const auto direct =
    std::dynamic_pointer_cast<const chunkwise::SeparableOperation>(Superclass::MakeOperation(imageExtent));
  auto sequence = std::make_shared<chunkwise::SequenceOperation>();
  for (int axis = 0; axis < chunkwise::MaxDimension; ++axis)
  {
    const std::vector<double> & weights = direct->weights[axis];
    if (weights.empty())
    {
      continue;
    }
    auto extent = chunkwise::Coordinates::Filled(1);
    auto center = chunkwise::Coordinates::Filled(0);
    extent[axis] = static_cast<std::int64_t>(weights.size());
    center[axis] = extent[axis] / 2;
    const auto stage = std::make_shared<chunkwise::ImageConvolutionOperation>();
    stage->kernel = std::make_shared<const chunkwise::ConvolutionKernel>(extent, center, weights);
    stage->boundary = direct->boundary;
    stage->method = chunkwise::ConvolutionMethod::FFT;
    sequence->stages.push_back(stage);
  }
  if (sequence->stages.empty())
  {
    return direct;
  }
  return sequence;
}

} // namespace itk

#endif
