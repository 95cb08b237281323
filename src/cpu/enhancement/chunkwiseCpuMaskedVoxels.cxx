/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuEnhancement.h"
#include "chunkwiseCpuRowStore.h"
#include "chunkwiseCpuStridedRow.h"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseMaskedOperation.h"

#include <limits>

namespace chunkwise
{

namespace
{

constexpr std::int64_t LongestRow = 256;

/** Reads a row of voxels, converted to TTo. */
template <typename TTo, typename TConvert>
void
ReadRow(const BufferView & view, const Coordinates & at, std::int64_t n, TTo * to, TConvert && convert)
{
  DispatchPixelType(view.kind, [&](auto pixel) {
    const StridedRow<const decltype(pixel)> voxels(view, at);
    for (std::int64_t x = 0; x < n; ++x)
    {
      to[x] = convert(voxels[x]);
    }
  });
}

template <typename TReal>
void
ReadReals(const BufferView & view, const Coordinates & at, std::int64_t n, TReal * to)
{
  ReadRow(view, at, n, to, [](auto voxel) { return static_cast<TReal>(voxel); });
}

void
ReadMask(const BufferView & view, const Coordinates & at, std::int64_t n, bool * to)
{
  ReadRow(view, at, n, to, [](auto voxel) { return voxel != decltype(voxel)(0); });
}

/** Calls body(at, n) for short rows of the output. */
template <typename TBody>
void
ForEachShortRow(const KernelCall & call, TBody && body)
{
  ForEachTileOf({ { LongestRow, 16, 16, 1, 1 } }, call, [&](const Box & tile, unsigned int) {
    ForEachRow(tile, [&](const Coordinates & at) { body(at, tile.Extent(0)); });
  });
}

template <typename TReal>
void
HideOutside(const KernelCall & call)
{
  const RowStore<TReal> store = RowStoreOf<TReal>(call.output.kind);
  ForEachShortRow(call, [&](const Coordinates & at, std::int64_t n) {
    TReal row[LongestRow];
    bool  isInside[LongestRow];
    ReadReals(call.inputs[0], at, n, row);
    ReadMask(call.inputs[1], at, n, isInside);
    for (std::int64_t x = 0; x < n; ++x)
    {
      row[x] = isInside[x] ? row[x] : std::numeric_limits<TReal>::quiet_NaN();
    }
    store(call.output, at, n, row);
  });
}

/** Voxels outside, as the output's kind: the constant, or those of an image. */
template <typename TOut>
void
StoreOutside(const BufferView & output, const Coordinates & at, std::int64_t n, const bool * isInside,
             const BufferView * kept, TOut constant)
{
  const StridedRow<TOut>       to(output, at);
  const StridedRow<const TOut> from(kept ? *kept : output, at);
  for (std::int64_t x = 0; x < n; ++x)
  {
    to[x] = isInside[x] ? to[x] : kept ? from[x] : constant;
  }
}

template <typename TReal>
void
ShowOutside(const KernelCall & call)
{
  const auto &          operation = static_cast<const MaskedOperation &>(*call.operation);
  const RowStore<TReal> store = RowStoreOf<TReal>(call.output.kind);
  const BufferView &    image = call.inputs[2];
  // Own values of another kind are converted, and so are real numbers.
  const bool converts = operation.keepsOutside && image.kind != call.output.kind;
  ForEachShortRow(call, [&](const Coordinates & at, std::int64_t n) {
    TReal row[LongestRow];
    bool  isInside[LongestRow];
    ReadReals(call.inputs[0], at, n, row);
    ReadMask(call.inputs[1], at, n, isInside);
    if (converts)
    {
      TReal own[LongestRow];
      ReadReals(image, at, n, own);
      for (std::int64_t x = 0; x < n; ++x)
      {
        row[x] = isInside[x] ? row[x] : own[x];
      }
    }
    store(call.output, at, n, row);
    if (!converts)
    {
      DispatchPixelType(call.output.kind, [&](auto out) {
        using Out = decltype(out);
        StoreOutside<Out>(call.output,
                          at,
                          n,
                          isInside,
                          operation.keepsOutside ? &image : nullptr,
                          operation.keepsOutside ? Out(0) : EmptyPixel<Out>(operation.outsideValue));
      });
    }
  });
}

void
RunInside(const KernelCall & call)
{
  call.output.kind == PixelType::Float32 ? HideOutside<float>(call) : HideOutside<double>(call);
}

void
RunKept(const KernelCall & call)
{
  call.inputs[0].kind == PixelType::Float32 ? ShowOutside<float>(call) : ShowOutside<double>(call);
}

} // namespace

void
RegisterHostMaskedVoxels(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunInside;
  registry.Register("masked.inside.voxels", { kernel });
  kernel.run = RunKept;
  registry.Register("masked.kept.voxels", { kernel });
}

} // namespace chunkwise
