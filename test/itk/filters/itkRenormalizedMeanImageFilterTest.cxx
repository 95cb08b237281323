/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedMeanImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkMeanImageFilter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace RenormalizedMeanImageFilterTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using chunkwisetest::RenormalizedMeanAt;
using Boundary = itk::ChunkwiseEnums::BoundaryCondition;

template <typename TIn, typename TOut>
void
ExpectTheMeanOfItk(const TIn * image, const typename TIn::SizeType & radius, double tolerance)
{
  const auto reference = itk::MeanImageFilter<TIn, TOut>::New();
  reference->SetInput(image);
  reference->SetRadius(radius);
  reference->Update();

  const auto filter = itk::RenormalizedMeanImageFilter<TIn, TOut>::New();
  filter->SetInput(image);
  filter->SetRadius(radius);
  filter->SetBoundaryCondition(Boundary::ZeroFluxNeumann);
  filter->Update();

  double                                       largest = 0;
  itk::ImageRegionConstIteratorWithIndex<TOut> it(filter->GetOutput(), image->GetLargestPossibleRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    largest = std::max(largest, std::abs(double(it.Get()) - double(reference->GetOutput()->GetPixel(it.GetIndex()))));
  }
  EXPECT_LE(largest, tolerance);
}

TEST(RenormalizedMeanImageFilter, ZeroFluxNeumannAgreesWithItkMeanImageFilter)
{
  using Short3 = itk::Image<short, 3>;
  using Float3 = itk::Image<float, 3>;
  using Float2 = itk::Image<float, 2>;
  const auto shorts = MakeRandomImage<Short3>(MakeRegion<Short3>({ 3, -4, 5 }, { 13, 9, 7 }), 1, -1000, 1000);
  ExpectTheMeanOfItk<Short3, Float3>(shorts, { { 2, 1, 3 } }, 0.0);
  const auto floats = MakeRandomImage<Float2>(MakeRegion<Float2>({ -2, 7 }, { 31, 17 }), 2);
  // Sums of up to 13 * 11 float values of at most 100, in a different order.
  ExpectTheMeanOfItk<Float2, Float2>(floats, { { 6, 5 } }, 13 * 11 * 100 * std::numeric_limits<float>::epsilon());
}

template <typename TPixel, unsigned int VDimension>
struct Kind
{
  using Pixel = TPixel;
  static constexpr unsigned int Dimension = VDimension;
};

template <typename TKind>
class RenormalizedMeanOfEveryKind : public ::testing::Test
{};

using Kinds = ::testing::Types<Kind<unsigned char, 2>, Kind<signed char, 3>, Kind<unsigned short, 4>, Kind<short, 5>,
                               Kind<unsigned int, 2>, Kind<int, 3>, Kind<unsigned long long, 4>, Kind<long, 5>,
                               Kind<float, 4>, Kind<double, 5>>;
TYPED_TEST_SUITE(RenormalizedMeanOfEveryKind, Kinds);

TYPED_TEST(RenormalizedMeanOfEveryKind, IsTheMeanOfTheWindowInsideTheImage)
{
  using Pixel = typename TypeParam::Pixel;
  using ImageType = itk::Image<Pixel, TypeParam::Dimension>;
  using Limits = std::numeric_limits<Pixel>;
  typename ImageType::RegionType region;
  typename ImageType::SizeType   radius;
  const itk::SizeValueType       extents[] = { 6, 5, 4, 3, 2 };
  const itk::SizeValueType       radii[] = { 2, 9, 1, 1, 1 };
  for (unsigned int a = 0; a < TypeParam::Dimension; ++a)
  {
    region.SetIndex(a, 2 - 3 * static_cast<int>(a));
    region.SetSize(a, extents[a]);
    radius[a] = radii[a];
  }
  const double lowest = Limits::is_integer ? 0.4 * static_cast<double>(Limits::lowest()) : -1.0;
  const double highest = Limits::is_integer ? 0.9 * static_cast<double>(Limits::max()) : 1.0;
  const auto   image = MakeRandomImage<ImageType>(region, 5, lowest, highest);

  const auto filter = itk::RenormalizedMeanImageFilter<ImageType>::New();
  filter->SetInput(image);
  filter->SetRadius(radius);
  filter->Update();

  for (unsigned int a = 3; a < TypeParam::Dimension; ++a)
  {
    radius[a] = 0; // not spatial by default
  }
  itk::ImageRegionConstIteratorWithIndex<ImageType> it(filter->GetOutput(), region);
  for (; !it.IsAtEnd(); ++it)
  {
    const Pixel mean = RenormalizedMeanAt(image.GetPointer(), it.GetIndex(), radius);
    if (Limits::is_integer)
    {
      ASSERT_EQ(it.Get(), mean) << "at " << it.GetIndex();
    }
    else
    {
      ASSERT_NEAR(double(it.Get()), double(mean), 200 * double(Limits::epsilon())) << "at " << it.GetIndex();
    }
  }
}

TEST(RenormalizedMeanImageFilter, ConstantIsKeptUpToTheEdge)
{
  using ImageType = itk::Image<unsigned short, 3>;
  const auto image = ImageType::New();
  image->SetRegions(MakeRegion<ImageType>({ 0, 0, 0 }, { 7, 5, 3 }));
  image->Allocate();
  image->FillBuffer(4711);
  for (const auto boundary :
       { Boundary::Renormalized, Boundary::ZeroFluxNeumann, Boundary::Mirror, Boundary::Periodic })
  {
    for (const itk::SizeValueType radius : { 0, 1, 2, 4, 5, 8, 30 })
    {
      const auto filter = itk::RenormalizedMeanImageFilter<ImageType>::New();
      filter->SetInput(image);
      filter->SetRadius(radius);
      filter->SetBoundaryCondition(boundary);
      filter->Update();
      EXPECT_EQ(
        chunkwisetest::CountDifferentVoxels(image.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()),
        0u)
        << boundary << " radius " << radius;
    }
  }
}

TEST(RenormalizedMeanImageFilter, ConstantBoundaryTakesTheGivenValue)
{
  using ImageType = itk::Image<float, 2>;
  const auto image = ImageType::New();
  image->SetRegions(MakeRegion<ImageType>({ 0, 0 }, { 5, 5 }));
  image->Allocate();
  image->FillBuffer(9.0F);
  const auto filter = itk::RenormalizedMeanImageFilter<ImageType>::New();
  filter->SetInput(image);
  filter->SetBoundaryCondition(Boundary::Constant);
  filter->SetConstant(-9.0);
  filter->Update();
  // At the corner 4 of 9 taps are inside, on an edge 6.
  EXPECT_FLOAT_EQ(filter->GetOutput()->GetPixel({ { 0, 0 } }), 9.0F * (4 - 5) / 9);
  EXPECT_FLOAT_EQ(filter->GetOutput()->GetPixel({ { 0, 2 } }), 9.0F * (6 - 3) / 9);
  EXPECT_FLOAT_EQ(filter->GetOutput()->GetPixel({ { 2, 2 } }), 9.0F);
}

TEST(RenormalizedMeanImageFilter, IntegerMeansRoundToNearestTiesToEven)
{
  using ImageType = itk::Image<short, 2>;
  const auto image = ImageType::New();
  image->SetRegions(MakeRegion<ImageType>({ 0, 0 }, { 2, 6 }));
  image->Allocate();
  // Each row's two voxels have a mean of k + 1/2.
  const short rows[6][2] = { { 0, 1 }, { 1, 2 }, { 2, 3 }, { -1, 0 }, { -2, -1 }, { -3, -2 } };
  const short expected[6] = { 0, 2, 2, 0, -2, -2 };
  for (int y = 0; y < 6; ++y)
  {
    image->SetPixel({ { 0, y } }, rows[y][0]);
    image->SetPixel({ { 1, y } }, rows[y][1]);
  }
  const auto filter = itk::RenormalizedMeanImageFilter<ImageType>::New();
  filter->SetInput(image);
  filter->SetSpatialAxes({ 0 });
  filter->Update();
  for (int y = 0; y < 6; ++y)
  {
    EXPECT_EQ(filter->GetOutput()->GetPixel({ { 0, y } }), expected[y]) << "row " << y;
    EXPECT_EQ(filter->GetOutput()->GetPixel({ { 1, y } }), expected[y]) << "row " << y;
  }
}

TEST(RenormalizedMeanImageFilter, WindowsExtendAlongTheChosenAxesOnly)
{
  using ImageType = itk::Image<double, 4>;
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 1, 2, 3 }, { 5, 4, 3, 6 }), 8);
  const auto filter = itk::RenormalizedMeanImageFilter<ImageType>::New();
  filter->SetInput(image);
  filter->SetRadius(2);
  for (const std::vector<unsigned int> & axes :
       { std::vector<unsigned int>{ 3 }, std::vector<unsigned int>{ 3, 0 }, std::vector<unsigned int>{ 1, 2, 3 } })
  {
    filter->SetSpatialAxes(axes);
    filter->Update();
    ImageType::SizeType radius;
    radius.Fill(0);
    for (const unsigned int axis : axes)
    {
      radius[axis] = 2;
    }
    itk::ImageRegionConstIteratorWithIndex<ImageType> it(filter->GetOutput(), image->GetLargestPossibleRegion());
    for (; !it.IsAtEnd(); ++it)
    {
      ASSERT_NEAR(it.Get(), RenormalizedMeanAt(image.GetPointer(), it.GetIndex(), radius), 1e-11);
    }
  }
}

/** The message of the exception that an update throws; empty if it throws none. */
template <typename TFilter>
std::string
UpdateMessage(TFilter & filter)
{
  try
  {
    filter.Update();
  }
  catch (const itk::ExceptionObject & error)
  {
    return error.GetDescription();
  }
  return std::string();
}

TEST(RenormalizedMeanImageFilter, InvalidParametersThrowAndNameTheParameter)
{
  using ImageType = itk::Image<unsigned char, 3>;
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 4, 4, 4 }), 3);
  const auto filter = itk::RenormalizedMeanImageFilter<ImageType>::New();
  filter->SetInput(image);
  const auto expect = [&](const std::string & part) {
    const std::string message = UpdateMessage(*filter);
    EXPECT_NE(message.find(part), std::string::npos) << "message: " << message;
  };

  filter->SetSpatialAxes({});
  expect("SpatialAxes: 0 axes");
  filter->SetSpatialAxes({ 3 });
  expect("SpatialAxes: 3");
  filter->SetSpatialAxes({ 1, 1 });
  expect("SpatialAxes: 1 is given twice");
  filter->SetSpatialAxes({ 0, 1, 2 });

  filter->SetRadius(static_cast<itk::SizeValueType>(-1));
  expect("Radius: 18446744073709551615");
  filter->SetRadius(std::size_t{ 1 } << 30);
  EXPECT_EQ(UpdateMessage(*filter), "");
  filter->SetBoundaryCondition(Boundary::Mirror);
  expect("Radius: 1073741824");
  filter->SetRadius(1);

  filter->SetBoundaryCondition(Boundary::Constant);
  for (const double value : { 256.0, -1.0, 0.5, std::numeric_limits<double>::quiet_NaN() })
  {
    filter->SetConstant(value);
    expect("Constant: ");
  }
  filter->SetConstant(255.0);
  EXPECT_EQ(UpdateMessage(*filter), "");

  filter->SetDevices({ -1 });
  expect("Devices: -1");
  filter->SetDevices({ 0, 0 });
  expect("Devices: 0 is given twice");
  filter->SetDevices({});
  EXPECT_EQ(UpdateMessage(*filter), "");
}

TEST(RenormalizedMeanImageFilter, PrintsItsParameters)
{
  using ImageType = itk::Image<float, 2>;
  const auto filter = itk::RenormalizedMeanImageFilter<ImageType>::New();
  filter->SetRadius({ { 3, 4 } });
  filter->SetBoundaryCondition(Boundary::Mirror);
  filter->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
  filter->SetDevices({ 1, 2 });
  filter->SetDeviceMemoryBudget(1001);
  filter->SetPinnedMemoryBudget(1002);
  filter->SetHostMemoryBudget(1003);
  filter->SetConstant(7.5);
  filter->HostTakesChunksOn();
  std::ostringstream os;
  filter->Print(os);
  for (const char * part : { "RenormalizedMeanImageFilter",
                             "Radius: [3, 4]",
                             "BoundaryCondition: itk::ChunkwiseEnums::BoundaryCondition::Mirror",
                             "Backend: itk::ChunkwiseEnums::Backend::CPU",
                             "Devices: 1 2",
                             "DeviceMemoryBudget: 1001",
                             "PinnedMemoryBudget: 1002",
                             "HostMemoryBudget: 1003",
                             "HostTakesChunks: On",
                             "Constant: 7.5",
                             "SpatialAxes: 0 1",
                             "LastReport" })
  {
    EXPECT_NE(os.str().find(part), std::string::npos) << part;
  }
  EXPECT_STREQ(filter->GetNameOfClass(), "RenormalizedMeanImageFilter");
}

} // namespace RenormalizedMeanImageFilterTest
