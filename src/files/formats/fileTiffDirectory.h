/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileTiffDirectory_h
#define fileTiffDirectory_h

#include "fileDescriptor.h"

#include <optional>
#include <set>

namespace chunkwise::files
{

class TiffFile;

/** A directory of a TIFF file. Tags are read as the file has them; if a tag stands twice, the first counts. Every
 * number that a tag asks for lies in the file, or FileError names the tag. */
class TiffDirectory
{
public:
  /** The place of the directory in the file. */
  std::uint64_t offset{ 0 };
  /** The place of the next one; 0: there is none. */
  std::uint64_t next{ 0 };

  bool
  Has(std::uint16_t tag) const
  {
    return m_Entries.count(tag) != 0;
  }
  /** How many values a tag has. */
  std::uint64_t
  GetCount(std::uint16_t tag) const;
  /** The first of a tag's integers; `otherwise` if the directory lacks the tag. */
  std::uint64_t
  GetNumber(std::uint16_t tag, std::uint64_t otherwise) const;
  /** The integer that all values of a tag are, as for BitsPerSample; throws if they differ. */
  std::uint64_t
  GetCommonNumber(std::uint16_t tag, std::uint64_t otherwise) const;
  /** Some of a tag's integers. */
  std::vector<std::uint64_t>
  GetNumbers(std::uint16_t tag, std::uint64_t first, std::uint64_t count) const;
  /** The first of a tag's real numbers, which may be infinite or NaN; nothing if the directory lacks the tag. */
  std::optional<double>
  GetReal(std::uint16_t tag) const;
  /** Up to the first NUL. */
  std::string
  GetText(std::uint16_t tag) const;

  /** A directory of only these tags. */
  TiffDirectory
  Select(std::initializer_list<std::uint16_t> tags) const;

private:
  friend class TiffFile;
  struct Entry
  {
    std::uint16_t type;
    std::uint64_t count;
    std::uint64_t offset;
  };
  const Entry &
  GetEntry(std::uint16_t tag) const
  {
    return m_Entries.at(tag);
  }
  const TiffFile *               m_File{ nullptr };
  std::map<std::uint16_t, Entry> m_Entries;
};

/** A TIFF or BigTIFF file with its chain of directories. */
class TiffFile
{
public:
  /** Throws FileError if it is no TIFF file. */
  explicit TiffFile(const std::string & name);
  TiffFile(const TiffFile &) = delete;
  TiffFile &
  operator=(const TiffFile &) = delete;

  /** Throws FileError unless all of the directory is in the file, and if it was read before: directories that form a
   * loop, or that overlap, have no end. */
  TiffDirectory
  ReadDirectory(std::uint64_t offset);

  std::uint64_t
  GetFirstDirectory() const
  {
    return m_First;
  }
  const std::string &
  GetName() const
  {
    return m_Name;
  }
  const Descriptor &
  GetDescriptor() const
  {
    return m_Descriptor;
  }
  std::uint64_t
  GetSize() const
  {
    return m_Size;
  }
  /** Whether its byte order is not the machine's. */
  bool
  Swaps() const
  {
    return m_Swaps;
  }
  /** Throws FileError unless `bytes` bytes from `offset` on are in the file. */
  void
  Require(std::uint64_t offset, std::uint64_t bytes, const std::string & what) const;
  /** An integer of 1 to 8 bytes in the file's byte order. */
  std::uint64_t
  Decode(const char * data, std::size_t bytes) const;

private:
  std::string             m_Name;
  Descriptor              m_Descriptor;
  std::uint64_t           m_Size{ 0 };
  std::uint64_t           m_First{ 0 };
  bool                    m_Swaps{ false };
  bool                    m_IsBig{ false };
  std::set<std::uint64_t> m_Seen;
  std::uint64_t           m_DirectoryBytes{ 0 };
};

/** The name that the TIFF specification gives a tag that is used here; otherwise its number. */
std::string
GetTiffTagName(std::uint16_t tag);

} // namespace chunkwise::files

#endif
