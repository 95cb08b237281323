/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostRates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

using namespace chunkwise;

TEST(HostRates, AreMeasuredOnce)
{
  const double first = GetHostCopyRate();
  EXPECT_TRUE(std::isfinite(first) && first > 0);
  EXPECT_EQ(first, GetHostCopyRate());
}

TEST(HostRates, SlowThreadsAreMore)
{
  // A quarter more than 50 / 10.
  EXPECT_EQ(FindTransferThreads(50e9, 10e9, 64), 7u);
  EXPECT_EQ(FindTransferThreads(50e9, 5e9, 64), 13u);
  EXPECT_EQ(FindTransferThreads(25e9, 10e9, 64), 4u);
  EXPECT_EQ(FindTransferThreads(1e9, 10e9, 64), 1u);
}

TEST(HostRates, HalfTheProcessorsAreLeftForTheOtherDirection)
{
  EXPECT_EQ(FindTransferThreads(50e9, 1e9, 64), 32u);
  EXPECT_EQ(FindTransferThreads(50e9, 1e9, 3), 1u);
  EXPECT_EQ(FindTransferThreads(50e9, 1e9, 1), 1u);
  const unsigned int threads = FindTransferThreads(50e9);
  EXPECT_GE(threads, 1u);
  EXPECT_LE(threads, std::max(std::thread::hardware_concurrency() / 2, 1u));
  EXPECT_LE(FindTransferThreads(1e9), threads);
}
