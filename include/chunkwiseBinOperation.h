/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBinOperation_h
#define chunkwiseBinOperation_h

#include "chunkwiseBoundedGrid.h"

namespace chunkwise
{

/** How the voxels of a block become one. */
enum class BinMethod
{
  Mean,    ///< of integers the nearest one, the even one of two
  Sum,     ///< integers are cut at the ends of the output's type
  Minimum, ///< NaN if one of them is
  Maximum, ///< NaN if one of them is
  Median,  ///< the lower one of two; NaN is above all numbers
  Mode,    ///< the value that is there most often, the lowest of several; NaN is counted last
  Gaussian ///< the mean with the weights of a quadratic B-spline around the block, see BinOperation
};

/** Makes one voxel of each block of `factor` voxels along each axis. The blocks begin at the image's first voxel; where
 * the image ends within a block, the block has the voxels that exist.
 *
 * Arithmetic, the same on every backend so that results are bit-identical: sums of integers are exact. Floats are added
 * in double: along x, each position's voxels from the lowest row of the block to the highest (y fastest), then these
 * sums, from the lowest x to the highest. Minima and maxima are taken in the same order, and of -0 and +0 the first one
 * stays. A mean is the sum divided by the number of voxels: exactly, rounded to nearest, ties to even, for integer
 * results, in double for others. Medians order -0 before +0; modes take -0 as +0.
 *
 * Gaussian: the voxels of the block and of factor - 1 more to both sides of it have weights, along each axis those of
 * three boxes of `factor` voxels that are convolved with each other: 1 3 3 1 for 2, 1 3 6 7 6 3 1 for 3. They are close
 * to a Gaussian with the variance (factor^2 - 1) / 4 around the block's center. Voxels outside the image have none, and
 * the sum is divided by the weights of the others, as a mean is. Floats are multiplied by the product of their weights
 * along y, z, ... in double, and the sums of positions along x by those along x; both sums begin with +0.
 *
 * Kernel "bin". */
class Chunkwise_EXPORT BinOperation
  : public Operation
  , private BoundedGrid
{
public:
  /** The extent of the image. */
  Coordinates image{};
  /** At least 1, and not more than the image has along an axis that has voxels. */
  Coordinates factor{ Coordinates::Filled(1) };
  BinMethod   method{ BinMethod::Mean };

  /** The voxels of the image that voxels of the output are made of. */
  Box
  GetBlocks(const Box & output) const;
  /** Voxels beside the blocks, along each axis, that Gaussian means need: 0 with other methods. */
  Coordinates
  GetReach() const;
  /** The blocks with their reach, within the image. */
  Box
  GetWindows(const Box & output) const;
  /** The weight of a voxel at `place` behind the begin of its block, from -(factor - 1) on. */
  static constexpr std::int64_t
  GetGaussianWeight(std::int64_t place, std::int64_t factor)
  {
    // Three boxes: second differences are constant in each third.
    const std::int64_t from = place + factor - 1;
    const std::int64_t at = from < 2 * (factor - 1) - place ? from : 2 * (factor - 1) - place;
    const std::int64_t beyond = at - factor;
    return at < 0 ? 0 : (at + 1) * (at + 2) / 2 - (beyond < 0 ? 0 : 3 * (beyond + 1) * (beyond + 2) / 2);
  }
  /** The largest factor of Gaussian means, whose sums of 64-bit integers then fit 128 bits. */
  static constexpr std::int64_t LargestGaussianFactor = 16;
  /** The most voxels that a block has. */
  std::int64_t
  CountVoxels() const;

  std::string
  GetName() const override
  {
    return "bin";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  const OutputGrid *
  GetOutputGrid() const override
  {
    return this;
  }
  /** Means and sums: those of CheckExactOutput. Others: the input's, or floating point. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & extent) const override;

private:
  Coordinates
  GetExtent(const Coordinates & extent) const override;
  Box
  GetInputBox(const Box & box, const Coordinates & extent) const override;
  Coordinates
  GetMostInput(const Coordinates & box, const Coordinates & extent) const override;
};

} // namespace chunkwise

#endif
