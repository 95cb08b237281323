/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandOutputFile.h"

#include "commandArguments.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace command
{

namespace fs = std::filesystem;

OutputFile::OutputFile(const fs::path & destination)
  : m_Destination(destination)
{
  const fs::path parent = destination.has_parent_path() ? destination.parent_path() : fs::path(".");
  // mkdtemp replaces the last six characters, which must be these.
  const std::string pattern = "." + destination.filename().string() + "." + std::string(6, 'X');
  std::string       name = (parent / pattern).string();
  if (!mkdtemp(name.data()))
  {
    throw WorkError("OUT: cannot write into " + parent.string() + ": " + std::strerror(errno));
  }
  m_Directory = name;
}

OutputFile::~OutputFile()
{
  std::error_code ignored;
  fs::remove_all(m_Directory, ignored);
}

fs::path
OutputFile::GetPath() const
{
  return m_Directory / m_Destination.filename();
}

std::uintmax_t
OutputFile::GetBytesWritten() const
{
  std::uintmax_t bytes = 0;
  for (const auto & entry : fs::directory_iterator(m_Directory))
  {
    bytes += entry.file_size();
  }
  return bytes;
}

void
OutputFile::Commit()
{
  try
  {
    const fs::path main = GetPath();
    for (const auto & entry : fs::directory_iterator(m_Directory))
    {
      if (entry.path() != main)
      {
        fs::rename(entry.path(), m_Destination.parent_path() / entry.path().filename());
      }
    }
    fs::rename(main, m_Destination);
  }
  catch (const fs::filesystem_error & error)
  {
    throw WorkError("OUT: " + m_Destination.string() + ": " + error.code().message());
  }
}

} // namespace command
