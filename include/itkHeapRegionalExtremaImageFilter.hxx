/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapRegionalExtremaImageFilter_hxx
#define itkHeapRegionalExtremaImageFilter_hxx

#include "itkHeapRegionalExtremaImageFilter.h"
#include "itkImageRegionConstIterator.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
void
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::GenerateData()
{
  // Whether a flat image is an extremum is a matter of choice. Others are found out at their first voxels.
  ImageRegionConstIterator<TInputImage> it(this->GetInput(), this->GetOutput()->GetRequestedRegion());
  it.GoToBegin();
  if (it.IsAtEnd())
  {
    Superclass::GenerateData();
    return;
  }
  const auto first = it.Get();
  while (!it.IsAtEnd() && it.Get() == first)
  {
    ++it;
  }
  if (!it.IsAtEnd())
  {
    Superclass::GenerateData();
    return;
  }
  this->AllocateOutputs();
  this->GetOutput()->FillBuffer(m_FlatIsExtremum ? m_ForegroundValue : m_BackgroundValue);
  this->UpdateProgress(1.0f);
}

template <typename TInputImage, typename TOutputImage>
void
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  using Print = typename NumericTraits<OutputPixelType>::PrintType;
  Superclass::PrintSelf(os, indent);
  os << indent << "ForegroundValue: " << static_cast<Print>(m_ForegroundValue) << std::endl;
  os << indent << "BackgroundValue: " << static_cast<Print>(m_BackgroundValue) << std::endl;
  os << indent << "FlatIsExtremum: " << (m_FlatIsExtremum ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
