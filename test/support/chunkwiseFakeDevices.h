/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFakeDevices_h
#define chunkwiseFakeDevices_h

#include "chunkwiseFakeDevice.h"
#include "chunkwiseManager.h"
#include "chunkwiseTestOperations.h"

#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chunkwise
{

/** Some fake devices, which have lost nothing when the test is over. */
struct FakeDevices
{
  std::vector<std::shared_ptr<FakeDevice>> fakes;
  const KernelRegistry &                   kernels;

  explicit FakeDevices(std::size_t count, FakeDevice::Options options = FakeDevice::Options(),
                       const KernelRegistry & theKernels = GetTestKernels())
    : kernels(theKernels)
  {
    for (std::size_t i = 0; i < count; ++i)
    {
      options.name = "fake device " + std::to_string(i);
      fakes.push_back(std::make_shared<FakeDevice>(options, kernels));
    }
  }
  std::unique_ptr<Manager>
  MakeManager() const
  {
    return std::make_unique<Manager>(
      std::vector<std::shared_ptr<Device>>(fakes.begin(), fakes.end()), "none was made", &kernels);
  }
  ~FakeDevices()
  {
    for (const auto & fake : fakes)
    {
      EXPECT_EQ(fake->CountLive(), 0) << "leaked";
      EXPECT_EQ(fake->CountViolations(), 0) << "touched what it does not own";
    }
  }
};

/** Calls run(manager, random, t) five times in each of some threads, on two devices whose budgets they share. */
template <typename TRun>
void
RunAtOnceOnTwoDevices(unsigned int count, TRun && run)
{
  FakeDevice::Options options;
  options.jitter = true;
  FakeDevices devices(2, options);
  const auto  manager = devices.MakeManager();
  Budgets     budgets;
  budgets.device = 40000;
  budgets.pinned = 200000;
  manager->SetBudgets(budgets);
  std::vector<std::thread> threads;
  for (unsigned int t = 0; t < count; ++t)
  {
    threads.emplace_back([&manager, &run, t] {
      std::mt19937 random(100 + t);
      for (int i = 0; i < 5; ++i)
      {
        run(*manager, random, t);
      }
    });
  }
  for (auto & thread : threads)
  {
    thread.join();
  }
  for (const auto & fake : devices.fakes)
  {
    EXPECT_LE(fake->GetPeak(), budgets.device);
  }
}

/** Every function of a device whose failure a run may meet, and the work of a kernel. */
const char * const FakeDeviceCalls[] = { "GetFreeMemory", "Allocate",     "AllocatePinned", "CreateStream",
                                         "CreateEvent",   "Record",       "Wait",           "Query",
                                         "Synchronize",   "CopyToDevice", "CopyToHost",     "CopyOnDevice",
                                         "Launch",        "kernel" };

} // namespace chunkwise

#endif
