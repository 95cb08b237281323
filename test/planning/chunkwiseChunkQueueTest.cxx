/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseChunkQueue.h"

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

std::vector<Chunk>
ChunksInARow(std::int64_t number)
{
  std::vector<Chunk> chunks;
  for (std::int64_t i = 0; i < number; ++i)
  {
    Chunk chunk;
    chunk.outputBox = { { { i, 0, 0, 0, 0 } }, { { i + 1, 1, 1, 1, 1 } } };
    chunks.push_back(chunk);
  }
  return chunks;
}

/** The chunk that the worker gets, -1 if there is none for it now. */
std::int64_t
Claim(ChunkQueue & queue, std::size_t worker)
{
  Chunk chunk;
  int   asked = 0;
  return queue.Claim(worker, chunk, [&asked] { return ++asked > 3; }) ? chunk.outputBox.lower[0] : -1;
}

} // namespace

TEST(ChunkQueue, AWorkerThatLoadsAheadLeavesTheOthersTheirFirstChunk)
{
  ChunkQueue queue(ChunksInARow(3), 3, 3);
  EXPECT_EQ(Claim(queue, 1), 1);
  EXPECT_EQ(Claim(queue, 1), -1);
  EXPECT_EQ(Claim(queue, 0), 0);
  // Who has nothing else to do takes it: its owner may never come.
  queue.Finish(1);
  EXPECT_EQ(Claim(queue, 1), 2);
  EXPECT_EQ(Claim(queue, 2), -1);
}

TEST(ChunkQueue, AWorkerThatHasLeftNeedsNoChunk)
{
  ChunkQueue queue(ChunksInARow(2), 2, 2);
  EXPECT_EQ(Claim(queue, 0), 0);
  EXPECT_EQ(Claim(queue, 0), -1);
  queue.Leave(1);
  EXPECT_EQ(Claim(queue, 0), 1);
}

TEST(ChunkQueue, AWorkerWithoutChunksTakesTheBackHalfOfTheLongestRange)
{
  ChunkQueue queue(ChunksInARow(8), 3, 2);
  EXPECT_EQ(Claim(queue, 0), 0);
  EXPECT_EQ(Claim(queue, 1), 4);
  EXPECT_EQ(Claim(queue, 2), 2);
  EXPECT_EQ(Claim(queue, 2), 3);
  EXPECT_EQ(Claim(queue, 2), 6);
  EXPECT_EQ(Claim(queue, 1), 5);
  EXPECT_EQ(Claim(queue, 0), 1);
  EXPECT_EQ(Claim(queue, 0), 7);
  EXPECT_EQ(Claim(queue, 0), -1);
}
