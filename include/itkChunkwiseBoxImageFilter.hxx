/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseBoxImageFilter_hxx
#define itkChunkwiseBoxImageFilter_hxx

#include "itkChunkwiseBoxImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::ChunkwiseBoxImageFilter()
{
  m_Radius.Fill(1);
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::SetRadius(const RadiusType & radius)
{
  if (m_Radius != radius)
  {
    m_Radius = radius;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::SetRadius(const RadiusValueType & radius)
{
  RadiusType same;
  same.Fill(radius);
  this->SetRadius(same);
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::SetUpperRadius(const RadiusType & radius)
{
  if (!m_HasUpperRadius || m_UpperRadius != radius)
  {
    m_HasUpperRadius = true;
    m_UpperRadius = radius;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::SetUpperRadius(const RadiusValueType & radius)
{
  RadiusType same;
  same.Fill(radius);
  this->SetUpperRadius(same);
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::ClearUpperRadius()
{
  if (m_HasUpperRadius)
  {
    m_HasUpperRadius = false;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.Set("Radius", this->SizesOverSpatialAxes("Radius", m_Radius));
  if (m_HasUpperRadius)
  {
    parameters.Set("UpperRadius", this->SizesOverSpatialAxes("UpperRadius", m_UpperRadius));
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Radius: " << m_Radius << std::endl;
  os << indent << "UpperRadius: " << this->GetUpperRadius() << std::endl;
}

} // namespace itk

#endif
