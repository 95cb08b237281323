/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileZarrCodec.h"

#include "fileByteCount.h"
#include "fileInflater.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>
#include <zlib.h>

#ifdef CHUNKWISE_HAS_BLOSC
#  include <blosc.h>
#endif
#ifdef CHUNKWISE_HAS_ZSTD
#  define ZSTD_STATIC_LINKING_ONLY
#  include <zstd.h>
#endif
#ifdef CHUNKWISE_HAS_LZ4
#  include <lz4.h>
#endif

namespace chunkwise::files
{

namespace
{

constexpr std::int64_t ZstdRatio = 32768;
constexpr std::int64_t BloscRatio = 131072;
constexpr std::int64_t Lz4Ratio = 256;
/** Bytes of the checksum, and of the size before a block of LZ4. */
constexpr std::size_t SumBytes = 4;
/** Libraries that count in int. */
constexpr std::size_t MostOfInt = static_cast<std::size_t>(std::numeric_limits<int>::max()) - 64;

std::uint32_t
ReadLittle(const char * from)
{
  std::uint32_t value = 0;
  for (int i = 3; i >= 0; --i)
  {
    value = value << 8 | static_cast<unsigned char>(from[i]);
  }
  return value;
}

void
WriteLittle(std::uint32_t value, char * to)
{
  for (int i = 0; i < 4; ++i)
  {
    to[i] = static_cast<char>(value >> 8 * i);
  }
}

/** Eight tables, so that eight bytes are done at once. */
using CrcTables = std::array<std::array<std::uint32_t, 256>, 8>;

const CrcTables &
GetCrcTables()
{
  static const CrcTables tables = [] {
    CrcTables made{};
    for (std::uint32_t i = 0; i < 256; ++i)
    {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
      {
        value = value >> 1 ^ (value & 1 ? 0x82f63b78u : 0);
      }
      made[0][i] = value;
    }
    for (std::size_t t = 1; t < 8; ++t)
    {
      for (std::size_t i = 0; i < 256; ++i)
      {
        made[t][i] = made[t - 1][i] >> 8 ^ made[0][made[t - 1][i] & 255];
      }
    }
    return made;
  }();
  return tables;
}

void
RequireRoom(std::uint64_t claimed, std::size_t room)
{
  if (claimed > room)
  {
    throw std::runtime_error("claims " + std::to_string(claimed) + " decoded bytes, more than the " +
                             std::to_string(room) + " of a chunk");
  }
}

[[noreturn, maybe_unused]] void
FailWithoutLibrary(const ZarrCodec & codec)
{
  throw std::runtime_error("is compressed with a codec of " + FindMissingZarrLibrary(codec.kind) +
                           ", which this build does not have");
}

std::size_t
InflateAll(Inflater & inflater, const char * from, std::size_t bytes, char * to, std::size_t room)
{
  const auto *  next = reinterpret_cast<const unsigned char *>(from);
  auto *        place = reinterpret_cast<unsigned char *>(to);
  std::size_t   left = bytes;
  std::size_t   free = room;
  unsigned char beyond = 0;
  // Members of gzip may follow each other.
  do
  {
    inflater.Restart();
    for (;;)
    {
      const std::size_t before = left;
      const bool        isFull = free == 0;
      unsigned char *   out = isFull ? &beyond : place;
      std::size_t       outRoom = isFull ? 1 : free;
      const std::size_t hadRoom = outRoom;
      const bool        goesOn = inflater.Inflate(next, left, out, outRoom);
      const std::size_t made = hadRoom - outRoom;
      if (isFull && made > 0)
      {
        throw std::runtime_error("has more than the " + std::to_string(room) + " bytes of a chunk");
      }
      if (!isFull)
      {
        place = out;
        free = outRoom;
      }
      if (!goesOn)
      {
        break;
      }
      if (left == before && made == 0)
      {
        throw std::runtime_error("has a compressed stream that is cut off");
      }
    }
  } while (left > 0);
  return room - free;
}

} // namespace

struct ZarrCoder::State
{
  std::unique_ptr<Inflater> inflater;
  std::vector<char>         other;
#ifdef CHUNKWISE_HAS_ZSTD
  struct Free
  {
    void
    operator()(ZSTD_DCtx * context) const
    {
      ZSTD_freeDCtx(context);
    }
    void
    operator()(ZSTD_CCtx * context) const
    {
      ZSTD_freeCCtx(context);
    }
  };
  std::unique_ptr<ZSTD_DCtx, Free> decoder;
  std::unique_ptr<ZSTD_CCtx, Free> encoder;
#endif
};

std::string
FindMissingZarrLibrary(ZarrCodec::Kind kind)
{
#ifndef CHUNKWISE_HAS_BLOSC
  if (kind == ZarrCodec::Kind::Blosc)
  {
    return "Blosc";
  }
#endif
#ifndef CHUNKWISE_HAS_ZSTD
  if (kind == ZarrCodec::Kind::Zstd)
  {
    return "Zstandard";
  }
#endif
#ifndef CHUNKWISE_HAS_LZ4
  if (kind == ZarrCodec::Kind::Lz4)
  {
    return "LZ4";
  }
#endif
  static_cast<void>(kind);
  return "";
}

std::int64_t
GetZarrRatio(const std::vector<ZarrCodec> & codecs)
{
  std::int64_t ratio = 1;
  for (const ZarrCodec & codec : codecs)
  {
    switch (codec.kind)
    {
      case ZarrCodec::Kind::Blosc:
        ratio = std::max(ratio, BloscRatio);
        break;
      case ZarrCodec::Kind::Zstd:
        ratio = std::max(ratio, ZstdRatio);
        break;
      case ZarrCodec::Kind::Lz4:
        ratio = std::max(ratio, Lz4Ratio);
        break;
      case ZarrCodec::Kind::Gzip:
      case ZarrCodec::Kind::Zlib:
        ratio = std::max(ratio, DeflateRatio);
        break;
      case ZarrCodec::Kind::Crc32c:
        break;
    }
  }
  return ratio;
}

std::uint64_t
GetZarrBound(const std::vector<ZarrCodec> & codecs, std::uint64_t bytes)
{
  for (const ZarrCodec & codec : codecs)
  {
    // Blosc adds 16 bytes, LZ4 a 255th, Zstandard a 256th, deflate of zlib's lowest memory an eighth.
    bytes += codec.kind == ZarrCodec::Kind::Crc32c ? SumBytes : bytes / 8 + 1024;
  }
  return bytes;
}

std::uint64_t
GetZarrCoderBytes(const std::vector<ZarrCodec> & codecs, std::uint64_t bytes, bool encodes)
{
  std::uint64_t held = 0;
  std::size_t   compressors = 0;
  for (const ZarrCodec & codec : codecs)
  {
    compressors += codec.kind == ZarrCodec::Kind::Crc32c ? 0 : 1;
    // Contexts of libraries: deflate's window and tables, Blosc's blocks.
    held += codec.kind == ZarrCodec::Kind::Blosc ? std::uint64_t{ 4 } << 20 : std::uint64_t{ 320 } << 10;
#ifdef CHUNKWISE_HAS_ZSTD
    if (codec.kind == ZarrCodec::Kind::Zstd && encodes)
    {
      held += ZSTD_estimateCCtxSize_usingCParams(ZSTD_getCParams(codec.level, bytes, 0));
    }
#endif
  }
  static_cast<void>(encodes);
  // Between two codecs.
  return held + (compressors > 1 ? GetZarrBound(codecs, bytes) : 0);
}

std::uint32_t
GetCrc32c(const void * data, std::size_t bytes)
{
  const CrcTables & tables = GetCrcTables();
  const auto *      from = static_cast<const unsigned char *>(data);
  std::uint32_t     sum = ~0u;
  for (; bytes >= 8; bytes -= 8, from += 8)
  {
    const std::uint32_t low = sum ^ ReadLittle(reinterpret_cast<const char *>(from));
    sum = tables[7][low & 255] ^ tables[6][low >> 8 & 255] ^ tables[5][low >> 16 & 255] ^ tables[4][low >> 24] ^
          tables[3][from[4]] ^ tables[2][from[5]] ^ tables[1][from[6]] ^ tables[0][from[7]];
  }
  for (; bytes > 0; --bytes, ++from)
  {
    sum = sum >> 8 ^ tables[0][(sum ^ *from) & 255];
  }
  return ~sum;
}

ZarrCoder::ZarrCoder()
  : m_State(std::make_unique<State>())
{}
ZarrCoder::~ZarrCoder() = default;
ZarrCoder::ZarrCoder(ZarrCoder &&) noexcept = default;

std::size_t
ZarrCoder::DecodeOne(const ZarrCodec & codec, const char * from, std::size_t bytes, char * to, std::size_t room)
{
  switch (codec.kind)
  {
    case ZarrCodec::Kind::Blosc:
    {
#ifdef CHUNKWISE_HAS_BLOSC
      std::size_t claimed = 0;
      if (blosc_cbuffer_validate(from, bytes, &claimed) < 0)
      {
        throw std::runtime_error("is no buffer of Blosc, or is cut off");
      }
      RequireRoom(claimed, room);
      const int made = blosc_decompress_ctx(from, to, room, 1);
      if (made < 0 || static_cast<std::size_t>(made) != claimed)
      {
        throw std::runtime_error("cannot be decompressed by Blosc");
      }
      return claimed;
#else
      FailWithoutLibrary(codec);
#endif
    }
    case ZarrCodec::Kind::Zstd:
    {
#ifdef CHUNKWISE_HAS_ZSTD
      if (!m_State->decoder)
      {
        m_State->decoder.reset(ZSTD_createDCtx());
      }
      if (!m_State->decoder)
      {
        throw std::bad_alloc();
      }
      const std::size_t made = ZSTD_decompressDCtx(m_State->decoder.get(), to, room, from, bytes);
      if (ZSTD_isError(made))
      {
        throw std::runtime_error(std::string("cannot be decompressed by Zstandard: ") + ZSTD_getErrorName(made));
      }
      return made;
#else
      FailWithoutLibrary(codec);
#endif
    }
    case ZarrCodec::Kind::Lz4:
    {
#ifdef CHUNKWISE_HAS_LZ4
      if (bytes < SumBytes || bytes > MostOfInt)
      {
        throw std::runtime_error("has no block of LZ4");
      }
      const std::uint32_t claimed = ReadLittle(from);
      RequireRoom(claimed, room);
      const int made = LZ4_decompress_safe(
        from + SumBytes, to, static_cast<int>(bytes - SumBytes), static_cast<int>(std::min(room, MostOfInt)));
      if (made < 0 || static_cast<std::uint32_t>(made) != claimed)
      {
        throw std::runtime_error("cannot be decompressed by LZ4");
      }
      return claimed;
#else
      FailWithoutLibrary(codec);
#endif
    }
    case ZarrCodec::Kind::Gzip:
    case ZarrCodec::Kind::Zlib:
      if (!m_State->inflater)
      {
        m_State->inflater = MakeInflater();
      }
      return InflateAll(*m_State->inflater, from, bytes, to, room);
    case ZarrCodec::Kind::Crc32c:
      break;
  }
  throw std::logic_error("a codec that gives no other bytes");
}

void
ZarrCoder::Decode(const std::vector<ZarrCodec> & codecs, std::vector<char> & encoded, char * to, std::size_t bytes)
{
  const std::vector<char> * from = &encoded;
  std::size_t               size = encoded.size();
  for (std::size_t i = codecs.size(); i-- > 0;)
  {
    if (codecs[i].kind == ZarrCodec::Kind::Crc32c)
    {
      if (size < SumBytes || GetCrc32c(from->data(), size - SumBytes) != ReadLittle(from->data() + size - SumBytes))
      {
        throw std::runtime_error("has a wrong checksum");
      }
      size -= SumBytes;
      continue;
    }
    if (i == 0)
    {
      size = this->DecodeOne(codecs[i], from->data(), size, to, bytes);
      from = nullptr;
      continue;
    }
    std::vector<char> & other = from == &encoded ? m_State->other : encoded;
    other.resize(GetZarrBound(codecs, bytes));
    size = this->DecodeOne(codecs[i], from->data(), size, other.data(), other.size());
    from = &other;
  }
  if (size != bytes)
  {
    throw std::runtime_error("has " + std::to_string(size) + " decoded bytes, not the " + std::to_string(bytes) +
                             " of a chunk");
  }
  if (from)
  {
    std::memcpy(to, from->data(), bytes);
  }
}

namespace
{

/** Each compresses `bytes` to the beginning of `to`, which has room for any outcome, and gives the bytes that it makes.
 */
#ifdef CHUNKWISE_HAS_BLOSC
std::size_t
EncodeBlosc(const ZarrCodec & codec, const char * from, std::size_t bytes, std::vector<char> & to)
{
  const int size = bytes > MostOfInt ? -1
                                     : blosc_compress_ctx(codec.level,
                                                          codec.shuffle,
                                                          static_cast<std::size_t>(codec.typeSize),
                                                          bytes,
                                                          from,
                                                          to.data(),
                                                          to.size(),
                                                          codec.compressor.c_str(),
                                                          0,
                                                          1);
  if (size <= 0)
  {
    throw std::runtime_error("Blosc cannot compress with " + codec.compressor);
  }
  return static_cast<std::size_t>(size);
}
#endif

#ifdef CHUNKWISE_HAS_ZSTD
std::size_t
EncodeZstd(ZSTD_CCtx * encoder, const ZarrCodec & codec, const char * from, std::size_t bytes, std::vector<char> & to)
{
  const std::size_t made = ZSTD_compressCCtx(encoder, to.data(), to.size(), from, bytes, codec.level);
  if (ZSTD_isError(made))
  {
    throw std::runtime_error(std::string("Zstandard cannot compress: ") + ZSTD_getErrorName(made));
  }
  return made;
}
#endif

#ifdef CHUNKWISE_HAS_LZ4
std::size_t
EncodeLz4(const char * from, std::size_t bytes, std::vector<char> & to)
{
  const int size = bytes > MostOfInt
                     ? 0
                     : LZ4_compress_default(from,
                                            to.data() + SumBytes,
                                            static_cast<int>(bytes),
                                            static_cast<int>(std::min(to.size() - SumBytes, MostOfInt)));
  if (size <= 0)
  {
    throw std::runtime_error("LZ4 cannot compress chunks of " + std::to_string(bytes) + " bytes");
  }
  WriteLittle(static_cast<std::uint32_t>(bytes), to.data());
  return static_cast<std::size_t>(size) + SumBytes;
}
#endif

std::size_t
EncodeDeflate(const ZarrCodec & codec, const char * from, std::size_t bytes, std::vector<char> & to)
{
  z_stream stream{};
  if (deflateInit2(
        &stream, codec.level, Z_DEFLATED, codec.kind == ZarrCodec::Kind::Gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
  {
    throw std::bad_alloc();
  }
  constexpr std::size_t most = std::size_t{ 1 } << 30;
  std::size_t           left = bytes;
  std::size_t           made = 0;
  int                   status = Z_OK;
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(from));
  stream.next_out = reinterpret_cast<Bytef *>(to.data());
  while (status == Z_OK)
  {
    const auto in = static_cast<uInt>(std::min(most, left));
    const auto out = static_cast<uInt>(std::min(most, to.size() - made));
    stream.avail_in = in;
    stream.avail_out = out;
    status = deflate(&stream, in == left ? Z_FINISH : Z_NO_FLUSH);
    left -= in - stream.avail_in;
    made += out - stream.avail_out;
  }
  deflateEnd(&stream);
  if (status != Z_STREAM_END)
  {
    throw std::logic_error("zlib makes more of a chunk than it says");
  }
  return made;
}

} // namespace

void
ZarrCoder::EncodeOne(const ZarrCodec & codec, const char * from, std::size_t bytes, std::vector<char> & to)
{
  to.resize(GetZarrBound({ codec }, bytes));
  std::size_t made = 0;
  switch (codec.kind)
  {
    case ZarrCodec::Kind::Blosc:
#ifdef CHUNKWISE_HAS_BLOSC
      made = EncodeBlosc(codec, from, bytes, to);
      break;
#else
      FailWithoutLibrary(codec);
#endif
    case ZarrCodec::Kind::Zstd:
#ifdef CHUNKWISE_HAS_ZSTD
      if (!m_State->encoder)
      {
        m_State->encoder.reset(ZSTD_createCCtx());
      }
      if (!m_State->encoder)
      {
        throw std::bad_alloc();
      }
      made = EncodeZstd(m_State->encoder.get(), codec, from, bytes, to);
      break;
#else
      FailWithoutLibrary(codec);
#endif
    case ZarrCodec::Kind::Lz4:
#ifdef CHUNKWISE_HAS_LZ4
      made = EncodeLz4(from, bytes, to);
      break;
#else
      FailWithoutLibrary(codec);
#endif
    case ZarrCodec::Kind::Gzip:
    case ZarrCodec::Kind::Zlib:
      made = EncodeDeflate(codec, from, bytes, to);
      break;
    case ZarrCodec::Kind::Crc32c:
      std::memcpy(to.data(), from, bytes);
      WriteLittle(GetCrc32c(from, bytes), to.data() + bytes);
      made = bytes + SumBytes;
      break;
  }
  to.resize(made);
}

void
ZarrCoder::Encode(const std::vector<ZarrCodec> & codecs, const char * from, std::size_t bytes,
                  std::vector<char> & encoded)
{
  if (codecs.empty())
  {
    encoded.assign(from, from + bytes);
    return;
  }
  this->EncodeOne(codecs.front(), from, bytes, encoded);
  for (std::size_t i = 1; i < codecs.size(); ++i)
  {
    m_State->other.swap(encoded);
    this->EncodeOne(codecs[i], m_State->other.data(), m_State->other.size(), encoded);
  }
}

} // namespace chunkwise::files
