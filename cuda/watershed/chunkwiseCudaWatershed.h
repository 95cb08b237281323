/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaWatershed_h
#define chunkwiseCudaWatershed_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterCudaWatershed(KernelRegistry & registry);

} // namespace chunkwise

#endif
