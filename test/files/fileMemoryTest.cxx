/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "fileMemory.h"

#include <gtest/gtest.h>

namespace
{

using chunkwise::files::JobMemory;
using chunkwise::files::JobShares;
using chunkwise::files::LeastOwnBytes;
using chunkwise::files::ShareJobMemory;

constexpr std::uint64_t MiB = std::uint64_t{ 1 } << 20;

JobMemory
MakeMemory(std::uint64_t total, std::size_t devices)
{
  JobMemory memory;
  memory.total = total;
  memory.devices = devices;
  memory.heldByFiles = 5 * MiB;
  return memory;
}

TEST(JobMemory, IsSharedWithoutRest)
{
  for (const std::uint64_t total : { 100 * MiB, 777 * MiB, 9000 * MiB })
  {
    for (const std::size_t devices : { 0u, 1u, 4u })
    {
      const JobShares shares = ShareJobMemory(MakeMemory(total, devices));
      if (shares.divisions > 1)
      {
        EXPECT_EQ(shares.beside + shares.divisions, total) << total << " " << devices;
      }
      EXPECT_EQ(shares.pinned > 0, devices > 0 && shares.divisions > 1) << total << " " << devices;
      EXPECT_FALSE(shares.forgoesDevices);
    }
  }
}

TEST(JobMemory, CountsSmallProcessesAlike)
{
  JobMemory       memory = MakeMemory(500 * MiB, 0);
  const JobShares none = ShareJobMemory(memory);
  memory.own = LeastOwnBytes - 1;
  EXPECT_EQ(ShareJobMemory(memory).divisions, none.divisions);
  memory.own = LeastOwnBytes + 7 * MiB;
  EXPECT_EQ(ShareJobMemory(memory).divisions, none.divisions - 7 * MiB);
  memory.heldByFiles += 3 * MiB;
  EXPECT_EQ(ShareJobMemory(memory).divisions, none.divisions - 10 * MiB);
}

TEST(JobMemory, ForgoesDevicesWhoseContextsTakeTooMuch)
{
  JobMemory memory = MakeMemory(300 * MiB, 2);
  // Nobody else may compute: what is left is too little, and the run is refused.
  EXPECT_EQ(ShareJobMemory(memory).divisions, 1u);
  memory.mayForgoDevices = true;
  const JobShares shares = ShareJobMemory(memory);
  EXPECT_TRUE(shares.forgoesDevices);
  EXPECT_EQ(shares.ofContexts, 256 * MiB);
  EXPECT_EQ(shares.pinned, 0u);
  EXPECT_EQ(shares.divisions, ShareJobMemory(MakeMemory(300 * MiB, 0)).divisions);
  memory.total = 2000 * MiB;
  EXPECT_FALSE(ShareJobMemory(memory).forgoesDevices);
}

TEST(JobMemory, KeepsTheLimitOfPinnedMemory)
{
  JobMemory memory = MakeMemory(4000 * MiB, 2);
  EXPECT_EQ(ShareJobMemory(memory).pinned, 256 * MiB) << "no more than this";
  memory.pinned = 10 * MiB;
  EXPECT_EQ(ShareJobMemory(memory).pinned, 10 * MiB);
  memory.total = 400 * MiB;
  memory.pinned = 4000 * MiB;
  const JobShares shares = ShareJobMemory(memory);
  EXPECT_LT(shares.pinned, 40 * MiB);
  EXPECT_EQ(shares.beside + shares.divisions, memory.total);
}

TEST(JobMemory, LeavesOneByteWhereTheProcessAloneTakesMore)
{
  const JobShares shares = ShareJobMemory(MakeMemory(1, 0));
  EXPECT_EQ(shares.divisions, 1u);
  EXPECT_EQ(shares.beside, LeastOwnBytes + 21 * MiB);
}

} // namespace
