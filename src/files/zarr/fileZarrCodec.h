/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileZarrCodec_h
#define fileZarrCodec_h

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace chunkwise::files
{

/** A codec of Zarr from bytes to bytes. */
struct ZarrCodec
{
  enum class Kind
  {
    Blosc,
    Zstd,
    Lz4, ///< of numcodecs: four bytes with the decoded size, then one block
    Gzip,
    Zlib,
    Crc32c ///< four bytes behind the data
  };
  Kind kind{ Kind::Zstd };
  int  level{ 3 };
  /** For Blosc: its compressor, the filter before it (0: none, 1: bytes, 2: bits) and the bytes of a value. */
  std::string compressor{ "zstd" };
  int         shuffle{ 1 };
  int         typeSize{ 1 };
};

/** Empty if this build can encode and decode with the codec, else the name of the missing library. */
std::string
FindMissingZarrLibrary(ZarrCodec::Kind kind);

/** How many bytes a byte of these codecs can stand for, at most. A chunk that claims more is refused before memory is
 * allocated for it. Deflate: 1032; Zstandard: a block of 128 KiB in 4 bytes; Blosc: Zstandard with larger blocks. */
std::int64_t
GetZarrRatio(const std::vector<ZarrCodec> & codecs);

/** The most bytes that `bytes` can have when they are encoded. */
std::uint64_t
GetZarrBound(const std::vector<ZarrCodec> & codecs, std::uint64_t bytes);

/** Memory of a ZarrCoder that decodes, or encodes, `bytes` at a time, without what its caller holds. */
std::uint64_t
GetZarrCoderBytes(const std::vector<ZarrCodec> & codecs, std::uint64_t bytes, bool encodes);

/** Encodes and decodes, for one thread. */
class ZarrCoder
{
public:
  ZarrCoder();
  ~ZarrCoder();
  ZarrCoder(ZarrCoder &&) noexcept;

  /** Decodes to exactly `bytes` at `to`. `encoded` is used up. Throws std::runtime_error with what is wrong. */
  void
  Decode(const std::vector<ZarrCodec> & codecs, std::vector<char> & encoded, char * to, std::size_t bytes);
  /** Encodes `bytes` into `encoded`. */
  void
  Encode(const std::vector<ZarrCodec> & codecs, const char * from, std::size_t bytes, std::vector<char> & encoded);

private:
  /** One codec: returns the bytes that it gives, at most `room`. */
  std::size_t
  DecodeOne(const ZarrCodec & codec, const char * from, std::size_t bytes, char * to, std::size_t room);
  void
  EncodeOne(const ZarrCodec & codec, const char * from, std::size_t bytes, std::vector<char> & to);

  struct State;
  std::unique_ptr<State> m_State;
};

/** The checksum CRC-32C (Castagnoli) of bytes. */
std::uint32_t
GetCrc32c(const void * data, std::size_t bytes);

} // namespace chunkwise::files

#endif
