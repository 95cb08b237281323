/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileText_h
#define fileText_h

#include "fileImage.h"

#include <memory>
#include <string>
#include <vector>

namespace chunkwise::files
{

/** A file of text that is there under its name when it is complete, or not at all: it is written in a separate folder
 * beside its destination. */
class TextOutput
{
public:
  /** Throws FileError if the file could not be put there, or would replace one of `inputFiles`. */
  static void
  Check(const std::string & file, const std::vector<std::filesystem::path> & inputFiles);

  /** Whether two names stand for one file, there or not. Throws FileError of a link that leads to itself. */
  static bool
  AreOne(const std::string & a, const std::string & b);

  /** Checks, and opens the file. */
  TextOutput(const std::string & file, const std::vector<std::filesystem::path> & inputFiles);
  ~TextOutput();
  TextOutput(const TextOutput &) = delete;
  TextOutput &
  operator=(const TextOutput &) = delete;

  /** Throws FileError if the disk is full. */
  void
  Write(const std::string & text);
  /** All is on the disk, under no name yet: what comes after cannot fail for want of space. */
  void
  Complete();
  /** Completes the file, unless that is done, and gives it its name. */
  void
  Finish();

private:
  void
  Flush();

  struct State;
  std::unique_ptr<State> m_State;
};

} // namespace chunkwise::files

#endif
