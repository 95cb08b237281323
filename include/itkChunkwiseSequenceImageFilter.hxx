/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseSequenceImageFilter_hxx
#define itkChunkwiseSequenceImageFilter_hxx

#include "chunkwiseError.h"
#include "chunkwiseSequenceOperation.h"
#include "itkChunkwiseSequenceImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::FilterImage & image) const
{
  if (m_Filters.empty())
  {
    itkExceptionMacro("Filters: the sequence has none");
  }
  auto                   operation = std::make_shared<chunkwise::SequenceOperation>();
  chunkwise::FilterImage between = image;
  for (const auto & filter : m_Filters)
  {
    const std::string which =
      "Filters: number " + std::to_string(operation->stages.size()) + ", " + filter->GetNameOfClass() + ", ";
    try
    {
      const std::string name = filter->GetFilterName();
      if (!name.empty() && !(chunkwise::GetFilterOutputBox(name, filter->MakeParameters(), between) ==
                             chunkwise::Box::FromExtent(between.extent)))
      {
        throw chunkwise::ParameterError("its output is smaller than its input");
      }
      operation->stages.push_back(filter->GetOperation(between));
    }
    catch (const chunkwise::ParameterError & error)
    {
      throw chunkwise::ParameterError(which + error.what());
    }
    between.inputKind = between.outputKind;
  }
  return operation;
}

template <typename TInputImage, typename TOutputImage>
bool
ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::IsPartOf(const StageType * filter) const
{
  if (static_cast<const ProcessObject *>(filter) == this)
  {
    return true;
  }
  const auto * const sequence = dynamic_cast<const ChunkwiseSequenceImageFilter<TOutputImage, TOutputImage> *>(filter);
  for (SizeValueType i = 0; sequence && i < sequence->GetNumberOfFilters(); ++i)
  {
    if (this->IsPartOf(sequence->GetFilter(i)))
    {
      return true;
    }
  }
  return false;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseSequenceImageFilter<TInputImage, TOutputImage>::AddFilter(StageType * filter)
{
  if (!filter)
  {
    itkExceptionMacro("Filters: a null pointer cannot be a stage");
  }
  if (this->IsPartOf(filter))
  {
    itkExceptionMacro("Filters: a sequence cannot be a stage of itself");
  }
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
