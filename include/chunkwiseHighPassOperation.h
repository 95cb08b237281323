/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHighPassOperation_h
#define chunkwiseHighPassOperation_h

#include "chunkwiseCompositeOperation.h"

namespace chunkwise
{

/** The image minus itself smoothed. Kernel "highpass", which ends with "highpass.voxels" (voxel, smoothed
 * voxel -> output).
 *
 * The smoothed value has the bits that the separable operation gives in its accumulator's kind: float for float, 8- and
 * 16-bit integers, double for the others. It is subtracted from the voxel converted to that kind; integer results are
 * rounded to nearest, ties to even, and clamped. */
class Chunkwise_EXPORT HighPassOperation : public CompositeOperation
{
public:
  std::shared_ptr<const SeparableOperation> smoothing;

  std::string
  GetName() const override
  {
    return "highpass";
  }
  std::vector<Stage>
  GetStages() const override;
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override
  {
    CheckSameOrFloatingOutput(GetName(), inputs.at(0), output);
  }
};

} // namespace chunkwise

#endif
