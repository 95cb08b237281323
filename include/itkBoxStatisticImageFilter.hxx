/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkBoxStatisticImageFilter_hxx
#define itkBoxStatisticImageFilter_hxx

#include "itkBoxStatisticImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage, typename TRadiusImage>
chunkwise::BufferView
BoxStatisticImageFilter<TInputImage, TOutputImage, TRadiusImage>::GetInputView(unsigned int i) const
{
  return i != 1 || !this->GetRadiusImage() ? Superclass::GetInputView(i)
                                           : this->ViewOf(*this->GetRadiusImage(), "RadiusImage");
}

template <typename TInputImage, typename TOutputImage, typename TRadiusImage>
chunkwise::PixelType
BoxStatisticImageFilter<TInputImage, TOutputImage, TRadiusImage>::GetInputKind(unsigned int i) const
{
  return i != 1 || !this->GetRadiusImage() ? Superclass::GetInputKind(i)
                                           : chunkwise::PixelTypeOf<typename TRadiusImage::PixelType>();
}

template <typename TInputImage, typename TOutputImage, typename TRadiusImage>
chunkwise::FilterParameters
BoxStatisticImageFilter<TInputImage, TOutputImage, TRadiusImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  switch (m_Statistic)
  {
    case StatisticEnum::Sum:
      parameters.Set("Statistic", "sum");
      break;
    case StatisticEnum::Mean:
      parameters.Set("Statistic", "mean");
      break;
    case StatisticEnum::Variance:
      parameters.Set("Statistic", "variance");
      break;
    case StatisticEnum::StandardDeviation:
      parameters.Set("Statistic", "std");
      break;
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage, typename TRadiusImage>
void
BoxStatisticImageFilter<TInputImage, TOutputImage, TRadiusImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Statistic: " << m_Statistic << std::endl;
}

} // namespace itk

#endif
