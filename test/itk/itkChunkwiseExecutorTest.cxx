/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "itkChunkwiseExecutor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace ChunkwiseExecutorTest
{

itk::MultiThreaderBase::Pointer
MakeMultiThreader(itk::ThreadIdType threads)
{
  const itk::MultiThreaderBase::Pointer multiThreader = itk::MultiThreaderBase::New();
  multiThreader->SetMaximumNumberOfThreads(threads);
  return multiThreader;
}

TEST(ChunkwiseExecutor, CallsEachIndexOnceWithAWorkerOfItsOwn)
{
  const auto             multiThreader = MakeMultiThreader(4);
  itk::ChunkwiseExecutor executor(multiThreader, 3);
  EXPECT_EQ(executor.GetConcurrency(), 3u);
  for (const std::int64_t count : { 0, 1, 2, 3, 1000 })
  {
    std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
    std::vector<std::atomic<int>> busy(3);
    std::atomic<bool>             shared{ false };
    executor.ParallelFor(count, [&](std::int64_t index, unsigned int worker) {
      shared = shared || busy.at(worker)++ != 0;
      ++calls[static_cast<std::size_t>(index)];
      --busy.at(worker);
    });
    EXPECT_FALSE(shared) << "two indices at once on one worker";
    for (const auto & call : calls)
    {
      EXPECT_EQ(call, 1);
    }
  }
}

TEST(ChunkwiseExecutor, HasNoMoreWorkersThanThreadsOrWorkUnits)
{
  // A pool of threads that has grown does not shrink again: the multi-threader knows what it has.
  const auto multiThreader = MakeMultiThreader(2);
  const auto threads = multiThreader->GetMaximumNumberOfThreads();
  EXPECT_GE(threads, 2u);
  EXPECT_EQ(itk::ChunkwiseExecutor(multiThreader, threads + 5).GetConcurrency(), threads);
  EXPECT_EQ(itk::ChunkwiseExecutor(multiThreader, threads - 1).GetConcurrency(), threads - 1);
  EXPECT_EQ(itk::ChunkwiseExecutor(multiThreader, 1).GetConcurrency(), 1u);
}

TEST(ChunkwiseExecutor, WorkersTakeTheNextIndexAsTheyBecomeFree)
{
  const auto             multiThreader = MakeMultiThreader(2);
  itk::ChunkwiseExecutor executor(multiThreader, 2);
  // Index 0 ends only after all others have: with fixed blocks, those of its worker never begin.
  std::atomic<int> done{ 0 };
  executor.ParallelFor(20, [&](std::int64_t index, unsigned int) {
    while (index == 0 && done < 19)
    {
      std::this_thread::yield();
    }
    ++done;
  });
  EXPECT_EQ(done, 20);
}

TEST(ChunkwiseExecutor, ThrowsTheFirstExceptionAndSkipsTheRest)
{
  for (const itk::ThreadIdType threads : { 1, 2, 4 })
  {
    const auto             multiThreader = MakeMultiThreader(threads);
    itk::ChunkwiseExecutor executor(multiThreader, threads);
    std::atomic<int>       calls{ 0 };
    EXPECT_THROW(executor.ParallelFor(100000,
                                      [&](std::int64_t index, unsigned int) {
                                        ++calls;
                                        if (index == 7)
                                        {
                                          throw std::runtime_error("seven");
                                        }
                                        // The one that throws may have to wait for a processor.
                                        std::this_thread::sleep_for(std::chrono::microseconds(index > 100 ? 100 : 0));
                                      }),
                 std::runtime_error);
    EXPECT_LT(calls, 100000);
    calls = 0;
    executor.ParallelFor(10, [&](std::int64_t, unsigned int) { ++calls; });
    EXPECT_EQ(calls, 10);
  }
}

TEST(ChunkwiseExecutor, ServesSeveralThreadsAtOnce)
{
  const auto                multiThreader = MakeMultiThreader(4);
  itk::ChunkwiseExecutor    executor(multiThreader, 4);
  std::vector<std::int64_t> sums(6, 0);
  std::vector<std::thread>  callers;
  for (std::size_t caller = 0; caller < sums.size(); ++caller)
  {
    callers.emplace_back([&, caller] {
      for (int repeat = 0; repeat < 20; ++repeat)
      {
        std::atomic<std::int64_t> sum{ 0 };
        executor.ParallelFor(100, [&](std::int64_t index, unsigned int) { sum += index; });
        sums[caller] += sum;
      }
    });
  }
  for (auto & caller : callers)
  {
    caller.join();
  }
  EXPECT_EQ(sums, std::vector<std::int64_t>(6, 20 * 4950));
}

} // namespace ChunkwiseExecutorTest
