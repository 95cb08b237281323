/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseRecordingMonitor_h
#define chunkwiseRecordingMonitor_h

#include "chunkwiseManager.h"

#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace chunkwise
{

/** Keeps what it is told, and aborts or throws where the test says. */
class RecordingMonitor : public Monitor
{
public:
  std::vector<double>   fractions;
  const std::thread::id owner = std::this_thread::get_id();
  double                abortAt{ 2.0 };
  bool                  throws{ false };

  void
  UpdateProgress(double fraction) override
  {
    EXPECT_EQ(std::this_thread::get_id(), owner);
    fractions.push_back(fraction);
    if (throws && fraction > 0.3)
    {
      throw std::runtime_error("the caller's own");
    }
  }
  bool
  ShouldAbort() override
  {
    EXPECT_EQ(std::this_thread::get_id(), owner);
    return !fractions.empty() && fractions.back() >= abortAt;
  }
};

} // namespace chunkwise

#endif
