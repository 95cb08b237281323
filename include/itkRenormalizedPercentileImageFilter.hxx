/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedPercentileImageFilter_hxx
#define itkRenormalizedPercentileImageFilter_hxx

#include "itkRenormalizedPercentileImageFilter.h"

#include "chunkwiseRankOperation.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedPercentileImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::RankOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  operation->fraction = m_Percentile / 100.0;
  return operation;
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedPercentileImageFilter<TInputImage, TOutputImage>::VerifyPreconditions() const
{
  Superclass::VerifyPreconditions();

  if (!(m_Percentile >= 0.0 && m_Percentile <= 100.0))
  {
    itkExceptionMacro("Percentile: " << m_Percentile << " is not from 0 to 100");
  }
}

template <typename TInputImage, typename TOutputImage>
void
RenormalizedPercentileImageFilter<TInputImage, TOutputImage>::PrintSelf(std::ostream & os, Indent indent) const
{
  Superclass::PrintSelf(os, indent);
  os << indent << "Percentile: " << m_Percentile << std::endl;
}

} // namespace itk

#endif
