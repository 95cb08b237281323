/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseDevice.h"

#include <cstdlib>
#include <mutex>

#if defined(_WIN32)
#  include <windows.h>
#else
#  include <dlfcn.h>
#endif

namespace chunkwise
{

Device::~Device() = default;
Backend::~Backend() = default;

namespace
{

#if defined(_WIN32)
constexpr const char * ModuleFileName = "ChunkwiseCuda.dll";
#elif defined(__APPLE__)
constexpr const char * ModuleFileName = "libChunkwiseCuda.dylib";
#else
constexpr const char * ModuleFileName = "libChunkwiseCuda.so";
#endif

/** The folder of the library that this code is in, with its final slash; empty if it cannot be told. */
std::string
OwnFolder()
{
#if defined(_WIN32)
  HMODULE module = nullptr;
  char    path[MAX_PATH] = "";
  if (GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                         reinterpret_cast<LPCSTR>(&OwnFolder),
                         &module))
  {
    GetModuleFileNameA(module, path, MAX_PATH);
  }
  const std::string file = path;
#else
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&OwnFolder), &info) || !info.dli_fname)
  {
    return std::string();
  }
  const std::string file = info.dli_fname;
#endif
  const auto slash = file.find_last_of("/\\");
  return slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
}

MakeBackendFunction
OpenModule(const std::string & path, std::string & reason)
{
#if defined(_WIN32)
  HMODULE module = LoadLibraryA(path.c_str());
  if (!module)
  {
    reason = path + " cannot be loaded";
    return nullptr;
  }
  void * const symbol = reinterpret_cast<void *>(GetProcAddress(module, "chunkwiseMakeBackend"));
#else
  void * const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module)
  {
    reason = dlerror();
    return nullptr;
  }
  void * const symbol = dlsym(module, "chunkwiseMakeBackend");
#endif
  if (!symbol)
  {
    reason = path + " is not a backend module";
  }
  return reinterpret_cast<MakeBackendFunction>(symbol);
}

std::shared_ptr<Backend>
OpenCudaBackend(std::string & reason)
{
  std::vector<std::string> paths;
  if (const char * variable = std::getenv("CHUNKWISE_CUDA_MODULE"))
  {
    paths.emplace_back(variable);
  }
  else
  {
    const std::string folder = OwnFolder();
    paths.push_back(folder + ModuleFileName);
    paths.push_back(folder + "../cuda/" + ModuleFileName);
#if defined(CHUNKWISE_INSTALLED_MODULE_FOLDER)
    paths.push_back(std::string(CHUNKWISE_INSTALLED_MODULE_FOLDER "/") + ModuleFileName);
#endif
  }
  reason.clear();
  for (const std::string & path : paths)
  {
    std::string               why;
    const MakeBackendFunction make = OpenModule(path, why);
    if (make)
    {
      char                           text[512] = "";
      const std::shared_ptr<Backend> backend(make(BackendInterfaceVersion, text, sizeof(text)));
      if (backend)
      {
        return backend;
      }
      why = text;
      reason = why;
      return nullptr;
    }
    reason += (reason.empty() ? "" : "; ") + why;
  }
  return nullptr;
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
