/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseFlatExtremumOperation.h"

namespace chunkwise
{

namespace
{

using Run = FlatExtremumOperation::Run;

/** A block a row of outputs: which runs are inside the image is the same for all of it but along x. */
template <typename TPixel, typename TOut>
__global__ void __launch_bounds__(128)
  FlatExtremumKernel(const __grid_constant__ Voxels<const TPixel> in, const __grid_constant__ Voxels<TOut> out,
                     const Run * __restrict__ runs, int count, typename OrderedKey<TPixel>::Type flip)
{
  using KeyOf = OrderedKey<TPixel>;
  using Key = typename KeyOf::Type;
  const std::int64_t width = out.box.Extent(0);
  const std::int64_t rows = out.box.NumberOfVoxels() / width;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x)
  {
    const Coordinates    at = IndexIn(out.box, row * width);
    const TPixel * const line = in.data + in.Offset(at);
    TOut * const         to = &out[at];
    for (std::int64_t x = threadIdx.x; x < width; x += blockDim.x)
    {
      const std::int64_t lowest = in.box.lower.axis[0] - at.axis[0] - x;
      const std::int64_t end = in.box.upper.axis[0] - at.axis[0] - x;
      Key                largest = KeyOf::Lowest;
      for (int r = 0; r < count; ++r)
      {
        const Run &    run = runs[r];
        const TPixel * taps = line + x;
        bool           there = true;
        for (int a = 1; a < MaxDimension; ++a)
        {
          const std::int64_t i = at.axis[a] + run.first[a];
          there = there && i >= in.box.lower.axis[a] && i < in.box.upper.axis[a];
          taps += run.first[a] * in.stride.axis[a];
        }
        if (!there)
        {
          continue;
        }
        const auto first = static_cast<int>(lowest > run.first[0] ? lowest : run.first[0]);
        const auto last = static_cast<int>(end < run.first[0] + run.length ? end : run.first[0] + run.length);
#pragma unroll 4
        for (int t = first; t < last; ++t)
        {
          const Key key = KeyOf::From(taps[t], flip);
          largest = key > largest ? key : largest;
        }
      }
      to[x] = static_cast<TOut>(FlatResult<TPixel>(largest, flip));
    }
  }
}

void
RunFlatExtremum(const KernelCall & call)
{
  const auto &           operation = static_cast<const FlatExtremumOperation &>(*call.operation);
  const std::vector<Run> runs = operation.GetRuns();
  const auto * const     table =
    static_cast<const Run *>(call.tables->Get(operation.GetKey(), runs.data(), runs.size() * sizeof(Run)));
  const WindowBoxes boxes(call.output.box, call.image, operation.radius, operation.boundary.mode);
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Key = typename OrderedKey<Pixel>::Type;
    char *     scratch = static_cast<char *>(call.scratch);
    const auto pixels = PadImage<Pixel>(call, boxes, operation.boundary, scratch);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      FlatExtremumKernel<Pixel, decltype(out)>
        <<<BlocksFor(call.output.box.NumberOfVoxels() / call.output.box.Extent(0), 1), 128, 0, StreamOf(call)>>>(
          pixels,
          VoxelsOf<decltype(out)>(call.output),
          table,
          static_cast<int>(runs.size()),
          operation.minimum ? Key{ -1 } : Key{ 0 });
    });
    CheckLaunch("FlatExtremumKernel");
  });
}

WindowBoxes
BoxesOf(const Operation & operation, const ChunkShape & shape)
{
  const auto & flat = static_cast<const FlatExtremumOperation &>(operation);
  return WindowBoxes(shape.outputBox, shape.image, flat.radius, flat.boundary.mode);
}

std::size_t
ScratchOfFlatExtremum(const Operation & operation, const ChunkShape & shape)
{
  return ContinuedBytes(BoxesOf(operation, shape),
                        static_cast<const FlatExtremumOperation &>(operation).boundary.mode,
                        PixelSize(shape.inputKinds[0]));
}

/** A tap costs about as much as eight bytes. */
double
CostOfFlatExtremum(const Operation & operation, const ChunkShape & shape)
{
  double taps = 0;
  for (const Run & run : static_cast<const FlatExtremumOperation &>(operation).GetRuns())
  {
    taps += run.length;
  }
  return 8 * taps * static_cast<double>(shape.outputBox.NumberOfVoxels());
}

} // namespace

void
RegisterCudaFlatExtremum(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunFlatExtremum;
  kernel.scratchBytes = ScratchOfFlatExtremum;
  kernel.cost = CostOfFlatExtremum;
  registry.Register("extremum.flat", { kernel });
}

} // namespace chunkwise
