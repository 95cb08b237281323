/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDevice.h"

#include "chunkwiseModuleFile.h"

namespace chunkwise
{

Device::~Device() = default;
Backend::~Backend() = default;

namespace
{

std::shared_ptr<Backend>
OpenCudaBackend(std::string & reason)
{
  const auto make = reinterpret_cast<MakeBackendFunction>(
    FindInModule("ChunkwiseCuda", "cuda", "CHUNKWISE_CUDA_MODULE", "chunkwiseMakeBackend", reason));
  if (!make)
  {
    reason = "the CUDA backend cannot be opened; builds with CHUNKWISE_USE_CUDA=ON have it (" + reason + ")";
    return nullptr;
  }
  char                     text[512] = "";
  std::shared_ptr<Backend> backend(make(BackendInterfaceVersion, text, sizeof(text)));
  reason = backend ? "" : text;
  return backend;
}

} // namespace

std::shared_ptr<Backend>
GetCudaBackend(std::string * reason)
{
  static std::string                    why;
  static const std::shared_ptr<Backend> backend = OpenCudaBackend(why);
  if (reason)
  {
    *reason = why;
  }
  return backend;
}

} // namespace chunkwise
