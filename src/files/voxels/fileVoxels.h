/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef fileVoxels_h
#define fileVoxels_h

#include "fileDescriptor.h"

#include <algorithm>

namespace chunkwise::files
{

/** Reverses the bytes of each of `count` values of `size` bytes; the buffers may be one. */
void
SwapBytes(void * to, const void * from, std::size_t count, std::size_t size);

constexpr bool
IsBigEndianMachine()
{
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
  return __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
#else
  return false;
#endif
}

/** The number of values in the file, of all components; throws FileError if their bytes cannot be counted. */
std::int64_t
CountVoxels(const std::string & file, const ImageHeader & header);

/** The last axis with more than one voxel, 0 if there is none. */
int
LastAxis(const Coordinates & extent);

/** Throws std::logic_error if a caller breaks the contract of Read and Write. */
void
CheckBox(const Coordinates & extent, PixelType kind, const Box & box, const BufferView & view);

/** Calls `f(voxel, data, count)` for stretches of `box` that are contiguous in a dense image of `extent` and in `view`,
 * in the image's order. */
template <typename TFunctor>
void
ForEachStretch(const Coordinates & extent, const Box & box, const BufferView & view, TFunctor && f)
{
  if (box.IsEmpty())
  {
    return;
  }
  std::int64_t count = 1;
  int          first = 0;
  // Whether the axes below `first` are whole, so that the next one goes on where they end.
  bool whole = true;
  while (first < MaxDimension && (box.Extent(first) == 1 || (whole && view.stride[first] == count)))
  {
    whole = whole && box.Extent(first) == extent[first];
    count *= box.Extent(first);
    ++first;
  }
  const Coordinates strides = DenseStrides(extent);
  const std::size_t size = PixelSize(view.kind);
  Coordinates       index = box.lower;
  for (;;)
  {
    std::int64_t voxel = 0;
    for (int a = 0; a < MaxDimension; ++a)
    {
      voxel += index[a] * strides[a];
    }
    f(voxel, static_cast<char *>(view.data) + view.Offset(index) * static_cast<std::int64_t>(size), count);
    int a = first;
    for (; a < MaxDimension; ++a)
    {
      if (++index[a] < box.upper[a])
      {
        break;
      }
      index[a] = box.lower[a];
    }
    if (a >= MaxDimension)
    {
      return;
    }
  }
}

/** So much is read or written and swapped at once, that it stays in the cache of a core. */
constexpr std::size_t SwapBytesAtOnce = std::size_t{ 512 } << 10;
/** Pieces of memory that one call reads into or writes from. */
constexpr std::size_t PiecesAtOnce = 512;

/** Copies `box` from one view to another of the same kind. */
void
CopyBox(const Box & box, const BufferView & from, const BufferView & to);

/** The bytes that are read, or written, at a time if voxels have another order in a file than in memory. */
constexpr std::uint64_t PieceBytes = std::uint64_t{ 4 } << 20;

/** Calls body(part) for parts of a box that take at most PieceBytes, or are one row. */
template <typename TBody>
void
ForEachPiece(const Box & box, PixelType kind, const TBody & body)
{
  if (static_cast<std::uint64_t>(box.NumberOfVoxels()) * PixelSize(kind) > PieceBytes)
  {
    for (int a = MaxDimension - 1; a > 0; --a)
    {
      if (box.Extent(a) > 1)
      {
        Box before = box;
        Box after = box;
        before.upper[a] = after.lower[a] = box.lower[a] + box.Extent(a) / 2;
        ForEachPiece(before, kind, body);
        ForEachPiece(after, kind, body);
        return;
      }
    }
  }
  body(box);
}

/** Whether the voxels of `box` are dense in `view`. */
inline bool
IsDense(const Box & box, const BufferView & view)
{
  std::int64_t count = 1;
  for (int a = 0; a < MaxDimension; ++a)
  {
    if (box.Extent(a) > 1 && view.stride[a] != count)
    {
      return false;
    }
    count *= box.Extent(a);
  }
  return true;
}

/** Calls `f` with the dense voxels of `box`, as a library wants them. */
template <typename TFunctor>
void
WithDense(const Box & box, const BufferView & view, bool copiesIn, bool copiesOut, TFunctor && f)
{
  if (IsDense(box, view))
  {
    f(static_cast<char *>(view.data) + view.Offset(box.lower) * static_cast<std::int64_t>(PixelSize(view.kind)));
    return;
  }
  std::vector<char> voxels(static_cast<std::size_t>(box.NumberOfVoxels()) * PixelSize(view.kind));
  const BufferView  dense = DenseView(voxels.data(), view.kind, box);
  if (copiesIn)
  {
    CopyBox(box, view, dense);
  }
  f(voxels.data());
  if (copiesOut)
  {
    CopyBox(box, dense, view);
  }
}

/** How voxels lie in a file, and what becomes of them. */
struct VoxelCoding
{
  /** In the file. */
  PixelType kind{ PixelType::UInt8 };
  bool      swaps{ false };
  /** value * slope + intercept where `scales`, as ITK computes it. */
  bool   scales{ false };
  double slope{ 1 };
  double intercept{ 0 };

  /** From `count` voxels as they are in the file to the image's kind. `from` is used up. */
  void
  Decode(void * from, void * to, PixelType toKind, std::size_t count) const;
  /** Whether Decode does its work in the image's own memory. */
  bool
  IsInPlace() const
  {
    return !scales;
  }
};

} // namespace chunkwise::files

#endif
