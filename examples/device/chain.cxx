/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Filters that hand their images on in the memory of a GPU, if there is one: the same bits without a way through the
// host.
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"

#include <algorithm>
#include <iostream>

int
main()
{
  using ImageType = itk::Image<float, 3>;
  const auto image = ImageType::New();
  image->SetRegions(ImageType::SizeType{ { 96, 80, 64 } });
  image->Allocate();
  float value = 0;
  std::generate_n(image->GetBufferPointer(), 96 * 80 * 64, [&value] { return value = value < 100 ? value + 7 : 0; });

  ImageType::Pointer results[2];
  for (const bool onDevice : { false, true })
  {
    const auto mean = itk::RenormalizedMeanImageFilter<ImageType>::New();
    mean->SetInput(image);
    mean->SetRadius(2);
    mean->SetOutputOnDevice(onDevice);
    const auto gaussian = itk::RenormalizedGaussianImageFilter<ImageType>::New();
    gaussian->SetInput(mean->GetOutput());
    gaussian->SetSigma(1.5);
    gaussian->SetOutputOnDevice(onDevice);
    const auto median = itk::RenormalizedMedianImageFilter<ImageType>::New();
    median->SetInput(gaussian->GetOutput());
    median->SetRadius(1);
    median->Update();
    results[onDevice] = median->GetOutput();
    std::cout << "on " << median->GetBackendUsed() << ", the mean "
              << (mean->IsOutputOnDevice() ? "stayed on the device" : "came to the host") << std::endl;
    // Whoever updates the filter gets its voxels.
    mean->Update();
    if (mean->GetOutput()->GetBufferedRegion() != image->GetBufferedRegion())
    {
      return 1;
    }
  }
  const float * const first = results[0]->GetBufferPointer();
  return std::equal(first, first + 96 * 80 * 64, results[1]->GetBufferPointer()) ? 0 : 1;
}
