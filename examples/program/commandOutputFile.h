/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandOutputFile_h
#define commandOutputFile_h

#include <cstdint>
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

  /** Throws WorkError if the files have fewer voxels than these bytes: then the disk was full or too small. */
  void
  CheckIsComplete(std::uint64_t voxelBytes) const;

  /** Moves the files to where they belong, the destination itself last. */
  void
  Commit();

  /** Removes the files of an object that was neither committed nor destroyed, when the program ends early. */
  static void
  RemoveUnfinished() noexcept;

private:
  std::filesystem::path m_Destination;
  std::filesystem::path m_Directory;
};

} // namespace command

#endif
