/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseDifferenceImageFilter.h"
#include "itkRenormalizedConvolutionImageFilter.h"
#include "itkRenormalizedEntropyImageFilter.h"
#include "itkRenormalizedHighPassImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkConvolutionImageFilter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <sstream>

namespace RenormalizedLinearFiltersTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Float2 = itk::Image<float, 2>;
using Byte2 = itk::Image<unsigned char, 2>;

const auto Region = MakeRegion<Float2>({ 4, -3 }, { 31, 23 });

template <typename TFilter>
std::string
UpdateMessage(TFilter & filter)
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

TEST(RenormalizedHighPassImageFilter, IsTheImageMinusItsGaussian)
{
  const auto image = MakeRandomImage<Float2>(Region, 3);
  const auto gaussian = itk::RenormalizedGaussianImageFilter<Float2>::New();
  gaussian->SetInput(image);
  gaussian->SetSigma(1.2);
  gaussian->Update();
  const auto filter = itk::RenormalizedHighPassImageFilter<Float2>::New();
  filter->SetInput(image);
  filter->SetSigma(1.2);
  filter->Update();
  const auto difference = itk::ChunkwiseDifferenceImageFilter<Float2>::New();
  difference->SetInput1(image);
  difference->SetInput2(gaussian->GetOutput());
  difference->Update();
  EXPECT_EQ(CountDifferentVoxels(filter->GetOutput(), difference->GetOutput(), Region), 0u);
  filter->SetSigma(-1.0);
  EXPECT_NE(UpdateMessage(*filter).find("Sigma: -1"), std::string::npos);
}

TEST(ChunkwiseDifferenceImageFilter, NeedsBothInputsAndClamps)
{
  const auto filter = itk::ChunkwiseDifferenceImageFilter<Byte2>::New();
  const auto a = MakeRandomImage<Byte2>(Region, 1, 0, 255);
  const auto b = MakeRandomImage<Byte2>(Region, 2, 0, 255);
  filter->SetInput1(a);
  EXPECT_NE(UpdateMessage(*filter), "");
  filter->SetInput2(b);
  filter->Update();
  for (itk::ImageRegionConstIteratorWithIndex<Byte2> it(filter->GetOutput(), Region); !it.IsAtEnd(); ++it)
  {
    ASSERT_EQ(int(it.Get()), std::max(0, int(a->GetPixel(it.GetIndex())) - int(b->GetPixel(it.GetIndex()))));
  }
}

TEST(RenormalizedConvolutionImageFilter, AgreesWithItkConvolutionWhichMirrorsTheKernel)
{
  const auto                   image = MakeRandomImage<Float2>(Region, 3);
  std::mt19937                 random(5);
  itk::Neighborhood<double, 2> kernel;
  kernel.SetRadius(itk::Size<2>{ { 2, 1 } });
  const auto kernelImage = Float2::New();
  kernelImage->SetRegions(MakeRegion<Float2>({ 0, 0 }, { 5, 3 }));
  kernelImage->Allocate();
  for (unsigned int i = 0; i < kernel.Size(); ++i)
  {
    kernel[i] = static_cast<double>(random() % 1000) / 1000;
    kernelImage->SetPixel({ { i % 5, i / 5 } }, static_cast<float>(kernel[i]));
  }
  const auto reference = itk::ConvolutionImageFilter<Float2, Float2, Float2>::New();
  reference->SetInput(image);
  reference->SetKernelImage(kernelImage);
  reference->Update();
  const auto filter = itk::RenormalizedConvolutionImageFilter<Float2>::New();
  filter->SetInput(image);
  filter->SetKernel(kernel);
  filter->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::ZeroFluxNeumann);
  filter->Update();
  for (itk::ImageRegionConstIteratorWithIndex<Float2> it(filter->GetOutput(), Region); !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(it.Get(), reference->GetOutput()->GetPixel(it.GetIndex()), 1e-3) << it.GetIndex();
  }
  // Renormalized, a constant keeps its gain up to the edge.
  double gain = 0;
  for (unsigned int i = 0; i < kernel.Size(); ++i)
  {
    gain += kernel[i];
  }
  image->FillBuffer(3);
  image->Modified();
  filter->SetBoundaryCondition(itk::ChunkwiseEnums::BoundaryCondition::Renormalized);
  filter->Update();
  for (itk::ImageRegionConstIteratorWithIndex<Float2> it(filter->GetOutput(), Region); !it.IsAtEnd(); ++it)
  {
    ASSERT_NEAR(it.Get(), 3 * gain, 1e-4);
  }
  filter->SetSpatialAxes({ 0 });
  EXPECT_NE(UpdateMessage(*filter).find("axis 1, which is not spatial"), std::string::npos);
  std::ostringstream os;
  filter->Print(os);
  EXPECT_NE(os.str().find("Kernel: "), std::string::npos);
}

TEST(RenormalizedEntropyImageFilter, IsThatOfTheHistogramOfTheWindowInsideTheImage)
{
  const auto image = MakeRandomImage<Byte2>(Region, 3, 0, 9);
  const auto filter = itk::RenormalizedEntropyImageFilter<Byte2, Float2>::New();
  filter->SetInput(image);
  filter->SetRadius({ { 2, 3 } });
  filter->Update();
  for (itk::ImageRegionConstIteratorWithIndex<Float2> it(filter->GetOutput(), Region); !it.IsAtEnd(); ++it)
  {
    const auto            window = chunkwisetest::WindowInside(image.GetPointer(), it.GetIndex(), { { 2, 3 } });
    std::map<int, double> counts;
    itk::ImageRegionConstIteratorWithIndex<Byte2> tap(image, window);
    for (; !tap.IsAtEnd(); ++tap)
    {
      counts[tap.Get()] += 1.0 / static_cast<double>(window.GetNumberOfPixels());
    }
    double entropy = 0;
    for (const auto & entry : counts)
    {
      entropy -= entry.second * std::log2(entry.second);
    }
    ASSERT_NEAR(it.Get(), entropy, 2e-6) << it.GetIndex();
  }
  filter->SetNumberOfBins(1);
  EXPECT_NE(UpdateMessage(*filter).find("NumberOfBins: 1"), std::string::npos);
  filter->SetNumberOfBins(2);
  filter->SetRange(4, 4);
  EXPECT_NE(UpdateMessage(*filter).find("Range: from 4 to 4"), std::string::npos);
  const auto real = itk::RenormalizedEntropyImageFilter<Float2>::New();
  real->SetInput(MakeRandomImage<Float2>(Region, 3));
  EXPECT_NE(UpdateMessage(*real).find("Range"), std::string::npos);
  real->SetRange(0, 100);
  EXPECT_EQ(UpdateMessage(*real), "");
}

} // namespace RenormalizedLinearFiltersTest
