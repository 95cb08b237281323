/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHostWorker_h
#define chunkwiseHostWorker_h

#include "chunkwiseRunContext.h"

namespace chunkwise
{

/** Runs chunks on the CPU, straight from and into the images. */
class HostWorker
{
public:
  HostWorker(RunContext & context, Executor & executor, Arena & memory, std::size_t memoryLimit);

  /** Scratch bytes that a chunk needs. */
  std::size_t
  GetScratchBytes(const Chunk & chunk, const std::string & kernel) const;
  /** Runs the operation's kernel on a chunk, halved as often as the memory limit needs. Throws BudgetError if one voxel
   * does not fit. */
  void
  Run(const Chunk & chunk);

private:
  /** Cut where the halves need the least scratch: cutting an axis along which a kernel sweeps may spare none, and cost
   * halo. Empty: one voxel. */
  std::vector<Chunk>
  Halve(const Chunk & chunk, const std::string & kernelName) const;

  RunContext &      m_Context;
  Executor &        m_Executor;
  Arena &           m_Memory;
  const std::size_t m_MemoryLimit;
  HostTables        m_Tables;
};

} // namespace chunkwise

#endif
