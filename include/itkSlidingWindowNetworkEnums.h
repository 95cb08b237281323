/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSlidingWindowNetworkEnums_h
#define itkSlidingWindowNetworkEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class SlidingWindowNetworkEnums
 * \brief The enumerations of the network filter.
 * \ingroup Chunkwise
 */
class SlidingWindowNetworkEnums
{
public:
  /** \class OutputMode
   * \ingroup Chunkwise
   * The result of a network at an output voxel. */
  enum class OutputMode : std::uint8_t
  {
    Channel,  ///< the value of one channel
    ArgMax,   ///< the number of the largest channel, the first of equal ones
    Threshold ///< 1 where one channel is larger than a threshold, else 0
  };

  /** \class Precision
   * \ingroup Chunkwise
   * The arithmetic that the network may use. */
  enum class Precision : std::uint8_t
  {
    Float32,       ///< convolutions may go through transforms: errors are some 1e-6 of the largest value
    Reproducible,  ///< the same bits for any chunks and devices
    TensorFloat32, ///< as Float32, on tensor cores with factors of 11 bits: errors are up to some 5e-3
    Half           ///< as TensorFloat32, with transforms kept in half precision: errors are up to some 1e-2
  };

  /** \class InferenceMode
   * \ingroup Chunkwise
   * The part of the image that the network is given at a time. */
  enum class InferenceMode : std::uint8_t
  {
    Dense,  ///< the whole image: no seams
    Patches ///< windows of one extent that overlap
  };

  /** \class PatchWeighting
   * \ingroup Chunkwise
   * How windows are weighed where they overlap. */
  enum class PatchWeighting : std::uint8_t
  {
    Constant, ///< all alike
    Gaussian  ///< by a Gaussian around each window's centre
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, SlidingWindowNetworkEnums::InferenceMode value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, SlidingWindowNetworkEnums::PatchWeighting value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, SlidingWindowNetworkEnums::OutputMode value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, SlidingWindowNetworkEnums::Precision value);
} // namespace itk

#endif
