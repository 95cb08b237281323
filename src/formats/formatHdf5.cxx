/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileItkHeader.h"
#include "formatServices.h"

#include "itkHDF5ImageIO.h"
#include "itkStreamingImageIOBase.h"
#include "itk_hdf5.h"

#include <algorithm>

namespace chunkwise::formats
{

namespace
{

/** An identifier of HDF5's C interface, which ITK's class does not use. */
class Handle
{
public:
  Handle(hid_t id, herr_t (*close)(hid_t))
    : m_Id(id)
    , m_Close(close)
  {
    if (id < 0)
    {
      throw std::runtime_error("its HDF5 structure is damaged");
    }
  }
  ~Handle() { m_Close(m_Id); }
  Handle(const Handle &) = delete;
  Handle &
  operator=(const Handle &) = delete;
  operator hid_t() const { return m_Id; }

private:
  hid_t m_Id;
  herr_t (*m_Close)(hid_t);
};

[[noreturn]] void
RefuseDamage(const std::string & what)
{
  throw std::runtime_error("it is damaged: " + what);
}

/** The sizes of stored chunks: of voxels, and of bytes; no bytes where there are none. */
struct Chunks
{
  std::vector<hsize_t> extent;
  std::uint64_t        bytes{ 0 };
  bool                 isCompressed{ false };
};

/** HDF5 gives zeros, and no error, for a chunk that a damaged index does not lead to. ITK writes all chunks. */
void
CheckChunks(hid_t data, const std::vector<hsize_t> & extent, const Chunks & chunks, std::uint64_t fileBytes)
{
  const std::size_t    axes = extent.size();
  std::vector<hsize_t> chunk(axes, 0);
  for (;;)
  {
    unsigned int mask = 0;
    haddr_t      address = HADDR_UNDEF;
    hsize_t      bytes = 0;
    const bool   isThere =
      H5Dget_chunk_info_by_coord(data, chunk.data(), &mask, &address, &bytes) >= 0 && address != HADDR_UNDEF;
    if (!isThere)
    {
      RefuseDamage("its index has no entry for a part of the voxels");
    }
    // Reading searches the index, where the above goes over all of its entries.
    hsize_t found = 0;
    if (H5Dget_chunk_storage_size(data, chunk.data(), &found) < 0 || found != bytes)
    {
      RefuseDamage("its index does not lead to a part of the voxels");
    }
    if (address > fileBytes || bytes > fileBytes - address)
    {
      RefuseDamage("it ends before a part of the voxels");
    }
    // A filter may leave out what it would only make larger.
    if ((!chunks.isCompressed || mask != 0) && bytes != chunks.bytes)
    {
      RefuseDamage("a part of the voxels has " + std::to_string(bytes) + " bytes, not " + std::to_string(chunks.bytes));
    }
    std::size_t a = axes;
    while (a > 0 && (chunk[a - 1] += chunks.extent[a - 1]) >= extent[a - 1])
    {
      chunk[--a] = 0;
    }
    if (a == 0)
    {
      return;
    }
  }
}

/** Looks at how the voxels lie, before ITK reads any. */
Chunks
ExamineVoxels(const std::string & path)
{
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  const Handle  file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  hsize_t       fileBytes = 0;
  char          name[256] = "";
  const Handle  images(H5Gopen2(file, "/ITKImage", H5P_DEFAULT), H5Gclose);
  const ssize_t length =
    H5Lget_name_by_idx(images, ".", H5_INDEX_NAME, H5_ITER_INC, 0, name, sizeof(name), H5P_DEFAULT);
  if (H5Fget_filesize(file, &fileBytes) < 0 || length <= 0 || length >= static_cast<ssize_t>(sizeof(name)))
  {
    RefuseDamage("it has no image");
  }
  const Handle data(H5Dopen2(images, (std::string(name) + "/VoxelData").c_str(), H5P_DEFAULT), H5Dclose);
  const Handle space(H5Dget_space(data), H5Sclose);
  const Handle type(H5Dget_type(data), H5Tclose);
  const Handle properties(H5Dget_create_plist(data), H5Pclose);
  const int    axes = H5Sget_simple_extent_ndims(space);
  if (axes < 1)
  {
    RefuseDamage("its voxels have no axes");
  }
  std::vector<hsize_t> extent(static_cast<std::size_t>(axes));
  H5Sget_simple_extent_dims(space, extent.data(), nullptr);
  const std::uint64_t typeBytes = H5Tget_size(type);
  std::uint64_t       bytes = typeBytes;
  for (const hsize_t n : extent)
  {
    if (n == 0 || bytes == 0 || bytes > (std::uint64_t{ 1 } << 62) / n)
    {
      RefuseDamage("its size cannot be counted");
    }
    bytes *= n;
  }
  Chunks             chunks;
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout == H5D_CHUNKED)
  {
    chunks.extent.resize(extent.size());
    if (H5Pget_chunk(properties, axes, chunks.extent.data()) != axes)
    {
      RefuseDamage("its chunks have other axes than the image");
    }
    chunks.bytes = typeBytes;
    for (const hsize_t n : chunks.extent)
    {
      // HDF5 itself allows 4 GiB.
      if (n == 0 || chunks.bytes > (std::uint64_t{ 1 } << 32) / n)
      {
        RefuseDamage("its chunks are too large");
      }
      chunks.bytes *= n;
    }
    chunks.isCompressed = H5Pget_nfilters(properties) != 0;
    CheckChunks(data, extent, chunks, fileBytes);
    return chunks;
  }
  if (layout != H5D_CONTIGUOUS || H5Pget_external_count(properties) != 0)
  {
    if (layout == H5D_COMPACT)
    {
      return chunks;
    }
    throw std::runtime_error("its voxels are in other files, which cannot be read");
  }
  const haddr_t offset = H5Dget_offset(data);
  if (H5Dget_storage_size(data) < bytes || offset == HADDR_UNDEF || offset > fileBytes || bytes > fileBytes - offset)
  {
    RefuseDamage("it ends before the last voxel");
  }
  return chunks;
}

} // namespace

void
Hdf5Service::Open(MessageReader & request, Answer & answer)
{
  const std::string path = request.GetText();
  const auto        io = itk::HDF5ImageIO::New();
  if (!io->CanReadFile(path.c_str()))
  {
    throw std::runtime_error("is no HDF5 file that ITK has written, or is not complete, or is being written");
  }
  const Chunks chunks = ExamineVoxels(path);
  io->SetFileName(path);
  io->ReadImageInformation();
  io->SetUseStreamedReading(true);
  m_Io = io;
  files::PutItkHeader(files::DescribeItkHeader(*io), answer.text);
  // Slowest axis first, components last, as HDF5 has them.
  answer.text.PutList(std::vector<std::uint64_t>(chunks.extent.begin(), chunks.extent.end()));
  answer.text.Put(chunks.bytes);
  answer.text.Put<std::uint8_t>(chunks.isCompressed);
}

itk::ImageIORegion
Hdf5Service::GetRegion(MessageReader & request) const
{
  const auto start = request.GetList<std::int64_t>();
  const auto size = request.GetList<std::int64_t>();
  if (!m_Io || start.size() != m_Io->GetNumberOfDimensions() || size.size() != start.size())
  {
    throw std::runtime_error("no image of so many axes is open");
  }
  itk::ImageIORegion region(static_cast<unsigned int>(start.size()));
  for (unsigned int a = 0; a < start.size(); ++a)
  {
    region.SetIndex(a, start[a]);
    region.SetSize(a, static_cast<itk::SizeValueType>(size[a]));
  }
  return region;
}

std::size_t
Hdf5Service::CountBytes(const itk::ImageIORegion & region) const
{
  return static_cast<std::size_t>(region.GetNumberOfPixels()) * m_Io->GetNumberOfComponents() *
         m_Io->GetComponentSize();
}

void
Hdf5Service::Read(MessageReader & request, Answer & answer)
{
  const itk::ImageIORegion region = this->GetRegion(request);
  answer.voxels.resize(this->CountBytes(region));
  m_Io->SetIORegion(region);
  m_Io->Read(answer.voxels.data());
}

void
Hdf5Service::Create(MessageReader & request, Answer &)
{
  const auto io = itk::HDF5ImageIO::New();
  io->SetFileName(request.GetText());
  io->SetUseCompression(request.GetFlag());
  io->SetUseStreamedWriting(true);
  files::ApplyItkHeader(files::GetItkHeader(request), *io);
  m_Io = io;
}

void
Hdf5Service::Write(MessageReader & request, Answer &)
{
  const itk::ImageIORegion region = this->GetRegion(request);
  std::size_t              bytes = 0;
  const char * const       voxels = request.GetRest(bytes);
  if (bytes != this->CountBytes(region))
  {
    throw std::runtime_error("a region has other voxels than were sent");
  }
  m_Io->SetIORegion(region);
  m_Io->Write(voxels);
}

void
Hdf5Service::Close(MessageReader &, Answer &)
{
  // Errors of HDF5's writes show when it closes the file. ITK's class does so when it is destroyed, where an
  // exception ends the process, or when it begins to read.
  m_Io->ReadImageInformation();
  m_Io = nullptr;
}

} // namespace chunkwise::formats
