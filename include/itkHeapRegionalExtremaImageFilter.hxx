/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapRegionalExtremaImageFilter_hxx
#define itkHeapRegionalExtremaImageFilter_hxx

#include "itkHeapRegionalExtremaImageFilter.h"

namespace itk
{

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
