/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuEnhancement.h"
#include "chunkwiseCpuEnhancementRows.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseStructuringHeight.h"

#include <algorithm>
#include <limits>

// Minima of sums; a dilation is the erosion of the negated image, negated.
namespace chunkwise
{

namespace
{

Coordinates
NonFlatTile(const Box & output, const Coordinates & radius)
{
  Coordinates tile{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    const std::int64_t wanted = a == 0 ? std::max<std::int64_t>(256, radius[a]) : std::max<std::int64_t>(16, radius[a]);
    tile[a] = std::min(output.Extent(a), radius[a] > 0 || a == 0 ? wanted : 1);
  }
  return tile;
}

/** A worker's numbers: a tile with its surroundings, and a row of results. */
std::int64_t
NonFlatNumbers(const Box & output, const Coordinates & radius)
{
  const Coordinates tile = NonFlatTile(output, radius);
  std::int64_t      numbers = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    numbers *= tile[a] + 2 * radius[a];
  }
  return PaddedRow(numbers) + PaddedRow(tile[0]);
}

template <typename TReal>
void
LoadNonFlat(const KernelCall & call, const Box & box, bool negates, TReal * to)
{
  const TReal nothing = std::numeric_limits<TReal>::infinity();
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    LoadTile<Pixel>(
      call.inputs[0], call.image, box, BoundaryMode::Constant, nothing, to, [negates, nothing](Pixel voxel) {
        const auto value = static_cast<TReal>(voxel);
        return value != value ? nothing : negates ? -value : value;
      });
  });
}

template <typename TReal>
void
RunNonFlat(const KernelCall & call)
{
  const auto &           operation = static_cast<const NonFlatExtremumOperation &>(*call.operation);
  const StructuringLines lines(operation, call.image.Extents());
  const std::int64_t     radius = lines.radius[lines.axis];
  TReal * const          heights = static_cast<TReal *>(call.scratch);
  lines.Fill(operation, heights);
  TReal * const              workers = heights + PaddedRow(lines.numbers);
  const std::int64_t         numbers = NonFlatNumbers(call.output.box, lines.radius);
  const RowStore<TReal>      store = RowStoreOf<TReal>(call.output.kind);
  const EnhancementFunctions functions = GetEnhancementFunctions<TReal>();
  ForEachTileOf(NonFlatTile(call.output.box, lines.radius), call, [&](const Box & tile, unsigned int worker) {
    const Box          padded = WindowBoxes(tile, call.image, lines.radius, BoundaryMode::Constant).padded;
    TReal * const      values = workers + worker * numbers;
    TReal * const      row = values + numbers - PaddedRow(tile.Extent(0));
    const std::int64_t n = tile.Extent(0);
    Coordinates        along{};
    along[lines.axis] = 1;
    const std::int64_t stride = DenseOffset(padded, Moved(padded.lower, along));
    LoadNonFlat(call, padded, operation.dilates, values);
    ForEachRow(tile, [&](const Coordinates & at) {
      if (call.control && call.control->ShouldStop())
      {
        return;
      }
      std::fill(row, row + n, std::numeric_limits<TReal>::infinity());
      const TReal * height = heights;
      ForEachRow(lines.offsets, [&](const Coordinates & offset) {
        // Heights rise from the middle: a line ends where there are none.
        std::int64_t reach = radius;
        for (; reach >= 0 && height[reach] < 0; --reach)
        {
        }
        if (reach >= 0)
        {
          functions.lower(row, values + DenseOffset(padded, Moved(at, offset)), stride, height, reach, n);
        }
        height += radius + 1;
      });
      if (operation.dilates)
      {
        std::transform(row, row + n, row, [](TReal value) { return -value; });
      }
      store(call.output, at, n, row);
    });
  });
}

void
RunNonFlatExtremum(const KernelCall & call)
{
  UsesDouble(call.inputs[0].kind) ? RunNonFlat<double>(call) : RunNonFlat<float>(call);
}

std::size_t
ScratchOfNonFlatExtremum(const Operation & operation, const ChunkShape & shape)
{
  const StructuringLines lines(static_cast<const NonFlatExtremumOperation &>(operation), shape.image.Extents());
  const std::int64_t     numbers =
    PaddedRow(lines.numbers) + shape.concurrency * NonFlatNumbers(shape.outputBox, lines.radius);
  return static_cast<std::size_t>(numbers * (UsesDouble(shape.inputKinds[0]) ? 8 : 4));
}

} // namespace

void
RegisterHostNonFlatExtremum(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunNonFlatExtremum;
  kernel.scratchBytes = ScratchOfNonFlatExtremum;
  registry.Register("nonflatextremum", { kernel });
}

} // namespace chunkwise
