/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseStatisticsImageSink_hxx
#define itkChunkwiseStatisticsImageSink_hxx

#include "itkChunkwiseStatisticsImageSink.h"
#include "itkImageScanlineConstIterator.h"

#include <algorithm>
#include <type_traits>

namespace itk
{

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::BeforeStreamedGenerateData()
{
  Superclass::BeforeStreamedGenerateData();
  m_Exact = chunkwise::ExactSum();
  m_Minimum = NumericTraits<PixelType>::max();
  m_Maximum = NumericTraits<PixelType>::NonpositiveMin();
  m_Count = 0;
}

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::ThreadedStreamedGenerateData(const RegionType & region)
{
  chunkwise::ExactSum exact;
  PixelType           minimum = NumericTraits<PixelType>::max();
  PixelType           maximum = NumericTraits<PixelType>::NonpositiveMin();
  for (ImageScanlineConstIterator<TInputImage> it(this->GetInput(), region); !it.IsAtEnd(); it.NextLine())
  {
    // The halves of 64-bit integers of a line add up without overflow.
    std::int64_t  high = 0;
    std::uint64_t low = 0;
    for (; !it.IsAtEndOfLine(); ++it)
    {
      const PixelType value = it.Get();
      minimum = value < minimum ? value : minimum;
      maximum = value > maximum ? value : maximum;
      if constexpr (!std::is_integral<PixelType>::value)
      {
        exact.Add(static_cast<double>(value));
      }
      else if constexpr (sizeof(PixelType) == 8)
      {
        high += static_cast<std::int64_t>(value >> 32);
        low += static_cast<std::uint64_t>(value) & 0xFFFFFFFF;
      }
      else
      {
        high += static_cast<std::int64_t>(value);
      }
    }
    if constexpr (std::is_integral<PixelType>::value)
    {
      // Parts of 32 bits are exact as doubles.
      const double       factor = sizeof(PixelType) == 8 ? 4294967296.0 : 1.0;
      const std::int64_t upper = high >> 32;
      exact.Add(static_cast<double>(upper) * 4294967296.0 * factor);
      exact.Add(static_cast<double>(high - upper * (std::int64_t{ 1 } << 32)) * factor);
      exact.Add(static_cast<double>(low >> 32) * 4294967296.0);
      exact.Add(static_cast<double>(low & 0xFFFFFFFF));
    }
  }
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Exact.Add(exact);
  m_Minimum = std::min(m_Minimum, minimum);
  m_Maximum = std::max(m_Maximum, maximum);
  m_Count += region.GetNumberOfPixels();
}

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::AfterStreamedGenerateData()
{
  Superclass::AfterStreamedGenerateData();
  m_Sum = m_Exact.Get();
}

template <typename TInputImage>
void
ChunkwiseStatisticsImageSink<TInputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Sum: " << m_Sum << std::endl;
  os << indent << "Minimum: " << static_cast<typename NumericTraits<PixelType>::PrintType>(m_Minimum) << std::endl;
  os << indent << "Maximum: " << static_cast<typename NumericTraits<PixelType>::PrintType>(m_Maximum) << std::endl;
  os << indent << "Count: " << m_Count << std::endl;
}

} // namespace itk

#endif
