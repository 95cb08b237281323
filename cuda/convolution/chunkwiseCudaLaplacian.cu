/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaLaplacianMarch.cuh"
#include "chunkwiseCudaLaplacianPasses.cuh"
#include "chunkwiseError.h"
#include "chunkwiseKernelChoice.h"
#include "chunkwiseLaplacianOperation.h"
#include "chunkwiseRealOf.h"

#include <string>
#include <type_traits>
#include <vector>

namespace chunkwise
{

namespace
{

/** The rows of a box, numbered. */
struct Rows
{
  Box box;

  __device__ Coordinates
  First(std::int64_t row) const
  {
    Coordinates index = box.lower;
    auto        rest = static_cast<std::uint32_t>(row);
    for (int a = 1; a < MaxDimension; ++a)
    {
      const auto          extent = static_cast<std::uint32_t>(box.Extent(a));
      const std::uint32_t quotient = rest / extent;
      index.axis[a] += static_cast<std::int64_t>(rest - quotient * extent);
      rest = quotient;
    }
    return index;
  }
  std::int64_t
  Count() const
  {
    return box.NumberOfVoxels() / box.Extent(0);
  }
};

/** Outputs of a thread in a pass along x, a block's width apart. */
constexpr int RowOutputs = 4;

/** A pass along x: lanes on consecutive voxels. */
template <bool VLast, typename TIn, typename TAcc, typename TOut>
__global__ void __launch_bounds__(128)
  LaplacianRowKernel(WeightTables<TAcc> weights, Voxels<const TIn> in, Rows rows, std::uint32_t count,
                     StoreLaplacian<VLast, TAcc, TOut> store, Coordinates outStride)
{
  const bool         hasMiddle = weights.rows != weights.extent;
  const auto         middle = hasMiddle && weights.rows > 1 ? weights.radius * (2 * weights.radius + 1) : 0;
  const auto         r = static_cast<int>(weights.radius);
  const TAcc * const g = weights.g + middle + r;
  const TAcc * const h = weights.h + middle + r;
  for (std::uint32_t row = blockIdx.x; row < count; row += gridDim.x)
  {
    Coordinates       index = rows.First(row);
    const TIn * const line = &in[index];
    std::int64_t      offset = 0;
    for (int a = 1; a < MaxDimension; ++a)
    {
      offset += (index.axis[a] - rows.box.lower.axis[a]) * outStride.axis[a];
    }
    const std::int64_t n = rows.box.Extent(0);
    // Several outputs of a thread share the weights that it fetches.
    for (std::int64_t x = threadIdx.x; x < n; x += 128 * RowOutputs)
    {
      LaplacianSums<true, TAcc> sums[RowOutputs];
      TAcc                      centers[RowOutputs];
      bool                      whole[RowOutputs];
#pragma unroll
      for (int u = 0; u < RowOutputs; ++u)
      {
        const std::int64_t i = rows.box.lower.axis[0] + x + 128 * u;
        const bool         inside = x + 128 * u < n;
        whole[u] = inside && hasMiddle && r > 0 && i - r >= in.box.lower.axis[0] && i + r < in.box.upper.axis[0];
        centers[u] = inside ? static_cast<TAcc>(line[x + 128 * u]) : TAcc(0);
        if (inside && r == 0)
        {
          sums[u].s = centers[u];
        }
        else if (inside && !whole[u])
        {
          sums[u] = SumTaps<true, TIn, TAcc>(
            weights, line + x + 128 * u, 1, nullptr, 0, i, in.box.lower.axis[0], in.box.upper.axis[0]);
        }
      }
      for (int t = -r; t <= r && r > 0; ++t)
      {
        const TAcc weightG = g[t];
        const TAcc weightH = h[t];
#pragma unroll
        for (int u = 0; u < RowOutputs; ++u)
        {
          if (whole[u])
          {
            sums[u].Add(weightG, weightH, static_cast<TAcc>(line[x + 128 * u + t]), TAcc(0), centers[u]);
          }
        }
      }
#pragma unroll
      for (int u = 0; u < RowOutputs; ++u)
      {
        if (x + 128 * u < n)
        {
          store(offset + x + 128 * u, sums[u].s, sums[u].l);
        }
      }
    }
  }
}

/** Which boxes the passes go through, and what they leave in scratch. */
struct LaplacianPlan
{
  WindowBoxes          boxes;
  LaplacianPlaneLayout layout{};
  /** All passes are one kernel. */
  bool marched;
  /** The first two passes are one kernel. */
  bool fused{ false };

  LaplacianPlan(const LaplacianOperation & operation, const ChunkShape & shape)
    : boxes(shape.outputBox, shape.image, operation.GetRadius(), operation.boundary.mode, true)
    , marched(shape.inputKinds[0] == PixelType::Float32 && shape.outputKind == PixelType::Float32 &&
              IsLaplacianMarched(boxes.radius))
  {
    const std::size_t      accumulatorBytes = UsesDouble(shape.inputKinds[0]) ? 8 : 4;
    constexpr std::int64_t longest = std::int64_t{ 1 } << 30;
    if (!marched && boxes.count > 2 && boxes.axes[1] == 1 && boxes.radius[0] > 0 && boxes.padded.Extent(0) < longest &&
        boxes.padded.Extent(1) < longest)
    {
      layout = LaplacianPlaneLayout::Make(boxes.radius[0], boxes.radius[1], accumulatorBytes);
      fused = layout.fits;
    }
  }

  /** Bytes of S, and as many of L. */
  std::size_t
  BytesOfPass(int pass, std::size_t accumulatorBytes) const
  {
    return marched || (fused && pass == 0)
             ? 0
             : RoundUp(static_cast<std::size_t>(boxes.Intermediate(pass)) * accumulatorBytes);
  }
};

/** A pass along another axis than x. */
template <bool VLast, typename TAcc, typename TOut>
void
LaunchLaplacianColumns(const WeightTables<TAcc> & tables, const Pass<TAcc> & lines, const TAcc * smooth,
                       const TAcc * laplacian, const StoreLaplacian<VLast, TAcc, TOut> & store, cudaStream_t stream)
{
  const std::int64_t slots = (2 * tables.radius + Together - 1) / Together + 1;
  const auto         bytes = [&](int threads) {
    return (slots * 2 * Together * threads + 2 * (2 * tables.radius + 1)) * static_cast<std::int64_t>(sizeof(TAcc));
  };
  int threads = 128;
  while (threads > 32 && bytes(threads) > 56 * 1024)
  {
    threads /= 2;
  }
  if (bytes(threads) > SharedMemoryOfDevice())
  {
    LaplacianDirectKernel<VLast><<<BlocksFor(lines.outer * lines.outCount * lines.inner, 128), 128, 0, stream>>>(
      tables, lines, smooth, laplacian, store);
    CheckLaunch("LaplacianDirectKernel");
    return;
  }
  const LineGrid grid(lines, threads, 2 * tables.radius);
  const auto     kernel = LaplacianRingKernel<VLast, TAcc, TOut>;
  AllowSharedMemory(kernel, static_cast<std::size_t>(bytes(threads)));
  kernel<<<grid.blocks, threads, static_cast<std::size_t>(bytes(threads)), stream>>>(
    tables, lines, smooth, laplacian, store, grid.segment, static_cast<int>(slots));
  CheckLaunch("LaplacianRingKernel");
}

template <typename TPixel, typename TAcc>
void
LaunchLaplacianPlanes(const LaplacianPlan & plan, const WeightTables<TAcc> & x, const WeightTables<TAcc> & y,
                      const Voxels<const TPixel> & pixels, TAcc * smooth, TAcc * laplacian, cudaStream_t stream)
{
  const Box &        after = plan.boxes.after[1];
  const std::int64_t columns = (after.Extent(0) + StripWidth - 1) / StripWidth;
  const std::int64_t planes = after.NumberOfVoxels() / (after.Extent(0) * after.Extent(1));
  const std::int64_t segment = PlaneSegment(columns * planes, after.Extent(1), y.radius);
  const std::int64_t tiles = columns * ((after.Extent(1) + segment - 1) / segment) * planes;
  const auto         kernel = LaplacianPlaneKernel<TPixel, TAcc>;
  AllowSharedMemory(kernel, plan.layout.bytes);
  kernel<<<BlocksFor(tiles, 1), StripWidth, plan.layout.bytes, stream>>>(
    x, y, pixels, after, smooth, laplacian, plan.layout, static_cast<int>(segment));
  CheckLaunch("LaplacianPlaneKernel");
}

template <typename TPixel, typename TAcc, typename TOut>
void
Run(const KernelCall & call)
{
  constexpr bool      isFloat = std::is_same<TPixel, float>::value && std::is_same<TOut, float>::value;
  const auto &        operation = static_cast<const LaplacianOperation &>(*call.operation);
  const LaplacianPlan plan(operation, ShapeOf(call));
  const WindowBoxes & boxes = plan.boxes;
  char *              scratch = static_cast<char *>(call.scratch);
  const auto          pixels = PadImage<TPixel>(call, boxes, operation.boundary, scratch);
  TAcc *              smooth[2];
  TAcc *              laplacian[2];
  for (int i = 0; i < 2; ++i)
  {
    const std::size_t bytes = plan.BytesOfPass(i, sizeof(TAcc));
    smooth[i] = reinterpret_cast<TAcc *>(scratch);
    laplacian[i] = reinterpret_cast<TAcc *>(scratch + bytes);
    scratch += 2 * bytes;
  }
  const auto tablesOf = [&](int pass) {
    const int                 a = boxes.axes[pass];
    const std::int64_t        n = call.image.Extent(a);
    const std::vector<double> exact = operation.GetTables(a, n);
    const std::vector<TAcc>   both(exact.begin(), exact.end());
    const auto * const        table = static_cast<const TAcc *>(call.tables->Get(
      operation.GetKey() + (sizeof(TAcc) == 4 ? " f32 " : " f64 ") + std::to_string(a) + " " + std::to_string(n),
      both.data(),
      both.size() * sizeof(TAcc)));
    return WeightTables<TAcc>{ table, table + both.size() / 2, operation.GetNumberOfRows(a, n), n, boxes.radius[a] };
  };
  if constexpr (isFloat)
  {
    if (plan.marched)
    {
      return RunLaplacianMarch(
        operation, { tablesOf(0), tablesOf(1), tablesOf(2) }, pixels, VoxelsOf<float>(call.output), StreamOf(call));
    }
  }
  if (plan.fused)
  {
    LaunchLaplacianPlanes(plan, tablesOf(0), tablesOf(1), pixels, smooth[1], laplacian[1], StreamOf(call));
  }
  for (int pass = plan.fused ? 2 : 0; pass < boxes.count; ++pass)
  {
    const WeightTables<TAcc> tables = tablesOf(pass);
    const auto               launch = [&](auto isLast) {
      constexpr bool last = decltype(isLast)::value;
      using Out = std::conditional_t<last, TOut, TAcc>;
      const StoreLaplacian<last, TAcc, Out> store{ smooth[pass % 2],
                                                   laplacian[pass % 2],
                                                   last ? static_cast<Out *>(call.output.data) : nullptr };
      if (pass > 0)
      {
        LaunchLaplacianColumns(
          tables, LinesOf<TAcc>(boxes, pass), smooth[(pass + 1) % 2], laplacian[(pass + 1) % 2], store, StreamOf(call));
        return;
      }
      const Rows         rows{ boxes.after[0] };
      const std::int64_t count = rows.Count();
      if (count > INT32_MAX)
      {
        throw DeviceError(DeviceError::Kind::OutOfMemory, "LaplacianRowKernel", "", 0, "too many rows in a chunk");
      }
      LaplacianRowKernel<last, TPixel, TAcc, Out>
        <<<BlocksFor(count, 1), 128, 0, StreamOf(call)>>>(tables,
                                                          pixels,
                                                          rows,
                                                          static_cast<std::uint32_t>(count),
                                                          store,
                                                          last ? call.output.stride : StridesOf(boxes.after[0]));
      CheckLaunch("LaplacianRowKernel");
    };
    pass + 1 == boxes.count ? launch(std::true_type()) : launch(std::false_type());
  }
}

void
RunLaplacian(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Acc = RealOf<Pixel>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { Run<Pixel, Acc, decltype(out)>(call); });
  });
}

/** Kernels read and write two accumulators, the march one; four taps cost about a byte each. */
KernelChoice
ChooseLaplacian(const Operation & operation, const ChunkShape & shape)
{
  const auto &        laplacian = static_cast<const LaplacianOperation &>(operation);
  const LaplacianPlan plan(laplacian, shape);
  const std::size_t   accumulatorBytes = UsesDouble(shape.inputKinds[0]) ? 8 : 4;
  const std::size_t   continued = ContinuedBytes(plan.boxes, laplacian.boundary.mode, PixelSize(shape.inputKinds[0]));
  const auto          accumulator = static_cast<double>(accumulatorBytes);
  double              bytes = 0;
  for (int pass = 0; pass < plan.boxes.count; ++pass)
  {
    const double moved = plan.marched              ? 2.0 / plan.boxes.count
                         : plan.fused && pass == 0 ? 1
                         : plan.fused && pass == 1 ? 2
                                                   : 4;
    bytes += (moved * accumulator + static_cast<double>(2 * plan.boxes.radius[plan.boxes.axes[pass]])) *
             static_cast<double>(plan.boxes.Before(pass).NumberOfVoxels());
  }
  return { plan.marched ? "march"
           : plan.fused ? "planes"
                        : "passes",
           RunLaplacian,
           2 * (plan.BytesOfPass(0, accumulatorBytes) + plan.BytesOfPass(1, accumulatorBytes)) + continued,
           bytes };
}

} // namespace

void
RegisterCudaLaplacian(KernelRegistry & registry)
{
  registry.Register("laplacian", { MakeChoosingKernel<ChooseLaplacian>(true) });
}

} // namespace chunkwise
