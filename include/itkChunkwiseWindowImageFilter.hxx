/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseWindowImageFilter_hxx
#define itkChunkwiseWindowImageFilter_hxx

#include "itkChunkwiseWindowImageFilter.h"

#include <algorithm>
#include <cmath>
#include <limits>

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
  constexpr std::int64_t    largest = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> numbers;
  for (const unsigned int axis : m_SpatialAxes)
  {
    const SizeValueType size = axis < ImageDimension ? sizes[axis] : 0;
    if (size > static_cast<SizeValueType>(largest))
    {
      itkExceptionMacro(<< name << ": " << size << " along axis " << axis << " is larger than " << largest);
    }
    numbers.push_back(static_cast<std::int64_t>(size));
  }
  return numbers;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::SetDomainImage(const char *                   name,
                                                                                   DataObjectPointerArraySizeType index,
                                                                                   const DataObject *             image)
{
  if (image != this->ProcessObject::GetInput(name))
  {
    // Beside the images that the filter has anyhow.
    const auto & further = chunkwise::GetFilter(this->GetFilterName()).furtherInputs;
    const auto   place =
      std::find_if(further.begin(), further.end(), [&](const auto & input) { return input.name == name; });
    index = place != further.end() ? 1 + static_cast<DataObjectPointerArraySizeType>(place - further.begin()) : index;
    // A second time would leave the index to an input that is gone.
    if (!this->IsIndexedInputName(name))
    {
      this->AddOptionalInputName(name, index);
    }
    this->ProcessObject::SetInput(name, const_cast<DataObject *>(image));
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyDomain() const
{
  const TInputImage * const input = this->GetInput();
  for (const char * const name : { "MaskImage", "WeightImage" })
  {
    const auto * const image = dynamic_cast<const ImageBase<ImageDimension> *>(this->ProcessObject::GetInput(name));
    if (!image)
    {
      continue;
    }
    const double tolerance = this->GetCoordinateTolerance() * input->GetSpacing()[0];
    bool         isThere = true;
    for (unsigned int a = 0; a < ImageDimension; ++a)
    {
      isThere = isThere && std::abs(image->GetOrigin()[a] - input->GetOrigin()[a]) <= tolerance &&
                std::abs(image->GetSpacing()[a] - input->GetSpacing()[a]) <= tolerance;
      for (unsigned int b = 0; b < ImageDimension; ++b)
      {
        isThere = isThere &&
                  std::abs(image->GetDirection()(a, b) - input->GetDirection()(a, b)) <= this->GetDirectionTolerance();
      }
    }
    if (!isThere)
    {
      itkExceptionMacro(<< name << ": it lies elsewhere than the input, by origin, spacing or direction");
    }
    const auto & region = input->GetLargestPossibleRegion();
    if (region.GetNumberOfPixels() > 0 && !image->GetLargestPossibleRegion().IsInside(region))
    {
      itkExceptionMacro(<< name << ": its largest possible region begins at "
                        << image->GetLargestPossibleRegion().GetIndex() << " with size "
                        << image->GetLargestPossibleRegion().GetSize() << ", which does not hold that of the input at "
                        << region.GetIndex() << " with size " << region.GetSize());
    }
  }
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
chunkwise::PixelKind
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::GetInputKind(unsigned int i) const
{
  return i > 0 && this->GetDomainMask()      ? chunkwise::PixelKind::UInt8
         : i > 0 && this->GetDomainWeights() ? chunkwise::PixelKind::Float32
                                             : Superclass::GetInputKind(i);
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
chunkwise::FilterParameters
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.Set("BoundaryCondition", GetChunkwiseWord(m_BoundaryCondition));
  parameters.Set("Constant", chunkwise::PixelValue(m_Constant));
  parameters.Set("SpatialAxes", std::vector<std::int64_t>(m_SpatialAxes.begin(), m_SpatialAxes.end()));
  for (const char * const name : { "MaskImage", "WeightImage" })
  {
    const std::string row = this->GetFilterName();
    if (this->ProcessObject::GetInput(name))
    {
      // Subclasses of what has the setters may have none of it.
      const auto & further = chunkwise::GetFilter(row).furtherInputs;
      if (std::none_of(further.begin(), further.end(), [&](const auto & input) { return input.name == name; }))
      {
        itkExceptionMacro(<< name << ": " << row << " has no such input");
      }
    }
  }
  if (m_IgnoreNaN)
  {
    parameters.Set("IgnoreNaN", true);
  }
  if (m_OutputMask)
  {
    parameters.Set("OutputMask", true);
  }
  if (m_EmptyValue == m_EmptyValue)
  {
    parameters.Set("EmptyValue", chunkwise::PixelValue(m_EmptyValue));
  }
  return parameters;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "BoundaryCondition: " << m_BoundaryCondition << std::endl;
  os << indent << "Constant: " << m_Constant << std::endl;
  os << indent << "SpatialAxes:";
  for (const unsigned int axis : m_SpatialAxes)
  {
    os << ' ' << axis;
  }
  os << std::endl;
  os << indent << "IgnoreNaN: " << (m_IgnoreNaN ? "On" : "Off") << std::endl;
  os << indent << "OutputMask: " << (m_OutputMask ? "On" : "Off") << std::endl;
  os << indent << "EmptyValue: " << m_EmptyValue << std::endl;
}

} // namespace itk

#endif
