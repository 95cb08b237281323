/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseArena.h"
#include "chunkwiseError.h"
#include "chunkwiseExecutor.h"
#include "chunkwiseResourceCache.h"

#include <atomic>
#include <chrono>
#include <map>
#include <new>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

using namespace chunkwise;

namespace
{

struct Place
{
  std::map<void *, std::size_t> live;
  std::size_t                   used{ 0 };
  std::size_t                   peak{ 0 };
  std::size_t                   room{ static_cast<std::size_t>(-1) };

  Arena::AllocateFunction
  Allocate()
  {
    return [this](std::size_t bytes) {
      if (used + bytes > room)
      {
        throw std::bad_alloc();
      }
      void * const block = ::operator new(bytes);
      live[block] = bytes;
      used += bytes;
      peak = std::max(peak, used);
      return block;
    };
  }
  Arena::FreeFunction
  Free()
  {
    return [this](void * block) {
      used -= live.at(block);
      live.erase(block);
      ::operator delete(block);
    };
  }
};

TEST(Arena, NeverHoldsMoreThanItsBudget)
{
  std::mt19937 random(41);
  Place        place;
  {
    Arena arena("test", "test", place.Allocate(), place.Free());
    arena.SetBudget(100000);
    std::vector<void *> blocks;
    int                 refused = 0;
    for (int i = 0; i < 3000; ++i)
    {
      if (!blocks.empty() && random() % 2)
      {
        std::swap(blocks[random() % blocks.size()], blocks.back());
        arena.Release(blocks.back());
        blocks.pop_back();
        continue;
      }
      const std::size_t limit = random() % 3 ? 0 : 50000;
      try
      {
        blocks.push_back(arena.Acquire(random() % 40000, limit));
        EXPECT_LE(arena.GetBytesInUse(), limit ? limit : 100000u);
      }
      catch (const BudgetError & error)
      {
        ++refused;
        EXPECT_EQ(error.budget, limit ? limit : 100000u);
        EXPECT_GT(error.needed, error.budget);
      }
      EXPECT_EQ(arena.GetBytesHeld(), place.used);
    }
    EXPECT_GT(refused, 10);
    EXPECT_LE(place.peak, 100000u);
    EXPECT_EQ(arena.GetPeak(), place.peak);
    for (void * block : blocks)
    {
      arena.Release(block);
    }
    EXPECT_EQ(arena.GetBytesInUse(), 0u);
    arena.SetBudget(1000);
    EXPECT_LE(place.used, 1000u);
  }
  EXPECT_TRUE(place.live.empty());
}

TEST(Arena, GivesKeptBlocksBackWhenThePlaceIsFull)
{
  Place place;
  place.room = 10000;
  Arena  arena("test", "test", place.Allocate(), place.Free());
  void * first = arena.Acquire(8000);
  EXPECT_THROW(arena.Acquire(4000), std::bad_alloc);
  arena.Release(first);
  EXPECT_EQ(place.live.size(), 1u);
  void * second = arena.Acquire(4000);
  EXPECT_NE(second, nullptr);
  arena.Release(second);
}

TEST(Arena, TakesNoBlockMuchLargerThanAskedFor)
{
  Place  place;
  Arena  arena("test", "test", place.Allocate(), place.Free());
  void * large = arena.Acquire(100000);
  arena.Release(large);
  void * small = arena.Acquire(1000);
  EXPECT_NE(small, large);
  EXPECT_LT(arena.GetBytesInUse(), 2000u);
  arena.Release(small);
}

TEST(Arena, ReusesKeptBlocks)
{
  Place  place;
  Arena  arena("test", "test", place.Allocate(), place.Free());
  void * first = arena.Acquire(5000);
  arena.Release(first);
  const std::size_t held = arena.GetBytesHeld();
  EXPECT_EQ(arena.GetBytesHeldWith(4900), held);
  EXPECT_EQ(arena.GetBytesHeldWith(100000), held + 100000);
  EXPECT_EQ(arena.Acquire(4900), first);
  EXPECT_EQ(arena.GetBytesHeldWith(4900), held + 4900) << "it is in use";
  arena.Release(first);
  arena.Trim();
  EXPECT_EQ(place.live.size(), 0u);
}

TEST(ResourceCache, MakesEachKeyOnceAndForgetsTheOldest)
{
  ResourceCache    cache(1000);
  std::atomic<int> made{ 0 };
  const auto       get = [&](const std::string & key, std::size_t bytes) {
    return cache.GetOrMake(key, [&] {
      ++made;
      return ResourceCache::Entry{ std::make_shared<std::string>(key), bytes };
    });
  };
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
  {
    threads.emplace_back([&] { EXPECT_EQ(*std::static_pointer_cast<std::string>(get("a", 400)), "a"); });
  }
  for (auto & thread : threads)
  {
    thread.join();
  }
  EXPECT_EQ(made, 1);
  get("b", 400);
  get("a", 400);
  const auto held = get("c", 400); // "b" was used longest ago
  EXPECT_LE(cache.GetBytes(), 1000u);
  EXPECT_EQ(made, 3);
  get("a", 400);
  EXPECT_EQ(made, 3);
  get("b", 400);
  EXPECT_EQ(made, 4);
  cache.Clear();
  EXPECT_EQ(cache.GetBytes(), 0u);
  EXPECT_EQ(*std::static_pointer_cast<std::string>(held), "c");
}

TEST(ResourceCache, AFailedMakeLeavesNothingBehind)
{
  ResourceCache cache(1000);
  EXPECT_THROW(cache.GetOrMake("a", []() -> ResourceCache::Entry { throw Error("no"); }), Error);
  EXPECT_EQ(cache.GetBytes(), 0u);
  const auto value = cache.GetOrMake("a", [] { return ResourceCache::Entry{ std::make_shared<int>(3), 4 }; });
  EXPECT_EQ(*std::static_pointer_cast<int>(value), 3);
}

TEST(Executor, VisitsEachIndexOnceAndRethrows)
{
  for (const unsigned int concurrency : { 1u, 2u, 5u })
  {
    const auto executor = MakeThreadExecutor(concurrency);
    EXPECT_EQ(executor->GetConcurrency(), concurrency);
    std::vector<std::atomic<int>> visits(1000);
    executor->ParallelFor(1000, [&](std::int64_t index, unsigned int worker) {
      EXPECT_LT(worker, concurrency);
      ++visits[static_cast<std::size_t>(index)];
    });
    for (const auto & count : visits)
    {
      ASSERT_EQ(count, 1);
    }
    std::atomic<int> begun{ 0 };
    EXPECT_THROW(executor->ParallelFor(100000,
                                       [&](std::int64_t index, unsigned int) {
                                         ++begun;
                                         if (index == 10)
                                         {
                                           throw Error("index 10");
                                         }
                                         if (index > 10)
                                         {
                                           // So slow that the others cannot finish before the failure is seen.
                                           std::this_thread::sleep_for(std::chrono::microseconds(100));
                                         }
                                       }),
                 Error);
    EXPECT_LT(begun, 100000);
    std::atomic<int> after{ 0 };
    executor->ParallelFor(10, [&](std::int64_t, unsigned int) { ++after; });
    EXPECT_EQ(after, 10);
    executor->ParallelFor(0, [&](std::int64_t, unsigned int) { ++after; });
    EXPECT_EQ(after, 10);
  }
}

} // namespace
