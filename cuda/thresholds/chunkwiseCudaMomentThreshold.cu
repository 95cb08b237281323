/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaMomentColumns.cuh"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseRoundUp.h"

#include <algorithm>
#include <type_traits>

namespace chunkwise
{

namespace
{

const MomentThresholdOperation &
OperationOf(const Operation & operation)
{
  return static_cast<const MomentThresholdOperation &>(operation);
}

WindowBoxes
BoxesOf(const MomentThresholdOperation & operation, const Box & output, const Box & image)
{
  return WindowBoxes(output, image, operation.EffectiveRadius(image.Extents()), operation.boundary.mode);
}

MomentVerdict
VerdictOf(const KernelCall & call)
{
  const MomentThresholdOperation & operation = OperationOf(*call.operation);
  return { LocalThresholdRule<float>(operation),
           VoxelsOf<char>(call.output),
           call.output.kind,
           operation.givesThresholds,
           operation.boundary.mode == BoundaryMode::Renormalized,
           operation.EffectiveRadius(call.image.Extents()),
           call.image.Extents() };
}

/** The results of sums of whole windows that lie `step` numbers apart. */
template <typename TPixel>
__global__ void
MomentVoxelsKernel(Voxels<const TPixel> in, const double * __restrict__ sums, const double * __restrict__ squares,
                   int step, const __grid_constant__ MomentVerdict verdict)
{
  const Box & box = verdict.out.box;
  const auto  width = static_cast<std::uint32_t>(box.Extent(0));
  const auto  count = box.NumberOfVoxels() / width;
  for (std::int64_t row = FirstRow(); row < count; row += RowStep())
  {
    const Coordinates    first = IndexIn(box, row * width);
    const TPixel * const line = &in[first];
    const std::int64_t   to = verdict.out.Offset(first);
    const std::int64_t   others = verdict.CountTaps(first, 0);
    for (std::uint32_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t i = (row * width + x) * step;
      const std::int64_t r = verdict.radius.axis[0];
      const std::int64_t taps = verdict.cuts ? TapsOfWindow(first.axis[0] + x, r, verdict.image.axis[0]) : 2 * r + 1;
      verdict.Store(to + x,
                    static_cast<float>(line[x]),
                    make_double2(sums[i], squares[i]),
                    1.0 / static_cast<double>(others * taps));
    }
  }
}

/** `step`: numbers from one sum to the next. */
template <typename TPixel>
void
FinishVoxels(const KernelCall & call, const double * sums, const double * squares, int step)
{
  MomentVoxelsKernel<TPixel><<<BlocksOfRows(call.output.box), ThreadsOfRows(), 0, StreamOf(call)>>>(
    VoxelsOf<const TPixel>(call.inputs[0]), sums, squares, step, VerdictOf(call));
  CheckLaunch("MomentVoxelsKernel");
}

/** Calls f with the types that MomentThresholdOperation takes. */
template <typename TFunctor>
void
DispatchSmall(PixelType kind, TFunctor && f)
{
  DispatchPixelType(kind, [&](auto pixel) {
    if constexpr (IsSmall<decltype(pixel)>)
    {
      f(pixel);
    }
  });
}

/** Calls f(radius) for radii that have a kernel; otherwise false. */
template <typename TFunctor>
bool
DispatchRadius(std::int64_t radius, TFunctor && f)
{
  const auto tryAll = [&](auto... radii) {
    return ((radius == decltype(radii)::value ? (f(radii), true) : false) || ...);
  };
  return tryAll(std::integral_constant<int, 1>(),
                std::integral_constant<int, 2>(),
                std::integral_constant<int, 3>(),
                std::integral_constant<int, 4>(),
                std::integral_constant<int, 5>(),
                std::integral_constant<int, 6>(),
                std::integral_constant<int, 7>(),
                std::integral_constant<int, 8>(),
                std::integral_constant<int, 10>(),
                std::integral_constant<int, 12>());
}

/** Windows with one radius along x and y, along z the same or none. The constant beyond the edge of a later axis is
 * added up in another order, see MeanOperation. */
bool
SupportsColumns(const MomentThresholdOperation & operation, const Box & image)
{
  const Coordinates radius = operation.EffectiveRadius(image.Extents());
  return operation.boundary.mode != BoundaryMode::Constant && radius[0] == radius[1] &&
         (radius[2] == radius[0] || radius[2] == 0) && radius[3] == 0 && radius[4] == 0 &&
         DispatchRadius(radius[0], [](auto) {});
}

Box
BoxOfSums(const WindowBoxes & boxes, const Box & output)
{
  Box box = output;
  box.lower[2] = boxes.padded.lower[2];
  box.upper[2] = boxes.padded.upper[2];
  return box;
}

template <int VRadius>
void
LaunchMomentPlanes(const MomentPlanes & planes, cudaStream_t stream)
{
  using Tile = MomentTile<VRadius>;
  const MomentStrips<VRadius> strips(planes.box);
  constexpr std::size_t       bytes = sizeof(MomentStage<VRadius>);
  AllowSharedMemory(MomentPlanesKernel<VRadius>, bytes);
  MomentPlanesKernel<VRadius><<<BlocksFor(strips.count, 1), Tile::Threads, bytes, stream>>>(planes, strips);
  CheckLaunch("MomentPlanesKernel");
}

template <int VRadius>
void
LaunchMomentColumns(const MomentPlanes & planes, const MomentVerdict & verdict, cudaStream_t stream)
{
  using Tile = MomentTile<VRadius>;
  const Box &        box = verdict.out.box;
  const std::int64_t depth = box.Extent(2);
  const std::int64_t columns = box.NumberOfVoxels() / depth;
  const std::int64_t wanted = std::max<std::int64_t>(1, 131072 / columns);
  const std::int64_t segments =
    std::min({ wanted, std::max<std::int64_t>(1, depth / (4 * Tile::K)), std::int64_t{ 65535 } });
  const std::int64_t segment = (depth + segments - 1) / segments;
  const dim3 blocks(BlocksFor(columns, Tile::Threads), static_cast<unsigned int>((depth + segment - 1) / segment));
  MomentColumnsKernel<VRadius><<<blocks, Tile::Threads, 0, stream>>>(planes, verdict, segment);
  CheckLaunch("MomentColumnsKernel");
}

void
RunColumns(const KernelCall & call)
{
  const MomentThresholdOperation & operation = OperationOf(*call.operation);
  const WindowBoxes                boxes = BoxesOf(operation, call.output.box, call.image);
  const PixelType                  kind = call.inputs[0].kind;
  DispatchSmall(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    char *       scratch = static_cast<char *>(call.scratch);
    const auto   pixels = PadImage<Pixel>(call, boxes, operation.boundary, scratch);
    MomentPlanes planes{ { reinterpret_cast<const char *>(pixels.data), pixels.box, pixels.stride },
                         kind,
                         reinterpret_cast<double2 *>(scratch),
                         BoxOfSums(boxes, call.output.box) };
    DispatchRadius(boxes.radius[0], [&](auto radius) {
      LaunchMomentPlanes<decltype(radius)::value>(planes, StreamOf(call));
      if (boxes.radius[2] > 0)
      {
        LaunchMomentColumns<decltype(radius)::value>(planes, VerdictOf(call), StreamOf(call));
      }
    });
    if (boxes.radius[2] == 0)
    {
      const auto * const sums = reinterpret_cast<const double *>(planes.sums);
      FinishVoxels<Pixel>(call, sums, sums + 1, 2);
    }
  });
}

/** Voxels in double, or their squares. Both images are dense. */
template <typename TPixel>
__global__ void
ToDoubleKernel(const TPixel * __restrict__ in, double * __restrict__ out, std::int64_t n, bool squares)
{
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step)
  {
    const auto voxel = static_cast<double>(in[i]);
    out[i] = squares ? voxel * voxel : voxel;
  }
}

/** The operation that sums the windows of an image of double. */
MeanOperation
SumsOf(const MomentThresholdOperation & operation, double constant)
{
  MeanOperation sums;
  sums.radius = operation.radius;
  sums.boundary = { operation.boundary.mode, PixelValue(constant) };
  sums.sums = true;
  return sums;
}

std::size_t
BytesOfDoubles(const Box & box)
{
  return RoundUp(static_cast<std::size_t>(box.NumberOfVoxels()) * sizeof(double));
}

void
RunSums(const KernelCall & call)
{
  const MomentThresholdOperation & operation = OperationOf(*call.operation);
  const Box &                      box = call.inputs[0].box;
  const std::int64_t               n = box.NumberOfVoxels();
  char * const                     scratch = static_cast<char *>(call.scratch);
  const BufferView                 image = DenseView(scratch, PixelType::Float64, box);
  char * const                     sums[2] = { scratch + BytesOfDoubles(box),
                                               scratch + BytesOfDoubles(box) + BytesOfDoubles(call.output.box) };
  DispatchSmall(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const auto constant = static_cast<double>(ConstantPixel<Pixel>(operation.boundary.constant));
    for (const int i : { 0, 1 })
    {
      ToDoubleKernel<<<BlocksFor(n, 256), 256, 0, StreamOf(call)>>>(
        static_cast<const Pixel *>(call.inputs[0].data), static_cast<double *>(image.data), n, i == 1);
      CheckLaunch("ToDoubleKernel");
      const MeanOperation mean = SumsOf(operation, i == 1 ? constant * constant : constant);
      KernelCall          part = call;
      part.operation = &mean;
      part.inputs[0] = image;
      part.output = DenseView(sums[i], PixelType::Float64, call.output.box);
      part.writable = part.output.box;
      part.scratch = sums[1] + BytesOfDoubles(call.output.box);
      part.scratchBytes = call.scratchBytes - static_cast<std::size_t>(static_cast<char *>(part.scratch) - scratch);
      part.chosen = nullptr;
      call.kernels->Get(mean.GetName(), operation.GetName()).run(part);
    }
    FinishVoxels<Pixel>(call, reinterpret_cast<const double *>(sums[0]), reinterpret_cast<const double *>(sums[1]), 1);
  });
}

KernelChoice
ChooseMomentThreshold(const Operation & operation, const ChunkShape & shape)
{
  const MomentThresholdOperation & threshold = OperationOf(operation);
  const std::size_t                pixel = PixelSize(shape.inputKinds[0]);
  const double                     ends =
    static_cast<double>(shape.inputBox.NumberOfVoxels()) * static_cast<double>(pixel) +
    static_cast<double>(shape.outputBox.NumberOfVoxels()) * static_cast<double>(PixelSize(shape.outputKind));
  if (SupportsColumns(threshold, shape.image))
  {
    const WindowBoxes boxes = BoxesOf(threshold, shape.outputBox, shape.image);
    const std::size_t sums = 2 * BytesOfDoubles(BoxOfSums(boxes, shape.outputBox));
    return { "columns",
             RunColumns,
             ContinuedBytes(boxes, threshold.boundary.mode, pixel) + sums,
             ends + 2 * static_cast<double>(sums) };
  }
  const MeanOperation mean = SumsOf(threshold, 0);
  ChunkShape          part = shape;
  part.inputKinds[0] = part.outputKind = PixelType::Float64;
  const Kernel &    kernel = shape.kernels->Get(mean.GetName(), operation.GetName());
  const std::size_t image = BytesOfDoubles(shape.inputBox);
  const std::size_t sums = 2 * BytesOfDoubles(shape.outputBox);
  return { "sums",
           RunSums,
           image + sums + kernel.scratchBytes(mean, part),
           ends + 2 * (static_cast<double>(image) + kernel.cost(mean, part)) + static_cast<double>(sums) };
}

} // namespace

void
RegisterCudaMomentThreshold(KernelRegistry & registry)
{
  registry.Register("momentthreshold", { MakeChoosingKernel<ChooseMomentThreshold>(true) });
}

} // namespace chunkwise
