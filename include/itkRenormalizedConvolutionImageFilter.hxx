/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedConvolutionImageFilter_hxx
#define itkRenormalizedConvolutionImageFilter_hxx

#include "itkChunkwiseKernelStack.h"
#include "itkRenormalizedConvolutionImageFilter.h"

namespace itk
{

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
chunkwise::FilterParameters
RenormalizedConvolutionImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.Set("Kernel",
                 MakeChunkwiseKernelStack<ImageDimension>(m_Kernel.GetSize(),
                                                          std::vector<double>(m_Kernel.Begin(), m_Kernel.End())));
  parameters.Set("Correlate", m_Correlate);
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedConvolutionImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Kernel: " << m_Kernel << std::endl;
  os << indent << "Correlate: " << (m_Correlate ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
