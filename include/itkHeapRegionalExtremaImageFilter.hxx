/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapRegionalExtremaImageFilter_hxx
#define itkHeapRegionalExtremaImageFilter_hxx

#include "itkHeapRegionalExtremaImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
HeapRegionalExtremaImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  // A result that is converted only marks where extrema are.
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
  using InputPixelType = typename Superclass::InputPixelType;
  this->template ConvertToOutput<InputPixelType>(
    result, [this](const InputPixelType * from, OutputPixelType * to, std::int64_t step, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i)
      {
        to[i * step] = from[i] != 0 ? m_ForegroundValue : m_BackgroundValue;
      }
    });
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
