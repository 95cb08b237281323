/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseWindowImageFilter_hxx
#define itkChunkwiseWindowImageFilter_hxx

#include "itkChunkwiseWindowImageFilter.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

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
chunkwise::WindowBoundary
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::GetWindowBoundary() const
{
  chunkwise::WindowBoundary boundary;
  switch (m_BoundaryCondition)
  {
    case BoundaryConditionEnum::Renormalized:
      boundary.mode = chunkwise::BoundaryMode::Renormalized;
      break;
    case BoundaryConditionEnum::ZeroFluxNeumann:
      boundary.mode = chunkwise::BoundaryMode::ZeroFluxNeumann;
      break;
    case BoundaryConditionEnum::Constant:
      boundary.mode = chunkwise::BoundaryMode::Constant;
      boundary.constant = m_Constant;
      break;
    case BoundaryConditionEnum::Mirror:
      boundary.mode = chunkwise::BoundaryMode::Mirror;
      break;
    case BoundaryConditionEnum::Periodic:
      boundary.mode = chunkwise::BoundaryMode::Periodic;
      break;
  }
  return boundary;
}

template <typename TInputImage, typename TOutputImage, typename TSuperclass>
void
ChunkwiseWindowImageFilter<TInputImage, TOutputImage, TSuperclass>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (m_SpatialAxes.empty() || m_SpatialAxes.size() > static_cast<std::size_t>(chunkwise::MaxSpatialAxes))
  {
    itkExceptionMacro("SpatialAxes: " << m_SpatialAxes.size() << " axes; one to " << chunkwise::MaxSpatialAxes
                                      << " can be spatial");
  }
  std::set<unsigned int> seen;
  for (const unsigned int axis : m_SpatialAxes)
  {
    if (axis >= ImageDimension)
    {
      itkExceptionMacro("SpatialAxes: " << axis << " is not an axis of a " << ImageDimension << "-D image");
    }
    if (!seen.insert(axis).second)
    {
      itkExceptionMacro("SpatialAxes: " << axis << " is given twice");
    }
  }

  using InputPixelType = typename Superclass::InputPixelType;
  if (m_BoundaryCondition == BoundaryConditionEnum::Constant && std::is_integral<InputPixelType>::value)
  {
    // The limits as powers of two, which double represents exactly for every integer type.
    const double upper = std::ldexp(1.0, std::numeric_limits<InputPixelType>::digits);
    const double lower = std::is_signed<InputPixelType>::value ? -upper : 0.0;
    if (!(m_Constant >= lower && m_Constant < upper && std::floor(m_Constant) == m_Constant))
    {
      itkExceptionMacro("Constant: " << m_Constant << " is not a value of the input's pixel type, "
                                     << chunkwise::PixelKindName(chunkwise::PixelKindOf<InputPixelType>()));
    }
  }
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
