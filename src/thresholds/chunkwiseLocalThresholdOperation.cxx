/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLocalThresholdOperation.h"

#include "chunkwiseDomainOperation.h"
#include "chunkwiseError.h"
#include "chunkwiseExtremumOperation.h"
#include "chunkwiseRankOperation.h"
#include "chunkwiseRealOf.h"
#include "chunkwiseVarianceOperation.h"

#include <cmath>

namespace chunkwise
{

namespace
{

std::string
KeyOf(const LocalThresholdNumbers & numbers)
{
  std::string key = " " + std::to_string(static_cast<int>(numbers.method));
  for (const double number :
       { numbers.k, numbers.r, numbers.offset, numbers.p, numbers.q, numbers.contrast, numbers.level })
  {
    key += " " + ExactText(number);
  }
  return key;
}

} // namespace

std::string
LocalThresholdOperation::GetKey() const
{
  return BoxCompositeOperation::GetKey() + (masked ? " masked" : "") + (givesThresholds ? " thresholds" : "") +
         KeyOf(*this);
}

std::shared_ptr<const Operation>
LocalThresholdOperation::InMask(std::shared_ptr<const Operation> window) const
{
  if (!masked)
  {
    return window;
  }
  auto domain = std::make_shared<DomainOperation>();
  domain->window = std::move(window);
  domain->domain = DomainKind::Mask;
  domain->imageKind = imageKind;
  return domain;
}

std::vector<Stage>
LocalThresholdOperation::GetStages() const
{
  const bool isOfMoments = method == LocalThresholdMethod::Niblack || method == LocalThresholdMethod::Sauvola ||
                           method == LocalThresholdMethod::Phansalkar;
  if (!isOfMoments || masked || !windows.empty() || UsesDouble(imageKind))
  {
    return GetStagesOfStatistics();
  }
  const auto moments = MakeBoxOperation<MomentThresholdOperation>();
  static_cast<LocalThresholdNumbers &>(*moments) = *this;
  moments->givesThresholds = givesThresholds;
  return { { moments, { Stage::Input(0) }, StageKind::Output } };
}

std::vector<Stage>
LocalThresholdOperation::GetStagesOfStatistics() const
{
  std::vector<Stage>     stages;
  const std::vector<int> images =
    masked ? std::vector<int>{ Stage::Input(0), Stage::Input(1) } : std::vector<int>{ Stage::Input(0) };
  const auto add = [&](std::shared_ptr<const Operation> window) {
    stages.push_back({ this->InMask(std::move(window)), images, StageKind::Real });
  };
  switch (method)
  {
    case LocalThresholdMethod::Median:
      add(MakeBoxOperation<RankOperation>());
      break;
    case LocalThresholdMethod::Bernsen:
    {
      const auto minimum = MakeBoxOperation<ExtremumOperation>();
      minimum->minimum = true;
      add(MakeBoxOperation<ExtremumOperation>());
      add(minimum);
      break;
    }
    case LocalThresholdMethod::Gaussian:
    {
      const auto smoothing = std::make_shared<SeparableOperation>();
      smoothing->boundary = boundary;
      std::copy(std::begin(weights), std::end(weights), std::begin(smoothing->weights));
      add(smoothing);
      break;
    }
    case LocalThresholdMethod::Mean:
      add(MakeBoxOperation<MeanOperation>());
      break;
    default:
    {
      const auto deviation = MakeBoxOperation<VarianceOperation>();
      deviation->takesRoot = true;
      add(MakeBoxOperation<MeanOperation>());
      add(deviation);
      break;
    }
  }
  std::vector<int> statistics = { 0 };
  if (stages.size() > 1)
  {
    statistics.push_back(1);
  }
  const int thresholds = static_cast<int>(stages.size());
  stages.push_back(
    { nullptr, statistics, givesThresholds ? StageKind::Output : StageKind::Real, "localthreshold.levels.voxels" });
  if (!givesThresholds)
  {
    std::vector<int> compared = { Stage::Input(0), thresholds };
    if (masked)
    {
      compared.push_back(Stage::Input(1));
    }
    stages.push_back({ nullptr, compared, StageKind::Output, "localthreshold.voxels" });
  }
  return WithWindows(std::move(stages));
}

void
LocalThresholdOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType output) const
{
  StagedOperation::CheckKinds(inputs, output);
}

void
LocalThresholdOperation::Validate(const Coordinates & image) const
{
  BoxCompositeOperation::Validate(image);
  const std::pair<const char *, double> numbers[] = { { "K", k },        { "R", r }, { "Offset", offset },
                                                      { "P", p },        { "Q", q }, { "Contrast", contrast },
                                                      { "Level", level } };
  for (const auto & number : numbers)
  {
    if (!std::isfinite(number.second))
    {
      throw ParameterError(std::string(number.first) + ": " + std::to_string(number.second) + "; it must be finite");
    }
  }
  if (!(r > 0))
  {
    throw ParameterError("R: " + std::to_string(r) + "; it must be above 0");
  }
}

std::string
MomentThresholdOperation::GetKey() const
{
  return BoxOperation::GetKey() + (givesThresholds ? " thresholds" : "") + KeyOf(*this);
}

void
MomentThresholdOperation::CheckKinds(const std::vector<PixelType> & inputs, PixelType) const
{
  if (UsesDouble(inputs.at(0)))
  {
    throw ParameterError("Input: it has voxels of " + std::string(PixelTypeName(inputs[0])) +
                         "; thresholds in one go take float32 and integers of 8 and 16 bits");
  }
}

} // namespace chunkwise
