/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "commandSignals.h"

#include "chunkwiseThreads.h"
#include "fileImage.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

namespace command
{

namespace
{

std::atomic<int> signalSeen{ 0 };
int              keptError = -1;
std::mutex       sudden;
constexpr int    signals[] = { SIGINT, SIGTERM, SIGHUP };

void
EndBy(int number)
{
  std::signal(number, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  raise(number);
}

/** Waits for a signal in a separate thread, where everything may be called. */
void
Wait(sigset_t set)
{
  int number = 0;
  if (sigwait(&set, &number) != 0)
  {
    return;
  }
  signalSeen = number;
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  sudden.lock();
  chunkwise::files::RemoveUnfinished();
  Say("chunkwise: interrupted\n");
  EndBy(number);
  _exit(128 + number);
}

/** Without a thread that waits: the first signal asks the run to end, a second one ends the process. */
void
NoteInHandler(const sigset_t & set)
{
  struct sigaction action = {};
  action.sa_handler = [](int number) { signalSeen = number; };
  action.sa_flags = SA_RESETHAND | SA_RESTART;
  for (const int number : signals)
  {
    if (sigismember(&set, number) == 1)
    {
      sigaction(number, &action, nullptr);
    }
  }
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

} // namespace

void
KeepStandardError()
{
  keptError = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
}

void
Say(const char * text) noexcept
{
  const auto written = write(keptError >= 0 ? keptError : STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);
}

void
CatchSignals()
{
  sigset_t set;
  sigemptyset(&set);
  bool any = false;
  for (const int number : signals)
  {
    struct sigaction action = {};
    sigaction(number, nullptr, &action);
    if (action.sa_handler != SIG_IGN)
    {
      sigaddset(&set, number);
      any = true;
    }
  }
  if (any)
  {
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::thread waiting;
    if (chunkwise::StartThread(waiting, [set] { Wait(set); }))
    {
      waiting.detach();
    }
    else
    {
      NoteInHandler(set);
    }
  }
  // A write beyond a limit, or to a closed pipe, is an error of that write, which is checked.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
}

bool
WasInterrupted()
{
  return signalSeen != 0;
}

void
ThrowIfInterrupted()
{
  if (WasInterrupted())
  {
    throw Interrupted();
  }
}

NoSudden::NoSudden()
{
  sudden.lock();
}

NoSudden::~NoSudden()
{
  sudden.unlock();
}

void
DieBySignal()
{
  const int number = signalSeen;
  if (number != 0)
  {
    EndBy(number);
  }
}

} // namespace command
