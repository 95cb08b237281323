/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandRecord.h"

#include "commandInputs.h"

#include <ctime>
#include <dlfcn.h>
#include <fstream>
#include <sys/stat.h>

namespace command
{

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace
{

/** Coarser than the times of any file system but FAT's. */
constexpr std::int64_t GrainSeconds = 2;

/** What changes when a file does; null if it is not there. */
Json
IdentityOf(const fs::path & file)
{
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0)
  {
    return nullptr;
  }
  return { fs::absolute(file).lexically_normal().string(),
           status.st_ino,
           status.st_size,
           status.st_mtim.tv_sec,
           status.st_mtim.tv_nsec,
           status.st_ctim.tv_sec,
           status.st_ctim.tv_nsec };
}

/** An image's header and voxels, or a file that is none. */
std::vector<fs::path>
FilesOf(const std::string & file, const std::string & option, bool isImage, const std::string & raw = {})
{
  return isImage ? OpenInputWithComponents(file, option, raw)->GetFiles() : std::vector<fs::path>{ file };
}

/** The file of a loaded library, or program, that has this code. */
Json
CodeAt(const void * address)
{
  Dl_info info = {};
  return ::dladdr(address, &info) != 0 && info.dli_fname ? IdentityOf(info.dli_fname) : Json();
}

fs::path
RecordOf(const std::string & output)
{
  const fs::path file(output);
  return file.parent_path() / ".chunkwise-done" / (file.filename().string() + ".json");
}

Json
Describe(const CommandLine & line)
{
  Json       read = Json::array();
  const auto add =
    [&](const std::string & file, const std::string & option, bool isImage, const std::string & raw = {}) {
      for (const fs::path & path : FilesOf(file, option, isImage, raw))
      {
        read.push_back(IdentityOf(path));
      }
    };
  add(line.input, "IN", true, line.raw);
  for (const auto & input : line.furtherInputs)
  {
    add(input.second, "--" + input.first, true);
  }
  Json stages = Json::array();
  for (const Stage & stage : line.stages)
  {
    stages.push_back({ stage.filter->name, stage.texts });
    for (const auto & given : stage.texts)
    {
      const chunkwise::ParameterDescription & parameter = *stage.filter->FindParameter(given.first);
      if (parameter.type == chunkwise::ParameterType::Kernel || parameter.type == chunkwise::ParameterType::Network)
      {
        add(given.second, "--" + parameter.option, parameter.type == chunkwise::ParameterType::Kernel);
      }
    }
  }
  return { { "version", CHUNKWISE_VERSION },
           { "program", CodeAt(reinterpret_cast<const void *>(&RecordOf)) },
           { "engine", CodeAt(reinterpret_cast<const void *>(&chunkwise::GetFilters)) },
           { "stages", stages },
           { "furtherInputs", line.furtherInputs },
           { "raw", line.raw },
           { "region", line.region },
           { "outputType", line.outputType },
           { "compress", line.compress },
           { "read", read } };
}

Json
DescribeOutput(const CommandLine & line)
{
  Json files = Json::array();
  for (const fs::path & path : FilesOf(line.output, "OUT", true))
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
    m_IsRecent = m_IsRecent || file.is_null() || file[5].get<std::int64_t>() + GrainSeconds > now;
  }
}

bool
Record::IsDone() const
{
  try
  {
    std::ifstream stream(RecordOf(m_Line.output));
    Json          kept;
    if (!stream || m_IsRecent)
    {
      return false;
    }
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
  const fs::path  file = RecordOf(m_Line.output);
  std::error_code ignored;
  if (m_IsRecent || Describe(m_Line) != m_Made)
  {
    fs::remove(file, ignored);
    return;
  }
  fs::create_directory(file.parent_path(), ignored);
  const fs::path part = file.string() + ".part";
  std::ofstream  stream(part);
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
