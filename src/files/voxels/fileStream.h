/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileStream_h
#define fileStream_h

#include "fileVoxels.h"

#include <functional>

namespace chunkwise::files
{

/** How the voxels of a file are coded. */
enum class Codec
{
  Raw,
  Deflate, ///< zlib's or gzip's, whichever the first bytes say; several members may follow each other
  Text     ///< numbers
};

/** Bytes of voxels that can only be had in order. */
class ByteStream
{
public:
  virtual ~ByteStream() = default;
  /** Goes back to the beginning. */
  virtual void
  Restart() = 0;
  virtual void
  Read(void * data, std::size_t bytes) = 0;
  /** Throws unless the stream ends well; `mayGoOn`: it may have more bytes than were read. */
  virtual void
  CheckEnd(bool mayGoOn) = 0;
};

/** The stream of `codec` that begins at `offset` of `file`; `kind` is that of the numbers of a text. `countRead` is
 * told of the bytes that are taken from the file. */
std::unique_ptr<ByteStream>
MakeByteStream(Codec codec, const Descriptor & file, std::uint64_t offset, PixelType kind,
               std::function<void(std::size_t)> countRead);

/** Host memory that a stream takes. */
constexpr std::uint64_t StreamBytes = std::uint64_t{ 640 } << 10;

/** Compresses into a file, in order: blocks by all cores at once, in one stream that every reader knows. The output
 * does not depend on the number of cores. */
class DeflateWriter
{
public:
  /** gzip's format, or zlib's. Writes from `offset` on. */
  DeflateWriter(const Descriptor & file, std::uint64_t offset, bool gzip);
  ~DeflateWriter();
  void
  Write(const void * data, std::size_t bytes);
  void
  Finish();
  /** Compressed, so far. */
  std::uint64_t
  GetBytesWritten() const
  {
    return m_Written;
  }
  /** Host memory that a writer takes. */
  static std::uint64_t
  GetHeldBytes();

private:
  void
  Compress(bool isEnd);
  void
  Append(const void * data, std::size_t bytes);

  struct State;
  const Descriptor &     m_File;
  std::uint64_t          m_Offset;
  bool                   m_Gzip;
  std::uint64_t          m_Written{ 0 };
  std::unique_ptr<State> m_State;
};

} // namespace chunkwise::files

#endif
