/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrWriter_h
#define fileZarrWriter_h

#include "chunkwiseExecutor.h"
#include "fileJournal.h"
#include "fileZarrOptions.h"
#include "fileZarrShard.h"

#include <deque>

namespace chunkwise::files
{

/** The axis along which planes of the file follow each other: the last one with more than one voxel. */
int
GetPlaneAxis(const Coordinates & extent);

/** The memory that writing takes. `most`: what it should hold; 0: as it likes. */
class ZarrMemory
{
public:
  ZarrMemory(const ZarrPyramid & pyramid, std::uint64_t most);

  unsigned int
  GetThreads() const
  {
    return m_Threads;
  }
  /** For encoded chunks of shards. */
  std::size_t
  GetBuffers() const
  {
    return m_Buffers;
  }
  std::uint64_t
  GetHeld() const
  {
    return m_Held;
  }
  /** Whether a level gathers voxels until they are a layer of chunks. */
  bool
  Gathers(std::size_t level) const
  {
    return m_Gathers[level];
  }

private:
  unsigned int      m_Threads{ 1 };
  std::size_t       m_Buffers{ 1 };
  std::uint64_t     m_Held{ 0 };
  std::vector<bool> m_Gathers;
};

/** The threads that encode, and their memory. */
struct ZarrTeam
{
  /** Memory of one thread. */
  struct Worker
  {
    ZarrCoder         coder;
    std::vector<char> voxels;
    std::vector<char> encoded;
  };

  explicit ZarrTeam(const ZarrMemory & memory);

  std::unique_ptr<Executor> executor;
  std::vector<Worker>       workers;
  ZarrBuffers               buffers;
};

/** Voxels of chunks that are not complete, in a file. */
class ZarrSpool
{
public:
  ZarrSpool(std::filesystem::path file, std::size_t bytesOfChunk)
    : m_File(std::move(file))
    , m_BytesOfChunk(bytesOfChunk)
  {}
  /** Returns the place of a chunk's voxels. */
  std::int64_t
  Put(const std::vector<char> & voxels, const ZarrFolder & folder);
  /** The place is free then. */
  void
  Get(std::int64_t place, std::vector<char> & voxels);

private:
  std::filesystem::path     m_File;
  std::size_t               m_BytesOfChunk;
  Descriptor                m_Descriptor;
  std::mutex                m_Mutex;
  std::vector<std::int64_t> m_Free;
  std::int64_t              m_Places{ 0 };
};

/** Writes one array chunk by chunk, in shards if it has any, and makes the next level of the chunks that are complete.
 */
class ZarrWriter
{
public:
  /** `planeAxis`: that of the whole image. `spool`: the file for voxels that wait. If the array `isThere` already, its
   * voxels only go to the next level. */
  ZarrWriter(ZarrLayout layout, const Coordinates & extent, int planeAxis, const ZarrFolder & folder, ZarrTeam & team,
             std::filesystem::path spool, bool isThere);
  ZarrWriter(const ZarrWriter &) = delete;
  ZarrWriter &
  operator=(const ZarrWriter &) = delete;

  /** Complete chunks become a part of the next level, which `gathers` them. */
  void
  SetNext(ZarrWriter & next, ZarrReducer reducer, const Coordinates & factor, bool gathers);
  void
  Write(const Box & box, const BufferView & view);
  /** Nothing more comes: false if voxels are missing. */
  bool
  Finish();
  /** Its files of voxels, and their bytes. */
  /** Planes, from the first one on, that Gaussian means of the next level were made of. */
  std::int64_t
  GetSmoothedPlanes() const
  {
    return m_Smoothed.upper[m_PlaneAxis];
  }
  WrittenPart
  GetFiles() const
  {
    return { 0, m_Files, m_Bytes };
  }
  /** Files that were there before. */
  void
  SetFiles(const WrittenPart & part)
  {
    m_Files = part.files;
    m_Bytes = part.bytes;
  }
  /** Makes of whole chunks, or for Gaussian means of planes, their part of the next level. */
  void
  Reduce(const Box & chunks, const BufferView & view);

private:
  using Worker = ZarrTeam::Worker;

  /** Voxels of a chunk, of which not all are there yet, or which waits for others of its shard. */
  struct WaitingChunk
  {
    std::vector<char> voxels;
    std::int64_t      count{ 0 };
    std::int64_t      place{ -1 }; ///< in the spool, if memory has no room
    bool              isInUse{ false };
  };
  using WaitingChunks = std::map<ZarrIndex, WaitingChunk>;
  /** A shard that has some of its chunks. */
  struct OpenShard
  {
    ZarrIndex                  index;
    Box                        box;
    ZarrIndex                  first; ///< chunks of it that the image has
    ZarrIndex                  count;
    std::unique_ptr<ZarrShard> shard;
  };
  /** A chunk that a box touches. */
  struct Chunk
  {
    ZarrIndex    index;
    Box          box;
    OpenShard *  shard{ nullptr };
    std::int64_t rank{ 0 };
  };
  /** A chunk to encode: its voxels are in the box that is written, or waited. */
  struct Work
  {
    Chunk                   chunk;
    WaitingChunks::iterator waiting;
  };

  ZarrIndex
  GetIndex(std::int64_t rank, const ZarrIndex & first, const ZarrIndex & count) const;
  std::int64_t
  GetRank(const ZarrIndex & index, const OpenShard & shard) const;
  Chunk
  MakeChunk(ZarrIndex index, OpenShard * shard) const;
  OpenShard &
  GetShard(const ZarrIndex & index);
  std::vector<Chunk>
  ListChunks(const std::vector<OpenShard *> & shards, const Box & box) const;
  void
  WritePart(const Box & box, const BufferView & view);
  void
  WriteChunks(const std::vector<Chunk> & chunks, const Box & box, const BufferView & view);
  void
  WriteBatch(const Chunk * begin, const Chunk * end, const Box & box, const BufferView & view);
  bool
  IsComplete(const Work & work) const;
  void
  FollowShard(OpenShard & shard, std::vector<Work> & works);
  void
  CopyToWaiting(const std::vector<Work> & kept, const Box & box, const BufferView & view);
  void
  EncodeAll(const std::vector<Work> & works, const BufferView & view);
  void
  AppendNext(const std::vector<Work> & works, std::atomic<std::int64_t> & next, const BufferView & view,
             Worker & worker);
  void
  LoadVoxels(const Work & work, const BufferView & view, Worker & worker);
  bool
  Encode(const Work & work, const BufferView & view, Worker & worker, std::vector<char> & encoded);
  void
  WriteChunkFile(const Work & work, const BufferView & view, Worker & worker);
  void
  FinishShards(const std::vector<OpenShard *> & shards);
  void
  CountFile(std::uint64_t bytes);
  void
  MakeRoom(std::uint64_t bytes);
  void
  Load(WaitingChunk & waiting, std::vector<char> & voxels);

  Box
  GetWholeChunks(const Box & box) const;
  bool
  ReduceToPlanes(const Box & chunks, const BufferView & view);
  void
  Smooth(const Box & box, const BufferView & view);
  void
  SmoothToPlanes(std::int64_t lower, std::int64_t upper, const BufferView & view);
  void
  GatherPlanes(const Box & planes, const BufferView & view, std::vector<char> & to) const;
  void
  ReduceChunk(const Box & chunk, const BufferView & view);
  void *
  TakePlanes(const Box & planes);
  void
  WritePlanes();

  ZarrLayout                     m_Layout;
  ZarrGrid                       m_Grid;
  Coordinates                    m_Strides;
  Coordinates                    m_Extent;
  PixelType                      m_Kind;
  bool                           m_IsSharded;
  int                            m_PlaneAxis;
  std::vector<std::size_t>       m_Order; ///< the array's axes; ranks of chunks go along the last one first
  const ZarrFolder &             m_Folder;
  ZarrTeam &                     m_Team;
  std::size_t                    m_ChunkBytes;
  bool                           m_IsThere;
  std::atomic<std::int64_t>      m_Files{ 0 };
  std::atomic<std::int64_t>      m_Bytes{ 0 };
  std::map<ZarrIndex, OpenShard> m_Shards;

  WaitingChunks         m_Waiting;
  std::deque<ZarrIndex> m_Oldest; ///< chunks in memory
  std::uint64_t         m_InMemory{ 0 };
  ZarrSpool             m_Spool;
  std::mutex            m_LoadMutex;
  std::vector<char>     m_Loaded;

  ZarrWriter *      m_Next{ nullptr };
  ZarrReducer       m_Reducer{ ZarrReducer::None };
  Coordinates       m_Factor{};
  bool              m_NextGathers{ false };
  std::vector<char> m_Reduced;
  Box               m_Smoothed{}; ///< whole planes, from the first one on, that were given to Smooth
  std::int64_t      m_Made{ 0 };  ///< planes of the next level that were made of them
  Box               m_Kept{};     ///< the last of them, which planes of the next level still need
  std::vector<char> m_KeptVoxels;
  Box               m_Planes{}; ///< whole planes that are gathered
  std::vector<char> m_Gathered;
};

} // namespace chunkwise::files

#endif
