/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"
#include "fileFormats.h"
#include "fileWhole.h"

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

// libjpeg-turbo is called directly and not through ITK's class, which returns what the library makes up where a scan is
// damaged.
namespace chunkwise::files
{

namespace
{

/** A block of 8 x 8 voxels takes a bit at least, and with its colors at half resolution 6 blocks are 256 pixels of 3
 * components. */
constexpr std::int64_t JpegRatio = 1024;
/** Progressive files have some ten. Each scan takes a pass over the whole image. */
constexpr int MostScans = 500;
/** Tables, and rows between the steps of the decoder, beside some for each pixel of a row. */
constexpr std::uint64_t JpegLibraryBytes = std::uint64_t{ 2 } << 20;
constexpr std::uint64_t JpegLibraryBytesPerPixelOfRow = 512;
constexpr int           ExifMarker = JPEG_APP0 + 1;

/** 1 to 8, as Exif counts orientations; 1 where there is none. */
int
FindOrientation(const unsigned char * data, std::size_t size)
{
  if (size < 14 || std::memcmp(data, "Exif\0\0", 6) != 0)
  {
    return 1;
  }
  const unsigned char * const tiff = data + 6;
  const std::size_t           bytes = size - 6;
  const bool                  bigEndian = tiff[0] == 'M';
  const auto                  number = [&](std::size_t at, std::size_t count) {
    std::size_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
    {
      value = value << 8 | (at + count <= bytes ? tiff[at + (bigEndian ? i : count - 1 - i)] : 0);
    }
    return value;
  };
  const std::size_t directory = number(4, 4);
  const std::size_t entries = number(directory, 2);
  for (std::size_t i = 0; i < entries && directory + 2 + 12 * (i + 1) <= bytes; ++i)
  {
    const std::size_t entry = directory + 2 + 12 * i;
    if (number(entry, 2) == 0x0112)
    {
      const std::size_t orientation = number(entry + 8, 2);
      return orientation >= 1 && orientation <= 8 ? static_cast<int>(orientation) : 1;
    }
  }
  return 1;
}

/** libjpeg's state of one pass over a file. Its errors jump: code that calls it has no objects with destructors, and
 * runs inside Try. */
class JpegFile
{
public:
  explicit JpegFile(const std::string & name)
    : m_File(Descriptor::OpenToRead(name))
  {
    m_Jpeg.err = jpeg_std_error(&m_Errors);
    m_Jpeg.client_data = this;
    m_Errors.error_exit = &JpegFile::TakeError;
    m_Errors.emit_message = &JpegFile::TakeMessage;
    m_Errors.output_message = [](j_common_ptr) {};
    Try([this] { jpeg_create_decompress(&m_Jpeg); });
    m_Jpeg.client_data = this;
    m_Source.init_source = [](j_decompress_ptr) {};
    m_Source.fill_input_buffer = &JpegFile::FillBuffer;
    m_Source.skip_input_data = &JpegFile::Skip;
    m_Source.resync_to_restart = jpeg_resync_to_restart;
    m_Source.term_source = [](j_decompress_ptr) {};
    m_Jpeg.src = &m_Source;
    m_Progress.progress_monitor = [](j_common_ptr jpeg) {
      if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > MostScans)
      {
        static_cast<JpegFile *>(jpeg->client_data)->Stop("it has too many scans");
      }
    };
    m_Jpeg.progress = &m_Progress;
  }
  ~JpegFile() { jpeg_destroy_decompress(&m_Jpeg); }
  JpegFile(const JpegFile &) = delete;
  JpegFile &
  operator=(const JpegFile &) = delete;

  /** Throws FileError if libjpeg reports an error, or damage, within `call`. */
  template <typename TCall>
  void
  Try(const TCall & call)
  {
    if (!Call(call))
    {
      Fail(m_File.GetName(), std::string("is no complete JPEG file: ") + m_Why);
    }
  }
  /** Inside Try alone. */
  [[noreturn]] void
  Stop(const char * why)
  {
    std::snprintf(m_Why, sizeof(m_Why), "%s", why);
    std::longjmp(m_Jump, 1);
  }
  jpeg_decompress_struct &
  GetJpeg()
  {
    return m_Jpeg;
  }
  const Descriptor &
  GetFile() const
  {
    return m_File;
  }

private:
  template <typename TCall>
  bool
  Call(const TCall & call)
  {
    if (setjmp(m_Jump) != 0)
    {
      return false;
    }
    call();
    return true;
  }
  static void
  TakeError(j_common_ptr jpeg)
  {
    char text[JMSG_LENGTH_MAX];
    (*jpeg->err->format_message)(jpeg, text);
    static_cast<JpegFile *>(jpeg->client_data)->Stop(text);
  }
  /** Messages below 0 are of damaged data, for which libjpeg makes something up. */
  static void
  TakeMessage(j_common_ptr jpeg, int level)
  {
    if (level < 0)
    {
      TakeError(jpeg);
    }
  }
  static boolean
  FillBuffer(j_decompress_ptr jpeg)
  {
    auto & file = *static_cast<JpegFile *>(jpeg->client_data);
    file.m_Source.bytes_in_buffer = file.ReadNext();
    file.m_Source.next_input_byte = file.m_Buffer;
    if (file.m_Source.bytes_in_buffer == 0)
    {
      file.Stop("it ends without the mark of its end");
    }
    return TRUE;
  }
  static void
  Skip(j_decompress_ptr jpeg, long bytes)
  {
    auto & file = *static_cast<JpegFile *>(jpeg->client_data);
    if (bytes <= 0)
    {
      return;
    }
    const auto count = static_cast<std::size_t>(bytes);
    const auto here = std::min(count, file.m_Source.bytes_in_buffer);
    file.m_Source.bytes_in_buffer -= here;
    file.m_Source.next_input_byte += here;
    file.m_At += count - here;
  }
  std::size_t
  ReadNext() noexcept
  {
    try
    {
      const std::size_t count = m_File.ReadSome(m_Buffer, sizeof(m_Buffer), m_At);
      m_At += count;
      return count;
    }
    catch (const std::exception &)
    {
      return 0;
    }
  }

  Descriptor             m_File;
  std::uint64_t          m_At{ 0 };
  JOCTET                 m_Buffer[4096];
  jpeg_decompress_struct m_Jpeg{};
  jpeg_error_mgr         m_Errors{};
  jpeg_source_mgr        m_Source{};
  jpeg_progress_mgr      m_Progress{};
  std::jmp_buf           m_Jump{};
  char                   m_Why[JMSG_LENGTH_MAX]{};
};

/** Reads up to the first scan, and chooses colors: what is printed in four becomes RGB. */
void
Begin(JpegFile & file)
{
  jpeg_decompress_struct & jpeg = file.GetJpeg();
  jpeg_save_markers(&jpeg, ExifMarker, 0xffff);
  jpeg_read_header(&jpeg, TRUE);
  const bool hasFour = jpeg.num_components == 4;
  if (jpeg.num_components != 1 && jpeg.num_components != 3 && !hasFour)
  {
    file.Stop("it has neither grays nor RGB nor CMYK");
  }
  jpeg.out_color_space = hasFour ? JCS_CMYK : jpeg.num_components == 3 ? JCS_RGB : JCS_GRAYSCALE;
  jpeg_calc_output_dimensions(&jpeg);
}

/** libjpeg gives what a scan that is not there would hold as gray, without a warning. */
void
CheckScans(JpegFile & file)
{
  const jpeg_decompress_struct & jpeg = file.GetJpeg();
  for (int i = 0; i < jpeg.num_components; ++i)
  {
    bool isThere = jpeg.comp_info[i].quant_table != nullptr;
    if (jpeg.progressive_mode && jpeg.coef_bits)
    {
      // How many bits of each coefficient are still to come; -1: all.
      const int * const bits = jpeg.coef_bits[i];
      isThere = isThere && bits[0] == 0;
      for (int k = 1; k < DCTSIZE2; ++k)
      {
        isThere = isThere && bits[k] <= 0;
      }
    }
    if (!isThere)
    {
      file.Stop("a scan is missing");
    }
  }
}

class JpegSource : public WholeSource
{
public:
  explicit JpegSource(const std::string & name)
    : WholeSource(name)
  {
    JpegFile      file(name);
    constexpr int isGray = 1;
    auto &        jpeg = file.GetJpeg();
    file.Try([&] { Begin(file); });
    m_Header.dimension = 2;
    m_Header.extent[0] = jpeg.image_width;
    m_Header.extent[1] = jpeg.image_height;
    m_Header.components = jpeg.num_components == isGray ? 1 : 3;
    m_Header.kind = PixelType::UInt8;
    if (jpeg.density_unit != 0 && jpeg.X_density > 0 && jpeg.Y_density > 0)
    {
      // Dots an inch, or a centimetre.
      const double unit = jpeg.density_unit == 1 ? 25.4 : 10.0;
      m_Header.spacing[0] = unit / jpeg.X_density;
      m_Header.spacing[1] = unit / jpeg.Y_density;
    }
    CountVoxels(name, m_Header);
    RequireInFile(
      name, ByteCount::OfImage(m_Header.extent, jpeg.num_components, 1), file.GetFile().GetSize(), JpegRatio);
    m_DecoderBytes = JpegLibraryBytes + JpegLibraryBytesPerPixelOfRow * jpeg.output_width;
    if (jpeg_has_multiple_scans(&jpeg))
    {
      // All coefficients are held until the last scan.
      for (int i = 0; i < jpeg.num_components; ++i)
      {
        const jpeg_component_info & component = jpeg.comp_info[i];
        m_DecoderBytes += (static_cast<std::uint64_t>(component.width_in_blocks) + 4) *
                          (static_cast<std::uint64_t>(component.height_in_blocks) + 4) * sizeof(JBLOCK);
      }
    }
    for (jpeg_saved_marker_ptr marker = jpeg.marker_list; marker; marker = marker->next)
    {
      const int orientation = marker->marker == ExifMarker ? FindOrientation(marker->data, marker->data_length) : 1;
      if (orientation != 1)
      {
        m_Warnings.push_back("its Exif orientation " + std::to_string(orientation) +
                             ", by which viewers turn it, is not applied: voxels lie as they are stored");
      }
    }
  }

private:
  void
  Decode(char * voxels) override
  {
    JpegFile          file(m_File);
    auto &            jpeg = file.GetJpeg();
    const auto        rowBytes = static_cast<std::size_t>(m_Header.extent[0] * m_Header.components);
    std::vector<char> fours(m_Header.components == 3 ? static_cast<std::size_t>(m_Header.extent[0]) * 4 : 0);
    const auto        most = static_cast<long>(m_DecoderBytes);
    file.Try([&] {
      jpeg.mem->max_memory_to_use = most;
      Begin(file);
      const bool hasFour = jpeg.num_components == 4;
      if (jpeg.image_width != m_Header.extent[0] || jpeg.image_height != m_Header.extent[1] ||
          (m_Header.components == 1) != (jpeg.num_components == 1))
      {
        file.Stop("it has changed");
      }
      // As all decoders do by default, so that they agree.
      jpeg.dct_method = JDCT_ISLOW;
      jpeg_start_decompress(&jpeg);
      while (jpeg.output_scanline < jpeg.output_height)
      {
        char *   to = voxels + jpeg.output_scanline * rowBytes;
        JSAMPROW row = reinterpret_cast<JSAMPROW>(hasFour ? fours.data() : to);
        jpeg_read_scanlines(&jpeg, &row, 1);
        if (!hasFour)
        {
          continue;
        }
        for (JDIMENSION x = 0; x < jpeg.output_width; ++x, to += 3, row += 4)
        {
          // Adobe's programs, which mark their files, store inks inverted.
          const int black = jpeg.saw_Adobe_marker ? row[3] : 255 - row[3];
          for (int c = 0; c < 3; ++c)
          {
            const int ink = jpeg.saw_Adobe_marker ? row[c] : 255 - row[c];
            to[c] = static_cast<char>(static_cast<unsigned char>((ink * black + 127) / 255));
          }
        }
      }
      CheckScans(file);
      jpeg_finish_decompress(&jpeg);
    });
  }
};

} // namespace

std::unique_ptr<FileSource>
OpenJpeg(const std::string & file)
{
  return std::make_unique<JpegSource>(file);
}

} // namespace chunkwise::files
