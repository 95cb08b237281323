/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseStatistics.h"
#include "itkChunkwiseSequenceImageFilter.h"
#include "itkChunkwiseTestImages.h"
#include "itkContrastLimitedAdaptiveHistogramEqualizationImageFilter.h"
#include "itkFixedConductanceDiffusionImageFilter.h"
#include "itkRenormalizedEntropyImageFilter.h"
#include "itkRenormalizedHessianMeasureImageFilter.h"
#include "itkRenormalizedVarianceImageFilter.h"
#include "itkRenormalizedWienerImageFilter.h"
#include "itkStreamingImageFilter.h"

#include "itkImageRegionConstIterator.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ChunkwiseAutomaticParametersTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using ImageType = itk::Image<float, 3>;
using Entropy = itk::RenormalizedEntropyImageFilter<ImageType>;
using Equalization = itk::ContrastLimitedAdaptiveHistogramEqualizationImageFilter<ImageType>;
using Wiener = itk::RenormalizedWienerImageFilter<ImageType>;

const auto Region = MakeRegion<ImageType>({ -3, 5, 0 }, { 21, 14, 19 });

ImageType::Pointer
Streamed(ImageType * output)
{
  const auto streaming = itk::StreamingImageFilter<ImageType, ImageType>::New();
  streaming->SetInput(output);
  streaming->SetNumberOfStreamDivisions(5);
  streaming->Update();
  return streaming->GetOutput();
}

TEST(AutomaticParameters, TheRangeOfAnEntropyIsThatOfTheWholeInput)
{
  const auto image = MakeRandomImage<ImageType>(Region, 5, -20, 90);
  image->SetPixel(Region.GetIndex(), -31.0f);
  image->SetPixel(Region.GetUpperIndex(), 170.0f);
  const auto given = Entropy::New();
  given->SetInput(image);
  given->SetRange(-31.0, 170.0);
  given->Update();
  const auto automatic = Entropy::New();
  automatic->SetInput(image);
  EXPECT_FALSE(automatic->GetAutomaticRange());
  EXPECT_THROW(automatic->Update(), itk::ExceptionObject);
  automatic->AutomaticRangeOn();
  automatic->Update();
  EXPECT_EQ(automatic->GetRangeMinimum(), -31.0);
  EXPECT_EQ(automatic->GetRangeMaximum(), 170.0);
  EXPECT_EQ(CountDifferentVoxels(given->GetOutput(), automatic->GetOutput(), Region), 0u);

  const auto other = Entropy::New();
  other->SetInput(image);
  other->AutomaticRangeOn();
  EXPECT_EQ(CountDifferentVoxels(given->GetOutput(), Streamed(other->GetOutput()).GetPointer(), Region), 0u);

  // A new input has a new range.
  image->SetPixel(Region.GetIndex(), -50.0f);
  image->Modified();
  automatic->Update();
  EXPECT_EQ(automatic->GetRangeMinimum(), -50.0);
  std::ostringstream os;
  automatic->Print(os);
  EXPECT_NE(os.str().find("AutomaticRange: On"), std::string::npos);

  image->FillBuffer(std::numeric_limits<float>::quiet_NaN());
  image->Modified();
  EXPECT_THROW(automatic->Update(), itk::ExceptionObject);
}

TEST(AutomaticParameters, TheNoiseOfAWienerFilterIsTheMeanOfTheLocalVariances)
{
  const auto image = MakeRandomImage<ImageType>(Region, 6, -20, 90);
  const auto variance = itk::RenormalizedVarianceImageFilter<ImageType>::New();
  variance->SetInput(image);
  variance->SetRadius(2);
  variance->Update();
  double sum = 0;
  for (itk::ImageRegionConstIterator<ImageType> it(variance->GetOutput(), Region); !it.IsAtEnd(); ++it)
  {
    sum += static_cast<double>(it.Get());
  }
  const double noise = sum / static_cast<double>(Region.GetNumberOfPixels());
  const auto   make = [&image] {
    const auto filter = Wiener::New();
    filter->SetInput(image);
    filter->SetRadius(2);
    return filter;
  };
  const auto automatic = make();
  EXPECT_FALSE(automatic->GetEstimateNoiseVariance());
  automatic->EstimateNoiseVarianceOn();
  automatic->Update();
  EXPECT_NEAR(automatic->GetNoiseVariance(), noise, 1e-9 * noise);
  const auto given = make();
  given->SetNoiseVariance(automatic->GetNoiseVariance());
  given->Update();
  EXPECT_EQ(CountDifferentVoxels(given->GetOutput(), automatic->GetOutput(), Region), 0u);
  const auto other = make();
  other->EstimateNoiseVarianceOn();
  EXPECT_EQ(CountDifferentVoxels(given->GetOutput(), Streamed(other->GetOutput()).GetPointer(), Region), 0u);
  // It depends on the window.
  const double before = automatic->GetNoiseVariance();
  automatic->SetRadius(1);
  automatic->Update();
  EXPECT_NE(automatic->GetNoiseVariance(), before);
  std::ostringstream os;
  automatic->Print(os);
  EXPECT_NE(os.str().find("EstimateNoiseVariance: On"), std::string::npos);
}

TEST(AutomaticParameters, TheRangeOfAnEqualizationIsThatOfTheFiniteVoxels)
{
  const auto image = MakeRandomImage<ImageType>(Region, 8, -20, 90);
  image->SetPixel(Region.GetIndex(), -31.0f);
  image->SetPixel({ { 0, 6, 3 } }, std::numeric_limits<float>::infinity());
  image->SetPixel({ { 0, 6, 4 } }, std::numeric_limits<float>::quiet_NaN());
  image->SetPixel(Region.GetUpperIndex(), 170.0f);
  const auto given = Equalization::New();
  given->SetInput(image);
  given->SetRange(-31.0, 170.0);
  given->Update();
  const auto automatic = Equalization::New();
  automatic->SetInput(image);
  EXPECT_EQ(CountDifferentVoxels(given->GetOutput(), Streamed(automatic->GetOutput()).GetPointer(), Region), 0u);
  EXPECT_EQ(automatic->GetRangeMinimum(), -31.0);
  EXPECT_EQ(automatic->GetRangeMaximum(), 170.0);
  image->SetPixel(Region.GetIndex(), -50.0f);
  image->Modified();
  automatic->Update();
  EXPECT_EQ(automatic->GetRangeMinimum(), -50.0);
}

template <typename TFilter>
void
CompareStreamed()
{
  const auto image = MakeRandomImage<ImageType>(Region, 9, -20, 90);
  const auto whole = TFilter::New();
  whole->SetInput(image);
  whole->Update();
  const auto inPieces = TFilter::New();
  inPieces->SetInput(image);
  EXPECT_EQ(CountDifferentVoxels(whole->GetOutput(), Streamed(inPieces->GetOutput()).GetPointer(), Region), 0u)
    << whole->GetNameOfClass();
}

TEST(AutomaticParameters, OfDiffusionAndMeasuresHoldForEveryPiece)
{
  CompareStreamed<itk::FixedConductanceDiffusionImageFilter<ImageType>>();
  CompareStreamed<itk::RenormalizedHessianMeasureImageFilter<ImageType>>();
}

TEST(AutomaticParameters, AreRefusedInASequence)
{
  const auto sequence = itk::ChunkwiseSequenceImageFilter<ImageType>::New();
  sequence->SetInput(MakeRandomImage<ImageType>(Region, 7));
  const auto entropy = Entropy::New();
  entropy->AutomaticRangeOn();
  sequence->AddFilter(entropy);
  EXPECT_THROW(sequence->Update(), itk::ExceptionObject);
  sequence->ClearFilters();
  sequence->AddFilter(Equalization::New());
  EXPECT_THROW(sequence->Update(), itk::ExceptionObject);
  sequence->ClearFilters();
  const auto wiener = Wiener::New();
  wiener->EstimateNoiseVarianceOn();
  sequence->AddFilter(wiener);
  EXPECT_THROW(sequence->Update(), itk::ExceptionObject);
}

} // namespace ChunkwiseAutomaticParametersTest
