/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseThresholds.h"
#include "itkChunkwiseTestImages.h"
#include "itkGlobalThresholdImageFilter.h"
#include "itkHistogram.h"
#include "itkHuangThresholdCalculator.h"
#include "itkImageRegionConstIterator.h"
#include "itkKittlerIllingworthThresholdCalculator.h"
#include "itkMaximumEntropyThresholdCalculator.h"
#include "itkMomentsThresholdCalculator.h"
#include "itkRenyiEntropyThresholdCalculator.h"
#include "itkShanbhagThresholdCalculator.h"

#include <gtest/gtest.h>

#include <random>

namespace ChunkwiseThresholdTest
{

using HistogramType = itk::Statistics::Histogram<double>;
using chunkwise::ThresholdMethod;

/** The result of a calculator of ITK for a histogram whose bins have whole numbers from 0 on as their centers. */
template <typename TCalculator>
double
ThresholdOfItk(const std::vector<std::int64_t> & counts)
{
  const auto                           histogram = HistogramType::New();
  HistogramType::SizeType              size(1);
  HistogramType::MeasurementVectorType lower(1);
  HistogramType::MeasurementVectorType upper(1);
  size[0] = counts.size();
  lower[0] = -0.5;
  upper[0] = static_cast<double>(counts.size()) - 0.5;
  histogram->SetMeasurementVectorSize(1);
  histogram->Initialize(size, lower, upper);
  for (std::size_t i = 0; i < counts.size(); ++i)
  {
    histogram->SetFrequency(i, static_cast<HistogramType::AbsoluteFrequencyType>(counts[i]));
  }
  const auto calculator = TCalculator::New();
  calculator->SetInput(histogram);
  calculator->Update();
  return calculator->GetThreshold();
}

TEST(ChunkwiseThresholds, AreThoseOfItksCalculators)
{
  std::mt19937 random(5);
  int          kittlers = 0;
  for (int trial = 0; trial < 60; ++trial)
  {
    std::normal_distribution<double> low(50 + random() % 30, 5 + random() % 20);
    std::normal_distribution<double> high(150 + random() % 40, 5 + random() % 20);
    std::vector<std::int64_t>        counts(256, 0);
    for (int i = 0; i < 20000; ++i)
    {
      const double value = std::floor(random() % 5 < 1 + trial % 4 ? low(random) : high(random));
      ++counts[static_cast<std::size_t>(std::max(0.0, std::min(255.0, value)))];
    }
    counts.front() += 1;
    counts.back() += 1;
    const auto ours = [&](ThresholdMethod method) { return ComputeThresholds({ 0, 1, counts }, method).at(0); };
    EXPECT_EQ(ours(ThresholdMethod::Moments), ThresholdOfItk<itk::MomentsThresholdCalculator<HistogramType>>(counts));
    EXPECT_EQ(ours(ThresholdMethod::Huang), ThresholdOfItk<itk::HuangThresholdCalculator<HistogramType>>(counts));
    EXPECT_EQ(ours(ThresholdMethod::MaximumEntropy),
              ThresholdOfItk<itk::MaximumEntropyThresholdCalculator<HistogramType>>(counts));
    EXPECT_EQ(ours(ThresholdMethod::RenyiEntropy),
              ThresholdOfItk<itk::RenyiEntropyThresholdCalculator<HistogramType>>(counts));
    EXPECT_EQ(ours(ThresholdMethod::Shanbhag), ThresholdOfItk<itk::ShanbhagThresholdCalculator<HistogramType>>(counts));
    try
    {
      const double ofItk = ThresholdOfItk<itk::KittlerIllingworthThresholdCalculator<HistogramType>>(counts);
      EXPECT_EQ(ours(ThresholdMethod::Kittler), ofItk);
      ++kittlers;
    }
    catch (const itk::ExceptionObject &)
    {
      // It throws where ours stays at the last threshold.
      EXPECT_GE(ours(ThresholdMethod::Kittler), 0);
    }
  }
  EXPECT_GT(kittlers, 20);
}

TEST(ChunkwiseThresholds, AreFoundInTheWholeInputAndTold)
{
  using ImageType = itk::Image<short, 3>;
  using MaskType = itk::Image<unsigned char, 3>;
  const auto region = chunkwisetest::MakeRegion<ImageType>({ -5, 20, 3 }, { 19, 14, 13 });
  const auto image = chunkwisetest::MakeRandomImage<ImageType>(region, 8, -100, 100);
  const auto filter = itk::GlobalThresholdImageFilter<ImageType>::New();
  filter->SetInput(image);
  filter->Update();
  const double whole = filter->GetThreshold();
  ASSERT_EQ(filter->GetThresholds().size(), 1u);
  itk::ImageRegionConstIterator<ImageType> in(image, region);
  itk::ImageRegionConstIterator<MaskType>  out(filter->GetOutput(), region);
  for (; !in.IsAtEnd(); ++in, ++out)
  {
    ASSERT_EQ(out.Get(), in.Get() > whole ? 1 : 0);
  }
  // A part of the output is that of the whole.
  const auto part = itk::GlobalThresholdImageFilter<ImageType>::New();
  part->SetInput(image);
  part->GetOutput()->SetRequestedRegion(chunkwisetest::MakeRegion<ImageType>({ -2, 24, 5 }, { 3, 4, 2 }));
  part->GetOutput()->Update();
  EXPECT_EQ(part->GetThreshold(), whole);
  // Another method, a mask, and thresholds that were found before.
  filter->SetMethod(itk::GlobalThresholdEnums::Method::MultiOtsu);
  filter->Update();
  EXPECT_EQ(filter->GetThresholds().size(), 2u);
  filter->SetMethod(itk::GlobalThresholdEnums::Method::Otsu);
  const auto mask = chunkwisetest::MakeRandomImage<MaskType>(region, 9, 0, 2);
  filter->SetMaskImage(mask);
  filter->Update();
  itk::ImageRegionConstIterator<MaskType> inside(mask, region);
  in.GoToBegin();
  for (out = itk::ImageRegionConstIterator<MaskType>(filter->GetOutput(), region); !out.IsAtEnd();
       ++in, ++out, ++inside)
  {
    ASSERT_EQ(out.Get(), inside.Get() != 0 && in.Get() > filter->GetThreshold() ? 1 : 0);
  }
  filter->SetThresholds({ 3.5 });
  filter->SetMaskImage(nullptr);
  filter->Update();
  EXPECT_EQ(filter->GetThreshold(), 3.5);
  filter->SetThresholds({});
  filter->Update();
  EXPECT_EQ(filter->GetThreshold(), whole);
}

} // namespace ChunkwiseThresholdTest
