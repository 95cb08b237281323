/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandSteps_h
#define commandSteps_h

#include "commandLine.h"

#include <filesystem>

// Runs that are made of several steps. Each step is a separate process, so that --memory holds for it alone.
namespace command
{

/** A folder beside an output for images between steps. It goes with all that is in it. */
class StepFolder
{
public:
  /** Throws WorkError if it cannot be made. */
  explicit StepFolder(const std::string & output);
  ~StepFolder();
  StepFolder(const StepFolder &) = delete;
  StepFolder &
  operator=(const StepFolder &) = delete;

  /** The file of the image that step number `i` writes. */
  std::string
  GetFile(std::size_t i) const;

private:
  std::filesystem::path m_Path;
};

/** The options of a run that all of its steps share. */
std::vector<std::string>
MakeStepOptions(const CommandLine & line, Task step);

/** Runs this program with the words of a command line. Its output goes to the user. Returns its exit status. Throws
 * Interrupted if a signal came, after the step has ended too, and WorkError if it was killed or cannot be started. */
int
RunStep(const std::vector<std::string> & words);

/** A step failed, and said why. */
struct StepFailed
{
  int status;
};

/** The same. Throws StepFailed. */
void
RunStepOrThrow(const std::vector<std::string> & words);

} // namespace command

#endif
