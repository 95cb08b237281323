/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkBinShrinkImageFilter.h"
#include "itkChunkwiseBinImageFilter.h"
#include "itkChunkwiseCropImageFilter.h"
#include "itkChunkwiseFlipImageFilter.h"
#include "itkChunkwisePadImageFilter.h"
#include "itkChunkwisePermuteAxesImageFilter.h"
#include "itkConstantPadImageFilter.h"
#include "itkCropImageFilter.h"
#include "itkFlipImageFilter.h"
#include "itkImageRegionIteratorWithIndex.h"
#include "itkMirrorPadImageFilter.h"
#include "itkPermuteAxesImageFilter.h"
#include "itkStreamingImageFilter.h"

#include <cmath>

#include <gtest/gtest.h>

namespace itkChunkwiseGridFiltersTest
{

using ImageType = itk::Image<short, 3>;

/** On an oblique grid whose first index is not 0. */
ImageType::Pointer
MakeImage()
{
  const auto               image = ImageType::New();
  ImageType::RegionType    region({ { -4, 6, 2 } }, { { 12, 9, 8 } });
  const double             spacing[] = { 0.5, 1.25, 2 };
  const double             origin[] = { -7, 3, 13 };
  ImageType::DirectionType direction;
  direction.SetIdentity();
  direction(0, 0) = direction(1, 1) = 0.8;
  direction(0, 1) = -0.6;
  direction(1, 0) = 0.6;
  image->SetRegions(region);
  image->SetSpacing(spacing);
  image->SetOrigin(origin);
  image->SetDirection(direction);
  image->Allocate();
  for (itk::ImageRegionIteratorWithIndex<ImageType> it(image, region); !it.IsAtEnd(); ++it)
  {
    const auto at = it.GetIndex();
    it.Set(static_cast<short>((at[0] * 37 + at[1] * 101 + at[2] * 911) % 1000 - 300));
  }
  return image;
}

/** The same pixels at the same places, whatever the index of the first one; `largest` difference of their values. */
void
ExpectSame(itk::ImageToImageFilter<ImageType, ImageType> & ours, itk::ImageToImageFilter<ImageType, ImageType> & theirs,
           int largest = 0)
{
  theirs.Update();
  for (const unsigned int divisions : { 1U, 3U })
  {
    const auto streamed = itk::StreamingImageFilter<ImageType, ImageType>::New();
    streamed->SetInput(ours.GetOutput());
    streamed->SetNumberOfStreamDivisions(divisions);
    streamed->Update();
    const ImageType & a = *streamed->GetOutput();
    const ImageType & b = *theirs.GetOutput();
    ASSERT_EQ(a.GetLargestPossibleRegion().GetSize(), b.GetLargestPossibleRegion().GetSize()) << ours.GetNameOfClass();
    EXPECT_LT((a.GetSpacing() - b.GetSpacing()).GetNorm(), 1e-12);
    EXPECT_EQ(a.GetDirection(), b.GetDirection());
    ImageType::PointType first;
    ImageType::PointType other;
    a.TransformIndexToPhysicalPoint(a.GetLargestPossibleRegion().GetIndex(), first);
    b.TransformIndexToPhysicalPoint(b.GetLargestPossibleRegion().GetIndex(), other);
    EXPECT_LT((first - other).GetNorm(), 1e-9) << ours.GetNameOfClass() << first << other;
    itk::ImageRegionConstIterator<ImageType> ofA(&a, a.GetLargestPossibleRegion());
    itk::ImageRegionConstIterator<ImageType> ofB(&b, b.GetLargestPossibleRegion());
    int                                      wrong = 0;
    for (; !ofA.IsAtEnd(); ++ofA, ++ofB)
    {
      wrong += std::abs(ofA.Get() - ofB.Get()) > largest ? 1 : 0;
    }
    EXPECT_EQ(wrong, 0) << ours.GetNameOfClass() << " in " << divisions;
  }
}

/** Gaussian means need pixels beside their blocks, and so do streamed parts of them. */
TEST(ChunkwiseGridFilters, GaussianBinsAreTheSameInParts)
{
  const auto make = [](unsigned int factor) {
    const auto filter = itk::ChunkwiseBinImageFilter<ImageType, ImageType>::New();
    filter->SetInput(MakeImage());
    filter->SetFactor({ { factor, 2, 2 } });
    filter->SetMethod(itk::ChunkwiseGridEnums::Method::Gaussian);
    return filter;
  };
  for (const unsigned int factor : { 2U, 3U })
  {
    ExpectSame(*make(factor), *make(factor));
  }
  // The weights of the first pixel along x are 3 3 1 of 1 3 3 1.
  const auto line = make(2);
  line->SetFactor({ { 2, 1, 1 } });
  line->Update();
  const auto image = MakeImage();
  const auto pixel = [&](int x) { return static_cast<double>(image->GetPixel({ { x - 4, 6, 2 } })); };
  const auto found = line->GetOutput()->GetPixel(line->GetOutput()->GetLargestPossibleRegion().GetIndex());
  EXPECT_EQ(found, std::nearbyint((3 * pixel(0) + 3 * pixel(1) + pixel(2)) / 7));
}

TEST(ChunkwiseGridFilters, GiveWhatItksGive)
{
  const auto image = MakeImage();
  const auto run = [&](auto ours, auto theirs, int largest = 0) {
    ours->SetInput(image);
    theirs->SetInput(image);
    ExpectSame(*ours, *theirs, largest);
  };
  {
    // ITK's blocks begin at multiples of the factor, and ends that are no whole blocks are left out.
    const auto ours = itk::ChunkwiseBinImageFilter<ImageType>::New();
    ours->SetFactor({ { 4, 3, 2 } });
    const auto         theirs = itk::BinShrinkImageFilter<ImageType, ImageType>::New();
    const unsigned int factors[] = { 4, 3, 2 };
    theirs->SetShrinkFactors(factors);
    run(ours, theirs, 1); // ITK rounds half up
  }
  const ImageType::SizeType lower{ { 2, 0, 1 } };
  const ImageType::SizeType upper{ { 3, 1, 0 } };
  {
    const auto ours = itk::ChunkwiseCropImageFilter<ImageType>::New();
    ours->SetLower(lower);
    ours->SetUpper(upper);
    const auto theirs = itk::CropImageFilter<ImageType, ImageType>::New();
    theirs->SetLowerBoundaryCropSize(lower);
    theirs->SetUpperBoundaryCropSize(upper);
    run(ours, theirs);
  }
  {
    const auto ours = itk::ChunkwisePadImageFilter<ImageType>::New();
    ours->SetLower(lower);
    ours->SetUpper(upper);
    ours->SetOutsideValue(-5);
    const auto theirs = itk::ConstantPadImageFilter<ImageType, ImageType>::New();
    theirs->SetPadLowerBound(lower);
    theirs->SetPadUpperBound(upper);
    theirs->SetConstant(-5);
    run(ours, theirs);
    const auto mirrored = itk::MirrorPadImageFilter<ImageType, ImageType>::New();
    mirrored->SetPadLowerBound(lower);
    mirrored->SetPadUpperBound(upper);
    ours->SetOutside(itk::ChunkwiseGridEnums::Outside::Reflect);
    run(ours, mirrored);
  }
  for (const bool aboutOrigin : { false, true })
  {
    const auto                                                  ours = itk::ChunkwiseFlipImageFilter<ImageType>::New();
    itk::ChunkwiseFlipImageFilter<ImageType>::FlipAxesArrayType axes;
    axes[0] = true;
    axes[1] = false;
    axes[2] = true;
    ours->SetFlipAxes(axes);
    ours->SetFlipAboutOrigin(aboutOrigin);
    const auto theirs = itk::FlipImageFilter<ImageType>::New();
    theirs->SetFlipAxes(axes);
    theirs->SetFlipAboutOrigin(aboutOrigin);
    // ITK moves the image by the index of its first pixel.
    image->SetRegions(ImageType::RegionType(image->GetLargestPossibleRegion().GetSize()));
    run(ours, theirs);
  }
  {
    const auto         ours = itk::ChunkwisePermuteAxesImageFilter<ImageType>::New();
    const unsigned int order[] = { 2, 0, 1 };
    ours->SetAxisOrder(order);
    const auto theirs = itk::PermuteAxesImageFilter<ImageType>::New();
    itk::PermuteAxesImageFilter<ImageType>::PermuteOrderArrayType theirOrder(order);
    theirs->SetOrder(theirOrder);
    run(ours, theirs);
  }
}

} // namespace itkChunkwiseGridFiltersTest
