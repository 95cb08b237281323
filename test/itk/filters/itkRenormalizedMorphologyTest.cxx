/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedClosingImageFilter.h"
#include "itkRenormalizedMaximumImageFilter.h"
#include "itkRenormalizedMinimumImageFilter.h"
#include "itkRenormalizedOpeningImageFilter.h"
#include "itkRenormalizedRangeImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkFlatStructuringElement.h"
#include "itkGrayscaleDilateImageFilter.h"
#include "itkGrayscaleErodeImageFilter.h"
#include "itkGrayscaleMorphologicalClosingImageFilter.h"
#include "itkMorphologicalGradientImageFilter.h"
#include "itkGrayscaleMorphologicalOpeningImageFilter.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <sstream>

namespace RenormalizedMorphologyTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;

using Short3 = itk::Image<short, 3>;
using Float2 = itk::Image<float, 2>;
template <typename TImage>
using Box = itk::FlatStructuringElement<TImage::ImageDimension>;

template <typename TOurs, typename TItk>
struct Pair
{
  using Ours = TOurs;
  using Itk = TItk;
};

template <typename TPair>
class RenormalizedMorphology : public ::testing::Test
{};

using Pairs = ::testing::Types<
  Pair<itk::RenormalizedRangeImageFilter<Short3>, itk::MorphologicalGradientImageFilter<Short3, Short3, Box<Short3>>>,
  Pair<itk::RenormalizedMaximumImageFilter<Short3>, itk::GrayscaleDilateImageFilter<Short3, Short3, Box<Short3>>>,
  Pair<itk::RenormalizedMinimumImageFilter<Short3>, itk::GrayscaleErodeImageFilter<Short3, Short3, Box<Short3>>>,
  Pair<itk::RenormalizedOpeningImageFilter<Short3>,
       itk::GrayscaleMorphologicalOpeningImageFilter<Short3, Short3, Box<Short3>>>,
  Pair<itk::RenormalizedClosingImageFilter<Short3>,
       itk::GrayscaleMorphologicalClosingImageFilter<Short3, Short3, Box<Short3>>>,
  Pair<itk::RenormalizedMaximumImageFilter<Float2>, itk::GrayscaleDilateImageFilter<Float2, Float2, Box<Float2>>>,
  Pair<itk::RenormalizedOpeningImageFilter<Float2>,
       itk::GrayscaleMorphologicalOpeningImageFilter<Float2, Float2, Box<Float2>>>>;
TYPED_TEST_SUITE(RenormalizedMorphology, Pairs);

template <typename TFilter>
auto
WithoutSafeBorder(TFilter * filter, int) -> decltype(filter->SetSafeBorder(false))
{
  // The border that ITK adds by default is not eroded like the image: what it gives near the edge is no opening there.
  filter->SetSafeBorder(false);
}
template <typename TFilter>
void
WithoutSafeBorder(TFilter *, long)
{}

TYPED_TEST(RenormalizedMorphology, AgreesWithItkStreamedOrNot)
{
  using Image = typename TypeParam::Ours::InputImageType;
  typename Image::RegionType region;
  typename Image::SizeType   radius;
  const itk::SizeValueType   extents[] = { 23, 17, 12 };
  const itk::SizeValueType   radii[] = { 2, 6, 1 };
  for (unsigned int a = 0; a < Image::ImageDimension; ++a)
  {
    region.SetIndex(a, 4 - 3 * static_cast<int>(a));
    region.SetSize(a, extents[a]);
    radius[a] = radii[a];
  }
  const auto image = MakeRandomImage<Image>(region, 3, -1000, 1000);
  const auto reference = TypeParam::Itk::New();
  reference->SetInput(image);
  reference->SetKernel(Box<Image>::Box(radius));
  WithoutSafeBorder(reference.GetPointer(), 0);
  reference->Update();

  const auto filter = TypeParam::Ours::New();
  filter->SetInput(image);
  filter->SetRadius(radius);
  filter->Update();
  EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), reference->GetOutput(), region), 0u);

  const auto streamed = TypeParam::Ours::New();
  streamed->SetInput(image);
  streamed->SetRadius(radius);
  const auto streaming = itk::StreamingImageFilter<Image, Image>::New();
  streaming->SetInput(streamed->GetOutput());
  streaming->SetNumberOfStreamDivisions(4);
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), streaming->GetOutput(), region), 0u);
}

template <typename TPair>
class RenormalizedMorphologyWithElements : public ::testing::Test
{};
using PairsOfElements = ::testing::Types<
  Pair<itk::RenormalizedMaximumImageFilter<Short3>, itk::GrayscaleDilateImageFilter<Short3, Short3, Box<Short3>>>,
  Pair<itk::RenormalizedMinimumImageFilter<Float2>, itk::GrayscaleErodeImageFilter<Float2, Float2, Box<Float2>>>,
  Pair<itk::RenormalizedOpeningImageFilter<Short3>,
       itk::GrayscaleMorphologicalOpeningImageFilter<Short3, Short3, Box<Short3>>>,
  Pair<itk::RenormalizedClosingImageFilter<Float2>,
       itk::GrayscaleMorphologicalClosingImageFilter<Float2, Float2, Box<Float2>>>>;
TYPED_TEST_SUITE(RenormalizedMorphologyWithElements, PairsOfElements);

TYPED_TEST(RenormalizedMorphologyWithElements, AgreeWithItk)
{
  using Image = typename TypeParam::Ours::InputImageType;
  typename Image::RegionType region;
  typename Image::SizeType   radius;
  const itk::SizeValueType   extents[] = { 23, 17, 12 };
  const itk::SizeValueType   radii[] = { 3, 4, 2 };
  for (unsigned int a = 0; a < Image::ImageDimension; ++a)
  {
    region.SetIndex(a, 4 - 3 * static_cast<int>(a));
    region.SetSize(a, extents[a]);
    radius[a] = radii[a];
  }
  const auto image = MakeRandomImage<Image>(region, 3, -1000, 1000);
  for (const auto & element : { Box<Image>::Ball(radius), Box<Image>::Cross(radius), Box<Image>::Box(radius) })
  {
    const auto reference = TypeParam::Itk::New();
    reference->SetInput(image);
    reference->SetKernel(element);
    WithoutSafeBorder(reference.GetPointer(), 0);
    reference->Update();
    const auto filter = TypeParam::Ours::New();
    filter->SetInput(image);
    filter->SetKernel(element);
    filter->Update();
    EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), reference->GetOutput(), region), 0u);
  }
}

TYPED_TEST(RenormalizedMorphologyWithElements, BadElementsThrowAndGoodOnesArePrinted)
{
  using Image = typename TypeParam::Ours::InputImageType;
  typename Image::RegionType region;
  typename Image::SizeType   radius;
  for (unsigned int a = 0; a < Image::ImageDimension; ++a)
  {
    region.SetSize(a, 5);
  }
  radius.Fill(1);
  const auto filter = TypeParam::Ours::New();
  filter->SetInput(MakeRandomImage<Image>(region, 3, 0, 9));
  itk::Neighborhood<int, Image::ImageDimension> empty;
  empty.SetRadius(radius);
  std::fill(empty.Begin(), empty.End(), 0);
  const auto message = [&]() -> std::string {
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
  filter->SetKernel(empty);
  EXPECT_NE(message().find("Kernel: "), std::string::npos);
  filter->SetKernel(Box<Image>::Cross(radius));
  EXPECT_EQ(message(), "");
  std::ostringstream os;
  filter->Print(os);
  EXPECT_NE(os.str().find(Image::ImageDimension == 3 ? "Kernel: 7 of 27" : "Kernel: 5 of 9"), std::string::npos);
  filter->SetSpatialAxes({ 1 });
  EXPECT_NE(message().find("Kernel: "), std::string::npos);
  filter->SetRadius(1);
  EXPECT_EQ(message(), "");
}

TYPED_TEST(RenormalizedMorphology, PrintsItsRadius)
{
  const auto filter = TypeParam::Ours::New();
  filter->SetRadius(4);
  std::ostringstream os;
  filter->Print(os);
  EXPECT_NE(os.str().find("Radius: [4, 4"), std::string::npos);
}

} // namespace RenormalizedMorphologyTest
