/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseSequenceOperation.h"

namespace chunkwise
{

namespace
{

/** The registry that the backend fills, which lives as long as the module. */
const KernelRegistry * kernels = nullptr;

} // namespace

const KernelRegistry &
GetCudaKernels()
{
  return *kernels;
}

void
RegisterCudaSequence(KernelRegistry & registry)
{
  kernels = &registry;
  Kernel kernel;
  kernel.run = [](const KernelCall & call) { RunSequence(GetCudaKernels(), call); };
  kernel.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return SequenceScratchBytes(GetCudaKernels(), operation, shape);
  };
  kernel.cost = [](const Operation & operation, const ChunkShape & shape) {
    return SequenceCost(GetCudaKernels(), operation, shape);
  };
  registry.Register("sequence", kernel);
}

} // namespace chunkwise
