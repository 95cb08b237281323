/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseSequenceImageFilter_hxx
#define itkChunkwiseSequenceImageFilter_hxx

#include "chunkwiseSequenceOperation.h"
#include "itkChunkwiseSequenceImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::SequenceOperation>();
  if (m_Filters.empty())
  {
    itkExceptionMacro("Filters: the sequence has none");
  }
  m_Information->CopyInformation(this->GetInput());
  for (const auto & filter : m_Filters)
  {
    operation->stages.push_back(filter->GetOperation(imageExtent));
  }
  return operation;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::AddFilter(StageType * filter)
{
  if (!filter)
  {
    itkExceptionMacro("Filters: a null pointer cannot be a stage");
  }
  if (!m_Information)
  {
    m_Information = TOutputImage::New();
  }
  filter->SetInput(m_Information);
  m_Filters.push_back(filter);
  this->Modified();
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::ClearFilters()
{
  m_Filters.clear();
  this->Modified();
}

template <typename TInputImage, typename TOutputImage>
ModifiedTimeType
ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::GetMTime() const
{
  ModifiedTimeType latest = Superclass::GetMTime();
  for (const auto & filter : m_Filters)
  {
    latest = std::max(latest, filter->GetMTime());
  }
  return latest;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Filters:" << std::endl;
  for (const auto & filter : m_Filters)
  {
    filter->Print(os, indent.GetNextIndent());
  }
}

} // namespace itk

#endif
