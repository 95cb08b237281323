/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrZip_h
#define fileZarrZip_h

#include "fileDescriptor.h"

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

namespace chunkwise::files
{

/** A file of a store: a plain one, or a part of a zip archive. */
struct ZarrFile
{
  Descriptor    file;
  std::uint64_t offset{ 0 };
  std::uint64_t bytes{ 0 };
  /** The checksum that an archive has of it. */
  std::optional<std::uint32_t> sum;
};

/** The checksum (CRC-32) of a file of an archive that is read in pieces, in any order. Any number of threads may call.
 */
class ZipSum
{
public:
  ZipSum(const ZarrFile & file, std::string name)
    : m_Name(std::move(name))
    , m_Offset(file.offset)
    , m_Bytes(file.bytes)
    , m_Expected(*file.sum)
  {}
  /** A piece that was read, at a place of the archive; pieces that were read before do not count. Throws FileError if
   * the file was read whole and its checksum is another one. */
  void
  Add(const char * data, std::size_t bytes, std::uint64_t place);

private:
  struct Piece
  {
    std::uint64_t bytes{ 0 };
    std::uint32_t sum{ 0 };
  };
  std::string                    m_Name;
  std::uint64_t                  m_Offset;
  std::uint64_t                  m_Bytes;
  std::uint32_t                  m_Expected;
  std::mutex                     m_Mutex;
  std::map<std::uint64_t, Piece> m_Pieces; ///< by their begins; none touches another one
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
