/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseOperations_h
#define chunkwiseOperations_h

#include "chunkwiseOperation.h"
#include "chunkwisePixelValue.h"

#include <vector>

namespace chunkwise
{

/** The boundary condition, shared by every windowed operation. */
struct WindowBoundary
{
  BoundaryMode mode{ BoundaryMode::Renormalized };
  /** The value beyond the edge in Constant mode, in units of the pixel: every 64-bit integer too. */
  PixelValue constant{ 0.0 };
};

/** Copies its input, converting the kind: the skeleton for new operations. Kernel "identity". */
class Chunkwise_EXPORT IdentityOperation : public Operation
{
public:
  std::string
  GetName() const override
  {
    return "identity";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** Spells a number so that different ones differ: what keys are made of. */
Chunkwise_EXPORT std::string
                 ExactText(double value);
Chunkwise_EXPORT std::string
                 ExactText(const PixelValue & value);
Chunkwise_EXPORT std::string
                 BoundaryKey(const WindowBoundary & boundary);

/** Base of operations over the voxels around each voxel. */
class Chunkwise_EXPORT WindowedOperation : public Operation
{
public:
  WindowBoundary boundary{};

  bool
  WrapsAround() const override
  {
    return boundary.mode == BoundaryMode::Periodic;
  }
  /** Whether windows see the image alone; what another window gives goes on beyond the edge in its own way. */
  virtual bool
  IsOfImageAlone() const
  {
    return true;
  }
  /** T to T, T to float, T to double. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** Base of operations over a box of (2 radius[a] + 1) voxels per axis; radius 0 on axes that take no part. In
 * Renormalized mode radius is cut to extent - 1. */
class Chunkwise_EXPORT BoxOperation : public WindowedOperation
{
public:
  Coordinates radius{};

  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;

  /** The radius along axis `a` of an image of extent `n` there, cut as the class comment says. */
  std::int64_t
  EffectiveRadius(int a, std::int64_t n) const
  {
    const std::int64_t r = radius.axis[a];
    return boundary.mode == BoundaryMode::Renormalized && r > n - 1 ? n - 1 : r;
  }
  Coordinates
  EffectiveRadius(const Coordinates & image) const;

protected:
  /** Throws ParameterError if windows take part in more than MaxSpatialAxes axes. */
  void
  CheckNumberOfAxes(const Coordinates & image) const;
};

/** The mean, or the sum, over a box of (2 radius[a] + 1) voxels per axis; radius 0 on axes that take no part.
 *
 * Kernel "mean".
 *
 * Arithmetic, the same on every backend so that results are bit-identical:
 * - Voxels are converted to the accumulator: 32-bit integers for 8- and 16-bit integers if the largest possible sum
 *   fits, else 64-bit; 64-bit for 32-bit integers; 128-bit for 64-bit integers; float for float; double for double.
 *   Integer sums are exact.
 * - Float and double are summed along the axes in ascending order. Along an axis with k = 2 radius + 1 <= 9 taps are
 *   added from the lowest to the highest, beginning with +0. With k > 9, index i of the image's axis (0 at the edge)
 *   lies in block floor(i / k); the window [i - radius, i + radius] is the suffix sum of the block of its first tap
 * plus the prefix sum of the block of its last: suffix added from the block's end towards the tap, prefix from the
 * block's begin towards the tap; if the window is one whole block the prefix sum alone. Taps beyond the edge take part
 * with the value that the boundary mode gives them, 0 in Renormalized mode. So a sum does not depend on the chunk. In
 * Renormalized mode radius is first cut to extent - 1.
 * - In Constant mode the value beyond the edge of a later axis is the constant summed (tap by tap from +0) over the
 *   windows of the earlier axes.
 * - The divisor is the number of taps inside the image (Renormalized), else the product of all k. Integer results are
 *   rounded to nearest, ties to even, from the exact quotient; with `truncates` toward zero. From integers to float and
 * double: the sum and the count are converted to double, divided, and converted. From float or double: divided in their
 * own precision by the count converted to it, then converted.
 * - A sum is the mean with a divisor of 1; integer results are clamped to the kind's range. In Renormalized mode it is
 *   that of the taps inside the image. */
class Chunkwise_EXPORT MeanOperation : public BoxOperation
{
public:
  bool sums{ false };
  bool truncates{ false };

  std::string
  GetName() const override
  {
    return "mean";
  }
  std::string
  GetKey() const override
  {
    return BoxOperation::GetKey() + (sums ? " sum" : "") + (truncates ? " truncates" : "");
  }
  /** Those of CheckExactOutput. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

/** Along each axis, a correlation with 2 radius + 1 weights. Kernel "separable".
 *
 * Arithmetic, the same on every backend so that results are bit-identical:
 * - Accumulator: float for float, 8- and 16-bit integers; double for the others. Weights are given in double and
 *   converted to the accumulator.
 * - Axes in ascending order; along an axis acc = +0, then acc = fma(weight[t], tap[t], acc) from the lowest tap to the
 *   highest; taps beyond the edge have the boundary's value (0 in Renormalized mode, where they may be skipped, which
 * is the same).
 * - In Renormalized mode the result along an axis is multiplied by norm = (accumulator)(1 / sum of the weights that are
 *   inside the image), the sum taken in double from the lowest to the highest; 1 where the whole window is inside. An
 *   axis whose sum would be 0 is refused by Validate.
 * - In Constant mode the value beyond the edge of a later axis is the constant put through the earlier axes by the same
 *   fma rule.
 * - Integer results are rounded to nearest, ties to even, and clamped to the kind's range. */
class Chunkwise_EXPORT SeparableOperation : public WindowedOperation
{
public:
  /** Empty, or a single 1, for an axis that takes no part; else an odd number of weights. */
  std::vector<double> weights[MaxDimension];

  std::string
  GetName() const override
  {
    return "separable";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  Validate(const Coordinates & image) const override;

  std::int64_t
  Radius(int a) const
  {
    return static_cast<std::int64_t>(weights[a].size() / 2);
  }
  /** The norms of axis `a` with `n` voxels, in double, see the class comment; position i has the norm of NormRow. */
  std::vector<double>
  GetNorms(int a, std::int64_t n) const;
};

/** T to T, T to float, T to double: what the windowed operations accept. Throws ParameterError. */
Chunkwise_EXPORT void
CheckSameOrFloatingOutput(const std::string & operation, PixelType input, PixelType output);
/** The same of operations whose results of integers are exact: 32-bit integers may give int64, and 64-bit integers
 * those of the other sign. */
Chunkwise_EXPORT void
CheckExactOutput(const std::string & operation, PixelType input, PixelType output);

} // namespace chunkwise

#endif
