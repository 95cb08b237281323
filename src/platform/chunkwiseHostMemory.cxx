/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostMemory.h"

#include <algorithm>
#include <bitset>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>
#include <vector>

#if defined(__linux__)
#  include <sched.h>
#elif defined(__APPLE__)
#  include <mach/mach.h>
#elif defined(_WIN32)
#  include "chunkwiseWindows.h"
#  include <psapi.h>
#endif

namespace chunkwise
{

namespace
{

constexpr std::size_t NoLimit = std::numeric_limits<std::size_t>::max();
/** Groups of version 1 without a limit say a number near the largest. */
constexpr std::size_t LeastUnlimited = std::size_t{ 1 } << 60;

/** The bytes of a line "Name:  1234 kB". */
std::size_t
ReadKilobytes(const std::string & file, const std::string & name)
{
  std::ifstream stream(file);
  std::string   line;
  while (std::getline(stream, line))
  {
    if (line.compare(0, name.size() + 1, name + ":") == 0)
    {
      return static_cast<std::size_t>(std::strtoull(line.c_str() + name.size() + 1, nullptr, 10)) << 10;
    }
  }
  return 0;
}

/** The number in a file; `otherwise` if there is no such file, or a word in it ("max"). */
std::size_t
ReadNumber(const std::string & file, std::size_t otherwise)
{
  std::ifstream stream(file);
  std::string   word;
  if (!(stream >> word) || !std::isdigit(static_cast<unsigned char>(word[0])))
  {
    return otherwise;
  }
  return static_cast<std::size_t>(std::strtoull(word.c_str(), nullptr, 10));
}

/** The number of a line "name 1234"; 0 if there is none. */
std::size_t
ReadStatistic(const std::string & file, const std::string & name)
{
  std::ifstream stream(file);
  std::string   word;
  std::size_t   number = 0;
  while (stream >> word >> number)
  {
    if (word == name)
    {
      return number;
    }
  }
  return 0;
}

std::vector<std::string>
Split(const std::string & text, char separator)
{
  std::vector<std::string> parts;
  std::istringstream       stream(text);
  std::string              part;
  while (std::getline(stream, part, separator))
  {
    parts.push_back(part);
  }
  return parts;
}

bool
Contains(const std::string & list, const std::string & name)
{
  const std::vector<std::string> names = Split(list, ',');
  return std::find(names.begin(), names.end(), name) != names.end();
}

/** The folder where a hierarchy of groups is mounted, and the group at that folder. */
struct GroupMount
{
  bool        isVersion2;
  std::string group;
  std::string folder;
};

/** The hierarchies that a controller ("memory", "cpu") may be in. */
std::vector<GroupMount>
FindMounts(const std::string & root, const std::string & controller)
{
  // "36 35 98:0 /group /folder rw,noatime shared:1 - cgroup2 cgroup rw,memory"
  std::vector<GroupMount> mounts;
  std::ifstream           stream(root + "/proc/self/mountinfo");
  std::string             line;
  while (std::getline(stream, line))
  {
    const std::vector<std::string> words = Split(line, ' ');
    const auto                     dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 2)
    {
      continue;
    }
    const std::string kind = *(dash + 1);
    if (kind == "cgroup2" || (kind == "cgroup" && words.end() - dash > 3 && Contains(*(dash + 3), controller)))
    {
      mounts.push_back({ kind == "cgroup2", words[3], words[4] });
    }
  }
  return mounts;
}

/** The group of this process in the hierarchy; false if it is in none. */
bool
FindGroup(const std::string & root, const std::string & controller, bool isVersion2, std::string & group)
{
  // "0::/group" of version 2, "9:memory,hugetlb:/group" of version 1
  std::ifstream stream(root + "/proc/self/cgroup");
  std::string   line;
  while (std::getline(stream, line))
  {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos)
    {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (isVersion2 ? controllers.empty() : Contains(controllers, controller))
    {
      group = line.substr(second + 1);
      return true;
    }
  }
  return false;
}

/** The room that one group's own limits leave. */
std::size_t
RoomOfGroup(const std::string & folder, bool isVersion2)
{
  std::size_t limit = NoLimit;
  if (isVersion2)
  {
    // Beyond the second the group is slowed down until it hardly moves.
    limit = std::min(ReadNumber(folder + "/memory.max", NoLimit), ReadNumber(folder + "/memory.high", NoLimit));
  }
  else
  {
    limit = ReadNumber(folder + "/memory.limit_in_bytes", NoLimit);
  }
  if (limit >= LeastUnlimited)
  {
    return NoLimit;
  }
  const std::size_t used = ReadNumber(folder + (isVersion2 ? "/memory.current" : "/memory.usage_in_bytes"), 0);
  const std::size_t files =
    ReadStatistic(folder + "/memory.stat", isVersion2 ? "inactive_file" : "total_inactive_file");
  const std::size_t taken = used - std::min(used, files);
  return limit - std::min(limit, taken);
}

/** The processors' time that one group's own limit leaves, in processors: 2.5 are three that wait. */
std::size_t
ProcessorsOfGroup(const std::string & folder, bool isVersion2)
{
  // "250000 100000": microseconds of each so many, which version 1 has in two files. "max" and -1: no limit.
  std::ifstream stream(folder + "/cpu.max");
  std::string   first;
  std::size_t   period = 0;
  std::size_t   quota = NoLimit;
  const bool    isThere = isVersion2 && (stream >> first >> period);
  if (isThere && std::isdigit(static_cast<unsigned char>(first[0])))
  {
    quota = static_cast<std::size_t>(std::strtoull(first.c_str(), nullptr, 10));
  }
  else if (!isVersion2)
  {
    quota = ReadNumber(folder + "/cpu.cfs_quota_us", NoLimit);
    period = ReadNumber(folder + "/cpu.cfs_period_us", 0);
  }
  return quota == NoLimit || period == 0 ? NoLimit : std::max<std::size_t>((quota + period - 1) / period, 1);
}

/** The least that of(folder, isVersion2) says of the groups of this process, and of those around them. */
template <typename TOfGroup>
std::size_t
LeastOfGroups(const std::string & root, const std::string & controller, TOfGroup && of)
{
  std::size_t least = NoLimit;
  for (const GroupMount & mount : FindMounts(root, controller))
  {
    std::string group;
    if (!FindGroup(root, controller, mount.isVersion2, group))
    {
      continue;
    }
    // In a container the mount may show a part of the hierarchy alone, and the group may lie outside of what it shows.
    const std::string top = mount.group == "/" ? std::string() : mount.group;
    std::string       path;
    if (group.compare(0, top.size(), top) == 0 && (group.size() == top.size() || group[top.size()] == '/'))
    {
      path = group.substr(top.size());
    }
    for (bool isTop = false; !isTop;)
    {
      while (!path.empty() && path.back() == '/')
      {
        path.pop_back();
      }
      least = std::min(least, of(root + mount.folder + path, mount.isVersion2));
      isTop = path.empty();
      path.erase(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
    }
  }
  return least;
}

// Systems without files that describe them. Each function returns 0 if the system does not tell.
#if defined(_WIN32)
PROCESS_MEMORY_COUNTERS
AskProcess()
{
  PROCESS_MEMORY_COUNTERS counters{};
  counters.cb = sizeof(counters);
  if (!GetProcessMemoryInfo(GetCurrentProcess(), &counters, sizeof(counters)))
  {
    return PROCESS_MEMORY_COUNTERS{};
  }
  return counters;
}

std::size_t
AskAvailableMemory()
{
  MEMORYSTATUSEX machine{};
  machine.dwLength = sizeof(machine);
  if (!GlobalMemoryStatusEx(&machine))
  {
    return 0;
  }
  std::size_t room = static_cast<std::size_t>(std::min(machine.ullAvailPhys, machine.ullAvailPageFile));
  // The job that contains this process, a container's for example, may limit what processes commit.
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION job{};
  if (QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &job, sizeof(job), nullptr))
  {
    const std::size_t committed = AskProcess().PagefileUsage;
    const auto        limit = [&](DWORD flag, std::size_t most) {
      if (job.BasicLimitInformation.LimitFlags & flag)
      {
        room = std::min(room, most - std::min(most, committed));
      }
    };
    limit(JOB_OBJECT_LIMIT_PROCESS_MEMORY, job.ProcessMemoryLimit);
    limit(JOB_OBJECT_LIMIT_JOB_MEMORY, job.JobMemoryLimit);
  }
  return std::max<std::size_t>(room, 1);
}

std::size_t
AskPeakMemory()
{
  return AskProcess().PeakWorkingSetSize;
}

std::size_t
AskResidentMemory()
{
  return AskProcess().WorkingSetSize;
}
#elif defined(__APPLE__)
mach_task_basic_info
AskProcess()
{
  mach_task_basic_info   information{};
  mach_msg_type_number_t count = MACH_TASK_BASIC_INFO_COUNT;
  if (task_info(mach_task_self(), MACH_TASK_BASIC_INFO, reinterpret_cast<task_info_t>(&information), &count) !=
      KERN_SUCCESS)
  {
    return mach_task_basic_info{};
  }
  return information;
}

std::size_t
AskAvailableMemory()
{
  vm_statistics64_data_t pages{};
  mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
  if (host_statistics64(mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) !=
      KERN_SUCCESS)
  {
    return 0;
  }
  // Inactive pages can be taken without swapping.
  const std::size_t room = static_cast<std::size_t>(pages.free_count) + pages.inactive_count;
  return std::max<std::size_t>(room * vm_kernel_page_size, 1);
}

std::size_t
AskPeakMemory()
{
  return AskProcess().resident_size_max;
}

std::size_t
AskResidentMemory()
{
  return AskProcess().resident_size;
}
#endif

} // namespace

std::size_t
GetAvailableHostMemory(const std::string & root)
{
#if defined(_WIN32) || defined(__APPLE__)
  if (root.empty())
  {
    return AskAvailableMemory();
  }
#endif
  const std::size_t ofMachine = ReadKilobytes(root + "/proc/meminfo", "MemAvailable");
  const std::size_t room = std::min(ofMachine ? ofMachine : NoLimit, LeastOfGroups(root, "memory", RoomOfGroup));
  // Nothing left is not the same as not to know.
  return room == NoLimit ? 0 : std::max<std::size_t>(room, 1);
}

unsigned int
GetNumberOfProcessors(const std::string & root)
{
  const auto ofMachine = [](const std::string & files) {
    return std::min<std::size_t>(std::max(1u, std::thread::hardware_concurrency()),
                                 LeastOfGroups(files, "cpu", ProcessorsOfGroup));
  };
  // Reading the system's files takes some 80 us, as long as a whole call on a small image.
  static const std::size_t ofThisMachine = ofMachine(std::string());
  std::size_t              number = root.empty() ? ofThisMachine : ofMachine(root);
#if defined(__linux__)
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
  {
    number = std::min(number, static_cast<std::size_t>(CPU_COUNT(&allowed)));
  }
#elif defined(_WIN32)
  // The masks of a process that runs in several groups of 64 processors are 0.
  DWORD_PTR allowed = 0;
  DWORD_PTR ofSystem = 0;
  if (GetProcessAffinityMask(GetCurrentProcess(), &allowed, &ofSystem) && allowed)
  {
    number = std::min(number, std::bitset<64>(allowed).count());
  }
#endif
  return static_cast<unsigned int>(std::max<std::size_t>(number, 1));
}

std::size_t
GetPeakHostMemory(const std::string & root)
{
#if defined(_WIN32) || defined(__APPLE__)
  if (root.empty())
  {
    return AskPeakMemory();
  }
#endif
  return ReadKilobytes(root + "/proc/self/status", "VmHWM");
}

std::size_t
GetResidentHostMemory(const std::string & root)
{
#if defined(_WIN32) || defined(__APPLE__)
  if (root.empty())
  {
    return AskResidentMemory();
  }
#endif
  return ReadKilobytes(root + "/proc/self/status", "VmRSS");
}

} // namespace chunkwise
