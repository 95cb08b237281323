/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedStandardDeviationImageFilter_hxx
#define itkRenormalizedStandardDeviationImageFilter_hxx

#include "chunkwiseVarianceOperation.h"
#include "itkRenormalizedStandardDeviationImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedStandardDeviationImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::VarianceOperation>();
  operation->radius = this->GetWindowRadius(imageExtent);
  operation->boundary = this->GetWindowBoundary();
  operation->takesRoot = true;
  return operation;
}

} // namespace itk

#endif
