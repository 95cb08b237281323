/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileDescriptor.h"
#include "chunkwiseHostMemory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#ifdef __linux__
#  include <sys/vfs.h>
#endif

namespace chunkwise::files
{

namespace
{

#ifdef __linux__
/** Linux' number for a file system in memory (linux/magic.h). */
constexpr long TmpfsMagic = 0x01021994;
#endif

/** Calls until no signal interrupts. */
template <typename TCall>
auto
Retry(TCall && call)
{
  auto result = call();
  while (result < 0 && (errno == EINTR || errno == EAGAIN))
  {
    result = call();
  }
  return result;
}

/** Takes `bytes` off the front. */
void
Advance(std::vector<iovec> & pieces, std::size_t & first, std::size_t bytes)
{
  while (first < pieces.size() && bytes >= pieces[first].iov_len)
  {
    bytes -= pieces[first].iov_len;
    ++first;
  }
  if (bytes > 0)
  {
    pieces[first].iov_base = static_cast<char *>(pieces[first].iov_base) + bytes;
    pieces[first].iov_len -= bytes;
  }
}

/** The most pieces that one call of the system takes. */
constexpr std::size_t MaxPieces = 1024;

/** Less is written faster than its pages are mapped. */
constexpr std::size_t LeastOfPages = std::size_t{ 256 } << 10;
/** With fewer processors faults of pages take more than the lock of the file. */
constexpr unsigned int LeastProcessorsToMap = 4;

std::size_t
CountBytes(const std::vector<iovec> & pieces)
{
  std::size_t bytes = 0;
  for (const iovec & piece : pieces)
  {
    bytes += piece.iov_len;
  }
  return bytes;
}

} // namespace

void
Fail(const std::string & file, const std::string & why)
{
  throw FileError(file + ": " + why);
}

void
FailWithErrno(const std::string & file, const std::string & what, int error)
{
  Fail(file, what + ": " + std::strerror(error));
}

Descriptor::~Descriptor()
{
  if (m_Number >= 0)
  {
    ::close(m_Number);
  }
}

Descriptor::Descriptor(Descriptor && other) noexcept
  : m_Number(other.m_Number)
  , m_Name(std::move(other.m_Name))
  , m_IsInMemory(other.m_IsInMemory)
{
  other.m_Number = -1;
}

Descriptor &
Descriptor::operator=(Descriptor && other) noexcept
{
  std::swap(m_Number, other.m_Number);
  std::swap(m_Name, other.m_Name);
  std::swap(m_IsInMemory, other.m_IsInMemory);
  return *this;
}

Descriptor
Descriptor::OpenToRead(const std::filesystem::path & file, const std::string & shown)
{
  CheckIsPlainFile(file);
  Descriptor result;
  result.m_Name = shown.empty() ? file.string() : shown;
  result.m_Number = Retry([&] { return ::open(file.c_str(), O_RDONLY | O_CLOEXEC); });
  if (result.m_Number < 0)
  {
    FailWithErrno(result.m_Name, "cannot be read", errno);
  }
  return result;
}

Descriptor
Descriptor::Create(const std::filesystem::path & file, const std::string & shown, bool mayBeThere)
{
  Descriptor result;
  result.m_Name = shown;
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | (mayBeThere ? O_NOFOLLOW : O_EXCL);
  result.m_Number = Retry([&] { return ::open(file.c_str(), flags, 0666); });
  if (result.m_Number < 0)
  {
    FailWithErrno(shown, "cannot be written", errno);
  }
#ifdef __linux__
  struct statfs system = {};
  result.m_IsInMemory = ::fstatfs(result.m_Number, &system) == 0 && system.f_type == TmpfsMagic;
#endif
  return result;
}

std::uint64_t
Descriptor::GetSize() const
{
  struct stat status = {};
  if (::fstat(m_Number, &status) != 0)
  {
    FailWithErrno(m_Name, "cannot be read", errno);
  }
  return static_cast<std::uint64_t>(status.st_size);
}

std::size_t
Descriptor::ReadSome(void * data, std::size_t bytes, std::uint64_t offset) const
{
  std::size_t done = 0;
  while (done < bytes)
  {
    const ssize_t count = Retry([&] {
      return ::pread(m_Number, static_cast<char *>(data) + done, bytes - done, static_cast<off_t>(offset + done));
    });
    if (count < 0)
    {
      FailWithErrno(m_Name, "cannot be read at byte " + std::to_string(offset + done), errno);
    }
    if (count == 0)
    {
      break;
    }
    done += static_cast<std::size_t>(count);
  }
  return done;
}

void
Descriptor::ReadAt(void * data, std::size_t bytes, std::uint64_t offset) const
{
  std::vector<iovec> piece{ { data, bytes } };
  ReadPieces(piece, offset);
}

void
Descriptor::WriteAt(const void * data, std::size_t bytes, std::uint64_t offset) const
{
  std::vector<iovec> piece{ { const_cast<void *>(data), bytes } };
  WritePieces(piece, offset);
}

void
Descriptor::ReadPieces(std::vector<iovec> & pieces, std::uint64_t offset) const
{
  std::size_t first = 0;
  Advance(pieces, first, 0);
  while (first < pieces.size())
  {
    const int     number = static_cast<int>(std::min(pieces.size() - first, MaxPieces));
    const ssize_t count =
      Retry([&] { return ::preadv(m_Number, pieces.data() + first, number, static_cast<off_t>(offset)); });
    if (count < 0)
    {
      FailWithErrno(m_Name, "cannot be read at byte " + std::to_string(offset), errno);
    }
    if (count == 0)
    {
      std::uint64_t needed = offset;
      for (std::size_t i = first; i < pieces.size(); ++i)
      {
        needed += pieces[i].iov_len;
      }
      Fail(m_Name, "ends after " + std::to_string(GetSize()) + " bytes, " + std::to_string(needed) + " are needed");
    }
    offset += static_cast<std::uint64_t>(count);
    Advance(pieces, first, static_cast<std::size_t>(count));
  }
}

bool
Descriptor::TakePages(std::uint64_t offset, std::uint64_t bytes) const
{
#ifdef __linux__
  if (!m_IsInMemory)
  {
    return false;
  }
  if (Retry([&] { return ::fallocate(m_Number, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)); }) == 0)
  {
    return true;
  }
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == ENOMEM)
  {
    FailWithErrno(m_Name, "cannot be written", errno);
  }
#else
  (void)offset;
  (void)bytes;
#endif
  return false;
}

// A file in memory has one lock, under which a call of the system finds pages and copies: threads that write wait for
// each other. To take the pages first is quick, and tells that there is no room; copying into them, once they are
// mapped, needs no lock. 8 GiB by 8 threads: 1.1 to 1.7 s, from 3.0 (16 processors beside an H200).
bool
Descriptor::WriteToPages(const std::vector<iovec> & pieces, std::uint64_t offset) const
{
#ifdef __linux__
  const std::size_t bytes = CountBytes(pieces);
  if (bytes < LeastOfPages || !TakePages(offset, bytes))
  {
    return false;
  }
  static const bool maps = GetNumberOfProcessors() >= LeastProcessorsToMap;
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t before = offset % page;
  void * const      mapped =
    maps ? ::mmap(
             nullptr, before + bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m_Number, static_cast<off_t>(offset - before))
              : MAP_FAILED;
  if (mapped == MAP_FAILED)
  {
    return false;
  }
  char * to = static_cast<char *>(mapped) + before;
  for (const iovec & piece : pieces)
  {
    std::memcpy(to, piece.iov_base, piece.iov_len);
    to += piece.iov_len;
  }
  ::munmap(mapped, before + bytes);
  return true;
#else
  (void)pieces;
  (void)offset;
  return false;
#endif
}

void
Descriptor::WritePieces(std::vector<iovec> & pieces, std::uint64_t offset) const
{
  if (WriteToPages(pieces, offset))
  {
    return;
  }
  std::size_t first = 0;
  Advance(pieces, first, 0);
  while (first < pieces.size())
  {
    const int     number = static_cast<int>(std::min(pieces.size() - first, MaxPieces));
    const ssize_t count =
      Retry([&] { return ::pwritev(m_Number, pieces.data() + first, number, static_cast<off_t>(offset)); });
    if (count <= 0)
    {
      FailWithErrno(m_Name, "cannot be written", count < 0 ? errno : ENOSPC);
    }
    offset += static_cast<std::uint64_t>(count);
    Advance(pieces, first, static_cast<std::size_t>(count));
  }
}

void
Descriptor::Reserve(std::uint64_t bytes) const
{
#ifdef __linux__
  // A file system in memory would fill the space with zeros here, one page after the other: that there is room must do.
  struct statfs system = {};
  if (::fstatfs(m_Number, &system) == 0 && system.f_type == TmpfsMagic)
  {
    // No limit is told as no blocks at all.
    if (system.f_blocks > 0 &&
        static_cast<std::uint64_t>(system.f_bavail) * static_cast<std::uint64_t>(system.f_bsize) < bytes)
    {
      FailWithErrno(m_Name, "has no room for " + std::to_string(bytes) + " bytes", ENOSPC);
    }
    return;
  }
  // Not posix_fallocate: where the file system cannot, it writes into every block instead.
  if (bytes > 0 && Retry([&] { return ::fallocate(m_Number, 0, 0, static_cast<off_t>(bytes)); }) != 0)
  {
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO)
    {
      FailWithErrno(m_Name, "has no room for " + std::to_string(bytes) + " bytes", errno);
    }
  }
#else
  (void)bytes;
#endif
}

void
Descriptor::Sync() const
{
  // Some file systems have nothing to wait for, and say so.
  if (Retry([&] { return ::fsync(m_Number); }) != 0 && errno != EINVAL && errno != ENOTSUP)
  {
    FailWithErrno(m_Name, "cannot be written", errno);
  }
}

void
Descriptor::Close()
{
  const int number = m_Number;
  m_Number = -1;
  if (number >= 0 && ::close(number) != 0 && errno != EINTR)
  {
    FailWithErrno(m_Name, "cannot be written", errno);
  }
}

void
SyncFolder(const std::filesystem::path & folder)
{
  const int number = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (number >= 0)
  {
    const int status = Retry([&] { return ::fsync(number); });
    const int error = errno;
    ::close(number);
    if (status != 0 && error != EINVAL && error != ENOTSUP)
    {
      FailWithErrno(folder.string(), "cannot be written", error);
    }
  }
}

void
CheckIsPlainFile(const std::filesystem::path & file)
{
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0)
  {
    FailWithErrno(file.string(), "cannot be read", errno);
  }
  if (!S_ISREG(status.st_mode))
  {
    Fail(file.string(),
         std::string("is a ") +
           (S_ISDIR(status.st_mode)    ? "folder"
            : S_ISFIFO(status.st_mode) ? "pipe"
            : S_ISSOCK(status.st_mode) ? "socket"
                                       : "device") +
           ", not a file");
  }
}

} // namespace chunkwise::files
