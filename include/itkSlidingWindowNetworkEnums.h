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
   * What of a network's channels an output voxel has. */
  enum class OutputMode : std::uint8_t
  {
    Channel,  ///< the value of one channel
    ArgMax,   ///< the number of the largest channel, the first of equal ones
    Threshold ///< 1 where one channel is larger than a threshold, else 0
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, SlidingWindowNetworkEnums::OutputMode value);
} // namespace itk

#endif
