/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileOutput.h"
#include "filePlanar.h"

#include <deque>
#include <mutex>

namespace chunkwise::files
{

namespace
{

/** The files of an output, and its header written. */
class VoxelSink : public FileSink
{
public:
  VoxelSink(const ImageHeader & header, const Destination & destination, VoxelLayout layout)
    : m_Layout(std::move(layout))
    , m_Folder(destination)
  {
    m_Header = header;
    m_Losses = m_Layout.losses;
    m_Count = CountVoxels(destination.shown, header);
    m_Swaps = m_Layout.bigEndian != IsBigEndianMachine() && PixelSize(header.kind) > 1;
    m_Main = Descriptor::Create(m_Folder.GetPath(destination.file), destination.shown);
    if (m_Layout.detached)
    {
      m_Data = Descriptor::Create(m_Folder.GetPath(destination.data), destination.data.string());
    }
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    if (!box.IsEmpty())
    {
      WriteVoxels(box, view);
      m_Done += box.NumberOfVoxels();
    }
  }
  void
  Finish() override
  {
    if (m_Done != m_Count)
    {
      throw std::logic_error(m_Main.GetName() + ": " + std::to_string(m_Done) + " of " + std::to_string(m_Count) +
                             " voxels were written");
    }
    FinishVoxels();
    GetData().Sync();
    m_Main.Sync();
    m_Data.Close();
    m_Main.Close();
    m_Folder.Commit();
  }

protected:
  virtual void
  WriteVoxels(const Box & box, const BufferView & view) = 0;
  virtual void
  FinishVoxels() = 0;

  const Descriptor &
  GetData() const
  {
    return m_Layout.detached ? m_Data : m_Main;
  }
  void
  WriteHeader()
  {
    m_Main.WriteAt(m_Layout.header.data(), m_Layout.header.size(), 0);
    m_BytesWritten += m_Layout.header.size();
  }

  VoxelLayout               m_Layout;
  OutputFolder              m_Folder;
  Descriptor                m_Main;
  Descriptor                m_Data;
  std::int64_t              m_Count{ 0 };
  std::atomic<std::int64_t> m_Done{ 0 };
  bool                      m_Swaps{ false };
};

/** Any box, any thread. */
class PlainSink : public VoxelSink
{
public:
  PlainSink(const ImageHeader & header, const Destination & destination, VoxelLayout layout)
    : VoxelSink(header, destination, std::move(layout))
    , m_Offset(m_Layout.detached ? 0 : m_Layout.header.size())
  {
    GetData().Reserve(GetEnd());
    WriteHeader();
  }
  bool
  TakeRoom() override
  {
    const std::uint64_t begin = m_Offset + m_Taken;
    const std::uint64_t bytes = std::min(BytesOfRoom, GetEnd() - begin);
    m_Taken += bytes;
    return bytes > 0 && GetData().TakePages(begin, bytes);
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.heldBytes = m_Swaps ? SwapBytesAtOnce : 0;
    return access;
  }

protected:
  void
  WriteVoxels(const Box & box, const BufferView & view) override
  {
    const std::size_t  size = PixelSize(m_Header.kind);
    std::vector<iovec> pieces;
    std::vector<char>  swapped(m_Swaps ? SwapBytesAtOnce : 0);
    std::uint64_t      begin = 0;
    std::uint64_t      end = 0;
    const auto         flush = [&] {
      if (!pieces.empty())
      {
        GetData().WritePieces(pieces, begin);
        m_BytesWritten += end - begin;
        pieces.clear();
      }
    };
    ForEachStretch(GetExtent(), box, view, [&](std::int64_t voxel, char * data, std::int64_t count) {
      std::uint64_t offset = m_Offset + static_cast<std::uint64_t>(voxel) * size;
      std::size_t   left = static_cast<std::size_t>(count) * size;
      while (left > 0)
      {
        const std::size_t bytes = m_Swaps ? std::min(left, SwapBytesAtOnce) : left;
        if (pieces.empty() || offset != end || pieces.size() == PiecesAtOnce ||
            (m_Swaps && end - begin + bytes > SwapBytesAtOnce))
        {
          flush();
          begin = end = offset;
        }
        char * from = data;
        if (m_Swaps)
        {
          from = swapped.data() + (end - begin);
          SwapBytes(from, data, bytes / size, size);
        }
        pieces.push_back({ from, bytes });
        end += bytes;
        offset += bytes;
        data += bytes;
        left -= bytes;
      }
    });
    flush();
  }
  void
  FinishVoxels() override
  {}

private:
  /** Taken at a time: some milliseconds. */
  static constexpr std::uint64_t BytesOfRoom = std::uint64_t{ 32 } << 20;

  std::uint64_t
  GetEnd() const
  {
    return m_Offset + static_cast<std::uint64_t>(m_Count) * PixelSize(m_Header.kind);
  }

  std::uint64_t m_Offset;
  std::uint64_t m_Taken{ 0 };
};

/** Compresses voxels in the image's order. Boxes that are no whole planes wait until their planes are complete. */
class DeflateSink : public VoxelSink
{
public:
  DeflateSink(const ImageHeader & header, const Destination & destination, VoxelLayout layout)
    : VoxelSink(header, destination, std::move(layout))
    , m_Axis(LastAxis(GetStoredExtent(header)))
    , m_PlaneVoxels(m_Count / GetStoredExtent(header)[m_Axis])
    , m_Swapped(m_Swaps ? SwapBytesAtOnce : 0)
  {
    const bool isInside = m_Layout.compressesHeader && !m_Layout.detached;
    m_Begin = m_Layout.detached || isInside ? 0 : m_Layout.header.size();
    m_Writer = std::make_unique<DeflateWriter>(GetData(), m_Begin, m_Layout.gzip);
    if (isInside)
    {
      m_Writer->Write(m_Layout.header.data(), m_Layout.header.size());
    }
    else
    {
      WriteHeader();
    }
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.anyOrder = false;
    access.heldBytes = DeflateWriter::GetHeldBytes() + m_Swapped.size();
    return access;
  }

protected:
  void
  WriteVoxels(const Box & box, const BufferView & view) override
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (box.lower[m_Axis] < m_Next)
    {
      throw std::logic_error(m_Main.GetName() + ": planes are to be written in ascending order, and once");
    }
    Box whole = Box::FromExtent(GetExtent());
    whole.lower[m_Axis] = box.lower[m_Axis];
    whole.upper[m_Axis] = box.upper[m_Axis];
    if (box == whole && box.lower[m_Axis] == m_Next && m_Waiting.empty())
    {
      Compress(box, view);
      m_Next = box.upper[m_Axis];
      return;
    }
    for (std::int64_t plane = box.lower[m_Axis]; plane < box.upper[m_Axis]; ++plane)
    {
      Box part = box;
      part.lower[m_Axis] = whole.lower[m_Axis] = plane;
      part.upper[m_Axis] = whole.upper[m_Axis] = plane + 1;
      Plane & waiting = m_Waiting[plane];
      waiting.voxels.resize(static_cast<std::size_t>(m_PlaneVoxels) * PixelSize(m_Header.kind));
      CopyBox(part, view, DenseView(waiting.voxels.data(), m_Header.kind, whole));
      waiting.count += part.NumberOfVoxels();
    }
    while (!m_Waiting.empty() && m_Waiting.begin()->first == m_Next && m_Waiting.begin()->second.count == m_PlaneVoxels)
    {
      whole.lower[m_Axis] = m_Next;
      whole.upper[m_Axis] = m_Next + 1;
      Compress(whole, DenseView(m_Waiting.begin()->second.voxels.data(), m_Header.kind, whole));
      m_Waiting.erase(m_Waiting.begin());
      ++m_Next;
    }
  }
  void
  FinishVoxels() override
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    if (m_Next != GetExtent()[m_Axis])
    {
      throw std::logic_error(m_Main.GetName() + ": some voxels were written twice, and others not at all");
    }
    m_Writer->Finish();
    CountBytes();
    if (m_Layout.sizeDigits > 0)
    {
      std::string number = std::to_string(m_Writer->GetBytesWritten());
      number.insert(0, static_cast<std::size_t>(m_Layout.sizeDigits) - number.size(), '0');
      m_Main.WriteAt(number.data(), number.size(), m_Layout.sizeAt);
    }
  }

private:
  void
  Compress(const Box & box, const BufferView & view)
  {
    const std::size_t size = PixelSize(m_Header.kind);
    ForEachStretch(GetExtent(), box, view, [&](std::int64_t, char * data, std::int64_t count) {
      std::size_t left = static_cast<std::size_t>(count) * size;
      while (left > 0)
      {
        const std::size_t bytes = m_Swaps ? std::min(left, m_Swapped.size()) : left;
        if (m_Swaps)
        {
          SwapBytes(m_Swapped.data(), data, bytes / size, size);
        }
        m_Writer->Write(m_Swaps ? m_Swapped.data() : data, bytes);
        data += bytes;
        left -= bytes;
      }
    });
    CountBytes();
  }
  void
  CountBytes()
  {
    m_BytesWritten = m_Begin + m_Writer->GetBytesWritten();
  }

  struct Plane
  {
    std::vector<char> voxels;
    std::int64_t      count{ 0 };
  };

  int                            m_Axis;
  std::int64_t                   m_PlaneVoxels;
  std::vector<char>              m_Swapped;
  std::uint64_t                  m_Begin{ 0 };
  std::unique_ptr<DeflateWriter> m_Writer;
  std::int64_t                   m_Next{ 0 };
  std::map<std::int64_t, Plane>  m_Waiting;
  std::mutex                     m_Mutex;
};

} // namespace

std::unique_ptr<FileSink>
CreateVoxels(const ImageHeader & header, const Destination & destination, VoxelLayout layout)
{
  if (layout.isPlanar)
  {
    layout.isPlanar = false;
    return MakePlanarSink(CreateVoxels(GetPlanarHeader(header), destination, std::move(layout)), header);
  }
  if (layout.codec == Codec::Raw)
  {
    return std::make_unique<PlainSink>(header, destination, std::move(layout));
  }
  return std::make_unique<DeflateSink>(header, destination, std::move(layout));
}

} // namespace chunkwise::files
