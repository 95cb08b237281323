/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseGeometry_h
#define itkChunkwiseGeometry_h

#include "ChunkwiseExport.h"
#include "chunkwiseOperation.h"
#include "itkImageRegion.h"

namespace itk
{

/** A region in the engine's coordinates, where the voxel `origin` (the first of the largest possible region) is 0.
 * \ingroup Chunkwise */
template <unsigned int VDimension>
chunkwise::Box
ChunkwiseBoxFromRegion(const ImageRegion<VDimension> & region, const Index<VDimension> & origin)
{
  static_assert(VDimension <= chunkwise::MaxDimension, "at most five dimensions");
  chunkwise::Box box = chunkwise::Box::FromExtent(chunkwise::Coordinates::Filled(1));
  for (unsigned int a = 0; a < VDimension; ++a)
  {
    box.lower[a] = static_cast<std::int64_t>(region.GetIndex(a)) - origin[a];
    box.upper[a] = box.lower[a] + static_cast<std::int64_t>(region.GetSize(a));
  }
  return box;
}

/** The inverse of ChunkwiseBoxFromRegion.
 * \ingroup Chunkwise */
template <unsigned int VDimension>
ImageRegion<VDimension>
ChunkwiseRegionFromBox(const chunkwise::Box & box, const Index<VDimension> & origin)
{
  ImageRegion<VDimension> region;
  for (unsigned int a = 0; a < VDimension; ++a)
  {
    region.SetIndex(a, static_cast<IndexValueType>(box.lower[a]) + origin[a]);
    region.SetSize(a, static_cast<SizeValueType>(box.Extent(a)));
  }
  return region;
}

/** A view of a dense buffer of pixels with so many components side by side, 0 or 1 for numbers, which it has along an
 * axis that the pixels' box has not.
 * \ingroup Chunkwise */
Chunkwise_EXPORT chunkwise::BufferView
                 ChunkwiseViewOfPixels(void * pixels, chunkwise::PixelType kind, const chunkwise::Box & box, int axis,
                                       std::int64_t components);

/** The part of the input that `output` needs: padded by the operation's halo and cut at the image; where windows wrap
 * around and leave the image, the whole axis. Empty if `output` is; empty or not inside the image if `output` lies
 * outside it.
 * \ingroup Chunkwise */
Chunkwise_EXPORT chunkwise::Box
ChunkwiseInputBox(const chunkwise::Operation & operation, const chunkwise::Box & output, const chunkwise::Box & image);

} // namespace itk

#endif
