/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaResample_h
#define chunkwiseCudaResample_h

namespace chunkwise
{

class KernelRegistry;

void
RegisterCudaResample(KernelRegistry & registry);
void
RegisterCudaGrids(KernelRegistry & registry);

} // namespace chunkwise

#endif
