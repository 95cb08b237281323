/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseThresholdEstimate_h
#define chunkwiseThresholdEstimate_h

#include "chunkwiseThresholds.h"

namespace chunkwise
{

/** The thresholds of a ThresholdOperation by its method, from the histogram of the whole image. */
ParameterEstimate
GetThresholdEstimate();

} // namespace chunkwise

#endif
