/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHessianMeasure_h
#define chunkwiseHessianMeasure_h

#include "chunkwiseTypes.h"

#include <cstdint>
#include <cstring>

// Eigenvalues of symmetric matrices of up to 3 x 3, and measures of shape that are made of those of the Hessian: of
// doubles, or of vectors of them. No operation is contracted, so all give the same bits.
namespace chunkwise
{

/** The measure of the eigenvalues of a Hessian, see HessianMeasureOf. */
enum class HessianMeasure
{
  Objectness,
  Sato,
  Meijering,
  Jerman,
  Norm,   ///< the root of the sum of the matrix' squares
  Largest ///< the eigenvalue of the largest magnitude where it is that of a bright structure, else 0
};

struct HessianMeasureParameters
{
  HessianMeasure measure{ HessianMeasure::Objectness };
  /** Objectness: 0 for blobs, 1 for tubes, 2 for sheets. */
  int    objectDimension{ 1 };
  double alpha{ 0.5 };
  double beta{ 0.5 };
  double tau{ 0.5 };
  /** The norm above which objectness grows, or the largest value at this scale (Meijering, Jerman). Objectness: 0
   * leaves that factor out. */
  double contrast{ 0 };
  bool   dark{ false };
  /** Objectness is multiplied by the largest magnitude of an eigenvalue. */
  bool scales{ false };
};

template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
MagnitudeOf(TVector x)
{
  return x < TVector{} ? -x : x;
}

template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
PositivePartOf(TVector x)
{
  return x > TVector{} ? x : TVector{};
}

template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
OrderByMagnitude(TVector & a, TVector & b)
{
  const TVector first = a;
  const TVector second = b;
  a = MagnitudeOf(second) < MagnitudeOf(first) ? second : first;
  b = MagnitudeOf(second) < MagnitudeOf(first) ? first : second;
}

/** exp(-t) for t >= 0, within 2e-16 of it relatively; 0 beyond 708. `TBits` are unsigned 64-bit integers. */
template <typename TVector, typename TBits>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
ExponentialOfMinus(TVector t)
{
  const TVector bounded = t > 708.0 ? TVector{} + 708.0 : t;
  // The sum has no bits after the point: rounded to nearest, and an integer in its lowest bits.
  const TVector shifted = bounded * -1.4426950408889634 + 6755399441055744.0;
  const TVector n = shifted - 6755399441055744.0;
  const TVector x = (-bounded - n * 0.69314718036912382) - n * 1.9082149292705877e-10;
  TVector       power = x * (1.0 / 479001600) + 1.0 / 39916800;
  power = power * x + 1.0 / 3628800;
  power = power * x + 1.0 / 362880;
  power = power * x + 1.0 / 40320;
  power = power * x + 1.0 / 5040;
  power = power * x + 1.0 / 720;
  power = power * x + 1.0 / 120;
  power = power * x + 1.0 / 24;
  power = power * x + 1.0 / 6;
  power = power * x + 0.5;
  power = power * x + 1.0;
  power = power * x + 1.0;
  TBits bits{};
  memcpy(&bits, &shifted, sizeof(bits));
  bits = (bits + 1023) << 52;
  TVector scale{};
  memcpy(&scale, &bits, sizeof(scale));
  return t > 708.0 ? TVector{} : power * scale;
}

/** The eigenvalues of a symmetric matrix, ascending: `h` has its upper triangle, row by row; `root` gives square roots.
 *
 * 3 x 3: of B = (H - q) / p with the mean q of the diagonal and p^2 = |H - q|^2 / 6, half the determinant is r, and the
 * eigenvalue furthest from 0 is 2 c with 4 c^3 - 3 c = |r| (O. K. Smith, "Eigenvalues of a symmetric 3 x 3 matrix",
 * Communications of the ACM 4(4), 1961). c is between 0.866 and 1, and a simple root: two steps of Newton from a cubic
 * that is within 4e-5 of it. The others follow by a square root. In double all are within 2e-8 p of the exact ones
 * where they meet, and within some roundings elsewhere. */
template <typename TVector, typename TRoot>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE void
EigenvaluesOf(const TVector * h, int dimension, TVector * values, TRoot && root)
{
  if (dimension == 1)
  {
    values[0] = h[0];
    return;
  }
  if (dimension == 2)
  {
    const TVector middle = (h[0] + h[2]) * 0.5;
    const TVector half = (h[0] - h[2]) * 0.5;
    const TVector distance = root(half * half + h[1] * h[1]);
    values[0] = middle - distance;
    values[1] = middle + distance;
    return;
  }
  const TVector q = ((h[0] + h[3]) + h[5]) * (1.0 / 3);
  const TVector a = h[0] - q;
  const TVector b = h[3] - q;
  const TVector c = h[5] - q;
  const TVector beside = (h[1] * h[1] + h[2] * h[2]) + h[4] * h[4];
  const TVector p = root((((a * a + b * b) + c * c) + (beside + beside)) * (1.0 / 6));
  const TVector inverse = p > 1e-150 ? 1.0 / p : TVector{};
  const TVector a1 = a * inverse;
  const TVector b1 = b * inverse;
  const TVector c1 = c * inverse;
  const TVector xy = h[1] * inverse;
  const TVector xz = h[2] * inverse;
  const TVector yz = h[4] * inverse;
  const TVector determinant = (a1 * (b1 * c1 - yz * yz) - xy * (xy * c1 - yz * xz)) + xz * (xy * yz - b1 * xz);
  const TVector r = determinant * 0.5;
  const TVector free = MagnitudeOf(r);
  const TVector s = free > 1.0 ? TVector{} + 1.0 : free;
  TVector x = ((s * 0.009443616950108657 - 0.04088122904771546) * s + 0.16540433642362903) * s + 0.8660618516444847;
  for (int step = 0; step < 2; ++step)
  {
    const TVector square = x * x;
    x = x - ((square * 4.0 - 3.0) * x - s) / (square * 12.0 - 3.0);
  }
  const TVector rest = (1.0 - x) * (1.0 + x) * 3.0;
  const TVector d = root(PositivePartOf(rest));
  const TVector low = q - p * (x + d);
  const TVector high = q + p * (x + d);
  values[0] = r < TVector{} ? q - p * (x + x) : low;
  values[1] = r < TVector{} ? q + p * (x - d) : q - p * (x - d);
  values[2] = r < TVector{} ? high : q + p * (x + x);
}

/** Takes ascending eigenvalues; see HessianMeasureOf. */
template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
MeijeringMeasureOf(const TVector (&v)[3], int dimension, const HessianMeasureParameters & p)
{
  const TVector all = (v[0] + v[1]) + v[2];
  const double  share = 1.0 / (dimension + 1);
  TVector       largest = -(v[0] + share * (all - v[0]));
  for (int i = 1; i < dimension; ++i)
  {
    const TVector next = -(v[i] + share * (all - v[i]));
    largest = MagnitudeOf(next) > MagnitudeOf(largest) ? next : largest;
  }
  return p.contrast > 0 ? PositivePartOf(largest) / p.contrast : PositivePartOf(largest);
}

/** Takes eigenvalues by magnitude, the largest last; see HessianMeasureOf. */
template <typename TVector>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
JermanMeasureOf(const TVector (&m)[3], int dimension, const HessianMeasureParameters & p)
{
  const TVector zero{};
  const TVector l3 = -m[2];
  const TVector l2 = dimension == 3 ? -m[1] : l3;
  const TVector least = zero + p.tau * p.contrast;
  const TVector l = l3 > least ? l3 : least;
  const TVector sum = (l + l2) * (1.0 / 3);
  const TVector value = l2 * l2 * (l - l2) / (sum * sum * sum);
  const TVector bounded = l2 + l2 >= l ? zero + 1.0 : value;
  return l2 > zero ? (l3 > zero ? bounded : zero) : zero;
}

/** The same; with the sum of the squares of all eigenvalues. */
template <typename TVector, typename TBits, typename TRoot>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
ObjectnessOf(const TVector (&m)[3], const TVector & squares, int dimension, const HessianMeasureParameters & p,
             TRoot && root)
{
  const TVector zero{};
  const int     first = 3 - dimension + p.objectDimension;
  TVector       product = zero + 1.0;
  for (int i = first + 1; i < 3; ++i)
  {
    product = product * MagnitudeOf(m[i]);
  }
  TVector value = zero + 1.0;
  if (first < 2)
  {
    const TVector mean = first == 0 ? root(product) : product;
    const TVector ratio = MagnitudeOf(m[first]) / mean;
    value = 1.0 - ExponentialOfMinus<TVector, TBits>(ratio * ratio * (0.5 / (p.alpha * p.alpha)));
    value = mean > zero ? value : zero;
  }
  if (p.objectDimension > 0)
  {
    product = product * MagnitudeOf(m[first]);
    const TVector mean = first == 1 ? root(product) : product;
    const TVector ratio = MagnitudeOf(m[first - 1]) / mean;
    const TVector blob = ExponentialOfMinus<TVector, TBits>(ratio * ratio * (0.5 / (p.beta * p.beta)));
    value = mean > zero ? value * blob : zero;
  }
  if (p.contrast > 0)
  {
    value = value * (1.0 - ExponentialOfMinus<TVector, TBits>(squares * (0.5 / (p.contrast * p.contrast))));
  }
  if (p.scales)
  {
    value = value * MagnitudeOf(m[2]);
  }
  for (int i = first; i < 3; ++i)
  {
    value = m[i] < zero ? value : zero;
  }
  return value;
}

/** The measure of ascending eigenvalues; structures are bright, or dark where the parameters say so.
 *
 * With m_0, m_1, ... the eigenvalues by magnitude, D of them:
 * - Objectness of dimension M, 0 unless all m_i with i >= M are negative: (1 - exp(-A^2 / 2 alpha^2)) exp(-B^2 / 2
 * beta^2) (1 - exp(-S^2 / 2 contrast^2)), A = |m_M| / (|m_M+1| ... |m_D-1|)^(1 / (D - M - 1)) if M < D - 1, B = |m_M-1|
 * /
 *   (|m_M| ... |m_D-1|)^(1 / (D - M)) if M > 0, S the norm; M = 1 is Frangi's vesselness (A. F. Frangi and others,
 *   MICCAI 1998; L. Antiga, "Generalizing vesselness with respect to dimensionality and shape", Insight Journal 2007).
 * - Sato: the geometric mean of the D - 1 lowest eigenvalues, negated, 0 for positive ones (Y. Sato and others, Medical
 *   Image Analysis 2(2), 1998).
 * - Meijering: of the sums of each eigenvalue and 1 / (D + 1) of the others, negated, the one of the largest magnitude,
 * 0 if it is negative, over `contrast` (E. Meijering and others, Cytometry A 58(2), 2004).
 * - Jerman: with l_2, l_3 the two last eigenvalues by magnitude, negated, and l = max(l_3, tau contrast): 0 if l_2 or
 * l_3
 *   <= 0, 1 if l_2 >= l / 2, else l_2^2 (l - l_2) 27 / (l + l_2)^3 (T. Jerman and others, IEEE TMI 35(9), 2016). */
template <typename TVector, typename TBits, typename TRoot>
CHUNKWISE_HOST_DEVICE CHUNKWISE_ALWAYS_INLINE TVector
HessianMeasureOf(const TVector * ascending, int dimension, const HessianMeasureParameters & p, TRoot && root)
{
  const TVector zero{};
  TVector       v[3]{};
  for (int i = 0; i < dimension; ++i)
  {
    // Ascending, and negative for structures.
    v[i] = p.dark ? -ascending[dimension - 1 - i] : ascending[i];
  }
  if (p.measure == HessianMeasure::Sato)
  {
    const TVector first = PositivePartOf(-v[0]);
    return dimension < 3 ? first : root(first * PositivePartOf(-v[1]));
  }
  if (p.measure == HessianMeasure::Meijering)
  {
    return MeijeringMeasureOf(v, dimension, p);
  }
  TVector squares{};
  for (int i = 0; i < dimension; ++i)
  {
    squares = squares + v[i] * v[i];
  }
  if (p.measure == HessianMeasure::Norm)
  {
    return root(squares);
  }
  // m_0, m_1, m_2 of three dimensions; of fewer the first ones are missing.
  TVector m[3]{};
  for (int i = 0; i < dimension; ++i)
  {
    m[3 - dimension + i] = v[i];
  }
  if (dimension == 3)
  {
    OrderByMagnitude(m[0], m[1]);
  }
  if (dimension >= 2)
  {
    OrderByMagnitude(m[1], m[2]);
  }
  if (dimension == 3)
  {
    OrderByMagnitude(m[0], m[1]);
  }
  if (p.measure == HessianMeasure::Largest)
  {
    return PositivePartOf(-m[2]);
  }
  if (p.measure == HessianMeasure::Jerman)
  {
    return JermanMeasureOf(m, dimension, p);
  }
  return ObjectnessOf<TVector, TBits>(m, squares, dimension, p, root);
}

} // namespace chunkwise

#endif
