/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuClassRows.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseThresholdOperation.h"

#include <vector>

namespace chunkwise
{

void
ClassRow::Hide(const BufferView & mask)
{
  DispatchPixelType(mask.kind, [&](auto pixel) {
    const StridedRow<const decltype(pixel)> inside(mask, at);
    for (std::int64_t x = 0; x < n; ++x)
    {
      classes[x] = inside[x] != pixel ? classes[x] : std::uint8_t{ 0 };
    }
  });
}

void
ClassRow::Store(const BufferView & output) const
{
  DispatchPixelType(output.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    StoreRow<Pixel>(output, at, n, [&](std::int64_t x) { return static_cast<Pixel>(classes[x]); });
  });
}

namespace
{

/** In a range 1 is between its two bounds. */
template <typename TPixel>
std::uint8_t
ClassOf(TPixel voxel, const std::vector<TPixel> & bounds, bool isRange)
{
  int above = 0;
  for (const TPixel bound : bounds)
  {
    above += voxel >= bound ? 1 : 0;
  }
  return static_cast<std::uint8_t>(isRange && above > 1 ? 0 : above);
}

void
RunThreshold(const KernelCall & call)
{
  const auto &       operation = dynamic_cast<const ThresholdOperation &>(*call.operation);
  const BufferView & image = call.inputs[0];
  DispatchPixelType(image.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    const std::vector<Pixel> bounds = operation.MakeBounds<Pixel>();
    ForEachClassRow(call, operation.masked ? &call.inputs[1] : nullptr, [&](ClassRow & row) {
      const StridedRow<const Pixel> voxels(image, row.at);
      for (std::int64_t x = 0; x < row.n; ++x)
      {
        row.classes[x] = ClassOf(voxels[x], bounds, operation.IsRange());
      }
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
