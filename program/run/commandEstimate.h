/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandEstimate_h
#define commandEstimate_h

#include "chunkwiseFilters.h"
#include "chunkwiseStatistics.h"
#include "commandLine.h"

#include <memory>

namespace command
{

/** A parameter that was given as "auto": statistics of the whole image give its value. */
class Estimate
{
public:
  virtual ~Estimate() = default;

  const chunkwise::ParameterDescription &
  GetParameter() const
  {
    return *m_Parameter;
  }
  /** Whether the image must be read; else its kind says the value. */
  virtual bool
  NeedsImage() const = 0;
  /** The run that gives the statistics of a part of the image, from the run of the filter itself. */
  virtual chunkwise::ExecutionRequest
  MakeRequest(chunkwise::ExecutionRequest ofFilter) const = 0;
  /** The kind of the voxels that are counted. */
  virtual chunkwise::PixelKind
  GetKind() const = 0;
  virtual chunkwise::ParameterValue
  GetValue(const chunkwise::ImageStatistics & statistics) const = 0;

protected:
  explicit Estimate(const chunkwise::ParameterDescription & parameter)
    : m_Parameter(&parameter)
  {}

private:
  const chunkwise::ParameterDescription * m_Parameter;
};

/** nullptr if no parameter of the stage is "auto". `operation`: the stage's, with a provisional value. */
std::unique_ptr<Estimate>
MakeEstimate(const Stage & stage, const chunkwise::Operation & operation, chunkwise::PixelKind input);

} // namespace command

#endif
