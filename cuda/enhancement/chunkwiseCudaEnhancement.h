/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaEnhancement_h
#define chunkwiseCudaEnhancement_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterCudaEnhancement(KernelRegistry & registry);
void
RegisterCudaAdaptiveEqualization(KernelRegistry & registry);
void
RegisterCudaMaskedVoxels(KernelRegistry & registry);
void
RegisterCudaNeighbors(KernelRegistry & registry);
void
RegisterCudaDiffusion(KernelRegistry & registry);

} // namespace chunkwise

#endif
