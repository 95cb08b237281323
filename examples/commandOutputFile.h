/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandOutputFile_h
#define commandOutputFile_h

#include <filesystem>

namespace command
{

/** A file that appears under its name only when it is complete.
 *
 * It is written, with the files that belong to it (the .raw of an .mhd), into a directory of its own beside its
 * destination, on the same file system, and moved from there. Removed if it was not committed. */
class OutputFile
{
public:
  /** Throws WorkError if the directory cannot be made. */
  explicit OutputFile(const std::filesystem::path & destination);
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &
  operator=(const OutputFile &) = delete;

  /** Where to write: the destination's file name, in the directory. */
  std::filesystem::path
  GetPath() const;

  /** Bytes written so far, in all files. */
  std::uintmax_t
  GetBytesWritten() const;

  /** Moves the files to where they belong, the destination itself last. */
  void
  Commit();

private:
  std::filesystem::path m_Destination;
  std::filesystem::path m_Directory;
};

} // namespace command

#endif
