/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSequenceOperation_h
#define chunkwiseSequenceOperation_h

#include "chunkwiseOperation.h"

#include <vector>

namespace chunkwise
{

/** Several operations, one after the other, chunk by chunk: what is between never leaves the device. Kernel "sequence".
 *
 * The result has the bits that the operations give when each is run over the whole image: the first from the input's
 * kind to the output's, each of the others from and to the output's kind. Each stage computes what the next one needs
 * around the chunk, but nothing beyond the image's edge, where each stage's own boundary mode counts.
 *
 * The stages have schedule Independent and one input. Where a stage's windows wrap around, chunks hold the axis whole.
 */
class Chunkwise_EXPORT SequenceOperation : public Operation
{
public:
  std::vector<std::shared_ptr<const Operation>> stages;

  std::string
  GetName() const override
  {
    return "sequence";
  }
  std::string
  GetKey() const override;
  Halo
  GetHalo(const Coordinates & image) const override;
  void
  CheckKinds(const std::vector<PixelKind> & inputs, PixelKind output) const override;
  void
  Validate(const Coordinates & image) const override;

  /** What each stage computes for a chunk. */
  std::vector<Box>
  GetStageBoxes(const Box & output, const Box & image) const;
};

/** A kernel that runs others of the same backend: bytes of scratch, cost and the run, given that backend's kernels.
 * They throw Error if one is missing. */
Chunkwise_EXPORT std::size_t
SequenceScratchBytes(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape);
Chunkwise_EXPORT double
SequenceCost(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape);
Chunkwise_EXPORT void
RunSequence(const KernelRegistry & kernels, const KernelCall & call);

} // namespace chunkwise

#endif
