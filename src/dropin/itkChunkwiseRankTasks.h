/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseRankTasks_h
#define itkChunkwiseRankTasks_h
#include "itkChunkwiseMorphologyTasks.h"
#include "itkMedianImageFilter.h"
#include "itkRankImageFilter.h"

#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

namespace itk
{

/** The percentile that gives, in windows of any number of voxels up to `most`, the voxel that ITK takes, whose number
 * is computed in float. Returns NaN if there is none. */
inline double
PercentileOfItk(float rank, std::int64_t most)
{
  const auto numberOf = [rank](std::int64_t n) { return static_cast<std::int64_t>(rank * static_cast<float>(n - 1)); };
  double     lower = 0.0;
  for (std::int64_t n = 2; n <= most; ++n)
  {
    lower = std::max(lower, static_cast<double>(numberOf(n)) / static_cast<double>(n - 1));
  }
  // A little more, so that products that are whole numbers are not rounded below them.
  const double percentile =
    (lower > static_cast<double>(rank) ? lower * (1 + 1e-13) : static_cast<double>(rank)) * 100.0;
  for (std::int64_t n = 2; n <= most; ++n)
  {
    if (static_cast<std::int64_t>(percentile / 100.0 * static_cast<double>(n - 1)) != numberOf(n))
    {
      return std::numeric_limits<double>::quiet_NaN();
    }
  }
  return percentile;
}

/** The same, looked up where it was asked before: filters ask for each run, and large windows have a million numbers.
 */
inline double
KnownPercentileOfItk(float rank, std::int64_t most)
{
  static std::mutex                                       mutex;
  static std::map<std::pair<float, std::int64_t>, double> known;
  const std::lock_guard<std::mutex>                       lock(mutex);
  const auto                                              key = std::make_pair(rank, most);
  const auto                                              found = known.find(key);
  if (found != known.end())
  {
    return found->second;
  }
  constexpr std::size_t enough = 64;
  if (known.size() >= enough)
  {
    known.clear();
  }
  return known[key] = PercentileOfItk(rank, most);
}

template <typename TImage>
void
DescribeChunkwiseTask(const MedianImageFilter<TImage, TImage> & filter, ChunkwiseStandInTask & task)
{
  task.filter = "median";
  task.parameters.Set("Radius", ChunkwiseSizes(filter.GetRadius()));
  task.parameters.Set("BoundaryCondition", "zero-flux");
}

template <typename TImage, typename TKernel>
void
DescribeChunkwiseTask(const RankImageFilter<TImage, TImage, TKernel> & filter, ChunkwiseStandInTask & task)
{
  task.filter = "percentile";
  task.isThinWrong = true;
  if (!DescribeChunkwiseKernel(filter.GetKernel(), task))
  {
    task.Refuse("a structuring element other than a box");
    return;
  }
  const auto       taps = static_cast<std::int64_t>(filter.GetKernel().Size());
  constexpr double most = 1 << 20;
  const double     percentile = static_cast<double>(taps) > most ? std::numeric_limits<double>::quiet_NaN()
                                                                 : KnownPercentileOfItk(filter.GetRank(), taps);
  if (std::isnan(percentile))
  {
    task.Refuse("no percentile is the one that ITK rounds to");
    return;
  }
  task.parameters.SetReal("Percentile", percentile);
}

} // namespace itk

#endif
