/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileState.h"

#include "fileZarrCodec.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unistd.h>

namespace chunkwise::files
{

namespace fs = std::filesystem;

namespace
{

constexpr std::size_t BytesOfBlock = std::size_t{ 1 } << 20;
constexpr std::size_t BytesOfSum = sizeof(std::uint32_t);
/** A state is kept once so much time has passed, and so many times as long as keeping the last one took. */
constexpr std::chrono::milliseconds LeastPause{ 250 };
constexpr int                       PausesOfKeeping = 20;

} // namespace

StateFiles::StateFiles(const std::string & output, Journal::Run run)
  : m_Shown(output)
  , m_Folder({ output, FollowLinks((fs::path(output) / "").parent_path()), {}, false }, true)
  , m_Run(std::move(run))
  , m_Next(Clock::now() + LeastPause)
{}

StateFiles::~StateFiles()
{
  for (const std::int64_t place : { 1, 2 })
  {
    // A file that this run has made, and that is not whole, has only taken room.
    if (m_IsMade[static_cast<std::size_t>(place)] && place != m_Kept.files)
    {
      ::unlink(this->FileOf(place).c_str());
    }
  }
}

fs::path
StateFiles::FileOf(std::int64_t i) const
{
  return m_Folder.GetPath(".state" + std::to_string(i));
}

void
StateFiles::MakeFile(std::int64_t i)
{
  ::unlink(this->FileOf(i).c_str());
  Descriptor file = Descriptor::Create(this->FileOf(i), m_Shown);
  file.Reserve(m_Room);
  m_Files[static_cast<std::size_t>(i)] = std::move(file);
  m_IsMade[static_cast<std::size_t>(i)] = true;
}

std::int64_t
StateFiles::Open(const std::map<std::string, std::string> & run, std::uint64_t bytes)
{
  m_Run.insert(run.begin(), run.end());
  m_Room = bytes + (bytes / BytesOfBlock + 1) * BytesOfSum;
  const fs::path  file = m_Folder.GetPath(".journal");
  std::error_code error;
  // A journal that is refused stays.
  m_Folder.SetKept(fs::exists(file, error));
  m_Journal.emplace(file, m_Shown, m_Run);
  m_Kept = m_Journal->Read(1, std::numeric_limits<std::int64_t>::max());
  m_Folder.SetKept(m_Kept.planes > 0);
  if (m_Kept.planes > 0)
  {
    if (m_Kept.files != 1 && m_Kept.files != 2)
    {
      m_Journal->Refuse(file.string() + " is damaged");
    }
    Descriptor & state = m_Files[static_cast<std::size_t>(m_Kept.files)];
    try
    {
      state = Descriptor::OpenToRead(this->FileOf(m_Kept.files));
    }
    catch (const FileError & failure)
    {
      m_Journal->Refuse(failure.what());
    }
    if (m_Kept.bytes < 0 || state.GetSize() < static_cast<std::uint64_t>(m_Kept.bytes))
    {
      m_Journal->Refuse(state.GetName() + " has " + std::to_string(state.GetSize()) +
                        " bytes, where the journal beside it tells of " + std::to_string(m_Kept.bytes));
    }
  }
  for (const std::int64_t place : { 1, 2 })
  {
    if (m_Kept.planes == 0 || place != m_Kept.files)
    {
      this->MakeFile(place);
    }
  }
  if (m_Kept.planes == 0)
  {
    // A journal of zero steps that another run has left.
    m_Journal->Write(m_Kept);
  }
  m_StepsDone = m_Kept.planes;
  return m_StepsDone;
}

void
StateFiles::ReadBlock()
{
  const Descriptor & file = m_Files[static_cast<std::size_t>(m_Kept.files)];
  const auto         rest = static_cast<std::uint64_t>(m_Kept.bytes) - m_Offset;
  const auto         bytes = static_cast<std::size_t>(std::min<std::uint64_t>(rest, BytesOfBlock + BytesOfSum));
  m_Block.resize(std::max(bytes, BytesOfSum));
  std::uint32_t sum = 0;
  if (bytes > BytesOfSum)
  {
    file.ReadAt(m_Block.data(), bytes, m_Offset);
    std::memcpy(&sum, m_Block.data() + bytes - BytesOfSum, BytesOfSum);
  }
  m_Block.resize(m_Block.size() - BytesOfSum);
  if (m_Block.empty() || sum != GetCrc32c(m_Block.data(), m_Block.size()))
  {
    m_Journal->Refuse(file.GetName() + " is damaged");
  }
  m_Offset += bytes;
  m_At = 0;
}

void
StateFiles::Read(void * data, std::size_t bytes)
{
  for (char * to = static_cast<char *>(data); bytes > 0;)
  {
    if (m_At == m_Block.size())
    {
      this->ReadBlock();
    }
    const std::size_t count = std::min(bytes, m_Block.size() - m_At);
    std::memcpy(to, m_Block.data() + m_At, count);
    to += count;
    m_At += count;
    bytes -= count;
  }
}

void
StateFiles::EndReading()
{
  if (m_At != m_Block.size() || m_Offset != static_cast<std::uint64_t>(m_Kept.bytes))
  {
    m_Journal->Refuse(this->FileOf(m_Kept.files).string() + " is longer than a state");
  }
  m_Block.clear();
  m_At = m_Offset = 0;
  m_Next = Clock::now() + LeastPause;
}

bool
StateFiles::IsDue() const
{
  return Clock::now() >= m_Next;
}

void
StateFiles::WriteBlock()
{
  const std::uint32_t sum = GetCrc32c(m_Block.data(), m_Block.size());
  m_Block.insert(
    m_Block.end(), reinterpret_cast<const char *>(&sum), reinterpret_cast<const char *>(&sum) + BytesOfSum);
  m_Files[m_Kept.files == 1 ? 2 : 1].WriteAt(m_Block.data(), m_Block.size(), m_Offset);
  m_Offset += m_Block.size();
  m_Block.clear();
}

void
StateFiles::Write(const void * data, std::size_t bytes)
{
  if (m_Offset == 0 && m_Block.empty())
  {
    m_Began = Clock::now();
  }
  for (const char * from = static_cast<const char *>(data); bytes > 0;)
  {
    const std::size_t count = std::min(bytes, BytesOfBlock - m_Block.size());
    m_Block.insert(m_Block.end(), from, from + count);
    from += count;
    bytes -= count;
    if (m_Block.size() == BytesOfBlock)
    {
      this->WriteBlock();
    }
  }
}

void
StateFiles::Keep(std::int64_t steps)
{
  if (!m_Block.empty())
  {
    this->WriteBlock();
  }
  WrittenPart kept{ steps, m_Kept.files == 1 ? 2 : 1, static_cast<std::int64_t>(m_Offset) };
  m_Files[static_cast<std::size_t>(kept.files)].Sync();
  m_Journal->Write(kept);
  const bool isFirst = m_Kept.planes == m_StepsDone && m_StepsDone > 0;
  m_Kept = kept;
  m_Folder.SetKept(true);
  m_Offset = 0;
  if (isFirst)
  {
    // The file that an earlier run has left gives its place to one that has the room for this run's states.
    this->MakeFile(m_Kept.files == 1 ? 2 : 1);
  }
  m_Next = Clock::now() + std::max<Clock::duration>(LeastPause, PausesOfKeeping * (Clock::now() - m_Began));
}

void
StateFiles::Remove()
{
  m_Kept = {};
  m_Folder.SetKept(false);
}

} // namespace chunkwise::files
