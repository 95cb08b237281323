/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandRecord.h"

#include "commandFiles.h"
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

/** Values that change when a file of a store does. The order in which a file system lists them does not count. */
Json
IdentityOfFolder(const fs::path & folder)
{
  std::uint64_t   sum = 0;
  std::uint64_t   bytes = 0;
  std::uint64_t   count = 0;
  struct timespec newest = {};
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
  {
    struct stat status = {};
    if (::lstat(entry->path().c_str(), &status) != 0)
    {
      continue;
    }
    std::uint64_t hash = std::hash<std::string>()(entry->path().lexically_relative(folder).string());
    for (const auto value : { static_cast<std::uint64_t>(status.st_ino),
                              static_cast<std::uint64_t>(status.st_size),
                              static_cast<std::uint64_t>(status.st_mtim.tv_sec),
                              static_cast<std::uint64_t>(status.st_mtim.tv_nsec),
                              static_cast<std::uint64_t>(status.st_ctim.tv_sec),
                              static_cast<std::uint64_t>(status.st_ctim.tv_nsec) })
    {
      hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
      hash ^= hash >> 29;
    }
    sum += hash;
    bytes += S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
    ++count;
    if (std::make_pair(status.st_ctim.tv_sec, status.st_ctim.tv_nsec) > std::make_pair(newest.tv_sec, newest.tv_nsec))
    {
      newest = status.st_ctim;
    }
  }
  return { fs::absolute(folder).lexically_normal().string(), sum, bytes, count, 0, newest.tv_sec, newest.tv_nsec };
}

/** Values that change when a file does; null if it is not there. */
Json
IdentityOf(const fs::path & file)
{
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0)
  {
    return nullptr;
  }
  if (S_ISDIR(status.st_mode))
  {
    return IdentityOfFolder(file);
  }
  return { fs::absolute(file).lexically_normal().string(),
           status.st_ino,
           status.st_size,
           status.st_mtim.tv_sec,
           status.st_mtim.tv_nsec,
           status.st_ctim.tv_sec,
           status.st_ctim.tv_nsec };
}

/** The file of a loaded library, or program, that has this code. */
Json
CodeAt(const void * address)
{
  Dl_info info = {};
  return ::dladdr(address, &info) != 0 && info.dli_fname ? IdentityOf(info.dli_fname) : Json();
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
           { "program", CodeAt(reinterpret_cast<const void *>(&GetRecordFile)) },
           { "engine", CodeAt(reinterpret_cast<const void *>(&chunkwise::GetFilters)) },
           { "stages", stages },
           { "furtherInputs", line.furtherInputs },
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
    m_IsRecent = m_IsRecent || file.is_null() || file[5].get<std::int64_t>() + GrainSeconds > now;
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
