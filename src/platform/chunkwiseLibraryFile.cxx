/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLibraryFile.h"

#if defined(_WIN32)
#  include "chunkwiseWindows.h"
#else
#  include <dlfcn.h>
#endif

namespace chunkwise
{

#if defined(_WIN32)

std::string
GetLibraryFileName(const std::string & name)
{
  return name + ".dll";
}

void *
OpenLibrary(const std::string & path, std::string & reason)
{
  HMODULE const library = LoadLibraryW(MakeWide(path).c_str());
  if (!library)
  {
    reason = path + ": " + DescribeLastError();
  }
  return library;
}

void *
FindSymbol(void * library, const char * name)
{
  return reinterpret_cast<void *>(GetProcAddress(static_cast<HMODULE>(library), name));
}

std::string
FindFileOfAddress(const void * address)
{
  HMODULE library = nullptr;
  if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
                          static_cast<LPCWSTR>(address),
                          &library))
  {
    return std::string();
  }
  // A path may be longer than MAX_PATH.
  constexpr std::size_t longest = 32768;
  std::wstring          path(longest, L'\0');
  const DWORD           length = GetModuleFileNameW(library, path.data(), static_cast<DWORD>(path.size()));
  path.resize(length < longest ? length : 0);
  return MakeNarrow(path);
}

#else

std::string
GetLibraryFileName(const std::string & name)
{
#  if defined(__APPLE__)
  return "lib" + name + ".dylib";
#  else
  return "lib" + name + ".so";
#  endif
}

void *
OpenLibrary(const std::string & path, std::string & reason)
{
  void * const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
  {
    reason = dlerror();
  }
  return library;
}

void *
FindSymbol(void * library, const char * name)
{
  return dlsym(library, name);
}

std::string
FindFileOfAddress(const void * address)
{
  Dl_info info;
  return dladdr(address, &info) && info.dli_fname ? info.dli_fname : std::string();
}

#endif

} // namespace chunkwise
