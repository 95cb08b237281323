/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrZip_h
#define fileZarrZip_h

#include "fileDescriptor.h"

#include <filesystem>
#include <optional>

namespace chunkwise::files
{

/** A file of a store: a plain one, or a part of a zip archive. */
struct ZarrFile
{
  Descriptor    file;
  std::uint64_t offset{ 0 };
  std::uint64_t bytes{ 0 };
};

/** The zip archive that a path names or leads into, as a.zip/0/zarr.json does; empty if there is none. */
std::filesystem::path
FindZipOf(const std::filesystem::path & path);

/** Whether a store has such a file. Throws FileError for damaged archives. */
bool
IsZarrFileThere(const std::filesystem::path & path);

/** Opens a file of a store; nothing if it does not exist. Throws FileError. */
std::optional<ZarrFile>
OpenZarrFile(const std::filesystem::path & path);

} // namespace chunkwise::files

#endif
