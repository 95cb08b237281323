/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseConvolutionEnums_h
#define itkChunkwiseConvolutionEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class ChunkwiseConvolutionEnums
 * \brief The enumerations of the convolution filters.
 * \ingroup Chunkwise
 */
class ChunkwiseConvolutionEnums
{
public:
  /** \class Method
   * \ingroup Chunkwise
   * How a convolution is computed. */
  enum class Method : std::uint8_t
  {
    Auto, ///< Direct for small kernels, else FFT
    FFT,
    Direct
  };

  /** \class Order
   * \ingroup Chunkwise
   * What comes first where kernels vary over the image. */
  enum class Order : std::uint8_t
  {
    ConvolveThenWeight, ///< a filter that varies
    WeightThenConvolve  ///< a point-spread function that varies
  };

  /** \class OutputRegion
   * \ingroup Chunkwise
   * The largest possible region of a convolution's output. */
  enum class OutputRegion : std::uint8_t
  {
    SAME, ///< that of the input
    VALID ///< where the kernel is inside the input
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseConvolutionEnums::Method value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseConvolutionEnums::Order value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseConvolutionEnums::OutputRegion value);
} // namespace itk

#endif
