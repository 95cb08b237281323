/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkEuclideanDistanceEnums_h
#define itkEuclideanDistanceEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class EuclideanDistanceEnums
 * \ingroup Chunkwise
 */
class EuclideanDistanceEnums
{
public:
  /** \ingroup Chunkwise */
  enum class Features : std::uint8_t
  {
    Background, ///< voxels of the background's value
    Objects,    ///< all others
    Contour,    ///< objects that share a face, an edge or a corner with the background; distances have a sign
    Others      ///< voxels of another value than the voxel's own
  };
  /** \ingroup Chunkwise */
  enum class Morphology : std::uint8_t
  {
    Dilation,
    Erosion,
    Opening,
    Closing
  };
};

/** The word of the program. */
extern Chunkwise_EXPORT const char *
ToWord(EuclideanDistanceEnums::Features value);
extern Chunkwise_EXPORT const char *
                        ToWord(EuclideanDistanceEnums::Morphology value);
extern Chunkwise_EXPORT std::ostream &
                        operator<<(std::ostream & out, EuclideanDistanceEnums::Features value);
extern Chunkwise_EXPORT std::ostream &
                        operator<<(std::ostream & out, EuclideanDistanceEnums::Morphology value);
} // namespace itk

#endif
