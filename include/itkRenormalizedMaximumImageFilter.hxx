/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedMaximumImageFilter_hxx
#define itkRenormalizedMaximumImageFilter_hxx

#include "itkRenormalizedMaximumImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
RenormalizedMaximumImageFilter<TInputImage, TOutputImage>::MakeOperation(
  const chunkwise::Coordinates & imageExtent) const
{
  return this->MakeExtremum(imageExtent, false);
}

} // namespace itk

#endif
