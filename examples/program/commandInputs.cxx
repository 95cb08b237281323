/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandInputs.h"

#include "commandLine.h"

#include <filesystem>

namespace command
{

std::unique_ptr<chunkwise::files::FileSource>
OpenInput(const std::string & file, const std::string & option)
{
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
  {
    throw ArgumentError(option + ": there is no file " + file);
  }
  try
  {
    return chunkwise::files::OpenImage(file);
  }
  catch (const chunkwise::files::FileError & error)
  {
    // What is wrong may be with another file that this one names.
    const std::string why = error.what();
    throw WorkError(option + ": " + (why.find(file) == std::string::npos ? file + ": " : std::string()) + why);
  }
}

chunkwise::files::OutputOptions
GetOutputOptions(const std::vector<std::shared_ptr<chunkwise::files::FileSource>> & sources, bool compress)
{
  chunkwise::files::OutputOptions options;
  options.compress = compress;
  for (const auto & source : sources)
  {
    options.inputFiles.insert(options.inputFiles.end(), source->GetFiles().begin(), source->GetFiles().end());
  }
  return options;
}

} // namespace command
