/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedMaximumImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkRenormalizedMinimumImageFilter.h"
#include "itkRenormalizedPercentileImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkMedianImageFilter.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <sstream>

namespace RenormalizedRankTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;

template <typename TImage>
class RenormalizedRank : public ::testing::Test
{
protected:
  RenormalizedRank()
  {
    const itk::SizeValueType extents[] = { 31, 17, 12 };
    const itk::SizeValueType radii[] = { 2, 3, 1 };
    for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
    {
      m_Region.SetIndex(a, 4 - 3 * static_cast<int>(a));
      m_Region.SetSize(a, extents[a]);
      m_Radius[a] = radii[a];
    }
    m_Image = MakeRandomImage<TImage>(m_Region, 3, 0, 200);
  }

  typename TImage::RegionType m_Region;
  typename TImage::SizeType   m_Radius;
  typename TImage::Pointer    m_Image;
};

using Images = ::testing::Types<itk::Image<unsigned char, 3>, itk::Image<short, 2>, itk::Image<float, 3>>;
TYPED_TEST_SUITE(RenormalizedRank, Images);

TYPED_TEST(RenormalizedRank, MedianAgreesWithItkWhereTheImageIsContinued)
{
  const auto reference = itk::MedianImageFilter<TypeParam, TypeParam>::New();
  reference->SetInput(this->m_Image);
  reference->SetRadius(this->m_Radius);
  reference->Update();
  const auto filter = itk::RenormalizedMedianImageFilter<TypeParam>::New();
  filter->SetInput(this->m_Image);
  filter->SetRadius(this->m_Radius);
  filter->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::ZeroFluxNeumann);
  filter->Update();
  EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), reference->GetOutput(), this->m_Region), 0u);
}

TYPED_TEST(RenormalizedRank, StreamedIsTheSame)
{
  const auto make = [this] {
    const auto filter = itk::RenormalizedPercentileImageFilter<TypeParam>::New();
    filter->SetInput(this->m_Image);
    filter->SetRadius(this->m_Radius);
    filter->SetPercentile(30);
    return filter;
  };
  const auto whole = make();
  whole->Update();
  const auto streamed = make();
  const auto streaming = itk::StreamingImageFilter<TypeParam, TypeParam>::New();
  streaming->SetInput(streamed->GetOutput());
  streaming->SetNumberOfStreamDivisions(4);
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(whole->GetOutput(), streaming->GetOutput(), this->m_Region), 0u);
}

TYPED_TEST(RenormalizedRank, PercentilesEndInTheExtremaAndPassThroughTheMedian)
{
  const auto run = [this](auto filter) {
    filter->SetInput(this->m_Image);
    filter->SetRadius(this->m_Radius);
    filter->Update();
    return typename TypeParam::Pointer(filter->GetOutput());
  };
  const auto percentile = [&](double value) {
    const auto filter = itk::RenormalizedPercentileImageFilter<TypeParam>::New();
    filter->SetPercentile(value);
    return run(filter);
  };
  const auto & region = this->m_Region;
  EXPECT_EQ(
    CountDifferentVoxels<TypeParam>(percentile(0), run(itk::RenormalizedMinimumImageFilter<TypeParam>::New()), region),
    0u);
  EXPECT_EQ(
    CountDifferentVoxels<TypeParam>(percentile(50), run(itk::RenormalizedMedianImageFilter<TypeParam>::New()), region),
    0u);
  EXPECT_EQ(CountDifferentVoxels<TypeParam>(
              percentile(100), run(itk::RenormalizedMaximumImageFilter<TypeParam>::New()), region),
            0u);
  EXPECT_GT(CountDifferentVoxels<TypeParam>(percentile(20), percentile(80), region), 0u);
}

TYPED_TEST(RenormalizedRank, BadPercentilesThrowAndItIsPrinted)
{
  const auto filter = itk::RenormalizedPercentileImageFilter<TypeParam>::New();
  filter->SetInput(this->m_Image);
  for (const double bad : { -1.0, 100.5, std::numeric_limits<double>::quiet_NaN() })
  {
    filter->SetPercentile(bad);
    try
    {
      filter->Update();
      ADD_FAILURE() << bad;
    }
    catch (const itk::ExceptionObject & error)
    {
      EXPECT_NE(std::string(error.what()).find("Percentile: "), std::string::npos) << error.what();
    }
  }
  filter->SetPercentile(12.5);
  std::ostringstream os;
  filter->Print(os);
  EXPECT_NE(os.str().find("Percentile: 12.5"), std::string::npos);
  EXPECT_NE(os.str().find("Radius: [1"), std::string::npos);
}

} // namespace RenormalizedRankTest
