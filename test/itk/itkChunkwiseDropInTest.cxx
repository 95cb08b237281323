/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Objects that ITK's factory makes in the place of ITK's own filters, against these.
#include "itkBinaryBallStructuringElement.h"
#include "itkBoxMeanImageFilter.h"
#include "itkChunkwiseDropIn.h"
#include "itkChunkwiseDropInFactory.h"
#include "itkChunkwiseTestImages.h"
#include "itkChunkwiseTestWarnings.h"
#include "itkCommand.h"
#include "itkFlatStructuringElement.h"
#include "itkGrayscaleDilateImageFilter.h"
#include "itkGrayscaleErodeImageFilter.h"
#include "itkGrayscaleMorphologicalClosingImageFilter.h"
#include "itkGrayscaleMorphologicalOpeningImageFilter.h"
#include "itkHMaximaImageFilter.h"
#include "itkMeanImageFilter.h"
#include "itkMedianImageFilter.h"
#include "itkMorphologicalGradientImageFilter.h"
#include "itkRankImageFilter.h"
#include "itkReconstructionByDilationImageFilter.h"
#include "itkReconstructionByErosionImageFilter.h"
#include "itkRegionalMaximaImageFilter.h"
#include "itkRegionalMinimaImageFilter.h"

#include "gtest/gtest.h"

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <thread>

namespace
{

using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Byte2 = itk::Image<unsigned char, 2>;
using Short3 = itk::Image<short, 3>;
using Float3 = itk::Image<float, 3>;
using Settings = itk::ChunkwiseDropInSettings;

/** ITK's own code, whatever is registered. */
template <typename TFilter>
class Plain : public TFilter
{
public:
  using Self = Plain;
  using Pointer = itk::SmartPointer<Self>;
  itkFactorylessNewMacro(Self);
};

class DropIn : public ::testing::Test
{
protected:
  void
  SetUp() override
  {
    ::setenv("CHUNKWISE_DROP_IN_SMALLEST", "0", 1);
    ::setenv("CHUNKWISE_DROP_IN", m_Level, 1);
    m_Factory = itk::ChunkwiseDropInFactory::New();
    itk::ObjectFactoryBase::RegisterFactory(m_Factory);
  }
  void
  TearDown() override
  {
    itk::ObjectFactoryBase::UnRegisterFactory(m_Factory);
    for (const char * name : { "", "_EXCEPT", "_REPORT", "_BACKEND", "_SMALLEST" })
    {
      ::unsetenv((std::string("CHUNKWISE_DROP_IN") + name).c_str());
    }
    Settings::Set(Settings());
    chunkwise::Manager::GetGlobal().SetBudgets(chunkwise::Budgets());
  }

  const char *                         m_Level{ "exact" };
  itk::ChunkwiseDropInFactory::Pointer m_Factory;
  std::mt19937                         m_Random{ 7 };
};

class DropInFast : public DropIn
{
protected:
  DropInFast() { m_Level = "fast"; }
};

template <typename TFilter>
const itk::ChunkwiseStandIn &
StandInOf(const TFilter & filter)
{
  const auto * const standIn = dynamic_cast<const itk::ChunkwiseStandIn *>(&filter);
  if (!standIn)
  {
    throw std::runtime_error("not a stand-in");
  }
  return *standIn;
}

/** A few grey levels, so that there are plateaus, or noise over all of the type's values. */
template <typename TImage>
typename TImage::Pointer
MakeImage(const typename TImage::RegionType & region, std::mt19937 & random)
{
  using Limits = std::numeric_limits<typename TImage::PixelType>;
  switch (random() % 3)
  {
    case 0:
      return MakeRandomImage<TImage>(region, random(), 3, 9);
    case 1:
      return MakeRandomImage<TImage>(region, random(), 20, 100);
    default:
      return std::is_integral<typename TImage::PixelType>::value
               ? MakeRandomImage<TImage>(region, random(), Limits::lowest(), Limits::max())
               : MakeRandomImage<TImage>(region, random(), -1000, 1000);
  }
}

template <typename TImage>
typename TImage::RegionType
RandomRegion(std::mt19937 & random)
{
  typename TImage::RegionType region;
  for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
  {
    region.SetIndex(a, static_cast<itk::IndexValueType>(random() % 9) - 4);
    region.SetSize(a, 1 + random() % (TImage::ImageDimension == 2 ? 40 : 17));
  }
  return region;
}

/** A radius that may be larger than a short side of the image. */
template <typename TImage>
typename TImage::SizeType
RandomRadius(std::mt19937 & random, unsigned int largest = 4)
{
  typename TImage::SizeType radius;
  for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
  {
    radius[a] = random() % (largest + 1);
  }
  return radius;
}

/** Runs both filters for the same random part of the output. The reason why ITK's code ran, if it did. */
template <typename TFilter, typename TConfigure>
std::string
Compare(std::mt19937 & random, const TConfigure & configure, double tolerance = 0.0, bool parts = true)
{
  using Output = typename TFilter::OutputImageType;
  const auto plain = Plain<TFilter>::New();
  const auto ours = TFilter::New();
  const auto standIn = dynamic_cast<itk::ChunkwiseStandIn *>(ours.GetPointer());
  EXPECT_NE(standIn, nullptr);
  const unsigned int seed = random();
  for (TFilter * const filter : { static_cast<TFilter *>(plain.GetPointer()), ours.GetPointer() })
  {
    std::mt19937 same(seed);
    configure(*filter, same);
    filter->UpdateOutputInformation();
    auto region = filter->GetOutput()->GetLargestPossibleRegion();
    if (parts && same() % 2 == 0)
    {
      region = chunkwisetest::RandomRegionInside(region, same);
    }
    filter->GetOutput()->SetRequestedRegion(region);
    filter->Update();
  }
  EXPECT_EQ(ours->GetOutput()->GetBufferedRegion(), plain->GetOutput()->GetBufferedRegion());
  const auto region = plain->GetOutput()->GetRequestedRegion();
  EXPECT_EQ(ours->GetOutput()->GetRequestedRegion(), region);
  itk::ImageRegionConstIteratorWithIndex<Output> expected(plain->GetOutput(), region);
  itk::ImageRegionConstIteratorWithIndex<Output> actual(ours->GetOutput(), region);
  for (; !expected.IsAtEnd(); ++expected, ++actual)
  {
    const auto a = actual.Get();
    const auto b = expected.Get();
    const bool same = tolerance > 0 ? std::fabs(static_cast<double>(a) - static_cast<double>(b)) <= tolerance
                                    : std::memcmp(&a, &b, sizeof(a)) == 0;
    if (!same)
    {
      ADD_FAILURE() << ours->GetNameOfClass() << " at " << expected.GetIndex() << " of the part at "
                    << region.GetIndex() << " of size " << region.GetSize() << " of "
                    << plain->GetOutput()->GetLargestPossibleRegion().GetIndex()
                    << plain->GetOutput()->GetLargestPossibleRegion().GetSize() << ": " << +a << " instead of ITK's "
                    << +b << "\n"
                    << *ours;
      break;
    }
  }
  EXPECT_EQ(standIn->GetBackendUsed() == "itk", !standIn->GetReasonNotServed().empty());
  return standIn->GetReasonNotServed();
}

/** Some elements; those of `lines` ITK may decompose. */
template <typename TKernel, typename TImage>
TKernel
MakeFlat(std::mt19937 & random)
{
  auto radius = RandomRadius<TImage>(random, 3);
  switch (random() % 4)
  {
    case 0:
      // ITK's decompositions of flat boxes read beyond their memory.
      for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
      {
        radius[a] = std::max<itk::SizeValueType>(radius[a], 1);
      }
      return TKernel::Box(radius);
    case 1:
      return TKernel::Cross(radius);
    case 2:
    {
      // Any voxels, not symmetric.
      auto                      image = itk::Image<bool, TImage::ImageDimension>::New();
      typename TImage::SizeType size;
      for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
      {
        size[a] = 2 * radius[a] + 1;
      }
      image->SetRegions(size);
      image->Allocate();
      itk::ImageRegionIterator<itk::Image<bool, TImage::ImageDimension>> it(image, image->GetBufferedRegion());
      for (; !it.IsAtEnd(); ++it)
      {
        it.Set(random() % 2 == 0);
      }
      typename TImage::IndexType center;
      for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
      {
        center[a] = static_cast<itk::IndexValueType>(radius[a]);
      }
      image->SetPixel(center, random() % 4 != 0);
      image->GetBufferPointer()[0] = true;
      return TKernel::FromImage(image);
    }
    default:
      return TKernel::Ball(radius);
  }
}

template <typename TFilter>
void
SetAnyAlgorithm(TFilter & filter, std::mt19937 & random)
{
  using Algorithm = typename TFilter::AlgorithmEnum;
  const Algorithm algorithms[] = { Algorithm::BASIC, Algorithm::HISTO, Algorithm::ANCHOR, Algorithm::VHGW };
  const Algorithm algorithm = algorithms[random() % 4];
  const bool      lines = algorithm == Algorithm::ANCHOR || algorithm == Algorithm::VHGW;
  if (!lines || filter.GetKernel().GetDecomposable())
  {
    filter.SetAlgorithm(algorithm);
  }
}

TEST_F(DropIn, EveryOverrideMakesAStandInOfTheClassItReplaces)
{
  const auto names = m_Factory->GetClassOverrideNames();
  const auto replacements = m_Factory->GetClassOverrideWithNames();
  const auto descriptions = m_Factory->GetClassOverrideDescriptions();
  ASSERT_GT(names.size(), 50U);
  auto replacement = replacements.begin();
  auto description = descriptions.begin();
  for (const std::string & name : names)
  {
    const auto object = itk::ObjectFactoryBase::CreateInstance(name.c_str());
    ASSERT_NE(object.GetPointer(), nullptr) << name;
    for (const auto & one : { object, object->CreateAnother() })
    {
      EXPECT_NE(dynamic_cast<itk::ChunkwiseStandIn *>(one.GetPointer()), nullptr) << name;
      EXPECT_NE(dynamic_cast<itk::ProcessObject *>(one.GetPointer()), nullptr) << name;
      EXPECT_EQ(one->GetNameOfClass(), *description);
      EXPECT_EQ(typeid(*one).name(), *replacement);
    }
    ++replacement;
    ++description;
  }
}

template <typename TImage>
class DropInOfImages : public DropIn
{};
using Images = ::testing::Types<Byte2, Short3, Float3>;
TYPED_TEST_SUITE(DropInOfImages, Images);

TYPED_TEST(DropInOfImages, MedianAndRankAreThoseOfItk)
{
  using Flat = itk::FlatStructuringElement<TypeParam::ImageDimension>;
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto why =
      Compare<itk::MedianImageFilter<TypeParam, TypeParam>>(this->m_Random, [](auto & filter, auto & random) {
        filter.SetInput(MakeImage<TypeParam>(RandomRegion<TypeParam>(random), random));
        filter.SetRadius(RandomRadius<TypeParam>(random, 3));
      });
    EXPECT_EQ(why, "");
  }
  int served = 0;
  for (int trial = 0; trial < 30; ++trial)
  {
    served += Compare<itk::RankImageFilter<TypeParam, TypeParam, Flat>>(
                this->m_Random,
                [](auto & filter, auto & random) {
                  filter.SetInput(MakeImage<TypeParam>(RandomRegion<TypeParam>(random), random));
                  filter.SetKernel(random() % 6 == 0 ? Flat::Ball(RandomRadius<TypeParam>(random, 2))
                                                     : Flat::Box(RandomRadius<TypeParam>(random, 3)));
                  filter.SetRank(static_cast<float>(random() % 11) / 10.0F);
                }).empty()
                ? 1
                : 0;
  }
  EXPECT_GT(served, 15);
}

TYPED_TEST(DropInOfImages, MeansAreThoseOfItk)
{
  constexpr bool isInteger = std::is_integral<typename TypeParam::PixelType>::value;
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto configure = [](auto & filter, auto & random) {
      filter.SetInput(MakeImage<TypeParam>(RandomRegion<TypeParam>(random), random));
      filter.SetRadius(RandomRadius<TypeParam>(random));
    };
    EXPECT_EQ((Compare<itk::MeanImageFilter<TypeParam, TypeParam>>(this->m_Random, configure)).empty(), isInteger);
    EXPECT_EQ((Compare<itk::BoxMeanImageFilter<TypeParam, TypeParam>>(this->m_Random, configure)).empty(), isInteger);
  }
}

TYPED_TEST(DropInOfImages, DilationAndErosionAreThoseOfItk)
{
  using Flat = itk::FlatStructuringElement<TypeParam::ImageDimension>;
  int served = 0;
  for (int trial = 0; trial < 30; ++trial)
  {
    const auto configure = [](auto & filter, auto & random) {
      filter.SetInput(MakeImage<TypeParam>(RandomRegion<TypeParam>(random), random));
      filter.SetKernel(MakeFlat<Flat, TypeParam>(random));
      SetAnyAlgorithm(filter, random);
      if (random() % 4 == 0)
      {
        filter.SetBoundary(static_cast<typename TypeParam::PixelType>(random() % 100));
      }
    };
    served += (Compare<itk::GrayscaleDilateImageFilter<TypeParam, TypeParam, Flat>>(this->m_Random, configure)).empty();
    served += (Compare<itk::GrayscaleErodeImageFilter<TypeParam, TypeParam, Flat>>(this->m_Random, configure)).empty();
  }
  EXPECT_GT(served, 40);
}

TYPED_TEST(DropInOfImages, OpeningClosingAndGradientAreThoseOfItk)
{
  using Flat = itk::FlatStructuringElement<TypeParam::ImageDimension>;
  int served = 0;
  for (int trial = 0; trial < 30; ++trial)
  {
    const auto configure = [](auto & filter, auto & random) {
      filter.SetInput(MakeImage<TypeParam>(RandomRegion<TypeParam>(random), random));
      filter.SetKernel(MakeFlat<Flat, TypeParam>(random));
      SetAnyAlgorithm(filter, random);
    };
    const auto withBorder = [&configure](auto & filter, auto & random) {
      configure(filter, random);
      filter.SetSafeBorder(random() % 3 != 0);
    };
    served +=
      (Compare<itk::GrayscaleMorphologicalOpeningImageFilter<TypeParam, TypeParam, Flat>>(this->m_Random, withBorder))
        .empty();
    served +=
      (Compare<itk::GrayscaleMorphologicalClosingImageFilter<TypeParam, TypeParam, Flat>>(this->m_Random, withBorder))
        .empty();
    (Compare<itk::MorphologicalGradientImageFilter<TypeParam, TypeParam, Flat>>(this->m_Random, configure));
  }
  EXPECT_GT(served, 25);
}

TYPED_TEST(DropInOfImages, ExtremaAndReconstructionsAreThoseOfItk)
{
  for (int trial = 0; trial < 20; ++trial)
  {
    const auto configure = [](auto & filter, auto & random) {
      filter.SetInput(MakeImage<TypeParam>(RandomRegion<TypeParam>(random), random));
      filter.SetFullyConnected(random() % 2 == 0);
      if (random() % 2 == 0)
      {
        filter.SetForegroundValue(7);
        filter.SetBackgroundValue(2);
      }
    };
    EXPECT_EQ((Compare<itk::RegionalMaximaImageFilter<TypeParam, TypeParam>>(this->m_Random, configure)), "");
    EXPECT_EQ((Compare<itk::RegionalMinimaImageFilter<TypeParam, TypeParam>>(this->m_Random, configure)), "");
  }
  if constexpr (std::is_integral<typename TypeParam::PixelType>::value)
  {
    for (int trial = 0; trial < 20; ++trial)
    {
      const auto configure = [](auto & filter, auto & random, bool byErosion) {
        const auto                          region = RandomRegion<TypeParam>(random);
        const auto                          first = MakeImage<TypeParam>(region, random);
        const auto                          second = MakeImage<TypeParam>(region, random);
        itk::ImageRegionIterator<TypeParam> a(first, region);
        itk::ImageRegionIterator<TypeParam> b(second, region);
        for (; !a.IsAtEnd(); ++a, ++b)
        {
          const auto low = std::min(a.Get(), b.Get());
          const auto high = std::max(a.Get(), b.Get());
          a.Set(byErosion ? high : low);
          b.Set(byErosion ? low : high);
        }
        filter.SetMarkerImage(first);
        filter.SetMaskImage(second);
        filter.SetFullyConnected(random() % 2 == 0);
        filter.SetUseInternalCopy(random() % 2 == 0);
      };
      EXPECT_EQ((Compare<itk::ReconstructionByDilationImageFilter<TypeParam, TypeParam>>(
                  this->m_Random, [&](auto & filter, auto & random) { configure(filter, random, false); })),
                "");
      EXPECT_EQ((Compare<itk::ReconstructionByErosionImageFilter<TypeParam, TypeParam>>(
                  this->m_Random, [&](auto & filter, auto & random) { configure(filter, random, true); })),
                "");
    }
  }
}

} // namespace
