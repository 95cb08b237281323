/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaKernels_h
#define chunkwiseCudaKernels_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterCudaIdentity(KernelRegistry & registry);
void
RegisterCudaMean(KernelRegistry & registry);
void
RegisterCudaSeparable(KernelRegistry & registry);
void
RegisterCudaVariance(KernelRegistry & registry);
void
RegisterCudaSequence(KernelRegistry & registry);
void
RegisterCudaSummedAreaTable(KernelRegistry & registry);

/** Throws DeviceError if the launch of `kernel` that was just made failed. */
void
CheckLaunch(const char * kernel);

} // namespace chunkwise

#endif
