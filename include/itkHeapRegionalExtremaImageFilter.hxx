/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapRegionalExtremaImageFilter_hxx
#define itkHeapRegionalExtremaImageFilter_hxx

#include "itkChunkwiseGeometry.h"
#include "itkHeapRegionalExtremaImageFilter.h"
#include "itkImageRegionIterator.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  // What is converted is only where extrema are.
  parameters.Set("ForegroundValue",
                 Superclass::GivesSameType ? chunkwise::PixelValue(m_ForegroundValue) : chunkwise::PixelValue(1));
  parameters.Set("BackgroundValue",
                 Superclass::GivesSameType ? chunkwise::PixelValue(m_BackgroundValue) : chunkwise::PixelValue(0));
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::GetOperation(const chunkwise::FilterImage & image) const
{
  if (!Superclass::GivesSameType)
  {
    itkExceptionMacro("as a part of something else it needs input and output pixels of one type");
  }
  return Superclass::GetOperation(image);
}

template <typename TInputImage, typename TOutputImage>
void
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::WriteOutput(const chunkwise::BufferView & result)
{
  const auto region = ChunkwiseRegionFromBox<TOutputImage::ImageDimension>(
    result.box, this->GetInput()->GetLargestPossibleRegion().GetIndex());
  const auto * from = static_cast<const typename TInputImage::PixelType *>(result.data);
  for (ImageRegionIterator<TOutputImage> it(this->GetOutput(), region); !it.IsAtEnd(); ++it)
  {
    it.Set(*from++ != 0 ? m_ForegroundValue : m_BackgroundValue);
  }
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
