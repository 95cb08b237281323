/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseModuleFile.h"

#include "chunkwiseLibraryFile.h"

#include <cstdlib>
#include <vector>

namespace chunkwise
{

namespace
{

void *
FindInFile(const std::string & path, const char * name, std::string & reason)
{
  void * const library = OpenLibrary(path, reason);
  void * const symbol = library ? FindSymbol(library, name) : nullptr;
  if (library && !symbol)
  {
    reason = path + " is another module: it has no " + name;
  }
  return symbol;
}

} // namespace

std::string
GetLibraryFolder()
{
  const std::string file = FindFileOfAddress(reinterpret_cast<const void *>(&GetLibraryFolder));
  const auto        slash = file.find_last_of("/\\");
  return slash == std::string::npos ? std::string() : file.substr(0, slash + 1);
}

void *
FindInModule(const std::string & name, const char * subfolder, const char * variable, const char * symbol,
             std::string & reason)
{
  const std::string        file = GetLibraryFileName(name);
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
