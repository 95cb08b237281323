/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef itkChunkwiseMeasurementSpace_h
#define itkChunkwiseMeasurementSpace_h

#include "chunkwiseMeasurements.h"
#include "itkChunkwiseGeometry.h"

namespace itk
{

/** Origin, spacing and directions of an image; index 0 of the engine is where its largest possible region begins. */
template <typename TImage>
chunkwise::MeasurementSpace
MakeChunkwiseMeasurementSpace(const TImage & image)
{
  const auto first = image.template TransformIndexToPhysicalPoint<double>(image.GetLargestPossibleRegion().GetIndex());
  chunkwise::MeasurementSpace space;
  for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
  {
    space.spacing[a] = image.GetSpacing()[a];
    space.origin[a] = first[a];
    for (unsigned int b = 0; b < TImage::ImageDimension; ++b)
    {
      space.direction[a][b] = image.GetDirection()[a][b];
    }
  }
  return space;
}

/** The extent of an image to measure. Nothing is read of an image without voxels, and it has no objects: it has one. */
template <typename TImage>
chunkwise::Coordinates
MakeChunkwiseMeasuredExtent(const TImage & image)
{
  const auto & region = image.GetLargestPossibleRegion();
  return region.GetNumberOfPixels() == 0 ? chunkwise::Coordinates::Filled(1)
                                         : ChunkwiseBoxFromRegion(region, region.GetIndex()).Extents();
}

/** The buffer of an image. The engine only reads its inputs; its views serve both directions. */
template <typename TImage>
chunkwise::BufferView
MakeChunkwiseBufferView(const TImage & image)
{
  using PixelType = typename TImage::PixelType;
  return chunkwise::DenseView(
    const_cast<PixelType *>(image.GetBufferPointer()),
    chunkwise::PixelTypeOf<PixelType>(),
    ChunkwiseBoxFromRegion(image.GetBufferedRegion(), image.GetLargestPossibleRegion().GetIndex()));
}

} // namespace itk

#endif
