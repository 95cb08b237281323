/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkRenormalizedDerivativeEnums_h
#define itkRenormalizedDerivativeEnums_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <ostream>

namespace itk
{
/** \class RenormalizedDerivativeEnums
 * \brief The enumerations of filters of derivatives.
 * \ingroup Chunkwise
 */
class RenormalizedDerivativeEnums
{
public:
  /** \class Operator
   * \ingroup Chunkwise
   * The window that smooths, and of which derivatives are taken. */
  enum class Operator : std::uint8_t
  {
    Gaussian,
    Sobel,   ///< 1, 2, 1
    Prewitt, ///< 1, 1, 1
    Scharr,  ///< 3, 10, 3
    Central  ///< no smoothing
  };

  /** \class Kernel
   * \ingroup Chunkwise
   * The derivative's weights. */
  enum class Kernel : std::uint8_t
  {
    Exact,  ///< exact for polynomials of the derivative's order
    Sampled ///< the Gaussian's derivative at the voxels
  };

  /** \class Result
   * \ingroup Chunkwise
   * The result that is made of a Hessian. */
  enum class Result : std::uint8_t
  {
    Eigenvalues, ///< in ascending order
    ByMagnitude, ///< eigenvalues, in the order of their magnitudes
    Direction,   ///< the unit vector of the eigenvalue with the smallest magnitude
    Elements,    ///< the upper triangle, row by row
    Eigenvectors ///< the unit vectors of the ascending eigenvalues, one after the other
  };

  /** \class TensorResult
   * \ingroup Chunkwise
   * The result that is made of a structure tensor. */
  enum class TensorResult : std::uint8_t
  {
    Eigenvalues, ///< in ascending order
    Orientation, ///< the unit vector of the smallest eigenvalue, along which the image changes least
    Coherence,   ///< from 0 to 1
    Cornerness,  ///< the measure of Harris and Stephens
    Elements,    ///< the upper triangle, row by row
    Eigenvectors ///< the unit vectors of the ascending eigenvalues, one after the other
  };

  /** \class CurvatureResult
   * \ingroup Chunkwise
   * The curvature of an isosurface. */
  enum class CurvatureResult : std::uint8_t
  {
    LevelSet, ///< the divergence of the unit gradient: the sum of the principal curvatures
    Mean,     ///< their mean
    Gaussian, ///< their product
    Smallest, ///< the lower one
    Largest   ///< the higher one
  };

  /** \class Measure
   * \ingroup Chunkwise
   * The measure of a Hessian's eigenvalues. */
  enum class Measure : std::uint8_t
  {
    Frangi,
    Blobness,
    Sheetness,
    Sato,
    Meijering,
    Jerman
  };
};

/** The word of the program. */
Chunkwise_EXPORT const char *
ToWord(RenormalizedDerivativeEnums::Operator value);
Chunkwise_EXPORT const char *
ToWord(RenormalizedDerivativeEnums::Kernel value);
Chunkwise_EXPORT const char *
ToWord(RenormalizedDerivativeEnums::Result value);
Chunkwise_EXPORT const char *
ToWord(RenormalizedDerivativeEnums::TensorResult value);
Chunkwise_EXPORT const char *
ToWord(RenormalizedDerivativeEnums::CurvatureResult value);
Chunkwise_EXPORT const char *
                 ToWord(RenormalizedDerivativeEnums::Measure value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, RenormalizedDerivativeEnums::Operator value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, RenormalizedDerivativeEnums::Kernel value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, RenormalizedDerivativeEnums::Result value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, RenormalizedDerivativeEnums::TensorResult value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, RenormalizedDerivativeEnums::CurvatureResult value);
Chunkwise_EXPORT std::ostream &
                 operator<<(std::ostream & os, RenormalizedDerivativeEnums::Measure value);
} // namespace itk

#endif
