/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseEnums_h
#define itkChunkwiseEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class ChunkwiseEnums
 * \brief The enumerations of the Chunkwise filters.
 * \ingroup Chunkwise
 */
class ChunkwiseEnums
{
public:
  /** \class Backend
   * \ingroup Chunkwise
   * The processors on which a filter computes. */
  enum class Backend : std::uint8_t
  {
    Auto, ///< the CUDA devices if there are any; the CPU else, or when they fail
    CPU,
    CUDA ///< the CUDA devices; an exception if there is none or they fail
  };

  /** \class BoundaryCondition
   * \ingroup Chunkwise
   * The values that a window reads beyond the edge of the largest possible region. */
  enum class BoundaryCondition : std::uint8_t
  {
    Renormalized,    ///< nothing: the statistic is that of the part of the window inside the image
    ZeroFluxNeumann, ///< the nearest edge voxel
    Constant,        ///< the value that SetConstant gave
    Mirror,          ///< the image mirrored at its edge, the edge voxel repeated
    Periodic,        ///< the opposite side of the image
    MirrorCenter     ///< the image mirrored at the center of its edge voxel, which is not repeated
  };

  /** \class GaussianKernel
   * \ingroup Chunkwise
   * The weights of a Gaussian filter. */
  enum class GaussianKernel : std::uint8_t
  {
    Sampled, ///< the Gaussian function at the voxel centers
    Discrete ///< itk::GaussianOperator: the discrete analog of the Gaussian, from Bessel functions
  };
};

Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseEnums::Backend value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseEnums::BoundaryCondition value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, ChunkwiseEnums::GaussianKernel value);

/** The word for a boundary condition in the engine's table of filters. */
Chunkwise_EXPORT const char *
GetChunkwiseWord(ChunkwiseEnums::BoundaryCondition value);
} // namespace itk

#endif
