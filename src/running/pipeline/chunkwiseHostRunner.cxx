/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseSchedules.h"

namespace chunkwise
{

namespace
{

class HostRunner : public ChunkRunner
{
public:
  HostRunner(RunContext & context, Executor & executor, HostState & memory, std::size_t memoryLimit)
    : m_Context(context)
    , m_Executor(executor)
    , m_Memory(memory)
    , m_MemoryLimit(memoryLimit)
    , m_Control(&context)
  {}

  void
  Run(const Step & step) override
  {
    const Kernel &    kernel = m_Context.GetHostKernel(step.role);
    const std::size_t bytes =
      kernel.scratchBytes
        ? kernel.scratchBytes(
            *m_Context.request.operation,
            m_Context.ShapeOf(step.chunk, m_Context.host.kernels, static_cast<int>(m_Executor.GetConcurrency())))
        : 0;
    const HostScratch scratch(m_Context, m_Memory, bytes, m_MemoryLimit);
    HostTables        tables(m_Memory, m_Context.host.meter, m_MemoryLimit);
    KernelCall        call = m_Context.MakeHostCall(step.chunk, m_Executor, tables);
    call.control = step.reportsVoxels ? static_cast<RunControl *>(&m_Context) : &m_Control;
    if (!step.writesOutput)
    {
      call.OmitOutput();
    }
    else if (step.changedSides)
    {
      call.output = SubView(m_Context.request.output, Intersect(step.chunk.inputBox, m_Context.request.region));
    }
    call.scratch = scratch.Get();
    call.scratchBytes = bytes;
    if (step.sideIn)
    {
      call.sideIn = step.sideIn->data();
      call.sideInBytes = step.sideIn->size();
    }
    if (step.sideOut)
    {
      call.sideOut = step.sideOut->data();
      call.sideOutBytes = step.sideOut->size();
    }
    call.changedSides = step.changedSides;
    kernel.run(call);
  }

  std::string
  GetName() const override
  {
    return "cpu";
  }

private:
  RunContext &      m_Context;
  Executor &        m_Executor;
  HostState &       m_Memory;
  const std::size_t m_MemoryLimit;
  StopControl       m_Control;
};

} // namespace

std::unique_ptr<ChunkRunner>
MakeHostRunner(RunContext & context, Executor & executor, HostState & memory, std::size_t memoryLimit)
{
  return std::unique_ptr<ChunkRunner>(new HostRunner(context, executor, memory, memoryLimit));
}

} // namespace chunkwise
