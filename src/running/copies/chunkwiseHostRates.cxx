/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostRates.h"

#include "chunkwiseHostCopy.h"
#include "chunkwiseHostMemory.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

namespace chunkwise
{

namespace
{

/** Bytes a second that a thread gathers among others that copy, however fast it is alone: what it reads comes from
 * memory, not from caches. Two H100, 32 processors, one device, both directions at once, GB/s each way by 2, 4, 6, 8
 * and 12 threads each: 13.5, 26, 34, 42 and 42; an H200, 16 processors, by 1, 2, 3, 4, 6, 8 and 12: 7, 15, 20, 28, 40,
 * 42 and 39. On the former 8 threads gather 57 GB/s and scatter 93, 16 threads 95 and 138. */
constexpr double MostGathered = 6.5e9;

/** More than a core's own caches hold, and little enough to be copied in a millisecond or two. */
constexpr std::int64_t TrialBytes = std::int64_t{ 4 } << 20;

double
Measure()
{
  const Box           box = Box::FromExtent({ { TrialBytes, 1, 1, 1, 1 } });
  const auto          from = std::make_unique<char[]>(TrialBytes);
  const auto          to = std::make_unique<char[]>(TrialBytes);
  const DenseSequence bytes(DenseView(from.get(), PixelType::UInt8, box), box, box);
  double              rate = 0;
  // The best of some: what interrupts the thread does not count.
  for (int i = 0; i < 5; ++i)
  {
    const auto begin = std::chrono::steady_clock::now();
    bytes.Gather(0, bytes.GetNumberOfBytes(), to.get());
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    rate = std::max(rate, static_cast<double>(TrialBytes) / std::max(seconds.count(), 1e-6));
  }
  return rate;
}

} // namespace

double
GetHostCopyRate()
{
  // No lock: a process may fork while another thread measures. Two threads may both do.
  static std::atomic<double> known{ 0 };
  double                     rate = known;
  if (rate == 0)
  {
    rate = Measure();
    known = rate;
  }
  return rate;
}

TransferThreads
FindTransferThreads(double toDeviceRate, double toHostRate, double rateOfThread, unsigned int processors)
{
  const auto find = [](double rate, double ofThread, unsigned int most) {
    return static_cast<unsigned int>(
      std::clamp(std::ceil(1.25 * rate / ofThread), 1.0, static_cast<double>(std::max(most, 1u))));
  };
  const double gathered = std::min(rateOfThread, MostGathered);
  return { find(toDeviceRate, gathered, processors * 5 / 8), find(toHostRate, gathered * 5 / 3, processors * 3 / 8) };
}

TransferThreads
FindTransferThreads(double toDeviceRate, double toHostRate, unsigned int sharers)
{
  constexpr unsigned int Few = 4;
  const unsigned int     processors = GetNumberOfProcessors() / std::max(sharers, 1u);
  if (processors / 2 <= Few)
  {
    return { std::max(processors / 2, 1u), std::max(processors / 2, 1u) };
  }
  return FindTransferThreads(toDeviceRate, toHostRate, GetHostCopyRate(), processors);
}

} // namespace chunkwise
