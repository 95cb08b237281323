/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandEstimate.h"

#include "chunkwiseDomainOperation.h"
#include "chunkwiseEntropyOperation.h"
#include "chunkwiseWienerOperation.h"

namespace command
{

namespace
{

class NoiseEstimate : public Estimate
{
public:
  NoiseEstimate(const chunkwise::ParameterDescription & parameter, const chunkwise::WienerOperation & operation,
                chunkwise::PixelKind input)
    : Estimate(parameter)
    , m_Kind(operation.GetStageKinds(input, input).front())
  {}
  bool
  NeedsImage() const override
  {
    return true;
  }
  chunkwise::ExecutionRequest
  MakeRequest(chunkwise::ExecutionRequest ofFilter) const override
  {
    return chunkwise::MakeLocalVarianceRequest(std::move(ofFilter));
  }
  chunkwise::PixelKind
  GetKind() const override
  {
    return m_Kind;
  }
  chunkwise::ParameterValue
  GetValue(const chunkwise::ImageStatistics & statistics) const override
  {
    return std::vector<double>{ chunkwise::GetWienerNoise(statistics) };
  }

private:
  chunkwise::PixelKind m_Kind;
};

class RangeEstimate : public Estimate
{
public:
  RangeEstimate(const chunkwise::ParameterDescription & parameter, const chunkwise::EntropyOperation & operation,
                chunkwise::PixelKind input)
    : Estimate(parameter)
    , m_Bins(operation.bins)
    , m_Kind(input)
  {}
  bool
  NeedsImage() const override
  {
    return !chunkwise::HasEntropyRange(m_Kind);
  }
  chunkwise::ExecutionRequest
  MakeRequest(chunkwise::ExecutionRequest ofFilter) const override
  {
    ofFilter.operation = nullptr;
    return ofFilter;
  }
  chunkwise::PixelKind
  GetKind() const override
  {
    return m_Kind;
  }
  chunkwise::ParameterValue
  GetValue(const chunkwise::ImageStatistics & statistics) const override
  {
    const chunkwise::ValueRange range = chunkwise::GetEntropyRange(m_Kind, statistics, m_Bins);
    return std::vector<double>{ range.lower, range.upper };
  }

private:
  int                  m_Bins;
  chunkwise::PixelKind m_Kind;
};

} // namespace

std::unique_ptr<Estimate>
MakeEstimate(const Stage & stage, const chunkwise::Operation & operation, chunkwise::PixelKind input)
{
  for (const auto & given : stage.texts)
  {
    const chunkwise::ParameterDescription & parameter = *stage.filter->FindParameter(given.first);
    if (!IsAutomatic(parameter, given.second))
    {
      continue;
    }
    if (const auto * const wiener = chunkwise::FindWiener(operation))
    {
      return std::make_unique<NoiseEstimate>(parameter, *wiener, input);
    }
    return std::make_unique<RangeEstimate>(parameter, *chunkwise::FindEntropy(operation), input);
  }
  return nullptr;
}

} // namespace command
