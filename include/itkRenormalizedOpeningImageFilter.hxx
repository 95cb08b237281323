/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedOpeningImageFilter_hxx
#define itkRenormalizedOpeningImageFilter_hxx

#include "itkRenormalizedOpeningImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedOpeningImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  return this->MakeSequence(imageExtent, true);
}

} // namespace itk

#endif
