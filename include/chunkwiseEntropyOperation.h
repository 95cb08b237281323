/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseEntropyOperation_h
#define chunkwiseEntropyOperation_h

#include "chunkwiseOperations.h"

namespace chunkwise
{

/** The entropy, in bits, of the histogram of a box. Kernel "entropy".
 *
 * Arithmetic, the same on every backend so that results are bit-identical:
 * - A voxel v falls into bin floor((v - lower) * (bins / (upper - lower))), computed in double; below 0 and NaN into
 * the first bin, at bins and above into the last one.
 * - With n voxels, c_b of them in bin b, and the integers T(c) = c log2(c) 2^24 rounded to nearest:
 *   max(log2(n) - (sum over b of T(c_b)) / (n 2^24), 0). The sum is exact, so that windows may slide; the rounding of T
 *   costs at most 2^-25 bits a bin and voxel of the window.
 * - In Renormalized mode the voxels are those inside the image. In every other mode the image is first continued beyond
 * its edge.
 * - Integer results are rounded to nearest, ties to even.
 * - With `leavesOutLast` the voxels of the last bin are not there; where no others are the result is NaN. */
class Chunkwise_EXPORT EntropyOperation : public BoxOperation
{
public:
  /** Voxels of the largest window, and bins of the largest histogram. */
  static constexpr std::int64_t LargestWindow = 32767;
  static constexpr int          LargestBins = 4096;

  int    bins{ 256 };
  double lower{ 0 };
  double upper{ 256 };
  bool   leavesOutLast{ false };
  /** Along axes where this is 1 the box lacks its last voxel: 2 radius[a] voxels from -radius[a] on. */
  Coordinates shorter{};

  std::string
  GetName() const override
  {
    return "entropy";
  }
  std::string
  GetKey() const override
  {
    return BoxOperation::GetKey() + " " + std::to_string(bins) + " " + ExactText(lower) + " " + ExactText(upper) +
           (leavesOutLast ? " but the last" : "") + " " + ToString(shorter);
  }
  void
  Validate(const Coordinates & image) const override;

  /** T(c + 1) - T(c) for c from 0 on, for windows of `taps` voxels. */
  static std::vector<std::int32_t>
  GetSteps(std::int64_t taps);
  /** T(c) for c from 0 on. */
  static std::vector<std::int64_t>
  GetTotals(std::int64_t taps);
  /** log2(n) for n from 0 on (0 for n = 0). */
  static std::vector<double>
  GetLogarithms(std::int64_t taps);
  /** Voxels of a window inside an image of this extent. */
  std::int64_t
  GetTaps(const Coordinates & image) const;
};

/** The bin of a voxel. */
template <typename TPixel>
CHUNKWISE_HOST_DEVICE std::uint16_t
                      BinOf(TPixel value, double lower, double scale, int bins)
{
  const double position = (static_cast<double>(value) - lower) * scale;
  if (!(position > 0.0))
  {
    return 0;
  }
  return static_cast<std::uint16_t>(position < static_cast<double>(bins) ? static_cast<int>(position) : bins - 1);
}

/** The entropy of n voxels from the sum of T; NaN of none. */
CHUNKWISE_HOST_DEVICE inline double
EntropyOf(std::int64_t sum, std::int64_t n, double logarithm)
{
  if (n == 0)
  {
    return __builtin_nan("");
  }
  const double entropy = logarithm - static_cast<double>(sum) / (static_cast<double>(n) * 16777216.0);
  return entropy > 0.0 ? entropy : 0.0;
}

} // namespace chunkwise

#endif
