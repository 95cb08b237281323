/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHostCopy_h
#define chunkwiseHostCopy_h

#include "chunkwiseGeometry.h"

#include <vector>

namespace chunkwise
{

/** The bytes of a box of a strided image as one dense sequence, x fastest, of which any range can be copied.
 *
 * The box may reach beyond the image, into which it then wraps around. The voxels of a row may lie apart, as those of
 * one component do where pixels have several; ranges then begin and end with voxels. */
class Chunkwise_EXPORT DenseSequence
{
public:
  /** `view` must hold the box, wrapped into `image`. */
  DenseSequence(const BufferView & view, const Box & box, const Box & image);

  std::size_t
  GetNumberOfBytes() const
  {
    return m_Bytes;
  }
  /** Copies bytes [begin, end) of the sequence to `to`. */
  void
  Gather(std::size_t begin, std::size_t end, void * to) const;
  /** Copies `from` to bytes [begin, end) of the sequence, past the caches where that pays. */
  void
  Scatter(std::size_t begin, std::size_t end, const void * from) const;
  struct Stretch
  {
    char *      address;
    std::size_t at; ///< from `begin` on
    std::size_t bytes;
  };
  /** The stretches of bytes [begin, end): one piece, or stretches of the image that have at least `least` bytes
   * wherever they are not cut by `begin` or `end`. Empty if they lie in shorter ones. */
  std::vector<Stretch>
  FindStretches(std::size_t begin, std::size_t end, std::size_t least) const;
  /** The address of bytes [begin, end) if they are one piece of the image, else nullptr. */
  char *
  FindContiguous(std::size_t begin, std::size_t end) const;

private:
  template <typename TVisitor>
  void
  ForEachPiece(std::size_t begin, std::size_t end, TVisitor && visit) const;
  /** For rows whose voxels lie apart: calls visit(first voxel, place in the sequence, voxels) for pieces of one row. */
  template <typename TVisitor>
  void
  ForEachVoxelPiece(std::size_t begin, std::size_t end, TVisitor && visit) const;
  char *
  AddressOf(std::int64_t run) const;

  BufferView  m_View;
  Box         m_Box;
  Box         m_Image;
  std::size_t m_PixelBytes;
  std::size_t m_Bytes;
  /** Axes below this one are contiguous together with it. */
  int          m_RunAxis;
  std::size_t  m_RunBytes;
  std::int64_t m_RunPixels;
  bool         m_WrapsWithinRun;
  /** The voxels of a row lie apart. */
  bool m_IsApart;
};

} // namespace chunkwise

#endif
