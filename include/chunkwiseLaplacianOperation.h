/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseLaplacianOperation_h
#define chunkwiseLaplacianOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The Laplacian of an image smoothed by a window, a Gaussian as a rule. Kernel "laplacian".
 *
 * Along an axis the window has smoothing weights g, which sum to 1 over the taps there are, and second-derivative
 * weights h_t = g_t (a + b t + c t t): those of the least-squares parabola, weighted by g, over the taps there are.
 * They are found from sum h = 0, sum t h = 0, sum t t h = 2, so that the result is exact for polynomials of degree 2,
 * up to the image's edge. An axis of the image with fewer than 3 voxels has no second derivative: h = 0 there. The
 * derivation is in docs/laplacian-of-gaussian.md.
 *
 * Arithmetic, the same on every backend so that results are bit-identical:
 * - Accumulator: float for float, 8- and 16-bit integers; double for the others. g and h are found in double, h is
 *   multiplied by `scale`, then both are converted.
 * - Axes in ascending order. A pass has S, at first the image, and L, at first 0; for each position p, taps ascending,
 *   from +0: s = fma(g_t, S_t, s); unless it is the first pass l = fma(g_t, L_t, l); then l = fma(h_t, S_t - S_p, l).
 *   They are S and L of the next pass; the last L is the result.
 * - In Renormalized mode the taps are those inside the image. In every other mode the image is first continued beyond
 * its edge.
 * - Integer results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT LaplacianOperation : public WindowedOperation
{
public:
  /** Positive weights, 2 radius + 1 of them with a radius of at least 2; empty for an axis that takes no part. */
  std::vector<double> weights[MaxDimension];
  /** A factor of the second derivative along each axis: 1 over the square of the spacing, for example. */
  double scale[MaxDimension]{ 1, 1, 1, 1, 1 };

  std::string
  GetName() const override
  {
    return "laplacian";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;

  Coordinates
  GetRadius() const;

  /** The weights along axis `a` of an image with `n` voxels there: rows of 2 radius + 1 weights, g of all rows, then h.
   * Position i has row WeightRow(i, n, radius, GetNumberOfRows(a, n)). */
  std::vector<double>
  GetTables(int a, std::int64_t n) const;
  std::int64_t
  GetNumberOfRows(int a, std::int64_t n) const;
};

/** The row of weights for position `i` of an axis: positions near an edge of the image have separate rows, all others
 * share the middle one. `rows` is 1, all positions, or 2 radius + 1. */
CHUNKWISE_HOST_DEVICE inline std::int64_t
WeightRow(std::int64_t i, std::int64_t n, std::int64_t radius, std::int64_t rows)
{
  if (rows == 1)
  {
    return 0;
  }
  if (rows == n)
  {
    return i;
  }
  return i < radius ? i : i >= n - radius ? rows - (n - i) : radius;
}

} // namespace chunkwise

#endif
