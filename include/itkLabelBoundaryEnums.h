/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkLabelBoundaryEnums_h
#define itkLabelBoundaryEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class LabelBoundaryEnums
 * \brief The enumerations of LabelBoundaryImageFilter.
 * \ingroup Chunkwise
 */
class LabelBoundaryEnums
{
public:
  /** \class Mode
   * \ingroup Chunkwise
   * Which side of a boundary is marked. */
  enum class Mode : std::uint8_t
  {
    Thick, ///< both
    Inner, ///< that of the object
    Outer  ///< that of the background, and both where objects touch
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, LabelBoundaryEnums::Mode value);
} // namespace itk

#endif
