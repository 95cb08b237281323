/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// A library that uses ITK and knows nothing of Chunkwise, as a module of Python does: dropInPython.py.
#include "itkImage.h"
#include "itkMedianImageFilter.h"

/** The median, of radius 1, of a cube of shorts; the name of the class that did it. */
extern "C" __attribute__((visibility("default"))) const char *
MedianOfCube(const short * voxels, short * result, unsigned int extent)
{
  using ImageType = itk::Image<short, 3>;
  const auto image = ImageType::New();
  image->SetRegions(ImageType::SizeType::Filled(extent));
  image->Allocate();
  const auto count = image->GetBufferedRegion().GetNumberOfPixels();
  std::copy_n(voxels, count, image->GetBufferPointer());
  const auto filter = itk::MedianImageFilter<ImageType, ImageType>::New();
  filter->SetInput(image);
  filter->Update();
  std::copy_n(filter->GetOutput()->GetBufferPointer(), count, result);
  return typeid(*filter).name();
}
