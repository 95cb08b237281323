/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedOpeningImageFilter_hxx
#define itkRenormalizedOpeningImageFilter_hxx

#include "itkRenormalizedOpeningImageFilter.h"

#include "chunkwiseExtremumOperation.h"
#include "chunkwiseSequenceOperation.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedOpeningImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto first = std::make_shared<chunkwise::ExtremumOperation>();
  first->radius = this->GetWindowRadius(imageExtent);
  first->boundary = this->GetWindowBoundary();
  first->minimum = true;
  auto second = std::make_shared<chunkwise::ExtremumOperation>(*first);
  second->minimum = false;
  auto operation = std::make_shared<chunkwise::SequenceOperation>();
  operation->stages = { first, second };
  return operation;
}

} // namespace itk

#endif
