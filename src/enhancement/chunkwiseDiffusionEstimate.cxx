/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCheckedParameters.h"
#include "chunkwiseDiffusionOperation.h"
#include "chunkwiseEnhancementRows.h"
#include "chunkwiseError.h"
#include "chunkwiseMaskedOperation.h"
#include "chunkwisePartMonitor.h"
#include "chunkwiseStatistics.h"
#include "chunkwiseStatisticsOperation.h"

#include <cmath>
#include <limits>

namespace chunkwise
{

namespace
{

std::shared_ptr<StatisticsOperation>
MakeGradientStatistics(const Operation & operation, PixelType input)
{
  const auto * const masked = dynamic_cast<const MaskedOperation *>(&operation);
  const auto         gradient = std::make_shared<DiffusionOperation>(
    dynamic_cast<const DiffusionOperation &>(masked ? *masked->inside : operation));
  gradient->method = DiffusionMethod::SquaredGradient;
  gradient->iterations = 1;
  auto statistics = std::make_shared<StatisticsOperation>();
  statistics->stage = gradient;
  if (masked)
  {
    // Statistics skip NaN.
    const auto inside = std::make_shared<MaskedOperation>();
    inside->inside = gradient;
    inside->keepsOutside = false;
    inside->outsideValue = std::numeric_limits<double>::quiet_NaN();
    statistics->stage = inside;
  }
  statistics->stageKind =
    PixelSize(input) <= 2 || input == PixelType::Float32 ? PixelType::Float32 : PixelType::Float64;
  return statistics;
}

std::vector<double>
TakeGradientMagnitude(const Operation & operation, PixelType input, const SummaryRun & run, Monitor * monitor)
{
  const auto            statistics = MakeGradientStatistics(operation, input);
  PartMonitor           whole(monitor, 0, 1);
  const ImageStatistics found(statistics->stageKind, run(statistics, &whole));
  const double          mean = found.GetCount() > 0 ? found.GetMean() : 0.0;
  if (!std::isfinite(mean))
  {
    ThrowParameterError("GradientMagnitude", "the mean squared gradient of the image is not finite; give a number");
  }
  return { std::sqrt(mean) };
}

} // namespace

ParameterEstimate
GetDiffusionGradientEstimate()
{
  return { TakeGradientMagnitude, [](const Operation & operation, PixelType input) -> std::shared_ptr<const Operation> {
            return MakeGradientStatistics(operation, input);
          } };
}

} // namespace chunkwise
