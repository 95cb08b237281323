/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedLaplacianOfGaussianImageFilter_hxx
#define itkRenormalizedLaplacianOfGaussianImageFilter_hxx

#include "itkRenormalizedLaplacianOfGaussianImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::RenormalizedLaplacianOfGaussianImageFilter()
{
  m_SigmaArray.Fill(1.0);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::SetSigma(double sigma)
{
  SigmaArrayType same;
  same.Fill(sigma);
  this->SetSigmaArray(same);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.Set("Sigma", this->OverSpatialAxes(m_SigmaArray));
  parameters.Set("UseImageSpacing", m_UseImageSpacing);
  parameters.Set("NormalizeAcrossScale", m_NormalizeAcrossScale);
  parameters.SetReal("Cutoff", m_Cutoff);
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedLaplacianOfGaussianImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Sigma: " << m_SigmaArray << std::endl;
  os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
  os << indent << "NormalizeAcrossScale: " << (m_NormalizeAcrossScale ? "On" : "Off") << std::endl;
  os << indent << "Cutoff: " << m_Cutoff << std::endl;
}

} // namespace itk

#endif
