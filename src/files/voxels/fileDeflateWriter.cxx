/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileStream.h"

#include "chunkwiseExecutor.h"
#include "chunkwiseHostMemory.h"

#include <zlib.h>

#include <cstring>
#include <new>
#include <thread>

namespace chunkwise::files
{

namespace
{

/** A block costs a few bytes where it begins, and what repeats from further back than the window is lost anyway. */
constexpr std::size_t BlockBytes = std::size_t{ 256 } << 10;
/** The distance that deflate looks back: a block begins with the end of the one before as its dictionary (RFC 1951). */
constexpr std::size_t WindowBytes = std::size_t{ 32 } << 10;
/** The memory that zlib holds to compress. */
constexpr std::size_t StateBytes = std::size_t{ 272 } << 10;

unsigned int
GetNumberOfThreads()
{
  return std::min(16u, GetNumberOfProcessors());
}

} // namespace

/** A raw stream of deflate for one thread. */
class DeflateCompressor
{
public:
  DeflateCompressor()
  {
    if (deflateInit2(&m_Stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    {
      throw std::bad_alloc();
    }
  }
  ~DeflateCompressor() { deflateEnd(&m_Stream); }
  DeflateCompressor(const DeflateCompressor &) = delete;
  DeflateCompressor &
  operator=(const DeflateCompressor &) = delete;

  /** `dictionary` lies before `data`. Ends on a byte, so that another block can follow; the stream itself if `isEnd`.
   * Returns the bytes of `to` that are used. */
  std::size_t
  Compress(const unsigned char * data, std::size_t bytes, std::size_t dictionary, std::vector<unsigned char> & to,
           bool isEnd)
  {
    deflateReset(&m_Stream);
    if (dictionary > 0)
    {
      deflateSetDictionary(&m_Stream, data - dictionary, static_cast<uInt>(dictionary));
    }
    m_Stream.next_in = const_cast<Bytef *>(data);
    m_Stream.avail_in = static_cast<uInt>(bytes);
    m_Stream.next_out = to.data();
    m_Stream.avail_out = static_cast<uInt>(to.size());
    const int status = deflate(&m_Stream, isEnd ? Z_FINISH : Z_SYNC_FLUSH);
    if (status != (isEnd ? Z_STREAM_END : Z_OK) || m_Stream.avail_in > 0 || (!isEnd && m_Stream.avail_out == 0))
    {
      throw std::logic_error("a compressed block is larger than zlib said");
    }
    return to.size() - m_Stream.avail_out;
  }

private:
  z_stream m_Stream{};
};

struct DeflateBlock
{
  std::vector<unsigned char> compressed;
  std::size_t                size{ 0 };
  uLong                      check{ 0 };
};

struct DeflateWriter::State
{
  std::unique_ptr<Executor>      executor = MakeThreadExecutor(GetNumberOfThreads());
  std::vector<DeflateCompressor> compressors = std::vector<DeflateCompressor>(executor->GetConcurrency());
  std::vector<DeflateBlock>      blocks = std::vector<DeflateBlock>(executor->GetConcurrency());
  /** The end of what was compressed before, and what is to be. */
  std::vector<unsigned char> bytes = std::vector<unsigned char>(WindowBytes + BlockBytes * blocks.size());
  std::size_t                dictionary{ 0 }; ///< bytes of the window that there are
  std::size_t                filled{ 0 };     ///< bytes behind the window
  std::uint64_t              total{ 0 };
  uLong                      check{ 0 };
};

DeflateWriter::DeflateWriter(const Descriptor & file, std::uint64_t offset, bool gzip)
  : m_File(file)
  , m_Offset(offset)
  , m_Gzip(gzip)
  , m_State(std::make_unique<State>())
{
  // Sync flushes add a few bytes to what deflateBound knows of.
  const std::size_t most = compressBound(BlockBytes) + 64;
  for (DeflateBlock & block : m_State->blocks)
  {
    block.compressed.resize(most);
  }
  m_State->check = gzip ? crc32(0, nullptr, 0) : adler32(0, nullptr, 0);
  // Deflate, no name and no time, of Unix (RFC 1952); deflate, window of 32 KiB, default compression (RFC 1950).
  const unsigned char gzipHeader[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
  const unsigned char zlibHeader[] = { 0x78, 0x9c };
  if (gzip)
  {
    Append(gzipHeader, sizeof(gzipHeader));
  }
  else
  {
    Append(zlibHeader, sizeof(zlibHeader));
  }
}

DeflateWriter::~DeflateWriter() = default;

std::uint64_t
DeflateWriter::GetHeldBytes()
{
  return WindowBytes + GetNumberOfThreads() * (BlockBytes + compressBound(BlockBytes) + StateBytes);
}

void
DeflateWriter::Append(const void * data, std::size_t bytes)
{
  m_File.WriteAt(data, bytes, m_Offset + m_Written);
  m_Written += bytes;
}

void
DeflateWriter::Compress(bool isEnd)
{
  State &                     state = *m_State;
  const unsigned char * const begin = state.bytes.data() + WindowBytes;
  const std::size_t count = std::max<std::size_t>(isEnd ? 1 : 0, (state.filled + BlockBytes - 1) / BlockBytes);
  state.executor->ParallelFor(static_cast<std::int64_t>(count), [&](std::int64_t index, unsigned int worker) {
    const auto        i = static_cast<std::size_t>(index);
    const std::size_t first = i * BlockBytes;
    const std::size_t bytes = std::min(BlockBytes, state.filled - first);
    DeflateBlock &    block = state.blocks[i];
    block.size = state.compressors[worker].Compress(
      begin + first, bytes, std::min(WindowBytes, state.dictionary + first), block.compressed, isEnd && i + 1 == count);
    const auto length = static_cast<uInt>(bytes);
    block.check = m_Gzip ? crc32(crc32(0, nullptr, 0), begin + first, length)
                         : adler32(adler32(0, nullptr, 0), begin + first, length);
  });
  for (std::size_t i = 0; i < count; ++i)
  {
    const DeflateBlock & block = state.blocks[i];
    const auto           length = static_cast<z_off_t>(std::min(BlockBytes, state.filled - i * BlockBytes));
    state.check =
      m_Gzip ? crc32_combine(state.check, block.check, length) : adler32_combine(state.check, block.check, length);
    Append(block.compressed.data(), block.size);
  }
  state.total += state.filled;
  // Batches are of whole blocks but the last, so the window is behind them.
  if (state.filled >= WindowBytes)
  {
    std::memcpy(state.bytes.data(), begin + state.filled - WindowBytes, WindowBytes);
    state.dictionary = WindowBytes;
  }
  state.filled = 0;
}

void
DeflateWriter::Write(const void * data, std::size_t bytes)
{
  State &           state = *m_State;
  const std::size_t room = state.bytes.size() - WindowBytes;
  const auto *      from = static_cast<const unsigned char *>(data);
  while (bytes > 0)
  {
    const std::size_t part = std::min(bytes, room - state.filled);
    std::memcpy(state.bytes.data() + WindowBytes + state.filled, from, part);
    state.filled += part;
    from += part;
    bytes -= part;
    if (state.filled == room)
    {
      Compress(false);
    }
  }
}

void
DeflateWriter::Finish()
{
  Compress(true);
  unsigned char end[8] = {};
  for (int i = 0; i < 4; ++i)
  {
    end[i] = static_cast<unsigned char>(m_State->check >> (m_Gzip ? 8 * i : 24 - 8 * i));
    end[4 + i] = static_cast<unsigned char>(m_State->total >> 8 * i);
  }
  Append(end, m_Gzip ? 8 : 4);
}

} // namespace chunkwise::files
