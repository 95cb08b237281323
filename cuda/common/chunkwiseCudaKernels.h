/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseCudaKernels_h
#define chunkwiseCudaKernels_h

#include "chunkwiseOperation.h"

#include <cuda_runtime_api.h>

namespace chunkwise
{

void
RegisterCudaFftConvolution(KernelRegistry & registry);
void
RegisterCudaVaryingConvolution(KernelRegistry & registry);
void
RegisterCudaDomain(KernelRegistry & registry);
void
RegisterCudaExtremum(KernelRegistry & registry);
void
RegisterCudaFlatExtremum(KernelRegistry & registry);
void
RegisterCudaFootprint(KernelRegistry & registry);
void
RegisterCudaIdentity(KernelRegistry & registry);
void
RegisterCudaDistance(KernelRegistry & registry);
void
RegisterCudaLabel(KernelRegistry & registry);
void
RegisterCudaLabelBoundary(KernelRegistry & registry);
void
RegisterCudaLocalThreshold(KernelRegistry & registry);
void
RegisterCudaMomentThreshold(KernelRegistry & registry);
void
RegisterCudaThreshold(KernelRegistry & registry);
void
RegisterCudaMean(KernelRegistry & registry);
void
RegisterCudaNetwork(KernelRegistry & registry);
void
RegisterCudaNonLocalMeans(KernelRegistry & registry);
void
RegisterCudaRank(KernelRegistry & registry);
void
RegisterCudaWiener(KernelRegistry & registry);
void
RegisterCudaReconstruction(KernelRegistry & registry);
void
RegisterCudaSeparable(KernelRegistry & registry);
void
RegisterCudaVariance(KernelRegistry & registry);
void
RegisterCudaLaplacian(KernelRegistry & registry);
void
RegisterCudaHighPass(KernelRegistry & registry);
void
RegisterCudaDifference(KernelRegistry & registry);
void
RegisterCudaEntropy(KernelRegistry & registry);
void
RegisterCudaConvolution(KernelRegistry & registry);
void
RegisterCudaSummedAreaTable(KernelRegistry & registry);
void
RegisterCudaStatistics(KernelRegistry & registry);
void
RegisterCudaHistogram(KernelRegistry & registry);
void
RegisterCudaBoxStatistic(KernelRegistry & registry);

/** Throws DeviceError if a call of the runtime failed. */
void
CheckCuda(cudaError_t error, const char * call);

/** Throws DeviceError if the launch of `kernel` that was just made failed. */
void
CheckLaunch(const char * kernel);

/** Blocks of `kernel` that the current device runs at once. */
std::int64_t
BlocksAtOnce(const void * kernel, int threads, std::size_t shared);

} // namespace chunkwise

#endif
