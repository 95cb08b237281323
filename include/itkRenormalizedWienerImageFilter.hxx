/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedWienerImageFilter_hxx
#define itkRenormalizedWienerImageFilter_hxx

#include "itkRenormalizedWienerImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  if (m_NoiseVarianceIsSet)
  {
    parameters.SetReal("NoiseVariance", m_NoiseVariance);
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "NoiseVariance: " << m_NoiseVariance << std::endl;
}

} // namespace itk

#endif
