/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuMean.h"

#include "chunkwiseCpuWideMeanRows.h"
#include "chunkwiseCpuWindow.h"
#include "chunkwiseFootprintOperation.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseMaskCountOperation.h"
#include "chunkwiseOperations.h"
#include "chunkwiseReducer.h"
#include "chunkwiseStridedVoxels.h"
#include "chunkwiseWindow.h"

#include <cstring>
#include <limits>

namespace chunkwise
{

namespace
{

struct MeanShape
{
  WindowBoundary boundary;
  bool           sums{ false };
  bool           truncates{ false };
  std::int64_t   lower[MaxDimension]{};
  std::int64_t   upper[MaxDimension]{};
  /** The farther of both. */
  std::int64_t radius[MaxDimension]{};
  /** Taps of a whole window. */
  std::int64_t taps{ 1 };
  Accumulator  accumulator{ Accumulator::Float32 };
  std::int64_t accumulatorBytes{ 4 };
  /** Sums of 0 and 1 that bytes hold. */
  bool counts{ false };
};

/** The windows of a MeanOperation, or of a FootprintOperation that has sides. */
MeanShape
WindowsOf(const Operation & operation, const Box & image)
{
  MeanShape shape;
  if (const auto * const footprint = dynamic_cast<const FootprintOperation *>(&operation))
  {
    const auto sides = footprint->GetSides(image.Extents());
    shape.boundary = footprint->boundary;
    shape.sums = footprint->statistic == FootprintStatistic::Sum;
    shape.truncates = footprint->truncates;
    std::copy(sides->lower.axis, sides->lower.axis + MaxDimension, shape.lower);
    std::copy(sides->upper.axis, sides->upper.axis + MaxDimension, shape.upper);
  }
  else
  {
    const auto & mean = static_cast<const MeanOperation &>(operation);
    shape.boundary = mean.boundary;
    shape.sums = mean.sums;
    shape.truncates = mean.truncates;
    for (int a = 0; a < MaxDimension; ++a)
    {
      shape.lower[a] = shape.upper[a] = mean.EffectiveRadius(a, image.Extent(a));
    }
  }
  for (int a = 0; a < MaxDimension; ++a)
  {
    shape.radius[a] = std::max(shape.lower[a], shape.upper[a]);
    shape.taps *= shape.lower[a] + 1 + shape.upper[a];
  }
  return shape;
}

MeanShape
ShapeOf(const Operation & operation, const Box & image, PixelType kind)
{
  MeanShape shape = WindowsOf(operation, image);
  shape.counts =
    kind == PixelType::UInt8 && shape.taps <= 255 && dynamic_cast<const MaskCountOperation *>(&operation) != nullptr;
  if (shape.counts)
  {
    shape.accumulatorBytes = 1;
    return shape;
  }
  switch (kind)
  {
    case PixelType::Float32:
      if (dynamic_cast<const FootprintOperation *>(&operation) == nullptr)
      {
        break;
      }
      [[fallthrough]];
    case PixelType::Float64:
      shape.accumulator = Accumulator::Float64;
      shape.accumulatorBytes = 8;
      break;
    case PixelType::UInt64:
    case PixelType::Int64:
      shape.accumulator = Accumulator::Int128;
      shape.accumulatorBytes = 16;
      break;
    default:
    {
      const double largest = PixelSize(kind) == 1 ? 255.0 : PixelSize(kind) == 2 ? 65535.0 : 4294967295.0;
      const bool   small = largest * static_cast<double>(shape.taps) < 2147483648.0;
      shape.accumulator = small ? Accumulator::Int32 : Accumulator::Int64;
      shape.accumulatorBytes = small ? 4 : 8;
      if (PixelSize(kind) == 1 && 255 * shape.taps <= std::numeric_limits<std::int16_t>::max())
      {
        shape.accumulator = Accumulator::Int16;
        shape.accumulatorBytes = 2;
      }
    }
  }
  return shape;
}

/** The constant as a voxel of the image would hold it. */
template <typename TAcc>
TAcc
ConstantOf(const PixelValue & constant, PixelType kind)
{
  return DispatchPixelType(kind,
                           [&](auto pixel) { return static_cast<TAcc>(ConstantPixel<decltype(pixel)>(constant)); });
}

WideMean
WideMeanOf(const KernelCall & call, const MeanShape & shape)
{
  WideMean mean;
  mean.in = call.inputs[0];
  mean.extent = call.image.Extents();
  std::copy(std::begin(shape.radius), std::end(shape.radius), std::begin(mean.radius.axis));
  mean.mode = shape.boundary.mode;
  mean.constant = ConstantOf<float>(shape.boundary.constant, PixelType::Float32);
  return mean;
}

template <typename TAcc>
void
SetWindows(const MeanShape & shape, AxisWindow<TAcc> (&windows)[MaxDimension])
{
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows[a].radius = shape.lower[a];
    windows[a].further = shape.upper[a] - shape.lower[a];
  }
}

template <typename TAcc>
void
Run(const KernelCall & call, const MeanShape & shape, const RowFunctions<TAcc> & rows)
{
  const CpuLevel & level = GetCpuLevel();
  const bool       renormalized = shape.boundary.mode == BoundaryMode::Renormalized && !shape.sums;
  AxisWindow<TAcc> windows[MaxDimension];
  SetWindows(shape, windows);
  const std::int64_t components = WindowTiling::ComponentsOf(call, shape.radius);
  const WindowTiling tiling(call.output.box, call.image, shape.radius, sizeof(TAcc), false, components);
  const auto         accumulator = static_cast<int>(shape.accumulator);
  const auto         finishRow = level.finishMean[accumulator][static_cast<int>(call.output.kind)];
  const auto         pixel = static_cast<std::int64_t>(PixelSize(call.output.kind));
  const auto         tapsInside = [&](int a, std::int64_t i) {
    return std::min(i + shape.upper[a], call.image.Extent(a) - 1) - std::max<std::int64_t>(i - shape.lower[a], 0) + 1;
  };
  WideMeanRows wide(call, WideMeanOf(call, shape));
  const auto   finish = [&](const TAcc * row, const Coordinates & index, std::int64_t n) {
    std::int64_t count = shape.sums ? 1 : shape.taps;
    if (renormalized)
    {
      count = 1;
      for (int a = 1; a < MaxDimension; ++a)
      {
        count *= tapsInside(a, index[a]);
      }
    }
    // Along x the number of taps is the same but near the edges. Pieces hold whole voxels.
    const auto finishPiece = [&](char * to, std::int64_t first, std::int64_t numbers) {
      for (std::int64_t x = first; x < first + numbers;)
      {
        std::int64_t run = first + numbers - x;
        std::int64_t taps = count;
        if (renormalized)
        {
          const std::int64_t i = index[0] + x / components;
          const std::int64_t here = tapsInside(0, i);
          taps *= here;
          run = std::min(run, (here < windows[0].Taps() ? 1 : call.image.Extent(0) - shape.upper[0] - i) * components);
        }
        finishRow(to + (x - first) * pixel, row + x, taps, run, shape.truncates);
        x += run;
      }
    };
    MakeStrided(static_cast<std::size_t>(pixel),
                static_cast<char *>(call.output.data) + call.output.Offset(index) * pixel,
                components > 1 ? 1 : call.output.stride[0],
                n,
                finishPiece);
    if constexpr (std::is_same<TAcc, float>::value)
    {
      if (!shape.sums)
      {
        wide.Amend(row, index, n, components);
      }
    }
  };
  WindowSweep<TAcc>(call,
                    rows,
                    level.convert[static_cast<int>(call.inputs[0].kind)][accumulator],
                    shape.boundary.mode,
                    ConstantOf<TAcc>(shape.boundary.constant, call.inputs[0].kind),
                    windows,
                    tiling)
    .Run(finish);
}

void
CopyBytes(void * out, const void * in, std::int64_t n)
{
  std::memcpy(out, in, static_cast<std::size_t>(n));
}

/** Sums of 0 and 1. */
void
RunCounts(const KernelCall & call, const MeanShape & shape)
{
  const std::int64_t       components = WindowTiling::ComponentsOf(call, shape.radius);
  const WindowTiling       tiling(call.output.box, call.image, shape.radius, 1, false, components);
  AxisWindow<std::uint8_t> windows[MaxDimension];
  SetWindows(shape, windows);
  DispatchPixelType(call.output.kind, [&](auto pixel) {
    using Out = decltype(pixel);
    const auto finish = [&](const std::uint8_t * row, const Coordinates & index, std::int64_t n) {
      Out * const to = static_cast<Out *>(call.output.data) + call.output.Offset(index);
      WithStride(components > 1 ? 1 : call.output.stride[0], [&](auto step) {
        for (std::int64_t i = 0; i < n; ++i)
        {
          to[i * step] = static_cast<Out>(row[i]);
        }
      });
    };
    WindowSweep<std::uint8_t>(call,
                              GetCpuLevel().count8,
                              CopyBytes,
                              shape.boundary.mode,
                              ConstantOf<std::uint8_t>(shape.boundary.constant, PixelType::UInt8),
                              windows,
                              tiling)
      .Run(finish);
  });
}

} // namespace

void
RunMean(const KernelCall & call)
{
  const MeanShape  shape = ShapeOf(*call.operation, call.image, call.inputs[0].kind);
  const CpuLevel & level = GetCpuLevel();
  if (shape.counts)
  {
    RunCounts(call, shape);
    return;
  }
  switch (shape.accumulator)
  {
    case Accumulator::Int16:
      return Run(call, shape, level.int16);
    case Accumulator::Int32:
      return Run(call, shape, level.int32);
    case Accumulator::Int64:
      return Run(call, shape, level.int64);
    case Accumulator::Int128:
      return Run(call, shape, level.int128);
    case Accumulator::Float32:
      return Run(call, shape, level.float32);
    case Accumulator::Float64:
      return Run(call, shape, level.float64);
  }
}

std::size_t
ScratchOfMean(const Operation & operation, const ChunkShape & chunk)
{
  const MeanShape    shape = ShapeOf(operation, chunk.image, chunk.inputKinds[0]);
  const std::int64_t scratch =
    WindowTiling::GetScratch(chunk.outputBox, chunk.image, shape.radius, shape.accumulatorBytes, false);
  return static_cast<std::size_t>(scratch * shape.accumulatorBytes * chunk.concurrency);
}

void
RegisterHostMean(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunMean;
  kernel.scratchBytes = ScratchOfMean;
  registry.Register("mean", { kernel });
}

} // namespace chunkwise
