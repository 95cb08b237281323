/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkSummedAreaTableEnums_h
#define itkSummedAreaTableEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class SummedAreaTableEnums
 * \brief The enumerations of SummedAreaTableImageFilter.
 * \ingroup Chunkwise
 */
class SummedAreaTableEnums
{
public:
  /** \class Method
   * \ingroup Chunkwise
   * How a CUDA device makes a table. The result is the same. */
  enum class Method : std::uint8_t
  {
    SinglePass, ///< each voxel is read and written once; tiles wait for each other's sums
    Blocks      ///< sums of blocks, scans of those, scans within blocks: voxels are read twice, nothing waits
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, SummedAreaTableEnums::Method value);
} // namespace itk

#endif
