/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseResampleEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, ChunkwiseResampleEnums::Interpolation value)
{
  switch (value)
  {
    case ChunkwiseResampleEnums::Interpolation::Nearest:
      return os << "itk::ChunkwiseResampleEnums::Interpolation::Nearest";
    case ChunkwiseResampleEnums::Interpolation::Linear:
      return os << "itk::ChunkwiseResampleEnums::Interpolation::Linear";
    case ChunkwiseResampleEnums::Interpolation::Cubic:
      return os << "itk::ChunkwiseResampleEnums::Interpolation::Cubic";
    case ChunkwiseResampleEnums::Interpolation::Lanczos:
      return os << "itk::ChunkwiseResampleEnums::Interpolation::Lanczos";
    case ChunkwiseResampleEnums::Interpolation::Label:
      return os << "itk::ChunkwiseResampleEnums::Interpolation::Label";
  }
  return os << "INVALID VALUE FOR itk::ChunkwiseResampleEnums::Interpolation";
}

} // namespace itk
