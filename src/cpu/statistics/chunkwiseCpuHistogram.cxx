/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuVoxelParts.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseOrdinal.h"
#include "chunkwiseStatisticsOperation.h"

#include <cstring>

namespace chunkwise
{

namespace
{

/** Counts the voxels of `view` into one row of counters for each worker, in scratch; then adds the rows up. `count` is
 * called with a voxel and the worker's row. */
template <typename TPixel, typename TCount>
void
CountVoxels(const KernelCall & call, const BufferView & view, bool reports, TCount && count)
{
  const std::size_t    counters = call.sideOutBytes / sizeof(std::int64_t);
  const std::size_t    workers = call.executor->GetConcurrency();
  std::int64_t * const rows = static_cast<std::int64_t *>(call.scratch);
  std::memset(rows, 0, workers * call.sideOutBytes);
  ForEachPart<TPixel>(call, view, call.writable, reports, [&](unsigned int worker, const auto & forEachRun) {
    std::int64_t * const row = rows + worker * counters;
    forEachRun([&](const TPixel * voxels, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i)
      {
        count(voxels[i], row);
      }
    });
  });
  for (std::size_t worker = 1; worker < workers; ++worker)
  {
    for (std::size_t i = 0; i < counters; ++i)
    {
      rows[i] += rows[worker * counters + i];
    }
  }
  std::memcpy(call.sideOut, rows, call.sideOutBytes);
}

/** A multiple of 256, so that a stage's scratch behind them is aligned. */
std::size_t
CounterBytes(const Operation & operation, std::size_t concurrency)
{
  constexpr std::size_t alignment = 256;
  const std::size_t     bytes = concurrency * operation.GetSummaryBytes({}, {}, PixelType::UInt8);
  return (bytes + alignment - 1) / alignment * alignment;
}

void
RunHistogram(const KernelCall & call)
{
  const auto & operation = static_cast<const HistogramOperation &>(*call.operation);
  const double scale = operation.GetScale();
  // The counters come first. A stage reports the voxels itself.
  const std::size_t bytes = CounterBytes(operation, call.executor->GetConcurrency());
  KernelCall        stage = call;
  stage.scratch = static_cast<char *>(call.scratch) + bytes;
  stage.scratchBytes = call.scratchBytes - bytes;
  const BufferView values = RunStatisticsStage(stage);
  DispatchPixelType(values.kind, [&](auto pixel) {
    CountVoxels<decltype(pixel)>(call, values, !operation.stage, [&](auto value, std::int64_t * row) {
      const bool isNumber = value == value;
      ++row[isNumber ? BinOf(value, operation.lower, scale, operation.bins) : operation.bins];
    });
  });
}

void
RunOrdinals(const KernelCall & call)
{
  const auto &          operation = static_cast<const OrdinalsOperation &>(*call.operation);
  const std::uint64_t   mask = (std::uint64_t{ 1 } << operation.bits) - 1;
  const std::uint64_t   first = operation.prefixes.front();
  const std::uint64_t   last = operation.prefixes.back();
  const std::uint64_t * prefixes = operation.prefixes.data();
  const int             bits = operation.bits;
  const int             shift = operation.shift;
  DispatchPixelType(call.inputs[0].kind, [&](auto pixel) {
    CountVoxels<decltype(pixel)>(call, call.inputs[0], true, [&](auto value, std::int64_t * row) {
      const std::uint64_t head = OrdinalOf(value) >> shift;
      const std::uint64_t prefix = head >> bits;
      if (prefix < first || prefix > last || value != value)
      {
        return;
      }
      std::size_t i = 0;
      while (prefixes[i] < prefix)
      {
        ++i;
      }
      if (prefixes[i] == prefix)
      {
        ++row[i << bits | (head & mask)];
      }
    });
  });
}

} // namespace

void
RegisterHostHistogram(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.summarize.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return CounterBytes(operation, static_cast<std::size_t>(shape.concurrency)) +
           StatisticsStageBytes(operation, shape);
  };
  kernels.summarize.cost = StatisticsCost;
  kernels.summarize.run = RunHistogram;
  registry.Register("histogram", kernels);
  kernels.summarize.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return CounterBytes(operation, static_cast<std::size_t>(shape.concurrency));
  };
  kernels.summarize.cost = nullptr;
  kernels.summarize.run = RunOrdinals;
  registry.Register("ordinals", kernels);
}

} // namespace chunkwise
