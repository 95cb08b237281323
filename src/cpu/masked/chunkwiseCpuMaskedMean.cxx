/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMaskedRows.h"
#include "chunkwiseCpuMaskedWindow.h"
#include "chunkwiseCpuStridedRow.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseCpuWideMaskedMean.h"
#include "chunkwiseCpuWindow.h"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseMaskCountOperation.h"
#include "chunkwiseOperations.h"

#include <atomic>
#include <cstring>

// Means in a mask. The stages of DomainOperation take a window of values, one of counts, and a pass for the quotient.
// Here small integers have their sum and their count in one number, so that one window serves both, and the quotient is
// taken where a row of the window is finished.
namespace chunkwise
{

namespace
{

/** A voxel inside is its value and 1 << CountShift: a window's sum is below 2^(CountShift - 1), and its count fits
 * above it. */
template <typename TPixel>
constexpr int CountShift = sizeof(TPixel) == 1 ? 20 : 24;
/** Voxels of the largest window: 2^19 / 255 and 2^11, 2^23 / 65535 and 2^7, what a byte counts. */
constexpr std::int64_t
MostVoxels(PixelType kind)
{
  return kind == PixelType::Float32 ? 255 : PixelSize(kind) == 1 ? 2047 : PixelSize(kind) == 2 ? 127 : 0;
}

const MeanOperation &
MeanOf(const Operation & operation)
{
  return static_cast<const MeanOperation &>(*static_cast<const DomainOperation &>(operation).window);
}

/** How many voxels of a mask each window has; beyond the edge of Constant are voxels that count. */
MaskCountOperation
CountsOf(const Operation & operation)
{
  MaskCountOperation counts(MeanOf(operation));
  counts.boundary.constant = 1.0;
  return counts;
}

/** A mean that is computed here. */
struct MaskedMean
{
  std::int64_t radius[MaxDimension]{};
  bool         takes{ false };
  /** The box that the windows see. */
  Box box{};

  MaskedMean(const Operation & operation, const Box & output, const Box & image, PixelType kind)
  {
    const auto &       domain = static_cast<const DomainOperation &>(operation);
    const auto * const mean = dynamic_cast<const MeanOperation *>(domain.window.get());
    const bool         hasKind = kind == PixelType::Float32 || (!IsFloatingPoint(kind) && PixelSize(kind) <= 2);
    if (!mean || mean->sums || domain.HasWeights() || domain.marksSeen || !hasKind)
    {
      return;
    }
    std::int64_t voxels = 1;
    for (int a = 0; a < MaxDimension; ++a)
    {
      radius[a] = mean->EffectiveRadius(a, image.Extent(a));
      voxels *= 2 * radius[a] + 1;
    }
    takes = voxels <= MostVoxels(kind);
    box = takes ? domain.GetStageBoxes(output, image).front() : box;
  }
};

/** Images of the mask, of values, or for floats, which are hidden as they are read, of counts. */
struct MaskedImages
{
  BufferView  mask;
  BufferView  values;
  BufferView  counts;
  std::size_t bytes{ 0 };

  MaskedImages(const MaskedMean & mean, const Box & output, PixelType kind, void * scratch)
  {
    char * const to = static_cast<char *>(scratch);
    mask = TakeImage(to, bytes, PixelType::UInt8, mean.box);
    if (kind == PixelType::Float32)
    {
      counts = TakeImage(to, bytes, PixelType::UInt8, output);
      return;
    }
    values = TakeImage(to, bytes, PixelSize(kind) == 1 ? PixelType::UInt16 : PixelType::UInt32, mean.box);
  }
};

/** A value, and above its bits whether it is inside; 0 if it is not. */
template <typename TPixel>
using Packed = std::conditional_t<sizeof(TPixel) == 1, std::uint16_t, std::uint32_t>;

template <typename TPixel>
void
Pack(const KernelCall & call, const MaskedImages & images)
{
  using Unsigned = std::make_unsigned_t<TPixel>;
  KernelCall part = call;
  part.output = images.values;
  part.control = nullptr;
  const Coordinates plane = { { 1 << 20, 16, 0, 0, 0 } };
  ForEachTile(part, plane, [&](const Box & tile, unsigned int) {
    ForEachRow(tile, [&](const Coordinates & at) {
      const StridedRow<const TPixel> voxels(call.inputs[0], at);
      const auto * const inside = static_cast<const std::uint8_t *>(images.mask.data) + images.mask.Offset(at);
      auto * const       to = static_cast<Packed<TPixel> *>(images.values.data) + images.values.Offset(at);
      for (std::int64_t x = 0; x < tile.Extent(0); ++x)
      {
        const auto packed = static_cast<Packed<TPixel>>(static_cast<Unsigned>(voxels[x]) | 1u << 8 * sizeof(TPixel));
        to[x] = inside[x] != 0 ? packed : Packed<TPixel>(0);
      }
    });
  });
}

template <typename TPixel>
void
Unpack(void * out, const void * in, std::int64_t n)
{
  const auto * const from = static_cast<const Packed<TPixel> *>(in);
  auto * const       to = static_cast<std::int32_t *>(out);
  for (std::int64_t i = 0; i < n; ++i)
  {
    const auto above = static_cast<std::int32_t>(from[i] >> 8 * sizeof(TPixel));
    to[i] = static_cast<std::int32_t>(static_cast<TPixel>(from[i])) + (above << CountShift<TPixel>);
  }
}

void
CopyFloats(void * out, const void * in, std::int64_t n)
{
  std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(float));
}

/** Quotients of n numbers of a row, by a QuotientRule. One window serves all kinds of results. Returns whether all sums
 * are finite. */
template <typename TAcc>
using DivideFunction = bool (*)(void * to, const void * rule, const TAcc * sums, const std::uint8_t * counts,
                                std::int64_t n);

template <typename TOut, typename TReal, typename TSum, typename TCount>
void
Divide(TOut * to, std::int64_t n, const QuotientRule<TOut, TReal> & rule, const TSum & sumAt, const TCount & countAt)
{
  if (rule.truncates)
  {
    for (std::int64_t i = 0; i < n; ++i)
    {
      to[i] = rule(static_cast<TReal>(sumAt(i)), static_cast<TReal>(countAt(i)));
    }
    return;
  }
  const TOut empty = rule.empty;
  for (std::int64_t i = 0; i < n; ++i)
  {
    const auto count = static_cast<TReal>(countAt(i));
    TReal      mean = static_cast<TReal>(sumAt(i)) / (count > TReal(0) ? count : TReal(1));
    TOut       result = 0;
    if constexpr (std::is_integral<TOut>::value)
    {
      // To the nearest integer, ties to even: where the last bit of the number is worth 1. Means are far below that.
      constexpr TReal most = 12582912;
      mean = (mean + most) - most;
      result = static_cast<TOut>(static_cast<std::int32_t>(mean));
    }
    else
    {
      result = static_cast<TOut>(mean);
    }
    to[i] = count > TReal(0) ? result : empty;
  }
}

template <typename TPixel, typename TOut, typename TReal>
bool
DividePacked(void * to, const void * rule, const std::int32_t * packed, const std::uint8_t *, std::int64_t n)
{
  constexpr int shift = CountShift<TPixel>;
  const auto    sumAt = [&](std::int64_t i) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(packed[i]) << (32 - shift)) >> (32 - shift);
  };
  Divide(static_cast<TOut *>(to), n, *static_cast<const QuotientRule<TOut, TReal> *>(rule), sumAt, [&](std::int64_t i) {
    return (packed[i] - sumAt(i)) >> shift;
  });
  return true;
}

template <typename TOut>
bool
DivideFloats(void * to, const void * given, const float * sums, const std::uint8_t * counts, std::int64_t n)
{
  const auto & rule = *static_cast<const QuotientRule<TOut, float> *>(given);
  TOut * const out = static_cast<TOut *>(to);
  if (rule.truncates)
  {
    Divide(out, n, rule, [&](std::int64_t i) { return sums[i]; }, [&](std::int64_t i) { return counts[i]; });
    return true;
  }
  const auto mean = GetMaskedRowLevel().mean;
  if constexpr (std::is_same<TOut, float>::value)
  {
    return mean(out, sums, counts, rule.empty, n);
  }
  bool  areFinite = true;
  float means[StridedPiece];
  for (std::int64_t first = 0; first < n; first += StridedPiece)
  {
    const std::int64_t count = std::min(n - first, StridedPiece);
    areFinite = mean(means, sums + first, counts + first, 0.0F, count) && areFinite;
    for (std::int64_t i = 0; i < count; ++i)
    {
      out[first + i] = counts[first + i] > 0 ? static_cast<TOut>(means[i]) : rule.empty;
    }
  }
  return areFinite;
}

/** The window over the values, whose rows are divided as they are finished. Returns whether all sums are finite. */
template <typename TAcc>
bool
Sweep(const KernelCall & call, const MaskedMean & mean, const MaskedImages & images, const RowFunctions<TAcc> & rows,
      void (*convert)(void *, const void *, std::int64_t), TAcc constant, DivideFunction<TAcc> divide,
      const void * rule)
{
  KernelCall part = call;
  part.inputs[0] = images.values.data ? images.values : call.inputs[0];
  part.scratch = static_cast<char *>(call.scratch) + images.bytes;
  AxisWindow<TAcc> windows[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows[a].radius = mean.radius[a];
  }
  const WindowTiling tiling(call.output.box, call.image, mean.radius, sizeof(TAcc), false, 1);
  const auto         size = static_cast<std::int64_t>(PixelSize(call.output.kind));
  WindowSweep<TAcc>  sweep(part, rows, convert, MeanOf(*call.operation).boundary.mode, constant, windows, tiling);
  if constexpr (std::is_same<TAcc, float>::value)
  {
    sweep.Hide(images.mask, GetMaskedRowLevel().hide);
  }
  std::atomic<bool> areFinite{ true };
  sweep.Run([&](const TAcc * row, const Coordinates & index, std::int64_t n) {
    const auto * counts = static_cast<const std::uint8_t *>(images.counts.data);
    counts = counts ? counts + images.counts.Offset(index) : nullptr;
    MakeStrided(static_cast<std::size_t>(size),
                static_cast<char *>(call.output.data) + call.output.Offset(index) * size,
                call.output.stride[0],
                n,
                [&](char * to, std::int64_t begin, std::int64_t count) {
                  if (!divide(to, rule, row + begin, counts ? counts + begin : nullptr, count))
                  {
                    areFinite = false;
                  }
                });
  });
  return areFinite;
}

template <typename TPixel>
void
RunPacked(const KernelCall & call, const MaskedMean & mean, const MaskedImages & images)
{
  Pack<TPixel>(call, images);
  const auto & domain = static_cast<const DomainOperation &>(*call.operation);
  DispatchOutput<TPixel>(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    using Real = std::conditional_t<std::is_same<Out, double>::value, double, float>;
    const QuotientRule<Out, Real> rule(domain, domain.GetQuotient(call.image.Extents()));
    const auto constant = static_cast<std::int32_t>(ConstantPixel<TPixel>(MeanOf(domain).boundary.constant));
    Sweep<std::int32_t>(call,
                        mean,
                        images,
                        GetCpuLevel().int32,
                        Unpack<TPixel>,
                        constant + (1 << CountShift<TPixel>),
                        DividePacked<TPixel, Out, Real>,
                        &rule);
  });
}

void
RunFloats(const KernelCall & call, const MaskedMean & mean, const MaskedImages & images)
{
  const auto &             domain = static_cast<const DomainOperation &>(*call.operation);
  const MaskCountOperation counts = CountsOf(domain);
  RunMaskedStage(call, "mean", counts, { images.mask }, images.counts, images.bytes);
  DispatchOutput<float>(call.output.kind, [&](auto out) {
    using Out = decltype(out);
    const QuotientRule<Out, float> rule(domain, domain.GetQuotient(call.image.Extents()));
    const bool                     areFinite = Sweep<float>(call,
                                        mean,
                                        images,
                                        GetCpuLevel().float32,
                                        CopyFloats,
                                        ConstantPixel<float>(MeanOf(domain).boundary.constant),
                                        DivideFloats<Out>,
                                        &rule);
    if (!areFinite)
    {
      AmendMaskedMeans<Out>(call, WideMaskedMean(domain, call.inputs[0], call.inputs[1], call.image));
    }
  });
}

void
RunMaskedMean(const KernelCall & call)
{
  const PixelType    kind = call.inputs[0].kind;
  const MaskedMean   mean(*call.operation, call.output.box, call.image, kind);
  const MaskedImages images(mean, call.output.box, kind, call.scratch);
  MakeMask(call, images.mask, images.bytes);
  switch (kind)
  {
    case PixelType::UInt8:
      return RunPacked<std::uint8_t>(call, mean, images);
    case PixelType::Int8:
      return RunPacked<std::int8_t>(call, mean, images);
    case PixelType::UInt16:
      return RunPacked<std::uint16_t>(call, mean, images);
    case PixelType::Int16:
      return RunPacked<std::int16_t>(call, mean, images);
    default:
      return RunFloats(call, mean, images);
  }
}

std::size_t
ScratchOfMaskedMean(const Operation & operation, const ChunkShape & shape)
{
  const PixelType    kind = shape.inputKinds[0];
  const MaskedMean   mean(operation, shape.outputBox, shape.image, kind);
  const std::int64_t scratch = WindowTiling::GetScratch(shape.outputBox, shape.image, mean.radius, 4, false);
  std::size_t        bytes = static_cast<std::size_t>(scratch * 4 * shape.concurrency);
  if (kind == PixelType::Float32)
  {
    ChunkShape ofCounts = shape;
    ofCounts.numberOfInputs = 1;
    ofCounts.inputKinds[0] = ofCounts.outputKind = PixelType::UInt8;
    ofCounts.inputBox = mean.box;
    bytes = std::max(bytes, shape.kernels->Get("mean", "domain").scratchBytes(CountsOf(operation), ofCounts));
  }
  return MaskedImages(mean, shape.outputBox, kind, nullptr).bytes + bytes;
}

bool
TakesMaskedMean(const DomainOperation & operation, const Box & image, PixelType kind)
{
  return MaskedMean(operation, image, image, kind).takes;
}

} // namespace

MaskedWindow
GetMaskedMean()
{
  return { "mean", TakesMaskedMean, RunMaskedMean, ScratchOfMaskedMean };
}

} // namespace chunkwise
