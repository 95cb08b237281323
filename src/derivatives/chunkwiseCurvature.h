/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCurvature_h
#define chunkwiseCurvature_h

#include "chunkwiseHessianMeasure.h"

// Curvatures of isosurfaces: of doubles, or of vectors of them. No operation is contracted, so all give the same bits.
namespace chunkwise
{

enum class CurvatureKind
{
  LevelSet, ///< the divergence of the unit gradient: the sum of the principal curvatures
  Mean,     ///< their mean
  Gaussian, ///< their product
  Smallest, ///< the lower one
  Largest   ///< the higher one
};

struct CurvatureParameters
{
  CurvatureKind kind{ CurvatureKind::LevelSet };
  /** Curvatures are 0 where the gradient is not longer. */
  double leastGradient{ 0 };
};

/** A curvature of the isosurface, or in two dimensions the isocontour, through a voxel; `d` has the gradient g and the
 * upper triangle of the Hessian H, row by row. In two dimensions there is one principal curvature: LevelSet and Mean.
 *
 * With n = g / |g|, the sum of the principal curvatures is div n = (tr H - n H n) / |g|, their product n adj(H) n /
 * |g|^2 (R. Goldman, "Curvature formulas for implicit curves and surfaces", Computer Aided Geometric Design 22(7),
 * 2005). div n is positive where the voxels on the concave side are the darker ones, as around a dark ball. */
template <typename TVector, typename TRoot>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
CurvatureOf(const TVector * d, int dimension, const CurvatureParameters & p, TRoot && root)
{
  const TVector         zero{};
  const bool            isSurface = dimension == 3;
  const TVector * const h = d + dimension;
  const TVector         xx = h[0];
  const TVector         xy = h[1];
  const TVector         yy = isSurface ? h[3] : h[2];
  const TVector         xz = isSurface ? h[2] : zero;
  const TVector         yz = isSurface ? h[4] : zero;
  const TVector         zz = isSurface ? h[5] : zero;
  const TVector         gz = isSurface ? d[2] : zero;
  const TVector         square = (d[0] * d[0] + d[1] * d[1]) + gz * gz;
  const TVector         inverse = 1.0 / root(square);
  const TVector         x = d[0] * inverse;
  const TVector         y = d[1] * inverse;
  const TVector         z = gz * inverse;
  const TVector         straight = ((y * y + z * z) * xx + (x * x + z * z) * yy) + (x * x + y * y) * zz;
  const TVector         mixed = (x * y * xy + x * z * xz) + y * z * yz;
  const TVector         sum = (straight - (mixed + mixed)) * inverse;
  TVector               value = p.kind == CurvatureKind::LevelSet ? sum : sum * (1.0 / (dimension - 1));
  if (p.kind != CurvatureKind::LevelSet && p.kind != CurvatureKind::Mean)
  {
    const TVector own = (x * x * (yy * zz - yz * yz) + y * y * (xx * zz - xz * xz)) + z * z * (xx * yy - xy * xy);
    const TVector beside = (x * y * (xz * yz - xy * zz) + x * z * (xy * yz - xz * yy)) + y * z * (xy * xz - yz * xx);
    const TVector product = (own + (beside + beside)) * inverse * inverse;
    const TVector apart = root(PositivePartOf(value * value - product));
    value = p.kind == CurvatureKind::Gaussian   ? product
            : p.kind == CurvatureKind::Smallest ? value - apart
                                                : value + apart;
  }
  // Not a number stays one where the gradient does not see it.
  const TVector none = zero + (((xx + xy) + (xz + yy)) + (yz + zz)) * 0.0;
  return square <= zero + p.leastGradient * p.leastGradient ? none : value;
}

} // namespace chunkwise

#endif
