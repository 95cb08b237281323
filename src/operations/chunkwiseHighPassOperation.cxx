/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHighPassOperation.h"


namespace chunkwise
{

namespace
{

std::size_t
SmoothedBytes(const Box & box, PixelKind input)
{
  return (static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(HighPassOperation::SmoothedKind(input)) + 255) /
         256 * 256;
}

} // namespace

std::size_t
HighPassScratchBytes(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape)
{
  ChunkShape smoothing = shape;
  smoothing.outputKind = HighPassOperation::SmoothedKind(shape.inputKinds[0]);
  return SmoothedBytes(shape.outputBox, shape.inputKinds[0]) +
         kernels.Get("separable", "highpass")
           .scratchBytes(*static_cast<const HighPassOperation &>(operation).smoothing, smoothing);
}

BufferView
SmoothForHighPass(const KernelRegistry & kernels, const KernelCall & call)
{
  const std::size_t own = SmoothedBytes(call.output.box, call.inputs[0].kind);
  KernelCall        smoothing = call;
  smoothing.operation = static_cast<const HighPassOperation &>(*call.operation).smoothing.get();
  smoothing.output = DenseView(call.scratch, HighPassOperation::SmoothedKind(call.inputs[0].kind), call.output.box);
  smoothing.scratch = static_cast<char *>(call.scratch) + own;
  smoothing.scratchBytes = call.scratchBytes - own;
  kernels.Get("separable", "highpass").run(smoothing);
  return smoothing.output;
}

} // namespace chunkwise
