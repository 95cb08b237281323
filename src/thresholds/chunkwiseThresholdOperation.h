/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseThresholdOperation_h
#define chunkwiseThresholdOperation_h

#include "chunkwiseOperation.h"
#include "chunkwisePixelValue.h"

#include <vector>

namespace chunkwise
{

enum class ThresholdMethod;

/** The class of each voxel: the number of thresholds below it, or, of a range, 1 within it and 0 outside. NaN is in
 * class 0, as are voxels where the mask is 0. Kernel "threshold". Comparisons are exact for every kind of voxel. */
class Chunkwise_EXPORT ThresholdOperation : public Operation
{
public:
  /** More classes than an output of 8 bits holds are of no use. */
  static constexpr int MostClasses = 256;

  ThresholdMethod method{};
  int             classes{ 2 };
  int             bins{ 0 }; ///< of the histogram, see ComputeThresholdHistogram
  /** In ascending order; empty: not known yet, the operation cannot run. */
  std::vector<double> thresholds;
  /** By the method Fixed, in place of thresholds: lower <= voxel <= upper. */
  bool       hasLower{ false };
  bool       hasUpper{ false };
  PixelValue lower;
  PixelValue upper;
  /** The second input is an image of integers: voxels are outside where it is 0. */
  bool masked{ false };

  std::string
  GetName() const override
  {
    return "threshold";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  int
  GetNumberOfInputs() const override
  {
    return masked ? 2 : 1;
  }
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  void
  Validate(const Coordinates & image) const override;
  bool
  IsRange() const;
  /** A voxel's class is the number of these that are no larger than it. In a range 1 is within. */
  template <typename TPixel>
  std::vector<TPixel>
  MakeBounds() const;
};

} // namespace chunkwise

#endif
