/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileTiffDirectory.h"

#include "fileMemory.h"
#include "fileVoxels.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <tiff.h>

namespace chunkwise::files
{

namespace
{

/** Bytes of a value of a type; 0 for types that the specifications do not have. */
std::size_t
GetTypeSize(std::uint16_t type)
{
  switch (type)
  {
    case TIFF_BYTE:
    case TIFF_ASCII:
    case TIFF_SBYTE:
    case TIFF_UNDEFINED:
      return 1;
    case TIFF_SHORT:
    case TIFF_SSHORT:
      return 2;
    case TIFF_LONG:
    case TIFF_SLONG:
    case TIFF_FLOAT:
    case TIFF_IFD:
      return 4;
    case TIFF_RATIONAL:
    case TIFF_SRATIONAL:
    case TIFF_DOUBLE:
    case TIFF_LONG8:
    case TIFF_SLONG8:
    case TIFF_IFD8:
      return 8;
    default:
      return 0;
  }
}

bool
IsUnsignedInteger(std::uint16_t type)
{
  return type == TIFF_BYTE || type == TIFF_SHORT || type == TIFF_LONG || type == TIFF_LONG8 || type == TIFF_IFD ||
         type == TIFF_IFD8;
}

template <typename TTo, typename TFrom>
double
Reinterpret(TFrom bits)
{
  TTo value;
  static_assert(sizeof(value) == sizeof(bits));
  std::memcpy(&value, &bits, sizeof(value));
  return static_cast<double>(value);
}

} // namespace

std::string
GetTiffTagName(std::uint16_t tag)
{
  struct Name
  {
    std::uint16_t tag;
    const char *  name;
  };
  static const Name names[] = {
    { TIFFTAG_SUBFILETYPE, "NewSubfileType" },
    { TIFFTAG_IMAGEWIDTH, "ImageWidth" },
    { TIFFTAG_IMAGELENGTH, "ImageLength" },
    { TIFFTAG_BITSPERSAMPLE, "BitsPerSample" },
    { TIFFTAG_COMPRESSION, "Compression" },
    { TIFFTAG_PHOTOMETRIC, "PhotometricInterpretation" },
    { TIFFTAG_FILLORDER, "FillOrder" },
    { TIFFTAG_IMAGEDESCRIPTION, "ImageDescription" },
    { TIFFTAG_STRIPOFFSETS, "StripOffsets" },
    { TIFFTAG_ORIENTATION, "Orientation" },
    { TIFFTAG_SAMPLESPERPIXEL, "SamplesPerPixel" },
    { TIFFTAG_ROWSPERSTRIP, "RowsPerStrip" },
    { TIFFTAG_STRIPBYTECOUNTS, "StripByteCounts" },
    { TIFFTAG_XRESOLUTION, "XResolution" },
    { TIFFTAG_YRESOLUTION, "YResolution" },
    { TIFFTAG_PLANARCONFIG, "PlanarConfiguration" },
    { TIFFTAG_RESOLUTIONUNIT, "ResolutionUnit" },
    { TIFFTAG_PREDICTOR, "Predictor" },
    { TIFFTAG_TILEWIDTH, "TileWidth" },
    { TIFFTAG_TILELENGTH, "TileLength" },
    { TIFFTAG_TILEOFFSETS, "TileOffsets" },
    { TIFFTAG_TILEBYTECOUNTS, "TileByteCounts" },
    { TIFFTAG_SAMPLEFORMAT, "SampleFormat" },
    { TIFFTAG_IMAGEDEPTH, "ImageDepth" },
    { TIFFTAG_TILEDEPTH, "TileDepth" },
  };
  for (const Name & known : names)
  {
    if (known.tag == tag)
    {
      return known.name;
    }
  }
  return "tag " + std::to_string(tag);
}

std::uint64_t
TiffDirectory::GetCount(std::uint16_t tag) const
{
  return this->GetEntry(tag).count;
}

std::uint64_t
TiffDirectory::GetNumber(std::uint16_t tag, std::uint64_t otherwise) const
{
  return this->Has(tag) ? this->GetNumbers(tag, 0, 1).front() : otherwise;
}

std::uint64_t
TiffDirectory::GetCommonNumber(std::uint16_t tag, std::uint64_t otherwise) const
{
  if (!this->Has(tag))
  {
    return otherwise;
  }
  // There is one for each sample, whose number is one of 16 bits.
  const std::uint64_t count = std::clamp<std::uint64_t>(this->GetCount(tag), 1, UINT16_MAX);
  const auto          numbers = this->GetNumbers(tag, 0, count);
  for (const std::uint64_t number : numbers)
  {
    if (number != numbers.front())
    {
      Fail(m_File->GetName(),
           "has samples with " + GetTiffTagName(tag) + "=" + std::to_string(numbers.front()) + " and " +
             std::to_string(number) + "; it must be the same for all samples");
    }
  }
  return numbers.front();
}

std::vector<std::uint64_t>
TiffDirectory::GetNumbers(std::uint16_t tag, std::uint64_t first, std::uint64_t count) const
{
  const Entry & entry = this->GetEntry(tag);
  if (!IsUnsignedInteger(entry.type))
  {
    Fail(m_File->GetName(),
         "has " + GetTiffTagName(tag) + " of type " + std::to_string(entry.type) + "; it must be an unsigned integer");
  }
  if (first > entry.count || count > entry.count - first)
  {
    Fail(m_File->GetName(),
         "has " + std::to_string(entry.count) + " values of " + GetTiffTagName(tag) + "; there must be " +
           std::to_string(first + count));
  }
  const std::size_t size = GetTypeSize(entry.type);
  m_File->Require(entry.offset, entry.count * size, GetTiffTagName(tag));
  std::vector<char> bytes(count * size);
  m_File->GetDescriptor().ReadAt(bytes.data(), bytes.size(), entry.offset + first * size);
  std::vector<std::uint64_t> numbers(count);
  for (std::size_t i = 0; i < numbers.size(); ++i)
  {
    numbers[i] = m_File->Decode(bytes.data() + i * size, size);
  }
  return numbers;
}

std::optional<double>
TiffDirectory::GetReal(std::uint16_t tag) const
{
  if (!this->Has(tag))
  {
    return std::nullopt;
  }
  const Entry & entry = this->GetEntry(tag);
  const bool    isRatio = entry.type == TIFF_RATIONAL || entry.type == TIFF_SRATIONAL;
  if (!isRatio && entry.type != TIFF_FLOAT && entry.type != TIFF_DOUBLE)
  {
    return static_cast<double>(this->GetNumber(tag, 0));
  }
  if (entry.count == 0)
  {
    return std::numeric_limits<double>::quiet_NaN();
  }
  char bytes[8];
  m_File->Require(entry.offset, entry.count * GetTypeSize(entry.type), GetTiffTagName(tag));
  m_File->GetDescriptor().ReadAt(bytes, GetTypeSize(entry.type), entry.offset);
  if (entry.type == TIFF_DOUBLE)
  {
    return Reinterpret<double>(m_File->Decode(bytes, 8));
  }
  const auto first = static_cast<std::uint32_t>(m_File->Decode(bytes, 4));
  if (entry.type == TIFF_FLOAT)
  {
    return Reinterpret<float>(first);
  }
  const auto second = static_cast<std::uint32_t>(m_File->Decode(bytes + 4, 4));
  return entry.type == TIFF_RATIONAL ? static_cast<double>(first) / second
                                     : Reinterpret<std::int32_t>(first) / Reinterpret<std::int32_t>(second);
}

std::string
TiffDirectory::GetText(std::uint16_t tag) const
{
  if (!this->Has(tag))
  {
    return std::string();
  }
  const Entry & entry = this->GetEntry(tag);
  if (GetTypeSize(entry.type) != 1)
  {
    Fail(m_File->GetName(),
         "has " + GetTiffTagName(tag) + " of type " + std::to_string(entry.type) + "; it must be text, type 2");
  }
  m_File->Require(entry.offset, entry.count, GetTiffTagName(tag));
  CheckMemoryOfHeader(m_File->GetName(), GetTiffTagName(tag), 2 * entry.count);
  std::string text(entry.count, '\0');
  m_File->GetDescriptor().ReadAt(text.data(), text.size(), entry.offset);
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

TiffDirectory
TiffDirectory::Select(std::initializer_list<std::uint16_t> tags) const
{
  TiffDirectory selected;
  selected.offset = offset;
  selected.m_File = m_File;
  for (const std::uint16_t tag : tags)
  {
    if (this->Has(tag))
    {
      selected.m_Entries.emplace(tag, this->GetEntry(tag));
    }
  }
  return selected;
}

TiffFile::TiffFile(const std::string & name)
  : m_Name(name)
  , m_Descriptor(Descriptor::OpenToRead(name))
  , m_Size(m_Descriptor.GetSize())
{
  char              header[16]{};
  const std::size_t present = m_Descriptor.ReadSome(header, sizeof(header), 0);
  const bool        isBigEndian = std::memcmp(header, "MM", 2) == 0;
  if (present < 8 || (!isBigEndian && std::memcmp(header, "II", 2) != 0))
  {
    Fail(m_Name, "is no TIFF file: its first bytes must be II or MM");
  }
  m_Swaps = isBigEndian != IsBigEndianMachine();
  const std::uint64_t version = this->Decode(header + 2, 2);
  m_IsBig = version == 43;
  if (version != 42 && !m_IsBig)
  {
    Fail(m_Name,
         "is no TIFF file: its version is " + std::to_string(version) +
           "; it must be 42, or 43 for BigTIFF, in byte order " + std::string(header, 2));
  }
  if (m_IsBig && (present < 16 || this->Decode(header + 4, 2) != 8 || this->Decode(header + 6, 2) != 0))
  {
    Fail(m_Name, "is no BigTIFF file: its offsets must have 8 bytes");
  }
  m_First = m_IsBig ? this->Decode(header + 8, 8) : this->Decode(header + 4, 4);
}

std::uint64_t
TiffFile::Decode(const char * data, std::size_t bytes) const
{
  char ordered[8];
  SwapBytes(ordered, data, m_Swaps ? 1 : 0, bytes);
  const char * const from = m_Swaps && bytes > 1 ? ordered : data;
  std::uint16_t      two = 0;
  std::uint32_t      four = 0;
  std::uint64_t      eight = 0;
  switch (bytes)
  {
    case 1:
      return static_cast<unsigned char>(*data);
    case 2:
      std::memcpy(&two, from, 2);
      return two;
    case 4:
      std::memcpy(&four, from, 4);
      return four;
    default:
      std::memcpy(&eight, from, 8);
      return eight;
  }
}

void
TiffFile::Require(std::uint64_t offset, std::uint64_t bytes, const std::string & what) const
{
  if (offset > m_Size || bytes > m_Size - offset)
  {
    Fail(m_Name,
         "is not complete: it has " + std::to_string(m_Size) + " bytes, its " + what + " has " + std::to_string(bytes) +
           " from byte " + std::to_string(offset) + " on");
  }
}

TiffDirectory
TiffFile::ReadDirectory(std::uint64_t offset)
{
  const std::string what = "directory " + std::to_string(m_Seen.size() + 1);
  if (!m_Seen.insert(offset).second)
  {
    Fail(m_Name,
         "is damaged: its directories form a loop, the one at byte " + std::to_string(offset) + " follows twice");
  }
  const std::size_t ofCount = m_IsBig ? 8 : 2;
  const std::size_t word = m_IsBig ? 8 : 4;
  const std::size_t ofEntry = 4 + 2 * word;
  Require(offset, ofCount, what);
  // Most directories come with one read.
  std::vector<char>   bytes(512);
  const std::size_t   present = m_Descriptor.ReadSome(bytes.data(), bytes.size(), offset);
  const std::uint64_t count = this->Decode(bytes.data(), ofCount);
  if (count > m_Size / ofEntry)
  {
    Fail(m_Name,
         "is not complete: it has " + std::to_string(m_Size) + " bytes, its " + what + " at byte " +
           std::to_string(offset) + " has " + std::to_string(count) + " tags");
  }
  const std::uint64_t all = ofCount + count * ofEntry + word;
  Require(offset, all, what);
  m_DirectoryBytes += all;
  if (m_DirectoryBytes > m_Size)
  {
    Fail(m_Name, "is damaged: its directories overlap each other");
  }
  if (all > present)
  {
    CheckMemoryOfHeader(m_Name, what, all);
    bytes.resize(all);
    m_Descriptor.ReadAt(bytes.data(), bytes.size(), offset);
  }
  TiffDirectory directory;
  directory.offset = offset;
  directory.m_File = this;
  directory.next = this->Decode(bytes.data() + ofCount + count * ofEntry, word);
  for (std::uint64_t i = 0; i < count; ++i)
  {
    const char * const   entry = bytes.data() + ofCount + i * ofEntry;
    TiffDirectory::Entry read{};
    read.type = static_cast<std::uint16_t>(this->Decode(entry + 2, 2));
    read.count = this->Decode(entry + 4, word);
    const std::size_t size = GetTypeSize(read.type);
    if (size != 0 && read.count > UINT64_MAX / size)
    {
      read.count = UINT64_MAX / size;
    }
    // A value that fits lies in the entry itself.
    read.offset =
      read.count * size <= word ? offset + ofCount + i * ofEntry + 4 + word : this->Decode(entry + 4 + word, word);
    directory.m_Entries.emplace(static_cast<std::uint16_t>(this->Decode(entry, 2)), read);
  }
  return directory;
}

} // namespace chunkwise::files
