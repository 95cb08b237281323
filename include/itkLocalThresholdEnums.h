/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkLocalThresholdEnums_h
#define itkLocalThresholdEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class LocalThresholdEnums
 * \brief The enumerations of LocalThresholdImageFilter.
 * \ingroup Chunkwise
 */
class LocalThresholdEnums
{
public:
  /** \class Method
   * \ingroup Chunkwise
   * How the threshold follows from the window. */
  enum class Method : std::uint8_t
  {
    Mean,
    Median,
    Gaussian,
    Niblack,
    Sauvola,
    Phansalkar,
    Bernsen
  };

  /** \class Result
   * \ingroup Chunkwise
   * The values of the output's pixels. */
  enum class Result : std::uint8_t
  {
    Class,    ///< 1 above the threshold, 0 elsewhere
    Threshold ///< the threshold of each pixel
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, LocalThresholdEnums::Method value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, LocalThresholdEnums::Result value);
} // namespace itk

#endif
