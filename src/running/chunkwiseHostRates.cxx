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

/** More than a core's own caches hold, and little enough to be copied in a millisecond or two. */
constexpr std::int64_t TrialBytes = std::int64_t{ 4 } << 20;

double
Measure()
{
  const Box           box = Box::FromExtent({ { TrialBytes, 1, 1, 1, 1 } });
  const auto          from = std::make_unique<char[]>(TrialBytes);
  const auto          to = std::make_unique<char[]>(TrialBytes);
  const DenseSequence bytes(DenseView(from.get(), PixelKind::UInt8, box), box, box);
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

unsigned int
FindTransferThreads(double rate, double rateOfThread, unsigned int processors)
{
  const double most = std::max(processors / 2, 1u);
  return static_cast<unsigned int>(std::clamp(std::ceil(1.25 * rate / rateOfThread), 1.0, most));
}

unsigned int
FindTransferThreads(double rate)
{
  constexpr unsigned int Few = 4;
  const unsigned int     processors = GetNumberOfProcessors();
  return processors / 2 <= Few ? std::max(processors / 2, 1u)
                               : FindTransferThreads(rate, GetHostCopyRate(), processors);
}

} // namespace chunkwise
