/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseRangeOperation.h"

namespace chunkwise
{

void
RegisterCudaRange(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = [](const KernelCall & call) { RunRange(GetCudaKernels(), call); };
  kernel.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return RangeScratchBytes(GetCudaKernels(), operation, shape);
  };
  kernel.cost = [](const Operation & operation, const ChunkShape & shape) {
    return RangeCost(GetCudaKernels(), operation, shape);
  };
  registry.Register("range", kernel);
}

} // namespace chunkwise
