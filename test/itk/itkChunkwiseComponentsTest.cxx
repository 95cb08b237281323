/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Images whose pixels have components: each gets the result of a separate image, in one run.
#include "itkBoxStatisticImageFilter.h"
#include "itkChunkwiseDifferenceImageFilter.h"
#include "itkChunkwiseSequenceImageFilter.h"
#include "itkHeapReconstructionByDilationImageFilter.h"
#include "itkHeapRegionalMaximaImageFilter.h"
#include "itkPrunedFFTConvolutionImageFilter.h"
#include "itkRenormalizedEntropyImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMaximumImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkRenormalizedSumImageFilter.h"
#include "itkRenormalizedVarianceImageFilter.h"
#include "itkRenormalizedWienerImageFilter.h"
#include "itkSummedAreaTableImageFilter.h"

#include "itkChunkwiseTestImages.h"

#include "itkCommand.h"
#include "itkCovariantVector.h"
#include "itkRGBAPixel.h"
#include "itkRGBPixel.h"
#include "itkStreamingImageFilter.h"
#include "itkVector.h"

#include <gtest/gtest.h>

namespace ChunkwiseComponentsTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using chunkwisetest::MessageOf;
using Bytes = itk::Image<unsigned char, 3>;
using Floats = itk::Image<float, 3>;
using Colors = itk::Image<itk::RGBPixel<unsigned char>, 3>;
using Vectors = itk::VectorImage<float, 3>;

template <typename TImage>
using Component = typename itk::ChunkwiseImagePixel<TImage>::ComponentType;

/** The image of one component of an image's buffer. */
template <typename TImage>
auto
ComponentOf(const TImage & image, unsigned int c, unsigned int components)
{
  using OneType = itk::Image<Component<TImage>, TImage::ImageDimension>;
  const auto one = OneType::New();
  one->CopyInformation(&image);
  one->SetRegions(image.GetBufferedRegion());
  one->SetLargestPossibleRegion(image.GetLargestPossibleRegion());
  one->Allocate();
  const auto * const all = reinterpret_cast<const Component<TImage> *>(image.GetBufferPointer());
  for (itk::SizeValueType i = 0; i < image.GetBufferedRegion().GetNumberOfPixels(); ++i)
  {
    one->GetBufferPointer()[i] = all[i * components + c];
  }
  return one;
}

/** Random pixels at a region that does not begin at 0. */
template <typename TImage>
typename TImage::Pointer
MakePixels(unsigned int components, unsigned int seed)
{
  const auto image = TImage::New();
  const auto like =
    MakeRandomImage<itk::Image<float, TImage::ImageDimension>>(MakeRegion<TImage>({ -5, 20, 3 }, { 23, 14, 11 }), seed);
  image->CopyInformation(like);
  image->SetRegions(like->GetBufferedRegion());
  image->SetNumberOfComponentsPerPixel(components);
  image->Allocate();
  std::mt19937 random(seed);
  auto * const all = reinterpret_cast<Component<TImage> *>(image->GetBufferPointer());
  for (itk::SizeValueType i = 0; i < components * image->GetBufferedRegion().GetNumberOfPixels(); ++i)
  {
    all[i] = static_cast<Component<TImage>>(random() % 256);
  }
  return image;
}

/** Compares a filter of pixels with components with one of a component, whole, in streamed divisions and for a region.
 * `set` sets the parameters, and further inputs of scalars, of both. */
template <typename TFilter, typename TOneFilter, typename TSet>
void
Compare(const TFilter & filter, const TOneFilter & one, unsigned int components, TSet && set)
{
  using Image = typename TFilter::ObjectType::InputImageType;
  using Output = typename TFilter::ObjectType::OutputImageType;
  const auto input = MakePixels<Image>(components, 5);
  filter->SetInput(input);
  set(filter);
  set(one);
  const auto compare = [&](const Output & output, const char * which) {
    const auto region = output.GetBufferedRegion();
    EXPECT_EQ(output.GetNumberOfComponentsPerPixel(), components);
    for (unsigned int c = 0; c < components; ++c)
    {
      one->SetInput(ComponentOf(*input, c, components));
      one->Update();
      EXPECT_EQ(
        chunkwisetest::CountDifferentVoxels(ComponentOf(output, c, components).GetPointer(), one->GetOutput(), region),
        0u)
        << filter->GetNameOfClass() << ", component " << c << ", " << which;
    }
  };
  filter->Update();
  compare(*filter->GetOutput(), "whole");
  const auto streaming = itk::StreamingImageFilter<Output, Output>::New();
  streaming->SetInput(filter->GetOutput());
  streaming->SetNumberOfStreamDivisions(4);
  filter->Modified();
  streaming->Update();
  compare(*streaming->GetOutput(), "streamed");
  const auto part = MakeRegion<Output>({ -2, 22, 5 }, { 9, 7, 4 });
  filter->Modified();
  filter->GetOutput()->SetRequestedRegion(part);
  filter->GetOutput()->ReleaseData();
  filter->GetOutput()->SetRequestedRegion(part);
  filter->GetOutput()->Update();
  compare(*filter->GetOutput(), "a region");
}

/** A filter over a box of colors and of vectors. */
template <template <typename, typename> class TFilter>
void
CompareBoxes()
{
  const auto set = [](const auto & filter) {
    filter->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
    filter->SetRadius(2);
  };
  Compare(TFilter<Colors, Colors>::New(), TFilter<Bytes, Bytes>::New(), 3, set);
  Compare(TFilter<Vectors, Vectors>::New(), TFilter<Floats, Floats>::New(), 2, set);
}

TEST(ChunkwiseComponents, BoxesGiveEachComponentWhatItHasAlone)
{
  CompareBoxes<itk::RenormalizedMeanImageFilter>();
  CompareBoxes<itk::RenormalizedMedianImageFilter>();
  CompareBoxes<itk::RenormalizedMaximumImageFilter>();
}

TEST(ChunkwiseComponents, AnyPixelWithComponentsAndItsOtherTypes)
{
  const auto set = [](const auto & filter) { filter->SetRadius(1); };
  Compare(itk::RenormalizedVarianceImageFilter<itk::Image<itk::RGBAPixel<unsigned short>, 3>,
                                               itk::Image<itk::Vector<float, 4>, 3>>::New(),
          itk::RenormalizedVarianceImageFilter<itk::Image<unsigned short, 3>, Floats>::New(),
          4,
          set);
  Compare(itk::RenormalizedSumImageFilter<Colors, itk::VectorImage<unsigned int, 3>>::New(),
          itk::RenormalizedSumImageFilter<Bytes, itk::Image<unsigned int, 3>>::New(),
          3,
          set);
  Compare(
    itk::RenormalizedMeanImageFilter<itk::VectorImage<float, 3>, itk::Image<itk::CovariantVector<double, 5>, 3>>::New(),
    itk::RenormalizedMeanImageFilter<Floats, itk::Image<double, 3>>::New(),
    5,
    set);
  Compare(itk::RenormalizedMaximumImageFilter<itk::VectorImage<short, 3>>::New(),
          itk::RenormalizedMaximumImageFilter<itk::Image<short, 3>>::New(),
          1,
          set);
}

TEST(ChunkwiseComponents, GaussiansTablesAndTransforms)
{
  Compare(itk::RenormalizedGaussianImageFilter<Vectors>::New(),
          itk::RenormalizedGaussianImageFilter<Floats>::New(),
          3,
          [](const auto & filter) { filter->SetSigma(1.5); });
  Compare(itk::SummedAreaTableImageFilter<Colors, itk::VectorImage<unsigned int, 3>>::New(),
          itk::SummedAreaTableImageFilter<Bytes, itk::Image<unsigned int, 3>>::New(),
          3,
          [](const auto & filter) { filter->SetSquares(true); });
  const auto kernel = MakeRandomImage<Floats>(MakeRegion<Floats>({ 0, 0, 0 }, { 5, 3, 3 }), 3);
  Compare(itk::PrunedFFTConvolutionImageFilter<Vectors, Floats, Vectors>::New(),
          itk::PrunedFFTConvolutionImageFilter<Floats, Floats, Floats>::New(),
          2,
          [&](const auto & filter) {
            filter->SetKernelImage(kernel);
            filter->SetMethod(std::remove_reference_t<decltype(*filter)>::MethodEnum::Direct);
          });
}

TEST(ChunkwiseComponents, MasksAndRadiiHoldForAllComponents)
{
  const auto mask = MakeRandomImage<Bytes>(MakeRegion<Bytes>({ -5, 20, 3 }, { 23, 14, 11 }), 5, 0, 1.6);
  Compare(itk::RenormalizedMeanImageFilter<Colors>::New(),
          itk::RenormalizedMeanImageFilter<Bytes>::New(),
          3,
          [&](const auto & filter) {
            filter->SetRadius(2);
            filter->SetMaskImage(mask);
          });
  const auto radii =
    MakeRandomImage<itk::Image<unsigned int, 3>>(MakeRegion<Bytes>({ -5, 20, 3 }, { 23, 14, 11 }), 5, 0, 3);
  Compare(itk::BoxStatisticImageFilter<Vectors, Vectors, itk::Image<unsigned int, 3>>::New(),
          itk::BoxStatisticImageFilter<Floats, Floats, itk::Image<unsigned int, 3>>::New(),
          3,
          [&](const auto & filter) {
            filter->SetRadius(3);
            filter->SetRadiusImage(radii);
          });
}

TEST(ChunkwiseComponents, SequencesAndExtrema)
{
  using Sequence = itk::ChunkwiseSequenceImageFilter<Colors, Colors>;
  using OneSequence = itk::ChunkwiseSequenceImageFilter<Bytes, Bytes>;
  const auto sequence = Sequence::New();
  const auto one = OneSequence::New();
  const auto ofColors = itk::RenormalizedMedianImageFilter<Colors>::New();
  const auto ofBytes = itk::RenormalizedMedianImageFilter<Bytes>::New();
  ofColors->SetRadius(1);
  ofBytes->SetRadius(1);
  sequence->AddFilter(ofColors);
  sequence->AddFilter(ofColors);
  one->AddFilter(ofBytes);
  one->AddFilter(ofBytes);
  Compare(sequence, one, 3, [](const auto &) {});
  Compare(itk::HeapRegionalMaximaImageFilter<Vectors, itk::VectorImage<unsigned char, 3>>::New(),
          itk::HeapRegionalMaximaImageFilter<Floats, Bytes>::New(),
          2,
          [](const auto & filter) { filter->SetForegroundValue(7); });
}

TEST(ChunkwiseComponents, MarkersAreOfTheMasksType)
{
  const auto mask = MakePixels<Colors>(3, 8);
  const auto marker = MakePixels<Colors>(3, 9);
  for (itk::SizeValueType i = 0; i < mask->GetBufferedRegion().GetNumberOfPixels(); ++i)
  {
    for (unsigned int c = 0; c < 3; ++c)
    {
      auto & value = marker->GetBufferPointer()[i][c];
      value = i % 97 == c ? std::min(value, mask->GetBufferPointer()[i][c]) : 0;
    }
  }
  const auto filter = itk::HeapReconstructionByDilationImageFilter<Colors>::New();
  filter->SetMarkerImage(marker);
  filter->SetMaskImage(mask);
  filter->StrictOn();
  filter->Update();
  for (unsigned int c = 0; c < 3; ++c)
  {
    const auto one = itk::HeapReconstructionByDilationImageFilter<Bytes>::New();
    one->SetMarkerImage(ComponentOf(*marker, c, 3));
    one->SetMaskImage(ComponentOf(*mask, c, 3));
    one->Update();
    EXPECT_EQ(chunkwisetest::CountDifferentVoxels(
                ComponentOf(*filter->GetOutput(), c, 3).GetPointer(), one->GetOutput(), mask->GetBufferedRegion()),
              0u);
  }
  // Strictness sees the last component too.
  marker->GetBufferPointer()[40][2] = 255;
  mask->GetBufferPointer()[40][2] = 3;
  marker->Modified();
  EXPECT_NE(MessageOf(*filter).find("MarkerImage: 255"), std::string::npos);
}

TEST(ChunkwiseComponents, ComplexNumbersGoThroughLinearFiltersPartByPart)
{
  using Complex = itk::Image<std::complex<float>, 3>;
  Compare(itk::RenormalizedGaussianImageFilter<Complex>::New(),
          itk::RenormalizedGaussianImageFilter<Floats>::New(),
          2,
          [](const auto & filter) { filter->SetSigma(1.1); });
  const auto median = itk::RenormalizedMedianImageFilter<Complex>::New();
  median->SetInput(MakePixels<Complex>(2, 3));
  EXPECT_NE(MessageOf(*median).find("median is not linear"), std::string::npos) << MessageOf(*median);
  const auto sequence = itk::ChunkwiseSequenceImageFilter<Complex, Complex>::New();
  sequence->AddFilter(median);
  sequence->SetInput(MakePixels<Complex>(2, 3));
  EXPECT_NE(MessageOf(*sequence).find("median is not linear"), std::string::npos) << MessageOf(*sequence);
}

TEST(ChunkwiseComponents, EstimatesAreOfAllComponentsTogether)
{
  const auto input = MakePixels<Colors>(3, 4);
  const auto wiener = itk::RenormalizedWienerImageFilter<Colors, itk::VectorImage<double, 3>>::New();
  wiener->SetInput(input);
  wiener->SetRadius(1);
  wiener->EstimateNoiseVarianceOn();
  wiener->Update();
  double mean = 0;
  for (unsigned int c = 0; c < 3; ++c)
  {
    const auto one = itk::RenormalizedWienerImageFilter<Bytes, itk::Image<double, 3>>::New();
    one->SetInput(ComponentOf(*input, c, 3));
    one->SetRadius(1);
    one->EstimateNoiseVarianceOn();
    one->Update();
    mean += one->GetNoiseVariance() / 3;
  }
  EXPECT_NEAR(wiener->GetNoiseVariance(), mean, 1e-9 * mean);
}

TEST(ChunkwiseComponents, OtherNumbersOfComponentsAreRefused)
{
  const auto toColors =
    itk::RenormalizedMeanImageFilter<itk::VectorImage<unsigned char, 3>, itk::Image<itk::RGBPixel<float>, 3>>::New();
  toColors->SetInput(MakePixels<itk::VectorImage<unsigned char, 3>>(2, 3));
  EXPECT_NE(MessageOf(*toColors).find("have 2 components, those of the output 3"), std::string::npos)
    << MessageOf(*toColors);
  const auto difference = itk::ChunkwiseDifferenceImageFilter<Vectors>::New();
  difference->SetInput1(MakePixels<Vectors>(2, 3));
  difference->SetInput2(MakePixels<Vectors>(4, 3));
  EXPECT_NE(MessageOf(*difference).find("have 4 components, those of"), std::string::npos) << MessageOf(*difference);
  const auto none = Vectors::New();
  none->SetRegions(MakeRegion<Vectors>({ 0, 0, 0 }, { 3, 3, 3 }));
  none->SetNumberOfComponentsPerPixel(0);
  const auto mean = itk::RenormalizedMeanImageFilter<Vectors>::New();
  mean->SetInput(none);
  EXPECT_NE(MessageOf(*mean).find("have no components"), std::string::npos) << MessageOf(*mean);
  difference->SetInput2(MakePixels<Vectors>(2, 7));
  difference->Update();
  EXPECT_EQ(difference->GetOutput()->GetNumberOfComponentsPerPixel(), 2u);
}

TEST(ChunkwiseComponents, ProgressRisesOnceAndAbortEndsTheRun)
{
  const auto filter = itk::RenormalizedMeanImageFilter<Vectors>::New();
  filter->SetInput(MakePixels<Vectors>(5, 4));
  filter->SetRadius(1);
  double     last = -1;
  bool       fell = false;
  const auto observer = itk::CStyleCommand::New();
  struct Seen
  {
    double * last;
    bool *   fell;
  } seen{ &last, &fell };
  observer->SetClientData(&seen);
  observer->SetCallback([](itk::Object * caller, const itk::EventObject &, void * data) {
    auto &       s = *static_cast<Seen *>(data);
    const double now = static_cast<itk::ProcessObject *>(caller)->GetProgress();
    *s.fell = *s.fell || now < *s.last;
    *s.last = now;
  });
  filter->AddObserver(itk::ProgressEvent(), observer);
  filter->Update();
  EXPECT_FALSE(fell);
  EXPECT_EQ(last, 1.0);
  observer->SetCallback([](itk::Object * caller, const itk::EventObject &, void *) {
    static_cast<itk::ProcessObject *>(caller)->AbortGenerateDataOn();
  });
  filter->Modified();
  EXPECT_THROW(filter->Update(), itk::ProcessAborted);
}

TEST(ChunkwiseComponents, IntegersGoToWiderOnes)
{
  // Within the input's range, and beyond it.
  const auto input = MakeRandomImage<Bytes>(MakeRegion<Bytes>({ 0, 0, 0 }, { 30, 9, 7 }), 5, 0, 255);
  const auto median = itk::RenormalizedMedianImageFilter<Bytes, itk::Image<short, 3>>::New();
  const auto same = itk::RenormalizedMedianImageFilter<Bytes>::New();
  const auto variance = itk::RenormalizedVarianceImageFilter<Bytes, itk::Image<unsigned short, 3>>::New();
  const auto real = itk::RenormalizedVarianceImageFilter<Bytes, itk::Image<double, 3>>::New();
  median->SetInput(input);
  same->SetInput(input);
  variance->SetInput(input);
  real->SetInput(input);
  median->SetRadius(1);
  same->SetRadius(1);
  variance->SetRadius(1);
  real->SetRadius(1);
  median->Update();
  same->Update();
  variance->Update();
  real->Update();
  unsigned short largest = 0;
  for (itk::SizeValueType i = 0; i < input->GetBufferedRegion().GetNumberOfPixels(); ++i)
  {
    ASSERT_EQ(median->GetOutput()->GetBufferPointer()[i], same->GetOutput()->GetBufferPointer()[i]);
    ASSERT_EQ(variance->GetOutput()->GetBufferPointer()[i], std::nearbyint(real->GetOutput()->GetBufferPointer()[i]));
    largest = std::max(largest, variance->GetOutput()->GetBufferPointer()[i]);
  }
  EXPECT_GT(largest, 255);
}

} // namespace ChunkwiseComponentsTest
