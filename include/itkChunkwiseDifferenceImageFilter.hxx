/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseDifferenceImageFilter_hxx
#define itkChunkwiseDifferenceImageFilter_hxx

#include "chunkwiseDifferenceOperation.h"
#include "itkChunkwiseDifferenceImageFilter.h"

namespace itk
{

template <typename TInputImage, typename TOutputImage>
std::shared_ptr<const chunkwise::Operation>
ChunkwiseDifferenceImageFilter<TInputImage, TOutputImage>::MakeOperation(const chunkwise::Coordinates &) const
{
  return std::make_shared<chunkwise::DifferenceOperation>();
}

} // namespace itk

#endif
