/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseSpool.h"

#include <utility>

namespace chunkwise
{

Spool::Spool(std::string folder)
  : m_Folder(folder.empty() ? "." : std::move(folder))
{}

std::uint64_t
Spool::Reserve(std::size_t bytes)
{
  if (!m_File.IsOpen())
  {
    m_File.Open(m_Folder);
  }
  const std::uint64_t offset = m_Size;
  m_Size += bytes;
  return offset;
}

void
Spool::WriteAt(std::uint64_t offset, const void * data, std::size_t bytes)
{
  m_File.WriteAt(offset, data, bytes);
  m_Written += bytes;
}

void
Spool::Read(std::uint64_t offset, void * data, std::size_t bytes)
{
  m_File.ReadAt(offset, data, bytes);
  m_Read += bytes;
}

} // namespace chunkwise
