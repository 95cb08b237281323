/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileIdentity_h
#define fileIdentity_h

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace chunkwise::files
{

/** Values that change when a file does: whoever writes to it, or puts another one in its place, changes the time of its
 * last change, which nobody can set. */
struct FileIdentity
{
  std::string  text;                ///< path, node, size and times
  std::int64_t changedSeconds{ 0 }; ///< since 1970
};

/** The identity of a file, or of a folder with all files in it; nothing if it is not there. */
std::optional<FileIdentity>
IdentifyFile(const std::filesystem::path & file);

/** The identity of the loaded library, or program, that has this code; empty if the system does not tell. */
std::string
IdentifyCode(const void * address);

} // namespace chunkwise::files

#endif
