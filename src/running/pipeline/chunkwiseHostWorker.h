/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseHostWorker_h
#define chunkwiseHostWorker_h

#include "chunkwiseCarryChain.h"

namespace chunkwise
{

/** Runs chunks on the CPU, straight from and into the images. */
class HostWorker
{
public:
  /** `chain`: of a sweep, else nullptr. */
  HostWorker(RunContext & context, Executor & executor, HostState & memory, std::size_t memoryLimit,
             CarryChain * chain);

  /** Runs the operation's kernel on a chunk, which is halved as often as the memory limit needs. In a sweep the chunk's
   * carry must be known. Throws BudgetError if the smallest chunk does not fit. */
  void
  Run(const Chunk & chunk);

private:
  std::size_t
  GetScratchBytes(const Chunk & chunk, const Kernel & kernel) const;
  /** The most scratch that any kernel of the chunk needs. */
  std::size_t
  GetScratchBytes(const Chunk & chunk) const;
  /** Cut where the halves need the least scratch: cutting an axis along which a kernel sweeps may spare none, and cost
   * halo. Empty: one voxel. */
  std::vector<Chunk>
  Halve(const Chunk & chunk) const;
  /** Runs the kernels of a sweep's chunk. */
  void
  Sweep(const Chunk & chunk, KernelCall call);

  RunContext &      m_Context;
  Executor &        m_Executor;
  HostState &       m_Memory;
  const std::size_t m_MemoryLimit;
  CarryChain *      m_Chain;
  const Kernel &    m_Kernel;
  const Kernel *    m_Advance; ///< of a sweep: the kernel that makes a carry alone; nullptr if there is none
};

} // namespace chunkwise

#endif
