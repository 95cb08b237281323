/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandRecord_h
#define commandRecord_h

#include "commandLine.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace command
{

/** The sources of a result, so that a later run knows whether it would make the same: the filter with its parameters
 * as they were given, the files that were read, the program, and the files of the result themselves. A file is what it
 * was if its node, size and times are: whoever writes to it, or puts another one in its place, changes the time of its
 * last change, which nobody can set.
 *
 * Times have a grain. A file that was changed within a moment before it was read may have been changed once more at the
 * same time, so a result of it gets no record, and is computed again. */
class Record
{
public:
  /** Before the run: looks at all that it will read. Throws what opening a file throws. */
  explicit Record(const CommandLine & line);

  /** Whether the result is there, and is what this run would make. */
  bool
  IsDone() const;
  /** After the run: keeps the record, unless a file was changed while it was read. Throws WorkError. */
  void
  Keep() const;

private:
  CommandLine            m_Line;
  nlohmann::ordered_json m_Made;
  bool                   m_IsRecent{ false };
};

} // namespace command

#endif
