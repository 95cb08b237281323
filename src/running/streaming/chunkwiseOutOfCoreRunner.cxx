/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseOutOfCoreRunner.h"

#include <algorithm>

namespace chunkwise
{

OutOfCoreRunner::~OutOfCoreRunner() = default;

StateStore::~StateStore() = default;

void
AddReport(ExecutionReport & last, const ExecutionReport & earlier)
{
  last.peakDevice = std::max(last.peakDevice, earlier.peakDevice);
  last.peakPinned = std::max(last.peakPinned, earlier.peakPinned);
  last.peakHost = std::max(last.peakHost, earlier.peakHost);
  last.bytesToDevice += earlier.bytesToDevice;
  last.bytesToHost += earlier.bytesToHost;
  last.retries += earlier.retries;
  last.revisits += earlier.revisits;
  last.revisitedVoxels += earlier.revisitedVoxels;
  last.solvedGlobally = last.solvedGlobally || earlier.solvedGlobally;
  std::vector<std::string> warnings = earlier.warnings;
  for (std::string & warning : last.warnings)
  {
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end())
    {
      warnings.push_back(std::move(warning));
    }
  }
  last.warnings = std::move(warnings);
}

} // namespace chunkwise
