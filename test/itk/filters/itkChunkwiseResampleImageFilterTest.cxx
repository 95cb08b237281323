/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkBSplineInterpolateImageFunction.h"
#include "itkBSplineTransform.h"
#include "itkChunkwiseResampleImageFilter.h"
#include "itkCompositeTransform.h"
#include "itkDisplacementFieldTransform.h"
#include "itkEuler3DTransform.h"
#include "itkImageRegionIteratorWithIndex.h"
#include "itkResampleImageFilter.h"
#include "itkScaleTransform.h"
#include "itkStreamingImageFilter.h"
#include "itkTranslationTransform.h"

#include <gtest/gtest.h>

namespace itkChunkwiseResampleImageFilterTest
{

using ImageType = itk::Image<float, 3>;
using FilterType = itk::ChunkwiseResampleImageFilter<ImageType>;
using TransformType = itk::Transform<double, 3, 3>;

/** Waves on an oblique grid whose first index is not 0. */
ImageType::Pointer
MakeWaves()
{
  const auto               image = ImageType::New();
  ImageType::RegionType    region;
  const long               begin[3] = { -3, 5, 2 };
  const unsigned long      size[3] = { 31, 26, 22 };
  ImageType::SpacingType   spacing;
  ImageType::PointType     origin;
  ImageType::DirectionType direction;
  direction.SetIdentity();
  direction(0, 0) = direction(1, 1) = 0.8;
  direction(0, 1) = -0.6;
  direction(1, 0) = 0.6;
  for (unsigned int a = 0; a < 3; ++a)
  {
    region.SetIndex(a, begin[a]);
    region.SetSize(a, size[a]);
    spacing[a] = 0.7 + 0.4 * a;
    origin[a] = 10.0 * a - 4;
  }
  image->SetRegions(region);
  image->SetSpacing(spacing);
  image->SetOrigin(origin);
  image->SetDirection(direction);
  image->Allocate();
  for (itk::ImageRegionIteratorWithIndex<ImageType> it(image, region); !it.IsAtEnd(); ++it)
  {
    const auto index = it.GetIndex();
    it.Set(static_cast<float>(100 + 50 * std::sin(0.5 * double(index[0])) * std::cos(0.3 * double(index[1])) +
                              10 * std::sin(0.7 * double(index[2]))));
  }
  return image;
}

ImageType::PointType
CenterOf(const ImageType & image)
{
  itk::ContinuousIndex<double, 3> center;
  const auto &                    region = image.GetLargestPossibleRegion();
  for (unsigned int a = 0; a < 3; ++a)
  {
    center[a] = double(region.GetIndex(a)) + 0.5 * double(region.GetSize(a) - 1);
  }
  ImageType::PointType point;
  image.TransformContinuousIndexToPhysicalPoint(center, point);
  return point;
}

std::vector<TransformType::ConstPointer>
MakeTransforms(const ImageType & image)
{
  const auto euler = itk::Euler3DTransform<double>::New();
  euler->SetCenter(CenterOf(image));
  euler->SetRotation(0.2, -0.1, 0.4);
  const auto             translation = itk::TranslationTransform<double, 3>::New();
  itk::Vector<double, 3> shift;
  shift[0] = 1.3;
  shift[1] = -2.1;
  shift[2] = 0.4;
  translation->SetOffset(shift);
  const auto scale = itk::ScaleTransform<double, 3>::New();
  scale->SetCenter(CenterOf(image));
  itk::FixedArray<double, 3> factors(0.9);
  scale->SetScale(factors);
  const auto both = itk::CompositeTransform<double, 3>::New();
  both->AddTransform(euler);
  both->AddTransform(translation);
  return { euler.GetPointer(), translation.GetPointer(), scale.GetPointer(), both.GetPointer() };
}

/** The largest difference of pixels; grids must be the same. */
double
Compare(const ImageType & ours, const ImageType & other)
{
  EXPECT_EQ(ours.GetLargestPossibleRegion().GetSize(), other.GetLargestPossibleRegion().GetSize());
  EXPECT_LT((ours.GetOrigin() - other.GetOrigin()).GetNorm(), 1e-9);
  double                                   most = 0;
  itk::ImageRegionConstIterator<ImageType> a(&ours, ours.GetLargestPossibleRegion());
  itk::ImageRegionConstIterator<ImageType> b(&other, other.GetLargestPossibleRegion());
  for (; !a.IsAtEnd(); ++a, ++b)
  {
    most = std::max(most, std::abs(double(a.Get()) - double(b.Get())));
  }
  return most;
}

TEST(ChunkwiseResampleImageFilter, GivesWhatItksGives)
{
  const auto image = MakeWaves();
  for (const auto & transform : MakeTransforms(*image))
  {
    for (const bool isCubic : { false, true })
    {
      const auto theirs = itk::ResampleImageFilter<ImageType, ImageType>::New();
      theirs->SetInput(image);
      theirs->SetTransform(transform);
      theirs->SetReferenceImage(image);
      theirs->UseReferenceImageOn();
      theirs->SetDefaultPixelValue(-7);
      if (isCubic)
      {
        theirs->SetInterpolator(itk::BSplineInterpolateImageFunction<ImageType>::New());
      }
      theirs->Update();
      const auto ours = FilterType::New();
      ours->SetInput(image);
      ours->SetTransform(transform);
      ours->SetInterpolation(isCubic ? FilterType::InterpolationEnum::Cubic : FilterType::InterpolationEnum::Linear);
      ours->UseDefaultPixelValueOn();
      ours->SetDefaultPixelValue(-7);
      ours->AntialiasOff();
      ours->Update();
      EXPECT_EQ(ours->GetOutput()->GetLargestPossibleRegion(), image->GetLargestPossibleRegion());
      EXPECT_LT(Compare(*ours->GetOutput(), *theirs->GetOutput()), 2e-3) << transform->GetNameOfClass() << isCubic;
    }
  }
}

TEST(ChunkwiseResampleImageFilter, GivesWhatItksGivesWithADisplacementField)
{
  using FieldType = FilterType::DisplacementFieldType;
  const auto             image = MakeWaves();
  const auto             field = FieldType::New();
  FieldType::SizeType    size{ { 9, 8, 7 } };
  FieldType::SpacingType spacing;
  FieldType::PointType   origin;
  itk::Vector<double, 3> none(0.0);
  for (unsigned int a = 0; a < 3; ++a)
  {
    // A part of the image lies beside it.
    spacing[a] = 2.1 + a;
    origin[a] = CenterOf(*image)[a] - 0.4 * spacing[a] * double(size[a] - 1);
  }
  field->SetRegions(size);
  field->SetSpacing(spacing);
  field->SetOrigin(origin);
  field->Allocate();
  field->FillBuffer(none);
  for (itk::ImageRegionIteratorWithIndex<FieldType> it(field, field->GetLargestPossibleRegion()); !it.IsAtEnd(); ++it)
  {
    const auto index = it.GetIndex();
    for (unsigned int a = 0; a < 3; ++a)
    {
      it.Value()[a] = 2 * std::sin(double(index[a] + 2 * index[(a + 1) % 3]));
    }
  }
  const auto ofField = itk::DisplacementFieldTransform<double, 3>::New();
  ofField->SetDisplacementField(field);
  const auto linear = MakeTransforms(*image).front();
  const auto both = itk::CompositeTransform<double, 3>::New();
  both->AddTransform(const_cast<TransformType *>(linear.GetPointer()));
  both->AddTransform(ofField);
  const auto theirs = itk::ResampleImageFilter<ImageType, ImageType>::New();
  theirs->SetInput(image);
  theirs->SetTransform(both);
  theirs->SetReferenceImage(image);
  theirs->UseReferenceImageOn();
  theirs->SetDefaultPixelValue(-7);
  theirs->Update();
  const auto ours = FilterType::New();
  ours->SetInput(image);
  ours->SetTransform(linear);
  ours->SetDisplacementField(ofField->GetDisplacementField());
  ours->UseDefaultPixelValueOn();
  ours->SetDefaultPixelValue(-7);
  ours->AntialiasOff();
  ours->Update();
  EXPECT_LT(Compare(*ours->GetOutput(), *theirs->GetOutput()), 2e-3);

  const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
  const auto again = FilterType::New();
  again->SetInput(image);
  again->SetTransform(linear);
  again->SetDisplacementField(field);
  again->UseDefaultPixelValueOn();
  again->SetDefaultPixelValue(-7);
  again->AntialiasOff();
  streamer->SetInput(again->GetOutput());
  streamer->SetNumberOfStreamDivisions(5);
  streamer->Update();
  EXPECT_EQ(Compare(*streamer->GetOutput(), *ours->GetOutput()), 0);
  again->SetDisplacementField(FieldType::New());
  EXPECT_THROW(again->Update(), itk::ExceptionObject);
}

TEST(ChunkwiseResampleImageFilter, RunsAgainWhenWhatItWasGivenChanges)
{
  using FieldType = FilterType::DisplacementFieldType;
  const auto image = MakeWaves();
  const auto shift = itk::TranslationTransform<double, 3>::New();
  const auto field = FieldType::New();
  field->CopyInformation(image);
  field->SetRegions(image->GetLargestPossibleRegion());
  field->Allocate();
  field->FillBuffer(FieldType::PixelType(0.0));
  const auto reference = ImageType::New();
  reference->CopyInformation(image);
  reference->SetRegions(image->GetLargestPossibleRegion());
  const auto make = [&] {
    const auto filter = FilterType::New();
    filter->SetInput(image);
    filter->SetTransform(shift);
    filter->SetDisplacementField(field);
    filter->SetReferenceImage(reference);
    return filter;
  };
  const auto filter = make();
  const auto expectNew = [&](const char * changed) {
    const auto fresh = make();
    fresh->Update();
    filter->Update();
    EXPECT_EQ(Compare(*filter->GetOutput(), *fresh->GetOutput()), 0) << changed;
    EXPECT_EQ(filter->GetOutput()->GetSpacing(), fresh->GetOutput()->GetSpacing()) << changed;
  };
  expectNew("nothing");
  shift->SetOffset(itk::Vector<double, 3>(0.4));
  shift->Modified(); // ITK leaves that to its users
  expectNew("the transform");
  field->FillBuffer(FieldType::PixelType(0.3));
  field->Modified();
  expectNew("the field");
  reference->SetSpacing(image->GetSpacing() * 1.5);
  expectNew("the reference image");
}

TEST(ChunkwiseResampleImageFilter, TakesAnotherGrid)
{
  const auto             image = MakeWaves();
  const auto             filter = FilterType::New();
  ImageType::SpacingType spacing;
  spacing.Fill(0.45);
  filter->SetInput(image);
  filter->SetOutputSpacing(spacing);
  filter->Update();
  const ImageType * const output = filter->GetOutput();
  EXPECT_EQ(output->GetLargestPossibleRegion().GetSize(0), 48u) << "31 pixels of 0.7";
  EXPECT_EQ(output->GetSpacing(), spacing);
  // The lower corner stays.
  itk::ContinuousIndex<double, 3> corner;
  itk::ContinuousIndex<double, 3> cornerOfInput;
  for (unsigned int a = 0; a < 3; ++a)
  {
    corner[a] = double(output->GetLargestPossibleRegion().GetIndex(a)) - 0.5;
    cornerOfInput[a] = double(image->GetLargestPossibleRegion().GetIndex(a)) - 0.5;
  }
  ImageType::PointType ours;
  ImageType::PointType wanted;
  output->TransformContinuousIndexToPhysicalPoint(corner, ours);
  image->TransformContinuousIndexToPhysicalPoint(cornerOfInput, wanted);
  EXPECT_LT((ours - wanted).GetNorm(), 1e-9);

  // The same grid by a reference, and streamed: the same bits.
  const auto reference = FilterType::New();
  reference->SetInput(image);
  reference->SetReferenceImage(output);
  const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
  streamer->SetInput(reference->GetOutput());
  streamer->SetNumberOfStreamDivisions(7);
  streamer->Update();
  EXPECT_LT(Compare(*streamer->GetOutput(), *output), 1e-3);
  const auto whole = FilterType::New();
  whole->SetInput(image);
  whole->SetReferenceImage(output);
  whole->Update();
  EXPECT_EQ(Compare(*streamer->GetOutput(), *whole->GetOutput()), 0);
}

TEST(ChunkwiseResampleImageFilter, RequestsThePartThatItNeeds)
{
  const auto filter = FilterType::New();
  const auto image = MakeWaves();
  filter->SetInput(image);
  filter->UpdateOutputInformation();
  ImageType::RegionType part = filter->GetOutput()->GetLargestPossibleRegion();
  part.SetSize(2, 4);
  filter->GetOutput()->SetRequestedRegion(part);
  filter->GetOutput()->PropagateRequestedRegion();
  EXPECT_EQ(image->GetRequestedRegion(), part) << "points are pixels";
}

TEST(ChunkwiseResampleImageFilter, RefusesTransformsThatAreNotLinear)
{
  const auto filter = FilterType::New();
  filter->SetInput(MakeWaves());
  filter->SetTransform(itk::BSplineTransform<double, 3, 3>::New());
  EXPECT_THROW(filter->Update(), itk::ExceptionObject);
  filter->SetTransform(nullptr);
  ImageType::SpacingType spacing;
  spacing.Fill(-1);
  filter->SetOutputSpacing(spacing);
  EXPECT_THROW(filter->Update(), itk::ExceptionObject);
}

} // namespace itkChunkwiseResampleImageFilterTest
