/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSummedAreaTableCarry.h"

#include "chunkwiseDevice.h"

namespace chunkwise
{

SideData
AdvanceCarry(const SummedAreaTableOperation & operation, const BufferView & input, PixelKind output, const Box & region,
             Executor & executor)
{
  return operation.Advance(input, output, region, executor, GetHostKernels());
}

} // namespace chunkwise
