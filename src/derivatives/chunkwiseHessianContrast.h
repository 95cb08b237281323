/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHessianContrast_h
#define chunkwiseHessianContrast_h

#include "chunkwiseFilters.h"

namespace chunkwise
{

/** The contrasts of a measure at each of its scales, from the whole image: exact maxima, which do not depend on how it
 * is read. */
ParameterEstimate
GetHessianContrastEstimate();

} // namespace chunkwise

#endif
