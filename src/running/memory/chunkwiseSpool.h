/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSpool_h
#define chunkwiseSpool_h

#include "ChunkwiseExport.h"
#include "chunkwiseUnnamedFile.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace chunkwise
{

/** A file without a name for what a run has no memory for. The system removes it when it is closed, however the process
 * ends. */
class Chunkwise_EXPORT Spool
{
public:
  /** In `folder`; empty: the current one. Throws Error, which names the folder. The file is made by the first Write. */
  explicit Spool(std::string folder);
  ~Spool() = default;
  Spool(const Spool &) = delete;
  Spool &
  operator=(const Spool &) = delete;

  /** The place of the next Append. */
  std::uint64_t
  GetSize() const
  {
    return m_Size;
  }
  /** Throws Error with the file's name and the system's reason, a full disk for example. */
  void
  Append(const void * data, std::size_t bytes)
  {
    WriteAt(Reserve(bytes), data, bytes);
  }
  /** Reserves a place for bytes that WriteAt writes. The next Append begins behind them. */
  std::uint64_t
  Reserve(std::size_t bytes);
  /** Throws as Append. Several threads may write, and read, at once. */
  void
  WriteAt(std::uint64_t offset, const void * data, std::size_t bytes);
  /** Bytes that were written before. */
  void
  Read(std::uint64_t offset, void * data, std::size_t bytes);
  /** Begins again at 0: what was appended is not needed any more. */
  void
  Rewind()
  {
    m_Size = 0;
  }
  std::uint64_t
  GetBytesWritten() const
  {
    return m_Written;
  }
  std::uint64_t
  GetBytesRead() const
  {
    return m_Read;
  }

private:
  std::string   m_Folder;
  UnnamedFile   m_File;
  std::uint64_t m_Size{ 0 };

  std::atomic<std::uint64_t> m_Written{ 0 };
  std::atomic<std::uint64_t> m_Read{ 0 };
};

} // namespace chunkwise

#endif
