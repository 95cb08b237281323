/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileDescriptor_h
#define fileDescriptor_h

#include "fileImage.h"

#include <cstddef>
#include <string>
#include <sys/uio.h>

namespace chunkwise::files
{

/** Throws FileError with "file: why". */
[[noreturn]] void
Fail(const std::string & file, const std::string & why);

/** Throws FileError with "file: what: the system's error". */
[[noreturn]] void
FailWithErrno(const std::string & file, const std::string & what, int error);

/** An open file that is read and written at positions. All that is asked for happens, or FileError is thrown. Any
 * number of threads may call at once. */
class Descriptor
{
public:
  Descriptor() = default;
  ~Descriptor();
  Descriptor(Descriptor && other) noexcept;
  Descriptor &
  operator=(Descriptor && other) noexcept;

  /** Refuses at once what is no plain file: to open a pipe would block. Messages name it `shown` if that is given. */
  static Descriptor
  OpenToRead(const std::filesystem::path & file, const std::string & shown = "");

  /** Makes a file that is not there, or opens the one that is if it `mayBeThere`. Messages name it `shown`. */
  static Descriptor
  Create(const std::filesystem::path & file, const std::string & shown, bool mayBeThere = false);

  std::uint64_t
  GetSize() const;
  /** Fewer than `bytes` at the end of the file. */
  std::size_t
  ReadSome(void * data, std::size_t bytes, std::uint64_t offset) const;
  void
  ReadAt(void * data, std::size_t bytes, std::uint64_t offset) const;
  void
  WriteAt(const void * data, std::size_t bytes, std::uint64_t offset) const;
  /** One stretch of the file, from or to several of memory. */
  void
  ReadPieces(std::vector<iovec> & pieces, std::uint64_t offset) const;
  void
  WritePieces(std::vector<iovec> & pieces, std::uint64_t offset) const;

  /** Takes the space for a file of `bytes`, so that a full disk shows before the work. Nothing where the file system
   * has no such call. */
  void
  Reserve(std::uint64_t bytes) const;
  /** Takes pages for a part of a file that is in memory: what is written there then is only copied. False where there
   * is nothing to win. */
  bool
  TakePages(std::uint64_t offset, std::uint64_t bytes) const;
  /** On the disk, not only in the system's memory, when it returns. */
  void
  Sync() const;
  /** Throws if the system reports an error that it kept until now, as network file systems do. */
  void
  Close();

  int
  GetNumber() const
  {
    return m_Number;
  }
  const std::string &
  GetName() const
  {
    return m_Name;
  }

private:
  /** Writes into the pages of a file that is in memory, where that is faster. False: nothing was written. */
  bool
  WriteToPages(const std::vector<iovec> & pieces, std::uint64_t offset) const;

  int         m_Number{ -1 };
  std::string m_Name;
  bool        m_IsInMemory{ false };
};

/** The folder's entries are on the disk. */
void
SyncFolder(const std::filesystem::path & folder);

/** Throws if it is not there or no plain file. */
void
CheckIsPlainFile(const std::filesystem::path & file);

} // namespace chunkwise::files

#endif
