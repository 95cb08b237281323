/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseCudaCalls.h"

#include "chunkwiseError.h"

namespace chunkwise
{

namespace
{

/** Errors after which the process cannot use the device any more. */
bool
IsSticky(cudaError_t error)
{
  return error == cudaErrorIllegalAddress || error == cudaErrorLaunchTimeout || error == cudaErrorAssert ||
         error == cudaErrorHardwareStackError || error == cudaErrorIllegalInstruction ||
         error == cudaErrorMisalignedAddress || error == cudaErrorInvalidAddressSpace || error == cudaErrorInvalidPc ||
         error == cudaErrorLaunchFailure || error == cudaErrorECCUncorrectable || error == cudaErrorDevicesUnavailable;
}

} // namespace

void
CheckCuda(cudaError_t error, const char * call, const std::string & device, std::size_t bytes)
{
  if (error == cudaSuccess)
  {
    return;
  }
  (void)cudaGetLastError();
  const auto kind = error == cudaErrorMemoryAllocation ? DeviceError::Kind::OutOfMemory
                    : IsSticky(error)                  ? DeviceError::Kind::Lost
                                                       : DeviceError::Kind::Failed;
  throw DeviceError(kind, call, device, bytes, cudaGetErrorString(error));
}

void
CheckCuda(cudaError_t error, const char * call)
{
  if (error != cudaSuccess)
  {
    int index = -1;
    (void)cudaGetDevice(&index);
    CheckCuda(error, call, "CUDA device " + std::to_string(index));
  }
}

void
CheckLaunch(const char * kernel)
{
  CheckCuda(cudaGetLastError(), kernel);
}

std::int64_t
BlocksAtOnce(const void * kernel, int threads, std::size_t shared)
{
  int device = 0;
  int processors = 0;
  int blocks = 0;
  CheckCuda(cudaGetDevice(&device), "cudaGetDevice");
  CheckCuda(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  CheckCuda(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared),
            "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  return static_cast<std::int64_t>(blocks) * processors;
}

} // namespace chunkwise
