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

/** Counts into one row of counters for each worker, `counters` of them, in scratch; then adds the rows up. `count` is
 * called with a voxel and the worker's row. */
template <typename TPixel, typename TCount>
void
CountVoxels(const KernelCall & call, TCount && count)
{
  const std::size_t    counters = call.sideOutBytes / sizeof(std::int64_t);
  const std::size_t    workers = call.executor->GetConcurrency();
  std::int64_t * const rows = static_cast<std::int64_t *>(call.scratch);
  std::memset(rows, 0, workers * call.sideOutBytes);
  ForEachPart<TPixel>(call, call.inputs[0], call.writable, true, [&](unsigned int worker, const auto & forEachRun) {
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

void
RunHistogram(const KernelCall & call)
{
  const auto & operation = static_cast<const HistogramOperation &>(*call.operation);
  const double scale = operation.GetScale();
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    CountVoxels<decltype(pixel)>(call, [&](auto value, std::int64_t * row) {
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
  DispatchPixelKind(call.inputs[0].kind, [&](auto pixel) {
    CountVoxels<decltype(pixel)>(call, [&](auto value, std::int64_t * row) {
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

std::size_t
CounterBytes(const Operation & operation, const ChunkShape & shape)
{
  return static_cast<std::size_t>(shape.concurrency) * operation.GetSummaryBytes(shape.outputBox, {}, shape.outputKind);
}

} // namespace

void
RegisterHostHistogram(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.summarize.scratchBytes = CounterBytes;
  kernels.summarize.run = RunHistogram;
  registry.Register("histogram", kernels);
  kernels.summarize.run = RunOrdinals;
  registry.Register("ordinals", kernels);
}

} // namespace chunkwise
