/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseKernelChoice_h
#define chunkwiseKernelChoice_h

#include "chunkwiseExecutor.h"
#include "chunkwiseOperation.h"

// Kernels with several algorithms: one function chooses for a shape, and all that a kernel does and says follows from
// it.

namespace chunkwise
{

/** The shape that a call's chunk was planned with, but for the input's box on the host: there a call has the whole
 * image, so that the host's kernels must not choose by it. */
inline ChunkShape
ShapeOf(const KernelCall & call)
{
  ChunkShape shape;
  shape.inputBox = call.inputs[0].box;
  shape.outputBox = call.output.box;
  shape.image = call.image;
  shape.numberOfInputs = call.numberOfInputs;
  for (int i = 0; i < MaxInputs; ++i)
  {
    shape.inputKinds[i] = call.inputs[i].kind;
  }
  shape.outputKind = call.output.kind;
  shape.concurrency = call.executor ? static_cast<int>(call.executor->GetConcurrency()) : 1;
  shape.kernels = call.kernels;
  return shape;
}

/** A kernel that does what VChoose says. Its cost is that of the choice too if `hasCost`; else it costs what moves. */
template <KernelChoice (*VChoose)(const Operation & operation, const ChunkShape & shape)>
Kernel
MakeChoosingKernel(bool hasCost)
{
  Kernel kernel;
  kernel.choose = VChoose;
  kernel.run = [](const KernelCall & call) {
    const KernelChoice choice = VChoose(*call.operation, ShapeOf(call));
    choice.run(call);
    // Last, since a kernel may run others.
    if (call.chosen)
    {
      *call.chosen = choice.name;
    }
  };
  kernel.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return VChoose(operation, shape).scratchBytes;
  };
  if (hasCost)
  {
    kernel.cost = [](const Operation & operation, const ChunkShape & shape) { return VChoose(operation, shape).cost; };
  }
  return kernel;
}

} // namespace chunkwise

#endif
