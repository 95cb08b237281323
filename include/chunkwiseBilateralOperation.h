/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBilateralOperation_h
#define chunkwiseBilateralOperation_h

#include "chunkwiseOperations.h"

#include <vector>

namespace chunkwise
{

/** Bilateral filter: the mean of the voxels around a voxel, weighted by how near they are in space and in value (C.
 * Tomasi, R. Manduchi, "Bilateral filtering for gray and color images", ICCV 1998). Kernel "bilateral".
 *
 * A voxel x becomes x + (sum of w (q - x)) / (sum of w) over the voxels q of the window. w is the product of the
 * weights along the axes, the slowest first, times exp(-(q - x)^2 / 2 rangeSigma^2); it is 0 where that is NaN. In
 * Renormalized mode the window ends at the image's edge, in every other mode the image is first continued beyond it.
 * Without any w above 0, as for NaN and infinities, the result is x.
 *
 * In float for float, 8- and 16-bit integers, in double for the others, each operation rounded, the slowest axis first,
 * offsets ascending; (q - x)^2 is multiplied by the rounded 1 / (2 rangeSigma^2), and the exponential is that of
 * NonLocalMeansOperation, within 3e-7. Integer results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT BilateralOperation : public WindowedOperation
{
public:
  /** Offsets that a window may have. */
  static constexpr std::int64_t MostOffsets = std::int64_t{ 1 } << 31;

  /** An odd number of weights along an axis; empty: no window there. */
  std::vector<double> weights[MaxDimension];
  double              rangeSigma{ 1 };

  std::string
  GetName() const override
  {
    return "bilateral";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override
  {
    return { GetRadius(), GetRadius() };
  }
  void
  Validate(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
  Coordinates
  GetRadius() const;
};

} // namespace chunkwise

#endif
