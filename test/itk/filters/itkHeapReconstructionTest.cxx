/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkHeapClearBorderImageFilter.h"
#include "itkHeapClosingByReconstructionImageFilter.h"
#include "itkHeapFillholeImageFilter.h"
#include "itkHeapGrindPeakImageFilter.h"
#include "itkHeapHConcaveImageFilter.h"
#include "itkHeapHConvexImageFilter.h"
#include "itkHeapHMaximaImageFilter.h"
#include "itkHeapHMinimaImageFilter.h"
#include "itkHeapOpeningByReconstructionImageFilter.h"
#include "itkHeapReconstructionByDilationImageFilter.h"
#include "itkHeapReconstructionByErosionImageFilter.h"
#include "itkHeapRegionalMaximaImageFilter.h"
#include "itkHeapRegionalMinimaImageFilter.h"

#include "itkChunkwiseTestImages.h"
#include "itkClosingByReconstructionImageFilter.h"
#include "itkFlatStructuringElement.h"
#include "itkGrayscaleFillholeImageFilter.h"
#include "itkGrayscaleGrindPeakImageFilter.h"
#include "itkHConcaveImageFilter.h"
#include "itkHConvexImageFilter.h"
#include "itkHMaximaImageFilter.h"
#include "itkHMinimaImageFilter.h"
#include "itkOpeningByReconstructionImageFilter.h"
#include "itkReconstructionByDilationImageFilter.h"
#include "itkReconstructionByErosionImageFilter.h"
#include "itkRegionalMaximaImageFilter.h"
#include "itkRegionalMinimaImageFilter.h"
#include "itkStreamingImageFilter.h"
#include "itkSubtractImageFilter.h"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace HeapReconstructionTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using chunkwisetest::MessageOf;

using Short3 = itk::Image<short, 3>;
using Byte2 = itk::Image<unsigned char, 2>;
using Float3 = itk::Image<float, 3>;
using Kernel3 = itk::FlatStructuringElement<3>;

/** Few levels and an index that does not begin at 0. */
template <typename TImage>
typename TImage::Pointer
MakeImage(unsigned int seed)
{
  constexpr bool is2 = TImage::ImageDimension == 2;
  const auto     image = MakeRandomImage<TImage>(
    is2 ? MakeRegion<TImage>({ -4, 7 }, { 41, 33 }) : MakeRegion<TImage>({ 3, -5, 2 }, { 23, 17, 13 }), seed, 0, 30);
  itk::ImageRegionIterator<TImage> it(image, image->GetLargestPossibleRegion());
  for (; !it.IsAtEnd(); ++it)
  {
    // Whole numbers: ITK takes floats for equal that are close.
    it.Set(static_cast<typename TImage::PixelType>(static_cast<int>(it.Get())));
  }
  return image;
}

template <typename TOurs, typename TItk>
struct Pair
{
  using Ours = TOurs;
  using Itk = TItk;
};

/** Filters of one image and a height, or of one image alone. */
template <typename TPair>
class HeapReconstructionOfOneImage : public ::testing::Test
{};

using OneImagePairs =
  ::testing::Types<Pair<itk::HeapHMaximaImageFilter<Short3>, itk::HMaximaImageFilter<Short3, Short3>>,
                   Pair<itk::HeapHMaximaImageFilter<Byte2>, itk::HMaximaImageFilter<Byte2, Byte2>>,
                   Pair<itk::HeapHMinimaImageFilter<Float3>, itk::HMinimaImageFilter<Float3, Float3>>,
                   Pair<itk::HeapHConvexImageFilter<Byte2>, itk::HConvexImageFilter<Byte2, Byte2>>,
                   Pair<itk::HeapHConcaveImageFilter<Short3>, itk::HConcaveImageFilter<Short3, Short3>>,
                   Pair<itk::HeapFillholeImageFilter<Byte2>, itk::GrayscaleFillholeImageFilter<Byte2, Byte2>>,
                   Pair<itk::HeapFillholeImageFilter<Float3>, itk::GrayscaleFillholeImageFilter<Float3, Float3>>,
                   Pair<itk::HeapGrindPeakImageFilter<Short3>, itk::GrayscaleGrindPeakImageFilter<Short3, Short3>>,
                   Pair<itk::HeapRegionalMaximaImageFilter<Byte2>, itk::RegionalMaximaImageFilter<Byte2, Byte2>>,
                   Pair<itk::HeapRegionalMaximaImageFilter<Float3>, itk::RegionalMaximaImageFilter<Float3, Float3>>,
                   Pair<itk::HeapRegionalMinimaImageFilter<Short3>, itk::RegionalMinimaImageFilter<Short3, Short3>>>;
TYPED_TEST_SUITE(HeapReconstructionOfOneImage, OneImagePairs);

template <typename TFilter>
auto
SetHeightOf(TFilter & filter, int height) -> decltype(filter.SetHeight(1))
{
  filter.SetHeight(static_cast<typename TFilter::InputImageType::PixelType>(height));
}
template <typename TFilter>
void
SetHeightOf(TFilter &, double)
{}

TYPED_TEST(HeapReconstructionOfOneImage, IsThatOfItk)
{
  using Image = typename TypeParam::Ours::InputImageType;
  for (const bool full : { false, true })
  {
    const auto image = MakeImage<Image>(full ? 11 : 12);
    const auto ours = TypeParam::Ours::New();
    ours->SetInput(image);
    ours->SetFullyConnected(full);
    SetHeightOf(*ours, 5);
    ours->Update();
    const auto itk = TypeParam::Itk::New();
    itk->SetInput(image);
    itk->SetFullyConnected(full);
    SetHeightOf(*itk, 5);
    itk->Update();
    EXPECT_EQ(CountDifferentVoxels(ours->GetOutput(), itk->GetOutput(), ours->GetOutput()->GetLargestPossibleRegion()),
              0u)
      << (full ? "fully connected" : "faces");
    EXPECT_EQ(ours->GetOutput()->GetSpacing(), image->GetSpacing());
    EXPECT_EQ(ours->GetOutput()->GetDirection(), image->GetDirection());
  }
}

template <template <typename, typename> class TOurs, template <typename, typename> class TItk>
void
CompareWithMarker(bool erosion)
{
  for (const bool full : { false, true })
  {
    const auto                       mask = MakeImage<Short3>(21);
    const auto                       marker = MakeImage<Short3>(22);
    itk::ImageRegionIterator<Short3> it(marker, marker->GetLargestPossibleRegion());
    itk::ImageRegionIterator<Short3> limit(mask, mask->GetLargestPossibleRegion());
    for (int i = 0; !it.IsAtEnd(); ++it, ++limit, ++i)
    {
      // A few sources; ITK wants no marker beyond the mask.
      const short value = i % 97 ? (erosion ? 40 : -10) : it.Get();
      it.Set(erosion ? std::max(value, limit.Get()) : std::min(value, limit.Get()));
    }
    const auto ours = TOurs<Short3, Short3>::New();
    ours->SetMarkerImage(marker);
    ours->SetMaskImage(mask);
    ours->SetFullyConnected(full);
    ours->StrictOn();
    ours->Update();
    const auto itk = TItk<Short3, Short3>::New();
    itk->SetMarkerImage(marker);
    itk->SetMaskImage(mask);
    itk->SetFullyConnected(full);
    itk->Update();
    EXPECT_EQ(CountDifferentVoxels(ours->GetOutput(), itk->GetOutput(), ours->GetOutput()->GetLargestPossibleRegion()),
              0u);
  }
}

TEST(HeapReconstruction, ByDilationAndErosionIsThatOfItk)
{
  CompareWithMarker<itk::HeapReconstructionByDilationImageFilter, itk::ReconstructionByDilationImageFilter>(false);
  CompareWithMarker<itk::HeapReconstructionByErosionImageFilter, itk::ReconstructionByErosionImageFilter>(true);
}

template <typename TOurs, typename TItk>
void
CompareMorphology()
{
  // Values above 0: beyond the edge ITK's steps see one that does not count.
  const auto image = MakeImage<Short3>(31);
  for (const bool preserve : { false, true })
  {
    const auto ours = TOurs::New();
    ours->SetInput(image);
    ours->SetKernel(Kernel3::Ball({ { 1, 2, 1 } }));
    ours->SetPreserveIntensities(preserve);
    ours->FullyConnectedOn();
    ours->Update();
    const auto itk = TItk::New();
    itk->SetInput(image);
    itk->SetKernel(Kernel3::Ball({ { 1, 2, 1 } }));
    itk->SetPreserveIntensities(preserve);
    itk->SetFullyConnected(true);
    itk->Update();
    EXPECT_EQ(CountDifferentVoxels(ours->GetOutput(), itk->GetOutput(), ours->GetOutput()->GetLargestPossibleRegion()),
              0u)
      << preserve;
  }
}

TEST(HeapReconstruction, OpeningAndClosingAreThoseOfItk)
{
  CompareMorphology<itk::HeapOpeningByReconstructionImageFilter<Short3>,
                    itk::OpeningByReconstructionImageFilter<Short3, Short3, Kernel3>>();
  CompareMorphology<itk::HeapClosingByReconstructionImageFilter<Short3>,
                    itk::ClosingByReconstructionImageFilter<Short3, Short3, Kernel3>>();
}

TEST(HeapReconstruction, ClearBorderIsWhatGrindPeakLeaves)
{
  const auto image = MakeImage<Short3>(41);
  const auto ground = itk::HeapGrindPeakImageFilter<Short3>::New();
  ground->SetInput(image);
  const auto difference = itk::SubtractImageFilter<Short3>::New();
  difference->SetInput1(image);
  difference->SetInput2(ground->GetOutput());
  difference->Update();
  const auto clear = itk::HeapClearBorderImageFilter<Short3>::New();
  clear->SetInput(image);
  clear->Update();
  EXPECT_EQ(
    CountDifferentVoxels(clear->GetOutput(), difference->GetOutput(), clear->GetOutput()->GetLargestPossibleRegion()),
    0u);
}

TEST(HeapReconstruction, APartOfTheOutputIsComputedFromTheWholeImage)
{
  const auto image = MakeImage<Short3>(51);
  const auto whole = itk::HeapFillholeImageFilter<Short3>::New();
  whole->SetInput(image);
  whole->Update();
  const auto again = itk::HeapFillholeImageFilter<Short3>::New();
  again->SetInput(image);
  const auto streamed = itk::StreamingImageFilter<Short3, Short3>::New();
  streamed->SetInput(again->GetOutput());
  streamed->SetNumberOfStreamDivisions(4);
  streamed->Update();
  EXPECT_EQ(
    CountDifferentVoxels(whole->GetOutput(), streamed->GetOutput(), whole->GetOutput()->GetLargestPossibleRegion()),
    0u);
}

TEST(HeapReconstruction, SlicesAreIndependentWhereAsked)
{
  const auto image = MakeImage<Short3>(61);
  const auto filter = itk::HeapHMaximaImageFilter<Short3>::New();
  filter->SetInput(image);
  filter->SetHeight(7);
  filter->SetSpatialDimension(2);
  auto slice = image->GetLargestPossibleRegion();
  slice.SetIndex(2, 5);
  slice.SetSize(2, 1);
  filter->GetOutput()->SetRequestedRegion(slice);
  filter->Update();
  EXPECT_EQ(filter->GetOutput()->GetBufferedRegion(), slice);

  const auto alone = Short3::New();
  alone->SetRegions(slice);
  alone->Allocate();
  itk::ImageRegionConstIterator<Short3> from(image, slice);
  itk::ImageRegionIterator<Short3>      to(alone, slice);
  for (; !from.IsAtEnd(); ++from, ++to)
  {
    to.Set(from.Get());
  }
  const auto expected = itk::HeapHMaximaImageFilter<Short3>::New();
  expected->SetInput(alone);
  expected->SetHeight(7);
  expected->Update();
  itk::ImageRegionConstIterator<Short3> a(filter->GetOutput(), slice);
  itk::ImageRegionConstIterator<Short3> b(expected->GetOutput(), slice);
  for (; !a.IsAtEnd(); ++a, ++b)
  {
    ASSERT_EQ(a.Get(), b.Get());
  }
}

TEST(HeapReconstruction, FlatImagesAreExtremaAsAsked)
{
  const auto image = Byte2::New();
  image->SetRegions(MakeRegion<Byte2>({ 0, 0 }, { 5, 4 }));
  image->Allocate();
  image->FillBuffer(0);
  const auto maxima = itk::HeapRegionalMaximaImageFilter<Byte2>::New();
  maxima->SetInput(image);
  maxima->SetForegroundValue(9);
  maxima->SetBackgroundValue(4);
  maxima->Update();
  EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 2, 2 } }), 9);
  maxima->FlatIsMaximaOff();
  maxima->Update();
  EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 2, 2 } }), 4);
}

TEST(HeapReconstruction, FlatSlicesAreExtremaAsAsked)
{
  const auto image = Short3::New();
  image->SetRegions(MakeRegion<Short3>({ 0, 0, 0 }, { 5, 4, 3 }));
  image->Allocate();
  image->FillBuffer(7);
  image->SetPixel({ { 1, 1, 0 } }, 8);
  image->SetPixel({ { 1, 1, 2 } }, 6);
  const auto maxima = itk::HeapRegionalMaximaImageFilter<Short3>::New();
  maxima->SetInput(image);
  maxima->SetSpatialDimension(2);
  maxima->SetForegroundValue(9);
  maxima->SetBackgroundValue(4);
  for (const bool is : { true, false })
  {
    maxima->SetFlatIsMaxima(is);
    maxima->Update();
    EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 1, 1, 0 } }), 9);
    EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 2, 2, 0 } }), 4);
    EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 2, 2, 1 } }), is ? 9 : 4) << "flat";
    EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 1, 1, 2 } }), 4);
    EXPECT_EQ(maxima->GetOutput()->GetPixel({ { 2, 2, 2 } }), 9) << "a plateau around a lower voxel";
  }
}

TEST(HeapReconstruction, BadInputIsNamed)
{
  const auto mask = MakeImage<Short3>(71);
  const auto marker = MakeImage<Short3>(72);
  const auto filter = itk::HeapReconstructionByDilationImageFilter<Short3>::New();
  filter->SetMarkerImage(marker);
  EXPECT_NE(MessageOf(*filter), "no error") << "there is no mask";
  filter->SetMaskImage(mask);
  EXPECT_EQ(MessageOf(*filter), "no error");
  filter->StrictOn();
  EXPECT_NE(MessageOf(*filter).find("above the mask"), std::string::npos);
  filter->StrictOff();
  filter->SetSpatialDimension(4);
  EXPECT_NE(MessageOf(*filter).find("SpatialDimension: 4"), std::string::npos);
  filter->SetSpatialDimension(3);
  filter->SetHeapNodeSize(257);
  EXPECT_NE(MessageOf(*filter).find("HeapNodeSize: 257"), std::string::npos);
  filter->SetHeapNodeSize(256);
  EXPECT_EQ(MessageOf(*filter), "no error");
  const auto larger = Short3::New();
  larger->CopyInformation(mask);
  larger->SetRegions(MakeRegion<Short3>({ 3, -5, 2 }, { 24, 17, 13 }));
  larger->Allocate();
  larger->FillBuffer(0);
  filter->SetMarkerImage(larger);
  EXPECT_NE(MessageOf(*filter).find("MarkerImage"), std::string::npos);

  const auto domes = itk::HeapHConvexImageFilter<Short3>::New();
  domes->SetInput(mask);
  domes->SetHeight(-1);
  EXPECT_NE(MessageOf(*domes).find("Height: -1"), std::string::npos);
}

TEST(HeapReconstruction, ABadStructuringElementIsNamed)
{
  const auto opening = itk::HeapOpeningByReconstructionImageFilter<Short3>::New();
  opening->SetInput(MakeImage<Short3>(73));
  opening->SetKernel(Kernel3::Ball({ { 1, 1, 1 } }));
  opening->SetSpatialDimension(2);
  EXPECT_NE(MessageOf(*opening).find("HeapOpeningByReconstructionImageFilter"), std::string::npos)
    << "the element extends along an axis that is not spatial";
  opening->SetSpatialDimension(3);
  EXPECT_EQ(MessageOf(*opening), "no error");
}

TEST(HeapReconstruction, OpeningTakesOneRadiusAndKeepsItsTime)
{
  const auto opening = itk::HeapOpeningByReconstructionImageFilter<Short3>::New();
  opening->SetRadius(2);
  EXPECT_EQ(opening->GetRadius(), (Short3::SizeType{ { 2, 2, 2 } }));
  auto modified = opening->GetMTime();
  opening->SetRadius(2);
  opening->SetRadius(Short3::SizeType{ { 2, 2, 2 } });
  opening->SetPreserveIntensities(false);
  EXPECT_EQ(opening->GetMTime(), modified);
  opening->SetKernel(Kernel3::Ball({ { 2, 2, 2 } }));
  EXPECT_GT(opening->GetMTime(), modified);
  modified = opening->GetMTime();
  opening->SetKernel(Kernel3::Ball({ { 2, 2, 2 } }));
  EXPECT_EQ(opening->GetMTime(), modified);
  opening->SetRadius(2);
  EXPECT_GT(opening->GetMTime(), modified) << "a box again";
}

TEST(HeapReconstruction, OpeningCountsItsImagesAndReportsEachStep)
{
  const auto image = MakeImage<Short3>(74);
  const auto opening = itk::HeapOpeningByReconstructionImageFilter<Short3>::New();
  opening->SetInput(image);
  opening->PreserveIntensitiesOn();
  opening->SetBackend(itk::ChunkwiseEnums::Backend::CPU);
  std::set<float> seen;
  opening->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) { seen.insert(opening->GetProgress()); });
  opening->Update();
  EXPECT_GE(seen.size(), 3u);
  const auto bytes = image->GetLargestPossibleRegion().GetNumberOfPixels() * sizeof(short);
  EXPECT_GE(opening->GetLastReport().peakHost, 2 * bytes);
  opening->SetHostMemoryBudget(bytes);
  EXPECT_NE(MessageOf(*opening).find("opening by reconstruction needs"), std::string::npos);
}

TEST(HeapReconstruction, AbortLeavesTheFilterUsable)
{
  const auto image = MakeImage<Short3>(81);
  const auto filter = itk::HeapHMinimaImageFilter<Short3>::New();
  filter->SetInput(image);
  bool       abort = true;
  const auto tag = filter->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) {
    if (abort)
    {
      filter->AbortGenerateDataOn();
    }
  });
  EXPECT_THROW(filter->Update(), itk::ProcessAborted);
  abort = false;
  filter->AbortGenerateDataOff();
  filter->Update();
  filter->RemoveObserver(tag);
  EXPECT_EQ(filter->GetProgress(), 1.0f);
}

TEST(HeapReconstruction, PrintsItsParameters)
{
  std::ostringstream stream;
  const auto         domes = itk::HeapHConvexImageFilter<Byte2>::New();
  domes->SetHeight(65);
  domes->FullyConnectedOn();
  domes->Print(stream);
  itk::HeapReconstructionByErosionImageFilter<Byte2>::New()->Print(stream);
  const auto cluster = itk::HeapRegionalMinimaImageFilter<Byte2>::New();
  cluster->SetMethod(itk::HeapReconstructionEnums::Method::ParallelHeapCluster);
  cluster->SetNumberOfHeaps(3);
  cluster->SetHeapNodeSize(7);
  cluster->Print(stream);
  const auto opening = itk::HeapOpeningByReconstructionImageFilter<Byte2>::New();
  opening->SetKernel(itk::FlatStructuringElement<2>::Cross({ { 2, 1 } }));
  opening->Print(stream);
  for (const char * const line : { "Height: 65",
                                   "FullyConnected: On",
                                   "SpatialDimension: 2",
                                   "Method: itk::HeapReconstructionEnums::Method::Auto",
                                   "Method: itk::HeapReconstructionEnums::Method::ParallelHeapCluster",
                                   "NumberOfHeaps: 3",
                                   "HeapNodeSize: 7",
                                   "Strict: Off",
                                   "ForegroundValue: 255",
                                   "FlatIsExtremum: On",
                                   "Radius: [2, 1]",
                                   "Kernel: 7 of 15 voxels",
                                   "PreserveIntensities: Off" })
  {
    EXPECT_NE(stream.str().find(line), std::string::npos) << line;
  }
}

} // namespace HeapReconstructionTest
