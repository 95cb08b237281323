/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandBatch.h"

#include "chunkwiseError.h"
#include "commandFiles.h"
#include "commandJson.h"
#include "commandRecord.h"
#include "commandRun.h"
#include "commandSignals.h"
#include "fileImage.h"

#ifdef CHUNKWISE_HAS_ITK
#  include "itkMacro.h"
#endif

#include <fstream>
#include <glob.h>
#include <iostream>
#include <set>

namespace command
{

namespace fs = std::filesystem;

namespace
{

/** The files that a word stands for: itself if there is one of this name, else what matches it. */
std::vector<std::string>
FilesOfWord(const std::string & word)
{
  std::error_code ignored;
  if (fs::exists(word, ignored))
  {
    return { word };
  }
  glob_t                   found = {};
  std::vector<std::string> files;
  if (::glob(word.c_str(), 0, nullptr, &found) == 0)
  {
    files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  ::globfree(&found);
  if (files.empty())
  {
    throw ArgumentError("IN: there is no file " + word);
  }
  return files;
}

/** The pattern with what a file's name gives in place of the words in braces. */
std::string
ResultOf(const std::string & pattern, const fs::path & input)
{
  std::string result;
  for (std::size_t i = 0; i < pattern.size();)
  {
    const std::size_t end = pattern[i] == '{' ? pattern.find('}', i) : std::string::npos;
    if (end == std::string::npos)
    {
      result += pattern[i++];
      continue;
    }
    const std::string word = pattern.substr(i + 1, end - i - 1);
    if (word == "stem")
    {
      result += chunkwise::files::WithoutEnding(input.filename().string());
    }
    else if (word == "name")
    {
      result += input.filename().string();
    }
    else if (word == "parent")
    {
      result += fs::absolute(input).lexically_normal().parent_path().filename().string();
    }
    else
    {
      throw ArgumentError("--out: '{" + word + "}' is none of {stem}, {name} and {parent}");
    }
    i = end + 1;
  }
  return result;
}

/** A run for each image. Throws ArgumentError where two would write one file, or one a file that another reads. */
std::vector<CommandLine>
MakeLines(const CommandLine & line)
{
  std::vector<CommandLine> lines;
  std::set<fs::path>       inputs;
  std::error_code          ignored;
  for (const std::string & word : line.inputs)
  {
    for (const std::string & file : FilesOfWord(word))
    {
      if (inputs.insert(fs::weakly_canonical(file, ignored)).second)
      {
        lines.push_back(line);
        lines.back().input = file;
        lines.back().output = ResultOf(line.outputPattern, file);
        lines.back().outputPattern.clear();
      }
    }
  }
  CheckFilesOfRuns(lines);
  return lines;
}

/** From here on the process has had no more memory than it has now: a run takes what earlier ones needed for its own.
 */
void
ForgetPeakMemory()
{
  std::ofstream("/proc/self/clear_refs") << "5";
}

/** The error, as the program would word it for one image; an error of all images goes on as it is. */
std::string
MessageOfCurrentException(const CommandLine & line)
{
  try
  {
    throw;
  }
  catch (const chunkwise::Aborted &)
  {
    throw;
  }
  catch (const Interrupted &)
  {
    throw;
  }
  catch (const chunkwise::Error & error)
  {
    return WithOptionNames(error.what(), line);
  }
  catch (const std::bad_alloc &)
  {
    return TextOfNoMemory(line);
  }
#ifdef CHUNKWISE_HAS_ITK
  catch (const itk::ExceptionObject & error)
  {
    return error.GetDescription();
  }
#endif
  catch (const std::exception & error)
  {
    return error.what();
  }
}

/** The result is there: without its record it is only computed again. */
void
KeepRecord(const Record & record, const CommandLine & line)
{
  try
  {
    record.Keep();
  }
  catch (const WorkError & error)
  {
    if (!line.quiet)
    {
      std::cerr << "chunkwise: warning: " << JoinLines(error.what()) << std::endl;
    }
  }
}

} // namespace

void
RunBatch(const CommandLine & line)
{
  const std::vector<CommandLine> lines = MakeLines(line);
  Json                           files = Json::array();
  std::size_t                    failed = 0;
  std::size_t                    skipped = 0;
  for (const CommandLine & one : lines)
  {
    Json entry = { { "input", one.input }, { "output", one.output } };
    try
    {
      ThrowIfInterrupted();
      if (fs::path(one.output).has_parent_path())
      {
        fs::create_directories(fs::path(one.output).parent_path());
      }
      ForgetPeakMemory();
      const Record record(one);
      if (!line.redo && record.IsDone())
      {
        ++skipped;
        entry["status"] = "done before";
      }
      else
      {
        const RunReport report = RunFile(one);
        entry["status"] = "done";
        entry["report"] = ToJson(report);
        KeepRecord(record, one);
      }
    }
    catch (...)
    {
      const std::string message = JoinLines(MessageOfCurrentException(one));
      ++failed;
      entry["status"] = "failed";
      entry["error"] = message;
      std::cerr << "chunkwise: " << JoinLines(one.input) << ": " << message << std::endl;
    }
    files.push_back(std::move(entry));
  }
  if (line.json)
  {
    std::cout << ToText({ { "files", files } });
  }
  if (line.verbose)
  {
    std::cerr << "images: " << lines.size() << ", " << skipped << " done before, " << failed << " failed" << std::endl;
  }
  if (failed > 0)
  {
    throw WorkError(std::to_string(failed) + " of " + std::to_string(lines.size()) + " images failed");
  }
}

} // namespace command
