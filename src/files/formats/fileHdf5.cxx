/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileHdf5.h"

#include "fileByteCount.h"
#include "fileFormats.h"
#include "fileItk.h"

#include <mutex>

namespace chunkwise::files
{

namespace
{

using formats::MessageReader;
using formats::MessageWriter;
using formats::Request;

/** HDF5's cache of chunks, and its tables. */
constexpr std::uint64_t Hdf5LibraryBytes = std::uint64_t{ 12 } << 20;
/** The copies of a chunk: compressed, inflated, and in the cache. */
constexpr std::uint64_t CopiesOfChunk = 3;
/** Chunks of single voxels are slow to find. */
constexpr double LeastHdf5BytesPerSecond = 256 << 10;

double
GetHdf5Seconds(std::uint64_t bytes)
{
  return 4 + static_cast<double>(bytes) / LeastHdf5BytesPerSecond;
}

/** ITK's region of a box with all components: start and size along each axis. */
MessageWriter
DescribeRegion(const Box & box, const ImageHeader & header)
{
  const int                 first = header.components > 1 ? 1 : 0;
  std::vector<std::int64_t> start;
  std::vector<std::int64_t> size;
  for (int a = 0; a < header.dimension; ++a)
  {
    start.push_back(box.lower[a + first]);
    size.push_back(box.Extent(a + first));
  }
  MessageWriter message;
  message.PutList(start);
  message.PutList(size);
  return message;
}

std::uint64_t
CountBytes(const Box & box, PixelType kind)
{
  return static_cast<std::uint64_t>(box.NumberOfVoxels()) * PixelSize(kind);
}

/** Calls f(piece) for pieces of a box that are cut where chunks end, and hold PieceBytes at most, or one chunk. */
template <typename TFunctor>
void
ForEachPiece(const Box & box, const Coordinates & chunk, PixelType kind, const TFunctor & f)
{
  for (int a = MaxDimension - 1; a >= 0 && CountBytes(box, kind) > PieceBytes; --a)
  {
    const std::int64_t firstChunk = box.lower[a] / chunk[a];
    const std::int64_t endChunk = (box.upper[a] + chunk[a] - 1) / chunk[a];
    if (endChunk - firstChunk > 1)
    {
      Box before = box;
      Box after = box;
      before.upper[a] = after.lower[a] = (firstChunk + (endChunk - firstChunk) / 2) * chunk[a];
      ForEachPiece(before, chunk, kind, f);
      ForEachPiece(after, chunk, kind, f);
      return;
    }
  }
  f(box);
}

class Hdf5Source : public FileSource
{
public:
  explicit Hdf5Source(const std::string & file)
    : m_File(file)
    , m_Process(file)
  {
    const std::uint64_t fileBytes = Descriptor::OpenToRead(file).GetSize();
    MessageWriter       request;
    request.PutText(file);
    const std::string reply =
      m_Process.Ask(file,
                    "cannot be read",
                    Request::OpenHdf5,
                    request,
                    { GetHdf5Seconds(fileBytes), Hdf5LibraryBytes + std::min(fileBytes, PieceBytes) });
    try
    {
      MessageReader reader(reply);
      m_Header = MakeImageHeader(GetItkHeader(reader), file);
      const auto slowestFirst = reader.GetList<std::uint64_t>();
      m_ChunkBytes = reader.Get<std::uint64_t>();
      const bool isCompressed = reader.GetFlag();
      this->TakeChunks({ slowestFirst.rbegin(), slowestFirst.rend() }, isCompressed);
    }
    catch (const std::runtime_error & error)
    {
      if (dynamic_cast<const FileError *>(&error))
      {
        throw;
      }
      Fail(file, std::string("cannot be read: ") + error.what());
    }
    RequireInFile(file,
                  ByteCount::OfImage(m_Header.extent, m_Header.components, PixelSize(m_Header.kind)),
                  fileBytes,
                  m_ChunkBytes > 0 ? DeflateRatio : RawRatio);
    m_Files.emplace_back(file);
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    // The piece in both processes.
    access.heldBytes = FormatProcess::OwnBytes + this->GetMemory() + this->GetMostOfPiece();
    return access;
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
    ForEachPiece(box, m_Chunk, m_Header.kind, [&](const Box & piece) {
      WithDense(piece, view, false, true, [&](void * voxels) {
        const std::uint64_t bytes = CountBytes(piece, m_Header.kind);
        m_Process.AskForVoxels(m_File,
                               Request::ReadHdf5,
                               DescribeRegion(piece, m_Header),
                               { GetHdf5Seconds(bytes + m_ChunkBytes), this->GetMemory() },
                               voxels,
                               bytes);
        m_BytesRead += bytes;
      });
    });
  }

private:
  /** Chunks count where they are compressed: of others HDF5 reads parts. */
  void
  TakeChunks(const std::vector<std::uint64_t> & extent, bool isCompressed)
  {
    if (!isCompressed)
    {
      return;
    }
    for (std::size_t a = 0; a < MaxDimension && a < extent.size(); ++a)
    {
      const auto axis = static_cast<int>(a);
      m_Chunk[axis] = static_cast<std::int64_t>(
        std::clamp<std::uint64_t>(extent[a], 1, static_cast<std::uint64_t>(GetExtent()[axis])));
    }
    m_HeldChunkBytes = m_ChunkBytes;
  }
  std::uint64_t
  GetMostOfPiece() const
  {
    return std::max(PieceBytes, std::min(m_HeldChunkBytes, CountBytes(Box::FromExtent(GetExtent()), m_Header.kind)));
  }
  std::uint64_t
  GetMemory() const
  {
    return Hdf5LibraryBytes + this->GetMostOfPiece() + CopiesOfChunk * m_HeldChunkBytes;
  }

  std::string   m_File;
  FormatProcess m_Process;
  std::mutex    m_Mutex;
  Coordinates   m_Chunk{ Coordinates::Filled(1) };
  std::uint64_t m_ChunkBytes{ 0 };
  std::uint64_t m_HeldChunkBytes{ 0 };
};

} // namespace

Hdf5Writer::Hdf5Writer(const std::string & file, const std::string & shown, const ImageHeader & header, bool compresses)
  : m_Header(header)
  , m_Shown(shown)
  , m_Process(shown)
  , m_Chunk(GetStoredExtent(header))
{
  // ITK makes a chunk of each plane.
  m_Chunk[header.dimension - (header.components > 1 ? 0 : 1)] = 1;
  MessageWriter request;
  request.PutText(file);
  request.Put<std::uint8_t>(compresses);
  PutItkHeader(MakeItkHeader(header), request);
  this->Send(Request::CreateHdf5, request, nullptr, 0);
}

void
Hdf5Writer::Send(Request request, const MessageWriter & message, const void * voxels, std::size_t bytes)
{
  const std::uint64_t chunk = CountBytes(Box::FromExtent(m_Chunk), m_Header.kind);
  m_Process.Ask(m_Shown,
                "cannot be written",
                request,
                message,
                { GetHdf5Seconds(bytes + chunk), Hdf5LibraryBytes + CopiesOfChunk * chunk },
                voxels,
                bytes);
}

void
Hdf5Writer::Write(const Box & box, const BufferView & view)
{
  const std::lock_guard<std::mutex> lock(m_Mutex);
  ForEachPiece(box, m_Chunk, m_Header.kind, [&](const Box & piece) {
    WithDense(piece, view, true, false, [&](const void * voxels) {
      this->Send(Request::WriteHdf5, DescribeRegion(piece, m_Header), voxels, CountBytes(piece, m_Header.kind));
    });
  });
}

void
Hdf5Writer::Close()
{
  this->Send(Request::CloseHdf5, MessageWriter(), nullptr, 0);
}

std::uint64_t
Hdf5Writer::GetHeldBytes(const ImageHeader & header)
{
  Coordinates chunk = GetStoredExtent(header);
  chunk[header.dimension - (header.components > 1 ? 0 : 1)] = 1;
  const std::uint64_t chunkBytes = CountBytes(Box::FromExtent(chunk), header.kind);
  return FormatProcess::OwnBytes + Hdf5LibraryBytes + CopiesOfChunk * chunkBytes + 2 * std::max(PieceBytes, chunkBytes);
}

std::unique_ptr<FileSource>
OpenHdf5(const std::string & file)
{
  return std::make_unique<Hdf5Source>(file);
}

} // namespace chunkwise::files
