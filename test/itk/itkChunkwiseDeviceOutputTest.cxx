/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// Filters whose output stays on a device: a fake one, and a GPU where there is one.
#include "chunkwiseFakeDevices.h"
#include "itkAddImageFilter.h"
#include "itkChunkwiseDifferenceImageFilter.h"
#include "itkChunkwiseTestImages.h"
#include "itkChunkwiseTestWarnings.h"
#include "itkCommand.h"
#include "itkHeapReconstructionByDilationImageFilter.h"
#include "itkPrunedFFTConvolutionImageFilter.h"
#include "itkRenormalizedEntropyImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMaximumImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"
#include "itkRenormalizedMedianImageFilter.h"
#include "itkShiftScaleImageFilter.h"
#include "itkStreamingImageFilter.h"
#include "itkSummedAreaTableImageFilter.h"

#include <atomic>

namespace
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using BackendEnum = itk::ChunkwiseEnums::Backend;
using ImageType = itk::Image<float, 3>;

/** A filter on a machine with devices of the test's choice. */
template <typename TFilter>
class OnDevices : public TFilter
{
public:
  using Self = OnDevices;
  using Superclass = TFilter;
  using Pointer = itk::SmartPointer<Self>;
  itkNewMacro(Self);

  chunkwise::Manager * manager{ nullptr };
  int                  runs{ 0 };

protected:
  chunkwise::Manager &
  GetManager() const override
  {
    return *manager;
  }
  void
  GenerateData() override
  {
    ++runs;
    TFilter::GenerateData();
  }
};

using Mean = OnDevices<itk::RenormalizedMeanImageFilter<ImageType>>;
using Median = OnDevices<itk::RenormalizedMedianImageFilter<ImageType>>;
using Gaussian = OnDevices<itk::RenormalizedGaussianImageFilter<ImageType>>;
using Reconstruction = OnDevices<itk::HeapReconstructionByDilationImageFilter<ImageType>>;

constexpr double bytesOfImage = 30 * 22 * 18 * 4;

ImageType::Pointer
MakeImage()
{
  return MakeRandomImage<ImageType>(MakeRegion<ImageType>({ -5, 20, 3 }, { 30, 22, 18 }), 17);
}

/** The output in a separate buffer, whatever the filter does next. */
template <typename TFilter>
typename TFilter::OutputImageType::Pointer
Take(TFilter & filter)
{
  filter.UpdateLargestPossibleRegion();
  const typename TFilter::OutputImageType::Pointer output = filter.GetOutput();
  output->DisconnectPipeline();
  return output;
}

class DeviceOutput : public testing::TestWithParam<bool>
{
protected:
  void
  SetUp() override
  {
    std::string reason;
    if (!GetParam())
    {
      m_Fake = std::make_shared<chunkwise::FakeDevice>(chunkwise::FakeDevice::Options());
      m_Fake->onCopyToHost = [this](std::size_t bytes) { m_BytesToHost += bytes; };
      m_Manager = std::make_unique<chunkwise::Manager>(std::vector<std::shared_ptr<chunkwise::Device>>{ m_Fake });
    }
    else if (!chunkwise::GetCudaBackend(&reason))
    {
      GTEST_SKIP() << "no CUDA device: " << reason;
    }
    m_Image = MakeImage();
    m_Region = m_Image->GetLargestPossibleRegion();
  }
  void
  TearDown() override
  {
    m_Manager.reset();
    if (m_Fake)
    {
      EXPECT_EQ(m_Fake->CountLive(), 0);
      EXPECT_EQ(m_Fake->CountViolations(), 0);
    }
  }
  chunkwise::Manager &
  GetManager()
  {
    return m_Manager ? *m_Manager : chunkwise::Manager::GetGlobal();
  }

  template <typename TFilter>
  typename TFilter::Pointer
  Make(const typename TFilter::InputImageType * input, bool outputOnDevice = true)
  {
    const auto filter = TFilter::New();
    filter->manager = &GetManager();
    filter->SetInput(input);
    filter->SetOutputOnDevice(outputOnDevice);
    return filter;
  }
  Mean::Pointer
  MakeMean(const ImageType * input, itk::SizeValueType radius = 2, bool outputOnDevice = true)
  {
    const auto filter = Make<Mean>(input, outputOnDevice);
    filter->SetRadius(radius);
    return filter;
  }
  /** The mean of the image's means, in plain ITK's way. */
  ImageType::Pointer
  MeanOfMeans(itk::SizeValueType first = 2, itk::SizeValueType second = 1)
  {
    const auto a = MakeMean(m_Image, first, false);
    const auto b = MakeMean(a->GetOutput(), second, false);
    return Take(*b);
  }
  void
  ExpectSame(const ImageType * expected, const ImageType * got)
  {
    ASSERT_TRUE(got->GetBufferedRegion().IsInside(m_Region));
    EXPECT_EQ(CountDifferentVoxels(expected, got, m_Region), 0u);
  }

  std::shared_ptr<chunkwise::FakeDevice> m_Fake;
  std::unique_ptr<chunkwise::Manager>    m_Manager;
  ImageType::Pointer                     m_Image;
  ImageType::RegionType                  m_Region;
  std::atomic<std::size_t>               m_BytesToHost{ 0 };
};

INSTANTIATE_TEST_SUITE_P(Devices, DeviceOutput, testing::Values(false, true),
                         [](const auto & place) { return place.param ? "Cuda" : "Fake"; });

TEST_P(DeviceOutput, IsHandedOnWithoutACopyOnTheHost)
{
  const auto expected = [&] {
    const auto mean = MakeMean(m_Image, 2, false);
    const auto gaussian = Make<Gaussian>(mean->GetOutput(), false);
    gaussian->SetSigma(1.5);
    const auto median = Make<Median>(gaussian->GetOutput(), false);
    return Take(*median);
  }();
  m_BytesToHost = 0;
  const auto mean = MakeMean(m_Image);
  const auto gaussian = Make<Gaussian>(mean->GetOutput());
  gaussian->SetSigma(1.5);
  const auto median = Make<Median>(gaussian->GetOutput(), false);
  median->Update();
  ExpectSame(expected, median->GetOutput());
  EXPECT_EQ(mean->GetLastReport().bytesToDevice, bytesOfImage);
  EXPECT_EQ(mean->GetLastReport().bytesToHost, 0);
  EXPECT_EQ(gaussian->GetLastReport().bytesToDevice, 0);
  EXPECT_EQ(gaussian->GetLastReport().bytesToHost, 0);
  EXPECT_EQ(median->GetLastReport().bytesToDevice, 0);
  EXPECT_EQ(median->GetLastReport().bytesToHost, bytesOfImage);
  EXPECT_TRUE(mean->IsOutputOnDevice());
  EXPECT_TRUE(gaussian->IsOutputOnDevice());
  EXPECT_FALSE(median->IsOutputOnDevice());
  EXPECT_EQ(mean->GetOutput()->GetBufferPointer(), nullptr);
  if (m_Fake)
  {
    EXPECT_EQ(m_BytesToHost, static_cast<std::size_t>(bytesOfImage));
  }
  EXPECT_EQ(median->GetOutput()->GetSpacing(), m_Image->GetSpacing());
  EXPECT_EQ(median->GetOutput()->GetOrigin(), m_Image->GetOrigin());
  EXPECT_EQ(median->GetOutput()->GetDirection(), m_Image->GetDirection());
  EXPECT_EQ(mean->GetOutput()->GetSpacing(), m_Image->GetSpacing());

  // Nothing is done twice, and what is new only as far as it has to be.
  median->Update();
  EXPECT_EQ(mean->runs + gaussian->runs + median->runs, 3);
  gaussian->SetSigma(1.0);
  median->Update();
  EXPECT_EQ(mean->runs, 1);
  EXPECT_EQ(gaussian->runs, 2);
  EXPECT_EQ(median->runs, 2);
  EXPECT_NE(CountDifferentVoxels(expected.GetPointer(), median->GetOutput(), m_Region), 0u);
}

TEST_P(DeviceOutput, ComesToTheHostForAnythingElse)
{
  const auto ofMean = Take(*MakeMean(m_Image, 2, false));
  const auto mean = MakeMean(m_Image);
  const auto second = MakeMean(mean->GetOutput(), 1, false);
  second->Update();
  ASSERT_TRUE(mean->IsOutputOnDevice());

  const auto add = itk::AddImageFilter<ImageType>::New();
  add->SetInput1(mean->GetOutput());
  add->SetConstant2(0);
  add->Update();
  ExpectSame(ofMean, add->GetOutput());
  EXPECT_EQ(mean->runs, 1);
  EXPECT_FALSE(mean->IsOutputOnDevice());
  ExpectSame(ofMean, mean->GetOutput());

  // An image on the host that is up to date stays there.
  second->Modified();
  second->Update();
  EXPECT_EQ(mean->runs, 1);
  EXPECT_FALSE(mean->IsOutputOnDevice());
  ExpectSame(MeanOfMeans(), second->GetOutput());

  // Whoever updates the filter wants voxels.
  mean->Modified();
  second->Update();
  ASSERT_TRUE(mean->IsOutputOnDevice());
  mean->Update();
  EXPECT_EQ(mean->runs, 2);
  ExpectSame(ofMean, mean->GetOutput());
}

TEST_P(DeviceOutput, ThatNobodyAskedForHasNoVoxelsToBeRead)
{
  const auto mean = MakeMean(m_Image);
  const auto second = MakeMean(mean->GetOutput(), 1, false);
  second->Update();
  const ImageType::Pointer image = mean->GetOutput();
  image->DisconnectPipeline();
  EXPECT_FALSE(mean->IsOutputOnDevice());
  EXPECT_EQ(image->GetBufferPointer(), nullptr);
  EXPECT_EQ(image->GetBufferedRegion().GetNumberOfPixels(), 0u);
#ifdef NDEBUG
  // Else ITK asserts it.
  const auto add = itk::AddImageFilter<ImageType>::New();
  add->SetInput1(image);
  add->SetConstant2(0);
  EXPECT_THROW(add->Update(), itk::ExceptionObject);
#endif
  const auto third = MakeMean(image);
  EXPECT_THROW(third->Update(), itk::ExceptionObject);
  // The filter has a new output, which nothing has filled.
  ExpectSame(Take(*MakeMean(m_Image, 2, false)), Take(*mean));
}

TEST_P(DeviceOutput, IsNotTakenWhereTheImageHasVoxelsOfItsOwn)
{
  const auto mean = MakeMean(m_Image);
  const auto second = MakeMean(mean->GetOutput(), 1, false);
  second->Update();
  ASSERT_TRUE(mean->IsOutputOnDevice());
  ImageType * const image = mean->GetOutput();
  image->SetBufferedRegion(m_Region);
  image->Allocate();
  image->FillBuffer(7);
  EXPECT_FALSE(mean->IsOutputOnDevice());
  second->Modified();
  second->Update();
  const auto fresh = MakeMean(mean->GetOutput(), 1, false);
  fresh->Update();
  ExpectSame(second->GetOutput(), fresh->GetOutput());
}

TEST_P(DeviceOutput, ServesSeveralFiltersAndOthersBetween)
{
  // The marker comes through a filter of ITK, which reads on the host what is the mask, too.
  const auto shift = [](const ImageType * of) {
    const auto filter = itk::ShiftScaleImageFilter<ImageType, ImageType>::New();
    filter->SetInput(of);
    filter->SetShift(-10);
    return filter;
  };
  const auto compute = [&](bool onDevice) {
    const auto mean = MakeMean(m_Image, 2, onDevice);
    const auto marker = shift(mean->GetOutput());
    const auto reconstruction = Make<Reconstruction>(nullptr, onDevice);
    reconstruction->SetMarkerImage(marker->GetOutput());
    reconstruction->SetMaskImage(mean->GetOutput());
    const auto difference =
      Make<OnDevices<itk::ChunkwiseDifferenceImageFilter<ImageType>>>(mean->GetOutput(), onDevice);
    difference->SetInput2(reconstruction->GetOutput());
    const auto last = MakeMean(difference->GetOutput(), 1, onDevice);
    last->Update();
    EXPECT_EQ(mean->runs, 1);
    EXPECT_EQ(reconstruction->runs, 1);
    return Take(*last);
  };
  ExpectSame(compute(false), compute(true));

  const auto mean = MakeMean(m_Image);
  const auto one = MakeMean(mean->GetOutput(), 1, false);
  const auto other = MakeMean(mean->GetOutput(), 3, false);
  one->Update();
  other->Update();
  EXPECT_EQ(mean->runs, 1);
  EXPECT_EQ(other->GetLastReport().bytesToDevice, 0);
  ExpectSame(MeanOfMeans(2, 1), one->GetOutput());
  ExpectSame(MeanOfMeans(2, 3), other->GetOutput());

  // Twice the same image.
  const auto difference = Make<OnDevices<itk::ChunkwiseDifferenceImageFilter<ImageType>>>(mean->GetOutput(), false);
  difference->SetInput2(mean->GetOutput());
  difference->Update();
  EXPECT_EQ(difference->GetLastReport().bytesToDevice, 0);
  EXPECT_EQ(difference->GetOutput()->GetPixel(m_Region.GetIndex()), 0.0f);
}

TEST_P(DeviceOutput, IsReadOnTheHostWhereAFilterNeedsThat)
{
  const auto compute = [&](bool onDevice) {
    const auto mean = MakeMean(m_Image, 2, onDevice);
    // Looks at the whole input first.
    const auto entropy = Make<OnDevices<itk::RenormalizedEntropyImageFilter<ImageType>>>(mean->GetOutput(), onDevice);
    entropy->SetAutomaticRange(true);
    entropy->SetRadius(1);
    // Keeps what goes before a piece.
    const auto table = Make<OnDevices<itk::SummedAreaTableImageFilter<ImageType, ImageType>>>(entropy->GetOutput());
    const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
    streamer->SetInput(table->GetOutput());
    streamer->SetNumberOfStreamDivisions(3);
    streamer->Update();
    EXPECT_FALSE(mean->IsOutputOnDevice());
    EXPECT_FALSE(entropy->IsOutputOnDevice());
    // A kernel is no image that is filtered.
    const auto convolution =
      Make<OnDevices<itk::PrunedFFTConvolutionImageFilter<ImageType>>>(streamer->GetOutput(), onDevice);
    const auto kernel = MakeMean(MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 3, 3, 3 }), 3));
    convolution->SetKernelImage(kernel->GetOutput());
    convolution->Update();
    return Take(*convolution);
  };
  ExpectSame(compute(false), compute(true));
}

TEST_P(DeviceOutput, InPiecesIsTheSame)
{
  const auto expected = MeanOfMeans(2, 3);
  for (const unsigned int divisions : { 2u, 5u, 18u })
  {
    int runs[2]{};
    for (const bool onDevice : { false, true })
    {
      m_BytesToHost = 0;
      const auto mean = MakeMean(m_Image, 2, onDevice);
      const auto second = MakeMean(mean->GetOutput(), 3, false);
      const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
      streamer->SetInput(second->GetOutput());
      streamer->SetNumberOfStreamDivisions(divisions);
      streamer->Update();
      ExpectSame(expected, streamer->GetOutput());
      EXPECT_EQ(second->GetLastReport().bytesToDevice == 0, onDevice);
      runs[onDevice] = mean->runs;
      if (m_Fake && onDevice)
      {
        EXPECT_EQ(m_BytesToHost, static_cast<std::size_t>(bytesOfImage));
      }
    }
    EXPECT_EQ(runs[0], runs[1]);
  }
  // A part of what is there needs no run, more does.
  const auto mean = MakeMean(m_Image);
  const auto second = MakeMean(mean->GetOutput(), 1, false);
  const auto update = [&](const ImageType::RegionType & region) {
    second->UpdateOutputInformation();
    second->GetOutput()->SetRequestedRegion(region);
    second->Update();
    EXPECT_EQ(CountDifferentVoxels(MeanOfMeans().GetPointer(), second->GetOutput(), region), 0u);
  };
  update(MakeRegion<ImageType>({ 0, 25, 6 }, { 9, 8, 7 }));
  second->Modified();
  update(MakeRegion<ImageType>({ 1, 26, 7 }, { 3, 3, 3 }));
  EXPECT_EQ(mean->runs, 1);
  second->Modified();
  update(MakeRegion<ImageType>({ 1, 26, 7 }, { 3, 3, 9 }));
  EXPECT_EQ(mean->runs, 2);
}

TEST_P(DeviceOutput, ThatDoesNotFitTheBudgetGoesThroughTheHost)
{
  const auto expected = MeanOfMeans();
  // The first fits beside its input, the second not, as in its budget the first one's output has its share.
  for (const itk::SizeValueType budget : { 24000ull, 60000ull, 100000ull, 130000ull, 200000ull })
  {
    const auto mean = MakeMean(m_Image);
    mean->SetDeviceMemoryBudget(budget);
    const auto second = MakeMean(mean->GetOutput(), 1, false);
    second->SetDeviceMemoryBudget(budget);
    const chunkwisetest::WarningScope warnings;
    second->Update();
    ExpectSame(expected, second->GetOutput());
    EXPECT_LE(mean->GetLastReport().peakDevice, budget);
    EXPECT_LE(second->GetLastReport().peakDevice, budget);
    EXPECT_EQ(mean->IsOutputOnDevice(), budget >= 100000u) << budget;
    if (!mean->IsOutputOnDevice())
    {
      std::string all;
      for (const std::string & text : warnings.GetTexts())
      {
        all += text;
      }
      EXPECT_NE(all.find("images go through the host"), std::string::npos) << all;
      EXPECT_NE(all.find("budget of " + std::to_string(budget) + " bytes"), std::string::npos) << all;
    }
  }
}

TEST_P(DeviceOutput, IsHeldWithinTheManagersBudgetAndGivenBack)
{
  const std::size_t before = m_Fake ? 0 : GetManager().GetHeldMemory().device;
  {
    const auto mean = MakeMean(m_Image);
    const auto second = MakeMean(mean->GetOutput(), 1, false);
    second->Update();
    GetManager().ReleaseMemory();
    const auto image = static_cast<std::size_t>(bytesOfImage);
    EXPECT_GE(GetManager().GetHeldMemory().device, image);
    EXPECT_LT(GetManager().GetHeldMemory().device, image + 4096 + before);

    mean->ReleaseDataFlagOn();
    second->Modified();
    second->Update();
    EXPECT_FALSE(mean->IsOutputOnDevice());
    ExpectSame(MeanOfMeans(), second->GetOutput());
    GetManager().ReleaseMemory();
    EXPECT_LE(GetManager().GetHeldMemory().device, before);

    mean->ReleaseDataFlagOff();
    second->Modified();
    second->Update();
    EXPECT_TRUE(mean->IsOutputOnDevice());
    mean->OutputOnDeviceOff();
    EXPECT_FALSE(mean->IsOutputOnDevice());
    second->Update();
    ExpectSame(MeanOfMeans(), second->GetOutput());
    ExpectSame(Take(*MakeMean(m_Image, 2, false)), mean->GetOutput());
    mean->OutputOnDeviceOn();
    second->Update();
    EXPECT_TRUE(mean->IsOutputOnDevice());
  }
  GetManager().ReleaseMemory();
  EXPECT_LE(GetManager().GetHeldMemory().device, before);
}

TEST_P(DeviceOutput, DoesNothingForTheCpu)
{
  const auto expected = MeanOfMeans();
  const auto mean = MakeMean(m_Image);
  const auto second = MakeMean(mean->GetOutput(), 1);
  second->SetBackend(BackendEnum::CPU);
  second->Update();
  ExpectSame(expected, second->GetOutput());
  EXPECT_FALSE(mean->IsOutputOnDevice());
  mean->SetBackend(BackendEnum::CPU);
  second->SetBackend(BackendEnum::Auto);
  second->Update();
  ExpectSame(expected, second->GetOutput());
  EXPECT_FALSE(mean->IsOutputOnDevice());
  EXPECT_EQ(mean->GetBackendUsed(), "cpu");
}

TEST_P(DeviceOutput, HasComponents)
{
  using VectorType = itk::VectorImage<float, 3>;
  using ColorType = itk::Image<itk::Vector<float, 2>, 3>;
  const auto compute = [&](auto tag, bool onDevice) {
    using Type = typename decltype(tag)::ObjectType;
    const auto image = Type::New();
    image->SetRegions(MakeRegion<Type>({ 2, -1, 0 }, { 13, 9, 7 }));
    image->SetNumberOfComponentsPerPixel(2);
    image->Allocate();
    auto * const voxels = reinterpret_cast<float *>(image->GetBufferPointer());
    for (int i = 0; i < 2 * 13 * 9 * 7; ++i)
    {
      voxels[i] = static_cast<float>((i * 37) % 101);
    }
    const auto first = Make<OnDevices<itk::RenormalizedMeanImageFilter<Type>>>(image, onDevice);
    const auto second = Make<OnDevices<itk::RenormalizedMedianImageFilter<Type>>>(first->GetOutput(), onDevice);
    second->Update();
    EXPECT_EQ(first->IsOutputOnDevice(), onDevice);
    const auto               output = Take(*second);
    const float * const      begin = reinterpret_cast<const float *>(output->GetBufferPointer());
    const std::vector<float> median(begin, begin + 2 * 13 * 9 * 7);
    const auto               mean = Take(*first);
    const float * const      beginOfMean = reinterpret_cast<const float *>(mean->GetBufferPointer());
    return std::make_pair(median, std::vector<float>(beginOfMean, beginOfMean + 2 * 13 * 9 * 7));
  };
  EXPECT_EQ(compute(VectorType::Pointer(), false), compute(VectorType::Pointer(), true));
  EXPECT_EQ(compute(ColorType::Pointer(), false), compute(ColorType::Pointer(), true));
}

TEST_P(DeviceOutput, HasAMaskBeside)
{
  const auto compute = [&](bool onDevice) {
    using MaskType = itk::Image<unsigned char, 3>;
    const auto mask = MakeRandomImage<MaskType>(m_Region, 3, 0, 2);
    const auto mean = MakeMean(m_Image, 2, onDevice);
    mean->SetMaskImage(mask);
    const auto median = Make<OnDevices<itk::RenormalizedMaximumImageFilter<MaskType>>>(mask, onDevice);
    const auto second = MakeMean(mean->GetOutput(), 1, false);
    second->SetMaskImage(median->GetOutput());
    second->Update();
    EXPECT_EQ(median->IsOutputOnDevice(), onDevice);
    return Take(*second);
  };
  ExpectSame(compute(false), compute(true));
}

TEST_P(DeviceOutput, OfAFailedOrAbortedRunIsNotTaken)
{
  const auto expected = MeanOfMeans();
  const auto mean = MakeMean(m_Image);
  const auto second = MakeMean(mean->GetOutput(), 1, false);
  const auto abort = itk::CStyleCommand::New();
  abort->SetClientData(mean.GetPointer());
  abort->SetCallback([](itk::Object *, const itk::EventObject &, void * filter) {
    static_cast<itk::ProcessObject *>(filter)->AbortGenerateDataOn();
  });
  const auto tag = mean->AddObserver(itk::ProgressEvent(), abort);
  EXPECT_THROW(second->Update(), itk::ProcessAborted);
  EXPECT_FALSE(mean->IsOutputOnDevice());
  mean->RemoveObserver(tag);
  mean->AbortGenerateDataOff();
  second->ResetPipeline();
  second->Update();
  EXPECT_TRUE(mean->IsOutputOnDevice());
  ExpectSame(expected, second->GetOutput());
}

/** Each call of the device fails once, or from then on, in the first filter or a later one. */
TEST(DeviceOutputOfFakes, OfADeviceThatFailsIsComputedAnew)
{
  const auto image = MakeImage();
  const auto region = image->GetLargestPossibleRegion();
  const auto compute = [&](chunkwise::FakeDevice *       fake,
                           chunkwise::Manager &          manager,
                           BackendEnum                   backend,
                           const std::function<void()> & between) {
    const auto mean = Mean::New();
    const auto second = Median::New();
    mean->manager = second->manager = &manager;
    mean->SetInput(image);
    second->SetInput(mean->GetOutput());
    mean->SetOutputOnDevice(fake != nullptr);
    mean->SetBackend(backend);
    second->SetBackend(backend);
    const chunkwisetest::WarningScope warnings;
    mean->GetOutput()->UpdateOutputInformation();
    if (between)
    {
      second->Update();
      second->Modified();
      between();
    }
    second->Update();
    return Take(*second);
  };
  chunkwise::Manager none({});
  const auto         expected = compute(nullptr, none, BackendEnum::Auto, nullptr);
  for (const chunkwise::DeviceError::Kind kind :
       { chunkwise::DeviceError::Kind::Failed, chunkwise::DeviceError::Kind::Lost })
  {
    for (const char * const call : chunkwise::FakeDeviceCalls)
    {
      for (int at = 0; at < 12; ++at)
      {
        const auto fake = std::make_shared<chunkwise::FakeDevice>(chunkwise::FakeDevice::Options());
        const bool isPersistent = at % 2 == 1;
        {
          chunkwise::Manager manager({ fake });
          const auto         fail = [&] { fake->FailAt(call, at / 3, isPersistent, kind); };
          const bool         isLate = at % 3 == 2;
          if (!isLate)
          {
            fail();
          }
          const auto output = compute(fake.get(), manager, BackendEnum::Auto, isLate ? fail : std::function<void()>());
          ASSERT_EQ(CountDifferentVoxels(expected.GetPointer(), output.GetPointer(), region), 0u) << call << ' ' << at;
          fake->ClearFaults();
          manager.ReleaseMemory();
        }
        EXPECT_EQ(fake->CountLive(), 0) << call << ' ' << at;
        EXPECT_EQ(fake->CountViolations(), 0) << call << ' ' << at;
      }
    }
  }
  const auto         fake = std::make_shared<chunkwise::FakeDevice>(chunkwise::FakeDevice::Options());
  chunkwise::Manager manager({ fake });
  fake->FailAt("Launch", 0, true);
  EXPECT_THROW(compute(fake.get(), manager, BackendEnum::CUDA, nullptr), itk::ExceptionObject);
}

TEST(DeviceOutputOfFakes, OfAnotherDeviceComesThroughTheHost)
{
  chunkwise::FakeDevices devices(2, chunkwise::FakeDevice::Options(), chunkwise::GetHostKernels());
  const auto             manager = devices.MakeManager();
  const auto             other = devices.MakeManager();
  const auto             image = MakeImage();
  const auto             region = image->GetLargestPossibleRegion();
  const auto             compute =
    [&](const std::vector<int> & first, const std::vector<int> & second, bool onDevice, chunkwise::Manager & ofSecond) {
      const auto mean = Mean::New();
      mean->manager = manager.get();
      mean->SetInput(image);
      mean->SetDevices(first);
      mean->SetOutputOnDevice(onDevice);
      const auto last = Mean::New();
      last->manager = &ofSecond;
      last->SetInput(mean->GetOutput());
      last->SetDevices(second);
      last->Update();
      return Take(*last);
    };
  const auto expected = compute({}, {}, false, *manager);
  for (const auto & output : { compute({}, {}, true, *manager),
                               compute({ 1 }, {}, true, *manager),
                               compute({ 1 }, { 0 }, true, *manager),
                               compute({ 0 }, { 1, 0 }, true, *manager),
                               compute({}, {}, true, *other) })
  {
    EXPECT_EQ(CountDifferentVoxels(expected.GetPointer(), output.GetPointer(), region), 0u);
  }
}

} // namespace
