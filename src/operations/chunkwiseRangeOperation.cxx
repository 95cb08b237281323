/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseRangeOperation.h"

#include "chunkwiseDifferenceOperation.h"
#include "chunkwiseExtremumOperation.h"

namespace chunkwise
{

namespace
{

ExtremumOperation
ExtremumOf(const Operation & operation, bool minimum)
{
  const auto &      range = static_cast<const RangeOperation &>(operation);
  ExtremumOperation extremum;
  extremum.radius = range.radius;
  extremum.boundary = range.boundary;
  extremum.minimum = minimum;
  return extremum;
}

/** Of the image of one extremum. */
std::size_t
ExtremumBytes(const Box & box, PixelKind kind)
{
  return (static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind) + 255) / 256 * 256;
}

ChunkShape
ExtremumShape(ChunkShape shape)
{
  shape.outputKind = shape.inputKinds[0];
  return shape;
}

} // namespace

std::size_t
RangeScratchBytes(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape)
{
  return 2 * ExtremumBytes(shape.outputBox, shape.inputKinds[0]) +
         kernels.Get("extremum", "range").scratchBytes(ExtremumOf(operation, false), ExtremumShape(shape));
}

double
RangeCost(const KernelRegistry & kernels, const Operation & operation, const ChunkShape & shape)
{
  // Two extrema, read again for the difference.
  return 2 * kernels.Get("extremum", "range").cost(ExtremumOf(operation, false), ExtremumShape(shape)) +
         static_cast<double>(2 * PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind)) *
           static_cast<double>(shape.outputBox.NumberOfVoxels());
}

void
RunRange(const KernelRegistry & kernels, const KernelCall & call)
{
  const PixelKind     kind = call.inputs[0].kind;
  const Box           box = call.output.box;
  const std::size_t   bytes = ExtremumBytes(box, kind);
  DifferenceOperation difference;
  KernelCall          last = call;
  last.operation = &difference;
  last.numberOfInputs = 2;
  for (int i = 0; i < 2; ++i)
  {
    const ExtremumOperation extremum = ExtremumOf(*call.operation, i == 1);
    KernelCall              stage = call;
    stage.operation = &extremum;
    stage.output = DenseView(static_cast<char *>(call.scratch) + static_cast<std::size_t>(i) * bytes, kind, box);
    stage.writable = box;
    stage.scratch = static_cast<char *>(call.scratch) + 2 * bytes;
    stage.scratchBytes = call.scratchBytes - 2 * bytes;
    // Progress is that of the last stage.
    stage.control = nullptr;
    kernels.Get("extremum", "range").run(stage);
    last.inputs[i] = stage.output;
  }
  last.scratch = nullptr;
  last.scratchBytes = 0;
  kernels.Get("difference", "range").run(last);
}

} // namespace chunkwise
