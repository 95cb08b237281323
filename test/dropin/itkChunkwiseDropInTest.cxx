/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Objects that ITK's factory makes in the place of ITK's own filters, against these.
#include "itkBinaryBallStructuringElement.h"
#include "itkBoxMeanImageFilter.h"
#include "itkBoxSigmaImageFilter.h"
#include "itkChunkwiseDropIn.h"
#include "itkChunkwiseDropInFactory.h"
#include "itkChunkwiseTestImages.h"
#include "itkCommand.h"
#include "itkConnectedComponentImageFilter.h"
#include "itkConstantBoundaryCondition.h"
#include "itkConvolutionImageFilter.h"
#include "itkCurvatureAnisotropicDiffusionImageFilter.h"
#include "itkDiscreteGaussianImageFilter.h"
#include "itkFFTConvolutionImageFilter.h"
#include "itkFlatStructuringElement.h"
#include "itkGradientAnisotropicDiffusionImageFilter.h"
#include "itkGradientMagnitudeImageFilter.h"
#include "itkGrayscaleDilateImageFilter.h"
#include "itkGrayscaleErodeImageFilter.h"
#include "itkGrayscaleMorphologicalClosingImageFilter.h"
#include "itkGrayscaleMorphologicalOpeningImageFilter.h"
#include "itkHMaximaImageFilter.h"
#include "itkMeanImageFilter.h"
#include "itkMedianImageFilter.h"
#include "itkMorphologicalGradientImageFilter.h"
#include "itkNoiseImageFilter.h"
#include "itkPeriodicBoundaryCondition.h"
#include "itkRankImageFilter.h"
#include "itkReconstructionByDilationImageFilter.h"
#include "itkReconstructionByErosionImageFilter.h"
#include "itkRegionalMaximaImageFilter.h"
#include "itkRegionalMinimaImageFilter.h"
#include "itkRichardsonLucyDeconvolutionImageFilter.h"
#include "itkSignedMaurerDistanceMapImageFilter.h"

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
  /** Another number makes other trials. */
  std::mt19937 m_Random{ std::getenv("CHUNKWISE_TEST_SEED")
                           ? static_cast<unsigned int>(std::atoi(std::getenv("CHUNKWISE_TEST_SEED")))
                           : 7U };
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
RandomRegion(std::mt19937 & random, unsigned int smallest = 1)
{
  typename TImage::RegionType region;
  for (unsigned int a = 0; a < TImage::ImageDimension; ++a)
  {
    region.SetIndex(a, static_cast<itk::IndexValueType>(random() % 9) - 4);
    region.SetSize(a, smallest + random() % (TImage::ImageDimension == 2 ? 40 : 17));
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
    // Filters' New() does so: CreateInstance counts one reference more.
    object->UnRegister();
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
                },
                0.0,
                trial % 2 == 0)
                  .empty()
                ? 1
                : 0;
  }
  EXPECT_GT(served, 10);
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
      filter.SetInput(MakeImage<TypeParam>(RandomRegion<TypeParam>(random, 3), random));
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
  EXPECT_GT(served, 20);
}

TYPED_TEST(DropInOfImages, OpeningClosingAndGradientAreThoseOfItk)
{
  using Flat = itk::FlatStructuringElement<TypeParam::ImageDimension>;
  int served = 0;
  for (int trial = 0; trial < 30; ++trial)
  {
    const auto configure = [](auto & filter, auto & random) {
      filter.SetInput(MakeImage<TypeParam>(RandomRegion<TypeParam>(random, 3), random));
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
  EXPECT_GT(served, 3);
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


TEST_F(DropIn, ImagesOfDoubleAreThoseOfItk)
{
  using Double3 = itk::Image<double, 3>;
  using Flat = itk::FlatStructuringElement<3>;
  const auto withKernel = [](auto & filter, auto & random) {
    filter.SetInput(MakeImage<Double3>(RandomRegion<Double3>(random), random));
    filter.SetKernel(MakeFlat<Flat, Double3>(random));
    SetAnyAlgorithm(filter, random);
  };
  int served = 0;
  for (int trial = 0; trial < 12; ++trial)
  {
    EXPECT_EQ((Compare<itk::MedianImageFilter<Double3, Double3>>(m_Random,
                                                                 [](auto & filter, auto & random) {
                                                                   filter.SetInput(MakeImage<Double3>(
                                                                     RandomRegion<Double3>(random), random));
                                                                   filter.SetRadius(RandomRadius<Double3>(random, 3));
                                                                 })),
              "");
    // Some kernels are left to ITK; results are compared all the same.
    served += Compare<itk::GrayscaleDilateImageFilter<Double3, Double3, Flat>>(m_Random, withKernel).empty() ? 1 : 0;
    served += Compare<itk::GrayscaleErodeImageFilter<Double3, Double3, Flat>>(m_Random, withKernel).empty() ? 1 : 0;
  }
  EXPECT_GT(served, 3);
}

// The tests below take one type and one size.
Short3::Pointer
MakeVolume(unsigned int seed = 3, unsigned int extent = 24)
{
  return MakeRandomImage<Short3>(MakeRegion<Short3>({ 2, -1, 0 }, { extent, extent + 3, extent - 5 }), seed, 0, 60);
}

using Median = itk::MedianImageFilter<Short3, Short3>;
using Flat3 = itk::FlatStructuringElement<3>;
using Dilate = itk::GrayscaleDilateImageFilter<Short3, Short3, Flat3>;
using Opening = itk::GrayscaleMorphologicalOpeningImageFilter<Short3, Short3, Flat3>;

template <typename TImage>
void
ExpectSame(const TImage & a, const TImage & b)
{
  ASSERT_EQ(a.GetBufferedRegion(), b.GetBufferedRegion());
  EXPECT_EQ(std::memcmp(a.GetBufferPointer(),
                        b.GetBufferPointer(),
                        a.GetBufferedRegion().GetNumberOfPixels() * sizeof(typename TImage::PixelType)),
            0);
}

TEST_F(DropIn, SaysWhyItkRuns)
{
  const auto runOf = [](auto filter) {
    filter->UpdateLargestPossibleRegion();
    return StandInOf(*filter).GetReasonNotServed();
  };
  const auto with = [](const char * name, const std::function<void(Settings &)> & change) {
    Settings settings = Settings::Get();
    change(settings);
    Settings::Set(settings);
    const auto filter = Median::New();
    filter->SetInput(MakeVolume());
    filter->Update();
    Settings::Set(Settings::FromEnvironment());
    EXPECT_EQ(StandInOf(*filter).GetBackendUsed() == "itk", *name != '\0') << name;
    return StandInOf(*filter).GetReasonNotServed();
  };
  EXPECT_EQ(with("", [](Settings &) {}), "");
  EXPECT_EQ(with("off", [](Settings & s) { s.level = Settings::Level::Off; }), "off");
  EXPECT_EQ(with("small", [](Settings & s) { s.smallest = 1 << 20; }), "fewer than 1048576 voxels");
  EXPECT_EQ(with("left out", [](Settings & s) { s.excluded = { "MedianImageFilter" }; }), "left out");
  EXPECT_EQ(with("", [](Settings & s) { s.excluded = { "MeanImageFilter" }; }), "");

  // Filters that need a missing device fall back to ITK's own code, whose result is the same.
  if (!chunkwise::Manager::GetGlobal().GetReasonForNoDevices().empty())
  {
    EXPECT_NE(with("no device", [](Settings & s) { s.backend = chunkwise::BackendChoice::CUDA; }), "");
  }

  const auto floats = itk::MeanImageFilter<Float3, Float3>::New();
  floats->SetInput(MakeRandomImage<Float3>(MakeRegion<Float3>({ 0, 0, 0 }, { 9, 9, 9 }), 1));
  EXPECT_EQ(runOf(floats), "within a tolerance only, which is level fast");

  const auto gradient = itk::MorphologicalGradientImageFilter<Short3, Short3, Flat3>::New();
  gradient->SetInput(MakeVolume());
  gradient->SetKernel(Flat3::Ball(Flat3::RadiusType::Filled(2)));
  EXPECT_EQ(runOf(gradient), "a structuring element other than a box");
  gradient->SetKernel(Flat3::Box(Flat3::RadiusType::Filled(1)));
  EXPECT_EQ(runOf(gradient), "");
  gradient->SetInput(MakeRandomImage<Short3>(MakeRegion<Short3>({ 0, 0, 0 }, { 9, 9, 9 }), 1, -32768, 32767));
  EXPECT_EQ(runOf(gradient), "a result may be beyond its type");

  const auto dilate = Dilate::New();
  dilate->SetInput(MakeVolume());
  dilate->SetKernel(Flat3::Polygon(Flat3::RadiusType::Filled(3), 7));
  EXPECT_EQ(runOf(dilate), "a structuring element in lines");

  const auto opening = Opening::New();
  const auto image = itk::Image<bool, 3>::New();
  image->SetRegions(Short3::SizeType{ { 3, 3, 3 } });
  image->Allocate();
  image->FillBuffer(true);
  image->GetBufferPointer()[0] = false;
  opening->SetInput(MakeVolume());
  opening->SetKernel(Flat3::FromImage(image));
  EXPECT_EQ(runOf(opening), "a structuring element that is not symmetric");
}

TEST_F(DropIn, AMarkerBeyondTheMaskIsTheErrorOfItk)
{
  using Filter = itk::ReconstructionByDilationImageFilter<Short3, Short3>;
  const auto  ours = Filter::New();
  const auto  plain = Plain<Filter>::New();
  std::string texts[2];
  int         i = 0;
  for (Filter * const filter : { ours.GetPointer(), static_cast<Filter *>(plain.GetPointer()) })
  {
    filter->SetMarkerImage(MakeVolume(1));
    filter->SetMaskImage(MakeVolume(2));
    try
    {
      filter->Update();
      ADD_FAILURE() << "no error";
    }
    catch (const itk::ExceptionObject & error)
    {
      texts[i++] = std::string(error.GetDescription()).substr(std::string(error.GetDescription()).find("): "));
    }
  }
  EXPECT_EQ(texts[0], texts[1]);
  // It can be used again.
  ours->SetMarkerImage(ours->GetMaskImage());
  ours->Update();
  EXPECT_EQ(StandInOf(*ours).GetReasonNotServed(), "");
}

TEST_F(DropIn, LeavesInsideOfCompositesAreServed)
{
  const std::string report = ::testing::TempDir() + "/chunkwise-composites.txt";
  std::remove(report.c_str());
  Settings settings = Settings::Get();
  settings.reportFile = report;
  Settings::Set(settings);
  const auto maxima = itk::HMaximaImageFilter<Short3, Short3>::New();
  EXPECT_EQ(dynamic_cast<itk::ChunkwiseStandIn *>(maxima.GetPointer()), nullptr);
  maxima->SetInput(MakeVolume());
  maxima->SetHeight(7);
  maxima->Update();
  std::ifstream file(report);
  std::string   line;
  std::getline(file, line);
  EXPECT_EQ(line.rfind("ReconstructionByDilationImageFilter\tserved\tc", 0), 0U) << line;
  EXPECT_FALSE(std::getline(file, line)) << line;
  std::remove(report.c_str());

  itk::ObjectFactoryBase::UnRegisterFactory(m_Factory);
  const auto plain = itk::HMaximaImageFilter<Short3, Short3>::New();
  plain->SetInput(MakeVolume());
  plain->SetHeight(7);
  plain->Update();
  ExpectSame(*maxima->GetOutput(), *plain->GetOutput());
}

TEST_F(DropIn, ARunIsRepeatedOnlyForWhatChanged)
{
  const auto filter = Median::New();
  filter->SetInput(MakeVolume());
  int        runs = 0;
  const auto counter = itk::CStyleCommand::New();
  counter->SetClientData(&runs);
  counter->SetCallback([](itk::Object *, const itk::EventObject &, void * data) { ++*static_cast<int *>(data); });
  filter->AddObserver(itk::StartEvent(), counter);
  filter->Update();
  filter->Update();
  EXPECT_EQ(runs, 1);
  filter->SetRadius(2);
  filter->Update();
  EXPECT_EQ(runs, 2);
  filter->SetRadius(2);
  filter->Update();
  EXPECT_EQ(runs, 2);
}

TEST_F(DropIn, ProgressRisesToOneAndARunCanBeAborted)
{
  const auto filter = Median::New();
  filter->SetInput(MakeVolume(1, 60));
  filter->SetRadius(2);
  std::vector<float> progress;
  const auto         observer = itk::CStyleCommand::New();
  observer->SetClientData(&progress);
  observer->SetCallback([](itk::Object * object, const itk::EventObject &, void * data) {
    static_cast<std::vector<float> *>(data)->push_back(dynamic_cast<itk::ProcessObject *>(object)->GetProgress());
  });
  const auto tag = filter->AddObserver(itk::ProgressEvent(), observer);
  filter->Update();
  EXPECT_EQ(StandInOf(*filter).GetReasonNotServed(), "");
  ASSERT_FALSE(progress.empty());
  EXPECT_TRUE(std::is_sorted(progress.begin(), progress.end()));
  EXPECT_EQ(progress.back(), 1.0F);
  filter->RemoveObserver(tag);

  const auto abort = itk::CStyleCommand::New();
  abort->SetCallback([](itk::Object * object, const itk::EventObject &, void *) {
    dynamic_cast<itk::ProcessObject *>(object)->AbortGenerateDataOn();
  });
  const auto aborting = filter->AddObserver(itk::ProgressEvent(), abort);
  filter->Modified();
  EXPECT_THROW(filter->Update(), itk::ProcessAborted);
  filter->RemoveObserver(aborting);
  filter->AbortGenerateDataOff();
  filter->Update();
  EXPECT_EQ(StandInOf(*filter).GetReasonNotServed(), "");
  const auto plain = Plain<Median>::New();
  plain->SetInput(filter->GetInput());
  plain->SetRadius(2);
  plain->Update();
  ExpectSame(*filter->GetOutput(), *plain->GetOutput());
}

TEST_F(DropIn, EightPipelinesAtOnceGiveTheBitsOfOne)
{
  const auto plain = Plain<Median>::New();
  plain->SetInput(MakeVolume());
  plain->Update();
  std::vector<std::thread> threads;
  std::atomic<int>         same{ 0 };
  for (unsigned int i = 0; i < 8; ++i)
  {
    threads.emplace_back([&, i] {
      const auto filter = Median::New();
      filter->SetInput(MakeVolume());
      filter->SetNumberOfWorkUnits(1 + i % 3);
      filter->Update();
      const auto bytes = filter->GetOutput()->GetBufferedRegion().GetNumberOfPixels() * sizeof(short);
      same +=
        StandInOf(*filter).GetReasonNotServed().empty() &&
            std::memcmp(filter->GetOutput()->GetBufferPointer(), plain->GetOutput()->GetBufferPointer(), bytes) == 0
          ? 1
          : 0;
    });
  }
  for (std::thread & thread : threads)
  {
    thread.join();
  }
  EXPECT_EQ(same, 8);
}

TEST_F(DropIn, SmallBudgetsGiveTheSameBits)
{
  const auto plain = Plain<Opening>::New();
  const auto ours = Opening::New();
  for (Opening * const filter : { static_cast<Opening *>(plain.GetPointer()), ours.GetPointer() })
  {
    filter->SetInput(MakeVolume(5, 40));
    filter->SetKernel(Flat3::Ball(Flat3::RadiusType::Filled(2)));
  }
  plain->Update();
  for (const std::size_t budget : { std::size_t{ 1 } << 20, std::size_t{ 64 } })
  {
    chunkwise::Budgets budgets;
    budgets.host = budget;
    chunkwise::Manager::GetGlobal().SetBudgets(budgets);
    ours->Modified();
    ours->Update();
    // Filters for which no chunk fits are left to ITK.
    EXPECT_EQ(StandInOf(*ours).GetReasonNotServed().empty(), budget > 64) << StandInOf(*ours).GetReasonNotServed();
    ExpectSame(*ours->GetOutput(), *plain->GetOutput());
  }
}

TEST_F(DropIn, BadSettingsAreErrorsBeforeAnythingIsReplaced)
{
  const auto expectError = [](const char * name, const char * value, const std::string & part) {
    ::setenv(name, value, 1);
    try
    {
      itk::ChunkwiseDropInFactory::New();
      ADD_FAILURE() << name << '=' << value << " is taken";
    }
    catch (const itk::ExceptionObject & error)
    {
      const std::string text = error.GetDescription();
      EXPECT_NE(text.find(name), std::string::npos) << text;
      EXPECT_NE(text.find(value), std::string::npos) << text;
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
    ::unsetenv(name);
  };
  expectError("CHUNKWISE_DROP_IN", "exactly", "exact, fast or off");
  expectError("CHUNKWISE_DROP_IN_EXCEPT", "Medain", "MedianImageFilter");
  expectError("CHUNKWISE_DROP_IN_BACKEND", "gpu", "auto, cpu or cuda");
  expectError("CHUNKWISE_DROP_IN_SMALLEST", "-3", "voxels");
  expectError("CHUNKWISE_DROP_IN_REPORT", "/nowhere/report.txt", "written");

  ::setenv("CHUNKWISE_DROP_IN", "off", 1);
  EXPECT_TRUE(itk::ChunkwiseDropInFactory::New()->GetClassOverrideNames().empty());
  ::setenv("CHUNKWISE_DROP_IN", "exact", 1);
  ::setenv("CHUNKWISE_DROP_IN_EXCEPT", "MedianImageFilter,RankImageFilter", 1);
  const auto left = itk::ChunkwiseDropInFactory::New()->GetClassOverrideDescriptions();
  EXPECT_EQ(std::count(left.begin(), left.end(), "MedianImageFilter"), 0);
  EXPECT_GT(std::count(left.begin(), left.end(), "MeanImageFilter"), 0);
}

TEST_F(DropInFast, MeansOfFloatsAreThoseOfItkWithinTheTolerance)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    // 1000 is the largest magnitude of a voxel, 729 voxels the largest window.
    const auto configure = [](auto & filter, auto & random) {
      filter.SetInput(MakeRandomImage<Float3>(RandomRegion<Float3>(random, 2), random(), -1000, 1000));
      filter.SetRadius(RandomRadius<Float3>(random));
    };
    constexpr double tolerance = 1000 * 729 * std::numeric_limits<float>::epsilon();
    EXPECT_EQ((Compare<itk::MeanImageFilter<Float3, Float3>>(m_Random, configure, tolerance)), "");
    EXPECT_EQ((Compare<itk::BoxMeanImageFilter<Float3, Float3>>(m_Random, configure, tolerance)), "");
  }
}

template <typename TImage>
class DropInOfDistances : public DropInFast
{};
using DistanceImages = testing::Types<itk::Image<unsigned char, 2>, itk::Image<unsigned char, 3>, itk::Image<short, 3>,
                                      itk::Image<unsigned short, 2>>;
TYPED_TEST_SUITE(DropInOfDistances, DistanceImages);

TEST_F(DropInFast, DeviationsAndGaussiansAreThoseOfItkWithinTheTolerance)
{
  for (int trial = 0; trial < 12; ++trial)
  {
    const auto configure = [](auto & filter, auto & random) {
      filter.SetInput(MakeRandomImage<Float3>(RandomRegion<Float3>(random, 2), random(), 0, 100));
      auto radius = RandomRadius<Float3>(random, 3);
      radius[0] += 1;
      filter.SetRadius(radius);
    };
    EXPECT_EQ((Compare<itk::NoiseImageFilter<Float3, Float3>>(m_Random, configure, 1e-2)), "");
    EXPECT_EQ((Compare<itk::BoxSigmaImageFilter<Float3, Float3>>(m_Random, configure, 1e-2)), "");
    EXPECT_EQ((Compare<itk::DiscreteGaussianImageFilter<Short3, Float3>>(
                m_Random,
                [](auto & filter, auto & random) {
                  filter.SetInput(MakeRandomImage<Short3>(RandomRegion<Short3>(random), random(), 0, 100));
                  filter.SetVariance(0.1 + static_cast<double>(random() % 40) / 10);
                  filter.SetUseImageSpacing(random() % 2 == 0);
                  filter.SetFilterDimensionality(1 + random() % 3);
                },
                1e-3)),
              "");
  }
}

TYPED_TEST(DropInOfDistances, AreThoseOfItkWithinTheTolerance)
{
  using Real = itk::Image<float, TypeParam::ImageDimension>;
  using Filter = itk::SignedMaurerDistanceMapImageFilter<TypeParam, Real>;
  for (int trial = 0; trial < 20; ++trial)
  {
    const auto configure = [](Filter & filter, std::mt19937 & random) {
      const auto image =
        MakeRandomImage<TypeParam>(RandomRegion<TypeParam>(random, 2), random(), 0, random() % 2 ? 1 : 9);
      auto spacing = image->GetSpacing();
      spacing[0] = 0.5;
      spacing[1] = 1.75;
      image->SetSpacing(spacing);
      // There is a contour.
      const auto background = static_cast<typename TypeParam::PixelType>(random() % 2);
      image->GetBufferPointer()[0] = 3;
      image->GetBufferPointer()[1] = background;
      filter.SetInput(image);
      filter.SetSquaredDistance(random() % 2);
      filter.SetUseImageSpacing(random() % 2);
      filter.SetInsideIsPositive(random() % 2);
      filter.SetBackgroundValue(background);
    };
    EXPECT_EQ((Compare<Filter>(this->m_Random, configure, 1e-3, false)), "");
    // ITK computes the whole image for a part too.
    const auto part = Filter::New();
    configure(*part, this->m_Random);
    part->UpdateOutputInformation();
    const auto whole = part->GetOutput()->GetLargestPossibleRegion();
    auto       region = whole;
    region.SetSize(0, 1);
    part->GetOutput()->SetRequestedRegion(region);
    part->Update();
    EXPECT_EQ(part->GetOutput()->GetBufferedRegion(), whole);
    EXPECT_EQ(dynamic_cast<itk::ChunkwiseStandIn &>(*part).GetReasonNotServed().empty(), region == whole);
  }
  const auto empty = [](Filter & filter, std::mt19937 & random) {
    const auto image = MakeRandomImage<TypeParam>(RandomRegion<TypeParam>(random, 3), random(), 0, 0);
    filter.SetInput(image);
  };
  EXPECT_NE((Compare<Filter>(this->m_Random, empty, 0.0, false)), "");
}

TYPED_TEST(DropInOfImages, ComponentsAreThoseOfItk)
{
  constexpr unsigned int n = TypeParam::ImageDimension;
  using Pixel = typename TypeParam::PixelType;
  const auto compare = [&](auto filterOfOutput) {
    using Filter = typename decltype(filterOfOutput)::ObjectType;
    for (int trial = 0; trial < 25; ++trial)
    {
      itk::IdentifierType counts[2] = {};
      int                 run = 0;
      unsigned int        seed = this->m_Random();
      const auto          configure = [&](Filter & filter, std::mt19937 &) {
        std::mt19937       same(seed);
        const auto         image = MakeRandomImage<TypeParam>(RandomRegion<TypeParam>(same), same(), 1, 9);
        const unsigned int empty = 1 + same() % 9;
        auto * const       voxels = image->GetBufferPointer();
        for (itk::SizeValueType i = 0; i < image->GetBufferedRegion().GetNumberOfPixels(); ++i)
        {
          voxels[i] = same() % 10 < empty ? Pixel{} : voxels[i];
          if (!std::is_integral<Pixel>::value && same() % 8 == 0)
          {
            voxels[i] = same() % 2 ? -Pixel{} : std::numeric_limits<Pixel>::quiet_NaN();
          }
        }
        filter.SetInput(image);
        filter.SetFullyConnected(same() % 2);
        filter.AddObserver(itk::EndEvent(), [&filter, &counts, &run](const itk::EventObject &) {
          counts[run++ % 2] = filter.GetObjectCount();
        });
      };
      EXPECT_EQ((Compare<Filter>(this->m_Random, configure)), "");
      EXPECT_EQ(counts[0], counts[1]);
    }
  };
  compare(itk::ConnectedComponentImageFilter<TypeParam, itk::Image<unsigned short, n>>::New());
  compare(itk::ConnectedComponentImageFilter<TypeParam, itk::Image<unsigned int, n>>::New());
  compare(itk::ConnectedComponentImageFilter<TypeParam, itk::Image<unsigned long, n>>::New());
}

TEST_F(DropIn, ComponentsAreLeftToItkWithAMaskOrABackgroundValueAndWhereLabelsDoNotFit)
{
  using Filter = itk::ConnectedComponentImageFilter<Byte2, itk::Image<unsigned short, 2>>;
  EXPECT_NE((Compare<Filter>(m_Random,
                             [](Filter & filter, std::mt19937 & random) {
                               filter.SetInput(MakeRandomImage<Byte2>(RandomRegion<Byte2>(random), random(), 0, 1));
                               filter.SetBackgroundValue(3);
                             })),
            "");
  EXPECT_NE((Compare<Filter>(m_Random,
                             [](Filter & filter, std::mt19937 & random) {
                               const auto region = RandomRegion<Byte2>(random);
                               filter.SetInput(MakeRandomImage<Byte2>(region, random(), 0, 1));
                               filter.SetMaskImage(MakeRandomImage<Byte2>(region, random(), 0, 1));
                             })),
            "");
  Byte2::RegionType region;
  region.SetSize({ { 512, 512 } });
  const auto board = MakeRandomImage<Byte2>(region, 1, 0, 0);
  for (unsigned int i = 0; i < 512 * 512; ++i)
  {
    board->GetBufferPointer()[i] = (i + i / 512) % 2;
  }
  const auto many = Filter::New();
  many->SetInput(board);
  try
  {
    many->Update();
    ADD_FAILURE() << "there are 131072 objects";
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.GetDescription()).find("Number of objects (131072)"), std::string::npos) << error;
  }
}

template <typename TFilter>
void
CompareDiffusion(std::mt19937 & random)
{
  using Input = typename TFilter::InputImageType;
  const auto configure = [](TFilter & filter, std::mt19937 & same) {
    const auto image = MakeRandomImage<Input>(RandomRegion<Input>(same, 2), same(), -100, 100);
    auto       spacing = image->GetSpacing();
    spacing[0] = 0.75;
    image->SetSpacing(spacing);
    filter.SetInput(image);
    filter.SetNumberOfIterations(1 + same() % 5);
    filter.SetTimeStep(0.03);
    filter.SetConductanceParameter(0.5 + 0.5 * static_cast<double>(same() % 4));
    filter.SetConductanceScalingUpdateInterval(1 + same() % 3);
    filter.SetUseImageSpacing(same() % 2);
    if (same() % 3 == 0)
    {
      filter.SetFixedAverageGradientMagnitude(same() % 2 ? 1.0 : 40.0);
    }
  };
  for (int trial = 0; trial < 16; ++trial)
  {
    EXPECT_EQ((Compare<TFilter>(random, configure, 0.01, false)), "");
  }
  const auto unstable = [&](TFilter & filter, std::mt19937 & same) {
    configure(filter, same);
    filter.SetTimeStep(0.5);
    itk::Object::GlobalWarningDisplayOff();
  };
  EXPECT_NE((Compare<TFilter>(random, unstable, 0.0, false)), "");
  itk::Object::GlobalWarningDisplayOn();
}

TEST_F(DropInFast, DiffusionIsThatOfItkWithinTheTolerance)
{
  CompareDiffusion<itk::GradientAnisotropicDiffusionImageFilter<Float3, Float3>>(m_Random);
  CompareDiffusion<itk::CurvatureAnisotropicDiffusionImageFilter<Float3, Float3>>(m_Random);
}

template <typename TInput>
void
CompareGradientMagnitudes(std::mt19937 & random)
{
  using Real = itk::Image<float, TInput::ImageDimension>;
  using Filter = itk::GradientMagnitudeImageFilter<TInput, Real>;
  const auto configure = [](Filter & filter, std::mt19937 & same) {
    const auto image = MakeRandomImage<TInput>(RandomRegion<TInput>(same), same(), 0, 200);
    auto       spacing = image->GetSpacing();
    spacing[0] = 0.5;
    spacing[1] = 1.75;
    image->SetSpacing(spacing);
    filter.SetInput(image);
    filter.SetUseImageSpacing(same() % 2);
  };
  for (int trial = 0; trial < 16; ++trial)
  {
    EXPECT_EQ((Compare<Filter>(random, configure, 1e-6 * 200 / 0.5)), "");
  }
  // Infinities have ITK's own results.
  const auto infinite = [&](Filter & filter, std::mt19937 & same) {
    configure(filter, same);
    const_cast<TInput *>(filter.GetInput())->GetBufferPointer()[0] =
      std::numeric_limits<typename TInput::PixelType>::infinity();
  };
  if (std::is_floating_point<typename TInput::PixelType>::value)
  {
    EXPECT_EQ((Compare<Filter>(random, infinite, 0.0, false)), "a result is not finite");
  }
}

TEST_F(DropInFast, GradientMagnitudesAreThoseOfItkWithinTheTolerance)
{
  CompareGradientMagnitudes<Byte2>(m_Random);
  CompareGradientMagnitudes<Short3>(m_Random);
  CompareGradientMagnitudes<Float3>(m_Random);
}

/** A convolution with any kernel whose weights' magnitudes have a sum of at most 1, or one that is to be normalized. */
template <typename TFilter>
void
ConfigureConvolution(TFilter & filter, std::mt19937 & random)
{
  using Input = typename TFilter::InputImageType;
  static itk::PeriodicBoundaryCondition<Input> periodic;
  static itk::ConstantBoundaryCondition<Input> constant;
  constant.SetConstant(static_cast<typename Input::PixelType>(50));
  itk::ImageBoundaryCondition<Input> * const boundaries[] = { &periodic, &constant, filter.GetBoundaryCondition() };
  filter.SetBoundaryCondition(boundaries[random() % 3]);
  auto region = RandomRegion<Input>(random, 9);
  filter.SetInput(MakeRandomImage<Input>(region, random(), -1000, 1000));
  // Some of the kernels are convolved through transforms, some directly.
  for (unsigned int a = 0; a < Input::ImageDimension; ++a)
  {
    region.SetSize(a, 1 + random() % 8);
  }
  filter.SetNormalize(random() % 2 == 0);
  const double weight = 1.0 / static_cast<double>(region.GetNumberOfPixels());
  filter.SetKernelImage(MakeRandomImage<typename TFilter::KernelImageType>(
    region, random(), filter.GetNormalize() ? 1.0 : -weight, weight));
  if (random() % 3 == 0)
  {
    filter.SetOutputRegionModeToValid();
  }
}

template <typename TImage>
class DropInConvolutions : public DropInFast
{};
using ConvolvedImages = ::testing::Types<itk::Image<short, 2>, Short3, itk::Image<float, 2>, Float3>;
TYPED_TEST_SUITE(DropInConvolutions, ConvolvedImages);

TYPED_TEST(DropInConvolutions, AreThoseOfItkWithinTheTolerance)
{
  using Real = itk::Image<float, TypeParam::ImageDimension>;
  for (int trial = 0; trial < 20; ++trial)
  {
    const auto       configure = [](auto & filter, auto & random) { ConfigureConvolution(filter, random); };
    constexpr double tolerance = 1000 * 1e-5;
    EXPECT_EQ((Compare<itk::ConvolutionImageFilter<TypeParam, Real, Real>>(this->m_Random, configure, tolerance)), "");
    EXPECT_EQ((Compare<itk::FFTConvolutionImageFilter<TypeParam, Real, Real>>(this->m_Random, configure, tolerance)),
              "");
  }
}

TEST_F(DropInFast, ConvolutionsSayWhyItkRuns)
{
  using Filter = itk::FFTConvolutionImageFilter<Float3>;
  const auto image = MakeRandomImage<Float3>(MakeRegion<Float3>({ 0, 0, 0 }, { 21, 14, 11 }), 1);
  const auto kernel = MakeRandomImage<Float3>(MakeRegion<Float3>({ 0, 0, 0 }, { 5, 4, 3 }), 2, 0, 1);
  const auto why = [&](const std::function<void(Filter &)> & change) {
    const auto filter = Filter::New();
    filter->SetInput(image);
    filter->SetKernelImage(kernel);
    change(*filter);
    filter->Update();
    return StandInOf(*filter).GetReasonNotServed();
  };
  EXPECT_EQ(why([](Filter &) {}), "");
  EXPECT_EQ(why([](Filter & filter) { filter.SetSizeGreatestPrimeFactor(13); }), "");

  // The range of lengths that ITK's own code is given does not matter.
  Settings settings = Settings::Get();
  settings.level = Settings::Level::Off;
  Settings::Set(settings);
  EXPECT_EQ(why([](Filter & filter) { filter.SetSizeGreatestPrimeFactor(13); }), "off");
  EXPECT_EQ(why([](Filter & filter) { filter.SetSizeGreatestPrimeFactor(0); }), "off");
  Settings::Set(Settings::FromEnvironment());

  const float nan = std::numeric_limits<float>::quiet_NaN();
  kernel->SetPixel({ { 1, 1, 1 } }, nan);
  EXPECT_EQ(why([](Filter &) {}), "a kernel with NaN or infinity");
  kernel->SetPixel({ { 1, 1, 1 } }, 1);
  image->SetPixel({ { 3, 3, 3 } }, nan);
  EXPECT_EQ(why([](Filter &) {}), "an image with NaN or infinity");
}

TYPED_TEST(DropInConvolutions, RichardsonLucyIsThatOfItkWithinTheTolerance)
{
  using Real = itk::Image<float, TypeParam::ImageDimension>;
  using Filter = itk::RichardsonLucyDeconvolutionImageFilter<TypeParam, Real, Real>;
  for (int trial = 0; trial < 20; ++trial)
  {
    const auto configure = [&](Filter & filter, std::mt19937 & random) {
      auto region = RandomRegion<TypeParam>(random, 9);
      filter.SetInput(MakeRandomImage<TypeParam>(region, random(), trial % 3 ? 10 : 0, 1000));
      for (unsigned int a = 0; a < TypeParam::ImageDimension; ++a)
      {
        region.SetSize(a, 1 + random() % 8);
      }
      filter.SetNormalize(trial % 4 != 0);
      filter.SetKernelImage(
        MakeRandomImage<Real>(region, random(), 0, 2.0 / static_cast<double>(region.GetNumberOfPixels())));
      filter.SetNumberOfIterations(trial % 5 == 0 ? 0 : 1 + random() % 10);
      // Without a number it is that of the program's transforms.
      if (trial % 3 == 0)
      {
        filter.SetSizeGreatestPrimeFactor(trial % 2 ? 5 : 3);
      }
    };
    EXPECT_EQ((Compare<Filter>(this->m_Random, configure, 1000 * 1e-5, false)), "") << trial;
  }
}

TEST_F(DropInFast, DeconvolutionsSayWhyItkRuns)
{
  using Filter = itk::RichardsonLucyDeconvolutionImageFilter<Float3>;
  const auto image = MakeRandomImage<Float3>(MakeRegion<Float3>({ 0, 0, 0 }, { 21, 14, 11 }), 1, 0, 100);
  const auto kernel = MakeRandomImage<Float3>(MakeRegion<Float3>({ 0, 0, 0 }, { 5, 4, 3 }), 2, 0, 1);
  const auto why = [&](const std::function<void(Filter &)> & change) {
    const auto filter = Filter::New();
    filter->SetInput(image);
    filter->SetKernelImage(kernel);
    filter->NormalizeOn();
    change(*filter);
    filter->Update();
    return StandInOf(*filter).GetReasonNotServed();
  };
  EXPECT_EQ(why([](Filter &) {}), "");
  EXPECT_EQ(why([](Filter & filter) { filter.SetStopIteration(true); }), "iterations were stopped");
  itk::PeriodicBoundaryCondition<Float3> periodic;
  EXPECT_EQ(why([&](Filter & filter) { filter.SetBoundaryCondition(&periodic); }),
            "a boundary condition that is not zero flux");
  static int iterations = 0;
  const auto count = itk::CStyleCommand::New();
  count->SetCallback([](itk::Object *, const itk::EventObject &, void *) { ++iterations; });
  EXPECT_EQ(why([&](Filter & filter) {
              filter.SetNumberOfIterations(3);
              filter.AddObserver(itk::IterationEvent(), count);
            }),
            "an observer of iterations");
  EXPECT_EQ(iterations, 3);
  image->SetPixel({ { 3, 3, 3 } }, std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(why([](Filter &) {}), "an image with NaN or infinity");
}

TEST_F(DropIn, ConvolutionsAreLeftToTheProgram)
{
  const auto filter = itk::FFTConvolutionImageFilter<Float3>::New();
  EXPECT_EQ(dynamic_cast<itk::ChunkwiseStandIn *>(filter.GetPointer()), nullptr);
}

} // namespace
