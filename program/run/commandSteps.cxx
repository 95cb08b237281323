/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandSteps.h"

#include "commandSignals.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace command
{

StepFolder::StepFolder(const std::string & output)
{
  const std::filesystem::path parent = std::filesystem::path(output).parent_path();
  std::string                 path = ((parent.empty() ? "." : parent) / ".chunkwise-XXXXXX").string();
  if (!::mkdtemp(path.data()))
  {
    throw WorkError("OUT: a folder for what is between the steps cannot be made beside " + output + ": " +
                    std::strerror(errno));
  }
  m_Path = path;
}

StepFolder::~StepFolder()
{
  std::error_code ignored;
  std::filesystem::remove_all(m_Path, ignored);
}

std::string
StepFolder::GetFile(std::size_t i) const
{
  return (m_Path / (std::to_string(i) + ".mha")).string();
}

std::vector<std::string>
MakeStepOptions(const CommandLine & line, Task step)
{
  std::vector<std::string> words;
  const auto               add = [&](const char * option, std::uint64_t number) {
    if (number > 0)
    {
      words.push_back(std::string("--") + option + "=" + std::to_string(number));
    }
  };
  add("memory", line.memory);
  add("threads", line.threads);
  if (line.untrusted)
  {
    words.emplace_back("--untrusted");
  }
  if (step != Task::Filter && step != Task::Sequence)
  {
    return words;
  }
  add("device-memory", line.deviceMemory);
  if (line.backend != chunkwise::BackendChoice::Auto)
  {
    words.emplace_back(line.backend == chunkwise::BackendChoice::CPU ? "--backend=cpu" : "--backend=cuda");
  }
  std::string devices;
  for (const int device : line.devices)
  {
    devices += (devices.empty() ? "" : ",") + std::to_string(device);
  }
  if (!devices.empty())
  {
    words.push_back("--devices=" + devices);
  }
  if (line.quiet)
  {
    words.emplace_back("--quiet");
  }
  return words;
}

int
RunStep(const std::vector<std::string> & words)
{
  ThrowIfInterrupted();
  std::vector<std::string> texts = { "chunkwise" };
  texts.insert(texts.end(), words.begin(), words.end());
  std::vector<char *> arguments;
  for (std::string & text : texts)
  {
    arguments.push_back(text.data());
  }
  arguments.push_back(nullptr);
  // This process keeps the signals from its threads; the step is to see them.
  posix_spawnattr_t attributes;
  sigset_t          none;
  sigemptyset(&none);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t     step = 0;
  const int error = posix_spawn(&step, "/proc/self/exe", nullptr, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  if (error != 0)
  {
    throw WorkError(std::string("a step cannot be started: ") + std::strerror(error));
  }
  bool isTold = false;
  int  status = 0;
  while (::waitpid(step, &status, WNOHANG) == 0)
  {
    if (WasInterrupted() && !isTold)
    {
      isTold = true;
      ::kill(step, SIGTERM);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ThrowIfInterrupted();
  if (!WIFEXITED(status))
  {
    throw WorkError("a step was ended by signal " + std::to_string(WTERMSIG(status)));
  }
  return WEXITSTATUS(status);
}

void
RunStepOrThrow(const std::vector<std::string> & words)
{
  const int status = RunStep(words);
  if (status != 0)
  {
    throw StepFailed{ status };
  }
}

} // namespace command
