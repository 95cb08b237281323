/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedWienerImageFilter_hxx
#define itkRenormalizedWienerImageFilter_hxx

#include "itkRenormalizedWienerImageFilter.h"

#include "chunkwiseWienerOperation.h"

#include <cmath>

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::WienerOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  operation->noise = m_NoiseVariance;
  return operation;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (!(m_NoiseVariance >= 0.0 && std::isfinite(m_NoiseVariance)))
  {
    itkExceptionMacro("NoiseVariance: " << m_NoiseVariance << " is not a variance, or it was not set");
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedWienerImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "NoiseVariance: " << m_NoiseVariance << std::endl;
}

} // namespace itk

#endif
