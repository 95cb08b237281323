/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedHighPassImageFilter_hxx
#define itkRenormalizedHighPassImageFilter_hxx

#include "chunkwiseHighPassOperation.h"
#include "itkRenormalizedHighPassImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedHighPassImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  auto operation = std::make_shared<chunkwise::HighPassOperation>();
  operation->smoothing =
    std::dynamic_pointer_cast<const chunkwise::SeparableOperation>(Superclass::MakeOperation(imageExtent));
  return operation;
}

} // namespace itk

#endif
