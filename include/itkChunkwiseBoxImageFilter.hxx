/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseBoxImageFilter_hxx
#define itkChunkwiseBoxImageFilter_hxx

#include "itkChunkwiseBoxImageFilter.h"

#include <algorithm>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::ChunkwiseBoxImageFilter()
{
  m_Radius.Fill(1);
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::SetRadius(const RadiusType & radius)
{
  if (m_Radius != radius)
  {
    m_Radius = radius;
    this->Modified();
  }
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::SetRadius(const RadiusValueType & radius)
{
  RadiusType same;
  same.Fill(radius);
  this->SetRadius(same);
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  // A renormalized window is cut to the image, so that only a negative number given as an unsigned one is too large.
  // Else three windows of 2^21 voxels must still be counted in 64 bits.
  const RadiusValueType largest =
    (this->GetBoundaryCondition() == Superclass::BoundaryConditionEnum::Renormalized ? RadiusValueType{ 1 } << 61
                                                                                     : RadiusValueType{ 1 } << 20) -
    1;
  for (const unsigned int axis : this->GetSpatialAxes())
  {
    if (m_Radius[axis] > largest)
    {
      itkExceptionMacro("Radius: " << m_Radius[axis] << " along axis " << axis << " is larger than " << largest);
    }
  }
}

template <typename TInputImage, typename TOutputImage>
chunkwise::Coordinates
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::GetWindowRadius(const chunkwise::Coordinates & imageExtent) const
{
  auto radius = chunkwise::Coordinates::Filled(0);
  for (const unsigned int axis : this->GetSpatialAxes())
  {
    const auto         a = static_cast<int>(axis);
    const std::int64_t extent = imageExtent[a];
    // A renormalized window that covers the image grows no more: the cut keeps every radius a valid 64-bit number.
    radius[a] =
      this->GetBoundaryCondition() == Superclass::BoundaryConditionEnum::Renormalized && extent > 0
        ? static_cast<std::int64_t>(std::min<RadiusValueType>(m_Radius[axis], static_cast<RadiusValueType>(extent - 1)))
        : static_cast<std::int64_t>(m_Radius[axis]);
  }
  return radius;
}

template <typename TInputImage, typename TOutputImage>
void
ChunkwiseBoxImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Radius: " << m_Radius << std::endl;
}

} // namespace itk

#endif
