/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseNetworkFilters_h
#define chunkwiseNetworkFilters_h

#include "chunkwiseFilters.h"

namespace chunkwise
{

/** The row of networks, for AddFilters. */
void
AddNetworkFilters(std::vector<FilterDescription> & filters);

} // namespace chunkwise

#endif
