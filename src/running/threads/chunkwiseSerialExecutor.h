/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseSerialExecutor_h
#define chunkwiseSerialExecutor_h

#include "chunkwiseExecutor.h"

namespace chunkwise
{

/** The caller's own thread. */
class SerialExecutor : public Executor
{
public:
  unsigned int
  GetConcurrency() const override
  {
    return 1;
  }
  void
  ParallelFor(std::int64_t count, const std::function<void(std::int64_t, unsigned int)> & body) override
  {
    for (std::int64_t i = 0; i < count; ++i)
    {
      body(i, 0);
    }
  }
};

} // namespace chunkwise

#endif
