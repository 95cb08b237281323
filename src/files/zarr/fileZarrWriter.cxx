/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrWriter.h"

#include "fileVoxels.h"
#include "fileZarr.h"
#include "fileZarrValues.h"

#include <algorithm>
#include <cstring>

namespace chunkwise::files
{

namespace
{

/** Encoded chunks of shards that are in memory, for each thread: chunks differ in what they cost. */
constexpr std::uint64_t LeastChunksOfWorker = 2;
constexpr std::uint64_t MostChunksOfWorker = 4;
/** Voxels of chunks that are not complete yet and stay in memory; those beyond that wait in a file. */
constexpr std::uint64_t WaitingBytes = std::uint64_t{ 16 } << 20;
/** The memory that encoding may hold if nobody sets a limit. */
constexpr std::uint64_t EncodingBytes = std::uint64_t{ 1 } << 30;
/** Planes of a level that Gaussian means of the next one hold. */
constexpr std::int64_t PlanesOfGaussian = 12;
/** Shards whose files are open at once. */
constexpr std::int64_t OpenShardsAtOnce = 16;
/** Chunks whose places in the image are in memory at once. */
constexpr std::int64_t ChunksAtOnce = std::int64_t{ 1 } << 12;

} // namespace

int
GetPlaneAxis(const Coordinates & extent)
{
  int axis = MaxDimension - 1;
  while (axis > 0 && extent[axis] == 1)
  {
    --axis;
  }
  return axis;
}

ZarrMemory::ZarrMemory(const ZarrPyramid & pyramid, std::uint64_t most)
{
  const std::uint64_t limit = most == 0 ? EncodingBytes : most;
  const int           planeAxis = GetPlaneAxis(GetStoredExtent(pyramid.headers.front()));
  std::uint64_t       worker = 1;
  std::uint64_t       encoded = 1;
  ByteCount           waiting(0);
  for (std::size_t i = 0; i < pyramid.levels.size(); ++i)
  {
    const ZarrLayout &  layout = pyramid.levels[i];
    const ZarrGrid      grid(layout.array, layout.fileAxis);
    const auto &        codecs = layout.array.GetInnermost().codecs;
    const auto          size = static_cast<std::int64_t>(PixelSize(layout.array.kind));
    const std::uint64_t chunk = static_cast<std::uint64_t>(grid.CountVoxelsOfChunk(grid.GetLast()) * size);
    const bool          isSharded = layout.array.levels.front().isSharded;
    const std::uint64_t bound = GetZarrBound(codecs, chunk);
    worker = std::max(worker, chunk + GetZarrCoderBytes(codecs, chunk, true) + (isSharded ? 0 : bound));
    encoded = std::max(encoded, isSharded ? bound : 0);
    // Chunks that come in parts, one that is read again, and what one becomes in the next level.
    waiting = waiting + ByteCount::FromUnsigned(std::max(WaitingBytes, chunk) + 2 * chunk);
    ByteCount indices = isSharded ? grid.CountIndexBytes(0) : ByteCount(0);
    ByteCount layer(size);
    for (std::size_t a = 0; a < layout.fileAxis.size(); ++a)
    {
      const std::int64_t length = layout.array.shape[a];
      const bool         isPlaneAxis = layout.fileAxis[a] == planeAxis;
      layer = layer * (isPlaneAxis ? layout.array.GetInnermost().chunk[a] : length);
      indices = indices * (isPlaneAxis ? 1 : (length - 1) / layout.array.levels.front().chunk[a] + 1);
    }
    waiting = waiting + indices;
    m_Gathers.push_back(i > 0 && layer <= ByteCount::FromUnsigned(limit / 2));
    waiting = waiting + (m_Gathers.back() ? layer : ByteCount(0));
    if (pyramid.reducer == ZarrReducer::Gaussian)
    {
      // Planes that are kept, the planes that are kept next, planes of a window, and the plane that a window becomes.
      ByteCount plane(size);
      for (std::size_t a = 0; a < layout.fileAxis.size(); ++a)
      {
        plane = plane * (layout.fileAxis[a] == planeAxis ? 1 : layout.array.shape[a]);
      }
      waiting = waiting + plane * PlanesOfGaussian;
    }
  }
  const std::uint64_t threads =
    std::clamp<std::uint64_t>(limit / (worker + LeastChunksOfWorker * encoded), 1, GetMostThreadsOfZarr());
  const std::uint64_t left = limit - std::min(limit, threads * worker);
  m_Threads = static_cast<unsigned int>(threads);
  m_Buffers = static_cast<std::size_t>(
    std::clamp<std::uint64_t>(left / encoded, threads * LeastChunksOfWorker, threads * MostChunksOfWorker));
  m_Held = threads * worker + m_Buffers * encoded + static_cast<std::uint64_t>(waiting.Get());
}

ZarrTeam::ZarrTeam(const ZarrMemory & memory)
  : executor(MakeThreadExecutor(memory.GetThreads()))
  , workers(executor->GetConcurrency())
  , buffers(memory.GetBuffers())
{}

std::int64_t
ZarrSpool::Put(const std::vector<char> & voxels, const ZarrFolder & folder)
{
  if (m_Descriptor.GetNumber() < 0)
  {
    m_Descriptor = folder.CreateFile(m_File);
  }
  std::int64_t place = m_Places;
  if (m_Free.empty())
  {
    ++m_Places;
  }
  else
  {
    place = m_Free.back();
    m_Free.pop_back();
  }
  m_Descriptor.WriteAt(voxels.data(), voxels.size(), static_cast<std::uint64_t>(place) * m_BytesOfChunk);
  return place;
}

void
ZarrSpool::Get(std::int64_t place, std::vector<char> & voxels)
{
  m_Descriptor.ReadAt(voxels.data(), voxels.size(), static_cast<std::uint64_t>(place) * m_BytesOfChunk);
  const std::lock_guard<std::mutex> lock(m_Mutex);
  m_Free.push_back(place);
}

ZarrWriter::ZarrWriter(ZarrLayout layout, const Coordinates & extent, int planeAxis, const ZarrFolder & folder,
                       ZarrTeam & team, std::filesystem::path spool, bool isThere)
  : m_Layout(std::move(layout))
  , m_Grid(m_Layout.array, m_Layout.fileAxis)
  , m_Strides(m_Grid.GetStrides())
  , m_Extent(extent)
  , m_Kind(m_Layout.array.kind)
  , m_IsSharded(m_Layout.array.levels.front().isSharded && !isThere)
  , m_PlaneAxis(planeAxis)
  , m_Folder(folder)
  , m_Team(team)
  , m_ChunkBytes(static_cast<std::size_t>(m_Grid.CountVoxelsOfChunk(m_Grid.GetLast())) * PixelSize(m_Kind))
  , m_IsThere(isThere)
  , m_Spool(std::move(spool), m_ChunkBytes)
{
  // Chunks of a shard then come in the order of their ranks if planes of the image do.
  for (std::size_t a = 0; a < m_Grid.GetNumberOfAxes(); ++a)
  {
    m_Order.insert(m_Layout.fileAxis[a] == m_PlaneAxis ? m_Order.begin() : m_Order.end(), a);
  }
  if (m_IsThere)
  {
    return;
  }
  m_Folder.MakeFolder(m_Layout.array.folder);
  m_Folder.WriteText(m_Layout.array.folder / (m_Layout.array.version == 2 ? ".zarray" : "zarr.json"),
                     MakeArrayMetadata(m_Layout));
}

void
ZarrWriter::SetNext(ZarrWriter & next, ZarrReducer reducer, const Coordinates & factor, bool gathers)
{
  m_Next = &next;
  m_Reducer = reducer;
  m_Factor = factor;
  m_NextGathers = gathers;
}

void
ZarrWriter::Write(const Box & box, const BufferView & view)
{
  this->WritePart(box, view);
  this->Reduce(m_Reducer == ZarrReducer::Gaussian ? box : this->GetWholeChunks(box), view);
}

bool
ZarrWriter::Finish()
{
  this->WritePlanes();
  return m_Waiting.empty() && m_Shards.empty();
}

/** The chunk of a rank in a grid of `count` chunks from `first` on. */
ZarrIndex
ZarrWriter::GetIndex(std::int64_t rank, const ZarrIndex & first, const ZarrIndex & count) const
{
  ZarrIndex index(first);
  for (std::size_t i = m_Order.size(); i-- > 0;)
  {
    index[m_Order[i]] += rank % count[m_Order[i]];
    rank /= count[m_Order[i]];
  }
  return index;
}

std::int64_t
ZarrWriter::GetRank(const ZarrIndex & index, const OpenShard & shard) const
{
  std::int64_t rank = 0;
  for (const std::size_t a : m_Order)
  {
    rank = rank * shard.count[a] + index[a] - shard.first[a];
  }
  return rank;
}

ZarrWriter::Chunk
ZarrWriter::MakeChunk(ZarrIndex index, OpenShard * shard) const
{
  Chunk           chunk;
  const ZarrIndex origin = GetZarrOrigin(index, m_Layout.array.GetInnermost().chunk);
  chunk.box = m_Grid.GetBox(m_Grid.GetLast(), origin, Box::FromExtent(m_Extent));
  chunk.shard = shard;
  chunk.rank = shard ? this->GetRank(index, *shard) : 0;
  chunk.index = std::move(index);
  return chunk;
}

/** Encodes the voxels of `box`: pieces of it in the order of ranks. */
void
ZarrWriter::WritePart(const Box & box, const BufferView & view)
{
  ZarrIndex          first;
  ZarrIndex          count;
  const std::int64_t number = m_Grid.CountChunks(m_Grid.GetLast(), box, first, count);
  if (number > ChunksAtOnce)
  {
    const std::size_t a = *std::find_if(m_Order.begin(), m_Order.end(), [&](std::size_t i) { return count[i] > 1; });
    const int         axis = m_Layout.fileAxis[a];
    Box               before = box;
    Box               after = box;
    before.upper[axis] = after.lower[axis] = (first[a] + count[a] / 2) * m_Layout.array.GetInnermost().chunk[a];
    this->WritePart(before, view);
    this->WritePart(after, view);
    return;
  }
  if (!m_IsSharded)
  {
    std::vector<Chunk> chunks;
    for (std::int64_t i = 0; i < number; ++i)
    {
      chunks.push_back(this->MakeChunk(this->GetIndex(i, first, count), nullptr));
    }
    this->WriteChunks(chunks, box, view);
    return;
  }
  const std::int64_t shards = m_Grid.CountChunks(0, box, first, count);
  for (std::int64_t i = 0; i < shards; i += OpenShardsAtOnce)
  {
    std::vector<OpenShard *> those;
    for (std::int64_t k = i; k < std::min(i + OpenShardsAtOnce, shards); ++k)
    {
      those.push_back(&this->GetShard(this->GetIndex(k, first, count)));
    }
    this->WriteChunks(this->ListChunks(those, box), box, view);
    this->FinishShards(those);
  }
}

ZarrWriter::OpenShard &
ZarrWriter::GetShard(const ZarrIndex & index)
{
  OpenShard & shard = m_Shards[index];
  if (!shard.shard)
  {
    shard.index = index;
    shard.box = m_Grid.GetBox(0, GetZarrOrigin(index, m_Layout.array.levels.front().chunk), Box::FromExtent(m_Extent));
    const std::int64_t number = m_Grid.CountChunks(1, shard.box, shard.first, shard.count);
    shard.shard = std::make_unique<ZarrShard>(
      m_Layout.array.GetChunkFile(index), number, static_cast<std::size_t>(m_Grid.CountIndexBytes(0).Get()));
  }
  return shard;
}

/** The chunks that `box` touches, those of a shard in the order of their ranks. Shards take turns, so that their files
 * are written side by side. */
std::vector<ZarrWriter::Chunk>
ZarrWriter::ListChunks(const std::vector<OpenShard *> & shards, const Box & box) const
{
  struct Part
  {
    ZarrIndex    first;
    ZarrIndex    count;
    std::int64_t number{ 0 };
  };
  std::vector<Part> parts(shards.size());
  std::int64_t      most = 0;
  for (std::size_t s = 0; s < shards.size(); ++s)
  {
    Part & part = parts[s];
    part.number = m_Grid.CountChunks(1, Intersect(shards[s]->box, box), part.first, part.count);
    most = std::max(most, part.number);
  }
  std::vector<Chunk> chunks;
  for (std::int64_t i = 0; i < most; ++i)
  {
    for (std::size_t s = 0; s < shards.size(); ++s)
    {
      if (i < parts[s].number)
      {
        chunks.push_back(this->MakeChunk(this->GetIndex(i, parts[s].first, parts[s].count), shards[s]));
      }
    }
  }
  return chunks;
}

/** Writes chunks in batches: what waits of one has room in memory. */
void
ZarrWriter::WriteChunks(const std::vector<Chunk> & chunks, const Box & box, const BufferView & view)
{
  std::size_t   begin = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i)
  {
    bytes += box.Contains(chunks[i].box) ? 0 : m_ChunkBytes;
    if (i > begin && bytes > WaitingBytes)
    {
      this->WriteBatch(chunks.data() + begin, chunks.data() + i, box, view);
      begin = i;
      bytes = m_ChunkBytes;
    }
  }
  this->WriteBatch(chunks.data() + begin, chunks.data() + chunks.size(), box, view);
}

void
ZarrWriter::WriteBatch(const Chunk * begin, const Chunk * end, const Box & box, const BufferView & view)
{
  std::vector<Work> works;
  std::vector<Work> kept;
  for (const Chunk * chunk = begin; chunk != end; ++chunk)
  {
    const bool isNext = !chunk->shard || chunk->shard->shard->GetNext() == chunk->rank;
    Work       work{ *chunk, m_Waiting.end() };
    if (!isNext || !box.Contains(chunk->box))
    {
      work.waiting = m_Waiting.try_emplace(chunk->index).first;
      work.waiting->second.count += Intersect(chunk->box, box).NumberOfVoxels();
      work.waiting->second.isInUse = true;
      kept.push_back(work);
    }
    if (isNext && this->IsComplete(work))
    {
      works.push_back(work);
      if (chunk->shard)
      {
        chunk->shard->shard->TakeNext();
        this->FollowShard(*chunk->shard, works);
      }
    }
  }
  if (!kept.empty())
  {
    this->CopyToWaiting(kept, box, view);
  }
  for (const Work & work : kept)
  {
    // Chunks that are whole in the box are reduced together.
    if (m_Next && m_Reducer != ZarrReducer::Gaussian && this->IsComplete(work) && !box.Contains(work.chunk.box))
    {
      this->ReduceChunk(work.chunk.box, DenseView(work.waiting->second.voxels.data(), m_Kind, work.chunk.box));
    }
  }
  if (!m_IsThere)
  {
    this->EncodeAll(works, view);
  }
  for (const Work & work : kept)
  {
    work.waiting->second.isInUse = false;
    m_Oldest.push_back(work.chunk.index);
  }
  for (const Work & work : works)
  {
    if (work.waiting != m_Waiting.end())
    {
      m_InMemory -= work.waiting->second.voxels.size();
      m_Waiting.erase(work.waiting);
    }
  }
  while (!m_Oldest.empty() && m_Waiting.count(m_Oldest.front()) == 0)
  {
    m_Oldest.pop_front();
  }
}

bool
ZarrWriter::IsComplete(const Work & work) const
{
  return work.waiting == m_Waiting.end() || work.waiting->second.count == work.chunk.box.NumberOfVoxels();
}

/** Adds the chunks of a shard that waited for those before them. */
void
ZarrWriter::FollowShard(OpenShard & shard, std::vector<Work> & works)
{
  while (!m_Waiting.empty() && !shard.shard->IsTaken())
  {
    Work work{ this->MakeChunk(this->GetIndex(shard.shard->GetNext(), shard.first, shard.count), &shard), {} };
    work.waiting = m_Waiting.find(work.chunk.index);
    if (work.waiting == m_Waiting.end() || !this->IsComplete(work))
    {
      return;
    }
    works.push_back(work);
    shard.shard->TakeNext();
  }
}

/** Copies the voxels of `box` to the chunks that wait for the rest of theirs. */
void
ZarrWriter::CopyToWaiting(const std::vector<Work> & kept, const Box & box, const BufferView & view)
{
  const std::size_t size = PixelSize(m_Kind);
  std::uint64_t     bytes = 0;
  for (const Work & work : kept)
  {
    bytes +=
      work.waiting->second.voxels.empty() ? static_cast<std::uint64_t>(work.chunk.box.NumberOfVoxels()) * size : 0;
  }
  this->MakeRoom(bytes);
  m_InMemory += bytes;
  m_Team.executor->ParallelFor(static_cast<std::int64_t>(kept.size()), [&](std::int64_t i, unsigned int) {
    const Work &   work = kept[static_cast<std::size_t>(i)];
    WaitingChunk & waiting = work.waiting->second;
    if (waiting.voxels.empty())
    {
      waiting.voxels.resize(static_cast<std::size_t>(work.chunk.box.NumberOfVoxels()) * size);
      this->Load(waiting, waiting.voxels);
    }
    CopyBox(Intersect(work.chunk.box, box), view, DenseView(waiting.voxels.data(), m_Kind, work.chunk.box));
  });
}

/** Moves chunks from memory to a file until there is room for so many bytes. */
void
ZarrWriter::MakeRoom(std::uint64_t bytes)
{
  for (std::size_t left = m_Oldest.size(); left > 0 && m_InMemory > 0 && m_InMemory + bytes > WaitingBytes; --left)
  {
    const ZarrIndex oldest = m_Oldest.front();
    m_Oldest.pop_front();
    const auto found = m_Waiting.find(oldest);
    if (found == m_Waiting.end() || found->second.voxels.empty() || found->second.isInUse)
    {
      continue;
    }
    WaitingChunk & waiting = found->second;
    waiting.place = m_Spool.Put(waiting.voxels, m_Folder);
    m_InMemory -= waiting.voxels.size();
    std::vector<char>().swap(waiting.voxels);
  }
}

/** Reads a chunk that waits in a file; nothing for another. */
void
ZarrWriter::Load(WaitingChunk & waiting, std::vector<char> & voxels)
{
  if (waiting.place >= 0)
  {
    m_Spool.Get(waiting.place, voxels);
    waiting.place = -1;
  }
}

void
ZarrWriter::EncodeAll(const std::vector<Work> & works, const BufferView & view)
{
  if (!m_IsSharded)
  {
    m_Team.executor->ParallelFor(static_cast<std::int64_t>(works.size()), [&](std::int64_t i, unsigned int worker) {
      this->WriteChunkFile(works[static_cast<std::size_t>(i)], view, m_Team.workers[worker]);
    });
    return;
  }
  if (m_Team.buffers.HasFailed())
  {
    throw std::logic_error(m_Folder.GetShown() + ": a chunk could not be written before");
  }
  std::atomic<std::int64_t> next{ 0 };
  m_Team.executor->ParallelFor(static_cast<std::int64_t>(std::min(works.size(), m_Team.workers.size())),
                               [&](std::int64_t, unsigned int worker) {
                                 try
                                 {
                                   this->AppendNext(works, next, view, m_Team.workers[worker]);
                                 }
                                 catch (...)
                                 {
                                   m_Team.buffers.Fail();
                                   throw;
                                 }
                               });
}

/** Encodes chunks until none is left. */
void
ZarrWriter::AppendNext(const std::vector<Work> & works, std::atomic<std::int64_t> & next, const BufferView & view,
                       Worker & worker)
{
  std::vector<char> encoded;
  // The buffer first: whoever has a chunk has one, and so the chunk for which others wait is written.
  while (m_Team.buffers.Take(encoded))
  {
    const auto i = static_cast<std::size_t>(next++);
    if (i >= works.size())
    {
      m_Team.buffers.GiveBack(encoded);
      return;
    }
    const Chunk & chunk = works[i].chunk;
    if (!this->Encode(works[i], view, worker, encoded))
    {
      encoded.clear();
    }
    const ZarrIndex inner = m_Grid.GetInner(0);
    ZarrIndex       at(chunk.index);
    for (std::size_t a = 0; a < at.size(); ++a)
    {
      at[a] %= inner[a];
    }
    chunk.shard->shard->Append(chunk.rank, m_Grid.GetPlaceInIndex(0, at), encoded, m_Folder, m_Team.buffers);
  }
}

/** The voxels of a chunk as they are encoded; 0 beyond the image. */
void
ZarrWriter::LoadVoxels(const Work & work, const BufferView & view, Worker & worker)
{
  const std::size_t size = PixelSize(m_Kind);
  const Box &       box = work.chunk.box;
  worker.voxels.resize(m_ChunkBytes);
  if (static_cast<std::size_t>(box.NumberOfVoxels()) * size != m_ChunkBytes)
  {
    std::memset(worker.voxels.data(), 0, m_ChunkBytes);
  }
  const auto copy = [&](const BufferView & from) {
    CopyStrided(size,
                box.Extents(),
                static_cast<const char *>(from.data) + from.Offset(box.lower) * static_cast<std::int64_t>(size),
                from.stride,
                worker.voxels.data(),
                m_Strides);
  };
  if (work.waiting == m_Waiting.end())
  {
    copy(view);
  }
  else if (work.waiting->second.place < 0)
  {
    copy(DenseView(work.waiting->second.voxels.data(), m_Kind, box));
  }
  else
  {
    const std::lock_guard<std::mutex> lock(m_LoadMutex);
    m_Loaded.resize(static_cast<std::size_t>(box.NumberOfVoxels()) * size);
    this->Load(work.waiting->second, m_Loaded);
    copy(DenseView(m_Loaded.data(), m_Kind, box));
  }
}

/** Returns false if all bytes of the chunk are 0, which need not be stored. */
bool
ZarrWriter::Encode(const Work & work, const BufferView & view, Worker & worker, std::vector<char> & encoded)
{
  this->LoadVoxels(work, view, worker);
  const char * const begin = worker.voxels.data();
  if (begin[0] == 0 && std::memcmp(begin, begin + 1, m_ChunkBytes - 1) == 0)
  {
    return false;
  }
  worker.coder.Encode(m_Layout.array.GetInnermost().codecs, begin, m_ChunkBytes, encoded);
  return true;
}

void
ZarrWriter::WriteChunkFile(const Work & work, const BufferView & view, Worker & worker)
{
  if (this->Encode(work, view, worker, worker.encoded))
  {
    Descriptor file = m_Folder.CreateFile(m_Layout.array.GetChunkFile(work.chunk.index));
    file.WriteAt(worker.encoded.data(), worker.encoded.size(), 0);
    file.Close();
    this->CountFile(worker.encoded.size());
  }
}

/** Ends the files of complete shards. Others stay open if they are few. */
void
ZarrWriter::FinishShards(const std::vector<OpenShard *> & shards)
{
  for (OpenShard * const open : shards)
  {
    if (open->shard->IsComplete())
    {
      const std::uint64_t bytes = open->shard->Finish(m_Folder);
      if (bytes > 0)
      {
        this->CountFile(bytes);
      }
      m_Shards.erase(ZarrIndex(open->index));
    }
    else if (static_cast<std::int64_t>(m_Shards.size()) > OpenShardsAtOnce)
    {
      open->shard->Close();
    }
  }
}

void
ZarrWriter::CountFile(std::uint64_t bytes)
{
  m_Folder.CountBytes(bytes);
  ++m_Files;
  m_Bytes += static_cast<std::int64_t>(bytes);
}

// The next level.

/** The part of `box` that is whole chunks. */
Box
ZarrWriter::GetWholeChunks(const Box & box) const
{
  Box whole = box;
  for (std::size_t i = 0; i < m_Layout.fileAxis.size(); ++i)
  {
    const int a = m_Layout.fileAxis[i];
    if (a >= 0)
    {
      const std::int64_t chunk = m_Layout.array.GetInnermost().chunk[i];
      whole.lower[a] = (box.lower[a] + chunk - 1) / chunk * chunk;
      whole.upper[a] = box.upper[a] == m_Extent[a] ? box.upper[a] : box.upper[a] / chunk * chunk;
    }
  }
  return whole;
}

void
ZarrWriter::Reduce(const Box & chunks, const BufferView & view)
{
  if (!m_Next || chunks.IsEmpty())
  {
    return;
  }
  if (m_Reducer == ZarrReducer::Gaussian)
  {
    return this->Smooth(chunks, view);
  }
  Box planes = Box::FromExtent(m_Extent);
  planes.lower[m_PlaneAxis] = chunks.lower[m_PlaneAxis];
  planes.upper[m_PlaneAxis] = chunks.upper[m_PlaneAxis];
  const std::int64_t length = m_Grid.GetUnit(m_Grid.GetLast(), m_Extent)[m_PlaneAxis];
  for (Box layer = chunks; layer.lower[m_PlaneAxis] < chunks.upper[m_PlaneAxis]; layer.lower[m_PlaneAxis] += length)
  {
    layer.upper[m_PlaneAxis] = std::min(layer.lower[m_PlaneAxis] + length, chunks.upper[m_PlaneAxis]);
    if (m_NextGathers && chunks == planes && this->ReduceToPlanes(layer, view))
    {
      continue;
    }
    ZarrIndex          first;
    ZarrIndex          count;
    const std::int64_t number = m_Grid.CountChunks(m_Grid.GetLast(), layer, first, count);
    for (std::int64_t i = 0; i < number; ++i)
    {
      this->ReduceChunk(this->MakeChunk(this->GetIndex(i, first, count), nullptr).box, view);
    }
  }
}

void
ZarrWriter::ReduceChunk(const Box & chunk, const BufferView & view)
{
  const Box reduced = GetReducedBox(chunk, m_Factor);
  m_Reduced.resize(static_cast<std::size_t>(reduced.NumberOfVoxels()) * PixelSize(m_Kind));
  const BufferView to = DenseView(m_Reduced.data(), m_Kind, reduced);
  ReduceLevel(m_Reducer, m_Extent, view, m_Factor, to, *m_Team.executor);
  m_Next->Write(reduced, to);
}

/** Reduces a layer of chunks to planes that the next level gathers. False: nothing is done, it cannot take them so. */
bool
ZarrWriter::ReduceToPlanes(const Box & layer, const BufferView & view)
{
  const Box    reduced = GetReducedBox(layer, m_Factor);
  void * const planes = m_Next->TakePlanes(reduced);
  if (!planes)
  {
    return false;
  }
  ReduceLevel(m_Reducer, m_Extent, view, m_Factor, DenseView(planes, m_Kind, reduced), *m_Team.executor);
  const std::int64_t length = m_Next->m_Grid.GetUnit(m_Next->m_Grid.GetLast(), m_Next->m_Extent)[m_PlaneAxis];
  const std::int64_t end = reduced.upper[m_PlaneAxis];
  if (end % length == 0 || end == m_Next->m_Extent[m_PlaneAxis])
  {
    m_Next->WritePlanes();
  }
  return true;
}

/** Gaussian means of planes that follow those before; nothing of others, which are read again at the end. */
void
ZarrWriter::Smooth(const Box & box, const BufferView & view)
{
  const int          a = m_PlaneAxis;
  const std::int64_t factor = m_Factor[a];
  const std::int64_t reach = GetReachOfLevel(factor);
  Box                planes = Box::FromExtent(m_Extent);
  planes.lower[a] = m_Smoothed.upper[a];
  planes.upper[a] = box.upper[a];
  if (!(box == planes))
  {
    return;
  }
  const bool         isLast = box.upper[a] == m_Extent[a];
  const std::int64_t end = isLast ? m_Next->m_Extent[a] : std::max<std::int64_t>(0, (box.upper[a] - reach) / factor);
  // Planes whose windows begin in planes of before, one after the other.
  std::vector<char> gathered;
  for (; m_Made < end && std::max<std::int64_t>(0, m_Made * factor - reach) < box.lower[a]; ++m_Made)
  {
    planes.lower[a] = std::max<std::int64_t>(0, m_Made * factor - reach);
    planes.upper[a] = std::min(m_Extent[a], (m_Made + 1) * factor + reach);
    this->GatherPlanes(planes, view, gathered);
    this->SmoothToPlanes(m_Made, m_Made + 1, DenseView(gathered.data(), m_Kind, planes));
  }
  if (m_Made < end)
  {
    this->SmoothToPlanes(m_Made, end, view);
    m_Made = end;
  }
  planes.lower[a] = isLast ? box.upper[a] : std::max<std::int64_t>(0, m_Made * factor - reach);
  planes.upper[a] = box.upper[a];
  this->GatherPlanes(planes, view, gathered);
  m_KeptVoxels.swap(gathered);
  m_Kept = planes;
  m_Smoothed = box;
  m_Smoothed.lower[a] = 0;
}

/** Copies whole planes that are kept, or in `view`. */
void
ZarrWriter::GatherPlanes(const Box & planes, const BufferView & view, std::vector<char> & to) const
{
  to.resize(static_cast<std::size_t>(planes.NumberOfVoxels()) * PixelSize(m_Kind));
  const BufferView target = DenseView(to.data(), m_Kind, planes);
  const Box        kept = Intersect(planes, m_Kept);
  if (!kept.IsEmpty())
  {
    CopyBox(kept, DenseView(const_cast<char *>(m_KeptVoxels.data()), m_Kind, m_Kept), target);
  }
  const Box now = Intersect(planes, view.box);
  if (!now.IsEmpty())
  {
    CopyBox(now, view, target);
  }
}

/** Makes planes of the next level from `view`, which has all that they need. */
void
ZarrWriter::SmoothToPlanes(std::int64_t lower, std::int64_t upper, const BufferView & view)
{
  const int          a = m_PlaneAxis;
  const std::int64_t length = m_Next->m_Grid.GetUnit(m_Next->m_Grid.GetLast(), m_Next->m_Extent)[a];
  while (lower < upper)
  {
    Box planes = Box::FromExtent(m_Next->m_Extent);
    planes.lower[a] = lower;
    planes.upper[a] = std::min(upper, (lower / length + 1) * length);
    void * const room = m_NextGathers ? m_Next->TakePlanes(planes) : nullptr;
    if (!room)
    {
      planes.upper[a] = lower + 1;
      m_Reduced.resize(static_cast<std::size_t>(planes.NumberOfVoxels()) * PixelSize(m_Kind));
    }
    const BufferView to = DenseView(room ? room : m_Reduced.data(), m_Kind, planes);
    ReduceLevel(m_Reducer, m_Extent, view, m_Factor, to, *m_Team.executor);
    lower = planes.upper[a];
    if (!room)
    {
      m_Next->Write(planes, to);
    }
    else if (lower % length == 0 || lower == m_Next->m_Extent[a])
    {
      m_Next->WritePlanes();
    }
  }
}

/** Room for planes of one layer of chunks, its first planes, or planes that continue what is gathered; else nothing. */
void *
ZarrWriter::TakePlanes(const Box & planes)
{
  const std::int64_t length = m_Grid.GetUnit(m_Grid.GetLast(), m_Extent)[m_PlaneAxis];
  const std::int64_t lower = planes.lower[m_PlaneAxis];
  if (m_Planes.IsEmpty() || lower != m_Planes.upper[m_PlaneAxis])
  {
    this->WritePlanes();
    if (lower % length != 0)
    {
      return nullptr;
    }
    m_Planes = planes;
    m_Planes.upper[m_PlaneAxis] = lower;
  }
  const std::int64_t begin = m_Planes.lower[m_PlaneAxis];
  if (planes.upper[m_PlaneAxis] > begin + length)
  {
    this->WritePlanes();
    return nullptr;
  }
  const std::size_t bytes =
    static_cast<std::size_t>(planes.NumberOfVoxels() / planes.Extent(m_PlaneAxis)) * PixelSize(m_Kind);
  m_Gathered.resize(bytes * static_cast<std::size_t>(length));
  m_Planes.upper[m_PlaneAxis] = planes.upper[m_PlaneAxis];
  return m_Gathered.data() + bytes * static_cast<std::size_t>(lower - begin);
}

/** Writes what is gathered. */
void
ZarrWriter::WritePlanes()
{
  const Box planes = m_Planes;
  m_Planes = Box{};
  if (!planes.IsEmpty())
  {
    this->Write(planes, DenseView(m_Gathered.data(), m_Kind, planes));
  }
}

} // namespace chunkwise::files
