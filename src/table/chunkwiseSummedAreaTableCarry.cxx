/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSummedAreaTableCarry.h"

#include "chunkwiseDevice.h"

namespace chunkwise
{

ChunkState
AdvanceCarry(const SummedAreaTableOperation & operation, const BufferView & input, PixelType output, const Box & region,
             Executor & executor)
{
  return operation.Advance(input, output, region, executor, GetHostKernels());
}

} // namespace chunkwise
