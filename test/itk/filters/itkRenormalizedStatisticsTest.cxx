/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedStandardDeviationImageFilter.h"
#include "itkRenormalizedSumImageFilter.h"
#include "itkRenormalizedVarianceImageFilter.h"
#include "itkRenormalizedWienerImageFilter.h"

#include "itkBoxSigmaImageFilter.h"
#include "itkChunkwiseTestImages.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace RenormalizedStatisticsTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Boundary = itk::ChunkwiseEnums::BoundaryCondition;

/** The values of the part of a box inside the image. */
template <typename TImage>
std::vector<double>
ValuesInside(const TImage * image, const typename TImage::IndexType & center, const typename TImage::SizeType & radius)
{
  std::vector<double>                            values;
  itk::ImageRegionConstIteratorWithIndex<TImage> it(image, chunkwisetest::WindowInside(image, center, radius));
  for (; !it.IsAtEnd(); ++it)
  {
    values.push_back(static_cast<double>(it.Get()));
  }
  return values;
}

template <typename TFilter>
class RenormalizedStatistics : public ::testing::Test
{};

using Float3 = itk::Image<float, 3>;
using Short4 = itk::Image<short, 4>;
using Float4 = itk::Image<float, 4>;
using Filters =
  ::testing::Types<itk::RenormalizedSumImageFilter<Float3>, itk::RenormalizedSumImageFilter<Short4, Float4>,
                   itk::RenormalizedVarianceImageFilter<Float3>, itk::RenormalizedVarianceImageFilter<Short4, Float4>,
                   itk::RenormalizedStandardDeviationImageFilter<Float3>,
                   itk::RenormalizedStandardDeviationImageFilter<Short4, Float4>>;
TYPED_TEST_SUITE(RenormalizedStatistics, Filters);

/** The statistic of a filter, by its name. */
double
Statistic(const std::string & filter, const std::vector<double> & values)
{
  double sum = 0;
  for (const double value : values)
  {
    sum += value;
  }
  if (filter == "RenormalizedSumImageFilter")
  {
    return sum;
  }
  const double mean = sum / static_cast<double>(values.size());
  double       squares = 0;
  for (const double value : values)
  {
    squares += (value - mean) * (value - mean);
  }
  const double variance = squares / static_cast<double>(values.size());
  return filter == "RenormalizedVarianceImageFilter" ? variance : std::sqrt(variance);
}

TYPED_TEST(RenormalizedStatistics, IsThatOfTheWindowInsideTheImageStreamedOrNot)
{
  using InputImage = typename TypeParam::InputImageType;
  using OutputImage = typename TypeParam::OutputImageType;
  constexpr unsigned int          dimension = InputImage::ImageDimension;
  typename InputImage::RegionType region;
  typename InputImage::SizeType   radius;
  const itk::SizeValueType        extents[] = { 9, 7, 6, 3 };
  const itk::SizeValueType        radii[] = { 2, 1, 6, 1 };
  for (unsigned int a = 0; a < dimension; ++a)
  {
    region.SetIndex(a, 3 - 2 * static_cast<int>(a));
    region.SetSize(a, extents[a]);
    radius[a] = radii[a];
  }
  const auto image = MakeRandomImage<InputImage>(region, 7, -1000, 1000);
  const auto filter = TypeParam::New();
  filter->SetInput(image);
  filter->SetRadius(radius);
  filter->Update();
  const auto streamed = TypeParam::New();
  streamed->SetInput(image);
  streamed->SetRadius(radius);
  const auto streaming = itk::StreamingImageFilter<OutputImage, OutputImage>::New();
  streaming->SetInput(streamed->GetOutput());
  streaming->SetNumberOfStreamDivisions(3);
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), streaming->GetOutput(), region), 0u);

  for (unsigned int a = 3; a < dimension; ++a)
  {
    radius[a] = 0; // not spatial by default
  }
  itk::ImageRegionConstIteratorWithIndex<OutputImage> it(filter->GetOutput(), region);
  for (; !it.IsAtEnd(); ++it)
  {
    const auto   values = ValuesInside(image.GetPointer(), it.GetIndex(), radius);
    const double expected = Statistic(filter->GetNameOfClass(), values);
    ASSERT_NEAR(it.Get(), expected, 1e-5 * (std::abs(expected) + 100)) << filter->GetNameOfClass() << it.GetIndex();
  }
}

TYPED_TEST(RenormalizedStatistics, NamesABadRadiusAndPrintsAGoodOne)
{
  const auto                                     filter = TypeParam::New();
  typename TypeParam::InputImageType::RegionType region;
  for (unsigned int a = 0; a < TypeParam::InputImageType::ImageDimension; ++a)
  {
    region.SetSize(a, 3);
  }
  filter->SetInput(MakeRandomImage<typename TypeParam::InputImageType>(region, 1));
  filter->SetRadius(static_cast<itk::SizeValueType>(-1));
  try
  {
    filter->Update();
    FAIL() << "no exception";
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.GetDescription()).find("Radius: 18446744073709551615"), std::string::npos);
  }
  filter->SetRadius(5);
  std::ostringstream os;
  filter->Print(os);
  EXPECT_NE(os.str().find("Radius: [5, 5"), std::string::npos);
}

TEST(RenormalizedStandardDeviationImageFilter, AgreesWithItkBoxSigmaWhichDividesByOneLess)
{
  const auto image = MakeRandomImage<Float3>(MakeRegion<Float3>({ 0, 0, 0 }, { 14, 13, 12 }), 5);
  const auto reference = itk::BoxSigmaImageFilter<Float3, Float3>::New();
  reference->SetInput(image);
  reference->SetRadius(2);
  reference->Update();
  const auto filter = itk::RenormalizedStandardDeviationImageFilter<Float3>::New();
  filter->SetInput(image);
  filter->SetRadius(2);
  filter->Update();
  itk::ImageRegionConstIteratorWithIndex<Float3> it(filter->GetOutput(), image->GetLargestPossibleRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    const auto n = static_cast<double>(
      chunkwisetest::WindowInside(image.GetPointer(), it.GetIndex(), { { 2, 2, 2 } }).GetNumberOfPixels());
    ASSERT_NEAR(it.Get() * std::sqrt(n / (n - 1)), reference->GetOutput()->GetPixel(it.GetIndex()), 1e-3);
  }
}

TEST(RenormalizedWienerImageFilter, IsTheMeanOfNoiseAndKeepsWhatHasNone)
{
  const auto region = MakeRegion<Float3>({ -3, 5, 0 }, { 21, 14, 9 });
  const auto image = MakeRandomImage<Float3>(region, 5, 0, 100);
  const auto make = [&image](double noise) {
    const auto filter = itk::RenormalizedWienerImageFilter<Float3>::New();
    filter->SetInput(image);
    filter->SetRadius(2);
    filter->SetNoiseVariance(noise);
    return filter;
  };
  const auto smooth = make(1e9);
  smooth->Update();
  const auto mean = itk::RenormalizedMeanImageFilter<Float3>::New();
  mean->SetInput(image);
  mean->SetRadius(2);
  mean->Update();
  EXPECT_EQ(CountDifferentVoxels(smooth->GetOutput(), mean->GetOutput(), region), 0u);

  const auto sharp = make(0);
  sharp->Update();
  itk::ImageRegionConstIteratorWithIndex<Float3> it(image, region);
  for (; !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(sharp->GetOutput()->GetPixel(it.GetIndex()), it.Get(), 1e-4);
  }

  const auto between = make(700);
  between->Update();
  EXPECT_GT(CountDifferentVoxels(between->GetOutput(), mean->GetOutput(), region), 0u);
  const auto streamed = make(700);
  const auto streaming = itk::StreamingImageFilter<Float3, Float3>::New();
  streaming->SetInput(streamed->GetOutput());
  streaming->SetNumberOfStreamDivisions(4);
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(between->GetOutput(), streaming->GetOutput(), region), 0u);
}

TEST(RenormalizedWienerImageFilter, NeedsItsNoiseAndPrintsIt)
{
  const auto filter = itk::RenormalizedWienerImageFilter<Float3>::New();
  filter->SetInput(MakeRandomImage<Float3>(MakeRegion<Float3>({ 0, 0, 0 }, { 5, 4, 3 }), 5, 0, 100));
  try
  {
    filter->Update();
    ADD_FAILURE();
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.what()).find("NoiseVariance: it was not set"), std::string::npos) << error.what();
  }
  filter->SetNoiseVariance(2.5);
  filter->Update();
  std::ostringstream os;
  filter->Print(os);
  EXPECT_NE(os.str().find("NoiseVariance: 2.5"), std::string::npos);
}

} // namespace RenormalizedStatisticsTest
