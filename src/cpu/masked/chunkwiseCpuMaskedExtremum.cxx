/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMaskedWindow.h"
#include "chunkwiseCpuWindow.h"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseOrderedKey.h"
#include "chunkwiseRunControls.h"
#include "chunkwiseSequenceOperation.h"

// Maxima and minima of boxes in a mask. The stages of DomainOperation take a window of voxels and one of the mask,
// which says where windows are empty. Here keys have a value that no voxel has, the lowest, for what is hidden: one
// window serves both. Bytes have it in 16 bits, smaller integers in 32; of real numbers, NaN inside is the next.
namespace chunkwise
{

namespace
{

/** The extrema of a domain, one or two, of boxes; the second sees what the first makes of the voxels inside. */
std::vector<const ExtremumOperation *>
ExtremaOf(const DomainOperation & domain)
{
  std::vector<std::shared_ptr<const Operation>> stages(1, domain.window);
  if (const auto * const sequence = dynamic_cast<const SequenceOperation *>(domain.window.get()))
  {
    stages = sequence->stages;
  }
  std::vector<const ExtremumOperation *> extrema;
  for (const auto & stage : stages)
  {
    const auto * const extremum = dynamic_cast<const ExtremumOperation *>(stage.get());
    if (!extremum)
    {
      return {};
    }
    extrema.push_back(extremum);
  }
  return extrema;
}

bool
TakesMaskedExtrema(const DomainOperation & domain, const Box &, PixelType kind)
{
  const bool hasKey = IsFloatingPoint(kind) || PixelSize(kind) <= 2;
  const auto extrema = ExtremaOf(domain);
  return hasKey && !domain.marksSeen && domain.domain == DomainKind::Mask && !extrema.empty() && extrema.size() <= 2;
}

/** The mask, where the run's own does not serve, and what lies between two extrema. */
struct MaskedImages
{
  BufferView  mask;
  BufferView  between;
  std::size_t bytes{ 0 };

  MaskedImages(const DomainOperation & domain, const Box & output, const Box & image, PixelType kind, void * scratch)
  {
    char * const to = static_cast<char *>(scratch);
    const auto   stages = domain.GetStages();
    const auto   boxes = domain.GetStageBoxes(output, image);
    mask = TakeImage(to, bytes, PixelType::UInt8, boxes.front());
    if (ExtremaOf(domain).size() > 1)
    {
      std::size_t first = 0;
      while (!dynamic_cast<const ExtremumOperation *>(stages[first].operation.get()))
      {
        ++first;
      }
      between = TakeImage(to, bytes, kind, boxes[first]);
    }
  }
};

template <typename TPixel>
using KeyOfMasked = std::conditional_t<sizeof(TPixel) == 1, std::int16_t, typename OrderedKey<TPixel>::Type>;

template <typename TKey>
struct MaskedRows
{
  const RowFunctions<TKey> & rows;
  void (*hide)(TKey *, const std::uint8_t *, std::int64_t);
};

template <typename TKey>
MaskedRows<TKey>
MaskedRowsOf(const CpuLevel & level)
{
  if constexpr (sizeof(TKey) == 2)
  {
    return { level.largest16, level.hide16 };
  }
  else if constexpr (sizeof(TKey) == 4)
  {
    return { level.largest32, level.hide32 };
  }
  else
  {
    return { level.largest64, level.hide64 };
  }
}

/** The bits that are flipped in bytes so that their order is that of the voxels, or for minima the reverse. */
template <typename TPixel, bool VMinimum>
constexpr std::uint8_t Flipped = (std::is_signed<TPixel>::value ? 0x80 : 0) ^ (VMinimum ? 0xff : 0);

template <std::uint8_t VFlipped>
void
BytesToKeys(void * out, const void * in, std::int64_t n)
{
  const auto * __restrict__ const from = static_cast<const std::uint8_t *>(in);
  auto * __restrict__ const to = static_cast<std::int16_t *>(out);
  for (std::int64_t i = 0; i < n; ++i)
  {
    to[i] = static_cast<std::uint8_t>(from[i] ^ VFlipped);
  }
}

/** Keys become results, and the lowest one `empty`. */
template <typename TPixel, typename TOut, bool VMinimum>
void
ShowRow(TOut * __restrict__ to, const KeyOfMasked<TPixel> * __restrict__ keys, TOut empty, std::int64_t n)
{
  if constexpr (sizeof(TPixel) == 1)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      const auto byte = static_cast<std::uint8_t>(static_cast<std::uint8_t>(keys[i]) ^ Flipped<TPixel, VMinimum>);
      const auto voxel = static_cast<TOut>(static_cast<TPixel>(byte));
      to[i] = keys[i] < 0 ? empty : voxel;
    }
  }
  else
  {
    using KeyOf = OrderedKey<TPixel>;
    using Key = typename KeyOf::Type;
    constexpr Key flip = VMinimum ? -1 : 0;
    const int     kind = static_cast<int>(PixelTypeOf<TPixel>());
    const int     result = std::is_same<TOut, TPixel>::value ? 0 : std::is_same<TOut, float>::value ? 1 : 2;
    GetCpuLevel().fromKey[VMinimum ? 1 : 0][kind][result](to, keys, n);
    int any = 0;
    for (std::int64_t i = 0; i < n; ++i)
    {
      any |= keys[i] <= KeyOf::Lowest + 1 ? 1 : 0;
    }
    if (any != 0)
    {
      const auto nan = static_cast<TOut>(KeyOf::To(KeyOf::Lowest, flip));
      for (std::int64_t i = 0; i < n; ++i)
      {
        const TOut special = keys[i] == KeyOf::Lowest ? empty : nan;
        to[i] = keys[i] <= KeyOf::Lowest + 1 ? special : to[i];
      }
    }
  }
}

/** One extremum of what the mask shows. */
template <typename TPixel, typename TOut, bool VMinimum>
void
RunExtremum(const KernelCall & call, const ExtremumOperation & operation, const BufferView & mask,
            const PixelValue & emptyValue)
{
  using Key = KeyOfMasked<TPixel>;
  using KeyOf = OrderedKey<TPixel>;
  const CpuLevel & level = GetCpuLevel();
  AxisWindow<Key>  windows[MaxDimension];
  std::int64_t     radius[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows[a].radius = radius[a] = operation.EffectiveRadius(a, call.image.Extent(a));
  }
  const auto constant = ConstantPixel<TPixel>(operation.boundary.constant);
  Key        beyond = 0;
  void (*convert)(void *, const void *, std::int64_t) = nullptr;
  if constexpr (sizeof(TPixel) == 1)
  {
    convert = BytesToKeys<Flipped<TPixel, VMinimum>>;
    convert(&beyond, &constant, 1);
  }
  else
  {
    convert = level.toKey[VMinimum ? 1 : 0][static_cast<int>(PixelTypeOf<TPixel>())];
    beyond = std::max<Key>(KeyOf::From(constant, VMinimum ? -1 : 0), KeyOf::Lowest + 1);
  }
  const WindowTiling                   tiling(call.output.box, call.image, radius, sizeof(Key), false, 1);
  const MaskedRows<Key>                rows = MaskedRowsOf<Key>(level);
  const auto                           empty = EmptyPixel<TOut>(emptyValue);
  const auto                           size = static_cast<std::int64_t>(sizeof(TOut));
  WindowSweep<Key, JoinByMaximum<Key>> sweep(
    call, rows.rows, convert, operation.boundary.mode, beyond, windows, tiling);
  sweep.Hide(mask, rows.hide);
  sweep.Run([&](const Key * row, const Coordinates & index, std::int64_t n) {
    MakeStrided(sizeof(TOut),
                static_cast<char *>(call.output.data) + call.output.Offset(index) * size,
                call.output.stride[0],
                n,
                [&](char * to, std::int64_t first, std::int64_t count) {
                  ShowRow<TPixel, TOut, VMinimum>(reinterpret_cast<TOut *>(to), row + first, empty, count);
                });
  });
}

/** Calls f(pixel) for the kinds that have keys here. */
template <typename TFunctor>
void
DispatchMasked(PixelType kind, TFunctor && f)
{
  DispatchPixelType(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (sizeof(Pixel) <= 2 || std::is_floating_point<Pixel>::value)
    {
      f(pixel);
    }
  });
}

void
RunMaskedExtrema(const KernelCall & call)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const auto              extrema = ExtremaOf(domain);
  const PixelType         kind = call.inputs[0].kind;
  const MaskedImages      images(domain, call.output.box, call.image, kind, call.scratch);
  const BufferView        mask = GetByteMask(call, images.mask, images.bytes);
  const std::int64_t      voxels = call.output.box.NumberOfVoxels();
  BufferView              from = call.inputs[0];
  for (std::size_t i = 0; i < extrema.size(); ++i)
  {
    const bool isLast = i + 1 == extrema.size();
    KernelCall part = call;
    part.inputs[0] = from;
    part.output = isLast ? call.output : images.between;
    part.scratch = static_cast<char *>(call.scratch) + images.bytes;
    const std::int64_t share = extrema.size() == 1 ? voxels : isLast ? voxels - voxels / 2 : voxels / 2;
    ShareControl       control(call.control, part.output.box.NumberOfVoxels(), share);
    part.control = &control;
    DispatchMasked(kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      DispatchOutput<Pixel>(part.output.kind, [&](auto out) {
        using Out = decltype(out);
        const auto run = extrema[i]->minimum ? RunExtremum<Pixel, Out, true> : RunExtremum<Pixel, Out, false>;
        run(part, *extrema[i], mask, domain.emptyValue);
      });
    });
    if (control.ShouldStop())
    {
      return;
    }
    control.Complete();
    from = part.output;
  }
}

std::size_t
ScratchOfMaskedExtrema(const Operation & operation, const ChunkShape & shape)
{
  const DomainOperation & domain = MaskedDomainOf(operation);
  const PixelType         kind = shape.inputKinds[0];
  const MaskedImages      images(domain, shape.outputBox, shape.image, kind, nullptr);
  const auto              keyBytes =
    std::max<std::int64_t>(PixelSize(kind) == 1 ? 2 : 4, static_cast<std::int64_t>(PixelSize(kind)));
  std::int64_t accumulators = 0;
  const auto   extrema = ExtremaOf(domain);
  for (std::size_t i = 0; i < extrema.size(); ++i)
  {
    std::int64_t radius[MaxDimension];
    for (int a = 0; a < MaxDimension; ++a)
    {
      radius[a] = extrema[i]->EffectiveRadius(a, shape.image.Extent(a));
    }
    const Box & output = i + 1 == extrema.size() ? shape.outputBox : images.between.box;
    accumulators = std::max(accumulators, WindowTiling::GetScratch(output, shape.image, radius, keyBytes, false));
  }
  return images.bytes + static_cast<std::size_t>(accumulators * shape.concurrency * keyBytes);
}

} // namespace

MaskedWindow
GetMaskedExtrema()
{
  return { "extrema", TakesMaskedExtrema, RunMaskedExtrema, ScratchOfMaskedExtrema };
}

} // namespace chunkwise
