/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkHeapReconstructionEnums.h"

namespace itk
{

std::ostream &
operator<<(std::ostream & os, HeapReconstructionEnums::Method value)
{
  switch (value)
  {
    case HeapReconstructionEnums::Method::Auto:
      return os << "itk::HeapReconstructionEnums::Method::Auto";
    case HeapReconstructionEnums::Method::TileWavefront:
      return os << "itk::HeapReconstructionEnums::Method::TileWavefront";
    case HeapReconstructionEnums::Method::SpanningForest:
      return os << "itk::HeapReconstructionEnums::Method::SpanningForest";
    case HeapReconstructionEnums::Method::ParallelHeapCluster:
      return os << "itk::HeapReconstructionEnums::Method::ParallelHeapCluster";
  }
  return os << "INVALID VALUE FOR itk::HeapReconstructionEnums::Method";
}

} // namespace itk
