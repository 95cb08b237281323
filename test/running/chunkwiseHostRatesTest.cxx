/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostRates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <utility>

using namespace chunkwise;

TEST(HostRates, AreMeasuredOnce)
{
  const double first = GetHostCopyRate();
  EXPECT_TRUE(std::isfinite(first) && first > 0);
  EXPECT_EQ(first, GetHostCopyRate());
}

TEST(HostRates, SlowThreadsAreMore)
{
  const auto find = [](double rate, double ofThread, unsigned int processors) {
    const TransferThreads threads = FindTransferThreads(rate, rate, ofThread, processors);
    return std::make_pair(threads.gathering, threads.scattering);
  };
  // A quarter more than 50 / 5, and than 50 / (5 * 5 / 3).
  EXPECT_EQ(find(50e9, 5e9, 64), std::make_pair(13u, 8u));
  EXPECT_EQ(find(25e9, 5e9, 64), std::make_pair(7u, 4u));
  EXPECT_EQ(find(1e9, 5e9, 64), std::make_pair(1u, 1u));
  // However fast a thread is alone.
  EXPECT_EQ(find(50e9, 100e9, 64), find(50e9, 10e9, 64));
  EXPECT_GT(find(50e9, 100e9, 64).first, 50 / 10);
}

TEST(HostRates, ThreadsOfBothDirectionsShareTheProcessors)
{
  for (unsigned int processors = 1; processors < 70; ++processors)
  {
    const TransferThreads threads = FindTransferThreads(50e9, 50e9, 1e8, processors);
    EXPECT_GE(threads.gathering, 1u);
    EXPECT_GE(threads.scattering, 1u);
    EXPECT_LE(threads.gathering + threads.scattering, std::max(processors, 2u));
    EXPECT_GE(threads.gathering + threads.scattering + 1, processors);
  }
}

TEST(HostRates, DevicesShareTheProcessors)
{
  const unsigned int    processors = std::max(std::thread::hardware_concurrency(), 1u);
  const TransferThreads alone = FindTransferThreads(50e9, 50e9, 1);
  for (const unsigned int devices : { 2u, 3u, 100u })
  {
    const TransferThreads threads = FindTransferThreads(50e9, 50e9, devices);
    EXPECT_LE(threads.gathering, alone.gathering);
    EXPECT_LE(threads.scattering, alone.scattering);
    EXPECT_LE(devices * (threads.gathering + threads.scattering), std::max(processors, 2 * devices));
  }
}
