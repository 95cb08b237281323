/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileJournal_h
#define fileJournal_h

#include "fileDescriptor.h"

namespace chunkwise::files
{

/** The part of an output that is whole: its first planes, and the files that have their voxels. */
struct WrittenPart
{
  std::int64_t planes{ 0 };
  std::int64_t files{ 0 };
  std::int64_t bytes{ 0 };
};

/** Two files beside an unfinished output: they say which run it is of, and how much of it is whole. Each is replaced at
 * once, so that a process that is killed leaves the one before or the new one. */
class Journal
{
public:
  /** Values by names that users know: equal ones make equal outputs. */
  using Run = std::map<std::string, std::string>;

  /** `shown`: the output in messages. */
  Journal(std::filesystem::path file, std::string shown, const Run & run);

  /** The part that is whole: units of so many planes, or all of the output's. Throws FileError if it is of another run,
   * or the journal is damaged. */
  WrittenPart
  Read(std::int64_t unit, std::int64_t all) const;
  /** A part that is on the disk. The journal is there, too, when it returns. */
  void
  Write(const WrittenPart & part) const;
  /** A part that the system has, but perhaps not the disk: it counts until the system starts again, or another one
   * writes. */
  void
  Note(const WrittenPart & part) const;
  /** Throws FileError: what is written cannot be used. */
  [[noreturn]] void
  Refuse(const std::string & why) const;

private:
  void
  CheckRun(const Run & before) const;
  void
  Replace(const std::filesystem::path & file, const std::string & line, bool isDurable) const;

  std::filesystem::path m_File;
  std::filesystem::path m_NoteFile;
  std::string           m_Shown;
  Run                   m_Run;
};

} // namespace chunkwise::files

#endif
