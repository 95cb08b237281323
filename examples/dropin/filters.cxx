/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// An ITK program that knows nothing of Chunkwise: a median, an opening, h-maxima and a mean of a volume of shorts, the
// time of each, and a checksum of its voxels. Run it as it is, and with ITK_AUTOLOAD_PATH naming the folder of
// Chunkwise's plug-in: docs/dropin.md.
#include "itkFlatStructuringElement.h"
#include "itkGrayscaleMorphologicalOpeningImageFilter.h"
#include "itkHMaximaImageFilter.h"
#include "itkImageFileReader.h"
#include "itkMeanImageFilter.h"
#include "itkMedianImageFilter.h"
#include "itkMultiThreaderBase.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace
{

using ImageType = itk::Image<short, 3>;

/** FNV-1a of the voxels. */
std::uint64_t
Checksum(const ImageType & image)
{
  std::uint64_t       sum = 14695981039346656037ULL;
  const auto * const  bytes = reinterpret_cast<const unsigned char *>(image.GetBufferPointer());
  const std::uint64_t count = image.GetBufferedRegion().GetNumberOfPixels() * sizeof(short);
  for (std::uint64_t i = 0; i < count; ++i)
  {
    sum = (sum ^ bytes[i]) * 1099511628211ULL;
  }
  return sum;
}

/** Runs a filter and prints "NAME SECONDS CHECKSUM". */
template <typename TFilter>
double
Run(const char * name, TFilter & filter, const ImageType * input)
{
  filter.SetInput(input);
  const auto begin = std::chrono::steady_clock::now();
  filter.Update();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  std::cout << name << ' ' << seconds << ' ' << Checksum(*filter.GetOutput()) << std::endl;
  return seconds;
}

} // namespace

int
main(int argc, char ** argv)
{
  if (argc < 2 || argc > 3)
  {
    std::cerr << "Usage: " << argv[0] << " IMAGE [THREADS]\n";
    return 2;
  }
  try
  {
    if (argc > 2)
    {
      itk::MultiThreaderBase::SetGlobalMaximumNumberOfThreads(static_cast<itk::ThreadIdType>(std::atoi(argv[2])));
      itk::MultiThreaderBase::SetGlobalDefaultNumberOfThreads(static_cast<itk::ThreadIdType>(std::atoi(argv[2])));
    }
    const auto image = itk::ReadImage<ImageType>(argv[1]);

    const auto median = itk::MedianImageFilter<ImageType, ImageType>::New();
    median->SetRadius(2);
    double seconds = Run("median", *median, image);

    using Element = itk::FlatStructuringElement<3>;
    const auto opening = itk::GrayscaleMorphologicalOpeningImageFilter<ImageType, ImageType, Element>::New();
    opening->SetKernel(Element::Ball(Element::RadiusType::Filled(3)));
    seconds += Run("opening", *opening, image);

    const auto maxima = itk::HMaximaImageFilter<ImageType, ImageType>::New();
    maxima->SetHeight(20);
    seconds += Run("h-maxima", *maxima, image);

    const auto mean = itk::MeanImageFilter<ImageType, ImageType>::New();
    mean->SetRadius(3);
    seconds += Run("mean", *mean, image);

    std::cout << "all " << seconds << std::endl;
  }
  catch (const itk::ExceptionObject & error)
  {
    std::cerr << error << std::endl;
    return 1;
  }
  return 0;
}
