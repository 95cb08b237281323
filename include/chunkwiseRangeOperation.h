/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRangeOperation_h
#define chunkwiseRangeOperation_h

#include "chunkwiseCompositeOperation.h"

namespace chunkwise
{

/** The maximum minus the minimum over a box: the morphological gradient. Kernel "range".
 *
 * The extrema are those of ExtremumOperation, the difference that of DifferenceOperation: exact for integers, clamped
 * where the output cannot hold it. A window of nothing but NaN gives NaN. */
class Chunkwise_EXPORT RangeOperation : public BoxCompositeOperation
{
public:
  std::string
  GetName() const override
  {
    return "range";
  }
  /** Those of CheckExactOutput. */
  void
  CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const override;
  std::vector<Stage>
  GetStages() const override;
};

} // namespace chunkwise

#endif
