/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedMeanImageFilter.h"

#include "itkImageRegionIteratorWithIndex.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>

/* The mean over 3 x 3 windows of a ramp, against its definition: the mean of those voxels that are inside. */
int
main()
{
  using ImageType = itk::Image<float, 2>;
  using FilterType = itk::RenormalizedMeanImageFilter<ImageType, ImageType>;
  const ImageType::SizeType size{ { 9, 6 } };

  auto image = ImageType::New();
  image->SetRegions(size);
  image->Allocate();
  itk::ImageRegionIteratorWithIndex<ImageType> input(image, image->GetBufferedRegion());
  for (; !input.IsAtEnd(); ++input)
  {
    input.Set(static_cast<float>(input.GetIndex()[0] + 10 * input.GetIndex()[1]));
  }

  auto filter = FilterType::New();
  filter->SetInput(image);
  filter->SetRadius(1);
  filter->Update();

  itk::ImageRegionIteratorWithIndex<ImageType> output(filter->GetOutput(), filter->GetOutput()->GetBufferedRegion());
  for (; !output.IsAtEnd(); ++output)
  {
    const auto center = output.GetIndex();
    double     sum = 0.0;
    int        count = 0;
    for (itk::IndexValueType y = std::max<itk::IndexValueType>(center[1] - 1, 0);
         y <= std::min<itk::IndexValueType>(center[1] + 1, size[1] - 1);
         ++y)
    {
      for (itk::IndexValueType x = std::max<itk::IndexValueType>(center[0] - 1, 0);
           x <= std::min<itk::IndexValueType>(center[0] + 1, size[0] - 1);
           ++x)
      {
        sum += x + 10 * y;
        ++count;
      }
    }
    if (std::abs(output.Get() - sum / count) > 1e-5 * sum / count + 1e-6)
    {
      std::cerr << "at " << center << ": " << output.Get() << " instead of " << sum / count << '\n';
      return EXIT_FAILURE;
    }
  }
  return EXIT_SUCCESS;
}
