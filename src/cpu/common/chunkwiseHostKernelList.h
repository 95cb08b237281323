/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHostKernelList_h
#define chunkwiseHostKernelList_h

#include "chunkwiseOperation.h"

namespace chunkwise
{

void
RegisterHostDirectConvolution(KernelRegistry & registry);
void
RegisterHostFftConvolution(KernelRegistry & registry);
void
RegisterHostSpectralDeconvolution(KernelRegistry & registry);
void
RegisterHostDomain(KernelRegistry & registry);
void
RegisterHostExtremum(KernelRegistry & registry);
void
RegisterHostFlatExtremum(KernelRegistry & registry);
void
RegisterHostFootprint(KernelRegistry & registry);
void
RegisterHostIdentity(KernelRegistry & registry);
void
RegisterHostDistance(KernelRegistry & registry);
void
RegisterHostLabel(KernelRegistry & registry);
void
RegisterHostDerivative(KernelRegistry & registry);
void
RegisterHostEnhancement(KernelRegistry & registry);
void
RegisterHostLabelBoundary(KernelRegistry & registry);
void
RegisterHostLocalThreshold(KernelRegistry & registry);
void
RegisterHostMomentThreshold(KernelRegistry & registry);
void
RegisterHostResample(KernelRegistry & registry);
void
RegisterHostThreshold(KernelRegistry & registry);
void
RegisterHostWatershed(KernelRegistry & registry);
void
RegisterHostMaskedWindows(KernelRegistry & registry);
void
RegisterHostMean(KernelRegistry & registry);
void
RegisterHostNonLocalMeans(KernelRegistry & registry);
void
RegisterHostRank(KernelRegistry & registry);
void
RegisterHostWiener(KernelRegistry & registry);
void
RegisterHostReconstruction(KernelRegistry & registry);
/** Kernels of reconstruction. */
Kernel
MakeHostGlobalSolution();
void
RegisterHostStatistics(KernelRegistry & registry);
void
RegisterHostHistogram(KernelRegistry & registry);
void
RegisterHostSeparable(KernelRegistry & registry);
void
RegisterHostVariance(KernelRegistry & registry);
void
RegisterHostVaryingConvolution(KernelRegistry & registry);
void
RegisterHostLaplacian(KernelRegistry & registry);
void
RegisterHostHighPass(KernelRegistry & registry);
void
RegisterHostDifference(KernelRegistry & registry);
void
RegisterHostEntropy(KernelRegistry & registry);
void
RegisterHostConvolution(KernelRegistry & registry);
void
RegisterHostSummedAreaTable(KernelRegistry & registry);
void
RegisterHostBoxStatistic(KernelRegistry & registry);

} // namespace chunkwise

#endif
