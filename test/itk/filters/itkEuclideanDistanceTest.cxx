/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkBinaryBallMorphologyImageFilter.h"
#include "itkChunkwiseTestImages.h"
#include "itkEuclideanDistanceImageFilter.h"
#include "itkExpandLabelsImageFilter.h"
#include "itkImageRegionConstIterator.h"
#include "itkNearestFeatureImageFilter.h"
#include "itkSignedMaurerDistanceMapImageFilter.h"

#include <gtest/gtest.h>

#include <random>
#include <sstream>

namespace EuclideanDistanceTest
{

using Mask = itk::Image<unsigned char, 3>;
using Real = itk::Image<double, 3>;
using chunkwisetest::MakeRegion;

/** Objects of some voxels in an image with a spacing and an index. */
Mask::Pointer
MakeObjects(unsigned int seed, unsigned int outOf)
{
  std::mt19937 random(seed);
  const auto   image = Mask::New();
  image->SetRegions(MakeRegion<Mask>({ -5, 20, 3 }, { 19, 14, 13 }));
  const double spacing[] = { 0.3, 7.0, 1.0 };
  image->SetSpacing(spacing);
  image->Allocate();
  unsigned char voxel = 0;
  for (unsigned int i = 0; i < image->GetLargestPossibleRegion().GetNumberOfPixels(); ++i)
  {
    voxel = i % 3 == 0 ? (random() % outOf == 0 ? 0 : 200) : voxel;
    image->GetBufferPointer()[i] = voxel;
  }
  return image;
}

TEST(EuclideanDistances, AreThoseOfSignedMaurer)
{
  for (unsigned int trial = 0; trial < 16; ++trial)
  {
    const auto image = MakeObjects(trial, trial % 2 ? 2 : 30);
    const auto ours = itk::EuclideanDistanceImageFilter<Mask, Real>::New();
    const auto itks = itk::SignedMaurerDistanceMapImageFilter<Mask, Real>::New();
    ours->SetFeatures(itk::EuclideanDistanceEnums::Features::Contour);
    ours->SetInput(image);
    itks->SetInput(image);
    ours->SetSquaredDistance(trial & 1);
    itks->SetSquaredDistance(trial & 1);
    ours->SetUseImageSpacing(trial & 2);
    itks->SetUseImageSpacing(trial & 2);
    ours->SetInsideIsPositive(trial & 4);
    itks->SetInsideIsPositive(trial & 4);
    ours->Update();
    itks->Update();
    itk::ImageRegionConstIterator<Real> a(ours->GetOutput(), ours->GetOutput()->GetBufferedRegion());
    itk::ImageRegionConstIterator<Real> b(itks->GetOutput(), itks->GetOutput()->GetBufferedRegion());
    for (; !a.IsAtEnd(); ++a, ++b)
    {
      ASSERT_NEAR(a.Get(), b.Get(), 1e-12 * (1 + std::abs(b.Get()))) << trial << " at " << a.GetIndex();
    }
  }
}

TEST(EuclideanDistances, OfAllFiltersAgree)
{
  const auto image = MakeObjects(3, 2);
  const auto distance = itk::EuclideanDistanceImageFilter<Mask, Real>::New();
  distance->SetFeatures(itk::EuclideanDistanceEnums::Features::Objects);
  distance->SetInput(image);
  distance->Update();
  const auto expanded = itk::ExpandLabelsImageFilter<Mask>::New();
  expanded->SetDistance(0.6);
  expanded->SetInput(image);
  expanded->Update();
  const auto dilated = itk::BinaryBallMorphologyImageFilter<Mask>::New();
  dilated->SetRadius(0.6);
  dilated->SetForegroundValue(200);
  dilated->SetInput(image);
  dilated->Update();
  const auto nearest = itk::NearestFeatureImageFilter<Mask>::New();
  nearest->SetInput(image);
  nearest->Update();
  const std::size_t n = image->GetLargestPossibleRegion().GetNumberOfPixels();
  for (std::size_t i = 0; i < n; ++i)
  {
    const bool isNear = distance->GetOutput()->GetBufferPointer()[i] <= 0.6;
    ASSERT_EQ(expanded->GetOutput()->GetBufferPointer()[i], isNear ? 200 : 0);
    ASSERT_EQ(dilated->GetOutput()->GetBufferPointer()[i], isNear ? 200 : 0);
    const unsigned int from = nearest->GetOutput()->GetBufferPointer()[i];
    ASSERT_LT(from, n);
    ASSERT_EQ(image->GetBufferPointer()[from], 200);
  }
}

TEST(EuclideanDistances, PrintWhatWasSet)
{
  const auto distance = itk::EuclideanDistanceImageFilter<Mask>::New();
  distance->SetFeatures(itk::EuclideanDistanceEnums::Features::Others);
  distance->SetMaximumDistance(3.5);
  const auto ball = itk::BinaryBallMorphologyImageFilter<Mask>::New();
  ball->SetMorphology(itk::EuclideanDistanceEnums::Morphology::Closing);
  std::ostringstream text;
  distance->Print(text);
  ball->Print(text);
  for (const char * const part :
       { "EuclideanDistanceEnums::Features::others", "MaximumDistance: 3.5", "Morphology::closing", "Radius: 1" })
  {
    EXPECT_NE(text.str().find(part), std::string::npos) << part;
  }
}

} // namespace EuclideanDistanceTest
