/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseMorphologyImageFilter_hxx
#define itkChunkwiseMorphologyImageFilter_hxx

#include "itkChunkwiseKernelStack.h"
#include "itkChunkwiseMorphologyImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::SetRadius(const RadiusType & radius)
{
  if (!m_Element.empty())
  {
    m_Element.clear();
    this->Modified();
  }
  Superclass::SetRadius(radius);
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::SetElement(const RadiusType &                 radius,
                                                                      const std::vector<unsigned char> & element)
{
  Superclass::SetRadius(radius);
  if (m_Element != element)
  {
    m_Element = element;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
typename ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::KernelType
ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::GetKernel() const
{
  return MakeChunkwiseElementKernel<ImageDimension>(this->GetRadius(), m_Element);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  if (!m_Element.empty())
  {
    Size<ImageDimension> size;
    for (unsigned int a = 0; a < ImageDimension; ++a)
    {
      size[a] = 2 * this->GetRadius()[a] + 1;
    }
    parameters.Set(
      "Kernel",
      MakeChunkwiseKernelStack<ImageDimension>(size, std::vector<double>(m_Element.begin(), m_Element.end())));
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Kernel: ";
  if (m_Element.empty())
  {
    os << "box" << std::endl;
  }
  else
  {
    os << std::count(m_Element.begin(), m_Element.end(), 1) << " of " << m_Element.size() << " voxels" << std::endl;
  }
}

} // namespace itk

#endif
