/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseFakeDevice.h"
#include "chunkwiseManager.h"
#include "chunkwiseRecordingMonitor.h"
#include "chunkwiseTestOperations.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <thread>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

std::vector<std::int32_t>
RandomImage(std::mt19937 & random, const Box & box)
{
  std::vector<std::int32_t> image(static_cast<std::size_t>(box.NumberOfVoxels()));
  for (auto & value : image)
  {
    value = static_cast<std::int32_t>(random() % 1000) - 300;
  }
  return image;
}

Coordinates
RandomExtent(std::mt19937 & random)
{
  Coordinates extent = Coordinates::Filled(1);
  for (int a = 0; a < 3; ++a)
  {
    extent[a] = 1 + static_cast<std::int64_t>(random() % 15);
  }
  return extent;
}

/** Runs a request on 0 to 3 devices, with and without faults, and compares each output with `expected`. */
template <typename T>
void
ExpectEverywhere(std::mt19937 & random, ExecutionRequest request, const std::vector<T> & expected)
{
  for (std::size_t count = 0; count < 4; ++count)
  {
    for (const char * fault : { "", "kernel", "CopyToHost", "Allocate" })
    {
      FakeDevice::Options options;
      options.jitter = random() % 2 == 0;
      options.hostIsPinned = random() % 4 == 0;
      std::vector<std::shared_ptr<Device>>     devices;
      std::vector<std::shared_ptr<FakeDevice>> fakes;
      for (std::size_t d = 0; d < count; ++d)
      {
        fakes.push_back(std::make_shared<FakeDevice>(options, GetTestKernels()));
        devices.push_back(fakes.back());
      }
      {
        Manager manager(devices, std::string(), &GetTestKernels());
        if (*fault && count > 0)
        {
          fakes[0]->FailAt(fault, static_cast<int>(random() % 6), true);
        }
        // Pieces of a few voxels, in several lanes or one; or all that there is.
        const std::size_t pinned[] = { 0, 1024, 9000, 20000 };
        request.budgets.pinned = pinned[random() % 4];
        request.stagingThreads = 1 + random() % 3;
        std::vector<T> output(expected.size(), T{ -77 });
        request.output.data = output.data();
        const ExecutionReport report = manager.Execute(request);
        ASSERT_EQ(output, expected) << count << " devices, " << fault << " fails, chunk "
                                    << ToString(report.plan.chunkExtent) << " of " << ToString(request.image);
        EXPECT_LE(report.peakDevice, request.budgets.device);
        EXPECT_TRUE(request.budgets.pinned == 0 || report.peakPinned <= request.budgets.pinned);
      }
      for (const auto & fake : fakes)
      {
        EXPECT_EQ(fake->CountLive(), 0);
        EXPECT_EQ(fake->CountViolations(), 0);
      }
    }
  }
}

TEST(Schedules, SweepHandsItsCarryOn)
{
  std::mt19937 random(31);
  for (int trial = 0; trial < 12; ++trial)
  {
    const Box                 box = Box::FromExtent(RandomExtent(random));
    auto                      image = RandomImage(random, box);
    std::vector<std::int64_t> expected(image.size());
    const auto                plane = static_cast<std::size_t>(box.Extent(0) * box.Extent(1));
    for (std::size_t i = 0; i < image.size(); ++i)
    {
      expected[i] = image[i] + (i >= plane ? expected[i - plane] : 0);
    }
    ExecutionRequest request;
    request.operation = std::make_shared<RunningSumOperation>();
    request.image = request.region = box;
    request.inputs.push_back(DenseView(image.data(), PixelType::Int32, box));
    request.output = DenseView(nullptr, PixelType::Int64, box);
    request.budgets.device = plane * (16 + 12 * 4) + 6000;
    ExpectEverywhere(random, request, expected);
  }
}

TEST(Schedules, TwoPassSolvesAllSummariesTogether)
{
  std::mt19937 random(32);
  for (int trial = 0; trial < 12; ++trial)
  {
    const Box                 box = Box::FromExtent(RandomExtent(random));
    auto                      image = RandomImage(random, box);
    const std::int64_t        smallest = *std::min_element(image.begin(), image.end());
    std::vector<std::int64_t> expected;
    for (const std::int32_t value : image)
    {
      expected.push_back(value - smallest);
    }
    ExecutionRequest request;
    request.operation = std::make_shared<AboveMinimumOperation>();
    request.image = request.region = box;
    request.inputs.push_back(DenseView(image.data(), PixelType::Int32, box));
    request.output = DenseView(nullptr, PixelType::Int64, box);
    request.budgets.device = 9000;
    ExpectEverywhere(random, request, expected);
  }
}

TEST(Schedules, FixpointEndsWhenNoChunkIsDirty)
{
  std::mt19937 random(33);
  for (int trial = 0; trial < 12; ++trial)
  {
    const Box box = Box::FromExtent(RandomExtent(random));
    auto      mask = RandomImage(random, box);
    if (trial % 2)
    {
      // Long winding paths cross chunks many times.
      for (auto & value : mask)
      {
        value = random() % 3 ? 500 : -300;
      }
    }
    std::vector<std::int32_t> marker(mask.size(), -300);
    marker[random() % marker.size()] = 400;
    for (std::size_t i = 0; i < mask.size(); ++i)
    {
      marker[i] = std::min(marker[i], mask[i]);
    }
    std::vector<std::int32_t> expected = marker;
    const BufferView          state = DenseView(expected.data(), PixelType::Int32, box);
    const BufferView          under = DenseView(mask.data(), PixelType::Int32, box);
    for (bool changed = true; changed;)
    {
      changed = false;
      ForEachIndex(box, [&](const Coordinates & index) {
        std::int32_t value = At<std::int32_t>(state, index);
        for (int a = 0; a < MaxDimension; ++a)
        {
          for (const int step : { -1, 1 })
          {
            Coordinates neighbour = index;
            neighbour[a] += step;
            if (neighbour[a] >= 0 && neighbour[a] < box.upper[a])
            {
              value = std::max(value, At<std::int32_t>(state, neighbour));
            }
          }
        }
        value = std::min(value, At<std::int32_t>(under, index));
        changed = changed || value != At<std::int32_t>(state, index);
        At<std::int32_t>(state, index) = value;
      });
    }
    ExecutionRequest request;
    request.operation = std::make_shared<FloodOperation>();
    request.image = request.region = box;
    request.inputs.push_back(DenseView(marker.data(), PixelType::Int32, box));
    request.inputs.push_back(DenseView(mask.data(), PixelType::Int32, box));
    request.output = DenseView(nullptr, PixelType::Int32, box);
    request.budgets.device = 12000;
    ExpectEverywhere(random, request, expected);
  }
}

TEST(Schedules, ARunThatWaitsForADeviceCanBeAborted)
{
  std::mt19937     random(35);
  const Box        box = Box::FromExtent({ { 8, 8, 8, 1, 1 } });
  auto             image = RandomImage(random, box);
  ExecutionRequest request;
  request.operation = std::make_shared<AboveMinimumOperation>();
  request.image = request.region = box;
  request.inputs.push_back(DenseView(image.data(), PixelType::Int32, box));
  request.backend = BackendChoice::CUDA;
  ExecutionRequest          other = request;
  std::vector<std::int64_t> output(image.size());
  std::vector<std::int64_t> outputOfOther(image.size());
  request.output = DenseView(output.data(), PixelType::Int64, box);
  other.output = DenseView(outputOfOther.data(), PixelType::Int64, box);
  const auto        fake = std::make_shared<FakeDevice>(FakeDevice::Options(), GetTestKernels());
  Manager           manager({ fake }, std::string(), &GetTestKernels());
  std::atomic<bool> holds{ false };
  std::atomic<bool> letGo{ false };
  fake->onKernel = [&](int) {
    holds = true;
    while (!letGo)
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  std::thread first([&] { manager.Execute(request); });
  while (!holds)
  {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  RecordingMonitor monitor;
  monitor.abortAt = 0;
  EXPECT_THROW(manager.Execute(other, &monitor), Aborted);
  letGo = true;
  first.join();
  manager.Execute(other);
  EXPECT_EQ(output, outputOfOther);
  const std::int64_t smallest = *std::min_element(image.begin(), image.end());
  EXPECT_EQ(output[5], image[5] - smallest);
}

TEST(Schedules, CudaThrowsWhenTheLastDeviceFails)
{
  std::mt19937              random(34);
  const Box                 box = Box::FromExtent({ { 8, 8, 8, 1, 1 } });
  auto                      image = RandomImage(random, box);
  std::vector<std::int64_t> output(image.size());
  ExecutionRequest          request;
  request.operation = std::make_shared<RunningSumOperation>();
  request.image = request.region = box;
  request.inputs.push_back(DenseView(image.data(), PixelType::Int32, box));
  request.output = DenseView(output.data(), PixelType::Int64, box);
  request.budgets.device = 7000;
  request.backend = BackendChoice::CUDA;
  const auto fake = std::make_shared<FakeDevice>(FakeDevice::Options(), GetTestKernels());
  Manager    manager({ fake }, std::string(), &GetTestKernels());
  fake->FailAt("Launch", 1, true);
  try
  {
    manager.Execute(request);
    FAIL() << "the failure was not noticed";
  }
  catch (const DeviceError & error)
  {
    EXPECT_EQ(error.call, "Launch");
  }
}

} // namespace
