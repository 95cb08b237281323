/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileImage.h"
#include "fileTestBoxes.h"

#include "itkBMPImageIO.h"
#include "itkGiplImageIO.h"
#include "itkHDF5ImageIO.h"
#include "itkJPEGImageIO.h"
#include "itkMRCImageIO.h"
#include "itkMetaDataObject.h"
#include "itkMetaImageIO.h"
#include "itkNiftiImageIO.h"
#include "itkNrrdImageIO.h"
#include "itkPNGImageIO.h"
#include "itkTIFFImageIO.h"
#include "itkVTKImageIO.h"

#include <cmath>
#include <csignal>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
#include <tiffio.h>
#include <unistd.h>

namespace
{

namespace fs = std::filesystem;
using namespace chunkwise;
using namespace chunkwise::files;
using files::test::Draw;
using files::test::PaddedBuffer;
using files::test::Random;

/** An image in memory. */
struct Image
{
  ImageHeader       header;
  std::vector<char> voxels;

  BufferView
  GetView()
  {
    return DenseView(voxels.data(), header.kind, Box::FromExtent(header.extent));
  }
};

/** The properties of an ending that a test needs. */
struct Row
{
  const char *           ending;
  std::vector<PixelType> kinds;
  int                    minDimension;
  int                    maxDimension;
  bool                   keepsDirection;
  bool                   keepsOrigin;
  bool                   keepsSpacing;
  bool                   compresses{ false };
};

std::vector<PixelType>
AllKinds()
{
  std::vector<PixelType> kinds;
  for (int i = 0; i < NumberOfPixelTypes; ++i)
  {
    kinds.push_back(static_cast<PixelType>(i));
  }
  return kinds;
}

const std::vector<Row> &
GetRows()
{
  static const std::vector<PixelType> all = AllKinds();
  static const std::vector<PixelType> mrc{ PixelType::UInt8, PixelType::Int16, PixelType::UInt16, PixelType::Float32 };
  static const std::vector<PixelType> png{ PixelType::UInt8, PixelType::UInt16 };
  static const std::vector<PixelType> gipl{ PixelType::UInt8, PixelType::Int8,    PixelType::UInt16,
                                            PixelType::Int16, PixelType::Float32, PixelType::Float64 };
  static const std::vector<Row>       rows{
          { ".mha", all, 2, 5, true, true, true },    { ".mha", all, 2, 5, true, true, true, true },
          { ".mhd", all, 2, 5, true, true, true },    { ".mhd", all, 2, 5, true, true, true, true },
          { ".nrrd", all, 2, 5, true, true, true },   { ".nrrd", all, 2, 5, true, true, true, true },
          { ".nhdr", all, 2, 5, true, true, true },   { ".nhdr", all, 2, 5, true, true, true, true },
          { ".nii", all, 2, 4, true, true, true },    { ".nii.gz", all, 2, 4, true, true, true },
          { ".hdr", all, 2, 4, true, true, true },    { ".img", all, 2, 4, true, true, true },
          { ".mrc", mrc, 2, 3, false, true, true },   { ".vtk", all, 2, 3, false, true, true },
          { ".tif", all, 2, 3, false, false, false }, { ".h5", all, 2, 5, true, true, true },
          { ".gipl", gipl, 2, 3, false, true, true }, { ".gipl.gz", gipl, 2, 3, false, true, true },
          { ".png", png, 2, 2, false, false, false }, { ".bmp", { PixelType::UInt8 }, 2, 2, false, false, false },
  };
  return rows;
}

itk::ImageIOBase::Pointer
MakeIo(const std::string & ending)
{
  using Make = itk::ImageIOBase::Pointer (*)();
  static const std::map<std::string, Make> makers{
    { ".mha", [] { return itk::ImageIOBase::Pointer(itk::MetaImageIO::New()); } },
    { ".mhd", [] { return itk::ImageIOBase::Pointer(itk::MetaImageIO::New()); } },
    { ".nrrd", [] { return itk::ImageIOBase::Pointer(itk::NrrdImageIO::New()); } },
    { ".nhdr", [] { return itk::ImageIOBase::Pointer(itk::NrrdImageIO::New()); } },
    { ".nii", [] { return itk::ImageIOBase::Pointer(itk::NiftiImageIO::New()); } },
    { ".nii.gz", [] { return itk::ImageIOBase::Pointer(itk::NiftiImageIO::New()); } },
    { ".hdr", [] { return itk::ImageIOBase::Pointer(itk::NiftiImageIO::New()); } },
    { ".img", [] { return itk::ImageIOBase::Pointer(itk::NiftiImageIO::New()); } },
    { ".mrc", [] { return itk::ImageIOBase::Pointer(itk::MRCImageIO::New()); } },
    { ".vtk", [] { return itk::ImageIOBase::Pointer(itk::VTKImageIO::New()); } },
    { ".tif", [] { return itk::ImageIOBase::Pointer(itk::TIFFImageIO::New()); } },
    { ".h5", [] { return itk::ImageIOBase::Pointer(itk::HDF5ImageIO::New()); } },
    { ".gipl", [] { return itk::ImageIOBase::Pointer(itk::GiplImageIO::New()); } },
    { ".gipl.gz", [] { return itk::ImageIOBase::Pointer(itk::GiplImageIO::New()); } },
    { ".png", [] { return itk::ImageIOBase::Pointer(itk::PNGImageIO::New()); } },
    { ".jpg", [] { return itk::ImageIOBase::Pointer(itk::JPEGImageIO::New()); } },
    { ".bmp", [] { return itk::ImageIOBase::Pointer(itk::BMPImageIO::New()); } },
  };
  return makers.at(ending)();
}

void
WriteWithItk(const std::string & file, const std::string & ending, const Image & image, bool compress)
{
  const itk::ImageIOBase::Pointer io = MakeIo(ending);
  const auto                      n = static_cast<unsigned int>(image.header.dimension);
  io->SetNumberOfDimensions(n);
  itk::ImageIORegion region(n);
  for (unsigned int a = 0; a < n; ++a)
  {
    const auto axis = static_cast<int>(a);
    io->SetDimensions(a, static_cast<itk::SizeValueType>(image.header.extent[axis]));
    io->SetSpacing(a, image.header.spacing[axis]);
    io->SetOrigin(a, image.header.origin[axis]);
    std::vector<double> direction(n);
    for (unsigned int row = 0; row < n; ++row)
    {
      direction[row] = image.header.direction[row][a];
    }
    io->SetDirection(a, direction);
    region.SetSize(a, static_cast<itk::SizeValueType>(image.header.extent[axis]));
  }
  DispatchPixelType(image.header.kind,
                    [&](auto pixel) { io->SetComponentType(itk::ImageIOBase::MapPixelType<decltype(pixel)>::CType); });
  io->SetPixelType(itk::IOPixelEnum::SCALAR);
  io->SetNumberOfComponents(1);
  for (const auto & [key, text] : image.header.metadata)
  {
    itk::EncapsulateMetaData<std::string>(io->GetMetaDataDictionary(), key, text);
  }
  io->SetIORegion(region);
  io->SetUseCompression(compress);
  io->SetFileName(file);
  io->Write(image.voxels.data());
}

Image
ReadWithItk(const std::string & file, const std::string & ending)
{
  const itk::ImageIOBase::Pointer io = MakeIo(ending);
  Image                           image;
  io->SetFileName(file);
  io->SetExpandRGBPalette(false);
  io->ReadImageInformation();
  const unsigned int n = io->GetNumberOfDimensions();
  image.header.dimension = static_cast<int>(n);
  image.header.components = static_cast<int>(io->GetNumberOfComponents());
  itk::ImageIORegion region(n);
  for (unsigned int a = 0; a < n; ++a)
  {
    const auto axis = static_cast<int>(a);
    image.header.extent[axis] = static_cast<std::int64_t>(io->GetDimensions(a));
    image.header.spacing[axis] = io->GetSpacing(a);
    image.header.origin[axis] = io->GetOrigin(a);
    for (unsigned int row = 0; row < n; ++row)
    {
      image.header.direction[row][axis] = io->GetDirection(a)[row];
    }
    region.SetSize(a, io->GetDimensions(a));
  }
  const bool isFloat =
    io->GetComponentType() == itk::IOComponentEnum::FLOAT || io->GetComponentType() == itk::IOComponentEnum::DOUBLE;
  const std::string type = itk::ImageIOBase::GetComponentTypeAsString(io->GetComponentType());
  const std::size_t size = io->GetComponentSize();
  const int         base = size == 1 ? 0 : size == 2 ? 2 : size == 4 ? 4 : 6;
  image.header.kind = isFloat ? (size == 4 ? PixelType::Float32 : PixelType::Float64)
                              : static_cast<PixelType>(base + (type.compare(0, 8, "unsigned") == 0 ? 0 : 1));
  for (const std::string & key : io->GetMetaDataDictionary().GetKeys())
  {
    std::string text;
    if (itk::ExposeMetaData<std::string>(io->GetMetaDataDictionary(), key, text))
    {
      image.header.metadata[key] = text;
    }
  }
  image.voxels.resize(io->GetImageSizeInBytes());
  io->SetIORegion(region);
  io->Read(image.voxels.data());
  return image;
}

/** Any rotation, and with it mirrored axes. */
void
DrawGeometry(ImageHeader & header, Random & random)
{
  std::uniform_real_distribution<double> number(-1, 1);
  const int                              n = std::min(header.dimension, 3);
  double                                 m[3][3];
  // Gram and Schmidt.
  for (int a = 0; a < n; ++a)
  {
    double length = 0;
    while (length < 0.2)
    {
      for (int row = 0; row < n; ++row)
      {
        m[row][a] = number(random);
      }
      for (int b = 0; b < a; ++b)
      {
        double sum = 0;
        for (int row = 0; row < n; ++row)
        {
          sum += m[row][a] * m[row][b];
        }
        for (int row = 0; row < n; ++row)
        {
          m[row][a] -= sum * m[row][b];
        }
      }
      length = 0;
      for (int row = 0; row < n; ++row)
      {
        length += m[row][a] * m[row][a];
      }
      length = std::sqrt(length);
    }
    for (int row = 0; row < n; ++row)
    {
      m[row][a] /= length;
      header.direction[row][a] = m[row][a];
    }
  }
  for (int a = 0; a < header.dimension; ++a)
  {
    header.spacing[a] = 0.1 + 2 * std::abs(number(random));
    header.origin[a] = 100 * number(random);
  }
}

Image
DrawImage(PixelType kind, int dimension, Random & random, std::int64_t most = 9)
{
  Image image;
  image.header.kind = kind;
  image.header.dimension = dimension;
  for (int a = 0; a < dimension; ++a)
  {
    image.header.extent[a] = Draw(random, a == dimension - 1 ? 2 : 1, most);
  }
  DrawGeometry(image.header, random);
  const auto voxels = static_cast<std::size_t>(Box::FromExtent(image.header.extent).NumberOfVoxels());
  image.voxels.resize(voxels * PixelSize(kind));
  DispatchPixelType(kind, [&](auto pixel) {
    using Pixel = decltype(pixel);
    for (std::size_t i = 0; i < voxels; ++i)
    {
      Pixel value{};
      if constexpr (std::is_floating_point_v<Pixel>)
      {
        value = static_cast<Pixel>(std::uniform_real_distribution<double>(-1e6, 1e6)(random));
      }
      else
      {
        value = static_cast<Pixel>(std::uniform_int_distribution<std::uint64_t>()(random));
      }
      std::memcpy(&image.voxels[i * sizeof(Pixel)], &value, sizeof(Pixel));
    }
  });
  return image;
}

Image
ReadInBoxes(FileSource & source, Random & random)
{
  Image image;
  image.header = source.GetHeader();
  image.voxels.resize(static_cast<std::size_t>(Box::FromExtent(image.header.extent).NumberOfVoxels()) *
                      PixelSize(image.header.kind));
  // Sources that are read in order must serve any other, too.
  for (const Box & box : files::test::CutInBoxes(source.GetExtent(), true, random))
  {
    PaddedBuffer buffer(box, source.GetKind(), random);
    source.Read(box, buffer.view);
    BufferView to = image.GetView();
    for (std::int64_t t = box.lower[4]; t < box.upper[4]; ++t)
      for (std::int64_t s = box.lower[3]; s < box.upper[3]; ++s)
        for (std::int64_t z = box.lower[2]; z < box.upper[2]; ++z)
          for (std::int64_t y = box.lower[1]; y < box.upper[1]; ++y)
          {
            const Coordinates index{ { box.lower[0], y, z, s, t } };
            const auto        size = static_cast<std::int64_t>(PixelSize(to.kind));
            std::memcpy(static_cast<char *>(to.data) + to.Offset(index) * size,
                        static_cast<char *>(buffer.view.data) + buffer.view.Offset(index) * size,
                        static_cast<std::size_t>(box.Extent(0) * size));
          }
  }
  return image;
}

Image
Read(const std::string & file)
{
  Random random(7);
  return ReadInBoxes(*OpenImage(file), random);
}

void
WriteInBoxes(FileSink & sink, Image & image, Random & random)
{
  for (const Box & box : files::test::CutInBoxes(sink.GetExtent(), sink.GetAccess().anyOrder, random))
  {
    sink.Write(box, image.GetView());
  }
  sink.Finish();
}

std::vector<std::string>
Write(const std::string & file, Image & image, bool compress = false, const std::vector<fs::path> & inputs = {})
{
  Random        random(11);
  OutputOptions options;
  options.compress = compress;
  options.inputFiles = inputs;
  const auto sink = CreateImage(file, image.header, options);
  WriteInBoxes(*sink, image, random);
  return sink->GetLosses();
}

/** `other` may have fewer axes, if the missing axes have one voxel. */
void
ExpectSameImage(const Image & image, const Image & other, const Row & row, double tolerance)
{
  EXPECT_TRUE(image.header.extent == other.header.extent)
    << ToString(image.header.extent) << " and " << ToString(other.header.extent);
  ASSERT_EQ(PixelTypeName(image.header.kind), std::string(PixelTypeName(other.header.kind)));
  EXPECT_TRUE(image.voxels == other.voxels);
  const int n = std::min(image.header.dimension, other.header.dimension);
  for (int a = 0; a < n; ++a)
  {
    if (row.keepsSpacing)
    {
      EXPECT_NEAR(image.header.spacing[a], other.header.spacing[a], tolerance * image.header.spacing[a])
        << "axis " << a;
    }
    // ITK knows no offset in time of NIfTI.
    if (row.keepsOrigin && !(a == 3 && row.maxDimension == 4))
    {
      EXPECT_NEAR(image.header.origin[a], other.header.origin[a], 100 * tolerance) << "axis " << a;
    }
    for (int b = 0; row.keepsDirection && b < n; ++b)
    {
      EXPECT_NEAR(image.header.direction[a][b], other.header.direction[a][b], 4 * tolerance) << a << ", " << b;
    }
  }
}

std::string
ErrorOf(const std::function<void()> & call)
{
  try
  {
    call();
  }
  catch (const FileError & error)
  {
    return error.what();
  }
  return std::string();
}

std::string
Contents(const fs::path & file)
{
  std::ifstream stream(file, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>());
}

void
Put(const fs::path & file, const std::string & contents)
{
  std::ofstream(file, std::ios::binary) << contents;
}

class Files : public ::testing::Test
{
protected:
  void
  SetUp() override
  {
    // In memory where that can be: thousands of files are written through to the disk.
    const fs::path parent = access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string    name = (parent / "chunkwise-files-XXXXXX").string();
    ASSERT_TRUE(mkdtemp(name.data()));
    folder = name;
  }
  void
  TearDown() override
  {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  std::string
  Path(const std::string & name) const
  {
    return (folder / name).string();
  }
  /** Names of what is there, hidden files too. */
  std::vector<std::string>
  List() const
  {
    std::vector<std::string> names;
    for (const auto & entry : fs::directory_iterator(folder))
    {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
  fs::path folder;
};

TEST_F(Files, ItkReadsWhatIsWritten)
{
  Random random(1);
  for (const Row & row : GetRows())
  {
    for (const PixelType kind : row.kinds)
    {
      for (int dimension = row.minDimension; dimension <= row.maxDimension; ++dimension)
      {
        SCOPED_TRACE(std::string(row.ending) + (row.compresses ? " compressed " : " ") + PixelTypeName(kind) + " " +
                     std::to_string(dimension));
        Image             image = DrawImage(kind, dimension, random);
        const std::string file = Path("out" + std::to_string(&row - GetRows().data()) + row.ending);
        ASSERT_EQ(ErrorOf([&] { Write(file, image, row.compresses); }), "");
        if (std::string(row.ending) == ".tif" && PixelSize(kind) > 2 && kind != PixelType::Float32)
        {
          continue; // ITK reads these in another way; the test with tifffile has them.
        }
        Image other;
        ASSERT_NO_THROW(other = ReadWithItk(file, row.ending));
        ExpectSameImage(image, other, row, 2e-6);
        // And so does this library.
        Image own;
        ASSERT_EQ(ErrorOf([&] { own = Read(file); }), "");
        ExpectSameImage(image, own, row, 2e-6);
        EXPECT_TRUE(own.header.dimension == dimension || std::string(row.ending) == ".mrc" ||
                    (dimension == 3 && std::string(row.ending) == ".tif") || own.header.dimension == 3)
          << own.header.dimension;
        if (HasFailure())
        {
          return;
        }
      }
    }
  }
}

TEST_F(Files, CompressedBlocksAreOneStream)
{
  // More than one batch of blocks on any number of cores, some that compress well and some that do not; the last block
  // is short, or there is none behind a whole one.
  Random random(21);
  for (const std::int64_t planes : { 64, 61 })
  {
    Image image = DrawImage(PixelType::UInt16, 3, random);
    image.header.extent = { 512, 256, planes, 1, 1 };
    image.voxels.resize(static_cast<std::size_t>(512 * 256 * planes) * 2);
    for (std::size_t i = 0; i < image.voxels.size(); ++i)
    {
      image.voxels[i] = static_cast<char>(i / 700000 % 2 == 0 ? random() : i / 100);
    }
    for (const Row & row : GetRows())
    {
      if (row.compresses && std::string(row.ending) != ".tif")
      {
        SCOPED_TRACE(std::string(row.ending) + " " + std::to_string(planes));
        const std::string file = Path("blocks" + std::to_string(planes) + row.ending);
        ASSERT_EQ(ErrorOf([&] { Write(file, image, true); }), "");
        Image other;
        ASSERT_NO_THROW(other = ReadWithItk(file, row.ending));
        EXPECT_TRUE(image.voxels == other.voxels);
        ASSERT_EQ(ErrorOf([&] { other = Read(file); }), "");
        EXPECT_TRUE(image.voxels == other.voxels);
        fs::remove(file);
      }
    }
  }
}

TEST_F(Files, WhatItkWritesIsRead)
{
  Random random(2);
  for (const Row & row : GetRows())
  {
    for (const PixelType kind : row.kinds)
    {
      for (int dimension = row.minDimension; dimension <= row.maxDimension; ++dimension)
      {
        SCOPED_TRACE(std::string(row.ending) + (row.compresses ? " compressed " : " ") + PixelTypeName(kind) + " " +
                     std::to_string(dimension));
        const Image       image = DrawImage(kind, dimension, random);
        const std::string file = Path("in" + std::to_string(&row - GetRows().data()) + row.ending);
        Image             itks;
        try
        {
          WriteWithItk(file, row.ending, image, row.compresses);
          itks = ReadWithItk(file, row.ending);
        }
        catch (const itk::ExceptionObject &)
        {
          continue; // ITK has fewer kinds or dimensions.
        }
        if (itks.voxels != image.voxels)
        {
          continue;
        }
        Image own;
        ASSERT_EQ(ErrorOf([&] { own = Read(file); }), "");
        // ITK computes with floats what NIfTI, MRC and TIFF do not say as it is.
        static const std::set<std::string> computed{ ".tif", ".nii", ".nii.gz", ".hdr", ".img", ".mrc" };
        ExpectSameImage(itks, own, row, computed.count(row.ending) ? 2e-6 : 0);
        if (HasFailure())
        {
          return;
        }
      }
    }
  }
}

TEST_F(Files, TruncatedFilesFail)
{
  Random random(3);
  for (const Row & row : GetRows())
  {
    for (const int dimension : { row.minDimension, row.maxDimension })
    {
      Image             image = DrawImage(row.kinds.back(), dimension, random, 12);
      const std::string ending = row.ending;
      const std::string file = Path("whole" + std::to_string(&row - GetRows().data()) + ending);
      ASSERT_EQ(ErrorOf([&] { Write(file, image, row.compresses); }), "");
      const std::vector<fs::path> parts = OpenImage(file)->GetFiles();
      for (const fs::path & part : parts)
      {
        const std::string all = Contents(part);
        for (std::size_t eighth = 0; eighth <= 8; ++eighth)
        {
          // The last is one byte short.
          const std::size_t length = eighth == 8 ? all.size() - 1 : all.size() * eighth / 8;
          SCOPED_TRACE(part.filename().string() + ": " + std::to_string(length) + " of " + std::to_string(all.size()) +
                       " bytes" + (row.compresses ? ", compressed" : ""));
          Put(part, all.substr(0, length));
          // A header of text alone may lack the end of its last line.
          // The last bytes of a header of NIfTI alone say only that no extensions follow.
          const bool mayBeGood = eighth == 8 && (all.back() == '\n' || part.extension() == ".hdr");
          if (!mayBeGood)
          {
            const std::string why = ErrorOf([&] { Read(file); });
            EXPECT_NE(why, "");
            EXPECT_EQ(why.find('\n'), std::string::npos) << why;
          }
        }
        Put(part, all);
      }
      EXPECT_TRUE(Read(file).voxels == image.voxels);
    }
  }
}

TEST_F(Files, ADamagedCompressedFileFails)
{
  Random random(4);
  Image  image = DrawImage(PixelType::UInt16, 3, random, 20);
  for (const std::string name : { "x.nii.gz", "x.mha", "x.nrrd" })
  {
    Write(Path(name), image, true);
    std::string all = Contents(Path(name));
    all[all.size() - 12] ^= 0x40;
    Put(Path(name), all);
    EXPECT_NE(ErrorOf([&] { Read(Path(name)); }), "") << name;
  }
}

TEST_F(Files, SeveralMembersOfGzipAreOneStream)
{
  Random random(5);
  Image  image = DrawImage(PixelType::Float32, 3, random);
  Write(Path("x.nii"), image);
  const std::string all = Contents(Path("x.nii"));
  Put(Path("a"), all.substr(0, 300));
  Put(Path("b"), all.substr(300));
  ASSERT_EQ(std::system(("cd '" + folder.string() + "' && gzip a && gzip b && cat a.gz b.gz > y.nii.gz").c_str()), 0);
  EXPECT_TRUE(Read(Path("y.nii.gz")).voxels == image.voxels);
}

/** Swaps what a plain file has of numbers: fields of `size` bytes at `at`. */
void
Swap(std::string & bytes, std::size_t at, std::size_t size, std::size_t count = 1)
{
  for (std::size_t i = 0; i < count; ++i)
  {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at + i * size),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + (i + 1) * size));
  }
}

TEST_F(Files, TheOtherByteOrderIsRead)
{
  Random random(6);
  for (const PixelType kind : AllKinds())
  {
    SCOPED_TRACE(PixelTypeName(kind));
    const std::size_t size = PixelSize(kind);
    Image             image = DrawImage(kind, 3, random);
    const auto        voxels = image.voxels.size() / size;

    Write(Path("x.mha"), image);
    std::string all = Contents(Path("x.mha"));
    all.replace(all.find("OrderMSB = False"), 16, "OrderMSB = True ");
    Swap(all, all.size() - image.voxels.size(), size, voxels);
    Put(Path("x.mha"), all);
    EXPECT_TRUE(Read(Path("x.mha")).voxels == image.voxels);

    Write(Path("x.nrrd"), image);
    all = Contents(Path("x.nrrd"));
    all.replace(all.find("endian: little"), 14, "endian: big");
    Swap(all, all.size() - image.voxels.size(), size, voxels);
    Put(Path("x.nrrd"), all);
    EXPECT_TRUE(Read(Path("x.nrrd")).voxels == image.voxels);

    Write(Path("x.nii"), image);
    const Image plain = Read(Path("x.nii"));
    all = Contents(Path("x.nii"));
    Swap(all, 0, 4);
    Swap(all, 40, 2, 8);
    Swap(all, 56, 4, 3);
    Swap(all, 68, 2, 4);
    Swap(all, 76, 4, 11);
    Swap(all, 120, 2);
    Swap(all, 124, 4, 6);
    Swap(all, 252, 2, 2);
    Swap(all, 256, 4, 18);
    Swap(all, all.size() - image.voxels.size(), size, voxels);
    Put(Path("x.nii"), all);
    ExpectSameImage(plain, Read(Path("x.nii")), GetRows()[0], 0);

    if (kind == PixelType::Int16 || kind == PixelType::UInt16 || kind == PixelType::Float32)
    {
      Write(Path("x.mrc"), image);
      all = Contents(Path("x.mrc"));
      Swap(all, 0, 4, 26);
      Swap(all, 108, 4);
      Swap(all, 152, 4, 14);
      all.replace(212, 4, std::string("\x11\x11\0\0", 4));
      Swap(all, 216, 4, 2);
      Swap(all, 1024, size, voxels);
      Put(Path("x.mrc"), all);
      EXPECT_TRUE(Read(Path("x.mrc")).voxels == image.voxels);
    }
  }
}

TEST_F(Files, TiffOfAnyKindIsRead)
{
  Random random(7);
  for (const char * const mode : { "wl", "wb", "wl8", "wb8" })
  {
    for (const std::uint16_t compression : { COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_ADOBE_DEFLATE })
    {
      for (const bool tiled : { false, true })
      {
        for (const PixelType kind : AllKinds())
        {
          SCOPED_TRACE(std::string(mode) + " " + std::to_string(compression) + (tiled ? " tiled " : " ") +
                       PixelTypeName(kind));
          const std::size_t size = PixelSize(kind);
          Image             image = DrawImage(kind, 3, random, 40);
          const auto        w = static_cast<std::uint32_t>(image.header.extent[0]);
          const auto        h = static_cast<std::uint32_t>(image.header.extent[1]);
          TIFF * const      tiff = TIFFOpen(Path("x.tif").c_str(), mode);
          for (std::int64_t z = 0; z < image.header.extent[2]; ++z)
          {
            char * const page = image.voxels.data() + static_cast<std::size_t>(z) * w * h * size;
            TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, w);
            TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, h);
            TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, static_cast<int>(8 * size));
            TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
            TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
            TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
            TIFFSetField(tiff,
                         TIFFTAG_SAMPLEFORMAT,
                         IsFloatingPoint(kind)             ? SAMPLEFORMAT_IEEEFP
                         : static_cast<int>(kind) % 2 == 1 ? SAMPLEFORMAT_INT
                                                           : SAMPLEFORMAT_UINT);
            if (tiled)
            {
              TIFFSetField(tiff, TIFFTAG_TILEWIDTH, 16);
              TIFFSetField(tiff, TIFFTAG_TILELENGTH, 16);
              std::vector<char> tile(16 * 16 * size);
              for (std::uint32_t y = 0; y < h; y += 16)
              {
                for (std::uint32_t x = 0; x < w; x += 16)
                {
                  for (std::uint32_t row = 0; row < std::min(16u, h - y); ++row)
                  {
                    std::memcpy(&tile[row * 16 * size], page + ((y + row) * w + x) * size, std::min(16u, w - x) * size);
                  }
                  TIFFWriteTile(tiff, tile.data(), x, y, 0, 0);
                }
              }
            }
            else
            {
              TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 5);
              std::vector<char> row(w * size);
              for (std::uint32_t y = 0; y < h; ++y)
              {
                // libtiff swaps in place.
                std::memcpy(row.data(), page + y * w * size, row.size());
                TIFFWriteScanline(tiff, row.data(), y, 0);
              }
            }
            TIFFWriteDirectory(tiff);
          }
          TIFFClose(tiff);
          Image own;
          ASSERT_EQ(ErrorOf([&] { own = Read(Path("x.tif")); }), "");
          ASSERT_TRUE(own.header.extent == image.header.extent);
          ASSERT_TRUE(own.voxels == image.voxels);
        }
      }
    }
  }
}

TEST_F(Files, ScaledNiftiIsAsItkHasIt)
{
  Random random(8);
  for (const PixelType kind : AllKinds())
  {
    for (const float slope : { 0.0f, 1.0f, 0.37f })
    {
      SCOPED_TRACE(std::string(PixelTypeName(kind)) + " slope " + std::to_string(slope));
      Image image = DrawImage(kind, 3, random);
      Write(Path("x.nii"), image);
      std::string all = Contents(Path("x.nii"));
      const float scale[2] = { slope, 13.5f };
      std::memcpy(&all[112], scale, sizeof(scale));
      Put(Path("x.nii"), all);
      // By the standard a slope of 0 says that nothing is scaled; ITK adds the intercept.
      const Image itks = slope == 0 ? image : ReadWithItk(Path("x.nii"), ".nii");
      Image       own;
      ASSERT_EQ(ErrorOf([&] { own = Read(Path("x.nii")); }), "");
      ExpectSameImage(itks, own, GetRows()[0], 2e-6);
      ASSERT_EQ(std::system(("gzip -kf '" + Path("x.nii") + "'").c_str()), 0);
      ExpectSameImage(itks, Read(Path("x.nii.gz")), GetRows()[0], 2e-6);
    }
  }
}

TEST_F(Files, NiftiKeepsItsOwnFields)
{
  Random random(9);
  Image  image = DrawImage(PixelType::Int16, 4, random);
  Write(Path("x.nii"), image);
  std::string all = Contents(Path("x.nii"));
  const auto  put = [&](std::size_t at, auto value) { std::memcpy(&all[at], &value, sizeof(value)); };
  put(252, std::int16_t{ 2 });
  put(254, std::int16_t{ 4 });
  // The matrix of another space than the quaternion's.
  put(280 + 12, 77.0f);
  put(136, 2.5f);
  put(122, std::uint8_t{ 3 });
  put(132, 0.25f);
  all.replace(148, 9, "a scanner");
  all.replace(328, 6, "a name");
  put(123, static_cast<std::uint8_t>(2 | 16));
  Put(Path("x.nii"), all);
  Image again = Read(Path("x.nii"));
  EXPECT_EQ(again.header.metadata.at("descrip"), "a scanner");
  for (const std::string name : { "y.nii", "y.nii.gz" })
  {
    EXPECT_EQ(Write(Path(name), again), std::vector<std::string>());
  }
  ASSERT_EQ(std::system(("gunzip -kf '" + Path("y.nii.gz") + "' -c > '" + Path("z.nii") + "'").c_str()), 0);
  EXPECT_TRUE(Contents(Path("y.nii")) == all);
  EXPECT_TRUE(Contents(Path("z.nii")) == all);
  // Elsewhere the matrix is not true any more.
  again.header.origin[0] += 5;
  EXPECT_EQ(Write(Path("y.nii"), again).size(), 1u);
  EXPECT_NEAR(Read(Path("y.nii")).header.origin[0], again.header.origin[0], 1e-4);
}

TEST_F(Files, NiftiOfTheSecondVersionHasTheGeometryOfTheFirst)
{
  Random random(10);
  for (int i = 0; i < 20; ++i)
  {
    Image image = DrawImage(PixelType::Float64, 2 + i % 3, random);
    Write(Path("x.nii"), image);
    const Image first = Read(Path("x.nii"));
    image.header.extent = Coordinates::Filled(1);
    // An axis that the first version cannot hold.
    image.header.extent[0] = 40000;
    image.header.extent[1] = 2;
    image.voxels.resize(80000 * 8);
    Write(Path("y.nii"), image);
    EXPECT_EQ(Contents(Path("y.nii")).substr(4, 3), "n+2");
    const Image second = Read(Path("y.nii"));
    EXPECT_TRUE(second.voxels == image.voxels);
    for (int a = 0; a < image.header.dimension; ++a)
    {
      EXPECT_NEAR(first.header.spacing[a], second.header.spacing[a], 1e-6);
      EXPECT_NEAR(first.header.origin[a], second.header.origin[a], 1e-4) << "axis " << a;
      for (int b = 0; b < image.header.dimension; ++b)
      {
        EXPECT_NEAR(first.header.direction[a][b], second.header.direction[a][b], 1e-5);
      }
    }
  }
}

TEST_F(Files, HeadersOfOtherProgramsAreUnderstood)
{
  Put(Path("v.dat"), std::string("skipped\nABxyzw"));
  Put(Path("a.mhd"),
      "ObjectType = Image\nNDims = 2\nDimSize = 2 2\nHeaderSize = -1\nElementType = MET_UCHAR\n"
      "ElementDataFile = v.dat\n");
  const auto text = [&](const std::string & name) {
    const Image image = Read(Path(name));
    return std::string(image.voxels.begin(), image.voxels.end());
  };
  EXPECT_EQ(text("a.mhd"), "xyzw");
  Put(Path("b.mhd"),
      "ObjectType = Image\nNDims = 2\nDimSize = 2 2\nHeaderSize = 9\nElementType = MET_UCHAR\n"
      "ElementDataFile = v.dat\n");
  EXPECT_EQ(text("b.mhd"), "Bxyz");
  Put(Path("c.nhdr"),
      "NRRD0004\ntype: uchar\ndimension: 2\nsizes: 2 2\nencoding: raw\nline skip: 1\nbyte skip: 1\n"
      "data file: v.dat\n");
  EXPECT_EQ(text("c.nhdr"), "Bxyz");
  Put(Path("d.nhdr"),
      "NRRD0004\ntype: uchar\ndimension: 2\nsizes: 2 2\nencoding: raw\nbyte skip: -1\ndata file: v.dat\n\n");
  EXPECT_EQ(text("d.nhdr"), "xyzw");
  Put(Path("e.nrrd"), "NRRD0004\ntype: uchar\ndimension: 2\nsizes: 2 2\nencoding: ascii\n\n65 66\n67 68\n");
  EXPECT_EQ(text("e.nrrd"), "ABCD");
  Put(Path("f.mha"),
      "ObjectType = Image\nNDims = 2\nBinaryData = False\nDimSize = 2 2\nElementType = MET_UCHAR\n"
      "ElementDataFile = LOCAL\n65 66 67 68");
  EXPECT_EQ(text("f.mha"), "ABCD");
  Put(Path("g.vtk"),
      "# vtk DataFile Version 2.0\nt\nASCII\nDATASET STRUCTURED_POINTS\nDIMENSIONS 2 2 1\nSPACING 1 1 1\n"
      "ORIGIN 0 0 0\nPOINT_DATA 4\nSCALARS s unsigned_char\nLOOKUP_TABLE default\n65 66\n67 68\n");
  EXPECT_EQ(text("g.vtk"), "ABCD");
  Put(Path("g.vtk"), Contents(Path("g.vtk")).substr(0, Contents(Path("g.vtk")).size() - 4));
  EXPECT_NE(ErrorOf([&] { text("g.vtk"); }), "");
  Put(Path("h.mha"),
      "ObjectType = Image\nNDims = 2\nDimSize = 2 2\nElementType = MET_UCHAR\nElementDataFile = LIST\nv.dat\n");
  EXPECT_NE(ErrorOf([&] { text("h.mha"); }).find("several files"), std::string::npos);
}

TEST_F(Files, SeveralComponentsAreReadOrRefused)
{
  for (const std::string ending : { ".mha", ".nrrd", ".nii", ".vtk", ".png", ".jpg", ".tif", ".h5" })
  {
    itk::ImageIOBase::Pointer io = MakeIo(ending);
    io->SetNumberOfDimensions(2);
    itk::ImageIORegion region(2);
    for (unsigned int a = 0; a < 2; ++a)
    {
      io->SetDimensions(a, 4);
      region.SetSize(a, 4);
    }
    io->SetComponentType(itk::IOComponentEnum::UCHAR);
    io->SetPixelType(itk::IOPixelEnum::RGB);
    io->SetNumberOfComponents(3);
    io->SetIORegion(region);
    io->SetFileName(Path("rgb" + ending));
    std::vector<char> voxels(48);
    std::iota(voxels.begin(), voxels.end(), static_cast<char>(1));
    io->Write(voxels.data());
    // HDF5 locks a file that is written.
    io = nullptr;
    if (ending == ".vtk")
    {
      const std::string why = ErrorOf([&] { Read(Path("rgb" + ending)); });
      EXPECT_TRUE(why.find("3 components") != std::string::npos || why.find("color") != std::string::npos) << why;
      continue;
    }
    const auto source = OpenImage(Path("rgb" + ending));
    ASSERT_EQ(source->GetHeader().components, 3) << ending;
    ASSERT_EQ(source->GetExtent(), (Coordinates{ { 3, 4, 4, 1, 1 } })) << ending;
    // A part of the rows, and two of the components.
    Box box = Box::FromExtent(source->GetExtent());
    box.lower[1] = 1;
    box.upper[1] = 3;
    std::vector<char> part(static_cast<std::size_t>(box.NumberOfVoxels()));
    source->Read(box, DenseView(part.data(), source->GetKind(), box));
    for (std::size_t i = 0; i < part.size() && ending != ".jpg"; ++i)
    {
      ASSERT_EQ(part[i], voxels[i % 6 + 3 + i / 6 * 12]) << ending << ' ' << i;
    }
  }
  ImageHeader header;
  header.dimension = 2;
  header.extent = { { 4, 4, 1, 1, 1 } };
  header.components = 5;
  EXPECT_NE(ErrorOf([&] { CheckOutput(Path("five.png"), header); }).find("5 components"), std::string::npos);
  EXPECT_EQ(ErrorOf([&] { CheckOutput(Path("five.tif"), header); }), "");
}

TEST_F(Files, ComponentsOfNrrdLieAlongItsFirstAxis)
{
  const std::string voxels(2 * 2 * 3, '\1');
  const std::string begin = "NRRD0004\ntype: uint8\ndimension: 3\nencoding: raw\n";
  Put(Path("first.nrrd"), begin + "sizes: 3 2 2\nkinds: vector domain domain\n\n" + voxels);
  EXPECT_EQ(OpenImage(Path("first.nrrd"))->GetHeader().components, 3);
  Put(Path("last.nrrd"), begin + "sizes: 2 2 3\nkinds: domain domain vector\n\n" + voxels);
  EXPECT_NE(ErrorOf([&] { OpenImage(Path("last.nrrd")); }).find("first axis"), std::string::npos);
}

TEST_F(Files, WhatAFormatCannotHoldIsAnErrorBeforeTheWork)
{
  ImageHeader header;
  header.dimension = 3;
  header.extent = { { 4, 4, 4, 1, 1 } };
  header.kind = PixelType::Float64;
  const auto why = [&](const std::string & name, bool compress = false) {
    OutputOptions options;
    options.compress = compress;
    return ErrorOf([&] { CheckOutput(Path(name), header, options); });
  };
  EXPECT_EQ(why("x.mha"), "");
  EXPECT_EQ(why("x.mha", true), "");
  EXPECT_NE(why("x.png").find("what can: .mha"), std::string::npos) << why("x.png");
  EXPECT_NE(why("x.jpg"), "");
  EXPECT_NE(why("x.bmp"), "");
  EXPECT_NE(why("x.mrc"), "");
  EXPECT_NE(why("x.dcm").find("cannot be written"), std::string::npos);
  EXPECT_NE(why("x.unknown").find(".nii.gz"), std::string::npos);
  EXPECT_NE(why("x"), "");
  EXPECT_NE(why("x.tif", true), "");
  EXPECT_NE(why("nowhere/x.mha").find("no folder"), std::string::npos);
  header.dimension = 4;
  EXPECT_NE(why("x.tif"), "");
  EXPECT_EQ(why("x.nii"), "");
  header.dimension = 5;
  EXPECT_NE(why("x.nii"), "");
  fs::create_directory(Path("f.mha"));
  EXPECT_NE(why("f.mha").find("is a folder"), std::string::npos);
  EXPECT_EQ(List(), std::vector<std::string>{ "f.mha" });
}

TEST_F(Files, LossesAreNamed)
{
  Random random(11);
  Image  image = DrawImage(PixelType::Float32, 3, random);
  image.header.metadata["Subject"] = "MR";
  EXPECT_EQ(Write(Path("x.mha"), image), std::vector<std::string>());
  EXPECT_EQ(Read(Path("x.mha")).header.metadata.at("Subject"), "MR");
  EXPECT_EQ(ReadWithItk(Path("x.mha"), ".mha").header.metadata.at("Subject"), "MR");
  EXPECT_EQ(Write(Path("x.nrrd"), image), std::vector<std::string>());
  EXPECT_EQ(Read(Path("x.nrrd")).header.metadata.at("Subject"), "MR");
  EXPECT_EQ(ReadWithItk(Path("x.nrrd"), ".nrrd").header.metadata.at("Subject"), "MR");
  EXPECT_EQ(Write(Path("x.nii"), image), std::vector<std::string>{ "the text of Subject" });
  EXPECT_EQ(Write(Path("x.mrc"), image), (std::vector<std::string>{ "direction", "the text of Subject" }));
  EXPECT_EQ(Write(Path("x.vtk"), image), (std::vector<std::string>{ "direction", "the text of Subject" }));
  EXPECT_EQ(Write(Path("x.tif"), image),
            (std::vector<std::string>{ "origin", "direction", "the text of Subject", "spacing of the third axis" }));
}

TEST_F(Files, NoFileOfAnInputIsReplaced)
{
  Random random(12);
  Image  image = DrawImage(PixelType::UInt8, 3, random);
  Write(Path("o.nhdr"), image);
  const std::string before = Contents(Path("o.raw"));
  const auto        inputs = OpenImage(Path("o.nhdr"))->GetFiles();
  ASSERT_EQ(inputs.size(), 2u);
  // The voxels of another image, input or not.
  EXPECT_NE(ErrorOf([&] { Write(Path("o.mhd"), image, false, inputs); }), "");
  EXPECT_NE(ErrorOf([&] { Write(Path("o.mhd"), image); }), "");
  EXPECT_NE(ErrorOf([&] { Write(Path("o.nhdr"), image, false, inputs); }), "");
  EXPECT_EQ(Contents(Path("o.raw")), before);
  // Its own.
  EXPECT_EQ(ErrorOf([&] { Write(Path("o.nhdr"), image); }), "");
  Write(Path("p.mha"), image);
  EXPECT_EQ(ErrorOf([&] { Write(Path("p.mha"), image, false, OpenImage(Path("p.mha"))->GetFiles()); }), "");
  // A whole image that is the voxels' file of another header.
  const std::string all = Contents(Path("p.mha"));
  const auto &      e = image.header.extent;
  Put(Path("q.nhdr"),
      "NRRD0004\ntype: uchar\ndimension: 3\nsizes: " + std::to_string(e[0]) + " " + std::to_string(e[1]) + " " +
        std::to_string(e[2]) + "\nencoding: raw\nbyte skip: -1\ndata file: p.mha\n");
  EXPECT_NE(ErrorOf([&] { Write(Path("p.mha"), image, false, OpenImage(Path("q.nhdr"))->GetFiles()); }), "");
  EXPECT_EQ(Contents(Path("p.mha")), all);
  EXPECT_EQ(List(), (std::vector<std::string>{ "o.nhdr", "o.raw", "p.mha", "q.nhdr" }));
}

TEST_F(Files, ASymbolicLinkIsFollowed)
{
  Random random(13);
  Image  image = DrawImage(PixelType::UInt8, 3, random);
  fs::create_directory(Path("store"));
  fs::create_symlink("store/one", Path("x.mha"));
  fs::create_symlink("store/two.mhd", Path("y.mhd"));
  Write(Path("x.mha"), image);
  Write(Path("x.mha"), image);
  Write(Path("y.mhd"), image);
  EXPECT_TRUE(fs::is_symlink(Path("x.mha")));
  EXPECT_TRUE(fs::is_regular_file(Path("store/one")));
  EXPECT_TRUE(fs::is_regular_file(Path("store/two.raw")));
  EXPECT_TRUE(Read(Path("x.mha")).voxels == image.voxels);
  EXPECT_TRUE(Read(Path("store/two.mhd")).voxels == image.voxels);
}

TEST_F(Files, WhatIsNoFileIsRefusedAtOnce)
{
  ImageHeader header;
  ASSERT_EQ(mkfifo(Path("pipe.mha").c_str(), 0600), 0);
  EXPECT_NE(ErrorOf([&] { OpenImage(Path("pipe.mha")); }).find("pipe"), std::string::npos);
  EXPECT_NE(ErrorOf([&] { CheckOutput(Path("pipe.mha"), header); }).find("pipe"), std::string::npos);
  Put(Path("x.mhd"),
      "ObjectType = Image\nNDims = 2\nDimSize = 2 2\nElementType = MET_UCHAR\nElementDataFile = pipe.mha\n");
  EXPECT_NE(ErrorOf([&] { OpenImage(Path("x.mhd")); }).find("pipe"), std::string::npos);
  EXPECT_NE(ErrorOf([&] { OpenImage(Path("none.mha")); }).find("No such file"), std::string::npos);
  Put(Path("x.mha"), "ObjectType = Image\n");
  if (geteuid() != 0)
  {
    fs::permissions(Path("x.mha"), fs::perms::none);
    EXPECT_NE(ErrorOf([&] { OpenImage(Path("x.mha")); }).find("Permission denied"), std::string::npos);
    return;
  }
  // Root may read all: another user must try.
  fs::permissions(Path("x.mha"), fs::perms::none);
  fs::permissions(folder, fs::perms::all);
  ASSERT_EQ(seteuid(65534), 0);
  const std::string why = ErrorOf([&] { OpenImage(Path("x.mha")); });
  fs::permissions(folder, fs::perms::owner_all, fs::perm_options::replace, *std::make_unique<std::error_code>());
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_NE(why.find("Permission denied"), std::string::npos) << why;
  fs::permissions(folder,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec | fs::perms::others_read |
                    fs::perms::others_exec);
  ASSERT_EQ(seteuid(65534), 0);
  const std::string cannotWrite = ErrorOf([&] { CheckOutput(Path("y.mha"), header); });
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_NE(cannotWrite.find("Permission denied"), std::string::npos) << cannotWrite;
}

TEST_F(Files, NothingIsThereBeforeFinish)
{
  Random random(14);
  for (const Row & row : GetRows())
  {
    Image             image = DrawImage(row.kinds.back(), row.minDimension, random);
    const std::string file = Path(std::string("x") + row.ending);
    {
      const auto sink = CreateImage(file, image.header, {});
      sink->Write(Box::FromExtent(image.header.extent), image.GetView());
      EXPECT_FALSE(fs::exists(file));
    }
    EXPECT_EQ(List(), std::vector<std::string>()) << row.ending;
    // A part is not enough.
    const auto sink = CreateImage(file, image.header, {});
    EXPECT_THROW(sink->Finish(), std::logic_error);
    RemoveUnfinished();
    EXPECT_EQ(List(), std::vector<std::string>()) << row.ending;
  }
}

/** Runs `call` in a separate process and returns its status as waitpid gives it. */
int
InAChild(const std::function<void()> & call)
{
  const pid_t child = fork();
  if (child == 0)
  {
    call();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

TEST_F(Files, TheNextRunRemovesWhatAKilledOneLeft)
{
  Random    random(15);
  Image     image = DrawImage(PixelType::UInt8, 3, random);
  const int status = InAChild([&] {
    const auto sink = CreateImage(Path("x.mhd"), image.header, {});
    raise(SIGKILL);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(List().size(), 1u);
  // A hidden folder of somebody else, by the same pattern.
  fs::create_directory(Path(".x.mhd.abcdef"));
  Put(Path(".x.mhd.abcdef/precious"), "1");
  const auto living = CreateImage(Path("y.mha"), image.header, {});
  ASSERT_EQ(List().size(), 2u);
  Write(Path("z.mha"), image);
  // The folder of a living process stays.
  EXPECT_EQ(List().size(), 3u);
  EXPECT_TRUE(fs::exists(Path(".x.mhd.abcdef/precious")));
  living->Write(Box::FromExtent(image.header.extent), image.GetView());
  living->Finish();
  EXPECT_EQ(List(), (std::vector<std::string>{ ".x.mhd.abcdef", "y.mha", "z.mha" }));
}

TEST_F(Files, AFullDiskIsAnError)
{
  Random random(16);
  for (const Row & row : GetRows())
  {
    if (std::string(row.ending) == ".bmp" || std::string(row.ending) == ".png")
    {
      continue; // Below, with images that are larger than a limit of a few blocks.
    }
    SCOPED_TRACE(std::string(row.ending) + (row.compresses ? " compressed" : ""));
    Image image = DrawImage(row.kinds.front(), std::min(3, row.maxDimension), random, 9);
    image.header.extent[0] = 211;
    image.header.extent[1] = 97;
    image.voxels.resize(static_cast<std::size_t>(Box::FromExtent(image.header.extent).NumberOfVoxels()));
    std::generate(image.voxels.begin(), image.voxels.end(), [&] { return static_cast<char>(Draw(random, 0, 255)); });
    const int status = InAChild([&] {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{ 20000, 20000 };
      setrlimit(RLIMIT_FSIZE, &limit);
      const std::string why = ErrorOf([&] { Write(Path(std::string("x") + row.ending), image, row.compresses); });
      _exit(why.empty() ? 1 : 0);
    });
    EXPECT_EQ(status, 0);
    EXPECT_EQ(List(), std::vector<std::string>());
  }
}

TEST_F(Files, AFullFileSystemIsAnErrorBeforeTheWork)
{
  const std::string disk = Path("disk");
  fs::create_directory(disk);
  if (mount("none", disk.c_str(), "tmpfs", 0, "size=600k") != 0)
  {
    GTEST_SKIP() << "no file system may be mounted: " << std::strerror(errno);
  }
  Random random(17);
  Image  image = DrawImage(PixelType::UInt8, 3, random);
  image.header.extent = { { 100, 100, 100, 1, 1 } };
  image.voxels.resize(1000000);
  std::generate(image.voxels.begin(), image.voxels.end(), [&] { return static_cast<char>(Draw(random, 0, 255)); });
  for (const std::string name : { "x.mha", "x.mhd", "x.nii", "x.nrrd", "x.tif", "x.vtk", "x.mrc" })
  {
    const std::string why = ErrorOf([&] { CreateImage(disk + "/" + name, image.header, {}); });
    EXPECT_NE(why.find("No space left"), std::string::npos) << name << ": " << why;
  }
  for (const std::string name : { "x.nii.gz", "x.h5", "x.gipl" })
  {
    EXPECT_NE(ErrorOf([&] { Write(disk + "/" + name, image); }), "") << name;
  }
  EXPECT_TRUE(fs::is_empty(disk));
  umount(disk.c_str());
}

TEST_F(Files, ManyThreadsReadAndWrite)
{
  Random random(18);
  for (const std::string name : { "x.mha", "x.vtk", "x.tif", "x.h5", "x.gipl" })
  {
    Image image = DrawImage(PixelType::UInt16, 3, random, 30);
    {
      const auto               sink = CreateImage(Path(name), image.header, {});
      std::vector<std::thread> threads;
      const auto               boxes = files::test::CutInBoxes(image.header.extent, true, random);
      for (const Box & box : boxes)
      {
        threads.emplace_back([&sink, &image, box] { sink->Write(box, image.GetView()); });
      }
      for (std::thread & thread : threads)
      {
        thread.join();
      }
      sink->Finish();
    }
    Image                    own = image;
    const auto               source = OpenImage(Path(name));
    std::vector<std::thread> threads;
    std::fill(own.voxels.begin(), own.voxels.end(), 0);
    for (const Box & box : files::test::CutInBoxes(image.header.extent, true, random))
    {
      threads.emplace_back([&source, &own, box] { source->Read(box, own.GetView()); });
    }
    for (std::thread & thread : threads)
    {
      thread.join();
    }
    EXPECT_TRUE(own.voxels == image.voxels) << name;
  }
}

TEST_F(Files, KeptPlanesAreNotReadAgain)
{
  Random random(19);
  Image  image = DrawImage(PixelType::UInt16, 3, random, 9);
  image.header.extent[2] = 60;
  image.voxels.resize(static_cast<std::size_t>(Box::FromExtent(image.header.extent).NumberOfVoxels()) * 2);
  std::generate(image.voxels.begin(), image.voxels.end(), [&] { return static_cast<char>(Draw(random, 0, 255)); });
  Write(Path("x.nii.gz"), image);
  const auto source = OpenImage(Path("x.nii.gz"));
  source->KeepBehind(6);
  EXPECT_FALSE(source->GetAccess().anyOrder);
  Image own = image;
  std::fill(own.voxels.begin(), own.voxels.end(), 0);
  for (std::int64_t lower = 0; lower < 60; lower += 10)
  {
    Box box = Box::FromExtent(image.header.extent);
    box.lower[2] = std::max<std::int64_t>(0, lower - 3);
    box.upper[2] = std::min<std::int64_t>(60, lower + 13);
    source->Read(box, own.GetView());
  }
  EXPECT_TRUE(own.voxels == image.voxels);
  EXPECT_LE(source->GetBytesRead(), fs::file_size(Path("x.nii.gz")));
}

TEST_F(Files, EveryFormatIsDescribed)
{
  const std::string text = DescribeFormats();
  for (const Row & row : GetRows())
  {
    EXPECT_NE(text.find(row.ending), std::string::npos) << row.ending;
  }
}

} // namespace
