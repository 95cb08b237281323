/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseConvolutionEnums_h
#define itkChunkwiseConvolutionEnums_h

#include "ChunkwiseExport.h"
#include "chunkwiseTransformProvider.h"

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

  /** \class TransformProvider
   * \ingroup Chunkwise
   * Whose transforms a convolution takes. */
  enum class TransformProvider : std::uint8_t
  {
    Auto,  ///< own; on a device cuFFT, where it is there, for kernels of more than 512 voxels along an axis
    Own,   ///< the library's own
    CuFFT, ///< those of NVIDIA's libcufft, on CUDA devices
    FFTW   ///< those of FFTW, on the CPU, by the module ChunkwiseFftw
  };

  /** \class Order
   * \ingroup Chunkwise
   * The order of convolving and weighting where kernels vary over the image. */
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

/** The engine's name of the same. */
inline chunkwise::TransformProvider
ChunkwiseTransformProvider(ChunkwiseConvolutionEnums::TransformProvider value)
{
  return value == ChunkwiseConvolutionEnums::TransformProvider::Own     ? chunkwise::TransformProvider::Own
         : value == ChunkwiseConvolutionEnums::TransformProvider::CuFFT ? chunkwise::TransformProvider::CuFFT
         : value == ChunkwiseConvolutionEnums::TransformProvider::FFTW  ? chunkwise::TransformProvider::FFTW
                                                                        : chunkwise::TransformProvider::Auto;
}

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseConvolutionEnums::Method value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseConvolutionEnums::TransformProvider value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseConvolutionEnums::Order value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseConvolutionEnums::OutputRegion value);
} // namespace itk

#endif
