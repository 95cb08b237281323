/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What filters make of their inputs and parameters: images of several places and none, values of 64 bits, pairs of
// types.
#include "chunkwiseError.h"
#include "chunkwiseOperations.h"
#include "itkBoxStatisticImageFilter.h"
#include "itkChunkwiseDifferenceImageFilter.h"
#include "itkChunkwiseSequenceImageFilter.h"
#include "itkHeapHMaximaImageFilter.h"
#include "itkHeapOpeningByReconstructionImageFilter.h"
#include "itkHeapReconstructionByDilationImageFilter.h"
#include "itkHeapRegionalMaximaImageFilter.h"
#include "itkPrunedFFTConvolutionImageFilter.h"
#include "itkRenormalizedConvolutionImageFilter.h"
#include "itkRenormalizedEntropyImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMaximumImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkRenormalizedSumImageFilter.h"
#include "itkRenormalizedVarianceImageFilter.h"
#include "itkSpatiallyVaryingConvolutionImageFilter.h"
#include "itkSummedAreaTableImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkChunkwiseTestWarnings.h"
#include "itkDerivativeOperator.h"
#include "itkNeighborhoodOperatorImageFilter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace ChunkwiseInputsTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Byte2 = itk::Image<unsigned char, 2>;
using Byte3 = itk::Image<unsigned char, 3>;
using Float2 = itk::Image<float, 2>;
using Float3 = itk::Image<float, 3>;
using Short2 = itk::Image<short, 2>;
using Long2 = itk::Image<long long, 2>;

template <typename TFilter>
std::string
MessageOf(TFilter & filter)
{
  try
  {
    filter.UpdateLargestPossibleRegion();
  }
  catch (const itk::ExceptionObject & error)
  {
    return error.GetDescription();
  }
  return "no exception";
}

/** The part of an image in a region, at the same indices and so the same place in space. */
template <typename TImage>
typename TImage::Pointer
PartOf(const TImage * image, const typename TImage::RegionType & region)
{
  const auto part = TImage::New();
  part->CopyInformation(image);
  part->SetRegions(region);
  part->Allocate();
  for (itk::ImageRegionIterator<TImage> it(part, region); !it.IsAtEnd(); ++it)
  {
    it.Set(image->GetPixel(it.GetIndex()));
  }
  return part;
}

TEST(ChunkwiseInputs, VoxelsOfOneIndexBelongTogether)
{
  const auto large = MakeRandomImage<Float2>(MakeRegion<Float2>({ -4, 3 }, { 30, 25 }), 5);
  const auto region = MakeRegion<Float2>({ 2, 9 }, { 17, 12 });
  const auto part = PartOf(MakeRandomImage<Float2>(large->GetLargestPossibleRegion(), 6).GetPointer(), region);
  const auto difference = itk::ChunkwiseDifferenceImageFilter<Float2>::New();
  difference->SetInput1(part);
  difference->SetInput2(large);
  EXPECT_EQ(difference->GetInput2(), large);
  difference->Update();
  for (itk::ImageRegionConstIteratorWithIndex<Float2> it(difference->GetOutput(), region); !it.IsAtEnd(); ++it)
  {
    ASSERT_EQ(it.Get(), part->GetPixel(it.GetIndex()) - large->GetPixel(it.GetIndex())) << it.GetIndex();
  }
  // A part of it.
  const auto piece = MakeRegion<Float2>({ 8, 11 }, { 5, 4 });
  difference->GetOutput()->SetRequestedRegion(piece);
  difference->Modified();
  difference->Update();
  EXPECT_EQ(difference->GetOutput()->GetBufferedRegion(), piece);
  for (itk::ImageRegionConstIteratorWithIndex<Float2> it(difference->GetOutput(), piece); !it.IsAtEnd(); ++it)
  {
    ASSERT_EQ(it.Get(), part->GetPixel(it.GetIndex()) - large->GetPixel(it.GetIndex())) << it.GetIndex();
  }
  // The other way round there is nothing to subtract from most of the first image.
  difference->SetInput1(large);
  difference->SetInput2(part);
  const std::string message = MessageOf(*difference);
  EXPECT_NE(message.find("Input2: its largest possible region begins at [2, 9]"), std::string::npos) << message;
  EXPECT_NE(message.find("[-4, 3]"), std::string::npos) << message;
  // If index and space disagree, ITK's own check finds it.
  const auto elsewhere = PartOf(part.GetPointer(), region);
  auto       origin = elsewhere->GetOrigin();
  origin[0] += 3;
  elsewhere->SetOrigin(origin);
  difference->SetInput1(part);
  difference->SetInput2(elsewhere);
  EXPECT_NE(MessageOf(*difference).find("physical space"), std::string::npos) << MessageOf(*difference);
  origin[0] -= 3 - 1e-9;
  elsewhere->SetOrigin(origin);
  EXPECT_EQ(MessageOf(*difference), "no exception");
}

TEST(ChunkwiseInputs, ARadiusBelongsToTheVoxelOfItsIndex)
{
  using Radii = itk::Image<unsigned short, 2>;
  using Filter = itk::BoxStatisticImageFilter<Float2, Float2, Radii>;
  const auto      region = MakeRegion<Float2>({ 2, 9 }, { 17, 12 });
  const auto      image = MakeRandomImage<Float2>(region, 7);
  const auto      radii = MakeRandomImage<Radii>(MakeRegion<Radii>({ -4, 3 }, { 30, 25 }), 8, 0, 4);
  Float2::Pointer outputs[2];
  for (const bool isPart : { false, true })
  {
    const auto filter = Filter::New();
    filter->SetInput(image);
    filter->SetRadius(3);
    filter->SetRadiusImage(isPart ? PartOf(radii.GetPointer(), region) : radii);
    filter->Update();
    outputs[isPart ? 1 : 0] = filter->GetOutput();
  }
  EXPECT_EQ(CountDifferentVoxels(outputs[0].GetPointer(), outputs[1].GetPointer(), region), 0u);
}

TEST(ChunkwiseInputs, AMarkerCoversItsMask)
{
  const auto mask = MakeRandomImage<Float2>(MakeRegion<Float2>({ 2, 9 }, { 17, 12 }), 7);
  for (const auto & begin : { itk::Index<2>{ { 0, 9 } }, itk::Index<2>{ { 2, 10 } } })
  {
    const auto marker = Float2::New();
    marker->CopyInformation(mask);
    marker->SetRegions(Float2::RegionType(begin, mask->GetLargestPossibleRegion().GetSize()));
    marker->Allocate();
    marker->FillBuffer(0.0F);
    const auto filter = itk::HeapReconstructionByDilationImageFilter<Float2>::New();
    filter->SetMarkerImage(marker);
    filter->SetMaskImage(mask);
    const std::string message = MessageOf(*filter);
    EXPECT_NE(message.find("its largest possible region begins at"), std::string::npos) << message;
  }
}

TEST(ChunkwiseInputs, ImagesWithoutVoxelsAreErrors)
{
  const auto region = MakeRegion<Float2>({ 2, 9 }, { 17, 12 });
  const auto good = MakeRandomImage<Float2>(region, 7);
  const auto unallocated = Float2::New();
  unallocated->CopyInformation(good);
  unallocated->SetRegions(region);
  const auto mean = itk::RenormalizedMeanImageFilter<Float2>::New();
  mean->SetInput(unallocated);
  EXPECT_NE(MessageOf(*mean).find("Input: it has no voxels"), std::string::npos) << MessageOf(*mean);
  mean->SetInput(good);
  EXPECT_EQ(MessageOf(*mean), "no exception");

  const auto difference = itk::ChunkwiseDifferenceImageFilter<Float2>::New();
  difference->SetInput1(good);
  difference->SetInput2(unallocated);
  EXPECT_NE(MessageOf(*difference).find("Input2: it has no voxels"), std::string::npos) << MessageOf(*difference);

  const auto table = itk::SummedAreaTableImageFilter<Float2>::New();
  table->SetInput(unallocated);
  EXPECT_NE(MessageOf(*table).find("Input: it has no voxels"), std::string::npos) << MessageOf(*table);

  using Radii = itk::Image<unsigned short, 2>;
  const auto radii = Radii::New();
  radii->CopyInformation(good);
  radii->SetRegions(region);
  const auto box = itk::BoxStatisticImageFilter<Float2>::New();
  box->SetInput(good);
  box->SetRadiusImage(radii);
  EXPECT_NE(MessageOf(*box).find("RadiusImage: it has no voxels"), std::string::npos) << MessageOf(*box);

  const auto convolution = itk::PrunedFFTConvolutionImageFilter<Float2>::New();
  convolution->SetInput(good);
  convolution->SetKernelImage(unallocated);
  EXPECT_NE(MessageOf(*convolution).find("KernelImage: "), std::string::npos) << MessageOf(*convolution);

  using Varying = itk::SpatiallyVaryingConvolutionImageFilter<Float2>;
  const auto varying = Varying::New();
  EXPECT_THROW(varying->SetKernelStack(nullptr), itk::ExceptionObject);
  const auto stack = Varying::KernelStackType::New();
  stack->SetRegions(itk::Size<3>{ { 3, 3, 4 } });
  EXPECT_THROW(varying->SetKernelStack(stack), itk::ExceptionObject);
  EXPECT_EQ(varying->GetKernelStack(), nullptr);
}

TEST(ChunkwiseInputs, ASequenceIsNoStageOfItself)
{
  using Sequence = itk::ChunkwiseSequenceImageFilter<Float2>;
  const auto first = Sequence::New();
  const auto second = Sequence::New();
  const auto third = Sequence::New();
  EXPECT_THROW(first->AddFilter(first), itk::ExceptionObject);
  first->AddFilter(second);
  second->AddFilter(third);
  EXPECT_THROW(third->AddFilter(first), itk::ExceptionObject);
  EXPECT_EQ(third->GetNumberOfFilters(), 0u);
  third->AddFilter(itk::RenormalizedMeanImageFilter<Float2>::New());
  first->SetInput(MakeRandomImage<Float2>(MakeRegion<Float2>({ 2, 9 }, { 17, 12 }), 7));
  EXPECT_EQ(MessageOf(*first), "no exception");
}

TEST(ChunkwiseInputs, AFilterCanBeAStageOfTwoSequences)
{
  using Sequence = itk::ChunkwiseSequenceImageFilter<Float2>;
  const auto region = MakeRegion<Float2>({ 2, 9 }, { 37, 32 });
  const auto gaussian = itk::RenormalizedGaussianImageFilter<Float2>::New();
  gaussian->SetSigma(2.0);
  const auto own = MakeRandomImage<Float2>(region, 9);
  gaussian->SetInput(own);
  Sequence::Pointer sequences[2];
  Float2::Pointer   images[2];
  for (int i = 0; i < 2; ++i)
  {
    images[i] = MakeRandomImage<Float2>(region, 7);
    images[i]->SetSpacing(i == 0 ? 1.0 : 4.0);
    sequences[i] = Sequence::New();
    sequences[i]->SetInput(images[i]);
    sequences[i]->AddFilter(gaussian);
  }
  for (const auto & sequence : sequences)
  {
    sequence->Update();
  }
  EXPECT_EQ(gaussian->GetInput(), own);
  for (int i = 0; i < 2; ++i)
  {
    const auto alone = itk::RenormalizedGaussianImageFilter<Float2>::New();
    alone->SetSigma(2.0);
    alone->SetInput(images[i]);
    alone->Update();
    EXPECT_EQ(CountDifferentVoxels(alone->GetOutput(), sequences[i]->GetOutput(), region), 0u) << i;
  }
}

TEST(ChunkwiseInputs, AStageSeesTheTypeThatItIsGiven)
{
  using Sequence = itk::ChunkwiseSequenceImageFilter<Byte2, Float2>;
  using Statistic = itk::BoxStatisticImageFilter<Float2>;
  const auto region = MakeRegion<Byte2>({ 2, 9 }, { 37, 32 });
  const auto image = MakeRandomImage<Byte2>(region, 7, 0, 255);
  const auto stage = Statistic::New();
  stage->SetStatistic(itk::BoxStatisticEnums::Statistic::Variance);
  const auto sequence = Sequence::New();
  sequence->SetInput(image);
  sequence->AddFilter(stage);
  sequence->Update();
  const auto alone = itk::BoxStatisticImageFilter<Byte2, Float2>::New();
  alone->SetStatistic(itk::BoxStatisticEnums::Statistic::Variance);
  alone->SetInput(image);
  alone->Update();
  EXPECT_EQ(CountDifferentVoxels(alone->GetOutput(), sequence->GetOutput(), region), 0u);

  // Bytes have a range of histograms by default, floats have not.
  const auto entropies = Sequence::New();
  entropies->SetInput(image);
  entropies->AddFilter(itk::RenormalizedEntropyImageFilter<Float2>::New());
  entropies->Update();
  const auto entropy = itk::RenormalizedEntropyImageFilter<Byte2, Float2>::New();
  entropy->SetInput(image);
  entropy->Update();
  EXPECT_EQ(CountDifferentVoxels(entropy->GetOutput(), entropies->GetOutput(), region), 0u);

  const auto radii = itk::Image<unsigned short, 2>::New();
  stage->SetRadiusImage(radii);
  EXPECT_NE(MessageOf(*sequence).find("inputs"), std::string::npos) << MessageOf(*sequence);
  stage->SetRadiusImage(nullptr);

  using Convolution = itk::PrunedFFTConvolutionImageFilter<Float2>;
  const auto convolution = Convolution::New();
  convolution->SetKernelImage(MakeRandomImage<Float2>(MakeRegion<Float2>({ 0, 0 }, { 3, 3 }), 3, 0.1, 1));
  sequence->AddFilter(convolution);
  EXPECT_EQ(MessageOf(*sequence), "no exception");
  convolution->SetOutputRegionModeToValid();
  const std::string message = MessageOf(*sequence);
  EXPECT_NE(message.find("Filters: number 1, PrunedFFTConvolutionImageFilter"), std::string::npos) << message;
  EXPECT_NE(message.find("smaller"), std::string::npos) << message;
}

TEST(ChunkwiseInputs, SixtyFourBitValuesAreKeptToTheLastBit)
{
  constexpr long long beyond = (1LL << 53) + 1;
  const auto          image = Long2::New();
  image->SetRegions(itk::Size<2>{ { 5, 5 } });
  image->Allocate();
  image->FillBuffer(0);
  image->SetPixel({ { 2, 2 } }, std::numeric_limits<long long>::max());
  const auto maxima = itk::HeapRegionalMaximaImageFilter<Long2>::New();
  maxima->SetInput(image);
  maxima->SetForegroundValue(beyond);
  maxima->SetBackgroundValue(-beyond);
  maxima->Update();
  EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 2, 2 } }), beyond);
  EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 0, 2 } }), -beyond);

  const auto h = itk::HeapHMaximaImageFilter<Long2>::New();
  h->SetInput(image);
  h->SetHeight(beyond);
  h->Update();
  EXPECT_EQ(h->GetOutput()->GetPixel({ { 2, 2 } }), std::numeric_limits<long long>::max() - beyond);

  // A double carries 2^53 + 2.
  const auto maximum = itk::RenormalizedMaximumImageFilter<Long2>::New();
  image->SetPixel({ { 2, 2 } }, 0);
  image->Modified();
  maximum->SetInput(image);
  maximum->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::Constant);
  maximum->SetConstant(9007199254740994.0);
  maximum->Update();
  EXPECT_EQ(maximum->GetOutput()->GetPixel({ { 0, 0 } }), beyond + 1);
  maximum->SetConstant(9223372036854775808.0);
  EXPECT_NE(MessageOf(*maximum).find("Constant: "), std::string::npos);
}

TEST(ChunkwiseInputs, RegionalMaximaOfFloatsGiveAnyType)
{
  const auto region = MakeRegion<Float2>({ 2, 9 }, { 37, 32 });
  const auto image = MakeRandomImage<Float2>(region, 7, 0, 6);
  for (itk::ImageRegionIterator<Float2> it(image, region); !it.IsAtEnd(); ++it)
  {
    it.Set(std::floor(it.Get()) + 0.25F);
  }
  const auto same = itk::HeapRegionalMaximaImageFilter<Float2>::New();
  same->SetInput(image);
  same->SetForegroundValue(1);
  same->SetBackgroundValue(0);
  same->Update();
  const auto bytes = itk::HeapRegionalMaximaImageFilter<Float2, Byte2>::New();
  bytes->SetInput(image);
  bytes->SetForegroundValue(200);
  bytes->SetBackgroundValue(3);
  bytes->Update();
  const auto longs = itk::HeapRegionalMaximaImageFilter<Float2, Long2>::New();
  longs->SetInput(image);
  longs->SetForegroundValue((1LL << 53) + 1);
  longs->Update();
  std::size_t maxima = 0;
  for (itk::ImageRegionConstIteratorWithIndex<Float2> it(same->GetOutput(), region); !it.IsAtEnd(); ++it)
  {
    maxima += it.Get() != 0 ? 1 : 0;
    ASSERT_EQ(bytes->GetOutput()->GetPixel(it.GetIndex()), it.Get() != 0 ? 200 : 3) << it.GetIndex();
    ASSERT_EQ(longs->GetOutput()->GetPixel(it.GetIndex()),
              it.Get() != 0 ? (1LL << 53) + 1 : std::numeric_limits<long long>::lowest())
      << it.GetIndex();
  }
  EXPECT_GT(maxima, 10u);
  // An image that is flat throughout.
  image->FillBuffer(4);
  image->Modified();
  bytes->Update();
  EXPECT_EQ(bytes->GetOutput()->GetPixel(region.GetIndex()), 200);
  bytes->FlatIsMaximaOff();
  bytes->Update();
  EXPECT_EQ(bytes->GetOutput()->GetPixel(region.GetIndex()), 3);
}

TEST(ChunkwiseInputs, DifferencesOfIntegersGiveOtherIntegers)
{
  const auto region = MakeRegion<Byte2>({ 2, 9 }, { 37, 32 });
  const auto first = MakeRandomImage<Byte2>(region, 7, 0, 256);
  const auto second = MakeRandomImage<Byte2>(region, 8, 0, 256);
  const auto shorts = itk::ChunkwiseDifferenceImageFilter<Byte2, Short2>::New();
  shorts->SetInput1(first);
  shorts->SetInput2(second);
  {
    const chunkwisetest::WarningScope warnings;
    shorts->Update();
    EXPECT_TRUE(warnings.GetTexts().empty());
  }
  using Signed2 = itk::Image<signed char, 2>;
  const auto narrow = itk::ChunkwiseDifferenceImageFilter<Byte2, Signed2>::New();
  narrow->SetInput1(first);
  narrow->SetInput2(second);
  std::string warning;
  {
    const chunkwisetest::WarningScope warnings;
    narrow->Update();
    ASSERT_EQ(warnings.GetTexts().size(), 1u);
    warning = warnings.GetTexts().front();
  }
  int clamped = 0;
  for (itk::ImageRegionConstIteratorWithIndex<Byte2> it(first, region); !it.IsAtEnd(); ++it)
  {
    const int difference = int{ it.Get() } - int{ second->GetPixel(it.GetIndex()) };
    ASSERT_EQ(shorts->GetOutput()->GetPixel(it.GetIndex()), difference) << it.GetIndex();
    ASSERT_EQ(narrow->GetOutput()->GetPixel(it.GetIndex()), std::min(std::max(difference, -128), 127));
    clamped += difference < -128 || difference > 127 ? 1 : 0;
  }
  EXPECT_GT(clamped, 0);
  EXPECT_NE(warning.find(std::to_string(clamped) + " results are beyond what int8 holds"), std::string::npos)
    << warning;
}

namespace
{

/** Results in another type are those of the filter's natural type, rounded to nearest with ties to even and clamped. */
template <typename TFilter, typename TNatural>
void
ExpectConverted(const typename TFilter::InputImageType * image)
{
  using OutputImage = typename TFilter::OutputImageType;
  using Limits = std::numeric_limits<typename OutputImage::PixelType>;
  const auto natural = TNatural::New();
  natural->SetInput(image);
  natural->Update();
  const auto converted = TFilter::New();
  converted->SetInput(image);
  const chunkwisetest::WarningScope warnings;
  converted->Update();
  std::size_t clamped = 0;
  for (itk::ImageRegionConstIteratorWithIndex<OutputImage> it(converted->GetOutput(),
                                                              image->GetLargestPossibleRegion());
       !it.IsAtEnd();
       ++it)
  {
    const auto   value = static_cast<double>(natural->GetOutput()->GetPixel(it.GetIndex()));
    const double rounded = std::isnan(value) ? 0.0 : std::nearbyint(value);
    const double expected =
      std::min(std::max(rounded, static_cast<double>(Limits::lowest())), static_cast<double>(Limits::max()));
    ASSERT_EQ(static_cast<double>(it.Get()), expected) << it.GetIndex() << " of " << value;
    clamped += std::isnan(value) || rounded != expected ? 1 : 0;
  }
  EXPECT_GT(clamped, 0u);
  ASSERT_EQ(warnings.GetTexts().size(), 1u);
  EXPECT_NE(warnings.GetTexts().front().find(std::to_string(clamped) + " results are beyond"), std::string::npos)
    << warnings.GetTexts().front();
}

} // namespace

TEST(ChunkwiseInputs, SumsBeyondThoseOfADoubleAreExact)
{
  using Input = itk::Image<unsigned int, 2>;
  using Output = itk::Image<unsigned long, 2>;
  const auto image = Input::New();
  image->SetRegions(itk::Size<2>{ { 1500, 1500 } });
  image->Allocate();
  image->FillBuffer(std::numeric_limits<unsigned int>::max());
  image->SetPixel({ { 3, 4 } }, 0);
  const auto filter = itk::RenormalizedSumImageFilter<Input, Output>::New();
  filter->SetInput(image);
  filter->SetRadius(1500);
  const chunkwisetest::WarningScope warnings;
  filter->Update();
  EXPECT_TRUE(warnings.GetTexts().empty());
  const unsigned long expected = 2249999UL * std::numeric_limits<unsigned int>::max();
  for (itk::ImageRegionConstIterator<Output> it(filter->GetOutput(), image->GetLargestPossibleRegion()); !it.IsAtEnd();
       ++it)
  {
    ASSERT_EQ(it.Get(), expected);
  }
}

TEST(ChunkwiseInputs, ResultsAreRoundedToIntegersThatTheUserChose)
{
  const auto region = MakeRegion<Byte2>({ 2, 9 }, { 37, 32 });
  const auto shorts = MakeRandomImage<Short2>(region, 7, -300, 900);
  const auto floats = MakeRandomImage<Float2>(region, 8, -300, 900);
  floats->SetPixel(region.GetIndex(), std::numeric_limits<float>::quiet_NaN());
  using Double2 = itk::Image<double, 2>;
  using Mean = itk::RenormalizedMeanImageFilter<Short2, Byte2>;
  ExpectConverted<Mean, itk::RenormalizedMeanImageFilter<Short2>>(shorts);
  ExpectConverted<itk::RenormalizedMedianImageFilter<Float2, Byte2>, itk::RenormalizedMedianImageFilter<Float2>>(
    floats);
  ExpectConverted<itk::RenormalizedMeanImageFilter<Float2, Short2>, itk::RenormalizedMeanImageFilter<Float2>>(floats);
  ExpectConverted<itk::RenormalizedVarianceImageFilter<Short2, Byte2>,
                  itk::RenormalizedVarianceImageFilter<Short2, Double2>>(shorts);
}

TEST(ChunkwiseInputs, SumsOfIntegersGiveWiderIntegersSlabBySlab)
{
  using UInt3 = itk::Image<unsigned int, 3>;
  using Double3 = itk::Image<double, 3>;
  // More than one slab of 64 MiB of doubles.
  const auto region = MakeRegion<Byte3>({ 2, -9, 4 }, { 300, 290, 110 });
  const auto image = MakeRandomImage<Byte3>(region, 7, 0, 256);
  const auto sums = itk::RenormalizedSumImageFilter<Byte3, UInt3>::New();
  sums->SetInput(image);
  sums->SetRadius({ { 2, 3, 4 } });
  std::vector<float> progress;
  sums->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) { progress.push_back(sums->GetProgress()); });
  sums->Update();
  EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
  EXPECT_EQ(progress.front(), 0.0F);
  EXPECT_EQ(progress.back(), 1.0F);
  const auto doubles = itk::RenormalizedSumImageFilter<Byte3, Double3>::New();
  doubles->SetInput(image);
  doubles->SetRadius({ { 2, 3, 4 } });
  doubles->Update();
  const unsigned int * const ours = sums->GetOutput()->GetBufferPointer();
  const double * const       theirs = doubles->GetOutput()->GetBufferPointer();
  std::size_t                different = 0;
  for (std::size_t i = 0; i < region.GetNumberOfPixels(); ++i)
  {
    different += static_cast<double>(ours[i]) != theirs[i] ? 1 : 0;
  }
  EXPECT_EQ(different, 0u);
  sums->AbortGenerateDataOff();
  sums->Modified();
  const auto tag = sums->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) {
    if (sums->GetProgress() > 0.5F && sums->GetProgress() < 1.0F)
    {
      sums->AbortGenerateDataOn();
    }
  });
  EXPECT_THROW(sums->Update(), itk::ProcessAborted);
  sums->RemoveObserver(tag);
}

TEST(ChunkwiseInputs, CorrelationIsWhatItkDoesWithANeighborhood)
{
  const auto                         region = MakeRegion<Float2>({ 2, 9 }, { 37, 32 });
  const auto                         image = MakeRandomImage<Float2>(region, 7);
  itk::DerivativeOperator<double, 2> derivative;
  derivative.SetDirection(1);
  derivative.SetOrder(1);
  derivative.CreateDirectional();
  const auto theirs = itk::NeighborhoodOperatorImageFilter<Float2, Float2, double>::New();
  theirs->SetInput(image);
  theirs->SetOperator(derivative);
  theirs->Update();
  itk::Neighborhood<float, 2> floats;
  floats.SetRadius(derivative.GetRadius());
  std::copy(derivative.Begin(), derivative.End(), floats.Begin());
  for (const bool asFloats : { false, true })
  {
    const auto ours = itk::RenormalizedConvolutionImageFilter<Float2>::New();
    ours->SetInput(image);
    ours->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::ZeroFluxNeumann);
    if (asFloats)
    {
      ours->SetKernel(floats);
    }
    else
    {
      ours->SetKernel(derivative);
    }
    ours->CorrelateOn();
    ours->Update();
    double sign = 0;
    for (itk::ImageRegionConstIteratorWithIndex<Float2> it(theirs->GetOutput(), region); !it.IsAtEnd(); ++it)
    {
      ASSERT_NEAR(ours->GetOutput()->GetPixel(it.GetIndex()), it.Get(), 1e-4) << it.GetIndex();
    }
    ours->CorrelateOff();
    ours->Update();
    for (itk::ImageRegionConstIteratorWithIndex<Float2> it(theirs->GetOutput(), region); !it.IsAtEnd(); ++it)
    {
      sign += std::abs(it.Get() + ours->GetOutput()->GetPixel(it.GetIndex()));
    }
    EXPECT_NEAR(sign, 0.0, 1e-2) << "a derivative mirrored is its opposite";
  }
}

TEST(ChunkwiseInputs, MorphologyHasItsKernel)
{
  itk::Neighborhood<int, 2> element;
  element.SetRadius({ { 2, 1 } });
  std::fill(element.Begin(), element.End(), 0);
  element[3] = 5;
  element[14] = 1;
  const auto maximum = itk::RenormalizedMaximumImageFilter<Float2>::New();
  maximum->SetKernel(element);
  const auto opening = itk::HeapOpeningByReconstructionImageFilter<Float2>::New();
  opening->SetKernel(element);
  for (const auto & kernel : { maximum->GetKernel(), opening->GetKernel() })
  {
    ASSERT_EQ(kernel.Size(), 15u);
    EXPECT_EQ(kernel.GetRadius(), element.GetRadius());
    for (unsigned int i = 0; i < 15; ++i)
    {
      EXPECT_EQ(kernel[i], i == 3 || i == 14) << i;
    }
  }
  maximum->SetRadius(2);
  opening->SetRadius(2);
  EXPECT_EQ(opening->GetRadius(), (itk::Size<2>{ { 2, 2 } }));
  for (const auto & kernel : { maximum->GetKernel(), opening->GetKernel() })
  {
    EXPECT_EQ(kernel.Size(), 25u);
    EXPECT_EQ(std::count(kernel.Begin(), kernel.End(), true), 25);
  }
  maximum->SetRadius(itk::SizeValueType{ 1 } << 30);
  EXPECT_THROW(maximum->GetKernel(), itk::ExceptionObject);
}

/** Pairs of pixel types that compile; test/itk/itkChunkwisePixelTypes.cxx has pairs that do not. */
template <typename TInput, typename TOutput>
using Base = itk::ChunkwiseImageToImageFilter<itk::Image<TInput, 2>, itk::Image<TOutput, 2>>;
static_assert(Base<short, short>::GivesSameTypeOrReal, "");
static_assert(Base<long, long long>::GivesSameType == (sizeof(long) == sizeof(long long)), "");
static_assert(Base<short, float>::GivesSameTypeOrReal && Base<short, double>::GivesSameTypeOrReal, "");
static_assert(!Base<short, unsigned short>::GivesSameTypeOrReal && !Base<short, int>::GivesSameTypeOrReal, "");
static_assert(Base<float, int>::GivesSameTypeOrRealOrInteger && !Base<long long, int>::GivesSameTypeOrRealOrInteger,
              "");
static_assert(Base<unsigned char, unsigned int>::GivesSameTypeOrRealOrInteger, "");

TEST(ChunkwiseInputs, RegionsArePrintedAsTheImageHasThem)
{
  const auto region = MakeRegion<Float2>({ 2, 9 }, { 37, 32 });
  const auto filter = itk::RenormalizedMeanImageFilter<Float2>::New();
  filter->SetInput(MakeRandomImage<Float2>(region, 7));
  try
  {
    filter->MakePlan(MakeRegion<Float2>({ 2, 9 }, { 37, 33 }));
    ADD_FAILURE();
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.GetDescription()).find("the region at [2, 9] of size [37, 33]"), std::string::npos)
      << error.GetDescription();
  }
  EXPECT_EQ(chunkwise::ToString(chunkwise::Box{ { { 0, 0, 0, 0, 0 } }, { { 4, 1, 7, 1, 1 } } }),
            "[0, 4) x [0, 1) x [0, 7)");
}

TEST(ChunkwiseInputs, ASumIsCalledASum)
{
  chunkwise::MeanOperation operation;
  operation.sums = true;
  try
  {
    operation.CheckKinds({ chunkwise::PixelType::Int16 }, chunkwise::PixelType::UInt8);
    ADD_FAILURE();
  }
  catch (const chunkwise::ParameterError & error)
  {
    EXPECT_EQ(std::string(error.what()).find("Output: sum of int16 cannot give uint8"), 0u) << error.what();
  }
}

} // namespace ChunkwiseInputsTest
