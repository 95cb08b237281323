/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaVariance.cuh"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseVarianceOperation.h"

#include <algorithm>
#include <type_traits>

namespace chunkwise
{

namespace
{

WindowBoxes
BoxesOf(const VarianceOperation & operation, const Box & output, const Box & image)
{
  return WindowBoxes(output, image, operation.EffectiveRadius(image.Extents()), operation.boundary.mode);
}

enum class VarianceWay
{
  March,
  Columns,
  Sums,
  Tiles,
  Passes
};

template <VarianceWay VWay>
void
RunVariance(const KernelCall & call)
{
  const auto &       operation = static_cast<const VarianceOperation &>(*call.operation);
  const WindowBoxes  boxes = BoxesOf(operation, call.output.box, call.image);
  const Coordinates  radius = boxes.radius;
  const bool         takesRoot = operation.takesRoot;
  const cudaStream_t stream = StreamOf(call);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    constexpr bool isFloat = std::is_same<Pixel, float>::value;
    constexpr bool isShort = std::is_same<Pixel, std::uint8_t>::value || std::is_same<Pixel, std::uint16_t>::value ||
                             std::is_same<Pixel, std::int16_t>::value;
    char *     scratch = static_cast<char *>(call.scratch);
    const auto pixels = PadImage<Pixel>(call, boxes, operation.boundary, scratch);
    const auto any = CastVoxels<const char>(pixels);
    if constexpr (VWay == VarianceWay::March && isFloat)
    {
      RunVarianceMarch(pixels, call.output, radius, takesRoot, stream);
    }
    else if constexpr (VWay == VarianceWay::Columns && isFloat)
    {
      RunVarianceColumns(pixels, call.output, radius, takesRoot, stream);
    }
    else if constexpr (VWay == VarianceWay::Sums && isShort)
    {
      RunVarianceSums(pixels, call.output, radius, stream);
    }
    else if constexpr (VWay == VarianceWay::Tiles)
    {
      RunVarianceTiles(call.inputs[0].kind, any, call.output, radius, takesRoot, stream);
    }
    else
    {
      RunVariancePasses(call.inputs[0].kind, boxes, any, call.output, takesRoot, scratch, stream);
    }
  });
}

/** In bytes that take as long (measured on an H200): 25 a voxel of a pass, and 3 for each step of its radius. */
double
CostOfVariance(const WindowBoxes & boxes, const ChunkShape & shape)
{
  double bytes =
    static_cast<double>(PixelSize(shape.outputKind)) * static_cast<double>(shape.outputBox.NumberOfVoxels());
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    bytes += static_cast<double>(25 + 3 * boxes.radius[boxes.axes[pass]]) *
             static_cast<double>(boxes.Before(pass).NumberOfVoxels());
  }
  return bytes;
}

KernelChoice
ChooseVariance(const Operation & operation, const ChunkShape & shape)
{
  const auto &        variance = static_cast<const VarianceOperation &>(operation);
  const PixelType     kind = shape.inputKinds[0];
  const WindowBoxes   boxes = BoxesOf(variance, shape.outputBox, shape.image);
  const std::int64_t  rowStride = std::max({ boxes.padded.Extent(0), shape.inputBox.Extent(0), shape.image.Extent(0) });
  const VarianceShape request{ kind,         shape.outputKind, variance.takesRoot, boxes.radius,
                               boxes.padded, shape.outputBox,  rowStride };
  const std::size_t   scratch = ContinuedBytes(boxes, variance.boundary.mode, PixelSize(kind));
  const double        cost = CostOfVariance(boxes, shape);
  if (SupportsVarianceMarch(request))
  {
    return { "march", RunVariance<VarianceWay::March>, scratch, cost };
  }
  if (SupportsVarianceColumns(request))
  {
    return { "columns", RunVariance<VarianceWay::Columns>, scratch, cost };
  }
  if (SupportsVarianceSums(request))
  {
    return { "sums", RunVariance<VarianceWay::Sums>, scratch, cost };
  }
  if (SupportsVarianceTiles(request))
  {
    return { "tiles", RunVariance<VarianceWay::Tiles>, scratch, cost };
  }
  return { "passes", RunVariance<VarianceWay::Passes>, scratch + VariancePassesBytes(kind, boxes), cost };
}

} // namespace

void
RegisterCudaVariance(KernelRegistry & registry)
{
  registry.Register("variance", { MakeChoosingKernel<ChooseVariance>(true) });
}

} // namespace chunkwise
