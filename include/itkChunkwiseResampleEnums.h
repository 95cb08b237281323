/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseResampleEnums_h
#define itkChunkwiseResampleEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class ChunkwiseResampleEnums
 * \brief The enumerations of ChunkwiseResampleImageFilter.
 * \ingroup Chunkwise
 */
class ChunkwiseResampleEnums
{
public:
  /** \class Interpolation
   * \ingroup Chunkwise
   * How a point between pixels gets a value. */
  enum class Interpolation : std::uint8_t
  {
    Nearest, ///< the value of the nearest pixel
    Linear,
    Cubic,   ///< cubic B-splines that go through the pixels' values
    Lanczos, ///< the sinc windowed by its lobe of three times the width
    Label    ///< the value that has most of the linear weights
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseResampleEnums::Interpolation value);
} // namespace itk

#endif
