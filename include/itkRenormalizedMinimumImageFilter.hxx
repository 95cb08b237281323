/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMinimumImageFilter_hxx
#define itkRenormalizedMinimumImageFilter_hxx

#include "itkRenormalizedMinimumImageFilter.h"

#include "chunkwiseExtremumOperation.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedMinimumImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::ExtremumOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  operation->minimum = true;
  return operation;
}

} // namespace itk

#endif
