/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStreamedWindow.h"

#include "chunkwiseConvertVoxels.h"
#include "chunkwiseError.h"

#include <algorithm>
#include <cstring>

namespace chunkwise
{

namespace
{

/** The address of a piece of a dense view. */
void *
PlaceOf(const BufferView & view, const Box & piece)
{
  return static_cast<unsigned char *>(view.data) +
         view.Offset(piece.lower) * static_cast<std::int64_t>(PixelSize(view.kind));
}

/** One staging buffer a worker, made when it is needed. */
class Staging
{
public:
  explicit Staging(const StreamedThreads & threads)
    : m_Buffers(threads.executor->GetConcurrency())
  {}
  void *
  Get(unsigned int worker, std::size_t bytes)
  {
    std::vector<unsigned char> & buffer = m_Buffers[worker];
    if (buffer.size() < bytes)
    {
      buffer = std::vector<unsigned char>();
      buffer.resize(bytes);
    }
    return buffer.data();
  }

private:
  std::vector<std::vector<unsigned char>> m_Buffers;
};

/** The part of a box that one call of Read or Write gets. */
std::vector<Box>
CutFor(const ImageAccess & access, const Box & box, int axis, std::size_t voxelBytes, std::uint64_t pieceBytes)
{
  if (access.wholeBoxes && !box.IsEmpty())
  {
    return { box };
  }
  return CutIntoPieces(box, axis, voxelBytes, !access.anyOrder, pieceBytes);
}

Coordinates
Rotated(const Coordinates & axes, int by)
{
  Coordinates rotated{};
  for (int a = 0; a < MaxDimension; ++a)
  {
    rotated[(a + by) % MaxDimension] = axes[a];
  }
  return rotated;
}

} // namespace

Box
ToFileAxes(const Box & box, bool hasComponents)
{
  return hasComponents ? Box{ Rotated(box.lower, 1), Rotated(box.upper, 1) } : box;
}

Box
FromFileAxes(const Box & box, bool hasComponents)
{
  constexpr int back = MaxDimension - 1;
  return hasComponents ? Box{ Rotated(box.lower, back), Rotated(box.upper, back) } : box;
}

BufferView
FromFileAxes(const BufferView & view, bool hasComponents)
{
  BufferView turned = view;
  turned.box = FromFileAxes(view.box, hasComponents);
  turned.stride = hasComponents ? Rotated(view.stride, MaxDimension - 1) : view.stride;
  return turned;
}

BufferView
ToFileAxes(const BufferView & view, bool hasComponents)
{
  BufferView turned = view;
  turned.box = ToFileAxes(view.box, hasComponents);
  turned.stride = hasComponents ? Rotated(view.stride, 1) : view.stride;
  return turned;
}

std::vector<Box>
CutIntoPieces(const Box & box, int axis, std::size_t voxelBytes, bool wholePlanes, std::uint64_t pieceBytes)
{
  std::vector<Box> pieces;
  if (box.IsEmpty())
  {
    return pieces;
  }
  // The slowest axis whose planes are small enough; axes above it advance by one.
  int           cut = axis;
  std::uint64_t planeBytes = voxelBytes;
  for (int a = 0; a < axis; ++a)
  {
    planeBytes *= static_cast<std::uint64_t>(box.Extent(a));
  }
  while (!wholePlanes && cut > 0 && planeBytes > pieceBytes)
  {
    --cut;
    planeBytes /= static_cast<std::uint64_t>(box.Extent(cut));
  }
  const auto step = static_cast<std::int64_t>(std::max<std::uint64_t>(1, pieceBytes / planeBytes));
  Box        piece = box;
  for (int a = cut + 1; a <= axis; ++a)
  {
    piece.upper[a] = piece.lower[a] + 1;
  }
  for (;;)
  {
    for (std::int64_t first = box.lower[cut]; first < box.upper[cut]; first += step)
    {
      piece.lower[cut] = first;
      piece.upper[cut] = std::min(first + step, box.upper[cut]);
      pieces.push_back(piece);
    }
    int a = cut + 1;
    for (; a <= axis; ++a)
    {
      if (++piece.lower[a] < box.upper[a])
      {
        piece.upper[a] = piece.lower[a] + 1;
        break;
      }
      piece.lower[a] = box.lower[a];
      piece.upper[a] = piece.lower[a] + 1;
    }
    if (a > axis)
    {
      return pieces;
    }
  }
}

std::uint64_t
GetPieceBytes(std::uint64_t boxBytes, std::uint64_t planeBytes, bool wholePlanes)
{
  return std::min(boxBytes, wholePlanes ? std::max(planeBytes, StreamedPieceBytes) : StreamedPieceBytes);
}

StreamedMemory::StreamedMemory(std::size_t bytes, std::shared_ptr<Device> device)
{
  if (device)
  {
    try
    {
      m_Memory =
        std::shared_ptr<void>(device->AllocatePinned(bytes), [device](void * memory) { device->FreePinned(memory); });
      return;
    }
    catch (const DeviceError &)
    {
      // Pinned memory only saves a copy.
    }
  }
  m_Memory = std::shared_ptr<void>(::operator new(bytes), [](void * memory) { ::operator delete(memory); });
}

void
StreamedThreads::ForEach(const std::vector<Box> & pieces, bool anyOrder,
                         const std::function<void(const Box &, unsigned int)> & body)
{
  const auto one = [&](std::int64_t index, unsigned int worker) {
    if (stop)
    {
      throw Aborted();
    }
    body(pieces[static_cast<std::size_t>(index)], worker);
  };
  const auto count = static_cast<std::int64_t>(pieces.size());
  if (anyOrder && count > 1)
  {
    return executor->ParallelFor(count, one);
  }
  for (std::int64_t i = 0; i < count; ++i)
  {
    one(i, 0);
  }
}

void
CopyPieces(const BufferView & from, const BufferView & to, const Box & common, int axis, StreamedThreads & threads)
{
  if (from.data == to.data)
  {
    std::memmove(PlaceOf(to, common), PlaceOf(from, common), BytesOf(common, to.kind));
    return;
  }
  threads.ForEach(CutIntoPieces(common, axis, PixelSize(to.kind), false, SmallPieceBytes),
                  true,
                  [&](const Box & piece, unsigned int) {
                    std::memcpy(PlaceOf(to, piece), PlaceOf(from, piece), BytesOf(piece, to.kind));
                  });
}

void
ReadPieces(ImageSource & source, const Box & box, const BufferView & view, int axis, StreamedThreads & threads)
{
  const PixelType   kind = source.GetKind();
  const ImageAccess access = source.GetAccess();
  Staging           staging(threads);
  threads.ForEach(CutFor(access, box, axis, std::max(PixelSize(kind), PixelSize(view.kind)), StreamedPieceBytes),
                  access.anyOrder,
                  [&](const Box & piece, unsigned int worker) {
                    void * const place = PlaceOf(view, piece);
                    if (kind == view.kind)
                    {
                      source.Read(piece, DenseView(place, kind, piece));
                      return;
                    }
                    const BufferView read = DenseView(staging.Get(worker, BytesOf(piece, kind)), kind, piece);
                    source.Read(piece, read);
                    ConvertVoxels(read.data, kind, place, view.kind, piece.NumberOfVoxels());
                  });
}

std::int64_t
WritePieces(ImageSink & sink, const BufferView & view, const Coordinates & offset, int axis, StreamedThreads & threads)
{
  const PixelType           kind = sink.GetKind();
  const ImageAccess         access = sink.GetAccess();
  std::atomic<std::int64_t> cut{ 0 };
  Staging                   staging(threads);
  threads.ForEach(CutFor(access,
                         view.box,
                         axis,
                         std::max(PixelSize(kind), PixelSize(view.kind)),
                         access.anyOrder ? SmallPieceBytes : StreamedPieceBytes),
                  access.anyOrder,
                  [&](const Box & piece, unsigned int worker) {
                    void * place = PlaceOf(view, piece);
                    if (kind != view.kind)
                    {
                      void * const converted = staging.Get(worker, BytesOf(piece, kind));
                      cut += ConvertVoxels(place, view.kind, converted, kind, piece.NumberOfVoxels());
                      place = converted;
                    }
                    Box target = piece;
                    for (int a = 0; a < MaxDimension; ++a)
                    {
                      target.lower[a] += offset[a];
                      target.upper[a] += offset[a];
                    }
                    sink.Write(target, DenseView(place, kind, target));
                  });
  return cut;
}

} // namespace chunkwise
