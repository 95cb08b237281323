/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseConvolutionOperation.h"
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseRealOf.h"

#include <type_traits>
#include <vector>

namespace chunkwise
{

namespace
{

/** The tile with its surroundings, a row of sums and a row of differences. */
template <typename TAcc>
std::int64_t
BytesOf(const Box & output, const Coordinates & radius)
{
  return TileBytes(output, radius, [](const WindowBoxes & boxes) {
    const std::int64_t row = boxes.after[boxes.count - 1].Extent(0);
    return RoundToLine((boxes.padded.NumberOfVoxels() + 2 * row) * static_cast<std::int64_t>(sizeof(TAcc)));
  });
}

/** What does not change from tile to tile. */
template <typename TAcc>
struct Kernels
{
  std::vector<TAcc>          weights;
  std::vector<TAcc>          norms; ///< empty: none
  const RowFunctions<TAcc> * rows{ nullptr };
  bool                       zeroSum{ false };
};

template <typename TPixel, typename TOut, typename TAcc>
void
RunTile(const KernelCall & call, const ConvolutionOperation & operation, const Kernels<TAcc> & kernels,
        const WindowBoxes & boxes, TAcc * memory)
{
  const Box &        padded = boxes.padded;
  const Box &        output = boxes.after[boxes.count - 1];
  const std::int64_t n = output.Extent(0);
  TAcc * const       sums = memory + padded.NumberOfVoxels();
  TAcc * const       differences = sums + n;
  LoadTile<TPixel>(call.inputs[0],
                   call.image,
                   padded,
                   operation.boundary.mode,
                   static_cast<TAcc>(ConstantPixel<TPixel>(operation.boundary.constant)),
                   memory,
                   [](TPixel pixel) { return static_cast<TAcc>(pixel); });
  ForEachRow(output, [&](const Coordinates & at) {
    std::fill(sums, sums + n, TAcc{ 0 });
    const TAcc * const center = memory + DenseOffset(padded, at);
    Box                window{};
    for (int a = 0; a < MaxDimension; ++a)
    {
      window.lower[a] = at[a] - boxes.radius[a];
      window.upper[a] = at[a] + boxes.radius[a] + 1;
    }
    const TAcc * weight = kernels.weights.data();
    ForEachRow(window, [&](const Coordinates & line) {
      bool there = true;
      for (int a = 1; a < MaxDimension; ++a)
      {
        there = there && line[a] >= padded.lower[a] && line[a] < padded.upper[a];
      }
      for (std::int64_t t = 0; there && t <= 2 * boxes.radius[0]; ++t)
      {
        Coordinates from = line;
        from[0] += t;
        const std::int64_t first = std::max<std::int64_t>(0, padded.lower[0] - from[0]);
        const std::int64_t last = std::min(n, padded.upper[0] - from[0]);
        if (first >= last)
        {
          continue;
        }
        const TAcc * row = memory + DenseOffset(padded, from) + first;
        if (kernels.zeroSum)
        {
          for (std::int64_t x = 0; x < last - first; ++x)
          {
            differences[x] = row[x] - center[first + x];
          }
          row = differences;
        }
        kernels.rows->multiplyAdd(sums + first, row, weight[t], last - first);
      }
      weight += 2 * boxes.radius[0] + 1;
    });
    if (!kernels.norms.empty())
    {
      std::int64_t entry = 0;
      for (int a = MaxDimension - 1; a > 0; --a)
      {
        const std::int64_t extent = call.image.Extent(a);
        entry = entry * operation.GetNormRows(a, extent) + NormRow(at[a], extent, boxes.radius[a]);
      }
      const std::int64_t extent = call.image.Extent(0);
      const TAcc * const norms = kernels.norms.data() + entry * operation.GetNormRows(0, extent);
      for (std::int64_t x = 0; x < n; ++x)
      {
        const TAcc norm = norms[NormRow(at[0] + x, extent, boxes.radius[0])];
        sums[x] = norm == TAcc{ 1 } ? sums[x] : sums[x] * norm;
      }
    }
    StoreRow<TOut>(call.output, at, n, [&](std::int64_t x) { return ConvertResult<TOut>(sums[x]); });
  });
}

void
RunConvolution(const KernelCall & call)
{
  const auto & operation = static_cast<const ConvolutionOperation &>(*call.operation);
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    using Acc = RealOf<Pixel>;
    Kernels<Acc> kernels;
    kernels.weights.assign(operation.weights.begin(), operation.weights.end());
    kernels.zeroSum = operation.IsZeroSum();
    if (operation.boundary.mode == BoundaryMode::Renormalized && !kernels.zeroSum)
    {
      const std::vector<double> norms = operation.GetNorms(call.image.Extents());
      kernels.norms.assign(norms.begin(), norms.end());
    }
    if constexpr (std::is_same<Acc, float>::value)
    {
      kernels.rows = &GetCpuLevel().float32;
    }
    else
    {
      kernels.rows = &GetCpuLevel().float64;
    }
    const std::int64_t bytes = BytesOf<Acc>(call.output.box, operation.radius);
    DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
      ForEachTile(call, operation.radius, [&](const Box & tile, unsigned int worker) {
        const WindowBoxes boxes(tile, call.image, operation.radius, operation.boundary.mode);
        RunTile<Pixel, decltype(out)>(
          call, operation, kernels, boxes, reinterpret_cast<Acc *>(static_cast<char *>(call.scratch) + bytes * worker));
      });
    });
  });
}

std::size_t
ScratchOfConvolution(const Operation & operation, const ChunkShape & shape)
{
  const Coordinates & radius = static_cast<const ConvolutionOperation &>(operation).radius;
  return DispatchPixelKind(shape.inputKinds[0], [&](auto pixel) {
    return static_cast<std::size_t>(BytesOf<RealOf<decltype(pixel)>>(shape.outputBox, radius) * shape.concurrency);
  });
}

} // namespace

void
RegisterHostConvolution(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunConvolution;
  kernel.scratchBytes = ScratchOfConvolution;
  registry.Register("convolution", kernel);
}

} // namespace chunkwise
