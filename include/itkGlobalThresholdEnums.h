/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkGlobalThresholdEnums_h
#define itkGlobalThresholdEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class GlobalThresholdEnums
 * \brief The enumerations of GlobalThresholdImageFilter.
 * \ingroup Chunkwise
 */
class GlobalThresholdEnums
{
public:
  /** \class Method
   * \ingroup Chunkwise
   * How thresholds follow from the histogram. */
  enum class Method : std::uint8_t
  {
    Otsu,
    Li,
    Yen,
    Triangle,
    IsoData,
    Moments,
    Huang,
    MaximumEntropy,
    RenyiEntropy,
    Kittler,
    Shanbhag,
    MultiOtsu,
    Fixed ///< they do not: Lower and Upper are a range of values
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, GlobalThresholdEnums::Method value);
} // namespace itk

#endif
