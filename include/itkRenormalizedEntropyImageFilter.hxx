/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedEntropyImageFilter_hxx
#define itkRenormalizedEntropyImageFilter_hxx

#include "chunkwiseEntropyOperation.h"
#include "chunkwiseStatistics.h"
#include "itkRenormalizedEntropyImageFilter.h"

#include <limits>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::EntropyOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  operation->bins = m_NumberOfBins;
  operation->lower = m_RangeMinimum;
  operation->upper = m_RangeMaximum;
  if (m_AutomaticRange && !(m_RangeMinimum < m_RangeMaximum))
  {
    // Before the input is there.
    operation->lower = 0.0;
    operation->upper = 1.0;
  }
  return operation;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::GetOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  if (m_AutomaticRange)
  {
    itkExceptionMacro(
      "AutomaticRange: on, but as a part of something else the filter has no input to take a range from");
  }
  return Superclass::GetOperation(imageExtent);
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
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::RenormalizedEntropyImageFilter()
{
  using Limits = std::numeric_limits<typename TInputImage::PixelType>;
  if (Limits::is_integer && sizeof(typename TInputImage::PixelType) <= 2)
  {
    m_RangeMinimum = static_cast<double>(Limits::lowest());
    m_RangeMaximum = static_cast<double>(Limits::max()) + 1.0;
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::SetRange(double minimum, double maximum)
{
  if (minimum != m_RangeMinimum || maximum != m_RangeMaximum)
  {
    m_RangeMinimum = minimum;
    m_RangeMaximum = maximum;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (m_NumberOfBins < 2 || m_NumberOfBins > chunkwise::EntropyOperation::LargestBins)
  {
    itkExceptionMacro("NumberOfBins: " << m_NumberOfBins << " is not from 2 to "
                                       << chunkwise::EntropyOperation::LargestBins);
  }
  if (!m_AutomaticRange && !(m_RangeMinimum < m_RangeMaximum))
  {
    itkExceptionMacro("Range: from " << m_RangeMinimum << " to " << m_RangeMaximum
                                     << " is empty or was not set, nor AutomaticRange turned on");
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedEntropyImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "NumberOfBins: " << m_NumberOfBins << std::endl;
  os << indent << "Range: " << m_RangeMinimum << " to " << m_RangeMaximum << std::endl;
  os << indent << "AutomaticRange: " << (m_AutomaticRange ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
