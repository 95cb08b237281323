/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkBoxStatisticImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedStandardDeviationImageFilter.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace BoxStatisticImageFilterTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using chunkwisetest::RandomRegionInside;
using Float3 = itk::Image<float, 3>;
using Short3 = itk::Image<short, 3>;
using Statistic = itk::BoxStatisticEnums::Statistic;

template <typename TFilter>
std::string
MessageOf(TFilter & filter)
{
  try
  {
    filter.Update();
  }
  catch (const itk::ExceptionObject & error)
  {
    return error.GetDescription();
  }
  return "no exception";
}

TEST(BoxStatisticImageFilter, OfIntegersIsThatOfTheNeighborhoodFamily)
{
  const auto region = MakeRegion<Short3>({ 4, -7, 0 }, { 71, 40, 35 });
  const auto image = MakeRandomImage<Short3>(region, 11, -3000, 3000);
  for (const itk::SizeValueType radius : { 1, 9, 50 })
  {
    const auto box = itk::BoxStatisticImageFilter<Short3>::New();
    box->SetInput(image);
    box->SetRadius(radius);
    box->Update();
    const auto mean = itk::RenormalizedMeanImageFilter<Short3>::New();
    mean->SetInput(image);
    mean->SetRadius(radius);
    mean->Update();
    EXPECT_EQ(CountDifferentVoxels(box->GetOutput(), mean->GetOutput(), region), 0u) << radius;

    const auto deviation = itk::BoxStatisticImageFilter<Short3, Float3>::New();
    deviation->SetInput(image);
    deviation->SetRadius(radius);
    deviation->SetStatistic(Statistic::StandardDeviation);
    deviation->Update();
    const auto reference = itk::RenormalizedStandardDeviationImageFilter<Short3, Float3>::New();
    reference->SetInput(image);
    reference->SetRadius(radius);
    reference->Update();
    EXPECT_EQ(CountDifferentVoxels(deviation->GetOutput(), reference->GetOutput(), region), 0u) << radius;
  }
}

/** The statistic over the part of a box inside the image. */
double
Expected(const Float3 * image, const Float3::IndexType & index, const Float3::SizeType & radius, Statistic statistic)
{
  double                                         sum = 0;
  double                                         squares = 0;
  double                                         n = 0;
  itk::ImageRegionConstIteratorWithIndex<Float3> it(image, chunkwisetest::WindowInside(image, index, radius));
  for (; !it.IsAtEnd(); ++it)
  {
    sum += it.Get();
    squares += static_cast<double>(it.Get()) * it.Get();
    ++n;
  }
  const double variance = std::max(0.0, (squares - sum * sum / n) / n);
  return statistic == Statistic::Sum        ? sum
         : statistic == Statistic::Mean     ? sum / n
         : statistic == Statistic::Variance ? variance
                                            : std::sqrt(variance);
}

template <typename TRadiusImage>
void
CompareWithRadii(Statistic statistic, double lowestRadius)
{
  using Filter = itk::BoxStatisticImageFilter<Float3, Float3, TRadiusImage>;
  const auto             region = MakeRegion<Float3>({ -5, 12, 3 }, { 40, 37, 34 });
  const auto             image = MakeRandomImage<Float3>(region, 21, -100, 100);
  const auto             radii = MakeRandomImage<TRadiusImage>(region, 22, lowestRadius, 12);
  const Float3::SizeType largest{ { 9, 4, 6 } };
  const auto             make = [&] {
    const auto filter = Filter::New();
    filter->SetInput(image);
    filter->SetRadiusImage(radii);
    filter->SetRadius(largest);
    filter->SetStatistic(statistic);
    return filter;
  };
  const auto whole = make();
  whole->Update();
  itk::ImageRegionConstIteratorWithIndex<Float3> it(whole->GetOutput(), region);
  for (; !it.IsAtEnd(); ++it)
  {
    const auto       r = static_cast<int>(radii->GetPixel(it.GetIndex()));
    Float3::SizeType radius;
    for (unsigned int a = 0; a < 3; ++a)
    {
      radius[a] = std::min<itk::SizeValueType>(static_cast<itk::SizeValueType>(std::max(r, 0)), largest[a]);
    }
    const double expected = Expected(image.GetPointer(), it.GetIndex(), radius, statistic);
    // A deviation of zero is the root of what tables are off by.
    const double bound = 1e-6 * std::abs(expected) + (statistic == Statistic::StandardDeviation ? 1e-3 : 1e-6);
    ASSERT_NEAR(it.Get(), expected, bound) << it.GetIndex() << " radius " << r;
  }

  const auto piecewise = make();
  const auto streaming = itk::StreamingImageFilter<Float3, Float3>::New();
  streaming->SetInput(piecewise->GetOutput());
  streaming->SetNumberOfStreamDivisions(4);
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(whole->GetOutput(), streaming->GetOutput(), region), 0u);
  std::mt19937 random(23);
  for (int trial = 0; trial < 5; ++trial)
  {
    const auto filter = make();
    const auto part = RandomRegionInside(region, random);
    filter->GetOutput()->SetRequestedRegion(part);
    filter->Update();
    EXPECT_EQ(CountDifferentVoxels(whole->GetOutput(), filter->GetOutput(), part), 0u) << part;
  }
}

TEST(BoxStatisticImageFilter, TakesTheRadiusOfEachVoxelStreamedOrNot)
{
  CompareWithRadii<itk::Image<unsigned short, 3>>(Statistic::Sum, 0);
  CompareWithRadii<itk::Image<unsigned char, 3>>(Statistic::Mean, 0);
  CompareWithRadii<itk::Image<short, 3>>(Statistic::Variance, -4);
  CompareWithRadii<itk::Image<long long, 3>>(Statistic::StandardDeviation, -4);
}

TEST(BoxStatisticImageFilter, RequestsNoMoreThanItNeeds)
{
  const auto region = MakeRegion<Short3>({ 0, 0, 0 }, { 60, 50, 200 });
  const auto image = Short3::New();
  image->SetLargestPossibleRegion(region);
  const auto filter = itk::BoxStatisticImageFilter<Short3>::New();
  filter->SetInput(image);
  filter->SetRadius(3);
  filter->UpdateOutputInformation();
  filter->GetOutput()->SetRequestedRegion(MakeRegion<Short3>({ 10, 10, 100 }, { 20, 20, 30 }));
  filter->PropagateRequestedRegion(filter->GetOutput());
  EXPECT_EQ(image->GetRequestedRegion(), MakeRegion<Short3>({ 7, 7, 97 }, { 26, 26, 36 }));
}

TEST(BoxStatisticImageFilter, NamesWhatItCannotDo)
{
  const auto region = MakeRegion<Float3>({ 0, 0, 0 }, { 9, 8, 7 });
  const auto filter = itk::BoxStatisticImageFilter<Float3>::New();
  filter->SetInput(MakeRandomImage<Float3>(region, 1));
  filter->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::Mirror);
  EXPECT_NE(MessageOf(*filter).find("'mirror' is none of renormalized"), std::string::npos) << MessageOf(*filter);
  filter->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::Renormalized);
  using Radii = itk::Image<unsigned short, 3>;
  filter->SetRadiusImage(MakeRandomImage<Radii>(MakeRegion<Radii>({ 0, 0, 0 }, { 9, 8, 6 }), 1));
  const std::string message = MessageOf(*filter);
  EXPECT_NE(message.find("RadiusImage"), std::string::npos) << message;
  EXPECT_NE(message.find("[9, 8, 6]"), std::string::npos) << message;
  filter->SetRadiusImage(nullptr);
  filter->SetStatistic(Statistic::Variance);
  EXPECT_EQ(MessageOf(*filter), "no exception");
  std::ostringstream os;
  filter->Print(os);
  EXPECT_NE(os.str().find("Statistic: itk::BoxStatisticEnums::Statistic::Variance"), std::string::npos);
}

} // namespace BoxStatisticImageFilterTest
