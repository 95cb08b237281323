/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseComputeSanitizer.h"
#include "chunkwiseCudaParallelHeap.cuh"

#include <algorithm>
#include <functional>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

/** The input and the output of a heap's cycles. */
struct HeapScript
{
  int                   cycles;
  int                   nodeItems;
  std::uint32_t         mostNodes;
  const HeapItem *      added;
  const std::uint32_t * firstAdded; ///< of each cycle, and the end
  const std::uint32_t * wanted;     ///< whether a cycle is asked for items
  HeapItem *            carried;
  HeapItem *            nodes;
  HeapItem *            taken; ///< nodeItems for each cycle
  std::uint32_t *       numberTaken;
  HeapItem *            dropped; ///< as many as are added
  std::uint32_t *       numberDropped;
  std::uint32_t *       cyclesOfAll; ///< with the cycles that follow until all is taken
};

__global__ void
__launch_bounds__(HeapThreads) RunHeap(HeapScript script)
{
  extern __shared__ __align__(16) unsigned char memory[];
  __shared__ HeapState                          state;
  ParallelHeap                                  heap(
    state, reinterpret_cast<HeapItem *>(memory), script.carried, script.nodes, script.mostNodes, script.nodeItems);
  heap.Clear();
  __syncthreads();
  const int thread = static_cast<int>(threadIdx.x);
  int       given = 0;
  bool      hasRoom = true;
  for (int c = 0;; ++c)
  {
    // A cycle without room is one more before the next items come.
    const bool gives = hasRoom && given < script.cycles;
    if (gives)
    {
      for (std::uint32_t i = script.firstAdded[given] + threadIdx.x; i < script.firstAdded[given + 1]; i += HeapThreads)
      {
        heap.Add(script.added[i]);
      }
    }
    __syncthreads();
    const HeapCycle cycle = heap.Plan(!gives || script.wanted[given]);
    given += gives ? 1 : 0;
    if (cycle.total == 0 && given == script.cycles)
    {
      if (thread == 0)
      {
        *script.cyclesOfAll = static_cast<std::uint32_t>(c);
      }
      return;
    }
    heap.Merge(cycle, [&](HeapItem item) { script.dropped[atomicAdd(script.numberDropped, 1u)] = item; });
    for (int i = thread; i < cycle.taken; i += HeapThreads)
    {
      script.taken[static_cast<std::size_t>(c) * script.nodeItems + i] = heap.GetTaken()[i];
    }
    if (thread == 0)
    {
      // Together with what was given: what the order is checked with.
      script.numberTaken[2 * c] = static_cast<std::uint32_t>(cycle.taken);
      script.numberTaken[2 * c + 1] = static_cast<std::uint32_t>(given);
    }
    hasRoom = cycle.hasRoom;
    heap.MoveOn(1);
    __syncthreads();
    heap.MoveOn(2);
    __syncthreads();
  }
}

class ParallelHeapOnDevice : public testing::Test
{
protected:
  void
  SetUp() override
  {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
    {
      GTEST_SKIP() << "no CUDA device";
    }
  }
  void
  TearDown() override
  {
    for (void * const block : m_Blocks)
    {
      EXPECT_EQ(cudaFree(block), cudaSuccess);
    }
  }
  /** Memory that both sides see. */
  template <typename T>
  T *
  Allocate(std::size_t n)
  {
    void * block = nullptr;
    EXPECT_EQ(cudaMallocManaged(&block, n * sizeof(T)), cudaSuccess);
    m_Blocks.push_back(block);
    T * const items = static_cast<T *>(block);
    std::fill(items, items + n, T{ 0 });
    return items;
  }

private:
  std::vector<void *> m_Blocks;
};

/** Each cycle gives the largest of all items there are, in their order; a heap that is full drops some, but forgets
 * none. */
TEST_F(ParallelHeapOnDevice, GivesTheLargest)
{
  std::mt19937 random(17);
  std::size_t  deep = 0;
  std::size_t  dropped = 0;
  // Under it a cycle takes a thousand times as long.
  const bool isWatched = IsUnderComputeSanitizer();
  for (int trial = 0; trial < (isWatched ? 8 : 24); ++trial)
  {
    const int  nodeItems[] = { 1, 2, 3, 7, 16, 64, 200, 256 };
    HeapScript script{};
    script.nodeItems = isWatched ? nodeItems[4 + trial % 4] : nodeItems[trial % 8];
    const bool hasRoom = random() % 3 != 0;
    script.mostNodes = hasRoom ? 100000u / script.nodeItems : 1 + static_cast<std::uint32_t>(random() % 4);
    script.cycles = isWatched ? 12 : 60;
    std::vector<HeapItem>      added;
    std::vector<std::uint32_t> firstAdded{ 0 };
    std::vector<std::uint32_t> wanted;
    for (int c = 0; c < script.cycles; ++c)
    {
      // More and less than a cycle takes, in turn, and values that occur often or hardly ever.
      const int most = c / 10 % 2 ? script.nodeItems : HeapFreshItems(script.nodeItems);
      for (auto n = random() % static_cast<std::uint32_t>(most + 1); n > 0; --n)
      {
        added.push_back((HeapItem{ 1 + random() % (trial % 2 ? 5 : 1000000) } << 32) | random() % 1000);
      }
      firstAdded.push_back(static_cast<std::uint32_t>(added.size()));
      wanted.push_back(random() % 5 != 0);
    }
    const std::size_t mostCycles = script.cycles + 2 * added.size() + 100;
    const auto        copy = [&](const auto & from) {
      using Item = std::decay_t<decltype(from[0])>;
      Item * const to = Allocate<Item>(from.size() + 1);
      std::copy(from.begin(), from.end(), to);
      return to;
    };
    script.added = copy(added);
    script.firstAdded = copy(firstAdded);
    script.wanted = copy(wanted);
    script.carried = Allocate<HeapItem>(static_cast<std::size_t>((HeapLevels + 1) * script.nodeItems));
    script.nodes = Allocate<HeapItem>(std::size_t{ script.mostNodes } * script.nodeItems);
    script.taken = Allocate<HeapItem>(mostCycles * script.nodeItems);
    script.numberTaken = Allocate<std::uint32_t>(2 * mostCycles);
    script.dropped = Allocate<HeapItem>(added.size() + 1);
    script.numberDropped = Allocate<std::uint32_t>(1);
    script.cyclesOfAll = Allocate<std::uint32_t>(1);
    const auto shared = static_cast<int>(HeapSharedBytes(script.nodeItems));
    ASSERT_EQ(cudaFuncSetAttribute(RunHeap, cudaFuncAttributeMaxDynamicSharedMemorySize, shared), cudaSuccess);
    RunHeap<<<1, HeapThreads, static_cast<std::size_t>(shared)>>>(script);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);

    const std::multiset<HeapItem>                   gone(script.dropped, script.dropped + *script.numberDropped);
    std::multiset<HeapItem, std::greater<HeapItem>> held;
    std::uint32_t                                   given = 0;
    for (std::uint32_t c = 0; c < *script.cyclesOfAll; ++c)
    {
      for (; given < script.firstAdded[script.numberTaken[2 * c + 1]]; ++given)
      {
        held.insert(added[given]);
      }
      for (std::uint32_t i = 0; i < script.numberTaken[2 * c]; ++i)
      {
        const HeapItem item = script.taken[static_cast<std::size_t>(c) * script.nodeItems + i];
        if (hasRoom)
        {
          ASSERT_FALSE(held.empty());
          ASSERT_EQ(item, *held.begin()) << "trial " << trial << ", cycle " << c << ", item " << i;
        }
        const auto found = held.find(item);
        ASSERT_NE(found, held.end()) << "trial " << trial << ", cycle " << c << " gives what was not added";
        held.erase(found);
      }
    }
    ASSERT_EQ(given, added.size());
    EXPECT_EQ(std::multiset<HeapItem>(held.begin(), held.end()), gone) << "lost";
    EXPECT_TRUE(!hasRoom || gone.empty());
    deep = std::max(deep, added.size() / static_cast<std::size_t>(script.nodeItems));
    dropped += gone.size();
  }
  EXPECT_GT(deep, isWatched ? 20u : 1000u) << "no heap had many levels";
  EXPECT_TRUE(isWatched || dropped > 0) << "no heap was full";
}

} // namespace
