/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLocalProcessors.h"

#include "chunkwiseFakeDevices.h"
#include "chunkwiseOperations.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#if defined(__linux__)
#  include <pthread.h>
#  include <sched.h>
#  include <unistd.h>
#endif

using namespace chunkwise;

namespace
{

#if defined(__linux__)

std::vector<int>
GetAllowed()
{
  cpu_set_t        set;
  std::vector<int> allowed;
  EXPECT_EQ(pthread_getaffinity_np(pthread_self(), sizeof(set), &set), 0);
  for (int i = 0; i < CPU_SETSIZE; ++i)
  {
    if (CPU_ISSET(static_cast<std::size_t>(i), &set))
    {
      allowed.push_back(i);
    }
  }
  return allowed;
}

/** A system of two nodes, with a device beside some processors. */
class LocalProcessors : public testing::Test
{
protected:
  LocalProcessors()
    : m_Folder(std::filesystem::temp_directory_path() / ("chunkwise-system-" + std::to_string(getpid())))
  {
    GetSystemFolder() = m_Folder.string();
    Write("devices/system/node/online", "0-1\n");
  }
  ~LocalProcessors() override
  {
    GetSystemFolder() = "/sys";
    std::filesystem::remove_all(m_Folder);
  }
  void
  Write(const std::string & name, const std::string & text)
  {
    std::filesystem::create_directories((m_Folder / name).parent_path());
    std::ofstream(m_Folder / name) << text;
  }
  void
  PlaceDevice(const std::string & list)
  {
    Write("bus/pci/devices/0000:3b:00.0/local_cpulist", list);
  }
  const std::string address = "0000:3B:00.0";

private:
  std::filesystem::path m_Folder;
};

TEST_F(LocalProcessors, AreThoseBesideTheDeviceWhereThisThreadMayRun)
{
  const std::vector<int> allowed = GetAllowed();
  if (allowed.size() < 2)
  {
    GTEST_SKIP() << "one processor";
  }
  const std::string      last = std::to_string(allowed.back());
  const std::vector<int> own{ allowed.back() };
  PlaceDevice(last + "\n");
  EXPECT_EQ(FindLocalProcessors(address, 1), own);
  EXPECT_EQ(FindLocalProcessors(address, 2), std::vector<int>()) << "too few for so many threads";
  EXPECT_EQ(FindLocalProcessors("0000:3c:00.0", 1), std::vector<int>()) << "another device";
  EXPECT_EQ(FindLocalProcessors("", 1), std::vector<int>());
  PlaceDevice(std::to_string(allowed.back()) + "-1000,2000\n");
  EXPECT_EQ(FindLocalProcessors(address, 1), own) << "those of others do not count";
  PlaceDevice("2000-2001\n");
  EXPECT_EQ(FindLocalProcessors(address, 1), std::vector<int>()) << "none of ours";
  PlaceDevice("0-4000\n");
  EXPECT_EQ(FindLocalProcessors(address, 1), std::vector<int>()) << "all are beside it";
  for (const char * const damaged :
       { "", "\n", "x", "1-", "-1", "3-1", "0,,1", "0;1", "0-99999999999999999999", "0-70000" })
  {
    PlaceDevice(damaged);
    EXPECT_EQ(FindLocalProcessors(address, 1), std::vector<int>()) << damaged;
  }
  PlaceDevice(last);
  EXPECT_EQ(FindLocalProcessors(address, 1), own);
  Write("devices/system/node/online", "0\n");
  EXPECT_EQ(FindLocalProcessors(address, 1), std::vector<int>()) << "one node";
}

TEST_F(LocalProcessors, AThreadIsBoundUntilTheEndOfTheScope)
{
  const std::vector<int> allowed = GetAllowed();
  std::thread([&] {
    {
      const ThreadBinding none({});
      EXPECT_EQ(GetAllowed(), allowed);
      const ThreadBinding refused({ 60000 });
      EXPECT_EQ(GetAllowed(), allowed);
      const ThreadBinding binding({ allowed.back() });
      EXPECT_EQ(GetAllowed(), std::vector<int>{ allowed.back() });
    }
    EXPECT_EQ(GetAllowed(), allowed);
  }).join();
}

TEST_F(LocalProcessors, ThreadsThatCopyForADeviceAndTheirMemoryLieBesideIt)
{
  const std::vector<int> allowed = GetAllowed();
  if (allowed.size() < 2)
  {
    GTEST_SKIP() << "one processor";
  }
  PlaceDevice(std::to_string(allowed.back()));
  FakeDevice::Options options;
  options.busAddress = address;
  FakeDevices                devices(1, options, GetHostKernels());
  std::mutex                 mutex;
  std::set<std::vector<int>> ofThreads;
  devices.fakes[0]->onHostMemory = [&](const void *, std::size_t) {
    const std::lock_guard<std::mutex> lock(mutex);
    ofThreads.insert(GetAllowed());
  };
  devices.fakes[0]->onAllocatePinned = devices.fakes[0]->onHostMemory;
  const Box                 box = Box::FromExtent({ { 30, 20, 40, 1, 1 } });
  std::vector<std::uint8_t> image(static_cast<std::size_t>(box.NumberOfVoxels()), 7);
  std::vector<std::uint8_t> output(image.size());
  ExecutionRequest          request;
  request.operation = std::make_shared<IdentityOperation>();
  request.image = request.region = box;
  request.inputs.push_back(DenseView(image.data(), PixelType::UInt8, box));
  request.output = DenseView(output.data(), PixelType::UInt8, box);
  request.backend = BackendChoice::CUDA;
  request.stagingThreads = 1;
  devices.MakeManager()->Execute(request);
  EXPECT_EQ(output, image);
  EXPECT_EQ(ofThreads, std::set<std::vector<int>>{ { allowed.back() } });
  EXPECT_EQ(GetAllowed(), allowed) << "the caller's thread is as it was";
}

#endif

} // namespace
