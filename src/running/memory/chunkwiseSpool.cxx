/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSpool.h"

#include "chunkwiseError.h"

#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <vector>

namespace chunkwise
{

Spool::Spool(std::string folder)
  : m_Folder(folder.empty() ? "." : std::move(folder))
{}

Spool::~Spool()
{
  if (m_File >= 0)
  {
    ::close(m_File);
  }
}

void
Spool::Open()
{
  // mkstemp replaces six letters X.
  m_Name = m_Folder + "/chunkwise-spool-" + std::string(6, 'X');
  std::vector<char> path(m_Name.begin(), m_Name.end());
  path.push_back('\0');
  m_File = ::mkstemp(path.data());
  if (m_File < 0)
  {
    throw Error(m_Name + ": cannot be made: " + std::strerror(errno));
  }
  m_Name.assign(path.data());
  ::unlink(path.data());
}

std::uint64_t
Spool::Reserve(std::size_t bytes)
{
  if (m_File < 0)
  {
    Open();
  }
  const std::uint64_t offset = m_Size;
  m_Size += bytes;
  return offset;
}

void
Spool::WriteAt(std::uint64_t offset, const void * data, std::size_t bytes)
{
  for (std::size_t done = 0; done < bytes;)
  {
    const ssize_t count =
      ::pwrite(m_File, static_cast<const char *>(data) + done, bytes - done, static_cast<off_t>(offset + done));
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
    {
      continue;
    }
    if (count <= 0)
    {
      throw Error(m_Name + ": cannot be written at byte " + std::to_string(offset + done) + ": " +
                  std::strerror(count < 0 ? errno : ENOSPC));
    }
    done += static_cast<std::size_t>(count);
  }
  m_Written += bytes;
}

void
Spool::Read(std::uint64_t offset, void * data, std::size_t bytes)
{
  for (std::size_t done = 0; done < bytes;)
  {
    const ssize_t count =
      ::pread(m_File, static_cast<char *>(data) + done, bytes - done, static_cast<off_t>(offset + done));
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
    {
      continue;
    }
    if (count <= 0)
    {
      throw Error(m_Name + ": cannot be read at byte " + std::to_string(offset + done) + ": " +
                  (count < 0 ? std::strerror(errno) : "it ends there"));
    }
    done += static_cast<std::size_t>(count);
  }
  m_Read += bytes;
}

} // namespace chunkwise
