/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCpuVoxelParts.h"
#include "chunkwiseDevice.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseStatisticsSummary.h"

#include <algorithm>
#include <cstring>

namespace chunkwise
{

namespace
{

/** The destination of VoxelStatistics' sums: one worker's summary. */
struct HostDigits
{
  StatisticsSummary & summary;

  void
  AddToSum(int i, std::int64_t part)
  {
    summary.sum[i] += part;
  }
  void
  AddToSquares(int i, std::int64_t part)
  {
    summary.squares[i] += part;
  }
  void
  AddAllToSum(int first, Int128 value)
  {
    AddParts(first, value, [this](int i, std::int64_t part) { AddToSum(i, part); });
  }
  void
  AddAllToSquares(int first, Int128 value)
  {
    AddParts(first, value, [this](int i, std::int64_t part) { AddToSquares(i, part); });
  }
};

std::size_t
WorkerBytes(int concurrency)
{
  return (static_cast<std::size_t>(concurrency) * sizeof(StatisticsSummary) + 255) / 256 * 256;
}

/** The scratch has a summary for each worker, then what the stage takes. */
void
RunStatistics(const KernelCall & call)
{
  const auto   concurrency = call.executor->GetConcurrency();
  auto * const summaries = static_cast<StatisticsSummary *>(call.scratch);
  std::memset(call.scratch, 0, concurrency * sizeof(StatisticsSummary));
  const std::size_t own = WorkerBytes(static_cast<int>(concurrency));
  KernelCall        stage = call;
  stage.scratch = static_cast<char *>(call.scratch) + own;
  stage.scratchBytes = call.scratchBytes - own;
  const BufferView values = RunStatisticsStage(stage);
  // A stage reports the voxels itself.
  const bool reports = !static_cast<const StatisticsOperation &>(*call.operation).stage;
  DispatchPixelType(values.kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    ForEachPart<Pixel>(call, values, call.writable, reports, [&](unsigned int worker, const auto & forEachRun) {
      StatisticsSummary &    mine = summaries[worker];
      HostDigits             digits{ mine };
      VoxelStatistics<Pixel> statistics;
      forEachRun([&](const Pixel * voxels, std::int64_t n) {
        for (std::int64_t i = 0; i < n; ++i)
        {
          statistics.Add(voxels[i], digits);
        }
      });
      statistics.End(digits);
      if (statistics.finite > 0)
      {
        mine.minimum = mine.finite > 0 ? std::min(mine.minimum, statistics.GetMinimum()) : statistics.GetMinimum();
        mine.maximum = mine.finite > 0 ? std::max(mine.maximum, statistics.GetMaximum()) : statistics.GetMaximum();
      }
      mine.finite += statistics.finite;
      mine.nans += statistics.nans;
      mine.positiveInfinities += statistics.positiveInfinities;
      mine.negativeInfinities += statistics.negativeInfinities;
      mine.PassCarriesOn();
    });
  });
  for (unsigned int worker = 1; worker < concurrency; ++worker)
  {
    summaries[0].Merge(summaries[worker]);
  }
  std::memcpy(call.sideOut, summaries, sizeof(StatisticsSummary));
}

} // namespace

void
RegisterHostStatistics(KernelRegistry & registry)
{
  KernelSet kernels;
  kernels.summarize.run = RunStatistics;
  kernels.summarize.scratchBytes = [](const Operation & operation, const ChunkShape & shape) {
    return WorkerBytes(shape.concurrency) + StatisticsStageBytes(operation, shape);
  };
  kernels.summarize.cost = StatisticsCost;
  registry.Register("statistics", kernels);
}

} // namespace chunkwise
