/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseBilateralOperation.h"
#include "chunkwiseCpuEnhancement.h"
#include "chunkwiseCpuEnhancementRows.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseRealOf.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace chunkwise
{

namespace
{

/** A worker's numbers: a tile with its surroundings, and two rows of sums. */
std::int64_t
BilateralNumbers(const Box & output, const Coordinates & radius)
{
  const Coordinates tile = TileExtent(output, radius);
  std::int64_t      numbers = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    numbers *= tile[a] + 2 * radius[a];
  }
  return PaddedRow(numbers) + 2 * PaddedRow(tile[0]);
}

/** Voxels that no image has are NaN, which has no weight. */
template <typename TReal>
void
LoadBilateral(const KernelCall & call, const WindowBoundary & boundary, const Box & box, TReal * to)
{
  const bool isCut = boundary.mode == BoundaryMode::Renormalized;
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    LoadTile<Pixel>(call.inputs[0],
                    call.image,
                    box,
                    isCut ? BoundaryMode::Constant : boundary.mode,
                    isCut ? std::numeric_limits<TReal>::quiet_NaN()
                          : static_cast<TReal>(ConstantPixel<Pixel>(boundary.constant)),
                    to,
                    [](Pixel voxel) { return static_cast<TReal>(voxel); });
  });
}

template <typename TReal>
void
RunBilateralOf(const KernelCall & call)
{
  const auto &       operation = static_cast<const BilateralOperation &>(*call.operation);
  const Coordinates  radius = operation.GetRadius();
  std::vector<TReal> weights[MaxDimension];
  Box                offsets;
  for (int a = 0; a < MaxDimension; ++a)
  {
    weights[a] = operation.weights[a].empty()
                   ? std::vector<TReal>{ 1 }
                   : std::vector<TReal>(operation.weights[a].begin(), operation.weights[a].end());
    offsets.lower[a] = a == 0 ? 0 : -radius[a];
    offsets.upper[a] = a == 0 ? 1 : radius[a] + 1;
  }
  const std::int64_t    numbers = BilateralNumbers(call.output.box, radius);
  const RowStore<TReal> store = RowStoreOf<TReal>(call.output.kind);
  ForEachTile(call, radius, [&](const Box & tile, unsigned int worker) {
    const Box            padded = WindowBoxes(tile, call.image, radius, BoundaryMode::Constant).padded;
    const std::int64_t   n = tile.Extent(0);
    TReal * const        values = static_cast<TReal *>(call.scratch) + worker * numbers;
    BilateralStep<TReal> step;
    step.radius = radius[0];
    step.weights = weights[0].data();
    step.inverse = static_cast<TReal>(0.5 / (operation.rangeSigma * operation.rangeSigma));
    step.sums = values + numbers - PaddedRow(n);
    step.deviations = step.sums - PaddedRow(n);
    step.n = n;
    LoadBilateral(call, operation.boundary, padded, values);
    ForEachRow(tile, [&](const Coordinates & at) {
      if (call.control && call.control->ShouldStop())
      {
        return;
      }
      step.here = values + DenseOffset(padded, at);
      std::fill(step.deviations, step.deviations + n, TReal(0));
      std::fill(step.sums, step.sums + n, TReal(0));
      ForEachRow(offsets, [&](const Coordinates & offset) {
        step.taps = values + DenseOffset(padded, Moved(at, offset));
        step.weightOfRow = 1;
        for (int a = MaxDimension - 1; a > 0; --a)
        {
          step.weightOfRow *= weights[a][static_cast<std::size_t>(offset[a] + radius[a])];
        }
        GetEnhancementFunctions<TReal>().weigh(step);
      });
      for (std::int64_t x = 0; x < n; ++x)
      {
        step.sums[x] = step.sums[x] > 0 ? step.here[x] + step.deviations[x] / step.sums[x] : step.here[x];
      }
      store(call.output, at, n, step.sums);
    });
  });
}

void
RunBilateral(const KernelCall & call)
{
  UsesDouble(call.inputs[0].kind) ? RunBilateralOf<double>(call) : RunBilateralOf<float>(call);
}

std::size_t
ScratchOfBilateral(const Operation & operation, const ChunkShape & shape)
{
  const std::int64_t numbers =
    BilateralNumbers(shape.outputBox, static_cast<const BilateralOperation &>(operation).GetRadius());
  return static_cast<std::size_t>(shape.concurrency * numbers * (UsesDouble(shape.inputKinds[0]) ? 8 : 4));
}

} // namespace

void
RegisterHostBilateral(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunBilateral;
  kernel.scratchBytes = ScratchOfBilateral;
  registry.Register("bilateral", { kernel });
}

} // namespace chunkwise
