/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"
#include "fileFormats.h"
#include "filePlanar.h"
#include "fileVoxelFile.h"

#include <deque>
#include <mutex>

namespace chunkwise::files
{

void
FileSource::KeepBehind(std::int64_t)
{}

void
FileSource::HoldAtMost(std::uint64_t)
{}

namespace
{

namespace fs = std::filesystem;

/** Plain voxels at positions of a file: any box, any thread. */
class PlainSource : public FileSource
{
public:
  explicit PlainSource(VoxelPlace place, Descriptor file)
    : m_File(std::move(file))
    , m_Offset(place.offset)
    , m_Coding(place.coding)
  {
    m_Header = std::move(place.header);
    m_Files = std::move(place.files);
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.heldBytes = m_Coding.IsInPlace() ? 0 : SwapBytesAtOnce;
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    if (m_Coding.scales)
    {
      return ReadScaled(box, view);
    }
    const std::size_t size = PixelSize(m_Header.kind);
    PieceReader       pieces(m_File, size, m_Coding.swaps, m_BytesRead);
    ForEachStretch(GetExtent(), box, view, [&](std::int64_t voxel, char * data, std::int64_t count) {
      pieces.Add(m_Offset + static_cast<std::uint64_t>(voxel) * size, data, static_cast<std::size_t>(count) * size);
    });
    pieces.Flush();
  }

private:
  void
  ReadScaled(const Box & box, const BufferView & view)
  {
    const std::size_t size = PixelSize(m_Coding.kind);
    const std::size_t outSize = PixelSize(m_Header.kind);
    std::vector<char> stored(SwapBytesAtOnce);
    ForEachStretch(GetExtent(), box, view, [&](std::int64_t voxel, char * data, std::int64_t count) {
      while (count > 0)
      {
        const auto n = std::min(count, static_cast<std::int64_t>(stored.size() / size));
        m_File.ReadAt(
          stored.data(), static_cast<std::size_t>(n) * size, m_Offset + static_cast<std::uint64_t>(voxel) * size);
        m_BytesRead += static_cast<std::uint64_t>(n) * size;
        m_Coding.Decode(stored.data(), data, m_Header.kind, static_cast<std::size_t>(n));
        voxel += n;
        data += static_cast<std::size_t>(n) * outSize;
        count -= n;
      }
    });
  }

  Descriptor    m_File;
  std::uint64_t m_Offset;
  VoxelCoding   m_Coding;
};

/** Voxels that are read from the beginning on. */
class OrderedSource : public FileSource
{
public:
  explicit OrderedSource(VoxelPlace place, Descriptor file)
    : m_File(std::move(file))
    , m_Coding(place.coding)
    , m_Skipped(place.skipped)
    , m_MayGoOn(place.mayGoOn)
    , m_Buffer(SwapBytesAtOnce)
  {
    m_Header = std::move(place.header);
    m_Files = std::move(place.files);
    m_Axis = LastAxis(GetExtent());
    m_Count = CountVoxels(m_File.GetName(), m_Header);
    m_Stream = MakeByteStream(
      place.codec, m_File, place.offset, m_Coding.kind, [this](std::size_t bytes) { m_BytesRead += bytes; });
    Restart();
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.anyOrder = false;
    access.heldBytes = StreamBytes + SwapBytesAtOnce + static_cast<std::uint64_t>(m_Keep) * GetPlaneBytes();
    return access;
  }
  void
  KeepBehind(std::int64_t planes) override
  {
    m_Keep = std::max<std::int64_t>(0, std::min(planes, GetExtent()[m_Axis]));
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (m_Keep == 0)
    {
      return ReadStretches(box, view);
    }
    for (std::int64_t plane = box.lower[m_Axis]; plane < box.upper[m_Axis]; ++plane)
    {
      Box part = box;
      part.lower[m_Axis] = plane;
      part.upper[m_Axis] = plane + 1;
      if (!part.IsEmpty())
      {
        CopyBox(part, GetPlane(plane), view);
      }
    }
  }

private:
  std::uint64_t
  GetPlaneBytes() const
  {
    return static_cast<std::uint64_t>(m_Count / GetExtent()[m_Axis]) * PixelSize(m_Header.kind);
  }
  void
  Restart()
  {
    m_Stream->Restart();
    m_Position = 0;
    for (std::uint64_t left = m_Skipped; left > 0;)
    {
      const auto bytes = std::min<std::uint64_t>(left, m_Buffer.size());
      m_Stream->Read(m_Buffer.data(), bytes);
      left -= bytes;
    }
  }
  /** The next `count` voxels; to nowhere if `data` is null. */
  void
  Take(char * data, std::int64_t count)
  {
    const std::size_t size = PixelSize(m_Coding.kind);
    const std::size_t outSize = PixelSize(m_Header.kind);
    while (count > 0)
    {
      const auto   n = std::min(count, static_cast<std::int64_t>(m_Buffer.size() / size));
      const auto   number = static_cast<std::size_t>(n);
      const bool   direct = data && m_Coding.IsInPlace();
      char * const to = direct ? data : m_Buffer.data();
      m_Stream->Read(to, number * size);
      if (data)
      {
        m_Coding.Decode(to, data, m_Header.kind, number);
        data += number * outSize;
      }
      m_Position += n;
      count -= n;
    }
    if (m_Position == m_Count)
    {
      m_Stream->CheckEnd(m_MayGoOn);
    }
  }
  void
  GoTo(std::int64_t voxel)
  {
    if (voxel < m_Position)
    {
      Restart();
    }
    if (voxel > m_Position)
    {
      Take(nullptr, voxel - m_Position);
    }
  }
  void
  ReadStretches(const Box & box, const BufferView & view)
  {
    ForEachStretch(GetExtent(), box, view, [&](std::int64_t voxel, char * data, std::int64_t count) {
      GoTo(voxel);
      Take(data, count);
    });
  }
  /** A plane that is kept, or the next one to keep. */
  BufferView
  GetPlane(std::int64_t plane)
  {
    const std::int64_t planeVoxels = m_Count / GetExtent()[m_Axis];
    if (m_Planes.empty() || plane < m_FirstKept)
    {
      m_Planes.clear();
      m_FirstKept = plane;
      GoTo(plane * planeVoxels);
    }
    while (plane >= m_FirstKept + static_cast<std::int64_t>(m_Planes.size()))
    {
      std::vector<char> memory;
      if (static_cast<std::int64_t>(m_Planes.size()) == m_Keep)
      {
        memory = std::move(m_Planes.front());
        m_Planes.pop_front();
        ++m_FirstKept;
      }
      memory.resize(GetPlaneBytes());
      Take(memory.data(), planeVoxels);
      m_Planes.push_back(std::move(memory));
    }
    Box box = Box::FromExtent(GetExtent());
    box.lower[m_Axis] = plane;
    box.upper[m_Axis] = plane + 1;
    return DenseView(m_Planes[static_cast<std::size_t>(plane - m_FirstKept)].data(), m_Header.kind, box);
  }

  Descriptor                    m_File;
  VoxelCoding                   m_Coding;
  std::uint64_t                 m_Skipped;
  bool                          m_MayGoOn;
  std::vector<char>             m_Buffer;
  int                           m_Axis{ 0 };
  std::int64_t                  m_Count{ 0 };
  std::int64_t                  m_Position{ 0 };
  std::unique_ptr<ByteStream>   m_Stream;
  std::int64_t                  m_Keep{ 0 };
  std::deque<std::vector<char>> m_Planes;
  std::int64_t                  m_FirstKept{ 0 };
  std::mutex                    m_Mutex;
};

} // namespace

void
PieceReader::Add(std::uint64_t offset, char * data, std::size_t bytes)
{
  while (bytes > 0)
  {
    const std::size_t part = m_Swaps ? std::min(bytes, SwapBytesAtOnce) : bytes;
    if (m_Pieces.empty() || offset != m_End || m_Pieces.size() == PiecesAtOnce ||
        (m_Swaps && m_End - m_Begin + part > SwapBytesAtOnce))
    {
      Flush();
      m_Begin = m_End = offset;
    }
    m_Pieces.push_back({ data, part });
    m_End += part;
    offset += part;
    data += part;
    bytes -= part;
  }
}

void
PieceReader::Flush()
{
  if (m_Pieces.empty())
  {
    return;
  }
  const std::vector<iovec> filled = m_Swaps ? m_Pieces : std::vector<iovec>();
  m_File.ReadPieces(m_Pieces, m_Begin);
  m_BytesRead += m_End - m_Begin;
  for (const iovec & piece : filled)
  {
    SwapBytes(piece.iov_base, piece.iov_base, piece.iov_len / m_VoxelSize, m_VoxelSize);
  }
  m_Pieces.clear();
}

namespace
{

/** Throws unless `size` bytes of the data file can hold `values` values. */
void
RequireVoxels(const VoxelPlace & place, std::int64_t values, std::uint64_t size)
{
  const std::uint64_t available = size - std::min(size, place.offset);
  const std::string   file = place.data.string();
  switch (place.codec)
  {
    case Codec::Raw:
      return RequireInFile(
        file, ByteCount(values) * static_cast<std::int64_t>(PixelSize(place.coding.kind)), available);
    case Codec::Deflate:
      return RequireInFile(file,
                           ByteCount(values) * static_cast<std::int64_t>(PixelSize(place.coding.kind)) +
                             ByteCount::FromUnsigned(place.skipped),
                           available,
                           DeflateRatio);
    case Codec::Text:
      // A number has a digit at least, and a space before the next one.
      if (static_cast<std::uint64_t>(values) > (available + 1) / 2)
      {
        Fail(file,
             "its " + std::to_string(available) + " bytes of text cannot hold the " + std::to_string(values) +
               " numbers that its header asks for");
      }
  }
}

} // namespace

std::unique_ptr<FileSource>
OpenVoxels(VoxelPlace place)
{
  NormalizeGeometry(place.files.front().string(), place.header);
  if (place.isPlanar)
  {
    const ImageHeader header = place.header;
    place.header = GetPlanarHeader(header);
    place.isPlanar = false;
    return MakePlanarSource(OpenVoxels(std::move(place)), header);
  }
  Descriptor         file = Descriptor::OpenToRead(place.data);
  const std::int64_t values = CountVoxels(place.files.front().string(), place.header);
  RequireVoxels(place, values, file.GetSize());
  if (place.codec != Codec::Raw)
  {
    return std::make_unique<OrderedSource>(std::move(place), std::move(file));
  }
  return std::make_unique<PlainSource>(std::move(place), std::move(file));
}

} // namespace chunkwise::files
