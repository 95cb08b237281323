/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseTestImages.h"
#include "itkCurvatureAnisotropicDiffusionImageFilter.h"
#include "itkFixedConductanceDiffusionImageFilter.h"
#include "itkGradientAnisotropicDiffusionImageFilter.h"
#include "itkImageRegionConstIterator.h"

#include <gtest/gtest.h>

#include <cmath>

namespace FixedConductanceDiffusionImageFilterTest
{

using ImageType = itk::Image<float, 3>;

/** ITK's filter with the gradient magnitude of the input in all iterations, and this one. Values are from -50 to 100.
 */
template <typename TFilter>
void
CompareWithItk(bool isCurvature)
{
  const auto image = chunkwisetest::MakeRandomImage<ImageType>(
    chunkwisetest::MakeRegion<ImageType>({ 2, -3, 5 }, { 17, 13, 11 }), 5, -50, 100);
  const double spacing[3] = { 0.75, 1.0, 1.5 };
  image->SetSpacing(spacing);
  const auto theirs = TFilter::New();
  theirs->SetInput(image);
  theirs->SetNumberOfIterations(6);
  theirs->SetConductanceScalingUpdateInterval(6);
  theirs->SetConductanceParameter(1.5);
  theirs->SetTimeStep(0.04);
  theirs->Update();
  const auto ours = itk::FixedConductanceDiffusionImageFilter<ImageType>::New();
  ours->SetInput(image);
  ours->SetCurvature(isCurvature);
  ours->SetNumberOfIterations(6);
  ours->SetConductance(1.5);
  ours->SetTimeStep(0.04);
  ours->Update();
  itk::ImageRegionConstIterator<ImageType> in(image, image->GetBufferedRegion());
  itk::ImageRegionConstIterator<ImageType> a(theirs->GetOutput(), image->GetBufferedRegion());
  itk::ImageRegionConstIterator<ImageType> b(ours->GetOutput(), image->GetBufferedRegion());
  double                                   change = 0;
  for (; !a.IsAtEnd(); ++in, ++a, ++b)
  {
    ASSERT_NEAR(a.Get(), b.Get(), 0.015) << a.GetIndex();
    change = std::max(change, std::fabs(static_cast<double>(in.Get()) - static_cast<double>(b.Get())));
  }
  EXPECT_GT(change, 10);
}

TEST(FixedConductanceDiffusionImageFilter, GradientDiffusionIsThatOfItk)
{
  CompareWithItk<itk::GradientAnisotropicDiffusionImageFilter<ImageType, ImageType>>(false);
}

TEST(FixedConductanceDiffusionImageFilter, CurvatureDiffusionIsThatOfItk)
{
  CompareWithItk<itk::CurvatureAnisotropicDiffusionImageFilter<ImageType, ImageType>>(true);
}

} // namespace FixedConductanceDiffusionImageFilterTest
