/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseModuleFile.h"

#include <cstdlib>
#include <vector>

#if defined(_WIN32)
#  include <windows.h>
#else
#  include <dlfcn.h>
#endif

namespace chunkwise
{

namespace
{

#if defined(_WIN32)
constexpr const char * Prefix = "";
constexpr const char * Suffix = ".dll";
#elif defined(__APPLE__)
constexpr const char * Prefix = "lib";
constexpr const char * Suffix = ".dylib";
#else
constexpr const char * Prefix = "lib";
constexpr const char * Suffix = ".so";
#endif

void *
FindInFile(const std::string & path, const char * name, std::string & reason)
{
#if defined(_WIN32)
  HMODULE module = LoadLibraryA(path.c_str());
  if (!module)
  {
    reason = path + " cannot be loaded";
    return nullptr;
  }
  void * const symbol = reinterpret_cast<void *>(GetProcAddress(module, name));
#else
  void * const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!module)
  {
    reason = dlerror();
    return nullptr;
  }
  void * const symbol = dlsym(module, name);
#endif
  if (!symbol)
  {
    reason = path + " is another module: it has no " + name;
  }
  return symbol;
}

} // namespace

std::string
GetLibraryFolder()
{
#if defined(_WIN32)
  HMODULE module = nullptr;
  char    path[MAX_PATH] = "";
  if (GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                         reinterpret_cast<LPCSTR>(&GetLibraryFolder),
                         &module))
  {
    GetModuleFileNameA(module, path, MAX_PATH);
  }
  const std::string file = path;
#else
  Dl_info info;
  if (!dladdr(reinterpret_cast<void *>(&GetLibraryFolder), &info) || !info.dli_fname)
  {
    return std::string();
  }
  const std::string file = info.dli_fname;
#endif
  const auto slash = file.find_last_of("/\\");
  return slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
}

void *
FindInModule(const std::string & name, const char * subfolder, const char * variable, const char * symbol,
             std::string & reason)
{
  const std::string        file = Prefix + name + Suffix;
  std::vector<std::string> paths;
  if (const char * const given = std::getenv(variable))
  {
    paths.emplace_back(given);
  }
  else
  {
    const std::string folder = GetLibraryFolder();
    paths.push_back(folder + file);
    paths.push_back(folder + "../" + subfolder + "/" + file);
#if defined(CHUNKWISE_INSTALLED_MODULE_FOLDER)
    paths.push_back(CHUNKWISE_INSTALLED_MODULE_FOLDER "/" + file);
#endif
  }
  reason.clear();
  for (const std::string & path : paths)
  {
    std::string  why;
    void * const found = FindInFile(path, symbol, why);
    if (found)
    {
      return found;
    }
    reason += (reason.empty() ? "" : "; ") + why;
  }
  return nullptr;
}

} // namespace chunkwise
