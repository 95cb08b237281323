/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkPrunedFFTGaussianImageFilter.h"

#include "itkChunkwiseSequenceImageFilter.h"
#include "itkChunkwiseTestImages.h"

#include <gtest/gtest.h>

#include <cmath>

namespace PrunedFFTGaussianImageFilterTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Boundary = itk::ChunkwiseEnums::BoundaryCondition;

constexpr Boundary AllBoundaries[] = { Boundary::Renormalized, Boundary::ZeroFluxNeumann, Boundary::Constant,
                                       Boundary::Mirror,       Boundary::Periodic,        Boundary::MirrorCenter };

/** Kernels of different lengths. */
template <typename TFilter>
typename TFilter::Pointer
MakeFilter(const typename TFilter::InputImageType * image, Boundary boundary)
{
  typename TFilter::ArrayType sigma;
  for (unsigned int axis = 0; axis < TFilter::ImageDimension; ++axis)
  {
    sigma[axis] = 2.0 + 5.5 * axis;
  }
  const auto filter = TFilter::New();
  filter->SetInput(image);
  filter->SetSigmaArray(sigma);
  filter->UseImageSpacingOff();
  filter->SetBoundaryCondition(boundary);
  filter->SetConstant(12);
  return filter;
}

template <typename TInputImage, typename TOutputImage>
void
ExpectTheRenormalizedGaussian(const TInputImage * image, double relative)
{
  for (const Boundary boundary : AllBoundaries)
  {
    const auto expected = MakeFilter<itk::RenormalizedGaussianImageFilter<TInputImage, TOutputImage>>(image, boundary);
    const auto filter = MakeFilter<itk::PrunedFFTGaussianImageFilter<TInputImage, TOutputImage>>(image, boundary);
    expected->Update();
    filter->Update();
    double                                               squares = 0;
    double                                               errors = 0;
    itk::ImageRegionConstIteratorWithIndex<TOutputImage> it(filter->GetOutput(), image->GetLargestPossibleRegion());
    for (; !it.IsAtEnd(); ++it)
    {
      const auto value = static_cast<double>(expected->GetOutput()->GetPixel(it.GetIndex()));
      const auto error = std::abs(static_cast<double>(it.Get()) - value);
      squares += value * value;
      errors += error * error;
    }
    EXPECT_LE(std::sqrt(errors / squares), relative) << boundary;
    EXPECT_EQ(filter->GetOutput()->GetSpacing(), image->GetSpacing());
    EXPECT_EQ(filter->GetOutput()->GetOrigin(), image->GetOrigin());
    EXPECT_EQ(filter->GetOutput()->GetDirection(), image->GetDirection());
  }
}

TEST(PrunedFFTGaussianImageFilter, IsTheRenormalizedGaussian)
{
  using Float3 = itk::Image<float, 3>;
  using Double2 = itk::Image<double, 2>;
  using Byte3 = itk::Image<unsigned char, 3>;
  using Int2 = itk::Image<int, 2>;
  const auto floats = MakeRandomImage<Float3>(MakeRegion<Float3>({ -2, 7, 3 }, { 31, 70, 47 }), 2);
  const auto doubles = MakeRandomImage<Double2>(MakeRegion<Double2>({ 3, -4 }, { 61, 83 }), 1);
  const auto bytes = MakeRandomImage<Byte3>(MakeRegion<Byte3>({ 0, 0, 0 }, { 29, 64, 40 }), 3);
  const auto ints = MakeRandomImage<Int2>(MakeRegion<Int2>({ 0, 0 }, { 64, 75 }), 4);
  ExpectTheRenormalizedGaussian<Float3, Float3>(floats, 1e-6);
  ExpectTheRenormalizedGaussian<Double2, Double2>(doubles, 1e-14);
  ExpectTheRenormalizedGaussian<Byte3, Float3>(bytes, 1e-6);
  ExpectTheRenormalizedGaussian<Int2, Double2>(ints, 1e-14);
}

TEST(PrunedFFTGaussianImageFilter, AConstantIsKeptUpToTheEdge)
{
  using ImageType = itk::Image<double, 3>;
  const auto image = ImageType::New();
  image->SetRegions(MakeRegion<ImageType>({ 0, 0, 0 }, { 17, 65, 3 }));
  image->Allocate();
  image->FillBuffer(-1234.0);
  for (const double sigma : { 0.0, 1.0, 20.0, 500.0 })
  {
    const auto filter = itk::PrunedFFTGaussianImageFilter<ImageType>::New();
    filter->SetInput(image);
    filter->SetSigma(sigma);
    filter->Update();
    itk::ImageRegionConstIterator<ImageType> it(filter->GetOutput(), image->GetLargestPossibleRegion());
    for (; !it.IsAtEnd(); ++it)
    {
      ASSERT_NEAR(it.Get(), -1234.0, 1e-11) << sigma;
    }
  }
}

TEST(PrunedFFTGaussianImageFilter, StreamedRegionsAndSequencesAgreeWithTheWhole)
{
  using ImageType = itk::Image<double, 2>;
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 5, -6 }, { 90, 80 }), 5);
  const auto whole = MakeFilter<itk::PrunedFFTGaussianImageFilter<ImageType>>(image, Boundary::Renormalized);
  whole->Update();
  const auto near = [&](const ImageType * result, const ImageType::RegionType & region) {
    itk::ImageRegionConstIteratorWithIndex<ImageType> it(result, region);
    for (; !it.IsAtEnd(); ++it)
    {
      ASSERT_NEAR(it.Get(), whole->GetOutput()->GetPixel(it.GetIndex()), 1e-11) << it.GetIndex();
    }
  };

  const auto part = MakeFilter<itk::PrunedFFTGaussianImageFilter<ImageType>>(image, Boundary::Renormalized);
  const auto region = MakeRegion<ImageType>({ 30, 10 }, { 13, 21 });
  part->GetOutput()->SetRequestedRegion(region);
  part->Update();
  EXPECT_EQ(part->GetOutput()->GetBufferedRegion(), region);
  near(part->GetOutput(), region);

  // A sequence within a sequence.
  const auto sequence = itk::ChunkwiseSequenceImageFilter<ImageType>::New();
  sequence->SetInput(image);
  sequence->AddFilter(MakeFilter<itk::PrunedFFTGaussianImageFilter<ImageType>>(image, Boundary::Renormalized));
  sequence->Update();
  near(sequence->GetOutput(), image->GetLargestPossibleRegion());
}

TEST(PrunedFFTGaussianImageFilter, InvalidParametersThrowAndNameTheParameter)
{
  using Float2 = itk::Image<float, 2>;
  const auto expect = [](auto & filter, const std::string & part) {
    try
    {
      filter.Update();
      ADD_FAILURE() << "no exception: " << part;
    }
    catch (const itk::ExceptionObject & error)
    {
      EXPECT_NE(std::string(error.GetDescription()).find(part), std::string::npos) << error.GetDescription();
    }
  };
  const auto floats = itk::PrunedFFTGaussianImageFilter<Float2>::New();
  floats->SetInput(MakeRandomImage<Float2>(MakeRegion<Float2>({ 0, 0 }, { 4, 4 }), 3));
  floats->SetSigma(-1.0);
  expect(*floats, "Sigma: -1");
}

} // namespace PrunedFFTGaussianImageFilterTest
