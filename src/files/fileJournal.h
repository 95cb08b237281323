/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileJournal_h
#define fileJournal_h

#include "fileDescriptor.h"

namespace chunkwise::files
{

/** Two files beside an unfinished output: they say which run it is of, and how much of it is whole. Each is replaced at
 * once, so that a process that is killed leaves the one before or the new one. */
class Journal
{
public:
  /** Values by names that users know: equal ones make equal outputs. */
  using Run = std::map<std::string, std::string>;

  /** `shown`: the output in messages. */
  Journal(std::filesystem::path file, std::string shown, const Run & run);

  /** Planes that are whole, 0 if nothing is. Throws FileError if they are of another run, or the journal is damaged. */
  std::int64_t
  Read() const;
  /** Planes that are on the disk. The journal is there, too, when it returns. */
  void
  Write(std::int64_t planes) const;
  /** Planes that the system has, but perhaps not the disk: they count until the system starts again. */
  void
  Note(std::int64_t planes) const;

private:
  void
  Replace(const std::filesystem::path & file, const std::string & line, bool isDurable) const;

  std::filesystem::path m_File;
  std::filesystem::path m_NoteFile;
  std::string           m_Shown;
  Run                   m_Run;
};

} // namespace chunkwise::files

#endif
