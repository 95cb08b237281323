/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrShard_h
#define fileZarrShard_h

#include "fileDescriptor.h"
#include "fileZarrGrid.h"

#include <condition_variable>
#include <map>
#include <mutex>

namespace chunkwise::files
{

/** Files of a store. */
class ZarrFolder
{
public:
  ZarrFolder(std::string shown, std::filesystem::path root, std::atomic<std::uint64_t> & bytesWritten)
    : m_Shown(std::move(shown))
    , m_Root(std::move(root))
    , m_BytesWritten(bytesWritten)
  {}
  /** Makes a folder, and those above it that are missing; but never the one that all are in, which RemoveUnfinished may
   * have removed. */
  void
  MakeFolder(const std::filesystem::path & folder) const;
  /** A file whose folder is made when it is missing. */
  Descriptor
  CreateFile(const std::filesystem::path & file) const;
  /** Files of an earlier run may be there. */
  void
  ReplaceFiles()
  {
    m_Replaces = true;
  }
  void
  WriteText(const std::filesystem::path & file, const std::string & text) const;
  void
  CountBytes(std::uint64_t bytes) const
  {
    m_BytesWritten += bytes;
  }
  const std::string &
  GetShown() const
  {
    return m_Shown;
  }

private:
  std::string                  m_Shown;
  std::filesystem::path        m_Root;
  std::atomic<std::uint64_t> & m_BytesWritten;
  bool                         m_Replaces{ false };
};

/** So many buffers for encoded chunks. A thread that needs one waits until another thread has written its own. */
class ZarrBuffers
{
public:
  explicit ZarrBuffers(std::size_t count)
    : m_Free(count)
  {}
  /** False if a thread has failed: there may be no buffer any more. */
  bool
  Take(std::vector<char> & buffer);
  void
  GiveBack(std::vector<char> & buffer);
  /** Threads wait no more; their buffers are gone. */
  void
  Fail();
  bool
  HasFailed()
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    return m_HasFailed;
  }

private:
  std::mutex                     m_Mutex;
  std::condition_variable        m_Freed;
  std::vector<std::vector<char>> m_Free;
  bool                           m_HasFailed{ false };
};

/** A shard that is written while its chunks come. In its file the encoded chunks follow each other in the order of
 * their ranks, whatever the order in which threads encode them; the index comes last. */
class ZarrShard
{
public:
  /** `number`: chunks of the shard, each of which is appended once. */
  ZarrShard(std::filesystem::path file, std::int64_t number, std::size_t indexBytes)
    : m_File(std::move(file))
    , m_Number(number)
    , m_Places(indexBytes, static_cast<char>(0xff))
  {}

  /** The rank of the next chunk that is given to a thread. */
  std::int64_t
  GetNext() const
  {
    return m_Next;
  }
  void
  TakeNext()
  {
    ++m_Next;
  }
  /** Whether all chunks were given to threads. */
  bool
  IsTaken() const
  {
    return m_Next == m_Number;
  }
  /** Takes an encoded chunk; an empty one is not stored. Writes it, with the chunks that waited for it, once all before
   * it have come. `place`: its place in the index. Several threads may call. */
  void
  Append(std::int64_t rank, std::int64_t place, std::vector<char> & encoded, const ZarrFolder & folder,
         ZarrBuffers & buffers);
  /** Whether all chunks were appended. */
  bool
  IsComplete() const
  {
    return m_Placed == m_Number;
  }
  /** Writes the index. Returns the bytes of the file; 0: no chunk is stored, and there is no file. */
  std::uint64_t
  Finish(const ZarrFolder & folder);
  /** The next chunk opens the file again: a process cannot have many files open. */
  void
  Close()
  {
    if (m_Descriptor.GetNumber() >= 0)
    {
      m_Descriptor.Close();
    }
  }

private:
  struct Encoded
  {
    std::int64_t      place{ 0 };
    std::vector<char> bytes;
  };
  std::vector<char>
  Place(Encoded & chunk);
  void
  Open(std::uint64_t bytes, const ZarrFolder & folder);

  std::filesystem::path           m_File;
  std::int64_t                    m_Number;
  std::vector<char>               m_Places; ///< the index
  std::int64_t                    m_Next{ 0 };
  Descriptor                      m_Descriptor;
  std::uint64_t                   m_End{ 0 }; ///< bytes of the file
  std::mutex                      m_Mutex;
  std::map<std::int64_t, Encoded> m_Pending; ///< by rank
  std::int64_t                    m_Placed{ 0 };
};

} // namespace chunkwise::files

#endif
