/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseFakeDevices_h
#define chunkwiseFakeDevices_h

#include "chunkwiseFakeDevice.h"
#include "chunkwiseManager.h"
#include "chunkwiseTestOperations.h"

#include <memory>
#include <string>
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

/** Every function of a device whose failure a run may meet, and the work of a kernel. */
const char * const FakeDeviceCalls[] = { "GetFreeMemory", "Allocate",     "AllocatePinned", "CreateStream",
                                         "CreateEvent",   "Record",       "Wait",           "Query",
                                         "Synchronize",   "CopyToDevice", "CopyToHost",     "CopyOnDevice",
                                         "Launch",        "kernel" };

} // namespace chunkwise

#endif
