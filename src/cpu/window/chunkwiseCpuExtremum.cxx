/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuWindow.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseOrderedKey.h"
#include "chunkwiseStridedVoxels.h"
#include "chunkwiseWindow.h"

namespace chunkwise
{

namespace
{

void
RadiiOf(const ExtremumOperation & operation, const Box & image, std::int64_t (&radius)[MaxDimension])
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = operation.EffectiveRadius(a, image.Extent(a));
  }
}

template <typename TPixel, typename TKey>
void
Run(const KernelCall & call, const RowFunctions<TKey> & rows)
{
  const auto &     operation = static_cast<const ExtremumOperation &>(*call.operation);
  const CpuLevel & level = GetCpuLevel();
  const int        flip = operation.minimum ? 1 : 0;
  const auto       kind = static_cast<int>(call.inputs[0].kind);
  std::int64_t     radius[MaxDimension];
  RadiiOf(operation, call.image, radius);
  const std::int64_t components = WindowTiling::ComponentsOf(call, radius);
  const WindowTiling tiling(call.output.box, call.image, radius, sizeof(TKey), false, components);
  AxisWindow<TKey>   windows[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows[a].radius = radius[a];
  }
  const int  to = call.output.kind == call.inputs[0].kind ? 0 : call.output.kind == PixelKind::Float32 ? 1 : 2;
  const auto fromKey = level.fromKey[flip][kind][to];
  const auto size = PixelSize(call.output.kind);
  WindowSweep<TKey, JoinByMaximum<TKey>>(
    call,
    rows,
    level.toKey[flip][kind],
    operation.boundary.mode,
    OrderedKey<TPixel>::From(ConstantPixel<TPixel>(operation.boundary.constant), static_cast<TKey>(-flip)),
    windows,
    tiling)
    .Run([&](const TKey * row, const Coordinates & index, std::int64_t n) {
      MakeStrided(size,
                  static_cast<char *>(call.output.data) + call.output.Offset(index) * static_cast<std::int64_t>(size),
                  components > 1 ? 1 : call.output.stride[0],
                  n,
                  [&](char * to, std::int64_t first, std::int64_t count) { fromKey(to, row + first, count); });
    });
}

void
RunExtremum(const KernelCall & call)
{
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (sizeof(Pixel) <= 4)
    {
      Run<Pixel>(call, GetCpuLevel().largest32);
    }
    else
    {
      Run<Pixel>(call, GetCpuLevel().largest64);
    }
  });
}

std::size_t
ScratchOfExtremum(const Operation & operation, const ChunkShape & shape)
{
  const std::int64_t keyBytes = PixelSize(shape.inputKinds[0]) <= 4 ? 4 : 8;
  std::int64_t       radius[MaxDimension];
  RadiiOf(static_cast<const ExtremumOperation &>(operation), shape.image, radius);
  const std::int64_t scratch = WindowTiling::GetScratch(shape.outputBox, shape.image, radius, keyBytes, false);
  return static_cast<std::size_t>(scratch * shape.concurrency * keyBytes);
}

} // namespace

void
RegisterHostExtremum(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunExtremum;
  kernel.scratchBytes = ScratchOfExtremum;
  registry.Register("extremum", kernel);
}

} // namespace chunkwise
