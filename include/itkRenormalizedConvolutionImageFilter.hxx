/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedConvolutionImageFilter_hxx
#define itkRenormalizedConvolutionImageFilter_hxx

#include "chunkwiseConvolutionOperation.h"
#include "itkRenormalizedConvolutionImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedConvolutionImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates &) const
{
  auto operation = std::make_shared<chunkwise::ConvolutionOperation>();
  for (unsigned int axis = 0; axis < ImageDimension; ++axis)
  {
    operation->radius[static_cast<int>(axis)] = static_cast<std::int64_t>(m_Kernel.GetRadius(axis));
  }
  // The engine correlates: mirrored along all axes, the weights come in reverse.
  operation->weights.assign(m_Kernel.Begin(), m_Kernel.End());
  std::reverse(operation->weights.begin(), operation->weights.end());
  operation->boundary = this->GetWindowBoundary();
  return operation;
}

template <typename TInputImage, typename TOutputImage>
RenormalizedConvolutionImageFilter<TInputImage, TOutputImage>::RenormalizedConvolutionImageFilter()
{
  m_Kernel.SetRadius(SizeValueType{ 0 });
  m_Kernel[0] = 1.0;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedConvolutionImageFilter<TInputImage, TOutputImage>::SetKernel(const KernelType & kernel)
{
  if (m_Kernel != kernel)
  {
    m_Kernel = kernel;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedConvolutionImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  for (unsigned int axis = 0; axis < ImageDimension; ++axis)
  {
    if (m_Kernel.GetRadius(axis) > 0 && !this->IsSpatialAxis(axis))
    {
      itkExceptionMacro("Kernel: its radius is " << m_Kernel.GetRadius(axis) << " along axis " << axis
                                                 << ", which is not spatial");
    }
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedConvolutionImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Kernel: " << m_Kernel << std::endl;
}

} // namespace itk

#endif
