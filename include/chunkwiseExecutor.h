/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseExecutor_h
#define chunkwiseExecutor_h

#include "ChunkwiseExport.h"

#include <cstdint>
#include <functional>
#include <memory>

namespace chunkwise
{

/** Threads for host work. The ITK layer makes one of itk::MultiThreaderBase. */
class Chunkwise_EXPORT Executor
{
public:
  virtual ~Executor();

  /** Workers that ParallelFor uses, at least 1. */
  virtual unsigned int
  GetConcurrency() const = 0;

  /** Calls body(index, worker) once for each index in [0, count), worker in [0, GetConcurrency()), and returns when all
   * are done. Workers take the next index as they become free, in ascending order. The first exception of a body is
   * thrown here after all workers stopped; indices that had not begun by then are skipped. */
  virtual void
  ParallelFor(std::int64_t count, const std::function<void(std::int64_t index, unsigned int worker)> & body) = 0;
};

/** An executor with `concurrency` threads (0: GetNumberOfProcessors()), which it owns. */
Chunkwise_EXPORT std::unique_ptr<Executor>
                 MakeThreadExecutor(unsigned int concurrency = 0);

} // namespace chunkwise

#endif
