/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What ITK looks for in each library of the folders that ITK_AUTOLOAD_PATH names. This one links neither ITK nor the
// stand-ins: a program with another ITK, or with ITK linked into it, must not get a second one.
#include <cstdio>
#include <dlfcn.h>

namespace
{

using LoadFunction = void * (*)();

LoadFunction
FindLoad()
{
  if (!::dlopen(CHUNKWISE_DROP_IN_ITK, RTLD_LAZY | RTLD_NOLOAD))
  {
    std::fputs("Chunkwise stands in for filters of a program with " CHUNKWISE_DROP_IN_ITK
               ", which this one has not: nothing is replaced\n",
               stderr);
    return nullptr;
  }
  void * const library = ::dlopen(CHUNKWISE_DROP_IN_LIBRARY, RTLD_LAZY);
  void * const load = library ? ::dlsym(library, "ChunkwiseLoadDropInFactory") : nullptr;
  if (!load)
  {
    std::fprintf(stderr, "Chunkwise: %s: nothing is replaced\n", ::dlerror());
  }
  return reinterpret_cast<LoadFunction>(load);
}

} // namespace

extern "C"
{
  // ITK uses what itkLoad returns, whatever it is: where nothing is to be replaced there must be no itkLoad. So which
  // function that is, if any, is said when ITK asks for it.
  static LoadFunction
  ResolveLoad()
  {
    return FindLoad();
  }
  __attribute__((visibility("default"), ifunc("ResolveLoad"))) void *
  itkLoad();
}
