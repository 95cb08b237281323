/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"

#include <cmath>
#include <cstring>
#include <tiff.h>

namespace chunkwise::files
{

namespace
{

/** A ratio of 32-bit numbers near `value`. */
void
Ratio(double value, std::uint32_t & numerator, std::uint32_t & denominator)
{
  // The convergents of its continued fraction.
  double        rest = value;
  std::uint64_t n[2] = { 1, 0 };
  std::uint64_t d[2] = { 0, 1 };
  for (int i = 0; i < 40; ++i)
  {
    const double whole = std::floor(rest);
    if (!(whole < 4294967296.0))
    {
      break;
    }
    const auto          w = static_cast<std::uint64_t>(whole);
    const std::uint64_t nextN = w * n[0] + n[1];
    const std::uint64_t nextD = w * d[0] + d[1];
    if (nextN > UINT32_MAX || nextD > UINT32_MAX)
    {
      break;
    }
    n[1] = n[0];
    d[1] = d[0];
    n[0] = nextN;
    d[0] = nextD;
    if (rest - whole < 1e-12 * value)
    {
      break;
    }
    rest = 1 / (rest - whole);
  }
  numerator = d[0] ? static_cast<std::uint32_t>(n[0]) : UINT32_MAX;
  denominator = d[0] ? static_cast<std::uint32_t>(d[0]) : 1;
}

/** Directories of a TIFF file, in the machine's byte order. */
class DirectoryWriter
{
public:
  DirectoryWriter(std::string & bytes, bool big)
    : m_Bytes(bytes)
    , m_Big(big)
  {}
  /** A number, or a count of values that lie elsewhere, at the value. */
  void
  Entry(std::uint16_t tag, std::uint16_t type, std::uint64_t count, std::uint64_t value)
  {
    Append(m_Bytes, tag);
    Append(m_Bytes, type);
    Word(count);
    // Small numbers are at the left of their field, whatever the order.
    const std::size_t at = m_Bytes.size();
    if (count == 1 && type == TIFF_SHORT)
    {
      Append(m_Bytes, static_cast<std::uint16_t>(value));
    }
    else if (count == 1 && type == TIFF_LONG)
    {
      Append(m_Bytes, static_cast<std::uint32_t>(value));
    }
    else
    {
      Word(value);
    }
    m_Bytes.resize(at + (m_Big ? 8 : 4));
  }
  /** An offset or a count: 8 bytes in BigTIFF. */
  void
  Word(std::uint64_t value)
  {
    if (m_Big)
    {
      Append(m_Bytes, value);
    }
    else
    {
      Append(m_Bytes, static_cast<std::uint32_t>(value));
    }
  }

private:
  std::string & m_Bytes;
  bool          m_Big;
};

/** How an image is laid out: directories and tables first, then the voxels, page after page. */
struct TiffPlan
{
  std::uint64_t width;
  std::uint64_t height;
  std::uint64_t pages;
  std::uint64_t components;
  std::size_t   size;
  std::uint64_t rowBytes;
  std::uint64_t pageBytes;
  std::uint64_t rowsOfStrip;
  std::uint64_t strips;
  bool          isColor;
  /** Samples that no color is made of. */
  std::uint64_t extra;
  std::uint64_t entries;
  /** Bytes of three lists of numbers of 16 bits, one for each component. */
  std::uint64_t lists;
  bool          big;
  std::uint32_t ratios[4];
  /** The places of the lists: bits, format of samples, and the meaning of the extra ones. */
  std::uint16_t ofList[3];

  std::uint64_t
  GetWord() const
  {
    return big ? 8 : 4;
  }
  std::uint64_t
  GetDirectoryBytes() const
  {
    return big ? 8 + entries * 20 + 8 : 2 + entries * 12 + 4;
  }
  /** Header, two ratios, and for each page its directory and the two tables of its strips. */
  std::uint64_t
  GetBytesBefore() const
  {
    return 32 + lists + pages * (GetDirectoryBytes() + (strips > 1 ? 2 * strips * GetWord() : 0));
  }
};

/** Refuses what TIFF cannot say of an image, and lists what it says less of. */
void
CheckHeader(const ImageHeader & header, const std::string & file, VoxelLayout & layout)
{
  for (int a = 0; a < std::min(header.dimension, 3); ++a)
  {
    if (!(header.spacing[a] > 0) || !std::isfinite(header.spacing[a]))
    {
      Fail(file,
           "TIFF holds a spacing greater than 0; along axis " + std::to_string(a) + " it is " +
             Shortest(header.spacing[a]));
    }
  }
  for (int a = 0; a < 2; ++a)
  {
    if (header.extent[a] > INT32_MAX)
    {
      Fail(file, "TIFF holds at most " + std::to_string(INT32_MAX) + " voxels along an axis of a page");
    }
  }
  if (header.components > UINT16_MAX)
  {
    Fail(file, "TIFF holds at most " + std::to_string(UINT16_MAX) + " components a voxel");
  }
  if (header.dimension == 3 && header.spacing[2] != 1)
  {
    layout.losses.emplace_back("spacing of the third axis");
  }
}

TiffPlan
MakeTiffPlan(const ImageHeader & header, VoxelLayout & layout)
{
  constexpr std::uint64_t StripBytes = std::uint64_t{ 1 } << 20;
  TiffPlan                plan{};
  plan.size = PixelSize(header.kind);
  plan.width = static_cast<std::uint64_t>(header.extent[0]);
  plan.height = static_cast<std::uint64_t>(header.extent[1]);
  plan.pages = static_cast<std::uint64_t>(header.extent[2]);
  plan.components = static_cast<std::uint64_t>(header.components);
  plan.rowBytes = plan.width * plan.size * plan.components;
  plan.pageBytes = plan.rowBytes * plan.height;
  plan.rowsOfStrip = std::max<std::uint64_t>(1, std::min(plan.height, StripBytes / plan.rowBytes));
  plan.strips = (plan.height + plan.rowsOfStrip - 1) / plan.rowsOfStrip;
  plan.isColor = plan.components == 3 || plan.components == 4;
  plan.extra = plan.components == 4 ? 1 : plan.isColor ? 0 : plan.components - 1;
  plan.entries = plan.extra > 0 ? 15 : 14;
  plan.lists = plan.components > 1 ? (3 * 2 * plan.components + 15) / 16 * 16 : 0;
  plan.big = plan.GetBytesBefore() + plan.pages * plan.pageBytes + 16 > UINT32_MAX;
  bool isKept = true;
  for (int a = 0; a < 2; ++a)
  {
    std::uint32_t * const ratio = plan.ratios + 2 * a;
    const double          perCm = 10 / header.spacing[a];
    Ratio(perCm, ratio[0], ratio[1]);
    isKept = isKept && std::abs(static_cast<double>(ratio[0]) / ratio[1] - perCm) <= 1e-6 * perCm;
  }
  if (!isKept)
  {
    layout.losses.emplace_back("spacing, which is too small or too large for TIFF");
  }
  plan.ofList[0] = static_cast<std::uint16_t>(8 * plan.size);
  plan.ofList[1] = IsFloatingPoint(header.kind)               ? SAMPLEFORMAT_IEEEFP
                   : (static_cast<int>(header.kind) % 2) == 1 ? SAMPLEFORMAT_INT
                                                              : SAMPLEFORMAT_UINT;
  plan.ofList[2] = plan.isColor ? EXTRASAMPLE_UNASSALPHA : EXTRASAMPLE_UNSPECIFIED;
  return plan;
}

/** A number for each of `count` samples: numbers that do not fit into the field are in a list. */
void
WriteList(DirectoryWriter & writer, const TiffPlan & plan, std::uint16_t tag, int list, std::uint64_t count)
{
  const std::uint16_t number = plan.ofList[list];
  std::uint64_t       value = number;
  if (count > 1 && 2 * count <= plan.GetWord())
  {
    const std::uint16_t numbers[4] = { number,
                                       number,
                                       static_cast<std::uint16_t>(count > 2 ? number : 0),
                                       static_cast<std::uint16_t>(count > 3 ? number : 0) };
    std::uint32_t       half = 0;
    std::memcpy(&half, numbers, 4);
    value = half;
    if (plan.big)
    {
      std::memcpy(&value, numbers, 8);
    }
  }
  else if (count > 1)
  {
    value = 32 + static_cast<std::uint64_t>(list) * 2 * plan.components;
  }
  writer.Entry(tag, TIFF_SHORT, count, value);
}

void
WriteFileHeader(std::string & bytes, DirectoryWriter & writer, const TiffPlan & plan)
{
  bytes = IsBigEndianMachine() ? "MM" : "II";
  Append(bytes, static_cast<std::uint16_t>(plan.big ? 43 : 42));
  if (plan.big)
  {
    Append(bytes, std::uint16_t{ 8 });
    Append(bytes, std::uint16_t{ 0 });
  }
  writer.Word(32 + plan.lists);
  bytes.resize(16);
  bytes.append(reinterpret_cast<const char *>(plan.ratios), sizeof(plan.ratios));
  for (std::uint64_t i = 0; plan.lists > 0 && i < 3 * plan.components; ++i)
  {
    Append(bytes, plan.ofList[i / plan.components]);
  }
  bytes.resize(32 + plan.lists);
}

void
WriteResolution(DirectoryWriter & writer, const TiffPlan & plan)
{
  for (int a = 0; a < 2; ++a)
  {
    // In BigTIFF the ratio itself fits into the field.
    std::uint64_t value = 16 + 8 * static_cast<std::uint64_t>(a);
    if (plan.big)
    {
      std::memcpy(&value, plan.ratios + 2 * a, 8);
    }
    writer.Entry(a == 0 ? TIFFTAG_XRESOLUTION : TIFFTAG_YRESOLUTION, TIFF_RATIONAL, 1, value);
  }
  writer.Entry(TIFFTAG_RESOLUTIONUNIT, TIFF_SHORT, 1, RESUNIT_CENTIMETER);
}

/** The directory of a page whose voxels begin at `voxels`, and the tables of its strips. */
void
WriteDirectory(std::string & bytes, DirectoryWriter & writer, const TiffPlan & plan, std::uint64_t voxels, bool isLast)
{
  const std::uint16_t wordType =
    plan.big ? static_cast<std::uint16_t>(TIFF_LONG8) : static_cast<std::uint16_t>(TIFF_LONG);
  const std::uint64_t strips = plan.strips;
  const std::uint64_t tables = bytes.size() + plan.GetDirectoryBytes();
  const std::uint64_t next = tables + (strips > 1 ? 2 * strips * plan.GetWord() : 0);
  if (plan.big)
  {
    Append(bytes, plan.entries);
  }
  else
  {
    Append(bytes, static_cast<std::uint16_t>(plan.entries));
  }
  writer.Entry(TIFFTAG_SUBFILETYPE, TIFF_LONG, 1, plan.pages > 1 ? FILETYPE_PAGE : 0);
  writer.Entry(TIFFTAG_IMAGEWIDTH, TIFF_LONG, 1, plan.width);
  writer.Entry(TIFFTAG_IMAGELENGTH, TIFF_LONG, 1, plan.height);
  WriteList(writer, plan, TIFFTAG_BITSPERSAMPLE, 0, plan.components);
  writer.Entry(TIFFTAG_COMPRESSION, TIFF_SHORT, 1, COMPRESSION_NONE);
  writer.Entry(TIFFTAG_PHOTOMETRIC, TIFF_SHORT, 1, plan.isColor ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
  writer.Entry(TIFFTAG_STRIPOFFSETS, wordType, strips, strips > 1 ? tables : voxels);
  writer.Entry(TIFFTAG_SAMPLESPERPIXEL, TIFF_SHORT, 1, plan.components);
  writer.Entry(TIFFTAG_ROWSPERSTRIP, TIFF_LONG, 1, plan.rowsOfStrip);
  writer.Entry(
    TIFFTAG_STRIPBYTECOUNTS, wordType, strips, strips > 1 ? tables + strips * plan.GetWord() : plan.pageBytes);
  WriteResolution(writer, plan);
  if (plan.extra > 0)
  {
    WriteList(writer, plan, TIFFTAG_EXTRASAMPLES, 2, plan.extra);
  }
  WriteList(writer, plan, TIFFTAG_SAMPLEFORMAT, 1, plan.components);
  writer.Word(isLast ? 0 : next);
  for (std::uint64_t i = 0; strips > 1 && i < strips; ++i)
  {
    writer.Word(voxels + i * plan.rowsOfStrip * plan.rowBytes);
  }
  for (std::uint64_t i = 0; strips > 1 && i < strips; ++i)
  {
    writer.Word(std::min(plan.rowsOfStrip, plan.height - i * plan.rowsOfStrip) * plan.rowBytes);
  }
}

} // namespace

VoxelLayout
LayOutTiff(const ImageHeader & header, const std::string & file, const std::string &, bool)
{
  VoxelLayout layout;
  CheckHeader(header, file, layout);
  const TiffPlan      plan = MakeTiffPlan(header, layout);
  const std::uint64_t begin = (plan.GetBytesBefore() + 15) / 16 * 16;
  DirectoryWriter     writer(layout.header, plan.big);
  WriteFileHeader(layout.header, writer, plan);
  for (std::uint64_t page = 0; page < plan.pages; ++page)
  {
    WriteDirectory(layout.header, writer, plan, begin + page * plan.pageBytes, page + 1 == plan.pages);
  }
  layout.header.resize(begin);
  return layout;
}

} // namespace chunkwise::files
