/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseStatisticsImageSink.h"

#include "itkChunkwiseTestImages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;

TEST(ExactSum, RoundsOnceAtTheEndWhateverTheOrder)
{
  const double tiny = std::numeric_limits<double>::denorm_min();
  const auto   sum = [](std::initializer_list<double> values) {
    chunkwise::ExactSum forth;
    chunkwise::ExactSum back;
    for (auto it = values.begin(); it != values.end(); ++it)
    {
      forth.Add(*it);
    }
    for (auto it = std::make_reverse_iterator(values.end()); it != std::make_reverse_iterator(values.begin()); ++it)
    {
      chunkwise::ExactSum one;
      one.Add(*it);
      back.Add(one);
    }
    EXPECT_EQ(forth.Get(), back.Get());
    return forth.Get();
  };
  EXPECT_EQ(sum({}), 0.0);
  EXPECT_EQ(sum({ 1e300, 1.0, -1e300 }), 1.0);
  EXPECT_EQ(sum({ -1e300, tiny, 1e300 }), tiny);
  EXPECT_EQ(sum({ -3.5, 1.25 }), -2.25);
  // Ties go to even, and the smallest bit decides them.
  EXPECT_EQ(sum({ 1.0, std::ldexp(1.0, -53) }), 1.0);
  EXPECT_EQ(sum({ 1.0, std::ldexp(1.0, -53), tiny }), 1.0 + std::ldexp(1.0, -52));
  EXPECT_EQ(sum({ -1.0, -std::ldexp(1.0, -53), -tiny }), -1.0 - std::ldexp(1.0, -52));
  EXPECT_EQ(sum({ std::numeric_limits<double>::max(), std::numeric_limits<double>::max() }),
            std::numeric_limits<double>::infinity());
  chunkwise::ExactSum special;
  special.Add(std::numeric_limits<double>::infinity());
  special.Add(-1e308);
  EXPECT_EQ(special.Get(), std::numeric_limits<double>::infinity());
  special.Add(-std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(special.Get()));
}

template <typename TPixel>
class ChunkwiseStatisticsOfEveryKind : public ::testing::Test
{};
using Pixels = ::testing::Types<unsigned char, signed char, unsigned short, short, unsigned int, int, unsigned long,
                                long long, float, double>;
TYPED_TEST_SUITE(ChunkwiseStatisticsOfEveryKind, Pixels);

TYPED_TEST(ChunkwiseStatisticsOfEveryKind, AreExactInAnyDivisions)
{
  using ImageType = itk::Image<TypeParam, 3>;
  using Limits = std::numeric_limits<TypeParam>;
  const double lowest = Limits::is_integer ? 0.9 * static_cast<double>(Limits::lowest()) : -1e6;
  const double highest = Limits::is_integer ? 0.9 * static_cast<double>(Limits::max()) : 1e6;
  const auto   region = MakeRegion<ImageType>({ 3, -2, 1 }, { 37, 21, 18 });
  const auto   image = MakeRandomImage<ImageType>(region, 5, lowest, highest);
  using Wide = std::conditional_t<Limits::is_integer, __int128, long double>;
  Wide      expected = 0;
  TypeParam minimum = Limits::max();
  TypeParam maximum = Limits::lowest();
  for (itk::ImageRegionConstIteratorWithIndex<ImageType> it(image, region); !it.IsAtEnd(); ++it)
  {
    expected += static_cast<Wide>(it.Get());
    minimum = std::min(minimum, it.Get());
    maximum = std::max(maximum, it.Get());
  }
  double first = 0;
  for (const unsigned int divisions : { 1, 2, 5, 18 })
  {
    const auto sink = itk::ChunkwiseStatisticsImageSink<ImageType>::New();
    sink->SetInput(image);
    sink->SetNumberOfStreamDivisions(divisions);
    sink->Update();
    first = divisions == 1 ? sink->GetSum() : first;
    EXPECT_EQ(sink->GetSum(), first);
    if (Limits::is_integer)
    {
      EXPECT_EQ(sink->GetSum(), static_cast<double>(expected));
    }
    else
    {
      EXPECT_NEAR(sink->GetSum(), static_cast<double>(expected), 1e-6);
    }
    EXPECT_EQ(sink->GetMinimum(), minimum);
    EXPECT_EQ(sink->GetMaximum(), maximum);
    EXPECT_EQ(sink->GetCount(), region.GetNumberOfPixels());
    EXPECT_EQ(sink->GetMean(), sink->GetSum() / static_cast<double>(region.GetNumberOfPixels()));
    std::ostringstream os;
    sink->Print(os);
    EXPECT_NE(os.str().find("Count: 13986"), std::string::npos);
  }
}

} // namespace
