/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseFilters.h"
#include "chunkwisePixelValue.h"
#include "commandInputs.h"
#include "commandLine.h"
#include "commandRecord.h"
#include "commandRegion.h"
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

} // namespace chunkwise::fuzz
