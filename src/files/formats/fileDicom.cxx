/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"
#include "fileFormatProcess.h"
#include "fileFormats.h"
#include "fileItk.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <mutex>

namespace chunkwise::files
{

namespace
{

namespace fs = std::filesystem;
using formats::MessageReader;
using formats::MessageWriter;
using formats::Request;

constexpr const char * CannotBeRead = "cannot be read";
/** GDCM's dictionaries, and what it holds of a header. */
constexpr std::uint64_t DicomLibraryBytes = std::uint64_t{ 16 } << 20;
/** JPEG 2000 is the slowest. */
constexpr double LeastDicomBytesPerSecond = 1 << 20;
/** Blank images become small by JPEG-LS and JPEG 2000: a header, and some bits for each row. */
constexpr std::int64_t CompressedRatio = 1 << 16;
/** A run of 128 bytes takes two. */
constexpr std::int64_t DicomRunRatio = 64;
/** Copies of an image that GDCM holds while it reads it, of JPEG 2000 some seven; and while it opens one in runs. */
constexpr std::uint64_t CopiesToRead = 4;
constexpr std::uint64_t CopiesToDecode = 9;
constexpr std::uint64_t CopiesToOpen = 5;
constexpr std::uint64_t CopiesOfFile = 4;
/** Bytes of a voxel in memory for one in the file, which may be a bit: 8 times a double for each. */
constexpr std::int64_t MostOfValue = 64;
/** Slices of a series lie evenly to a hundredth of their distance; numbers in DICOM have up to 16 characters. */
constexpr double DistanceTolerance = 0.01;
constexpr double DirectionTolerance = 1e-4;

double
GetDicomSeconds(std::uint64_t bytes)
{
  return 4 + static_cast<double>(bytes) / LeastDicomBytesPerSecond;
}

MessageWriter
NamePath(const std::string & path)
{
  MessageWriter message;
  message.PutText(path);
  return message;
}

/** Calls `read` with what the process replied; whatever does not fit there is an error of `file`. */
template <typename TRead>
void
ReadReply(const std::string & file, const std::string & reply, const TRead & read)
{
  try
  {
    MessageReader reader(reply);
    read(reader);
  }
  catch (const FileError &)
  {
    throw;
  }
  catch (const std::runtime_error & error)
  {
    Fail(file, std::string(CannotBeRead) + ": " + error.what());
  }
}

struct DicomHeader
{
  ImageHeader   image;
  bool          isCompressed{ false };
  std::uint64_t fileBytes{ 0 };

  std::uint64_t
  GetImageBytes() const
  {
    return static_cast<std::uint64_t>(ByteCount::OfImage(image.extent, image.components, PixelSize(image.kind)).Get());
  }
  /** The most memory that GDCM holds: the file, and copies of the voxels on their way. */
  std::uint64_t
  GetMemory() const
  {
    return DicomLibraryBytes + CopiesOfFile * fileBytes +
           (isCompressed ? CopiesToDecode : CopiesToRead) * GetImageBytes();
  }
};

/** The findings of a walk over a file, before GDCM sees it. */
struct DicomFound
{
  bool          isImage{ false };
  bool          isCompressed{ false };
  bool          isInRuns{ false };
  std::uint64_t voxelBytes{ 0 };
};

DicomFound
CheckDicom(FormatProcess & process, const std::string & file)
{
  DicomFound        found;
  const std::string reply =
    process.Ask(file, CannotBeRead, Request::CheckDicom, NamePath(file), { GetDicomSeconds(0), DicomLibraryBytes });
  ReadReply(file, reply, [&](MessageReader & reader) {
    found.isImage = reader.GetFlag();
    found.isCompressed = reader.GetFlag();
    found.isInRuns = reader.GetFlag();
    found.voxelBytes = reader.Get<std::uint64_t>();
  });
  return found;
}

DicomHeader
OpenSlice(FormatProcess & process, const std::string & file)
{
  DicomHeader header;
  header.fileBytes = Descriptor::OpenToRead(file).GetSize();
  const DicomFound found = CheckDicom(process, file);
  header.isCompressed = found.isCompressed;
  if (found.isImage)
  {
    RequireInFile(file,
                  ByteCount::FromUnsigned(found.voxelBytes),
                  header.fileBytes,
                  found.isInRuns       ? DicomRunRatio
                  : found.isCompressed ? CompressedRatio
                                       : RawRatio);
  }
  const FormatLimits limits{
    GetDicomSeconds(header.fileBytes + found.voxelBytes),
    DicomLibraryBytes + CopiesOfFile * header.fileBytes +
      (found.isCompressed ? CopiesToOpen * std::min<std::uint64_t>(found.voxelBytes, DicomRunRatio * header.fileBytes)
                          : 0)
  };
  const std::string reply = process.Ask(file, CannotBeRead, Request::OpenDicom, NamePath(file), limits);
  ReadReply(file, reply, [&](MessageReader & reader) { header.image = MakeImageHeader(GetItkHeader(reader), file); });
  // A table makes three components of one, a factor real numbers of integers.
  RequireInFile(
    file, ByteCount::FromUnsigned(header.GetImageBytes()), std::max<std::uint64_t>(found.voxelBytes, 1), MostOfValue);
  return header;
}

/** One file, or the slices of a series in the order of their positions. A Read takes slices, or the file, whole. */
class DicomSource : public FileSource
{
public:
  DicomSource(std::unique_ptr<FormatProcess> process, const std::vector<std::string> & slices,
              const std::string & shown)
    : m_Process(std::move(process))
    , m_Slices(slices)
  {
    m_Files.emplace_back(shown);
    for (std::size_t i = 0; i < slices.size(); ++i)
    {
      const DicomHeader slice = OpenSlice(*m_Process, slices[i]);
      m_Memory = std::max(m_Memory, slice.GetMemory());
      m_SliceBytes = slice.GetImageBytes();
      m_Positions.push_back({ slice.image.origin[0], slice.image.origin[1], slice.image.origin[2] });
      if (slices[i] != shown)
      {
        m_Files.emplace_back(slices[i]);
      }
      if (i == 0)
      {
        m_Header = slice.image;
        m_Header.metadata.clear();
        continue;
      }
      CheckFits(slice.image, slices[i], shown);
    }
    if (slices.size() > 1)
    {
      this->Stack(shown);
    }
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.inPieces = m_Slices.size() > 1;
    access.heldBytes = FormatProcess::OwnBytes + m_Memory + m_SliceBytes;
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    const std::lock_guard<std::mutex> lock(m_Mutex);
    const bool                        isSeries = m_Slices.size() > 1;
    const int                         axis = m_Header.components > 1 ? 3 : 2;
    for (std::int64_t z = isSeries ? box.lower[axis] : 0; z < (isSeries ? box.upper[axis] : 1); ++z)
    {
      Box slice = Box::FromExtent(GetExtent());
      if (isSeries)
      {
        slice.lower[axis] = z;
        slice.upper[axis] = z + 1;
      }
      if (!Intersect(box, slice).IsEmpty())
      {
        Load(static_cast<std::size_t>(z));
        CopyBox(Intersect(box, slice), DenseView(m_Slice.data(), m_Header.kind, slice), view);
      }
    }
  }

private:
  using Position = std::array<double, 3>;

  static double
  GetDistance(const Position & a, const Position & b)
  {
    return std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
  }
  void
  CheckFits(const ImageHeader & slice, const std::string & file, const std::string & shown) const
  {
    if (slice.extent != m_Header.extent || slice.kind != m_Header.kind || slice.components != m_Header.components ||
        m_Header.extent[2] != 1)
    {
      Fail(file, "has another size or type than the other slices of " + shown);
    }
    for (int a = 0; a < 2; ++a)
    {
      if (std::abs(slice.spacing[a] - m_Header.spacing[a]) > DirectionTolerance * m_Header.spacing[a])
      {
        Fail(file, "has another spacing than the other slices of " + shown);
      }
      for (int row = 0; row < 3; ++row)
      {
        if (std::abs(slice.direction[row][a] - m_Header.direction[row][a]) > DirectionTolerance)
        {
          Fail(file, "has another orientation than the other slices of " + shown);
        }
      }
    }
  }
  /** Makes a volume of the slices, each of which must be where even steps from the first lead. */
  void
  Stack(const std::string & shown)
  {
    const std::size_t count = m_Positions.size();
    const Position &  first = m_Positions.front();
    Position          step{};
    for (std::size_t a = 0; a < 3; ++a)
    {
      step[a] = (m_Positions.back()[a] - first[a]) / static_cast<double>(count - 1);
    }
    const double length = GetDistance(step, Position{});
    for (std::size_t i = 0; i < count; ++i)
    {
      Position expected = first;
      for (std::size_t a = 0; a < 3; ++a)
      {
        expected[a] += static_cast<double>(i) * step[a];
      }
      if (i > 0 && GetDistance(m_Positions[i], m_Positions[i - 1]) == 0)
      {
        Fail(shown,
             "its slices are not evenly spaced: " + m_Slices[i - 1] + " and " + m_Slices[i] + " are at one place");
      }
      // A step that is no number fails, too.
      if (!(length > 0) || !(GetDistance(m_Positions[i], expected) <= DistanceTolerance * length))
      {
        Fail(shown, "its slices are not evenly spaced: a slice is missing, or there are several images");
      }
    }
    m_Header.dimension = 3;
    m_Header.extent[2] = static_cast<std::int64_t>(count);
    m_Header.spacing[2] = length;
    for (int row = 0; row < 3; ++row)
    {
      m_Header.direction[row][2] = step[static_cast<std::size_t>(row)] / length;
    }
    CountVoxels(shown, m_Header);
  }
  void
  Load(std::size_t index)
  {
    if (m_Loaded == static_cast<std::int64_t>(index))
    {
      return;
    }
    m_Loaded = -1;
    m_Slice.resize(m_SliceBytes);
    const std::uint64_t fileBytes = Descriptor::OpenToRead(m_Slices[index]).GetSize();
    m_Process->AskForVoxels(m_Slices[index],
                            Request::ReadDicom,
                            NamePath(m_Slices[index]),
                            { GetDicomSeconds(fileBytes + m_SliceBytes), m_Memory },
                            m_Slice.data(),
                            m_Slice.size());
    m_BytesRead += fileBytes;
    m_Loaded = static_cast<std::int64_t>(index);
  }

  std::unique_ptr<FormatProcess> m_Process;
  std::vector<std::string>       m_Slices;
  std::vector<Position>          m_Positions;
  std::uint64_t                  m_SliceBytes{ 0 };
  std::uint64_t                  m_Memory{ 0 };
  std::mutex                     m_Mutex;
  std::vector<char>              m_Slice;
  std::int64_t                   m_Loaded{ -1 };
};

/** Whether a file begins as DICOM does, with a preamble or, from before there was one, with its first group. */
bool
MayBeDicom(const std::string & file)
{
  char              bytes[132] = {};
  const std::size_t size = Descriptor::OpenToRead(file).ReadSome(bytes, sizeof(bytes), 0);
  const auto        isFirst = [&](int low, int high) {
    return size >= 8 && bytes[high] == 0 && (bytes[low] == 2 || bytes[low] == 8);
  };
  return (size == sizeof(bytes) && std::memcmp(bytes + 128, "DICM", 4) == 0) || isFirst(0, 1) || isFirst(1, 0) ||
         (size >= 8 && std::memcmp(bytes, "DICM", 4) == 0);
}

/** GDCM leaves out of a series what it cannot read: throws where that is an image. */
void
CheckOthers(FormatProcess & process, const std::vector<fs::path> & all, const std::vector<std::string> & slices,
            const std::string & shown)
{
  for (const fs::path & path : all)
  {
    const std::string    file = path.string();
    const Format * const format = FindFormat(file);
    const bool           isSlice = std::any_of(slices.begin(), slices.end(), [&](const std::string & slice) {
      std::error_code ignored;
      return fs::path(slice).filename() == path.filename() && fs::equivalent(slice, path, ignored);
    });
    if (isSlice || path.filename() == "DICOMDIR")
    {
      continue;
    }
    if (!MayBeDicom(file))
    {
      if (format && format->open == OpenDicom)
      {
        Fail(file, "is no DICOM file, or is not complete, and may be a slice of " + shown);
      }
      continue;
    }
    if (CheckDicom(process, file).isImage)
    {
      Fail(file, "is an image that does not fit into the series of " + shown);
    }
  }
}

std::unique_ptr<FileSource>
OpenSeries(const std::string & folder)
{
  std::vector<fs::path> all;
  std::uint64_t         largest = 0;
  std::error_code       error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
  {
    std::error_code ignored;
    if (entry->is_regular_file(ignored))
    {
      all.push_back(entry->path());
      const auto bytes = entry->file_size(ignored);
      largest = std::max<std::uint64_t>(largest, ignored ? 0 : bytes);
    }
  }
  auto process = std::make_unique<FormatProcess>(folder);
  // A file takes some milliseconds, and some kilobytes for what GDCM notes of it.
  const FormatLimits       limits{ 4 + 0.1 * static_cast<double>(all.size()) + GetDicomSeconds(largest),
                             4 * DicomLibraryBytes + CopiesOfFile * largest +
                               (std::uint64_t{ 64 } << 10) * all.size() };
  std::uint64_t            series = 0;
  std::vector<std::string> slices;
  const std::string        reply = process->Ask(folder, CannotBeRead, Request::FindDicom, NamePath(folder), limits);
  ReadReply(folder, reply, [&](MessageReader & reader) {
    series = reader.Get<std::uint64_t>();
    const auto count = series == 1 ? reader.Get<std::uint64_t>() : 0;
    for (std::uint64_t i = 0; i < count; ++i)
    {
      slices.push_back(reader.GetText());
    }
  });
  if (series != 1 || slices.empty())
  {
    Fail(folder, "is a folder with " + std::to_string(series) + " series of DICOM files, there should be one");
  }
  CheckOthers(*process, all, slices, folder);
  return std::make_unique<DicomSource>(std::move(process), slices, folder);
}

} // namespace

std::unique_ptr<FileSource>
OpenDicom(const std::string & file)
{
  if (fs::is_directory(file))
  {
    return OpenSeries(file);
  }
  if (!MayBeDicom(file))
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
  return std::make_unique<DicomSource>(std::make_unique<FormatProcess>(file), std::vector<std::string>{ file }, file);
}

} // namespace chunkwise::files
