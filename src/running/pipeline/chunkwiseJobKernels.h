/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwiseJobKernels_h
#define chunkwiseJobKernels_h

#include "chunkwiseDeviceCarries.h"
#include "chunkwiseJobLine.h"
#include "chunkwisePipelineBuffers.h"

namespace chunkwise
{

/** Enqueues the kernels of a line's jobs on a device, in order, as soon as each has its input, a free output and, in a
 * sweep, its carry. */
class JobKernels
{
public:
  /** `chain`: of a sweep, else nullptr. Throws BudgetError or DeviceError if memory fails. */
  JobKernels(DeviceState & state, RunContext & context, const Plan & plan, CarryChain * chain, JobLine & line,
             std::size_t worker, int splits, std::size_t memoryLimit, std::size_t pinnedLimit);

  const PipelineBuffers &
  GetBuffers() const
  {
    return *m_Buffers;
  }

  /** Waits until it is known what the next job's input buffer must wait for; nullptr: nothing. */
  EventHandle
  AwaitSlot();
  /** Enqueues the kernels of all jobs that are loaded and have a free output buffer, in order, and ahead of them what
   * makes the carries that others may wait for. */
  void
  IssueReady();
  /** For a sweep: brings the jobs' carries from and to the chain, in order, until the line ends. */
  void
  HandCarries();
  /** Under the line's lock: what entered a job that is done with is kept no longer. */
  void
  ForgetCarry(const Job & job);
  /** Waits for all that is enqueued. */
  void
  Synchronize();

private:
  bool
  MayAdvance() const;
  bool
  MayIssue() const;
  /** Later work in the stream waits for all that was loaded for the job; in a sweep, once for a chunk. */
  void
  AwaitLoads(const Job & job);
  KernelCall
  MakeCall(const Job & job);
  void
  Issue(Job & job);
  /** Copies what the job before has of this one's input and state. */
  void
  CopyOverlap(const Job & job);
  void
  Launch(Job & job, KernelCall & call);

  Device &                         m_Device;
  RunContext &                     m_Context;
  CarryChain *                     m_Chain;
  JobLine &                        m_Line;
  const std::size_t                m_Worker;
  const Kernel *                   m_Kernel;
  CachedTables                     m_Tables;
  StopControl                      m_Control{ &m_Context };
  DeviceStream                     m_Stream{ m_Device };
  std::unique_ptr<DeviceCarries>   m_Carries; ///< of a sweep
  std::unique_ptr<PipelineBuffers> m_Buffers;
  // Under the line's lock:
  std::size_t m_AdvanceJob{ 0 };
  std::size_t m_IssueJob{ 0 };
  bool        m_Issuing{ false };
};

} // namespace chunkwise

#endif
