/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseExecutor.h"
#include "chunkwiseHostMemory.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#if defined(__linux__)
#  include <sched.h>
#endif

using namespace chunkwise;

namespace
{

/** A machine of files. */
class HostMemory : public testing::Test
{
protected:
  HostMemory()
  {
    do
    {
      m_Root =
        (std::filesystem::temp_directory_path() / ("chunkwise-" + std::to_string(std::random_device()()))).string();
    } while (!std::filesystem::create_directory(m_Root));
    Write("/proc/meminfo", "MemTotal:  2000 kB\nMemFree:  10 kB\nMemAvailable:    1000 kB\n");
  }
  ~HostMemory() override { std::filesystem::remove_all(m_Root); }

  void
  Write(const std::string & path, const std::string & text) const
  {
    const std::filesystem::path file = m_Root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void
  MountVersion2(const std::string & group) const
  {
    Write("/proc/self/mountinfo",
          "22 27 0:21 / /proc rw - proc proc rw\n"
          "30 22 0:26 " +
            group + " /sys/fs/cgroup rw,nosuid shared:4 master:9 - cgroup2 cgroup2 rw,nsdelegate\n");
  }
  void
  MountVersion1(const std::string & group) const
  {
    Write("/proc/self/mountinfo",
          "31 22 0:27 " + group + " /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n" + "32 22 0:28 " + group +
            " /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
  }

  std::string m_Root;
};

TEST_F(HostMemory, WithoutGroupsIsWhatTheMachineHas)
{
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 1000u << 10);
  Write("/proc/self/cgroup", "0::/\n");
  MountVersion2("/");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 1000u << 10);
}

TEST_F(HostMemory, ProcessorsAreThoseOfTheGroupOrOfOneAround)
{
  const unsigned int ofMachine = GetNumberOfProcessors(m_Root);
  ASSERT_GE(ofMachine, 1u);
  Write("/proc/self/cgroup", "0::/job/step\n");
  MountVersion2("/");
  Write("/sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_EQ(GetNumberOfProcessors(m_Root), ofMachine);
  Write("/sys/fs/cgroup/job/cpu.max", "100001 100000\n");
  EXPECT_EQ(GetNumberOfProcessors(m_Root), std::min(2u, ofMachine));
  Write("/sys/fs/cgroup/job/step/cpu.max", "50000 100000\n");
  EXPECT_EQ(GetNumberOfProcessors(m_Root), 1u);
  Write("/proc/self/cgroup", "3:memory:/job\n2:cpu:/job\n");
  MountVersion1("/");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(GetNumberOfProcessors(m_Root), ofMachine);
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "10000\n");
  EXPECT_EQ(GetNumberOfProcessors(m_Root), 1u);
}

#if defined(__linux__)
TEST_F(HostMemory, ProcessorsAreThoseThatTheThreadIsBoundTo)
{
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  for (std::size_t i = 0; CPU_COUNT(&one) == 0; ++i)
  {
    if (CPU_ISSET(i, &before))
    {
      CPU_SET(i, &one);
    }
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(GetNumberOfProcessors(), 1u);
  EXPECT_EQ(MakeThreadExecutor()->GetConcurrency(), 1u);
  ASSERT_EQ(sched_setaffinity(0, sizeof(before), &before), 0);
}
#endif

TEST_F(HostMemory, OfAGroupOfVersion2IsWhatItsLimitLeaves)
{
  Write("/proc/self/cgroup", "0::/job/step\n");
  MountVersion2("/");
  const std::string group = "/sys/fs/cgroup/job/step";
  Write(group + "/memory.max", "500000\n");
  Write(group + "/memory.current", "300000\n");
  Write(group + "/memory.stat", "anon 100000\ninactive_file 50000\nactive_file 7\n");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 250000u);
  Write(group + "/memory.high", "max\n");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 250000u);
  Write(group + "/memory.high", "400000\n");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 150000u);
  Write(group + "/memory.current", "900000\n");
  Write(group + "/memory.stat", "inactive_file 1\n");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 1u);
  Write(group + "/memory.max", "max\n");
  Write(group + "/memory.high", "max\n");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 1000u << 10);
}

TEST_F(HostMemory, TheTightestOfTheGroupsAroundCounts)
{
  Write("/proc/self/cgroup", "1:name=systemd:/else\n0::/job/step/task\n");
  MountVersion2("/");
  Write("/sys/fs/cgroup/job/step/task/memory.max", "max\n");
  Write("/sys/fs/cgroup/job/step/memory.max", "900000\n");
  Write("/sys/fs/cgroup/job/step/memory.current", "0\n");
  Write("/sys/fs/cgroup/job/memory.max", "700000\n");
  Write("/sys/fs/cgroup/job/memory.current", "100000\n");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 600000u);
}

TEST_F(HostMemory, OfAGroupOfVersion1)
{
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/other\n4:hugetlb,memory:/slurm/job\n");
  MountVersion1("/");
  Write("/sys/fs/cgroup/memory/slurm/job/memory.limit_in_bytes", "9223372036854771712\n");
  Write("/sys/fs/cgroup/memory/slurm/job/memory.usage_in_bytes", "5\n");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 1000u << 10);
  Write("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "600000\n");
  Write("/sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "500000\n");
  Write("/sys/fs/cgroup/memory/slurm/memory.stat", "inactive_file 9\ntotal_inactive_file 100000\n");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 200000u);
}

/** A container's mount shows the container's group as the top; the file of the process may name it from outside. */
TEST_F(HostMemory, InAContainer)
{
  for (const bool isNamed : { true, false })
  {
    Write("/proc/self/cgroup", isNamed ? "4:memory:/docker/abc\n" : "4:memory:/\n");
    MountVersion1(isNamed ? "/docker/abc" : "/");
    Write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
    Write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "100000\n");
    EXPECT_EQ(GetAvailableHostMemory(m_Root), 200000u);
  }
  Write("/proc/self/cgroup", "4:memory:/../elsewhere\n");
  MountVersion1("/docker/abc");
  EXPECT_EQ(GetAvailableHostMemory(m_Root), 200000u);
}

TEST_F(HostMemory, OfTheProcess)
{
  EXPECT_EQ(GetPeakHostMemory(m_Root), 0u);
  Write("/proc/self/status", "Name:\tx\nVmPeak:\t9 kB\nVmHWM:\t   70 kB\nVmRSS:\t   60 kB\n");
  EXPECT_EQ(GetPeakHostMemory(m_Root), 70u << 10);
  EXPECT_EQ(GetResidentHostMemory(m_Root), 60u << 10);
  EXPECT_EQ(GetAvailableHostMemory(m_Root + "/nowhere"), 0u);
  const std::size_t before = GetResidentHostMemory();
  EXPECT_GT(before, 0u);
  EXPECT_GE(GetPeakHostMemory(), before);
  std::vector<char> more(64 << 20, 1);
  EXPECT_GE(GetResidentHostMemory(), before + (60 << 20)) << more[5];
  EXPECT_GT(GetAvailableHostMemory(), 0u);
}

} // namespace
