/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMeanImageFilter_hxx
#define itkRenormalizedMeanImageFilter_hxx

#include "itkRenormalizedMeanImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedMeanImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::MeanOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  return operation;
}

} // namespace itk

#endif
