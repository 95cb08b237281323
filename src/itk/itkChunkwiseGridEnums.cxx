/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseGridEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, ChunkwiseGridEnums::Method value)
{
  static const char * const names[] = { "Mean", "Minimum", "Maximum", "Median", "Mode", "Sum", "Gaussian" };
  const auto                i = static_cast<std::size_t>(value);
  return i < 7 ? os << "itk::ChunkwiseGridEnums::Method::" << names[i]
               : os << "INVALID VALUE FOR itk::ChunkwiseGridEnums::Method";
}

std::ostream &
operator<<(std::ostream & os, ChunkwiseGridEnums::Outside value)
{
  static const char * const names[] = { "Constant", "Nearest", "Reflect", "Mirror", "Wrap" };
  const auto                i = static_cast<std::size_t>(value);
  return i < 5 ? os << "itk::ChunkwiseGridEnums::Outside::" << names[i]
               : os << "INVALID VALUE FOR itk::ChunkwiseGridEnums::Outside";
}

} // namespace itk
