/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedClosingImageFilter_hxx
#define itkRenormalizedClosingImageFilter_hxx

#include "itkRenormalizedClosingImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedClosingImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  return this->MakeSequence(imageExtent, false);
}

} // namespace itk

#endif
