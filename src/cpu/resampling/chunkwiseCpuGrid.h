/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuGrid_h
#define chunkwiseCpuGrid_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterHostBin(KernelRegistry & registry);
void
RegisterHostRearrange(KernelRegistry & registry);

} // namespace chunkwise

#endif
