/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionOfMorphologyImageFilter_hxx
#define itkHeapReconstructionOfMorphologyImageFilter_hxx

#include "itkChunkwiseKernelStack.h"
#include "itkHeapReconstructionOfMorphologyImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
void
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>::SetElement(
  const RadiusType & radius, const std::vector<unsigned char> & element)
{
  if (m_Radius != radius || m_Element != element)
  {
    m_Radius = radius;
    m_Element = element;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
typename HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>::KernelType
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>::GetKernel() const
{
  return MakeChunkwiseElementKernel<ImageDimension>(m_Radius, m_Element);
}

template <typename TInputImage, typename TOutputImage>
chunkwise::FilterParameters
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  std::vector<std::int64_t>   radius;
  for (unsigned int a = 0; a < this->GetSpatialDimension(); ++a)
  {
    radius.push_back(static_cast<std::int64_t>(m_Radius[a]));
  }
  parameters.Set("Radius", radius);
  if (!m_Element.empty())
  {
    Size<ImageDimension> size;
    for (unsigned int a = 0; a < ImageDimension; ++a)
    {
      size[a] = 2 * m_Radius[a] + 1;
    }
    parameters.Set(
      "Kernel",
      MakeChunkwiseKernelStack<ImageDimension>(size, std::vector<double>(m_Element.begin(), m_Element.end())));
  }
  parameters.Set("PreserveIntensities", m_PreserveIntensities);
  return parameters;
}

template <typename TInputImage, typename TOutputImage>
void
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Radius: " << m_Radius << std::endl;
  os << indent << "Kernel: ";
  if (m_Element.empty())
  {
    os << "box" << std::endl;
  }
  else
  {
    os << std::count(m_Element.begin(), m_Element.end(), 1) << " of " << m_Element.size() << " voxels" << std::endl;
  }
  os << indent << "PreserveIntensities: " << (m_PreserveIntensities ? "On" : "Off") << std::endl;
}

} // namespace itk

#endif
