/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseInt128.h"
#include "formatServices.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace chunkwise::formats
{

namespace
{

constexpr std::uint32_t Undefined = 0xffffffff;
constexpr int           DeepestSequence = 32;
/** GDCM holds it all in memory, too. */
constexpr std::uint64_t MostInflated = std::uint64_t{ 1 } << 30;

struct Tag
{
  std::uint16_t group{ 0 };
  std::uint16_t element{ 0 };

  bool
  Is(std::uint16_t g, std::uint16_t e) const
  {
    return group == g && element == e;
  }
};

/** Walks over the elements of a file, and reads few of their values. */
class Walk
{
public:
  explicit Walk(const std::string & file)
    : m_File(::open(file.c_str(), O_RDONLY | O_CLOEXEC))
  {
    struct stat status = {};
    if (m_File < 0 || ::fstat(m_File, &status) != 0)
    {
      throw std::runtime_error(std::strerror(errno));
    }
    m_Size = static_cast<std::uint64_t>(status.st_size);
  }
  ~Walk() { ::close(m_File); }
  Walk(const Walk &) = delete;
  Walk &
  operator=(const Walk &) = delete;

  DicomSummary
  Summarize()
  {
    DicomSummary summary;
    if (!this->FindBeginning())
    {
      return summary;
    }
    summary.isDicom = true;
    this->ReadMeta();
    if (m_IsDeflated)
    {
      this->Inflate();
    }
    while (!m_FoundVoxels && m_At + 8 <= m_Size)
    {
      const Element element = this->ReadElement();
      if (element.tag.group == 0x7fe0 && element.tag.element >= 0x0008 && element.tag.element <= 0x0010)
      {
        this->TakeVoxels(element);
        continue;
      }
      this->TakeValue(element);
      this->Skip(element, 0);
    }
    if (!m_FoundVoxels && m_At < m_Size)
    {
      this->FailOfEnd();
    }
    this->WalkToEnd();
    summary.hasVoxels = m_FoundVoxels;
    summary.isCompressed = m_IsCompressed || m_IsDeflated;
    summary.isInRuns = m_IsRuns && m_IsCompressed;
    summary.voxelBytes =
      static_cast<std::uint64_t>(std::min<Wide>(this->CountBits() / 8, std::numeric_limits<std::int64_t>::max()));
    summary.rows = m_Rows;
    summary.columns = m_Columns;
    summary.frames = m_Frames;
    return summary;
  }

private:
  using Wide = chunkwise::UInt128;

  struct Element
  {
    Tag           tag;
    char          representation[3]{};
    std::uint32_t length{ 0 };
  };

  [[noreturn]] void
  FailOfEnd() const
  {
    throw std::runtime_error("is not complete: it ends after " + std::to_string(m_Size) + " bytes, within an element");
  }
  void
  Read(void * data, std::size_t bytes, std::uint64_t at) const
  {
    if (at > m_Size || bytes > m_Size - at ||
        ::pread(m_File, data, bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes))
    {
      this->FailOfEnd();
    }
  }
  std::uint32_t
  Take(std::size_t bytes)
  {
    unsigned char data[4] = {};
    this->Read(data, bytes, m_At);
    m_At += bytes;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
    {
      value = value << 8 | data[m_IsBigEndian ? i : bytes - 1 - i];
    }
    return value;
  }
  void
  Advance(std::uint64_t bytes)
  {
    if (bytes > m_Size - m_At)
    {
      this->FailOfEnd();
    }
    m_At += bytes;
  }
  bool
  FindBeginning()
  {
    char mark[8] = {};
    if (m_Size >= 132)
    {
      this->Read(mark, 4, 128);
      if (std::memcmp(mark, "DICM", 4) == 0)
      {
        m_At = 132;
        return true;
      }
    }
    // Files from before there was a preamble.
    if (m_Size < 8)
    {
      return false;
    }
    this->Read(mark, 8, 0);
    if (std::memcmp(mark, "DICM", 4) == 0)
    {
      m_At = 4;
      return true;
    }
    const auto byte = [&](int i) { return static_cast<unsigned char>(mark[i]); };
    const auto isFirst = [&](int low, int high) { return byte(high) == 0 && (byte(low) == 2 || byte(low) == 8); };
    m_IsBigEndian = isFirst(1, 0);
    m_IsExplicit = std::isupper(byte(4)) && std::isupper(byte(5));
    return isFirst(0, 1) || m_IsBigEndian;
  }
  /** Goes on with what the rest of the file expands to. */
  void
  Inflate()
  {
    const int target = ::memfd_create("chunkwise", MFD_CLOEXEC);
    z_stream  stream{};
    if (target < 0 || ::inflateInit2(&stream, -MAX_WBITS) != Z_OK)
    {
      throw std::bad_alloc();
    }
    std::vector<unsigned char> in(std::size_t{ 64 } << 10);
    std::vector<unsigned char> out(std::size_t{ 256 } << 10);
    std::uint64_t              size = 0;
    int                        status = Z_OK;
    while (status == Z_OK && size < MostInflated)
    {
      if (stream.avail_in == 0)
      {
        const auto bytes = std::min<std::uint64_t>(in.size(), m_Size - m_At);
        this->Read(in.data(), bytes, m_At);
        m_At += bytes;
        stream.next_in = in.data();
        stream.avail_in = static_cast<uInt>(bytes);
      }
      stream.next_out = out.data();
      stream.avail_out = static_cast<uInt>(out.size());
      status = ::inflate(&stream, Z_NO_FLUSH);
      const std::size_t bytes = out.size() - stream.avail_out;
      if (::write(target, out.data(), bytes) != static_cast<ssize_t>(bytes))
      {
        status = Z_MEM_ERROR;
      }
      size += bytes;
    }
    ::inflateEnd(&stream);
    ::close(m_File);
    m_File = target;
    m_Size = size;
    m_At = 0;
    if (status != Z_STREAM_END)
    {
      throw std::runtime_error("is not complete: it is compressed as a whole, and its stream does not end well");
    }
  }
  /** The group with the transfer syntax, which is always explicit and little-endian. */
  void
  ReadMeta()
  {
    const bool bigEndian = m_IsBigEndian;
    const bool isExplicit = m_IsExplicit;
    bool       hasSyntax = false;
    m_IsBigEndian = false;
    m_IsExplicit = true;
    while (m_At + 8 <= m_Size)
    {
      const std::uint64_t begin = m_At;
      if (this->Take(2) != 2)
      {
        m_At = begin;
        break;
      }
      m_At = begin;
      const Element element = this->ReadElement();
      if (element.tag.Is(2, 0x0010))
      {
        std::string syntax = this->ReadText(element);
        hasSyntax = true;
        m_IsBigEndian = false;
        m_IsDeflated = syntax == "1.2.840.10008.1.2.1.99";
        m_IsRuns = syntax == "1.2.840.10008.1.2.5";
        m_EndsWithMark = syntax >= "1.2.840.10008.1.2.4.50" && syntax < "1.2.840.10008.1.2.4.94";
        m_NextIsBigEndian = syntax == "1.2.840.10008.1.2.2";
        m_NextIsExplicit = syntax != "1.2.840.10008.1.2";
      }
      this->Skip(element, 0);
    }
    if (hasSyntax)
    {
      m_IsBigEndian = m_NextIsBigEndian;
      m_IsExplicit = m_NextIsExplicit;
      return;
    }
    // GDCM guesses, too.
    m_IsBigEndian = bigEndian;
    char next[6] = {};
    if (m_At + sizeof(next) <= m_Size)
    {
      this->Read(next, sizeof(next), m_At);
      m_IsExplicit = isExplicit || (std::isupper(static_cast<unsigned char>(next[4])) &&
                                    std::isupper(static_cast<unsigned char>(next[5])));
    }
  }
  Element
  ReadElement()
  {
    Element element;
    element.tag.group = static_cast<std::uint16_t>(this->Take(2));
    element.tag.element = static_cast<std::uint16_t>(this->Take(2));
    if (element.tag.group == 0xfffe || !m_IsExplicit)
    {
      element.length = this->Take(4);
      return element;
    }
    this->Read(element.representation, 2, m_At);
    if (!std::isupper(static_cast<unsigned char>(element.representation[0])) ||
        !std::isupper(static_cast<unsigned char>(element.representation[1])))
    {
      // Some writers lapse into the implicit form.
      element.representation[0] = element.representation[1] = '\0';
      element.length = this->Take(4);
      return element;
    }
    m_At += 2;
    static const char * const longOnes[] = { "OB", "OD", "OF", "OL", "OV", "OW", "SQ",
                                             "SV", "UC", "UN", "UR", "UT", "UV" };
    const bool                isLong = std::any_of(std::begin(longOnes), std::end(longOnes), [&](const char * name) {
      return std::strcmp(name, element.representation) == 0;
    });
    if (isLong)
    {
      this->Advance(2);
    }
    element.length = this->Take(isLong ? 4 : 2);
    return element;
  }
  void
  Skip(const Element & element, int depth)
  {
    if (element.length != Undefined)
    {
      return this->Advance(element.length);
    }
    if (depth > DeepestSequence)
    {
      throw std::runtime_error("is damaged: its sequences have no end");
    }
    // A sequence; one of unknown representation is always implicit.
    const bool isExplicit = m_IsExplicit;
    m_IsExplicit = m_IsExplicit && std::strcmp(element.representation, "UN") != 0;
    for (;;)
    {
      const Element item = this->ReadElement();
      if (item.tag.Is(0xfffe, 0xe0dd))
      {
        break;
      }
      if (!item.tag.Is(0xfffe, 0xe000))
      {
        throw std::runtime_error("is damaged: a sequence has something other than items");
      }
      if (item.length != Undefined)
      {
        this->Advance(item.length);
        continue;
      }
      for (;;)
      {
        const Element inner = this->ReadElement();
        if (inner.tag.Is(0xfffe, 0xe00d))
        {
          break;
        }
        this->Skip(inner, depth + 1);
      }
    }
    m_IsExplicit = isExplicit;
  }
  std::string
  ReadText(const Element & element) const
  {
    std::string text(std::min<std::uint32_t>(element.length, 64), '\0');
    this->Read(text.data(), text.size(), m_At);
    const auto end = text.find_last_not_of(std::string(" \0", 2));
    return text.substr(0, end == std::string::npos ? 0 : end + 1);
  }
  std::uint64_t
  ReadShort(const Element & element)
  {
    const std::uint64_t begin = m_At;
    const std::uint64_t value = element.length >= 2 ? this->Take(2) : 0;
    m_At = begin;
    return value;
  }
  void
  TakeValue(const Element & element)
  {
    if (element.tag.group != 0x0028 || element.length == Undefined)
    {
      return;
    }
    switch (element.tag.element)
    {
      case 0x0002:
        m_Samples = this->ReadShort(element);
        break;
      case 0x0004:
        m_IsHalf = this->ReadText(element) == "YBR_FULL_422";
        break;
      case 0x0008:
      {
        const std::string text = this->ReadText(element);
        // An integer of 32 bits, by the standard.
        m_Frames = std::min<std::uint64_t>(std::strtoull(text.c_str(), nullptr, 10), 0x7fffffff);
        break;
      }
      case 0x0010:
        m_Rows = this->ReadShort(element);
        break;
      case 0x0011:
        m_Columns = this->ReadShort(element);
        break;
      case 0x0100:
        m_Bits = this->ReadShort(element);
        break;
      default:
        break;
    }
  }
  /** Four numbers of 16 bits, and one of 64, have a product of at most 128. */
  Wide
  CountBits() const
  {
    return Wide{ m_Rows } * m_Columns * m_Bits * (m_IsHalf ? 2 : m_Samples) * m_Frames;
  }
  void
  TakeVoxels(const Element & element)
  {
    m_FoundVoxels = true;
    m_Frames = std::max<std::uint64_t>(m_Frames, 1);
    if (element.length == Undefined)
    {
      m_IsCompressed = true;
      return this->TakeFragments();
    }
    const Wide needed = (this->CountBits() + 7) / 8;
    const auto present = std::min<std::uint64_t>(element.length, m_Size - m_At);
    if (needed > present)
    {
      throw std::runtime_error("has " + std::to_string(present) + " of " +
                               (needed >> 64
                                  ? "more bytes of voxels than can be counted"
                                  : std::to_string(static_cast<std::uint64_t>(needed)) + " bytes of voxels"));
    }
    this->Advance(element.length);
  }
  void
  TakeFragments()
  {
    std::uint64_t fragments = 0;
    for (bool isFirst = true;; isFirst = false)
    {
      const Element item = this->ReadElement();
      if (item.tag.Is(0xfffe, 0xe0dd))
      {
        break;
      }
      if (!item.tag.Is(0xfffe, 0xe000) || item.length == Undefined)
      {
        throw std::runtime_error("is damaged: its compressed voxels have something other than items");
      }
      this->Advance(item.length);
      if (isFirst)
      {
        continue; // A table of offsets.
      }
      ++fragments;
      m_LastFragment = item.length;
    }
    if (fragments == 0 || ((m_IsRuns || m_EndsWithMark) && fragments < m_Frames))
    {
      throw std::runtime_error("is not complete: it has " + std::to_string(fragments) + " parts for " +
                               std::to_string(m_Frames) + " frames");
    }
    if (m_EndsWithMark)
    {
      this->CheckMark();
    }
  }
  /** JPEG, JPEG-LS and JPEG 2000 end with one mark, then with zeros to an even number of bytes. */
  void
  CheckMark() const
  {
    unsigned char tail[18] = {};
    const auto    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(m_LastFragment, sizeof(tail)));
    // The item that ends the sequence has 8 bytes.
    this->Read(tail, bytes, m_At - 8 - bytes);
    std::size_t end = bytes;
    while (end > 0 && tail[end - 1] == 0)
    {
      --end;
    }
    if (end < 2 || tail[end - 2] != 0xff || tail[end - 1] != 0xd9)
    {
      throw std::runtime_error("is not complete: its compressed voxels end without the mark of their end");
    }
  }
  /** The elements after the voxels have no use here, but show whether the file was cut. */
  void
  WalkToEnd()
  {
    while (m_FoundVoxels && m_At + 8 <= m_Size)
    {
      const Element element = this->ReadElement();
      if (element.tag.group < 0x7fe0)
      {
        return; // Something that is no element, such as zeros.
      }
      this->Skip(element, 0);
    }
  }

  int           m_File;
  std::uint64_t m_Size{ 0 };
  std::uint64_t m_At{ 0 };
  bool          m_IsBigEndian{ false };
  bool          m_IsExplicit{ false };
  bool          m_NextIsBigEndian{ false };
  bool          m_NextIsExplicit{ false };
  bool          m_IsDeflated{ false };
  bool          m_IsRuns{ false };
  bool          m_EndsWithMark{ false };
  bool          m_IsHalf{ false };
  bool          m_IsCompressed{ false };
  bool          m_FoundVoxels{ false };
  std::uint64_t m_Rows{ 0 };
  std::uint64_t m_Columns{ 0 };
  std::uint64_t m_Samples{ 1 };
  std::uint64_t m_Bits{ 0 };
  std::uint64_t m_Frames{ 1 };
  std::uint64_t m_LastFragment{ 0 };
};

} // namespace

DicomSummary
SummarizeDicom(const std::string & file)
{
  return Walk(file).Summarize();
}

} // namespace chunkwise::formats
