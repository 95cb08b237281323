/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePipeline_h
#define chunkwisePipeline_h

#include "chunkwiseCarryChain.h"
#include "chunkwiseChunkQueue.h"
#include "chunkwiseRunContext.h"

#include <memory>
#include <vector>

namespace chunkwise
{

/** Runs chunks through one device: load, run and store overlap, and host threads stage small pieces through pinned
 * memory that fits the host's caches.
 *
 * Threads: the caller feeds chunks; loaders copy pieces of the images to pinned memory and enqueue their transfer;
 * whoever completes a chunk's input enqueues its kernel; storers enqueue transfers back and copy pieces into the image.
 * All device memory is acquired before the first chunk.
 *
 * JobMaker says what is copied for a chunk, JobLine keeps the chunks in order for the threads, PieceCopies copies,
 * PipelineBuffers has the device's memory, and JobKernels enqueues kernels.
 *
 * In a sweep a chunk's kernel waits for its carry too. From one chunk to the next on the same device it stays there;
 * one more thread gets it from the chain where the chunk before was another's, and hands on what others may wait for.
 */
class Pipeline
{
public:
  /** `splits`: each claimed chunk is halved this many times. `chain`: of a sweep, else nullptr. Throws BudgetError or
   * DeviceError if memory fails. */
  Pipeline(DeviceState & state, RunContext & context, const Plan & plan, ChunkQueue & queue, CarryChain * chain,
           std::size_t worker, int splits, std::size_t memoryLimit, std::size_t pinnedLimit);
  ~Pipeline();

  /** Takes chunks until none is left, the run is stopped or the queue recalls its claims. On failure everything
   * unfinished, and of a sweep what others could not go on from, goes back to the queue, the device is left idle, and
   * the first error is thrown. Returns the chunks it finished. */
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
