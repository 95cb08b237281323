/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseWaitOperation_h
#define chunkwiseWaitOperation_h

#include "chunkwiseManager.h"
#include "chunkwiseRecordingMonitor.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

namespace chunkwise
{

/** A copy; but the one with the number to wait returns only when it is asked to stop, or after many seconds, which no
 * test should need. */
class WaitOperation : public Operation
{
public:
  static constexpr int Most = 8;
  /** Shared by all: how often each number began, and which waits. */
  static inline std::atomic<int> begun[Most]{};
  static inline std::atomic<int> waits{ -1 };
  int                            number{ 0 };

  static std::shared_ptr<WaitOperation>
  New(int number)
  {
    const auto operation = std::make_shared<WaitOperation>();
    operation->number = number;
    return operation;
  }
  static void
  Reset(int waiting)
  {
    waits = waiting;
    for (auto & count : begun)
    {
      count = 0;
    }
  }

  std::string
  GetName() const override
  {
    return "test.wait";
  }
  std::string
  GetKey() const override
  {
    return "test.wait " + std::to_string(number);
  }
  Halo
  GetHalo(const Coordinates &) const override
  {
    return Halo::None();
  }
  void
  CheckKinds(const std::vector<PixelType> &, PixelType) const override
  {}

  static void
  Register(KernelRegistry & registry)
  {
    Kernel kernel;
    kernel.run = [](const KernelCall & call) {
      const int number = static_cast<const WaitOperation &>(*call.operation).number;
      ++begun[number];
      if (number == waits)
      {
        const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
        while ((!call.control || !call.control->ShouldStop()) && std::chrono::steady_clock::now() < end)
        {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        EXPECT_LT(std::chrono::steady_clock::now(), end) << "stage " << number << " was not asked to stop";
        return;
      }
      const std::int64_t n = call.output.box.Extent(0);
      Box                rows = call.output.box;
      rows.upper[0] = rows.lower[0] + 1;
      for (std::int64_t row = 0; row < rows.NumberOfVoxels(); ++row)
      {
        Coordinates  index = rows.lower;
        std::int64_t rest = row;
        for (int a = 1; a < MaxDimension; ++a)
        {
          index[a] += rest % rows.Extent(a);
          rest /= rows.Extent(a);
        }
        std::memcpy(static_cast<char *>(call.output.data) + call.output.Offset(index),
                    static_cast<const char *>(call.inputs[0].data) + call.inputs[0].Offset(index),
                    static_cast<std::size_t>(n));
      }
    };
    registry.Register("test.wait", { kernel });
  }
};

/** Asks to abort once the operation that waits has begun. */
class AbortOnceWaiting : public RecordingMonitor
{
public:
  bool
  ShouldAbort() override
  {
    return WaitOperation::begun[WaitOperation::waits] > 0;
  }
};

} // namespace chunkwise

#endif
