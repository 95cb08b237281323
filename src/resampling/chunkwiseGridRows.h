/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseGridRows_h
#define chunkwiseGridRows_h

#include "chunkwiseFilters.h"

namespace chunkwise
{

/** Bins, and copies to other grids. */
void
AddGridFilters(std::vector<FilterDescription> & filters);

} // namespace chunkwise

#endif
