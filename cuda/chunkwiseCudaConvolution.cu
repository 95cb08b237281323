/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaWindow.cuh"
#include "chunkwiseRealOf.h"

#include <type_traits>
#include <vector>

namespace chunkwise
{

namespace
{

template <typename TAcc>
struct ConvolutionTables
{
  const TAcc * weights;
  const TAcc * norms; ///< nullptr: none
  Coordinates  normRows;
  Coordinates  extent; ///< of the image
  Coordinates  radius;
};

/** Consecutive outputs along x of a warp's lanes: a thread has every 32nd. */
constexpr int OutputsOfThread = 4;

/** A thread computes outputs 32 voxels apart, so that each weight is fetched once for all of them. */
template <bool VZeroSum, typename TPixel, typename TAcc, typename TOut>
__global__ void __launch_bounds__(128)
  ConvolutionKernel(Voxels<const TPixel> in, ConvolutionTables<TAcc> tables, TOut * __restrict__ out, Box box)
{
  constexpr int      R = OutputsOfThread;
  const std::int64_t width = box.Extent(0);
  const std::int64_t tiles = (width + 32 * R - 1) / (32 * R);
  const std::int64_t rows = box.NumberOfVoxels() / width;
  const int          lane = static_cast<int>(threadIdx.x % 32);
  const std::int64_t warp = static_cast<std::int64_t>(blockIdx.x) * 4 + threadIdx.x / 32;
  for (std::int64_t work = warp; work < tiles * rows; work += static_cast<std::int64_t>(gridDim.x) * 4)
  {
    const std::int64_t row = work / tiles;
    Coordinates        at = IndexIn(box, row * width);
    const std::int64_t x0 = (work - row * tiles) * 32 * R + lane;
    Coordinates        lower{};
    Coordinates        upper{};
    for (int a = 1; a < MaxDimension; ++a)
    {
      const std::int64_t r = tables.radius.axis[a];
      lower.axis[a] = at.axis[a] - r > in.box.lower.axis[a] ? -r : in.box.lower.axis[a] - at.axis[a];
      upper.axis[a] = at.axis[a] + r < in.box.upper.axis[a] - 1 ? r : in.box.upper.axis[a] - 1 - at.axis[a];
    }
    const TPixel * const line = &in[at];
    const auto           r = static_cast<int>(tables.radius.axis[0]);
    TAcc                 sums[R];
    TAcc                 centers[R];
    int                  first[R];
    int                  last[R];
#pragma unroll
    for (int u = 0; u < R; ++u)
    {
      const std::int64_t x = x0 + 32 * u;
      const std::int64_t i = box.lower.axis[0] + x;
      sums[u] = TAcc(0);
      first[u] = static_cast<int>(i - r > in.box.lower.axis[0] ? -r : in.box.lower.axis[0] - i);
      last[u] = static_cast<int>(i + r < in.box.upper.axis[0] - 1 ? r : in.box.upper.axis[0] - 1 - i);
      last[u] = x < width ? last[u] : first[u] - 1;
      centers[u] = VZeroSum && x < width ? static_cast<TAcc>(line[x]) : TAcc(0);
    }
    const std::int64_t kx = 2 * r + 1;
    const std::int64_t ky = 2 * tables.radius.axis[1] + 1;
    const std::int64_t kz = 2 * tables.radius.axis[2] + 1;
    const std::int64_t kt = 2 * tables.radius.axis[3] + 1;
    for (std::int64_t w = lower.axis[4]; w <= upper.axis[4]; ++w)
    {
      for (std::int64_t t = lower.axis[3]; t <= upper.axis[3]; ++t)
      {
        for (std::int64_t z = lower.axis[2]; z <= upper.axis[2]; ++z)
        {
          for (std::int64_t y = lower.axis[1]; y <= upper.axis[1]; ++y)
          {
            const std::int64_t tapRow =
              (((w + tables.radius.axis[4]) * kt + t + tables.radius.axis[3]) * kz + z + tables.radius.axis[2]) * ky +
              y + tables.radius.axis[1];
            const TAcc * const   weights = tables.weights + tapRow * kx + r;
            const TPixel * const taps =
              line + x0 + w * in.stride.axis[4] + t * in.stride.axis[3] + z * in.stride.axis[2] + y * in.stride.axis[1];
            for (int x = -r; x <= r; ++x)
            {
              const TAcc weight = weights[x];
#pragma unroll
              for (int u = 0; u < R; ++u)
              {
                if (x >= first[u] && x <= last[u])
                {
                  const TAcc value = static_cast<TAcc>(taps[x + 32 * u]);
                  sums[u] = MultiplyAdd(weight, VZeroSum ? value - centers[u] : value, sums[u]);
                }
              }
            }
          }
        }
      }
    }
    std::int64_t entry = 0;
    if (tables.norms)
    {
      for (int a = MaxDimension - 1; a > 0; --a)
      {
        entry = entry * tables.normRows.axis[a] + NormRow(at.axis[a], tables.extent.axis[a], tables.radius.axis[a]);
      }
    }
#pragma unroll
    for (int u = 0; u < R; ++u)
    {
      const std::int64_t x = x0 + 32 * u;
      if (x < width)
      {
        TAcc value = sums[u];
        if (tables.norms)
        {
          const TAcc norm = tables.norms[entry * tables.normRows.axis[0] +
                                         NormRow(box.lower.axis[0] + x, tables.extent.axis[0], tables.radius.axis[0])];
          value = norm == TAcc(1) ? value : value * norm;
        }
        out[row * width + x] = ConvertResult<TOut>(value);
      }
    }
  }
}

template <typename TPixel, typename TAcc, typename TOut>
void
Run(const KernelCall & call)
{
  const auto &      operation = static_cast<const ConvolutionOperation &>(*call.operation);
  const Coordinates image = call.image.Extents();
  const WindowBoxes boxes(call.output.box, call.image, operation.radius, operation.boundary.mode);
  char *            scratch = static_cast<char *>(call.scratch);
  const auto        pixels = ContinueImage<TPixel>(call, boxes, operation.boundary, scratch);
  const std::string key = operation.GetKey() + (sizeof(TAcc) == 4 ? " f32" : " f64");
  const auto        upload = [&](const std::string & name, const std::vector<double> & exact) {
    const std::vector<TAcc> values(exact.begin(), exact.end());
    return static_cast<const TAcc *>(call.tables->Get(key + name, values.data(), values.size() * sizeof(TAcc)));
  };
  const bool              zeroSum = operation.IsZeroSum();
  ConvolutionTables<TAcc> tables{};
  tables.weights = upload(" weights", operation.weights);
  tables.radius = operation.radius;
  tables.extent = image;
  if (operation.boundary.mode == BoundaryMode::Renormalized && !zeroSum)
  {
    tables.norms = upload(" norms " + ToString(image), operation.GetNorms(image));
    for (int a = 0; a < MaxDimension; ++a)
    {
      tables.normRows[a] = operation.GetNormRows(a, image[a]);
    }
  }
  const Box &        box = call.output.box;
  const std::int64_t tiles = (box.Extent(0) + 32 * OutputsOfThread - 1) / (32 * OutputsOfThread);
  const auto         blocks = BlocksFor(box.NumberOfVoxels() / box.Extent(0) * tiles, 4);
  auto * const       out = static_cast<TOut *>(call.output.data);
  if (zeroSum)
  {
    ConvolutionKernel<true><<<blocks, 128, 0, StreamOf(call)>>>(pixels, tables, out, box);
  }
  else
  {
    ConvolutionKernel<false><<<blocks, 128, 0, StreamOf(call)>>>(pixels, tables, out, box);
  }
  CheckLaunch("ConvolutionKernel");
}

void
RunConvolution(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Acc = RealOf<Pixel>;
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) { Run<Pixel, Acc, decltype(out)>(call); });
  });
}

std::size_t
ScratchOfConvolution(const Operation & operation, const ChunkShape & shape)
{
  const auto & convolution = static_cast<const ConvolutionOperation &>(operation);
  return ContinuedBytes(WindowBoxes(shape.outputBox, shape.image, convolution.radius, convolution.boundary.mode),
                        convolution.boundary.mode,
                        PixelSize(shape.inputKinds[0]));
}

/** A tap costs about a byte. */
double
CostOfConvolution(const Operation & operation, const ChunkShape & shape)
{
  return static_cast<double>(shape.outputBox.NumberOfVoxels()) *
         (8 + static_cast<double>(static_cast<const ConvolutionOperation &>(operation).weights.size()));
}

} // namespace

void
RegisterCudaConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunConvolution;
  kernel.scratchBytes = ScratchOfConvolution;
  kernel.cost = CostOfConvolution;
  registry.Register("convolution", kernel);
}

} // namespace chunkwise
