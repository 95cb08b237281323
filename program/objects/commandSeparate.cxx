/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandSeparate.h"

#include "commandInputs.h"
#include "commandSignals.h"
#include "commandSteps.h"
#include "fileImage.h"
#include "fileText.h"

namespace command
{

namespace
{

/** Throws WorkError, before any step, if IN cannot be read, or the labels or their table cannot be written. */
void
CheckFilesOfSeparate(const CommandLine & line)
{
  const auto                    input = OpenInput(line.input, "IN");
  chunkwise::files::ImageHeader header = input->GetHeader();
  header.kind = chunkwise::PixelType::UInt32;
  chunkwise::files::OutputOptions options;
  options.compress = line.compress;
  options.inputFiles = input->GetFiles();
  if (!line.zarr.empty())
  {
    options.zarr = chunkwise::files::ParseZarrOptions("--zarr", line.zarr);
  }
  try
  {
    chunkwise::files::CheckOutput(line.output, header, options);
  }
  catch (const chunkwise::files::FileError & error)
  {
    throw WorkError(std::string("OUT: ") + error.what());
  }
  if (line.table.empty())
  {
    return;
  }
  try
  {
    if (chunkwise::files::TextOutput::AreOne(line.table, line.output))
    {
      throw ArgumentError("--table: " + line.table + " is OUT");
    }
    chunkwise::files::TextOutput::Check(line.table, input->GetFiles());
  }
  catch (const chunkwise::files::FileError & error)
  {
    throw WorkError(std::string("--table: ") + error.what());
  }
}

} // namespace

void
SeparateObjects(const CommandLine & line)
{
  // A signal ends the step that runs, and images between steps go with the folder.
  CheckFilesOfSeparate(line);
  const NoSudden    now;
  const StepFolder  folder(line.output);
  const std::string mask = folder.GetFile(0);
  const std::string distances = folder.GetFile(1);
  // The threshold, the distances, the watershed, and the table if there is one.
  constexpr std::size_t watershed = 2;
  const std::string     inputs[] = { line.input, mask, distances, line.output };
  const std::string     outputs[] = { mask, distances, line.output, line.input };
  for (std::size_t i = 0; i < line.steps.size(); ++i)
  {
    const ChainStep &        step = line.steps[i];
    std::vector<std::string> words = step.words;
    words[1] = inputs[i];
    words[2] = outputs[i];
    if (i == watershed)
    {
      words[3] = "--mask=" + mask;
      words.emplace_back("--overwrite");
      if (line.compress)
      {
        words.emplace_back("--compress");
      }
      if (!line.zarr.empty())
      {
        words.push_back("--zarr=" + line.zarr);
      }
    }
    const std::vector<std::string> options = MakeStepOptions(line, step.task);
    words.insert(words.end(), options.begin(), options.end());
    RunStepOrThrow(words);
    if (i == watershed)
    {
      std::error_code ignored;
      std::filesystem::remove(mask, ignored);
      std::filesystem::remove(distances, ignored);
    }
  }
}

} // namespace command
