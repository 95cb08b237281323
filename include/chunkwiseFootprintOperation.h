/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFootprintOperation_h
#define chunkwiseFootprintOperation_h

#include "chunkwiseElementOperation.h"

#include <optional>

namespace chunkwise
{

enum class FootprintStatistic
{
  Mean,
  Sum,
  Variance,
  StandardDeviation,
  Rank,
  Erosion, ///< the least difference of a voxel and its height
  Dilation ///< the largest sum of a voxel and its height
};

/** A statistic over any set of offsets: windows that reach farther to one side, and footprints. Kernel "footprint".
 *
 * The time is that of all taps, unless they are a box that has its voxel (GetSides): then passes go along one axis
 * after the other. Arithmetic, the same on every backend so that results are bit-identical:
 * - Taps are those of the element, x fastest, in ascending order.
 * - Sums of integers are exact, those of floats are in double, from +0 in that order; means by MeanOf. Over a box, sums
 *   of floats are those of MeanOperation for double, with k taps along an axis.
 * - The variance of 8- to 32-bit integers is that of VarianceOperation. Others are converted to double: m = S / n, v =
 * V / n with V the sum of (x - m)^2 over the taps. Over a box they are those of VarianceOperation, too, with
 * differences from the box's voxel.
 * - Ranks are those of RankOperation.
 * - Erosion and dilation: heights are rounded to float for images of float, and differences and sums are in double.
 *   NaN are not seen; of nothing else, and of no voxel, the result is NaN, as an integer the lowest.
 * - In Renormalized mode a window without a voxel gives NaN, of integers 0; its sum is 0. */
class Chunkwise_EXPORT FootprintOperation : public ElementOperation
{
public:
  /** How far a box reaches from its voxel to the lower and to the upper side. */
  struct Chunkwise_EXPORT Sides
  {
    Coordinates lower{};
    Coordinates upper{};

    std::int64_t
    Taps(int a) const
    {
      return lower.axis[a] + 1 + upper.axis[a];
    }
    /** The farthest reach along each axis. */
    Coordinates
    Farthest() const;
  };

  FootprintStatistic statistic{ FootprintStatistic::Mean };
  /** Integer means of integers are rounded toward zero. */
  bool truncates{ false };
  /** The rank: from 0, the minimum, to 1, the maximum. */
  double fraction{ 0.5 };
  /** Erosion and dilation: a height for each voxel of the element's box. */
  std::vector<double> heights;
  /** A second input says how many voxels a rank's window sees, see RankOperation. */
  bool isCounted{ false };

  std::string
  GetName() const override
  {
    return "footprint";
  }
  std::string
  GetKey() const override;
  void
  Validate(const Coordinates & image) const override;
  int
  GetNumberOfInputs() const override
  {
    return isCounted ? 2 : 1;
  }
  bool
  HasHeights() const
  {
    return statistic == FootprintStatistic::Erosion || statistic == FootprintStatistic::Dilation;
  }
  /** The numbers that are added to the taps of GetRuns, one after the other, for an image of this kind. The largest sum
   * is the dilation; an erosion is that of negative voxels, negated. */
  std::vector<double>
  GetRises(PixelType kind) const;
  /** The sides of the element if it is a box that has its voxel; in Renormalized mode each is cut to the image's extent
   * less 1. */
  std::optional<Sides>
  GetSides(const Coordinates & image) const;
  bool
  TakesVariance() const
  {
    return statistic == FootprintStatistic::Variance || statistic == FootprintStatistic::StandardDeviation;
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
};

} // namespace chunkwise

#endif
