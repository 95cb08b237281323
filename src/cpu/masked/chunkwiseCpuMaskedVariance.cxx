/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMaskedRows.h"
#include "chunkwiseCpuMaskedWindow.h"
#include "chunkwiseCpuTiles.h"
#include "chunkwiseCpuVariance.h"
#include "chunkwiseCpuWindow.h"
#include "chunkwiseDomainVoxels.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseMaskCountOperation.h"
#include "chunkwiseRunControls.h"
#include "chunkwiseVarianceOperation.h"

// Variances of real numbers in a mask. The stages of DomainOperation compute sums, squares and counts everywhere, each
// through memory, and beside them the variance that the window has without a mask. Here that is computed only where
// windows are wholly inside, and elsewhere sums and squares go through one window together.
namespace chunkwise
{

namespace
{

const VarianceOperation &
VarianceOf(const DomainOperation & domain)
{
  return static_cast<const VarianceOperation &>(*domain.window);
}

/** Longer windows go by blocks, which pairs do not. */
constexpr std::int64_t MostTaps = 9;

bool
TakesMaskedVariance(const DomainOperation & domain, const Box & image, PixelType)
{
  const auto * const window = dynamic_cast<const VarianceOperation *>(domain.window.get());
  if (!window || domain.HasWeights() || domain.IsExact() || domain.marksSeen || domain.insideAlone ||
      window->boundary.mode == BoundaryMode::Constant)
  {
    return false;
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (2 * window->EffectiveRadius(a, image.Extent(a)) + 1 > MostTaps)
    {
      return false;
    }
  }
  return true;
}

/** The box of a variance, as one whose voxels inside a mask are counted. */
MaskCountOperation
CountsOf(const VarianceOperation & window)
{
  MeanOperation box;
  box.radius = window.radius;
  box.boundary = window.boundary;
  return MaskCountOperation(box);
}

/** The operation that is computed, and the images that it takes. */
struct MaskedVariance
{
  std::int64_t radius[MaxDimension]{};
  std::int64_t voxels{ 1 };
  BufferView   mask;
  BufferView   counts;
  std::size_t  bytes{ 0 };

  MaskedVariance(const DomainOperation & domain, const Box & output, const Box & image, void * scratch)
  {
    const VarianceOperation & window = VarianceOf(domain);
    for (int a = 0; a < MaxDimension; ++a)
    {
      radius[a] = window.EffectiveRadius(a, image.Extent(a));
      voxels *= 2 * radius[a] + 1;
    }
    char * const to = static_cast<char *>(scratch);
    mask = TakeImage(to, bytes, PixelType::UInt8, domain.GetStageBoxes(output, image).front());
    counts = TakeImage(to, bytes, voxels <= 255 ? PixelType::UInt8 : PixelType::UInt16, output);
  }
  WindowTiling
  MakeTiling(const Box & output, const Box & image) const
  {
    WindowTiling tiling(output, image, radius, sizeof(double), false, 2);
    tiling.tile[MaxDimension - 1] = 1;
    tiling.AddKnownRows();
    return tiling;
  }
  /** Calls f(counts) for a row of the output. */
  template <typename TFunctor>
  void
  WithCounts(const Coordinates & at, TFunctor && f) const
  {
    counts.kind == PixelType::UInt8 ? f(static_cast<const std::uint8_t *>(counts.data) + counts.Offset(at))
                                    : f(static_cast<const std::uint16_t *>(counts.data) + counts.Offset(at));
  }
};

/** How many voxels whole windows have. */
class WholeCounts
{
public:
  WholeCounts(const DomainOperation & domain, const Box & image, const Box & output)
    : m_Window(domain, image)
    , m_First(output.lower[0])
  {
    for (std::int64_t x = output.lower[0]; x < output.upper[0]; ++x)
    {
      m_AlongX.push_back(static_cast<std::int32_t>(m_Window.Along(0, x)));
    }
  }
  /** Calls f(x, whether the window of at + x is whole) for n voxels. */
  template <typename TCount, typename TFunctor>
  void
  ForEach(const Coordinates & at, std::int64_t n, const TCount * counts, TFunctor && f) const
  {
    std::int32_t across = 1;
    for (int a = 1; a < MaxDimension; ++a)
    {
      across *= static_cast<std::int32_t>(m_Window.Along(a, at[a]));
    }
    const std::int32_t * const along = m_AlongX.data() + (at[0] - m_First);
    for (std::int64_t x = 0; x < n; ++x)
    {
      f(x, static_cast<std::int32_t>(counts[x]) == across * along[x]);
    }
  }

private:
  const WindowCount         m_Window;
  const std::int64_t        m_First;
  std::vector<std::int32_t> m_AlongX;
};

/** Values, hidden outside, and their squares. */
void
Square(double * __restrict__ values, double * __restrict__ squares, const std::uint8_t * __restrict__ mask,
       std::int64_t n)
{
  for (std::int64_t i = 0; i < n; ++i)
  {
    const double value = mask[i] != 0 ? values[i] : 0.0;
    values[i] = value;
    squares[i] = value * value;
  }
}

/** The part of a tile where windows are whole. */
Box
WholePart(const MaskedVariance & variance, const WholeCounts & whole, const Box & tile)
{
  Box part{ tile.upper, tile.lower };
  ForEachRow(tile, [&](const Coordinates & at) {
    std::int64_t begin = tile.Extent(0);
    std::int64_t end = 0;
    variance.WithCounts(at, [&](auto counts) {
      whole.ForEach(at, tile.Extent(0), counts, [&](std::int64_t x, bool isWhole) {
        begin = std::min(begin, isWhole ? x : begin);
        end = isWhole ? x + 1 : end;
      });
    });
    for (int a = 0; a < MaxDimension && begin < end; ++a)
    {
      part.lower[a] = std::min(part.lower[a], a == 0 ? at[0] + begin : at[a]);
      part.upper[a] = std::max(part.upper[a], a == 0 ? at[0] + end : at[a] + 1);
    }
  });
  return part;
}

/** The windows that the mask cuts. */
template <typename TOut>
void
RunCut(const KernelCall & call, const MaskedVariance & variance, const WholeCounts & whole)
{
  const DomainOperation &        domain = MaskedDomainOf(*call.operation);
  const DomainVarianceRule<TOut> rule(domain);
  const PairFunctions<double>    functions{ Square, GetMaskedRowLevel().pairs.look };
  AxisWindow<double>             windows[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows[a].radius = variance.radius[a];
  }
  const WindowTiling  tiling = variance.MakeTiling(call.output.box, call.image);
  WindowSweep<double> sweep(
    call,
    GetCpuLevel().float64,
    GetCpuLevel().convert[static_cast<int>(call.inputs[0].kind)][static_cast<int>(Accumulator::Float64)],
    VarianceOf(domain).boundary.mode,
    0.0,
    windows,
    tiling);
  sweep.PairCut(variance.mask, functions);
  sweep.Run([&](const double * sums, const Coordinates & index, std::int64_t numbers) {
    const std::int64_t n = numbers / 2;
    TOut * const       to = static_cast<TOut *>(call.output.data) + call.output.Offset(index);
    variance.WithCounts(index, [&](auto counts) {
      whole.ForEach(index, n, counts, [&](std::int64_t x, bool isWhole) {
        if (!isWhole)
        {
          to[x * call.output.stride[0]] = rule(sums[x], sums[n + x], static_cast<double>(counts[x]));
        }
      });
    });
  });
}

void
RunMaskedVariance(const KernelCall & call)
{
  const DomainOperation & domain = MaskedDomainOf(*call.operation);
  const MaskedVariance    variance(domain, call.output.box, call.image, call.scratch);
  MakeMask(call, variance.mask, variance.bytes);
  RunMaskedStage(call, "mean", CountsOf(VarianceOf(domain)), { variance.mask }, variance.counts, variance.bytes);
  const WholeCounts  whole(domain, call.image, call.output.box);
  const std::int64_t voxels = call.output.box.NumberOfVoxels();
  ShareControl       control(call.control, 2 * voxels, voxels);
  KernelCall         part = call;
  part.scratch = static_cast<char *>(call.scratch) + variance.bytes;
  part.scratchBytes = call.scratchBytes - variance.bytes;
  part.control = &control;
  part.operation = domain.window.get();
  RunVarianceOf(part, [&](const Box & tile) { return WholePart(variance, whole, tile); });
  part.operation = call.operation;
  DispatchPixelType(call.output.kind, [&](auto out) { RunCut<decltype(out)>(part, variance, whole); });
  if (!control.ShouldStop())
  {
    control.Complete();
  }
}

std::size_t
ScratchOfMaskedVariance(const Operation & operation, const ChunkShape & shape)
{
  const DomainOperation & domain = MaskedDomainOf(operation);
  const MaskedVariance    variance(domain, shape.outputBox, shape.image, nullptr);
  const auto              sweep = variance.MakeTiling(shape.outputBox, shape.image).scratch * shape.concurrency;
  ChunkShape              ofCounts = shape;
  ofCounts.numberOfInputs = 1;
  ofCounts.inputKinds[0] = PixelType::UInt8;
  ofCounts.outputKind = variance.counts.kind;
  return variance.bytes +
         std::max({ static_cast<std::size_t>(sweep) * sizeof(double),
                    shape.kernels->Get("variance", "domain").scratchBytes(*domain.window, shape),
                    shape.kernels->Get("mean", "domain").scratchBytes(CountsOf(VarianceOf(domain)), ofCounts) });
}

} // namespace

MaskedWindow
GetMaskedVariance()
{
  return { "variance", TakesMaskedVariance, RunMaskedVariance, ScratchOfMaskedVariance };
}

} // namespace chunkwise
