/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandFiles.h"

#include "commandInputs.h"

#include "chunkwiseError.h"
#include "chunkwiseNetworkModel.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace command
{

namespace fs = std::filesystem;

namespace
{

/** One for all names and links of a file. */
using Identity = std::pair<dev_t, ino_t>;

std::optional<Identity>
FindIdentity(const fs::path & file)
{
  struct stat status = {};
  return ::stat(file.c_str(), &status) == 0 ? std::optional<Identity>({ status.st_dev, status.st_ino }) : std::nullopt;
}

/** Also of a file that is not there yet. */
std::string
CanonicalName(const fs::path & file)
{
  std::error_code error;
  const fs::path  canonical = fs::weakly_canonical(fs::absolute(file), error);
  return error ? file.string() : canonical.string();
}

struct FileWritten
{
  fs::path    path;
  std::string option; ///< that names it
  std::string input;  ///< the image of a batch whose result it is; empty: there is one image
  bool        isResult;
};

/** A link that leads to itself has no target; the run says so. */
std::vector<fs::path>
OutputFilesOf(const CommandLine & line)
{
  try
  {
    return chunkwise::files::GetOutputFiles(line.output, line.compress);
  }
  catch (const chunkwise::files::FileError &)
  {
    return { line.output };
  }
}

std::vector<FileWritten>
ListFilesWritten(const std::vector<CommandLine> & lines)
{
  std::vector<FileWritten> files;
  for (const CommandLine & line : lines)
  {
    const bool        isBatch = !line.inputs.empty();
    const std::string option = isBatch ? "--out" : "OUT";
    for (const fs::path & path : OutputFilesOf(line))
    {
      files.push_back({ path, option, isBatch ? line.input : std::string(), true });
    }
    if (isBatch)
    {
      files.push_back({ GetRecordFile(line.output), option, line.input, false });
    }
    if (!line.returnParameterFile.empty())
    {
      files.push_back({ line.returnParameterFile, "--returnparameterfile", std::string(), false });
    }
  }
  return files;
}

/** "--out: the result of a.mha, b.mha, would replace", or "OUT: b.mha would replace". */
std::string
WouldReplace(const FileWritten & file)
{
  return file.option + ": " + (file.input.empty() ? std::string() : "the result of " + file.input + ", ") +
         file.path.string() + (file.input.empty() ? "" : ",") + " would replace ";
}

void
CheckAgainstEachOther(const std::vector<FileWritten> & files)
{
  std::map<std::string, const FileWritten *> names;
  for (const FileWritten & file : files)
  {
    const auto other = names.emplace(CanonicalName(file.path), &file);
    if (other.second)
    {
      continue;
    }
    const FileWritten & first = *other.first->second;
    if (!file.input.empty() && !first.input.empty())
    {
      throw ArgumentError("--out: the results of " + first.input + " and " + file.input + " have one name, " +
                          file.path.string());
    }
    throw ArgumentError(WouldReplace(file) + "what " + first.option + " writes");
  }
}

/** Those of an image that cannot be opened are the one that was named: the run says what is wrong with it. */
template <typename TList>
std::vector<FileRead>
ListIfReadable(const CommandLine & line, TList && list)
{
  try
  {
    return list(line);
  }
  catch (const WorkError &)
  {
    return {};
  }
  catch (const ArgumentError &)
  {
    return {};
  }
}

void
CheckReturnParameterFile(const std::string & file)
{
  const std::string where = "--returnparameterfile: " + file + " cannot be written: ";
  std::error_code   error;
  const auto        status = fs::status(file, error);
  if (fs::is_directory(status))
  {
    throw ArgumentError(where + "it is a folder");
  }
  if (fs::exists(status))
  {
    if (::faccessat(AT_FDCWD, file.c_str(), W_OK, AT_EACCESS) != 0)
    {
      throw ArgumentError(where + std::strerror(errno));
    }
    return;
  }
  const fs::path parent = fs::path(CanonicalName(file)).parent_path();
  if (!fs::is_directory(parent.empty() ? "." : parent, error))
  {
    throw ArgumentError(where + "there is no folder " + parent.string());
  }
  if (::faccessat(AT_FDCWD, parent.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
  {
    throw ArgumentError(where + std::strerror(errno));
  }
}

bool
IsRegular(const fs::path & file)
{
  std::error_code error;
  return fs::is_regular_file(file, error);
}

/** The files, and the folders of stores, that are there already and would be replaced by what is written. */
class FilesThere
{
public:
  explicit FilesThere(const std::vector<FileWritten> & written)
  {
    for (const FileWritten & file : written)
    {
      const auto identity = FindIdentity(file.path);
      if (identity && IsRegular(file.path))
      {
        m_Files.emplace(*identity, &file);
      }
      else if (identity)
      {
        m_Folders.emplace(CanonicalName(file.path), &file);
      }
    }
  }
  bool
  IsEmpty() const
  {
    return m_Files.empty() && m_Folders.empty();
  }
  /** Throws ArgumentError if a file would be replaced, unless only a result does and `mayBeResult`. */
  void
  Check(const FileRead & file, bool mayBeResult) const
  {
    const FileWritten * const found = this->Find(file.path);
    if (found && !(mayBeResult && found->isResult))
    {
      throw ArgumentError(WouldReplace(*found) + file.path.string() + ", which this run reads as " + file.name);
    }
  }

private:
  /** The file or store that would replace a file, under any of its names, or a folder that it is in; or nullptr. */
  const FileWritten *
  Find(const fs::path & file) const
  {
    const auto identity = FindIdentity(file);
    const auto found = identity ? m_Files.find(*identity) : m_Files.end();
    if (found != m_Files.end() || !identity || m_Folders.empty())
    {
      return found == m_Files.end() ? nullptr : found->second;
    }
    for (fs::path path = CanonicalName(file); path.has_relative_path(); path = path.parent_path())
    {
      if (const auto folder = m_Folders.find(path.string()); folder != m_Folders.end())
      {
        return folder->second;
      }
    }
    return nullptr;
  }

  std::map<Identity, const FileWritten *>    m_Files;
  std::map<std::string, const FileWritten *> m_Folders;
};

void
AddImage(const std::string & file, const std::string & option, const std::string & raw, std::vector<FileRead> & files)
{
  const auto source = OpenInputWithComponents(file, option, raw);
  for (const fs::path & path : source->GetFiles())
  {
    files.push_back({ path, option });
  }
}

} // namespace

std::vector<FileRead>
ListFilesOfInput(const CommandLine & line)
{
  std::vector<FileRead> files;
  AddImage(line.input, "IN", line.raw, files);
  return files;
}

std::vector<FileRead>
ListFurtherFiles(const CommandLine & line)
{
  std::vector<FileRead> files;
  for (const Stage & stage : line.stages)
  {
    for (const chunkwise::InputDescription & input : stage.filter->additionalInputs)
    {
      const auto given = line.additionalInputs.find(input.name);
      if (given != line.additionalInputs.end())
      {
        AddImage(given->second, "--" + input.option, {}, files);
      }
    }
    for (const auto & given : stage.texts)
    {
      const chunkwise::ParameterDescription & parameter = *stage.filter->FindParameter(given.first);
      if (parameter.type == chunkwise::ParameterType::Kernel)
      {
        AddImage(given.second, "--" + parameter.option, {}, files);
      }
      else if (std::error_code none; parameter.file != chunkwise::ParameterFile::None && fs::exists(given.second, none))
      {
        // Numbers are no file.
        files.push_back({ given.second, "--" + parameter.option });
      }
#ifdef CHUNKWISE_HAS_NETWORKS
      else if (parameter.type == chunkwise::ParameterType::Network)
      {
        for (const std::string & file : chunkwise::ListNetworkFiles(given.second))
        {
          files.push_back({ file, "--" + parameter.option });
        }
      }
#endif
    }
  }
  if (!line.intensity.empty())
  {
    AddImage(line.intensity, "INTENSITY", {}, files);
  }
  if (!line.replace.empty())
  {
    files.push_back({ line.replace, "--replace" });
  }
  return files;
}

fs::path
GetRecordFile(const std::string & output)
{
  const fs::path file(output);
  return file.parent_path() / ".chunkwise-done" / (file.filename().string() + ".json");
}

void
CheckFilesOfRuns(const std::vector<CommandLine> & lines)
{
  const std::vector<FileWritten> written = ListFilesWritten(lines);
  CheckAgainstEachOther(written);
  for (const CommandLine & line : lines)
  {
    if (!line.returnParameterFile.empty())
    {
      CheckReturnParameterFile(line.returnParameterFile);
    }
  }
  const FilesThere there(written);
  if (there.IsEmpty())
  {
    return;
  }
  for (const CommandLine & line : lines)
  {
    const bool isBatch = !line.inputs.empty();
    there.Check({ line.input, "IN" }, !isBatch);
    for (const FileRead & file : ListIfReadable(line, ListFilesOfInput))
    {
      there.Check(file, !isBatch);
    }
  }
  // The same for all.
  for (const FileRead & file : ListIfReadable(lines.front(), ListFurtherFiles))
  {
    there.Check(file, false);
  }
}

void
CheckFilesOfChain(const CommandLine & line)
{
  std::vector<FileWritten> written;
  const bool               isTable = line.steps.back().task == Task::Measure;
  for (const fs::path & path : isTable ? std::vector<fs::path>{ line.output } : OutputFilesOf(line))
  {
    written.push_back({ path, "OUT", std::string(), true });
  }
  for (const ChainStep & step : line.steps)
  {
    const CommandLine & of = *step.line;
    for (const auto & [file, option] : { std::make_pair(of.returnParameterFile, "--returnparameterfile"),
                                         std::make_pair(of.contacts, "--contacts"),
                                         std::make_pair(of.table, "--table") })
    {
      if (!file.empty())
      {
        written.push_back({ file, option, std::string(), false });
      }
    }
  }
  CheckAgainstEachOther(written);
  const FilesThere there(written);
  std::error_code  none;
  const bool       mayBeResult =
    !isTable && !fs::is_directory(line.output, none) && fs::equivalent(line.input, line.output, none);
  there.Check({ line.input, "IN" }, mayBeResult);
  for (const FileRead & file : ListIfReadable(line, ListFilesOfInput))
  {
    there.Check(file, mayBeResult);
  }
  for (const ChainStep & step : line.steps)
  {
    const std::string     where = "--step: \"" + step.text + "\": ";
    std::vector<FileRead> files;
    try
    {
      files = ListFurtherFiles(*step.line);
    }
    catch (const ArgumentError & error)
    {
      throw ArgumentError(where + error.what());
    }
    catch (const WorkError & error)
    {
      throw WorkError(where + error.what());
    }
    for (const FileRead & file : files)
    {
      there.Check({ file.path, file.name + " of a step" }, false);
    }
  }
}

} // namespace command
