/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileFormats.h"
#include "fileOme.h"

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

/** What libtiff complains of in this thread. */
thread_local std::string complaint;

void
KeepComplaint(const char *, const char * format, va_list arguments)
{
  char text[512];
  std::vsnprintf(text, sizeof(text), format, arguments);
  if (complaint.empty())
  {
    complaint = text;
  }
}

struct TiffCloser
{
  void
  operator()(TIFF * tiff) const
  {
    TIFFClose(tiff);
  }
};

/** A page of the stack. Its blocks are strips, or tiles. */
struct Page
{
  std::uint64_t directory;
  /** Where plain strips are in the file; one number if they follow each other. */
  std::vector<std::uint64_t> offsets;
};

class TiffSource : public FileSource
{
public:
  explicit TiffSource(const std::string & file)
    : m_Name(file)
    , m_File(Descriptor::OpenToRead(file))
  {
    m_Files.emplace_back(file);
    static std::once_flag once;
    std::call_once(once, [] { TIFFSetWarningHandler(nullptr); });
    TIFFSetErrorHandler(KeepComplaint);
    complaint.clear();
    // No memory mapping: a page of a file that shrinks would end the process.
    m_Tiff.reset(TIFFOpen(file.c_str(), "rm"));
    if (!m_Tiff)
    {
      FailWithComplaint("is no TIFF file, or is not complete");
    }
    ReadPages();
  }
  ImageAccess
  GetAccess() const override
  {
    ImageAccess access;
    access.heldBytes = m_IsPlain ? 0 : m_Block.size();
    return access;
  }
  void
  Read(const Box & box, const BufferView & view) override
  {
    CheckBox(GetExtent(), m_Header.kind, box, view);
    const std::int64_t components = m_Header.components;
    if (box.IsEmpty() || components == 1)
    {
      return ReadSamples(box, view);
    }
    // Samples of a row lie side by side, and so do they in the memory that they are read to.
    Box        samples = box;
    BufferView of = view;
    for (int a = 0; a < MaxDimension; ++a)
    {
      const int from = std::min(a + 1, MaxDimension - 1);
      samples.lower[a] = a + 1 < MaxDimension ? box.lower[from] * (a == 0 ? components : 1) : 0;
      samples.upper[a] = a + 1 < MaxDimension ? box.upper[from] * (a == 0 ? components : 1) : 1;
      of.stride[a] = a == 0 ? 1 : view.stride[from];
    }
    if (box.Extent(0) == components && view.stride[0] == 1 && (view.stride[1] == components || box.Extent(1) == 1))
    {
      of.data = static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(m_Size);
      of.box = samples;
      return ReadSamples(samples, of);
    }
    Box pixels = box;
    pixels.lower[0] = 0;
    pixels.upper[0] = components;
    std::vector<char> memory(static_cast<std::size_t>(pixels.NumberOfVoxels()) * m_Size);
    ReadSamples(samples, DenseView(memory.data(), m_Header.kind, samples));
    CopyBox(box, DenseView(memory.data(), m_Header.kind, pixels), view);
  }

private:
  /** A box of samples, which a page has side by side along x. */
  void
  ReadSamples(const Box & box, const BufferView & view)
  {
    if (box.IsEmpty())
    {
      return;
    }
    if (!m_IsPlain)
    {
      return ReadBlocks(box, view);
    }
    PieceReader pieces(m_File, m_Size, m_Swaps, m_BytesRead);
    Coordinates plane = m_Samples;
    plane[2] = plane[3] = plane[4] = 1;
    ForEachPage(box, [&](std::size_t number, const Box & ofPage) {
      const Page &       page = m_Pages[number];
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
        const std::uint64_t offset = page.offsets[static_cast<std::size_t>(first / rows)];
        ForEachStretch(plane, part, of, [&](std::int64_t voxel, char * data, std::int64_t count) {
          pieces.Add(offset + static_cast<std::uint64_t>(voxel - first * m_Samples[0]) * m_Size,
                     data,
                     static_cast<std::size_t>(count) * m_Size);
        });
      }
    });
    pieces.Flush();
  }

  /** Calls visit(page, part of the box on it). */
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
          visit(static_cast<std::size_t>(part.lower[2] + m_Samples[2] * (part.lower[3] + m_Samples[3] * part.lower[4])),
                part);
        }
      }
    }
  }

  [[noreturn]] void
  FailWithComplaint(const std::string & why)
  {
    Fail(m_Name, why + (complaint.empty() ? std::string() : ": " + complaint));
  }

  template <typename T>
  T
  Get(std::uint32_t tag, T otherwise)
  {
    T value{};
    return TIFFGetFieldDefaulted(m_Tiff.get(), tag, &value) ? value : otherwise;
  }

  /** What all pages have in common. */
  void
  ReadFormat()
  {
    const auto bits = Get<std::uint16_t>(TIFFTAG_BITSPERSAMPLE, 1);
    const auto format = Get<std::uint16_t>(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
    const auto samples = Get<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1);
    const auto photometric = Get<std::uint16_t>(TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    if (photometric == PHOTOMETRIC_PALETTE)
    {
      Fail(m_Name, "has a table of colors, which cannot be used");
    }
    if (samples > 1)
    {
      if (Get<std::uint16_t>(TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) != PLANARCONFIG_CONTIG)
      {
        Fail(m_Name, "has a plane for each of its " + std::to_string(samples) + " components, which cannot be used");
      }
      if (photometric != PHOTOMETRIC_RGB && photometric != PHOTOMETRIC_MINISBLACK)
      {
        Fail(m_Name, "has colors that are not RGB, which cannot be used");
      }
    }
    const bool isFloat = format == SAMPLEFORMAT_IEEEFP;
    const bool isInteger = format == SAMPLEFORMAT_UINT || format == SAMPLEFORMAT_INT || format == SAMPLEFORMAT_VOID;
    const int  base = bits == 8 ? 0 : bits == 16 ? 2 : bits == 32 ? 4 : bits == 64 ? 6 : -1;
    if ((!isFloat && !isInteger) || base < 0 || (isFloat && bits < 32))
    {
      Fail(m_Name,
           "has voxels of " + std::to_string(bits) + " bits" +
             (isFloat     ? " of floating point"
              : isInteger ? ""
                          : " that are complex or of no known format") +
             ", which cannot be used");
    }
    m_Header.kind = isFloat ? (bits == 32 ? PixelKind::Float32 : PixelKind::Float64)
                            : static_cast<PixelKind>(base + (format == SAMPLEFORMAT_INT ? 1 : 0));
    m_Size = PixelSize(m_Header.kind);
    m_IsTiled = TIFFIsTiled(m_Tiff.get()) != 0;
    if (m_IsTiled)
    {
      m_BlockColumns = Get<std::uint32_t>(TIFFTAG_TILEWIDTH, 0) * m_Header.components;
      m_BlockRows = Get<std::uint32_t>(TIFFTAG_TILELENGTH, 0);
    }
    else
    {
      m_BlockColumns = m_Samples[0];
      m_BlockRows = std::min<std::int64_t>(Get<std::uint32_t>(TIFFTAG_ROWSPERSTRIP, UINT32_MAX), m_Samples[1]);
    }
    m_IsPlain = !m_IsTiled && Get<std::uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE) == COMPRESSION_NONE;
    if (m_BlockColumns < 1 || m_BlockRows < 1)
    {
      Fail(m_Name, "has strips or tiles without voxels");
    }
    // Pixels per inch or centimeter.
    const auto  unit = Get<std::uint16_t>(TIFFTAG_RESOLUTIONUNIT, RESUNIT_INCH);
    const float resolution[2] = { Get<float>(TIFFTAG_XRESOLUTION, 0), Get<float>(TIFFTAG_YRESOLUTION, 0) };
    for (int a = 0; a < 2; ++a)
    {
      if (resolution[a] > 0 && unit != RESUNIT_NONE)
      {
        m_Header.spacing[a] = (unit == RESUNIT_INCH ? 25.4 : 10.0) / static_cast<double>(resolution[a]);
      }
    }
  }

  void
  ReadPages()
  {
    m_Swaps = TIFFIsByteSwapped(m_Tiff.get()) != 0;
    const std::uint64_t size = m_File.GetSize();
    std::uint16_t       format[3] = {};
    bool                isSame = true;
    std::int64_t        ofImageJ = 0;
    std::string         description;
    // The page of each directory; -1: a smaller image beside them.
    std::vector<std::int64_t> pageOf;
    do
    {
      pageOf.push_back(-1);
      if (Get<std::uint32_t>(TIFFTAG_SUBFILETYPE, 0) & FILETYPE_REDUCEDIMAGE)
      {
        continue;
      }
      const std::int64_t  width = Get<std::uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
      const std::int64_t  height = Get<std::uint32_t>(TIFFTAG_IMAGELENGTH, 0);
      const std::uint16_t of[3] = { Get<std::uint16_t>(TIFFTAG_BITSPERSAMPLE, 1),
                                    Get<std::uint16_t>(TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT),
                                    Get<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1) };
      if (m_Pages.empty())
      {
        m_Header.extent[0] = width;
        m_Header.extent[1] = height;
        m_Header.dimension = 2;
        m_Header.components = of[2];
        CountVoxels(m_Name, m_Header);
        m_Samples[0] = width * of[2];
        m_Samples[1] = height;
        std::copy_n(of, 3, format);
        ReadFormat();
        const char * text = nullptr;
        if (TIFFGetField(m_Tiff.get(), TIFFTAG_IMAGEDESCRIPTION, &text) && text)
        {
          description = text;
        }
        if (IsOfImageJ(description))
        {
          const char * const images = std::strstr(text, "\nimages=");
          ofImageJ = images ? std::strtoll(images + 8, nullptr, 10) : 0;
        }
      }
      isSame = isSame && width == m_Header.extent[0] && height == m_Samples[1] && std::equal(of, of + 3, format);
      if (!isSame)
      {
        Fail(m_Name, "its page " + std::to_string(m_Pages.size() + 1) + " has another size or type than the first");
      }
      pageOf.back() = static_cast<std::int64_t>(m_Pages.size());
      AddPage(size);
    } while (TIFFReadDirectory(m_Tiff.get()));
    if (!complaint.empty())
    {
      FailWithComplaint("is damaged or not complete");
    }
    if (m_Pages.empty())
    {
      Fail(m_Name, "has no page");
    }
    const auto pages = static_cast<std::int64_t>(m_Pages.size());
    if (pages == 1 && ofImageJ > 1)
    {
      // ImageJ writes a large stack as one page, whose voxels the others' follow.
      const auto bytes = static_cast<std::uint64_t>(m_Samples[0] * m_Samples[1]) * m_Size;
      if (!m_IsPlain || m_Pages[0].offsets.size() != 1 ||
          m_Pages[0].offsets[0] + bytes * static_cast<std::uint64_t>(ofImageJ) > size)
      {
        Fail(m_Name, "has one of the " + std::to_string(ofImageJ) + " images that its description names");
      }
      for (std::int64_t i = 1; i < ofImageJ; ++i)
      {
        pageOf.push_back(static_cast<std::int64_t>(m_Pages.size()));
        m_Pages.push_back({ 0, { m_Pages[0].offsets[0] + static_cast<std::uint64_t>(i) * bytes } });
      }
    }
    OrderPages(description, pageOf);
    if (!m_IsPlain)
    {
      m_Block.resize(static_cast<std::size_t>(
        m_IsTiled ? TIFFTileSize64(m_Tiff.get()) : static_cast<std::uint64_t>(m_BlockRows * m_BlockColumns) * m_Size));
    }
  }

  static bool
  IsOfImageJ(const std::string & description)
  {
    return description.compare(0, 7, "ImageJ=") == 0;
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
    for (int a = 0; a < 3; ++a)
    {
      m_Header.spacing[a] = order.spacing[a] > 0 ? order.spacing[a] : m_Header.spacing[a];
    }
    CountVoxels(m_Name, m_Header);
  }

  /** The current directory; throws if a block of it lies beyond the file's end. */
  void
  AddPage(std::uint64_t size)
  {
    const bool isPlain =
      !TIFFIsTiled(m_Tiff.get()) && Get<std::uint16_t>(TIFFTAG_COMPRESSION, COMPRESSION_NONE) == COMPRESSION_NONE;
    const std::int64_t rows =
      m_IsTiled ? Get<std::uint32_t>(TIFFTAG_TILELENGTH, 0)
                : std::min<std::int64_t>(Get<std::uint32_t>(TIFFTAG_ROWSPERSTRIP, UINT32_MAX), m_Samples[1]);
    if (isPlain != m_IsPlain || m_IsTiled != (TIFFIsTiled(m_Tiff.get()) != 0) || rows != m_BlockRows)
    {
      Fail(m_Name, "its page " + std::to_string(m_Pages.size() + 1) + " is stored in another way than the first");
    }
    const std::uint32_t blocks = m_IsTiled ? TIFFNumberOfTiles(m_Tiff.get()) : TIFFNumberOfStrips(m_Tiff.get());
    Page                page{ static_cast<std::uint64_t>(TIFFCurrentDirOffset(m_Tiff.get())), {} };
    bool                follows = true;
    for (std::uint32_t i = 0; i < blocks; ++i)
    {
      int                 failed = 0;
      const std::uint64_t offset = TIFFGetStrileOffsetWithErr(m_Tiff.get(), i, &failed);
      std::uint64_t       bytes = failed ? 0 : TIFFGetStrileByteCountWithErr(m_Tiff.get(), i, &failed);
      if (m_IsPlain)
      {
        const std::int64_t first = static_cast<std::int64_t>(i) * m_BlockRows;
        bytes = static_cast<std::uint64_t>(std::min(m_BlockRows, m_Samples[1] - first) * m_BlockColumns) * m_Size;
        follows = follows &&
                  (i == 0 || offset == page.offsets[0] + static_cast<std::uint64_t>(first * m_BlockColumns) * m_Size);
        page.offsets.push_back(offset);
      }
      if (failed || offset == 0 || bytes == 0 || offset > size || bytes > size - offset)
      {
        FailWithComplaint("is not complete: it has " + std::to_string(size) + " bytes, voxels of its page " +
                          std::to_string(m_Pages.size() + 1) + " lie in bytes " + std::to_string(offset) + " to " +
                          std::to_string(offset + bytes));
      }
    }
    if (follows)
    {
      page.offsets.resize(std::min<std::size_t>(1, page.offsets.size()));
    }
    m_Pages.push_back(std::move(page));
  }

  void
  ReadBlocks(const Box & box, const BufferView & view)
  {
    const std::lock_guard<std::mutex> lock(m_Mutex);
    const std::int64_t                columns = (m_Samples[0] + m_BlockColumns - 1) / m_BlockColumns;
    ForEachPage(box, [&](std::size_t page, const Box & ofPage) {
      for (std::int64_t row = box.lower[1] / m_BlockRows; row * m_BlockRows < box.upper[1]; ++row)
      {
        for (std::int64_t column = box.lower[0] / m_BlockColumns; column * m_BlockColumns < box.upper[0]; ++column)
        {
          Box block = ofPage;
          block.lower[0] = column * m_BlockColumns;
          block.upper[0] = block.lower[0] + m_BlockColumns;
          block.lower[1] = row * m_BlockRows;
          block.upper[1] = block.lower[1] + m_BlockRows;
          Load(static_cast<std::int64_t>(page),
               row * columns + column,
               std::min(m_BlockRows, m_Samples[1] - block.lower[1]));
          CopyBox(Intersect(box, block), DenseView(m_Block.data(), m_Header.kind, block), view);
        }
      }
    });
  }

  /** Into m_Block, unless it is there. */
  void
  Load(std::int64_t page, std::int64_t block, std::int64_t rows)
  {
    if (page == m_LoadedPage && block == m_LoadedBlock)
    {
      return;
    }
    m_LoadedBlock = -1;
    complaint.clear();
    if (page != m_LoadedPage && !TIFFSetSubDirectory(m_Tiff.get(), m_Pages[static_cast<std::size_t>(page)].directory))
    {
      FailWithComplaint("its page " + std::to_string(page + 1) + " cannot be read");
    }
    m_LoadedPage = page;
    const auto number = static_cast<std::uint32_t>(block);
    const auto bytes = static_cast<tmsize_t>(m_Block.size());
    const auto needed =
      m_IsTiled ? bytes : static_cast<tmsize_t>(static_cast<std::size_t>(rows * m_BlockColumns) * m_Size);
    const tmsize_t present = m_IsTiled ? TIFFReadEncodedTile(m_Tiff.get(), number, m_Block.data(), bytes)
                                       : TIFFReadEncodedStrip(m_Tiff.get(), number, m_Block.data(), needed);
    if (present != needed || !complaint.empty())
    {
      FailWithComplaint("its page " + std::to_string(page + 1) + " is damaged or not complete");
    }
    m_BytesRead += TIFFGetStrileByteCount(m_Tiff.get(), number);
    m_LoadedBlock = block;
  }

  std::string                       m_Name;
  Descriptor                        m_File;
  std::unique_ptr<TIFF, TiffCloser> m_Tiff;
  std::vector<Page>                 m_Pages;
  /** Samples along x, rows and pages. */
  Coordinates m_Samples{ Coordinates::Filled(1) };
  std::size_t m_Size{ 1 };
  bool        m_Swaps{ false };
  bool        m_IsTiled{ false };
  /** Strips of voxels as they are. */
  bool              m_IsPlain{ false };
  std::int64_t      m_BlockColumns{ 0 };
  std::int64_t      m_BlockRows{ 0 };
  std::mutex        m_Mutex;
  std::vector<char> m_Block;
  std::int64_t      m_LoadedPage{ -1 };
  std::int64_t      m_LoadedBlock{ -1 };
};

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

} // namespace

std::unique_ptr<FileSource>
OpenTiff(const std::string & file)
{
  return std::make_unique<TiffSource>(file);
}

VoxelLayout
LayOutTiff(const ImageHeader & header, const std::string & file, const std::string &, bool)
{
  constexpr std::uint64_t StripBytes = std::uint64_t{ 1 } << 20;
  VoxelLayout             layout;
  if (header.dimension == 3 && header.spacing[2] != 1)
  {
    layout.losses.emplace_back("spacing of the third axis");
  }
  const std::size_t size = PixelSize(header.kind);
  const auto        width = static_cast<std::uint64_t>(header.extent[0]);
  const auto        height = static_cast<std::uint64_t>(header.extent[1]);
  const auto        pages = static_cast<std::uint64_t>(header.extent[2]);
  if (width > INT32_MAX || height > INT32_MAX)
  {
    Fail(file, "TIFF holds at most " + std::to_string(INT32_MAX) + " voxels along an axis of a page");
  }
  const auto components = static_cast<std::uint64_t>(header.components);
  if (components > UINT16_MAX)
  {
    Fail(file, "TIFF holds at most " + std::to_string(UINT16_MAX) + " components a voxel");
  }
  const std::uint64_t row = width * size * components;
  const std::uint64_t pageBytes = row * height;
  const std::uint64_t rows = std::max<std::uint64_t>(1, std::min(height, StripBytes / row));
  const std::uint64_t strips = (height + rows - 1) / rows;
  const bool          isColor = components == 3 || components == 4;
  // Samples that no color is made of.
  const std::uint64_t extra = components == 4 ? 1 : isColor ? 0 : components - 1;
  const std::uint64_t entries = extra > 0 ? 15 : 14;
  // Three lists of numbers of 16 bits.
  const std::uint64_t lists = components > 1 ? (3 * 2 * components + 15) / 16 * 16 : 0;
  // Header, two ratios, and for each page its directory and the two tables of its strips.
  const auto bytesBefore = [&](bool big) {
    const std::uint64_t word = big ? 8 : 4;
    const std::uint64_t directory = big ? 8 + entries * 20 + 8 : 2 + entries * 12 + 4;
    return 32 + lists + pages * (directory + (strips > 1 ? 2 * strips * word : 0));
  };
  const bool          big = bytesBefore(false) + pages * pageBytes + 16 > UINT32_MAX;
  const std::uint64_t begin = (bytesBefore(big) + 15) / 16 * 16;
  const std::uint64_t word = big ? 8 : 4;
  const std::uint16_t wordType = big ? static_cast<std::uint16_t>(TIFF_LONG8) : static_cast<std::uint16_t>(TIFF_LONG);

  std::string &   bytes = layout.header;
  DirectoryWriter writer(bytes, big);
  bytes = IsBigEndianMachine() ? "MM" : "II";
  Append(bytes, static_cast<std::uint16_t>(big ? 43 : 42));
  if (big)
  {
    Append(bytes, std::uint16_t{ 8 });
    Append(bytes, std::uint16_t{ 0 });
  }
  writer.Word(32 + lists);
  std::uint32_t ratios[4];
  Ratio(10 / header.spacing[0], ratios[0], ratios[1]);
  Ratio(10 / header.spacing[1], ratios[2], ratios[3]);
  bytes.resize(16);
  bytes.append(reinterpret_cast<const char *>(ratios), sizeof(ratios));
  const std::uint16_t sampleFormat = IsFloatingPoint(header.kind)               ? SAMPLEFORMAT_IEEEFP
                                     : (static_cast<int>(header.kind) % 2) == 1 ? SAMPLEFORMAT_INT
                                                                                : SAMPLEFORMAT_UINT;
  // Alpha, or nothing that has a name.
  const std::uint16_t ofList[3] = { static_cast<std::uint16_t>(8 * size),
                                    sampleFormat,
                                    static_cast<std::uint16_t>(isColor ? EXTRASAMPLE_UNASSALPHA
                                                                       : EXTRASAMPLE_UNSPECIFIED) };
  for (std::uint64_t i = 0; lists > 0 && i < 3 * components; ++i)
  {
    Append(bytes, ofList[i / components]);
  }
  bytes.resize(32 + lists);
  // A number for each of `count` samples: those that do not fit into the field are in a list.
  const auto writeList = [&](std::uint16_t tag, int list, std::uint64_t count) {
    std::uint64_t value = ofList[list];
    if (count > 1 && 2 * count <= word)
    {
      const std::uint16_t numbers[4] = { ofList[list],
                                         ofList[list],
                                         static_cast<std::uint16_t>(count > 2 ? ofList[list] : 0),
                                         static_cast<std::uint16_t>(count > 3 ? ofList[list] : 0) };
      std::uint32_t       half = 0;
      std::memcpy(&half, numbers, 4);
      value = half;
      if (big)
      {
        std::memcpy(&value, numbers, 8);
      }
    }
    else if (count > 1)
    {
      value = 32 + static_cast<std::uint64_t>(list) * 2 * components;
    }
    writer.Entry(tag, TIFF_SHORT, count, value);
  };
  const std::uint64_t directory = big ? 8 + entries * 20 + 8 : 2 + entries * 12 + 4;
  for (std::uint64_t page = 0; page < pages; ++page)
  {
    const std::uint64_t voxels = begin + page * pageBytes;
    const std::uint64_t tables = bytes.size() + directory;
    const std::uint64_t next = tables + (strips > 1 ? 2 * strips * word : 0);
    if (big)
    {
      Append(bytes, entries);
    }
    else
    {
      Append(bytes, static_cast<std::uint16_t>(entries));
    }
    writer.Entry(TIFFTAG_SUBFILETYPE, TIFF_LONG, 1, pages > 1 ? FILETYPE_PAGE : 0);
    writer.Entry(TIFFTAG_IMAGEWIDTH, TIFF_LONG, 1, width);
    writer.Entry(TIFFTAG_IMAGELENGTH, TIFF_LONG, 1, height);
    writeList(TIFFTAG_BITSPERSAMPLE, 0, components);
    writer.Entry(TIFFTAG_COMPRESSION, TIFF_SHORT, 1, COMPRESSION_NONE);
    writer.Entry(TIFFTAG_PHOTOMETRIC, TIFF_SHORT, 1, isColor ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    writer.Entry(TIFFTAG_STRIPOFFSETS, wordType, strips, strips > 1 ? tables : voxels);
    writer.Entry(TIFFTAG_SAMPLESPERPIXEL, TIFF_SHORT, 1, components);
    writer.Entry(TIFFTAG_ROWSPERSTRIP, TIFF_LONG, 1, rows);
    writer.Entry(TIFFTAG_STRIPBYTECOUNTS, wordType, strips, strips > 1 ? tables + strips * word : pageBytes);
    if (big)
    {
      // The ratio itself fits into the field.
      std::uint64_t x = 0;
      std::uint64_t y = 0;
      std::memcpy(&x, ratios, 8);
      std::memcpy(&y, ratios + 2, 8);
      writer.Entry(TIFFTAG_XRESOLUTION, TIFF_RATIONAL, 1, x);
      writer.Entry(TIFFTAG_YRESOLUTION, TIFF_RATIONAL, 1, y);
    }
    else
    {
      writer.Entry(TIFFTAG_XRESOLUTION, TIFF_RATIONAL, 1, 16);
      writer.Entry(TIFFTAG_YRESOLUTION, TIFF_RATIONAL, 1, 24);
    }
    writer.Entry(TIFFTAG_RESOLUTIONUNIT, TIFF_SHORT, 1, RESUNIT_CENTIMETER);
    if (extra > 0)
    {
      writeList(TIFFTAG_EXTRASAMPLES, 2, extra);
    }
    writeList(TIFFTAG_SAMPLEFORMAT, 1, components);
    writer.Word(page + 1 < pages ? next : 0);
    if (strips > 1)
    {
      for (std::uint64_t i = 0; i < strips; ++i)
      {
        writer.Word(voxels + i * rows * row);
      }
      for (std::uint64_t i = 0; i < strips; ++i)
      {
        writer.Word(std::min(rows, height - i * rows) * row);
      }
    }
  }
  bytes.resize(begin);
  return layout;
}

} // namespace chunkwise::files
