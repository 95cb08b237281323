/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileJournal.h"

#include "fileZarrCodec.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <fstream>
#include <unistd.h>

namespace chunkwise::files
{

namespace
{

using JournalJson = nlohmann::json;

/** Paths may have bytes that are no UTF-8. */
std::string
ToLine(const JournalJson & json)
{
  return json.dump(-1, ' ', false, JournalJson::error_handler_t::replace);
}

std::string
WithChecksum(const std::string & text)
{
  return text + "\n" + std::to_string(GetCrc32c(text.data(), text.size())) + "\n";
}

/** The line of a file with a checksum; nothing if it is not there. False: it is damaged. */
bool
ReadLine(const std::filesystem::path & file, std::string & line)
{
  std::error_code error;
  line.clear();
  if (!std::filesystem::exists(file, error))
  {
    return true;
  }
  const Descriptor descriptor = Descriptor::OpenToRead(file);
  std::string      text(static_cast<std::size_t>(descriptor.GetSize()), '\0');
  descriptor.ReadAt(text.data(), text.size(), 0);
  line = text.substr(0, text.find('\n'));
  return text == WithChecksum(line);
}

JournalJson
ToJson(const WrittenPart & part)
{
  return { { "planes", part.planes }, { "files", part.files }, { "bytes", part.bytes } };
}

WrittenPart
ToPart(const JournalJson & json)
{
  const auto get = [&](const char * name) { return json.at(name).get<std::int64_t>(); };
  return { get("planes"), get("files"), get("bytes") };
}

/** A number of this start of the system; empty if it has none. */
std::string
GetBoot()
{
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string   number;
  file >> number;
  return number;
}

} // namespace

Journal::Journal(std::filesystem::path file, std::string shown, const Run & run)
  : m_File(std::move(file))
  , m_NoteFile(m_File.string() + ".note")
  , m_Shown(std::move(shown))
  , m_Run(JournalJson::parse(ToLine(run)).get<Run>())
{}

WrittenPart
Journal::Read(std::int64_t unit, std::int64_t all) const
{
  const std::string damaged = m_File.string() + " is damaged";
  std::string       line;
  if (!ReadLine(m_File, line))
  {
    this->Refuse(damaged);
  }
  if (line.empty())
  {
    return {};
  }
  try
  {
    const auto  json = JournalJson::parse(line);
    WrittenPart part = ToPart(json);
    if (ReadLine(m_NoteFile, line) && !line.empty())
    {
      const auto        note = JournalJson::parse(line);
      const std::string boot = GetBoot();
      const WrittenPart noted = ToPart(note);
      part = !boot.empty() && note.at("boot") == boot && noted.planes > part.planes ? noted : part;
    }
    if (part.planes != 0)
    {
      this->CheckRun(json.at("run").get<Run>());
    }
    if (part.planes < 0 || part.planes > all || (part.planes % unit != 0 && part.planes != all))
    {
      this->Refuse(damaged);
    }
    return part;
  }
  catch (const JournalJson::exception &)
  {
    this->Refuse(damaged);
  }
}

void
Journal::CheckRun(const Run & before) const
{
  std::string others;
  Run         all = m_Run;
  all.insert(before.begin(), before.end());
  for (const auto & each : all)
  {
    const auto then = before.find(each.first);
    const auto now = m_Run.find(each.first);
    if (then == before.end() || now == m_Run.end() || then->second != now->second)
    {
      others += (others.empty() ? "" : ", ") + each.first;
    }
  }
  if (!others.empty())
  {
    this->Refuse(m_File.parent_path().string() + " was begun by another run, with other values of: " + others);
  }
}

void
Journal::Refuse(const std::string & why) const
{
  Fail(m_Shown, why + "; remove " + m_File.parent_path().string() + " to begin anew");
}

void
Journal::Write(const WrittenPart & part) const
{
  JournalJson json = ToJson(part);
  json["run"] = m_Run;
  this->Replace(m_File, ToLine(json), true);
}

void
Journal::Note(const WrittenPart & part) const
{
  JournalJson json = ToJson(part);
  json["boot"] = GetBoot();
  this->Replace(m_NoteFile, ToLine(json), false);
}

void
Journal::Replace(const std::filesystem::path & file, const std::string & line, bool isDurable) const
{
  const std::string           text = WithChecksum(line);
  const std::filesystem::path part = file.string() + ".part";
  ::unlink(part.c_str());
  Descriptor descriptor = Descriptor::Create(part, m_Shown);
  descriptor.WriteAt(text.data(), text.size(), 0);
  if (isDurable)
  {
    descriptor.Sync();
  }
  descriptor.Close();
  if (::rename(part.c_str(), file.c_str()) != 0)
  {
    FailWithErrno(m_Shown, file.string() + " cannot be replaced", errno);
  }
  if (isDurable)
  {
    SyncFolder(file.parent_path());
  }
}

} // namespace chunkwise::files
