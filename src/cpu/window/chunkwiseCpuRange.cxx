/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDevice.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRangeOperation.h"

namespace chunkwise
{

void
RegisterHostRange(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = [](const KernelCall & call) { RunRange(GetHostKernels(), call); };
  kernel.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return RangeScratchBytes(GetHostKernels(), operation, shape);
  };
  registry.Register("range", kernel);
}

} // namespace chunkwise
