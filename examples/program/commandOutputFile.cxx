/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandOutputFile.h"

#include "commandArguments.h"
#include "commandMemory.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>

namespace command
{

namespace fs = std::filesystem;

namespace
{

/** Of the one object that there is. */
fs::path unfinished;

bool
WritesPlainVoxels(const std::string & extension)
{
  return std::set<std::string>{
    ".mha", ".mhd", ".mrc", ".vtk", ".nii", ".hdr", ".img", ".nrrd", ".nhdr", ".h5", ".hdf5"
  }
           .count(extension) != 0;
}

/** Of a gzip file, modulo 2^32: its last four bytes. */
std::uint32_t
GetExpandedSize(const fs::path & file)
{
  std::ifstream stream(file, std::ios::binary);
  unsigned char bytes[4] = {};
  stream.seekg(-4, std::ios::end);
  stream.read(reinterpret_cast<char *>(bytes), 4);
  std::uint32_t size = 0;
  for (int i = 3; i >= 0; --i)
  {
    size = size << 8 | bytes[i];
  }
  return stream ? size : 0;
}

} // namespace

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
  unfinished = m_Directory;
}

OutputFile::~OutputFile()
{
  std::error_code ignored;
  fs::remove_all(m_Directory, ignored);
  unfinished.clear();
}

fs::path
OutputFile::GetPath() const
{
  return m_Directory / m_Destination.filename();
}

void
OutputFile::CheckIsComplete(std::uint64_t voxelBytes) const
{
  // Not every format's library says that it could not write.
  std::uint64_t written = 0;
  std::uint64_t expanded = 0;
  for (const auto & entry : fs::directory_iterator(m_Directory))
  {
    written += entry.file_size();
    expanded += entry.path().extension() == ".gz" ? GetExpandedSize(entry.path()) : 0;
  }
  const std::string name = m_Destination.extension().string();
  // Voxels that are written as they are take no less than their bytes. Compressed ones end with their number, modulo
  // 2^32; beside them is a small header.
  const bool isComplete = name == ".gz" ? static_cast<std::uint32_t>(expanded - voxelBytes) < 1024
                                        : !WritesPlainVoxels(name) || written >= voxelBytes;
  if (!isComplete)
  {
    throw WorkError(
      "OUT: " + (name == ".gz" ? std::string("not all") : "only " + FormatBytes(static_cast<double>(written))) +
      " of " + FormatBytes(static_cast<double>(voxelBytes)) + " could be written");
  }
}

void
OutputFile::RemoveUnfinished() noexcept
{
  std::error_code ignored;
  if (!unfinished.empty())
  {
    fs::remove_all(unfinished, ignored);
  }
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
