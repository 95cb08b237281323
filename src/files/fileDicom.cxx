/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileItk.h"
#include "fileItkFormats.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

namespace chunkwise::files
{

namespace
{

/** One file, or the slices of a series in the order of their positions. The first Read takes the image whole. */
class DicomSource : public FileSource
{
public:
  explicit DicomSource(const std::vector<std::string> & slices, const std::string & shown)
    : m_Slices(slices)
  {
    double first[3] = {};
    double last[3] = {};
    double step = 0;
    for (std::size_t i = 0; i < slices.size(); ++i)
    {
      const auto        io = GetItkFormats(shown).makeDicom();
      const ImageHeader slice = ReadHeaderWithItk(*io, slices[i]);
      if (slice.components != 1)
      {
        Fail(slices[i],
             "has " + std::to_string(slice.components) + " components a voxel, only DICOM images of one can be used");
      }
      m_Files.emplace_back(slices[i]);
      if (i == 0)
      {
        m_Header = slice;
        m_Header.metadata.clear();
        std::copy_n(slice.origin, 3, first);
        continue;
      }
      if (slice.extent != m_Header.extent || slice.kind != m_Header.kind || m_Header.extent[2] != 1)
      {
        Fail(slices[i], "has another size or type than the other slices of " + shown);
      }
      std::copy_n(slice.origin, 3, last);
      const double distance = Distance(first, last) - step * static_cast<double>(i - 1);
      if (i == 1)
      {
        step = distance;
      }
      if (step <= 0 || std::abs(Distance(first, last) - step * static_cast<double>(i)) > 0.01 * step)
      {
        Fail(shown, "its slices are not evenly spaced: a slice is missing, or there are several images");
      }
    }
    if (slices.size() > 1)
    {
      const auto count = static_cast<double>(slices.size() - 1);
      m_Header.dimension = 3;
      m_Header.extent[2] = static_cast<std::int64_t>(slices.size());
      m_Header.spacing[2] = Distance(first, last) / count;
      for (int row = 0; row < 3; ++row)
      {
        m_Header.direction[row][2] = (last[row] - first[row]) / Distance(first, last);
      }
    }
    m_Files.insert(m_Files.begin(), std::filesystem::path(shown));
    m_Files.erase(std::unique(m_Files.begin(), m_Files.end()), m_Files.end());
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.inPieces = m_Slices.size() > 1;
    access.heldBytes = GetSliceBytes();
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    CheckBox(m_Header.extent, m_Header.kind, box, view);
    const std::lock_guard<std::mutex> lock(m_Mutex);
    const bool                        isSeries = m_Slices.size() > 1;
    for (std::int64_t z = isSeries ? box.lower[2] : 0; z < (isSeries ? box.upper[2] : 1); ++z)
    {
      Box slice = Box::FromExtent(m_Header.extent);
      if (isSeries)
      {
        slice.lower[2] = z;
        slice.upper[2] = z + 1;
      }
      if (!Intersect(box, slice).IsEmpty())
      {
        Load(static_cast<std::size_t>(z));
        CopyBox(Intersect(box, slice), DenseView(m_Slice.data(), m_Header.kind, slice), view);
      }
    }
  }

private:
  static double
  Distance(const double * a, const double * b)
  {
    return std::sqrt((a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]) + (a[2] - b[2]) * (a[2] - b[2]));
  }
  std::uint64_t
  GetSliceBytes() const
  {
    return static_cast<std::uint64_t>(Box::FromExtent(m_Header.extent).NumberOfVoxels()) / m_Slices.size() *
           PixelSize(m_Header.kind);
  }
  void
  Load(std::size_t index)
  {
    if (m_Loaded == static_cast<std::int64_t>(index))
    {
      return;
    }
    m_Loaded = -1;
    m_Slice.resize(GetSliceBytes());
    const auto io = GetItkFormats(m_Slices[index]).makeDicom();
    CallItk(m_Slices[index], "cannot be read", [&] {
      io->SetFileName(m_Slices[index]);
      io->ReadImageInformation();
      itk::ImageIORegion region(io->GetNumberOfDimensions());
      for (unsigned int a = 0; a < io->GetNumberOfDimensions(); ++a)
      {
        region.SetIndex(a, 0);
        region.SetSize(a, io->GetDimensions(a));
      }
      io->SetIORegion(region);
      io->Read(m_Slice.data());
    });
    m_BytesRead += Descriptor::OpenToRead(m_Slices[index]).GetSize();
    m_Loaded = static_cast<std::int64_t>(index);
  }

  std::vector<std::string> m_Slices;
  std::mutex               m_Mutex;
  std::vector<char>        m_Slice;
  std::int64_t             m_Loaded{ -1 };
};

} // namespace

std::unique_ptr<FileSource>
OpenDicom(const std::string & file)
{
  if (std::filesystem::is_directory(file))
  {
    std::vector<std::string> slices;
    std::size_t              series = 0;
    CallItk(file, "cannot be read", [&] { series = GetItkFormats(file).findSeries(file, slices); });
    if (series != 1 || slices.empty())
    {
      Fail(file, "is a folder with " + std::to_string(series) + " series of DICOM files, there should be one");
    }
    return std::make_unique<DicomSource>(slices, file);
  }
  const auto io = GetItkFormats(file).makeDicom();
  bool       canRead = false;
  CallItk(file, "cannot be read", [&] { canRead = io->CanReadFile(file.c_str()); });
  if (!canRead)
  {
    std::string endings;
    for (const Format & format : GetFormats())
    {
      for (const std::string & ending : format.endings)
      {
        endings += (endings.empty() ? "" : ", ") + ending;
      }
    }
    Fail(file, "is in no format that can be read; those are " + endings);
  }
  return std::make_unique<DicomSource>(std::vector<std::string>{ file }, file);
}

} // namespace chunkwise::files
