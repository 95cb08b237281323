/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkBoxStatisticEnums_h
#define itkBoxStatisticEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class BoxStatisticEnums
 * \brief The enumerations of BoxStatisticImageFilter.
 * \ingroup Chunkwise
 */
class BoxStatisticEnums
{
public:
  /** \class Statistic
   * \ingroup Chunkwise
   * The statistic of the voxels in a box. */
  enum class Statistic : std::uint8_t
  {
    Sum,
    Mean,
    Variance,         ///< the mean square deviation from the mean
    StandardDeviation ///< its square root
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, BoxStatisticEnums::Statistic value);
} // namespace itk

#endif
