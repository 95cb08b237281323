/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkPrunedFFTConvolutionImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkConvolutionImageFilter.h"
#include "itkPeriodicBoundaryCondition.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <sstream>

namespace PrunedFFTConvolutionImageFilterTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Boundary = itk::ChunkwiseEnums::BoundaryCondition;
using ImageType = itk::Image<double, 3>;
using FilterType = itk::PrunedFFTConvolutionImageFilter<ImageType>;
using Method = FilterType::MethodEnum;

void
ExpectNear(const ImageType * ours, const ImageType * reference, double tolerance)
{
  ASSERT_EQ(ours->GetLargestPossibleRegion(), reference->GetLargestPossibleRegion());
  itk::ImageRegionConstIteratorWithIndex<ImageType> it(ours, ours->GetLargestPossibleRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(it.Get(), reference->GetPixel(it.GetIndex()), tolerance) << "at " << it.GetIndex();
  }
}

ImageType::Pointer
MakeKernel(std::initializer_list<itk::SizeValueType> size)
{
  return MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 4, -2, 1 }, size), 7, 0.1, 1);
}

ImageType::Pointer
MakeImage()
{
  return MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 3, -4, 5 }, { 23, 14, 11 }), 1);
}

FilterType::Pointer
MakeFilter(const ImageType * image, const ImageType * kernel)
{
  const auto filter = FilterType::New();
  filter->SetInput(image);
  filter->SetKernelImage(kernel);
  return filter;
}

TEST(PrunedFFTConvolutionImageFilter, AgreesWithItkConvolutionImageFilter)
{
  const auto image = MakeImage();
  for (const auto & kernel : { MakeKernel({ 5, 3, 7 }), MakeKernel({ 4, 6, 1 }) })
  {
    const auto reference = itk::ConvolutionImageFilter<ImageType>::New();
    reference->SetInput(image);
    reference->SetKernelImage(kernel);
    itk::PeriodicBoundaryCondition<ImageType> periodic;
    for (const auto boundary : { Boundary::ZeroFluxNeumann, Boundary::Periodic })
    {
      if (boundary == Boundary::Periodic)
      {
        reference->SetBoundaryCondition(&periodic);
      }
      for (const bool normalize : { false, true })
      {
        for (const auto method : { Method::FFT, Method::Direct })
        {
          for (const bool valid : { false, true })
          {
            reference->SetNormalize(normalize);
            reference->SetOutputRegionMode(valid ? reference->VALID : reference->SAME);
            reference->UpdateLargestPossibleRegion();
            const auto filter = MakeFilter(image, kernel);
            filter->SetBoundaryCondition(boundary);
            filter->SetNormalize(normalize);
            filter->SetMethod(method);
            filter->SetOutputRegionMode(valid ? FilterType::VALID : FilterType::SAME);
            filter->Update();
            ExpectNear(filter->GetOutput(), reference->GetOutput(), 1e-10);
          }
        }
      }
    }
  }
}

TEST(PrunedFFTConvolutionImageFilter, CorrelationWithAnImpulseGivesTheKernelBack)
{
  const auto image = ImageType::New();
  image->SetRegions(MakeRegion<ImageType>({ 0, 0, 0 }, { 21, 21, 21 }));
  image->Allocate(true);
  image->SetPixel({ { 10, 10, 10 } }, 1.0);
  const auto kernel = MakeKernel({ 7, 5, 6 });
  for (const bool correlate : { false, true })
  {
    const auto filter = MakeFilter(image, kernel);
    filter->SetMethod(Method::FFT);
    filter->SetBoundaryCondition(Boundary::Constant);
    filter->SetCorrelate(correlate);
    filter->Update();
    itk::ImageRegionConstIteratorWithIndex<ImageType> it(kernel, kernel->GetLargestPossibleRegion());
    for (; !it.IsAtEnd(); ++it)
    {
      ImageType::IndexType      at;
      const auto                offset = it.GetIndex() - kernel->GetLargestPossibleRegion().GetIndex();
      const itk::IndexValueType center[] = { 3, 2, 3 };
      for (unsigned int a = 0; a < 3; ++a)
      {
        at[a] = 10 + (correlate ? center[a] - offset[a] : offset[a] - center[a]);
      }
      ASSERT_NEAR(filter->GetOutput()->GetPixel(at), it.Get(), 1e-14);
    }
  }
}

TEST(PrunedFFTConvolutionImageFilter, StreamingAndBudgetsChangeTheResultByRoundingOnly)
{
  const auto image = MakeImage();
  const auto kernel = MakeKernel({ 7, 5, 8 });
  for (const auto boundary : { Boundary::Renormalized, Boundary::Mirror })
  {
    const auto whole = MakeFilter(image, kernel);
    whole->SetBoundaryCondition(boundary);
    whole->Update();
    const auto pieces = MakeFilter(image, kernel);
    pieces->SetBoundaryCondition(boundary);
    // Each thread takes scratch.
    pieces->SetNumberOfWorkUnits(2);
    pieces->SetHostMemoryBudget(400000);
    const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
    streamer->SetInput(pieces->GetOutput());
    streamer->SetNumberOfStreamDivisions(4);
    streamer->Update();
    ExpectNear(streamer->GetOutput(), whole->GetOutput(), 1e-9);
  }
}

TEST(PrunedFFTConvolutionImageFilter, ReadsAKernelThatAPipelineMakes)
{
  // The kernel's source runs only when the filter does, and again when it changed.
  const auto image = MakeImage();
  const auto kernel = MakeKernel({ 7, 7, 7 });
  const auto source = itk::StreamingImageFilter<ImageType, ImageType>::New();
  source->SetInput(kernel);
  const auto filter = MakeFilter(image, nullptr);
  filter->SetKernelImage(source->GetOutput());
  filter->Update();
  const auto reference = MakeFilter(image, kernel);
  reference->Update();
  ExpectNear(filter->GetOutput(), reference->GetOutput(), 1e-12);
  kernel->SetPixel(kernel->GetLargestPossibleRegion().GetIndex(), 50.0);
  kernel->Modified();
  filter->Update();
  reference->Modified();
  reference->Update();
  ExpectNear(filter->GetOutput(), reference->GetOutput(), 1e-9);
}

std::string
MessageOf(FilterType & filter)
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

TEST(PrunedFFTConvolutionImageFilter, BadParametersThrowAndAreNamed)
{
  const auto image = MakeImage();
  auto       filter = MakeFilter(image, MakeKernel({ 24, 3, 3 }));
  EXPECT_EQ(MessageOf(*filter), "");
  filter->SetOutputRegionModeToValid();
  EXPECT_NE(MessageOf(*filter).find("VALID"), std::string::npos);

  filter = MakeFilter(image, MakeKernel({ 3, 3, 3 }));
  filter->SetSpatialAxes({ 0, 2 });
  EXPECT_NE(MessageOf(*filter).find("axis 1"), std::string::npos);

  const auto derivative = MakeKernel({ 3, 1, 1 });
  derivative->FillBuffer(0.0);
  derivative->SetPixel({ { 4, -2, 1 } }, 1.0);
  derivative->SetPixel({ { 6, -2, 1 } }, -1.0);
  filter = MakeFilter(image, derivative);
  EXPECT_NE(MessageOf(*filter).find("renormalized"), std::string::npos);
  filter->SetOutputRegionModeToValid();
  EXPECT_EQ(MessageOf(*filter), "");
  filter->NormalizeOn();
  EXPECT_NE(MessageOf(*filter).find("Normalize"), std::string::npos);

  filter = FilterType::New();
  filter->SetInput(image);
  EXPECT_NE(MessageOf(*filter).find("KernelImage"), std::string::npos);
}

TEST(PrunedFFTConvolutionImageFilter, PrintsItsParameters)
{
  const auto filter = FilterType::New();
  filter->SetMethod(Method::Direct);
  filter->SetOutputRegionModeToValid();
  std::ostringstream text;
  filter->Print(text);
  for (const char * const part : { "Normalize: Off",
                                   "Correlate: Off",
                                   "OutputRegionMode: itk::ChunkwiseConvolutionEnums::OutputRegion::VALID",
                                   "Method: itk::ChunkwiseConvolutionEnums::Method::Direct" })
  {
    EXPECT_NE(text.str().find(part), std::string::npos) << part;
  }
}

} // namespace PrunedFFTConvolutionImageFilterTest
