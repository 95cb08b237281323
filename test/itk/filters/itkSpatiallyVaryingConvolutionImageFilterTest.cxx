/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkSpatiallyVaryingConvolutionImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkPrunedFFTConvolutionImageFilter.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <sstream>

namespace SpatiallyVaryingConvolutionImageFilterTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using ImageType = itk::Image<double, 2>;
using FilterType = itk::SpatiallyVaryingConvolutionImageFilter<ImageType>;

ImageType::Pointer
MakeImage()
{
  return MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 3, -4 }, { 45, 31 }), 1);
}

FilterType::KernelImagesType
MakeKernels(unsigned int count)
{
  FilterType::KernelImagesType kernels;
  for (unsigned int i = 0; i < count; ++i)
  {
    kernels.emplace_back(MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 2, 1 }, { 7, 6 }), 10 + i, 0.1, 1));
  }
  return kernels;
}

FilterType::Pointer
MakeFilter(const ImageType * image, unsigned int nx, unsigned int ny)
{
  const auto filter = FilterType::New();
  filter->SetInput(image);
  filter->SetKernelImages(MakeKernels(nx * ny));
  filter->SetGridSize({ { nx, ny } });
  return filter;
}

void
ExpectNear(const ImageType * a, const ImageType * b, double tolerance)
{
  itk::ImageRegionConstIteratorWithIndex<ImageType> it(a, b->GetLargestPossibleRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(it.Get(), b->GetPixel(it.GetIndex()), tolerance) << "at " << it.GetIndex();
  }
}

TEST(SpatiallyVaryingConvolutionImageFilter, BlendsTheConvolutionsOfTheNodes)
{
  // Two nodes along x, at the physical points of two voxels.
  const auto             image = MakeImage();
  const auto             filter = MakeFilter(image, 2, 1);
  ImageType::PointType   origin;
  ImageType::IndexType   left{ { 13, 2 } };
  ImageType::SpacingType spacing;
  image->TransformIndexToPhysicalPoint(left, origin);
  spacing[0] = 20 * image->GetSpacing()[0];
  spacing[1] = 1;
  filter->SetGrid(origin, spacing);
  filter->Update();
  ImageType::Pointer parts[2];
  for (unsigned int i = 0; i < 2; ++i)
  {
    const auto plain = itk::PrunedFFTConvolutionImageFilter<ImageType>::New();
    plain->SetInput(image);
    plain->SetKernelImage(MakeKernels(2)[i]);
    plain->SetMethod(decltype(plain)::ObjectType::MethodEnum::Direct);
    plain->Update();
    parts[i] = plain->GetOutput();
  }
  itk::ImageRegionConstIteratorWithIndex<ImageType> it(filter->GetOutput(), image->GetLargestPossibleRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    const double right = std::min(std::max(static_cast<double>(it.GetIndex()[0] - 13) / 20, 0.0), 1.0);
    ASSERT_NEAR(
      it.Get(), (1 - right) * parts[0]->GetPixel(it.GetIndex()) + right * parts[1]->GetPixel(it.GetIndex()), 1e-10)
      << "at " << it.GetIndex();
  }
}

TEST(SpatiallyVaryingConvolutionImageFilter, StreamsInBothOrders)
{
  const auto image = MakeImage();
  for (const auto order : { FilterType::OrderEnum::ConvolveThenWeight, FilterType::OrderEnum::WeightThenConvolve })
  {
    const auto whole = MakeFilter(image, 3, 2);
    whole->SetOrder(order);
    whole->NormalizeOn();
    whole->Update();
    const auto pieces = MakeFilter(image, 3, 2);
    pieces->SetOrder(order);
    pieces->NormalizeOn();
    const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
    streamer->SetInput(pieces->GetOutput());
    streamer->SetNumberOfStreamDivisions(5);
    streamer->Update();
    ExpectNear(streamer->GetOutput(), whole->GetOutput(), 1e-11);
  }
}

TEST(SpatiallyVaryingConvolutionImageFilter, AStackIsItsKernels)
{
  const auto image = MakeImage();
  const auto filter = MakeFilter(image, 2, 2);
  filter->Update();
  const auto stack = FilterType::KernelStackType::New();
  stack->SetRegions(FilterType::KernelStackType::SizeType{ { 7, 6, 4 } });
  stack->Allocate();
  for (unsigned int i = 0; i < 4; ++i)
  {
    std::copy_n(filter->GetKernelImages()[i]->GetBufferPointer(), 42, stack->GetBufferPointer() + 42 * i);
  }
  const auto other = FilterType::New();
  other->SetInput(image);
  other->SetGridSize({ { 2, 2 } });
  other->SetKernelStack(stack);
  other->Update();
  ExpectNear(other->GetOutput(), filter->GetOutput(), 0);
}

TEST(SpatiallyVaryingConvolutionImageFilter, BadParametersThrowAndAreNamed)
{
  const auto message = [](FilterType & filter) {
    try
    {
      filter.Update();
    }
    catch (const itk::ExceptionObject & error)
    {
      return std::string(error.GetDescription());
    }
    return std::string();
  };
  const auto image = MakeImage();
  auto       filter = MakeFilter(image, 2, 2);
  EXPECT_EQ(message(*filter), "");
  filter->SetGridSize({ { 3, 2 } });
  EXPECT_NE(message(*filter).find("KernelImages: 4"), std::string::npos);
  filter = MakeFilter(image, 2, 2);
  filter->SetSpatialAxes({ 0 });
  EXPECT_NE(message(*filter).find("axis 1"), std::string::npos);
  filter = MakeFilter(image, 2, 2);
  filter->SetOrder(FilterType::OrderEnum::WeightThenConvolve);
  filter->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::Periodic);
  EXPECT_NE(message(*filter).find("periodic"), std::string::npos);
  std::ostringstream text;
  filter->Print(text);
  EXPECT_NE(text.str().find("Order: itk::ChunkwiseConvolutionEnums::Order::WeightThenConvolve"), std::string::npos);
}

} // namespace SpatiallyVaryingConvolutionImageFilterTest
