/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedLaplacianOfGaussianImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkLaplacianRecursiveGaussianImageFilter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>

namespace RenormalizedLaplacianOfGaussianImageFilterTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Float3 = itk::Image<float, 3>;
using FilterType = itk::RenormalizedLaplacianOfGaussianImageFilter<Float3>;

const auto Region = MakeRegion<Float3>({ 4, -3, 2 }, { 41, 33, 27 });

TEST(RenormalizedLaplacianOfGaussianImageFilter, AgreesWithItkInside)
{
  const auto image = MakeRandomImage<Float3>(Region, 3);
  // Smooth, so that the recursive filter's own error stays small beside the result.
  for (itk::ImageRegionIterator<Float3> it(image, Region); !it.IsAtEnd(); ++it)
  {
    const auto index = it.GetIndex();
    it.Set(static_cast<float>(100 * std::sin(0.2 * index[0]) * std::cos(0.15 * index[1] + 0.1 * index[2])));
  }
  for (const bool normalize : { false, true })
  {
    const auto reference = itk::LaplacianRecursiveGaussianImageFilter<Float3, Float3>::New();
    reference->SetInput(image);
    reference->SetSigma(1.9);
    reference->SetNormalizeAcrossScale(normalize);
    reference->Update();
    const auto filter = FilterType::New();
    filter->SetInput(image);
    filter->SetSigma(1.9);
    filter->SetCutoff(6);
    filter->SetNormalizeAcrossScale(normalize);
    filter->Update();
    auto inside = Region;
    for (unsigned int a = 0; a < 3; ++a)
    {
      inside.SetIndex(a, Region.GetIndex(a) + 12);
      inside.SetSize(a, Region.GetSize(a) - 24);
    }
    double largest = 0;
    double difference = 0;
    for (itk::ImageRegionConstIteratorWithIndex<Float3> it(filter->GetOutput(), inside); !it.IsAtEnd(); ++it)
    {
      const double expected = reference->GetOutput()->GetPixel(it.GetIndex());
      largest = std::max(largest, std::abs(expected));
      difference = std::max(difference, std::abs(it.Get() - expected));
    }
    EXPECT_LT(difference, 0.03 * largest);
  }
}

TEST(RenormalizedLaplacianOfGaussianImageFilter, ARampInPhysicalSpaceGivesZeroAndAParabolaItsCurvature)
{
  const auto image = MakeRandomImage<Float3>(Region, 3);
  const auto spacing = image->GetSpacing();
  const auto filter = FilterType::New();
  filter->SetInput(image);
  filter->SetSigma(2);
  for (const double curvature : { 0.0, 0.25 })
  {
    for (itk::ImageRegionIterator<Float3> it(image, Region); !it.IsAtEnd(); ++it)
    {
      const auto   index = it.GetIndex();
      const double y = spacing[1] * static_cast<double>(index[1]);
      it.Set(static_cast<float>(3.0 * static_cast<double>(index[0]) - y + 0.5 * curvature * y * y));
    }
    image->Modified();
    filter->Update();
    for (itk::ImageRegionConstIteratorWithIndex<Float3> it(filter->GetOutput(), Region); !it.IsAtEnd(); ++it)
    {
      ASSERT_NEAR(it.Get(), curvature, 1e-3) << it.GetIndex();
    }
  }
}

TEST(RenormalizedLaplacianOfGaussianImageFilter, InvalidParametersThrowAndNameTheParameter)
{
  const auto filter = FilterType::New();
  filter->SetInput(MakeRandomImage<Float3>(Region, 3));
  const auto message = [&] {
    try
    {
      filter->Update();
    }
    catch (const itk::ExceptionObject & error)
    {
      return std::string(error.GetDescription());
    }
    return std::string();
  };
  for (const double sigma : { 0.0, -1.0, std::numeric_limits<double>::quiet_NaN() })
  {
    filter->SetSigma(sigma);
    EXPECT_NE(message().find("Sigma: "), std::string::npos);
  }
  filter->SetSigma(1);
  filter->SetCutoff(0);
  EXPECT_NE(message().find("Cutoff: 0"), std::string::npos);
  filter->SetCutoff(3);
  EXPECT_EQ(message(), "");
  std::ostringstream os;
  filter->Print(os);
  EXPECT_NE(os.str().find("Cutoff: 3"), std::string::npos);
  EXPECT_NE(os.str().find("NormalizeAcrossScale: Off"), std::string::npos);
}

} // namespace RenormalizedLaplacianOfGaussianImageFilterTest
