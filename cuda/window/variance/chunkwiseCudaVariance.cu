/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseVarianceOperation.h"

#include <type_traits>

namespace chunkwise
{

namespace
{

template <typename TPixel>
void
Run(const KernelCall & call)
{
  const auto &       operation = static_cast<const VarianceOperation &>(*call.operation);
  const Coordinates  radius = operation.EffectiveRadius(call.image.Extents());
  const WindowBoxes  boxes(call.output.box, call.image, radius, operation.boundary.mode);
  char *             scratch = static_cast<char *>(call.scratch);
  const auto         pixels = ContinueImage<TPixel>(call, boxes, operation.boundary, scratch);
  const cudaStream_t stream = StreamOf(call);
  if constexpr (std::is_same<TPixel, float>::value)
  {
    if (RunVarianceMarch(pixels, call.output, radius, operation.takesRoot, stream) ||
        RunVarianceColumns(pixels, call.output, radius, operation.takesRoot, stream))
    {
      return;
    }
  }
  if constexpr (std::is_same<TPixel, std::uint8_t>::value || std::is_same<TPixel, std::uint16_t>::value ||
                std::is_same<TPixel, std::int16_t>::value)
  {
    if (RunVarianceSums(pixels, call.output, radius, operation.takesRoot, stream))
    {
      return;
    }
  }
  const PixelKind kind = call.inputs[0].kind;
  const auto      any = CastVoxels<const char>(pixels);
  if (!RunVarianceTiles(kind, any, call.output, radius, operation.takesRoot, stream))
  {
    RunVariancePasses(kind, boxes, any, call.output, operation.takesRoot, scratch, stream);
  }
}

void
RunVariance(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) { Run<decltype(pixel)>(call); });
}

WindowBoxes
BoxesOf(const Operation & operation, const ChunkShape & shape)
{
  const auto & variance = static_cast<const VarianceOperation &>(operation);
  return WindowBoxes(
    shape.outputBox, shape.image, variance.EffectiveRadius(shape.image.Extents()), variance.boundary.mode);
}

std::size_t
ScratchOfVariance(const Operation & operation, const ChunkShape & shape)
{
  const WindowBoxes boxes = BoxesOf(operation, shape);
  const auto        mode = static_cast<const VarianceOperation &>(operation).boundary.mode;
  return ContinuedBytes(boxes, mode, PixelSize(shape.inputKinds[0])) + VariancePassesBytes(shape.inputKinds[0], boxes);
}

/** In bytes that take as long (measured on an H200): 25 a voxel of a pass, and 3 for each step of its radius. */
double
CostOfVariance(const Operation & operation, const ChunkShape & shape)
{
  const WindowBoxes boxes = BoxesOf(operation, shape);
  double            bytes =
    static_cast<double>(PixelSize(shape.outputKind)) * static_cast<double>(shape.outputBox.NumberOfVoxels());
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    bytes += static_cast<double>(25 + 3 * boxes.radius[boxes.axes[pass]]) *
             static_cast<double>(boxes.Before(pass).NumberOfVoxels());
  }
  return bytes;
}

} // namespace

void
RegisterCudaVariance(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunVariance;
  kernel.scratchBytes = ScratchOfVariance;
  kernel.cost = CostOfVariance;
  registry.Register("variance", { kernel });
}

} // namespace chunkwise
