/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseIdentityImageFilter.h"
#include "itkRenormalizedGaussianImageFilter.h"
#include "itkRenormalizedMeanImageFilter.h"

#include "chunkwiseFakeDevice.h"
#include "itkChunkwiseTestImages.h"
#include "itkChunkwiseTestWarnings.h"
#include "itkCommand.h"
#include "itkPipelineMonitorImageFilter.h"
#include "itkStreamingImageFilter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <thread>

namespace ChunkwiseImageToImageFilterTest
{

using chunkwisetest::CountDifferentVoxels;
using chunkwisetest::MakeRandomImage;
using chunkwisetest::MakeRegion;
using Boundary = itk::ChunkwiseEnums::BoundaryCondition;
using BackendEnum = itk::ChunkwiseEnums::Backend;

using ImageType = itk::Image<float, 3>;
using FilterType = itk::ChunkwiseWindowImageFilter<ImageType, ImageType>;
using MonitorType = itk::PipelineMonitorImageFilter<ImageType>;

const Boundary allBoundaries[] = { Boundary::Renormalized, Boundary::ZeroFluxNeumann, Boundary::Constant,
                                   Boundary::Mirror,       Boundary::Periodic,        Boundary::MirrorCenter };

/** Hands its input on in the requested pieces, so that what lies outside them cannot be read. */
itk::SmartPointer<itk::ChunkwiseIdentityImageFilter<ImageType>>
MakeStreamedSource(ImageType * image)
{
  const auto source = itk::ChunkwiseIdentityImageFilter<ImageType>::New();
  source->SetInput(image);
  return source;
}

FilterType::Pointer
MakeMean(itk::SizeValueType radius)
{
  const auto filter = itk::RenormalizedMeanImageFilter<ImageType>::New();
  filter->SetRadius(radius);
  filter->SetConstant(3.25);
  return filter.GetPointer();
}

FilterType::Pointer
MakeGaussian(double sigma)
{
  const auto filter = itk::RenormalizedGaussianImageFilter<ImageType>::New();
  filter->SetSigma(sigma);
  filter->UseImageSpacingOff();
  filter->SetConstant(3.25);
  return filter.GetPointer();
}

std::vector<FilterType::Pointer>
MakeFilters()
{
  return { MakeMean(2), MakeMean(6), MakeMean(50), MakeGaussian(0.8), MakeGaussian(4.0) };
}

ImageType::Pointer
MakeImage()
{
  return MakeRandomImage<ImageType>(MakeRegion<ImageType>({ -5, 20, 3 }, { 19, 14, 23 }), 17);
}

/** The whole output at once, in a separate buffer. */
ImageType::Pointer
WholeOutput(FilterType * filter)
{
  filter->UpdateLargestPossibleRegion();
  const ImageType::Pointer output = filter->GetOutput();
  output->DisconnectPipeline();
  return output;
}

TEST(ChunkwiseImageToImageFilter, AnyNumberOfStreamDivisionsGivesTheSameBits)
{
  const auto image = MakeImage();
  const auto largest = image->GetLargestPossibleRegion();
  const auto filters = MakeFilters();
  for (const auto & filter : filters)
  {
    for (const Boundary boundary : allBoundaries)
    {
      filter->SetInput(image);
      filter->SetBoundaryCondition(boundary);
      const auto whole = WholeOutput(filter);

      const auto source = MakeStreamedSource(image);
      const auto upstream = MonitorType::New();
      upstream->SetInput(source->GetOutput());
      filter->SetInput(upstream->GetOutput());
      const auto downstream = MonitorType::New();
      downstream->SetInput(filter->GetOutput());
      const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
      streamer->SetInput(downstream->GetOutput());
      for (unsigned int divisions = 1; divisions <= 7; ++divisions)
      {
        const auto pieces = static_cast<int>(streamer->GetRegionSplitter()->GetNumberOfSplits(largest, divisions));
        upstream->ClearPipelineSavedInformation();
        downstream->ClearPipelineSavedInformation();
        source->Modified();
        streamer->SetNumberOfStreamDivisions(divisions);
        streamer->Update();
        EXPECT_EQ(CountDifferentVoxels(whole.GetPointer(), streamer->GetOutput(), largest), 0u)
          << filter->GetNameOfClass() << ' ' << boundary << " divisions " << divisions;
        EXPECT_TRUE(downstream->VerifyAllInputCanStream(pieces));
        EXPECT_TRUE(upstream->VerifyInputFilterBufferedRequestedRegions());
        EXPECT_TRUE(upstream->VerifyInputFilterMatchedUpdateOutputInformation());
        // A window smaller than a piece asks for something new each time; data that upstream still has is not made
        // anew.
        if (filter == filters.front() && boundary != Boundary::Periodic)
        {
          EXPECT_TRUE(upstream->VerifyInputFilterExecutedStreaming(pieces));
        }
      }
    }
  }
}

TEST(ChunkwiseImageToImageFilter, AnyRequestedRegionGivesTheSameBitsFromThePaddedRegionAlone)
{
  const auto   image = MakeImage();
  const auto   largest = image->GetLargestPossibleRegion();
  std::mt19937 generator(23);
  for (const Boundary boundary : allBoundaries)
  {
    for (const itk::SizeValueType radius : { 1, 4, 5, 40 })
    {
      const auto filter = MakeMean(radius);
      filter->SetBoundaryCondition(boundary);
      filter->SetInput(image);
      const auto whole = WholeOutput(filter);
      const auto source = MakeStreamedSource(image);
      filter->SetInput(source->GetOutput());
      for (int repeat = 0; repeat < 12; ++repeat)
      {
        const auto region = chunkwisetest::RandomRegionInside(largest, generator);
        filter->GetOutput()->SetRequestedRegion(region);
        filter->Update();
        EXPECT_EQ(filter->GetOutput()->GetBufferedRegion(), region);
        EXPECT_EQ(CountDifferentVoxels(whole.GetPointer(), filter->GetOutput(), region), 0u)
          << boundary << " radius " << radius << region;

        ImageType::RegionType expected;
        for (unsigned int a = 0; a < 3; ++a)
        {
          const auto reach = static_cast<itk::IndexValueType>(radius);
          const auto first = largest.GetIndex(a);
          const auto end = first + static_cast<itk::IndexValueType>(largest.GetSize(a));
          auto       lower = region.GetIndex(a) - reach;
          auto       upper = region.GetIndex(a) + static_cast<itk::IndexValueType>(region.GetSize(a)) + reach;
          const bool leaves = lower < first || upper > end;
          lower = leaves && boundary == Boundary::Periodic ? first : std::max(lower, first);
          upper = leaves && boundary == Boundary::Periodic ? end : std::min(upper, end);
          expected.SetIndex(a, lower);
          expected.SetSize(a, static_cast<itk::SizeValueType>(upper - lower));
        }
        EXPECT_EQ(source->GetOutput()->GetRequestedRegion(), expected) << boundary << " radius " << radius << region;
      }
    }
  }
}

TEST(ChunkwiseImageToImageFilter, StreamsAlongThePlan)
{
  const auto image = MakeImage();
  const auto filter = MakeMean(3);
  filter->SetInput(image);
  const auto whole = WholeOutput(filter);
  const auto streamer = itk::StreamingImageFilter<ImageType, ImageType>::New();
  streamer->SetInput(filter->GetOutput());
  streamer->SetRegionSplitter(filter->MakeRegionSplitter());
  streamer->SetNumberOfStreamDivisions(4);
  streamer->Update();
  EXPECT_EQ(CountDifferentVoxels(whole.GetPointer(), streamer->GetOutput(), image->GetLargestPossibleRegion()), 0u);

  const chunkwise::Plan plan = filter->MakePlan(image->GetLargestPossibleRegion());
  ASSERT_FALSE(plan.chunks.empty());
  std::int64_t voxels = 0;
  for (const auto & chunk : plan.chunks)
  {
    voxels += chunk.outputBox.NumberOfVoxels();
  }
  EXPECT_EQ(voxels, static_cast<std::int64_t>(image->GetLargestPossibleRegion().GetNumberOfPixels()));
}

TEST(ChunkwiseImageToImageFilter, KeepsWhereTheImageLiesInSpace)
{
  const auto image = MakeImage();
  const auto filter = MakeMean(1);
  filter->SetInput(image);
  filter->Update();
  EXPECT_EQ(filter->GetOutput()->GetLargestPossibleRegion(), image->GetLargestPossibleRegion());
  EXPECT_EQ(filter->GetOutput()->GetSpacing(), image->GetSpacing());
  EXPECT_EQ(filter->GetOutput()->GetOrigin(), image->GetOrigin());
  EXPECT_EQ(filter->GetOutput()->GetDirection(), image->GetDirection());
}

TEST(ChunkwiseImageToImageFilter, ResultsDoNotDependOnTheIndexOfTheLargestRegion)
{
  const auto image = MakeImage();
  const auto filter = MakeMean(6);
  filter->SetInput(image);
  const auto whole = WholeOutput(filter);

  auto       moved = image->GetLargestPossibleRegion();
  const auto shifted = MakeRandomImage<ImageType>(
    ImageType::RegionType({ { 1000, -1000, 0 } }, image->GetLargestPossibleRegion().GetSize()), 17);
  filter->SetInput(shifted);
  const auto other = WholeOutput(filter);
  const auto voxels = moved.GetNumberOfPixels();
  EXPECT_EQ(std::memcmp(whole->GetBufferPointer(), other->GetBufferPointer(), voxels * sizeof(float)), 0);
}

TEST(ChunkwiseImageToImageFilter, ResultsDoNotDependOnWorkUnits)
{
  const auto image = MakeImage();
  for (const auto & filter : MakeFilters())
  {
    filter->SetInput(image);
    filter->SetNumberOfWorkUnits(1);
    const auto one = WholeOutput(filter);
    for (const itk::ThreadIdType units : { 2, 3, 7 })
    {
      filter->GetMultiThreader()->SetMaximumNumberOfThreads(units);
      filter->SetNumberOfWorkUnits(units);
      filter->Update();
      EXPECT_EQ(CountDifferentVoxels(one.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u);
    }
  }
}

/** Runs a function at each of a filter's progress events. */
void
AtProgress(itk::ProcessObject * filter, const std::function<void()> & function)
{
  filter->AddObserver(itk::ProgressEvent(), [function](const itk::EventObject &) { function(); });
}

TEST(ChunkwiseImageToImageFilter, ProgressRisesFromZeroToOneInTheInvokingThread)
{
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 64, 64, 64 }), 17);
  for (const auto & filter : MakeFilters())
  {
    filter->SetInput(image);
    std::vector<float>        values;
    std::set<std::thread::id> threads;
    AtProgress(filter, [&] {
      values.push_back(filter->GetProgress());
      threads.insert(std::this_thread::get_id());
    });
    filter->Update();
    ASSERT_GE(values.size(), 2u);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
    EXPECT_GE(values.front(), 0.0F);
    EXPECT_LT(values.front(), 1.0F);
    EXPECT_EQ(values.back(), 1.0F);
    EXPECT_EQ(threads, std::set<std::thread::id>{ std::this_thread::get_id() });
  }
}

TEST(ChunkwiseImageToImageFilter, AbortThrowsProcessAbortedAndTheFilterStaysUsable)
{
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 64, 64, 64 }), 17);
  for (const auto & filter : MakeFilters())
  {
    filter->SetInput(image);
    const auto whole = WholeOutput(filter);

    filter->Modified();
    bool       aborting = true;
    bool       finished = false;
    const auto tag = filter->AddObserver(itk::ProgressEvent(), [&](const itk::EventObject &) {
      finished = filter->GetProgress() == 1.0F;
      filter->SetAbortGenerateData(aborting);
    });
    EXPECT_THROW(filter->Update(), itk::ProcessAborted);
    EXPECT_FALSE(finished);

    aborting = false;
    filter->UpdateLargestPossibleRegion();
    EXPECT_EQ(CountDifferentVoxels(whole.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u);
    filter->RemoveObserver(tag);
  }
}

TEST(ChunkwiseImageToImageFilter, WhatAnObserverThrowsArrivesAndTheFilterStaysUsable)
{
  const auto image = MakeImage();
  const auto filter = MakeMean(2);
  filter->SetInput(image);
  const auto whole = WholeOutput(filter);

  filter->Modified();
  const auto tag = filter->AddObserver(itk::ProgressEvent(),
                                       [](const itk::EventObject &) { throw std::domain_error("from an observer"); });
  EXPECT_THROW(filter->Update(), std::domain_error);
  filter->RemoveObserver(tag);
  filter->Update();
  EXPECT_EQ(CountDifferentVoxels(whole.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u);
}

TEST(ChunkwiseImageToImageFilter, AnEmptyRequestedRegionRequestsAndComputesNothing)
{
  const auto image = MakeImage();
  const auto source = MakeStreamedSource(image);
  const auto filter = MakeMean(2);
  filter->SetInput(source->GetOutput());
  filter->UpdateOutputInformation();
  auto region = image->GetLargestPossibleRegion();
  region.SetSize(1, 0);
  filter->GetOutput()->SetRequestedRegion(region);
  // As a downstream filter would: Update on the output itself takes an empty region for the largest one.
  EXPECT_NO_THROW(filter->GetOutput()->PropagateRequestedRegion());
  EXPECT_NO_THROW(filter->GetOutput()->UpdateOutputData());
  EXPECT_EQ(source->GetOutput()->GetRequestedRegion().GetNumberOfPixels(), 0u);
  EXPECT_EQ(source->GetOutput()->GetBufferedRegion().GetNumberOfPixels(), 0u);

  const auto none = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 1, 2, 3 }, { 4, 0, 6 }), 1);
  for (const auto & each : MakeFilters())
  {
    each->SetInput(none);
    EXPECT_NO_THROW(each->Update());
    EXPECT_EQ(each->GetOutput()->GetBufferedRegion(), none->GetLargestPossibleRegion());
  }
}

TEST(ChunkwiseImageToImageFilter, ARequestedRegionOutsideTheImageThrowsInvalidRequestedRegionError)
{
  const auto image = MakeImage();
  const auto filter = MakeMean(2);
  filter->SetInput(image);
  filter->UpdateOutputInformation();
  auto region = image->GetLargestPossibleRegion();
  region.SetIndex(0, region.GetIndex(0) + 1);
  filter->GetOutput()->SetRequestedRegion(region);
  EXPECT_THROW(filter->Update(), itk::InvalidRequestedRegionError);
  filter->GetOutput()->SetRequestedRegionToLargestPossibleRegion();
  EXPECT_NO_THROW(filter->Update());
}

/** A filter on a machine with devices of the test's choice. */
class MeanOnDevicesOf : public itk::RenormalizedMeanImageFilter<ImageType>
{
public:
  using Self = MeanOnDevicesOf;
  using Superclass = itk::RenormalizedMeanImageFilter<ImageType>;
  using Pointer = itk::SmartPointer<Self>;
  itkNewMacro(Self);

  chunkwise::Manager * manager{ nullptr };

protected:
  chunkwise::Manager &
  GetManager() const override
  {
    return *manager;
  }
};

TEST(ChunkwiseImageToImageFilter, AutoGoesOnOnTheCpuWithOneWarningWhereADeviceFails)
{
  const auto device = std::make_shared<chunkwise::FakeDevice>(chunkwise::FakeDevice::Options());
  device->FailAt("Allocate", 0, true);
  chunkwise::Manager manager({ device });
  const auto         image = MakeImage();
  const auto         reference = MakeMean(2);
  reference->SetInput(image);
  const auto whole = WholeOutput(reference);

  const auto filter = MeanOnDevicesOf::New();
  filter->manager = &manager;
  filter->SetInput(image);
  filter->SetRadius(2);
  {
    const chunkwisetest::WarningScope warnings;
    filter->Update();
    EXPECT_EQ(warnings.GetTexts().size(), 1u);
  }
  EXPECT_FALSE(filter->GetLastReport().warnings.empty());
  EXPECT_EQ(filter->GetBackendUsed(), "cpu");
  EXPECT_EQ(CountDifferentVoxels(whole.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u);

  filter->SetBackend(BackendEnum::CUDA);
  try
  {
    filter->Update();
    FAIL() << "no exception";
  }
  catch (const itk::ExceptionObject & error)
  {
    const std::string message = error.GetDescription();
    EXPECT_NE(message.find("Allocate"), std::string::npos) << message;
    EXPECT_NE(message.find("fake device"), std::string::npos) << message;
    EXPECT_NE(message.find("bytes"), std::string::npos) << message;
  }
}

TEST(ChunkwiseImageToImageFilter, CudaWithoutADeviceThrowsAndSaysWhy)
{
  const auto         image = MakeImage();
  chunkwise::Manager manager({}, "this machine has no driver");
  const auto         filter = MeanOnDevicesOf::New();
  filter->manager = &manager;
  filter->SetInput(image);
  filter->SetBackend(BackendEnum::CUDA);
  try
  {
    filter->Update();
    FAIL() << "no exception";
  }
  catch (const itk::ExceptionObject & error)
  {
    EXPECT_NE(std::string(error.GetDescription()).find("this machine has no driver"), std::string::npos)
      << error.GetDescription();
  }
  EXPECT_EQ(filter->GetBackendUsed(), "");
  for (const BackendEnum backend : { BackendEnum::Auto, BackendEnum::CPU })
  {
    filter->SetBackend(backend);
    filter->Update();
    EXPECT_EQ(filter->GetBackendUsed(), "cpu");
    EXPECT_GT(filter->GetLastReport().chunksOnHost, 0);
    EXPECT_EQ(filter->GetLastReport().bytesToDevice, 0.0);
  }
}

TEST(ChunkwiseImageToImageFilter, TheHostBudgetIsKeptAndOneThatIsTooSmallThrows)
{
  const auto image = MakeRandomImage<ImageType>(MakeRegion<ImageType>({ 0, 0, 0 }, { 64, 64, 64 }), 17);
  const auto filter = MakeMean(3);
  filter->SetInput(image);
  filter->SetBackend(BackendEnum::CPU);
  const auto whole = WholeOutput(filter);
  // Memory that earlier runs left for later ones is held beside this run's.
  chunkwise::Manager::GetGlobal().ReleaseMemory();
  filter->SetHostMemoryBudget(std::size_t{ 512 } << 10);
  filter->Update();
  EXPECT_LE(filter->GetLastReport().peakHost, std::size_t{ 512 } << 10);
  EXPECT_EQ(CountDifferentVoxels(whole.GetPointer(), filter->GetOutput(), image->GetLargestPossibleRegion()), 0u);

  filter->SetHostMemoryBudget(1);
  EXPECT_THROW(filter->Update(), itk::ExceptionObject);
  filter->SetHostMemoryBudget(0);
  EXPECT_NO_THROW(filter->Update());
}

TEST(ChunkwiseImageToImageFilter, SeveralFiltersRunInSeveralThreadsAtOnce)
{
  const auto                      image = MakeImage();
  std::vector<ImageType::Pointer> expected;
  for (const auto & filter : MakeFilters())
  {
    filter->SetInput(image);
    expected.push_back(WholeOutput(filter));
  }
  std::vector<std::size_t> different(10, 1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < different.size(); ++t)
  {
    threads.emplace_back([&, t] {
      const std::size_t which = t % expected.size();
      // A separate pipeline: ITK's data objects are not shared between threads while they are updated.
      const auto mine = MakeImage();
      different[t] = 0;
      for (int repeat = 0; repeat < 5; ++repeat)
      {
        const auto filter = MakeFilters()[which];
        filter->SetInput(mine);
        filter->Update();
        different[t] +=
          CountDifferentVoxels(expected[which].GetPointer(), filter->GetOutput(), mine->GetLargestPossibleRegion());
      }
    });
  }
  for (auto & thread : threads)
  {
    thread.join();
  }
  EXPECT_EQ(different, std::vector<std::size_t>(different.size(), 0));
}

template <typename TPixel, unsigned int VDimension>
void
ExpectTheIdentityOf()
{
  using In = itk::Image<TPixel, VDimension>;
  using Out = itk::Image<double, VDimension>;
  typename In::RegionType region;
  for (unsigned int a = 0; a < VDimension; ++a)
  {
    region.SetIndex(a, 3 - 2 * static_cast<int>(a));
    region.SetSize(a, 7 - a);
  }
  const auto image = MakeRandomImage<In>(region, VDimension, 0, 120);
  const auto same = itk::ChunkwiseIdentityImageFilter<In>::New();
  same->SetInput(image);
  same->Update();
  EXPECT_EQ(CountDifferentVoxels(image.GetPointer(), same->GetOutput(), region), 0u);
  const auto toDouble = itk::ChunkwiseIdentityImageFilter<In, Out>::New();
  toDouble->SetInput(image);
  toDouble->Update();
  itk::ImageRegionConstIteratorWithIndex<Out> it(toDouble->GetOutput(), region);
  for (; !it.IsAtEnd(); ++it)
  {
    ASSERT_EQ(it.Get(), static_cast<double>(image->GetPixel(it.GetIndex())));
  }
}

TEST(ChunkwiseIdentityImageFilter, CopiesEveryPixelTypeInEveryDimension)
{
  ExpectTheIdentityOf<unsigned char, 2>();
  ExpectTheIdentityOf<signed char, 3>();
  ExpectTheIdentityOf<unsigned short, 4>();
  ExpectTheIdentityOf<short, 5>();
  ExpectTheIdentityOf<unsigned int, 2>();
  ExpectTheIdentityOf<int, 3>();
  ExpectTheIdentityOf<unsigned long, 4>();
  ExpectTheIdentityOf<long long, 5>();
  ExpectTheIdentityOf<float, 4>();
  ExpectTheIdentityOf<double, 5>();
}

} // namespace ChunkwiseImageToImageFilterTest
