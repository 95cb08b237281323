/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileVoxels.h"
#include "fileZarr.h"
#include "fileZarrLabels.h"
#include "fileZarrLevels.h"
#include "fileZarrWriter.h"

#include <chrono>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <sys/stat.h>
#include <unistd.h>

namespace chunkwise::files
{

namespace
{

namespace fs = std::filesystem;

/** A run that can be resumed waits for the disk, so that it may also lose its power, after so many seconds, and when so
 * many times as long as the last such wait have passed. */
constexpr std::chrono::seconds BeforeSync{ 10 };
constexpr int                  PausesOfSync = 20;

/** Chunks, also those of shards: a shard is written in parts. */
Coordinates
GetUnitOfStreams(const ZarrPyramid & pyramid)
{
  const ZarrLayout & layout = pyramid.levels.front();
  const ZarrGrid     grid(layout.array, layout.fileAxis);
  return grid.GetUnit(grid.GetLast(), GetStoredExtent(pyramid.headers.front()));
}

class ZarrSink : public FileSink
{
  using Clock = std::chrono::steady_clock;

public:
  ZarrSink(const ImageHeader & header, const Destination & destination, const OutputOptions & options,
           std::vector<std::string> losses)
    : m_Pyramid(MakeZarrPyramid(destination.shown, header, options.zarr ? *options.zarr : ZarrOptions()))
    , m_Labels(m_Pyramid.isLabels ? std::make_unique<ZarrLabels>(destination.shown) : nullptr)
    , m_Folder(destination, !options.run.empty())
    , m_Root(m_Folder.GetPath(destination.file))
    , m_Files(destination.shown, m_Root, m_BytesWritten)
    , m_Memory(m_Pyramid, options.heldBytes)
    , m_Team(m_Memory)
  {
    m_Header = header;
    m_Losses = std::move(losses);
    if (options.zarr && options.zarr->addsLevels)
    {
      m_Levels = std::make_unique<ZarrLevels>(destination.shown, options.zarr->replacesLevels);
      m_Losses.clear();
    }
    m_Count = CountVoxels(destination.shown, header);
    m_Axis = GetPlaneAxis(GetExtent());
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
                                                       m_Axis,
                                                       m_Files,
                                                       m_Team,
                                                       m_Folder.GetPath(fs::path(".waiting" + std::to_string(i))),
                                                       m_Levels && i == 0));
      if (i > 0)
      {
        m_Writers[i - 1]->SetNext(*m_Writers[i], m_Pyramid.reducer, m_Pyramid.factors[i - 1], m_Memory.Gathers(i));
      }
    }
    if (!m_Levels)
    {
      this->WriteGroup();
    }
    m_Writers.front()->SetFiles(m_Noted);
    if (m_First > 0 && m_Writers.size() > 1)
    {
      this->ReducePlanes(m_Root.string(), 0, m_First);
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
    access.unit = GetUnitOfStreams(m_Pyramid);
    access.partsOfUnits = true;
    access.wholeBoxes = true;
    access.heldBytes = m_Memory.GetHeld();
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
    const std::int64_t all = GetExtent()[m_Axis];
    if (m_Pyramid.reducer == ZarrReducer::Gaussian && m_Writers.size() > 1 && m_Done == m_Count &&
        m_Writers.front()->GetSmoothedPlanes() < all)
    {
      this->ReducePlanes(m_Levels ? m_Files.GetShown() : m_Root.string(), m_Writers.front()->GetSmoothedPlanes(), all);
    }
    const bool isComplete =
      std::all_of(m_Writers.begin(), m_Writers.end(), [](const auto & writer) { return writer->Finish(); });
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
    if (m_Labels)
    {
      m_Labels->List();
    }
  }

private:
  /** Voxels of the chunks, or shards, that have a file. */
  Coordinates
  GetUnitOfFiles() const
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
    std::string &     layout = run["the layout of the store"];
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
    m_Noted = journal.Read(this->GetUnitOfFiles()[m_Axis], extent[m_Axis]);
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
  /** A file that is missing would be zeros, and one that was cut is no chunk. */
  void
  CheckFirst(const Journal & journal) const
  {
    const ZarrLayout & layout = m_Pyramid.levels.front();
    WrittenPart        found{ m_First };
    ZarrIndex          first;
    ZarrIndex          count;
    const std::int64_t files =
      ZarrGrid(layout.array, layout.fileAxis).CountChunks(0, this->GetPlanes(0, m_First), first, count);
    for (std::int64_t i = 0; i < files; ++i)
    {
      struct stat status = {};
      if (::stat(layout.array.GetChunkFile(GetZarrIndex(i, first, count)).c_str(), &status) == 0)
      {
        ++found.files;
        found.bytes += status.st_size;
      }
    }
    if (found.files != m_Noted.files || found.bytes != m_Noted.bytes)
    {
      const auto text = [](const WrittenPart & part) {
        return std::to_string(part.files) + " files of " + std::to_string(part.bytes) + " bytes";
      };
      journal.Refuse(m_Root.string() + " has " + text(found) + ", where the journal beside it tells of " +
                     text(m_Noted));
    }
  }
  /** Makes the levels below of planes of the first one that are in a store: planes that an earlier run has written, or
   * that Gaussian means need in their order. */
  void
  ReducePlanes(const std::string & store, std::int64_t begin, std::int64_t end)
  {
    const auto source = OpenZarr(store);
    if (source->GetExtent() != GetExtent() || source->GetKind() != GetKind())
    {
      Fail(m_Files.GetShown(), "the image in " + store + " is another one");
    }
    source->HoldAtMost(m_Memory.GetHeld());
    const std::int64_t layer = GetUnitOfStreams(m_Pyramid)[m_Axis];
    std::vector<char>  voxels;
    for (std::int64_t plane = begin; plane < end; plane = (plane / layer + 1) * layer)
    {
      const Box planes = this->GetPlanes(plane, std::min((plane / layer + 1) * layer, end));
      voxels.resize(static_cast<std::size_t>(planes.NumberOfVoxels()) * PixelSize(GetKind()));
      const BufferView view = DenseView(voxels.data(), GetKind(), planes);
      source->Read(planes, view);
      m_Writers.front()->Reduce(planes, view);
    }
  }
  /** Notes all planes of whole units. */
  void
  Note()
  {
    const std::int64_t unit = this->GetUnitOfFiles()[m_Axis];
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
  std::unique_ptr<ZarrLabels>              m_Labels; ///< if they come into a store that is there
  OutputFolder                             m_Folder;
  fs::path                                 m_Root;
  ZarrFolder                               m_Files;
  ZarrMemory                               m_Memory;
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
  const ZarrPyramid pyramid = MakeZarrPyramid(file, header, options.zarr ? *options.zarr : ZarrOptions());
  ImageAccess       access;
  access.unit = GetUnitOfStreams(pyramid);
  access.partsOfUnits = true;
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
