/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseTensorMeasure_h
#define chunkwiseTensorMeasure_h

#include "chunkwiseHessianMeasure.h"

// Directions and measures of symmetric matrices of up to 3 x 3, structure tensors as a rule: of doubles, or of vectors
// of them. No operation is contracted, so all give the same bits.
namespace chunkwise
{

/** The result that is made of the derivatives of a voxel. */
enum class DerivativeResult
{
  Components,  ///< the derivatives themselves, one or several
  Magnitude,   ///< the root of the sum of their squares
  Eigenvalues, ///< of a symmetric matrix, of which the derivatives are the upper triangle, row by row: ascending
  ByMagnitude, ///< the same, by magnitude
  Measure,     ///< a measure of the eigenvalues; of several scales the largest
  Direction,   ///< the unit vector of the eigenvalue with the smallest magnitude
  Coherence,   ///< how much the eigenvalues differ
  Cornerness,  ///< the measure of C. Harris and M. Stephens
  Diffusivity, ///< the upper triangle of DiffusionTensorOf
  Sum,         ///< the sum of the derivatives: a divergence
  Curvature,   ///< CurvatureOf
  Eigenvectors ///< the unit vectors of the ascending eigenvalues, one after the other
};

struct TensorParameters
{
  /** Cornerness: determinant - harris * trace^n. */
  double harris{ 0.05 };
  /** Diffusivity: the least eigenvalue, and the squared differences of eigenvalues that raise it by exp(-1). */
  double alpha{ 0.001 };
  double coherence{ 1 };
};

/** Directions of smaller gaps between eigenvalues, in units of the largest magnitude, are noise: they are zeros. */
constexpr double SmallestEigenvalueGap = 1e-6;

/** The unit vector of eigenvalue `lambda`: `h` has the upper triangle, row by row, `gap` is how far the next eigenvalue
 * is, `largest` the largest magnitude. Its component of the largest magnitude is positive. Zeros where another
 * eigenvalue is equal, within SmallestEigenvalueGap.
 *
 * The rows of H - lambda are perpendicular to it. 2 x 2: to the longer one. 3 x 3: the longest cross product of two
 * rows. */
template <typename TVector, typename TRoot>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
EigenvectorOf(const TVector * h, TVector lambda, TVector gap, TVector largest, int dimension, TVector * direction,
              TRoot && root)
{
  const TVector zero{};
  if (dimension == 1)
  {
    direction[0] = zero + 1.0;
    return;
  }
  // In units of the largest magnitude, so that no square is too small or too large.
  const TVector unit = largest > 1e-150 ? 1.0 / largest : zero;
  TVector       v[3]{};
  if (dimension == 2)
  {
    const TVector a = (h[0] - lambda) * unit;
    const TVector b = h[1] * unit;
    const TVector c = (h[2] - lambda) * unit;
    const TVector first = a * a + b * b;
    const TVector second = b * b + c * c;
    v[0] = first < second ? c : -b;
    v[1] = first < second ? -b : a;
  }
  else
  {
    const TVector rows[3][3] = { { (h[0] - lambda) * unit, h[1] * unit, h[2] * unit },
                                 { h[1] * unit, (h[3] - lambda) * unit, h[4] * unit },
                                 { h[2] * unit, h[4] * unit, (h[5] - lambda) * unit } };
    TVector       longest = zero - 1.0;
    for (int i = 0; i < 3; ++i)
    {
      const TVector * const p = rows[i];
      const TVector * const q = rows[(i + 1) % 3];
      const TVector         x = p[1] * q[2] - p[2] * q[1];
      const TVector         y = p[2] * q[0] - p[0] * q[2];
      const TVector         z = p[0] * q[1] - p[1] * q[0];
      const TVector         square = (x * x + y * y) + z * z;
      v[0] = square > longest ? x : v[0];
      v[1] = square > longest ? y : v[1];
      v[2] = square > longest ? z : v[2];
      longest = square > longest ? square : longest;
    }
  }
  const TVector length = root((v[0] * v[0] + v[1] * v[1]) + v[2] * v[2]);
  TVector       sign = v[0];
  for (int i = 1; i < dimension; ++i)
  {
    sign = MagnitudeOf(v[i]) > MagnitudeOf(sign) ? v[i] : sign;
  }
  const TVector inverse = 1.0 / length;
  for (int i = 0; i < dimension; ++i)
  {
    const TVector component = sign < zero ? -v[i] * inverse : v[i] * inverse;
    direction[i] = gap * unit > SmallestEigenvalueGap ? component : zero;
  }
}

/** The unit vector of the eigenvalue with the smallest magnitude, of ascending eigenvalues: see EigenvectorOf. */
template <typename TVector, typename TRoot>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
DirectionOf(const TVector * h, const TVector * values, int dimension, TVector * direction, TRoot && root)
{
  const TVector zero{};
  // The eigenvalue of the smallest magnitude, and how far the next one is.
  const TVector gaps[2] = { values[1] - values[0], dimension == 3 ? values[2] - values[1] : zero };
  TVector       lambda = values[0];
  TVector       gap = gaps[0];
  TVector       largest = MagnitudeOf(values[0]);
  for (int i = 1; i < dimension; ++i)
  {
    const auto    isSmaller = MagnitudeOf(values[i]) < MagnitudeOf(lambda);
    const TVector least = gaps[1] < gaps[0] ? gaps[1] : gaps[0];
    gap = isSmaller ? (i + 1 < dimension ? least : gaps[i - 1]) : gap;
    lambda = isSmaller ? values[i] : lambda;
    largest = MagnitudeOf(values[i]) > largest ? MagnitudeOf(values[i]) : largest;
  }
  EigenvectorOf(h, lambda, gap, largest, dimension, direction, root);
}

/** The unit vectors of all eigenvalues, which ascend: see EigenvectorOf. */
template <typename TVector, typename TRoot>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
EigenvectorsOf(const TVector * h, const TVector * values, int dimension, TVector * vectors, TRoot && root)
{
  if (dimension == 1)
  {
    vectors[0] = TVector{} + 1.0;
    return;
  }
  const TVector first = MagnitudeOf(values[0]);
  const TVector last = MagnitudeOf(values[dimension - 1]);
  const TVector largest = first > last ? first : last;
  for (int i = 0; i < dimension; ++i)
  {
    const TVector above = i + 1 < dimension ? values[i + 1] - values[i] : values[i] - values[i - 1];
    const TVector below = i > 0 ? values[i] - values[i - 1] : above;
    EigenvectorOf(h, values[i], below < above ? below : above, largest, dimension, vectors + i * dimension, root);
  }
}

/** (largest - smallest) / (largest + smallest) of the eigenvalues, ascending, of a structure tensor; 0 where all are 0.
 * From 0, where no direction stands out, to 1, where the image changes along one axis alone, or not along one. */
template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
CoherenceOf(const TVector * values, int dimension)
{
  const TVector least = PositivePartOf(values[0]);
  const TVector most = dimension == 1 ? least : PositivePartOf(values[dimension - 1]);
  const TVector sum = most + least;
  const TVector ratio = (most - least) / sum;
  return sum > TVector{} ? ratio : TVector{};
}

/** det - k trace^n (C. Harris, M. Stephens, "A combined corner and edge detector", Alvey Vision Conference 1988; there
 * n = 2). */
template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
CornernessOf(const TVector * values, int dimension, double k)
{
  TVector product = values[0];
  TVector trace = values[0];
  for (int i = 1; i < dimension; ++i)
  {
    product = product * values[i];
    trace = trace + values[i];
  }
  TVector power = trace;
  for (int i = 1; i < dimension; ++i)
  {
    power = power * trace;
  }
  return product - k * power;
}

/** The diffusion tensor that smooths along the direction of most coherence: alpha I + (1 - alpha) exp(-coherence / k) w
 * w^T, with w of DirectionOf and k the sum of the squared differences of the eigenvalues; alpha I where k is 0 (J.
 * Weickert, "Coherence-enhancing diffusion filtering", International Journal of Computer Vision 31, 1999). */
template <typename TVector, typename TBits, typename TRoot>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
DiffusionTensorOf(const TVector * h, const TVector * values, int dimension, const TensorParameters & p,
                  TVector * tensor, TRoot && root)
{
  TVector w[3]{};
  DirectionOf(h, values, dimension, w, root);
  TVector squares{};
  for (int i = 0; i < dimension; ++i)
  {
    for (int j = i + 1; j < dimension; ++j)
    {
      squares = squares + (values[j] - values[i]) * (values[j] - values[i]);
    }
  }
  const TVector along = ExponentialOfMinus<TVector, TBits>(p.coherence / squares) * (1.0 - p.alpha);
  const TVector more = squares > TVector{} ? along : TVector{};
  for (int row = 0; row < dimension; ++row)
  {
    for (int column = row; column < dimension; ++column)
    {
      const TVector part = more * (w[row] * w[column]);
      *tensor++ = row == column ? part + p.alpha : part;
    }
  }
}

} // namespace chunkwise

#endif
