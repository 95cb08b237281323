/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedEntropyImageFilter_hxx
#define itkRenormalizedEntropyImageFilter_hxx

#include "itkRenormalizedEntropyImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
void
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::SetRange(double minimum, double maximum)
{
  if (!m_RangeIsSet || minimum != m_RangeMinimum || maximum != m_RangeMaximum)
  {
    m_RangeIsSet = true;
    m_RangeMinimum = minimum;
    m_RangeMaximum = maximum;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.SetInteger("NumberOfBins", m_NumberOfBins);
  if (m_RangeIsSet)
  {
    parameters.Set("Range", std::vector<double>{ m_RangeMinimum, m_RangeMaximum });
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "NumberOfBins: " << m_NumberOfBins << std::endl;
  os << indent << "Range: ";
  if (m_RangeIsSet)
  {
    os << m_RangeMinimum << " to " << m_RangeMaximum << std::endl;
  }
  else
  {
    os << "that of the pixel type" << std::endl;
  }
}

} // namespace itk

#endif
