/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuRowOutput.h"
#include "chunkwiseCpuSeparableWindow.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseOperations.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseStridedVoxels.h"

namespace chunkwise
{

namespace
{

template <typename TAcc>
void
Run(const KernelCall & call, const RowFunctions<TAcc> & rows, Accumulator accumulator)
{
  const auto &                operation = static_cast<const SeparableOperation &>(*call.operation);
  const CpuLevel &            level = GetCpuLevel();
  const SeparableWindow<TAcc> window(operation, call.image);
  std::int64_t                radius[MaxDimension];
  RadiiOf(operation, radius);
  const std::int64_t components = WindowTiling::ComponentsOf(call, radius);
  const WindowTiling tiling = MakeSeparableTiling(operation, call.output.box, call.image, sizeof(TAcc), components);
  const auto      finishRow = level.finishWeighted[static_cast<int>(accumulator)][static_cast<int>(call.output.kind)];
  const RowOutput output(call.output, components);
  const auto      finish = [&](const TAcc * row, const Coordinates & index, std::int64_t n) {
    output.Make(
      index, n, [&](char * to, std::int64_t first, std::int64_t count) { finishRow(to, row + first, count); });
  };
  WindowSweep<TAcc>(call,
                    rows,
                    level.convert[static_cast<int>(call.inputs[0].kind)][static_cast<int>(accumulator)],
                    operation.boundary.mode,
                    static_cast<TAcc>(operation.boundary.constant),
                    window.axes,
                    tiling)
    .Run(finish);
}

void
RunSeparable(const KernelCall & call)
{
  if (UsesDouble(call.inputs[0].kind))
  {
    Run(call, GetCpuLevel().float64, Accumulator::Float64);
  }
  else
  {
    Run(call, GetCpuLevel().float32, Accumulator::Float32);
  }
}

std::size_t
ScratchOfSeparable(const Operation & operation, const ChunkShape & chunk)
{
  const auto & separable = static_cast<const SeparableOperation &>(operation);
  std::int64_t radius[MaxDimension];
  RadiiOf(separable, radius);
  const std::int64_t bytes = UsesDouble(chunk.inputKinds[0]) ? 8 : 4;
  const std::int64_t scratch = WindowTiling::GetScratch(
    chunk.outputBox, chunk.image, radius, bytes, separable.boundary.mode == BoundaryMode::Renormalized);
  return static_cast<std::size_t>(scratch * bytes * chunk.concurrency);
}

} // namespace

void
RegisterHostSeparable(KernelRegistry & registry)
{
  Kernel kernel;
  kernel.run = RunSeparable;
  kernel.scratchBytes = ScratchOfSeparable;
  registry.Register("separable", { kernel });
}

} // namespace chunkwise
