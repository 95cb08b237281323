/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandJobNames_h
#define commandJobNames_h

#include "commandLine.h"
#include "commandMemory.h"
#include "fileJob.h"

namespace command
{

/** The options of this program, for the messages of a job. */
inline chunkwise::files::JobNames
MakeJobNames(const CommandLine & line)
{
  chunkwise::files::JobNames names;
  names.filter = line.name;
  names.additionalInput = [](const chunkwise::InputDescription & input) { return "--" + input.option; };
  names.formatBytes = [](std::uint64_t bytes) { return FormatBytes(static_cast<double>(bytes)); };
  names.formatNeed = FormatNeed;
  names.adviceOnRange = "; --output-type float32 or float64 keeps them";
  return names;
}

} // namespace command

#endif
