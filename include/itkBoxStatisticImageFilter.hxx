/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkBoxStatisticImageFilter_hxx
#define itkBoxStatisticImageFilter_hxx

#include "itkBoxStatisticImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage, typename TRadiusImage>
std::shared_ptr<const chunkwise::Operation>
BoxStatisticImageFilter<TInputImage, TOutputImage, TRadiusImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::BoxStatisticOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  switch (m_Statistic)
  {
    case StatisticEnum::Sum:
      operation->statistic = chunkwise::BoxStatistic::Sum;
      break;
    case StatisticEnum::Mean:
      operation->statistic = chunkwise::BoxStatistic::Mean;
      break;
    case StatisticEnum::Variance:
      operation->statistic = chunkwise::BoxStatistic::Variance;
      break;
    case StatisticEnum::StandardDeviation:
      operation->statistic = chunkwise::BoxStatistic::StandardDeviation;
      break;
  }
  operation->variable = this->GetRadiusImage() != nullptr;
  operation->anchored =
    !chunkwise::SumsAreExact(chunkwise::PixelKindOf<typename TInputImage::PixelType>(), operation->TakesSquares());
  return operation;
}

template <typename TInputImage, typename TOutputImage, typename TRadiusImage>
chunkwise::BufferView
BoxStatisticImageFilter<TInputImage, TOutputImage, TRadiusImage>::GetInputView(unsigned int i) const
{
  return i == 0 ? Superclass::GetInputView(i) : Superclass::ViewOf(*this->GetRadiusImage());
}

template <typename TInputImage, typename TOutputImage, typename TRadiusImage>
chunkwise::PixelKind
BoxStatisticImageFilter<TInputImage, TOutputImage, TRadiusImage>::GetInputKind(unsigned int i) const
{
  return i == 0 ? Superclass::GetInputKind(i) : chunkwise::PixelKindOf<typename TRadiusImage::PixelType>();
}

template <typename TInputImage, typename TOutputImage, typename TRadiusImage>
void
BoxStatisticImageFilter<TInputImage, TOutputImage, TRadiusImage>::VerifyInputInformation() const
{
  if (const TRadiusImage * const radii = this->GetRadiusImage())
  {
    const auto & radius = radii->GetLargestPossibleRegion();
    const auto & input = this->GetInput()->GetLargestPossibleRegion();
    if (radius != input)
    {
      itkExceptionMacro("RadiusImage: its largest possible region begins at "
                        << radius.GetIndex() << " with size " << radius.GetSize() << ", that of the input at "
                        << input.GetIndex() << " with size " << input.GetSize());
    }
  }
  Superclass::VerifyInputInformation();
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
