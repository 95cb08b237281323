/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseSequenceImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ChunkwiseSequenceImageFilterTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Short3 = itk::Image<short, 3>;
using Float3 = itk::Image<float, 3>;

const auto Region = MakeRegion<Short3>({ 4, -3, 2 }, { 23, 17, 15 });

TEST(ChunkwiseSequenceImageFilter, HasTheBitsOfItsFiltersOneAfterTheOther)
{
  const auto image = MakeRandomImage<Short3>(Region, 3, -500, 500);

  // Sigma is in units of the spacing: the stages must know the image.
  const auto first = itk::RenormalizedGaussianImageFilter<Short3, Float3>::New();
  first->SetInput(image);
  first->SetSigma(1.5);
  const auto second = itk::RenormalizedMeanImageFilter<Float3>::New();
  second->SetInput(first->GetOutput());
  second->SetRadius(2);
  second->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::Mirror);
  second->Update();

  const auto gaussian = itk::RenormalizedGaussianImageFilter<Float3>::New();
  gaussian->SetSigma(1.5);
  const auto mean = itk::RenormalizedMeanImageFilter<Float3>::New();
  mean->SetRadius(2);
  mean->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::Mirror);
  const auto sequence = itk::ChunkwiseSequenceImageFilter<Short3, Float3>::New();
  sequence->SetInput(image);
  sequence->AddFilter(gaussian);
  sequence->AddFilter(mean);
  EXPECT_EQ(sequence->GetNumberOfFilters(), 2u);
  EXPECT_EQ(sequence->GetFilter(1), mean.GetPointer());
  const auto streaming = itk::StreamingImageFilter<Float3, Float3>::New();
  streaming->SetInput(sequence->GetOutput());
  streaming->SetNumberOfStreamDivisions(4);
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(second->GetOutput(), streaming->GetOutput(), Region), 0u);
  sequence->UpdateLargestPossibleRegion();
  EXPECT_EQ(CountDifferentVoxels(second->GetOutput(), sequence->GetOutput(), Region), 0u);
}

TEST(ChunkwiseSequenceImageFilter, RunsAgainWhenAStageChangesAndOnlyThen)
{
  const auto mean = itk::RenormalizedMeanImageFilter<Float3>::New();
  const auto sequence = itk::ChunkwiseSequenceImageFilter<Float3>::New();
  sequence->SetInput(MakeRandomImage<Float3>(Region, 4));
  sequence->AddFilter(mean);
  sequence->Update();
  const float before = sequence->GetOutput()->GetPixel(Region.GetIndex());
  const auto  time = sequence->GetOutput()->GetMTime();
  sequence->Update();
  EXPECT_EQ(sequence->GetOutput()->GetMTime(), time);
  mean->SetRadius(4);
  sequence->Update();
  EXPECT_NE(sequence->GetOutput()->GetPixel(Region.GetIndex()), before);
}

TEST(ChunkwiseSequenceImageFilter, NamesWhatIsWrong)
{
  const auto sequence = itk::ChunkwiseSequenceImageFilter<Float3>::New();
  sequence->SetInput(MakeRandomImage<Float3>(Region, 4));
  const auto message = [&] {
    try
    {
      sequence->Update();
    }
    catch (const itk::ExceptionObject & error)
    {
      return std::string(error.GetDescription());
    }
    return std::string();
  };
  EXPECT_NE(message().find("Filters"), std::string::npos);
  EXPECT_THROW(sequence->AddFilter(nullptr), itk::ExceptionObject);
  const auto mean = itk::RenormalizedMeanImageFilter<Float3>::New();
  mean->SetRadius(static_cast<itk::SizeValueType>(-1));
  sequence->AddFilter(mean);
  EXPECT_NE(message().find("Radius: 18446744073709551615"), std::string::npos);
  sequence->ClearFilters();
  mean->SetRadius(3);
  sequence->AddFilter(mean);
  EXPECT_EQ(message(), "");
  std::ostringstream os;
  sequence->Print(os);
  EXPECT_NE(os.str().find("Radius: [3, 3, 3]"), std::string::npos);
}

} // namespace ChunkwiseSequenceImageFilterTest
