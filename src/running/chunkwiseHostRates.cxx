/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostRates.h"

#include "chunkwiseHostCopy.h"

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
RateOf(const DenseSequence & from, char * to)
{
  const auto begin = std::chrono::steady_clock::now();
  from.Gather(0, from.GetNumberOfBytes(), to);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(from.GetNumberOfBytes()) / std::max(seconds.count(), 1e-6);
}

HostRates
Measure()
{
  const Box  box = Box::FromExtent({ { TrialBytes, 1, 1, 1, 1 } });
  const auto from = std::make_unique<char[]>(TrialBytes);
  // Not touched before the first copy: its pages are new.
  const std::unique_ptr<char[]> to(new char[TrialBytes]);
  const DenseSequence           bytes(DenseView(from.get(), PixelKind::UInt8, box), box, box);
  HostRates                     rates;
  rates.pages = RateOf(bytes, to.get());
  // The best of some: what interrupts the thread does not count.
  for (int i = 0; i < 3; ++i)
  {
    rates.memory = std::max(rates.memory, RateOf(bytes, to.get()));
  }
  return rates;
}

} // namespace

HostRates
GetHostRates()
{
  // No lock: a process may fork while another thread measures. Two threads may both do.
  static std::atomic<double> memory{ 0 };
  static std::atomic<double> pages{ 0 };
  HostRates                  rates{ memory, pages };
  if (rates.memory == 0 || rates.pages == 0)
  {
    rates = Measure();
    memory = rates.memory;
    pages = rates.pages;
  }
  return rates;
}

unsigned int
FindTransferThreads(double rate, double rateOfThread, unsigned int processors)
{
  const double most = std::max(processors / 2, 1u);
  return static_cast<unsigned int>(std::clamp(std::ceil(1.25 * rate / rateOfThread), 1.0, most));
}

unsigned int
FindTransferThreads(double rate, double HostRates::* medium)
{
  constexpr unsigned int Few = 4;
  const unsigned int     processors = std::max(std::thread::hardware_concurrency(), 1u);
  return processors / 2 <= Few ? std::max(processors / 2, 1u)
                               : FindTransferThreads(rate, GetHostRates().*medium, processors);
}

} // namespace chunkwise
