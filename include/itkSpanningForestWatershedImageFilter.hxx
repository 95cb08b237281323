/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSpanningForestWatershedImageFilter_hxx
#define itkSpanningForestWatershedImageFilter_hxx

#include "itkSpanningForestWatershedImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
SpanningForestWatershedImageFilter<TInputImage, TOutputImage>::SpanningForestWatershedImageFilter()
{
  this->AddOptionalInputName("MarkerImage", 1);
  this->AddOptionalInputName("MaskImage", 2);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
SpanningForestWatershedImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.SetInteger("Connectivity", m_Connectivity);
  // Integers differ by whole numbers.
  parameters.Set("Height",
                 std::is_integral<typename Superclass::InputPixelType>::value && m_Height >= 0 && m_Height < 9e18
                   ? chunkwise::PixelValue(static_cast<std::int64_t>(m_Height))
                   : chunkwise::PixelValue(m_Height));
  parameters.SetReal("Area", m_Area);
  parameters.SetReal("Volume", m_Volume);
  parameters.Set("UseImageSpacing", m_UseImageSpacing);
  parameters.Set("Lines", m_Lines);
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
chunkwise::BufferView
SpanningForestWatershedImageFilter<TInputImage, TOutputImage>::GetInputView(unsigned int i) const
{
  if (i == 1 && this->GetMarkerImage())
  {
    return this->ViewOf(*this->GetMarkerImage(), "MarkerImage");
  }
  return i > 0 && this->GetMaskImage() ? this->ViewOf(*this->GetMaskImage(), "MaskImage") : Superclass::GetInputView(i);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::PixelType
SpanningForestWatershedImageFilter<TInputImage, TOutputImage>::GetInputKind(unsigned int i) const
{
  if (i == 1 && this->GetMarkerImage())
  {
    return chunkwise::PixelTypeOf<typename Superclass::OutputPixelType>();
  }
  return i > 0 && this->GetMaskImage() ? chunkwise::PixelType::UInt8 : Superclass::GetInputKind(i);
}

template <typename TInputImage, typename TOutputImage>
void
SpanningForestWatershedImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Connectivity: " << m_Connectivity << std::endl;
  os << indent << "Height: " << m_Height << std::endl;
  os << indent << "Area: " << m_Area << std::endl;
  os << indent << "Volume: " << m_Volume << std::endl;
  os << indent << "UseImageSpacing: " << (m_UseImageSpacing ? "On" : "Off") << std::endl;
  os << indent << "Lines: " << (m_Lines ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
