/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedNonLocalMeansImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <sstream>

namespace RenormalizedNonLocalMeansImageFilterTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Image = itk::Image<float, 3>;
using Filter = itk::RenormalizedNonLocalMeansImageFilter<Image>;

TEST(RenormalizedNonLocalMeansImageFilter, GoesFromTheImageToTheMeanAndIsTheSameStreamed)
{
  const auto region = MakeRegion<Image>({ -3, 5, 0 }, { 21, 14, 9 });
  const auto image = MakeRandomImage<Image>(region, 5, 0, 100);
  const auto make = [&image](double strength) {
    const auto filter = Filter::New();
    filter->SetInput(image);
    filter->SetRadius(2);
    filter->SetPatchRadius(1);
    filter->SetStrength(strength);
    return filter;
  };
  const auto sharp = make(0.5);
  sharp->Update();
  EXPECT_EQ(CountDifferentVoxels(sharp->GetOutput(), image.GetPointer(), region), 0u);
  const auto smooth = make(1e9);
  smooth->Update();
  const auto mean = itk::RenormalizedMeanImageFilter<Image>::New();
  mean->SetInput(image);
  mean->SetRadius(2);
  mean->Update();
  itk::ImageRegionConstIteratorWithIndex<Image> it(mean->GetOutput(), region);
  for (; !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(smooth->GetOutput()->GetPixel(it.GetIndex()), it.Get(), 1e-4);
  }
  const auto between = make(20);
  between->Update();
  const auto streamed = make(20);
  const auto streaming = itk::StreamingImageFilter<Image, Image>::New();
  streaming->SetInput(streamed->GetOutput());
  streaming->SetNumberOfStreamDivisions(4);
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(between->GetOutput(), streaming->GetOutput(), region), 0u);
  EXPECT_GT(CountDifferentVoxels(between->GetOutput(), image.GetPointer(), region), 0u);
}

TEST(RenormalizedNonLocalMeansImageFilter, NamesBadParametersAndPrintsGoodOnes)
{
  const auto filter = Filter::New();
  filter->SetInput(MakeRandomImage<Image>(MakeRegion<Image>({ 0, 0, 0 }, { 5, 4, 3 }), 5, 0, 100));
  const auto message = [&filter]() -> std::string {
    try
    {
      filter->Update();
    }
    catch (const itk::ExceptionObject & error)
    {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message().find("Strength: 0"), std::string::npos);
  filter->SetStrength(3);
  EXPECT_EQ(message(), "");
  filter->SetNoiseVariance(-2);
  EXPECT_NE(message().find("NoiseVariance: -2"), std::string::npos);
  filter->SetNoiseVariance(2);
  filter->SetPatchRadius(2);
  std::ostringstream os;
  filter->Print(os);
  for (const char * text : { "PatchRadius: [2, 2, 2]", "Strength: 3", "NoiseVariance: 2", "Radius: [1, 1, 1]" })
  {
    EXPECT_NE(os.str().find(text), std::string::npos) << text;
  }
}

} // namespace RenormalizedNonLocalMeansImageFilterTest
