/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseGridEnums_h
#define itkChunkwiseGridEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class ChunkwiseGridEnums
 * \brief The enumerations of ChunkwiseBinImageFilter and ChunkwisePadImageFilter.
 * \ingroup Chunkwise
 */
class ChunkwiseGridEnums
{
public:
  /** \class Method
   * \ingroup Chunkwise
   * How the pixels of a block become one. */
  enum class Method : std::uint8_t
  {
    Mean,
    Minimum,
    Maximum,
    Median, ///< the lower one of two
    Mode,   ///< the most frequent value, the lowest of several
    Sum,
    Gaussian ///< the mean with weights that reach beyond the block, 1 3 3 1 for a factor of 2
  };
  /** \class Outside
   * \ingroup Chunkwise
   * The pixels beyond the image. */
  enum class Outside : std::uint8_t
  {
    Constant, ///< have a value
    Nearest,  ///< have the value of the nearest pixel
    Reflect,  ///< reflection that repeats the first and the last pixel
    Mirror,   ///< reflection that does not repeat them
    Wrap      ///< the image again
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseGridEnums::Method value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseGridEnums::Outside value);
} // namespace itk

#endif
