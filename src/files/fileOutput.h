/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileOutput_h
#define fileOutput_h

#include "fileDescriptor.h"

namespace chunkwise::files
{

/** The destination of an output: symbolic links are followed, so that the file that they name is written. */
struct Destination
{
  /** As the user wrote it, for messages. */
  std::string shown;
  /** The header, or the one file. */
  std::filesystem::path file;
  /** The voxels' own file beside it; empty where there is none. */
  std::filesystem::path data;
  /** `file` is a folder: a store of Zarr. */
  bool isFolder{ false };
};

/** The file that `name` stands for, through symbolic links, there or not. */
std::filesystem::path
FollowLinks(const std::filesystem::path & name);

/** Throws FileError if a finished output could not be put there: no such folder, no permission, a folder or pipe of the
 * name, or a file that an input or another image needs. */
void
CheckDestination(const Destination & destination, const OutputOptions & options);

/** Removes what processes that are gone left in a folder. A pair of files that such a process was moving to where they
 * belong becomes whole again: the new one, or the one that it replaces. True if there was such a pair. */
bool
EndLeftovers(const std::filesystem::path & folder);

/** A folder beside the destination, in which an output is written. The system removes its lock with the process, so
 * that the next run knows what a killed one left. */
class OutputFolder
{
public:
  /** Calls EndLeftovers for the destination's folder. A folder that `canBeKept` has one name for all runs; throws
   * FileError if another run has it. */
  explicit OutputFolder(const Destination & destination, bool canBeKept = false);
  ~OutputFolder();
  OutputFolder(const OutputFolder &) = delete;
  OutputFolder &
  operator=(const OutputFolder &) = delete;

  /** The path at which to write the file for `destination`. */
  std::filesystem::path
  GetPath(const std::filesystem::path & destination) const
  {
    return m_Folder / destination.filename();
  }
  /** Moves the files to where they belong, the header last, with the permissions of the files that they replace. If a
   * move fails, what was there before comes back. */
  void
  Commit();
  /** Whether the destructor leaves a folder that can be kept as it is. */
  void
  SetKept(bool isKept)
  {
    m_IsKept = isKept;
  }

private:
  void
  MakeFolder();
  void
  TakeKept();
  void
  Release();
  void
  KeepMode(const std::filesystem::path & destination) const;
  void
  RemoveFolder();

  Destination           m_Destination;
  std::filesystem::path m_Folder;
  Descriptor            m_Lock;
  int                   m_Slot{ -1 };
  bool                  m_HasFixedName{ false };
  bool                  m_IsKept{ false };
};

} // namespace chunkwise::files

#endif
