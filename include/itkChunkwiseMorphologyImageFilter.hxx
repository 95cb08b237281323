/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseMorphologyImageFilter_hxx
#define itkChunkwiseMorphologyImageFilter_hxx

#include "itkChunkwiseMorphologyImageFilter.h"

#include "chunkwiseExtremumOperation.h"
#include "chunkwiseFlatExtremumOperation.h"
#include "chunkwiseSequenceOperation.h"

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
std::shared_ptr<const chunkwise::Operation>
ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::MakeExtremum(const chunkwise::Coordinates & imageExtent,
                                                                        bool minimum, bool reflected) const
{
  // A box is the same operation whichever way it was given.
  if (std::find(m_Element.begin(), m_Element.end(), 0) == m_Element.end())
  {
    auto operation = std::make_shared<chunkwise::ExtremumOperation>();
    operation->radius = this->GetWindowRadius(imageExtent);
    operation->boundary = this->GetWindowBoundary();
    operation->minimum = minimum;
    return operation;
  }
  auto operation = std::make_shared<chunkwise::FlatExtremumOperation>();
  for (unsigned int a = 0; a < ImageDimension; ++a)
  {
    operation->radius[static_cast<int>(a)] = static_cast<std::int64_t>(this->GetRadius()[a]);
  }
  operation->element = m_Element;
  if (reflected)
  {
    std::reverse(operation->element.begin(), operation->element.end());
  }
  operation->boundary = this->GetWindowBoundary();
  operation->minimum = minimum;
  return operation;
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::MakeSequence(const chunkwise::Coordinates & imageExtent,
                                                                        bool minimumFirst) const
{
  auto operation = std::make_shared<chunkwise::SequenceOperation>();
  operation->stages = { this->MakeExtremum(imageExtent, minimumFirst),
                        this->MakeExtremum(imageExtent, !minimumFirst, true) };
  return operation;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseMorphologyImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (m_Element.empty())
  {
    return;
  }
  if (std::find(m_Element.begin(), m_Element.end(), 1) == m_Element.end())
  {
    itkExceptionMacro("Kernel: the structuring element of radius " << this->GetRadius() << " is empty");
  }
  const auto axes = this->GetSpatialAxes();
  for (unsigned int a = 0; a < ImageDimension; ++a)
  {
    if (this->GetRadius()[a] > 0 && std::find(axes.begin(), axes.end(), a) == axes.end())
    {
      itkExceptionMacro("Kernel: its radius " << this->GetRadius() << " is not 0 along axis " << a
                                              << ", which is not spatial");
    }
  }
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
