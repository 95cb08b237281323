/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseStatisticsImageSink.h"

#include "itkChunkwiseTestImages.h"
#include "itkCommand.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <sstream>

namespace itk
{

/** Aborts once a quarter is done. */
class ChunkwiseAbortingCommand : public Command
{
public:
  using Self = ChunkwiseAbortingCommand;
  using Pointer = SmartPointer<Self>;
  itkNewMacro(Self);

  ProcessObject * sink{ nullptr };
  float           last{ 0 };

  void
  Execute(Object *, const EventObject &) override
  {
    last = sink->GetProgress();
    if (last > 0.25f)
    {
      sink->AbortGenerateDataOn();
    }
  }
  void
  Execute(const Object *, const EventObject &) override
  {}
};

} // namespace itk

namespace ChunkwiseStatisticsImageSinkTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;

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
    EXPECT_EQ(sink->GetNumberOfNaNs(), 0u);
    // The same as of the image at once, which other tests compare with the definition.
    const auto                       box = itk::ChunkwiseBoxFromRegion(region, region.GetIndex());
    chunkwise::StatisticsAccumulator atOnce(chunkwise::PixelTypeOf<TypeParam>());
    atOnce.Add(chunkwise::DenseView(image->GetBufferPointer(), chunkwise::PixelTypeOf<TypeParam>(), box), box);
    EXPECT_EQ(sink->GetVariance(), atOnce.Get().GetVariance());
    EXPECT_EQ(sink->GetStandardDeviation(), std::sqrt(sink->GetVariance()));
    std::ostringstream os;
    sink->Print(os);
    EXPECT_NE(os.str().find("Count: 13986"), std::string::npos);
  }
}

using FloatImage = itk::Image<float, 3>;

template <typename TFunctor>
std::string
MessageOf(TFunctor && f)
{
  try
  {
    f();
  }
  catch (const itk::ExceptionObject & error)
  {
    return error.GetDescription();
  }
  return "";
}

TEST(ChunkwiseStatisticsImageSink, ReturnsWhereAnAxisIsEmpty)
{
  for (unsigned int axis = 0; axis < 3; ++axis)
  {
    FloatImage::SizeType size = { { 5, 4, 3 } };
    size[axis] = 0;
    const auto image = FloatImage::New();
    image->SetRegions(size);
    image->Allocate();
    const auto sink = itk::ChunkwiseStatisticsImageSink<FloatImage>::New();
    sink->SetInput(image);
    sink->SetNumberOfStreamDivisions(2);
    sink->Update();
    EXPECT_EQ(sink->GetCount(), 0u);
    EXPECT_EQ(sink->GetSum(), 0.0);
    EXPECT_NE(MessageOf([&] { (void)sink->GetMinimum(); }).find("no voxels"), std::string::npos);
  }
}

TEST(ChunkwiseStatisticsImageSink, SaysThatThereIsNothingButNaN)
{
  const auto region = MakeRegion<FloatImage>({ 0, 0, 0 }, { 5, 4, 3 });
  const auto image = MakeRandomImage<FloatImage>(region, 5);
  image->FillBuffer(std::numeric_limits<float>::quiet_NaN());
  const auto sink = itk::ChunkwiseStatisticsImageSink<FloatImage>::New();
  sink->SetInput(image);
  sink->Update();
  EXPECT_EQ(sink->GetCount(), 0u);
  EXPECT_EQ(sink->GetNumberOfNaNs(), 60u);
  const std::function<void()> gets[] = { [&] { (void)sink->GetMean(); },
                                         [&] { (void)sink->GetVariance(); },
                                         [&] { (void)sink->GetStandardDeviation(); },
                                         [&] { (void)sink->GetMinimum(); },
                                         [&] { (void)sink->GetMaximum(); } };
  for (const auto & get : gets)
  {
    EXPECT_NE(MessageOf(get).find("nothing but NaN (60 voxels)"), std::string::npos) << MessageOf(get);
  }
  std::ostringstream os;
  sink->Print(os);
  EXPECT_NE(os.str().find("NumberOfNaNs: 60"), std::string::npos);
  // One number is enough.
  image->SetPixel({ { 2, 1, 1 } }, -3.0f);
  image->Modified();
  sink->Modified();
  sink->Update();
  EXPECT_EQ(sink->GetMinimum(), -3.0f);
  EXPECT_EQ(sink->GetMaximum(), -3.0f);
  EXPECT_EQ(sink->GetMean(), -3.0);
}

TEST(ChunkwiseStatisticsImageSink, CanBeAbortedAndUsedAgain)
{
  const auto region = MakeRegion<FloatImage>({ 0, 0, 0 }, { 64, 64, 40 });
  const auto image = MakeRandomImage<FloatImage>(region, 5);
  const auto sink = itk::ChunkwiseStatisticsImageSink<FloatImage>::New();
  sink->SetInput(image);
  sink->SetNumberOfStreamDivisions(20);
  const auto command = itk::ChunkwiseAbortingCommand::New();
  command->sink = sink;
  const auto tag = sink->AddObserver(itk::ProgressEvent(), command);
  EXPECT_THROW(sink->Update(), itk::ProcessAborted);
  EXPECT_LT(command->last, 0.9f);
  sink->RemoveObserver(tag);
  sink->Update();
  EXPECT_EQ(sink->GetCount(), region.GetNumberOfPixels());
}

} // namespace ChunkwiseStatisticsImageSinkTest
