/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCompositeOperation.h"
#include "chunkwiseCpuGrid.h"
#include "chunkwiseDevice.h"
#include "chunkwiseCpuDeconvolution.h"
#include "chunkwiseHostKernelList.h"
#include "chunkwiseMeasureOperation.h"

namespace chunkwise
{

namespace
{

KernelRegistry &
GetRegistry()
{
  // Never destroyed: runs may outlive static destruction in other threads.
  static KernelRegistry & kernels = []() -> KernelRegistry & {
    auto * const registry = new KernelRegistry;
    RegisterCompositeKernels(*registry);
    RegisterHostDirectConvolution(*registry);
    RegisterHostFftConvolution(*registry);
    RegisterHostSpectralDeconvolution(*registry);
    RegisterHostDeconvolution(*registry);
    RegisterHostDomain(*registry);
    RegisterHostExtremum(*registry);
    RegisterHostFlatExtremum(*registry);
    RegisterHostFootprint(*registry);
    RegisterHostIdentity(*registry);
    RegisterHostDerivative(*registry);
    RegisterHostEnhancement(*registry);
    RegisterHostDistance(*registry);
    RegisterHostLabel(*registry);
    RegisterHostLabelBoundary(*registry);
    RegisterHostMeasure(*registry);
    RegisterHostLocalThreshold(*registry);
    RegisterHostMomentThreshold(*registry);
    RegisterHostBin(*registry);
    RegisterHostRearrange(*registry);
    RegisterHostResample(*registry);
    RegisterHostThreshold(*registry);
    RegisterHostWatershed(*registry);
    RegisterHostMaskedWindows(*registry); // in the place of a composite
    RegisterHostMean(*registry);
    RegisterHostNonLocalMeans(*registry);
    RegisterHostRank(*registry);
    RegisterHostWiener(*registry);
    RegisterHostReconstruction(*registry);
    RegisterHostSeparable(*registry);
    RegisterHostVariance(*registry);
    RegisterHostVaryingConvolution(*registry);
    RegisterHostLaplacian(*registry);
    RegisterHostHighPass(*registry);
    RegisterHostDifference(*registry);
    RegisterHostEntropy(*registry);
    RegisterHostConvolution(*registry);
    RegisterHostSummedAreaTable(*registry);
    RegisterHostBoxStatistic(*registry);
    RegisterHostStatistics(*registry);
    RegisterHostHistogram(*registry);
    return *registry;
  }();
  return kernels;
}

} // namespace

const KernelRegistry &
GetHostKernels()
{
  return GetRegistry();
}

void
AddHostKernels(AddKernelsFunction add)
{
  add(GetRegistry());
}

} // namespace chunkwise
