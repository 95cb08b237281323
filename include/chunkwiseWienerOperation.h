/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWienerOperation_h
#define chunkwiseWienerOperation_h

#include "chunkwiseCompositeOperation.h"

namespace chunkwise
{

/** The adaptive Wiener filter over a box: the mean where the window varies no more than noise does, the voxel itself
 * where it varies much more. Kernel "wiener", which ends with "wiener.voxels" (voxel, mean, variance -> output).
 *
 * With m the mean and v the variance of the window, as MeanOperation and VarianceOperation give them as float for
 * float, 8- and 16-bit integers, as double for the others, and the noise converted to that kind: m where not v > noise,
 * else m + ((v - noise) / v) * (x - m), each operation rounded. So results are bit-identical on every backend. Integer
 * results are rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT WienerOperation : public BoxCompositeOperation
{
public:
  /** The variance of the noise. */
  double noise{ 0 };

  std::string
  GetName() const override
  {
    return "wiener";
  }
  std::string
  GetKey() const override
  {
    return BoxCompositeOperation::GetKey() + " " + ExactText(noise);
  }
  std::vector<Stage>
  GetStages() const override;
  void
  Validate(const Coordinates & image) const override;
};

/** The rule for a voxel. */
template <typename TReal>
CHUNKWISE_HOST_DEVICE TReal
WienerOf(TReal voxel, TReal mean, TReal variance, TReal noise)
{
  return variance > noise ? mean + ((variance - noise) / variance) * (voxel - mean) : mean;
}

} // namespace chunkwise

#endif
