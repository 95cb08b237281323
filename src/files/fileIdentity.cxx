/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileIdentity.h"

#include <dlfcn.h>
#include <sstream>
#include <sys/stat.h>
#include <utility>

namespace chunkwise::files
{

namespace fs = std::filesystem;

namespace
{

template <typename... TValues>
FileIdentity
MakeIdentity(const fs::path & file, const timespec & changed, TValues... values)
{
  std::ostringstream text;
  text << fs::absolute(file).lexically_normal().string();
  ((text << ' ' << values), ...);
  text << ' ' << changed.tv_sec << ' ' << changed.tv_nsec;
  return { text.str(), changed.tv_sec };
}

/** The order in which a file system lists files does not count. */
FileIdentity
IdentifyFolder(const fs::path & folder)
{
  std::uint64_t   sum = 0;
  std::uint64_t   bytes = 0;
  std::uint64_t   count = 0;
  struct timespec newest = {};
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
  {
    struct stat status = {};
    if (::lstat(entry->path().c_str(), &status) != 0)
    {
      continue;
    }
    std::uint64_t hash = std::hash<std::string>()(entry->path().lexically_relative(folder).string());
    for (const auto value : { static_cast<std::uint64_t>(status.st_ino),
                              static_cast<std::uint64_t>(status.st_size),
                              static_cast<std::uint64_t>(status.st_mtim.tv_sec),
                              static_cast<std::uint64_t>(status.st_mtim.tv_nsec),
                              static_cast<std::uint64_t>(status.st_ctim.tv_sec),
                              static_cast<std::uint64_t>(status.st_ctim.tv_nsec) })
    {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    sum += hash;
    bytes += S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
    ++count;
    if (std::make_pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec) > std::make_pair(newest.tv_sec, newest.tv_nsec))
    {
      newest = status.st_ctim;
    }
  }
  return MakeIdentity(folder, newest, sum, bytes, count);
}

} // namespace

std::optional<FileIdentity>
IdentifyFile(const fs::path & file)
{
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0)
  {
    return std::nullopt;
  }
  if (S_ISDIR(status.st_mode))
  {
    return IdentifyFolder(file);
  }
  return MakeIdentity(
    file, status.st_ctim, status.st_ino, status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
}

std::string
IdentifyCode(const void * address)
{
  Dl_info    info = {};
  const auto found =
    ::dladdr(address, &info) != 0 && info.dli_fname ? IdentifyFile(info.dli_fname) : std::optional<FileIdentity>();
  return found ? found->text : std::string();
}

} // namespace chunkwise::files
