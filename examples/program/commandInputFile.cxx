/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandInputFile.h"

#include "commandArguments.h"
#include "commandMemory.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>

namespace command
{

namespace fs = std::filesystem;

namespace
{

std::string
Trim(const std::string & text)
{
  const auto begin = text.find_first_not_of(" \t\r");
  return begin == std::string::npos ? std::string() : text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

} // namespace

void
CheckThatDataIsComplete(const std::string & file, std::uint64_t voxelBytes)
{
  const std::string extension = fs::path(file).extension().string();
  if (extension != ".mha" && extension != ".mhd")
  {
    return;
  }
  std::ifstream stream(file, std::ios::binary);
  std::string   line;
  while (std::getline(stream, line))
  {
    const auto equals = line.find('=');
    if (equals == std::string::npos)
    {
      return;
    }
    const std::string key = Trim(line.substr(0, equals));
    const std::string value = Trim(line.substr(equals + 1));
    if (key == "CompressedData" && !value.empty() && std::tolower(static_cast<unsigned char>(value[0])) == 't')
    {
      return;
    }
    if (key != "ElementDataFile")
    {
      continue;
    }
    // LIST and names with a number of slices are files of their own that fail when they are opened.
    const bool     local = value == "LOCAL" || value == "Local" || value == "local";
    const fs::path data = local ? fs::path(file) : fs::path(file).parent_path() / value;
    if (value.compare(0, 4, "LIST") == 0 || value.find('%') != std::string::npos || !fs::exists(data))
    {
      return;
    }
    const std::uint64_t before = local ? static_cast<std::uint64_t>(stream.tellg()) : 0;
    const std::uint64_t size = fs::file_size(data);
    const std::uint64_t present = size - std::min(before, size);
    if (present < voxelBytes)
    {
      throw WorkError("IN: " + data.string() + " has " + std::to_string(present) + " of " + std::to_string(voxelBytes) +
                      " bytes of voxels");
    }
    return;
  }
}

} // namespace command
