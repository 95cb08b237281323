/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseUnnamedFile_h
#define chunkwiseUnnamedFile_h

#include "ChunkwiseExport.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace chunkwise
{

/** A file that the system removes when it is closed, however the process ends. */
class Chunkwise_EXPORT UnnamedFile
{
public:
  UnnamedFile() = default;
  ~UnnamedFile();
  UnnamedFile(const UnnamedFile &) = delete;
  UnnamedFile &
  operator=(const UnnamedFile &) = delete;

  bool
  IsOpen() const
  {
    return m_Handle != Closed;
  }
  /** Makes the file in an existing folder. This and the next two throw Error with the file's name and the system's
   * reason. */
  void
  Open(const std::string & folder);
  /** Several threads may write, and read, at once. */
  void
  WriteAt(std::uint64_t offset, const void * data, std::size_t bytes);
  void
  ReadAt(std::uint64_t offset, void * data, std::size_t bytes);

private:
  static constexpr std::intptr_t Closed = -1;

  std::string   m_Name;
  std::intptr_t m_Handle{ Closed };
};

} // namespace chunkwise

#endif
