/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseManager.h"
#include "chunkwiseRecordingMonitor.h"
#include "chunkwiseTestOperations.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

constexpr std::int32_t Poison = -1431655766;
constexpr std::int64_t Untouched = 0x5555555555555555;

/** A run of the window sum, the buffers it needs and no more. */
struct Case
{
  std::shared_ptr<WindowSumOperation> operation = std::make_shared<WindowSumOperation>();
  std::vector<std::int32_t>           image;
  std::vector<std::int32_t>           held;
  std::vector<std::int64_t>           output;
  std::vector<std::int64_t>           expected;
  ExecutionRequest                    request;

  Case(std::mt19937 & random, std::int64_t largest, std::int64_t largestRadius)
  {
    Coordinates extent = Coordinates::Filled(1);
    const int   dimension = 1 + static_cast<int>(random() % MaxDimension);
    for (int a = 0; a < dimension; ++a)
    {
      extent[a] = 1 + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(a < 3 ? largest : 3));
      operation->radius[a] =
        a < 3 ? static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(largestRadius + 1)) : 0;
    }
    operation->wraps = random() % 3 == 0;
    request.image = request.region = Box::FromExtent(extent);
    if (random() % 2)
    {
      for (int a = 0; a < MaxDimension; ++a)
      {
        auto & region = request.region;
        region.lower[a] = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a]));
        region.upper[a] = region.lower[a] + 1 +
                          static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(extent[a] - region.lower[a]));
      }
    }
    Prepare(random);
  }

  Case(std::mt19937 & random, const Coordinates & extent, std::int64_t radius, bool wraps = false)
  {
    operation->wraps = wraps;
    request.image = request.region = Box::FromExtent(extent);
    for (int a = 0; a < 3; ++a)
    {
      operation->radius[a] = extent[a] > 1 ? radius : 0;
    }
    Prepare(random);
  }

  void
  Prepare(std::mt19937 & random)
  {
    request.operation = operation;
    image.resize(static_cast<std::size_t>(request.image.NumberOfVoxels()));
    for (auto & value : image)
    {
      value = static_cast<std::int32_t>(random() % 100000) - 50000;
    }
    // The host holds the halo; around it is poison.
    Box needed = PadAndCrop(request.region, operation->GetHalo(request.image.Extents()), request.image);
    for (int a = 0; a < MaxDimension; ++a)
    {
      if (operation->wraps && (request.region.lower[a] < operation->radius[a] ||
                               request.region.upper[a] + operation->radius[a] > request.image.upper[a]))
      {
        needed.lower[a] = 0;
        needed.upper[a] = request.image.upper[a];
      }
    }
    const BufferView all = DenseView(image.data(), PixelType::Int32, request.image);
    Box              padded = needed;
    for (int a = 0; a < MaxDimension; ++a)
    {
      padded.lower[a] -= 1;
      padded.upper[a] += 1;
    }
    held.assign(static_cast<std::size_t>(padded.NumberOfVoxels()), Poison);
    const BufferView around = DenseView(held.data(), PixelType::Int32, padded);
    ForEachIndex(needed,
                 [&](const Coordinates & index) { At<std::int32_t>(around, index) = At<std::int32_t>(all, index); });
    BufferView input = around;
    input.box = needed;
    input.data = &At<std::int32_t>(around, needed.lower);
    request.inputs.assign(1, input);

    Box room = request.region;
    for (int a = 0; a < MaxDimension; ++a)
    {
      room.lower[a] -= 1;
      room.upper[a] += 1;
    }
    expected.assign(static_cast<std::size_t>(room.NumberOfVoxels()), Untouched);
    request.output = DenseView(expected.data(), PixelType::Int64, room);
    KernelCall call;
    call.operation = operation.get();
    call.inputs[0] = all;
    call.image = request.image;
    std::vector<std::int64_t> own(static_cast<std::size_t>(request.region.NumberOfVoxels()));
    call.output = DenseView(own.data(), PixelType::Int64, request.region);
    GetTestKernels().Find("test.window-sum")->run(call);
    ForEachIndex(request.region, [&](const Coordinates & index) {
      At<std::int64_t>(request.output, index) = At<std::int64_t>(call.output, index);
    });
    Reset();
  }

  void
  Reset()
  {
    output.assign(expected.size(), Untouched);
    request.output.data = output.data();
  }
};

TEST(Manager, AnyChunkingAndAnyDevicesGiveTheSame)
{
  std::mt19937 random(11);
  std::size_t  most = 0;
  for (int trial = 0; trial < 300; ++trial)
  {
    Case                c(random, 14, 4 + 20 * (trial % 7 == 0));
    FakeDevice::Options options;
    options.jitter = trial % 3 == 0;
    options.hostIsPinned = trial % 5 == 0;
    FakeDevices devices(random() % 4, options);
    const auto  manager = devices.MakeManager();
    c.request.budgets.device = 2000 + random() % (trial % 2 ? 60000 : 8000);
    c.request.budgets.pinned = 3000 + random() % 100000;
    c.request.hostTakesChunks = random() % 2 == 0;
    c.request.stagingThreads = 1 + random() % 3;
    ExecutionReport report;
    try
    {
      report = manager->Execute(c.request);
    }
    catch (const Error & error)
    {
      FAIL() << error.what();
    }
    ASSERT_EQ(c.output, c.expected) << ToString(c.request.image) << " region " << ToString(c.request.region)
                                    << " radius " << ToString(c.operation->radius) << " " << report.backend;
    EXPECT_LE(report.peakDevice, c.request.budgets.device);
    EXPECT_LE(report.peakPinned, c.request.budgets.pinned);
    for (const auto & fake : devices.fakes)
    {
      EXPECT_LE(fake->GetPeak(), c.request.budgets.device);
    }
    most = std::max(most, report.plan.chunks.size());
  }
  EXPECT_GT(most, 20u);
}

TEST(Manager, ChunksReachAroundTheEdgeAlongX)
{
  std::mt19937 random(28);
  for (const std::int64_t rows : { 1, 2 })
  {
    Case        c(random, { { 400, rows, 1, 1, 1 } }, 5, true);
    FakeDevices devices(1);
    const auto  manager = devices.MakeManager();
    c.request.budgets.device = rows == 1 ? 2048 : 12000;
    c.request.backend = BackendChoice::CUDA;
    const ExecutionReport report = manager->Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
    EXPECT_LT(report.plan.chunkExtent[0], 400);
  }
}

TEST(Manager, AnyPinnedBudgetServes)
{
  std::mt19937 random(29);
  Case         c(random, { { 96, 96, 64, 1, 1 } }, 0);
  c.request.backend = BackendChoice::CUDA;
  c.request.budgets.device = 4000000;
  for (const unsigned int threads : { 1, 3 })
  {
    for (const std::size_t budget : { 3072, 20000, 250000, 600000 })
    {
      FakeDevices devices(1);
      c.request.budgets.pinned = budget;
      c.request.stagingThreads = threads;
      c.Reset();
      const ExecutionReport report = devices.MakeManager()->Execute(c.request);
      EXPECT_EQ(c.output, c.expected) << budget;
      EXPECT_LE(report.peakPinned, budget);
      EXPECT_GT(2 * report.peakPinned, std::min<std::size_t>(budget, 200000)) << "the budget is there to be used";
    }
  }
}

TEST(Manager, TheDevicesThatAreNamedAreUsed)
{
  std::mt19937 random(30);
  Case         c(random, { { 12, 12, 40, 1, 1 } }, 1);
  FakeDevices  devices(3);
  const auto   manager = devices.MakeManager();
  c.request.budgets.device = 30000;
  c.request.devices = { 2, 0 };
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  EXPECT_EQ(report.deviceNames, (std::vector<std::string>{ "fake device 0", "fake device 2" }));
  EXPECT_GT(devices.fakes[0]->CountCalls("Launch") + devices.fakes[2]->CountCalls("Launch"), 0);
  EXPECT_EQ(devices.fakes[1]->CountCalls("Launch"), 0);
}

TEST(Manager, DevicesThatWouldSaveLessThanTheyTakeToStartAreLeftOut)
{
  std::mt19937 random(33);
  for (const std::int64_t planes : { 1, 60 })
  {
    Case                  c(random, { { 8, 8, planes, 1, 1 } }, 1);
    FakeDevices           devices(2);
    const ExecutionReport report = devices.MakeManager()->Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
    EXPECT_EQ(report.deviceNames.size(), planes > 1 ? 2u : 1u);
    // Nor is it asked what memory it has left, and the first one no oftener than alone.
    EXPECT_EQ(devices.fakes[1]->CountCalls("GetFreeMemory") > 0, planes > 1);
    if (planes == 1)
    {
      FakeDevices alone(1);
      c.Reset();
      alone.MakeManager()->Execute(c.request);
      EXPECT_EQ(devices.fakes[0]->CountCalls("GetFreeMemory"), alone.fakes[0]->CountCalls("GetFreeMemory"));
    }
  }
}

TEST(Manager, DevicesWithoutAKernelAreLeftOut)
{
  std::mt19937 random(31);
  Case         c(random, { { 12, 12, 40, 1, 1 } }, 1);
  const auto   without = std::make_shared<FakeDevice>(FakeDevice::Options(), GetHostKernels());
  const auto   with = std::make_shared<FakeDevice>(FakeDevice::Options(), GetTestKernels());
  Manager      alone({ without }, std::string(), &GetTestKernels());
  Manager      both({ without, with }, std::string(), &GetTestKernels());
  c.request.backend = BackendChoice::CUDA;
  try
  {
    alone.Execute(c.request);
    FAIL() << "there is no such kernel";
  }
  catch (const Error & error)
  {
    EXPECT_NE(std::string(error.what()).find("has no kernel \"test.window-sum\""), std::string::npos) << error.what();
  }
  both.Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  EXPECT_EQ(without->CountCalls("Launch"), 0);
}

TEST(Manager, EachVoxelCrossesTheLinkOnce)
{
  std::mt19937 random(12);
  Case         c(random, { { 8, 8, 256, 1, 1 } }, 2);
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  c.request.budgets.device = 50000;
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  EXPECT_GT(report.plan.chunks.size(), 4u);
  EXPECT_EQ(report.bytesToDevice, 8.0 * 8 * 256 * 4);
  EXPECT_EQ(report.bytesToHost, 8.0 * 8 * 256 * 8);
  EXPECT_EQ(report.bytesToDevice, report.plan.bytesToDevice);
}

TEST(Manager, DevicesShareTheChunks)
{
  std::mt19937 random(13);
  Case         c(random, { { 20, 20, 60, 1, 1 } }, 1);
  FakeDevices  devices(3);
  const auto   manager = devices.MakeManager();
  c.request.budgets.device = 15000;
  // The first device gets no chunk done before the others have done most of them.
  const auto done = [&] { return devices.fakes[1]->CountCalls("kernel") + devices.fakes[2]->CountCalls("kernel"); };
  const auto chunks = static_cast<int>(manager->MakePlanFor(c.request).chunks.size());
  ASSERT_GT(chunks, 12);
  devices.fakes[0]->onKernel = [&](int) {
    for (int i = 0; i < 10000 && done() < chunks * 2 / 3; ++i)
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  ASSERT_EQ(report.chunksPerDevice.size(), 3u);
  EXPECT_GE(report.chunksPerDevice[1] + report.chunksPerDevice[2], chunks * 2 / 3);
}

TEST(Manager, EveryCallMayFailOnceAndTheResultIsRight)
{
  std::mt19937 random(14);
  for (const std::string call : FakeDeviceCalls)
  {
    int number = 0;
    for (bool reached = true; reached; number += 1 + number / 3)
    {
      Case c(random, { { 9, 8, 30, 1, 1 } }, 1);
      c.request.budgets.device = 30000;
      c.request.stagingThreads = 2;
      FakeDevices devices(1);
      const auto  manager = devices.MakeManager();
      devices.fakes[0]->FailAt(call, number, false);
      const ExecutionReport report = manager->Execute(c.request);
      reached = devices.fakes[0]->CountCalls(call) > number;
      ASSERT_EQ(c.output, c.expected) << call << " number " << number;
      if (reached && call != "GetFreeMemory" && call != "Synchronize")
      {
        EXPECT_GE(report.retries + static_cast<int>(report.warnings.size()), 1) << call << " number " << number;
      }
      devices.fakes[0]->ClearFaults();
      c.Reset();
      manager->Execute(c.request);
      ASSERT_EQ(c.output, c.expected) << "the run after " << call;
    }
    EXPECT_GT(number, 1) << call << " is never called";
  }
}

TEST(Manager, AutoFallsBackToTheCpuAndSaysSo)
{
  std::mt19937 random(15);
  for (const std::string call : FakeDeviceCalls)
  {
    for (const auto kind : { DeviceError::Kind::Failed, DeviceError::Kind::OutOfMemory, DeviceError::Kind::Lost })
    {
      if (std::string("Synchronize CopyOnDevice Wait").find(call) != std::string::npos)
      {
        continue; // of no consequence where a run has one chunk or is done already
      }
      Case c(random, { { 9, 8, 12, 1, 1 } }, 1);
      c.request.budgets.device = 20000;
      FakeDevices devices(2);
      const auto  manager = devices.MakeManager();
      devices.fakes[0]->FailAt(call, 0, true, kind);
      devices.fakes[1]->FailAt(call, 0, true, kind);
      const ExecutionReport report = manager->Execute(c.request);
      ASSERT_EQ(c.output, c.expected) << call;
      EXPECT_FALSE(report.warnings.empty()) << call;
    }
  }
}

TEST(Manager, CudaThrowsWhatFailedAndCanBeUsedAgain)
{
  std::mt19937 random(16);
  for (const std::string call : FakeDeviceCalls)
  {
    for (const auto kind : { DeviceError::Kind::Failed, DeviceError::Kind::OutOfMemory })
    {
      if (call == "Synchronize")
      {
        continue; // the pipeline's only one comes when all results are in place
      }
      Case c(random, { { 9, 8, 40, 1, 1 } }, 1);
      c.request.budgets.device = 20000;
      c.request.backend = BackendChoice::CUDA;
      FakeDevices devices(1);
      const auto  manager = devices.MakeManager();
      devices.fakes[0]->FailAt(call, 0, true, kind);
      try
      {
        const ExecutionReport report = manager->Execute(c.request);
        // Smaller chunks may have done without the call.
        EXPECT_TRUE(report.retries > 0 || devices.fakes[0]->CountCalls(call) == 0) << call << " failed unnoticed";
        EXPECT_EQ(report.chunksOnHost, 0) << call;
        EXPECT_EQ(c.output, c.expected) << call;
      }
      catch (const DeviceError & error)
      {
        EXPECT_EQ(error.call, call);
        EXPECT_EQ(error.device, "fake device 0");
        const std::string text = error.what();
        EXPECT_NE(text.find(call), std::string::npos) << text;
        EXPECT_NE(text.find("fake device 0"), std::string::npos) << text;
        if (call == "Allocate")
        {
          EXPECT_GT(error.bytes, 0u);
          EXPECT_NE(text.find(std::to_string(error.bytes)), std::string::npos) << text;
        }
      }
      devices.fakes[0]->ClearFaults();
      c.Reset();
      manager->Execute(c.request);
      ASSERT_EQ(c.output, c.expected) << "the run after " << call;
    }
  }
}

TEST(Manager, ADroppedDevicesChunksAreDoneElsewhere)
{
  std::mt19937 random(17);
  for (int at = 0; at < 6; ++at)
  {
    Case c(random, { { 12, 12, 40, 1, 1 } }, 1);
    c.request.budgets.device = 30000;
    c.request.backend = BackendChoice::CUDA;
    FakeDevices devices(2);
    const auto  manager = devices.MakeManager();
    devices.fakes[0]->FailAt("kernel", at, true);
    const ExecutionReport report = manager->Execute(c.request);
    ASSERT_EQ(c.output, c.expected);
    EXPECT_GT(report.chunksPerDevice[1], 0);
    EXPECT_EQ(report.chunksOnHost, 0);
    EXPECT_EQ(report.retries > 0, devices.fakes[0]->CountCalls("kernel") > at);
    for (const std::string & warning : report.warnings)
    {
      EXPECT_NE(warning.find("fake device 0"), std::string::npos);
    }
  }
}

TEST(Manager, HalvesChunksWhenMemoryRunsOut)
{
  std::mt19937 random(18);
  Case         c(random, { { 16, 16, 32, 1, 1 } }, 1);
  c.request.backend = BackendChoice::CUDA;
  FakeDevice::Options options;
  FakeDevices         devices(1, options);
  const auto          manager = devices.MakeManager();
  const std::size_t   planned = manager->MakePlanFor(c.request).deviceBytes;
  // Another program takes memory between the plan and the allocations.
  devices.fakes[0]->FailAt("Allocate", 1, false, DeviceError::Kind::OutOfMemory);
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  EXPECT_EQ(report.retries, 1);
  EXPECT_GT(planned, 0u);
}

TEST(Manager, ALostDeviceIsNotUsedAgain)
{
  std::mt19937 random(19);
  Case         c(random, { { 9, 8, 12, 1, 1 } }, 1);
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  devices.fakes[0]->FailAt("Launch", 0, false, DeviceError::Kind::Lost);
  EXPECT_FALSE(manager->Execute(c.request).warnings.empty());
  EXPECT_EQ(c.output, c.expected);
  const int launches = devices.fakes[0]->CountCalls("Launch");
  c.Reset();
  manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  EXPECT_EQ(devices.fakes[0]->CountCalls("Launch"), launches);
  c.request.backend = BackendChoice::CUDA;
  try
  {
    manager->Execute(c.request);
    FAIL() << "a lost device was used";
  }
  catch (const Error & error)
  {
    EXPECT_NE(std::string(error.what()).find("lost"), std::string::npos) << error.what();
  }
}

TEST(Manager, BudgetTooSmallIsSaidBeforeWorkStarts)
{
  std::mt19937 random(20);
  Case         c(random, { { 20, 20, 20, 1, 1 } }, 8);
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  c.request.budgets.device = 10000;
  c.request.backend = BackendChoice::CUDA;
  try
  {
    manager->Execute(c.request);
    FAIL() << "17^3 voxels fit into 10000 bytes";
  }
  catch (const BudgetError & error)
  {
    EXPECT_GT(error.needed, error.budget);
    EXPECT_EQ(error.budget, 10000u);
  }
  EXPECT_EQ(devices.fakes[0]->CountCalls("Allocate"), 0);
  EXPECT_TRUE(std::all_of(c.output.begin(), c.output.end(), [](std::int64_t v) { return v == Untouched; }));
  c.request.backend = BackendChoice::Auto;
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  EXPECT_EQ(report.backend, "cpu");
  EXPECT_EQ(report.warnings.size(), 1u);
}

TEST(Manager, BadRequestsAreRefusedBeforeWorkStarts)
{
  std::mt19937 random(21);
  const Case   good(random, { { 9, 8, 12, 1, 1 } }, 1);
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  const auto   refuse = [&](const char * what, auto && change) {
    ExecutionRequest request = good.request;
    change(request);
    EXPECT_THROW(manager->Execute(request), ParameterError) << what;
  };
  refuse("no operation", [](ExecutionRequest & r) { r.operation.reset(); });
  refuse("no input", [](ExecutionRequest & r) { r.inputs.clear(); });
  refuse("region outside", [](ExecutionRequest & r) { r.region.upper[0] = 10; });
  refuse("input without its halo", [](ExecutionRequest & r) { r.inputs[0].box.upper[2] = 11; });
  refuse("output too small", [](ExecutionRequest & r) { r.output.box.upper[1] = 7; });
  refuse("kind", [](ExecutionRequest & r) { r.output.kind = PixelType::Float32; });
  refuse("device", [](ExecutionRequest & r) { r.devices = { 1 }; });
  EXPECT_EQ(devices.fakes[0]->CountCalls("Allocate"), 0);
}

TEST(Manager, NoDeviceIsSaid)
{
  std::mt19937 random(22);
  Case         c(random, { { 9, 8, 12, 1, 1 } }, 1);
  const auto   manager = FakeDevices(0).MakeManager();
  c.request.backend = BackendChoice::CUDA;
  try
  {
    manager->Execute(c.request);
    FAIL() << "there is no device";
  }
  catch (const Error & error)
  {
    EXPECT_NE(std::string(error.what()).find("none was made"), std::string::npos) << error.what();
  }
  c.request.backend = BackendChoice::Auto;
  EXPECT_EQ(manager->Execute(c.request).backend, "cpu");
  EXPECT_EQ(c.output, c.expected);
}

TEST(Manager, AnEmptyRegionIsDone)
{
  std::mt19937 random(23);
  Case         c(random, { { 9, 8, 12, 1, 1 } }, 1);
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  c.request.region.upper[1] = c.request.region.lower[1];
  manager->Execute(c.request);
  EXPECT_TRUE(std::all_of(c.output.begin(), c.output.end(), [](std::int64_t v) { return v == Untouched; }));
}

TEST(Manager, ProgressRisesFromZeroToOne)
{
  std::mt19937 random(24);
  for (std::size_t count = 0; count < 3; ++count)
  {
    Case        c(random, { { 16, 16, 60, 1, 1 } }, 2);
    FakeDevices devices(count);
    const auto  manager = devices.MakeManager();
    for (const auto & fake : devices.fakes)
    {
      fake->onKernel = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(15)); };
    }
    c.request.budgets.device = 60000;
    RecordingMonitor monitor;
    manager->Execute(c.request, &monitor);
    ASSERT_GE(monitor.fractions.size(), 2u);
    EXPECT_EQ(monitor.fractions.front(), 0.0);
    EXPECT_EQ(monitor.fractions.back(), 1.0);
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    EXPECT_EQ(std::count(monitor.fractions.begin(), monitor.fractions.end(), 1.0), 1);
    if (count > 0)
    {
      EXPECT_GT(monitor.fractions.size(), 3u);
    }
  }
}

TEST(Manager, AbortStopsWithinAChunkAndTheManagerCanBeUsedAgain)
{
  std::mt19937 random(25);
  for (const double at : { 0.0, 0.2, 0.4 })
  {
    Case        c(random, { { 16, 16, 60, 1, 1 } }, 1);
    FakeDevices devices(2);
    const auto  manager = devices.MakeManager();
    for (const auto & fake : devices.fakes)
    {
      fake->onKernel = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
    }
    c.request.budgets.device = 15000;
    RecordingMonitor monitor;
    monitor.abortAt = at;
    EXPECT_THROW(manager->Execute(c.request, &monitor), Aborted);
    EXPECT_NE(monitor.fractions.back(), 1.0);
    const auto chunks = static_cast<int>(manager->MakePlanFor(c.request).chunks.size());
    EXPECT_LT(devices.fakes[0]->CountCalls("Launch") + devices.fakes[1]->CountCalls("Launch"), chunks);
    c.Reset();
    for (const auto & fake : devices.fakes)
    {
      fake->onKernel = nullptr;
    }
    manager->Execute(c.request);
    ASSERT_EQ(c.output, c.expected);
  }
}

/** By the caller's thread, without others; the monitor is asked before it. */
TEST(Manager, ShortRunsGiveTheSame)
{
  std::mt19937 random(27);
  FakeDevices  none(0);
  const auto   manager = none.MakeManager();
  for (int trial = 0; trial < 20; ++trial)
  {
    Case c(random, 14, 2);
    c.request.isShort = true;
    RecordingMonitor monitor;
    manager->Execute(c.request, &monitor);
    ASSERT_EQ(c.output, c.expected);
    EXPECT_EQ(monitor.fractions, (std::vector<double>{ 0.0, 1.0 }));
    c.Reset();
    RecordingMonitor aborting;
    aborting.abortAt = 0.0;
    EXPECT_THROW(manager->Execute(c.request, &aborting), Aborted);
    RecordingMonitor throwing;
    throwing.throws = true;
    EXPECT_THROW(manager->Execute(c.request, &throwing), std::runtime_error);
  }
}

TEST(Manager, WhatTheMonitorThrowsReachesTheCaller)
{
  std::mt19937 random(26);
  Case         c(random, { { 16, 16, 60, 1, 1 } }, 1);
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  devices.fakes[0]->onKernel = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(15)); };
  c.request.budgets.device = 30000;
  RecordingMonitor monitor;
  monitor.throws = true;
  EXPECT_THROW(manager->Execute(c.request, &monitor), std::runtime_error);
}

TEST(Manager, SeveralRunsAtOnceShareDevicesAndBudgets)
{
  RunAtOnceOnTwoDevices(6, [](Manager & manager, std::mt19937 & random, unsigned int t) {
    Case c(random, { { 10, 12, 20, 1, 1 } }, 1 + static_cast<std::int64_t>(t % 2));
    c.request.hostTakesChunks = t % 3 == 0;
    manager.Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
  });
}

TEST(Manager, MemoryIsKeptBetweenRunsAndGivenBackOnRequest)
{
  std::mt19937 random(27);
  Case         c(random, { { 9, 8, 12, 1, 1 } }, 1);
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  manager->Execute(c.request);
  const int allocations = devices.fakes[0]->CountCalls("Allocate");
  manager->Execute(c.request);
  EXPECT_EQ(devices.fakes[0]->CountCalls("Allocate"), allocations);
  EXPECT_GT(devices.fakes[0]->CountLive(), 0);
  manager->ReleaseMemory();
  EXPECT_EQ(devices.fakes[0]->CountLive(), 0);
}

} // namespace
