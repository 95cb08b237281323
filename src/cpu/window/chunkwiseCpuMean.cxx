/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuWideMeanRows.h"
#include "chunkwiseCpuWindow.h"
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
  std::int64_t radius[MaxDimension];
  /** Taps of a whole window. */
  std::int64_t taps{ 1 };
  Accumulator  accumulator{ Accumulator::Float32 };
  std::int64_t accumulatorBytes{ 4 };
  /** Sums of 0 and 1 that bytes hold. */
  bool counts{ false };
};

MeanShape
ShapeOf(const MeanOperation & operation, const Box & image, PixelKind kind)
{
  MeanShape shape;
  for (int a = 0; a < MaxDimension; ++a)
  {
    shape.radius[a] = operation.EffectiveRadius(a, image.Extent(a));
    shape.taps *= 2 * shape.radius[a] + 1;
  }
  shape.counts =
    kind == PixelKind::UInt8 && shape.taps <= 255 && dynamic_cast<const MaskCountOperation *>(&operation) != nullptr;
  if (shape.counts)
  {
    shape.accumulatorBytes = 1;
    return shape;
  }
  switch (kind)
  {
    case PixelKind::Float32:
      break;
    case PixelKind::Float64:
      shape.accumulator = Accumulator::Float64;
      shape.accumulatorBytes = 8;
      break;
    case PixelKind::UInt64:
    case PixelKind::Int64:
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
ConstantOf(const PixelValue & constant, PixelKind kind)
{
  return DispatchPixelKind(kind,
                           [&](auto pixel) { return static_cast<TAcc>(ConstantPixel<decltype(pixel)>(constant)); });
}

WideMean
WideMeanOf(const KernelCall & call, const MeanShape & shape)
{
  const auto & operation = static_cast<const MeanOperation &>(*call.operation);
  WideMean     mean;
  mean.in = call.inputs[0];
  mean.extent = call.image.Extents();
  std::copy(std::begin(shape.radius), std::end(shape.radius), std::begin(mean.radius.axis));
  mean.mode = operation.boundary.mode;
  mean.constant = ConstantOf<float>(operation.boundary.constant, PixelKind::Float32);
  return mean;
}

template <typename TAcc>
void
Run(const KernelCall & call, const MeanShape & shape, const RowFunctions<TAcc> & rows)
{
  const auto &     operation = static_cast<const MeanOperation &>(*call.operation);
  const CpuLevel & level = GetCpuLevel();
  const bool       renormalized = operation.boundary.mode == BoundaryMode::Renormalized && !operation.sums;
  AxisWindow<TAcc> windows[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows[a].radius = shape.radius[a];
  }
  const std::int64_t components = WindowTiling::ComponentsOf(call, shape.radius);
  const WindowTiling tiling(call.output.box, call.image, shape.radius, sizeof(TAcc), false, components);
  const auto         accumulator = static_cast<int>(shape.accumulator);
  const auto         finishRow = level.finishMean[accumulator][static_cast<int>(call.output.kind)];
  const auto         pixel = static_cast<std::int64_t>(PixelSize(call.output.kind));
  const auto         tapsInside = [&](int a, std::int64_t i) {
    return std::min(i + shape.radius[a], call.image.Extent(a) - 1) - std::max<std::int64_t>(i - shape.radius[a], 0) + 1;
  };
  WideMeanRows wide(call, WideMeanOf(call, shape));
  const auto   finish = [&](const TAcc * row, const Coordinates & index, std::int64_t n) {
    std::int64_t count = operation.sums ? 1 : shape.taps;
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
          run = std::min(
            run, (here < 2 * shape.radius[0] + 1 ? 1 : call.image.Extent(0) - shape.radius[0] - i) * components);
        }
        finishRow(to + (x - first) * pixel, row + x, taps, run, operation.truncates);
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
      if (!operation.sums)
      {
        wide.Amend(row, index, n, components);
      }
    }
  };
  WindowSweep<TAcc>(call,
                    rows,
                    level.convert[static_cast<int>(call.inputs[0].kind)][accumulator],
                    operation.boundary.mode,
                    ConstantOf<TAcc>(operation.boundary.constant, call.inputs[0].kind),
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
  const auto &             operation = static_cast<const MeanOperation &>(*call.operation);
  const std::int64_t       components = WindowTiling::ComponentsOf(call, shape.radius);
  const WindowTiling       tiling(call.output.box, call.image, shape.radius, 1, false, components);
  AxisWindow<std::uint8_t> windows[MaxDimension];
  for (int a = 0; a < MaxDimension; ++a)
  {
    windows[a].radius = shape.radius[a];
  }
  DispatchPixelKind(call.output.kind, [&](auto pixel) {
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
                              operation.boundary.mode,
                              ConstantOf<std::uint8_t>(operation.boundary.constant, PixelKind::UInt8),
                              windows,
                              tiling)
      .Run(finish);
  });
}

void
RunMean(const KernelCall & call)
{
  const auto &     operation = static_cast<const MeanOperation &>(*call.operation);
  const MeanShape  shape = ShapeOf(operation, call.image, call.inputs[0].kind);
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
  const MeanShape    shape = ShapeOf(static_cast<const MeanOperation &>(operation), chunk.image, chunk.inputKinds[0]);
  const std::int64_t scratch =
    WindowTiling::GetScratch(chunk.outputBox, chunk.image, shape.radius, shape.accumulatorBytes, false);
  return static_cast<std::size_t>(scratch * shape.accumulatorBytes * chunk.concurrency);
}

} // namespace

void
RegisterHostMean(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunMean;
  kernel.scratchBytes = ScratchOfMean;
  registry.Register("mean", { kernel });
}

} // namespace chunkwise
