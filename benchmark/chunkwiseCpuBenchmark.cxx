/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Times the filters on the CPU beside ITK's own on the same image and threads. Arguments: an image, threads (2), --csv
// FILE. --small-windows: medians of small windows and non-local means alone, in seconds of the processor a thread,
// which others on the machine do not lengthen as they do what a clock on the wall says.
#include "chunkwiseBenchmarkReport.h"
#include "itkPrunedFFTConvolutionImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMaximumImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkRenormalizedNonLocalMeansImageFilter.h"

#include "itkBoxMeanImageFilter.h"
#include "itkDiscreteGaussianImageFilter.h"
#include "itkCastImageFilter.h"
#include "itkFFTConvolutionImageFilter.h"
#include "itkFlatStructuringElement.h"
#include "itkGrayscaleDilateImageFilter.h"
#include "itkImageFileReader.h"
#include "itkMeanImageFilter.h"
#include "itkMedianImageFilter.h"
#include "itkRankImageFilter.h"

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <random>
#include <string>
#include <vector>

using chunkwise::MedianSeconds;
using chunkwise::Reference;

namespace
{

using ImageType = itk::Image<float, 3>;

/** Whether times are the processor's. */
bool takesProcessorTime = false;

template <typename TFilter>
double
Time(TFilter * filter, typename TFilter::InputImageType * image, unsigned int threads, int repeats)
{
  filter->SetInput(image);
  filter->SetNumberOfWorkUnits(threads);
  const auto update = [&] {
    filter->Modified();
    filter->Update();
  };
  if (!takesProcessorTime)
  {
    return MedianSeconds(repeats, update);
  }
  double best = 0;
  for (int i = 0; i < repeats; ++i)
  {
    const std::clock_t begin = std::clock();
    update();
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC / threads;
    best = i == 0 ? seconds : std::min(best, seconds);
  }
  return best;
}

ImageType::Pointer
MakeKernel(itk::SizeValueType size)
{
  const auto kernel = ImageType::New();
  kernel->SetRegions(ImageType::SizeType{ { size, size, size } });
  kernel->Allocate();
  for (std::size_t i = 0; i < kernel->GetPixelContainer()->Size(); ++i)
  {
    kernel->GetBufferPointer()[i] = 1.0f + static_cast<float>(i % 7);
  }
  return kernel;
}

template <typename TFilter>
double
TimeConvolution(ImageType * image, ImageType * kernel, unsigned int threads, int repeats)
{
  const auto filter = TFilter::New();
  filter->SetKernelImage(kernel);
  filter->NormalizeOn();
  return Time(filter.GetPointer(), image, threads, repeats);
}

/** A median of voxels of some kind beside both of ITK's. */
template <typename TPixel, typename TRow>
void
MedianRow(ImageType * image, itk::SizeValueType radius, const char * kind, unsigned int threads, TRow && row)
{
  using Image = itk::Image<TPixel, 3>;
  const auto cast = itk::CastImageFilter<ImageType, Image>::New();
  cast->SetInput(image);
  cast->Update();
  const auto ours = itk::RenormalizedMedianImageFilter<Image>::New();
  ours->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
  ours->SetRadius(radius);
  const auto median = itk::MedianImageFilter<Image, Image>::New();
  median->SetRadius(radius);
  using Element = itk::FlatStructuringElement<3>;
  const auto rank = itk::RankImageFilter<Image, Image, Element>::New();
  rank->SetKernel(Element::Box(Element::RadiusType{ { radius, radius, radius } }));
  row("median, radius " + std::to_string(radius),
      kind,
      Time(ours.GetPointer(), cast->GetOutput(), threads, 5),
      { { Time(rank.GetPointer(), cast->GetOutput(), threads, 1), "itk::RankImageFilter" },
        { Time(median.GetPointer(), cast->GetOutput(), threads, 1), "itk::MedianImageFilter" } });
}

/** Medians of small windows, and non-local means of noise; for the latter scripts/cpu_peers.py has the peer. */
template <typename TRow>
void
SmallWindowRows(ImageType * image, unsigned int threads, TRow && row)
{
  for (const itk::SizeValueType radius : { 1, 2 })
  {
    MedianRow<unsigned char>(image, radius, "uint8", threads, row);
    MedianRow<unsigned short>(image, radius, "uint16", threads, row);
    MedianRow<float>(image, radius, "float32", threads, row);
  }
}

void
NonLocalMeansRow(chunkwise::Report & report, unsigned int threads)
{
  const auto noise = ImageType::New();
  noise->SetRegions(ImageType::SizeType{ { 128, 128, 128 } });
  noise->Allocate();
  std::mt19937 random(1);
  for (std::size_t i = 0; i < noise->GetPixelContainer()->Size(); ++i)
  {
    noise->GetBufferPointer()[i] = static_cast<float>(random() % 10000) / 100;
  }
  const auto means = itk::RenormalizedNonLocalMeansImageFilter<ImageType>::New();
  means->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
  means->SetRadius(2);
  means->SetPatchRadius(1);
  means->SetStrength(20);
  report.Add("cpu",
             "non-local means, search 5^3, patch 3^3; 128^3 float32",
             Time(means.GetPointer(), noise.GetPointer(), threads, 5) * 1e3,
             "ms");
}

/** Seconds to copy the image once with all threads: what reading and writing it costs at least. */
double
CopyTime(const ImageType * image, unsigned int threads)
{
  const std::size_t  n = image->GetPixelContainer()->Size();
  std::vector<float> copy(n);
  const auto         executor = chunkwise::MakeThreadExecutor(threads);
  return MedianSeconds(
    5, [&] { chunkwise::CopyInParts(*executor, copy.data(), image->GetBufferPointer(), n * sizeof(float)); });
}

} // namespace

int
main(int argc, char * argv[])
{
  chunkwise::Report report(argc, argv);
  for (int i = 1; i < argc; ++i)
  {
    if (std::string(argv[i]) == "--small-windows")
    {
      takesProcessorTime = true;
      std::rotate(argv + i, argv + i + 1, argv + argc--);
    }
  }
  if (argc < 2)
  {
    std::fprintf(stderr, "usage: %s IMAGE [THREADS] [--small-windows] [--csv FILE]\n", argv[0]);
    return 2;
  }
  const auto threads = static_cast<unsigned int>(argc > 2 ? std::atoi(argv[2]) : 2);
  itk::MultiThreaderBase::SetGlobalMaximumNumberOfThreads(threads);
  itk::MultiThreaderBase::SetGlobalDefaultNumberOfThreads(threads);
  const ImageType::Pointer image = itk::ReadImage<ImageType>(argv[1]);
  const double             limit = CopyTime(image, threads);

  const auto        size = image->GetLargestPossibleRegion().GetSize();
  const std::string name = chunkwise::SizeName({ { static_cast<std::int64_t>(size[0]),
                                                   static_cast<std::int64_t>(size[1]),
                                                   static_cast<std::int64_t>(size[2]),
                                                   1,
                                                   1 } });
  const std::string stem = chunkwise::StemOf(argv[1]);
  report.SetHost(threads);
  report.Print(name + ", " + stem);
  const auto row = [&](const std::string & what, const std::string & kind, double ours, std::vector<Reference> peers) {
    for (Reference & peer : peers)
    {
      peer.value *= 1e3;
    }
    // The copy is of floats, and its time the wall's.
    const Reference copy{ kind == "float32" && !takesProcessorTime ? limit * 1e3 : 0, "a copy" };
    report.Add("cpu", chunkwise::RowName(what, name + " " + kind + ", " + stem), ours * 1e3, "ms", peers, copy);
  };
  SmallWindowRows(image, threads, row);
  NonLocalMeansRow(report, threads);
  if (takesProcessorTime)
  {
    return 0;
  }

  using OurMean = itk::RenormalizedMeanImageFilter<ImageType, ImageType>;
  using OurGaussian = itk::RenormalizedGaussianImageFilter<ImageType, ImageType>;
  const auto mean = OurMean::New();
  mean->SetBackend(OurMean::BackendEnum::CPU);
  mean->SetRadius(2);
  const double ourMean = Time(mean.GetPointer(), image, threads, 5);

  const auto gaussian = OurGaussian::New();
  gaussian->SetBackend(OurGaussian::BackendEnum::CPU);
  gaussian->SetUseImageSpacing(false);
  gaussian->SetKernel(OurGaussian::KernelEnum::Discrete);
  gaussian->SetMaximumError(0.01);
  gaussian->SetVariance(4.0);
  const double ourGaussian = Time(gaussian.GetPointer(), image, threads, 5);

  const auto itkMean = itk::MeanImageFilter<ImageType, ImageType>::New();
  itkMean->SetRadius(2);
  const auto itkBoxMean = itk::BoxMeanImageFilter<ImageType, ImageType>::New();
  itkBoxMean->SetRadius(2);
  const auto itkGaussian = itk::DiscreteGaussianImageFilter<ImageType, ImageType>::New();
  itkGaussian->SetUseImageSpacing(false);
  itkGaussian->SetMaximumError(0.01);
  itkGaussian->SetVariance(4.0);
  const double peerMean = Time(itkMean.GetPointer(), image, threads, 3);
  const double peerBoxMean = Time(itkBoxMean.GetPointer(), image, threads, 3);
  const double peerGaussian = Time(itkGaussian.GetPointer(), image, threads, 3);

  using OurConvolution = itk::PrunedFFTConvolutionImageFilter<ImageType>;
  using ItkFloatConvolution = itk::FFTConvolutionImageFilter<ImageType, ImageType, ImageType, float>;
  using ItkConvolution = itk::FFTConvolutionImageFilter<ImageType>;
  const auto   kernel = MakeKernel(31);
  const double ourConvolution = TimeConvolution<OurConvolution>(image, kernel, threads, 5);
  const double peerFloatConvolution = TimeConvolution<ItkFloatConvolution>(image, kernel, threads, 3);
  const double peerConvolution = TimeConvolution<ItkConvolution>(image, kernel, threads, 3);
  using OurMaximum = itk::RenormalizedMaximumImageFilter<ImageType, ImageType>;
  const auto maximum = OurMaximum::New();
  maximum->SetBackend(OurMaximum::BackendEnum::CPU);
  maximum->SetRadius(2);
  const double ourMaximum = Time(maximum.GetPointer(), image, threads, 5);
  using Element = itk::FlatStructuringElement<3>;
  const auto itkDilate = itk::GrayscaleDilateImageFilter<ImageType, ImageType, Element>::New();
  itkDilate->SetKernel(Element::Box(ImageType::SizeType{ { 2, 2, 2 } }));
  const double peerDilate = Time(itkDilate.GetPointer(), image, threads, 3);

  const std::string kind = "float32";
  row("mean, radius 2",
      kind,
      ourMean,
      { { peerBoxMean, "itk::BoxMeanImageFilter" }, { peerMean, "itk::MeanImageFilter" } });
  row("maximum, radius 2", kind, ourMaximum, { { peerDilate, "itk::GrayscaleDilateImageFilter" } });
  row("Gaussian, sigma 2", kind, ourGaussian, { { peerGaussian, "itk::DiscreteGaussianImageFilter" } });
  row("convolution 31^3 through transforms",
      kind,
      ourConvolution,
      { { peerFloatConvolution, "itk::FFTConvolutionImageFilter, float" },
        { peerConvolution, "itk::FFTConvolutionImageFilter, double" } });
  MedianRow<unsigned char>(image, 5, "uint8", threads, row);
  MedianRow<unsigned short>(image, 5, "uint16", threads, row);
  MedianRow<float>(image, 5, "float32", threads, row);
  for (const itk::SizeValueType extent : { 3, 5, 7, 9 })
  {
    const auto   small = MakeKernel(extent);
    double       seconds[2];
    unsigned int i = 0;
    for (const auto method : { OurConvolution::MethodEnum::Direct, OurConvolution::MethodEnum::FFT })
    {
      const auto filter = OurConvolution::New();
      filter->SetKernelImage(small);
      filter->SetMethod(method);
      seconds[i++] = Time(filter.GetPointer(), image, threads, 3);
    }
    row("few weights directly; " + std::to_string(extent) + "^3",
        kind,
        seconds[0],
        { { seconds[1], "through transforms" } });
  }
  return 0;
}
