/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#ifndef chunkwisePipelineBuffers_h
#define chunkwisePipelineBuffers_h

#include "chunkwisePipelineJob.h"

namespace chunkwise
{

/** A pipeline's memory on its device, and its events there: rings in which each job has the place of its number. */
class PipelineBuffers
{
public:
  /** Enough for every chunk of the plan, halved `splits` times, and the scratch of these kernels. Throws BudgetError or
   * DeviceError if memory fails. */
  PipelineBuffers(DeviceState & state, const RunContext & context, const Plan & plan,
                  const std::vector<const Kernel *> & kernels, int splits, std::size_t memoryLimit);

  /** Bytes of a chunk's images. */
  std::size_t
  GetImageBytes() const
  {
    return m_ImageBytes;
  }
  std::size_t
  GetNumberOfInputs() const
  {
    return m_Inputs.size();
  }
  std::size_t
  GetNumberOfOutputs() const
  {
    return m_Outputs.size();
  }
  char *
  Input(std::size_t job, std::size_t input) const
  {
    return static_cast<char *>(m_Inputs[job % m_Inputs.size()].Get()) + m_InputOffsets[input];
  }
  char *
  Output(std::size_t job) const
  {
    return static_cast<char *>(m_Outputs[job % m_Outputs.size()].Get());
  }
  void *
  GetScratch() const
  {
    return m_Scratch.Get();
  }
  std::size_t
  GetScratchBytes() const
  {
    return m_ScratchBytes;
  }
  /** Fixpoint, else nullptr: a word that kernels write and nobody reads, since all that chunks share is visited again.
   */
  std::uint32_t *
  GetChangedSides() const
  {
    return static_cast<std::uint32_t *>(m_ChangedSides.Get());
  }

  /** Comes when a job's input is on the device. */
  EventHandle
  Loaded(std::size_t job) const
  {
    return At(m_Loaded, job);
  }
  /** Comes when a job's kernels have run. */
  EventHandle
  Run(std::size_t job) const
  {
    return At(m_Run, job);
  }
  /** Comes when a job has what the one before shares with it. */
  EventHandle
  Overlapped(std::size_t job) const
  {
    return At(m_Overlapped, job);
  }

private:
  static EventHandle
  At(const std::vector<DeviceEvent> & events, std::size_t job)
  {
    return events[job % events.size()].Get();
  }

  std::vector<std::size_t> m_InputOffsets;
  std::vector<ArenaBlock>  m_Inputs;
  std::vector<ArenaBlock>  m_Outputs;
  ArenaBlock               m_Scratch;
  ArenaBlock               m_ChangedSides;
  std::size_t              m_ScratchBytes{ 0 };
  std::size_t              m_ImageBytes{ 0 };
  std::vector<DeviceEvent> m_Loaded;
  std::vector<DeviceEvent> m_Run;
  std::vector<DeviceEvent> m_Overlapped;
};

} // namespace chunkwise

#endif
