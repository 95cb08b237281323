/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandChain.h"

#include "commandFiles.h"
#include "commandSignals.h"
#include "commandSteps.h"

namespace command
{

void
RunChain(const CommandLine & line)
{
  CheckFilesOfChain(line);
  // A signal ends the step that runs, and what is between steps goes with the folder.
  const NoSudden   now;
  const StepFolder folder(line.output);
  std::string      input = line.input;
  for (std::size_t i = 0; i < line.steps.size(); ++i)
  {
    const ChainStep &        step = line.steps[i];
    const bool               isLast = i + 1 == line.steps.size();
    const std::string        output = isLast ? line.output : folder.GetFile(i);
    std::vector<std::string> words = step.words;
    words[step.input] = input;
    words[step.output] = output;
    const std::vector<std::string> options = MakeStepOptions(line, step.task);
    words.insert(words.end(), options.begin(), options.end());
    if (isLast && step.task != Task::Measure)
    {
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
    RunStepOrThrow(words);
    if (i > 0)
    {
      std::error_code ignored;
      std::filesystem::remove(input, ignored);
    }
    input = output;
  }
}

} // namespace command
