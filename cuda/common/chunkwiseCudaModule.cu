/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCompositeOperation.h"
#include "chunkwiseCudaDeconvolution.h"
#include "chunkwiseCudaDerivative.h"
#include "chunkwiseCudaDevice.h"
#include "chunkwiseCudaEnhancement.h"
#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaMeasure.h"
#include "chunkwiseCudaResample.h"
#include "chunkwiseCudaWatershed.h"
#include "chunkwiseError.h"

#include <cstdio>
#include <cuda_runtime.h>

namespace chunkwise
{

// The module is opened by itself: what it uses of these classes is compiled into it.
Device::~Device() = default;
Backend::~Backend() = default;

namespace
{

class CudaBackend : public Backend
{
public:
  explicit CudaBackend(int count)
  {
    RegisterCompositeKernels(m_Kernels);
    RegisterCudaFftConvolution(m_Kernels);
    RegisterCudaVaryingConvolution(m_Kernels);
    RegisterCudaDerivative(m_Kernels);
    RegisterCudaScaleStep(m_Kernels);
    RegisterCudaEnhancement(m_Kernels);
    RegisterCudaDomain(m_Kernels);
    RegisterCudaExtremum(m_Kernels);
    RegisterCudaFlatExtremum(m_Kernels);
    RegisterCudaFootprint(m_Kernels);
    RegisterCudaIdentity(m_Kernels);
    RegisterCudaDistance(m_Kernels);
    RegisterCudaLabel(m_Kernels);
    RegisterCudaLabelBoundary(m_Kernels);
    RegisterCudaLocalThreshold(m_Kernels);
    RegisterCudaMomentThreshold(m_Kernels);
    RegisterCudaThreshold(m_Kernels);
    RegisterCudaMeasure(m_Kernels);
    RegisterCudaMean(m_Kernels);
#if defined(CHUNKWISE_HAS_NETWORKS)
    RegisterCudaNetwork(m_Kernels);
#endif
    RegisterCudaNonLocalMeans(m_Kernels);
    RegisterCudaRank(m_Kernels);
    RegisterCudaWiener(m_Kernels);
    RegisterCudaReconstruction(m_Kernels);
    RegisterCudaResample(m_Kernels);
    RegisterCudaGrids(m_Kernels);
    RegisterCudaSeparable(m_Kernels);
    RegisterCudaVariance(m_Kernels);
    RegisterCudaLaplacian(m_Kernels);
    RegisterCudaHighPass(m_Kernels);
    RegisterCudaDifference(m_Kernels);
    RegisterCudaEntropy(m_Kernels);
    RegisterCudaConvolution(m_Kernels);
    RegisterCudaSummedAreaTable(m_Kernels);
    RegisterCudaBoxStatistic(m_Kernels);
    RegisterCudaDeconvolution(m_Kernels);
    RegisterCudaStatistics(m_Kernels);
    RegisterCudaHistogram(m_Kernels);
    RegisterCudaWatershed(m_Kernels);
    for (int index = 0; index < count; ++index)
    {
      m_Devices.push_back(std::make_shared<CudaDevice>(index, m_Kernels));
    }
  }
  std::string
  GetName() const override
  {
    return "cuda";
  }
  std::vector<std::shared_ptr<Device>>
  GetDevices() override
  {
    return m_Devices;
  }

private:
  KernelRegistry                       m_Kernels;
  std::vector<std::shared_ptr<Device>> m_Devices;
};

} // namespace

} // namespace chunkwise

#if defined(_WIN32)
#  define CHUNKWISE_MODULE_EXPORT __declspec(dllexport)
#else
#  define CHUNKWISE_MODULE_EXPORT __attribute__((visibility("default")))
#endif

extern "C" CHUNKWISE_MODULE_EXPORT chunkwise::Backend *
                                   chunkwiseMakeBackend(int version, char * reason, std::size_t reasonBytes)
{
  if (version != chunkwise::BackendInterfaceVersion)
  {
    std::snprintf(reason,
                  reasonBytes,
                  "the CUDA backend has interface version %d, the library %d",
                  chunkwise::BackendInterfaceVersion,
                  version);
    return nullptr;
  }
  int               count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0)
  {
    std::snprintf(
      reason, reasonBytes, "no CUDA device: %s", error != cudaSuccess ? cudaGetErrorString(error) : "none is there");
    return nullptr;
  }
  try
  {
    return new chunkwise::CudaBackend(count);
  }
  catch (const std::exception & failure)
  {
    std::snprintf(reason, reasonBytes, "%s", failure.what());
    return nullptr;
  }
}
