/* Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0 */
#include "chunkwiseError.h"
#include "chunkwiseHostCopy.h"
#include "chunkwiseSchedules.h"
#include "chunkwiseStagedTransfer.h"

#include <algorithm>

namespace chunkwise
{

namespace
{

class DeviceRunner : public ChunkRunner
{
public:
  DeviceRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit, std::size_t pinnedLimit, int sharers)
    : m_Context(context)
    , m_State(state)
    , m_Device(*state.device)
    , m_Limit(memoryLimit)
    , m_Tables(state, memoryLimit)
    , m_Transfer(state, context, pinnedLimit, sharers)
    , m_Stream(m_Device.CreateStream(), [this](void * stream) { m_Device.DestroyStream(stream); })
  {}

  ~DeviceRunner() override
  {
    try
    {
      m_Device.Synchronize(m_Stream.get());
    }
    catch (const Error &)
    {
      // The step that failed has thrown; what remains is to let its memory go.
    }
  }

  void
  Run(const Step & step) override
  {
    try
    {
      Enqueue(step, Find(step.role));
      LetGo();
      if (step.reportsVoxels)
      {
        m_Context.AddFinishedVoxels(step.chunk.outputBox.NumberOfVoxels());
      }
    }
    catch (const DeviceError & error)
    {
      m_State.NoteFailure(error);
      EndEarly();
      throw;
    }
    catch (...)
    {
      EndEarly();
      throw;
    }
  }

  std::string
  GetName() const override
  {
    return m_Device.GetDescription().name;
  }

private:
  /** Work that was enqueued before a failure still uses the blocks that are about to be released. */
  void
  EndEarly()
  {
    try
    {
      m_Device.Synchronize(m_Stream.get());
    }
    catch (const Error &)
    {
      // The first error is the one to report.
    }
    LetGo();
  }

  const Kernel &
  Find(KernelRole role) const
  {
    return m_Context.GetDeviceKernel(m_Device, role);
  }

  void
  Enqueue(const Step & step, const Kernel & kernel)
  {
    const auto & request = m_Context.request;
    KernelCall   call;
    call.operation = request.operation.get();
    call.numberOfInputs = static_cast<int>(request.inputs.size());
    call.image = request.image;
    call.writable = step.chunk.outputBox;
    call.tables = &m_Tables;

    m_Inputs.resize(request.inputs.size());
    for (std::size_t i = 0; i < request.inputs.size(); ++i)
    {
      call.inputs[i] = DenseView(
        Load(m_Inputs[i], request.inputs[i], step.chunk.inputBox), request.inputs[i].kind, step.chunk.inputBox);
    }
    call.output.kind = request.output.kind;
    if (step.writesOutput)
    {
      const Box box = step.changedSides ? Intersect(step.chunk.inputBox, request.region) : step.chunk.outputBox;
      call.output = DenseView(nullptr, request.output.kind, box);
      call.output.data =
        step.changedSides ? Load(m_Output, request.output, box) : Hold(m_Output, call.output.NumberOfBytes());
    }
    const std::size_t scratchBytes =
      kernel.scratchBytes
        ? kernel.scratchBytes(*request.operation, m_Context.ShapeOf(step.chunk, m_Device.GetKernels(), 1))
        : 0;
    call.scratch = Hold(m_Scratch, scratchBytes);
    call.scratchBytes = scratchBytes;
    ArenaBlock sideIn;
    if (step.sideIn && !step.sideIn->empty())
    {
      sideIn = ArenaBlock(m_State.memory, step.sideIn->size(), m_Limit);
      ToDevice(sideIn.Get(), step.sideIn->data(), step.sideIn->size());
      call.sideIn = sideIn.Get();
      call.sideInBytes = step.sideIn->size();
    }
    ArenaBlock sideOut;
    if (step.sideOut && !step.sideOut->empty())
    {
      sideOut = ArenaBlock(m_State.memory, step.sideOut->size(), m_Limit);
      call.sideOut = sideOut.Get();
      call.sideOutBytes = step.sideOut->size();
    }
    if (step.changedSides)
    {
      call.changedSides = static_cast<std::uint32_t *>(Hold(m_Sides, sizeof(std::uint32_t)));
      m_Device.SetToZero(call.changedSides, sizeof(std::uint32_t), m_Stream.get());
    }

    m_Device.Launch(kernel, call, m_Stream.get());

    if (step.changedSides)
    {
      ToHost(step.changedSides, call.changedSides, sizeof(std::uint32_t));
    }
    if (sideOut.Get())
    {
      ToHost(step.sideOut->data(), sideOut.Get(), step.sideOut->size());
    }
    if (step.writesOutput)
    {
      m_Device.Synchronize(m_Stream.get());
      Store(call.output);
    }
    m_Device.Synchronize(m_Stream.get());
  }

  /** Stores what the device holds of the output: of Fixpoint with the halo, which has not changed. */
  void
  Store(const BufferView & held)
  {
    const DenseSequence to(m_Context.request.output, held.box, m_Context.request.image);
    m_Transfer.ToHost(to, held.data);
    m_Context.counts.bytesToHost += static_cast<std::int64_t>(to.GetNumberOfBytes());
  }

  /** Whether a block of this size stays for the next step: such as are nothing beside what other runners need. */
  bool
  MayStay(std::size_t bytes) const
  {
    return m_Limit == 0 || bytes <= m_Limit / 512;
  }

  void *
  Hold(ArenaBlock & block, std::size_t bytes)
  {
    if (block.GetBytes() < bytes)
    {
      block = ArenaBlock();
      // The next job may be a little larger.
      block = ArenaBlock(m_State.memory, MayStay(2 * bytes) ? 2 * bytes : bytes, m_Limit);
    }
    return bytes ? block.Get() : nullptr;
  }

  void
  LetGo()
  {
    const auto letGo = [this](ArenaBlock & block) {
      if (!MayStay(block.GetBytes()))
      {
        block = ArenaBlock();
      }
    };
    std::for_each(m_Inputs.begin(), m_Inputs.end(), letGo);
    letGo(m_Output);
    letGo(m_Scratch);
    letGo(m_Sides);
  }

  void *
  Load(ArenaBlock & block, const BufferView & view, const Box & box)
  {
    const DenseSequence sequence(view, box, m_Context.request.image);
    void * const        memory = Hold(block, sequence.GetNumberOfBytes());
    m_Transfer.ToDevice(memory, sequence);
    m_Context.counts.bytesToDevice += static_cast<std::int64_t>(sequence.GetNumberOfBytes());
    return memory;
  }

  void
  ToDevice(void * to, const void * from, std::size_t bytes)
  {
    m_Device.CopyToDevice(to, from, bytes, m_Stream.get());
    m_Device.Synchronize(m_Stream.get());
  }

  void
  ToHost(void * to, const void * from, std::size_t bytes)
  {
    m_Device.CopyToHost(to, from, bytes, m_Stream.get());
    m_Device.Synchronize(m_Stream.get());
  }

  RunContext &      m_Context;
  DeviceState &     m_State;
  Device &          m_Device;
  const std::size_t m_Limit;
  CachedTables      m_Tables;
  /** Memory of the last step. */
  std::vector<ArenaBlock> m_Inputs;
  ArenaBlock              m_Output;
  ArenaBlock              m_Scratch;
  ArenaBlock              m_Sides;
  StagedTransfer          m_Transfer;
  std::shared_ptr<void>   m_Stream;
};

} // namespace

std::unique_ptr<ChunkRunner>
MakeDeviceRunner(RunContext & context, DeviceState & state, std::size_t memoryLimit, std::size_t pinnedLimit,
                 int sharers)
{
  return std::unique_ptr<ChunkRunner>(new DeviceRunner(context, state, memoryLimit, pinnedLimit, sharers));
}

} // namespace chunkwise
