/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrZip.h"

#include "fileMemory.h"

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>
#include <mutex>
#include <sys/stat.h>
#include <vector>

#include <zlib.h>

// Source: PKWARE Inc., ".ZIP File Format Specification", version 6.3.10, sections 4.3 and 4.5.3.
namespace chunkwise::files
{

namespace fs = std::filesystem;

namespace
{

constexpr std::uint32_t LocalSignature = 0x04034b50;
constexpr std::uint32_t EntrySignature = 0x02014b50;
constexpr std::uint32_t EndSignature = 0x06054b50;
constexpr std::uint32_t FarEndSignature = 0x06064b50;
constexpr std::uint32_t LocatorSignature = 0x07064b50;
constexpr std::size_t   LocalBytes = 30;
constexpr std::size_t   EntryBytes = 46;
constexpr std::size_t   EndBytes = 22;
constexpr std::size_t   FarEndBytes = 56;
constexpr std::size_t   LocatorBytes = 20;
constexpr std::size_t   MostCommentBytes = 65535;
/** Bytes of memory for an entry, beside its name, which is twice in memory. */
constexpr std::uint64_t EntryMemory = 128;
/** Archives whose entries stay in memory. */
constexpr std::size_t MostArchives = 4;

/** A number of the archive, whose bytes have the lowest one first. */
std::uint64_t
NumberAt(const std::vector<unsigned char> & bytes, std::size_t place, std::size_t size)
{
  std::uint64_t number = 0;
  for (std::size_t i = size; i-- > 0;)
  {
    number = number << 8 | bytes[place + i];
  }
  return number;
}

std::vector<unsigned char>
ReadBytes(const Descriptor & file, std::uint64_t offset, std::size_t bytes)
{
  std::vector<unsigned char> result(bytes);
  file.ReadAt(result.data(), bytes, offset);
  return result;
}

/** The list of files in an archive. */
class ZipArchive
{
public:
  struct Entry
  {
    std::uint64_t offset{ 0 }; ///< of the local header
    std::uint64_t bytes{ 0 };
    std::uint32_t sum{ 0 };
    bool          isStored{ false };
  };

  explicit ZipArchive(const fs::path & path)
    : m_File(Descriptor::OpenToRead(path))
    , m_Size(m_File.GetSize())
  {
    this->FindList();
    CheckMemoryOfHeader(m_File.GetName(), "list of files", 3 * m_ListBytes + m_Count * EntryMemory);
    this->ReadList();
  }
  const Entry *
  Find(const std::string & name) const
  {
    const auto found = m_Entries.find(name);
    return found == m_Entries.end() ? nullptr : &found->second;
  }
  /** The place of the first byte of an entry. */
  std::uint64_t
  GetOffset(const std::string & name, const Entry & entry) const
  {
    if (!entry.isStored)
    {
      this->Refuse("compresses " + name + "; only files that an archive stores as they are can be read (zip -0)");
    }
    if (entry.offset > m_Size || m_Size - entry.offset < LocalBytes)
    {
      this->RefuseEntry(name);
    }
    const auto          header = ReadBytes(m_File, entry.offset, LocalBytes);
    const std::uint64_t before = LocalBytes + NumberAt(header, 26, 2) + NumberAt(header, 28, 2);
    const std::uint64_t left = m_Size - entry.offset;
    if (NumberAt(header, 0, 4) != LocalSignature || before > left || entry.bytes > left - before)
    {
      this->RefuseEntry(name);
    }
    return entry.offset + before;
  }

private:
  [[noreturn]] void
  Refuse(const std::string & why) const
  {
    Fail(m_File.GetName(), why);
  }
  [[noreturn]] void
  RefuseEntry(const std::string & name) const
  {
    this->Refuse("is no zip archive, or is damaged: " + name + " is not where its list of files says");
  }

  void
  FindList()
  {
    const std::size_t bytes = static_cast<std::size_t>(std::min<std::uint64_t>(m_Size, EndBytes + MostCommentBytes));
    const auto        tail = ReadBytes(m_File, m_Size - bytes, bytes);
    for (std::size_t i = bytes < EndBytes ? 0 : bytes - EndBytes + 1; i-- > 0;)
    {
      if (NumberAt(tail, i, 4) == EndSignature && i + EndBytes + NumberAt(tail, i + 20, 2) == bytes)
      {
        const std::uint64_t end = m_Size - bytes + i;
        m_Count = NumberAt(tail, i + 10, 2);
        m_ListBytes = NumberAt(tail, i + 12, 4);
        m_ListOffset = NumberAt(tail, i + 16, 4);
        if (m_Count == 0xffff || m_ListBytes == 0xffffffff || m_ListOffset == 0xffffffff)
        {
          this->FindFarList(end);
        }
        if (m_ListOffset > end || m_ListBytes > end - m_ListOffset || m_Count > m_ListBytes / EntryBytes)
        {
          break;
        }
        return;
      }
    }
    this->Refuse("is no zip archive, or is damaged: it does not end with a list of its files");
  }
  /** The numbers of archives of more than 4 GiB or 65,535 files. */
  void
  FindFarList(std::uint64_t end)
  {
    if (end < LocatorBytes)
    {
      return;
    }
    const auto          locator = ReadBytes(m_File, end - LocatorBytes, LocatorBytes);
    const std::uint64_t place = NumberAt(locator, 8, 8);
    if (NumberAt(locator, 0, 4) != LocatorSignature || place > end || end - place < FarEndBytes)
    {
      return;
    }
    const auto record = ReadBytes(m_File, place, FarEndBytes);
    if (NumberAt(record, 0, 4) == FarEndSignature)
    {
      m_Count = NumberAt(record, 32, 8);
      m_ListBytes = NumberAt(record, 40, 8);
      m_ListOffset = NumberAt(record, 48, 8);
    }
  }
  void
  ReadList()
  {
    const auto  list = ReadBytes(m_File, m_ListOffset, static_cast<std::size_t>(m_ListBytes));
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < m_Count; ++i)
    {
      if (list.size() - at < EntryBytes || NumberAt(list, at, 4) != EntrySignature)
      {
        this->Refuse("is damaged: entry " + std::to_string(i) + " of its list of files is none");
      }
      const std::size_t name = NumberAt(list, at + 28, 2);
      const std::size_t extra = NumberAt(list, at + 30, 2);
      const std::size_t all = EntryBytes + name + extra + NumberAt(list, at + 32, 2);
      if (list.size() - at < all)
      {
        this->Refuse("is damaged: entry " + std::to_string(i) + " of its list of files goes on beyond the list");
      }
      std::uint64_t numbers[3] = { NumberAt(list, at + 24, 4), NumberAt(list, at + 20, 4), NumberAt(list, at + 42, 4) };
      ReadFarNumbers(list, at + EntryBytes + name, extra, numbers);
      Entry      entry;
      const bool isEncrypted = (list[at + 8] & 1) != 0;
      entry.sum = static_cast<std::uint32_t>(NumberAt(list, at + 16, 4));
      entry.bytes = numbers[1];
      entry.offset = numbers[2];
      entry.isStored = NumberAt(list, at + 10, 2) == 0 && !isEncrypted && numbers[0] == numbers[1];
      const auto begin = list.begin() + static_cast<std::ptrdiff_t>(at + EntryBytes);
      // A file that was written again has a second entry, which counts.
      m_Entries[std::string(begin, begin + static_cast<std::ptrdiff_t>(name))] = entry;
      at += all;
    }
  }
  /** Replaces numbers that do not fit into 32 bits: size, bytes in the archive, offset. */
  static void
  ReadFarNumbers(const std::vector<unsigned char> & list, std::size_t at, std::size_t bytes,
                 std::uint64_t (&numbers)[3])
  {
    const std::size_t end = at + bytes;
    while (end - at >= 4)
    {
      const std::size_t size = NumberAt(list, at + 2, 2);
      const bool        isThis = NumberAt(list, at, 2) == 1;
      at += 4;
      if (size > end - at)
      {
        return;
      }
      std::size_t place = at;
      for (std::uint64_t & number : numbers)
      {
        if (isThis && number == 0xffffffff && place + 8 <= at + size)
        {
          number = NumberAt(list, place, 8);
          place += 8;
        }
      }
      at += size;
    }
  }

  Descriptor                   m_File;
  std::uint64_t                m_Size;
  std::uint64_t                m_Count{ 0 };
  std::uint64_t                m_ListBytes{ 0 };
  std::uint64_t                m_ListOffset{ 0 };
  std::map<std::string, Entry> m_Entries;
};

/** The archive as it is now: its list is read again when the file has changed. */
std::shared_ptr<const ZipArchive>
GetZipArchive(const fs::path & path)
{
  struct Known
  {
    fs::path                          path;
    struct stat                       status;
    std::shared_ptr<const ZipArchive> archive;
  };
  static std::mutex         mutex;
  static std::vector<Known> all;

  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0)
  {
    FailWithErrno(path.string(), "cannot be read", errno);
  }
  const auto isSame = [&](const Known & known) {
    return known.path == path && known.status.st_dev == status.st_dev && known.status.st_ino == status.st_ino &&
           known.status.st_size == status.st_size && known.status.st_mtime == status.st_mtime;
  };
  const std::lock_guard<std::mutex> lock(mutex);
  const auto                        found = std::find_if(all.begin(), all.end(), isSame);
  if (found != all.end())
  {
    return found->archive;
  }
  const auto archive = std::make_shared<const ZipArchive>(path);
  all.erase(std::remove_if(all.begin(), all.end(), [&](const Known & known) { return known.path == path; }), all.end());
  if (all.size() == MostArchives)
  {
    all.erase(all.begin());
  }
  all.push_back({ path, status, archive });
  return archive;
}

/** The name of a file in its archive. */
std::string
NameInZip(const fs::path & path, const fs::path & zip)
{
  return path.lexically_normal().lexically_relative(zip.lexically_normal()).generic_string();
}

} // namespace

void
ZipSum::Add(const char * data, std::size_t bytes, std::uint64_t place)
{
  // zlib counts in 32 bits.
  constexpr std::size_t most = std::size_t{ 1 } << 30;
  uLong                 sum = crc32(0, nullptr, 0);
  for (std::size_t done = 0; done < bytes; done += most)
  {
    sum = crc32(sum, reinterpret_cast<const Bytef *>(data + done), static_cast<uInt>(std::min(most, bytes - done)));
  }
  if (bytes == 0 || place < m_Offset || place - m_Offset > m_Bytes || bytes > m_Bytes - (place - m_Offset))
  {
    return;
  }
  const std::uint64_t               begin = place - m_Offset;
  const std::lock_guard<std::mutex> lock(m_Mutex);
  const auto                        next = m_Pieces.lower_bound(begin);
  const auto                        before = next == m_Pieces.begin() ? m_Pieces.end() : std::prev(next);
  if ((next != m_Pieces.end() && next->first < begin + bytes) ||
      (before != m_Pieces.end() && before->first + before->second.bytes > begin))
  {
    return;
  }
  const auto join = [](Piece & first, const Piece & second) {
    first.sum = static_cast<std::uint32_t>(crc32_combine(first.sum, second.sum, static_cast<z_off_t>(second.bytes)));
    first.bytes += second.bytes;
  };
  auto at = m_Pieces.emplace_hint(next, begin, Piece{ bytes, static_cast<std::uint32_t>(sum) });
  if (next != m_Pieces.end() && next->first == begin + bytes)
  {
    join(at->second, next->second);
    m_Pieces.erase(next);
  }
  if (before != m_Pieces.end() && before->first + before->second.bytes == begin)
  {
    join(before->second, at->second);
    m_Pieces.erase(at);
    at = before;
  }
  if (at->second.bytes == m_Bytes && at->second.sum != m_Expected)
  {
    Fail(m_Name, "is damaged: the archive has another checksum (CRC-32) of it");
  }
}

fs::path
FindZipOf(const fs::path & path)
{
  if (path.string().find(".zip") == std::string::npos)
  {
    return {};
  }
  fs::path zip;
  for (const fs::path & part : path)
  {
    zip /= part;
    std::error_code error;
    if (zip.extension() == ".zip" && fs::is_regular_file(zip, error))
    {
      return zip;
    }
  }
  return {};
}

bool
IsZarrFileThere(const fs::path & path)
{
  const fs::path zip = FindZipOf(path);
  if (!zip.empty())
  {
    return GetZipArchive(zip)->Find(NameInZip(path, zip)) != nullptr;
  }
  std::error_code error;
  return fs::exists(path, error);
}

std::optional<ZarrFile>
OpenZarrFile(const fs::path & path)
{
  const fs::path zip = FindZipOf(path);
  if (!zip.empty())
  {
    const std::string               name = NameInZip(path, zip);
    const auto                      archive = GetZipArchive(zip);
    const ZipArchive::Entry * const entry = archive->Find(name);
    if (!entry)
    {
      return std::nullopt;
    }
    ZarrFile file{ Descriptor::OpenToRead(zip, path.string()) };
    file.offset = archive->GetOffset(name, *entry);
    file.bytes = entry->bytes;
    file.sum = entry->sum;
    return file;
  }
  std::error_code error;
  if (fs::status(path, error).type() == fs::file_type::not_found)
  {
    return std::nullopt;
  }
  ZarrFile file{ Descriptor::OpenToRead(path) };
  file.bytes = file.file.GetSize();
  return file;
}

} // namespace chunkwise::files
