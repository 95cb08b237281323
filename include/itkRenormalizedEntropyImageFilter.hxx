/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedEntropyImageFilter_hxx
#define itkRenormalizedEntropyImageFilter_hxx

#include "chunkwiseStatistics.h"
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
  if (m_AutomaticRange && !(m_RangeMinimum < m_RangeMaximum))
  {
    // Before the input is there.
    parameters.Set("Range", std::vector<double>{ 0.0, 1.0 });
  }
  else if (m_AutomaticRange || m_RangeIsSet)
  {
    parameters.Set("Range", std::vector<double>{ m_RangeMinimum, m_RangeMaximum });
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::GetOperation(const chunkwise::FilterImage & image) const
{
  if (m_AutomaticRange)
  {
    itkExceptionMacro(
      "AutomaticRange: on, but as a part of something else the filter has no input to take a range from");
  }
  return Superclass::GetOperation(image);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::GenerateInputRequestedRegion()
{
  Superclass::GenerateInputRequestedRegion();

  auto * input = const_cast<TInputImage *>(this->GetInput());
  if (m_AutomaticRange && input)
  {
    input->SetRequestedRegionToLargestPossibleRegion();
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::GenerateData()
{
  if (m_AutomaticRange && this->GetOutput()->GetRequestedRegion().GetNumberOfPixels() > 0)
  {
    this->ComputeFromWholeInput([this](auto & manager, const auto & request, auto & monitor) {
      const auto range = chunkwise::ComputeEntropyRange(manager, request, m_NumberOfBins, &monitor);
      m_RangeMinimum = range.lower;
      m_RangeMaximum = range.upper;
    });
  }
  Superclass::GenerateData();
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "NumberOfBins: " << m_NumberOfBins << std::endl;
  os << indent << "Range: ";
  if (m_RangeIsSet || m_AutomaticRange)
  {
    os << m_RangeMinimum << " to " << m_RangeMaximum << std::endl;
  }
  else
  {
    os << "that of the pixel type" << std::endl;
  }
  os << indent << "AutomaticRange: " << (m_AutomaticRange ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
