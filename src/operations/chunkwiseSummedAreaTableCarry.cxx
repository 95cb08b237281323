/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSummedAreaTableCarry.h"

#include "chunkwiseDevice.h"

#include <algorithm>

namespace chunkwise
{

SideData
AdvanceCarry(const SummedAreaTableOperation & operation, const BufferView & input, PixelKind output, const Box & region,
             Executor & executor)
{
  const std::vector<PixelKind> kinds{ input.kind };
  SideData                     before = operation.GetInitialCarry(region, kinds, output);
  before.resize(operation.GetCarryBytes(region, kinds, output), 0);
  SideData   behind(before.size());
  ChunkShape shape;
  shape.inputBox = shape.outputBox = region;
  shape.image = Box::FromExtent(operation.image);
  shape.inputKinds[0] = input.kind;
  shape.outputKind = output;
  shape.numberOfInputs = 1;
  shape.concurrency = static_cast<int>(executor.GetConcurrency());
  const Kernel &             kernel = *GetHostKernels().Find("sat.advance");
  std::vector<std::uint64_t> scratch((kernel.scratchBytes(operation, shape) + 7) / 8);
  KernelCall                 call;
  call.operation = &operation;
  call.inputs[0] = input;
  call.numberOfInputs = 1;
  call.output.kind = output;
  call.writable = region;
  call.image = shape.image;
  call.scratch = scratch.data();
  call.scratchBytes = scratch.size() * 8;
  call.sideIn = before.data();
  call.sideInBytes = before.size();
  call.sideOut = behind.data();
  call.sideOutBytes = behind.size();
  call.executor = &executor;
  kernel.run(call);
  return behind;
}

} // namespace chunkwise
