/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseIdentityImageFilter_hxx
#define itkChunkwiseIdentityImageFilter_hxx

#include "chunkwiseOperations.h"
#include "itkChunkwiseIdentityImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
ChunkwiseIdentityImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates &) const
{
  return std::make_shared<chunkwise::IdentityOperation>();
}

} // namespace itk

#endif
