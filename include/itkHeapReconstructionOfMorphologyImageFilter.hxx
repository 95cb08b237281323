/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionOfMorphologyImageFilter_hxx
#define itkHeapReconstructionOfMorphologyImageFilter_hxx

#include "itkHeapReconstructionOfMorphologyImageFilter.h"

#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwisePassesOperation.h"

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
std::shared_ptr<const chunkwise::Operation>
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>::MakeExtremum(
  const chunkwise::Coordinates & imageExtent, bool minimum) const
{
  auto radius = chunkwise::Coordinates::Filled(0);
  // A box is the same operation whichever way it was given.
  if (std::find(m_Element.begin(), m_Element.end(), 0) == m_Element.end())
  {
    for (int a = 0; a < static_cast<int>(this->GetSpatialDimension()); ++a)
    {
      // A window that covers the image grows no more: the cut keeps every radius a valid 64-bit number.
      radius[a] = static_cast<std::int64_t>(
        std::min(m_Radius[static_cast<unsigned int>(a)],
                 static_cast<RadiusValueType>(std::max<std::int64_t>(imageExtent[a], 1) - 1)));
    }
    auto operation = std::make_shared<chunkwise::ExtremumOperation>();
    operation->radius = radius;
    operation->minimum = minimum;
    return operation;
  }
  for (unsigned int a = 0; a < ImageDimension; ++a)
  {
    radius[static_cast<int>(a)] = static_cast<std::int64_t>(m_Radius[a]);
  }
  auto operation = std::make_shared<chunkwise::FlatExtremumOperation>();
  operation->radius = radius;
  operation->element = m_Element;
  operation->minimum = minimum;
  return operation;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  const auto reconstruction =
    std::dynamic_pointer_cast<const chunkwise::ReconstructionOperation>(Superclass::MakeOperation(imageExtent));
  return chunkwise::MakeReconstructionOfExtremum(
    this->MakeExtremum(imageExtent, !reconstruction->erosion), *reconstruction, m_PreserveIntensities);
}

template <typename TInputImage, typename TOutputImage>
void
HeapReconstructionOfMorphologyImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (!m_Element.empty() && std::find(m_Element.begin(), m_Element.end(), 1) == m_Element.end())
  {
    itkExceptionMacro("Kernel: the structuring element of radius " << m_Radius << " is empty");
  }
  for (unsigned int a = 0; a < ImageDimension; ++a)
  {
    if (a >= this->GetSpatialDimension() && !m_Element.empty() && m_Radius[a] > 0)
    {
      itkExceptionMacro("Kernel: its radius " << m_Radius << " is not 0 along axis " << a << ", which is not spatial");
    }
    // A window is cut to the image, so that only a negative number given as an unsigned one is too large.
    const RadiusValueType largest = (RadiusValueType{ 1 } << 61) - 1;
    if (a < this->GetSpatialDimension() && m_Radius[a] > largest)
    {
      itkExceptionMacro("Radius: " << m_Radius[a] << " along axis " << a << " is larger than " << largest);
    }
  }
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
