/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// What only the CUDA backend promises; chunkwiseDeviceTest.cxx has what every device does.
#include "chunkwiseComputeSanitizer.h"
#include "chunkwiseDevice.h"
#include "chunkwiseError.h"
#include "chunkwiseOperations.h"
#include "chunkwiseOracle.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <link.h>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

class CudaDeviceTest : public testing::Test
{
protected:
  void
  SetUp() override
  {
    std::string reason;
    const auto  backend = GetCudaBackend(&reason);
    if (!backend)
    {
      GTEST_SKIP() << reason;
    }
    m_Devices = backend->GetDevices();
  }

  std::vector<std::shared_ptr<Device>> m_Devices;
};

TEST_F(CudaDeviceTest, DescriptionIsThatOfADevice)
{
  for (std::size_t i = 0; i < m_Devices.size(); ++i)
  {
    const DeviceDescription & description = m_Devices[i]->GetDescription();
    EXPECT_EQ(description.index, static_cast<int>(i));
    EXPECT_EQ(description.backend, "cuda");
    EXPECT_NE(description.name.find(std::to_string(i)), std::string::npos) << "errors name it: " << description.name;
    EXPECT_GT(description.totalMemory, 0u);
    EXPECT_GT(description.memoryRate, description.toDeviceRate);
    EXPECT_EQ(std::count(description.busAddress.begin(), description.busAddress.end(), ':'), 2)
      << description.busAddress;
  }
}

TEST_F(CudaDeviceTest, KnowsPinnedMemory)
{
  for (const auto & device : m_Devices)
  {
    constexpr std::size_t   bytes = 1 << 20;
    char * const            pinned = static_cast<char *>(device->AllocatePinned(bytes));
    const std::vector<char> pageable(bytes);
    EXPECT_TRUE(device->IsPinned(pinned, bytes));
    EXPECT_TRUE(device->IsPinned(pinned + 1000, bytes - 1000));
    EXPECT_FALSE(device->IsPinned(pageable.data(), bytes));
    EXPECT_FALSE(device->IsPinned(pinned, std::size_t{ 1 } << 32)) << "the last byte is not";
    device->FreePinned(pinned);
    void * const onDevice = device->Allocate(bytes);
    EXPECT_FALSE(device->IsPinned(onDevice, bytes));
    device->Free(onDevice);
  }
}

TEST_F(CudaDeviceTest, KernelsCopyVoxelsFromAndToPinnedMemory)
{
  constexpr std::int64_t count = 100003;
  constexpr std::size_t  bytes = count * sizeof(std::uint64_t);
  const Box              box = Box::FromExtent({ { count, 1, 1, 1, 1 } });
  // Memory that another device pinned works too.
  auto * const pinned = static_cast<std::uint64_t *>(m_Devices.front()->AllocatePinned(2 * bytes));
  for (const auto & device : m_Devices)
  {
    for (std::int64_t i = 0; i < count; ++i)
    {
      pinned[i] = static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15u;
      pinned[count + i] = 0;
    }
    void * const       onDevice = device->Allocate(bytes);
    const StreamHandle stream = device->CreateStream();
    const BufferView   between = DenseView(onDevice, PixelType::UInt64, box);
    device->CopyVoxels(between, DenseView(pinned, PixelType::UInt64, box), box, stream);
    device->CopyVoxels(DenseView(pinned + count, PixelType::UInt64, box), between, box, stream);
    device->Synchronize(stream);
    EXPECT_TRUE(std::equal(pinned, pinned + count, pinned + count));
    device->DestroyStream(stream);
    device->Free(onDevice);
  }
  m_Devices.front()->FreePinned(pinned);
}

/** The view of an image whose pixels have their components side by side, or each component's plane apart. */
BufferView
ViewComponents(void * data, PixelType kind, const Coordinates & extent, bool together)
{
  BufferView         view = DenseView(data, kind, Box::FromExtent(extent));
  const std::int64_t components = extent[MaxDimension - 1];
  for (int a = 0; a < MaxDimension; ++a)
  {
    view.stride[a] = !together ? view.stride[a] : a == MaxDimension - 1 ? 1 : view.stride[a] * components;
  }
  return view;
}

TEST_F(CudaDeviceTest, PixelsAreTakenApartAndPutTogether)
{
  std::mt19937           random(3);
  constexpr std::int64_t most = 80 * 6 * 4 * 4;
  constexpr std::size_t  bytes = 8 * most;
  auto * const           pinned = static_cast<unsigned char *>(m_Devices.front()->AllocatePinned(2 * bytes));
  unsigned char * const  from = pinned;
  unsigned char * const  to = pinned + bytes;
  const StreamHandle     stream = m_Devices.front()->CreateStream();
  for (std::size_t i = 0; i < bytes; ++i)
  {
    from[i] = static_cast<unsigned char>(random());
  }
  for (int trial = 0; trial < 400; ++trial)
  {
    const auto        upTo = [&](unsigned int n) { return static_cast<std::int64_t>(1 + random() % n); };
    const PixelType   kinds[] = { PixelType::UInt8, PixelType::Int16, PixelType::Float32, PixelType::Float64 };
    const PixelType   kind = kinds[random() % 4];
    const std::size_t size = PixelSize(kind);
    // Rows that begin where vectors may, or anywhere.
    const std::int64_t width = random() % 2 ? 16 * upTo(5) : upTo(80);
    const Coordinates  extent{ { width, upTo(6), upTo(4), 1, upTo(4) } };
    const bool         takesApart = random() % 2;
    const BufferView   source = ViewComponents(from, kind, extent, takesApart);
    BufferView         target = ViewComponents(to, kind, extent, !takesApart);
    if (random() % 2)
    {
      const std::int64_t skipped = upTo(extent[1]) - 1;
      Box                part = target.box;
      part.lower[1] = skipped;
      part.upper[0] = upTo(extent[0]);
      target.data = static_cast<char *>(target.data) + target.Offset(part.lower) * std::int64_t(size);
      target.box = part;
    }
    std::fill(to, to + bytes, static_cast<unsigned char>(trial));
    std::vector<unsigned char> expected(to, to + bytes);
    ForEachIndex(target.box, [&](const Coordinates & index) {
      const auto at = static_cast<unsigned char *>(target.data) - to + target.Offset(index) * std::int64_t(size);
      std::copy_n(from + source.Offset(index) * std::int64_t(size), size, expected.data() + at);
    });
    m_Devices.front()->CopyVoxels(target, source, source.box, stream);
    m_Devices.front()->Synchronize(stream);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), to))
      << PixelTypeName(kind) << " " << ToString(target.box) << (takesApart ? " apart" : " together");
  }
  m_Devices.front()->DestroyStream(stream);
  m_Devices.front()->FreePinned(pinned);
}

TEST_F(CudaDeviceTest, AFailedCallIsReportedAndDoesNoHarm)
{
  if (IsUnderComputeSanitizer())
  {
    GTEST_SKIP() << "compute-sanitizer reports the call that is to fail";
  }
  for (const auto & device : m_Devices)
  {
    const StreamHandle stream = device->CreateStream();
    char               byte = 0;
    try
    {
      device->CopyToDevice(nullptr, &byte, 1, stream);
      ADD_FAILURE() << "a copy to nowhere succeeded";
    }
    catch (const DeviceError & error)
    {
      EXPECT_EQ(error.kind, DeviceError::Kind::Failed);
      EXPECT_NE(error.call.find("cudaMemcpyAsync"), std::string::npos) << error.call;
      EXPECT_EQ(error.device, device->GetDescription().name);
      EXPECT_EQ(error.bytes, 1u);
    }
    void * const memory = device->Allocate(1);
    device->CopyToDevice(memory, &byte, 1, stream);
    device->Synchronize(stream);
    device->Free(memory);
    device->DestroyStream(stream);
  }
}

/** A kernel that reads where nothing is: the device is lost for the process, so a separate process runs it. */
void
LoseADevice(Device & device)
{
  const StreamHandle stream = device.CreateStream();
  void * const       memory = device.Allocate(4096);
  const Box          box = Box::FromExtent({ { 1024, 1, 1, 1, 1 } });
  IdentityOperation  operation;
  KernelCall         call;
  call.operation = &operation;
  call.numberOfInputs = 1;
  call.inputs[0] = DenseView(reinterpret_cast<void *>(std::uintptr_t{ 4096 }), PixelType::UInt8, box);
  call.output = DenseView(memory, PixelType::Float32, box);
  call.writable = call.image = box;
  int lost = 0;
  for (const std::function<void()> & use :
       std::vector<std::function<void()>>{ [&] {
                                            device.Launch(*device.GetKernels().Find("identity"), call, stream);
                                            device.Synchronize(stream);
                                          },
                                           [&] { device.SetToZero(memory, 4096, stream); },
                                           [&] { device.Allocate(4096); },
                                           [&] { device.CreateStream(); } })
  {
    try
    {
      use();
    }
    catch (const DeviceError & error)
    {
      lost += error.kind == DeviceError::Kind::Lost;
      std::fprintf(stderr, "%s\n", error.what());
    }
  }
  device.Free(memory);
  device.DestroyStream(stream);
  std::exit(lost == 4 ? 0 : 1);
}

TEST_F(CudaDeviceTest, ALostDeviceSaysSoToTheEnd)
{
  if (IsUnderComputeSanitizer())
  {
    GTEST_SKIP() << "compute-sanitizer reports the access that is to fail";
  }
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(LoseADevice(*m_Devices.front()), testing::ExitedWithCode(0), "");
}

/** The functions of the driver that tell which device is a thread's current one. */
struct Driver
{
  int (*getCurrent)(void **){ nullptr };
  int (*setCurrent)(void *){ nullptr };
  int (*retainPrimary)(void **, int){ nullptr };
  int (*releasePrimary)(int){ nullptr };

  Driver()
  {
    void * const library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library)
    {
      getCurrent = reinterpret_cast<int (*)(void **)>(dlsym(library, "cuCtxGetCurrent"));
      setCurrent = reinterpret_cast<int (*)(void *)>(dlsym(library, "cuCtxSetCurrent"));
      retainPrimary = reinterpret_cast<int (*)(void **, int)>(dlsym(library, "cuDevicePrimaryCtxRetain"));
      releasePrimary = reinterpret_cast<int (*)(int)>(dlsym(library, "cuDevicePrimaryCtxRelease_v2"));
    }
  }
};

void
UseEverything(Device & device)
{
  const StreamHandle      stream = device.CreateStream();
  const EventHandle       event = device.CreateEvent();
  constexpr std::size_t   bytes = 1000;
  void * const            memory = device.Allocate(bytes);
  void * const            pinned = device.AllocatePinned(bytes);
  const std::vector<char> host(bytes);
  device.GetFreeMemory();
  device.IsPinned(pinned, bytes);
  device.IsPinned(host.data(), bytes);
  device.CopyToDevice(memory, host.data(), bytes, stream);
  device.CopyToHost(pinned, memory, bytes, stream);
  device.CopyOnDevice(memory, memory, bytes, stream);
  device.SetToZero(memory, bytes, stream);
  device.Record(event, stream);
  device.Wait(stream, event);
  device.Query(event);
  device.Synchronize(stream);
  device.Free(memory);
  device.FreePinned(pinned);
  device.DestroyEvent(event);
  device.DestroyStream(stream);
}

TEST_F(CudaDeviceTest, TheCallersCurrentDeviceIsKept)
{
  if (m_Devices.size() < 2)
  {
    GTEST_SKIP() << "there is one device";
  }
  const Driver driver;
  ASSERT_TRUE(driver.getCurrent && driver.setCurrent && driver.retainPrimary && driver.releasePrimary);
  for (const auto & callers : m_Devices)
  {
    const int index = callers->GetDescription().index;
    void *    context = nullptr;
    ASSERT_EQ(driver.retainPrimary(&context, index), 0);
    std::thread([&] {
      ASSERT_EQ(driver.setCurrent(context), 0);
      for (const auto & device : m_Devices)
      {
        UseEverything(*device);
        void * current = nullptr;
        ASSERT_EQ(driver.getCurrent(&current), 0);
        EXPECT_EQ(current, context) << "of device " << index << " after work on " << device->GetDescription().index;
      }
    }).join();
    EXPECT_EQ(driver.releasePrimary(index), 0);
  }
}

/** The module as the library has opened it. */
class CudaModule : public testing::Test
{
protected:
  void
  SetUp() override
  {
    std::string reason;
    GetCudaBackend(&reason);
    std::string path;
    dl_iterate_phdr(
      [](dl_phdr_info * info, std::size_t, void * data) {
        const std::string name = info->dlpi_name;
        if (name.find("ChunkwiseCuda") != std::string::npos)
        {
          *static_cast<std::string *>(data) = name;
        }
        return 0;
      },
      &path);
    if (path.empty())
    {
      GTEST_SKIP() << "the CUDA backend is not built: " << reason;
    }
    void * const module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(module) << dlerror();
    m_Make = reinterpret_cast<MakeBackendFunction>(dlsym(module, "chunkwiseMakeBackend"));
    ASSERT_TRUE(m_Make);
  }

  MakeBackendFunction m_Make{ nullptr };
};

TEST_F(CudaModule, RefusesAnotherVersionOfTheInterface)
{
  char reason[500] = "";
  EXPECT_EQ(m_Make(BackendInterfaceVersion + 41, reason, sizeof(reason)), nullptr);
  const std::string text = reason;
  EXPECT_NE(text.find(std::to_string(BackendInterfaceVersion)), std::string::npos) << text;
  EXPECT_NE(text.find(std::to_string(BackendInterfaceVersion + 41)), std::string::npos) << text;
}

TEST_F(CudaModule, KeepsToTheRoomForItsReason)
{
  char reason[12] = "01234567890";
  EXPECT_EQ(m_Make(BackendInterfaceVersion + 1, reason, 8), nullptr);
  EXPECT_EQ(reason[7], '\0');
  EXPECT_EQ(std::string(reason + 8), "890");
}

TEST_F(CudaModule, SaysWhyThereIsNoDevice)
{
  std::string reason;
  if (GetCudaBackend(&reason))
  {
    GTEST_SKIP() << "there is a device";
  }
  EXPECT_NE(reason.find("no CUDA device"), std::string::npos) << reason;
}

TEST_F(CudaModule, MemoryCanBeLimited)
{
  if (!GetCudaBackend())
  {
    GTEST_SKIP() << "no CUDA device";
  }
  char reason[500] = "";
  ASSERT_EQ(setenv("CHUNKWISE_CUDA_DEVICE_LIMIT", "1000000", 1), 0);
  const std::unique_ptr<Backend> backend(m_Make(BackendInterfaceVersion, reason, sizeof(reason)));
  ASSERT_EQ(unsetenv("CHUNKWISE_CUDA_DEVICE_LIMIT"), 0);
  ASSERT_TRUE(backend) << reason;
  Device &     device = *backend->GetDevices().front();
  void * const most = device.Allocate(600000);
  EXPECT_EQ(device.GetFreeMemory(), 400000u);
  try
  {
    device.Allocate(600000);
    ADD_FAILURE() << "the limit does not hold";
  }
  catch (const DeviceError & error)
  {
    EXPECT_EQ(error.kind, DeviceError::Kind::OutOfMemory);
    EXPECT_EQ(error.bytes, 600000u);
  }
  device.Free(device.Allocate(400000));
  device.Free(most);
  device.Free(device.Allocate(1000000));
}

} // namespace
