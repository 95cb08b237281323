/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaMaskedWindow_h
#define chunkwiseCudaMaskedWindow_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

/** Registers the kernel of DomainOperation: a separate march, or the stages. */
void
RegisterCudaMaskedWindows(KernelRegistry & registry);

/** The shape that a call of it computes. */
inline ChunkShape
ShapeOfMasked(const KernelCall & call)
{
  ChunkShape shape;
  shape.inputBox = call.inputs[0].box;
  shape.outputBox = call.output.box;
  shape.image = call.image;
  shape.inputKinds[0] = call.inputs[0].kind;
  shape.outputKind = call.output.kind;
  return shape;
}

} // namespace chunkwise

#endif
