/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandInputs.h"

#include "commandLine.h"

#include "chunkwisePixelValue.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

namespace command
{

namespace
{

/** The words between separators. */
std::vector<std::string>
Split(const std::string & text, char separator)
{
  std::vector<std::string> parts;
  std::istringstream       stream(text + separator);
  for (std::string part; std::getline(stream, part, separator);)
  {
    parts.push_back(part);
  }
  return parts;
}

double
ParseNumber(const std::string & text, bool isWhole, double least)
{
  double number = 0;
  try
  {
    number = chunkwise::PixelValue::FromText(text).As<double>();
  }
  catch (const chunkwise::ParameterError &)
  {
    number = -1;
  }
  // Whole numbers of a file fit a double's 53 bits.
  if (!(number >= least && number < 9e15) || (isWhole && number != std::floor(number)))
  {
    throw ArgumentError("--raw: '" + text + "' is not a " + (isWhole ? "whole " : "") + "number of " +
                        (least > 0 ? (isWhole ? "1 or more" : "more than 0") : "0 or more"));
  }
  return number;
}

} // namespace

chunkwise::files::RawLayout
ParseRaw(const std::string & text)
{
  chunkwise::files::RawLayout layout;
  const auto                  parts = Split(text, ',');
  try
  {
    layout.header.kind = chunkwise::PixelTypeFromName(parts.front());
  }
  catch (const chunkwise::ParameterError & error)
  {
    throw ArgumentError(std::string("--raw: ") + error.what());
  }
  std::size_t i = 1;
  int         axes = 0;
  double      voxels = 1;
  for (; i < parts.size() && parts[i].find_first_not_of("0123456789") == std::string::npos; ++i, ++axes)
  {
    if (axes == chunkwise::MaxDimension)
    {
      throw ArgumentError("--raw: " + text + " has more than " + std::to_string(chunkwise::MaxDimension) + " sizes");
    }
    layout.header.extent[axes] = static_cast<std::int64_t>(ParseNumber(parts[i], true, 1));
    voxels *= static_cast<double>(layout.header.extent[axes]);
  }
  if (axes < 2 || voxels > 9e15)
  {
    throw ArgumentError("--raw: " + text + (axes < 2 ? " has not two sizes" : " has more voxels than a file") +
                        "; as uint16,512,512,300");
  }
  layout.header.dimension = axes;
  for (; i < parts.size(); ++i)
  {
    const std::string name = parts[i].substr(0, parts[i].find('='));
    const std::string value = name.size() < parts[i].size() ? parts[i].substr(name.size() + 1) : std::string();
    if (name == "offset")
    {
      layout.offset = static_cast<std::uint64_t>(ParseNumber(value, true, 0));
    }
    else if (parts[i] == "big-endian")
    {
      layout.bigEndian = true;
    }
    else if (name == "spacing")
    {
      const auto numbers = Split(value, ':');
      if (static_cast<int>(numbers.size()) != axes)
      {
        throw ArgumentError("--raw: spacing has " + std::to_string(numbers.size()) + " numbers, not " +
                            std::to_string(axes));
      }
      for (int a = 0; a < axes; ++a)
      {
        layout.header.spacing[a] =
          ParseNumber(numbers[static_cast<std::size_t>(a)], false, std::numeric_limits<double>::min());
      }
    }
    else
    {
      throw ArgumentError("--raw: '" + parts[i] + "' is none of offset=BYTES, big-endian, spacing=X:Y:Z");
    }
  }
  return layout;
}

std::unique_ptr<chunkwise::files::FileSource>
OpenInput(const std::string & file, const std::string & option, const std::string & raw)
{
  auto               source = OpenInputWithComponents(file, option, raw);
  const std::int64_t components = source->GetHeader().components;
  if (components != 1)
  {
    throw WorkError(option + ": " + file + " has " + std::to_string(components) +
                    " components a voxel, only images of one can be used here");
  }
  return source;
}

std::unique_ptr<chunkwise::files::FileSource>
OpenInputWithComponents(const std::string & file, const std::string & option, const std::string & raw)
{
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
  {
    throw ArgumentError(option + ": there is no file " + file);
  }
  try
  {
    return raw.empty() ? chunkwise::files::OpenImage(file) : chunkwise::files::OpenRawImage(file, ParseRaw(raw));
  }
  catch (const chunkwise::files::FileError & error)
  {
    // The error may be in another file that this one names.
    const std::string why = error.what();
    throw WorkError(option + ": " + (why.find(file) == std::string::npos ? file + ": " : std::string()) + why);
  }
}

} // namespace command
