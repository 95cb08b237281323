/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileItk.h"
#include "fileItkFormats.h"
#include "fileOutput.h"

#include "itkBMPImageIO.h"
#include "itkGiplImageIO.h"
#include "itkJPEGImageIO.h"
#include "itkPNGImageIO.h"

#include <cstring>
#include <mutex>

namespace chunkwise::files
{

namespace
{

/** Of `file`, an object that reads and writes `format`. */
itk::ImageIOBase::Pointer
MakeIo(const std::string & format, const std::string & file)
{
  if (format == "HDF5")
  {
    return GetItkFormats(file).makeHdf5();
  }
  if (format == "PNG")
  {
    return itk::PNGImageIO::New().GetPointer();
  }
  if (format == "JPEG")
  {
    return itk::JPEGImageIO::New().GetPointer();
  }
  if (format == "BMP")
  {
    return itk::BMPImageIO::New().GetPointer();
  }
  if (format == "GIPL")
  {
    return itk::GiplImageIO::New().GetPointer();
  }
  throw std::logic_error("no class of ITK is known for " + format);
}

/** Reads small pieces of a file one after the other. */
class Bytes
{
public:
  explicit Bytes(const std::string & file)
    : m_File(Descriptor::OpenToRead(file))
    , m_Size(m_File.GetSize())
  {}
  /** As a number whose highest byte comes first, or last. */
  std::uint64_t
  Number(std::uint64_t at, std::size_t size, bool bigEndian) const
  {
    unsigned char bytes[8] = {};
    m_File.ReadAt(bytes, size, at);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
    {
      value = value << 8 | bytes[bigEndian ? i : size - 1 - i];
    }
    return value;
  }
  std::uint64_t
  GetSize() const
  {
    return m_Size;
  }
  const Descriptor &
  GetFile() const
  {
    return m_File;
  }

private:
  Descriptor    m_File;
  std::uint64_t m_Size;
};

/** Throws where a chunk, the last one IEND, is not there. */
void
CheckPng(const std::string & file)
{
  const Bytes bytes(file);
  for (std::uint64_t at = 8;;)
  {
    if (at + 12 > bytes.GetSize())
    {
      Fail(file, "is not complete: it ends after " + std::to_string(bytes.GetSize()) + " bytes, before its last chunk");
    }
    const std::uint64_t size = bytes.Number(at, 4, true);
    const std::uint64_t type = bytes.Number(at + 4, 4, true);
    at += 12 + size;
    if (type == 0x49454e44 && at <= bytes.GetSize())
    {
      return;
    }
  }
}

/** Throws where the mark of the end is not there: libjpeg makes up what is missing. */
void
CheckJpeg(const std::string & file)
{
  const Bytes                bytes(file);
  std::vector<unsigned char> all(bytes.GetSize());
  bytes.GetFile().ReadAt(all.data(), all.size(), 0);
  for (std::size_t at = 2; at + 2 <= all.size();)
  {
    const unsigned char mark = all[at + 1];
    if (all[at] != 0xff || mark == 0xff)
    {
      ++at; // Coded voxels, or a byte that fills.
    }
    else if (mark == 0xd9)
    {
      return;
    }
    else if (mark <= 1 || (mark >= 0xd0 && mark <= 0xd8))
    {
      at += 2;
    }
    else
    {
      at += at + 4 <= all.size() ? 2 + (static_cast<std::size_t>(all[at + 2]) << 8 | all[at + 3]) : 4;
    }
  }
  Fail(file, "is not complete: it ends after " + std::to_string(all.size()) + " bytes, without the mark of its end");
}

void
CheckBmp(const std::string & file)
{
  const Bytes bytes(file);
  if (bytes.GetSize() < 54)
  {
    Fail(file, "is not complete: it ends after " + std::to_string(bytes.GetSize()) + " bytes, within its header");
  }
  std::uint64_t       needed = bytes.Number(2, 4, false);
  const std::uint64_t begin = bytes.Number(10, 4, false);
  const std::uint64_t width = bytes.Number(18, 4, false);
  const auto          height = static_cast<std::int32_t>(bytes.Number(22, 4, false));
  if (bytes.Number(30, 4, false) == 0)
  {
    const std::uint64_t row = (width * bytes.Number(28, 2, false) + 31) / 32 * 4;
    needed = begin + row * static_cast<std::uint64_t>(height < 0 ? -static_cast<std::int64_t>(height) : height);
  }
  if (bytes.GetSize() < needed)
  {
    Fail(file, "has " + std::to_string(bytes.GetSize()) + " of " + std::to_string(needed) + " bytes");
  }
}

/** ITK's region of a box with all components. */
itk::ImageIORegion
RegionOf(const Box & box, const ImageHeader & header)
{
  const int          first = header.components > 1 ? 1 : 0;
  itk::ImageIORegion region(static_cast<unsigned int>(header.dimension));
  for (int a = 0; a < header.dimension; ++a)
  {
    region.SetIndex(static_cast<unsigned int>(a), box.lower[a + first]);
    region.SetSize(static_cast<unsigned int>(a), static_cast<itk::SizeValueType>(box.Extent(a + first)));
  }
  return region;
}

/** Whether the voxels of `box` are dense in `view`. */
bool
IsDense(const Box & box, const BufferView & view)
{
  std::int64_t count = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (box.Extent(a) > 1 && view.stride[a] != count)
    {
      return false;
    }
    count *= box.Extent(a);
  }
  return true;
}

/** Calls `f` with the dense voxels of `box`, as a library wants them. */
template <typename TFunctor>
void
WithDense(const Box & box, const BufferView & view, bool copiesIn, bool copiesOut, TFunctor && f)
{
  if (IsDense(box, view))
  {
    f(static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind)));
    return;
  }
  std::vector<char> voxels(static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(view.kind));
  const BufferView  dense = DenseView(voxels.data(), view.kind, box);
  if (copiesIn)
  {
    CopyBox(box, view, dense);
  }
  f(voxels.data());
  if (copiesOut)
  {
    CopyBox(box, dense, view);
  }
}

/** A sum over voxels of what is mixed from place and value: the same in whatever order they come. */
std::uint64_t
MixVoxels(const Coordinates & extent, const Box & box, const BufferView & view)
{
  const std::size_t size = PixelSize(view.kind);
  std::uint64_t     sum = 0;
  ForEachStretch(extent, box, view, [&](std::int64_t voxel, const char * data, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
    {
      std::uint64_t value = 0;
      std::memcpy(&value, data + i * static_cast<std::int64_t>(size), size);
      std::uint64_t mixed = (static_cast<std::uint64_t>(voxel + i) + 1) * 0x9e3779b97f4a7c15ull;
      mixed = (mixed ^ mixed >> 32 ^ value) * 0xd6e8feb86659fd93ull;
      mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull;
      sum += mixed ^ mixed >> 32;
    }
  });
  return sum;
}

/** An image that a class of ITK reads: in pieces where it can, else the first Read takes it whole. */
class ItkSource : public FileSource
{
public:
  ItkSource(itk::ImageIOBase::Pointer io, const std::string & file)
    : m_File(file)
    , m_Io(std::move(io))
  {
    // Grays by a table are grays.
    m_Io->SetExpandRGBPalette(false);
    m_Header = ReadHeaderWithItk(*m_Io, file);
    if (m_Io->GetIsReadAsScalarPlusPalette())
    {
      CheckIsGray();
    }
    m_Io->SetUseStreamedReading(true);
    m_InPieces = m_Io->CanStreamRead();
    m_Files.emplace_back(file);
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.inPieces = m_InPieces;
    access.heldBytes = m_InPieces ? 0 : GetBytes();
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
    if (m_InPieces)
    {
      return WithDense(box, view, false, true, [&](void * voxels) { ReadRegion(box, voxels); });
    }
    const Box image = Box::FromExtent(GetExtent());
    {
      const std::lock_guard<std::mutex> lock(m_Mutex);
      if (m_Whole.empty())
      {
        std::vector<char> whole(GetBytes());
        ReadRegion(image, whole.data());
        m_Whole = std::move(whole);
      }
    }
    CopyBox(box, DenseView(m_Whole.data(), m_Header.kind, image), view);
  }

private:
  void
  CheckIsGray() const
  {
    const auto check = [this](const auto & palette) {
      for (std::size_t i = 0; i < palette.size(); ++i)
      {
        if (palette[i].GetRed() != i || palette[i].GetGreen() != i || palette[i].GetBlue() != i)
        {
          Fail(m_File, "has a table of colors, only images of one component a voxel can be used");
        }
      }
    };
    if (const auto * const bmp = dynamic_cast<const itk::BMPImageIO *>(m_Io.GetPointer()))
    {
      check(bmp->GetColorPalette());
    }
    if (const auto * const png = dynamic_cast<const itk::PNGImageIO *>(m_Io.GetPointer()))
    {
      check(png->GetColorPalette());
    }
  }
  std::uint64_t
  GetBytes() const
  {
    return static_cast<std::uint64_t>(Box::FromExtent(GetExtent()).NumberOfVoxels()) * PixelSize(m_Header.kind);
  }
  void
  ReadRegion(const Box & box, void * voxels)
  {
    CallItk(m_File, "cannot be read", [&] {
      m_Io->SetIORegion(RegionOf(box, m_Header));
      m_Io->Read(voxels);
    });
    m_BytesRead += static_cast<std::uint64_t>(box.NumberOfVoxels()) * PixelSize(m_Header.kind);
  }

  std::string               m_File;
  itk::ImageIOBase::Pointer m_Io;
  bool                      m_InPieces{ false };
  std::mutex                m_Mutex;
  std::vector<char>         m_Whole;
};

/** An image that a class of ITK writes. Not all of the libraries below say that a disk is full: what was written is
 * read again before it gets its name. */
class ItkSink : public FileSink
{
public:
  ItkSink(const Format & format, const ImageHeader & header, const Destination & destination, bool compress,
          std::vector<std::string> losses)
    : m_Format(format)
    , m_Destination(destination)
    , m_Compresses(compress)
    , m_Folder(destination)
  {
    m_Header = header;
    m_Losses = std::move(losses);
    m_Count = CountVoxels(destination.shown, header);
    m_Io = MakeWriter();
    m_InPieces = m_Io->CanStreamWrite();
    if (m_InPieces)
    {
      // Until it is closed: see Close. An output that fails keeps it for ever.
      m_Io->Register();
    }
    else
    {
      m_Whole.resize(static_cast<std::size_t>(m_Count) * PixelSize(header.kind));
    }
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.inPieces = m_InPieces;
    access.heldBytes = m_Whole.size();
    return access;
  }
  void
  Write(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    if (box.IsEmpty())
    {
      return;
    }
    m_Mixed += MixVoxels(GetExtent(), box, view);
    m_Done += box.NumberOfVoxels();
    if (m_InPieces)
    {
      return WithDense(box, view, true, false, [&](const void * voxels) { WriteRegion(box, voxels); });
    }
    CopyBox(box, view, DenseView(m_Whole.data(), m_Header.kind, Box::FromExtent(GetExtent())));
  }
  void
  Finish() override
  {
    if (m_Done != m_Count)
    {
      throw std::logic_error(m_Destination.shown + ": " + std::to_string(m_Done) + " of " + std::to_string(m_Count) +
                             " voxels were written");
    }
    if (!m_InPieces)
    {
      WriteRegion(Box::FromExtent(GetExtent()), m_Whole.data());
    }
    Close();
    m_Whole = std::vector<char>();
    Verify();
    Descriptor written = Descriptor::OpenToRead(GetPath());
    written.Sync();
    m_BytesWritten = written.GetSize();
    written.Close();
    m_Folder.Commit();
  }

private:
  /** What HDF5 could not write shows when it closes the file. Its class of ITK does so when it is destroyed, where an
   * exception ends the process, or when it begins to read. */
  void
  Close()
  {
    CallItk(m_Destination.shown, "cannot be written", [&] {
      if (m_InPieces)
      {
        m_Io->ReadImageInformation();
        m_Io->UnRegister();
      }
      m_Io = nullptr;
    });
  }
  std::filesystem::path
  GetPath() const
  {
    return m_Folder.GetPath(m_Destination.file);
  }
  itk::ImageIOBase::Pointer
  MakeWriter() const
  {
    itk::ImageIOBase::Pointer io = MakeIo(m_Format.name, m_Destination.shown);
    CallItk(m_Destination.shown, "cannot be written", [&] {
      SetHeaderOfItk(*io, m_Header);
      io->SetFileName(GetPath().string());
      io->SetUseCompression(m_Compresses);
      io->SetUseStreamedWriting(true);
    });
    return io;
  }
  void
  WriteRegion(const Box & box, const void * voxels)
  {
    CallItk(m_Destination.shown, "cannot be written", [&] {
      m_Io->SetIORegion(RegionOf(box, m_Header));
      m_Io->Write(voxels);
    });
  }
  void
  Verify() const
  {
    try
    {
      std::unique_ptr<FileSource> source =
        std::make_unique<ItkSource>(MakeIo(m_Format.name, m_Destination.shown), GetPath().string());
      if (source->GetExtent() != GetExtent() || source->GetKind() != m_Header.kind)
      {
        Fail(m_Destination.shown, "has not the size or the type that it should have");
      }
      if (m_Format.keeps & LosesVoxels)
      {
        return;
      }
      std::uint64_t mixed = 0;
      const Box     image = Box::FromExtent(GetExtent());
      const int     axis = LastAxis(GetExtent());
      const auto    planeBytes = static_cast<std::int64_t>(PixelSize(m_Header.kind)) * (m_Count / image.Extent(axis));
      const std::int64_t planes = source->GetAccess().inPieces
                                    ? std::max<std::int64_t>(1, (std::int64_t{ 16 } << 20) / planeBytes)
                                    : image.Extent(axis);
      std::vector<char>  voxels;
      for (std::int64_t lower = 0; lower < image.Extent(axis); lower += planes)
      {
        Box box = image;
        box.lower[axis] = lower;
        box.upper[axis] = std::min(image.upper[axis], lower + planes);
        voxels.resize(static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(m_Header.kind));
        const BufferView view = DenseView(voxels.data(), m_Header.kind, box);
        source->Read(box, view);
        mixed += MixVoxels(GetExtent(), box, view);
      }
      if (mixed != m_Mixed)
      {
        Fail(m_Destination.shown, "other voxels can be read from it than were written");
      }
    }
    catch (const FileError & error)
    {
      Fail(m_Destination.shown, std::string("could not be written whole, the disk may be full: ") + error.what());
    }
  }

  const Format &             m_Format;
  Destination                m_Destination;
  bool                       m_Compresses;
  OutputFolder               m_Folder;
  itk::ImageIOBase::Pointer  m_Io;
  bool                       m_InPieces{ false };
  std::vector<char>          m_Whole;
  std::int64_t               m_Count{ 0 };
  std::atomic<std::int64_t>  m_Done{ 0 };
  std::atomic<std::uint64_t> m_Mixed{ 0 };
};

} // namespace

std::unique_ptr<FileSource>
OpenWithItk(const std::string & file)
{
  const std::string               format = FindFormat(file)->name;
  const itk::ImageIOBase::Pointer io = MakeIo(format, file);
  bool                            canRead = false;
  CallItk(file, "cannot be read", [&] { canRead = io->CanReadFile(file.c_str()); });
  if (!canRead)
  {
    Fail(file, "is no " + format + " file, or is not complete");
  }
  if (format == "PNG")
  {
    CheckPng(file);
  }
  else if (format == "JPEG")
  {
    CheckJpeg(file);
  }
  else if (format == "BMP")
  {
    CheckBmp(file);
  }
  return std::make_unique<ItkSource>(io, file);
}

std::unique_ptr<FileSink>
CreateWithItk(const Format & format, const ImageHeader & header, const Destination & destination, bool compress,
              std::vector<std::string> losses)
{
  return std::make_unique<ItkSink>(format, header, destination, compress, std::move(losses));
}

} // namespace chunkwise::files
