/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseStreamedWindow_h
#define chunkwiseStreamedWindow_h

#include "chunkwiseDevice.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseImageSource.h"

#include <atomic>
#include <memory>
#include <vector>

namespace chunkwise
{

/** Bytes that a thread reads, converts or writes between two looks at whether it is to stop. */
constexpr std::uint64_t StreamedPieceBytes = std::uint64_t{ 4 } << 20;
/** The bytes of a piece that is copied, or written in any order: threads that share some dozen MiB of it end at about
 * the same time. Pieces to read are larger, since what is decoded in blocks is decoded once for each piece that needs a
 * part of the block. */
constexpr std::uint64_t SmallPieceBytes = std::uint64_t{ 1 } << 20;

/** Bytes of the voxels of a box. */
inline std::size_t
BytesOf(const Box & box, PixelType kind)
{
  return static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(kind);
}

/** A box, or a view, in the coordinates of a file whose voxels have their components along its first axis, and back. As
 * they are where there are none. */
Box
ToFileAxes(const Box & box, bool hasComponents);
Box
FromFileAxes(const Box & box, bool hasComponents);
BufferView
FromFileAxes(const BufferView & view, bool hasComponents);
BufferView
ToFileAxes(const BufferView & view, bool hasComponents);

/** Cuts `box` into boxes of few bytes, each contiguous in a dense view of `box`, in the order of memory. Never across
 * `axis` where `wholePlanes`: such a piece is one plane along it, however large. */
std::vector<Box>
CutIntoPieces(const Box & box, int axis, std::size_t voxelBytes, bool wholePlanes,
              std::uint64_t pieceBytes = StreamedPieceBytes);

/** Bytes of the largest such piece of a box with this many bytes, and this many in a plane. */
std::uint64_t
GetPieceBytes(std::uint64_t boxBytes, std::uint64_t planeBytes, bool wholePlanes);

/** Host memory: pinned for a device if it has some left, else plain. */
class StreamedMemory
{
public:
  StreamedMemory() = default;
  StreamedMemory(std::size_t bytes, std::shared_ptr<Device> device);
  void *
  Get() const
  {
    return m_Memory.get();
  }

private:
  std::shared_ptr<void> m_Memory;
};

/** Threads that read or write pieces, and the order to stop. */
struct StreamedThreads
{
  explicit StreamedThreads(unsigned int threads)
    : executor(MakeThreadExecutor(threads))
  {}
  /** Calls body(piece, worker) for all pieces, in order by one thread unless `anyOrder`. Throws Aborted at a stop. */
  void
  ForEach(const std::vector<Box> & pieces, bool anyOrder,
          const std::function<void(const Box & piece, unsigned int worker)> & body);

  std::unique_ptr<Executor> executor;
  std::atomic<bool>         stop{ false };
};

/** Copies planes that two dense views have in common. They may lie in the same memory. */
void
CopyPieces(const BufferView & from, const BufferView & to, const Box & common, int axis, StreamedThreads & threads);

/** Reads `box` of the source into a dense view that contains its planes, converted to the view's kind. */
void
ReadPieces(ImageSource & source, const Box & box, const BufferView & view, int axis, StreamedThreads & threads);

/** Writes a dense view, whose box is moved by `offset` first, converted to the sink's kind. Returns how many voxels
 * were cut. */
std::int64_t
WritePieces(ImageSink & sink, const BufferView & view, const Coordinates & offset, int axis, StreamedThreads & threads);

} // namespace chunkwise

#endif
