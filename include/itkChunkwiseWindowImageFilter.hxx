/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseWindowImageFilter_hxx
#define itkChunkwiseWindowImageFilter_hxx

#include "itkChunkwiseWindowImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::ChunkwiseWindowImageFilter()
{
  for (unsigned int axis = 0; axis < std::min<unsigned int>(ImageDimension, chunkwise::MaxSpatialAxes); ++axis)
  {
    m_SpatialAxes.push_back(axis);
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::SetBoundaryConditions(
  const BoundaryConditionsType & conditions)
{
  if (m_BoundaryConditions != conditions)
  {
    m_BoundaryConditions = conditions;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::SetSpatialAxes(const SpatialAxesType & axes)
{
  if (m_SpatialAxes != axes)
  {
    m_SpatialAxes = axes;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
bool
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::IsSpatialAxis(unsigned int axis) const
{
  return std::find(m_SpatialAxes.begin(), m_SpatialAxes.end(), axis) != m_SpatialAxes.end();
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
template <typename TArray>
std::vector<double>
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::OverSpatialAxes(const TArray & array) const
{
  std::vector<double> numbers;
  for (const unsigned int axis : m_SpatialAxes)
  {
    // The engine refuses an axis that the image has not.
    numbers.push_back(axis < ImageDimension ? array[axis] : 0.0);
  }
  return numbers;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
std::vector<std::int64_t>
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::SizesOverSpatialAxes(
  const char * name, const typename TInputImage::SizeType & sizes) const
{
  return this->SizesOver(m_SpatialAxes, name, sizes);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::SetDomainImage(const char *                   name,
                                                                                   DataObjectPointerArraySizeType index,
                                                                                   const DataObject *             image)
{
  if (image != this->ProcessObject::GetInput(name))
  {
    // A second time would leave the index to an input that is gone.
    if (!this->IsIndexedInputName(name))
    {
      this->AddOptionalInputName(name, this->FindIndexOfInput(name, static_cast<unsigned int>(index)));
    }
    this->ProcessObject::SetInput(name, const_cast<DataObject *>(image));
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyDomain() const
{
  this->VerifyDomainIn(this->GetCoordinateTolerance(), this->GetDirectionTolerance());
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::BufferView
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputView(unsigned int i) const
{
  // The engine refuses both at once.
  if (i > 0 && this->GetDomainMask())
  {
    return this->ViewOf(*this->GetDomainMask(), "MaskImage");
  }
  if (i > 0 && this->GetDomainWeights())
  {
    return this->ViewOf(*this->GetDomainWeights(), "WeightImage");
  }
  return Superclass::GetInputView(i);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::PixelType
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputKind(unsigned int i) const
{
  return i > 0 && this->GetDomainMask()      ? chunkwise::PixelType::UInt8
         : i > 0 && this->GetDomainWeights() ? chunkwise::PixelType::Float32
                                             : Superclass::GetInputKind(i);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::FilterParameters
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::MakeParameters() const
{
  this->CheckDomain();
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  SetChunkwiseWindowParameters(
    parameters, m_BoundaryCondition, m_Constant, m_SpatialAxes, m_IgnoreNaN, m_OutputMask, m_EmptyValue);
  if (!m_BoundaryConditions.empty())
  {
    SetChunkwiseBoundaries(parameters, m_BoundaryConditions);
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "BoundaryConditions:";
  for (const BoundaryConditionEnum condition : m_BoundaryConditions)
  {
    os << ' ' << condition;
  }
  os << std::endl;
  PrintChunkwiseWindow(
    os, indent, m_BoundaryCondition, m_Constant, m_SpatialAxes, m_IgnoreNaN, m_OutputMask, m_EmptyValue);
}

} // namespace itk

#endif
