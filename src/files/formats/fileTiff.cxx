/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"
#include "fileFormats.h"
#include "fileMemory.h"
#include "fileOme.h"
#include "filePlanar.h"
#include "fileTiffDeflate.h"
#include "fileTiffDirectory.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <tiffio.h>

namespace chunkwise::files
{

namespace
{

/** The first complaint of libtiff about a file. Its warnings count: one says that a part of a JPEG stream was made up.
 */
struct Complaint
{
  std::string text;

  void
  Keep(const char * format, va_list arguments)
  {
    char line[512];
    std::vsnprintf(line, sizeof(line), format, arguments);
    // These two name unusual writers, and nothing is lost.
    if (text.empty() && !std::strstr(line, "Old-style LZW codes") && !std::strstr(line, "exceeds expected dimensions"))
    {
      text = line;
    }
  }
};

#if TIFFLIB_VERSION >= 20221213
int
KeepComplaint(TIFF *, void * complaint, const char *, const char * format, va_list arguments)
{
  static_cast<Complaint *>(complaint)->Keep(format, arguments);
  return 1;
}
#else
thread_local Complaint * currentComplaint = nullptr;

void
KeepComplaint(const char *, const char * format, va_list arguments)
{
  if (currentComplaint)
  {
    currentComplaint->Keep(format, arguments);
  }
}
#endif

struct TiffCloser
{
  void
  operator()(TIFF * tiff) const
  {
    TIFFClose(tiff);
  }
};

/** Decodes compressed strips and tiles. libtiff does not read the file's structure for us, only what decoding needs. */
class BlockDecoder
{
public:
  /** libtiff makes no allocation of more than `most` bytes. */
  BlockDecoder(const std::string & name, std::uint64_t most)
    : m_Name(name)
    , m_Complaint(std::make_unique<Complaint>())
  {
    // No memory mapping: a page of a file that shrinks would end the process. The header alone is read.
    constexpr const char * Mode = "rmh";
#if TIFFLIB_VERSION >= 20221213
    TIFFOpenOptions * const options = TIFFOpenOptionsAlloc();
    if (!options)
    {
      throw std::bad_alloc();
    }
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, static_cast<tmsize_t>(std::min<std::uint64_t>(most, INT64_MAX)));
    TIFFOpenOptionsSetErrorHandlerExtR(options, KeepComplaint, m_Complaint.get());
    TIFFOpenOptionsSetWarningHandlerExtR(options, KeepComplaint, m_Complaint.get());
    m_Tiff.reset(TIFFOpenExt(name.c_str(), Mode, options));
    TIFFOpenOptionsFree(options);
#else
    static_cast<void>(most);
    TIFFSetErrorHandler(KeepComplaint);
    TIFFSetWarningHandler(KeepComplaint);
    currentComplaint = m_Complaint.get();
    m_Tiff.reset(TIFFOpen(name.c_str(), Mode));
    currentComplaint = nullptr;
#endif
    if (!m_Tiff)
    {
      this->FailWith("is no TIFF file");
    }
  }
  /** Goes to a directory; `toRgb` for JPEG that has luminance and chrominance. */
  void
  GoTo(std::uint64_t directory, bool toRgb)
  {
    this->Begin();
    const bool found = TIFFSetSubDirectory(m_Tiff.get(), directory) != 0;
    if (!found)
    {
      this->FailWith("has a directory at byte " + std::to_string(directory) + " that cannot be decoded");
    }
    if (toRgb)
    {
      TIFFSetField(m_Tiff.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    }
    this->End();
  }
  /** The number of libtiff for a tag of the current directory. */
  std::uint32_t
  GetNumber(std::uint16_t tag, bool isLong) const
  {
    std::uint16_t number = 0;
    std::uint32_t large = 0;
    const int     found =
      isLong ? TIFFGetFieldDefaulted(m_Tiff.get(), tag, &large) : TIFFGetFieldDefaulted(m_Tiff.get(), tag, &number);
    return found ? isLong ? large : number : 0;
  }
  /** Throws FileError, with `what`, unless all of a strip or tile is there as `bytes` bytes. Returns its bytes in the
   * file. */
  std::uint64_t
  Decode(bool isTile, std::uint32_t block, char * data, std::size_t bytes, const std::string & what)
  {
    this->Begin();
    const auto     wanted = static_cast<tmsize_t>(bytes);
    const tmsize_t present = isTile ? TIFFReadEncodedTile(m_Tiff.get(), block, data, wanted)
                                    : TIFFReadEncodedStrip(m_Tiff.get(), block, data, wanted);
    if (present != wanted || !m_Complaint->text.empty())
    {
      this->FailWith(what);
    }
    this->End();
    return TIFFGetStrileByteCount(m_Tiff.get(), block);
  }

private:
  void
  Begin()
  {
    m_Complaint->text.clear();
#if TIFFLIB_VERSION < 20221213
    currentComplaint = m_Complaint.get();
#endif
  }
  void
  End()
  {
#if TIFFLIB_VERSION < 20221213
    currentComplaint = nullptr;
#endif
  }
  [[noreturn]] void
  FailWith(const std::string & why)
  {
    this->End();
    Fail(m_Name, why + (m_Complaint->text.empty() ? std::string() : ": " + m_Complaint->text));
  }

  std::string                       m_Name;
  std::unique_ptr<Complaint>        m_Complaint;
  std::unique_ptr<TIFF, TiffCloser> m_Tiff;
};

/** The fields that decide how the samples of a page are stored. */
enum TiffField
{
  TagWidth,
  TagHeight,
  TagBits,
  TagFormat,
  TagSamples,
  TagPhotometric,
  TagPlanar,
  TagOrientation,
  TagFillOrder,
  TagTileWidth,
  TagTileHeight,
  TagRowsPerStrip,
  TagCompression,
  TagPredictor,
  NumberOfFields
};

struct FieldTag
{
  std::uint16_t tag;
  std::uint64_t otherwise;
  /** libtiff has it as a number of 32 bits. */
  bool isLong;
};

const std::array<FieldTag, NumberOfFields> fieldTags{ {
  { TIFFTAG_IMAGEWIDTH, 0, true },
  { TIFFTAG_IMAGELENGTH, 0, true },
  { TIFFTAG_BITSPERSAMPLE, 1, false },
  { TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT, false },
  { TIFFTAG_SAMPLESPERPIXEL, 1, false },
  { TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK, false },
  { TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG, false },
  { TIFFTAG_ORIENTATION, ORIENTATION_TOPLEFT, false },
  { TIFFTAG_FILLORDER, FILLORDER_MSB2LSB, false },
  { TIFFTAG_TILEWIDTH, 0, true },
  { TIFFTAG_TILELENGTH, 0, true },
  { TIFFTAG_ROWSPERSTRIP, UINT32_MAX, true },
  { TIFFTAG_COMPRESSION, COMPRESSION_NONE, false },
  { TIFFTAG_PREDICTOR, 1, false },
} };

using TiffFields = std::array<std::uint64_t, NumberOfFields>;

/** A compression that is read. */
struct TiffCodec
{
  std::uint64_t number;
  const char *  name;
  /** How many bytes one byte of the file can expand to. */
  std::int64_t ratio;
  /** Bytes that decoding a block takes beside it, for each of its bytes. */
  std::uint64_t scratch;
  bool          predicts;
};

/** Packed runs of 128 bytes take 2 bytes. A code of LZW has at least 9 bits and gives at most 4096 bytes. LZMA codes
 * 273 bytes in a quarter of a bit, JPEG at most 2 * 32767 empty blocks in two bytes, Zstandard 128 KiB in 4 bytes. The
 * last two can say in a few bytes that all of a block has one value. */
const TiffCodec codecs[] = {
  { COMPRESSION_NONE, "none", RawRatio, 0, false },
  { COMPRESSION_LZW, "LZW", 4096, 0, true },
  { COMPRESSION_JPEG, "JPEG", std::int64_t{ 1 } << 21, 4, false },
  { COMPRESSION_ADOBE_DEFLATE, "Deflate", DeflateRatio, 0, true },
  { COMPRESSION_DEFLATE, "Deflate", DeflateRatio, 0, true },
  { COMPRESSION_PACKBITS, "PackBits", 64, 0, false },
  { COMPRESSION_LZMA, "LZMA", 10000, 1, true },
  { COMPRESSION_ZSTD, "Zstandard", std::int64_t{ 1 } << 15, 1, true },
  { COMPRESSION_LERC, "LERC", std::int64_t{ 1 } << 24, 3, false },
  { COMPRESSION_WEBP, "WebP", std::int64_t{ 1 } << 24, 3, false },
};

const TiffCodec *
FindCodec(std::uint64_t number)
{
  for (const TiffCodec & codec : codecs)
  {
    if (codec.number == number)
    {
      return &codec;
    }
  }
  return nullptr;
}

bool
IsDeflate(const TiffFields & fields)
{
  return (fields[TagCompression] == COMPRESSION_ADOBE_DEFLATE || fields[TagCompression] == COMPRESSION_DEFLATE) &&
         fields[TagFillOrder] == FILLORDER_MSB2LSB;
}

/** The memory of a page without its blocks, in lists that grow. */
constexpr std::uint64_t BytesOfPage = 256;

/** A page of the stack. Its blocks are strips, or tiles. */
struct Page
{
  std::uint64_t directory;
  /** The places of plain strips in the file; one number if they follow each other. 0: the file does not have them. */
  std::vector<std::uint64_t> offsets;
  /** Blocks that have to be decoded and that the file does not have; empty if it has all. */
  std::vector<bool> missing;
  /** The places of Deflate blocks in the file, and the predictor; 0: libtiff decodes them. */
  TiffDirectory blocks;
  std::uint64_t predictor{ 0 };
};

class TiffSource : public FileSource
{
public:
  explicit TiffSource(const std::string & file)
    : m_Name(file)
    , m_File(file)
  {
    m_Files.emplace_back(file);
    this->ReadPages();
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.heldBytes = m_HeldBytes;
    return access;
  }
  /** Whether components lie apart: then this is an image of one component whose fifth axis they are. */
  bool
  IsPlanar() const
  {
    return m_IsPlanar;
  }
  const ImageHeader &
  GetPixelHeader() const
  {
    return m_PixelHeader;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    CheckBox(this->GetExtent(), m_Header.kind, box, view);
    if (box.IsEmpty())
    {
      return;
    }
    // In the order of the file, whose rows may be the image's columns.
    Box        stored = box;
    BufferView turned = view;
    this->Turn(stored, turned);
    const std::int64_t components = m_Header.components;
    const int          x = components > 1 ? 1 : 0;
    if (stored.Extent(0) == (x ? components : stored.Extent(0)) && (turned.stride[0] == 1 || stored.Extent(0) == 1) &&
        (x == 0 || turned.stride[1] == components || stored.Extent(1) == 1))
    {
      return this->ReadPixels(stored, turned);
    }
    Box pixels = stored;
    if (x == 1)
    {
      pixels.lower[0] = 0;
      pixels.upper[0] = components;
    }
    std::vector<char> memory;
    ForEachPiece(pixels, m_Header.kind, [&](const Box & part) {
      memory.resize(static_cast<std::size_t>(part.NumberOfVoxels()) * m_Size);
      const BufferView dense = DenseView(memory.data(), m_Header.kind, part);
      this->ReadPixels(part, dense);
      CopyBox(Intersect(part, stored), dense, turned);
    });
  }

private:
  /** From a box of the image to that of the file, with a view over the same memory. */
  void
  Turn(Box & box, BufferView & view) const
  {
    const int x = m_Header.components > 1 ? 1 : 0;
    view.data = static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(m_Size);
    const auto orientation = m_Fields[TagOrientation];
    if (orientation >= ORIENTATION_LEFTTOP)
    {
      std::swap(box.lower[x], box.lower[x + 1]);
      std::swap(box.upper[x], box.upper[x + 1]);
      std::swap(view.stride[x], view.stride[x + 1]);
    }
    // The side of the file's first row and first column: at the right, at the bottom.
    const bool mirrors[2] = { orientation == ORIENTATION_TOPRIGHT || orientation == ORIENTATION_BOTRIGHT ||
                                orientation == ORIENTATION_RIGHTBOT || orientation == ORIENTATION_LEFTBOT,
                              orientation == ORIENTATION_BOTRIGHT || orientation == ORIENTATION_BOTLEFT ||
                                orientation == ORIENTATION_RIGHTTOP || orientation == ORIENTATION_RIGHTBOT };
    for (int i = 0; i < 2; ++i)
    {
      if (mirrors[i])
      {
        const int          a = x + i;
        const std::int64_t extent = static_cast<std::int64_t>(m_Fields[i == 0 ? TagWidth : TagHeight]);
        const std::int64_t lower = box.lower[a];
        view.data =
          static_cast<char *>(view.data) + (box.Extent(a) - 1) * view.stride[a] * static_cast<std::int64_t>(m_Size);
        view.stride[a] = -view.stride[a];
        box.lower[a] = extent - box.upper[a];
        box.upper[a] = extent - lower;
      }
    }
    view.box = box;
  }

  /** A box of the file with all components of a pixel, which lie side by side in the view too. */
  void
  ReadPixels(const Box & box, const BufferView & view)
  {
    const std::int64_t components = m_Header.components;
    if (components == 1)
    {
      return this->ReadSamples(box, view);
    }
    Box        samples = box;
    BufferView of = view;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const int from = std::min(a + 1, MaxDimension - 1);
      samples.lower[a] = a + 1 < MaxDimension ? box.lower[from] * (a == 0 ? components : 1) : 0;
      samples.upper[a] = a + 1 < MaxDimension ? box.upper[from] * (a == 0 ? components : 1) : 1;
      of.stride[a] = a == 0 ? 1 : view.stride[from];
    }
    of.data = static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(m_Size);
    of.box = samples;
    this->ReadSamples(samples, of);
  }

  /** A box of samples, which a page has side by side along x. */
  void
  ReadSamples(const Box & box, const BufferView & view)
  {
    if (!m_IsPlain)
    {
      return this->ReadBlocks(box, view);
    }
    PieceReader pieces(m_File.GetDescriptor(), m_Size, m_File.Swaps(), m_BytesRead);
    Coordinates plane = m_Samples;
    plane[2] = plane[3] = plane[4] = 1;
    this->ForEachPage(box, [&](const Page & page, std::int64_t component, const Box & ofPage) {
      const std::int64_t rows = page.offsets.size() == 1 ? m_Samples[1] : m_BlockRows;
      for (std::int64_t first = box.lower[1] / rows * rows; first < box.upper[1]; first += rows)
      {
        // The part in one strip, as if the page were the image.
        Box part = box;
        part.lower[1] = std::max(part.lower[1], first);
        part.upper[1] = std::min(part.upper[1], first + rows);
        BufferView of = view;
        for (int a = 2; a < MaxDimension; ++a)
        {
          part.lower[a] = 0;
          part.upper[a] = 1;
          of.box.lower[a] -= ofPage.lower[a];
          of.box.upper[a] -= ofPage.lower[a];
        }
        const std::uint64_t offset = page.offsets[static_cast<std::size_t>(component * m_BlocksOfPlane + first / rows)];
        ForEachStretch(plane, part, of, [&](std::int64_t voxel, char * data, std::int64_t count) {
          if (offset == 0)
          {
            return this->Fill(data, count);
          }
          pieces.Add(offset + static_cast<std::uint64_t>(voxel - first * m_Samples[0]) * m_Size,
                     data,
                     static_cast<std::size_t>(count) * m_Size);
        });
      }
    });
    pieces.Flush();
  }

  /** Calls visit(page, component that lies apart, part of the box on it). */
  template <typename TVisitor>
  void
  ForEachPage(const Box & box, TVisitor && visit) const
  {
    Box part = box;
    for (part.lower[4] = box.lower[4]; part.lower[4] < box.upper[4]; ++part.lower[4])
    {
      for (part.lower[3] = box.lower[3]; part.lower[3] < box.upper[3]; ++part.lower[3])
      {
        for (part.lower[2] = box.lower[2]; part.lower[2] < box.upper[2]; ++part.lower[2])
        {
          for (int a = 2; a < MaxDimension; ++a)
          {
            part.upper[a] = part.lower[a] + 1;
          }
          const std::int64_t time = m_IsPlanar ? 0 : part.lower[4];
          visit(m_Pages[static_cast<std::size_t>(part.lower[2] + m_Samples[2] * (part.lower[3] + m_Samples[3] * time))],
                m_IsPlanar ? part.lower[4] : 0,
                part);
        }
      }
    }
  }

  /** Voxels that the file does not have. */
  void
  Fill(char * data, std::int64_t count) const
  {
    for (std::int64_t i = 0; i < count; ++i)
    {
      std::memcpy(data + i * static_cast<std::int64_t>(m_Size), m_Missing, m_Size);
    }
  }

  std::string
  NamePage() const
  {
    return "page " + std::to_string(m_Pages.size() + 1);
  }

  [[noreturn]] void
  Refuse(TiffField field, const std::string & allowed) const
  {
    Fail(m_Name,
         "has " + GetTiffTagName(fieldTags[field].tag) + "=" + std::to_string(m_Fields[field]) +
           ", which cannot be used; allowed is " + allowed);
  }

  static TiffFields
  GetFields(const TiffDirectory & directory)
  {
    TiffFields fields{};
    for (int i = 0; i < NumberOfFields; ++i)
    {
      const FieldTag & of = fieldTags[static_cast<std::size_t>(i)];
      const bool       isOfSamples = i == TagBits || i == TagFormat;
      fields[static_cast<std::size_t>(i)] =
        isOfSamples ? directory.GetCommonNumber(of.tag, of.otherwise) : directory.GetNumber(of.tag, of.otherwise);
    }
    if (fields[TagOrientation] == 0)
    {
      // No reader knows such an orientation.
      fields[TagOrientation] = ORIENTATION_TOPLEFT;
    }
    if (fields[TagPhotometric] == PHOTOMETRIC_MINISWHITE)
    {
      // Voxels are what is stored, however bright it is shown.
      fields[TagPhotometric] = PHOTOMETRIC_MINISBLACK;
    }
    if (fields[TagRowsPerStrip] != 0)
    {
      fields[TagRowsPerStrip] = std::max<std::uint64_t>(1, std::min(fields[TagRowsPerStrip], fields[TagHeight]));
    }
    if (IsTiled(directory))
    {
      fields[TagRowsPerStrip] = 0;
    }
    else
    {
      fields[TagTileWidth] = fields[TagTileHeight] = 0;
    }
    return fields;
  }

  static bool
  IsTiled(const TiffDirectory & directory)
  {
    return directory.Has(TIFFTAG_TILEWIDTH) || directory.Has(TIFFTAG_TILEOFFSETS);
  }

  bool
  IsPlain(const TiffFields & fields) const
  {
    return !m_IsTiled && fields[TagCompression] == COMPRESSION_NONE && fields[TagFillOrder] == FILLORDER_MSB2LSB;
  }

  void
  CheckColors() const
  {
    const auto photometric = m_Fields[TagPhotometric];
    const auto samples = m_Fields[TagSamples];
    const bool isRaw = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MASK ||
                       photometric == PHOTOMETRIC_CFA || photometric == 34892;
    const bool isColor = photometric == PHOTOMETRIC_RGB || m_ConvertsToRgb;
    if (m_Fields[TagCompression] == COMPRESSION_JPEG && samples > 1 && !isColor)
    {
      // Whether its decoder has to turn luminance and chrominance into colors is not said.
      this->Refuse(TagPhotometric, "2 (RGB) and 6 (YCbCr) for JPEG of several samples");
    }
    if (!isRaw && !isColor)
    {
      Fail(m_Name,
           "has PhotometricInterpretation=" + std::to_string(photometric) +
             (photometric == PHOTOMETRIC_PALETTE     ? ", a table of colors"
              : photometric == PHOTOMETRIC_SEPARATED ? ", CMYK"
              : photometric == PHOTOMETRIC_YCBCR     ? ", YCbCr without JPEG"
                                                     : "") +
             ", which cannot be used; allowed is 0 or 1 (gray), 2 (RGB), and 6 (YCbCr) in JPEG of three 8-bit samples");
    }
    if (isColor && samples < 3)
    {
      Fail(m_Name,
           "has PhotometricInterpretation=" + std::to_string(photometric) +
             " and SamplesPerPixel=" + std::to_string(samples) + "; colors have at least 3 samples");
    }
  }

  void
  CheckFields()
  {
    const TiffFields & fields = m_Fields;
    if (fields[TagSamples] < 1 || fields[TagSamples] > UINT16_MAX)
    {
      this->Refuse(TagSamples, "1 to 65535");
    }
    for (const TiffField field : { TagWidth, TagHeight })
    {
      if (fields[field] < 1 || fields[field] > INT32_MAX)
      {
        this->Refuse(field, "1 to " + std::to_string(INT32_MAX));
      }
    }
    if (fields[TagPlanar] != PLANARCONFIG_CONTIG && fields[TagPlanar] != PLANARCONFIG_SEPARATE)
    {
      this->Refuse(TagPlanar, "1 or 2");
    }
    if (fields[TagOrientation] < ORIENTATION_TOPLEFT || fields[TagOrientation] > ORIENTATION_LEFTBOT)
    {
      this->Refuse(TagOrientation, "1 to 8");
    }
    if (fields[TagFillOrder] != FILLORDER_MSB2LSB && fields[TagFillOrder] != FILLORDER_LSB2MSB)
    {
      this->Refuse(TagFillOrder, "1 or 2");
    }
    const TiffCodec * const codec = FindCodec(fields[TagCompression]);
    if (!codec || !TIFFIsCODECConfigured(static_cast<std::uint16_t>(fields[TagCompression])))
    {
      std::string allowed;
      for (const TiffCodec & known : codecs)
      {
        if (TIFFIsCODECConfigured(static_cast<std::uint16_t>(known.number)))
        {
          allowed += (allowed.empty() ? "" : ", ") + std::to_string(known.number) + " (" + known.name + ")";
        }
      }
      this->Refuse(TagCompression, allowed);
    }
    if (fields[TagPredictor] != 1 && !codec->predicts)
    {
      this->Refuse(TagPredictor,
                   std::string("1 for Compression=") + std::to_string(codec->number) + " (" + codec->name + ")");
    }
    if (fields[TagPredictor] < 1 || fields[TagPredictor] > 3 ||
        (fields[TagPredictor] == 3 && fields[TagFormat] != SAMPLEFORMAT_IEEEFP))
    {
      this->Refuse(TagPredictor, "1, 2, and 3 for floating point");
    }
    m_ConvertsToRgb = fields[TagPhotometric] == PHOTOMETRIC_YCBCR && fields[TagCompression] == COMPRESSION_JPEG &&
                      fields[TagSamples] == 3 && fields[TagBits] == 8 && fields[TagPlanar] == PLANARCONFIG_CONTIG;
    this->CheckColors();
    const bool isFloat = fields[TagFormat] == SAMPLEFORMAT_IEEEFP;
    if (!isFloat && fields[TagFormat] != SAMPLEFORMAT_UINT && fields[TagFormat] != SAMPLEFORMAT_INT &&
        fields[TagFormat] != SAMPLEFORMAT_VOID)
    {
      this->Refuse(TagFormat, "1 (unsigned), 2 (signed), 3 (floating point) and 4 (read as unsigned)");
    }
    const std::uint64_t bits = fields[TagBits];
    if ((bits != 32 && bits != 64) && (isFloat || (bits != 8 && bits != 16)))
    {
      this->Refuse(TagBits, isFloat ? "32 or 64 for floating point" : "8, 16, 32 or 64");
    }
    if (m_IsTiled)
    {
      for (const TiffField field : { TagTileWidth, TagTileHeight })
      {
        if (fields[field] < 1 || fields[field] > INT32_MAX)
        {
          this->Refuse(field, "1 to " + std::to_string(INT32_MAX));
        }
      }
    }
    else if (fields[TagRowsPerStrip] < 1)
    {
      this->Refuse(TagRowsPerStrip, "1 and more");
    }
  }

  /** Reads the fields that all pages share. */
  void
  ReadFormat(const TiffDirectory & directory)
  {
    m_IsTiled = IsTiled(directory);
    m_Fields = GetFields(directory);
    this->CheckFields();
    const bool isFloat = m_Fields[TagFormat] == SAMPLEFORMAT_IEEEFP;
    const auto bits = m_Fields[TagBits];
    const int  base = bits == 8 ? 0 : bits == 16 ? 2 : bits == 32 ? 4 : 6;
    m_Header.kind = isFloat ? (bits == 32 ? PixelType::Float32 : PixelType::Float64)
                            : static_cast<PixelType>(base + (m_Fields[TagFormat] == SAMPLEFORMAT_INT ? 1 : 0));
    m_Size = PixelSize(m_Header.kind);
    const auto width = static_cast<std::int64_t>(m_Fields[TagWidth]);
    const auto height = static_cast<std::int64_t>(m_Fields[TagHeight]);
    const bool swapsAxes = m_Fields[TagOrientation] >= ORIENTATION_LEFTTOP;
    m_Header.extent[0] = swapsAxes ? height : width;
    m_Header.extent[1] = swapsAxes ? width : height;
    m_Header.dimension = 2;
    m_Header.components = static_cast<std::int64_t>(m_Fields[TagSamples]);
    CountVoxels(m_Name, m_Header);
    m_IsPlanar = m_Fields[TagPlanar] == PLANARCONFIG_SEPARATE && m_Header.components > 1;
    const std::int64_t components = m_IsPlanar ? 1 : m_Header.components;
    m_Samples[0] = width * components;
    m_Samples[1] = height;
    m_BlockColumns = m_IsTiled ? static_cast<std::int64_t>(m_Fields[TagTileWidth]) * components : m_Samples[0];
    m_BlockRows = static_cast<std::int64_t>(m_Fields[m_IsTiled ? TagTileHeight : TagRowsPerStrip]);
    m_BlocksOfPlane =
      ((m_Samples[0] + m_BlockColumns - 1) / m_BlockColumns) * ((height + m_BlockRows - 1) / m_BlockRows);
    m_IsPlain = this->IsPlain(m_Fields);
    const std::string missing = directory.GetText(TIFFTAG_GDAL_NODATA);
    double            value = 0;
    std::from_chars(missing.data() + std::min(missing.size(), missing.find_first_not_of(' ')),
                    missing.data() + missing.size(),
                    value);
    m_MissingText = "0";
    DispatchPixelType(m_Header.kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      if (std::is_floating_point_v<Pixel> || (value == std::floor(value) && std::abs(value) < 9e15 &&
                                              value >= static_cast<double>(std::numeric_limits<Pixel>::lowest()) &&
                                              value <= static_cast<double>(std::numeric_limits<Pixel>::max())))
      {
        pixel = static_cast<Pixel>(value);
        m_MissingText = Shortest(value);
      }
      std::memcpy(m_Missing, &pixel, sizeof(pixel));
    });
  }

  void
  CheckIsAsFirst(const TiffDirectory & directory) const
  {
    const TiffFields fields = GetFields(directory);
    for (int i = 0; i < NumberOfFields; ++i)
    {
      const auto field = static_cast<std::size_t>(i);
      const bool isOfDecoder =
        (i == TagCompression || i == TagPredictor) && !m_IsPlain && !this->IsPlain(fields) &&
        FindCodec(fields[TagCompression]) &&
        TIFFIsCODECConfigured(static_cast<std::uint16_t>(fields[TagCompression])) &&
        (fields[TagPredictor] == 1 || (fields[TagPredictor] == 2 && FindCodec(fields[TagCompression])->predicts));
      // If there is one sample, this only changes how it is shown.
      const bool isShown = i == TagPhotometric && m_Fields[TagSamples] == 1;
      if (fields[field] != m_Fields[field] && !isOfDecoder && !isShown)
      {
        Fail(m_Name,
             "its " + this->NamePage() + " has " + GetTiffTagName(fieldTags[field].tag) + "=" +
               std::to_string(fields[field]) + ", its first page " + std::to_string(m_Fields[field]) +
               "; all pages must have one size and type and be stored alike");
      }
    }
    if (IsTiled(directory) != m_IsTiled)
    {
      Fail(m_Name, "its " + this->NamePage() + " and its first page are not both in tiles, or both in strips");
    }
  }

  void
  ReadPages()
  {
    std::int64_t ofImageJ = 0;
    std::string  description;
    // The page of each directory; -1: a smaller image beside them.
    std::vector<std::int64_t> pageOf;
    for (std::uint64_t next = m_File.GetFirstDirectory(); next != 0;)
    {
      const TiffDirectory directory = m_File.ReadDirectory(next);
      next = directory.next;
      pageOf.push_back(-1);
      const std::uint64_t type = directory.GetNumber(TIFFTAG_SUBFILETYPE, 0);
      if (type & FILETYPE_MASK && !m_Pages.empty())
      {
        this->Warn("a page that is a transparency mask is passed over");
        continue;
      }
      if (type & FILETYPE_REDUCEDIMAGE)
      {
        continue;
      }
      for (const int depth : { TIFFTAG_IMAGEDEPTH, TIFFTAG_TILEDEPTH })
      {
        const auto          tag = static_cast<std::uint16_t>(depth);
        const std::uint64_t planes = directory.GetNumber(tag, 1);
        if (planes != 1)
        {
          Fail(m_Name,
               "has " + GetTiffTagName(tag) + "=" + std::to_string(planes) +
                 ", which cannot be used; allowed is 1, a page for each slice");
        }
      }
      if (m_Pages.empty())
      {
        this->ReadFormat(directory);
        description = directory.GetText(TIFFTAG_IMAGEDESCRIPTION);
        this->ReadSpacing(directory, description);
        ofImageJ = IsOfImageJ(description) ? GetNumberOfImageJ(description, "images") : 0;
      }
      else
      {
        this->CheckIsAsFirst(directory);
      }
      pageOf.back() = static_cast<std::int64_t>(m_Pages.size());
      this->AddPage(directory);
    }
    if (m_Pages.empty())
    {
      Fail(m_Name, "has no page");
    }
    this->AddImagesOfImageJ(ofImageJ, pageOf);
    if (description.compare(0, 9, "{\"shape\":") == 0 && description.find("\"truncated\": true") != std::string::npos)
    {
      Fail(m_Name, "has directories for its first page alone (\"truncated\": true), which cannot be used");
    }
    this->OrderPages(description, pageOf);
    this->WarnOfMissing();
    if (m_IsPlanar)
    {
      m_PixelHeader = m_Header;
      m_Header = GetPlanarHeader(m_Header);
      m_Samples[4] = m_PixelHeader.components;
    }
    this->SetUpMemory();
  }

  /** ImageJ writes a large stack as one page, whose voxels the others' follow. */
  void
  AddImagesOfImageJ(std::int64_t images, std::vector<std::int64_t> & pageOf)
  {
    const auto pages = static_cast<std::int64_t>(m_Pages.size());
    if (images <= pages)
    {
      return;
    }
    const std::int64_t bytes = m_Samples[0] * m_Samples[1] * static_cast<std::int64_t>(m_Size);
    const bool         canFollow = pages == 1 && m_IsPlain && !m_IsPlanar && m_Pages[0].offsets.size() == 1;
    if (!canFollow || m_Pages[0].offsets[0] == 0 ||
        !(ByteCount(bytes) * images + ByteCount::FromUnsigned(m_Pages[0].offsets[0]) <=
          ByteCount::FromUnsigned(m_File.GetSize())))
    {
      Fail(m_Name,
           "is not complete: it has " + std::to_string(pages) + " of the " + std::to_string(images) +
             " images that its description names");
    }
    for (std::int64_t i = 1; i < images; ++i)
    {
      pageOf.push_back(static_cast<std::int64_t>(m_Pages.size()));
      m_Pages.push_back({ 0, { m_Pages[0].offsets[0] + static_cast<std::uint64_t>(i * bytes) }, {}, {}, 0 });
    }
  }

  /** Memory for decoding is taken by the first Read: until then somebody may find that there is too little. */
  void
  SetUpMemory()
  {
    // Parts of boxes whose voxels lie in another order than the view's: at least a row.
    const bool isOrdered = m_Header.components == 1 && (m_Fields[TagOrientation] == ORIENTATION_TOPLEFT ||
                                                        m_Fields[TagOrientation] == ORIENTATION_BOTLEFT);
    m_HeldBytes =
      isOrdered ? 0 : std::max<std::uint64_t>(PieceBytes, static_cast<std::uint64_t>(m_Samples[0]) * m_Size);
    if (m_IsPlain || m_LargestCoded == 0)
    {
      return;
    }
    const std::uint64_t tables =
      16 * static_cast<std::uint64_t>(m_BlocksOfPlane) * (m_IsPlanar ? m_Fields[TagSamples] : 1);
    const std::uint64_t ofDecoder =
      m_BlockBytes * std::max<std::uint64_t>(1, m_Scratch) + m_LargestCoded + tables + (std::uint64_t{ 1 } << 20);
    m_HeldBytes += m_BlockBytes + ofDecoder;
    if (m_NeedsLibtiff)
    {
      m_Decoder = std::make_unique<BlockDecoder>(m_Name, ofDecoder);
    }
  }

  void
  WarnOfMissing()
  {
    if (m_NumberOfMissing > 0)
    {
      this->Warn(std::string(m_IsTiled ? "tiles" : "strips") + " that are not in the file (offset 0, 0 bytes): " +
                 std::to_string(m_NumberOfMissing) + "; their voxels are " + m_MissingText);
    }
  }

  static bool
  IsOfImageJ(const std::string & description)
  {
    return description.compare(0, 7, "ImageJ=") == 0;
  }

  void
  Warn(const std::string & what)
  {
    m_Warnings.push_back(what);
  }

  /** Pixels per inch or centimeter, or per the unit that ImageJ names. */
  void
  ReadSpacing(const TiffDirectory & directory, const std::string & description)
  {
    const auto  unit = directory.GetNumber(TIFFTAG_RESOLUTIONUNIT, RESUNIT_INCH);
    double      mm = unit == RESUNIT_INCH ? 25.4 : unit == RESUNIT_CENTIMETER ? 10.0 : 0;
    std::string nameOfUnit = GetTiffTagName(TIFFTAG_RESOLUTIONUNIT) + "=" + std::to_string(unit);
    std::string depth;
    if (IsOfImageJ(description))
    {
      const std::string named = GetValueOfImageJ(description, "unit");
      if (!named.empty())
      {
        mm = GetUnitInMm(named);
        nameOfUnit = "unit=" + named.substr(0, 40);
      }
      depth = GetValueOfImageJ(description, "spacing");
    }
    const bool          swapsAxes = m_Fields[TagOrientation] >= ORIENTATION_LEFTTOP;
    const std::uint16_t tags[2] = { TIFFTAG_XRESOLUTION, TIFFTAG_YRESOLUTION };
    double              size[3] = { 1, 1, 1 };
    for (int a = 0; a < 2; ++a)
    {
      const auto resolution = directory.GetReal(tags[a]);
      if (resolution && *resolution > 0 && std::isfinite(*resolution) && std::isfinite(1 / *resolution))
      {
        size[swapsAxes ? 1 - a : a] = 1 / *resolution;
        if (mm > 0)
        {
          m_Header.spacing[swapsAxes ? 1 - a : a] = mm / *resolution;
        }
      }
      else if (resolution && (*resolution != 0 || mm > 0))
      {
        this->Warn(GetTiffTagName(tags[a]) + "=" + Shortest(*resolution) +
                   " gives no spacing: it is 1 along that axis");
      }
    }
    if (!depth.empty())
    {
      double     value = 0;
      const auto end = std::from_chars(depth.data(), depth.data() + depth.size(), value);
      if (end.ec != std::errc() || value == 0 || !std::isfinite(value))
      {
        this->Warn("spacing=" + depth.substr(0, 40) + " of its description is no distance: it is 1 along z");
      }
      else
      {
        // ImageJ takes the amount, too.
        size[2] = std::abs(value);
        m_Header.spacing[2] = mm > 0 ? mm * size[2] : 1;
      }
    }
    const bool isUnlike = size[0] != size[1] || size[2] != 1;
    if (mm == 0 && (isUnlike || (IsOfImageJ(description) && size[0] != 1)))
    {
      this->Warn("its spacing of " + Shortest(size[0]) + ", " + Shortest(size[1]) + " and " + Shortest(size[2]) +
                 " is not used: " + nameOfUnit + " is no unit of length");
    }
  }

  /** Pages are slices, unless the description says what they are: then slices come first, then channels, then points in
   * time. */
  void
  OrderPages(const std::string & description, const std::vector<std::int64_t> & pageOf)
  {
    const auto directories = static_cast<std::int64_t>(pageOf.size());
    PlaneOrder order;
    if (IsOme(description))
    {
      order = ReadOme(m_Name, description, m_Header, directories);
    }
    else if (IsOfImageJ(description))
    {
      order = ReadImageJ(m_Name, description, directories);
    }
    if (order.directories.empty())
    {
      order.slices = static_cast<std::int64_t>(m_Pages.size());
    }
    else
    {
      std::vector<Page> pages;
      for (const std::int64_t directory : order.directories)
      {
        const std::int64_t page = pageOf[static_cast<std::size_t>(directory)];
        if (page < 0)
        {
          Fail(m_Name, "its description names page " + std::to_string(directory) + ", which is a smaller image");
        }
        pages.push_back(m_Pages[static_cast<std::size_t>(page)]);
      }
      if (pages.size() != m_Pages.size())
      {
        Fail(m_Name,
             "has " + std::to_string(m_Pages.size()) + " pages, its description tells what " +
               std::to_string(pages.size()) + " of them are");
      }
      m_Pages = std::move(pages);
    }
    m_Samples[2] = m_Header.extent[2] = order.slices;
    m_Samples[3] = m_Header.extent[3] = order.channels;
    m_Samples[4] = m_Header.extent[4] = order.times;
    m_Header.dimension = order.times > 1 ? 5 : order.channels > 1 ? 4 : order.slices > 1 ? 3 : 2;
    m_Header.axes = order.directories.empty() ? "" : "xyzct";
    for (int a = 0; a < 3; ++a)
    {
      m_Header.spacing[a] = order.spacing[a] > 0 ? order.spacing[a] : m_Header.spacing[a];
    }
    for (const std::string & warning : order.warnings)
    {
      this->Warn(warning);
    }
    CountVoxels(m_Name, m_Header);
  }

  /** Finds the strips or tiles of a page; throws if one is not in the file. */
  void
  AddPage(const TiffDirectory & directory)
  {
    const std::uint16_t ofOffsets = m_IsTiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS;
    const std::uint16_t ofCounts = m_IsTiled ? TIFFTAG_TILEBYTECOUNTS : TIFFTAG_STRIPBYTECOUNTS;
    const bool          hasCounts = directory.Has(ofCounts);
    const ByteCount     number = ByteCount(m_BlocksOfPlane) * (m_IsPlanar ? m_Header.components : 1);
    for (const std::uint16_t tag : { ofOffsets, ofCounts })
    {
      // Plain strips are where they are, however many bytes they have.
      const bool isNeeded = tag == ofOffsets || !m_IsPlain;
      if ((isNeeded || directory.Has(tag)) &&
          (!directory.Has(tag) || directory.GetCount(tag) < static_cast<std::uint64_t>(number.Get())))
      {
        Fail(m_Name,
             "its " + this->NamePage() + " has " + std::to_string(directory.Has(tag) ? directory.GetCount(tag) : 0) +
               " values of " + GetTiffTagName(tag) + "; its size needs " + std::to_string(number.Get()));
      }
    }
    if (!m_IsPlain && number.Get() > UINT32_MAX)
    {
      Fail(m_Name,
           "has " + std::to_string(number.Get()) + " strips or tiles; libtiff decodes " + std::to_string(UINT32_MAX));
    }
    m_HeaderBytes += BytesOfPage + 2 * sizeof(std::uint64_t) * static_cast<std::uint64_t>(m_IsPlain ? number.Get() : 0);
    CheckMemoryOfHeader(m_Name, "list of strips and tiles", m_HeaderBytes);
    Page page{ directory.offset, {}, {}, {}, 0 };
    page.offsets.reserve(m_IsPlain ? static_cast<std::size_t>(number.Get()) : 0);
    bool follows = m_IsPlain && !m_IsPlanar;
    for (std::int64_t first = 0; first < number.Get();)
    {
      const auto some = static_cast<std::uint64_t>(std::min<std::int64_t>(number.Get() - first, 8192));
      const auto offsets = directory.GetNumbers(ofOffsets, static_cast<std::uint64_t>(first), some);
      const auto counts = hasCounts ? directory.GetNumbers(ofCounts, static_cast<std::uint64_t>(first), some)
                                    : std::vector<std::uint64_t>();
      for (std::size_t i = 0; i < offsets.size(); ++i, ++first)
      {
        const std::int64_t inPlane = first % m_BlocksOfPlane;
        const std::int64_t rows = m_IsTiled ? m_BlockRows : std::min(m_BlockRows, m_Samples[1] - inPlane * m_BlockRows);
        const ByteCount    needed = ByteCount(rows) * m_BlockColumns * static_cast<std::int64_t>(m_Size);
        // Some writers give plain strips no count, or 0.
        const bool          isCounted = hasCounts && !(m_IsPlain && counts[i] == 0 && offsets[i] != 0);
        const std::uint64_t count = isCounted ? counts[i] : static_cast<std::uint64_t>(needed.Get());
        this->AddBlock(page, directory, first, offsets[i], count, needed);
        follows =
          follows &&
          (first == 0 ||
           (page.offsets[0] != 0 &&
            offsets[i] == page.offsets[0] + static_cast<std::uint64_t>(first * m_BlockRows * m_BlockColumns) * m_Size));
      }
    }
    if (follows)
    {
      page.offsets.resize(1);
    }
    page.offsets.shrink_to_fit();
    m_HeaderBytes -=
      2 * sizeof(std::uint64_t) * (page.offsets.size() == 1 ? static_cast<std::uint64_t>(number.Get()) : 0);
    if (const TiffFields fields = GetFields(directory); IsDeflate(fields))
    {
      page.blocks = directory.Select({ ofOffsets, ofCounts });
      page.predictor = fields[TagPredictor];
    }
    m_NeedsLibtiff = m_NeedsLibtiff || page.predictor == 0;
    m_Pages.push_back(std::move(page));
  }

  /** A strip or tile of `count` bytes in the file that has `needed` bytes when it is decoded. */
  void
  AddBlock(Page & page, const TiffDirectory & directory, std::int64_t block, std::uint64_t offset, std::uint64_t count,
           ByteCount needed)
  {
    const auto what = [&] {
      return (m_IsTiled ? "tile " : "strip ") + std::to_string(block) + " of " + this->NamePage();
    };
    const bool isMissing = offset == 0 && count == 0;
    if (m_IsPlain)
    {
      page.offsets.push_back(offset);
    }
    if (isMissing)
    {
      ++m_NumberOfMissing;
      if (!m_IsPlain)
      {
        page.missing.resize(static_cast<std::size_t>(block) + 1, false);
        page.missing.back() = true;
      }
      return;
    }
    if (offset == 0 || count == 0)
    {
      Fail(m_Name,
           "is damaged: its " + what() + " has " + std::to_string(count) + " bytes from byte " +
             std::to_string(offset) + " on");
    }
    const auto              compression = directory.GetNumber(TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    const TiffCodec * const codec = FindCodec(compression);
    const bool              isRaw = compression == COMPRESSION_NONE;
    const ByteCount         most = ByteCount::FromUnsigned(count) * codec->ratio;
    if (!needed.IsCountable() || !(needed <= most))
    {
      Fail(m_Name,
           "is damaged: its " + what() + " has " + std::to_string(count) + " bytes, its size needs " +
             (needed.IsCountable() ? std::to_string(needed.Get()) : "more than can be counted") +
             (isRaw ? "" : std::string(", more than ") + codec->name + " can code in them"));
    }
    const std::uint64_t bytes = isRaw ? static_cast<std::uint64_t>(needed.Get()) : count;
    if (offset > m_File.GetSize() || bytes > m_File.GetSize() - offset)
    {
      m_File.Require(offset, bytes, what());
    }
    // Blocks that share their bytes could claim any number of voxels.
    m_DecodedBytes = m_DecodedBytes + needed;
    RequireInFile(m_Name, m_DecodedBytes, m_File.GetSize(), std::max(m_Ratio, codec->ratio));
    m_Ratio = std::max(m_Ratio, codec->ratio);
    if (!m_IsPlain)
    {
      m_LargestCoded = std::max(m_LargestCoded, count);
      m_BlockBytes = std::max(m_BlockBytes, static_cast<std::uint64_t>(needed.Get()));
      m_Scratch = std::max(m_Scratch, codec->scratch);
    }
  }

  void
  ReadBlocks(const Box & box, const BufferView & view)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    const std::int64_t                columns = (m_Samples[0] + m_BlockColumns - 1) / m_BlockColumns;
    this->ForEachPage(box, [&](const Page & page, std::int64_t component, const Box & ofPage) {
      for (std::int64_t row = box.lower[1] / m_BlockRows; row * m_BlockRows < box.upper[1]; ++row)
      {
        for (std::int64_t column = box.lower[0] / m_BlockColumns; column * m_BlockColumns < box.upper[0]; ++column)
        {
          Box block = ofPage;
          block.lower[0] = column * m_BlockColumns;
          block.upper[0] = block.lower[0] + m_BlockColumns;
          block.lower[1] = row * m_BlockRows;
          block.upper[1] = block.lower[1] + m_BlockRows;
          const Box  part = Intersect(box, block);
          const auto number = static_cast<std::size_t>(component * m_BlocksOfPlane + row * columns + column);
          if (number < page.missing.size() && page.missing[number])
          {
            ForEachStretch(
              m_Samples, part, view, [&](std::int64_t, char * data, std::int64_t count) { this->Fill(data, count); });
            continue;
          }
          this->Load(page, number, std::min(m_BlockRows, m_Samples[1] - block.lower[1]));
          CopyBox(part, DenseView(m_Block.data(), m_Header.kind, block), view);
        }
      }
    });
  }

  /** Into m_Block, unless it is there. */
  void
  Load(const Page & page, std::size_t block, std::int64_t rows)
  {
    if (&page == m_LoadedPage && block == m_LoadedBlock)
    {
      return;
    }
    m_LoadedBlock = SIZE_MAX;
    const std::string what = "its " + std::string(m_IsTiled ? "tile " : "strip ") + std::to_string(block) +
                             " of page " + std::to_string(&page - m_Pages.data() + 1) + " is damaged or not complete";
    m_Block.resize(m_BlockBytes);
    const std::size_t rowBytes = static_cast<std::size_t>(m_BlockColumns) * m_Size;
    const auto        all = static_cast<std::size_t>(m_BlockRows);
    const std::size_t wanted = m_IsTiled ? all : static_cast<std::size_t>(rows);
    if (page.predictor != 0)
    {
      this->Inflate(page, block, wanted, what);
    }
    else
    {
      if (&page != m_LoadedPage)
      {
        m_LoadedPage = nullptr;
        m_Decoder->GoTo(page.directory, m_ConvertsToRgb);
        this->CheckDecoderAgrees();
      }
      m_BytesRead +=
        m_Decoder->Decode(m_IsTiled, static_cast<std::uint32_t>(block), m_Block.data(), wanted * rowBytes, what);
    }
    m_LoadedPage = &page;
    m_LoadedBlock = block;
  }

  /** `rows` of a block of Deflate into m_Block. The last strip may have as many rows as the others. */
  void
  Inflate(const Page & page, std::size_t block, std::size_t rows, const std::string & what)
  {
    const auto number = [&](int tag) {
      return page.blocks.GetNumbers(static_cast<std::uint16_t>(tag), block, 1).front();
    };
    m_Coded.resize(number(m_IsTiled ? TIFFTAG_TILEBYTECOUNTS : TIFFTAG_STRIPBYTECOUNTS));
    m_File.GetDescriptor().ReadAt(
      m_Coded.data(), m_Coded.size(), number(m_IsTiled ? TIFFTAG_TILEOFFSETS : TIFFTAG_STRIPOFFSETS));
    const std::size_t rowBytes = static_cast<std::size_t>(m_BlockColumns) * m_Size;
    try
    {
      m_Inflater.Inflate(
        m_Coded, m_Block.data(), rows * rowBytes, std::max(rows, static_cast<std::size_t>(m_BlockRows)) * rowBytes);
    }
    catch (const std::runtime_error & error)
    {
      Fail(m_Name, what + ": " + error.what());
    }
    const bool isApart = m_Fields[TagPlanar] == PLANARCONFIG_SEPARATE;
    UndoPrediction({ page.predictor,
                     static_cast<std::size_t>(m_BlockColumns),
                     isApart ? 1 : static_cast<std::size_t>(m_Fields[TagSamples]),
                     m_Size,
                     m_File.Swaps() },
                   m_Block.data(),
                   rows);
    m_BytesRead += m_Coded.size();
  }

  /** libtiff corrects some tags by itself. */
  void
  CheckDecoderAgrees() const
  {
    for (const TiffField field : { TagWidth, TagHeight, TagBits, TagSamples, TagPlanar, TagTileWidth, TagTileHeight })
    {
      if (m_Fields[field] == 0 || (field == TagPlanar && !m_IsPlanar))
      {
        continue;
      }
      const std::uint32_t number = m_Decoder->GetNumber(fieldTags[field].tag, fieldTags[field].isLong);
      if (number != m_Fields[field])
      {
        Fail(m_Name,
             "has " + GetTiffTagName(fieldTags[field].tag) + "=" + std::to_string(m_Fields[field]) +
               ", which libtiff takes for " + std::to_string(number));
      }
    }
  }

  std::string                   m_Name;
  TiffFile                      m_File;
  std::unique_ptr<BlockDecoder> m_Decoder;
  std::vector<Page>             m_Pages;
  TiffFields                    m_Fields{};
  ImageHeader                   m_PixelHeader;
  /** Samples along x, rows and pages. */
  Coordinates m_Samples{ Coordinates::Filled(1) };
  std::size_t m_Size{ 1 };
  bool        m_IsTiled{ false };
  /** Strips of voxels as they are. */
  bool         m_IsPlain{ false };
  bool         m_IsPlanar{ false };
  bool         m_ConvertsToRgb{ false };
  std::int64_t m_BlockColumns{ 0 };
  std::int64_t m_BlockRows{ 0 };
  std::int64_t m_BlocksOfPlane{ 0 };
  /** A voxel that the file does not have. */
  char              m_Missing[8]{};
  std::string       m_MissingText;
  std::uint64_t     m_NumberOfMissing{ 0 };
  ByteCount         m_DecodedBytes{ 0 };
  std::int64_t      m_Ratio{ RawRatio };
  std::uint64_t     m_LargestCoded{ 0 };
  std::uint64_t     m_BlockBytes{ 0 };
  std::uint64_t     m_Scratch{ 0 };
  std::uint64_t     m_HeldBytes{ 0 };
  std::uint64_t     m_HeaderBytes{ 0 };
  std::mutex        m_Mutex;
  std::vector<char> m_Block;
  bool              m_NeedsLibtiff{ false };
  TiffInflater      m_Inflater;
  std::vector<char> m_Coded;
  const Page *      m_LoadedPage{ nullptr };
  std::size_t       m_LoadedBlock{ SIZE_MAX };
};

} // namespace

std::unique_ptr<FileSource>
OpenTiff(const std::string & file)
{
  auto source = std::make_unique<TiffSource>(file);
  if (source->IsPlanar())
  {
    const ImageHeader header = source->GetPixelHeader();
    return MakePlanarSource(std::move(source), header);
  }
  return source;
}

} // namespace chunkwise::files
