/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseBenchmarkTime_h
#define chunkwiseBenchmarkTime_h

#include <algorithm>
#include <chrono>
#include <vector>

// How benchmarks take times. Seconds.
namespace chunkwise
{

inline double
Now()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <typename TBody>
std::vector<double>
SortedSeconds(int repeats, TBody && body)
{
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i)
  {
    const double begin = Now();
    body();
    times.push_back(Now() - begin);
  }
  std::sort(times.begin(), times.end());
  return times;
}

/** The median of several runs, of two the longer. */
template <typename TBody>
double
MedianSeconds(int repeats, TBody && body)
{
  const std::vector<double> times = SortedSeconds(repeats, body);
  return times[times.size() / 2];
}

/** The same after a run for caches and memory; what takes long is run only that once. */
template <typename TBody>
double
WarmMedianSeconds(int repeats, TBody && body)
{
  const double first = MedianSeconds(1, body);
  return first > 0.5 ? first : MedianSeconds(repeats, body);
}

/** The best of several runs: what others do on the machine only adds. */
template <typename TBody>
double
BestSeconds(int repeats, TBody && body)
{
  return SortedSeconds(repeats, body)[0];
}

} // namespace chunkwise

#endif
