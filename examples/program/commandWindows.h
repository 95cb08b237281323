/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef commandWindows_h
#define commandWindows_h

#include "chunkwiseImageSource.h"

#include <memory>

namespace command
{

/** Bytes that are read, converted or written between two looks at whether a signal came. */
constexpr std::uint64_t PieceBytes = std::uint64_t{ 8 } << 20;

/** What of `box` has one plane more along `axis`, as long as its voxels take no more than PieceBytes. */
std::int64_t
PlanesOfAPiece(const chunkwise::Box & box, int axis, chunkwise::PixelKind kind);

/** The part of an image that is in memory while a division is computed. The next one keeps the planes that both have,
 * so that each voxel is read once. */
class InputWindow
{
public:
  /** `kind`: what voxels are converted to. Divisions follow each other along `axis`. */
  InputWindow(chunkwise::ImageSource & source, chunkwise::PixelKind kind, int axis);

  /** Bytes of memory that a box takes. */
  std::uint64_t
  GetBytes(const chunkwise::Box & box) const;
  /** Takes the memory of the largest box once. */
  void
  Allocate(std::uint64_t bytes);
  /** Reads what is missing of the box. Throws Interrupted. */
  chunkwise::BufferView
  Load(const chunkwise::Box & box);
  chunkwise::PixelKind
  GetKind() const
  {
    return m_Kind;
  }

private:
  void
  Read(const chunkwise::Box & box);

  chunkwise::ImageSource *         m_Source;
  chunkwise::PixelKind             m_Kind;
  int                              m_Axis;
  std::unique_ptr<unsigned char[]> m_Memory;
  chunkwise::BufferView            m_View{};
};

/** Voxels of one kind as another, in place of nothing: rounded to nearest, ties to even, and cut where the kind ends.
 * Returns how many voxels were cut; a NaN that becomes an integer is 0 and counts. Both views are dense. */
std::int64_t
ConvertVoxels(const chunkwise::BufferView & from, const chunkwise::BufferView & to);

/** How many voxels have the lowest or the highest value of their integer kind. */
std::int64_t
CountVoxelsAtLimits(const chunkwise::BufferView & view);

/** Writes a dense view piece by piece, as the sink's kind. Returns how many voxels were cut. */
std::int64_t
WriteVoxels(chunkwise::ImageSink & sink, const chunkwise::BufferView & view, const chunkwise::Coordinates & offset,
            int axis);

/** `box` moved by `offset`. */
chunkwise::Box
Moved(chunkwise::Box box, const chunkwise::Coordinates & offset);

} // namespace command

#endif
