/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseWindowImageFilter_hxx
#define itkChunkwiseWindowImageFilter_hxx

#include "itkChunkwiseWindowImageFilter.h"

#include <algorithm>
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
chunkwise::FilterParameters
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::MakeParameters() const
{
  chunkwise::FilterParameters parameters = Superclass::MakeParameters();
  parameters.Set("BoundaryCondition", GetChunkwiseWord(m_BoundaryCondition));
  parameters.Set("Constant", chunkwise::PixelValue(m_Constant));
  parameters.Set("SpatialAxes", std::vector<std::int64_t>(m_SpatialAxes.begin(), m_SpatialAxes.end()));
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
}

} // namespace itk

#endif
