/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileStream.h"

#include "fileInflater.h"

#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace chunkwise::files
{

namespace
{

constexpr std::size_t InputBlockBytes = std::size_t{ 256 } << 10;

/** The bytes of a file in blocks. */
class BlockReader
{
public:
  BlockReader(const Descriptor & file, std::uint64_t offset, std::function<void(std::size_t)> countRead)
    : m_File(file)
    , m_Begin(offset)
    , m_Offset(offset)
    , m_CountRead(std::move(countRead))
    , m_Block(InputBlockBytes)
  {}
  void
  Restart()
  {
    m_Offset = m_Begin;
  }
  /** The next block: empty at the end of the file. */
  std::size_t
  Next()
  {
    const std::size_t count = m_File.ReadSome(m_Block.data(), m_Block.size(), m_Offset);
    m_Offset += count;
    m_CountRead(count);
    return count;
  }
  unsigned char *
  GetBlock()
  {
    return m_Block.data();
  }
  const std::string &
  GetName() const
  {
    return m_File.GetName();
  }

private:
  const Descriptor &               m_File;
  std::uint64_t                    m_Begin;
  std::uint64_t                    m_Offset;
  std::function<void(std::size_t)> m_CountRead;
  std::vector<unsigned char>       m_Block;
};

class InflateStream : public ByteStream
{
public:
  explicit InflateStream(BlockReader reader)
    : m_Reader(std::move(reader))
    , m_Inflater(MakeInflater())
  {}

  void
  Restart() override
  {
    m_Reader.Restart();
    m_Inflater->Restart();
    m_Left = 0;
    m_Ended = false;
    m_Done = 0;
  }
  void
  Read(void * data, std::size_t bytes) override
  {
    if (Inflate(static_cast<unsigned char *>(data), bytes) < bytes)
    {
      FailAtEnd();
    }
  }
  void
  CheckEnd(bool mayGoOn) override
  {
    unsigned char rest[4096];
    // Reads on: the checksum comes last.
    while (Inflate(rest, sizeof(rest)) > 0)
    {
      if (!mayGoOn)
      {
        Fail(m_Reader.GetName(), "has more compressed voxels than its header says");
      }
    }
  }

private:
  [[noreturn]] void
  FailAtEnd() const
  {
    Fail(m_Reader.GetName(), "is not complete: its compressed voxels end after " + std::to_string(m_Done) + " bytes");
  }

  /** Fewer than `bytes` where the stream ends. */
  std::size_t
  Inflate(unsigned char * data, std::size_t bytes)
  {
    std::size_t room = bytes;
    while (room > 0)
    {
      if (m_Left == 0)
      {
        m_Next = m_Reader.GetBlock();
        m_Left = m_Reader.Next();
      }
      const bool isLast = m_Left == 0;
      if (isLast && m_Ended)
      {
        break;
      }
      if (m_Ended)
      {
        // Another member of gzip goes on; anything else, such as a block of zeros, is no part of the voxels.
        if (*m_Next != 0x1f)
        {
          break;
        }
        m_Inflater->Restart();
        m_Ended = false;
      }
      const std::size_t before = room;
      try
      {
        m_Ended = !m_Inflater->Inflate(m_Next, m_Left, data, room);
      }
      catch (const std::runtime_error & error)
      {
        Fail(m_Reader.GetName(), std::string("its compressed voxels are damaged: ") + error.what());
      }
      m_Done += before - room;
      // Input that was read before may still give something.
      if (isLast && !m_Ended && room == before)
      {
        FailAtEnd();
      }
    }
    return bytes - room;
  }

  BlockReader               m_Reader;
  std::unique_ptr<Inflater> m_Inflater;
  const unsigned char *     m_Next{ nullptr };
  std::size_t               m_Left{ 0 };
  bool                      m_Ended{ false };
  std::uint64_t             m_Done{ 0 };
};

class TextStream : public ByteStream
{
public:
  /** The longest exact decimal of a double has some 1,100. */
  static constexpr std::size_t MostBytesOfNumber = 4096;

  TextStream(BlockReader reader, PixelType kind)
    : m_Reader(std::move(reader))
    , m_Kind(kind)
  {}
  void
  Restart() override
  {
    m_Reader.Restart();
    m_Next = m_Size = 0;
    m_Done = 0;
  }
  void
  Read(void * data, std::size_t bytes) override
  {
    DispatchPixelType(m_Kind, [&](auto pixel) {
      using Pixel = decltype(pixel);
      for (std::size_t i = 0; i < bytes; i += sizeof(Pixel))
      {
        const std::string word = NextWord();
        const Pixel       value = Parse<Pixel>(word);
        std::memcpy(static_cast<char *>(data) + i, &value, sizeof(value));
        ++m_Done;
      }
    });
  }
  void
  CheckEnd(bool mayGoOn) override
  {
    if (!mayGoOn && !NextWord().empty())
    {
      Fail(m_Reader.GetName(), "has more numbers than its header says");
    }
  }

private:
  /** Empty at the end. */
  std::string
  NextWord()
  {
    std::string word;
    for (;;)
    {
      if (m_Next == m_Size)
      {
        m_Next = 0;
        m_Size = m_Reader.Next();
        if (m_Size == 0)
        {
          return word;
        }
      }
      const auto c = m_Reader.GetBlock()[m_Next++];
      // NRRD allows commas.
      if (!std::isspace(c) && c != ',')
      {
        if (word.size() == MostBytesOfNumber)
        {
          Fail(m_Reader.GetName(),
               "is no text of numbers: it has more than " + std::to_string(MostBytesOfNumber) +
                 " bytes without a space");
        }
        word += static_cast<char>(c);
      }
      else if (!word.empty())
      {
        return word;
      }
    }
  }
  template <typename TPixel>
  TPixel
  Parse(const std::string & word)
  {
    if (word.empty())
    {
      Fail(m_Reader.GetName(), "is not complete: it ends after " + std::to_string(m_Done) + " numbers");
    }
    TPixel value{};
    bool   good = false;
    if constexpr (std::is_floating_point_v<TPixel>)
    {
      char * end = nullptr;
      value = sizeof(TPixel) == sizeof(float) ? static_cast<TPixel>(std::strtof(word.c_str(), &end))
                                              : static_cast<TPixel>(std::strtod(word.c_str(), &end));
      good = *end == 0;
    }
    else
    {
      const char * const begin = word.c_str() + (word[0] == '+' ? 1 : 0);
      const auto         result = std::from_chars(begin, word.c_str() + word.size(), value);
      good = result.ec == std::errc() && *result.ptr == 0;
    }
    if (!good)
    {
      Fail(m_Reader.GetName(), "\"" + word.substr(0, 32) + "\" is no voxel of " + PixelTypeName(m_Kind));
    }
    return value;
  }

  BlockReader   m_Reader;
  PixelType     m_Kind;
  std::size_t   m_Next{ 0 };
  std::size_t   m_Size{ 0 };
  std::uint64_t m_Done{ 0 };
};

} // namespace

std::unique_ptr<ByteStream>
MakeByteStream(Codec codec, const Descriptor & file, std::uint64_t offset, PixelType kind,
               std::function<void(std::size_t)> countRead)
{
  BlockReader reader(file, offset, std::move(countRead));
  if (codec == Codec::Text)
  {
    return std::make_unique<TextStream>(std::move(reader), kind);
  }
  return std::make_unique<InflateStream>(std::move(reader));
}

} // namespace chunkwise::files
