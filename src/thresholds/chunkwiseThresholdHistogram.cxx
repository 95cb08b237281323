/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDomainOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseOperations.h"
#include "chunkwisePartMonitor.h"
#include "chunkwiseStatisticsOperation.h"
#include "chunkwiseThresholdEstimate.h"
#include "chunkwiseThresholdOperation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace chunkwise
{

namespace
{

constexpr int MostBins = HistogramOperation::LargestBins;

/** Counts of 16 bits are half a megabyte: those of an image that is one chunk are the result as they are. */
class HistogramOfRegion : public HistogramOperation
{
public:
  bool
  SummaryIsTotal() const override
  {
    return true;
  }
};

/** The image as real numbers, NaN where the mask is 0: the mean over a window of one voxel. */
void
SetStage(StagedSummaryOperation & summary, PixelType kind)
{
  const auto inside = std::make_shared<DomainOperation>();
  inside->window = std::make_shared<MeanOperation>();
  inside->imageKind = kind;
  summary.stage = inside;
  summary.stageKind = PixelType::Float64;
}

std::shared_ptr<HistogramOperation>
MakeHistogram(PixelType kind, bool masked, int bins, double lower, double upper)
{
  auto operation = std::make_shared<HistogramOfRegion>();
  operation->bins = bins;
  operation->lower = lower;
  operation->upper = upper;
  if (masked)
  {
    SetStage(*operation, kind);
  }
  return operation;
}

/** Without the empty bins at both ends. */
ThresholdHistogram
Trimmed(ImageHistogram histogram, double first, double width)
{
  const auto isFilled = [](std::int64_t count) { return count > 0; };
  const auto begin = std::find_if(histogram.counts.begin(), histogram.counts.end(), isFilled);
  const auto end = std::find_if(histogram.counts.rbegin(), histogram.counts.rend(), isFilled).base();
  if (begin == histogram.counts.end())
  {
    throw ParameterError("the image has no voxel that is a number, from which a threshold could be taken");
  }
  ThresholdHistogram trimmed;
  trimmed.first = first + static_cast<double>(begin - histogram.counts.begin()) * width;
  trimmed.width = width;
  histogram.counts.erase(end, histogram.counts.end());
  histogram.counts.erase(histogram.counts.begin(), begin);
  trimmed.counts = std::move(histogram.counts);
  return trimmed;
}

/** Bins between the first value of a complete histogram and its last one, from which all bins of other widths follow.
 */
ThresholdHistogram
WithBins(const ThresholdHistogram & complete, int bins)
{
  HistogramOperation operation;
  operation.bins = bins;
  operation.lower = complete.first;
  operation.upper = complete.GetCenter(complete.counts.size() - 1);
  if (complete.counts.size() == 1)
  {
    return complete;
  }
  ThresholdHistogram histogram;
  histogram.width = (operation.upper - operation.lower) / bins;
  histogram.first = operation.lower + histogram.width / 2;
  histogram.counts.assign(static_cast<std::size_t>(bins), 0);
  for (std::size_t i = 0; i < complete.counts.size(); ++i)
  {
    histogram.counts[BinOf(complete.GetCenter(i), operation.lower, operation.GetScale(), bins)] += complete.counts[i];
  }
  return histogram;
}

} // namespace

ThresholdHistogram
ComputeThresholdHistogram(const SummaryRun & run, PixelType kind, int bins, bool masked, Monitor * monitor)
{
  const bool isReal = IsFloatingPoint(kind);
  const auto countsOf = [&](int number, double lower, double upper, Monitor * part) {
    const SummaryRun ofHistogram = [&](const std::shared_ptr<const Operation> &, Monitor * ofRun) {
      return run(MakeHistogram(kind, masked, number, lower, upper), ofRun);
    };
    return ComputeHistogram(ofHistogram, number, { lower, upper }, part);
  };
  if (!isReal && PixelSize(kind) <= 2)
  {
    const ValueRange   range = GetEntropyRange(kind, ImageStatistics(kind), 1);
    const auto         values = static_cast<int>(range.upper - range.lower);
    ThresholdHistogram complete = Trimmed(countsOf(values, range.lower, range.upper, monitor), range.lower, 1);
    return bins > 0 ? WithBins(complete, bins) : complete;
  }
  const auto statistics = std::make_shared<StatisticsOperation>();
  if (masked)
  {
    SetStage(*statistics, kind);
  }
  PartMonitor first(monitor, 0, 0.5);
  PartMonitor second(monitor, 0.5, 1);
  ChunkState  summary;
  try
  {
    summary = run(statistics, &first);
  }
  catch (const BudgetError & error)
  {
    // The error names what is enough for the histogram, too.
    try
    {
      countsOf(bins > 0 ? bins : isReal ? 256 : MostBins, 0, 1, nullptr);
    }
    catch (const BudgetError & later)
    {
      if (later.needed > error.needed)
      {
        throw;
      }
    }
    throw;
  }
  const ImageStatistics found(masked ? statistics->stageKind : kind, summary);
  if (found.GetCount() == found.GetNumberOfInfinities())
  {
    throw ParameterError("the image has no finite voxel from which a threshold could be taken");
  }
  const double lower = found.GetFiniteMinimum().As<double>();
  double       upper = found.GetFiniteMaximum().As<double>();
  const double largest = 9007199254740992.0;
  if (!isReal && bins == 0 && upper - lower < MostBins && lower >= -largest && upper <= largest)
  {
    return Trimmed(countsOf(static_cast<int>(upper - lower) + 1, lower, upper + 1, &second), lower, 1);
  }
  if (lower == upper && found.GetNumberOfInfinities() == 0)
  {
    return { lower, 1, { found.GetCount() } };
  }
  const int number = bins > 0 ? bins : 256;
  if (lower == upper)
  {
    // Beside infinities one value has bins around it.
    upper =
      lower + std::max(1.0, std::nextafter(std::abs(lower), std::numeric_limits<double>::infinity()) - std::abs(lower));
  }
  if (!std::isfinite(upper - lower))
  {
    throw ParameterError("the values are from " + PixelValue(lower).ToText() + " to " + PixelValue(upper).ToText() +
                         ", too far apart for a histogram");
  }
  // Bins that are too narrow for BinOf would be wider than the values are apart.
  upper = std::max(upper, lower + number * std::numeric_limits<double>::min());
  const double width = (upper - lower) / number;
  return Trimmed(countsOf(number, lower, upper, &second), lower + width / 2, width);
}

namespace
{

std::vector<double>
TakeThresholds(const Operation & operation, PixelType input, const SummaryRun & run, Monitor * monitor)
{
  const auto & threshold = dynamic_cast<const ThresholdOperation &>(operation);
  return ComputeThresholds(ComputeThresholdHistogram(run, input, threshold.bins, threshold.masked, monitor),
                           threshold.method,
                           threshold.classes);
}

} // namespace

ParameterEstimate
GetThresholdEstimate()
{
  return { TakeThresholds, [](const Operation & operation, PixelType input) -> std::shared_ptr<const Operation> {
            const auto & threshold = dynamic_cast<const ThresholdOperation &>(operation);
            return MakeHistogram(input, threshold.masked, MostBins, 0, MostBins);
          } };
}

} // namespace chunkwise
