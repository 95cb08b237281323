/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseRecordingMonitor.h"
#include "chunkwiseSummedAreaTableOperation.h"

#include <algorithm>
#include <atomic>
#include <random>

using namespace chunkwise;

namespace
{

constexpr std::int64_t Untouched = 0x5555555555555555;

/** A running sum along the slowest axis. */
struct Case
{
  std::vector<std::int32_t> image;
  std::vector<std::int64_t> output;
  std::vector<std::int64_t> expected;
  ExecutionRequest          request;

  Case(std::mt19937 & random, const Coordinates & extent)
  {
    const auto operation = std::make_shared<RunningSumOperation>();
    while (operation->axis > 0 && extent[operation->axis] == 1)
    {
      --operation->axis;
    }
    request.operation = operation;
    request.image = request.region = Box::FromExtent(extent);
    image.resize(static_cast<std::size_t>(request.image.NumberOfVoxels()));
    for (auto & value : image)
    {
      value = static_cast<std::int32_t>(random() % 100000) - 50000;
    }
    const auto plane = static_cast<std::size_t>(request.image.NumberOfVoxels() / extent[operation->axis]);
    for (std::size_t i = 0; i < image.size(); ++i)
    {
      expected.push_back(image[i] + (i >= plane ? expected[i - plane] : 0));
    }
    request.inputs.push_back(DenseView(image.data(), PixelType::Int32, request.image));
    request.output = DenseView(nullptr, PixelType::Int64, request.image);
    request.backend = BackendChoice::CUDA;
    Reset();
  }

  /** For chunks of this many planes, each buffer twice or three times. */
  void
  LeaveRoomFor(std::int64_t planes)
  {
    const auto plane =
      static_cast<std::size_t>(request.image.NumberOfVoxels() /
                               request.image.Extent(static_cast<const RunningSumOperation &>(*request.operation).axis));
    const auto rounded = [](std::size_t bytes) { return (bytes + 255) / 256 * 256; };
    request.budgets.device = 4 * rounded(plane * 8) + 3 * rounded(plane * 4 * static_cast<std::size_t>(planes)) +
                             2 * rounded(plane * 8 * static_cast<std::size_t>(planes));
  }

  void
  Reset()
  {
    output.assign(expected.size(), Untouched);
    request.output.data = output.data();
  }
};

TEST(Sweep, AnyChunkingAndAnyDevicesGiveTheSame)
{
  std::mt19937 random(41);
  std::size_t  most = 0;
  int          shared = 0;
  for (int trial = 0; trial < 150; ++trial)
  {
    Coordinates extent = Coordinates::Filled(1);
    for (int a = 0; a < 1 + trial % 3; ++a)
    {
      extent[a] = 1 + static_cast<std::int64_t>(random() % 17);
    }
    // Several devices take part in a sweep of many planes.
    const bool isLong = trial % 2 == 0;
    extent[trial % 3] *= isLong ? 20 : 3;
    Case                c(random, extent);
    FakeDevice::Options options;
    options.jitter = trial % 3 == 0;
    options.hostIsPinned = trial % 5 == 0;
    FakeDevices devices(random() % 4, options);
    const auto  manager = devices.MakeManager();
    c.request.backend = BackendChoice::Auto;
    c.LeaveRoomFor(1 + static_cast<std::int64_t>(random() % (isLong ? 20 : 4)));
    c.request.budgets.device += random() % 2000;
    c.request.budgets.pinned = 3000 + random() % 100000;
    c.request.hostTakesChunks = random() % 2 == 0;
    c.request.stagingThreads = 1 + random() % 3;
    const ExecutionReport report = manager->Execute(c.request);
    ASSERT_EQ(c.output, c.expected) << ToString(c.request.image) << " " << report.backend;
    EXPECT_TRUE(report.warnings.empty());
    EXPECT_LE(report.peakDevice, c.request.budgets.device);
    EXPECT_LE(report.peakPinned, c.request.budgets.pinned);
    for (const auto & fake : devices.fakes)
    {
      EXPECT_LE(fake->GetPeak(), c.request.budgets.device);
    }
    most = std::max(most, report.plan.chunks.size());
    shared +=
      std::count_if(report.chunksPerDevice.begin(), report.chunksPerDevice.end(), [](auto n) { return n > 0; }) > 1;
  }
  EXPECT_GT(most, 20u);
  EXPECT_GT(shared, 20);
}

TEST(Sweep, TheNextChunkIsLoadedWhileOneIsComputed)
{
  std::mt19937 random(42);
  Case         c(random, { { 12, 10, 40, 1, 1 } });
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  c.LeaveRoomFor(4);
  c.request.stagingThreads = 1;
  FakeDevice & fake = *devices.fakes[0];
  bool         isOverlapped = false;
  fake.onKernel = [&](int launch) {
    if (launch == 1)
    {
      // Its chunk, and one more.
      for (int i = 0; i < 5000 && fake.CountCalls("CopyToDevice") < 2; ++i)
      {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      isOverlapped = fake.CountCalls("CopyToDevice") >= 2;
    }
  };
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  ASSERT_GT(report.plan.chunks.size(), 4u);
  EXPECT_GT(report.plan.inputSlots, 1);
  EXPECT_TRUE(isOverlapped);
}

TEST(Sweep, OneDeviceKeepsItsCarryToItself)
{
  std::mt19937 random(43);
  Case         c(random, { { 12, 10, 40, 1, 1 } });
  FakeDevices  devices(1);
  const auto   manager = devices.MakeManager();
  c.LeaveRoomFor(4);
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  ASSERT_GT(report.plan.chunks.size(), 4u);
  EXPECT_EQ(report.bytesToDevice, 12.0 * 10 * 40 * 4);
  EXPECT_EQ(report.bytesToHost, 12.0 * 10 * 40 * 8);
}

TEST(Sweep, DevicesShareTheChunks)
{
  std::mt19937 random(44);
  for (std::size_t count = 2; count < 4; ++count)
  {
    Case        c(random, { { 12, 10, 90, 1, 1 } });
    FakeDevices devices(count);
    const auto  manager = devices.MakeManager();
    c.LeaveRoomFor(3);
    // None does a chunk before all have one to do.
    for (const auto & fake : devices.fakes)
    {
      fake->onKernel = [&](int launch) {
        for (int i = 0; i < 5000 && launch < 3; ++i)
        {
          if (std::all_of(devices.fakes.begin(), devices.fakes.end(), [](const auto & other) {
                return other->CountCalls("CopyToDevice") > 0;
              }))
          {
            return;
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      };
    }
    const ExecutionReport report = manager->Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
    EXPECT_GT(report.plan.chunks.size(), 10u);
    ASSERT_EQ(report.chunksPerDevice.size(), count);
    for (const std::int64_t chunks : report.chunksPerDevice)
    {
      EXPECT_GT(chunks, 0);
    }
  }
}

TEST(Sweep, CarriesMayBeAheadOfOutputs)
{
  std::mt19937 random(56);
  for (int trial = 0; trial < 4; ++trial)
  {
    const bool  isAlone = trial % 2 == 1;
    Case        c(random, { { 12, 10, 240, 1, 1 } });
    FakeDevices devices(2);
    const auto  manager = devices.MakeManager();
    c.LeaveRoomFor(14);
    // Now with room for carries in pinned memory, now without.
    c.request.budgets.pinned = trial < 2 ? 0 : 1024;
    // Stores take longer than carries; what waits for a buffer to be stored from has its carry kept.
    for (const auto & fake : devices.fakes)
    {
      fake->onCopyToHost = [](std::size_t bytes) {
        std::this_thread::sleep_for(std::chrono::microseconds(bytes == 12 * 10 * 8 ? 0 : bytes / 2));
      };
    }
    if (isAlone)
    {
      devices.fakes[1]->FailAt("CreateStream", 0, true);
    }
    const ExecutionReport report = manager->Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
    EXPECT_GT(report.plan.chunkExtent[2], 1);
    EXPECT_GT(report.plan.inputSlots, 1);
    EXPECT_EQ(report.chunksPerDevice[1] == 0, isAlone);
  }
}

TEST(Sweep, EveryCallMayFailOnceAndTheResultIsRight)
{
  std::mt19937 random(45);
  for (std::size_t count = 1; count < 3; ++count)
  {
    for (const std::string call : FakeDeviceCalls)
    {
      int number = 0;
      for (bool reached = true; reached; number += 1 + number / 2)
      {
        Case c(random, { { 7, 6, 30, 1, 1 } });
        c.LeaveRoomFor(3);
        c.request.backend = BackendChoice::Auto;
        c.request.stagingThreads = 2;
        FakeDevice::Options options;
        options.jitter = number % 2 == 0;
        FakeDevices devices(count, options);
        const auto  manager = devices.MakeManager();
        devices.fakes[0]->FailAt(call, number, false);
        const ExecutionReport report = manager->Execute(c.request);
        // A second device may leave the first nothing to do.
        reached = count == 1 ? devices.fakes[0]->CountCalls(call) > number : number < 30;
        ASSERT_EQ(c.output, c.expected) << call << " number " << number << " of " << count << " devices";
        devices.fakes[0]->ClearFaults();
        c.Reset();
        manager->Execute(c.request);
        ASSERT_EQ(c.output, c.expected) << "the run after " << call;
      }
      EXPECT_TRUE(number > 1 || call == "CopyOnDevice") << call << " is never called";
    }
  }
}

TEST(Sweep, OthersGoOnFromWhatADroppedDeviceLeft)
{
  std::mt19937 random(46);
  for (const auto kind : { DeviceError::Kind::Failed, DeviceError::Kind::Lost })
  {
    for (int at = 0; at < 16; ++at)
    {
      Case                c(random, { { 12, 10, 90, 1, 1 } });
      FakeDevice::Options options;
      options.jitter = true;
      FakeDevices devices(2 + at % 2, options);
      const auto  manager = devices.MakeManager();
      c.LeaveRoomFor(3);
      for (const std::string call : { "kernel", "CopyToHost" })
      {
        devices.fakes[static_cast<std::size_t>(at) % devices.fakes.size()]->FailAt(call, at, true, kind);
        c.Reset();
        RecordingMonitor      monitor;
        const ExecutionReport report = manager->Execute(c.request, &monitor);
        ASSERT_EQ(c.output, c.expected) << call << " number " << at;
        EXPECT_EQ(report.chunksOnHost, 0);
        EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
        EXPECT_EQ(monitor.fractions.back(), 1.0);
        for (const auto & fake : devices.fakes)
        {
          EXPECT_LE(fake->GetPeak(), c.request.budgets.device);
        }
      }
    }
  }
}

TEST(Sweep, TheCpuGoesOnFromWhatTheDevicesLeft)
{
  std::mt19937 random(47);
  for (std::size_t count = 1; count < 4; ++count)
  {
    for (int at = 0; at < 12; at += 2)
    {
      Case        c(random, { { 12, 10, 120, 1, 1 } });
      FakeDevices devices(count);
      const auto  manager = devices.MakeManager();
      c.LeaveRoomFor(1);
      c.request.backend = BackendChoice::Auto;
      for (const auto & fake : devices.fakes)
      {
        fake->FailAt("kernel", at, true);
      }
      const ExecutionReport report = manager->Execute(c.request);
      ASSERT_EQ(c.output, c.expected);
      EXPECT_GT(report.chunksOnHost, 0);
      EXPECT_FALSE(report.warnings.empty());
      c.request.backend = BackendChoice::CUDA;
      EXPECT_THROW(manager->Execute(c.request), DeviceError);
    }
  }
}

/** One of a run's first allocations fails; the chunks are halved and no CPU is needed. */
void
ExpectHalved(const ExecutionRequest & request, const std::vector<std::int64_t> & expected,
             std::vector<std::int64_t> & output, std::size_t count, int allocations)
{
  for (int k = 0; k < allocations; ++k)
  {
    FakeDevices devices(count);
    const auto  manager = devices.MakeManager();
    std::fill(output.begin(), output.end(), Untouched);
    devices.fakes[0]->FailAt("Allocate", k, false, DeviceError::Kind::OutOfMemory);
    const ExecutionReport report = manager->Execute(request);
    ASSERT_GT(report.plan.chunkExtent[2], 1);
    EXPECT_EQ(output, expected);
    EXPECT_EQ(report.chunksOnHost, 0);
    EXPECT_TRUE(report.warnings.empty());
    // A fast device may leave a slow one nothing to do.
    EXPECT_EQ(report.retries, devices.fakes[0]->CountCalls("Allocate") > k ? 1 : 0);
  }
}

TEST(Sweep, HalvesChunksWhenMemoryRunsOut)
{
  std::mt19937 random(48);
  Case         c(random, { { 4, 3, 400, 1, 1 } });
  for (std::size_t count = 1; count < 4; ++count)
  {
    ExpectHalved(c.request, c.expected, c.output, count, 4);
    c.LeaveRoomFor(6);
  }
}

TEST(Sweep, AChunkOfOnePlaneIsNotHalved)
{
  std::mt19937 random(49);
  // The swept axis is y: a plane is a row.
  Case        c(random, { { 12, 100, 1, 1, 1 } });
  FakeDevices devices(1);
  const auto  manager = devices.MakeManager();
  devices.fakes[0]->FailAt("Allocate", 0, true, DeviceError::Kind::OutOfMemory);
  EXPECT_THROW(manager->Execute(c.request), DeviceError);
  c.request.backend = BackendChoice::Auto;
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  int halvings = 0;
  for (std::int64_t rows = report.plan.chunkExtent[1]; rows > 1; rows = (rows + 1) / 2)
  {
    ++halvings;
  }
  EXPECT_GT(halvings, 0);
  EXPECT_EQ(report.retries, halvings);
}

TEST(TwoPass, HalvesChunksWhenMemoryRunsOut)
{
  std::mt19937 random(50);
  Case         c(random, { { 4, 3, 400, 1, 1 } });
  c.request.operation = std::make_shared<AboveMinimumOperation>();
  const std::int64_t smallest = *std::min_element(c.image.begin(), c.image.end());
  for (std::size_t i = 0; i < c.image.size(); ++i)
  {
    c.expected[i] = c.image[i] - smallest;
  }
  ExpectHalved(c.request, c.expected, c.output, 1, 2);
}

TEST(Fixpoint, HalvesChunksWhenMemoryRunsOut)
{
  std::mt19937              random(51);
  const Case                c(random, { { 12, 10, 120, 1, 1 } });
  std::vector<std::int32_t> marker(c.image.size(), -50000);
  std::vector<std::int32_t> output(c.image.size());
  marker[100] = c.image[100];
  ExecutionRequest request = c.request;
  request.operation = std::make_shared<FloodOperation>();
  request.inputs.assign(2, DenseView(marker.data(), PixelType::Int32, request.image));
  request.inputs[1].data = c.request.inputs[0].data;
  request.output = DenseView(output.data(), PixelType::Int32, request.image);
  request.backend = BackendChoice::CPU;
  FakeDevices(0).MakeManager()->Execute(request);
  const std::vector<std::int32_t> expected = output;
  request.backend = BackendChoice::CUDA;
  for (int k = 0; k < 4; ++k)
  {
    FakeDevices devices(1);
    const auto  manager = devices.MakeManager();
    devices.fakes[0]->FailAt("Allocate", k, false, DeviceError::Kind::OutOfMemory);
    std::fill(output.begin(), output.end(), 7);
    const ExecutionReport report = manager->Execute(request);
    EXPECT_EQ(output, expected);
    // Later allocations may be tried again once kept blocks are given back.
    EXPECT_LE(report.retries, 1);
    EXPECT_TRUE(report.retries == 1 || k > 0);
    EXPECT_TRUE(report.warnings.empty());
  }
}

TEST(Sweep, AbortStopsWithinAChunkAndTheManagerCanBeUsedAgain)
{
  std::mt19937 random(52);
  for (const double at : { 0.0, 0.2, 0.4 })
  {
    Case        c(random, { { 12, 10, 90, 1, 1 } });
    FakeDevices devices(2);
    const auto  manager = devices.MakeManager();
    for (const auto & fake : devices.fakes)
    {
      fake->onKernel = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(10)); };
    }
    c.LeaveRoomFor(2);
    RecordingMonitor monitor;
    monitor.abortAt = at;
    EXPECT_THROW(manager->Execute(c.request, &monitor), Aborted);
    EXPECT_NE(monitor.fractions.back(), 1.0);
    for (const auto & fake : devices.fakes)
    {
      fake->onKernel = nullptr;
    }
    c.Reset();
    manager->Execute(c.request);
    ASSERT_EQ(c.output, c.expected);
  }
}

TEST(Sweep, ProgressRises)
{
  std::mt19937 random(53);
  for (std::size_t count = 1; count < 4; ++count)
  {
    Case        c(random, { { 12, 10, 60, 1, 1 } });
    FakeDevices devices(count);
    const auto  manager = devices.MakeManager();
    for (const auto & fake : devices.fakes)
    {
      fake->onKernel = [](int) { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
    }
    c.LeaveRoomFor(2);
    RecordingMonitor monitor;
    manager->Execute(c.request, &monitor);
    EXPECT_EQ(monitor.fractions.front(), 0.0);
    EXPECT_EQ(monitor.fractions.back(), 1.0);
    EXPECT_TRUE(std::is_sorted(monitor.fractions.begin(), monitor.fractions.end()));
    EXPECT_GT(monitor.fractions.size(), 3u);
  }
}

TEST(Sweep, SeveralRunsAtOnceShareDevices)
{
  RunAtOnceOnTwoDevices(4, [](Manager & manager, std::mt19937 & random, unsigned int) {
    Case c(random, { { 12, 10, 40, 1, 1 } });
    manager.Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
  });
}

TEST(Sweep, WithoutAKernelForTheCarryAloneOneDeviceDoesAll)
{
  std::mt19937 random(54);
  for (std::size_t count = 0; count < 3; ++count)
  {
    Case        c(random, { { 12, 10, 60, 1, 1 } });
    FakeDevices devices(count, FakeDevice::Options(), GetKernelsWithoutAdvance());
    const auto  manager = devices.MakeManager();
    c.LeaveRoomFor(3);
    c.request.backend = BackendChoice::Auto;
    const ExecutionReport report = manager->Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
    EXPECT_EQ(report.chunksPerDevice.size(), std::min<std::size_t>(count, 1));
    EXPECT_TRUE(report.warnings.empty());
    if (count > 0)
    {
      EXPECT_GT(report.chunksPerDevice[0], 5);
      EXPECT_EQ(devices.fakes[0]->CountCalls("Launch"), report.chunksPerDevice[0]);
    }
  }
}

TEST(Sweep, ATableHasTheSameBitsOnAnyDevices)
{
  std::mt19937 random(55);
  for (const int axes : { 2, 3 })
  {
    const Box box =
      Box::FromExtent(axes == 2 ? Coordinates{ { 150, 300, 1, 1, 1 } } : Coordinates{ { 40, 30, 60, 1, 1 } });
    const auto operation = std::make_shared<SummedAreaTableOperation>();
    operation->image = box.upper;
    operation->summedAxes = axes;
    std::vector<float> image(static_cast<std::size_t>(box.NumberOfVoxels()));
    for (float & value : image)
    {
      value = static_cast<float>(random() % 100000) * 1e-3F - 30;
    }
    std::vector<double> expected(image.size());
    ExecutionRequest    request;
    request.operation = operation;
    request.image = request.region = box;
    request.inputs.push_back(DenseView(image.data(), PixelType::Float32, box));
    request.output = DenseView(expected.data(), PixelType::Float64, box);
    request.backend = BackendChoice::CPU;
    FakeDevices(0, FakeDevice::Options(), GetHostKernels()).MakeManager()->Execute(request);
    request.backend = BackendChoice::CUDA;
    for (std::size_t count = 1; count < 4; ++count)
    {
      FakeDevices         devices(count, FakeDevice::Options(), GetHostKernels());
      std::vector<double> output(image.size(), -1.0);
      request.output.data = output.data();
      request.budgets.device = 400000 + 70000 * count;
      const ExecutionReport report = devices.MakeManager()->Execute(request);
      EXPECT_EQ(output, expected) << count << " devices, " << axes << " axes";
      EXPECT_GT(report.plan.chunks.size(), 3u);
    }
  }
}

TEST(Sweep, KernelsBringCarriesPastTheCopiesOfImages)
{
  std::mt19937 random(57);
  // A carry has other bytes than any piece of the images: their chunks have more planes than one, or fewer bytes.
  constexpr std::size_t carryBytes = 12 * 10 * 8;
  for (const std::size_t pinned : { std::size_t{ 0 }, std::size_t{ 1024 } })
  {
    Case        c(random, { { 12, 10, 240, 1, 1 } });
    FakeDevices devices(2);
    const auto  manager = devices.MakeManager();
    c.LeaveRoomFor(14);
    c.request.budgets.pinned = pinned;
    std::atomic<int> copies{ 0 };
    for (const auto & fake : devices.fakes)
    {
      fake->onHostMemory = [&copies](const void *, std::size_t bytes) { copies += bytes == carryBytes ? 1 : 0; };
    }
    const ExecutionReport report = manager->Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
    EXPECT_GT(report.chunksPerDevice[0], 0);
    EXPECT_GT(report.chunksPerDevice[1], 0);
    const int kernels = devices.fakes[0]->CountCalls("CopyVoxels") + devices.fakes[1]->CountCalls("CopyVoxels");
    if (pinned == 0)
    {
      // Zeros enter the first chunk.
      EXPECT_EQ(kernels + 1, static_cast<int>(report.plan.chunks.size()));
      EXPECT_EQ(copies, 0);
    }
    else
    {
      EXPECT_LT(kernels + 1, static_cast<int>(report.plan.chunks.size())) << "the budget has no room for carries";
    }
  }
}

TEST(Sweep, DevicesThatWouldWaitForEachOtherAreLeftOut)
{
  std::mt19937 random(60);
  // A carry is a plane and takes both links; a chunk has no more than one plane, or many.
  for (const std::int64_t planes : { 1, 100 })
  {
    Case        c(random, { { 20, 20, 400, 1, 1 } });
    FakeDevices devices(2);
    c.LeaveRoomFor(planes);
    const ExecutionReport report = devices.MakeManager()->Execute(c.request);
    EXPECT_EQ(c.output, c.expected);
    EXPECT_GT(report.plan.chunks.size(), 1u);
    EXPECT_EQ(report.deviceNames.size(), planes > 1 ? 2u : 1u);
  }
}

TEST(Sweep, ACarryDoesNotWaitForWhatIsLoadedBehindItsChunk)
{
  std::mt19937 random(58);
  // Planes so large that transfers and kernels are to overlap.
  Case        c(random, { { 240, 200, 60, 1, 1 } });
  FakeDevices devices(2);
  const auto  manager = devices.MakeManager();
  c.LeaveRoomFor(3);
  c.request.stagingThreads = 1;
  const auto wait = [](const auto & until) {
    for (int i = 0; i < 5000 && !until(); ++i)
    {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return until();
  };
  // The first carry is made when the device that waits for it has enqueued the loads of two chunks. The second of these
  // stands still until that device has begun to make its own first carry.
  const Plan plan = manager->MakePlanFor(c.request);
  const auto bytesOfChunk =
    plan.chunks[0].inputBox.NumberOfVoxels() * static_cast<std::int64_t>(PixelSize(c.request.inputs[0].kind));
  std::atomic<int>          kernels[2]{};
  std::atomic<std::int64_t> loaded[2]{};
  std::atomic<bool>         isFirst{ true };
  std::atomic<bool>         hasWaited{ false };
  for (std::size_t d = 0; d < 2; ++d)
  {
    devices.fakes[d]->onKernel = [&, d](int) {
      ++kernels[d];
      if (isFirst.exchange(false))
      {
        EXPECT_TRUE(wait([&] { return loaded[1 - d] > bytesOfChunk; }));
      }
    };
    devices.fakes[d]->onCopyToDevice = [&, d](std::size_t bytes) {
      const std::int64_t before = loaded[d].fetch_add(static_cast<std::int64_t>(bytes));
      if (before == bytesOfChunk && !wait([&] { return kernels[d] > 0; }))
      {
        hasWaited = true;
      }
    };
  }
  const ExecutionReport report = manager->Execute(c.request);
  EXPECT_EQ(c.output, c.expected);
  EXPECT_GT(report.plan.inputSlots, 1);
  EXPECT_FALSE(hasWaited);
}

TEST(Sweep, CudaTablesHaveTheSameBitsOnAllDevices)
{
  Manager & manager = Manager::GetGlobal();
  if (manager.GetDevices().empty())
  {
    GTEST_SKIP() << manager.GetReasonForNoDevices();
  }
  std::mt19937 random(59);
  for (const int axes : { 2, 3 })
  {
    const Box box =
      Box::FromExtent(axes == 2 ? Coordinates{ { 1000, 6000, 1, 1, 1 } } : Coordinates{ { 200, 150, 200, 1, 1 } });
    const auto operation = std::make_shared<SummedAreaTableOperation>();
    operation->image = box.upper;
    operation->summedAxes = axes;
    std::vector<float> image(static_cast<std::size_t>(box.NumberOfVoxels()));
    for (float & value : image)
    {
      value = static_cast<float>(random() % 100000) * 1e-3F - 30;
    }
    std::vector<double> expected(image.size());
    ExecutionRequest    request;
    request.operation = operation;
    request.image = request.region = box;
    request.inputs.push_back(DenseView(image.data(), PixelType::Float32, box));
    request.output = DenseView(expected.data(), PixelType::Float64, box);
    request.backend = BackendChoice::CPU;
    manager.Execute(request);
    request.backend = BackendChoice::Auto;
    for (const bool withHost : { false, true })
    {
      for (const std::size_t pinned : { std::size_t{ 0 }, std::size_t{ 1 } << 19 })
      {
        std::vector<double> output(image.size(), -1.0);
        request.output.data = output.data();
        request.hostTakesChunks = withHost;
        request.budgets.device = std::size_t{ 20 } << 20;
        request.budgets.pinned = pinned;
        const ExecutionReport report = manager.Execute(request);
        EXPECT_EQ(output, expected) << axes << " axes, " << withHost << ", " << pinned;
        EXPECT_GT(report.plan.chunks.size(), 3u);
        EXPECT_TRUE(report.warnings.empty());
      }
    }
  }
}

} // namespace
