/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandRecord.h"

#include "commandFiles.h"
#include "commandInputs.h"
#include "fileIdentity.h"

#include <ctime>
#include <fstream>

namespace command
{

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace
{

/** Coarser than the times of any file system but FAT's. */
constexpr std::int64_t GrainSeconds = 2;

/** With the time of its last change; null if it is not there. */
Json
IdentityOf(const fs::path & file)
{
  const auto identity = chunkwise::files::IdentifyFile(file);
  return identity ? Json{ identity->text, identity->changedSeconds } : Json();
}

Json
Describe(const CommandLine & line)
{
  Json read = Json::array();
  for (const auto & list : { ListFilesOfInput(line), ListFurtherFiles(line) })
  {
    for (const FileRead & file : list)
    {
      read.push_back(IdentityOf(file.path));
    }
  }
  Json stages = Json::array();
  for (const Stage & stage : line.stages)
  {
    stages.push_back({ stage.filter->name, stage.texts });
  }
  return { { "version", CHUNKWISE_VERSION },
           { "program", chunkwise::files::IdentifyCode(reinterpret_cast<const void *>(&GetRecordFile)) },
           { "engine", chunkwise::files::IdentifyCode(reinterpret_cast<const void *>(&chunkwise::GetFilters)) },
           { "stages", stages },
           { "additionalInputs", line.additionalInputs },
           { "raw", line.raw },
           { "region", line.region },
           { "outputType", line.outputType },
           { "compress", line.compress },
           { "zarr", line.zarr },
           { "read", read } };
}

Json
DescribeOutput(const CommandLine & line)
{
  Json       files = Json::array();
  const auto source = OpenInputWithComponents(line.output, "OUT");
  for (const fs::path & path : source->GetFiles())
  {
    files.push_back(IdentityOf(path));
  }
  return files;
}

} // namespace

Record::Record(const CommandLine & line)
  : m_Line(line)
  , m_Made(Describe(line))
{
  const std::int64_t now = std::time(nullptr);
  for (const Json & file : m_Made["read"])
  {
    m_IsRecent = m_IsRecent || file.is_null() || file[1].get<std::int64_t>() + GrainSeconds > now;
  }
}

bool
Record::IsDone() const
{
  try
  {
    const fs::path file = GetRecordFile(m_Line.output);
    // A pipe would be waited for.
    if (m_IsRecent || !fs::is_regular_file(file))
    {
      return false;
    }
    std::ifstream stream(file);
    Json          kept;
    stream >> kept;
    return kept.at("made") == m_Made && kept.at("written") == DescribeOutput(m_Line);
  }
  catch (const std::exception &)
  {
    // A record, or a result, that cannot be read is none.
    return false;
  }
}

void
Record::Keep() const
{
  const fs::path  file = GetRecordFile(m_Line.output);
  std::error_code ignored;
  if (m_IsRecent || Describe(m_Line) != m_Made)
  {
    fs::remove(file, ignored);
    return;
  }
  fs::create_directory(file.parent_path(), ignored);
  const fs::path part = file.string() + ".part";
  fs::remove(part, ignored);
  std::ofstream stream(part);
  stream << Json{ { "made", m_Made }, { "written", DescribeOutput(m_Line) } }.dump(
              1, ' ', false, Json::error_handler_t::replace)
         << "\n";
  stream.close();
  std::error_code error;
  if (stream)
  {
    fs::rename(part, file, error);
  }
  if (!stream || error)
  {
    fs::remove(part, ignored);
    throw WorkError(file.string() + " cannot be written: a second start will compute " + m_Line.output + " again");
  }
}

} // namespace command
