/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedClosingImageFilter_hxx
#define itkRenormalizedClosingImageFilter_hxx

#include "itkRenormalizedClosingImageFilter.h"

#include "chunkwiseExtremumOperation.h"
#include "chunkwiseSequenceOperation.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedClosingImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto first = std::make_shared<chunkwise::ExtremumOperation>();
  first->radius = this->GetWindowRadius(imageExtent);
  first->boundary = this->GetWindowBoundary();
  first->minimum = false;
  auto second = std::make_shared<chunkwise::ExtremumOperation>(*first);
  second->minimum = true;
  auto operation = std::make_shared<chunkwise::SequenceOperation>();
  operation->stages = { first, second };
  return operation;
}

} // namespace itk

#endif
