/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
// A process that was forked after runs of its parent, or in the middle of them, computes too.
#include "chunkwiseError.h"
#include "chunkwiseFakeDevices.h"
#include "chunkwiseFilters.h"
#include "chunkwiseManager.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <thread>

#if !defined(_WIN32)
#  include <sys/wait.h>
#  include <unistd.h>

using namespace chunkwise;

namespace
{

/** A mean that takes several threads, and what it gives. */
struct MeanCase
{
  std::vector<std::uint16_t> input;
  std::vector<std::uint16_t> output;
  std::vector<std::uint16_t> expected;
  ExecutionRequest           request;

  MeanCase()
  {
    FilterImage image;
    image.extent = { { 40, 40, 40, 1, 1 } };
    image.inputKind = image.outputKind = PixelType::UInt16;
    FilterParameters parameters;
    parameters.SetInteger("Radius", 2);
    request.operation = MakeFilterOperation("mean", parameters, image);
    request.image = request.region = Box::FromExtent(image.extent);
    input.resize(40 * 40 * 40);
    std::iota(input.begin(), input.end(), std::uint16_t{ 7 });
    expected.resize(input.size());
    output.resize(input.size());
    request.inputs = { DenseView(input.data(), PixelType::UInt16, request.image) };
    request.backend = BackendChoice::CPU;
    request.output = DenseView(expected.data(), PixelType::UInt16, request.image);
    Manager({}).Execute(request);
    request.output.data = output.data();
  }
  bool
  IsRight(Manager & manager)
  {
    std::fill(output.begin(), output.end(), std::uint16_t{ 0 });
    manager.Execute(request);
    return output == expected;
  }
};

/** The result of `work` in a child; -1 if it does not come within a minute. */
template <typename TWork>
int
InChild(TWork && work)
{
  const pid_t child = fork();
  if (child == 0)
  {
    alarm(60);
    int result = 99;
    try
    {
      result = work();
    }
    catch (...)
    {}
    _exit(result);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Fork, AChildComputesAfterARunOfItsParent)
{
#  if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends children that start threads";
#  endif
  MeanCase                        mean;
  const std::shared_ptr<Executor> own = MakeThreadExecutor(3);
  Manager                         manager({});
  for (Executor * const executor : { static_cast<Executor *>(nullptr), own.get() })
  {
    mean.request.executor = executor;
    ASSERT_TRUE(mean.IsRight(manager));
    EXPECT_EQ(InChild([&] { return mean.IsRight(manager) && mean.IsRight(manager) ? 0 : 1; }), 0);
    // A child of a child.
    EXPECT_EQ(
      InChild([&] { return mean.IsRight(manager) ? InChild([&] { return mean.IsRight(manager) ? 0 : 1; }) : 2; }), 0);
    EXPECT_TRUE(mean.IsRight(manager)) << "the parent goes on";
  }
}

TEST(Fork, AChildComputesWhileItsParentIsInTheMiddleOfRuns)
{
#  if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends children that start threads";
#  endif
  MeanCase          mean;
  Manager           manager({});
  std::atomic<bool> ends{ false };
  std::atomic<int>  wrong{ 0 };
  // Under a budget, so that locks of arenas and turns are in use.
  manager.SetBudgets({ 0, 0, std::size_t{ 64 } << 20 });
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t)
  {
    threads.emplace_back([&] {
      MeanCase mine;
      while (!ends)
      {
        wrong += mine.IsRight(manager) ? 0 : 1;
      }
    });
  }
  for (int i = 0; i < 20; ++i)
  {
    EXPECT_EQ(InChild([&] { return mean.IsRight(manager) ? 0 : 1; }), 0) << i;
  }
  ends = true;
  for (auto & thread : threads)
  {
    thread.join();
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Fork, AChildRefusesItsParentsDevices)
{
  const FakeDevices devices(1);
  Manager           manager({ devices.fakes[0] }, "", nullptr);
  MeanCase          mean;
  mean.request.backend = BackendChoice::CUDA;
  EXPECT_EQ(InChild([&] {
              if (!manager.GetDevices().empty())
              {
                return 1;
              }
              try
              {
                manager.Execute(mean.request);
                return 2;
              }
              catch (const Error & error)
              {
                const std::string why = error.what();
                if (why.find("was forked") == std::string::npos || why.find("spawn") == std::string::npos)
                {
                  return 3;
                }
              }
              mean.request.backend = BackendChoice::Auto;
              return mean.IsRight(manager) ? 0 : 4;
            }),
            0);
  EXPECT_EQ(manager.GetDevices().size(), 1u);
}

} // namespace
#endif
