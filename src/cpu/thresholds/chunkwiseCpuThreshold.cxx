/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuTiles.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseThresholdOperation.h"

#include <vector>

namespace chunkwise
{

namespace
{

/** In a range 1 is between its two bounds. */
template <typename TOut, typename TPixel>
TOut
ClassOf(TPixel voxel, const std::vector<TPixel> & bounds, bool isRange)
{
  int above = 0;
  for (const TPixel bound : bounds)
  {
    above += voxel >= bound ? 1 : 0;
  }
  return static_cast<TOut>(isRange && above > 1 ? 0 : above);
}

/** 0 where the mask is. */
template <typename TOut>
void
LeaveOutside(const BufferView & mask, const BufferView & output, const Box & tile)
{
  DispatchPixelKind(mask.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    ForEachRow(tile, [&](const Coordinates & at) {
      const StridedRow<const Pixel> inside(mask, at);
      const StridedRow<TOut>        row(output, at);
      for (std::int64_t x = 0; x < tile.Extent(0); ++x)
      {
        row[x] = inside[x] != Pixel(0) ? row[x] : TOut(0);
      }
    });
  });
}

void
RunThreshold(const KernelCall & call)
{
  const auto &       operation = dynamic_cast<const ThresholdOperation &>(*call.operation);
  const BufferView & image = call.inputs[0];
  DispatchPixelKind(image.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::vector<Pixel> bounds = operation.MakeBounds<Pixel>();
    DispatchPixelKind(call.output.kind, [&](auto out) {
      using Out = decltype(out);
      const Coordinates plane = { { 1 << 20, 16, 0, 0, 0 } };
      ForEachTile(call, plane, [&](const Box & tile, unsigned int) {
        ForEachRow(tile, [&](const Coordinates & at) {
          const StridedRow<const Pixel> voxels(image, at);
          StoreRow<Out>(call.output, at, tile.Extent(0), [&](std::int64_t x) {
            return ClassOf<Out>(voxels[x], bounds, operation.IsRange());
          });
        });
        if (operation.masked)
        {
          LeaveOutside<Out>(call.inputs[1], call.output, tile);
        }
      });
    });
  });
}

} // namespace

void
RegisterHostThreshold(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunThreshold;
  registry.Register("threshold", { kernel });
}

} // namespace chunkwise
