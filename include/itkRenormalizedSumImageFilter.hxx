/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedSumImageFilter_hxx
#define itkRenormalizedSumImageFilter_hxx

#include "itkRenormalizedSumImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedSumImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::MeanOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->sums = true;
  operation->boundary = this->GetWindowBoundary();
  return operation;
}

} // namespace itk

#endif
