/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedPercentileImageFilter_hxx
#define itkRenormalizedPercentileImageFilter_hxx

#include "itkRenormalizedPercentileImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
RenormalizedPercentileImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.SetReal("Percentile", m_Percentile);
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedPercentileImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Percentile: " << m_Percentile << std::endl;
}

} // namespace itk

#endif
