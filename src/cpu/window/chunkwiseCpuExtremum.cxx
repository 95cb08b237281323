/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuRowOutput.h"
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

/** Bytes as keys that are ordered as the voxels are, or for minima the other way round, and back. */
template <std::uint8_t VFlipped>
void
FlipBytes(void * out, const void * in, std::int64_t n)
{
  const auto * const from = static_cast<const std::uint8_t *>(in);
  auto * const       to = static_cast<std::uint8_t *>(out);
  for (std::int64_t i = 0; i < n; ++i)
  {
    to[i] = static_cast<std::uint8_t>(from[i] ^ VFlipped);
  }
}
template <typename TPixel, typename TOut, std::uint8_t VFlipped>
void
FromBytes(void * out, const void * in, std::int64_t n)
{
  const auto * const from = static_cast<const std::uint8_t *>(in);
  auto * const       to = static_cast<TOut *>(out);
  for (std::int64_t i = 0; i < n; ++i)
  {
    to[i] = static_cast<TOut>(static_cast<TPixel>(from[i] ^ VFlipped));
  }
}

using KeyFunction = void (*)(void *, const void *, std::int64_t);

/** How voxels become keys and keys results. */
template <typename TKey>
struct KeyFunctions
{
  KeyFunction toKey;
  KeyFunction fromKey;
  TKey        constant;
};

template <typename TPixel, std::uint8_t VFlipped>
KeyFunctions<std::uint8_t>
KeysOfBytes(PixelType output, const PixelValue & constant)
{
  return { FlipBytes<VFlipped>,
           output == PixelType::Float32   ? FromBytes<TPixel, float, VFlipped>
           : output == PixelType::Float64 ? FromBytes<TPixel, double, VFlipped>
                                          : FlipBytes<VFlipped>,
           static_cast<std::uint8_t>(static_cast<std::uint8_t>(ConstantPixel<TPixel>(constant)) ^ VFlipped) };
}

template <typename TPixel, typename TKey>
KeyFunctions<TKey>
KeysOf(const ExtremumOperation & operation, PixelType output)
{
  if constexpr (sizeof(TKey) == 1)
  {
    constexpr std::uint8_t ofMaximum = std::is_signed<TPixel>::value ? 0x80 : 0;
    constexpr std::uint8_t ofMinimum = ofMaximum ^ 0xff;
    return operation.minimum ? KeysOfBytes<TPixel, ofMinimum>(output, operation.boundary.constant)
                             : KeysOfBytes<TPixel, ofMaximum>(output, operation.boundary.constant);
  }
  else
  {
    const int  flip = operation.minimum ? 1 : 0;
    const auto kind = static_cast<int>(PixelTypeOf<TPixel>());
    const int  to = output == PixelTypeOf<TPixel>() ? 0 : output == PixelType::Float32 ? 1 : 2;
    return { GetCpuLevel().toKey[flip][kind],
             GetCpuLevel().fromKey[flip][kind][to],
             OrderedKey<TPixel>::From(ConstantPixel<TPixel>(operation.boundary.constant), static_cast<TKey>(-flip)) };
  }
}

template <typename TPixel, typename TKey>
void
Run(const KernelCall & call, const RowFunctions<TKey> & rows)
{
  const auto & operation = static_cast<const ExtremumOperation &>(*call.operation);
  const auto   keys = KeysOf<TPixel, TKey>(operation, call.output.kind);
  std::int64_t radius[MaxDimension];
  RadiiOf(operation, call.image, radius);
  const std::int64_t components = WindowTiling::ComponentsOf(call, radius);
  const WindowTiling tiling(call.output.box, call.image, radius, sizeof(TKey), false, components);
  AxisWindow<TKey>   windows[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows[a].radius = radius[a];
  }
  const RowOutput output(call.output, components);
  WindowSweep<TKey, JoinByMaximum<TKey>>(
    call, rows, keys.toKey, operation.boundary.mode, keys.constant, windows, tiling)
    .Run([&](const TKey * row, const Coordinates & index, std::int64_t n) {
      output.Make(
        index, n, [&](char * to, std::int64_t first, std::int64_t count) { keys.fromKey(to, row + first, count); });
    });
}

void
RunExtremum(const KernelCall & call)
{
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (sizeof(Pixel) == 1)
    {
      Run<Pixel>(call, GetCpuLevel().largest8);
    }
    else if constexpr (sizeof(Pixel) <= 4)
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
  const auto         pixel = static_cast<std::int64_t>(PixelSize(shape.inputKinds[0]));
  const std::int64_t keyBytes = pixel == 1 ? 1 : pixel <= 4 ? 4 : 8;
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
  registry.Register("extremum", { kernel });
}

} // namespace chunkwise
