/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkSummedAreaTableImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace SummedAreaTableImageFilterTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;

/** Copies its input and counts the voxels it was asked for. */
template <typename TImage>
class CountingFilter : public itk::ImageToImageFilter<TImage, TImage>
{
public:
  using Self = CountingFilter;
  using Superclass = itk::ImageToImageFilter<TImage, TImage>;
  using Pointer = itk::SmartPointer<Self>;
  itkNewMacro(Self);
  std::size_t voxels{ 0 };

protected:
  void
  GenerateData() override
  {
    this->AllocateOutputs();
    const auto & region = this->GetOutput()->GetRequestedRegion();
    voxels += region.GetNumberOfPixels();
    itk::ImageRegionConstIterator<TImage> from(this->GetInput(), region);
    itk::ImageRegionIterator<TImage>      to(this->GetOutput(), region);
    for (; !from.IsAtEnd(); ++from, ++to)
    {
      to.Set(from.Get());
    }
  }
};

template <typename TFilter>
void
ExpectDefinition(TFilter & filter, unsigned int axes)
{
  using Output = typename TFilter::OutputImageType;
  using Input = typename TFilter::InputImageType;
  const Input *                                  input = filter.GetInput();
  itk::ImageRegionConstIteratorWithIndex<Output> it(filter.GetOutput(), filter.GetOutput()->GetRequestedRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    typename Input::RegionType before;
    for (unsigned int a = 0; a < Input::ImageDimension; ++a)
    {
      const auto first = a < axes ? input->GetLargestPossibleRegion().GetIndex(a) : it.GetIndex()[a];
      before.SetIndex(a, first);
      before.SetSize(a, static_cast<itk::SizeValueType>(it.GetIndex()[a] - first + 1));
    }
    double                               sum = 0;
    itk::ImageRegionConstIterator<Input> voxel(input, before);
    for (; !voxel.IsAtEnd(); ++voxel)
    {
      sum += static_cast<double>(voxel.Get());
    }
    ASSERT_EQ(static_cast<double>(it.Get()), sum) << it.GetIndex();
  }
}

TEST(SummedAreaTableImageFilter, SumsFromTheFirstVoxelOfTheImage)
{
  using Image3 = itk::Image<short, 3>;
  const auto image = MakeRandomImage<Image3>(MakeRegion<Image3>({ -2, 5, 1 }, { 9, 7, 6 }), 1, -900, 1000);
  for (const unsigned int axes : { 2u, 3u })
  {
    const auto filter = itk::SummedAreaTableImageFilter<Image3>::New();
    filter->SetInput(image);
    filter->SetSummedAxes(axes);
    filter->Update();
    ExpectDefinition(*filter, axes);
    filter->GetOutput()->SetRequestedRegion(MakeRegion<Image3>({ 1, 7, 3 }, { 3, 2, 2 }));
    filter->Update();
    ExpectDefinition(*filter, axes);
  }
  using Image2 = itk::Image<float, 2>;
  const auto flat = MakeRandomImage<Image2>(MakeRegion<Image2>({ 3, -4 }, { 40, 37 }), 2, 0, 1000);
  for (itk::ImageRegionIterator<Image2> it(flat, flat->GetBufferedRegion()); !it.IsAtEnd(); ++it)
  {
    it.Set(std::floor(it.Get())); // whole numbers: sums are exact in any order
  }
  const auto filter = itk::SummedAreaTableImageFilter<Image2>::New();
  filter->SetInput(flat);
  filter->Update();
  ExpectDefinition(*filter, 2);
}

template <typename TImage>
void
ExpectStreamingReadsOnce(const typename TImage::RegionType & region)
{
  const auto image = MakeRandomImage<TImage>(region, 7, 0, 1000);
  using Filter = itk::SummedAreaTableImageFilter<TImage>;
  const auto whole = Filter::New();
  whole->SetInput(image);
  whole->Update();
  const auto counting = CountingFilter<TImage>::New();
  counting->SetInput(image);
  const auto filter = Filter::New();
  filter->SetInput(counting->GetOutput());
  const auto streaming =
    itk::StreamingImageFilter<typename Filter::OutputImageType, typename Filter::OutputImageType>::New();
  streaming->SetInput(filter->GetOutput());
  streaming->SetNumberOfStreamDivisions(7);
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(whole->GetOutput(), streaming->GetOutput(), region), 0u);
  EXPECT_EQ(counting->voxels, region.GetNumberOfPixels());

  // Other voxels, and then other parameters: what was kept from the pieces before must not be used.
  for (itk::ImageRegionIterator<TImage> it(image, region); !it.IsAtEnd(); ++it)
  {
    it.Set(it.Get() + 1);
  }
  image->Modified();
  whole->Update();
  streaming->Update();
  EXPECT_EQ(CountDifferentVoxels(whole->GetOutput(), streaming->GetOutput(), region), 0u);
  typename TImage::RegionType upper = region;
  const unsigned int          last = TImage::ImageDimension - 1;
  upper.SetSize(last, region.GetSize(last) / 2);
  filter->GetOutput()->SetRequestedRegion(upper);
  filter->Update();
  filter->SquaresOn();
  whole->SquaresOn();
  whole->Update();
  upper.SetIndex(last, region.GetIndex(last) + static_cast<itk::IndexValueType>(region.GetSize(last) / 2));
  filter->GetOutput()->SetRequestedRegion(upper);
  filter->Update();
  EXPECT_EQ(CountDifferentVoxels(whole->GetOutput(), filter->GetOutput(), upper), 0u);
}

TEST(SummedAreaTableImageFilter, StreamedReadsEachVoxelOnce)
{
  using Image2 = itk::Image<float, 2>;
  using Image3 = itk::Image<float, 3>;
  ExpectStreamingReadsOnce<Image2>(MakeRegion<Image2>({ -3, 8 }, { 150, 331 }));
  ExpectStreamingReadsOnce<Image3>(MakeRegion<Image3>({ -3, 8, 2 }, { 40, 33, 20 }));
}

TEST(SummedAreaTableImageFilter, NamesBadParametersAndPrintsGoodOnes)
{
  using Image2 = itk::Image<unsigned char, 2>;
  const auto image = MakeRandomImage<Image2>(MakeRegion<Image2>({ 0, 0 }, { 4105, 4105 }), 3, 0, 2);
  const auto narrow = itk::SummedAreaTableImageFilter<Image2, itk::Image<unsigned int, 2>>::New();
  narrow->SetInput(image);
  try
  {
    narrow->Update();
    FAIL() << "the overflow was not noticed";
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.GetDescription()).find("may reach"), std::string::npos) << error;
  }
  const auto filter = itk::SummedAreaTableImageFilter<Image2>::New();
  filter->SetInput(image);
  filter->SetSummedAxes(3);
  try
  {
    filter->Update();
    FAIL() << "SummedAxes 3 in 2-D was not noticed";
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.GetDescription()).find("SummedAxes: 3"), std::string::npos) << error;
  }
  filter->SetSummedAxes(2);
  filter->ModularOn();
  std::ostringstream text;
  filter->Print(text);
  EXPECT_NE(text.str().find("SummedAxes: 2"), std::string::npos);
  EXPECT_NE(text.str().find("Modular: On"), std::string::npos);
}

TEST(SummedAreaTableImageFilter, TheMethodReachesTheDevices)
{
  using Image2 = itk::Image<float, 2>;
  const auto filter = itk::SummedAreaTableImageFilter<Image2>::New();
  filter->SetInput(MakeRandomImage<Image2>(MakeRegion<Image2>({ 0, 0 }, { 20, 10 }), 3, 0, 2));
  filter->UpdateOutputInformation();
  const auto methodOf = [&] {
    const auto operation = filter->GetOperation(filter->MakeFilterImage());
    return static_cast<const chunkwise::SummedAreaTableOperation &>(*operation).method;
  };
  EXPECT_EQ(methodOf(), chunkwise::TableMethod::SinglePass);
  filter->SetMethod(itk::SummedAreaTableEnums::Method::Blocks);
  EXPECT_EQ(methodOf(), chunkwise::TableMethod::Blocks);
  std::ostringstream text;
  filter->Print(text);
  EXPECT_NE(text.str().find("Method: itk::SummedAreaTableEnums::Method::Blocks"), std::string::npos);
}

} // namespace SummedAreaTableImageFilterTest
