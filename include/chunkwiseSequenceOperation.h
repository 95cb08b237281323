/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSequenceOperation_h
#define chunkwiseSequenceOperation_h

#include "chunkwiseCompositeOperation.h"

namespace chunkwise
{

/** Several operations, one after the other, chunk by chunk. Kernel "sequence".
 *
 * The first goes from the input's kind to the output's, each of the others from and to the output's kind. Each has one
 * input. */
class Chunkwise_EXPORT SequenceOperation : public CompositeOperation
{
public:
  std::vector<std::shared_ptr<const Operation>> stages;

  std::string
  GetName() const override
  {
    return "sequence";
  }
  std::vector<Stage>
  GetStages() const override;
  std::vector<std::shared_ptr<const Operation>>
  AsSteps(PixelType, PixelType) const override
  {
    return stages;
  }

protected:
  std::string
  GetObjection(const Operation & stage) const override;
};

} // namespace chunkwise

#endif
