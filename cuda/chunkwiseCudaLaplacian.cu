/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseError.h"
#include "chunkwiseLaplacianOperation.h"

#include <string>
#include <type_traits>
#include <vector>

namespace chunkwise
{

namespace
{

bool
UsesDouble(PixelKind kind)
{
  return kind != PixelKind::Float32 && PixelSize(kind) > 2;
}

/** The weights of a pass: `rows` rows of g, then of h. */
template <typename TAcc>
struct WeightTables
{
  const TAcc * g;
  const TAcc * h;
  std::int64_t rows;
  std::int64_t extent; ///< of the image along the axis
  std::int64_t radius;
  int          axis;

  __device__ std::int64_t
             Row(std::int64_t i) const
  {
    return WeightRow(i, extent, radius, rows) * (2 * radius + 1);
  }
};

/** Calls f with the remainder of an odd number of taps by 8 as a type. */
template <typename TFunctor>
void
DispatchRemainder(std::int64_t remainder, TFunctor && f)
{
  switch (remainder)
  {
    case 1:
      return f(std::integral_constant<int, 1>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 5:
      return f(std::integral_constant<int, 5>());
    default:
      return f(std::integral_constant<int, 7>());
  }
}

/** A position and its sums. */
template <bool VFirst, typename TAcc>
struct LaplacianSums
{
  TAcc s{ 0 };
  TAcc l{ 0 };

  __device__ void
  Add(TAcc g, TAcc h, TAcc smooth, TAcc laplacian, TAcc center)
  {
    s = MultiplyAdd(g, smooth, s);
    if constexpr (!VFirst)
    {
      l = MultiplyAdd(g, laplacian, l);
    }
    l = MultiplyAdd(h, smooth - center, l);
  }
};

/** One output of a pass. */
template <bool VFirst, typename TIn, typename TAcc>
__device__ LaplacianSums<VFirst, TAcc>
SumTaps(const WeightTables<TAcc> & weights, const TIn * smooth, std::int64_t smoothStep, const TAcc * laplacian,
        std::int64_t laplacianStep, std::int64_t i, std::int64_t lower, std::int64_t upper)
{
  // smooth and laplacian are at position i.
  LaplacianSums<VFirst, TAcc> sums;
  const std::int64_t          row = weights.Row(i) + weights.radius;
  const TAcc                  center = static_cast<TAcc>(*smooth);
  const std::int64_t          first = lower > i - weights.radius ? lower - i : -weights.radius;
  const std::int64_t          last = upper - 1 < i + weights.radius ? upper - 1 - i : weights.radius;
#pragma unroll 4
  for (std::int64_t t = first; t <= last; ++t)
  {
    sums.Add(weights.g[row + t],
             weights.h[row + t],
             static_cast<TAcc>(smooth[t * smoothStep]),
             VFirst ? TAcc(0) : laplacian[t * laplacianStep],
             center);
  }
  return sums;
}

/** Consecutive outputs of a thread. */
constexpr int Outputs = 8;

/** The outputs of which all windows lie inside and have the same weights: each tap is fetched once, and weights move
 * through the registers from output to output. Which taps belong to which output is known when this is compiled, for
 * 8 m + M taps. */
template <int M, typename TAcc>
__device__ __forceinline__ void
SumOutputs(LaplacianSums<false, TAcc> (&sums)[Outputs], const TAcc * __restrict__ g, const TAcc * __restrict__ h,
           int taps, const TAcc * smooth, std::int64_t smoothStep, const TAcc * laplacian, std::int64_t laplacianStep)
{
  TAcc      centers[Outputs];
  TAcc      weightG[Outputs];
  TAcc      weightH[Outputs];
  const int radius = taps / 2;
#pragma unroll
  for (int u = 0; u < Outputs; ++u)
  {
    sums[u] = LaplacianSums<false, TAcc>();
    centers[u] = smooth[(radius + u) * smoothStep];
  }
  const auto add = [&](int j, int s, auto isInside) {
    const TAcc value = smooth[j * smoothStep];
    const TAcc partial = laplacian[j * laplacianStep];
#pragma unroll
    for (int u = 0; u < Outputs; ++u)
    {
      if (isInside(u))
      {
        sums[u].Add(
          weightG[(s - u + Outputs) % Outputs], weightH[(s - u + Outputs) % Outputs], value, partial, centers[u]);
      }
    }
  };
  const int blocks = taps / Outputs;
  if (blocks > 0)
  {
#pragma unroll
    for (int s = 0; s < Outputs; ++s)
    {
      weightG[s] = g[s];
      weightH[s] = h[s];
      add(s, s, [s](int u) { return u <= s; });
    }
  }
  for (int block = 1; block < blocks; ++block)
  {
#pragma unroll
    for (int s = 0; s < Outputs; ++s)
    {
      weightG[s] = g[block * Outputs + s];
      weightH[s] = h[block * Outputs + s];
      add(block * Outputs + s, s, [](int) { return true; });
    }
  }
  const int base = blocks * Outputs;
#pragma unroll
  for (int s = 0; s < M + Outputs - 1; ++s)
  {
    if (s < M)
    {
      weightG[s % Outputs] = g[base + s];
      weightH[s % Outputs] = h[base + s];
    }
    add(base + s, s % Outputs, [s, blocks](int u) { return s - u < M && (s >= u || blocks > 0); });
  }
}

/** Stores what a pass gives: the last one the voxel. */
template <bool VLast, typename TAcc, typename TOut>
struct StoreLaplacian
{
  TAcc * smooth;
  TAcc * laplacian;
  TOut * out;

  __device__ void
  operator()(std::int64_t offset, TAcc s, TAcc l) const
  {
    if constexpr (VLast)
    {
      out[offset] = ConvertResult<TOut>(l);
    }
    else
    {
      smooth[offset] = s;
      laplacian[offset] = l;
    }
  }
};

/** Where the lines of a pass lie: threads run along x, blocks along the other axes. */
struct PassRows
{
  Box box;

  /** Row `row` of groups of `group` positions along `axis`. */
  __device__ Coordinates
  First(std::int64_t row, int axis, int group) const
  {
    Coordinates index = box.lower;
    auto        rest = static_cast<std::uint32_t>(row);
    for (int a = 1; a < MaxDimension; ++a)
    {
      auto extent = static_cast<std::uint32_t>(box.Extent(a));
      extent =
        a == axis ? (extent + static_cast<std::uint32_t>(group) - 1) / static_cast<std::uint32_t>(group) : extent;
      const std::uint32_t quotient = rest / extent;
      index.axis[a] += static_cast<std::int64_t>(rest - quotient * extent) * (a == axis ? group : 1);
      rest = quotient;
    }
    return index;
  }
  std::int64_t
  Count(int axis, std::int64_t group) const
  {
    std::int64_t rows = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      rows *= a == axis ? (box.Extent(a) + group - 1) / group : box.Extent(a);
    }
    return rows;
  }
};

/** Outputs of a thread in a pass along x, a block's width apart. */
constexpr int RowOutputs = 4;

/** A pass along x: lanes on consecutive voxels. */
template <bool VLast, typename TIn, typename TAcc, typename TOut>
__global__ void __launch_bounds__(128)
  LaplacianRowKernel(WeightTables<TAcc> weights, Voxels<const TIn> in, PassRows rows, std::uint32_t count,
                     StoreLaplacian<VLast, TAcc, TOut> store, Coordinates outStride)
{
  const bool         hasMiddle = weights.rows != weights.extent;
  const auto         middle = hasMiddle && weights.rows > 1 ? weights.radius * (2 * weights.radius + 1) : 0;
  const auto         r = static_cast<int>(weights.radius);
  const TAcc * const g = weights.g + middle + r;
  const TAcc * const h = weights.h + middle + r;
  for (std::uint32_t row = blockIdx.x; row < count; row += gridDim.x)
  {
    Coordinates       index = rows.First(row, -1, 1);
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

/** A pass along another axis: a thread has 8 outputs of a line. */
template <bool VLast, int M, typename TAcc, typename TOut>
__global__ void __launch_bounds__(128)
  LaplacianColumnKernel(WeightTables<TAcc> weights, Voxels<const TAcc> smooth, Voxels<const TAcc> laplacian,
                        PassRows rows, std::uint32_t count, StoreLaplacian<VLast, TAcc, TOut> store,
                        Coordinates outStride)
{
  const int          a = weights.axis;
  const std::int64_t n = rows.box.Extent(0);
  const std::int64_t tiles = (n + 127) / 128;
  const std::int64_t r = weights.radius;
  const auto         taps = static_cast<int>(2 * r + 1);
  const std::int64_t smoothStep = smooth.stride.axis[a];
  const std::int64_t laplacianStep = laplacian.stride.axis[a];
  const std::int64_t lower = smooth.box.lower.axis[a];
  const std::int64_t upper = smooth.box.upper.axis[a];
  const bool         hasMiddle = weights.rows != weights.extent || weights.rows == 1;
  const std::int64_t middle = weights.rows > 1 ? r * taps : 0;
  for (std::int64_t block = blockIdx.x; block < tiles * count; block += gridDim.x)
  {
    const auto         row = static_cast<std::uint32_t>(block / tiles);
    const std::int64_t x = (block - row * tiles) * 128 + threadIdx.x;
    if (x >= n)
    {
      continue;
    }
    Coordinates index = rows.First(row, a, Outputs);
    index.axis[0] += x;
    std::int64_t offset = 0;
    for (int b = 0; b < MaxDimension; ++b)
    {
      offset += (index.axis[b] - rows.box.lower.axis[b]) * outStride.axis[b];
    }
    const std::int64_t first = index.axis[a];
    const std::int64_t end = rows.box.upper.axis[a] - first < Outputs ? rows.box.upper.axis[a] : first + Outputs;
    const TAcc * const s = &smooth[index];
    const TAcc * const l = &laplacian[index];
    if (hasMiddle && end - first == Outputs && first - r >= lower && first + Outputs - 1 + r < upper)
    {
      LaplacianSums<false, TAcc> sums[Outputs];
      SumOutputs<M>(sums,
                    weights.g + middle,
                    weights.h + middle,
                    taps,
                    s - r * smoothStep,
                    smoothStep,
                    l - r * laplacianStep,
                    laplacianStep);
#pragma unroll
      for (int u = 0; u < Outputs; ++u)
      {
        store(offset + u * outStride.axis[a], sums[u].s, sums[u].l);
      }
      continue;
    }
    for (std::int64_t i = first; i < end; ++i)
    {
      const auto sums = SumTaps<false, TAcc, TAcc>(weights,
                                                   s + (i - first) * smoothStep,
                                                   smoothStep,
                                                   l + (i - first) * laplacianStep,
                                                   laplacianStep,
                                                   i,
                                                   lower,
                                                   upper);
      store(offset + (i - first) * outStride.axis[a], sums.s, sums.l);
    }
  }
}

template <typename TAcc>
std::size_t
BytesOfPass(const WindowBoxes & boxes, int pass)
{
  return Aligned(static_cast<std::size_t>(boxes.Intermediate(pass)) * sizeof(TAcc));
}

template <typename TPixel, typename TAcc, typename TOut>
void
Run(const KernelCall & call)
{
  const auto &      operation = static_cast<const LaplacianOperation &>(*call.operation);
  const WindowBoxes boxes(call.output.box, call.image, operation.GetRadius(), operation.boundary.mode, true);
  char *            scratch = static_cast<char *>(call.scratch);
  const auto        pixels = ContinueImage<TPixel>(call, boxes, operation.boundary, scratch);
  TAcc *            smooth[2];
  TAcc *            laplacian[2];
  for (int i = 0; i < 2; ++i)
  {
    smooth[i] = reinterpret_cast<TAcc *>(scratch);
    laplacian[i] = reinterpret_cast<TAcc *>(scratch + BytesOfPass<TAcc>(boxes, i));
    scratch += 2 * BytesOfPass<TAcc>(boxes, i);
  }
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    const int                 a = boxes.axes[pass];
    const std::int64_t        n = call.image.Extent(a);
    const std::vector<double> exact = operation.GetTables(a, n);
    const std::vector<TAcc>   both(exact.begin(), exact.end());
    const auto * const        table = static_cast<const TAcc *>(call.tables->Get(
      operation.GetKey() + (sizeof(TAcc) == 4 ? " f32 " : " f64 ") + std::to_string(a) + " " + std::to_string(n),
      both.data(),
      both.size() * sizeof(TAcc)));
    const WeightTables<TAcc>  weights{ table, table + both.size() / 2, operation.GetNumberOfRows(a, n),
                                      n,     boxes.radius[a],         a };
    const PassRows            rows{ boxes.after[pass] };
    const auto                launch = [&](auto isLast) {
      constexpr bool last = decltype(isLast)::value;
      using Out = std::conditional_t<last, TOut, TAcc>;
      const Coordinates                     outStride = last ? call.output.stride : StridesOf(boxes.after[pass]);
      const StoreLaplacian<last, TAcc, Out> store{ smooth[pass % 2],
                                                   laplacian[pass % 2],
                                                   last ? static_cast<Out *>(call.output.data) : nullptr };
      const std::int64_t                    count = rows.Count(a == 0 ? -1 : a, Outputs);
      if (count > INT32_MAX)
      {
        throw DeviceError(DeviceError::Kind::OutOfMemory, "LaplacianColumnKernel", "", 0, "too many rows in a chunk");
      }
      if (a == 0)
      {
        LaplacianRowKernel<last, TPixel, TAcc, Out><<<BlocksFor(count, 1), 128, 0, StreamOf(call)>>>(
          weights, pixels, rows, static_cast<std::uint32_t>(count), store, outStride);
        CheckLaunch("LaplacianRowKernel");
        return;
      }
      const std::int64_t tiles = (boxes.after[pass].Extent(0) + 127) / 128;
      const auto         source = DenseVoxels<const TAcc>(smooth[(pass + 1) % 2], boxes.Before(pass));
      const auto         partial = DenseVoxels<const TAcc>(laplacian[(pass + 1) % 2], boxes.Before(pass));
      DispatchRemainder((2 * weights.radius + 1) % Outputs, [&](auto remainder) {
        LaplacianColumnKernel<last, decltype(remainder)::value, TAcc, Out>
          <<<BlocksFor(tiles * count, 1), 128, 0, StreamOf(call)>>>(
            weights, source, partial, rows, static_cast<std::uint32_t>(count), store, outStride);
      });
      CheckLaunch("LaplacianColumnKernel");
    };
    pass + 1 == boxes.count ? launch(std::true_type()) : launch(std::false_type());
  }
}

void
RunLaplacian(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Acc = std::conditional_t<std::is_same<Pixel, float>::value || sizeof(Pixel) <= 2, float, double>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { Run<Pixel, Acc, decltype(out)>(call); });
  });
}

WindowBoxes
BoxesOf(const Operation & operation, const ChunkShape & shape)
{
  const auto & laplacian = static_cast<const LaplacianOperation &>(operation);
  return WindowBoxes(shape.outputBox, shape.image, laplacian.GetRadius(), laplacian.boundary.mode, true);
}

std::size_t
ScratchOfLaplacian(const Operation & operation, const ChunkShape & shape)
{
  const WindowBoxes boxes = BoxesOf(operation, shape);
  const std::size_t passes = UsesDouble(shape.inputKinds[0])
                               ? BytesOfPass<double>(boxes, 0) + BytesOfPass<double>(boxes, 1)
                               : BytesOfPass<float>(boxes, 0) + BytesOfPass<float>(boxes, 1);
  return 2 * passes + ContinuedBytes(boxes,
                                     static_cast<const LaplacianOperation &>(operation).boundary.mode,
                                     PixelSize(shape.inputKinds[0]));
}

/** Passes read and write two accumulators; four taps cost about a byte each. */
double
CostOfLaplacian(const Operation & operation, const ChunkShape & shape)
{
  const WindowBoxes boxes = BoxesOf(operation, shape);
  const double      accumulator = UsesDouble(shape.inputKinds[0]) ? 8 : 4;
  double            bytes = 0;
  for (int pass = 0; pass < boxes.count; ++pass)
  {
    bytes += (4 * accumulator + static_cast<double>(2 * boxes.radius[boxes.axes[pass]])) *
             static_cast<double>(boxes.Before(pass).NumberOfVoxels());
  }
  return bytes;
}

} // namespace

void
RegisterCudaLaplacian(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunLaplacian;
  kernel.scratchBytes = ScratchOfLaplacian;
  kernel.cost = CostOfLaplacian;
  registry.Register("laplacian", kernel);
}

} // namespace chunkwise
