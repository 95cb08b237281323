/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedNonLocalMeansImageFilter_hxx
#define itkRenormalizedNonLocalMeansImageFilter_hxx

#include "itkRenormalizedNonLocalMeansImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::RenormalizedNonLocalMeansImageFilter()
{
  m_PatchRadius.Fill(1);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::SetPatchRadius(const RadiusValueType & radius)
{
  RadiusType same;
  same.Fill(radius);
  this->SetPatchRadius(same);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.Set("PatchRadius", this->SizesOverSpatialAxes("PatchRadius", m_PatchRadius));
  parameters.SetReal("Strength", m_Strength);
  parameters.SetReal("NoiseVariance", m_NoiseVariance);
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "PatchRadius: " << m_PatchRadius << std::endl;
  os << indent << "Strength: " << m_Strength << std::endl;
  os << indent << "NoiseVariance: " << m_NoiseVariance << std::endl;
}

} // namespace itk

#endif
