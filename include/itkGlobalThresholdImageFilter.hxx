/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkGlobalThresholdImageFilter_hxx
#define itkGlobalThresholdImageFilter_hxx

#include "chunkwiseThresholds.h"
#include "itkGlobalThresholdImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
GlobalThresholdImageFilter<TInputImage, TOutputImage>::GlobalThresholdImageFilter()
{
  this->AddOptionalInputName("MaskImage", 1);
}

template <typename TInputImage, typename TOutputImage>
void
GlobalThresholdImageFilter<TInputImage, TOutputImage>::SetThresholds(const ThresholdsType & thresholds)
{
  if (m_Thresholds != thresholds)
  {
    m_Thresholds = thresholds;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
GlobalThresholdImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.Set("Method", chunkwise::GetThresholdMethodNames()[static_cast<std::size_t>(m_Method)]);
  if (m_Method == MethodEnum::Fixed)
  {
    parameters.Set("Lower", chunkwise::PixelValue(m_Lower));
    parameters.Set("Upper", chunkwise::PixelValue(m_Upper));
    return parameters;
  }
  // Before the input is there they are provisional.
  const ThresholdsType & thresholds = this->GetThresholds();
  parameters.Set("Thresholds", thresholds.empty() ? ThresholdsType{ 0.0 } : thresholds);
  parameters.SetInteger("NumberOfClasses", m_NumberOfClasses);
  if (m_NumberOfBins != 0)
  {
    parameters.SetInteger("NumberOfBins", m_NumberOfBins);
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
GlobalThresholdImageFilter<TInputImage, TOutputImage>::GetOperation(const chunkwise::FilterImage & image) const
{
  if (this->NeedsHistogram())
  {
    itkExceptionMacro("Thresholds: none are set, and as a part of something else the filter has no input to take them "
                      "from");
  }
  return Superclass::GetOperation(image);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::BufferView
GlobalThresholdImageFilter<TInputImage, TOutputImage>::GetInputView(unsigned int i) const
{
  return i > 0 && this->GetMaskImage() ? this->ViewOf(*this->GetMaskImage(), "MaskImage") : Superclass::GetInputView(i);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::PixelType
GlobalThresholdImageFilter<TInputImage, TOutputImage>::GetInputKind(unsigned int i) const
{
  return i > 0 && this->GetMaskImage() ? chunkwise::PixelType::UInt8 : Superclass::GetInputKind(i);
}

template <typename TInputImage, typename TOutputImage>
void
GlobalThresholdImageFilter<TInputImage, TOutputImage>::GenerateInputRequestedRegion()
{
  Superclass::GenerateInputRequestedRegion();

  for (unsigned int i = 0; this->NeedsHistogram() && i < this->GetNumberOfIndexedInputs(); ++i)
  {
    if (DataObject * const input = this->ProcessObject::GetInput(i))
    {
      input->SetRequestedRegionToLargestPossibleRegion();
    }
  }
}

template <typename TInputImage, typename TOutputImage>
void
GlobalThresholdImageFilter<TInputImage, TOutputImage>::GenerateData()
{
  if (this->NeedsHistogram() && this->GetOutput()->GetRequestedRegion().GetNumberOfPixels() > 0)
  {
    this->ComputeFromWholeInput([this](auto & manager, const auto & request, auto & monitor) {
      const auto & parameter = *chunkwise::GetFilter(this->GetFilterName()).FindParameter("Thresholds");
      m_Found = chunkwise::EstimateParameter(manager, request, parameter, &monitor);
    });
  }
  Superclass::GenerateData();
}

template <typename TInputImage, typename TOutputImage>
void
GlobalThresholdImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Method: " << m_Method << std::endl;
  os << indent << "Thresholds:";
  for (const double threshold : this->GetThresholds())
  {
    os << " " << threshold;
  }
  os << std::endl;
  os << indent << "NumberOfClasses: " << m_NumberOfClasses << std::endl;
  os << indent << "NumberOfBins: " << m_NumberOfBins << std::endl;
  os << indent << "Lower: " << +m_Lower << std::endl;
  os << indent << "Upper: " << +m_Upper << std::endl;
}

} // namespace itk

#endif
