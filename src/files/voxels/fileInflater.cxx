/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileInflater.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#ifdef CHUNKWISE_HAS_ISAL
#  include <isa-l/igzip_lib.h>
#else
#  include <zlib.h>
#endif

namespace chunkwise::files
{

namespace
{

/** Both libraries count in 32 bits. */
constexpr std::size_t MostAtOnce = std::size_t{ 1 } << 30;

std::uint32_t
Count(std::size_t bytes)
{
  return static_cast<std::uint32_t>(std::min(bytes, MostAtOnce));
}

/** Moves on what a library has read and written: `end` and `outEnd` are where it stands now. */
void
MoveOn(const unsigned char * end, const unsigned char *& next, std::size_t & left, unsigned char * outEnd,
       unsigned char *& to, std::size_t & room)
{
  left -= static_cast<std::size_t>(end - next);
  room -= static_cast<std::size_t>(outEnd - to);
  next = end;
  to = outEnd;
}

#ifdef CHUNKWISE_HAS_ISAL

class IsalInflater : public Inflater
{
public:
  void
  Restart() override
  {
    m_Begins = true;
  }
  bool
  Inflate(const unsigned char *& next, std::size_t & left, unsigned char *& to, std::size_t & room) override
  {
    if (m_Begins && left > 0)
    {
      isal_inflate_init(&m_State);
      m_State.crc_flag = *next == 0x1f ? ISAL_GZIP : ISAL_ZLIB;
      m_Begins = false;
    }
    if (m_Begins)
    {
      return true;
    }
    m_State.next_in = const_cast<unsigned char *>(next);
    m_State.avail_in = Count(left);
    m_State.next_out = to;
    m_State.avail_out = Count(room);
    const int status = isal_inflate(&m_State);
    // Bytes of an earlier piece that it holds and does not use are given back, but that piece is gone.
    MoveOn(std::max<const unsigned char *>(m_State.next_in, next), next, left, m_State.next_out, to, room);
    if (status != ISAL_DECOMP_OK && status != ISAL_END_INPUT && status != ISAL_OUT_OVERFLOW)
    {
      throw std::runtime_error(Describe(status));
    }
    return m_State.block_state != ISAL_BLOCK_FINISH;
  }

private:
  static const char *
  Describe(int status)
  {
    switch (status)
    {
      case ISAL_INVALID_BLOCK:
        return "invalid block";
      case ISAL_INVALID_SYMBOL:
        return "invalid code";
      case ISAL_INVALID_LOOKBACK:
        return "invalid distance too far back";
      case ISAL_UNSUPPORTED_METHOD:
        return "unknown compression method";
      case ISAL_INCORRECT_CHECKSUM:
        return "incorrect data check";
      default:
        return "no data of zlib or gzip";
    }
  }

  inflate_state m_State{};
  bool          m_Begins{ true };
};

#else

class ZlibInflater : public Inflater
{
public:
  ZlibInflater()
  {
    if (inflateInit2(&m_Stream, Wrappers) != Z_OK)
    {
      throw std::bad_alloc();
    }
  }
  ~ZlibInflater() override { inflateEnd(&m_Stream); }
  void
  Restart() override
  {
    inflateReset2(&m_Stream, Wrappers);
  }
  bool
  Inflate(const unsigned char *& next, std::size_t & left, unsigned char *& to, std::size_t & room) override
  {
    m_Stream.next_in = const_cast<unsigned char *>(next);
    m_Stream.avail_in = Count(left);
    m_Stream.next_out = to;
    m_Stream.avail_out = Count(room);
    const int status = inflate(&m_Stream, Z_NO_FLUSH);
    MoveOn(m_Stream.next_in, next, left, m_Stream.next_out, to, room);
    if (status != Z_OK && status != Z_BUF_ERROR && status != Z_STREAM_END)
    {
      throw std::runtime_error(m_Stream.msg ? m_Stream.msg : "no data of zlib or gzip");
    }
    return status != Z_STREAM_END;
  }

private:
  /** 32: zlib and gzip are told apart by their first bytes. */
  static constexpr int Wrappers = 15 + 32;

  z_stream m_Stream{};
};

#endif

} // namespace

std::unique_ptr<Inflater>
MakeInflater()
{
#ifdef CHUNKWISE_HAS_ISAL
  return std::make_unique<IsalInflater>();
#else
  return std::make_unique<ZlibInflater>();
#endif
}

} // namespace chunkwise::files
