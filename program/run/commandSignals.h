/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandSignals_h
#define commandSignals_h

#include <stdexcept>

namespace command
{

/** A signal asked the run to end. */
class Interrupted : public std::runtime_error
{
public:
  Interrupted()
    : std::runtime_error("interrupted")
  {}
};

/** Lets Say reach the user later, too: while a library is silenced standard error leads nowhere. */
void
KeepStandardError();

/** Prints where the process ends at once. */
void
Say(const char * text) noexcept;

/** From now on SIGINT, SIGTERM and SIGHUP ask the run to end; signals that the caller has the program ignore, as nohup
 * does, stay ignored. A run that has not ended after half a second, as one that is within a library, is ended where it
 * is. Before other threads begin: they inherit which signals they see. */
void
CatchSignals();

bool
WasInterrupted();

/** Throws Interrupted if WasInterrupted. */
void
ThrowIfInterrupted();

/** While an object lives a signal does not end the program where it is: files get their final names. */
class NoSudden
{
public:
  NoSudden();
  ~NoSudden();
  NoSudden(const NoSudden &) = delete;
  NoSudden &
  operator=(const NoSudden &) = delete;
};

/** Ends the program by the signal that interrupted it, so that a shell's loop ends too. Returns if there was none. */
void
DieBySignal();

} // namespace command

#endif
