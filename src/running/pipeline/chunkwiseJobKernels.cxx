/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseJobKernels.h"

#include "chunkwisePipedCall.h"

namespace chunkwise
{

namespace
{

/** The objects with which the host computes its part of a chunk. */
struct HeadJob
{
  HeadJob(RunContext & context, const Chunk & chunk, RunControl & control)
    : tables(*context.host.memory, context.host.meter, 0)
    , call{ context.host.head, context.MakeHostCall(chunk, *context.host.executor, tables) }
    , scratch(context, *context.host.memory,
              context.host.head->scratchBytes(
                *context.request.operation, context.ShapeOf(chunk, context.host.kernels,
                                                            static_cast<int>(context.host.executor->GetConcurrency()))),
              0)
  {
    call.call.control = &control;
    call.call.scratch = scratch.Get();
  }

  HostTables  tables;
  PipedCall   call;
  HostScratch scratch;
};

const Kernel *
FindKernel(const RunContext & context, const KernelRegistry & registry)
{
  return context.FindKernel(registry,
                            !context.spilled    ? &KernelSet::compute
                            : context.host.head ? &KernelSet::piped
                                                : &KernelSet::spilled);
}

} // namespace

JobKernels::JobKernels(DeviceState & state, RunContext & context, const Plan & plan, CarryChain * chain, JobLine & line,
                       std::size_t worker, int splits, std::size_t memoryLimit, std::size_t pinnedLimit)
  : m_Device(*state.device)
  , m_Context(context)
  , m_Chain(chain)
  , m_Line(line)
  , m_Worker(worker)
  , m_Kernel(FindKernel(context, m_Device.GetKernels()))
  , m_Tables(state, memoryLimit)
{
  if (chain)
  {
    m_Carries = std::make_unique<DeviceCarries>(state, context, *chain, memoryLimit, pinnedLimit);
  }
  const std::vector<const Kernel *> kernels{ m_Kernel, m_Carries ? m_Carries->GetAdvance() : nullptr };
  m_Buffers = std::make_unique<PipelineBuffers>(state, context, plan, kernels, splits, memoryLimit);
}

EventHandle
JobKernels::AwaitSlot()
{
  JobLine::Lock     lock = m_Line.Acquire();
  const std::size_t number = m_Line.GetSize();
  const std::size_t slots = m_Buffers->GetNumberOfInputs();
  if (number < slots)
  {
    return nullptr;
  }
  const std::size_t user = number - slots;
  // The slot's last reader is its own kernel, or the copy of its end to the next job's buffer, which comes ahead of
  // that job's kernel.
  const bool        overlapped = user + 1 < number && m_Line.At(user + 1).overlaps;
  const std::size_t reader = overlapped ? user + 1 : user;
  m_Line.WaitFor(lock, [&] { return m_Line.At(reader).issued; });
  return overlapped ? m_Buffers->Overlapped(reader) : m_Buffers->Run(reader);
}

void
JobKernels::IssueReady()
{
  JobLine::Lock lock = m_Line.Acquire();
  if (m_Issuing)
  {
    return;
  }
  m_Issuing = true;
  while (!m_Line.HasFailed())
  {
    if (this->MayAdvance())
    {
      Job & job = m_Line.At(m_AdvanceJob);
      lock.unlock();
      this->AwaitLoads(job);
      m_Carries->Advance(job.number, job.chunk, this->MakeCall(job), m_Stream.Get());
      lock.lock();
      job.advanced = true;
      ++m_AdvanceJob;
    }
    else if (this->MayIssue())
    {
      Job & job = m_Line.At(m_IssueJob);
      lock.unlock();
      this->Issue(job);
      lock.lock();
      job.issued = true;
      ++m_IssueJob;
    }
    else
    {
      break;
    }
    m_Line.Notify();
  }
  m_Issuing = false;
}

bool
JobKernels::MayAdvance() const
{
  if (!m_Chain || m_AdvanceJob == m_Line.GetSize() ||
      m_AdvanceJob > m_IssueJob + DeviceCarries::Lead(m_Chain->IsShared()))
  {
    return false;
  }
  const Job & job = m_Line.At(m_AdvanceJob);
  return job.isLoaded && job.carryTaken;
}

bool
JobKernels::MayIssue() const
{
  if (m_IssueJob == m_Line.GetSize())
  {
    return false;
  }
  const std::size_t outputs = m_Buffers->GetNumberOfOutputs();
  const bool        outputFree = m_IssueJob < outputs || m_Line.At(m_IssueJob - outputs).finished;
  return m_Line.At(m_IssueJob).isLoaded && outputFree && (!m_Chain || m_IssueJob < m_AdvanceJob);
}

void
JobKernels::AwaitLoads(const Job & job)
{
  if (!job.loads.empty())
  {
    m_Device.Wait(m_Stream.Get(), m_Buffers->Loaded(job.number));
  }
}

KernelCall
JobKernels::MakeCall(const Job & job)
{
  KernelCall call;
  call.operation = m_Context.request.operation.get();
  call.numberOfInputs = static_cast<int>(job.inputs.size());
  for (std::size_t i = 0; i < job.inputs.size(); ++i)
  {
    call.inputs[i] = DenseView(m_Buffers->Input(job.number, i), m_Context.inputKinds[i], job.inputBox);
  }
  call.output = DenseView(m_Buffers->Output(job.number),
                          m_Context.request.output.kind,
                          job.bytesBefore > 0 ? job.inputBox : job.chunk.outputBox);
  call.writable = job.chunk.outputBox;
  call.image = m_Context.request.image;
  call.scratch = m_Buffers->GetScratch();
  call.scratchBytes = m_Buffers->GetScratchBytes();
  call.control = &m_Control;
  call.tables = &m_Tables;
  call.changedSides = m_Buffers->GetChangedSides();
  return call;
}

void
JobKernels::Issue(Job & job)
{
  if (!m_Chain)
  {
    this->AwaitLoads(job);
  }
  this->CopyOverlap(job);
  KernelCall call = this->MakeCall(job);
  if (m_Chain)
  {
    m_Carries->Enter(job.number, job.chunk, call, m_Stream.Get());
  }
  if (call.changedSides)
  {
    m_Device.SetToZero(call.changedSides, sizeof(std::uint32_t), m_Stream.Get());
  }
  this->Launch(job, call);
  m_Device.Record(m_Buffers->Run(job.number), m_Stream.Get());
}

void
JobKernels::CopyOverlap(const Job & job)
{
  if (job.overlaps)
  {
    for (std::size_t i = 0; i < job.inputs.size(); ++i)
    {
      // A block for each component, whose planes lie one after the other.
      const InputOverlap & overlap = job.overlap[i];
      const auto           blocks = static_cast<std::size_t>(job.inputComponents[i]);
      const std::size_t    bytes = job.inputs[i].GetNumberOfBytes() / blocks;
      for (std::size_t block = 0; block < blocks; ++block)
      {
        m_Device.CopyOnDevice(m_Buffers->Input(job.number, i) + block * bytes,
                              m_Buffers->Input(job.number - 1, i) + block * overlap.block + overlap.from / blocks,
                              overlap.bytes / blocks,
                              m_Stream.Get());
      }
    }
    m_Device.Record(m_Buffers->Overlapped(job.number), m_Stream.Get());
  }
  if (job.bytesBefore > 0)
  {
    m_Device.CopyOnDevice(m_Buffers->Output(job.number),
                          m_Buffers->Output(job.number - 1) + job.layersFrom,
                          job.bytesBefore,
                          m_Stream.Get());
  }
}

void
JobKernels::Launch(Job & job, KernelCall & call)
{
  if (!m_Context.spilled)
  {
    for (const Kernel * const kernel : m_Context.FindKernels(m_Device.GetKernels(), job.chunk.outputBox))
    {
      m_Device.Launch(*kernel, call, m_Stream.Get());
    }
    return;
  }
  call.sideOut = m_Context.spilled->Get(m_Worker);
  call.sideOutBytes = m_Context.spilled->GetBytes();
  if (m_Context.host.head)
  {
    const auto head = std::make_shared<HeadJob>(m_Context, job.chunk, m_Control);
    job.head = head;
    call.sideIn = &head->call;
    call.sideInBytes = sizeof(head->call);
  }
  m_Device.Launch(*m_Kernel, call, m_Stream.Get());
}

void
JobKernels::HandCarries()
{
  const auto mustStop = [this] { return m_Line.MustStop(); };
  for (std::size_t number = 0;; ++number)
  {
    Job * job = nullptr;
    {
      JobLine::Lock lock = m_Line.Acquire();
      m_Line.WaitFor(lock, [&] { return number < m_Line.GetSize() || m_Line.IsClosed(); });
      if (number == m_Line.GetSize())
      {
        return;
      }
      job = &m_Line.At(number);
    }
    m_Carries->Take(number, job->chunk, mustStop);
    {
      const JobLine::Lock lock = m_Line.Acquire();
      job->carryTaken = true;
    }
    this->IssueReady();
    if (m_Chain->IsShared() && !m_Chain->IsLast(job->chunk))
    {
      {
        JobLine::Lock lock = m_Line.Acquire();
        m_Line.WaitFor(lock, [job] { return job->advanced; });
      }
      m_Carries->HandOn(number, job->chunk, mustStop);
      const JobLine::Lock lock = m_Line.Acquire();
      job->carryHandedOn = true;
      this->ForgetCarry(*job);
    }
  }
}

void
JobKernels::ForgetCarry(const Job & job)
{
  if (m_Chain && job.finished && job.carryHandedOn)
  {
    m_Chain->Forget(m_Chain->Begin(job.chunk));
  }
}

void
JobKernels::Synchronize()
{
  m_Line.Guard([this] { m_Device.Synchronize(m_Stream.Get()); });
  if (m_Carries)
  {
    m_Line.Guard([this] { m_Carries->Synchronize(); });
  }
}

} // namespace chunkwise
