/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePipeline_h
#define chunkwisePipeline_h

#include "chunkwiseChunkQueue.h"
#include "chunkwiseRunContext.h"

#include <memory>
#include <vector>

namespace chunkwise
{

/** Runs independent chunks through one device: load, run and store overlap, and host threads stage small pieces through
 * pinned memory that fits the host's caches.
 *
 * Threads: the caller feeds chunks; loaders copy pieces of the images to pinned memory and enqueue their transfer;
 * whoever completes a chunk's input enqueues its kernel; storers enqueue transfers back and copy pieces into the image.
 * All device memory is acquired before the first chunk. */
class Pipeline
{
public:
  /** `splits`: each claimed chunk is halved this many times. Throws BudgetError or DeviceError if memory fails. */
  Pipeline(DeviceState & state, RunContext & context, const Plan & plan, ChunkQueue & queue, std::size_t worker,
           int splits, std::size_t memoryLimit, std::size_t pinnedLimit);
  ~Pipeline();

  /** Takes chunks until none is left or the run is stopped. On failure everything unfinished goes back to the queue,
   * the device is left idle, and the first error is thrown. Returns the chunks it finished. */
  std::int64_t
  Run();

  /** True if halving the chunks once more would make them smaller. */
  static bool
  CanSplit(const Plan & plan, int splits, const PlannerRequest & request);

private:
  class Impl;
  std::unique_ptr<Impl> m_Impl;
};

} // namespace chunkwise

#endif
