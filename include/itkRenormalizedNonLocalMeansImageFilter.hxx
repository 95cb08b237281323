/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedNonLocalMeansImageFilter_hxx
#define itkRenormalizedNonLocalMeansImageFilter_hxx

#include "itkRenormalizedNonLocalMeansImageFilter.h"

#include "chunkwiseNonLocalMeansOperation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::RenormalizedNonLocalMeansImageFilter()
{
  m_PatchRadius.Fill(1);
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::SetPatchRadius(const RadiusValueType & radius)
{
  RadiusType same;
  same.Fill(radius);
  this->SetPatchRadius(same);
}

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::NonLocalMeansOperation>();
  operation->search = this->GetWindowRadius(imageExtent);
  for (const unsigned int axis : this->GetSpatialAxes())
  {
    // The operation refuses what is too large.
    operation->patch[static_cast<int>(axis)] = static_cast<std::int64_t>(
      std::min<RadiusValueType>(m_PatchRadius[axis], std::numeric_limits<std::int32_t>::max()));
  }
  operation->boundary = this->GetWindowBoundary();
  operation->strength = m_Strength;
  operation->noise = m_NoiseVariance;
  return operation;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (!(m_Strength > 0.0 && std::isfinite(m_Strength)))
  {
    itkExceptionMacro("Strength: " << m_Strength << " is not greater than 0, or it was not set");
  }
  if (!(m_NoiseVariance >= 0.0 && std::isfinite(m_NoiseVariance)))
  {
    itkExceptionMacro("NoiseVariance: " << m_NoiseVariance << " is not a variance");
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedNonLocalMeansImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "PatchRadius: " << m_PatchRadius << std::endl;
  os << indent << "Strength: " << m_Strength << std::endl;
  os << indent << "NoiseVariance: " << m_NoiseVariance << std::endl;
}

} // namespace itk

#endif
