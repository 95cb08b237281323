/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMaskedRows.h"
#include "chunkwiseCpuMaskedWindow.h"
#include "chunkwiseCpuWindow.h"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseOperations.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRunControls.h"

// Separable windows with weights in a mask, as a Gaussian. The stages of DomainOperation make images of the mask, of
// values, numerators and denominators. Here a voxel and what the mask says of it lie side by side as two components, so
// that one window serves both, and rows are divided as they are finished.
namespace chunkwise
{

namespace
{

bool
TakesMaskedGaussian(const DomainOperation & domain, const Box &, PixelKind kind)
{
  const auto * const window = dynamic_cast<const SeparableOperation *>(domain.window.get());
  return window && window->boundary.mode != BoundaryMode::Constant && !domain.HasWeights() && !domain.marksSeen &&
         !UsesDouble(kind);
}

/** The mask, where the run's own does not serve. */
BufferView
TakeMask(const DomainOperation & domain, const Box & output, const Box & image, void * scratch, std::size_t & bytes)
{
  return TakeImage(static_cast<char *>(scratch), bytes, PixelKind::UInt8, domain.GetStageBoxes(output, image).front());
}

WindowTiling
MakeTiling(const SeparableOperation & operation, const Box & output, const Box & image)
{
  std::int64_t radius[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    radius[a] = operation.Radius(a);
  }
  WindowTiling tiling(output, image, radius, sizeof(float), operation.boundary.mode == BoundaryMode::Renormalized, 2);
  tiling.tile[MaxDimension - 1] = 1;
  return tiling;
}

template <typename TPixel>
void
PairVoxels(float * pairs, const void * voxels, const std::uint8_t * mask, std::int64_t n)
{
  const auto convert =
    GetCpuLevel().convert[static_cast<int>(PixelKindOf<TPixel>())][static_cast<int>(Accumulator::Float32)];
  const auto pair = GetMaskedRowLevel().pair;
  float      values[StridedPiece];
  for (std::int64_t first = 0; first < n; first += StridedPiece)
  {
    const std::int64_t count = std::min(n - first, StridedPiece);
    convert(values, static_cast<const TPixel *>(voxels) + first, count);
    pair(pairs + 2 * first, values, mask + first, count);
  }
}

/** Quotients of a row of n numerators and denominators. */
template <typename TOut>
void
FinishRow(TOut * to, const QuotientRule<TOut, float> & rule, const float * pairs, std::int64_t n)
{
  const auto     least = static_cast<float>(rule.least);
  const auto     most = static_cast<float>(rule.most);
  const auto     nothing = static_cast<float>(rule.nothing);
  const auto     convert = GetCpuLevel().finishWeighted[static_cast<int>(Accumulator::Float32)];
  const auto     divide = GetMaskedRowLevel().divide;
  constexpr auto kind = static_cast<int>(PixelKindOf<TOut>());
  float          quotients[StridedPiece];
  for (std::int64_t first = 0; first < n; first += StridedPiece)
  {
    const std::int64_t count = std::min(n - first, StridedPiece);
    const std::int64_t empties = divide(quotients, pairs + 2 * first, least, most, rule.whole, nothing, count);
    if (empties == count)
    {
      std::fill(to + first, to + first + count, rule.empty);
      continue;
    }
    convert[kind](to + first, quotients, count);
    for (std::int64_t i = 0; empties > 0 && i < count; ++i)
    {
      to[first + i] = pairs[2 * (first + i) + 1] > nothing ? to[first + i] : rule.empty;
    }
  }
}

template <typename TPixel, typename TOut>
void
Run(const KernelCall & call, const SeparableOperation & operation, const BufferView & mask)
{
  AxisWindow<float> windows[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    const auto & weights = operation.weights[a];
    windows[a].radius = operation.Radius(a);
    windows[a].weights.assign(weights.begin(), weights.end());
    if (operation.boundary.mode == BoundaryMode::Renormalized && windows[a].radius > 0)
    {
      const std::vector<double> norms = operation.GetNorms(a, call.image.Extent(a));
      windows[a].norms.assign(norms.begin(), norms.end());
    }
  }
  const WindowTiling              tiling = MakeTiling(operation, call.output.box, call.image);
  const DomainOperation &         domain = MaskedDomainOf(*call.operation);
  const QuotientRule<TOut, float> rule(domain, domain.GetQuotient(call.image.Extents()));
  const auto                      size = static_cast<std::int64_t>(sizeof(TOut));
  WindowSweep<float> sweep(call, GetCpuLevel().float32, nullptr, operation.boundary.mode, 0.0f, windows, tiling);
  sweep.Pair(mask, PairVoxels<TPixel>);
  sweep.Run([&](const float * row, const Coordinates & index, std::int64_t numbers) {
    MakeStrided(sizeof(TOut),
                static_cast<char *>(call.output.data) + call.output.Offset(index) * size,
                call.output.stride[0],
                numbers / 2,
                [&](char * to, std::int64_t first, std::int64_t count) {
                  FinishRow(reinterpret_cast<TOut *>(to), rule, row + 2 * first, count);
                });
  });
}

void
RunMaskedGaussian(const KernelCall & call)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  std::size_t             bytes = 0;
  const BufferView        made = TakeMask(domain, call.output.box, call.image, call.scratch, bytes);
  const BufferView        mask = GetByteMask(call, made, bytes);
  const std::int64_t      voxels = call.output.box.NumberOfVoxels();
  ShareControl            control(call.control, 2 * voxels, voxels);
  KernelCall              part = call;
  part.scratch = static_cast<char *>(call.scratch) + bytes;
  part.control = &control;
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (sizeof(Pixel) <= 2 || std::is_same<Pixel, float>::value)
    {
      DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
        Run<Pixel, decltype(out)>(part, static_cast<const SeparableOperation &>(*domain.window), mask);
      });
    }
  });
  if (!control.ShouldStop())
  {
    control.Complete();
  }
}

std::size_t
ScratchOfMaskedGaussian(const Operation & operation, const ChunkShape & shape)
{
  const DomainOperation & domain = MaskedDomainOf(operation);
  std::size_t             bytes = 0;
  TakeMask(domain, shape.outputBox, shape.image, nullptr, bytes);
  const auto & window = static_cast<const SeparableOperation &>(*domain.window);
  const auto   scratch = MakeTiling(window, shape.outputBox, shape.image).scratch * shape.concurrency;
  return bytes + static_cast<std::size_t>(scratch) * sizeof(float);
}

} // namespace

MaskedWindow
GetMaskedGaussian()
{
  return { TakesMaskedGaussian, RunMaskedGaussian, ScratchOfMaskedGaussian };
}

} // namespace chunkwise
