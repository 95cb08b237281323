/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseFilters.h"
#include "chunkwisePixelValue.h"
#include "commandInputs.h"
#include "commandLine.h"
#include "commandRecord.h"
#include "commandRegion.h"
#include "fileJournal.h"
#include "fileZarrCodec.h"
#include "fuzzTarget.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace chunkwise::fuzz
{

namespace
{

/** A command line of these words; arguments that are wrong are refused. */
bool
Parse(std::vector<std::string> words)
{
  words.insert(words.begin(), "chunkwise");
  std::vector<char *> arguments;
  for (std::string & word : words)
  {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  try
  {
    command::ParseCommandLine(static_cast<int>(words.size()), arguments.data());
    return true;
  }
  catch (const command::ArgumentError & error)
  {
    Check(*error.what() != '\0', "a refusal without a reason");
  }
  catch (const command::TextRequested & request)
  {
    Check(!request.text.empty(), "an empty text");
    return true;
  }
  catch (const command::WorkError &)
  {}
  catch (const Error &)
  {}
  return false;
}

/** `parse` may refuse its text, with a reason. */
template <typename T>
bool
AllowRefusal(T && parse)
{
  try
  {
    parse();
    return true;
  }
  catch (const command::ArgumentError & error)
  {
    Check(*error.what() != '\0', "a refusal without a reason");
  }
  catch (const Error & error)
  {
    Check(*error.what() != '\0', "a refusal without a reason");
  }
  return false;
}

} // namespace

bool
RunCommandLine(const Target &, const std::string & bytes)
{
  std::vector<std::string> words;
  std::istringstream       stream(bytes);
  for (std::string word; std::getline(stream, word) && words.size() < 32;)
  {
    // These two write files.
    if (word == "slicer-modules" || word == "fiji-scripts")
    {
      return false;
    }
    // Words end where C's strings do.
    words.emplace_back(word.c_str());
  }
  return Parse(words);
}

bool
RunValue(const Target &, const std::string & bytes)
{
  bool isAccepted = AllowRefusal([&] {
    const std::string text = PixelValue::FromText(bytes).ToText();
    // The text of a negative zero is that of an integer.
    Check(text == "-0" || PixelValue::FromText(text).ToText() == text,
          "'" + text + "' is not the text of its own value");
  });
  isAccepted |= AllowRefusal([&] { command::ParseRaw(bytes); });
  isAccepted |= AllowRefusal([&] {
    const auto        numbers = command::ParseRegion(bytes);
    const Coordinates extent{ { 5, 1, 7, 1, 1 } };
    const Box         whole = Box::FromExtent(extent);
    const Box         region = command::MakeRegion(numbers, whole, 3);
    for (int a = 0; a < MaxDimension; ++a)
    {
      Check(region.lower[a] >= whole.lower[a] && region.upper[a] <= whole.upper[a] && region.Extent(a) >= 1,
            "a region beyond the image");
    }
  });
  for (const FilterDescription & filter : GetFilters())
  {
    for (const ParameterDescription & parameter : filter.parameters)
    {
      if (parameter.type != ParameterType::Kernel && parameter.type != ParameterType::Network)
      {
        isAccepted |= AllowRefusal([&] { ParseParameter(parameter, bytes); });
      }
    }
  }
  return isAccepted;
}

bool
RunRecord(const Target &, const std::string & bytes)
{
  static const command::CommandLine line = [] {
    command::CommandLine made;
    made.input = GetFolder() + "/in.mha";
    made.output = GetFolder() + "/out.mha";
    made.stages.push_back({ &GetFilter("identity"), {} });
    const std::string image =
      "ObjectType = Image\nNDims = 2\nDimSize = 2 2\nElementType = MET_UCHAR\nElementDataFile = LOCAL\nabcd";
    WriteFile(made.input, image);
    WriteFile(made.output, image);
    std::filesystem::create_directory(GetFolder() + "/.chunkwise-done");
    return made;
  }();
  WriteFile(GetFolder() + "/.chunkwise-done/out.mha.json", bytes);
  // No record of another process names the files of this one.
  Check(!command::Record(line).IsDone(), "a foreign record is taken for that of a result");
  return false;
}

bool
RunJournal(const Target &, const std::string & bytes)
{
  constexpr std::int64_t           unit = 4;
  constexpr std::int64_t           all = 10;
  static const std::string         file = GetFolder() + "/.journal";
  static const files::Journal::Run run{ { "IN", "in.mha 1 2 3" }, { "the region", "[0, 0] [4, 10]" } };
  static const files::Journal      journal(file, "out.ome.zarr", run);
  const std::size_t                end = std::min(bytes.find('\n'), bytes.size());
  // Their checksums are right, or no text would be read.
  const auto write = [](const std::string & name, const std::string & line) {
    WriteFile(name, line + "\n" + std::to_string(files::GetCrc32c(line.data(), line.size())) + "\n");
  };
  write(file, bytes.substr(0, end));
  const std::string note = bytes.substr(std::min(end + 1, bytes.size()));
  write(file + ".note", note.substr(0, note.find('\n')));
  return AllowRefusal([&] {
    const files::WrittenPart part = journal.Read(unit, all);
    Check(part.planes >= 0 && part.planes <= all && (part.planes % unit == 0 || part.planes == all),
          "a journal of " + std::to_string(part.planes) + " planes is accepted");
    // The run that wrote a part reads it again.
    journal.Write(part);
    Check(journal.Read(unit, all).planes >= part.planes, "a journal that was written is another one");
  });
}

} // namespace chunkwise::fuzz
