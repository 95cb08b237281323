/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileHdf5.h"
#include "fileItk.h"
#include "fileOutput.h"

#ifdef CHUNKWISE_HAS_ITK
#  include "itkBMPImageIO.h"
#  include "itkGiplImageIO.h"
#  include "itkJPEGImageIO.h"
#  include "itkPNGImageIO.h"
#endif

#include <cstring>
#include <mutex>

namespace chunkwise::files
{

namespace
{

#ifdef CHUNKWISE_HAS_ITK
/** An object that writes `format`. */
itk::ImageIOBase::Pointer
MakeIo(const std::string & format)
{
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
#endif

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

/** An image that a class of ITK writes: HDF5 in pieces, by a separate process, other formats whole at the end. Not
 * all of the libraries below say that a disk is full: what was written is read again before it gets its name. */
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
    if (IsHdf5(format))
    {
      m_Hdf5 = std::make_unique<Hdf5Writer>(GetPath().string(), destination.shown, header, compress);
    }
    else
    {
#ifndef CHUNKWISE_HAS_ITK
      Fail(destination.shown,
           "is in the format " + std::string(format.name) + ", which a build without ITK cannot write");
#endif
      m_Whole.resize(static_cast<std::size_t>(m_Count) * PixelSize(header.kind));
    }
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.inPieces = m_Hdf5 != nullptr;
    access.heldBytes = m_Hdf5 ? Hdf5Writer::GetHeldBytes(m_Header) : m_Whole.size();
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
    if (m_Hdf5)
    {
      return m_Hdf5->Write(box, view);
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
    if (m_Hdf5)
    {
      m_Hdf5->Close();
      m_Hdf5 = nullptr;
    }
    else
    {
      WriteWhole();
      m_Whole = std::vector<char>();
    }
    Verify();
    Descriptor written = Descriptor::OpenToRead(GetPath());
    written.Sync();
    m_BytesWritten = written.GetSize();
    written.Close();
    m_Folder.Commit();
  }

private:
  std::filesystem::path
  GetPath() const
  {
    return m_Folder.GetPath(m_Destination.file);
  }
  void
  WriteWhole() const
  {
#ifdef CHUNKWISE_HAS_ITK
    CallItk(m_Destination.shown, "cannot be written", [&] {
      const itk::ImageIOBase::Pointer io = MakeIo(m_Format.name);
      ApplyItkHeader(MakeItkHeader(m_Header), *io);
      io->SetFileName(GetPath().string());
      io->SetUseCompression(m_Compresses);
      io->Write(m_Whole.data());
    });
#endif
  }
  void
  Verify() const
  {
    try
    {
      std::unique_ptr<FileSource> source =
        m_Format.open ? m_Format.open(GetPath().string()) : OpenVoxels(m_Format.locate(GetPath().string()));
      if (source->GetExtent() != GetExtent() || source->GetKind() != m_Header.kind)
      {
        Fail(m_Destination.shown, "has not the size or the type that it should have");
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
      if (mixed != m_Mixed && !(m_Format.keeps & LosesVoxels))
      {
        Fail(m_Destination.shown, "other voxels can be read from it than were written");
      }
    }
    catch (const FileError & error)
    {
      Fail(m_Destination.shown, std::string("could not be written whole, the disk may be full: ") + error.what());
    }
  }

  const Format &              m_Format;
  Destination                 m_Destination;
  bool                        m_Compresses;
  OutputFolder                m_Folder;
  std::unique_ptr<Hdf5Writer> m_Hdf5;
  std::vector<char>           m_Whole;
  std::int64_t                m_Count{ 0 };
  std::atomic<std::int64_t>   m_Done{ 0 };
  std::atomic<std::uint64_t>  m_Mixed{ 0 };
};

} // namespace

std::unique_ptr<FileSink>
CreateWithItk(const Format & format, const ImageHeader & header, const Destination & destination, bool compress,
              std::vector<std::string> losses)
{
  return std::make_unique<ItkSink>(format, header, destination, compress, std::move(losses));
}

} // namespace chunkwise::files
