/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"
#include "fileFormats.h"
#include "fileWhole.h"

#include <cstdio>
#include <png.h>

// libpng is called directly and not through ITK's class, which lets its errors end the process, shifts voxels by sBIT,
// and ignores checksums.
namespace chunkwise::files
{

namespace
{

/** Chunks of text and profiles that a file may have; no image has so many. */
constexpr png_uint_32 MostChunks = 1000;
constexpr std::size_t MostBytesOfChunk = std::size_t{ 4 } << 20;
/** The memory that libpng and zlib take. */
constexpr std::uint64_t PngLibraryBytes = std::uint64_t{ 5 } << 20;

/** libpng's state of one pass over a file. Its errors jump: code that calls it has no objects with destructors, and
 * runs inside Try. */
class PngFile
{
public:
  explicit PngFile(const std::string & name)
    : m_File(Descriptor::OpenToRead(name))
  {
    m_Png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &PngFile::TakeError, &PngFile::TakeWarning);
    m_Info = m_Png ? png_create_info_struct(m_Png) : nullptr;
    if (!m_Info)
    {
      png_destroy_read_struct(&m_Png, &m_Info, nullptr);
      throw std::bad_alloc();
    }
  }
  ~PngFile() { png_destroy_read_struct(&m_Png, &m_Info, nullptr); }
  PngFile(const PngFile &) = delete;
  PngFile &
  operator=(const PngFile &) = delete;

  /** Throws FileError if libpng reports an error within `call`. */
  template <typename TCall>
  void
  Try(const TCall & call)
  {
    if (!Call(call))
    {
      Fail(m_File.GetName(), std::string("is no complete PNG file: ") + m_Why);
    }
  }
  png_structp
  GetPng() const
  {
    return m_Png;
  }
  png_infop
  GetInfo() const
  {
    return m_Info;
  }
  const Descriptor &
  GetFile() const
  {
    return m_File;
  }
  static void
  Read(png_structp png, png_bytep data, std::size_t bytes)
  {
    if (!static_cast<PngFile *>(png_get_io_ptr(png))->ReadNext(data, bytes))
    {
      png_error(png, "it ends before its last chunk");
    }
  }

private:
  template <typename TCall>
  bool
  Call(const TCall & call)
  {
    if (setjmp(png_jmpbuf(m_Png)) != 0)
    {
      return false;
    }
    call();
    return true;
  }
  bool
  ReadNext(void * data, std::size_t bytes) noexcept
  {
    try
    {
      const std::size_t count = m_File.ReadSome(data, bytes, m_At);
      m_At += count;
      return count == bytes;
    }
    catch (const std::exception &)
    {
      return false;
    }
  }
  static void
  TakeError(png_structp png, png_const_charp text)
  {
    auto & file = *static_cast<PngFile *>(png_get_error_ptr(png));
    std::snprintf(file.m_Why, sizeof(file.m_Why), "%s", text);
    png_longjmp(png, 1);
  }
  // Warnings are of profiles and text, which are not used. Voxels that cannot be had are errors.
  static void
  TakeWarning(png_structp, png_const_charp)
  {}

  Descriptor    m_File;
  std::uint64_t m_At{ 0 };
  png_structp   m_Png{ nullptr };
  png_infop     m_Info{ nullptr };
  char          m_Why[128]{};
};

/** The unsigned integer of the format at `bytes`. */
std::uint32_t
IntegerAt(const unsigned char * bytes)
{
  return std::uint32_t{ bytes[0] } << 24 | std::uint32_t{ bytes[1] } << 16 | std::uint32_t{ bytes[2] } << 8 | bytes[3];
}

/** Throws FileError if a chunk claims more bytes than the file has, or the chunk of the spacing more than a spacing can
 * have: libpng allocates and clears what a chunk claims before it reads it. */
void
CheckChunks(const Descriptor & file)
{
  constexpr std::uint64_t signature = 8;
  constexpr std::uint64_t beside = 12; // length, name and checksum
  const std::uint64_t     size = file.GetSize();
  for (std::uint64_t at = signature; at + beside <= size;)
  {
    unsigned char bytes[8];
    file.ReadAt(bytes, sizeof(bytes), at);
    const std::uint64_t length = IntegerAt(bytes);
    const std::string   name(bytes + 4, bytes + 8);
    if (length > size - at - beside)
    {
      Fail(file.GetName(), "is no complete PNG file: it ends before its last chunk");
    }
    if (length > MostBytesOfChunk && name == "sCAL")
    {
      Fail(file.GetName(), "is no valid PNG file: its spacing is a text of " + std::to_string(length) + " bytes");
    }
    if (name == "IEND")
    {
      break;
    }
    at += beside + length;
  }
}

/** Numbers of a header, as they can be had where libpng may jump. */
struct PngHeader
{
  png_uint_32 width;
  png_uint_32 height;
  int         bits;
  int         channels;
  bool        isGrayPalette;
  png_size_t  storedRowBytes;
  double      spacing[2];
};

bool
HasGrayPalette(png_const_structp png, png_inforp info)
{
  png_colorp colors = nullptr;
  int        count = 0;
  if (png_get_color_type(png, info) != PNG_COLOR_TYPE_PALETTE || png_get_valid(png, info, PNG_INFO_tRNS) ||
      !png_get_PLTE(png, info, &colors, &count))
  {
    return false;
  }
  bool isGray = true;
  for (int i = 0; i < count; ++i)
  {
    isGray = isGray && colors[i].red == colors[i].green && colors[i].red == colors[i].blue;
  }
  return isGray;
}

/** Reads up to the first voxels, and asks for components of 8 or 16 bits in the machine's order. */
void
Begin(PngFile & file, PngHeader & header)
{
  const png_structp png = file.GetPng();
  const png_infop   info = file.GetInfo();
  png_set_read_fn(png, &file, &PngFile::Read);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_chunk_cache_max(png, MostChunks);
  png_set_chunk_malloc_max(png, MostBytesOfChunk);
  // Text, profiles and the like are passed over without memory; the spacing is read.
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_AS_DEFAULT, reinterpret_cast<png_const_bytep>("sCAL"), 1);
  png_read_info(png, info);
  header.storedRowBytes = png_get_rowbytes(png, info);
  header.isGrayPalette = HasGrayPalette(png, info);
  const int colors = png_get_color_type(png, info);
  if (header.isGrayPalette)
  {
    png_set_packing(png);
  }
  else if (colors == PNG_COLOR_TYPE_PALETTE)
  {
    png_set_palette_to_rgb(png);
  }
  else if (png_get_bit_depth(png, info) < 8)
  {
    png_set_expand_gray_1_2_4_to_8(png);
  }
  if (png_get_valid(png, info, PNG_INFO_tRNS))
  {
    png_set_tRNS_to_alpha(png);
  }
  if (!IsBigEndianMachine())
  {
    png_set_swap(png);
  }
  png_set_interlace_handling(png);
  png_read_update_info(png, info);
  header.width = png_get_image_width(png, info);
  header.height = png_get_image_height(png, info);
  header.bits = png_get_bit_depth(png, info);
  header.channels = png_get_channels(png, info);
  // ITK writes spacings of millimetres there and calls them metres. It ignores the unit, and so do others of its
  // readers.
  int    unit = PNG_SCALE_UNKNOWN;
  double width = 1;
  double height = 1;
  if (png_get_sCAL(png, info, &unit, &width, &height) && width > 0 && height > 0)
  {
    header.spacing[0] = width;
    header.spacing[1] = height;
  }
}

class PngSource : public WholeSource
{
public:
  explicit PngSource(const std::string & name)
    : WholeSource(name)
  {
    PngFile   file(name);
    PngHeader header{ 0, 0, 0, 0, false, 0, { 1, 1 } };
    CheckChunks(file.GetFile());
    file.Try([&] { Begin(file, header); });
    m_Header.dimension = 2;
    m_Header.extent[0] = header.width;
    m_Header.extent[1] = header.height;
    m_Header.components = header.channels;
    m_Header.kind = header.bits == 16 ? PixelType::UInt16 : PixelType::UInt8;
    std::copy_n(header.spacing, 2, m_Header.spacing);
    CountVoxels(name, m_Header);
    RequireInFile(name,
                  ByteCount::FromUnsigned(header.storedRowBytes) * m_Header.extent[1],
                  file.GetFile().GetSize(),
                  DeflateRatio);
    m_DecoderBytes = PngLibraryBytes + 4 * static_cast<std::uint64_t>(header.storedRowBytes) +
                     static_cast<std::uint64_t>(m_Header.extent[1]) * sizeof(png_bytep);
  }

private:
  void
  Decode(char * voxels) override
  {
    PngFile                file(m_File);
    const auto             height = static_cast<std::size_t>(m_Header.extent[1]);
    const std::size_t      rowBytes = GetImageBytes() / height;
    std::vector<png_bytep> rows(height);
    for (std::size_t y = 0; y < height; ++y)
    {
      rows[y] = reinterpret_cast<png_bytep>(voxels) + y * rowBytes;
    }
    PngHeader  header{ 0, 0, 0, 0, false, 0, { 1, 1 } };
    png_byte   grays[256] = {};
    int        count = 0;
    const auto png = file.GetPng();
    const auto info = file.GetInfo();
    file.Try([&] {
      Begin(file, header);
      if (header.height != height || png_get_rowbytes(png, info) != rowBytes)
      {
        png_error(png, "it has changed");
      }
      png_read_image(png, rows.data());
      png_colorp colors = nullptr;
      png_get_PLTE(png, info, &colors, &count);
      for (int i = 0; i < count; ++i)
      {
        grays[i] = colors[i].red;
      }
      png_read_end(png, nullptr);
    });
    if (header.isGrayPalette)
    {
      for (std::uint64_t i = 0; i < GetImageBytes(); ++i)
      {
        const auto index = static_cast<unsigned char>(voxels[i]);
        if (index >= count)
        {
          Fail(m_File, "is damaged: color " + std::to_string(index) + " of " + std::to_string(count));
        }
        voxels[i] = static_cast<char>(grays[index]);
      }
    }
  }
};

} // namespace

std::unique_ptr<FileSource>
OpenPng(const std::string & file)
{
  return std::make_unique<PngSource>(file);
}

} // namespace chunkwise::files
