/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"

#include "fileByteCount.h"
#include "fileHdf5.h"
#include "fileNifti.h"
#include "fileOutput.h"
#include "filePlanar.h"
#include "fileZarr.h"
#include "fileZarrLabels.h"
#include "fileZarrMetadata.h"
#include "fileZarrOptions.h"
#include "fileZarrZip.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cmath>
#include <sstream>

namespace chunkwise::files
{

std::string
Lower(std::string text)
{
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

namespace
{

constexpr unsigned MrcKinds =
  KindBit(PixelType::UInt8) | KindBit(PixelType::Int16) | KindBit(PixelType::UInt16) | KindBit(PixelType::Float32);
constexpr unsigned PngKinds = KindBit(PixelType::UInt8) | KindBit(PixelType::UInt16);
constexpr unsigned GiplKinds = PngKinds | KindBit(PixelType::Int8) | KindBit(PixelType::Int16) |
                               KindBit(PixelType::Float32) | KindBit(PixelType::Float64);

/** A folder's name may end with a slash. */
std::string
WithoutSlash(std::string file)
{
  while (file.size() > 1 && file.back() == '/')
  {
    file.pop_back();
  }
  return file;
}

/** The row whose ending is the longest that fits. */
const Format *
FindRow(const std::string & file, std::string & ending)
{
  const Format * found = nullptr;
  const auto     name = Lower(std::filesystem::path(WithoutSlash(file)).filename().string());
  ending.clear();
  for (const Format & format : GetFormats())
  {
    for (const std::string & candidate : format.endings)
    {
      if (candidate.size() > ending.size() && name.size() > candidate.size() && HasEnding(name, candidate))
      {
        found = &format;
        ending = candidate;
      }
    }
  }
  return found;
}

std::string
ListKinds(unsigned kinds)
{
  std::string text;
  for (int i = 0; i < NumberOfPixelTypes; ++i)
  {
    if (kinds & 1u << i)
    {
      text += (text.empty() ? "" : ", ") + std::string(PixelTypeName(static_cast<PixelType>(i)));
    }
  }
  return text;
}

/** The endings of the formats for which `test` holds. */
template <typename TTest>
std::string
ListEndings(TTest && test)
{
  std::string text;
  for (const Format & format : GetFormats())
  {
    for (const std::string & ending : format.endings)
    {
      text += test(format) ? (text.empty() ? "" : ", ") + ending : "";
    }
  }
  return text;
}

std::string
Dimensions(const Format & format)
{
  return format.minDimension == format.maxDimension
           ? std::to_string(format.minDimension)
           : std::to_string(format.minDimension) + " to " + std::to_string(format.maxDimension);
}

bool
CanHold(const Format & format, const ImageHeader & header)
{
  const auto components = static_cast<unsigned>(std::min<std::int64_t>(header.components, 31));
  return (format.kinds & KindBit(header.kind)) != 0 && header.dimension >= format.minDimension &&
         header.dimension <= format.maxDimension && (components == 1 || (format.components >> components & 1u) != 0);
}

/** The fields of the header that are dropped by a format without room for them. */
std::vector<std::string>
FindLosses(const ImageHeader & header, unsigned keeps)
{
  bool hasSpacing = false;
  bool hasOrigin = false;
  bool hasDirection = false;
  for (int a = 0; a < header.dimension; ++a)
  {
    hasSpacing = hasSpacing || header.spacing[a] != 1;
    hasOrigin = hasOrigin || header.origin[a] != 0;
    for (int b = 0; b < header.dimension; ++b)
    {
      hasDirection = hasDirection || header.direction[a][b] != (a == b ? 1 : 0);
    }
  }
  std::vector<std::string> losses;
  if (hasSpacing && !(keeps & KeepsSpacing))
  {
    losses.emplace_back("spacing");
  }
  if (hasOrigin && !(keeps & KeepsOrigin))
  {
    losses.emplace_back("origin");
  }
  if (hasDirection && !(keeps & KeepsDirection))
  {
    losses.emplace_back("direction");
  }
  for (const auto & field : header.metadata)
  {
    if (!(keeps & KeepsText))
    {
      losses.push_back("the text of " + field.first);
    }
  }
  return losses;
}

/** The destination of an image of a format. */
Destination
MakeDestination(const std::string & file, const Format & format, const std::string & ending, bool compress)
{
  Destination destination;
  destination.shown = file;
  destination.file = FollowLinks(WithoutSlash(file));
  destination.isFolder = format.create != nullptr;
  const bool isPair = ending == ".hdr" || ending == ".img";
  if (ending == ".mhd" || ending == ".nhdr" || isPair)
  {
    const std::string name = destination.file.filename().string();
    const std::string stem = HasEnding(name, ending) ? name.substr(0, name.size() - ending.size()) : name;
    const std::string dataEnding = compress ? format.compressedDataEnding : format.dataEnding;
    // The files of a pair find each other by their endings, in upper case as well.
    const bool  isUpper = isPair && (name.back() == 'R' || name.back() == 'G');
    std::string data = stem + (isUpper ? ".IMG" : dataEnding);
    if (!isPair)
    {
      // Readers take a name with "%" for a pattern of many files.
      std::replace(data.begin(), data.end(), '%', '_');
    }
    destination.data = destination.file.parent_path() / data;
    if (ending == ".img")
    {
      // The pair is named by its voxels.
      destination.data = destination.file;
      destination.file = destination.file.parent_path() / (stem + (isUpper ? ".HDR" : ".hdr"));
    }
  }
  return destination;
}

/** The format of an output: of its ending, or Zarr if a store gets levels or labels. */
const Format *
FindOutputRow(const std::string & file, bool addsLevels, std::string & ending)
{
  const Format * const format = FindRow(addsLevels ? "x.zarr" : file, ending);
  return !format && !FindStoreOfLabels(file).empty() ? FindRow("x.zarr", ending) : format;
}

/** All checks before the work; the format, and where the output goes. */
const Format &
FindOutput(const std::string & file, const ImageHeader & header, const OutputOptions & options,
           Destination & destination)
{
  std::string          ending;
  const Format * const format = FindOutputRow(file, options.zarr && options.zarr->addsLevels, ending);
  const auto           isWritten = [](const Format & f) { return f.kinds != 0; };
  if (!format || !isWritten(*format))
  {
    Fail(file,
         std::string(format ? "this format cannot be written" : "no format has this ending") +
           "; those that are written: " + ListEndings(isWritten));
  }
  if (!CanHold(*format, header))
  {
    const std::string others = ListEndings([&](const Format & f) { return isWritten(f) && CanHold(f, header); });
    Fail(file,
         std::string(format->name) + " holds images of " + Dimensions(*format) + " dimensions and of " +
           ListKinds(format->kinds) + ", not of " + std::to_string(header.dimension) + " and " +
           (header.components > 1 ? std::to_string(header.components) + " components of " : std::string()) +
           PixelTypeName(header.kind) + "; what can: " + (others.empty() ? "none" : others));
  }
  if (options.compress && !format->canCompress)
  {
    Fail(file,
         std::string(format->name) + " cannot be written compressed under this name; what can: " +
           ListEndings([&](const Format & f) { return isWritten(f) && f.canCompress && CanHold(f, header); }));
  }
  if (options.zarr && format->create != CreateZarr)
  {
    Fail(file, std::string("options of Zarr are given, for ") + format->name);
  }
  if (options.resumes && format->create != CreateZarr)
  {
    Fail(file, std::string(format->name) + " cannot be resumed; what can: stores of Zarr");
  }
  for (int a = 0; a < header.dimension && format->layout == LayOutNrrd; ++a)
  {
    // Readers find the direction by dividing by its length, the root of a sum of squares.
    if (std::abs(header.spacing[a]) < 1e-150)
    {
      Fail(file, "NRRD cannot hold the spacing " + Shortest(header.spacing[a]) + " of axis " + std::to_string(a));
    }
  }
  CountVoxels(file, header);
  destination = MakeDestination(file, *format, ending, options.compress);
  if (options.zarr && options.zarr->addsLevels)
  {
    CheckZarrOutput(file, header, options);
    destination.file = std::filesystem::canonical(file);
    return *format;
  }
  if (ending == ".mhd" || ending == ".nhdr")
  {
    NameOfDataFile(file, destination.data.filename().string());
  }
  if (format->create == CreateZarr)
  {
    CheckZarrOutput(file, header, options);
  }
  std::error_code error;
  if (FindStoreOfLabels(file).empty() || std::filesystem::exists(destination.file.parent_path(), error))
  {
    CheckDestination(destination, options);
  }
  return *format;
}

} // namespace

const std::vector<Format> &
GetFormats()
{
  static const std::vector<Format> formats{
    { "MetaImage",
      { ".mha", ".mhd" },
      LocateMetaImage,
      nullptr,
      LayOutMetaImage,
      false,
      AllKinds,
      2,
      5,
      KeepsAll,
      ".raw",
      ".zraw",
      true,
      "voxels in one file",
      AnyComponents,
      true },
    { "NRRD",
      { ".nrrd", ".nhdr" },
      LocateNrrd,
      nullptr,
      LayOutNrrd,
      false,
      AllKinds,
      2,
      5,
      KeepsAll,
      ".raw",
      ".raw.gz",
      true,
      "voxels in one file; raw, gzip or ascii",
      AnyComponents,
      true },
    { "NIfTI",
      { ".nii", ".hdr", ".img" },
      LocateNifti,
      nullptr,
      LayOutNifti,
      false,
      AllKinds,
      2,
      4,
      KeepsAll,
      ".img",
      "",
      false,
      "versions 1 and 2; compressed vectors whole",
      AnyComponents,
      true },
    { "NIfTI",
      { ".nii.gz" },
      LocateNifti,
      nullptr,
      LayOutNifti,
      false,
      AllKinds,
      2,
      4,
      KeepsAll,
      "",
      "",
      true,
      "versions 1 and 2; compressed vectors whole",
      AnyComponents,
      true },
    { "MRC",
      { ".mrc", ".rec" },
      LocateMrc,
      nullptr,
      LayOutMrc,
      false,
      MrcKinds,
      2,
      3,
      KeepsSpacing | KeepsOrigin,
      "",
      "",
      false,
      "int8 is read, too",
      0,
      true },
    { "VTK",
      { ".vtk" },
      LocateVtk,
      nullptr,
      LayOutVtk,
      false,
      AllKinds,
      2,
      3,
      KeepsSpacing | KeepsOrigin,
      "",
      "",
      false,
      "legacy files of structured points; binary, or read as text",
      0,
      true },
    { "TIFF",
      { ".tif", ".tiff" },
      nullptr,
      OpenTiff,
      LayOutTiff,
      false,
      AllKinds,
      2,
      3,
      KeepsSpacing,
      "",
      "",
      false,
      "pages are the third axis, or what OME-XML says: slices, channels, time; BigTIFF beyond 4 GB",
      AnyComponents,
      true },
    { "HDF5",
      { ".h5", ".hdf5" },
      nullptr,
      OpenHdf5,
      nullptr,
      true,
      AllKinds,
      2,
      5,
      KeepsAll,
      "",
      "",
      true,
      "as ITK writes it",
      AnyComponents },
    { "Zarr",
      { ".zarr", ".ome.zarr" },
      nullptr,
      OpenZarr,
      nullptr,
      false,
      AllKinds,
      2,
      5,
      KeepsSpacing | KeepsOrigin,
      "",
      "",
      true,
      "a folder, or a zip archive that stores its files (read only): versions 2 and 3, shards, OME-Zarr 0.4 and 0.5; "
      "NAME.zarr/PATH is a level or an array; always compressed",
      AnyComponents,
      true,
      CreateZarr },
    { "GIPL",
      { ".gipl", ".gipl.gz" },
      LocateGipl,
      nullptr,
      nullptr,
      true,
      GiplKinds,
      2,
      3,
      KeepsSpacing | KeepsOrigin,
      "",
      "",
      false,
      "",
      0,
      true },
    { "PNG",
      { ".png" },
      nullptr,
      OpenPng,
      nullptr,
      true,
      PngKinds,
      2,
      2,
      KeepsSpacing,
      "",
      "",
      false,
      "",
      Colors,
      true },
    { "JPEG",
      { ".jpg", ".jpeg" },
      nullptr,
      OpenJpeg,
      nullptr,
      true,
      KindBit(PixelType::UInt8),
      2,
      2,
      KeepsSpacing | LosesVoxels,
      "",
      "",
      false,
      "",
      1u << 3,
      true },
    { "BMP",
      { ".bmp" },
      nullptr,
      OpenBmp,
      nullptr,
      true,
      KindBit(PixelType::UInt8),
      2,
      2,
      0,
      "",
      "",
      false,
      "",
      1u << 3,
      true },
    { "DICOM",
      { ".dcm", ".dicom", ".ima" },
      nullptr,
      OpenDicom,
      nullptr,
      false,
      0,
      0,
      0,
      KeepsNothing,
      "",
      "",
      false,
      "or a folder with one series" },
  };
  return formats;
}

bool
IsHdf5(const Format & format)
{
  return format.open == OpenHdf5;
}

bool
HasEnding(const std::string & file, const std::string & ending)
{
  return file.size() >= ending.size() && Lower(file.substr(file.size() - ending.size())) == ending;
}

const Format *
FindFormat(const std::string & file)
{
  std::string ending;
  return FindRow(file, ending);
}

std::string
Trim(const std::string & text)
{
  const auto begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos ? std::string() : text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string
Shortest(double value)
{
  char       text[32];
  const auto result = std::to_chars(text, text + sizeof(text), value == 0 ? 0.0 : value);
  return std::string(text, result.ptr);
}

bool
LineReader::Next(std::string & line)
{
  line.clear();
  for (;;)
  {
    const std::uint64_t at = m_Offset - m_BlockAt;
    if (m_Offset < m_BlockAt || at >= m_Block.size())
    {
      m_BlockAt = m_Offset;
      m_Block.resize(4096);
      m_Block.resize(m_File.ReadSome(m_Block.data(), m_Block.size(), m_Offset));
      if (m_Block.empty())
      {
        return !line.empty();
      }
      continue;
    }
    const auto end = m_Block.find('\n', at);
    const auto last = end == std::string::npos ? m_Block.size() : end;
    line.append(m_Block, at, last - at);
    m_Offset = m_BlockAt + last + (end == std::string::npos ? 0 : 1);
    m_Read += last - at + 1;
    if (line.size() > MostBytesOfLine || m_Read > m_MostBytes)
    {
      Fail(m_File.GetName(),
           line.size() > MostBytesOfLine ? "its header has a line of more than 1 MiB"
                                         : "its header has more than 4 MiB");
    }
    if (end != std::string::npos)
    {
      return true;
    }
  }
}

std::uint64_t
LineReader::GetBytesLeft() const
{
  const std::uint64_t size = m_File.GetSize();
  return size - std::min(size, m_Offset);
}

void
LineReader::Skip(std::uint64_t bytes)
{
  m_Offset += std::min(bytes, GetBytesLeft());
}

void
LineReader::SkipWords(std::int64_t count)
{
  std::vector<char> block(std::size_t{ 64 } << 10);
  bool              isInWord = false;
  while (count > 0)
  {
    const std::size_t size = m_File.ReadSome(block.data(), block.size(), m_Offset);
    if (size == 0 && !(isInWord && count == 1))
    {
      Fail(m_File.GetName(), "ends before " + std::to_string(count) + " more values that its header tells of");
    }
    if (size == 0)
    {
      return;
    }
    std::size_t i = 0;
    for (; i < size && count > 0; ++i)
    {
      const bool isSpace = std::isspace(static_cast<unsigned char>(block[i])) != 0;
      count -= isInWord && isSpace ? 1 : 0;
      isInWord = !isSpace;
    }
    m_Offset += i;
  }
}

namespace
{

/** `count` numbers at the begin of a text: false if there are fewer. */
template <typename T>
bool
FindNumbers(const std::string & text, std::size_t count, std::vector<T> & numbers)
{
  const char *       next = text.data();
  const char * const end = next + text.size();
  while (numbers.size() < count)
  {
    while (next < end && (std::isspace(static_cast<unsigned char>(*next)) || *next == '+'))
    {
      ++next;
    }
    T          number{};
    const auto result = std::from_chars(next, end, number);
    if (result.ec != std::errc() || (result.ptr < end && !std::isspace(static_cast<unsigned char>(*result.ptr))))
    {
      return false;
    }
    next = result.ptr;
    numbers.push_back(number);
  }
  return true;
}

[[noreturn]] void
FailAtField(const std::string & file, const std::string & field, const std::string & text, const std::string & wanted)
{
  Fail(file, "its " + field + " is \"" + text.substr(0, 60) + "\", " + wanted);
}

std::string
ListIntegers(std::size_t count, std::int64_t least, std::int64_t most)
{
  const std::string range = most < std::numeric_limits<std::int64_t>::max()
                              ? " from " + std::to_string(least) + " to " + std::to_string(most)
                            : least > std::numeric_limits<std::int64_t>::min() ? " of at least " + std::to_string(least)
                                                                               : std::string();
  return (count == 1 ? "an integer" : std::to_string(count) + " integers") + range;
}

} // namespace

std::vector<double>
ParseNumbers(const std::string & file, const std::string & field, const std::string & text, std::size_t count)
{
  std::vector<double> numbers;
  const bool          good = FindNumbers(text, count, numbers);
  if (!good || !std::all_of(numbers.begin(), numbers.end(), [](double number) { return std::isfinite(number); }))
  {
    FailAtField(file, field, text, std::to_string(count) + " finite numbers are needed");
  }
  return numbers;
}

std::vector<std::int64_t>
ParseIntegers(const std::string & file, const std::string & field, const std::string & text, std::size_t count,
              std::int64_t least, std::int64_t most)
{
  std::vector<std::int64_t> numbers;
  const bool                good = FindNumbers(text, count, numbers);
  if (!good || !std::all_of(numbers.begin(), numbers.end(), [&](std::int64_t number) {
        return number >= least && number <= most;
      }))
  {
    FailAtField(file, field, text, ListIntegers(count, least, most) + (count == 1 ? " is needed" : " are needed"));
  }
  return numbers;
}

std::int64_t
ParseInteger(const std::string & file, const std::string & field, const std::string & text, std::int64_t least,
             std::int64_t most)
{
  return ParseIntegers(file, field, text, 1, least, most).front();
}

std::filesystem::path
FindDataFile(const std::string & header, const std::string & name)
{
  const auto                percent = name.find('%');
  const auto                space = name.find(' ', percent == std::string::npos ? 0 : percent);
  std::vector<std::int64_t> range;
  const bool                isPattern =
    percent != std::string::npos && space != std::string::npos && FindNumbers(name.substr(space), 3, range);
  const bool isList = name.compare(0, 4, "LIST") == 0 && (name.size() == 4 || name[4] == ' ');
  if (isPattern || isList)
  {
    Fail(header, "has its voxels in several files (" + name.substr(0, 60) + "), only one can be used");
  }
  if (name.empty())
  {
    Fail(header, "names no file of its voxels");
  }
  return std::filesystem::path(header).parent_path() / name;
}

std::string
NameOfDataFile(const std::string & shown, const std::string & name)
{
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 127; }))
  {
    Fail(shown,
         "a header cannot hold the name of its voxels' file, which has a line break or another control character; a "
         "format of one file can have this name");
  }
  const bool isOther = name.front() == ' ' || name.compare(0, 4, "LIST") == 0 || name.find(':') != std::string::npos;
  return isOther ? "./" + name : name;
}

void
NormalizeGeometry(const std::string & file, ImageHeader & header)
{
  for (int a = 0; a < header.dimension; ++a)
  {
    bool isFinite = std::isfinite(header.spacing[a]) && std::isfinite(header.origin[a]);
    for (int row = 0; row < header.dimension; ++row)
    {
      isFinite = isFinite && std::isfinite(header.direction[row][a]);
    }
    if (!isFinite)
    {
      Fail(file, "a number of the spacing, origin or direction of its axis " + std::to_string(a) + " is not finite");
    }
    // Products of such numbers have no place in a double.
    double length = 0;
    double largest = std::abs(header.spacing[a]);
    for (int row = 0; row < header.dimension; ++row)
    {
      length = std::hypot(length, header.direction[row][a]);
      largest = std::max(largest, std::abs(header.direction[row][a]));
    }
    if (largest > 1e150)
    {
      Fail(file, "a number of the spacing or direction of its axis " + std::to_string(a) + " is beyond 1e150");
    }
    if (length < 1e-150)
    {
      Fail(file, "its axis " + std::to_string(a) + " has no direction: all its cosines are 0");
    }
    if (header.spacing[a] < 0)
    {
      header.spacing[a] = -header.spacing[a];
      for (int row = 0; row < header.dimension; ++row)
      {
        header.direction[row][a] = header.direction[row][a] == 0 ? 0 : -header.direction[row][a];
      }
    }
  }
}

bool
IsUntrusted()
{
  const char * const value = std::getenv("CHUNKWISE_UNTRUSTED");
  return value && *value != '\0' && std::string(value) != "0";
}

namespace
{

std::unique_ptr<FileSource>
OpenFile(const std::string & file)
{
  if (IsZarr(file))
  {
    return OpenZarr(file);
  }
  // Whether it can be read at all is the first question.
  Descriptor::OpenToRead(file);
  const Format * const format = FindFormat(file);
  if (!format)
  {
    return OpenDicom(file);
  }
  return format->open ? format->open(file) : OpenVoxels(format->locate(file));
}

} // namespace

std::unique_ptr<FileSource>
OpenImage(const std::string & file)
{
  if (IsUntrusted() && !FindZipOf(file).empty())
  {
    Fail(file, "is a zip archive, and is not read from untrusted sources (--untrusted, CHUNKWISE_UNTRUSTED)");
  }
  const bool           isZarr = IsZarr(file);
  const Format * const format = FindFormat(isZarr ? "x.zarr" : file);
  if (IsUntrusted() && !(format && format->isFuzzed))
  {
    Fail(file,
         std::string(format ? format->name : "DICOM") +
           " is not read from untrusted sources (--untrusted, CHUNKWISE_UNTRUSTED): its reader is not fuzzed; those "
           "that are: " +
           ListEndings([](const Format & f) { return f.isFuzzed; }));
  }
  std::error_code error;
  if (std::filesystem::is_directory(file, error) && !isZarr)
  {
    if (format && format->open == OpenZarr)
    {
      Fail(file, "is no store of Zarr: it has no zarr.json, .zarray or .zgroup");
    }
    return OpenDicom(file);
  }
  try
  {
    return OpenFile(file);
  }
  catch (const FileError &)
  {
    // A process that was killed may have left a pair half moved.
    const auto parent = FollowLinks(file).parent_path();
    if (!EndLeftovers(parent.empty() ? std::filesystem::path(".") : parent))
    {
      throw;
    }
  }
  return OpenFile(file);
}

std::unique_ptr<FileSource>
OpenRawImage(const std::string & file, const RawLayout & layout)
{
  VoxelPlace place;
  place.header = layout.header;
  place.files.emplace_back(file);
  place.data = file;
  place.offset = layout.offset;
  place.coding.kind = layout.header.kind;
  place.coding.swaps = layout.bigEndian != IsBigEndianMachine();
  // If the file has another size, the numbers cannot be right.
  const std::uint64_t size = Descriptor::OpenToRead(file).GetSize();
  const std::uint64_t expected = static_cast<std::uint64_t>(
    (ByteCount(CountVoxels(file, layout.header)) * static_cast<std::int64_t>(PixelSize(layout.header.kind)) +
     ByteCount::FromUnsigned(layout.offset))
      .Get());
  if (size != expected)
  {
    Fail(file,
         "has " + std::to_string(size) + " bytes, not the " + std::to_string(expected) + " of " +
           ToString(layout.header.extent) + " voxels of " + PixelTypeName(layout.header.kind) + " after " +
           std::to_string(layout.offset) + " others");
  }
  return OpenVoxels(std::move(place));
}

std::vector<std::filesystem::path>
GetOutputFiles(const std::string & file, bool compress)
{
  std::string          ending;
  const Format * const format = FindOutputRow(file, false, ending);
  if (!format)
  {
    return { file };
  }
  const Destination destination = MakeDestination(file, *format, ending, compress);
  return destination.data.empty() ? std::vector<std::filesystem::path>{ destination.file }
                                  : std::vector<std::filesystem::path>{ destination.file, destination.data };
}

void
CheckOutput(const std::string & file, const ImageHeader & header, const OutputOptions & options)
{
  Destination destination;
  FindOutput(file, header, options, destination);
}

std::unique_ptr<FileSink>
CreateImage(const std::string & file, const ImageHeader & header, const OutputOptions & options)
{
  Destination    destination;
  const Format & format = FindOutput(file, header, options, destination);
  auto           losses = FindLosses(header, format.keeps);
  if (format.create)
  {
    return format.create(header, destination, options, std::move(losses));
  }
  if (!format.layout)
  {
    return CreateWithItk(format, header, destination, options.compress, std::move(losses));
  }
  const bool  compresses = options.compress || HasEnding(file, ".gz");
  VoxelLayout layout = format.layout(header, file, destination.data.filename().string(), compresses);
  layout.losses.insert(layout.losses.begin(), losses.begin(), losses.end());
  return CreateVoxels(header, destination, std::move(layout));
}

namespace
{

bool
IsWrittenInPieces(const Format & format)
{
  return format.layout || format.create || IsHdf5(format);
}

} // namespace

std::string
DescribeFormats()
{
  std::ostringstream text;
  for (const Format & format : GetFormats())
  {
    std::string endings;
    for (const std::string & ending : format.endings)
    {
      endings += (endings.empty() ? "" : " ") + ending;
    }
    text << format.name << " (" << endings << "): ";
    if (format.kinds == 0)
    {
      text << "read, whole";
    }
    else
    {
      const bool writesPieces = IsWrittenInPieces(format);
      const bool readsPieces = format.locate || writesPieces;
      text << (readsPieces == writesPieces ? std::string("read and written, ") + (readsPieces ? "in pieces" : "whole")
                                           : std::string("read in pieces, written whole"))
           << ", " << Dimensions(format) << "-D, " << (format.kinds == AllKinds ? "all types" : ListKinds(format.kinds))
           << (format.components == AnyComponents ? ", any components"
               : format.components                ? ", colors"
                                                  : "");
    }
    text << (*format.remark ? std::string("; ") + format.remark : std::string()) << "\n";
  }
#ifndef CHUNKWISE_HAS_ITK
  text << "This build is without ITK: it reads no NRRD, HDF5 and DICOM, and writes no HDF5, GIPL, PNG, JPEG and BMP.\n";
#endif
  return text.str();
}

ImageAccess
GetOutputAccess(const std::string & file, const ImageHeader & header, const OutputOptions & options)
{
  std::string          ending;
  const Format * const format = FindOutputRow(file, options.zarr && options.zarr->addsLevels, ending);
  ImageAccess          access;
  if (!format)
  {
    return access;
  }
  if (format->create)
  {
    return GetZarrOutputAccess(file, header, options);
  }
  if (format->isWrittenByItk)
  {
    // The others hold the image, and once more where they look at what they have written.
    access.inPieces = IsHdf5(*format);
    access.heldBytes =
      access.inPieces ? Hdf5Writer::GetHeldBytes(header) : 2 * CountVoxels(file, header) * PixelSize(header.kind);
    return access;
  }
  access.anyOrder = !HasEnding(file, ".gz") && !(options.compress && format->canCompress);
  access.heldBytes = (std::uint64_t{ 4 } << 20) + (access.anyOrder ? 0 : DeflateWriter::GetHeldBytes());
  if (format->layout == LayOutNifti && IsPlanarNifti(header))
  {
    return GetPlanarAccess(access, header);
  }
  return access;
}

std::string
WithoutEnding(const std::string & file)
{
  std::string       ending;
  const std::string name = WithoutSlash(file);
  return FindRow(name, ending) ? name.substr(0, name.size() - ending.size()) : file;
}

std::string
ListFormatsInPieces()
{
  std::string list;
  for (const Format & format : GetFormats())
  {
    if (IsWrittenInPieces(format) && format.kinds != 0)
    {
      for (const std::string & ending : format.endings)
      {
        list += (list.empty() ? "" : ", ") + ending;
      }
    }
  }
  return list;
}

ImageHeader
GetHeaderOfPart(const ImageHeader & header, const Box & part)
{
  ImageHeader ofPart = header;
  ofPart.extent = part.Extents();
  if (header.components > 1)
  {
    // The engine's axis of components.
    ofPart.extent[MaxDimension - 1] = 1;
  }
  for (int row = 0; row < header.dimension; ++row)
  {
    for (int a = 0; a < header.dimension; ++a)
    {
      ofPart.origin[row] += header.direction[row][a] * header.spacing[a] * static_cast<double>(part.lower[a]);
    }
  }
  return ofPart;
}

int
FindAxisThatDiffers(const ImageHeader & first, const ImageHeader & other)
{
  constexpr double tolerance = 1e-6;
  const double     unit = tolerance * std::abs(first.spacing[0]);
  for (int a = 0; a < first.dimension; ++a)
  {
    bool same =
      std::abs(first.spacing[a] - other.spacing[a]) <= unit && std::abs(first.origin[a] - other.origin[a]) <= unit;
    for (int b = 0; b < first.dimension; ++b)
    {
      same = same && std::abs(first.direction[a][b] - other.direction[a][b]) <= tolerance;
    }
    if (!same)
    {
      return a;
    }
  }
  return -1;
}

} // namespace chunkwise::files
