/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What the engine relies on in a device, on the fake one and on every CUDA device.
#include "chunkwiseComputeSanitizer.h"
#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseFakeDevice.h"
#include "chunkwiseOperations.h"

#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

enum class Place
{
  Fake,
  Cuda
};

class DeviceContract : public testing::TestWithParam<Place>
{
protected:
  void
  SetUp() override
  {
    if (GetParam() == Place::Fake)
    {
      FakeDevice::Options options;
      options.jitter = true;
      m_Devices.push_back(std::make_shared<FakeDevice>(options));
      return;
    }
    std::string reason;
    const auto  backend = GetCudaBackend(&reason);
    if (!backend)
    {
      GTEST_SKIP() << reason;
    }
    m_Devices = backend->GetDevices();
  }
  void
  TearDown() override
  {
    for (const auto & device : m_Devices)
    {
      if (const auto * const fake = dynamic_cast<const FakeDevice *>(device.get()))
      {
        EXPECT_EQ(fake->CountViolations(), 0);
        EXPECT_EQ(fake->CountLive(), 0);
      }
    }
  }

  std::vector<std::shared_ptr<Device>> m_Devices;
};

/** The parts of a device that a test uses; gives them back. */
class Workbench
{
public:
  explicit Workbench(Device & device)
    : m_Device(device)
  {}
  ~Workbench()
  {
    for (void * const stream : m_Streams)
    {
      m_Device.DestroyStream(stream);
    }
    for (void * const event : m_Events)
    {
      m_Device.DestroyEvent(event);
    }
    for (void * const memory : m_Memory)
    {
      m_Device.Free(memory);
    }
    for (void * const memory : m_Pinned)
    {
      m_Device.FreePinned(memory);
    }
  }
  Workbench(const Workbench &) = delete;
  Workbench &
  operator=(const Workbench &) = delete;

  StreamHandle
  Stream()
  {
    m_Streams.push_back(m_Device.CreateStream());
    return m_Streams.back();
  }
  EventHandle
  Event()
  {
    m_Events.push_back(m_Device.CreateEvent());
    return m_Events.back();
  }
  unsigned char *
  Memory(std::size_t bytes)
  {
    m_Memory.push_back(m_Device.Allocate(bytes));
    return static_cast<unsigned char *>(m_Memory.back());
  }
  unsigned char *
  Pinned(std::size_t bytes)
  {
    m_Pinned.push_back(m_Device.AllocatePinned(bytes));
    return static_cast<unsigned char *>(m_Pinned.back());
  }

private:
  Device &            m_Device;
  std::vector<void *> m_Streams;
  std::vector<void *> m_Events;
  std::vector<void *> m_Memory;
  std::vector<void *> m_Pinned;
};

std::vector<unsigned char>
Pattern(std::size_t bytes, unsigned int seed)
{
  std::vector<unsigned char> pattern(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
  {
    pattern[i] = static_cast<unsigned char>((i * 2654435761u + seed) >> 13);
  }
  return pattern;
}

TEST_P(DeviceContract, CopiesArriveAndStayWithinTheirBytes)
{
  for (const auto & device : m_Devices)
  {
    Workbench          bench(*device);
    const StreamHandle stream = bench.Stream();
    for (const std::size_t bytes : { 1, 255, 4096, (1 << 20) + 3 })
    {
      unsigned char * const a = bench.Memory(bytes);
      unsigned char * const b = bench.Memory(bytes + 2);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 256, 0u);
      const auto pattern = Pattern(bytes, 1);
      const auto edge = Pattern(bytes + 2, 2);
      auto       result = edge;
      device->CopyToDevice(a, pattern.data(), bytes, stream);
      device->CopyToDevice(b, edge.data(), bytes + 2, stream);
      device->CopyOnDevice(b + 1, a, bytes, stream);
      device->CopyToHost(result.data(), b, bytes + 2, stream);
      device->Synchronize(stream);
      EXPECT_EQ(result.front(), edge.front());
      EXPECT_EQ(result.back(), edge.back());
      EXPECT_EQ(std::memcmp(result.data() + 1, pattern.data(), bytes), 0);
    }
  }
}

TEST_P(DeviceContract, SetToZeroKeepsItsNeighbours)
{
  for (const auto & device : m_Devices)
  {
    Workbench                  bench(*device);
    const StreamHandle         stream = bench.Stream();
    std::vector<unsigned char> bytes(1000, 0xAB);
    unsigned char * const      memory = bench.Memory(bytes.size());
    device->CopyToDevice(memory, bytes.data(), bytes.size(), stream);
    device->SetToZero(memory + 17, 301, stream);
    device->CopyToHost(bytes.data(), memory, bytes.size(), stream);
    device->Synchronize(stream);
    for (std::size_t i = 0; i < bytes.size(); ++i)
    {
      ASSERT_EQ(bytes[i], i >= 17 && i < 17 + 301 ? 0 : 0xAB) << i;
    }
  }
}

TEST_P(DeviceContract, AnEventHoldsBackAnotherStream)
{
  for (const auto & device : m_Devices)
  {
    Workbench             bench(*device);
    const StreamHandle    writer = bench.Stream();
    const StreamHandle    reader = bench.Stream();
    const EventHandle     written = bench.Event();
    constexpr std::size_t bytes = 16 << 20;
    unsigned char * const memory = bench.Memory(bytes);
    unsigned char * const from = bench.Pinned(bytes);
    unsigned char * const to = bench.Pinned(bytes);
    EXPECT_TRUE(device->Query(written)) << "an event that was never recorded holds nothing back";
    for (unsigned char round = 1; round <= 5; ++round)
    {
      std::memset(from, round, bytes);
      // Enough work that a reader who did not wait would overtake it.
      for (int i = 0; i < 8; ++i)
      {
        device->SetToZero(memory, bytes, writer);
      }
      device->CopyToDevice(memory, from, bytes, writer);
      device->Record(written, writer);
      device->Wait(reader, written);
      device->CopyToHost(to, memory, bytes, reader);
      device->Synchronize(reader);
      EXPECT_TRUE(device->Query(written));
      ASSERT_EQ(std::memcmp(to, from, bytes), 0) << "round " << +round;
    }
  }
}

TEST_P(DeviceContract, FreeMemoryCountsAllocations)
{
  for (const auto & device : m_Devices)
  {
    constexpr std::size_t bytes = std::size_t{ 256 } << 20;
    const std::size_t     before = device->GetFreeMemory();
    EXPECT_LE(before, device->GetDescription().totalMemory);
    {
      Workbench bench(*device);
      bench.Memory(bytes);
      EXPECT_LE(device->GetFreeMemory(), before - bytes);
    }
    EXPECT_GT(device->GetFreeMemory(), before - bytes);
  }
}

TEST_P(DeviceContract, RefusedMemoryIsReportedAndDoesNoHarm)
{
  if (GetParam() == Place::Cuda && IsUnderComputeSanitizer())
  {
    GTEST_SKIP() << "compute-sanitizer reports the call that is to fail";
  }
  for (const auto & device : m_Devices)
  {
    const std::size_t bytes = 2 * device->GetDescription().totalMemory;
    try
    {
      device->Free(device->Allocate(bytes));
      ADD_FAILURE() << bytes << " bytes were given";
    }
    catch (const DeviceError & error)
    {
      EXPECT_EQ(error.kind, DeviceError::Kind::OutOfMemory);
      EXPECT_EQ(error.bytes, bytes);
      EXPECT_EQ(error.device, device->GetDescription().name);
      EXPECT_FALSE(error.call.empty());
      const std::string what = error.what();
      for (const std::string & part : { error.call, error.device, std::to_string(bytes) })
      {
        EXPECT_NE(what.find(part), std::string::npos) << what;
      }
    }
    Workbench          bench(*device);
    const StreamHandle stream = bench.Stream();
    device->SetToZero(bench.Memory(1000), 1000, stream);
    device->Synchronize(stream);
  }
}

TEST_P(DeviceContract, LaunchIsOrderedWithItsStream)
{
  for (const auto & device : m_Devices)
  {
    Workbench          bench(*device);
    const StreamHandle stream = bench.Stream();
    const Box          box = { { { 3, -2, 0, 0, 0 } }, { { 103, 48, 9, 1, 2 } } };
    const auto         n = static_cast<std::size_t>(box.NumberOfVoxels());
    const auto         pattern = Pattern(n, 3);
    std::vector<float> result(n);
    IdentityOperation  operation;
    KernelCall         call;
    call.operation = &operation;
    call.numberOfInputs = 1;
    call.inputs[0] = DenseView(bench.Memory(n), PixelType::UInt8, box);
    call.output = DenseView(bench.Memory(n * sizeof(float)), PixelType::Float32, box);
    call.writable = call.image = box;
    device->CopyToDevice(call.inputs[0].data, pattern.data(), n, stream);
    device->Launch(*device->GetKernels().Find("identity"), call, stream);
    device->SetToZero(call.inputs[0].data, n, stream);
    device->CopyToHost(result.data(), call.output.data, n * sizeof(float), stream);
    device->Synchronize(stream);
    for (std::size_t i = 0; i < n; ++i)
    {
      ASSERT_EQ(result[i], static_cast<float>(pattern[i])) << i;
    }
  }
}

TEST_P(DeviceContract, ThreadsShareADevice)
{
  for (const auto & device : m_Devices)
  {
    std::vector<std::thread> threads;
    std::vector<int>         good(8, 0);
    for (std::size_t t = 0; t < good.size(); ++t)
    {
      threads.emplace_back([&, t] {
        for (unsigned int round = 0; round < 20; ++round)
        {
          Workbench                  bench(*device);
          const StreamHandle         stream = bench.Stream();
          const auto                 pattern = Pattern(10000 + 77 * t, round * 31 + static_cast<unsigned int>(t));
          std::vector<unsigned char> result(pattern.size());
          unsigned char * const      memory = bench.Memory(pattern.size());
          device->CopyToDevice(memory, pattern.data(), pattern.size(), stream);
          device->CopyToHost(result.data(), memory, pattern.size(), stream);
          device->Synchronize(stream);
          good[t] += result == pattern;
        }
      });
    }
    for (auto & thread : threads)
    {
      thread.join();
    }
    EXPECT_EQ(good, std::vector<int>(good.size(), 20));
  }
}

INSTANTIATE_TEST_SUITE_P(Fake, DeviceContract, testing::Values(Place::Fake));
INSTANTIATE_TEST_SUITE_P(Cuda, DeviceContract, testing::Values(Place::Cuda));

} // namespace
