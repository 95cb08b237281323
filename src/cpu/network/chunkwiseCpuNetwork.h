/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCpuNetwork_h
#define chunkwiseCpuNetwork_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterHostNetwork(KernelRegistry & registry);

} // namespace chunkwise

#endif
