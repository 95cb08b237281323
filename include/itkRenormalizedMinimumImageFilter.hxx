/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMinimumImageFilter_hxx
#define itkRenormalizedMinimumImageFilter_hxx

#include "itkRenormalizedMinimumImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedMinimumImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  return this->MakeExtremum(imageExtent, true);
}

} // namespace itk

#endif
