/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileByteCount.h"
#include "fileFormats.h"
#include "fileWhole.h"

#include <array>

// BMP is simple enough to be read here: a separate library would keep its many headers apart, and ITK's class turns
// colors.
namespace chunkwise::files
{

namespace
{

using Bytes = std::vector<unsigned char>;

constexpr std::size_t FileHeaderBytes = 14;
/** A run of up to 255 indices takes two bytes; an end of line, which leaves a whole row as it is, two. */
constexpr std::int64_t BmpRunRatio = 128;

enum Compression : std::uint32_t
{
  Plain = 0,
  Runs8 = 1,
  Runs4 = 2,
  Masks = 3,
  MasksWithAlpha = 6
};

std::uint32_t
Number(const Bytes & bytes, std::size_t at, std::size_t size)
{
  std::uint32_t value = 0;
  for (std::size_t i = size; i > 0; --i)
  {
    value = value << 8 | bytes[at + i - 1];
  }
  return value;
}

/** The bits of a component in a pixel. */
struct Mask
{
  std::uint32_t bits{ 0 };

  /** From 0 to 255. */
  unsigned char
  Get(std::uint32_t pixel) const
  {
    if (bits == 0)
    {
      return 0;
    }
    const std::uint32_t lowest = bits & (~bits + 1);
    const std::uint64_t most = bits / lowest;
    return static_cast<unsigned char>((((pixel & bits) / lowest) * std::uint64_t{ 255 } + most / 2) / most);
  }
};

struct BmpHeader
{
  std::int64_t        width{ 0 };
  std::int64_t        height{ 0 };
  bool                isTopDown{ false };
  std::uint32_t       bits{ 0 };
  std::uint32_t       compression{ Plain };
  std::uint64_t       offset{ 0 };
  std::array<Mask, 4> masks{}; ///< red, green, blue, alpha
  /** Red, green, blue of each index. */
  std::vector<std::array<unsigned char, 3>> colors;

  std::uint64_t
  GetRowBytes() const
  {
    return (static_cast<std::uint64_t>(width) * bits + 31) / 32 * 4;
  }
  bool
  HasRuns() const
  {
    return compression == Runs8 || compression == Runs4;
  }
  bool
  HasGrayColors() const
  {
    return std::all_of(colors.begin(), colors.end(), [](const auto & c) { return c[0] == c[1] && c[0] == c[2]; });
  }
  std::int64_t
  GetComponents() const
  {
    return bits <= 8 ? (HasGrayColors() ? 1 : 3) : masks[3].bits != 0 ? 4 : 3;
  }
};

/** The masks of colors that lie behind the first 40 bytes of Windows' header. */
void
ReadMasks(const std::string & name, const Bytes & bytes, std::size_t count, BmpHeader & header)
{
  std::uint32_t seen = 0;
  for (std::size_t i = 0; i < count; ++i)
  {
    const std::uint32_t mask = Number(bytes, FileHeaderBytes + 40 + 4 * i, 4);
    const std::uint32_t shifted = mask == 0 ? 0 : mask / (mask & (~mask + 1));
    const bool          hasHoles = (shifted & (shifted + 1)) != 0;
    if (hasHoles || (seen & mask) != 0 || (header.bits == 16 && mask > 0xffff) || (mask == 0 && i < 3))
    {
      Fail(name, "is no BMP file that can be read: its masks of color overlap, have holes or are empty");
    }
    seen |= mask;
    header.masks[i].bits = mask;
  }
}

/** The table of colors, from the byte `begin` of the file on; `used` 0: as many as the bits of a pixel count. */
void
ReadColors(const Descriptor & file, std::uint64_t begin, std::uint32_t used, std::size_t entry, BmpHeader & header)
{
  const std::uint32_t most = 1u << header.bits;
  // Some writers count more colors than they write.
  const std::uint64_t there = (header.offset - std::min<std::uint64_t>(header.offset, begin)) / entry;
  const auto          count = std::min<std::uint64_t>({ used == 0 ? most : used, most, there });
  if (count == 0)
  {
    Fail(file.GetName(), "is no BMP file that can be read: it has no table of colors");
  }
  Bytes table(count * entry);
  file.ReadAt(table.data(), table.size(), begin);
  for (std::size_t i = 0; i < count; ++i)
  {
    header.colors.push_back({ { table[i * entry + 2], table[i * entry + 1], table[i * entry] } });
  }
}

BmpHeader
ReadBmpHeader(const Descriptor & file)
{
  const std::string &   name = file.GetName();
  constexpr std::size_t mostBytes = FileHeaderBytes + 124 + 3 * 4;
  Bytes                 bytes(mostBytes);
  const std::size_t     present = file.ReadSome(bytes.data(), bytes.size(), 0);
  if (present < FileHeaderBytes + 4 || bytes[0] != 'B' || bytes[1] != 'M')
  {
    Fail(name, "is no BMP file, or is not complete");
  }
  // OS/2's first header, and Windows' of versions 3 (with masks behind it, or within) to 5.
  const std::size_t size = Number(bytes, FileHeaderBytes, 4);
  const bool        isOld = size == 12;
  if (!isOld && size != 40 && size != 52 && size != 56 && size != 64 && size != 108 && size != 124)
  {
    Fail(name, "is no BMP file that can be read: its header has " + std::to_string(size) + " bytes");
  }
  if (present < FileHeaderBytes + size)
  {
    Fail(name, "is not complete: it ends after " + std::to_string(present) + " bytes, within its header");
  }
  BmpHeader         header;
  const std::size_t at = FileHeaderBytes;
  header.offset = Number(bytes, 10, 4);
  const auto readSigned = [&](std::size_t place) { return static_cast<std::int32_t>(Number(bytes, place, 4)); };
  header.width = isOld ? std::int64_t{ Number(bytes, at + 4, 2) } : readSigned(at + 4);
  header.height = isOld ? std::int64_t{ Number(bytes, at + 6, 2) } : readSigned(at + 8);
  header.isTopDown = header.height < 0;
  header.height = header.isTopDown ? -header.height : header.height;
  const std::uint32_t planes = Number(bytes, at + (isOld ? 8 : 12), 2);
  header.bits = Number(bytes, at + (isOld ? 10 : 14), 2);
  header.compression = isOld ? std::uint32_t{ Plain } : Number(bytes, at + 16, 4);
  const bool hasMasks = header.compression == Masks || header.compression == MasksWithAlpha;
  const bool isPlain = header.compression == Plain && (header.bits == 1 || header.bits == 4 || header.bits == 8 ||
                                                       header.bits == 16 || header.bits == 24 || header.bits == 32);
  const bool isRuns =
    (header.compression == Runs8 && header.bits == 8) || (header.compression == Runs4 && header.bits == 4);
  // OS/2's second header has another meaning of 3.
  const bool isMasked = hasMasks && size != 64 && (header.bits == 16 || header.bits == 32);
  if (planes != 1 || (!isPlain && !isRuns && !isMasked) || (isRuns && header.isTopDown))
  {
    Fail(name,
         "is no BMP file that can be read: it has " + std::to_string(header.bits) + " bits a pixel, compression " +
           std::to_string(header.compression) + " and " + std::to_string(planes) + " planes" +
           (header.isTopDown ? ", from top to bottom" : ""));
  }
  std::size_t end = at + size;
  if (isMasked)
  {
    const std::size_t count = size >= 56 || header.compression == MasksWithAlpha ? 4 : 3;
    end = std::max(end, at + 40 + 4 * count);
    if (present < end)
    {
      Fail(name, "is not complete: it ends after " + std::to_string(present) + " bytes, within its header");
    }
    ReadMasks(name, bytes, count, header);
  }
  else if (header.bits == 16)
  {
    header.masks = { { { 0x7c00 }, { 0x3e0 }, { 0x1f } } };
  }
  else if (header.bits > 16)
  {
    // The fourth byte has no meaning by the format; ITK and others give it as alpha, and so nothing is lost.
    header.masks = { { { 0xff0000 }, { 0xff00 }, { 0xff }, { header.bits == 32 ? 0xff000000 : 0 } } };
  }
  if (header.bits <= 8)
  {
    ReadColors(file, end, isOld ? 0 : Number(bytes, at + 32, 4), isOld ? 3 : 4, header);
  }
  if (header.offset < end)
  {
    Fail(name, "is no BMP file that can be read: its voxels begin within its header");
  }
  return header;
}

class BmpSource : public WholeSource
{
public:
  explicit BmpSource(const std::string & name)
    : WholeSource(name)
  {
    const Descriptor file = Descriptor::OpenToRead(name);
    m_Bmp = ReadBmpHeader(file);
    m_Header.dimension = 2;
    m_Header.extent[0] = m_Bmp.width;
    m_Header.extent[1] = m_Bmp.height;
    m_Header.components = m_Bmp.GetComponents();
    m_Header.kind = PixelType::UInt8;
    CountVoxels(name, m_Header);
    const std::uint64_t size = file.GetSize();
    m_Stored = size - std::min(size, m_Bmp.offset);
    if (m_Bmp.HasRuns())
    {
      RequireInFile(name, ByteCount(m_Bmp.width) * m_Bmp.height, m_Stored, BmpRunRatio);
      m_DecoderBytes = m_Stored + static_cast<std::uint64_t>(m_Bmp.width * m_Bmp.height);
    }
    else
    {
      RequireInFile(name, ByteCount::FromUnsigned(m_Bmp.GetRowBytes()) * m_Bmp.height, m_Stored);
      m_DecoderBytes = m_Bmp.GetRowBytes();
    }
  }

private:
  /** The row of the file with row `y` of the image, from the top. */
  std::int64_t
  GetRow(std::int64_t y) const
  {
    return m_Bmp.isTopDown ? y : m_Bmp.height - 1 - y;
  }
  void
  PutIndex(unsigned char index, char * to) const
  {
    if (index >= m_Bmp.colors.size())
    {
      Fail(m_File, "is damaged: color " + std::to_string(index) + " of " + std::to_string(m_Bmp.colors.size()));
    }
    const auto & color = m_Bmp.colors[index];
    std::copy_n(color.begin(), m_Header.components, to);
  }
  void
  Decode(char * voxels) override
  {
    const Descriptor file = Descriptor::OpenToRead(m_File);
    if (m_Bmp.HasRuns())
    {
      return DecodeRuns(file, voxels);
    }
    const auto components = m_Header.components;
    Bytes      row(m_Bmp.GetRowBytes());
    for (std::int64_t y = 0; y < m_Bmp.height; ++y)
    {
      file.ReadAt(row.data(), row.size(), m_Bmp.offset + static_cast<std::uint64_t>(GetRow(y)) * row.size());
      char * to = voxels + y * m_Bmp.width * components;
      for (std::int64_t x = 0; x < m_Bmp.width; ++x, to += components)
      {
        const std::size_t bit = static_cast<std::size_t>(x) * m_Bmp.bits;
        if (m_Bmp.bits <= 8)
        {
          PutIndex(row[bit / 8] >> (8 - m_Bmp.bits - bit % 8) & ((1u << m_Bmp.bits) - 1), to);
          continue;
        }
        const std::uint32_t pixel = Number(row, bit / 8, m_Bmp.bits / 8);
        for (std::int64_t c = 0; c < components; ++c)
        {
          to[c] = static_cast<char>(m_Bmp.masks[static_cast<std::size_t>(c)].Get(pixel));
        }
      }
    }
  }
  void
  DecodeRuns(const Descriptor & file, char * voxels)
  {
    Bytes coded(m_Stored);
    file.ReadAt(coded.data(), coded.size(), m_Bmp.offset);
    Bytes              indices(static_cast<std::size_t>(m_Bmp.width * m_Bmp.height));
    std::int64_t       x = 0;
    std::int64_t       y = 0;
    std::size_t        at = 0;
    std::size_t        done = 0;
    const std::int64_t perByte = 8 / m_Bmp.bits;
    const auto         next = [&] {
      if (at >= coded.size())
      {
        Fail(m_File, "is not complete: its runs end before the mark of their end");
      }
      return coded[at++];
    };
    const auto put = [&](unsigned char index) {
      if (x >= m_Bmp.width || y >= m_Bmp.height)
      {
        Fail(m_File, "is damaged: a run leaves the image");
      }
      indices[static_cast<std::size_t>((m_Bmp.height - 1 - y) * m_Bmp.width + x++)] = index;
      ++done;
    };
    // The first of two pixels in a byte has the higher half.
    const auto part = [&](unsigned char byte, std::int64_t i) {
      return static_cast<unsigned char>(perByte == 1 ? byte : i % 2 == 0 ? byte >> 4 : byte & 15);
    };
    for (;;)
    {
      const std::int64_t count = next();
      const unsigned     value = next();
      if (count > 0)
      {
        for (std::int64_t i = 0; i < count; ++i)
        {
          put(part(static_cast<unsigned char>(value), i));
        }
      }
      else if (value == 0)
      {
        x = 0;
        ++y;
      }
      else if (value == 1)
      {
        break;
      }
      else if (value == 2)
      {
        x += next();
        y += next();
      }
      else
      {
        unsigned char byte = 0;
        for (std::int64_t i = 0; i < value; ++i)
        {
          byte = i % perByte == 0 ? next() : byte;
          put(part(byte, i));
        }
        at += ((value + perByte - 1) / perByte) % 2;
      }
    }
    if (done != indices.size())
    {
      Fail(m_File, "has a color for " + std::to_string(done) + " of " + std::to_string(indices.size()) + " voxels");
    }
    for (std::size_t i = 0; i < indices.size(); ++i)
    {
      PutIndex(indices[i], voxels + i * static_cast<std::size_t>(m_Header.components));
    }
  }

  BmpHeader     m_Bmp;
  std::uint64_t m_Stored{ 0 };
};

} // namespace

std::unique_ptr<FileSource>
OpenBmp(const std::string & file)
{
  return std::make_unique<BmpSource>(file);
}

} // namespace chunkwise::files
