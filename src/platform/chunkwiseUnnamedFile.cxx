/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseUnnamedFile.h"

#include "chunkwiseError.h"

#include <algorithm>

#if defined(_WIN32)
#  include "chunkwiseWindows.h"
#  include <random>
#else
#  include <cerrno>
#  include <cstdlib>
#  include <cstring>
#  include <unistd.h>
#endif

namespace chunkwise
{

namespace
{

/** Systems take no more than 2 GiB at once. */
constexpr std::size_t MostBytes = std::size_t{ 1 } << 30;

#if defined(_WIN32)

HANDLE
AsHandle(std::intptr_t handle)
{
  return reinterpret_cast<HANDLE>(handle);
}

OVERLAPPED
MakePlace(std::uint64_t offset)
{
  OVERLAPPED place{};
  place.Offset = static_cast<DWORD>(offset);
  place.OffsetHigh = static_cast<DWORD>(offset >> 32);
  return place;
}

/** The bytes that were written, or read: fewer than asked for at the end of the file. -1 and the reason for an error.
 */
std::int64_t
Write(std::intptr_t handle, std::uint64_t offset, const char * data, std::size_t bytes, std::string & reason)
{
  OVERLAPPED place = MakePlace(offset);
  DWORD      count = 0;
  if (!WriteFile(AsHandle(handle), data, static_cast<DWORD>(bytes), &count, &place))
  {
    reason = DescribeLastError();
    return -1;
  }
  return count;
}

std::int64_t
Read(std::intptr_t handle, std::uint64_t offset, char * data, std::size_t bytes, std::string & reason)
{
  OVERLAPPED place = MakePlace(offset);
  DWORD      count = 0;
  if (!ReadFile(AsHandle(handle), data, static_cast<DWORD>(bytes), &count, &place) &&
      GetLastError() != ERROR_HANDLE_EOF)
  {
    reason = DescribeLastError();
    return -1;
  }
  return count;
}

#else

template <typename TCall>
std::int64_t
Repeat(TCall && call, std::string & reason)
{
  for (;;)
  {
    const ssize_t count = call();
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
    {
      continue;
    }
    if (count < 0)
    {
      reason = std::strerror(errno);
    }
    return count;
  }
}

std::int64_t
Write(std::intptr_t handle, std::uint64_t offset, const char * data, std::size_t bytes, std::string & reason)
{
  return Repeat([&] { return ::pwrite(static_cast<int>(handle), data, bytes, static_cast<off_t>(offset)); }, reason);
}

std::int64_t
Read(std::intptr_t handle, std::uint64_t offset, char * data, std::size_t bytes, std::string & reason)
{
  return Repeat([&] { return ::pread(static_cast<int>(handle), data, bytes, static_cast<off_t>(offset)); }, reason);
}

#endif

} // namespace

#if defined(_WIN32)

UnnamedFile::~UnnamedFile()
{
  if (IsOpen())
  {
    (void)CloseHandle(AsHandle(m_Handle));
  }
}

void
UnnamedFile::Open(const std::string & folder)
{
  std::random_device random;
  HANDLE             handle = INVALID_HANDLE_VALUE;
  do
  {
    m_Name = folder + "/chunkwise-spool-" + std::to_string(random());
    // Nobody else can open it, and the system deletes it with its last handle.
    handle = CreateFileW(MakeWide(m_Name).c_str(),
                         GENERIC_READ | GENERIC_WRITE | DELETE,
                         0,
                         nullptr,
                         CREATE_NEW,
                         FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE,
                         nullptr);
  } while (handle == INVALID_HANDLE_VALUE && GetLastError() == ERROR_FILE_EXISTS);
  if (handle == INVALID_HANDLE_VALUE)
  {
    throw Error(m_Name + ": cannot be made: " + DescribeLastError());
  }
  m_Handle = reinterpret_cast<std::intptr_t>(handle);
}

#else

UnnamedFile::~UnnamedFile()
{
  if (IsOpen())
  {
    ::close(static_cast<int>(m_Handle));
  }
}

void
UnnamedFile::Open(const std::string & folder)
{
  // mkstemp replaces six letters X.
  m_Name = folder + "/chunkwise-spool-" + std::string(6, 'X');
  const int file = ::mkstemp(m_Name.data());
  if (file < 0)
  {
    throw Error(m_Name + ": cannot be made: " + std::strerror(errno));
  }
  ::unlink(m_Name.c_str());
  m_Handle = file;
}

#endif

void
UnnamedFile::WriteAt(std::uint64_t offset, const void * data, std::size_t bytes)
{
  for (std::size_t done = 0; done < bytes;)
  {
    std::string        reason = "no space left";
    const std::int64_t count =
      Write(m_Handle, offset + done, static_cast<const char *>(data) + done, std::min(bytes - done, MostBytes), reason);
    if (count <= 0)
    {
      throw Error(m_Name + ": cannot be written at byte " + std::to_string(offset + done) + ": " + reason);
    }
    done += static_cast<std::size_t>(count);
  }
}

void
UnnamedFile::ReadAt(std::uint64_t offset, void * data, std::size_t bytes)
{
  for (std::size_t done = 0; done < bytes;)
  {
    std::string        reason = "it ends there";
    const std::int64_t count =
      Read(m_Handle, offset + done, static_cast<char *>(data) + done, std::min(bytes - done, MostBytes), reason);
    if (count <= 0)
    {
      throw Error(m_Name + ": cannot be read at byte " + std::to_string(offset + done) + ": " + reason);
    }
    done += static_cast<std::size_t>(count);
  }
}

} // namespace chunkwise
