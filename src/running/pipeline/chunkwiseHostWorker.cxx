/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseHostWorker.h"

#include "chunkwiseError.h"

#include <algorithm>

namespace chunkwise
{

HostWorker::HostWorker(RunContext & context, Executor & executor, HostState & memory, std::size_t memoryLimit,
                       CarryChain * chain)
  : m_Context(context)
  , m_Executor(executor)
  , m_Memory(memory)
  , m_MemoryLimit(memoryLimit)
  , m_Chain(chain)
  , m_Kernel(context.GetHostKernel(&KernelSet::compute))
  , m_Advance(chain ? context.FindKernel(context.host.kernels, &KernelSet::advance) : nullptr)
{}

std::size_t
HostWorker::GetScratchBytes(const Chunk & chunk, const Kernel & kernel) const
{
  return kernel.scratchBytes
           ? kernel.scratchBytes(
               *m_Context.request.operation,
               m_Context.ShapeOf(chunk, m_Context.host.kernels, static_cast<int>(m_Executor.GetConcurrency())))
           : 0;
}

std::size_t
HostWorker::GetScratchBytes(const Chunk & chunk) const
{
  const std::size_t bytes = GetScratchBytes(chunk, m_Kernel);
  return m_Advance ? std::max(bytes, GetScratchBytes(chunk, *m_Advance)) : bytes;
}

std::vector<Chunk>
HostWorker::Halve(const Chunk & chunk) const
{
  if (m_Chain)
  {
    return HalveChunk(chunk, m_Chain->GetAxis(), m_Context.plannerRequest);
  }
  std::vector<Chunk> best;
  std::size_t        fewest = 0;
  for (int a = MaxDimension - 1; a >= 0; --a)
  {
    if (chunk.outputBox.Extent(a) < 2)
    {
      continue;
    }
    std::vector<Chunk> halves = HalveChunk(chunk, a, m_Context.plannerRequest);
    const std::size_t  bytes = GetScratchBytes(halves[0]);
    // Whole rows and planes stay together unless cutting them spares clearly more.
    if (best.empty() || bytes < fewest - fewest / 8)
    {
      best = std::move(halves);
      fewest = bytes;
    }
  }
  return best;
}

void
HostWorker::Run(const Chunk & chunk)
{
  const std::size_t bytes = GetScratchBytes(chunk);
  if (m_MemoryLimit && bytes > m_MemoryLimit)
  {
    const std::vector<Chunk> halves = Halve(chunk);
    for (const Chunk & half : halves)
    {
      Run(half);
    }
    if (!halves.empty())
    {
      return;
    }
  }
  if (m_Context.ShouldStop())
  {
    throw Aborted();
  }
  const HostScratch scratch(m_Context, m_Memory, bytes, m_MemoryLimit);
  HostTables        tables(m_Memory, m_Context.host.meter, m_MemoryLimit);
  KernelCall        call = m_Context.MakeHostCall(chunk, m_Executor, tables);
  call.scratch = scratch.Get();
  call.scratchBytes = bytes;
  if (m_Chain)
  {
    Sweep(chunk, call);
  }
  else
  {
    std::uint32_t sides = 0;
    call.changedSides = &sides;
    // Some kernels that make a chunk of Fixpoint report how far they are, others do not.
    const std::int64_t voxels =
      m_Context.request.operation->GetSchedule() == Schedule::Fixpoint ? chunk.outputBox.NumberOfVoxels() : 0;
    ShareControl control(&m_Context, voxels, voxels);
    if (voxels > 0)
    {
      call.control = &control;
    }
    for (const Kernel * const kernel : m_Context.FindKernels(m_Context.host.kernels, chunk.outputBox))
    {
      if (!control.ShouldStop())
      {
        kernel->run(call);
      }
    }
    if (!control.ShouldStop())
    {
      control.Complete();
    }
  }
  if (m_Context.ShouldStop())
  {
    throw Aborted();
  }
  if (m_Context.request.operation->GetSchedule() == Schedule::Fixpoint)
  {
    m_Context.fixpoint.AddPart(chunk.outputBox);
  }
}

void
HostWorker::Sweep(const Chunk & chunk, KernelCall call)
{
  CarryChain::Carry carry = m_Chain->Await(m_Chain->Begin(chunk), [this] { return m_Context.ShouldStop(); });
  if (!carry)
  {
    carry = CarryChain::Keep(ChunkState(m_Chain->GetBytes(), 0));
  }
  ChunkState behind(m_Chain->IsLast(chunk) ? 0 : m_Chain->GetBytes());
  call.sideIn = carry.get();
  call.sideInBytes = m_Chain->GetBytes();
  if (!behind.empty())
  {
    KernelCall advance = call;
    advance.sideOut = behind.data();
    advance.sideOutBytes = behind.size();
    if (m_Advance)
    {
      StopControl control(&m_Context);
      advance.control = &control;
      advance.OmitOutput();
      m_Advance->run(advance);
    }
    else
    {
      call = advance;
    }
  }
  m_Kernel.run(call);
  if (!behind.empty())
  {
    m_Chain->Put(m_Chain->End(chunk), CarryChain::Keep(std::move(behind)));
  }
  m_Chain->Forget(m_Chain->Begin(chunk));
}

} // namespace chunkwise
