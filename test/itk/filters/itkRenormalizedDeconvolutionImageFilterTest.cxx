/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkRenormalizedDeconvolutionImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkTikhonovDeconvolutionImageFilter.h"
#include "itkWienerDeconvolutionImageFilter.h"

#include <gtest/gtest.h>

#include <functional>

namespace RenormalizedDeconvolutionImageFilterTest
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Algorithm = itk::DeconvolutionEnums::Algorithm;
using Image3 = itk::Image<double, 3>;
#if ITK_VERSION_MAJOR == 5 && ITK_VERSION_MINOR < 3
constexpr itk::SizeValueType KernelDepth = 5;
#else
constexpr itk::SizeValueType KernelDepth = 4;
#endif

/** ITK's filter beside ours. The sums of the sizes of image and kernel are products of 2, 3 and 5, so that ITK's
 * transforms are as long, by whatever library they are. From 5.3 on, ITK grows images by a voxel less than the kernel
 * has along axes on which it has an odd number. */
template <typename TReference>
void
Compare(Algorithm algorithm, const std::function<void(TReference &)> & set)
{
  const auto image = MakeRandomImage<Image3>(MakeRegion<Image3>({ 3, -4, 5 }, { 21, 14, 11 }), 1, 0, 200);
  for (const bool normalize : { false, true })
  {
    const auto kernel = MakeRandomImage<Image3>(MakeRegion<Image3>({ 4, -2, 1 }, { 6, 2, KernelDepth }), 7, 0.1, 1);
    const auto reference = TReference::New();
    reference->SetInput(image);
    reference->SetKernelImage(kernel);
    reference->SetNormalize(normalize);
    reference->SetKernelZeroMagnitudeThreshold(0.02);
    set(*reference);
    reference->Update();
    const auto filter = itk::RenormalizedDeconvolutionImageFilter<Image3>::New();
    filter->SetInput(image);
    filter->SetKernelImage(kernel);
    filter->SetNormalize(normalize);
    filter->SetAlgorithm(algorithm);
    filter->SetKernelZeroMagnitudeThreshold(0.02);
    filter->SetNoiseVariance(900);
    filter->SetRegularizationConstant(0.05);
    filter->Update();
    itk::ImageRegionConstIteratorWithIndex<Image3> it(filter->GetOutput(), image->GetLargestPossibleRegion());
    double                                         largest = 0;
    for (; !it.IsAtEnd(); ++it)
    {
      const double expected = reference->GetOutput()->GetPixel(it.GetIndex());
      largest = std::max(largest, std::abs(expected));
      ASSERT_NEAR(it.Get(), expected, 1e-7 * (1 + std::abs(expected))) << "at " << it.GetIndex() << " " << normalize;
    }
    EXPECT_GT(largest, 1);
  }
}

TEST(RenormalizedDeconvolutionImageFilter, DividesSpectraAsItkDoes)
{
  using Wiener = itk::WienerDeconvolutionImageFilter<Image3>;
  using Tikhonov = itk::TikhonovDeconvolutionImageFilter<Image3>;
  using Inverse = itk::InverseDeconvolutionImageFilter<Image3>;
  Compare<Wiener>(Algorithm::Wiener, [](Wiener & filter) { filter.SetNoiseVariance(900); });
  Compare<Tikhonov>(Algorithm::Tikhonov, [](Tikhonov & filter) { filter.SetRegularizationConstant(0.05); });
  Compare<Inverse>(Algorithm::Inverse, [](Inverse &) {});
}

TEST(RenormalizedDeconvolutionImageFilter, RefusesWeightsWithSpectra)
{
  const auto filter = itk::RenormalizedDeconvolutionImageFilter<Image3>::New();
  const auto image = MakeRandomImage<Image3>(MakeRegion<Image3>({ 0, 0, 0 }, { 8, 7, 6 }), 1);
  filter->SetInput(image);
  filter->SetKernelImage(MakeRandomImage<Image3>(MakeRegion<Image3>({ 0, 0, 0 }, { 2, 3, 1 }), 7, 0.1, 1));
  filter->SetAlgorithm(Algorithm::Tikhonov);
  filter->SetStartImage(image);
  try
  {
    filter->Update();
    FAIL() << "a start image has no meaning";
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.what()).find("StartImage"), std::string::npos) << error;
  }
}

} // namespace RenormalizedDeconvolutionImageFilterTest
