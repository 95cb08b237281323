/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedRangeImageFilter_hxx
#define itkRenormalizedRangeImageFilter_hxx

#include "itkRenormalizedRangeImageFilter.h"

#include "chunkwiseRangeOperation.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedRangeImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::RangeOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  return operation;
}

} // namespace itk

#endif
