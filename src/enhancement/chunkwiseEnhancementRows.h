/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseEnhancementRows_h
#define chunkwiseEnhancementRows_h

#include "chunkwiseCheckedParameters.h"

namespace chunkwise
{

void
AddDiffusionFilters(std::vector<FilterDescription> & filters);
void
AddAdaptiveEqualizationFilter(std::vector<FilterDescription> & filters);

/** Lets a filter smooth the voxels inside a mask alone: adds MaskImage and OutsideValue. */
void
AddSmoothingMask(FilterDescription & row);
bool
HasSmoothingMask(const FilterImage & image);
/** `inside`, which takes NaN for missing, in the mask that is given, or as it is. See MaskedOperation. */
std::shared_ptr<const Operation>
InsideMask(const CheckedParameters & parameters, const FilterImage & image, std::shared_ptr<const Operation> inside);

/** The root of the mean squared gradient of the whole image, summed up exactly. */
ParameterEstimate
GetDiffusionGradientEstimate();

} // namespace chunkwise

#endif
