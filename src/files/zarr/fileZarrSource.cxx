/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExecutor.h"
#include "chunkwiseHostMemory.h"
#include "fileByteCount.h"
#include "fileVoxels.h"
#include "fileZarr.h"
#include "fileZarrGrid.h"
#include "fileZarrValues.h"
#include "fileZarrZip.h"

#include <map>
#include <mutex>
#include <optional>

namespace chunkwise::files
{

namespace
{

/** Shards that are open at once: so many keep all threads busy at the end of one. */
constexpr std::int64_t ShardsAtOnce = 16;
/** Indices of shards that are in memory at once. */
constexpr std::int64_t IndexBytesAtOnce = std::int64_t{ 4 } << 20;
/** The memory that decoding may hold if nobody sets a limit. */
constexpr std::uint64_t DecodingBytes = std::uint64_t{ 1 } << 30;

std::string
ListIndex(const ZarrIndex & index)
{
  std::string text;
  for (const std::int64_t i : index)
  {
    text += (text.empty() ? "" : ", ") + std::to_string(i);
  }
  return "(" + text + ")";
}

/** A chunk in a file: all of it, or a part of a shard. */
struct ZarrPlace
{
  const Descriptor * file{ nullptr };
  std::uint64_t      offset{ 0 };
  std::uint64_t      bytes{ 0 };
  ZipSum *           sum{ nullptr }; ///< of the file, if it is in an archive

  /** A part of it. */
  void
  Read(std::vector<char> & to, std::uint64_t at) const
  {
    file->ReadAt(to.data(), to.size(), at);
    if (sum)
    {
      sum->Add(to.data(), to.size(), at);
    }
  }
};

/** The places of the chunks of a shard. */
class ShardIndex
{
public:
  ShardIndex(const ZarrGrid & grid, std::size_t level, const ZarrPlace & shard)
    : m_Shard(shard)
  {
    const ZarrLevel &   about = grid.GetLevel(level);
    const ByteCount     needed = grid.CountIndexBytes(level);
    const std::string & name = shard.file->GetName();
    if (!needed.IsCountable() || static_cast<std::uint64_t>(needed.Get()) > shard.bytes)
    {
      Fail(name,
           "the shard has " + std::to_string(shard.bytes) + " bytes, too few for its index of " +
             (needed.IsCountable() ? std::to_string(needed.Get()) + " bytes" : "more bytes than can be counted"));
    }
    m_Bytes.resize(static_cast<std::size_t>(needed.Get()));
    shard.Read(m_Bytes, shard.offset + (about.indexIsAtEnd ? shard.bytes - m_Bytes.size() : 0));
    if (about.indexHasChecksum)
    {
      const std::size_t size = m_Bytes.size() - 4;
      std::uint32_t     sum = 0;
      for (std::size_t i = 4; i-- > 0;)
      {
        sum = sum << 8 | static_cast<unsigned char>(m_Bytes[size + i]);
      }
      if (GetCrc32c(m_Bytes.data(), size) != sum)
      {
        Fail(name, "the checksum of the shard's index is wrong");
      }
      m_Bytes.resize(size);
    }
    if (about.indexIsBigEndian != IsBigEndianMachine())
    {
      SwapBytes(m_Bytes.data(), m_Bytes.data(), m_Bytes.size() / 8, 8);
    }
  }
  /** Nothing for a chunk that is not there. */
  std::optional<ZarrPlace>
  Find(std::int64_t place, const ZarrIndex & at) const
  {
    std::uint64_t numbers[2];
    std::memcpy(numbers, m_Bytes.data() + static_cast<std::size_t>(place) * sizeof(numbers), sizeof(numbers));
    if (numbers[0] == UINT64_MAX && numbers[1] == UINT64_MAX)
    {
      return std::nullopt;
    }
    if (numbers[0] > m_Shard.bytes || numbers[1] > m_Shard.bytes - numbers[0])
    {
      Fail(m_Shard.file->GetName(),
           "its index says that chunk " + ListIndex(at) + " is at byte " + std::to_string(numbers[0]) + " with " +
             std::to_string(numbers[1]) + " bytes, beyond the " + std::to_string(m_Shard.bytes) + " of the shard");
    }
    return ZarrPlace{ m_Shard.file, m_Shard.offset + numbers[0], numbers[1], m_Shard.sum };
  }

private:
  ZarrPlace         m_Shard;
  std::vector<char> m_Bytes;
};

/** A shard that is read. */
struct OpenShard
{
  ZarrIndex                 index;
  Descriptor                file;
  std::optional<ShardIndex> places;
  ZarrIndex                 first; ///< chunks of it that are wanted
  ZarrIndex                 count;
  std::int64_t              number{ 0 };
};

class ZarrSource : public FileSource
{
public:
  explicit ZarrSource(ZarrImage image)
    : m_Array(std::move(image.array))
    , m_Grid(m_Array, std::move(image.fileAxis))
    , m_Strides(m_Grid.GetStrides())
  {
    m_Header = std::move(image.header);
    m_Files = std::move(image.files);
    m_Warnings = std::move(image.warnings);
    m_Voxels = m_Grid.CountVoxelsOfChunk(m_Grid.GetLast());
    m_ChunkBytes = static_cast<std::uint64_t>(m_Voxels) * m_Array.GetStoredSize();
    this->HoldAtMost(DecodingBytes);
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.unit = m_Grid.GetUnit(m_Grid.GetLast(), GetExtent());
    access.wholeBoxes = true;
    access.heldBytes = m_Threads * this->GetBytesOfWorker() + this->GetBytesOfIndices();
    return access;
  }
  void
  HoldAtMost(std::uint64_t bytes) override
  {
    m_Threads =
      static_cast<unsigned int>(std::clamp<std::uint64_t>(bytes / this->GetBytesOfWorker(), 1, GetMostThreadsOfZarr()));
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    if (box.IsEmpty())
    {
      return;
    }
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (!m_Executor)
    {
      m_Executor = MakeThreadExecutor(m_Threads);
    }
    m_Workers.resize(m_Executor->GetConcurrency());
    ZarrIndex          first;
    ZarrIndex          count;
    const std::int64_t chunks = m_Grid.CountChunks(0, box, first, count);
    if (!m_Grid.GetLevel(0).isSharded)
    {
      m_Executor->ParallelFor(chunks, [&](std::int64_t i, unsigned int worker) {
        this->ReadChunkFile(GetZarrIndex(i, first, count), { box, view, worker });
      });
      return;
    }
    const std::int64_t atOnce =
      std::clamp<std::int64_t>(IndexBytesAtOnce / m_Grid.CountIndexBytes(0).Get(), 1, ShardsAtOnce);
    for (std::int64_t i = 0; i < chunks; i += atOnce)
    {
      std::vector<OpenShard> shards(static_cast<std::size_t>(std::min(atOnce, chunks - i)));
      for (std::size_t s = 0; s < shards.size(); ++s)
      {
        shards[s].index = GetZarrIndex(i + static_cast<std::int64_t>(s), first, count);
      }
      this->ReadShards(shards, box, view);
    }
  }

private:
  /** Memory of one thread. */
  struct Worker
  {
    ZarrCoder         coder;
    std::vector<char> encoded;
    std::vector<char> decoded;
    std::vector<char> converted;
  };
  /** A read of a box, and the worker that does it. */
  struct Task
  {
    const Box &        box;
    const BufferView & view;
    unsigned int       worker;
  };

  std::uint64_t
  GetBytesOfWorker() const
  {
    const auto &        codecs = m_Array.GetInnermost().codecs;
    const std::uint64_t converted =
      m_Array.value == ZarrValue::Half ? static_cast<std::uint64_t>(m_Voxels) * PixelSize(m_Header.kind) : 0;
    std::uint64_t ofIndices = 0;
    for (std::size_t level = 1; level < m_Grid.GetLast(); ++level)
    {
      ofIndices += static_cast<std::uint64_t>(m_Grid.CountIndexBytes(level).Get());
    }
    return (codecs.empty() ? 0 : GetZarrBound(codecs, m_ChunkBytes)) + m_ChunkBytes + converted + ofIndices +
           GetZarrCoderBytes(codecs, m_ChunkBytes, false);
  }
  std::uint64_t
  GetBytesOfIndices() const
  {
    return m_Grid.GetLevel(0).isSharded
             ? static_cast<std::uint64_t>(std::max(IndexBytesAtOnce, m_Grid.CountIndexBytes(0).Get()))
             : 0;
  }
  /** Nothing if there is no such file: its voxels have the fill value. */
  std::optional<ZarrFile>
  OpenChunkFile(const ZarrIndex & index) const
  {
    return OpenZarrFile(m_Array.GetChunkFile(index));
  }
  /** The checksum of a shard, which several calls read in parts. */
  ZipSum *
  GetSum(const ZarrIndex & index, const ZarrFile & about, const Descriptor & file)
  {
    if (!about.sum)
    {
      return nullptr;
    }
    const std::lock_guard<std::mutex> lock(m_SumMutex);
    std::unique_ptr<ZipSum> &         sum = m_Sums[index];
    if (!sum)
    {
      sum = std::make_unique<ZipSum>(about, file.GetName());
    }
    return sum.get();
  }
  void
  ReadChunkFile(const ZarrIndex & index, const Task & task)
  {
    const ZarrIndex origin = GetZarrOrigin(index, m_Grid.GetLevel(0).chunk);
    const auto      file = this->OpenChunkFile(index);
    if (!file)
    {
      return this->Fill(m_Grid.GetBox(0, origin, task.box), task.view);
    }
    ZarrPlace place{ &file->file, file->offset, file->bytes };
    if (file->sum)
    {
      ZipSum sum(*file, file->file.GetName());
      place.sum = &sum;
      return this->ReadChunk(0, origin, place, task);
    }
    this->ReadChunk(0, origin, place, task);
  }
  void
  ReadShards(std::vector<OpenShard> & shards, const Box & box, const BufferView & view)
  {
    m_Executor->ParallelFor(static_cast<std::int64_t>(shards.size()), [&](std::int64_t i, unsigned int) {
      OpenShard &     shard = shards[static_cast<std::size_t>(i)];
      const ZarrIndex origin = GetZarrOrigin(shard.index, m_Grid.GetLevel(0).chunk);
      const Box       part = m_Grid.GetBox(0, origin, box);
      auto            file = this->OpenChunkFile(shard.index);
      if (!file)
      {
        return this->Fill(part, view);
      }
      shard.file = std::move(file->file);
      shard.places.emplace(
        m_Grid, 0, ZarrPlace{ &shard.file, file->offset, file->bytes, this->GetSum(shard.index, *file, shard.file) });
      m_BytesRead += static_cast<std::uint64_t>(m_Grid.CountIndexBytes(0).Get());
      shard.number = m_Grid.CountChunks(1, part, shard.first, shard.count);
    });
    std::vector<std::int64_t> begins(1, 0);
    for (const OpenShard & shard : shards)
    {
      begins.push_back(begins.back() + shard.number);
    }
    m_Executor->ParallelFor(begins.back(), [&](std::int64_t i, unsigned int worker) {
      const auto s = static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), i) - begins.begin()) - 1;
      const OpenShard & shard = shards[s];
      this->ReadInner(0, *shard.places, GetZarrIndex(i - begins[s], shard.first, shard.count), { box, view, worker });
    });
  }
  /** A chunk of the level below `level`, by its number in the image. */
  void
  ReadInner(std::size_t level, const ShardIndex & places, const ZarrIndex & index, const Task & task)
  {
    const ZarrIndex inner = m_Grid.GetInner(level);
    ZarrIndex       at(index);
    for (std::size_t i = 0; i < at.size(); ++i)
    {
      at[i] %= inner[i];
    }
    const ZarrIndex origin = GetZarrOrigin(index, m_Grid.GetLevel(level + 1).chunk);
    const auto      place = places.Find(m_Grid.GetPlaceInIndex(level, at), at);
    if (!place)
    {
      return this->Fill(m_Grid.GetBox(level + 1, origin, task.box), task.view);
    }
    this->ReadChunk(level + 1, origin, *place, task);
  }
  /** A chunk, or a shard in a shard, that is there. */
  void
  ReadChunk(std::size_t level, const ZarrIndex & origin, const ZarrPlace & place, const Task & task)
  {
    const Box part = m_Grid.GetBox(level, origin, task.box);
    if (m_Grid.GetLevel(level).isSharded)
    {
      const ShardIndex   places(m_Grid, level, place);
      ZarrIndex          first;
      ZarrIndex          count;
      const std::int64_t number = m_Grid.CountChunks(level + 1, part, first, count);
      for (std::int64_t i = 0; i < number; ++i)
      {
        this->ReadInner(level, places, GetZarrIndex(i, first, count), task);
      }
      return;
    }
    Worker &           worker = m_Workers[task.worker];
    const std::size_t  size = PixelSize(m_Header.kind);
    const char * const voxels =
      this->Decode(origin, place, worker) + m_Grid.GetOffset(origin, part, m_Strides) * static_cast<std::int64_t>(size);
    CopyStrided(size,
                part.Extents(),
                voxels,
                m_Strides,
                static_cast<char *>(task.view.data) + task.view.Offset(part.lower) * static_cast<std::int64_t>(size),
                task.view.stride);
  }
  /** The values of a chunk of the last level, in the image's kind. */
  const char *
  Decode(const ZarrIndex & origin, const ZarrPlace & place, Worker & worker)
  {
    const auto &      codecs = m_Array.GetInnermost().codecs;
    const auto        bytes = static_cast<std::size_t>(m_ChunkBytes);
    const std::string name = place.file->GetName();
    const auto        refuse = [&](const std::string & why) {
      Fail(name, (m_Grid.GetLast() > 0 ? "its chunk at " + ListIndex(origin) + " " : "the chunk ") + why);
    };
    if (place.bytes > GetZarrBound(codecs, m_ChunkBytes) || (codecs.empty() && place.bytes != m_ChunkBytes))
    {
      refuse("has " + std::to_string(place.bytes) + " bytes; its voxels take " + std::to_string(m_ChunkBytes));
    }
    // A short file may not claim much memory.
    const ByteCount most = ByteCount::FromUnsigned(place.bytes) * GetZarrRatio(codecs);
    if (!(ByteCount::FromUnsigned(m_ChunkBytes) <= most))
    {
      refuse("has " + std::to_string(place.bytes) + " bytes, which can expand to at most " +
             std::to_string(most.Get()) + "; its voxels take " + std::to_string(m_ChunkBytes));
    }
    worker.decoded.resize(bytes);
    if (codecs.empty())
    {
      place.Read(worker.decoded, place.offset);
    }
    else
    {
      worker.encoded.resize(static_cast<std::size_t>(place.bytes));
      place.Read(worker.encoded, place.offset);
      try
      {
        worker.coder.Decode(codecs, worker.encoded, worker.decoded.data(), bytes);
      }
      catch (const std::runtime_error & error)
      {
        refuse(error.what());
      }
    }
    m_BytesRead += place.bytes;
    const std::size_t size = m_Array.GetStoredSize();
    if (size > 1 && m_Array.bigEndian != IsBigEndianMachine())
    {
      SwapBytes(worker.decoded.data(), worker.decoded.data(), bytes / size, size);
    }
    if (m_Array.value == ZarrValue::Bool)
    {
      std::transform(worker.decoded.begin(), worker.decoded.end(), worker.decoded.begin(), [](char c) {
        return static_cast<char>(c != 0);
      });
    }
    if (m_Array.value != ZarrValue::Half)
    {
      return worker.decoded.data();
    }
    worker.converted.resize(static_cast<std::size_t>(m_Voxels) * sizeof(float));
    for (std::size_t i = 0; i < static_cast<std::size_t>(m_Voxels); ++i)
    {
      std::uint16_t half;
      std::memcpy(&half, worker.decoded.data() + 2 * i, sizeof(half));
      const float value = HalfToFloat(half);
      std::memcpy(worker.converted.data() + sizeof(float) * i, &value, sizeof(value));
    }
    return worker.converted.data();
  }
  void
  Fill(const Box & box, const BufferView & view) const
  {
    if (!box.IsEmpty())
    {
      const std::size_t size = PixelSize(m_Header.kind);
      CopyStrided(size,
                  box.Extents(),
                  reinterpret_cast<const char *>(m_Array.fill),
                  Coordinates{},
                  static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(size),
                  view.stride);
    }
  }

  ZarrArray                 m_Array;
  ZarrGrid                  m_Grid;
  Coordinates               m_Strides;
  std::int64_t              m_Voxels{ 0 };
  std::uint64_t             m_ChunkBytes{ 0 };
  unsigned int              m_Threads{ 1 };
  std::mutex                m_Mutex;
  std::unique_ptr<Executor> m_Executor;
  std::vector<Worker>       m_Workers;

  std::mutex                                   m_SumMutex;
  std::map<ZarrIndex, std::unique_ptr<ZipSum>> m_Sums; ///< of shards in an archive
};

} // namespace

unsigned int
GetMostThreadsOfZarr()
{
  return std::min(16u, GetNumberOfProcessors());
}

std::unique_ptr<FileSource>
OpenZarr(const std::string & file)
{
  return std::make_unique<ZarrSource>(ReadZarrImage(file));
}

} // namespace chunkwise::files
