/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuLevel.h"
#include "chunkwiseCpuMaskedRows.h"
#include "chunkwiseCpuMaskedWindow.h"
#include "chunkwiseCpuSeparableWindow.h"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseOperations.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseRunControls.h"

// Separable windows with weights in a mask, as a Gaussian. The stages of DomainOperation make images of the mask, of
// values, numerators and denominators. Here a row of values and one of what the mask says of them go through one window
// together, which adds up no more of them than has to be, and rows are divided as they are finished.
namespace chunkwise
{

namespace
{

bool
TakesMaskedGaussian(const DomainOperation & domain, const Box &, PixelType kind)
{
  const auto * const window = dynamic_cast<const SeparableOperation *>(domain.window.get());
  return window && window->boundary.mode != BoundaryMode::Constant && !domain.HasWeights() && !domain.marksSeen &&
         !UsesDouble(kind);
}

/** The mask, where the run's own does not serve. */
BufferView
TakeMask(const DomainOperation & domain, const Box & output, const Box & image, void * scratch, std::size_t & bytes)
{
  return TakeImage(static_cast<char *>(scratch), bytes, PixelType::UInt8, domain.GetStageBoxes(output, image).front());
}

WindowTiling
MakeTiling(const SeparableOperation & operation, const Box & output, const Box & image)
{
  WindowTiling tiling = MakeSeparableTiling(operation, output, image, sizeof(float), 2);
  tiling.tile[MaxDimension - 1] = 1;
  tiling.AddKnownRows();
  return tiling;
}

/** A row of voxels from numerators and, after `gap` of them, denominators. */
template <typename TOut>
class RowFinish
{
public:
  RowFinish(const DomainOperation & domain, const Box & image)
    : m_Rule(domain, domain.GetQuotient(image.Extents()))
    , m_Convert(
        GetCpuLevel().finishWeighted[static_cast<int>(Accumulator::Float32)][static_cast<int>(PixelTypeOf<TOut>())])
    , m_Divide(GetMaskedRowLevel().divide)
  {}

  /** Voxels from `first` on of a row that sees so much. */
  void
  operator()(TOut * to, const float * row, std::int64_t gap, std::int64_t first, std::int64_t n,
             const RowSight & sight) const
  {
    const auto within = [&](std::int64_t begin, std::int64_t end, auto && f) {
      begin = std::max(begin, first);
      end = std::min(end, first + n);
      if (begin < end)
      {
        f(to + (begin - first), row + begin, end - begin);
      }
    };
    ForEachRun(~sight.some, gap, [&](std::int64_t begin, std::int64_t end) {
      within(begin, end, [&](TOut * part, const float *, std::int64_t count) {
        std::fill(part, part + count, m_Rule.empty);
      });
    });
    ForEachRun(sight.Whole(), gap, [&](std::int64_t begin, std::int64_t end) { within(begin, end, m_Convert); });
    ForEachRun(sight.Cut(), gap, [&](std::int64_t begin, std::int64_t end) {
      within(begin, end, [&](TOut * part, const float * numerators, std::int64_t count) {
        this->Divide(part, numerators, numerators + gap, count);
      });
    });
  }

private:
  void
  Divide(TOut * to, const float * numerators, const float * denominators, std::int64_t n) const
  {
    float              quotients[WindowTiling::MostOfRow];
    const auto         nothing = static_cast<float>(m_Rule.nothing);
    const std::int64_t empties = m_Divide(quotients,
                                          numerators,
                                          denominators,
                                          static_cast<float>(m_Rule.least),
                                          static_cast<float>(m_Rule.most),
                                          m_Rule.whole,
                                          nothing,
                                          static_cast<float>(m_Rule.empty),
                                          n);
    m_Convert(to, quotients, n);
    // A double may hold an empty value that float does not.
    for (std::int64_t i = 0; std::is_same<TOut, double>::value && empties > 0 && i < n; ++i)
    {
      to[i] = denominators[i] > nothing ? to[i] : m_Rule.empty;
    }
  }

  const QuotientRule<TOut, float> m_Rule;
  void (*m_Convert)(void *, const void *, std::int64_t);
  std::int64_t (*m_Divide)(float *, const float *, const float *, float, float, float, float, float, std::int64_t);
};

template <typename TOut>
void
Run(const KernelCall & call, const SeparableOperation & operation, const BufferView & mask)
{
  const SeparableWindow<float> window(operation, call.image);
  const WindowTiling           tiling = MakeTiling(operation, call.output.box, call.image);
  const DomainOperation &      domain = MaskedDomainOf(*call.operation);
  const RowFinish<TOut>        finishRow(domain, call.image);
  const auto                   size = static_cast<std::int64_t>(sizeof(TOut));
  const auto                   convert =
    GetCpuLevel().convert[static_cast<int>(call.inputs[0].kind)][static_cast<int>(Accumulator::Float32)];
  WindowSweep<float> sweep(call, GetCpuLevel().float32, convert, operation.boundary.mode, 0.0f, window.axes, tiling);
  sweep.Pair(mask, GetMaskedRowLevel().pairs);
  sweep.Run([&](const float * row, const Coordinates & index, std::int64_t numbers, const RowSight & sight) {
    MakeStrided(sizeof(TOut),
                static_cast<char *>(call.output.data) + call.output.Offset(index) * size,
                call.output.stride[0],
                numbers / 2,
                [&](char * to, std::int64_t first, std::int64_t count) {
                  finishRow(reinterpret_cast<TOut *>(to), row, numbers / 2, first, count, sight);
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
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    if constexpr (sizeof(Pixel) <= 2 || std::is_same<Pixel, float>::value)
    {
      DispatchOutput<Pixel>(call.output.kind, [&](auto out) {
        Run<decltype(out)>(part, static_cast<const SeparableOperation &>(*domain.window), mask);
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
  return { "gaussian", TakesMaskedGaussian, RunMaskedGaussian, ScratchOfMaskedGaussian };
}

} // namespace chunkwise
