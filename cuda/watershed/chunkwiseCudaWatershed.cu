/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaWatershed.h"

#include "chunkwiseCudaKernels.h"
#include "chunkwiseCudaPasses.cuh"
#include "chunkwiseWatershedJoin.h"
#include "chunkwiseWatershedStepRun.h"

#include <cub/device/device_scan.cuh>

// Boruvka's algorithm as on the CPU, by steps that are kernels of one thread for each voxel or tree.
namespace chunkwise
{

namespace
{

constexpr int WatershedThreads = 256;

template <auto VStep, typename TChunk>
__global__ void
__launch_bounds__(WatershedThreads) WatershedStepKernel(const __grid_constant__ TChunk chunk, std::int64_t count)
{
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * WatershedThreads + threadIdx.x;
  if (i < count)
  {
    // Steps change arrays alone. They are not const, because nvcc 13 names const members wrongly.
    (const_cast<TChunk &>(chunk).*VStep)(i);
  }
}

/** Takes steps in the stream of a call. */
class CudaStepRunner
{
public:
  explicit CudaStepRunner(const KernelCall & call)
    : m_Stream(StreamOf(call))
  {}

  static bool
  IsWide(const Box & box)
  {
    return IsWideWatershed(box);
  }
  template <auto VStep, typename TChunk>
  void
  ForEach(const TChunk & chunk, std::int64_t count)
  {
    const auto blocks = static_cast<unsigned int>((count + WatershedThreads - 1) / WatershedThreads);
    WatershedStepKernel<VStep><<<blocks, WatershedThreads, 0, m_Stream>>>(chunk, count);
    CheckLaunch("WatershedStepKernel");
  }
  void
  Fill(void * to, int byte, std::size_t bytes)
  {
    CheckCuda(cudaMemsetAsync(to, byte, bytes, m_Stream), "cudaMemsetAsync");
  }
  void
  CopyOnDevice(void * to, const void * from, std::size_t bytes)
  {
    CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, m_Stream), "cudaMemcpyAsync");
  }
  void
  CopyToDevice(void * to, const void * from, std::size_t bytes)
  {
    // Returns when it has taken what lies in pageable memory.
    CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, m_Stream), "cudaMemcpyAsync");
  }
  void
  CopyToHost(void * to, const void * from, std::size_t bytes)
  {
    CheckCuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, m_Stream), "cudaMemcpyAsync");
    CheckCuda(cudaStreamSynchronize(m_Stream), "cudaStreamSynchronize");
  }
  template <typename TId>
  void
  AddUp(TId * counts, std::int64_t count, void * scratch, std::size_t bytes)
  {
    CheckCuda(cub::DeviceScan::ExclusiveSum(scratch, bytes, counts, counts, count, m_Stream),
              "cub::DeviceScan::ExclusiveSum");
  }
  template <typename TId>
  static std::size_t
  BytesToAddUp(std::int64_t count)
  {
    std::size_t bytes = 0;
    CheckCuda(
      cub::DeviceScan::ExclusiveSum(nullptr, bytes, static_cast<TId *>(nullptr), static_cast<TId *>(nullptr), count),
      "cub::DeviceScan::ExclusiveSum");
    return bytes;
  }

private:
  cudaStream_t m_Stream;
};

/** Some ten rounds, in which voxels on the borders of trees look at their neighbors. */
double
CostOfWatershed(const Operation & operation, const ChunkShape & shape)
{
  const double voxels = static_cast<double>(shape.outputBox.NumberOfVoxels());
  const int    connectivity = static_cast<const WatershedOperation &>(operation).connectivity;
  return voxels * (static_cast<double>(PixelSize(shape.inputKinds[0]) + PixelSize(shape.outputKind)) +
                   (connectivity == 1 ? 400.0 : 1000.0));
}

} // namespace

void
RegisterCudaWatershed(KernelRegistry & registry)
{
  registry.Register("watershed", MakeWatershedStepKernels<CudaStepRunner>(CostOfWatershed));
  registry.Register("watershed join", MakeWatershedJoinKernels<CudaStepRunner>());
}

// Runs of images that do not fit a memory are the library's; this module has its own copy of the operation.
const OutOfCoreRunner *
WatershedOperation::GetOutOfCoreRunner() const
{
  return nullptr;
}

} // namespace chunkwise
