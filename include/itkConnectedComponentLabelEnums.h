/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkConnectedComponentLabelEnums_h
#define itkConnectedComponentLabelEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class ConnectedComponentLabelEnums
 * \brief The enumerations of ConnectedComponentLabelImageFilter.
 * \ingroup Chunkwise
 */
class ConnectedComponentLabelEnums
{
public:
  /** \class Rule
   * \ingroup Chunkwise
   * Which neighbors are of one component. */
  enum class Rule : std::uint8_t
  {
    Foreground, ///< all that are no background
    Equal,      ///< those of equal values
    Within      ///< those whose values differ by the tolerance at most
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ConnectedComponentLabelEnums::Rule value);
} // namespace itk

#endif
