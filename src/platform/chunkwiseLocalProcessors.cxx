/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseLocalProcessors.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#if defined(__linux__)
#  include <pthread.h>
#  include <sched.h>
#endif

namespace chunkwise
{

namespace
{

/** Beyond this a list is no list of processors. */
constexpr long MostProcessors = 1 << 16;

/** The numbers in a file with a list such as "0-3,8"; empty if it is not there or is no such list. */
std::vector<int>
ReadList(const std::string & file)
{
  std::ifstream    stream(file);
  std::vector<int> numbers;
  for (char comma = ','; comma == ',';)
  {
    long first = -1;
    long last = -1;
    stream >> first;
    last = first;
    if (stream.good() && stream.peek() == '-')
    {
      stream.get();
      stream >> last;
    }
    if (stream.fail() || first < 0 || last < first || last >= MostProcessors)
    {
      return {};
    }
    for (long number = first; number <= last; ++number)
    {
      numbers.push_back(static_cast<int>(number));
    }
    comma = '\n';
    stream.clear();
    stream.get(comma);
    if (comma != ',' && comma != '\n')
    {
      return {};
    }
  }
  return numbers;
}

#if defined(__linux__)
/** Takes no memory: it is made in destructors too. */
class ProcessorSet
{
public:
  ProcessorSet() { CPU_ZERO_S(this->GetBytes(), this->Get()); }
  cpu_set_t *
  Get()
  {
    return m_Words;
  }
  std::size_t
  GetBytes() const
  {
    return sizeof(m_Words);
  }

private:
  cpu_set_t m_Words[MostProcessors / CPU_SETSIZE];
};
#endif

/** On which this thread may run. */
std::vector<int>
GetAllowed()
{
  std::vector<int> allowed;
#if defined(__linux__)
  ProcessorSet set;
  if (pthread_getaffinity_np(pthread_self(), set.GetBytes(), set.Get()) == 0)
  {
    for (int i = 0; i < MostProcessors; ++i)
    {
      if (CPU_ISSET_S(static_cast<std::size_t>(i), set.GetBytes(), set.Get()))
      {
        allowed.push_back(i);
      }
    }
  }
#endif
  return allowed;
}

bool
Allow(const std::vector<int> & processors)
{
#if defined(__linux__)
  ProcessorSet set;
  for (const int i : processors)
  {
    CPU_SET_S(static_cast<std::size_t>(i), set.GetBytes(), set.Get());
  }
  return !processors.empty() && pthread_setaffinity_np(pthread_self(), set.GetBytes(), set.Get()) == 0;
#else
  (void)processors;
  return false;
#endif
}

} // namespace

std::string &
GetSystemFolder()
{
  static std::string folder = "/sys";
  return folder;
}

std::vector<int>
FindLocalProcessors(const std::string & busAddress, std::size_t least)
{
  if (busAddress.empty() || ReadList(GetSystemFolder() + "/devices/system/node/online").size() < 2)
  {
    return {};
  }
  std::string name = busAddress;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::vector<int> beside = ReadList(GetSystemFolder() + "/bus/pci/devices/" + name + "/local_cpulist");
  std::sort(beside.begin(), beside.end());
  const std::vector<int> allowed = GetAllowed();
  std::vector<int>       local;
  std::set_intersection(beside.begin(), beside.end(), allowed.begin(), allowed.end(), std::back_inserter(local));
  return local.size() < least || local.size() == allowed.size() ? std::vector<int>() : local;
}

ThreadBinding::ThreadBinding(const std::vector<int> & processors)
{
  if (!processors.empty())
  {
    m_Before = GetAllowed();
    if (!Allow(processors))
    {
      m_Before.clear();
    }
  }
}

ThreadBinding::~ThreadBinding()
{
  Allow(m_Before);
}

} // namespace chunkwise
