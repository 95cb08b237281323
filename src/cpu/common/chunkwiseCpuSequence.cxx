/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDevice.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseSequenceOperation.h"

namespace chunkwise
{

void
RegisterHostSequence(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = [](const KernelCall & call) { RunSequence(GetHostKernels(), call); };
  kernel.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return SequenceScratchBytes(GetHostKernels(), operation, shape);
  };
  kernel.cost = [](const Operation & operation, const ChunkShape & shape) {
    return SequenceCost(GetHostKernels(), operation, shape);
  };
  registry.Register("sequence", kernel);
}

} // namespace chunkwise
