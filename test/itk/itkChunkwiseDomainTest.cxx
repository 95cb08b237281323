/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Filters over a part of the image: inputs, requests, streaming and what is refused. Other tests check the arithmetic.
#include "itkBoxStatisticImageFilter.h"
#include "itkPrunedFFTConvolutionImageFilter.h"
#include "itkPrunedFFTGaussianImageFilter.h"
#include "itkRenormalizedConvolutionImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedEntropyImageFilter.h"
#include "itkRenormalizedHighPassImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkRenormalizedPercentileImageFilter.h"
#include "itkRenormalizedSumImageFilter.h"
#include "itkRenormalizedVarianceImageFilter.h"
#include "itkRenormalizedWienerImageFilter.h"
#include "itkSpatiallyVaryingConvolutionImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace ChunkwiseDomainTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using chunkwisetest::MessageOf;
using ImageType = itk::Image<float, 3>;
using MaskType = itk::Image<unsigned char, 3>;
using MeanType = itk::RenormalizedMeanImageFilter<ImageType>;

ImageType::RegionType
UsualRegion()
{
  return MakeRegion<ImageType>({ -5, 20, 3 }, { 19, 14, 13 });
}

template <typename TFilter>
void
Prepare(TFilter & filter)
{
  filter.SetBackend(itk::ChunkwiseEnums::Backend::CPU);
  filter.SetInput(MakeRandomImage<ImageType>(UsualRegion(), 17));
}

TEST(ChunkwiseDomain, AMeanSeesTheVoxelsOfItsMaskAlone)
{
  const auto filter = MeanType::New();
  Prepare(*filter);
  const auto image = filter->GetInput();
  const auto mask = MakeRandomImage<MaskType>(UsualRegion(), 4, 0, 1.4);
  filter->SetMaskImage(mask);
  EXPECT_EQ(filter->GetMaskImage(), mask.GetPointer());
  filter->SetEmptyValue(-7);
  filter->Update();
  int empty = 0;
  for (itk::ImageRegionConstIteratorWithIndex<ImageType> it(filter->GetOutput(), UsualRegion()); !it.IsAtEnd(); ++it)
  {
    double sum = 0;
    int    count = 0;
    for (int tap = 0; tap < 27; ++tap)
    {
      auto at = it.GetIndex();
      at[0] += tap % 3 - 1;
      at[1] += tap / 3 % 3 - 1;
      at[2] += tap / 9 - 1;
      if (UsualRegion().IsInside(at) && mask->GetPixel(at) != 0)
      {
        sum += image->GetPixel(at);
        ++count;
      }
    }
    empty += count == 0 ? 1 : 0;
    ASSERT_NEAR(it.Get(), count > 0 ? sum / count : -7, 1e-4) << it.GetIndex();
  }
  EXPECT_GT(empty, 0);
  // Without the mask it is the filter that it was.
  filter->SetMaskImage(nullptr);
  EXPECT_NE(MessageOf(*filter).find("EmptyValue: -7 has no effect"), std::string::npos);
  filter->SetEmptyValue(std::numeric_limits<double>::quiet_NaN());
  filter->Update();
  const auto plain = MeanType::New();
  Prepare(*plain);
  plain->Update();
  EXPECT_EQ(CountDifferentVoxels(plain->GetOutput(), filter->GetOutput(), UsualRegion()), 0u);
}

using MedianType = itk::RenormalizedMedianImageFilter<ImageType>;

TEST(ChunkwiseDomain, AMedianSeesTheVoxelsOfItsMaskAlone)
{
  const auto filter = MedianType::New();
  Prepare(*filter);
  const auto image = filter->GetInput();
  const auto mask = MakeRandomImage<MaskType>(UsualRegion(), 4, 0, 1.4);
  filter->SetMaskImage(mask);
  filter->SetEmptyValue(-7);
  filter->Update();
  int empty = 0;
  for (itk::ImageRegionConstIteratorWithIndex<ImageType> it(filter->GetOutput(), UsualRegion()); !it.IsAtEnd(); ++it)
  {
    std::vector<float> seen;
    for (int tap = 0; tap < 27; ++tap)
    {
      auto at = it.GetIndex();
      at[0] += tap % 3 - 1;
      at[1] += tap / 3 % 3 - 1;
      at[2] += tap / 9 - 1;
      if (UsualRegion().IsInside(at) && mask->GetPixel(at) != 0)
      {
        seen.push_back(image->GetPixel(at));
      }
    }
    std::sort(seen.begin(), seen.end());
    empty += seen.empty() ? 1 : 0;
    ASSERT_EQ(it.Get(), seen.empty() ? -7 : seen[(seen.size() - 1) / 2]) << it.GetIndex();
  }
  EXPECT_GT(empty, 0);
}

template <typename TFilter>
constexpr bool TakesWeights = !std::is_same<TFilter, MedianType>::value &&
                              !std::is_same<TFilter, itk::RenormalizedPercentileImageFilter<ImageType>>::value &&
                              !std::is_same<TFilter, itk::RenormalizedEntropyImageFilter<ImageType>>::value;

template <typename TFilter>
void
ExpectStreamedSame(bool weighs)
{
  ImageType::Pointer outputs[2];
  for (int divisions : { 1, 5 })
  {
    const auto filter = TFilter::New();
    Prepare(*filter);
    if constexpr (std::is_base_of<itk::RenormalizedGaussianImageFilter<ImageType>, TFilter>::value)
    {
      filter->SetSigma(1.5);
    }
    if constexpr (std::is_same<itk::RenormalizedEntropyImageFilter<ImageType>, TFilter>::value)
    {
      filter->SetRange(0, 250);
    }
    // Both inputs are parts of larger images, and what is requested of them is all that they hold.
    const auto region = MakeRegion<ImageType>({ -6, 19, 2 }, { 21, 16, 15 });
    if constexpr (TakesWeights<TFilter>)
    {
      if (weighs)
      {
        filter->SetWeightImage(MakeRandomImage<ImageType>(region, 5, 0, 1));
      }
    }
    if (!weighs)
    {
      filter->SetMaskImage(MakeRandomImage<MaskType>(region, 5, 0, 2));
    }
    const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
    streamer->SetInput(filter->GetOutput());
    streamer->SetNumberOfStreamDivisions(divisions);
    streamer->Update();
    outputs[divisions > 1 ? 1 : 0] = streamer->GetOutput();
    outputs[divisions > 1 ? 1 : 0]->DisconnectPipeline();
  }
  EXPECT_EQ(CountDifferentVoxels(outputs[0].GetPointer(), outputs[1].GetPointer(), UsualRegion()), 0u);
}

TEST(ChunkwiseDomain, StreamedFiltersAreTheSame)
{
  for (const bool weighs : { false, true })
  {
    ExpectStreamedSame<MeanType>(weighs);
    ExpectStreamedSame<itk::RenormalizedSumImageFilter<ImageType>>(weighs);
    ExpectStreamedSame<itk::RenormalizedVarianceImageFilter<ImageType>>(weighs);
    ExpectStreamedSame<itk::RenormalizedGaussianImageFilter<ImageType>>(weighs);
    ExpectStreamedSame<itk::RenormalizedConvolutionImageFilter<ImageType>>(weighs);
  }
  ExpectStreamedSame<MedianType>(false);
  ExpectStreamedSame<itk::RenormalizedPercentileImageFilter<ImageType>>(false);
  ExpectStreamedSame<itk::RenormalizedEntropyImageFilter<ImageType>>(false);
}

TEST(ChunkwiseDomain, MasksAndWeightsAreRequestedAsTheInputIs)
{
  for (const bool weighs : { false, true })
  {
    const auto filter = MeanType::New();
    Prepare(*filter);
    const auto mask = MakeRandomImage<MaskType>(UsualRegion(), 5, 0, 2);
    const auto weights = MakeRandomImage<ImageType>(UsualRegion(), 5, 0, 1);
    weighs ? filter->SetWeightImage(weights) : filter->SetMaskImage(mask);
    filter->UpdateOutputInformation();
    filter->GetOutput()->SetRequestedRegion(MakeRegion<ImageType>({ 0, 25, 6 }, { 4, 3, 5 }));
    filter->PropagateRequestedRegion(filter->GetOutput());
    EXPECT_EQ(weighs ? weights->GetRequestedRegion() : mask->GetRequestedRegion(),
              MakeRegion<ImageType>({ -1, 24, 5 }, { 6, 5, 7 }));
    EXPECT_EQ(filter->GetInput()->GetRequestedRegion(), MakeRegion<ImageType>({ -1, 24, 5 }, { 6, 5, 7 }));
  }
}

TEST(ChunkwiseDomain, WhatCannotBeServedIsRefused)
{
  const auto filter = MeanType::New();
  Prepare(*filter);
  filter->SetWeightImage(MakeRandomImage<ImageType>(MakeRegion<ImageType>({ -5, 20, 3 }, { 19, 14, 12 }), 5));
  EXPECT_NE(MessageOf(*filter).find("WeightImage: its largest possible region"), std::string::npos)
    << MessageOf(*filter);
  filter->SetWeightImage(nullptr);
  filter->SetMaskImage(MakeRandomImage<MaskType>(MakeRegion<ImageType>({ -5, 20, 3 }, { 19, 13, 13 }), 5));
  EXPECT_NE(MessageOf(*filter).find("MaskImage: its largest possible region"), std::string::npos) << MessageOf(*filter);
  const auto elsewhere = MakeRandomImage<MaskType>(UsualRegion(), 5);
  elsewhere->SetSpacing(elsewhere->GetSpacing() * 2);
  filter->SetMaskImage(elsewhere);
  EXPECT_NE(MessageOf(*filter), "no error");
  filter->SetMaskImage(MakeRandomImage<MaskType>(UsualRegion(), 5));
  EXPECT_EQ(MessageOf(*filter), "no error");
  filter->SetWeightImage(MakeRandomImage<ImageType>(UsualRegion(), 5));
  EXPECT_NE(MessageOf(*filter).find("WeightImage: it is given beside MaskImage"), std::string::npos);
  filter->SetMaskImage(nullptr);
  EXPECT_EQ(MessageOf(*filter), "no error");
  filter->SetWeightImage(MakeRandomImage<ImageType>(UsualRegion(), 5, -1, 1));
  EXPECT_NE(MessageOf(*filter).find("WeightImage: a weight is negative"), std::string::npos) << MessageOf(*filter);

  using Convolution = itk::PrunedFFTConvolutionImageFilter<ImageType>;
  const auto convolution = Convolution::New();
  Prepare(*convolution);
  convolution->SetKernelImage(MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 3, 2, 1 }), 9, 1, 2));
  convolution->SetMaskImage(elsewhere);
  EXPECT_NE(MessageOf(*convolution).find("MaskImage: it lies elsewhere"), std::string::npos) << MessageOf(*convolution);
  convolution->SetMaskImage(MakeRandomImage<MaskType>(MakeRegion<ImageType>({ -5, 20, 3 }, { 19, 13, 13 }), 5));
  EXPECT_NE(MessageOf(*convolution).find("MaskImage: its largest possible region"), std::string::npos)
    << MessageOf(*convolution);
}

/** The mean of the local variances of the voxels inside, which is another one as soon as the mask is. */
TEST(ChunkwiseDomain, NoiseIsThatOfTheMask)
{
  using Wiener = itk::RenormalizedWienerImageFilter<ImageType>;
  const auto filter = Wiener::New();
  Prepare(*filter);
  filter->SetRadius(1);
  filter->EstimateNoiseVarianceOn();
  filter->Update();
  const double whole = filter->GetNoiseVariance();
  const auto   mask = MakeRandomImage<MaskType>(UsualRegion(), 4, 0, 1.4);
  filter->SetMaskImage(mask);
  filter->Update();
  const double inside = filter->GetNoiseVariance();
  const auto   variance = itk::RenormalizedVarianceImageFilter<ImageType>::New();
  Prepare(*variance);
  variance->SetRadius(1);
  variance->SetMaskImage(mask);
  variance->Update();
  double sum = 0;
  int    count = 0;
  for (itk::ImageRegionConstIteratorWithIndex<ImageType> it(variance->GetOutput(), UsualRegion()); !it.IsAtEnd(); ++it)
  {
    if (mask->GetPixel(it.GetIndex()) != 0)
    {
      sum += it.Get();
      ++count;
    }
  }
  EXPECT_NEAR(inside, sum / count, 1e-6 * inside);
  EXPECT_NE(inside, whole);
  mask->FillBuffer(1);
  mask->Modified();
  filter->Update();
  EXPECT_EQ(filter->GetNoiseVariance(), whole);
}

/** Beside the radii, and beside a kernel that lies in no common space. */
TEST(ChunkwiseDomain, MasksAreBesideOtherImages)
{
  using RadiusType = itk::Image<unsigned char, 3>;
  using Box = itk::BoxStatisticImageFilter<ImageType, ImageType, RadiusType>;
  const auto mask = MakeRandomImage<MaskType>(UsualRegion(), 4, 0, 1.4);
  const auto ones = MakeRandomImage<MaskType>(UsualRegion(), 4, 1, 2);
  const auto radii = MakeRandomImage<RadiusType>(UsualRegion(), 6, 0, 2.9);
  const auto box = Box::New();
  Prepare(*box);
  box->SetRadius(2);
  box->SetRadiusImage(radii);
  box->Update();
  const auto plain = chunkwisetest::MakeRandomImage<ImageType>(UsualRegion(), 1);
  std::copy_n(box->GetOutput()->GetBufferPointer(), UsualRegion().GetNumberOfPixels(), plain->GetBufferPointer());
  box->SetMaskImage(ones);
  box->Update();
  EXPECT_EQ(CountDifferentVoxels(plain.GetPointer(), box->GetOutput(), UsualRegion()), 0u);
  box->SetMaskImage(mask);
  box->Update();
  EXPECT_NE(CountDifferentVoxels(plain.GetPointer(), box->GetOutput(), UsualRegion()), 0u);
  // All radii as large as they may be: without the image of radii it is the same.
  radii->FillBuffer(2);
  radii->Modified();
  box->Update();
  const auto fixed = Box::New();
  Prepare(*fixed);
  fixed->SetRadius(2);
  fixed->SetMaskImage(mask);
  fixed->Update();
  EXPECT_EQ(CountDifferentVoxels(fixed->GetOutput(), box->GetOutput(), UsualRegion()), 0u);

  const auto convolution = itk::PrunedFFTConvolutionImageFilter<ImageType>::New();
  Prepare(*convolution);
  const auto kernel = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 5, 5, 5 }), 9, 1, 1);
  kernel->FillBuffer(1.0F / 125);
  convolution->SetKernelImage(kernel);
  convolution->SetMethod(itk::ChunkwiseConvolutionEnums::Method::FFT);
  convolution->SetMaskImage(mask);
  convolution->Update();
  const auto varying = itk::SpatiallyVaryingConvolutionImageFilter<ImageType>::New();
  Prepare(*varying);
  varying->SetKernelImages({ kernel.GetPointer() });
  varying->SetMaskImage(mask);
  varying->Update();
  for (itk::ImageRegionConstIteratorWithIndex<ImageType> it(fixed->GetOutput(), UsualRegion()); !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(convolution->GetOutput()->GetPixel(it.GetIndex()), it.Get(), 1e-4) << it.GetIndex();
    ASSERT_NEAR(varying->GetOutput()->GetPixel(it.GetIndex()), it.Get(), 1e-4) << it.GetIndex();
  }
}

TEST(ChunkwiseDomain, GaussiansOfBothKindsAreTheSameInAMask)
{
  using Direct = itk::RenormalizedGaussianImageFilter<ImageType>;
  using Transforms = itk::PrunedFFTGaussianImageFilter<ImageType>;
  ImageType::Pointer outputs[2];
  for (const bool transforms : { false, true })
  {
    const Direct::Pointer filter = transforms ? Transforms::New().GetPointer() : Direct::New().GetPointer();
    Prepare(*filter);
    filter->SetSigma(2);
    filter->SetMaskImage(MakeRandomImage<MaskType>(UsualRegion(), 5, 0, 2));
    filter->Update();
    outputs[transforms ? 1 : 0] = filter->GetOutput();
  }
  for (itk::ImageRegionConstIteratorWithIndex<ImageType> it(outputs[0], UsualRegion()); !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(outputs[1]->GetPixel(it.GetIndex()), it.Get(), 1e-3) << it.GetIndex();
  }
}

} // namespace ChunkwiseDomainTest
