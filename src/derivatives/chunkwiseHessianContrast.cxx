/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHessianContrast.h"

#include "chunkwiseMeasureScaleOperation.h"
#include "chunkwisePartMonitor.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseStatisticsOperation.h"

namespace chunkwise
{

namespace
{

/** The measure, of which the filter may give the scale. */
const DerivativeOperation &
MeasureIn(const Operation & operation)
{
  const auto * const scale = dynamic_cast<const MeasureScaleOperation *>(&operation);
  return scale ? scale->measure : dynamic_cast<const DerivativeOperation &>(operation);
}

/** The operation whose largest value over the image is the contrast at one scale: half the largest norm, the largest
 * measure of Meijering, or the largest eigenvalue. */
std::shared_ptr<StatisticsOperation>
MakeContrastOperation(const DerivativeOperation & operation, std::size_t scale, PixelType input)
{
  const auto stage = std::make_shared<DerivativeOperation>(operation);
  stage->scales = { operation.scales[scale] };
  stage->scales.front().contrast = 0;
  if (stage->measure.measure != HessianMeasure::Meijering)
  {
    stage->measure.measure =
      stage->measure.measure == HessianMeasure::Jerman ? HessianMeasure::Largest : HessianMeasure::Norm;
  }
  auto statistics = std::make_shared<StatisticsOperation>();
  statistics->stage = stage;
  statistics->stageKind =
    PixelSize(input) <= 2 || input == PixelType::Float32 ? PixelType::Float32 : PixelType::Float64;
  return statistics;
}

std::vector<double>
TakeContrasts(const Operation & operation, PixelType input, const SummaryRun & run, Monitor * monitor)
{
  const auto &        derivative = MeasureIn(operation);
  const bool          isHalf = derivative.measure.measure == HessianMeasure::Objectness;
  std::vector<double> contrasts;
  for (std::size_t scale = 0; scale < derivative.scales.size(); ++scale)
  {
    const auto            statistics = MakeContrastOperation(derivative, scale, input);
    PartMonitor           part(monitor,
                     static_cast<double>(scale) / static_cast<double>(derivative.scales.size()),
                     static_cast<double>(scale + 1) / static_cast<double>(derivative.scales.size()));
    const ImageStatistics found(statistics->stageKind, run(statistics, &part));
    double                largest = 0;
    if (found.GetCount() > found.GetNumberOfInfinities())
    {
      largest = found.GetFiniteMaximum().As<double>();
    }
    contrasts.push_back(isHalf ? largest / 2 : largest);
  }
  return contrasts;
}

} // namespace

ParameterEstimate
GetHessianContrastEstimate()
{
  return { TakeContrasts, [](const Operation & operation, PixelType input) -> std::shared_ptr<const Operation> {
            const auto & derivative = MeasureIn(operation);
            std::size_t  largest = 0;
            for (std::size_t scale = 1; scale < derivative.scales.size(); ++scale)
            {
              largest = derivative.GetRadius(scale)[0] > derivative.GetRadius(largest)[0] ? scale : largest;
            }
            return MakeContrastOperation(derivative, largest, input);
          } };
}

} // namespace chunkwise
