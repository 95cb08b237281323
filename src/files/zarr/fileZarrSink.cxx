/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExecutor.h"
#include "fileByteCount.h"
#include "fileFormats.h"
#include "fileJournal.h"
#include "fileVoxels.h"
#include "fileZarr.h"
#include "fileZarrLevels.h"
#include "fileZarrValues.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <map>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace chunkwise::files
{

namespace
{

namespace fs = std::filesystem;

/** Chunks of a shard that are encoded before they are written, for each thread: they differ in what they cost. */
constexpr std::int64_t ChunksOfWorker = 4;
/** Voxels of units that are not complete yet and stay in memory; those beyond that wait in a file. */
constexpr std::uint64_t WaitingBytes = std::uint64_t{ 16 } << 20;
/** The memory that encoding may hold if nobody sets a limit. */
constexpr std::uint64_t EncodingBytes = std::uint64_t{ 1 } << 30;
/** A run that can be resumed waits for the disk, so that it may also lose its power, after so many seconds, and when so
 * many times as long as the last such wait have passed. */
constexpr std::chrono::seconds BeforeSync{ 10 };
constexpr int                  PausesOfSync = 20;

/** The memory that writing takes. */
class ZarrMemory
{
public:
  ZarrMemory(const ZarrPyramid & pyramid, std::uint64_t most)
  {
    std::uint64_t worker = 1;
    std::uint64_t waiting = 0;
    for (const ZarrLayout & layout : pyramid.levels)
    {
      const ZarrGrid      grid(layout.array, layout.fileAxis);
      const auto &        codecs = layout.array.GetInnermost().codecs;
      const std::size_t   size = PixelSize(layout.array.kind);
      const std::uint64_t chunk = static_cast<std::uint64_t>(grid.CountVoxelsOfChunk(grid.GetLast())) * size;
      const bool          isSharded = layout.array.levels.front().isSharded;
      const std::uint64_t outputs = isSharded ? ChunksOfWorker : 1;
      worker = std::max(worker, chunk + GetZarrCoderBytes(codecs, chunk, true) + outputs * GetZarrBound(codecs, chunk));
      // Units that come in parts, one of them that is completed, and what it becomes in the next level.
      const ByteCount unit = ByteCount(grid.CountVoxelsOfChunk(0)) * static_cast<std::int64_t>(size);
      const bool      isLast = &layout == &pyramid.levels.back();
      waiting += WaitingBytes + static_cast<std::uint64_t>(unit.Get()) * (isLast ? 2 : 3) / 2 +
                 (isSharded ? static_cast<std::uint64_t>(grid.CountIndexBytes(0).Get()) : 0);
    }
    const std::uint64_t limit = most == 0 ? EncodingBytes : most;
    m_Threads = static_cast<unsigned int>(std::clamp<std::uint64_t>(limit / worker, 1, GetMostThreadsOfZarr()));
    m_Held = m_Threads * worker + waiting;
  }
  unsigned int
  GetThreads() const
  {
    return m_Threads;
  }
  std::uint64_t
  GetHeld() const
  {
    return m_Held;
  }

private:
  unsigned int  m_Threads{ 1 };
  std::uint64_t m_Held{ 0 };
};

/** The threads that encode, and their memory. */
class ZarrTeam
{
public:
  /** Memory of one thread. */
  struct Worker
  {
    ZarrCoder         coder;
    std::vector<char> voxels;
    std::vector<char> encoded;
  };

  explicit ZarrTeam(unsigned int threads)
    : executor(MakeThreadExecutor(threads))
    , workers(executor->GetConcurrency())
  {}

  std::unique_ptr<Executor>      executor;
  std::vector<Worker>            workers;
  std::vector<std::vector<char>> encoded;
};

/** Voxels of a unit, a chunk or a shard with a separate file, of which not all are there yet. */
struct WaitingUnit
{
  Box               box;
  std::vector<char> voxels;
  std::int64_t      count{ 0 };
  std::int64_t      slot{ -1 }; ///< in the file for units that memory has no room for
};

/** Files of a store. */
class ZarrFolder
{
public:
  ZarrFolder(const std::string & shown, const fs::path & root, std::atomic<std::uint64_t> & bytesWritten)
    : m_Shown(shown)
    , m_Root(root)
    , m_BytesWritten(bytesWritten)
  {}
  /** Makes a folder, and those above it that are missing; but never the one that all are in, which RemoveUnfinished may
   * have removed. */
  void
  MakeFolder(const fs::path & folder) const
  {
    if (::mkdir(folder.c_str(), 0777) == 0 || errno == EEXIST)
    {
      return;
    }
    if (errno != ENOENT || !folder.has_parent_path() || folder == m_Root)
    {
      FailWithErrno(m_Shown, "cannot be written", errno);
    }
    this->MakeFolder(folder.parent_path());
    if (::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    {
      FailWithErrno(m_Shown, "cannot be written", errno);
    }
  }
  /** A file whose folder is made when it is missing. */
  Descriptor
  CreateFile(const fs::path & file) const
  {
    std::error_code error;
    if (!fs::is_directory(file.parent_path(), error))
    {
      this->MakeFolder(file.parent_path());
    }
    if (m_Replaces)
    {
      ::unlink(file.c_str());
    }
    return Descriptor::Create(file, m_Shown);
  }
  /** Files of an earlier run may be there. */
  void
  ReplaceFiles()
  {
    m_Replaces = true;
  }
  void
  WriteText(const fs::path & file, const std::string & text) const
  {
    Descriptor descriptor = this->CreateFile(file);
    descriptor.WriteAt(text.data(), text.size(), 0);
    descriptor.Close();
    this->CountBytes(text.size());
  }
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
  fs::path                     m_Root;
  std::atomic<std::uint64_t> & m_BytesWritten;
  bool                         m_Replaces{ false };
};

/** Writes one array, and makes the levels below it of the units that are complete. */
class ZarrWriter
{
public:
  /** `spool`: the file for voxels that wait. If the array `isThere` already, its voxels only go to the next level. */
  ZarrWriter(ZarrLayout layout, const Coordinates & extent, const ZarrFolder & folder, ZarrTeam & team, fs::path spool,
             bool isThere)
    : m_Layout(std::move(layout))
    , m_Grid(m_Layout.array, m_Layout.fileAxis)
    , m_Strides(m_Grid.GetStrides())
    , m_Extent(extent)
    , m_Kind(m_Layout.array.kind)
    , m_Folder(folder)
    , m_Team(team)
    , m_SpoolFile(std::move(spool))
    , m_IsThere(isThere)
  {
    m_ChunkBytes = static_cast<std::size_t>(m_Grid.CountVoxelsOfChunk(m_Grid.GetLast())) * PixelSize(m_Kind);
    if (m_IsThere)
    {
      return;
    }
    m_Folder.MakeFolder(m_Layout.array.folder);
    m_Folder.WriteText(m_Layout.array.folder / (m_Layout.array.version == 2 ? ".zarray" : "zarr.json"),
                       MakeArrayMetadata(m_Layout));
  }
  ZarrWriter(const ZarrWriter &) = delete;
  ZarrWriter &
  operator=(const ZarrWriter &) = delete;

  /** Complete units become a part of the next level. */
  void
  SetNext(ZarrWriter & next, ZarrReducer reducer, const Coordinates & factor)
  {
    m_Next = &next;
    m_Reducer = reducer;
    m_Factor = factor;
  }
  void
  Write(const Box & box, const BufferView & view)
  {
    const Box              image = Box::FromExtent(m_Extent);
    ZarrIndex              first;
    ZarrIndex              count;
    const std::int64_t     units = m_Grid.CountChunks(0, box, first, count);
    const bool             isSharded = m_Layout.array.levels.front().isSharded;
    std::vector<ZarrIndex> whole;
    for (std::int64_t i = 0; i < units; ++i)
    {
      ZarrIndex index = GetZarrIndex(i, first, count);
      const Box unit = m_Grid.GetBox(0, GetZarrOrigin(index, m_Grid.GetLevel(0).chunk), image);
      if (!box.Contains(unit))
      {
        this->Keep(index, unit, box, view);
      }
      else if (isSharded)
      {
        this->WriteShard(index, view);
        this->Reduce(unit, view);
      }
      else
      {
        whole.push_back(std::move(index));
      }
    }
    m_Team.executor->ParallelFor(static_cast<std::int64_t>(whole.size()), [&](std::int64_t i, unsigned int worker) {
      this->WriteChunkFile(whole[static_cast<std::size_t>(i)], view, m_Team.workers[worker]);
    });
    for (std::size_t i = 0; i < whole.size() && m_Next; ++i)
    {
      this->Reduce(m_Grid.GetBox(0, GetZarrOrigin(whole[i], m_Grid.GetLevel(0).chunk), image), view);
    }
  }
  bool
  IsComplete() const
  {
    return m_Waiting.empty();
  }
  /** Its files of voxels, and their bytes. */
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
  /** Makes of a complete unit its part of the next level. */
  void
  Reduce(const Box & unit, const BufferView & view)
  {
    if (!m_Next)
    {
      return;
    }
    const Box reduced = GetReducedBox(unit, m_Factor);
    m_Reduced.resize(static_cast<std::size_t>(reduced.NumberOfVoxels()) * PixelSize(m_Kind));
    const BufferView to = DenseView(m_Reduced.data(), m_Kind, reduced);
    ReduceLevel(m_Reducer, unit, view, m_Factor, to, *m_Team.executor);
    m_Next->Write(reduced, to);
  }

private:
  using Worker = ZarrTeam::Worker;

  /** Encodes a chunk of the last level; false if all its bytes are 0, which need not be stored. */
  bool
  Encode(const ZarrIndex & origin, const BufferView & view, Worker & worker, std::vector<char> & encoded)
  {
    const std::size_t size = PixelSize(m_Kind);
    const Box         part = m_Grid.GetBox(m_Grid.GetLast(), origin, Box::FromExtent(m_Extent));
    const bool        isCut = static_cast<std::size_t>(part.NumberOfVoxels()) * size != m_ChunkBytes;
    worker.voxels.resize(m_ChunkBytes);
    if (isCut)
    {
      std::memset(worker.voxels.data(), 0, m_ChunkBytes);
    }
    CopyStrided(size,
                part.Extents(),
                static_cast<const char *>(view.data) + view.Offset(part.lower) * static_cast<std::int64_t>(size),
                view.stride,
                worker.voxels.data(),
                m_Strides);
    const char * const begin = worker.voxels.data();
    if (begin[0] == 0 && std::memcmp(begin, begin + 1, m_ChunkBytes - 1) == 0)
    {
      return false;
    }
    worker.coder.Encode(m_Layout.array.GetInnermost().codecs, begin, m_ChunkBytes, encoded);
    return true;
  }
  void
  WriteChunkFile(const ZarrIndex & index, const BufferView & view, Worker & worker)
  {
    if (!m_IsThere && this->Encode(GetZarrOrigin(index, m_Grid.GetLevel(0).chunk), view, worker, worker.encoded))
    {
      Descriptor file = m_Folder.CreateFile(m_Layout.array.GetChunkFile(index));
      file.WriteAt(worker.encoded.data(), worker.encoded.size(), 0);
      file.Close();
      this->CountFile(worker.encoded.size());
    }
  }
  /** A shard whose voxels are all in `view`. Its chunks follow each other in the order of its index, however many
   * threads there are. */
  void
  WriteShard(const ZarrIndex & index, const BufferView & view)
  {
    if (m_IsThere)
    {
      return;
    }
    const Box unit = m_Grid.GetBox(0, GetZarrOrigin(index, m_Grid.GetLevel(0).chunk), Box::FromExtent(m_Extent));
    ZarrIndex first;
    ZarrIndex count;
    const std::int64_t number = m_Grid.CountChunks(1, unit, first, count);
    const ZarrIndex    inner = m_Grid.GetInner(0);
    std::vector<char>  places(static_cast<std::size_t>(m_Grid.CountIndexBytes(0).Get()), static_cast<char>(0xff));
    const auto         atOnce = static_cast<std::int64_t>(m_Team.workers.size()) * ChunksOfWorker;
    Descriptor         file;
    std::uint64_t      end = 0;
    m_Team.encoded.resize(static_cast<std::size_t>(atOnce));
    for (std::int64_t i = 0; i < number; i += atOnce)
    {
      const std::int64_t those = std::min(atOnce, number - i);
      m_Team.executor->ParallelFor(those, [&](std::int64_t k, unsigned int worker) {
        auto &          encoded = m_Team.encoded[static_cast<std::size_t>(k)];
        const ZarrIndex at = GetZarrIndex(i + k, first, count);
        if (!this->Encode(GetZarrOrigin(at, m_Grid.GetLevel(1).chunk), view, m_Team.workers[worker], encoded))
        {
          encoded.clear();
        }
      });
      std::vector<iovec>  pieces;
      const std::uint64_t begin = end;
      for (std::int64_t k = 0; k < those; ++k)
      {
        auto & encoded = m_Team.encoded[static_cast<std::size_t>(k)];
        if (encoded.empty())
        {
          continue;
        }
        ZarrIndex at = GetZarrIndex(i + k, first, count);
        for (std::size_t a = 0; a < at.size(); ++a)
        {
          at[a] %= inner[a];
        }
        PutNumber(end, places.data() + 16 * m_Grid.GetPlaceInIndex(0, at));
        PutNumber(encoded.size(), places.data() + 16 * m_Grid.GetPlaceInIndex(0, at) + 8);
        pieces.push_back({ encoded.data(), encoded.size() });
        end += encoded.size();
      }
      if (pieces.empty())
      {
        continue;
      }
      if (file.GetNumber() < 0)
      {
        file = m_Folder.CreateFile(m_Layout.array.GetChunkFile(index));
      }
      file.WritePieces(pieces, begin);
    }
    if (end == 0)
    {
      return;
    }
    const std::uint32_t sum = GetCrc32c(places.data(), places.size() - 4);
    for (std::size_t i = 0; i < 4; ++i)
    {
      places[places.size() - 4 + i] = static_cast<char>(sum >> 8 * i);
    }
    file.WriteAt(places.data(), places.size(), end);
    file.Close();
    this->CountFile(end + places.size());
  }
  void
  CountFile(std::uint64_t bytes)
  {
    m_Folder.CountBytes(bytes);
    ++m_Files;
    m_Bytes += static_cast<std::int64_t>(bytes);
  }
  static void
  PutNumber(std::uint64_t number, char * to)
  {
    for (int i = 0; i < 8; ++i)
    {
      to[i] = static_cast<char>(number >> 8 * i);
    }
  }

  // Units that come in parts.

  /** Takes the part of a unit that is in `box`, and writes the unit if that was the last one. */
  void
  Keep(const ZarrIndex & index, const Box & unit, const Box & box, const BufferView & view)
  {
    WaitingUnit &     waiting = m_Waiting[index];
    const std::size_t bytes = static_cast<std::size_t>(unit.NumberOfVoxels()) * PixelSize(m_Kind);
    waiting.box = unit;
    if (waiting.voxels.empty())
    {
      waiting.voxels.resize(bytes);
      m_InMemory += bytes;
      if (waiting.slot >= 0)
      {
        m_Spool.ReadAt(waiting.voxels.data(), bytes, this->GetPlaceOfSlot(waiting.slot));
      }
    }
    const Box        part = IntersectionOf(unit, box);
    const BufferView dense = DenseView(waiting.voxels.data(), m_Kind, unit);
    CopyBox(part, view, dense);
    waiting.count += part.NumberOfVoxels();
    if (waiting.count == unit.NumberOfVoxels())
    {
      if (m_Layout.array.levels.front().isSharded)
      {
        this->WriteShard(index, dense);
      }
      else
      {
        this->WriteChunkFile(index, dense, m_Team.workers.front());
      }
      this->Reduce(unit, dense);
      if (waiting.slot >= 0)
      {
        m_FreeSlots.push_back(waiting.slot);
      }
      m_InMemory -= bytes;
      m_Waiting.erase(index);
      return;
    }
    m_Order.push_back(index);
    while (m_InMemory > WaitingBytes && !m_Order.empty())
    {
      const ZarrIndex oldest = m_Order.front();
      m_Order.pop_front();
      const auto found = m_Waiting.find(oldest);
      if (found != m_Waiting.end() && !found->second.voxels.empty())
      {
        this->PutAway(found->second);
      }
    }
  }
  std::uint64_t
  GetPlaceOfSlot(std::int64_t slot) const
  {
    const Coordinates unit = m_Grid.GetUnit(0, m_Extent);
    return static_cast<std::uint64_t>(slot) *
           static_cast<std::uint64_t>(ByteCount::OfImage(unit, 1, PixelSize(m_Kind)).Get());
  }
  /** Moves the voxels of a unit from memory to a file. */
  void
  PutAway(WaitingUnit & waiting)
  {
    if (m_Spool.GetNumber() < 0)
    {
      m_Spool = m_Folder.CreateFile(m_SpoolFile);
    }
    if (waiting.slot < 0)
    {
      waiting.slot = m_FreeSlots.empty() ? m_Slots++ : m_FreeSlots.back();
      if (!m_FreeSlots.empty())
      {
        m_FreeSlots.pop_back();
      }
    }
    m_Spool.WriteAt(waiting.voxels.data(), waiting.voxels.size(), this->GetPlaceOfSlot(waiting.slot));
    m_InMemory -= waiting.voxels.size();
    std::vector<char>().swap(waiting.voxels);
  }
  static Box
  IntersectionOf(const Box & a, const Box & b)
  {
    Box box = a;
    for (int i = 0; i < MaxDimension; ++i)
    {
      box.lower[i] = std::max(a.lower[i], b.lower[i]);
      box.upper[i] = std::min(a.upper[i], b.upper[i]);
    }
    return box;
  }

  ZarrLayout                       m_Layout;
  ZarrGrid                         m_Grid;
  Coordinates                      m_Strides;
  Coordinates                      m_Extent;
  PixelKind                        m_Kind;
  const ZarrFolder &               m_Folder;
  ZarrTeam &                       m_Team;
  ZarrWriter *                     m_Next{ nullptr };
  ZarrReducer                      m_Reducer{ ZarrReducer::None };
  Coordinates                      m_Factor{};
  std::vector<char>                m_Reduced;
  std::size_t                      m_ChunkBytes{ 0 };
  std::map<ZarrIndex, WaitingUnit> m_Waiting;
  std::deque<ZarrIndex>            m_Order;
  std::uint64_t                    m_InMemory{ 0 };
  fs::path                         m_SpoolFile;
  bool                             m_IsThere;
  std::atomic<std::int64_t>        m_Files{ 0 };
  std::atomic<std::int64_t>        m_Bytes{ 0 };
  Descriptor                       m_Spool;
  std::vector<std::int64_t>        m_FreeSlots;
  std::int64_t                     m_Slots{ 0 };
};

class ZarrSink : public FileSink
{
  using Clock = std::chrono::steady_clock;

public:
  ZarrSink(const ImageHeader & header, const Destination & destination, const OutputOptions & options,
           std::vector<std::string> losses)
    : m_Pyramid(MakeZarrPyramid(destination.shown, header, options.zarr ? *options.zarr : ZarrOptions()))
    , m_Folder(destination, !options.run.empty())
    , m_Root(m_Folder.GetPath(destination.file))
    , m_Files(destination.shown, m_Root, m_BytesWritten)
    , m_Held(ZarrMemory(m_Pyramid, options.heldBytes).GetHeld())
    , m_Team(ZarrMemory(m_Pyramid, options.heldBytes).GetThreads())
  {
    m_Header = header;
    m_Losses = std::move(losses);
    if (options.zarr && options.zarr->addsLevels)
    {
      m_Levels = std::make_unique<ZarrLevels>(destination.shown, options.zarr->replacesLevels);
      m_Losses.clear();
    }
    m_Count = CountVoxels(destination.shown, header);
    for (std::size_t i = 0; i < m_Pyramid.levels.size(); ++i)
    {
      m_Pyramid.levels[i].array.folder = m_Root / std::to_string(i);
    }
    if (!options.run.empty())
    {
      this->Resume(options.run);
    }
    for (std::size_t i = 0; i < m_Pyramid.levels.size(); ++i)
    {
      m_Writers.push_back(std::make_unique<ZarrWriter>(m_Pyramid.levels[i],
                                                       GetStoredExtent(m_Pyramid.headers[i]),
                                                       m_Files,
                                                       m_Team,
                                                       m_Folder.GetPath(fs::path(".waiting" + std::to_string(i))),
                                                       m_Levels && i == 0));
      if (i > 0)
      {
        m_Writers[i - 1]->SetNext(*m_Writers[i], m_Pyramid.reducer, m_Pyramid.factors[i - 1]);
      }
    }
    if (!m_Levels)
    {
      this->WriteGroup();
    }
    m_Writers.front()->SetFiles(m_Noted);
    if (m_First > 0 && m_Writers.size() > 1)
    {
      this->ReduceFirst();
    }
  }
  ~ZarrSink() override
  {
    if (m_Journal)
    {
      try
      {
        this->WriteJournal();
      }
      catch (const std::exception &)
      {
        // The journal keeps its last entry.
      }
    }
  }
  ZarrSink(const ZarrSink &) = delete;
  ZarrSink &
  operator=(const ZarrSink &) = delete;

  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.unit = this->GetUnit();
    access.wholeBoxes = true;
    access.heldBytes = m_Held;
    return access;
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    if (!box.IsEmpty())
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      m_Writers.front()->Write(box, view);
      m_Done += box.NumberOfVoxels();
      if (m_Journal && box == this->GetPlanes(m_Written, box.upper[m_Axis]))
      {
        m_Written = box.upper[m_Axis];
        this->Note();
      }
    }
  }
  Box
  GetMissing() const override
  {
    return this->GetPlanes(m_First, GetExtent()[m_Axis]);
  }
  void
  Finish() override
  {
    const bool isComplete =
      std::all_of(m_Writers.begin(), m_Writers.end(), [](const auto & writer) { return writer->IsComplete(); });
    if (m_Done != m_Count || !isComplete)
    {
      throw std::logic_error(m_Files.GetShown() + ": " + std::to_string(m_Done) + " of " + std::to_string(m_Count) +
                             " voxels were written");
    }
    if (m_Levels)
    {
      this->Sync();
      m_Levels->Place(m_Root, m_Pyramid);
      return;
    }
    this->Sync();
    m_Folder.Commit();
    m_Journal.reset();
  }

private:
  Coordinates
  GetUnit() const
  {
    const auto & layout = m_Pyramid.levels.front();
    return ZarrGrid(layout.array, layout.fileAxis).GetUnit(0, GetExtent());
  }
  std::string
  GetGroupText() const
  {
    return MakeGroupMetadata(m_Pyramid, WithoutEnding(m_Root.filename().string()));
  }
  void
  WriteGroup() const
  {
    const std::string text = this->GetGroupText();
    if (m_Pyramid.levels.front().array.version == 2)
    {
      m_Files.WriteText(m_Root / ".zattrs", text);
      m_Files.WriteText(m_Root / ".zgroup", "{\n  \"zarr_format\": 2\n}\n");
    }
    else
    {
      m_Files.WriteText(m_Root / "zarr.json", text);
    }
  }

  // Stores that a later run goes on with.

  Box
  GetPlanes(std::int64_t lower, std::int64_t upper) const
  {
    Box box = Box::FromExtent(GetExtent());
    box.lower[m_Axis] = lower;
    box.upper[m_Axis] = upper;
    return box;
  }
  /** Takes what an earlier run has left, or begins anew. */
  void
  Resume(std::map<std::string, std::string> run)
  {
    const Coordinates extent = GetExtent();
    m_Axis = MaxDimension - 1;
    while (m_Axis > 0 && extent[m_Axis] == 1)
    {
      --m_Axis;
    }
    std::string & layout = run["the layout of the store"];
    layout = this->GetGroupText();
    for (const ZarrLayout & level : m_Pyramid.levels)
    {
      layout += MakeArrayMetadata(level);
    }
    const fs::path  file = m_Folder.GetPath(".journal");
    const Journal   journal(file, m_Files.GetShown(), run);
    std::error_code error;
    // A journal that is refused stays.
    m_Folder.SetKept(fs::exists(file, error));
    m_Noted = journal.Read(this->GetUnit()[m_Axis], extent[m_Axis]);
    m_First = m_Synced = m_Written = m_Noted.planes;
    m_Folder.SetKept(m_First > 0);
    m_Done = this->GetPlanes(0, m_First).NumberOfVoxels();
    if (m_First > 0)
    {
      this->CheckFirst(journal);
    }
    // A note of another system does not count any more when this one writes.
    journal.Note(m_Noted);
    if (m_First == 0)
    {
      fs::remove_all(m_Root, error);
      journal.Write(m_Noted);
    }
    m_Files.ReplaceFiles();
    m_Journal = journal;
  }
  /** Calls `function` with each unit that an earlier run has written: its index and its box. */
  template <typename TFunction>
  void
  ForEachFirst(TFunction && function) const
  {
    const ZarrLayout & layout = m_Pyramid.levels.front();
    const ZarrGrid     grid(layout.array, layout.fileAxis);
    ZarrIndex          first;
    ZarrIndex          count;
    const std::int64_t units = grid.CountChunks(0, this->GetPlanes(0, m_First), first, count);
    for (std::int64_t i = 0; i < units; ++i)
    {
      const ZarrIndex index = GetZarrIndex(i, first, count);
      function(index, grid.GetBox(0, GetZarrOrigin(index, grid.GetLevel(0).chunk), Box::FromExtent(GetExtent())));
    }
  }
  /** A file that is missing would be zeros, and one that was cut is no chunk. */
  void
  CheckFirst(const Journal & journal) const
  {
    WrittenPart found{ m_First };
    this->ForEachFirst([&](const ZarrIndex & index, const Box &) {
      struct stat status = {};
      if (::stat(m_Pyramid.levels.front().array.GetChunkFile(index).c_str(), &status) == 0)
      {
        ++found.files;
        found.bytes += status.st_size;
      }
    });
    if (found.files != m_Noted.files || found.bytes != m_Noted.bytes)
    {
      const auto text = [](const WrittenPart & part) {
        return std::to_string(part.files) + " files of " + std::to_string(part.bytes) + " bytes";
      };
      journal.Refuse(m_Root.string() + " has " + text(found) + ", where the journal beside it tells of " +
                     text(m_Noted));
    }
  }
  /** Makes the levels below of the first one's voxels that an earlier run has written. */
  void
  ReduceFirst()
  {
    const auto source = OpenZarr(m_Root.string());
    if (source->GetExtent() != GetExtent() || source->GetKind() != GetKind())
    {
      Fail(m_Files.GetShown(), "the image in " + m_Root.string() + " is another one");
    }
    source->HoldAtMost(m_Held);
    std::vector<char> voxels;
    this->ForEachFirst([&](const ZarrIndex &, const Box & unit) {
      voxels.resize(static_cast<std::size_t>(unit.NumberOfVoxels()) * PixelSize(GetKind()));
      const BufferView view = DenseView(voxels.data(), GetKind(), unit);
      source->Read(unit, view);
      m_Writers.front()->Reduce(unit, view);
    });
  }
  /** Notes all planes of whole units. */
  void
  Note()
  {
    const std::int64_t unit = this->GetUnit()[m_Axis];
    const std::int64_t whole = m_Written == GetExtent()[m_Axis] ? m_Written : m_Written / unit * unit;
    if (whole > m_Noted.planes)
    {
      // Units that are not whole have no files yet.
      m_Noted = m_Writers.front()->GetFiles();
      m_Noted.planes = whole;
      m_Journal->Note(m_Noted);
      m_Folder.SetKept(true);
    }
    if (Clock::now() >= m_NextSync)
    {
      this->WriteJournal();
    }
  }
  void
  WriteJournal()
  {
    if (m_Noted.planes > m_Synced)
    {
      const auto start = Clock::now();
      this->Sync();
      m_Journal->Write(m_Noted);
      m_Synced = m_Noted.planes;
      m_NextSync = Clock::now() + PausesOfSync * (Clock::now() - start);
    }
  }

  /** All files are on the disk when it returns. */
  void
  Sync() const
  {
#ifdef __linux__
    const int folder = ::open(m_Root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int result = folder < 0 ? -1 : ::syncfs(folder);
    const int error = errno;
    if (folder >= 0)
    {
      ::close(folder);
    }
    if (result != 0)
    {
      FailWithErrno(m_Files.GetShown(), "cannot be written", error);
    }
#else
    ::sync();
#endif
  }

  ZarrPyramid                              m_Pyramid;
  OutputFolder                             m_Folder;
  fs::path                                 m_Root;
  ZarrFolder                               m_Files;
  std::uint64_t                            m_Held;
  ZarrTeam                                 m_Team;
  std::vector<std::unique_ptr<ZarrWriter>> m_Writers;
  std::unique_ptr<ZarrLevels>              m_Levels; ///< if the store is there and gets levels
  std::int64_t                             m_Count{ 0 };
  std::int64_t                             m_Done{ 0 };
  std::optional<Journal>                   m_Journal; ///< if a later run may go on
  int                                      m_Axis{ 0 };
  std::int64_t                             m_First{ 0 };   ///< planes that an earlier run has written
  std::int64_t                             m_Written{ 0 }; ///< planes
  WrittenPart                              m_Noted;        ///< whole units
  std::int64_t                             m_Synced{ 0 };  ///< planes that are on the disk
  Clock::time_point                        m_NextSync{ Clock::now() + BeforeSync };
  std::mutex                               m_Mutex;
};

} // namespace

void
CheckZarrOutput(const std::string & file, const ImageHeader & header, const OutputOptions & options)
{
  MakeZarrPyramid(file, header, options.zarr ? *options.zarr : ZarrOptions());
}

ImageAccess
GetZarrOutputAccess(const std::string & file, const ImageHeader & header, const OutputOptions & options)
{
  const ZarrPyramid  pyramid = MakeZarrPyramid(file, header, options.zarr ? *options.zarr : ZarrOptions());
  const ZarrLayout & layout = pyramid.levels.front();
  ImageAccess        access;
  access.unit = ZarrGrid(layout.array, layout.fileAxis).GetUnit(0, GetStoredExtent(header));
  access.wholeBoxes = true;
  access.heldBytes = ZarrMemory(pyramid, options.heldBytes).GetHeld();
  return access;
}

std::unique_ptr<FileSink>
CreateZarr(const ImageHeader & header, const Destination & destination, const OutputOptions & options,
           std::vector<std::string> losses)
{
  losses.erase(std::remove(losses.begin(), losses.end(), "the text of omero"), losses.end());
  return std::make_unique<ZarrSink>(header, destination, options, std::move(losses));
}

} // namespace chunkwise::files
