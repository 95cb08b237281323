/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrShard.h"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>

namespace chunkwise::files
{

namespace
{

void
PutNumber(std::uint64_t number, char * to, int bytes)
{
  for (int i = 0; i < bytes; ++i)
  {
    to[i] = static_cast<char>(number >> 8 * i);
  }
}

} // namespace

void
ZarrFolder::MakeFolder(const std::filesystem::path & folder) const
{
  if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST)
  {
    return;
  }
  if (errno != ENOENT || !folder.has_parent_path() || folder == m_Root)
  {
    FailWithErrno(m_Shown, "cannot be written", errno);
  }
  this->MakeFolder(folder.parent_path());
  if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
  {
    FailWithErrno(m_Shown, "cannot be written", errno);
  }
}

Descriptor
ZarrFolder::CreateFile(const std::filesystem::path & file) const
{
  std::error_code error;
  if (!std::filesystem::is_directory(file.parent_path(), error))
  {
    this->MakeFolder(file.parent_path());
  }
  if (m_Replaces)
  {
    ::unlink(file.c_str());
  }
  return Descriptor::Create(file, m_Shown);
}

void
ZarrFolder::WriteText(const std::filesystem::path & file, const std::string & text) const
{
  Descriptor descriptor = this->CreateFile(file);
  descriptor.WriteAt(text.data(), text.size(), 0);
  descriptor.Close();
  this->CountBytes(text.size());
}

bool
ZarrBuffers::Take(std::vector<char> & buffer)
{
  std::unique_lock<std::mutex> lock(m_Mutex);
  m_Freed.wait(lock, [this] { return m_HasFailed || !m_Free.empty(); });
  if (m_HasFailed)
  {
    return false;
  }
  buffer = std::move(m_Free.back());
  m_Free.pop_back();
  return true;
}

void
ZarrBuffers::GiveBack(std::vector<char> & buffer)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Free.push_back(std::move(buffer));
  m_Freed.notify_one();
}

void
ZarrBuffers::Fail()
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_HasFailed = true;
  m_Freed.notify_all();
}

void
ZarrShard::Append(std::int64_t rank, std::int64_t place, std::vector<char> & encoded, const ZarrFolder & folder,
                  ZarrBuffers & buffers)
{
  std::vector<std::vector<char>> run;
  std::vector<iovec>             pieces;
  std::uint64_t                  begin = 0;
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    begin = m_End;
    m_Pending[rank] = { place, std::move(encoded) };
    for (auto first = m_Pending.begin(); first != m_Pending.end() && first->first == m_Placed; ++m_Placed)
    {
      run.push_back(this->Place(first->second));
      first = m_Pending.erase(first);
    }
    if (m_End > begin)
    {
      this->Open(begin, folder);
    }
  }
  for (std::vector<char> & bytes : run)
  {
    if (!bytes.empty())
    {
      pieces.push_back({ bytes.data(), bytes.size() });
    }
  }
  if (!pieces.empty())
  {
    m_Descriptor.WritePieces(pieces, begin);
  }
  for (std::vector<char> & bytes : run)
  {
    buffers.GiveBack(bytes);
  }
}

/** Gives a chunk its place in the file. */
std::vector<char>
ZarrShard::Place(Encoded & chunk)
{
  if (!chunk.bytes.empty())
  {
    PutNumber(m_End, m_Places.data() + 16 * chunk.place, 8);
    PutNumber(chunk.bytes.size(), m_Places.data() + 16 * chunk.place + 8, 8);
    m_End += chunk.bytes.size();
  }
  return std::move(chunk.bytes);
}

/** Opens the file, which has `bytes`. */
void
ZarrShard::Open(std::uint64_t bytes, const ZarrFolder & folder)
{
  if (m_Descriptor.GetNumber() >= 0)
  {
    return;
  }
  if (bytes == 0)
  {
    m_Descriptor = folder.CreateFile(m_File);
    return;
  }
  m_Descriptor = Descriptor::Create(m_File, folder.GetShown(), /*mayBeThere=*/true);
  if (m_Descriptor.GetSize() != bytes)
  {
    Fail(folder.GetShown(), m_File.string() + " was changed while it was written");
  }
}

std::uint64_t
ZarrShard::Finish(const ZarrFolder & folder)
{
  if (m_End == 0)
  {
    return 0;
  }
  this->Open(m_End, folder);
  const std::size_t size = m_Places.size() - 4;
  PutNumber(GetCrc32c(m_Places.data(), size), m_Places.data() + size, 4);
  m_Descriptor.WriteAt(m_Places.data(), m_Places.size(), m_End);
  m_Descriptor.Close();
  return m_End + m_Places.size();
}

} // namespace chunkwise::files
