/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseEnhancementRows_h
#define chunkwiseEnhancementRows_h

#include "chunkwiseFilters.h"

namespace chunkwise
{

void
AddDiffusionFilters(std::vector<FilterDescription> & filters);
void
AddAdaptiveEqualizationFilter(std::vector<FilterDescription> & filters);

/** The root of the mean squared gradient of the whole image, summed up exactly. */
ParameterEstimate
GetDiffusionGradientEstimate();

} // namespace chunkwise

#endif
