/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedGaussianImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkChunkwiseTestWarnings.h"
#include "itkDiscreteGaussianImageFilter.h"
#include "itkGaussianOperator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace RenormalizedGaussianImageFilterTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Boundary = itk::ChunkwiseEnums::BoundaryCondition;
using Kernel = itk::ChunkwiseEnums::GaussianKernel;

template <typename TImage>
void
ExpectTheGaussianOfItk(const TImage * image, bool useImageSpacing)
{
  constexpr unsigned int             dimension = TImage::ImageDimension;
  itk::FixedArray<double, dimension> variance;
  for (unsigned int a = 0; a < dimension; ++a)
  {
    variance[a] = 1.3 + 1.7 * a;
  }
  const auto reference = itk::DiscreteGaussianImageFilter<TImage, TImage>::New();
  reference->SetInput(image);
  reference->SetVariance(variance);
  reference->SetMaximumError(0.002);
  reference->SetMaximumKernelWidth(40);
  reference->SetUseImageSpacing(useImageSpacing);
  reference->Update();

  const auto filter = itk::RenormalizedGaussianImageFilter<TImage>::New();
  filter->SetInput(image);
  filter->SetVariance(variance);
  filter->SetMaximumError(0.002);
  filter->SetMaximumKernelWidth(40);
  filter->SetUseImageSpacing(useImageSpacing);
  filter->SetKernel(Kernel::Discrete);
  filter->SetBoundaryCondition(Boundary::ZeroFluxNeumann);
  filter->Update();

  // Values of at most 100, one rounding for each weight and axis.
  const double tolerance = 100.0 * 30 * dimension * std::numeric_limits<typename TImage::PixelType>::epsilon();
  itk::ImageRegionConstIteratorWithIndex<TImage> it(filter->GetOutput(), image->GetLargestPossibleRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(it.Get(), reference->GetOutput()->GetPixel(it.GetIndex()), tolerance) << "at " << it.GetIndex();
  }
}

TEST(RenormalizedGaussianImageFilter, ZeroFluxNeumannAgreesWithItkDiscreteGaussianImageFilter)
{
  using Float2 = itk::Image<float, 2>;
  using Double3 = itk::Image<double, 3>;
  const auto floats = MakeRandomImage<Float2>(MakeRegion<Float2>({ -2, 7 }, { 31, 17 }), 2);
  const auto doubles = MakeRandomImage<Double3>(MakeRegion<Double3>({ 3, -4, 5 }, { 13, 9, 7 }), 1);
  for (const bool useImageSpacing : { false, true })
  {
    ExpectTheGaussianOfItk<Float2>(floats, useImageSpacing);
    ExpectTheGaussianOfItk<Double3>(doubles, useImageSpacing);
  }
}

TEST(RenormalizedGaussianImageFilter, AnImpulseGivesTheSampledGaussian)
{
  using ImageType = itk::Image<double, 2>;
  const auto image = ImageType::New();
  image->SetRegions(MakeRegion<ImageType>({ 0, 0 }, { 41, 41 }));
  image->Allocate(true);
  image->SetPixel({ { 20, 20 } }, 1.0);

  const double sigma[2] = { 1.5, 2.25 };
  const auto   filter = itk::RenormalizedGaussianImageFilter<ImageType>::New();
  filter->SetInput(image);
  filter->SetSigmaArray(itk::FixedArray<double, 2>(sigma));
  filter->Update();

  const double reach[2] = { 6, 9 }; // ceil(4 sigma)
  double       norm = 0;
  for (int y = -20; y <= 20; ++y)
  {
    for (int x = -20; x <= 20; ++x)
    {
      const bool inside = std::abs(x) <= reach[0] && std::abs(y) <= reach[1];
      norm += inside ? std::exp(-0.5 * (x * x / 2.25 + y * y / 5.0625)) : 0.0;
    }
  }
  for (int y = -20; y <= 20; ++y)
  {
    for (int x = -20; x <= 20; ++x)
    {
      const bool   inside = std::abs(x) <= reach[0] && std::abs(y) <= reach[1];
      const double expected = inside ? std::exp(-0.5 * (x * x / 2.25 + y * y / 5.0625)) / norm : 0.0;
      ASSERT_NEAR(filter->GetOutput()->GetPixel({ { 20 + x, 20 + y } }), expected, 1e-15) << x << ' ' << y;
    }
  }
}

TEST(RenormalizedGaussianImageFilter, EdgeVoxelsAreWeightedMeansOfTheVoxelsInside)
{
  using ImageType = itk::Image<double, 2>;
  const auto   image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 4, 4 }, { 9, 8 }), 6);
  const double sigma = 3.0;
  const auto   filter = itk::RenormalizedGaussianImageFilter<ImageType>::New();
  filter->SetInput(image);
  filter->SetSigma(sigma);
  filter->UseImageSpacingOff();
  filter->Update();

  itk::ImageRegionConstIteratorWithIndex<ImageType> it(filter->GetOutput(), image->GetLargestPossibleRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    double                                            sum = 0;
    double                                            weights = 0;
    itk::ImageRegionConstIteratorWithIndex<ImageType> tap(image, image->GetLargestPossibleRegion());
    for (; !tap.IsAtEnd(); ++tap)
    {
      const auto   x = static_cast<double>(tap.GetIndex()[0] - it.GetIndex()[0]);
      const auto   y = static_cast<double>(tap.GetIndex()[1] - it.GetIndex()[1]);
      const double weight = std::exp(-0.5 * (x * x + y * y) / (sigma * sigma));
      sum += weight * tap.Get();
      weights += weight;
    }
    ASSERT_NEAR(it.Get(), sum / weights, 1e-12) << "at " << it.GetIndex();
  }
}

TEST(RenormalizedGaussianImageFilter, ConstantIsKeptUpToTheEdge)
{
  using ImageType = itk::Image<short, 3>;
  const auto image = ImageType::New();
  image->SetRegions(MakeRegion<ImageType>({ 0, 0, 0 }, { 7, 5, 3 }));
  image->Allocate();
  image->FillBuffer(-1234);
  for (const auto boundary :
       { Boundary::Renormalized, Boundary::ZeroFluxNeumann, Boundary::Mirror, Boundary::Periodic })
  {
    for (const double sigma : { 0.3, 1.0, 20.0 })
    {
      const auto filter = itk::RenormalizedGaussianImageFilter<ImageType>::New();
      filter->SetInput(image);
      filter->SetSigma(sigma);
      filter->SetBoundaryCondition(boundary);
      filter->Update();
      EXPECT_EQ(CountDifferentVoxels(image.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u)
        << boundary << " sigma " << sigma;
    }
  }
}

TEST(RenormalizedGaussianImageFilter, AnAxisWithSigmaZeroIsLeftAsItIs)
{
  using ImageType = itk::Image<float, 2>;
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0 }, { 12, 11 }), 4);
  const auto filter = itk::RenormalizedGaussianImageFilter<ImageType>::New();
  filter->SetInput(image);
  for (const auto kernel : { Kernel::Sampled, Kernel::Discrete })
  {
    filter->SetKernel(kernel);
    filter->SetSigma(0.0);
    filter->Update();
    EXPECT_EQ(CountDifferentVoxels(image.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u);

    const double variance[2] = { 4.0, 0.0 };
    filter->SetVariance(variance);
    filter->Update();
    const auto alongX = itk::RenormalizedGaussianImageFilter<ImageType>::New();
    alongX->SetInput(image);
    alongX->SetKernel(kernel);
    alongX->SetVariance(4.0);
    alongX->SetSpatialAxes({ 0 });
    alongX->Update();
    EXPECT_EQ(CountDifferentVoxels(alongX->GetOutput(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u);
    EXPECT_GT(CountDifferentVoxels(image.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u);
  }
}

TEST(RenormalizedGaussianImageFilter, SigmaIsInUnitsOfTheSpacing)
{
  using ImageType = itk::Image<float, 2>;
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0 }, { 20, 21 }), 4);
  const auto spacing = image->GetSpacing();
  const auto physical = itk::RenormalizedGaussianImageFilter<ImageType>::New();
  physical->SetInput(image);
  itk::FixedArray<double, 2> sigma;
  sigma[0] = 2.0 * spacing[0];
  sigma[1] = 3.0 * spacing[1];
  physical->SetSigmaArray(sigma);
  physical->Update();

  const auto voxels = itk::RenormalizedGaussianImageFilter<ImageType>::New();
  voxels->SetInput(image);
  sigma[0] = 2.0;
  sigma[1] = 3.0;
  voxels->SetSigmaArray(sigma);
  voxels->UseImageSpacingOff();
  voxels->Update();
  EXPECT_EQ(CountDifferentVoxels(physical->GetOutput(), voxels->GetOutput(), image->GetLargestPossibleRegion()), 0u);
}

TEST(RenormalizedGaussianImageFilter, VarianceIsTheSquareOfSigma)
{
  const auto filter = itk::RenormalizedGaussianImageFilter<itk::Image<float, 3>>::New();
  filter->SetVariance(6.25);
  EXPECT_DOUBLE_EQ(filter->GetSigma(), 2.5);
  filter->SetSigma(1.5);
  EXPECT_DOUBLE_EQ(filter->GetVariance()[2], 2.25);
  EXPECT_DOUBLE_EQ(filter->GetSigmaArray()[1], 1.5);
}

TEST(RenormalizedGaussianImageFilter, InvalidParametersThrowAndNameTheParameter)
{
  using ImageType = itk::Image<unsigned char, 3>;
  const auto   image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 4, 4, 4 }), 3);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto   expect = [&](const std::string & part, auto && set) {
    const auto filter = itk::RenormalizedGaussianImageFilter<ImageType>::New();
    filter->SetInput(image);
    set(*filter);
    try
    {
      filter->Update();
      ADD_FAILURE() << "no exception: " << part;
    }
    catch (const itk::ExceptionObject & error)
    {
      EXPECT_NE(std::string(error.GetDescription()).find(part), std::string::npos) << error.GetDescription();
    }
    filter->SetSigma(1.0);
    filter->SetCutoff(3.0);
    filter->SetMaximumError(0.01);
    filter->SetBoundaryCondition(Boundary::Renormalized);
    EXPECT_NO_THROW(filter->Update());
  };
  expect("Sigma: -1", [](auto & filter) { filter.SetSigma(-1.0); });
  expect("Sigma: nan", [&](auto & filter) { filter.SetSigma(nan); });
  expect("Sigma: inf", [](auto & filter) { filter.SetSigma(std::numeric_limits<double>::infinity()); });
  expect("Variance: -4", [](auto & filter) { filter.SetVariance(-4.0); });
  expect("Cutoff: 0", [](auto & filter) { filter.SetCutoff(0.0); });
  expect("Cutoff: nan", [&](auto & filter) { filter.SetCutoff(nan); });
  expect("MaximumError: 1", [](auto & filter) {
    filter.SetKernel(Kernel::Discrete);
    filter.SetSigma(1.0);
    filter.SetMaximumError(1.0);
  });
  expect("Sigma: 1e+12", [](auto & filter) {
    filter.SetSigma(1e12);
    filter.SetBoundaryCondition(Boundary::Mirror);
  });
}

TEST(RenormalizedGaussianImageFilter, PrintsItsParameters)
{
  const auto filter = itk::RenormalizedGaussianImageFilter<itk::Image<float, 2>>::New();
  filter->SetSigma(2.5);
  filter->SetCutoff(3.5);
  filter->SetKernel(Kernel::Discrete);
  filter->SetMaximumKernelWidth(77);
  filter->SetMaximumError(0.125);
  filter->UseImageSpacingOff();
  std::ostringstream os;
  filter->Print(os);
  for (const char * part : { "RenormalizedGaussianImageFilter",
                             "Sigma: [2.5, 2.5]",
                             "Variance: [6.25, 6.25]",
                             "Cutoff: 3.5",
                             "Kernel: itk::ChunkwiseEnums::GaussianKernel::Discrete",
                             "MaximumKernelWidth: 77",
                             "MaximumError: [0.125, 0.125]",
                             "UseImageSpacing: Off" })
  {
    EXPECT_NE(os.str().find(part), std::string::npos) << part << "\n" << os.str();
  }
}

TEST(RenormalizedGaussianImageFilter, SampledWeightsSumToOneForEverySigma)
{
  for (const double sigma : { 1e-300, 1e-3, 0.5, 3.0, 100.0 })
  {
    const auto radius = static_cast<std::int64_t>(std::ceil(4.0 * sigma));
    const auto weights = chunkwise::SampledGaussianWeights(sigma, radius);
    ASSERT_EQ(weights.size(), static_cast<std::size_t>(2 * radius + 1));
    double sum = 0;
    for (std::size_t i = 0; i < weights.size(); ++i)
    {
      EXPECT_EQ(weights[i], weights[weights.size() - 1 - i]);
      sum += weights[i];
    }
    EXPECT_NEAR(sum, 1.0, 1e-14) << sigma;
  }
}

TEST(RenormalizedGaussianImageFilter, DiscreteWeightsAreThoseOfItkWhereItHasThem)
{
  for (const double variance : { 0.01, 0.7, 2.0, 9.0, 100.0, 650.0 })
  {
    for (const unsigned int width : { 3U, 32U, 400U })
    {
      itk::GaussianOperator<double, 1> gaussian;
      gaussian.SetDirection(0);
      gaussian.SetVariance(variance);
      gaussian.SetMaximumError(0.002);
      gaussian.SetMaximumKernelWidth(width);
      gaussian.CreateDirectional();
      const auto weights = chunkwise::DiscreteGaussianWeights(variance, 0.002, width);
      ASSERT_EQ(weights.size(), gaussian.Size()) << variance << ' ' << width;
      for (unsigned int i = 0; i < gaussian.Size(); ++i)
      {
        ASSERT_EQ(weights[i], gaussian[i]) << variance << ' ' << width << ' ' << i;
      }
    }
  }
}

TEST(RenormalizedGaussianImageFilter, DiscreteWeightsSumToOneAndHaveTheirVarianceWhereItkHasNone)
{
  for (const double sigma : { 27.0, 30.0, 100.0, 400.0 })
  {
    const auto weights =
      chunkwise::DiscreteGaussianWeights(sigma * sigma, 1e-6, static_cast<std::int64_t>(10.0 * sigma));
    const auto radius = static_cast<double>(weights.size() / 2);
    double     sum = 0;
    double     variance = 0;
    for (std::size_t i = 0; i < weights.size(); ++i)
    {
      const double x = static_cast<double>(i) - radius;
      ASSERT_GE(weights[i], 0.0);
      ASSERT_EQ(weights[i], weights[weights.size() - 1 - i]);
      sum += weights[i];
      variance += x * x * weights[i];
    }
    EXPECT_NEAR(sum, 1.0, 1e-12) << sigma;
    // The tail that is cut off, a millionth of the weights, has some 25 times the variance of the rest.
    EXPECT_NEAR(variance / (sigma * sigma), 1.0, 1e-4) << sigma;
  }
}

TEST(RenormalizedGaussianImageFilter, AWideDiscreteKernelKeepsAConstantAndSaysWhereItIsCut)
{
  using ImageType = itk::Image<float, 2>;
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 3, -2 }, { 120, 40 }), 3);
  image->FillBuffer(7.0F);
  const auto filter = itk::RenormalizedGaussianImageFilter<ImageType>::New();
  filter->SetInput(image);
  filter->UseImageSpacingOff();
  filter->SetKernel(Kernel::Discrete);
  filter->SetSigma(60.0);
  {
    const chunkwisetest::WarningScope warnings;
    filter->SetMaximumKernelWidth(1000);
    filter->Update();
    EXPECT_TRUE(warnings.GetTexts().empty());
    filter->SetMaximumKernelWidth(32);
    filter->Update();
    ASSERT_FALSE(warnings.GetTexts().empty());
    EXPECT_NE(warnings.GetTexts().front().find("MaximumKernelWidth: "), std::string::npos);
  }
  for (itk::ImageRegionConstIteratorWithIndex<ImageType> it(filter->GetOutput(), image->GetLargestPossibleRegion());
       !it.IsAtEnd();
       ++it)
  {
    ASSERT_NEAR(it.Get(), 7.0F, 1e-5F) << it.GetIndex();
  }
}

} // namespace RenormalizedGaussianImageFilterTest
