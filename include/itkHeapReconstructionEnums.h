/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkHeapReconstructionEnums_h
#define itkHeapReconstructionEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class HeapReconstructionEnums
 * \brief The enumerations of the filters of morphological reconstruction.
 * \ingroup Chunkwise
 */
class HeapReconstructionEnums
{
public:
  /** \class Method
   * \ingroup Chunkwise
   * How a CUDA device finds a reconstruction. The result is the same. */
  enum class Method : std::uint8_t
  {
    Auto,           ///< a forest where the image fits the device whole with one, or else a wavefront
    TileWavefront,  ///< tiles swept in fast memory, those first that the largest values can enter
    SpanningForest, ///< the basins of the mask, then edges of greatest capacity between them, in a few rounds wherever
                    ///< they lead; 64-bit pixels go by wavefront
    ParallelHeapCluster ///< heaps of raised pixels, each with separate tiles, that let the largest values flow first
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, HeapReconstructionEnums::Method value);
} // namespace itk

#endif
